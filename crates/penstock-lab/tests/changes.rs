//! Links that change in a run, switches, and flent's tests by their names.

use penstock_lab::experiment::{self, Experiment, Threads};
use penstock_lab::run::{self, Options, Outcome};

fn parse(text: &str) -> Experiment {
    experiment::parse_with(text, "x.toml", &|name| match name {
        "lte" => Ok("2\n2\n5\n10\n".to_owned()),
        "bad" => Ok("5\n4\n".to_owned()),
        _ => Err("there is no such file".to_owned()),
    })
    .unwrap_or_else(|d| panic!("{}", d[0]))
}

fn run_on(text: &str, threads: Threads) -> Outcome {
    let mut options = Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
    run::run(&parse(text).on_threads(threads), &mut options).unwrap_or_else(|d| panic!("{}", d[0]))
}

fn run(text: &str) -> Outcome {
    run_on(text, Threads::One)
}

/// Two hosts at a link, and a stream of datagrams that is more than it can carry.
fn line(link: &str, rest: &str) -> String {
    format!(
        "duration = \"10s\"\nsample = \"100ms\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\n\
         {link}\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nudp = true\n{rest}\n"
    )
}

const FULL: &str = "load = { rate = \"20mbit\", size = 1472 }";

/// Mean goodput from one time to another, Mbit/s.
fn goodput(outcome: &Outcome, from: f64, to: f64) -> f64 {
    let points = outcome.series.points("", "flow f", "goodput_bit_s");
    let within: Vec<f64> =
        points.iter().filter(|p| p.0 > from + 1e-9 && p.0 <= to + 1e-9).map(|p| p.1).collect();
    within.iter().sum::<f64>() / within.len() as f64 / 1e6
}

fn near(value: f64, wanted: f64) {
    assert!((value / wanted - 1.0).abs() < 0.01, "{value}, not {wanted}");
}

#[test]
fn a_rate_follows_a_list_a_ramp_and_turns() {
    // Of 1538 bytes on the wire 1472 are payload.
    let share = 1472.0 / 1538.0;
    let list =
        run(&line("rate = [{ at = \"0s\", value = \"10mbit\" }, { at = \"4s\", value = \"2mbit\" }]", FULL));
    near(goodput(&list, 1.0, 4.0), 10.0 * share);
    near(goodput(&list, 5.0, 10.0), 2.0 * share);
    let ramp = run(&line(
        "rate = { ramp = [\"2mbit\", \"10mbit\"], from = \"2s\", to = \"10s\", every = \"10ms\" }",
        FULL,
    ));
    near(goodput(&ramp, 0.5, 2.0), 2.0 * share);
    near(goodput(&ramp, 2.0, 10.0), 6.0 * share);
    let turns = run(&line("rate = { steps = [\"10mbit\", \"1mbit\"], every = \"1s\" }", FULL));
    near(goodput(&turns, 0.2, 1.0), 10.0 * share);
    let sine =
        run(&line("rate = { sine = [\"2mbit\", \"10mbit\"], period = \"2s\", every = \"10ms\" }", FULL));
    near(goodput(&sine, 2.0, 10.0), 6.0 * share);
    near(goodput(&sine, 2.4, 2.6), 10.0 * share);
}

#[test]
fn a_trace_carries_1500_bytes_a_line() {
    // Four lines in 10 ms: 4.8 Mbit/s of IP packets, of which 28 bytes in 1500 are headers.
    let outcome = run(&line("rate = { trace = \"@lte\" }", FULL));
    near(goodput(&outcome, 1.0, 10.0), 4.8 * 1472.0 / 1500.0);
    let link = &outcome.record.rig.links[0];
    assert_eq!(link.rate_bit_s, Some(4.8e6));
    let faults = experiment::parse_with(&line("rate = { trace = \"@bad\" }", FULL), "x.toml", &|_| {
        Ok("5\n4\n".to_owned())
    });
    assert_eq!(faults.unwrap_err()[0].message, "trace: bad: line 2: 4 comes behind 5");
}

#[test]
fn delay_loss_and_interruptions_are_those_of_the_moment() {
    let small = "load = { size = 100, gap = \"10ms\" }\ntrace = true";
    let outcome = run(&line(
        "rate = \"10mbit\"\ndelay = [{ at = \"0s\", value = \"10ms\" }, { at = \"5s\", value = \"50ms\" }]\n\
         loss = [{ at = \"0s\", value = \"0%\" }, { at = \"8s\", value = \"100%\" }]\ndown = [{ from = \"2s\", to = \"3s\" }]",
        small,
    ));
    let flow = &outcome.record.flows[0];
    let lost =
        |reason: &str| flow.losses.iter().filter(|l| l.reason == reason).map(|l| l.packets).sum::<u64>();
    // Of a hundred a second: those that leave in the second, and the one that was on its way when it began.
    assert!((100..=102).contains(&lost("down")), "{:?}", flow.losses);
    assert!((200..=201).contains(&lost("loss")), "{:?}", flow.losses);
    assert_eq!(
        flow.sent_packets,
        flow.received_packets + flow.lost_packets + flow.in_flight_packets.unwrap_or(0)
    );
    let owd: Vec<(f64, f64)> = outcome.series.points("", "flow f", "owd_ms").to_vec();
    let at =
        |from: f64, to: f64| owd.iter().filter(|p| p.0 > from && p.0 < to).map(|p| p.1).collect::<Vec<_>>();
    assert!(at(0.5, 1.9).iter().all(|d| (10.0..10.3).contains(d)), "{:?}", at(0.5, 1.9));
    assert!(at(5.3, 7.9).iter().all(|d| (50.0..50.3).contains(d)), "{:?}", at(5.3, 7.9));
}

#[test]
fn an_end_changes_by_itself() {
    let text = line("rate = \"10mbit\"", FULL).replace(
        "\"a:eth0\", \"b:eth0\"",
        "{ end = \"a:eth0\", rate = { steps = [\"4mbit\", \"8mbit\"], every = \"5s\" }, down = [{ from = \"1s\", to = \"2s\" }] }, \"b:eth0\"",
    );
    let outcome = run(&text);
    near(goodput(&outcome, 6.0, 10.0), 8.0 * 1472.0 / 1538.0);
    assert_eq!(goodput(&outcome, 1.1, 2.0), 0.0);
}

#[test]
fn changes_are_the_same_by_any_number_of_threads() {
    let text = line(
        "rate = { steps = [\"10mbit\", \"2mbit\", \"0bit\"], every = \"300ms\" }\ndelay = { ramp = [\"30ms\", \"4ms\"] }\nloss = { steps = [\"0%\", \"1%\"], every = \"1s\" }\n\
         down = [{ from = \"5s\", to = \"5200ms\" }]",
        "load = { size = 900, gap = \"1ms\" }\n[[flow]]\nname = \"t\"\nfrom = \"b\"\nto = \"a\"\nload = \"greedy\"\ncount = 3",
    )
    .replace("\"0bit\"]", "\"0bit\", \"6mbit\"]");
    let one = run(&text);
    let two = run_on(&text, Threads::Always(2));
    assert_eq!(two.one_thread, None);
    assert!(one.record.to_json() == two.record.to_json() && one.series == two.series);
    assert!(one.record.flows[1].goodput_bit_s > 1e6, "{}", one.record.flows[1].goodput_bit_s);
}

#[test]
fn what_cannot_change_is_told_with_its_place() {
    let fault = |link: &str| {
        let faults = experiment::parse(&line(link, FULL), "x.toml").unwrap_err();
        (faults[0].line, faults[0].message.clone())
    };
    for (link, said) in [
        ("rate = [{ at = \"1s\", value = \"1mbit\" }]", "rate: nothing is said of the beginning"),
        (
            "rate = [{ at = \"0s\", value = \"1mbit\" }, { at = \"0s\", value = \"1mbit\" }]",
            "rate: this is not later than the one above",
        ),
        (
            "rate = [{ at = \"0s\", value = \"1mbit\" }, { at = \"1s\", value = \"0bit\" }]",
            "rate: the last is 0: nothing would ever leave again",
        ),
        ("rate = []", "rate is an empty list"),
        ("rate = { wave = \"1mbit\" }", "rate: there is no such function of time"),
        ("rate = { sine = [\"1mbit\", \"2mbit\"] }", "rate: a sine has a period"),
        ("rate = { ramp = [\"1mbit\"] }", "rate: ramp has two values"),
        ("rate = { trace = \"lte\" }", "trace must name a file"),
        ("rate = \"1mbit\"\ndelay = { steps = [\"1ms\"] }", "delay: steps take turns"),
        (
            "rate = \"1mbit\"\nloss = { steps = [\"200%\"], every = \"1s\" }",
            "loss: \"200%\" is not a probability",
        ),
        ("rate = \"1mbit\"\ndown = [{ from = \"2s\", to = \"1s\" }]", "down: it ends before it begins"),
        (
            "rate = \"1mbit\"\nduplex = \"half\"\ndown = [{ from = \"1s\", to = \"2s\" }]",
            "a shared medium does not change in a run",
        ),
    ] {
        assert_eq!(fault(link).1, said, "{link}");
        assert!(fault(link).0 >= 7, "{link}");
    }
}

const SWITCH: &str = r#"
duration = "3s"
[host."u{1..3}"]
eth0 = "10.0.0.{n}/24"
[host.server]
eth0 = "10.0.0.9/24"
[switch.sw]
ports = ["u{1..3}:eth0", { end = "server:eth0", rate = "20mbit" }]
rate = "10mbit"
limit = 50
[[flow]]
from = "u{1..2}"
to = "server"
load = "greedy"
[[flow]]
name = "down"
from = "server"
to = "u1"
load = "greedy"
"#;

#[test]
fn a_switch_has_full_duplex_ports_with_queues_of_their_own() {
    let outcome = run(SWITCH);
    assert!(outcome.record.warnings.is_empty(), "{:?}", outcome.record.warnings);
    let goodput =
        |name: &str| outcome.record.flows.iter().find(|f| f.name == name).unwrap().goodput_bit_s / 1e6;
    // Each its own port: two at 10 Mbit/s into one of 20, and one back at the same time.
    for name in ["u1-server", "u2-server", "down"] {
        assert!(goodput(name) > 8.3, "{name}: {}", goodput(name));
    }
    let queue = |dev: &str| {
        let device =
            outcome.record.devices.iter().find(|d| (d.host.as_str(), d.dev.as_str()) == ("sw", dev)).unwrap();
        device.qdiscs.iter().find(|q| q.parent == "root").unwrap().clone()
    };
    assert_eq!((queue("p1").kind.as_str(), queue("p4").kind.as_str()), ("pfifo", "pfifo"));
    assert!(queue("p1").drops > 0, "the server sends faster than the port to u1");
    // It has learned: a port that nobody is spoken to at sees what is flooded, and no more.
    assert!(
        queue("p3").packets < 20 && queue("p1").packets > 1000,
        "{} {}",
        queue("p3").packets,
        queue("p1").packets
    );
    let switch = outcome.record.rig.hosts.iter().find(|h| h.name == "sw").unwrap();
    assert_eq!((switch.system.as_deref(), switch.devices.len()), (Some("switch"), 5));
}

#[test]
fn a_switch_joins_links_and_says_what_is_wrong() {
    let text = SWITCH
        .replace(
            "ports = [\"u{1..3}:eth0\", { end = \"server:eth0\", rate = \"20mbit\" }]",
            "ports = [\"u{1..3}:eth0\"]\nqdisc = \"fq_codel\"",
        )
        .replace("limit = 50\n", "")
        + "[[link]]\nends = [\"sw:up\", \"server:eth0\"]\nrate = \"5mbit\"\n";
    let outcome = run(&text);
    let total: f64 = outcome.record.flows.iter().filter(|f| f.to == "server").map(|f| f.goodput_bit_s).sum();
    assert!((4.3e6..4.8e6).contains(&total), "{total}");
    let fault = |from: &str, to: &str| {
        experiment::parse(&SWITCH.replace(from, to), "x.toml").unwrap_err()[0].message.clone()
    };
    assert_eq!(
        fault("limit = 50", "limit = 50\nqdisc = \"fq_codel\""),
        "a port has either \"limit\" or \"qdisc\""
    );
    assert_eq!(fault("limit = 50", "limits = 50"), "[switch.sw] has no key \"limits\"");
    assert_eq!(fault("[switch.sw]", "[switch.u1]"), "there is a host \"u1\" already");
    assert_eq!(fault("\"u{1..3}:eth0\", ", "\"u9:eth0\", "), "there is no host \"u9\"");
}

#[test]
fn a_test_of_flents_is_what_flent_sends() {
    let text = |run: &str| {
        format!(
            "duration = \"20s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"20mbit\"\ndelay = \"5ms\"\n\
             [[test]]\n{run}\nfrom = \"a\"\nto = \"b\"\n"
        )
    };
    let outcome = run(&text("run = \"rrul\""));
    assert_eq!(outcome.test.as_deref(), Some("rrul"));
    let names: Vec<&str> =
        outcome.record.flows.iter().filter(|f| f.app.is_none()).map(|f| f.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "TCP upload BE",
            "TCP upload BK",
            "TCP upload CS5",
            "TCP upload EF",
            "TCP download BE",
            "TCP download BK",
            "TCP download CS5",
            "TCP download EF",
            "Ping (ms) UDP EF",
            "Ping (ms) UDP BK",
            "Ping (ms) UDP BE"
        ]
    );
    let group = |name: &str| outcome.record.groups.iter().find(|g| g.name == name).unwrap();
    assert!(group("upload").goodput_bit_s > 1.2e7 && group("download").goodput_bit_s > 1.2e7);
    assert_eq!((group("upload").flows, group("ping").flows), (4, 3));
    let ping = &outcome.record.apps[0];
    assert_eq!((ping.name.as_str(), ping.run.as_str()), ("Ping (ms) ICMP", "ping -n -D -i 0.20 -w 20 b"));
    assert!(ping.rtt_ms.unwrap().mean > 10.0);
    // Streams begin after flent's DELAY, a tenth of this run, and end as long before its end.
    let stream = &outcome.record.flows[0];
    assert_eq!((stream.start_s, stream.end_s.map(f64::round)), (Some(2.0), Some(18.0)));
    let flows = |run: &str| parse(&text(run)).flows.len();
    assert_eq!(
        (flows("run = \"tcp_8up\""), flows("run = \"tcp_ndown\"\nstreams = 16"), flows("run = \"voip\"")),
        (8, 16, 2)
    );
    let fault = |run: &str| {
        let faults = experiment::parse(&text(run), "x.toml").unwrap_err();
        format!("{}: {}", faults[0].message, faults[0].help)
    };
    assert_eq!(fault("run = \"rrull\""), "flent has no test \"rrull\": did you mean \"rrul\"?");
    assert_eq!(fault("run = \"sctp_vs_tcp\""), "flent's test \"sctp_vs_tcp\" is not here: there is no SCTP");
    assert!(fault("run = \"rtt_fair\"").starts_with("rtt_fair has 1 servers, not 4"));
    assert!(fault("run = \"rrul\"\nlength = \"19s\"").starts_with("rrul does not fit into the run"));
    // Who types flent's own line is told.
    let typed = text("run = \"rrul\"").replace(
        "[[test]]\nrun = \"rrul\"\nfrom = \"a\"\nto = \"b\"",
        "[[app]]\non = \"a\"\nrun = \"flent tcp_8up -H b\"",
    );
    let mut options = Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
    let faults = run::run(&parse(&typed), &mut options).err().unwrap();
    assert_eq!(
        faults[0].help,
        "in its place write [[test]] with run = \"tcp_8up\", from = \"a\" and to = a host"
    );
    // Every one of the list makes an experiment.
    for name in experiment::TESTS.into_iter().chain(experiment::CALLS) {
        let to = match name {
            "rtt_fair6be" => "to = [\"b\", \"b\", \"b\", \"b\", \"b\", \"b\"]",
            "rtt_fair" | "rtt_fair4be" | "rtt_fair_up" => "to = [\"b\", \"b\", \"b\", \"b\"]",
            _ => "to = \"b\"",
        };
        let made = experiment::parse(&text(&format!("run = \"{name}\"")).replace("to = \"b\"", to), "x.toml");
        assert!(made.is_ok() || name.starts_with("rtt_fair"), "{name}: {}", made.unwrap_err()[0]);
    }
}

/// What only the simulator has is told before anything of the machine is asked for, once for each place.
#[test]
fn other_grounds_refuse_by_name() {
    let text = format!(
        "{}[[test]]\nrun = \"rrul\"\nfrom = \"a\"\nto = \"b\"\n",
        line("rate = { trace = \"@lte\" }", FULL)
    );
    let text = text.replace("eth0 = \"10.0.0.1/24\"", "eth0 = { address = \"10.0.0.1/24\", capture = true }");
    let mut options = Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
    for ground in [run::Ground::Kernel, run::Ground::Virtual] {
        let faults = run::run_on(ground, &parse(&text), &mut options).err().unwrap();
        let said: Vec<&str> = faults.iter().map(|d| d.message.as_str()).collect();
        let line = said.iter().filter(|s| s.starts_with("a rate, delay")).count();
        assert!(
            said.contains(&"a rate, delay or loss that changes, and down: only the simulator has this"),
            "{said:?}"
        );
        assert!(said.contains(&"capture a-eth0: only the simulator has this"), "{said:?}");
        // Probes, pages and streams of a test run there.
        assert!(line == 1 && !said.iter().any(|s| s.contains("load") || s.contains("pages")), "{said:?}");
    }
}
