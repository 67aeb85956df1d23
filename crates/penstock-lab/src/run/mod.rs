//! From an experiment to a record: build its world, run it, measure, judge.

mod advice;
mod build;
#[cfg(not(target_family = "wasm"))]
mod bundle;
mod capture;
mod findings;
// Real grounds alone need some of it.
#[cfg_attr(target_family = "wasm", allow(dead_code))]
mod folder;
mod foresee;
mod groups;
mod judge;
pub mod memory;
mod names;
mod outcome;
#[cfg(not(target_family = "wasm"))]
mod real;
#[cfg_attr(target_family = "wasm", allow(dead_code))]
mod record;
mod scripts;

#[cfg(not(target_family = "wasm"))]
pub use bundle::inside;
pub use capture::Captured;
pub use findings::{examined, findings};
pub use folder::{Folder, write_report};
pub use judge::measure;

use crate::experiment::Experiment;
use penstock_host::{Heard, Host};
use penstock_measure::passage::Passage;
use penstock_measure::{Record, Series};
use penstock_model::{Diagnostic, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Where an experiment runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ground {
    /// The simulator.
    #[default]
    Sim,
    /// This machine's kernel, in real time; needs root.
    Kernel,
    /// A real Linux in exact virtual time, without rights.
    Virtual,
}

impl Ground {
    /// All of them.
    pub const ALL: [Ground; 3] = [Ground::Sim, Ground::Kernel, Ground::Virtual];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Ground::Sim => "sim",
            Ground::Kernel => "kernel",
            Ground::Virtual => "virtual",
        }
    }
}

impl std::str::FromStr for Ground {
    type Err = String;

    fn from_str(text: &str) -> Result<Ground, String> {
        let found = Ground::ALL.into_iter().find(|g| g.name() == text);
        found.ok_or_else(|| {
            let near = crate::experiment::meant(text, &Ground::ALL.map(Ground::name));
            let near = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
            format!("there is no ground \"{text}\"; {near}there are sim, kernel and virtual")
        })
    }
}

/// Runs an experiment on a ground.
///
/// # Errors
/// As [`run`]; on `kernel` and `virtual` also what the machine lacks, with the way to get it.
pub fn run_on(
    ground: Ground,
    experiment: &Experiment,
    options: &mut Options<'_>,
) -> Result<Outcome, Vec<Diagnostic>> {
    if ground == Ground::Sim {
        return run(experiment, options);
    }
    really(ground, experiment, options)
}

/// There is no Linux here.
#[cfg(target_family = "wasm")]
fn really(ground: Ground, _: &Experiment, _: &mut Options<'_>) -> Result<Outcome, Vec<Diagnostic>> {
    let text = format!("{} is not to be had here: there is the simulator alone", ground.name());
    Err(vec![Diagnostic::error(text).help("run it with the installed program: penstock run --on …")])
}

/// Runs an experiment on a Linux.
#[cfg(not(target_family = "wasm"))]
fn really(
    ground: Ground,
    experiment: &Experiment,
    options: &mut Options<'_>,
) -> Result<Outcome, Vec<Diagnostic>> {
    // Before anything is carried elsewhere: not all that the file names goes along.
    let faults = real::only_simulated(experiment);
    if !faults.is_empty() {
        return Err(faults);
    }
    // Where the simulator can set the machines up, it tells what cannot work on them.
    let built = build::world(experiment, options.seed.unwrap_or(experiment.seed));
    let warnings = built.map_or(Vec::new(), |built| foresee::warnings(experiment, &built));
    warnings.iter().for_each(|w| (options.warn)(&w.told(experiment)));
    let mut outcome = match ground {
        Ground::Kernel => bundle::contained(experiment, options),
        _ => bundle::run(experiment, options),
    }?;
    outcome.record.warnings = warnings.iter().map(|w| w.recorded(experiment, &outcome.record)).collect();
    outcome.test.clone_from(&experiment.test);
    Ok(outcome)
}

/// How to run an experiment.
pub struct Options<'a> {
    /// A seed in place of the file's.
    pub seed: Option<u64>,
    /// Is told the share of the run that is done, 0 to 1.
    pub progress: &'a mut dyn FnMut(f64),
    /// Is told, before anything runs, of what cannot work: a warning each, with its place in the file.
    pub warn: &'a mut dyn FnMut(&Diagnostic),
}

/// What a run gave.
pub struct Outcome {
    /// The record.
    pub record: Record,
    /// What changed over time.
    pub series: Series,
    /// What each app printed, in the order of the record's apps.
    pub outputs: Vec<String>,
    /// What `tc -s -d` shows of each Linux device at the end: machine, device, text.
    pub tc: Vec<(String, String, String)>,
    /// The datagrams of each flow that was traced, by its place among the record's flows.
    pub passages: Vec<(usize, Vec<Passage>)>,
    /// Packets over links, a packet over a link once: what a run's speed is counted in. 0 on other grounds than the simulator.
    pub packet_hops: u64,
    /// Why one thread made the run, where more were asked for.
    pub one_thread: Option<String>,
    /// What was captured.
    pub captures: Vec<Captured>,
    /// Flent's name of the test that the run is.
    pub test: Option<String>,
    /// What else is written into the run folder.
    pub also: Also,
}

/// What a run folder may hold beside what it always does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Also {
    /// `series.csv`: the series as text.
    pub csv: bool,
    /// `data.flent.gz`: the series as flent reads them.
    pub flent: bool,
}

/// In how many steps a run is made, so that progress can be told. Always the same: a run must not depend on who watches.
const STEPS: i64 = 100;

/// Runs an experiment on the simulator.
///
/// # Errors
/// Commands of the setup that were refused (unless the experiment allows it), in the words of the tool, with file and
/// line; what cannot be built; what is not simulated, before any traffic or when a later command sets it up.
pub fn run(experiment: &Experiment, options: &mut Options<'_>) -> Result<Outcome, Vec<Diagnostic>> {
    let seed = options.seed.unwrap_or(experiment.seed);
    let mut built = build::world(experiment, seed)?;
    let warnings = foresee::warnings(experiment, &built);
    warnings.iter().for_each(|w| (options.warn)(&w.told(experiment)));
    let (threads, gain) = experiment.threads.wanted(built.world.flows());
    built.world.set_cores(threads, gain);
    let one_thread = built.world.cores().err().filter(|_| threads > 1);
    let captures = capture::begin(experiment, &mut built)?;
    pass(experiment, &mut built, options.progress)?;
    accounted(built.world.miscounts())?;
    let results = built.world.last_results();
    let mut outcome = outcome::collect(experiment, seed, built, results);
    outcome.captures = capture::end(captures)?;
    outcome.record.captures = outcome.captures.iter().map(Captured::recorded).collect();
    outcome.record.warnings = warnings.iter().map(|w| w.recorded(experiment, &outcome.record)).collect();
    Ok(Outcome { one_thread, ..outcome })
}

/// A device that was tapped in a run.
pub(crate) struct Tapped {
    /// What came to it and became of it.
    pub(crate) heard: Vec<Heard>,
    /// What tc shows of its queues at the end.
    pub(crate) shown: String,
    /// Its machine, set up anew and as it was before the run.
    pub(crate) machine: Host,
}

/// Runs an experiment with taps on devices: places of their hosts, names. The outcome is that of a run without taps, but that the
/// texts of tc in it come after another show, which `cbq` notes.
///
/// # Errors
/// As [`run`].
pub(crate) fn tapped(
    experiment: &Experiment,
    devices: &[(usize, &str)],
) -> Result<(Outcome, Vec<Tapped>), Vec<Diagnostic>> {
    let mut built = build::world(experiment, experiment.seed)?;
    for &(host, dev) in devices {
        built.world.tap(built.hosts[host], dev);
    }
    pass(experiment, &mut built, &mut |_| {})?;
    accounted(built.world.miscounts())?;
    let mut heard: BTreeMap<(usize, u32), Vec<Heard>> = BTreeMap::new();
    for (host, &id) in built.hosts.iter().enumerate() {
        heard.extend(built.world.take_taps(id).into_iter().map(|(dev, heard)| ((host, dev), heard)));
    }
    let now = built.world.now();
    let mut all = Vec::new();
    // Worlds set up anew, each with the places of the hosts that were taken out of it.
    let mut fresh: Vec<(build::Built, BTreeSet<usize>)> = Vec::new();
    for &(host, dev) in devices {
        let machine = built.world.host_mut(built.hosts[host]);
        let ifindex = machine.ifindex(dev).unwrap_or(0);
        let shown = crate::beside::show(machine, dev, now);
        let at = fresh.iter().position(|(_, taken)| !taken.contains(&host)).unwrap_or(fresh.len());
        if at == fresh.len() {
            fresh.push((build::world(experiment, experiment.seed)?, BTreeSet::new()));
        }
        let (world, taken) = &mut fresh[at];
        taken.insert(host);
        let nobody = Host::new("nobody", penstock_model::Kernel::V6_12, 0);
        let machine = std::mem::replace(world.world.host_mut(world.hosts[host]), nobody);
        all.push(Tapped { heard: heard.remove(&(host, ifindex)).unwrap_or_default(), shown, machine });
    }
    let results = built.world.last_results();
    Ok((outcome::collect(experiment, experiment.seed, built, results), all))
}

/// Lets an experiment's time pass.
fn pass(
    experiment: &Experiment,
    built: &mut build::Built,
    progress: &mut dyn FnMut(f64),
) -> Result<(), Vec<Diagnostic>> {
    simulated(experiment, built, "the setup")?;
    let end = experiment.duration.as_ns();
    if built.world.cores().is_ok() {
        return pass_on_cores(experiment, built, progress);
    }
    let mut looked = built.world.executed();
    for step in 1..=STEPS {
        let until = (i128::from(end) * i128::from(step) / i128::from(STEPS)) as i64;
        let warm = experiment.warmup.as_ns();
        if warm > 0 && warm <= until && warm > built.world.now().as_ns() {
            built.world.run_quietly(Time::from_ns(warm));
            built.world.end_warmup();
        }
        built.world.run_quietly(Time::from_ns(until));
        goes_on(built)?;
        // A command of the run may have set up anything.
        if built.world.executed() > looked {
            looked = built.world.executed();
            simulated(experiment, built, "a command of the run")?;
        }
        progress(step as f64 / STEPS as f64);
    }
    // A program of eBPF may have done what it must not only now.
    simulated(experiment, built, "the experiment, and seen in its run")
}

/// The same on several cores: without steps, for the cores are brought together at the end of each. No command is carried out meanwhile.
fn pass_on_cores(
    experiment: &Experiment,
    built: &mut build::Built,
    progress: &mut dyn FnMut(f64),
) -> Result<(), Vec<Diagnostic>> {
    let (warm, end) = (experiment.warmup.as_ns(), experiment.duration.as_ns());
    let mut tell = |now: Time| progress(now.as_ns() as f64 / end.max(1) as f64);
    if warm > 0 && warm <= end {
        built.world.run_telling(Time::from_ns(warm), &mut tell);
        built.world.end_warmup();
    }
    built.world.run_telling(Time::from_ns(end), &mut tell);
    goes_on(built)?;
    simulated(experiment, built, "the experiment, and seen in its run")
}

/// Refuses a run that was ended because it stood still.
fn goes_on(built: &build::Built) -> Result<(), Vec<Diagnostic>> {
    let Some(text) = built.world.stuck() else { return Ok(()) };
    let help =
        "this is a fault of penstock, not of the file: please report it with the file; nothing was written";
    Err(vec![Diagnostic::error(text).help(help)])
}

/// Refuses figures that do not add up: a fault of ours, whatever the experiment.
fn accounted(miscounts: Vec<String>) -> Result<(), Vec<Diagnostic>> {
    let help = "a fault of Penstock's, not of the experiment's: its figures would be wrong, so there are none; please report it with the file";
    let fault = |s| Diagnostic::error(format!("packets do not add up: {s}")).help(help);
    let faults: Vec<Diagnostic> = miscounts.into_iter().map(fault).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Refuses what the simulator does not do: better no numbers than wrong ones.
fn simulated(experiment: &Experiment, built: &build::Built, by: &str) -> Result<(), Vec<Diagnostic>> {
    let spaces = |id| built.world.namespaces(id).into_iter().map(|(space, _)| space);
    let all = built.hosts.iter().flat_map(|&id| [id].into_iter().chain(spaces(id)));
    let sentences = all.map(|id| built.world.host(id));
    let sentences = sentences.flat_map(|host| {
        let devices = host.unsimulated_devices();
        devices.into_iter().chain(host.unsimulated()).chain(unknown_control(host))
    });
    let help = format!("set up by {by}; take it away, or run the experiment on Linux itself");
    let sentences = sentences.chain(other_speeds(experiment, built));
    let faults: Vec<Diagnostic> = sentences.map(|s| Diagnostic::error(s).help(help.as_str())).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Cards that `ethtool -s … speed` has told to send at another rate than their link's.
fn other_speeds(experiment: &Experiment, built: &build::Built) -> Vec<String> {
    let ends = experiment.links.iter().flat_map(|link| link.ends.iter().map(move |end| (link, end)));
    let other = ends.filter_map(|(link, end)| {
        let host = built.world.host(built.id(&end.host));
        let speed = host.device(host.ifindex(&end.dev)?)?.speed_mbit?;
        let rate = end.rate.or(link.rate).map(|r| r.bytes_per_s() * 8);
        (rate != Some(u64::from(speed) * 1_000_000)).then(|| {
            format!(
                "{}: ethtool -s {} speed {speed}: not simulated; the link is as it was: write rate = \"{speed}mbit\" there",
                end.host, end.dev
            )
        })
    });
    other.collect()
}

/// A congestion control that Linux has and the simulator has not.
fn unknown_control(host: &Host) -> Option<String> {
    let name = host.tcp_settings().congestion_control;
    let known = penstock_tcp::cc::names_of(host.kernel());
    let missing = |name: &&str| !known.contains(name);
    let by_route = host.route_controls().into_iter().find(missing);
    let what = match by_route {
        Some(name) => format!("ip route … congctl {name}"),
        None => format!("tcp_congestion_control {}", Some(name.as_str()).filter(missing)?),
    };
    let kernel = host.kernel();
    Some(format!(
        "{}: {what}: not simulated in profile {kernel}; there are {}",
        host.name(),
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_add_up_gives_no_figure() {
        assert!(accounted(Vec::new()).is_ok());
        let bad = "flow f: 3 packets sent, but 1 received, 1 lost and 0 in flight";
        let faults = accounted(vec![bad.to_owned()]).unwrap_err();
        assert_eq!(faults.len(), 1);
        assert!(faults[0].to_string().contains(bad), "{}", faults[0]);
    }
}
