//! The tables of distributions by which `netem` throws delays, made anew as iproute2 makes those that it installs.
//!
//! Follows: iproute2 6.1.0 `netem/normal.c`, `pareto.c`, `paretonormal.c`; linux v6.12 `net/sched/sch_netem.c` `tabledist`.
//! A table says, for equal shares of chance, how many standard deviations from the mean the value is, in units of 1/8192.
//!
//! Differs: `experimental` is measured data and not made of any formula: it is refused where packets are to be sent.
//! The doubles here are added, multiplied, divided and rounded and nothing else, which gives the same everywhere.

use std::sync::OnceLock;

/// `NETEM_DIST_SCALE`.
pub(super) const SCALE: i64 = 8192;
/// Entries of each table.
const ENTRIES: usize = 4096;
/// Places of the finer table that the makers of `normal` use, each fourth of which is kept.
const FINE: f64 = 16384.0;

/// A table.
pub(super) type Table = [i16; ENTRIES];

/// The table of this name; `None` for one that is not made of a formula.
pub(super) fn table(name: &str) -> Option<&'static Table> {
    static NORMAL: OnceLock<Table> = OnceLock::new();
    static PARETO: OnceLock<Table> = OnceLock::new();
    static PARETONORMAL: OnceLock<Table> = OnceLock::new();
    match name {
        "normal" => Some(NORMAL.get_or_init(|| normals().map(short))),
        "pareto" => Some(PARETO.get_or_init(|| std::array::from_fn(|n| short(pareto(n))))),
        "paretonormal" => Some(PARETONORMAL.get_or_init(|| {
            let normals = normals();
            std::array::from_fn(|n| short((normals[n] + 3 * pareto(n)) / 4))
        })),
        _ => None,
    }
}

fn short(value: i64) -> i16 {
    value.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

/// `1/u^(1/3)` with the mean taken off, for the share `u` that belongs to an entry.
fn pareto(entry: usize) -> i64 {
    let share = (65_536 - 16 * entry) as f64 / 65_536.0;
    let value = (1.0 / cube_root(share) - 1.5) * ((4.0 / 3.0) * SCALE as f64);
    value.min(32_767.0).round_ties_even() as i64
}

/// By Newton's steps, of what is in 0..=1.
fn cube_root(x: f64) -> f64 {
    let mut root = 1.0;
    for _ in 0..60 {
        root = (2.0 * root + x / (root * root)) / 3.0;
    }
    root
}

/// Of each entry the last point of the makers' grid of 1/20000 whose share of the fine table is rounded to the entry's place.
fn normals() -> [i64; ENTRIES] {
    // They add the step again and again, whose error is theirs.
    let mut points = Vec::with_capacity(401_002);
    let mut x = -10.0;
    while x < 10.05 {
        points.push(x);
        x += 0.000_05;
    }
    let mut from = 0;
    std::array::from_fn(|n| {
        let place = (4 * n) as f64;
        let beyond = |&x: &f64| (FINE * normal(x)).round_ties_even() <= place;
        from += points[from..].partition_point(beyond);
        (points[from - 1] * SCALE as f64).round_ties_even() as i64
    })
}

/// The share of a normal distribution that is below `x`.
fn normal(x: f64) -> f64 {
    let z = x / std::f64::consts::SQRT_2;
    if z < 0.0 { 0.5 * erfc(-z) } else { 1.0 - 0.5 * erfc(z) }
}

/// What of the error function is missing to 1, of 0 and more.
fn erfc(z: f64) -> f64 {
    const SQRT_PI: f64 = 1.772_453_850_905_516;
    if z < 2.5 {
        // Its series: 2/sqrt(pi) exp(-z^2) sum of 2^n z^(2n+1) / (1 3 5 ... (2n+1)).
        let (mut term, mut sum, mut odd) = (z, z, 1.0);
        while term > 1e-18 * sum {
            odd += 2.0;
            term *= 2.0 * z * z / odd;
            sum += term;
        }
        return 1.0 - 2.0 / SQRT_PI * exp_minus(z * z) * sum;
    }
    // Its continued fraction: exp(-z^2)/sqrt(pi) / (z + (1/2)/(z + (2/2)/(z + (3/2)/(z + ...)))).
    let below = (1..120).rev().fold(z, |below, n| z + f64::from(n) / 2.0 / below);
    exp_minus(z * z) / SQRT_PI / below
}

/// `exp(-x)`: of a small part of it by the series, which is squared as often as it was halved.
fn exp_minus(x: f64) -> f64 {
    let part = x / 1024.0;
    let (mut term, mut sum, mut n) = (1.0, 1.0, 0.0);
    while term > 1e-20 {
        n += 1.0;
        term *= part / n;
        sum += term;
    }
    (0..10).fold(1.0 / sum, |value, _| value * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a over the values, as those of the installed files were summed.
    fn sum(name: &str) -> (i64, u64) {
        let table = table(name).unwrap();
        let hash = table
            .iter()
            .fold(0xcbf2_9ce4_8422_2325u64, |h, &v| (h ^ u64::from(v as u16)).wrapping_mul(0x0100_0000_01b3));
        (table.iter().map(|&v| i64::from(v)).sum(), hash)
    }

    #[test]
    fn the_tables_are_those_that_iproute2_installs() {
        assert_eq!(sum("normal"), (-26_163, 0x9348_20d3_3f83_34b4));
        assert_eq!(sum("pareto"), (-1_123_786, 0x67c9_c87d_7b87_a671));
        assert_eq!(sum("paretonormal"), (-848_968, 0x1841_cf9b_07a3_8613));
        assert!(table("experimental").is_none());
    }
}
