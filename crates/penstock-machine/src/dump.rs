//! `penstock tc dump`: the commands that rebuild the state, and no others.
//!
//! What tc has made is said from the state itself ([`penstock_host::rebuild`]). With the rest of the machine (`--all`) the journal's commands
//! are taken away again, in ever smaller pieces, as long as a fresh machine shows the same: what is left is needed. That work is
//! bounded; a state of very many commands is left less reduced, never less exact.

use super::{Entry, Machine, live, moment};
use penstock_host::{FileError, Files, Host, NoFiles};
use penstock_lang::tc::batch;
use penstock_lang::token::{quoted, words};
use std::collections::BTreeMap;

/// Commands a reduction may execute in all.
const BUDGET: usize = 1_000_000;

/// What is to be rebuilt.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// One device; all of them where none is named.
    pub dev: Option<String>,
    /// Links, addresses, routes, netfilter and settings as well, not only what tc shows.
    pub all: bool,
}

/// Commands, and what is not as it was.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dumped {
    /// As a shell would read them.
    pub commands: Vec<String>,
    /// What could not be said.
    pub notes: Vec<String>,
}

/// A command of the journal; lines of tc's batches stand by themselves.
struct Step {
    argv: Vec<String>,
    files: BTreeMap<String, String>,
    /// It may be taken away, and is printed where it is not.
    ours: bool,
}

impl Machine {
    /// Commands that rebuild what is wanted on a machine with the same devices (with `all`: on a fresh one), as a shell would read them.
    ///
    /// # Errors
    /// A sentence when the state cannot be read, or when there is no such device.
    pub fn dump(&self, wanted: &Wanted) -> Result<Dumped, String> {
        if wanted.all {
            return Ok(Dumped { commands: self.reduced(wanted)?, notes: Vec::new() });
        }
        let (host, now) = self.host_now()?;
        if let Some(dev) = wanted.dev.as_ref().filter(|dev| host.ifindex(dev).is_none()) {
            return Err(format!("Cannot find device \"{dev}\""));
        }
        let rebuilt = host.rebuild_tc(wanted.dev.as_deref(), now.max(moment(1 << 20)));
        let typed = |words: &Vec<String>| words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ");
        Ok(Dumped { commands: rebuilt.commands.iter().map(typed).collect(), notes: rebuilt.notes })
    }

    /// The journal without what is not needed.
    fn reduced(&self, wanted: &Wanted) -> Result<Vec<String>, String> {
        let entries = match self.folder.is_dir() {
            true => {
                let _lock = self.lock(true)?;
                self.entries()?.0
            }
            false => Vec::new(),
        };
        // What was sent rebuilds nothing.
        let commands = entries.into_iter().filter(|entry| live::ping_at(&entry.argv).is_none());
        let steps: Vec<Step> = commands.flat_map(|entry| self.steps(entry, wanted.all)).collect();
        let mut needed = vec![true; steps.len()];
        let mut spent = 0;
        let target = self.shown(&steps, &needed, wanted, &mut spent);
        if let Some(dev) = &wanted.dev
            && !target.devices.contains(dev)
        {
            return Err(format!("Cannot find device \"{dev}\""));
        }
        let mut size = steps.len().next_power_of_two();
        while size > 0 {
            for piece in (0..steps.len()).step_by(size) {
                let piece = piece..(piece + size).min(steps.len());
                let there: Vec<usize> = piece.filter(|&i| needed[i] && steps[i].ours).collect();
                if there.is_empty() || spent > BUDGET {
                    continue;
                }
                there.iter().for_each(|&i| needed[i] = false);
                if self.shown(&steps, &needed, wanted, &mut spent) != target {
                    there.iter().for_each(|&i| needed[i] = true);
                }
            }
            size /= 2;
        }
        Ok(steps.iter().zip(needed).filter(|(s, needed)| *needed && s.ours).map(|(s, _)| s.typed()).collect())
    }

    /// The commands of an entry.
    fn steps(&self, entry: Entry, all: bool) -> Vec<Step> {
        let Entry { argv, files, .. } = entry;
        let is_tc = argv.first().is_some_and(|p| p == "tc");
        let batch = argv.iter().position(|w| w.starts_with("-b") && !w.starts_with("-br"));
        if let (true, Some(flag), Some(text)) = (is_tc, batch, files.values().next()) {
            let flags: Vec<String> = argv[1..flag].iter().filter(|w| !w.starts_with("-f")).cloned().collect();
            let line = |line: batch::BatchLine| {
                let words = line.words.into_iter().map(|w| w.text);
                let argv =
                    std::iter::once("tc".to_owned()).chain(flags.iter().cloned()).chain(words).collect();
                Step { argv, files: BTreeMap::new(), ours: true }
            };
            return batch::lines(text, self.kernel).flatten().map(line).collect();
        }
        vec![Step { ours: all || is_tc, argv, files }]
    }

    /// What a machine shows after these commands.
    fn shown(&self, steps: &[Step], needed: &[bool], wanted: &Wanted, spent: &mut usize) -> Shown {
        let mut host = self.fresh();
        for ((step, _), number) in steps.iter().zip(needed).filter(|(_, needed)| **needed).zip(0..) {
            host.command(&step.argv, &mut Texts(&step.files), moment(number));
            *spent += 1;
        }
        *spent += 8;
        Shown::of(&mut host, wanted)
    }
}

impl Step {
    /// The command as one would type it; what it read follows as a here-document.
    fn typed(&self) -> String {
        let mut line = self.argv.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ");
        if let Some((path, text)) = self.files.iter().next() {
            let mut end = "END".to_owned();
            while text.lines().any(|l| l == end) {
                end.push('_');
            }
            let path = quoted(path);
            if path != "-" {
                line = line.replace(&path, "/dev/stdin");
            }
            line.push_str(&format!(
                " <<'{end}'\n{text}{}{end}",
                if text.ends_with('\n') { "" } else { "\n" }
            ));
        }
        line
    }
}

/// Texts of the journal.
struct Texts<'a>(&'a BTreeMap<String, String>);

impl Files for Texts<'_> {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        self.0.get(path).cloned().ok_or(FileError::NotFound)
    }
}

/// All that a machine shows of what is wanted.
#[derive(PartialEq, Eq)]
struct Shown {
    devices: Vec<String>,
    text: Vec<String>,
}

impl Shown {
    fn of(host: &mut Host, wanted: &Wanted) -> Shown {
        let devices: Vec<String> = host.devices().iter().map(|d| d.name.clone()).collect();
        let mut shown = Shown { text: Vec::new(), devices: devices.clone() };
        for dev in devices.iter().filter(|d| wanted.dev.as_ref().is_none_or(|w| w == *d)) {
            for form in ["-d", "-j -d"] {
                shown.ask(host, &format!("tc {form} qdisc show dev {dev} invisible"));
                shown.ask(host, &format!("tc {form} class show dev {dev}"));
                shown.ask(host, &format!("tc {form} chain show dev {dev}"));
                shown.ask(host, &format!("tc {form} filter show dev {dev}"));
                shown.ask(host, &format!("tc {form} filter show dev {dev} ingress"));
                shown.ask(host, &format!("tc {form} filter show dev {dev} egress"));
                for parent in parents(host, dev) {
                    shown.ask(host, &format!("tc {form} filter show dev {dev} parent {parent}"));
                }
            }
        }
        for kind in penstock_lang::tc::actions::names() {
            shown.ask(host, &format!("tc actions list action {kind}"));
        }
        if wanted.all {
            for line in [
                "ip -d link show",
                "ip addr show",
                "ip route show table all",
                "ip rule show",
                "ip neigh show",
                "ip netns list",
                "iptables-save",
                "ip6tables-save",
                "nft list ruleset",
                "sysctl -a",
            ] {
                shown.ask(host, line);
            }
        }
        shown
    }

    fn ask(&mut self, host: &mut Host, line: &str) {
        let argv: Vec<String> = words(line).unwrap_or_default().into_iter().map(|w| w.text).collect();
        let output = host.command(&argv, &mut NoFiles, moment(1 << 20));
        self.text.push(output.stdout);
    }
}

/// Handles that filters may hang on: qdiscs and classes.
fn parents(host: &Host, dev: &str) -> Vec<String> {
    let Some(ifindex) = host.ifindex(dev) else { return Vec::new() };
    let qdiscs = host.dump_qdiscs(ifindex, moment(0));
    let handles = qdiscs.iter().filter(|q| q.handle.major() != 0).map(|q| q.handle.to_string());
    handles.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Kernel;

    fn folder(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("penstock-dump-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    fn exec(machine: &Machine, line: &str) {
        let argv: Vec<String> = words(line).unwrap().into_iter().map(|w| w.text).collect();
        machine.exec(&argv).unwrap();
    }

    #[test]
    fn what_was_undone_is_not_there() {
        let folder = folder("undone");
        let machine = Machine::new(&folder, Kernel::V6_12);
        for line in [
            "tc qdisc add dev eth0 root handle 5: sfq",
            "tc qdisc del dev eth0 root",
            "tc qdisc add dev eth0 root handle 1: htb default 10",
            "tc qdisc add dev eth0 root handle 2: htb",
            "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit",
            "tc class change dev eth0 parent 1: classid 1:10 htb rate 2mbit",
            "tc qdisc add dev eth1 root handle 3: prio",
            "tc filter add dev eth0 parent 1: prio 1 protocol ip u32 match ip dport 22 0xffff flowid 1:10",
        ] {
            exec(&machine, line);
        }
        let eth0 = Wanted { dev: Some("eth0".to_owned()), all: false };
        let dumped = machine.dump(&eth0).unwrap();
        assert_eq!(
            dumped.commands,
            [
                "tc qdisc add dev eth0 root handle 1: htb default 10 r2q 10 direct_qlen 1000",
                "tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit ceil 2mbit burst 1600 cburst 1600 prio 0 quantum 25000",
                "tc filter add dev eth0 parent 1: protocol ip pref 1 handle 800::800 u32 ht 800:0: flowid 1:10 match u32 0x00000016 0x0000ffff at 20",
            ]
        );
        let again = Machine::new(&folder.join("again"), Kernel::V6_12);
        dumped.commands.iter().for_each(|line| exec(&again, line));
        assert_eq!(again.dump(&eth0).unwrap(), dumped);
        let all = machine.dump(&Wanted { all: true, ..eth0 }).unwrap();
        assert_eq!(all.commands.len(), 5, "{all:?}");
        let nowhere = Wanted { dev: Some("eth7".to_owned()), all: false };
        assert_eq!(machine.dump(&nowhere).unwrap_err(), "Cannot find device \"eth7\"");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_a_command_read_follows_it() {
        let step = Step {
            argv: ["iptables-restore", "rules"].map(str::to_owned).to_vec(),
            files: [("rules".to_owned(), "*filter\nCOMMIT\n".to_owned())].into(),
            ours: true,
        };
        assert_eq!(step.typed(), "iptables-restore /dev/stdin <<'END'\n*filter\nCOMMIT\nEND");
    }
}
