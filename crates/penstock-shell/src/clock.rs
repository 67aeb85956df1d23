//! A script's clock: it begins at one moment and goes on only while the script sleeps.

use crate::files::EPOCH;
use bashkit::{Bash, Builtin, BuiltinContext, ExecResult, Result, async_trait};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable that scripts read as `$SECONDS` ([`crate::mend`] gives it its name).
pub(crate) const SECONDS: &str = "PENSTOCK_SECONDS";

/// Milliseconds slept since the beginning.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    /// The commands that read the clock or set it on.
    pub(crate) fn tools(&self) -> Vec<(String, Box<dyn Builtin>)> {
        let sleep = |ms_of_one| Box::new(Sleep { clock: self.clone(), ms_of_one });
        vec![
            ("date".to_owned(), Box::new(Date(self.clone()))),
            ("sleep".to_owned(), sleep(1000.0)),
            ("usleep".to_owned(), sleep(0.001)),
        ]
    }
}

/// `sleep` and `usleep`: no time goes by here, only the script's.
struct Sleep {
    clock: Clock,
    /// What a number without a letter means.
    ms_of_one: f64,
}

impl Sleep {
    /// `5`, `0.2`, `1m`: in milliseconds; at most some hundred years.
    fn ms(&self, word: &str) -> Option<u64> {
        let number = word.trim_end_matches(['s', 'm', 'h', 'd']);
        let of_one = match &word[number.len()..] {
            "" => self.ms_of_one,
            "s" => 1e3,
            "m" => 60e3,
            "h" => 3_600e3,
            "d" => 86_400e3,
            _ => return None,
        };
        let count: f64 = number.parse().ok()?;
        (count >= 0.0).then(|| (count * of_one).min(1e13) as u64)
    }
}

#[async_trait]
impl Builtin for Sleep {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let mut sum = 0_u64;
        for word in ctx.args {
            match self.ms(word) {
                Some(ms) => sum = sum.saturating_add(ms),
                None => return Ok(ExecResult::err(format!("sleep: invalid time interval '{word}'\n"), 1)),
            }
        }
        if ctx.args.is_empty() {
            return Ok(ExecResult::err("sleep: missing operand\n".to_owned(), 1));
        }
        let before = self.clock.0.fetch_add(sum, Ordering::Relaxed);
        let seconds = before.saturating_add(sum) / 1000 - before / 1000;
        let shown: u64 = ctx.variables.get(SECONDS).and_then(|s| s.parse().ok()).unwrap_or(0);
        ctx.variables.insert(SECONDS.to_owned(), shown.saturating_add(seconds).to_string());
        Ok(ExecResult::ok(String::new()))
    }
}

/// `date`: the interpreter's own, in an interpreter of its own that stands at the script's moment.
struct Date(Clock);

#[async_trait]
impl Builtin for Date {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let slept = (self.0.0.load(Ordering::Relaxed) / 1000) as i64;
        let mut bash = Bash::builder().fixed_epoch(EPOCH + slept).build();
        let mut line = ctx.env.get("TZ").map(|zone| format!("TZ={} ", quoted(zone))).unwrap_or_default();
        line.push_str("date");
        for word in ctx.args {
            line.push(' ');
            line.push_str(&quoted(word));
        }
        bash.exec(&line).await
    }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_sleep() {
        let sleep = Sleep { clock: Clock::default(), ms_of_one: 1000.0 };
        let ms = |word| sleep.ms(word);
        assert_eq!(
            [ms("5"), ms("0.25"), ms("2m"), ms("1d")],
            [Some(5000), Some(250), Some(120_000), Some(86_400_000)]
        );
        assert_eq!([ms("-1"), ms("x"), ms("ms"), ms("")], [None; 4]);
        assert_eq!(quoted("a'b"), r"'a'\''b'");
    }
}
