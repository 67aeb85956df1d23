//! The counters of a machine's IP, ICMP, UDP and TCP: `/proc/net/snmp`, `/proc/net/netstat` and `/proc/net/snmp6`, which `nstat` shows.
//!
//! Follows: linux v6.12 include/uapi/linux/snmp.h, net/ipv4/proc.c, net/ipv6/proc.c; each is raised where the kernel's function raises it.
//! Differs: no reports of listeners (MLD), no `MPTcpExt`; of TCP what `penstock-tcp` says (`mib`).

use crate::Host;
use penstock_model::Kernel;
use penstock_packet::headers::{Quoted, ipproto};
use penstock_packet::{L4, Skb};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The counters of IPv4, or of IPv6 (`struct ipstats_mib`).
#[derive(Clone, Debug, Default)]
pub struct IpMib {
    // With each packet.
    pub(crate) received: u64,
    pub(crate) received_octets: u64,
    /// By the ECN field; the segments of a super-packet each for itself.
    pub(crate) ecn: [u64; 4],
    pub(crate) delivers: u64,
    pub(crate) forwarded: u64,
    pub(crate) requests: u64,
    pub(crate) transmits: u64,
    pub(crate) transmitted_octets: u64,
    // The others.
    pub(crate) in_groups: [u64; 2],
    pub(crate) out_groups: [u64; 2],
    pub(crate) in_broadcasts: [u64; 2],
    pub(crate) out_broadcasts: [u64; 2],
    pub(crate) header_errors: u64,
    pub(crate) too_big: u64,
    pub(crate) address_errors: u64,
    pub(crate) in_no_routes: u64,
    pub(crate) unknown_protocols: u64,
    pub(crate) in_discards: u64,
    pub(crate) checksum_errors: u64,
    pub(crate) out_discards: u64,
    pub(crate) out_no_routes: u64,
    pub(crate) reasm_timeout: u64,
    pub(crate) reasm_required: u64,
    pub(crate) reasm_ok: u64,
    pub(crate) reasm_fails: u64,
    pub(crate) reasm_overlaps: u64,
    pub(crate) frag_ok: u64,
    pub(crate) frag_fails: u64,
    pub(crate) frag_creates: u64,
}

impl IpMib {
    /// A packet has come.
    //= linux v6.12 net/ipv4/ip_input.c ip_rcv_core; net/ipv6/ip6_input.c ip6_rcv_core
    #[inline(always)] // With each packet.
    pub(crate) fn receives(&mut self, packet: &Skb, tos: u8) {
        self.arrives(packet);
        self.ecn[usize::from(tos & 3)] += u64::from(packet.segments());
    }
    /// The same before its header is looked at.
    #[inline(always)] // With each packet.
    pub(crate) fn arrives(&mut self, packet: &Skb) {
        self.received += 1;
        self.received_octets += u64::from(packet.network_len());
    }
    /// A packet goes to a device.
    //= linux v6.12 net/ipv4/ip_output.c ip_finish_output2; net/ipv6/ip6_output.c ip6_finish_output2
    #[inline(always)] // With each packet.
    pub(crate) fn leaves(&mut self, packet: &Skb) {
        self.transmits += 1;
        self.transmitted_octets += u64::from(packet.network_len());
    }
}

/// One more, of so many bytes of IP.
pub(crate) fn count(of: &mut [u64; 2], packet: &Skb) {
    of[0] += 1;
    of[1] += u64::from(packet.network_len());
}

/// The counters of ICMP, or of ICMPv6.
#[derive(Clone, Debug, Default)]
pub struct IcmpMib {
    pub(crate) received: BTreeMap<u8, u64>,
    pub(crate) sent: BTreeMap<u8, u64>,
    pub(crate) in_errors: u64,
    pub(crate) checksum_errors: u64,
    pub(crate) out_errors: u64,
    pub(crate) limited: u64,
    /// Held back for the sake of all (`OutRateLimitGlobal`): those of ICMPv6 as well count among ICMP's.
    pub(crate) limited_together: u64,
}

impl IcmpMib {
    /// A message of this type has come.
    pub(crate) fn receives(&mut self, ty: u8) {
        *self.received.entry(ty).or_default() += 1;
    }
    /// A message of this type is sent.
    pub(crate) fn sends(&mut self, ty: u8) {
        *self.sent.entry(ty).or_default() += 1;
    }
}

/// The counters of UDP over IPv4, or over IPv6.
#[derive(Clone, Debug, Default)]
pub struct UdpMib {
    /// Datagrams that programs have had (`InDatagrams`).
    pub received: u64,
    /// Those for ports where nobody listens (`NoPorts`).
    pub no_ports: u64,
    /// Those with a checksum that is wrong (`InCsumErrors`, and among `InErrors`).
    pub checksum_errors: u64,
    /// Those sent (`OutDatagrams`).
    pub sent: u64,
    /// Those that were not sent for want of memory, or dropped by the queue of their device (`SndbufErrors`).
    pub no_memory: u64,
}

/// All counters of a machine, or of one of its namespaces.
#[derive(Clone, Debug, Default)]
pub struct Snmp {
    pub(crate) ip: IpMib,
    pub(crate) ip6: IpMib,
    pub(crate) icmp: IcmpMib,
    pub(crate) icmp6: IcmpMib,
    /// UDP over IPv4 and over IPv6.
    pub udp: [UdpMib; 2],
    /// Segments of TCP that have come (`InSegs`).
    pub tcp_segments: u64,
    /// Those with a checksum that is wrong.
    pub(crate) tcp_checksum_errors: u64,
    /// Resets for what belongs to no connection: `OutRsts`, and among `OutSegs`.
    pub tcp_resets: u64,
    /// Packets that had not come the way back (`IPReversePathFilter`).
    pub(crate) rp_filter: u64,
    /// What the connections have counted, by the names of `nstat`; told when it is asked for.
    tcp: BTreeMap<&'static str, u64>,
    /// The same of those that are closed and forgotten.
    gone: BTreeMap<&'static str, u64>,
    /// What `nstat` has seen last.
    pub(crate) seen: BTreeMap<String, u64>,
}

impl Snmp {
    /// Adds what a closed connection had counted.
    pub fn bury_tcp(&mut self, name: &'static str, n: u64) {
        *self.gone.entry(name).or_default() += n;
    }
    /// What the connections of this machine have counted that are still there, by the names of `nstat`.
    pub fn tell_tcp(&mut self, counted: BTreeMap<&'static str, u64>) {
        self.tcp = counted;
    }
    /// An error of ICMP has come about a packet of nobody here.
    //= linux v6.12 net/ipv4/udp.c __udp4_lib_err; net/ipv4/tcp_ipv4.c tcp_v4_err; and of IPv6
    fn error_of_nobody(&mut self, six: bool) {
        if six {
            self.icmp6.in_errors += 1;
        } else {
            self.icmp.in_errors += 1;
        }
    }
    /// A packet for this machine has a checksum that is wrong behind its IP header.
    //= linux v6.12 net/ipv4/tcp_ipv4.c tcp_v4_rcv; net/ipv4/udp.c __udp4_lib_rcv; net/ipv4/icmp.c icmp_rcv; and of IPv6
    #[cold]
    pub(crate) fn damaged(&mut self, packet: &Skb, six: bool) {
        if six {
            self.ip6.delivers += 1
        } else {
            self.ip.delivers += 1
        }
        match packet.l4 {
            L4::Tcp(_) => {
                self.tcp_segments += 1;
                self.tcp_checksum_errors += 1;
            }
            L4::Udp(_) => self.udp[usize::from(six)].checksum_errors += 1,
            L4::Icmp(_) if six => self.icmp6.checksum_errors += 1,
            L4::Icmp(_) => self.icmp.checksum_errors += 1,
            L4::None => {}
        }
    }
    fn tcp(&self, name: &str) -> u64 {
        let of = |all: &BTreeMap<&str, u64>| all.get(name).copied().unwrap_or(0);
        of(&self.tcp) + of(&self.gone)
    }
}

/// `snmp4_net_list`.
#[rustfmt::skip]
const TCP_EXT: [&str; 131] = [
    "SyncookiesSent", "SyncookiesRecv", "SyncookiesFailed", "EmbryonicRsts", "PruneCalled", "RcvPruned",
    "OfoPruned", "OutOfWindowIcmps", "LockDroppedIcmps", "ArpFilter", "TW", "TWRecycled", "TWKilled",
    "PAWSActive", "PAWSEstab", "DelayedACKs", "DelayedACKLocked", "DelayedACKLost", "ListenOverflows",
    "ListenDrops", "TCPHPHits", "TCPPureAcks", "TCPHPAcks", "TCPRenoRecovery", "TCPSackRecovery",
    "TCPSACKReneging", "TCPSACKReorder", "TCPRenoReorder", "TCPTSReorder", "TCPFullUndo",
    "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo", "TCPLostRetransmit", "TCPRenoFailures",
    "TCPSackFailures", "TCPLossFailures", "TCPFastRetrans", "TCPSlowStartRetrans", "TCPTimeouts",
    "TCPLossProbes", "TCPLossProbeRecovery", "TCPRenoRecoveryFail", "TCPSackRecoveryFail",
    "TCPRcvCollapsed", "TCPBacklogCoalesce", "TCPDSACKOldSent", "TCPDSACKOfoSent", "TCPDSACKRecv",
    "TCPDSACKOfoRecv", "TCPAbortOnData", "TCPAbortOnClose", "TCPAbortOnMemory", "TCPAbortOnTimeout",
    "TCPAbortOnLinger", "TCPAbortFailed", "TCPMemoryPressures", "TCPMemoryPressuresChrono",
    "TCPSACKDiscard", "TCPDSACKIgnoredOld", "TCPDSACKIgnoredNoUndo", "TCPSpuriousRTOs", "TCPMD5NotFound",
    "TCPMD5Unexpected", "TCPMD5Failure", "TCPSackShifted", "TCPSackMerged", "TCPSackShiftFallback",
    "TCPBacklogDrop", "PFMemallocDrop", "TCPMinTTLDrop", "TCPDeferAcceptDrop", "IPReversePathFilter",
    "TCPTimeWaitOverflow", "TCPReqQFullDoCookies", "TCPReqQFullDrop", "TCPRetransFail", "TCPRcvCoalesce",
    "TCPOFOQueue", "TCPOFODrop", "TCPOFOMerge", "TCPChallengeACK", "TCPSYNChallenge",
    "TCPFastOpenActive", "TCPFastOpenActiveFail", "TCPFastOpenPassive", "TCPFastOpenPassiveFail",
    "TCPFastOpenListenOverflow", "TCPFastOpenCookieReqd", "TCPFastOpenBlackhole",
    "TCPSpuriousRtxHostQueues", "BusyPollRxPackets", "TCPAutoCorking", "TCPFromZeroWindowAdv",
    "TCPToZeroWindowAdv", "TCPWantZeroWindowAdv", "TCPSynRetrans", "TCPOrigDataSent",
    "TCPHystartTrainDetect", "TCPHystartTrainCwnd", "TCPHystartDelayDetect", "TCPHystartDelayCwnd",
    "TCPACKSkippedSynRecv", "TCPACKSkippedPAWS", "TCPACKSkippedSeq", "TCPACKSkippedFinWait2",
    "TCPACKSkippedTimeWait", "TCPACKSkippedChallenge", "TCPWinProbe", "TCPKeepAlive", "TCPMTUPFail",
    "TCPMTUPSuccess", "TCPDelivered", "TCPDeliveredCE", "TCPAckCompressed", "TCPZeroWindowDrop",
    "TCPRcvQDrop", "TCPWqueueTooBig", "TCPFastOpenPassiveAltKey", "TcpTimeoutRehash",
    "TcpDuplicateDataRehash", "TCPDSACKRecvSegs", "TCPDSACKIgnoredDubious", "TCPMigrateReqSuccess",
    "TCPMigrateReqFailure", "TCPPLBRehash", "TCPAORequired", "TCPAOBad", "TCPAOKeyNotFound", "TCPAOGood",
    "TCPAODroppedIcmps",
];

/// `icmpmibmap`: types by their names.
const ICMP_TYPES: [(&str, u8); 11] = [
    ("DestUnreachs", 3),
    ("TimeExcds", 11),
    ("ParmProbs", 12),
    ("SrcQuenchs", 4),
    ("Redirects", 5),
    ("Echos", 8),
    ("EchoReps", 0),
    ("Timestamps", 13),
    ("TimestampReps", 14),
    ("AddrMasks", 17),
    ("AddrMaskReps", 18),
];

/// `icmp6type2name`.
const ICMP6_TYPES: [(&str, u8); 15] = [
    ("DestUnreachs", 1),
    ("PktTooBigs", 2),
    ("TimeExcds", 3),
    ("ParmProblems", 4),
    ("Echos", 128),
    ("EchoReplies", 129),
    ("GroupMembQueries", 130),
    ("GroupMembResponses", 131),
    ("GroupMembReductions", 132),
    ("RouterSolicits", 133),
    ("RouterAdvertisements", 134),
    ("NeighborSolicits", 135),
    ("NeighborAdvertisements", 136),
    ("Redirects", 137),
    ("MLDv2Reports", 143),
];

/// A group of counters, as the files have them: its name, and each with its own.
type Group = (&'static str, Vec<(String, i64)>);

fn named(all: &[(&str, u64)]) -> Vec<(String, i64)> {
    all.iter().map(|&(name, n)| (name.to_owned(), n as i64)).collect()
}

impl Host {
    /// An error of ICMP has come about a segment or datagram that no socket here has sent. What tunnels send in datagrams is theirs to hear of.
    //= linux v6.12 net/ipv4/udp.c __udp4_lib_err_encap
    pub fn error_of_nobody(&mut self, six: bool, about: &Quoted) {
        let of_tunnel = self.has_vxlan_port(about.dport) || self.is_wireguards(about.sport);
        if about.protocol == ipproto::UDP && of_tunnel {
            return;
        }
        self.snmp.error_of_nobody(six);
    }
    /// The counters, to be raised by whoever has the sockets.
    pub fn snmp_mut(&mut self) -> &mut Snmp {
        &mut self.snmp
    }
    /// Whether there are such files: those of other kernels have other counters.
    pub(crate) fn has_snmp(&self) -> bool {
        self.kernel == Kernel::V6_12
    }
    /// `/proc/net/snmp`.
    //= linux v6.12 net/ipv4/proc.c snmp_seq_show
    pub(crate) fn proc_snmp(&self) -> Option<String> {
        self.has_snmp().then(|| lines(&self.snmp_groups()))
    }
    /// `/proc/net/netstat`.
    //= linux v6.12 net/ipv4/proc.c netstat_seq_show
    pub(crate) fn proc_netstat(&self) -> Option<String> {
        self.has_snmp().then(|| lines(&self.netstat_groups()))
    }
    /// `/proc/net/snmp6`.
    //= linux v6.12 net/ipv6/proc.c snmp6_seq_show
    pub(crate) fn proc_snmp6(&self) -> Option<String> {
        self.has_snmp().then(|| {
            self.snmp6().iter().fold(String::new(), |mut text, (name, n)| {
                let _ = writeln!(text, "{name:<32}\t{n}");
                text
            })
        })
    }

    fn snmp_groups(&self) -> Vec<Group> {
        let s = &self.snmp;
        let ip = &s.ip;
        let of_ip = named(&[
            ("Forwarding", if self.sysctl.ip_forward { 1 } else { 2 }),
            ("DefaultTTL", self.sysctl.default_ttl.into()),
            ("InReceives", ip.received),
            ("InHdrErrors", ip.header_errors),
            ("InAddrErrors", ip.address_errors),
            ("ForwDatagrams", ip.forwarded),
            ("InUnknownProtos", ip.unknown_protocols),
            ("InDiscards", ip.in_discards),
            ("InDelivers", ip.delivers),
            ("OutRequests", ip.requests),
            ("OutDiscards", ip.out_discards),
            ("OutNoRoutes", ip.out_no_routes),
            ("ReasmTimeout", ip.reasm_timeout),
            ("ReasmReqds", ip.reasm_required),
            ("ReasmOKs", ip.reasm_ok),
            ("ReasmFails", ip.reasm_fails),
            ("FragOKs", ip.frag_ok),
            ("FragFails", ip.frag_fails),
            ("FragCreates", ip.frag_creates),
            ("OutTransmits", ip.transmits),
        ]);
        let mut all = vec![("Ip", of_ip), ("Icmp", icmp(&s.icmp))];
        // Sixteen in a line.
        let types = [("InType", &s.icmp.received), ("OutType", &s.icmp.sent)];
        let types: Vec<(String, i64)> = types
            .iter()
            .flat_map(|(way, types)| types.iter().map(move |(ty, n)| (format!("{way}{ty}"), *n as i64)))
            .collect();
        all.extend(types.chunks(16).map(|some| ("IcmpMsg", some.to_vec())));
        let resets = s.tcp_resets;
        let errors = s.tcp_checksum_errors;
        let mut tcp = named(&[("RtoAlgorithm", 1), ("RtoMin", 200), ("RtoMax", 120_000)]);
        tcp.push(("MaxConn".to_owned(), -1));
        tcp.extend(named(&[
            ("ActiveOpens", s.tcp("TcpActiveOpens")),
            ("PassiveOpens", s.tcp("TcpPassiveOpens")),
            ("AttemptFails", s.tcp("TcpAttemptFails")),
            ("EstabResets", s.tcp("TcpEstabResets")),
            ("CurrEstab", s.tcp("TcpCurrEstab")),
            ("InSegs", s.tcp_segments),
            ("OutSegs", s.tcp("TcpOutSegs") + resets),
            ("RetransSegs", s.tcp("TcpRetransSegs")),
            ("InErrs", s.tcp("TcpInErrs") + errors),
            ("OutRsts", s.tcp("TcpOutRsts") + resets),
            ("InCsumErrors", errors),
        ]));
        all.extend([("Tcp", tcp), ("Udp", udp(&s.udp[0])), ("UdpLite", udp(&UdpMib::default()))]);
        all
    }

    fn netstat_groups(&self) -> Vec<Group> {
        let s = &self.snmp;
        let ip = &s.ip;
        let tcp = TCP_EXT.iter().map(|&name| {
            let n = match name {
                "IPReversePathFilter" => s.rp_filter,
                _ => s.tcp(&format!("TcpExt{name}")),
            };
            (name.to_owned(), n as i64)
        });
        let of_ip = named(&[
            ("InNoRoutes", ip.in_no_routes),
            ("InTruncatedPkts", 0),
            ("InMcastPkts", ip.in_groups[0]),
            ("OutMcastPkts", ip.out_groups[0]),
            ("InBcastPkts", ip.in_broadcasts[0]),
            ("OutBcastPkts", ip.out_broadcasts[0]),
            ("InOctets", ip.received_octets),
            ("OutOctets", ip.transmitted_octets),
            ("InMcastOctets", ip.in_groups[1]),
            ("OutMcastOctets", ip.out_groups[1]),
            ("InBcastOctets", ip.in_broadcasts[1]),
            ("OutBcastOctets", ip.out_broadcasts[1]),
            ("InCsumErrors", ip.checksum_errors),
            ("InNoECTPkts", ip.ecn[0]),
            ("InECT1Pkts", ip.ecn[1]),
            ("InECT0Pkts", ip.ecn[2]),
            ("InCEPkts", ip.ecn[3]),
            ("ReasmOverlaps", ip.reasm_overlaps),
        ]);
        vec![("TcpExt", tcp.collect()), ("IpExt", of_ip)]
    }

    fn snmp6(&self) -> Vec<(String, i64)> {
        let s = &self.snmp;
        let ip = &s.ip6;
        let mut all = named(&[
            ("Ip6InReceives", ip.received),
            ("Ip6InHdrErrors", ip.header_errors),
            ("Ip6InTooBigErrors", ip.too_big),
            ("Ip6InNoRoutes", ip.in_no_routes),
            ("Ip6InAddrErrors", ip.address_errors),
            ("Ip6InUnknownProtos", ip.unknown_protocols),
            ("Ip6InTruncatedPkts", 0),
            ("Ip6InDiscards", ip.in_discards),
            ("Ip6InDelivers", ip.delivers),
            ("Ip6OutForwDatagrams", ip.forwarded),
            ("Ip6OutRequests", ip.requests),
            ("Ip6OutDiscards", ip.out_discards),
            ("Ip6OutNoRoutes", ip.out_no_routes),
            ("Ip6ReasmTimeout", ip.reasm_timeout),
            ("Ip6ReasmReqds", ip.reasm_required),
            ("Ip6ReasmOKs", ip.reasm_ok),
            ("Ip6ReasmFails", ip.reasm_fails),
            ("Ip6FragOKs", ip.frag_ok),
            ("Ip6FragFails", ip.frag_fails),
            ("Ip6FragCreates", ip.frag_creates),
            ("Ip6InMcastPkts", ip.in_groups[0]),
            ("Ip6OutMcastPkts", ip.out_groups[0]),
            ("Ip6InOctets", ip.received_octets),
            ("Ip6OutOctets", ip.transmitted_octets),
            ("Ip6InMcastOctets", ip.in_groups[1]),
            ("Ip6OutMcastOctets", ip.out_groups[1]),
            ("Ip6InBcastOctets", 0),
            ("Ip6OutBcastOctets", 0),
            ("Ip6InNoECTPkts", ip.ecn[0]),
            ("Ip6InECT1Pkts", ip.ecn[1]),
            ("Ip6InECT0Pkts", ip.ecn[2]),
            ("Ip6InCEPkts", ip.ecn[3]),
            ("Ip6OutTransmits", ip.transmits),
        ]);
        let i = &s.icmp6;
        all.extend(named(&[
            ("Icmp6InMsgs", i.received.values().sum::<u64>() + i.checksum_errors),
            ("Icmp6InErrors", i.in_errors + i.checksum_errors),
            ("Icmp6OutMsgs", i.sent.values().sum()),
            ("Icmp6OutErrors", i.out_errors),
            ("Icmp6InCsumErrors", i.checksum_errors),
            ("Icmp6OutRateLimitHost", i.limited),
        ]));
        let ways = [("In", &i.received), ("Out", &i.sent)];
        for (way, types) in ways {
            all.extend(
                ICMP6_TYPES.iter().map(|(name, ty)| {
                    (format!("Icmp6{way}{name}"), types.get(ty).copied().unwrap_or(0) as i64)
                }),
            );
        }
        for (way, types) in ways {
            all.extend(types.iter().map(|(ty, n)| (format!("Icmp6{way}Type{ty}"), *n as i64)));
        }
        let prefixed = |prefix: &str, all: Vec<(String, i64)>| -> Vec<(String, i64)> {
            all.into_iter().map(|(name, n)| (format!("{prefix}{name}"), n)).collect()
        };
        all.extend(prefixed("Udp6", udp(&s.udp[1])));
        let lite = udp(&UdpMib::default()).into_iter().filter(|(name, _)| name != "IgnoredMulti");
        all.extend(prefixed("UdpLite6", lite.collect()));
        all
    }

    /// All counters in the order of `nstat`, which leaves out what does not count.
    //= iproute2 v6.1 misc/nstat.c load_snmp, load_snmp6, load_netstat, useless_numbers
    pub(crate) fn nstat_counters(&self) -> Vec<(String, i64)> {
        const SETTINGS: [&str; 6] =
            ["IpForwarding", "IpDefaultTTL", "TcpRtoAlgorithm", "TcpRtoMin", "TcpRtoMax", "TcpMaxConn"];
        let joined = |groups: Vec<Group>| {
            groups
                .into_iter()
                .flat_map(|(group, all)| all.into_iter().map(move |(name, n)| (format!("{group}{name}"), n)))
        };
        let all = joined(self.snmp_groups()).chain(self.snmp6()).chain(joined(self.netstat_groups()));
        all.filter(|(name, _)| !SETTINGS.contains(&name.as_str()) && name != "TcpCurrEstab").collect()
    }
}

fn icmp(i: &IcmpMib) -> Vec<(String, i64)> {
    let of = |way: &'static str, types: &BTreeMap<u8, u64>| -> Vec<(String, i64)> {
        let all = ICMP_TYPES.iter();
        all.map(|(name, ty)| (format!("{way}{name}"), types.get(ty).copied().unwrap_or(0) as i64)).collect()
    };
    let mut all = named(&[
        ("InMsgs", i.received.values().sum::<u64>() + i.checksum_errors),
        ("InErrors", i.in_errors + i.checksum_errors),
        ("InCsumErrors", i.checksum_errors),
    ]);
    all.extend(of("In", &i.received));
    all.extend(named(&[
        ("OutMsgs", i.sent.values().sum()),
        ("OutErrors", i.out_errors),
        ("OutRateLimitGlobal", i.limited_together),
        ("OutRateLimitHost", i.limited),
    ]));
    all.extend(of("Out", &i.sent));
    all
}

fn udp(u: &UdpMib) -> Vec<(String, i64)> {
    named(&[
        ("InDatagrams", u.received),
        ("NoPorts", u.no_ports),
        ("InErrors", u.checksum_errors),
        ("OutDatagrams", u.sent),
        ("RcvbufErrors", 0),
        ("SndbufErrors", u.no_memory),
        ("InCsumErrors", u.checksum_errors),
        ("IgnoredMulti", 0),
        ("MemErrors", 0),
    ])
}

/// Two lines a group: the names, and what they are.
fn lines(groups: &[Group]) -> String {
    let mut text = String::new();
    for (group, all) in groups {
        let _ = write!(text, "{group}:");
        all.iter().for_each(|(name, _)| {
            let _ = write!(text, " {name}");
        });
        let _ = write!(text, "\n{group}:");
        all.iter().for_each(|(_, n)| {
            let _ = write!(text, " {n}");
        });
        text.push('\n');
    }
    text
}
