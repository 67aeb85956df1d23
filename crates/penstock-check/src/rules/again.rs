//! PS346 to PS348: scripts that are called again: by `stop` and `start`, by the clock, by `restart`.

use crate::facts::{Facts, Step, What};
use crate::finding::{Found, Rule, Say};
use crate::watch::is_arm;
use penstock_lang::tc::Command;
use penstock_model::Handle;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS346",
        "stopping leaves what starting makes",
        "`tc qdisc del dev DEV root` takes the root with its classes and filters, and nothing of the ingress qdisc, of an ifb, of routing rules or of netfilter. The script was \
         started, stopped and started again here: what was left makes the second start fail (`Exclusivity flag on`, `File exists`) or adds the same rule once more.",
        left,
    ),
    Rule::warning(
        "PS347",
        "the clock adds the same again and again",
        "A line of a crontab is carried out each time. `tc filter add` and `iptables -A` do not look whether the same is there: after a day there are hundreds, and each packet passes \
         all of them. `tc qdisc add` and `tc class add` fail from the second time on. Use `replace` (of a filter with `handle`), `iptables -C … || iptables -A …`, or `@reboot`.",
        |_, _| {},
    ),
    Rule::warning(
        "PS348",
        "restarting starts what is there",
        "The arm for `restart` sets up what stands already, and nothing before it takes that away: the commands are refused (`Exclusivity flag on`), the old set-up stays.",
        restarted,
    ),
];

/// Whether a rule looks at a script's further calls.
pub(crate) fn is_of_turns(code: &str) -> bool {
    matches!(code, "PS346" | "PS348")
}

/// Whether the kernel says that what is to be made is there.
fn is_taken(step: &Step) -> bool {
    let said = &step.output.stderr;
    !step.ok() && (said.contains("xclusivity flag on") || said.contains("File exists"))
}

/// What a command makes, in words; none of what stands within something else.
fn makes(step: &Step) -> Option<String> {
    match step.tc() {
        Some(Command::Qdisc { dev: Some(_), req }) => {
            let dev = step.value(&["dev"])?;
            let ingress = req.kind.as_deref().is_some_and(penstock_sched::sch::ingress::is)
                || req.parent == Handle::INGRESS;
            match req.parent {
                _ if step.has("clsact") => Some(format!("the clsact qdisc of {dev}")),
                _ if ingress => Some(format!("the ingress qdisc of {dev}")),
                Handle::ROOT => Some(format!("the root qdisc of {dev}")),
                _ => None,
            }
        }
        Some(_) => None,
        None if step.program() == "ip" => {
            let object = step.words.iter().skip(1).find(|w| !w.starts_with('-'))?;
            match object.as_str() {
                "link" | "l" => {
                    let name = crate::names::added(&step.words)?;
                    Some(format!("the device {name}"))
                }
                "rule" | "ru" => Some("a routing rule".to_owned()),
                _ => None,
            }
        }
        None => None,
    }
}

/// Commands of later calls that find what equal ones of the first call have made, each with what that is.
fn finds(facts: &Facts, first: usize, from: usize) -> Vec<(&Step, String)> {
    let known = |s: &Step| {
        let same = |a: &Step| a.ok() && a.line == s.line && a.words == s.words && a.guessed.is_none();
        facts.steps[..first].iter().any(same)
    };
    let meant = |s: &Step| {
        s.file == facts.name && (facts.source.expects_failure(s.line) || facts.source.is_hushed(s.line))
    };
    let mut all: Vec<(&Step, String)> = Vec::new();
    for step in facts.steps[from..].iter().filter(|s| is_taken(s) && !meant(s) && known(s)) {
        if let Some(what) = makes(step).filter(|w| all.iter().all(|a| a.1 != *w)) {
            all.push((step, what));
        }
    }
    all
}

fn deletes(step: &Step) -> bool {
    let takes = |w: &String| {
        matches!(w.as_str(), "del" | "delete" | "flush" | "-D" | "-F" | "-X" | "--delete" | "--flush")
    };
    step.ok() && step.words.iter().any(takes)
}

/// A rule of netfilter that a later start has added to an equal one of the first.
fn doubled(facts: &Facts, first: usize, from: usize) -> Option<(&Step, String)> {
    let rules = &facts.netfilter.standing.rules;
    let old = rules.iter().filter(|r| r.step < first);
    let mut twice = old.filter(|a| {
        let same = |b: &&crate::marks::Ruled| {
            (b.family, b.table, &b.chain) == (a.family, a.table, &a.chain) && b.rule == a.rule
        };
        rules
            .iter()
            .filter(same)
            .any(|b| b.step >= from && !matches!(facts.steps[b.step].what, What::Rules(_)))
    });
    let one = twice.next()?;
    let step = &facts.steps[one.step];
    Some((step, format!("the rule of line {}", step.line)))
}

fn left(facts: &Facts, found: &mut Found) {
    let [first, second] = *facts.turns.as_slice() else { return };
    let stop = &facts.steps[first..second];
    // A file may say that nothing was started, a driver may go with its devices, and what is unknown may be anything.
    let drives = facts.source.holds(&["rmmod", "modprobe -r"]);
    if facts.partial || drives || !stop.iter().any(deletes) {
        return;
    }
    let mut all = finds(facts, first, second);
    // Who takes away no rule at all may leave that to a firewall that is made anew.
    let cares = stop.iter().any(|s| deletes(s) && matches!(s.program(), "iptables" | "ip6tables"));
    if all.is_empty() && cares {
        all.extend(doubled(facts, first, second));
    }
    let Some((step, _)) = all.first() else { return };
    let program = step.program();
    let place =
        stop.iter().rposition(|s| deletes(s) && s.program() == program).or(stop.iter().rposition(deletes));
    let Some(at) = place.map(|n| n + first) else { return };
    let reason = match program {
        "tc" | "ip" => format!("Started again, line {} is refused: it is there still.", step.line),
        _ => "Each start adds it once more.".to_owned(),
    };
    let what: Vec<&str> = all.iter().map(|a| a.1.as_str()).collect();
    let fix: Vec<String> = all.iter().map(|a| undone(a.0)).collect();
    found.at(at, "del", Say::new(format!("stopping leaves {}", what.join(", ")), reason, fix.join("\n")));
}

/// What takes away what a command has made.
fn undone(step: &Step) -> String {
    let dev = step.value(&["dev"]).unwrap_or("");
    match (step.program(), step.tc()) {
        ("tc", Some(Command::Qdisc { .. })) if step.has("clsact") => format!("tc qdisc del dev {dev} clsact"),
        ("tc", Some(Command::Qdisc { req, .. })) if req.parent == Handle::ROOT => {
            format!("tc qdisc del dev {dev} root")
        }
        ("tc", _) => format!("tc qdisc del dev {dev} ingress"),
        ("ip", _) => match crate::names::added(&step.words) {
            Some(name) => format!("ip link del {name}"),
            None => step.with_word("add", "del"),
        },
        _ => step.with_word("-A", "-D").replace(" -I ", " -D "),
    }
}

fn restarted(facts: &Facts, found: &mut Found) {
    let [first] = *facts.turns.as_slice() else { return };
    if facts.partial || facts.steps[first..].iter().any(deletes) {
        return;
    }
    let all = finds(facts, first, first);
    let Some((step, what)) = all.first() else { return };
    let plain = |l: &str| l.replace(['"', '{', '}', ' ', '\t'], "");
    let is_restart = |l: &String| is_arm(&plain(l), "restart") || plain(l).starts_with("restart()");
    let Some(arm) = facts.source.lines.iter().position(is_restart) else { return };
    let body: Vec<&str> = facts.source.lines[arm..]
        .iter()
        .map(String::as_str)
        .take_while({
            let mut over = false;
            move |l| !std::mem::replace(&mut over, l.contains(";;") || l.starts_with('}'))
        })
        .collect();
    // What a file or another program may have had taken away.
    let stops = ["stop", "down", "del", "clean", "clear", "flush", "reset", "teardown"];
    let behind = body.join("\n");
    let behind = behind.split_once(')').map_or("", |b| b.1);
    if stops.iter().any(|w| behind.contains(w)) {
        return;
    }
    let text = facts.source.line(arm as u32 + 1);
    let column = text.chars().take_while(|c| c.is_whitespace()).count() as u32 + 1;
    let reason = format!("Nothing takes {what} away before line {} adds it again.", step.line);
    found.at_line(arm as u32 + 1, column, 0, Say::new("restarting does not stop first", reason, ""));
}
