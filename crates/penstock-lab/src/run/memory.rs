//! Whether a run fits into this computer's memory: told before it begins, and not by the kernel's killer.

use crate::experiment::Experiment;
use penstock_model::Diagnostic;
use std::fs;

/// Memory of a machine, an end of a link and a flow, bytes: what they have taken of a dumbbell of 4000 flows between 8000 machines, and a fifth more. Queues,
/// programs and packets under way come on top.
const HOST: u64 = 16_000;
const END: u64 = 5_000;
const FLOW: u64 = 10_000;

/// What an experiment needs at least on the simulator, bytes.
pub fn needed(experiment: &Experiment) -> u64 {
    let ends: usize = experiment.links.iter().map(|l| l.ends.len()).sum();
    let flows: u64 = experiment.flows.iter().map(|f| u64::from(f.count)).sum();
    (experiment.hosts.len() as u64 * HOST)
        .saturating_add(ends as u64 * END)
        .saturating_add(flows.saturating_mul(FLOW))
}

/// What this computer, or the group of processes that this one belongs to, has left, bytes; `None` where neither says.
pub fn available() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok();
    let free = meminfo.as_deref().and_then(|text| {
        let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    });
    let number = |file: &str| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map(|(most, now)| most.saturating_sub(now));
    free.into_iter().chain(group).min()
}

/// Refuses an experiment that cannot fit, `at_once` runs of it at a time.
///
/// # Errors
/// It needs more than there is.
pub fn check(experiment: &Experiment, at_once: usize, available: Option<u64>) -> Result<(), Vec<Diagnostic>> {
    let need = needed(experiment).saturating_mul(at_once.max(1) as u64);
    let Some(left) = available.filter(|&left| need > left) else { return Ok(()) };
    let flows: u64 = experiment.flows.iter().map(|f| u64::from(f.count)).sum();
    let mb = |bytes: u64| bytes.div_ceil(1_000_000);
    let runs =
        if at_once > 1 { format!("{at_once} runs at a time need") } else { "the run needs".to_owned() };
    let text = format!(
        "{runs} more than {} MB of memory ({} machines, {flows} flows), and {} MB are left",
        mb(need),
        experiment.hosts.len(),
        mb(left)
    );
    let help = match at_once {
        0 | 1 => "make it smaller: fewer machines or flows",
        _ => "give --jobs a smaller number, or make it smaller",
    };
    Err(vec![Diagnostic::error(text).help(help)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment;

    fn read(count: u32) -> Experiment {
        let text = format!(
            "[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\ncount = {count}\nload = \"greedy\"\n"
        );
        experiment::parse_with(&text, "x.toml", &|_| Err("there is no such file".to_owned())).unwrap()
    }

    #[test]
    fn what_cannot_fit_is_refused_before_it_runs() {
        let (small, large) = (read(1), read(10_000));
        assert_eq!(needed(&small), 2 * HOST + 2 * END + FLOW);
        assert!(check(&small, 1, Some(1_000_000)).is_ok());
        assert!(check(&large, 1, None).is_ok(), "nobody knows how much there is");
        assert!(check(&large, 1, Some(200_000_000)).is_ok());
        let refused = check(&large, 1, Some(50_000_000)).unwrap_err();
        assert_eq!(
            refused[0].message,
            "the run needs more than 101 MB of memory (2 machines, 10000 flows), and 50 MB are left"
        );
        assert!(
            check(&large, 3, Some(200_000_000)).unwrap_err()[0].message.starts_with("3 runs at a time need")
        );
    }

    #[test]
    fn this_computer_says_how_much_it_has() {
        if cfg!(target_os = "linux") {
            assert!(available().is_some_and(|bytes| bytes > 1_000_000));
        }
    }
}
