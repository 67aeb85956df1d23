//! TCP as machines set it up: `sysctl`, `ip route`, `fq` below it; and ns-2's agents beside ns-2's own figures.

use penstock_lab::experiment::{self, parse_with};
use penstock_lab::run::{Options, Outcome, run};

/// Two machines 40 ms apart and a router with a short queue before 10 Mbit/s.
fn experiment(a: &str, b: &str, rest: &str) -> Outcome {
    let text = format!(
        r#"
duration = "6s"
[host.a]
eth0  = "10.0.1.2/24"
via   = "10.0.1.1"
setup = [{a}]
[host.r]
eth0  = "10.0.1.1/24"
eth1  = "10.0.2.1/24"
setup = ["sysctl -w net.ipv4.ip_forward=1", "tc qdisc add dev eth1 root pfifo limit 25"]
[host.b]
eth0  = "10.0.2.2/24"
via   = "10.0.2.1"
setup = [{b}]
[[link]]
ends  = ["a:eth0", "r:eth0"]
rate  = "100mbit"
delay = "5ms"
[[link]]
ends  = ["r:eth1", "b:eth0"]
rate  = "10mbit"
delay = "15ms"
[[flow]]
from = "a"
to   = "b"
{rest}
"#
    );
    let read = parse_with(&text, "test.toml", &|_| Err("there is no such file".to_owned()));
    go(&read.unwrap_or_else(|d| panic!("{}", d[0])))
}

fn go(experiment: &experiment::Experiment) -> Outcome {
    run(experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        .unwrap_or_else(|d| panic!("{}", d[0]))
}

/// What became of the flow, in all there is of it.
fn trace(o: &Outcome) -> String {
    let gauges = ["cwnd_packets", "srtt_ms", "rto_ms", "retrans_packets"];
    let object = format!("flow {}", o.record.flows[0].name);
    let series: Vec<_> = gauges.iter().map(|m| o.series.points("", &object, m).to_vec()).collect();
    format!("{:?} {series:?}", o.record.flows[0])
}

const LOAD: &str = "load = { bytes = \"3m\" }\n";

#[test]
fn settings_are_the_keys_of_a_flow() {
    let plain = trace(&experiment("", "", LOAD));
    for (setting, key) in [
        ("tcp_congestion_control=reno", "cc = \"reno\""),
        ("tcp_congestion_control=bbr", "cc = \"bbr\""),
        ("tcp_congestion_control=illinois", "cc = \"illinois\""),
        ("tcp_sack=0", "sack = false"),
        ("tcp_ecn=1", "ecn = true"),
        ("tcp_rto_min_us=400000", "min_rto = \"400ms\""),
    ] {
        let command = format!("\"sysctl -w net.ipv4.{setting}\"");
        let by_setting = trace(&experiment(&command, &command, LOAD));
        let by_key = trace(&experiment("", "", &format!("tcp = {{ {key} }}\n{LOAD}")));
        assert_eq!(by_setting, by_key, "{setting}");
        // A queue that does not mark makes nothing of ECN.
        assert!(by_setting != plain || setting.starts_with("tcp_ecn"), "{setting}");
    }
}

#[test]
fn buffers_and_other_settings_change_a_connection() {
    let plain = trace(&experiment("", "", LOAD));
    for (a, b) in [
        ("tcp_wmem='4096 16384 40000'", ""),
        ("", "tcp_rmem='4096 20000 40000'"),
        ("tcp_timestamps=0", ""),
        ("", "tcp_window_scaling=0"),
    ] {
        let command =
            |s: &str| if s.is_empty() { String::new() } else { format!("\"sysctl -w net.ipv4.{s}\"") };
        assert_ne!(trace(&experiment(&command(a), &command(b), LOAD)), plain, "{a}{b}");
    }
    let slow = experiment("\"sysctl -w net.ipv4.tcp_wmem='4096 16384 20000'\"", "", "load = \"greedy\"\n");
    // A send buffer of 20 kB: some eight segments with their overhead in 41 ms.
    let rate = slow.record.flows[0].goodput_bit_s / 1e6;
    assert!((1.2..3.5).contains(&rate), "{rate} Mbit/s");
}

/// The peer hears nothing for three seconds: the timer goes off some times. Each time the hash is drawn anew, and `fq_codel` has but two
/// queues, of which datagrams fill one.
#[test]
fn a_timeout_draws_the_hash_anew_unless_told_otherwise() {
    let go = |setting: &str, qdisc: &str, seed: u32| {
        let text = format!(
            "duration = \"8s\"\nseed = {seed}\n[host.a]\neth0 = \"10.0.0.1/24\"\nsetup = [\"tc qdisc add dev eth0 root {qdisc}\"{setting}]\n\
             [host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"2mbit\"\ndelay = \"5ms\"\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = \"3mbit\"\n\
             [[app]]\non = \"b\"\nrun = \"iptables -A INPUT -p tcp -j DROP\"\nat = \"1s\"\n\
             [[app]]\non = \"b\"\nrun = \"iptables -D INPUT -p tcp -j DROP\"\nat = \"4s\"\n"
        );
        let read = parse_with(&text, "test.toml", &|_| Err("there is no such file".to_owned()));
        trace(&go(&read.unwrap_or_else(|d| panic!("{}", d[0]))))
    };
    let (off, on) = (", \"sysctl -w net.core.txrehash=0\"", ", \"echo 1 > /proc/sys/net/core/txrehash\"");
    let mut others = 0;
    for seed in 1..9 {
        let plain = go("", "fq_codel flows 2", seed);
        assert_eq!(go(on, "fq_codel flows 2", seed), plain);
        others += u32::from(go(off, "fq_codel flows 2", seed) != plain);
        // One queue is one queue.
        assert_eq!(go(off, "pfifo limit 50", seed), go("", "pfifo limit 50", seed));
    }
    assert!(others >= 2, "{others} of 8 runs are not the same without a new hash");
}

#[test]
fn a_congestion_control_that_is_not_simulated_is_refused() {
    let text = |name: &str| {
        format!(
            "duration = \"1s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\nsetup = [\"sysctl -w net.ipv4.tcp_congestion_control={name}\"]\n\
             [host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\n"
        )
    };
    let refusal_of = |text: &str| {
        let read = parse_with(text, "test.toml", &|_| Err("there is no such file".to_owned()));
        let read = read.unwrap_or_else(|d| panic!("{}", d[0]));
        let refused = run(&read, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
            .err()
            .unwrap_or_default();
        refused.into_iter().map(|d| d.message).collect::<Vec<_>>().join("; ")
    };
    let refusal = |name: &str| refusal_of(&text(name));
    let words = "sysctl: setting key \"net.ipv4.tcp_congestion_control\": No such file or directory";
    assert!(refusal("cubik").contains(words), "{}", refusal("cubik"));
    assert_eq!(refusal("vegas") + &refusal("htcp"), "");
    // Linux 2.6.35 had it; the simulator has it as it is today.
    let old = text("htcp").replace("[host.a]", "[host.a]\nkernel = \"2.6.35\"");
    let words = refusal_of(&old);
    assert!(words.starts_with("a: tcp_congestion_control htcp: not simulated in profile 2.6.35"), "{words}");
}

#[test]
fn routes_are_the_keys_of_a_flow() {
    let plain = trace(&experiment("", "", LOAD));
    let to_b = |metric: &str| format!("\"ip route replace default via 10.0.1.1 {metric}\"");
    let to_a = |metric: &str| format!("\"ip route replace default via 10.0.2.1 {metric}\"");
    for (metric, key) in [
        ("initcwnd 3", "initial_window = 3"),
        ("rto_min 400ms", "min_rto = \"400ms\""),
        ("quickack 1", "quickack = true"),
        ("congctl scalable", "cc = \"scalable\""),
        ("congctl lock vegas", "cc = \"vegas\""),
    ] {
        let by_route = trace(&experiment(&to_b(metric), &to_a(metric), LOAD));
        let by_key = trace(&experiment("", "", &format!("tcp = {{ {key} }}\n{LOAD}")));
        assert_eq!(by_route, by_key, "{metric}");
        assert_ne!(by_route, plain, "{metric}");
    }
}

#[test]
fn routes_bound_windows_and_segments() {
    let short = "load = { bytes = \"60k\" }\n";
    let took = |o: &Outcome| o.record.flows[0].end_s.unwrap() - o.record.flows[0].start_s.unwrap();
    let plain = experiment("", "", short);
    for (a, b) in [
        // The peer offers two segments, or eight thousand bytes, at first; or the window grows to four segments.
        ("", "\"ip route replace default via 10.0.2.1 initrwnd 2\""),
        ("", "\"ip route replace default via 10.0.2.1 window 8000\""),
    ] {
        let bounded = experiment(a, b, short);
        assert!(took(&bounded) > took(&plain) + 0.01, "{a}{b}: {} {}", took(&bounded), took(&plain));
    }
    let small = experiment("", "\"ip route replace default via 10.0.2.1 advmss 500\"", short);
    let packets = |o: &Outcome| o.record.flows[0].sent_packets;
    assert!(packets(&small) > 2 * packets(&plain), "{} {}", packets(&small), packets(&plain));
}

#[test]
fn timers_are_as_coarse_as_is_asked() {
    let hz = |hz: u32| trace(&experiment("", "", &format!("tcp = {{ hz = {hz} }}\n{LOAD}")));
    assert_eq!(hz(250), trace(&experiment("", "", LOAD)));
    assert_ne!(hz(10), hz(1000));
}

/// What `fq` on the sender's device says: packets it sent, and how often a flow waited for its time.
fn fq(o: &Outcome) -> (u64, u64) {
    let (_, _, text) = o.tc.iter().find(|(host, dev, _)| host == "a" && dev == "eth0").unwrap();
    // How many flows wait now comes before the counter.
    let throttled = text.split(" gc ").nth(1).and_then(|t| t.split(" throttled ").nth(1));
    let count = throttled.and_then(|t| t.split_whitespace().next()?.parse().ok());
    let device = o.record.devices.iter().find(|d| d.host == "a").unwrap();
    (device.qdiscs[0].packets, count.unwrap_or_else(|| panic!("{text}")))
}

#[test]
fn fq_paces_what_it_carries() {
    let fq_at_a = "\"tc qdisc add dev eth0 root fq\"";
    for cc in ["bbr", "cubic", "reno"] {
        let flow = format!("tcp = {{ cc = \"{cc}\" }}\nload = \"greedy\"\n");
        let own = experiment("", "", &flow);
        let paced = experiment(fq_at_a, "", &flow);
        let (packets, throttled) = fq(&paced);
        let good = |o: &Outcome| o.record.flows[0].goodput_bit_s / 1e6;
        assert!(good(&paced) > 0.9 * good(&own), "{cc}: {} {}", good(&own), good(&paced));
        assert!(throttled > packets / 3, "{cc}: {throttled} of {packets}");
        // Told not to pace, fq leaves the socket to its own timer.
        let unpaced = experiment("\"tc qdisc add dev eth0 root fq nopacing\"", "", &flow);
        assert!(fq(&unpaced).1 <= 1, "{cc}: {:?}", fq(&unpaced));
    }
}

/// ns-2's agents and queues in an experiment's file, against what ns-2 2.35 itself gave for the same (means over twelve seeds
/// and their range, Mbit/s; the program and all its tables: the study aqm-domains).
#[test]
fn ns2_gives_the_same_shares() {
    let cells = [
        ("DT-DT-72", [1.3593, 1.3799], [0.0215, 0.0421]),
        ("DT-RED-gentle-72", [0.8698, 0.8989], [0.4683, 0.5]),
        ("RED-DT-gentle-300", [1.1556, 1.1886], [0.1943, 0.2276]),
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../penstock-study/studies/aqm-domains");
    for (file, end, inter) in cells {
        let read =
            |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).map_err(|e| e.to_string());
        let text = read(&format!("{file}.toml")).unwrap();
        let base = |path: &str| read(path.rsplit('/').next().unwrap_or(path));
        let experiment =
            parse_with(&text, &format!("{file}.toml"), &base).unwrap_or_else(|d| panic!("{}", d[0]));
        let outcome = go(&experiment);
        let good = |groups: &[&str]| {
            let flows =
                outcome.record.flows.iter().filter(|f| groups.contains(&f.group.as_deref().unwrap_or("")));
            flows.map(|f| f.goodput_bit_s / 1e6).sum::<f64>()
        };
        // Half of the range's width beyond it: this is one seed.
        let within = |value: f64, [least, most]: [f64; 2]| {
            let spare = (most - least) / 2.0;
            (least - spare..=most + spare).contains(&value)
        };
        let (far, near) = (good(&["SACK", "NewReno+ECN"]), good(&["NewReno"]));
        assert!(within(far, end) && within(near, inter), "{file}: {far} {near}");
    }
}

#[test]
fn a_route_s_congestion_control_stands_above_a_flow_s() {
    let by_route = "\"ip route replace default via 10.0.1.1 congctl highspeed\"";
    let highspeed = trace(&experiment("", "", &format!("tcp = {{ cc = \"highspeed\" }}\n{LOAD}")));
    assert_eq!(trace(&experiment(by_route, "", &format!("tcp = {{ cc = \"reno\" }}\n{LOAD}"))), highspeed);
    assert_ne!(trace(&experiment("", "", &format!("tcp = {{ cc = \"reno\" }}\n{LOAD}"))), highspeed);
}

#[test]
fn parameters_of_modules_and_settings_of_recovery_are_followed() {
    let plain = |cc: &str| trace(&experiment("", "", &format!("tcp = {{ cc = \"{cc}\" }}\n{LOAD}")));
    let set = |cc: &str, line: &str| {
        trace(&experiment(&format!("\"{line}\""), "", &format!("tcp = {{ cc = \"{cc}\" }}\n{LOAD}")))
    };
    assert_ne!(set("bic", "modprobe tcp_bic beta=300"), plain("bic"));
    let later = "modprobe tcp_hybla; echo 5 > /sys/module/tcp_hybla/parameters/rtt0";
    assert_ne!(set("hybla", later), plain("hybla"));
    assert_eq!(set("bic", "modprobe tcp_bic"), plain("bic"));
    // What fq paces by.
    let fq = "tc qdisc add dev eth0 root fq";
    let ratios = |ss: u32, ca: u32| {
        format!("{fq}; sysctl -w net.ipv4.tcp_pacing_ss_ratio={ss} net.ipv4.tcp_pacing_ca_ratio={ca}")
    };
    assert_eq!(set("cubic", &ratios(200, 120)), set("cubic", fq));
    assert_ne!(set("cubic", &ratios(110, 120)), set("cubic", fq));
    assert_ne!(set("cubic", &ratios(200, 60)), set("cubic", fq));
}

/// What the machine lists as parameters that are followed is what the controls have, and begins alike.
#[test]
fn parameters_are_those_of_the_controls() {
    let of = penstock_tcp::cc::ALGORITHMS
        .iter()
        .flat_map(|a| a.parameters.iter().map(|p| (a.name, p.name, p.default)));
    assert_eq!(penstock_host::followed_parameters().collect::<Vec<_>>(), of.collect::<Vec<_>>());
}
