//! PS114 and PS115: units of rates.

use crate::facts::Facts;
use crate::finding::{Found, Rule, Say};
use penstock_lang::tc::Command;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS114",
        "bps means bytes",
        "In tc `kbps` and `mbps` are kilobytes and megabytes per second; bits are `kbit` and `mbit`. The rate is eight times what it seems.",
        bytes_for_bits,
    ),
    Rule::warning(
        "PS115",
        "a rate without a unit",
        "A bare number is bits per second: `rate 512` is half a kilobit.",
        bare_rate,
    ),
];

/// The words that are rates in a tc command.
const RATES: [&str; 10] = [
    "rate",
    "ceil",
    "peakrate",
    "bandwidth",
    "avrate",
    "m1",
    "m2",
    "maxrate",
    "defrate",
    "low_rate_threshold",
];

fn rate_words(facts: &Facts) -> impl Iterator<Item = (usize, &str, &str)> {
    let of = |(at, step): (usize, &'_ crate::facts::Step)| {
        let pairs = step.words.windows(2).filter(|w| RATES.contains(&w[0].as_str()));
        pairs.map(|w| (at, w[0].clone(), w[1].clone())).collect::<Vec<_>>()
    };
    // What changes another script's tree is refused here and has its rates all the same.
    let makes = |s: &crate::facts::Step| matches!(s.tc(), Some(Command::Qdisc { .. }));
    let borrows = !facts.steps.iter().any(makes);
    let tc = facts.steps.iter().enumerate().filter(move |s| {
        (s.1.ok() || borrows)
            && matches!(
                s.1.tc(),
                Some(Command::Qdisc { .. } | Command::Class { .. } | Command::Filter { .. })
            )
    });
    tc.flat_map(of).filter_map(|(at, name, value)| {
        let step = &facts.steps[at];
        let name = step.words.iter().find(|w| **w == name)?;
        let value = step.words.iter().find(|w| **w == value)?;
        Some((at, name.as_str(), value.as_str()))
    })
}

fn bytes_for_bits(facts: &Facts, found: &mut Found) {
    let mut last = None;
    for (at, name, value) in rate_words(facts) {
        let lower = value.to_ascii_lowercase();
        let Some(number) = ["kbps", "mbps", "gbps", "bps"]
            .iter()
            .find_map(|u| lower.strip_suffix(u))
            .filter(|n| !n.is_empty())
        else {
            continue;
        };
        let unit = &lower[number.len()..];
        // Once a command.
        if last.replace(at) == Some(at) {
            continue;
        }
        let bits = unit.replace("bps", "bit");
        // Who divides by 8 has worked out bytes.
        let divides = unit == "bps"
            && facts.source.holds(&["/8", "/ 8"])
            && !facts.source.line(facts.steps[at].line).contains(value);
        if divides {
            continue;
        }
        let step = &facts.steps[at];
        // All rates of the command, or its ceil would be eight times its rate.
        let in_bits = |w: &String| {
            let lower = w.to_ascii_lowercase();
            let unit = ["kbps", "mbps", "gbps", "bps"].into_iter().find(|u| lower.ends_with(u))?;
            let number = lower.strip_suffix(unit).filter(|n| n.parse::<f64>().is_ok())?;
            Some(format!("{number}{}", unit.replace("bps", "bit")))
        };
        let all: Vec<String> = step.words.iter().map(|w| in_bits(w).unwrap_or_else(|| w.clone())).collect();
        let reason = format!(
            "`{name} {value}` is {number} times a thousand or more bytes a second: eight times {number}{bits}."
        );
        found.at(
            at,
            value,
            Say::new(format!("{value} is bytes per second, not bits"), reason, all.join(" ")),
        );
    }
}

fn bare_rate(facts: &Facts, found: &mut Found) {
    for (at, name, value) in rate_words(facts) {
        let Ok(number) = value.parse::<u64>() else { continue };
        // `action sample rate N` is one packet of N.
        if facts.steps[at].has("sample") {
            continue;
        }
        if number > 0 && number < 100_000 {
            let step = &facts.steps[at];
            let reason = format!(
                "`{name} {value}` is {number} bits per second: one full frame every {} s.",
                12112 / number.max(1)
            );
            found.at(
                at,
                value,
                Say::new(
                    format!("{name} {value} has no unit"),
                    reason,
                    step.with(name, &format!("{value}kbit")),
                ),
            );
        }
    }
}
