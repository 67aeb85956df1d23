//! The scenario that speed is measured on.

use crate::spec::{End, FlowSpec, Transport};
use crate::{HostId, LinkSpec, World};
use penstock_host::Prefix;
use penstock_model::traffic::{Load, TcpWishes};
use penstock_model::{Kernel, Rate, Span, Time};

/// A dumbbell: `flows` greedy SACK connections, each between hosts of its own, over edges of 1 Gbit/s and one
/// bottleneck of 100 Mbit/s with 10 ms behind a FIFO of 200 packets, for `seconds`. Answers how many packet-hops that
/// were; one packet over one link is one hop.
///
/// # Panics
/// Never, for up to 200 flows.
pub fn bench_dumbbell(flows: u32, seconds: u32, seed: u64) -> u64 {
    let mut world = dumbbell(flows.min(200), seed);
    world.run_quietly(Time::from_ns(i64::from(seconds) * 1_000_000_000));
    world.packet_hops()
}

pub(crate) fn dumbbell(flows: u32, seed: u64) -> World {
    let mut world = World::new(seed);
    let gigabit = Some(Rate::from_bit_per_s(1_000_000_000));
    let left = world.add_host("left", Kernel::V6_12);
    let right = world.add_host("right", Kernel::V6_12);
    for router in [left, right] {
        world.host_mut(router).set_forwarding(true);
    }
    let bottleneck = Some(Rate::from_bit_per_s(100_000_000));
    let link = LinkSpec::new(End::new(left, "core"), End::new(right, "core"), bottleneck, Span::from_ms(10));
    world.add_link(link).expect("two free devices");
    address(&mut world, left, "core", "10.255.0.1/24");
    address(&mut world, right, "core", "10.255.0.2/24");
    for i in 0..flows {
        let from = world.add_host(&format!("a{i}"), Kernel::V6_12);
        let to = world.add_host(&format!("b{i}"), Kernel::V6_12);
        for (host, router, net) in [(from, left, 1), (to, right, 2)] {
            let port = format!("edge{i}");
            let link =
                LinkSpec::new(End::new(host, "eth0"), End::new(router, &port), gigabit, Span::from_us(50));
            world.add_link(link).expect("two free devices");
            address(&mut world, router, &port, &format!("10.{net}.{i}.1/24"));
            address(&mut world, host, "eth0", &format!("10.{net}.{i}.2/24"));
            let gateway = format!("10.{net}.{i}.1").parse().expect("an address");
            world.host_mut(host).add_default_route(gateway).expect("the gateway is on the link");
            let peer = if router == left { "10.255.0.2" } else { "10.255.0.1" };
            let far = Prefix::parse(&format!("10.{}.{i}.0/24", 3 - net)).expect("a prefix");
            let there = if router == left { left } else { right };
            let gateway = peer.parse().expect("an address");
            world.host_mut(there).add_route(far, gateway).expect("the gateway is on the link");
        }
        world.add_flow(greedy(from, to)).expect("both hosts are there");
    }
    world.exec(left, "tc qdisc add dev core root pfifo limit 200");
    world
}

fn address(world: &mut World, host: HostId, device: &str, prefix: &str) {
    let ifindex = world.host(host).ifindex(device).expect("the device was made with its link");
    let prefix = Prefix::parse(prefix).expect("a prefix");
    world.host_mut(host).add_address(ifindex, prefix).expect("a new address");
}

/// A connection that sends as much as it can.
pub(crate) fn greedy(from: HostId, to: HostId) -> FlowSpec {
    FlowSpec {
        txtime: None,
        name: String::new(),
        group: String::new(),
        from,
        to,
        to_addr: None,
        ipv6: false,
        count: 1,
        transport: Transport::Tcp(TcpWishes::default()),
        load: Load::Greedy,
        start: Time::ZERO,
        start_to: Time::ZERO,
        stop: None,
        tos: 0,
        mark: 0,
        port: 0,
        clock: crate::SenderClock::default(),
        trace: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dumbbell_is_full_and_fair() {
        let mut world = dumbbell(10, 1);
        let results = world.run(Time::from_ns(5_000_000_000));
        let goodput: u64 = results.flows.iter().map(|f| f.goodput_bytes * 8 / 5).sum();
        assert!((88_000_000..94_500_000).contains(&goodput), "{goodput}");
        let squares: u128 = results.flows.iter().map(|f| u128::from(f.goodput_bytes).pow(2)).sum();
        let sum: u128 = results.flows.iter().map(|f| u128::from(f.goodput_bytes)).sum();
        assert!(sum * sum * 10 / (squares * 10) >= 6, "Jain's index under 0.6");
    }
}
