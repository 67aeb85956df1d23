//! Sending again: lost segments, tail loss probes, probes of a closed window.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_xmit_retransmit_queue`, `__tcp_retransmit_skb`, `tcp_send_loss_probe`,
//! `tcp_write_wakeup`; v2.6.35 likewise.
//! Differs: in the older profiles a retransmission keeps its length where the SACK option would shrink it and then goes
//! without that option.

use crate::endpoint::{Endpoint, Transmit};
use crate::rtx;
use crate::timers::Pending;
use penstock_packet::TcpFlags;

impl Endpoint {
    /// What an acknowledgement lets go again leaves before the data that came with it are taken in.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_xmit_recovery
    pub(crate) fn recover_before_data(&mut self) {
        if self.p.today && (self.todo.rexmit || self.todo.frto_new) {
            while let Some(t) = self.transmit_recovery() {
                self.outbox.push_back(t);
            }
            self.pushing_mss = 0;
        }
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_xmit_retransmit_queue
    pub(crate) fn transmit_recovery(&mut self) -> Option<Transmit> {
        if std::mem::take(&mut self.todo.rexmit_front) && self.q.packets_out() > 0 {
            return Some(self.retransmit(0));
        }
        if self.todo.frto_new {
            // F-RTO: new data shows whether the timeout was spurious.
            if let Some(t) = self.transmit_new() {
                return Some(t);
            }
            self.todo.frto_new = false;
            if self.snd_nxt <= self.high_seq {
                self.frto = false;
                self.todo.rexmit = true;
            }
        }
        if !self.todo.rexmit {
            return None;
        }
        if self.q.in_flight() < self.w.cwnd
            && !self.pacing_holds()
            && !self.small_queue_full(1)
            && let Some(i) = self.q.next_lost()
            && self.may_retransmit(i)
        {
            if self.in_cwnd_reduction() {
                self.prr_out += 1;
            }
            if i == 0 && self.timers.pending != Some(Pending::Reorder) {
                self.set_xmit_timer(Pending::Retrans, self.rto);
            }
            return Some(self.retransmit(i));
        }
        if self.may_retransmit_forward()
            && let Some(i) = self.q.next_forward()
            && self.may_retransmit(i)
        {
            if i == 0 {
                self.set_xmit_timer(Pending::Retrans, self.rto);
            }
            return Some(self.retransmit(i));
        }
        self.todo.rexmit = false;
        None
    }

    /// A segment beyond a window that shrank waits, unless it is the first.
    fn may_retransmit(&self, index: usize) -> bool {
        let seg = self.q.at(index);
        if seg.seq >= self.wnd_end() && seg.seq > self.snd_una {
            return false;
        }
        // What waits in the host's own queue is not sent again on top (sk_wmem_alloc against sk_wmem_queued).
        let queued = self.wmem();
        !self.cfg.device_accounting || self.in_device <= (queued + (queued >> 2)).min(u64::from(self.sndbuf))
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_retransmit_skb
    fn retransmit(&mut self, index: usize) -> Transmit {
        let t = self.send_again(index);
        if self.q.retrans_out == 0 {
            self.lost_retrans_low = self.snd_nxt;
        }
        self.q.tag_retrans(index);
        if self.retrans_stamp.is_none() {
            self.retrans_stamp = Some(self.clock.tsval());
            self.retrans_stamp_us = self.clock.us;
        }
        self.undo_retrans = self.undo_retrans.max(0) + 1;
        t
    }

    //= linux v6.12 net/ipv4/tcp_output.c __tcp_retransmit_skb
    fn send_again(&mut self, index: usize) -> Transmit {
        if self.p.today {
            self.resize_for_retransmission(index);
        }
        let seg = *self.q.at(index);
        let fin = seg.has(rtx::FIN);
        let len = seg.payload();
        let mut flags = TcpFlags::ACK;
        if fin {
            flags = flags.with(TcpFlags::FIN);
        }
        if seg.has(rtx::PSH) {
            flags = flags.with(TcpFlags::PSH);
        }
        self.n.total_retrans += 1;
        self.n.bytes_retrans += u64::from(len);
        let mut t = self.segment(seg.seq, len, flags);
        self.data_sent(len, true);
        t.retransmission = true;
        self.q.retransmitted(index, self.departs_us(), self.n.delivered, self.snd_nxt);
        self.stamp_rate(index);
        self.n.data_segs_out += u64::from(len > 0);
        self.paced(len);
        t
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_send_loss_probe
    pub(crate) fn transmit_loss_probe(&mut self) -> Option<Transmit> {
        let new = std::mem::take(&mut self.todo.probe_new);
        let last = std::mem::take(&mut self.todo.probe_last);
        let t = if new && self.has_unsent() && self.next_fits() {
            let Some(t) = self.write_xmit(true) else {
                self.rearm_rto();
                return None;
            };
            let limited = self.q.in_flight() >= self.w.cwnd;
            self.sent_pkts = 0;
            self.cwnd_validate(limited);
            if self.in_cwnd_reduction() {
                self.prr_out += 1;
            }
            t
        } else if last && self.q.packets_out() > 0 {
            self.tlp_retrans = true;
            self.send_again(self.q.packets_out() as usize - 1)
        } else {
            return None;
        };
        self.loss_probe_sent();
        Some(t)
    }

    /// A probe of a closed window: data where the window has room for some, else an old sequence number.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_write_wakeup
    pub(crate) fn transmit_probe0(&mut self) -> Transmit {
        let room = self.wnd_end().saturating_sub(self.snd_nxt);
        let (len, fin) = self.next_segment();
        let t = if room > 0 && (len > 0 || fin) {
            let cut = room.min(u64::from(len)) as u32;
            let fits = u64::from(len) + u64::from(fin) <= room;
            if self.p.today {
                // The rest is marked too where it is cut.
                self.pushed_seq = self.pushed_seq.max(self.sendq.head().map_or(0, |b| b.end));
                self.sendq.push_head();
                self.sendq.cut(self.snd_nxt, cut);
                self.sendq.push_head();
            }
            let mut t = self.send_new(cut, fin && fits);
            t.tcp.flags = t.tcp.flags.with(TcpFlags::PSH);
            self.sent_pkts = 0;
            t
        } else {
            self.segment(self.snd_una - 1, 0, TcpFlags::ACK)
        };
        self.probe0_sent();
        t
    }
}
