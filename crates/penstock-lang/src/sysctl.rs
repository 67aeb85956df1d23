//! `sysctl`: names and values of `/proc/sys`, as commands and as `echo … > /proc/sys/…` write them.
//!
//! Follows: procps-ng 4.0 `sysctl.c`; linux v6.12 `Documentation/networking/ip-sysctl.rst` for the names.
//! Differs: there are no files for `--system`.

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
    /// Read a file of keys and values (`-p`).
    Load(String),
    /// With `-w`, a word that is not a `KEY=VALUE`.
    NoValue,
}

/// One `sysctl` command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Command {
    /// In order.
    pub requests: Vec<Request>,
    /// `-n`: values without names.
    pub values_only: bool,
    /// `-N`: names without values.
    pub names_only: bool,
    /// `-b`: a value without its newline.
    pub binary: bool,
    /// `-q`: nothing is printed when a value is set.
    pub quiet: bool,
    /// `-e`: unknown keys are passed over.
    pub ignore_unknown: bool,
    /// `-r`: only keys in which this is found.
    pub pattern: Option<crate::ere::Pattern>,
}

/// A refused line: what goes to standard error and standard output, and the exit status.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Failure {
    /// Standard error.
    pub stderr: String,
    /// Standard output: the usage, where that goes there.
    pub stdout: String,
    /// Exit status.
    pub exit: i32,
}

const USAGE: &str = "
Usage:
 sysctl [options] [variable[=value] ...]

Options:
  -a, --all            display all variables
  -A                   alias of -a
  -X                   alias of -a
      --deprecated     include deprecated parameters to listing
      --dry-run        Print the key and values but do not write
  -b, --binary         print value without new line
  -e, --ignore         ignore unknown variables errors
  -N, --names          print variable names without values
  -n, --values         print only values of the given variable(s)
  -p, --load[=<file>]  read values from file
  -f                   alias of -p
      --system         read values from all system directories
  -r, --pattern <expression>
                       select setting that match expression
  -q, --quiet          do not echo variable set
  -w, --write          enable writing a value to variable
  -o                   does nothing
  -x                   does nothing
  -d                   alias of -h

 -h, --help     display this help and exit
 -V, --version  output version information and exit

For more details see sysctl(8).
";

/// Reads the words of a line, `sysctl` first.
///
/// # Errors
/// What sysctl says of the line.
pub fn parse(words: &[Word]) -> Result<Command, Failure> {
    let mut command = Command::default();
    let (mut all, mut write, mut load, mut system) = (false, false, None, false);
    let mut rest = Vec::new();
    let said = |text: &str| Failure { stdout: text.to_owned(), ..Failure::default() };
    let pattern = |text: &str| {
        let wrong = format!("sysctl: Invalid pattern: {text}\n");
        crate::ere::Pattern::new(text).ok_or(Failure { stderr: wrong, exit: 1, ..Failure::default() })
    };
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if let Some(long) = text.strip_prefix("--").filter(|l| !l.is_empty()) {
            match long.split_once('=').unwrap_or((long, "")) {
                ("all", _) => all = true,
                ("binary", _) => command.binary = true,
                ("ignore", _) => command.ignore_unknown = true,
                ("names", _) => command.names_only = true,
                ("values", _) => command.values_only = true,
                ("quiet", _) => command.quiet = true,
                ("write", _) => write = true,
                ("pattern", "") => {
                    command.pattern = Some(pattern(words.next().map_or("", |w| w.text.as_str()))?);
                }
                ("pattern", given) => command.pattern = Some(pattern(given)?),
                ("load", file) => load = Some(file.to_owned()),
                ("system", _) => system = true,
                ("deprecated" | "dry-run", _) => {}
                ("help", _) => return Err(said(USAGE)),
                ("version", _) => return Err(said("sysctl from procps-ng 4.0.2\n")),
                _ => {
                    let stderr = format!("sysctl: unrecognized option '{text}'\n");
                    return Err(Failure { stderr, stdout: USAGE.to_owned(), exit: 0 });
                }
            }
            continue;
        }
        let Some(letters) = text.strip_prefix('-').filter(|l| !l.is_empty()) else {
            rest.push(text);
            continue;
        };
        for (at, letter) in letters.char_indices() {
            match letter {
                'r' => {
                    let given = match &letters[at + 1..] {
                        "" => words.next().map_or("", |w| w.text.as_str()),
                        given => given,
                    };
                    command.pattern = Some(pattern(given)?);
                    break;
                }
                'a' | 'A' | 'X' => all = true,
                'b' => command.binary = true,
                'e' => command.ignore_unknown = true,
                'N' => command.names_only = true,
                'n' => command.values_only = true,
                'p' | 'f' => load = Some(String::new()),
                'q' => command.quiet = true,
                'w' => write = true,
                'o' | 'x' => {}
                'h' | 'd' => return Err(said(USAGE)),
                'V' => return Err(said("sysctl from procps-ng 4.0.2\n")),
                _ => {
                    let stderr = format!("sysctl: invalid option -- '{letter}'\n");
                    return Err(Failure { stderr, stdout: USAGE.to_owned(), exit: 0 });
                }
            }
        }
    }
    if all {
        command.requests.push(Request::All);
        return Ok(command);
    }
    if system {
        return Ok(command);
    }
    if let Some(file) = load {
        let files = if file.is_empty() { rest.iter().map(|f| (*f).to_owned()).collect() } else { vec![file] };
        let files: Vec<String> = if files.is_empty() { vec!["/etc/sysctl.conf".to_owned()] } else { files };
        command.requests.extend(files.into_iter().map(Request::Load));
        return Ok(command);
    }
    if rest.is_empty() {
        let stderr = if write {
            "sysctl: no variables specified\nTry `sysctl --help' for more information.\n".to_owned()
        } else {
            USAGE.to_owned()
        };
        return Err(Failure { stderr, exit: 1, ..Failure::default() });
    }
    for text in rest {
        command.requests.push(match text.split_once('=') {
            Some((key, value)) => {
                Request::Write { key: canonical(key.trim()), value: value.trim().to_owned() }
            }
            None if write => Request::NoValue,
            None => Request::Read(canonical(text)),
        });
    }
    Ok(command)
}

/// The keys and values of a file: `KEY = VALUE` lines, with `#` and `;` before comments, `-` before keys whose values may be refused; and the
/// numbers of the lines that are none.
pub fn lines(text: &str) -> (Vec<(String, String, bool)>, Vec<usize>) {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            if !line.starts_with('-') {
                wrong.push(number);
            }
            continue;
        };
        let (key, lenient) = match key.trim().strip_prefix('-') {
            Some(key) => (key, true),
            None => (key.trim(), false),
        };
        found.push((canonical(key), value.trim().to_owned(), lenient));
    }
    (found, wrong)
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
        assert_eq!(parse(&words("sysctl -w a.b")).unwrap().requests, [Request::NoValue]);
        let f = parse(&words("sysctl -z")).unwrap_err();
        assert_eq!((f.stderr.as_str(), f.exit), ("sysctl: invalid option -- 'z'\n", 0));
        assert!(parse(&words("sysctl")).unwrap_err().stderr.starts_with("\nUsage:"));
        assert_eq!(parse(&words("sysctl -p a b")).unwrap().requests.len(), 2);
        let (found, wrong) = lines("# x\na.b = 1\n-c/d=2\nno setting\n-nor this\n");
        assert_eq!((found.len(), wrong), (2, vec![4]));
    }

    #[test]
    fn paths_are_keys() {
        assert_eq!(key_of_path("/proc/sys/net/ipv4/ip_forward"), Some("net.ipv4.ip_forward".into()));
        assert_eq!(key_of_path("/etc/hosts"), None);
        assert_eq!(path_of_key("net.ipv4.ip_forward"), "/proc/sys/net/ipv4/ip_forward");
    }
}
