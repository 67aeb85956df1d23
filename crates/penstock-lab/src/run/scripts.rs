//! Setups and scripts of programs: all run by the one interpreter, with the world's machine behind it.

use super::advice;
use super::build::{Built, at};
use crate::experiment::{self as spec, Experiment, Script};
use penstock_host::{Files, Output};
use penstock_lang::setup::{self, Setup};
use penstock_measure::record::SetupFailure;
use penstock_model::{Diagnostic, Severity, Span, Time};
use penstock_shell::{Console, Given, Kept, Machine, Progress, Running};
use penstock_sim::{AppId, Execute, HostId, ScriptState, World};
use std::collections::VecDeque;

/// A machine of the world.
struct Of<'a> {
    world: &'a mut World,
    id: HostId,
}

impl Machine for Of<'_> {
    fn command(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        self.world.command(self.id, words, files)
    }
}

/// A script that takes its pauses in the world's time.
struct InTime {
    running: Running,
    kept: Kept,
    /// How long its jobs have waited when the world's time begins.
    ahead: Span,
}

/// What a setup has left in the background.
pub(super) struct Jobs {
    host: HostId,
    running: Running,
    /// When its setup had ended, in the time of all setups, one after another.
    since: Span,
}

/// What carries out the commands of a script in time.
struct Executes<'a>(&'a mut dyn Execute);

impl Machine for Executes<'_> {
    fn command(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        self.0.command(words, files)
    }
    fn launch(&mut self, words: &[String]) -> Option<Result<u32, Output>> {
        self.0.launch(words)
    }
    fn ended(&mut self) -> Vec<(u32, Output)> {
        self.0.ended()
    }
    fn kill(&mut self, program: u32) {
        self.0.kill(program);
    }
}

impl penstock_sim::Script for InTime {
    fn go_on(&mut self, since: Span, execute: &mut dyn Execute) -> ScriptState {
        let time = since + self.ahead;
        match self.running.go_on(time, &mut Executes(execute), &mut Spoken(&mut self.kept)) {
            Progress::Waits(at) => ScriptState::Waits(at.map(|at| at - self.ahead)),
            Progress::Ended(Ok(status)) => ScriptState::Ended(status),
            Progress::Ended(Err(why)) => {
                self.kept.stdout.push_str(&format!("{why}\n"));
                ScriptState::Ended(1)
            }
        }
    }
    fn printed(&mut self) -> String {
        std::mem::take(&mut self.kept.stdout)
    }
}

/// Keeps what is said on both outputs as one text, as a terminal shows it.
struct Spoken<'a>(&'a mut Kept);

impl Console for Spoken<'_> {
    fn print(&mut self, stdout: &str, stderr: &str) {
        self.0.stdout.push_str(stdout);
        self.0.stdout.push_str(stderr);
    }
    fn given(&mut self, _: Given) {}
}

impl Built {
    /// Makes a program of the timetable a script.
    pub(super) fn script_of(
        &mut self,
        id: AppId,
        script: &Script,
        experiment: &Experiment,
        (seed, begins): (u64, Span),
        faults: &mut Vec<Diagnostic>,
    ) {
        if let Some(line) = calls_ssh(&script.text) {
            let help = "write it as an [[app]] of its own: run = \"ssh b\"; after = \"NAME\" starts it when another ends";
            let fault = Diagnostic::error("ssh within a script cannot be run by the simulator").help(help);
            faults.push(placed(Diagnostic { line, ..fault }, script, experiment));
            return;
        }
        let name = if script.file.is_empty() { "app".to_owned() } else { script.file.clone() };
        let files = lent(experiment);
        // Whole seconds: what a script can ask of its clock before it has waited.
        let clock = begins.as_ns().div_euclid(1_000_000_000);
        let text = penstock_shell::Script {
            text: script.text.clone(),
            name,
            seed,
            clock,
            files,
            ..Default::default()
        };
        match Running::new(&text) {
            Ok(running) => self
                .world
                .set_script(id, Box::new(InTime { running, kept: Kept::default(), ahead: Span::ZERO })),
            Err(why) => faults.push(at(experiment, &script.place, why)),
        }
    }

    /// Lets what the setups have left in the background go on in the run, which begins when the last of them has ended: what a job
    /// waits is counted from when it began to.
    pub(super) fn start_jobs(&mut self) {
        for Jobs { host, running, since } in std::mem::take(&mut self.jobs) {
            let jobs = InTime { running, kept: Kept::default(), ahead: self.setups - since };
            self.with_jobs.push(host);
            self.world.add_script(host, Box::new(jobs), Time::ZERO);
        }
    }

    /// Runs a host's setup. A command that fails and is heard of is a fault; one whose failure the script keeps quiet
    /// (`2>/dev/null`) is the script's own business.
    pub(super) fn setup(
        &mut self,
        host: &spec::Host,
        id: HostId,
        experiment: &Experiment,
        seed: u64,
        faults: &mut Vec<Diagnostic>,
    ) {
        if host.setup.is_empty() {
            return;
        }
        let whole = Setup::of(host.setup.iter().map(|s| s.text.as_str()));
        // Under a file's name, where there is but one: `$0` and `dirname "$0"` are the script's.
        let name = match host.setup.as_slice() {
            [one] if one.line == 1 && !one.file.is_empty() => one.file.clone(),
            _ => "setup".to_owned(),
        };
        let files = lent(experiment);
        let text = penstock_shell::Script { text: whole.text(), name, seed, files, ..Default::default() };
        let mut kept = Kept::default();
        let begun = Running::setup(&text).and_then(|mut running| {
            let done = running.body(&mut Of { world: &mut self.world, id }, &mut kept)?;
            Ok((running, done))
        });
        let piece = |line: u32| {
            let (at, line) = whole.place(line);
            (&host.setup[at.min(host.setup.len() - 1)], line)
        };
        let status = match begun {
            Ok((running, (status, goes_on))) => {
                self.setups += running.took();
                if goes_on {
                    self.jobs.push(Jobs { host: id, running, since: self.setups });
                }
                status
            }
            // What a script has not come to is nothing that it may fail at.
            Err(why) => {
                faults.push(at(experiment, &host.setup[0].place, format!("{}: {why}", host.name)));
                return;
            }
        };
        let before = faults.len();
        let (failed, rest, last) = setup::failures(&kept.stderr, 0);
        let mut commands = Heard(kept.commands.iter().filter(|c| c.output.status != 0).collect());
        for failure in failed {
            let said = failure.said.join("\n");
            // The network's own commands know their line and the place of the fault in it; of a command behind `sudo` the
            // interpreter does not.
            let given = commands.find(|c| {
                let first = c.output.stderr.lines().find(|l| !l.trim().is_empty());
                first.is_some_and(|first| said.contains(first.trim_end()))
            });
            let (script, line) = piece(given.map_or(failure.line, |g| g.line));
            if host.setup_may_fail {
                let command = match given {
                    Some(given) => given.words.join(" "),
                    None => script.text.lines().nth(line as usize - 1).unwrap_or_default().trim().to_owned(),
                };
                self.failures.push(SetupFailure { host: host.name.clone(), command, message: said });
                continue;
            }
            let first = match given.and_then(|g| g.output.stderr.lines().find(|l| !l.trim().is_empty())) {
                Some(first) => first.trim_end(),
                None => setup::told(failure.said.iter().map(String::as_str)),
            };
            let advice =
                given.and_then(|g| g.output.diagnostics.iter().find(|d| d.severity == Severity::Error));
            let fault = match advice {
                Some(d) => {
                    let (_, line) = whole.place(d.line);
                    Diagnostic { message: format!("{}: {first}", host.name), line, ..d.clone() }
                }
                None => Diagnostic { line, ..Diagnostic::error(format!("{}: {first}", host.name)) },
            };
            let words = given.map_or(&[][..], |g| &g.words);
            let mut fault = placed(advice::on(fault, words), script, experiment);
            // A shell takes the CR for a part of the last word, as here.
            if script.text.split('\n').nth(line as usize - 1).is_some_and(|text| text.ends_with('\r')) {
                fault.help = format!(
                    "its lines end as those of Windows (CR LF), and the CR is part of the last word: sed -i 's/\\r$//' {}",
                    script.file
                );
            }
            faults.push(fault);
        }
        if status != 0 && faults.len() == before && !host.setup_may_fail {
            let message = format!("{}: {}", host.name, setup::ended(status, &rest));
            let (script, line) = piece(last.map_or(1, |(line, _)| line));
            let fault = Diagnostic { line, ..Diagnostic::error(message) };
            faults.push(placed(advice::on(fault, &[]), script, experiment));
        }
    }
}

/// The files that scripts find where they run: by their paths from the experiment's folder, and as its own path was given.
pub(super) fn lent(experiment: &Experiment) -> Vec<(String, String)> {
    let home = |path: &str| if path.starts_with('/') { path.to_owned() } else { format!("/root/{path}") };
    let both = |l: &spec::Lent| {
        let mut names = vec![home(&l.path), home(&l.name)];
        names.dedup();
        names.into_iter().map(|name| (name, l.text.clone())).collect::<Vec<_>>()
    };
    experiment.lent.iter().flat_map(both).collect()
}

/// Whether a machine's shell knows a program by this name.
pub(super) fn knows(program: &str, script: &Script, experiment: &Experiment) -> bool {
    let text = penstock_shell::Script {
        text: format!("command -v {program}"),
        name: script.file.clone(),
        files: lent(experiment),
        ..Default::default()
    };
    let ended = Running::new(&text)
        .map(|mut running| running.go_on(Span::ZERO, &mut Deaf, &mut Spoken(&mut Kept::default())));
    World::is_program(program) || !matches!(ended, Ok(Progress::Ended(Ok(1..))))
}

/// A machine that is asked nothing.
struct Deaf;

impl Machine for Deaf {
    fn command(&mut self, _: &[String], _: &mut dyn Files) -> Output {
        Output::default()
    }
}

/// Commands that failed, until they are found among what was heard.
struct Heard<'a>(VecDeque<&'a Given>);

impl<'a> Heard<'a> {
    /// The next of these, where one fits; those before it were not heard.
    fn find(&mut self, fits: impl Fn(&Given) -> bool) -> Option<&'a Given> {
        let at = self.0.iter().position(|c| fits(c))?;
        self.0.drain(..=at).next_back()
    }
}

/// The first line of a script on which `ssh` is called: what it would run on the other machine, the interpreter cannot.
fn calls_ssh(text: &str) -> Option<u32> {
    const BEFORE: [&str; 9] = ["do", "then", "else", "if", "while", "until", "!", "exec", "timeout"];
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split(" #").next().unwrap_or(line);
        if line.trim_start().starts_with('#') {
            continue;
        }
        for command in line.split([';', '&', '|', '(', ')', '{', '}', '`']) {
            let mut words = command.split_whitespace().skip_while(|w| BEFORE.contains(w));
            let Some(first) = words.next() else { continue };
            let rest = command.split_once(first).map_or("", |(_, rest)| rest);
            if first.rsplit('/').next() == Some("ssh") && !rest.trim_start().starts_with('=') {
                return Some(number);
            }
        }
    }
    None
}

/// A finding in the text of a script, at its place in the experiment or in the script's file.
fn placed(fault: Diagnostic, script: &Script, experiment: &Experiment) -> Diagnostic {
    let Some(begin) = inline(script, experiment) else {
        let named = !script.file.is_empty();
        return if named { script.place_fault(fault) } else { at(experiment, &script.place, fault.message) };
    };
    // A text in the experiment itself: the place is counted in that file.
    let source = &experiment.sources[script.place.source];
    let line = fault.line.max(1) as usize - 1;
    let ahead: usize = script.text.split_inclusive('\n').take(line).map(str::len).sum();
    let text = script.text[ahead..].lines().next().unwrap_or_default();
    let chars = |n: usize| text.chars().take(n).map(char::len_utf8).sum::<usize>();
    let span = match fault.column {
        0 => {
            let indent = text.len() - text.trim_start().len();
            begin + ahead + indent..begin + ahead + text.trim_end().len().max(indent)
        }
        column => {
            let from = chars(column as usize - 1);
            begin + ahead + from..begin + ahead + chars((column - 1 + fault.len) as usize).max(from)
        }
    };
    source.fault(span, fault.message, fault.help)
}

/// Where the text of a script stands in the experiment, if it stands there letter by letter.
fn inline(script: &Script, experiment: &Experiment) -> Option<usize> {
    let text = &experiment.sources.get(script.place.source)?.text;
    let span = text.get(script.place.span.clone())?;
    let at = span.find(&script.text)?;
    Some(script.place.span.start + at)
}

#[cfg(test)]
mod tests {
    use super::calls_ssh;

    #[test]
    fn ssh_within_scripts() {
        for (text, want) in [
            ("tc qdisc\nsleep 1; ssh b", Some(2)),
            ("for i in 1 2; do /usr/bin/ssh b; done", Some(1)),
            ("# ssh b\necho ssh b # ssh", None),
            ("ping -c 1 b; echo ssh", None),
        ] {
            assert_eq!(calls_ssh(text), want, "{text}");
        }
    }
}
