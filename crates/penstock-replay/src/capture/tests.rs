use super::*;
use penstock_model::Kernel;

const HTB: &str = "qdisc add dev eth0 root handle 1: htb default 20\nclass add dev eth0 parent 1: classid 1:10 htb rate 8mbit burst 1500\n\
    class add dev eth0 parent 1: classid 1:20 htb rate 1mbit burst 1500\nqdisc add dev eth0 parent 1:20 handle 20: pfifo limit 2\n\
    filter add dev eth0 parent 1: protocol ip u32 match ip dport 5001 0xffff flowid 1:10";

fn through(setup: &str, traffic: Traffic, change: impl FnOnce(&mut Settings)) -> Replay {
    let mut host = Host::new("h", Kernel::V6_12, 1);
    host.add_device("eth0");
    host.add_device("eth1");
    for line in setup.lines() {
        let words: Vec<String> = match line.starts_with("iptables") {
            true => line.split_whitespace().map(str::to_owned).collect(),
            false => ["tc"].into_iter().chain(line.split_whitespace()).map(str::to_owned).collect(),
        };
        let output = host.command(&words, &mut penstock_host::NoFiles, Time::ZERO);
        assert_eq!(output.status, 0, "{line}: {}", output.stderr);
    }
    let mut settings =
        Settings { dev: None, ingress: false, from: None, rate: None, drain: Span::from_ns(60_000_000_000) };
    change(&mut settings);
    run(host, Time::ZERO, traffic, settings).unwrap_or_else(|wrong| panic!("{wrong:?}"))
}

fn lines(text: &str) -> Traffic {
    read(text.as_bytes(), "lines").unwrap()
}

#[test]
fn classes_waits_and_losses_are_told() {
    let traffic = lines("{\"len\": 1000, \"dport\": 5001, \"repeat\": 3}\n{\"len\": 1000, \"repeat\": 5}\n");
    let replay = through(HTB, traffic, |_| {});
    let answer = replay.json();
    let of = |class: &str| -> Vec<i64> {
        let rows = answer["departures"].as_array().unwrap();
        rows.iter().filter(|d| d["class"] == class).map(|d| d["delay_ns"].as_i64().unwrap()).collect()
    };
    // Two packets are the burst and one more; the third waits for its tokens.
    assert_eq!(of("1:10").len(), 3);
    assert_eq!(of("1:10")[..2], [0, 0]);
    assert_eq!(of("1:20").len(), 4, "{answer:#}");
    assert!(of("1:20")[3] > of("1:20")[2] && of("1:20")[2] > of("1:10")[2], "{answer:#}");
    let drops = answer["drops"].as_array().unwrap();
    assert_eq!(drops.len(), 1);
    assert_eq!((&drops[0]["class"], &drops[0]["reason"]), (&json!("1:20"), &json!("overlimit")));
    assert_eq!(fate_text(&replay, 7), "class 1:20, dropped: overlimit (qdisc)");
    assert!(
        replay.text().starts_with("8 packets in 0.000 s through eth0: 7 left, 1 dropped\n"),
        "{}",
        replay.text()
    );
}

#[test]
fn a_line_has_a_rate() {
    let replay = through(
        "qdisc add dev eth0 root handle 1: pfifo limit 100",
        lines("{\"len\": 1226, \"repeat\": 3}"),
        |s| s.rate = Some(Rate::parse("10mbit").unwrap()),
    );
    let times: Vec<i64> =
        replay.json()["departures"].as_array().unwrap().iter().map(|d| d["t_ns"].as_i64().unwrap()).collect();
    // 1226 bytes and the 24 around them: 1 ms each.
    assert_eq!(times, [0, 1_000_000, 2_000_000]);
}

#[test]
fn rules_mark_and_drop_before_the_queue() {
    let setup = "qdisc add dev eth0 root handle 1: prio\nfilter add dev eth0 parent 1: protocol ip handle 7 fw flowid 1:3\n\
        iptables -t mangle -A FORWARD -i eth1 -p udp --dport 7 -j MARK --set-mark 7\niptables -A FORWARD -p tcp -j DROP";
    let text = "{\"dport\": 7}\n{\"dport\": 8}\n{\"proto\": \"tcp\"}\n";
    let replay = through(setup, lines(text), |s| s.from = Some("eth1".to_owned()));
    assert_eq!(fate_text(&replay, 0), "class 1:3, waited 0.000000 ms, left by eth0, mark 7");
    assert_eq!(fate_text(&replay, 1), "class 1:2, waited 0.000000 ms, left by eth0");
    assert_eq!(fate_text(&replay, 2), "dropped: dropped (FORWARD)");
}

#[test]
fn commands_among_the_packets_act() {
    let text = "{\"repeat\": 4}\n{\"t_us\": 10, \"run\": \"qdisc del dev eth0 root\"}\n{\"t_us\": 20, \"run\": \"qdisc del dev eth0 root\"}\n{\"t_us\": 30}\n";
    let replay = through(
        "qdisc add dev eth0 root handle 1: tbf rate 8kbit burst 120 limit 10000",
        lines(text),
        |_| {},
    );
    assert_eq!(fate_text(&replay, 3), "class 1:1, dropped after 0.010000 ms: purged (qdisc)");
    assert_eq!(replay.played.refused.len(), 1);
    assert_eq!(fate_text(&replay, 6), "waited 0.000000 ms, left by eth0");
}

#[test]
fn what_is_written_is_read_again() {
    let setup =
        "qdisc add dev eth0 root handle 1: prio\niptables -t mangle -A POSTROUTING -j TOS --set-tos 0x10";
    let text = "{\"t_us\": 1000, \"len\": 300}\n{\"t_us\": 3000, \"len\": 400, \"proto\": \"tcp\"}\n";
    let replay = through(setup, lines(text), |_| {});
    let mut bytes = Vec::new();
    write(&replay, &mut bytes).unwrap();
    assert!(is_capture(&bytes));
    let again = read(&bytes, "again").unwrap();
    assert_eq!((again.epoch_ns, again.moments[1].t_ns), (1_000_000, 2_000_000));
    let What::Packet(skb) = &again.moments[0].what else { panic!() };
    assert_eq!((skb.len, skb.tos()), (300, 0x10));
    let shown = String::from_utf8_lossy(&bytes);
    // Its priority is the socket's: what POSTROUTING does to the ToS comes too late for that.
    assert!(shown.contains("class 1:2, waited 0.000000 ms, left by eth0"), "{shown}");
    // The checksum is right again: the whole header sums to ffff.
    let header = &again.moments[0].bytes[14..34];
    let sum: u32 = header.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c[1])).sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
}

#[test]
fn the_device_is_asked_for_where_it_is_not_clear() {
    let refused = |setup: &[&str], dev: Option<&str>| {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        host.add_device("eth0");
        host.add_device("eth1");
        for line in setup {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(host.command(&words, &mut penstock_host::NoFiles, Time::ZERO).status, 0);
        }
        let settings = Settings {
            dev: dev.map(str::to_owned),
            ingress: false,
            from: None,
            rate: None,
            drain: Span::ZERO,
        };
        run(host, Time::ZERO, lines("{}"), settings).err().map(|wrong| wrong[0].message.clone())
    };
    assert_eq!(refused(&[], None).unwrap(), "no device has a qdisc of its own");
    let both = ["tc qdisc add dev eth0 root prio", "tc qdisc add dev eth1 root prio"];
    assert_eq!(refused(&both, None).unwrap(), "eth0, eth1 have qdiscs");
    assert_eq!(refused(&both[..1], None), None);
    assert_eq!(refused(&both, Some("eth7")).unwrap(), "the machine has no device eth7");
}

#[test]
fn packets_arrive_through_the_ingress_hook() {
    let setup = "qdisc add dev eth1 clsact\n\
                 filter add dev eth1 ingress protocol ip prio 1 u32 match ip dport 80 0xffff action police rate 80kbit burst 2000 conform-exceed drop/ok\n\
                 filter add dev eth1 ingress protocol ip prio 2 matchall action skbedit mark 7";
    let packets =
        "{\"len\": 1000, \"dport\": 80, \"repeat\": 5}\n{\"len\": 500, \"dport\": 53, \"t_us\": 100}";
    let replay = through(setup, lines(packets), |s| s.ingress = true);
    assert!(
        replay.text().starts_with("6 packets in 0.000 s into eth1: 3 got in, 3 dropped\n"),
        "{}",
        replay.text()
    );
    assert_eq!(fate_text(&replay, 5), "waited 0.000000 ms, got in by eth1, mark 7");
    assert_eq!(fate_text(&replay, 4), "dropped: filter (ingress)");
    let filters = replay.json()["filters"].to_string();
    assert!(filters.contains("dropped 3, overlimits 3"), "{filters}");
}

#[test]
fn an_ifb_shapes_what_arrives() {
    let setup = "qdisc add dev eth1 handle ffff: ingress\n\
                 filter add dev eth1 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0\n\
                 qdisc add dev ifb0 root handle 1: htb default 1\n\
                 class add dev ifb0 parent 1: classid 1:1 htb rate 800kbit burst 1514 cburst 1514";
    let traffic = lines("{\"len\": 1000, \"repeat\": 4}");
    let mut host = Host::new("h", Kernel::V6_12, 1);
    host.add_device("eth1");
    for line in std::iter::once("ip link add ifb0 type ifb").chain(std::iter::once("ip link set ifb0 up")) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(host.command(&words, &mut penstock_host::NoFiles, Time::ZERO).status, 0, "{line}");
    }
    for line in setup.lines() {
        let words: Vec<String> =
            ["tc"].into_iter().chain(line.split_whitespace()).map(str::to_owned).collect();
        let output = host.command(&words, &mut penstock_host::NoFiles, Time::ZERO);
        assert_eq!(output.status, 0, "{line}: {}", output.stderr);
    }
    let drain = Span::from_ns(60_000_000_000);
    let settings = Settings { dev: Some("eth1".to_owned()), ingress: true, from: None, rate: None, drain };
    let replay = run(host, Time::ZERO, traffic, settings).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let answer = replay.json();
    let rows = answer["departures"].as_array().unwrap();
    let waits: Vec<i64> = rows.iter().map(|d| d["delay_ns"].as_i64().unwrap() / 1_000_000).collect();
    // Ten milliseconds each; the burst of one and a half lets two go at once, and the second half is owed.
    assert_eq!(rows.len(), 4, "{answer:#}");
    assert!(rows.iter().all(|d| d["class"] == "1:1"), "{answer:#}");
    assert_eq!(waits, [0, 0, 4, 14]);
}

#[test]
fn long_frames_of_tcp_are_super_packets() {
    // Twenty segments, of which each has its headers in the queue; a burst shorter than that lets them in one by one.
    let frame = "{\"proto\": \"tcp\", \"len\": 29254, \"sport\": 1, \"dport\": 2}\n";
    let tbf = "qdisc add dev eth0 root handle 1: tbf rate 8mbit burst 5000 limit 20000";
    let replay = through(tbf, lines(frame), |_| {});
    let answer = replay.json();
    assert_eq!(answer["qdiscs"][0]["packets"], json!(13));
    assert_eq!(answer["qdiscs"][0]["drops"], json!(7));
    let rows = answer["departures"].as_array().unwrap();
    // 13 segments of 1514 bytes are 19682, of which 5000 leave at once.
    assert_eq!((rows.len(), rows[0]["t_ns"].as_i64()), (1, Some(14_682_000)), "{answer:#}");
    assert_eq!(
        replay.notes,
        [
            "1 frame of TCP longer than the MTU: super-packets, where they were captured (offloads), and so here",
            "7 segments of packets that left otherwise were dropped"
        ]
    );
    let whole = through("qdisc add dev eth0 root handle 1: pfifo limit 1", lines(frame), |s| {
        s.rate = Some(Rate::parse("10mbit").unwrap());
    });
    assert_eq!(whole.json()["qdiscs"][0]["packets"], json!(20));
    assert_eq!(whole.json()["departures"].as_array().map(Vec::len), Some(1));
}
