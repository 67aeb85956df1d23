//! `taprio`: the time-aware shaper of 802.1Qbv, gates that open and close by a schedule.
//!
//! Follows: linux v6.12 `net/sched/sch_taprio.c`, in software and with txtime-assist.
//! Differs: no device has hardware offload; a line's overhead in a size table is not taken off the longest frame; every device takes 65535 bytes at most. The
//! machine's clocks begin with the run. A schedule whose base time is past waits for the end of a cycle, and is shown as running while the clock stands still
//! between commands. Cycles in which nobody looks go by at once.

mod schedule;

use super::KindSpec;
use super::bands::{Banded, Bands};
use super::mqprio::{EXPRESS, TrafficClasses};
use crate::ledger::DropReason;
use crate::naps::{self, Naps};
use crate::node::{Node, Shown};
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Span, Stats, Time};
use penstock_packet::{L4, Packet, Skb, TxClock, TxTime};
use schedule::{ByteTime, CLASSES_MAX, Schedule, Schedules};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "taprio",
    about: "traffic classes whose gates open and close by a cyclic schedule",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Queues,
        sorting: Sorting::Own,
        takes_filters: false,
        limits_rate: LimitsRate::Otherwise,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: false,
    },
};

/// `TCA_TAPRIO_ATTR_FLAG_TXTIME_ASSIST`.
const TXTIME_ASSIST: u32 = 1;
/// `TCA_TAPRIO_ATTR_FLAG_FULL_OFFLOAD`.
const FULL_OFFLOAD: u32 = 2;
/// `ENOTSUPP`, which no C library has a word for.
const ENOTSUPP: i32 = 524;
/// `CLOCK_MONOTONIC` and `CLOCK_BOOTTIME`, which do not count from 1970.
const MONOTONIC: [i64; 2] = [1, 7];
/// What a device that tells no speed is taken for, Mbit/s.
use super::cbs::SLOWEST_MBIT;

fn no<T>(sentence: &str) -> Result<T, KernelError> {
    Err(KernelError::new(KernelError::EINVAL, sentence))
}

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let unfit = |sentence: &str| Err(KernelError::new(KernelError::EOPNOTSUPP, sentence));
    if init.parent != Handle::ROOT {
        return unfit("sch_taprio: Can only be attached as root qdisc");
    }
    if !init.device.is_multiqueue() {
        return unfit("sch_taprio: Multi-queue device is required");
    }
    let mut bands = Bands::new(init);
    for band in 0..init.device.tx_queues as usize {
        let mut node = bands.pfifo(band);
        node.shown = Shown::Always;
        bands.nodes.push(node);
    }
    let mut taprio = Taprio {
        bands,
        classes: TrafficClasses::default(),
        flags: None,
        clockid: None,
        txtime_delay: 0,
        max_sdu: [0; CLASSES_MAX],
        fp: [EXPRESS; CLASSES_MAX],
        byte: ByteTime::of(SLOWEST_MBIT).0,
        warning: None,
        schedules: Schedules::default(),
        shown_as_running: None,
        cursor: [0; CLASSES_MAX],
        timer: None,
        struck: None,
        naps: Naps::default(),
        unsure: false,
        qlen: 0,
        stats: Stats::default(),
    };
    taprio.change(options, cx)?;
    Ok(Box::new(taprio))
}

/// The qdisc.
struct Taprio {
    // Parameters
    bands: Bands,
    classes: TrafficClasses,
    /// `None` before the first change.
    flags: Option<u32>,
    clockid: Option<i64>,
    /// ns.
    txtime_delay: u32,
    /// `max-sdu`, bytes, 0: none.
    max_sdu: [u32; CLASSES_MAX],
    /// `fp`, by traffic class: what a refused change has said stays.
    fp: [u8; CLASSES_MAX],
    byte: ByteTime,
    warning: Option<String>,
    // Variables
    schedules: Schedules,
    /// Since when the one that is to begin is shown as running while the clock stands still.
    shown_as_running: Option<Time>,
    /// `cur_txq`: the queue of each class that is asked first.
    cursor: [u16; CLASSES_MAX],
    /// `advance_timer`, ns.
    timer: Option<i64>,
    /// It has gone off at this very moment.
    struck: Option<Time>,
    /// Queues whose qdisc has set its watchdog.
    naps: Naps,
    /// The qdiscs may have been changed by others: packets and timers must be asked for anew.
    unsure: bool,
    /// Packets in the queues.
    qlen: u32,
    /// With `qlen` and `backlog` as the kernel counts them: a packet that a queue refuses is counted ever after.
    stats: Stats,
}

impl Taprio {
    fn assists(&self) -> bool {
        self.flags.unwrap_or(0) & TXTIME_ASSIST != 0
    }
    fn class_of(&self, priority: u32) -> usize {
        usize::from(self.classes.map[priority as usize & 15])
    }
    /// `taprio_parse_clockid`.
    fn clock(&self, given: Option<i64>, flags: u32) -> Result<Option<i64>, KernelError> {
        let unfit = |sentence: &str| Err(KernelError::new(ENOTSUPP, sentence));
        if flags & FULL_OFFLOAD != 0 {
            return match given {
                Some(_) => no("The 'clockid' cannot be specified for full offload"),
                None => unfit("Device does not have a PTP clock"),
            };
        }
        match given {
            None => no("Specifying a 'clockid' is mandatory"),
            Some(id) if id < 0 || self.clockid.is_some_and(|before| before != id) => {
                unfit("Changing the 'clockid' of a running schedule is not supported")
            }
            // Real time, monotonic, since boot, atomic.
            Some(0 | 1 | 7 | 11) => Ok(given),
            Some(_) => no("Invalid 'clockid'"),
        }
    }
    /// `taprio_parse_mqprio_opt`. `None`: as the device has them.
    fn parse_classes(&self, options: &Options, flags: u32) -> Result<Option<TrafficClasses>, KernelError> {
        if !options.has("num_tc") {
            return match self.classes.queues.is_empty() {
                true => no("'mqprio' configuration is necessary"),
                false => Ok(None),
            };
        }
        let device = &self.bands.device;
        if options.u32("num_tc").unwrap_or(0) > device.tx_queues {
            return no("Number of traffic classes is greater than number of HW queues");
        }
        TrafficClasses::parse(options, device, true, flags & TXTIME_ASSIST != 0).map(Some)
    }
    /// `taprio_parse_tc_entries`: what is said stays said, whatever else is wrong with the command.
    fn parse_tc_entries(&mut self, options: &Options) -> Result<(), KernelError> {
        let mut sizes = self.max_sdu;
        for (size, given) in sizes.iter_mut().zip(options.list("max-sdu")) {
            *size = given.u32("max-sdu").unwrap_or(0);
            if *size > MTU_MAX {
                let sentence = "sch_taprio: TC max SDU exceeds device max MTU";
                return Err(KernelError::new(KernelError::ERANGE, sentence));
            }
        }
        self.max_sdu = sizes;
        for (fp, given) in self.fp.iter_mut().zip(options.bytes("fp").unwrap_or(&[])) {
            *fp = *given;
        }
        if self.fp.iter().any(|&fp| fp != EXPRESS) {
            let sentence = "Preemption only supported with full offload";
            return Err(KernelError::new(KernelError::EOPNOTSUPP, sentence));
        }
        Ok(())
    }
    fn limit_frames(&self, schedule: &mut Schedule) {
        let header = self.bands.device.hard_header_len;
        schedule.limit_frames(self.byte, &self.max_sdu, header, self.classes.queues.len());
    }
    /// `taprio_set_picos_per_byte`.
    fn set_speed(&mut self) -> Option<String> {
        let speed = self.bands.device.speed_mbit.filter(|&mbit| mbit > 0).unwrap_or(SLOWEST_MBIT);
        let (byte, warning) = ByteTime::of(speed);
        self.byte = byte;
        warning
    }
    /// Runs `work` on a queue's qdisc and notes what it holds and when it wakes afterwards.
    fn on_queue<T>(&mut self, queue: usize, work: impl FnOnce(&mut Node) -> T) -> T {
        let node = &mut self.bands.nodes[queue];
        let before = node.qlen_above();
        let result = work(node);
        self.qlen = self.qlen.wrapping_add(node.qlen_above().wrapping_sub(before));
        match naps::alarm(node) {
            Some(alarm) => self.naps.set(queue as u32, alarm),
            None => self.naps.remove(queue as u32),
        }
        result
    }
    /// Asks every queue's qdisc anew, where others may have changed them since they were last asked.
    fn settle(&mut self) {
        if !std::mem::take(&mut self.unsure) {
            return;
        }
        self.naps.clear();
        self.qlen = 0;
        for (queue, node) in self.bands.nodes.iter().enumerate() {
            self.qlen = self.qlen.wrapping_add(node.qlen_above());
            if let Some(alarm) = naps::alarm(node) {
                self.naps.set(queue as u32, alarm);
            }
        }
    }
    fn refuse(&mut self, packet: Packet, reason: DropReason, cx: &mut Cx<'_>) -> Xmit {
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, reason);
        Xmit::Drop
    }
    /// `taprio_skb_exceeds_queue_max_sdu`.
    fn is_too_long(&self, packet: &Skb, class: usize) -> bool {
        self.schedules.oper.as_ref().is_some_and(|oper| oper.is_too_long(packet.len, class))
    }
    /// `taprio_enqueue_segmented`: a super-packet that no gate is open long enough for goes in segment by segment. One that is still too long is
    /// counted as dropped twice, as in the kernel.
    #[cold]
    fn segment(&mut self, packet: Packet, queue: usize, class: usize, cx: &mut Cx<'_>) -> Xmit {
        let mut segments = cx.drops.segment(packet);
        let (all, mut taken) = (segments.len() as u32, 0u32);
        for segment in segments.drain(..) {
            let answer = if self.is_too_long(&segment, class) {
                self.refuse(segment, DropReason::TooBig, cx)
            } else {
                self.enter(segment, queue, class, cx)
            };
            if answer == Xmit::Success {
                taken += 1;
            } else if answer.counts_as_drop() {
                self.stats.drops = self.stats.drops.wrapping_add(1);
            }
        }
        // The answer tells of the last one.
        cx.drops.segments_done(segments, all - taken.max(1));
        if taken > 0 { Xmit::Success } else { Xmit::Drop }
    }
    /// `taprio_enqueue_one`.
    fn enter(&mut self, mut packet: Packet, queue: usize, class: usize, cx: &mut Cx<'_>) -> Xmit {
        if packet.is_noted() && packet.rare().txtime.is_some_and(|t| t.asked) {
            let duration = self.byte.duration(packet.pkt_len);
            if !self.schedules.is_open(&packet, class, duration) {
                return self.refuse(packet, DropReason::TxTimeInvalid, cx);
            }
        } else if self.assists() {
            let Some(at) = self.txtime(&packet, class, cx.now) else {
                return self.refuse(packet, DropReason::TxTimeInvalid, cx);
            };
            packet.sender.departs = at;
            let monotonic = self.clockid.is_some_and(|id| MONOTONIC.contains(&id));
            let clock = if monotonic { TxClock::Monotonic } else { TxClock::Tai };
            packet.rare_mut().txtime = Some(TxTime { clock, asked: false, deadline: false });
        }
        self.stats.backlog = self.stats.backlog.wrapping_add(packet.pkt_len);
        self.stats.qlen = self.stats.qlen.wrapping_add(1);
        self.on_queue(queue, |node| node.enqueue_again(packet, cx))
    }
    /// `get_packet_txtime`.
    fn txtime(&mut self, skb: &Skb, class: usize, now: Time) -> Option<Time> {
        let mut earliest = now.as_ns() + i64::from(self.txtime_delay);
        if matches!(skb.l4, L4::Tcp(_)) {
            // What TCP paces by is another clock, which stands as this does.
            earliest = earliest.max(skb.sender.departs.as_ns());
        }
        let duration = self.byte.duration(skb.pkt_len);
        self.schedules.txtime(class, duration, earliest).map(Time::from_ns)
    }
    /// `taprio_dequeue_from_txq`: the gates that are open, and the entry whose they are.
    fn take_from(
        &mut self,
        queue: usize,
        (mask, entry): (u32, Option<usize>),
        now: i64,
        cx: &mut Cx<'_>,
    ) -> Option<Packet> {
        if self.bands.nodes[queue].is_noop() {
            return None;
        }
        if !self.assists() {
            let (priority, len) =
                self.on_queue(queue, |node| node.peek(cx).map(|p| (p.priority, p.pkt_len)))?;
            let class = self.class_of(priority);
            if mask >> class & 1 == 0 {
                return None;
            }
            let guard = now + self.byte.duration(len);
            let count = self.classes.queues.len();
            if let Some((entry, oper)) = entry.zip(self.schedules.oper.as_mut()) {
                let entry = &mut oper.entries[entry];
                // A mask with all its bits is taken for no schedule at all.
                let bound = mask != u32::MAX;
                if bound && (!entry.allows(guard, class) || entry.spend(len, class, count) < 0) {
                    return None;
                }
            }
        }
        let packet = self.on_queue(queue, |node| node.dequeue(cx))?;
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        self.stats.backlog = self.stats.backlog.wrapping_sub(packet.pkt_len);
        self.stats.qlen = self.stats.qlen.wrapping_sub(1);
        Some(packet)
    }
    /// `taprio_next_tc_txq`: the queue of a class that is asked after this one.
    fn next_in_class(&self, class: usize, queue: u16) -> u16 {
        let (count, offset) = self.classes.queues[class];
        if queue + 1 == offset + count { offset } else { queue + 1 }
    }
}

/// What a device takes at most, bytes.
const MTU_MAX: u32 = 65_535;

/// What netlink itself refuses, in its own words.
fn check_policy(options: &Options) -> Result<(), KernelError> {
    if options.u32("flags").unwrap_or(0) & !(TXTIME_ASSIST | FULL_OFFLOAD) != 0 {
        return no("reserved bit set");
    }
    if options.i64("cycle-time").is_some_and(|t| !(0..=i64::from(i32::MAX)).contains(&t)) {
        return Err(KernelError::new(KernelError::ERANGE, "integer out of range"));
    }
    Ok(())
}

impl Qdisc for Taprio {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.settle();
        let queue = usize::from(packet.rare().queue_mapping).min(self.bands.nodes.len() - 1);
        if self.bands.nodes[queue].is_noop() {
            return self.refuse(packet, DropReason::Unclassified, cx);
        }
        let class = self.class_of(packet.priority);
        if self.is_too_long(&packet, class) {
            if packet.gso().is_some() {
                return self.segment(packet, queue, class, cx);
            }
            return self.refuse(packet, DropReason::TooBig, cx);
        }
        self.enter(packet, queue, class, cx)
    }
    /// `taprio_dequeue_tc_priority`.
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.settle();
        // Linux's interrupt comes a nanosecond behind its timer's moment at the earliest.
        let late = if self.struck == Some(cx.now) { Span::from_ns(1) } else { Span::ZERO };
        let now = (cx.now + late).as_ns();
        let entry = self.schedules.current;
        let open = entry.zip(self.schedules.oper.as_ref()).map_or(u32::MAX, |(n, oper)| oper.entries[n].mask);
        for class in (0..self.classes.queues.len()).rev() {
            if open >> class & 1 == 0 {
                continue;
            }
            let first = self.cursor[class];
            loop {
                let queue = self.cursor[class];
                let packet = self.take_from(usize::from(queue), (open, entry), now, cx);
                let next = self.next_in_class(class, queue);
                self.cursor[class] = if usize::from(next) < self.bands.nodes.len() { next } else { first };
                if packet.is_some() {
                    return packet;
                }
                if self.cursor[class] == first {
                    break;
                }
            }
        }
        None
    }
    /// There is no such operation: nobody stands above and asks.
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        None
    }
    fn next_wakeup(&self) -> Option<Time> {
        let below = match self.unsure {
            false => self.naps.first(),
            true => self.bands.nodes.iter().filter_map(Node::next_wakeup).min(),
        };
        [self.timer.map(Time::from_ns), below].into_iter().flatten().min()
    }
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.timer.iter().for_each(|&at| see(Time::from_ns(at), Time::from_ns(at)));
        self.bands.nodes.iter().for_each(|node| node.timers(see));
    }
    fn expire(&mut self, due: Due) {
        self.settle();
        let classes = self.classes.queues.len();
        let Schedules { oper, admin, current } = &mut self.schedules;
        if let (Some(oper), None, Some(current), Some(at)) = (oper, admin, current, self.timer)
            && oper.entries[*current].end == at
        {
            oper.skip_cycles(*current, due.now.as_ns());
            self.timer = Some(oper.entries[*current].end);
        }
        while let Some(at) = self.timer.filter(|&at| due.has(Time::from_ns(at), Time::from_ns(at))) {
            self.timer = self.schedules.advance(self.byte, classes);
            self.struck = due.is_on_time().then_some(Time::from_ns(at));
        }
        let Taprio { bands, naps, .. } = self;
        naps.expire(due.now, |queue| {
            let node = &mut bands.nodes[queue as usize];
            node.expire(due);
            naps::alarm(node)
        });
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        self.warning = None;
        check_policy(options)?;
        let flags = options.u32("flags").unwrap_or(0);
        if flags == TXTIME_ASSIST | FULL_OFFLOAD {
            return no("TXTIME_ASSIST and FULL_OFFLOAD are mutually exclusive");
        }
        if self.flags.is_some_and(|before| before != flags) {
            let sentence = "sch_taprio: Changing 'flags' of a running schedule is not supported";
            return Err(KernelError::new(KernelError::EOPNOTSUPP, sentence));
        }
        let warning = self.set_speed();
        let classes = self.parse_classes(options, flags)?;
        self.parse_tc_entries(options)?;
        let classes = classes.filter(|classes| *classes != self.classes);
        if classes.is_some() && (self.schedules.oper.is_some() || self.schedules.admin.is_some()) {
            let sentence = "Changing the traffic mapping of a running schedule is not supported";
            return Err(KernelError::new(ENOTSUPP, sentence));
        }
        let count = classes.as_ref().unwrap_or(&self.classes).queues.len();
        let mut schedule = Schedule::parse(options, self.byte, count)?;
        if schedule.entries.is_empty() {
            return no("There should be at least one entry in the schedule");
        }
        self.clockid = self.clock(options.i64("clockid"), flags)?;
        if options.has("txtime-delay") && flags & TXTIME_ASSIST == 0 {
            return no("sch_taprio: txtime-delay can only be set when txtime-assist mode is enabled");
        }
        self.flags = Some(flags);
        self.txtime_delay = options.u32("txtime-delay").unwrap_or(self.txtime_delay);
        if let Some(classes) = classes {
            for (cursor, &(_, offset)) in self.cursor.iter_mut().zip(&classes.queues) {
                *cursor = offset;
            }
            self.classes = classes;
        }
        self.limit_frames(&mut schedule);
        let start = schedule.start(cx.now.as_ns());
        schedule.set_txtimes(start);
        if self.assists() {
            match self.schedules.oper {
                None => self.schedules.oper = Some(schedule),
                Some(_) => self.schedules.admin = Some(schedule),
            }
        } else {
            // The one before, had any time passed since it was made.
            if self.shown_as_running == Some(cx.now) {
                self.schedules.switch();
            }
            self.shown_as_running = (schedule.base_time <= cx.now.as_ns()).then_some(cx.now);
            schedule.begin_at(start, self.byte, count);
            self.schedules.current = None;
            self.timer = Some(self.timer.map_or(start, |timer| timer.min(start)));
            self.schedules.admin = Some(schedule);
        }
        let sentence = "sch_taprio: Size table not specified, frame length estimations may be inaccurate";
        self.warning = warning.or_else(|| Some(sentence.to_owned()));
        Ok(())
    }
    /// Its timer goes off no more until the schedule is changed.
    //= linux v6.12 net/sched/sch_taprio.c taprio_reset
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.bands.nodes.iter_mut().for_each(|node| node.reset(cx));
        (self.timer, self.struck, self.unsure) = (None, None, true);
        (self.stats.qlen, self.stats.backlog) = (0, 0);
    }
    fn stats(&self) -> Stats {
        self.stats
    }
    fn qlen(&self) -> u32 {
        match self.unsure {
            false => self.qlen,
            true => self.bands.nodes.iter().map(Node::qlen).sum(),
        }
    }
    fn packets(&self, _: &mut dyn FnMut(&Skb)) {}
    fn dump(&self) -> Options {
        self.dump_at(Time::MAX)
    }
    fn dump_at(&self, now: Time) -> Options {
        let mut options = self.classes.dump().with("clockid", self.clockid.unwrap_or(-1));
        if let Some(flags) = self.flags.filter(|&flags| flags != 0) {
            options = options.with("flags", flags);
        }
        if self.txtime_delay != 0 {
            options = options.with("txtime-delay", self.txtime_delay);
        }
        let Schedules { oper, admin, .. } = &self.schedules;
        let (oper, admin) = match admin {
            Some(_) if self.shown_as_running == Some(now) => (admin, &None),
            _ => (oper, admin),
        };
        if let Some(running) = oper {
            options = options.with("max-sdu", running.dump_max_sdu()).with("fp", self.fp.to_vec());
            options = options.with("oper", running.dump());
        }
        if let Some(coming) = admin {
            options = options.with("admin", coming.dump());
        }
        options
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        let speed = self.bands.device.speed_mbit;
        self.bands.device = *device;
        //= linux v6.12 net/sched/sch_taprio.c taprio_dev_notifier
        if speed != device.speed_mbit {
            let _ = self.set_speed();
            let Schedules { oper, admin, current } = std::mem::take(&mut self.schedules);
            let again = |schedule: Option<Schedule>| {
                schedule.map(|mut schedule| {
                    self.limit_frames(&mut schedule);
                    schedule
                })
            };
            let (oper, admin) = (again(oper), again(admin));
            self.schedules = Schedules { oper, admin, current };
        }
    }
    fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }
    fn forget_traffic_classes(&mut self, map: bool) {
        self.classes.forget(map);
    }
    fn queues_of(&self, priority: u32) -> Option<(u16, u16)> {
        self.classes.queues_of(priority)
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        self.unsure = true;
        Some(self)
    }
    /// A dequeue that finds nothing asks every queue whose gate is open.
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

impl Banded for Taprio {
    super::bands::has_bands!();
    fn vacant(&self, _: usize) -> Node {
        Node::noop()
    }
    fn dump_band(&self, _: usize) -> (Handle, Options) {
        (Handle::ROOT, Options::new())
    }
    fn has_refusals(&self) -> bool {
        false
    }
    fn stops_device(&self) -> bool {
        true
    }
}
