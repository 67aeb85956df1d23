//! Captures: what a card sends, receives and loses, as files that other programs read.

use penstock_lab::experiment::{self, Threads};
use penstock_lab::run::{self, Options, Outcome};
use penstock_replay::capture::{self, What};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A line that shapes, with a call, a ping, downloads that lose packets, and both of IP's families; links with delay, so that threads can
/// divide it.
const LINE: &str = r#"
title = "captured"
duration = "2s"
[host.a]
eth0 = ["10.0.0.2/24", "fd00::2/64"]
via = ["10.0.0.1", "fd00::1"]
[host.r]
lan = ["10.0.0.1/24", "fd00::1/64"]
wan = { address = ["10.0.1.1/24", "fd01::1/64"], capture = true }
setup = """
sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
tc qdisc add dev lan root handle 1: htb default 20
tc class add dev lan parent 1: classid 1:10 htb rate 1mbit ceil 4mbit prio 0
tc class add dev lan parent 1: classid 1:20 htb rate 3mbit ceil 4mbit prio 1
tc qdisc add dev lan parent 1:20 handle 20: fq_codel limit 20
tc filter add dev lan parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:10
"""
[host.b]
eth0 = ["10.0.1.2/24", "fd01::2/64"]
via = ["10.0.1.1", "fd01::1"]
[[link]]
ends = [{ end = "a:eth0", capture = true }, "r:lan"]
rate = "10mbit"
delay = "2ms"
[[link]]
ends = ["r:wan", "b:eth0"]
rate = "20mbit"
delay = "5ms"
[[capture]]
on = "r:lan"
name = "shaped"
[[flow]]
name = "down"
from = "b"
to = "a"
load = "greedy"
count = 3
[[flow]]
name = "call"
from = "b"
to = "a"
udp = true
load = "g711"
[[flow]]
name = "big"
from = "a"
to = "b"
udp = true
load = { size = 4000, gap = "200ms" }
until = "1s"
"#;

const PINGS: &str = "[[app]]\non = \"a\"\nrun = \"ping -c 5 -i 0.2 b\"\n[[app]]\non = \"a\"\nrun = \"ping -6 -c 5 -i 0.2 b\"\n\
                     [[flow]]\nname = \"nobody\"\nfrom = \"a\"\nto = \"r\"\nudp = true\nload = { size = 100, gap = \"500ms\" }\n";

fn run(text: &str, threads: Threads) -> Outcome {
    let experiment = experiment::parse(text, "captured.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let mut options = Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
    run::run(&experiment.on_threads(threads), &mut options).unwrap_or_else(|d| panic!("{}", d[0]))
}

fn folder(name: &str, outcome: &Outcome) -> PathBuf {
    let place = std::env::temp_dir().join(format!("penstock-captures-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    outcome.write(&place).unwrap();
    place
}

fn read(path: &Path) -> capture::Traffic {
    capture::read(&std::fs::read(path).unwrap(), "capture").unwrap_or_else(|d| panic!("{d}"))
}

#[test]
fn a_capture_has_every_frame_of_its_card() {
    let outcome = run(&format!("{LINE}{PINGS}"), Threads::One);
    let place = folder("frames", &outcome);
    let record = &outcome.record;
    let names: Vec<&str> = record.captures.iter().map(|c| c.file.as_str()).collect();
    assert_eq!(names, ["captures/shaped.pcapng", "captures/r-wan.pcapng", "captures/a-eth0.pcapng"]);
    let shaped = &record.captures[0];
    let lan = record.devices.iter().find(|d| (d.host.as_str(), d.dev.as_str()) == ("r", "lan")).unwrap();
    let root = lan.qdiscs.iter().find(|q| q.parent == "root").unwrap();
    let traffic = read(&place.join(&shaped.file));
    // Those that came in are told apart by their flags: the reader leaves them out. What went out is what the qdisc gave, and what it lost.
    let lost: u64 = record
        .drops
        .iter()
        .filter(|d| d.host == "r" && d.dev.as_deref() == Some("lan"))
        .map(|d| d.packets)
        .sum();
    assert!(lost > 10 && shaped.lost_packets == lost, "{lost} {shaped:?}");
    assert_eq!(traffic.moments.len() as u64, root.packets + lost);
    assert_eq!(traffic.incoming + root.packets, shaped.packets);
    // Times are those of the run, to the nanosecond: the smallest gap is that of the line's rate.
    assert!(traffic.moments.windows(2).all(|w| w[0].t_ns <= w[1].t_ns));
    assert!(traffic.moments.iter().any(|m| m.t_ns % 1000 != 0));
    // TCP's sequence numbers are those of the connection: no byte twice but what was sent again.
    let mut tcp = 0;
    for moment in &traffic.moments {
        let What::Packet(skb) = &moment.what else { panic!("only packets") };
        tcp += u64::from(matches!(skb.l4, penstock_packet::L4::Tcp(_)));
        assert!(moment.bytes.len() <= 160 && skb.len as usize >= moment.bytes.len());
    }
    assert!(tcp > 300);
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn threads_capture_the_same_bytes() {
    let one = run(LINE, Threads::One);
    let two = run(LINE, Threads::Always(2));
    // Fragments keep a run on one thread; without them two make it.
    assert!(two.one_thread.is_some());
    let plain = LINE.split("[[flow]]\nname = \"big\"").next().unwrap();
    let (single, divided) = (run(plain, Threads::One), run(plain, Threads::Always(2)));
    assert_eq!(divided.one_thread, None);
    for (name, first, second) in [("one", &one, &two), ("two", &single, &divided)] {
        let places = [folder(&format!("{name}-a"), first), folder(&format!("{name}-b"), second)];
        for capture in &first.record.captures {
            let [a, b] = [0, 1].map(|n| std::fs::read(places[n].join(&capture.file)).unwrap());
            assert!(a.len() > 10_000 && a == b, "{}", capture.file);
        }
        places.iter().for_each(|p| std::fs::remove_dir_all(p).unwrap());
    }
}

#[test]
fn a_capture_may_have_several_cards_and_a_time() {
    let text = LINE.replace(
        "on = \"r:lan\"\nname = \"shaped\"",
        "on = [\"r:lan\", \"b:eth0\"]\nname = \"both\"\nfrom = \"500ms\"\nuntil = \"1s\"\ndrops = false\nsnaplen = 2000",
    );
    let outcome = run(&text, Threads::One);
    let place = folder("several", &outcome);
    let both = &outcome.record.captures[0];
    assert_eq!(
        (both.on.as_slice(), both.lost_packets),
        (["r:lan".to_owned(), "b:eth0".to_owned()].as_slice(), 0)
    );
    let traffic = read(&place.join(&both.file));
    let (first, last) = (traffic.epoch_ns, traffic.epoch_ns + traffic.moments.last().unwrap().t_ns);
    assert!((500_000_000..520_000_000).contains(&first) && last < 1_000_000_000, "{first} {last}");
    // Whole frames, where the length is allowed for.
    assert!(traffic.moments.iter().any(|m| m.bytes.len() == 1514));
    assert!(traffic.moments.windows(2).all(|w| w[0].t_ns <= w[1].t_ns));
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn what_cannot_be_captured_is_told_before_the_run() {
    let fault = |from: &str, to: &str| {
        let faults = experiment::parse(&LINE.replace(from, to), "x.toml").unwrap_err();
        (faults.len(), faults[0].message.clone(), faults[0].help.clone())
    };
    let is = |from: &str, to: &str, said: &str| {
        let (count, message, _) = fault(from, to);
        assert_eq!((count, message.as_str()), (1, said));
    };
    is("on = \"r:lan\"", "on = \"r:lna\"", "r has no device \"lna\"");
    is("on = \"r:lan\"", "on = \"r\"", "\"r\" is not a device");
    is("on = \"r:lan\"", "on = \"r:wan\"", "r:wan is captured already");
    is("on = \"r:lan\"", "on = \"r:lan\"\nfrom = \"2s\"", "this capture begins when the run has ended");
    is("on = \"r:lan\"", "on = \"r:lan\"\nsnaplen = 2", "snaplen is out of range");
    is("name = \"shaped\"", "name = \"a/b\"", "a capture cannot be called \"a/b\"");
    let twice = "name = \"one\"\n[[capture]]\non = \"b:eth0\"\nname = \"one\"";
    is("name = \"shaped\"", twice, "there is a capture \"one\" already");
    is(
        "[host.b]\n",
        "[host.c]\nx0 = { address = \"10.9.0.1/24\", capture = true }\n[host.b]\n",
        "c:x0 is at no link: there is nothing to capture",
    );
}

/// What wireshark's own dissectors have to say; without it the test leaves itself out.
#[test]
fn tshark_reads_it_without_complaint() {
    if Command::new("tshark").arg("--version").output().is_err() {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED tshark reads captures: it is not installed (apt-get install tshark)"
        );
        return;
    }
    let outcome = run(
        &format!("{LINE}{PINGS}").replace("name = \"shaped\"", "name = \"shaped\"\nsnaplen = 65549"),
        Threads::One,
    );
    let place = folder("tshark", &outcome);
    let tshark = |args: &[&str]| {
        let file = place.join("captures/shaped.pcapng");
        let done = Command::new("tshark").arg("-n").arg("-r").arg(file).args(args).output().unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{errors}");
        let own = |l: &&str| !l.trim().is_empty() && !l.starts_with("Running as user");
        assert_eq!(errors.lines().find(own), None);
        String::from_utf8(done.stdout).unwrap()
    };
    let check =
        ["-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
    let bad = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0 || icmp.checksum.status == 0 \
               || icmpv6.checksum.status == 0 || _ws.expert.severity >= 8388608";
    assert_eq!(tshark(&[&check[..], &["-Y", bad]].concat()), "");
    // Interfaces, directions and comments.
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.interface_name",
        "-e",
        "frame.packet_flags_direction",
        "-e",
        "frame.comment",
    ];
    let seen = tshark(&fields);
    let has = |text: &str| assert!(seen.lines().any(|l| l.contains(text)), "{text}");
    has("r:lan\t0x00000001");
    has("r:lan\t0x00000002\tclass 1:20, queue fq_codel 20:, waited ");
    has("r:lan lost\t0x00000002\tlost (qdisc): ");
    // Resolution and the count of all.
    let lines = seen.lines().count() as u64;
    assert_eq!(lines, outcome.record.captures[0].packets + outcome.record.captures[0].lost_packets);
    // The datagrams in fragments are whole again for it, with a checksum that holds.
    let whole = tshark(&[&check[..], &["-Y", "udp.length == 4008 && udp.checksum.status == 1"]].concat());
    assert!(whole.lines().count() >= 4, "{whole}");
    std::fs::remove_dir_all(place).unwrap();
}
