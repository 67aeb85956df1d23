//! `penstock replay`: exact packets through a configured device.
//!
//! A specification names commands, a line, and packets; the answer tells when each packet left to the nanosecond,
//! which were dropped, and the counters as tc prints them. Both have the form of the probe that asks a real kernel
//! the same (`qdisc_order.py`), and the steps here are the probe's, one by one, its own clock readings included: an
//! answer differs from the real kernel's in nothing.
//!
//! Differs: what depends on how the interpreter and the programs of the probe were started is one constant here (how
//! far a `block`ed line's release is from a whole millisecond).

pub mod capture;
pub mod chance;
mod clock;
mod compare;
mod ground;
mod setup;
mod shown;
mod spec;
mod ticks;
pub mod vectors;

pub use compare::differences;
pub use ground::Ground;
pub use spec::{Release, Spec, What, strangers};

use clock::{Machine, probe_frame};
use penstock_lang::show::{self, Form};
use penstock_lang::tc::{self, Command, Show};
use penstock_lang::token;
use penstock_model::rtnetlink::{ClassRequest, QdiscDump, Verb};
use penstock_model::{Diagnostic, Handle, KernelError, Options, PschedClock};
use penstock_sched::Device;
use penstock_sched::cls::Select;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The device's name; packets leave through it.
pub const DEV: &str = "v0";

/// What a veth says of its speed.
const VETH_MBIT: u32 = 10_000;
/// Ticks of that kernel per second.
const HZ: u32 = 100;
/// How much later than asked a frame goes out, which the probe measures and sends the earlier by.
const EARLY_NS: i64 = 2;
/// Throws among which the most frequent answer is looked for.
const THROWS: u64 = 9;
/// How often the probe looks for packets while the queue drains.
const POLL_NS: i64 = 50_000_000;
/// What the start of the line is off where the device has several transmit queues, however many.
const QUEUES_NS: i64 = -4;

/// Runs a specification. Where a queue throws dice (sfq's hash key) the answer is the most frequent of several throws:
/// with few flows the one in which none share a bucket.
///
/// # Errors
/// The field that is wrong, or the command of `setup` that is refused, in tc's words.
pub fn run(value: &Value) -> Result<Value, Diagnostic> {
    let (first, thrown) = run_with(value, 1)?;
    if !thrown {
        return Ok(first);
    }
    let mut answers = vec![first];
    for seed in 2..=THROWS {
        answers.push(run_with(value, seed)?.0);
    }
    // Classes that are numbered by a hash differ with each throw: first what happens is compared, and of that what is shown.
    let without_classes = |answer: &Value| {
        let mut rest = answer.clone();
        rest["classes"] = Value::Null;
        rest
    };
    let happens = most_frequent(answers.iter().map(without_classes).collect());
    answers.retain(|answer| Some(without_classes(answer)) == happens);
    most_frequent(answers).ok_or_else(|| Diagnostic::error("no answer"))
}

/// The one of these that is there most often; of several the first.
fn most_frequent(all: Vec<Value>) -> Option<Value> {
    let mut counts: Vec<(Value, usize)> = Vec::new();
    for one in all {
        match counts.iter_mut().find(|(known, _)| *known == one) {
            Some((_, times)) => *times += 1,
            None => counts.push((one, 1)),
        }
    }
    let most = counts.iter().map(|c| c.1).max();
    counts.into_iter().find(|c| Some(c.1) == most).map(|c| c.0)
}

/// Runs a specification with these dice.
///
/// # Errors
/// As [`run`].
pub fn run_seeded(value: &Value, seed: u64) -> Result<Value, Diagnostic> {
    run_with(value, seed).map(|(answer, _)| answer)
}

/// The answer, and whether dice were thrown for it.
fn run_with(value: &Value, seed: u64) -> Result<(Value, bool), Diagnostic> {
    let spec = Spec::read(value)?;
    let device = Device {
        ifindex: 3,
        mtu: 1500,
        hard_header_len: 14,
        tx_queue_len: 1000,
        tx_queues: spec.tx_queues,
        speed_mbit: Some(VETH_MBIT),
        kernel: spec.ground.kernel,
        clock: PschedClock::default(),
        hz: HZ,
    };
    let start = spec.ground.start_ns + if device.is_multiqueue() { QUEUES_NS } else { 0 };
    let mut machine = Machine::new(device, start, seed, spec.ground);
    let release = start_line(&mut machine, &spec)?;
    setup::run(&mut machine, &spec)?;
    let most = machine.tree.device().psched_mtu();
    let long = spec.packets.iter().find_map(|p| match &p.what {
        What::Packet(skb) if skb.len > most && skb.gso().is_none() => Some((p.i, skb.len)),
        _ => None,
    });
    if let Some((i, len)) = long {
        let message = format!("packet {i}: len {len} is more than the device takes: Message too long");
        let help = format!(
            "at most {most}: the MTU and the 14 bytes of the Ethernet header; or a super-packet, with gso_size"
        );
        return Err(Diagnostic::error(message).help(help));
    }

    let t0 = (machine.read_clock() / 1_000_000 + 2) * 1_000_000;
    let Outcome { refused, commands, refusals, printed, moments } = send(&mut machine, &spec, t0);
    if release.is_some_and(|release| machine.read_clock() > release) {
        let hold = spec.hold_s;
        let message = format!("the packets were not all in before the release; raise hold_s ({hold:.3})");
        return Err(Diagnostic::error(message));
    }
    let seen = drain(&mut machine, &spec, release);
    let left = show_qdiscs_runs(&mut machine, false, Machine::backlog);

    let mut got: Vec<(u32, i64, Option<u16>)> =
        machine.arrivals[..seen].iter().filter_map(|a| Some((a.i?, a.at - t0, a.segment))).collect();
    if spec.release == Release::Arrive {
        got.sort_by_key(|&(i, t, _)| (t, i));
    }
    let out: BTreeSet<u32> = got.iter().map(|&(i, ..)| i).collect();
    let lost = (0..spec.packets.len() as u32).filter(|i| !out.contains(i) && !commands.contains(i));
    let how = |i: u32| if refused.contains(&i) { "enqueue" } else { "inside" };
    let mut answer = Map::new();
    answer.insert("kernel".into(), json!(spec.ground.release));
    answer.insert("release".into(), json!(spec.release.as_str()));
    answer.insert("rate".into(), if !spec.release.has_line() { Value::Null } else { json!(spec.rate_text) });
    answer.insert("release_ns".into(), json!(release.map(|r| r - t0)));
    answer.insert("packets".into(), json!(spec.packets.len()));
    answer.insert("late_ns".into(), json!(0));
    let row = |&(i, t, segment): &(u32, i64, Option<u16>)| match segment {
        None => json!({"i": i, "t_ns": t}),
        Some(segment) => json!({"i": i, "t_ns": t, "segment": segment}),
    };
    let departures: Vec<Value> = got.iter().map(row).collect();
    answer.insert("departures".into(), Value::Array(departures));
    answer.insert("drops".into(), Value::Array(lost.map(|i| json!({"i": i, "how": how(i)})).collect()));
    answer.insert("left_in_queue".into(), json!(left));
    if !commands.is_empty() {
        let rows = refusals.into_iter().map(|(i, error)| json!({"i": i, "error": error}));
        answer.insert("refused".into(), rows.collect());
        if !printed.is_empty() {
            let rows = printed.into_iter().map(|(i, text)| json!({"i": i, "lines": lines(&text)}));
            answer.insert("printed".into(), rows.collect());
        }
    }
    let mut shown = show_qdiscs_runs(&mut machine, true, show_qdiscs);
    if !speaks_json(&machine) {
        shown = show_qdiscs_runs(&mut machine, false, show_qdiscs);
    }
    answer.insert("qdiscs".into(), shown);
    // The probe asks for classes with `-j` first.
    let mut shown = show_classes_runs(&mut machine, true);
    if !spec.ground.class_json {
        shown = show_classes_runs(&mut machine, false);
    }
    answer.insert("classes".into(), shown);
    if !spec.filters.is_empty() {
        let shown: Result<Vec<Value>, Diagnostic> =
            spec.filters.iter().map(|place| show_filters(&machine, place)).collect();
        answer.insert("filters".into(), Value::Array(shown?));
    }
    let answer = Value::Object(answer);
    let answer = if moments.is_empty() { answer } else { named_again(answer, &moments) };
    Ok((answer, machine.threw_dice()))
}

/// Makes the line: an HTB class without any burst. Answers when a blocked one is released.
fn start_line(machine: &mut Machine, spec: &Spec) -> Result<Option<i64>, Diagnostic> {
    if !spec.release.has_line() {
        machine.line_made();
        return Ok(None);
    }
    setup::line(machine, "tc qdisc add dev v0 root handle 7fff: htb default 1")?;
    if spec.release == Release::Link {
        line(machine, Verb::Add, spec.rate)?;
        machine.line_made();
        return Ok(None);
    }
    let slow = ((1514.0 / spec.hold_s).round_ties_even() as i64).max(26);
    line(machine, Verb::Add, slow as u32)?;
    let sent = machine.now();
    machine.send(&probe_frame(), None);
    line(machine, Verb::Change, spec.rate)?;
    machine.line_made();
    Ok(Some(sent + 1514 * 1_000_000_000 / slow))
}

/// Adds or changes the class that is the line, as no tc can say it: no burst at all.
fn line(machine: &mut Machine, verb: Verb, rate: u32) -> Result<(), Diagnostic> {
    let options = Options::new()
        .with("rate", u64::from(rate))
        .with("ceil", u64::from(rate))
        .with("buffer", 0u32)
        .with("cbuffer", 0u32)
        .with("quantum", 60_000u32)
        .with("prio", 0u32)
        .with("mpu", 0u32)
        .with("overhead", 0i64)
        .with("linklayer", 1u32);
    let req = ClassRequest {
        verb,
        classid: Handle::new(0x7fff, 1),
        parent: Handle::new(0x7fff, 0),
        kind: Some("htb".to_owned()),
        options: Some(options),
        estimator: None,
    };
    let refused =
        |e: KernelError| Diagnostic::error(format!("cannot make the line (HTB class): {}", e.strerror()));
    machine.with_tree(|tree, cx| tree.class(&req, cx)).map_err(refused)
}

/// What came of the sequence.
#[derive(Default)]
struct Outcome {
    /// Packets whose `send` failed.
    refused: BTreeSet<u32>,
    /// What were commands.
    commands: BTreeSet<u32>,
    /// Commands that were refused, in whose words.
    refusals: Vec<(u32, String)>,
    /// What commands printed that show something.
    printed: Vec<(u32, String)>,
    /// Moments that commands named, and their names.
    moments: Vec<(i64, String)>,
}

/// A command, where `$T0+NS` is that moment of the sequence.
fn with_moments(line: &str, t0: i64, moments: &mut Vec<(i64, String)>) -> String {
    const NAME: &str = "$T0+";
    let (mut out, mut rest) = (String::new(), line);
    while let Some((before, behind)) = rest.split_once(NAME) {
        let digits = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let at = t0.saturating_add(behind[..digits].parse().unwrap_or(0));
        moments.push((at, format!("{NAME}{}", &behind[..digits])));
        out += &format!("{before}{at}");
        rest = &behind[digits..];
    }
    out + rest
}

/// An answer in which such moments have their names again.
fn named_again(value: Value, moments: &[(i64, String)]) -> Value {
    match value {
        Value::Array(all) => all.into_iter().map(|v| named_again(v, moments)).collect(),
        Value::Object(all) => all.into_iter().map(|(k, v)| (k, named_again(v, moments))).collect(),
        Value::String(text) => {
            Value::String(moments.iter().fold(text, |text, (at, name)| text.replace(&at.to_string(), name)))
        }
        Value::Number(n) => match moments.iter().find(|(at, _)| n.as_i64() == Some(*at)) {
            Some((_, name)) => json!(name),
            None => Value::Number(n),
        },
        other => other,
    }
}

/// Sends all packets and gives the commands among them.
fn send(machine: &mut Machine, spec: &Spec, t0: i64) -> Outcome {
    let mut outcome = Outcome::default();
    let mut last = None;
    for packet in &spec.packets {
        let due = t0 + packet.t_ns;
        if last != Some(due) {
            if machine.read_clock() < due - EARLY_NS {
                machine.sleep_until(due - EARLY_NS);
            }
            last = Some(due);
        }
        match &packet.what {
            What::Packet(skb) if spec.release == Release::Arrive => machine.receive(skb),
            What::Packet(skb) => {
                let departs = packet.departs_ns.map(|ns| t0 + ns);
                if !machine.send(skb, departs) {
                    outcome.refused.insert(packet.i);
                }
            }
            What::Command(line) => {
                outcome.commands.insert(packet.i);
                let line = with_moments(&setup::named(spec, line), t0, &mut outcome.moments);
                match setup::line(machine, &line) {
                    Ok(text) if text.is_empty() => {}
                    Ok(text) => outcome.printed.push((packet.i, text)),
                    Err(refusal) => outcome.refusals.push((packet.i, refusal.message)),
                }
            }
        }
    }
    outcome
}

/// Waits until nothing more comes; answers how many arrivals were read.
fn drain(machine: &mut Machine, spec: &Spec, release: Option<i64>) -> usize {
    let mut end = machine.read_clock() + spec.drain_ns;
    end += (release.unwrap_or(0) - machine.read_clock()).max(0);
    let (mut seen, mut quiet) = (0, 0);
    while machine.read_clock() < end && quiet < 3 {
        let numbered = |a: &&clock::Arrival| a.i.is_some();
        let news = machine.arrivals[seen..].iter().filter(numbered).count();
        seen = machine.arrivals.len();
        machine.fail_call();
        let still = news == 0 && { show_qdiscs_runs(machine, false, Machine::backlog) == 0 };
        quiet = if still { quiet + 1 } else { 0 };
        let until = machine.read_clock() + POLL_NS;
        machine.sleep_until(until);
    }
    seen
}

/// `tc -s qdisc show` runs, and with it the clock. For pfifo_fast tc looks for prio.
//= iproute2 6.1 tc/tc_qdisc.c print_qdisc
fn show_qdiscs_runs<T>(machine: &mut Machine, json: bool, look: impl FnOnce(&Machine) -> T) -> T {
    let dumps = machine.tree.dump_qdiscs(machine.kernel_time());
    let kinds: BTreeSet<&str> =
        dumps.iter().map(|d| if d.kind == "pfifo_fast" { "prio" } else { d.kind }).collect();
    machine.show_starts(json);
    let shown = look(machine);
    machine.kernel_looks(machine.tree.dump_looks());
    // It looks for their libraries when it has the answer.
    kinds.iter().for_each(|_| machine.fail_call());
    machine.program_ends();
    shown
}

/// `tc -s class show` runs: what it shows.
fn show_classes_runs(machine: &mut Machine, json: bool) -> Value {
    let dumps = machine.tree.show_classes(Handle::UNSPEC, machine.kernel_time());
    let kinds: BTreeSet<&str> = dumps.iter().map(|d| d.kind).collect();
    machine.show_starts(json);
    let shown = show_classes(machine);
    kinds.iter().for_each(|_| machine.fail_call());
    machine.program_ends();
    shown
}

fn form(json: bool) -> Show {
    Show { dev: Some(DEV.to_owned()), form: Form { stats: true, json, ..Form::default() }, ..Show::default() }
}

/// Whether `tc -j qdisc show` prints JSON, which that of 6.1 does not where options are printed as bare text among it: those of cbq and multiq, and hfsc's
/// `default`, which stands there unless it is 0; nor where taprio's coming schedule stands in an object without a name there.
fn speaks_json(machine: &Machine) -> bool {
    let dumps = machine.tree.dump_qdiscs(machine.kernel_time());
    let old = !machine.ground.class_json;
    let text = |d: &QdiscDump| match d.kind {
        "cbq" | "multiq" | "hfsc" if !old => false,
        "cbq" | "multiq" => true,
        "taprio" => old && d.options.has("admin"),
        "hfsc" => d.options.u32("default").unwrap_or(0) & 0xffff != 0,
        _ => false,
    };
    !dumps.iter().any(text)
}

/// `tc -s -j qdisc show dev v0`, and without `-j` where that is not JSON.
fn show_qdiscs(machine: &Machine) -> Value {
    let dumps = machine.tree.dump_qdiscs(machine.kernel_time());
    let dumps: Vec<_> = dumps.into_iter().map(|d| (DEV.to_owned(), d)).collect();
    if speaks_json(machine)
        && let Ok(json) = serde_json::from_str(&show::qdiscs(&dumps, &form(true), machine.kernel()))
    {
        return json;
    }
    lines(&show::qdiscs(&dumps, &form(false), machine.kernel()))
}

/// `tc -s class show dev v0`, which has no JSON in iproute2 6.1, and `tc -s -j …` where it has.
fn show_classes(machine: &Machine) -> Value {
    let dumps = machine.tree.show_classes(Handle::UNSPEC, machine.kernel_time());
    let dumps: Vec<_> = dumps.into_iter().map(|d| (DEV.to_owned(), d)).collect();
    let json = machine.ground.class_json;
    let text = show::classes(&dumps, &form(json), machine.kernel());
    serde_json::from_str(&text).ok().filter(|_| json).unwrap_or_else(|| lines(&text))
}

/// `tc -s filter show dev v0 PLACE`, without the seconds that actions have been there and unused.
fn show_filters(machine: &Machine, place: &str) -> Result<Value, Diagnostic> {
    let line = format!("-s filter show dev {DEV} {place}");
    let refused = |d: &str| Diagnostic::error(format!("filters: {place}: {d}"));
    let words = token::words(&line).map_err(|d| refused(&d.message))?;
    let commands = tc::parse(&words, machine.kernel()).map_err(|f| refused(f.stderr.trim()))?;
    let [Command::ShowFilter(show)] = commands.as_slice() else {
        return Err(refused("say parent CLASSID, ingress, egress or nothing"));
    };
    let look = machine.look();
    let select = Select { prio: show.prio as u16, protocol: show.protocol, chain: show.chain, terse: false };
    let (dumps, _) = machine.tree.show_filters(show.parent, select, look);
    let dumps: Vec<_> = dumps.into_iter().map(|d| (DEV.to_owned(), d)).collect();
    let text = show::filters(&dumps, show, machine.kernel());
    Ok(Value::Array(text.lines().map(|l| json!(without_seconds(l))).collect()))
}

/// Takes ` used 3 sec` and the like out of a line: they hang on when the probe's programs ran.
fn without_seconds(line: &str) -> String {
    let mut words = line.split(' ').peekable();
    let mut kept: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        let timed = matches!(word, "installed" | "used" | "firstused" | "expires");
        if timed && words.peek().is_some_and(|w| w.parse::<u64>().is_ok()) {
            if word == "used" && kept.last() == Some(&"first") {
                kept.pop();
            }
            words.next();
            words.next_if(|&w| w == "sec");
            continue;
        }
        kept.push(word);
    }
    kept.join(" ")
}

fn lines(text: &str) -> Value {
    Value::Array(text.lines().map(|l| json!(l)).collect())
}
