//! What tc computes of RED's words for the kernel: weights, scales, the table for idle time.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/tc_red.c`, and what `q_red.c`, `q_gred.c`, `q_choke.c` do with it.

use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::{Command, Failure, num};
use penstock_model::{Kernel, Options, Value, time::general};

/// `TC_RED_ECN`, `TC_RED_HARDDROP`, `TC_RED_ADAPTATIVE`, `TC_RED_NODROP`, in the order of their bits.
const FLAGS: [&str; 4] = ["ecn", "harddrop", "adaptive", "nodrop"];

/// The words that go into the computation.
pub struct RedOptions {
    /// Bytes.
    pub min: u32,
    /// Bytes.
    pub max: u32,
    /// Packets.
    pub burst: u32,
    /// Bytes.
    pub avpkt: u32,
    /// Bytes per second.
    pub rate: u32,
    /// Of a mark at `max`.
    pub probability: f64,
}

/// `tc_red_eval_ewma`: the weight of the newest length, as a negative power of two.
///
/// # Errors
/// The line tc writes of a burst that is too small.
pub fn eval_ewma(min: u32, burst: u32, avpkt: u32) -> Result<u32, Option<String>> {
    let a = f64::from(burst) + 1.0 - f64::from(min) / f64::from(avpkt);
    if a < 1.0 {
        let least = min.checked_div(avpkt).unwrap_or(0).wrapping_add(1);
        return Err(Some(format!("tc_red_eval_ewma() burst {burst} is too small ? Try burst {least}")));
    }
    let fits = |&log: &u32| {
        let w = 0.5f64.powi(log as i32);
        a <= (1.0 - (1.0 - w).powf(f64::from(burst))) / w
    };
    (1..32).find(fits).ok_or(None)
}

/// `tc_red_eval_P`: how many bits of a random number. 2.6.35 refuses thresholds that are equal.
pub fn eval_p(min: u32, max: u32, probability: f64, old: bool) -> Option<u32> {
    let delta = max.wrapping_sub(min) as i32;
    if delta <= 0 {
        return (delta == 0 && !old).then_some(0);
    }
    let mut p = probability / f64::from(delta);
    for log in 0..32 {
        if p > 1.0 {
            return Some(log);
        }
        p *= 2.0;
    }
    None
}

/// `tc_red_eval_idle_damping`: the scale of idle time and the table of shifts.
pub fn eval_idle_damping(wlog: u32, avpkt: u32, rate: u32, kernel: Kernel) -> Option<(u32, Vec<u8>)> {
    let xmit_time = f64::from(num::xmittime(u64::from(rate), u64::from(avpkt), kernel));
    let lw = -(1.0 - 1.0 / f64::from(1i32.wrapping_shl(wlog))).ln() / xmit_time;
    let clog = (0..32).find(|&clog| 31.0 / lw / f64::from(1i32.wrapping_shl(clog)) < 512.0)?;
    let shift = |i: i32| (num::cast_u32(f64::from(i.wrapping_shl(clog)) * lw) as u8).min(31);
    let table = (0..256).map(|i| if i == 255 { 31 } else { shift(i) }).collect();
    Some((clog, table))
}

/// All three, as options for the kernel, and tc's words of what fails. `who` is the kind in capitals.
///
/// # Errors
/// `RED: failed to calculate …`.
pub fn evaluate(args: &mut Args, who: &str, g: &RedOptions, o: Options) -> Result<Options, Failure> {
    let old = args.old();
    let failed = |args: &Args, what: &str, help: String| {
        args.fail(format!("{who}: failed to calculate {what}."), 1, help)
    };
    let wlog = eval_ewma(g.min, g.burst, g.avpkt).map_err(|line| {
        let least = g.min.checked_div(g.avpkt).unwrap_or(0).wrapping_add(1);
        let f = failed(args, "EWMA constant", format!("burst {least} at least, and not very large"));
        match line.filter(|_| !old) {
            Some(line) => f.also(&line),
            None => f,
        }
    })?;
    if wlog >= 10 {
        let too = if old { "to" } else { "too" };
        // Two of them print it as a signed number.
        let burst = if old || who == "CHOKE" { (g.burst as i32).to_string() } else { g.burst.to_string() };
        say(args, format!("{who}: WARNING. Burst {burst} seems to be {too} large.\n"));
    }
    let plog = eval_p(g.min, g.max, g.probability, old)
        .ok_or_else(|| failed(args, "probability", "min below max, and a larger probability".to_owned()))?;
    let (scell_log, table) = eval_idle_damping(wlog, g.avpkt, g.rate, args.kernel())
        .ok_or_else(|| failed(args, "idle damping table", "a higher bandwidth".to_owned()))?;
    let mut o = o
        .with("ewma", wlog)
        .with("plog", plog)
        .with("scell_log", scell_log)
        .with("stab", Value::Bytes(table));
    if !old {
        o.set("max_p", Value::U32(num::cast_u32(g.probability * 4_294_967_296.0)));
    }
    Ok(o)
}

/// What tc writes to stderr before it goes on.
pub fn say(args: &mut Args, line: String) {
    args.said.push(Command::Help(line));
}

/// `sscanf("%lg")` of `probability`.
///
/// # Errors
/// `Illegal "probability"`.
pub fn probability(args: &mut Args) -> Result<f64, Failure> {
    let v = args.value()?;
    match num::strtod(&v.text) {
        Some((value, _)) => Ok(value),
        None => Err(args.fail("Illegal \"probability\"", 1, "a number from 0 to 1, e.g. 0.02")),
    }
}

/// `tc_red_print_flags`.
pub fn print_flags(flags: u32, out: &mut Out) {
    for (bit, name) in FLAGS.into_iter().enumerate() {
        if flags & (1 << bit) != 0 {
            out.flag(name, format_args!("{name} "));
        } else {
            out.json_bool(name, false);
        }
    }
}

/// The details of `-d`: weight, probability, scale, with `end` behind the last.
pub fn print_details(o: &Options, end: &str, out: &mut Out) {
    let n = |name| o.u32(name).unwrap_or(0);
    out.num("ewma", n("ewma"), format_args!("ewma {} ", n("ewma")));
    if n("max_p") != 0 {
        let p = general(f64::from(n("max_p")) / 4_294_967_296.0, 6);
        out.literal("probability", &p, format_args!("probability {p} "));
    } else {
        out.num("Plog", n("plog"), format_args!("Plog {} ", n("plog")));
    }
    out.num("Scell_log", n("scell_log"), format_args!("Scell_log {}{end}", n("scell_log")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floyds_example() {
        // min 30k, burst 55, avpkt 1000, 10 Mbit/s: the man page's.
        assert_eq!(eval_ewma(30_000, 55, 1000), Ok(5));
        assert_eq!(eval_p(30_000, 90_000, 0.02, false), Some(22));
        let (clog, table) = eval_idle_damping(5, 1000, 1_250_000, Kernel::V6_12).unwrap();
        assert_eq!((clog, table[0], table[1], table[254], table[255]), (15, 0, 0, 21, 31));
        let small = "tc_red_eval_ewma() burst 3 is too small ? Try burst 31";
        assert_eq!(eval_ewma(30_000, 3, 1000), Err(Some(small.to_owned())));
    }

    #[test]
    fn equal_thresholds_are_refused_in_2010_only() {
        assert_eq!(
            [eval_p(5, 5, 0.02, false), eval_p(5, 5, 0.02, true), eval_p(6, 5, 0.02, false)],
            [Some(0), None, None]
        );
        assert_eq!(eval_p(5, 6, 0.0, false), None);
    }
}
