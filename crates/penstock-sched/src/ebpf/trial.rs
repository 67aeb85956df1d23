//! A program is tried on a few packets before it is taken.
//!
//! The kernel's verifier takes only programs that do nothing wrong to any packet. What one does wrong here to one of them it would so have been refused
//! for; that nothing is found here says nothing.

use super::verify::Refusal;
use super::vm::{Fault, Lent};
use super::{Program, go};
use penstock_model::{KernelError, Rng, Time};
use penstock_packet::headers::{Fragment, Ipv4, Ipv6, Tcp, Udp, ipproto};
use penstock_packet::{L3, L4, Skb};

/// Frames that are as short as they can be, and some that are longer.
fn frames() -> Vec<Skb> {
    let v4 = |protocol| {
        let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        L3::Ipv4(Ipv4 { src, dst, tos: 2, ttl: 64, protocol, id: 1, frag_off: 0 })
    };
    let v6 = |next_header| {
        let (src, dst) = ([0xfd, 0, 0, 0, 0, 0, 0, 1].into(), [0xfd, 0, 0, 0, 0, 0, 0, 2].into());
        L3::Ipv6(Ipv6 {
            src,
            dst,
            traffic_class: 2,
            flow_label: 0,
            next_header,
            hop_limit: 64,
            fragment: Fragment::NONE,
        })
    };
    let udp = L4::Udp(Udp { sport: 1000, dport: 53 });
    let tcp = L4::Tcp(Tcp { sport: 1000, dport: 80, ..Tcp::default() });
    [
        (14, L3::Other(0x800), L4::None),
        (14, L3::Other(0x88b5), L4::None),
        (34, v4(ipproto::TCP), L4::None),
        (34, v4(ipproto::UDP), L4::None),
        (42, v4(ipproto::UDP), udp),
        (54, v4(ipproto::TCP), tcp),
        (54, v6(ipproto::TCP), L4::None),
        (62, v6(ipproto::UDP), udp),
        (74, v6(ipproto::TCP), tcp),
        (1514, v4(ipproto::TCP), tcp),
    ]
    .into_iter()
    .map(|(len, l3, l4)| Skb::new(len, l3, l4))
    .collect()
}

/// Runs a program on each of them, on the receiving side and on the sending one, with maps of its own.
pub(super) fn run(program: &Program) -> Result<(), Refusal> {
    let state = program.state.borrow();
    let (mut rng, mut sent, mut redirect) = (Rng::named(1, "trial"), Vec::new(), None);
    for ingress in [false, true] {
        let (mut maps, mut stack) = (state.maps.clone(), state.stack.clone());
        for mut skb in frames() {
            skb.tc.at_ingress = ingress;
            (skb.tc.dev, skb.pkt_len) = (1, skb.len);
            let now = Time::from_ns(1_000_000_000);
            let mut lent = Lent { now, rng: &mut rng, sent: &mut sent, redirect: &mut redirect };
            match go(&program.code, &mut maps, &mut stack, &mut skb, 0, &mut lent) {
                Ok(_) | Err(Fault::Missing(_)) => {}
                Err(Fault::Refused(log)) => {
                    let errno =
                        if log.contains("too large") { KernelError::E2BIG } else { KernelError::EACCES };
                    return Err(Refusal::new(errno, log));
                }
            }
        }
    }
    Ok(())
}
