//! What cannot work is told before the run, once for a cause; what may work is not.

use penstock_lab::experiment;
use penstock_lab::run::{Options, Outcome, run};

const PAIR: &str = "duration = \"2s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
                    [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\n";
const SIX: &str = "duration = \"2s\"\n[host.a]\neth0 = \"fd00::1/64\"\n[host.b]\neth0 = \"fd00::2/64\"\n\
                   [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\n";
const ROUTED: &str = "duration = \"2s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\nvia = \"10.0.0.254\"\n[host.r]\neth0 = \"10.0.0.254/24\"\neth1 = \"10.0.1.254/24\"\nSETUP\n\
                      [host.b]\neth0 = \"10.0.1.2/24\"\nVIA\n[[link]]\nends = [\"a:eth0\", \"r:eth0\"]\n[[link]]\nends = [\"r:eth1\", \"b:eth0\"]\n";
const FORWARD: &str = "setup = \"sysctl -w net.ipv4.ip_forward=1\"";
const BACK: &str = "via = \"10.0.1.254\"";

fn app(on: &str, line: &str) -> String {
    format!("[[app]]\non = \"{on}\"\nrun = \"{line}\"\n")
}

/// What is told of a file, and the outcome.
fn told(text: &str) -> (Vec<String>, Outcome) {
    let experiment = experiment::parse(text, "x.toml").unwrap_or_else(|d| panic!("{}\n{text}", d[0]));
    let mut warnings = Vec::new();
    let mut warn =
        |d: &penstock_model::Diagnostic| warnings.push(format!("{}: {} | {}", d.line, d.message, d.help));
    let options = &mut Options { seed: None, progress: &mut |_| {}, warn: &mut warn };
    let outcome = run(&experiment, options).unwrap_or_else(|d| panic!("{}\n{text}", d[0]));
    (warnings, outcome)
}

/// An address that no other has is somebody's where a machine on the link answers for it.
#[test]
fn a_proxy_is_somebody() {
    let text = |more: &str| {
        let router = format!("setup = [\"sysctl -w net.ipv4.ip_forward=1\"{more}]");
        let near = "setup = \"ip route add 10.0.1.0/24 dev eth0\"";
        let routed =
            ROUTED.replace("SETUP", &router).replace("via = \"10.0.0.254\"", near).replace("VIA", BACK);
        routed + &app("a", "ping -c 1 10.0.1.2")
    };
    let (warnings, _) = told(&text(""));
    assert!(
        warnings.iter().any(|w| w.contains("nobody on the link of a:eth0 has the address 10.0.1.2")),
        "{warnings:?}"
    );
    let (warnings, outcome) = told(&text(", \"sysctl -w net.ipv4.conf.all.proxy_arp=1\""));
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(outcome.record.apps[0].exit, Some(0));
}

#[test]
fn what_cannot_work_is_told_with_its_cause() {
    let routed = |setup: &str, via: &str| ROUTED.replace("SETUP", setup).replace("VIA", via);
    let ping = app("a", "ping -c 1 10.0.1.2");
    let apart = PAIR.replace("10.0.0.2", "10.0.1.2");
    let cases: &[(String, &str)] = &[
        (
            PAIR.split("[[link]]").next().unwrap().to_owned() + &app("a", "ping -c 1 10.0.0.2"),
            "a:eth0 is at no link",
        ),
        (
            PAIR.to_owned() + &app("a", "ping -c 1 10.0.0.3"),
            "nobody on the link of a:eth0 has the address 10.0.0.3",
        ),
        (
            PAIR.to_owned() + &app("a", "ping -c 1 c"),
            "nobody is called \"c\" | write an address, or the name of a [host]",
        ),
        (
            apart + &ping,
            "a has no route to 10.0.1.2: the ends of their link share no network | a:eth0 has 10.0.0.1/24, b:eth0 has 10.0.1.2/24",
        ),
        (
            PAIR.replace("[host.b]", "setup = \"ip link set eth0 down\"\n[host.b]")
                + &app("a", "ping -c 1 10.0.0.2"),
            "a has no route to 10.0.0.2",
        ),
        (
            routed("", BACK) + &ping,
            "r does not forward: nothing gets through it to 10.0.1.2 | write in [host.r]: setup = [\"sysctl",
        ),
        (routed(FORWARD, "") + &ping, "b has no route to 10.0.0.1 | write in [host.b]: via ="),
        (
            routed(FORWARD, BACK).replace("via = \"10.0.0.254\"", "via = \"10.0.0.253\"") + &ping,
            "nobody on the link of a:eth0 has the address 10.0.0.253",
        ),
        (
            PAIR.to_owned() + &app("a", "iperf -c 10.0.0.2 -t 1"),
            "nobody on b listens at tcp port 5001 | add an [[app]] with on = \"b\" and run = \"iperf -s\"",
        ),
        (
            PAIR.to_owned() + &app("b", "iperf -s") + &app("a", "iperf -u -c 10.0.0.2 -t 1"),
            "nobody on b listens at udp port 5001 | add an [[app]] with on = \"b\" and run = \"iperf -s -u\"",
        ),
        (
            PAIR.to_owned() + &app("b", "iperf3 -s -p 7") + &app("a", "iperf3 -c 10.0.0.2 -t 1"),
            "nobody on b listens at tcp port 5201",
        ),
        (
            PAIR.to_owned() + &app("b", "iperf3 -s") + "at = \"1s\"\n" + &app("a", "iperf3 -c 10.0.0.2 -t 1"),
            "nobody on b listens at tcp port 5201 before 1s | let the server start first",
        ),
        (
            routed("", BACK) + "[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\n",
            "a-b cannot work: r does not forward",
        ),
        (
            routed("", BACK)
                + "[[flow]]\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = \"1mbit\"\ncount = 5\n",
            "a-b cannot work: r does not forward",
        ),
    ];
    for (text, want) in cases {
        let (warnings, outcome) = told(text);
        assert_eq!(warnings.len(), 1, "{warnings:?}\n{text}");
        assert!(warnings[0].contains(want), "{}\nwant {want}\n{text}", warnings[0]);
        assert!(outcome.record.warnings[0].came_true && !outcome.record.succeeded(), "{text}");
    }
}

#[test]
fn datagrams_that_ipv6_cuts_come_whole() {
    let cases = [
        (app("b", "iperf3 -s") + &app("a", "iperf3 -6 -c fd00::2 -u -l 4000 -b 320k -t 1"), 3),
        (
            "[[flow]]\nfrom = \"a\"\nto = \"b\"\nipv6 = true\nudp = true\nload = { size = 1453, gap = \"100ms\" }\n"
                .to_owned(),
            2,
        ),
    ];
    for (more, pieces) in cases {
        let (warnings, outcome) = told(&(SIX.to_owned() + &more));
        assert_eq!(warnings, Vec::<String>::new());
        let cut = outcome
            .record
            .flows
            .iter()
            .find(|f| f.fragments.is_some_and(|n| n > 0))
            .expect("a flow in fragments");
        let fragments = cut.fragments.unwrap_or(0);
        // iperf3 begins with a datagram of 4 bytes.
        let whole = fragments / pieces;
        assert!(fragments.is_multiple_of(pieces) && whole > 5 && whole + 1 >= cut.sent_packets, "{cut:?}");
        // The last one is on its way when the run ends.
        let arrived = cut.received_packets + cut.in_flight_packets.unwrap_or(0);
        assert_eq!((arrived, cut.lost_packets), (cut.sent_packets, 0), "{cut:?}");
    }
}

#[test]
fn one_cause_is_told_once() {
    let pings: String = (0..300).map(|_| app("a", "ping -c 1 10.0.1.2")).collect();
    let (warnings, _) = told(&(ROUTED.replace("SETUP", "").replace("VIA", BACK) + &pings));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("a ping and 299 more cannot work: r does not forward"), "{}", warnings[0]);
}

#[test]
fn what_may_work_is_not_told() {
    let routed = |setup: &str, via: &str| ROUTED.replace("SETUP", setup).replace("VIA", via);
    let ping = app("a", "ping -c 1 10.0.1.2");
    let cases: &[String] = &[
        PAIR.to_owned() + &app("a", "ping -c 1 b"),
        PAIR.to_owned() + &app("a", "ping -c 1 localhost"),
        PAIR.to_owned() + &app("a", "ssh b"),
        PAIR.to_owned() + &app("b", "iperf -s") + &app("a", "iperf -c 10.0.0.2 -t 1"),
        // Its server may be another script's.
        PAIR.to_owned() + &app("b", "sleep 0; iperf -s &") + &app("a", "iperf -c 10.0.0.2 -t 1"),
        PAIR.replace("[host.b]", "[host.b]\nsetup = \"(sleep 1; ip addr add 10.0.0.3/24 dev eth0) &\"")
            + &app("a", "sleep 2; ping -c 1 10.0.0.3"),
        SIX.to_owned() + &app("b", "iperf3 -s") + &app("a", "iperf3 -6 -c fd00::2 -u -l 1452 -t 1"),
        routed(FORWARD, BACK) + &ping,
        // A mark decides which way it goes.
        routed(&FORWARD.replace("\"sys", "\"ip rule add fwmark 1 table 7; sys"), "") + &ping,
        routed("", BACK) + &ping + "may_fail = true\n",
        // An address of the router's other side is its own wherever it is asked for.
        routed("", BACK) + &app("a", "ping -c 1 10.0.1.254"),
    ];
    for text in cases {
        let (warnings, _) = told(text);
        assert_eq!(warnings, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_warning_that_did_not_come_true_fails_nothing() {
    let text = PAIR.replace("10.0.0.2/24", "10.0.1.2/24")
        + &app("b", "ip addr add 10.0.0.2/24 dev eth0")
        + &app("a", "ping -c 1 10.0.0.2")
        + "at = \"1s\"\n";
    let (warnings, outcome) = told(&text);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(!outcome.record.warnings[0].came_true && outcome.record.succeeded());
}

#[test]
fn a_run_without_traffic_says_so() {
    let (warnings, outcome) = told(PAIR);
    let want = "2: warning: nothing is sent in this run: there is no [[app]], no [[flow]] and no [[test]] | \
                add e.g. [[app]] with on = \"a\" and run = \"ping -c 3 b\"";
    assert_eq!(warnings, [want]);
    assert!(outcome.record.succeeded());
    // Who expects something of the setups alone knows it.
    let expects = format!("{PAIR}[[expect]]\nwhat = \"a eth0 drops\"\nvalue = \"0\"\n");
    assert_eq!(told(&expects).0, Vec::<String>::new());
}

#[test]
fn rates_in_bytes_are_told() {
    let text = PAIR.replace("10mbit", "10mbps") + &app("a", "ping -c 1 10.0.0.2");
    let (warnings, outcome) = told(&text);
    let want =
        "8: warning: 10mbps is 80 Mbit/s: tc's bps are bytes per second | write 10mbit where bits are meant";
    assert_eq!(warnings, [want]);
    assert!(outcome.record.succeeded());
}

#[test]
fn what_ends_before_it_begins_is_refused() {
    for (line, want) in [
        ("fping -c 1 10.0.0.2", "a fping: there is no program \"fping\" on the simulator"),
        ("iperf3 -c 10.0.0.2 -Q", "a iperf3: iperf3: invalid option -- 'Q'"),
        ("scp none b:", "a scp: none: No such file or directory"),
    ] {
        let text = PAIR.to_owned() + &app("a", line);
        let refused = |text: &str| {
            let experiment = experiment::parse(text, "x.toml").unwrap();
            let options = &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
            run(&experiment, options).err().map(|d| (d[0].line, d[0].message.clone()))
        };
        assert_eq!(refused(&text), Some((11, want.to_owned())), "{line}");
        assert_eq!(refused(&(text + "may_fail = true\n")), None, "{line}");
    }
    let (_, outcome) = told(&(PAIR.to_owned() + &app("a", "iperf -h") + &app("a", "sleep 1")));
    assert!(!outcome.record.succeeded(), "its status is 1");
}

#[test]
fn a_program_cut_off_shows_its_figure_so_far() {
    let text = PAIR.to_owned()
        + &app("b", "iperf -s")
        + &app("a", "iperf -c 10.0.0.2 -t 10")
        + "[[expect]]\nwhat = \"a iperf throughput\"\nvalue = \">1mbit\"\n";
    let (_, outcome) = told(&text);
    let client = outcome.record.apps.iter().find(|a| a.name == "a iperf").unwrap();
    assert_eq!((client.exit, client.throughput_bit_s), (None, None));
    let rate = client.so_far_bit_s.unwrap();
    assert!((8.5e6..9.6e6).contains(&rate), "{rate}");
    let why = outcome.record.expects[0].why.clone().unwrap();
    assert!(why.starts_with("a iperf throughput: the run ended (at 2 s) before the program did"), "{why}");
}
