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
    /// A connection as the program shows it: with its family and its number where these are asked for.
    pub(crate) fn shown_line(&self, c: &Connection, family: bool, id: Option<u32>, now: Time) -> String {
        let head = match (family, c.is_ipv6()) {
            (false, _) => "",
            (true, false) => "ipv4     2 ",
            (true, true) => "ipv6     10 ",
        };
        let zone = match c.tuples[0].zone {
            0 => String::new(),
            zone => format!("zone={zone} "),
        };
        let id = id.map_or(String::new(), |id| format!(" id={id}"));
        format!("{head}{}{zone}use=1{id}", self.line(c, self.ticks(now), false))
    }
    /// The same as a command that makes it (`ct_save_snprintf`), behind its letter.
    pub(crate) fn saved_line(&self, c: &Connection, now: Time) -> String {
        let names = [
            (status::EXPECTED, "EXPECTED"),
            (status::SEEN_REPLY, "SEEN_REPLY"),
            (status::ASSURED, "ASSURED"),
            (status::FIXED_TIMEOUT, "FIXED_TIMEOUT"),
        ];
        let said: Vec<&str> = names.iter().filter(|n| c.has(n.0)).map(|n| n.1).collect();
        let said = if said.is_empty() { "UNSET".to_owned() } else { said.join(",") };
        let mut out = format!("-t {} -u {said} ", self.seconds_left(c, now));
        let [original, reply] = c.tuples;
        if original.zone != 0 {
            let _ = write!(out, "-w {} ", original.zone);
        }
        let addr = |a: u128| match c.is_ipv6() {
            true => Ipv6Addr::from(a).to_string(),
            false => Ipv4Addr::from(a as u32).to_string(),
        };
        let dnat = if c.has(status::DST_NAT_DONE) && reply.src != original.dst { "-g" } else { "-r" };
        let snat = if c.has(status::SRC_NAT_DONE) && reply.dst != original.src { "-n" } else { "-q" };
        let _ =
            write!(out, "-s {} -d {} {dnat} {} ", addr(original.src), addr(original.dst), addr(reply.src));
        let _ = write!(out, "{snat} {} ", addr(reply.dst));
        match original.protocol {
            p @ (1 | 58) => {
                let name = protocol_name(p);
                let (ty, code) = (original.dport >> 8, original.dport & 0xff);
                let _ = write!(
                    out,
                    "-p {name} --{name}-type {ty} --{name}-code {code} --{name}-id {}",
                    original.sport
                );
            }
            p @ (6 | 17 | 136) => {
                let _ = write!(
                    out,
                    "-p {} --sport {} --dport {}",
                    protocol_name(p),
                    original.sport,
                    original.dport
                );
                let _ = write!(out, " --reply-port-src {} --reply-port-dst {}", reply.sport, reply.dport);
                if p == 6 {
                    let _ = write!(out, " --state {}", Self::tcp_name(c));
                }
            }
            p => {
                let _ = write!(out, "-p {p}");
            }
        }
        out
    }
    /// The same as XML.
    pub(crate) fn xml_line(&self, c: &Connection, id: u32, now: Time) -> String {
        let six = c.is_ipv6();
        let (number, family) = if six { (10, "ipv6") } else { (2, "ipv4") };
        let addr = |a: u128| match six {
            true => Ipv6Addr::from(a).to_string(),
            false => Ipv4Addr::from(a as u32).to_string(),
        };
        let mut out = "<flow>".to_owned();
        for (n, t) in c.tuples.iter().enumerate() {
            let direction = ["original", "reply"][n];
            let _ = write!(
                out,
                "<meta direction=\"{direction}\"><layer3 protonum=\"{number}\" protoname=\"{family}\">"
            );
            let _ = write!(out, "<src>{}</src><dst>{}</dst></layer3>", addr(t.src), addr(t.dst));
            let name = protocol_name(t.protocol);
            let _ = write!(out, "<layer4 protonum=\"{}\" protoname=\"{name}\">", t.protocol);
            if matches!(t.protocol, 6 | 17 | 33 | 132 | 136) {
                let _ = write!(out, "<sport>{}</sport><dport>{}</dport>", t.sport, t.dport);
            }
            out += "</layer4>";
            if self.shows_counts {
                let (packets, bytes) = (c.packets[n], c.bytes[n]);
                let _ =
                    write!(out, "<counters><packets>{packets}</packets><bytes>{bytes}</bytes></counters>");
            }
            out += "</meta>";
        }
        out += "<meta direction=\"independent\">";
        if c.tuples[0].protocol == 6 {
            let _ = write!(out, "<state>{}</state>", Self::tcp_name(c));
        }
        let _ = write!(out, "<timeout>{}</timeout><mark>{}</mark>", self.seconds_left(c, now), c.mark);
        if c.tuples[0].zone != 0 {
            let _ = write!(out, "<zone>{}</zone>", c.tuples[0].zone);
        }
        let _ = write!(out, "<use>1</use><id>{id}</id>");
        out += if c.has(status::ASSURED) { "<assured/>" } else { "" };
        out += if c.has(status::SEEN_REPLY) { "" } else { "<unreplied/>" };
        out + "</meta></flow>"
    }
    /// How many there are (`nf_conntrack_count`).
    pub(crate) fn count(&self, now: Time) -> usize {
        self.shown(self.ticks(now)).count()
    }
}
