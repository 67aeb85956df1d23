//! What `check` finds in the setups of an experiment's machines.

use crate::experiment::{Experiment, Host, Os, Script};
use penstock_check::{Coverage, Missed, Settings, examine};
use penstock_measure::record;
use std::collections::BTreeMap;

/// Likely mistakes and refused commands in the setup of each Linux machine: in the order of machines and places.
///
/// All entries of a setup are read together, as one script; places are those of the file each line stands in. The rate of the link counts
/// where all links of the machine have the same. PS250 (no deletion before the first `add root`) is left out: a run's machine is new.
pub fn findings(experiment: &Experiment) -> Vec<record::Finding> {
    examined(experiment).0
}

/// The same, and how much of the setups was looked at.
pub fn examined(experiment: &Experiment) -> (Vec<record::Finding>, Coverage) {
    let (mut all, mut coverage) = (Vec::new(), Coverage::default());
    for host in experiment.hosts.iter().filter(|h| h.cisco.is_none() && h.os == Os::Linux) {
        let (found, of) = of(experiment, host);
        all.extend(found);
        coverage.commands += of.commands;
        coverage.looked_at += of.looked_at;
        coverage.runs += of.runs;
        coverage.missed.extend(of.missed);
        coverage.unknown.extend(of.unknown);
    }
    (all, coverage)
}

fn of(experiment: &Experiment, host: &Host) -> (Vec<record::Finding>, Coverage) {
    let shapes = |s: &Script| {
        let mut words = s.text.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|w| matches!(w, "tc" | "iptables" | "ip6tables" | "nft"))
    };
    if !host.setup.iter().any(shapes) {
        return (Vec::new(), Coverage::default());
    }
    // A line of the whole, and where it stands.
    let mut lines: Vec<(&str, &str, u32)> = Vec::new();
    for script in &host.setup {
        // What ends one entry does not end the next.
        let ends = host.setup.len() > 1 && script.text.lines().any(|l| l.trim_start().starts_with("exit"));
        lines.extend(ends.then_some(("(", script.file.as_str(), script.line)));
        let own = script.text.lines().zip(script.line..);
        lines.extend(own.map(|(text, line)| (text, script.file.as_str(), line)));
        lines.extend(ends.then_some((")", script.file.as_str(), script.line)));
    }
    let text = lines.iter().map(|l| format!("{}\n", l.0)).collect();
    let files = super::scripts::lent(experiment);
    let script = penstock_shell::Script { text, name: "setup".to_owned(), files, ..Default::default() };
    let sources: BTreeMap<&str, Vec<&str>> =
        experiment.sources.iter().rev().map(|s| (s.name.as_str(), s.text.lines().collect())).collect();
    let settings = Settings { kernel: host.kernel, dev: None, rate: rate(experiment, host) };
    let one = |f: penstock_check::Finding| {
        let at = (f.line as usize).checked_sub(1).and_then(|n| lines.get(n)).filter(|_| f.file == "setup");
        let (file, line) = at.map_or((f.file, f.line), |&(_, file, line)| (file.to_owned(), line));
        // A command of the experiment file itself stands somewhere in its line.
        let indent = at.filter(|l| sources.contains_key(l.1)).map_or(Some(0), |l| {
            let whole = sources.get(l.1)?.get((l.2 as usize).checked_sub(1)?)?;
            Some(whole[..whole.find(l.0)?].chars().count() as u32)
        });
        let column = indent.filter(|_| f.column > 0).map_or(0, |n| f.column + n);
        let level = f.severity.name();
        record::Finding {
            host: host.name.clone(),
            code: f.code.to_owned(),
            level: level.to_owned(),
            file,
            line,
            column,
            message: f.message,
            reason: f.reason,
            fix: f.fix,
        }
    };
    // A run's machine is new: nothing is run on it twice.
    let answer = examine(&script, &settings);
    let found = answer.findings.into_iter().filter(|f| f.code != "PS250").map(one).collect();
    // Places of what was not looked at are those of the files, too.
    let place = |line: u32| lines.get((line as usize).wrapping_sub(1)).map_or(line, |l| l.2);
    let missed = |m: Missed| {
        let place = |line| if m.file.is_empty() { place(line) } else { line };
        let (from, to) = (place(m.from), place(m.to));
        Missed { from, to, why: format!("{}: {}", host.name, m.why), ..m }
    };
    let mut coverage = answer.coverage;
    coverage.missed = coverage.missed.into_iter().map(missed).collect();
    coverage.unknown = coverage.unknown.into_iter().map(|(name, line)| (name, place(line))).collect();
    (found, coverage)
}

/// The rate of a machine's links, bytes per second; `None` where they differ or one has none.
fn rate(experiment: &Experiment, host: &Host) -> Option<u64> {
    let own = |l: &&crate::experiment::Link| l.ends.iter().any(|e| e.host == host.name);
    let mut rates = experiment.links.iter().filter(own).map(|l| l.rate.map(|r| r.bytes_per_s()));
    let first = rates.next()??;
    rates.all(|r| r == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse_with;

    #[test]
    fn places_are_those_of_the_files() {
        let script = "#!/bin/sh\n# a comment\ntc qdisc add dev eth0 root handle 1: htb default 10\n\
                      tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                      tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit\nexit 0\n";
        let text = "duration = \"1s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n\
                    setup = [\"ip link set eth0 up\", \"@shape.sh\", \"tc qdisc add dev eth0 parent 1:10 sfq\"]\n";
        let experiment = parse_with(text, "x.toml", &|_| Ok(script.to_owned())).unwrap();
        let found = findings(&experiment);
        let short: Vec<_> =
            found.iter().map(|f| (f.host.as_str(), f.code.as_str(), f.file.as_str(), f.line)).collect();
        assert_eq!(short, [("a", "PS101", "shape.sh", 5), ("a", "PS146", "x.toml", 4)], "{found:#?}");
        assert!(found[0].fix.contains("rate 1mbit"), "{found:#?}");
    }
}
