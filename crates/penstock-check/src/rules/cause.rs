//! PS007, and what refusals come from: a backslash that does not continue, a variable that is not set, a handle that is taken, a parent that is not there.

use crate::environment::reads;
use crate::facts::{Facts, Step};
use crate::finding::{Edit, Found, Level, Rule, Say};
use crate::source::Form;
use crate::syntax::{Frame, Syntax};
use crate::written::tokens;
use penstock_lang::tc::Command;
use penstock_model::Handle;
use penstock_model::rtnetlink::Verb;

pub const RULES: &[Rule] = &[
    Rule {
        code: "PS007",
        severity: Level::Error,
        about: "a blank behind the backslash ends the command",
        why: "A backslash continues a command only as the last character of its line. With a blank behind it the shell ends the command there, gives it a word that is \
         one blank, and takes \
          the next line for a command of its own: `ceil: command not found`.",
        find: blank_behind,
    },
    Rule::note(
        "PS008",
        "a comment allows what is not found",
        "`# penstock: allow CODE` on the command's line, or in the comment above it, hides a finding. One for a code that does not exist hides nothing; one for a code \
         that is not found there any more \
     would hide it if it came back.",
        |_, _| {},
    ),
    Rule {
        code: "PS009",
        severity: Level::Error,
        about: "lines end in a carriage return",
        why: "A file saved on Windows ends its lines in CR and LF. To a shell CR is a character like any other: it belongs to the last word of each command, and tc refuses \
         `10mbit` with a CR behind it. `tc -batch` takes such files.",
        find: carriage_return,
    },
];

fn carriage_return(facts: &Facts, found: &mut Found) {
    if let (Form::Script, Some(line)) = (facts.source.form, facts.source.carriage_return) {
        let reason = "The shell takes the carriage return for a part of the last word.";
        found.at_line(
            line,
            1,
            0,
            Say::new("this line ends in a carriage return", reason, "sed -i 's/\\r$//' FILE"),
        );
    }
}

/// Whether a line ends in a backslash and blanks.
fn ends_in_blank(line: &str) -> bool {
    let cut = line.trim_end_matches([' ', '\t']);
    cut.len() < line.len()
        && cut.ends_with('\\')
        && !cut.ends_with("\\\\")
        && !line.trim_start().starts_with('#')
}

fn blank_behind(facts: &Facts, found: &mut Found) {
    if facts.source.form == Form::Python {
        return;
    }
    for (n, line) in facts.source.lines.iter().enumerate().filter(|l| ends_in_blank(l.1)) {
        let number = n as u32 + 1;
        let cut = line.trim_end_matches([' ', '\t']);
        let column = cut.chars().count() as u32;
        let blanks = line.chars().count() as u32 - column;
        let reason = "The shell ends the command at this line; the next line is taken for a command.";
        let say = Say::new("a blank behind the backslash ends the command here", reason, cut.trim_start());
        found.at_line(
            number,
            column,
            1 + blanks,
            say.edit(Some(Edit::Replace(number, column + 1, blanks, String::new()))),
        );
    }
}

/// Whether a function that nobody calls makes by itself the root qdisc of the device of which a class or a filter is refused there, and the refusal
/// hangs on nothing that another run has left.
pub fn is_whole_function(facts: &Facts, at: usize, step: &Step) -> bool {
    let of_tree = matches!(step.tc(), Some(Command::Class { .. } | Command::Filter { .. }));
    let made = |s: &Step| match s.tc() {
        Some(Command::Qdisc { req, .. }) => {
            let root = matches!(req.parent, Handle::ROOT | Handle::INGRESS);
            s.ok()
                && root
                && req.verb != Verb::Del
                && s.calls == step.calls
                && s.value(&["dev"]) == step.value(&["dev"])
        }
        _ => false,
    };
    facts.library && of_tree && !step.output.stderr.contains("exist") && facts.steps[..at].iter().any(made)
}

/// Whether all that a command needs stands in the same arm or body as it does: there the script makes the root qdisc of its device, and every class, here or nowhere.
pub fn is_whole_arm(facts: &Facts, at: usize, step: &Step) -> bool {
    let said = &step.output.stderr;
    if step.file != facts.name
        || !step.calls.is_empty()
        || !(said.contains("class not found") || said.contains("Parent Qdisc doesn't"))
    {
        return false;
    }
    let syntax = Syntax::of(&facts.source.runnable());
    let frames = |line: u32| {
        let mut here = syntax.commands.iter().filter(|c| c.network && (c.line..=c.last).contains(&line));
        here.next().map(|c| &c.frames)
    };
    let Some(own) = frames(step.line) else { return false };
    // As the script writes it: two devices that nobody knows are two.
    let written = |s: &Step| {
        let text = facts.source.logical(s.line);
        text.split_whitespace().skip_while(|w| *w != "dev").nth(1).map(str::to_owned)
    };
    let made = |s: &Step| match s.tc() {
        Some(Command::Qdisc { req, .. }) => {
            s.ok()
                && req.parent == Handle::ROOT
                && req.verb != Verb::Del
                && s.file == step.file
                && written(s) == written(step)
                && frames(s.line) == Some(own)
        }
        _ => false,
    };
    let has =
        |c: &crate::syntax::Command, words: &[&str]| c.words.iter().any(|w| words.contains(&w.as_str()));
    let trees = syntax.commands.iter();
    let trees =
        trees.filter(|c| c.network && has(c, &["class", "qdisc"]) && !has(c, &["del", "delete", "show"]));
    let functions = own.iter().any(|f| matches!(f, Frame::Function(_)));
    !functions && facts.steps[..at].iter().any(made) && trees.into_iter().all(|c| c.frames == *own)
}

/// Whether nothing of a command is unknown but its device.
pub fn is_of_a_device(step: &Step) -> bool {
    step.guessed.as_ref().is_none_or(|g| {
        let dev = step.words.iter().position(|w| w == "dev").map(|at| at + 1);
        !g.deep && !g.whole && g.words.iter().all(|at| Some(*at) == dev)
    })
}

/// Whether a command is cut off by a blank behind a backslash: that is said by itself.
pub fn is_cut_off(facts: &Facts, step: &Step) -> bool {
    step.file == facts.name && ends_in_blank(facts.source.line(facts.source.end_of(step.line)))
}

/// Variables in the command's text that nothing sets, so that there is no word where one is expected.
pub fn unset(facts: &Facts, step: &Step) -> Option<String> {
    if step.file != facts.name || facts.source.form != Form::Script {
        return None;
    }
    let all = tokens(&facts.source, step.line, facts.source.end_of(step.line));
    let text = facts.source.lines.join("\n");
    all.iter().find_map(|token| {
        let bare = token.text.trim_matches('"');
        let name = bare.strip_prefix('$')?;
        let name = name.strip_prefix('{').and_then(|n| n.strip_suffix('}')).unwrap_or(name);
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        // `NAME=`, `for NAME in`, `read A NAME`, `getopts ab NAME`, `printf -v NAME`, and what a sourced file may set.
        let sets = |line: &str| {
            let words: Vec<&str> =
                line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).collect();
            let command = |w: &&str| {
                matches!(
                    *w,
                    "for" | "read" | "getopts" | "printf" | "mapfile" | "readarray" | "eval" | "source" | "."
                )
            };
            line.contains(&format!("{name}="))
                || line.contains(&format!("{name}+="))
                || line.contains(&format!("${{{name}:="))
                || words.iter().any(command) && words.contains(&name)
                || words.iter().any(|w| matches!(*w, "source" | "eval"))
                || line.trim_start().starts_with(". ")
        };
        (plain && !facts.given.contains(name) && !text.lines().any(sets)).then(|| name.to_owned())
    })
}

/// The command that made what is in the way: before a step, the last that made this handle or class on this device.
fn maker<'a>(facts: &'a Facts, at: usize, is: &dyn Fn(&Command) -> bool) -> Option<&'a Step> {
    facts.steps[..at].iter().rev().find(|s| s.ok() && s.tc().is_some_and(is))
}

/// What is there on a device before a step: the handles of qdiscs that commands made.
fn handles(facts: &Facts, at: usize, dev: &str) -> Vec<String> {
    let mut all: Vec<Handle> = Vec::new();
    for step in facts.steps[..at].iter().filter(|s| s.ok()) {
        if let Some(Command::Qdisc { dev: Some(d), req }) = step.tc()
            && d == dev
        {
            match req.verb {
                Verb::Del if matches!(req.parent, Handle::ROOT) => all.clear(),
                Verb::Del => {}
                _ => all.extend((req.handle != Handle::UNSPEC).then_some(req.handle)),
            }
        }
    }
    all.sort();
    all.dedup();
    all.iter().map(ToString::to_string).collect()
}

/// The cause of a refusal in words, and what to write instead; `None` where the tool's own words are all there is.
pub fn cause(facts: &Facts, at: usize, step: &Step) -> Option<(String, String)> {
    if let Some(name) = unset(facts, step) {
        let meant = facts.misspelt.get(&name);
        let meant = meant.map_or(String::new(), |meant| format!(" Did you mean `${meant}`?"));
        return Some((
            format!("`${name}` is not set anywhere, so there is no word in its place.{meant}"),
            String::new(),
        ));
    }
    // A name within a word: `${DWON}kbit`.
    let text = facts.source.logical(step.line);
    let within = |name: &&String| step.file == facts.name && reads(&text, name).next().is_some();
    if let Some(name) = facts.misspelt.keys().find(within) {
        let meant = &facts.misspelt[name];
        return Some((
            format!(
                "`${name}` is not set anywhere, so there is nothing in its place. Did you mean `${meant}`?"
            ),
            text.trim()
                .replace(&format!("${{{name}}}"), &format!("${{{meant}}}"))
                .replace(&format!("${name}"), &format!("${meant}")),
        ));
    }
    let stderr = step.output.stderr.as_str();
    if let Some(why) = excluding(step, stderr) {
        return Some((why, String::new()));
    }
    if let Some(said) = words(step, stderr) {
        return Some(said);
    }
    let told = |s: &Step| format!("line {} (`{}`)", s.line, s.text());
    match step.tc()? {
        Command::Qdisc { dev: Some(dev), req } => {
            let taken = stderr.contains("xclusivity")
                || stderr.contains("File exists")
                || stderr.contains("already exists")
                || stderr.contains("Cannot move");
            let same = |c: &Command| match c {
                Command::Qdisc { dev: Some(d), req: r } => {
                    d == dev
                        && r.verb != Verb::Del
                        && (r.parent == req.parent || req.handle != Handle::UNSPEC && r.handle == req.handle)
                }
                _ => false,
            };
            if taken && let Some(before) = maker(facts, at, &same) {
                let place = match req.parent {
                    Handle::ROOT => format!("the root of {dev}"),
                    Handle::INGRESS => format!("the ingress of {dev}"),
                    parent => format!("{parent} on {dev}"),
                };
                let by_handle =
                    matches!(before.tc(), Some(Command::Qdisc { req: r, .. }) if r.parent != req.parent);
                let what = if by_handle { format!("the handle {} on {dev}", req.handle) } else { place };
                let fix = match by_handle {
                    true => String::new(),
                    false => step.with_word("add", "replace"),
                };
                return Some((format!("{} has {what} already.", capital(&told(before))), fix));
            }
            if req.verb == Verb::Change && !matches!(req.parent, Handle::UNSPEC) {
                let kinds = |c: &Command| matches!(c, Command::Qdisc { dev: Some(d), req: r } if d == dev && r.parent == req.parent && r.verb != Verb::Del);
                return Some(match maker(facts, at, &kinds) {
                    Some(before) => (
                        format!("`change` takes the kind that is there; {} made it.", told(before)),
                        step.with_word("change", "replace"),
                    ),
                    None => (
                        format!("`change` needs a qdisc that is there, and no command has put one on {dev}."),
                        step.with_word("change", "replace"),
                    ),
                });
            }
            no_parent(facts, at, dev, req.parent)
        }
        Command::Class { dev: Some(dev), req } => {
            let same = |c: &Command| matches!(c, Command::Class { dev: Some(d), req: r } if d == dev && r.classid == req.classid && r.verb != Verb::Del);
            if stderr.contains("File exists")
                && let Some(before) = maker(facts, at, &same)
            {
                let turn = if before.line == step.line {
                    " A turn of the loop before this one made it."
                } else {
                    ""
                };
                return Some((
                    format!("{} is made by {} already.{turn}", req.classid, told(before)),
                    String::new(),
                ));
            }
            if req.verb == Verb::Change && maker(facts, at, &same).is_none() {
                return Some((
                    format!("`change` needs a class that is there, and no command makes {}.", req.classid),
                    step.with_word("change", "replace"),
                ));
            }
            no_parent(facts, at, dev, req.parent).or_else(|| no_parent(facts, at, dev, req.classid))
        }
        Command::Filter { dev: Some(dev), req } => {
            let group = |c: &Command| {
                matches!(c, Command::Filter { dev: Some(d), req: r } if d == dev && r.parent == req.parent && r.prio == req.prio && r.prio != 0
                    && r.verb != Verb::Del && r.chain == req.chain && (r.kind != req.kind || r.protocol != req.protocol))
            };
            if let Some(before) = maker(facts, at, &group) {
                let other = facts.steps[..at].iter().filter_map(|s| match s.tc() {
                    Some(Command::Filter { dev: Some(d), req: r }) if d == dev => Some(r.prio),
                    _ => None,
                });
                let free = other.max().unwrap_or(req.prio).saturating_add(1);
                let name = ["prio", "pref", "priority", "preference"]
                    .into_iter()
                    .find(|n| step.has(n))
                    .unwrap_or("prio");
                return Some((
                    format!(
                        "All filters of one priority have one protocol and one kind; {} has prio {} with others.",
                        told(before),
                        req.prio
                    ),
                    step.with(name, &free.to_string()),
                ));
            }
            no_parent(facts, at, dev, req.parent)
        }
        _ => None,
    }
}

/// What is wrong with a command's own words, where tc's sentence does not say.
fn words(step: &Step, stderr: &str) -> Option<(String, String)> {
    let next = |name: &str| step.value(&[name]);
    if stderr.contains("Object \"tc\" is unknown") {
        return Some((
            "Each line of a batch begins with the object; the word `tc` belongs to the shell.".to_owned(),
            step.words.iter().skip_while(|w| *w == "tc").cloned().collect::<Vec<_>>().join(" "),
        ));
    }
    if stderr.contains("Illegal \"match\"")
        && let Some((name, number)) = next("protocol").and_then(|_| {
            let at = step.words.windows(3).position(|w| w[0] == "match" && w[2] == "protocol")?;
            let name = step.words.get(at + 3)?;
            let number = match name.to_ascii_lowercase().as_str() {
                "icmp" => 1,
                "tcp" => 6,
                "udp" => 17,
                "gre" => 47,
                "esp" => 50,
                "icmpv6" | "ipv6-icmp" => 58,
                "sctp" => 132,
                _ => return None,
            };
            Some((name.clone(), number))
        })
    {
        return Some((
            format!("u32 takes the protocol as a number: {name} is {number}."),
            step.with_word(&name, &number.to_string()),
        ));
    }
    // `prio_tune`: a priority's band must be there.
    if let Some(Command::Qdisc { req, .. }) = step.tc()
        && req.kind.as_deref() == Some("prio")
        && let Some(bands) = next("bands").and_then(|b| b.parse::<u32>().ok())
        && bands == 2
        && !step.has("priomap")
    {
        return Some((
            "The priomap that there is without the word names band 2, and two bands are 0 and 1.".to_owned(),
            step.text().replacen("bands 2", "bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1", 1),
        ));
    }
    None
}

/// tc refuses a second match on the same bits with another value: most people mean one or the other.
fn excluding(step: &Step, stderr: &str) -> Option<String> {
    if !stderr.contains("Illegal \"match\"") {
        return None;
    }
    let places: Vec<usize> = step.words.iter().enumerate().filter(|w| w.1 == "match").map(|w| w.0).collect();
    let words = |at: usize| Some((step.words.get(at + 1)?, step.words.get(at + 2)?, step.words.get(at + 3)?));
    let clash = places.iter().enumerate().find_map(|(n, &b)| {
        let b = words(b)?;
        let a =
            places[..n].iter().filter_map(|&a| words(a)).find(|a| (a.0, a.1) == (b.0, b.1) && a.2 != b.2)?;
        Some((a, b))
    });
    let ((ip, name, first), (_, _, second)) = clash?;
    Some(format!(
        "`match {ip} {name} {first}` and `match {ip} {name} {second}` must both hold, and no packet has both; write two filters."
    ))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// That the qdisc of a parent is not there.
fn no_parent(facts: &Facts, at: usize, dev: &str, parent: Handle) -> Option<(String, String)> {
    if parent == Handle::UNSPEC
        || parent == Handle::ROOT
        || parent == Handle::INGRESS
        || parent.major() == 0xffff
    {
        let needs = parent.major() == 0xffff && parent != Handle::ROOT;
        let any = facts.steps[..at].iter().any(|s| {
            s.ok()
                && s.value(&["dev"]) == Some(dev)
                && (s.has("ingress") || s.has("clsact") || s.has("ffff:"))
        });
        return (needs && !any).then(|| {
            (
                format!("{dev} has no ingress qdisc; no command before this makes one."),
                format!("tc qdisc add dev {dev} handle ffff: ingress"),
            )
        });
    }
    let there = handles(facts, at, dev);
    if there.is_empty() {
        return Some((
            format!("{dev} has no qdisc of the script's; no command before this makes {}.", parent.qdisc()),
            String::new(),
        ));
    }
    let known = there.iter().any(|h| *h == parent.qdisc().to_string());
    (!known).then(|| {
        (format!("{dev} has no qdisc {}; it has {}.", parent.qdisc(), there.join(", ")), String::new())
    })
}
