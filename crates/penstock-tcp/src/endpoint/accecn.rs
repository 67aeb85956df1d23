//! Accurate ECN: each side tells how many marked segments have come to it, and how many bytes in them.
//!
//! Follows: linux v7.2 include/net/tcp_ecn.h, net/ipv4/tcp_input.c `tcp_accecn_process`, `tcp_accecn_process_option`, net/ipv4/tcp_output.c `tcp_ecn_send`,
//! `tcp_options_fit_accecn`, net/ipv4/tcp_minisocks.c `tcp_ecn_openreq_child`; RFC 9768.
//! Differs: no SYN cookies.

use super::Endpoint;
use crate::info::{AccEcnInfo, CaState, EcnMode};
use crate::segment::EcnField;
use crate::sender::acked::{ECE, FORWARD_PROGRESS, SYN_ACKED};
use penstock_packet::{AccEcn, Tcp, TcpFlags};

/// What the counter of marked segments begins with in the ACE field (RFC 9768 section 3.2.1).
const CEP_INIT: u32 = 5;
/// What fits into that field.
const ACE_MASK: u32 = 7;
/// So many marks since the last ACK let one go at once.
const ACE_MAX_DELTA: u8 = 6;
/// What the counters of bytes begin with in the option: of ECT(1), ECT(0) and CE. Zeros show who clears the option.
const INIT_OFFSET: [u32; 3] = [1, 1, 0];
/// The room that TCP's options have, bytes.
pub(super) const OPTION_SPACE: u32 = 40;

/// `TCP_ACCECN_ACE_FAIL_SEND` and the others.
const ACE_FAIL_SEND: u8 = 1;
const ACE_FAIL_RECV: u8 = 2;
const OPT_FAIL_SEND: u8 = 4;
const OPT_FAIL_RECV: u8 = 8;

/// Whether the peer's option has been seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum Seen {
    #[default]
    Not,
    Empty,
    Counter,
    Fail,
}

/// What a connection keeps that asks for Accurate ECN or has agreed on it.
#[derive(Debug, Default)]
pub(super) struct Accurate {
    // Settings
    /// `tcp_ecn_option`: 0 none, 1 when there is something to tell, 2 always, 3 even though it seems to get lost.
    option: u8,
    /// `tcp_ecn_option_beacon`: how often the option goes at least in a round trip.
    beacon: u8,
    /// `tcp_ecn_fallback`.
    fallback: bool,
    // Variables
    /// It was asked for, and not answered yet.
    pending: bool,
    /// Marked segments that have come, in all and since the last ACK.
    received_ce: u32,
    ce_pending: u8,
    /// Bytes that have come: in ECT(1), ECT(0), CE.
    received: [u32; 3],
    /// Bytes that have arrived there, as far as it is told.
    delivered: [u32; 3],
    /// The field of the last segment.
    last: EcnField,
    /// Where bytes without a word from the peer are counted, as a place in `delivered`.
    estimate: Option<usize>,
    /// Segments that an ACK acknowledges on average, in 64ths.
    acked_avg: u32,
    fail: u8,
    seen: Seen,
    /// What the peer's SYN came with, and what ours went with.
    syn_received: EcnField,
    syn_sent: EcnField,
    /// Both sides have opened at once.
    crossed: bool,
    /// The least of counters that the next option is to have.
    least: u8,
    /// So many ACKs are to have the option.
    demand: u8,
    /// When it was sent last, microseconds.
    sent_us: u64,
    /// It went with a report of a duplicate.
    sent_with_dsack: bool,
    /// Retransmissions of the SYN-ACK, by the timer or because the SYN came again (`num_retrans`).
    synacks_again: u32,
    /// Its program has closed the socket.
    orphan: bool,
    /// Both sides have closed: what answers from now on counts nothing (`tcp_timewait_state_process`).
    over: bool,
}

/// The ACE field that tells what a SYN or SYN-ACK came with (RFC 9768 table 2).
fn reflected(ecn: EcnField) -> TcpFlags {
    TcpFlags::of_ace(match ecn {
        EcnField::NotEct => 0b010,
        EcnField::Ect1 => 0b011,
        EcnField::Ect0 => 0b100,
        EcnField::Ce => 0b110,
    })
}

/// What ours has come with, by that field.
//= linux v7.2 include/net/tcp_ecn.h tcp_accecn_extract_syn_ect
fn told(ace: u32) -> EcnField {
    match ace {
        0b010 => EcnField::NotEct,
        0b000 | 0b100 => EcnField::Ect0,
        0b110 => EcnField::Ce,
        _ => EcnField::Ect1,
    }
}

/// Whether the way may have made this of that.
//= linux v7.2 include/net/tcp_ecn.h tcp_ect_transition_valid
fn may_become(sent: EcnField, came: EcnField) -> bool {
    sent == came || sent != EcnField::NotEct && came != EcnField::NotEct && sent != EcnField::Ce
}

/// Whether a SYN asks for Accurate ECN, or for whatever comes after it (RFC 9768 section 3.1.2).
pub(super) fn asks(syn: &Tcp) -> bool {
    !matches!(syn.flags.ace(), 0 | 0b011)
}

/// What is to be thought of the peer's first option.
//= linux v7.2 include/net/tcp_ecn.h tcp_accecn_option_init
fn first_option(option: &AccEcn) -> Seen {
    match (option.counter(0), option.counter(2)) {
        (None, _) => Seen::Empty,
        (Some(0), _) | (_, Some(0)) => Seen::Fail,
        _ => Seen::Counter,
    }
}

/// Where bytes of a field are counted.
const fn place(ecn: EcnField) -> Option<usize> {
    match ecn {
        EcnField::NotEct => None,
        EcnField::Ect1 => Some(0),
        EcnField::Ect0 => Some(1),
        EcnField::Ce => Some(2),
    }
}

/// Whose bytes the counters of an option are: as places.
const fn places(order1: bool) -> [usize; 3] {
    if order1 { [0, 2, 1] } else { [1, 2, 0] }
}

impl Accurate {
    fn sees(&mut self, option: &AccEcn) {
        self.seen = first_option(option);
        if self.seen == Seen::Fail {
            self.fail |= OPT_FAIL_RECV;
        }
    }
    /// Holds what the peer says our SYN or SYN-ACK has come with against how it went.
    //= linux v7.2 include/net/tcp_ecn.h tcp_accecn_validate_syn_feedback
    fn is_credible(&mut self, ace: u32) -> bool {
        if !self.fallback || may_become(self.syn_sent, told(ace)) {
            return true;
        }
        self.fail |= ACE_FAIL_RECV;
        false
    }
    fn marked_segments(&mut self, n: u32) {
        self.received_ce = self.received_ce.wrapping_add(n);
        self.ce_pending = (u32::from(self.ce_pending) + n).min(15) as u8;
    }
    /// Counts a segment that has come with so much payload; answers whether the field is another than before.
    //= linux v7.2 include/net/tcp_ecn.h tcp_ecn_received_counters
    fn count(&mut self, ecn: EcnField, payload: u32, segments: u32) -> bool {
        if ecn == EcnField::Ce {
            self.marked_segments(segments);
        }
        if let Some(at) = place(ecn)
            && payload > 0
        {
            let before = self.received[at];
            self.received[at] = before.wrapping_add(payload);
            self.least = self.least.max([1, 3, 2][at]);
            // At least once in 2^22 bytes.
            if (self.received[at] ^ before) >> 22 != 0 {
                self.demand = self.demand.max(1);
            }
        }
        let changed = self.last != ecn;
        if changed || ecn == EcnField::Ce {
            self.last = ecn;
            self.demand = 2;
        }
        changed
    }
    /// Takes the counters of an option; answers whether those of bytes can be used.
    //= linux v7.2 net/ipv4/tcp_input.c tcp_accecn_process_option
    fn take_option(&mut self, option: Option<&AccEcn>, bytes_sent: u64, delivered_bytes: u32) -> bool {
        if self.fail & OPT_FAIL_RECV != 0 {
            return false;
        }
        let estimate = self.estimate;
        let Some(option) = option else {
            if self.seen == Seen::Not {
                // Too late for a first one: the counters may have wrapped.
                if bytes_sent >= (1 << 23) - 1 {
                    self.seen = Seen::Fail;
                    self.fail |= OPT_FAIL_RECV;
                }
                return false;
            }
            if let Some(at) = estimate {
                self.delivered[at] = self.delivered[at].wrapping_add(delivered_bytes);
            }
            return estimate.is_some();
        };
        if self.seen < Seen::Counter {
            self.sees(option);
        }
        let (mut usable, mut ambiguous, mut first) = (estimate.is_some(), false, true);
        for (n, at) in places(option.order1).into_iter().enumerate() {
            let Some(told) = option.counter(n) else { break };
            let count = &mut self.delivered[at];
            let apart = told.wrapping_sub(INIT_OFFSET[at]).wrapping_sub(*count) & 0xff_ffff;
            // 24 bits with a sign.
            let delta = (apart << 8) as i32 >> 8;
            *count = count.wrapping_add(delta as u32);
            if delta < 0 {
                (usable, ambiguous) = (false, true);
            }
            if delta != 0 && Some(at) != estimate {
                if std::mem::take(&mut first) {
                    self.estimate = Some(at);
                } else {
                    (usable, ambiguous) = (false, true);
                }
            }
        }
        if ambiguous {
            self.estimate = None;
        }
        usable
    }
    /// Whether the option is due for no other reason than time.
    //= linux v7.2 include/net/tcp_ecn.h tcp_accecn_option_beacon_check
    fn beacon_is_due(&self, now_us: u64, srtt8: u32) -> bool {
        self.beacon > 0
            && now_us.saturating_sub(self.sent_us).saturating_mul(self.beacon.into()) >= u64::from(srtt8 >> 3)
    }
    /// Whether a segment of the open connection is to have the option.
    fn sends_option(&self, now_us: u64, srtt8: u32) -> bool {
        self.option > 0
            && self.seen != Seen::Not
            && (self.option >= 3 || self.fail & OPT_FAIL_SEND == 0)
            && (self.option >= 2 || self.demand > 0 || self.beacon_is_due(now_us, srtt8))
    }
}

/// How many counters fit into `room` bytes, where up to `saved` bytes of others' padding may be used; `least` there must be, for which SACK blocks give way
/// down to two. `None`: the option does not fit.
//= linux v7.2 net/ipv4/tcp_output.c tcp_options_fit_accecn
fn fit(least: u8, room: u32, saved: u32, blocks: &mut u32) -> Option<u8> {
    let (mut room, mut fewer) = (room, 0);
    let mut fields = 3u8;
    loop {
        let size = 2 + 3 * u32::from(fields);
        let aligned = if size & 3 > saved { size.next_multiple_of(4) } else { size & !3 };
        if room >= aligned {
            return Some(fields);
        }
        if fields == least && *blocks > 2 && least > 0 {
            *blocks -= 1;
            fewer += 1;
            room += 8;
            fields = 3;
        } else if fields == least {
            *blocks += fewer;
            return None;
        } else {
            fields -= 1;
        }
    }
}

impl Endpoint {
    /// Whether Accurate ECN is agreed on.
    #[inline]
    pub fn is_accurate(&self) -> bool {
        self.accurate.as_ref().is_some_and(|a| !a.pending)
    }
    fn new_accurate(&self, pending: bool) -> Box<Accurate> {
        let (option, beacon) = self.cfg.ecn_option;
        Box::new(Accurate { option, beacon, fallback: self.cfg.ecn_fallback, pending, ..Accurate::default() })
    }
    fn agree(&mut self) {
        if let Some(a) = &mut self.accurate {
            a.pending = false;
        }
        self.tx.cc.set_ecn(true);
        self.tx.cc.set_accurate(true);
        self.rx.echo.is_accurate();
    }
    fn no_accurate(&mut self, ecn: bool) {
        self.accurate = None;
        self.tx.cc.set_ecn(ecn);
    }

    // ---- Opening ----

    /// Our SYN asks for it.
    //= linux v7.2 include/net/tcp_ecn.h tcp_ecn_send_syn
    pub(super) fn ask_for_accurate(&mut self) {
        let mut asked = self.new_accurate(true);
        asked.syn_sent = self.own_syn();
        self.accurate = Some(asked);
    }
    /// What our SYN and SYN-ACK go with.
    fn own_syn(&self) -> EcnField {
        if self.tx.cc.needs_ecn() { EcnField::Ect0 } else { EcnField::NotEct }
    }
    /// A SYN for a listener asks for it, and it may be had.
    //= linux v7.2 net/ipv4/tcp_input.c tcp_ecn_create_request
    pub(super) fn accept_accurate(&mut self, ecn: EcnField) {
        let mut a = self.new_accurate(false);
        (a.syn_received, a.syn_sent) = (ecn, self.own_syn());
        self.accurate = Some(a);
        self.agree();
    }
    /// The peer's SYN crosses ours, which has asked for it.
    //= linux v7.2 include/net/tcp_ecn.h tcp_ecn_rcv_syn
    pub(super) fn crossed_accurate(&mut self, syn: &Tcp, ecn: EcnField) {
        if !asks(syn) {
            return self.no_accurate(syn.flags.has(TcpFlags::ECE.with(TcpFlags::CWR)));
        }
        if let Some(a) = &mut self.accurate {
            (a.syn_received, a.last, a.crossed) = (ecn, ecn, true);
        }
        self.agree();
    }
    /// The same SYN has come again.
    //= linux v7.2 net/ipv4/tcp_minisocks.c tcp_check_req
    pub(super) fn syn_again(&mut self, syn: &Tcp, ecn: EcnField) {
        if let Some(a) = &mut self.accurate {
            a.syn_received = ecn;
            if syn.flags.ace() == 0 {
                a.fail |= ACE_FAIL_RECV;
            }
        }
    }
    /// The ACE field of a SYN-ACK, its option, and the field it goes with.
    //= linux v7.2 include/net/tcp_ecn.h tcp_ecn_make_synack; net/ipv4/tcp_output.c tcp_synack_options
    pub(super) fn write_synack(&mut self, tcp: &mut Tcp, again: bool) {
        let timed_out = self.synack_timed_out();
        let room = OPTION_SPACE - tcp.options_len();
        let Some(a) = &mut self.accurate else { return };
        if again {
            a.synacks_again += 1;
            if a.synacks_again > 1 {
                a.fail |= ACE_FAIL_SEND;
            }
        }
        if !(again && timed_out) {
            tcp.flags = tcp.flags.with(reflected(a.syn_received));
        }
        if a.option > 0 && !again && room >= 2 {
            //= linux v7.2 net/ipv4/tcp_output.c tcp_synack_options_combine_saving
            let saved = match (tcp.sack_permitted && tcp.timestamps.is_none(), tcp.wscale.is_some()) {
                (true, _) => 2,
                (false, true) => 1,
                (false, false) => 0,
            };
            if let Some(fields) = fit(0, room, saved, &mut 0) {
                tcp.accecn = Some(AccEcn::new(true, fields, [1, 0, 1]));
            }
        }
    }
    /// The answer to a SYN of ours that has asked for ECN of either kind.
    //= linux v7.2 include/net/tcp_ecn.h tcp_ecn_rcv_synack
    pub(super) fn synack_of_newest(&mut self, synack: &Tcp, ecn: EcnField) {
        let ace = synack.flags.ace();
        match ace {
            0 | 7 => return self.no_accurate(false),
            1 => return self.no_accurate(true),
            5 if self.accurate.is_none() => return,
            _ => {}
        }
        if self.accurate.is_none() {
            let mut own = self.new_accurate(false);
            own.syn_sent = self.own_syn();
            self.accurate = Some(own);
        }
        self.agree();
        let Some(a) = &mut self.accurate else { return };
        a.syn_received = ecn;
        if let Some(option) = &synack.accecn
            && a.seen < Seen::Counter
        {
            a.sees(option);
            a.demand = 2;
        }
        if ecn == EcnField::Ce && (ace == 5 || a.is_credible(ace)) {
            a.marked_segments(1);
        }
    }
    /// The ACE field of the ACK of a SYN-ACK, and of a SYN for the open connection.
    pub(super) fn reflection(&self) -> TcpFlags {
        match &self.accurate {
            Some(a) if !a.pending => reflected(a.syn_received),
            _ => TcpFlags(0),
        }
    }
    /// The handshake's last ACK, or data in its stead, has come to a listener's connection.
    //= linux v7.2 net/ipv4/tcp_minisocks.c tcp_check_req, tcp_ecn_openreq_child; include/net/tcp_ecn.h tcp_accecn_third_ack
    pub(super) fn third_ack(&mut self, seg: &Tcp, payload: u32, ecn: EcnField) {
        let Some(a) = self.accurate.as_mut().filter(|a| !a.pending) else { return };
        let accepted = !a.crossed;
        if let Some(option) = seg.accecn.as_ref().filter(|_| accepted)
            && a.seen < Seen::Counter
        {
            // Whatever is wrong with it is not handed on.
            a.seen = first_option(option);
        }
        let ace = seg.flags.ace();
        let bare = payload == 0 && !seg.flags.has(TcpFlags::FIN);
        match ace {
            0 if seg.sack_count == 0 => a.fail |= ACE_FAIL_RECV | OPT_FAIL_RECV,
            0 | 1 | 5 | 7 => {}
            _ => {
                if bare
                    && seg.sack_count == 0
                    && a.is_credible(ace)
                    && told(ace) == EcnField::Ce
                    && self.tx.cc.delivered_ce() == 0
                {
                    self.tx.cc.count_delivered_ce(1);
                }
            }
        }
        if accepted {
            a.last = a.syn_received;
            a.demand = 1;
            self.count_received(ecn, payload, 1);
        }
    }

    // ---- What comes ----

    /// A segment has come to the open connection.
    //= linux v7.2 include/net/tcp_ecn.h tcp_ecn_received_counters
    pub(super) fn count_received(&mut self, ecn: EcnField, payload: u32, segments: u32) {
        let Some(a) = self.accurate.as_mut().filter(|a| !a.pending) else { return };
        self.rx.echo.note_capable(ecn);
        if a.count(ecn, payload, segments) {
            self.rx.ack_soon();
        }
    }
    /// A segment has come to a connection that we have closed, and whose other end knows: a stand-in answers it, which counts nothing.
    //= linux v7.2 net/ipv4/tcp_minisocks.c tcp_time_wait
    pub(super) fn accurate_is_over(&mut self) {
        if let Some(a) = &mut self.accurate {
            a.over |= a.orphan;
        }
    }
    /// The program closes the socket, where [`close`](Endpoint::close) by itself is a call of `shutdown`: what answers the peer's FIN then counts no marks.
    pub fn orphan(&mut self) {
        if let Some(a) = &mut self.accurate {
            a.orphan = true;
        }
    }
    /// `tcp_ecn_option` and `tcp_ecn_option_beacon` are these from now on.
    pub fn set_ecn_option(&mut self, option: (u8, u8)) {
        self.cfg.ecn_option = option;
        if let Some(a) = &mut self.accurate {
            (a.option, a.beacon) = option;
        }
    }
    /// A SYN for the open connection: the answer tells what it came with.
    //= linux v7.2 net/ipv4/tcp_input.c tcp_validate_incoming
    pub(super) fn challenged(&mut self, syn: &Tcp, ecn: EcnField) {
        let Some(a) = self.accurate.as_mut().filter(|a| !a.pending) else { return };
        a.syn_received = ecn;
        if let Some(option) = &syn.accecn
            && a.seen < Seen::Counter
        {
            a.sees(option);
            a.demand = a.demand.max(1);
        }
        self.tx.todo.reflects = true;
    }
    /// Data that begin at `start` have come again: if the report of that went with the option, the option does not get through.
    //= linux v7.2 net/ipv4/tcp_input.c tcp_rcv_spurious_retrans
    pub(super) fn came_again(&mut self, start: u64) {
        let last = self.rx.last_duplicate();
        if let Some(a) = self.accurate.as_mut().filter(|a| !a.pending)
            && a.sent_with_dsack
            && last == start as u32
        {
            a.fail |= OPT_FAIL_SEND;
        }
    }
    /// The flags but PSH that header prediction expects.
    pub(super) fn expected_flags(&self) -> TcpFlags {
        if self.is_accurate() {
            let ace = (self.tx.cc.delivered_ce() as u32).wrapping_add(CEP_INIT);
            return TcpFlags::ACK.with(TcpFlags::of_ace(ace));
        }
        TcpFlags::ACK
    }

    /// What an acknowledgement says of marks; raises ECE in `flag` where there are new ones.
    //= linux v7.2 net/ipv4/tcp_input.c tcp_accecn_process, __tcp_accecn_process
    #[cold]
    pub(super) fn process_accurate(
        &mut self,
        seg: &Tcp,
        delivered: u32,
        bytes: u32,
        slow: bool,
        ts: bool,
        flag: &mut u32,
    ) {
        let delta = self.new_marks(seg, delivered, bytes, slow, ts, *flag);
        if delta > 0 {
            self.tx.cc.count_delivered_ce(delta);
            *flag |= ECE;
        }
    }
    fn new_marks(&mut self, seg: &Tcp, delivered: u32, bytes: u32, slow: bool, ts: bool, flag: u32) -> u32 {
        let sent = self.tx.space.nxt() - self.tx.space.iss() + self.tx.n.bytes_retrans;
        let Some(a) = self.accurate.as_mut() else { return 0 };
        if flag & FORWARD_PROGRESS == 0 && !ts {
            return 0;
        }
        let before = a.delivered[2];
        let option = if slow { seg.accecn.as_ref() } else { None };
        let usable = a.take_option(option, sent, bytes);
        if delivered > 0 {
            let sample = delivered << 6;
            let avg =
                if a.acked_avg == 0 { sample } else { ((a.acked_avg << 6) - a.acked_avg + sample) >> 6 };
            a.acked_avg = avg.min(0xffff);
        }
        if !slow && delivered <= ACE_MASK || flag & SYN_ACKED != 0 {
            return 0;
        }
        if a.ce_pending >= ACE_MAX_DELTA {
            self.rx.ack_soon();
        }
        let told = seg.flags.ace().wrapping_sub(CEP_INIT);
        let delta = told.wrapping_sub(self.tx.cc.delivered_ce() as u32) & ACE_MASK;
        if delivered <= ACE_MASK {
            return delta;
        }
        // The field may have wrapped.
        let safe = delivered - (delivered.wrapping_sub(delta) & ACE_MASK);
        if !usable {
            return if a.acked_avg > 4 << 6 { delta } else { safe };
        }
        let marked = a.delivered[2].wrapping_sub(before);
        if marked == 0 {
            return delta;
        }
        let calm = matches!(self.tx.cc.state(), CaState::Open | CaState::Cwr);
        if delivered >= (ACE_MASK + 1) * 2 && (self.tx.sack_ok || calm) {
            if bytes <= marked {
                return safe;
            }
            let estimate = (u64::from(marked) * u64::from(delivered)).div_ceil(u64::from(bytes)) as u32;
            return safe.min(delta + (estimate & !ACE_MASK));
        }
        let mss = self.tx.space.mss();
        if marked > delta.saturating_mul(mss) {
            return safe;
        }
        if marked < safe.saturating_mul(mss) >> 1 { delta } else { safe }
    }

    // ---- What goes ----

    /// Of so many SACK blocks, how many the next segment has, beside how many counters, and what both take, bytes.
    //= linux v7.2 net/ipv4/tcp_output.c tcp_established_options
    #[cold]
    pub(super) fn accurate_options(&self, mut blocks: u32) -> (u32, Option<u8>, u32) {
        let stamps = if self.tx.stamps.ok() { 12 } else { 0 };
        let size = stamps + if blocks > 0 { 4 + 8 * blocks } else { 0 };
        let due =
            |a: &Accurate| !a.pending && !a.over && a.sends_option(self.mstamp_us, self.tx.timers.srtt8());
        let fields = self.accurate.as_deref().filter(|a| due(a)).and_then(|a| {
            let saved = if blocks > 0 { 2 } else { 0 };
            fit(a.least, OPTION_SPACE - size, saved, &mut blocks)
        });
        let accecn = fields.map(|fields| AccEcn { fields, ..AccEcn::default() });
        let both = Tcp { sack_count: blocks as u8, accecn, ..Tcp::default() };
        (blocks, fields, both.options_len())
    }
    /// Writes the ACE field and the option into a segment of the open connection; answers whether it is to be ECN-capable.
    //= linux v7.2 net/ipv4/tcp_output.c tcp_ecn_send, tcp_options_write; include/net/tcp_ecn.h tcp_accecn_set_ace
    pub(super) fn write_accurate(&mut self, tcp: &mut Tcp, fields: Option<u8>, dsack: bool) {
        let mstamp = self.mstamp_us;
        let Some(a) = self.accurate.as_mut().filter(|a| !a.pending && !a.over) else { return };
        if tcp.flags.ace() == 0 {
            tcp.flags = tcp.flags.with(TcpFlags::of_ace(a.received_ce.wrapping_add(CEP_INIT)));
            a.ce_pending = 0;
        }
        a.sent_with_dsack = fields.is_some() && dsack;
        if let Some(fields) = fields {
            let [e1, e0, ce] = a.received;
            tcp.accecn = Some(AccEcn::new(true, fields, [e1.wrapping_add(1), ce, e0.wrapping_add(1)]));
            a.least = 0;
            a.sent_us = mstamp;
            a.demand = a.demand.saturating_sub(1);
        }
    }
    /// Whether segments are sent ECN-capable: as long as nothing on the way spoils it.
    pub(super) fn accurate_ect(&self) -> bool {
        self.accurate.as_ref().is_some_and(|a| !a.pending && a.fail & (ACE_FAIL_RECV | ACE_FAIL_SEND) == 0)
    }

    /// What `TCP_INFO` tells of it.
    pub(super) fn accurate_info(&self) -> AccEcnInfo {
        let mode = match &self.accurate {
            Some(a) if a.pending => EcnMode::Pending,
            Some(_) => EcnMode::Accurate,
            None if self.tx.cc.ecn_ok() => EcnMode::Classic,
            None => EcnMode::Off,
        };
        let mut info = AccEcnInfo { mode, ..AccEcnInfo::default() };
        if let Some(a) = &self.accurate {
            (info.received_ce, info.received, info.delivered) = (a.received_ce, a.received, a.delivered);
            (info.fail_mode, info.option_seen) = (a.fail, a.seen as u8);
        }
        info
    }
}
