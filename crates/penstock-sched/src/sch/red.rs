//! `red`: random early detection in front of one inner qdisc.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_red.c`.
//! Differs: packets are not simulated yet, nor does `adaptive` move the probability as time goes by.

use super::KindSpec;
use super::bfifo::Bfifo;
use super::one_class::OneClass;
use super::unsimulated::{Params, Unsimulated};
use crate::aqm::red;
use crate::cls::{Blocks, SharedBlock};
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc};
use penstock_model::{Handle, Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "red",
    about: "drop or mark at random, more often the longer the queue is on average",
    kernels: &Kernel::ALL,
    build,
    simulated: false,
};

/// `TC_RED_ECN`: marks instead of dropping.
const ECN: u32 = 1;
/// `TC_RED_NODROP`: what cannot be marked passes.
const NODROP: u32 = 8;
/// `struct tc_red_qopt`'s numbers and the probability, as the option tables name them.
pub(super) const NUMBERS: [&str; 6] = ["min", "max", "ewma", "plog", "scell_log", "max_p"];

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let o = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
    let device = init.device;
    let class = OneClass::new(SPEC.id, init.handle, &device);
    let blocks = ["early_drop", "mark"].map(|name| o.u32(name).unwrap_or(0));
    let mut red = Red { device, limit: 0, flags: 0, parms: [0; 6], blocks, _held: Vec::new(), class };
    red.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(red)))
}

/// Its parameters.
pub struct Red {
    device: Device,
    /// Bytes.
    limit: u32,
    flags: u32,
    /// In the order of [`NUMBERS`].
    parms: [u32; 6],
    /// The blocks of `qevent early_drop` and `qevent mark`; 0: none.
    blocks: [u32; 2],
    /// The same, held so that they are there.
    _held: Vec<SharedBlock>,
    class: OneClass,
}

/// RED's numbers from a request, checked as this kernel checks them (`red_check_params`; 2.6.35 does not), and
/// as a dump gives them back.
///
/// # Errors
/// EINVAL.
pub(super) fn parms(o: &Options, kernel: Kernel) -> Result<[u32; 6], KernelError> {
    let [min, max, ewma, plog, scell_log, max_p] = NUMBERS.map(|name| o.u32(name).unwrap_or(0));
    if kernel == Kernel::V2_6_35 {
        let shown = |threshold: u32| threshold.wrapping_shl(ewma).wrapping_shr(ewma);
        return Ok([shown(min), shown(max), ewma, plog, scell_log, 0]);
    }
    let checked = red::Params::new(min, max, ewma as u8, plog as u8, scell_log as u8, max_p)
        .ok_or(KernelError::errno(KernelError::EINVAL))?;
    Ok([min, max, ewma, plog, scell_log, checked.max_p])
}

impl Params for Red {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let o = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        let kernel = self.device.kernel;
        for (name, block) in ["early_drop", "mark"].into_iter().zip(self.blocks) {
            if o.u32(name).is_some_and(|given| given != block) {
                return Err(KernelError::new(KernelError::EINVAL, "Change of blocks is not supported"));
            }
        }
        let parms = parms(o, kernel)?;
        let flags = o.u32("flags").unwrap_or(0);
        if flags & NODROP != 0 && flags & ECN == 0 {
            let why = "sch_red: nodrop mode is only meaningful with ECN";
            return Err(self.device.refusal(KernelError::EINVAL, why));
        }
        (self.parms, self.flags) = (parms, flags);
        self.limit = o.u32("limit").unwrap_or(0);
        if self.limit > 0 {
            let init = Init { device: self.device, handle: Handle::UNSPEC, parent: self.class.class() };
            self.class.fill(Node::new(&init, Box::new(Bfifo::new(&self.device, self.limit))), cx);
        }
        Ok(())
    }
    fn dump(&self) -> Options {
        let mut o = Options::new().with("limit", self.limit).with("flags", self.flags);
        for (name, value) in NUMBERS.into_iter().zip(self.parms) {
            o = o.with(name, value);
        }
        for (name, block) in ["early_drop", "mark"].into_iter().zip(self.blocks) {
            if block != 0 {
                o = o.with(name, block);
            }
        }
        o
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let zero = ["marked", "early", "pdrop", "other"];
        Some(zero.into_iter().fold(Options::new(), |o, name| o.with(name, 0u32)))
    }
    fn share_blocks(&mut self, blocks: &Blocks) {
        self._held = self.blocks.iter().filter(|&&b| b != 0).map(|&b| blocks.hold(b)).collect();
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(&self.class)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(&mut self.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};

    fn options() -> Options {
        let numbers = [15_360u32, 46_080, 4, 10, 8, 85_899_345];
        let o = Options::new().with("limit", 400_000u32).with("flags", ECN);
        NUMBERS.into_iter().zip(numbers).fold(o, |o, (name, value)| o.with(name, value))
    }
    fn red(kernel: Kernel, o: &Options, bench: &mut Bench) -> Result<Box<dyn Qdisc>, KernelError> {
        let init = Init { device: device(kernel), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, Some(o), &mut bench.cx(0))
    }

    #[test]
    fn a_change_makes_a_fifo_anew() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut q = red(kernel, &options(), &mut bench).unwrap_or_else(|e| panic!("{e}"));
            let init = Init { device: device(kernel), handle: Handle::new(2, 0), parent: Handle::new(1, 1) };
            let own = Node::new(&init, Box::new(Bfifo::new(&init.device, 1)));
            let class = Handle::new(1, 1);
            q.classes_mut().unwrap().graft(class, Some(own), &mut bench.cx(0)).unwrap();
            assert_eq!(q.classes().unwrap().leaf(class).unwrap().handle, Handle::new(2, 0));
            q.change(Some(&options()), &mut bench.cx(0)).unwrap();
            let leaf = q.classes().unwrap().leaf(class).unwrap();
            assert_eq!((leaf.handle, leaf.dump().u32("limit")), (Handle::UNSPEC, Some(400_000)));
        }
    }

    #[test]
    fn nonsense_is_refused_and_changes_nothing() {
        let mut bench = Bench::new();
        let mut q =
            red(Kernel::V6_12, &options().with("mark", 5u32), &mut bench).unwrap_or_else(|e| panic!("{e}"));
        let before = q.dump();
        let cases = [
            (options().with("flags", NODROP), "Error: sch_red: nodrop mode is only meaningful with ECN."),
            (options().with("min", 1u32 << 30), "RTNETLINK answers: Invalid argument"),
            (options().with("max", 9u32), "RTNETLINK answers: Invalid argument"),
            (options().with("mark", 6u32), "Error: Change of blocks is not supported."),
            (options().with("early_drop", 6u32), "Error: Change of blocks is not supported."),
        ];
        for (bad, said) in cases {
            assert_eq!(q.change(Some(&bad), &mut bench.cx(0)).unwrap_err().to_string(), said);
        }
        assert_eq!(q.dump(), before);
        assert_eq!(before.u32("mark"), Some(5));
        // 2.6.35 shifts the bits out and shows what is left.
        let q = red(Kernel::V2_6_35, &options().with("min", 0xf000_0001u32), &mut bench)
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(q.dump().u32("min"), Some(1));
    }
}
