//! Runs a script until every network command in it was reached, or says which were not and why.
//!
//! The first run is the script as it stands. Where it leaves commands unread, further runs go where it did not: past `exit`, into the other arms of `if` and `case`,
//! into loops over nothing, behind `&&` and `||`, into functions that nobody calls. Each such run is the text with that decided; lines stay where they are.

use crate::coverage::Coverage;
use crate::environment::Environment;
use crate::facts::{Facts, Step};
use crate::source::{Form, Source};
use crate::sourced::{Sourced, Whole};
use crate::syntax::{End, Frame, Loop, Syntax};
use crate::unknown::symbol;
use crate::{Settings, waiting, watch};
use penstock_shell::{Limits, Script};
use std::collections::{BTreeMap, BTreeSet};

/// Runs at most.
pub(crate) const RUNS: usize = 24;

/// What the shell says of a division by 0.
const BY_NOTHING: &str = "division by 0";

/// What all runs gave: the facts of the one that speaks for the script, those of the others, how much was reached.
pub(crate) struct Explored {
    pub facts: Facts,
    pub others: Vec<Facts>,
    /// The script called several times: started, stopped and started again; started, and then as `restart` does it.
    pub turns: Vec<Facts>,
    pub coverage: Coverage,
    /// The text with those of the files that it sources.
    pub whole: Whole,
}

/// A script as a run takes it.
#[derive(Clone)]
pub(crate) struct Variant<'a> {
    pub script: Script,
    pub source: Source,
    /// The files that the texts of `script` and `source` are.
    pub whole: &'a Whole,
    pub syntax: Option<&'a Syntax>,
    pub limits: Limits,
    /// Names that it reads and that are nearly those of variables that it sets.
    pub misspelt: &'a BTreeMap<String, String>,
    /// Arguments of further calls of the script, on the machine that the calls before have left.
    pub again: Vec<Vec<String>>,
}

/// Runs a script, with those of the files that it sources, as often as is needed.
pub(crate) fn explore(script: &Script, beside: &[Sourced], settings: &Settings) -> Explored {
    let whole = Whole::of(script, beside);
    let source = Source::new(&whole.text);
    let python = source.form == Form::Python;
    let runnable = if python { source.runnable() } else { whole.placed(&source.runnable()) };
    let symbol = symbol(&whole.text);
    let runnable = match python || !script.args.is_empty() {
        true => runnable,
        false => given(&runnable, &options(&source), symbol),
    };
    let syntax = if python { Syntax::default() } else { Syntax::of(&runnable) };
    let mut env = script.env.clone();
    let mut environment = Environment::default();
    if whole.lacks {
        env.extend(unset(&syntax, script, symbol));
    } else if !python {
        environment = Environment::of(&runnable, &syntax.unset);
        environment.without(|name| script.env.iter().any(|e| e.0 == name));
        env.extend(environment.unknown.keys().map(|name| (name.clone(), symbol.to_owned())));
    }
    // What a program prints is not nothing where the script does not ask whether it is.
    let (runnable, syntax) = if python {
        (runnable, syntax)
    } else {
        let answers = if whole.lacks {
            Environment::of(&runnable, &syntax.unset).answers
        } else {
            environment.answers.clone()
        };
        let answered = |(at, name): &(usize, String)| (*at, 0, format!(";{name}=${{{name}:-{symbol}}}"));
        let open = written_once(&runnable, &answers);
        let text = scalars(&edited(&open, answers.iter().map(answered).collect()), &env, symbol);
        let syntax = if text == runnable { syntax } else { Syntax::of(&text) };
        let ends = waiting::ends(&text, &syntax);
        if ends.is_empty() {
            (text, syntax)
        } else {
            let text = edited(&text, ends.into_iter().map(|(at, end)| (at, 0, end)).collect());
            let mut syntax = Syntax::of(&text);
            waiting::hide(&mut syntax);
            (text, syntax)
        }
    };
    if !python {
        let given = |name: &String| script.env.iter().any(|e| e.0 == *name);
        let programs = crate::syntax::absent(&runnable).into_iter().filter(|n| !given(&n.0));
        env.retain(|e| !crate::syntax::absent(&runnable).iter().any(|a| a.0 == e.0) || given(&e.0));
        env.extend(programs.map(|(name, program)| (name, program.to_owned())));
    }
    if script.args.is_empty() && !python {
        let given = |name: &String| script.env.iter().any(|e| e.0 == *name);
        env.extend(options(&source).into_iter().filter(|n| !given(n)).map(|n| (n, symbol.to_owned())));
    }
    let first = Script {
        text: runnable.clone(),
        args: arguments(script, &source, &syntax, settings, symbol),
        unknown: Some(symbol.to_owned()),
        env,
        ..script.clone()
    };
    let variant = Variant {
        script: first,
        source,
        whole: &whole,
        syntax: Some(&syntax),
        limits: script_limits(),
        misspelt: &environment.misspelt,
        again: Vec::new(),
    };
    let turns = again(&variant, settings);
    let mut facts = watch::run(&variant, settings);
    if whole.lacks || !environment.unknown.is_empty() {
        facts = without_division(facts);
    }
    let mut reached = facts.reached.clone();
    let mut others: Vec<Facts> = Vec::new();
    let mut runs = 1;
    let network: BTreeSet<usize> = syntax.network().map(|c| c.0).collect();
    let missing = |reached: &BTreeSet<usize>| network.difference(reached).count();
    let syntax_error = facts.stopped.is_some()
        || crate::rules::gives_up(&facts.stderr).is_some_and(|l| !l.contains(BY_NOTHING));
    // A call behind the end of the script is not made, though its function may have been called before.
    let unmade = || !syntax.ends.is_empty() && syntax.calls_with_commands().any(|at| !reached.contains(&at));
    if (missing(&reached) > 0 || unmade()) && !python && !syntax_error {
        let mut passed = variant.clone();
        let steps = 100_000.max(20 * variant.source.lines.len());
        passed.limits = Limits { steps, commands: 50_000, ..Limits::default() };
        // Past `exit`: a guard that was not met is met.
        if !syntax.ends.is_empty() {
            passed.script.text = edited(&runnable, neutral(&syntax, &runnable, symbol, false));
            if passed.script.args.is_empty() && syntax.positional > 0 && !runnable.contains("shift") {
                passed.script.args = vec![symbol.to_owned(); syntax.positional];
            }
            let there = watch::run(&passed, settings);
            runs += 1;
            let more = there.reached.difference(&reached).next().is_some();
            let there = without_division(there);
            if more && there.stopped.is_none() {
                let behind = there.reached.is_superset(&facts.reached);
                reached.extend(&there.reached);
                if behind { facts = there } else { others.push(Facts { forced: true, ..there }) }
            }
        }
        let mut tries: BTreeMap<usize, usize> = BTreeMap::new();
        // What was reached without a call of ours: a function that a plan has called is called again for what it has left.
        let natural = reached.clone();
        // A script may never come to its end: then functions are called right behind the last of them.
        let own = whole.own_bytes(&runnable);
        let early = syntax.defined.iter().copied().rfind(|at| *at <= own);
        let mut is_early = false;
        while missing(&reached) > 0 && runs < RUNS {
            let mut plan = Plan::new(&syntax, symbol, runs > 3);
            plan.backwards = runs % 2 == 1;
            plan.words = 6.max(highest(&runnable));
            for &at in network.difference(&reached) {
                let most = if runs > 3 { 5 } else { 3 };
                if tries.get(&at).is_none_or(|n| *n < most) && plan.wants(at, &natural) {
                    *tries.entry(at).or_default() += 1;
                }
            }
            if plan.is_empty() {
                break;
            }
            let mut forced = passed.clone();
            let mut edits = neutral(&syntax, &runnable, symbol, plan.returns);
            edits.extend(plan.edits(&runnable));
            let early = early.filter(|_| is_early && !plan.called.is_empty());
            let calls = plan.calls();
            if let Some(at) = early {
                edits.push((at, 0, calls.replace('\n', ";").trim_end_matches(';').to_owned()));
            }
            forced.script.text = edited(&runnable, edits);
            if early.is_none() {
                forced.script.text += &calls;
            }
            if !plan.called.is_empty() {
                let known: BTreeSet<String> = forced.script.env.iter().map(|e| e.0.clone()).collect();
                let unset = unset(&syntax, script, symbol).into_iter();
                let unset =
                    unset.filter(|e| !known.contains(&e.0) && !environment.misspelt.contains_key(&e.0));
                forced.script.env.extend(unset);
            }
            let mut there = watch::run(&forced, settings);
            runs += 1;
            there.forced = true;
            if let Some(at) = early {
                let line = runnable[..at].matches('\n').count() as u32 + 1;
                there.planned = line;
                there.spaces.iter_mut().for_each(|s| s.planned = line);
            }
            let mut there = without_division(there);
            there.library = facts.reached.is_empty();
            let more = there.reached.difference(&reached).next().is_some();
            reached.extend(&there.reached);
            is_early = !more && !is_early;
            if more {
                others.push(there);
            }
        }
    }
    let mut coverage = Coverage::of(&syntax, &reached, runs, &whole);
    if python {
        coverage = Coverage::of_python(&facts);
    } else {
        let hidden: BTreeSet<u32> =
            std::iter::once(&facts).chain(&others).flat_map(|f| f.hidden.iter().copied()).collect();
        coverage.commands += hidden.len();
        coverage.looked_at += hidden.len();
    }
    let programs: BTreeSet<String> = crate::syntax::absent(&runnable).into_iter().map(|p| p.0).collect();
    let given = environment.unknown.iter().filter(|e| !programs.contains(e.0));
    coverage.environment.extend(given.map(|(name, line)| (name.clone(), whole.place(*line).1)));
    // What stands in a sourced file is told with that file's name.
    let named = |name: &String, line: u32| match whole.place(line) {
        (Some(file), line) => (format!("{name} in {file}"), line),
        (None, line) => (name.clone(), line),
    };
    for facts in std::iter::once(&facts).chain(&others) {
        for (name, line) in &facts.unknown {
            let elsewhere = whole.place(*line).0.is_some() && !name.contains(' ');
            let into = if elsewhere { &mut coverage.parts } else { &mut coverage.unknown };
            into.insert(named(name, *line));
        }
        let (aside, here): (Vec<&Step>, Vec<&Step>) =
            facts.steps.iter().partition(|s| s.program() == "elsewhere");
        coverage.parts.extend(here.iter().filter_map(|s| Some(named(s.unsimulated.as_ref()?, s.line))));
        for step in aside {
            let Some(program) = &step.unsimulated else { continue };
            let (file, line) = whole.place(step.line);
            let missed = coverage.missed_there(file.unwrap_or(""), line, program);
            coverage.commands += usize::from(missed);
        }
    }
    Explored { facts, others, turns, coverage, whole }
}

fn script_limits() -> Limits {
    Limits::default()
}

/// The text where variables that are given an answer may be written again: `readonly DEV=$(…)`. Places stay where they are.
fn written_once(text: &str, answers: &[(usize, String)]) -> String {
    let mut text = text.to_owned();
    for (at, name) in answers {
        let Some(begins) = text.get(..*at).map(|t| t.rfind('\n').map_or(0, |n| n + 1)) else { continue };
        let line = &text[begins..*at];
        for (word, open) in
            [("readonly ", "export   "), ("declare -r ", "declare -x "), ("local -r ", "local -x ")]
        {
            let set = format!("{word}{name}=");
            let place = line.find(&set).filter(|p| line[..*p].trim().is_empty());
            if let Some(place) = place {
                let from = begins + place;
                text.replace_range(from..from + word.len(), open);
                break;
            }
        }
    }
    text
}

/// Variables that options of the command line set: `i) IFACE=$OPTARG`, `--dev) DEV="$2"; shift 2`. Nobody has given them, and they are unknown.
fn options(source: &Source) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (n, line) in source.lines.iter().enumerate().filter(|l| !l.1.trim_start().starts_with('#')) {
        let near = source.lines.iter().skip(n).take(2).any(|l| l.contains("shift"));
        for (at, _) in line.match_indices('=') {
            let value = line[at + 1..].trim_start_matches('"');
            let option = value.starts_with("$OPTARG") || value.starts_with("${OPTARG}");
            let second = near && line.contains(')') && (value.starts_with("$2") || value.starts_with("${2}"));
            let beside = line[..at].char_indices().rfind(|(_, c)| !(c.is_ascii_alphanumeric() || *c == '_'));
            let from = beside.map_or(0, |(f, c)| f + c.len_utf8());
            let name = &line[from..at];
            if (option || second) && name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

/// The text where variables of options begin with the unknown in the place of nothing: `IFACE=""`.
fn given(text: &str, options: &BTreeSet<String>, symbol: &str) -> String {
    if options.is_empty() {
        return text.to_owned();
    }
    let one = |line: &str| {
        let bare = line.trim().trim_end_matches(';');
        let name = bare.strip_suffix("=\"\"").or(bare.strip_suffix("=''")).or(bare.strip_suffix('='));
        match name.filter(|n| options.contains(*n)) {
            Some(name) => format!("{name}={symbol}\n"),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(one).collect()
}

/// Elements of arrays that are unknown as a whole are so each by itself: `${RATE[$i]}`.
fn scalars(text: &str, env: &[(String, String)], symbol: &str) -> String {
    let mut text = text.to_owned();
    for (name, _) in env.iter().filter(|e| e.1 == symbol) {
        for all in ["[@]}", "[*]}"] {
            text = text.replace(&format!("${{#{name}{all}"), "1").replace(&format!("${{!{name}{all}"), "0");
        }
        let begins = format!("${{{name}[");
        let mut from = 0;
        while let Some(at) = text[from..].find(&begins).map(|at| from + at) {
            let open = at + begins.len();
            let Some(close) = text[open..].find("]}").map(|c| open + c) else { break };
            if !text[open..close].contains(['\n', '"']) {
                text.replace_range(open - 1..close + 1, "");
            }
            from = at + begins.len() - 1;
        }
    }
    text
}

/// Words by which scripts are started, each with those that undo it.
const STOPS: [(&str, &[&str]); 8] = [
    ("start", &["stop"]),
    ("up", &["down"]),
    ("setup", &["teardown", "cleanup", "clean", "clear", "reset"]),
    ("init", &["cleanup", "clean", "clear", "reset"]),
    ("install", &["uninstall", "remove"]),
    ("add", &["del", "delete", "remove"]),
    ("on", &["off"]),
    ("enable", &["disable"]),
];

/// What a script leaves that is started, stopped and started again, and one that is restarted.
fn again(variant: &Variant<'_>, settings: &Settings) -> Vec<Facts> {
    if variant.source.form != Form::Script {
        return Vec::new();
    }
    let plain = |l: &String| l.replace(['"', '{', '}', ' ', '\t'], "");
    let lines: Vec<String> = variant.source.lines.iter().map(plain).collect();
    // `#!/bin/sh /etc/rc.common` calls the function of the word's name; so does a line that is `"$1"` alone.
    let is_common = variant.source.lines.first().is_some_and(|l| l.trim_end().ends_with("/etc/rc.common"));
    let by_name = is_common || lines.iter().any(|l| l == "$1" || l == "$@");
    let has = |verb: &&str| {
        lines.iter().any(|l| watch::is_arm(l, verb) || by_name && l.starts_with(&format!("{verb}()")))
    };
    let start = match variant.script.args.first() {
        Some(start) if !by_name => start.clone(),
        _ if by_name => "start".to_owned(),
        _ => return Vec::new(),
    };
    let mut variant = variant.clone();
    if by_name {
        variant.script.args = vec![start.clone()];
    }
    if is_common {
        variant.script.text += "\n$1\n";
    }
    let Some((_, stops)) = STOPS.iter().find(|s| s.0 == start).filter(|_| has(&start.as_str())) else {
        return Vec::new();
    };
    let args = |verb: &str| {
        let mut args = variant.script.args.clone();
        verb.clone_into(&mut args[0]);
        args
    };
    let mut plans = Vec::new();
    if let Some(stop) = stops.iter().find(|s| has(s)) {
        plans.push(vec![args(stop), args(&start)]);
    }
    plans.extend(has(&"restart").then(|| vec![args("restart")]));
    let run = |again: Vec<Vec<String>>| watch::run(&Variant { again, ..variant.clone() }, settings);
    plans.into_iter().map(run).collect()
}

/// A divisor that is unknown, or that was decided, is not the script's mistake.
fn without_division(mut facts: Facts) -> Facts {
    // So may what stands beside an operator, where the unknown was to be taken apart.
    let unknown = |l: &str| l.contains(BY_NOTHING) || l.contains("operand expected");
    facts.stopped = facts.stopped.filter(|why| !unknown(why));
    facts.stderr = facts.stderr.lines().filter(|l| !unknown(l)).map(|l| format!("{l}\n")).collect();
    facts
}

/// Variables that nobody sets, unknown.
fn unset(syntax: &Syntax, script: &Script, symbol: &str) -> Vec<(String, String)> {
    let given = |name: &String| script.env.iter().any(|e| e.0 == *name);
    syntax.unset.iter().filter(|n| !given(n)).map(|n| (n.clone(), symbol.to_owned())).collect()
}

/// What a script is called with where nobody says: as it asks for it, else the unknown.
fn arguments(
    script: &Script,
    source: &Source,
    syntax: &Syntax,
    settings: &Settings,
    symbol: &str,
) -> Vec<String> {
    let mut known = watch::arguments(script, source, settings);
    // Behind the verb stands what nobody knows, where the script takes it as it comes.
    let taken = |n: usize| {
        let code = source.lines.iter().filter(|l| !l.trim_start().starts_with('#'));
        let text = code.map(String::as_str).collect::<Vec<_>>().join("\n");
        let asked = [
            format!("${{{n}:"),
            format!("${{{n}-"),
            format!("-z \"${n}\""),
            format!("-n \"${n}\""),
            format!("-z ${n}"),
            format!("-n ${n}"),
        ];
        !text.contains("$#")
            && !text.contains("shift")
            && !text.contains("$@")
            && !asked.iter().any(|a| text.contains(a.as_str()))
    };
    if known.len() == 1 && script.args.is_empty() && source.form == Form::Script && syntax.positional > 1 {
        known.extend((2..=syntax.positional).take_while(|n| taken(*n)).map(|_| symbol.to_owned()));
    }
    if !known.is_empty() || source.form != Form::Script || syntax.positional == 0 {
        return known;
    }
    let lines = source.lines.iter().filter(|l| !l.trim_start().starts_with('#'));
    let asks = lines.into_iter().any(|l| {
        let flat = l.replace(['"', '{', '}'], "");
        let compared = ["$1 = ", "$1 == ", "$1 != ", "$1 =~ ", "$1 in"].iter().any(|w| flat.contains(w));
        compared || l.contains("shift") || l.contains("getopt") || l.contains("$#") || flat.contains("-z $1")
    });
    if asks { Vec::new() } else { vec![symbol.to_owned(); syntax.positional] }
}

/// The highest argument that a text asks for (`${14}`), 30 at most.
fn highest(text: &str) -> usize {
    let number = |(at, _): (usize, &str)| {
        let rest = text[at + 1..].trim_start_matches('{');
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let braced = text[at + 1..].starts_with('{');
        rest[..if braced { end } else { end.min(1) }].parse::<usize>().ok()
    };
    text.match_indices('$').filter_map(number).filter(|n| *n <= 30).max().unwrap_or(0)
}

/// A change of the text: from here so many bytes become this.
type Change = (usize, usize, String);

/// What ends a script does not; with `returns` neither do `return`, `break` and `continue` leave what they stand in.
fn neutral(syntax: &Syntax, text: &str, symbol: &str, returns: bool) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for &(from, to, end) in &syntax.ends {
        match end {
            End::ExitOfLoop => changes.push((from, to - from, "break;:".to_owned())),
            End::Exec => changes.push((from, to - from, String::new())),
            End::Return if !returns => {}
            _ => changes.push((from, to - from, ":".to_owned())),
        }
    }
    // `${X:?words}` ends a script, too.
    for (at, _) in text.match_indices(":?") {
        let name = text[..at].rfind("${").map(|from| &text[from + 2..at]);
        if name.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')) {
            // In `${NAME:?text}` the text is an error message, not a value.
            let rest = &text[at + 2..];
            let words = rest
                .find(['}', '\n'])
                .filter(|end| rest[*end..].starts_with('}') && !rest[..*end].contains('$'));
            changes.push((at, 2 + words.unwrap_or(0), format!(":-{}", words.map_or("", |_| symbol))));
        }
    }
    // A reference to a variable whose name is unknown is a variable of its own.
    for (at, word) in ["local -n ", "declare -n ", "typeset -n "].iter().flat_map(|w| text.match_indices(w)) {
        changes.push((at + word.len() - 3, 2, String::new()));
    }
    changes
}

fn edited(text: &str, mut changes: Vec<Change>) -> String {
    changes.sort();
    changes.dedup();
    let mut out = String::with_capacity(text.len() + 1024);
    let mut at = 0;
    for (from, length, new) in changes {
        if from < at {
            continue;
        }
        out.push_str(&text[at..from]);
        out.push_str(&new);
        at = from + length;
    }
    out.push_str(&text[at..]);
    out
}

/// At the beginning of a `for`'s body: the turn of the unknown is left out where the list had others. A table has nothing under an unknown name.
fn only_over_nothing(text: &str, of: &Loop, number: usize, symbol: &str) -> Option<Change> {
    let name = of.condition.split_whitespace().take_while(|w| *w != "in").last()?;
    let rest = &text[of.at..];
    let begins = rest.find(|c: char| !c.is_whitespace() && c != ';')?;
    let body = rest[begins..].strip_prefix("do").filter(|r| r.starts_with([' ', '\n', '\t']))?;
    let at = text.len() - body.len();
    let turn = format!("penstock_turn_{number}");
    let skip = format!(
        " if [ \"${name}\" = {symbol} ]; then if [ \"${{{turn}-}}\" ]; then {turn}=; continue; fi; else {turn}=x; fi;"
    );
    Some((at, 0, skip))
}

/// What one run decides.
struct Plan<'a> {
    syntax: &'a Syntax,
    symbol: &'a str,
    returns: bool,
    arms: BTreeMap<usize, usize>,
    loops: BTreeSet<usize>,
    behind: BTreeMap<usize, bool>,
    called: BTreeSet<String>,
    wanted: usize,
    /// Whether functions are called in the other order: what ends one run does not hide the same functions in all.
    backwards: bool,
    /// Arguments of each call.
    words: usize,
}

impl<'a> Plan<'a> {
    fn new(syntax: &'a Syntax, symbol: &'a str, returns: bool) -> Plan<'a> {
        Plan {
            syntax,
            symbol,
            returns,
            arms: BTreeMap::new(),
            loops: BTreeSet::new(),
            behind: BTreeMap::new(),
            called: BTreeSet::new(),
            wanted: 0,
            backwards: false,
            words: 6,
        }
    }

    fn is_empty(&self) -> bool {
        self.wanted == 0
    }

    /// Decides what leads to a command, unless this run goes elsewhere already.
    fn wants(&mut self, command: usize, reached: &BTreeSet<usize>) -> bool {
        let mut frames = Vec::new();
        let mut called = BTreeSet::new();
        self.frames(command, reached, &mut frames, &mut called);
        if called.iter().any(|c| !self.called.contains(c)) && self.called.len() > 200 {
            return false;
        }
        let against = frames.iter().any(|f| match f {
            Frame::Arm(choice, arm) => self.arms.get(choice).is_some_and(|a| a != arm),
            _ => false,
        });
        if against {
            return false;
        }
        for frame in frames {
            match frame {
                Frame::Arm(choice, arm) => _ = self.arms.insert(choice, arm),
                Frame::Loop(number) => _ = self.loops.insert(number),
                Frame::Behind { at, and, .. } => _ = self.behind.insert(at, and),
                Frame::Function(_) => {}
            }
        }
        self.called.extend(called);
        self.wanted += 1;
        true
    }

    /// What a command stands in, and what its function is called from.
    fn frames(
        &self,
        command: usize,
        reached: &BTreeSet<usize>,
        frames: &mut Vec<Frame>,
        called: &mut BTreeSet<String>,
    ) {
        let of = &self.syntax.commands[command];
        let name = of.frames.iter().find_map(|f| match f {
            Frame::Function(name) => Some(name),
            _ => None,
        });
        frames.extend(of.frames.iter().cloned());
        let Some(name) = name else { return };
        let is_in = |f: &Frame| matches!(f, Frame::Function(n) if n == name);
        let mut inside = self.syntax.in_function(name);
        let was_called = inside.any(|at| reached.contains(&at));
        if was_called || !called.insert(name.clone()) {
            called.remove(name);
            return;
        }
        let caller =
            self.syntax.calls_of(name).find(|&at| !self.syntax.commands[at].frames.iter().any(is_in));
        if let Some(caller) = caller
            && frames.len() < 100
            && !self.returns
        {
            let mut further = BTreeSet::from([name.clone()]);
            self.frames(caller, reached, frames, &mut further);
            called.remove(name);
            further.remove(name);
            called.extend(further);
        }
    }

    fn edits(&self, text: &str) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        for (&choice, &arm) in &self.arms {
            let choice = &self.syntax.choices[choice];
            match choice.word_end {
                None => {
                    for (number, of) in choice.arms.iter().enumerate().take(arm + 1) {
                        let decided = if number == arm { "true; " } else { "false; " };
                        changes.extend(of.at.map(|at| (at, 0, decided.to_owned())));
                    }
                }
                Some(end) => {
                    changes.push((end - choice.word.len(), choice.word.len(), "'\u{2}'".to_owned()));
                    changes.extend(choice.arms[arm].at.map(|at| (at, 0, "|*".to_owned())));
                }
            }
        }
        for &number in &self.loops {
            let of = &self.syntax.loops[number];
            let symbol = self.symbol;
            let new = if of.word == "for" {
                if !of.condition.contains(" in") {
                    continue;
                }
                changes.extend(only_over_nothing(text, of, number, symbol));
                format!(" {symbol}")
            } else {
                let mut read = of.condition.split_whitespace().skip_while(|w| *w != "read").skip(1);
                let read: String = read
                    .by_ref()
                    .filter(|w| w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
                    .map(|w| format!("{w}={symbol}; "))
                    .collect();
                let test = if of.word == "until" { "-gt" } else { "-le" };
                format!(
                    "{read}penstock_{number}=${{penstock_{number}-}}x; [ ${{#penstock_{number}}} {test} 1 ]; "
                )
            };
            changes.push((of.at, 0, new));
            let line = format!("<<< '{symbol} {symbol} {symbol} {symbol}'");
            changes.extend(of.input.map(|(from, to)| (from, to - from, line)));
        }
        for &at in self.behind.keys() {
            changes.push((at, 2, "; ".to_owned()));
        }
        changes
    }

    /// Calls of functions that nobody calls.
    fn calls(&self) -> String {
        let call = |name: &String| format!("\n{name}{}", format!(" {}", self.symbol).repeat(self.words));
        let mut calls: Vec<String> = self.called.iter().map(call).collect();
        if self.backwards {
            calls.reverse();
        }
        calls.concat() + "\n"
    }
}
