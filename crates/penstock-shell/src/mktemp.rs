//! `mktemp`: names count up instead of being drawn.
//!
//! Follows: GNU coreutils 9.1 `mktemp.c`.
//! Differs: the first name of a machine has 1 (with zeros before it) in place of the X, the next 2, and so on.

use crate::getopt::{Item, Known, try_help};
use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a line asks for.
#[derive(Default, PartialEq, Eq, Debug)]
struct Wishes {
    folder: bool,
    dry: bool,
    quiet: bool,
    /// All before the X, how many there are, and all behind them.
    name: (String, usize, String),
}

/// `main`: the line's words, and `TMPDIR`.
fn wishes(args: &[String], tmpdir: Option<&str>) -> std::result::Result<Wishes, String> {
    let long = "directory,quiet,dry-run,suffix:,tmpdir::,help,version";
    let line = Known::of("mktemp", "dp:qtuV", long).read(args);
    if let Some(wrong) = line.wrong.first() {
        return Err(try_help("mktemp", wrong));
    }
    let mut all = Wishes::default();
    let (mut suffix, mut base, mut beneath, mut old) = (None, None, false, false);
    for item in line.items {
        match item {
            Item::Short('d', _) => all.folder = true,
            Item::Short('q', _) => all.quiet = true,
            Item::Short('u', _) => all.dry = true,
            Item::Short('t', _) => (beneath, old) = (true, true),
            Item::Short('p', given) => (beneath, base) = (true, given),
            Item::Long(name, given) => match name.as_str() {
                "directory" => all.folder = true,
                "quiet" => all.quiet = true,
                "dry-run" => all.dry = true,
                "suffix" => suffix = given,
                "tmpdir" => (beneath, base) = (true, given.filter(|g| !g.is_empty())),
                other => return Err(format!("mktemp: --{other} is not simulated\n")),
            },
            _ => return Err("mktemp: -V is not simulated\n".to_owned()),
        }
    }
    let wrong = |what: String| Err(format!("mktemp: {what}\n"));
    if line.words.len() > 1 {
        return Err(try_help("mktemp", "mktemp: too many templates"));
    }
    let template = match line.words.into_iter().next() {
        Some(template) => template,
        None => {
            beneath = true;
            format!("tmp.{}", "X".repeat(10))
        }
    };
    let (head, tail) = match suffix {
        Some(_) if !template.ends_with('X') => {
            return wrong(format!("with --suffix, template '{template}' must end in X"));
        }
        Some(suffix) => (template.clone(), suffix),
        None => {
            let end = template.rfind('X').map_or(0, |at| at + 1);
            (template[..end].to_owned(), template[end..].to_owned())
        }
    };
    if tail.contains('/') {
        return wrong(format!("invalid suffix '{tail}', contains directory separator"));
    }
    let marks = head.chars().rev().take_while(|c| *c == 'X').count();
    if marks < 3 {
        return wrong(format!("too few X's in template '{template}'"));
    }
    let mut head = head[..head.len() - marks].to_owned();
    if beneath {
        let set = tmpdir.filter(|t| !t.is_empty()).map(str::to_owned);
        let base = if old { set.or(base) } else { base.or(set) };
        if old && template.contains('/') {
            return wrong(format!("invalid template, '{template}', contains directory separator"));
        }
        if !old && template.starts_with('/') {
            return wrong(format!("invalid template, '{template}'; with --tmpdir, it may not be absolute"));
        }
        let base = base.unwrap_or("/tmp".to_owned());
        head = format!("{}/{head}", base.trim_end_matches('/'));
    }
    all.name = (head, marks, tail);
    Ok(all)
}

/// The program; the number of its next name.
pub(crate) struct Mktemp(AtomicU64);

impl Mktemp {
    pub fn new() -> Mktemp {
        Mktemp(AtomicU64::new(1))
    }
}

#[async_trait]
impl Builtin for Mktemp {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let tmpdir = ctx.env.get("TMPDIR").or_else(|| ctx.variables.get("TMPDIR"));
        let wishes = match wishes(ctx.args, tmpdir.map(String::as_str)) {
            Ok(wishes) => wishes,
            Err(said) => return Ok(ExecResult::err(said, 1)),
        };
        let (head, marks, tail) = &wishes.name;
        // A name that is taken is passed over, as one that was drawn twice is.
        let name = loop {
            let number = self.0.fetch_add(1, Ordering::Relaxed);
            let name = format!("{head}{number:0marks$}{tail}");
            if !ctx.fs.exists(&ctx.cwd.join(&name)).await.unwrap_or(false) {
                break name;
            }
        };
        let path = ctx.cwd.join(&name);
        let parent = path.parent().map(|p| p.to_path_buf()).unwrap_or_default();
        let made = if wishes.dry {
            Ok(())
        } else if !ctx.fs.exists(&parent).await.unwrap_or(false) {
            Err("No such file or directory".to_owned())
        } else {
            let (made, mode) = match wishes.folder {
                true => (ctx.fs.mkdir(&path, false).await, 0o700),
                false => (ctx.fs.write_file(&path, b"").await, 0o600),
            };
            let _ = ctx.fs.chmod(&path, mode).await;
            made.map_err(|e| e.to_string())
        };
        match made {
            Ok(()) => Ok(ExecResult::ok(format!("{name}\n"))),
            Err(_) if wishes.quiet => Ok(ExecResult::err(String::new(), 1)),
            Err(why) => {
                let what = if wishes.folder { "directory" } else { "file" };
                let template = format!("{head}{}{tail}", "X".repeat(*marks));
                let said = format!("mktemp: failed to create {what} via template '{template}': {why}\n");
                Ok(ExecResult::err(said, 1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Each as coreutils 9.1 answered, but for the letters in place of X.
    #[test]
    fn templates() {
        let of = |line: &str, tmpdir: Option<&str>| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            match wishes(&args, tmpdir) {
                Ok(all) => format!("{}{}{}", all.name.0, "X".repeat(all.name.1), all.name.2),
                Err(said) => said.lines().next().unwrap_or_default().to_owned(),
            }
        };
        for (line, tmpdir, want) in [
            ("", None, "TMP/tmp.##########"),
            ("-d", Some("/run"), "/run/tmp.##########"),
            ("a.###", None, "a.###"),
            ("a.####.conf", None, "a.####.conf"),
            ("-t a.####", None, "TMP/a.####"),
            ("-t -p /a b.###", Some("/c"), "/c/b.###"),
            ("-p /a b.###", Some("/c"), "/a/b.###"),
            ("--tmpdir b.###", Some("/c"), "/c/b.###"),
            ("--tmpdir=/a b.###", None, "/a/b.###"),
            ("--suffix=.sh b.###", None, "b.###.sh"),
            ("--suffix=.sh", None, "TMP/tmp.##########.sh"),
            ("-qu a.###", None, "a.###"),
            ("a##", None, "mktemp: too few X's in template 'a##'"),
            ("a", None, "mktemp: too few X's in template 'a'"),
            ("--suffix=.x a.###b", None, "mktemp: with --suffix, template 'a.###b' must end in X"),
            ("-t a/b.###", None, "mktemp: invalid template, 'a/b.###', contains directory separator"),
            (
                "--tmpdir /b.###",
                None,
                "mktemp: invalid template, '/b.###'; with --tmpdir, it may not be absolute",
            ),
            ("a.###/b", None, "mktemp: invalid suffix '/b', contains directory separator"),
            ("a.### b.###", None, "mktemp: too many templates"),
            ("-z", None, "mktemp: invalid option -- 'z'"),
        ] {
            let written = |text: &str| text.replace('#', "X").replace("TMP", "/tmp");
            assert_eq!(of(&written(line), tmpdir), written(want), "{line}");
        }
    }
}
