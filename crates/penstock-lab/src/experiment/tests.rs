//! What files say, and what is said about wrong ones.

use super::*;
use penstock_model::{ClockSource, Kernel, OldClock, OldRelease, PschedClock, Rate};
use proptest::prelude::*;

fn loader(path: &str) -> Result<String, String> {
    match path {
        "lab/shaper.sh" => Ok("tc qdisc add dev eth0 root handle 1: htb default 10\n".into()),
        "lab/r1.cfg" => Ok("interface FastEthernet0/0\nip address 10.3.31.77 255.255.255.0\n".into()),
        "lab/base.toml" => {
            Ok("duration = \"5s\"\nseed = 3\n[host.u4]\neth0 = \"10.0.0.1/24\"\nsetup = [\"a\"]\n".into())
        }
        "lab/loop.toml" => Ok("base = \"loop.toml\"\n".into()),
        "lab/broken.toml" => Ok("duration = 5\n".into()),
        _ => Err("there is no such file".into()),
    }
}

fn read(text: &str) -> Result<Experiment, Vec<Diagnostic>> {
    parse_with(text, "lab/x.toml", &loader)
}

const USERS: &str = r#"
title    = "Three users behind one uplink"
duration = "12s"
seed     = 7

[host.u1]
eth0 = "10.3.31.88/24"
via  = "10.3.31.77"

[host.u4]
kernel = "2.6.35"
eth0   = "10.3.31.77/24"
eth1   = { address = "10.3.34.22/24", mtu = 1400, txqueuelen = 100 }
setup  = ["sysctl -w net.ipv4.ip_forward=1", "@shaper.sh"]
cost   = { packet = "20us", spread = "5us", byte = "0.8ns" }

[host.u5]
eth0 = "10.3.34.11/24"
via  = "10.3.34.22"
os   = "windows-xp"
files = { "video.wmv" = "30mb" }

[[link]]
ends  = ["u5:eth0", { end = "u4:eth1", rate = "10mbit" }]
rate  = "100mbit"
delay = "0.2ms"
loss  = "0.1%"

[[app]]
on  = "u1"
run = "iperf -s"

[[app]]
on  = "u5"
run = "iperf -c 10.3.31.88 -t 10 -i 1"
at  = ["1s", "11.5s"]

[[app]]
on    = "u5"
run   = "sudo ping -c 1 10.3.31.88"
after = "u5 iperf"
at    = "10ms"

[[flow]]
from = "u1"
to   = "u5"
count = 9
tcp  = { cc = "newreno", ecn = true, mss = 960 }
load = "greedy"
at   = { from = "0s", to = "1s" }

[[flow]]
from = "u5"
to   = "u1"
group = "voice"
udp  = true
load = { size = 160, gap = "20ms" }

[[expect]]
what  = "u5 iperf throughput"
value = "5.5mbit..6.0mbit"

[[expect]]
what  = "u4 eth0 1:10 drops"
value = "<10"

[[expect]]
what  = "voice owd p95"
value = "< 30ms"
"#;

#[test]
fn old_kernels_have_a_clock_of_their_own() {
    let file = |keys: &str| format!("[host.r]\neth0 = \"10.0.0.1/24\"\n{keys}\n");
    let clock = |keys: &str| read(&file(keys)).unwrap_or_else(|d| panic!("{}", d[0])).hosts[0].clock;
    assert_eq!(clock("kernel = \"2.6.35\""), PschedClock::Ktime);
    let old = OldClock::new(OldRelease::V2_2);
    assert_eq!(clock("kernel = \"2.2\""), PschedClock::Old(old));
    let fine = OldClock { source: ClockSource::Cpu, hz: 10_000, mhz: 400, ..old };
    assert_eq!(clock("kernel = \"2.2\"\nclock = \"cpu\"\nhz = 10000\nmhz = 400"), PschedClock::Old(fine));
    for (keys, want) in [
        ("hz = 100", "[host.r]: hz goes with kernel 2.2 or 2.4"),
        ("kernel = \"2.4\"\nhz = 1", "hz is out of its range"),
        ("kernel = \"2.4\"\nclock = \"cpus\"", "clock: \"cpus\" is unknown"),
    ] {
        assert_eq!(read(&file(keys)).unwrap_err()[0].message, want);
    }
}

#[test]
fn the_designs_example_reads() {
    let e = read(USERS).unwrap_or_else(|d| panic!("{}", d[0]));
    assert_eq!(
        (e.title.as_str(), e.seed, e.duration),
        ("Three users behind one uplink", 7, Span::from_secs(12))
    );
    let names: Vec<&str> = e.hosts.iter().map(|h| h.name.as_str()).collect();
    assert_eq!(names, ["u1", "u4", "u5"]);
    let u4 = &e.hosts[1];
    assert_eq!(
        (u4.kernel, u4.devices[1].mtu, u4.devices[1].txqueuelen),
        (Kernel::V2_6_35, Some(1400), Some(100))
    );
    assert_eq!((u4.setup[0].line, u4.setup[1].file.as_str()), (14, "lab/shaper.sh"));
    let cost = u4.cost.as_ref().unwrap();
    assert_eq!((&cost.packet, cost.byte_ps), (&Dist::Uniform(Span::from_us(15), Span::from_us(25)), 800));
    assert_eq!((e.hosts[2].os, e.hosts[2].files[0].1), (Os::WindowsXp, 30 << 20));
    let link = &e.links[0];
    assert_eq!((link.rate, link.ends[1].rate), (Some(rate("100mbit")), Some(rate("10mbit"))));
    assert_eq!((link.loss_ppb, link.delay, link.half_duplex), (1_000_000, Span::from_us(200), false));
    let apps: Vec<&str> = e.apps.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(apps, ["u1 iperf", "u5 iperf", "u5 iperf 2", "u5 ping"]);
    assert_eq!((e.apps[2].at, e.apps[3].after), (Span::from_ms(11_500), Some(1)));
    assert_eq!(
        (e.flows[0].count, e.flows[0].at.1, e.flows[1].name.as_str()),
        (9, Span::from_secs(1), "u5-u1")
    );
    assert_eq!(e.expects[0].range, Bounds { low: 5.5e6, high: 6e6, above: false, below: false });
    let queue = Subject::Queue { host: "u4".into(), dev: "eth0".into(), id: Some("1:10".into()) };
    assert_eq!(e.expects[1].measure, Measure { subject: queue, figure: "drops", part: "" });
    assert_eq!(e.expects[2].measure.subject, Subject::Group("voice".into()));
    assert!(e.expects[2].range.hold(29.9) && !e.expects[2].range.hold(30.0));
}

fn rate(text: &str) -> Rate {
    Rate::parse(text).unwrap()
}

#[test]
fn a_file_stands_on_its_base() {
    let e =
        read("base = \"base.toml\"\nseed = 4\n[host.u4]\nsetup = \"b\"\neth1 = \"10.0.1.1/24\"\n").unwrap();
    assert_eq!((e.duration, e.seed, e.hosts.len(), e.hosts[0].devices.len()), (Span::from_secs(5), 4, 1, 2));
    let setup: Vec<&str> = e.hosts[0].setup.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(setup, ["a", "b"]);
    let files: Vec<&str> = e.sources.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(files, ["lab/x.toml", "lab/base.toml"]);
}

#[test]
fn a_cisco_router_has_the_interfaces_of_its_configuration() {
    let text = "[host.r1]\ncisco = \"@r1.cfg\"\n[host.u1]\neth0 = \"10.3.31.88/24\"\n[[link]]\nends = [\"u1:eth0\", \"r1:FastEthernet0/0\"]\n";
    assert_eq!(read(text).unwrap().hosts[0].devices[0].name, "FastEthernet0/0");
}

#[test]
fn samples_are_round_and_not_too_many() {
    let sample = |d: &str| read(&format!("duration = \"{d}\"\n[host.a]\n")).unwrap().sample();
    assert_eq!(sample("12s"), Span::from_ms(50));
    assert_eq!(sample("10s"), Span::from_ms(50));
    assert_eq!(sample("132s"), Span::from_secs(1));
    assert_eq!(sample("1ms"), Span::from_us(100));
}

/// Two hosts and a link, for cases that need some.
const TWO: &str = "[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\n";

/// Each case: a text ([`TWO`] follows where it ends with `+`, goes before where it begins with `-`) and what is said.
#[test]
fn what_is_wrong_is_said_with_its_place() {
    let cases: &[(&str, &str)] = &[
        // Not TOML, not there, not a host.
        ("title = \n", "1:9: string values must be quoted, expected literal string"),
        ("", "1:1: there is no host | add e.g. [host.u1] with eth0 = \"10.0.0.1/24\""),
        // Heads.
        ("durration = \"5s\"\n+", "1:1: an experiment has no key \"durration\" | did you mean \"duration\"?"),
        ("time = \"5s\"\n+", "1:1: an experiment has no key \"time\" | did you mean \"duration\"?"),
        (
            "colour = 1\n+",
            "1:1: an experiment has no key \"colour\" | there are base, title, about, duration, warmup, seed, sample, offloads, kernel, setup_may_fail, host, link, app, flow, meter, expect",
        ),
        (
            "duration = 12\n+",
            "1:12: duration: \"12\" is no time | it has no unit: write duration = \"12s\" or \"12ms\"",
        ),
        (
            "duration = \"12 s\"\n+",
            "1:12: duration: \"12 s\" is no time | write a number and s, ms, us or ns: duration = \"50ms\"",
        ),
        (
            "duration = \"-1s\"\n+",
            "1:12: duration: \"-1s\" is no time | write a number and s, ms, us or ns: duration = \"50ms\"",
        ),
        ("duration = \"0s\"\n+", "1:12: duration is out of its range | write more than 0s, at most 86400s"),
        ("duration = true\n+", "1:12: duration is true or false, not text | write it in quotes"),
        (
            "seed = \"seven\"\n+",
            "1:8: seed is a string, not a whole number | write a whole number from 0 to 9223372036854775806",
        ),
        (
            "seed = -1\n+",
            "1:8: seed is out of its range | write a whole number from 0 to 9223372036854775806",
        ),
        ("sample = \"1us\"\n+", "1:10: sample is out of its range | write 100us or more"),
        ("title = 5\n+", "1:9: title is a number, not text | write title = \"5\""),
        (
            "kernel = \"2.0\"\n+",
            "1:10: unknown kernel profile \"2.0\" | there are \"2.2\", \"2.4\", \"2.6.35\" and \"6.12\"",
        ),
        (
            "setup_may_fail = \"yes\"\n+",
            "1:18: setup_may_fail is a string, not true or false | write setup_may_fail = true",
        ),
        ("base = \"none.toml\"\n+", "1:8: base: cannot read none.toml: there is no such file | "),
        ("base = \"loop.toml\"\n+", "1:8: base: too many files stand on one another | does one name itself?"),
        (
            "base = \"broken.toml\"\n+",
            "1:12: duration: \"5\" is no time | it has no unit: write duration = \"5s\" or \"5ms\"",
        ),
        // Hosts.
        ("host = 5\n", "1:8: host is not a table | write [host.u1] and its keys below"),
        ("[host]\na = 5\n", "2:5: [host.a] is a number, not a table | write { … }"),
        (
            "[host.\"a:b\"]\n",
            "1:7: a host cannot be called \"a:b\" | use letters, digits, \"-\", \"_\" and \".\", at most 63",
        ),
        (
            "[host.a]\ngateway = \"10.0.0.1\"\n",
            "2:1: [host.a] has no key \"gateway\" | did you mean \"via\"?",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.1\"\n",
            "2:8: eth0: \"10.0.0.1\" is no address with a prefix length | add the prefix length: eth0 = \"10.0.0.1/24\"",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.300/24\"\n",
            "2:8: eth0: \"10.0.0.300/24\" is no address with a prefix length | write eth0 = \"10.0.0.1/24\"",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.1/33\"\n",
            "2:8: eth0: \"10.0.0.1/33\" is no address with a prefix length | write eth0 = \"10.0.0.1/24\"",
        ),
        (
            "[host.a]\neth0 = { adress = \"10.0.0.1/24\" }\n",
            "2:10: eth0 has no key \"adress\" | did you mean \"address\"?",
        ),
        (
            "[host.a]\neth0 = { mtu = 5 }\n",
            "2:16: mtu is out of its range | write a whole number from 68 to 65535",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.1/24\"\nvia = \"10.0.0.2/24\"\n",
            "3:7: via: \"10.0.0.2/24\" is no IPv4 address | no prefix length here: via = \"10.0.0.2\"",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.1/24\"\nvia = \"10.0.1.2\"\n",
            "3:7: via: a has no device in 10.0.1.2's network | its networks are those of eth0 10.0.0.1/24",
        ),
        (
            "[host.a]\nvia = \"10.0.1.2\"\n",
            "2:7: via: a has no device in 10.0.1.2's network | give it a device with an address in the gateway's network",
        ),
        (
            "[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.1/24\"\n",
            "4:1: b:eth0 has the address 10.0.0.1, and so has a:eth0 | give each its own",
        ),
        (
            "[host.a]\nsetup = [\"@none.sh\"]\n",
            "2:10: setup: cannot read none.sh: there is no such file | the path is read from the folder of lab/x.toml",
        ),
        ("[host.a]\nsetup = 5\n", "2:9: setup is a number, not text | write setup = \"5\""),
        (
            "[host.a]\ncisco = \"@r1.cfg\"\neth0 = \"10.0.0.1/24\"\n",
            "3:1: [host.a] has \"cisco\" and \"eth0\" | a Cisco router's interfaces stand in its configuration",
        ),
        (
            "[host.a]\ncisco = \"@r1.cfg\"\nsetup = \"x\"\n",
            "3:9: [host.a] has \"cisco\" and \"setup\" | everything stands in the configuration",
        ),
        (
            "[host.a]\nos = \"windowsxp\"\n",
            "2:6: os: \"windowsxp\" is unknown | did you mean \"windows-xp\"?",
        ),
        ("[host.a]\nos = { a = 1 }\n", "2:6: os is a table, not text | write it in quotes"),
        (
            "[host.a]\ncost = \"quick\"\n",
            "2:8: cost: \"quick\" is no time | write a number and s, ms, us or ns: cost = \"50ms\"",
        ),
        (
            "[host.a]\ncost = { spread = \"1us\" }\n",
            "2:8: cost has neither \"packet\" nor \"byte\" | add e.g. packet = \"20us\"",
        ),
        (
            "[host.a]\ncost = { packet = { from = \"2us\", to = \"1us\" } }\n",
            "2:40: to lies before from | write the lesser one first",
        ),
        ("[host.a]\ncost = { packet = [] }\n", "2:19: packet is an empty list | write at least one time"),
        (
            "[host.a]\ncost = { byte = \"1s\" }\n",
            "2:17: byte: \"1s\" is no time for a byte | write byte = \"0.8ns\"",
        ),
        (
            "[host.a]\nfiles = { \"a b\" = 5 }\n",
            "2:11: a file cannot be called \"a b\" | leave out blanks and colons",
        ),
        (
            "[host.a]\nfiles = { a = \"5 apples\" }\n",
            "2:15: files: \"5 apples\" is no size | write bytes, or a number and k, m, g: files = \"15k\"",
        ),
        // Links.
        (
            "link = 5\n[host.a]\n",
            "1:8: link is not a list of tables | write [[link]] with two brackets and below it ends = [\"a:eth0\", \"b:eth0\"]",
        ),
        ("[[link]]\n+", "1:1: [[link]] has no \"ends\" | add e.g. ends = [\"a:eth0\", \"b:eth0\"]"),
        (
            "-[[link]]\nends = [\"a:eth0\"]\n",
            "8:8: a link has two ends or more | write ends = [\"a:eth0\", \"b:eth0\"]",
        ),
        (
            "[[link]]\nends = [\"a\", \"b:eth1\"]\n[host.a]\n[host.b]\neth1 = \"10.0.0.2/24\"\n",
            "2:9: \"a\" is no end of a link | write \"a:eth0\"",
        ),
        (
            "[[link]]\nends = [\"aa:eth0\", \"b:eth1\"]\n[host.ab]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth1 = \"10.0.0.2/24\"\n",
            "2:9: there is no host \"aa\" | did you mean \"ab\"?",
        ),
        (
            "[[link]]\nends = [\"a:eth1\", \"b:eth1\"]\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth1 = \"10.0.0.2/24\"\n",
            "2:9: a has no device \"eth1\" | did you mean \"a:eth0\"?",
        ),
        (
            "-rate = \"10mbits\"\n",
            "7:8: rate: \"10mbits\" is no rate | write a number and bit, kbit, mbit, gbit (or kbps … for bytes): rate = \"10mbit\"",
        ),
        (
            "-rate = 100\n",
            "7:8: rate: \"100\" is no rate | it has no unit: write rate = \"100mbit\" or \"100kbit\"",
        ),
        (
            "-rate = \"0mbit\"\n",
            "7:8: rate: \"0mbit\" is no rate | the least is 8bit, one byte a second; the greatest fits 64 bits",
        ),
        ("-latency = \"5ms\"\n", "7:1: [[link]] has no key \"latency\" | did you mean \"delay\"?"),
        ("-loss = \"200%\"\n", "7:8: loss: \"200%\" is no chance | write 0% to 100%: loss = \"1%\""),
        ("-loss = \"often\"\n", "7:8: loss: \"often\" is no chance | write 0% to 100%: loss = \"1%\""),
        (
            "-framing = \"atm\"\n",
            "7:11: framing: \"atm\" is unknown | write \"ethernet\", \"none\" or \"ip\"",
        ),
        (
            "-[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\n",
            "8:9: a:eth0 is an end of a link already | put all ends of a shared segment into one [[link]]",
        ),
        // Apps.
        ("-[[app]]\non = \"a\"\n", "7:1: [[app]] has no \"run\" | add e.g. run = \"ping 10.0.0.2\""),
        (
            "-[[app]]\non = \"c\"\nrun = \"ping 10.0.0.2\"\n",
            "8:6: there is no host \"c\" | did you mean \"a\"?",
        ),
        (
            "-[[app]]\non = \"a\"\ncommand = \"ping 10.0.0.2\"\nrun = \"x\"\n",
            "9:1: [[app]] has no key \"command\" | did you mean \"run\"?",
        ),
        ("-[[app]]\non = \"a\"\nrun = \"  \"\n", "9:7: run is empty | write run = \"ping 10.0.0.2\""),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nat = \"10s\"\n",
            "8:6: this app starts at 10s, but the run ends then or before | duration is 10s",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nat = []\n",
            "10:6: at is an empty list | write at = \"1s\" or at = [\"1s\", \"20s\"]",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nafter = \"a y\"\n",
            "10:9: after: there is no app \"a y\" | did you mean \"a x\"?",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nafter = \"a x\"\n",
            "10:9: this app waits for itself | name another one",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nafter = \"a y\"\n[[app]]\non = \"a\"\nrun = \"y\"\nafter = \"a x\"\n",
            "8:6: these apps wait for each other | let one of them start without \"after\"",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"x\"\nname = \"u\"\n[[app]]\non = \"a\"\nrun = \"x\"\nname = \"u\"\n",
            "12:6: there is an app \"u\" already | give it another name",
        ),
        (
            "-[app]\non = \"a\"\n",
            "7:1: app is not a list of tables | write [[app]] with two brackets and below it on = \"u1\", run = \"ping 10.0.0.2\"",
        ),
        // Flows.
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\n",
            "7:1: [[flow]] has no \"load\" | add e.g. load = \"greedy\"",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"gready\"\n",
            "10:8: load: \"gready\" is unknown | did you mean \"greedy\"?",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"a\"\nload = \"greedy\"\n",
            "7:1: a flow goes from one host to another | name two hosts",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\nudp = true\n",
            "10:8: datagrams need a pace | write load = \"1mbit\" or { size = 160, gap = \"20ms\" }",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = { size = 160 }\n",
            "10:8: load is none of the forms there are",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\ntcp = { cc = \"cubik\" }\n",
            "11:14: cc: no congestion control is called \"cubik\" | did you mean \"cubic\"?",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\ncount = 0\n",
            "11:9: count is out of its range | write a whole number from 1 to 1000000",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\nat = { from = \"2s\", to = \"1s\" }\n",
            "11:26: to lies before from | write the lesser one first",
        ),
        (
            "-[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\nat = \"2s\"\nuntil = \"1s\"\n",
            "12:9: until does not lie after at | write a later time",
        ),
        // Expectations.
        (
            "-[[expect]]\nwhat = \"a ping rtt\"\nvalue = \"<1ms\"\n",
            "8:8: what: \"a ping rtt\" begins with no app, flow, group or device | begin with a device: \"u4 eth0 drops\"",
        ),
        (
            "-[[expect]]\nwhat = \"a eth0 dropps\"\nvalue = \"0\"\n",
            "8:8: what: there is no figure \"dropps\" | did you mean \"drops\"?",
        ),
        (
            "-[[expect]]\nwhat = \"a eth0 1:10 backlog\"\nvalue = \"0\"\n",
            "8:8: what: there is no figure \"backlog\" | there are bytes, packets, drops, lended, borrowed",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"ping 10.0.0.2\"\n[[expect]]\nwhat = \"a ping\"\nvalue = \"0\"\n",
            "11:8: what: \"a ping\" names no figure",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"ping 10.0.0.2\"\n[[expect]]\nwhat = \"a ping rtt p98\"\nvalue = \"0\"\n",
            "11:8: what: rtt has no \"p98\" | there are min, mean, p50, p95, p99, max",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"ping 10.0.0.2\"\n[[expect]]\nwhat = \"a ping rtt\"\nvalue = \"5..6\"\n",
            "12:9: value: \"5..6\" is no range of numbers | write \"1ms..2ms\", \"<1ms\", \">1ms\" or \"1ms\"",
        ),
        (
            "-[[app]]\non = \"a\"\nrun = \"ping 10.0.0.2\"\n[[expect]]\nwhat = \"a ping rtt\"\nvalue = \"6ms..5ms\"\n",
            "12:9: value: \"6ms..5ms\" is no range of numbers | write the lesser one first",
        ),
        (
            "-[[expect]]\nwhat = \"a eth0 drops\"\n",
            "7:1: [[expect]] has no \"value\" | add e.g. value = \"<10ms\"",
        ),
    ];
    let mut wrong = String::new();
    for (text, want) in cases {
        let text = match (text.strip_prefix('-'), text.strip_suffix('+')) {
            (Some(rest), _) => format!("{}{rest}", TWO.trim_start()),
            (_, Some(head)) => format!("{head}{TWO}"),
            _ => (*text).to_owned(),
        };
        let faults = read(&text).expect_err(&text);
        let d = &faults[0];
        let got = format!("{}:{}: {} | {}", d.line, d.column, d.message, d.help);
        if !got.starts_with(want) {
            wrong.push_str(&format!("{text}\nwant {want}\ngot  {got}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

const METERS: &str = r#"
[host.a]
eth0 = "10.0.0.1/24"
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
ends = ["a:eth0", "b:eth0"]
[[flow]]
from = "a"
to   = "b"
udp  = true
load = "1mbit"
dscp = "af11"
[[meter]]
on = "a:eth0"
dscp = ["AF11", 12, "EF"]
kind = "trtcm"
cir = "1mbit"
cbs = "10k"
pir = "2mbit"
pbs = "20k"
aware = true
green = "AF11"
yellow = "AF12"
red = "drop"
"#;

#[test]
fn code_points_and_meters() {
    use penstock_sched::meter::{Mark, Meter, TrTcm};
    let read_meters = read(METERS).unwrap();
    assert_eq!(read_meters.flows[0].tos, 10 << 2);
    let conditioner = &read_meters.meters[0].conditioner;
    assert_eq!((conditioner.dscp.as_slice(), conditioner.aware), (&[10, 12, 46][..], true));
    assert_eq!(conditioner.marks, [Mark::Dscp(10), Mark::Dscp(12), Mark::Drop]);
    let rate = Rate::from_bit_per_s;
    assert_eq!(conditioner.meter, Meter::TrTcm(TrTcm::new(rate(1_000_000), 10_240, rate(2_000_000), 20_480)));
    let fault = |from: &str, to: &str| {
        let faults = read(&METERS.replacen(from, to, 1)).unwrap_err();
        format!("{} | {}", faults[0].message, faults[0].help)
    };
    assert_eq!(fault("af11", "AF51"), "dscp: no code point is called \"AF51\" | did you mean \"AF11\"?");
    assert_eq!(fault("\"trtcm\"", "\"trtmc\""), "no meter is called \"trtmc\" | did you mean \"trtcm\"?");
    assert_eq!(
        fault("2mbit", "0.5mbit"),
        "pir is less than cir | the peak rate is the greater one (RFC 2698)"
    );
    assert!(fault("on = \"a:eth0\"", "on = \"a:eth7\"").contains("eth7"));
    assert!(fault("dscp = \"af11\"", "dscp = \"EF\"\ntos = 4").starts_with("a flow has either"));
    assert!(fault("pbs", "bps").contains("pbs"));
}

#[test]
fn all_faults_come_at_once_in_the_order_of_the_text() {
    let faults =
        read("durration = \"5s\"\nseed = -1\n[host.a]\ngw = \"x\"\neth0 = \"y\"\n[[link]]\nrate = 5\n")
            .unwrap_err();
    let lines: Vec<u32> = faults.iter().map(|d| d.line).collect();
    assert_eq!(lines, [1, 2, 4, 5, 6, 7]);
    let shown = faults[0].to_string();
    let want = "lab/x.toml:1:1: an experiment has no key \"durration\"\n  durration = \"5s\"\n  ^^^^^^^^^ did you mean \"duration\"?";
    assert_eq!(shown, want);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = read(&text);
    }

    /// The example with a piece cut out, doubled or replaced.
    #[test]
    fn a_damaged_file_never_panics(from in 0usize..1600, len in 0usize..40, piece in "[\\[\\]{}=\",.:0-9a-z\n ]{0,12}") {
        let mut text: Vec<char> = USERS.chars().collect();
        let from = from.min(text.len());
        let to = (from + len).min(text.len());
        text.splice(from..to, piece.chars());
        if let Err(faults) = read(&text.into_iter().collect::<String>()) {
            prop_assert!(!faults.is_empty());
        }
    }
}

/// Two hosts and one link with these keys.
fn link_with(keys: &str) -> String {
    format!(
        "[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\n{keys}\n"
    )
}

#[test]
fn queues_stand_before_links() {
    let queue = "queue = { kind = \"ns2_red\", thresh = \"25%\", maxthresh = 54, limit = 72, q_weight = -1, gentle = false, interval = \"500ms\" }";
    let e = read(&link_with(&format!("{queue}\necn = \"bleach\"\nframing = \"ip\"")))
        .unwrap_or_else(|d| panic!("{}", d[0]));
    let link = &e.links[0];
    let o = &link.queue.as_ref().unwrap().options;
    assert_eq!((o.u32("limit"), o.str("thresh"), o.str("maxthresh")), (Some(72), Some("18"), Some("54")));
    assert_eq!((o.str("q_weight"), o.u32("gentle"), o.str("interval")), (Some("-1"), Some(0), Some("0.5")));
    assert_eq!((link.ecn, link.ip_framing, link.ethernet), (Ecn::Bleach, true, false));
    for (keys, want) in [
        ("queue = { kind = \"ns2_rod\" }", "there is no queue \"ns2_rod\""),
        ("queue = { kind = \"ns2_red\", tresh = 5 }", "queue has no key \"tresh\""),
        ("queue = { kind = \"ns2_red\", q_weight = \"25%\" }", "q_weight is no number"),
        ("ecn = \"bleached\"", "ecn: \"bleached\" is unknown"),
    ] {
        assert_eq!(read(&link_with(keys)).unwrap_err()[0].message, want);
    }
}

#[test]
fn pages_and_arrivals_are_read() {
    let flow = |load: &str| link_with(&format!("[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = {load}"));
    let load = |text: &str| read(&flow(text)).unwrap_or_else(|d| panic!("{}", d[0])).flows[0].load.clone();
    let pages = Load::Pages(Sizes::Constant(12_288), Dist::Constant(Span::from_secs(1)));
    assert_eq!(load("{ pages = \"12k\", think = \"1s\" }"), pages);
    let arrivals = Arrivals { gap: Span::from_ms(100), bytes: 1000, shape_milli: Some(1200) };
    assert_eq!(load("{ arrivals = \"100ms\", bytes = 1000, shape = 1.2 }"), Load::Arrivals(arrivals));
    for (text, want) in [
        ("{ arrivals = \"100ms\" }", "arrivals need a size"),
        ("{ arrivals = \"100ms\", bytes = 1000, shape = 1.0 }", "shape is out of its range"),
        ("{ pages = 1000, gap = \"1s\" }", "load is none of the forms there are"),
        ("{ bytes = 1000, think = \"1s\" }", "think goes with pages"),
    ] {
        assert_eq!(read(&flow(text)).unwrap_err()[0].message, want);
    }
}
