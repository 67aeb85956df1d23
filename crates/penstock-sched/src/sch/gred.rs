//! `gred`: several REDs over one queue, chosen by the packet's `tc_index`.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_gred.c`. A `setup` that is refused for its flags has changed the
//! limit, as there.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::red::{NUMBERS, parms};
use super::unsimulated::{Params, Unsimulated};
use crate::qdisc::{Cx, Device, Init, Qdisc};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "gred",
    about: "several REDs over one queue, chosen by the packet's tc_index",
    kernels: &Kernel::ALL,
    build,
    simulated: false,
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
    let mut gred =
        Gred { device, limit: 0, vqs: 0, default: 0, grio: false, flags: 0, tab: Default::default() };
    if o.has("vq") {
        return Err(gred.no("virtual queue configuration can't be specified at initialization time"));
    }
    gred.limit = o.u32("limit").unwrap_or_else(|| device.tx_queue_len.wrapping_mul(device.psched_mtu()));
    gred.set_up(o)?;
    Ok(Box::new(Unsimulated::new(gred)))
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
}

/// Its parameters.
#[derive(Debug)]
pub struct Gred {
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
        Ok(())
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
        if kernel == Kernel::V6_12 {
            limit = limit.min(self.limit);
        }
        let own = self.tab[index as usize].as_ref().map_or(self.flags & VQ_FLAGS, |vq| vq.flags);
        self.tab[index as usize] = Some(Vq { limit, prio, flags: flags.unwrap_or(own), parms });
        Ok(())
    }
}

impl Params for Gred {
    fn kind(&self) -> &'static str {
        SPEC.id
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
    fn dump(&self) -> Options {
        let zero =
            ["qave", "backlog", "forced_drop", "prob_drop", "pdrop", "other", "forced_mark", "prob_mark"];
        let list = self.tab.iter().enumerate().filter_map(|(index, vq)| {
            let vq = vq.as_ref()?;
            let mut o = Options::new()
                .with("vq", index as u32)
                .with("prio", vq.prio)
                .with("limit", vq.limit)
                .with("flags", vq.flags)
                .with("packets", 0u32)
                .with("bytes", 0u32);
            for (name, value) in NUMBERS.into_iter().zip(vq.parms) {
                o = o.with(name, value);
            }
            Some(zero.into_iter().fold(o, |o, name| o.with(name, 0u32)))
        });
        Options::new()
            .with("vqs", self.vqs)
            .with("default", self.default)
            .with("grio", u32::from(self.grio))
            .with("flags", self.flags)
            .with("limit", self.limit)
            .with("list", list.collect::<Vec<_>>())
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
