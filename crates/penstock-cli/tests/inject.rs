//! Every system call that writes, failing and killed at: what was there is there, or all of the new, and the next run leaves nothing over.
//!
//! strace fails (or kills at) the Nth call of one kind. Which N touch the test's own folder is read from a run that is only watched. The
//! everyday suite tries an even share of the places; `PENSTOCK_INJECT=all` tries all of them, with EIO as well.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Calls that change what is on the disk, or open what is to be changed.
const CALLS: [&str; 17] = [
    "openat",
    "write",
    "pwrite64",
    "writev",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "rmdir",
    "mkdir",
    "mkdirat",
    "fsync",
    "fdatasync",
    "ftruncate",
    "fchmod",
    "flock",
];
/// Most injections of one command in the everyday suite.
const SHARE: usize = 120;

type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("penstock-inject-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Place(path.canonicalize().unwrap())
    }
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.0).env("PENSTOCK_STATE", self.0.join("state")).env("TMPDIR", &self.0);
        command.env_remove("PENSTOCK_KERNEL").env("RUST_BACKTRACE", "0");
        command
    }
    fn penstock(&self, words: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_penstock")).args(words).output().unwrap()
    }
    fn strace(&self, options: &[&str], words: &[&str]) -> Output {
        let mut command = self.command("strace");
        command
            .args(["-f", "-qq", "-y", "-s", "0"])
            .args(options)
            .arg(env!("CARGO_BIN_EXE_penstock"))
            .args(words);
        command.output().unwrap()
    }
    /// All that is there: modes and contents.
    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let (path, found) = entry.map(|e| (e.path(), e.metadata().unwrap())).unwrap();
                let bytes = if found.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
                tree.insert(
                    path.strip_prefix(&self.0).unwrap().to_owned(),
                    (found.permissions().mode(), bytes),
                );
                if found.is_dir() {
                    folders.push(path);
                }
            }
        }
        tree
    }
    /// Puts everything back.
    fn restore(&self, tree: &Tree) {
        fs::remove_dir_all(&self.0).unwrap();
        fs::create_dir_all(&self.0).unwrap();
        for (path, (mode, bytes)) in tree {
            let path = self.0.join(path);
            if mode & 0o170_000 == 0o040_000 { fs::create_dir(&path) } else { fs::write(&path, bytes) }
                .unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o7777)).unwrap();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn can() -> bool {
    let works = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true"])
        .output();
    if works.is_ok_and(|out| out.status.success()) {
        return true;
    }
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED faults at system calls: no strace (package strace), or no right to trace"
    );
    false
}

/// The places: a call and which one of its thread's, where it touches the folder.
fn places(place: &Place, words: &[&str]) -> Vec<(&'static str, usize)> {
    let log = std::env::temp_dir().join(format!("{}.log", place.0.display()));
    let out =
        place.strace(&["-o", log.to_str().unwrap(), "-e", &format!("trace={}", CALLS.join(","))], words);
    assert!(out.status.code().is_some(), "{out:?}");
    let text = fs::read_to_string(&log).unwrap();
    fs::remove_file(log).unwrap();
    let folder = place.0.to_str().unwrap();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((call, arguments)) = rest.trim_start().split_once('(') else { continue };
        let Some(call) = CALLS.iter().find(|c| **c == call) else { continue };
        let n = counts.entry((thread, call)).or_default();
        *n += 1;
        let reads = *call == "openat"
            && !arguments.contains("O_CREAT")
            && !arguments.contains("O_WRONLY")
            && !arguments.contains("O_RDWR");
        // Paths are relative, or stand behind a descriptor (-y); what the loader opens lies elsewhere.
        let here = arguments.contains(folder) || ["rename", "unlink", "rmdir", "mkdir"].contains(call);
        if here && !reads && !found.contains(&(*call, *n)) {
            found.push((*call, *n));
        }
    }
    found
}

/// Tries `words` with a fault at every place. `holds` says of what is there then whether it is whole; what is over after one more
/// undisturbed run is a fault. Gives how many runs were cut short.
fn sweep(place: &Place, words: &[&str], holds: &dyn Fn(&Tree) -> bool) -> usize {
    let all = std::env::var("PENSTOCK_INJECT").is_ok_and(|v| v == "all");
    let before = place.tree();
    let points = places(place, words);
    let after = place.tree();
    let names = |tree: &Tree| tree.keys().cloned().collect::<Vec<_>>();
    assert!(
        points.iter().any(|p| p.0.starts_with("rename")) || words[0] == "tc" || words[0] == "import",
        "{points:?}"
    );
    let kinds: &[&str] = if all {
        &["signal=SIGKILL", "error=ENOSPC", "error=EIO"]
    } else {
        &["signal=SIGKILL", "error=ENOSPC"]
    };
    let injections: Vec<_> =
        kinds.iter().flat_map(|kind| points.iter().map(move |p| (*kind, p.0, p.1))).collect();
    let step = if all { 1 } else { injections.len().div_ceil(SHARE) };
    let mut cut = 0;
    for (kind, call, n) in injections.iter().step_by(step.max(1)) {
        place.restore(&before);
        let inject = format!("inject={call}:{kind}:when={n}");
        let out = place.strace(&["-o", "/dev/null", "-e", &inject], words);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!said.contains("panicked"), "{inject}: {said}");
        let there = place.tree();
        assert!(
            holds(&there),
            "{words:?} with {inject}: neither the old nor the new is there: {:?}",
            names(&there)
        );
        cut += usize::from(!out.status.success());
        let again = place.penstock(words);
        let now = place.tree();
        assert!(holds(&now), "{words:?} after {inject}: {}", String::from_utf8_lossy(&again.stderr));
        assert_eq!(names(&now), names(&after), "{words:?} after {inject}: something is over");
    }
    assert!(cut > 0, "no fault was met");
    let _ = writeln!(
        std::io::stderr(),
        "{}: {} places, {} runs, {cut} cut short",
        words[0],
        points.len(),
        injections.len().div_ceil(step.max(1))
    );
    cut
}

/// The tree below a folder.
fn below(tree: &Tree, folder: &str) -> Tree {
    tree.iter().filter(|(path, _)| path.starts_with(folder)).map(|(p, v)| (p.clone(), v.clone())).collect()
}

const TWO: &str = r#"
duration = "50ms"
[host.a]
eth0 = "10.0.0.1/24"
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
ends = ["a:eth0", "b:eth0"]
rate = "10mbit"
[[flow]]
from = "a"
to   = "b"
udp  = true
load = { size = 500, gap = "5ms" }
"#;

#[test]
fn a_run_folder_is_the_old_or_the_new() {
    if !can() {
        return;
    }
    let place = Place::new("run");
    fs::write(place.0.join("x.toml"), TWO).unwrap();
    let run = |seed: &str| {
        let out = place.penstock(&["run", "x.toml", "--out", "runs/r", "--seed", seed]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        below(&place.tree(), "runs/r")
    };
    let new = run("2");
    let old = run("1");
    assert_ne!(old, new);
    sweep(&place, &["run", "x.toml", "--out", "runs/r", "--seed", "2"], &|tree| {
        let there = below(tree, "runs/r");
        there == old || there == new
    });
    // Where there was none: none, or all of it.
    fs::remove_dir_all(place.0.join("runs")).unwrap();
    sweep(&place, &["run", "x.toml", "--out", "runs/r", "--seed", "2"], &|tree| {
        let there = below(tree, "runs/r");
        there.is_empty() || there == new
    });
}

#[test]
fn where_folders_cannot_be_exchanged_the_old_one_comes_back() {
    if !can() {
        return;
    }
    let place = Place::new("exchange");
    fs::write(place.0.join("x.toml"), TWO).unwrap();
    let run = ["run", "x.toml", "--out", "runs/r", "--seed", "1"];
    assert!(place.penstock(&run).status.success());
    let old = below(&place.tree(), "runs/r");
    // No exchange, and killed between the two renames.
    let cannot = ["-o", "/dev/null", "-e", "inject=renameat2:error=EINVAL"];
    let out = place.strace(&[&cannot[..], &["-e", "inject=rename:signal=SIGKILL:when=2"]].concat(), &run);
    assert!(!out.status.success() && below(&place.tree(), "runs/r").is_empty(), "it was not killed there");
    // Whoever writes there next puts it back, and it is not what that one writes.
    assert!(place.penstock(&["run", "x.toml", "--out", "runs/q"]).status.success());
    assert_eq!(below(&place.tree(), "runs/r"), old);
    let out = place.strace(&cannot, &run);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(fs::read_dir(place.0.join("runs")).unwrap().count(), 2);
}

#[test]
fn a_report_is_the_old_or_the_new() {
    if !can() {
        return;
    }
    let place = Place::new("report");
    fs::write(place.0.join("x.toml"), TWO).unwrap();
    assert!(place.penstock(&["run", "x.toml", "--out", "r"]).status.success());
    let page = Path::new("r/report.html");
    let new = fs::read(place.0.join(page)).unwrap();
    fs::write(place.0.join(page), "old").unwrap();
    sweep(&place, &["report", "r"], &|tree| tree.get(page).is_some_and(|(_, b)| b == b"old" || *b == new));
}

#[test]
fn a_fixed_script_is_the_old_or_the_new() {
    if !can() {
        return;
    }
    let place = Place::new("fix");
    let script =
        format!("#!/bin/sh\n{}tc qdisc add dev eth0 root handle 1: sfq\n", "# a line\n".repeat(20_000));
    let path = place.0.join("s.sh");
    fs::write(&path, &script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o754)).unwrap();
    let fixed = place.penstock(&["check", "--fix", "s.sh"]).stdout;
    assert!(fixed != script.as_bytes() && fixed.len() > 100_000);
    sweep(&place, &["check", "--fix", "--write", "s.sh"], &|tree| {
        let (mode, bytes) = &tree[Path::new("s.sh")];
        mode & 0o7777 == 0o754 && (bytes == script.as_bytes() || *bytes == fixed)
    });
}

/// What the machine of a state shows.
fn shown(place: &Place) -> Option<String> {
    let out = place.penstock(&["tc", "class", "show", "dev", "eth0"]);
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn a_state_is_the_old_or_the_new() {
    if !can() {
        return;
    }
    let place = Place::new("tc");
    let tc = |line: &str| place.penstock(&line.split(' ').collect::<Vec<_>>()).status.success();
    assert!(tc("tc qdisc add dev eth0 root handle 1: htb"));
    assert!(tc("tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit"));
    // The next command makes the journal anew.
    let journal = place.0.join("state/journal-6.12");
    let mut text = fs::read_to_string(&journal).unwrap();
    let change = |rate: u32| {
        format!(
            "{{\"argv\":[\"tc\",\"class\",\"change\",\"dev\",\"eth0\",\"parent\",\"1:\",\"classid\",\"1:1\",\"htb\",\"rate\",\"{rate}kbit\"],\"status\":0}}\n"
        )
    };
    (0..253).for_each(|n| text.push_str(&change(1000 + n)));
    fs::write(&journal, &text).unwrap();
    let old = shown(&place).unwrap();
    let new = old.replace("1252Kbit", "2Mbit");
    assert_ne!(old, new);
    let words =
        ["tc", "class", "change", "dev", "eth0", "parent", "1:", "classid", "1:1", "htb", "rate", "2mbit"];
    let rate = |text: &str| {
        text.split("rate ").nth(1).and_then(|t| t.split(' ').next()).unwrap_or_default().to_owned()
    };
    sweep(&place, &words, &|_| {
        shown(&place).is_some_and(|now| [rate(&old), rate(&new)].contains(&rate(&now)))
    });
    assert!(fs::read_to_string(&journal).unwrap().lines().count() < 20, "it was not made anew");
}

#[test]
fn an_imported_machine_is_whole_command_by_command() {
    if !can() {
        return;
    }
    let place = Place::new("import");
    let tc = |line: &str| place.penstock(&line.split(' ').collect::<Vec<_>>());
    assert!(tc("tc qdisc add dev eth0 root handle 1: htb default 10").status.success());
    assert!(tc("tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit").status.success());
    fs::write(place.0.join("qdiscs"), tc("tc -j qdisc show").stdout).unwrap();
    fs::write(place.0.join("classes"), tc("tc -j class show dev eth0").stdout).unwrap();
    fs::remove_dir_all(place.0.join("state")).unwrap();
    let words = ["import", "qdiscs", "eth0=classes", "--state", "state"];
    sweep(&place, &words, &|_| shown(&place).is_some_and(|now| now.is_empty() || now.contains("rate 1Mbit")));
}
