//! `gred`: several REDs over one queue, chosen by the packet's `tc_index`.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_gred.c`. A `setup` that is refused for its flags has changed the
//! limit, as there.
//! Differs: none known.

use super::KindSpec;
use super::red::{Counts, Fate, NUMBERS, mark, parms, random};
use crate::aqm::red::{Action, Red};
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Device, Init, Qdisc, Xmit};
use crate::queue::Queue;
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "gred",
    about: "several REDs over one queue, chosen by the packet's tc_index",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Managed,
        limit: Limit::Bytes,
        work_conserving: true,
    },
};

/// `MAX_DPs`.
const VQS_MAX: u32 = 16;
/// `GRED_DEF_PRIO`.
const DEFAULT_PRIO: u32 = VQS_MAX / 2;
/// `GRED_VQ_RED_FLAGS`: `ecn` and `harddrop`.
const VQ_FLAGS: u32 = 3;

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let device = init.device;
    let o = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
    let mut gred = Gred {
        device,
        limit: 0,
        vqs: 0,
        default: 0,
        grio: false,
        flags: 0,
        tab: Default::default(),
        wred: false,
        wred_set: (0, None),
        queue: Queue::default(),
        stats: Stats::default(),
    };
    if o.has("vq") {
        return Err(gred.no("virtual queue configuration can't be specified at initialization time"));
    }
    gred.limit = o.u32("limit").unwrap_or_else(|| device.tx_queue_len.wrapping_mul(device.psched_mtu()));
    gred.set_up(o)?;
    Ok(Box::new(gred))
}

/// One virtual queue.
#[derive(Clone, Debug)]
struct Vq {
    /// Bytes.
    limit: u32,
    prio: u32,
    flags: u32,
    /// In the order of [`NUMBERS`].
    parms: [u32; 6],
    red: Red,
    counts: Counts,
    /// Bytes in the queue.
    backlog: u32,
    /// What it has seen.
    packets: u32,
    bytes: u64,
}

/// `GRED_VQ_MASK`: the bits of `tc_index` that name a virtual queue.
const VQ_MASK: u16 = VQS_MAX as u16 - 1;

/// Virtual queues over one queue.
#[derive(Debug)]
pub struct Gred {
    // Parameters
    device: Device,
    /// Bytes.
    limit: u32,
    /// How many virtual queues there may be.
    vqs: u32,
    /// The one of packets that name none.
    default: u32,
    /// Priorities count (RIO).
    grio: bool,
    flags: u32,
    tab: [Option<Vq>; VQS_MAX as usize],
    // Variables
    /// Two queues have the same priority: all share one average, of the whole queue.
    wred: bool,
    /// That average, and since when the queue has been empty.
    wred_set: (u64, Option<Time>),
    queue: Queue,
    stats: Stats,
}

impl Gred {
    /// EINVAL with a sentence of this module.
    fn no(&self, sentence: &str) -> KernelError {
        self.device.refusal(KernelError::EINVAL, &format!("sch_gred: {sentence}"))
    }
    /// `gred_change_table_def`.
    fn set_up(&mut self, o: &Options) -> Result<(), KernelError> {
        let number = |name| o.u32(name).unwrap_or(0);
        let (vqs, default, flags) = (number("vqs"), number("default"), number("flags"));
        if vqs > VQS_MAX {
            return Err(self.no("number of virtual queues too high"));
        }
        if vqs == 0 {
            return Err(self.no("number of virtual queues can't be 0"));
        }
        if default >= vqs {
            return Err(self.no("default virtual queue above virtual queue count"));
        }
        let own_flags = self.flags == 0 && self.tab.iter().flatten().any(|vq| vq.flags != 0);
        if flags != 0 && own_flags {
            let why = "can't set per-Qdisc RED flags when per-virtual queue flags are used";
            return Err(self.no(why));
        }
        (self.vqs, self.default, self.grio) = (vqs, default, number("grio") != 0);
        self.tab[vqs as usize..].fill(None);
        if std::mem::replace(&mut self.flags, flags) != flags {
            self.tab.iter_mut().flatten().for_each(|vq| vq.flags = flags & VQ_FLAGS);
        }
        self.wred = self.shares();
        Ok(())
    }
    /// `gred_wred_mode_check`, in grio mode.
    fn shares(&self) -> bool {
        let queues = || self.tab.iter().flatten();
        self.grio
            && queues().enumerate().any(|(n, vq)| queues().skip(n + 1).any(|other| other.prio == vq.prio))
    }
    fn is_old(&self) -> bool {
        self.device.kernel == Kernel::V2_6_35
    }
    /// `gred_change` of one virtual queue.
    fn change_vq(&mut self, index: u32, o: &Options) -> Result<(), KernelError> {
        let kernel = self.device.kernel;
        if index >= self.vqs {
            return Err(self.no("virtual queue index above virtual queue count"));
        }
        let flags = o.u32("vq_flags");
        if flags.is_some_and(|flags| self.flags != 0 && self.flags != flags) {
            let why = "can't change per-virtual queue RED flags when per-Qdisc flags are used";
            return Err(self.no(why));
        }
        let default_prio = || self.tab[self.default as usize].as_ref().map_or(DEFAULT_PRIO, |vq| vq.prio);
        let prio = match o.u32("prio").unwrap_or(0) {
            _ if !self.grio => DEFAULT_PRIO,
            0 => default_prio(),
            prio => prio,
        };
        let parms = parms(o, kernel).map_err(|_| self.no("invalid RED parameters"))?;
        let mut limit = o.u32("limit").unwrap_or(0);
        if kernel >= Kernel::V6_12 {
            limit = limit.min(self.limit);
        }
        let own = self.tab[index as usize].as_ref().map_or(self.flags & VQ_FLAGS, |vq| vq.flags);
        let before = self.tab[index as usize].take();
        let mut red = random(&o.clone().with("flags", 0u32), &self.device, None);
        if let Some(vq) = before.as_ref().filter(|vq| vq.backlog > 0) {
            red.set_level((0, vq.red.level().1));
        }
        let flags = flags.unwrap_or(own);
        let (counts, backlog, packets, bytes) =
            before.map_or((Counts::default(), 0, 0, 0), |vq| (vq.counts, vq.backlog, vq.packets, vq.bytes));
        self.tab[index as usize] =
            Some(Vq { limit, prio, flags, parms, red, counts, backlog, packets, bytes });
        self.wred = self.shares();
        Ok(())
    }
    /// The virtual queue that a packet's `tc_index` names.
    fn named(&self, packet: &Packet) -> Option<usize> {
        let dp = usize::from(packet.tc.index & VQ_MASK);
        (dp < self.vqs as usize && self.tab[dp].is_some()).then_some(dp)
    }
    fn refuse(&mut self, packet: Packet, reason: DropReason, cx: &mut Cx<'_>) {
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, reason);
    }
    /// `qdisc_enqueue_tail`, which counted in 2010.
    fn admit(&mut self, packet: Packet) -> Xmit {
        if self.is_old() {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
        }
        self.queue.push_tail(packet);
        Xmit::Success
    }
    /// A packet that names no queue, where there is no default one either: it passes.
    fn pass(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let fits = match self.device.kernel {
            Kernel::V2_6_35 => self.queue.len() < self.device.tx_queue_len,
            Kernel::V6_12 | Kernel::V7_2 => {
                u64::from(self.queue.backlog()) + u64::from(packet.pkt_len) <= u64::from(self.limit)
            }
        };
        if fits {
            return self.admit(packet);
        }
        self.refuse(packet, DropReason::Overlimit, cx);
        Xmit::Drop
    }
}

impl Vq {
    /// What [`Qdisc::dump_at`] shows of it.
    fn dump(&self, index: usize, backlog: u32, qave: u32, old: bool) -> Options {
        let mut o = Options::new()
            .with("vq", index as u32)
            .with("prio", self.prio)
            .with("limit", self.limit)
            .with("flags", self.flags)
            .with("packets", self.packets)
            .with("bytes", if old { self.bytes & 0xffff_ffff } else { self.bytes });
        for (name, value) in NUMBERS.into_iter().zip(self.parms) {
            o = o.with(name, value);
        }
        let c = &self.counts;
        [
            ("qave", qave),
            ("backlog", backlog),
            ("forced_drop", c.forced_drop),
            ("prob_drop", c.prob_drop),
            ("pdrop", c.pdrop),
            ("other", c.other),
            ("forced_mark", c.forced_mark),
            ("prob_mark", c.prob_mark),
        ]
        .into_iter()
        .fold(o, |o, (name, value)| o.with(name, value))
    }
}

impl Qdisc for Gred {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let dp = match self.named(&packet) {
            Some(dp) => dp,
            None => {
                let dp = self.default as usize;
                if self.tab[dp].is_none() {
                    return self.pass(packet, cx);
                }
                packet.tc.index = packet.tc.index & !VQ_MASK | dp as u16;
                dp
            }
        };
        let (wred, wred_set, old) = (self.wred, self.wred_set, self.is_old());
        let whole = self.queue.backlog();
        let prio = self.tab[dp].as_ref().map_or(0, |vq| vq.prio);
        let mut others = 0u64;
        if self.grio && !wred {
            //= linux v6.12 sch_gred.c gred_enqueue: the averages of queues that go before, unless they are idle.
            let before = self.tab.iter().flatten().filter(|vq| vq.prio < prio);
            for (qavg, idle) in before.map(|vq| vq.red.level()) {
                others = others.wrapping_add(if idle.is_none() { qavg } else { 0 });
            }
        }
        let qdisc_flags = self.flags;
        let vq = self.tab[dp].as_mut().expect("it was found");
        vq.packets = vq.packets.wrapping_add(1);
        vq.bytes = vq.bytes.wrapping_add(u64::from(packet.pkt_len));
        if wred {
            vq.red.set_level(wred_set);
        }
        let seen = if wred { whole } else { vq.backlog };
        vq.red.average(cx.now, seen);
        if wred {
            self.wred_set = vq.red.level();
        }
        let action = vq.red.action_over(others, cx.rng);
        if action != Action::Pass {
            self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
        }
        let flags = if old { qdisc_flags } else { vq.flags };
        if mark(action, flags & VQ_FLAGS, &mut packet, &mut vq.counts) == Fate::Drops {
            self.refuse(packet, DropReason::Early, cx);
            return Xmit::Cn;
        }
        let held = if old { vq.backlog } else { seen };
        if u64::from(held) + u64::from(packet.pkt_len) <= u64::from(vq.limit) {
            vq.backlog = vq.backlog.wrapping_add(packet.pkt_len);
            return self.admit(packet);
        }
        vq.counts.pdrop = vq.counts.pdrop.wrapping_add(1);
        self.refuse(packet, DropReason::Overlimit, cx);
        Xmit::Drop
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let (old, wred) = (self.is_old(), self.wred);
        let Some(packet) = self.queue.pop_head() else {
            if old && wred {
                self.wred_set.1.get_or_insert(cx.now);
            }
            return None;
        };
        if !old {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
        }
        if let Some(vq) = self.named(&packet).and_then(|dp| self.tab[dp].as_mut()) {
            vq.backlog = vq.backlog.wrapping_sub(packet.pkt_len);
            if wred && !old && self.queue.backlog() == 0 {
                self.wred_set.1 = Some(cx.now);
            } else if !wred && vq.backlog == 0 {
                let (qavg, _) = vq.red.level();
                vq.red.set_level((qavg, Some(cx.now)));
            }
        }
        Some(packet)
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        self.queue.head()
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let o = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        match o.u32("vq") {
            Some(index) => self.change_vq(index, o),
            None => {
                self.limit = o.u32("limit").unwrap_or(self.limit);
                self.set_up(o)
            }
        }
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.queue.purge(cx);
        for vq in self.tab.iter_mut().flatten() {
            vq.red.restart();
            vq.backlog = 0;
        }
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.queue.len(), backlog: self.queue.backlog(), ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.queue.len()
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.queue.iter().for_each(|packet| see(packet));
    }
    fn marks(&self) -> Option<u64> {
        Some(self.tab.iter().flatten().map(|vq| vq.counts.marks()).sum())
    }
    fn dump(&self) -> Options {
        self.dump_at(Time::ZERO)
    }
    /// For the average of each queue that is idle.
    fn dump_looks(&self) -> u32 {
        let idle = |vq: &&Vq| if self.wred { self.wred_set.1.is_some() } else { vq.red.level().1.is_some() };
        self.tab.iter().flatten().filter(idle).count() as u32
    }
    fn dump_at(&self, now: Time) -> Options {
        let old = self.is_old();
        let list = self.tab.iter().enumerate().filter_map(|(index, vq)| {
            let vq = vq.as_ref()?;
            let mut red = vq.red.clone();
            if self.wred {
                red.set_level(self.wred_set);
            }
            let average = red.vars.qavg;
            let qave = match old {
                true => red.average_at(now, average as u32) as u32,
                false => (red.average_at(now, (average >> red.parms.wlog) as u32) >> red.parms.wlog) as u32,
            };
            let backlog = if self.wred && !old { self.queue.backlog() } else { vq.backlog };
            Some(vq.dump(index, backlog, qave, old))
        });
        Options::new()
            .with("vqs", self.vqs)
            .with("default", self.default)
            .with("grio", u32::from(self.grio))
            .with("flags", self.flags)
            .with("limit", self.limit)
            .with("list", list.collect::<Vec<_>>())
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};
    use penstock_model::Handle;

    fn setup(vqs: u32, default: u32) -> Options {
        Options::new().with("vqs", vqs).with("default", default)
    }
    fn vq(index: u32) -> Options {
        let o = Options::new().with("vq", index).with("limit", 60_000u32).with("vq_flags", 0u32);
        let numbers = [15_000u32, 25_000, 5, 17, 8, 429_496_729];
        NUMBERS.into_iter().zip(numbers).fold(o, |o, (name, value)| o.with(name, value))
    }
    fn made(o: &Options, kernel: Kernel, bench: &mut Bench) -> Result<Box<dyn Qdisc>, KernelError> {
        let init = Init { device: device(kernel), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, Some(o), &mut bench.cx(0))
    }

    #[test]
    fn it_is_set_up_first_and_its_queues_come_after() {
        let mut bench = Bench::new();
        for (o, said) in [
            (vq(1), "virtual queue configuration can't be specified at initialization time"),
            (setup(17, 1), "number of virtual queues too high"),
            (setup(0, 0), "number of virtual queues can't be 0"),
            (setup(3, 3), "default virtual queue above virtual queue count"),
        ] {
            let e = made(&o, Kernel::V6_12, &mut bench).err().unwrap();
            assert_eq!((e.errno, e.extack), (22, format!("sch_gred: {said}")));
            assert_eq!(made(&o, Kernel::V2_6_35, &mut bench).err().unwrap().extack, "");
        }
        let mut q = made(&setup(3, 1), Kernel::V6_12, &mut bench).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(q.dump().u32("limit"), Some(1_514_000));
        assert!(q.change(Some(&vq(3)), &mut bench.cx(0)).is_err());
        q.change(Some(&vq(2)), &mut bench.cx(0)).unwrap();
        assert_eq!(q.dump().list("list")[0].u32("prio"), Some(8));
        // Fewer queues: those above are gone.
        q.change(Some(&setup(2, 1)), &mut bench.cx(0)).unwrap();
        assert!(q.dump().list("list").is_empty());
    }

    #[test]
    fn flags_belong_to_the_whole_or_to_each() {
        let mut bench = Bench::new();
        let mut q = made(&setup(3, 1), Kernel::V6_12, &mut bench).unwrap_or_else(|e| panic!("{e}"));
        q.change(Some(&vq(0).with("vq_flags", 1u32)), &mut bench.cx(0)).unwrap();
        let e = q
            .change(Some(&setup(3, 1).with("flags", 1u32).with("limit", 7u32)), &mut bench.cx(0))
            .unwrap_err();
        assert!(e.extack.ends_with("when per-virtual queue flags are used"), "{e}");
        assert_eq!(q.dump().u32("limit"), Some(7));
        let mut q = made(&setup(3, 1).with("flags", 2u32), Kernel::V6_12, &mut bench)
            .unwrap_or_else(|e| panic!("{e}"));
        let e = q.change(Some(&vq(0)), &mut bench.cx(0)).unwrap_err();
        assert!(e.extack.ends_with("when per-Qdisc flags are used"), "{e}");
    }

    #[test]
    fn priorities_count_in_grio_only() {
        let mut bench = Bench::new();
        let prio =
            |q: &dyn Qdisc| q.dump().list("list").iter().map(|o| o.u32("prio").unwrap()).collect::<Vec<_>>();
        let mut q = made(&setup(3, 1).with("grio", 1u32), Kernel::V6_12, &mut bench)
            .unwrap_or_else(|e| panic!("{e}"));
        for o in [vq(0), vq(1).with("prio", 3u32), vq(2)] {
            q.change(Some(&o), &mut bench.cx(0)).unwrap();
        }
        assert_eq!(prio(&*q), [8, 3, 3]);
    }
}
