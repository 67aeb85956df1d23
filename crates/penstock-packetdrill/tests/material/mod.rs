//! What other people wrote, fetched when a test needs it and never kept in this project.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The folder of a material, made by these commands in it, or by an earlier test; another place is `$PENSTOCK_MATERIAL/NAME`.
/// `None` where it cannot be had here: the test is then skipped, and this says so past the test's captured output.
pub fn fetched(name: &str, commands: &[&[&str]]) -> Option<PathBuf> {
    let _guard = ONE_AT_A_TIME.lock();
    let given = std::env::var_os("PENSTOCK_MATERIAL").map(|folder| Path::new(&folder).join(name));
    if let Some(folder) = given.filter(|f| f.is_dir()) {
        return Some(folder);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("material").join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    if std::env::var_os("PENSTOCK_QUICK").is_some() {
        let _ = writeln!(std::io::stdout(), "SKIPPED: {name} is not fetched: PENSTOCK_QUICK is set");
        return None;
    }
    let half = folder.with_extension("half");
    let _ = std::fs::remove_dir_all(&half);
    std::fs::create_dir_all(&half).expect("a folder in the build's own place");
    let failed = commands.iter().find_map(|words| run(words, &half).err());
    let why = failed.or_else(|| std::fs::rename(&half, &folder).err().map(|e| e.to_string()));
    let Some(why) = why else { return Some(folder) };
    let _ = writeln!(std::io::stdout(), "SKIPPED: {name} cannot be had here: {why}");
    None
}

fn run(words: &[&str], folder: &Path) -> Result<(), String> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(folder).env("GIT_TERMINAL_PROMPT", "0");
    let out = command.output().map_err(|e| format!("{}: {e}", words[0]))?;
    let said = String::from_utf8_lossy(&out.stderr);
    let last = said.lines().last().unwrap_or_default();
    if out.status.success() { Ok(()) } else { Err(format!("{}: {last}", words.join(" "))) }
}

/// A file of it.
pub fn text(path: PathBuf) -> String {
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}
