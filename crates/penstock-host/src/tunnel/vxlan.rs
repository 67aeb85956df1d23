//! VXLAN (RFC 7348): frames in UDP, to those behind whom a station was heard, or to all that are named for stations unknown.
//!
//! Follows: linux v6.12 `drivers/net/vxlan/vxlan_core.c` `vxlan_xmit`, `vxlan_xmit_one`, `vxlan_snoop`, `vxlan_vs_find_vni`, `vxlan_dev_configure`,
//! `vxlan_cleanup`; `include/net/udp.h` `udp_flow_src_port`; `net/ipv4/udp_tunnel_core.c` `udp_tunnel_dst_lookup`.
//! Differs: what has aged is gone at that moment, not when the timer comes by; the source port is of another hash; a frame for an address of this
//! machine goes by `lo`; a frame that a narrow way does not take tells nobody.

use super::{IP_HLEN, ecn};
use crate::fragment::IP_DF;
use crate::route::{Hop, Key, RouteKind};
use crate::{Host, HostCx};
use penstock_lang::ip::{Df, FdbView, Ttl, VxlanSet};
use penstock_model::{Span, Time};
use penstock_packet::headers::ipproto;
use penstock_packet::{L3, L4, Packet, Shim, Skb, Udp};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

type Mac = [u8; 6];

/// Bytes that VXLAN takes of a device's MTU over IPv4: IP, UDP, its own header, an Ethernet header.
pub(crate) const HEADROOM: u32 = IP_HLEN + 8 + 8 + 14;
/// For frames whose station nobody knows.
const ALL_ZEROS: Mac = [0; 6];

/// A VXLAN device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Vxlan {
    /// What it is set to.
    pub set: VxlanSet,
    /// Index of the device its packets leave by; 0: any.
    link: u32,
    fdb: BTreeMap<Mac, Entry>,
}

/// Behind whom a station is.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Entry {
    remotes: Vec<Ipv4Addr>,
    /// It does not age, and frames do not move it.
    stays: bool,
    /// When a frame for it or of it last was.
    used: Time,
}

impl Vxlan {
    pub(crate) fn new(set: VxlanSet, link: u32) -> Vxlan {
        let mut fdb = BTreeMap::new();
        if let Some(IpAddr::V4(remote)) = set.remote {
            fdb.insert(ALL_ZEROS, Entry { remotes: vec![remote], stays: true, used: Time::ZERO });
        }
        Vxlan { set, link, fdb }
    }
    /// What it is to do that is not done here: the words.
    pub(crate) fn asked(&self) -> Option<String> {
        let six = |addr: &Option<IpAddr>| addr.is_some_and(|a| a.is_ipv6());
        if six(&self.set.remote) || six(&self.set.local) {
            return Some("ends of IPv6".to_owned());
        }
        match self.set.remote {
            Some(group) if group.is_multicast() => Some(format!("group {group}")),
            _ => self.set.asked.first().cloned(),
        }
    }
    fn ages(&self, entry: &Entry, now: Time) -> bool {
        !entry.stays && self.set.ageing > 0 && entry.used + Span::from_secs(self.set.ageing.into()) <= now
    }
    /// Those behind whom a station is, which is being sent to.
    fn to(&mut self, mac: Mac, now: Time) -> Option<&[Ipv4Addr]> {
        let gone = self.fdb.get(&mac).is_some_and(|e| self.ages(e, now));
        if gone {
            self.fdb.remove(&mac);
        }
        let entry = self.fdb.get_mut(&mac)?;
        entry.used = now;
        Some(&entry.remotes)
    }
}

impl Host {
    /// A device is a VXLAN's from now on.
    pub(crate) fn bind_vxlan(&mut self, ifindex: u32, vxlan: Vxlan) {
        if let Some(vni) = vxlan.set.id {
            self.tunnels.by_vni.entry((vxlan.set.dstport, vni)).or_default().insert(0, ifindex);
        }
        self.devices[ifindex].vxlan = Some(Box::new(vxlan));
    }
    pub(super) fn leave_vni(&mut self, ifindex: u32, vxlan: &Vxlan) {
        let Some(vni) = vxlan.set.id else { return };
        if let Some(all) = self.tunnels.by_vni.get_mut(&(vxlan.set.dstport, vni)) {
            all.retain(|&i| i != ifindex);
        }
        self.tunnels.by_vni.retain(|_, all| !all.is_empty());
    }
    /// Whether there is a VXLAN device with this port and identifier.
    pub(crate) fn has_vni(&self, port: u16, vni: u32) -> bool {
        self.tunnels.by_vni.contains_key(&(port, vni))
    }
    /// Whether a VXLAN device that is up listens at a port.
    pub(crate) fn has_vxlan_port(&self, port: u16) -> bool {
        let mut at = self.tunnels.by_vni.range((port, 0)..=(port, u32::MAX)).flat_map(|(_, all)| all);
        at.any(|&i| self.devices.get(i).is_some_and(|d| d.up))
    }
    /// `vxlan_vs_find_vni`.
    pub(super) fn vxlan_of(&self, port: u16, vni: u32) -> Option<u32> {
        let all = self.tunnels.by_vni.get(&(port, vni))?;
        all.iter().copied().find(|&i| self.devices.get(i).is_some_and(|d| d.up))
    }
    /// `vxlan_set_mac`, `vxlan_snoop`: a station was heard behind another machine. `Some`: its frame is not taken, for this reason.
    pub(super) fn vxlan_snoop(
        &mut self,
        ifindex: u32,
        mac: Mac,
        from: Ipv4Addr,
        now: Time,
    ) -> Option<&'static str> {
        let device = &mut self.devices[ifindex];
        if device.mac == mac {
            return Some("own-address");
        }
        let vxlan = device.vxlan.as_deref_mut()?;
        if !vxlan.set.learning {
            return None;
        }
        if mac == ALL_ZEROS || mac[0] & 1 == 1 {
            return Some("bad-source");
        }
        let most = vxlan.set.maxaddress as usize;
        let room = most == 0 || vxlan.fdb.len() < most;
        if vxlan.fdb.get(&mac).is_some_and(|e| vxlan.ages(e, now)) {
            vxlan.fdb.remove(&mac);
        }
        match vxlan.fdb.get_mut(&mac) {
            Some(known) if known.remotes.first() == Some(&from) => known.used = now,
            Some(known) if known.stays => return Some("station-elsewhere"),
            Some(known) => (known.remotes, known.used) = (vec![from], now),
            None if room => {
                vxlan.fdb.insert(mac, Entry { remotes: vec![from], stays: false, used: now });
            }
            None => {}
        }
        None
    }

    /// `vxlan_xmit`: a frame goes to all behind whom its station is. The last of them takes the frame itself.
    pub(super) fn vxlan_xmit(&mut self, ifindex: u32, mut frame: Packet, cx: &mut HostCx<'_>) {
        if let Some((ethertype, tci)) = frame.rare_mut().vlan.take() {
            frame.insert_vlan(ethertype, tci);
        }
        let to = frame.eth.1;
        let (mut mac, mut count) = (to, 0);
        if let Some(vxlan) = self.devices[ifindex].vxlan.as_deref_mut() {
            if vxlan.to(to, cx.now).is_none() {
                mac = ALL_ZEROS;
            }
            count = vxlan.to(mac, cx.now).map_or(0, <[_]>::len);
        }
        if count == 0 {
            self.devices[ifindex].counters.tx_dropped += 1;
            self.lost_in_tunnel(ifindex, frame, "no-station", cx);
            return;
        }
        for n in 1..count {
            let Some(remote) = self.vxlan_remote(ifindex, mac, n, cx.now) else { break };
            let copy = self.copy_of(&frame, cx);
            self.vxlan_xmit_one(ifindex, copy, remote, cx);
        }
        match self.vxlan_remote(ifindex, mac, 0, cx.now) {
            Some(remote) => self.vxlan_xmit_one(ifindex, frame, remote, cx),
            None => self.lost_in_tunnel(ifindex, frame, "no-station", cx),
        }
    }
    fn vxlan_remote(&mut self, ifindex: u32, mac: Mac, n: usize, now: Time) -> Option<Ipv4Addr> {
        self.devices.get_mut(ifindex)?.vxlan.as_deref_mut()?.to(mac, now)?.get(n).copied()
    }
    /// `vxlan_xmit_one`.
    fn vxlan_xmit_one(&mut self, ifindex: u32, mut frame: Packet, remote: Ipv4Addr, cx: &mut HostCx<'_>) {
        let Some(vxlan) = self.devices[ifindex].vxlan.as_deref() else {
            self.lost_in_tunnel(ifindex, frame, "no-station", cx);
            return;
        };
        let (set, link) = (&vxlan.set, vxlan.link);
        let inner = frame.innermost().0;
        let tos = if set.tos == 1 { ecn::dsfield(inner) } else { set.tos };
        let own_ttl = self.sysctl.default_ttl;
        let ttl = match (set.ttl, inner) {
            (Ttl::Is(ttl), _) => ttl,
            (Ttl::Inherit, L3::Ipv4(h)) => h.ttl,
            (Ttl::Inherit, L3::Ipv6(h)) => h.hop_limit,
            _ => own_ttl,
        };
        let whole = match (set.df, inner) {
            (Df::Unset, _) => false,
            (Df::Set, _) => true,
            (Df::Inherit, L3::Ipv4(h)) => h.frag_off & IP_DF != 0,
            (Df::Inherit, inner) => matches!(inner, L3::Ipv6(_)),
        };
        let local = match set.local {
            Some(IpAddr::V4(local)) => local,
            _ => Ipv4Addr::UNSPECIFIED,
        };
        let (vni, dport) = (set.id.unwrap_or(0), set.dstport);
        let sport = self.vxlan_source_port(set.srcport, &frame);
        let outer_tos = ecn::encapsulate(tos, ecn::dsfield(inner));
        let key = Key { src: local, tos: tos & 0x1c, mark: frame.mark, oif: link, ..Key::to(remote) };
        let hop = self.route_by(key);
        let usable = matches!(hop.kind, Some(RouteKind::Unicast | RouteKind::Local | RouteKind::Broadcast));
        let circular = hop.kind == Some(RouteKind::Unicast) && hop.oif == ifindex;
        if !usable || circular {
            let errors = &mut self.devices[ifindex].errors;
            errors.tx += 1;
            if circular {
                errors.collisions += 1;
            } else {
                errors.carrier += 1;
            }
            self.lost_in_tunnel(ifindex, frame, if circular { "loop" } else { "no-route" }, cx);
            return;
        }
        self.vxlan_learns_way(ifindex, &hop, remote, &frame, cx);
        let (_, locked) = self.tunnels.path(remote, u32::MAX, cx.now);
        let src = if local.is_unspecified() { self.source_for(&hop, remote) } else { local };
        let outer = Host::outer(src, remote, ipproto::UDP, outer_tos, ttl, whole && !locked);
        let carried = frame.network_len() - 4 * frame.tags_in_frame() as u32;
        let memory = cx.pool.carried();
        frame.encapsulate(memory, Shim::Vxlan { vni }, true, outer, L4::Udp(Udp { sport, dport }));
        self.iptunnel_xmit(ifindex, frame, hop, carried, cx);
    }
    /// `skb_tunnel_check_pmtu`: a frame that is too long for the way teaches this machine to send shorter ones.
    fn vxlan_learns_way(&mut self, ifindex: u32, hop: &Hop, remote: Ipv4Addr, frame: &Skb, cx: &HostCx<'_>) {
        let oif = if hop.kind == Some(RouteKind::Local) { 1 } else { hop.oif };
        let (mtu, _) = self.tunnels.path(remote, hop.longest(self.devices[oif].mtu), cx.now);
        let room = mtu.saturating_sub(HEADROOM);
        if frame.network_len() > room {
            let device = &mut self.devices[ifindex];
            device.path_mtu = room.max(super::MIN_PMTU);
            let bridged = device.bridged;
            if let (L3::Ipv4(h), false) = (frame.innermost().0, bridged) {
                self.room_in_tunnel(h.dst, room, cx.now);
            }
        }
    }
    /// `udp_flow_src_port`: of the range, by the hash of the flow.
    fn vxlan_source_port(&self, (low, high): (u16, u16), frame: &Skb) -> u16 {
        let (low, high) = match (low, high) {
            (low, high) if low < high => (low, high),
            _ => self.port_range().unwrap_or((32_768, 60_999)),
        };
        let span = u64::from(high.saturating_sub(low));
        low + ((u64::from(flow_hash(frame, self.seed)) * span) >> 32) as u16
    }

    /// `bridge fdb add|append|replace|del`; an error is the kernel's, by its number.
    pub(crate) fn vxlan_fdb(
        &mut self,
        ifindex: u32,
        change: &penstock_lang::ip::FdbChange,
        now: Time,
    ) -> Result<(), i32> {
        use penstock_model::KernelError as E;
        const EAFNOSUPPORT: i32 = 97;
        let Some(vxlan) = self.devices[ifindex].vxlan.as_deref_mut() else { return Err(E::EOPNOTSUPP) };
        let remote = match change.dst {
            Some(IpAddr::V4(remote)) => Some(remote),
            Some(IpAddr::V6(_)) => return Err(EAFNOSUPPORT),
            None => match vxlan.set.remote {
                Some(IpAddr::V4(remote)) => Some(remote),
                _ => None,
            },
        };
        let stays = change.stays;
        let known = vxlan.fdb.get_mut(&change.mac);
        match (change.verb, known, remote) {
            ("del", None, _) => return Err(E::ENOENT),
            ("del", Some(entry), remote) => {
                if let Some(remote) = remote.filter(|_| change.dst.is_some()) {
                    if !entry.remotes.contains(&remote) {
                        return Err(E::ENOENT);
                    }
                    entry.remotes.retain(|&r| r != remote);
                }
                if change.dst.is_none() || entry.remotes.is_empty() {
                    vxlan.fdb.remove(&change.mac);
                }
            }
            (_, _, None) => return Err(E::EINVAL),
            ("add", Some(_), _) => return Err(E::EEXIST),
            ("append", Some(entry), Some(remote)) => {
                // vxlan_fdb_update: several stand for groups and stations unknown alone.
                let several = change.mac == ALL_ZEROS || change.mac[0] & 1 == 1;
                if !several {
                    return Err(E::EOPNOTSUPP);
                }
                if !entry.remotes.contains(&remote) {
                    entry.remotes.push(remote);
                }
            }
            ("replace", Some(entry), Some(remote)) => {
                if change.mac == ALL_ZEROS || change.mac[0] & 1 == 1 {
                    return Err(E::EOPNOTSUPP);
                }
                (entry.remotes, entry.stays, entry.used) = (vec![remote], stays, now);
            }
            (_, None, Some(remote)) => {
                vxlan.fdb.insert(change.mac, Entry { remotes: vec![remote], stays, used: now });
            }
            _ => return Err(E::EINVAL),
        }
        Ok(())
    }
    /// `bridge fdb show` of a VXLAN device: a line for each station and each machine behind which it is.
    pub(crate) fn vxlan_fdb_views(&self, ifindex: u32, named: bool, now: Time) -> Vec<FdbView> {
        let device = &self.devices[ifindex];
        let Some(vxlan) = device.vxlan.as_deref() else { return Vec::new() };
        let there = vxlan.fdb.iter().filter(|(_, e)| !vxlan.ages(e, now));
        let views = there.flat_map(|(mac, e)| {
            e.remotes.iter().map(move |remote| FdbView {
                mac: *mac,
                dev: named.then(|| device.name.clone()),
                dst: Some((*remote).into()),
                vlan: 0,
                own: true,
                master: None,
                state: if e.stays { "permanent" } else { "" },
            })
        });
        views.collect()
    }
}

/// The hash of a frame's flow, the same both ways: of its addresses and ports, else of its stations.
pub(crate) fn flow_hash(frame: &Skb, seed: u64) -> u32 {
    let (l3, l4) = frame.hashed();
    let (a, b) = match l3 {
        L3::Ipv4(h) => (u128::from(u32::from(h.src)), u128::from(u32::from(h.dst))),
        L3::Ipv6(h) => (u128::from(h.src), u128::from(h.dst)),
        _ => {
            let word = |m: Mac| m.iter().fold(0u128, |sum, b| sum << 8 | u128::from(*b));
            (word(frame.eth.0), word(frame.eth.1))
        }
    };
    let (p, q) = match l4 {
        L4::Tcp(t) => (t.sport, t.dport),
        L4::Udp(u) => (u.sport, u.dport),
        _ => (0, 0),
    };
    let (low, high) = (a.min(b), a.max(b));
    let ports = u64::from(p.min(q)) << 16 | u64::from(p.max(q));
    let again = u64::from(frame.sender.rehashed);
    let words = [(low >> 64) as u64, low as u64, (high >> 64) as u64, high as u64, ports, again];
    let mut hash = words.iter().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |sum, word| {
        (sum ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(29)
    });
    hash = (hash ^ hash >> 30).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash >> 32) as u32
}
