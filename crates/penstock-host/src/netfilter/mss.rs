//! The maximum segment size that a rule writes into a SYN: `TCPMSS`, and nft's `tcp option maxseg size set`.
//!
//! Follows: linux v6.12 `net/netfilter/xt_TCPMSS.c` `tcpmss_mangle_packet`, `tcpmss_reverse_mtu`; `nft_exthdr.c`
//! `nft_exthdr_tcp_set_eval`; `nft_rt.c` `get_tcpmss`.
//! Differs: the MTU of a way is its device's, or over IPv6 its route's, and not what is known of the path.

use super::eval::Way;
use crate::route::RouteKind;
use crate::six::Key6;
use penstock_lang::iptables::Plain;
use penstock_packet::{L3, L4, Skb};

/// The size that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mss {
    /// `--clamp-mss-to-pmtu`, `rt mtu`: what fits the ways there and back.
    Pmtu,
    /// `--set-mss`, a number: bytes.
    Bytes(u16),
}

/// `TCP_MSS_DEFAULT`, bytes.
const DEFAULT: u16 = 536;
/// What a peer of IPv6 takes that has said nothing, bytes.
const DEFAULT6: u16 = 1220;
/// `TCPOLEN_MSS`, bytes.
const OPTION: u32 = 4;
/// The longest TCP header, bytes.
const LONGEST: u32 = 60;

impl Mss {
    /// What a target of iptables says; `None` of other targets.
    pub(super) fn of_target(p: &Plain) -> Option<Mss> {
        if p.name != "TCPMSS" {
            return None;
        }
        match p.save.strip_prefix(" --set-mss ") {
            Some(bytes) => bytes.parse().ok().map(Mss::Bytes),
            None => Some(Mss::Pmtu),
        }
    }
    /// What a statement of nft says; `None` of other statements.
    pub(super) fn of_statement(text: &str) -> Option<Mss> {
        match text.strip_prefix("tcp option maxseg size set ")? {
            "rt mtu" => Some(Mss::Pmtu),
            bytes => bytes.parse().ok().map(Mss::Bytes),
        }
    }

    /// `TCPMSS`: a larger size becomes this one, and a SYN without any gets one. `false`: the packet is dropped, for no segment fits its way.
    pub(super) fn target(self, skb: &mut Skb, way: &Way<'_>) -> bool {
        let headers = ip_and_tcp(skb);
        // Of a later fragment there is no header.
        let L4::Tcp(t) = &skb.l4 else { return true };
        let size = match self {
            Mss::Bytes(bytes) => bytes,
            Mss::Pmtu => {
                let (there, back) = mtus(skb, way);
                let mtu = there.unwrap_or(u32::MAX).min(back.unwrap_or(u32::MAX));
                if mtu <= headers {
                    return false;
                }
                (mtu - headers) as u16
            }
        };
        let header = t.header_len();
        let data = skb.network_len() + 20 > headers + header;
        let six = matches!(skb.l3, L3::Ipv6(_));
        let L4::Tcp(t) = &mut skb.l4 else { return true };
        match &mut t.mss {
            Some(old) => *old = (*old).min(size),
            None if data || header >= LONGEST => {}
            None => {
                t.mss = Some(size.min(if six { DEFAULT6 } else { DEFAULT }));
                skb.len += OPTION;
            }
        }
        true
    }
    /// `tcp option maxseg size set`: a larger size becomes this one. `false`: there is none, and the rule goes no further.
    pub(super) fn statement(self, skb: &mut Skb, way: &Way<'_>) -> bool {
        let headers = ip_and_tcp(skb);
        let size = match self {
            Mss::Bytes(bytes) => bytes,
            Mss::Pmtu => {
                let (Some(there), back) = mtus(skb, way) else { return false };
                let mtu = there.min(back.unwrap_or(there));
                if mtu <= headers || mtu > 0xffff { DEFAULT } else { (mtu - headers) as u16 }
            }
        };
        match &mut skb.l4 {
            L4::Tcp(t) => match &mut t.mss {
                Some(old) => {
                    *old = (*old).min(size);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }
}

/// Bytes of an IP and a TCP header without options.
fn ip_and_tcp(skb: &Skb) -> u32 {
    match skb.l3 {
        L3::Ipv6(_) => 60,
        _ => 40,
    }
}

/// The MTU of the way that a packet is about to take, and of the way to its sender; `None`: there is none.
fn mtus(skb: &Skb, way: &Way<'_>) -> (Option<u32>, Option<u32>) {
    let Some(ports) = way.devices.ports else { return (None, None) };
    let of = |ifindex: u32| ports.devices.get(ifindex).map(|d| d.mtu);
    match skb.l3 {
        L3::Ipv4(h) => {
            let back = way.devices.fib.map(|fib| fib.search(h.src)).and_then(|hop| match hop.kind? {
                RouteKind::Local => of(1),
                RouteKind::Unicast | RouteKind::Broadcast => of(hop.oif),
                _ => None,
            });
            (of(ports.oif), back)
        }
        L3::Ipv6(h) => {
            let mtu = |dst| {
                let hop = way.devices.fib6?.search(&Key6::to(dst), &|_, _| false);
                hop.kind.filter(|k| k.leads())?;
                if hop.mtu > 0 { Some(hop.mtu) } else { of(hop.device()) }
            };
            (mtu(h.dst), mtu(h.src))
        }
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Net, routed, skb};
    use penstock_model::{Kernel, Time};
    use penstock_packet::headers::ipproto;
    use penstock_packet::{L4, Skb, Tcp, TcpFlags};

    fn syn(mss: Option<u16>) -> Skb {
        let tcp = Tcp { sport: 1000, dport: 80, flags: TcpFlags::SYN, mss, ..Tcp::default() };
        skb("10.0.1.1", "10.0.2.1", ipproto::TCP, L4::Tcp(tcp), 20 + tcp.header_len())
    }
    /// The size that a SYN arrives with, and its length as an IP packet, behind a router with these commands; 0 of one that is dropped.
    fn through(lines: &[&str], packet: Skb) -> (u16, u32) {
        let mut net: Net = routed(Kernel::V6_12);
        for line in lines {
            let said = net.hosts[1].exec(line, net.now);
            assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
        }
        assert_eq!(net.hosts[1].unsimulated(), [""; 0]);
        net.send(0, packet).unwrap();
        net.run(Time::from_ns(100_000_000));
        let arrived = net.delivered.iter().find_map(|(host, p)| match p.l4 {
            L4::Tcp(t) if *host == 2 => Some((t.mss.unwrap_or(0), p.network_len())),
            _ => None,
        });
        arrived.unwrap_or_default()
    }
    const CLAMP: &str =
        "iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu";

    #[test]
    fn a_syn_is_clamped_to_the_smaller_way() {
        assert_eq!(through(&[CLAMP], syn(Some(1460))), (1460, 44));
        assert_eq!(through(&["ip link set eth1 mtu 1400", CLAMP], syn(Some(1460))), (1360, 44));
        // The way back counts as well.
        assert_eq!(through(&["ip link set eth0 mtu 1300", CLAMP], syn(Some(1460))), (1260, 44));
        // Never up.
        assert_eq!(through(&["ip link set eth1 mtu 1400", CLAMP], syn(Some(900))), (900, 44));
        // However small.
        assert_eq!(through(&["ip link set eth0 mtu 68", CLAMP], syn(Some(1460))), (28, 44));
    }
    #[test]
    fn a_syn_without_a_size_gets_one_unless_it_has_data() {
        let set = |mss| {
            format!(
                "iptables -t mangle -A POSTROUTING -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss {mss}"
            )
        };
        assert_eq!(through(&[&set(1000)], syn(Some(1460))), (1000, 44));
        assert_eq!(through(&[&set(1000)], syn(None)), (536, 44));
        assert_eq!(through(&[&set(500)], syn(None)), (500, 44));
        let mut data = syn(None);
        data.len += 10;
        assert_eq!(through(&[&set(500)], data), (0, 50));
    }
    #[test]
    fn nft_does_the_same_and_adds_none() {
        let rules = |set: &str| {
            [
                "nft add table ip t".to_owned(),
                "nft add chain ip t f '{ type filter hook forward priority mangle; }'".to_owned(),
                format!("nft add rule ip t f tcp flags syn tcp option maxseg size set {set} counter drop"),
            ]
        };
        let clamp = rules("rt mtu");
        let all: Vec<&str> = clamp[..2].iter().map(String::as_str).collect();
        let rule = |set: &str| format!("nft add rule ip t f tcp flags syn tcp option maxseg size set {set}");
        let pmtu = rule("rt mtu");
        let fixed = rule("1200");
        let with = |line| [all.clone(), vec!["ip link set eth1 mtu 1400", line]].concat();
        assert_eq!(through(&with(&pmtu), syn(Some(1460))), (1360, 44));
        assert_eq!(through(&with(&fixed), syn(Some(1460))), (1200, 44));
        assert_eq!(through(&with(&fixed), syn(None)), (0, 40));
        // A rule goes on behind the statement where there is an option, and no further where there is none.
        assert_eq!(through(&with(&clamp[2]), syn(Some(1460))), (0, 0));
        assert_eq!(through(&with(&clamp[2]), syn(None)), (0, 40));
    }
}
