//! `sysctl`: names and values of `/proc/sys`, as commands and as `echo … > /proc/sys/…` write them.
//!
//! Follows: procps-ng 4.0 `sysctl.c`; linux v6.12 `Documentation/networking/ip-sysctl.rst` for the names.
//! Differs: no patterns, no files (`-p`, `--system`).

use crate::token::Word;

/// What a `sysctl` line asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Print a key's value.
    Read(String),
    /// Set a key and print it, unless quiet.
    Write {
        /// Key with dots.
        key: String,
        /// Value as written.
        value: String,
    },
    /// Print all keys (`-a`).
    All,
}

/// One `sysctl` command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Command {
    /// In order.
    pub requests: Vec<Request>,
    /// `-n`: values without names.
    pub values_only: bool,
    /// `-q`: nothing is printed when a value is set.
    pub quiet: bool,
    /// `-e`: unknown keys are passed over.
    pub ignore_unknown: bool,
}

/// A refused line: what goes to standard error, and the exit status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Standard error.
    pub stderr: String,
    /// Exit status.
    pub exit: i32,
}

const USAGE: &str = "\nUsage:\n sysctl [options] [variable[=value] ...]\n\nOptions:\n  -a, --all            display all variables\n  -e, --ignore         ignore unknown variables errors\n  -n, --values         print only values of the given variable(s)\n  -q, --quiet          do not echo variable set\n  -w, --write          enable writing a value to variable\n\nFor more details see sysctl(8).\n";

/// Reads the words of a line, `sysctl` first.
///
/// # Errors
/// What sysctl says of the line.
pub fn parse(words: &[Word]) -> Result<Command, Failure> {
    let mut command = Command::default();
    let (mut all, mut write) = (false, false);
    let mut rest = Vec::new();
    for word in words.iter().skip(1) {
        match word.text.as_str() {
            "-a" | "-A" | "-X" | "--all" => all = true,
            "-n" | "--values" => command.values_only = true,
            "-q" | "--quiet" => command.quiet = true,
            "-e" | "--ignore" => command.ignore_unknown = true,
            "-w" | "--write" => write = true,
            "-qw" | "-wq" => (command.quiet, write) = (true, true),
            "-h" | "--help" => return Err(Failure { stderr: USAGE.to_owned(), exit: 0 }),
            text if text.starts_with("--") && text.len() > 2 => {
                let stderr = format!("sysctl: unrecognized option '{text}'\n{USAGE}");
                return Err(Failure { stderr, exit: 1 });
            }
            text if text.starts_with('-') && text.len() > 1 => {
                let option = text.chars().nth(1).unwrap_or('-');
                let stderr = format!("sysctl: invalid option -- '{option}'\n{USAGE}");
                return Err(Failure { stderr, exit: 1 });
            }
            text => rest.push(text),
        }
    }
    if all {
        command.requests.push(Request::All);
        return Ok(command);
    }
    if rest.is_empty() {
        let stderr = if write {
            "sysctl: no variables specified\nTry `sysctl --help' for more information.\n".to_owned()
        } else {
            USAGE.to_owned()
        };
        return Err(Failure { stderr, exit: 1 });
    }
    for text in rest {
        command.requests.push(match text.split_once('=') {
            Some((key, value)) => {
                Request::Write { key: canonical(key.trim()), value: value.trim().to_owned() }
            }
            None if write => {
                let stderr = format!("sysctl: \"{text}\" must be of the form name=value\n");
                return Err(Failure { stderr, exit: 1 });
            }
            None => Request::Read(canonical(text)),
        });
    }
    Ok(command)
}

/// A key with dots: `net/ipv4/ip_forward` and `net.ipv4.ip_forward` are the same.
pub fn canonical(key: &str) -> String {
    match key.find(['/', '.']) {
        Some(at) if key.as_bytes()[at] == b'/' => key.replace('/', "."),
        _ => key.to_owned(),
    }
}

/// The key behind a path under `/proc/sys`; `None` for any other path.
pub fn key_of_path(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/proc/sys/")?;
    (!rest.is_empty()).then(|| rest.trim_end_matches('/').replace('/', "."))
}

/// The path of a key, as sysctl's messages name it.
pub fn path_of_key(key: &str) -> String {
    format!("/proc/sys/{}", key.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Word> {
        line.split_whitespace().map(|w| Word::new(w, 0)).collect()
    }

    #[test]
    fn reads_and_writes() {
        let c = parse(&words("sysctl -w net.ipv4.ip_forward=1")).unwrap();
        assert_eq!(c.requests, [Request::Write { key: "net.ipv4.ip_forward".into(), value: "1".into() }]);
        let c = parse(&words("sysctl -n net/ipv4/ip_forward")).unwrap();
        assert_eq!((c.requests, c.values_only), (vec![Request::Read("net.ipv4.ip_forward".into())], true));
        assert_eq!(parse(&words("sysctl -a")).unwrap().requests, [Request::All]);
    }

    #[test]
    fn refuses_in_sysctl_s_words() {
        let stderr = |line: &str| parse(&words(line)).unwrap_err().stderr;
        assert_eq!(stderr("sysctl -w a.b"), "sysctl: \"a.b\" must be of the form name=value\n");
        assert!(stderr("sysctl -z").starts_with("sysctl: invalid option -- 'z'\n"));
        assert!(stderr("sysctl").starts_with("\nUsage:"));
    }

    #[test]
    fn paths_are_keys() {
        assert_eq!(key_of_path("/proc/sys/net/ipv4/ip_forward"), Some("net.ipv4.ip_forward".into()));
        assert_eq!(key_of_path("/etc/hosts"), None);
        assert_eq!(path_of_key("net.ipv4.ip_forward"), "/proc/sys/net/ipv4/ip_forward");
    }
}
