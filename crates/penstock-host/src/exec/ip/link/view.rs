//! A device as `ip link`, `ip addr` and `bridge link` show it.
//!
//! Follows: linux v6.12 net/core/rtnetlink.c `rtnl_fill_ifinfo`.
//! Differs: none known.

use crate::Host;
use crate::device::{ALLMULTI, PROMISC};
use penstock_lang::ip::{Details, LinkData, LinkRef, LinkView, NetnsRef};
use penstock_model::{Kernel, Time};

impl Host {
    /// A device as listings show it.
    pub(crate) fn link_view(&self, ifindex: u32, now: Time) -> LinkView {
        let d = &self.devices[ifindex];
        let at = d.tunnel.as_ref().map(|t| match self.devices.get(t.link) {
            Some(l) => LinkRef::Here(l.name.clone(), l.up),
            None => LinkRef::None,
        });
        let link = d.lower.map(|lower| match lower.space == self.space {
            true => match self.devices.get(lower.ifindex) {
                Some(l) => LinkRef::Here(l.name.clone(), l.up),
                None => LinkRef::Away(lower.ifindex),
            },
            false => LinkRef::Away(lower.ifindex),
        });
        let link = link.or(at);
        let ends = d.tunnel.as_ref().filter(|_| !d.has_header_of_ethernet());
        let ends = ends.map(|t| (t.set.local, t.set.remote));
        let (min_mtu, max_mtu) = d.mtu_bounds();
        let away = d.lower.filter(|lower| lower.space != self.space);
        let link_netns = away.and_then(|lower| {
            let id = self.space_numbers.iter().find(|n| n.0 == lower.space)?.1;
            Some(match self.space_name(lower.space) {
                Some(name) => NetnsRef::Named(name.to_owned(), id),
                None => NetnsRef::Number(id),
            })
        });
        let master = d.master.and_then(|m| self.devices.get(m));
        let qdisc = match self.dump_qdiscs(ifindex, now).first() {
            Some(root) => root.kind,
            None if d.up && self.kernel == Kernel::V2_6_35 => "noqueue",
            None => "noop",
        };
        let carried = self.counters(d);
        let max_mtu = match self.lower_of(d) {
            Some(below) if d.macvlan.is_some() => below.mtu_bounds().1,
            _ => max_mtu,
        };
        LinkView {
            ifindex,
            name: d.name.clone(),
            link,
            flags: self.link_flags(d),
            mtu: d.mtu,
            qdisc: qdisc.to_owned(),
            master: master.map(|m| m.name.clone()),
            state: self.operstate(d),
            group: d.group,
            qlen: d.tx_queue_len,
            loopback: d.loopback,
            link_type: d.class.link_type,
            mac: d.mac,
            ends,
            errors: [d.errors.rx, d.errors.rx_frame, d.errors.tx, d.errors.carrier, d.errors.collisions],
            link_netns,
            alias: d.alias.clone(),
            altnames: d.altnames.clone(),
            details: Details {
                promiscuity: u32::from(d.flags & PROMISC != 0) + self.made_promiscuous(d),
                allmulti: u32::from(d.flags & ALLMULTI != 0) + u32::from(self.bridge_of(d.ifindex).is_some()),
                min_mtu,
                max_mtu,
                kind: if d.loopback || d.teql.is_some() {
                    String::new()
                } else {
                    d.class.type_name().to_owned()
                },
                data: d.data.clone(),
                slave_kind: master.map_or_else(String::new, |m| m.class.type_name().to_owned()),
                slave_data: master.map_or(LinkData::None, |m| m.data.clone()),
                said: self.master_says(d, now),
                slave_said: self.port_says(d, now),
                addr_gen_mode: d.six.conf.addr_gen_mode.name().to_owned(),
                queues: d.queues,
                gso: (
                    d.gso.size.unwrap_or(65_536),
                    d.gso.segments.unwrap_or(65_535),
                    d.gso.gro_size.unwrap_or(65_536),
                ),
                tso_max_size: self.tso_max_size(d),
            },
            rx: (carried.rx_bytes, carried.rx_packets, carried.rx_dropped),
            otherhost: carried.rx_otherhost,
            multicast: carried.rx_multicast,
            tx: (carried.tx_bytes, carried.tx_packets, carried.tx_dropped),
            addresses: self.address_views(ifindex, now),
        }
    }
}
