//! `stat`, of which the interpreter has a part.
//!
//! Follows: GNU coreutils 9.1 `stat.c`.
//! Differs: it has formats (`-c`, `--printf`) of names, sizes, modes, owners and times; all else is the interpreter's.

use bashkit::time::UNIX_EPOCH;
use bashkit::{Builtin, BuiltinContext, ExecResult, FileType, Metadata, Result, async_trait};

/// The program.
pub(crate) struct Stat;

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
fn formatted(format: &str, name: &str, target: Option<&str>, found: &Metadata) -> String {
    let kind = match found.file_type {
        FileType::Directory => "directory",
        FileType::Symlink => "symbolic link",
        FileType::Fifo => "fifo",
        _ if found.size == 0 => "regular empty file",
        _ => "regular file",
    };
    let size = if found.file_type == FileType::Directory { 4096 } else { found.size };
    let modified = found.modified.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push_str(name),
            Some('N') => {
                out.push_str(&format!("'{name}'"));
                out.extend(target.map(|t| format!(" -> '{t}'")));
            }
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
        let (mut format, mut names, mut end, mut follow) = (None, Vec::new(), "\n", false);
        let mut words = ctx.args.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "-c" | "--format" => format = words.next().map(str::to_owned),
                "-L" | "--dereference" => follow = true,
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
            let path = ctx.cwd.join(name);
            match if follow { ctx.fs.stat(&path).await } else { ctx.fs.lstat(&path).await } {
                Ok(found) => {
                    let target = ctx.fs.read_link(&path).await.ok().filter(|_| found.file_type.is_symlink());
                    let target = target.map(|t| t.to_string_lossy().into_owned());
                    out.push_str(&(formatted(&format, name, target.as_deref(), &found) + end));
                }
                Err(_) => {
                    said.push_str(&format!("stat: cannot statx '{name}': No such file or directory\n"));
                }
            }
        }
        let exit_code = i32::from(!said.is_empty());
        Ok(ExecResult { stdout: out.into(), stderr: said.into(), exit_code, ..ExecResult::default() })
    }
}
