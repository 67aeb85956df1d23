//! What files say.

mod faults;

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
        ("hz = 100", "[host.r]: hz needs kernel 2.2 or 2.4"),
        ("kernel = \"2.4\"\nhz = 1", "hz is out of range"),
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
    assert_eq!(
        (&cost.packet, cost.byte_ps),
        (&Dist::Uniform { from: Span::from_us(15), to: Span::from_us(25) }, 800)
    );
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
        "pir is less than cir | the peak rate is the larger one (RFC 2698)"
    );
    assert!(fault("on = \"a:eth0\"", "on = \"a:eth7\"").contains("eth7"));
    assert!(fault("dscp = \"af11\"", "dscp = \"EF\"\ntos = 4").starts_with("a flow has either"));
    assert!(fault("pbs", "bps").contains("pbs"));
}

#[test]
fn more_than_memory_holds_is_refused_by_name() {
    let flow = |count| format!("[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\ncount = {count}\n");
    let hosts = "[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\n";
    assert!(read(&format!("{hosts}{}{}", flow(49_999), flow(1))).is_ok());
    let faults = read(&format!("{hosts}{}{}{}", flow(49_999), flow(2), flow(1))).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].message, "with this flow there are more than 50000 flows and apps in all");
    let many: String =
        (0..32_769).map(|i| format!("[host.h{i}]\neth0 = \"10.{}.{}.1/24\"\n", i >> 8, i & 255)).collect();
    let faults = read(&many).unwrap_err();
    assert_eq!(faults[0].message, "there are more than 32768 hosts");
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
    assert_eq!((link.ecn, link.framing), (Ecn::Bleach, Framing::Ip));
    for (keys, want) in [
        ("queue = { kind = \"ns2_rod\" }", "there is no queue \"ns2_rod\""),
        ("queue = { kind = \"ns2_red\", tresh = 5 }", "queue has no key \"tresh\""),
        ("queue = { kind = \"ns2_red\", q_weight = \"25%\" }", "q_weight is not a number"),
        ("ecn = \"bleached\"", "ecn: \"bleached\" is unknown"),
    ] {
        assert_eq!(read(&link_with(keys)).unwrap_err()[0].message, want);
    }
}

#[test]
fn pages_and_arrivals_are_read() {
    let flow = |load: &str| link_with(&format!("[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = {load}"));
    let load = |text: &str| read(&flow(text)).unwrap_or_else(|d| panic!("{}", d[0])).flows[0].load.clone();
    let pages = Load::Pages { size: Sizes::Constant(12_288), think: Dist::Constant(Span::from_secs(1)) };
    assert_eq!(load("{ pages = \"12k\", think = \"1s\" }"), pages);
    let arrivals = Arrivals { gap: Span::from_ms(100), bytes: 1000, shape_milli: Some(1200) };
    assert_eq!(load("{ arrivals = \"100ms\", bytes = 1000, shape = 1.2 }"), Load::Arrivals(arrivals));
    for (text, want) in [
        ("{ arrivals = \"100ms\" }", "arrivals need a size"),
        ("{ arrivals = \"100ms\", bytes = 1000, shape = 1.0 }", "shape is out of range"),
        ("{ pages = 1000, gap = \"1s\" }", "load has none of the known forms"),
        ("{ bytes = 1000, think = \"1s\" }", "think needs pages"),
    ] {
        assert_eq!(read(&flow(text)).unwrap_err()[0].message, want);
    }
}

#[test]
fn a_setup_finds_its_variables() {
    let host = |env: &str| {
        format!("duration = \"1s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\nsetup = \"echo $RATE\"\nenv = {env}\n")
    };
    let e = read(&host("{ RATE = \"5mbit\", N = 3, Q = \"it's\" }")).unwrap();
    assert_eq!(e.hosts[0].setup[0].text, "export N='3'\nexport Q='it'\\''s'\nexport RATE='5mbit'\n");
    assert_eq!((e.hosts[0].setup[0].line, e.hosts[0].setup.len()), (5, 2));
    for (env, told) in [
        ("{ \"A-B\" = 1 }", "\"A-B\" is not the name of a variable"),
        ("{ A = \"x\\ny\" }", "A has more than one line"),
        ("{ A = true }", "env"),
    ] {
        let faults = read(&host(env)).unwrap_err();
        assert!(faults[0].message.contains(told), "{env}: {}", faults[0]);
    }
    let faults = read(&host("{ A = 1 }").replace("setup = \"echo $RATE\"\n", "")).unwrap_err();
    assert!(faults[0].message.contains("no setup that could read it"), "{}", faults[0]);
    // The file's come before those of its base, which stay.
    let e = read("base = \"base.toml\"\n[host.u4]\nenv = { X = 1 }\n").unwrap();
    assert_eq!(e.hosts[0].setup[0].text, "export X='1'\n");
    assert_eq!(e.hosts[0].setup[1].text, "a");
}
