//! `mqprio`: priorities to traffic classes, traffic classes to ranges of transmit queues.
//!
//! Follows: linux v6.12 `net/sched/sch_mqprio.c`, `sch_mqprio_lib.c`. How packets are carried: [`super::queues`].
//! Differs: no device has hardware offload, so modes and shapers are refused. A traffic class shows the packets that wait in its queues: Linux
//! adds those of the classes that were shown before.

use super::KindSpec;
use super::bands::Bands;
use super::queues::{QueueKind, Queues, sum};
use crate::qdisc::{Cx, Device, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "mqprio",
    about: "traffic classes by priority, each with a range of transmit queues",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Queues,
        sorting: Sorting::Own,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: true,
    },
};

/// `TC_MAX_QUEUE`.
const CLASSES_MAX: usize = 16;
/// `TC_FP_EXPRESS`: no traffic class is preemptible, which is for devices that can.
pub const EXPRESS: u8 = 1;
/// `TC_H_MIN_PRIORITY`: minor of the class that stands for traffic class 0.
const MIN_PRIORITY: u16 = 0xffe0;

/// How priorities and queues belong together: `struct tc_mqprio_qopt` as the device keeps it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TrafficClasses {
    /// Traffic class by priority.
    pub map: [u8; 16],
    /// Each traffic class's queues: how many, from which.
    pub queues: Vec<(u16, u16)>,
}

impl TrafficClasses {
    /// `mqprio_validate_qopt`. `counts`: the ranges are looked at; `overlap`: they may overlap.
    ///
    /// # Errors
    /// The kernel's sentences.
    pub fn parse(
        options: &Options,
        device: &Device,
        counts: bool,
        overlap: bool,
    ) -> Result<TrafficClasses, KernelError> {
        let no = |sentence: &str| Err(KernelError::new(KernelError::EINVAL, sentence));
        let number = options.u32("num_tc").unwrap_or(0) as usize;
        if number > CLASSES_MAX {
            return no("Number of traffic classes is outside valid range");
        }
        let mut map = [0; 16];
        for (to, from) in map.iter_mut().zip(options.bytes("map").unwrap_or(&[])) {
            *to = *from;
        }
        if map.iter().any(|&class| usize::from(class) >= number) {
            return no("Invalid traffic class in priority to traffic class mapping");
        }
        let given = options.list("queues");
        let range = |class: usize| {
            let range = given.get(class);
            let number = |name: &str| range.and_then(|r| r.u32(name)).unwrap_or(0) as u16;
            (number("count"), number("offset"))
        };
        let queues: Vec<(u16, u16)> = (0..number).map(range).collect();
        if counts {
            check_ranges(&queues, device.tx_queues, overlap)?;
        }
        Ok(TrafficClasses { map, queues })
    }
    /// None is left; `map`: nor which priority belongs to which.
    pub fn forget(&mut self, map: bool) {
        self.queues.clear();
        if map {
            self.map = [0; 16];
        }
    }
    /// The queues of the class that a priority belongs to, the first and how many (`skb_tx_hash`).
    pub fn queues_of(&self, priority: u32) -> Option<(u16, u16)> {
        if self.queues.is_empty() {
            return None;
        }
        let (count, offset) =
            self.queues.get(usize::from(self.map[priority as usize & 15])).copied().unwrap_or((0, 0));
        Some((offset, count))
    }
    /// As both kinds dump it.
    pub fn dump(&self) -> Options {
        let range =
            |&(count, offset): &(u16, u16)| Options::new().with("count", count).with("offset", offset);
        Options::new()
            .with("num_tc", self.queues.len() as u32)
            .with("map", self.map.to_vec())
            .with("queues", self.queues.iter().map(range).collect::<Vec<_>>())
    }
    /// The traffic class a queue belongs to: `netdev_txq_to_tc`.
    fn of_queue(&self, queue: usize) -> Option<usize> {
        let fits = |&(count, offset): &(u16, u16)| {
            (usize::from(offset)..usize::from(offset) + usize::from(count)).contains(&queue)
        };
        if self.queues.is_empty() { Some(0) } else { self.queues.iter().position(fits) }
    }
}

/// `mqprio_validate_queue_counts`.
fn check_ranges(queues: &[(u16, u16)], available: u32, overlap: bool) -> Result<(), KernelError> {
    let no = |sentence: String| Err(KernelError::new(KernelError::EINVAL, sentence));
    for (i, &(count, offset)) in queues.iter().enumerate() {
        let (count, offset) = (u32::from(count), u32::from(offset));
        if count == 0 {
            return no(format!("sch_mqprio_lib: No queues for TC {i}"));
        }
        if offset >= available || offset + count > available {
            return no(format!(
                "sch_mqprio_lib: Queues {count}:{offset} for TC {i} exceed the {available} TX queues available"
            ));
        }
        if overlap {
            continue;
        }
        for (j, &(other, from)) in queues.iter().enumerate().skip(i + 1) {
            let (other, from) = (u32::from(other), u32::from(from));
            if offset.max(from) < (offset + count).min(from + other) {
                return no(format!(
                    "sch_mqprio_lib: TC {i} queues {count}@{offset} overlap with TC {j} queues {other}@{from}"
                ));
            }
        }
    }
    Ok(())
}

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let bare = KernelError::errno;
    if init.parent != Handle::ROOT || !init.device.is_multiqueue() {
        return Err(bare(KernelError::EOPNOTSUPP));
    }
    if init.device.tx_queues >= u32::from(MIN_PRIORITY) {
        return Err(bare(KernelError::ENOMEM));
    }
    let options = options.ok_or(bare(KernelError::EINVAL))?;
    let hw = options.u32("hw").unwrap_or(0) != 0;
    let classes = TrafficClasses::parse(options, &init.device, !hw, false)?;
    let no = |sentence: &str| Err(KernelError::new(KernelError::EINVAL, sentence));
    if hw {
        return no("Device does not support hardware offload");
    }
    if ["mode", "shaper", "min_rate", "max_rate", "fp"].into_iter().any(|name| options.has(name)) {
        return no("mqprio TCA_OPTIONS can only contain netlink attributes in hardware mode");
    }
    Ok(Box::new(Queues::new(init, Mqprio { classes })))
}

/// What it sets of the device.
struct Mqprio {
    classes: TrafficClasses,
}

impl QueueKind for Mqprio {
    const ID: &'static str = SPEC.id;
    fn dump(&self) -> Options {
        self.classes.dump().with("hw", 0u32).with("fp", vec![EXPRESS; CLASSES_MAX])
    }
    fn queues_of(&self, priority: u32) -> Option<(u16, u16)> {
        self.classes.queues_of(priority)
    }
    fn forget(&mut self, map: bool) {
        self.classes.forget(map);
    }
    fn parent_of(&self, bands: &Bands, band: usize) -> Handle {
        let id = |class: usize| Handle::new(bands.handle.major(), MIN_PRIORITY + class as u16);
        self.classes.of_queue(band).map_or(Handle::UNSPEC, id)
    }
    fn has_more(&self, classid: Handle) -> bool {
        let class = classid.minor().checked_sub(MIN_PRIORITY);
        class.is_some_and(|class| usize::from(class) < self.classes.queues.len())
    }
    fn walk_before(&self, bands: &Bands, visit: &mut dyn FnMut(ClassDump)) {
        for (class, &(count, offset)) in (0..).zip(&self.classes.queues) {
            let (first, count) = (usize::from(offset), usize::from(count));
            visit(ClassDump {
                kind: SPEC.id,
                classid: Handle::new(bands.handle.major(), MIN_PRIORITY + class),
                parent: Handle::ROOT,
                leaf: None,
                options: Options::new(),
                counters: Counters::All,
                stats: sum(&bands.nodes[first..first + count]),
                xstats: None,
            });
        }
    }
}
