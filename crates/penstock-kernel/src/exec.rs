//! Running the real tools.

use crate::names;
use std::path::Path;
use std::process::{Command, Stdio};

/// A command that dies with this process, within a namespace or (`None`) outside any.
///
/// The kernel kills it when the thread that started it ends, so that even `kill -9` of ours leaves no program behind.
pub fn command(namespace: Option<&str>, words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).env("LC_ALL", "C").stdin(Stdio::null());
    match namespace.map(|name| (name, names::mounts(name))) {
        // A machine's own view of files.
        Some((name, mounts)) if mounts.exists() => {
            command.arg("nsenter").arg(format!("--net=/run/netns/{name}"));
            command.arg(format!("--mount={}", mounts.join("mnt").display()));
            // In the virtual kernel that is not the root of the namespace.
            let root = mounts.join("root");
            command.arg(format!("--root={}", root.display())).arg(format!("--wd={}", root.display()));
        }
        Some((name, _)) => {
            command.args(["ip", "netns", "exec", name]);
        }
        None => {}
    }
    command.args(words);
    command
}

/// The same in a folder, which is the machine's own.
pub fn command_in(namespace: Option<&str>, folder: &Path, words: &[&str]) -> Command {
    let folder = folder.to_string_lossy();
    let there = ["sh", "-c", "cd \"$0\" && exec \"$@\"", &*folder];
    command(namespace, &[&there, words].concat())
}

/// Runs a tool to its end and gives its output.
///
/// # Errors
/// The command and what it said, when it cannot be run or fails.
pub fn run(namespace: Option<&str>, words: &[&str]) -> Result<String, String> {
    let out = command(namespace, words).output().map_err(|e| format!("cannot run {}: {e}", words[0]))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&out.stderr);
    let said = if said.trim().is_empty() { String::from_utf8_lossy(&out.stdout) } else { said };
    Err(format!("{}: {}", words.join(" "), said.trim()))
}

/// The same for a command line of words without quotes.
///
/// # Errors
/// As [`run`].
pub fn line(namespace: Option<&str>, text: &str) -> Result<String, String> {
    run(namespace, &text.split_whitespace().collect::<Vec<_>>())
}

/// Several lines of `ip -batch` or `tc -batch` in one call.
///
/// # Errors
/// The first line that was refused, with the tool's sentence.
pub fn batch(namespace: Option<&str>, tool: &str, lines: &[String]) -> Result<(), String> {
    use std::io::Write as _;
    if lines.is_empty() {
        return Ok(());
    }
    if lines.iter().any(|line| is_odd(line)) {
        for line in lines {
            let words: Vec<&str> = std::iter::once(tool).chain(line.split(' ')).collect();
            run(namespace, &words)?;
        }
        return Ok(());
    }
    let mut child = command(namespace, &[tool, "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot run {tool}: {e}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A tool that stops at a faulty line closes its end; what it said tells the rest.
        let _ = stdin.write_all((lines.join("\n") + "\n").as_bytes());
    }
    let out = child.wait_with_output().map_err(|e| format!("{tool}: {e}"))?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    // "Command failed -:3" names the line.
    let number = said.rsplit("-:").next().and_then(|n| n.trim().parse::<usize>().ok());
    let line = number.and_then(|n| lines.get(n.wrapping_sub(1)));
    let first = said.lines().find(|l| !l.starts_with("Warning")).unwrap_or(&said).to_owned();
    Err(format!("{tool} {}: {first}", line.map_or("-batch", String::as_str)))
}

/// Whether the batches of ip and tc would not take a name as it is: a comment, a quote, a continuation (`getcmdline`, `makeargs`).
pub fn is_odd(text: &str) -> bool {
    text.contains(['#', '"', '\'', '\\'])
}

/// Whether a program is on the path.
pub fn has(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let more = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    path.split(':').chain(more).any(|folder| Path::new(folder).join(program).is_file())
}
