//! `taprio`: the time-aware shaper of 802.1Qbv, gates that open and close by a schedule.
//!
//! Follows: linux v6.12 `net/sched/sch_taprio.c`, configuration only.
//! Differs: packets are not carried yet; no device has hardware offload, and none knows its speed, so that times are checked
//! as for 10 Mbit/s. A schedule whose base time is past is shown as running at once: the kernel has it wait for the end of
//! a cycle, two seconds at most. The machine's clocks begin with the run.

use super::KindSpec;
use super::bands::{Banded, Bands};
use super::mqprio::TrafficClasses;
use super::unsimulated::{Params, Unsimulated};
use crate::node::{Node, Shown};
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "taprio",
    about: "traffic classes whose gates open and close by a cyclic schedule",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
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
/// What the shortest frame (`ETH_ZLEN`) takes at 10 Mbit/s, ns.
const SHORTEST_NS: u64 = 60 * 800;
/// `ENOTSUPP`, which no C library has a word for.
const ENOTSUPP: i32 = 524;

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
        running: None,
        coming: None,
        warning: None,
    };
    taprio.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(taprio)))
}

/// `struct sched_gate_list`: times in ns.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Schedule {
    base_time: i64,
    cycle_time: i64,
    extension: i64,
    /// Command, gate mask, interval.
    entries: Vec<(u32, u32, u32)>,
}

impl Schedule {
    /// `parse_taprio_schedule`.
    fn parse(options: &Options) -> Result<Schedule, KernelError> {
        let time = |name: &str| options.i64(name).unwrap_or(0);
        let mut entries = Vec::new();
        for entry in options.list("sched-entry") {
            let number = |name: &str| entry.u32(name).unwrap_or(0);
            if u64::from(number("interval")) < SHORTEST_NS {
                return no("Invalid interval for schedule entry");
            }
            entries.push((number("cmd"), number("gate-mask"), number("interval")));
        }
        let mut cycle_time = time("cycle-time");
        if cycle_time == 0 {
            cycle_time = entries.iter().map(|e| i64::from(e.2)).sum();
            if cycle_time > i64::from(i32::MAX) {
                return no("'cycle_time' is too big");
            }
        }
        if cycle_time < entries.len() as i64 * SHORTEST_NS as i64 {
            return no("'cycle_time' is too small");
        }
        let (base_time, extension) = (time("base-time"), time("cycle-time-extension"));
        Ok(Schedule { base_time, cycle_time, extension, entries })
    }
    fn dump(&self) -> Options {
        let entry = |(index, e): (usize, &(u32, u32, u32))| {
            Options::new()
                .with("index", index as u32)
                .with("cmd", e.0)
                .with("gate-mask", e.1)
                .with("interval", e.2)
        };
        Options::new()
            .with("base-time", self.base_time)
            .with("cycle-time", self.cycle_time)
            .with("cycle-time-extension", self.extension)
            .with("sched-entry", self.entries.iter().enumerate().map(entry).collect::<Vec<_>>())
    }
}

/// The qdisc.
struct Taprio {
    bands: Bands,
    classes: TrafficClasses,
    /// `None` before the first change.
    flags: Option<u32>,
    clockid: Option<i64>,
    /// ns.
    txtime_delay: u32,
    /// `oper_sched`.
    running: Option<Schedule>,
    /// `admin_sched`.
    coming: Option<Schedule>,
    warning: Option<String>,
}

impl Taprio {
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
}

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

impl Params for Taprio {
    fn kind(&self) -> &'static str {
        SPEC.id
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
        let classes = self.parse_classes(options, flags)?.filter(|classes| *classes != self.classes);
        if classes.is_some() && (self.running.is_some() || self.coming.is_some()) {
            let sentence = "Changing the traffic mapping of a running schedule is not supported";
            return Err(KernelError::new(ENOTSUPP, sentence));
        }
        let schedule = Schedule::parse(options)?;
        if schedule.entries.is_empty() {
            return no("There should be at least one entry in the schedule");
        }
        self.clockid = self.clock(options.i64("clockid"), flags)?;
        if options.has("txtime-delay") && flags & TXTIME_ASSIST == 0 {
            return no("sch_taprio: txtime-delay can only be set when txtime-assist mode is enabled");
        }
        self.flags = Some(flags);
        self.txtime_delay = options.u32("txtime-delay").unwrap_or(self.txtime_delay);
        self.classes = classes.unwrap_or_else(|| self.classes.clone());
        let at_once = match flags & TXTIME_ASSIST != 0 {
            true => self.running.is_none(),
            false => schedule.base_time <= cx.now.as_ns(),
        };
        if at_once {
            (self.running, self.coming) = (Some(schedule), None);
        } else {
            self.coming = Some(schedule);
        }
        let sentence = "sch_taprio: Size table not specified, frame length estimations may be inaccurate";
        self.warning = Some(sentence.to_owned());
        Ok(())
    }
    fn dump(&self) -> Options {
        let mut options = self.classes.dump().with("clockid", self.clockid.unwrap_or(-1));
        if let Some(flags) = self.flags.filter(|&flags| flags != 0) {
            options = options.with("flags", flags);
        }
        if self.txtime_delay != 0 {
            options = options.with("txtime-delay", self.txtime_delay);
        }
        if let Some(running) = &self.running {
            options = options.with("oper", running.dump());
        }
        if let Some(coming) = &self.coming {
            options = options.with("admin", coming.dump());
        }
        options
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        None
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.bands.device = *device;
    }
    fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }
    fn forget_traffic_classes(&mut self, map: bool) {
        self.classes.forget(map);
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
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
}
