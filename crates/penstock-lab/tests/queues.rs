//! Queues before links, ECN over links, loads of many connections, and what is measured of groups.

use penstock_lab::experiment::parse_with;
use penstock_lab::run::{Options, Outcome, run};

const NET: &str = r#"
duration = "12s"
[host.a]
eth0 = "10.0.1.2/24"
via  = "10.0.1.1"
[host.r]
eth0  = "10.0.1.1/24"
eth1  = "10.0.2.1/24"
setup = ["sysctl -w net.ipv4.ip_forward=1"]
[host.b]
eth0 = "10.0.2.2/24"
via  = "10.0.2.1"
[[link]]
ends = ["a:eth0", "r:eth0"]
rate = "20mbit"
delay = "5ms"
"#;

fn experiment(text: &str) -> Outcome {
    let read = parse_with(text, "test.toml", &|_| Err("there is no such file".to_owned()));
    let experiment = read.unwrap_or_else(|d| panic!("{}", d[0]));
    run(&experiment, &mut Options { seed: None, progress: &mut |_| {} })
        .unwrap_or_else(|d| panic!("{}", d[0]))
}

const RED: &str = "queue = { kind = \"ns2_red\", limit = 60, thresh = 5, maxthresh = 15, q_weight = 0.02, setbit = true, use_mark_p = false, queue_in_bytes = false, \
    bytes = false, mean_pktsize = 1500 }";
const FOUR: &str = "[[flow]]\nname = \"f\"\ngroup = \"g\"\nfrom = \"a\"\nto = \"b\"\ncount = 4\ntcp = { ecn = true }\nload = \"greedy\"\n";

#[test]
fn red_marks_and_bleaching_takes_the_marks_away() {
    let with = |ecn: &str| {
        let net = NET.replace("delay = \"5ms\"\n", &format!("delay = \"5ms\"\n{ecn}"));
        let text = format!(
            "warmup = \"2s\"\n{net}[[link]]\nends = [\"r:eth1\", \"b:eth0\"]\nrate = \"2mbit\"\ndelay = \"5ms\"\nframing = \"ip\"\n{RED}\n{FOUR}"
        );
        experiment(&text)
    };
    let (clear, bleached) = (with(""), with("ecn = \"bleach\"\n"));
    let group = |o: &Outcome| o.record.groups[0].clone();
    let at_router = |o: &Outcome| {
        let links = group(o).links;
        let at = links.iter().find(|l| (l.host.as_str(), l.dev.as_str()) == ("r", "eth1"));
        at.map_or((0, 0), |l| (l.marked_packets, l.lost_packets))
    };
    let (marked, lost) = at_router(&clear);
    assert!(marked > 20 && lost == 0, "{marked} {lost}");
    let (marked, lost) = at_router(&bleached);
    assert!(marked == 0 && lost > 20, "{marked} {lost}");
    let g = group(&clear);
    // 2 Mbit/s of IP packets, less TCP's headers.
    assert!((1.75e6..1.97e6).contains(&g.goodput_bit_s), "{}", g.goodput_bit_s);
    assert!(g.fairness.unwrap() > 0.8 && g.min_over_max.unwrap() > 0.2);
    assert!(g.retransmission_rate.unwrap() < 0.01 && group(&bleached).retransmission_rate.unwrap() > 0.01);
    assert!(group(&bleached).loss_synchronisation.unwrap() >= 0.25);
    // The average is kept near 15 packets of 6 ms.
    let device = clear.record.devices.iter().find(|d| (d.host.as_str(), d.dev.as_str()) == ("r", "eth1"));
    let wait = device.unwrap().sojourn_ms.unwrap();
    assert!((20.0..150.0).contains(&wait.mean), "{wait:?}");
    assert_eq!(device.unwrap().qdiscs[0].kind, "ns2_red");
}

#[test]
fn pages_and_arrivals_complete() {
    let text = concat!(
        "[[link]]\nends = [\"r:eth1\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"5ms\"\n",
        "queue = { kind = \"ns2_droptail\", limit = 100 }\n",
        "[[flow]]\nname = \"p\"\ngroup = \"pages\"\nfrom = \"a\"\nto = \"b\"\ncount = 2\nload = { pages = \"10k\", think = \"200ms\" }\n",
        "[[flow]]\nname = \"w\"\ngroup = \"web\"\nfrom = \"a\"\nto = \"b\"\nload = { arrivals = \"100ms\", bytes = \"10k\", shape = 1.5 }\n",
    );
    let out = experiment(&format!("{NET}{text}"));
    let group = |name: &str| out.record.groups.iter().find(|g| g.name == name).unwrap().clone();
    let pages = group("pages");
    // Some four round trips of 20 ms and more a page, then the pause.
    let done = pages.completed.unwrap();
    assert!((50..100).contains(&done), "{done}");
    let took = pages.completion_ms.unwrap();
    assert!((40.0..160.0).contains(&took.p50), "{took:?}");
    let web = group("web");
    assert!((85..160).contains(&web.flows), "{}", web.flows);
    assert!(web.completed.unwrap() > web.flows * 8 / 10);
    assert!(
        out.record.flows.iter().filter(|f| f.group.as_deref() == Some("web")).count() as u64 == web.flows
    );
}
