//! What a flow sends, in the words of `penstock send`: sizes and gaps, constant, drawn or from a trace.

use penstock_model::traffic::{Dist, Load, Sizes};
use penstock_model::{Size, Span};

fn joined<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(",")
}

/// Reads a gap: `20ms`, `10ms..30ms`, `10ms,20ms,20ms`, `exp:20ms` (mean), `pareto:10ms:1.5` (least, shape; `:2s` is the most),
/// `normal:20ms:5ms` (mean, standard deviation).
///
/// # Errors
/// A sentence when it is none of these.
pub fn parse_gap(text: &str) -> Result<Dist, String> {
    distribution(text, "gap", &|t| match Span::parse(t) {
        Ok(span) if span >= Span::ZERO => Ok(span),
        _ => Err(format!("gap \"{t}\" is not a duration, e.g. 20ms")),
    })
}

/// As [`parse_gap`] reads it.
pub fn gap_text(gap: &Dist) -> String {
    dist_text(gap, &|span| format!("{}ns", span.as_ns()))
}

/// Reads payload sizes: `160`, `64..1200`, `64,512,1500`, `exp:500<=1400`, `pareto:100:1.2<=65507`, `normal:800:100<=1400`; what is
/// drawn above the number behind `<=` counts as that.
///
/// # Errors
/// A sentence when it is none of these, or a size is not 1 to 65507 bytes.
pub fn parse_sizes(text: &str) -> Result<Sizes, String> {
    sizes(text, DATAGRAM)
}

/// The same for pages, of 1 to 2^30 bytes.
///
/// # Errors
/// A sentence as [`parse_sizes`] has it.
pub fn parse_pages(text: &str) -> Result<Sizes, String> {
    sizes(text, PAGE)
}

/// Greatest payload of a datagram, bytes.
const DATAGRAM: u32 = 65_507;
/// Greatest page, bytes.
const PAGE: u32 = 1 << 30;

fn sizes(text: &str, largest: u32) -> Result<Sizes, String> {
    let one = |t: &str| match Size::parse(t).map(Size::bytes) {
        Ok(n) if (1..=u64::from(largest)).contains(&n) => Ok(n as u32),
        _ => Err(format!("size \"{t}\" is not 1 to {largest} bytes")),
    };
    let all = largest.to_string();
    let (drawn, most) = text.split_once("<=").unwrap_or((text, &all));
    if drawn.contains(':') {
        // A byte for a nanosecond.
        let byte = |t: &str| one(t).map(|n| Span::from_ns(i64::from(n)));
        return Ok(Sizes::Drawn { dist: distribution(drawn, "size", &byte)?, most: one(most)? });
    }
    if let Some((from, to)) = text.split_once("..") {
        let (from, to) = (one(from)?, one(to)?);
        return match from <= to {
            true => Ok(Sizes::Uniform { from, to }),
            false => Err(format!("size \"{text}\": write the smaller one first")),
        };
    }
    let all = text.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(if let [only] = all[..] { Sizes::Constant(only) } else { Sizes::Table(all) })
}

/// As [`parse_sizes`] reads it.
pub fn sizes_text(sizes: &Sizes) -> String {
    match sizes {
        Sizes::Constant(n) => n.to_string(),
        Sizes::Uniform { from, to } => format!("{from}..{to}"),
        Sizes::Table(all) => joined(all, u32::to_string),
        Sizes::Drawn { dist, most } => {
            let largest = i64::from(DATAGRAM.max(*most));
            format!("{}<={most}", dist_text(dist, &|span| span.as_ns().clamp(1, largest).to_string()))
        }
    }
}

fn distribution(text: &str, what: &str, one: &dyn Fn(&str) -> Result<Span, String>) -> Result<Dist, String> {
    if let Some(mean) = text.strip_prefix("exp:") {
        return Ok(Dist::Exponential { mean: one(mean)? });
    }
    if let Some(rest) = text.strip_prefix("pareto:") {
        let parts: Vec<&str> = rest.split(':').collect();
        let (least, shape, most) = match parts[..] {
            [least, shape] => (one(least)?, shape, None),
            [least, shape, most] => (one(least)?, shape, Some(one(most)?)),
            _ => {
                return Err(format!(
                    "{what} \"{text}\": write pareto:LEAST:SHAPE or pareto:LEAST:SHAPE:MOST"
                ));
            }
        };
        let milli = shape.parse::<f64>().map_or(0.0, |s| (s * 1000.0).round());
        if !(1.0..=100_000.0).contains(&milli) {
            return Err(format!("{what} \"{text}\": the shape \"{shape}\" is not 0.001 to 100"));
        }
        return Ok(Dist::Pareto { least, shape_milli: milli as u32, most });
    }
    if let Some(rest) = text.strip_prefix("normal:") {
        let (mean, deviation) =
            rest.split_once(':').ok_or_else(|| format!("{what} \"{text}\": write normal:MEAN:DEVIATION"))?;
        return Ok(Dist::Normal { mean: one(mean)?, deviation: one(deviation)? });
    }
    if let Some((from, to)) = text.split_once("..") {
        let (from, to) = (one(from)?, one(to)?);
        return match from <= to {
            true => Ok(Dist::Uniform { from, to }),
            false => Err(format!("{what} \"{text}\": write the smaller one first")),
        };
    }
    let all = text.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(if let [only] = all[..] { Dist::Constant(only) } else { Dist::Table(all) })
}

fn dist_text(dist: &Dist, one: &dyn Fn(&Span) -> String) -> String {
    match dist {
        Dist::Constant(span) => one(span),
        Dist::Uniform { from, to } => format!("{}..{}", one(from), one(to)),
        Dist::Exponential { mean } => format!("exp:{}", one(mean)),
        Dist::Table(all) => joined(all, one),
        Dist::Pareto { least, shape_milli, most } => {
            let most = most.map(|most| format!(":{}", one(&most))).unwrap_or_default();
            format!("pareto:{}:{}.{:03}{most}", one(least), shape_milli / 1000, shape_milli % 1000)
        }
        Dist::Normal { mean, deviation } => format!("normal:{}:{}", one(mean), one(deviation)),
    }
}

/// Reads a trace: a line for each packet, its distance to the one before and its payload bytes; `#` begins a comment.
///
/// # Errors
/// The first line that is none.
pub fn trace(text: &str) -> Result<Vec<(Span, u32)>, String> {
    let mut packets = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(gap), Some(size), None) = (words.next(), words.next(), words.next()) else {
            return Err(format!("line {}: \"{line}\" is not a gap and a size, e.g. 20ms 160", n + 1));
        };
        let gap = parse_gap(gap).map_err(|e| format!("line {}: {e}", n + 1))?;
        let size = parse_sizes(size).map_err(|e| format!("line {}: {e}", n + 1))?;
        let (Dist::Constant(gap), Sizes::Constant(size)) = (gap, size) else {
            return Err(format!("line {}: a packet has one gap and one size", n + 1));
        };
        packets.push((gap, size));
    }
    if packets.is_empty() { Err("the trace has no packets".to_owned()) } else { Ok(packets) }
}

/// A recording as [`trace`] reads it.
pub fn trace_text(packets: &[(Span, u32)]) -> String {
    packets.iter().map(|(gap, size)| format!("{}ns {size}\n", gap.as_ns())).collect()
}

/// The words of `penstock send` that ask for a load. Of a recording there are none: it is read from a file.
pub fn words(load: &Load) -> Vec<(&'static str, String)> {
    match load {
        Load::Greedy | Load::Replay(_) => Vec::new(),
        Load::Bytes(n) => vec![("--bytes", n.to_string())],
        Load::Rate(rate, size) => {
            vec![("--rate", format!("{}bit", rate.bit_per_s())), ("--size", size.to_string())]
        }
        Load::Packets { size, gap } | Load::Echo { size, gap } => {
            vec![("--size", sizes_text(size)), ("--gap", gap_text(gap))]
        }
        Load::OnOff { size, gap, on, off } => vec![
            ("--size", sizes_text(size)),
            ("--gap", gap_text(gap)),
            ("--on", gap_text(on)),
            ("--off", gap_text(off)),
        ],
        Load::Pages { size, think } => {
            vec![("--pages", sizes_text(size)), ("--think", gap_text(think))]
        }
        // They have become flows of their own.
        Load::Arrivals(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Rng;

    #[test]
    fn words_come_back() {
        for text in [
            "160",
            "64..1200",
            "64,512,1500",
            "exp:500<=1400",
            "pareto:100:1.200<=65507",
            "normal:800:100<=1400",
        ] {
            assert_eq!(sizes_text(&parse_sizes(text).unwrap()), text);
        }
        let gaps = [
            "20000000ns",
            "10ns..30ns",
            "exp:5000ns",
            "10ns,20ns",
            "pareto:10ns:1.500",
            "pareto:10ns:1.050:90ns",
        ];
        for text in gaps.into_iter().chain(["normal:20ns:5ns"]) {
            assert_eq!(gap_text(&parse_gap(text).unwrap()), text);
        }
        assert_eq!(parse_gap("20ms"), Ok(Dist::Constant(Span::from_ms(20))));
        assert!(parse_sizes("0").is_err() && parse_sizes("9..5").is_err() && parse_gap("soon").is_err());
        assert!(parse_sizes("70000").unwrap_err().contains("65507"));
        let page = parse_pages("exp:100000<=2000000").unwrap();
        assert_eq!(sizes_text(&page), "exp:100000<=2000000");
        let load = Load::Pages { size: page, think: Dist::Constant(Span::from_ms(1)) };
        assert_eq!(
            words(&load),
            [("--pages", "exp:100000<=2000000".into()), ("--think", "1000000ns".into())]
        );
        assert!(parse_gap("pareto:1ms").unwrap_err().contains("LEAST:SHAPE"));
        assert!(parse_gap("pareto:1ms:0").unwrap_err().contains("shape"));
        assert!(parse_gap("normal:1ms").unwrap_err().contains("MEAN:DEVIATION"));
    }

    #[test]
    fn traces_are_read_strictly() {
        let packets = trace("# call\n20ms 160\n\n5ms 40 # last\n").unwrap();
        assert_eq!(trace(&trace_text(&packets)), Ok(packets.clone()));
        let load = Load::Replay(packets);
        assert_eq!(
            load.packets(Rng::named(1, "x")).collect::<Vec<_>>(),
            [(20_000_000, 160), (25_000_000, 40)]
        );
        assert!(trace("20ms\n").unwrap_err().starts_with("line 1:"));
        assert!(trace("\n1ms..2ms 7\n").unwrap_err().starts_with("line 2:"));
        assert!(trace("").is_err());
    }
}
