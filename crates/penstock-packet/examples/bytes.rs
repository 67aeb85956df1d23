//! A packet is kept as meaning; its bytes are made when somebody asks for them.

use penstock_packet::headers::ipproto;
use penstock_packet::skb::HEADER_MAX;
use penstock_packet::{Ipv4, L3, L4, Skb, Udp};

fn main() -> Result<(), std::net::AddrParseError> {
    let ip = Ipv4 {
        src: "10.0.0.1".parse()?,
        dst: "10.0.0.2".parse()?,
        tos: 0xb8,
        ttl: 64,
        protocol: ipproto::UDP,
        id: 7,
        frag_off: 0,
    };
    let packet = Skb::new(214, L3::Ipv4(ip), L4::Udp(Udp { sport: 16_384, dport: 5004 }));
    let mut bytes = [0; HEADER_MAX];
    let len = packet.header_bytes(&mut bytes);
    println!("{} bytes on the wire, ToS {:#04x}, headers {:02x?}", packet.len, packet.tos(), &bytes[..len]);
    // Ethernet, IPv4 and UDP.
    assert_eq!((len, bytes[14], bytes[15]), (14 + 20 + 8, 0x45, 0xb8));
    Ok(())
}
