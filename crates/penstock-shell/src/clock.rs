//! A script's clock: it begins at one moment and goes on only while the script sleeps.
//!
//! The interpreter runs on a runtime whose time stands still (tokio's paused clock). Where everything waits, it jumps to the next
//! timer. So `sleep`, `timeout`, `wait`, `$SECONDS` and `time` agree, and no computer's clock is read.

use crate::files::EPOCH;
use crate::limits::Guard;
use crate::programs;
use crate::time::Instant;
use bashkit::ControlFlow;
use bashkit::{Bash, Builtin, BuiltinContext, ExecResult, ExecutionPlan, Result, SubCommand, async_trait};
use std::sync::Arc;
use std::time::Duration;

/// The command that says what `$EPOCHSECONDS` and `$EPOCHREALTIME` are ([`crate::rewrite`] calls it).
pub(crate) const NOW: &str = "penstock-now";

/// The clock of a runtime that stands still.
#[derive(Clone)]
pub(crate) struct Clock {
    began: Instant,
    /// Seconds since 1970 where it began.
    epoch: i64,
    guard: Arc<Guard>,
}

impl Clock {
    /// A clock that begins so many seconds after the usual moment. Within the runtime whose clock it is.
    pub(crate) fn new(after: i64, guard: &Arc<Guard>) -> Clock {
        Clock { began: Instant::now(), epoch: EPOCH.saturating_add(after), guard: Arc::clone(guard) }
    }
    fn slept(&self) -> Duration {
        self.began.elapsed()
    }
    /// Seconds since 1970.
    fn seconds(&self) -> i64 {
        self.epoch.saturating_add_unsigned(self.slept().as_secs())
    }
    /// The commands that read the clock or set it on.
    pub(crate) fn tools(&self) -> Vec<(String, Box<dyn Builtin>)> {
        let sleep = |ms_of_one| Box::new(Sleep { ms_of_one, guard: Arc::clone(&self.guard) });
        vec![
            ("date".to_owned(), Box::new(Date(self.clone()))),
            ("sleep".to_owned(), sleep(1000.0)),
            ("usleep".to_owned(), sleep(0.001)),
            ("su".to_owned(), Box::new(Su)),
            ("timeout".to_owned(), Box::new(Timeout(Arc::clone(&self.guard)))),
            (NOW.to_owned(), Box::new(Now(self.clone()))),
        ]
    }
}

/// `5`, `0.2`, `1m`: in milliseconds; at most some hundred years.
fn ms(word: &str, ms_of_one: f64) -> Option<u64> {
    let number = word.trim_end_matches(['s', 'm', 'h', 'd']);
    let of_one = match &word[number.len()..] {
        "" => ms_of_one,
        "s" => 1e3,
        "m" => 60e3,
        "h" => 3_600e3,
        "d" => 86_400e3,
        _ => return None,
    };
    if number == "infinity" || number == "inf" {
        return Some(FOREVER);
    }
    let count: f64 = number.parse().ok()?;
    (count >= 0.0).then(|| ((count * of_one).ceil() as u64).min(FOREVER))
}

/// A hundred years, ms.
const FOREVER: u64 = 3_155_760_000_000;

/// The longest a timer of the runtime's goes at once, ms.
const LEG: u64 = 30 * 86_400_000;

/// `sleep` and `usleep`: no time goes by here, only the script's.
struct Sleep {
    /// What a number without a letter means, ms.
    ms_of_one: f64,
    guard: Arc<Guard>,
}

#[async_trait]
impl Builtin for Sleep {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let mut sum = 0_u64;
        for word in ctx.args {
            match ms(word, self.ms_of_one) {
                Some(ms) => sum = sum.saturating_add(ms),
                None => return Ok(ExecResult::err(format!("sleep: invalid time interval '{word}'\n"), 1)),
            }
        }
        if ctx.args.is_empty() {
            return Ok(ExecResult::err("sleep: missing operand\n".to_owned(), 1));
        }
        let end = self.guard.end();
        while sum > 0 {
            let leg = Duration::from_millis(sum.min(LEG));
            let _asleep = self
                .guard
                .sleepers
                .until(end.map_or(Instant::now() + leg, |end| end.min(Instant::now() + leg)));
            if let Some(end) = end.filter(|end| *end <= Instant::now() + leg) {
                crate::time::sleep_until(end).await;
                // A shell under `timeout` is at its end.
                return Ok(ExecResult {
                    control_flow: ControlFlow::Exit(TIMED_OUT),
                    ..ExecResult::err(String::new(), TIMED_OUT)
                });
            }
            crate::time::sleep(leg).await;
            sum -= leg.as_millis() as u64;
        }
        Ok(ExecResult::ok(String::new()))
    }
}

/// What `timeout` gives where it has ended a command.
pub(crate) const TIMED_OUT: i32 = 124;

/// `timeout`: of the script's time, which only waiting takes.
///
/// A command of the interpreter's own is dropped where its time is over. A shell is not: the interpreter would go on with the shell's
/// state as its own. It ends at the command that waits too long.
struct Timeout(Arc<Guard>);

/// The duration and the command of `timeout`'s words; `Err`: what it says.
fn timed(args: &[String]) -> std::result::Result<(Duration, bool, &[String]), String> {
    let mut preserve = false;
    let mut at = 0;
    while let Some(word) = args.get(at).filter(|w| w.starts_with('-') && w.len() > 1) {
        at += 1;
        match word.as_str() {
            "--preserve-status" => preserve = true,
            "--foreground" | "-v" | "--verbose" => {}
            "-k" | "-s" | "--kill-after" | "--signal" => at += 1,
            "--" => break,
            w if ["-k", "-s", "--kill-after=", "--signal="].iter().any(|o| w.starts_with(o)) => {}
            w => return Err(format!("timeout: invalid option '{w}'\n")),
        }
    }
    let rest = args.get(at..).unwrap_or_default();
    let [duration, command @ ..] = rest else { return Err("timeout: missing operand\n".to_owned()) };
    if command.is_empty() {
        return Err("timeout: missing operand\n".to_owned());
    }
    let ms = ms(duration, 1000.0).ok_or(format!("timeout: invalid time interval '{duration}'\n"))?;
    // None at all is without an end.
    Ok((Duration::from_millis(if ms == 0 { FOREVER } else { ms }), preserve, command))
}

#[async_trait]
impl Builtin for Timeout {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let said = timed(ctx.args).err().unwrap_or_default();
        Ok(ExecResult::err(said, 125))
    }
    async fn execution_plan(&self, ctx: &BuiltinContext<'_>) -> Result<Option<ExecutionPlan>> {
        let Ok((mut duration, preserve_status, command)) = timed(ctx.args) else { return Ok(None) };
        let name = command[0].clone();
        let is_program = programs::NAMES.contains(&name.rsplit('/').next().unwrap_or(&name))
            || programs::in_namespace(command).is_some();
        if matches!(name.as_str(), "bash" | "sh" | "dash" | "env" | "nohup" | "xargs")
            || name.contains('/') && !is_program
        {
            self.0.until(Instant::now() + duration);
            duration = Duration::from_millis(FOREVER);
        }
        if is_program {
            // It is told to end, and says what it has printed.
            self.0.sleepers.limit(Instant::now() + duration, preserve_status);
            duration = Duration::from_millis(FOREVER);
        }
        self.0.sleepers.alarm(Instant::now() + duration);
        let (args, stdin, assignments) = (command[1..].to_vec(), ctx.stdin.cloned(), Vec::new());
        let command = SubCommand { name, args, stdin, assignments };
        Ok(Some(ExecutionPlan::Timeout { duration, preserve_status, command }))
    }
}

/// `su … -c TEXT`: the text is a shell's, whoever the user is; without one it is refused.
struct Su;

#[async_trait]
impl Builtin for Su {
    async fn execute(&self, _: BuiltinContext<'_>) -> Result<ExecResult> {
        Ok(ExecResult::err("su: only `su -c COMMAND` is carried out here: leave it out\n".to_owned(), 1))
    }
    async fn execution_plan(&self, ctx: &BuiltinContext<'_>) -> Result<Option<ExecutionPlan>> {
        let given = ctx.args.iter().position(|w| matches!(w.as_str(), "-c" | "--command" | "-lc"));
        let Some(text) = given.and_then(|at| ctx.args.get(at + 1)) else { return Ok(None) };
        let args = vec!["-c".to_owned(), text.clone()];
        let (stdin, assignments) = (ctx.stdin.cloned(), Vec::new());
        let command = SubCommand { name: "bash".to_owned(), args, stdin, assignments };
        let duration = Duration::from_millis(FOREVER);
        Ok(Some(ExecutionPlan::Timeout { duration, preserve_status: true, command }))
    }
}

/// [`NOW`]: seconds, with `us` also microseconds.
struct Now(Clock);

#[async_trait]
impl Builtin for Now {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let micros = self.0.slept().subsec_micros();
        Ok(ExecResult::ok(match ctx.args {
            [] => format!("{}\n", self.0.seconds()),
            _ => format!("{}.{micros:06}\n", self.0.seconds()),
        }))
    }
}

/// `date`: the interpreter's own, in an interpreter of its own that stands at the script's moment.
struct Date(Clock);

#[async_trait]
impl Builtin for Date {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let mut bash = Bash::builder().fixed_epoch(self.0.seconds()).build();
        let mut line = ctx.env.get("TZ").map(|zone| format!("TZ={} ", quoted(zone))).unwrap_or_default();
        line.push_str("date");
        let nanos = format!("{:09}", self.0.slept().subsec_nanos());
        for word in ctx.args {
            line.push(' ');
            line.push_str(&quoted(&with_fraction(word, &nanos)));
        }
        bash.exec(&line).await
    }
}

/// `%N` and `%3N` as digits: the interpreter's moment has whole seconds.
fn with_fraction(format: &str, nanos: &str) -> String {
    if !format.starts_with('+') {
        return format.to_owned();
    }
    let mut out = format.replace("%N", nanos);
    for digits in 1..=9 {
        out = out.replace(&format!("%{digits}N"), &nanos[..digits]);
    }
    out
}

pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_sleep() {
        let one = |word| ms(word, 1000.0);
        assert_eq!(
            [one("5"), one("0.25"), one("2m"), one("1d"), one("infinity")],
            [Some(5000), Some(250), Some(120_000), Some(86_400_000), Some(FOREVER)]
        );
        assert_eq!([one("-1"), one("x"), one("ms"), one("")], [None; 4]);
        assert_eq!(quoted("a'b"), r"'a'\''b'");
        assert_eq!(with_fraction("+%s.%N %3N", "012000000"), "+%s.012000000 012");
    }

    #[test]
    fn words_of_timeout() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let of = |line: &str| timed(&words(line)).map(|(d, p, c)| (d.as_secs(), p, c.join(" ")));
        assert_eq!(of("5 sleep 9"), Ok((5, false, "sleep 9".to_owned())));
        assert_eq!(of("-k 1 --signal=KILL --preserve-status 10m tc -s"), Ok((600, true, "tc -s".to_owned())));
        assert!(of("5").is_err() && of("x y").is_err() && of("--nonsense 5 y").is_err());
    }
}
