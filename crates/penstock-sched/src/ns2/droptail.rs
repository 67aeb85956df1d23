//! `ns2_droptail`: one first-in-first-out queue, in packets or in bytes.
//!
//! Follows: ns-2.35 `queue/drop-tail.cc` `DropTail::enque`.
//! Differs: none known. A queue of limit n holds n - 1 packets, as there.

use super::held::Held;
use super::{Kind, Word, flag, refuse, whole, word};
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Init, Qdisc, Xmit};
use crate::sch::KindSpec;
use crate::traits::{Holds, NOTHING, Traits};
use penstock_model::{Kernel, KernelError, Options, Stats};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "ns2_droptail",
    about: "ns-2's first-in-first-out queue, in packets or in bytes",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits { queue: Holds::Fifo, ..NOTHING },
};

/// What sets it.
pub(super) const WORDS: &[Word] = &[
    word("limit", Kind::Whole),
    word("queue_in_bytes", Kind::Flag),
    word("mean_pktsize", Kind::Whole),
    word("drop_front", Kind::Flag),
];

fn build(_: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let parms = Parms::read(options)?;
    Ok(Box::new(DropTail { parms, held: Held::default() }))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Parms {
    /// Packets; in bytes: so many of the mean size. Default 50.
    limit: u32,
    /// Default false.
    queue_in_bytes: bool,
    /// Bytes. Default 500.
    mean_pktsize: u32,
    /// A full queue drops its first packet instead of the newest. Default false.
    drop_front: bool,
}

impl Parms {
    fn read(options: Option<&Options>) -> Result<Parms, KernelError> {
        let none = Options::new();
        let o = options.unwrap_or(&none);
        let parms = Parms {
            limit: whole(o, "limit", 50),
            queue_in_bytes: flag(o, "queue_in_bytes", false),
            mean_pktsize: whole(o, "mean_pktsize", 500),
            drop_front: flag(o, "drop_front", false),
        };
        if parms.limit < 2 {
            return Err(refuse(
                "ns2_droptail: the limit is at least 2: a queue of limit n holds n - 1 packets",
            ));
        }
        if parms.mean_pktsize == 0 || parms.limit.checked_mul(parms.mean_pktsize).is_none() {
            return Err(refuse(
                "ns2_droptail: limit times mean_pktsize is at most 4294967295 bytes, and not 0",
            ));
        }
        Ok(parms)
    }
    fn dump(&self) -> Options {
        Options::new()
            .with("limit", self.limit)
            .with("queue_in_bytes", u32::from(self.queue_in_bytes))
            .with("mean_pktsize", self.mean_pktsize)
            .with("drop_front", u32::from(self.drop_front))
    }
}

/// The queue.
struct DropTail {
    // Parameters
    parms: Parms,
    // Variables
    held: Held,
}

impl DropTail {
    fn is_full(&self, size: u32) -> bool {
        match self.parms.queue_in_bytes {
            true => self.held.bytes().saturating_add(size) >= self.parms.limit * self.parms.mean_pktsize,
            false => self.held.len() + 1 >= self.parms.limit,
        }
    }
}

impl Qdisc for DropTail {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let full = self.is_full(packet.network_len());
        if full && !self.parms.drop_front {
            self.held.discard(packet, DropReason::Overlimit, cx.drops);
            return Xmit::Drop;
        }
        self.held.push(packet);
        if full && let Some(first) = self.held.take() {
            self.held.discard(first, DropReason::Overlimit, cx.drops);
            return Xmit::Cn;
        }
        Xmit::Success
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        self.held.send()
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        self.held.head()
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        self.parms = Parms::read(options)?;
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
        self.parms.dump()
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

    fn queue(o: Options, bench: &mut Bench) -> Result<Box<dyn Qdisc>, KernelError> {
        let init = Init { device: device(Kernel::V6_12), handle: Handle::UNSPEC, parent: Handle::ROOT };
        build(&init, Some(&o), &mut bench.cx(0))
    }

    #[test]
    fn a_limit_of_n_holds_one_less() {
        let mut bench = Bench::new();
        let mut q = queue(Options::new().with("limit", 4u32), &mut bench).unwrap_or_else(|e| panic!("{e}"));
        let answers: Vec<Xmit> = (0..5).map(|seq| q.enqueue(packet(seq, 514), &mut bench.cx(0))).collect();
        assert_eq!(answers[2..], [Xmit::Success, Xmit::Drop, Xmit::Drop]);
        assert!(queue(Options::new().with("limit", 1u32), &mut bench).is_err());
    }

    #[test]
    fn bytes_are_those_of_the_ip_packet() {
        let mut bench = Bench::new();
        let o = Options::new().with("limit", 3u32).with("queue_in_bytes", 1u32).with("mean_pktsize", 1000u32);
        let mut q = queue(o.with("drop_front", 1u32), &mut bench).unwrap_or_else(|e| panic!("{e}"));
        // 2999 of 3000 bytes fit.
        let sizes = [1500, 1499, 40];
        let answers = sizes.map(|ip| q.enqueue(packet(ip.into(), ip + 14), &mut bench.cx(0)));
        assert_eq!(answers, [Xmit::Success, Xmit::Success, Xmit::Cn]);
        assert_eq!(bench.dropped(), [(1500, DropReason::Overlimit)]);
    }
}
