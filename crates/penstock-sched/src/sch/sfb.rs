//! `sfb`: stochastic fair blue, marking probabilities kept in bins that flows share by chance.
//!
//! Follows: linux v6.12 `net/sched/sch_sfb.c`.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::one_class::OneClass;
use super::pfifo::Pfifo;
use super::unsimulated::{Params, Unsimulated};
use crate::jiffies;
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc};
use penstock_model::{Handle, Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "sfb",
    about: "marking probabilities in bins that flows share by chance",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
};

/// `struct tc_sfb_qopt`'s numbers that are kept as they come.
const NUMBERS: [&str; 6] = ["max", "target", "increment", "decrement", "penalty_rate", "penalty_burst"];

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let device = init.device;
    let class = OneClass::new(SPEC.id, init.handle, &device).hidden_with_filters();
    let mut sfb = Sfb { device, limit: 0, rehash: 0, db: 0, numbers: [0; 6], class };
    sfb.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(sfb)))
}

/// Its parameters.
pub struct Sfb {
    device: Device,
    /// Packets.
    limit: u32,
    /// Jiffies between one hash and the next.
    rehash: u64,
    /// Jiffies for which the next hash is prepared.
    db: u64,
    /// In the order of [`NUMBERS`].
    numbers: [u32; 6],
    class: OneClass,
}

impl Params for Sfb {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        // `sfb_default_ops`, where tc sends nothing.
        let (default, hz) = ([25, 20, 66, 11, 10, 20], self.device.hz);
        let number = |name: &str, default: u32| options.map_or(default, |o| o.u32(name).unwrap_or(0));
        for ((name, default), kept) in NUMBERS.into_iter().zip(default).zip(&mut self.numbers) {
            *kept = number(name, default);
        }
        self.rehash = jiffies::from_ms(number("rehash", 600_000), hz);
        self.db = jiffies::from_ms(number("db", 60_000), hz);
        self.limit = match number("limit", 0) {
            0 => self.device.tx_queue_len,
            limit => limit,
        };
        let init = Init { device: self.device, handle: Handle::UNSPEC, parent: self.class.class() };
        self.class.fill(Node::new(&init, Box::new(Pfifo::new(&self.device, self.limit))), cx);
        Ok(())
    }
    fn dump(&self) -> Options {
        let hz = self.device.hz;
        let o = Options::new()
            .with("limit", self.limit)
            .with("rehash", jiffies::to_ms(self.rehash, hz))
            .with("db", jiffies::to_ms(self.db, hz));
        NUMBERS.into_iter().zip(self.numbers).fold(o, |o, (name, value)| o.with(name, value))
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let zero = [
            "earlydrop",
            "penaltydrop",
            "bucketdrop",
            "queuedrop",
            "childdrop",
            "marked",
            "maxqlen",
            "maxprob",
            "avgprob",
        ];
        Some(zero.into_iter().fold(Options::new(), |o, name| o.with(name, 0u32)))
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

    #[test]
    fn no_limit_is_txqueuelen_and_the_fifo_has_it() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut q = build(&init, None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        let class = Handle::new(1, 1);
        let seen = |q: &dyn Qdisc| {
            let fifo = q.classes().unwrap().leaf(class).unwrap();
            (q.dump().u32("limit"), fifo.kind(), fifo.dump().u32("limit"), q.dump().u32("max"))
        };
        assert_eq!(seen(&*q), (Some(1000), "pfifo", Some(1000), Some(25)));
        q.change(Some(&Options::new().with("limit", 7u32)), &mut bench.cx(0)).unwrap();
        assert_eq!(seen(&*q), (Some(7), "pfifo", Some(7), Some(0)));
        let errno = q.classes_mut().unwrap().delete_class(class, &mut bench.cx(0)).map_err(|e| e.errno);
        assert_eq!(errno, Err(38));
    }
}
