//! Reads a shaping script: what tc and the kernel would refuse, and likely mistakes.
//!
//! The script runs on a virtual machine ([`penstock_shell`], [`penstock_host`]); what its commands gave and what they left is
//! [`Facts`]; each rule of [`rules::all`] is a function over them.
//!
//! ```
//! use penstock_check::{Settings, check};
//! use penstock_shell::Script;
//! let text = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
//!             tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
//!             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit\n";
//! let script = Script { text: text.to_owned(), name: "x.sh".to_owned(), ..Script::default() };
//! let findings = check(&script, &Settings::default());
//! assert_eq!((findings[0].code, findings[0].line), ("PS101", 3));
//! ```

mod baseline;
mod card;
mod config;
mod coverage;
mod documents;
mod elsewhere;
mod embedded;
mod environment;
pub mod explain;
mod explore;
mod facts;
mod filters;
mod finding;
mod fix;
pub mod form;
mod holders;
mod images;
mod lent;
mod machine;
mod marks;
mod names;
mod python;
mod recipes;
mod repeats;
mod rights;
pub mod rules;
mod source;
mod sourced;
mod standing;
mod syntax;
mod templates;
mod uci;
mod unfollowed;
mod units;
mod unknown;
mod variables;
mod waiting;
mod watch;
mod written;
mod yaml;

pub use baseline::Baseline;
pub use config::{Config, Fails};
pub use coverage::{Coverage, Missed};
pub use facts::{Device, Facts, Step};
pub use finding::{Edit, Finding, Level, Rule, Say};
pub use fix::{Fix, Which, class_of, difference, fixed};
pub use sourced::{Sourced, SourcedWord, sourced};

use penstock_model::Kernel;
use penstock_shell::Script;
use std::collections::BTreeSet;

/// What a script is read against.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// The kernel it is to run on.
    pub kernel: Kernel,
    /// The device in question; whatever the script names where none is said.
    pub dev: Option<String>,
    /// The rate of that device's link, bytes per second.
    pub rate: Option<u64>,
}

/// What was found in a script, and how much of it was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// In the order of places.
    pub findings: Vec<Finding>,
    /// How much was looked at.
    pub coverage: Coverage,
    /// Lines of files that the script sources whose commands it has carried out as it stands: these files with their lines.
    pub carried_out: BTreeSet<(String, u32)>,
    /// Lines of the script whose commands were carried out.
    pub lines: BTreeSet<u32>,
}

impl Answer {
    /// Takes in what was found in another part of the same file.
    fn take(&mut self, one: Answer) {
        self.findings.extend(one.findings);
        self.lines.extend(one.lines);
        let (of, whole) = (one.coverage, &mut self.coverage);
        whole.commands += of.commands;
        whole.looked_at += of.looked_at;
        whole.runs += of.runs;
        whole.missed.extend(of.missed);
        whole.unknown.extend(of.unknown);
        whole.parts.extend(of.parts);
        whole.environment.extend(of.environment);
        whole.files.extend(of.files);
    }
    /// 0 nothing found but notes, 1 warnings, 2 errors; 3 where network commands were not looked at and no error was found.
    pub fn exit_status(&self) -> u8 {
        match exit_status(&self.findings) {
            2 => 2,
            _ if !self.coverage.is_whole() => 3,
            status => status,
        }
    }
}

/// All that is found, in the order of places, and how much was looked at. What the script allows by comment is left out.
///
/// Of a systemd unit, a Dockerfile, YAML or Markdown (by the script's name) the commands in it are read.
/// Of OpenWrt's configuration (UCI) that of sqm-scripts and of qosmate is read; of other UCI and of JSON it is said that they are not.
pub fn examine(script: &Script, settings: &Settings) -> Answer {
    examine_with(script, &[], settings)
}

/// The same of a script and of those files that it and they source ([`sourced`] has the words): what is found in them stands at their own names and lines.
pub fn examine_with(script: &Script, beside: &[Sourced], settings: &Settings) -> Answer {
    if let Some(read) = uci::read(&script.name, &script.text) {
        return configuration(script, settings, read);
    }
    let Some(inside) = holders::scripts(&script.name, &script.text) else {
        let Some(text) = documents::filled_in(&script.name, &script.text) else {
            return with_documents(script, beside, settings);
        };
        let mut answer = examined(&Script { text, ..script.clone() }, beside, settings);
        // A change would be made to what is filled in later.
        answer.findings.iter_mut().for_each(|f| f.edits.clear());
        return answer;
    };
    let mut all = Answer::default();
    let unread = holders::unread(&script.name, &script.text, &inside);
    let mut env = script.env.clone();
    let own = variables::of(&script.name, &script.text);
    env.extend(own.into_iter().filter(|(name, _)| script.env.iter().all(|e| e.0 != *name)));
    for text in inside {
        let mut one = examined(&Script { text, env: env.clone(), ..script.clone() }, beside, settings);
        if holders::is_lower(&script.name, &script.text) {
            let higher = |line: u32| line - u32::from(line > 1);
            one.findings.iter_mut().for_each(|f| f.raise(higher));
        }
        all.take(one);
    }
    for finding in &mut all.findings {
        for said in [&mut finding.message, &mut finding.reason, &mut finding.fix] {
            *said = holders::with_specifiers(said, &script.text);
        }
        for edit in &mut finding.edits {
            if let Edit::Replace(_, _, _, by) = edit {
                *by = holders::with_specifiers(by, &script.text);
            }
        }
    }
    // What a file deletes in one place it may add in another (`pre-down`, `ExecStop=`).
    let deletes = |place: &str| {
        let own = |l: &str| l.contains("qdisc del") && l.contains(place) && !l.trim_start().starts_with('#');
        script.text.lines().any(own)
    };
    let deleted = |f: &Finding| {
        let of = |place: &&str| f.message.contains(&format!("the {place} qdisc")) && deletes(place);
        f.code == "PS250" && ["root", "ingress", "clsact"].iter().any(of)
    };
    // Recipes are called one by one.
    let recipes = holders::has_recipes(&script.name, &script.text);
    all.findings.retain(|f| recipes || !deleted(f));
    all.coverage.commands += unread.len();
    all.coverage.missed.extend(unread);
    all.findings.extend(unshelled(script));
    let by_letter = by_letter(script);
    // What follows of it is not said as well.
    all.findings.retain(|f| !by_letter.iter().any(|l| l.line == f.line));
    all.findings.extend(by_letter);
    all.findings.extend(unprivileged(script, rights::without(&script.name, &script.text)));
    all.findings.extend(built(script));
    all.findings.extend(ends_early(script));
    repeats::judge(script, &mut all.findings);
    // Each recipe of a Makefile is called for itself.
    if holders::has_recipes(&script.name, &script.text) {
        all.findings.retain(|f| f.code != "PS253");
    }
    all.findings.sort();
    // What stands around a command is not the script's: nothing is put before a line.
    let within = |e: &Edit| matches!(e, Edit::Replace(..));
    all.findings.iter_mut().filter(|f| !f.edits.iter().all(within)).for_each(|f| f.edits.clear());
    all
}

/// A shell script, and those here-documents of it that are scripts for another machine or for another time.
fn with_documents(script: &Script, beside: &[Sourced], settings: &Settings) -> Answer {
    let mut all = examined(script, beside, settings);
    if source::Source::new(&script.text).form == source::Form::Python {
        return all;
    }
    all.findings.extend(unprivileged(script, rights::of_shell(&script.text)));
    for document in documents::here(&script.text) {
        // A file that the script has written and then run has been looked at.
        if all.lines.range(document.lines.clone()).next().is_some() {
            continue;
        }
        let of = |text: String| examined(&Script { text, ..script.clone() }, &[], settings);
        let texts =
            holders::scripts(&document.name, &document.text).unwrap_or_else(|| vec![document.text.clone()]);
        for text in texts {
            let mut one = of(text);
            one.findings.retain(|f| document.lines.contains(&f.line));
            if document.filled_in {
                one.findings.iter_mut().for_each(|f| f.edits.clear());
                one.coverage.environment.clear();
            }
            one.coverage.unknown.retain(|u| document.lines.contains(&u.1));
            all.take(one);
        }
    }
    all.findings.sort();
    all
}

/// What only a shell understands, in commands of such a file that no shell reads.
fn unshelled(script: &Script) -> Vec<Finding> {
    let Some(rule) = rules::all().find(|r| r.code == "PS012") else { return Vec::new() };
    let source = source::Source::new(&script.text);
    let file = if script.name.is_empty() { "script".to_owned() } else { script.name.clone() };
    let one = |(line, column, len, word): (u32, u32, u32, String)| Finding {
        file: file.clone(),
        line,
        column,
        len,
        code: rule.code,
        severity: rule.severity,
        message: format!("no shell reads this line: `{word}` is given to the program"),
        reason: "The program takes it for one of its own words, and mostly refuses the command.".to_owned(),
        fix: format!(
            "sh -c '{}'",
            source.line(line).trim_start().split_once([':', '=']).map_or("", |l| l.1.trim())
        ),
        edits: Vec::new(),
        safe: false,
        begins: line,
    };
    let allowed = |f: &Finding| {
        source.allowed(f.line).contains(rule.code) || source.allowed_everywhere().contains(rule.code)
    };
    let whole = |(line, column, len): (u32, u32, u32)| Finding {
        message: "the whole command is one word".to_owned(),
        reason: "It is taken for the name of a program: no such file or directory.".to_owned(),
        fix: r#"["sh", "-c", "…"]"#.to_owned(),
        ..one((line, column, len, String::new()))
    };
    let words = holders::one_word(&script.name, &script.text).into_iter().map(whole);
    let unshelled = holders::unshelled(&script.name, &script.text).into_iter().map(one);
    unshelled.chain(words).filter(|f| !allowed(f)).collect()
}

/// Variables of a Makefile whose names stand without parentheses.
fn by_letter(script: &Script) -> Vec<Finding> {
    let Some(rule) = rules::all().find(|r| r.code == "PS015") else { return Vec::new() };
    let source = source::Source::new(&script.text);
    let one = |(line, column, name): (u32, u32, String)| Finding {
        file: if script.name.is_empty() { "script".to_owned() } else { script.name.clone() },
        line,
        column,
        len: name.chars().count() as u32 + 1,
        code: rule.code,
        severity: rule.severity,
        message: format!("make reads ${name} as $({}){}", &name[..1], &name[1..]),
        reason: "A name of more than one letter stands in parentheses.".to_owned(),
        fix: source.line(line).trim().replacen(&format!("${name}"), &format!("$({name})"), 1),
        edits: vec![Edit::Replace(line, column, name.chars().count() as u32 + 1, format!("$({name})"))],
        safe: false,
        begins: line,
    };
    let allowed = |f: &Finding| source.allowed(f.line).contains(rule.code);
    holders::bare_names(&script.name, &script.text).into_iter().map(one).filter(|f| !allowed(f)).collect()
}

/// Commands of tc in a Dockerfile's `RUN`.
fn built(script: &Script) -> Vec<Finding> {
    if !holders::is_dockerfile_by(&script.name, &script.text) {
        return Vec::new();
    }
    let said = |line: u32| {
        let message = "what this sets up is not in the image".to_owned();
        let reason = "An image keeps files; the qdiscs go with the container in which `RUN` is carried out."
            .to_owned();
        let fix = "ENTRYPOINT [\"sh\", \"-c\", \"tc … && exec \\\"$@\\\"\", \"--\"]".to_owned();
        of_text(script, "PS340", (line, 0, 0), (message, reason, fix), Vec::new())
    };
    images::built(&script.text).into_iter().filter_map(said).collect()
}

/// The deletion at which the start of a unit of systemd ends.
fn ends_early(script: &Script) -> Option<Finding> {
    let (line, column) =
        units::ends_at(&script.text).filter(|_| holders::is_unit(&script.name, &script.text))?;
    let text = script.text.lines().nth(line as usize - 1)?.trim();
    let message = "the unit's start ends here on a fresh machine".to_owned();
    let reason = "Where there is nothing to delete tc fails, and systemd leaves out the commands behind it."
        .to_owned();
    let fix = text.replacen('=', "=-", 1);
    let edit = Edit::Replace(line, column, 0, "-".to_owned());
    of_text(script, "PS252", (line, column, 0), (message, reason, fix), vec![edit])
}

/// A finding that a file's text alone has; none where it is allowed by comment.
fn of_text(
    script: &Script,
    code: &str,
    (line, column, len): (u32, u32, u32),
    (message, reason, fix): (String, String, String),
    edits: Vec<Edit>,
) -> Option<Finding> {
    let rule = rules::all().find(|r| r.code == code)?;
    let source = source::Source::new(&script.text);
    if source.allowed(line).contains(code) || source.allowed_everywhere().contains(code) {
        return None;
    }
    let file = if script.name.is_empty() { "script".to_owned() } else { script.name.clone() };
    let (code, severity) = (rule.code, rule.severity);
    let safe = !edits.is_empty();
    Some(Finding { file, line, column, len, code, severity, message, reason, fix, edits, safe, begins: line })
}

/// Commands of containers that nobody gives the right to change their network.
fn unprivileged(script: &Script, lines: Vec<u32>) -> Vec<Finding> {
    let Some(rule) = rules::all().find(|r| r.code == "PS334") else { return Vec::new() };
    let source = source::Source::new(&script.text);
    let file = if script.name.is_empty() { "script".to_owned() } else { script.name.clone() };
    let one = |line: u32| Finding {
        file: file.clone(),
        line,
        column: 0,
        len: 0,
        code: rule.code,
        severity: rule.severity,
        message: "this container may not change its network".to_owned(),
        reason: "Nothing gives it CAP_NET_ADMIN: the kernel answers `Operation not permitted`.".to_owned(),
        fix: match () {
            () if script.text.contains("apiVersion:") => {
                "securityContext: {capabilities: {add: [NET_ADMIN]}}".to_owned()
            }
            () if script.text.contains("services:") => "cap_add: [NET_ADMIN]".to_owned(),
            () => "docker run --cap-add NET_ADMIN …".to_owned(),
        },
        edits: Vec::new(),
        safe: false,
        begins: line,
    };
    let allowed = |f: &Finding| {
        source.allowed(f.line).contains(rule.code) || source.allowed_everywhere().contains(rule.code)
    };
    lines.into_iter().map(one).filter(|f| !allowed(f)).collect()
}

/// Whether a file that is no script itself (a systemd unit, a Dockerfile, YAML, Markdown, by its name) has network commands in it.
pub fn holds_commands(name: &str, text: &str) -> bool {
    if matches!(uci::read(name, text), Some(uci::Read::Known(_))) {
        return true;
    }
    let any = |text: &String| text.lines().any(holders::is_command);
    holders::scripts(name, text).is_some_and(|all| all.iter().any(any))
}

/// Of a file of configuration: the same rules over facts of no command.
fn configuration(script: &Script, settings: &Settings, read: uci::Read) -> Answer {
    let coverage = uci::coverage(&read, &script.text);
    let uci::Read::Known(known) = read else { return Answer { coverage, ..Answer::default() } };
    let mut facts = facts(&Script { text: String::new(), ..script.clone() }, settings);
    facts.source = source::Source::new(&script.text);
    facts.name.clone_from(&script.name);
    facts.uci = Some(known);
    Answer { findings: findings(&facts), coverage, ..Answer::default() }
}

/// Of a file that is a script as a whole, and of what its mistakes hide.
fn examined(script: &Script, beside: &[Sourced], settings: &Settings) -> Answer {
    let mut answer = examined_as_it_is(script, beside, settings);
    // A command that was cut off, or whose rate is eight times the one meant, shows the rest only when it is put right.
    let hides = |f: &&Finding| {
        matches!(f.code, "PS007" | "PS114") && f.safe && !f.edits.is_empty() && f.file == script.name
    };
    let hiding: Vec<Finding> = answer.findings.iter().filter(hides).cloned().collect();
    if hiding.is_empty() {
        return answer;
    }
    let (text, _) = fixed(&script.text, &hiding, Which::Safe);
    let right = examined_as_it_is(&Script { text, ..script.clone() }, beside, settings);
    let shown = |f: &Finding| answer.findings.iter().any(|k| place(k) == place(f) || gist(k) == gist(f));
    let new = |f: &Finding| f.code != "PS008" && !shown(f);
    let new: Vec<Finding> = right.findings.into_iter().filter(new).collect();
    answer.findings.extend(new);
    answer.findings.sort();
    answer
}

/// What a finding says, whatever its line.
fn gist(f: &Finding) -> (&'static str, &str, &str) {
    (f.code, &f.file, &f.message)
}

fn examined_as_it_is(script: &Script, beside: &[Sourced], settings: &Settings) -> Answer {
    let mut explored = explore::explore(script, beside, settings);
    let mut all = findings(&explored.facts);
    let mut lines: BTreeSet<(String, u32)> = looked_at(&explored.facts);
    for there in &mut explored.others {
        there.judged.clone_from(&lines);
        there.spaces.iter_mut().for_each(|s| s.judged.clone_from(&lines));
        let there = &*there;
        // A line that was reached without anything decided is judged by that.
        let new = findings(there).into_iter().filter(|f| !lines.contains(&(f.file.clone(), f.begins)));
        let known: BTreeSet<_> = all.iter().map(place).collect();
        let new: Vec<Finding> = new.filter(|f| !known.contains(&place(f))).collect();
        all.extend(new);
        lines.extend(looked_at(there));
    }
    all.extend(repeated(&explored));
    all.extend(allowances(&explored, &all));
    let whole = &explored.whole;
    all = all.into_iter().map(|f| whole.told(f)).collect();
    all.sort();
    let natural = looked_at(&explored.facts);
    let elsewhere = |(_, line): &(String, u32)| match whole.place(*line) {
        (Some(file), line) => Some((file.to_owned(), line)),
        _ => None,
    };
    let carried_out = natural.iter().filter_map(elsewhere).collect();
    let here = |(file, line): &(String, u32)| (*file == script.name || file.is_empty()).then_some(*line);
    let lines = natural.iter().filter_map(here).collect();
    Answer { findings: all, coverage: explored.coverage, carried_out, lines }
}

/// What a script's further calls find of what the first has left. Where stopping leaves something, restarting need not be looked at.
fn repeated(explored: &explore::Explored) -> Vec<Finding> {
    for facts in &explored.turns {
        let mut found = finding::Found::new(facts);
        rules::all().filter(|r| rules::is_of_turns(r.code)).for_each(|rule| found.run(rule));
        let mut all = found.into_findings();
        let source = &facts.source;
        let allowed = |f: &Finding| {
            source.allowed_everywhere().contains(f.code)
                || source.allowed(f.begins).contains(f.code)
                || source.allowed(f.line).contains(f.code)
        };
        all.retain(|f| !allowed(f));
        if !all.is_empty() {
            return all;
        }
    }
    Vec::new()
}

/// What is said of comments that allow what is not found, or what is no code.
fn allowances(explored: &explore::Explored, known: &[Finding]) -> Vec<Finding> {
    let facts = &explored.facts;
    let comments = facts.source.allowances();
    if comments.is_empty() {
        return Vec::new();
    }
    // What would be found without them.
    let every: Vec<Finding> = std::iter::once(facts)
        .chain(&explored.others)
        .flat_map(|f| f.spaces.iter().chain([f]))
        .flat_map(|f| judged(f, false))
        .collect();
    let whole = explored.coverage.is_whole() && !facts.partial && facts.stopped.is_none();
    let mut out = Vec::new();
    for (line, everywhere, code) in comments {
        let is_code = rules::all().any(|r| r.code == code);
        let here = |f: &Finding| {
            let at = |n: u32| facts.source.allowing(n).contains(&line);
            f.code == code && (everywhere || f.file == facts.name && (at(f.begins) || at(f.line)))
        };
        let message = match is_code {
            false => format!("{code} is not a code of check"),
            true if whole && !every.iter().any(here) => format!("{code} is allowed here and is not found"),
            true => continue,
        };
        let text = facts.source.line(line);
        let column = text.find(&code).map_or(0, |at| text[..at].chars().count() as u32 + 1);
        let reason = match is_code {
            false => "`penstock check --explain` knows the codes; the comment allows nothing.",
            true => "The comment would hide it if it came back.",
        };
        let Some(rule) = rules::all().find(|r| r.code == "PS008") else { continue };
        let len = code.chars().count() as u32;
        let one = Finding {
            file: facts.name.clone(),
            line,
            column,
            len,
            code: rule.code,
            severity: rule.severity,
            message,
            reason: reason.to_owned(),
            fix: String::new(),
            edits: Vec::new(),
            safe: false,
            begins: line,
        };
        let allowed = facts.source.allowed_everywhere().contains(rule.code);
        if !allowed && !known.iter().any(|k| k.code == one.code && (k.line, k.column) == (line, column)) {
            out.push(one);
        }
    }
    out
}

/// The lines of the commands that were carried out.
fn looked_at(facts: &Facts) -> BTreeSet<(String, u32)> {
    let all = std::iter::once(facts).chain(&facts.spaces);
    all.flat_map(|f| f.steps.iter().map(|s| (s.file.clone(), s.line))).collect()
}

/// What [`examine`] finds.
pub fn check(script: &Script, settings: &Settings) -> Vec<Finding> {
    examine(script, settings).findings
}

/// The same from facts that are there, those of all namespaces.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let mut all = in_place(facts);
    let mut known: BTreeSet<_> = all.iter().map(place).collect();
    for there in &facts.spaces {
        for mut finding in in_place(there).into_iter().filter(|f| !known.contains(&place(f))) {
            let carried = |line: &str| match line.split_whitespace().next() {
                Some(first) if penstock_host::Program::is_of_scripts(first) => {
                    format!("{} {line}", there.prefix)
                }
                _ => line.to_owned(),
            };
            finding.fix = finding.fix.lines().map(carried).collect::<Vec<_>>().join("\n");
            all.push(finding);
        }
        known.extend(all.iter().map(place));
    }
    all.sort();
    all
}

/// What tells two findings apart where several namespaces are looked at.
fn place(f: &Finding) -> (&'static str, String, u32, u32) {
    (f.code, f.file.clone(), f.line, f.column)
}

fn in_place(facts: &Facts) -> Vec<Finding> {
    judged(facts, true)
}

/// What is found in one namespace; with `comments` without what comments allow.
fn judged(facts: &Facts, comments: bool) -> Vec<Finding> {
    let found = facts.found.get_or_init(|| {
        let mut found = finding::Found::new(facts);
        rules::all().for_each(|rule| found.run(rule));
        found.into_findings()
    });
    let everywhere = facts.source.allowed_everywhere();
    // What is said of one command by itself holds where others are not known.
    const ALONE: [&str; 37] = [
        "PS001", "PS005", "PS006", "PS007", "PS015", "PS103", "PS112", "PS114", "PS115", "PS121", "PS146",
        "PS147", "PS150", "PS153", "PS157", "PS162", "PS177", "PS183", "PS185", "PS190", "PS192", "PS194",
        "PS196", "PS197", "PS234", "PS235", "PS255", "PS263", "PS280", "PS281", "PS291", "PS297", "PS300",
        "PS301", "PS302", "PS309", "PS312",
    ];
    // Where nothing is unknown but how much, which classes there are is known.
    const WHICH: [&str; 5] = ["PS107", "PS108", "PS170", "PS171", "PS211"];
    let rough = |s: &&Step| s.guessed.as_ref().is_some_and(|g| g.deep && !g.measures);
    let which = facts.left_out.is_empty() && !facts.steps.iter().any(|s| rough(&s));
    // Of a command with unknown words only what its known words say is said.
    let guessed: BTreeSet<(&str, u32)> = facts
        .steps
        .iter()
        .filter(|s| s.guessed.as_ref().is_some_and(|g| g.deep))
        .map(|s| (s.file.as_str(), s.line))
        .collect();
    // Of a function that nobody calls in a script that calls others, no state is judged.
    let dead = |s: &&Step| facts.forced && !facts.library && s.calls.iter().any(|&l| !facts.is_called(l));
    let dead: BTreeSet<(&str, u32)> =
        facts.steps.iter().filter(dead).map(|s| (s.file.as_str(), s.line)).collect();
    // What a function's own variables hold where nobody calls it is not known: empty words, numbers worked out from nothing.
    let worked_out = |f: &Finding| {
        if !facts.forced || f.code != "PS001" {
            return false;
        }
        let at = facts.source.line(f.begins);
        let word: String = facts
            .source
            .line(f.line)
            .chars()
            .skip(f.column.saturating_sub(1) as usize)
            .take(f.len as usize)
            .collect();
        let name = word.trim_start_matches(['"', '$', '{']).trim_end_matches(['"', '}']);
        let local = word.contains('$')
            && !name.is_empty()
            && facts.source.lines.iter().any(|l| {
                l.contains(&format!("{name}=$((")) || l.trim_start().starts_with("local ") && l.contains(name)
            });
        let empty = at.contains('$')
            && facts.steps.iter().any(|s| s.line == f.begins && s.words.iter().any(String::is_empty));
        local || empty
    };
    // Where a course was decided for a script, a variable may be empty that it would have set.
    let loose = |f: &Finding| {
        let refused = matches!(f.code, "PS001" | "PS002" | "PS003" | "PS004" | "PS014");
        let none = BTreeSet::new();
        refused
            && facts.steps.iter().any(|s| {
                let unknown = s.guessed.as_ref().map_or(&none, |g| &g.words);
                (facts.forced || !unknown.is_empty())
                    && s.line == f.begins
                    && s.file == f.file
                    && !s.ok()
                    && written::Written::of(facts, s)
                        .is_some_and(|w| w.is_loose(unknown) || facts.forced && w.is_hollow(&s.words))
            })
    };
    let allowed = |f: &Finding| {
        worked_out(f)
            || loose(f)
            || dead.contains(&(f.file.as_str(), f.begins)) && f.code > "PS006" && !ALONE.contains(&f.code)
            || (facts.partial && !(which && WHICH.contains(&f.code)) || facts.forced && f.code >= "PS190")
                && !ALONE.contains(&f.code)
            || !(which && WHICH.contains(&f.code))
                && guessed.contains(&(f.file.as_str(), f.begins))
                && !["PS001", "PS003", "PS004", "PS005", "PS007", "PS015", "PS255"].contains(&f.code)
            || comments && everywhere.contains(f.code)
            || comments
                && f.file == facts.name
                && (facts.source.allowed(f.begins).contains(f.code)
                    || facts.source.allowed(f.line).contains(f.code))
    };
    let mut all: Vec<Finding> = found.iter().filter(|f| !allowed(f)).cloned().collect();
    // A wrong unit makes a rate that other values do not fit: mending the unit mends these too.
    let units: BTreeSet<(String, u32)> = all
        .iter()
        .filter(|f| matches!(f.code, "PS114" | "PS115"))
        .map(|f| (f.file.clone(), f.begins))
        .collect();
    for f in &mut all {
        if ("PS101".."PS105").contains(&f.code) && units.contains(&(f.file.clone(), f.begins)) {
            (f.edits, f.safe) = (Vec::new(), false);
        }
    }
    // That no packet fits a filter is said by itself only where nothing says why.
    let explained: BTreeSet<(String, u32)> = all
        .iter()
        .filter(|f| ("PS170".."PS230").contains(&f.code) && f.code != "PS182")
        .map(|f| (f.file.clone(), f.begins))
        .collect();
    let classified = all.iter().any(|f| f.code == "PS219");
    let misspelled: BTreeSet<(String, u32)> =
        all.iter().filter(|f| f.code == "PS238").map(|f| (f.file.clone(), f.begins)).collect();
    let refused: BTreeSet<(String, u32)> = all
        .iter()
        .filter(|f| ("PS001".."PS005").contains(&f.code) || f.code == "PS013")
        .map(|f| (f.file.clone(), f.begins))
        .collect();
    let doubled = |f: &Finding| {
        f.code == "PS015" && refused.contains(&(f.file.clone(), f.begins))
            || matches!(f.code, "PS001" | "PS002" | "PS004" | "PS241")
                && misspelled.contains(&(f.file.clone(), f.begins))
            || f.code == "PS182" && (classified || explained.contains(&(f.file.clone(), f.begins)))
    };
    all.into_iter().filter(|f| !doubled(f)).collect()
}

/// What a script does on a machine, for whoever wants to ask more than [`check`] does.
pub fn facts(script: &Script, settings: &Settings) -> Facts {
    facts_with(script, &[], settings)
}

/// The same of a script and of files that it sources.
pub fn facts_with(script: &Script, beside: &[Sourced], settings: &Settings) -> Facts {
    let explore::Explored { mut facts, whole, .. } = explore::explore(script, beside, settings);
    let steps = facts.spaces.iter_mut().flat_map(|s| &mut s.steps).chain(&mut facts.steps);
    for step in steps.filter(|s| s.file == facts.name) {
        let (file, line) = whole.place(step.line);
        step.line = line;
        step.file = file.map_or(step.file.clone(), str::to_owned);
    }
    facts
}

/// 0 nothing found but notes, 1 warnings, 2 errors.
pub fn exit_status(findings: &[Finding]) -> u8 {
    match findings.iter().map(|f| f.severity).max() {
        None | Some(Level::Note) => 0,
        Some(Level::Warning) => 1,
        Some(Level::Error) => 2,
    }
}
