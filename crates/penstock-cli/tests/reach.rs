//! What a file's words reach, and what they do to a terminal: nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

struct Place(PathBuf);

impl Place {
    /// A folder `in` for experiments and a folder `out` that is none of theirs.
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("penstock-reach-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("in")).unwrap();
        fs::create_dir_all(path.join("out")).unwrap();
        Place(path)
    }
    fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), text).unwrap();
    }
    /// Runs it in `in`, by a shell that sets the streams; it must not take long.
    fn sh(&self, line: &str) -> Output {
        let begin = Instant::now();
        let line = format!("P={}; {line}", env!("CARGO_BIN_EXE_penstock"));
        let mut command = Command::new("timeout");
        command.args(["20", "bash", "-c", &line]).current_dir(self.0.join("in"));
        command
            .env("PENSTOCK_STATE", self.0.join("state"))
            .env_remove("PENSTOCK_KERNEL")
            .env("RUST_BACKTRACE", "0");
        let out = command.env("SECRET_WORD", "xyzzy").output().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(19), "{line}: it hangs");
        out
    }
    /// Status, and all it said.
    fn said(&self, line: &str) -> (i32, String) {
        let out = self.sh(line);
        let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        (out.status.code().unwrap(), text)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const TWO: &str = r#"
duration = "50ms"
[host.a]
eth0 = "10.0.0.1/24"
SETUP
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
ends = ["a:eth0", "b:eth0"]
"#;

fn two(setup: &str) -> String {
    TWO.replace("SETUP", setup)
}

#[test]
fn an_experiment_reads_below_its_folder_only() {
    let place = Place::new("below");
    place.put("out/base.toml", two("").replace("duration", "about = \"xyzzy\"\nduration"));
    place.put("out/notes", "xyzzy = is no TOML\nxyzzy\n");
    place.put("out/s.sh", "xyzzy\n");
    place.put("out/t.csv", "time_s,payload_bytes\n0.0,100\n0.01,100\n");
    symlink("../out/s.sh", place.0.join("in/link.sh")).unwrap();
    symlink("../out", place.0.join("in/way")).unwrap();
    let replay = |path: &str| {
        two("")
            + &format!("[[flow]]\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = {{ replay = \"@{path}\" }}\n")
    };
    let fail = "setup_may_fail = true\n";
    for text in [
        "base = \"../out/base.toml\"\n".to_owned(),
        "base = \"../out/notes\"\n".to_owned(),
        "base = \"/etc/passwd\"\n".to_owned(),
        two("setup = \"@../out/s.sh\"\nsetup_may_fail = true"),
        two("setup = \"@link.sh\"\nsetup_may_fail = true"),
        two("setup = \"@way/s.sh\"\nsetup_may_fail = true"),
        two("setup = \"@/proc/self/environ\"\nsetup_may_fail = true"),
        two("setup = \"@/dev/zero\""),
        two("setup = \"@/proc/kmsg\""),
        two("cisco = \"@../out/s.sh\""),
        replay("../out/t.csv"),
        fail.to_owned() + &two("") + "[[app]]\non = \"a\"\nrun = \"@../out/s.sh\"\n",
    ] {
        place.put("in/x.toml", &text);
        let (status, said) = place.said("$P run x.toml");
        assert_eq!(status, 2, "{text}\n{said}");
        assert!(said.contains("it lies outside"), "{text}\n{said}");
        assert!(!said.contains("xyzzy"), "{text}\n{said}");
        assert!(!place.0.join("in/runs").exists());
    }
    for text in ["base = \"../out/base.toml\"\n".to_owned(), replay("../out/t.csv")] {
        place.put("in/x.toml", &text);
        let (status, said) = place.said("$P run x.toml --allow-path ../out");
        assert_eq!(status, 0, "{said}");
    }
    // The folder of what is typed is the experiment's, whatever folder one stands in.
    place.put("out/x.toml", "base = \"base.toml\"\n");
    assert_eq!(place.said("$P run ../out/x.toml").0, 0);
    assert_eq!(place.said("$P run x.toml --allow-path nowhere").0, 2);
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let place = Place::new("regular");
    assert!(Command::new("mkfifo").arg(place.0.join("in/fifo")).status().unwrap().success());
    place.put("in/two.toml", two("setup = \"@fifo\""));
    place.put("in/s.sh", "tc qdisc add dev eth0 root sfq perturb 10\n");
    fs::File::create(place.0.join("in/huge")).unwrap().set_len(3 << 30).unwrap();
    for (line, why) in [
        ("$P run two.toml", "it is a pipe"),
        ("$P run fifo", "it is a pipe"),
        ("$P run /dev/zero", "it is a device"),
        ("$P run huge", "it is larger than 64 MiB"),
        ("$P run - ", "there is no such file"),
        ("$P check fifo", "it is a pipe"),
        ("$P check /dev/zero", "it is a device"),
        ("$P check huge", "it is larger than 64 MiB"),
        ("$P check - </dev/zero", "it is larger than 64 MiB"),
        ("$P diff --dev eth0 s.sh .", "it is a folder"),
        ("$P check --baseline fifo s.sh", "it is a pipe"),
        ("$P explain --dev eth0 --pcap fifo s.sh", "it is a pipe"),
        ("$P explain --dev eth0 --pcap huge s.sh", "it is larger than 1024 MiB"),
        ("$P diff --dev eth0 s.sh fifo", "it is a pipe"),
        ("$P replay fifo", "it is a pipe"),
        ("$P replay huge", "it is larger than 1024 MiB"),
        ("$P shell fifo", "it is a pipe"),
        ("$P shell --file /x=fifo s.sh", "it is a pipe"),
        ("$P shell --file /x=/dev/zero s.sh", "it is a device"),
        ("$P import fifo", "it is a pipe"),
        ("$P send 127.0.0.1 --udp --trace fifo", "it is a pipe"),
    ] {
        let (status, said) = place.said(line);
        assert!(status == 2 && said.contains(why), "{line}: {status} {said}");
    }
    // tc says it in its own words.
    assert_eq!(place.said("$P tc -batch fifo").0, 1);
    // A descriptor that was handed over may be a pipe.
    for line in [
        "$P check <(cat s.sh)",
        "cat s.sh | $P check -",
        "cat s.sh | $P check /dev/stdin",
        "$P tc -b <(echo qdisc show)",
    ] {
        assert_eq!(place.said(line).0, 0, "{line}");
    }
}

#[test]
fn a_lent_folder_leads_nowhere_else() {
    let place = Place::new("lent");
    fs::create_dir(place.0.join("in/conf")).unwrap();
    place.put("in/conf/a", "A=1\n");
    place.put("out/secret", "xyzzy\n");
    place.put("in/s.sh", "cat /x/a /x/b\n");
    symlink("a", place.0.join("in/conf/b")).unwrap();
    assert_eq!(place.said("$P shell --file /x=conf s.sh"), (0, "A=1\nA=1\n".to_owned()));
    fs::remove_file(place.0.join("in/conf/b")).unwrap();
    symlink("../../out/secret", place.0.join("in/conf/b")).unwrap();
    for verb in ["shell", "check"] {
        let (status, said) = place.said(&format!("$P {verb} --file /x=conf s.sh"));
        assert!(status == 2 && said.contains("it lies outside") && !said.contains("xyzzy"), "{verb}: {said}");
    }
    assert_eq!(
        place.said("$P shell --file /x=conf --allow-path ../out s.sh"),
        (0, "A=1\nxyzzy\n".to_owned())
    );
    // What is typed itself may be a link.
    symlink("../out/secret", place.0.join("in/typed")).unwrap();
    place.put("in/t.sh", "cat /y\n");
    assert_eq!(place.said("$P shell --file /y=typed t.sh"), (0, "xyzzy\n".to_owned()));
}

#[test]
fn full_streams_are_no_panic_and_no_success() {
    let place = Place::new("full");
    place.put("in/s.sh", "#!/bin/sh\ntc qdisc add dev eth0 root handle 1: sfq\necho said\nnosuchcommand\n");
    place.put("in/x.toml", two(""));
    place.put("in/bad.toml", "duraton = 1\n");
    for (line, want) in [
        ("$P check --fix s.sh 2>/dev/full", None),
        ("$P run bad.toml 2>/dev/full", Some(2)),
        ("$P run x.toml 2>/dev/full", Some(0)),
        ("$P shell s.sh 2>/dev/full", Some(127)),
        ("$P tc qdisc add dev nosuch root sfq 2>/dev/full", Some(1)),
        ("$P check nosuch 2>/dev/full", Some(2)),
        ("$P import nosuch 2>/dev/full", Some(2)),
        ("$P nonsense 2>/dev/full", Some(2)),
        ("$P shell s.sh >/dev/full", Some(2)),
        ("$P check s.sh >/dev/full", Some(2)),
        ("$P run x.toml >/dev/full", Some(2)),
        ("$P tc qdisc show >/dev/full", Some(2)),
        ("$P shell s.sh | true; exit ${PIPESTATUS[0]}", Some(127)),
    ] {
        let (status, said) = place.said(line);
        assert!(want.map_or(status < 3, |w| w == status), "{line}: {status} {said}");
        assert!(!said.contains("panicked"), "{line}: {said}");
    }
}

#[test]
fn no_text_commands_the_terminal() {
    let place = Place::new("escapes");
    let text = two("setup = \"tc qdisc add dev eth0 root sfq\\u001b]0;pwned\\u0007\"\nsetup_may_fail = true");
    place.put("in/x.toml", format!("title = \"t\\u001b[2J\\u202e\"\n{text}"));
    place.put("in/bad.toml", "title = 1 # \u{1b}]0;pwned\u{7}\n");
    place.put("in/s.sh", "#!/bin/sh\ntc qdisc add dev eth0 root handle 1: htb rat\u{1b}[31m 1\u{9b}2J\n");
    for line in
        ["$P run x.toml", "$P run bad.toml", "$P check s.sh", "$P check $'no\\e[2Jsuch'", "$P report runs/x"]
    {
        let (_, said) = place.said(line);
        let obeyed = said.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t') || *c == '\u{202e}');
        assert!(obeyed.is_none() && !said.is_empty(), "{line}: {said:?}");
    }
    assert!(place.said("$P run x.toml").1.contains("t\\x1b[2J\\u{202e}"));
    // What a script itself prints is the script's.
    place.put("in/own.sh", "printf '\\033[1mbold'\n");
    assert_eq!(place.said("$P shell own.sh").1, "\u{1b}[1mbold");
}

#[test]
fn what_is_no_script_or_no_run_is_said_so() {
    let place = Place::new("others");
    fs::copy("/bin/true", place.0.join("in/binary")).unwrap();
    for verb in ["check", "shell", "explain --dev eth0 --all", "replay --dev eth0 x.pcap --through"] {
        place.put("in/x.pcap", "{\"t_us\":0,\"len\":100}\n");
        let (status, said) = place.said(&format!("$P {verb} binary"));
        assert!(status == 2 && said.contains("binary is not a text file"), "{verb}: {said}");
        assert!(!said.contains('\0') && said.len() < 200, "{verb}: {said:?}");
    }
    place.put("in/app.toml", two("") + "[[app]]\non = \"\"\nrun = \"true\"\n");
    let (status, said) = place.said("$P run app.toml");
    assert!(status == 2 && said.contains("on is empty"), "{said}");
    place.put("in/x.toml", two("setup = \"tc qdisc add dev eth0 root pfifo limit 9\""));
    assert_eq!(place.said("$P run x.toml").0, 0);
    let record = place.0.join("in/runs/x/record.json");
    let text = fs::read_to_string(&record).unwrap();
    for length in ["1e23", "-1.0", "1e400"] {
        fs::write(&record, text.replace("\"duration_s\": 0.05", &format!("\"duration_s\": {length}")))
            .unwrap();
        let (status, said) = place.said("$P report runs/x");
        assert!(status == 2 && (said.contains("duration_s") || length == "1e400"), "{length}: {said}");
    }
    // A link in a run folder shows nothing of another file.
    fs::write(&record, text).unwrap();
    assert_eq!(place.said("$P report runs/x").0, 0);
    let tc = fs::read_dir(place.0.join("in/runs/x/tc")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&tc).unwrap();
    place.put("out/secret", "xyzzy\n");
    symlink(place.0.join("out/secret"), &tc).unwrap();
    assert_eq!(place.said("$P report runs/x").0, 0);
    assert!(
        !fs::read_to_string(Path::new(&place.0).join("in/runs/x/report.html")).unwrap().contains("xyzzy")
    );
}
