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

mod chance;
mod clock;
mod dice;
mod files;
mod getopt;
mod given;
mod install;
mod limits;
mod mktemp;
mod plain;
mod rewrite;
mod running;
mod serve;
mod stat;
mod tools;
mod turns;

pub use limits::Limits;
pub use running::{Progress, Running};

use bashkit::hooks::HookAction;
use bashkit::parser::Parser;
use bashkit::{Bash, ExecOptions, FileSystem, SessionLimits, StreamData};
use chance::Chance;
use limits::Guard;
use penstock_host::{Files, Host, Output};
use penstock_model::Time;
use serve::{Ask, Asked, Reply, Request};
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

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
}

/// A network command a script has given.
#[derive(Clone, PartialEq, Debug)]
pub struct Given {
    /// Number of its line, from 1; 0 where it is not known.
    pub line: u32,
    /// The file of that line.
    pub file: String,
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
    jobs: Option<Sender<Job>>,
    requests: Receiver<Request>,
    thread: Option<JoinHandle<()>>,
    ended: Arc<AtomicBool>,
    guard: Arc<Guard>,
}

/// One thing to run.
struct Job {
    /// What the interpreter reads.
    text: String,
    /// `$0`.
    zero: String,
    script: Script,
}

/// What an interpreter begins with.
struct Begin {
    hostname: String,
    files: Vec<(String, String)>,
    seed: u64,
    clock: i64,
    /// Bytes of text that it is to read.
    text: usize,
    /// The file that is the script, where one is.
    main: Option<String>,
}

impl Shell {
    /// An interpreter that finds these files.
    pub fn new(hostname: &str, files: &[(String, String)]) -> Shell {
        Shell::within(&Limits::default(), hostname, files, None, (0, 0))
    }

    fn within(
        limits: &Limits,
        hostname: &str,
        files: &[(String, String)],
        main: Option<String>,
        (seed, clock): (u64, i64),
    ) -> Shell {
        let (jobs, todo) = channel::<Job>();
        let (asks, requests) = channel();
        let hostname = hostname.to_owned();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.clone(), rewrite::rewrite(text))).collect();
        let text = files.iter().map(|(_, text)| text.len()).sum();
        let begin = Begin { hostname, files, seed, clock, text, main };
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let guard = Arc::new(Guard::new(limits.clone()));
        let guards = Arc::clone(&guard);
        let run = move || interpret(begin, asks, &todo, &end, &guards);
        let thread = thread::Builder::new().name("script".to_owned()).stack_size(limits::STACK).spawn(run);
        Shell { jobs: Some(jobs), requests, thread: thread.ok(), ended, guard }
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
        self.jobs.as_ref().ok_or_else(dead)?.send(job).map_err(|_| dead())?;
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
        loop {
            let request = match course.held.take() {
                Some(request) => request,
                None => match self.requests.recv_timeout(self.guard.limits.quiet) {
                    Ok(request) => request,
                    Err(RecvTimeoutError::Disconnected) => return Halt::Ended(Err(dead())),
                    Err(RecvTimeoutError::Timeout) => return Halt::Ended(Err(self.brake())),
                },
            };
            match request {
                Request::Print(stdout, stderr) => {
                    console.print(&plain(&stdout), &plain(&traced(&self.guard.as_bash_says(stderr))));
                }
                Request::Body(at, status) => {
                    if until == Some(Until::Body) {
                        return Halt::Body(at, status);
                    }
                }
                Request::Command { at, .. } | Request::Done(at, _) if matches!(until, Some(Until::Time(time)) if at > time) =>
                {
                    course.held = Some(request);
                    return Halt::Waits(at);
                }
                Request::Done(_, done) => return Halt::Ended(done),
                Request::Command { words, stdin, place, reply, .. } => {
                    course.commands += usize::from(place.is_some());
                    if course.commands > self.guard.limits.commands {
                        let limit = format!("commands given to the machine: {}", self.guard.limits.commands);
                        self.guard.stop(limit);
                        let _ = reply.send(Reply::Output(serve::gone()));
                        continue;
                    }
                    let mut files = Asked { stdin, reply: reply.clone() };
                    let wraps = words.first().is_some_and(|w| tools::WRAPPERS.contains(&w.as_str()));
                    let output = match wraps.then(|| machine.elsewhere(&words, &mut files)) {
                        Some(None) => {
                            let _ = reply.send(Reply::Output(tools::refused(&words[0])));
                            continue;
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
        }
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

/// Why an interpreter stopped.
enum Halt {
    /// It asks for something at this time of its own.
    Waits(Duration),
    /// The script has come to its end at this time, with this status; its jobs may go on.
    Body(Duration, i32),
    Ended(Result<i32, String>),
}

impl Shell {
    /// Ends an interpreter that neither prints nor asks. Where it does not end at once, it is left alone with itself.
    fn brake(&mut self) -> String {
        let quiet = self.guard.limits.quiet;
        self.guard.stop(format!("time without a word, by this computer's clock: {} s", quiet.as_secs_f64()));
        loop {
            match self.requests.recv_timeout(Duration::from_secs(5)) {
                Ok(Request::Done(_, Err(why))) => return why,
                Ok(_) => {}
                Err(_) => {
                    (self.jobs, self.thread) = (None, None);
                    return self.guard.done(Ok(0), 0).err().unwrap_or_default();
                }
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Without jobs the thread ends, when it is done with the one at hand: that is stopped, and whatever it asks is answered by the
        // machine's being gone.
        self.jobs = None;
        self.guard.stop("the machine is gone".to_owned());
        self.requests = channel().1;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
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
    let (mut shell, job) = started(limits, script, "", "")?;
    shell.run(job, machine, console)
}

/// An interpreter, and what makes it run a script from a file; `before` and `behind` are commands around it.
fn started(limits: &Limits, script: &Script, before: &str, behind: &str) -> Result<(Shell, Job), String> {
    if let Some(other) = other_language(&script.text) {
        return Err(format!(
            "{}: its first line says {other}: only shell scripts are run here (sh, bash, dash, ash, ksh)",
            script.name
        ));
    }
    limits.text_fits(script.text.len() + script.files.iter().map(|(_, text)| text.len()).sum::<usize>())?;
    braces_fit(&script.text)?;
    let zero = called(&script.name);
    let mut files = script.files.clone();
    files.push((file_of(&zero), script.text.clone()));
    let main = Some(file_of(&zero));
    let shell = Shell::within(limits, "penstock", &files, main, (script.seed, script.clock));
    // Read as a file, so that its lines are its own. `set -T` and the trap know the line in functions as well; the trap is
    // made of compound commands, which leave `$?` and `PIPESTATUS` alone. Extended patterns are on from the beginning, because
    // the interpreter would read the script again where it turns them on.
    let umask = if files.iter().any(|(_, text)| text.contains("umask")) {
        format!("{}${{_UMASK:-022}}/* ", files::UMASK)
    } else {
        String::new()
    };
    let trap = format!(
        "set -T; trap 'for {LINE} in {umask}\"$LINENO:${{BASH_SOURCE:-}}\"; do case x in esac; done' DEBUG; "
    );
    let own = files.iter().any(|(_, text)| traps_debug(text));
    let text = format!("{before}shopt -s extglob; {}. \"$0\"{behind}", if own { "" } else { &trap });
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
        name if name.contains('/') => name.to_owned(),
        name => format!("./{name}"),
    }
}

/// The file a path means where the interpreter begins.
fn file_of(path: &str) -> String {
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

/// The interpreter's thread.
fn interpret(
    begin: Begin,
    requests: Sender<Request>,
    todo: &Receiver<Job>,
    ended: &Arc<AtomicBool>,
    guard: &Arc<Guard>,
) {
    // Its clock stands still and jumps to the next timer where everything waits.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .thread_stack_size(limits::PARSER_STACK)
        .max_blocking_threads(1)
        .build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(turns::InTurns::new(serve_jobs(begin, requests, todo, ended, guard)));
}

async fn serve_jobs(
    begin: Begin,
    requests: Sender<Request>,
    todo: &Receiver<Job>,
    ended: &Arc<AtomicBool>,
    guard: &Arc<Guard>,
) {
    let ask = &Ask { requests, began: tokio::time::Instant::now() };
    let chance = Arc::new(Chance::new(begin.seed));
    let is_run = Arc::new(AtomicBool::new(false));
    let fs = Arc::new(files::MachineFs::new(
        ask.clone(),
        penstock_host::Program::of_scripts().map(|p| p.name),
        &begin.files,
        Arc::clone(&chance),
        Arc::clone(&is_run),
        Arc::clone(guard),
    ));
    let mut builder = Bash::builder()
        .fs(fs.clone())
        .limits(guard.limits.of_interpreter(begin.text))
        .memory_limits(guard.limits.of_memory())
        .session_limits(SessionLimits::unlimited())
        .fixed_epoch(files::EPOCH + begin.clock)
        .hostname(&begin.hostname)
        .username("root")
        .env("UID", "0")
        .env("EUID", "0")
        .env("HOME", "/root")
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .cwd(HOME)
        .builtin_filter(|name| !tools::REFUSED.contains(&name))
        .command_resolver(Arc::new(tools::Elsewhere(ask.clone())));
    let clock = clock::Clock::new(begin.clock, guard);
    let ours = tools::all(ask, guard).into_iter().chain(clock.tools()).chain(dice::tools(&chance));
    for (name, builtin) in ours.chain(tools::of_files()) {
        builder = builder.builtin(name, builtin);
    }
    let end = Arc::clone(ended);
    let exits = ask.clone();
    let before = Arc::clone(guard);
    let mut bash = builder
        .on_exit(Box::new(move |event| {
            end.store(true, Ordering::Relaxed);
            let _ = exits.requests.send(Request::Body(exits.now(), event.code));
            HookAction::Continue(event)
        }))
        .before_tool(Box::new(move |mut event| {
            if !before.may_begin(&event.name) {
                return HookAction::Cancel("at a limit".to_owned());
            }
            is_run.store(matches!(event.name.as_str(), "." | "source" | "bash" | "sh"), Ordering::Relaxed);
            tools::instead(&event.name, &mut event.args, &before);
            rewrite_words(&event.name, &mut event.args);
            HookAction::Continue(event)
        }))
        .build();
    guard.begins(bash.cancellation_token());
    // A file that the interpreter's memory does not take would not be run, and nobody would know.
    let mut lost = None;
    for (path, _) in &begin.files {
        if !fs.exists(Path::new(path)).await.unwrap_or(false) {
            lost = Some(format!("{path}: its name cannot be held by the virtual machine"));
        }
    }
    // Bash runs what stands before a fault of syntax: the file is read twice then, the second time for the fault alone.
    let is_main = |(path, _): &&(String, String)| begin.main.as_ref() == Some(path);
    let mut twice = false;
    if let Some((path, text)) = begin.files.iter().rev().find(is_main)
        && let Some(before) = before_fault(text)
    {
        twice = true;
        fs.at_first(path, before);
    }
    let seed = if begin.seed == 0 { 1 } else { chance::mix(begin.seed) as u32 >> 1 };
    let _ = bash
        .exec(&format!(
            "RANDOM={seed}; declare -n SRANDOM=RANDOM; unset OLDPWD; export -n UID EUID; PS4='{TRACE}+ '"
        ))
        .await;
    while let Ok(job) = todo.recv() {
        if let Some(lost) = &lost {
            let _ = ask.requests.send(Request::Done(ask.now(), Err(lost.clone())));
            continue;
        }
        let (printer, hears) = (ask.requests.clone(), Arc::clone(guard));
        let print = move |stdout: &StreamData, stderr: &StreamData| {
            let (stdout, stderr) = (stdout.text_lossy(), stderr.text_lossy());
            hears.prints(&stdout, &stderr);
            let _ = printer.send(Request::Print(stdout.into_owned(), stderr.into_owned()));
        };
        let options =
            ExecOptions::new().arg0(job.zero).positional(job.script.args).streaming(Box::new(print));
        let options = if job.script.stdin.is_empty() { options } else { options.stdin(job.script.stdin) };
        let text = if twice { job.text.replacen(". \"$0\"", ". \"$0\"; . \"$0\"", 1) } else { job.text };
        let done = bash.exec_with_options(&text, options).await;
        let state = bash.shell_state_view();
        let line = state.variables.get(LINE).and_then(|place| place.split(':').next()?.parse().ok());
        let done = guard.done(done.map(|result| result.exit_code), line.unwrap_or(0));
        if ask.requests.send(Request::Done(ask.now(), done)).is_err() {
            return;
        }
    }
}

/// The lines of a script that bash runs before it meets a fault of syntax; `None` where there is none, or nothing before it.
fn before_fault(text: &str) -> Option<&str> {
    let parsed = |text: &str| {
        let fuel = text.len().saturating_mul(50).saturating_add(1_000_000);
        Parser::with_limits(text, limits::CONSTRUCTS, fuel).parse()
    };
    if text.len() > limits::TRIED || !matches!(parsed(text), Err(bashkit::Error::Parse { .. })) {
        return None;
    }
    let ends = text.match_indices('\n').map(|(at, _)| at + 1).filter(|&end| end < text.len());
    let ends: Vec<usize> = ends.collect();
    // What opens a construct that never closes may stand far above.
    let mut read = 0;
    let end = ends
        .into_iter()
        .rev()
        .take_while(|&end| {
            read += end;
            read <= limits::TRIED * 64
        })
        .find(|&end| !rewrite::here_document_is_open(&text[..end]) && parsed(&text[..end]).is_ok())?;
    Some(&text[..end])
}

/// Text that a command runs as a script, written as the interpreter reads it rightly.
fn rewrite_words(name: &str, words: &mut [String]) {
    let at = match name {
        "trap" => words.iter().position(|w| !w.starts_with('-')),
        "bash" | "sh" => words.iter().position(|w| w.starts_with('-') && w.ends_with('c')).map(|at| at + 1),
        "eval" if words.len() > 1 => {
            // Words are one text; a quote may begin in one and end in another.
            if words.iter().any(|w| w.contains(['`', '$', '{'])) {
                let joined = rewrite::rewrite(&words.join(" "));
                words.fill(String::new());
                words[0] = joined;
            }
            return;
        }
        "eval" => Some(0),
        _ => None,
    };
    if let Some(word) = at.and_then(|at| words.get_mut(at)) {
        *word = rewrite::rewrite(word);
    }
}

/// A mark of ours before what a traced command begins with (`PS4`): the interpreter repeats it for each script within another, and
/// counts the file that it reads a script from.
pub(crate) const TRACE: char = '\u{e00f}';

/// What was traced (`set -x`), as deep as bash has it.
pub(crate) fn traced(text: &str) -> Cow<'_, str> {
    if !text.contains(TRACE) {
        return Cow::Borrowed(text);
    }
    let line = |line: &str| {
        let rest = line.trim_start_matches(TRACE);
        let marks = (line.len() - rest.len()) / TRACE.len_utf8();
        // What tells of a script's end is no command of the script's.
        if marks > 0 && rest.contains(tools::BODY) {
            return None;
        }
        Some(match rest.chars().next() {
            Some(first) if marks > 2 => first.to_string().repeat(marks - 2) + rest,
            _ => rest.to_owned(),
        })
    };
    Cow::Owned(text.split('\n').filter_map(line).collect::<Vec<_>>().join("\n"))
}

/// The same of what goes into a file.
pub(crate) fn traced_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains(TRACE) => Cow::Owned(traced(text).into_owned().into_bytes()),
        _ => Cow::Borrowed(bytes),
    }
}

/// Text without the marks that the interpreter keeps for itself and sometimes leaves in words.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let mark = |c: char| ('\u{e000}'..='\u{e00f}').contains(&c);
    if text.contains(mark) { Cow::Owned(text.replace(mark, "")) } else { Cow::Borrowed(text) }
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
        let mut shell = Shell::within(&limits, "penstock", &[], None, (0, 0));
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

    #[test]
    fn the_interpreter_s_marks_are_taken_out() {
        assert_eq!(plain("a\u{e000}b"), "ab");
    }
}
