//! Packets of a capture file: pcap, and the blocks of pcapng that hold packets.
//!
//! Follows: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng (sections 4.1 to 4.4), and the link types of tcpdump.org.

use super::Probe;

/// Reads the packets of a capture, IPv4 and IPv6 in Ethernet, with tags or without, in Linux's cooked form, or bare.
///
/// # Errors
/// Why it is not a capture, or in which way it is not whole.
pub fn packets(bytes: &[u8]) -> Result<Vec<Probe>, String> {
    match bytes.get(..4) {
        Some([0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1]) => plain(bytes, false),
        Some([0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d]) => plain(bytes, true),
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => blocks(bytes),
        _ => Err("this is not a capture: neither pcap nor pcapng begins so".to_owned()),
    }
}

fn four(bytes: &[u8], at: usize, big: bool) -> Option<u32> {
    let b: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(if big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) })
}

fn plain(bytes: &[u8], big: bool) -> Result<Vec<Probe>, String> {
    let cut = || "the capture ends within its header".to_owned();
    let link = four(bytes, 20, big).ok_or_else(cut)? & 0xffff;
    let mut out = Vec::new();
    let mut at = 24;
    while at < bytes.len() {
        let len = four(bytes, at + 8, big)
            .ok_or_else(|| format!("the capture ends within packet {}", out.len() + 1))?;
        let frame = bytes.get(at + 16..at + 16 + len as usize);
        let frame = frame.ok_or_else(|| format!("the capture ends within packet {}", out.len() + 1))?;
        out.extend(probe(link, frame)?);
        at += 16 + len as usize;
    }
    Ok(out)
}

fn blocks(bytes: &[u8]) -> Result<Vec<Probe>, String> {
    let (mut out, mut links) = (Vec::new(), Vec::new());
    let (mut at, mut big) = (0, false);
    while at < bytes.len() {
        let cut = || format!("the capture ends within the block at byte {at}");
        if bytes[at..].starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
            big = four(bytes, at + 8, true) == Some(0x1a2b_3c4d);
            links.clear();
        }
        let (kind, len) =
            (four(bytes, at, big).ok_or_else(cut)?, four(bytes, at + 4, big).ok_or_else(cut)? as usize);
        let block = bytes.get(at..at + len).filter(|_| len >= 12).ok_or_else(cut)?;
        match kind {
            1 => links.push(u32::from_le_bytes(link_of(block, big))),
            6 => {
                let of = four(block, 8, big).ok_or_else(cut)? as usize;
                let size = four(block, 20, big).ok_or_else(cut)? as usize;
                let frame = block.get(28..28 + size).ok_or_else(cut)?;
                out.extend(probe(links.get(of).copied().unwrap_or(1), frame)?);
            }
            3 => {
                let size = (four(block, 8, big).ok_or_else(cut)? as usize).min(len.saturating_sub(16));
                out.extend(probe(links.first().copied().unwrap_or(1), &block[12..12 + size])?);
            }
            _ => {}
        }
        at += len;
    }
    Ok(out)
}

/// The link type of an interface's block: two bytes.
fn link_of(block: &[u8], big: bool) -> [u8; 4] {
    let (a, b) = (block.get(8).copied().unwrap_or(0), block.get(9).copied().unwrap_or(0));
    if big { [b, a, 0, 0] } else { [a, b, 0, 0] }
}

/// A frame's packet; `None` where it has none of IP.
fn probe(link: u32, frame: &[u8]) -> Result<Option<Probe>, String> {
    let two = |at: usize| frame.get(at..at + 2).map_or(0, |b| u16::from(b[0]) << 8 | u16::from(b[1]));
    let (mut ethertype, mut at) = match link {
        1 => (two(12), 14),
        113 => (two(14), 16),
        276 => (two(0), 20),
        12 | 14 | 101 | 228 | 229 => {
            (if frame.first().is_some_and(|b| b >> 4 == 6) { 0x86dd } else { 0x0800 }, 0)
        }
        other => {
            return Err(format!(
                "packets of link type {other} are not read here; of Ethernet, Linux's cooked forms and bare IP they are"
            ));
        }
    };
    while matches!(ethertype, 0x8100 | 0x88a8) {
        (ethertype, at) = (two(at + 2), at + 4);
    }
    let ip = matches!(ethertype, 0x0800 | 0x86dd);
    Ok(frame.get(at..).filter(|b| ip && b.len() >= 20).map(|b| Probe::caught(ethertype, b.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet() -> Vec<u8> {
        let p = Probe::parse("udp 10.0.0.1:53 > 10.0.0.2:4000 len 60").unwrap();
        let ip = (0..15).flat_map(|n| p.word(4 * n).to_be_bytes());
        [0; 12].into_iter().chain([0x81, 0, 0, 5, 8, 0]).chain(ip).collect()
    }

    #[test]
    fn both_forms_are_read() {
        let frame = ethernet();
        let len = (frame.len() as u32).to_le_bytes();
        let mut pcap =
            vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
        pcap.extend([0; 8].into_iter().chain(len).chain(len).chain(frame.iter().copied()));
        let all = packets(&pcap).unwrap();
        assert_eq!(all[0].text(), "udp 10.0.0.1:53 > 10.0.0.2:4000 len 60");
        assert!(packets(&pcap[..pcap.len() - 1]).unwrap_err().contains("within packet 1"));
        let block = |kind: u32, body: Vec<u8>| {
            let pad = (4 - body.len() % 4) % 4;
            let len = (12 + body.len() + pad) as u32;
            let mut b: Vec<u8> =
                kind.to_le_bytes().into_iter().chain(len.to_le_bytes()).chain(body).collect();
            b.extend(std::iter::repeat_n(0, pad).chain(len.to_le_bytes()));
            b
        };
        let mut ng =
            block(0x0a0d_0d0a, [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0].into_iter().chain([0xff; 8]).collect());
        ng.extend(block(1, vec![1, 0, 0, 0, 0, 0, 4, 0]));
        ng.extend(block(6, [0; 12].into_iter().chain(len).chain(len).chain(frame).collect()));
        assert_eq!(packets(&ng).unwrap()[0].text(), all[0].text());
        assert!(packets(b"no").is_err());
    }
}
