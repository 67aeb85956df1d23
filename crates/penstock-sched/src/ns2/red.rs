//! `ns2_red`: Floyd's random early detection as ns-2 has it.
//!
//! Follows: ns-2.35 `queue/red.cc` `REDQueue::enque`, `deque`, `pickPacketToDrop`, `tcl/lib/ns-default.tcl`.
//! Differs: none known. Vectors: `vectors/ns2` (recorded on ns-2.35): the average after every arrival, to every digit that ns-2 prints.

use super::held::Held;
use super::{Kind, Word, flag, real, refuse, whole, word};
use crate::aqm::ecn::set_ce;
use crate::aqm::floyd::{Action, Floyd, Params, unit};
use crate::ledger::{DropReason, Ledger};
use crate::qdisc::{Cx, Init, Qdisc, Xmit};
use crate::sch::KindSpec;
use crate::traits::{Holds, NOTHING, Traits};
use penstock_model::{Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "ns2_red",
    about: "Floyd's random early detection as ns-2 has it: gentle, adaptive, in packets or bytes",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits { queue: Holds::Managed, ..NOTHING },
};

/// What sets it.
pub(super) const WORDS: &[Word] = &[
    word("limit", Kind::Whole),
    word("thresh", Kind::Share),
    word("maxthresh", Kind::Share),
    word("mean_pktsize", Kind::Whole),
    word("idle_pktsize", Kind::Whole),
    word("q_weight", Kind::Real),
    word("queue_in_bytes", Kind::Flag),
    word("bytes", Kind::Flag),
    word("wait", Kind::Flag),
    word("linterm", Kind::Real),
    word("setbit", Kind::Flag),
    word("use_mark_p", Kind::Flag),
    word("mark_p", Kind::Real),
    word("gentle", Kind::Flag),
    word("adaptive", Kind::Flag),
    word("feng_adaptive", Kind::Flag),
    word("alpha", Kind::Real),
    word("beta", Kind::Real),
    word("interval", Kind::Time),
    word("targetdelay", Kind::Time),
    word("top", Kind::Real),
    word("bottom", Kind::Real),
    word("cautious", Kind::Whole),
    word("drop_front", Kind::Flag),
    word("drop_rand", Kind::Flag),
    word("ns1_compat", Kind::Flag),
];

fn build(_: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    Ok(Box::new(Red::new(params(options)?)))
}

/// The rate that a link without one is taken to have, bit/s.
const NO_RATE: u64 = 1_000_000_000;

/// What the experiment says, over ns-2's defaults: `bandwidth` in bit/s, `delay` in ns, the rest by ns-2's names.
///
/// # Errors
/// EINVAL with a sentence, for numbers RED cannot work with.
pub fn params(options: Option<&Options>) -> Result<Params, KernelError> {
    let none = Options::new();
    let o = options.unwrap_or(&none);
    let bandwidth = o.u64("bandwidth").unwrap_or(NO_RATE) as f64;
    let d = Params::new(bandwidth, o.u64("delay").unwrap_or(0) as f64 / 1e9);
    let p = Params {
        limit: whole(o, "limit", d.limit),
        thresh: real(o, "thresh", d.thresh)?,
        maxthresh: real(o, "maxthresh", d.maxthresh)?,
        mean_pktsize: whole(o, "mean_pktsize", d.mean_pktsize),
        idle_pktsize: whole(o, "idle_pktsize", d.idle_pktsize),
        q_weight: real(o, "q_weight", d.q_weight)?,
        queue_in_bytes: flag(o, "queue_in_bytes", d.queue_in_bytes),
        bytes: flag(o, "bytes", d.bytes),
        wait: flag(o, "wait", d.wait),
        linterm: real(o, "linterm", d.linterm)?,
        setbit: flag(o, "setbit", d.setbit),
        use_mark_p: flag(o, "use_mark_p", d.use_mark_p),
        mark_p: real(o, "mark_p", d.mark_p)?,
        gentle: flag(o, "gentle", d.gentle),
        adaptive: flag(o, "adaptive", d.adaptive),
        feng_adaptive: flag(o, "feng_adaptive", d.feng_adaptive),
        alpha: real(o, "alpha", d.alpha)?,
        beta: real(o, "beta", d.beta)?,
        interval: real(o, "interval", d.interval)?,
        targetdelay: real(o, "targetdelay", d.targetdelay)?,
        top: real(o, "top", d.top)?,
        bottom: real(o, "bottom", d.bottom)?,
        cautious: whole(o, "cautious", d.cautious),
        drop_front: flag(o, "drop_front", d.drop_front),
        drop_rand: flag(o, "drop_rand", d.drop_rand),
        ns1_compat: flag(o, "ns1_compat", d.ns1_compat),
        ..d
    };
    let weight = p.q_weight;
    let wrong = if p.limit == 0 || p.mean_pktsize == 0 || p.idle_pktsize == 0 {
        "limit, mean_pktsize and idle_pktsize are at least 1"
    } else if p.limit.checked_mul(p.mean_pktsize).is_none() {
        "limit times mean_pktsize is at most 4294967295 bytes"
    } else if !(weight > 0.0 && weight <= 1.0 || [0.0, -1.0, -2.0].contains(&weight)) {
        "q_weight is above 0 and at most 1; or 0, -1 or -2, to be chosen after the link's rate"
    } else if p.thresh < 0.0 || p.maxthresh < 0.0 || p.maxthresh > 0.0 && p.maxthresh < p.thresh {
        "thresh is at most maxthresh, and neither is below 0"
    } else if p.linterm < 1.0 {
        "linterm is the inverse of a probability: 1 or more"
    } else if p.adaptive && (p.alpha <= 0.0 || p.beta <= 0.0 || p.interval < 0.0) {
        "alpha and beta are above 0, interval is not below"
    } else if p.cautious > 3 {
        "cautious is 0, 1, 2 or 3"
    } else {
        return Ok(p);
    };
    Err(refuse(format!("ns2_red: {wrong}")))
}

/// A queue with Floyd's RED in front.
pub struct Red {
    // Variables
    floyd: Floyd,
    held: Held,
    early: u32,
    marked: u32,
    forced: u32,
}

/// A moment in seconds.
pub(super) fn seconds(now: Time) -> f64 {
    now.as_ns() as f64 / 1e9
}

impl Red {
    /// An empty queue.
    pub fn new(params: Params) -> Red {
        Red { floyd: Floyd::new(params), held: Held::default(), early: 0, marked: 0, forced: 0 }
    }
    /// The algorithm's state.
    pub fn floyd(&self) -> &Floyd {
        &self.floyd
    }
    /// What is queued, in packets or, with `queue_in_bytes`, in bytes.
    pub(super) fn queued(&self) -> u32 {
        if self.floyd.params().queue_in_bytes { self.held.bytes() } else { self.held.len() }
    }
    /// Drops a packet that has not come to the queue.
    pub(super) fn discard(&mut self, packet: Packet, reason: DropReason, drops: &mut Ledger) {
        self.held.discard(packet, reason, drops);
    }
    /// A packet comes: [`Qdisc::enqueue`] with a clock in seconds and dice of the caller's, 64 random bits a throw.
    pub fn put(
        &mut self,
        mut packet: Packet,
        now: f64,
        dice: &mut dyn FnMut() -> u64,
        drops: &mut Ledger,
    ) -> Xmit {
        let size = packet.network_len();
        let queued = self.queued();
        let action = match self.floyd.arrive(queued, size, now, &mut || unit(dice())) {
            Action::Mark if set_ce(&mut packet) => {
                self.marked = self.marked.wrapping_add(1);
                Action::Pass
            }
            Action::Mark => Action::Drop,
            other => other,
        };
        if action == Action::Drop {
            self.early = self.early.wrapping_add(1);
            self.held.discard(packet, DropReason::Early, drops);
            return Xmit::Cn;
        }
        self.held.push(packet);
        // A packet marked on its way into a full queue is dropped all the same.
        if action != Action::Forced && queued < self.floyd.limit() {
            return Xmit::Success;
        }
        self.forced = self.forced.wrapping_add(1);
        let newest = self.held.len() - 1;
        let victim = match self.floyd.params() {
            p if p.drop_front => newest.min(1),
            // As ns-2: 31 random bits, modulo.
            p if p.drop_rand => (dice() >> 33) as u32 % self.held.len(),
            _ => newest,
        };
        if let Some(packet) = self.held.remove(victim) {
            self.held.discard(packet, DropReason::Overlimit, drops);
        }
        self.floyd.forced();
        if victim == newest { Xmit::Drop } else { Xmit::Cn }
    }
}

impl Qdisc for Red {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let Cx { now, rng, drops, .. } = cx;
        self.put(packet, seconds(*now), &mut || rng.next_u64(), drops)
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let packet = self.held.send();
        match packet {
            Some(_) => self.floyd.end_idle(),
            None => self.floyd.start_idle(seconds(cx.now)),
        }
        packet
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        self.held.head()
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        self.floyd = Floyd::new(params(options)?);
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.held.purge(cx);
    }
    fn stats(&self) -> Stats {
        self.held.stats()
    }
    fn qlen(&self) -> u32 {
        self.held.len()
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.held.packets(see);
    }
    fn dump(&self) -> Options {
        let p = self.floyd.params();
        let flags = [
            ("queue_in_bytes", p.queue_in_bytes),
            ("bytes", p.bytes),
            ("wait", p.wait),
            ("setbit", p.setbit),
            ("gentle", p.gentle),
            ("adaptive", p.adaptive),
        ];
        let numbers = [
            ("thresh", p.thresh),
            ("maxthresh", p.maxthresh),
            ("q_weight", p.q_weight),
            ("linterm", p.linterm),
            ("cur_max_p", self.floyd.max_p()),
        ];
        let o = Options::new().with("limit", p.limit).with("mean_pktsize", p.mean_pktsize);
        let o = numbers.into_iter().fold(o, |o, (name, value)| o.with(name, format!("{value}")));
        flags.into_iter().fold(o, |o, (name, on)| o.with(name, u32::from(on)))
    }
    fn marks(&self) -> Option<u64> {
        Some(self.marked.into())
    }
    /// `early` and `marked` packets, those `forced` out, the average `ave` in thousandths.
    fn xstats(&self, _: Time) -> Option<Options> {
        let average = (self.floyd.average() * 1000.0) as u64;
        let o = Options::new().with("early", self.early).with("marked", self.marked);
        Some(o.with("forced", self.forced).with("ave", average))
    }
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, packet};
    use penstock_packet::L3;

    fn full(o: Options, bench: &mut Bench) -> Red {
        let o = o.with("queue_in_bytes", 0u32).with("bytes", 0u32).with("q_weight", "1").with("limit", 20u32);
        let mut red = Red::new(params(Some(&o)).unwrap_or_else(|e| panic!("{e}")));
        for seq in 0..10 {
            red.enqueue(packet(seq, 1014), &mut bench.cx(0));
        }
        red
    }

    #[test]
    fn marks_who_understands_it_and_drops_the_rest() {
        let mut bench = Bench::new();
        let o = Options::new().with("setbit", 1u32).with("thresh", 2u32).with("maxthresh", 4u32);
        let mut red = full(o.with("linterm", 1u32).with("use_mark_p", 0u32).with("gentle", 1u32), &mut bench);
        bench.dropped();
        let mut ect = packet(100, 1014);
        if let L3::Ipv4(h) = &mut ect.l3 {
            h.tos = 2;
        }
        let (marked, queued) = (red.marked, red.qlen());
        // The average is the queue, over maxthresh: p is 1 for both.
        assert_eq!(red.enqueue(ect, &mut bench.cx(1)), Xmit::Success);
        assert_eq!((red.marked, red.qlen()), (marked + 1, queued + 1));
        assert_eq!(red.enqueue(packet(101, 1014), &mut bench.cx(2)), Xmit::Cn);
        assert_eq!(bench.dropped(), [(101, DropReason::Early)]);
    }

    #[test]
    fn a_full_queue_drops_as_told() {
        for (word, victim) in [("", 21), ("drop_front", 1)] {
            let mut bench = Bench::new();
            let mut o = Options::new().with("thresh", 1000u32).with("maxthresh", 2000u32);
            if word == "drop_front" {
                o = o.with("drop_front", 1u32);
            }
            let mut red = full(o, &mut bench);
            for seq in 10..20 {
                red.enqueue(packet(seq, 1014), &mut bench.cx(0));
            }
            red.enqueue(packet(21, 1014), &mut bench.cx(0));
            assert_eq!(bench.dropped(), [(victim, DropReason::Overlimit)]);
            assert_eq!(red.qlen(), 20);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (name, value) in [("limit", "0"), ("q_weight", "1.5"), ("linterm", "0.5"), ("thresh", "-1")] {
            let o = match name {
                "limit" => Options::new().with(name, 0u32),
                _ => Options::new().with(name, value),
            };
            assert!(params(Some(&o)).is_err(), "{name}");
        }
    }
}
