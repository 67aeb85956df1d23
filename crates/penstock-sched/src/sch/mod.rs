//! The kinds of queueing disciplines, one file a kind.
//!
//! Follows: linux v6.12 `net/sched/sch_api.c` `register_qdisc`, `qdisc_lookup_ops`.

pub mod atm;
mod bands;
pub mod bfifo;
pub mod blackhole;
pub mod cake;
pub mod cake_mq;
pub mod cbq;
pub mod cbs;
pub mod choke;
pub mod codel;
pub mod drr;
pub mod dsmark;
pub mod dualpi2;
pub mod etf;
pub mod ets;
pub mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
pub mod gred;
mod hashed;
pub mod hfsc;
pub mod hhf;
pub mod htb;
pub mod ingress;
pub mod mq;
pub mod mqprio;
pub mod multiq;
pub mod netem;
pub mod noop;
pub mod noqueue;
mod one_class;
mod over_leaves;
pub mod pfifo;
pub mod pfifo_fast;
pub mod pfifo_head_drop;
pub mod pie;
pub mod plug;
pub mod prio;
pub mod qfq;
mod queues;
pub mod red;
pub mod sfb;
pub mod sfq;
pub mod skbprio;
pub mod taprio;
pub mod tbf;
pub mod teql;
pub mod unsimulated;

use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{self, Traits};
use penstock_model::{Kernel, KernelError, Options};
use penstock_packet::{L4, Skb};

/// Makes a qdisc of one kind: `Qdisc_ops.init`. `None` for the options where no option word was given.
pub type Build =
    fn(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError>;

/// `skb->truesize` of a frame from a packet socket, which has 16 bytes before it: the header's 256 bytes, and a buffer of 704 for small
/// frames or else of a power of two, of which what copies share takes 320.
fn memory(skb: &Skb) -> u32 {
    const SKB: u32 = 256;
    const SHARED_INFO: u32 = 320;
    const SMALL_HEAD: u32 = 704;
    const PAGE: u32 = 4096;
    // What a packet socket puts before the pages of a large packet: up to the checksum's end.
    let linear = || skb.headers_before_l4() + if matches!(skb.l4, L4::Tcp(_)) { 18 } else { 8 };
    let (mut len, mut headroom) = (skb.len, 16);
    if let Some(segment) = skb.rare().segment {
        match segment.whole {
            0 if segment.paged => return SKB + SMALL_HEAD + skb.len - skb.segment_headers(),
            //= linux v6.12 net/core/skbuff.c skb_segment: a segment has the room before it that is left of the whole packet's, less the Ethernet header's 14 bytes.
            0 => headroom = 2,
            whole => len = whole,
        }
    }
    if len + 16 >= PAGE && (skb.gso().is_some() || len != skb.len) {
        return SKB + SMALL_HEAD + (len - linear()).next_multiple_of(PAGE);
    }
    let need = len + headroom + SHARED_INFO;
    SKB + if need <= SMALL_HEAD { SMALL_HEAD } else { need.next_power_of_two() }
}

/// One kind of queueing discipline: `struct Qdisc_ops`.
pub struct KindSpec {
    /// Its name in tc.
    pub id: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// The kernels that have it.
    pub kernels: &'static [Kernel],
    /// Makes one.
    pub build: Build,
    /// Whether packets are carried as the kernel carries them. Where not, the kind can be set up, checked and shown,
    /// and what would send packets through it refuses to.
    pub simulated: bool,
    /// What holds of every qdisc of this kind.
    pub traits: Traits,
}

/// All kinds by name.
pub static KINDS: &[&KindSpec] = &[
    &atm::SPEC,
    &bfifo::SPEC,
    &blackhole::SPEC,
    &cake::SPEC,
    &cake_mq::SPEC,
    &cbq::SPEC,
    &cbs::SPEC,
    &choke::SPEC,
    &ingress::CLSACT,
    &codel::SPEC,
    &drr::SPEC,
    &dsmark::SPEC,
    &dualpi2::SPEC,
    &etf::SPEC,
    &ets::SPEC,
    &fq::SPEC,
    &fq_codel::SPEC,
    &fq_pie::SPEC,
    &gred::SPEC,
    &hfsc::SPEC,
    &hhf::SPEC,
    &htb::SPEC,
    &ingress::INGRESS,
    &mq::SPEC,
    &mqprio::SPEC,
    &multiq::SPEC,
    &netem::SPEC,
    &noqueue::SPEC,
    &pfifo::SPEC,
    &pfifo_fast::SPEC,
    &pfifo_head_drop::SPEC,
    &pie::SPEC,
    &plug::SPEC,
    &prio::SPEC,
    &qfq::SPEC,
    &red::SPEC,
    &sfb::SPEC,
    &sfq::SPEC,
    &skbprio::SPEC,
    &taprio::SPEC,
    &tbf::SPEC,
    &teql::SPEC,
];

/// The kind called `id` in this kernel.
pub fn find(id: &str, kernel: Kernel) -> Option<&'static KindSpec> {
    KINDS.iter().find(|k| k.id == id && k.kernels.contains(&kernel)).copied()
}

/// The properties of the kind called `id`, which is the same in every kernel.
pub fn traits(id: &str) -> &'static Traits {
    KINDS.iter().find(|k| k.id == id).map_or(&traits::NOTHING, |k| &k.traits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_order() {
        assert!(KINDS.windows(2).all(|w| w[0].id < w[1].id));
        assert_eq!(find("pfifo", Kernel::V6_12).map(|k| k.id), Some("pfifo"));
        assert!(find("noop", Kernel::V6_12).is_none());
    }
}
