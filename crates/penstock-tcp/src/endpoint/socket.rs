//! What the program and the host call: write, read, close, and what becomes of segments in this host's own queues.
//!
//! Follows: linux v6.12 net/ipv4/tcp.c `tcp_sendmsg_locked`, `tcp_recvmsg`, `tcp_close`, net/ipv4/tcp_input.c
//! `tcp_check_space`, net/ipv4/tcp_output.c `tcp_tsq_handler`; v2.6.35 likewise.
//! Differs: as `endpoint`.

use crate::config::Buffer;
use crate::endpoint::Endpoint;
use crate::info::{Error, State};
use penstock_model::Time;

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
        if self.p.today {
            return self.sendmsg(bytes);
        }
        if self.snd_nxt >= self.write_seq {
            self.skb_room = 0;
            self.idle_check();
        }
        let goal = u64::from(self.current_mss());
        let mut took = 0;
        if self.skb_room > 0 && self.push_marks.back() == Some(&self.write_seq) {
            // What follows joins the last segment, which then does not end here.
            self.push_marks.pop_back();
        }
        while took < bytes {
            if self.skb_room == 0 {
                if self.wmem() >= u64::from(self.sndbuf) {
                    self.nospace = true;
                    break;
                }
                self.skb_room = goal;
                if self.p.skb_overhead == 0 {
                    self.skb_room = u64::from(self.sndbuf) - self.wmem();
                }
            }
            let n = self.skb_room.min(bytes - took);
            self.skb_room -= n;
            self.write_seq += n;
            took += n;
            if self.skb_room == 0 && self.write_seq > self.pushed_seq + u64::from(self.max_window >> 1) {
                self.mark_push();
            }
        }
        if took > 0 {
            self.mark_push();
            self.todo.push = true;
        }
        took
    }

    /// The program has let the connection run dry: samples of its rate say little until what comes now is delivered.
    //= linux v6.12 net/ipv4/tcp_rate.c tcp_rate_check_app_limited
    pub(crate) fn check_app_limited(&mut self) {
        if self.unsent() < u64::from(self.mss)
            && self.in_device == 0
            && self.q.in_flight() < self.w.cwnd
            && self.q.lost_out <= self.q.retrans_out
        {
            self.w.app_limited = (self.n.delivered + u64::from(self.q.in_flight())).max(1);
        }
    }

    //= linux v6.12 net/ipv4/tcp.c tcp_mark_push, forced_push
    fn mark_push(&mut self) {
        if self.push_marks.back() != Some(&self.write_seq) {
            self.push_marks.push_back(self.write_seq);
        }
        self.pushed_seq = self.write_seq;
    }

    /// Takes up to `max` bytes that arrived in order; answers how many.
    pub fn read(&mut self, max: u64, now: Time) -> u64 {
        self.touch(now);
        if let Some(o) = &mut self.one_way {
            return o.read(max);
        }
        let n = self.rx.readable().min(max);
        if n > 0 && self.rx.read(n, &self.clock) {
            self.rx.now = true;
            self.todo.ack_check = true;
        }
        n
    }

    /// Whether a segment is answered before the process that it wakes has run: so in 6.12; a waiting reader of 2.6.35 takes
    /// segments itself first (`tcp_prequeue`).
    pub fn answers_first(&self) -> bool {
        self.cfg.stack.is_linux_6_12()
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
        let woken = self.data_ready == Some(self.clock.now) && self.wmem() < u64::from(self.sndbuf);
        woken || self.write_space()
    }

    /// Closes our side: FIN after what was written. Reading goes on (`shutdown(SHUT_WR)`).
    pub fn close(&mut self, now: Time) {
        self.touch(now);
        if self.fin_queued {
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
        self.fin_queued = true;
        if let Some(o) = &mut self.one_way {
            return o.close(now);
        }
        self.todo.push = true;
        self.todo.push_all = true;
    }

    /// Ends the connection at once, with an RST where one is due (`SO_LINGER` of 0).
    pub fn abort(&mut self, now: Time) {
        self.touch(now);
        let reset = !matches!(self.state, State::SynSent | State::TimeWait | State::Closed);
        self.done(None);
        self.todo.reset = reset;
    }

    /// The host knows that the peer cannot be reached (no route, ARP failed, an ICMP error). Only a connection that is
    /// being opened minds.
    pub fn unreachable(&mut self, now: Time) {
        self.touch(now);
        if self.state == State::SynSent {
            self.done(Some(Error::Unreachable));
        }
    }

    /// Turns Nagle's algorithm off or on (`TCP_NODELAY`).
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.cfg.nodelay = nodelay;
        self.todo.push = true;
    }

    // ---- The send buffer ----

    /// Bytes of data and overhead charged to the send buffer.
    #[inline]
    pub(crate) fn wmem(&self) -> u64 {
        let bytes = self.write_seq.saturating_sub(self.snd_una);
        match self.p.skb_overhead {
            0 => bytes,
            _ if self.p.today => self.wmem_queued(),
            overhead => bytes + u64::from(overhead) * bytes.div_ceil(u64::from(self.mss)),
        }
    }

    /// Lets an autotuned send buffer follow the window.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_sndbuf_expand; v2.6.35 tcp_new_space
    pub(crate) fn sndbuf_expand(&mut self) {
        let Buffer::Auto(_, max) = self.cfg.sndbuf else { return };
        let mss = u32::from(self.cfg.mss).max(self.mss);
        let (per_mss, segs) = if self.p.today {
            // MAX_TCP_HEADER 320, struct skb_shared_info 320, struct sk_buff 256.
            ((mss + 320 + 320).next_power_of_two() + 256, self.w.cwnd.max(10).max(self.reordering + 1))
        } else {
            (mss + 160 + 16 + 240, self.w.cwnd.max(self.reordering + 1))
        };
        let wanted = u64::from(per_mss) * u64::from(segs) * u64::from(self.cc.sndbuf_windows());
        if u64::from(self.sndbuf) < wanted {
            self.sndbuf = wanted.min(u64::from(max)) as u32;
        }
    }

    /// Whether there is room enough to wake a writer.
    fn write_space(&self) -> bool {
        let (wmem, sndbuf) = (self.wmem(), u64::from(self.sndbuf));
        wmem < sndbuf && (self.p.skb_overhead == 0 || sndbuf - wmem >= wmem >> 1)
    }

    /// Room has come free in the send buffer.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_check_space, tcp_new_space
    #[inline]
    pub(crate) fn check_space(&mut self) {
        if self.nospace {
            let full = if self.p.today { self.q.in_flight() } else { self.q.packets_out() } >= self.w.cwnd;
            if !full && (matches!(self.cfg.sndbuf, Buffer::Auto(..)) || !self.p.today) {
                self.sndbuf_expand();
                self.cwnd_stamp = self.clock.jiffies;
            }
            if self.write_space() {
                self.nospace = false;
            }
        }
    }
}
