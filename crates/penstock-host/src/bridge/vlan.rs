//! VLANs of a bridge: who may send and receive which, and with a tag or without.
//!
//! Follows: linux v6.12 `net/bridge/br_vlan.c` `br_allowed_ingress`, `br_allowed_egress`, `br_handle_vlan`, `br_should_learn`, `br_vlan_add`,
//! `nbp_vlan_add`, `br_vlan_delete`, `nbp_vlan_delete`, `__br_vlan_set_default_pvid`, `nbp_vlan_init`; `br_netlink.c` `br_process_vlan_info`.

use super::{Bridge, Macs};
use crate::vlan::VID_MASK;
use crate::{Host, NetDevice};
use penstock_model::{Kernel, KernelError, Time};
use penstock_packet::Skb;
use std::collections::BTreeMap;

/// 802.1Q.
const ETH_P_8021Q: u16 = 0x8100;
/// 802.1ad.
pub(crate) const ETH_P_8021AD: u16 = 0x88a8;

/// The VLANs of a port, or of the bridge itself (`net_bridge_vlan_group`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Group {
    /// The VLAN of frames without a tag; 0: they are lost.
    pub pvid: u16,
    /// Identifiers, 1 to 4094, and whether their frames leave `untagged`.
    vlans: BTreeMap<u16, bool>,
}

impl Group {
    /// `br_vlan_find` and `br_vlan_should_use`.
    pub(super) fn has(&self, vid: u16) -> bool {
        self.vlans.contains_key(&vid)
    }
    /// Identifiers, and whether their frames leave untagged.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, bool)> {
        self.vlans.iter().map(|(vid, untagged)| (*vid, *untagged))
    }
    /// `__vlan_add_flags`; answers whether the VLAN is new.
    fn set(&mut self, vid: u16, pvid: bool, untagged: bool) -> bool {
        if pvid {
            self.pvid = vid;
        } else if self.pvid == vid {
            self.pvid = 0;
        }
        self.vlans.insert(vid, untagged).is_none()
    }
    /// `__vlan_del`; answers whether it was there.
    fn delete(&mut self, vid: u16) -> bool {
        if self.pvid == vid {
            self.pvid = 0;
        }
        self.vlans.remove(&vid).is_some()
    }
    /// `vlan_default_pvid`: nobody has changed what it has had from the beginning.
    fn is_default(&self, vid: u16) -> bool {
        vid == self.pvid && self.vlans.get(&vid) == Some(&true)
    }
}

/// What a bridge does with VLANs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Filtering {
    /// `vlan_filtering`. Default off.
    pub on: bool,
    /// `vlan_protocol`: the ethertype of its tags. Default 802.1Q.
    pub protocol: u16,
    /// `vlan_default_pvid`: what ports have from the beginning; 0: nothing. Default 1; 2.6.35 knows no VLANs.
    pub default_pvid: u16,
    /// The VLANs of the bridge itself.
    pub own: Group,
}

impl Filtering {
    pub(super) fn new(kernel: Kernel) -> Filtering {
        let default_pvid = u16::from(kernel != Kernel::V2_6_35);
        let mut own = Group::default();
        if default_pvid != 0 {
            own.set(default_pvid, true, true);
        }
        Filtering { on: false, protocol: ETH_P_8021Q, default_pvid, own }
    }
    /// `br_allowed_ingress`: the VLAN of a frame that comes to `group`, whose tag is beside it from then on. `Ok(None)`: the bridge looks at no tags;
    /// `Err`: it may not come in.
    #[inline]
    pub(super) fn ingress(&self, group: &Group, frame: &mut Skb) -> Result<Option<u16>, ()> {
        if self.on { self.allowed_ingress(group, frame).map(Some) } else { Ok(None) }
    }
    /// `__allowed_ingress`.
    #[cold]
    fn allowed_ingress(&self, group: &Group, frame: &mut Skb) -> Result<u16, ()> {
        if frame.rare().vlan.is_none() && frame.protocol() == self.protocol {
            frame.rare_mut().vlan = frame.remove_vlan();
        }
        let (mut vid, mut tag) = (0, None);
        if let Some((protocol, tci)) = frame.rare().vlan {
            if protocol == self.protocol {
                (vid, tag) = (tci & VID_MASK, Some(tci));
            } else {
                frame.rare_mut().vlan = None;
                frame.insert_vlan(protocol, tci);
            }
        }
        if vid != 0 {
            return if group.has(vid) { Ok(vid) } else { Err(()) };
        }
        if group.pvid == 0 {
            return Err(());
        }
        // Of a frame with a priority alone that stays.
        frame.rare_mut().vlan = Some((self.protocol, tag.unwrap_or(0) | group.pvid));
        Ok(group.pvid)
    }
    /// `br_should_learn`: the VLAN in which the sender of a frame for the port itself is learned; `None`: it is not.
    pub(super) fn should_learn(&self, group: &Group, frame: &Skb) -> Option<u16> {
        if !self.on {
            return Some(0);
        }
        let vid = match frame.rare().vlan {
            Some((protocol, tci)) if protocol == self.protocol => tci & VID_MASK,
            _ => 0,
        };
        match vid {
            0 => Some(group.pvid).filter(|pvid| *pvid != 0),
            vid => Some(vid).filter(|vid| group.has(*vid)),
        }
    }
    /// `br_group_fwd_mask` of its protocol: addresses 01:80:c2:00:00:0X that go on like others, a bit each.
    pub(super) fn forwarded_groups(&self) -> u16 {
        if self.on && self.protocol == ETH_P_8021AD { 0xb801 } else { 0 }
    }
}

/// `br_allowed_egress`: whether a frame of this VLAN may leave.
#[inline]
pub(super) fn allowed_egress(group: &Group, vid: Option<u16>) -> bool {
    vid.is_none_or(|vid| group.has(vid))
}

/// `br_handle_vlan`: a frame of this VLAN leaves, without its tag where the group says so.
#[cold]
pub(super) fn handle_vlan(group: &Group, vid: u16, frame: &mut Skb) {
    if group.vlans.get(&vid) == Some(&true) {
        frame.rare_mut().vlan = None;
    }
}

impl Bridge {
    fn group(&self, port: Option<u32>) -> Option<&Group> {
        match port {
            None => Some(&self.vlan.own),
            Some(ifindex) => self.port(ifindex).map(|p| &p.vlans),
        }
    }
    fn group_mut(&mut self, port: Option<u32>) -> Option<&mut Group> {
        match port {
            None => Some(&mut self.vlan.own),
            Some(ifindex) => self.ports.iter_mut().find(|p| p.ifindex == ifindex).map(|p| &mut p.vlans),
        }
    }
    /// `br_vlan_add`, `nbp_vlan_add`: the bridge itself (`None`) or a port is in a VLAN.
    fn vlan_add(
        &mut self,
        port: Option<u32>,
        vid: u16,
        (pvid, untagged): (bool, bool),
        macs: &Macs,
        now: Time,
    ) {
        if self.group_mut(port).is_some_and(|group| group.set(vid, pvid, untagged)) {
            self.add_local(macs.of(port), vid, port, now);
        }
    }
    /// `br_vlan_delete`, `nbp_vlan_delete`.
    fn vlan_delete(&mut self, port: Option<u32>, vid: u16, macs: &Macs) {
        if self.group(port).is_some_and(|group| group.has(vid)) {
            self.delete_local(macs.of(port), vid, port, macs);
            self.forget(port, vid, false, macs);
            if let Some(group) = self.group_mut(port) {
                group.delete(vid);
            }
        }
    }
    /// `nbp_vlan_init`: a port begins with the default.
    pub(super) fn vlans_begin(&mut self, port: u32, macs: &Macs, now: Time) {
        if self.vlan.default_pvid != 0 {
            self.vlan_add(Some(port), self.vlan.default_pvid, (true, true), macs, now);
        }
    }
    /// `__br_vlan_set_default_pvid`.
    fn set_default_pvid(&mut self, pvid: u16, macs: &Macs, now: Time) {
        let old = std::mem::replace(&mut self.vlan.default_pvid, pvid);
        let ports: Vec<Option<u32>> =
            [None].into_iter().chain(self.ports.iter().map(|p| Some(p.ifindex))).collect();
        for port in ports {
            let Some(group) = self.group(port) else { continue };
            if pvid == 0 {
                // br_vlan_disable_default_pvid
                if group.is_default(old) {
                    self.vlan_delete(port, old, macs);
                }
            } else if (old == 0 || group.is_default(old)) && !group.has(pvid) {
                self.vlan_add(port, pvid, (true, true), macs, now);
                self.vlan_delete(port, old, macs);
            }
        }
    }
}

/// `br_vlan_valid_id`.
fn valid(vid: u16) -> bool {
    (1..4095).contains(&vid)
}

impl Host {
    /// `vlan_default_pvid` of a bridge.
    ///
    /// # Errors
    /// EINVAL from 4095 on.
    pub(crate) fn set_default_pvid(&mut self, bridge: u32, pvid: u32, now: Time) -> Result<(), KernelError> {
        let pvid = u16::try_from(pvid).ok().filter(|p| *p < 4095);
        let Some(pvid) = pvid else { return Err(KernelError::errno(KernelError::EINVAL)) };
        let macs = self.bridge_macs(bridge);
        if let Some(b) = self.devices[bridge].bridge.as_deref_mut() {
            b.set_default_pvid(pvid, &macs, now);
        }
        Ok(())
    }
    /// `bridge vlan add|del`: a device is in these VLANs, or in them no more. `own`: the bridge itself.
    ///
    /// # Errors
    /// EOPNOTSUPP where it is no port, or no bridge; EINVAL for identifiers that there are not.
    pub(crate) fn bridge_vlan(
        &mut self,
        ifindex: u32,
        own: bool,
        vids: std::ops::RangeInclusive<u16>,
        flags: Option<(bool, bool)>,
        now: Time,
    ) -> Result<(), KernelError> {
        let no = Err(KernelError::errno(KernelError::EOPNOTSUPP));
        let (bridge, port) = match own {
            true if self.devices[ifindex].bridge.is_some() => (ifindex, None),
            true => return no,
            false => match self.bridge_of(ifindex) {
                Some(bridge) => (bridge, Some(ifindex)),
                None => return no,
            },
        };
        if self.kernel == Kernel::V2_6_35 {
            return no;
        }
        if !valid(*vids.start()) || !valid(*vids.end()) {
            return Err(KernelError::new(KernelError::EINVAL, "bridge: Vlan id is invalid"));
        }
        let macs = self.bridge_macs(bridge);
        let Some(b) = self.devices[bridge].bridge.as_deref_mut() else { return no };
        for vid in vids {
            match flags {
                Some(flags) => b.vlan_add(port, vid, flags, &macs, now),
                None => b.vlan_delete(port, vid, &macs),
            }
        }
        Ok(())
    }
    /// The VLANs of a bridge itself, or of a port.
    pub(crate) fn vlans_of<'a>(&'a self, device: &'a NetDevice) -> Option<&'a Group> {
        match &device.bridge {
            Some(b) => Some(&b.vlan.own),
            None => {
                self.devices[self.bridge_of(device.ifindex)?].bridge.as_deref()?.group(Some(device.ifindex))
            }
        }
    }
}
