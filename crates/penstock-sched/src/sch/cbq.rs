//! `cbq`: class based queueing, a hierarchy of classes whose idle time is measured. Removed from Linux 6.3.
//!
//! Follows: linux v6.1 (the last long-term kernel that had it) and v2.6.35 `net/sched/sch_cbq.c`, configuration only.
//! Differs: packets are not carried yet; both profiles have it, although Linux 6.12 has not.

use super::KindSpec;
use super::hashed::{ClassChange, Hashed, HashedKind};
use super::unsimulated::Unsimulated;
use crate::qdisc::{Cx, Device, Init, Qdisc};
use penstock_model::{Handle, Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "cbq",
    about: "class based queueing: rates kept by the idle time between packets, classes borrow from above",
    kernels: &Kernel::ALL,
    build,
    simulated: false,
};

/// `TC_CBQ_MAXPRIO`: also the priority of a class that never sends of itself.
const MAXPRIO: u32 = 8;
/// `TC_CBQ_DEF_EWMA`.
const EWMA: u32 = 5;
/// `minidle` where none was given, as it is dumped.
const NO_MINIDLE: u32 = 0x7fff_ffff;

/// `TCF_CBQ_LSS_*`: what of a link-sharing option counts.
mod change {
    pub const FLAGS: u32 = 1;
    pub const EWMA: u32 = 2;
    pub const MAXIDLE: u32 = 4;
    pub const MINIDLE: u32 = 8;
    pub const OFFTIME: u32 = 16;
    pub const AVPKT: u32 = 32;
}
/// `TCF_CBQ_LSS_BOUNDED`.
const BOUNDED: u32 = 1;
/// `TCF_CBQ_LSS_ISOLATED`.
const ISOLATED: u32 = 2;

/// A rate with its table's parameters (`struct tc_ratespec`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rate {
    rate: u32,
    cell_log: u32,
    mpu: u32,
    overhead: u32,
    linklayer: u32,
}

impl Rate {
    /// `qdisc_get_rtab`. `None` where no rate was given.
    fn parse(options: &Options, device: &Device) -> Result<Option<Rate>, KernelError> {
        let Some(rate) = options.u32("rate") else { return Ok(None) };
        let number = |name: &str| options.u32(name).unwrap_or(0);
        let cell_log = number("cell_log");
        if rate == 0 || cell_log == 0 || (cell_log >= 32 && device.kernel == Kernel::V6_12) {
            return Err(device.refusal(KernelError::EINVAL, "Invalid rate table parameters for searching"));
        }
        let (mpu, overhead) = (number("mpu") & 0xffff, number("overhead") & 0xffff);
        Ok(Some(Rate { rate, cell_log, mpu, overhead, linklayer: number("linklayer") }))
    }
}

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let device = init.device;
    let no = |sentence: &str| Err(device.refusal(KernelError::EINVAL, sentence));
    let Some(options) = options else { return no("CBQ options are required for this operation") };
    let Some(rate) = Rate::parse(options, &device)? else {
        return no("Rate specification missing or incomplete");
    };
    let mut q = Hashed::new(init, Cbq { generated: 0 });
    let allot = device.psched_mtu();
    let mut link = CbqClass {
        parent: None,
        level: 0,
        rate,
        priority: MAXPRIO - 1,
        allot,
        weight: rate.rate,
        bounded: true,
        isolated: true,
        ewma: EWMA,
        avpkt: allot / 2,
        maxidle: 0,
        avgidle: 0,
        minidle: NO_MINIDLE,
        offtime: 0,
        split: None,
        defmap: 0,
    };
    link.set_lss(options.nested("lss"));
    q.add_class(init.handle, link, false);
    Ok(Box::new(Unsimulated::new(q)))
}

/// What the qdisc has.
pub struct Cbq {
    /// The last id the kernel chose, without its uppermost bit (`hgenerator`).
    generated: u16,
}

/// What cbq has of a class; times in ticks.
pub struct CbqClass {
    /// `None` for the qdisc's own class, the link.
    parent: Option<u32>,
    level: u32,
    rate: Rate,
    /// From 0.
    priority: u32,
    allot: u32,
    weight: u32,
    /// Borrows from nobody.
    bounded: bool,
    /// Lends to nobody.
    isolated: bool,
    ewma: u32,
    avpkt: u32,
    maxidle: u32,
    avgidle: u32,
    minidle: u32,
    offtime: u32,
    /// The class whose unclassified packets `defmap` is about.
    split: Option<u32>,
    defmap: u32,
}

impl CbqClass {
    /// `cbq_set_lss`.
    fn set_lss(&mut self, lss: Option<&Options>) {
        let Some(lss) = lss else { return };
        let number = |name: &str| lss.u32(name).unwrap_or(0);
        let given = |what: u32| number("change") & what != 0;
        if given(change::FLAGS) {
            self.isolated = self.parent.is_none() || number("flags") & ISOLATED != 0;
            self.bounded = self.parent.is_none() || number("flags") & BOUNDED != 0;
        }
        if given(change::EWMA) {
            self.ewma = number("ewma") & 0xff;
        }
        if given(change::AVPKT) {
            self.avpkt = number("avpkt");
        }
        if given(change::MINIDLE) {
            self.minidle = number("minidle");
        }
        if given(change::MAXIDLE) {
            (self.maxidle, self.avgidle) = (number("maxidle"), number("maxidle"));
        }
        if given(change::OFFTIME) {
            self.offtime = number("offtime");
        }
    }
    /// `cbq_set_wrr`: 0 leaves what was.
    fn set_wrr(&mut self, wrr: Option<&Options>) {
        let Some(wrr) = wrr else { return };
        let number = |name: &str| wrr.u32(name).filter(|&n| n != 0);
        self.allot = number("allot").unwrap_or(self.allot);
        self.weight = number("weight").unwrap_or(self.weight);
        self.priority = number("priority").map_or(self.priority, |p| p - 1);
    }
}

/// `cbq_change_defmap`.
fn set_split(q: &mut Hashed<Cbq>, class: u32, fopt: Option<&Options>) {
    let Some(fopt) = fopt else { return };
    let number = |name: &str| fopt.u32(name).unwrap_or(0);
    let (def, mask) = (number("defmap"), number("defchange"));
    let before = q.classes[class].own.split;
    let wanted = match number("split") {
        0 => before.map(|s| q.classes[s].classid),
        id => Some(Handle(id)),
    };
    let Some(wanted) = wanted else { return };
    let mut split = before.filter(|&s| q.classes[s].classid == wanted);
    let mut above = q.classes[class].own.parent;
    while let (None, Some(at)) = (split, above) {
        split = Some(at).filter(|&at| q.classes[at].classid == wanted);
        above = q.classes[at].own.parent;
    }
    if split.is_none() {
        return;
    }
    let own = &mut q.classes[class].own;
    own.defmap = if own.split == split { (own.defmap & !mask) | (def & mask) } else { def & mask };
    own.split = split;
}

/// `cbq_adjust_levels` after a class came in below `class`: levels only rise.
fn raise_levels(q: &mut Hashed<Cbq>, mut class: Option<u32>) {
    let mut least = 1;
    while let Some(at) = class.filter(|&at| q.classes[at].own.level < least) {
        q.classes[at].own.level = least;
        least += 1;
        class = q.classes[at].own.parent;
    }
}

impl HashedKind for Cbq {
    type Class = CbqClass;
    const ID: &'static str = "cbq";

    /// There is no such operation.
    fn change(q: &mut Hashed<Cbq>, _: Option<&Options>) -> Result<(), KernelError> {
        Err(q.refuse(KernelError::EINVAL, "Change operation not supported by specified qdisc"))
    }
    fn dump(q: &Hashed<Cbq>) -> Options {
        dump(q, LINK)
    }
    fn xstats(q: &Hashed<Cbq>) -> Option<Options> {
        Some(xstats(&q.classes[LINK].own))
    }
    fn change_class(q: &mut Hashed<Cbq>, change: ClassChange<'_>) -> Result<Handle, KernelError> {
        let einval = |q: &Hashed<Cbq>, sentence: &str| Err(q.refuse(KernelError::EINVAL, sentence));
        let Some(options) = change.options else {
            return einval(q, "CBQ options are required for this operation");
        };
        let (lss, wrr) = (options.nested("lss"), options.nested("wrr"));
        if let Some(class) = change.class {
            if change.parent != Handle::UNSPEC {
                match q.classes[class].own.parent {
                    Some(parent) if q.classes[parent].classid != change.parent => {
                        return einval(q, "Invalid parent id");
                    }
                    None if change.parent != Handle::ROOT => return einval(q, "Parent must be root"),
                    _ => {}
                }
            }
            let rate = Rate::parse(options, &q.device)?;
            let own = &mut q.classes[class].own;
            own.rate = rate.unwrap_or(own.rate);
            own.set_lss(lss);
            own.set_wrr(wrr);
            set_split(q, class, options.nested("fopt"));
            return Ok(q.classes[class].classid);
        }
        if change.parent == Handle::ROOT {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        let (true, true, true) = (wrr.is_some(), lss.is_some(), options.has("rate")) else {
            let sentence = "One of the following attributes MUST be specified: WRR, rate or link sharing";
            return einval(q, sentence);
        };
        let rate = Rate::parse(options, &q.device)?.expect("a rate was given");
        let classid = choose_id(q, change.classid)?;
        let parent = match change.parent {
            Handle::UNSPEC => LINK,
            parent => match q.classes.find(parent) {
                Some(parent) => parent,
                None => return einval(q, "Failed to find parentid"),
            },
        };
        let (above, link) = (&q.classes[parent].own, &q.classes[LINK].own);
        let mut own = CbqClass {
            parent: Some(parent),
            level: 0,
            rate,
            priority: 0,
            allot: above.allot,
            weight: rate.rate,
            bounded: false,
            isolated: parent == LINK,
            ewma: 0,
            avpkt: 0,
            maxidle: 0,
            avgidle: 0,
            minidle: NO_MINIDLE,
            offtime: 0,
            split: None,
            defmap: 0,
        };
        own.set_lss(lss);
        own.set_wrr(wrr);
        let or = |value: u32, default: u32| if value == 0 { default } else { value };
        own.ewma = or(own.ewma, link.ewma);
        own.maxidle = or(own.maxidle, link.maxidle);
        own.avpkt = or(own.avpkt, link.avpkt);
        let class = q.add_class(classid, own, true);
        raise_levels(q, Some(parent));
        set_split(q, class, options.nested("fopt"));
        Ok(classid)
    }
    fn may_delete(q: &Hashed<Cbq>, class: u32, bound: bool) -> Result<(), KernelError> {
        let has_children = q.classes.iter().any(|(_, c)| c.own.parent == Some(class));
        if bound || has_children || class == LINK {
            return Err(KernelError::errno(KernelError::EBUSY));
        }
        Ok(())
    }
    /// `cbq_adjust_levels`: one that had children stays on level 1.
    fn deleted(q: &mut Hashed<Cbq>, own: CbqClass) {
        let mut class = own.parent;
        while let Some(at) = class {
            let children = q.classes.iter().filter(|(_, c)| c.own.parent == Some(at));
            let level = children.map(|(_, c)| c.own.level).max().unwrap_or(0) + 1;
            q.classes[at].own.level = level;
            class = q.classes[at].own.parent;
        }
    }
    fn may_bind(q: &Hashed<Cbq>, parent: Option<u32>, class: u32) -> bool {
        parent.is_none_or(|parent| q.classes[parent].own.level > q.classes[class].own.level)
    }
    fn dump_class(q: &Hashed<Cbq>, class: u32) -> (Handle, Options, Option<Options>) {
        let own = &q.classes[class].own;
        let parent = own.parent.map_or(Handle::ROOT, |p| q.classes[p].classid);
        (parent, dump(q, class), Some(xstats(own)))
    }
}

/// The number of the qdisc's own class: it is the first.
const LINK: u32 = 0;

/// The id asked for, or one the kernel makes.
fn choose_id(q: &mut Hashed<Cbq>, asked: Handle) -> Result<Handle, KernelError> {
    if asked != Handle::UNSPEC {
        if asked.qdisc() != q.handle {
            return Err(q.refuse(KernelError::EINVAL, "Specified class not found"));
        }
        return Ok(asked);
    }
    for _ in 0..0x8000 {
        q.own.generated = if q.own.generated >= 0x7fff { 1 } else { q.own.generated + 1 };
        let id = Handle::new(q.handle.major(), 0x8000 | q.own.generated);
        if q.classes.find(id).is_none() {
            return Ok(id);
        }
    }
    // ENOSR: out of streams.
    Err(q.refuse(63, "Unable to generate classid"))
}

fn dump(q: &Hashed<Cbq>, class: u32) -> Options {
    let own = &q.classes[class].own;
    let flags = (u32::from(own.bounded) * BOUNDED) | (u32::from(own.isolated) * ISOLATED);
    let lss = Options::new()
        .with("flags", flags)
        .with("ewma", own.ewma)
        .with("level", own.level)
        .with("avpkt", own.avpkt)
        .with("maxidle", own.maxidle)
        .with("minidle", own.minidle)
        .with("offtime", own.offtime);
    let wrr = Options::new()
        .with("allot", own.allot)
        .with("priority", own.priority + 1)
        .with("cpriority", own.priority + 1)
        .with("weight", own.weight);
    let mut options = Options::new()
        .with("rate", own.rate.rate)
        .with("cell_log", own.rate.cell_log)
        .with("mpu", own.rate.mpu)
        .with("overhead", own.rate.overhead)
        .with("linklayer", own.rate.linklayer)
        .with("lss", lss)
        .with("wrr", wrr);
    if own.split.is_some() || own.defmap != 0 {
        let split = own.split.map_or(0, |s| q.classes[s].classid.0);
        options = options.with("fopt", Options::new().with("split", split).with("defmap", own.defmap));
    }
    options
}

fn xstats(own: &CbqClass) -> Options {
    Options::new()
        .with("borrows", 0u32)
        .with("overactions", 0u32)
        .with("avgidle", i64::from(own.avgidle as i32))
        .with("undertime", 0i64)
}
