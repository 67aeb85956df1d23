//! The table of connections as text.
//!
//! Follows: linux v6.12 `net/netfilter/nf_conntrack_standalone.c` `ct_seq_show`; conntrack-tools 1.4 `snprintf_default.c`.

use super::{Connection, Tracking, Tuple, status, tcp};
use penstock_model::Time;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

fn protocol_name(protocol: u8) -> &'static str {
    match protocol {
        1 => "icmp",
        6 => "tcp",
        17 => "udp",
        33 => "dccp",
        47 => "gre",
        58 => "icmpv6",
        132 => "sctp",
        136 => "udplite",
        _ => "unknown",
    }
}

/// Addresses, and what stands for ports. The kernel writes addresses of IPv6 out (`%pI6`), `conntrack` does not.
fn tuple(t: &Tuple, ip6: bool, out: bool) -> String {
    let addr = |a: u128| match (ip6, out) {
        (true, true) => Ipv6Addr::from(a).segments().map(|s| format!("{s:04x}")).join(":"),
        (true, false) => Ipv6Addr::from(a).to_string(),
        (false, _) => Ipv4Addr::from(a as u32).to_string(),
    };
    let mut out = format!("src={} dst={} ", addr(t.src), addr(t.dst));
    if t.is_icmp() {
        let _ = write!(out, "type={} code={} id={} ", t.dport >> 8, t.dport & 0xff, t.sport);
    } else if matches!(t.protocol, 6 | 17 | 33 | 132 | 136) {
        let _ = write!(out, "sport={} dport={} ", t.sport, t.dport);
    }
    out
}

impl Tracking {
    fn line(&self, c: &Connection, now: i64, kernel: bool) -> String {
        let acct = self.shows_counts;
        let ip6 = c.is_ipv6();
        let protocol = c.tuples[0].protocol;
        let mut out = format!("{:<8} {protocol} ", protocol_name(protocol));
        let _ = write!(out, "{} ", (c.expires - now).max(0) / self.hz());
        if protocol == 6 {
            let _ = write!(out, "{} ", tcp::NAMES[usize::from(c.tcp.state)]);
        }
        for (n, t) in c.tuples.iter().enumerate() {
            out += &tuple(t, ip6, kernel);
            if acct {
                let _ = write!(out, "packets={} bytes={} ", c.packets[n], c.bytes[n]);
            }
            if n == 0 && !c.has(status::SEEN_REPLY) {
                out += "[UNREPLIED] ";
            }
        }
        if c.has(status::ASSURED) {
            out += "[ASSURED] ";
        }
        let _ = write!(out, "mark={} ", c.mark);
        out
    }
    fn shown(&self, now: i64) -> impl Iterator<Item = &Connection> {
        self.connections.values().filter(move |c| c.has(status::CONFIRMED) && c.expires > now)
    }
    /// `/proc/net/nf_conntrack`: the oldest first.
    pub fn proc_text(&self, now: Time) -> String {
        let now = self.ticks(now);
        let mut out = String::new();
        for c in self.shown(now) {
            let family = if c.is_ipv6() { "ipv6     10 " } else { "ipv4     2 " };
            let _ = writeln!(out, "{family}{}zone={} use=2", self.line(c, now, true), c.tuples[0].zone);
        }
        out
    }
    /// `conntrack -L` of those that hold, and how many these are.
    pub(crate) fn list(&self, now: Time, holds: impl Fn(&Connection) -> bool) -> (String, usize) {
        let now = self.ticks(now);
        let mut out = String::new();
        let mut count = 0;
        for c in self.shown(now).filter(|c| holds(c)) {
            let zone = match c.tuples[0].zone {
                0 => String::new(),
                zone => format!("zone={zone} "),
            };
            let _ = writeln!(out, "{}{zone}use=1", self.line(c, now, false));
            count += 1;
        }
        (out, count)
    }
    /// How many there are (`nf_conntrack_count`).
    pub(crate) fn count(&self, now: Time) -> usize {
        self.shown(self.ticks(now)).count()
    }
}
