//! Captures: what a card sends and receives and what is lost at it, frame by frame, told as it happens.
//!
//! A frame that is sent is told of when the card takes it, as `tcpdump` sees it (`dev_hard_start_xmit`), one that is received when it
//! arrives, before the processor has taken it. Nothing is kept here. A capture belongs to one card, and a card's events
//! come in one order on any number of cores: so do the frames.

use penstock_host::Host;
use penstock_model::{Handle, Span, Time};
use penstock_packet::Skb;
use std::collections::BTreeMap;

/// What happened to a frame at a captured card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen<'a> {
    /// The card took it from its queue.
    Sent {
        /// The class whose queue it lay in, or the root's handle; 0 where it lay in none.
        class: Handle,
        /// The qdisc that it lay in, kind and handle: `fq_codel 10:`; empty where that is not known.
        queue: &'a str,
        /// How long it waited there.
        waited: Span,
    },
    /// It arrived.
    Received,
    /// It was lost here.
    Lost {
        /// Where: `qdisc`, `ingress`, `netif` …
        place: &'static str,
        /// Why.
        reason: &'static str,
        /// The class whose queue it had reached, 0 where it had reached none.
        class: Handle,
        /// The qdisc, as above.
        queue: &'a str,
    },
}

/// Who is told of a card's frames.
pub trait Capture: Send {
    /// A frame, in the order in which they come.
    fn frame(&mut self, at: Time, seen: Seen<'_>, skb: &Skb);
}

/// A capture, and what it knows of the card's queues.
pub(crate) struct Capturing {
    pub(crate) to: Box<dyn Capture>,
    pub(crate) queues: Queues,
}

/// Qdiscs by the class that they stand in, and by their own handles, as they were after so many commands.
#[derive(Default)]
pub(crate) struct Queues {
    below: BTreeMap<Handle, String>,
    own: BTreeMap<u16, String>,
    as_of: Option<u64>,
}

impl Queues {
    /// The qdisc that a packet of this class lies in.
    pub(crate) fn of(&mut self, class: Handle, commands: u64, host: &Host, ifindex: u32, now: Time) -> &str {
        if self.as_of != Some(commands) {
            self.as_of = Some(commands);
            (self.below, self.own) = (BTreeMap::new(), BTreeMap::new());
            let qdiscs = host.device(ifindex).map(|d| d.tree.dump_qdiscs(now)).unwrap_or_default();
            for qdisc in qdiscs.iter().filter(|q| q.parent != Handle::INGRESS) {
                let text = match qdisc.handle.major() {
                    0 => qdisc.kind.to_owned(),
                    major => format!("{} {major:x}:", qdisc.kind),
                };
                self.below.insert(qdisc.parent, text.clone());
                self.own.insert(qdisc.handle.major(), text);
            }
        }
        let class = if class == Handle::UNSPEC { Handle::ROOT } else { class };
        self.below.get(&class).or_else(|| self.own.get(&class.major())).map_or("", String::as_str)
    }
}
