//! `xtask bench growth`: what a thing costs where there are ten times as many of them.
//!
//! Each case is made in processes of their own: with one thing, with N and with 10 N, and with few and many packets. What is counted is
//! instructions, by valgrind's cachegrind where it is installed: they do not depend on what else the computer does, nor on how large its
//! caches are. Without it, CPU time, the least of three.

mod experiments;
mod machines;

pub use experiments::run as experiment;

use crate::valgrind;
use anyhow::{Context, Result, bail};
use cpu_time::ProcessTime;

/// Ten times as many things may cost this much more to set up, and to show.
const MOST_SETUP: f64 = 12.0;
/// Ten times as many things may make a packet this much dearer.
const MOST_PACKET: f64 = 1.2;
/// Packets over which a packet's cost is taken.
const PACKETS: u32 = 20_000;

/// What is many.
pub struct Case {
    name: &'static str,
    about: &'static str,
    /// N.
    some: u32,
    work: Work,
    packets: Packets,
}

/// How a case is made.
enum Work {
    /// An experiment of so many things that lasts so many ms: read, run, written to a folder and shown in a report.
    Experiment(fn(u32, u32) -> String),
    /// A machine with so many things and this many packets through it; answers packets.
    Machine(fn(u32, u32) -> Result<u64>),
}

/// What holds for its packets.
#[derive(Clone, Copy, PartialEq)]
enum Packets {
    /// None go through it.
    None,
    /// However many things there are, a packet costs about the same.
    Flat,
    /// Linux goes through all of them for each packet, or for each that is added, and so do we: told, not judged.
    AsLinux,
}

fn cases() -> impl Iterator<Item = &'static Case> {
    experiments::CASES.iter().chain(machines::CASES)
}

/// What one process did.
#[derive(Clone, Copy)]
struct Cost {
    /// Instructions, or CPU time in ns.
    spent: f64,
    /// Packets over links, or through the machine.
    packets: u64,
}

/// Runs one case once and says what it did; in a process of its own.
pub fn child(name: &str, things: u32, packets: u32) -> Result<()> {
    let case = cases().find(|c| c.name == name).context("there is no such case")?;
    let start = ProcessTime::now();
    let packets = match case.work {
        Work::Experiment(text) => experiments::run(&text(things, packets))?,
        Work::Machine(run) => run(things, packets)?,
    };
    println!("packets {packets} ns {} kB {}", start.elapsed().as_nanos(), most_memory().unwrap_or(0));
    Ok(())
}

/// The most memory this process has had at once, kB, where the system tells.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn measure(case: &Case, things: u32, packets: u32, count: bool) -> Result<Cost> {
    let mut best: Option<Cost> = None;
    for _ in 0..if count { 1 } else { 3 } {
        let (things_text, packets_text) = (things.to_string(), packets.to_string());
        let args = ["bench", "growth", "--child", case.name, &things_text, &packets_text];
        let ran = valgrind::run(valgrind::own(&args, count)?, count);
        let (said, counted) = ran.with_context(|| format!("{} with {things}", case.name))?;
        let packets = valgrind::behind(&said, "packets")? as u64;
        let spent = counted.map_or_else(|| valgrind::behind(&said, "ns"), Ok)?;
        if best.is_none_or(|b| spent < b.spent) {
            best = Some(Cost { spent, packets });
        }
    }
    best.context("nothing was measured")
}

/// What a case came to.
struct Row {
    /// Cost of setting up N and 10 N, without what one costs.
    setup: (f64, f64),
    /// Cost of a packet among N and 10 N.
    packet: Option<(f64, f64)>,
}

fn row(case: &Case, count: bool) -> Result<Row> {
    let many = 10 * case.some;
    let bare = measure(case, 1, 0, count)?.spent;
    let mut row = Row { setup: (0.0, 0.0), packet: None };
    let mut packet = [0.0; 2];
    for (i, things) in [case.some, many].into_iter().enumerate() {
        let empty = measure(case, things, 0, count)?;
        let setup = (empty.spent - bare).max(1.0);
        if i == 0 {
            row.setup.0 = setup;
        } else {
            row.setup.1 = setup;
        }
        if case.packets != Packets::None {
            // Each thing has had its packets before the counting begins.
            let warm = measure(case, things, 2 * things, count)?;
            let full = measure(case, things, 2 * things + PACKETS, count)?;
            let passed = full.packets.saturating_sub(warm.packets);
            if passed < u64::from(PACKETS) / 2 {
                bail!("{} with {things}: only {passed} packets passed", case.name);
            }
            packet[i] = (full.spent - warm.spent) / passed as f64;
        }
    }
    if case.packets != Packets::None {
        row.packet = Some((packet[0], packet[1]));
    }
    Ok(row)
}

/// Makes all cases, or those whose names hold one of `only`; prints the table. An error where something grows that should not.
pub fn run(only: &[String], time: bool) -> Result<()> {
    let count = !time && valgrind::is_there();
    let unit = if count { "instructions" } else { "ns of CPU" };
    println!("| {unit} | N | set-up, each of N | of 10 N | ratio | a packet, N | 10 N | ratio | |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut grown = Vec::new();
    for case in cases().filter(|c| only.is_empty() || only.iter().any(|o| c.name.contains(o.as_str()))) {
        let row = row(case, count)?;
        let some = f64::from(case.some);
        let ratio = row.setup.1 / row.setup.0;
        let mut words = Vec::new();
        if ratio > MOST_SETUP && case.packets != Packets::AsLinux {
            words.push(format!("set-up grows: {ratio:.1}"));
        }
        let packet = row.packet.map_or("| | |".to_owned(), |(few, many)| {
            let ratio = many / few;
            if ratio > MOST_PACKET && case.packets == Packets::Flat {
                words.push(format!("a packet grows: {ratio:.2}"));
            }
            format!("{few:.0} | {many:.0} | {ratio:.2} |")
        });
        let linear = if case.packets == Packets::AsLinux { "as in Linux" } else { "" };
        println!(
            "| {}: {} | {} | {:.0} | {:.0} | {ratio:.1} | {packet} {}{linear} |",
            case.name,
            case.about,
            case.some,
            row.setup.0 / some,
            row.setup.1 / some / 10.0,
            words.join(", ")
        );
        grown.extend(words.into_iter().map(|w| format!("{}: {w}", case.name)));
    }
    if grown.is_empty() { Ok(()) } else { bail!("{}", grown.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_runs() {
        let mut seen = std::collections::BTreeSet::new();
        for case in cases() {
            assert!(seen.insert(case.name), "{} is there twice", case.name);
            let passed = match case.work {
                Work::Experiment(text) => experiments::run(&text(3, 50)).unwrap(),
                Work::Machine(run) => run(3, 50).unwrap(),
            };
            if case.packets != Packets::None {
                assert!(passed >= 25, "{}: {passed}", case.name);
            }
        }
    }
}
