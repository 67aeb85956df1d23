//! How far a script may go, and what is said where it goes further.
//!
//! The interpreter has limits of its own; some it tells by ending the script, some by a line on standard error, after which the
//! script goes on with less than it asked for. Both come together here: whatever is met ends as an error that names the limit, its
//! value and the place. `docs/notes/shell-limits.md` has the table.

use crate::programs::Sleepers;
use crate::time::Instant;
use bashkit::{Error, ExecutionBudgetExceeded, ExecutionLimits, FsLimits, LimitExceeded, MemoryLimits};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The interpreter's stack, bytes. Its trees are walked by recursion: a script's usual 2 MiB would not do for deep ones. Only
/// what is used takes memory.
#[cfg(not(target_family = "wasm"))]
pub(crate) const STACK: usize = 256 << 20;

/// What of the stack may be in use where a command begins. Where there is one stack for all, it is the program's (web/core says 64 MiB).
const STACK_USED: usize = if cfg!(target_family = "wasm") { 32 << 20 } else { 128 << 20 };

/// The stack of the threads that read a script's text, bytes.
#[cfg(not(target_family = "wasm"))]
pub(crate) const PARSER_STACK: usize = 128 << 20;

/// `if`, loops, `{ }`, `( )` within each other.
pub(crate) const CONSTRUCTS: usize = 100;

/// Bytes of a script with a fault of syntax whose lines before the fault are looked for.
pub(crate) const TRIED: usize = 1 << 20;

/// Jobs in the background, and stages of a pipeline.
const JOBS: usize = 1000;

/// Files; folders.
const FILES: u64 = 100_000;

/// Bytes that a `dd` of the interpreter's moves: its own limit.
pub(crate) const DD: u64 = 64 << 20;

/// `bash` and `sh` within each other: the interpreter's own limit.
const SHELLS: usize = 8;

/// How far a script may go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of the script and of the files it is given, together.
    pub text: usize,
    /// Commands carried out, and turns of loops.
    pub steps: usize,
    /// Commands given to the machine.
    pub commands: usize,
    /// Work inside commands, in units of the interpreter's: about one for a kilobyte or a step of awk.
    pub work: u64,
    /// Bytes of standard output and standard error together.
    pub output: usize,
    /// Bytes that pipes and expansions hold at once.
    pub pipes: u64,
    /// Bytes of all variables and arrays.
    pub variables: usize,
    /// Variables.
    pub names: usize,
    /// Bytes of all files the script has.
    pub files: u64,
    /// `eval` within `eval`.
    pub evals: usize,
    /// An emergency brake for what no count bounds (an array that grows by one element is copied each time): how long, by this
    /// computer's clock, a script may neither print nor ask anything. Only where it is reached does that clock matter.
    pub quiet: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            text: 64 << 20,
            steps: 5_000_000,
            commands: 250_000,
            work: 2_000_000_000,
            output: 64 << 20,
            pipes: 256 << 20,
            variables: 32 << 20,
            names: 100_000,
            files: 256 << 20,
            evals: 100,
            quiet: Duration::from_secs(60),
        }
    }
}

impl Limits {
    /// The interpreter's own, for texts of so many bytes.
    pub(crate) fn of_interpreter(&self, text: usize) -> ExecutionLimits {
        ExecutionLimits::cli()
            .max_commands(self.steps)
            .max_loop_iterations(self.steps)
            .max_total_loop_iterations(self.steps)
            .max_work_units(self.work)
            .max_aggregate_input_bytes(u64::MAX)
            .max_live_intermediate_bytes(self.pipes)
            .max_input_bytes(self.text)
            // A token is looked at some ten times; an honest byte is part of one token.
            .max_parser_operations(text.saturating_mul(50).saturating_add(1_000_000))
            // The parser's steps end it, not this computer's clock.
            .parser_timeout(Duration::from_secs(u64::MAX / 2))
            // What goes beyond these is cut in silence: [`Guard::prints`] stops the script before.
            .max_stdout_bytes(self.output.saturating_add(1 << 24))
            .max_stderr_bytes(self.output.saturating_add(1 << 24))
            .max_ast_depth(CONSTRUCTS)
            .max_background_jobs(JOBS)
            .max_word_split_fields(1_000_000)
            .max_word_split_bytes(self.variables)
    }
    /// The same of memory.
    pub(crate) fn of_memory(&self) -> MemoryLimits {
        MemoryLimits::new()
            .max_variable_count(self.names)
            .max_total_variable_bytes(self.variables)
            // `a=(…)` beyond this is cut in silence: what pipes and expansions may hold is met before.
            .max_array_entries(4_000_000)
            .max_function_count(100_000)
            .max_function_body_bytes(self.text)
    }
    /// The same of files.
    pub(crate) fn of_files(&self) -> FsLimits {
        FsLimits::new()
            .max_total_bytes(self.files)
            .max_file_size(self.files)
            .max_file_count(FILES)
            .max_dir_count(FILES)
    }
    /// Whether these texts are too long.
    pub(crate) fn text_fits(&self, bytes: usize) -> Result<(), String> {
        if bytes <= self.text {
            return Ok(());
        }
        Err(met(0, &format!("the script and its files: {} bytes, and these are {bytes}", self.text)))
    }
    /// What an error of the interpreter's says of a limit; `None` where it is about something else.
    fn of_error(&self, error: &Error) -> Option<String> {
        let limit = match error {
            Error::ResourceLimit(limit) => limit,
            Error::Execution(said) => return depth(said),
            _ => return None,
        };
        Some(match limit {
            LimitExceeded::MaxCommands(_)
            | LimitExceeded::MaxLoopIterations(_)
            | LimitExceeded::MaxTotalLoopIterations(_)
            | LimitExceeded::SessionMaxCommands(_) => format!("commands and turns of loops: {}", self.steps),
            LimitExceeded::MaxFunctionDepth(n) => {
                format!("functions, sourced files and shells within each other: {n}")
            }
            LimitExceeded::MaxSubstDepth(n) => format!("$( ) within each other: {n}"),
            LimitExceeded::MaxSubshellDepth(n) => format!("( ) within each other: {n}"),
            LimitExceeded::MaxPromptDepth(n) => format!("prompts within each other: {n}"),
            LimitExceeded::MaxTrapDepth(n) => format!("traps within each other: {n}"),
            LimitExceeded::MaxConcurrentJobs(n) => format!("jobs in the background: {n}"),
            LimitExceeded::MaxFileDescriptors(n) => format!("open files: {n}"),
            LimitExceeded::AstTooDeep(_, n) => format!("constructs within each other: {n}"),
            LimitExceeded::ParserExhausted(_, n) => format!("steps of the parser: {n}"),
            LimitExceeded::InputTooLarge(_, n) => format!("bytes of a text that is run: {n}"),
            LimitExceeded::ExecutionBudget(ExecutionBudgetExceeded::WorkUnits { limit, .. }) => {
                format!("work inside commands: {limit} units")
            }
            LimitExceeded::ExecutionBudget(ExecutionBudgetExceeded::LiveBytes { limit, .. }) => {
                format!("bytes that pipes and expansions hold: {limit}")
            }
            other => other.to_string(),
        })
    }
}

/// What the interpreter says of depths in words only.
fn depth(said: &str) -> Option<String> {
    const WORDS: [(&str, &str); 9] = [
        ("AST nesting too deep", "constructs within each other: 100"),
        ("parameter expansion nesting too deep", "${ } within each other: 100"),
        (
            "expression recursion level exceeded",
            "operators and parentheses of one arithmetic expression: 1000",
        ),
        ("maximum source depth exceeded", "functions, sourced files and shells within each other: 16"),
        ("maximum function depth exceeded", "functions, sourced files and shells within each other: 16"),
        ("maximum nesting depth exceeded", "shells within each other: 8"),
        ("maximum command substitution depth exceeded", "$( ) within each other: 32"),
        ("maximum subshell depth exceeded", "( ) within each other: 32"),
        ("maximum trap nesting depth exceeded", "traps within each other: 3"),
    ];
    WORDS.iter().find(|(words, _)| said.contains(words)).map(|(_, limit)| (*limit).to_owned())
}

/// Whether a command says that it gives less than it was asked for.
fn cut(line: &str) -> bool {
    line.contains("exceeded") && line.contains(" limit ") || line.contains("cartesian product too large")
}

/// What a job that cannot begin, or a `dd` that stops early, says of a limit.
fn refused(line: &str) -> Option<String> {
    if line.contains("fork: retry: Resource temporarily unavailable (max ") {
        return Some(format!("jobs in the background: {JOBS}"));
    }
    line.contains("bashkit dd limit").then(dd_stops)
}

/// The limit of `dd`.
pub(crate) fn dd_stops() -> String {
    format!("bytes that dd moves: {DD}")
}

/// What the interpreter says where a file cannot be written; `None` where that is no limit of it.
fn of_file(said: &str, limits: &Limits) -> Option<String> {
    if said.contains("filesystem full: ") || said.contains("file too large: ") {
        return Some(format!("bytes of all files: {}", limits.files));
    }
    let many = said.contains("too many files: ") || said.contains("too many directories: ");
    many.then(|| format!("files, and folders: {FILES}"))
}

/// The sentence for a limit that is met on a line; 0 where that is not known.
pub(crate) fn met(line: u32, limit: &str) -> String {
    let place = if line > 0 { format!("line {line}: ") } else { String::new() };
    format!("{place}stopped at a limit of the virtual machine: {limit}")
}

/// What is held between the interpreter, its commands and whoever answers them.
pub(crate) struct Guard {
    pub(crate) limits: Limits,
    /// Ends the interpreter at its next command.
    cancel: OnceLock<Arc<AtomicBool>>,
    /// The first limit that was met.
    met: Mutex<Option<String>>,
    /// Where the interpreter's stack begins.
    base: AtomicUsize,
    /// `eval`, `bash` and `sh` that have begun and not ended, each with its place on the stack: the interpreter tells when they
    /// begin, and where it tells of an end it makes text of what they print.
    within: Mutex<Vec<(usize, &'static str)>>,
    /// Ends of `timeout`s over shells, with their places on the stack.
    ends: Mutex<Vec<(usize, Instant)>>,
    /// Who sleeps, and until when.
    pub(crate) sleepers: Sleepers,
    /// Bytes printed.
    printed: AtomicUsize,
    /// Whether a device without an end was read.
    device: AtomicBool,
    /// The command of the interpreter's that began last.
    command: Mutex<String>,
    /// Settings that were refused: file, why, and the command that wrote.
    refusals: Mutex<Vec<(String, String, String)>>,
}

impl Guard {
    pub(crate) fn new(limits: Limits) -> Guard {
        Guard {
            limits,
            cancel: OnceLock::new(),
            met: Mutex::new(None),
            base: AtomicUsize::new(0),
            within: Mutex::new(Vec::new()),
            ends: Mutex::new(Vec::new()),
            sleepers: Sleepers::default(),
            printed: AtomicUsize::new(0),
            device: AtomicBool::new(false),
            command: Mutex::new(String::new()),
            refusals: Mutex::new(Vec::new()),
        }
    }
    /// The interpreter stands, and its stack begins here.
    pub(crate) fn begins(&self, cancel: Arc<AtomicBool>) {
        let _ = self.cancel.set(cancel);
        self.base.store(here(), Ordering::Relaxed);
    }
    /// Something new is to be run.
    pub(crate) fn again(&self) {
        if let Some(cancel) = self.cancel.get() {
            cancel.store(false, Ordering::Relaxed);
        }
        *self.met.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.within().clear();
        self.printed.store(0, Ordering::Relaxed);
    }
    /// A limit is met, and the script goes on as the interpreter has it.
    pub(crate) fn note(&self, limit: String) {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(limit);
    }
    /// A limit is met, and the script ends.
    pub(crate) fn stop(&self, limit: String) {
        self.note(limit);
        if let Some(cancel) = self.cancel.get() {
            cancel.store(true, Ordering::Relaxed);
        }
    }
    fn within(&self) -> MutexGuard<'_, Vec<(usize, &'static str)>> {
        self.within.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether the stack has room for more. Where it has not, whatever has used it up, the script ends.
    pub(crate) fn has_room(&self) -> bool {
        let base = self.base.load(Ordering::Relaxed);
        let room = base == 0 || base.abs_diff(here()) <= STACK_USED;
        if !room {
            let what = "scripts that call themselves, and whatever else stands within each other";
            self.stop(format!("{what}: {} MiB of the interpreter's stack", STACK_USED >> 20));
        }
        room
    }
    /// A command begins: whether it may.
    pub(crate) fn may_begin(&self, name: &str) -> bool {
        name.clone_into(&mut self.command.lock().unwrap_or_else(PoisonError::into_inner));
        let (kind, most, what) = match name {
            "eval" => ("eval", self.limits.evals, "eval within eval"),
            "bash" | "sh" => ("sh", SHELLS, "shells within each other"),
            _ => ("", usize::MAX, ""),
        };
        let here = here();
        self.ends().retain(|(place, _)| *place > here);
        let mut within = self.within();
        // The stack grows downwards: what began here or further down has ended, whatever has ended it.
        within.retain(|(place, _)| *place > here);
        if kind.is_empty() {
            drop(within);
            return self.has_room();
        }
        if within.iter().filter(|w| w.1 == kind).count() >= most {
            drop(within);
            self.stop(format!("{what}: {most}"));
            return false;
        }
        within.push((here, kind));
        drop(within);
        self.has_room()
    }
    fn ends(&self) -> MutexGuard<'_, Vec<(usize, Instant)>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A shell begins, whose commands may wait until `end`.
    pub(crate) fn until(&self, end: Instant) {
        let here = here();
        let mut ends = self.ends();
        ends.retain(|(place, _)| *place > here);
        ends.push((here, end));
    }
    /// When the first `timeout` ends that a command stands in.
    pub(crate) fn end(&self) -> Option<Instant> {
        let here = here();
        self.ends().iter().filter(|(place, _)| *place > here).map(|(_, end)| *end).min()
    }
    /// A setting is refused.
    pub(crate) fn refused(&self, path: &str, why: &str) {
        let command = self.command.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if matches!(command.as_str(), "echo" | "printf")
            && !why.starts_with("No such file")
            && why != "Permission denied"
        {
            let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            refusals.push((path.to_owned(), why.to_owned(), command));
        }
    }
    /// What goes to standard error, as bash says it: where a setting is refused, by the command that writes; of options without the line.
    pub(crate) fn as_bash_says(&self, stderr: String) -> String {
        let mut stderr = stderr;
        for (path, why, command) in self.refusals.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            stderr =
                stderr.replace(&format!(": {path}: {why}\n"), &format!(": {command}: write error: {why}\n"));
        }
        // Of a variable's value, which stands in arithmetic of ours.
        if let Some((_, behind)) = stderr.split_once(":-0})")
            && let Some((_, token)) = behind.split_once("value too great for base (error token is \"")
            && let (Some((token, _)), Some(at)) = (token.split_once('"'), stderr.find(": ("))
            && let Some(end) = stderr[at..].find(": value too great")
        {
            stderr = format!("{}: {token}{}", &stderr[..at], &stderr[at + end..]);
        }
        if stderr.contains(": getopts: ") {
            let line = |line: &str| -> Option<String> {
                let (place, said) = line.split_once(": getopts: ")?;
                let (who, _) = place.rsplit_once(": line ")?;
                let (what, letter) = said.split_once(" -- '")?;
                Some(format!("{who}: {what} -- {}", letter.strip_suffix('\'')?))
            };
            stderr = stderr
                .split('\n')
                .map(|l| line(l).unwrap_or_else(|| l.to_owned()))
                .collect::<Vec<_>>()
                .join("\n");
        }
        stderr
    }
    /// A device without an end is read.
    pub(crate) fn reads_device(&self) {
        self.device.store(true, Ordering::Relaxed);
    }
    /// Whether one was.
    pub(crate) fn device_read(&self) -> bool {
        self.device.load(Ordering::Relaxed)
    }
    /// Text goes out: standard output and standard error.
    pub(crate) fn prints(&self, stdout: &str, stderr: &str) {
        let more = stdout.len() + stderr.len();
        if self.printed.fetch_add(more, Ordering::Relaxed) + more > self.limits.output {
            self.stop(format!("bytes of output: {}", self.limits.output));
        }
        self.hears(stderr);
    }
    /// What commands say on standard error, wherever that goes.
    pub(crate) fn hears(&self, stderr: &str) {
        for line in stderr.lines() {
            let deep = || (line.contains("exceeded") || line.contains("too ")).then(|| depth(line)).flatten();
            let limit = deep().or_else(|| refused(line)).or_else(|| cut(line).then(|| line.to_owned()));
            if let Some(limit) = limit {
                self.note(limit);
            }
        }
    }
    /// What became of a write. Where a limit refuses it the script goes on without, and what it says of that may be hidden.
    pub(crate) fn written<T>(&self, result: bashkit::Result<T>) -> bashkit::Result<T> {
        if let Err(e) = &result
            && let Some(limit) = of_file(&e.to_string(), &self.limits)
        {
            self.note(limit);
        }
        result
    }
    /// What has become of a run: its status, or why it was stopped; `line` is where it stood.
    pub(crate) fn done(&self, result: Result<i32, Error>, line: u32) -> Result<i32, String> {
        let met_before = self.met.lock().unwrap_or_else(PoisonError::into_inner).take();
        let of_error = result.as_ref().err().and_then(|e| self.limits.of_error(e));
        match (met_before.or(of_error), result) {
            (Some(limit), _) => Err(met(line, &limit)),
            (None, result) => result.map_err(|e| e.to_string()),
        }
    }
}

/// Roughly where the stack ends now.
#[inline(never)]
fn here() -> usize {
    let mark = 0_u8;
    std::hint::black_box(&raw const mark) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_by_name() {
        let guard = Guard::new(Limits::default());
        assert_eq!(guard.done(Ok(3), 0), Ok(3));
        guard.hears("x: quota exceeded\nseq: line limit (100000) exceeded; output truncated\n");
        assert_eq!(
            guard.done(Ok(0), 7),
            Err("line 7: stopped at a limit of the virtual machine: seq: line limit (100000) exceeded; output truncated"
                .to_owned())
        );
        assert_eq!(guard.done(Ok(0), 7), Ok(0), "told once");
        let deep = Error::ResourceLimit(LimitExceeded::MaxFunctionDepth(16));
        assert!(
            guard
                .done(Err(deep), 2)
                .unwrap_err()
                .contains("functions, sourced files and shells within each other: 16")
        );
    }

    /// Their words are the interpreter's: a later one may say it otherwise, and the scripts of `tests/limits.rs` show it.
    #[test]
    fn what_commands_are_refused_is_told() {
        let limit = |said: &str| {
            let guard = Guard::new(Limits::default());
            guard.hears(said);
            guard.done(Ok(0), 3)
        };
        let told = |what: &str| Err(format!("line 3: stopped at a limit of the virtual machine: {what}"));
        let job = "x: fork: retry: Resource temporarily unavailable (max 1000 background jobs, 32 nested)\n";
        assert_eq!(limit(job), told("jobs in the background: 1000"));
        let dd = "dd: stopped after 67108864 bytes (bashkit dd limit)\n";
        assert_eq!(limit(dd), told("bytes that dd moves: 67108864"));
        assert_eq!(limit("too many files\nthe limit is high\n"), Ok(0));
    }

    #[test]
    fn output_is_counted() {
        let guard = Guard::new(Limits { output: 10, ..Limits::default() });
        guard.prints("12345", "1234");
        assert_eq!(guard.done(Ok(0), 0), Ok(0));
        guard.prints("", "12");
        assert!(guard.done(Ok(0), 0).unwrap_err().ends_with("bytes of output: 10"));
    }
}
