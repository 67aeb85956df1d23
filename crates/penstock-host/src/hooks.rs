//! A packet at netfilter's hooks: what is put together before, whom a rejected packet's sender hears from, the route that is looked up again.
//!
//! Follows: linux v6.12 `net/ipv4/netfilter.c` `ip_route_me_harder`, `nf_defrag_ipv4.c`, `nf_reject_ipv4.c` `nf_send_reset`.

use crate::fragment::{IP_DF, IP_MF, IP_OFFSET};
use crate::netfilter::{self, Fate, Hook};
use crate::route::{Hop, Key, Ports};
use crate::{Host, HostCx, icmp, six};
use penstock_model::{Kernel, KernelError};
use penstock_packet::{Ipv4, L3, L4, Packet, Skb, Tcp, TcpFlags, Tracked};
use std::net::Ipv4Addr;

/// Where a packet is from and for.
fn addresses(packet: &Skb) -> Option<(Ipv4Addr, Ipv4Addr)> {
    match packet.l3 {
        L3::Ipv4(h) => Some((h.src, h.dst)),
        _ => None,
    }
}

/// An answer of this machine to a packet is of the packet's connection (`nf_conntrack_attach`).
pub(crate) fn attach(answer: &mut Skb, to: &Skb) {
    if let Some(known) = to.rare().ct
        && known.id.is_some()
    {
        let state = penstock_lang::iptables::extension::state::RELATED;
        answer.rare_mut().ct = Some(Tracked { state, reply: !known.reply, ..known });
    }
}

impl Host {
    /// PREROUTING. Where connections are tracked, fragments are put together before (`nf_defrag_ipv4`). `None`: the packet is gone, or waits.
    #[cold]
    pub(crate) fn prerouting(&mut self, packet: Packet, h: Ipv4, cx: &mut HostCx<'_>) -> Option<Packet> {
        if self.has_met_rules(&packet) { Some(packet) } else { self.prerouting_of(packet, h, cx) }
    }
    /// A bridge has shown the packet to PREROUTING already.
    //= linux v6.12 net/bridge/br_netfilter_hooks.c ip_sabotage_in
    pub(crate) fn has_met_rules(&self, packet: &Packet) -> bool {
        packet.is_noted() && packet.rare().bridged.is_some_and(|b| b.is_known) && self.vrf_of(packet.iif) == 0
    }
    pub(crate) fn prerouting_of(
        &mut self,
        mut packet: Packet,
        h: Ipv4,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        if h.frag_off & (IP_MF | IP_OFFSET) != 0 && self.netfilter.tracking().on() {
            packet = self.defragment(packet, h, cx)?;
        }
        if !self.hook(Hook::Prerouting, &mut packet, 0, cx) {
            self.discard(packet, Hook::Prerouting.chain(), "dropped", cx);
            return None;
        }
        Some(packet)
    }

    /// OUTPUT, and on.
    #[cold]
    pub(crate) fn send_through_rules(
        &mut self,
        packet: Packet,
        mut hop: Hop,
        cx: &mut HostCx<'_>,
    ) -> Result<(), KernelError> {
        let oif = self.out_device(&hop);
        let (packet, _) = self.output_hook(packet, &mut hop, oif, cx)?;
        self.ip_output(packet, hop, cx);
        Ok(())
    }
    /// OUTPUT of a packet that leaves by `oif`, and the route again where a rule has changed what a route may hang on (`ip_route_me_harder`): whether
    /// it was looked up again.
    pub(crate) fn output_hook(
        &mut self,
        mut packet: Packet,
        hop: &mut Hop,
        oif: u32,
        cx: &mut HostCx<'_>,
    ) -> Result<(Packet, bool), KernelError> {
        let before = (packet.mark, packet.tos(), addresses(&packet));
        if !self.hook(Hook::Output, &mut packet, oif, cx) {
            self.discard(packet, Hook::Output.chain(), "dropped", cx);
            return Err(KernelError::errno(1));
        }
        if before != (packet.mark, packet.tos(), addresses(&packet))
            && let L3::Ipv4(h) = packet.l3
        {
            *hop = self.route_output(Key {
                src: h.src,
                tos: h.tos & 0x1c,
                mark: packet.mark,
                l3mdev: self.vrf_of(oif),
                ports: Ports::of(&packet),
                ..Key::to(h.dst)
            });
            let refused = self.refusal(hop, h.src);
            if refused != 0 {
                //= linux v6.12 net/netfilter/nf_nat_proto.c nf_nat_ipv4_local_fn (NF_DROP_ERR)
                self.discard(packet, "ip_output", "no-route", cx);
                return Err(KernelError::errno(refused));
            }
            packet.set_realms(self.fib.realms(hop, None));
            return Ok((packet, true));
        }
        Ok((packet, false))
    }

    /// Takes a packet through the tables of a hook; `false` where a rule drops it. One that a rule rejects is answered.
    pub(crate) fn hook(&mut self, hook: Hook, packet: &mut Packet, oif: u32, cx: &mut HostCx<'_>) -> bool {
        let name = |ifindex: u32| match self.devices.get(ifindex) {
            Some(device) => device.name.as_str(),
            None => "",
        };
        //= linux v6.12 net/ipv4/ip_output.c ip_output
        let hidden = hook == Hook::Postrouting && self.kernel == Kernel::V2_6_35;
        let input = if hidden { 0 } else { packet.iif };
        let ports = netfilter::Ports { devices: &self.devices, iif: packet.iif, oif, next: self.next_hop };
        let (input, output) = (name(input), name(oif));
        let devices = netfilter::Devices {
            input,
            output,
            fib: Some(&self.fib),
            fib6: Some(&self.six.fib),
            ports: Some(ports),
        };
        match self.netfilter.run(hook, packet, devices, cx.now) {
            Fate::Accept => true,
            Fate::Drop => false,
            Fate::Reject(Some(code)) => {
                self.icmp_send(packet, icmp::DEST_UNREACH, code, 0, cx);
                self.icmp6_send(packet, six::icmp::DEST_UNREACH, code, 0, cx);
                false
            }
            Fate::Reject(None) => {
                self.reset(packet, cx);
                self.reset6(packet, cx);
                false
            }
        }
    }

    /// `nf_send_reset`: the answer of a closed port, in the name of whom the packet was for.
    #[cold]
    fn reset(&mut self, packet: &Packet, cx: &mut HostCx<'_>) {
        let (L3::Ipv4(h), L4::Tcp(t)) = (packet.l3, packet.l4) else { return };
        // A frame that is bridged has no route that says for whom it is.
        let routed = !(packet.is_noted() && packet.rare().bridged.is_some_and(|b| b.to != 0));
        if t.flags.has(TcpFlags::RST)
            || routed && (h.dst.is_multicast() || self.is_broadcast_to(packet.iif, h.dst))
        {
            return;
        }
        let payload = packet.network_len().saturating_sub(20 + t.header_len());
        let one = |flag| u32::from(t.flags.has(flag));
        let mut tcp = Tcp { sport: t.dport, dport: t.sport, flags: TcpFlags::RST, ..Tcp::default() };
        if t.flags.has(TcpFlags::ACK) {
            tcp.seq = t.ack;
        } else {
            tcp.flags = tcp.flags.with(TcpFlags::ACK);
            tcp.ack = t.seq.wrapping_add(payload + one(TcpFlags::SYN) + one(TcpFlags::FIN));
        }
        // The route's, or the host's.
        let ttl = 0;
        let l3 = L3::Ipv4(Ipv4 { src: h.dst, dst: h.src, tos: 0, ttl, id: 0, frag_off: IP_DF, ..h });
        let len = penstock_packet::headers::ETH_HLEN + 40;
        let mut answer = cx.pool.alloc(Skb { len, pkt_len: len, l3, l4: L4::Tcp(tcp), ..Skb::clone(packet) });
        (answer.priority, answer.mark, answer.iif, answer.flow) = (0, 0, 0, 0);
        answer.reset_ct();
        attach(&mut answer, packet);
        if packet.is_noted() && packet.rare().bridged.is_some() {
            return self.reset_by_port(packet, answer, cx);
        }
        // Nobody waits for the outcome.
        let _ = self.send(answer, cx);
    }
}
