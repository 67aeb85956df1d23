//! A specification: what to set up, how the queue is served, which packets come when.
//!
//! Every field is read as the probe reads it; a wrong one is refused with its name.

use super::ground::Ground;
use penstock_model::Diagnostic;
use penstock_packet::headers::{Fragment, Icmp, Ipv4, Ipv6, L3, L4, Tcp, TcpFlags, Udp, ipproto};
use penstock_packet::{Skb, TxClock, TxTime};
use serde_json::{Map, Value};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Who asks the queue for packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// A line of a given rate, idle at the start.
    Link,
    /// The same, busy until every packet is in.
    Block,
    /// The device itself: the qdisc is the root.
    None,
    /// Nobody: the packets arrive at the device, and leave it as soon as they have got past its ingress hook.
    Arrive,
}

impl Release {
    /// As the specification writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Release::Link => "link",
            Release::Block => "block",
            Release::None => "none",
            Release::Arrive => "arrive",
        }
    }
    /// Whether the queue stands behind a line.
    pub fn has_line(self) -> bool {
        matches!(self, Release::Link | Release::Block)
    }
}

/// What happens at a moment of the sequence.
#[derive(Clone, Debug)]
pub enum What {
    /// A packet is sent.
    Packet(Box<Skb>),
    /// A command is given, `$DEV` and `$PARENT` not yet replaced.
    Command(String),
}

/// A packet or a command, and when.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its number in the sequence as given.
    pub i: u32,
    /// Moment, us; what the sequence is ordered by.
    pub t_us: f64,
    /// Moment, ns from the start.
    pub t_ns: i64,
    /// When the packet asks to leave (`SO_TXTIME`), ns from the start.
    pub departs_ns: Option<i64>,
    /// The packet or the command.
    pub what: What,
}

/// A whole specification.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The kernel that is asked.
    pub ground: &'static Ground,
    /// Commands, `$DEV` and `$PARENT` not yet replaced.
    pub setup: Vec<String>,
    /// Where the filters are that are shown at the end: `parent 1:`, `egress`, ….
    pub filters: Vec<String>,
    /// Who asks for packets.
    pub release: Release,
    /// Transmit queues of the device.
    pub tx_queues: u32,
    /// The line's rate as it was written.
    pub rate_text: String,
    /// The line's rate, bytes per second.
    pub rate: u32,
    /// How long the line stays blocked, seconds.
    pub hold_s: f64,
    /// How long to wait for the last packets, ns.
    pub drain_ns: i64,
    /// Packets in the order they are sent.
    pub packets: Vec<Sent>,
}

type Answer<T> = Result<T, Diagnostic>;

/// More packets than have a number in the IPv4 identification.
const PACKETS_MAX: usize = 65_536;
/// Fewest bytes of payload that a segment may have here: the probe writes its number there.
const GSO_SIZE_MIN: i64 = 8;
/// Most transmit queues (`ip link add` takes no more).
const QUEUES_MAX: i64 = 4096;
/// `rt_tos2priority`: by `(tos & 0x1e) >> 1`.
const TOS2PRIO: [u32; 16] = [0, 1, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];
const FIELDS: &[&str] =
    &["kernel", "setup", "filters", "release", "rate", "hold_s", "drain_s", "tx_queues", "packets"];
const PACKET_FIELDS: &[&str] = &[
    "t_us",
    "len",
    "tos",
    "mark",
    "priority",
    "src",
    "dst",
    "sport",
    "dport",
    "proto",
    "repeat",
    "gap_us",
    "run",
    "txtime_us",
    "txtime_clock",
    "txtime_deadline",
    "gso_size",
    "gso_dodgy",
];

impl Spec {
    /// Reads a specification.
    ///
    /// # Errors
    /// Which field is wrong and what it should be.
    pub fn read(value: &Value) -> Answer<Spec> {
        let Value::Object(spec) = value else {
            return Err(Diagnostic::error("the specification is not JSON object")
                .help(r#"{"setup": […], "packets": […]}"#));
        };
        let release = match spec.get("release") {
            None => Release::Link,
            Some(Value::String(s)) if s == "link" => Release::Link,
            Some(Value::String(s)) if s == "block" => Release::Block,
            Some(Value::String(s)) if s == "none" => Release::None,
            Some(Value::String(s)) if s == "arrive" => Release::Arrive,
            Some(other) => {
                return Err(Diagnostic::error(format!(
                    "release is link, block, none or arrive, not {other}"
                )));
            }
        };
        let rate_text = match spec.get("rate") {
            None => "1mbit".to_owned(),
            Some(Value::String(s)) => s.clone(),
            Some(other) => other.to_string(),
        };
        let rate = if !release.has_line() { 0 } else { bytes_per_s(&rate_text)? };
        let packets = packets(spec)?;
        let span_ns = packets.iter().map(|p| p.t_us).fold(f64::NEG_INFINITY, f64::max);
        let span_ns = if packets.is_empty() { 0.0 } else { (span_ns * 1000.0).round_ties_even() };
        let hold_s = number(spec, "", "hold_s")?.unwrap_or(1.0 + span_ns * 1e-9);
        if release == Release::Block && !(0.0 < hold_s && hold_s < 59.0) {
            return Err(Diagnostic::error(format!("hold_s {hold_s} is not in 0..59")));
        }
        let drain_s = number(spec, "", "drain_s")?.unwrap_or(60.0);
        if !(0.0..=86_400.0).contains(&drain_s) {
            return Err(Diagnostic::error(format!("drain_s {drain_s} is not in 0..86400")));
        }
        Ok(Spec {
            ground: ground(spec)?,
            setup: strings(spec, "setup")?,
            filters: strings(spec, "filters")?,
            release,
            tx_queues: whole(spec, "", "tx_queues", 1, 1, QUEUES_MAX)? as u32,
            rate_text,
            rate,
            hold_s,
            drain_ns: (drain_s * 1e9) as i64,
            packets,
        })
    }
}

/// Fields that have no meaning, each with a warning's sentence.
pub fn strangers(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut look = |object: &Value, known: &[&str], place: &str| {
        for name in object.as_object().into_iter().flat_map(Map::keys) {
            if !known.contains(&name.as_str()) {
                found.push(format!("{place}{name}: there is no such field"));
            }
        }
    };
    look(value, FIELDS, "");
    for (n, packet) in value["packets"].as_array().into_iter().flatten().enumerate() {
        look(packet, PACKET_FIELDS, &format!("packets[{n}]."));
    }
    found
}

/// The kernel that `kernel` names.
fn ground(spec: &Map<String, Value>) -> Answer<&'static Ground> {
    let Some(value) = spec.get("kernel") else { return Ok(Ground::newest_long_term()) };
    let known = Ground::ALL.into_iter().find(|g| value.as_str() == Some(g.kernel.name()));
    known.ok_or_else(|| {
        let names: Vec<String> = Ground::ALL.iter().map(|g| format!("\"{}\"", g.kernel)).collect();
        Diagnostic::error(format!("kernel is {}, not {value}", names.join(" or ")))
    })
}

/// A list of texts, empty where it is not given.
fn strings(spec: &Map<String, Value>, name: &str) -> Answer<Vec<String>> {
    let wrong = || {
        let help = match name {
            "setup" => r#"e.g. ["qdisc add dev $DEV $PARENT handle 1: pfifo limit 5"]"#,
            _ => r#"e.g. ["parent 1:"]"#,
        };
        let what = if name == "setup" { "command lines" } else { "places" };
        Diagnostic::error(format!("{name}: not a list of {what}")).help(help)
    };
    match spec.get(name) {
        None => Ok(Vec::new()),
        Some(Value::Array(lines)) => {
            lines.iter().map(|l| l.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// The line's rate in bytes per second: `800kbit`, `1mbit`, `2.5gbit`.
fn bytes_per_s(text: &str) -> Answer<u32> {
    let wrong = || Diagnostic::error(format!("rate '{text}': say something like 800kbit, 1mbit, 10gbit"));
    let lower = text.to_ascii_lowercase();
    let digits = lower.strip_suffix("bit").ok_or_else(wrong)?;
    let (digits, scale) = match digits.as_bytes().last() {
        Some(b'k') => (&digits[..digits.len() - 1], 1e3),
        Some(b'm') => (&digits[..digits.len() - 1], 1e6),
        Some(b'g') => (&digits[..digits.len() - 1], 1e9),
        _ => (digits, 1.0),
    };
    if !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(wrong());
    }
    let rate = digits.parse::<f64>().map_err(|_| wrong())? * scale / 8.0;
    if !(1.0..4_294_967_296.0).contains(&rate) {
        return Err(wrong());
    }
    Ok(rate.round_ties_even() as u32)
}

/// A number, or text that is one.
fn number(object: &Map<String, Value>, place: &str, name: &str) -> Answer<Option<f64>> {
    let wrong = |v: &Value| Diagnostic::error(format!("{place}{name}: {v} is not a number"));
    match object.get(name) {
        None => Ok(None),
        Some(v @ Value::String(s)) => match s.trim().parse::<f64>() {
            Ok(x) if x.is_finite() => Ok(Some(x)),
            _ => Err(wrong(v)),
        },
        Some(v) => v.as_f64().filter(|x| x.is_finite()).map(Some).ok_or_else(|| wrong(v)),
    }
}

/// A whole number in `low..=high`.
fn whole(
    object: &Map<String, Value>,
    place: &str,
    name: &str,
    default: i64,
    low: i64,
    high: i64,
) -> Answer<i64> {
    let Some(x) = number(object, place, name)? else { return Ok(default) };
    let x = x.trunc();
    if !(low as f64..=high as f64).contains(&x) {
        return Err(Diagnostic::error(format!("{place}{name}: {x} is not in {low}..{high}")));
    }
    Ok(x as i64)
}

/// The packets of a specification, in the order of their moments.
///
/// # Errors
/// Which field of which entry is wrong.
pub(super) fn packets(spec: &Map<String, Value>) -> Answer<Vec<Sent>> {
    let list = match spec.get("packets") {
        Some(Value::Array(list)) => list,
        Some(_) => return Err(Diagnostic::error("packets: not a list")),
        None => {
            return Err(Diagnostic::error("packets: missing")
                .help(r#"e.g. [{"t_us": 0, "len": 1000, "repeat": 10}]"#));
        }
    };
    let mut all = Vec::new();
    for (n, entry) in list.iter().enumerate() {
        let place = format!("packets[{n}].");
        let Value::Object(entry) = entry else {
            return Err(Diagnostic::error(format!("packets[{n}]: not JSON object")));
        };
        let t_us = number(entry, &place, "t_us")?.unwrap_or(0.0);
        let gap_us = number(entry, &place, "gap_us")?.unwrap_or(0.0);
        let repeat = whole(entry, &place, "repeat", 1, i64::MIN, 1 << 32)?.max(0) as usize;
        if all.len() + repeat > PACKETS_MAX {
            return Err(Diagnostic::error(format!(
                "{place}repeat: at most {PACKETS_MAX} packets (the number is in the IPv4 identification)"
            )));
        }
        let command = match entry.get("run") {
            None => None,
            Some(Value::String(line)) if repeat == 1 => Some(line.clone()),
            Some(Value::String(_)) => {
                return Err(Diagnostic::error(format!("{place}repeat: a command is given once")));
            }
            Some(other) => {
                return Err(Diagnostic::error(format!("{place}run: {other} is not a command line")));
            }
        };
        let mut template = frame(entry, &place, all.len())?;
        let departs = departure(entry, &place, &mut template)?;
        for k in 0..repeat {
            let i = all.len() as u32;
            let what = command.clone().map_or_else(
                || {
                    let mut skb = template.clone();
                    stamp(&mut skb, i);
                    What::Packet(Box::new(skb))
                },
                What::Command,
            );
            let t_us = t_us + k as f64 * gap_us;
            let t_ns = (t_us * 1000.0).round_ties_even();
            if t_ns.abs() > 1e15 {
                return Err(Diagnostic::error(format!("{place}t_us: {t_us} is more than eleven days away")));
            }
            let departs_ns = departs.map(|after| t_ns as i64 + after);
            all.push(Sent { i, t_us, t_ns: t_ns as i64, departs_ns, what });
        }
    }
    all.sort_by(|a, b| a.t_us.total_cmp(&b.t_us));
    Ok(all)
}

/// The time of departure that an entry's socket asks for: how long behind the packet's own moment it lies, ns. Notes on the frame which kind of time
/// it is.
fn departure(p: &Map<String, Value>, place: &str, skb: &mut Skb) -> Answer<Option<i64>> {
    let Some(after_us) = number(p, place, "txtime_us")? else { return Ok(None) };
    if after_us.abs() > 1e12 {
        return Err(Diagnostic::error(format!("{place}txtime_us: {after_us} is more than eleven days away")));
    }
    let clock = match p.get("txtime_clock") {
        None => TxClock::Tai,
        Some(Value::String(s)) if s == "tai" => TxClock::Tai,
        Some(Value::String(s)) if s == "realtime" => TxClock::Realtime,
        Some(Value::String(s)) if s == "monotonic" => TxClock::Monotonic,
        Some(other) => {
            let message = format!("{place}txtime_clock is tai, realtime or monotonic, not {other}");
            return Err(Diagnostic::error(message));
        }
    };
    let deadline = match p.get("txtime_deadline") {
        None => false,
        Some(Value::Bool(deadline)) => *deadline,
        Some(other) => {
            return Err(Diagnostic::error(format!("{place}txtime_deadline: {other} is not true or false")));
        }
    };
    skb.rare_mut().txtime = Some(TxTime { clock, asked: true, deadline });
    Ok(Some((after_us * 1000.0).round_ties_even() as i64))
}

/// Writes the packet's number where the probe writes it.
fn stamp(skb: &mut Skb, i: u32) {
    skb.seq = u64::from(i);
    if let L3::Ipv4(h) = &mut skb.l3 {
        h.id = i as u16;
    }
    match &mut skb.l4 {
        L4::Tcp(t) => t.seq = i,
        L4::Icmp(m) => m.seq = i as u16,
        _ => {}
    }
}

/// The frame of an entry, whose first packet has the number `first`.
fn frame(p: &Map<String, Value>, place: &str, first: usize) -> Answer<Skb> {
    let text = |name: &str, default: &str| match p.get(name) {
        None => Ok(default.to_owned()),
        Some(Value::String(s)) => Ok(s.clone()),
        Some(other) => Err(Diagnostic::error(format!("{place}{name}: {other} is not an address"))),
    };
    let protocol = match p.get("proto") {
        None => ipproto::UDP,
        Some(Value::String(s)) if s == "udp" => ipproto::UDP,
        Some(Value::String(s)) if s == "tcp" => ipproto::TCP,
        Some(Value::String(s)) if s == "icmp" => ipproto::ICMP,
        Some(v @ Value::String(_)) => {
            return Err(Diagnostic::error(format!("packet {first}: unknown proto {v}"))
                .help("udp, tcp, icmp or a number"));
        }
        Some(_) => whole(p, place, "proto", 0, 0, 255)? as u8,
    };
    let tos = whole(p, place, "tos", 0, 0, 255)? as u8;
    let (src, dst) = (text("src", "10.0.0.1")?, text("dst", "10.0.0.2")?);
    let v6 = src.contains(':');
    let headers = 14
        + if v6 { 48 } else { 20 }
        + match protocol {
            ipproto::TCP => 20,
            ipproto::UDP | ipproto::ICMP => 8,
            _ => 0,
        };
    let len = whole(p, place, "len", 100, i64::MIN, i64::MAX)?;
    if !(headers..=65_535).contains(&len) {
        return Err(Diagnostic::error(format!("packet {first}: len {len} is not in {headers}..65535")));
    }
    let len = len as u32;
    let bad = |name: &str, text: &str| {
        let family = if v6 { "IPv6" } else { "IPv4" };
        Diagnostic::error(format!("{place}{name}: '{text}' is not an {family} address"))
    };
    let l3 = if v6 {
        L3::Ipv6(Ipv6 {
            src: src.parse::<Ipv6Addr>().map_err(|_| bad("src", &src))?,
            dst: dst.parse::<Ipv6Addr>().map_err(|_| bad("dst", &dst))?,
            traffic_class: tos,
            flow_label: 0,
            next_header: protocol,
            fragment: Fragment::NONE,
            hop_limit: 64,
        })
    } else {
        L3::Ipv4(Ipv4 {
            src: src.parse::<Ipv4Addr>().map_err(|_| bad("src", &src))?,
            dst: dst.parse::<Ipv4Addr>().map_err(|_| bad("dst", &dst))?,
            tos,
            ttl: 64,
            protocol,
            id: 0,
            frag_off: 0,
        })
    };
    let port = |name: &str, default: i64| whole(p, place, name, default, 0, 65535).map(|x| x as u16);
    let l4 = match protocol {
        ipproto::UDP => L4::Udp(Udp { sport: port("sport", 1000)?, dport: port("dport", 2000)? }),
        ipproto::TCP => L4::Tcp(Tcp {
            sport: port("sport", 1000)?,
            dport: port("dport", 2000)?,
            flags: TcpFlags::ACK,
            window: 1000,
            ..Tcp::default()
        }),
        ipproto::ICMP => L4::Icmp(Icmp::new(8, 0, port("sport", 0)?, 0)),
        _ => L4::None,
    };
    let mut skb = Skb {
        priority: priority(p, place, tos)?,
        mark: whole(p, place, "mark", 0, i64::from(i32::MIN), i64::from(i32::MAX))? as i32 as u32,
        eth: ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
        ..Skb::new(len, l3, l4)
    };
    super_packet(p, place, &mut skb)?;
    Ok(skb)
}

/// `gso_size`: the frame is a super-packet, whose segments carry so many bytes of payload each.
fn super_packet(p: &Map<String, Value>, place: &str, skb: &mut Skb) -> Answer<()> {
    let dodgy = match p.get("gso_dodgy") {
        None => false,
        Some(Value::Bool(dodgy)) => *dodgy,
        Some(other) => {
            return Err(Diagnostic::error(format!("{place}gso_dodgy: {other} is not true or false")));
        }
    };
    if !p.contains_key("gso_size") {
        if dodgy {
            return Err(Diagnostic::error(format!("{place}gso_dodgy: only of a super-packet"))
                .help("with gso_size, the payload of each segment in bytes"));
        }
        return Ok(());
    }
    let size = whole(p, place, "gso_size", 0, GSO_SIZE_MIN, 65_535)? as u16;
    if !matches!(skb.l4, L4::Tcp(_) | L4::Udp(_)) {
        return Err(Diagnostic::error(format!("{place}gso_size: only TCP and UDP are cut into segments")));
    }
    skb.set_gso(size, dodgy);
    Ok(())
}

/// `priority`: a number, or a classid as text; without it what the ToS gives.
fn priority(p: &Map<String, Value>, place: &str, tos: u8) -> Answer<u32> {
    match p.get("priority") {
        None => Ok(TOS2PRIO[usize::from(tos & 0x1e) >> 1]),
        Some(Value::String(s)) => {
            let (major, minor) = s.split_once(':').unwrap_or((s, ""));
            let hex = |t: &str| {
                u32::from_str_radix(t.trim().trim_start_matches("0x"), 16).ok().filter(|&x| x <= 0xffff)
            };
            let minor = if minor.is_empty() { "0" } else { minor };
            match (hex(major), hex(minor)) {
                (Some(a), Some(b)) if a < 0x8000 => Ok(a << 16 | b),
                _ => Err(Diagnostic::error(format!("{place}priority: \"{s}\" is not a classid below 8000:"))
                    .help("e.g. \"1:10\"")),
            }
        }
        Some(_) => {
            whole(p, place, "priority", 0, i64::from(i32::MIN), i64::from(i32::MAX)).map(|x| x as i32 as u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_are_the_probes() {
        let spec = Spec::read(&json!({"packets": [{}, {"t_us": 1.5, "repeat": 2, "gap_us": 3}]})).unwrap();
        assert_eq!((spec.release, spec.rate), (Release::Link, 125_000));
        assert_eq!(spec.packets.iter().map(|p| p.t_ns).collect::<Vec<_>>(), [0, 1500, 4500]);
        assert!(matches!(&spec.packets[0].what, What::Packet(skb) if skb.len == 100));
    }

    #[test]
    fn packets_arrive_without_a_line() {
        let spec = Spec::read(&json!({"release": "arrive", "packets": [{}]})).unwrap();
        assert_eq!((spec.release.as_str(), spec.release.has_line(), spec.rate), ("arrive", false, 0));
    }

    #[test]
    fn a_wrong_field_is_named() {
        let check = |spec: Value, want: &str| assert_eq!(Spec::read(&spec).unwrap_err().message, want);
        check(json!({"packets": [{}, {"len": 20}]}), "packet 1: len 20 is not in 42..65535");
        check(json!({"packets": [{"proto": "gre"}]}), "packet 0: unknown proto \"gre\"");
        check(
            json!({"packets": [], "rate": "fast"}),
            "rate 'fast': say something like 800kbit, 1mbit, 10gbit",
        );
        check(
            json!({"packets": [], "release": "now"}),
            "release is link, block, none or arrive, not \"now\"",
        );
        check(json!({"packets": [{"src": "10.0.0"}]}), "packets[0].src: '10.0.0' is not an IPv4 address");
        check(
            json!({"packets": [{"priority": "x:1"}]}),
            "packets[0].priority: \"x:1\" is not a classid below 8000:",
        );
        check(json!([1]), "the specification is not JSON object");
    }

    #[test]
    fn super_packets_are_read() {
        let read = |packet: Value| Spec::read(&json!({ "packets": [packet] }));
        let segments = |packet: Value| match &read(packet).unwrap().packets[0].what {
            What::Packet(skb) => (skb.segments(), skb.counts_as()),
            What::Command(_) => unreachable!(),
        };
        assert_eq!(segments(json!({"proto": "tcp", "len": 54 + 2896, "gso_size": 1448})), (2, 2));
        assert_eq!(segments(json!({"len": 42 + 3000, "gso_size": 1000, "gso_dodgy": true})), (3, 0));
        let wrong = |packet: Value, want: &str| assert_eq!(read(packet).unwrap_err().message, want);
        wrong(
            json!({"proto": "icmp", "len": 3000, "gso_size": 1000}),
            "packets[0].gso_size: only TCP and UDP are cut into segments",
        );
        wrong(json!({"gso_size": 7}), "packets[0].gso_size: 7 is not in 8..65535");
        wrong(json!({"gso_dodgy": true}), "packets[0].gso_dodgy: only of a super-packet");
    }

    #[test]
    fn rates_are_rounded_to_whole_bytes() {
        assert_eq!(bytes_per_s("10bit"), Ok(1));
        assert_eq!(bytes_per_s("2.5Mbit"), Ok(312_500));
        assert!(bytes_per_s("1.2.3mbit").is_err());
    }
}
