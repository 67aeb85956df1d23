//! `tcp`, `udp`, `sctp`, `multiport`.

use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, Value, fault, number, opt, port};
use super::{Ext, Head, ext};
use crate::iptables::{Asks, Match, Plain, PortKind, PortMatch, Ports, TcpMatch};

pub(super) const MATCHES: &[Ext<Match>] = &[
    ext("multiport", MULTIPORT, multiport).reads(read_multiport).checks(|seen, head| {
        if seen.0.is_empty() {
            return fault("multiport expection an option", "--dports, --sports or --ports");
        }
        if head.old { ports_have_protocol(head) } else { Ok(()) }
    }),
    ext("sctp", SCTP, sctp).reads(|given, _| ports(&given.text).map(drop)),
    ext("tcp", TCP, tcp).reads(read_tcp),
    ext("udp", UDP, udp),
];

/// TCP flags by name.
pub(in crate::iptables) const TCP_FLAGS: [(&str, u8); 6] =
    [("FIN", 0x01), ("SYN", 0x02), ("RST", 0x04), ("PSH", 0x08), ("ACK", 0x10), ("URG", 0x20)];

const TCP: &[Opt] = &[
    opt("source-port", Kind::Text(0, 0)).inv(),
    opt("sport", Kind::Text(0, 0)).id("source-port").inv(),
    opt("destination-port", Kind::Text(0, 0)).inv(),
    opt("dport", Kind::Text(0, 0)).id("destination-port").inv(),
    opt("syn", Kind::None).id("tcp-flags").inv(),
    opt("tcp-flags", Kind::Text(0, 0)).inv(),
    opt("tcp-option", Kind::Text(0, 0)).inv(),
];

fn ports(text: &str) -> Result<Ports, Fault> {
    let one = |t: &str| match port(t) {
        Some(port) => Ok(port),
        None => {
            let message = format!("invalid port/service `{t}' specified");
            fault(message, "0 to 65535, or first:last")
        }
    };
    let Some((from, to)) = text.split_once(':') else {
        let port = one(text)?;
        return Ok(Ports { from: port, to: port });
    };
    let from = if from.is_empty() { 0 } else { one(from)? };
    let to = if to.is_empty() { 65_535 } else { one(to)? };
    if from > to {
        return fault("invalid portrange (min > max)", "first:last");
    }
    Ok(Ports { from, to })
}

fn flags(text: &str) -> Result<u8, Fault> {
    let mut all = 0;
    for name in text.split(',').filter(|n| !n.is_empty()) {
        match TCP_FLAGS.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
            Some((_, bit)) => all |= bit,
            None if name.eq_ignore_ascii_case("ALL") => all |= 0x3f,
            None if name.eq_ignore_ascii_case("NONE") => {}
            None => {
                let message = format!("Unknown TCP flag `{name}'");
                return fault(message, "SYN, ACK, FIN, RST, URG, PSH, ALL, NONE");
            }
        }
    }
    Ok(all)
}

/// `--tcp-flags`: the parser hands both words over, a blank between.
fn both_flags(given: &ParsedOption) -> Result<(u8, u8), Fault> {
    if given.value == Value::None {
        return Ok((0x17, 0x02));
    }
    let (mask, set) = given.text.split_once(' ').unwrap_or((&given.text, ""));
    Ok((flags(mask)?, flags(set)?))
}

fn read_tcp(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    match given.id {
        "tcp-flags" => both_flags(given).map(drop),
        "tcp-option" => match number(&given.text).filter(|n| (1..=255).contains(n)) {
            Some(_) => Ok(()),
            None => fault(format!("Bad TCP option \"{}\"", given.text), "1 to 255"),
        },
        _ => ports(&given.text).map(drop),
    }
}

fn tcp_ports(seen: &Seen, id: &str) -> PortMatch {
    match seen.find(id) {
        Some(g) => PortMatch { ports: ports(&g.text).unwrap_or(Ports::ALL), invert: g.invert },
        None => PortMatch::ANY,
    }
}

fn tcp(seen: &Seen, _: &Head) -> Match {
    let option = seen.find("tcp-option");
    Match::Tcp(TcpMatch {
        sport: tcp_ports(seen, "source-port"),
        dport: tcp_ports(seen, "destination-port"),
        flags: seen.find("tcp-flags").and_then(|g| both_flags(g).ok()).unwrap_or((0, 0)),
        invert_flags: seen.inverted("tcp-flags"),
        option: option.map(|g| (number(&g.text).unwrap_or(0) as u8, g.invert)),
    })
}

const UDP: &[Opt] = &[
    opt("source-port", Kind::Ports).inv(),
    opt("sport", Kind::Ports).id("source-port").inv(),
    opt("destination-port", Kind::Ports).inv(),
    opt("dport", Kind::Ports).id("destination-port").inv(),
];

fn udp_ports(seen: &Seen, id: &str) -> PortMatch {
    match seen.find(id).map(|g| (&g.value, g.invert)) {
        Some((&Value::Ports(from, to), invert)) => PortMatch { ports: Ports { from, to }, invert },
        _ => PortMatch::ANY,
    }
}

fn udp(seen: &Seen, _: &Head) -> Match {
    Match::Udp(udp_ports(seen, "source-port"), udp_ports(seen, "destination-port"))
}

const SCTP: &[Opt] = &[
    opt("source-port", Kind::Text(0, 0)).inv(),
    opt("sport", Kind::Text(0, 0)).id("source-port").inv(),
    opt("destination-port", Kind::Text(0, 0)).inv(),
    opt("dport", Kind::Text(0, 0)).id("destination-port").inv(),
];

fn sctp(seen: &Seen, _: &Head) -> Match {
    let (mut save, mut list) = (String::new(), String::from("sctp"));
    for (id, option, shown) in [("source-port", "--sport", "spt"), ("destination-port", "--dport", "dpt")] {
        let PortMatch { ports: Ports { from, to }, invert } = tcp_ports(seen, id);
        if seen.has(id) {
            let range = if from == to { from.to_string() } else { format!("{from}:{to}") };
            let (not, many) = (if invert { " !" } else { "" }, if from == to { "" } else { "s" });
            save.push_str(&format!("{not} {option} {range}"));
            list.push_str(&format!(" {shown}{many}:{}{range}", not.trim_start()));
        }
    }
    // No packet of the machines is one of SCTP.
    let words = Plain { name: "sctp".to_owned(), save, numeric: list.clone(), list };
    Match::Worded(words, Asks::Never)
}

const ANY: &[&str] = &["source-ports", "destination-ports", "ports"];
const MULTIPORT: &[Opt] = &[
    opt("source-ports", Kind::Text(0, 0)).excl(ANY).inv(),
    opt("sports", Kind::Text(0, 0)).id("source-ports").excl(ANY).inv(),
    opt("destination-ports", Kind::Text(0, 0)).excl(ANY).inv(),
    opt("dports", Kind::Text(0, 0)).id("destination-ports").excl(ANY).inv(),
    opt("ports", Kind::Text(0, 0)).excl(ANY).inv(),
];

fn ports_have_protocol(head: &Head) -> Result<(), Fault> {
    let help = "ports belong to a protocol: -p tcp or -p udp before -m multiport";
    match head.protocol {
        Some((6 | 17 | 33 | 132 | 136, false)) => Ok(()),
        None => fault("multiport needs `-p tcp', `-p udp', `-p udplite', `-p sctp' or `-p dccp'", help),
        Some(_) => fault("multiport only works with TCP, UDP, UDPLITE, SCTP and DCCP", help),
    }
}

/// At most 15 ports, a range counting twice.
fn port_list(text: &str) -> Result<Vec<Ports>, Fault> {
    let too_many = || fault("too many ports specified", "at most 15, a range counts twice");
    let one = |t: &str| match port(t) {
        Some(port) => Ok(port),
        None => fault(format!("invalid port/service `{t}' specified"), "0 to 65535, or first:last"),
    };
    let mut list = Vec::new();
    let mut places = 0;
    for part in text.split(',') {
        if places >= 15 {
            return too_many();
        }
        match part.split_once(':') {
            Some(_) if places == 14 => return too_many(),
            Some((from, to)) => {
                let (from, to) = (one(from)?, one(to)?);
                if from >= to {
                    return fault("invalid portrange specified", "first:last");
                }
                list.push(Ports { from, to });
                places += 2;
            }
            None => {
                let port = one(part)?;
                list.push(Ports { from: port, to: port });
                places += 1;
            }
        }
    }
    Ok(list)
}

fn read_multiport(given: &ParsedOption, head: &Head) -> Result<(), Fault> {
    if !head.old {
        ports_have_protocol(head)?;
    }
    port_list(&given.text).map(drop)
}

fn multiport(seen: &Seen, _: &Head) -> Match {
    let given = seen.0.first();
    let kind = match given.map(|g| g.id) {
        Some("source-ports") => PortKind::Source,
        Some("destination-ports") => PortKind::Destination,
        _ => PortKind::Either,
    };
    let ports = given.and_then(|g| port_list(&g.text).ok()).unwrap_or_default();
    Match::Multiport { kind, ports, invert: given.is_some_and(|g| g.invert) }
}
