//! Nexthops and the routes that go by them, as real Linux says of them (`vectors/stack/nexthops.jsonl`, made by `vectors/stack/nexthops.py`), and routes of
//! IPv4 by gateways of IPv6 (`gateways6.jsonl`, made by `gateways6.py`).

use penstock_host::{Host, HostCx};
use penstock_model::{Kernel, Time};
use penstock_packet::{Ipv4, L3, L4, Pool, Skb, Udp};
use serde_json::Value;

/// What a machine here does not do and says so; there the two go apart, and the case ends.
const NOT_HERE: &str = ": not simulated";

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Without the routes to groups: the recorder's kernel has one table of IPv6 for all, where they are shown.
fn without_groups(text: &str) -> String {
    if !text.starts_with("[{") {
        return text.split_inclusive('\n').filter(|l| !l.starts_with("multicast ff00::/8")).collect();
    }
    let mut text = text.to_owned();
    while let Some(from) = text.find(r#"{"type":"multicast""#) {
        let Some(len) = text[from..].find('}') else { break };
        text.replace_range(from..=from + len, "");
        text = text.replace(",,", ",").replace("[,", "[").replace(",]", "]");
    }
    text
}

/// Without the ways of routes of IPv4 that go by groups: the recorder's kernel of 6.12 has no routes of several ways, and shows none.
fn without_ways(text: &str) -> String {
    if !text.starts_with("[") {
        return text.split_inclusive('\n').filter(|l| !l.starts_with("\tnexthop ")).collect();
    }
    let Ok(Value::Array(mut routes)) = serde_json::from_str(text) else { return text.to_owned() };
    for route in &mut routes {
        if let Some(route) = route.as_object_mut() {
            route.remove("nexthops");
        }
    }
    Value::Array(routes).to_string()
}

fn without_linkdown(text: &str) -> String {
    text.replace("linkdown ", "").replace("\"linkdown\"", "").replace("\"flags\": [ ]", "\"flags\": [  ]")
}

/// Steps that were compared, and whether the case went on to its end.
fn play(case: &Value, ways: bool) -> Result<(usize, bool), String> {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    for command in [
        "ip link add lan0 type veth peer name wire0",
        "ip link set wire0 up addrgenmode none",
        "ip link set lan0 addrgenmode none",
        "ip link add lan1 type veth peer name wire1",
        "ip link set wire1 up addrgenmode none",
        "ip link set lan1 addrgenmode none",
        "ip link add quiet0 type veth peer name quiet1",
    ] {
        let done = host.exec(command, Time::ZERO);
        assert_eq!(done.status, 0, "{command}: {}", done.stderr);
    }
    let steps = case["steps"].as_array().ok_or("no steps")?;
    for (n, step) in steps.iter().enumerate() {
        let line = step["run"].as_str().ok_or("no command")?;
        let done =
            host.command(&words(line), &mut penstock_host::NoFiles, Time::from_ns(n as i64 * 2_000_000_000));
        if done.stderr.contains(NOT_HERE) {
            return Ok((n, false));
        }
        // The text of usage is our own.
        let usage = done.stderr.starts_with("Usage: ip nexthop");
        let err = if usage { "Usage: ip nexthop".to_owned() } else { done.stderr };
        let theirs = step["err"].as_str().ok_or("no standard error")?;
        let theirs = if usage { theirs.get(..17).unwrap_or(theirs) } else { theirs };
        let out = step["out"].as_str().ok_or("no output")?;
        let out = if line.contains("-6 route") { without_groups(out) } else { out.to_owned() };
        let four = line.contains("route") && !line.contains("-6") && !ways;
        let (mut said, mut out) = match four {
            true if done.stdout.contains("nexthop") => (without_ways(&done.stdout), without_ways(&out)),
            _ => (done.stdout.clone(), out),
        };
        // Linux notices that a device has no carrier, for a gateway of IPv6, at the next change of the carrier only (fib_check_nh_v6_gw): here it is shown at once.
        if out.contains("inet6") {
            (said, out) = (without_linkdown(&said), without_linkdown(&out));
        }
        let ours = (said.as_str(), err.as_str(), i64::from(done.status));
        if ours != (out.as_str(), theirs, step["status"].as_i64().ok_or("no status")?) {
            let before: Vec<&str> = steps[..n].iter().filter_map(|s| s["run"].as_str()).collect();
            let tail = before[before.len().saturating_sub(6)..].join("\n  ");
            return Err(format!(
                "step {n}: {line}\nours ({}):\n{}{err}theirs ({}):\n{out}{theirs}behind:\n  {tail}",
                done.status, done.stdout, step["status"]
            ));
        }
    }
    Ok((steps.len(), true))
}

/// Plays all cases of a file; answers how many there are, how many went on to their end, and how many steps were alike.
fn play_all(file: &str) -> (usize, usize, usize) {
    let path = format!("{}/../../vectors/stack/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let wanted: Option<u64> = std::env::var("PENSTOCK_STACK").ok().and_then(|n| n.parse().ok());
    let (mut cases, mut steps, mut whole, mut wrong) = (0, 0, 0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        if wanted.is_some_and(|seed| case["seed"] != seed) {
            continue;
        }
        cases += 1;
        match play(&case, file == "gateways6-ways.jsonl") {
            Ok((n, end)) => {
                steps += n;
                whole += usize::from(end);
            }
            Err(why) => wrong.push(format!("seed {}: {why}", case["seed"])),
        }
    }
    println!("{cases} cases, {whole} to their end, {steps} steps alike, {} not", wrong.len());
    assert!(wrong.is_empty(), "{} of {cases}\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n\n"));
    (cases, whole, steps)
}

#[test]
fn nexthops_are_those_of_linux() {
    let (cases, whole, steps) = play_all("nexthops.jsonl");
    let one = std::env::var_os("PENSTOCK_STACK").is_some();
    assert!(one || cases >= 100 && whole >= 60 && steps > 3000, "{cases} {whole} {steps}");
}

#[test]
fn gateways_of_ipv6_among_several_ways_are_those_of_linux() {
    let (cases, whole, steps) = play_all("gateways6-ways.jsonl");
    let one = std::env::var_os("PENSTOCK_STACK").is_some();
    assert!(one || cases >= 20 && whole >= 18 && steps > 700, "{cases} {whole} {steps}");
}

#[test]
fn gateways_of_ipv6_are_those_of_linux() {
    let (cases, whole, steps) = play_all("gateways6.jsonl");
    let one = std::env::var_os("PENSTOCK_STACK").is_some();
    assert!(one || cases >= 60 && whole >= 55 && steps > 2000, "{cases} {whole} {steps}");
}

/// Packets share the members of a group by their weights, and go by what is left of it.
#[test]
fn packets_share_a_group() {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    for name in ["lan0", "lan1"] {
        host.add_device(name);
    }
    for command in [
        "ip link set lan0 up",
        "ip link set lan1 up",
        "ip addr add 10.0.0.1/24 dev lan0",
        "ip addr add 10.0.1.1/24 dev lan1",
        "ip nexthop add id 1 via 10.0.0.2 dev lan0",
        "ip nexthop add id 2 via 10.0.1.2 dev lan1",
        "ip nexthop add id 3 group 1,3/2",
        "ip route add 192.0.0.0/16 nhid 3",
    ] {
        assert_eq!(host.exec(command, Time::ZERO).status, 0, "{command}");
    }
    let share = |host: &mut Host| {
        let mut way =
            |n: u32| host.exec(&format!("ip route get 192.0.{}.{}", n / 250, n % 250), Time::ZERO).stdout;
        (0..1000).filter(|&n| way(n).contains("via 10.0.0.2 dev lan0")).count()
    };
    assert!((700..800).contains(&share(&mut host)), "{}", share(&mut host));
    assert_eq!(host.exec("ip nexthop replace id 3 group 1/2,255", Time::ZERO).status, 0);
    assert!((1..15).contains(&share(&mut host)), "{}", share(&mut host));
    assert_eq!(host.exec("ip link set lan1 down", Time::ZERO).status, 0);
    assert_eq!(
        host.exec("ip route show 192.0.0.0/16", Time::ZERO).stdout,
        "192.0.0.0/16 nhid 3 via 10.0.0.2 dev lan0 \n"
    );
    assert_eq!(share(&mut host), 1000);
    assert_eq!(host.exec("ip nexthop del id 1", Time::ZERO).status, 0);
    assert_eq!(host.exec("ip route get 192.0.0.1", Time::ZERO).status, 2);
}

/// A router between `lan1`, where 10.0.1.2 is, and `lan0`, behind which 192.0.2.0/24 lies by a gateway of IPv6.
struct Router {
    host: Host,
    pool: Pool,
}

impl Router {
    fn new() -> Router {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        for name in ["lan0", "lan1"] {
            host.add_device(name);
        }
        let mut router = Router { host, pool: Pool::default() };
        for command in [
            "sysctl -w net.ipv4.ip_forward=1",
            "ip link set lan0 up",
            "ip link set lan1 up",
            "ip addr add 10.0.0.1/24 dev lan0",
            "ip addr add 10.0.1.1/24 dev lan1",
            "ip addr add fe80::9/64 dev lan0 nodad",
            "ip neigh add 10.0.1.2 lladdr 02:00:00:00:00:02 dev lan1",
            "ip route add 192.0.2.0/24 via inet6 fe80::1 dev lan0",
        ] {
            router.exec(command, 0);
        }
        router
    }
    fn exec(&mut self, command: &str, ms: i64) -> String {
        let done = self.host.exec(command, Time::from_ns(ms * 1_000_000));
        assert_eq!(done.status, 0, "{command}: {}", done.stderr);
        done.stdout
    }
    /// What leaves by a device.
    fn frames(&mut self, dev: &str, ms: i64) -> Vec<Skb> {
        let mut out = Vec::new();
        let index = self.host.ifindex(dev).expect("a device");
        let mut cx = HostCx { now: Time::from_ns(ms * 1_000_000), pool: &mut self.pool, out: &mut out };
        std::iter::from_fn(|| self.host.dequeue(index, &mut cx)).map(|frame| (*frame).clone()).collect()
    }
    /// A datagram from 10.0.1.2 to 192.0.2.9 comes in.
    fn comes(&mut self, ms: i64) {
        let h = Ipv4::new("10.0.1.2".parse().unwrap(), "192.0.2.9".parse().unwrap(), 17);
        let mut skb = Skb::new(142, L3::Ipv4(h), L4::Udp(Udp { sport: 5, dport: 6 }));
        let index = self.host.ifindex("lan1").expect("a device");
        skb.eth = ([2, 0, 0, 0, 0, 2], self.host.devices()[index].mac);
        let mut out = Vec::new();
        let mut cx = HostCx { now: Time::from_ns(ms * 1_000_000), pool: &mut self.pool, out: &mut out };
        let packet = cx.pool.alloc(skb);
        self.host.receive(index, packet, &mut cx);
    }
    fn run(&mut self, until: i64) {
        while let Some(now) = self.host.next_timer().filter(|&at| at <= Time::from_ns(until * 1_000_000)) {
            let mut out = Vec::new();
            self.host.handle_timer(&mut HostCx { now, pool: &mut self.pool, out: &mut out });
        }
    }
}

fn is_six(frame: &Skb) -> bool {
    matches!(frame.l3, L3::Ipv6(_))
}

/// A packet of IPv4 waits for a gateway of IPv6, which is asked for by neighbour discovery, and goes to its hardware address.
#[test]
fn packets_of_ipv4_go_to_a_gateway_of_ipv6() {
    let mut router = Router::new();
    router.run(5000);
    router.frames("lan0", 5000);
    router.comes(5000);
    let asked = router.frames("lan0", 5000);
    assert!(!asked.is_empty() && asked.iter().all(is_six), "asked for, not sent: {asked:?}");
    let neigh = "ip -6 neigh replace fe80::1 lladdr 02:00:00:00:00:01 dev lan0 nud reachable";
    router.exec(neigh, 5000);
    router.comes(5001);
    router.comes(5002);
    let sent: Vec<Skb> = router.frames("lan0", 5002).into_iter().filter(|f| !is_six(f)).collect();
    assert!(sent.len() >= 2, "{sent:?}");
    for frame in &sent {
        assert_eq!(frame.eth.1, [2, 0, 0, 0, 0, 1]);
        assert!(matches!(frame.l3, L3::Ipv4(h) if h.dst.to_string() == "192.0.2.9" && h.ttl == 63));
    }
    assert!(
        !router.exec("ip -4 neigh show dev lan0", 5002).contains("192.0.2.9"),
        "nobody is asked for by ARP"
    );
    assert_eq!(
        router.exec("ip route get 192.0.2.9", 5002),
        "192.0.2.9 via inet6 fe80::1 dev lan0 src 10.0.0.1 uid 0 \n    cache \n"
    );
}

/// Of a gateway of IPv6 that does not answer the sender hears by ICMP for IPv4 (`ndisc_error_report`, `ipv4_link_failure`).
#[test]
fn a_gateway_of_ipv6_that_is_silent_is_an_unreachable_host() {
    for disabled in [false, true] {
        let mut router = Router::new();
        router.run(5000);
        router.frames("lan0", 5000);
        if disabled {
            router.exec("sysctl -w net.ipv6.conf.lan0.disable_ipv6=1", 5000);
        }
        router.comes(5000);
        router.run(9500);
        let asked = router.frames("lan0", 9500).into_iter().filter(is_six).count();
        assert_eq!(asked, if disabled { 0 } else { 3 });
        let told = router.frames("lan1", 9500);
        let told = told.iter().filter_map(|f| match (&f.l3, &f.l4) {
            (L3::Ipv4(h), L4::Icmp(icmp)) => Some((h.dst.to_string(), icmp.ty, icmp.code)),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), [("10.0.1.2".to_owned(), 3, 1)]);
    }
}
