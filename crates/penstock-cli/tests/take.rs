//! What one takes along from a run: CSV, flent's form, JSON of diff; and what a terminal gets.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("penstock-take-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }
    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }
    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
        command
            .args(words)
            .current_dir(&self.0)
            .env_remove("NO_COLOR")
            .env_remove("PENSTOCK_KERNEL")
            .output()
            .unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const LINE: &str = "duration = \"4s\"\nsample = \"100ms\"\n[host.a]\neth0 = { address = \"10.0.0.1/24\", capture = true }\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
                    [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"5ms\"\n";

#[test]
fn series_as_text_and_for_flent() {
    let place = Place::new("flent");
    place.put("t.toml", &format!("{LINE}[[test]]\nrun = \"tcp_bidirectional\"\nfrom = \"a\"\nto = \"b\"\n"));
    let done = place.run(&["run", "t.toml", "--csv", "--flent"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let csv = std::fs::read_to_string(place.0.join("runs/t/series.csv")).unwrap();
    assert!(csv.starts_with("time_s,host,object,metric,value\n"));
    let row = csv.lines().find(|l| l.contains(",flow TCP upload,goodput_bit_s,")).unwrap();
    assert_eq!(row.split(',').count(), 5);
    assert!(place.0.join("runs/t/captures/a-eth0.pcapng").is_file());
    let gz = std::fs::read(place.0.join("runs/t/data.flent.gz")).unwrap();
    assert_eq!(gz[..2], [0x1f, 0x8b]);
    // The folder of an earlier run is replaced with all of that in it, and by the same bytes.
    assert!(place.run(&["run", "t.toml", "--csv", "--flent"]).status.success());
    assert_eq!(std::fs::read(place.0.join("runs/t/data.flent.gz")).unwrap(), gz);
    assert!(place.run(&["run", "t.toml"]).status.success());
    assert!(!place.0.join("runs/t/series.csv").exists());
    plotted(&place, &gz, "tcp_bidirectional");
}

/// flent itself draws it, where it is there.
fn plotted(place: &Place, gz: &[u8], test: &str) {
    let flent = |words: &[&str]| Command::new("flent").args(words).current_dir(&place.0).output();
    if flent(&["--version"]).is_err() {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED flent plots a run: it is not installed (pip install flent matplotlib)"
        );
        return;
    }
    std::fs::write(place.0.join("data.flent.gz"), gz).unwrap();
    let done = flent(&["-i", "data.flent.gz", "-p", "totals", "-o", "totals.png"]).unwrap();
    let said = text(&done.stderr) + &text(&done.stdout);
    if said.contains("matplotlib") && said.to_lowercase().contains("unable") {
        let _ = writeln!(std::io::stderr(), "SKIPPED flent plots a run: matplotlib is not installed");
        return;
    }
    assert!(done.status.success() && !said.contains("WARNING") && !said.contains("ERROR"), "{test}: {said}");
    let png = std::fs::read(place.0.join("totals.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000, "{}", png.len());
}

#[test]
fn quiet_says_what_is_wrong_alone() {
    let place = Place::new("quiet");
    let ping =
        "[[app]]\non = \"a\"\nrun = \"ping -c 3 -i 0.2 b\"\n[[expect]]\nwhat = \"a ping rtt mean\"\nvalue = ";
    place.put("good.toml", &format!("{LINE}{ping}\"<20ms\"\n"));
    place.put("bad.toml", &format!("{LINE}{ping}\"<5ms\"\n"));
    let good = place.run(&["run", "good.toml", "--quiet"]);
    assert_eq!(
        (good.status.code(), text(&good.stdout).as_str(), text(&good.stderr).as_str()),
        (Some(0), "", "")
    );
    let bad = place.run(&["run", "bad.toml", "-q"]);
    assert_eq!(bad.status.code(), Some(1));
    let said = text(&bad.stdout);
    assert!(said.starts_with("NOT MET  a ping rtt mean <5ms: 1") && said.lines().count() == 1, "{said}");
    // Colours where they are asked for, and nowhere else.
    let colour = place.run(&["run", "bad.toml", "-q", "--color", "always"]);
    assert!(text(&colour.stdout).starts_with("\x1b[1;31mNOT MET\x1b[0m  a ping"), "{}", text(&colour.stdout));
    place.put("typo.toml", &format!("duraton = \"1s\"\n{LINE}"));
    let typo = place.run(&["--color=always", "run", "typo.toml"]);
    assert!(
        text(&typo.stderr).starts_with("\x1b[1mtypo.toml:1:1\x1b[0m: an experiment has no key"),
        "{}",
        text(&typo.stderr)
    );
    assert!(!said.contains('\x1b'));
}

#[test]
fn diff_and_check_give_json() {
    let place = Place::new("diff");
    let script = |rate: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\ntc class add dev eth0 parent 1: classid 1:10 htb rate {rate}\n\
             tc qdisc add dev eth0 parent 1:10 fq_codel\n"
        )
    };
    place.put("old.sh", &script("6mbit"));
    place.put("new.sh", &script("7mbit"));
    let done = place.run(&["diff", "--dev", "eth0", "--json", "old.sh", "new.sh"]);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&json["dev"], &json["before"]), (&"eth0".into(), &"old.sh".into()));
    let first = &json["differences"][0];
    assert_eq!(first["what"], "class 1:10", "{json}");
    assert!(
        first["before"].as_str().unwrap().contains("6mbit")
            && first["after"].as_str().unwrap().contains("7mbit")
    );
    // An experiment's setups are checked.
    let setup = "tc qdisc add dev eth0 root handle 1: htb default 10\ntc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                 tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit";
    place.put("e.toml", &format!("[host.a]\neth0 = \"10.0.0.1/24\"\nsetup = \"\"\"\n{setup}\n\"\"\"\n"));
    let done = place.run(&["check", "e.toml", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((done.status.code(), &json["coverage"]["looked_at"]), (Some(1), &3.into()), "{json}");
    assert_eq!(place.run(&["check", "e.toml", "--json"]).stdout, done.stdout);
    let codes: Vec<&str> =
        json["findings"].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"PS101"), "{codes:?}");
    let said = text(&place.run(&["check", "e.toml"]).stdout);
    assert!(said.contains("e.toml:") && said.contains("warning PS101: a: "), "{said}");
    assert!(said.contains("3 of 3 network commands looked at"), "{said}");
}

/// Four datagrams, two each way.
fn both_ways() -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        out.extend(word.to_le_bytes());
    }
    for n in 0..4u32 {
        let (src, dst) = if n % 2 == 0 { (1u8, 2u8) } else { (2, 1) };
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x45, 0, 0, 128, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, src, 10, 0, 0, dst]);
        frame.extend([3, 232, 7, 208, 0, 108, 0, 0]);
        frame.extend([0; 100]);
        for word in [1, n * 1000, frame.len() as u32, frame.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(frame);
    }
    out
}

#[test]
fn a_capture_goes_by_the_device_that_is_meant() {
    let place = Place::new("replay");
    std::fs::write(place.0.join("both.pcap"), both_ways()).unwrap();
    place.put("s.sh", "tc qdisc add dev eth0 root tbf rate 1mbit burst 5k latency 50ms\n");
    place.put(
        "v.sh",
        "ip link add v0 type dummy\nip link set v0 up\ntc qdisc add dev v0 root pfifo limit 10\n",
    );
    let through =
        |script: &str, dev: &str| place.run(&["replay", "both.pcap", "--through", script, "--dev", dev]);
    let typo = through("s.sh", "wlan0");
    assert_eq!(typo.status.code(), Some(2));
    assert!(
        text(&typo.stderr).contains("--dev wlan0: s.sh sets up eth0, and says nothing of wlan0"),
        "{}",
        text(&typo.stderr)
    );
    let right = through("s.sh", "eth0");
    assert!(right.status.success());
    assert!(
        text(&right.stdout).contains("2 frames go against the first direction"),
        "{}",
        text(&right.stdout)
    );
    let made = through("v.sh", "v0");
    assert!(made.status.success() && !text(&made.stderr).contains("File exists"), "{}", text(&made.stderr));
}

#[test]
fn options_that_are_not_here_are_named_before_the_run() {
    let place = Place::new("options");
    for (run, said) in [
        ("iperf3 -c b --sctp", "iperf3: --sctp is not simulated: there is no SCTP"),
        ("ping -i -1 b", "ping: -i -1 is not simulated: write 0 or more"),
    ] {
        place.put("x.toml", &format!("{LINE}[[app]]\non = \"a\"\nrun = \"{run}\"\n"));
        let done = place.run(&["run", "x.toml"]);
        assert_eq!(done.status.code(), Some(2));
        assert!(text(&done.stderr).contains(said), "{}", text(&done.stderr));
    }
    assert!(!Path::new(&place.0).join("runs").exists());
}
