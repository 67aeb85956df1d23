//! `ip tuntap`: devices for programs, which nobody opens here.
//!
//! Follows: linux v6.12 `drivers/net/tun.c` `tun_set_iff`, `tun_net_init`, `__tun_set_persist`.
//! Differs: no program reads from or writes to one, so it stays without a carrier, as on Linux while its program is not there.

use super::{Done, says};
use crate::Host;
use crate::device::NetDevice;
use penstock_lang::ip::{self, Failure, Form, LinkData, TunRequest, TunSet};
use penstock_model::Time;

/// `MAX_TAP_QUEUES`.
const QUEUES: u32 = 256;

fn set_of(device: &NetDevice) -> Option<&TunSet> {
    match &device.data {
        LinkData::Tun(set) if device.class.is_tun() => Some(set),
        _ => None,
    }
}

fn refused(why: &str) -> Failure {
    says(1, format!("ioctl(TUNSETIFF): {why}"))
}

impl Host {
    /// `ip tuntap add`, `ip tuntap del`.
    pub(super) fn tun_request(&mut self, r: &TunRequest, now: Time) -> Done {
        let there = r.name.as_deref().and_then(|name| self.ifindex(name));
        match (r.add, there) {
            // TUN_EXCL: whatever stands there.
            (true, Some(_)) => return Err(refused("Device or resource busy")),
            (true, None) => {
                let kind = if r.set.tap { "tap" } else { "tun" };
                let name = match &r.name {
                    Some(name) => name.clone(),
                    None => self.free_name(kind),
                };
                let ifindex = self.new_device(&name, kind, None);
                let device = &mut self.devices[ifindex];
                device.data = LinkData::Tun(Box::new(r.set.clone()));
                if r.set.multi_queue {
                    device.queues = (QUEUES, QUEUES);
                    let kernel = self.kernel;
                    let Host { devices, drops, acts, .. } = self;
                    devices[ifindex].refresh_tree(kernel, now, drops, acts);
                }
            }
            // A device that is not there is made, and gone when the command ends.
            (false, None) => {}
            (false, Some(ifindex)) => match set_of(&self.devices[ifindex]) {
                Some(set) if set.tap == r.set.tap => self.delete_link(ifindex, now),
                _ => return Err(refused("Invalid argument")),
            },
        }
        Ok(String::new())
    }
    /// `ip tuntap show`.
    pub(super) fn tun_show(&self, form: Form) -> String {
        let all: Vec<(&str, &TunSet)> =
            self.devices.iter().filter_map(|d| Some((d.name.as_str(), set_of(d)?))).collect();
        ip::tuntaps(&all, form, self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use crate::Host;
    use penstock_model::{Kernel, Time};

    /// Answers of a Linux 6.12.117 with iproute2 6.1.0; addresses of Ethernet apart.
    #[test]
    fn a_device_for_a_program_that_is_not_there() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        let mut said = |command: &str| {
            let out = host.exec(command, Time::ZERO);
            (out.status, out.stdout + &out.stderr)
        };
        let done = (0, String::new());
        assert_eq!(said("ip tuntap add dev tun0 mode tun"), done);
        assert_eq!(said("ip tuntap add dev tap0 mode tap user 0 group 0"), done);
        let busy = (1, "ioctl(TUNSETIFF): Device or resource busy\n".to_owned());
        assert_eq!(said("ip tuntap add dev tun0 mode tun"), busy);
        assert_eq!(said("ip tuntap add dev lo mode tap"), busy);
        assert_eq!(said("ip tuntap add mode tun one_queue"), done);
        let list = "tun0: tun persist\ntap0: tap persist user 0 group 0\ntun1: tun one_queue persist\n";
        assert_eq!(said("ip tuntap"), (0, list.to_owned()));
        let json = "[{\"ifname\":\"tun0\",\"flags\":[\"tun\",\"persist\"]},\
                    {\"ifname\":\"tap0\",\"flags\":[\"tap\",\"persist\"],\"user\":0,\"group\":0},\
                    {\"ifname\":\"tun1\",\"flags\":[\"tun\",\"one_queue\",\"persist\"]}]\n";
        assert_eq!(said("ip -j tuntap"), (0, json.to_owned()));
        let tun = "2: tun0: <POINTOPOINT,MULTICAST,NOARP> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 500\n    link/none \n";
        assert_eq!(said("ip link show tun0"), (0, tun.to_owned()));
        let details = "2: tun0: <POINTOPOINT,MULTICAST,NOARP> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 500\n    \
            link/none  promiscuity 0  allmulti 0 minmtu 68 maxmtu 65535 \n    \
            tun type tun pi off vnet_hdr off persist on addrgenmode eui64 numtxqueues 1 numrxqueues 1 gso_max_size 65536 gso_max_segs 65535 \
            tso_max_size 65536 tso_max_segs 65535 gro_max_size 65536 \n";
        assert_eq!(said("ip -d link show tun0"), (0, details.to_owned()));
        assert_eq!(said("ip addr add 10.8.0.1/24 dev tun0"), done);
        assert_eq!(said("ip link set tun0 up"), done);
        assert_eq!(
            said("ip link show tun0").1.lines().next(),
            Some(
                "2: tun0: <NO-CARRIER,POINTOPOINT,MULTICAST,NOARP,UP> mtu 1500 qdisc pfifo_fast state DOWN mode DEFAULT group default qlen 500"
            )
        );
        let route = "10.8.0.0/24 dev tun0 proto kernel scope link src 10.8.0.1 linkdown \n";
        assert_eq!(said("ip route"), (0, route.to_owned()));
        let sys = ["type", "operstate", "carrier", "tun_flags", "owner"];
        let sys = sys.map(|file| said(&format!("cat /sys/class/net/tun0/{file}")).1);
        assert_eq!(sys, ["65534\n", "down\n", "0\n", "0x1801\n", "-1\n"]);
        let invalid = (1, "ioctl(TUNSETIFF): Invalid argument\n".to_owned());
        assert_eq!(said("ip tuntap del dev tun0 mode tap"), invalid);
        assert_eq!(said("ip tuntap del dev nosuch mode tun"), done);
        assert_eq!(said("ip tuntap del dev tun0 mode tun"), done);
        assert_eq!(said("ip link del tap0"), done);
        assert_eq!(said("ip tuntap"), (0, "tun1: tun one_queue persist\n".to_owned()));
        let link = (2, "Error: tun/tap creation via rtnetlink is not supported.\n".to_owned());
        assert_eq!(said("ip link add tunq type tun"), link);
    }

    #[test]
    fn what_iproute2_has_and_this_machine_has_not_is_said_to_be_so() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        for (command, what) in [
            ("ip nexthop bucket", "ip nexthop bucket"),
            ("ip nexthop add id 1 fdb via 10.0.0.1", "ip nexthop … fdb"),
            ("ip nexthop add id 1 group 2 type resilient buckets 8", "ip nexthop … type resilient"),
            ("ip xfrm state", "ip xfrm"),
            ("ip link xstats type bridge", "ip link xstats"),
            ("ip link add g type geneve id 1", "ip link add … type geneve"),
            ("ip mptcp endpoint show", "ip mptcp"),
        ] {
            let out = host.exec(command, Time::ZERO);
            assert_eq!(out.unsimulated(), Some(what), "{command}: {}", out.stderr);
            assert!(out.status != 0 && !out.diagnostics[0].help.is_empty(), "{command}");
        }
        for command in ["ip foo", "ip link add x type nosuch", "ip tcp_metrics", "ip tcp_metrics flush all"] {
            assert_eq!(host.exec(command, Time::ZERO).unsimulated(), None, "{command}");
        }
    }
}
