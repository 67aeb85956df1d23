//! Programs that the interpreter lacks or has in part: `stat`, `getopt`, `install`.
//!
//! Follows: GNU coreutils 9.1 `stat.c`, `install.c`; util-linux 2.38 `misc-utils/getopt.c`.
//! Differs: `stat` has formats (`-c`, `--printf`) of names, sizes, modes, owners and times, all else is the interpreter's; `getopt` sorts
//! options before words, as without `POSIXLY_CORRECT`; `install` makes folders and copies files, with their mode.

use bashkit::{Builtin, BuiltinContext, ExecResult, FileType, Metadata, Result, async_trait};
use std::path::Path;
use std::time::SystemTime;

/// Those of this file, by name.
pub(crate) fn tools() -> Vec<(String, Box<dyn Builtin>)> {
    vec![
        ("stat".to_owned(), Box::new(Stat)),
        ("getopt".to_owned(), Box::new(Getopt)),
        ("install".to_owned(), Box::new(Install)),
    ]
}

struct Stat;

/// `drwxr-xr-x`.
fn letters(found: &Metadata) -> String {
    let kind = match found.file_type {
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::Fifo => 'p',
        _ => '-',
    };
    let bit = |n: u32| if found.mode & (1 << n) == 0 { '-' } else { ['x', 'w', 'r'][n as usize % 3] };
    std::iter::once(kind).chain((0..9).rev().map(bit)).collect()
}

/// One file in a format of `stat -c`.
fn formatted(format: &str, name: &str, found: &Metadata) -> String {
    let kind = match found.file_type {
        FileType::Directory => "directory",
        FileType::Symlink => "symbolic link",
        FileType::Fifo => "fifo",
        _ if found.size == 0 => "regular empty file",
        _ => "regular file",
    };
    let size = if found.file_type == FileType::Directory { 4096 } else { found.size };
    let modified = found.modified.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push_str(name),
            Some('N') => out.push_str(&format!("'{name}'")),
            Some('s') => out.push_str(&size.to_string()),
            Some('F') => out.push_str(kind),
            Some('a') => out.push_str(&format!("{:o}", found.mode & 0o7777)),
            Some('A') => out.push_str(&letters(found)),
            Some('u' | 'g') => out.push('0'),
            Some('U' | 'G') => out.push_str("root"),
            Some('h') => out.push('1'),
            Some('b') => out.push_str(&size.div_ceil(512).to_string()),
            Some('B') => out.push_str("512"),
            Some('X' | 'Y' | 'Z') => out.push_str(&modified.to_string()),
            Some('%') => out.push('%'),
            Some(other) => out.extend(['%', other]),
            None => out.push('%'),
        }
    }
    out
}

#[async_trait]
impl Builtin for Stat {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let (mut format, mut names, mut end) = (None, Vec::new(), "\n");
        let mut words = ctx.args.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "-c" | "--format" => format = words.next().map(str::to_owned),
                "-L" | "--dereference" => {}
                "--" => names.extend(words.by_ref()),
                _ => match (word.strip_prefix("--format="), word.strip_prefix("--printf=")) {
                    (Some(given), _) => format = Some(given.to_owned()),
                    (_, Some(given)) => {
                        end = "";
                        format = Some(given.replace("\\n", "\n").replace("\\t", "\t"));
                    }
                    _ => match word.strip_prefix("-c").filter(|given| !given.is_empty()) {
                        Some(given) => format = Some(given.to_owned()),
                        None if word.starts_with('-') => return crate::tools::own("stat", &ctx).await,
                        None => names.push(word),
                    },
                },
            }
        }
        let (Some(format), false) = (format, names.is_empty()) else {
            return crate::tools::own("stat", &ctx).await;
        };
        let (mut out, mut said) = (String::new(), String::new());
        for name in names {
            match ctx.fs.stat(&ctx.cwd.join(name)).await {
                Ok(found) => out.push_str(&(formatted(&format, name, &found) + end)),
                Err(_) => {
                    said.push_str(&format!("stat: cannot statx '{name}': No such file or directory\n"));
                }
            }
        }
        let exit_code = i32::from(!said.is_empty());
        Ok(ExecResult { stdout: out.into(), stderr: said.into(), exit_code, ..ExecResult::default() })
    }
}

struct Getopt;

/// Whether an option takes a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Takes {
    Nothing,
    Word,
    /// Only where it stands in the same word.
    Perhaps,
}

fn takes(colons: &str) -> Takes {
    match colons {
        c if c.starts_with("::") => Takes::Perhaps,
        c if c.starts_with(':') => Takes::Word,
        _ => Takes::Nothing,
    }
}

/// What a call of getopt gives: the words in order, and what it says.
fn sorted(short: &str, long: &[(String, Takes)], name: &str, words: &[String]) -> (Vec<String>, Vec<String>) {
    let short_of = |c: char| {
        let at = short.find(c).filter(|_| c != ':')?;
        Some(takes(&short[at + c.len_utf8()..]))
    };
    let (mut options, mut rest, mut said) = (Vec::new(), Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            rest.extend(words.by_ref().cloned());
        } else if let Some(given) = word.strip_prefix("--") {
            let (option, value) = match given.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (given, None),
            };
            let exact = long.iter().find(|l| l.0 == option);
            let begin: Vec<_> = long.iter().filter(|l| l.0.starts_with(option)).collect();
            match (exact.or(if begin.len() == 1 { Some(begin[0]) } else { None }), value) {
                (None, _) if begin.is_empty() => {
                    said.push(format!("{name}: unrecognized option '--{option}'"))
                }
                (None, _) => {
                    let all: String = begin.iter().map(|l| format!(" '--{}'", l.0)).collect();
                    said.push(format!("{name}: option '--{option}' is ambiguous; possibilities:{all}"));
                }
                (Some((full, Takes::Nothing)), Some(_)) => {
                    said.push(format!("{name}: option '--{full}' doesn't allow an argument"));
                }
                (Some((full, Takes::Nothing)), None) => options.push(format!("--{full}")),
                (Some((full, Takes::Perhaps)), value) => {
                    options.extend([format!("--{full}"), quoted(&value.unwrap_or_default())]);
                }
                (Some((full, Takes::Word)), value) => match value.or_else(|| words.next().cloned()) {
                    Some(value) => options.extend([format!("--{full}"), quoted(&value)]),
                    None => said.push(format!("{name}: option '--{full}' requires an argument")),
                },
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|l| !l.is_empty()) {
            for (at, letter) in letters.char_indices() {
                let behind = &letters[at + letter.len_utf8()..];
                match short_of(letter) {
                    None => said.push(format!("{name}: invalid option -- '{letter}'")),
                    Some(Takes::Nothing) => options.push(format!("-{letter}")),
                    Some(Takes::Perhaps) => {
                        options.extend([format!("-{letter}"), quoted(behind)]);
                        break;
                    }
                    Some(Takes::Word) => {
                        let value =
                            if behind.is_empty() { words.next().cloned() } else { Some(behind.to_owned()) };
                        match value {
                            Some(value) => options.extend([format!("-{letter}"), quoted(&value)]),
                            None => said.push(format!("{name}: option requires an argument -- '{letter}'")),
                        }
                        break;
                    }
                }
            }
        } else {
            rest.push(word.clone());
        }
    }
    options.push("--".to_owned());
    options.extend(rest.iter().map(|w| quoted(w)));
    (options, said)
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[async_trait]
impl Builtin for Getopt {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let (mut short, mut long, mut name, mut quiet) = (None, Vec::new(), "getopt".to_owned(), false);
        let mut words = ctx.args.iter();
        let mut parameters = Vec::new();
        let read = |long: &mut Vec<(String, Takes)>, list: &str| {
            for one in list.split([',', ' ']).filter(|o| !o.is_empty()) {
                long.push((
                    one.trim_end_matches(':').to_owned(),
                    takes(&one[one.trim_end_matches(':').len()..]),
                ));
            }
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "-T" | "--test" => return Ok(ExecResult { exit_code: 4, ..ExecResult::default() }),
                "-o" | "--options" => short = words.next().cloned(),
                "-l" | "--long" | "--longoptions" => read(&mut long, words.next().map_or("", String::as_str)),
                "-n" | "--name" => name = words.next().cloned().unwrap_or_default(),
                "-q" | "--quiet" => quiet = true,
                "-a" | "--alternative" | "-u" | "--unquoted" => {}
                "-s" | "--shell" => {
                    words.next();
                }
                "--" => {
                    parameters.extend(words.by_ref().cloned());
                }
                other => {
                    if let Some(given) = other.strip_prefix("--options=").or(other.strip_prefix("-o")) {
                        short = Some(given.to_owned());
                    } else if let Some(list) =
                        ["--longoptions=", "--long=", "-l"].iter().find_map(|o| other.strip_prefix(o))
                    {
                        read(&mut long, list);
                    } else if let Some(given) = other.strip_prefix("--name=") {
                        name = given.to_owned();
                    } else {
                        parameters.push(other.to_owned());
                        parameters.extend(words.by_ref().cloned());
                    }
                }
            }
        }
        // The oldest form: the letters, then the words.
        let short = match short {
            Some(short) => short,
            None if parameters.is_empty() => {
                return Ok(ExecResult::err("getopt: missing optstring argument\n".to_owned(), 2));
            }
            None => parameters.remove(0),
        };
        let (options, said) = sorted(short.trim_start_matches(['+', '-']), &long, &name, &parameters);
        let stderr: String = said.iter().filter(|_| !quiet).map(|s| format!("{s}\n")).collect();
        let exit_code = i32::from(!said.is_empty());
        let stdout = format!(" {}\n", options.join(" "));
        Ok(ExecResult { stdout: stdout.into(), stderr: stderr.into(), exit_code, ..ExecResult::default() })
    }
}

struct Install;

#[async_trait]
impl Builtin for Install {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let (mut mode, mut folders, mut names) = (0o755, false, Vec::new());
        let mut words = ctx.args.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "-d" | "--directory" => folders = true,
                "-o" | "-g" => {
                    words.next();
                }
                "-m" | "--mode" | "-dm" => {
                    folders |= word == "-dm";
                    let given = words.next().unwrap_or_default();
                    match u32::from_str_radix(given, 8) {
                        Ok(given) => mode = given,
                        Err(_) => {
                            return Ok(ExecResult::err(format!("install: invalid mode '{given}'\n"), 1));
                        }
                    }
                }
                "--" => names.extend(words.by_ref()),
                _ if word.starts_with("-m") && word[2..].chars().all(|c| c.is_digit(8)) => {
                    mode = u32::from_str_radix(&word[2..], 8).unwrap_or(mode);
                }
                _ if word.starts_with('-') => {}
                _ => names.push(word),
            }
        }
        let failed = |what: &str, why: &dyn std::fmt::Display| {
            Ok(ExecResult::err(format!("install: cannot {what}: {why}\n"), 1))
        };
        let at = |name: &str| ctx.cwd.join(name);
        if folders {
            for name in names {
                if let Err(why) = ctx.fs.mkdir(&at(name), true).await {
                    return failed(&format!("create directory '{name}'"), &why);
                }
                ctx.fs.chmod(&at(name), mode).await?;
            }
            return Ok(ExecResult::ok(String::new()));
        }
        let Some((to, from)) = names.split_last().filter(|(_, from)| !from.is_empty()) else {
            return Ok(ExecResult::err("install: missing destination file operand\n".to_owned(), 1));
        };
        let into = ctx.fs.stat(&at(to)).await.is_ok_and(|found| found.file_type == FileType::Directory);
        for name in from {
            let target = match Path::new(name).file_name() {
                Some(last) if into => at(to).join(last),
                _ => at(to),
            };
            let Ok(bytes) = ctx.fs.read_file(&at(name)).await else {
                return failed(&format!("stat '{name}'"), &"No such file or directory");
            };
            if let Err(why) = ctx.fs.write_file(&target, &bytes).await {
                return failed(&format!("create regular file '{to}'"), &why);
            }
            ctx.fs.chmod(&target, mode).await?;
        }
        Ok(ExecResult::ok(String::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_before_words() {
        let long: Vec<(String, Takes)> = [
            ("dev", Takes::Word),
            ("verbose", Takes::Nothing),
            ("version", Takes::Nothing),
            ("color", Takes::Perhaps),
        ]
        .map(|(l, t)| (l.to_owned(), t))
        .to_vec();
        let of = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let (options, said) = sorted("d:vx::", &long, "me", &words);
            (options.join(" "), said.join("; "))
        };
        let fine = |line: &str, want: &str| assert_eq!(of(line), (want.to_owned(), String::new()), "{line}");
        fine("--dev eth1 -v rest", "--dev 'eth1' -v -- 'rest'");
        fine("rest -vdeth0 --dev=a more -- -v", "-v -d 'eth0' --dev 'a' -- 'rest' 'more' '-v'");
        fine("-x -x1 --color --color=no --verb", "-x '' -x '1' --color '' --color 'no' --verbose --");
        assert_eq!(of("-q a").1, "me: invalid option -- 'q'");
        assert_eq!(of("-d").1, "me: option requires an argument -- 'd'");
        assert_eq!(of("--nope").1, "me: unrecognized option '--nope'");
        assert_eq!(of("--ver").1, "me: option '--ver' is ambiguous; possibilities: '--verbose' '--version'");
        assert_eq!(of("--verbose=1").1, "me: option '--verbose' doesn't allow an argument");
    }
}
