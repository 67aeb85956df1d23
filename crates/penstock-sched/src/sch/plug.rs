//! `plug`: holds packets until it is told to let them go.
//!
//! Follows: linux v6.12 `net/sched/sch_plug.c`. It dumps no options.
//! Differs: none known.

use super::KindSpec;
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Init, Qdisc, Xmit};
use crate::queue::Queue;
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options, Stats};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "plug",
    about: "holds packets until told to release them",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Delayed,
        limit: Limit::None,
        work_conserving: false,
    },
};

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let device = &init.device;
    let limit = match options {
        Some(o) => o.u32("limit").unwrap_or(0),
        None => device.tx_queue_len.wrapping_mul(device.psched_mtu()),
    };
    Ok(Box::new(Plug { limit, ..Plug::default() }))
}

/// The qdisc.
#[derive(Debug)]
pub struct Plug {
    // Parameters
    /// Most bytes held.
    limit: u32,
    // Variables
    /// Packets wait.
    throttled: bool,
    /// Packets pass until the next `block`.
    unplug_indefinite: bool,
    /// Packets that came since the last `block`.
    current_epoch: u32,
    /// Packets that came before it, and after the one before.
    last_epoch: u32,
    /// Packets that may go.
    to_release: u32,
    queue: Queue,
    peeked: Option<Packet>,
    stats: Stats,
}

impl Default for Plug {
    fn default() -> Plug {
        Plug {
            limit: 0,
            throttled: true,
            unplug_indefinite: false,
            current_epoch: 0,
            last_epoch: 0,
            to_release: 0,
            queue: Queue::default(),
            peeked: None,
            stats: Stats::default(),
        }
    }
}

impl Plug {
    fn backlog(&self) -> u32 {
        self.queue.backlog() + self.peeked.as_ref().map_or(0, |p| p.pkt_len)
    }
    /// `plug_dequeue`.
    fn take(&mut self) -> Option<Packet> {
        if self.throttled {
            return None;
        }
        if !self.unplug_indefinite {
            if self.to_release == 0 {
                self.throttled = true;
                return None;
            }
            self.to_release -= 1;
        }
        let packet = self.queue.pop_head()?;
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        Some(packet)
    }
}

impl Qdisc for Plug {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if u64::from(self.backlog()) + u64::from(packet.len) > u64::from(self.limit) {
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::Overlimit);
            return Xmit::Drop;
        }
        if !self.unplug_indefinite {
            self.current_epoch = self.current_epoch.wrapping_add(1);
        }
        self.queue.push_tail(packet);
        Xmit::Success
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        self.peeked.take().or_else(|| self.take())
    }
    /// `qdisc_peek_dequeued`: a dequeue's work; the packet counts as queued until it goes.
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none() {
            self.peeked = self.take();
        }
        self.peeked.as_ref()
    }
    /// Who lets packets go is a command, which has the device ask.
    fn never_wakes(&self) -> bool {
        true
    }
    /// `plug_change`: what it is told to do.
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let Some(o) = options else { return Ok(()) };
        match o.str("action") {
            Some("block") => {
                (self.last_epoch, self.current_epoch) = (self.current_epoch, 0);
                self.throttled |= self.unplug_indefinite;
                self.unplug_indefinite = false;
            }
            Some("release") => {
                self.to_release = self.to_release.wrapping_add(self.last_epoch);
                (self.last_epoch, self.throttled) = (0, false);
                cx.drops.schedule();
            }
            Some("release_indefinite") => {
                (self.to_release, self.last_epoch, self.current_epoch) = (0, 0, 0);
                (self.throttled, self.unplug_indefinite) = (false, true);
                cx.drops.schedule();
            }
            Some("limit") => self.limit = o.u32("limit").unwrap_or(0),
            _ => return Err(KernelError::errno(KernelError::EINVAL)),
        }
        Ok(())
    }
    /// The packets go; what it was told and has counted stays.
    fn reset(&mut self, cx: &mut Cx<'_>) {
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        self.queue.purge(cx);
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen(), backlog: self.backlog(), ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.queue.len() + u32::from(self.peeked.is_some())
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.queue.iter().chain(&self.peeked).for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        Options::new()
    }
    /// A dequeue that finds nothing to release closes it.
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

    #[test]
    fn what_came_before_a_block_is_released() {
        let mut bench = Bench::new();
        let mut plug = Plug { limit: 1000, ..Plug::default() };
        let mut seq = 0;
        let mut give = |plug: &mut Plug, bench: &mut Bench| {
            seq += 1;
            plug.enqueue(packet(seq, 100), &mut bench.cx(0))
        };
        let told = |plug: &mut Plug, bench: &mut Bench, action: &str| {
            let o = Options::new().with("action", action).with("limit", 250u32);
            plug.change(Some(&o), &mut bench.cx(0)).map_err(|e| e.errno)
        };
        let drain = |plug: &mut Plug, bench: &mut Bench| -> Vec<u64> {
            std::iter::from_fn(|| plug.dequeue(&mut bench.cx(0))).map(|p| p.seq).collect()
        };
        give(&mut plug, &mut bench);
        give(&mut plug, &mut bench);
        assert_eq!(told(&mut plug, &mut bench, "release"), Ok(()));
        assert_eq!(drain(&mut plug, &mut bench), [0; 0], "no block was before");
        assert_eq!(told(&mut plug, &mut bench, "block"), Ok(()));
        give(&mut plug, &mut bench);
        assert_eq!(told(&mut plug, &mut bench, "release"), Ok(()));
        assert_eq!(drain(&mut plug, &mut bench), [1, 2]);
        assert_eq!(told(&mut plug, &mut bench, "limit"), Ok(()));
        assert_eq!((give(&mut plug, &mut bench), give(&mut plug, &mut bench)), (Xmit::Success, Xmit::Drop));
        assert_eq!(told(&mut plug, &mut bench, "release_indefinite"), Ok(()));
        assert_eq!(drain(&mut plug, &mut bench), [3, 4]);
        give(&mut plug, &mut bench);
        assert_eq!(drain(&mut plug, &mut bench), [6]);
        assert_eq!(told(&mut plug, &mut bench, "block"), Ok(()));
        give(&mut plug, &mut bench);
        assert_eq!(drain(&mut plug, &mut bench), [0; 0]);
        assert_eq!(told(&mut plug, &mut bench, "open"), Err(22));
    }
}
