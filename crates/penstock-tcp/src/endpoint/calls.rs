//! The socket as system calls see it: writes that push on their way, corks, marks of ends of records, and the times that
//! `getsockopt(TCP_INFO)` tells. Its bursts have a file of their own.
//!
//! Follows: linux v6.12 net/ipv4/tcp.c `tcp_sendmsg_locked`, `tcp_push`.
//! Differs: the rest of a burst that SACK has cut keeps no head of its own in the account of the send buffer.
//!
//! A burst is handed over as one packet ([`Calls::whole`]), or segment by segment as the card sends it, PSH on the last.

mod burst;

use super::Endpoint;
use super::attempt::Why;
use super::chrono::Chrono;
use crate::config::{Buffer, Calls};
use crate::info::CaState;
use crate::segment::Transmit;
use crate::sender::Sender;
use crate::sender::mtup::MtuSearch;
use penstock_model::{Span, Time};

/// `TCP_NAGLE_OFF`.
const OFF: u8 = 1;
/// `TCP_NAGLE_CORK`.
const CORK: u8 = 2;
/// `TCP_NAGLE_PUSH`.
const PUSH: u8 = 4;

/// Flags of one call to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendFlags {
    /// `MSG_MORE`: more follows, a short segment may wait.
    pub more: bool,
    /// `MSG_EOR`: what is written later stands in segments of its own.
    pub eor: bool,
}

/// What a call to write has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Bytes taken.
    pub bytes: u64,
    /// The call has pushed on its way: take what is to be sent, then call again with the rest.
    pub goes_on: bool,
}

/// What such a socket keeps beside.
#[derive(Debug)]
pub(super) struct CallState {
    // Parameters
    cfg: Calls,
    cork: bool,
    /// `TCP_NAGLE_PUSH` stays until the next buffer is made.
    push: bool,
    /// `TCP_USER_TIMEOUT`.
    pub user_timeout: Option<Span>,
    // Variables
    /// How the push under way treats small segments; `None`: as the socket is set.
    nonagle: Option<u8>,
    /// It sends one buffer alone (`tcp_push_one`).
    one: bool,
    one_sent: bool,
    /// It has asked for a probe of the path's MTU.
    searched: bool,
    /// A buffer is being handed over, segment by segment.
    burst: bool,
    /// The segment that is handed over next is not the first of its buffer.
    pub joins: bool,
    /// Sending has been put off for a larger burst, the congestion window being small.
    deferred: bool,
    /// Where a run of retransmissions out of one buffer ends.
    rexmit_end: u64,
    /// It is of several segments.
    rexmit_several: bool,
    /// When something was handed over last (`tcp_wstamp_ns`).
    wstamp: Time,
    /// Segments of a full buffer (`gso_segs`).
    gso_segs: u32,
    /// When data came last, when an ACK came last, when data went last, when an ACK went last.
    last: [Time; 4],
    /// The first probe that is not answered went then, jiffies.
    pub probes_since: Option<u64>,
}

impl CallState {
    pub fn new(cfg: Calls, now: Time) -> CallState {
        CallState {
            cfg,
            cork: false,
            push: false,
            user_timeout: None,
            nonagle: None,
            one: false,
            one_sent: false,
            searched: false,
            burst: false,
            joins: false,
            deferred: false,
            rexmit_end: 0,
            rexmit_several: false,
            wstamp: Time::ZERO,
            gso_segs: 0,
            last: [now; 4],
            probes_since: None,
        }
    }
    /// The push under way is over; answers whether sending was put off for want of window.
    pub fn push_done(&mut self) -> bool {
        (self.nonagle, self.one, self.one_sent, self.burst, self.joins) = (None, false, false, false, false);
        self.searched = false;
        std::mem::take(&mut self.deferred)
    }
}

/// What is told of times, beside [`TcpInfo`](crate::TcpInfo); names and units of `struct tcp_info`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallInfo {
    /// Time with data to send.
    pub busy_time: Span,
    /// Of this, time that the receiver's window held sending back.
    pub rwnd_limited: Span,
    /// And time that the send buffer did.
    pub sndbuf_limited: Span,
    /// Since data came last.
    pub last_data_recv: Span,
    /// Since an acknowledgement came last.
    pub last_ack_recv: Span,
    /// Since data went last.
    pub last_data_sent: Span,
    /// Probes of a closed window that are not answered.
    pub probes: u32,
    /// Timeouts since progress was made last.
    pub retransmits: u32,
    /// The segment size we announce.
    pub advmss: u32,
    /// How often reordering was seen.
    pub reord_seen: u32,
}

impl Endpoint {
    // ---- Options ----

    /// `TCP_CORK`: short segments wait until it is taken off again, or for 200 ms.
    //= linux v6.12 net/ipv4/tcp.c __tcp_sock_set_cork
    pub fn set_cork(&mut self, on: bool, now: Time) {
        self.touch(now);
        let nodelay = self.cfg.nodelay;
        if let Some(c) = &mut self.calls {
            c.cork = on;
            if !on {
                c.push |= nodelay;
                self.tx.todo.push = true;
            }
        }
    }
    /// `TCP_NODELAY` of a socket that is driven call by call.
    //= linux v6.12 net/ipv4/tcp.c __tcp_sock_set_nodelay
    pub fn call_nodelay(&mut self, on: bool, now: Time) {
        self.touch(now);
        self.cfg.nodelay = on;
        if let Some(c) = &mut self.calls
            && on
        {
            c.push = true;
            self.tx.todo.push = true;
        }
    }
    /// `SO_SNDBUF` on an open socket, bytes as [`Config::set_sndbuf`](crate::Config::set_sndbuf) makes them.
    pub fn set_sndbuf(&mut self, bytes: u32, now: Time) {
        self.touch(now);
        self.cfg.set_sndbuf(bytes);
        if let Buffer::Fixed(size) = self.cfg.sndbuf {
            self.tx.unsent.fix(size);
        }
    }
    /// `TCP_NOTSENT_LOWAT`, bytes: a writer waits while so much is written and not sent.
    pub fn set_notsent_lowat(&mut self, bytes: u32) {
        if let Some(c) = &mut self.calls {
            c.cfg.notsent_lowat = bytes;
        }
    }
    /// `TCP_USER_TIMEOUT`: the connection ends when nothing was acknowledged for so long; `None`: as `tcp_retries2` says.
    pub fn set_user_timeout(&mut self, timeout: Option<Span>) {
        if let Some(c) = &mut self.calls {
            c.user_timeout = timeout;
        }
    }
    /// What is told of times; `None` where the socket is not driven call by call.
    //= linux v6.12 net/ipv4/tcp.c tcp_get_info, tcp_get_info_chrono_stats
    pub fn call_info(&self, now: Time) -> Option<CallInfo> {
        let c = self.calls.as_deref()?;
        let jiffies =
            |time: Time| (time.as_ns().max(0) as u64 * u64::from(self.tx.clock.hz())) / 1_000_000_000;
        let [busy, rwnd, sndbuf] = self.chrono.up_to(jiffies(now)).map(|j| self.tx.clock.jiffies_to_span(j));
        Some(CallInfo {
            busy_time: busy,
            rwnd_limited: rwnd,
            sndbuf_limited: sndbuf,
            last_data_recv: now - c.last[0],
            last_ack_recv: now - c.last[1],
            last_data_sent: now - c.last[2],
            probes: self.tx.timers.probes_out(),
            retransmits: self.tx.timers.retransmits(),
            advmss: self.cfg.announced().into(),
            reord_seen: self.recovery.reord_seen(),
        })
    }

    /// Whether a segment brings data that did not come yet.
    pub fn is_new(&self, start: u32, len: u32) -> bool {
        crate::seq::unwrap(start, self.rx.next()) + u64::from(len) > self.rx.next()
    }

    /// Whether a writer waits for room.
    pub fn waits_for_room(&self) -> bool {
        self.tx.unsent.is_waited_for()
    }
    /// Whether the peer's FIN has come.
    pub fn fin_came(&self) -> bool {
        self.rx.fin_received()
    }

    /// The route lets segments of this size through from now on (its MTU without headers).
    pub fn set_path_mss(&mut self, mss: u32) {
        if let Some(search) = &mut self.tx.mtu_search {
            search.set_path(mss);
        }
    }
    /// The connection is open: the search for the path's MTU begins.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_mtup_init
    pub(super) fn begin_search(&mut self) {
        let options = if self.tx.stamps.ok() { 12 } else { 0 };
        if let Some(c) = &self.calls
            && let Some(base) = c.cfg.mtu_probing
        {
            let (clamp, path) = (u32::from(self.mss), u32::from(self.cfg.mss));
            let search = MtuSearch::new(base, clamp, path, c.cfg.headers, options, &self.tx.clock);
            self.tx.mtu_search = Some(Box::new(search));
        }
    }
    /// Sends a probe of the path's MTU, if one is due: `None` if not, `Some(None)` where what would be sent waits for the room of one.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_mtu_probe
    fn mtu_probe(&mut self) -> Option<Option<Transmit>> {
        if self.tx.mtu_search.is_none()
            || self.tx.cc.state() != CaState::Open
            || self.tx.cc.cwnd() < 11
            || self.rx.has_sacks()
        {
            return None;
        }
        let mss = self.tx.space.mss();
        let Sender { mtu_search: Some(search), clock, .. } = &mut self.tx else { return None };
        let size = search.next(mss, clock)?;
        let needed = u64::from(size) + u64::from(self.recovery.reordering() + 1) * u64::from(mss);
        let (space, in_flight) = (&self.tx.space, self.tx.q.in_flight());
        if space.unsent() < needed || u64::from(space.wnd()) < needed {
            return None;
        }
        if space.nxt() + needed > space.wnd_end() {
            return Some(None);
        }
        if in_flight + 2 > self.tx.cc.cwnd() {
            return if in_flight == 0 { None } else { Some(None) };
        }
        let nxt = space.nxt();
        if !self.tx.unsent.gather(nxt, size) {
            return None;
        }
        if let Some(c) = &mut self.calls {
            (c.burst, c.joins) = (false, false);
        }
        self.tx.cc.put_cwnd(self.tx.cc.cwnd() - 1);
        if let Some(search) = &mut self.tx.mtu_search {
            search.sent(nxt, size);
        }
        Some(Some(self.send_new(size, false, Why::Window)))
    }

    // ---- What is noted ----

    /// A segment goes.
    pub(super) fn note_sent(&mut self, len: u32) {
        let now = self.tx.clock.now;
        if let Some(c) = &mut self.calls {
            c.wstamp = c.wstamp.max(now);
            if len > 0 {
                c.last[2] = now;
            }
        }
    }
    /// A segment came.
    pub(super) fn note_received(&mut self, len: u32, acks: bool) {
        let now = self.tx.clock.now;
        if let Some(c) = &mut self.calls {
            if len > 0 {
                c.last[0] = now;
            }
            if acks {
                c.last[1] = now;
            }
        }
    }

    // ---- Writing ----

    /// How small segments are treated.
    fn nonagle(&self) -> u8 {
        let Some(c) = &self.calls else { return 0 };
        let own = if self.cfg.nodelay { OFF } else { 0 }
            | if c.cork { CORK } else { 0 }
            | if c.push { PUSH } else { 0 };
        let fin = if self.tx.todo.push_all { OFF } else { own };
        c.nonagle.unwrap_or(fin)
    }
    /// Bytes of a full buffer.
    //= linux v6.12 net/ipv4/tcp.c tcp_xmit_size_goal
    fn size_goal(&mut self, mss: u32) -> u64 {
        let window = self.tx.space.max_window();
        let Some(c) = &mut self.calls else { return mss.into() };
        let half = if window > 536 { window >> 1 } else { window };
        let most = if half > 0 { c.cfg.gso_max_size.min(half) } else { c.cfg.gso_max_size };
        let goal = c.gso_segs * mss;
        if most < goal || most >= goal + mss {
            c.gso_segs = (most / mss).min(c.cfg.gso_max_segs);
        }
        u64::from((c.gso_segs * mss).max(mss))
    }
    /// Whether a writer need not wait.
    //= linux v6.12 include/net/sock.h __sk_stream_memory_free, include/net/tcp.h tcp_stream_memory_free
    fn stream_memory_free(&self, wake: bool) -> bool {
        let lowat = self.calls.as_ref().map_or(u32::MAX, |c| c.cfg.notsent_lowat);
        let notsent = self.tx.space.unsent() << u32::from(wake);
        self.tx.wmem() < u64::from(self.tx.unsent.size()) && notsent < u64::from(lowat)
    }
    /// Whether `poll` says POLLOUT, and a writer that waits goes on.
    //= linux v6.12 include/net/sock.h __sk_stream_is_writeable
    pub fn call_writable(&self) -> bool {
        self.tx.write_space() && self.stream_memory_free(true)
    }

    /// Whether the socket is driven call by call, so that [`send`](Endpoint::send) takes what is written.
    #[inline]
    pub fn goes_by_calls(&self) -> bool {
        self.calls.is_some()
    }
    /// A call to write `bytes`, of a socket that is driven call by call. Where it answers [`Sent::goes_on`], the caller takes what is to be sent and
    /// calls again with the rest; where less is taken and it does not go on, the buffer is full: the next call is either the same one going on
    /// ([`Endpoint::call_writable`]) or, after [`Endpoint::send_ends`], another.
    //= linux v6.12 net/ipv4/tcp.c tcp_sendmsg_locked
    pub fn send(&mut self, bytes: u64, flags: SendFlags, now: Time) -> Sent {
        self.touch(now);
        let none = Sent { bytes: 0, goes_on: false };
        if !self.takes_data() || self.calls.is_none() {
            return none;
        }
        let before = self.tx.unsent.resume();
        if before == 0 {
            self.check_app_limited();
        }
        let mss = self.current_mss();
        let goal = self.size_goal(mss);
        let mut took = 0;
        while took < bytes {
            let tail = self.tx.unsent.tail_len(self.tx.space.nxt());
            let joins = self.tx.unsent.tail_mut().is_some_and(|b| !b.eor) && tail < goal;
            let mut room = goal.saturating_sub(tail);
            if !joins {
                if !self.stream_memory_free(false) {
                    self.tx.unsent.waited(true);
                    if before + took > 0 {
                        self.tx.unsent.suspend(before + took);
                        self.push_calls(false, PUSH);
                    }
                    return Sent { bytes: took, goes_on: false };
                }
                if let Some(c) = &mut self.calls {
                    c.push = false;
                }
                self.tx.idle_check();
                if self.tx.unsent.is_empty() {
                    self.chrono_start(Chrono::Busy);
                }
                self.tx.unsent.entail(self.tx.space.written());
                room = goal;
            }
            let n = room.min(bytes - took);
            self.tx.space.wrote(n);
            let tail = self.tx.unsent.tail_mut().expect("there is one");
            tail.end += n;
            tail.psh &= before + took > 0;
            took += n;
            if took == bytes {
                tail.eor |= flags.eor;
                break;
            }
            // What a full buffer sets off on the way.
            let full = n == room;
            let (forced, first) = (self.tx.space.push_is_due(), self.tx.unsent.len() == 1);
            if full && (forced || first) {
                if let Some(c) = &mut self.calls {
                    c.one = !forced;
                    c.nonagle = Some(PUSH);
                }
                if forced {
                    self.mark_tail();
                }
                self.tx.todo.push = true;
                self.tx.unsent.suspend(before + took);
                return Sent { bytes: took, goes_on: true };
            }
        }
        if before + took > 0 {
            let nonagle = self.nonagle();
            self.push_calls(flags.more, nonagle);
        }
        Sent { bytes: took, goes_on: false }
    }
    /// A call to write that could not take all returns all the same (`O_NONBLOCK`, a signal).
    pub fn send_ends(&mut self) {
        self.tx.unsent.resume();
    }

    //= linux v6.12 net/ipv4/tcp.c tcp_push
    fn push_calls(&mut self, more: bool, nonagle: u8) {
        if self.tx.unsent.is_empty() {
            return;
        }
        if !more || self.tx.space.push_is_due() {
            self.mark_tail();
        }
        if self.autocorks_calls() {
            return;
        }
        if let Some(c) = &mut self.calls {
            c.nonagle = Some(if more { CORK } else { nonagle });
        }
        self.tx.todo.push = true;
    }
    //= linux v6.12 net/ipv4/tcp.c tcp_should_autocork
    fn autocorks_calls(&mut self) -> bool {
        let goal = self.size_goal(self.current_mss());
        self.tx.unsent.tail_len(self.tx.space.nxt()) < goal && self.autocorks()
    }
}
