//! A packet somebody asks about.

use super::cube::{Names, Place, STATES};
use crate::filters::{IP, IP6};
use std::net::{IpAddr, Ipv4Addr};

/// A packet: its headers as far as filters look at them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Protocol number.
    pub protocol: u8,
    /// Source.
    pub src: IpAddr,
    /// Destination; of the same family.
    pub dst: IpAddr,
    /// Source port; 0 where the protocol has none.
    pub sport: u16,
    /// Destination port; type and code of ICMP.
    pub dport: u16,
    /// ToS byte.
    pub tos: u8,
    /// Length with the IP header, bytes. Default 1500.
    pub len: u16,
    /// Mark it has already.
    pub mark: u32,
    /// The device it came in by; `None` for a packet made here.
    pub input: Option<String>,
    /// `skb->priority`, where something set it.
    pub priority: u32,
    /// The mark of its connection; `None` where nobody says one: the script's rules then tell.
    pub connmark: Option<u32>,
    /// What connection tracking says of it, a number of [`STATES`]; `None` where nobody says: it is the first of its connection.
    pub state: Option<u32>,
    /// VLAN tags, the outermost first, at most two: ethertype and TCI.
    pub tags: Vec<(u16, u16)>,
    /// The packet as it was caught, where it was: its ethertype and its bytes from the network header on. They count, and not the
    /// fields above that they tell of.
    pub caught: Option<(u16, Vec<u8>)>,
}

impl Default for Probe {
    fn default() -> Probe {
        let any = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        Probe {
            protocol: 6,
            src: any,
            dst: any,
            sport: 40_000,
            dport: 40_001,
            tos: 0,
            len: 1500,
            mark: 0,
            input: None,
            priority: 0,
            connmark: None,
            state: None,
            tags: Vec::new(),
            caught: None,
        }
    }
}

/// Ethertypes of tags.
const VLAN: [(&str, u16); 3] = [("vlan", 0x8100), ("802.1q", 0x8100), ("802.1ad", 0x88a8)];

impl Probe {
    /// Reads `tcp 10.3.34.11:40000 > 10.3.31.88:5001 tos 0x10 len 1500 in eth1`; `udp`, `icmp` and protocol numbers too,
    /// IPv6 as `tcp [2001:db8::1]:40000 > [2001:db8::2]:80`, `mark N`, `connmark N`, `state established`, `vlan 10 pcp 5`, `802.1ad 100 vlan 10`.
    ///
    /// # Errors
    /// What cannot be read, and how it is written.
    pub fn parse(text: &str) -> Result<Probe, String> {
        let bad = |what: &str| {
            format!(
                "{what}: a packet is written tcp 10.0.0.1:40000 > 10.0.0.2:80 [tos 0x10] [len 1500] [mark N] [connmark N] [state established] [vlan ID [pcp N]] [in eth1]"
            )
        };
        let mut words = text.split_whitespace();
        let mut probe = Probe::default();
        let protocol = words.next().ok_or_else(|| bad("no protocol"))?;
        probe.protocol = match protocol {
            "tcp" => 6,
            "udp" => 17,
            "icmp" => 1,
            number => number.parse().map_err(|_| bad(&format!("protocol {number}")))?,
        };
        let end = |word: Option<&str>| -> Result<(IpAddr, u16), String> {
            let word = word.ok_or_else(|| bad("no address"))?;
            let (addr, port) = match word.strip_prefix('[').and_then(|w| w.split_once(']')) {
                Some((addr, port)) => (addr, port.strip_prefix(':').unwrap_or("0")),
                None if word.matches(':').count() > 1 => (word, "0"),
                None => word.split_once(':').unwrap_or((word, "0")),
            };
            let addr = addr.parse().map_err(|_| bad(&format!("address {addr}")))?;
            Ok((addr, port.parse().map_err(|_| bad(&format!("port {port}")))?))
        };
        (probe.src, probe.sport) = end(words.next())?;
        if words.next() != Some(">") {
            return Err(bad("no > between the addresses"));
        }
        (probe.dst, probe.dport) = end(words.next())?;
        if probe.src.is_ipv4() != probe.dst.is_ipv4() {
            return Err(bad("one address of IPv4 and one of IPv6"));
        }
        if probe.protocol == 1 && probe.src.is_ipv6() {
            probe.protocol = 58;
        }
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| bad(&format!("{name} has no value")))?;
            let number = || crate::marks::number(value).ok_or_else(|| bad(&format!("{name} {value}")));
            match name {
                "tos" => probe.tos = u8::try_from(number()?).map_err(|_| bad(&format!("tos {value}")))?,
                "len" => {
                    probe.len = u16::try_from(number()?)
                        .ok()
                        .filter(|l| *l >= 28)
                        .ok_or_else(|| bad(&format!("len {value}")))?
                }
                "mark" => probe.mark = number()?,
                "connmark" => probe.connmark = Some(number()?),
                "state" => {
                    let state = STATES.iter().position(|s| *s == value);
                    probe.state = Some(state.ok_or_else(|| bad(&format!("state {value}")))? as u32);
                }
                "vlan" | "802.1q" | "802.1ad" => {
                    let id = u16::try_from(number()?).ok().filter(|id| *id < 4096);
                    let id = id.ok_or_else(|| bad(&format!("{name} {value}")))?;
                    let tpid = VLAN.iter().find(|v| v.0 == name).map_or(0x8100, |v| v.1);
                    if probe.tags.len() == 2 {
                        return Err(bad("more than two tags"));
                    }
                    probe.tags.push((tpid, id));
                }
                "pcp" => {
                    let priority = u16::try_from(number()?).ok().filter(|n| *n < 8);
                    let tag = probe.tags.last_mut().ok_or_else(|| bad("pcp without a tag before it"))?;
                    tag.1 |= priority.ok_or_else(|| bad(&format!("pcp {value}")))? << 13;
                }
                "in" => probe.input = Some(value.to_owned()),
                _ => return Err(bad(&format!("what is {name}"))),
            }
        }
        Ok(probe)
    }

    /// A packet as it was caught: ethertype and bytes from the network header on.
    pub fn caught(ethertype: u16, bytes: Vec<u8>) -> Probe {
        let mut probe = Probe { len: bytes.len().min(0xffff) as u16, protocol: 0, ..Probe::default() };
        let at = |n: usize| bytes.get(n).copied().unwrap_or(0);
        let two = |n: usize| u16::from(at(n)) << 8 | u16::from(at(n + 1));
        let mut ports = None;
        match ethertype {
            IP => {
                let four = |n: usize| Ipv4Addr::new(at(n), at(n + 1), at(n + 2), at(n + 3));
                (probe.src, probe.dst) = (four(12).into(), four(16).into());
                (probe.protocol, probe.tos, probe.len) = (at(9), at(1), two(2));
                ports = (two(6) & 0x1fff == 0).then_some(usize::from(at(0) & 15) * 4);
            }
            IP6 => {
                let sixteen = |n: usize| {
                    let mut all = [0; 16];
                    (0..16).for_each(|i| all[i] = at(n + i));
                    std::net::Ipv6Addr::from(all)
                };
                (probe.src, probe.dst) = (sixteen(8).into(), sixteen(24).into());
                (probe.protocol, probe.tos) = (at(6), (two(0) >> 4) as u8);
                probe.len = two(4).saturating_add(40);
                ports = Some(40);
            }
            _ => {}
        }
        (probe.sport, probe.dport) = match (probe.protocol, ports) {
            (6 | 17 | 33 | 132 | 136, Some(n)) => (two(n), two(n + 2)),
            (1 | 58, Some(n)) => (0, two(n)),
            _ => (0, 0),
        };
        probe.caught = Some((ethertype, bytes));
        probe
    }

    /// Ethertype behind the first tag, which lies beside the packet; a second one lies in it.
    pub fn ethertype(&self) -> u16 {
        match (&self.caught, self.tags.get(1), self.src) {
            (_, Some(inner), _) => inner.0,
            (Some((ethertype, _)), ..) => *ethertype,
            (None, _, IpAddr::V4(_)) => IP,
            (None, _, IpAddr::V6(_)) => IP6,
        }
    }

    /// What a filter's `protocol` is compared with: the first tag's ethertype, where there is one.
    pub fn protocol_seen(&self) -> u16 {
        self.tags.first().map_or(self.ethertype(), |tag| tag.0)
    }

    /// Ethertype behind all tags.
    pub fn innermost(&self) -> u16 {
        match (&self.caught, self.src) {
            (Some((ethertype, _)), _) => *ethertype,
            (None, IpAddr::V4(_)) => IP,
            (None, IpAddr::V6(_)) => IP6,
        }
    }

    /// Its code point as cake reads it: ARP counts as control, what has none as best effort.
    pub fn dscp(&self) -> u8 {
        match self.innermost() {
            IP | IP6 => self.tos >> 2,
            crate::filters::ARP => 0x38,
            _ => 0,
        }
    }

    /// Its source is another from here on.
    pub fn translate(&mut self, source: IpAddr) {
        self.src = source;
        match (&mut self.caught, source) {
            (Some((IP, bytes)), IpAddr::V4(source)) => {
                if let Some(place) = bytes.get_mut(12..16) {
                    place.copy_from_slice(&source.octets());
                }
            }
            (Some((IP6, bytes)), IpAddr::V6(source)) => {
                if let Some(place) = bytes.get_mut(8..24) {
                    place.copy_from_slice(&source.octets());
                }
            }
            _ => {}
        }
    }

    /// The packet the other way, as another machine would answer it.
    pub fn answered(&self) -> Probe {
        let caught = None;
        Probe {
            src: self.dst,
            dst: self.src,
            sport: self.dport,
            dport: self.sport,
            caught,
            input: None,
            mark: 0,
            state: None,
            ..self.clone()
        }
    }

    /// The four bytes so far behind the beginning of the network header; beyond the headers there are zeros.
    pub fn word(&self, off: i32) -> u32 {
        let cut = off.rem_euclid(4);
        if cut != 0 {
            let (a, b) = (self.aligned(off - cut), self.aligned(off - cut + 4));
            return a << (8 * cut) | b >> (32 - 8 * cut);
        }
        self.aligned(off)
    }

    fn aligned(&self, off: i32) -> u32 {
        let two = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
        // Of the Ethernet header only the type is known.
        if off < 0 {
            return if off == -4 { u32::from(self.ethertype()) } else { 0 };
        }
        match self.tags.get(1) {
            Some((_, tci)) if off == 0 => two(*tci, self.innermost()),
            Some(_) => self.inner(off - 4),
            None => self.inner(off),
        }
    }

    /// Four bytes of the packet behind its tags.
    fn inner(&self, off: i32) -> u32 {
        let two = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
        if let Some((_, bytes)) = &self.caught {
            let mut word = (off as usize..off as usize + 4)
                .fold(0, |word, i| word << 8 | u32::from(bytes.get(i).copied().unwrap_or(0)));
            // A rule may have set the ToS since.
            if off == 0 && self.innermost() == IP {
                word = word & !0x00ff_0000 | u32::from(self.tos) << 16;
            }
            return word;
        }
        let ports = match self.protocol {
            1 | 58 => two(self.dport, 0),
            6 | 17 | 33 | 132 | 136 => two(self.sport, self.dport),
            _ => 0,
        };
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => match off {
                0 => two(0x4500 | u16::from(self.tos), self.len),
                8 => two(64 << 8 | u16::from(self.protocol), 0),
                12 => src.into(),
                16 => dst.into(),
                20 => ports,
                32 if self.protocol == 6 => 0x5010_0000,
                _ => 0,
            },
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let of = |addr: std::net::Ipv6Addr, from: i32| {
                    (u128::from(addr) >> (96 - 8 * (off - from))) as u32
                };
                match off {
                    0 => 0x6000_0000 | u32::from(self.tos) << 20,
                    4 => two(self.len.saturating_sub(40), u16::from(self.protocol) << 8 | 64),
                    8..=20 => of(src, 8),
                    24..=36 => of(dst, 24),
                    40 => ports,
                    52 if self.protocol == 6 => 0x5010_0000,
                    _ => 0,
                }
            }
            _ => 0,
        }
    }

    /// The bits at a place of a set of packets.
    pub fn at(&self, place: Place, names: &Names) -> u32 {
        match place {
            Place::Ethertype => self.ethertype().into(),
            Place::Word(off) => self.aligned(off),
            Place::Tag => self.tags.first().map_or(0, |tag| u32::from(tag.0) << 16 | u32::from(tag.1)),
            Place::Mark if names.conn => self.connmark.unwrap_or(0),
            Place::Mark => self.mark,
            Place::State => self.state.unwrap_or(0),
            Place::Conn => self.connmark.unwrap_or(0),
            Place::Priority => self.priority,
            Place::Forwarded => self.input.is_some().into(),
            Place::Input => self.input.as_ref().map_or(0, |device| names.number(device)),
            Place::Long(n) => (u32::from(self.len) >= n).into(),
            // What the headers do not tell is taken not to hold.
            Place::Other(_) => 0,
        }
    }

    /// A packet of a set.
    pub fn of(cube: &super::cube::Cube, names: &Names) -> Option<Probe> {
        let ethertype = cube.at(Place::Ethertype);
        let ethertype = if ethertype.0 == 0 { IP } else { ethertype.1 as u16 };
        if !matches!(ethertype, IP | IP6) {
            return None;
        }
        let mut probe = Probe::default();
        if ethertype == IP6 {
            let any = std::net::Ipv6Addr::from(0x2001_0db8_0000_0000_0000_0000_0000_0001u128);
            (probe.src, probe.dst) = (any.into(), any.into());
        }
        let mut bytes: Vec<u8> = (0..15).flat_map(|n| probe.aligned(4 * n).to_be_bytes()).collect();
        let mut len = probe.len;
        let (mut device, mut forwarded) = (0, false);
        for &(place, mask, value) in &cube.0 {
            match place {
                Place::Word(off) if off >= 0 => {
                    let off = off as usize;
                    if bytes.len() < off + 4 {
                        bytes.resize(off + 4, 0);
                    }
                    for i in 0..4 {
                        let shift = 24 - 8 * i;
                        let (m, v) = ((mask >> shift) as u8, (value >> shift) as u8);
                        bytes[off + i] = bytes[off + i] & !m | v & m;
                    }
                    if off == 0 && ethertype == IP && mask & 0xffff == 0xffff {
                        len = value as u16;
                    }
                }
                Place::State => {
                    probe.state =
                        (0..8).find(|n| (n ^ value) & mask == 0).map(|n| n.min(4)).filter(|n| *n > 0);
                }
                Place::Mark if names.conn => probe.connmark = Some(value),
                Place::Mark => probe.mark = probe.mark & !mask | value,
                Place::Tag if value != 0 => {
                    let tpid = if value >> 16 == 0 { 0x8100 } else { (value >> 16) as u16 };
                    probe.tags = vec![(tpid, value as u16)];
                }
                Place::Priority => probe.priority = value,
                Place::Input => {
                    let fits = (0..=names.inputs.len() as u32).find(|n| (n ^ value) & mask == 0);
                    device = fits.unwrap_or(0);
                }
                Place::Forwarded => forwarded = value == 1,
                Place::Long(n) if value == 0 => len = len.min((n - 1) as u16),
                Place::Other(_) if value != 0 => return None,
                _ => {}
            }
        }
        if forwarded || device != 0 {
            probe.input = Some(names.device(device));
        }
        let made = Probe::caught(ethertype, bytes);
        let Probe { mark, priority, input, connmark, state, tags, .. } = probe;
        let plain = Probe { caught: None, mark, priority, input, connmark, state, tags, len, ..made.clone() };
        // Written as headers where these say it all.
        let exact = cube.holds(&plain, names);
        Some(if exact { plain } else { Probe { caught: made.caught, ..plain } })
    }

    /// As [`Probe::parse`] reads it.
    pub fn text(&self) -> String {
        let protocol = match self.protocol {
            6 => "tcp".to_owned(),
            17 => "udp".to_owned(),
            1 | 58 => "icmp".to_owned(),
            n => n.to_string(),
        };
        let end = |addr: IpAddr, port: u16| match addr {
            IpAddr::V4(addr) => format!("{addr}:{port}"),
            IpAddr::V6(addr) => format!("[{addr}]:{port}"),
        };
        let mut text = format!("{protocol} {} > {}", end(self.src, self.sport), end(self.dst, self.dport));
        if self.tos != 0 {
            text += &format!(" tos {:#04x}", self.tos);
        }
        if self.len != 1500 {
            text += &format!(" len {}", self.len);
        }
        if self.mark != 0 {
            text += &format!(" mark {}", self.mark);
        }
        if let Some(mark) = self.connmark {
            text += &format!(" connmark {mark}");
        }
        if let Some(state) = self.state {
            text += &format!(" state {}", STATES[state.min(4) as usize]);
        }
        for (tpid, tci) in &self.tags {
            let name = VLAN.iter().find(|v| v.1 == *tpid).map_or("vlan", |v| v.0);
            text += &format!(" {name} {}", tci & 0xfff);
            if tci >> 13 != 0 {
                text += &format!(" pcp {}", tci >> 13);
            }
        }
        if let Some(input) = &self.input {
            text += &format!(" in {input}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read() {
        let text = "tcp 10.3.34.11:40000 > 10.3.31.88:5001 tos 0x10 len 1400 in eth1";
        let p = Probe::parse(text).unwrap();
        assert_eq!(
            (p.sport, p.dport, p.tos, p.len, p.input.as_deref()),
            (40_000, 5001, 16, 1400, Some("eth1"))
        );
        assert_eq!((p.word(0), p.word(8), p.word(20)), (0x4510_0578, 0x4006_0000, 0x9c40_1389));
        // From the last byte of the protocol's word on.
        assert_eq!(p.word(9), 0x0600_000a);
        assert_eq!(p.text(), text);
        assert!(Probe::parse("tcp 10.3.34.11 10.3.31.88").unwrap_err().starts_with("no >"));
        assert!(Probe::parse("tcp 10.3.34.11 > x").unwrap_err().starts_with("address x"));
        let six = Probe::parse("udp [2001:db8::1]:53 > [2001:db8::2]:4000").unwrap();
        assert_eq!((six.word(8), six.word(20), six.word(40)), (0x2001_0db8, 1, 0x0035_0fa0));
        assert!(Probe::parse("tcp 10.0.0.1 > ::1").unwrap_err().starts_with("one address"));
    }

    #[test]
    fn tags_are_read() {
        let text = "tcp 10.0.0.1:40000 > 10.0.0.2:80 vlan 10 pcp 5";
        let p = Probe::parse(text).unwrap();
        assert_eq!((p.protocol_seen(), p.ethertype(), p.word(12)), (0x8100, IP, 0x0a00_0001));
        assert_eq!(p.text(), text);
        // The second tag lies in the packet.
        let two = Probe::parse("tcp 10.0.0.1:40000 > 10.0.0.2:80 802.1ad 100 vlan 10").unwrap();
        assert_eq!((two.protocol_seen(), two.ethertype(), two.innermost()), (0x88a8, 0x8100, IP));
        assert_eq!((two.word(0), two.word(16)), (0x000a_0800, 0x0a00_0001));
        let bad = |text: &str| Probe::parse(text).unwrap_err();
        assert!(bad("tcp 10.0.0.1 > 10.0.0.2 vlan 4096").starts_with("vlan 4096"));
        assert!(bad("tcp 10.0.0.1 > 10.0.0.2 pcp 3").starts_with("pcp without"));
        assert!(bad("tcp 10.0.0.1 > 10.0.0.2 vlan 1 vlan 2 vlan 3").starts_with("more than two"));
    }

    #[test]
    fn a_caught_packet_tells_the_same() {
        let p = Probe::parse("udp 10.0.0.1:53 > 10.0.0.2:4000 tos 0x10 len 60").unwrap();
        let bytes: Vec<u8> = (0..15).flat_map(|n| p.word(4 * n).to_be_bytes()).collect();
        let caught = Probe::caught(IP, bytes);
        assert_eq!(caught.text(), p.text());
        assert!((0..15).all(|n| caught.word(4 * n) == p.word(4 * n)));
    }
}
