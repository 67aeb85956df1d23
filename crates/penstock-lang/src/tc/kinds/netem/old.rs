//! `netem` of 2010.
//!
//! Follows: iproute2 2.6.35 `tc/q_netem.c`.

use super::{NetemOptions, TIME, distribution, illegal, percent, ticks};
use crate::tc::args::{Args, matches};
use crate::tc::kinds::red_parms::say;
use crate::tc::kinds::{helped, what_is};
use crate::tc::{Failure, num};
use penstock_model::Options;

const USAGE: &str = "\
Usage: ... netem [ limit PACKETS ]
               [ delay TIME [ JITTER [ CORRELATION ] ] ]
          [ distribution { normal | pareto | paretonormal | experimental } ] [ drop PERCENT [ CORRELATION ] ]
          [ corrupt PERCENT [ CORRELATION ] ] [ duplicate PERCENT [ CORRELATION ] ]
          [ reorder PERCENT [ CORRELATION ] [ gap DISTANCE ] ]
";

/// Whether a number begins the next word, in any of its forms.
fn next_is_number(args: &Args) -> bool {
    args.peek_text().is_some_and(|text| num::strtod(text).is_some())
}

/// A percentage and its correlation, which stays where none is given.
fn pair(args: &mut Args, name: &str, kept: &mut Option<[u32; 2]>, given: &mut bool) -> Result<(), Failure> {
    let (probability, mut correlation) = (percent(args, name)?, kept.map_or(0, |k| k[1]));
    if next_is_number(args) {
        *given = true;
        correlation = percent(args, name)?;
    }
    *kept = Some([probability, correlation]);
    Ok(())
}

pub(super) fn parse(args: &mut Args) -> Result<Option<Options>, Failure> {
    let mut g = NetemOptions::new();
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("limit") {
            let v = args.value()?;
            g.limit = num::size(&v.text, args.kernel())
                .ok_or_else(|| illegal(args, "limit", "a number of packets"))?;
        } else if is("latency") || is("delay") {
            g.latency = ticks(args)?;
            if next_is_number(args) {
                g.jitter = ticks(args)?;
                if next_is_number(args) {
                    g.corr_given = true;
                    g.corr[0] = percent(args, "latency")?;
                }
            }
        } else if is("loss") || is("drop") {
            g.loss = percent(args, "loss")?;
            if next_is_number(args) {
                g.corr_given = true;
                g.corr[1] = percent(args, "loss")?;
            }
        } else if is("reorder") {
            pair(args, "reorder", &mut g.reorder, &mut g.corr_given)?;
        } else if is("corrupt") {
            pair(args, "corrupt", &mut g.corrupt, &mut g.corr_given)?;
        } else if is("gap") {
            let v = args.value()?;
            g.gap = num::u32(&v.text, 0).ok_or_else(|| illegal(args, "gap", "a whole number"))?;
        } else if is("duplicate") {
            g.duplicate = percent(args, "duplicate")?;
            if next_is_number(args) {
                g.corr[2] = percent(args, "duplicate")?;
            }
        } else if is("distribution") {
            let name = distribution(args)?;
            g.o.set("distribution", name);
        } else if word.text == "help" {
            return Err(helped(args, USAGE));
        } else {
            let help = "netem takes limit, delay, drop, corrupt, duplicate, reorder, gap, distribution";
            return Err(what_is(args, &word.text, USAGE, help));
        }
    }
    if g.reorder.is_some_and(|r| r[0] != 0) {
        if g.latency == 0 {
            // It says so and goes on.
            say(args, "reordering not possible without specifying some delay\n".to_owned());
        }
        g.gap = g.gap.max(1);
    } else if g.gap > 0 {
        let line = "gap specified without reorder probability";
        return Err(args.fail(line, 1, "delay 10ms reorder 25% gap 5").usage(USAGE));
    }
    if g.o.has("distribution") && (g.latency == 0 || g.jitter == 0) {
        let line = "distribution specified but no latency and jitter values";
        return Err(args.fail(line, 1, TIME).usage(USAGE));
    }
    Ok(Some(g.request()))
}
