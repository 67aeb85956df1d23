//! `cake_mq`: a `cake` for each transmit queue, which share one rate.
//!
//! Follows: linux v7.2 `net/sched/sch_cake.c` `cake_mq_init`, `cake_mq_change`, `cake_mq_graft`. How packets are carried: [`super::queues`].
//! Differs: every queue of a device is in use.

use super::KindSpec;
use super::bands::Bands;
use super::cake::{self, Cake, Config};
use super::queues::{QueueKind, Queues};
use crate::node::{Node, Shown};
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "cake_mq",
    about: "a cake for each transmit queue, which share one rate",
    kernels: &[Kernel::V7_2],
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Queues,
        sorting: Sorting::Own,
        takes_filters: false,
        limits_rate: LimitsRate::Qdisc("bandwidth"),
        queue: Holds::Managed,
        limit: Limit::None,
        work_conserving: false,
    },
};

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut config = Config::new();
    if let Some(o) = options {
        change_config(&mut config, o)?;
    }
    if init.parent != Handle::ROOT || !init.device.is_multiqueue() {
        return Err(KernelError::errno(KernelError::EOPNOTSUPP));
    }
    let mut bands = Bands::new(init);
    let seats = cake::seats(init.device.tx_queues as usize);
    for (band, seat) in seats.enumerate() {
        let of_queue = Init { device: init.device, handle: Handle::UNSPEC, parent: bands.class(band) };
        let cake = Cake::shared(&of_queue, config.params.clone(), seat, cx)?;
        let mut node = Node::new(&of_queue, Box::new(cake));
        node.shown = Shown::Always;
        bands.nodes.push(node);
    }
    Ok(Box::new(Queues::with(bands, CakeMq { config })))
}

/// `cake_config_change` of a `cake_mq`. Whether the sizes seen count no longer.
fn change_config(config: &mut Config, o: &Options) -> Result<bool, KernelError> {
    if o.u32("autorate").is_some_and(|on| on != 0) {
        let sentence = "Can't use autorate-ingress with cake_mq";
        return Err(KernelError::new(KernelError::EOPNOTSUPP, sentence));
    }
    config.change(o)
}

/// What the queues share.
struct CakeMq {
    config: Config,
}

impl QueueKind for CakeMq {
    const ID: &'static str = SPEC.id;
    fn dump(&self) -> Options {
        self.config.params.clone()
    }
    fn change(
        &mut self,
        options: Option<&Options>,
        bands: &mut Bands,
        cx: &mut Cx<'_>,
    ) -> super::queues::Changed {
        let Some(o) = options else { return Some(Ok(())) };
        let done = change_config(&mut self.config, o).and_then(|_| {
            let told = o.clone().with(cake::OF_MQ, 1u32);
            bands.nodes.iter_mut().try_for_each(|node| node.change(Some(&told), cx))
        });
        Some(done)
    }
    fn has_own_queues(&self) -> bool {
        true
    }
    //= linux v7.2 net/sched/sch_cake.c cake_mq_graft
    fn no_graft(&self) -> Option<&'static str> {
        Some("can't replace cake_mq sub-qdiscs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};

    fn made(o: &Options, bench: &mut Bench) -> Result<Box<dyn Qdisc>, KernelError> {
        let device = crate::qdisc::Device { tx_queues: 2, ..device(Kernel::V7_2) };
        build(&Init { device, handle: Handle::new(1, 0), parent: Handle::ROOT }, Some(o), &mut bench.cx(0))
    }

    #[test]
    fn two_active_queues_have_half_the_rate_each() {
        let mut bench = Bench::new();
        let mut q = made(&Options::new().with("bandwidth", 1_000_000u64), &mut bench)
            .unwrap_or_else(|e| panic!("{e}"));
        let mut leaves = Vec::new();
        let mut sent = 0;
        let mut send = |q: &mut dyn Qdisc, queue: u16, now: i64, bench: &mut Bench| {
            sent += 1;
            let mut p = packet(sent, 1000);
            p.rare_mut().queue_mapping = queue;
            q.enqueue(p, &mut bench.cx(now));
        };
        for _ in 0..20 {
            send(&mut *q, 0, 0, &mut bench);
            send(&mut *q, 1, 0, &mut bench);
        }
        let mut now = 0;
        while q.qlen() > 0 {
            match q.dequeue(&mut bench.cx(now)) {
                Some(p) => {
                    leaves.push((p.rare().queue_mapping, now));
                    q.next_queue();
                }
                None => {
                    now = q.next_wakeup().expect("a shaper wakes").as_ns();
                    q.expire(penstock_model::Time::from_ns(now).into());
                }
            }
        }
        // A packet of 1000 bytes takes a millisecond of the rate, and two of a half.
        let of_first: Vec<i64> = leaves.iter().filter(|l| l.0 == 0).map(|l| l.1).collect();
        let gaps: Vec<i64> = of_first.windows(2).skip(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps[..10].iter().all(|g| (1_999_000..2_001_000).contains(g)), "{gaps:?}");
        let mut rows = Vec::new();
        q.classes().unwrap().children(&mut |_, child| {
            rows.push(child.xstats(penstock_model::Time::ZERO).unwrap().u32("active_queues"))
        });
        assert_eq!(rows, [Some(2), Some(2)]);
    }

    #[test]
    fn its_queues_are_not_for_others_to_change() {
        let mut bench = Bench::new();
        let mut q = made(&Options::new(), &mut bench).unwrap_or_else(|e| panic!("{e}"));
        let why = |e: KernelError| e.extack.clone();
        let classes = q.classes_mut().unwrap();
        let leaf = classes.leaf_mut(Handle::new(1, 1)).unwrap();
        let o = Options::new().with("bandwidth", 5u64);
        assert_eq!(
            leaf.change(Some(&o), &mut bench.cx(0)).map_err(why),
            Err("can't reconfigure cake_mq sub-qdiscs".to_owned())
        );
        q.change(Some(&o), &mut bench.cx(0)).unwrap();
        let leaf =
            |q: &dyn Qdisc| q.classes().unwrap().leaf(Handle::new(1, 2)).unwrap().dump().u64("bandwidth");
        assert_eq!((leaf(&*q), q.dump().u64("bandwidth")), (Some(5), Some(5)));
        let auto = Options::new().with("autorate", 1u32);
        assert_eq!(made(&auto, &mut bench).map(|_| ()).map_err(|e| e.errno), Err(KernelError::EOPNOTSUPP));
    }
}
