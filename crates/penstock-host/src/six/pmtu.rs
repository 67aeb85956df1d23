//! What is known of the paths to others: the largest packet that came through.
//!
//! Follows: linux v6.12 `net/ipv6/route.c` `__ip6_rt_update_pmtu`, `rt6_do_update_pmtu`, `rt6_mtu_change`; RFC 8201.

use super::{Hop6, Kind6, MIN_MTU, fib::Key6};
use crate::{Host, HostCx};
use penstock_model::{Span, Time};
use std::net::Ipv6Addr;

/// `ip6_rt_mtu_expires`.
const EXPIRES: Span = Span::from_secs(600);

impl Host {
    /// The largest packet that may be sent on a way (`ip6_mtu`).
    #[inline]
    pub(crate) fn mtu6(&self, hop: &Hop6, dst: Ipv6Addr, now: Time) -> u32 {
        let own = matches!(hop.kind, Some(Kind6::Local | Kind6::Anycast));
        let device = &self.devices[if own { 1 } else { hop.oif }];
        let said = if hop.mtu > 0 { hop.mtu } else { device.mtu6() };
        if self.six.path_mtu.is_empty() || self.paths.probed {
            return said;
        }
        match self.six.path_mtu.get(&dst) {
            Some(&(mtu, until)) if now < until => mtu.min(said),
            _ => said,
        }
    }
    /// A router could not send a packet on to `dst`: it was longer than `mtu`.
    pub(crate) fn too_big6(&mut self, dst: Ipv6Addr, mtu: u32, cx: &HostCx<'_>) {
        let hop = self.lookup6(&Key6::to(dst));
        if mtu < MIN_MTU || !hop.kind.is_some_and(Kind6::leads) || mtu >= self.mtu6(&hop, dst, cx.now) {
            return;
        }
        self.six.path_mtu.insert(dst, (mtu, cx.now + EXPIRES));
    }
    /// A device has another MTU: too small for IPv6, IPv6 leaves it; what was known of paths over it is forgotten where it was the limit.
    pub(crate) fn six_mtu_changed(&mut self, ifindex: u32, before: u32, now: Time) {
        let mtu = self.devices[ifindex].mtu;
        if mtu == before {
            return;
        }
        if mtu < MIN_MTU && before >= MIN_MTU {
            //= linux v6.12 net/ipv6/addrconf.c addrconf_notify: NETDEV_CHANGEMTU below IPV6_MIN_MTU
            self.six_down(ifindex);
            let begins = self.six.begins;
            let device = &mut self.devices[ifindex];
            device.addresses6.clear();
            device.six = super::Device6::new(begins);
            let own = format!("net.ipv6.conf.{}.", device.name);
            self.sysctl.kept.retain(|key, _| !key.starts_with(&own));
            self.neigh.forget_parms6(ifindex);
            self.groups_end_six(ifindex);
        } else if mtu >= MIN_MTU && before < MIN_MTU {
            self.groups_begin_six(ifindex);
            self.six_up(ifindex);
            self.ask_routers(ifindex, now);
        } else if mtu >= MIN_MTU {
            let conf = &mut self.devices[ifindex].six.conf;
            let said = std::mem::take(&mut conf.mtu);
            self.routes_take_mtu(ifindex, mtu, if said > 0 { said } else { before });
        }
        self.six.path_mtu.retain(|_, (known, _)| *known < mtu && *known < before);
        self.six.fib.invalidate();
    }
    /// A device comes up: what a router said of the link's MTU is over, it is the device's.
    pub(crate) fn six_forgets_mtu(&mut self, ifindex: u32) {
        let device = &mut self.devices[ifindex];
        let (said, mtu) = (std::mem::take(&mut device.six.conf.mtu), device.mtu);
        if said > 0 && said != mtu {
            self.routes_take_mtu(ifindex, mtu, said);
        }
    }
    /// The MTU of the route to `dst`; `None` where there is none. A socket's MSS follows from it.
    pub fn mtu_towards6(&mut self, dst: Ipv6Addr, now: Time) -> Option<u32> {
        let hop = self.lookup6(&Key6::to(dst));
        hop.kind.filter(|k| k.leads())?;
        Some(self.mtu6(&hop, dst, now))
    }
}
