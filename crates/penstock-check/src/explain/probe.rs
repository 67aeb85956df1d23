//! A packet somebody asks about.

use std::net::Ipv4Addr;

/// An IPv4 packet: its headers as far as filters look at them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Protocol number.
    pub protocol: u8,
    /// Source.
    pub src: Ipv4Addr,
    /// Destination.
    pub dst: Ipv4Addr,
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
}

impl Default for Probe {
    fn default() -> Probe {
        let any = Ipv4Addr::new(192, 0, 2, 1);
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
        }
    }
}

impl Probe {
    /// Reads `tcp 10.3.34.11:40000 > 10.3.31.88:5001 tos 0x10 len 1500 in eth1`; `udp`, `icmp` and protocol numbers too, and
    /// `mark N`.
    ///
    /// # Errors
    /// What cannot be read, and how it is written.
    pub fn parse(text: &str) -> Result<Probe, String> {
        let bad = |what: &str| {
            format!(
                "{what}: a packet is written tcp 10.0.0.1:40000 > 10.0.0.2:80 [tos 0x10] [len 1500] [mark N] [in eth1]"
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
        let end = |word: Option<&str>| -> Result<(Ipv4Addr, u16), String> {
            let word = word.ok_or_else(|| bad("no address"))?;
            let (addr, port) = word.split_once(':').unwrap_or((word, "0"));
            let addr = addr.parse().map_err(|_| bad(&format!("address {addr}")))?;
            Ok((addr, port.parse().map_err(|_| bad(&format!("port {port}")))?))
        };
        (probe.src, probe.sport) = end(words.next())?;
        if words.next() != Some(">") {
            return Err(bad("no > between the addresses"));
        }
        (probe.dst, probe.dport) = end(words.next())?;
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
                "in" => probe.input = Some(value.to_owned()),
                _ => return Err(bad(&format!("what is {name}"))),
            }
        }
        Ok(probe)
    }

    /// The four bytes so far behind the beginning of the IP header; beyond the headers there are zeros.
    pub fn word(&self, off: i32) -> u32 {
        let two = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
        match off {
            0 => two(0x4500 | u16::from(self.tos), self.len),
            8 => two(64 << 8 | u16::from(self.protocol), 0),
            12 => self.src.into(),
            16 => self.dst.into(),
            20 if self.protocol == 1 => two(self.dport, 0),
            20 if matches!(self.protocol, 6 | 17 | 33 | 132 | 136) => two(self.sport, self.dport),
            32 if self.protocol == 6 => 0x5010_0000,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read() {
        let p = Probe::parse("tcp 10.3.34.11:40000 > 10.3.31.88:5001 tos 0x10 len 1400 in eth1").unwrap();
        assert_eq!(
            (p.sport, p.dport, p.tos, p.len, p.input.as_deref()),
            (40_000, 5001, 16, 1400, Some("eth1"))
        );
        assert_eq!((p.word(0), p.word(8), p.word(20)), (0x4510_0578, 0x4006_0000, 0x9c40_1389));
        assert!(Probe::parse("tcp 10.3.34.11 10.3.31.88").unwrap_err().starts_with("no >"));
        assert!(Probe::parse("tcp 10.3.34.11 > x").unwrap_err().starts_with("address x"));
    }
}
