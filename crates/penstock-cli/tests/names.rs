//! Every verb about devices that are not called `eth0`, by the program itself.

use std::path::{Path, PathBuf};
use std::process::Command;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("penstock-cli-names-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }
    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }
    /// Status, standard output, standard error.
    #[track_caller]
    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
        let out = command
            .args(words)
            .current_dir(&self.0)
            .env("PENSTOCK_STATE", self.0.join("state"))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (out.status.code().unwrap_or(-1), text(&out.stdout), text(&out.stderr))
    }
    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let (status, out, err) = self.run(words);
        assert_eq!(status, 0, "{words:?}: {out}{err}");
        out
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_verb_takes_any_name() {
    for (at, name) in
        ["enp3s0", "br-lan", "eth0.100", "wan@if5", "pppoe-wan", "q#1'x"].into_iter().enumerate()
    {
        let place = Place::new(&format!("verbs{at}"));
        let shell = format!("'{}'", name.replace('\'', "'\\''"));
        let script = |rate: &str| {
            format!(
                "tc qdisc del dev {shell} root 2>/dev/null\ntc qdisc add dev {shell} root handle 1: htb default 10\n\
                 tc class add dev {shell} parent 1: classid 1:10 htb rate {rate}\n"
            )
        };
        place.put("s.sh", &script("1mbit"));
        place.put("t.sh", &script("2mbit"));
        let file = format!(
            "duration = \"200ms\"\n[host.a]\ndevice.\"{name}\" = \"192.0.2.1/24\"\nsetup = \"@s.sh\"\n[host.b]\nwlan0 = \"192.0.2.2/24\"\n\
             [[link]]\nends = [\"a:{name}\", \"b:wlan0\"]\nrate = \"10mbit\"\n\
             [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = \"640kbit\"\n\
             [[expect]]\nwhat = \"a {name} 1:10 packets\"\nvalue = \">5\"\n"
        );
        place.put("x.toml", &file);
        assert!(place.ok(&["run", "x.toml", "--out", "r"]).contains(&format!("a {name} 1:10")), "{name}");
        assert!(place.ok(&["report", "r"]).contains("report.html"));
        place.ok(&["compare", "r", "r"]);
        place.ok(&["check", "x.toml"]);
        place.ok(&["check", "s.sh"]);
        let packet = "udp 192.0.2.1:40000 > 192.0.2.2:53";
        let said = place.ok(&["explain", "s.sh", "--dev", name, "--packet", packet]);
        assert!(said.contains("class      1:10"), "{name}: {said}");
        let (_, said, err) = place.run(&["diff", "s.sh", "t.sh", "--dev", name]);
        assert!(said.contains("2mbit") || said.contains("2Mbit"), "{name}: {said}{err}");
        place.put("p.jsonl", "{\"t_us\": 0, \"len\": 500}\n{\"t_us\": 10, \"len\": 500}\n");
        let said = place.ok(&["replay", "p.jsonl", "--through", "s.sh", "--dev", name, "--rate", "10mbit"]);
        assert!(said.contains("1:10"), "{name}: {said}");
        // The kept machine, and what is imported of its listings.
        place.ok(&["ip", "link", "add", "name", name, "type", "dummy"]);
        place.ok(&["ip", "link", "set", "dev", name, "up"]);
        place.ok(&["ip", "addr", "add", "192.0.2.1/24", "dev", name]);
        place.ok(&[
            "tc", "qdisc", "add", "dev", name, "root", "handle", "5:", "tbf", "rate", "1mbit", "burst", "5k",
            "latency", "50ms",
        ]);
        place.put("qdiscs", &place.ok(&["tc", "-s", "-d", "qdisc", "show"]));
        place.put("addr", &place.ok(&["ip", "-d", "addr", "show"]));
        place.put("addr.json", &place.ok(&["ip", "-j", "-d", "addr", "show"]));
        for addr in ["addr.json", "addr"] {
            // In ip's text `wan@if5` is `wan`.
            if addr == "addr" && name.contains('@') {
                continue;
            }
            let fragment = place.ok(&["import", addr, "qdiscs", "--toml", "gw"]);
            assert!(fragment.contains("tbf rate 1Mbit"), "{name}: {fragment}");
            place.put("gw.toml", &fragment);
            place.ok(&["run", "gw.toml"]);
        }
    }
}

#[test]
fn what_no_device_can_be_called_is_refused_where_it_stands() {
    let place = Place::new("refused");
    place.put("x.toml", "[host.a]\n\"a/b\" = \"192.0.2.1/24\"\n[host.b]\n\"eth0:1\" = \"192.0.2.2/24\"\n");
    let (status, _, err) = place.run(&["run", "x.toml"]);
    assert_eq!(status, 2);
    assert!(
        err.contains("x.toml:2:1: [host.a]: a device cannot be called \"a/b\": a name has no \"/\""),
        "{err}"
    );
    assert!(err.contains("Error: argument \"a/b\" is wrong: \"name\" not a valid ifname"), "{err}");
    assert!(err.contains("x.toml:4:1: [host.b]: a device cannot be called \"eth0:1\""), "{err}");
    assert!(err.contains("RTNETLINK answers: Invalid argument"), "{err}");
    assert!(!Path::new(&place.0.join("runs")).exists());
}
