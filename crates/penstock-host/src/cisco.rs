//! A router from its Cisco IOS configuration.
//!
//! Interfaces have IOS's names, forwarding is on, ICMP and TTL are as any machine's here. Each interface sends through
//! one first-in-first-out queue of IOS's default output hold queue, 40 packets (`hold-queue N out` changes it).
//! Differs: no input hold queue (75 packets), no fair queueing on serial lines; ARP and ICMP timings are Linux's.

use crate::{Host, Prefix};
use penstock_lang::cisco::Config;
use penstock_model::{Diagnostic, Kernel, Time};
use std::net::Ipv4Addr;

/// `hold-queue out`, packets: IOS's default.
const HOLD_QUEUE_OUT: u32 = 40;

impl Host {
    /// A router called `name` from its configuration. Interfaces that are shut down or have no address are there, down.
    ///
    /// # Errors
    /// Static routes whose next hop is on no network of the router, interfaces that are not there.
    pub fn from_cisco(name: &str, config: &Config, seed: u64) -> Result<Host, Vec<Diagnostic>> {
        let mut host = Host::new(name, Kernel::V6_12, seed);
        host.set_forwarding(true);
        let mut errors = Vec::new();
        for interface in &config.interfaces {
            let ifindex = host.add_device(&interface.name);
            let limit = interface.hold_queue_out.unwrap_or(HOLD_QUEUE_OUT);
            let queue = format!("tc qdisc add dev {} root pfifo limit {limit}", interface.name);
            let out = host.exec(&queue, Time::ZERO);
            errors.extend(out.diagnostics.into_iter().map(|d| Diagnostic { line: interface.line, ..d }));
            for &(addr, len) in &interface.addresses {
                if let Err(e) = host.add_address(ifindex, Prefix::new(addr, len)) {
                    errors.push(Diagnostic::error(e.to_string()).at("", interface.line, 0, 0));
                }
            }
            if interface.shutdown || interface.addresses.is_empty() {
                host.set_up(ifindex, false, Time::ZERO);
            }
        }
        for route in &config.routes {
            let dst = Prefix::new(route.network, route.len);
            let via = route.via.map(|v| format!(" via {v}")).unwrap_or_default();
            let dev = route.interface.as_ref().map(|i| format!(" dev {i}")).unwrap_or_default();
            // A second route to the same network is a spare one: its distance is its metric.
            let metric = match (route.distance, route.network) {
                (1, _) => String::new(),
                (d, _) => format!(" metric {d}"),
            };
            let default = dst.addr == Ipv4Addr::UNSPECIFIED && dst.len == 0;
            let to = if default { "default".to_owned() } else { dst.to_string() };
            let out = host.exec(&format!("ip route append {to}{via}{dev}{metric} proto static"), Time::ZERO);
            for d in out.diagnostics {
                let help = "the next hop must be on the network of an interface that is up";
                errors.push(Diagnostic::error(d.message).at("", route.line, 0, 0).help(help));
            }
        }
        host.pending.clear();
        if errors.is_empty() { Ok(host) } else { Err(errors) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Net, echo, h4, ip};
    use penstock_lang::cisco::parse;

    #[test]
    fn the_virtual_lab_s_routers_route() {
        let router = |text| Host::from_cisco("r", &parse(text).unwrap(), 1).unwrap();
        let r1 = router(include_str!("../../penstock-study/studies/virtual-lab/commands/05-R1-134.cfg"));
        let r2 = router(include_str!("../../penstock-study/studies/virtual-lab/commands/05-R2-114.cfg"));
        let dev = |h: &Host, n: &str| h.ifindex(n).unwrap();
        let end = |name: &str, addr: &str, via: &str| {
            let mut h = Host::new(name, Kernel::V6_12, 1);
            let d = h.add_device("eth0");
            h.add_address(d, Prefix::parse(addr).unwrap()).unwrap();
            h.add_default_route(ip(via)).unwrap();
            h
        };
        let u1 = end("u1", "10.3.31.88/24", "10.3.31.77");
        let u4 = end("u4", "10.3.33.33/24", "10.3.33.44");
        let (r1a, r1b) = (dev(&r1, "FastEthernet0/0"), dev(&r1, "FastEthernet0/1"));
        let (r2a, r2b) = (dev(&r2, "FastEthernet0/0"), dev(&r2, "FastEthernet0/1"));
        let wires = vec![((0, 2), (1, r1a)), ((1, r1b), (2, r2b)), ((2, r2a), (3, 2))];
        let mut net = Net::new(vec![u1, r1, r2, u4], wires);
        net.send(0, echo("10.3.33.33")).unwrap();
        net.run(Time::from_ns(1_000_000_000));
        assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
        assert_eq!(h4(&net.delivered[0].1).ttl, 62);
        let mut shown = net.hosts[1].exec("tc qdisc show dev FastEthernet0/0", Time::ZERO);
        assert!(shown.stdout.contains("pfifo 8001: root refcnt 2 limit 40p"), "{}", shown.stdout);
        shown = net.hosts[1].exec("ip route show", Time::ZERO);
        assert!(
            shown.stdout.contains("10.3.34.0/24 via 10.3.32.55 dev FastEthernet0/1 proto static"),
            "{}",
            shown.stdout
        );
    }
}
