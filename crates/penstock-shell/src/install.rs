//! `install`: copies files and makes folders, with their mode.
//!
//! Follows: GNU coreutils 9.1 `install.c`; gnulib `modechange.c` for modes.
//! Differs: everything belongs to root, so other owners are unknown; backups (`-b`, `-S`), `-s` and `-Z` are refused.

use crate::getopt::{Item, Known, try_help};
use bashkit::{Builtin, BuiltinContext, ExecResult, FileSystem, FileType, Metadata, Result, async_trait};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A mode in octal or as `u=rwx,go=rx`, from none (`mode_compile`, `mode_adjust` of 0); `None` where it is not a mode.
fn mode(text: &str, folder: bool) -> Option<u32> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return u32::from_str_radix(text, 8).ok().filter(|&mode| mode <= 0o7777);
    }
    let mut mode = 0;
    for clause in text.split(',') {
        let begin = clause.find(['=', '+', '-'])?;
        let (who, mut rest) = clause.split_at(begin);
        let mut whose = 0;
        for c in who.chars() {
            whose |= match c {
                'u' => 0o4700,
                'g' => 0o2070,
                'o' => 0o1007,
                'a' => 0o7777,
                _ => return None,
            };
        }
        let whose = if whose == 0 { 0o7777 } else { whose };
        while let Some(op) = rest.chars().next() {
            let end = rest[1..].find(['=', '+', '-']).map_or(rest.len(), |at| at + 1);
            let mut bits = 0;
            for c in rest[1..end].chars() {
                bits |= match c {
                    'r' => 0o444,
                    'w' => 0o222,
                    'x' => 0o111,
                    'X' if folder || mode & 0o111 != 0 => 0o111,
                    'X' => 0,
                    's' => 0o6000,
                    't' => 0o1000,
                    'u' => copied(mode >> 6),
                    'g' => copied(mode >> 3),
                    'o' => copied(mode),
                    _ => return None,
                };
            }
            let bits = bits & whose;
            match op {
                '=' => mode = mode & !whose | bits,
                '+' => mode |= bits,
                '-' => mode &= !bits,
                _ => return None,
            }
            rest = &rest[end..];
        }
    }
    Some(mode)
}

/// Three bits, for everybody.
fn copied(bits: u32) -> u32 {
    (bits & 7) * 0o111
}

/// What a line asks for.
#[derive(Default)]
struct Wishes {
    mode: Option<String>,
    folders: bool,
    leading: bool,
    into: Option<String>,
    as_file: bool,
    preserve: bool,
    compare: bool,
    verbose: bool,
    names: Vec<String>,
}

/// Reads the words behind `install`.
fn wishes(args: &[String]) -> std::result::Result<Wishes, String> {
    let long = "backup::,compare,context::,debug,directory,group:,mode:,owner:,preserve-timestamps,preserve-context,\
                strip,strip-program:,suffix:,target-directory:,no-target-directory,verbose,help,version";
    let line = Known::of("install", "bcCsDdg:m:o:pt:TvS:Z", long).read(args);
    if let Some(wrong) = line.wrong.first() {
        return Err(try_help("install", wrong));
    }
    let mut all = Wishes { names: line.words, ..Wishes::default() };
    for item in line.items {
        let (name, value) = match item {
            Item::Short(letter, value) => (letter.to_string(), value),
            Item::Long(name, value) => (name, value),
            Item::Word(_) => continue,
        };
        let value = value.unwrap_or_default();
        match name.as_str() {
            "c" => {}
            "C" | "compare" => all.compare = true,
            "D" => all.leading = true,
            "d" | "directory" => all.folders = true,
            "m" | "mode" => all.mode = Some(value),
            "p" | "preserve-timestamps" => all.preserve = true,
            "t" | "target-directory" => all.into = Some(value),
            "T" | "no-target-directory" => all.as_file = true,
            "v" | "verbose" => all.verbose = true,
            "o" | "owner" | "g" | "group" if value == "root" || value == "0" => {}
            "o" | "owner" => return Err(format!("install: invalid user '{value}'\n")),
            "g" | "group" => return Err(format!("install: invalid group '{value}'\n")),
            other => {
                let dashes = if other.len() == 1 { "-" } else { "--" };
                return Err(format!("install: {dashes}{other} is not simulated\n"));
            }
        }
    }
    Ok(all)
}

/// One call at work.
struct Work {
    fs: Arc<dyn FileSystem>,
    cwd: PathBuf,
    wishes: Wishes,
    out: String,
    err: String,
}

/// That the call ends here; what is wrong has been said.
struct Ended;

impl Work {
    fn at(&self, name: &str) -> PathBuf {
        self.cwd.join(name)
    }

    async fn find(&self, name: &str) -> Option<Metadata> {
        self.fs.stat(&self.at(name)).await.ok()
    }

    async fn is_folder(&self, name: &str) -> bool {
        self.find(name).await.is_some_and(|found| found.file_type == FileType::Directory)
    }

    fn wrong(&mut self, what: &str) {
        self.err.push_str(&format!("install: {what}\n"));
    }

    /// A folder and those above it that are missing, which have mode 755.
    async fn folder(&mut self, name: &str) -> std::result::Result<(), Ended> {
        let all: Vec<&Path> = Path::new(name).ancestors().filter(|a| !a.as_os_str().is_empty()).collect();
        for one in all.into_iter().rev() {
            let text = one.to_string_lossy().into_owned();
            if self.is_folder(&text).await {
                continue;
            }
            if self.find(&text).await.is_some() {
                let what = if text == name { "File exists" } else { "Not a directory" };
                self.wrong(&format!("cannot create directory '{name}': {what}"));
                return Err(Ended);
            }
            if let Err(why) = self.fs.mkdir(&self.cwd.join(one), false).await {
                self.wrong(&format!("cannot create directory '{text}': {why}"));
                return Err(Ended);
            }
            let _ = self.fs.chmod(&self.cwd.join(one), 0o755).await;
            if self.wishes.verbose {
                self.out.push_str(&format!("install: creating directory '{text}'\n"));
            }
        }
        Ok(())
    }

    /// `install_file_in_file`.
    async fn file(&mut self, from: &str, to: &str, mode: u32) {
        let Some(found) = self.find(from).await else {
            return self.wrong(&format!("cannot stat '{from}': No such file or directory"));
        };
        if found.file_type == FileType::Directory {
            return self.wrong(&format!("omitting directory '{from}'"));
        }
        if self.is_folder(to).await {
            return self.wrong(&format!("cannot overwrite directory '{to}' with non-directory"));
        }
        if self.at(from) == self.at(to) {
            return self.wrong(&format!("'{from}' and '{to}' are the same file"));
        }
        let bytes = match self.fs.read_file(&self.at(from)).await {
            Ok(bytes) => bytes,
            Err(why) => return self.wrong(&format!("cannot open '{from}' for reading: {why}")),
        };
        let old = self.find(to).await;
        if self.wishes.compare
            && old.as_ref().is_some_and(|old| old.mode & 0o7777 == mode)
            && self.fs.read_file(&self.at(to)).await.is_ok_and(|there| there == bytes)
        {
            return;
        }
        let parent = self.at(to).parent().map(Path::to_path_buf).unwrap_or_default();
        let no_parent = match self.fs.stat(&parent).await {
            Ok(found) if found.file_type == FileType::Directory => None,
            Ok(_) => Some("Not a directory"),
            Err(_) => Some("No such file or directory"),
        };
        let no_parent = no_parent.or(to.ends_with('/').then_some("Not a directory"));
        if let Some(why) = no_parent {
            return self.wrong(&format!("cannot create regular file '{to}': {why}"));
        }
        if old.is_some() {
            let _ = self.fs.remove(&self.at(to), false).await;
            if self.wishes.verbose {
                self.out.push_str(&format!("removed '{to}'\n"));
            }
        }
        if let Err(why) = self.fs.write_file(&self.at(to), &bytes).await {
            return self.wrong(&format!("cannot create regular file '{to}': {why}"));
        }
        if self.wishes.verbose {
            self.out.push_str(&format!("'{from}' -> '{to}'\n"));
        }
        if self.wishes.preserve {
            let _ = self.fs.set_modified_time(&self.at(to), found.modified).await;
        }
        let _ = self.fs.chmod(&self.at(to), mode).await;
    }

    /// What `main` does once the options are read. `Some`: a line that is refused as it stands.
    async fn run(&mut self) -> Option<String> {
        let usage = |what: String| Some(try_help("install", &format!("install: {what}")));
        let w = &mut self.wishes;
        if w.folders && w.into.is_some() {
            let what = "target directory not allowed when installing a directory";
            return Some(format!("install: {what}\n"));
        }
        if w.as_file && w.into.is_some() {
            let what = "cannot combine --target-directory (-t) and --no-target-directory (-T)";
            return Some(format!("install: {what}\n"));
        }
        let mut names = std::mem::take(&mut w.names);
        let given = w.mode.clone().unwrap_or("755".to_owned());
        let Some(mode) = mode(&given, w.folders) else {
            return Some(format!("install: invalid mode '{given}'\n"));
        };
        if names.is_empty() {
            return usage("missing file operand".to_owned());
        }
        if w.folders {
            for name in names {
                if self.folder(&name).await.is_ok() {
                    let _ = self.fs.chmod(&self.at(&name), mode).await;
                }
            }
            return None;
        }
        let mut into = w.into.clone();
        if let Some(folder) = &into {
            if self.find(folder).await.is_none() {
                if !self.wishes.leading {
                    self.wrong(&format!("failed to access '{folder}': No such file or directory"));
                    return None;
                }
                if self.folder(&folder.clone()).await.is_err() {
                    return None;
                }
            }
        } else if names.len() == 1 {
            return usage(format!("missing destination file operand after '{}'", names[0]));
        } else if w.as_file {
            if let Some(extra) = names.get(2) {
                return usage(format!("extra operand '{extra}'"));
            }
        } else {
            let last = names.last().cloned().unwrap_or_default();
            if self.is_folder(&last).await {
                names.pop();
                into = Some(last);
            } else if names.len() > 2 {
                let there = self.find(&last).await.is_some();
                let why = if there { "Not a directory" } else { "No such file or directory" };
                self.wrong(&format!("target '{last}': {why}"));
                return None;
            }
        }
        let Some(into) = into else {
            let (from, to) = (names[0].clone(), names[1].clone());
            if self.wishes.leading {
                let parent = Path::new(&to).parent().map(|p| p.to_string_lossy().into_owned());
                if let Some(parent) = parent.filter(|p| !p.is_empty())
                    && self.folder(&parent).await.is_err()
                {
                    return None;
                }
            }
            self.file(&from, &to, mode).await;
            return None;
        };
        for name in names {
            let last = Path::new(&name).file_name().map(|n| n.to_string_lossy().into_owned());
            let to = format!("{}/{}", into.trim_end_matches('/'), last.unwrap_or_default());
            self.file(&name, &to, mode).await;
        }
        None
    }
}

/// The program.
pub(crate) struct Install;

#[async_trait]
impl Builtin for Install {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let wishes = match wishes(ctx.args) {
            Ok(wishes) => wishes,
            Err(said) => return Ok(ExecResult::err(said, 1)),
        };
        let (fs, cwd) = (Arc::clone(&ctx.fs), ctx.cwd.clone());
        let mut work = Work { fs, cwd, wishes, out: String::new(), err: String::new() };
        if let Some(said) = work.run().await {
            return Ok(ExecResult::err(said, 1));
        }
        let exit_code = i32::from(!work.err.is_empty());
        let (stdout, stderr) = (work.out.into(), work.err.into());
        Ok(ExecResult { stdout, stderr, exit_code, ..ExecResult::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The last column as `install -m MODE` of coreutils 9.1 made them.
    #[test]
    fn modes() {
        for (text, folder, want) in [
            ("644", false, Some(0o644)),
            ("4755", false, Some(0o4755)),
            ("u=rwx,go=r", false, Some(0o744)),
            ("a+x", false, Some(0o111)),
            ("g+s", true, Some(0o2000)),
            ("=rw", false, Some(0o666)),
            ("u=rwX,g=u-w", true, Some(0o750)),
            ("9", false, None),
            ("10000", false, None),
            ("u=q", false, None),
            ("rw", false, None),
        ] {
            assert_eq!(mode(text, folder), want, "{text}");
        }
    }
}
