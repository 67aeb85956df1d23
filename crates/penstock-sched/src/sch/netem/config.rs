//! What `netem` is told: its options as the kernel keeps them, and what it reckons from them.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_netem.c` `netem_change`, `netem_dump`, `packet_time_ns`.
//! Differs: `seed` is dumped where it was set; of a distribution its name is kept.

use super::chance::{Correlated, Dice, Loss};
use super::dist::{self, Table};
use crate::qdisc::Device;
use penstock_model::psched::TICK_NS;
use penstock_model::{Kernel, KernelError, Options, Value};

/// `struct tc_netem_qopt`: a change sets all of them.
const NUMBERS: [&str; 6] = ["limit", "latency", "jitter", "loss", "duplicate", "gap"];
/// What a change leaves as it is where it says nothing of it, beside `corr`.
const KEPT: [&str; 6] = ["corrupt", "rate", "ecn", "slot", "seed", "distribution"];
/// What a change without them turns off.
const LOSS_MODELS: [&str; 2] = ["loss_state", "loss_gemodel"];

/// `validate_slot`.
fn check_slot(slot: &Options) -> Result<(), KernelError> {
    let number = |name: &str| slot.i64(name).unwrap_or(0);
    let negative = |names: &[&str]| names.iter().any(|name| number(name) < 0);
    let why = if negative(&["min_delay", "max_delay"]) {
        "negative slot delay"
    } else if number("min_delay") > number("max_delay") {
        "slot min delay greater than max delay"
    } else if negative(&["dist_delay", "dist_jitter"]) {
        "negative dist delay"
    } else if negative(&["packets", "bytes"]) {
        "negative slot limit"
    } else {
        return Ok(());
    };
    Err(KernelError::new(KernelError::EINVAL, why))
}

/// A time by chance.
#[derive(Clone, Copy, Default)]
pub(super) struct Spread {
    /// Its mean, ns.
    pub(super) mu: i64,
    /// How far it spreads, ns.
    pub(super) sigma: i32,
    /// None: evenly.
    pub(super) table: Option<&'static Table>,
}

/// `rate`: how long a packet takes on the line.
#[derive(Clone, Copy, Default)]
pub(super) struct Rate {
    bytes_per_s: u64,
    packet_overhead: i32,
    cell_size: u32,
    cell_overhead: i32,
}

impl Rate {
    fn parse(o: &Options) -> Rate {
        Rate {
            bytes_per_s: o.u64("rate").unwrap_or(0),
            packet_overhead: o.i64("packetoverhead").unwrap_or(0) as i32,
            cell_size: o.u32("cellsize").unwrap_or(0),
            cell_overhead: o.i64("celloverhead").unwrap_or(0) as i32,
        }
    }
    #[inline]
    pub(super) fn is_set(&self) -> bool {
        self.bytes_per_s != 0
    }
    /// `packet_time_ns`, in 32 bits where the kernel has them.
    pub(super) fn time_ns(&self, len: u32) -> i64 {
        let mut len = u64::from(len).wrapping_add(self.packet_overhead as u64);
        if let Some(mut cells) = (len as u32).checked_div(self.cell_size) {
            if len > u64::from(cells.wrapping_mul(self.cell_size)) {
                cells = cells.wrapping_add(1);
            }
            len = cells.wrapping_mul(self.cell_size.wrapping_add(self.cell_overhead as u32)).into();
        }
        (len.wrapping_mul(1_000_000_000) / self.bytes_per_s) as i64
    }
}

/// `struct tc_netem_slot`.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) min_delay: i64,
    pub(super) max_delay: i64,
    pub(super) dist_delay: i64,
    pub(super) dist_jitter: i32,
    pub(super) packets: i32,
    pub(super) bytes: i32,
}

/// All of it.
pub(super) struct Config {
    device: Device,
    /// As they are dumped.
    params: Options,
    pub(super) limit: u32,
    pub(super) delay: Spread,
    pub(super) gap: u32,
    pub(super) duplicate: u32,
    pub(super) reorder: u32,
    pub(super) corrupt: u32,
    pub(super) ecn: bool,
    pub(super) loss: Loss,
    pub(super) rate: Rate,
    pub(super) slot: Option<Slot>,
    pub(super) slot_table: Option<&'static Table>,
    /// Of delays and of slots: the table that was named is not made of a formula.
    pub(super) measured: [bool; 2],
    pub(super) dice: Dice,
    pub(super) delay_cor: Correlated,
    pub(super) loss_cor: Correlated,
    pub(super) dup_cor: Correlated,
    pub(super) reorder_cor: Correlated,
    pub(super) corrupt_cor: Correlated,
}

/// What a change begins anew beside the parameters.
pub(super) struct Anew {
    /// `slot` was given.
    pub(super) slot: bool,
}

impl Config {
    pub(super) fn new(device: &Device) -> Config {
        Config {
            device: *device,
            params: Options::new(),
            limit: 0,
            delay: Spread::default(),
            gap: 0,
            duplicate: 0,
            reorder: 0,
            corrupt: 0,
            ecn: false,
            loss: Loss::Random { loss: 0 },
            rate: Rate::default(),
            slot: None,
            slot_table: None,
            measured: [false; 2],
            dice: Dice::new(device.kernel),
            delay_cor: Correlated::default(),
            loss_cor: Correlated::default(),
            dup_cor: Correlated::default(),
            reorder_cor: Correlated::default(),
            corrupt_cor: Correlated::default(),
        }
    }
    /// The kernel.
    pub(super) fn kernel(&self) -> Kernel {
        self.device.kernel
    }
    pub(super) fn set_device(&mut self, device: &Device) {
        self.device = *device;
    }
    pub(super) fn dump(&self) -> Options {
        self.params.clone()
    }
    /// `netem_change`.
    ///
    /// # Errors
    /// EINVAL without options, and for a slot that is none.
    pub(super) fn change(&mut self, options: Option<&Options>) -> Result<Anew, KernelError> {
        let o = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        if let Some(slot) = o.nested("slot") {
            check_slot(slot)?;
        }
        self.note(o);
        let ns = |name: &str| i64::from(o.u32(name).unwrap_or(0)) * TICK_NS as i64;
        self.limit = o.u32("limit").unwrap_or(0);
        (self.delay.mu, self.delay.sigma) = (ns("latency"), ns("jitter").min(i32::MAX.into()) as i32);
        //= linux v7.2 net/sched/sch_netem.c netem_change: in 6.12 too, whose tc does not send them.
        self.delay.mu = o.i64("latency64").unwrap_or(self.delay.mu);
        if let Some(jitter) = o.i64("jitter64") {
            self.delay.sigma = jitter.unsigned_abs().min(i32::MAX as u64) as i32;
        }
        if self.device.kernel >= Kernel::V7_2 {
            self.note_delay();
        }
        (self.gap, self.duplicate) = (o.u32("gap").unwrap_or(0), o.u32("duplicate").unwrap_or(0));
        self.loss = Loss::parse(o);
        if self.gap != 0 {
            self.reorder = u32::MAX;
        }
        if let Some(corr) = o.nested("corr") {
            let new = |name: &str| Correlated::new(corr.u32(name).unwrap_or(0));
            (self.delay_cor, self.loss_cor, self.dup_cor) = (new("delay"), new("loss"), new("duplicate"));
        }
        let pair = |name: &str| {
            let pair = o.nested(name)?;
            let number = |name: &str| pair.u32(name).unwrap_or(0);
            Some((number("probability"), Correlated::new(number("correlation"))))
        };
        if let Some(pair) = pair("reorder") {
            (self.reorder, self.reorder_cor) = pair;
        }
        if let Some(pair) = pair("corrupt") {
            (self.corrupt, self.corrupt_cor) = pair;
        }
        if let Some(rate) = o.nested("rate") {
            self.rate = Rate::parse(rate);
        }
        if let Some(ecn) = o.u32("ecn") {
            self.ecn = ecn != 0;
        }
        if let Some(name) = o.str("distribution") {
            self.delay.table = dist::table(name);
            self.measured[0] = self.delay.table.is_none();
        }
        if let Some(name) = o.str("slot_distribution") {
            self.slot_table = dist::table(name);
            self.measured[1] = self.slot_table.is_none();
        }
        if let Some(seed) = o.u64("seed") {
            self.dice.seed(seed);
        }
        let slot = self.params.nested("slot").map(|slot| {
            let number = |name: &str| slot.i64(name).unwrap_or(0);
            let unless_0 = |name: &str| if number(name) == 0 { i32::MAX } else { number(name) as i32 };
            Slot {
                min_delay: number("min_delay"),
                max_delay: number("max_delay"),
                dist_delay: number("dist_delay"),
                dist_jitter: number("dist_jitter") as i32,
                packets: unless_0("packets"),
                bytes: unless_0("bytes"),
            }
        });
        let anew = Anew { slot: o.has("slot") };
        if anew.slot {
            self.slot = slot;
        }
        Ok(anew)
    }
    /// Delay and jitter are dumped in ns, and in ticks beside.
    fn note_delay(&mut self) {
        let Spread { mu, sigma, .. } = self.delay;
        for (exact, coarse, ns) in [("latency64", "latency", mu), ("jitter64", "jitter", sigma.into())] {
            self.params.set(exact, Value::I64(ns));
            let ticks = u32::try_from(ns as u64 / TICK_NS).unwrap_or(u32::MAX);
            self.params.set(coarse, Value::U32(ticks));
        }
    }
    /// Takes over what is dumped.
    fn note(&mut self, o: &Options) {
        let params = &mut self.params;
        for name in NUMBERS {
            params.set(name, Value::U32(o.u32(name).unwrap_or(0)));
        }
        if self.device.kernel >= Kernel::V6_12 {
            // The table of the distribution works with 31 bits of nanoseconds.
            let jitter = o.u32("jitter").unwrap_or(0).min((i32::MAX as u64 / TICK_NS) as u32);
            params.set("jitter", Value::U32(jitter));
        }
        for name in LOSS_MODELS {
            params.remove(name);
            if let Some(model) = o.value(name) {
                params.set(name, model.clone());
            }
        }
        if o.u32("gap").unwrap_or(0) != 0 {
            let correlation = params.nested("reorder").and_then(|r| r.u32("correlation")).unwrap_or(0);
            let always = Options::new().with("probability", u32::MAX).with("correlation", correlation);
            params.set("reorder", always.into());
        }
        for name in ["corr", "reorder"].into_iter().chain(KEPT) {
            if let Some(value) = o.value(name) {
                params.set(name, value.clone());
            }
        }
        if let Some(mut slot) = o.nested("slot").cloned() {
            let jitter = slot.i64("dist_jitter").unwrap_or(0).min(i32::MAX.into());
            slot.set("dist_jitter", Value::I64(jitter));
            let any = ["min_delay", "max_delay", "dist_jitter"].iter().any(|n| slot.i64(n).unwrap_or(0) != 0);
            params.remove("slot");
            if any {
                params.set("slot", slot.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_its_time_for_whole_cells() {
        let line = |rate, packet_overhead, cell_size, cell_overhead| Rate {
            bytes_per_s: rate,
            packet_overhead,
            cell_size,
            cell_overhead,
        };
        assert_eq!(line(1000, 0, 0, 0).time_ns(1500), 1_500_000_000);
        assert_eq!(line(1000, -100, 0, 0).time_ns(100), 0);
        // 100 and 8 bytes are three cells of 48, each with 5 more.
        assert_eq!(line(1000, 8, 48, 5).time_ns(100), 159_000_000);
        assert_eq!(line(1000, 8, 48, 0).time_ns(88), 96_000_000);
    }
}
