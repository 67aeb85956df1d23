//! Distributions in integers: processing times, packet gaps, think times.
//!
//! No floats: the same seed must give the same nanoseconds on every platform, and `ln` differs between libraries.

use penstock_model::{Rng, Span};

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
}
