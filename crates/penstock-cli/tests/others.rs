//! Programs of other people that call tc and ip, unchanged, with ours found under those names: tcconfig from PyPI and Mininet's
//! links. Installed when the test runs, never kept in this project, and skipped aloud where they cannot be had. What the real tc
//! and kernel made of their commands is kept in `vectors/scripts`.

#[path = "../../penstock-shell/tests/material/mod.rs"]
mod material;

use material::{fetched, text};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Programs they call.
const TOOLS: &[&str] = &["ethtool", "ifconfig", "ip", "iptables", "lsmod", "modprobe", "sysctl", "tc"];

/// A virtual machine, and a folder of programs that act on it and note what they are called with.
struct Machine {
    folder: PathBuf,
}

impl Machine {
    fn new(name: &str, setup: &[&str]) -> Machine {
        let folder = std::env::temp_dir().join(format!("penstock-others-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let machine = Machine { folder };
        for sub in ["bin", "tools", "state"] {
            std::fs::create_dir_all(machine.folder.join(sub)).unwrap();
        }
        for tool in TOOLS {
            symlink(env!("CARGO_BIN_EXE_penstock"), machine.folder.join("tools").join(tool)).unwrap();
            let note = format!(
                "#!/bin/sh\necho \"{tool} $*\" >> '{0}/calls'\nexec '{0}/tools/{tool}' \"$@\"\n",
                machine.folder.display()
            );
            let path = machine.folder.join("bin").join(tool);
            std::fs::write(&path, note).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        for line in setup {
            let words: Vec<&str> = line.split(' ').collect();
            let out = machine.run(words[0], &words[1..], Path::new(""));
            assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
        }
        machine
    }

    /// Runs a program that finds ours by their names, and Python's modules in a folder.
    fn run(&self, program: &str, args: &[&str], modules: &Path) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/others");
        Command::new(program)
            .args(args)
            .current_dir(&self.folder)
            .env("PATH", format!("{}:{path}", self.folder.join("bin").display()))
            .env("PENSTOCK_STATE", self.folder.join("state"))
            .env_remove("PENSTOCK_KERNEL")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", format!("{}:{}", stand_in.display(), modules.display()))
            .output()
            .unwrap_or_else(|e| panic!("{program}: {e}"))
    }

    /// Holds the commands given so far, and the state they leave, against the recorded ones.
    fn check(&self, name: &str, devices: &[&str]) {
        let calls = text(self.folder.join("calls"));
        let changes = |l: &&str| l.starts_with("tc ") || l.starts_with("ip link ") && !l.contains(" show");
        let mut sequence: Vec<String> =
            calls.lines().filter(changes).map(|l| l.trim_end().to_owned()).collect();
        let what =
            ["qdisc show dev D", "class show dev D", "filter show dev D", "filter show dev D parent ffff:"];
        let shows = devices.iter().flat_map(|d| what.map(|w| format!("tc -d {}", w.replace('D', d))));
        let shows: Vec<String> = shows.collect();
        sequence.extend(shows.iter().cloned());
        if let Some(folder) = std::env::var_os("PENSTOCK_SEQUENCES").map(PathBuf::from) {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("{name}.cmds")), sequence.join("\n") + "\n").unwrap();
        }
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../vectors/scripts/{name}.jsonl"));
        type Step = (String, i32, String, String);
        let (_, _, steps): (u64, u64, Vec<Step>) = serde_json::from_str(&text(kept)).unwrap();
        let commands: Vec<&String> = steps.iter().map(|s| &s.0).collect();
        assert_eq!(
            sequence.iter().collect::<Vec<_>>(),
            commands,
            "{name}: other commands than those recorded"
        );
        for (show, (_, status, stdout, _)) in shows.iter().zip(&steps[steps.len() - shows.len()..]) {
            let words: Vec<&str> = show.split(' ').collect();
            let out = self.run(words[0], &words[1..], Path::new(""));
            let ours = (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned());
            assert_eq!(ours, (Some(*status), stdout.clone()), "{name}: {show}");
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

#[test]
fn mininet_2_3_0_links_with_every_option() {
    let unpack = ["sh", "-c", "dpkg-deb -x *.deb files"];
    let Some(folder) = fetched("debian-mininet", &[&["apt-get", "download", "-q", "mininet"], &unpack])
    else {
        return;
    };
    let modules = folder.join("files/usr/lib/python3/dist-packages");
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/others/links.py");
    let machine = Machine::new(
        "mininet",
        &["ip link add h1-eth0 type veth peer name s1-eth1", "ip link set h1-eth0 up"],
    );
    let out = machine.run("python3", &[&driver.to_string_lossy()], &modules);
    let said = said(&out);
    assert!(out.status.success(), "{said}");
    let complaints: Vec<&str> = said.lines().filter(|l| l.contains("rror") || l.contains("SAID")).collect();
    // Linux itself warns at 100 Mbit/s; Mininet takes every word of tc's for an error.
    assert!(complaints.iter().all(|l| l.contains("quantum of class 50001 is big")), "{complaints:?}");
    assert_eq!(said.matches(": parent").count(), 14, "{said}");
    machine.check("mininet", &["h1-eth0"]);
}

#[test]
fn tcconfig_sets_shows_and_deletes() {
    let install = ["python3", "-m", "pip", "install", "-q", "--target", "site", "tcconfig==0.30.1"];
    let Some(folder) = fetched("pypi-tcconfig", &[&install]) else { return };
    let modules = folder.join("site");
    let machine = Machine::new("tcconfig", &["ip link add wan0 type dummy", "ip link set wan0 up"]);
    let call = |program: &str, words: &str| {
        let main = format!("import sys; from tcconfig.{program} import main; sys.exit(main())");
        let words: Vec<&str> = words.split(' ').collect();
        machine.run("python3", &[&["-c", main.as_str()], &words[..]].concat(), &modules)
    };
    let set = |words: &str| {
        let out = call("tcset", words);
        assert!(out.status.success(), "tcset {words}: {}", said(&out));
    };
    set("wan0 --rate 1Mbps --delay 100ms --loss 0.1%");
    set("wan0 --add --delay 10ms --delay-distro 2ms --dst-network 10.0.0.0/8 --dst-port 8080");
    set("wan0 --add --rate 250Kbps --src-network 192.168.3.0/24 --duplicate 1% --corrupt 0.01% --iptables");
    set("wan0 --direction incoming --rate 500Kbps --network 192.168.0.0/24 --port 80");
    set("wan0 --change --rate 2Mbps --delay 50ms --dst-network 10.0.0.0/8 --dst-port 8080");
    let shown = call("tcshow", "wan0");
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let rule = |direction: &str, key: &str| shown["wan0"][direction][key].clone();
    let first = rule("outgoing", "protocol=ip");
    assert_eq!(
        (&first["rate"], &first["delay"], &first["loss"]),
        (&"1Mbps".into(), &"100ms".into(), &"0.1%".into()),
        "{shown}"
    );
    let changed = rule("outgoing", "dst_network=10.0.0.0/8, dst_port=8080, protocol=ip");
    assert_eq!((&changed["rate"], &changed["delay"]), (&"2Mbps".into(), &"50ms".into()), "{shown}");
    let incoming = rule("incoming", "dst_network=192.168.0.0/24, dst_port=80, protocol=ip");
    assert_eq!(incoming["rate"], "500Kbps", "{shown}");
    machine.check("tcconfig", &["wan0", "ifb5692"]);
    set("wan0 --overwrite --shaping-algo tbf --rate 3Mbps --loss 5%");
    let out = call("tcdel", "wan0 --all");
    assert!(out.status.success(), "{}", said(&out));
    let left = machine.run("tc", &["qdisc", "show", "dev", "wan0"], Path::new(""));
    assert_eq!(said(&left), "qdisc noqueue 0: root refcnt 2 \n");
    assert_eq!(
        call("tcshow", "wan0").stdout,
        b"{\n    \"wan0\": {\n        \"outgoing\": {},\n        \"incoming\": {}\n    }\n}\n"
    );
}
