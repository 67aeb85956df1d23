//! Runs on real kernels. Each test says aloud what it leaves out where the machine lacks something.

use penstock_kernel::{boot, names};
use penstock_measure::record::Record;
use penstock_measure::series::Series;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

const FILE: &str = r#"
title    = "Two machines"
duration = "2s"
sample   = "100ms"

[host.a]
eth0 = "10.9.0.1/24"
via  = "10.9.0.2"

[host.r]
eth0  = "10.9.0.2/24"
eth1  = "10.9.1.2/24"
setup = """sysctl -w net.ipv4.ip_forward=1
tc qdisc add dev eth1 root handle 1: htb default 10
tc class add dev eth1 parent 1: classid 1:10 htb rate 4mbit
tc qdisc add dev eth1 parent 1:10 handle 10: pfifo limit 40"""

[host.b]
eth0 = "10.9.1.1/24"
via  = "10.9.1.2"

[[link]]
ends = ["a:eth0", "r:eth0"]
rate = "20mbit"

[[link]]
ends = ["r:eth1", "b:eth0"]
rate = "20mbit"

[[app]]
on  = "a"
run = "ping -c 3 -i 0.2 b"
at  = "100ms"

[[flow]]
name = "call"
from = "b"
to   = "a"
udp  = true
load = { size = 200, gap = "10ms" }
at   = "0.5s"

[[flow]]
name = "bulk"
from = "a"
to   = "b"
load = "greedy"
at   = "1s"
"#;

/// One at a time: they share the machine's time.
static ALONE: Mutex<()> = Mutex::new(());

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("penstock-test-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("x.toml"), FILE).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn penstock(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    command.args(words).current_dir(folder);
    command
}

/// Says it past the test harness, which keeps what a passing test prints.
fn aloud(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Whether this machine can do it; says why not.
fn can(what: &str) -> bool {
    let out =
        |words: &[&str]| Command::new(words[0]).args(&words[1..]).output().is_ok_and(|o| o.status.success());
    let why = if !nix_root() {
        "not root"
    } else if !["ip", "tc", "ethtool", "setpriv", "ping"].iter().all(|p| penstock_kernel::exec::has(p)) {
        "iproute2, ethtool, util-linux or ping is missing"
    } else if !out(&["unshare", "-n", "true"]) {
        "no network namespaces"
    } else {
        return true;
    };
    aloud(&format!("SKIPPED {what}: {why}"));
    false
}

fn nix_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|m| {
        use std::os::unix::fs::MetadataExt as _;
        m.uid() == 0
    })
}

fn check(record: &Record) {
    let app = &record.apps[0];
    assert_eq!((app.exit, app.sent_packets, app.received_packets), (Some(0), Some(3), Some(3)), "{app:?}");
    let call = &record.flows[0];
    assert!(
        (140..=151).contains(&call.sent_packets) && call.received_packets + 2 >= call.sent_packets,
        "{call:?}"
    );
    assert!(call.owd_ms.is_some_and(|d| d.p50 < 20.0), "{call:?}");
    let bulk = &record.flows[1];
    // 4 Mbit/s with headers, and what the queue still holds.
    assert!((2.8e6..4.1e6).contains(&bulk.goodput_bit_s), "{bulk:?}");
    let router = record.devices.iter().find(|d| d.host == "r" && d.dev == "eth1").unwrap();
    assert!(router.classes[0].packets > 100 && router.qdiscs.iter().any(|q| q.handle == "10:"), "{router:?}");
    assert!(record.rig.hosts[1].forwards && record.rig.machine.is_some());
}

/// Every sample has the counters of every qdisc.
fn check_series(folder: &Path) {
    let series = Series::from_parquet(fs::read(folder.join("series.parquet")).unwrap()).unwrap();
    let points = |object: &str, metric: &str| series.points("r", object, metric).len();
    let all = points("eth1", "throughput_bit_s");
    assert!(all >= 15, "{all}");
    for (object, metric) in [("eth1 htb 1:", "throughput_bit_s"), ("eth1 class 1:10", "throughput_bit_s")] {
        assert_eq!(points(object, metric), all, "{object}");
    }
    assert!(points("eth1 pfifo 10:", "backlog_bytes") >= all);
}

#[test]
fn an_experiment_runs_on_this_kernel_and_leaves_nothing() {
    if !can("the ground kernel") {
        return;
    }
    let _alone = ALONE.lock();
    let folder = Folder::new("kernel");
    let mut child = penstock(&folder.0, &["run", "--on", "kernel", "x.toml", "--out", "out"]);
    let out = child.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let record = Record::from_json(&fs::read_to_string(folder.0.join("out/record.json")).unwrap()).unwrap();
    assert_eq!(record.ground, "kernel");
    check(&record);
    check_series(&folder.0.join("out"));
    assert!(record.flows[0].late_us.is_some());
    assert_eq!(names::sweep(), 0, "it left something");
}

#[test]
fn a_refused_command_is_told_with_its_line_and_leaves_nothing() {
    if !can("a refused setup") {
        return;
    }
    let _alone = ALONE.lock();
    let folder = Folder::new("refused");
    fs::write(folder.0.join("x.toml"), FILE.replace("rate 4mbit\n", "rate nonsense\n")).unwrap();
    let out = penstock(&folder.0, &["run", "--on", "kernel", "x.toml"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("r: Illegal \"rate\"") && said.contains("x.toml:15:"), "{said}");
    assert!(!folder.0.join("runs").exists());
    assert_eq!(names::sweep(), 0, "it left something");
}

#[test]
fn a_killed_run_leaves_nothing_behind_the_next_one() {
    if !can("kill -9") {
        return;
    }
    let _alone = ALONE.lock();
    let folder = Folder::new("killed");
    let times = std::env::var("PENSTOCK_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(24);
    let mut caught = 0;
    for n in 0..times {
        let mut command = penstock(&folder.0, &["run", "--on", "kernel", "x.toml"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Moments of its whole life: building, settling, running.
        std::thread::sleep(Duration::from_millis(n * 7919 % 900));
        child.kill().unwrap();
        child.wait().unwrap();
        caught += names::sweep();
        // Other runs may be alive on this machine.
        let own = format!("penstock-{}-", child.id());
        let left: Vec<String> = names::present().into_iter().filter(|name| name.contains(&own)).collect();
        assert!(left.is_empty(), "after kill {n}: {left:?}");
    }
    assert!(times < 10 || caught > 0, "no kill met a run");
    // Every process died with it: nobody is left who runs in a namespace of ours or sends for us.
    if !names::present().is_empty() {
        return aloud("SKIPPED whether every process died: another run is alive on this machine");
    }
    let all = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let all = String::from_utf8_lossy(&all.stdout).into_owned();
    let ours: Vec<&str> =
        all.lines().filter(|l| l.contains("--epoch") || l.contains("netns exec penstock-")).collect();
    assert!(ours.is_empty(), "{ours:?}");
}

#[test]
fn a_signal_ends_a_run_cleanly() {
    if !can("SIGTERM") {
        return;
    }
    let _alone = ALONE.lock();
    let folder = Folder::new("signal");
    for ms in [150, 600, 1400] {
        let child =
            penstock(&folder.0, &["run", "--on", "kernel", "x.toml"]).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(ms));
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        let out = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("stopped by a signal"), "{said}");
        assert_eq!(names::sweep(), 0, "it left something");
    }
}

#[test]
fn a_virtual_run_gives_the_same_bytes_each_time() {
    if let Err(why) = boot::find() {
        aloud(&format!("SKIPPED the ground virtual: {why}"));
        return;
    }
    let _alone = ALONE.lock();
    let folder = Folder::new("virtual");
    let mut first: Option<Vec<(PathBuf, Vec<u8>)>> = None;
    for n in 0..3 {
        let name = format!("out{n}");
        let out =
            penstock(&folder.0, &["run", "--on", "virtual", "x.toml", "--out", &name]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let mut files = Vec::new();
        for part in ["", "apps", "tc"] {
            for entry in fs::read_dir(folder.0.join(&name).join(part)).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    let bytes = fs::read(&path).unwrap();
                    files.push((path.strip_prefix(folder.0.join(&name)).unwrap().to_owned(), bytes));
                }
            }
        }
        files.sort();
        assert!(files.len() >= 8, "{files:?}");
        let before = first.get_or_insert_with(|| files.clone());
        let differing: Vec<_> =
            before.iter().zip(&files).filter(|(a, b)| a != b).map(|(a, _)| &a.0).collect();
        assert!(before.len() == files.len() && differing.is_empty(), "{differing:?}");
    }
    let record = Record::from_json(&fs::read_to_string(folder.0.join("out0/record.json")).unwrap()).unwrap();
    assert_eq!(record.ground, "virtual");
    check(&record);
    check_series(&folder.0.join("out0"));
}
