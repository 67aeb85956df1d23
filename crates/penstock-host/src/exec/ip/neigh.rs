//! `ip neigh`.
//!
//! Follows: linux v6.12 `net/core/neighbour.c` `neigh_add`, `neigh_delete`, `neigh_get`, `neigh_dump_table`.

use super::{Done, errno};
use crate::{Host, HostCx, Nud};
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

impl Host {
    pub(super) fn neigh_change(&mut self, verb: NeighVerb, spec: &NeighSpec, now: Time) -> Done {
        let ifindex = self.dev(&spec.dev)?;
        let addr = spec.addr;
        if spec.proxy {
            let IpAddr::V4(addr) = addr else {
                let help = "neighbour discovery on behalf of others is not simulated".to_owned();
                return Err(ip::Failure { help, ..errno(KernelError::EOPNOTSUPP) });
            };
            return self.neigh_proxy(verb, ifindex, addr);
        }
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
            NeighVerb::Add if found.is_some() => Err(errno(KernelError::EEXIST)),
            NeighVerb::Change if found.is_none() => Err(errno(KernelError::ENOENT)),
            NeighVerb::Add | NeighVerb::Change | NeighVerb::Replace => {
                if spec.used || spec.managed {
                    //= linux v6.12 net/core/neighbour.c __neigh_update: the state is the kernel's to say, and so is the address
                    let at = self.neigh.find_or_create(ifindex, addr, now);
                    let n = self.neigh.at_mut(at);
                    n.state = if n.state == Nud::Permanent { Nud::None } else { n.state };
                    self.neigh_use(ifindex, at, now);
                } else {
                    self.neigh_put(ifindex, found, spec, now)?;
                }
                if spec.managed {
                    let words = format!("ip neigh {addr} managed: it is asked for once, and not kept known");
                    self.unfollowed.insert(words);
                }
                if let Some(at) = self.neigh.find(ifindex, addr) {
                    let n = self.neigh.at_mut(at);
                    (n.router, n.extern_learn, n.managed) = (spec.router, spec.extern_learn, spec.managed);
                }
                Ok(String::new())
            }
        }
    }

    /// Enters what a command says of a neighbour.
    fn neigh_put(
        &mut self,
        ifindex: u32,
        found: Option<u32>,
        spec: &NeighSpec,
        now: Time,
    ) -> Result<(), ip::Failure> {
        let known = found.map(|at| self.neigh.at(at).mac).filter(|m| *m != [0; 6]);
        let mac = match spec.mac.as_deref() {
            None => known,
            Some(bytes) => match <[u8; 6]>::try_from(bytes) {
                Ok(mac) => Some(mac),
                Err(_) => {
                    return Err(self.no(KernelError::EINVAL, "Invalid link address"));
                }
            },
        };
        let valid = spec.state & (0x80 | 0x40 | 0x02 | 0x04 | 0x08 | 0x10) != 0;
        let Some(mac) = mac.or((!valid).then_some([0; 6])) else {
            return Err(self.no(KernelError::EINVAL, "No link layer address given"));
        };
        self.neigh_set(ifindex, spec.addr, mac, spec.state, now);
        Ok(())
    }

    fn neigh_proxy(&mut self, verb: NeighVerb, ifindex: u32, addr: Ipv4Addr) -> Done {
        let there = self.proxies.contains(&(ifindex, addr));
        match verb {
            NeighVerb::Del | NeighVerb::Get if !there => Err(errno(KernelError::ENOENT)),
            NeighVerb::Del => {
                self.proxies.retain(|p| *p != (ifindex, addr));
                Ok(String::new())
            }
            _ => {
                if !there {
                    self.proxies.push((ifindex, addr));
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
            ages: (age(n.used), age(n.confirmed), age(n.updated), n.probes),
        }
    }

    pub(super) fn neigh_show(&mut self, f: &NeighFilter, form: Form, now: Time) -> Done {
        let only = f.dev.as_deref().map(|d| self.dev(d)).transpose()?;
        let master = match (f.master.as_deref(), f.master_is_vrf) {
            (None, _) => None,
            (Some(name), true) => Some(self.vrf_called(name, "Not a valid VRF name\n")?),
            (Some(name), false) => Some(self.dev(name)?),
        };
        let proxy = |&(ifindex, addr): &(u32, Ipv4Addr)| NeighView {
            addr: IpAddr::V4(addr),
            dev: self.device(ifindex).filter(|_| only.is_none()).map(|d| d.name.clone()),
            mac: None,
            state: 0,
            router: false,
            proxy: true,
            extern_learn: false,
            managed: false,
            ages: (0, 0, 0, 0),
        };
        let views: Vec<NeighView> = if f.proxy {
            self.proxies.iter().filter(|p| only.is_none_or(|i| i == p.0)).map(proxy).collect()
        } else {
            let all = self.neigh_chosen(f, only, f.states.unwrap_or(0xff & !0x40));
            let on = |at: &u32| {
                let ifindex = self.neigh.at(*at).ifindex;
                master.is_none_or(|m| self.device(ifindex).is_some_and(|d| d.master == Some(m)))
            };
            all.into_iter().filter(on).map(|at| self.neigh_view(at, only.is_none(), now)).collect()
        };
        Ok(ip::neighbours(&views, form, self.kernel))
    }
    fn neigh_chosen(&self, f: &NeighFilter, only: Option<u32>, states: u16) -> Vec<u32> {
        let wanted = self.neigh.iter().filter(|n| {
            let state = bit(n.state);
            only.is_none_or(|i| i == n.ifindex)
                && (state & states != 0 || state == 0 && states & 0x100 != 0)
                && f.to.is_none_or(|net| net.contains(n.addr))
                && match f.family {
                    Family::Inet => n.addr.is_ipv4(),
                    Family::Inet6 => n.addr.is_ipv6(),
                    _ => true,
                }
        });
        wanted.filter_map(|n| self.neigh.find(n.ifindex, n.addr)).collect()
    }

    pub(super) fn neigh_flush_some(&mut self, f: &NeighFilter) -> Done {
        let only = f.dev.as_deref().map(|d| self.dev(d)).transpose()?;
        for at in self.neigh_chosen(f, only, f.states.unwrap_or(0xff & !(0x80 | 0x40))) {
            self.neigh_delete(at);
        }
        Ok(String::new())
    }

    /// `neigh_event_send` without a packet.
    fn neigh_use(&mut self, ifindex: u32, at: u32, now: Time) {
        let (mut pool, mut out) = (Pool::new(), std::mem::take(&mut self.pending));
        let mut cx = HostCx { now, pool: &mut pool, out: &mut out };
        self.neigh_event_send(ifindex, at, None, &mut cx);
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
                let n = self.neigh.at_mut(at);
                n.state = match other {
                    0x01 => Nud::Incomplete,
                    0x20 => Nud::Failed,
                    _ => Nud::None,
                };
                return;
            }
        };
        if matches!(self.neigh.at(at).state, Nud::Permanent | Nud::Noarp) {
            self.neigh.at_mut(at).state = Nud::Stale;
        }
        let (mut pool, mut out) = (Pool::new(), std::mem::take(&mut self.pending));
        let mut cx = HostCx { now, pool: &mut pool, out: &mut out };
        self.neigh_update(at, mac, state, true, &mut cx);
        out.append(&mut self.pending);
        self.pending = out;
    }
}
