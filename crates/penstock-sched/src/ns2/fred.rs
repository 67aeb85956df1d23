//! `fred`: flow random early drop, RED that keeps an account of each flow it holds packets of.
//!
//! Follows: Dong Lin and Robert Morris, "Dynamics of Random Early Detection", SIGCOMM 1997, figure 8 with the support for many
//! flows of section 4.3.
//! Differs: flows are told apart by addresses, protocol and ports. It reckons in doubles, as [`crate::aqm::floyd`] does.

use super::flows::{Flows, Key};
use super::held::Held;
use super::{Kind, Word, real, refuse, whole, word};
use crate::aqm::floyd::unit;
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Init, Qdisc, Xmit};
use crate::sch::KindSpec;
use crate::traits::{Holds, NOTHING, Traits};
use penstock_model::{Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "fred",
    about: "flow random early drop: RED that keeps an account of each flow it holds packets of",
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
    word("minq", Kind::Whole),
    word("q_weight", Kind::Real),
    word("linterm", Kind::Real),
    word("mean_pktsize", Kind::Whole),
];

fn build(_: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let parms = Parms::read(options)?;
    Ok(Box::new(Fred {
        parms,
        held: Held::default(),
        // Each holds a packet, one more is just coming.
        flows: Flows::with_room(parms.limit.min(1 << 20) as usize + 1),
        avg: 0.0,
        count: -1,
        idle: None,
    }))
}

/// Parameters, by the paper's meaning and ns-2's names.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Parms {
    /// Most packets queued. Default 50.
    limit: u32,
    /// `min_th`, packets. Default a quarter of the limit.
    thresh: f64,
    /// `max_th`, packets. Default twice `thresh`.
    maxthresh: f64,
    /// Packets that every flow may hold: 2 for small buffers, 4 for large ones. Default 2.
    minq: u32,
    /// Default 0.002.
    q_weight: f64,
    /// Inverse of the probability at `maxthresh`. Default 50.
    linterm: f64,
    /// Bytes of a packet, by which idle time counts. Default 500.
    mean_pktsize: u32,
    /// The link's rate, bit/s.
    bandwidth: f64,
}

impl Parms {
    fn read(options: Option<&Options>) -> Result<Parms, KernelError> {
        let none = Options::new();
        let o = options.unwrap_or(&none);
        let limit = whole(o, "limit", 50);
        let thresh = real(o, "thresh", f64::from(limit) / 4.0)?;
        let parms = Parms {
            limit,
            thresh,
            maxthresh: real(o, "maxthresh", 2.0 * thresh)?,
            minq: whole(o, "minq", 2),
            q_weight: real(o, "q_weight", 0.002)?,
            linterm: real(o, "linterm", 50.0)?,
            mean_pktsize: whole(o, "mean_pktsize", 500),
            bandwidth: o.u64("bandwidth").unwrap_or(1_000_000_000) as f64,
        };
        let wrong = if parms.limit == 0 || parms.mean_pktsize == 0 || parms.minq == 0 {
            "limit, minq and mean_pktsize are at least 1"
        } else if !(parms.q_weight > 0.0 && parms.q_weight <= 1.0) {
            "q_weight is above 0 and at most 1"
        } else if parms.thresh < 0.0 || parms.maxthresh <= parms.thresh {
            "thresh is below maxthresh, and not below 0"
        } else if parms.linterm < 1.0 {
            "linterm is the inverse of a probability: 1 or more"
        } else {
            return Ok(parms);
        };
        Err(refuse(format!("fred: {wrong}")))
    }
}

/// The account of a flow that holds packets.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    qlen: u32,
    strike: u32,
}

/// The queue.
struct Fred {
    // Parameters
    parms: Parms,
    // Variables
    held: Held,
    /// Flows with packets queued.
    flows: Flows<Account>,
    avg: f64,
    count: i32,
    /// Since when the queue is empty.
    idle: Option<Time>,
}

impl Fred {
    /// The average queue of a flow, at least one packet.
    fn avgcq(&self) -> f64 {
        let share = if self.flows.len() == 0 { self.avg } else { self.avg / self.flows.len() as f64 };
        if share < 1.0 { 1.0 } else { share }
    }
    /// `calculate average queue length`.
    fn average(&mut self, now: Time) {
        let keep = 1.0 - self.parms.q_weight;
        if let Some(since) = self.idle.take() {
            let ptc = self.parms.bandwidth / (8.0 * f64::from(self.parms.mean_pktsize));
            let m = (ptc * ((now - since).as_ns() as f64 / 1e9)) as u64;
            for _ in 0..m {
                self.avg *= keep;
                if self.avg == 0.0 {
                    break;
                }
            }
        }
        self.avg = keep * self.avg + self.parms.q_weight * f64::from(self.held.len());
    }
    fn discard(&mut self, packet: Packet, reason: DropReason, cx: &mut Cx<'_>) -> Xmit {
        self.held.discard(packet, reason, cx.drops);
        if reason == DropReason::Early { Xmit::Cn } else { Xmit::Drop }
    }
    /// Whether a packet of a flow with this account is dropped.
    fn drops(&mut self, key: Key, account: Account, cx: &mut Cx<'_>) -> bool {
        let p = self.parms;
        let (avgcq, held) = (self.avgcq(), f64::from(account.qlen));
        let over = self.avg >= p.maxthresh;
        let maxq = if over { f64::from(p.minq) } else { p.thresh };
        if held >= maxq || over && held > 2.0 * avgcq || held >= avgcq && account.strike > 1 {
            if let Some(account) = self.flows.get_mut(&key) {
                account.strike += 1;
            }
            return true;
        }
        if self.avg < p.thresh {
            self.count = -1;
            return false;
        }
        if over {
            // Many flows: each may have its few packets, as long as there is room.
            return false;
        }
        self.count += 1;
        let least = f64::from(p.minq);
        if held < if avgcq > least { avgcq } else { least } {
            return false;
        }
        let p_b = (self.avg - p.thresh) / (p.maxthresh - p.thresh) / p.linterm;
        let apart = 1.0 - f64::from(self.count) * p_b;
        if apart > 0.0 && unit(cx.rng.next_u64()) > p_b / apart {
            return false;
        }
        self.count = 0;
        true
    }
}

impl Qdisc for Fred {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let key = Key::of(&packet);
        if self.idle.is_some() {
            self.average(cx.now);
        }
        let account = self.flows.get(&key).unwrap_or_default();
        if self.drops(key, account, cx) {
            return self.discard(packet, DropReason::Early, cx);
        }
        if self.held.len() >= self.parms.limit {
            return self.discard(packet, DropReason::Overlimit, cx);
        }
        self.average(cx.now);
        self.flows.entry(key).qlen += 1;
        self.held.push(packet);
        Xmit::Success
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let Some(packet) = self.held.send() else {
            self.idle.get_or_insert(cx.now);
            return None;
        };
        self.average(cx.now);
        let key = Key::of(&packet);
        if let Some(account) = self.flows.get_mut(&key) {
            account.qlen -= 1;
            if account.qlen == 0 {
                self.flows.remove(&key);
            }
        }
        Some(packet)
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        self.held.head()
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        self.parms = Parms::read(options)?;
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.flows.clear();
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
        let p = &self.parms;
        let o =
            Options::new().with("limit", p.limit).with("minq", p.minq).with("mean_pktsize", p.mean_pktsize);
        let reals = [
            ("thresh", p.thresh),
            ("maxthresh", p.maxthresh),
            ("q_weight", p.q_weight),
            ("linterm", p.linterm),
        ];
        reals.into_iter().fold(o, |o, (name, value)| o.with(name, format!("{value}")))
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
    use crate::testing::{Bench, device, packet};
    use penstock_model::Handle;
    use penstock_packet::L4;

    /// 400 ms of a greedy flow of 10 packets at a time and a thin one of one, into a line that takes 6 a round; what each lost.
    fn contest(thresh: u32, bench: &mut Bench) -> (usize, usize) {
        let init = Init { device: device(Kernel::V6_12), handle: Handle::UNSPEC, parent: Handle::ROOT };
        let o = Options::new().with("limit", 100u32).with("thresh", thresh).with("q_weight", "0.1");
        let mut q = build(&init, Some(&o), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        for round in 0..400u64 {
            let now = round as i64 * 1_000_000;
            for i in 0..11 {
                let mut p = packet(round * 100 + i, 1000);
                if let L4::Udp(u) = &mut p.l4 {
                    u.sport = if i == 10 { 7 } else { 1 };
                }
                q.enqueue(p, &mut bench.cx(now));
            }
            for _ in 0..6 {
                q.dequeue(&mut bench.cx(now + 500_000));
            }
        }
        let lost = bench.dropped();
        let thin = lost.iter().filter(|(seq, _)| seq % 100 == 10).count();
        (lost.len() - thin, thin)
    }

    #[test]
    fn the_greedy_lose_and_the_thin_do_not() {
        let mut bench = Bench::new();
        let (greedy, thin) = contest(10, &mut bench);
        assert!(greedy > 1500 && thin < 5, "{greedy} {thin}");
    }

    #[test]
    fn nonsense_is_refused() {
        for (name, value) in [("thresh", "-1"), ("q_weight", "0"), ("linterm", "0.1"), ("maxthresh", "1")] {
            assert!(Parms::read(Some(&Options::new().with(name, value))).is_err(), "{name}");
        }
        assert!(Parms::read(Some(&Options::new().with("minq", 0u32))).is_err());
    }
}
