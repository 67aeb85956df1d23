//! `penstock sweep` as somebody types it: what is refused, what it writes, and that it goes on after a kill.

mod scratch;

use scratch::{Scratch, text};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const LINE: &str = "title = \"Line\"\nduration = \"4s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
    [[link]]\nname = \"up\"\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"4mbit\"\ndelay = \"2ms\"\n\
    [[flow]]\nname = \"call\"\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = { size = 500, gap = { mean = \"5ms\" } }\n\
    [[flow]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\n\
    [[expect]]\nwhat = \"call owd p99\"\nvalue = \"<5ms\"\n";

/// A folder with the experiment in it.
fn place(name: &str) -> Scratch {
    let place = Scratch::new(&format!("sweep-{name}"));
    fs::write(place.0.join("line.toml"), LINE).unwrap();
    place
}

fn command(place: &Scratch, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    command.arg("sweep").args(words).current_dir(&place.0);
    command
}

fn sweep(place: &Scratch, words: &[&str]) -> Output {
    command(place, words).output().unwrap()
}

/// The results of runs, with what tells whether one was written again.
fn results(folder: &Path) -> BTreeMap<PathBuf, (u64, i64)> {
    let mut all = BTreeMap::new();
    let Ok(folders) = fs::read_dir(folder.join("results")) else { return all };
    for file in folders.filter_map(|f| fs::read_dir(f.ok()?.path()).ok()).flatten().flatten() {
        if file.path().extension().is_some_and(|e| e == "json")
            && let Ok(meta) = file.metadata()
        {
            all.insert(file.path(), (meta.ino(), meta.mtime_nsec()));
        }
    }
    all
}

fn whole(folder: &Path) -> Vec<Vec<u8>> {
    ["results.parquet", "sweep.json", "report.html"].map(|n| fs::read(folder.join(n)).unwrap()).into()
}

#[test]
fn a_killed_sweep_goes_on_and_ends_with_the_same_bytes() {
    let place = place("killed");
    let words = ["line.toml", "--set", "link.up.rate=1mbit,2mbit,4mbit", "--seeds", "8", "--jobs", "2"];
    let done = sweep(&place, &[&words[..], &["--out", "straight"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let broken = place.0.join("broken");
    let (mut kills, mut seen) = (0, results(&broken));
    while kills < 3 {
        let mut child = command(&place, &[&words[..], &["--out", "broken"]].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if results(&broken).len() >= seen.len() + 3 {
                break None;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "no result comes");
            std::thread::sleep(Duration::from_millis(2));
        };
        child.kill().unwrap();
        child.wait().unwrap();
        let now = results(&broken);
        for (file, was) in &seen {
            assert_eq!(now.get(file), Some(was), "{} was lost or made again", file.display());
        }
        seen = now;
        if ended.is_some() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 0, "no kill met a sweep at work");
    let done = sweep(&place, &[&words[..], &["--out", "broken"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let now = results(&broken);
    assert_eq!(now.len(), 24);
    assert!(seen.iter().all(|(file, was)| now.get(file) == Some(was)), "a result was made again");
    assert_eq!(whole(&broken), whole(&place.0.join("straight")));
    // Nothing of the killed ones is left beside the results.
    let left: Vec<PathBuf> = fs::read_dir(&broken).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.iter().all(|p| !p.to_string_lossy().contains(".penstock-")), "{left:?}");
}

#[test]
fn what_is_wrong_is_told_and_nothing_is_run() {
    let place = place("wrong");
    for (words, told) in [
        (
            &["line.toml", "--set", "link.upp.rate=1mbit"][..],
            "--set:1:6: no link is called \"upp\"\n  link.upp.rate=1mbit\n       ^^^ did you mean up?\n",
        ),
        (&["line.toml"], "nothing is varied"),
        (
            &["line.toml", "--set", "link.up.rate=1mbit,2mbt"],
            "--set:1:20: link.up.rate = 2mbt: rate: \"2mbt\" is not a rate",
        ),
        (&["none.toml", "--set", "x=1"], "cannot read none.toml"),
    ] {
        let done = sweep(&place, words);
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        assert!(text(&done.stderr).contains(told), "{words:?}: {}", text(&done.stderr));
    }
    assert!(!place.0.join("runs").exists());
    fs::create_dir(place.0.join("mine")).unwrap();
    fs::write(place.0.join("mine/notes.txt"), "").unwrap();
    let done = sweep(&place, &["line.toml", "--set", "duration=1s", "--out", "mine"]);
    assert!(
        text(&done.stderr).contains("mine holds notes.txt, which no sweep wrote"),
        "{}",
        text(&done.stderr)
    );
}

#[test]
fn the_table_and_the_json_say_the_same() {
    let place = place("table");
    let words = [
        "line.toml",
        "--set",
        "link.up.rate=1mbit,4mbit",
        "--set",
        "duration=1s",
        "--seeds",
        "6",
        "--pareto",
        "bulk goodput",
        "call owd p99",
    ];
    let done = sweep(&place, &words);
    assert_eq!((done.status.code(), text(&done.stderr).as_str()), (Some(0), ""));
    let table = text(&done.stdout);
    assert!(table.starts_with("Line: 2 points, 6 seeds, 12 runs\n"), "{table}");
    for part in ["link.up.rate", "bulk goodput", "call owd p99", "runs/line-sweep/report.html"] {
        assert!(table.contains(part), "{table}");
    }
    let done = sweep(&place, &[&words[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(fs::read(place.0.join("runs/line-sweep/sweep.json")).unwrap(), done.stdout);
    let point = &json["points"][1];
    assert_eq!(point["set"]["link.up.rate"], "4mbit");
    let figure = &point["figures"]["bulk goodput"];
    assert_eq!((figure["runs"].as_u64(), figure["confidence"].as_f64()), (Some(6), Some(0.96875)));
    assert!(
        figure["min"].as_f64() <= figure["low"].as_f64()
            && figure["low"].as_f64() <= figure["median"].as_f64()
    );
    assert_eq!(json["pareto"]["points"], serde_json::json!([1]), "the fast line is better in both");
    let dry = sweep(
        &place,
        &["line.toml", "--set", "link.up.delay=1ms..9ms", "--design", "latin", "--points", "4", "--dry-run"],
    );
    assert_eq!(text(&dry.stdout).lines().count(), 4, "{}", text(&dry.stdout));
}
