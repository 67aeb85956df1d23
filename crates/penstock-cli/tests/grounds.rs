//! Runs on real kernels. Each test says aloud what it leaves out where the machine lacks something.

use penstock_kernel::{Plan, boot};
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
        // Folders for jobs of this test's own: other runs may be alive on this machine.
        fs::create_dir_all(path.join("tmp")).unwrap();
        fs::write(path.join("x.toml"), FILE).unwrap();
        Folder(path.canonicalize().unwrap())
    }

    /// Processes of runs of this test: they have its folder in their environment.
    fn processes(&self) -> Vec<String> {
        let mark = format!("TMPDIR={}\0", self.0.join("tmp").display());
        let all = fs::read_dir("/proc").unwrap().flatten().map(|e| e.path());
        let ours = all.filter(|p| {
            let text = fs::read(p.join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(&mark)
        });
        ours.map(|p| fs::read_to_string(p.join("cmdline")).unwrap_or_default().replace('\0', " ")).collect()
    }

    /// Waits until the kernel has taken away the processes of a run that was killed.
    fn until_dead(&self) {
        let begin = std::time::Instant::now();
        while !self.processes().is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(5), "they live: {:?}", self.processes());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What runs of this test have left: folders of jobs, processes, instances of tracing.
    fn left(&self) -> Vec<String> {
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|e| e.path().display().to_string()).collect()
        };
        let mut left = names(&self.0.join("tmp"));
        left.extend(self.processes());
        left
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn penstock(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    command.args(words).current_dir(folder).env("TMPDIR", folder.join("tmp"));
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
    let why = if std::env::var_os("PENSTOCK_QUICK").is_some() {
        "PENSTOCK_QUICK is set"
    } else if !nix_root() {
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
    assert_eq!(folder.left(), [""; 0], "it left something");
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
    assert_eq!(folder.left(), [""; 0], "it left something");
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
        folder.until_dead();
        caught += folder.left().len();
        // What the next start does first. A dying process may keep its lock a moment longer than its memory.
        for _ in 0..100 {
            penstock_files::sweep(&folder.0.join("tmp"));
            if folder.left().is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(folder.left(), [""; 0], "after kill {n}");
    }
    assert!(times < 10 || caught > 0, "no kill met a run");
    // The last one is taken away by a whole run.
    let mut child =
        penstock(&folder.0, &["run", "--on", "kernel", "x.toml"]).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
    folder.until_dead();
    assert_eq!(folder.left().len(), 1);
    let out = penstock(&folder.0, &["run", "--on", "kernel", "x.toml"]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(folder.left(), [""; 0]);
    assert!(folder.0.join("runs/x/record.json").exists());
    let names: Vec<_> = fs::read_dir(folder.0.join("runs")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

/// A machine that does in its setup what is not to reach this one.
const WILD: &str = r#"
title    = "Wild"
duration = "300ms"
setup_may_fail = true

[host.a]
eth0  = "10.9.0.1/24"
setup = """echo caught > REAL
echo caught > /etc/penstock-test-REAL
echo caught > /opt/penstock-test-REAL
echo caught > /usr/penstock-test-REAL
echo caught > kept/REAL
unshare -n sleep 4242 >/dev/null 2>&1 &
setsid sleep 4243 >/dev/null 2>&1 &
sleep 4244 &
hostname penstock-test
echo 11 >/proc/sys/vm/swappiness
echo 0 >/sys/kernel/mm/ksm/sleep_millisecs
date -s @1000000000
nsenter -t 1 -n ip -o link >kept/links
ls -1 /run >kept/run
"""

[host.b]
eth0 = "10.9.0.2/24"

[[link]]
ends = ["a:eth0", "b:eth0"]

[[app]]
on  = "a"
run = "ping -c 1 b"
"#;

#[test]
fn a_setup_reaches_nothing_outside() {
    if !can("a setup that writes") {
        return;
    }
    let _alone = ALONE.lock();
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    const KEPT: [&str; 3] =
        ["/proc/sys/kernel/hostname", "/proc/sys/vm/swappiness", "/sys/kernel/mm/ksm/sleep_millisecs"];
    let before = KEPT.map(read);
    // With overlayfs, and as where there is none.
    for overlay in ["1", "0"] {
        let folder = Folder::new(&format!("wild{overlay}"));
        fs::create_dir(folder.0.join("kept")).unwrap();
        fs::write(folder.0.join("x.toml"), WILD).unwrap();
        let mut command = penstock(&folder.0, &["run", "--on", "kernel", "x.toml", "--allow-writes", "kept"]);
        let begin = std::time::Instant::now();
        let out = command.env("PENSTOCK_OVERLAY", overlay).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{said}");
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "it waited for what a setup left in the background"
        );
        assert_eq!(folder.left(), [""; 0], "it left something");
        for path in [
            folder.0.join("REAL"),
            "/usr/penstock-test-REAL".into(),
            "/etc/penstock-test-REAL".into(),
            "/opt/penstock-test-REAL".into(),
        ] {
            let was = path.exists();
            let _ = fs::remove_file(&path);
            assert!(!was, "{} was written", path.display());
        }
        assert_eq!(KEPT.map(read), before, "a setting of this machine was changed");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert!(now.as_secs() > 1_600_000_000, "the clock was set");
        // What was allowed is there, and the network outside was not seen.
        assert_eq!(read(folder.0.join("kept/REAL").to_str().unwrap()), "caught\n");
        let links = read(folder.0.join("kept/links").to_str().unwrap());
        assert!(
            links.contains("lo:")
                && links.lines().all(|l| l.contains("LOOPBACK") || l.contains("tunl") || l.contains("sit")),
            "{links}"
        );
        assert!(!read(folder.0.join("kept/run").to_str().unwrap()).contains("systemd"));
        let record =
            Record::from_json(&fs::read_to_string(folder.0.join("runs/x/record.json")).unwrap()).unwrap();
        assert_eq!(record.apps[0].received_packets, Some(1), "{:?}", record.apps);
        let refused = |command: &str| record.setup_failures.iter().any(|f| f.command.contains(command));
        assert!(refused("swappiness") && refused("ksm") && refused("date"), "{:?}", record.setup_failures);
        assert_eq!(refused("/usr/penstock-test-REAL"), overlay == "0", "{:?}", record.setup_failures);
    }
}

/// Things of somebody else's, named as ours once were.
struct Strangers {
    tail: std::process::Child,
    namespace: String,
    paths: Vec<PathBuf>,
}

impl Strangers {
    fn new(folder: &Folder) -> Strangers {
        let id = std::process::id();
        let log = folder.0.join("penstock-2024-11-22.log");
        fs::write(&log, "").unwrap();
        let tail = Command::new("tail")
            .arg("-f")
            .arg("penstock-2024-11-22.log")
            .current_dir(&folder.0)
            .spawn()
            .unwrap();
        let namespace = format!("penstock-2024-1-notes{id}");
        assert!(Command::new("ip").args(["netns", "add", &namespace]).status().unwrap().success());
        let mut paths = Vec::new();
        for parent in ["/run/penstock", "/etc/netns", folder.0.join("tmp").to_str().unwrap()] {
            let path = Path::new(parent).join(&namespace);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("hosts"), "mine").unwrap();
            paths.push(path);
        }
        let file = PathBuf::from(format!("/run/penstock/penstock-2024-1-file{id}"));
        fs::write(&file, "mine").unwrap();
        paths.push(file);
        let shape = folder.0.join(format!("tmp/.penstock-{}", "0123456789abcdef".repeat(2)));
        fs::create_dir(&shape).unwrap();
        fs::write(shape.join("notes"), "mine").unwrap();
        paths.push(shape);
        Strangers { tail, namespace, paths }
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        let _ = self.tail.kill();
        let _ = self.tail.wait();
        let _ = Command::new("ip").args(["netns", "del", &self.namespace]).status();
        for path in &self.paths {
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
        for parent in ["/run/penstock", "/etc/netns"] {
            // Only where nobody else has anything in it.
            let _ = fs::remove_dir(parent);
        }
    }
}

#[test]
fn strangers_are_left_alone() {
    if !can("strangers") {
        return;
    }
    let _alone = ALONE.lock();
    let folder = Folder::new("strangers");
    let mut strangers = Strangers::new(&folder);
    let mut child =
        penstock(&folder.0, &["run", "--on", "kernel", "x.toml"]).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(400));
    child.kill().unwrap();
    child.wait().unwrap();
    let out = penstock(&folder.0, &["run", "--on", "kernel", "x.toml"]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(matches!(strangers.tail.try_wait(), Ok(None)), "a stranger was killed");
    assert!(Path::new("/run/netns").join(&strangers.namespace).exists(), "a stranger's namespace is gone");
    let enters = Command::new("ip").args(["netns", "exec", &strangers.namespace, "true"]).status().unwrap();
    assert!(enters.success(), "a stranger's namespace is broken");
    for path in &strangers.paths {
        assert!(path.exists(), "{} is gone", path.display());
    }
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
        assert_eq!(folder.left(), [""; 0], "it left something");
    }
}

#[test]
fn a_virtual_run_gives_the_same_bytes_each_time() {
    let quick = std::env::var_os("PENSTOCK_QUICK").map(|_| "PENSTOCK_QUICK is set".to_owned());
    if let Some(why) = quick.or(boot::find().err()) {
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
        let names: Vec<_> = files.iter().map(|f| &f.0).collect();
        assert!(files.len() >= 5 && files.iter().any(|f| f.0.ends_with("tc/r-eth1.txt")), "{names:?}");
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

/// What a job of a setup waits counts from when it began to; on the real kernel the run begins with the next tick (10 ms).
#[test]
fn jobs_of_setups_keep_their_time_on_every_exact_ground() {
    let text = r#"
duration = "1s"
[host.a]
eth0 = "10.0.0.1/24"
setup = "(sleep 0.7; tc qdisc add dev eth0 root pfifo limit 7) &"
[host.b]
eth0 = "10.0.0.2/24"
setup = "sleep 0.2"
[[link]]
ends = ["a:eth0", "b:eth0"]
rate = "10mbit"
[[app]]
on  = "a"
run = "tc qdisc show dev eth0"
at  = "485ms"
[[app]]
on  = "a"
run = "tc qdisc show dev eth0"
at  = "505ms"
[[flow]]
from = "a"
to   = "b"
udp  = true
load = { size = 100, gap = { mean = "20ms", shape = 1.5 }, on = "100ms", off = { mean = "50ms" } }
"#;
    let quick = std::env::var_os("PENSTOCK_QUICK").map(|_| "PENSTOCK_QUICK is set".to_owned());
    let mut grounds = vec!["sim"];
    match quick.or(boot::find().err()) {
        Some(why) => aloud(&format!("SKIPPED jobs of setups on the ground virtual: {why}")),
        None => grounds.push("virtual"),
    }
    let _alone = ALONE.lock();
    let folder = Folder::new("jobs");
    fs::write(folder.0.join("jobs.toml"), text).unwrap();
    for ground in grounds {
        let out =
            penstock(&folder.0, &["run", "--on", ground, "jobs.toml", "--out", ground]).output().unwrap();
        assert!(out.status.success(), "{ground}: {}", String::from_utf8_lossy(&out.stderr));
        let shown = |file: &str| fs::read_to_string(folder.0.join(ground).join("apps").join(file)).unwrap();
        let (before, behind) = (shown("01-a.txt"), shown("02-a.txt"));
        assert!(!before.contains("limit 7p"), "{ground}: {before}");
        assert!(behind.contains("qdisc pfifo ") && behind.contains("limit 7p"), "{ground}: {behind}");
        let record = fs::read_to_string(folder.0.join(ground).join("record.json")).unwrap();
        let record = Record::from_json(&record).unwrap();
        // Drawn gaps and times of being on: real senders draw them by themselves.
        let flow = &record.flows[0];
        assert!(
            flow.received_packets > 10 && flow.payload_bytes == Some(100 * flow.received_packets),
            "{flow:?}"
        );
    }
}

/// The grounds that this machine has; says which it has not, and why.
fn grounds(what: &str) -> Vec<&'static str> {
    let quick = std::env::var_os("PENSTOCK_QUICK").map(|_| "PENSTOCK_QUICK is set".to_owned());
    let mut grounds = vec!["sim"];
    match quick.clone().or(boot::find().err()) {
        Some(why) => aloud(&format!("SKIPPED {what} on the ground virtual: {why}")),
        None => grounds.push("virtual"),
    }
    let lacks = || penstock_kernel::needs::check(&Plan::default()).err().map(|lacks| lacks.join("; "));
    match quick.or_else(lacks) {
        Some(why) => aloud(&format!("SKIPPED {what} on the ground kernel: {why}")),
        None => grounds.push("kernel"),
    }
    grounds
}

/// Setups and apps' scripts find the files that lie beside the experiment, whatever word they begin with.
#[test]
fn files_beside_the_experiment_are_there_on_every_ground() {
    let text = r#"
duration = "1s"
[host.a]
eth0 = "10.0.0.1/24"
setup = """
. ./lib.sh
shape eth0 5mbit"""
[host.b]
eth0 = "10.0.0.2/24"
setup = """
tc qdisc add dev eth0 root handle 1: htb default 10
tc -batch more.batch"""
[[link]]
ends = ["a:eth0", "b:eth0"]
rate = "10mbit"
[[app]]
on  = "a"
run = ". ./lib.sh; tc qdisc show dev eth0; kind pfifo"
"#;
    let grounds = grounds("files beside an experiment");
    let _alone = ALONE.lock();
    let folder = Folder::new("beside");
    let put = |name: &str, text: &str| fs::write(folder.0.join(name), text).unwrap();
    put("beside.toml", text);
    put(
        "lib.sh",
        "shape() { tc qdisc add dev $1 root tbf rate $2 burst 10k latency 50ms; }\nkind() { echo \"kind $1\"; }\n",
    );
    put("more.batch", "class add dev eth0 parent 1: classid 1:10 htb rate 2mbit\n");
    for ground in grounds {
        let words = ["run", "--on", ground, "beside.toml", "--out", ground];
        let out = penstock(&folder.0, &words).output().unwrap();
        assert!(out.status.success(), "{ground}: {}", String::from_utf8_lossy(&out.stderr));
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let tree = said.split_once("\n  b eth0 1:").unwrap_or_else(|| panic!("{ground}: {said}")).1;
        let class =
            |l: &str| l.starts_with("    1:10 ") && l.contains(" htb class ") && l.contains(" 2 Mbit/s ");
        assert!(tree.lines().nth(1).is_some_and(class), "{ground}: {said}");
        let app = fs::read_to_string(folder.0.join(ground).join("apps/01-a.txt")).unwrap();
        assert!(app.contains("rate 5Mbit") && app.ends_with("kind pfifo\n"), "{ground}: {app}");
    }
}

/// A namespace that a setup makes is there for the programs behind it; two machines may give it the same name.
#[test]
fn namespaces_of_a_setup_are_there_for_programs_on_every_ground() {
    let text = r#"
duration = "2s"
[host.a]
eth0 = "10.0.0.1/24"
setup = """
sysctl -qw net.ipv4.ip_forward=1
ip netns add red
ip link add veth0 type veth peer name eth0 netns red
ip addr add 10.1.0.1/24 dev veth0
ip link set veth0 up
ip -n red addr add 10.1.0.2/24 dev eth0
ip -n red link set eth0 up
ip -n red route add default via 10.1.0.1"""
[host.b]
eth0 = "10.0.0.2/24"
setup = """
ip route add 10.1.0.0/24 via 10.0.0.1
ip netns add red
ip -n red link set lo up"""
[[link]]
ends = ["a:eth0", "b:eth0"]
rate = "10mbit"
[[app]]
on = "a"
run = "ip netns exec red ping -c 3 -i 0.2 10.0.0.2"
[[app]]
on = "b"
run = "ip netns exec red ping -c 2 -i 0.2 127.0.0.1"
[[app]]
on = "b"
run = "ip netns exec red ip route show default; ip netns list"
"#;
    let grounds = grounds("namespaces of a setup");
    let _alone = ALONE.lock();
    let folder = Folder::new("spaces");
    fs::write(folder.0.join("spaces.toml"), text).unwrap();
    for ground in grounds {
        let words = ["run", "--on", ground, "spaces.toml", "--out", ground];
        let out = penstock(&folder.0, &words).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        let app = |name: &str| fs::read_to_string(folder.0.join(ground).join("apps").join(name)).unwrap();
        assert!(out.status.success(), "{ground}: {said}");
        assert!(app("01-a.txt").contains("3 packets transmitted, 3 received"), "{ground}: {said}");
        assert!(app("02-b.txt").contains("2 packets transmitted, 2 received"), "{ground}: {said}");
        // That of `b` has no routes, whatever that of `a` has.
        let list = app("03-b.txt");
        let names: Vec<_> = list.lines().filter_map(|l| l.split_whitespace().next()).collect();
        assert_eq!(names, ["red"], "{ground}: {list}");
    }
}
