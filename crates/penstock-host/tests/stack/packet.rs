//! Packets as the recordings have them.

use penstock_packet::headers::{ETH_HLEN, Quoted};
use penstock_packet::{Fragment, Icmp, IcmpBody, Ipv4, Ipv6, L3, L4, Skb, Tcp, TcpFlags, Udp};
use serde_json::{Map, Value, json};
use std::net::IpAddr;

const FLAGS: [(char, TcpFlags); 5] = [
    ('F', TcpFlags::FIN),
    ('S', TcpFlags::SYN),
    ('R', TcpFlags::RST),
    ('P', TcpFlags::PSH),
    ('A', TcpFlags::ACK),
];

pub(crate) fn number(p: &Value, key: &str) -> u64 {
    p[key].as_u64().unwrap_or(0)
}

/// A packet from its description.
pub(crate) fn build(p: &Value) -> Skb {
    let address = |key: &str| p[key].as_str().and_then(|a| a.parse::<IpAddr>().ok()).expect("an address");
    let port = |key: &str| number(p, key) as u16;
    let (src, dst) = (address("src"), address("dst"));
    let icmp = if src.is_ipv6() { 58 } else { 1 };
    let (protocol, l4, header) = match p["proto"].as_str() {
        Some("udp") => (17, L4::Udp(Udp { sport: port("sport"), dport: port("dport") }), 8),
        Some("tcp") => {
            let text = p["flags"].as_str().unwrap_or("");
            let bits = FLAGS.iter().filter(|f| text.contains(f.0)).fold(0, |all, f| all | f.1.0);
            let (seq, ack) = (number(p, "seq") as u32, number(p, "ack") as u32);
            let (sport, dport) = (port("sport"), port("dport"));
            let tcp = Tcp { sport, dport, seq, ack, flags: TcpFlags(bits), window: 8000, ..Tcp::default() };
            (6, L4::Tcp(tcp), 20)
        }
        _ => {
            let about = p["about"].as_object().map(|_| quoted(&p["about"]));
            let body = about.map_or(IcmpBody::Data, IcmpBody::About);
            let (ty, code) = (number(p, "type") as u8, number(p, "code") as u8);
            let (id, n) = match p["mtu"].as_u64() {
                Some(mtu) => ((mtu >> 16) as u16, mtu as u16),
                None => (port("id"), port("n")),
            };
            (icmp, L4::Icmp(Icmp { body, ..Icmp::new(ty, code, id, n) }), 8)
        }
    };
    let ttl = p["ttl"].as_u64().unwrap_or(64) as u8;
    let (l3, before) = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            (L3::Ipv4(Ipv4 { ttl, id: number(p, "ip_id") as u16, ..Ipv4::new(src, dst, protocol) }), 20)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            (L3::Ipv6(Ipv6 { hop_limit: ttl, ..Ipv6::new(src, dst, protocol) }), 40)
        }
        _ => panic!("{src} and {dst}"),
    };
    let data = if p["about"].is_object() { before + 8 } else { number(p, "data") as u32 };
    Skb::new(ETH_HLEN + before + header + data, l3, l4)
}

fn quoted(q: &Value) -> Quoted {
    let address = |key: &str| q[key].as_str().and_then(|a| a.parse::<IpAddr>().ok()).expect("an address");
    let (protocol, sport) = match q["proto"].as_str() {
        Some("udp") => (17, "sport"),
        Some("tcp") => (6, "sport"),
        _ if address("src").is_ipv6() => (58, "id"),
        _ => (1, "id"),
    };
    let (sport, dport) = (number(q, sport) as u16, number(q, "dport") as u16);
    Quoted { src: address("src"), dst: address("dst"), protocol, fragment: None, sport, dport }
}

/// What is compared of a packet.
pub(crate) fn describe(skb: &Skb) -> Option<Value> {
    // What IPv6 has in a header of its own is shown in the same form: eighths, and whether more follow.
    let of = |f: &Fragment| (f.offset() as u16 / 8) | (u16::from(f.more()) << 13);
    let (src, dst, protocol, ttl, tos, frag, df) = match skb.l3 {
        L3::Ipv4(h) => {
            let (src, dst) = (h.src.into(), h.dst.into());
            (src, dst, h.protocol, h.ttl, h.tos, Some(h.frag_off & 0x3fff), h.frag_off & 0x4000 != 0)
        }
        L3::Ipv6(h) => {
            let (src, dst): (IpAddr, IpAddr) = (h.src.into(), h.dst.into());
            (src, dst, h.protocol(), h.hop_limit, h.traffic_class, h.fragment().map(of), false)
        }
        _ => return None,
    };
    let frag = frag.filter(|&f| f != 0);
    let name = |protocol: u8| match protocol {
        1 | 58 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        other => other.to_string(),
    };
    let mut p = Map::new();
    let mut put = |key: &str, value: Value| p.insert(key.to_owned(), value);
    put("proto", json!(name(protocol)));
    put("src", json!(src.to_string()));
    put("dst", json!(dst.to_string()));
    put("ttl", json!(ttl));
    put("tos", json!(tos));
    put("len", json!(skb.network_len()));
    if let Some(frag) = frag {
        put("frag", json!(frag));
    }
    if df {
        put("df", json!(1));
    }
    match skb.l4 {
        _ if frag.is_some_and(|f| f & 0x1fff != 0) => {}
        L4::Udp(u) => {
            put("sport", json!(u.sport));
            put("dport", json!(u.dport));
        }
        L4::Tcp(t) => {
            put("sport", json!(t.sport));
            put("dport", json!(t.dport));
            put("seq", json!(t.seq));
            put("ack", json!(t.ack));
            let set = FLAGS.iter().filter(|f| t.flags.has(f.1)).map(|f| f.0);
            put("flags", json!(set.collect::<String>()));
        }
        L4::Icmp(i) => {
            put("type", json!(i.ty));
            put("code", json!(i.code));
            match i.about() {
                None => {
                    put("id", json!(i.id));
                    put("n", json!(i.seq));
                }
                Some(q) => {
                    let mut about = json!({
                        "proto": name(q.protocol), "src": q.src.to_string(), "dst": q.dst.to_string(),
                    });
                    match q.protocol {
                        1 | 58 => about["id"] = json!(q.sport),
                        _ => (about["sport"], about["dport"]) = (json!(q.sport), json!(q.dport)),
                    }
                    put("about", about);
                }
            }
        }
        L4::None => {}
    }
    Some(Value::Object(p))
}
