//! PPPoE: packets of a device `pppN` go out within frames of a session over an Ethernet device, and come in from there.
//!
//! [`daemon`] is `pppd` and `pppoe-server`, which find each other, agree, and set the device up.
//!
//! Follows: linux v6.12 `drivers/net/ppp/pppoe.c` `__pppoe_xmit`, `pppoe_rcv`, `pppoe_rcv_core`, `pppoe_disc_rcv`; `drivers/net/ppp/ppp_generic.c`
//! `ppp_setup`, `ppp_start_xmit`, `ppp_send_frame`, `ppp_input`, `ppp_receive_nonmp_frame`.
//! Differs: super-packets are cut before the device.

mod daemon;

pub(crate) use daemon::{Daemon, Server, Settings};

use crate::{Host, HostCx, Timer};
use penstock_model::Time;
use penstock_packet::{ETH_P_PPP_DISC, ETH_P_PPP_SES, Head, L3, L4, PPP_IP, PPP_IPV6, Packet, Skb};
use std::collections::BTreeMap;

/// A hardware address.
pub(crate) type Mac = [u8; 6];

/// The processes of a machine that speak PPP, and their sessions.
#[derive(Default)]
pub(crate) struct Ppp {
    /// By device, the other end's address and number: the process.
    sessions: BTreeMap<(u32, Mac, u16), u32>,
    daemons: BTreeMap<u32, Daemon>,
    /// By their devices. Where the device has gone or its process has another, that is left.
    units: BTreeMap<u32, u32>,
    /// By the device that they listen on.
    servers: BTreeMap<u32, Server>,
    /// The last process.
    last: u32,
}

impl Host {
    /// A process speaks PPP from now on. Its number.
    pub(crate) fn ppp_begin(&mut self, daemon: Daemon, now: Time) -> u32 {
        self.ppp.last += 1;
        let pid = self.ppp.last;
        self.ppp.daemons.insert(pid, daemon);
        self.timers.insert(now, Timer::Ppp(pid));
        pid
    }
    /// A server listens on a device from now on; `false`: one does already.
    pub(crate) fn ppp_serve(&mut self, lower: u32, server: Server) -> bool {
        if self.ppp.servers.contains_key(&lower) {
            return false;
        }
        self.ppp.servers.insert(lower, server);
        true
    }
    /// All of these programs end (`SIGTERM`). Whether there was one.
    pub(crate) fn ppp_end_all(&mut self, now: Time) -> bool {
        let all: Vec<u32> = self.ppp.daemons.keys().copied().collect();
        for pid in &all {
            self.ppp.daemons.entry(*pid).and_modify(|d| d.ends = true);
            self.timers.insert(now, Timer::Ppp(*pid));
        }
        !all.is_empty()
    }
    /// `ppp_start_xmit`, `ppp_send_frame`, `__pppoe_xmit`: a packet that the device's qdisc has let go.
    pub(crate) fn ppp_start_xmit(&mut self, ifindex: u32, mut packet: Packet, cx: &mut HostCx<'_>) {
        let proto = match packet.l3 {
            L3::Ipv4(_) => PPP_IP,
            L3::Ipv6(_) => PPP_IPV6,
            _ => {
                self.devices[ifindex].counters.tx_dropped += 1;
                self.lost_in_tunnel(ifindex, packet, "not-carried", cx);
                return;
            }
        };
        // skb_scrub_packet within one namespace: mark, priority and socket stay.
        packet.iif = 0;
        packet.rare_mut().ptype = None;
        packet.reset_ct();
        packet.set_realms(0);
        let counters = &mut self.devices[ifindex].counters;
        counters.tx_packets += 1;
        counters.tx_bytes += u64::from(packet.network_len());
        let of = |pid| self.ppp.daemons.get(pid).filter(|d| d.unit == ifindex);
        let way = self.ppp.units.get(&ifindex).and_then(of).and_then(Daemon::way);
        let Some((lower, peer, sid)) = way.filter(|way| self.devices.get(way.0).is_some()) else {
            self.lost_in_tunnel(ifindex, packet, "no-session", cx);
            return;
        };
        packet.wrap(ETH_P_PPP_SES, Head::Pppoe { sid, proto });
        packet.eth = (self.devices[lower].mac, peer);
        self.xmit(lower, packet, cx);
    }

    /// `pppoe_rcv`, `pppoe_disc_rcv`, and the programs that hear discovery.
    #[cold]
    pub(crate) fn pppoe_rcv(&mut self, lower: u32, mut frame: Packet, cx: &mut HostCx<'_>) {
        let from = frame.eth.0;
        let message = match frame.rare().wrapped.as_deref().map(|w| &w.head) {
            Some(Head::PppoeMessage(bytes)) => Some(bytes.clone()),
            _ => None,
        };
        if frame.protocol() == ETH_P_PPP_DISC {
            if let Some(bytes) = message {
                self.ppp_discovery(lower, from, frame.eth.1[0] & 1 == 1, &bytes, cx);
            }
            cx.pool.free(frame);
            return;
        }
        let sid = frame.pppoe().map_or(0, |(sid, _)| sid);
        let Some(&pid) = self.ppp.sessions.get(&(lower, from, sid)) else {
            self.discard(frame, "pppoe", "no-session", cx);
            return;
        };
        let unit = self.ppp.daemons.get(&pid).map_or(0, |d| d.unit);
        if let Some(bytes) = message {
            // ppp_input: those of LCP and of authentication do not come by the device.
            if bytes.get(6).is_some_and(|&b| b < 0xc0)
                && let Some(device) = self.devices.get_mut(unit)
            {
                device.counters.rx_packets += 1;
                device.counters.rx_bytes += bytes.len() as u64 - 8;
            }
            cx.pool.free(frame);
            self.ppp_message(pid, &bytes, cx);
            return;
        }
        let proto = match frame.take_off() {
            Some(Head::Pppoe { proto, .. }) => proto,
            _ => 0,
        };
        let Some(device) = self.devices.get_mut(unit).filter(|_| matches!(proto, PPP_IP | PPP_IPV6)) else {
            self.discard(frame, "pppoe", "no-unit", cx);
            return;
        };
        device.counters.rx_packets += 1;
        device.counters.rx_bytes += u64::from(frame.network_len());
        if !device.up {
            self.discard(frame, "pppoe", "device-down", cx);
            return;
        }
        frame.reset_ct();
        frame.iif = unit;
        frame.eth = ([0; 6], [0; 6]);
        self.netif_receive(unit, frame, cx);
    }
    /// Sends a message by an Ethernet device. `counted`: it comes by this device of PPP (`ppp_send_frame`).
    fn pppoe_send(
        &mut self,
        lower: u32,
        to: Mac,
        ses: bool,
        bytes: &[u8],
        counted: u32,
        cx: &mut HostCx<'_>,
    ) {
        let Some(mac) = self.devices.get(lower).map(|d| d.mac) else { return };
        if let Some(device) = self.devices.get_mut(counted) {
            device.counters.tx_packets += 1;
            device.counters.tx_bytes += bytes.len() as u64 - 8;
        }
        let empty = Skb::new(penstock_packet::headers::ETH_HLEN, L3::Other(0), L4::None);
        let mut packet = cx.pool.alloc(Skb { created: cx.now, queued: cx.now, ..empty });
        packet.wrap(if ses { ETH_P_PPP_SES } else { ETH_P_PPP_DISC }, Head::PppoeMessage(bytes.into()));
        packet.pkt_len = packet.len;
        packet.eth = (mac, to);
        self.xmit(lower, packet, cx);
    }
    /// What commands within have lost goes to whoever called.
    fn ppp_pending(&mut self, cx: &mut HostCx<'_>) {
        cx.out.append(&mut self.pending);
    }
}
