//! `bpf`: what a classic program answers to a packet somebody asks about.
//!
//! Follows: linux v6.12 `net/sched/cls_bpf.c` `cls_bpf_classify`.
//! Differs: objects, programs with direct action and caught packets are not run here: nobody can tell what they ask.

use super::Probe;
use crate::filters::Filter;
use penstock_model::{Handle, Rng};
use penstock_packet::headers::{Icmp, Ipv4, Ipv6, Tcp, TcpFlags, Udp};
use penstock_packet::{L3, L4, Skb};
use penstock_sched::bpf::Program;
use std::net::IpAddr;

/// The class that a program chooses for a packet, `None` within where it does not fit; `None` for other kinds and for what is not run here.
pub fn class(filter: &Filter, probe: &Probe) -> Option<Option<Handle>> {
    let ops = filter.options.list("ops");
    if filter.kind != "bpf" || ops.is_empty() || filter.options.u32("flags").unwrap_or(0) & 1 != 0 {
        return None;
    }
    let program = Program::new(ops).filter(Program::is_exact)?;
    let said = program.run(&skb(probe)?, &mut Rng::named(1, "explain"));
    Some(match said {
        0 => None,
        u32::MAX => Some(filter.classid.unwrap_or(Handle::UNSPEC)),
        class => Some(Handle(class)),
    })
}

/// The packet as a program sees it: the first tag lies beside it. `None` where a second tag is in it, or it was caught.
fn skb(p: &Probe) -> Option<Skb> {
    if p.caught.is_some() || p.tags.len() > 1 {
        return None;
    }
    let l4 = match p.protocol {
        6 => L4::Tcp(Tcp { sport: p.sport, dport: p.dport, flags: TcpFlags(0x10), ..Tcp::default() }),
        17 => L4::Udp(Udp { sport: p.sport, dport: p.dport }),
        1 | 58 => {
            let [ty, code] = p.dport.to_be_bytes();
            L4::Icmp(Icmp::new(ty, code, 0, 0))
        }
        _ => L4::None,
    };
    let l3 = match (p.src, p.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            L3::Ipv4(Ipv4 { tos: p.tos, ..Ipv4::new(src, dst, p.protocol) })
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            L3::Ipv6(Ipv6 { traffic_class: p.tos, ..Ipv6::new(src, dst, p.protocol) })
        }
        _ => return None,
    };
    Some(Skb { priority: p.priority, mark: p.mark, ..Skb::new(u32::from(p.len) + 14, l3, l4) })
}
