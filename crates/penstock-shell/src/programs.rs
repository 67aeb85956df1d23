//! Programs that take time, within a script: `ping`, `iperf`, whatever the machine runs.
//!
//! The interpreter's clock stands still and jumps to the next timer, so it must not jump past the end of a program that is under way.
//! The machine alone knows that end. So the command that waits for a program asks the machine, and says how far the clock may go: until
//! the first of the script's sleepers ([`Sleepers`]) wakes. It asks only where everything else in the script waits, which it sees by
//! waiting a millisecond first. The interpreter then stands still until the machine answers.
//!
//! What `timeout` ends gives what it has printed. What `kill` ends does not: the interpreter forgets such a job.

use crate::clock::TIMED_OUT;
use crate::limits::Guard;
use crate::serve::{Ask, Launched, Request, gone};
use crate::time::{Instant, sleep, sleep_until};
use crate::{line, tools};
use bashkit::{Builtin, BuiltinContext, ControlFlow, ExecResult, FileSystem, Result, async_trait};
use penstock_host::Output;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The programs of the kind.
pub(crate) const NAMES: &[&str] = &[
    "iperf",
    "iperf2",
    "iperf3",
    "mtr",
    "ping",
    "plink",
    "pscp",
    "putty",
    "scp",
    "telnet",
    "tracepath",
    "tracepath4",
    "tracepath6",
    "traceroute",
    "traceroute6",
];

/// The runtime's timers go off at whole milliseconds.
const TICK: Duration = Duration::from_millis(1);

/// Who sleeps, and what has become of programs.
#[derive(Default)]
pub(crate) struct Sleepers(Mutex<State>);

#[derive(Default)]
struct State {
    /// When each wakes, by number.
    ends: BTreeMap<u64, Instant>,
    /// Ends of `timeout`s, which nobody takes away.
    alarms: Vec<Instant>,
    /// How often somebody has lain down or woken up.
    changes: u64,
    /// When the `timeout` is over that the next program stands under, and whether its status is to be the program's own.
    limit: Option<(Instant, bool)>,
    /// Programs that have ended and that nobody has asked for yet: when, and what they gave.
    over: BTreeMap<u32, (Instant, Output)>,
}

impl Sleepers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Somebody sleeps until `end`, or until what this gives is dropped.
    pub(crate) fn until(&self, end: Instant) -> Asleep<'_> {
        let mut state = self.state();
        state.changes += 1;
        let number = state.changes;
        state.ends.insert(number, end);
        Asleep { sleepers: self, number }
    }
    /// Something happens at `end`.
    pub(crate) fn alarm(&self, end: Instant) {
        self.state().alarms.push(end);
    }
    /// The next program to be begun is to end by `end`; with `own_status` its exit status says nothing of that.
    pub(crate) fn limit(&self, end: Instant, own_status: bool) {
        self.state().limit = Some((end, own_status));
    }
    /// When something happens next.
    #[cfg(target_family = "wasm")]
    pub(crate) fn next_alarm(&self, now: Instant) -> Option<Instant> {
        self.state().alarms.iter().filter(|end| **end > now).min().copied()
    }
    fn changes(&self) -> u64 {
        self.state().changes
    }
    /// How far the clock may go at least: until the first wakes, `None` where nobody does. `now`, where somebody is just waking.
    fn first(&self, now: Instant, changes: u64) -> Option<Instant> {
        let mut state = self.state();
        let rings = state.alarms.iter().any(|end| *end > now - TICK && *end <= now);
        state.alarms.retain(|end| *end > now);
        if rings || state.changes != changes || state.ends.values().any(|end| *end <= now) {
            return Some(now);
        }
        state.ends.values().chain(&state.alarms).min().copied()
    }
}

/// Somebody sleeps.
pub(crate) struct Asleep<'a> {
    sleepers: &'a Sleepers,
    number: u64,
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        let mut state = self.sleepers.state();
        state.changes += 1;
        state.ends.remove(&self.number);
    }
}

/// A program that is under way. It ends with the command that waits for it (`kill`, `timeout`).
struct UnderWay {
    ask: Ask,
    program: u32,
    over: bool,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.ask.requests.send(Request::Kill(self.program));
        }
    }
}

/// The file that an iperf3 writes in place of its standard output.
fn log_file(words: &[String]) -> Option<&str> {
    let from = penstock_lang::ip::netns_exec(words).map_or(0, |(_, at)| at);
    let words = &words[from..];
    if words.first().is_none_or(|name| name != "iperf3") {
        return None;
    }
    let at = words.iter().position(|w| w == "--logfile" || w.starts_with("--logfile="))?;
    match words[at].strip_prefix("--logfile=") {
        Some(file) => Some(file),
        None => words.get(at + 1).map(String::as_str),
    }
}

/// One of [`NAMES`].
pub(crate) struct Launch {
    pub(crate) name: String,
    pub(crate) ask: Ask,
    pub(crate) guard: Arc<Guard>,
}

impl Launch {
    /// What a program gives, when it has ended; whether it was told to end, because it came to `end`.
    async fn end_of(&self, program: u32, mut end: Option<Instant>) -> (Output, bool) {
        let sleepers = &self.guard.sleepers;
        let mut under_way = UnderWay { ask: self.ask.clone(), program, over: false };
        let mut told = false;
        loop {
            let over = sleepers.state().over.remove(&program);
            if let Some((at, output)) = over {
                under_way.over = true;
                sleep_until(at).await;
                return (output, told);
            }
            if end.is_some_and(|end| end <= Instant::now()) {
                // Not every program ends by that.
                (end, told) = (None, true);
                let _ = self.ask.requests.send(Request::Kill(program));
            }
            let changes = sleepers.changes();
            sleep(TICK).await;
            if sleepers.state().over.contains_key(&program) {
                continue;
            }
            let next = sleepers.first(Instant::now(), changes);
            let next = next.into_iter().chain(end).min().map(|end| end.duration_since(self.ask.began));
            let (reply, mut answer) = channel();
            let _ = self.ask.requests.send(Request::Programs { at: self.ask.now(), next, reply });
            let Some((now, ended)) = line::next(&mut answer, &self.ask.requests).await else {
                under_way.over = true;
                return (gone(), told);
            };
            let now = self.ask.began + now;
            sleepers.state().over.extend(ended.into_iter().map(|(n, output)| (n, (now, output))));
            sleep_until(now).await;
        }
    }
}

/// Where a script stands: its files and its folder.
pub(crate) type Place = (Arc<dyn FileSystem>, PathBuf);

impl Launch {
    /// Begins a program with these words and waits for its end; `None` where the machine does not run it.
    pub(crate) async fn run(&self, words: Vec<String>, (fs, folder): Place) -> Option<ExecResult> {
        let log = log_file(&words).map(|file| folder.join(file));
        let limit = self.guard.sleepers.state().limit.take();
        let shells = self.guard.end();
        let end = limit.map(|(end, _)| end).into_iter().chain(shells).min();
        let (reply, mut answer) = channel();
        let _ = self.ask.requests.send(Request::Launch { words, at: self.ask.now(), reply });
        let (mut output, told) = match line::next(&mut answer, &self.ask.requests).await {
            Some(Launched::Runs(program)) => self.end_of(program, end).await,
            Some(Launched::Ended(output)) => (output, false),
            Some(Launched::Unknown) => return None,
            None => (gone(), false),
        };
        if let Some(log) = log {
            // As `fopen` with "a+": what is there stays.
            let mut text = fs.read_file(&log).await.unwrap_or_default();
            text.extend_from_slice(output.stdout.as_bytes());
            match fs.write_file(&log, &text).await {
                Ok(()) => output.stdout.clear(),
                Err(why) => {
                    output.stderr.push_str(&format!("iperf3: unable to write to {}: {why}\n", log.display()));
                }
            }
        }
        let mut result = tools::result(output);
        if told && limit.is_some_and(|(_, own_status)| !own_status) {
            result.exit_code = TIMED_OUT;
        }
        if shells.is_some_and(|end| end <= Instant::now()) {
            // The shell that it stands in is at its end.
            result.exit_code = TIMED_OUT;
            result.control_flow = ControlFlow::Exit(TIMED_OUT);
        }
        Some(result)
    }
}

#[async_trait]
impl Builtin for Launch {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let mut words = vec![self.name.clone()];
        words.extend(ctx.args.iter().map(|w| crate::marks::plain(w).into_owned()));
        let place = (Arc::clone(&ctx.fs), ctx.cwd.clone());
        Ok(self.run(words, place).await.unwrap_or_else(|| tools::result(tools::refused(&self.name))))
    }
}

/// The program that words begin in a network namespace (`ip netns exec NAME PROGRAM …`), where it is one of [`NAMES`].
pub(crate) fn in_namespace(words: &[String]) -> Option<&str> {
    let (_, at) = penstock_lang::ip::netns_exec(words)?;
    let name = words[at].rsplit('/').next()?;
    NAMES.contains(&name).then_some(name)
}
