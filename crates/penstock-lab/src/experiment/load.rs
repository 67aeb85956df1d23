//! `load`: what a flow sends.

use super::Builder;
use super::forms;
use super::host::{dist, drawn};
use super::read::{self, Faults, Table, Val};
use super::source::meant;
use penstock_model::Span;
use penstock_model::time::split_number;
use penstock_model::traffic::{Arrivals, Dist, Load, Sizes};
use penstock_packet::{L3, L4};
use penstock_replay::capture::{self, What};
use std::fmt::Write;
use toml::de::DeValue;

/// Largest payload of a datagram.
const LARGEST: u64 = 65_507;
/// Largest page.
const LARGEST_PAGE: u64 = 1 << 30;
/// Largest payload of a datagram that is not cut into fragments on Ethernet.
const UNCUT: u32 = 1472;

const FORMS: &str = "write \"greedy\", a rate (\"64kbit\"), { bytes = \"10mb\" }, { rate = \"64kbit\", size = 160 }, \
                     { size = 160, gap = \"20ms\" }, { echo = \"1s\" }, { pages = \"12k\", think = \"1s\" } or { arrivals = \"100ms\", bytes = \"12k\" }";

/// Payload of an echo probe that says nothing of its size, bytes: as ping's.
const ECHO_SIZE: u32 = 56;

/// A name, and the load it stands for.
pub(super) type Profile = (&'static str, fn() -> Load);

/// Traffic with a name of its own.
pub(super) const PROFILES: [Profile; 6] = [
    ("audio", audio),
    ("g711", || voice(160)),
    ("g729", || voice(20)),
    ("mail", mail),
    ("video", video),
    ("vod", video_on_demand),
];

/// Mail: messages come as a Poisson process, one in two seconds, each over a connection of its own; their sizes are heavy-tailed, 30 kB on
/// average (a Pareto distribution of shape 1.2: most are short, a few carry files). 120 kbit/s on average.
fn mail() -> Load {
    Load::Arrivals(Arrivals { gap: Span::from_ms(2000), bytes: 30_000, shape_milli: Some(1200) })
}

/// Video on demand over HTTP: pieces of four seconds of a film of 2.1 Mbit/s, each fetched as fast as TCP can, four seconds after the
/// one before is there.
fn video_on_demand() -> Load {
    Load::Pages { size: Sizes::Constant(1_050_000), think: Dist::Constant(Span::from_ms(4000)) }
}

/// A voice call: so many bytes of speech every 20 ms (RFC 3551 section 4.5) behind an RTP header of 12 bytes.
fn voice(bytes: u32) -> Load {
    Load::Packets { size: Sizes::Constant(bytes + 12), gap: Dist::Constant(Span::from_ms(20)) }
}

/// MPEG audio of 128 kbit/s at 44.1 kHz: a frame of 1152 samples is 418 bytes, behind 4 bytes of RFC 2250 and an RTP header.
fn audio() -> Load {
    Load::Packets { size: Sizes::Constant(418 + 4 + 12), gap: Dist::Constant(Span::from_ns(26_122_449)) }
}

/// Video: every 40 ms or so a picture of drawn length, sent as packets of seven MPEG transport packets (RFC 2250) behind an RTP
/// header, one a millisecond: 2.1 Mbit/s on average.
fn video() -> Load {
    let ms = Span::from_ms;
    let normal = |mean, deviation| Dist::Normal { mean: ms(mean), deviation: ms(deviation) };
    let (on, off) = (normal(8, 3), normal(32, 3));
    Load::OnOff { size: Sizes::Constant(7 * 188 + 12), gap: Dist::Constant(ms(1)), on, off }
}

impl Builder<'_> {
    /// `"greedy"`, a rate, a profile's name, `{ bytes }`, `{ rate, size }`, `{ frames, size, frame }`, `{ size, gap }`,
    /// `{ size, gap, on, off }`, `{ echo, size }`, `{ replay }`.
    pub(super) fn load(&mut self, value: Val<'_>, faults: &mut Faults<'_>) -> Option<Load> {
        if let DeValue::String(text) = value.get_ref() {
            if text == "greedy" {
                return Some(Load::Greedy);
            }
            if let Some((_, profile)) = PROFILES.iter().find(|(name, _)| name == text) {
                return Some(profile());
            }
            if split_number(text).is_none() {
                let names: Vec<&str> = PROFILES.iter().map(|p| p.0).chain(["greedy"]).collect();
                let help = meant(text, &names)
                    .map_or_else(|| FORMS.to_owned(), |name| format!("did you mean \"{name}\"?"));
                faults.add(value.span(), format!("load: \"{text}\" is unknown"), help);
                return None;
            }
            return read::rate("load", value, faults).map(|rate| Load::Rate(rate, 1200));
        }
        if !value.get_ref().is_table() {
            faults.add(value.span(), "load is neither text nor a table", FORMS);
            return None;
        }
        let mut table = Table::of(value, "load", &forms::LOAD, faults)?;
        if let Some(replay) = table.take("replay") {
            let path = read::string("replay", replay, faults);
            table.finish(faults);
            return self.replay(&path?, replay, faults);
        }
        if let Some(gap) = table.take("echo") {
            let gap = dist("echo", gap, faults);
            let size =
                table.take("size").map_or(Some(Sizes::Constant(ECHO_SIZE)), |v| sizes(v, LARGEST, faults));
            table.finish(faults);
            return Some(Load::Echo { size: size?, gap: gap? });
        }
        if let Some(frames) = table.take("frames") {
            let load = generator(&mut table, frames, faults);
            table.finish(faults);
            return load;
        }
        if let Some(pages) = table.take("pages") {
            let size = sizes(pages, LARGEST_PAGE, faults);
            let think =
                table.take("think").map_or(Some(Dist::Constant(Span::ZERO)), |v| dist("think", v, faults));
            if ["bytes", "rate", "size", "gap"].into_iter().any(|key| table.take(key).is_some()) {
                faults.add(value.span(), "load has none of the known forms", FORMS);
                return None;
            }
            table.finish(faults);
            return Some(Load::Pages { size: size?, think: think? });
        }
        if let Some(mean) = table.take("arrivals") {
            let load = arrivals(&mut table, mean, value, faults);
            table.finish(faults);
            return load;
        }
        if let Some(shape) = table.take("shape") {
            let help = "write e.g. { arrivals = \"100ms\", bytes = \"12k\", shape = 1.2 }";
            faults.add(shape.span(), "shape needs arrivals", help);
            return None;
        }
        if table.take("think").is_some() {
            faults.add(value.span(), "think needs pages", FORMS);
            return None;
        }
        let bytes = table.take("bytes").map(|v| read::size("bytes", v, faults));
        let rate = table.take("rate").map(|v| read::rate("rate", v, faults));
        let size = table.take("size").map(|v| sizes(v, LARGEST, faults));
        let gap = table.take("gap").map(|v| dist("gap", v, faults));
        let on = table.take("on").map(|v| dist("on", v, faults));
        let off = table.take("off").map(|v| dist("off", v, faults));
        table.finish(faults);
        let found = match (bytes, rate, size, gap, on, off) {
            (Some(bytes), None, None, None, None, None) => Load::Bytes(bytes?),
            (None, Some(rate), None, None, None, None) => Load::Rate(rate?, 1200),
            (None, Some(rate), Some(size), None, None, None) => match size? {
                Sizes::Constant(size) => Load::Rate(rate?, size),
                _ => {
                    faults.add(
                        value.span(),
                        "a steady rate has packets of one size",
                        "write size = 160, or gap for rate",
                    );
                    return None;
                }
            },
            (None, None, Some(size), Some(gap), None, None) => Load::Packets { size: size?, gap: gap? },
            (None, None, Some(size), Some(gap), Some(on), Some(off)) => {
                Load::OnOff { size: size?, gap: gap?, on: on?, off: off? }
            }
            _ => {
                faults.add(value.span(), "load has none of the known forms", FORMS);
                return None;
            }
        };
        Some(found)
    }

    /// `{ replay = "@call.csv" }`: lines of a time in seconds and a size in bytes.
    fn replay(&mut self, path: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<Load> {
        if !path.starts_with('@') {
            faults.add(value.span(), "replay must name a file", "write replay = \"@call.csv\"");
            return None;
        }
        let script = self.script(path, "replay", value.span(), faults)?;
        match recording(&script.text) {
            Ok(packets) => Some(Load::Replay(packets)),
            Err(why) => {
                let help = "a capture, or lines of a time in seconds and the payload in bytes: 0.020,160";
                faults.add(value.span(), format!("replay: {}: {why}", script.file), help);
                None
            }
        }
    }
}

/// A capture as the recording that it is to a flow: when each IP packet with a payload was sent, and the bytes of that payload.
///
/// # Errors
/// What is wrong with the capture.
pub(super) fn of_capture(bytes: &[u8], name: &str) -> Result<String, String> {
    let traffic = capture::read(bytes, name).map_err(|d| d.message)?;
    let mut text = String::from("time_s,payload_bytes\n");
    for moment in &traffic.moments {
        let What::Packet(skb) = &moment.what else { continue };
        let headers = match skb.l3 {
            L3::Ipv4(_) => 20,
            L3::Ipv6(h) => h.header_len(),
            _ => continue,
        };
        let transport = match &skb.l4 {
            L4::Udp(_) | L4::Icmp(_) => 8,
            L4::Tcp(tcp) => tcp.header_len(),
            L4::None => 0,
        };
        let payload = skb.network_len().saturating_sub(headers + transport);
        if payload > 0 {
            let (s, ns) = (moment.t_ns / 1_000_000_000, moment.t_ns % 1_000_000_000);
            let _ = writeln!(text, "{s}.{ns:09},{payload}");
        }
    }
    Ok(text)
}

/// Packets of a recording: gap from the one before, bytes. A first line without numbers is a heading; `#` begins a comment.
fn recording(text: &str) -> Result<Vec<(Span, u32)>, String> {
    let (mut packets, mut first, mut last) = (Vec::new(), None, 0i64);
    for (n, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let (time, size) = line.split_once(',').ok_or_else(|| format!("line {} has no comma", n + 1))?;
        let (time, size) = (time.trim().parse::<f64>(), size.trim().parse::<u32>());
        let (Ok(time), Ok(size)) = (time, size) else {
            if n == 0 {
                continue;
            }
            return Err(format!("line {} is not a time and a size", n + 1));
        };
        if !(0.0..1e9).contains(&time) || !(1..=LARGEST as u32).contains(&size) {
            return Err(format!("line {} is out of range", n + 1));
        }
        let ns = (time * 1e9).round() as i64;
        let begin = *first.get_or_insert(ns);
        if ns - begin < last {
            return Err(format!("line {} lies before the one before", n + 1));
        }
        packets.push((Span::from_ns(ns - begin - last), size));
        last = ns - begin;
    }
    if packets.is_empty() { Err("there are no packets".to_owned()) } else { Ok(packets) }
}

/// `arrivals`, `bytes`, `shape`.
fn arrivals(table: &mut Table<'_>, mean: Val<'_>, value: Val<'_>, faults: &mut Faults<'_>) -> Option<Load> {
    let gap = read::time("arrivals", mean, faults);
    let bytes = table.take("bytes").map(|v| read::size("bytes", v, faults));
    let shape = table.take("shape").map(|v| (v.span(), read::number(v).and_then(|t| t.parse::<f64>().ok())));
    let Some(Some(bytes)) = bytes else {
        faults.add(value.span(), "arrivals need a size", "add e.g. bytes = \"12k\"");
        return None;
    };
    let shape_milli = match shape {
        None => None,
        Some((_, Some(shape))) if shape > 1.0 && shape <= 100.0 => Some((shape * 1000.0).round() as u32),
        Some((span, _)) => {
            let help = "write more than 1 and at most 100: shape = 1.2";
            faults.add(span, "shape is out of range", help);
            return None;
        }
    };
    let gap = gap?;
    if gap < Span::from_us(1) {
        faults.add(mean.span(), "arrivals is out of range", "write 1us or more");
        return None;
    }
    Some(Load::Arrivals(Arrivals { gap, bytes, shape_milli }))
}

/// `frames`, `size`, `frame`: the notation of a hardware generator, frames a second of so many bytes.
fn generator(table: &mut Table<'_>, frames: Val<'_>, faults: &mut Faults<'_>) -> Option<Load> {
    let per_second = read::integer("frames", frames, 1..10_000_001, faults);
    let size = table.need("size", "size = 429", faults).and_then(|v| read::size("size", v, faults));
    let frame = table.take("frame").map(|v| (v, read::string("frame", v, faults)));
    // What the frame holds beside the payload of a datagram: headers of IP and UDP, Ethernet's, its check sum.
    let beside = match &frame {
        None => 42,
        Some((value, text)) => match text.as_deref()? {
            "ethernet" => 42,
            "fcs" => 46,
            "ip" => 28,
            // PPP in HDLC-like framing (RFC 1662, 2615): address, control, protocol; FCS-32.
            "pos" => 36,
            other => {
                let help = "write \"ethernet\" (header, no FCS), \"fcs\" (both), \"ip\" (neither) or \"pos\" (PPP and FCS)";
                faults.add(value.span(), format!("frame: \"{other}\" is unknown"), help);
                return None;
            }
        },
    };
    let (per_second, size) = (per_second?, size?);
    if size <= beside || size - beside > LARGEST {
        let help = format!("write {} to {}", beside + 1, LARGEST + beside);
        faults.add(frames.span(), "size is out of range", help);
        return None;
    }
    let gap = Span::from_ns((1_000_000_000 / per_second) as i64);
    Some(Load::Packets { size: Sizes::Constant((size - beside) as u32), gap: Dist::Constant(gap) })
}

/// `160`, `[160, 1200]`, `{ from, to }`, `{ mean, shape, most }`, `{ mean, deviation }`.
fn sizes(value: Val<'_>, largest: u64, faults: &mut Faults<'_>) -> Option<Sizes> {
    let one = |key: &str, v: Val<'_>, faults: &mut Faults<'_>| {
        let bytes = read::size(key, v, faults)?;
        if !(1..=largest).contains(&bytes) {
            faults.add(v.span(), format!("{key} is out of range"), format!("write 1 to {largest}"));
            return None;
        }
        Some(bytes as u32)
    };
    match value.get_ref() {
        DeValue::Table(_) => {
            let mut table = Table::of(value, "size = { … }", &forms::BYTES, faults)?;
            if let Some(mean) = table.take("mean") {
                let span = |key: &str, v: Val<'_>, faults: &mut Faults<'_>| {
                    one(key, v, faults).map(|bytes| Span::from_ns(i64::from(bytes)))
                };
                let mean = span("mean", mean, faults);
                let dist = drawn(&mut table, mean, &span, faults);
                table.finish(faults);
                return dist.map(|dist| match dist {
                    Dist::Pareto { most: Some(most), .. } => Sizes::Drawn { dist, most: most.as_ns() as u32 },
                    other => Sizes::Drawn {
                        dist: other,
                        most: if largest > LARGEST { largest as u32 } else { UNCUT },
                    },
                });
            }
            let from = table.need("from", "from = 64", faults).and_then(|v| one("from", v, faults));
            let to = table.need("to", "to = 1500", faults).and_then(|v| one("to", v, faults));
            table.finish(faults);
            let (from, to) = (from?, to?);
            if to < from {
                faults.add(value.span(), "to is less than from", "write the smaller one first");
                return None;
            }
            Some(Sizes::Uniform { from, to })
        }
        DeValue::Array(items) if items.is_empty() => {
            faults.add(value.span(), "size is an empty list", "write at least one size");
            None
        }
        DeValue::Array(items) => {
            let sizes: Vec<_> = items.iter().map(|v| one("size", v, faults)).collect();
            sizes.into_iter().collect::<Option<Vec<_>>>().map(Sizes::Table)
        }
        _ => one("size", value, faults).map(Sizes::Constant),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_read_strictly() {
        let read = recording("time,size\n0.5,100 # first\n\n0.52,200\n").unwrap();
        assert_eq!(read, [(Span::ZERO, 100), (Span::from_ms(20), 200)]);
        for bad in ["", "1,2\n0,2\n", "1,2\nx,2\n", "1;2\n", "1,0\n"] {
            assert!(recording(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn calls_have_the_rates_of_their_codecs() {
        let rate = |load: Load| match load {
            Load::Packets { size: Sizes::Constant(bytes), gap: Dist::Constant(gap) } => {
                (f64::from(bytes) - 12.0) * 8.0 / gap.as_secs_f64()
            }
            other => panic!("{other:?}"),
        };
        assert!((rate(voice(160)) - 64_000.0).abs() < 1e-6);
        assert!((rate(voice(20)) - 8_000.0).abs() < 1e-6);
    }
}
