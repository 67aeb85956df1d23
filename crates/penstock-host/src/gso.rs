//! Super-packets of this machine's TCP: which ways take them, how large they may be, and who cuts them.
//!
//! Follows: linux v6.12 net/core/sock.c `sk_setup_caps`, `sk_dst_gso_max_size`, net/core/dev.c `netif_skb_features`, `validate_xmit_skb`,
//! net/core/rtnetlink.c `do_setlink`.
//! Differs: at first a device takes none, as one with `gso_max_segs 1` ([`Host::set_offloads`]; `ethtool -K … tso on` or `gso on` has them made).
//! Tunnels, macvlans and `lo` take none; what is forwarded into a tunnel is cut before it.

use crate::{Host, HostCx, NetDevice};
use penstock_lang::ip::LinkRequest;
use penstock_model::Kernel;
use penstock_packet::Packet;
use std::net::IpAddr;

/// What is taken off the size for headers (`MAX_TCP_HEADER` and one).
const HEADERS: u32 = 321;

/// The largest packet that TCP makes for a way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GsoLimits {
    /// `sk_gso_max_size`, bytes.
    pub size: u32,
    /// `sk_gso_max_segs`.
    pub segments: u32,
}

/// What `ip link set` says of a device's super-packets; `None` as it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GsoWords {
    /// `gso_max_size`, bytes.
    pub size: Option<u32>,
    /// `gso_max_segs`.
    pub segments: Option<u32>,
    /// `gro_max_size`, bytes.
    pub gro_size: Option<u32>,
}

impl GsoWords {
    /// Takes what a request says.
    pub(crate) fn take(&mut self, r: &LinkRequest) {
        self.size = r.gso_max_size.or(self.size);
        self.segments = r.gso_max_segs.or(self.segments);
        self.gro_size = r.gro_max_size.or(self.gro_size);
    }
}

/// `TSO_MAX_SIZE`, bytes.
const TSO_MAX_SIZE: u32 = 524_280;

impl Host {
    /// Whether cards here begin as Linux has them, with TSO and GSO on; `false`: each segment of TCP is a packet of its own until `ethtool -K` says
    /// otherwise, which is how machines begin.
    pub fn set_offloads(&mut self, on: bool) {
        self.offloads = on;
    }
    /// Whether an offload of `ethtool -K` is on, by its long name.
    pub(crate) fn feature(&self, device: &NetDevice, name: &str) -> bool {
        device.features.get(name).copied().unwrap_or(self.offloads)
    }
    /// `tso_max_size`, bytes: of a device on another, that one's.
    pub(crate) fn tso_max_size(&self, d: &NetDevice) -> u32 {
        if matches!(d.class.kind, "bridge" | "bond") {
            //= linux v6.12 net/bridge/br_if.c br_set_gso_limits; drivers/net/bonding/bond_main.c bond_compute_features
            let ports = self.devices.iter().filter(|p| p.master == Some(d.ifindex));
            let had_port = d.bridge.as_ref().is_some_and(|b| b.had_port);
            let none = if had_port { TSO_MAX_SIZE } else { 65_536 };
            return ports.map(|p| self.tso_max_size(p)).min().unwrap_or(none);
        }
        let lower = self.lower_of(d).filter(|_| matches!(d.class.kind, "vlan" | "macvlan"));
        lower.unwrap_or(d).class.tso_max_size
    }
    /// Whether the card of this device cuts super-packets itself (TSO); else the kernel does before it.
    pub fn card_cuts(&self, ifindex: u32) -> bool {
        self.devices.get(ifindex).is_some_and(|d| self.feature(d, "tcp-segmentation-offload"))
    }
    /// What one packet of TCP to `dst` may hold, by a socket that is bound to a device or a VRF (0: to none); `None`: one segment.
    pub fn gso_by(&mut self, bound: u32, dst: IpAddr) -> Option<GsoLimits> {
        if self.kernel < Kernel::V6_12 {
            return None;
        }
        let oif = self.way_of(bound, dst)?;
        self.gso_of(self.devices.get(oif)?, 0)
    }
    pub(crate) fn gso_of(&self, device: &NetDevice, depth: u32) -> Option<GsoLimits> {
        let own = || {
            let words = &device.gso;
            let asked = ["tcp-segmentation-offload", "generic-segmentation-offload"];
            //= linux v6.12 net/core/sock.c sk_setup_caps: TCP makes them whatever ethtool -K has turned off
            let on =
                self.offloads || words.segments.is_some() || asked.iter().any(|f| self.feature(device, f));
            let segments = words.segments.unwrap_or(65_535).max(1);
            let size = words.size.unwrap_or(65_536).saturating_sub(HEADERS);
            (on && segments > 1).then_some(GsoLimits { size, segments })
        };
        let below = |ifindexes: Vec<u32>| {
            let all = ifindexes.iter().filter_map(|&i| self.devices.get(i));
            all.map(|d| self.gso_of(d, depth + 1)).reduce(|a, b| {
                let (a, b) = (a?, b?);
                Some(GsoLimits { size: a.size.min(b.size), segments: a.segments.min(b.segments) })
            })?
        };
        match device.class.kind {
            _ if depth > 8 => None,
            "" | "veth" => own().filter(|_| !device.loopback),
            "vlan" => {
                below(device.lower.filter(|l| l.space == self.space).map(|l| l.ifindex).into_iter().collect())
            }
            "bridge" | "bond" => {
                let mine = device.ifindex;
                below(self.devices.iter().filter(|d| d.master == Some(mine)).map(|d| d.ifindex).collect())
            }
            _ => None,
        }
    }
    /// The segments of a super-packet, each a packet of its own.
    #[cold]
    pub(crate) fn cut(&mut self, whole: Packet, cx: &mut HostCx<'_>) -> Vec<Packet> {
        let segments = whole.segments() as u16;
        let all = (0..segments).map(|n| cx.pool.segment(&whole, n)).collect();
        cx.pool.free(whole);
        all
    }
    /// Whether a super-packet is to be cut before it comes to this device's queue.
    #[inline]
    pub(crate) fn cuts_before(&self, ifindex: u32, packet: &Packet) -> bool {
        packet.is_noted() && packet.gso().is_some() && self.devices[ifindex].class.is_tunnel()
    }
}
