//! What one class of cbq is: its parameters, its estimator, its place among the others.
//!
//! Follows: linux v6.2 and v2.6.35 net/sched/sch_cbq.c `struct cbq_class`, `cbq_set_lss`, `cbq_dump_attr`.

use super::strategy::Strategy;
use super::{LINK, MAXPRIO, NIL, PASTPERFECT};
use crate::charge::Count;
use crate::psched::Clock;
use crate::qdisc::Device;
use crate::rates::RateTable;
use penstock_model::{Kernel, KernelError, Options, Time};

use crate::estimator::Estimator;
use crate::node::Door;

/// `TC_CBQ_DEF_EWMA`.
const EWMA: u32 = 5;
/// `minidle` where none was given.
const NO_MINIDLE: i64 = -0x7fff_ffff;

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
pub(super) const BOUNDED: u32 = 1;
/// `TCF_CBQ_LSS_ISOLATED`.
pub(super) const ISOLATED: u32 = 2;

/// A rate with its table (`struct qdisc_rate_table`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rate {
    /// Bytes per second.
    pub(super) rate: u32,
    cell_log: u32,
    mpu: u32,
    overhead: u32,
    linklayer: u32,
    table: RateTable,
}

impl Rate {
    /// `qdisc_get_rtab`. `None` where no rate was given.
    pub(super) fn parse(options: &Options, device: &Device) -> Result<Option<Rate>, KernelError> {
        let Some(rate) = options.u32("rate") else { return Ok(None) };
        let number = |name: &str| options.u32(name).unwrap_or(0);
        let cell_log = number("cell_log");
        if rate == 0 || cell_log == 0 || (cell_log >= 32 && device.kernel >= Kernel::V6_12) {
            return Err(device.refusal(KernelError::EINVAL, "Invalid rate table parameters for searching"));
        }
        let (mpu, overhead, linklayer) =
            (number("mpu") & 0xffff, number("overhead") & 0xffff, number("linklayer"));
        let clock = Clock::of(device);
        let table =
            clock.table(rate, overhead as u16, mpu as u16, linklayer as u8 & 0xf, (cell_log & 31) as u8);
        Ok(Some(Rate { rate, cell_log, mpu, overhead, linklayer, table }))
    }
    /// `L2T`: how long `len` bytes take, ticks.
    #[inline]
    pub(super) fn l2t(&self, len: u32) -> i64 {
        i64::from(self.table.l2t(len))
    }
    /// As the kernel dumps it.
    pub(super) fn dump(&self) -> Options {
        Options::new()
            .with("rate", self.rate)
            .with("cell_log", self.cell_log)
            .with("mpu", self.mpu)
            .with("overhead", self.overhead)
            .with("linklayer", self.linklayer)
    }
}

/// One class; spans and moments in ticks.
pub(super) struct CbqClass {
    // Parameters
    /// `tparent`; [`NIL`] for the link.
    pub(super) parent: u32,
    /// From 0, the first to send.
    pub(super) priority: usize,
    /// The priority while it is penalized (`lowprio`).
    pub(super) priority2: usize,
    pub(super) rate: Rate,
    /// Bytes a turn, before the weight.
    pub(super) allot: i64,
    pub(super) weight: i64,
    /// Bytes a turn.
    pub(super) quantum: i64,
    /// Whom it borrows from: its parent, or [`NIL`] where it is bounded.
    pub(super) borrow: u32,
    /// Whose estimator also counts its packets: its parent's, or [`NIL`] where it is isolated.
    pub(super) share: u32,
    pub(super) ewma_log: u32,
    pub(super) avpkt: u32,
    pub(super) maxidle: i64,
    /// Below 0.
    pub(super) minidle: i64,
    pub(super) offtime: i64,
    pub(super) strategy: Strategy,
    /// How much longer a delayed class waits.
    pub(super) penalty: u32,
    /// The class whose unclassified packets `defmap` is about; [`NIL`] for none.
    pub(super) split: u32,
    pub(super) defmap: u32,
    /// As a split node: where packets of each priority go.
    pub(super) defaults: [u32; 16],
    // Variables
    /// 0 for leaves, one above the highest child for others.
    pub(super) level: u32,
    /// The priority it has now.
    pub(super) cpriority: usize,
    /// It has been told to wait.
    pub(super) delayed: bool,
    /// End of its last packet.
    pub(super) last: i64,
    /// It is over its limit until then; [`PASTPERFECT`] where it is under.
    pub(super) undertime: i64,
    /// The average, scaled by 2^ewma_log.
    pub(super) avgidle: i64,
    /// What is left of its turn, bytes.
    pub(super) deficit: i64,
    /// Delayed until then.
    pub(super) penalized: i64,
    /// The next in the ring of its priority; [`NIL`] where it is in none.
    pub(super) next_alive: u32,
    // Counters
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) drops: u32,
    pub(super) overlimits: u32,
    pub(super) borrows: u32,
    pub(super) overactions: u32,
    /// For the account: the doors of the qdiscs that stood in it before, with what left them and will never be counted, what
    /// classes had sent that shared with it and do not any more, and what it had sent before it shared itself.
    pub(super) doors: Door,
    pub(super) forgotten: Count,
    pub(super) gone: Count,
    pub(super) before: Count,
}

impl CbqClass {
    fn new(parent: u32, rate: Rate, allot: u32) -> CbqClass {
        CbqClass {
            parent,
            priority: 0,
            priority2: 0,
            allot: i64::from(allot),
            weight: i64::from(rate.rate),
            quantum: i64::from(allot),
            rate,
            borrow: parent,
            share: parent,
            ewma_log: 0,
            avpkt: 0,
            maxidle: 0,
            minidle: NO_MINIDLE,
            offtime: 0,
            strategy: Strategy::Classic,
            penalty: 0,
            split: NIL,
            defmap: 0,
            defaults: [NIL; 16],
            level: 0,
            cpriority: 0,
            delayed: false,
            last: 0,
            undertime: PASTPERFECT,
            avgidle: 0,
            deficit: 0,
            penalized: 0,
            next_alive: NIL,
            bytes: 0,
            packets: 0,
            drops: 0,
            overlimits: 0,
            borrows: 0,
            overactions: 0,
            doors: Door::default(),
            forgotten: Count::default(),
            gone: Count::default(),
            before: Count::default(),
        }
    }
    /// The link, of a device that sends `mtu` bytes at once.
    pub(super) fn link(rate: Rate, mtu: u32) -> CbqClass {
        CbqClass {
            priority: MAXPRIO - 1,
            priority2: MAXPRIO - 1,
            cpriority: MAXPRIO - 1,
            ewma_log: EWMA,
            avpkt: mtu / 2,
            ..CbqClass::new(NIL, rate, mtu)
        }
    }
    /// A class below `parent`, which allots `allot` bytes. One right below the link is isolated until it is told otherwise.
    pub(super) fn below(parent: u32, allot: i64, rate: Rate) -> CbqClass {
        let share = if parent == LINK { NIL } else { parent };
        CbqClass { share, allot, quantum: allot, ..CbqClass::new(parent, rate, 0) }
    }
    /// `cbq_set_lss`.
    pub(super) fn set_lss(&mut self, lss: Option<&Options>, clock: Clock) {
        let Some(lss) = lss else { return };
        let number = |name: &str| lss.u32(name).unwrap_or(0);
        let given = |what: u32| number("change") & what != 0;
        if given(change::FLAGS) {
            self.share = if number("flags") & ISOLATED != 0 { NIL } else { self.parent };
            self.borrow = if number("flags") & BOUNDED != 0 { NIL } else { self.parent };
        }
        if given(change::EWMA) {
            self.ewma_log = number("ewma") & 0xff;
        }
        if given(change::AVPKT) {
            self.avpkt = number("avpkt");
        }
        if given(change::MINIDLE) {
            self.minidle = -i64::from(number("minidle"));
        }
        if given(change::MAXIDLE) {
            self.maxidle = i64::from(clock.ticks_of_tc(number("maxidle")));
            self.avgidle = self.maxidle;
        }
        if given(change::OFFTIME) {
            self.offtime = i64::from(clock.ticks_of_tc(number("offtime")));
        }
    }
    /// What is given but `priority`, 0 leaving what was: the part of `cbq_set_wrr` that is the class's own.
    pub(super) fn set_wrr(&mut self, wrr: &Options) {
        let number = |name: &str| wrr.u32(name).filter(|&n| n != 0);
        self.allot = number("allot").map_or(self.allot, i64::from);
        self.weight = number("weight").map_or(self.weight, i64::from);
        if let Some(priority) = number("priority") {
            self.priority = priority as usize - 1;
            self.cpriority = self.priority;
            if self.priority >= self.priority2 {
                self.priority2 = MAXPRIO - 1;
            }
        }
    }
    /// What a reset leaves of it.
    pub(super) fn reset(&mut self) {
        self.next_alive = NIL;
        self.undertime = PASTPERFECT;
        self.avgidle = self.maxidle;
        self.deficit = self.quantum;
        self.cpriority = self.priority;
    }
    /// What is left of `-avgidle` after one step of the average: how long a class must be idle to come to 0.
    #[inline]
    pub(super) fn to_forgive(&self) -> i64 {
        let over = -self.avgidle;
        over - shift_right(over, self.ewma_log)
    }
    /// A packet of `len` bytes was sent; before it counts the estimator `est` has the looks that are due.
    #[inline]
    pub(super) fn count(&mut self, len: u32, now: Time, est: &mut Option<Box<Estimator>>) {
        if let Some(est) = est
            && est.is_due(now)
        {
            est.advance(now, self.bytes, self.packets);
        }
        self.bytes += u64::from(len);
        self.packets += 1;
    }
    /// `struct tc_cbq_xstats`, with the time until `undertime` as the last show of the classes computed it.
    pub(super) fn xstats(&self, undertime: i64) -> Options {
        Options::new()
            .with("borrows", self.borrows)
            .with("overactions", self.overactions)
            .with("avgidle", i64::from(self.avgidle as i32))
            .with("undertime", i64::from(undertime as i32))
    }
}

/// `value >> log` as an x86-64 does it: the count is taken modulo 64.
#[inline]
pub(super) fn shift_right(value: i64, log: u32) -> i64 {
    value >> (log & 63)
}
