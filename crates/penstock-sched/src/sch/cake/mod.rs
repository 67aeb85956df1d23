//! `cake`: shaper, flow queues, fairness between hosts and priority tins in one.
//!
//! Follows: linux v6.12 `net/sched/sch_cake.c`.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::no_class::NoClass;
use super::unsimulated::{Params, Unsimulated};
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options, Time, Value};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "cake",
    about: "shaper, flow queues, fairness between hosts and priority tins in one",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::Flows,
        sorting: Sorting::Own,
        takes_filters: true,
        limits_rate: LimitsRate::Qdisc("bandwidth"),
        queue: Holds::Managed,
        limit: Limit::None,
        work_conserving: false,
    },
};

/// `CAKE_DIFFSERV_*`.
const DIFFSERV4: u32 = 1;
const DIFFSERV8: u32 = 2;
const BESTEFFORT: u32 = 3;
const PRECEDENCE: u32 = 4;
/// `CAKE_FLOW_TRIPLE`; also the bits a flow mode has.
const TRIPLE: u32 = 7;

/// Numbers a change sets as they come, and their defaults. `raw` stands for the flag that an overhead was given.
const NUMBERS: [(&str, u32); 9] = [
    ("diffserv", 0),
    ("flowmode", TRIPLE),
    ("atm", 0),
    ("mpu", 0),
    ("rtt", 100_000),
    ("target", 5000),
    ("ack_filter", 0),
    ("memlimit", 0),
    ("fwmark", 0),
];
/// Numbers of which only zero or not counts, and their defaults.
const FLAGS: [(&str, u32); 5] = [("nat", 0), ("wash", 0), ("autorate", 0), ("ingress", 0), ("split_gso", 1)];

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut params = Options::new().with("bandwidth", 0u64).with("overhead", 0i64).with("raw", Value::Flag);
    for (name, default) in NUMBERS.into_iter().chain(FLAGS) {
        params = params.with(name, default);
    }
    let classes = NoClass::new(init.handle);
    let mut cake =
        Cake { device: init.device, params, tins: Vec::new(), buffer_limit: 0, capacity: 0, classes };
    cake.change(options, cx)?;
    cake.capacity = cake.rate();
    Ok(Box::new(Unsimulated::new(cake)))
}

/// What a tin is made from its share of the rate: `struct cake_tin_data`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tin {
    /// Bytes per second; 0 is without limit.
    rate: u64,
    target_ns: u64,
    interval_ns: u64,
    flow_quantum: u32,
}

impl Tin {
    /// `cake_set_rate`.
    fn new(rate: u64, mtu: u32, target_ns: u64, rtt_ns: u64) -> Tin {
        let (mut flow_quantum, mut byte_target_ns) = (1514, 0);
        if rate != 0 {
            flow_quantum = (rate >> 12).clamp(300, 1514) as u32;
            let mut shift = 34;
            let mut ns = (1_000_000_000u64 << shift) / rate.max(64);
            while ns >> 34 != 0 {
                ns >>= 1;
                shift -= 1;
            }
            byte_target_ns = u64::from(mtu).wrapping_mul(ns) >> shift;
        }
        let target = (byte_target_ns.wrapping_mul(3) / 2).max(target_ns);
        let interval = (rtt_ns.wrapping_add(target).wrapping_sub(target_ns)).max(target * 2);
        Tin { rate, target_ns: target, interval_ns: interval, flow_quantum }
    }
}

/// Its parameters, and what follows from them.
pub struct Cake {
    device: Device,
    /// As they are dumped.
    params: Options,
    tins: Vec<Tin>,
    buffer_limit: u32,
    /// Estimated capacity, bytes per second.
    capacity: u64,
    classes: NoClass,
}

impl Cake {
    fn rate(&self) -> u64 {
        self.params.u64("bandwidth").unwrap_or(0)
    }
    fn number(&self, name: &str) -> u32 {
        self.params.u32(name).unwrap_or(0)
    }
    /// `cake_reconfigure`.
    fn reconfigure(&mut self) {
        let (rate, mtu) = (self.rate(), self.device.psched_mtu());
        let us = |name| u64::from(self.number(name)) * 1000;
        let tin = |rate| Tin::new(rate, mtu, us("target"), us("rtt"));
        // Seven eighths of the tin before.
        let falling = |rate: &u64| Some(rate.wrapping_mul(7) >> 3);
        // In the order they are shown: `bulk_order` puts the second tin first.
        self.tins = match self.number("diffserv") {
            BESTEFFORT => vec![tin(rate)],
            PRECEDENCE | DIFFSERV8 => std::iter::successors(Some(rate), falling).take(8).map(tin).collect(),
            DIFFSERV4 => vec![tin(rate >> 4), tin(rate), tin(rate >> 1), tin(rate >> 2)],
            _ => vec![tin(rate >> 4), tin(rate), tin(rate >> 2)],
        };
        let given = self.number("memlimit");
        let limit = if given != 0 {
            given
        } else if rate != 0 {
            let bytes = rate.wrapping_mul(u64::from(self.number("rtt"))) / 250_000;
            (bytes as u32).max(4 << 20)
        } else {
            u32::MAX
        };
        self.buffer_limit = limit.min(10_240u32.wrapping_mul(mtu).max(given));
    }
}

impl Params for Cake {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let empty = Options::new();
        let o = options.unwrap_or(&empty);
        if let Some(rate) = o.u64("bandwidth") {
            self.params.set("bandwidth", Value::U64(rate));
        }
        for (name, _) in NUMBERS {
            if let Some(value) = o.u32(name) {
                let value = match name {
                    "flowmode" => value & TRIPLE,
                    "rtt" | "target" => value.max(1),
                    _ => value,
                };
                self.params.set(name, Value::U32(value));
            }
        }
        for (name, _) in FLAGS {
            if let Some(value) = o.u32(name) {
                self.params.set(name, Value::U32(u32::from(value != 0)));
            }
        }
        if let Some(overhead) = o.i64("overhead") {
            self.params.set("overhead", Value::I64(overhead));
            self.params.remove("raw");
        }
        if o.has("raw") {
            self.params.set("raw", Value::Flag);
        }
        self.reconfigure();
        Ok(())
    }
    fn dump(&self) -> Options {
        self.params.clone()
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let zero = [
            "sent_bytes",
            "backlog_bytes",
            "peak_delay_us",
            "avg_delay_us",
            "base_delay_us",
            "sent_packets",
            "way_indirect_hits",
            "way_misses",
            "way_collisions",
            "drops",
            "ecn_mark",
            "ack_drops",
            "sparse_flows",
            "bulk_flows",
            "unresponsive_flows",
            "max_pkt_len",
        ];
        let tin = |tin: &Tin| {
            let o = zero.into_iter().fold(Options::new(), |o, name| o.with(name, 0u32));
            o.with("threshold_rate", tin.rate)
                .with("target_us", (tin.target_ns / 1000) as u32)
                .with("interval_us", (tin.interval_ns / 1000) as u32)
                .with("flow_quantum", tin.flow_quantum)
        };
        let o = Options::new()
            .with("memory_used", 0u32)
            .with("memory_limit", self.buffer_limit)
            .with("capacity_estimate", self.capacity)
            .with("min_network_size", u16::MAX)
            .with("max_network_size", 0u32)
            .with("min_adj_size", u16::MAX)
            .with("max_adj_size", 0u32)
            .with("avg_hdr_offset", 0u32);
        Some(o.with("tins", self.tins.iter().map(tin).collect::<Vec<_>>()))
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(&self.classes)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(&mut self.classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};
    use penstock_model::Handle;

    #[test]
    fn slow_tins_get_longer_targets() {
        // 1 Mbit/s: 1514 bytes take 12.112 ms, half as much again is the least target.
        let tin = Tin::new(125_000, 1514, 5_000_000, 100_000_000);
        assert_eq!((tin.target_ns / 1000, tin.interval_ns / 1000, tin.flow_quantum), (18_168, 113_168, 300));
        let free = Tin::new(0, 1514, 5_000_000, 100_000_000);
        assert_eq!((free.target_ns, free.interval_ns, free.flow_quantum), (5_000_000, 100_000_000, 1514));
    }

    #[test]
    fn the_buffer_follows_rate_and_memlimit() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut limit = |o: Options| {
            let q = build(&init, Some(&o), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
            q.xstats(Time::ZERO).unwrap().u32("memory_limit").unwrap()
        };
        assert_eq!(limit(Options::new()), 15_503_360);
        assert_eq!(limit(Options::new().with("bandwidth", 1_250_000u64)), 4 << 20);
        assert_eq!(limit(Options::new().with("memlimit", 1000u32)), 1000);
        assert_eq!(
            limit(Options::new().with("bandwidth", 12_500_000u64).with("rtt", 200_000u32)),
            10_000_000
        );
    }

    #[test]
    fn an_overhead_ends_raw_and_raw_keeps_its_number() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut q = build(&init, None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        let seen = |q: &dyn Qdisc| (q.dump().has("raw"), q.dump().i64("overhead"));
        assert_eq!(seen(&*q), (true, Some(0)));
        q.change(Some(&Options::new().with("overhead", 18i64)), &mut bench.cx(0)).unwrap();
        assert_eq!(seen(&*q), (false, Some(18)));
        let raw = Options::new().with("overhead", 0i64).with("raw", Value::Flag);
        q.change(Some(&raw), &mut bench.cx(0)).unwrap();
        assert_eq!(seen(&*q), (true, Some(0)));
    }
}
