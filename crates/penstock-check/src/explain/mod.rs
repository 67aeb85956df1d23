//! Where a packet goes, and why: hooks, filters, class, and what the class is promised.

mod diff;
mod hooks;
mod partition;
mod probe;
mod walk;

pub use diff::diff;
pub use partition::{Part, partition};
pub use probe::Probe;
pub use walk::{Sorted, sort};

use crate::facts::{Class, Device, Facts, lasts, rate};
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

/// Takes a packet out by a device.
///
/// # Errors
/// The script puts no qdisc on the device.
pub fn explain(facts: &Facts, dev: &str, probe: &Probe) -> Result<Explained, String> {
    let device = device(facts, dev).ok_or_else(|| format!("the script puts no qdisc on {dev}"))?;
    let mut probe = probe.clone();
    let before = probe.mark;
    let passed = hooks::pass(facts, &mut probe, dev);
    if probe.input.is_some() && probe.priority == 0 {
        // `ip_forward` sets the priority from the ToS.
        probe.priority = penstock_host::rt_tos2priority(facts.kernel, probe.tos);
    }
    probe.priority = passed.class.unwrap_or(probe.priority);
    let sorted = if passed.dropped { Sorted::default() } else { sort(facts, device, &probe) };
    let promise = sorted.class.and_then(|c| device.class(c)).map_or(Vec::new(), |c| promise(device, c));
    Ok(Explained { hooks: passed.said, mark: (before, probe.mark), dropped: passed.dropped, sorted, promise })
}

/// What a class of HTB is promised.
fn promise(device: &Device, class: &Class) -> Vec<String> {
    if class.kind != "htb" {
        return Vec::new();
    }
    let mut said = vec![format!("guaranteed {}, ceiling {}", rate(class.rate()), rate(class.ceil()))];
    let mut chain = Vec::new();
    let mut top = class;
    while let Some(parent) = device.class(top.parent) {
        chain.push(format!("{} ({})", parent.id, rate(parent.ceil())));
        top = parent;
    }
    said.push(if chain.is_empty() {
        "borrows from nobody".to_owned()
    } else {
        format!("borrows from {}", chain.join(", then "))
    });
    let burst = class.options.u64("buffer").unwrap_or(0) * 64 * class.rate() / 1_000_000_000;
    said.push(format!("first burst: {burst} bytes go at once, {} of its rate", lasts(burst, class.rate())));
    let (kind, packets) = match device.leaf(class.id) {
        Some(q) if matches!(q.kind, "pfifo" | "sfq" | "fq_codel" | "pfifo_fast") => {
            (q.kind, q.options.u32("limit").unwrap_or(device.txqueuelen))
        }
        Some(q) if q.kind == "bfifo" => {
            (q.kind, (u64::from(q.options.u32("limit").unwrap_or(0)) / device.frame()) as u32)
        }
        Some(q) => (q.kind, 0),
        None => ("pfifo", device.txqueuelen),
    };
    if packets > 0 && class.rate() > 0 {
        let queue = u64::from(packets) * device.frame();
        let rivals = device
            .classes
            .iter()
            .filter(|c| c.children.is_empty() && c.id != class.id && c.id.qdisc() == class.id.qdisc())
            .count() as u64;
        let line = top.ceil().max(1);
        said.push(format!(
            "longest queue: {packets} packets of {} bytes in {kind}: {queue} bytes",
            device.frame()
        ));
        let us = |bytes: u64, r: u64| bytes * 1_000_000 / r.max(1);
        let delay = us(queue, class.rate()) + us(rivals * device.frame(), line);
        said.push(format!(
            "a packet waits at most {} ms: queue / rate + (other leaves x one frame) / {} = {queue} / {} + {} / {}; rates in bytes per second, the children's rates being no more than their parent's, and the link as fast as the root class",
            delay.div_ceil(1000),
            top.id,
            class.rate(),
            rivals * device.frame(),
            line
        ));
    }
    said
}

impl Explained {
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
