//! RED's words from what tc made of them: the weight, the scale of idle time and its table.

use super::Say;
use crate::tc::kinds::red_parms::{eval_ewma, eval_idle_damping};
use penstock_model::{Kernel, Options};

/// A burst and a mean packet of which tc makes this weight.
pub fn burst(min: u32, ewma: u32) -> Option<(u32, u32)> {
    let sizes = [1000, 1500, 500, 256, 100, 1514, 64, 2000, 4000, 9000, 20, 10, 5, 3, 2, 1];
    let own = [min, min.saturating_mul(2), min / 2, min.saturating_add(1), min.wrapping_add(min / 2)];
    let with = |avpkt: u32| {
        let made = |burst: u32| eval_ewma(min, burst, avpkt);
        // The weight grows with the burst: find the first that makes it.
        let (mut low, mut high) = ((min / avpkt).saturating_sub(1), u32::MAX / 2);
        let reaches = |burst: u32| match made(burst) {
            Ok(log) => log >= ewma,
            // Too small a burst says so; too large a one has no weight at all.
            Err(line) => line.is_none(),
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if reaches(middle) { high = middle } else { low = middle + 1 }
        }
        (made(low) == Ok(ewma)).then_some((low, avpkt))
    };
    sizes.into_iter().chain(own).filter(|&avpkt| avpkt != 0).find_map(with)
}

/// A bandwidth, in bytes per second, with which tc makes this table of idle time, or at least this scale.
pub fn bandwidth(o: &Options, ewma: u32, avpkt: u32, kernel: Kernel) -> Option<u32> {
    let scale = o.u32("scell_log")?;
    let table = o.bytes("stab");
    let order = |rate: u32| {
        let (made, steps) = eval_idle_damping(ewma, avpkt, rate, kernel)?;
        // A faster line has a smaller scale and, at the same scale, greater shifts.
        Some(
            scale
                .cmp(&made)
                .then_with(|| table.map_or(std::cmp::Ordering::Equal, |t| steps.as_slice().cmp(t))),
        )
    };
    let plain = [1_250_000, 125_000, 12_500_000, 125_000_000, 1_250_000_000];
    let same = |rate: &u32| order(*rate) == Some(std::cmp::Ordering::Equal);
    if let Some(rate) = plain.iter().copied().find(same) {
        return Some(rate);
    }
    let (mut low, mut high) = (1u32, u32::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        match order(middle) {
            Some(std::cmp::Ordering::Equal) => return Some(middle),
            Some(std::cmp::Ordering::Greater) => high = middle,
            _ => low = middle + 1,
        }
    }
    same(&low).then_some(low)
}

/// The chance of a mark at `max`, of 2^32.
pub fn probability(say: &mut Say) {
    let o = say.o;
    let p = o.u32("max_p").unwrap_or(0);
    if p != 0 {
        say.pair("probability", f64::from(p) / 4_294_967_296.0);
        return;
    }
    // 2.6.35 keeps but the number of bits, of delta / p.
    if let Some(plog) = o.u32("plog") {
        let n = |name| f64::from(o.u32(name).unwrap_or(0));
        let p = (n("max") - n("min")).max(1.0) * 1.5 / 2f64.powi(plog as i32);
        say.pair("probability", format!("{p:e}"));
    }
}

/// `burst N avpkt N bandwidth RATE probability P`; what cannot be found is named.
pub fn evaluated(say: &mut Say, unit: u32) -> Option<&'static str> {
    let o = say.o;
    let n = |name| o.u32(name).unwrap_or(0);
    let (min, ewma) = (n("min"), n("ewma"));
    let found = match unit {
        0 => burst(min, ewma),
        // choke counts packets, of one size.
        avpkt => burst(min.wrapping_mul(avpkt), ewma).filter(|b| b.1 == avpkt),
    };
    probability(say);
    let Some((burst, avpkt)) = found else { return Some("burst") };
    say.pair("burst", burst).pair("avpkt", avpkt);
    match bandwidth(o, ewma, avpkt, say.kernel) {
        Some(rate) => {
            say.pair("bandwidth", super::rate(u64::from(rate)));
            None
        }
        None => Some("bandwidth"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::psched;

    #[test]
    fn what_tc_made_is_made_again() {
        for (min, packets, avpkt, rate) in
            [(30_000, 55, 1000, 1_250_000), (15_000, 20, 1000, 125_000), (5000, 40, 500, 77_777)]
        {
            let ewma = eval_ewma(min, packets, avpkt).unwrap();
            let (size_burst, size) = burst(min, ewma).unwrap();
            assert_eq!(eval_ewma(min, size_burst, size), Ok(ewma));
            let (scale, table) = eval_idle_damping(ewma, avpkt, rate, Kernel::V6_12).unwrap();
            let o = Options::new().with("scell_log", scale).with("stab", table.clone());
            let found = bandwidth(&o, ewma, size, Kernel::V6_12).unwrap();
            assert_eq!(
                eval_idle_damping(ewma, size, found, Kernel::V6_12),
                Some((scale, table)),
                "{min} {rate}"
            );
            assert!(psched::xmittime(u64::from(found), size) > 0);
        }
    }
}
