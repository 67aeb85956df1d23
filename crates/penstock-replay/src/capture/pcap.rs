//! The files: pcap and pcapng (<https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html>).

use super::frame::Link;
use super::read::Traffic;
use pcap_parser::nom::{Err, IResult};
use pcap_parser::pcapng::{
    parse_enhancedpacketblock_be, parse_enhancedpacketblock_le, parse_interfacedescriptionblock_be,
    parse_interfacedescriptionblock_le, parse_option_be, parse_option_le, parse_sectionheaderblock,
    parse_unknownblock_be, parse_unknownblock_le,
};
use pcap_parser::{
    EPB_MAGIC, IDB_MAGIC, InterfaceDescriptionBlock, OptionCode, PcapError, PcapNGOption, SHB_MAGIC,
    SPB_MAGIC, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header,
};
use penstock_model::Diagnostic;

/// The obsolete Packet Block, which `editcap` and older tools may still write; the parser has no name for it.
const PACKET_BLOCK: u32 = 2;
/// `epb_flags` and `pack_flags`: the same number and the same bits.
const FLAGS: OptionCode = OptionCode(2);

type Answer<'a, T> = IResult<&'a [u8], T, PcapError<&'a [u8]>>;

/// A part of the file and what is behind it.
///
/// # Errors
/// In words: what is wrong with it.
fn part<'a, T>(answer: Answer<'a, T>) -> Result<(&'a [u8], T), &'static str> {
    match answer {
        Ok(parsed) => Ok(parsed),
        Err(Err::Incomplete(_)) => Err("the file ends within a packet or block"),
        Err(_) => Err("not a valid header or block"),
    }
}

fn broken(name: &str, n: usize, why: &str) -> Diagnostic {
    Diagnostic::error(format!("{name}: after {n} packets: {why}"))
        .help("a capture that was cut short ends well with: editcap FILE NEW")
}

/// Reads a pcap.
///
/// # Errors
/// Where it stops being one.
pub fn pcap(bytes: &[u8], name: &str) -> Result<Traffic, Diagnostic> {
    let (mut rest, header) = part(parse_pcap_header(bytes)).map_err(|why| broken(name, 0, why))?;
    let link = Link::of(header.network.0 as u32 & 0x0fff_ffff);
    let unit = if header.is_nanosecond_precision() { 1 } else { 1000 };
    let mut traffic = Traffic::default();
    while !rest.is_empty() {
        let answer = if header.is_bigendian() { parse_pcap_frame_be(rest) } else { parse_pcap_frame(rest) };
        let (behind, packet) = part(answer).map_err(|why| broken(name, traffic.moments.len(), why))?;
        let t_ns = i64::from(packet.ts_sec) * 1_000_000_000 + i64::from(packet.ts_usec) * unit;
        traffic.frame(link, t_ns, packet.data, packet.origlen, None);
        rest = behind;
    }
    Ok(traffic)
}

/// Reads a pcapng.
///
/// # Errors
/// Where it stops being one.
pub fn pcapng(bytes: &[u8], name: &str) -> Result<Traffic, Diagnostic> {
    let mut traffic = Traffic::default();
    let mut section = Section::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let before = traffic.moments.len();
        rest = section.block(rest, &mut traffic).map_err(|why| broken(name, before, why))?;
    }
    Ok(traffic)
}

/// What the blocks of a section share.
#[derive(Default)]
struct Section {
    big: bool,
    interfaces: Vec<Interface>,
}

/// What a packet needs of the interface it was captured on.
struct Interface {
    link: Option<Link>,
    clock: Clock,
}

impl Section {
    /// Reads a block, and says what is behind it.
    fn block<'a>(&mut self, bytes: &'a [u8], traffic: &mut Traffic) -> Result<&'a [u8], &'static str> {
        let kind: [u8; 4] = *bytes.first_chunk().ok_or("the file ends within a packet or block")?;
        // A section's first block reads alike from both ends, and says how the rest is to be read.
        if u32::from_be_bytes(kind) == SHB_MAGIC {
            let (rest, header) = part(parse_sectionheaderblock(bytes))?;
            *self = Section { big: header.big_endian(), interfaces: Vec::new() };
            return Ok(rest);
        }
        let parse = if self.big { parse_unknownblock_be } else { parse_unknownblock_le };
        let (rest, whole) = part(parse(bytes))?;
        if whole.block_len1 != whole.block_len2 || whole.block_len1 % 4 != 0 {
            return Err("a block whose two lengths differ or are no multiple of 4");
        }
        match if self.big { u32::from_be_bytes(kind) } else { u32::from_le_bytes(kind) } {
            IDB_MAGIC => {
                let parse = match self.big {
                    true => parse_interfacedescriptionblock_be,
                    false => parse_interfacedescriptionblock_le,
                };
                let (_, interface) = part(parse(bytes))?;
                let link = Link::of(interface.linktype.0 as u32);
                self.interfaces.push(Interface { link, clock: Clock::of(&interface, self.big)? });
            }
            EPB_MAGIC => {
                let parse = match self.big {
                    true => parse_enhancedpacketblock_be,
                    false => parse_enhancedpacketblock_le,
                };
                let (_, packet) = part(parse(bytes))?;
                let (units, data) = ((packet.ts_high, packet.ts_low), captured(packet.data, packet.caplen)?);
                // Behind the fixed 32 bytes and the data, both lengths counted.
                let space = whole.data.len() - 20 - packet.data.len();
                let options = options(&packet.options, space)?;
                self.packet(traffic, packet.if_id, units, data, packet.origlen, options);
            }
            PACKET_BLOCK => self.old_packet(whole.data, traffic)?,
            // Without a time nothing can be replayed.
            SPB_MAGIC => traffic.unread += 1,
            _ => {}
        }
        Ok(rest)
    }

    /// The block that the Enhanced Packet Block took the place of: the interface has 16 bits and a count of drops beside it.
    fn old_packet(&self, body: &[u8], traffic: &mut Traffic) -> Result<(), &'static str> {
        let (head, mut rest) = body.split_at_checked(20).ok_or("a Packet Block shorter than its head")?;
        let word = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let interface = match self.big {
            true => u16::from_be_bytes([head[0], head[1]]),
            false => u16::from_le_bytes([head[0], head[1]]),
        };
        let caplen = word(12);
        let data = captured(rest, caplen)?;
        // The padding of the last block's data may be missing in files that old writers left.
        rest = rest.get((caplen as usize).next_multiple_of(4)..).unwrap_or_default();
        let space = rest.len();
        let mut list = Vec::new();
        let parse = if self.big { parse_option_be } else { parse_option_le };
        while let Ok((behind, option)) = parse(rest) as Answer<'_, PcapNGOption<'_>> {
            list.push(option);
            rest = behind;
        }
        let options = options(&list, space)?;
        self.packet(traffic, u32::from(interface), (word(4), word(8)), data, word(16), options);
        Ok(())
    }

    fn packet(
        &self,
        traffic: &mut Traffic,
        interface: u32,
        (high, low): (u32, u32),
        data: &[u8],
        len: u32,
        options: &[PcapNGOption<'_>],
    ) {
        let Some(interface) = self.interfaces.get(interface as usize) else {
            traffic.unread += 1;
            return;
        };
        // The lowest two bits are 1 for a packet that came in, 2 for one that went out.
        let flags = options.iter().filter(|o| o.code == FLAGS);
        let mut directions = flags.filter_map(|o| Some(number(o.as_bytes().ok()?, self.big) & 3));
        let incoming = directions.find(|&d| d != 0).map(|d| d == 1);
        let t_ns = interface.clock.since_1970(u64::from(high) << 32 | u64::from(low));
        traffic.frame(interface.link, t_ns, data, len, incoming);
    }
}

/// The bytes of a packet without the padding behind them.
fn captured(data: &[u8], caplen: u32) -> Result<&[u8], &'static str> {
    data.get(..caplen as usize).ok_or("a packet longer than its block")
}

/// The options up to the one that ends them.
///
/// # Errors
/// They do not fill the `space` that the block has for them: what is behind a broken one would be lost in silence.
fn options<'o, 'a>(
    all: &'o [PcapNGOption<'a>],
    space: usize,
) -> Result<&'o [PcapNGOption<'a>], &'static str> {
    if let Some(end) = all.iter().position(|o| o.code == OptionCode::EndOfOpt) {
        return Ok(&all[..end]);
    }
    let filled: usize = all.iter().map(|o| 4 + o.value().len()).sum();
    if filled == space { Ok(all) } else { Err("an option longer than its block") }
}

/// An option's number, of as many bytes as it has.
fn number(bytes: &[u8], big: bool) -> u64 {
    let fold = |n: u64, b: &u8| n << 8 | u64::from(*b);
    if big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
}

/// An interface's clock.
struct Clock {
    per_s: u128,
    offset_ns: i128,
}

impl Clock {
    /// Microseconds unless `if_tsresol` says otherwise. (The parser's own reading takes `if_tsoffset` for little-endian always.)
    fn of(interface: &InterfaceDescriptionBlock<'_>, big: bool) -> Result<Clock, &'static str> {
        let mut clock = Clock { per_s: 1_000_000, offset_ns: 0 };
        let space = interface.block_len1 as usize - 20;
        for option in options(&interface.options, space)? {
            let bytes = option.as_bytes().unwrap_or_default();
            match (option.code, bytes) {
                (OptionCode::IfTsresol, &[r]) if r & 0x80 != 0 => {
                    clock.per_s = 1u128 << u32::from(r & 0x7f).min(100);
                }
                (OptionCode::IfTsresol, &[r]) => clock.per_s = 10u128.pow(u32::from(r).min(30)),
                (OptionCode::IfTsoffset, s) if s.len() == 8 => {
                    clock.offset_ns = i128::from(number(s, big) as i64) * 1_000_000_000;
                }
                (OptionCode::IfTsresol | OptionCode::IfTsoffset, _) => {
                    return Err("an interface whose clock has no valid resolution or offset");
                }
                _ => {}
            }
        }
        Ok(clock)
    }

    /// ns of so many units.
    fn since_1970(&self, units: u64) -> i64 {
        let (per_s, units) = (self.per_s, u128::from(units));
        let whole = units / per_s * 1_000_000_000;
        let part = (units % per_s).saturating_mul(1_000_000_000) / per_s;
        ((whole + part) as i128 + self.offset_ns).clamp(0, i128::from(i64::MAX / 2)) as i64
    }
}

/// A pcapng as this program writes it: little-endian, Ethernet, times in ns.
pub struct Writer<W>(W);

/// Where frames were seen.
pub struct Seat<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is; may be empty.
    pub description: &'a str,
    /// How many bytes of a frame are kept; 0: all.
    pub snaplen: u32,
}

/// Which way a frame went, as `epb_flags` has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// It came in.
    In,
    /// It went out.
    Out,
}

/// Appends the block of a frame that `interface` saw at `t_ns` since 1970, of which `data` is kept and which was `len` bytes long.
pub fn packet_block(
    out: &mut Vec<u8>,
    interface: u32,
    t_ns: u64,
    data: &[u8],
    len: u32,
    direction: Direction,
    comment: &str,
) {
    let start = out.len();
    out.extend([0; 8]);
    for word in [interface, (t_ns >> 32) as u32, t_ns as u32, data.len() as u32, len] {
        out.extend(word.to_le_bytes());
    }
    out.extend(data);
    out.resize(start + (out.len() - start).next_multiple_of(4), 0);
    if !comment.is_empty() {
        option(out, OptionCode::Comment.0, comment.as_bytes());
    }
    let flags: u32 = if direction == Direction::In { 1 } else { 2 };
    option(out, FLAGS.0, &flags.to_le_bytes());
    option(out, 0, &[]);
    let size = ((out.len() - start) as u32 + 4).to_le_bytes();
    out.extend(size);
    out[start..start + 4].copy_from_slice(&EPB_MAGIC.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&size);
}

impl<W: std::io::Write> Writer<W> {
    /// Begins with who writes and the device.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(out: W, application: &str, device: &str) -> std::io::Result<Writer<W>> {
        let mut writer = Writer::begin(out, application)?;
        writer.interface(&Seat { name: device, description: "", snaplen: 0 })?;
        Ok(writer)
    }
    /// Begins with who writes.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn begin(out: W, application: &str) -> std::io::Result<Writer<W>> {
        let mut writer = Writer(out);
        let mut section = 0x1a2b_3c4du32.to_le_bytes().to_vec();
        // Version 1.0; the section's length is not known.
        section.extend([1, 0, 0, 0]);
        section.extend([0xff; 8]);
        option(&mut section, 4, application.as_bytes());
        option(&mut section, 0, &[]);
        writer.block(SHB_MAGIC, &section)?;
        Ok(writer)
    }
    /// One more interface; they are numbered from 0.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn interface(&mut self, interface: &Seat<'_>) -> std::io::Result<()> {
        // Ethernet.
        let mut body = vec![1, 0, 0, 0];
        body.extend(interface.snaplen.to_le_bytes());
        option(&mut body, OptionCode::IfName.0, interface.name.as_bytes());
        if !interface.description.is_empty() {
            option(&mut body, OptionCode::IfDescription.0, interface.description.as_bytes());
        }
        option(&mut body, OptionCode::IfTsresol.0, &[9]);
        option(&mut body, 0, &[]);
        self.block(IDB_MAGIC, &body)
    }
    /// Blocks that are made already.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn raw(&mut self, blocks: &[u8]) -> std::io::Result<()> {
        self.0.write_all(blocks)
    }

    /// A packet at `t_ns` since 1970 that was `len` bytes long on the wire, and what is to be said of it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn packet(&mut self, t_ns: u64, data: &[u8], len: u32, comment: &str) -> std::io::Result<()> {
        let mut body = Vec::with_capacity(data.len() + comment.len() + 36);
        for word in [0, (t_ns >> 32) as u32, t_ns as u32, data.len() as u32, len] {
            body.extend(word.to_le_bytes());
        }
        body.extend(data);
        body.resize(body.len().next_multiple_of(4), 0);
        option(&mut body, OptionCode::Comment.0, comment.as_bytes());
        option(&mut body, 0, &[]);
        self.block(EPB_MAGIC, &body)
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> std::io::Result<()> {
        let len = (body.len() as u32 + 12).to_le_bytes();
        self.0.write_all(&kind.to_le_bytes())?;
        self.0.write_all(&len)?;
        self.0.write_all(body)?;
        self.0.write_all(&len)
    }

    /// All that is written leaves the writer's buffers.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// An option of at most 65535 bytes, and its padding.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(0xffff)];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::super::read::{What, read};
    use super::*;
    use proptest::prelude::*;

    /// A block of this kind around a body.
    fn block(kind: u32, body: &[u8], big: bool) -> Vec<u8> {
        let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let len = word(body.len() as u32 + 12);
        [&word(kind), &len, body, &len].concat()
    }

    /// Words of 32 bits.
    fn words(words: &[u32], big: bool) -> Vec<u8> {
        words.iter().flat_map(|n| if big { n.to_be_bytes() } else { n.to_le_bytes() }).collect()
    }

    /// A section and an interface with these options.
    fn begun(options: &[u8], big: bool) -> Vec<u8> {
        let half = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let section =
            [words(&[0x1a2b_3c4d], big), [half(1), half(0)].concat(), words(&[u32::MAX; 2], big)].concat();
        let interface = [[half(1), half(0)].concat(), words(&[0], big), options.to_vec()].concat();
        [block(SHB_MAGIC, &section, big), block(IDB_MAGIC, &interface, big)].concat()
    }

    #[test]
    fn clocks_of_interfaces() {
        let of = |options: &[u8], big: bool| {
            let bytes = begun(options, big);
            let mut section = Section { big, interfaces: Vec::new() };
            section.block(&bytes[28..], &mut Traffic::default()).map(|_| section.interfaces.remove(0).clock)
        };
        let at = |options: &[u8], units| of(options, false).unwrap().since_1970(units);
        assert_eq!(at(&[], 1_500_001), 1_500_001_000);
        assert_eq!(at(&[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0], 7), 7);
        assert_eq!(at(&[9, 0, 1, 0, 0x8a, 0, 0, 0], 1536), 1_500_000_000);
        let shifted = [9, 0, 1, 0, 0, 0, 0, 0, 14, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(at(&shifted, 2), 5_000_000_000);
        let shifted = [0, 9, 0, 1, 0, 0, 0, 0, 0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 3];
        assert_eq!(of(&shifted, true).unwrap().since_1970(2), 5_000_000_000);
        assert!(of(&[9, 0, 2, 0, 9, 0, 0, 0], false).is_err());
        assert!(of(&[9, 0, 1], false).is_err());
    }

    #[test]
    fn packet_blocks_old_and_new_are_read_from_both_ends() {
        let frame = [[2u8, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0].to_vec(), vec![0x45; 47]].concat();
        let padded = [frame.clone(), vec![0; 3]].concat();
        for big in [false, true] {
            let half = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
            // The obsolete one: interface and drops share the first word.
            let old = |interface: u16, t: u32, options: &[u8]| {
                let head = [half(interface), half(9)].concat();
                let body = [head, words(&[0, t, 61, 300], big), padded.clone(), options.to_vec()].concat();
                block(PACKET_BLOCK, &body, big)
            };
            let new = |interface: u32, t: u32, options: &[u8]| {
                let body = [words(&[interface, 0, t, 61, 300], big), padded.clone(), options.to_vec()];
                block(EPB_MAGIC, &body.concat(), big)
            };
            let inbound = [[half(2), half(4)].concat(), words(&[1], big)].concat();
            let bytes = [
                begun(&[], big),
                new(0, 1000, &[]),
                old(0, 2000, &[]),
                old(0, 3000, &inbound),
                new(0, 3500, &inbound),
                // No such interface; a simple packet, which has no time; a block nobody knows.
                old(1, 4000, &[]),
                block(SPB_MAGIC, &[0; 8], big),
                block(0x0bad_cafe, &[0; 8], big),
            ]
            .concat();
            let traffic = read(&bytes, "a").unwrap();
            let times: Vec<i64> = traffic.moments.iter().map(|m| m.t_ns).collect();
            assert_eq!((times, traffic.epoch_ns), (vec![0, 1_000_000], 1_000_000), "big: {big}");
            assert_eq!((traffic.incoming, traffic.unread), (2, 2), "big: {big}");
            for moment in &traffic.moments {
                let What::Packet(skb) = &moment.what else { panic!() };
                assert_eq!((&moment.bytes, skb.len), (&frame, 300), "big: {big}");
            }
            // A packet longer than its block, and an option longer than its block.
            let long = [begun(&[], big), block(PACKET_BLOCK, &words(&[0, 0, 0, 5, 5, 0], big), big)].concat();
            let wrong = read(&long, "a").unwrap_err().message;
            assert_eq!(wrong, "a: after 0 packets: a packet longer than its block");
            let long = [begun(&[], big), old(0, 1, &inbound[..6])].concat();
            assert!(read(&long, "a").is_err());
        }
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
        let wrong = read(&bytes, "a").unwrap_err().message;
        assert_eq!(wrong, "a: after 0 packets: the file ends within a packet or block");
    }

    /// Every kind of file and block that is read.
    fn samples() -> Vec<Vec<u8>> {
        let mut written = Vec::new();
        let mut writer = Writer::new(&mut written, "test", "eth0").unwrap();
        for n in 0..3 {
            writer.packet(1_000 * n, &[0x45; 60], 400, "a comment").unwrap();
        }
        writer.finish().unwrap();
        let mut old = begun(&[9, 0, 1, 0, 9, 0, 0, 0], false);
        old.extend(block(PACKET_BLOCK, &[words(&[0, 0, 9, 16, 16], false), vec![0x45; 16]].concat(), false));
        old.extend(block(SPB_MAGIC, &[16, 0, 0, 0, 1, 2, 3, 4], false));
        let mut pcap = vec![0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4];
        pcap.extend([0; 8]);
        pcap.extend([0, 0, 0xff, 0xff, 0, 0, 0, 113]);
        for n in 0..3 {
            pcap.extend([0, 0, 0, n, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 90]);
            pcap.extend([n; 24]);
        }
        vec![written, old, pcap]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever happens to the bytes, reading ends with packets or words, and never holds more than the file has: a length
        /// that a file claims is not a reason to reserve it.
        #[test]
        fn mutated_captures_are_read_or_refused(
            which in 0..3usize,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
            cut in any::<prop::sample::Index>(),
            cuts in any::<bool>(),
        ) {
            let mut bytes = samples().remove(which);
            for (at, value) in changes {
                let n = bytes.len();
                bytes[at.index(n)] = value;
            }
            if cuts {
                bytes.truncate(cut.index(bytes.len()));
            }
            // What is not a capture any more is read as lines.
            if let Ok(traffic) = read(&bytes, "a") {
                let held: usize = traffic.moments.iter().map(|m| m.bytes.len()).sum();
                prop_assert!(held <= 2 * bytes.len());
            }
        }
    }
}
