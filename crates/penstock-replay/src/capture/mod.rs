//! `penstock replay CAPTURE --through SCRIPT`: captured packets through a device that a script, or the machine that lives between
//! calls, has configured.
//!
//! The packets leave by the device at the times of the capture: netfilter's rules, then the qdisc. Nothing is routed: the capture says
//! by which device they leave. Each ends with a fate: the class it was queued in, how long it waited, or why it was lost.
//!
//! Differs from the real device: of a packet only the headers are known (a filter that looks at the payload sees zeros), and one that
//! was larger than the MTU when it was captured (offloads) goes through the qdisc as the super-packet that it was, where it is TCP.

mod frame;
mod pcap;
mod play;
mod read;
mod write;

pub use pcap::{Direction, Seat, Writer, packet_block};
pub use play::{Fate, Played, Served, Simulated, play};
pub use read::{Moment, Traffic, What, is_capture, read};
pub use write::write;

use penstock_host::Host;
use penstock_measure::Distribution;
use penstock_measure::table::{Align, Table};
use penstock_model::{Diagnostic, Handle, Rate, Span, Time};
use penstock_packet::headers::ETH_HLEN;
use penstock_packet::{L3, L4};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// How a capture is replayed.
pub struct Settings {
    /// The device; `None`: the one that has a qdisc of its own.
    pub dev: Option<String>,
    /// The packets arrive at the device: through its ingress hook, and no further.
    pub ingress: bool,
    /// The device the packets came in by, for rules and filters; `None`: this machine sent them.
    pub from: Option<String>,
    /// Rate of the line behind the device; `None`: it takes all it is given.
    pub rate: Option<Rate>,
    /// How long the last packets are waited for, at most.
    pub drain: Span,
}

/// A capture replayed.
pub struct Replay {
    /// The device.
    pub dev: String,
    /// What was replayed.
    pub traffic: Traffic,
    /// What came of it.
    pub played: Played,
    settings: Settings,
    kernel: &'static str,
    devices: BTreeMap<u32, String>,
    qdiscs: Value,
    classes: Value,
    /// Those of the ingress hook, where packets arrive.
    filters: Option<Value>,
    notes: Vec<String>,
}

/// How long after the last command the first packet comes: what the commands started has passed.
const PAUSE: Span = Span::from_ns(1_000_000_000);

/// Replays through the machine as it stands at `now`.
///
/// # Errors
/// There is no such device, or none to choose; something on the machine does to packets what is not simulated.
pub fn run(
    mut host: Host,
    now: Time,
    mut traffic: Traffic,
    settings: Settings,
) -> Result<Replay, Vec<Diagnostic>> {
    let not_simulated: Vec<Diagnostic> = host.unsimulated().into_iter().map(Diagnostic::error).collect();
    if !not_simulated.is_empty() {
        return Err(not_simulated);
    }
    let ifindex = device(&host, settings.dev.as_deref(), settings.ingress).map_err(|wrong| vec![wrong])?;
    let named = |name: &str| {
        host.ifindex(name).ok_or_else(|| vec![Diagnostic::error(format!("the machine has no device {name}"))])
    };
    let from = settings.from.as_deref().map(named).transpose()?;
    let (ingress, rate, drain) = (settings.ingress, settings.rate, settings.drain);
    let line = Served { ifindex, ingress, from, rate, drain, simulated: None };
    let dev = host.device(ifindex).map_or(String::new(), |d| d.name.clone());
    let (long, cut) = make_super_packets(&host, ifindex, &mut traffic);
    let mut notes = notes(&traffic, long - cut, cut);
    let start = now + PAUSE;
    let played = play(&mut host, &line, &traffic.moments, start);
    if played.segments_lost > 0 {
        notes.push(format!("{} segments of packets that left otherwise were dropped", played.segments_lost));
    }
    let end = start + Span::from_ns(played.end_ns);
    let mut shown = |words: &[&str]| {
        let words: Vec<String> = words.iter().chain(&["dev", &dev]).map(|&w| w.to_owned()).collect();
        host.command(&words, &mut penstock_host::NoFiles, end).stdout
    };
    let lines = |text: String| Value::Array(text.lines().map(|l| json!(l)).collect());
    let json = shown(&["tc", "-s", "-j", "qdisc", "show"]);
    let qdiscs = serde_json::from_str(&json).unwrap_or_else(|_| lines(shown(&["tc", "-s", "qdisc", "show"])));
    let classes = lines(shown(&["tc", "-s", "class", "show"]));
    let filters = settings.ingress.then(|| {
        let words = ["tc", "-s", "filter", "show", "dev", &dev, "ingress"].map(str::to_owned);
        lines(host.command(&words, &mut penstock_host::NoFiles, end).stdout)
    });
    let devices = host.devices().iter().map(|d| (d.ifindex, d.name.clone())).collect();
    let kernel = host.kernel().name();
    Ok(Replay { dev, traffic, played, settings, kernel, devices, qdiscs, classes, filters, notes })
}

/// The device of this name, or the only one with a qdisc of its own (at its ingress hook).
fn device(host: &Host, name: Option<&str>, ingress: bool) -> Result<u32, Diagnostic> {
    if let Some(name) = name {
        return host.ifindex(name).ok_or_else(|| {
            let there: Vec<&str> = host.devices().iter().map(|d| d.name.as_str()).collect();
            Diagnostic::error(format!("the machine has no device {name}")).help(format!(
                "it has {}; a script may make it: ip link add {name} type dummy",
                there.join(", ")
            ))
        });
    }
    let own: Vec<(u32, &str)> = host
        .devices()
        .iter()
        .filter(|d| match ingress {
            true => d.tree.ingress().is_some(),
            false => !d.loopback && !d.is_ifb() && d.tree.root().handle != Handle::UNSPEC,
        })
        .map(|d| (d.ifindex, d.name.as_str()))
        .collect();
    match own.as_slice() {
        [(ifindex, _)] => Ok(*ifindex),
        [] => {
            let what = if ingress { "an ingress or clsact qdisc" } else { "a qdisc of its own" };
            Err(Diagnostic::error(format!("no device has {what}")).help("--dev eth0 says which is meant"))
        }
        many => {
            let names: Vec<&str> = many.iter().map(|d| d.1).collect();
            Err(Diagnostic::error(format!("{} have qdiscs", names.join(", ")))
                .help(format!("--dev {} says which is meant", names[0])))
        }
    }
}

/// TCP's frames that are longer than the device takes were super-packets where they were captured: segments of the device's MTU. How many frames are
/// longer, and how many of them are super-packets now.
fn make_super_packets(host: &Host, ifindex: u32, traffic: &mut Traffic) -> (u64, u64) {
    let most = host.device(ifindex).map_or(u32::MAX, |d| d.mtu + ETH_HLEN);
    let (mut long, mut cut) = (0, 0);
    for moment in &mut traffic.moments {
        let What::Packet(skb) = &mut moment.what else { continue };
        if skb.len <= most {
            continue;
        }
        long += 1;
        if matches!(skb.l4, L4::Tcp(_)) {
            let size = most.saturating_sub(skb.segment_headers());
            skb.set_gso(size.min(u16::MAX.into()) as u16, false);
            cut += u64::from(skb.gso().is_some());
        }
    }
    (long, cut)
}

fn notes(traffic: &Traffic, long: u64, cut: u64) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |n: u64, text: &str| {
        if n > 0 {
            notes.push(format!("{n} {}{text}", if n == 1 { "frame" } else { "frames" }));
        }
    };
    note(traffic.incoming, " came in, as the capture says, and were left out");
    note(traffic.unread, " of a link type that is not read, without a time, or too short, left out");
    note(cut, " of TCP longer than the MTU: super-packets, where they were captured (offloads), and so here");
    note(long, " of no TCP longer than the MTU: each went as one packet of its size");
    note(
        against(traffic),
        " go against the first direction of their connection: all leave by the same device here; keep one direction of the capture",
    );
    notes
}

/// How many packets go the other way than the first of the same two machines: of a capture that has both directions.
fn against(traffic: &Traffic) -> u64 {
    let mut first: BTreeMap<(IpAddr, IpAddr), bool> = BTreeMap::new();
    let mut count = 0;
    for moment in &traffic.moments {
        let What::Packet(skb) = &moment.what else { continue };
        let (src, dst): (IpAddr, IpAddr) = match skb.l3 {
            L3::Ipv4(h) => (h.src.into(), h.dst.into()),
            L3::Ipv6(h) => (h.src.into(), h.dst.into()),
            _ => continue,
        };
        let upwards = src <= dst;
        let pair = if upwards { (src, dst) } else { (dst, src) };
        count += u64::from(*first.entry(pair).or_insert(upwards) != upwards);
    }
    count
}

/// The class as `tc` writes it; empty for none.
fn class_text(class: Option<Handle>) -> String {
    class.map_or(String::new(), |c| c.to_string())
}

/// What became of packet `i`, in a line.
fn fate_text(replay: &Replay, i: usize) -> String {
    let came = replay.traffic.moments[i].t_ns;
    let class = |c: Option<Handle>| c.map_or(String::new(), |c| format!("class {c}, "));
    let ms = |ns: i64| format!("{:.6} ms", ns as f64 / 1e6);
    match &replay.played.fates[i] {
        Fate::Left(left) => {
            let by = replay.devices.get(&left.ifindex).map_or("", String::as_str);
            let mark = if left.skb.mark != 0 { format!(", mark {}", left.skb.mark) } else { String::new() };
            let left_by = replay.words().1;
            format!("{}waited {}, {left_by} by {by}{mark}", class(left.class), ms(left.t_ns - came))
        }
        Fate::Dropped(lost) => {
            let after =
                if lost.t_ns > came { format!(" after {}", ms(lost.t_ns - came)) } else { String::new() };
            format!("{}dropped{after}: {} ({})", class(lost.class), lost.reason, lost.place)
        }
        Fate::Received => "given to this machine itself by an action".to_owned(),
        Fate::Unknown if replay.played.held > 0 => "still queued at the end".to_owned(),
        Fate::Unknown => "taken by an action".to_owned(),
    }
}

/// What a class, or the device's own queue, did.
#[derive(Default)]
struct Share {
    left: u64,
    bytes: u64,
    dropped: u64,
    delays_ms: Vec<f64>,
}

impl Replay {
    /// What packets do here: go through a device and leave, or into it and get in.
    fn words(&self) -> (&'static str, &'static str) {
        if self.settings.ingress { ("into", "got in") } else { ("through", "left") }
    }
    /// How many packets there were.
    fn packets(&self) -> usize {
        self.traffic.moments.iter().filter(|m| matches!(m.what, What::Packet(_))).count()
    }

    fn shares(&self) -> BTreeMap<(u32, Option<Handle>), Share> {
        let mut shares: BTreeMap<(u32, Option<Handle>), Share> = BTreeMap::new();
        let own = self.devices.iter().find(|d| *d.1 == self.dev).map_or(0, |d| *d.0);
        for (moment, fate) in self.traffic.moments.iter().zip(&self.played.fates) {
            match fate {
                Fate::Left(left) => {
                    let share = shares.entry((left.ifindex, left.class)).or_default();
                    share.left += 1;
                    share.bytes += u64::from(left.skb.len);
                    share.delays_ms.push((left.t_ns - moment.t_ns) as f64 / 1e6);
                }
                Fate::Dropped(lost) if lost.place == "qdisc" => {
                    shares.entry((own, lost.class)).or_default().dropped += 1;
                }
                _ => {}
            }
        }
        shares
    }

    /// Lost packets by place, reason and class.
    fn losses(&self) -> BTreeMap<(&'static str, &'static str, Option<Handle>), u64> {
        let mut losses = BTreeMap::new();
        for fate in &self.played.fates {
            if let Fate::Dropped(lost) = fate {
                *losses.entry((lost.place, lost.reason, lost.class)).or_default() += 1;
            }
        }
        losses
    }

    /// Packets without a fate: how many are still queued, and how many an action took.
    fn remaining(&self) -> (usize, usize) {
        let packets = self.traffic.moments.iter().zip(&self.played.fates);
        let unknown =
            packets.filter(|(m, f)| matches!(m.what, What::Packet(_)) && matches!(f, Fate::Unknown)).count();
        let queued = unknown.min(self.played.held as usize);
        (queued, unknown - queued)
    }

    /// For people.
    pub fn text(&self) -> String {
        let (queued, taken) = self.remaining();
        let lost: u64 = self.losses().values().sum();
        let (through, left) = self.words();
        let mut text = format!(
            "{} packets in {:.3} s {through} {}{}: {} {left}, {lost} dropped",
            self.packets(),
            self.traffic.moments.last().map_or(0.0, |m| m.t_ns as f64 / 1e9),
            self.dev,
            self.settings.rate.map_or(String::new(), |r| format!(" and a line of {r}")),
            self.played.order.len(),
        );
        if queued > 0 {
            text += &format!(", {queued} still queued at the end");
        }
        if taken > 0 {
            text += &format!(", {taken} taken by an action");
        }
        text += "\n";
        for note in &self.notes {
            text += &format!("note: {note}\n");
        }
        let own: Vec<(u64, &str)> = [
            (self.played.copies, "copies of mirrored packets"),
            (self.played.own, "packets of the machine's own (answers)"),
        ]
        .into();
        for (n, what) in own.into_iter().filter(|o| o.0 > 0) {
            text += &format!("note: also {n} {what}\n");
        }
        for (i, why) in &self.played.refused {
            text += &format!("refused, entry {i}: {why}\n");
        }
        let mut table = Table::new(&[
            ("device", Align::Left),
            ("class", Align::Left),
            (left, Align::Right),
            ("bytes", Align::Right),
            ("dropped", Align::Right),
            ("mean wait ms", Align::Right),
            ("p50", Align::Right),
            ("p95", Align::Right),
            ("max", Align::Right),
        ]);
        for ((ifindex, class), mut share) in self.shares() {
            let wait = Distribution::of(&mut share.delays_ms);
            let ms = |pick: fn(&Distribution) -> f64| {
                wait.as_ref().map_or(String::new(), |d| format!("{:.3}", pick(d)))
            };
            table.row([
                self.devices.get(&ifindex).cloned().unwrap_or_default(),
                class.map_or("-".to_owned(), |c| c.to_string()),
                share.left.to_string(),
                share.bytes.to_string(),
                share.dropped.to_string(),
                ms(|d| d.mean),
                ms(|d| d.p50),
                ms(|d| d.p95),
                ms(|d| d.max),
            ]);
        }
        if !table.is_empty() {
            text += &format!("\n{}", table.text(0));
        }
        let mut drops = Table::new(&[
            ("dropped at", Align::Left),
            ("why", Align::Left),
            ("class", Align::Left),
            ("packets", Align::Right),
        ]);
        for ((place, reason, class), n) in self.losses() {
            drops.row([place.to_owned(), reason.to_owned(), class_text(class), n.to_string()]);
        }
        if !drops.is_empty() {
            text += &format!("\n{}", drops.text(0));
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let mut departures = Vec::new();
        for &i in &self.played.order {
            let (Fate::Left(left), moment) =
                (&self.played.fates[i as usize], &self.traffic.moments[i as usize])
            else {
                continue;
            };
            let mut row = Map::new();
            row.insert("i".into(), json!(i));
            row.insert("t_ns".into(), json!(left.t_ns));
            row.insert("delay_ns".into(), json!(left.t_ns - moment.t_ns));
            if let Some(class) = left.class {
                row.insert("class".into(), json!(class.to_string()));
            }
            if let Some(by) = self.devices.get(&left.ifindex).filter(|d| **d != self.dev) {
                row.insert("dev".into(), json!(by));
            }
            if left.skb.mark != 0 {
                row.insert("mark".into(), json!(left.skb.mark));
            }
            if let What::Packet(skb) = &moment.what
                && skb.tos() != left.skb.tos()
            {
                row.insert("tos".into(), json!(left.skb.tos()));
            }
            departures.push(Value::Object(row));
        }
        let drops = self.played.fates.iter().enumerate().filter_map(|(i, fate)| match fate {
            Fate::Dropped(lost) => {
                let mut row = Map::new();
                row.insert("i".into(), json!(i));
                row.insert("t_ns".into(), json!(lost.t_ns));
                row.insert("place".into(), json!(lost.place));
                row.insert("reason".into(), json!(lost.reason));
                if let Some(class) = lost.class {
                    row.insert("class".into(), json!(class.to_string()));
                }
                Some(Value::Object(row))
            }
            _ => None,
        });
        let (queued, taken) = self.remaining();
        let mut answer = Map::new();
        answer.insert("kernel".into(), json!(self.kernel));
        answer.insert("dev".into(), json!(self.dev));
        if let Some(rate) = self.settings.rate {
            answer.insert("rate_bit_s".into(), json!(rate.bytes_per_s() * 8));
        }
        answer.insert("packets".into(), json!(self.packets()));
        answer.insert("drops".into(), drops.collect());
        answer.insert("departures".into(), Value::Array(departures));
        answer.insert("left_in_queue".into(), json!(queued));
        if taken > 0 {
            answer.insert("taken_by_action".into(), json!(taken));
        }
        if !self.played.refused.is_empty() {
            let rows = self.played.refused.iter().map(|(i, error)| json!({"i": i, "error": error}));
            answer.insert("refused".into(), rows.collect());
        }
        if !self.notes.is_empty() {
            answer.insert("notes".into(), json!(self.notes));
        }
        answer.insert("qdiscs".into(), self.qdiscs.clone());
        answer.insert("classes".into(), self.classes.clone());
        if let Some(filters) = &self.filters {
            answer.insert("filters".into(), filters.clone());
        }
        Value::Object(answer)
    }
}

#[cfg(test)]
mod tests;
