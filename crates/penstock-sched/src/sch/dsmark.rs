//! `dsmark`: writes the DS field of packets by a table that their class indexes. Removed from Linux 6.3.
//!
//! Follows: linux v6.1 (the last long-term kernel that had it) and v2.6.35 `net/sched/sch_dsmark.c`.
//! Differs: both profiles have it, although Linux 6.12 has not.

use super::KindSpec;
use crate::act;
use crate::cls::{BlockId, Filters, Gone, Verdict};
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time, Value};
use penstock_packet::{L3, Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "dsmark",
    about: "sets the DS field of packets from a table indexed by class",
    kernels: &Kernel::BEFORE_7,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Table,
        sorting: Sorting::Own,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: true,
    },
};

/// What a table entry is before it is set: the field stays as it is.
const UNTOUCHED: (u8, u8) = (0xff, 0);

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let einval = || KernelError::errno(KernelError::EINVAL);
    let options = options.ok_or_else(einval)?;
    let indices =
        options.u32("indices").map(|n| n as u16).filter(|n| n.is_power_of_two()).ok_or_else(einval)?;
    Ok(Box::new(Dsmark {
        device: init.device,
        handle: init.handle,
        default_index: options.u32("default_index").map(|n| n as u16),
        set_tc_index: options.has("set_tc_index"),
        table: vec![UNTOUCHED; usize::from(indices)],
        filters: Filters::new(init.handle),
        inner: Node::default_pfifo(&init.device, init.handle),
        stats: Stats::default(),
    }))
}

/// The qdisc.
struct Dsmark {
    // Parameters
    device: Device,
    handle: Handle,
    default_index: Option<u16>,
    set_tc_index: bool,
    /// Mask and value by index.
    table: Vec<(u8, u8)>,
    filters: Filters,
    // Variables
    inner: Node,
    stats: Stats,
}

impl Dsmark {
    /// `dsmark_valid_index`.
    fn entry(&mut self, classid: Handle) -> Option<&mut (u8, u8)> {
        self.table.get_mut(usize::from(classid.minor()))
    }
    fn is_old(&self) -> bool {
        self.device.kernel == Kernel::V2_6_35
    }
    /// Sets a packet's tc_index.
    fn classify(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Gone> {
        if self.set_tc_index {
            skb.tc.index = u16::from(skb.tos() & !ECN);
        }
        let priority = Handle(skb.priority);
        if priority.qdisc() == self.handle {
            skb.tc.index = priority.minor();
            return None;
        }
        match self.filters.answer(Filters::ROOT, skb, cx) {
            Some(answer) => match answer.verdict() {
                Verdict::Gone(gone) => return Some(gone),
                _ if answer.said == act::OK => skb.tc.index = answer.hit.classid.minor(),
                _ => skb.tc.index = self.default_index.unwrap_or(skb.tc.index),
            },
            None => skb.tc.index = self.default_index.unwrap_or(skb.tc.index),
        }
        None
    }
    /// Writes the DS field that the tc_index names (`ipv4_change_dsfield`, which updates the checksum).
    fn write(&self, skb: &mut Skb) {
        let (mask, value) = self.table[usize::from(skb.tc.index) & (self.table.len() - 1)];
        match &mut skb.l3 {
            L3::Ipv4(h) => h.tos = h.tos & mask | value,
            L3::Ipv6(h) => h.traffic_class = h.traffic_class & mask | value,
            _ => {}
        }
    }
    /// Packets that the inner qdisc has dropped of itself count here too, but not in 2010.
    fn lost(&mut self, should: u32) {
        if !self.is_old() {
            self.stats.drops = self.stats.drops.wrapping_add(should.saturating_sub(self.inner.qlen_above()));
        }
    }
    fn count(&mut self, len: u32) {
        self.stats.bytes += u64::from(len);
        self.stats.packets += 1;
    }
}

/// `INET_ECN_MASK`.
const ECN: u8 = 3;

impl Qdisc for Dsmark {
    /// `dsmark_enqueue`.
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if let Some(gone) = self.classify(&mut packet, cx) {
            return gone.leave_counted(packet, &mut self.stats, cx);
        }
        let (len, before) = (packet.pkt_len, self.inner.qlen_above());
        let answer = self.inner.enqueue(packet, cx);
        self.lost(before + u32::from(answer == Xmit::Success));
        if answer == Xmit::Success {
            if self.is_old() {
                self.count(len);
            }
        } else if answer.counts_as_drop() {
            self.stats.drops = self.stats.drops.wrapping_add(1);
        }
        answer
    }
    /// `dsmark_dequeue`.
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let before = self.inner.qlen_above();
        let packet = self.inner.dequeue(cx);
        self.lost(before - u32::from(packet.is_some()));
        let mut packet = packet?;
        if !self.is_old() {
            self.count(packet.pkt_len);
        }
        self.write(&mut packet);
        Some(packet)
    }
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        let before = self.inner.qlen_above();
        let there = self.inner.peek(cx).is_some();
        self.lost(before);
        if there { self.inner.peek(cx) } else { None }
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup()
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.inner.reset(cx);
    }
    fn stats(&self) -> Stats {
        let backlog = if self.is_old() { 0 } else { self.inner.backlog() };
        Stats { qlen: self.inner.qlen_above(), backlog, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.inner.qlen_above()
    }
    fn packets(&self, _: &mut dyn FnMut(&Skb)) {}
    /// `dsmark_dequeue` asks what it holds, which may note it.
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    /// There is no such operation.
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let sentence = "Change operation not supported by specified qdisc";
        Err(self.device.refusal(KernelError::EINVAL, sentence))
    }
    fn dump(&self) -> Options {
        let mut options = Options::new().with("indices", self.table.len() as u32);
        if let Some(index) = self.default_index {
            options = options.with("default_index", u32::from(index));
        }
        if self.set_tc_index {
            options.set("set_tc_index", Value::Flag);
        }
        options
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
}

/// Every class there can be is found, and all have the one qdisc.
impl Classful for Dsmark {
    fn find(&self, _: Handle) -> bool {
        true
    }
    fn graft(&mut self, _: Handle, new: Option<Node>, _: &mut Cx<'_>) -> Result<Option<Node>, KernelError> {
        let new = new.unwrap_or_else(|| Node::default_pfifo(&self.device, self.handle));
        Ok(Some(std::mem::replace(&mut self.inner, new)))
    }
    fn leaf(&self, _: Handle) -> Option<&Node> {
        Some(&self.inner)
    }
    fn leaf_mut(&mut self, _: Handle) -> Option<&mut Node> {
        Some(&mut self.inner)
    }
    fn children(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        visit(self.handle, &self.inner);
    }
    fn children_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        visit(self.handle, &mut self.inner);
    }
    fn reduced(&mut self, _: Handle, packets: u32, _: u32) {
        if !self.is_old() {
            self.stats.drops = self.stats.drops.wrapping_add(packets);
        }
    }
    fn change_class(
        &mut self,
        _: Handle,
        classid: Handle,
        options: Option<&Options>,
        _: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        let entry = self.entry(classid).ok_or(KernelError::errno(KernelError::ENOENT))?;
        let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        let byte = |name: &str| options.u32(name).map(|n| n as u8);
        *entry = (byte("mask").unwrap_or(entry.0), byte("value").unwrap_or(entry.1));
        Ok(classid)
    }
    fn delete_class(&mut self, classid: Handle, _: &mut Cx<'_>) -> Result<(), KernelError> {
        *self.entry(classid).ok_or(KernelError::errno(KernelError::EINVAL))? = UNTOUCHED;
        Ok(())
    }
    /// Entries that were never set are left out.
    fn walk(&self, _: Time, visit: &mut dyn FnMut(ClassDump)) {
        for (index, &entry) in self.table.iter().enumerate().filter(|(_, entry)| **entry != UNTOUCHED) {
            visit(ClassDump {
                kind: SPEC.id,
                classid: Handle::new(self.handle.major(), index as u16),
                parent: self.handle,
                leaf: Some(self.inner.handle).filter(|&h| h != Handle::UNSPEC),
                options: Options::new().with("mask", entry.0).with("value", entry.1),
                counters: Counters::None,
                stats: Stats::default(),
                xstats: None,
            });
        }
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn block(&self, _: Handle) -> Option<BlockId> {
        Some(Filters::ROOT)
    }
    fn bind(&mut self, _: Handle, classid: Handle) -> u32 {
        u32::from(classid.minor()) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};

    #[test]
    fn the_field_follows_the_index() {
        for kernel in Kernel::BEFORE_7 {
            let mut bench = Bench::new();
            let init = Init { device: device(kernel), handle: Handle::new(1, 0), parent: Handle::ROOT };
            let o = Options::new().with("indices", 64u32).with("default_index", 2u32);
            let mut q = build(&init, Some(&o), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
            let mut set = |class: u16, mask: u32, value: u32| {
                let o = Options::new().with("mask", mask).with("value", value);
                let classes = q.classes_mut().unwrap();
                classes
                    .change_class(Handle::ROOT, Handle::new(1, class), Some(&o), &mut bench.cx(0))
                    .unwrap();
            };
            // RFC 3290's example: EF for class 1, AF11 with the ECN bits kept for class 2.
            set(1, 0, 0xb8);
            set(2, 3, 0x28);
            for (seq, priority) in [(0, 0x1_0001), (1, 0), (2, 0x1_0041), (3, 0x1_0005)] {
                let mut p = packet(seq, 100);
                p.priority = priority;
                if let L3::Ipv4(h) = &mut p.l3 {
                    h.tos = 0x11;
                }
                assert_eq!(q.enqueue(p, &mut bench.cx(0)), Xmit::Success);
            }
            let tos: Vec<u8> = std::iter::from_fn(|| q.dequeue(&mut bench.cx(0))).map(|p| p.tos()).collect();
            assert_eq!(tos, [0xb8, 0x29, 0xb8, 0x11], "{kernel}");
            assert_eq!((q.stats().packets, q.stats().bytes, q.qlen()), (4, 400, 0));
        }
    }

    #[test]
    fn set_tc_index_takes_the_field_without_ecn() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V2_6_35), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut o = Options::new().with("indices", 1u32);
        o.set("set_tc_index", Value::Flag);
        let mut q = build(&init, Some(&o), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        let mut p = packet(0, 100);
        if let L3::Ipv4(h) = &mut p.l3 {
            h.tos = 0xbb;
        }
        q.enqueue(p, &mut bench.cx(0));
        let p = q.dequeue(&mut bench.cx(0)).unwrap();
        assert_eq!((p.tc.index, p.tos()), (0xb8, 0xbb));
    }
}
