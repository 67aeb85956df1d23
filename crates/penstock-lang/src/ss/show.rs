//! The table that `ss` prints.
//!
//! Follows: iproute2 6.1.0 `misc/ss.c` `render`, `sock_state_print`, `inet_addr_print`, `inet_show_sock`, `tcp_stats_print`, `tcp_timer_print`,
//! `print_skmeminfo`, `print_summary`.
//! Differs: nobody looks at a terminal, so that columns are as wide as what is in them; sockets stand in the order of their addresses, Linux has
//! them in that of a hash which begins elsewhere at each start; there are no control groups to be named.

use super::{OTHERS, Request, table};
use crate::services;
use penstock_model::sockets::{ControlDiag, Protocol, Socket, SocketState, SocketTimer, TcpDiag};
use penstock_model::time::general;
use std::fmt::Write;
use std::net::IpAddr;

/// What else the table asks of the machine.
pub struct Around<'a> {
    /// The name of a device.
    pub device: &'a dyn Fn(u32) -> Option<String>,
    /// The ports that are chosen for sockets, first and last: their services are not named.
    pub ephemeral: (u16, u16),
}

/// A column: its heading, what stands before it, and whether it is set to the right.
const COLUMNS: [(&str, &str, bool); 10] = [
    ("Netid", "", false),
    ("State", " ", false),
    ("Recv-Q", " ", false),
    ("Send-Q", " ", false),
    ("Local Address:", " ", true),
    ("Port", "", false),
    ("Peer Address:", " ", true),
    ("Port", "", false),
    ("Process", "", false),
    ("", "", false),
];
const STATE: usize = 1;
/// The column of all that comes behind the addresses.
const MORE: usize = 8;

/// A line of the table, column by column.
type Row = [String; 10];

/// The table of the sockets that are asked for.
pub fn show(r: &Request, sockets: &[Socket], around: &Around<'_>) -> String {
    let mut rows: Vec<Row> = Vec::new();
    if !r.no_header {
        rows.push(COLUMNS.map(|c| c.0.to_owned()));
    }
    let mut meant: Vec<&Socket> = sockets.iter().filter(|s| r.means(s, around.ephemeral)).collect();
    meant.sort_by_key(|s| {
        let listens = s.state != SocketState::Listen;
        (s.protocol, listens, s.local.1, s.local.0, s.remote, s.cookie)
    });
    let headings = rows.len();
    rows.extend(meant.into_iter().map(|s| row(r, s, around)));
    render(r, &rows, headings)
}

/// Sets the columns. The last line's last cell has no part in their widths.
fn render(r: &Request, rows: &[Row], headings: usize) -> String {
    let mut shown = [true; 10];
    let tables = r.tables & (table::INET | OTHERS);
    shown[0] = tables & tables.wrapping_sub(1) != 0;
    shown[STATE] = r.states & (r.states.wrapping_sub(1)) != 0;
    let ends = |at: usize| at + 1 == rows.len() && at >= headings;
    let mut widths = [0; 10];
    let mut first = true;
    for (c, width) in widths.iter_mut().enumerate().filter(|(c, _)| shown[*c]) {
        let cells = rows.iter().enumerate().filter(|(at, _)| c < MORE || !ends(*at));
        let longest = cells.map(|(_, row)| row[c].len()).max().unwrap_or(0);
        *width = if first || longest == 0 { longest } else { longest + COLUMNS[c].1.len() };
        first &= *width == 0;
    }
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        let mut begun = false;
        for c in (0..10).filter(|c| shown[*c]) {
            if ends(at) && c > MORE {
                break;
            }
            let (_, before, right) = COLUMNS[c];
            let mut printed = 0;
            if std::mem::replace(&mut begun, true) {
                out += before;
                printed = before.len();
            }
            let fill = widths[c].saturating_sub(printed + row[c].len());
            let spaces = |out: &mut String, when: bool| {
                if when && widths[c] > 0 {
                    out.extend(std::iter::repeat_n(' ', fill));
                }
            };
            spaces(&mut out, right);
            out += &row[c];
            spaces(&mut out, !right);
        }
        out.push('\n');
    }
    out
}

fn row(r: &Request, s: &Socket, around: &Around<'_>) -> Row {
    let netid = match s.protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Raw(58) => "icmp6",
        Protocol::Raw(_) => "???",
    };
    let state = match s.state {
        SocketState::Established => "ESTAB",
        SocketState::SynSent => "SYN-SENT",
        SocketState::SynRecv => "SYN-RECV",
        SocketState::FinWait1 => "FIN-WAIT-1",
        SocketState::FinWait2 => "FIN-WAIT-2",
        SocketState::TimeWait => "TIME-WAIT",
        SocketState::Close => "UNCONN",
        SocketState::CloseWait => "CLOSE-WAIT",
        SocketState::LastAck => "LAST-ACK",
        SocketState::Listen => "LISTEN",
        SocketState::Closing => "CLOSING",
    };
    let device = (s.bound > 0).then(|| (around.device)(s.bound).unwrap_or_else(|| format!("if{}", s.bound)));
    let (local, local_port) = address(r, s, s.local, device, around);
    let (remote, remote_port) = address(r, s, s.remote, None, around);
    [
        netid.to_owned(),
        state.to_owned(),
        format!("{:<6}", s.recv_q),
        format!("{:<6}", s.send_q),
        local,
        local_port,
        remote,
        remote_port,
        more(r, s),
        String::new(),
    ]
}

fn address(
    r: &Request,
    s: &Socket,
    (addr, port): (IpAddr, u16),
    device: Option<String>,
    around: &Around<'_>,
) -> (String, String) {
    let mut text = match addr {
        IpAddr::V6(a) if a.is_unspecified() && s.dual => "*".to_owned(),
        IpAddr::V4(a) => a.to_string(),
        IpAddr::V6(a) => format!("[{a}]"),
    };
    if let Some(device) = device {
        let _ = write!(text, "%{device}");
    }
    text.push(':');
    (text, service(r, s.protocol, port, around))
}

fn service(r: &Request, protocol: Protocol, port: u16, around: &Around<'_>) -> String {
    let name = match (port, protocol) {
        (0, _) => return "*".to_owned(),
        _ if r.numeric => None,
        (1, Protocol::Raw(_)) => Some("icmp"),
        (58, Protocol::Raw(_)) => Some("ipv6-icmp"),
        (_, Protocol::Raw(_)) => None,
        _ if (around.ephemeral.0..=around.ephemeral.1).contains(&port) => None,
        (_, Protocol::Tcp) => services::name(port, 6),
        (_, Protocol::Udp) => services::name(port, 17),
    };
    name.map_or_else(|| port.to_string(), str::to_owned)
}

/// All that comes behind the addresses.
fn more(r: &Request, s: &Socket) -> String {
    let mut out = String::new();
    if r.processes || r.threads {
        users(r, s, &mut out);
    }
    if r.timers
        && let Some((what, ms, times)) = s.timer
    {
        let what = match what {
            SocketTimer::On => "on",
            SocketTimer::TimeWait => "timewait",
            SocketTimer::Persist => "persist",
        };
        let _ = write!(out, " timer:({what},{},{times})", timer(ms));
    }
    if r.details {
        let _ = write!(out, " ino:{} sk:{:x}", s.ino, s.cookie);
        if s.mark > 0 {
            let _ = write!(out, " fwmark:{:#x}", s.mark);
        }
        if let Some(shut) = s.shutdown {
            if s.local.0.is_ipv6() && matches!(s.state, SocketState::Listen | SocketState::Close) {
                let _ = write!(out, " v6only:{}", u8::from(!s.dual));
            }
            let sign = |closed: u8, open: char| if shut & closed != 0 { '-' } else { open };
            let _ = write!(out, " {}-{}", sign(1, '<'), sign(2, '>'));
        }
    }
    if r.tos && s.shutdown.is_some() {
        let hex = |n: u32| if n == 0 { "0".to_owned() } else { format!("{n:#x}") };
        // That of IPv6 is its traffic class; the marks of ECN stand in both.
        let of_four = if s.local.0.is_ipv6() { u32::from(s.tos & 3) } else { s.tos.into() };
        let _ = write!(out, " tos:{}", hex(of_four));
        if s.local.0.is_ipv6() {
            let _ = write!(out, " tclass:{}", hex(s.tos.into()));
        }
        let _ = write!(out, " class_id:{}", hex(s.priority));
    }
    let line = if r.oneline { "" } else { "\n\t" };
    if r.sockopts && s.shutdown.is_some() {
        let _ = write!(out, "{}inet-sockopt: (", if r.oneline { " " } else { line });
        if s.protocol == Protocol::Tcp {
            out += " is_icsk";
        }
        out += " mc_loop";
        if s.local.0.is_ipv4() {
            out += " mc_all";
        }
        out.push(')');
    }
    if r.memory || r.info && s.protocol != Protocol::Udp {
        out += line;
        if let Some(m) = s.memory.filter(|_| r.memory) {
            let _ = write!(
                out,
                " skmem:(r{},rb{},t{},tb{},f{},w{},o0,bl0,d{})",
                m.rmem, m.rcvbuf, m.wmem, m.sndbuf, m.forward, m.queued, m.drops
            );
        }
        if let Some(tcp) = s.tcp.as_deref().filter(|_| r.info) {
            stats(r, s.state, tcp, &mut out);
        }
    }
    out
}

fn users(r: &Request, s: &Socket, out: &mut String) {
    if let Some((name, pid, fd)) = &s.user {
        let thread = if r.threads { format!("tid={pid},") } else { String::new() };
        let name: String = name.chars().take(15).collect();
        let _ = write!(out, " users:((\"{name}\",pid={pid},{thread}fd={fd}))");
    }
}

/// How long a timer has still to run.
//= iproute2 6.1.0 misc/ss.c print_ms_timer
fn timer(ms: u32) -> String {
    let (mut secs, mut msecs) = (ms / 1_000, ms % 1_000);
    let minutes = secs / 60;
    secs %= 60;
    let mut out = String::new();
    if minutes > 0 {
        msecs = 0;
        let _ = write!(out, "{minutes}min");
        if minutes > 9 {
            secs = 0;
        }
    }
    if secs > 0 {
        if secs > 9 {
            msecs = 0;
        }
        let _ = write!(out, "{secs}{}", if msecs > 0 { "." } else { "sec" });
    }
    if msecs > 0 {
        let _ = write!(out, "{msecs:03}ms");
    }
    out
}

/// A rate, bits a second.
fn rate(r: &Request, bits: f64) -> String {
    if r.numeric {
        return format!("{bits:.0}");
    }
    for (unit, letter) in [(1e12, 'T'), (1e9, 'G'), (1e6, 'M'), (1e3, 'k')] {
        if bits >= unit {
            return format!("{}{letter}", general(bits / unit, 3));
        }
    }
    general(bits, 6)
}

/// A number that is not said where it is 0.
fn said(out: &mut String, name: &str, value: u64) {
    if value != 0 {
        let _ = write!(out, " {name}:{value}");
    }
}

fn stats(r: &Request, state: SocketState, t: &TcpDiag, out: &mut String) {
    if r.timers {
        for (is, name) in [
            (t.timestamps, " ts"),
            (t.sack, " sack"),
            (t.ecn, " ecn"),
            (t.ecn_seen, " ecnseen"),
            (t.fastopen, " fastopen"),
        ] {
            if is {
                *out += name;
            }
        }
    }
    let _ = write!(out, " {}", t.cc);
    if let Some((snd, rcv)) = t.wscale {
        let _ = write!(out, " wscale:{snd},{rcv}");
    }
    let ms = |us: u32| general(f64::from(us) / 1_000.0, 6);
    if t.rto_us != 0 && t.rto_us != 3_000_000 {
        let _ = write!(out, " rto:{}", ms(t.rto_us));
    }
    said(out, "backoff", t.backoff.into());
    if t.rtt_us != 0 {
        let _ = write!(out, " rtt:{}/{}", ms(t.rtt_us), ms(t.rttvar_us));
    }
    if t.ato_us != 0 {
        let _ = write!(out, " ato:{}", ms(t.ato_us));
    }
    said(out, "mss", t.snd_mss.into());
    said(out, "pmtu", t.pmtu.into());
    said(out, "rcvmss", t.rcv_mss.into());
    said(out, "advmss", t.advmss.into());
    said(out, "cwnd", t.snd_cwnd.into());
    said(out, "ssthresh", if t.snd_ssthresh < 0xffff { t.snd_ssthresh.into() } else { 0 });
    for (name, value) in [
        ("bytes_sent", t.bytes_sent),
        ("bytes_retrans", t.bytes_retrans),
        ("bytes_acked", t.bytes_acked),
        ("bytes_received", t.bytes_received),
        ("segs_out", t.segs_out),
        ("segs_in", t.segs_in),
        ("data_segs_out", t.data_segs_out),
        ("data_segs_in", t.data_segs_in),
    ] {
        said(out, name, value);
    }
    control(r, t, out);
    rates(r, t, out);
    if t.busy_us != 0 {
        let _ = write!(out, " busy:{}ms", t.busy_us / 1_000);
        for (name, us) in [("rwnd_limited", t.rwnd_limited_us), ("sndbuf_limited", t.sndbuf_limited_us)] {
            if us != 0 {
                let share = 100.0 * us as f64 / t.busy_us as f64;
                let _ = write!(out, " {name}:{}ms({share:.1}%)", us / 1_000);
            }
        }
    }
    said(out, "unacked", t.unacked.into());
    if t.retrans != 0 || t.total_retrans != 0 {
        let _ = write!(out, " retrans:{}/{}", t.retrans, t.total_retrans);
    }
    said(out, "lost", t.lost.into());
    said(out, "sacked", if state == SocketState::Listen { 0 } else { t.sacked.into() });
    said(out, "dsack_dups", t.dsack_dups);
    if t.reordering != 3 {
        let _ = write!(out, " reordering:{}", t.reordering);
    }
    said(out, "reord_seen", t.reord_seen.into());
    if t.rcv_rtt_us != 0 {
        let _ = write!(out, " rcv_rtt:{}", ms(t.rcv_rtt_us));
    }
    said(out, "rcv_space", t.rcv_space.into());
    said(out, "rcv_ssthresh", t.rcv_ssthresh.into());
    said(out, "notsent", t.notsent);
    if t.min_rtt_us != 0 && t.min_rtt_us != u32::MAX {
        let _ = write!(out, " minrtt:{}", ms(t.min_rtt_us));
    }
    said(out, "rcv_ooopack", t.rcv_ooopack.into());
    said(out, "snd_wnd", t.snd_wnd.into());
}

/// What the congestion control says of itself.
fn control(r: &Request, t: &TcpDiag, out: &mut String) {
    match t.control {
        Some(ControlDiag::Dctcp(Some([ce, alpha, marked, all]))) => {
            let _ = write!(out, " dctcp:(ce_state:{ce},alpha:{alpha},ab_ecn:{marked},ab_tot:{all})");
        }
        Some(ControlDiag::Dctcp(None)) => *out += " dctcp:fallback_mode",
        Some(ControlDiag::Bbr(bytes, min_rtt, pacing, cwnd)) => {
            let bits = rate(r, bytes as f64 * 8.0);
            let rtt = general(f64::from(min_rtt) / 1_000.0, 6);
            let _ = write!(out, " bbr:(bw:{bits}bps,mrtt:{rtt}");
            for (name, gain) in [("pacing_gain", pacing), ("cwnd_gain", cwnd)] {
                if gain != 0 {
                    let _ = write!(out, ",{name}:{}", general(f64::from(gain) / 256.0, 6));
                }
            }
            out.push(')');
        }
        Some(ControlDiag::Vegas(..)) | None => {}
    }
}

fn rates(r: &Request, t: &TcpDiag, out: &mut String) {
    let rtt = match t.control {
        Some(ControlDiag::Vegas(true, rtt)) if rtt != 0 && rtt != 0x7fff_ffff => rtt,
        _ => t.rtt_us,
    };
    if rtt > 0 && t.snd_mss > 0 && t.snd_cwnd > 0 {
        let bits = f64::from(t.snd_cwnd) * f64::from(t.snd_mss) * 8_000_000.0 / f64::from(rtt);
        let _ = write!(out, " send {}bps", rate(r, bits));
    }
    said(out, "lastsnd", t.last_data_sent_ms.into());
    said(out, "lastrcv", t.last_data_recv_ms.into());
    said(out, "lastack", t.last_ack_recv_ms.into());
    if t.pacing_rate != 0 && t.pacing_rate != u64::MAX {
        let _ = write!(out, " pacing_rate {}bps", rate(r, t.pacing_rate as f64 * 8.0));
    }
    if t.delivery_rate != 0 {
        let _ = write!(out, " delivery_rate {}bps", rate(r, t.delivery_rate as f64 * 8.0));
    }
    said(out, "delivered", t.delivered);
    said(out, "delivered_ce", t.delivered_ce);
    if t.app_limited {
        *out += " app_limited";
    }
}

/// What `ss -s` prints. Counts of the machine's own sockets.
pub fn summary(sockets: &[Socket], queues: [usize; 2]) -> String {
    let count = |what: &dyn Fn(&Socket) -> bool| sockets.iter().filter(|s| what(s)).count();
    let of = |p: fn(Protocol) -> bool, six: bool| {
        let hashed = |s: &Socket| !matches!(s.state, SocketState::TimeWait | SocketState::SynRecv);
        count(&|s| p(s.protocol) && s.local.0.is_ipv6() == six && hashed(s))
    };
    let is_tcp = |p| p == Protocol::Tcp;
    let waits = count(&|s| s.state == SocketState::TimeWait);
    let open = count(&|s| {
        is_tcp(s.protocol) && matches!(s.state, SocketState::Established | SocketState::CloseWait)
    });
    let full =
        count(&|s| is_tcp(s.protocol) && !matches!(s.state, SocketState::TimeWait | SocketState::SynRecv));
    let orphans = count(&|s| is_tcp(s.protocol) && s.shutdown.is_some() && s.ino == 0);
    let total = count(&|s| s.ino != 0);
    let mut out = format!(
        "Total: {total}\nTCP:   {} (estab {open}, closed {waits}, orphaned {orphans}, timewait {waits})\n\n",
        full + waits
    );
    out += "Transport Total     IP        IPv6\n";
    let mut line = |name: &str, [four, six]: [usize; 2]| {
        let _ = writeln!(out, "{name}\t  {:<9} {four:<9} {six:<9}", four + six);
    };
    let raw = [false, true].map(|six| of(|p| matches!(p, Protocol::Raw(_)), six));
    let udp = [false, true].map(|six| of(|p| p == Protocol::Udp, six));
    let tcp = [false, true].map(|six| of(|p| p == Protocol::Tcp, six));
    line("RAW", raw);
    line("UDP", udp);
    line("TCP", tcp);
    line("INET", [0, 1].map(|n| raw[n] + udp[n] + tcp[n]));
    line("FRAG", queues);
    out.push('\n');
    out
}
