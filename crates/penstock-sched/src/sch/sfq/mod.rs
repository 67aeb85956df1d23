//! `sfq`: stochastic fairness queueing; flows by a keyed hash, served in turn.
//!
//! Follows: linux v6.12 net/sched/sch_sfq.c in [`present`], linux v2.6.35 net/sched/sch_sfq.c in [`old`];
//! McKenney, INFOCOMM 1990.
//! Differs: the hash of a flow is random in the kernel and here (see [`hash`]). The perturbation timer is a deferrable
//! wheel timer there, late by up to an eighth of its period and later still on an idle machine; here it strikes at
//! whole multiples of the period after the qdisc was made, and what it does is done when the qdisc is next touched.
//! It wakes nobody, as in the kernel, where a rehash sends nothing.

pub(super) mod chains;
mod depths;
pub(crate) mod hash;
mod old;
mod present;

use super::KindSpec;
use crate::cls::{Filters, Gone, Verdict};
use crate::qdisc::{Cx, Device, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Span, Time};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "sfq",
    about: "flows by a keyed hash, one quantum a turn; drops from the longest",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Flows,
        sorting: Sorting::Own,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Managed,
        limit: Limit::Packets,
        work_conserving: true,
    },
};

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    Ok(match init.device.kernel {
        Kernel::V2_6_35 => Box::new(old::Sfq::new(init, options, cx)?),
        Kernel::V6_12 | Kernel::V7_2 => Box::new(present::Sfq::new(init, options, cx)?),
    })
}

/// `qdisc_change`: neither kernel changes an sfq.
fn refuse_change(device: &Device, options: Option<&Options>) -> Result<(), KernelError> {
    match options {
        Some(_) => {
            Err(device.refusal(KernelError::EINVAL, "Change operation not supported by specified qdisc"))
        }
        None => Ok(()),
    }
}

/// The perturbation timer.
#[derive(Clone, Copy, Debug)]
struct Perturb {
    /// Seconds; 0 for never.
    period_s: i32,
    next: Time,
}

impl Perturb {
    fn new(period_s: i32, now: Time) -> Perturb {
        let next = match period_s {
            0 => Time::MAX,
            s => now.saturating_add(Span::from_secs(i64::from(s))),
        };
        Perturb { period_s, next }
    }
    /// Whether it struck since it was last asked.
    #[inline]
    fn is_due(&self, now: Time) -> bool {
        now >= self.next
    }
    /// One strike; moves on to the next.
    fn strike(&mut self) {
        self.next = self.next.saturating_add(Span::from_secs(i64::from(self.period_s)));
    }
    /// All strikes up to `now`.
    fn catch_up(&mut self, now: Time) {
        let period_ns = i64::from(self.period_s).max(1) * 1_000_000_000;
        let missed = (now - self.next).as_ns() / period_ns + 1;
        self.next = self.next.saturating_add(Span::from_ns(missed.saturating_mul(period_ns)));
    }
}

/// `sfq_classify`: the bucket, from 1, that a packet's priority or a filter names, or else its hash does;
/// `None` when a filter must and does not; an error when an action takes the packet.
#[inline]
fn classify(
    handle: Handle,
    filters: &Filters,
    divisor: u32,
    skb: &mut Skb,
    hash: impl FnOnce(&Skb) -> u32,
    cx: &mut Cx<'_>,
) -> Result<Option<u32>, Gone> {
    let chosen = Handle(skb.priority);
    let minor = u32::from(chosen.minor());
    if chosen.major() == handle.major() && minor > 0 && minor <= divisor {
        return Ok(Some(minor));
    }
    if filters.is_empty(Filters::ROOT) {
        return Ok(Some((hash(skb) & (divisor - 1)) + 1));
    }
    match filters.classify(Filters::ROOT, skb, cx) {
        Verdict::Class(hit) => {
            let minor = u32::from(hit.classid.minor());
            Ok((minor > 0 && minor <= divisor).then_some(minor))
        }
        Verdict::Unmatched => Ok(None),
        Verdict::Gone(gone) => Err(gone),
    }
}

/// What is alike in both versions' `Qdisc_class_ops`: buckets are classes to look at, nothing more.
macro_rules! buckets_are_classes {
    ($sfq:ty) => {
        impl Classful for $sfq {
            fn find(&self, _: Handle) -> bool {
                false
            }
            fn walk(&self, _: Time, visit: &mut dyn FnMut(ClassDump)) {
                for bucket in 0..self.divisor() {
                    let Some((stats, allot)) = self.bucket(bucket) else { continue };
                    visit(ClassDump {
                        kind: super::SPEC.id,
                        classid: Handle(self.handle.0 | (bucket as u32 + 1) & 0xffff),
                        parent: self.handle,
                        leaf: None,
                        options: Options::new(),
                        counters: penstock_model::rtnetlink::Counters::Queue,
                        stats,
                        xstats: Some(Options::new().with("allot", allot)),
                    });
                }
            }
            fn filters(&self) -> Option<&Filters> {
                Some(&self.filters)
            }
            fn filters_mut(&mut self) -> Option<&mut Filters> {
                Some(&mut self.filters)
            }
            fn block(&self, classid: Handle) -> Option<BlockId> {
                (classid == Handle::UNSPEC).then_some(Filters::ROOT)
            }
        }
    };
}
use buckets_are_classes;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_strikes_at_whole_periods() {
        let at = |s: i64| Time::from_ns(s * 1_000_000_000);
        let mut p = Perturb::new(10, at(3));
        assert!(!p.is_due(at(12)) && p.is_due(at(13)));
        p.strike();
        assert_eq!(p.next, at(23));
        p.catch_up(at(60));
        assert_eq!(p.next, at(63));
        p.catch_up(at(63));
        assert_eq!(p.next, at(73));
        assert!(!Perturb::new(0, at(0)).is_due(at(1 << 32)));
    }
}
