//! A device is called what Linux lets it be called, wherever a name is written; what cannot be one is refused with its place and reason.

use penstock_check::{Settings, explain};
use penstock_lab::experiment::parse;
use penstock_lab::run::{self, Folder, Options, Outcome};
use penstock_lang::token::quoted as shell;
use penstock_lang::toml::{key, quoted as toml};
use penstock_machine::import::{Text, experiment};
use penstock_machine::script::Script;
use penstock_model::{Kernel, ifname};
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

fn outcome(text: &str) -> Result<Outcome, String> {
    let all = |d: Vec<penstock_model::Diagnostic>| d.iter().map(|d| format!("{d}\n")).collect::<String>();
    let parsed = parse(text, "names.toml").map_err(all)?;
    run::run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} }).map_err(all)
}

/// An experiment whose router's devices are `name` and another, `lo` has an address, and everything that can name a device does.
fn text(name: &str) -> String {
    let other = if name == "enp4s0" { "enp5s0" } else { "enp4s0" };
    let sh = shell(name);
    let lines = [
        "sysctl -w net.ipv4.ip_forward=1".to_owned(),
        format!("tc qdisc add dev {sh} root handle 1: htb default 10"),
        format!("tc class add dev {sh} parent 1: classid 1:10 htb rate 1mbit"),
        format!("ip addr add 203.0.113.1/32 dev {sh}"),
        format!("iptables -t mangle -A POSTROUTING -o {sh} -j MARK --set-mark 7"),
    ];
    let setup = lines.map(|l| toml(&l)).join(", ");
    let (key, end, far) = (key(name), toml(&format!("gw:{name}")), toml(&format!("a:{name}")));
    let show = toml(&format!("ip addr show dev {sh}"));
    let [class, phb] = ["1:10", "EF"].map(|what| toml(&format!("gw {name} {what} packets")));
    format!(
        r#"duration = "300ms"
[host.gw]
device.{key} = {{ address = ["192.0.2.1/24", "2001:db8::1/64"], mtu = 1400 }}
{other} = "198.51.100.1/24"
lo = "203.0.113.9/32"
setup = [{setup}]
[host.a]
device.{key} = "192.0.2.2/24"
via = "192.0.2.1"
[host.b]
{other} = "198.51.100.2/24"
via = "198.51.100.1"
[[link]]
ends = [{end}, {far}]
rate = "10mbit"
[[link]]
ends = ["gw:{other}", "b:{other}"]
rate = "10mbit"
[[flow]]
name = "f"
from = "b"
to = "a"
udp = true
load = "640kbit"
dscp = "EF"
[[app]]
on = "gw"
run = {show}
at = "250ms"
[[meter]]
on = {end}
kind = "srtcm"
cir = "1mbit"
cbs = "10k"
ebs = "10k"
[[expect]]
what = {class}
value = ">5"
[[expect]]
what = {phb}
value = ">5"
"#
    )
}

/// A folder that goes when the test is over.
struct Place(PathBuf);

impl Place {
    fn new(what: &str) -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("penstock-names-{what}-{}-{count}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Every door of one name; what went wrong, with the text.
fn works(name: &str) {
    let text = text(name);
    let outcome = outcome(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for expect in &outcome.record.expects {
        assert!(expect.ok, "{}: {:?}\n{text}", expect.what, expect.measured);
    }
    let devices: Vec<(&str, &str)> =
        outcome.record.devices.iter().map(|d| (d.host.as_str(), d.dev.as_str())).collect();
    assert_eq!((devices[0], devices[2]), (("gw", name), ("a", name)));
    assert_eq!(outcome.record.devices[0].qdiscs[0].kind, "htb");
    assert_eq!(outcome.record.rig.hosts[0].devices[0].addresses[..2], ["192.0.2.1/24", "203.0.113.1/32"]);
    assert!(outcome.record.rig.hosts[0].devices[0].addresses.contains(&"2001:db8::1/64".to_owned()));
    // Indices follow the file: lo is 1.
    assert!(outcome.outputs[0].starts_with(&format!("2: {name}: <")), "{}", outcome.outputs[0]);
    assert!(!outcome.series.points("gw", name, "throughput_bit_s").is_empty());
    assert!(!outcome.series.points("gw", &format!("{name} class 1:10"), "throughput_bit_s").is_empty());
    let (_, dev, shown) = &outcome.tc[0];
    assert!(dev == name && shown.contains("qdisc htb 1: "), "{shown}");
    // The folder is written and read.
    let place = Place::new("folder");
    outcome.write(&place.0).unwrap();
    let read = Folder::read(&place.0).unwrap();
    assert_eq!((read.record, read.tc), (outcome.record, outcome.tc));
    let report =
        std::fs::read_to_string(run::write_report(&Folder::read(&place.0).unwrap()).unwrap()).unwrap();
    let escaped = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#39;")];
    let escaped = escaped.iter().fold(name.to_owned(), |text, (c, word)| text.replace(*c, word));
    assert!(report.contains(&escaped), "{escaped}");
    explained(name);
    imported(name);
}

/// `check`, `explain` and `diff` of a script about the device.
fn explained(name: &str) {
    let script = |rate: &str| Script {
        text: format!(
            "tc qdisc del dev {0} root 2>/dev/null\ntc qdisc add dev {0} root handle 1: htb default 20\n\
             tc class add dev {0} parent 1: classid 1:10 htb rate {rate}\n\
             tc class add dev {0} parent 1: classid 1:20 htb rate 1mbit\n\
             tc filter add dev {0} parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:10\n",
            shell(name)
        ),
        name: "s.sh".to_owned(),
        ..Script::default()
    };
    let settings = Settings { dev: Some(name.to_owned()), ..Settings::default() };
    let facts = penstock_check::facts(&script("1mbit"), &settings);
    let wrong: Vec<String> = penstock_check::findings(&facts).iter().map(|f| format!("{f:?}")).collect();
    assert_eq!(wrong, [""; 0], "{name}");
    let packet = explain::Probe::parse(&format!("udp 192.0.2.7:40000 > 198.51.100.2:53 in {name}")).unwrap();
    let said = explain::explain(&facts, name, &packet).unwrap();
    assert!(said.place().contains("1:10"), "{name}: {}", said.text());
    assert!(explain::partition(&facts, name).unwrap().text().contains("1:10"), "{name}");
    let other = penstock_check::facts(&script("2mbit"), &settings);
    assert!(explain::diff(&facts, &facts, name).is_ok() && explain::diff(&facts, &other, name).is_ok());
}

/// What ip and tc show of such a device is imported, and runs.
fn imported(name: &str) {
    let links = format!(
        "2: {name}@if9: <BROADCAST,UP> mtu 1500 qdisc htb state UP group default qlen 1000\n    inet 192.0.2.1/24 scope global {name}\n\
         3: {name}@if9: <BROADCAST> mtu 1500 qdisc noop state DOWN group default qlen 1000\n"
    );
    let qdiscs = format!("qdisc tbf 1: dev {name} root refcnt 2 rate 1Mbit burst 5Kb lat 50ms\n");
    let routes = format!("default via 192.0.2.9 dev {name} proto static\n");
    let texts = [links, qdiscs, routes].map(|text| Text { name: "shown".to_owned(), text, dev: None });
    let made = experiment("gw", &texts, Kernel::V6_12).unwrap();
    let whole = format!("duration = \"10ms\"\n{}", made.text);
    let outcome = outcome(&whole).unwrap_or_else(|e| panic!("{e}\n{whole}"));
    assert!(outcome.record.devices.iter().any(|d| d.dev == name && d.qdiscs[0].kind == "tbf"), "{whole}");
    assert!(made.text.contains("ip route add default via 192.0.2.9"), "{whole}");
}

#[test]
fn names_of_machines() {
    for name in [
        "enp3s0",
        "wlan0",
        "ppp0",
        "br-lan",
        "eth0.100",
        "wan",
        "wlp2s0",
        "bond0.30",
        "pppoe-wan",
        "vmbr0",
        "tap100i0",
        "veth1234@if5",
        "docker0",
        "wg0",
        "tun_srv",
        "a",
        "a23456789012345",
        "if5",
        "class",
        "root",
        "dev",
        "help",
        "flow",
        "via",
        "setup",
        "-x",
        "--",
        "#1",
        "\"",
        "'",
        "a'b\"c",
        "\\",
        "$x",
        "`id`",
        "*",
        "~",
        "!",
        ";|&",
        "<b>",
        "[0]",
        "{}",
        "(",
        "=",
        "a=b",
        ",",
        "?",
        "...",
        "é",
        "日本語",
        "processor",
        "eth0+",
        "^",
        "@",
        "a@",
        "@b",
    ] {
        works(name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_name(name in "[!-~éµ日]{1,15}") {
        if ifname::check(&name).is_ok() && name != "lo" {
            works(&name);
        }
    }

    /// A name that Linux refuses is refused where it stands.
    #[test]
    fn no_name(start in "[a-z]{0,3}", bad in prop_oneof!["[/: %\t\u{b}\u{a0}]", "[a-z]{16,20}"], end in "[a-z]{0,3}") {
        let name = format!("{start}{bad}{end}");
        let fault = ifname::check(&name).unwrap_err();
        let text = format!("[host.a]\n  {} = \"192.0.2.1/24\"\n", key(&name));
        let said = parse(&text, "x.toml").unwrap_err();
        prop_assert_eq!((said.len(), said[0].line, said[0].column), (1, 2, 3), "{}", said[0]);
        let (message, help) = (&said[0].message, &said[0].help);
        prop_assert!(message.ends_with(&format!("cannot be called \"{name}\": {fault}")), "{}", message);
        prop_assert!(help.ends_with(&fault.in_ips_words(&name)), "{}", help);
    }
}

/// The same file names of two devices are told apart, and both are read back.
#[test]
fn files_of_devices_do_not_meet() {
    let text = "duration = \"10ms\"\n[host.a]\nb-c = \"192.0.2.1/25\"\n\
                setup = [\"tc qdisc add dev b-c root handle 6: pfifo limit 6\"]\n[host.a-b]\nc = \"192.0.2.129/25\"\n\
                setup = [\"tc qdisc add dev c root handle 7: pfifo limit 7\"]\n";
    let outcome = outcome(text).unwrap();
    let place = Place::new("meet");
    outcome.write(&place.0).unwrap();
    outcome.write(&place.0).unwrap();
    let read = Folder::read(&place.0).unwrap();
    assert_eq!(read.tc, outcome.tc);
    assert!(place.0.join("tc/a-b-c.txt").exists() && place.0.join("tc/a-b-c-2.txt").exists());
    assert!(read.tc[1].2.contains("pfifo 7:"), "{}", read.tc[1].2);
}

/// ip's own form, a key that is nearly one, a table that TOML makes of a dot.
#[test]
fn forms_of_names() {
    let ok = "duration = \"10ms\"\n[host.a]\n\"wan@if5\" = \"192.0.2.1/24\"\nsetup = [\"tc qdisc add dev wan root sfq\"]\n[host.b]\nlan1 = \"192.0.2.2/24\"\n\
              [[link]]\nends = [\"a:wan@if5\", \"b:lan1@if3\"]\n";
    let devices = outcome(ok).unwrap().record.devices;
    assert_eq!((devices[0].dev.as_str(), devices[1].dev.as_str()), ("wan", "lan1"));
    for (line, message, help) in [
        (
            "\"eth0.100@eth0\" = \"192.0.2.1/24\"",
            "a device on top of eth0, which carries no packets",
            "\"eth0.100\" = …",
        ),
        ("\"sit0@NONE\" = []", "a tunnel, which carries no packets", "sit0 = …"),
        ("eth0.100 = \"192.0.2.1/24\"", "eth0 has no key \"100\"", "\"eth0.100\" = \"10.0.0.1/24\""),
        ("stup = \"x\"", "has no key \"stup\"", "did you mean \"setup\"?"),
        ("vie = \"192.0.2.1\"", "has no key \"vie\"", "did you mean \"via\"?"),
        ("wan = \"dhcp\"", "has no key \"wan\"", "wan = \"10.0.0.1/24\""),
        ("wan = 5", "has no key \"wan\"", "wan = \"10.0.0.1/24\""),
        ("wan = \"192.0.2.1\"", "wan: \"192.0.2.1\" is not an address", "wan = \"192.0.2.1/24\""),
        ("wan = \"2001:db8::1\"", "is not an address", "wan = \"2001:db8::1/64\""),
        ("wan = [\"2001:db8::1/129\"]", "has no key \"wan\"", "wan = \"10.0.0.1/24\""),
        ("wan = []\n\"wan@if2\" = []", "the device \"wan\" twice", "as a list"),
        (
            "a = \"2001:db8::1/64\"\nb = \"2001:db8::1/64\"",
            "has the address 2001:db8::1, and so has",
            "its own",
        ),
    ] {
        let said = parse(&format!("[host.x]\n{line}\n"), "x.toml").unwrap_err();
        assert_eq!(said.len(), 1, "{line}: {}", said[0]);
        assert!(said[0].message.contains(message) && said[0].help.contains(help), "{line}: {}", said[0]);
    }
    let lo =
        "[host.a]\nlo = \"192.0.2.1/32\"\n[host.b]\neth0 = []\n[[link]]\nends = [\"a:lo\", \"b:eth0\"]\n";
    assert!(parse(lo, "x.toml").unwrap_err()[0].message.contains("lo is not an end of a link"));
}

/// Devices that carry no packets here are refused by name before the run; down and alone they carry none on Linux either.
#[test]
fn devices_without_packets_are_refused() {
    let run = |setup: &str| {
        outcome(&format!(
            "duration = \"10ms\"\n[host.gw]\nenp3s0 = \"192.0.2.1/24\"\nsetup = '''\n{setup}\n'''\n"
        ))
    };
    for (setup, said) in [
        (
            "ip link add br-lan type bridge mcast_querier 1\nip link set br-lan up",
            "gw br-lan: a bridge with \"mcast_querier 1\" can be set up",
        ),
        (
            "ip link add link enp3s0 name m0 type macvlan mode source\nip link set m0 up",
            "gw m0: a macvlan with",
        ),
        (
            "ip link add vx0 type vxlan dstport 4789 dev enp3s0 external\nip link set vx0 up",
            "gw vx0: a vxlan with \"external\" can be set up",
        ),
        // These no command makes at all.
        ("ip link add x0 type xfrm dev enp3s0 if_id 7", "ip link add … type xfrm: not simulated"),
        ("ip link add g6 type ip6gre remote fd00::9", "ip link add … type ip6gre: not simulated"),
        ("ip link add gre1 type gre external", "are not known here"),
    ] {
        let refused = run(setup).err().unwrap_or_else(|| panic!("{setup}: ran"));
        assert!(refused.contains(said), "{setup}: {refused}");
    }
    for setup in [
        "ip link add br-lan type bridge",
        "ip link add br-lan type bridge\nip link set br-lan up",
        "ip link add ifb7 type ifb\nip link set ifb7 up",
        "ip link add d0 type dummy\nip link set d0 up",
        "ip link add gre1 type gre remote 192.0.2.9\nip link set gre1 up",
        "ip link add v0 type veth peer name v1\nip link set v0 up\nip link del v0",
    ] {
        run(setup).unwrap_or_else(|e| panic!("{setup}: {e}"));
    }
}
