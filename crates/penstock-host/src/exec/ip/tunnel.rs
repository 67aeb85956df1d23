//! `ip tunnel`, and what `ip link … type ipip|sit|gre|gretap|vxlan` says beyond a link.
//!
//! Follows: linux v6.12 `net/ipv4/ip_tunnel.c` `ip_tunnel_newlink`, `ip_tunnel_changelink`, `ip_tunnel_ctl`; `net/ipv4/ip_gre.c` `ipgre_link_update`;
//! `drivers/net/vxlan/vxlan_core.c` `vxlan_config_validate`; iproute2 6.1.0 `ip/iptunnel.c`, `ip/tunnel.c`.

use super::{Done, errno, says};
use crate::Host;
use crate::device::NetDevice;
use crate::tunnel::vxlan::{HEADROOM, Vxlan};
use crate::tunnel::{Tunnel, place};
use penstock_lang::ip::{
    self, Failure, Form, LinkData, LinkRequest, LinkVerb, TunnelRequest, TunnelSet, TunnelVerb, TunnelView,
    TunnelWords, VxlanSet,
};
use penstock_model::{KernelError, Time};

/// The kinds of [`Tunnel`].
const KINDS: [&str; 4] = ["ipip", "sit", "gre", "gretap"];

impl Host {
    /// The device that a tunnel's packets leave by: `dev`.
    fn link_of_tunnel(&self, dev: Option<&str>) -> Result<u32, Failure> {
        match dev {
            None => Ok(0),
            Some(dev) => self.ifindex(dev).ok_or_else(|| Failure { exit: 255, ..ip::no_device(dev) }),
        }
    }
    /// Another tunnel of the same ends and key over the same device (`ip_tunnel_find`).
    fn other_tunnel(&self, kind: &'static str, set: &TunnelSet, link: u32) -> Option<u32> {
        let same = self.tunnels.same(place(kind, set));
        same.filter(|&i| self.devices[i].tunnel.as_ref().is_some_and(|t| t.link == link))
    }
    /// Whether a new link that is a tunnel may be.
    pub(super) fn check_tunnel(&self, kind: &str, data: &LinkData) -> Result<(), Failure> {
        match (KINDS.into_iter().find(|k| *k == kind), data) {
            (Some(kind), LinkData::Tunnel(words)) => {
                let set = words.over(&TunnelSet::default());
                self.check_set(kind, &set)?;
                let link = self.link_of_tunnel(set.dev.as_deref())?;
                match self.other_tunnel(kind, &set, link) {
                    Some(_) => Err(errno(KernelError::EEXIST)),
                    None => Ok(()),
                }
            }
            (Some(kind), _) if self.other_tunnel(kind, &TunnelSet::default(), 0).is_some() => {
                Err(errno(KernelError::EEXIST))
            }
            (None, LinkData::Vxlan(set)) => {
                self.link_of_tunnel(set.dev.as_deref())?;
                // One whose packets bring their number has none of its own.
                let external = set.asked.iter().any(|word| word == "external");
                let Some(id) = set.id.or(external.then_some(0)) else {
                    return Err(errno(KernelError::EINVAL));
                };
                match self.has_vni(set.dstport, id) {
                    true => {
                        Err(self
                            .no(KernelError::EEXIST, "A VXLAN device with the specified VNI already exists"))
                    }
                    false => Ok(()),
                }
            }
            (None, _) if kind == "vxlan" => {
                let sentence = "Required attributes not provided to perform the operation";
                Err(self.no(KernelError::EINVAL, sentence))
            }
            _ => Ok(()),
        }
    }
    /// `ipgre_netlink_parms`, `ip_tunnel_newlink`: what cannot be together.
    fn check_set(&self, kind: &str, set: &TunnelSet) -> Result<(), Failure> {
        let gre = matches!(kind, "gre" | "gretap");
        if gre && set.ignore_df && set.pmtudisc {
            return Err(errno(KernelError::EINVAL));
        }
        if set.remote.is_multicast() {
            return Err(says(255, format!("remote {}: tunnels to a group are not known here", set.remote)));
        }
        Ok(())
    }
    /// A new device is a tunnel. Its MTU follows, unless that was said.
    pub(super) fn become_tunnel(&mut self, ifindex: u32, data: &LinkData, mtu_said: bool, by_link: bool) {
        let kind = self.devices[ifindex].class.kind;
        if let LinkData::Vxlan(set) = data {
            self.become_vxlan(ifindex, set, mtu_said);
            return;
        }
        if !KINDS.contains(&kind) {
            return;
        }
        let set = match data {
            LinkData::Tunnel(words) => words.over(&TunnelSet::default()),
            _ => TunnelSet::default(),
        };
        let link = set.dev.as_deref().and_then(|d| self.ifindex(d)).unwrap_or(0);
        let tunnel = Tunnel::new(set.clone(), link, by_link);
        let mtu = self.tunnel_mtu(kind, &tunnel);
        self.bind_tunnel(ifindex, tunnel);
        let device = &mut self.devices[ifindex];
        if !mtu_said {
            device.mtu = mtu;
        }
        device.data = LinkData::TunnelSet(Box::new(set));
    }
    fn become_vxlan(&mut self, ifindex: u32, set: &VxlanSet, mtu_said: bool) {
        let link = set.dev.as_deref().and_then(|d| self.ifindex(d));
        let room = link.map(|l| self.devices[l].mtu.saturating_sub(HEADROOM).max(68));
        if let (Some(mtu), false) = (room, mtu_said) {
            self.devices[ifindex].mtu = mtu;
        }
        self.bind_vxlan(ifindex, Vxlan::new(set.clone(), link.unwrap_or(0)));
    }
    /// `ip_tunnel_changelink`.
    pub(super) fn change_tunnel(
        &mut self,
        ifindex: u32,
        words: &TunnelWords,
        mtu_said: bool,
        now: Time,
    ) -> Result<(), Failure> {
        let device = &self.devices[ifindex];
        let kind = device.class.kind;
        let Some(before) = device.tunnel.as_deref().cloned() else {
            return Err(errno(KernelError::EOPNOTSUPP));
        };
        let set = words.over(&before.set);
        self.check_set(kind, &set)?;
        let link = self.link_of_tunnel(set.dev.as_deref())?;
        match self.other_tunnel(kind, &set, link) {
            Some(other) if other != ifindex => return Err(errno(KernelError::EEXIST)),
            Some(_) => {}
            // An end that is one stays one.
            None if set.remote.is_unspecified() != before.set.remote.is_unspecified() => {
                return Err(errno(KernelError::EINVAL));
            }
            None => {}
        }
        let tunnel = Tunnel::new(set.clone(), link, before.by_link);
        let follows = link != before.link || set.fwmark != before.set.fwmark;
        let (was, is) = (self.tunnel_mtu(kind, &before), self.tunnel_mtu(kind, &tunnel));
        let own = self.devices[ifindex].mtu;
        let mtu = match follows {
            true => is,
            // A header that has grown takes of the MTU.
            false if set.remote == before.set.remote => own.saturating_add(is).saturating_sub(was).max(68),
            false => own,
        };
        self.bind_tunnel(ifindex, tunnel);
        self.devices[ifindex].data = LinkData::TunnelSet(Box::new(set));
        if !mtu_said && mtu != own {
            self.set_mtu(ifindex, mtu, now).map_err(|e| ip::refused(&e))?;
        }
        Ok(())
    }

    /// `ip tunnel add|change|delete`.
    pub(super) fn tunnel_request(&mut self, r: &TunnelRequest, now: Time) -> Done {
        let base = match r.kind {
            Some("ipip") => "tunl0",
            Some("sit") => "sit0",
            _ => "gre0",
        };
        let failed = |what: &str, name: &str, why: &str| Failure {
            stderr: format!("{what} tunnel \"{name}\" failed: {why}\n"),
            exit: 1,
            word: 0,
            help: String::new(),
        };
        let name = r.name.clone().unwrap_or_default();
        match r.verb {
            TunnelVerb::Add => {
                let kind = r.kind.unwrap_or("gre");
                let name = r.name.clone().unwrap_or_else(|| {
                    let stem = if kind == "ipip" { "tunl" } else { kind };
                    let mut free = (1u32..).map(|n| format!("{stem}{n}"));
                    free.find(|name| self.ifindex(name).is_none()).unwrap_or_default()
                });
                let set = r.words.over(&TunnelSet::default());
                let link = self.link_of_tunnel(set.dev.as_deref())?;
                if self.ifindex(&name).is_some() || self.other_tunnel(kind, &set, link).is_some() {
                    return Err(failed("add", base, "File exists"));
                }
                let request = LinkRequest {
                    verb: LinkVerb::Add,
                    dev: Some(name.clone()),
                    name: Some(name.clone()),
                    kind: Some(kind.to_owned()),
                    data: LinkData::Tunnel(Box::new(r.words.clone())),
                    ..LinkRequest::default()
                };
                self.link_request(&request, now)?;
                if let Some(tunnel) = self.ifindex(&name).and_then(|i| self.devices[i].tunnel.as_deref_mut())
                {
                    tunnel.by_link = false;
                }
            }
            TunnelVerb::Change => match self.tunnel_called(&name) {
                Some(ifindex) => self.change_tunnel(ifindex, &r.words, false, now)?,
                None => return Err(failed("get", &name, "No such device")),
            },
            TunnelVerb::Del => match self.tunnel_called(&name) {
                Some(ifindex) => self.delete_link(ifindex, now),
                None => return Err(failed("delete", &name, "No such device")),
            },
        }
        Ok(String::new())
    }
    fn tunnel_called(&self, name: &str) -> Option<u32> {
        self.ifindex(name).filter(|&i| view(&self.devices[i]).is_some())
    }
    /// `ip tunnel show`.
    pub(super) fn tunnel_show(&self, name: Option<&str>, form: Form) -> Done {
        let views: Vec<TunnelView> = match name {
            None => self.devices.by_age().into_iter().filter_map(view).collect(),
            Some(name) => match self.tunnel_called(name).and_then(|i| view(&self.devices[i])) {
                Some(view) => vec![view],
                None => {
                    let stderr = format!("get tunnel \"{name}\" failed: No such device\n");
                    return Err(Failure { stderr, exit: 1, word: 0, help: String::new() });
                }
            },
        };
        Ok(ip::tunnels(&views, form, self.kernel))
    }
}

/// A device as `ip tunnel` shows it; `None` of other devices.
fn view(d: &NetDevice) -> Option<TunnelView> {
    let tunnel = d.tunnel.as_deref()?;
    let kind = KINDS.into_iter().find(|k| *k == d.class.kind && *k != "gretap")?;
    Some(TunnelView { name: d.name.clone(), kind, set: tunnel.set.clone() })
}
