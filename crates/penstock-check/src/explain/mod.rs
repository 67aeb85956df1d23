//! Where a packet goes, and why: hooks, filters, class, and what the class is promised.

mod ask;
pub mod capture;
mod chains;
mod cover;
mod cube;
mod diagram;
mod diff;
mod ematch;
mod hooks;
mod names;
mod partition;
mod probe;
mod promise;
mod space;
mod tables;
mod walk;

pub use diff::diff;
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
}

impl<'a> Explainer<'a> {
    /// For a device.
    ///
    /// # Errors
    /// The script puts no qdisc on the device.
    pub fn new(facts: &'a Facts, dev: &str) -> Result<Explainer<'a>, String> {
        let facts = facts.having(dev);
        let device = device(facts, dev).ok_or_else(|| format!("the script puts no qdisc on {dev}"))?;
        Ok(Explainer { facts, device, hooks: hooks::Hooks::new(facts), sorter: Sorter::new(facts, device) })
    }
    /// Takes a packet out by the device.
    pub fn explain(&self, probe: &Probe) -> Explained {
        let (facts, device) = (self.facts, self.device);
        let mut probe = probe.clone();
        let before = probe.mark;
        let passed = self.hooks.pass(&mut probe, &device.name);
        probe.priority = passed.class.unwrap_or(probe.priority);
        let sorted = if passed.dropped { Sorted::default() } else { self.sorter.sort(&probe) };
        let link = facts.link_of(&device.name);
        let promise = match sorted.class.and_then(|c| device.class(c)) {
            Some(class) => promise::sentences(device, class, link),
            None if sorted.leaf.is_some() => {
                promise::root(device, link).map_or(Vec::new(), |w| promise::waits(&w))
            }
            None => Vec::new(),
        };
        Explained { hooks: passed.said, mark: (before, probe.mark), dropped: passed.dropped, sorted, promise }
    }
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
        match (self.dropped, self.sorted.class, self.sorted.leaf) {
            (true, ..) => "dropped".to_owned(),
            (_, Some(class), _) => class.to_string(),
            (_, None, Some((kind, _))) => kind.to_owned(),
            _ => self
                .sorted
                .by
                .split(':')
                .next()
                .unwrap_or("none")
                .split(" by ")
                .next()
                .unwrap_or("none")
                .to_owned(),
        }
    }
    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
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
            _ => format!("none: {}", self.sorted.by),
        };
        out += &format!("class      {class}\n");
        if let Some((kind, handle)) = self.sorted.leaf {
            let name = if handle == Handle::UNSPEC { String::new() } else { format!(" {handle}") };
            out += &format!("queue      {kind}{name}\n");
        }
        for line in &self.promise {
            out += &format!("promise    {line}\n");
        }
        out
    }
    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "netfilter": self.hooks, "mark_before": self.mark.0, "mark": self.mark.1, "dropped": self.dropped,
            "filters": self.sorted.said, "class": self.sorted.class.map(|c| c.to_string()), "by": self.sorted.by,
            "queue": self.sorted.leaf.map(|l| json!({ "kind": l.0, "handle": l.1.to_string() })), "promise": self.promise,
        })
    }
}
