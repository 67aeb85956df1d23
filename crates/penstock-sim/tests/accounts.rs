//! Every packet is accounted for, whatever the experiment: networks, qdiscs, filters, commands amid traffic and loads by
//! chance, most of them overloaded; looked at twenty times in each run.
//!
//! `PENSTOCK_ACCOUNTS=N` has N cases tried instead of 48; each prints its number where `PENSTOCK_ACCOUNTS_TELL` is set;
//! `PENSTOCK_ACCOUNTS_FROM` is the first of those by several cores.

use penstock_host::Prefix;
use penstock_model::{Kernel, Rate, Span, Time};
use penstock_sim::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// What stands on a device, `D` in its commands; `E` is the other device of its machine, or itself. Commands that a kernel
/// does not know fail, and nothing stands there.
const SETUPS: [&[&str]; 44] = [
    &["tc qdisc add dev D root pfifo limit 3"],
    &["tc qdisc add dev D root pfifo limit 20"],
    &["tc qdisc add dev D root bfifo limit 4000"],
    &["tc qdisc add dev D root pfifo_head_drop limit 4"],
    &[
        "tc qdisc add dev D root handle 1: prio",
        "tc qdisc add dev D parent 1:1 pfifo limit 2",
        "tc qdisc add dev D parent 1:2 sfq limit 5",
    ],
    &["tc qdisc add dev D root tbf rate 300kbit burst 3000 limit 6000"],
    &[
        "tc qdisc add dev D root handle 1: tbf rate 300kbit burst 3000 limit 6000",
        "tc qdisc add dev D parent 1:1 fq_codel limit 5 flows 4",
    ],
    &["tc qdisc add dev D root sfq limit 9 perturb 1"],
    &["tc qdisc add dev D root sfq limit 12 flows 5 depth 4 divisor 8 headdrop perturb 1 quantum 600"],
    &[
        "tc qdisc add dev D root sfq limit 40 redflowlimit 30000 min 3000 max 9000 avpkt 1000 burst 10 probability 0.2 ecn",
    ],
    &["tc qdisc add dev D root red limit 9000 min 3000 max 9000 avpkt 1000 burst 5 probability 0.5"],
    &["tc qdisc add dev D root red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 probability 0.1 ecn"],
    &[
        "tc qdisc add dev D root choke limit 12 bandwidth 1mbit min 2 max 6 avpkt 1000 burst 4 probability 0.5 ecn",
    ],
    &[
        "tc qdisc add dev D root sfb limit 5 rehash 8 db 4 max 30 target 1 increment 1 penalty_rate 100 penalty_burst 3",
    ],
    &["tc qdisc add dev D root codel limit 5 target 1ms interval 10ms"],
    &["tc qdisc add dev D root pie limit 5 target 1ms tupdate 8ms"],
    &["tc qdisc add dev D root fq_codel target 1ms interval 5ms limit 20 memory_limit 20000 drop_batch 2"],
    &[
        "tc qdisc add dev D root fq limit 6 flow_limit 3 quantum 300 initial_quantum 600 orphan_mask 1 buckets 2",
    ],
    &["tc qdisc add dev D root fq maxrate 500kbit"],
    &["tc qdisc add dev D root gred setup DPs 3 default 1"],
    &["tc qdisc add dev D root handle 1: dsmark indices 4", "tc qdisc add dev D parent 1: pfifo limit 4"],
    &[
        "tc qdisc add dev D root handle 1: drr",
        "tc class add dev D parent 1: classid 1:1 drr quantum 300",
        "tc class add dev D parent 1: classid 1:2 drr",
        "tc qdisc add dev D parent 1:1 pfifo limit 3",
        "tc filter add dev D parent 1: protocol ip prio 1 u32 match ip dport 5001 0xffff flowid 1:1",
        "tc filter add dev D parent 1: protocol all prio 3 u32 match u32 0 0 flowid 1:2",
    ],
    &[
        "tc qdisc add dev D root handle 1: htb default 20",
        "tc class add dev D parent 1: classid 1:1 htb rate 400kbit",
        "tc class add dev D parent 1:1 classid 1:10 htb rate 100kbit ceil 400kbit",
        "tc class add dev D parent 1:1 classid 1:20 htb rate 300kbit ceil 400kbit prio 1",
        "tc qdisc add dev D parent 1:10 pfifo limit 3",
        "tc qdisc add dev D parent 1:20 sfq limit 5",
        "tc filter add dev D parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff flowid 1:10",
    ],
    &[
        "tc qdisc add dev D root handle 1: htb default 10",
        "tc class add dev D parent 1: classid 1:10 htb rate 200kbit",
        "tc qdisc add dev D parent 1:10 handle 10: tbf rate 150kbit burst 2000 limit 5000",
        "tc qdisc add dev D parent 10:1 red limit 9000 min 3000 max 9000 avpkt 1000 burst 5 probability 0.5",
    ],
    // Nothing is classified: all goes past the classes.
    &["tc qdisc add dev D root handle 1: htb"],
    &[
        "tc qdisc add dev D root handle 1: cbq bandwidth 10mbit avpkt 1000",
        "tc class add dev D parent 1: classid 1:1 cbq bandwidth 10mbit rate 300kbit allot 1514 prio 5 avpkt 1000 bounded",
        "tc qdisc add dev D parent 1:1 pfifo limit 3",
        "tc filter add dev D parent 1: protocol ip prio 1 u32 match u32 0 0 flowid 1:1",
    ],
    &["tc qdisc add dev D stab overhead 24 linklayer atm root tbf rate 300kbit burst 3000 limit 6000"],
    // Filters at the hooks.
    &[
        "tc qdisc add dev D ingress",
        "tc filter add dev D parent ffff: protocol ip prio 1 u32 match u32 0 0 police rate 200kbit burst 4k drop flowid :1",
    ],
    &[
        "tc qdisc add dev D clsact",
        "tc filter add dev D egress matchall action police rate 200kbit burst 4k conform-exceed drop",
    ],
    &[
        "tc qdisc add dev D clsact",
        "tc filter add dev D ingress protocol ip u32 match ip protocol 17 0xff action drop",
    ],
    &[
        "ip link add ifb0 type ifb",
        "ip link set ifb0 up",
        "tc qdisc add dev ifb0 root pfifo limit 1",
        "tc qdisc add dev D clsact",
        "tc filter add dev D egress matchall action mirred egress mirror dev ifb0",
    ],
    &[
        "ip link add ifb0 type ifb",
        "ip link set ifb0 up",
        "tc qdisc add dev ifb0 clsact",
        "tc filter add dev ifb0 egress matchall action drop",
        "tc qdisc add dev D clsact",
        "tc filter add dev D egress matchall action mirred egress mirror dev ifb0",
    ],
    &[
        "ip link add ifb0 type ifb",
        "ip link set ifb0 up",
        "tc qdisc add dev ifb0 root tbf rate 200kbit burst 3000 limit 8000",
        "tc qdisc add dev D clsact",
        "tc filter add dev D egress matchall action mirred egress redirect dev ifb0",
    ],
    &[
        "ip link add ifb0 type ifb",
        "ip link set ifb0 up",
        "tc qdisc add dev ifb0 root fq_codel limit 20",
        "tc qdisc add dev D handle ffff: ingress",
        "tc filter add dev D parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0",
    ],
    &[
        "modprobe ifb",
        "ip link set ifb0 up",
        "tc qdisc add dev ifb0 root sfq limit 5",
        "tc qdisc add dev D handle ffff: ingress",
        "tc filter add dev D parent ffff: protocol ip prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb0",
    ],
    &["tc qdisc add dev D clsact", "tc filter add dev D ingress matchall action mirred egress mirror dev E"],
    &["tc qdisc add dev D clsact", "tc filter add dev D egress matchall action mirred egress mirror dev E"],
    &["tc qdisc add dev D clsact", "tc filter add dev D ingress matchall action mirred ingress mirror dev E"],
    &[
        "tc qdisc add dev D clsact",
        "tc filter add dev D egress matchall action mirred egress mirror dev E pipe action mirred egress mirror dev E pipe action drop",
    ],
    &[
        "ip link add d0 type dummy",
        "ip link set d0 up",
        "tc qdisc add dev D clsact",
        "tc filter add dev D egress matchall action mirred egress redirect dev d0",
    ],
    &[
        "tc qdisc add dev D handle 1: root prio",
        "tc filter add dev D parent 1: protocol ip u32 match ip protocol 17 0xff action mirred egress redirect dev E",
    ],
    &[
        "iptables -A FORWARD -p udp -m statistic --mode random --probability 0.2 -j DROP",
        "iptables -A INPUT -p udp -m limit --limit 20/s -j REJECT",
    ],
    &["iptables -t mangle -A POSTROUTING -p udp -j CLASSIFY --set-class 1:10"],
    &["ip link set D mtu 600"],
];
/// Commands amid traffic.
const COMMANDS: [&str; 24] = [
    "tc qdisc del dev D root",
    "tc qdisc replace dev D root pfifo limit 2",
    "tc qdisc replace dev D root handle 1: htb default 10",
    "tc class add dev D parent 1: classid 1:10 htb rate 100kbit",
    "tc class change dev D parent 1: classid 1:10 htb rate 50kbit",
    "tc class del dev D classid 1:10",
    "tc qdisc replace dev D parent 1:1 pfifo limit 1",
    "tc qdisc replace dev D parent 1:10 sfq limit 4",
    "tc qdisc del dev D parent 1:1",
    "tc qdisc change dev D root pfifo limit 1",
    "tc qdisc change dev D root fq_codel limit 1",
    "tc qdisc del dev D clsact",
    "tc qdisc del dev D ingress",
    "tc filter del dev D egress",
    "ip link set D down",
    "ip link set D up",
    "ip link set D mtu 800",
    "ip link set D mtu 1500",
    "ip link set D txqueuelen 3",
    "ip neigh flush dev D",
    "ip link set ifb0 down",
    "ip link del ifb0",
    "iptables -A OUTPUT -p udp --dport 5001 -j DROP",
    "sh -c 'ip link add br0 type bridge; ip link set D master br0'",
];

/// Programs; `A` is where to.
const PROGRAMS: [&str; 6] = [
    "ping -i 0.02 -c 60 A",
    "ping -i 0.01 -c 60 -s 4000 A",
    "ping -f -c 200 -s 1400 A",
    // Nobody listens there.
    "iperf -u -c A -p 9 -b 1M -t 1",
    "telnet A 9",
    "iperf3 -u -c A -b 2M -t 1",
];

#[derive(Clone, Debug)]
struct Wire {
    kbit: u64,
    delay_us: i64,
    loss_ppb: u32,
    ring: u32,
    half: bool,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Udp { size: u32, gap_us: i64 },
    Echo { size: u32, gap_us: i64 },
    Bytes(u64),
    Greedy,
}

#[derive(Clone, Debug)]
struct Case {
    old: bool,
    hosts: usize,
    /// All on one segment instead of in a row.
    shared: bool,
    wires: Vec<Wire>,
    /// Machine, device, which.
    setups: Vec<(usize, usize, usize)>,
    /// From, to, what.
    flows: Vec<(usize, usize, What)>,
    programs: Vec<(usize, usize, usize)>,
    /// When (ms), machine, device, which.
    commands: Vec<(i64, usize, usize, usize)>,
    warmup_ms: Option<i64>,
    /// A machine whose processor takes its time.
    slow: Option<usize>,
    seed: u64,
}

fn wire() -> impl Strategy<Value = Wire> {
    let loss = prop_oneof![4 => Just(0), 1 => Just(10_000_000), 1 => Just(200_000_000)];
    (100u64..20_000, 0i64..60_000, loss, prop_oneof![3 => Just(0), 1 => 1u32..9], prop::bool::weighted(0.2))
        .prop_map(|(kbit, delay_us, loss_ppb, ring, half)| Wire { kbit, delay_us, loss_ppb, ring, half })
}

fn what() -> impl Strategy<Value = What> {
    let size = || prop_oneof![3 => 1u32..1473, 1 => 1473u32..4000, 1 => 4000u32..30_000];
    prop_oneof![
        4 => (size(), 200i64..30_000).prop_map(|(size, gap_us)| What::Udp { size, gap_us }),
        1 => (size(), 2000i64..30_000).prop_map(|(size, gap_us)| What::Echo { size, gap_us }),
        1 => (1u64..300_000).prop_map(What::Bytes),
        1 => Just(What::Greedy),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let net = (prop::bool::weighted(0.25), 2usize..=5, prop::bool::weighted(0.2), vec(wire(), 4));
    let load = (
        vec((0usize..5, 0usize..2, 0..SETUPS.len()), 0..5),
        vec((0usize..5, 0usize..5, what()), 1..5),
        vec((0usize..5, 0usize..5, 0..PROGRAMS.len()), 0..3),
        vec((0i64..2000, 0usize..5, 0usize..2, 0..COMMANDS.len()), 0..5),
    );
    let rest = (prop::option::of(1i64..1500), prop::option::weighted(0.2, 0usize..5), any::<u64>());
    (net, load, rest).prop_map(|((old, hosts, shared, wires), (setups, flows, programs, commands), rest)| {
        let (warmup_ms, slow, seed) = rest;
        Case { old, hosts, shared, wires, setups, flows, programs, commands, warmup_ms, slow, seed }
    })
}

impl Case {
    /// The device of a machine that a number means, and its other one.
    fn devices(&self, host: usize, device: usize) -> (&'static str, &'static str) {
        let inner = !self.shared && host > 0 && host + 1 < self.hosts;
        match (inner, device) {
            _ if self.shared => ("eth0", "eth0"),
            (true, 0) => ("eth0", "eth1"),
            (true, _) => ("eth1", "eth0"),
            (false, _) if host == 0 => ("eth1", "eth1"),
            (false, _) => ("eth0", "eth0"),
        }
    }
    fn addr(&self, host: usize) -> String {
        match (self.shared, host) {
            (true, _) => format!("10.0.0.{}", host + 1),
            (false, 0) => "10.0.0.1".to_owned(),
            (false, _) => format!("10.0.{}.2", host - 1),
        }
    }
    fn command(&self, line: &str, host: usize, device: usize) -> String {
        let (dev, other) = self.devices(host, device);
        let word = |word: &str| match word {
            "D" => dev.to_owned(),
            "E" => other.to_owned(),
            word => word.to_owned(),
        };
        line.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }
    fn build(&self) -> World {
        let mut world = World::new(self.seed);
        let kernel = if self.old { Kernel::V2_6_35 } else { Kernel::V6_12 };
        let ids: Vec<HostId> = (0..self.hosts).map(|i| world.add_host(&format!("h{i}"), kernel)).collect();
        let end = |i: usize, device: &str, wire: &Wire| End { ring: wire.ring, ..End::new(ids[i], device) };
        let link = |ends: Vec<End>, wire: &Wire| LinkSpec {
            ends: ends.clone(),
            loss_ppb: wire.loss_ppb,
            duplex: if wire.half { Duplex::Half } else { Duplex::Full },
            ..LinkSpec::new(
                ends[0].clone(),
                ends[1].clone(),
                Some(Rate::from_bit_per_s(wire.kbit * 1000)),
                Span::from_us(wire.delay_us),
            )
        };
        let mut addresses = Vec::new();
        if self.shared {
            let ends = (0..self.hosts).map(|i| end(i, "eth0", &self.wires[0])).collect();
            world.add_link(link(ends, &self.wires[0])).unwrap();
            addresses.extend((0..self.hosts).map(|i| (i, "eth0", format!("10.0.0.{}/24", i + 1))));
        } else {
            for (i, wire) in self.wires.iter().enumerate().take(self.hosts - 1) {
                world.add_link(link(vec![end(i, "eth1", wire), end(i + 1, "eth0", wire)], wire)).unwrap();
                addresses.push((i, "eth1", format!("10.0.{i}.1/24")));
                addresses.push((i + 1, "eth0", format!("10.0.{i}.2/24")));
            }
        }
        for (host, device, text) in addresses {
            let ifindex = world.host(ids[host]).ifindex(device).unwrap();
            world.host_mut(ids[host]).add_address(ifindex, Prefix::parse(&text).unwrap()).unwrap();
        }
        for (i, &id) in ids.iter().enumerate().filter(|_| !self.shared) {
            world.host_mut(id).set_forwarding(true);
            for net in 0..self.hosts - 1 {
                // Networks to the right by the right neighbour, those to the left by the left one.
                if net > i {
                    world.exec(id, &format!("ip route add 10.0.{net}.0/24 via 10.0.{i}.2"));
                } else if net + 1 < i {
                    world.exec(id, &format!("ip route add 10.0.{net}.0/24 via 10.0.{}.1", i - 1));
                }
            }
        }
        if let Some(slow) = self.slow {
            let packet = Dist::Constant(Span::from_us(700));
            world.set_cost(ids[slow % self.hosts], Cost { packet, ..Cost::ZERO });
        }
        for &(host, device, which) in &self.setups {
            let host = host % self.hosts;
            for line in SETUPS[which] {
                world.exec(ids[host], &self.command(line, host, device));
            }
        }
        for (n, &(from, to, what)) in self.flows.iter().enumerate() {
            let (from, to) = (from % self.hosts, to % self.hosts);
            if from == to {
                continue;
            }
            let tcp = || Transport::Tcp(TcpWishes::default());
            let packets = |size, gap_us| (Sizes::Constant(size), Dist::Constant(Span::from_us(gap_us)));
            let (transport, load) = match what {
                What::Udp { size, gap_us } => {
                    let (size, gap) = packets(size, gap_us);
                    (Transport::Udp, Load::Packets { size, gap })
                }
                What::Echo { size, gap_us } => {
                    let (size, gap) = packets(size, gap_us);
                    (Transport::Udp, Load::Echo { size, gap })
                }
                What::Bytes(bytes) => (tcp(), Load::Bytes(bytes)),
                What::Greedy => (tcp(), Load::Greedy),
            };
            let flow = FlowSpec {
                txtime: None,
                name: format!("f{n}"),
                group: String::new(),
                from: ids[from],
                to: ids[to],
                to_addr: None,
                ipv6: false,
                count: 1,
                transport,
                load,
                start: Time::ZERO,
                start_to: Time::ZERO,
                stop: (n == 1).then(|| Time::from_ns(1_200_000_000)),
                tos: [0, 0x10, 0x08, 0xb8][n % 4],
                mark: 0,
                port: 0,
                clock: SenderClock::default(),
                trace: n == 0,
            };
            world.add_flow(flow).unwrap();
        }
        for &(from, to, which) in &self.programs {
            let (from, to) = (from % self.hosts, to % self.hosts);
            world.add_app(ids[from], &PROGRAMS[which].replace('A', &self.addr(to)), Time::ZERO);
        }
        for &(ms, host, device, which) in &self.commands {
            let host = host % self.hosts;
            let line = COMMANDS[which].trim_start_matches("sh -c '").trim_end_matches('\'');
            for line in line.split("; ") {
                let at = Time::from_ns(ms * 1_000_000);
                world.exec_at(ids[host], &self.command(line, host, device), at);
            }
        }
        world.sample_every(Span::from_ms(250));
        world
    }

    /// Runs it; gives what did not add up, and when.
    fn run(&self) -> Result<Results, String> {
        let mut world = self.build();
        let mut warmup = self.warmup_ms;
        for step in 1..=20i64 {
            let until = step * 100;
            if let Some(ms) = warmup.take_if(|ms| *ms <= until) {
                world.run_quietly(Time::from_ns(ms * 1_000_000));
                world.end_warmup();
            }
            world.run_quietly(Time::from_ns(until * 1_000_000));
            let bad = world.miscounts();
            if !bad.is_empty() {
                return Err(format!("at {until} ms: {}", bad.join("; ")));
            }
        }
        Ok(world.results())
    }
}

static DONE: AtomicU32 = AtomicU32::new(0);

fn check(case: &Case) {
    if std::env::var_os("PENSTOCK_ACCOUNTS_TELL").is_some() {
        println!("{}: {case:?}", DONE.fetch_add(1, Ordering::Relaxed));
    }
    let results = case.run().unwrap_or_else(|bad| panic!("{bad}"));
    let (mut lost, mut fragments, mut copies) = (0, 0, 0);
    for flow in &results.flows {
        assert_eq!(
            flow.sent_packets,
            flow.received_packets + flow.lost_packets + flow.in_flight_packets,
            "{}",
            flow.name
        );
        lost += flow.lost_packets;
        fragments += flow.fragments.lost;
        copies += flow.copies.lost;
        assert_eq!(flow.losses.iter().map(|l| l.1).sum::<u64>(), flow.lost_packets, "{}", flow.name);
    }
    // The table of drops has these and others: fragments of datagrams that were lost before, what belongs to no flow.
    let all = |f: fn(&DropCount) -> u64| results.drops.values().map(f).sum::<u64>();
    let (packets, of_fragments, of_copies) = (all(|d| d.packets), all(|d| d.fragments), all(|d| d.copies));
    assert!(packets >= lost + copies && of_fragments >= fragments && of_copies >= copies);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PENSTOCK_ACCOUNTS").ok().and_then(|n| n.parse().ok()).unwrap_or(48),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_packet_is_accounted_for(case in case()) {
        check(&case);
    }
}

/// The same results by one core and by three, whatever the case; many of them can be divided.
#[test]
fn any_number_of_cores_gives_the_same() {
    let cases = std::env::var("PENSTOCK_ACCOUNTS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let mut divided = 0;
    let from = std::env::var("PENSTOCK_ACCOUNTS_FROM").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    // And two that once were not: a copy on a segment, and fragments of a program that had ended when the run was divided.
    for n in (from..from + cases).chain([366, 28_900]) {
        let mut case = numbered(2, n);
        // Commands during the run, and datagrams in fragments, are one core's.
        case.commands.clear();
        let long =
            |what: What| matches!(what, What::Udp { size, .. } | What::Echo { size, .. } if size > 1472);
        case.flows.retain(|flow| !long(flow.2));
        let run = |cores: usize| {
            let mut world = case.build();
            world.set_cores(cores, 0);
            let divided = world.cores().is_ok();
            for ms in [case.warmup_ms.unwrap_or(300), 1000, 2000] {
                world.run_quietly(Time::from_ns(ms * 1_000_000).max(world.now()));
                assert_eq!(world.miscounts(), Vec::<String>::new(), "{n} on {cores}: {case:?}");
                if case.warmup_ms == Some(ms) {
                    world.end_warmup();
                }
            }
            (divided, world.results())
        };
        let (three, results) = run(3);
        divided += u64::from(three);
        assert!(!three || run(1).1 == results, "{n}: {case:?}");
    }
    assert!(cases < 100 || divided * 10 > cases, "{divided} of {cases}");
}

/// A case by its number.
fn numbered(seed: u64, n: u64) -> Case {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&n.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let case = case().new_tree(&mut TestRunner::new_with_rng(ProptestConfig::default(), rng));
    case.unwrap().current()
}

/// As many cases as `PENSTOCK_ACCOUNTS` says, told one by one and never shortened: what a night is for.
#[test]
#[ignore = "as long as one has time"]
fn survey() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let seed = number("PENSTOCK_ACCOUNTS_SEED").unwrap_or(1);
    let mut bad = 0;
    for n in 0..number("PENSTOCK_ACCOUNTS").unwrap_or(1000) {
        let case = numbered(seed, n);
        println!("{n} {case:?}");
        if std::panic::catch_unwind(|| check(&case)).is_err() {
            println!("BAD {n}");
            bad += 1;
        }
    }
    assert_eq!(bad, 0);
}
