//! PS25x: scripts that work once, or hide that they do not.

use crate::facts::{Facts, Step};
use crate::finding::{Edit, Found, Rule, Say};
use penstock_lang::tc::Command;
use penstock_model::Handle;
use penstock_model::rtnetlink::Verb;
use penstock_sched::sch;
use std::collections::{BTreeMap, BTreeSet};

pub const RULES: &[Rule] = &[
    Rule::note(
        "PS250",
        "add root without del root",
        "`tc qdisc add … root` works once. When the script runs again the kernel says `Exclusivity flag on, cannot modify` (`File exists`), the old set-up stays, \
         and the \
         commands after it change or repeat it. Delete \
         first, or use `replace`. The same holds for ingress.",
        no_del,
    ),
    Rule::warning(
        "PS251",
        "errors of a command that must work are hidden",
        "With `2>/dev/null` nobody sees that a class or a filter was refused, and the traffic silently goes elsewhere. Hide errors of deletions only.",
        hidden,
    ),
    Rule::warning(
        "PS252",
        "the script ends at its first deletion",
        "Under `set -e` a command that fails ends the script. On a machine without a qdisc the first `tc qdisc del` fails, and nothing after it happens. Write `|| \
         true` behind it. The same holds of `tc qdisc del … && tc qdisc add …`, whose second half is left out where the first fails, and of the lines of a file for \
         `tc -batch`, which ends at the first that fails: give it `-force`, or put the deletion before it; and of a unit of systemd: `ExecStart=-tc qdisc del …` may fail.",
        ends_early,
    ),
    Rule::warning(
        "PS253",
        "a qdisc is set up and deleted again",
        "A script that ends without any of what it set up has done nothing.",
        undone,
    ),
    Rule::warning(
        "PS254",
        "a second root pushes out the first",
        "A device has one root. `tc qdisc add … root` of another kind does not join the qdisc that a command before it put there: the kernel takes that one away and \
         says nothing. \
         Put the second below the first (`parent 1:` or a class of it), or give both jobs to one qdisc.",
        pushed_out,
    ),
    Rule::warning(
        "PS255",
        "the deletion takes every filter of the priority",
        "`tc filter del … prio N u32 match …` does not look at the match: without a `handle` the kernel deletes all filters of that priority and protocol \
         (tc_del_tfilter). To delete one, give its handle, or each filter a priority of its own. The much-copied learn-address script for OpenVPN does it; others \
         learnt it the hard way: https://github.com/phuedx/pinc/issues/4.",
        deletes_all,
    ),
];

/// Programs that take their time, in which what stands is used or looked at.
const WAITS: [&str; 12] = [
    "sleep",
    "read",
    "iperf",
    "iperf3",
    "ping",
    "netperf",
    "flent",
    "mtr",
    "tracepath",
    "traceroute",
    "trap",
    "wait",
];

/// Where a device's root or ingress is first touched: step, verb, parent.
fn tops(facts: &Facts) -> Vec<(usize, &str, Verb, Handle)> {
    let top = |(at, step): (usize, &'_ Step)| match step.tc() {
        Some(Command::Qdisc { dev: Some(_), req }) => {
            let ingress = req.kind.as_deref().is_some_and(sch::ingress::is) || req.parent == Handle::INGRESS;
            let parent = if ingress { Handle::INGRESS } else { req.parent };
            matches!(parent, Handle::ROOT | Handle::INGRESS).then_some((at, req.verb, parent))
        }
        _ => None,
    };
    facts
        .steps
        .iter()
        .enumerate()
        .filter_map(top)
        .filter_map(|(at, verb, parent)| Some((at, facts.steps[at].value(&["dev"])?, verb, parent)))
        .collect()
}

/// Whether a file says what a container is made of or begins with: its devices are new each time.
fn is_of_container(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    file.contains("dockerfile")
        || file.contains("containerfile")
        || file.contains("compose") && (file.ends_with(".yml") || file.ends_with(".yaml"))
}

/// Whether a list of commands in it is one that is carried out more than once, by its name: a unit of systemd, a play (`crate::repeats` has those that are none).
fn is_carried_out(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.split('.').skip(1).any(|part| matches!(part, "service" | "yml" | "yaml"))
}

fn no_del(facts: &Facts, found: &mut Found) {
    if !(facts.installed() || is_carried_out(&facts.name)) || is_of_container(&facts.name) {
        return;
    }
    let (mut seen, mut added) = (BTreeSet::new(), BTreeSet::new());
    let deletions: Vec<Vec<&str>> = facts
        .source
        .lines
        .iter()
        .filter(|l| l.contains("del"))
        .map(|l| {
            let ends = [';', '}', ')', '`', '"', '\'', ','];
            l.split_whitespace().map(|w| w.trim_end_matches(ends)).collect::<Vec<_>>()
        })
        .filter(|words| {
            words.iter().any(|w| *w == "del" || *w == "delete")
                && words.iter().any(|w| !w.is_empty() && "qdisc".starts_with(w))
        })
        .collect();
    // The kernel compares the kind that `ingress` and `clsact` say with that of the qdisc which is there (`__tc_get_qdisc`).
    let deletes = |place: &str| {
        deletions.iter().any(|words| match place {
            "root" => words.contains(&"root"),
            _ if words.contains(&"ingress") || words.contains(&"clsact") => words.contains(&place),
            _ => words.contains(&"ffff:"),
        })
    };
    let [root, ingress, clsact] = ["root", "ingress", "clsact"].map(deletes);
    // `ip link del` takes the qdiscs with the device; a device the script makes is new; a loop may have deleted by another name.
    for (at, dev, verb, parent) in tops(facts) {
        let step = &facts.steps[at];
        let (place, stops) = match parent {
            Handle::ROOT => ("root", root),
            _ if step.has("clsact") => ("clsact", clsact),
            _ => ("ingress", ingress),
        };
        // What is deleted as another kind is there still; of two that are added the second is refused.
        let new = seen.insert((dev, place));
        let first = new && (verb == Verb::Del || added.insert((dev, parent)));
        if verb != Verb::Del {
            added.insert((dev, parent));
        }
        // So is one that `wg-quick up` makes.
        let new_tunnel = facts.source.lines.iter().any(|l| {
            let mut words = l.split_whitespace().skip_while(|w| !w.ends_with("wg-quick"));
            words.next().is_some()
                && words.next() == Some("up")
                && words.next().is_some_and(|w| w.contains(dev))
        });
        let made = !facts.foreign.contains(dev) && dev != "lo" || new_tunnel;
        if !first
            || verb != Verb::Add
            || made
            || facts.source.expects_failure(step.line)
            || step.file != facts.name
        {
            continue;
        }
        if stops {
            continue;
        }
        // As the script writes the device.
        let logical = facts.source.logical(step.line);
        let written = logical.split_whitespace().skip_while(|w| *w != "dev").nth(1).unwrap_or(dev).to_owned();
        let fix = format!("tc qdisc del dev {written} {place} 2>/dev/null");
        let plain = facts.source.line(step.line).trim_start().starts_with("tc ");
        let tail = if facts.source.errexit { " || true" } else { "" };
        let edit = plain.then(|| Edit::Before(step.line, format!("{fix}{tail}")));
        let other = match place {
            "clsact" if ingress => " `del … ingress` takes no clsact away: Error: Invalid qdisc name.",
            "ingress" if clsact => " `del … clsact` takes no ingress away: Error: Invalid qdisc name.",
            _ => "",
        };
        let reason = format!(
            "When the script runs again {place} is taken: Error: Exclusivity flag on, cannot modify.{other}"
        );
        found.at(
            at,
            "add",
            Say::new(
                format!("nothing deletes the {place} qdisc of {dev} before it is added"),
                reason,
                format!("{fix}{tail}"),
            )
            .edit(edit),
        );
    }
}

fn pushed_out(facts: &Facts, found: &mut Found) {
    let mut stands: BTreeMap<(&str, Handle), usize> = BTreeMap::new();
    for (at, dev, verb, parent) in tops(facts).into_iter().filter(|t| facts.steps[t.0].ok()) {
        let before = match verb {
            Verb::Del => stands.remove(&(dev, parent)).and(None),
            Verb::Change => None,
            _ => stands.insert((dev, parent), at),
        };
        let Some(before) = before else { continue };
        let (step, first) = (&facts.steps[at], &facts.steps[before]);
        if verb != Verb::Add && !replaces_tree(facts, dev, before, at) {
            continue;
        }
        let kind = |step: &Step| match step.tc() {
            Some(Command::Qdisc { req, .. }) => req.kind.clone().unwrap_or_default(),
            _ => String::new(),
        };
        let reason =
            format!("`{}` in line {} is gone; packets meet {} only.", first.text(), first.line, kind(step));
        let say = Say::new(
            format!("{} takes the place of {}", kind(step), kind(first)),
            reason,
            both(step, first, (&kind(step), &kind(first))),
        );
        found.at(at, "root", say);
    }
}

/// Whether a `replace` of another kind takes away a tree that commands built after the first root, and nothing happens in between.
fn replaces_tree(facts: &Facts, dev: &str, before: usize, at: usize) -> bool {
    let kind = |step: &Step| match step.tc() {
        Some(Command::Qdisc { req, .. }) => req.kind.clone().unwrap_or_default(),
        _ => String::new(),
    };
    let (first, second) = (kind(&facts.steps[before]), kind(&facts.steps[at]));
    let below = facts.steps[before + 1..at].iter().any(|s| {
        let builds =
            matches!(s.tc(), Some(Command::Class { .. } | Command::Filter { .. } | Command::Qdisc { .. }));
        s.ok() && builds && s.value(&["dev"]) == Some(dev) && !s.has("del")
    });
    let waits = facts.source.commands(&WAITS);
    let plain = |kind: &str| matches!(kind, "pfifo_fast" | "noqueue" | "mq" | "pfifo");
    let looks =
        facts.steps[before..at].iter().any(|s| s.ok() && s.program() == "tc" && super::errors::shows(s));
    first != second && (below || sch::traits(&first).is_shaper()) && !waits && !looks && !plain(&second)
}

fn deletes_all(facts: &Facts, found: &mut Found) {
    for (at, step) in facts.steps.iter().enumerate() {
        let Some(Command::Filter { dev, req }) = step.tc() else { continue };
        let selects = ["match", "flowid", "classid", "src_ip", "dst_ip", "src_port", "dst_port", "ip_proto"]
            .into_iter()
            .find(|w| step.has(w));
        let Some(word) = selects.filter(|_| req.verb == Verb::Del && req.handle == 0 && !step.has("handle"))
        else {
            continue;
        };
        // One filter of the priority before, and it is gone: that is what was meant.
        let of = |s: &Step| match s.tc() {
            Some(Command::Filter { dev: d, req: r }) => {
                s.ok()
                    && d == dev
                    && r.verb != Verb::Del
                    && r.parent == req.parent
                    && r.prio == req.prio
                    && r.protocol == req.protocol
            }
            _ => false,
        };
        if step.ok() && facts.steps[..at].iter().filter(|s| of(s)).count() == 1 {
            continue;
        }
        let place = match req.prio {
            0 => "all filters of this place".to_owned(),
            prio => format!("all filters of prio {prio}"),
        };
        found.at(at, word, Say::new(format!("this deletes {place}"), "A deletion goes by prio and handle; what it matches is not looked at. `tc filter show` names the handles.", ""));
    }
}

/// Two qdiscs one below the other, where one of them holds another without classes to be made first.
fn both(step: &Step, first: &Step, (kind, first_kind): (&str, &str)) -> String {
    let holds = |kind: &str| sch::traits(kind).holds_another();
    let (above, below) = match (holds(first_kind), holds(kind)) {
        (true, _) => (first, step),
        (_, true) => (step, first),
        _ => return String::new(),
    };
    let mut major = above.value(&["handle"]).unwrap_or("1:").to_owned();
    if !major.ends_with(':') {
        major.push(':');
    }
    let number = if above.has("handle") { String::new() } else { format!(" handle {major}") };
    let own = below.value(&["handle"]).filter(|h| *h != major).unwrap_or("10:").to_owned();
    let above = above.text().replacen(" root", &format!(" root{number}"), 1);
    let below = below.without("handle").replacen(" root", &format!(" parent {major}1 handle {own}"), 1);
    format!("{above}\n{below}")
}

fn hidden(facts: &Facts, found: &mut Found) {
    for (at, step) in
        facts.steps.iter().enumerate().filter(|s| s.1.program() == "tc" && s.1.file == facts.name)
    {
        let takes_away = |v: Verb| v == Verb::Del;
        let deletes = match step.tc() {
            Some(Command::Qdisc { req, .. }) => takes_away(req.verb),
            Some(Command::Class { req, .. }) => takes_away(req.verb),
            Some(Command::Filter { req, .. } | Command::Chain { req, .. }) => takes_away(req.verb),
            None => step.has("del") || step.has("delete"),
            _ => continue,
        };
        // That one of its kind is there already is no harm at the ingress alone.
        let ignored = facts.source.is_ignored(step.line) && !step.has("ingress") && !step.has("clsact");
        let tested = facts.source.is_tested(step.line) && !ignored;
        if deletes || !facts.source.hushes(step.line, &step.words) || tested {
            continue;
        }
        let fix = facts
            .source
            .logical(step.line)
            .replace("2>/dev/null", "")
            .replace("2> /dev/null", "")
            .replace("&>/dev/null", "")
            .replace(">/dev/null 2>&1", "")
            .trim()
            .to_owned();
        let outcome = if step.ok() {
            "It works today; the day it does not, nobody will see that."
        } else {
            "It is refused, and nobody sees that."
        };
        found.at(
            at,
            "2>/dev/null",
            Say::new("the errors of this command are hidden", outcome.to_owned(), fix),
        );
    }
}

/// Whether a step takes a qdisc, a class or a filter away.
fn takes_away(step: &Step) -> bool {
    match step.tc() {
        Some(Command::Qdisc { req, .. }) => req.verb == Verb::Del,
        Some(Command::Class { req, .. }) => req.verb == Verb::Del,
        Some(Command::Filter { req, .. }) => req.verb == Verb::Del,
        _ => false,
    }
}

/// A batch that ends at a deletion which finds nothing, with lines behind it that set something up.
fn batch_ends(facts: &Facts, found: &mut Found) {
    for (at, step) in facts.steps.iter().enumerate() {
        if step.batch != Some(false) || step.ok() || !takes_away(step) || step.guessed.is_some() {
            continue;
        }
        let rest = facts.steps[at + 1..].iter().take_while(|s| s.batch == Some(false));
        let Some(left) = rest.into_iter().find(|s| !takes_away(s)) else { continue };
        let reason = format!(
            "Where there is nothing to delete, {} fails; without `-force` tc ends here, and `{}` is never carried out.",
            step.text(),
            left.words[1..].join(" ")
        );
        found.at(
            at,
            "del",
            Say::new("the batch ends here on a fresh machine", reason, "tc -force -batch FILE"),
        );
        return;
    }
}

/// `tc qdisc del … && tc qdisc add …`: the second is carried out only where the first found something.
fn chained(facts: &Facts, found: &mut Found) {
    for (at, step) in facts.steps.iter().enumerate() {
        let own = step.file == facts.name && step.line > 0 && step.program() == "tc" && step.batch.is_none();
        if !own || step.ok() || !takes_away(step) || step.guessed.is_some() {
            continue;
        }
        let mut logical = facts.source.logical(step.line);
        let mut end = facts.source.end_of(step.line);
        while logical.trim_end().ends_with("&&") && end < facts.source.lines.len() as u32 {
            logical = format!("{} {}", logical.trim_end(), facts.source.logical(end + 1).trim());
            end = facts.source.end_of(end + 1);
        }
        // Of several deletions on the line the first that is followed by `&&`.
        let Some((before, behind)) = logical.split_once("&&") else { continue };
        let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let behind = words(behind);
        let sets = behind
            .windows(3)
            .any(|w| w[0].ends_with("tc") && matches!(w[2].as_str(), "add" | "replace" | "change"));
        let first = words(before);
        let deletes = first.iter().any(|w| matches!(w.as_str(), "del" | "delete"));
        if !deletes || !sets || logical.contains("||") || before.contains([';', '|']) {
            continue;
        }
        let reason = format!(
            "{} ends with status {} where there is nothing to delete, and `&&` leaves out all that follows.",
            step.text(),
            step.output.status
        );
        let fix = format!("{}; {}", before.trim(), behind.join(" "));
        found.at(at, "del", Say::new("nothing is set up here on a fresh machine", reason, fix));
    }
}

fn ends_early(facts: &Facts, found: &mut Found) {
    batch_ends(facts, found);
    chained(facts, found);
    if !facts.source.errexit {
        return;
    }
    for (at, step) in facts
        .steps
        .iter()
        .enumerate()
        .filter(|s| !s.1.ok() && s.1.program() == "tc" && s.1.file == facts.name)
    {
        let del = match step.tc() {
            Some(Command::Qdisc { req, .. }) => req.verb == Verb::Del,
            Some(Command::Filter { req, .. }) => req.verb == Verb::Del,
            _ => false,
        };
        // Called from further down it is ended all the same.
        let before = step.line < facts.source.errexit_from && step.calls.is_empty();
        // A call that is asked how it ended is not ended by what fails in it.
        let tested = std::iter::once(&step.line).chain(&step.calls).any(|l| facts.source.is_tested(*l));
        if del && !before && !tested {
            let logical = facts.source.logical(step.line);
            let end = facts.source.end_of(step.line);
            let text = facts.source.line(end);
            let bare = !text.contains('#');
            let len = text.chars().count() as u32;
            let edit = bare.then(|| Edit::Replace(end, len + 1, 0, " || true".to_owned()));
            let reason =
                format!("{} ends with status {}, and so does the script.", step.text(), step.output.status);
            found.at(
                at,
                "del",
                Say::new(
                    "set -e ends the script here on a fresh machine",
                    reason,
                    format!("{} || true", logical.trim()),
                )
                .edit(edit),
            );
        }
    }
}

fn undone(facts: &Facts, found: &mut Found) {
    let all = tops(facts);
    let mut stands: BTreeSet<(&str, Handle)> = BTreeSet::new();
    let mut last = None;
    for (at, dev, verb, parent) in all.iter().filter(|t| facts.steps[t.0].ok()) {
        match verb {
            Verb::Del => {
                if stands.remove(&(*dev, *parent)) {
                    last = Some(*at);
                }
            }
            _ => {
                stands.insert((dev, *parent));
            }
        }
    }
    let Some(at) = last.filter(|_| stands.is_empty()) else { return };
    // Between set-up and deletion an experiment may run, or somebody looks at what stands.
    let waits =
        facts.source.commands(&[&WAITS[..], &["curl", "wget", "select", "ssh", "nc", "timeout"]].concat());
    let script = facts.source.form == crate::source::Form::Script;
    let looks = facts.steps.iter().any(|s| s.ok() && s.program() == "tc" && super::errors::shows(s));
    let waits = waits || facts.source.calls_others();
    if script && !waits && !looks && facts.unknown.is_empty() {
        found.at(
            at,
            "del",
            Say::new(
                "the script deletes what it set up",
                "At the end no qdisc of the script is left.".to_owned(),
                "",
            ),
        );
    }
}
