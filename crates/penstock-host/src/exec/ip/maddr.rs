//! `ip maddr`, `ip addrlabel`, `ip netconf`.
//!
//! Follows: linux v6.12 `net/core/dev_ioctl.c` `dev_ifsioc`; `net/ipv6/addrlabel.c` `ip6addrlbl_newdel`, `ip6addrlbl_dump`; `net/ipv4/devinet.c`
//! `inet_netconf_fill_devconf`, `inet_netconf_dump_devconf`, `net/ipv6/addrconf.c` `inet6_netconf_fill_devconf`.

use super::{Done, errno, quiet, says};
use crate::Host;
use crate::six::MIN_MTU;
use penstock_lang::ip::{self, AddrLabel, AddrLabelRequest, Failure, Family, Form, LabelView, NetconfView};
use penstock_model::KernelError;
use std::net::Ipv6Addr;

/// What `perror` says of an `ioctl`.
fn ioctl(error: &KernelError) -> Failure {
    says(1, format!("ioctl: {}", error.strerror()))
}

/// Of a family that has nothing of the kind.
fn dump_refused(end: &str, exit: i32) -> Failure {
    says(exit, format!("{}\n{end} terminated", KernelError::errno(KernelError::EOPNOTSUPP)))
}

impl Host {
    pub(super) fn maddr_show(&self, dev: Option<&str>, form: Form) -> Done {
        Ok(ip::groups(&self.group_views(), dev, form, self.kernel))
    }
    pub(super) fn maddr_change(&mut self, dev: &str, mac: [u8; 6], add: bool) -> Done {
        let Some(ifindex) = self.ifindex(dev) else {
            return Err(ioctl(&KernelError::errno(KernelError::ENODEV)));
        };
        self.hear_by_hand(ifindex, mac, add).map(|()| String::new()).map_err(|e| ioctl(&e))
    }

    pub(super) fn addr_label(&mut self, request: &AddrLabelRequest, form: Form) -> Done {
        let six = matches!(form.family, Family::Any | Family::Inet6);
        match request {
            AddrLabelRequest::List if !six => Err(dump_refused("Dump", 255)),
            AddrLabelRequest::Flush if !six => Err(dump_refused("Flush", 1)),
            AddrLabelRequest::List => {
                let name = |index: u32| self.device(index).map_or(format!("if{index}"), |d| d.name.clone());
                let view = |row: &crate::six::Label| LabelView {
                    prefix: Ipv6Addr::from(row.prefix),
                    len: row.len,
                    dev: (row.ifindex > 0).then(|| name(row.ifindex)),
                    label: row.label,
                };
                let all: Vec<LabelView> = self.devices.labels.iter().map(view).collect();
                Ok(ip::labels(&all, form, self.kernel))
            }
            AddrLabelRequest::Flush => {
                self.devices.labels.clear();
                Ok(String::new())
            }
            AddrLabelRequest::Add(label) => self.addr_label_change(label, true, six),
            AddrLabelRequest::Del(label) => self.addr_label_change(label, false, six),
        }
    }
    fn addr_label_change(&mut self, label: &AddrLabel, add: bool, six: bool) -> Done {
        let ifindex = match label.dev.as_deref() {
            None => 0,
            Some(name) => self
                .ifindex(name)
                .ok_or_else(|| says(255, format!("Error: argument \"{name}\" is wrong: dev is invalid\n")))?,
        };
        if let Some(refused) = &label.refused {
            return Err(refused.clone());
        }
        if !six {
            return Err(errno(KernelError::EOPNOTSUPP));
        }
        let Some((addr, len)) = label.six() else {
            return Err(self.no(KernelError::ERANGE, "Attribute failed policy validation"));
        };
        let labels = &mut self.devices.labels;
        quiet(match add {
            true => labels.add(addr, len, ifindex, label.label),
            false => labels.delete(addr, len, ifindex),
        })
    }

    pub(super) fn netconf_show(&self, dev: Option<&str>, form: Form) -> Done {
        let only = dev.map(|name| self.shown_dev(name).map(|_| name)).transpose()?;
        let single = only.is_some() && form.family != Family::Any;
        if !matches!(form.family, Family::Any | Family::Inet | Family::Inet6) {
            return Ok(ip::netconf(&[], single, form, self.kernel));
        }
        let mut all = Vec::new();
        for six in [false, true] {
            let other = if six { Family::Inet } else { Family::Inet6 };
            if form.family == other {
                continue;
            }
            let there = self.devices.iter().filter(|d| !six || d.mtu >= MIN_MTU).map(|d| d.name.as_str());
            let names = there.chain(["all", "default"]).filter(|name| only.is_none_or(|o| o == *name));
            all.extend(names.map(|name| self.netconf_view(name, six)));
        }
        Ok(ip::netconf(&all, single, form, self.kernel))
    }
    fn netconf_view(&self, name: &str, six: bool) -> NetconfView {
        let family = if six { "ipv6" } else { "ipv4" };
        let number = |key: &str| {
            let value = self.setting(&format!("net.{family}.conf.{name}.{key}"));
            value.and_then(|v| v.parse::<i64>().ok()).unwrap_or(0)
        };
        NetconfView {
            six,
            name: name.to_owned(),
            forwarding: number("forwarding") != 0,
            rp_filter: (!six).then(|| number("rp_filter") as u32),
            proxy_neigh: number(if six { "proxy_ndp" } else { "proxy_arp" }) != 0,
            ignores_linkdown: number("ignore_routes_with_linkdown") != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::{Kernel, Time};

    fn host(lines: &[&str]) -> Host {
        let mut host = Host::new("a", Kernel::V6_12, 1);
        for line in lines {
            let said = host.exec(line, Time::ZERO);
            assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
        }
        host
    }

    #[test]
    fn a_device_that_comes_up_is_in_groups_and_listens_for_them() {
        let mut host = host(&[
            "ip link add v0 address 02:00:00:00:00:03 type veth peer name v1",
            "ip link set v0 up",
            "ip link set v1 up",
            "ip addr add fd00::5/64 dev v0",
            "ip maddr add 01:00:5e:01:02:03 dev v0",
        ]);
        let mut said = |line: &str| host.exec(line, Time::ZERO).stdout;
        let shown = said("ip maddr show dev v0");
        for line in
            ["link  01:00:5e:01:02:03 static\n", "inet6 ff02::1:ff00:5\n", "link  33:33:ff:00:00:05\n"]
        {
            assert!(shown.contains(line), "{line} in {shown}");
        }
        assert_eq!(said("ip -4 -o maddr show dev v0").matches("\tv0\\\tinet  224.0.0.1\n").count(), 1);
        assert!(
            said("cat /proc/net/igmp")
                .contains("\tv0        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n")
        );
        said("ip link add link v0 name v0.5 type vlan id 5");
        said("ip link set v0.5 up");
        assert!(said("ip maddr show v0").contains("link  01:00:5e:00:00:01 users 2\n"));
        said("ip link del v0.5");
        assert!(said("ip maddr show v0").contains("link  01:00:5e:00:00:01\n"));
        said("ip link set v0 down");
        assert_eq!(
            said("ip -0 maddr show v0").trim_start_matches(|c: char| c.is_ascii_digit()),
            ":\tv0\n\tlink  01:00:5e:01:02:03 static\n"
        );
        assert_eq!(
            host.exec("ip maddr del 01:00:5e:01:02:04 dev v0", Time::ZERO).stderr,
            "ioctl: No such file or directory\n"
        );
    }

    #[test]
    fn a_label_makes_a_machine_speak_with_another_address() {
        let mut host = host(&[
            "ip link add d0 type dummy",
            "ip link set d0 up",
            "ip addr add 2001:db8::1/64 dev d0",
            "ip addr add fd00::1/64 dev d0",
        ]);
        let dst: Ipv6Addr = "2001:db8:ffff::1".parse().unwrap();
        let mut with = |lines: &[&str]| {
            for line in lines {
                assert_eq!(host.exec(line, Time::ZERO).stderr, "", "{line}");
            }
            host.select_source6(dst, 0).unwrap().to_string()
        };
        assert_eq!(with(&[]), "2001:db8::1");
        assert_eq!(
            with(&[
                "ip addrlabel add prefix fd00::/16 label 99",
                "ip addrlabel add prefix 2001:db8:ffff::/48 label 99"
            ]),
            "fd00::1"
        );
        assert_eq!(with(&["ip addrlabel del prefix fd00::/16 label 1"]), "2001:db8::1");
        assert_eq!(with(&["ip addrlabel add prefix fd00::/16 dev d0 label 99"]), "fd00::1");
        let twice = host.exec("ip addrlabel add prefix fd00:1::/16 dev d0 label 5", Time::ZERO);
        assert_eq!((twice.status, twice.stderr.as_str()), (2, "RTNETLINK answers: File exists\n"));
        assert_eq!(host.exec("ip -4 addrlabel", Time::ZERO).status, 255);
    }
}
