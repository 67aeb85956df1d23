//! Whose turn it is: the tin, the flow in it, and COBALT's word on its packet.
//!
//! Follows: linux v6.12 `net/sched/sch_cake.c` `cake_dequeue`, `cake_dequeue_one`, and the flow chain in `cake_enqueue`.

use super::longest::number;
use super::tin::{List, Set, ewma};
use super::{Cake, clock, memory, moment};
use crate::ledger::DropReason;
use crate::qdisc::Cx;
use penstock_packet::Packet;

impl Cake {
    /// Puts the flow of a packet that has come among the new ones, if it is in no turn.
    pub(super) fn enlist(&mut self, tin: usize, n: usize, cx: &mut Cx<'_>) {
        let mode = self.config.flow_mode;
        let b = &mut self.tins[tin];
        match b.flows[n].set {
            Set::None | Set::Decaying => {
                if b.flows[n].set == Set::Decaying {
                    b.decaying_flows = b.decaying_flows.wrapping_sub(1);
                    b.leave(List::Decaying, n);
                }
                b.join(List::New, n);
                b.flows[n].set = Set::Sparse;
                b.sparse_flows = b.sparse_flows.wrapping_add(1);
                b.flows[n].deficit = b.flow_quantum(n, mode, cx.rng);
            }
            Set::SparseWait => {
                b.flows[n].set = Set::Bulk;
                b.sparse_flows = b.sparse_flows.wrapping_sub(1);
                b.bulk_flows = b.bulk_flows.wrapping_add(1);
                b.count_hosts(n, mode);
            }
            Set::Sparse | Set::Bulk => {}
        }
    }
    /// `cake_dequeue_one`: the first packet of a flow of the current tin, with what it counts as.
    #[inline]
    pub(super) fn dequeue_one(&mut self, n: usize) -> Option<(Packet, u32)> {
        let tin = &mut self.tins[self.current];
        let (packet, adjusted) = self.store.pop(&mut tin.flows[n].chain)?;
        let (len, queue) = (packet.pkt_len, number(self.current, n));
        tin.backlog = tin.backlog.wrapping_sub(len);
        let backlog = self.longest.backlog_mut(queue);
        *backlog = backlog.wrapping_sub(len);
        self.backlog = self.backlog.wrapping_sub(len);
        self.buffer_used = self.buffer_used.wrapping_sub(memory(&packet));
        self.qlen -= 1;
        if self.heap_kept != 0 {
            self.longest.shrank(queue);
        }
        Some((packet, adjusted))
    }
    /// Chooses the tin to serve. Whether there is one.
    fn choose_tin(&mut self, now: i64) -> bool {
        if self.pace.ns == 0 {
            // Without a limit the tins take turns by their weights.
            let (mut wrapped, mut empty) = (false, true);
            loop {
                let b = &mut self.tins[self.current];
                let active = b.active() != 0;
                if b.deficit >= 0 && active {
                    return true;
                }
                if b.deficit <= 0 {
                    b.deficit = b.deficit.wrapping_add(b.quantum.into());
                }
                empty &= !active;
                self.current += 1;
                if self.current >= self.tins_used {
                    self.current = 0;
                    if wrapped && empty {
                        return false;
                    }
                    wrapped = true;
                }
            }
        }
        // The last that keeps to its share, else the one that is due first.
        let (mut best, mut best_time) = (0, i64::MAX);
        for (n, b) in self.tins[..self.tins_used].iter().enumerate() {
            let wait = b.time_next.wrapping_sub(now);
            if b.active() > 0 && (wait <= 0 || wait <= best_time) {
                (best, best_time) = (n, wait);
            }
        }
        self.current = best;
        self.tins[best].active() != 0
    }
    /// Chooses the flow to serve in the current tin, and the list it is in.
    fn choose_flow(&mut self, first: &mut bool, cx: &mut Cx<'_>) -> Option<(List, usize)> {
        let mode = self.config.flow_mode;
        let b = &mut self.tins[self.current];
        loop {
            let lists = if std::mem::take(first) {
                [List::Decaying, List::New, List::Old]
            } else {
                [List::New, List::Old, List::Decaying]
            };
            let (list, n) = lists.into_iter().find_map(|list| Some((list, b.first(list)?)))?;
            if b.flows[n].deficit > 0 {
                return Some((list, n));
            }
            // What has used up its quantum is sparse no longer.
            if b.flows[n].set == Set::Sparse {
                if b.flows[n].chain.is_empty() {
                    b.flows[n].set = Set::SparseWait;
                } else {
                    b.sparse_flows = b.sparse_flows.wrapping_sub(1);
                    b.bulk_flows = b.bulk_flows.wrapping_add(1);
                    b.count_hosts(n, mode);
                    b.flows[n].set = Set::Bulk;
                }
            }
            let quantum = b.flow_quantum(n, mode, cx.rng);
            b.flows[n].deficit = b.flows[n].deficit.wrapping_add(quantum);
            b.leave(list, n);
            b.join(List::Old, n);
        }
    }
    /// A flow's turn has come, and it has nothing: it decays, or leaves.
    fn found_empty(&mut self, list: List, n: usize, now: i64) {
        let mode = self.config.flow_mode;
        let b = &mut self.tins[self.current];
        let vars = &mut b.flows[n].vars;
        if vars.queue_empty(&b.share.cobalt, now) {
            b.unresponsive_flows = b.unresponsive_flows.wrapping_sub(1);
        }
        let decays = vars.p_drop != 0 || vars.count != 0 || now < vars.drop_next;
        b.leave(list, n);
        let set = std::mem::replace(&mut b.flows[n].set, if decays { Set::Decaying } else { Set::None });
        match set {
            Set::Sparse | Set::SparseWait => b.sparse_flows = b.sparse_flows.wrapping_sub(1),
            Set::Bulk => {
                b.bulk_flows = b.bulk_flows.wrapping_sub(1);
                b.discount_hosts(n, mode);
            }
            Set::Decaying | Set::None => {}
        }
        let was_decaying = matches!(set, Set::Decaying | Set::None);
        if decays {
            b.join(List::Decaying, n);
            b.decaying_flows = b.decaying_flows.wrapping_add(u16::from(!was_decaying));
        } else {
            b.decaying_flows = b.decaying_flows.wrapping_sub(u16::from(was_decaying));
        }
    }
    /// `cake_dequeue`.
    pub(super) fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let now = clock(cx.now);
        let ingress = self.config.ingress;
        if self.pace.ns != 0
            && let Some(active) = self.seat.as_mut().and_then(|seat| seat.look(now))
        {
            //= linux v7.2 net/sched/sch_cake.c cake_dequeue: the part of the rate that is a queue's.
            self.set_part(self.config.rate() / u64::from(active));
        }
        let mut first = true;
        let (n, packet, adjusted) = 'tin: loop {
            if self.qlen == 0 {
                return None;
            }
            if self.time_next > now && self.failsafe_next > now {
                self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
                self.wait(now);
                return None;
            }
            if !self.choose_tin(now) {
                return None;
            }
            'flow: loop {
                let Some((list, n)) = self.choose_flow(&mut first, cx) else { continue 'tin };
                loop {
                    let Some((mut packet, adjusted)) = self.dequeue_one(n) else {
                        self.found_empty(list, n, now);
                        continue 'tin;
                    };
                    let b = &mut self.tins[self.current];
                    let bulk = if ingress { b.bulk_flows.into() } else { 0 };
                    let (flow, came) = (&mut b.flows[n], clock(packet.queued));
                    let cobalt = &b.share.cobalt;
                    // The last of a queue is marked, but not dropped.
                    if !flow.vars.should_drop(&mut packet, came, cobalt, bulk, now, cx.rng)
                        || flow.chain.is_empty()
                    {
                        break 'tin (n, packet, adjusted);
                    }
                    flow.dropped = flow.dropped.wrapping_add(1);
                    b.dropped = b.dropped.wrapping_add(1);
                    self.stats.drops = self.stats.drops.wrapping_add(1);
                    cx.drops.drop(packet, DropReason::Early);
                    if ingress {
                        self.charge(self.current, adjusted, now, true);
                        self.spend(n, adjusted);
                        continue 'flow;
                    }
                }
            }
        };
        self.deliver(n, packet, adjusted, now)
    }
    /// A flow and its tin have used so much.
    fn spend(&mut self, n: usize, adjusted: u32) {
        let b = &mut self.tins[self.current];
        b.flows[n].deficit = b.flows[n].deficit.wrapping_sub(adjusted as i32);
        b.deficit = b.deficit.wrapping_sub(adjusted as i32);
    }
    /// A packet leaves: counts it, and sets the watchdog for the next.
    #[inline]
    fn deliver(&mut self, n: usize, packet: Packet, adjusted: u32, now: i64) -> Option<Packet> {
        let b = &mut self.tins[self.current];
        b.ecn_mark = b.ecn_mark.wrapping_add(b.flows[n].vars.ecn_marked.into());
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        if let Some(seat) = &self.seat {
            seat.sends(now);
        }
        let delay = now.wrapping_sub(clock(packet.queued)) as u64;
        b.average = ewma(b.average, delay, 8);
        b.peak = ewma(b.peak, delay, if delay > b.peak { 2 } else { 8 });
        b.base = ewma(b.base, delay, if delay < b.base { 2 } else { 8 });
        self.charge(self.current, adjusted, now, false);
        self.spend(n, adjusted);
        if self.time_next > now && self.qlen > 0 {
            self.wait(now);
        } else if self.qlen == 0
            && let Some(b) = self.tins[..self.tins_used].iter().find(|b| b.decaying_flows != 0)
        {
            self.watchdog = Some(moment(now.wrapping_add(b.share.cobalt.target as i64)));
        }
        self.heap_kept = self.heap_kept.saturating_sub(1);
        Some(packet)
    }
}
