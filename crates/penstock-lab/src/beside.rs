//! The replay engine compared with the simulator: what came to a device in an experiment is replayed through the same setup, and the
//! same must come of it: each packet at the same nanosecond, in the same order, from the same class, or lost for the same reason, and the
//! same counters at the end.
//!
//! Applies to each Linux device with a card of its own on a full-duplex link of two ends with a rate, counted as Ethernet, without a
//! ring behind the qdisc ([`applies`]). Commands given to the machine amid traffic are given to the replay at their moments.

use crate::experiment::{End as LinkEnd, Experiment, Framing, Host as HostSpec, Os};
use crate::run::{self, Options, Outcome};
use penstock_host::{Heard, Host, What};
use penstock_model::{Diagnostic, Handle, Rate, Span, Time};
use penstock_replay::capture::{Fate, Moment, Served, Simulated, What as Replayed, play};

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Beside {
    /// Devices that were replayed.
    pub devices: u32,
    /// Those among them that packets came to.
    pub busy: u32,
    /// Packets that came to them.
    pub packets: u64,
    /// What differs, a sentence each: a fault of ours.
    pub differences: Vec<String>,
    /// Devices that were not, and why.
    pub left_out: Vec<String>,
}

/// Whether the replay can be compared with a device: its line's rate, or why it cannot.
///
/// # Errors
/// Why not.
pub fn applies(experiment: &Experiment, host: &HostSpec, dev: &str) -> Result<Rate, &'static str> {
    if host.cisco.is_some() || host.os != Os::Linux {
        return Err("its machine does not run Linux");
    }
    if experiment.meters.iter().any(|m| m.host == host.name) {
        return Err("a meter stands before its queue");
    }
    let texts = host.setup.iter().map(|s| &s.text);
    let apps = experiment.apps.iter().filter(|a| a.on == host.name);
    let commands = apps.flat_map(|a| a.script.iter().map(|s| &s.text).chain([&a.run]));
    let texts: Vec<&str> = texts.chain(commands).map(String::as_str).collect();
    let says = |words: &[&str]| texts.iter().any(|text| words.iter().any(|word| text.contains(word)));
    if says(&["mirred"]) {
        return Err("an action may bring it packets of another device");
    }
    if says(&["wireguard", "wg-quick"]) {
        return Err("its machine begins handshakes by itself, and would in the replay too");
    }
    if says(&["pppd", "pon ", "pppoe-server"]) {
        return Err("its machine speaks PPP by itself, and would in the replay too");
    }
    if says(&["radvd"]) {
        return Err("its machine tells others of itself, or hears of routers, and would not in the replay");
    }
    let whole = experiment.offloads || says(&["tso", "gso"]);
    if whole && says(&["tbf", "cake", "netem", "taprio", "dualpi2"]) {
        return Err("its queue may cut super-packets, of which only the first segment is followed");
    }
    let is_end = |end: &&LinkEnd| end.host == host.name && end.dev == dev;
    let mut links = experiment.links.iter().filter_map(|l| Some((l, l.ends.iter().find(is_end)?)));
    let (Some((link, end)), None) = (links.next(), links.next()) else { return Err("it has not one link") };
    match end.rate.or(link.rate) {
        _ if link.ends.len() != 2 || link.half_duplex => Err("its medium is shared"),
        _ if link.framing != Framing::Ethernet => Err("its frames are not counted as Ethernet's"),
        _ if end.ring > 0 => Err("its card has a ring"),
        _ if end.tx_queues > 1 => Err("its card has several transmit queues"),
        None => Err("its link has no rate"),
        Some(rate) => Ok(rate),
    }
}

/// A device, and where it stands.
struct Held {
    /// Place of its host among the experiment's.
    host: usize,
    dev: String,
    rate: Rate,
}

/// Runs an experiment, and replays what came to each device that [`applies`].
///
/// # Errors
/// Those of [`run::run`].
pub fn beside(experiment: &Experiment) -> Result<Beside, Vec<Diagnostic>> {
    run_beside(experiment).map(|(_, found)| found)
}

/// The same with what the run gave. It is what [`run::run`] gives, but that the texts of tc come after another show, which `cbq` notes
/// (`undertime` of its link).
///
/// # Errors
/// Those of [`run::run`].
pub fn run_beside(experiment: &Experiment) -> Result<(Outcome, Beside), Vec<Diagnostic>> {
    let mut found = Beside::default();
    let mut held = Vec::new();
    for (n, host) in experiment.hosts.iter().enumerate() {
        for device in &host.devices {
            match applies(experiment, host, &device.name) {
                Ok(rate) => held.push(Held { host: n, dev: device.name.clone(), rate }),
                Err(why) => found.left_out.push(format!("{} {}: {why}", host.name, device.name)),
            }
        }
    }
    if held.is_empty() {
        return Ok((
            run::run(experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })?,
            found,
        ));
    }
    let names: Vec<(usize, &str)> = held.iter().map(|h| (h.host, h.dev.as_str())).collect();
    let end = Time::ZERO + experiment.duration;
    let (outcome, tapped) = run::tapped(experiment, &names)?;
    for (held, run::Tapped { heard, shown: simulated, mut machine }) in held.iter().zip(tapped) {
        let name = format!("{} {}", experiment.hosts[held.host].name, held.dev);
        let came = heard.iter().filter(|h| matches!(h.what, What::Came(_))).count() as u64;
        found.devices += 1;
        found.busy += u32::from(came > 0);
        found.packets += came;
        let Some(ifindex) = machine.ifindex(&held.dev) else { continue };
        let replayed = replay(&mut machine, ifindex, held.rate, &heard, end);
        let differs = differences(&fates(&heard), &replayed);
        found.differences.extend(differs.into_iter().map(|d| format!("{name}: {d}")));
        let shown = show(&mut machine, &held.dev, end);
        for (ours, theirs) in simulated.lines().zip(shown.lines()).filter(|(a, b)| a != b).take(2) {
            found.differences.push(format!("{name}: the simulation shows {ours:?}, the replay {theirs:?}"));
        }
        if simulated.lines().count() != shown.lines().count() {
            found.differences.push(format!("{name}: what tc shows has another length"));
        }
    }
    Ok((outcome, found))
}

/// What became of a packet that came: its number, when, and in which words.
#[derive(Clone, PartialEq, Eq, Debug)]
struct End {
    i: u32,
    at: Time,
    what: String,
}

/// Departures in their order, then losses by time and number: of those of one moment the simulator tells in the order in which they are
/// freed, which is nothing of the queue's.
type Fates = (Vec<End>, Vec<End>);

fn class_text(class: Handle) -> String {
    if class == Handle::ROOT || class == Handle::UNSPEC { "-".to_owned() } else { class.to_string() }
}
fn left(class: Handle, tos: u8, mark: u32) -> String {
    format!("left (class {}, tos {tos:#x}, mark {mark})", class_text(class))
}
fn lost(place: &str, reason: &str, class: Handle) -> String {
    format!("lost ({place} {reason}, class {})", class_text(class))
}

/// The simulation's.
fn fates(heard: &[Heard]) -> Fates {
    let mut fates = Fates::default();
    for Heard { at, what, .. } in heard {
        match *what {
            What::Left { i, class, tos, mark } => {
                fates.0.push(End { i, at: *at, what: left(class, tos, mark) });
            }
            What::Lost { i, place, reason, class } => {
                fates.1.push(End { i, at: *at, what: lost(place, reason, class) });
            }
            What::Came(_) | What::Command(_) => {}
        }
    }
    fates.1.sort_by_key(|end| (end.at, end.i));
    fates
}

/// Replays what was heard.
fn replay(machine: &mut Host, ifindex: u32, rate: Rate, heard: &[Heard], end: Time) -> Fates {
    let (mut moments, mut turns, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    let mut came = 0u32;
    for Heard { at, turn, more, what } in heard {
        let what = match what {
            What::Came(skb) => Replayed::Packet(skb.clone()),
            What::Command(line) => Replayed::Command(line.clone()),
            What::Left { .. } | What::Lost { .. } => continue,
        };
        numbers.push(came);
        came += u32::from(matches!(what, Replayed::Packet(_)));
        turns.push((*turn, *more));
        moments.push(Moment { t_ns: at.as_ns(), what, bytes: Vec::new() });
    }
    let simulated = Some(Simulated { turns, end });
    let served =
        Served { ifindex, ingress: false, from: None, rate: Some(rate), drain: Span::ZERO, simulated };
    let played = play(machine, &served, &moments, Time::ZERO);
    let end = |&i: &u32| {
        let number = numbers[i as usize];
        match &played.fates[i as usize] {
            Fate::Left(l) => {
                let what = left(l.skb.tc.class, l.skb.tos(), l.skb.mark);
                End { i: number, at: Time::from_ns(l.t_ns), what }
            }
            Fate::Dropped(l) => {
                let what = lost(l.place, l.reason, l.class.unwrap_or(Handle::ROOT));
                End { i: number, at: Time::from_ns(l.t_ns), what }
            }
            Fate::Unknown | Fate::Received => {
                End { i: number, at: Time::ZERO, what: "neither left nor lost".to_owned() }
            }
        }
    };
    let mut losses: Vec<End> = played.lost.iter().map(end).collect();
    losses.sort_by_key(|end| (end.at, end.i));
    (played.order.iter().map(end).collect(), losses)
}

/// The first departure and the first loss in which they differ.
fn differences(simulated: &Fates, replayed: &Fates) -> Vec<String> {
    let lists = [("departure", &simulated.0, &replayed.0), ("loss", &simulated.1, &replayed.1)];
    let mut found = Vec::new();
    for (what, ours, theirs) in lists {
        let first = (0..ours.len().max(theirs.len())).find(|&n| ours.get(n) != theirs.get(n));
        let Some(n) = first else { continue };
        let text = |end: Option<&End>| {
            end.map_or("nothing more".to_owned(), |e| format!("packet {} at {} {}", e.i, e.at, e.what))
        };
        found.push(format!(
            "{what} {n}: in the simulation {}, in the replay {} ({} and {} in all)",
            text(ours.get(n)),
            text(theirs.get(n)),
            ours.len(),
            theirs.len()
        ));
    }
    found
}

/// What tc shows of a device's queues at the end. What arrives at it is not replayed: an ingress qdisc's own lines are left out.
pub(crate) fn show(machine: &mut Host, dev: &str, end: Time) -> String {
    let mut text = String::new();
    for what in ["qdisc show", "class show", "filter show"] {
        text += &machine.exec(&format!("tc -s -d {what} dev {dev}"), end).stdout;
    }
    // u32 filters of both hooks of a clsact stand in one list (`tc_u_common`), and of one priority are shown at both.
    if machine.exec(&format!("tc filter show dev {dev} ingress"), end).stdout.is_empty() {
        text += &machine.exec(&format!("tc -s -d filter show dev {dev} egress"), end).stdout;
    }
    let mut inside = true;
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with("qdisc ") {
            inside = !line.starts_with("qdisc clsact") && !line.starts_with("qdisc ingress");
        } else if line.starts_with("class ") || line.starts_with("filter ") {
            inside = true;
        }
        if inside {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse;
    use penstock_host::Turn;
    use penstock_model::Kernel;

    /// Two machines on 2 Mbit/s; `setup` on the first, `rest` of the file behind.
    fn held(setup: &str, link: &str, rest: &str) -> Beside {
        let text = format!(
            "duration = \"1s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\nsetup = '''\n{setup}\n'''\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
             [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\ndelay = \"5ms\"\n{link}\n{rest}"
        );
        beside(&parse(&text, "t.toml").unwrap_or_else(|d| panic!("{}", d[0])))
            .unwrap_or_else(|d| panic!("{}", d[0]))
    }
    const UDP: &str = "[[flow]]\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = \"3mbit\"\n";
    const TCP: &str = "[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\ncount = 3\n";

    #[test]
    fn the_replay_does_what_the_simulation_did() {
        let change =
            "[[app]]\non = \"a\"\nrun = \"tc qdisc replace dev eth0 root pfifo limit 3\"\nat = \"500ms\"\n";
        // Whoever takes note of being found empty is asked once more by both.
        let idle = "[[flow]]\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = { size = 900, gap = \"9ms\" }\n";
        for setup in [
            "tc qdisc add dev eth0 root pfifo limit 10",
            "tc qdisc add dev eth0 root fq_codel limit 50",
            "tc qdisc add dev eth0 root codel limit 50 target 1ms interval 20ms",
            "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 parent 1:2 fq_codel limit 50",
            "tc qdisc add dev eth0 root tbf rate 1mbit burst 3000 limit 9000",
            "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 3000 limit 9000\ntc qdisc add dev eth0 parent 1:1 fq_codel limit 50",
            "tc qdisc add dev eth0 root handle 1: dsmark indices 8 default_index 1\ntc qdisc add dev eth0 parent 1: codel limit 50",
            "tc qdisc add dev eth0 root handle 1: cbq bandwidth 10mbit avpkt 1000 cell 8\ntc class add dev eth0 parent 1: classid 1:1 cbq bandwidth 10mbit rate 1mbit \
             allot 1514 prio 8 avpkt 1000 maxburst 7\ntc filter add dev eth0 parent 1: protocol ip prio 3 matchall flowid 1:1",
            "tc qdisc add dev eth0 root red limit 60000 min 3000 max 9000 avpkt 1000 burst 5 probability 0.1",
            "tc qdisc add dev eth0 root handle 1: htb default 10\ntc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit ceil 2mbit",
        ] {
            for rest in [UDP.to_owned(), idle.to_owned(), format!("{UDP}{TCP}{change}")] {
                let got = held(setup, "rate = \"2mbit\"", &rest);
                assert_eq!(got.differences, Vec::<String>::new(), "{setup}\n{rest}");
                assert!(got.devices == 2 && got.busy == 2 && got.packets > 90, "{got:?}");
            }
        }
    }

    /// A card's timer that was set later meanwhile asks for nothing at its old moment: tbf would count an overlimit. Here the packet at the
    /// head is pushed out, and the next one has to wait longer.
    #[test]
    fn a_timer_that_moved_on_asks_for_nothing() {
        let setup = "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 15073 limit 14420\n\
                     tc qdisc add dev eth0 parent 1:1 handle 101: pfifo_head_drop limit 6";
        let datagrams = |size: u32, gap: &str| {
            format!(
                "[[flow]]\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = {{ size = {size}, gap = \"{gap}\" }}\n"
            )
        };
        let got = held(setup, "rate = \"5mbit\"", &(datagrams(15_619, "42ms") + &datagrams(30, "7100us")));
        assert_eq!(got.differences, Vec::<String>::new());
        assert!(got.packets > 300, "{got:?}");
    }

    /// What a run gives is the same with taps and without.
    #[test]
    fn taps_change_nothing() {
        let setup = "tc qdisc add dev eth0 root handle 1: htb default 10\ntc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit";
        let text = format!(
            "duration = \"1s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\nsetup = '''\n{setup}\n'''\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
             [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"2mbit\"\n{UDP}{TCP}"
        );
        let parsed = parse(&text, "t.toml").unwrap_or_else(|d| panic!("{}", d[0]));
        let told = |o: Outcome| (o.record.to_json(), o.series, o.outputs, o.tc);
        let plain = run::run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
        let plain = told(plain.unwrap_or_else(|d| panic!("{}", d[0])));
        let (tapped, found) = run_beside(&parsed).unwrap_or_else(|d| panic!("{}", d[0]));
        assert!(told(tapped) == plain && found.busy == 2);
    }

    /// What the replay is told otherwise shows.
    #[test]
    fn another_line_is_a_difference() {
        let skb = |i: u64| {
            let mut skb = penstock_packet::Skb::new(
                1000,
                penstock_packet::L3::Other(0x1234),
                penstock_packet::L4::None,
            );
            skb.seq = i;
            skb
        };
        let heard: Vec<Heard> = (0..4)
            .map(|i| Heard {
                at: Time::from_ns(i),
                turn: Turn::Over,
                more: false,
                what: What::Came(Box::new(skb(i as u64))),
            })
            .collect();
        let run = |rate| {
            let mut host = Host::new("a", Kernel::V6_12, 1);
            let ifindex = host.add_device("eth0");
            assert_eq!(host.exec("ip link set eth0 up", Time::ZERO).status, 0);
            replay(&mut host, ifindex, Rate::from_bit_per_s(rate), &heard, Time::from_ns(1_000_000_000))
        };
        let (slow, fast) = (run(1_000_000), run(2_000_000));
        assert_eq!(slow.0.len(), 4);
        assert_eq!(differences(&slow, &run(1_000_000)), Vec::<String>::new());
        let said = differences(&slow, &fast);
        assert!(
            said.len() == 1 && said[0].starts_with("departure 1: in the simulation packet 1 at "),
            "{said:?}"
        );
    }

    #[test]
    fn who_is_left_out_and_why() {
        let got = held("true", "", UDP);
        assert_eq!(got.left_out, ["a eth0: its link has no rate", "b eth0: its link has no rate"]);
        let got = held(
            "tc qdisc add dev eth0 clsact\ntc filter add dev eth0 egress matchall action mirred egress redirect dev eth0",
            "rate = \"1mbit\"",
            "",
        );
        assert_eq!(got.left_out, ["a eth0: an action may bring it packets of another device"]);
        let got = held("ip link add wg0 type wireguard", "rate = \"1mbit\"", UDP);
        assert_eq!(
            got.left_out,
            ["a eth0: its machine begins handshakes by itself, and would in the replay too"]
        );
        let got = held("true", "rate = \"1mbit\"\nduplex = \"half\"", UDP);
        assert_eq!(got.left_out.len(), 2);
    }
}
