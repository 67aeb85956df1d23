//! What a class is promised: rate, ceiling, whom it borrows from, and how long a packet waits at most.
//!
//! The longest wait is network calculus: a class of HTB is a shaper (its bucket fills at `rate`) in a row with a server (the link, less what
//! classes that go before it may send). `docs/verbs/explain.md` has the formulas and what they take for granted.
//!
//! Follows: linux v6.12 `net/sched/sch_htb.c` `htb_dequeue` (what has tokens goes before what borrows, the first priority first),
//! `htb_accnt_tokens` (a bucket may be one packet in debt), `sch_tbf.c`, `sch_prio.c`; J.-Y. Le Boudec, P. Thiran, Network Calculus,
//! sections 1.4 and 1.5.

use crate::facts::{Class, Device, Qdisc, lasts, rate};
use penstock_lang::tc::say::{self, Part, Unit};
use penstock_model::{Handle, Kernel};
use penstock_sched::traits::{Holds, Limit};

/// The longest wait of a packet from when it is queued until its last bit has left, and how it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    /// Nanoseconds.
    pub ns: u64,
    /// Bytes of the longest queue.
    pub queue: u64,
    /// The queue in words.
    pub holds: String,
    /// The formula with its numbers.
    pub formula: String,
}

/// Nanoseconds of so many bytes, rounded up.
fn ns(bytes: u64, speed: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(speed.max(1))).min(u128::from(u64::MAX / 4))
        as u64
}

/// Most bytes a queue holds, and that in words; `None` for kinds that have no plain limit.
fn longest(device: &Device, queue: Option<&Qdisc>) -> Option<(u64, String)> {
    let packets = |kind: &str, n: u32| {
        (u64::from(n) * device.frame(), format!("{n} packets of {} bytes in {kind}", device.frame()))
    };
    Some(match queue {
        None => packets("pfifo", device.txqueuelen.max(1)),
        Some(q) => {
            let limit = q.options.u32("limit");
            let traits = q.traits();
            match (traits.queue, traits.limit) {
                // What holds packets back by itself makes them wait longer than its queue.
                _ if !traits.work_conserving => return None,
                (Holds::Nothing | Holds::Classes | Holds::Delayed, _) | (_, Limit::None) => return None,
                (Holds::Fifo | Holds::Managed | Holds::Bands, Limit::Packets) => packets(q.kind, limit?),
                (Holds::Fifo | Holds::Managed | Holds::Bands, Limit::Bytes) => {
                    (u64::from(limit?), format!("{} bytes in {}", limit?, q.kind))
                }
            }
        }
    })
}

/// Bytes of a bucket: `buffer` is in ticks of 64 ns.
fn bucket(class: &Class) -> u64 {
    let ticks = u128::from(class.options.u64("buffer").unwrap_or(0));
    (ticks * 64 * u128::from(class.rate()) / 1_000_000_000) as u64
}

/// How long a packet of a class waits at most; `None` where nothing bounds it, or nobody has said how.
///
/// `link` is the link's rate, bytes per second; where it is not known the link is taken to be as fast as the classes right below the qdisc.
pub fn wait(device: &Device, class: &Class, link: Option<u64>) -> Option<Wait> {
    match class.kind {
        "htb" => htb(device, class, link),
        "prio" => first_band(device, class, link?),
        _ => None,
    }
}

fn htb(device: &Device, class: &Class, link: Option<u64>) -> Option<Wait> {
    if !class.children.is_empty() || class.rate() == 0 {
        return None;
    }
    let own = device.qdisc(class.id.qdisc())?;
    // Above it nothing may hold packets back.
    if own.parent != Handle::ROOT {
        return None;
    }
    let (queue, holds) = longest(device, device.leaf(class.id))?;
    let frame = device.frame();
    let top: u64 =
        device.classes_of(own.handle).filter(|c| device.class(c.parent).is_none()).map(Class::ceil).sum();
    let line = link.unwrap_or(top).max(1);
    let prio = |c: &Class| c.options.u32("prio").unwrap_or(0);
    let rivals: Vec<&Class> = device
        .classes_of(own.handle)
        .filter(|c| c.children.is_empty() && c.id != class.id && prio(c) <= prio(class))
        .collect();
    let rates: u64 = rivals.iter().map(|c| c.rate()).sum();
    let bursts: u64 = rivals.iter().map(|c| bucket(c) + frame).sum();
    let r = class.rate();
    let left = line.checked_sub(rates).filter(|l| *l >= r)?;
    // How long those that go before may keep the link for themselves.
    let blocked = ns(frame + bursts, left);
    let debt = ns(frame, r);
    let drained = ns(queue, r);
    if ns(bucket(class), r) >= blocked {
        let formula = format!(
            "queue / rate + (frame + others' bursts) / (link - others' rates) + frame / rate = {queue} / {r} + ({frame} + {bursts}) / ({line} - {rates}) + {frame} / {r}"
        );
        return Some(Wait { ns: drained + blocked + debt, queue, holds, formula });
    }
    // A bucket too small for that long loses what it could not take.
    let sum = u128::from(drained + debt + ns(bursts, line));
    let total = (sum * u128::from(line)).div_ceil(u128::from(left)).min(u128::from(u64::MAX / 4)) as u64
        + ns(2 * frame, line);
    let formula = format!(
        "((queue + frame) / rate + others' bursts / link) x link / (link - others' rates) + 2 frames / link = (({queue} + {frame}) / {r} + {bursts} / {line}) x {line} / \
         ({line} - {rates}) + 2 x {frame} / {line}"
    );
    Some(Wait { ns: total, queue, holds, formula })
}

/// Of prio's bands only the first one has nothing before it.
fn first_band(device: &Device, class: &Class, link: u64) -> Option<Wait> {
    let own = device.qdisc(class.id.qdisc())?;
    if class.id.minor() != 1 || own.parent != Handle::ROOT {
        return None;
    }
    let (queue, holds) = longest(device, device.leaf(class.id))?;
    let frame = device.frame();
    Some(Wait {
        ns: ns(queue + frame, link),
        queue,
        holds,
        formula: format!("(queue + frame) / link = ({queue} + {frame}) / {link}"),
    })
}

/// The same of a root without classes: tbf, and FIFOs where the link is known.
pub fn root(device: &Device, link: Option<u64>) -> Option<Wait> {
    let root = device.qdiscs.iter().find(|q| q.parent == Handle::ROOT)?;
    let frame = device.frame();
    match root.kind {
        "tbf" => {
            let r = root.options.u64("rate").filter(|r| *r > 0)?;
            let inner = device.qdiscs.iter().find(|q| q.parent.qdisc() == root.handle);
            let (queue, holds) = match inner {
                Some(q) => longest(device, Some(q))?,
                None => {
                    let limit = u64::from(root.options.u32("limit")?);
                    (limit, format!("{limit} bytes in tbf"))
                }
            };
            // One packet waits in tbf itself, looked at and not yet sent.
            let peak = root.options.u64("peakrate").filter(|p| *p > 0);
            let wait =
                ns(queue + frame, r) + peak.map_or(0, |p| ns(frame, p)) + link.map_or(0, |l| ns(frame, l));
            let formula = format!(
                "(queue + frame) / rate = ({queue} + {frame}) / {r}, and a frame at peakrate and on the link"
            );
            Some(Wait { ns: wait, queue, holds, formula })
        }
        _ if root.traits().queue == Holds::Fifo => {
            let link = link?;
            let (queue, holds) = longest(device, Some(root))?;
            let formula = format!("(queue + frame) / link = ({queue} + {frame}) / {link}");
            Some(Wait { ns: ns(queue + frame, link), queue, holds, formula })
        }
        _ => None,
    }
}

/// The wait a queue aims at by its own account, microseconds, where it manages its length.
fn target(queue: &Qdisc) -> Option<u64> {
    let made = say::qdisc(queue.kind, &queue.options, Kernel::default());
    made.add.iter().find_map(|part| match part {
        Part::Value(value) if value.path == "target" && value.unit == Unit::Us => Some(value.number),
        _ => None,
    })
}

/// The same in words; `bound`: whether a longest wait has been told.
pub fn aim(queue: &Qdisc, bound: bool) -> Option<String> {
    let us = target(queue)?;
    // CoDel counts in units of 1024 ns: 5 ms are 4999 us there.
    let wait = if us >= 995 { format!("{} ms", (us + 5) / 1000) } else { format!("{us} us") };
    let rest = if bound { "; the longest wait above is that of a full queue" } else { "" };
    Some(format!("{} aims at {wait}: flows that heed drops or marks wait about so long{rest}", queue.kind))
}

/// What a class is promised, a sentence each.
pub fn sentences(device: &Device, class: &Class, link: Option<u64>) -> Vec<String> {
    let mut said = Vec::new();
    if class.kind == "htb" {
        said.push(format!("guaranteed {}, ceiling {}", rate(class.rate()), rate(class.ceil())));
        let mut chain = Vec::new();
        let mut top = class;
        while let Some(parent) = device.class(top.parent) {
            chain.push(format!("{} ({})", parent.id, rate(parent.ceil())));
            top = parent;
        }
        said.push(match (chain.is_empty(), class.ceil() > class.rate()) {
            (false, true) => format!("borrows from {}", chain.join(", then ")),
            _ => "borrows from nobody".to_owned(),
        });
        let burst = bucket(class);
        said.push(format!(
            "first burst: {burst} bytes go at once, {} of its rate",
            lasts(burst, class.rate())
        ));
    }
    match wait(device, class, link) {
        Some(wait) => said.extend(waits(&wait)),
        None if class.kind == "prio" && class.id.minor() > 1 => {
            said.push("no longest wait: the bands before it may keep the link for themselves".to_owned());
        }
        None if class.kind == "htb" => {
            said.push("no longest wait: the rates of the leaves that go before it leave less than its own, or its queue has no plain limit".to_owned());
        }
        None => {}
    }
    said
}

/// A longest wait in words.
pub fn waits(wait: &Wait) -> Vec<String> {
    vec![
        format!("longest queue: {}: {} bytes", wait.holds, wait.queue),
        format!("a packet waits at most {} ms", wait.ns.div_ceil(1_000_000)),
        format!("that is {}; rates in bytes per second", wait.formula),
    ]
}
