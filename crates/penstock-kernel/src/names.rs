//! Names of what a run makes, and taking away what a killed run left.
//!
//! A namespace is called `penstock-PID-START-PART`: the process's id, its start time in clock ticks since boot (field 22 of
//! `/proc/PID/stat`), and a part. Whoever finds such a name can tell whether its maker still lives; no lock and no state file are needed, and
//! a process id that was given again does not deceive.

use crate::exec;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "penstock";
/// Where `ip netns` keeps the names.
const NETNS: &str = "/run/netns";
/// Where `ip netns exec` looks for a namespace's own `/etc/hosts`.
const ETC: &str = "/etc/netns";
/// Where a run keeps its files.
const RUN: &str = "/run/penstock";

/// A run's own prefix of names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunId(String);

/// The start time of a process; `None` when there is none of this id.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold blanks; what follows it does not. The state is field 3, the start field 22.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

impl RunId {
    /// A new one of this process.
    pub fn new() -> RunId {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let pid = std::process::id();
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        RunId(format!("{PREFIX}-{pid}-{}-{n}", started(pid).unwrap_or(0)))
    }
    /// The name of a part.
    pub fn part(&self, part: &str) -> String {
        format!("{}-{part}", self.0)
    }
    /// The folder of its files, which [`RunId::clean`] takes away.
    pub fn folder(&self) -> PathBuf {
        Path::new(RUN).join(&self.0)
    }
    /// The `/etc/hosts` of one of its namespaces.
    pub fn hosts_file(name: &str) -> PathBuf {
        Path::new(ETC).join(name).join("hosts")
    }
    /// Takes away all that carries its name: processes first, then namespaces (their devices go with them), then files.
    pub fn clean(&self) {
        let mine = format!("{}-", self.0);
        clean(&|name| name.starts_with(&mine) || name == self.0);
    }
}

impl Default for RunId {
    fn default() -> RunId {
        RunId::new()
    }
}

/// Whether a name belongs to a run whose process is no more.
pub(crate) fn orphan(name: &str) -> bool {
    let mut parts = name.split('-');
    let (Some(PREFIX), Some(pid), Some(start)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (Ok(pid), Ok(start)) = (pid.parse::<u32>(), start.parse::<u64>()) else { return false };
    started(pid) != Some(start)
}

/// Takes away what runs left whose process is no more; how many namespaces that were.
pub fn sweep() -> usize {
    clean(&orphan)
}

/// Names in a folder, sorted.
fn entries(folder: &str) -> Vec<String> {
    let Ok(found) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = found
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|n| n.starts_with(PREFIX))
        .collect();
    names.sort();
    names
}

/// Tools of a run that are still at work on one of its names: one that was being started when its run was killed does not die with it.
fn at_work(is: &dyn Fn(&str) -> bool) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let found = processes.filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let named = words
            .split(|b| *b == 0)
            .any(|w| std::str::from_utf8(w).is_ok_and(|w| w.starts_with(PREFIX) && is(w)));
        (named && pid != std::process::id()).then_some(Pid::from_raw(pid as i32))
    });
    found.collect()
}

fn clean(is: &dyn Fn(&str) -> bool) -> usize {
    for _ in 0..100 {
        let tools = at_work(is);
        if tools.is_empty() {
            break;
        }
        for tool in tools {
            let _ = kill(tool, Signal::SIGKILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let mut count = 0;
    for name in entries(NETNS).iter().filter(|n| is(n)) {
        // A process that is just being started there may be missed the first time.
        for _ in 0..3 {
            let pids = exec::run(None, &["ip", "netns", "pids", name]).unwrap_or_default();
            let pids: Vec<i32> = pids.split_whitespace().filter_map(|p| p.parse().ok()).collect();
            if pids.is_empty() {
                break;
            }
            for pid in pids {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        if exec::run(None, &["ip", "netns", "del", name]).is_err() {
            // A run that was killed between making the file and mounting on it left a file only.
            let _ = fs::remove_file(Path::new(NETNS).join(name));
        }
        count += 1;
    }
    for root in crate::reasons::ROOTS {
        let instances = format!("{root}/instances");
        for name in entries(&instances).iter().filter(|n| is(n)) {
            let _ = fs::remove_dir(Path::new(&instances).join(name));
        }
    }
    for folder in [ETC, RUN] {
        for name in entries(folder).iter().filter(|n| is(n)) {
            let _ = fs::remove_dir_all(Path::new(folder).join(name));
        }
        // Only when it is empty, and then nobody misses it.
        let _ = fs::remove_dir(folder);
    }
    count
}

/// What runs have left or are using at the moment: namespaces and folders of ours.
pub fn present() -> Vec<String> {
    [NETNS, ETC, RUN]
        .iter()
        .flat_map(|folder| entries(folder).into_iter().map(move |n| format!("{folder}/{n}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_an_orphan() {
        let own = RunId::new();
        assert!(!orphan(&own.part("a")), "we live");
        let pid = std::process::id();
        assert!(orphan(&format!("penstock-{pid}-1-0-a")), "the id was given again");
        assert!(orphan("penstock-4194303999-5-0-a"), "no such process");
        assert!(!orphan("penstock-mine") && !orphan("lab-1-2-3"), "not one of ours");
        assert_ne!(RunId::new(), RunId::new());
    }
}
