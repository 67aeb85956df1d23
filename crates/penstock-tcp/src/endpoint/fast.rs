//! TCP Fast Open: data in a SYN, and a connection that is used before its handshake is over.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_send_syn_data`, `tcp_syn_options`, `tcp_synack_options`; net/ipv4/tcp_input.c
//! `tcp_rcv_fastopen_synack`, `tcp_rcv_synrecv_state_fastopen`; net/ipv4/tcp_fastopen.c `tcp_fastopen_create_child`, `tcp_fastopen_add_skb`,
//! `tcp_fastopen_active_detect_blackhole`; net/ipv4/tcp_timer.c `tcp_fastopen_synack_timer`; RFC 7413.
//! Differs: a SYN with data that this host drops itself goes again by its timer; a FIN out of order stops nothing (`tcp_fastopen_active_disable_ofo_check`); the
//! SYN-ACK that has brought a connection's data counts as delivered at once.
//!
//! The host decides whether a SYN may have data ([`crate::fastopen`]), and keeps what is learned.

use super::Endpoint;
use super::chrono::Chrono;
use crate::config::{Config, Stack};
use crate::fastopen::{Active, Learned};
use crate::info::State;
use crate::mib::Tx;
use crate::segment::{EcnField, Transmit};
use crate::sender::rtx;
use crate::seq;
use penstock_model::Time;
use penstock_packet::{FastOpen, Tcp, TcpFlags};

/// What a connection by Fast Open keeps beside.
#[derive(Debug, Default)]
pub(super) struct Fast {
    /// The option that the SYN or SYN-ACK bears that goes first; none that goes again has it.
    option: Option<FastOpen>,
    /// Bytes of data in our SYN (`syn_data`).
    in_syn: u32,
    /// Our SYN had the option, as experiment or not (`syn_fastopen`, `syn_fastopen_exp`).
    asked: bool,
    exp: bool,
    /// It was tried again after a time without (`syn_fastopen_ch`).
    check: bool,
    /// The data in the SYN was taken, by the peer or by us (`syn_data_acked`).
    acked: bool,
    /// A call to write waits with more: the SYN-ACK's answer goes with that (`sk_write_pending`).
    pub write_pending: bool,
    /// The handshake of an accepted connection is not over (`fastopen_rsk`).
    pub child: bool,
    /// Why it was of no use (`tcpi_fastopen_client_fail`).
    fail: u8,
    /// The segment size that the SYN reckoned with.
    clamp: u16,
    /// The answer to a SYN-ACK that is none of ours.
    reset: Option<Transmit>,
    learned: Option<Learned>,
    /// Something on the way swallows what is sent so.
    blackhole: bool,
}

impl Endpoint {
    /// Opens a connection by Fast Open, as [`connect`](Endpoint::connect) does without. How much of the data goes with the SYN: [`Endpoint::in_syn`].
    //= linux v6.12 net/ipv4/tcp_output.c tcp_send_syn_data
    pub fn connect_fast(cfg: &Config, sport: u16, dport: u16, isn: u32, how: &Active, now: Time) -> Endpoint {
        let mut e = Endpoint::connect(cfg, sport, dport, isn, now);
        if cfg.stack == Stack::Ns2 || !e.tx.p.today {
            return e;
        }
        let clamp = match how.mss {
            0 => e.cfg.announced(),
            mss => mss.min(e.cfg.mss).max(48),
        };
        let mut fast =
            Fast { option: how.option, check: how.check, fail: how.fail, clamp, ..Fast::default() };
        if how.data {
            let room = u32::from(clamp.min(e.cfg.mss)).saturating_sub(40);
            fast.in_syn = how.bytes.min(room.into()) as u32;
            e.tx.space.wrote(fast.in_syn.into());
            if fast.in_syn > 0 {
                e.chrono_start(Chrono::Busy);
            }
        }
        e.fast = Some(Box::new(fast));
        e
    }
    /// What a listening socket does with a SYN where Fast Open is on: a connection that is open at once (`child`), with the data that the SYN brought, or one as
    /// [`accept_marked`](Endpoint::accept_marked) makes it. `reply` is the cookie for the SYN-ACK.
    //= linux v6.12 net/ipv4/tcp_fastopen.c tcp_fastopen_create_child
    #[allow(clippy::too_many_arguments)] // Those of accept_marked, and what the listener has decided.
    pub fn accept_fast(
        cfg: &Config,
        syn: &Tcp,
        payload_len: u32,
        ecn: EcnField,
        isn: u32,
        child: bool,
        reply: Option<FastOpen>,
        now: Time,
    ) -> Option<Endpoint> {
        let mut e = Endpoint::accept_marked(cfg, syn, ecn, isn, now)?;
        if cfg.stack == Stack::Ns2 || !e.tx.p.today || !child && reply.is_none() {
            return Some(e);
        }
        e.fast = Some(Box::new(Fast { option: reply, child, ..Fast::default() }));
        if child {
            e.open_variables();
            e.tx.mib.one(Tx::PassiveOpens);
            e.tx.todo.push = false;
            if payload_len > 0 {
                e.data_of_syn(payload_len, false);
                e.rx.offered_anew();
            }
        }
        Some(e)
    }
    /// Bytes of data that went with the SYN, or are to go.
    pub fn in_syn(&self) -> u32 {
        self.fast.as_ref().map_or(0, |f| f.in_syn)
    }
    /// Whether anything of Fast Open is with it.
    #[inline]
    pub fn is_fast(&self) -> bool {
        self.fast.is_some()
    }
    /// Whether a program may use the connection: its handshake is over, or it was accepted by Fast Open.
    #[inline]
    pub fn is_open(&self) -> bool {
        match self.state {
            State::SynSent | State::Closed => false,
            State::SynReceived => self.is_fast_child(),
            _ => true,
        }
    }
    /// Whether it was accepted by Fast Open and its handshake is not over.
    #[inline]
    pub fn is_fast_child(&self) -> bool {
        self.fast.as_ref().is_some_and(|f| f.child)
    }
    /// Whether the data in the SYN was taken (`TCPI_OPT_SYN_DATA`).
    pub fn syn_data_acked(&self) -> bool {
        self.fast.as_ref().is_some_and(|f| f.acked)
    }
    /// Why Fast Open was of no use (`tcpi_fastopen_client_fail`): 0: it was, or was not asked for; 1: no cookie; 2: the data was not taken; 3: the SYN went again.
    pub fn fast_fail(&self) -> u8 {
        self.fast.as_ref().map_or(0, |f| f.fail)
    }
    /// A call to write waits for the connection with more data, or no longer: the SYN-ACK is then acknowledged by what it sends.
    pub fn set_write_pending(&mut self, pending: bool) {
        if let Some(f) = &mut self.fast {
            f.write_pending = pending;
        }
    }
    /// What the SYN-ACK has told of the peer's Fast Open: for the host to keep ([`Learned::keep`]).
    pub fn take_learned(&mut self) -> Option<Learned> {
        self.fast.as_mut()?.learned.take()
    }
    /// Whether something on the way has been seen to swallow what goes by Fast Open.
    pub fn take_blackhole(&mut self) -> bool {
        self.fast.as_mut().is_some_and(|f| std::mem::take(&mut f.blackhole))
    }
    /// Whether data has come over a connection that tried again after a time without (`syn_fastopen_ch`).
    pub fn fast_works_again(&self) -> bool {
        self.fast.as_ref().is_some_and(|f| f.check && f.asked) && self.tx.n.data_segs_in > 0
    }

    // ---- The SYN and the SYN-ACK ----

    /// Puts option and data where they belong: into the first SYN or SYN-ACK. The bytes of data that it carries.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_syn_options, tcp_synack_options
    #[cold]
    pub(super) fn write_fast(&mut self, tcp: &mut Tcp, again: bool) -> u32 {
        let active = self.state == State::SynSent;
        let Some(f) = &mut self.fast else { return 0 };
        let option = f.option.take();
        if again {
            return 0;
        }
        if let Some(option) = option.filter(|o| tcp.options_len() + o.padded_len() <= 40) {
            tcp.set_fast_open(Some(option));
            if active {
                (f.asked, f.exp) = (true, option.exp);
            }
        }
        let len = if active { f.in_syn } else { 0 };
        if len > 0 {
            self.tx.host.hand(len);
            self.note_sent(len);
            self.tx.n.data_segs_out += 1;
            self.tx.mib.one(Tx::OrigDataSent);
        }
        len
    }

    /// Whether a SYN-ACK acknowledges our SYN, and no more than went with it.
    #[cold]
    pub(super) fn acks_fast_syn(&self, ack: u64) -> bool {
        let iss = self.tx.space.iss();
        ack > iss && ack <= iss + 1 + u64::from(self.in_syn())
    }
    /// A SYN-ACK that is for another connection, or whose timestamp is: it is reset, and the SYN goes on.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_synsent_state_process (reset_and_undo)
    pub(super) fn refuses_synack(&mut self, seg: &Tcp, wrong_ack: bool) {
        let reset = crate::segment::reset_for(seg, 0);
        if let Some(f) = &mut self.fast {
            f.reset = reset;
            if wrong_ack && self.tx.timers.retransmits() == 0 {
                self.tx.set_timer(crate::sender::timers::Pending::Retrans, 2);
            }
        }
    }
    pub(super) fn take_fast_reset(&mut self) -> Option<Transmit> {
        let reset = self.fast.as_mut()?.reset.take()?;
        self.tx.mib.one(Tx::OutRsts);
        Some(reset)
    }
    /// Whether a SYN-ACK echoes a timestamp that was never sent.
    pub(super) fn echoes_wrong(&self, seg: &Tcp) -> bool {
        let Some((_, ecr)) = seg.timestamps.filter(|t| t.1 != 0) else { return false };
        let first = self.tx.clock.ts_of(self.syn_sent_us);
        self.cfg.timestamps && ecr.wrapping_sub(first) > self.tx.clock.tsval().wrapping_sub(first)
    }

    /// The SYN-ACK has come to a connection that is open now: what it says of the data and of the cookie. True: the data goes again, and the SYN-ACK is
    /// acknowledged by that, or by what a writer sends.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_fastopen_synack
    #[cold]
    pub(super) fn fast_synack(&mut self, seg: &Tcp, payload_len: u32, cookie: Option<FastOpen>) -> bool {
        let first = self.tx.space.iss() + 1;
        let Some(f) = &mut self.fast else { return false };
        let (in_syn, retrans) = (u64::from(f.in_syn), self.tx.n.total_retrans > 0);
        let ack = seq::unwrap(seg.ack, first);
        let unacked = in_syn > ack.saturating_sub(first);
        if f.asked || in_syn > 0 {
            let cookie = cookie.filter(|_| f.asked);
            let (mut syn_drop, mut try_exp) = (false, 0);
            if f.asked && retrans {
                syn_drop = cookie.is_none() && unacked;
            } else if f.asked && cookie.is_none() && in_syn == 0 {
                try_exp = if f.exp { 2 } else { 1 };
            }
            f.learned = Some(Learned { mss: seg.mss.unwrap_or(f.clamp), cookie, syn_drop, try_exp });
        }
        if in_syn > 0 {
            self.tx.space.syn_data(ack, first + in_syn);
        }
        if unacked {
            f.fail = if retrans { 3 } else { 2 };
            self.tx.mib.one(Tx::FastOpenActiveFail);
            self.data_goes_again(ack, first + in_syn);
            return true;
        }
        f.acked = in_syn > 0;
        let pending = f.write_pending;
        if in_syn > 0 {
            self.tx.mib.one(Tx::FastOpenActive);
            self.chrono_acked();
        }
        let fin = seg.flags.has(TcpFlags::FIN);
        if payload_len > 0 || fin {
            self.data_of_syn(payload_len, fin);
        }
        if pending {
            //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_synsent_state_process: an ACK is saved
            self.rx.owe_ack(false);
            self.rx.enter_quickack(16);
        }
        pending
    }
    /// What the SYN carried and the peer did not take goes again at once, as lost without congestion.
    fn data_goes_again(&mut self, from: u64, to: u64) {
        let mss = u64::from(self.current_mss().max(1));
        let (mut at, sent) = (from, self.syn_sent_us);
        while at < to {
            let end = to.min(at + mss);
            let bits = if end == to { rtx::PSH } else { 0 };
            self.tx.q.push(at, end, sent, self.tx.cc.delivered(), bits, self.tx.host.last_no());
            if at > from {
                self.tx.q.last_joins();
            }
            let last = self.tx.q.packets_out() as usize - 1;
            self.tx.stamp_rate(last);
            self.tx.q.mark_lost(last);
            at = end;
        }
        self.recovery.lost_without_congestion(&mut self.tx);
        self.tx.todo.rexmit = true;
    }
    /// Data and FIN of a SYN or SYN-ACK are taken.
    //= linux v6.12 net/ipv4/tcp_fastopen.c tcp_fastopen_add_skb
    fn data_of_syn(&mut self, len: u32, fin: bool) {
        self.rx.data_of_syn(len, fin);
        self.data_ready = Some(self.tx.clock.now);
        if let Some(f) = &mut self.fast {
            f.acked = true;
        }
        if fin {
            self.rx.owe_ack(self.rx.acks_at_once());
            self.rx.turn_interactive();
            self.state = State::CloseWait;
        }
    }

    // ---- Before the handshake is over ----

    /// The handshake of an accepted connection is over, by a segment at `start` with this window.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_synrecv_state_fastopen
    #[cold]
    pub(super) fn fast_child_opens(&mut self, window: u32, start: u64) {
        self.tx.space.first_window(window, start);
        self.state = if self.tx.space.is_closed() { State::FinWait1 } else { State::Established };
        if let Some(f) = &mut self.fast {
            f.child = false;
        }
        self.tx.timers.opened();
        self.tx.set_rate();
        self.tx.rearm_rto();
        self.tx.todo.push = true;
    }
    /// The SYN-ACK's timer has run out for the second time: what was sent behind it counts as lost.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_fastopen_synack_timer
    pub(super) fn fast_child_timeout(&mut self) {
        if self.is_fast_child() && self.tx.timers.retransmits() == 1 && self.tx.q.packets_out() > 0 {
            self.recovery.enter_loss(&mut self.tx);
        }
    }

    // ---- Black holes ----

    /// Whether the timeouts of a connection tell of something that swallows what goes by Fast Open; `expired`: it ends with this one.
    //= linux v6.12 net/ipv4/tcp_fastopen.c tcp_fastopen_active_detect_blackhole
    pub(super) fn detect_blackhole(&mut self, expired: bool) {
        let timeouts = self.tx.timers.retransmits();
        let Some(f) = &mut self.fast else { return };
        if (f.asked || f.in_syn > 0 || f.acked) && (timeouts == 2 || timeouts < 2 && expired) {
            f.blackhole = true;
            self.tx.mib.one(Tx::FastOpenActiveFail);
        }
    }
    /// An RST has come that stands where none is expected, before any data (`tcp_validate_incoming`).
    pub(super) fn reset_out_of_order(&mut self) {
        if let Some(f) = &mut self.fast {
            f.blackhole |= f.asked && self.tx.n.data_segs_in == 0 && self.state == State::Established;
        }
    }
}
