//! Where a packet goes, and why: hooks, filters, class, and what the class is promised.

mod ask;
mod bpf;
pub mod capture;
mod chains;
mod cover;
mod cube;
mod diagram;
mod diff;
mod ematch;
mod feed;
mod flow;
mod hooks;
mod names;
mod nft;
mod partition;
mod probe;
mod promise;
mod space;
mod tables;
mod walk;
mod words;

pub use diff::diff;
pub(crate) use nft::{Behind, behind};
pub use partition::{Part, Partition, Reached, partition};
pub use probe::Probe;
pub use promise::{Wait, root as root_wait, sentences as promise, wait};
pub use walk::{Sorted, Sorter, sort};

use crate::facts::{Device, Facts};
use penstock_model::Handle;
use serde_json::{Value, json};

/// The whole way of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explained {
    /// What happened where another device's filters sent it here, in order.
    pub arrival: Vec<String>,
    /// What happened at netfilter's hooks, in order.
    pub hooks: Vec<String>,
    /// Its mark before and behind them.
    pub mark: (u32, u32),
    /// Whether a rule dropped it.
    pub dropped: bool,
    /// Filters, class, leaf.
    pub sorted: Sorted,
    /// What the class is promised, a sentence each.
    pub promise: Vec<String>,
}

/// The device as the script leaves it; `None` where the script puts no qdisc on it.
pub fn device<'a>(facts: &'a Facts, name: &str) -> Option<&'a Device> {
    facts.devices.iter().rfind(|d| d.name == name && d.root().is_some())
}

/// A script's device made ready to explain many packets.
pub struct Explainer<'a> {
    facts: &'a Facts,
    device: &'a Device,
    hooks: hooks::Hooks<'a>,
    sorter: Sorter<'a>,
    feeds: Vec<(feed::Feed<'a>, Sorter<'a>)>,
}

impl<'a> Explainer<'a> {
    /// For a device.
    ///
    /// # Errors
    /// The script puts no qdisc on the device.
    pub fn new(facts: &'a Facts, dev: &str) -> Result<Explainer<'a>, String> {
        let facts = facts.having(dev);
        let device = device(facts, dev).ok_or_else(|| format!("the script puts no qdisc on {dev}"))?;
        let feeds = feed::feeds(facts, dev).into_iter().map(|f| {
            let sorter = Sorter::new(facts, f.device);
            (f, sorter)
        });
        let (hooks, sorter) = (hooks::Hooks::new(facts), Sorter::new(facts, device));
        Ok(Explainer { facts, device, hooks, sorter, feeds: feeds.collect() })
    }
    /// Takes a packet to the device: over netfilter's hooks, and over the filters of a device that sends it here.
    fn arrive(&self, probe: &mut Probe, said: &mut Vec<String>) -> hooks::Passed {
        let name = self.device.name.as_str();
        let nothing = || hooks::Passed { said: Vec::new(), dropped: false, class: None, conn: 0 };
        let mut last = None;
        for (feed, sorter) in &self.feeds {
            let mut probe = probe.clone();
            let mut lines = Vec::new();
            let passed = match feed.ingress {
                false => self.hooks.pass(&mut probe, &feed.device.name),
                true => nothing(),
            };
            if feed.ingress && feed.asks_connection() && probe.connmark.is_none() {
                let marks = self.hooks.marks_of(&probe, &feed.device.name);
                let list: Vec<String> = marks.iter().map(u32::to_string).collect();
                match marks.as_slice() {
                    [] => {}
                    [mark] => {
                        lines.push(format!("the rules give its connection the mark {mark}"));
                        probe.connmark = Some(*mark);
                    }
                    _ => lines.push(format!(
                        "its connection's mark may be {}: write connmark N; taken as 0",
                        list.join(" or ")
                    )),
                }
            } else if !feed.ingress {
                probe.connmark = Some(passed.conn);
            }
            let root = !feed.ingress && feed.filters.iter().any(|f| f.parent != space::EGRESS);
            let arrived = if root {
                let sorted = sorter.sort(&probe);
                let to = sorted.by.strip_prefix("sent to ").and_then(|by| by.split(' ').next());
                walk::Arrived { to: to.map(str::to_owned), said: sorted.said, probe }
            } else {
                sorter.hooked(&probe, feed.ingress)
            };
            let here = arrived.to.as_deref() == Some(name);
            lines.extend(arrived.said);
            let lines = lines.into_iter().map(|line| format!("{}: {line}", feed.name())).collect();
            last = Some((passed, lines, arrived.probe));
            if here {
                break;
            }
            if let Some((passed, lines, _)) = &mut last {
                let lines: &mut Vec<String> = lines;
                lines.push(format!("{}: no filter sends it to {name}; taken as if one did", feed.name()));
                passed.dropped = false;
            }
        }
        match last {
            Some((passed, lines, there)) => {
                (*probe, *said) = (there, lines);
                passed
            }
            None => self.hooks.pass(probe, name),
        }
    }
    /// Takes a packet out by the device.
    pub fn explain(&self, probe: &Probe) -> Explained {
        let (facts, device) = (self.facts, self.device);
        let mut probe = probe.clone();
        let before = probe.mark;
        let mut arrival = Vec::new();
        let passed = self.arrive(&mut probe, &mut arrival);
        // Actions behind the hooks find the mark that the rules left.
        probe.connmark = probe.connmark.or(Some(passed.conn));
        probe.priority = passed.class.unwrap_or(probe.priority);
        let sorted = if passed.dropped { Sorted::default() } else { self.sorter.sort(&probe) };
        let link = facts.link_of(&device.name);
        let mut promise = match sorted.class.and_then(|c| device.class(c)) {
            Some(class) => promise::sentences(device, class, link),
            None if sorted.leaf.is_some() => {
                promise::root(device, link).map_or(Vec::new(), |w| promise::waits(&w))
            }
            None => Vec::new(),
        };
        let leaf = sorted.leaf.filter(|l| l.1 != Handle::UNSPEC).and_then(|(_, id)| device.qdisc(id));
        let bound = promise.iter().any(|said| said.starts_with("a packet waits at most"));
        promise.extend(leaf.and_then(|queue| promise::aim(queue, bound)));
        let mut said = passed.said;
        said.extend(unfollowed(facts, &nft::elsewhere(&facts.netfilter.of_nft.tables)));
        Explained {
            arrival,
            hooks: said,
            mark: (before, probe.mark),
            dropped: passed.dropped,
            sorted,
            promise,
        }
    }
}

/// What is said of rules that are not followed: `lost` are those, with their places; and of texts with rules that nobody knows.
pub(super) fn unfollowed(facts: &Facts, lost: &[String]) -> Option<String> {
    let unread = |s: &&crate::facts::Step| {
        let crate::facts::What::Rules(text) = &s.what else {
            // A file of rules that nobody has given.
            let whole = s.guessed.as_ref().is_some_and(|g| g.whole);
            return whole && matches!(s.program(), "nft" | "iptables-restore" | "ip6tables-restore");
        };
        s.unsimulated.is_some()
            || s.guessed.is_some()
            || s.program() != "nft" && text.lines().nth(1).is_none()
    };
    let mut lines: Vec<u32> =
        facts.steps.iter().filter(|s| s.ok()).filter(unread).map(|s| facts.known_line(s)).collect();
    lines.retain(|l| *l > 0);
    lines.dedup();
    let shown: Vec<String> = lines.iter().take(8).map(u32::to_string).collect();
    let mut said = Vec::new();
    if !lost.is_empty() {
        let more = match lost.len().saturating_sub(8) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        said.push(format!(
            "not followed: {}{more}: ask with what they set (`mark N`, the destination behind them)",
            lost.iter().take(8).cloned().collect::<Vec<_>>().join("; ")
        ));
    }
    if !shown.is_empty() {
        said.push(format!(
            "the rules of line {} are not known here: give the packet the mark that they set (`mark N`)",
            shown.join(", ")
        ));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// Takes a packet out by a device.
///
/// # Errors
/// The script puts no qdisc on the device.
pub fn explain(facts: &Facts, dev: &str, probe: &Probe) -> Result<Explained, String> {
    Ok(Explainer::new(facts, dev)?.explain(probe))
}

impl Explained {
    /// Where it goes, in a word: a class, a kind of queue, or why neither.
    pub fn place(&self) -> String {
        let sorted = &self.sorted;
        match (self.dropped, sorted.class, sorted.among, &sorted.tin, sorted.leaf) {
            (true, ..) => "dropped".to_owned(),
            (_, Some(class), ..) => class.to_string(),
            (_, _, Some((first, last)), ..) => format!("{first}-{last}"),
            (_, _, _, Some((tin, _)), _) => tin.clone(),
            (_, _, _, _, Some((kind, _))) => kind.to_owned(),
            _ => {
                let by = sorted.by.split(':').next().unwrap_or("none");
                by.split(" by ").next().unwrap_or("none").to_owned()
            }
        }
    }
    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for line in &self.arrival {
            out += &format!("arrival    {line}\n");
        }
        for line in &self.hooks {
            out += &format!("netfilter  {line}\n");
        }
        out += &format!("mark       {} -> {}\n", self.mark.0, self.mark.1);
        for line in &self.sorted.said {
            out += &format!("filter     {line}\n");
        }
        let class = match (self.dropped, self.sorted.class) {
            (true, _) => "dropped by netfilter".to_owned(),
            (_, Some(class)) => format!("{class}, by {}", self.sorted.by),
            (_, None) if self.sorted.by.is_empty() => "none".to_owned(),
            (_, None) if self.sorted.among.is_some() => self.sorted.by.clone(),
            _ => format!("none: {}", self.sorted.by),
        };
        out += &format!("class      {class}\n");
        if let Some((kind, handle)) = self.sorted.leaf {
            let name = if handle == Handle::UNSPEC { String::new() } else { format!(" {handle}") };
            out += &format!("queue      {kind}{name}\n");
        }
        if let Some((tin, why)) = &self.sorted.tin {
            out += &format!("tin        {tin}, by {why}\n");
        }
        for line in &self.promise {
            out += &format!("promise    {line}\n");
        }
        out
    }
    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "arrival": self.arrival, "netfilter": self.hooks, "mark_before": self.mark.0, "mark": self.mark.1, "dropped": self.dropped,
            "filters": self.sorted.said, "class": self.sorted.class.map(|c| c.to_string()), "by": self.sorted.by,
            "among": self.sorted.among.map(|(a, b)| [a.to_string(), b.to_string()]),
            "tin": self.sorted.tin.as_ref().map(|t| &t.0),
            "queue": self.sorted.leaf.map(|l| json!({ "kind": l.0, "handle": l.1.to_string() })), "promise": self.promise,
        })
    }
}
