//! What tc has made of a machine, back in commands that make it again.
//!
//! Qdiscs come parents first, each with its classes; then actions that stand by themselves, then chains and filters, all with
//! their handles, classids, priorities and indices said. Every command is carried out at once on a twin of the machine (the same
//! devices, nothing on them). Where the twin's dump shows a number otherwise, the word behind it is moved until it does not:
//! kernels keep many numbers rounded. What is shown otherwise in the end is noted by name.

mod filters;
mod order;

use crate::{Host, NoFiles};
use penstock_lang::tc::say::{self, Part, Said};
use penstock_model::rtnetlink::{ClassDump, QdiscDump};
use penstock_model::{Handle, Options, Time};
use penstock_sched::sch;
use penstock_sched::traits::Classes;
use std::collections::{BTreeMap, BTreeSet};

/// Times a number may be moved.
const NUDGES: usize = 40;

/// Commands that rebuild a machine's qdiscs, classes, filters and actions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rebuilt {
    /// Each command's words, `tc` first, in an order that works.
    pub commands: Vec<Vec<String>>,
    /// What could not be said, or is shown otherwise than it was.
    pub notes: Vec<String>,
}

impl Host {
    /// The tc commands that make this machine's tc state on one with the same devices; of one device only where `dev` names it. Says
    /// nothing of other network namespaces.
    pub fn rebuild_tc(&self, dev: Option<&str>, now: Time) -> Rebuilt {
        self.rebuilt(dev, now, false)
    }
    /// The same, with what is left of settings that have been changed since: the tokens of htb's classes.
    pub fn rebuild_tc_with_traces(&self, now: Time) -> Rebuilt {
        self.rebuilt(None, now, true)
    }
    fn rebuilt(&self, dev: Option<&str>, now: Time, traces: bool) -> Rebuilt {
        let (twin, out, blocks) = (self.twin(), Rebuilt::default(), BTreeSet::new());
        let mut work = Work { host: self, twin, now, traces, out, blocks };
        let names: Vec<String> = self.devices.by_age().iter().map(|d| d.name.clone()).collect();
        let wanted: Vec<&String> = names.iter().filter(|name| dev.is_none_or(|d| d == *name)).collect();
        for name in &wanted {
            work.qdiscs(name);
        }
        if dev.is_none() {
            work.actions();
        }
        for name in &wanted {
            work.filters(name);
        }
        work.compare(&wanted, dev.is_none());
        work.out
    }

    /// A machine with the same devices, as far as tc knows them, and nothing on them.
    fn twin(&self) -> Host {
        let mut twin = Host::bare(&self.name, self.kernel, self.seed, self.space);
        twin.default_qdisc = self.default_qdisc;
        for device in self.devices.by_age() {
            let at = twin.new_device(&device.name, device.class.kind, Some(device.ifindex));
            if device.class.kind == "teql" {
                twin.teql = Some(at);
            }
            let Host { devices, drops, acts, kernel, .. } = &mut twin;
            let new = &mut devices[at];
            (new.mtu, new.tx_queue_len, new.queues) = (device.mtu, device.tx_queue_len, device.queues);
            (new.speed_mbit, new.flags) = (device.speed_mbit, device.flags);
            new.refresh_tree(*kernel, Time::ZERO, drops, acts);
            let has_been_up = device.up || !device.tree.dump_invisible(Time::ZERO).is_empty();
            if has_been_up {
                twin.set_up(at, true, Time::ZERO);
            }
            if !device.up {
                twin.set_up(at, false, Time::ZERO);
            }
        }
        twin.pending.clear();
        twin
    }

    /// What tc shows of a device, each text with the command that shows it; without counters.
    fn tc_shows(&self, name: &str, now: Time) -> Vec<(String, String)> {
        let Some(device) = self.ifindex(name).and_then(|i| self.device(i)) else { return Vec::new() };
        let mut lines: Vec<String> =
            ["qdisc", "class"].iter().map(|what| format!("tc -d {what} show dev {name}")).collect();
        lines.extend(self.filter_shows(device, now).into_iter().map(|line| line.replace("tc -s ", "tc ")));
        let both = lines.iter().flat_map(|line| [line.clone(), line.replacen("tc ", "tc -j ", 1)]);
        both.map(|line| (line.clone(), self.tc_shown(&line, now))).collect()
    }
    /// Standard output of a command that shows.
    fn tc_shown(&self, line: &str, now: Time) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let line = penstock_lang::token::Line::of_words(&words);
        self.tc_read(&line.words, now).stdout
    }
}

struct Work<'a> {
    host: &'a Host,
    twin: Host,
    now: Time,
    /// Whether what is left of earlier settings is said too.
    traces: bool,
    out: Rebuilt,
    /// Shared blocks that are done.
    blocks: BTreeSet<u32>,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Work<'_> {
    fn note(&mut self, text: String) {
        if !self.out.notes.contains(&text) {
            self.out.notes.push(text);
        }
    }
    /// Carries a command out on the twin; answers its complaint.
    fn run(&mut self, words: &[String]) -> Result<(), String> {
        let output = self.twin.command(words, &mut NoFiles, Time::ZERO);
        self.twin.pending.clear();
        match output.status {
            0 => Ok(()),
            _ => Err(output.stderr.lines().next().unwrap_or_default().to_owned()),
        }
    }
    /// The same, and keeps it; notes a refusal.
    fn give(&mut self, words: Vec<String>) -> bool {
        match self.run(&words) {
            Ok(()) => {
                self.out.commands.push(words);
                true
            }
            Err(why) => {
                self.note(format!("{}: {why}", words.join(" ")));
                false
            }
        }
    }

    /// Finds the numbers with which the twin shows `want`, and keeps the command. `start`: up to the kind; `undo`: takes it away again.
    fn settle(
        &mut self,
        start: &[String],
        mut parts: Vec<Part>,
        undo: &[String],
        want: &Options,
        got: impl Fn(&Host) -> Option<Options>,
    ) -> bool {
        let command = |parts: &[Part]| [start, &say::words(parts)].concat();
        for _ in 0..NUDGES {
            let line = command(&parts);
            if let Err(why) = self.run(&line) {
                self.note(format!("{}: {why}", line.join(" ")));
                return false;
            }
            let Some(shown) = got(&self.twin) else { break };
            let mut moved = false;
            for part in &mut parts {
                if let Part::Value(value) = part {
                    moved |= value.nudge(want, &shown);
                }
            }
            if !moved {
                self.out.commands.push(line);
                return true;
            }
            let _ = self.run(undo);
        }
        // No number shows it: the words as they were, and the comparison says so.
        let line = command(&parts);
        self.give(line)
    }

    fn qdiscs(&mut self, dev: &str) {
        let Some(device) = self.host.ifindex(dev).and_then(|i| self.host.device(i)) else { return };
        let mut waiting: Vec<QdiscDump> = device.tree.dump_qdiscs(self.now);
        waiting.retain(|q| q.handle != Handle::UNSPEC);
        let all = device.tree.dump_classes(self.now);
        let mut classes: BTreeMap<Handle, Vec<&ClassDump>> = BTreeMap::new();
        for class in &all {
            // A class without a number is of the one qdisc of its kind.
            let of = |q: &&QdiscDump| class.classid == Handle::UNSPEC && q.kind == class.kind;
            let qdisc = waiting.iter().find(of).map_or(class.classid.qdisc(), |q| q.handle.qdisc());
            classes.entry(qdisc).or_default().push(class);
        }
        let mut there: BTreeSet<Handle> = BTreeSet::from([Handle::UNSPEC]);
        while !waiting.is_empty() {
            let ready = |q: &QdiscDump| {
                q.parent == Handle::ROOT
                    || q.parent == Handle::INGRESS
                    || there.contains(&q.parent.qdisc())
                    || q.parent == Handle::UNSPEC
            };
            let Some(at) = waiting.iter().position(ready) else { break };
            let qdisc = waiting.remove(at);
            self.qdisc(dev, &qdisc);
            there.insert(qdisc.handle.qdisc());
            let own = classes.remove(&qdisc.handle.qdisc()).unwrap_or_default();
            let rooted = qdisc.kind == "htb" && own.iter().any(|c| c.classid == qdisc.handle);
            for class in order::parents_first(&own) {
                self.class(dev, &qdisc, class, rooted);
            }
        }
        for qdisc in waiting {
            self.note(format!(
                "qdisc {} {} of {dev}: its parent {} is not there",
                qdisc.kind, qdisc.handle, qdisc.parent
            ));
        }
    }

    fn qdisc(&mut self, dev: &str, q: &QdiscDump) {
        let mut start = words(&format!("tc qdisc add dev {dev}"));
        let mut undo = words(&format!("tc qdisc del dev {dev}"));
        let place = match q.parent {
            Handle::ROOT | Handle::UNSPEC => vec!["root".to_owned()],
            Handle::INGRESS => Vec::new(),
            parent => vec!["parent".to_owned(), parent.to_string()],
        };
        for name in ["ingress_block", "egress_block"] {
            if let Some(block) = q.options.u32(name) {
                start.extend([name.to_owned(), block.to_string()]);
            }
        }
        if q.parent == Handle::INGRESS {
            start.push(q.kind.to_owned());
            self.give(start);
            return;
        }
        start.extend(place.iter().cloned());
        undo.extend(place);
        start.extend(["handle".to_owned(), q.handle.to_string()]);
        start.extend(estimator(&q.options));
        if let Some(stab) = q.options.nested("stab") {
            start.extend(say::words(&say::stab(stab)));
        }
        start.push(q.kind.to_owned());
        let Said { add, then, lacking } = say::qdisc(q.kind, &q.options, self.host.kernel);
        let handle = q.handle;
        let shown = |twin: &Host| twin.device(twin.ifindex(dev)?)?.tree.options_of(handle);
        if !self.settle(&start, add, &undo, &q.options, shown) {
            return;
        }
        for parts in then {
            let mut change = start.clone();
            change[2] = "change".to_owned();
            change.extend(say::words(&parts));
            self.give(change);
        }
        for what in lacking {
            self.note(format!("qdisc {} {} of {dev}: no {what} that fits", q.kind, q.handle));
        }
    }

    fn class(&mut self, dev: &str, q: &QdiscDump, c: &ClassDump, rooted: bool) {
        let parent = match c.parent {
            Handle::ROOT | Handle::UNSPEC => q.handle,
            parent => parent,
        };
        let numberless = c.classid.minor() == 0;
        let verb = match sch::traits(c.kind).classes {
            // The qdisc's own class is there without a command; hfsc's may be changed.
            Classes::Made if c.kind == "hfsc" && numberless => "change",
            Classes::Made if c.kind == "cbq" && numberless => return,
            Classes::Made => "add",
            Classes::Table => "change",
            Classes::None
            | Classes::Inner
            | Classes::Fixed
            | Classes::Queues
            | Classes::Flows
            | Classes::Hooks => return,
        };
        if verb == "change" && !["mask", "rt", "ls", "ul"].iter().any(|name| c.options.has(name)) {
            return;
        }
        let place = match verb {
            "change" => String::new(),
            // Neither parent nor number was given.
            _ if c.classid == Handle::UNSPEC => String::new(),
            // `1:` would be the class that has this number.
            _ if rooted && c.parent == Handle::ROOT => "root ".to_owned(),
            _ => format!("parent {parent} "),
        };
        let id = if c.classid == Handle::UNSPEC { String::new() } else { format!("classid {}", c.classid) };
        let mut start = words(&format!("tc class {verb} dev {dev} {place}{id}"));
        start.extend(estimator(&c.options));
        start.push(c.kind.to_owned());
        let undo = words(&format!("tc class del dev {dev} classid {}", c.classid));
        let Said { add, lacking, .. } =
            say::class(c.kind, &c.options, q.options.u32("rate").unwrap_or(0), self.host.kernel);
        if verb == "change" && (c.options.u32("mask"), c.options.u32("value")) == (Some(0xff), Some(0)) {
            return;
        }
        let classid = c.classid;
        let shown = |twin: &Host| {
            let tree = &twin.device(twin.ifindex(dev)?)?.tree;
            tree.dump_classes(Time::ZERO)
                .into_iter()
                .find(|found| found.classid == classid)
                .map(|found| found.options)
        };
        // Most kinds' words say all exactly: only those with a number that may move are looked at again.
        let moves = add.iter().any(|p| matches!(p, Part::Value(_))) && matches!(c.kind, "hfsc" | "cbq");
        if moves {
            self.settle(&start, add, &undo, &c.options, shown);
        } else if let Some(first) = self.tokens(c) {
            let first = say::words(&say::class(c.kind, &first, 0, self.host.kernel).add);
            self.give([start.as_slice(), &first].concat());
            let mut change =
                words(&format!("tc class change dev {dev} parent {parent} classid {} {}", c.classid, c.kind));
            change.extend(say::words(&add));
            self.give(change);
        } else {
            start.extend(say::words(&add));
            self.give(start);
        }
        for what in lacking {
            self.note(format!("class {} {} of {dev}: {what} is found by trying", c.kind, c.classid));
        }
    }

    /// The options with which a class of htb was made where it has other tokens than its bursts: a change leaves them.
    fn tokens(&self, c: &ClassDump) -> Option<Options> {
        let xstats = c.xstats.as_ref().filter(|_| self.traces && c.kind == "htb")?;
        let mut first = c.options.clone();
        let mut other = false;
        for (tokens, burst) in [("tokens", "buffer"), ("ctokens", "cbuffer")] {
            let tokens = xstats.i64(tokens).and_then(|t| u32::try_from(t).ok())?;
            other |= c.options.u32(burst) != Some(tokens);
            first.set(burst, tokens.into());
        }
        other.then_some(first)
    }

    /// Actions somebody made by themselves; those of filters come with the filters.
    fn actions(&mut self) {
        let kinds: Vec<&str> = penstock_lang::tc::actions::names().collect();
        for kind in kinds {
            let list =
                self.host.acts.dump(kind, 0, self.host.look(self.now), self.host.kernel).unwrap_or_default();
            for one in list {
                let n = |name: &str| one.nested("options").and_then(|o| o.u32(name)).unwrap_or(0);
                if n("ref") <= n("bind") {
                    continue;
                }
                match say::standalone(&one, self.host.kernel) {
                    Ok(said) => {
                        let mut line = words("tc actions add action");
                        line.extend(said);
                        self.give(line);
                    }
                    Err(why) => self.note(format!("action {kind} index {}: {why}", n("index"))),
                }
            }
        }
    }

    /// Notes what the twin shows otherwise.
    fn compare(&mut self, devices: &[&String], actions: bool) {
        let mut differ = Vec::new();
        for dev in devices {
            let want: BTreeMap<String, String> = self.host.tc_shows(dev, self.now).into_iter().collect();
            let got: BTreeMap<String, String> = self.twin.tc_shows(dev, Time::ZERO).into_iter().collect();
            let lines: BTreeSet<&String> = want.keys().chain(got.keys()).collect();
            differ.extend(lines.into_iter().filter(|line| want.get(*line) != got.get(*line)).cloned());
        }
        if actions {
            for kind in penstock_lang::tc::actions::names() {
                let line = format!("tc actions list action {kind}");
                if self.host.tc_shown(&line, self.now) != self.twin.tc_shown(&line, Time::ZERO) {
                    differ.push(line);
                }
            }
        }
        differ.into_iter().for_each(|line| self.note(format!("{line}: shown otherwise than it was")));
    }
}

/// `estimator INTERVAL CONSTANT`, where one runs that is not the one 2.6.35 gives every class of htb.
fn estimator(o: &Options) -> Vec<String> {
    let Some(estimator) = o.nested("estimator") else { return Vec::new() };
    let (interval, ewma) = (estimator.i64("interval").unwrap_or(0), estimator.u32("ewma").unwrap_or(0));
    say::estimator(interval as i8, ewma as u8)
        .map(|[i, t]| vec!["estimator".to_owned(), i, t])
        .unwrap_or_default()
}
