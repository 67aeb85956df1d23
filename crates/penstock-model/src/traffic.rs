//! Traffic: what a flow sends, how it is drawn, what it asks of TCP. Experiments, the simulator and real senders mean the same by it.

use crate::{Rate, Rng, Span, Time};

/// How a random length of time is drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dist {
    /// Always the same.
    Constant(Span),
    /// Any whole nanosecond of `from..=to` with equal chance.
    Uniform {
        /// Least.
        from: Span,
        /// Greatest.
        to: Span,
    },
    /// Exponential with this mean: the gaps of a Poisson process.
    Exponential {
        /// Mean.
        mean: Span,
    },
    /// One of these with equal chance (an empirical distribution). An empty table draws 0.
    Table(Vec<Span>),
    /// Pareto: longer than `x` with chance `(least / x)^shape`. Without `most` its mean is `least * shape / (shape - 1)` for a
    /// shape above 1, and its variance has no bound for one of 2 and below.
    Pareto {
        /// Least.
        least: Span,
        /// Shape, thousandths.
        shape_milli: u32,
        /// Draws above this count as this.
        most: Option<Span>,
    },
    /// Normal, by the sum of twelve uniform draws (never further than six deviations from the mean); negative draws count as 0.
    Normal {
        /// Mean.
        mean: Span,
        /// Standard deviation.
        deviation: Span,
    },
}

impl Dist {
    /// No time at all.
    pub const ZERO: Dist = Dist::Constant(Span::ZERO);

    /// Draws once; never negative.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> Span {
        let ns = match self {
            Dist::Constant(span) => span.as_ns(),
            Dist::Uniform { from, to } => {
                let width = (to.as_ns() - from.as_ns()).max(0) as u64 + 1;
                from.as_ns() + scale(rng.next_u64(), width) as i64
            }
            Dist::Exponential { mean } => exponential(mean.as_ns().max(0) as u64, rng.next_u64()),
            Dist::Table(values) if values.is_empty() => 0,
            Dist::Table(values) => values[scale(rng.next_u64(), values.len() as u64) as usize].as_ns(),
            Dist::Pareto { least, shape_milli, most } => {
                let ns = pareto_of(least.as_ns().max(0) as u64, *shape_milli, rng.next_u64());
                most.map_or(ns, |most| ns.min(most.as_ns()))
            }
            Dist::Normal { mean, deviation } => {
                // Twelve uniform draws have a variance of 1 together: 32.32 fixed point around their mean of 6.
                let sum: i64 = (0..12).map(|_| i64::from(rng.next_u32())).sum();
                let off = i128::from(sum - (6 << 32)) * i128::from(deviation.as_ns());
                mean.as_ns().saturating_add(i64::try_from(off >> 32).unwrap_or(0))
            }
        };
        Span::from_ns(ns.max(0))
    }
    /// Whether every draw is zero.
    pub fn is_zero(&self) -> bool {
        match self {
            Dist::Constant(span) => span.as_ns() <= 0,
            Dist::Uniform { to, .. } => to.as_ns() <= 0,
            Dist::Exponential { mean } => mean.as_ns() <= 0,
            Dist::Table(values) => values.iter().all(|v| v.as_ns() <= 0),
            Dist::Pareto { least, .. } => least.as_ns() <= 0,
            Dist::Normal { mean, deviation } => mean.as_ns() <= 0 && deviation.as_ns() <= 0,
        }
    }
}

/// `random` of 2^64 scaled to `0..bound`.
fn scale(random: u64, bound: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

/// A heavy-tailed number: Pareto's distribution with this least value and this shape in thousandths (1200: 1.2), cut off at
/// 65,536 times the least. Its mean without the cut is `least * shape / (shape - 1)`.
pub fn pareto(least: u64, shape_milli: u32, rng: &mut Rng) -> u64 {
    /// ln 2 in units of 2^-32.
    const LN_2: u64 = 2_977_044_472;
    // least * exp(E / shape), E exponential of mean 1, in 32.32.
    let e = exponential(1 << 32, rng.next_u64()) as u128;
    let y = (e * 1000 / u128::from(shape_milli.max(1))) as u64;
    let (whole, rest) = (y / LN_2, u128::from(y % LN_2));
    if whole >= 16 {
        return least.saturating_mul(1 << 16);
    }
    let mut power = 1u128 << 32;
    for n in (1..=14u128).rev() {
        power = (1 << 32) + ((rest * power) >> 32) / n;
    }
    ((u128::from(least) * (power << whole)) >> 32) as u64
}

/// `-log2(u)` in 32.32 for u = random / 2^64, by its binary digits: one squaring a digit.
fn minus_log2(random: u64) -> u64 {
    let u = random.max(1);
    let zeros = u.leading_zeros();
    // u = 2^(63 - zeros) * m, 1 <= m < 2, m as 1.63 fixed point.
    let mut m = u << zeros;
    let mut fraction: u32 = 0;
    for bit in (0..32).rev() {
        let square = (u128::from(m) * u128::from(m)) >> 63;
        if square >> 64 != 0 {
            fraction |= 1 << bit;
            m = (square >> 1) as u64;
        } else {
            m = square as u64;
        }
    }
    ((u64::from(zeros) + 1) << 32) - u64::from(fraction)
}

/// `-mean * ln(u)` for u = random / 2^64.
fn exponential(mean: u64, random: u64) -> i64 {
    /// ln 2 in units of 2^-32.
    const LN_2: u128 = 2_977_044_472;
    let ns = (u128::from(mean) * ((u128::from(minus_log2(random)) * LN_2) >> 32)) >> 32;
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// `least * u^(-1/shape)` for u = random / 2^64: two to the power of `-log2(u) / shape`.
fn pareto_of(least: u64, shape_milli: u32, random: u64) -> i64 {
    let power = u128::from(minus_log2(random)) * 1000 / u128::from(shape_milli.max(1));
    let (whole, fraction) = ((power >> 32).min(63) as u32, power as u32);
    // 2^fraction as 2.62 fixed point: the roots of two at its digits, multiplied.
    let mut root = 2u128 << 62;
    let mut factor = 1u128 << 62;
    for bit in (0..32).rev() {
        root = (root << 62).isqrt();
        if fraction >> bit & 1 == 1 {
            factor = (factor * root) >> 62;
        }
    }
    let product = u128::from(least) * factor;
    let ns = match whole.checked_sub(62) {
        Some(more) if product.leading_zeros() < more => u128::MAX,
        Some(more) => product << more,
        None => product >> (62 - whole),
    };
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// What a flow sends.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Load {
    /// As much as the transport takes (TCP only).
    #[default]
    Greedy,
    /// So many bytes, then the end (TCP).
    Bytes(u64),
    /// Pages: one connection after another, each carries a page of drawn size and closes; then the reader thinks (TCP).
    Pages {
        /// Payload of each, bytes.
        size: Sizes,
        /// From the end of a page to the next connection.
        think: Dist,
    },
    /// A steady stream: payload rate, payload bytes of each packet.
    Rate(Rate, u32),
    /// Connections that come as a Poisson process, each with so much to carry (TCP).
    Arrivals(Arrivals),
    /// Packets of drawn sizes with drawn gaps between their starts (UDP; over TCP they are written to the stream).
    Packets {
        /// Payload of each, bytes, 1..=65507.
        size: Sizes,
        /// Gap from one to the next.
        gap: Dist,
    },
    /// Packets that the receiver sends back (RFC 862); how long that takes is measured (UDP only).
    Echo {
        /// Payload of each, bytes, 1..=65507.
        size: Sizes,
        /// Gap from one to the next.
        gap: Dist,
    },
    /// The same while it is on, nothing while it is off.
    OnOff {
        /// Payload of each, bytes.
        size: Sizes,
        /// Gap from one to the next.
        gap: Dist,
        /// How long it is on.
        on: Dist,
        /// How long it is off.
        off: Dist,
    },
    /// Packets as they were seen: so long after the one before, so many bytes of payload. Then the end.
    Replay(Vec<(Span, u32)>),
}

/// Payload sizes of packets, bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sizes {
    /// Always the same.
    Constant(u32),
    /// Any of `from..=to` with equal chance.
    Uniform {
        /// Least.
        from: u32,
        /// Greatest.
        to: u32,
    },
    /// One of these with equal chance.
    Table(Vec<u32>),
    /// Drawn as a time is, a nanosecond a byte; at least 1.
    Drawn {
        /// How.
        dist: Dist,
        /// Draws above this count as this.
        most: u32,
    },
}

/// Connections that come as a Poisson process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrivals {
    /// Mean time from one to the next.
    pub gap: Span,
    /// Mean size, bytes.
    pub bytes: u64,
    /// Shape of the sizes' Pareto distribution, thousandths, above 1000; `None`: all alike.
    pub shape_milli: Option<u32>,
}

/// What datagrams ask for by `SO_TXTIME`: a time of departure each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxTimeWish {
    /// How long after it is written a datagram is to leave.
    pub after: Span,
    /// By `CLOCK_MONOTONIC`, as fq takes it; else by `CLOCK_TAI`, as etf does.
    pub monotonic: bool,
    /// The time is the latest, not the moment, of its sending.
    pub deadline: bool,
}

/// What a flow asks of TCP. `None`: as the sender's profile has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TcpWishes {
    /// Congestion control, e.g. `reno`, `cubic`.
    pub cc: Option<String>,
    /// Maximum segment size, bytes.
    pub mss: Option<u16>,
    /// ECN.
    pub ecn: Option<bool>,
    /// Selective acknowledgements.
    pub sack: Option<bool>,
    /// Send buffer, bytes (fixed instead of autotuned).
    pub sndbuf: Option<u32>,
    /// Receive buffer, bytes (fixed instead of autotuned).
    pub rcvbuf: Option<u32>,
    /// Initial window, segments.
    pub initial_window: Option<u32>,
    /// Least retransmission timeout.
    pub min_rto: Option<Span>,
    /// Every segment is acknowledged at once (`ip route … quickack 1`).
    pub quickack: bool,
    /// Timer interrupts per second at both ends (CONFIG_HZ), 10 to 10000: what timeouts are counted in.
    pub hz: Option<u32>,
    /// TCP Fast Open at both ends (RFC 7413).
    pub fastopen: bool,
    /// ns-2's one-way TCP in place of the hosts' own, at both ends.
    pub ns2: Option<crate::ns2::Options>,
}

impl TcpWishes {
    /// The same with the congestion control as Linux calls it: RFC 6582's NewReno is its `reno`. ns-2 has agents of both names.
    pub fn resolved(&self) -> TcpWishes {
        let mut wishes = self.clone();
        if self.ns2.is_none() && self.cc.as_deref() == Some("newreno") {
            wishes.cc = Some("reno".to_owned());
        }
        wishes
    }
}

/// Greatest payload of a datagram, bytes.
const MOST: u32 = 65_507;

impl Sizes {
    /// Draws the payload of a datagram: 1 to 65507 bytes.
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        self.draw_page(rng).min(MOST)
    }
    /// Draws what a connection carries: a byte or more.
    pub fn draw_page(&self, rng: &mut Rng) -> u32 {
        let n = match self {
            Sizes::Constant(n) => *n,
            Sizes::Uniform { from, to } => from + rng.below(to.saturating_sub(*from).saturating_add(1)),
            Sizes::Table(table) if table.is_empty() => 1,
            Sizes::Table(table) => table[rng.below(table.len() as u32) as usize],
            Sizes::Drawn { dist, most } => dist.draw(rng).as_ns().min(i64::from(*most)) as u32,
        };
        n.max(1)
    }
    /// The most that a draw may give.
    pub fn largest(&self) -> u32 {
        match self {
            Sizes::Constant(n) | Sizes::Uniform { to: n, .. } | Sizes::Drawn { most: n, .. } => *n,
            Sizes::Table(table) => table.iter().copied().max().unwrap_or(1),
        }
        .clamp(1, MOST)
    }
}

impl Load {
    /// A steady stream: datagrams of `size` bytes of payload at `rate` of payload.
    pub fn steady(rate: Rate, size: u32) -> Load {
        let bytes_per_s = rate.bytes_per_s().max(1);
        let gap = (u128::from(size) * 1_000_000_000 / u128::from(bytes_per_s)).min(i64::MAX as u128) as i64;
        Load::Packets { size: Sizes::Constant(size), gap: Dist::Constant(Span::from_ns(gap)) }
    }

    /// The same with a rate as packets at a constant distance, to the nanosecond.
    pub fn paced(self) -> Load {
        match self {
            Load::Rate(rate, size) => Load::steady(rate, size),
            other => other,
        }
    }

    /// Its packets in order: time from the start, ns, and payload bytes. None of what has no pace of its own.
    pub fn packets(&self, mut rng: Rng) -> Box<dyn Iterator<Item = (i64, u32)> + '_> {
        match self {
            Load::Greedy | Load::Bytes(_) | Load::Pages { .. } | Load::Arrivals(_) => {
                Box::new(std::iter::empty())
            }
            // Counted from the start: no drift.
            Load::Rate(rate, size) => {
                let (size, bits) = (*size, rate.bit_per_s().max(1));
                let at = move |n: u64| {
                    (u128::from(n) * u128::from(size) * 8_000_000_000 / u128::from(bits)) as i64
                };
                Box::new((0u64..).map(move |n| (at(n), size)))
            }
            Load::Packets { size, gap } | Load::Echo { size, gap } => {
                let mut at = 0i64;
                Box::new(std::iter::from_fn(move || {
                    let packet = (at, size.draw(&mut rng));
                    at = at.saturating_add(gap.draw(&mut rng).as_ns());
                    Some(packet)
                }))
            }
            Load::OnOff { size, gap, on, off } => {
                // Begins somewhere in an off time: many such sources do not begin together.
                let into = Dist::Uniform { from: Span::ZERO, to: off.draw(&mut rng) };
                let mut at = Time::ZERO + into.draw(&mut rng);
                let mut on_until = at.saturating_add(on.draw(&mut rng));
                Box::new(std::iter::from_fn(move || {
                    let packet = (at.as_ns(), size.draw(&mut rng));
                    at = at.saturating_add(gap.draw(&mut rng));
                    if at >= on_until {
                        at = on_until.saturating_add(off.draw(&mut rng));
                        on_until = at.saturating_add(on.draw(&mut rng));
                    }
                    Some(packet)
                }))
            }
            Load::Replay(all) => {
                let mut at = 0i64;
                Box::new(all.iter().map(move |(gap, size)| {
                    at = at.saturating_add(gap.as_ns());
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
    fn exponential_is_minus_mean_ln_u() {
        for random in [1u64, 1 << 20, 1 << 40, 1 << 63, u64::MAX / 3, u64::MAX / 10 * 9, u64::MAX] {
            let exact = -(random as f64 / 2f64.powi(64)).ln() * 1e9;
            let got = exponential(1_000_000_000, random) as f64;
            assert!((got - exact).abs() < 5.0 + exact * 1e-8, "{random}: {got} for {exact}");
        }
    }

    #[test]
    fn pareto_has_its_tail() {
        let mut rng = Rng::named(5, "pareto");
        let draws: Vec<u64> = (0..100_000).map(|_| pareto(1000, 2000, &mut rng)).collect();
        // P(X > x) = (least / x)^2.
        for (x, share) in [(1000, 1.0), (2000, 0.25), (4000, 0.0625), (10_000, 0.01)] {
            let over = draws.iter().filter(|&&d| d >= x).count() as f64 / 1e5;
            assert!((over - share).abs() < 0.005 + share * 0.03, "{x}: {over}");
        }
        assert!((1_950..2_050).contains(&(draws.iter().sum::<u64>() / 100_000)));
    }

    #[test]
    fn pareto_is_a_power_of_a_uniform_draw() {
        for random in [1u64 << 40, 1 << 60, 1 << 63, u64::MAX / 3, u64::MAX / 10 * 9, u64::MAX] {
            for shape in [1100u32, 1500, 2000, 3700] {
                let exact = 1e6 * (random as f64 / 2f64.powi(64)).powf(-1000.0 / f64::from(shape));
                let got = pareto_of(1_000_000, shape, random) as f64;
                assert!((got - exact).abs() < 2.0 + exact * 1e-7, "{random} {shape}: {got} for {exact}");
            }
        }
        // The greatest there is does not wrap; a bound bounds.
        assert_eq!(pareto_of(1_000_000_000, 100, 0), i64::MAX);
        let bounded =
            Dist::Pareto { least: Span::from_us(1), shape_milli: 300, most: Some(Span::from_us(9)) };
        let mut rng = Rng::named(1, "dist");
        assert!((0..1000).all(|_| bounded.draw(&mut rng) <= Span::from_us(9)));
    }

    #[test]
    fn means_are_as_given() {
        let mut rng = Rng::named(3, "dist");
        let mean =
            |dist: &Dist, rng: &mut Rng| (0..100_000).map(|_| dist.draw(rng).as_ns()).sum::<i64>() / 100_000;
        let exponential = mean(&Dist::Exponential { mean: Span::from_us(100) }, &mut rng);
        assert!((98_500..101_500).contains(&exponential), "{exponential}");
        let uniform = mean(&Dist::Uniform { from: Span::from_us(50), to: Span::from_us(150) }, &mut rng);
        assert!((99_500..100_500).contains(&uniform), "{uniform}");
        let table = mean(&Dist::Table(vec![Span::from_us(1), Span::from_us(3)]), &mut rng);
        assert!((1_980..2_020).contains(&table), "{table}");
        let pareto = Dist::Pareto { least: Span::from_us(50), shape_milli: 3000, most: None };
        let pareto = mean(&pareto, &mut rng);
        assert!((74_000..76_000).contains(&pareto), "{pareto}");
        let normal = Dist::Normal { mean: Span::from_us(80), deviation: Span::from_us(10) };
        let draws: Vec<i64> = (0..100_000).map(|_| normal.draw(&mut rng).as_ns()).collect();
        let square = draws.iter().map(|ns| (ns - 80_000).pow(2)).sum::<i64>() / 100_000;
        assert!((79_800..80_200).contains(&(draws.iter().sum::<i64>() / 100_000)));
        assert!((98_000_000..102_000_000).contains(&square), "{square}");
        assert_eq!(Dist::Table(vec![]).draw(&mut rng), Span::ZERO);
        assert_eq!(Dist::Constant(Span::from_ns(-5)).draw(&mut rng), Span::ZERO);
    }

    #[test]
    fn steady_loads_have_their_gap() {
        let Load::Packets { gap, .. } = Load::steady(Rate::from_bit_per_s(1_000_000), 1250) else { panic!() };
        assert_eq!(gap, Dist::Constant(Span::from_ms(10)));
    }

    #[test]
    fn a_rate_has_no_drift() {
        let load = Load::Rate(Rate::from_bit_per_s(3_000_000), 1000);
        assert_eq!(load.packets(Rng::named(1, "x")).nth(3_000).unwrap().0, 8_000_000_000);
    }

    #[test]
    fn drawn_packets_keep_their_mean_and_repeat() {
        let size = Sizes::Uniform { from: 100, to: 300 };
        let load = Load::Packets { size, gap: Dist::Exponential { mean: Span::from_ms(10) } };
        let draw = || load.packets(Rng::named(7, "x")).take(5001).collect::<Vec<_>>();
        let (a, b) = (draw(), draw());
        assert_eq!(a, b);
        let mean = a[5000].0 / 5000;
        assert!((9_600_000..10_400_000).contains(&mean), "{mean}");
        let sizes = a.iter().map(|p| u64::from(p.1)).sum::<u64>() / a.len() as u64;
        assert!((196..204).contains(&sizes), "{sizes}");
    }

    #[test]
    fn sources_that_are_on_by_turns() {
        let ms = Span::from_ms;
        let [gap, on, off] = [1, 10, 90].map(|n| Dist::Constant(ms(n)));
        let load = Load::OnOff { size: Sizes::Constant(7), gap, on, off };
        let all: Vec<_> = load.packets(Rng::named(3, "x")).take(25).collect();
        // Ten packets, 90 ms of nothing, ten packets.
        let gaps: Vec<i64> = all.windows(2).map(|w| (w[1].0 - w[0].0) / 1_000_000).collect();
        assert_eq!(gaps[..9], [1; 9]);
        assert_eq!((gaps[9], gaps[19]), (91, 91));
        assert!(all[0].0 <= 90_000_000 && all.iter().all(|p| p.1 == 7));
    }

    #[test]
    fn wishes_name_what_linux_has() {
        let wish = |cc: &str, ns2| TcpWishes { cc: Some(cc.to_owned()), ns2, ..TcpWishes::default() };
        assert_eq!(wish("newreno", None).resolved(), wish("reno", None));
        let agent = wish("newreno", Some(crate::ns2::Options::default()));
        assert_eq!(agent.resolved(), agent);
    }
}
