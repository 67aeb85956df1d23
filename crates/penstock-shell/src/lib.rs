//! Shell scripts, run on a virtual machine and nowhere else.
//!
//! The language is bash's, interpreted by [`bashkit`] in memory: variables, functions, loops, here-documents, pipes, and the
//! text tools (grep, sed, awk, sort, …) are built in. `tc`, `ip`, `iptables` and the other network tools go to a [`Machine`].
//! Nothing else can be reached: no file of this computer, no process, no network. A script that tries gets an error.
//!
//! The interpreter runs on a thread of its own and asks; the machine stays with the caller, who answers. So everything happens
//! in the script's order, one command at a time.
//!
//! Follows: bash 5.2, as far as bashkit 0.20 does; [`rewrite`] rewrites what it reads otherwise.
//! Differs: chance comes from a seed, and the clock goes on only where the script waits; `logger`, `flock`, `renice` do
//! nothing. A script may go as far as [`Limits`] say. Lines are known by a DEBUG trap of ours: where a script sets one of its own,
//! that one is there and its lines are not known.

#[cfg(target_family = "wasm")]
mod by_hand;
mod chance;
mod clock;
mod dice;
#[cfg(not(target_family = "wasm"))]
mod engine;
mod expr;
mod files;
mod getopt;
mod given;
mod install;
mod interpreter;
mod limits;
#[cfg(not(target_family = "wasm"))]
mod line;
mod marks;
mod mktemp;
mod plain;
mod programs;
mod rewrite;
mod running;
mod serve;
mod stat;
mod tools;
#[cfg(not(target_family = "wasm"))]
mod turns;
mod unknown;

/// Programs of networks that Linux has and the virtual machine has not, with what to do instead.
pub fn not_here() -> &'static [(&'static str, &'static str)] {
    tools::NETWORK
}
mod written;

pub use limits::Limits;
pub use running::{Progress, Running};

#[cfg(target_family = "wasm")]
pub(crate) use by_hand::{line, time};
/// The interpreter's clock.
#[cfg(not(target_family = "wasm"))]
pub(crate) mod time {
    pub(crate) use tokio::time::{Instant, sleep, sleep_until};
}

use bashkit::parser::Parser;
#[cfg(target_family = "wasm")]
use by_hand::Engine;
#[cfg(not(target_family = "wasm"))]
use engine::Engine;
use interpreter::{Begin, Job};
use limits::Guard;
use marks::{plain, traced};
use penstock_host::{Files, Host, Output};
use penstock_model::{Span, Time};
use serve::{Asked, Launched, Reply, Request};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Microseconds since the script that is being interpreted began, by its own clock. Where there are no threads the interpreter takes
/// this for the time: the program says so (`__bashkit_host_now_micros`).
#[cfg(target_family = "wasm")]
pub fn script_micros() -> u64 {
    time::micros()
}

/// The variable that knows where the script is: `line:file`.
pub(crate) const LINE: &str = "PENSTOCK_LINE";

/// Where the interpreter stands at the beginning.
const HOME: &str = "/root";

/// What a script without a name is called.
const NAMELESS: &str = "/root/script";

/// Who carries out commands.
pub trait Machine {
    /// Carries out one command, its words as a process gets them. Asked for as well: `cat PATH`, `tee PATH` and `ls -F PATH` for
    /// files below `/proc` and `/sys`.
    fn command(&mut self, words: &[String], files: &mut dyn Files) -> Output;
    /// Carries out what `docker exec`, `nsenter`, `ssh` and their like would carry out in a container or on another machine;
    /// `None` where the machine knows of no other place, and then the program is not started.
    fn elsewhere(&mut self, words: &[String], files: &mut dyn Files) -> Option<Output> {
        let _ = (words, files);
        None
    }
    /// What the script asks for next it asks for at this time of its own, counted from its beginning: it has slept meanwhile. For a machine whose
    /// time goes on with that of its script.
    fn passes(&mut self, since: Span) {
        let _ = since;
    }
    /// Begins a program that takes time (`ping`, `iperf`): its number, or what it gave where it ended at once. `None` where the machine
    /// does not run such programs, and then it is not started.
    fn launch(&mut self, words: &[String]) -> Option<Result<u32, Output>> {
        let _ = words;
        None
    }
    /// The programs that have ended since this was asked last: their numbers and what they gave.
    fn ended(&mut self) -> Vec<(u32, Output)> {
        Vec::new()
    }
    /// Ends a program, as `SIGTERM` does.
    fn kill(&mut self, program: u32) {
        let _ = program;
    }
}

/// A host at a moment.
pub struct At<'a> {
    /// The machine.
    pub host: &'a mut Host,
    /// When the script's commands happen.
    pub now: Time,
}

impl Machine for At<'_> {
    fn command(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        self.host.command(words, files, self.now)
    }
}

/// A script and what it is called with.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Its text.
    pub text: String,
    /// Its file's name, for `$0` and for the places of findings.
    pub name: String,
    /// `$1`, `$2`, ….
    pub args: Vec<String>,
    /// Standard input.
    pub stdin: String,
    /// Other files it finds: path and text.
    pub files: Vec<(String, String)>,
    /// What its dice begin at.
    pub seed: u64,
    /// Seconds after 2026-01-01 00:00 UTC at which its clock begins.
    pub clock: i64,
    /// Variables of its environment.
    pub env: Vec<(String, String)>,
    /// What stands for the unknown. With it, programs that are not simulated end well and print it, files that are not there hold it, and
    /// commands know where they are called from ([`Given::calls`]).
    pub unknown: Option<String>,
}

/// A network command a script has given.
#[derive(Clone, PartialEq, Debug)]
pub struct Given {
    /// Number of its line, from 1; 0 where it is not known.
    pub line: u32,
    /// The file of that line.
    pub file: String,
    /// The lines of the calls that led to it, the nearest first, where it is in a function; known where [`Script::unknown`] is said.
    pub calls: Vec<u32>,
    /// The files that those calls stand in, where they are known: one for each, else none.
    pub callers: Vec<String>,
    /// The words.
    pub words: Vec<String>,
    /// What it gave; findings with their place in the script.
    pub output: Output,
}

/// Where a script's words go.
pub trait Console {
    /// Text for standard output and for standard error, as it comes.
    fn print(&mut self, stdout: &str, stderr: &str);
    /// A network command has been carried out.
    fn given(&mut self, given: Given);
    /// A program that is not simulated was called at a line of a file, and taken to end well ([`Script::unknown`]).
    fn unknown(&mut self, program: &str, file: &str, line: u32) {
        let _ = (program, file, line);
    }
}

/// Text and commands, kept.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Kept {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The commands in order.
    pub commands: Vec<Given>,
}

impl Console for Kept {
    fn print(&mut self, stdout: &str, stderr: &str) {
        self.stdout.push_str(stdout);
        self.stderr.push_str(stderr);
    }
    fn given(&mut self, given: Given) {
        self.commands.push(given);
    }
}

/// An interpreter with its variables, functions and files, from one line to the next.
pub struct Shell {
    engine: Engine,
    ended: Arc<AtomicBool>,
    guard: Arc<Guard>,
}

impl Shell {
    /// An interpreter that finds these files.
    pub fn new(hostname: &str, files: &[(String, String)]) -> Shell {
        Shell::within(&Limits::default(), hostname, files, None, (0, 0), None)
    }

    fn within(
        limits: &Limits,
        hostname: &str,
        files: &[(String, String)],
        main: Option<String>,
        (seed, clock): (u64, i64),
        unknown: Option<String>,
    ) -> Shell {
        let hostname = hostname.to_owned();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.clone(), rewrite::rewrite(text))).collect();
        let text = files.iter().map(|(_, text)| text.len()).sum();
        let begin = Begin { hostname, files, seed, clock, text, main, unknown };
        let ended = Arc::new(AtomicBool::new(false));
        let guard = Arc::new(Guard::new(limits.clone()));
        Shell { engine: Engine::start(begin, &ended, &guard), ended, guard }
    }

    /// Runs a line, or several, as typed at the prompt.
    ///
    /// # Errors
    /// Why it cannot be run at all; what a shell would say of it has gone to the console.
    pub fn line(
        &mut self,
        text: &str,
        machine: &mut dyn Machine,
        console: &mut dyn Console,
    ) -> Result<i32, String> {
        self.guard.limits.text_fits(text.len())?;
        braces_fit(text)?;
        let script = Script { name: "penstock".to_owned(), text: text.to_owned(), ..Script::default() };
        self.run(Job { text: rewrite::rewrite(text), zero: script.name.clone(), script }, machine, console)
    }

    /// Whether a line has said `exit`.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Runs a job, answering what it asks.
    fn run(&mut self, job: Job, machine: &mut dyn Machine, console: &mut dyn Console) -> Result<i32, String> {
        let mut course = self.begin(job)?;
        match self.go_on(&mut course, None, machine, console) {
            Halt::Ended(done) => done,
            Halt::Waits(_) | Halt::Body(..) => unreachable!("it goes on without a limit of time"),
        }
    }

    /// Hands a job to the interpreter.
    fn begin(&mut self, job: Job) -> Result<Course, String> {
        let course = Course { script: job.script.clone(), commands: 0, held: None };
        self.guard.again();
        self.engine.begin(job)?;
        Ok(course)
    }

    /// Answers what a job asks, until it is over; with `until`, until it asks for something after that time of its own, and until
    /// its body has ended.
    fn go_on(
        &mut self,
        course: &mut Course,
        until: Option<Until>,
        machine: &mut dyn Machine,
        console: &mut dyn Console,
    ) -> Halt {
        let held = course.held.take();
        let mut answers = Answering { course, until, guard: &self.guard, machine, console };
        match held.and_then(|request| answers.answer(request)) {
            Some(halt) => halt,
            None => self.engine.go_on(&mut answers),
        }
    }
}

/// Who answers an interpreter.
pub(crate) trait Answers {
    /// Answers a request; says where to halt.
    fn answer(&mut self, request: Request) -> Option<Halt>;
}

/// Answers what a job asks of a machine.
struct Answering<'a> {
    course: &'a mut Course,
    until: Option<Until>,
    guard: &'a Guard,
    machine: &'a mut dyn Machine,
    console: &'a mut dyn Console,
}

impl Answers for Answering<'_> {
    fn answer(&mut self, request: Request) -> Option<Halt> {
        let Answering { course, until, guard, machine, console } = self;
        let until = *until;
        match request {
            Request::Print(stdout, stderr) => {
                console.print(&plain(&stdout), &plain(&traced(&guard.as_bash_says(stderr))));
            }
            Request::Body(at, status) => {
                if until == Some(Until::Body) {
                    return Some(Halt::Body(at, status));
                }
            }
            Request::Command { at, .. }
            | Request::Launch { at, .. }
            | Request::Programs { at, .. }
            | Request::Done(at, _)
                if matches!(until, Some(Until::Time(time)) if at > time) =>
            {
                course.held = Some(request);
                return Some(Halt::Waits(at));
            }
            Request::Done(_, done) => return Some(Halt::Ended(done)),
            Request::Launch { words, at, reply } => {
                machine.passes(running::span(at));
                let _ = reply.send(match machine.launch(&words) {
                    Some(Ok(program)) => Launched::Runs(program),
                    Some(Err(output)) => Launched::Ended(output),
                    None => Launched::Unknown,
                });
            }
            Request::Programs { at, next, reply } => {
                // Only a script that goes on in the machine's time has programs under way.
                let Some(Until::Time(now)) = until else { return None };
                let ended = machine.ended();
                if ended.is_empty() && next.is_none_or(|next| next > now) {
                    course.held = Some(Request::Programs { at, next, reply });
                    return Some(Halt::Waits(next.unwrap_or(NEVER)));
                }
                let _ = reply.send((now, ended));
            }
            Request::Kill(program) => machine.kill(program),
            Request::Unknown(program, place) => {
                let place = given::Place::of(&place);
                let file = given::file(place.file, &course.script);
                console.unknown(&program, &file, place.line);
            }
            Request::Command { words, stdin, place, at, lends, reply } => {
                machine.passes(running::span(at));
                course.commands += usize::from(place.is_some());
                if course.commands > guard.limits.commands {
                    let limit = format!("commands given to the machine: {}", guard.limits.commands);
                    guard.stop(limit);
                    let _ = reply.send(Reply::Output(serve::gone()));
                    return None;
                }
                let mut files = Asked { stdin, lends, reply: reply.clone() };
                let wraps = words.first().is_some_and(|w| tools::WRAPPERS.contains(&w.as_str()));
                let output = match wraps.then(|| machine.elsewhere(&words, &mut files)) {
                    Some(None) if course.script.unknown.is_some() => {
                        let stdout = course.script.unknown.clone().unwrap_or_default() + "\n";
                        let _ = reply.send(Reply::Output(Output { stdout, ..Output::default() }));
                        return None;
                    }
                    Some(None) => {
                        let _ = reply.send(Reply::Output(tools::refused(&words[0])));
                        return None;
                    }
                    Some(Some(output)) => output,
                    None => machine.command(&words, &mut files),
                };
                let _ = reply.send(Reply::Output(output.clone()));
                if let Some(place) = place {
                    console.given(given::given(words, output, &place, &course.script));
                }
            }
        }
        None
    }
}

fn dead() -> String {
    "the interpreter has ended".to_owned()
}

/// A job that the interpreter runs.
struct Course {
    script: Script,
    /// Commands given to the machine.
    commands: usize,
    /// What it asks for at a time to come.
    held: Option<Request>,
}

/// How far to go.
#[derive(Clone, Copy, PartialEq)]
enum Until {
    Time(Duration),
    Body,
}

/// When a script goes on that waits for programs alone.
const NEVER: Duration = Duration::MAX;

/// Why an interpreter stopped.
pub(crate) enum Halt {
    /// It asks for something at this time of its own, or has waited for a program until then.
    Waits(Duration),
    /// The script has come to its end at this time, with this status; its jobs may go on.
    Body(Duration, i32),
    Ended(Result<i32, String>),
}

/// Whether what was typed wants more lines: an open quote, `for` without `done`, a here-document without its end.
pub fn wants_more(text: &str) -> bool {
    let open = |said: String| {
        ["unexpected end of", "unexpected EOF", "unterminated"].iter().any(|words| said.contains(words))
    };
    let slashes = text.chars().rev().take_while(|&c| c == '\\').count();
    slashes % 2 == 1
        || rewrite::here_document_is_open(text)
        || Parser::new(&rewrite::rewrite(text)).parse().is_err_and(|e| open(e.to_string()))
}

/// Runs a script to its end.
///
/// # Errors
/// Why it cannot be run at all, or the limit it was stopped at: what it did before has happened.
pub fn run(script: &Script, machine: &mut dyn Machine, console: &mut dyn Console) -> Result<i32, String> {
    run_within(&Limits::default(), script, machine, console)
}

/// Runs a script until its end, or until it has gone as far as these limits.
///
/// # Errors
/// Why it cannot be run at all, or the limit it was stopped at: what it did before has happened.
pub fn run_within(
    limits: &Limits,
    script: &Script,
    machine: &mut dyn Machine,
    console: &mut dyn Console,
) -> Result<i32, String> {
    if let Some(commands) = plain::wide(&script.text) {
        readable(limits, script)?;
        let name = if script.name.is_empty() { NAMELESS.to_owned() } else { script.name.clone() };
        let script = Script { name, ..script.clone() };
        return plain::run(commands, &script, false, limits.commands, machine, console);
    }
    let (mut shell, job) = started(limits, script, "", "")?;
    shell.run(job, machine, console)
}

/// Whether a script is one for a shell, and within its limits.
fn readable(limits: &Limits, script: &Script) -> Result<(), String> {
    if let Some(other) = other_language(&script.text) {
        return Err(format!(
            "{}: its first line says {other}: only shell scripts are run here (sh, bash, dash, ash, ksh)",
            script.name
        ));
    }
    limits.text_fits(script.text.len() + script.files.iter().map(|(_, text)| text.len()).sum::<usize>())
}

/// An interpreter, and what makes it run a script from a file; `before` and `behind` are commands around it.
fn started(limits: &Limits, script: &Script, before: &str, behind: &str) -> Result<(Shell, Job), String> {
    readable(limits, script)?;
    braces_fit(&script.text)?;
    let zero = called(&script.name);
    let mut files = script.files.clone();
    files.push((file_of(&zero), script.text.clone()));
    let main = Some(file_of(&zero));
    let shell =
        Shell::within(limits, "penstock", &files, main, (script.seed, script.clock), script.unknown.clone());
    // Read as a file, so that its lines are its own. `set -T` and the trap know the line in functions as well; the trap is
    // made of compound commands, which leave `$?` and `PIPESTATUS` alone. Extended patterns are on from the beginning, because
    // the interpreter would read the script again where it turns them on.
    let umask = if files.iter().any(|(_, text)| text.contains("umask")) {
        format!("{}${{_UMASK:-022}}/* ", files::UMASK)
    } else {
        String::new()
    };
    let calls = if script.unknown.is_some() { "\t${BASH_LINENO[*]}\t${BASH_SOURCE[*]}" } else { "" };
    let trap = format!(
        "set -T; trap 'for {LINE} in {umask}\"$LINENO:${{BASH_SOURCE:-}}{calls}\"; do case x in esac; done' DEBUG; "
    );
    let own = files.iter().any(|(_, text)| traps_debug(text));
    let quoted = |(name, value): &(String, String)| format!("export {name}={}; ", clock::quoted(value));
    let env: String = script.env.iter().map(quoted).collect();
    let text = format!("{env}{before}shopt -s extglob; {}. \"$0\"{behind}", if own { "" } else { &trap });
    let name = if script.name.is_empty() { NAMELESS.to_owned() } else { script.name.clone() };
    Ok((shell, Job { text, zero, script: Script { name, ..script.clone() } }))
}

/// Whether every word's braces give what the interpreter can expand: it would leave others as they are and say nothing.
fn braces_fit(text: &str) -> Result<(), String> {
    match rewrite::too_many_words(text) {
        None => Ok(()),
        Some((line, count)) => Err(limits::met(
            line,
            &format!(
                "braces of one word: 1000000 words of a range alone, else 100000 words, 10000 of each range, 90 pairs; \
                 these make {count}"
            ),
        )),
    }
}

/// `$0`: a name without a folder is one in the folder where the script is called, as one types it (`./shape.sh`).
fn called(name: &str) -> String {
    match name {
        "" => NAMELESS.to_owned(),
        // What was handed over by a descriptor has no file: the machine's own /dev is another.
        name if name.starts_with("/dev/") || name.starts_with("/proc/") => NAMELESS.to_owned(),
        name if name.contains('/') => name.to_owned(),
        name => format!("./{name}"),
    }
}

/// The file a path means where the interpreter begins.
pub fn file_of(path: &str) -> String {
    let whole = Path::new(HOME).join(path);
    let mut place = PathBuf::from("/");
    for part in whole.components() {
        match part {
            Component::ParentDir => {
                place.pop();
            }
            Component::Normal(name) => place.push(name),
            _ => {}
        }
    }
    place.to_string_lossy().into_owned()
}

/// The program of a first line `#!…` that is not a shell.
fn other_language(text: &str) -> Option<&str> {
    let line = text.lines().next()?.strip_prefix("#!")?;
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let mut words = line.split_whitespace();
    let mut program = words.next()?;
    if name(program) == "env" {
        program = words.find(|w| !w.starts_with('-') && !w.contains('='))?;
    }
    let shells = ["sh", "bash", "rbash", "dash", "ash", "ksh", "mksh", "zsh", "busybox"];
    (!shells.contains(&name(program).as_str())).then(|| line.trim())
}

/// Whether a script sets a DEBUG trap of its own.
fn traps_debug(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start).filter(|l| !l.starts_with('#'));
    lines.any(|l| {
        let mut words = l.split(|c: char| c.is_whitespace() || ";&|(){}`".contains(c));
        words.any(|w| w == "trap") && words.any(|w| w == "DEBUG")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Kernel;

    #[test]
    fn a_prompt_keeps_its_variables_and_endless_loops_end() {
        let mut host = Host::new("penstock", Kernel::V6_12, 1);
        host.add_device("eth0");
        let mut machine = At { host: &mut host, now: Time::ZERO };
        let limits = Limits { steps: 1000, ..Limits::default() };
        let mut shell = Shell::within(&limits, "penstock", &[], None, (0, 0), None);
        let mut line = |text: &str| {
            let mut kept = Kept::default();
            let status = shell.line(text, &mut machine, &mut kept);
            (status, kept.stdout + &kept.stderr)
        };
        assert_eq!(line("D=eth0; f() { tc qdisc add dev $D root handle $1: sfq; }"), (Ok(0), String::new()));
        assert_eq!(line("f 7"), (Ok(0), String::new()));
        assert_eq!(line("tc qdisc show dev $D | cut -d' ' -f1-3"), (Ok(0), "qdisc sfq 7:\n".to_owned()));
        assert!(line("while :; do :; done").0.is_err());
        assert_eq!(line("echo \"`echo $D`\""), (Ok(0), "eth0\n".to_owned()));
    }

    #[test]
    fn lines_that_want_more() {
        for open in [
            "for i in 1 2; do",
            "echo \"a",
            "f() {",
            "cat <<E",
            "cat <<E\nx",
            "a=$(",
            "x=`",
            "ls |",
            "echo \\",
            "case x in",
        ] {
            assert!(wants_more(open), "{open}");
        }
        for whole in [
            "for i in 1; do :; done",
            "fi",
            "echo )",
            "cat <<E\nx\nE",
            "cat <<E\nE\n",
            "echo \\\\",
            "",
            "# it's",
        ] {
            assert!(!wants_more(whole), "{whole}");
        }
    }

    #[test]
    fn exit_ends_the_prompt() {
        let mut host = Host::new("penstock", Kernel::V6_12, 1);
        let mut machine = At { host: &mut host, now: Time::ZERO };
        let mut shell = Shell::new("penstock", &[]);
        let mut line = |text: &str| (shell.line(text, &mut machine, &mut Kept::default()), shell.has_ended());
        assert_eq!(line("(exit 4)"), (Ok(4), false));
        assert_eq!(line("f() { exit 3; }; x=$(exit 2)"), (Ok(2), false));
        assert_eq!(line("false || f"), (Ok(3), true));
    }
}
