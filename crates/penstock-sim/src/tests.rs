//! Whole worlds, small.

use crate::*;
use penstock_host::Prefix;
use penstock_model::{Kernel, Rate, Span, Time};

fn mbit(n: u64) -> Option<Rate> {
    Some(Rate::from_bit_per_s(n * 1_000_000))
}
fn secs(s: i64) -> Time {
    Time::from_ns(s * 1_000_000_000)
}
fn address(world: &mut World, host: HostId, device: &str, text: &str) {
    let ifindex = world.host(host).ifindex(device).unwrap();
    world.host_mut(host).add_address(ifindex, Prefix::parse(text).unwrap()).unwrap();
}

/// Two hosts on one link.
pub(crate) fn pair(seed: u64, rate: Option<Rate>, delay: Span) -> (World, HostId, HostId) {
    let mut world = World::new(seed);
    let a = world.add_host("a", Kernel::V6_12);
    let b = world.add_host("b", Kernel::V6_12);
    world.add_link(LinkSpec::new(End::new(a, "eth0"), End::new(b, "eth0"), rate, delay)).unwrap();
    address(&mut world, a, "eth0", "10.0.0.1/24");
    address(&mut world, b, "eth0", "10.0.0.2/24");
    (world, a, b)
}

fn greedy(from: HostId, to: HostId) -> FlowSpec {
    FlowSpec {
        txtime: None,
        name: String::new(),
        group: String::new(),
        from,
        to,
        to_addr: None,
        ipv6: false,
        count: 1,
        transport: Transport::Tcp(TcpWishes::default()),
        load: Load::Greedy,
        start: Time::ZERO,
        start_to: Time::ZERO,
        stop: None,
        tos: 0,
        mark: 0,
        port: 0,
        clock: SenderClock::default(),
        trace: false,
    }
}

#[test]
fn the_congestion_window_is_a_file() {
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(5));
    world.add_flow(greedy(a, b)).unwrap();
    world.run(secs(2));
    let table = world.exec(a, "cat /proc/net/penstock_cwnd").stdout;
    let row: Vec<&str> = table.lines().nth(1).unwrap().split(' ').collect();
    assert!(row[0].starts_with("10.0.0.1:") && row[1].starts_with("10.0.0.2:"), "{table}");
    let names = world.exec(a, "ls /proc/net").stdout;
    assert!(names.lines().any(|name| name == "penstock_cwnd"), "{names}");
    assert!(row[2].parse::<u32>().unwrap() >= 10 && row[4].parse::<u32>().unwrap() > 10_000, "{table}");
}

/// With a ring, a frame frees its socket's memory when it is sent; without one, when the discipline gives it away.
#[test]
fn a_ring_holds_the_memory_of_what_it_has_taken() {
    let shares = |ring: u32, tx_frames: u32| {
        let mut world = World::new(1);
        let (a, b) = (world.add_host("a", Kernel::V6_12), world.add_host("b", Kernel::V6_12));
        let mut end = End::new(a, "eth0");
        (end.ring, end.tx_frames) = (ring, tx_frames);
        let rate = Some(Rate::from_bit_per_s(1_000_000_000));
        world.add_link(LinkSpec::new(end, End::new(b, "eth0"), rate, Span::ZERO)).unwrap();
        address(&mut world, a, "eth0", "10.0.0.1/24");
        address(&mut world, b, "eth0", "10.0.0.2/24");
        world.set_cost(a, Cost { send: Span::from_us(5), ..Cost::ZERO });
        for port in [5201, 5202] {
            world.add_app(b, &format!("iperf3 -s -p {port}"), Time::ZERO);
        }
        let low = world.add_app(a, "iperf3 -c 10.0.0.2 -u -b 1G -t 1 -p 5201", secs(1));
        let high = world.add_app(a, "iperf3 -c 10.0.0.2 -u -b 1G -t 1 -p 5202 -S 16", secs(1));
        let results = world.run(secs(4));
        let bytes = |app: AppId| results.apps[app.0 as usize].bytes.unwrap() as f64;
        bytes(low) / (bytes(low) + bytes(high))
    };
    // 46 frames of the favoured one are left when it is woken: all in a ring of 64, and the rest is the other's.
    assert!((0.22..0.30).contains(&shares(63, 1)), "{}", shares(63, 1));
    assert!(shares(31, 1) < 0.05 && shares(255, 1) > 0.45);
    assert!(shares(63, 16) > shares(63, 1));
}

/// A clock that drifts and jitters: the mean is off by what it drifts, each packet by no more than its jitter.
#[test]
fn senders_clocks_drift_and_jitter() {
    let (mut world, a, b) = pair(3, None, Span::ZERO);
    let load = Load::Packets { size: Sizes::Constant(100), gap: Dist::Constant(Span::from_ms(10)) };
    let clock = SenderClock { drift_ppm: 1000, jitter: Span::from_us(500) };
    world.add_flow(FlowSpec { transport: Transport::Udp, load, clock, trace: true, ..greedy(a, b) }).unwrap();
    let passages = &world.run(secs(100)).flows[0].passages;
    let sent: Vec<i64> = passages.iter().map(|p| p.sent.as_ns()).collect();
    assert!(sent.len() > 9_900 && passages.iter().skip(1).all(|p| p.received.is_some()));
    let gap = (sent[9_900] - sent[1]) as f64 / 9_899.0;
    assert!((gap - 1e7).abs() > 100.0 && (gap - 1e7).abs() < 10_100.0, "{gap}");
    let ideal = |i: usize| sent[1] as f64 + gap * (i - 1) as f64;
    assert!((2..9_900).all(|i| (sent[i] as f64 - ideal(i)).abs() < 1_100_000.0));
    assert!((2..9_900).any(|i| (sent[i] as f64 - ideal(i)).abs() > 200_000.0));
}

/// On-off sources are silent by turns; a recording is sent as it was and then ends.
#[test]
fn on_off_and_recorded_flows() {
    let (mut world, a, b) = pair(3, None, Span::ZERO);
    let ms = Span::from_ms;
    let load = Load::OnOff {
        size: Sizes::Drawn { dist: Dist::Exponential { mean: Span::from_ns(300) }, most: 500 },
        gap: Dist::Constant(ms(1)),
        on: Dist::Constant(ms(100)),
        off: Dist::Constant(ms(300)),
    };
    let udp = FlowSpec { transport: Transport::Udp, trace: true, ..greedy(a, b) };
    world.add_flow(FlowSpec { load, ..udp.clone() }).unwrap();
    let load = Load::Replay(vec![(ms(5), 10), (ms(20), 20), (ms(0), 30)]);
    world.add_flow(FlowSpec { load, name: "recorded".into(), ..udp }).unwrap();
    let flows = world.run(secs(20)).flows;
    let sent: Vec<i64> = flows[0].passages.iter().map(|p| p.sent.as_ns()).collect();
    assert!((4_800..5_200).contains(&sent.len()), "{}", sent.len());
    assert!(flows[0].passages.iter().all(|p| (1..=500).contains(&p.bytes)));
    let silences = sent.windows(2).filter(|w| w[1] - w[0] > 250_000_000).count();
    assert!((48..=50).contains(&silences), "{silences}");
    let recorded: Vec<(i64, u32)> = flows[1].passages.iter().map(|p| (p.sent.as_ns(), p.bytes)).collect();
    assert_eq!(recorded, [(5_000_000, 10), (25_000_000, 20), (25_000_001, 30)]);
    assert!(flows[1].completed.is_some());
}

/// A flow of pages ends with the one that is under way when its time is up, or while the last one is looked at.
#[test]
fn flows_of_pages_end() {
    let think = Span::from_ms(1000);
    let run = |until: Span| {
        let (mut world, a, b) = pair(3, mbit(10), Span::from_ms(1));
        let load = Load::Pages { size: Sizes::Constant(3000), think: Dist::Constant(think) };
        world.add_flow(FlowSpec { load, stop: Some(Time::ZERO + until), ..greedy(a, b) }).unwrap();
        let flow = world.run(secs(20)).flows.remove(0);
        (flow.completed.expect("it has ended") - Time::ZERO, flow.goodput_bytes, flow.transfers)
    };
    let reads = Span::from_ms(500);
    let (ended, bytes, transfers) = run(reads);
    assert_eq!((ended, bytes, transfers.count()), (reads, 3000, 1));
    let page = Span::from_ns(transfers.max().expect("there is one") as i64);
    let second = page + think;
    let amid = second + Span::from_ns(page.as_ns() / 2);
    let (ended, bytes, transfers) = run(amid);
    assert_eq!((bytes, transfers.count()), (6000, 2));
    assert!(ended > amid && ended <= second + page + Span::from_ms(1), "{ended:?}");
}

#[test]
fn a_round_trip_on_an_idle_link_is_exact() {
    let (mut world, a, _) = pair(1, mbit(10), Span::from_ms(5));
    world.add_app(a, "ping -c 3 -s 100 10.0.0.2", Time::ZERO);
    let results = world.run(secs(10));
    let app = &results.apps[0];
    // 142 bytes and 24 of Ethernet's own at 10 Mbit/s, twice; 5 ms, twice.
    let rtt = 2 * (166 * 800 + 5_000_000);
    // The first waits for ARP: 42 bytes padded to 60, and 24, there and back.
    let arp = 2 * (84 * 800 + 5_000_000);
    assert_eq!(app.rtts, [rtt + arp, rtt, rtt]);
    assert_eq!(app.exit, Some(0));
    assert!(
        app.output.contains("108 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=10.3 ms\n"),
        "{}",
        app.output
    );
    assert!(app.output.contains("3 packets transmitted, 3 received, 0% packet loss"), "{}", app.output);
}

#[test]
fn one_tcp_connection_fills_the_link() {
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(1));
    world.add_flow(greedy(a, b)).unwrap();
    let results = world.run(secs(10));
    let flow = &results.flows[0];
    let goodput = flow.goodput_bytes * 8 / 10;
    assert!((9_300_000..9_500_000).contains(&goodput), "{goodput}");
    assert_eq!(flow.proto, "tcp");
}

#[test]
fn a_datagram_stream_has_its_rate_and_nothing_is_lost() {
    let (mut world, a, b) = pair(1, mbit(100), Span::from_ms(1));
    let load = Load::steady(Rate::from_bit_per_s(1_000_000), 1250);
    let stop = Some(secs(5));
    world.add_flow(FlowSpec { transport: Transport::Udp, load, stop, ..greedy(a, b) }).unwrap();
    let flow = &world.run(secs(6)).flows[0];
    assert_eq!((flow.sent_packets, flow.received_packets, flow.lost_packets), (500, 500, 0));
    assert_eq!(flow.goodput_bytes, 500 * 1250);
    assert_eq!(flow.jitter, Span::from_ns(0).max(flow.jitter));
}

/// `true`, a pause of 250 ms, `nonsense`, `exit 3`.
struct Pauses(u32, String);

impl Script for Pauses {
    fn go_on(&mut self, since: Span, execute: &mut dyn Execute) -> ScriptState {
        let words = [if self.0 == 0 { "true" } else { "nonsense" }.to_owned()];
        let output = execute.command(&words, &mut penstock_host::NoFiles);
        self.1.push_str(&format!("{} {}\n", output.status, since.as_ns() / 1_000_000));
        self.0 += 1;
        if self.0 == 1 { ScriptState::Waits(Some(Span::from_ms(250))) } else { ScriptState::Ended(3) }
    }
    fn printed(&mut self) -> String {
        std::mem::take(&mut self.1)
    }
}

#[test]
fn a_program_starts_when_another_has_ended() {
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(1));
    let ping = world.add_app(a, "ping -c 2 10.0.0.2", secs(1));
    let shell = world.add_app_after(b, "a script", ping, Span::from_ms(5));
    world.set_script(shell, Box::new(Pauses(0, String::new())));
    let never = world.add_app(b, "ping 10.0.0.1", secs(1));
    world.add_app_after(b, "ping -c 1 10.0.0.1", never, Span::ZERO);
    let results = world.run(secs(10));
    let (first, script, last) = (&results.apps[0], &results.apps[1], &results.apps[3]);
    assert_eq!(Some(script.started), first.ended.map(|t| t + Span::from_ms(5)));
    assert_eq!((script.exit, script.ended), (Some(3), Some(script.started + Span::from_ms(250))));
    assert_eq!(script.output, "0 0\n127 250\n");
    assert_eq!((last.exit, last.started, last.output.as_str()), (None, Time::MAX, ""));
}

#[test]
fn iperf_prints_its_forms() {
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(1));
    world.add_app(b, "iperf -s", Time::ZERO);
    world.add_app(a, "iperf -c 10.0.0.2 -t 4 -i 2", secs(1));
    let results = world.run(secs(20));
    println!("{}\n{}", results.apps[0].output, results.apps[1].output);
    assert_eq!(results.apps[1].exit, Some(0));
}

/// A client of 2.1 says 60 bytes first, which count; blocks of 128 KB follow. Its server answers, and the client leaves that unread till the end.
#[test]
fn iperf_2_1_begins_with_a_header() {
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(1));
    world.set_iperf(a, Iperf::V2_1);
    world.set_iperf(b, Iperf::V2_1);
    let server = world.add_app(b, "iperf -s", Time::ZERO);
    let client = world.add_app(a, "iperf -c 10.0.0.2 -t 2", secs(1));
    let udp = world.add_app(a, "iperf3 -c 10.0.0.2 -u -b 1M -t 1", secs(10));
    world.add_app(b, "iperf3 -s", Time::ZERO);
    let results = world.run(secs(20));
    let app = |id: AppId| &results.apps[id.0 as usize];
    assert_eq!((app(client).exit, app(client).bytes), (Some(0), app(server).bytes));
    assert_eq!(app(client).bytes.unwrap() % 131_072, 60);
    // In datagrams as long as a segment with timestamps.
    assert_eq!(app(udp).bytes.unwrap() % 1448, 0);
}

/// What falls due while a datagram waits for room goes when there is room: the socket's buffer is full at each wake, as with a real sender.
#[test]
fn a_sender_of_datagrams_that_waited_catches_up() {
    let (mut world, a, b) = pair(1, mbit(10), Span::ZERO);
    let load = Load::Packets { size: Sizes::Constant(958), gap: Dist::Constant(Span::from_us(700)) };
    let stop = Some(secs(2));
    world.add_flow(FlowSpec { transport: Transport::Udp, load, stop, trace: true, ..greedy(a, b) }).unwrap();
    let sent: Vec<i64> = world.run(secs(3)).flows[0].passages.iter().map(|p| p.sent.as_ns()).collect();
    // After the first wake 47 frames follow each other at once (93 fit, 46 are left), and so at each.
    let waits: Vec<usize> = (1..sent.len()).filter(|&i| sent[i] - sent[i - 1] > 10_000_000).collect();
    assert!(waits.len() > 10 && waits.windows(2).all(|w| w[1] - w[0] == 47), "{waits:?}");
}

#[test]
fn iperf_parallel_and_udp() {
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(1));
    world.add_app(b, "iperf -s", Time::ZERO);
    world.add_app(b, "iperf -s -u -i 1", Time::ZERO);
    world.add_app(a, "iperf -c b -P 2 -t 3", secs(1));
    world.add_app(a, "iperf -c 10.0.0.2 -u -t 3 -b 2m", secs(8));
    world.add_app(a, "iperf -c 10.0.0.2 -u -t 3 -b 20m", secs(18));
    world.add_app(a, "iperf -c 10.0.0.2 -p 77", secs(28));
    world.add_app(a, "iperf -c 10.0.0.2 -u -p 77", secs(28));
    let results = world.run(secs(50));
    for app in &results.apps {
        println!("--- {}\n{}", app.run, app.output);
    }
    for app in &results.apps[2..5] {
        assert_eq!(app.exit, Some(0));
    }
}

#[test]
fn scp_and_sessions_run() {
    let (mut world, a, b) = pair(1, mbit(100), Span::from_us(200));
    world.add_file("Video08-3.wmv", 53_477_376);
    world.add_app(a, "scp Video08-3.wmv kanwar@10.0.0.2:./", Time::ZERO);
    world.add_app(a, "ssh kanwar@10.0.0.2", Time::ZERO);
    world.add_app(a, "putty kanwar@10.0.0.2", Time::ZERO);
    world.add_app(a, "telnet 10.0.0.2", Time::ZERO);
    world.add_app(b, "scp nofile a:", Time::ZERO);
    let results = world.run(secs(60));
    for app in &results.apps {
        println!("--- {} {:?}\n{}", app.run, app.rtt.as_ref().and_then(|h| h.mean()), app.output);
    }
    assert!(results.apps[..4].iter().all(|app| app.exit == Some(0)));
    assert!(results.apps[0].throughput_bit_s.unwrap() > 85_000_000);
    assert_eq!(results.apps[4].exit, Some(1));
}

#[test]
fn iperf3_prints_its_forms() {
    let (mut world, a, b) = pair(1, mbit(100), Span::from_us(200));
    world.add_app(b, "iperf3 -s", Time::ZERO);
    world.add_app(a, "iperf3 -c 10.0.0.2 -t 3", secs(1));
    world.add_app(a, "iperf3 -c 10.0.0.2 -t 2 -P 2 -R", secs(6));
    world.add_app(a, "iperf3 -c 10.0.0.2 -t 2 -u -b 20M", secs(11));
    world.add_app(a, "iperf3 -c 10.0.0.2 -t 2 -u -b 1G -R", secs(16));
    world.add_app(a, "iperf3 -c 10.0.0.2 -t 1 -J", secs(21));
    world.add_app(a, "iperf3 -c 10.0.0.2 -n 10M", secs(26));
    world.add_app(a, "iperf3 -c 10.0.0.2 -p 99", secs(26));
    let results = world.run(secs(31));
    for app in &results.apps {
        println!("--- {} {:?}\n{}", app.run, app.throughput_bit_s, app.output);
    }
    assert!(results.apps[1..7].iter().all(|app| app.exit == Some(0)));
    assert_eq!(results.apps[7].exit, Some(1));
}

#[test]
fn a_frame_never_begins_before_the_one_before_it_has_ended() {
    // 1184 bytes of payload take 1250 on the wire: 1 ms, exactly the gap, so each frame comes when the wire becomes free.
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(1));
    let gap = Dist::Constant(Span::from_ms(1));
    for name in ["x", "y"] {
        let load = Load::Packets { size: Sizes::Constant(1184), gap: gap.clone() };
        let flow = FlowSpec { name: name.into(), transport: Transport::Udp, load, ..greedy(a, b) };
        world.add_flow(flow).unwrap();
    }
    let results = world.run(secs(1));
    let received: u64 = results.flows.iter().map(|f| f.received_packets).sum();
    assert!((990..=1000).contains(&received), "{received}");
}

/// A program that wakes itself for ever without time going on: only a fault of ours can be like that.
struct Restless;

impl app::Program for Restless {
    fn start(&mut self, cx: &mut app::Cx<'_>) {
        cx.net.wakes.due.push_back((cx.app, wake::Wake::Timer(7)));
    }
    fn wake(&mut self, _: wake::Wake, cx: &mut app::Cx<'_>) {
        self.start(cx);
    }
}

#[test]
fn a_run_that_stands_still_is_ended_and_says_who_was_busy() {
    let mut world = World::new(1);
    let a = world.add_host("a", Kernel::V6_12);
    world.add_program(a, "restless", secs(1), Box::new(Restless));
    world.run_quietly(secs(2));
    let text = world.stuck().expect("it stands still");
    assert!(text.starts_with("the simulation stands still at 1 s: 10002"), "{text}");
    assert!(text.ends_with("a: restless wakes for Timer(7)"), "{text}");
}

#[test]
fn a_link_without_a_rate_costs_the_processor_s_time() {
    let (mut world, a, b) = pair(1, None, Span::ZERO);
    world.add_flow(greedy(a, b)).unwrap();
    let results = world.run(Time::from_ns(200_000_000));
    assert_eq!(world.stuck(), None);
    // A frame of 1514 bytes takes 1.189 us and its ACKs go the other way.
    let mbit = results.flows[0].goodput_bytes * 8 / 200_000;
    assert!((9_000..10_200).contains(&mbit), "{mbit} Mbit/s");
}

#[test]
fn loopback_costs_the_processor_s_time() {
    let (mut world, a, _) = pair(1, None, Span::ZERO);
    world.add_app(a, "iperf -s", Time::ZERO);
    world.add_app(a, "iperf -c 127.0.0.1 -t 1", secs(1));
    world.add_app(a, "ping -c 3 127.0.0.1", secs(1));
    let results = world.run(secs(4));
    assert_eq!(world.stuck(), None);
    let client = &results.apps[1];
    assert_eq!(client.exit, Some(0), "{}", client.output);
    let gbit = client.throughput_bit_s.unwrap() / 1_000_000_000;
    assert!((20..65).contains(&gbit), "{gbit} Gbit/s");
    assert!(results.apps[2].output.contains("3 received"), "{}", results.apps[2].output);
}

#[test]
fn writes_without_a_pause_take_the_time_of_their_calls() {
    let (mut world, a, b) = pair(1, None, Span::ZERO);
    let load = Load::Packets { size: Sizes::Constant(1), gap: Dist::Constant(Span::ZERO) };
    world.add_flow(FlowSpec { load: load.clone(), ..greedy(a, b) }).unwrap();
    world.add_flow(FlowSpec { load, transport: Transport::Udp, ..greedy(a, b) }).unwrap();
    let results = world.run(Time::from_ns(100_000_000));
    assert_eq!(world.stuck(), None);
    // A call takes a microsecond; 4 ms of them may be done at once.
    let sent = results.flows[1].sent_packets;
    assert!((100_000..=104_001).contains(&sent), "{sent}");
}

/// The card is asked after each packet of one call: the first is on its wire when the second comes to the queue.
//= linux v6.12 net/core/dev.c __dev_xmit_skb
#[test]
fn the_card_is_asked_after_each_packet_of_a_call() {
    let lost = |limit: u32, size: u32, knows: bool, until: i64| {
        let (mut world, a, b) = pair(1, mbit(1), Span::from_ms(20));
        assert_eq!(world.exec(a, &format!("tc qdisc add dev eth0 root pfifo limit {limit}")).status, 0);
        if knows {
            let mac = world.host(b).device(2).unwrap().mac.map(|byte| format!("{byte:02x}")).join(":");
            let line = format!("ip neigh add 10.0.0.2 lladdr {mac} dev eth0");
            assert_eq!(world.exec(a, &line).status, 0);
        }
        let load = Load::Packets { size: Sizes::Constant(size), gap: Dist::Constant(Span::from_ms(10)) };
        world.add_flow(FlowSpec { transport: Transport::Udp, load, ..greedy(a, b) }).unwrap();
        let results = world.run(Time::from_ns(until * 1_000_000));
        results
            .drops
            .iter()
            .filter(|(key, _)| key.place == "qdisc")
            .map(|(_, count)| count.packets)
            .sum::<u64>()
    };
    // Six fragments of a datagram: one on the wire, the others in the queue, or lost.
    assert_eq!([6, 5, 4, 3].map(|limit| lost(limit, 8000, true, 5)), [0, 0, 1, 2]);
    // Five datagrams have waited for ARP's answer, which comes after 41 ms.
    assert_eq!([5, 4, 3, 2].map(|limit| lost(limit, 1000, false, 45)), [0, 0, 1, 2]);
}

/// Devices that nothing goes through have no series; others have all their values, as if they had been looked at each time.
#[test]
fn what_stands_still_is_not_sampled_and_loses_nothing() {
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(5));
    let (c, d) = (world.add_host("c", Kernel::V6_12), world.add_host("d", Kernel::V6_12));
    world.add_link(LinkSpec::new(End::new(c, "eth0"), End::new(d, "eth0"), mbit(10), Span::ZERO)).unwrap();
    world.sample_every(Span::from_ms(100));
    let flow = FlowSpec { start: secs(1), stop: Some(secs(2)), ..greedy(a, b) };
    world.add_flow(flow).unwrap();
    let results = world.run(secs(4));
    let set = &results.series;
    assert!(set.series.iter().all(|s| s.host != Some(c) && s.host != Some(d)));
    let of = |host: Option<HostId>, object: &str, metric: Metric| {
        let found = set.series.iter().find(|s| s.host == host && s.object == object && s.metric == metric);
        let series = found.unwrap_or_else(|| panic!("{object} has no {metric:?}"));
        assert_eq!(series.first + series.values.len(), set.times.len(), "{object}");
        assert!(series.host.is_none() || series.first == 0, "{object} begins at {}", series.first);
        &series.values
    };
    let sent = of(Some(a), "eth0", Metric::Bytes);
    let at = |s: i64| set.times.iter().position(|t| *t >= secs(s)).unwrap();
    assert_eq!((sent[0], sent[at(1) - 1]), (0, 0));
    assert!(sent[at(2)] > 1_000_000 && sent[at(3)] == sent[sent.len() - 1]);
    let counters = world.host(a).devices().iter().find(|d| d.name == "eth0").unwrap().counters;
    assert_eq!(*sent.last().unwrap(), counters.tx_bytes as i64);
    // Every step of the way, not only its ends: while it sends no two samples are alike.
    assert!(sent[at(1) + 1..at(2)].windows(2).all(|w| w[0] < w[1]));
    let delay = &set.series.iter().find(|s| s.host.is_none() && s.metric == Metric::Owd).unwrap().values;
    assert!(delay.iter().any(|d| *d > 0) && delay.last() == Some(&0));
    let queue = set.series.iter().find(|s| s.host == Some(a) && s.metric == Metric::Qlen).unwrap();
    assert!(queue.object.starts_with("eth0 ") && queue.values.iter().any(|q| *q > 0));
}

/// A driver that counts bytes keeps a large ring nearly empty, but for what keeps the card busy; the shell sees its limits.
#[test]
fn byte_queue_limits_bound_what_a_ring_takes() {
    let folder = "/sys/class/net/eth0/queues/tx-0/byte_queue_limits";
    let run = |bql: bool, least: Option<&str>| {
        let mut world = World::new(1);
        let (a, b) = (world.add_host("a", Kernel::V6_12), world.add_host("b", Kernel::V6_12));
        let mut end = End::new(a, "eth0");
        (end.ring, end.bql) = (256, bql);
        let rate = Some(Rate::from_bit_per_s(100_000_000));
        world.add_link(LinkSpec::new(end, End::new(b, "eth0"), rate, Span::ZERO)).unwrap();
        address(&mut world, a, "eth0", "10.0.0.1/24");
        address(&mut world, b, "eth0", "10.0.0.2/24");
        assert_eq!(world.exec(a, "tc qdisc add dev eth0 root pfifo limit 1000").status, 0);
        if let Some(least) = least {
            world.host_mut(a).write_file(&format!("{folder}/limit_min"), least, Time::ZERO).unwrap();
        }
        let load = Load::Packets { size: Sizes::Constant(1458), gap: Dist::Constant(Span::from_us(60)) };
        world.add_flow(FlowSpec { transport: Transport::Udp, load, ..greedy(a, b) }).unwrap();
        world.run_quietly(secs(1));
        let ring = world.net.cables.nics.iter().map(|nic| nic.queue.len()).max().unwrap();
        let file = |world: &mut World, name: &str| {
            world.host(a).read_file(&format!("{folder}/{name}")).unwrap().trim().parse::<u32>().unwrap()
        };
        (ring, file(&mut world, "limit"), file(&mut world, "inflight"))
    };
    // What the socket's memory lets go.
    let (ring, limit, inflight) = run(false, None);
    assert!((40..=96).contains(&ring) && (limit, inflight) == (0, 0), "{ring}");
    // Two frames of 1500 bytes are enough where each interrupt tells of one.
    let (ring, limit, inflight) = run(true, None);
    assert!((1..=3).contains(&ring) && (1500..=4500).contains(&limit), "{ring} {limit} {inflight}");
    assert!(inflight > 1500 && inflight <= limit + 1500, "{ring} {limit} {inflight}");
    let (ring, limit, _) = run(true, Some("30000"));
    assert!(limit == 30_000 && (19..=21).contains(&ring), "{ring} {limit}");
}
