//! What is to be replayed: pcap, pcapng, or JSON lines.

use super::frame::{self, Link};
use crate::replay::spec;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use penstock_model::Diagnostic;
use penstock_packet::Skb;
use penstock_packet::skb::HEADER_MAX;
use serde_json::{Map, Value};

/// What happens at a moment.
#[derive(Clone, Debug)]
pub enum What {
    /// A packet leaves.
    Packet(Box<Skb>),
    /// A command is given.
    Command(String),
}

/// A packet or a command, and when.
#[derive(Clone, Debug)]
pub struct Moment {
    /// ns from the first.
    pub t_ns: i64,
    /// What happens.
    pub what: What,
    /// The frame as it was captured, or its headers.
    pub bytes: Vec<u8>,
}

/// All that is to be replayed.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// In the order in which it happens.
    pub moments: Vec<Moment>,
    /// When the first was, ns since 1970.
    pub epoch_ns: i64,
    /// Frames left out because the capture says they were coming in.
    pub incoming: u64,
    /// Frames left out because their link type is not read, or shorter than their own head.
    pub unread: u64,
}

/// Whether these bytes are a capture: pcap's or pcapng's first four.
pub fn is_capture(bytes: &[u8]) -> bool {
    let Some(&[a, b, c, d]) = bytes.first_chunk() else { return false };
    let magic = u32::from_be_bytes([a, b, c, d]);
    [magic, magic.swap_bytes()].iter().any(|m| matches!(m, 0xa1b2_c3d4 | 0xa1b2_3c4d | 0x0a0d_0d0a))
}

/// Reads a capture or JSON lines; `name` is the file's.
///
/// # Errors
/// What is wrong, and where.
pub fn read(bytes: &[u8], name: &str) -> Result<Traffic, Diagnostic> {
    let mut traffic = match bytes.first_chunk() {
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => pcapng(bytes, name)?,
        _ if is_capture(bytes) => pcap(bytes, name)?,
        _ => lines(bytes, name)?,
    };
    // A capture may have frames a little out of order.
    traffic.moments.sort_by_key(|m| m.t_ns);
    let first = traffic.moments.first().map_or(0, |m| m.t_ns);
    traffic.moments.iter_mut().for_each(|m| m.t_ns -= first);
    traffic.epoch_ns += first;
    Ok(traffic)
}

impl Traffic {
    fn frame(&mut self, link: Option<Link>, t_ns: i64, bytes: &[u8], wire_len: u32, incoming: Option<bool>) {
        let Some((bytes, longer, came)) = link.and_then(|l| l.ethernet(bytes)) else {
            self.unread += 1;
            return;
        };
        if incoming.or(came) == Some(true) {
            self.incoming += 1;
            return;
        }
        let len = (i64::from(wire_len) + longer).clamp(0, i64::from(u32::MAX)) as u32;
        let skb = frame::packet(&bytes, len);
        self.moments.push(Moment { t_ns, what: What::Packet(Box::new(skb)), bytes });
    }
}

fn broken(name: &str, n: usize, e: &pcap_file::PcapError) -> Diagnostic {
    Diagnostic::error(format!("{name}: after {n} packets: {e}"))
        .help("a capture that was cut short ends well with: editcap FILE NEW")
}

fn pcap(bytes: &[u8], name: &str) -> Result<Traffic, Diagnostic> {
    let mut reader = PcapReader::new(bytes).map_err(|e| broken(name, 0, &e))?;
    let header = reader.header();
    let link = Link::of(u32::from(header.datalink) & 0x0fff_ffff);
    let unit = match header.ts_resolution {
        pcap_file::TsResolution::MicroSecond => 1000,
        pcap_file::TsResolution::NanoSecond => 1,
    };
    let mut traffic = Traffic::default();
    while let Some(packet) = reader.next_raw_packet() {
        let packet = packet.map_err(|e| broken(name, traffic.moments.len(), &e))?;
        let t_ns = i64::from(packet.ts_sec) * 1_000_000_000 + i64::from(packet.ts_frac) * unit;
        traffic.frame(link, t_ns, &packet.data, packet.orig_len, None);
    }
    Ok(traffic)
}

/// ns of so many units of an interface's clock: microseconds unless `if_tsresol` says otherwise.
fn since_1970(interface: &InterfaceDescriptionBlock<'_>, units: u128) -> i64 {
    let mut per_s: u128 = 1_000_000;
    let mut offset: i128 = 0;
    for option in &interface.options {
        match option {
            InterfaceDescriptionOption::IfTsResol(r) if r & 0x80 != 0 => {
                per_s = 1u128 << u32::from(r & 0x7f).min(100);
            }
            InterfaceDescriptionOption::IfTsResol(r) => per_s = 10u128.pow(u32::from(*r).min(30)),
            InterfaceDescriptionOption::IfTsOffset(s) => offset = i128::from(*s as i64) * 1_000_000_000,
            _ => {}
        }
    }
    let whole = units / per_s * 1_000_000_000;
    let part = (units % per_s).saturating_mul(1_000_000_000) / per_s;
    ((whole + part) as i128 + offset).clamp(0, i128::from(i64::MAX / 2)) as i64
}

fn pcapng(bytes: &[u8], name: &str) -> Result<Traffic, Diagnostic> {
    let mut reader = PcapNgReader::new(bytes).map_err(|e| broken(name, 0, &e))?;
    let mut traffic = Traffic::default();
    let mut interfaces: Vec<InterfaceDescriptionBlock<'static>> = Vec::new();
    while let Some(block) = reader.next_block() {
        let block = block.map_err(|e| broken(name, traffic.moments.len(), &e))?.into_owned();
        match block {
            Block::SectionHeader(_) => interfaces.clear(),
            Block::InterfaceDescription(interface) => interfaces.push(interface),
            Block::EnhancedPacket(packet) => {
                let Some(interface) = interfaces.get(packet.interface_id as usize) else {
                    traffic.unread += 1;
                    continue;
                };
                // epb_flags: the lowest two bits are 1 for a packet that came in, 2 for one that went out.
                let incoming = packet.options.iter().find_map(|o| match o {
                    EnhancedPacketOption::Flags(f) if f & 3 != 0 => Some(f & 3 == 1),
                    _ => None,
                });
                let t_ns = since_1970(interface, packet.timestamp.as_nanos());
                let link = Link::of(u32::from(interface.linktype));
                traffic.frame(link, t_ns, &packet.data, packet.original_len, incoming);
            }
            // Without a time nothing can be replayed.
            Block::SimplePacket(_) => traffic.unread += 1,
            _ => {}
        }
    }
    Ok(traffic)
}

fn lines(bytes: &[u8], name: &str) -> Result<Traffic, Diagnostic> {
    let text = std::str::from_utf8(bytes).map_err(|_| {
        Diagnostic::error(format!("{name} is neither a capture (pcap, pcapng) nor JSON lines"))
    })?;
    let mut traffic = Traffic::default();
    for (n, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let place = format!("{name}:{}: ", n + 1);
        let entry: Value = serde_json::from_str(line).map_err(|e| {
            Diagnostic::error(format!("{place}{e}"))
                .help(r#"a packet a line, e.g. {"t_us": 0, "len": 1000, "dst": "10.0.0.2"}; or a capture (pcap, pcapng)"#)
        })?;
        let mut alone = Map::new();
        alone.insert("packets".into(), Value::Array(vec![entry]));
        let sent = spec::packets(&alone).map_err(|wrong| {
            let message = wrong.message.replace("packets[0].", "").replace("packets[0]", "the line");
            Diagnostic { message: format!("{place}{}", message.replace("packet 0: ", "")), ..wrong }
        })?;
        traffic.moments.extend(sent.into_iter().map(moment));
    }
    Ok(traffic)
}

fn moment(sent: spec::Sent) -> Moment {
    match sent.what {
        spec::What::Command(line) => Moment { t_ns: sent.t_ns, what: What::Command(line), bytes: Vec::new() },
        spec::What::Packet(skb) => {
            let mut head = [0; HEADER_MAX];
            let length = skb.header_bytes(&mut head);
            let mut bytes = head[..length].to_vec();
            bytes.resize(skb.len as usize, 0);
            Moment { t_ns: sent.t_ns, what: What::Packet(skb), bytes }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_packets_and_commands() {
        let text = "{\"t_us\": 50, \"len\": 200, \"repeat\": 2, \"gap_us\": 10}\n\n{\"t_us\": 55, \"run\": \"tc qdisc show\"}\n";
        let traffic = read(text.as_bytes(), "a").unwrap();
        let times: Vec<i64> = traffic.moments.iter().map(|m| m.t_ns).collect();
        assert_eq!(times, [0, 5000, 10_000]);
        assert!(matches!(&traffic.moments[1].what, What::Command(line) if line == "tc qdisc show"));
        assert_eq!((traffic.moments[0].bytes.len(), traffic.epoch_ns), (200, 50_000));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let check =
            |text: &str, want: &str| assert_eq!(read(text.as_bytes(), "a").unwrap_err().message, want);
        check("{}\n{\"len\": 3}", "a:2: len 3 is not in 42..65535");
        check("{\"mark\": \"x\"}", "a:1: mark: \"x\" is not a number");
        check("[]", "a:1: the line: not a JSON object");
        assert!(read(&[0xff, 0xfe], "a").unwrap_err().message.contains("neither a capture"));
    }

    #[test]
    fn clocks_of_interfaces() {
        let of = |options| InterfaceDescriptionBlock { linktype: 1.into(), snaplen: 0, options };
        assert_eq!(since_1970(&of(vec![]), 1_500_001), 1_500_001_000);
        assert_eq!(since_1970(&of(vec![InterfaceDescriptionOption::IfTsResol(9)]), 7), 7);
        assert_eq!(since_1970(&of(vec![InterfaceDescriptionOption::IfTsResol(0x8a)]), 1536), 1_500_000_000);
        let shifted =
            vec![InterfaceDescriptionOption::IfTsResol(0), InterfaceDescriptionOption::IfTsOffset(3)];
        assert_eq!(since_1970(&of(shifted), 2), 5_000_000_000);
    }

    #[test]
    fn a_cut_capture_says_where() {
        let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        bytes.extend([0; 8]);
        bytes.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0]);
        bytes.extend([1, 0, 0, 0, 2, 0, 0, 0, 60, 0, 0, 0, 60, 0, 0, 0]);
        bytes.extend([0; 60]);
        let traffic = read(&bytes, "a").unwrap();
        assert_eq!((traffic.moments.len(), traffic.epoch_ns), (1, 1_000_002_000));
        bytes.truncate(bytes.len() - 5);
        assert!(read(&bytes, "a").unwrap_err().message.starts_with("a: after 0 packets: "));
    }
}
