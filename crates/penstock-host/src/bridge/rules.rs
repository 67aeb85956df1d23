//! The rules of iptables, ip6tables and nft for what a bridge carries: `br_netfilter`.
//!
//! Follows: linux v6.12 `net/bridge/br_netfilter_hooks.c` `br_nf_pre_routing`, `br_nf_pre_routing_finish`, `br_nf_pre_routing_finish_bridge`,
//! `br_nf_forward_ip`, `br_nf_post_routing`, `br_nf_dev_queue_xmit`, `ip_sabotage_in`; `br_netfilter_ipv6.c` the same; `net/netfilter/xt_physdev.c`.
//! Differs: frames with a VLAN tag or PPPoE around them meet no rules (`bridge-nf-filter-vlan-tagged`, `bridge-nf-filter-pppoe-tagged` are 0); there is no
//! arptables; of profile 2.6.35 no frame meets rules.

use crate::fragment::IP_DF;
use crate::netfilter::Hook;
use crate::route::{Key, Ports, RouteKind};
use crate::six::fib::{Hop6, Key6, Kind6};
use crate::vlan::OTHERHOST;
use crate::{Host, HostCx};
use penstock_model::Kernel;
use penstock_packet::{Bridged, L3, Packet, Skb};
use std::net::IpAddr;

/// Where a packet is for.
fn destination(skb: &Skb) -> Option<IpAddr> {
    match skb.l3 {
        L3::Ipv4(h) => Some(h.dst.into()),
        L3::Ipv6(h) => Some(h.dst.into()),
        _ => None,
    }
}

impl Host {
    /// Whether the module is there: somebody has loaded it, or a rule with `-m physdev` has.
    pub(crate) fn has_br_netfilter(&self) -> bool {
        self.kernel != Kernel::V2_6_35
            && (self.modules.contains("br_netfilter") || self.netfilter.asks_physdev())
    }
    /// Whether a bridge shows its frames of IPv4, or of IPv6, to the rules (`bridge-nf-call-iptables`, `nf_call_iptables`).
    fn calls_rules(&self, bridge: u32, four: bool) -> bool {
        if !self.netfilter.has_rules(four) || !self.has_br_netfilter() {
            return false;
        }
        let key = match four {
            true => "net.bridge.bridge-nf-call-iptables",
            false => "net.bridge.bridge-nf-call-ip6tables",
        };
        let own = self.devices[bridge].bridge.as_deref().is_some_and(|b| b.calls[usize::from(!four)]);
        own || self.sysctl.kept.get(key).is_none_or(|value| value != "0")
    }
    /// `br_nf_pre_routing`: PREROUTING of a frame that came in by a port. `None`: it is gone, waits, or goes on by itself.
    #[cold]
    pub(super) fn bridge_prerouting(
        &mut self,
        bridge: u32,
        port: u32,
        mut frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let four = matches!(frame.l3, L3::Ipv4(_));
        if !four && !matches!(frame.l3, L3::Ipv6(_))
            || frame.is_noted() && frame.rare().vlan.is_some()
            || !self.calls_rules(bridge, four)
        {
            return Some(frame);
        }
        if frame.tc.bad_checksum {
            return self.not_bridged(frame, "bad-checksum", cx);
        }
        let rare = frame.rare_mut();
        rare.bridged = Some(Bridged { from: port, ..Bridged::default() });
        // To the rules one for another station is for this machine.
        let other = rare.ptype.take_if(|kind| *kind == OTHERHOST);
        let (came, before) = (frame.iif, destination(&frame));
        frame.iif = bridge;
        frame = match frame.l3 {
            L3::Ipv4(h) if self.netfilter.busy(Hook::Prerouting) => self.prerouting_of(frame, h, cx)?,
            L3::Ipv6(h) if self.netfilter.busy6(Hook::Prerouting) => self.prerouting6_of(frame, h, cx)?,
            _ => frame,
        };
        let changed = destination(&frame) != before;
        let rare = frame.rare_mut();
        rare.ptype = rare.ptype.or(other);
        if let Some(bridged) = &mut rare.bridged {
            bridged.is_known = true;
        }
        if changed {
            frame = self.bridge_translated(bridge, port, frame, cx)?;
        }
        frame.iif = came;
        Some(frame)
    }
    /// The destination is another now. One on the same network is bridged all the same, to whom the new address belongs; any other is for this
    /// machine, which is to route it.
    fn bridge_translated(
        &mut self,
        bridge: u32,
        port: u32,
        mut frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let (oif, next) = match frame.l3 {
            L3::Ipv4(h) => {
                if h.dst.is_loopback() || h.dst.is_unspecified() {
                    return self.not_bridged(frame, "martian-destination", cx);
                }
                let hop = self.fib.lookup(&Key {
                    src: h.src,
                    tos: h.tos & 0x1c,
                    mark: frame.mark,
                    iif: bridge,
                    ports: Ports::of(&frame),
                    ..Key::to(h.dst)
                });
                if self.sysctl.filters_sources
                    && let Err(why) = self.comes_the_way_back(bridge, &frame, h, hop)
                {
                    return self.not_bridged(frame, why.reason(), cx);
                }
                let bridged = hop.kind == Some(RouteKind::Unicast) && self.forwards_from(bridge);
                (if bridged { hop.oif } else { 0 }, self.fib.next_of(&hop))
            }
            L3::Ipv6(h) => {
                let hop = self.lookup6(&Key6 {
                    src: h.src,
                    label: h.flow_label,
                    tclass: h.traffic_class,
                    mark: frame.mark,
                    iif: bridge,
                    ..Key6::to(h.dst)
                });
                match hop.kind {
                    Some(Kind6::Unicast) => (hop.oif, IpAddr::V6(hop.next)),
                    Some(Kind6::Local | Kind6::Anycast | Kind6::Multicast) => (0, IpAddr::V6(hop.next)),
                    _ => return self.not_bridged(frame, "no-route", cx),
                }
            }
            _ => return Some(frame),
        };
        if oif != bridge {
            frame.eth.1 = self.devices[bridge].mac;
            frame.rare_mut().ptype = None;
            return Some(frame);
        }
        if frame.eth.1[0] & 1 == 1 {
            // What it came as it stays (`skb->pkt_type`).
            let kind = if frame.eth.1 == crate::arp::MAC_BROADCAST { 1 } else { 2 };
            frame.rare_mut().ptype = Some(kind);
        }
        let at = self.neigh.find_or_create(bridge, next, cx.now);
        if self.neigh.at(at).state.is_connected() {
            frame.eth.1 = self.neigh.at(at).mac;
            return Some(frame);
        }
        // The neighbour is asked for; what is sent to it comes back before it leaves (`br_nf_pre_routing_finish_bridge_slow`).
        let sender = frame.eth.0;
        frame.iif = port;
        if let Some(bridged) = &mut frame.rare_mut().bridged {
            bridged.sender = Some(sender);
        }
        self.neigh_output(frame, bridge, at, cx);
        None
    }
    /// FORWARD and POSTROUTING of a frame that leaves by a port, and the fragments that it came in where it was put together for the rules. `None`: it
    /// is gone, or has left.
    #[cold]
    pub(super) fn bridge_forwarded(
        &mut self,
        bridge: u32,
        port: u32,
        mut frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        if frame.rare().vlan.is_some() {
            return Some(frame);
        }
        let four = match frame.l3 {
            L3::Ipv4(_) => true,
            L3::Ipv6(_) => false,
            _ => return Some(frame),
        };
        let came = frame.iif;
        let rare = frame.rare_mut();
        let other = rare.ptype.take_if(|kind| *kind == OTHERHOST);
        if let Some(bridged) = &mut rare.bridged {
            bridged.to = port;
        }
        for (hook, input) in [(Hook::Forward, bridge), (Hook::Postrouting, 0)] {
            frame.iif = input;
            let busy = if four { self.netfilter.busy(hook) } else { self.netfilter.busy6(hook) };
            if busy && !self.hook(hook, &mut frame, bridge, cx) {
                self.discard(frame, hook.chain(), "dropped", cx);
                return None;
            }
        }
        frame.iif = came;
        let mtu = self.devices[port].mtu;
        let rare = frame.rare_mut();
        (rare.ptype, rare.bridged) = (rare.ptype.or(other), None);
        let most = match rare.frag_max_size {
            0 => mtu,
            longest => mtu.min(longest),
        };
        if frame.gso().is_some() || frame.longest_network_len() <= most {
            return Some(frame);
        }
        let came_longer = frame.rare().frag_max_size > mtu;
        match frame.l3 {
            L3::Ipv4(h) if h.frag_off & IP_DF != 0 || came_longer => {
                self.discard(frame, "bridge", "too-long", cx);
            }
            L3::Ipv4(h) => {
                let eth = frame.eth;
                self.fragment(frame, h, most, cx, |host, mut piece, cx| {
                    piece.eth = eth;
                    host.xmit(port, piece, cx);
                });
            }
            L3::Ipv6(h) => {
                let way = self.lookup6(&Key6 { oif: bridge, ..Key6::to(h.dst) });
                let (eth, hop) = (frame.eth, Hop6 { oif: bridge, mtu: 0, ..way });
                self.ip6_fragment(frame, hop, cx, |host, mut piece, cx| {
                    piece.eth = eth;
                    host.xmit(port, piece, cx);
                });
            }
            _ => return Some(frame),
        }
        None
    }
    /// The answer to a frame that a rule has rejected leaves by the port that it came in by, in the name of whom it was for (`nf_send_reset`).
    pub(crate) fn reset_by_port(&mut self, rejected: &Skb, mut answer: Packet, cx: &mut HostCx<'_>) {
        let Some(bridged) = rejected.rare().bridged else { return };
        // Somebody must be there to be told all the same (`ip_route_me_harder`).
        let ttl = self.sysctl.default_ttl;
        let known = match &mut answer.l3 {
            L3::Ipv4(h) => {
                h.ttl = ttl;
                let to = h.dst;
                self.route_output(Key::to(to)).kind.is_some()
            }
            L3::Ipv6(h) => {
                let to = h.dst;
                let hop = self.lookup6(&Key6::to(to));
                h.hop_limit = if hop.hop_limit == 0 { self.six.begins.hop_limit } else { hop.hop_limit };
                hop.kind.is_some()
            }
            _ => false,
        };
        if !known {
            cx.pool.free(answer);
            return;
        }
        answer.eth = (rejected.eth.1, rejected.eth.0);
        answer.rare_mut().bridged = None;
        self.xmit(bridged.from, answer, cx);
    }
}
