//! Segments as scripts write them: from headers, in words, and compared with one another.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_options_write` (the order of options); google/packetdrill `run_packet.c`.
//! Differs: what a segment carries has a length and no contents.

use crate::script::{Packet, TcpOption, Tos};
use penstock_packet::{FastOpen, Tcp, TcpFlags};

/// What an option takes in the header, bytes.
pub(crate) fn option_len(option: &TcpOption) -> u32 {
    match option {
        TcpOption::Nop | TcpOption::Eol => 1,
        TcpOption::Mss(_) => 4,
        TcpOption::Wscale(_) => 3,
        TcpOption::SackOk => 2,
        TcpOption::Sack(blocks) => 2 + 8 * blocks.len() as u32,
        TcpOption::Timestamps(..) => 10,
        TcpOption::AccEcn(option) => option.len(),
        TcpOption::FastOpen(cookie, exp) => cookie.len() as u32 + if *exp { 4 } else { 2 },
    }
}

/// The options of a header, as Linux lays them out.
//= linux v6.12 net/ipv4/tcp_output.c tcp_options_write
pub(crate) fn options_of(tcp: &Tcp) -> Vec<TcpOption> {
    use TcpOption::{Mss, Nop, Sack, SackOk, Timestamps, Wscale};
    // What of Accurate ECN's option stands in the padding of another: a byte, or two.
    let mut left = 0;
    let mut all = Vec::new();
    all.extend(tcp.mss.map(Mss));
    if let Some((val, ecr)) = tcp.timestamps {
        if tcp.sack_permitted {
            all.push(SackOk);
        } else {
            all.extend([Nop, Nop]);
        }
        all.push(Timestamps(val, ecr));
    }
    if let Some(option) = tcp.accecn {
        all.push(TcpOption::AccEcn(option));
        left = [2, 1, 0, 0][usize::from(option.fields.min(3))];
        if option.fields == 3 {
            all.push(Nop);
        }
    }
    let mut pad = |all: &mut Vec<TcpOption>, room: usize| {
        all.extend(std::iter::repeat_n(Nop, room - std::mem::take(&mut left).min(room)));
    };
    if tcp.sack_permitted && tcp.timestamps.is_none() {
        pad(&mut all, 2);
        all.push(SackOk);
    }
    if let Some(shift) = tcp.wscale {
        let one = tcp.accecn.is_some_and(|o| o.fields == 1);
        match one {
            true => pad(&mut all, 1),
            false => all.push(Nop),
        }
        all.push(Wscale(shift));
    }
    if tcp.sack_count > 0 {
        pad(&mut all, 2);
        all.push(Sack(tcp.sack[..usize::from(tcp.sack_count).min(4)].to_vec()));
    } else if tcp.accecn.is_some() {
        // Nothing behind it has padding.
        let written: u32 = all.iter().map(option_len).sum();
        all.extend(std::iter::repeat_n(Nop, tcp.options_len().saturating_sub(written) as usize));
    }
    if let Some(option) = tcp.fast_open() {
        let ours = TcpOption::FastOpen(option.cookie().to_vec(), option.exp);
        let pads = option.padded_len() - option_len(&ours);
        all.push(ours);
        all.extend(std::iter::repeat_n(Nop, pads as usize));
    }
    all
}

/// The header of a segment that comes in.
pub(crate) fn header_of(p: &Packet, (sport, dport): (u16, u16)) -> Tcp {
    let mut tcp = Tcp {
        sport,
        dport,
        seq: p.seq,
        ack: p.ack,
        window: p.window.unwrap_or(0),
        flags: TcpFlags(p.flags),
        ..Tcp::default()
    };
    for option in p.options.iter().flatten() {
        match option {
            TcpOption::Nop => {}
            TcpOption::Eol => break,
            TcpOption::Mss(mss) => tcp.mss = Some(*mss),
            TcpOption::Wscale(shift) => tcp.wscale = Some(*shift),
            TcpOption::SackOk => tcp.sack_permitted = true,
            TcpOption::AccEcn(option) => tcp.accecn = Some(*option),
            // What is no cookie is passed over, and what does not open a connection.
            TcpOption::FastOpen(cookie, exp) if tcp.flags.has(TcpFlags::SYN) => {
                if let Some(option) = FastOpen::new(cookie, *exp) {
                    tcp.set_fast_open(Some(option));
                }
            }
            TcpOption::FastOpen(..) => {}
            TcpOption::Timestamps(val, ecr) => tcp.timestamps = Some((*val, *ecr)),
            TcpOption::Sack(blocks) => {
                tcp.sack_count = blocks.len() as u8;
                for (to, from) in tcp.sack.iter_mut().zip(blocks) {
                    *to = *from;
                }
            }
        }
    }
    tcp
}

/// Options in words, with their brackets; nothing where there are none.
fn options_text(options: &[TcpOption]) -> String {
    if options.is_empty() {
        return String::new();
    }
    let one = |option: &TcpOption| match option {
        TcpOption::Nop => "nop".to_owned(),
        TcpOption::Eol => "eol".to_owned(),
        TcpOption::Mss(mss) => format!("mss {mss}"),
        TcpOption::Wscale(shift) => format!("wscale {shift}"),
        TcpOption::SackOk => "sackOK".to_owned(),
        TcpOption::AccEcn(o) => {
            let names = if o.order1 { ["e1b", "ceb", "e0b"] } else { ["e0b", "ceb", "e1b"] };
            let fields =
                names.iter().enumerate().filter_map(|(n, name)| Some(format!(" {name} {}", o.counter(n)?)));
            format!("ECN{}", fields.collect::<String>())
        }
        TcpOption::Timestamps(val, ecr) => format!("TS val {val} ecr {ecr}"),
        TcpOption::FastOpen(cookie, exp) => {
            let digits: String = cookie.iter().map(|b| format!("{b:02x}")).collect();
            format!("{} {digits}", if *exp { "FOEXP" } else { "FO" }).trim_end().to_owned()
        }
        TcpOption::Sack(blocks) => {
            let blocks: Vec<String> = blocks.iter().map(|(l, r)| format!("{l}:{r}")).collect();
            format!("sack {}", blocks.join(" "))
        }
    };
    let all: Vec<String> = options.iter().map(one).collect();
    format!(" <{}>", all.join(","))
}

/// Flags in letters.
fn flags_text(flags: u16) -> String {
    let letters = [
        (0x01, 'F'),
        (0x02, 'S'),
        (0x04, 'R'),
        (0x08, 'P'),
        (0x40, 'E'),
        (0x80, 'W'),
        (0x100, 'A'),
        (0x10, '.'),
    ];
    let text: String = letters.iter().filter(|l| flags & l.0 != 0).map(|l| l.1).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

impl std::fmt::Display for Packet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.tos {
            Tos::Any => {}
            Tos::Ecn(ecn) => write!(f, "[{}] ", ["noecn", "ect1", "ect0", "ce"][usize::from(ecn & 3)])?,
            Tos::Ect => write!(f, "[ect01] ")?,
            Tos::Whole(tos) => write!(f, "(tos {tos:#04x}) ")?,
        }
        if let Some(ttl) = self.ttl {
            write!(f, "[ttl {ttl}] ")?;
        }
        if let Some((source, target)) = self.ports {
            write!(f, "{source} > {target} ")?;
        }
        let end = self.seq.wrapping_add(self.len);
        write!(f, "{} {}:{end}({})", flags_text(self.flags), self.seq, self.len)?;
        if self.flags & TcpFlags::ACK.0 != 0 {
            write!(f, " ack {}", self.ack)?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        match &self.options {
            None => write!(f, " <...>"),
            Some(options) => write!(f, "{}", options_text(options)),
        }
    }
}

/// Where a segment that has left differs from what the script says, in packetdrill's words; timestamps are looked at by the caller.
pub(crate) fn differs(script: &Packet, actual: &Packet) -> Option<String> {
    let field = |name: &str, expected: u64, actual: u64| {
        (expected != actual).then(|| format!("live packet field {name}: expected: {expected} ({expected:#x}) vs actual: {actual} ({actual:#x})"))
    };
    let flag = |name: &str, bit: TcpFlags| {
        let of = |p: &Packet| u64::from(p.flags & bit.0 != 0);
        field(name, of(script), of(actual))
    };
    let tos = match actual.tos {
        Tos::Whole(tos) => tos,
        _ => 0,
    };
    let tos_differs = match script.tos {
        Tos::Any => None,
        Tos::Ecn(ecn) => field("ip_ecn", ecn.into(), (tos & 3).into()),
        Tos::Whole(all) => field("tos", all.into(), tos.into()),
        Tos::Ect if matches!(tos & 3, 1 | 2) => None,
        Tos::Ect => Some("live packet field ip_ecn: expected: ect01 (1 or 2) vs actual: 0x0".to_owned()),
    };
    let options = |script: &[TcpOption], actual: &[TcpOption]| {
        let kind = std::mem::discriminant::<TcpOption>;
        if script.iter().map(kind).ne(actual.iter().map(kind)) {
            return Some("bad outbound TCP options".to_owned());
        }
        let pairs = script.iter().zip(actual);
        let mut other = pairs.filter(|(s, a)| s != a && !matches!(s, TcpOption::Timestamps(..)));
        other.next().map(|(s, a)| {
            let (s, a) = (options_text(std::slice::from_ref(s)), options_text(std::slice::from_ref(a)));
            format!("bad value in outbound TCP option: expected:{s} actual:{a}")
        })
    };
    tos_differs
        .or_else(|| script.ttl.and_then(|ttl| field("ttl", ttl.into(), actual.ttl.unwrap_or(0).into())))
        .or_else(|| flag("tcp_fin", TcpFlags::FIN))
        .or_else(|| flag("tcp_syn", TcpFlags::SYN))
        .or_else(|| flag("tcp_rst", TcpFlags::RST))
        .or_else(|| flag("tcp_psh", TcpFlags::PSH))
        .or_else(|| flag("tcp_ack", TcpFlags::ACK))
        .or_else(|| flag("tcp_ece", TcpFlags::ECE))
        .or_else(|| flag("tcp_cwr", TcpFlags::CWR))
        .or_else(|| field("tcp_seq", script.seq.into(), actual.seq.into()))
        .or_else(|| field("tcp_ack_seq", script.ack.into(), actual.ack.into()))
        .or_else(|| {
            script.window.and_then(|w| field("tcp_window", w.into(), actual.window.unwrap_or(0).into()))
        })
        .or_else(|| options(script.options.as_deref()?, actual.options.as_deref().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_as_linux_writes_them() {
        let syn = Tcp { mss: Some(1460), sack_permitted: true, wscale: Some(8), ..Tcp::default() };
        assert_eq!(options_text(&options_of(&syn)), " <mss 1460,nop,nop,sackOK,nop,wscale 8>");
        let syn = Tcp { timestamps: Some((1, 2)), ..syn };
        assert_eq!(options_text(&options_of(&syn)), " <mss 1460,sackOK,TS val 1 ecr 2,nop,wscale 8>");
        let ack = Tcp { sack_count: 1, sack: [(5, 9); 4], ..Tcp::default() };
        assert_eq!(options_text(&options_of(&ack)), " <nop,nop,sack 5:9>");
    }

    #[test]
    fn the_first_difference_is_told() {
        let one =
            Packet { flags: 0x18, seq: 1, len: 9, ack: 1, options: Some(Vec::new()), ..Packet::default() };
        assert_eq!(differs(&one, &one), None);
        let other = Packet { flags: 0x10, ..one.clone() };
        assert_eq!(
            differs(&one, &other).unwrap(),
            "live packet field tcp_psh: expected: 1 (0x1) vs actual: 0 (0x0)"
        );
        let other = Packet { options: Some(vec![TcpOption::Nop]), ..one.clone() };
        assert_eq!(differs(&one, &other).unwrap(), "bad outbound TCP options");
        let any = Packet { options: None, ..one };
        assert_eq!(differs(&any, &other), None);
        assert_eq!(other.to_string(), "P. 1:10(9) ack 1 <nop>");
    }
}
