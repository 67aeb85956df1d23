//! `ip neigh`.
//!
//! Follows: linux v6.12 `net/core/neighbour.c` `neigh_add`, `neigh_delete`, `neigh_get`, `neigh_dump_table`.

use super::{Done, errno};
use crate::device::{LOOPBACK, NOARP, POINTOPOINT};
use crate::neigh::Proxy;
use crate::six::{MIN_MTU, group_mac};
use crate::{Host, HostCx, Nud, Timer};
use penstock_lang::ip::{self, Family, Form, NeighFilter, NeighSpec, NeighVerb, NeighView};
use penstock_model::{KernelError, Time};
use penstock_packet::Pool;
use std::net::{IpAddr, Ipv4Addr};

/// `NUD_*` of a state.
fn bit(state: Nud) -> u16 {
    match state {
        Nud::None => 0,
        Nud::Incomplete => 0x01,
        Nud::Reachable => 0x02,
        Nud::Stale => 0x04,
        Nud::Delay => 0x08,
        Nud::Probe => 0x10,
        Nud::Failed => 0x20,
        Nud::Noarp => 0x40,
        Nud::Permanent => 0x80,
    }
}

fn of_family(family: Family, addr: IpAddr) -> bool {
    match family {
        Family::Inet => addr.is_ipv4(),
        Family::Inet6 => addr.is_ipv6(),
        _ => true,
    }
}

impl Host {
    pub(super) fn neigh_change(&mut self, verb: NeighVerb, spec: &NeighSpec, now: Time) -> Done {
        let ifindex = spec.dev.as_deref().map(|name| self.dev(name)).transpose()?;
        let addr = spec.addr;
        let Some(ifindex) = ifindex.filter(|_| !spec.proxy) else {
            return self.neigh_proxy(verb, ifindex.unwrap_or(0), spec);
        };
        let found = self.neigh.find(ifindex, addr);
        match verb {
            NeighVerb::Get => match found {
                Some(at) => {
                    let view = self.neigh_view(at, true, now);
                    Ok(ip::neighbours(&[view], Form::default(), self.kernel))
                }
                None => Err(self.no(KernelError::ENOENT, "Neighbour entry not found")),
            },
            NeighVerb::Del => match found {
                Some(at) => {
                    self.neigh_delete(at);
                    Ok(String::new())
                }
                None => Err(errno(KernelError::ENOENT)),
            },
            NeighVerb::Add | NeighVerb::Change | NeighVerb::Replace => {
                if spec.mac.as_ref().is_some_and(|mac| mac.len() < 6) {
                    return Err(self.no(KernelError::EINVAL, "Invalid link address"));
                }
                let device = &self.devices[ifindex];
                //= linux v6.12 net/ipv6/ndisc.c ndisc_allow_add
                if addr.is_ipv6() && (device.mtu < MIN_MTU || device.six.conf.disabled) {
                    return Err(self.no(KernelError::EINVAL, "IPv6 is disabled on this device"));
                }
                let at = match found {
                    Some(_) if verb == NeighVerb::Add => return Err(errno(KernelError::EEXIST)),
                    Some(at) => at,
                    None if verb == NeighVerb::Change => return Err(errno(KernelError::ENOENT)),
                    None if spec.managed && spec.state & 0x80 != 0 => {
                        return Err(self.no(KernelError::EINVAL, "Invalid NTF_* flag for permanent entry"));
                    }
                    None => self.neigh_create(ifindex, addr, now),
                };
                self.neigh_put(at, spec, now)
            }
        }
    }

    /// `___neigh_create` by a command, with what `arp_constructor` and `ndisc_constructor` make of it: a refused one stays.
    fn neigh_create(&mut self, ifindex: u32, addr: IpAddr, now: Time) -> u32 {
        let device = &self.devices[ifindex];
        let (flags, own) = (device.flags, device.mac);
        let fixed = match addr {
            IpAddr::V4(a) if a.is_multicast() && flags & (LOOPBACK | POINTOPOINT) == 0 => {
                let [_, b, c, d] = a.octets();
                Some([0x01, 0, 0x5e, b & 0x7f, c, d])
            }
            IpAddr::V6(a) if a.is_multicast() && flags & LOOPBACK == 0 => Some(group_mac(a)),
            _ if flags & (NOARP | LOOPBACK) != 0 => Some(own),
            _ if flags & POINTOPOINT != 0 => Some([0xff; 6]),
            IpAddr::V4(a)
                if device.addresses.iter().any(|d| d.network().broadcast() == a && d.network().len < 31) =>
            {
                Some([0xff; 6])
            }
            _ => None,
        };
        // There all neighbours are one.
        let addr = match addr {
            IpAddr::V4(_) if flags & (LOOPBACK | POINTOPOINT) != 0 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            addr => addr,
        };
        let at = self.neigh.find_or_create(ifindex, addr, now);
        if let Some(mac) = fixed.filter(|_| self.neigh.at(at).state == Nud::None) {
            let n = self.neigh.at_mut(at);
            (n.state, n.mac) = (Nud::Noarp, mac);
        }
        at
    }

    /// `__neigh_update` as a command has it.
    fn neigh_put(&mut self, at: u32, spec: &NeighSpec, now: Time) -> Done {
        let n = self.neigh.at_mut(at);
        let (ifindex, addr, old) = (n.ifindex, n.addr, n.state);
        if spec.protocol != 0 {
            n.protocol = spec.protocol;
        }
        (n.extern_learn, n.managed) = (spec.extern_learn, spec.managed);
        if spec.used || spec.managed {
            //= linux v6.12 net/core/neighbour.c __neigh_update: the state is the kernel's to say, and so is the address
            n.state = if n.state == Nud::Permanent { Nud::None } else { n.state };
            self.neigh_use(ifindex, at, now);
            if spec.managed {
                let words = format!("ip neigh {addr} managed: it is asked for once, and not kept known");
                self.unfollowed.insert(words);
            }
            return Ok(String::new());
        }
        const VALID: u16 = 0x80 | 0x40 | 0x02 | 0x04 | 0x08 | 0x10;
        let said = spec.mac.as_deref().and_then(|mac| <[u8; 6]>::try_from(mac.get(..6)?).ok());
        let mac = match said {
            Some(mac) => mac,
            None if spec.state & VALID == 0 || old.is_valid() => n.mac,
            None => return Err(self.no(KernelError::EINVAL, "No link layer address given")),
        };
        if spec.state & VALID != 0 {
            n.router = spec.router;
        }
        self.neigh_set(ifindex, addr, mac, spec.state, now);
        Ok(String::new())
    }

    fn neigh_proxy(&mut self, verb: NeighVerb, ifindex: u32, spec: &NeighSpec) -> Done {
        let addr = spec.addr;
        let at = self.proxies.iter().position(|p| p.ifindex == ifindex && p.addr == addr);
        match (verb, at) {
            (NeighVerb::Get, None) => Err(self.no(KernelError::ENOENT, "Proxy neighbour entry not found")),
            (NeighVerb::Get, Some(at)) => {
                let view = self.proxy_view(&self.proxies[at], true);
                Ok(ip::neighbours(&[view], Form::default(), self.kernel))
            }
            (NeighVerb::Del, None) => Err(errno(KernelError::ENOENT)),
            (NeighVerb::Del, Some(_)) => {
                self.remove_proxies(|_, p| (p.ifindex, p.addr) == (ifindex, addr));
                Ok(String::new())
            }
            _ if spec.managed => Err(self.no(KernelError::EINVAL, "Invalid NTF_* flag combination")),
            //= linux v6.12 net/ipv6/ndisc.c pndisc_constructor: not without a device
            (_, None) if addr.is_ipv6() && ifindex == 0 => Err(errno(105)),
            (_, at) => {
                let protocol = match (at, spec.protocol) {
                    (Some(at), 0) => self.proxies[at].protocol,
                    (_, protocol) => protocol,
                };
                let (router, extern_learn) = (spec.router, spec.extern_learn);
                let new = Proxy { ifindex, addr, router, extern_learn, protocol };
                match at {
                    Some(at) => self.proxies[at] = new,
                    None => self.add_proxy(new),
                }
                Ok(String::new())
            }
        }
    }

    fn neigh_view(&self, at: u32, dev: bool, now: Time) -> NeighView {
        let n = self.neigh.at(at);
        let age = |tick: i64| {
            let hz = i64::from(self.kernel.hz());
            u64::try_from((crate::timer::jiffies(self.kernel, now) - tick) / hz).unwrap_or(0)
        };
        NeighView {
            addr: n.addr,
            dev: self.device(n.ifindex).filter(|_| dev).map(|d| d.name.clone()),
            mac: n.state.is_valid().then_some(n.mac),
            state: bit(n.state),
            router: n.router,
            proxy: false,
            extern_learn: n.extern_learn,
            managed: n.managed,
            protocol: n.protocol,
            ages: (age(n.used), age(n.confirmed), age(n.updated), n.probes),
        }
    }
    fn proxy_view(&self, p: &Proxy, dev: bool) -> NeighView {
        NeighView {
            addr: p.addr,
            dev: self.device(p.ifindex).filter(|_| dev).map(|d| d.name.clone()),
            mac: None,
            state: 0,
            router: p.router,
            proxy: true,
            extern_learn: p.extern_learn,
            managed: false,
            protocol: p.protocol,
            ages: (0, 0, 0, 0),
        }
    }

    pub(super) fn neigh_show(&mut self, f: &NeighFilter, form: Form, now: Time) -> Done {
        let (only, master) = self.neigh_devices(f)?;
        let views: Vec<NeighView> = if f.proxy {
            let chosen = self.proxies.iter().filter(|p| self.proxy_is_chosen(p, f, only, master));
            chosen.map(|p| self.proxy_view(p, only.is_none())).collect()
        } else {
            let all = self.neigh_chosen(f, (only, master), f.states.unwrap_or(0xff & !0x40));
            all.into_iter().map(|at| self.neigh_view(at, only.is_none(), now)).collect()
        };
        Ok(ip::neighbours(&views, form, self.kernel))
    }
    /// The device, and the master of devices, that a listing is of.
    fn neigh_devices(&mut self, f: &NeighFilter) -> Result<(Option<u32>, Option<u32>), ip::Failure> {
        let wrong = |name: &str| {
            super::says(255, format!("Error: argument \"{name}\" is wrong: Device does not exist\n"))
        };
        let master = match (f.master.as_deref(), f.master_is_vrf) {
            (None, _) => None,
            (Some(name), true) => Some(self.vrf_called(name, "Not a valid VRF name\n")?),
            (Some(name), false) => Some(self.ifindex(name).ok_or_else(|| wrong(name))?),
        };
        Ok((f.dev.as_deref().map(|d| self.dev(d)).transpose()?, master))
    }
    fn is_below(&self, ifindex: u32, master: Option<u32>, f: &NeighFilter) -> bool {
        let of = self.device(ifindex).and_then(|d| d.master);
        master.is_none_or(|m| of == Some(m)) && (!f.nomaster || of.is_none())
    }
    fn proxy_is_chosen(&self, p: &Proxy, f: &NeighFilter, only: Option<u32>, master: Option<u32>) -> bool {
        only.is_none_or(|i| i == p.ifindex)
            && self.is_below(p.ifindex, master, f)
            && (f.protocol == 0 || f.protocol == p.protocol)
            && f.to.is_none_or(|net| net.contains(p.addr))
            && of_family(f.family, p.addr)
    }
    fn neigh_chosen(&self, f: &NeighFilter, of: (Option<u32>, Option<u32>), states: u16) -> Vec<u32> {
        let (only, master) = of;
        let wanted = self.neigh.iter().filter(|n| {
            let state = bit(n.state);
            only.is_none_or(|i| i == n.ifindex)
                && (state & states != 0 || state == 0 && states & 0x100 != 0 || n.extern_learn)
                && (f.protocol == 0 || f.protocol == n.protocol)
                // Its timer holds it.
                && !(f.unused && n.timer.is_some())
                && self.is_below(n.ifindex, master, f)
                && f.to.is_none_or(|net| net.contains(n.addr))
                && of_family(f.family, n.addr)
        });
        wanted.filter_map(|n| self.neigh.find(n.ifindex, n.addr)).collect()
    }

    pub(super) fn neigh_flush_some(&mut self, f: &NeighFilter, form: Form) -> Done {
        let (only, master) = self.neigh_devices(f)?;
        let mut gone = 0;
        if f.proxy {
            gone = self.remove_proxies(|host, p| host.proxy_is_chosen(p, f, only, master));
        } else {
            // `all` spares those that need no asking.
            let states = f.states.map(|s| if s & 0x1ff == 0x1ff { s & !0x40 } else { s });
            for at in self.neigh_chosen(f, (only, master), states.unwrap_or(0xff & !(0x80 | 0x40) | 0x100)) {
                self.neigh_delete(at);
                gone += 1;
            }
        }
        Ok(super::rounds(gone, form))
    }

    /// `neigh_event_send` without a packet.
    fn neigh_use(&mut self, ifindex: u32, at: u32, now: Time) {
        let (mut pool, mut out) = (Pool::new(), std::mem::take(&mut self.pending));
        let mut cx = HostCx { now, pool: &mut pool, out: &mut out };
        if self.neigh_event(ifindex, at, None, &mut cx).2 {
            // A command has no frames to give: the next thing that happens here is the question.
            self.timers.insert(now, Timer::Solicit(at));
        }
        out.append(&mut self.pending);
        self.pending = out;
    }
    /// Enters a neighbour by hand; what waited for it goes out.
    pub(crate) fn neigh_set(&mut self, ifindex: u32, addr: IpAddr, mac: [u8; 6], state: u16, now: Time) {
        let at = self.neigh.find_or_create(ifindex, addr, now);
        let state = match state {
            0x02 => Nud::Reachable,
            0x04 => Nud::Stale,
            0x08 => Nud::Delay,
            0x10 => Nud::Probe,
            0x40 => Nud::Noarp,
            0x80 => Nud::Permanent,
            other => {
                self.neigh_timer(at, None);
                let n = self.neigh.at_mut(at);
                n.state = match other {
                    0x01 => Nud::Incomplete,
                    0x20 => Nud::Failed,
                    _ => Nud::None,
                };
                return;
            }
        };
        let old = self.neigh.at(at).state;
        if matches!(old, Nud::Permanent | Nud::Noarp) || state == Nud::Stale && old.is_valid() {
            self.neigh_timer(at, None);
            self.neigh.at_mut(at).state = Nud::Stale;
        }
        let (mut pool, mut out) = (Pool::new(), std::mem::take(&mut self.pending));
        let mut cx = HostCx { now, pool: &mut pool, out: &mut out };
        self.neigh_update(at, mac, state, true, &mut cx);
        out.append(&mut self.pending);
        self.pending = out;
    }
}
