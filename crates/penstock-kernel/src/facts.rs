//! What the rig was: kernel, tools, clock, processor.

use serde::{Deserialize, Serialize};
use std::fs;
use std::process::Command;

/// Facts of the machine that a run on a real kernel depends on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Kernel release, `uname -r`.
    pub kernel: String,
    /// Release of iproute2.
    pub iproute2: String,
    /// Ticks of the kernel per second, where it tells.
    pub hz: Option<u32>,
    /// What counts the kernel's time.
    pub clock_source: Option<String>,
    /// Processor.
    pub cpu: String,
    /// How many processors.
    pub cpus: u32,
    /// State of GSO, TSO, GRO and checksum offload on the devices.
    pub offloads: String,
    /// How delay and loss of links were made: `netem` or `process`.
    pub delay_by: String,
}

fn text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|t| t.trim().to_owned())
}

/// Reads them. `exact`: in a user-mode kernel, whose processor is none.
pub fn read(exact: bool, offloads: bool, netem: bool) -> Facts {
    let cpu = text("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split(':').nth(1));
    let model = if exact {
        "user-mode kernel, time-travel=inf-cpu: code takes no time"
    } else {
        model.unwrap_or("unknown").trim()
    };
    let version =
        Command::new("ip").arg("-V").output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    let version = version.unwrap_or_default();
    let version =
        version.split("iproute2-").nth(1).unwrap_or("").split([',', ' ', '\n']).next().unwrap_or("");
    Facts {
        kernel: text("/proc/sys/kernel/osrelease").unwrap_or_default(),
        iproute2: version.to_owned(),
        hz: hz(),
        clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        cpu: model.to_owned(),
        cpus: if exact { 1 } else { std::thread::available_parallelism().map_or(1, |n| n.get() as u32) },
        offloads: if offloads {
            "as the kernel has them"
        } else {
            "off: gso tso gro tx-checksum, gso_max_segs 1"
        }
        .to_owned(),
        delay_by: if netem { "netem" } else { "process" }.to_owned(),
    }
}

/// `CONFIG_HZ` of the running kernel, per second; `None` where it does not tell.
pub fn hz() -> Option<u32> {
    let find = |text: &str| text.lines().find_map(|l| l.strip_prefix("CONFIG_HZ=")?.parse().ok());
    let release = text("/proc/sys/kernel/osrelease")?;
    if let Some(hz) = text(&format!("/boot/config-{release}")).and_then(|t| find(&t)) {
        return Some(hz);
    }
    let out = Command::new("zcat").arg("/proc/config.gz").output().ok()?;
    find(&String::from_utf8_lossy(&out.stdout))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_machine_has_a_kernel_and_processors() {
        let facts = super::read(false, false, true);
        assert!(!facts.kernel.is_empty() && facts.cpus > 0, "{facts:?}");
        assert_eq!(super::read(true, false, true).cpus, 1);
    }
}
