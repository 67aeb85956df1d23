//! PS014: what sysctl, a file of `/proc/sys`, modprobe or ethtool does not take.

use crate::facts::{Facts, Step};
use crate::finding::{Found, Level, Rule, Say};
use penstock_host::Host;

pub const RULES: &[Rule] = &[Rule {
    code: "PS014",
    severity: Level::Error,
    about: "sysctl, modprobe or ethtool refuses the command",
    why: "The setting stays as it was. A key of /proc/sys that there is not is mostly a slip of the pen, or one that Linux has given up (`tcp_tw_recycle`, \
          `ip_conntrack_max`). The message is the program's own.",
    find: refused,
}];

/// Keys that Linux had and has not any more, with what came of them.
const GONE: [(&str, &str); 7] = [
    (
        "net.ipv4.tcp_tw_recycle",
        "Linux 4.12 took it out, since it breaks connections from behind NAT: leave it out",
    ),
    ("net.ipv4.ip_conntrack_max", "it is net.netfilter.nf_conntrack_max today"),
    ("net.ipv4.netfilter.ip_conntrack_max", "it is net.netfilter.nf_conntrack_max today"),
    (
        "net.ipv4.netfilter.ip_conntrack_tcp_timeout_established",
        "it is net.netfilter.nf_conntrack_tcp_timeout_established today",
    ),
    ("net.ipv4.tcp_vegas_cong_avoid", "it is the congestion control vegas today"),
    ("net.ipv4.tcp_westwood", "it is the congestion control westwood today"),
    ("net.ipv4.tcp_bic", "it is the congestion control bic today"),
];

/// The key of `/proc/sys`, or the file of `/sys`, that a refused command did not find.
pub(crate) fn missed(program: &str, refused: &penstock_host::Output) -> Option<String> {
    let line = refused.stderr.lines().find(|l| l.ends_with(": No such file or directory"))?;
    let path = match program {
        "sysctl" => line.split("cannot stat ").nth(1)?,
        "cat" | "tee" => line.split_once(": ")?.1,
        _ => return None,
    };
    let path = path.strip_suffix(": No such file or directory")?.trim_matches('\'');
    match path.strip_prefix("/proc/sys/") {
        Some(key) => Some(key.replace('/', ".")),
        None => ["/sys/module/", "/sys/kernel/", "/sys/block/", "/proc/irq/"]
            .iter()
            .any(|folder| path.starts_with(folder))
            .then(|| path.to_owned()),
    }
}

/// The key of this machine that a mistyped one was meant to be: one or two letters away.
pub(crate) fn meant(host: &Host, key: &str) -> Option<String> {
    if GONE.iter().any(|g| g.0 == key) {
        return Some(String::new());
    }
    let near = |known: &String| {
        let far = strsim::damerau_levenshtein(known, key);
        (far <= 2 && known.len() > 8).then_some(far)
    };
    let keys = host.setting_keys();
    let found = keys.iter().filter_map(|k| Some((near(k)?, k))).min();
    // `net.ipv4.conf.eth1.forwarding` is another device's, not a slip.
    let device = |key: &str| {
        let rest = key.strip_prefix("net.ipv4.").or(key.strip_prefix("net.ipv6."))?;
        let rest = rest.strip_prefix("conf.").or(rest.strip_prefix("neigh."))?;
        Some(rest.rsplit_once('.')?.0.to_owned())
    };
    found.filter(|(_, k)| device(k) == device(key)).map(|f| f.1.clone())
}

fn refused(facts: &Facts, found: &mut Found) {
    let failing = facts.steps.iter().enumerate().filter(|s| !s.1.ok() && s.1.guessed.is_none());
    for (at, step) in failing {
        let expected = step.file == facts.name && facts.source.expects_failure(step.line);
        if expected {
            continue;
        }
        match step.program() {
            "sysctl" | "cat" | "tee" => setting(found, at, step),
            "modprobe" => module(facts, found, at, step),
            "ethtool" => card(found, at, step),
            _ => {}
        }
    }
    written(facts, found);
    kept(facts, found);
}

/// Keys in files of sysctl that the script writes: `cat > /etc/sysctl.d/… <<EOF`, `echo "KEY = VALUE" >> /etc/sysctl.conf`.
fn kept(facts: &Facts, found: &mut Found) {
    let lines = &facts.source.lines;
    let mut keys: Vec<(usize, &str)> = Vec::new();
    let mut until: Option<&str> = None;
    for (n, line) in lines.iter().enumerate() {
        if let Some(end) = until {
            if line.trim() == end {
                until = None;
            } else {
                keys.push((n, line));
            }
            continue;
        }
        let writes = line.contains("/etc/sysctl") && (line.contains('>') || line.contains("tee"));
        if line.trim_start().starts_with('#') || !writes {
            continue;
        }
        match line.split_once("<<") {
            Some((_, rest)) if !rest.starts_with('<') => {
                let word = rest.trim_start_matches('-').split([' ', ';', '>', '|']).find(|w| !w.is_empty());
                until = word.map(|w| w.trim_matches(['"', '\'']));
            }
            _ => {
                let said =
                    line.trim_start().strip_prefix("echo ").or(line.trim_start().strip_prefix("printf "));
                keys.extend(
                    said.map(|text| (n, text.split('>').next().unwrap_or("").trim_matches([' ', '"', '\'']))),
                );
            }
        }
    }
    // A file of sysctl itself.
    let code: Vec<(usize, &str)> = lines.iter().enumerate().map(|(n, l)| (n, l.as_str())).collect();
    let code: Vec<(usize, &str)> = code
        .into_iter()
        .filter(|(_, l)| !l.trim().is_empty() && !l.trim_start().starts_with(['#', ';']))
        .collect();
    let sets = |l: &str| {
        let folders = ["net.", "kernel.", "vm.", "fs.", "net/", "kernel/", "vm/"];
        folders.iter().any(|f| l.trim_start().trim_start_matches('-').starts_with(f)) && l.contains('=')
    };
    if !code.is_empty() && code.iter().all(|(_, l)| sets(l)) {
        keys = code;
    }
    if keys.is_empty() {
        return;
    }
    let host = Host::new("h", facts.kernel, 1);
    for (n, text) in keys {
        let Some((key, _)) = text.split_once('=') else { continue };
        let written = key.trim().trim_start_matches('-');
        let key = written.replace('/', ".");
        if !key.starts_with("net.") || key.contains(['$', '*', '#']) || host.setting(&key).is_some() {
            continue;
        }
        let Some(meant) = meant(&host, &key) else { continue };
        let (reason, fix) = of_key(&key, &meant);
        let line = &lines[n];
        let column = line.find(written).map_or(0, |at| line[..at].chars().count() as u32 + 1);
        let len = written.chars().count() as u32;
        found.at_line(
            n as u32 + 1,
            column,
            len,
            Say::new(format!("{key}: no such key of /proc/sys"), reason, fix),
        );
    }
}

/// Files of `/proc/sys` that the shell itself did not find: `echo 1 > /proc/sys/…`.
fn written(facts: &Facts, found: &mut Found) {
    let lines = facts.stderr.lines().filter_map(|said| {
        let said = said.strip_suffix(": No such file or directory")?;
        let (before, path) = said.rsplit_once(": ")?;
        let line: u32 = before.rsplit_once("line ")?.1.parse().ok()?;
        Some((line, path.strip_prefix("/proc/sys/")?.replace('/', "."), path))
    });
    let lines: Vec<(u32, String, &str)> = lines.collect();
    if lines.is_empty() {
        return;
    }
    let host = Host::new("h", facts.kernel, 1);
    for (line, key, path) in lines {
        let Some(meant) = meant(&host, &key).filter(|_| !facts.source.expects_failure(line)) else {
            continue;
        };
        let (reason, fix) = of_key(&key, &meant);
        let text = facts.source.line(line);
        let column = text.find(path).map_or(0, |at| text[..at].chars().count() as u32 + 1);
        found.at_line(
            line,
            column,
            path.chars().count() as u32,
            Say::new(format!("{key}: no such key of /proc/sys"), reason, fix),
        );
    }
}

/// What is said of a key that there is not, and the one that was meant.
fn of_key(key: &str, meant: &str) -> (String, String) {
    match GONE.iter().find(|g| g.0 == key) {
        Some((_, instead)) => (format!("`{key}` is not there any more; {instead}."), String::new()),
        None => ("There is no such setting.".to_owned(), meant.to_owned()),
    }
}

fn setting(found: &mut Found, at: usize, step: &Step) {
    let stderr = &step.output.stderr;
    if let Some(key) = missed(step.program(), &step.output) {
        let meant = step.output.diagnostics.first().map(|d| d.help.clone()).unwrap_or_default();
        if meant.is_empty() && GONE.iter().all(|g| g.0 != key) {
            return;
        }
        let (reason, fix) = of_key(&key, &meant);
        found.at(at, &key, Say::new(format!("{key}: no such key of /proc/sys"), reason, fix));
    } else if let Some(value) = step.words.iter().find_map(|w| w.strip_prefix("net.core.default_qdisc="))
        && stderr.contains("setting key")
    {
        let kinds = penstock_sched::sch::KINDS.iter().map(|k| k.id);
        let near = kinds.map(|k| (strsim::damerau_levenshtein(k, value), k)).filter(|n| n.0 <= 2).min();
        let Some((_, near)) = near else { return };
        let reason = "The kernel knows no qdisc of this name; the default stays what it was.";
        let said = stderr.lines().next().unwrap_or("refused").to_owned();
        let word = format!("net.core.default_qdisc={value}");
        found.at(at, &word, Say::new(said, reason, format!("sysctl -w net.core.default_qdisc={near}")));
    } else if step.program() == "sysctl" && step.has("=") && stderr.contains("invalid syntax") {
        let reason = "Without a file sysctl wants each setting in one word, with no blanks around `=`.";
        let said = stderr.lines().next().unwrap_or("refused").to_owned();
        let fix = step.words.join(" ").replace(" = ", "=");
        found.at(at, "=", Say::new(said, reason, fix));
    } else if let Some(line) = stderr.lines().find(|l| l.ends_with(": Invalid argument")) {
        let word = step.words.iter().skip(1).find(|w| w.contains('=')).cloned().unwrap_or_default();
        let reason = "The kernel does not take this value: mostly it is one number, or one of few.";
        found.at(at, &word, Say::new(line.to_owned(), reason, String::new()));
    }
}

/// A module of a queueing discipline, a classifier or an action whose name is one slip away from one that there is.
fn module(facts: &Facts, found: &mut Found, at: usize, step: &Step) {
    if !step.output.stderr.contains("not found in directory") {
        return;
    }
    let Some(name) = step.words.iter().skip(1).find(|w| !w.starts_with('-')) else { return };
    let queues = penstock_sched::sch::KINDS.iter().map(|k| format!("sch_{}", k.id));
    let filters = penstock_sched::cls::KINDS.iter().map(|k| format!("cls_{}", k.id));
    let actions = penstock_sched::act::KINDS.iter().map(|k| format!("act_{}", k.id));
    let known = queues.chain(filters).chain(actions).map(|k| (strsim::damerau_levenshtein(&k, name), k));
    let Some((_, near)) = known.filter(|k| (1..=2).contains(&k.0)).min() else { return };
    let said = step.output.stderr.lines().next().unwrap_or("refused").to_owned();
    let say = Say::new(said, "There is no module of this name.", step.with_word(name, &near));
    // Who throws its words away tries what one kernel has and another has not.
    let tried = step.file == facts.name && facts.source.is_hushed(step.line);
    found.at(at, name, if tried { say.level(Level::Note) } else { say });
}

fn card(found: &mut Found, at: usize, step: &Step) {
    let line = step.output.stderr.lines().next().unwrap_or("");
    // What its parser says of values and words hangs on no card; options there are more than are known here.
    if !line.starts_with("ethtool (") {
        return;
    }
    let quoted = line.split('\'').nth(1).unwrap_or("");
    let word = step.words.iter().find(|w| *w == quoted).cloned().unwrap_or_default();
    let help = step.output.diagnostics.first().map(|d| d.help.clone()).unwrap_or_default();
    found.at(at, &word, Say::new(line.to_owned(), format!("`{}` is refused.", step.text()), help));
}
