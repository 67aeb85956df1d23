//! `xtask bench count`: instructions for each packet-hop in six scenarios, beside the figures that were agreed on.
//!
//! The figures stand in `counts.txt`. They belong to the compiler that `rust-toolchain.toml` names and to the profile `release`. Whoever makes the simulator
//! slower by more than 3 % finds the gate closed; `--bless` writes the file anew, and the commit says why.

use crate::{growth, tidy, valgrind};
use anyhow::{Context, Result, bail};
use penstock_lab::many;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// By how much a hop may cost more than agreed.
const MOST: f64 = 0.03;

/// One scenario: its name, what it is, its experiment.
struct Scenario {
    name: &'static str,
    about: &'static str,
    text: &'static str,
    /// What stands there instead, where it is another's with a change.
    instead: Option<[&'static str; 2]>,
}

impl Scenario {
    fn text(&self) -> String {
        self.instead.map_or_else(|| self.text.to_owned(), |[from, to]| self.text.replace(from, to))
    }
}

const fn scenario(name: &'static str, about: &'static str, text: &'static str) -> Scenario {
    Scenario { name, about, text, instead: None }
}

const TEN: &str = include_str!("count/ten.toml");
const SCENARIOS: &[Scenario] = &[
    scenario("ten", "10 TCP flows over a FIFO of 100 Mbit/s", TEN),
    Scenario {
        instead: Some([
            "pfifo limit 200",
            "red limit 400k min 60k max 180k avpkt 1500 burst 60 bandwidth 100mbit probability 0.02",
        ]),
        ..scenario("red", "the same behind red", TEN)
    },
    scenario("hosts", "200 TCP flows, each between two hosts of its own", include_str!("count/hosts.toml")),
    scenario("chain", "datagrams through 20 routers", include_str!("count/chain.toml")),
    scenario(
        "lines",
        "100 lines of htb with fq_codel, found by hashed filters",
        include_str!("count/lines.toml"),
    ),
    scenario(
        "firewall",
        "datagrams through 50 rules of iptables and a policer",
        include_str!("count/firewall.toml"),
    ),
];

/// Makes one scenario; in a process of its own.
pub fn child(name: &str) -> Result<()> {
    let scenario = SCENARIOS.iter().find(|s| s.name == name).context("there is no such scenario")?;
    println!("packets {}", growth::experiment(&scenario.text())?);
    Ok(())
}

/// The figures agreed on: instructions for each packet-hop.
fn agreed(text: &str) -> BTreeMap<&str, f64> {
    let line = |l: &'_ str| -> Option<(usize, f64)> {
        Some((l.find(' ')?, l.split_whitespace().nth(1)?.parse().ok()?))
    };
    text.lines()
        .filter(|l| !l.starts_with('#'))
        .filter_map(|l| line(l).map(|(end, n)| (&l[..end], n)))
        .collect()
}

/// Counts all of them and prints a table.
///
/// # Errors
/// A scenario costs more instructions than `counts.txt` allows, or valgrind is not installed.
pub fn run(bless: bool) -> Result<()> {
    if !valgrind::is_there() {
        bail!("counting needs valgrind: apt-get install valgrind");
    }
    let file = tidy::root().join("crates/penstock-xtask/counts.txt");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let agreed = agreed(&text);
    let mut new = String::from(
        "# Instructions for each packet-hop, by `cargo xtask bench count --bless`. The commit that changes a figure says why.\n",
    );
    let mut faults = Vec::new();
    println!("| instructions a packet-hop | hops | now | agreed | |\n|---|---|---|---|---|");
    // What others do meanwhile changes no count.
    let counts = many::each(SCENARIOS.len(), many::processors(), &|_| {}, &|n| {
        valgrind::run(valgrind::own(&["bench", "count", "--child", SCENARIOS[n].name], true)?, true)
    });
    for (s, ran) in SCENARIOS.iter().zip(counts) {
        let (said, counted) = ran.with_context(|| s.name)?;
        let hops = valgrind::behind(&said, "packets")?;
        let now = counted.unwrap_or_default() / hops.max(1.0);
        let _ = writeln!(new, "{} {now:.0}", s.name);
        let before = agreed.get(s.name).copied();
        let change = before.map(|b| now / b - 1.0);
        let shown = change.map_or("new".to_owned(), |c| format!("{:+.1} %", c * 100.0));
        println!("| {}: {} | {hops:.0} | {now:.0} | {} | {shown} |", s.name, s.about, before.unwrap_or(0.0));
        if change.is_none_or(|c| c > MOST) {
            faults.push(format!("{}: {now:.0} instructions a hop, {} agreed", s.name, before.unwrap_or(0.0)));
        }
    }
    if bless {
        std::fs::write(&file, new)?;
        return Ok(());
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!(
        "{}; if that must be, run `cargo xtask bench count --bless` and say why in the commit",
        faults.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_runs_and_is_agreed_on() {
        let text = std::fs::read_to_string(tidy::root().join("crates/penstock-xtask/counts.txt")).unwrap();
        let agreed = agreed(&text);
        for s in SCENARIOS {
            // A tenth of its time is enough here.
            let short = s
                .text()
                .replace("duration = \"1s\"", "duration = \"100ms\"")
                .replace("duration = \"4s\"", "duration = \"100ms\"");
            assert!(growth::experiment(&short.replace("-t 1", "-t 0.1")).unwrap() > 100, "{}", s.name);
            assert!(agreed.contains_key(s.name), "{} is not in counts.txt", s.name);
        }
        assert_eq!(agreed.len(), SCENARIOS.len());
    }
}
