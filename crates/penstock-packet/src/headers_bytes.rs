//! From header fields to the bytes on the wire (RFC 791, 8200, 826, 9293, 768, 792).

use crate::headers::{Icmp, Ipv4, Ipv6, L3, L4, Tcp};
use crate::skb::{HEADER_MAX, Skb};

struct Writer<'a> {
    out: &'a mut [u8; HEADER_MAX],
    at: usize,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
    fn u8(&mut self, v: u8) {
        self.bytes(&[v]);
    }
    fn u16(&mut self, v: u16) {
        self.bytes(&v.to_be_bytes());
    }
    fn u32(&mut self, v: u32) {
        self.bytes(&v.to_be_bytes());
    }
}

/// Writes the headers of `skb`; answers how many bytes they are.
pub(crate) fn write(skb: &Skb, out: &mut [u8; HEADER_MAX]) -> usize {
    let mut w = Writer { out, at: 0 };
    w.bytes(&skb.eth.1);
    w.bytes(&skb.eth.0);
    w.u16(skb.protocol());
    let l4_len = match &skb.l3 {
        L3::Ipv4(h) => {
            ipv4(&mut w, h, skb.network_len() as u16);
            skb.network_len().saturating_sub(20)
        }
        L3::Ipv6(h) => {
            let len = skb.network_len().saturating_sub(40);
            ipv6(&mut w, h, len as u16);
            len
        }
        L3::Arp(a) => {
            w.bytes(&[0, 1, 8, 0, 6, 4]);
            w.u16(a.op);
            w.bytes(&a.sha);
            w.bytes(&a.spa.octets());
            w.bytes(&a.tha);
            w.bytes(&a.tpa.octets());
            return w.at;
        }
        L3::Other(_) => return w.at,
    };
    match &skb.l4 {
        L4::Tcp(t) => tcp(&mut w, t),
        L4::Udp(u) => {
            w.u16(u.sport);
            w.u16(u.dport);
            w.u16(l4_len as u16);
            w.u16(0);
        }
        L4::Icmp(i) => icmp(&mut w, i),
        L4::None => {}
    }
    w.at
}

fn ipv4(w: &mut Writer<'_>, h: &Ipv4, total: u16) {
    let start = w.at;
    w.u8(0x45);
    w.u8(h.tos);
    w.u16(total);
    w.u16(h.id);
    w.u16(h.frag_off);
    w.u8(h.ttl);
    w.u8(h.protocol);
    w.u16(0);
    w.bytes(&h.src.octets());
    w.bytes(&h.dst.octets());
    let sum: u32 = w.out[start..w.at].chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let sum = !((folded & 0xffff) + (folded >> 16)) as u16;
    w.out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
}

fn ipv6(w: &mut Writer<'_>, h: &Ipv6, payload: u16) {
    w.u32(6 << 28 | u32::from(h.traffic_class) << 20 | h.flow_label & 0xf_ffff);
    w.u16(payload);
    w.u8(h.next_header);
    w.u8(h.hop_limit);
    w.bytes(&h.src.octets());
    w.bytes(&h.dst.octets());
}

fn tcp(w: &mut Writer<'_>, t: &Tcp) {
    w.u16(t.sport);
    w.u16(t.dport);
    w.u32(t.seq);
    w.u32(t.ack);
    w.u8(((t.header_len() / 4) as u8) << 4);
    w.u8(t.flags.0);
    w.u16(t.window);
    w.u32(0);
    // Options in the order and padding of tcp_options_write.
    if let Some(mss) = t.mss {
        w.bytes(&[2, 4]);
        w.u16(mss);
    }
    match (t.sack_permitted, t.timestamps) {
        (sack, Some((val, ecr))) => {
            w.bytes(if sack { &[4, 2, 8, 10] } else { &[1, 1, 8, 10] });
            w.u32(val);
            w.u32(ecr);
        }
        (true, None) => w.bytes(&[1, 1, 4, 2]),
        (false, None) => {}
    }
    if let Some(shift) = t.wscale {
        w.bytes(&[1, 3, 3, shift]);
    }
    if t.sack_count > 0 {
        w.bytes(&[1, 1, 5, 2 + 8 * t.sack_count]);
        for &(left, right) in t.sack_blocks() {
            w.u32(left);
            w.u32(right);
        }
    }
}

fn icmp(w: &mut Writer<'_>, i: &Icmp) {
    w.u8(i.ty);
    w.u8(i.code);
    w.u16(0);
    w.u16(i.id);
    w.u16(i.seq);
}

#[cfg(test)]
mod tests {
    use crate::headers::*;
    use crate::skb::{HEADER_MAX, Skb};
    use penstock_model::{Handle, Time};

    fn udp(len: u32) -> Skb {
        Skb {
            len,
            pkt_len: len,
            priority: 0,
            mark: 0,
            l3: L3::Ipv4(Ipv4 {
                src: "10.0.0.1".parse().unwrap(),
                dst: "10.0.0.2".parse().unwrap(),
                tos: 0x10,
                ttl: 64,
                protocol: ipproto::UDP,
                id: 7,
                frag_off: 0,
            }),
            l4: L4::Udp(Udp { sport: 1000, dport: 2000 }),
            flow: 0,
            seq: 0,
            created: Time::ZERO,
            queued: Time::ZERO,
            iif: 0,
            eth: ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
            classid: Handle::UNSPEC,
        }
    }

    #[test]
    fn a_udp_frame_has_its_bytes() {
        let mut out = [0; HEADER_MAX];
        let n = udp(100).header_bytes(&mut out);
        assert_eq!(n, 42);
        assert_eq!(&out[12..16], [8, 0, 0x45, 0x10]);
        assert_eq!(&out[16..18], 86u16.to_be_bytes());
        assert_eq!(&out[34..38], [0x03, 0xe8, 0x07, 0xd0]);
        assert_eq!(&out[38..40], 66u16.to_be_bytes());
        // The IPv4 header sums to ffff with its checksum in place.
        let sum: u32 = out[14..34].chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c[1])).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }

    #[test]
    fn tcp_option_lengths_are_linux_s() {
        let syn = Tcp {
            mss: Some(1460),
            wscale: Some(7),
            sack_permitted: true,
            timestamps: Some((1, 0)),
            ..Tcp::default()
        };
        assert_eq!(syn.header_len(), 40);
        let ack = Tcp { timestamps: Some((1, 1)), ..Tcp::default() };
        assert_eq!(ack.header_len(), 32);
        let sack = Tcp { timestamps: Some((1, 1)), sack_count: 1, ..Tcp::default() };
        assert_eq!(sack.header_len(), 44);
        let xp = Tcp::default();
        assert_eq!(xp.header_len(), 20);
    }
}
