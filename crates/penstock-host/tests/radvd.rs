//! What radvd says and answers, as radvd 2.19 did on Linux 6.12 (`vectors/stack/radvd.jsonl`, made by `vectors/stack/radvd.py`).
//!
//! Answers to one are compared with their times, and so are the first three messages to all; of the later ones, whose waits are drawn, the bytes. Where
//! lifetimes become less the bytes follow from these times, so that there only the first three are compared.

use penstock_host::{Effect, FileError, Files, Host, HostCx};
use penstock_model::{Kernel, Time};
use penstock_packet::{Icmp, IcmpBody, Ipv6, L3, L4, Pool, Skb};
use serde_json::Value;
use std::collections::VecDeque;
use std::net::Ipv6Addr;

struct Etc(String);

impl Files for Etc {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        if path == "/etc/radvd.conf" { Ok(self.0.clone()) } else { Err(FileError::NotFound) }
    }
}

struct Machine {
    host: Host,
    pool: Pool,
    etc: Etc,
    /// Advertisements, and when.
    heard: Vec<(i64, Vec<u8>)>,
}

fn six(bytes: &[u8], at: usize) -> Ipv6Addr {
    <[u8; 16]>::try_from(&bytes[at..at + 16]).expect("16 bytes").into()
}

impl Machine {
    fn effects(&mut self, now: Time, out: Vec<Effect>) {
        let mut out = VecDeque::from(out);
        while let Some(effect) = out.pop_front() {
            let ifindex = match effect {
                Effect::Kick(ifindex) => ifindex,
                Effect::Next(ifindex, packet) => {
                    let mut more = Vec::new();
                    let mut cx = HostCx { now, pool: &mut self.pool, out: &mut more };
                    self.host.comes_to(ifindex, packet, &mut cx);
                    out.extend(more);
                    continue;
                }
                _ => continue,
            };
            let mut more = Vec::new();
            let mut cx = HostCx { now, pool: &mut self.pool, out: &mut more };
            let mut answers = Vec::new();
            while let Some(frame) = self.host.dequeue(ifindex, &mut cx) {
                let mut bytes = Vec::new();
                frame.frame_bytes(usize::MAX, &mut bytes);
                match frame.l4 {
                    L4::Icmp(i) if i.ty == 134 => self.heard.push((now.as_ns(), bytes)),
                    L4::Icmp(Icmp { ty: 135, body: IcmpBody::Neighbour { target, .. }, .. }) => {
                        answers.push((target, six(&bytes, 22)));
                    }
                    _ => {}
                }
                cx.pool.free(frame);
            }
            out.extend(more);
            for (target, src) in answers {
                let body = IcmpBody::Neighbour { target, mac: Some([2, 0, 0, 0, 2, 9]) };
                let icmp = Icmp { body, ..Icmp::new(136, 0, 0x6000, 0) };
                self.hear(
                    Skb::new(
                        86,
                        L3::Ipv6(Ipv6 { hop_limit: 255, ..Ipv6::new(target, src, 58) }),
                        L4::Icmp(icmp),
                    ),
                    now,
                );
            }
        }
    }
    fn hear(&mut self, mut skb: Skb, now: Time) {
        skb.eth = ([2, 0, 0, 0, 2, 9], [2, 0, 0, 0, 1, 1]);
        if matches!(skb.l3, L3::Ipv6(h) if h.dst.is_multicast()) {
            skb.eth.1 = [0x33, 0x33, 0, 0, 0, 2];
        }
        let lan = self.host.ifindex("lan0").expect("a card");
        let mut out = Vec::new();
        let mut cx = HostCx { now, pool: &mut self.pool, out: &mut out };
        self.host.receive(lan, Box::new(skb), &mut cx);
        self.effects(now, out);
    }
    fn run_until(&mut self, now: Time) {
        while let Some(at) = self.host.next_timer().filter(|&at| at <= now) {
            let mut out = Vec::new();
            self.host.handle_timer(&mut HostCx { now: at, pool: &mut self.pool, out: &mut out });
            self.effects(at, out);
        }
    }
    fn command(&mut self, line: &str, now: Time) -> (String, i32) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let done = self.host.command(&words, &mut self.etc, now);
        let mut out = Vec::new();
        self.host.take_effects(&mut out);
        self.effects(now, out);
        (done.stdout + &done.stderr, done.status)
    }
}

fn machine(conf: &str, forwarding: i64) -> Machine {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    host.set_hz(100);
    host.add_device("lan0");
    let mut m = Machine { host, pool: Pool::new(), etc: Etc(conf.to_owned()), heard: Vec::new() };
    for line in [
        "ip link set lan0 address 02:00:00:00:01:01",
        "ip link set lo up",
        &format!("sysctl -qw net.ipv6.conf.all.forwarding={forwarding}"),
        "ip addr add 2001:db8:5::1/64 dev lan0",
        "ip addr add 2001:db8:6::1/48 dev lo",
    ] {
        assert_eq!(m.command(line, Time::ZERO), (String::new(), 0), "{line}");
    }
    m
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

/// Without the flow label, which a socket of Linux draws.
fn unlabelled(mut frame: Vec<u8>) -> Vec<u8> {
    frame[15] &= 0xf0;
    frame[16..18].fill(0);
    frame
}

type Heard = Vec<(i64, Vec<u8>)>;

fn same(what: &str, ours: &Heard, theirs: &Heard, with_bytes: bool) -> Result<(), String> {
    if ours.len() != theirs.len() {
        return Err(format!("{what}: {} times, not {}", ours.len(), theirs.len()));
    }
    for (n, (a, b)) in ours.iter().zip(theirs).enumerate() {
        if with_bytes && a.1 != b.1 {
            return Err(format!("{what} {n}:\nours   {:02x?}\ntheirs {:02x?}", a.1, b.1));
        }
        if (a.0 - b.0).abs() > 40_000_000 {
            return Err(format!("{what} {n}: at {} ns, not {}", a.0, b.0));
        }
    }
    Ok(())
}

fn play(case: &Value) -> Result<usize, String> {
    let conf = case["conf"].as_str().ok_or("no file")?;
    let mut m = machine(conf, case["forwarding"].as_i64().ok_or("no number")?);
    let begin = 3_000_000_000;
    let said = m.command("radvd", Time::from_ns(begin));
    if said.1 != 0 {
        return Err(said.0);
    }
    for question in case["asked"].as_array().ok_or("no questions")? {
        let now = Time::from_ns(begin + question["at"].as_i64().ok_or("no time")?);
        m.run_until(now);
        let bytes = bytes_of(question["frame"].as_str().ok_or("no frame")?);
        let h = Ipv6 { hop_limit: 255, ..Ipv6::new(six(&bytes, 22), six(&bytes, 38), 58) };
        let mut skb = Skb::new(bytes.len() as u32, L3::Ipv6(h), L4::Icmp(Icmp::new(133, 0, 0, 0)));
        skb.rare_mut().message = Some(bytes[62..].into());
        m.hear(skb, now);
        m.run_until(now);
    }
    let end = Time::from_ns(begin + 45_000_000_000);
    m.run_until(end);
    assert_eq!(m.command("killall radvd", end).1, 0);
    m.run_until(Time::from_ns(begin + 46_000_000_000));
    let own = "sysctl net.ipv6.conf.lan0.hop_limit net.ipv6.conf.lan0.mtu net.ipv6.neigh.lan0.retrans_time_ms net.ipv6.neigh.lan0.base_reachable_time_ms";
    let shown = m.command(own, end).0;
    if Some(shown.as_str()) != case["own"].as_str() {
        return Err(format!("ours:\n{shown}theirs:\n{}", case["own"].as_str().unwrap_or_default()));
    }
    let ours: Heard = m.heard.iter().map(|(at, bytes)| (at - begin, bytes.clone())).collect();
    let theirs = case["heard"].as_array().ok_or("nothing heard")?;
    let theirs: Heard = theirs
        .iter()
        .map(|a| {
            (a["at"].as_i64().unwrap_or(0), unlabelled(bytes_of(a["frame"].as_str().unwrap_or_default())))
        })
        .collect();
    let decrements = conf.contains("DecrementLifetimes on");
    let ceased = |all: &Heard| -> Heard { all.iter().filter(|a| a.0 >= 44_995_000_000).cloned().collect() };
    let told = |all: &Heard, one: bool| -> Heard {
        all.iter().filter(|a| a.0 < 44_995_000_000 && six(&a.1, 38).is_multicast() != one).cloned().collect()
    };
    same("at the end", &ceased(&ours), &ceased(&theirs), !decrements)?;
    // Where only some are told, that is by the clock too.
    let alone = conf.contains("clients");
    if !alone {
        same("to one", &told(&ours, true), &told(&theirs, true), !decrements)?;
    }
    // The first three of all were to the minute, unless a question came in between.
    let first = |all: &Heard| -> Heard {
        let third = all.get(2).map_or(0, |a| a.0);
        all.iter().filter(|a| a.0 <= third).take(3).cloned().collect()
    };
    same("at first", &first(&ours), &first(&theirs), true)?;
    let (ours, theirs) = (told(&ours, alone), told(&theirs, alone));
    if !decrements {
        let frames = |all: &Heard| all.iter().map(|a| a.1.clone()).collect::<std::collections::BTreeSet<_>>();
        if frames(&ours) != frames(&theirs) {
            return Err("others are told to all".to_owned());
        }
    }
    // The waits between them are drawn.
    if ours.len().abs_diff(theirs.len()) > if alone { 8 } else { 4 } {
        return Err(format!("{} to all, not {}", ours.len(), theirs.len()));
    }
    Ok(theirs.len())
}

#[test]
fn links_are_told_as_radvd_tells_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/stack/radvd.jsonl");
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
            Err(said) => wrong.push(format!(
                "seed {}: {said}\n{}",
                case["seed"],
                case["conf"].as_str().unwrap_or_default()
            )),
        }
    }
    assert!(wrong.is_empty(), "{} of {cases} cases differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(wanted.is_some() || (cases >= 50 && shown >= 200), "{cases} cases, {shown} messages");
}

#[test]
fn what_is_wrong_with_the_program_or_its_file_is_said() {
    let mut m = machine("interface lan0 {\n AdvSendAdvert on;\n prefix 2001:db8::/64 {};\n Foo on;\n};", 1);
    let (said, status) = m.command("radvd -C /etc/radvd.conf", Time::ZERO);
    assert_eq!(
        (said.as_str(), status),
        ("radvd: /etc/radvd.conf:4: syntax error at \"Foo\": no word of radvd.conf for this place\n", 1)
    );
    assert_eq!(m.command("radvd -C /etc/nothing", Time::ZERO).1, 1);
    assert_eq!(m.command("radvd -z", Time::ZERO).1, 1);
    assert_eq!(m.command("killall radvd", Time::ZERO), ("radvd: no process found\n".to_owned(), 1));
    m.etc.0 = "interface lan0 { AdvSendAdvert on; };".to_owned();
    assert_eq!(m.command("radvd -c", Time::ZERO), (String::new(), 0));
    assert_eq!(m.command("radvd --config=/etc/radvd.conf", Time::ZERO), (String::new(), 0));
    assert_eq!(m.command("radvd", Time::ZERO).1, 1);
    assert_eq!(m.command("killall -HUP radvd", Time::ZERO).1, 1);
    assert_eq!(
        m.command("killall pppoe-server", Time::ZERO).0,
        "killall: to end pppoe-server is not simulated\n"
    );
    assert_eq!(m.command("pkill -KILL radvd", Time::ZERO), (String::new(), 0));
    assert_eq!(m.command("radvd -nd5 -C/etc/radvd.conf", Time::ZERO), (String::new(), 0));
    assert_eq!(m.command("pkill -f radvd", Time::ZERO), (String::new(), 0));
}
