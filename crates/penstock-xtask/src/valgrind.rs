//! Instructions of a process, by valgrind's cachegrind: they do not depend on what else the computer does, nor on how large its caches are.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// Whether it is installed.
pub fn is_there() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|o| o.status.success())
}

/// This program with other arguments, counted or not.
///
/// # Errors
/// Its path is not known.
pub fn own(args: &[&str], count: bool) -> Result<Command> {
    let own = std::env::current_exe()?;
    let mut command = match count {
        true => {
            let mut command = Command::new("valgrind");
            command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
            command.arg(&own);
            command
        }
        false => Command::new(&own),
    };
    command.args(args);
    Ok(command)
}

/// Runs it; what it printed, and with `count` its instructions.
///
/// # Errors
/// It failed, or valgrind counted nothing.
pub fn run(mut command: Command, count: bool) -> Result<(String, Option<f64>)> {
    let output = command.output()?;
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("{}", told.lines().last().unwrap_or("it failed"));
    }
    let counted = count.then(|| refs(&told).context("valgrind counted nothing")).transpose()?;
    Ok((said.into_owned(), counted))
}

/// The number of `==1== I   refs:      1,234` or `I refs:`.
fn refs(told: &str) -> Option<f64> {
    told.lines().find_map(|l| {
        l.split_once(" I ")?.1.trim().strip_prefix("refs:")?.trim().replace(',', "").parse().ok()
    })
}

/// The number that stands behind a word.
///
/// # Errors
/// The word or the number is missing.
pub fn behind(said: &str, word: &str) -> Result<f64> {
    let number = said.split_whitespace().skip_while(|w| *w != word).nth(1);
    number.and_then(|w| w.parse().ok()).with_context(|| format!("it told no {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read() {
        assert_eq!(refs("==7== \n==7== I   refs:      1,234,567\n"), Some(1_234_567.0));
        assert_eq!(refs("==7== I refs: 12\n"), Some(12.0));
        assert_eq!(refs("==7== D refs: 12\n"), None);
        assert_eq!(behind("packets 12 ns 5\n", "ns").unwrap(), 5.0);
        assert!(behind("packets", "packets").is_err());
    }
}
