//! What a machine makes of routers' advertisements, as real Linux shows it at any time (`vectors/stack/advertised.jsonl`, made by
//! `vectors/stack/advertised.py`).

use penstock_host::{Effect, Host, HostCx};
use penstock_model::{Kernel, Time};
use penstock_packet::{Icmp, IcmpBody, Ipv6, L3, L4, Pool, Skb};
use serde_json::Value;
use std::net::Ipv6Addr;

/// The kernel's clock begins at 2^32 - 30,000 ticks of 10 ms; whole seconds and the steps of its timers' wheel lie as in ours from there on.
const BEGINS: i64 = (((1 << 32) - 30_000) % 6_553_600) * 10_000_000;

struct Machine {
    host: Host,
    pool: Pool,
    /// Frames that asked for routers, and when.
    asked: Vec<(Time, String)>,
}

impl Machine {
    fn effects(&mut self, now: Time, mut out: Vec<Effect>) {
        while let Some(effect) = out.pop() {
            let Effect::Kick(ifindex) = effect else { continue };
            let mut more = Vec::new();
            let mut cx = HostCx { now, pool: &mut self.pool, out: &mut more };
            while let Some(frame) = self.host.dequeue(ifindex, &mut cx) {
                let mut bytes = Vec::new();
                frame.frame_bytes(usize::MAX, &mut bytes);
                if matches!(frame.l4, L4::Icmp(i) if i.ty == 133) {
                    self.asked.push((now, bytes.iter().map(|b| format!("{b:02x}")).collect()));
                }
                cx.pool.free(frame);
            }
            out.append(&mut more);
        }
    }
    fn run_until(&mut self, now: Time) {
        while let Some(at) = self.host.next_timer().filter(|&at| at <= now) {
            let mut out = Vec::new();
            self.host.handle_timer(&mut HostCx { now: at, pool: &mut self.pool, out: &mut out });
            self.effects(at, out);
        }
    }
    fn exec(&mut self, line: &str, now: Time) -> (String, String, i32) {
        let done = self.host.exec(line, now);
        let mut out = Vec::new();
        self.host.take_effects(&mut out);
        self.effects(now, out);
        (done.stdout, done.stderr, done.status)
    }
    fn hear(&mut self, bytes: &[u8], now: Time) {
        let two = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let six = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[at..at + 16]).expect("16 bytes"));
        let mac = |at: usize| <[u8; 6]>::try_from(&bytes[at..at + 6]).expect("6 bytes");
        let h = Ipv6 { hop_limit: bytes[21], ..Ipv6::new(six(22), six(38), 58) };
        let mut icmp = Icmp::new(bytes[54], bytes[55], two(58), two(60));
        let about_neighbour = matches!(icmp.ty, 135 | 136);
        if about_neighbour {
            icmp.body = IcmpBody::Neighbour { target: six(62), mac: bytes.get(80..86).map(|_| mac(80)) };
        }
        let mut skb = Skb::new(bytes.len() as u32, L3::Ipv6(h), L4::Icmp(icmp));
        skb.eth = (mac(6), mac(0));
        if !about_neighbour {
            skb.rare_mut().message = Some(bytes[62..].into());
        }
        let mut written = Vec::new();
        skb.frame_bytes(usize::MAX, &mut written);
        assert_eq!(written, bytes, "the frame as it was sent");
        let lan = self.host.ifindex("lan0").expect("a card");
        let mut out = Vec::new();
        let mut cx = HostCx { now, pool: &mut self.pool, out: &mut out };
        self.host.receive(lan, Box::new(skb), &mut cx);
        self.effects(now, out);
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

/// Without what belongs to the device, and in an order of its own where the kernel's is that of a hash.
fn plain(line: &str, text: &str) -> String {
    if line.contains("neigh") {
        let text = text.replace("},{", "},\n{").replace(['[', ']'], "");
        let mut lines: Vec<&str> = text.lines().map(|l| l.trim_end().trim_end_matches(',')).collect();
        lines.sort_unstable();
        return lines.join("\n");
    }
    if line.contains("route get") {
        // A processor keeps of a route the preference and the metrics that it had when it was first used.
        let words: Vec<&str> = text.split_whitespace().collect();
        return words.split(|w| *w == "metric").next().unwrap_or_default().join(" ");
    }
    let keep = |l: &&str| !line.contains("addr") || l.starts_with("    ");
    text.lines().filter(keep).map(|l| format!("{}\n", l.trim_end())).collect()
}

fn play(case: &Value) -> Result<usize, String> {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    host.set_hz(100);
    host.add_device("lan0");
    let mut m = Machine { host, pool: Pool::new(), asked: Vec::new() };
    let begin = Time::from_ns(BEGINS);
    for line in ["ip link set lan0 down", "ip link set lo up", "ip link set lan0 address 02:00:00:00:01:01"] {
        assert_eq!(m.exec(line, begin), (String::new(), String::new(), 0), "{line}");
    }
    m.host.look_for_routers(begin);
    let mut shown = 0;
    for (n, step) in case["steps"].as_array().ok_or("no steps")?.iter().enumerate() {
        let now = Time::from_ns(BEGINS + step["at"].as_i64().ok_or("no time")?);
        m.run_until(now);
        if let Some(hex) = step["frame"].as_str() {
            m.hear(&bytes_of(hex), now);
            continue;
        }
        let line = step["run"].as_str().ok_or("no command")?;
        let (out, err, status) = m.exec(line, now);
        let Some(theirs) = step["out"].as_str() else {
            let told = (step["err"].as_str(), step["status"].as_i64());
            if (Some(err.as_str()), Some(i64::from(status))) != told {
                return Err(format!("step {n}: {line}: {status} {err:?}, not {told:?}"));
            }
            continue;
        };
        shown += 1;
        if plain(line, &out) != plain(line, theirs) {
            return Err(format!("step {n}: {line}\nours:\n{out}theirs:\n{theirs}"));
        }
    }
    let end = case["steps"][case["steps"].as_array().map_or(0, |s| s.len() - 1)]["at"].as_i64();
    m.run_until(Time::from_ns(BEGINS + end.ok_or("no time")?));
    asked(&m, case).map(|()| shown)
}

/// Whether it asked as often, with the same frames. The waits are drawn: of those after the first ours and theirs lie within the same bounds.
fn asked(m: &Machine, case: &Value) -> Result<(), String> {
    let theirs: Vec<&str> =
        case["asked"].as_array().ok_or("no frames")?.iter().filter_map(|a| a["frame"].as_str()).collect();
    let ours: Vec<&str> = m.asked.iter().map(|a| a.1.as_str()).collect();
    let fits = |n: usize| theirs.len().abs_diff(n) <= 1.max(theirs.len() / 3);
    if ours.first() != theirs.first() || !fits(ours.len()) || ours.iter().any(|f| Some(f) != ours.first()) {
        return Err(format!("asked {} times, not {}: {:?}", ours.len(), theirs.len(), theirs.first()));
    }
    Ok(())
}

#[test]
fn routers_are_believed_as_linux_believes_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/stack/advertised.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let wanted: Option<u64> = std::env::var("PENSTOCK_STACK").ok().and_then(|n| n.parse().ok());
    let (mut cases, mut shown, mut wrong) = (0, 0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        if wanted.is_some_and(|seed| case["seed"] != seed) {
            continue;
        }
        cases += 1;
        match play(&case) {
            Ok(n) => shown += n,
            Err(said) => wrong.push(format!("seed {}: {said}", case["seed"])),
        }
    }
    assert!(wrong.is_empty(), "{} of {cases} cases differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(wanted.is_some() || (cases >= 100 && shown >= 500), "{cases} cases, {shown} shown");
}

proptest::proptest! {
    /// Whatever a router says, a machine bears it; what a `radvd` beside it would answer goes out or does not.
    #[test]
    fn any_message_is_borne(
        kind in 133u8..=134,
        from in 0u8..4,
        body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..90),
        settings in proptest::collection::vec((0usize..6, -2i64..300), 0..4),
    ) {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        host.add_device("lan0");
        let mut m = Machine { host, pool: Pool::new(), asked: Vec::new() };
        m.host.look_for_routers(Time::ZERO);
        const KEYS: [&str; 6] = ["accept_ra_rt_info_max_plen", "accept_ra", "accept_ra_min_lft", "mtu", "router_solicitation_interval", "max_addresses"];
        for (key, value) in settings {
            m.exec(&format!("sysctl -w net.ipv6.conf.lan0.{}={value}", KEYS[key]), Time::ZERO);
        }
        let src = Ipv6Addr::from(if from == 0 { 0 } else { (0xfe80 << 112) + u128::from(from) });
        let h = Ipv6 { hop_limit: 255, ..Ipv6::new(src, "ff02::1".parse().expect("a group"), 58) };
        // Options often are as long as they say.
        let mut body = body;
        if let Some(len) = body.get_mut(9) {
            *len = *len % 5 + 1;
        }
        let mut skb = Skb::new(62 + body.len() as u32, L3::Ipv6(h), L4::Icmp(Icmp::new(kind, 0, 0x4000, 1800)));
        skb.eth = ([2, 0, 0, 0, 2, from], [0x33, 0x33, 0, 0, 0, 1]);
        skb.rare_mut().message = Some(body.into());
        let lan = m.host.ifindex("lan0").expect("a card");
        let mut out = Vec::new();
        let mut cx = HostCx { now: Time::ZERO, pool: &mut m.pool, out: &mut out };
        m.host.receive(lan, Box::new(skb), &mut cx);
        m.effects(Time::ZERO, out);
        m.run_until(Time::from_ns(100_000_000_000));
        for shown in ["ip -6 addr", "ip -6 route", "ip -6 neigh", "ip token"] {
            proptest::prop_assert_eq!(m.exec(shown, Time::from_ns(100_000_000_000)).2, 0);
        }
    }
}
