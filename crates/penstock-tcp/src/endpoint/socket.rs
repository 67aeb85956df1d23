//! What the program and the host call: write, read, close.
//!
//! Follows: linux v6.12 net/ipv4/tcp.c `tcp_sendmsg_locked`, `tcp_push`, `tcp_recvmsg`, `tcp_close`; v2.6.35 likewise.
//! Differs: the calls of `tcp_push_one` and `forced_push` in the midst of a long write go when the write has returned; whether they
//! would have emptied the queue before the call waits is told from both windows.

use super::Endpoint;
use super::chrono::Chrono;
use crate::info::{Error, State};
use penstock_model::Time;

/// `tcp_min_snd_mss`, bytes.
const LEAST_MSS: u32 = 48;

impl Endpoint {
    // ---- The application ----

    /// Hands `bytes` to the socket; answers how many the send buffer took (0 before the connection is open, after
    /// [`close`](Endpoint::close), and on an error).
    //= linux v6.12 net/ipv4/tcp.c tcp_sendmsg_locked
    pub fn write(&mut self, bytes: u64, now: Time) -> u64 {
        self.touch(now);
        if !self.takes_data() {
            return 0;
        }
        if let Some(o) = &mut self.one_way {
            return o.write(bytes, now);
        }
        if self.tx.p.today {
            return self.sendmsg(bytes);
        }
        self.sendmsg_2_6_35(bytes)
    }

    /// A call to write, or what a call that waited for room goes on with.
    //= linux v6.12 net/ipv4/tcp.c tcp_sendmsg_locked
    fn sendmsg(&mut self, bytes: u64) -> u64 {
        let waited = self.tx.unsent.resume();
        if waited == 0 {
            self.check_app_limited();
        }
        let goal = u64::from(self.current_mss());
        self.push.ones = self.tx.unsent.is_empty();
        let (mut took, mut pushed) = (0, false);
        let (size, overhead) = (u64::from(self.tx.unsent.size()), u64::from(self.tx.p.skb_overhead));
        let mut room = goal.saturating_sub(self.tx.unsent.tail_len(self.tx.space.nxt()));
        let mut wmem = self.tx.wmem();
        while took < bytes {
            if room == 0 || self.tx.unsent.is_empty() {
                if wmem >= size {
                    self.tx.unsent.waited(true);
                    break;
                }
                // Once a full segment has gone (tcp_push_one) the connection is idle no more.
                if self.tx.unsent.is_empty() || !self.tx.next_fits(self.current_mss()) {
                    self.tx.idle_check();
                }
                if self.tx.unsent.is_empty() {
                    self.chrono_start(Chrono::Busy);
                }
                self.tx.unsent.entail(self.tx.space.written());
                wmem += overhead;
                room = goal;
            }
            let n = room.min(bytes - took);
            self.tx.space.wrote(n);
            let tail = self.tx.unsent.tail_mut().expect("there is one");
            tail.end += n;
            // Only a new call takes the mark off; one that has waited fills up what it has marked.
            tail.psh &= waited + took > 0;
            took += n;
            wmem += n;
            room -= n;
            if room == 0 && took < bytes {
                // forced_push, or tcp_push_one of what is the first to go.
                let forced = self.tx.space.push_is_due();
                if forced {
                    self.mark_tail();
                    self.push.pushes.push_back(self.tx.space.written());
                }
                pushed |= forced || self.tx.unsent.len() == 1;
            }
        }
        if took == bytes {
            self.mark_tail();
            let short = self.tx.unsent.tail_len(self.tx.space.nxt()) < goal;
            // Where nothing has been pushed on the way, a call that ends in a short buffer does not push either.
            if !short || pushed || !self.autocorks() {
                self.tx.todo.push = true;
                // Otherwise it has been looked at once, before anything went.
                self.push.corking = short && pushed;
            }
        } else if waited + took > 0 {
            self.tx.unsent.suspend(waited + took);
            // Full segments that may go have gone one by one (tcp_push_one), and then nothing is left to be marked.
            if !self.tx.all_may_go() {
                self.mark_tail();
            }
            self.tx.todo.push = true;
            self.tx.todo.push_all = true;
        }
        took
    }

    //= linux v6.12 net/ipv4/tcp.c tcp_mark_push
    pub(super) fn mark_tail(&mut self) {
        if let Some(tail) = self.tx.unsent.tail_mut() {
            tail.psh = true;
            self.tx.space.pushed_all();
        }
    }

    //= linux v2.6.35 net/ipv4/tcp.c tcp_sendmsg
    fn sendmsg_2_6_35(&mut self, bytes: u64) -> u64 {
        let goal = u64::from(self.current_mss());
        let tx = &mut self.tx;
        let mut room = tx.unsent.skb_room();
        if tx.space.nxt() >= tx.space.written() {
            room = 0;
            tx.idle_check();
        }
        let mut took = 0;
        if room > 0 {
            tx.space.unmark_push();
        }
        while took < bytes {
            if room == 0 {
                if tx.wmem_full() {
                    tx.unsent.waited(true);
                    break;
                }
                room = match tx.p.skb_overhead {
                    0 => u64::from(tx.unsent.size()) - tx.wmem(),
                    _ => goal,
                };
            }
            let n = room.min(bytes - took);
            room -= n;
            tx.space.wrote(n);
            took += n;
            if room == 0 && tx.space.push_is_due() {
                tx.space.mark_push();
            }
        }
        tx.unsent.set_skb_room(room);
        if took > 0 {
            tx.space.mark_push();
            tx.todo.push = true;
        }
        took
    }

    /// Whether the program may write at all.
    pub(super) fn takes_data(&self) -> bool {
        !self.tx.space.is_closed()
            && (matches!(self.state, State::Established | State::CloseWait)
                || self.state == State::SynReceived && self.is_fast_child())
    }

    /// The program has let the connection run dry: samples of its rate say little until what comes now is delivered.
    //= linux v6.12 net/ipv4/tcp_rate.c tcp_rate_check_app_limited
    pub(super) fn check_app_limited(&mut self) {
        if self.tx.space.unsent() < u64::from(self.tx.space.mss())
            && self.tx.host.held() == 0
            && !self.tx.is_full()
            && !self.tx.q.awaits_retransmission()
        {
            self.tx.cc.run_dry(self.tx.q.in_flight());
        }
    }

    /// Takes up to `max` bytes that arrived in order; answers how many.
    pub fn read(&mut self, max: u64, now: Time) -> u64 {
        // 7.2 looks at no clock for this, but for an ACK that goes.
        let (last, newest) = (self.mstamp_us, self.tx.p.newest);
        self.touch(now);
        if let Some(o) = &mut self.one_way {
            return o.read(max);
        }
        let n = self.rx.readable().min(max);
        let at = if newest { last } else { self.rx.ticks(&self.tx.clock) };
        if n > 0 && self.rx.read(n, at) {
            self.ack_at_once();
        } else if newest {
            self.mstamp_us = last;
        }
        n
    }

    /// Whether a segment is answered before the process that it wakes has run: so in 6.12; a waiting reader of 2.6.35 takes
    /// segments itself first (`tcp_prequeue`).
    pub fn answers_first(&self) -> bool {
        self.stack.is_linux_6_12()
    }

    /// Bytes that wait to be read.
    #[inline]
    pub fn readable(&self) -> u64 {
        if let Some(o) = &self.one_way {
            return o.readable();
        }
        self.rx.readable()
    }

    /// Whether the peer has closed its side and everything it sent was read.
    pub fn at_eof(&self) -> bool {
        if let Some(o) = &self.one_way {
            return o.at_eof();
        }
        self.rx.fin_received() && self.rx.readable() == 0
    }

    /// Whether a writer that waits goes on: a third of the buffer is free, or data have come just now, which wakes all that wait on
    /// the socket (`woken_wake_function` asks for no reason), and there is any room.
    //= linux v6.12 include/net/sock.h __sk_stream_is_writeable, net/core/stream.c sk_stream_wait_memory
    pub fn writable(&self) -> bool {
        if !self.takes_data() {
            return false;
        }
        if let Some(o) = &self.one_way {
            return o.writable();
        }
        let woken = self.data_ready == Some(self.tx.clock.now) && !self.tx.wmem_full();
        if self.calls.is_some() {
            return woken || self.call_writable();
        }
        woken || self.tx.write_space()
    }

    /// Closes our side: FIN after what was written. Reading goes on (`shutdown(SHUT_WR)`).
    pub fn close(&mut self, now: Time) {
        self.touch(now);
        if self.tx.space.is_closed() {
            return;
        }
        match self.state {
            State::SynSent => return self.done(None),
            State::Established => self.state = State::FinWait1,
            // The FIN goes once the connection is open.
            State::SynReceived => {}
            State::CloseWait => self.state = State::LastAck,
            _ => return,
        }
        self.tx.space.close();
        if let Some(o) = &mut self.one_way {
            return o.close(now);
        }
        //= linux v6.12 net/ipv4/tcp_output.c tcp_send_fin: where nothing waits that it could go with
        if self.tx.unsent.is_empty() {
            self.chrono_start(Chrono::Busy);
        }
        self.tx.todo.push = true;
        self.tx.todo.push_all = true;
    }

    /// Ends the connection at once, with an RST where one is due (`SO_LINGER` of 0).
    pub fn abort(&mut self, now: Time) {
        self.touch(now);
        let reset = !matches!(self.state, State::SynSent | State::TimeWait | State::Closed);
        self.done(None);
        self.tx.todo.reset = reset;
    }

    /// The host knows that the peer cannot be reached (no route, ARP failed, an ICMP error). Only a connection that is
    /// being opened minds.
    pub fn unreachable(&mut self, now: Time) {
        self.refused_by(now, Error::Unreachable);
    }

    /// The same with another error: [`Error::Refused`] where ICMP says that the port cannot be reached.
    //= linux v6.12 net/ipv4/tcp_ipv4.c tcp_v4_err
    pub fn refused_by(&mut self, now: Time, error: Error) {
        self.touch(now);
        if self.state == State::SynSent {
            self.done(Some(error));
        }
    }

    /// The way takes shorter packets from now on: `mss` is the new MTU without the headers of IP and TCP, bytes. Where a router has said so of
    /// a segment of this connection (`told`), what is out and longer counts as lost, goes again in pieces, and the window stays. Whether there is
    /// something to send for it; nothing changes where segments are as short already.
    //= linux v6.12 net/ipv4/tcp_ipv4.c tcp_v4_mtu_reduced; tcp_output.c tcp_sync_mss; tcp_input.c tcp_simple_retransmit
    pub fn mtu_reduced(&mut self, now: Time, mss: u32, told: bool) -> bool {
        if self.state == State::SynSent {
            // What a SYN announces, and what is agreed on, is no more than that (dst_metric_advmss).
            self.cfg.mss = self.cfg.mss.min(mss.clamp(88, 65_535) as u16);
            return false;
        }
        self.touch(now);
        self.set_path_mss(mss);
        let options = if self.tx.stamps.ok() { 12 } else { 0 };
        let mss = mss.min(u32::from(self.mss)).max(LEAST_MSS).saturating_sub(options).max(1);
        if mss >= self.tx.space.mss() {
            return false;
        }
        self.tx.space.set_mss(mss);
        self.push.mss = 0;
        if !told || self.state == State::SynReceived {
            return false;
        }
        for i in 0..self.tx.q.packets_out() as usize {
            if self.tx.q.at(i).payload() > mss {
                self.tx.q.mark_lost(i);
            }
        }
        if self.tx.q.lost_out() > 0 {
            self.recovery.lost_without_congestion(&mut self.tx);
            self.tx.todo.rexmit = true;
        }
        true
    }

    /// Turns Nagle's algorithm off or on (`TCP_NODELAY`).
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.cfg.nodelay = nodelay;
        self.tx.todo.push = true;
    }
}
