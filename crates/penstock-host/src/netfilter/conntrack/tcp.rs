//! TCP's states as a machine on the way sees them, and which segments belong to none.
//!
//! Follows: linux v6.12 `net/netfilter/nf_conntrack_proto_tcp.c` `nf_conntrack_tcp_packet`, `tcp_new`, `tcp_in_window`, `tcp_conntracks`;
//! the method is Guido van Rooij's (SANE 2000).
//! Differs: no SYN proxy.

use super::{Kept, Timeouts};
use penstock_packet::{Skb, Tcp, TcpFlags};

/// States by number: their names in `/proc/net/nf_conntrack`.
pub(super) const NAMES: [&str; 10] = [
    "NONE",
    "SYN_SENT",
    "SYN_RECV",
    "ESTABLISHED",
    "FIN_WAIT",
    "CLOSE_WAIT",
    "LAST_ACK",
    "TIME_WAIT",
    "CLOSE",
    "SYN_SENT2",
];
const NO: u8 = 0;
const SS: u8 = 1;
const SR: u8 = 2;
const ES: u8 = 3;
const FW: u8 = 4;
const CW: u8 = 5;
const LA: u8 = 6;
const TW: u8 = 7;
const CL: u8 = 8;
const S2: u8 = 9;
/// The segment belongs to no connection.
const IV: u8 = 10;
/// The segment changes nothing.
const IG: u8 = 11;

/// What a segment is, by RST, SYN, FIN and ACK.
const SYN: u8 = 0;
const SYNACK: u8 = 1;
const FIN: u8 = 2;
const ACK: u8 = 3;
const RST: u8 = 4;
const NONE: u8 = 5;

//= linux v6.12 net/netfilter/nf_conntrack_proto_tcp.c tcp_conntracks
const NEXT: [[[u8; 10]; 6]; 2] = [
    [
        [SS, SS, IG, IG, IG, IG, IG, SS, SS, S2],
        [IV, IV, SR, IV, IV, IV, IV, IV, IV, SR],
        [IV, IV, FW, FW, LA, LA, LA, TW, CL, IV],
        [ES, IV, ES, ES, CW, CW, TW, TW, CL, IV],
        [IV, CL, CL, CL, CL, CL, CL, CL, CL, CL],
        [IV; 10],
    ],
    [
        [IV, S2, IV, IV, IV, IV, IV, SS, IV, S2],
        [IV, SR, IG, IG, IG, IG, IG, IG, IG, SR],
        [IV, IV, FW, FW, LA, LA, LA, TW, CL, IV],
        [IV, IG, SR, ES, CW, CW, TW, TW, CL, IG],
        [IV, CL, CL, CL, CL, CL, CL, CL, CL, CL],
        [IV; 10],
    ],
];

/// The least window an ACK may be behind (`MAXACKWINCONST`).
const MAXACKWIN: u32 = 66_000;

/// One side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Side {
    end: u32,
    max_end: u32,
    max_win: u32,
    max_ack: u32,
    scale: u8,
    window_scale: bool,
    sack_permitted: bool,
    liberal: bool,
    close_init: bool,
    unacknowledged: bool,
    max_ack_set: bool,
}

/// What is kept of a connection (`struct ip_ct_tcp`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct State {
    seen: [Side; 2],
    pub(super) state: u8,
    last_dir: u8,
    retrans: u8,
    last_index: u8,
    last_seq: u32,
    last_ack: u32,
    last_end: u32,
    last_win: u16,
    last_scale: u8,
    last_window_scale: bool,
    last_sack_permitted: bool,
    challenge_ack: bool,
    simultaneous: bool,
}

impl State {
    /// TIME_WAIT or CLOSE.
    /// A program says its state: no windows are known, and all that comes is in them.
    //= linux v6.12 net/netfilter/nf_conntrack_proto_tcp.c nlattr_to_tcp
    pub(super) fn say(&mut self, state: u8) {
        self.state = state;
        for side in &mut self.seen {
            (side.liberal, side.sack_permitted, side.close_init) = (true, true, state >= TW);
        }
    }
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, TW | CL)
    }
}

/// What comes of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// It is let pass, and counts for nothing.
    Passes,
    /// It belongs to the connection, which is kept so long: ticks.
    Keeps(i64, Assured),
    /// The same, and only answers ever came: the connection is forgotten.
    Kills,
    /// It belongs to none.
    Invalid,
    /// The connection is over, and the segment begins another.
    Reopens,
}

/// Whether the connection is assured from now on.
pub(super) type Assured = bool;

fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
fn after(a: u32, b: u32) -> bool {
    before(b, a)
}

fn index(t: &Tcp) -> u8 {
    let has = |f| t.flags.has(f);
    match () {
        () if has(TcpFlags::RST) => RST,
        () if has(TcpFlags::SYN) && has(TcpFlags::ACK) => SYNACK,
        () if has(TcpFlags::SYN) => SYN,
        () if has(TcpFlags::FIN) => FIN,
        () if has(TcpFlags::ACK) => ACK,
        () => NONE,
    }
}

/// The sequence number behind a segment.
fn end_of(skb: &Skb, t: &Tcp) -> u32 {
    let data = skb.len.saturating_sub(skb.headers_before_l4() + t.header_len());
    let flag = |f| u32::from(t.flags.has(f));
    t.seq.wrapping_add(data + flag(TcpFlags::SYN) + flag(TcpFlags::FIN))
}

/// `tcp_error`: whether these flags go together.
fn flags_are_valid(t: &Tcp) -> bool {
    const U: u16 = TcpFlags::URG.0;
    let ack = TcpFlags::ACK.0;
    let flags = t.flags.0 & !(TcpFlags::PSH.0 | TcpFlags::ECE.0 | TcpFlags::CWR.0 | TcpFlags::AE.0);
    let known = [
        TcpFlags::SYN.0,
        TcpFlags::SYN.0 | U,
        TcpFlags::SYN.0 | ack,
        TcpFlags::RST.0,
        TcpFlags::RST.0 | ack,
        TcpFlags::FIN.0 | ack,
        TcpFlags::FIN.0 | ack | U,
        ack,
        ack | U,
    ];
    known.contains(&flags)
}

impl Side {
    /// `tcp_options`: of a SYN.
    fn options(&mut self, t: &Tcp) {
        (self.window_scale, self.sack_permitted, self.close_init) = (false, false, false);
        (self.unacknowledged, self.max_ack_set) = (false, false);
        self.scale = 0;
        if t.sack_permitted {
            self.sack_permitted = true;
        }
        if let Some(scale) = t.wscale {
            self.scale = scale.min(14);
            self.window_scale = true;
        }
    }
}

impl State {
    /// `tcp_new`: the first segment; whether a connection may begin with it.
    fn begins(&mut self, skb: &Skb, t: &Tcp, loose: bool) -> bool {
        let next = NEXT[0][usize::from(index(t))][usize::from(NO)];
        if next == IV || (next != SS && !loose) {
            return false;
        }
        *self = State::default();
        let end = end_of(skb, t);
        let first = &mut self.seen[0];
        (first.end, first.max_end) = (end, end);
        first.max_win = u32::from(t.window).max(1);
        if next == SS {
            first.options(t);
        } else {
            // The middle of a connection: its history is not known.
            first.max_end = end.wrapping_add(first.max_win);
            for side in &mut self.seen {
                (side.sack_permitted, side.liberal) = (true, true);
            }
        }
        self.last_index = NONE;
        true
    }

    fn init_sender(&mut self, dir: usize, t: &Tcp, end: u32, win: u32) {
        let sender = &mut self.seen[dir];
        (sender.end, sender.max_end, sender.max_win) = (end, end, win.max(1));
        sender.options(t);
        // Both sides must send the option.
        if dir == 1 && !(self.seen[0].window_scale && self.seen[1].window_scale) {
            self.seen[0].scale = 0;
            self.seen[1].scale = 0;
        }
    }

    /// `tcp_in_window`. `Some(false)`: invalid; `None`: let pass without looking further.
    fn in_window(&mut self, dir: usize, index: u8, skb: &Skb, t: &Tcp, liberal: bool) -> Option<bool> {
        let other = 1 - dir;
        let (mut seq, mut ack, mut sack) = (t.seq, t.ack, t.ack);
        let mut win = u32::from(t.window);
        let mut end = end_of(skb, t);
        let (syn, has_ack, rst) =
            (t.flags.has(TcpFlags::SYN), t.flags.has(TcpFlags::ACK), t.flags.has(TcpFlags::RST));
        if self.seen[other].sack_permitted {
            for &(_, right) in t.sack_blocks() {
                sack = if after(right, sack) { right } else { sack };
            }
        }
        if self.seen[dir].max_win == 0 {
            if syn {
                self.init_sender(dir, t, end, win);
                if !has_ack {
                    return Some(true);
                }
            } else {
                let [sender, receiver] = self.sides(dir);
                sender.end = end;
                sender.max_win = (win << sender.scale).max(1);
                sender.max_end = end.wrapping_add(sender.max_win);
                if receiver.max_win == 0 {
                    (receiver.end, receiver.max_end) = (sack, sack);
                } else if sack == receiver.end.wrapping_add(1) {
                    receiver.end = receiver.end.wrapping_add(1);
                }
            }
        } else if syn && after(end, self.seen[dir].end) && matches!(self.state, SS | SR) {
            self.init_sender(dir, t, end, win);
            if dir == 1 && !has_ack {
                return Some(true);
            }
        }
        let state = self.state;
        let [sender, receiver] = self.sides(dir);
        let liberal = liberal || sender.liberal;
        if !has_ack || (rst && ack == 0) {
            (ack, sack) = (receiver.end, receiver.end);
        }
        if rst && seq == 0 && state == SS {
            (seq, end) = (sender.end, sender.end);
        }
        let ack_window = sender.max_win.max(MAXACKWIN);
        let low_ack = receiver.end.wrapping_sub(ack_window).wrapping_sub(1);
        let low_seq = sender.end.wrapping_sub(receiver.max_win).wrapping_sub(1);
        let mut verdict = None;
        if !before(seq, sender.max_end.wrapping_add(1)) {
            let overshot = end.wrapping_sub(sender.max_end).wrapping_add(1);
            let in_recv_win = receiver.max_win != 0 && after(end, low_seq);
            let lenient = in_recv_win
                && after(sack, low_ack)
                && overshot <= receiver.max_win
                && before(sack, receiver.end.wrapping_add(1));
            if lenient {
                sender.end = end;
                sender.unacknowledged = true;
            }
            verdict = Some(lenient);
        } else if !before(sack, receiver.end.wrapping_add(1)) {
            verdict = Some(false);
        } else if (receiver.max_win != 0 && !after(end, low_seq)) || !after(sack, low_ack) {
            verdict = Some(true);
        }
        match verdict {
            Some(_) if liberal => return Some(true),
            Some(true) => return None,
            Some(false) => return Some(false),
            None => {}
        }
        if !syn {
            win <<= sender.scale;
        }
        sender.max_win = sender.max_win.max(win.wrapping_add(sack.wrapping_sub(ack)));
        if after(end, sender.end) {
            sender.end = end;
            sender.unacknowledged = true;
        }
        if has_ack && (!sender.max_ack_set || after(ack, sender.max_ack)) {
            sender.max_ack = ack;
            sender.max_ack_set = true;
        }
        if receiver.max_win != 0 && after(end, sender.max_end) {
            receiver.max_win = receiver.max_win.wrapping_add(end.wrapping_sub(sender.max_end));
        }
        if after(sack.wrapping_add(win), receiver.max_end.wrapping_sub(1)) {
            receiver.max_end = sack.wrapping_add(win).wrapping_add(u32::from(win == 0));
        }
        if ack == receiver.end {
            receiver.unacknowledged = false;
        }
        if index == ACK {
            let now = (dir as u8, seq, ack, end, t.window);
            if (self.last_dir, self.last_seq, self.last_ack, self.last_end, self.last_win) == now {
                self.retrans = self.retrans.saturating_add(1);
            } else {
                (self.last_dir, self.last_seq, self.last_ack, self.last_end, self.last_win) = now;
                self.retrans = 0;
            }
        }
        Some(true)
    }

    /// Whether a connection that begins may have the tuple of one that has ended (`nf_nat_may_kill`, `nf_seq_has_advanced`).
    pub(super) fn takes_place_of(&self, old: &State) -> bool {
        self.state == SS && matches!(old.state, TW | CL | S2) && after(self.seen[0].end, old.seen[0].end)
    }

    fn sides(&mut self, dir: usize) -> [&mut Side; 2] {
        let [first, second] = &mut self.seen;
        if dir == 0 { [first, second] } else { [second, first] }
    }

    /// `nf_conntrack_tcp_packet`.
    pub(super) fn packet(&mut self, skb: &Skb, t: &Tcp, kept: Kept, dir: usize, times: &Timeouts) -> Said {
        if !flags_are_valid(t) {
            return Said::Invalid;
        }
        if !kept.confirmed && !self.begins(skb, t, times.tcp_loose) {
            return Said::Invalid;
        }
        let (old, index) = (self.state, index(t));
        let mut old_state = old;
        let mut new = NEXT[dir][usize::from(index)][usize::from(old)];
        let mut look_at_window = true;
        if new == SS && old >= TW {
            let closed = self.seen.iter().any(|s| s.close_init);
            if closed || (usize::from(self.last_dir) == dir && self.last_index == RST) {
                return Said::Reopens;
            }
            new = IG;
        }
        match new {
            IG => {
                let in_sync = index == SYNACK
                    && self.last_index == SYN
                    && usize::from(self.last_dir) != dir
                    && t.ack == self.last_end;
                if !in_sync {
                    self.annotate(skb, t, index, dir, old);
                    return Said::Passes;
                }
                (old_state, new) = (SS, SR);
                let (end, win) = (self.last_end, u32::from(self.last_win).max(1));
                let last = &mut self.seen[usize::from(self.last_dir)];
                (last.end, last.max_end, last.max_win, last.scale) = (end, end, win, self.last_scale);
                (last.window_scale, last.sack_permitted) = (self.last_window_scale, self.last_sack_permitted);
                (last.liberal, last.close_init, last.unacknowledged, last.max_ack_set) =
                    (false, false, false, false);
                self.challenge_ack = false;
                self.seen[dir] = Side { liberal: self.seen[dir].liberal, ..Side::default() };
            }
            IV => return Said::Invalid,
            TW if old == LA
                && index == ACK
                && usize::from(self.last_dir) != dir
                && self.last_index == SYN
                && self.challenge_ack =>
            {
                self.challenge_ack = false;
                return Said::Passes;
            }
            S2 => self.simultaneous = true,
            SR if dir == 1 && index == ACK && self.simultaneous => new = ES,
            CL if index == RST => match self.reset(t, kept, dir, old) {
                Some((state, looks)) => (new, look_at_window) = (state, looks),
                None => return Said::Invalid,
            },
            _ => {}
        }
        if look_at_window {
            match self.in_window(dir, index, skb, t, times.tcp_be_liberal) {
                None => return Said::Passes,
                Some(false) => {
                    self.note_invalid(kept, index, dir);
                    return Said::Invalid;
                }
                Some(true) => {}
            }
        }
        (self.last_index, self.last_dir, self.state) = (index, dir as u8, new);
        if old_state != new && new == FW {
            self.seen[dir].close_init = true;
        }
        self.keeps(index, old_state, kept, times)
    }

    /// What is noted of a segment that is let pass.
    fn annotate(&mut self, skb: &Skb, t: &Tcp, index: u8, dir: usize, old: u8) {
        (self.last_index, self.last_dir) = (index, dir as u8);
        (self.last_seq, self.last_end, self.last_win) = (t.seq, end_of(skb, t), t.window);
        if index == SYN && dir == 0 {
            let mut seen = Side::default();
            seen.options(t);
            (self.last_window_scale, self.last_scale) = (seen.window_scale, seen.scale);
            self.last_sack_permitted = seen.sack_permitted;
            self.challenge_ack = old == LA;
        }
        if old == SS && index == ACK && dir == 1 {
            self.last_ack = t.ack;
        }
    }

    /// A reset: the state it leads to and whether its window is looked at; `None`: it is invalid.
    fn reset(&mut self, t: &Tcp, kept: Kept, dir: usize, old: u8) -> Option<(u8, bool)> {
        if matches!(old, FW | LA | TW | CL | CW) {
            return Some((CL, false));
        }
        let mut new = CL;
        let peer = self.seen[1 - dir];
        let established = old == ES;
        if peer.max_ack_set && self.last_index != SYN {
            if t.seq == 0 && !established {
                return Some((CL, true));
            }
            if before(t.seq, peer.max_ack) {
                return None;
            }
            if !established || t.seq == peer.max_ack {
                return Some((CL, true));
            }
            if self.last_index == ACK && usize::from(self.last_dir) == dir && t.seq == self.last_end {
                return Some((CL, true));
            }
            new = old;
        }
        let answers_syn = kept.seen_reply && self.last_index == SYN && usize::from(self.last_dir) != dir;
        let answers_ack = !kept.assured && self.last_index == ACK;
        if (answers_syn || answers_ack) && t.ack == self.last_end {
            return Some((new, false));
        }
        let challenged = old == SS && self.last_index == ACK && self.last_dir == 1 && t.seq == self.last_ack;
        Some((new, !challenged))
    }

    /// `nf_tcp_handle_invalid`, but for the time it shortens.
    fn note_invalid(&mut self, kept: Kept, index: u8, dir: usize) {
        let seen = usize::from(self.last_dir) != dir && matches!(self.last_index, FIN | RST);
        if kept.assured && matches!(index, RST | FIN) && !seen {
            (self.last_index, self.last_dir) = (index, dir as u8);
        }
    }

    /// How long a segment that belongs to the connection keeps it.
    fn keeps(&self, index: u8, old: u8, kept: Kept, times: &Timeouts) -> Said {
        let new = self.state;
        let least = |other: i64| times.tcp[usize::from(new)].min(other);
        let mut time = times.tcp[usize::from(new)];
        if self.retrans >= times.tcp_max_retrans {
            time = least(times.tcp_retrans);
        } else if (index == RST && new == ES) || self.seen.iter().any(|s| s.unacknowledged) {
            time = least(times.tcp_unack);
        } else if self.last_win == 0 {
            time = least(times.tcp_retrans);
        }
        if !kept.seen_reply {
            if index == RST {
                return Said::Kills;
            }
            if index == SYN && old == SS {
                return Said::Passes;
            }
            if new == ES {
                time = time.min(times.tcp_unack);
            }
            return Said::Keeps(time, false);
        }
        let assured = !kept.assured && matches!(old, SR | ES) && new == ES;
        Said::Keeps(time, assured)
    }
}
