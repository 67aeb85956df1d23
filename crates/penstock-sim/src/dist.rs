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

/// `-mean * ln(u)` for u = (random + 1) / 2^64, by the binary digits of log2: one squaring a digit.
fn exponential(mean: u64, random: u64) -> i64 {
    /// ln 2 in units of 2^-32.
    const LN_2: u128 = 2_977_044_472;
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
    // -log2(u / 2^64) in 32.32.
    let minus_log2 = ((u64::from(zeros) + 1) << 32) - u64::from(fraction);
    let ns = (u128::from(mean) * ((u128::from(minus_log2) * LN_2) >> 32)) >> 32;
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
        assert_eq!(Dist::Table(vec![]).draw(&mut rng), Span::ZERO);
        assert_eq!(Dist::Constant(Span::from_ns(-5)).draw(&mut rng), Span::ZERO);
    }
}
