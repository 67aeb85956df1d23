//! `estimator INTERVAL TIME_CONSTANT` and `stab`.
//!
//! Follows: iproute2 6.1.0 `tc/m_estimator.c`, `tc/tc_estimator.c`, `tc/tc_stab.c`, `tc/tc_core.c` `tc_calc_size_table`.

use super::args::{Args, matches};
use super::{Command, Failure, num, usage};
use penstock_model::Options;

/// Reads the two times after the word `estimator`.
pub fn estimator(args: &mut Args, already: &mut Option<(i8, u8)>) -> Result<(), Failure> {
    let word = args.value()?;
    if already.is_some() {
        return Err(args.duparg("estimator", &word.text));
    }
    let help = "a time, e.g. 1sec";
    if matches(&word.text, "help") {
        args.said.push(Command::Help(usage::ESTIMATOR.to_owned()));
    }
    let interval =
        num::time(&word.text).ok_or_else(|| args.invarg("estimator", "invalid estimator interval", help))?;
    let word = args.value()?;
    if matches(&word.text, "help") {
        args.said.push(Command::Help(usage::ESTIMATOR.to_owned()));
    }
    let constant = num::time(&word.text)
        .ok_or_else(|| args.invarg("estimator", "invalid estimator time constant", help))?;
    let Some(found) = setup(interval, constant) else {
        return Err(args.fail(
            "Error: estimator parameters are out of range.",
            255,
            "the interval lies between 250ms and 8s, the time constant well above it",
        ));
    };
    if args.raw {
        args.said.push(Command::Help(format!("[estimator i={} e={}]\n", found.0, found.1)));
    }
    *already = Some(found);
    Ok(())
}

/// `tc_setup_estimator`: the exponents of the interval (in quarter seconds, less 2) and of the averaging.
pub(super) fn setup(interval: u32, constant: u32) -> Option<(i8, u8)> {
    let quarters = (0..=5).find(|&i| f64::from(interval) <= f64::from(1 << i) * 250_000.0)?;
    let mut ewma = 1u32;
    while ewma < 32 {
        // 1 << 31 is negative in C's int.
        let w = 1.0 - 1.0 / f64::from(1i32.wrapping_shl(ewma));
        if f64::from(interval) / (-w.ln()) > f64::from(constant) {
            break;
        }
        ewma += 1;
    }
    let ewma = ewma - 1;
    if ewma == 0 || ewma >= 31 {
        return None;
    }
    Some((quarters as i8 - 2, ewma as u8))
}

/// Reads the words after `stab`: `mtu tsize mpu overhead linklayer`. `None`, with its usage, for `help`; without a linklayer, an mpu
/// or an overhead tc gives up without a word.
pub fn stab(args: &mut Args) -> Result<Options, Failure> {
    let first = args.peek_text().unwrap_or("");
    if args.left() == 0 {
        args.value()?;
    }
    if matches(first, "help") {
        args.next_word();
        let mut f = args.fail("", 255, "stab overhead 20 linklayer atm");
        f.stderr = usage::STAB.to_owned();
        f.diagnostic.message = usage::STAB.lines().next().unwrap_or("").to_owned();
        return Err(f);
    }
    let (mut mtu, mut mpu, mut overhead, mut tsize, mut linklayer) = (0u32, 0u32, 0i32, 0u32, 0u32);
    while let Some(word) = args.peek() {
        let is = |full: &str| matches(&word.text, full);
        let duplicate = |args: &Args, set: bool, name: &str, value: &str| {
            if set { Err(args.duparg(name, value)) } else { Ok(()) }
        };
        if is("mtu") {
            args.next_word();
            let v = args.value()?;
            duplicate(args, mtu != 0, "mtu", &v.text)?;
            mtu =
                num::u32(&v.text, 10).ok_or_else(|| args.invarg("mtu", "invalid mtu", "bytes, e.g. 2047"))?;
        } else if is("mpu") {
            args.next_word();
            let v = args.value()?;
            duplicate(args, mpu != 0, "mpu", &v.text)?;
            mpu = num::u32(&v.text, 10).ok_or_else(|| args.invarg("mpu", "invalid mpu", "bytes, e.g. 64"))?;
        } else if is("overhead") {
            args.next_word();
            let v = args.value()?;
            duplicate(args, overhead != 0, "overhead", &v.text)?;
            overhead = num::integer(&v.text, 10).ok_or_else(|| {
                args.invarg("overhead", "invalid overhead", "bytes, e.g. 20; may be negative")
            })?;
        } else if is("tsize") {
            args.next_word();
            let v = args.value()?;
            duplicate(args, tsize != 0, "tsize", &v.text)?;
            tsize = num::u32(&v.text, 10)
                .ok_or_else(|| args.invarg("tsize", "invalid table size", "slots, e.g. 512"))?;
        } else if is("linklayer") {
            args.next_word();
            let v = args.value()?;
            duplicate(args, linklayer != 0, "linklayer", &v.text)?;
            linklayer = super::kinds::linklayer(&v.text)
                .ok_or_else(|| args.invarg("linklayer", "invalid linklayer", "ethernet or atm"))?;
        } else {
            break;
        }
    }
    if linklayer == 0 && mpu == 0 && overhead == 0 {
        let mut f = args.fail("", 255, "give one of overhead, mpu, linklayer after stab");
        f.stderr.clear();
        f.diagnostic.message = "stab needs an overhead, an mpu or a linklayer".to_owned();
        return Err(f);
    }
    if linklayer <= 1 && mpu == 0 {
        (mtu, tsize) = (0, 0);
    } else {
        mtu = if mtu == 0 { 2047 } else { mtu };
        tsize = if tsize == 0 { 512 } else { tsize };
    }
    Ok(Options::new()
        .with("linklayer", linklayer)
        .with("overhead", overhead)
        .with("mpu", mpu)
        .with("mtu", mtu)
        .with("tsize", tsize))
}

#[cfg(test)]
mod tests {
    use super::setup;

    #[test]
    fn estimators_as_tc_sets_them_up() {
        // est 1sec 8sec, est 250ms 1sec
        assert_eq!(setup(1_000_000, 8_000_000), Some((0, 3)));
        assert_eq!(setup(250_000, 1_000_000), Some((-2, 2)));
        assert_eq!(setup(9_000_000, 80_000_000), None);
        assert_eq!(setup(1_000_000, 1), None);
    }
}
