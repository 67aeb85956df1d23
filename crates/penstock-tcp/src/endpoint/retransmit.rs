//! Sending again: lost segments, tail loss probes, probes of a closed window.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_xmit_retransmit_queue`, `__tcp_retransmit_skb`, `tcp_send_loss_probe`,
//! `tcp_write_wakeup`; v2.6.35 likewise.
//! Differs: in the older profiles a retransmission keeps its length where the SACK option would shrink it and then goes
//! without that option.

use super::Endpoint;
use super::attempt::{Trial, Why};
use crate::info::State;
use crate::mib::Tx;
use crate::segment::Transmit;
use crate::sender::rtx;
use penstock_packet::TcpFlags;

impl Endpoint {
    /// What an acknowledgement lets go again leaves before the data that came with it are taken in: the first is made now, and those behind
    /// it bear its header.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_xmit_recovery
    pub(super) fn recover_before_data(&mut self) {
        if self.tx.p.today && (self.tx.todo.rexmit || self.tx.todo.frto_new) {
            let first = self.transmit_recovery();
            let trial = std::mem::take(&mut self.trial);
            self.frozen = first.is_some();
            if let Some(t) = first {
                let aside = self.aside.get_or_insert_default();
                (aside.header, aside.first) = (t.tcp, Some((t, trial)));
            }
            self.push.mss = 0;
        }
    }

    /// The next segment of those.
    #[cold]
    pub(super) fn transmit_before_data(&mut self) -> Option<Transmit> {
        if let Some((t, trial)) = self.aside.as_mut().and_then(|a| a.first.take()) {
            self.trial = trial;
            return Some(t);
        }
        let t = self.transmit_recovery();
        if t.is_none() {
            self.frozen = false;
            self.push.mss = 0;
        }
        t
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_xmit_retransmit_queue
    pub(super) fn transmit_recovery(&mut self) -> Option<Transmit> {
        if std::mem::take(&mut self.tx.todo.rexmit_front) && self.tx.q.packets_out() > 0 {
            let why = Why::Timeout { shrunk: std::mem::take(&mut self.shrunk) };
            if let Some(t) = self.retransmit(0, why) {
                return Some(t);
            }
            self.tx.back_off(self.state == State::SynSent);
        }
        if self.tx.todo.frto_new {
            // F-RTO: new data shows whether the timeout was spurious.
            if let Some(t) = self.transmit_new() {
                return Some(t);
            }
            self.tx.todo.frto_new = false;
            self.recovery.frto_over(&mut self.tx);
        }
        if !self.tx.todo.rexmit {
            return None;
        }
        if !self.tx.is_full()
            && !self.tx.pacing_holds()
            && let Some(i) = self.tx.q.next_lost()
            && !self.tx.small_queue_full(self.buffer_at(i), 1)
            && self.may_retransmit(i)
            && let Some(t) = self.retransmit(i, Why::Window)
        {
            return Some(t);
        }
        if !self.tx.p.today
            && self.recovery.may_retransmit_forward(&self.tx, self.current_mss())
            && let Some(i) = self.tx.q.next_forward()
            && self.may_retransmit(i)
            && let Some(t) = self.retransmit(i, Why::Window)
        {
            return Some(t);
        }
        self.tx.todo.rexmit = false;
        None
    }

    /// A segment beyond a window that shrank waits, unless it is the first.
    fn may_retransmit(&self, index: usize) -> bool {
        let seg = self.tx.q.at(index);
        if seg.seq >= self.tx.space.wnd_end() && seg.seq > self.tx.space.una() {
            return false;
        }
        if self.tx.p.today || !self.tx.host.is_accounted() {
            return true;
        }
        // What waits in the host's own queue is not retransmitted on top (sk_wmem_alloc against sk_wmem_queued).
        //= linux v2.6.35 net/ipv4/tcp_output.c tcp_retransmit_skb
        let queued = self.tx.wmem();
        self.tx.host.held() <= (queued + (queued >> 2)).min(u64::from(self.tx.unsent.size()))
    }

    /// `None`: it is still in the host's own queue.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_retransmit_skb
    fn retransmit(&mut self, index: usize, why: Why) -> Option<Transmit> {
        if self.tx.still_in_host_queue(index) {
            self.recovery.note_retransmission(&self.tx.clock, self.tx.q.at(index).sent_us);
            return None;
        }
        let count = self.rexmit_count(index, why != Why::Window);
        let t = self.send_again(index, count, why);
        if self.tx.p.today {
            self.recovery.note_retransmission(&self.tx.clock, self.tx.departs_us());
        }
        Some(t)
    }

    //= linux v6.12 net/ipv4/tcp_output.c __tcp_retransmit_skb
    fn send_again(&mut self, index: usize, count: usize, why: Why) -> Transmit {
        if self.tx.p.today && count == 1 {
            self.tx.q.resize(index, self.current_mss(), self.tx.space.wnd_end());
        }
        let first = self.tx.q.at(index).seq;
        let seg = *self.tx.q.at(index + count - 1);
        let fin = seg.has(rtx::FIN);
        let len = (seg.end - first) as u32 - u32::from(fin);
        let mut flags = TcpFlags::ACK;
        if fin {
            flags = flags.with(TcpFlags::FIN);
        }
        if seg.has(rtx::PSH) || count > 1 || self.ends_run(seg.end) {
            flags = flags.with(TcpFlags::PSH);
        }
        let segments = count as u64;
        self.tx.n.total_retrans += segments;
        self.tx.n.bytes_retrans += u64::from(len);
        let mut t = self.segment(first, len, flags);
        self.data_sent(len, true);
        t.retransmission = true;
        if count > 1 {
            t.gso_size = self.tx.q.at(index).payload();
            self.tx.n.segs_out += segments - 1;
        }
        self.tx.n.data_segs_out += if len > 0 { segments } else { 0 };
        // Whatever becomes of it: its time is that of this try, and no round trip is measured by it.
        for index in index..index + count {
            self.tx.q.tried_again(index, self.tx.departs_us());
        }
        self.trial = Trial::Again { index: index as u32, count: count as u32, why };
        t
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_send_loss_probe
    pub(super) fn transmit_loss_probe(&mut self) -> Option<Transmit> {
        let new = std::mem::take(&mut self.tx.todo.probe_new);
        let last = std::mem::take(&mut self.tx.todo.probe_last);
        if new && self.tx.space.has_unsent() && self.tx.next_fits(self.current_mss()) {
            let t = self.write_xmit(true);
            if t.is_none() {
                self.tx.rearm_rto();
            }
            return t;
        }
        let index = (self.tx.q.packets_out() as usize).checked_sub(1).filter(|_| last)?;
        if self.tx.still_in_host_queue(index) {
            self.tx.rearm_rto();
            return None;
        }
        let count = self.rexmit_count(index, true);
        Some(self.send_again(index, count, Why::LossProbe))
    }

    /// A probe of a closed window: data where the window has room for some, else an old sequence number.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_write_wakeup
    pub(super) fn transmit_probe0(&mut self) -> Transmit {
        let room = self.tx.space.wnd_end().saturating_sub(self.tx.space.nxt());
        let (len, fin) = self.tx.next_segment(self.current_mss());
        if room > 0 && (len > 0 || fin) {
            let cut = room.min(u64::from(len)) as u32;
            let fits = u64::from(len) + u64::from(fin) <= room;
            if self.tx.p.today {
                // The rest is marked too where it is cut.
                self.tx.space.pushed_to(self.tx.unsent.head().map_or(0, |b| b.end));
                self.tx.unsent.push_head();
                self.tx.unsent.cut(self.tx.space.nxt(), cut);
                self.tx.unsent.push_head();
            }
            let mut t = self.send_new(cut, fin && fits, Why::WindowProbe);
            t.tcp.flags = t.tcp.flags.with(TcpFlags::PSH);
            t
        } else {
            self.trial = Trial::WindowProbe;
            self.tx.mib.one(Tx::WinProbe);
            self.segment(self.tx.space.una() - 1, 0, TcpFlags::ACK)
        }
    }
}
