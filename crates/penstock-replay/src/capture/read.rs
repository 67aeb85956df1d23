//! What is to be replayed: pcap, pcapng, or JSON lines.

use super::frame::{self, Link};
use super::pcap::{pcap, pcapng};
use crate::spec;
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
    /// A captured frame: a packet, or counted as one that is none.
    pub(super) fn frame(
        &mut self,
        link: Option<Link>,
        t_ns: i64,
        bytes: &[u8],
        wire_len: u32,
        incoming: Option<bool>,
    ) {
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
        check("[]", "a:1: the line: not JSON object");
        assert!(read(&[0xff, 0xfe], "a").unwrap_err().message.contains("neither a capture"));
    }
}
