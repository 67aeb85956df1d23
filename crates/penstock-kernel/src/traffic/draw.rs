//! What a flow sends: sizes and gaps, constant, drawn or from a trace.

use penstock_model::{Rate, Rng, Size, Span};

/// What a flow sends.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Load {
    /// As much as TCP takes.
    #[default]
    Greedy,
    /// So many bytes of TCP.
    Bytes(u64),
    /// A steady stream: rate of payload, bytes of each packet.
    Rate(Rate, u32),
    /// Packets of drawn sizes at drawn distances.
    Packets(Sizes, Gap),
    /// Packets one by one: distance to the one before, payload bytes.
    Trace(Vec<(Span, u32)>),
}

/// Payload sizes, bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sizes {
    /// Always the same.
    Constant(u32),
    /// Any of `from..=to` with equal chance.
    Uniform(u32, u32),
    /// One of these with equal chance.
    Table(Vec<u32>),
}

/// Distances.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gap {
    /// Always the same.
    Constant(Span),
    /// Any of `from..=to` with equal chance.
    Uniform(Span, Span),
    /// Exponential with this mean.
    Exponential(Span),
    /// One of these with equal chance.
    Table(Vec<Span>),
}

fn joined<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(",")
}

fn ns(span: &Span) -> String {
    format!("{}ns", span.as_ns())
}

impl Sizes {
    /// Reads `160`, `64..1200`, `64,512,1500`.
    ///
    /// # Errors
    /// A sentence when it is none of these, or a size is not 1 to 65507 bytes.
    pub fn parse(text: &str) -> Result<Sizes, String> {
        let one = |t: &str| match Size::parse(t).map(Size::bytes) {
            Ok(n @ 1..=65_507) => Ok(n as u32),
            _ => Err(format!("size \"{t}\" is not 1 to 65507 bytes")),
        };
        if let Some((from, to)) = text.split_once("..") {
            let (from, to) = (one(from)?, one(to)?);
            return if from <= to {
                Ok(Sizes::Uniform(from, to))
            } else {
                Err(format!("size \"{text}\": write the smaller one first"))
            };
        }
        let all = text.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
        Ok(if let [only] = all[..] { Sizes::Constant(only) } else { Sizes::Table(all) })
    }

    /// As [`Sizes::parse`] reads it.
    pub fn text(&self) -> String {
        match self {
            Sizes::Constant(n) => n.to_string(),
            Sizes::Uniform(from, to) => format!("{from}..{to}"),
            Sizes::Table(all) => joined(all, u32::to_string),
        }
    }

    fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Sizes::Constant(n) => *n,
            Sizes::Uniform(from, to) => from + rng.below(to - from + 1),
            Sizes::Table(all) => all[rng.below(all.len() as u32) as usize],
        }
    }
}

impl Gap {
    /// Reads `20ms`, `10ms..30ms`, `exp:20ms`, `10ms,20ms,20ms`.
    ///
    /// # Errors
    /// A sentence when it is none of these.
    pub fn parse(text: &str) -> Result<Gap, String> {
        let one = |t: &str| match Span::parse(t) {
            Ok(span) if span >= Span::ZERO => Ok(span),
            _ => Err(format!("gap \"{t}\" is not a duration, e.g. 20ms")),
        };
        if let Some(mean) = text.strip_prefix("exp:") {
            return one(mean).map(Gap::Exponential);
        }
        if let Some((from, to)) = text.split_once("..") {
            let (from, to) = (one(from)?, one(to)?);
            return if from <= to {
                Ok(Gap::Uniform(from, to))
            } else {
                Err(format!("gap \"{text}\": write the smaller one first"))
            };
        }
        let all = text.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
        Ok(if let [only] = all[..] { Gap::Constant(only) } else { Gap::Table(all) })
    }

    /// As [`Gap::parse`] reads it.
    pub fn text(&self) -> String {
        match self {
            Gap::Constant(span) => ns(span),
            Gap::Uniform(from, to) => format!("{}..{}", ns(from), ns(to)),
            Gap::Exponential(mean) => format!("exp:{}", ns(mean)),
            Gap::Table(all) => joined(all, ns),
        }
    }

    fn draw(&self, rng: &mut Rng) -> i64 {
        match self {
            Gap::Constant(span) => span.as_ns(),
            Gap::Uniform(from, to) => {
                let width = (to.as_ns() - from.as_ns()) as u64 + 1;
                from.as_ns() + ((u128::from(rng.next_u64()) * u128::from(width)) >> 64) as i64
            }
            Gap::Exponential(mean) => {
                // 53 random bits in (0, 1].
                let u = ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                (-u.ln() * mean.as_ns() as f64) as i64
            }
            Gap::Table(all) => all[rng.below(all.len() as u32) as usize].as_ns(),
        }
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
        let gap = Gap::parse(gap).map_err(|e| format!("line {}: {e}", n + 1))?;
        let size = Sizes::parse(size).map_err(|e| format!("line {}: {e}", n + 1))?;
        let (Gap::Constant(gap), Sizes::Constant(size)) = (gap, size) else {
            return Err(format!("line {}: a packet has one gap and one size", n + 1));
        };
        packets.push((gap, size));
    }
    if packets.is_empty() { Err("the trace has no packets".to_owned()) } else { Ok(packets) }
}

impl Load {
    /// The words of `penstock send` that ask for it.
    pub fn words(&self) -> Vec<(&'static str, String)> {
        match self {
            Load::Greedy => Vec::new(),
            Load::Bytes(n) => vec![("--bytes", n.to_string())],
            Load::Rate(rate, size) => {
                vec![("--rate", format!("{}bit", rate.bit_per_s())), ("--size", size.to_string())]
            }
            Load::Packets(sizes, gap) => vec![("--size", sizes.text()), ("--gap", gap.text())],
            // A plan has none: its files are read where the tool runs.
            Load::Trace(_) => Vec::new(),
        }
    }

    /// Packets in order: offset from the start in ns, payload bytes. Empty for what has no pace.
    pub fn packets(&self, mut rng: Rng) -> Box<dyn Iterator<Item = (i64, u32)> + '_> {
        match self {
            Load::Greedy | Load::Bytes(_) => Box::new(std::iter::empty()),
            Load::Rate(rate, size) => {
                let (size, bits) = (*size, rate.bit_per_s().max(1));
                let at = move |n: u64| {
                    (u128::from(n) * u128::from(size) * 8_000_000_000 / u128::from(bits)) as i64
                };
                Box::new((0u64..).map(move |n| (at(n), size)))
            }
            Load::Packets(sizes, gap) => {
                let mut at = 0i64;
                Box::new(std::iter::from_fn(move || {
                    let packet = (at, sizes.draw(&mut rng));
                    at += gap.draw(&mut rng);
                    Some(packet)
                }))
            }
            Load::Trace(all) => {
                let mut at = 0i64;
                Box::new(all.iter().map(move |(gap, size)| {
                    at += gap.as_ns();
                    (at, *size)
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        for text in ["160", "64..1200", "64,512,1500"] {
            assert_eq!(Sizes::parse(text).unwrap().text(), text);
        }
        for text in ["20000000ns", "10ns..30ns", "exp:5000ns", "10ns,20ns"] {
            assert_eq!(Gap::parse(text).unwrap().text(), text);
        }
        assert_eq!(Gap::parse("20ms"), Ok(Gap::Constant(Span::from_ms(20))));
        assert!(Sizes::parse("0").is_err() && Sizes::parse("9..5").is_err() && Gap::parse("soon").is_err());
        assert!(Sizes::parse("70000").unwrap_err().contains("65507"));
    }

    #[test]
    fn a_rate_has_no_drift() {
        let load = Load::Rate(Rate::from_bit_per_s(3_000_000), 1000);
        let at = load.packets(Rng::named(1, "x")).nth(3_000).unwrap().0;
        assert_eq!(at, 8_000_000_000);
    }

    #[test]
    fn drawn_packets_keep_their_mean_and_repeat() {
        let load = Load::Packets(Sizes::Uniform(100, 300), Gap::Exponential(Span::from_ms(10)));
        let draw = || load.packets(Rng::named(7, "x")).take(5001).collect::<Vec<_>>();
        let (a, b) = (draw(), draw());
        assert_eq!(a, b);
        let mean = a[5000].0 as f64 / 5000.0;
        assert!((9.6e6..10.4e6).contains(&mean), "{mean}");
        let sizes = a.iter().map(|p| f64::from(p.1)).sum::<f64>() / a.len() as f64;
        assert!((196.0..204.0).contains(&sizes), "{sizes}");
    }

    #[test]
    fn traces_are_read_strictly() {
        let load = Load::Trace(trace("# call\n20ms 160\n\n5ms 40 # last\n").unwrap());
        assert_eq!(
            load.packets(Rng::named(1, "x")).collect::<Vec<_>>(),
            [(20_000_000, 160), (25_000_000, 40)]
        );
        assert!(trace("20ms\n").unwrap_err().starts_with("line 1:"));
        assert!(trace("\n1ms..2ms 7\n").unwrap_err().starts_with("line 2:"));
        assert!(trace("").is_err());
    }
}
