//! A long journal made anew: what was undone, refused or said twice goes.
//!
//! The new journal is every command of the old one that is not tc's, in its order, and then the tc commands that rebuild what tc has
//! made. It takes the old one's place if, and only if, a fresh machine shows all the same after it, counters and ages included, and if
//! that saves something. Where a packet has ever been sent there is none: no command says what packets leave behind. Tried whenever the
//! journal has come to a power of two of entries, so that trying costs each call little.

use super::{Entry, Held, Machine, Mark, Written, moment};
use penstock_host::{Host, NoFiles};
use std::collections::BTreeMap;
use std::io;

/// Entries of the shortest journal that is made anew.
const LEAST: usize = 256;

impl Machine {
    /// Makes the journal anew where it is time to and can be done. The lock is held alone.
    pub(super) fn compact(&self, held: &mut Held) -> io::Result<()> {
        if held.entries < LEAST || !held.entries.is_power_of_two() {
            return Ok(());
        }
        let Ok((old, _)) = self.entries() else { return Ok(()) };
        let Some((new, host)) = self.shorter(&old, held) else { return Ok(()) };
        let mut text = Vec::new();
        for entry in &new {
            serde_json::to_writer(&mut text, entry)?;
            text.push(b'\n');
        }
        penstock_files::replace(&self.path(), &text)?;
        let mark = Mark { length: text.len() as u64, ..self.mark() };
        *held = Held { number: held.number, ..Held::new(host, mark, new.len()) };
        Ok(())
    }

    /// The entries of a shorter journal and the machine it makes; `None` where there is none that makes the same.
    fn shorter(&self, old: &[Entry], held: &mut Held) -> Option<(Vec<Entry>, Host)> {
        let number = held.number;
        // Commands do not say what packets have left behind.
        let host = held.live.still()?;
        // Other namespaces have a tc of their own, which is not said here.
        if !host.netns_names().is_empty() {
            return None;
        }
        let rebuilt = host.rebuild_tc_with_traces(moment(number));
        let others: Vec<&Entry> = old.iter().filter(|e| !is_tc(&e.argv)).collect();
        let count = others.len() + rebuilt.commands.len();
        if !rebuilt.notes.is_empty() || count == 0 || count * 4 > old.len() * 3 {
            return None;
        }
        let entry = |argv: &Vec<String>, files: &BTreeMap<String, String>, status: i32| Entry {
            argv: argv.clone(),
            files: files.clone(),
            status,
            number: None,
            slept: None,
            auto_handle: None,
        };
        let none = BTreeMap::new();
        let mut new: Vec<Entry> = others.iter().map(|e| entry(&e.argv, &e.files, e.status)).collect();
        new.extend(rebuilt.commands.iter().map(|words| entry(words, &none, 0)));
        // The next command is the one it would have been.
        new.first_mut()?.number = Some(number - count as u64);
        new.last_mut()?.auto_handle = Some(host.auto_handle());
        let (mut again, mut next) = (self.fresh(), 0);
        for e in &new {
            let this = e.number.unwrap_or(next);
            again.command(&e.argv, &mut Written(e.files.clone()), moment(this));
            next = this + 1;
        }
        again.set_auto_handle(host.auto_handle());
        (next == number && whole(&mut again, number) == whole(host, number)).then_some((new, again))
    }
}

/// Whether a command is tc's, of this namespace.
fn is_tc(argv: &[String]) -> bool {
    let mut words = argv.iter().skip_while(|w| *w == "sudo");
    let program = words.next().map_or("", String::as_str);
    let elsewhere = words.take_while(|w| w.starts_with('-')).any(|w| w.starts_with("-n"));
    program.rsplit('/').next() == Some("tc") && !elsewhere
}

/// All that a machine shows.
fn whole(host: &mut Host, number: u64) -> Vec<String> {
    let now = moment(number);
    let mut texts = vec![host.dump(now)];
    let names: Vec<String> = host.devices().iter().map(|d| d.name.clone()).collect();
    let of_tc = names.iter().flat_map(|name| {
        ["qdisc", "class", "filter", "chain"].map(|what| format!("tc -j -s -d {what} show dev {name}"))
    });
    let others = [
        "ip -d -j link show",
        "ip -d -j addr show",
        "ip rule show",
        "ip -6 route show table all",
        "ip6tables-save",
        "iptables-save",
    ];
    let lines: Vec<String> = of_tc.chain(others.map(str::to_owned)).collect();
    for line in lines {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        texts.push(host.command(&words, &mut NoFiles, now).stdout);
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Kernel;
    use std::fs;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_journal_of_changes_stays_short() {
        let folder = std::env::temp_dir().join(format!("penstock-compact-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let machine = Machine::new(&folder, Kernel::V6_12);
        let exec = |text: &str| machine.exec(&words(text)).unwrap();
        assert_eq!(exec("ip link add ifb0 type ifb").status, 0);
        exec("tc qdisc add dev eth1 root sfq perturb 10");
        assert_eq!(exec("tc qdisc add dev eth0 root handle 1: htb default 10").status, 0);
        assert_eq!(exec("tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit").status, 0);
        let filter =
            "tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dport 22 0xffff flowid 1:10";
        assert_eq!(exec(filter).status, 0);
        for i in 0..300 {
            assert_eq!(
                exec(&format!("tc class change dev eth0 parent 1: classid 1:10 htb rate {}kbit", 1000 + i))
                    .status,
                0
            );
        }
        let journal = fs::read_to_string(folder.join("journal-6.12")).unwrap();
        assert!(journal.lines().count() < 100, "{} entries", journal.lines().count());
        assert!(exec("tc class show dev eth0").stdout.contains("rate 1299Kbit"));
        assert!(exec("ip link show ifb0").stdout.contains("ifb0"));
        // The kernel goes on counting handles where it was.
        exec("tc qdisc add dev ifb0 root sfq");
        assert!(
            exec("tc qdisc show dev ifb0").stdout.starts_with("qdisc sfq 8002:"),
            "{}",
            exec("tc qdisc show dev ifb0").stdout
        );
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_cannot_be_said_is_kept() {
        assert!(is_tc(&words("sudo /sbin/tc -s qdisc add dev eth0 root sfq")));
        assert!(!is_tc(&words("tc -n blue qdisc add dev eth0 root sfq")));
        assert!(!is_tc(&words("ip netns exec blue tc qdisc add dev eth0 root sfq")));
    }
}
