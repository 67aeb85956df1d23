//! DiffServ in whole runs: meters, code points by name, echo probes, captures as traffic, and per-hop behaviours as expectations.

use penstock_lab::experiment::{Experiment, load, parse_with, read_file};
use penstock_lab::run::{Options, Outcome, run};
use std::path::PathBuf;

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn made(experiment: &Experiment) -> Outcome {
    run(experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        .unwrap_or_else(|faults| panic!("{}", faults[0]))
}

#[test]
fn behaviours_are_given_by_a_router_that_knows_them_and_missed_by_one_that_does_not() {
    let experiment = load(&examples().join("diffserv.toml")).unwrap_or_else(|f| panic!("{}", f[0]));
    let outcome = made(&experiment);
    for expect in &outcome.record.expects {
        assert!(expect.ok, "{} {}: {:?}", expect.what, expect.value, expect.measured);
    }
    let device = outcome.record.devices.iter().find(|d| d.host == "r" && d.dev == "eth1").unwrap();
    let meter = &device.meters[0];
    assert!(meter.green_packets > 100 && meter.yellow_packets > 100 && meter.red_packets > 100);
    let probe = outcome.record.flows.iter().find(|f| f.name == "probe").unwrap();
    assert_eq!((probe.sent_packets, probe.dscp.as_deref()), (11, Some("EF")));
    assert!(probe.rtt_ms.as_ref().is_some_and(|r| r.min > 10.0));
    assert_eq!(outcome.series.points("", "flow probe", "rtt_ms").len(), 10);

    // The same line with one queue for all.
    let mut plain = experiment;
    let router = plain.hosts.iter_mut().find(|h| h.name == "r").unwrap();
    router.setup.truncate(1);
    let missed = |what: &str, outcome: &Outcome| {
        let found = outcome.record.expects.iter().find(|e| e.what == what);
        !found.unwrap_or_else(|| panic!("nothing expects {what}")).ok
    };
    let outcome = made(&plain);
    for what in ["r eth1 EF@2mbit ep", "r eth1 LE ahead", "probe rtt max"] {
        assert!(missed(what, &outcome), "{what}");
    }
}

/// The least network there is, with something in the place of `MORE`.
fn small(more: &str) -> String {
    format!(
        "duration = \"2s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
         [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\n{more}"
    )
}
fn faults(text: &str) -> String {
    let read = parse_with(text, "x.toml", &|_| Err("there is no such file".to_owned()));
    read.map(|_| String::new())
        .unwrap_or_else(|f| f.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; "))
}

#[test]
fn what_a_behaviour_cannot_be_asked_is_said() {
    let ask = |what: &str| faults(&small(&format!("[[expect]]\nwhat = \"{what}\"\nvalue = \"<1ms\"\n")));
    assert_eq!(ask("a eth0 EF ep"), "what: ep is judged at a rate");
    assert_eq!(ask("a eth0 EF@fast ep"), "what: \"fast\" is not a rate");
    assert_eq!(ask("a eth0 AF11 precedence"), "what: precedence is of an AF class");
    assert_eq!(ask("a eth0 EF@1mbit ep"), "");
    let echo = "[[flow]]\nfrom = \"a\"\nto = \"b\"\ntcp = true\nload = { echo = \"1s\" }\n";
    assert_eq!(faults(&small(echo)), "an echo probe sends datagrams");
}

/// A capture of one UDP packet a frame: time in microseconds, payload.
fn capture(packets: &[(u32, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        out.extend(word.to_le_bytes());
    }
    for &(us, payload) in packets {
        let len = 42 + payload;
        for word in [us / 1_000_000, us % 1_000_000, len, len] {
            out.extend(word.to_le_bytes());
        }
        let mut frame = vec![0u8; len as usize];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(28 + payload as u16).to_be_bytes());
        frame[22..24].copy_from_slice(&[64, 17]);
        frame[26..34].copy_from_slice(&[10, 9, 9, 1, 10, 9, 9, 2]);
        frame[34..40].copy_from_slice(&[0, 9, 0, 9, 0, 0]);
        frame[38..40].copy_from_slice(&(8 + payload as u16).to_be_bytes());
        out.extend(frame);
    }
    out
}

#[test]
fn a_capture_is_sent_again_by_its_times_and_sizes() {
    let folder = std::env::temp_dir().join(format!("penstock-capture-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("call.pcap"),
        capture(&[(1_500_000, 160), (1_520_000, 200), (1_540_500, 100)]),
    )
    .unwrap();
    let text = small(
        "[[flow]]\nname = \"call\"\nfrom = \"a\"\nto = \"b\"\nudp = true\ntrace = true\nload = { replay = \"@call.pcap\" }\n",
    );
    let file = folder.join("x.toml");
    let experiment =
        parse_with(&text, &file.to_string_lossy(), &read_file).unwrap_or_else(|f| panic!("{}", f[0]));
    std::fs::remove_dir_all(&folder).unwrap();
    let outcome = made(&experiment);
    let (0, passages) = &outcome.passages[0] else { panic!("the only flow is traced") };
    let sent: Vec<(u32, f64)> = passages.iter().map(|p| (p.bytes, p.sent_s)).collect();
    assert_eq!(sent, [(160, 0.0), (200, 0.02), (100, 0.0405)]);
}

/// Pings through a router whose routes have realms, in the order in which a real kernel (6.12, its last device a dummy) was given
/// them; its classes then had 3, 2, 1, 0 and 1 of them. `fromif` matches nothing there either.
#[test]
fn realms_of_routes_choose_classes() {
    let mut text = String::from(
        r#"duration = "12s"
[host.a]
eth0 = "10.0.1.2/24"
via  = "10.0.1.1"
[host.r]
eth0  = "10.0.1.1/24"
eth1  = "10.0.2.1/24"
setup = """
sysctl -w net.ipv4.ip_forward=1
ip route add 10.5.0.0/16 via 10.0.2.9 realm 5
ip route add 10.6.0.0/16 via 10.0.2.9 realms 3/6
ip route add 10.7.0.0/16 via 10.0.2.9
ip route change 10.0.1.0/24 dev eth0 src 10.0.1.1 realm 9
tc qdisc add dev eth1 root handle 1: prio bands 6 priomap 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5
tc filter add dev eth1 parent 1: protocol ip prio 1 route to 5 classid 1:1
tc filter add dev eth1 parent 1: protocol ip prio 1 route from 3 to 6 classid 1:2
tc filter add dev eth1 parent 1: protocol ip prio 1 route from 9 classid 1:3
tc filter add dev eth1 parent 1: protocol ip prio 1 route fromif eth0 classid 1:4
"""
[host.b]
eth0 = ["10.0.2.9/24", "10.5.0.1/16", "10.6.0.1/16", "10.7.0.1/16"]
via  = "10.0.2.1"
[[link]]
ends = ["a:eth0", "r:eth0"]
rate = "10mbit"
[[link]]
ends = ["r:eth1", "b:eth0"]
rate = "10mbit"
"#,
    );
    let steps = [
        ("r", "ping -c 1 10.5.0.1"),
        ("r", "ping -c 1 10.6.0.1"),
        ("r", "ping -c 1 10.7.0.1"),
        ("a", "ping -c 1 10.5.0.1"),
        ("a", "ping -c 1 10.6.0.1"),
        ("a", "ping -c 1 10.7.0.1"),
        ("r", "tc filter del dev eth1 parent 1: protocol ip prio 1 handle 0x00098000 route"),
        ("a", "ping -c 1 10.7.0.1"),
        ("r", "tc filter add dev eth1 parent 1: protocol ip prio 1 route from 9 to 5 classid 1:5"),
        ("a", "ping -c 1 10.5.0.1"),
        ("r", "ping -c 1 10.5.0.1"),
        ("r", "ip route show 10.6.0.0/16"),
    ];
    for (second, (on, run)) in steps.iter().enumerate() {
        text += &format!("[[app]]\non = \"{on}\"\nrun = \"{run}\"\nat = \"{second}s\"\n");
    }
    let read = parse_with(&text, "x.toml", &|_| Err("there is no such file".to_owned()));
    let outcome = made(&read.unwrap_or_else(|f| panic!("{}", f[0])));
    let device = outcome.record.devices.iter().find(|d| d.host == "r" && d.dev == "eth1").unwrap();
    let packets = |id: &str| device.classes.iter().find(|c| c.classid == id).unwrap().packets;
    assert_eq!(["1:1", "1:2", "1:3", "1:4", "1:5"].map(packets), [3, 2, 1, 0, 1]);
    assert_eq!(outcome.outputs.last().unwrap(), "10.6.0.0/16 via 10.0.2.9 dev eth1 realms 3/6 \n");
}
