//! The keys of `/proc/sys` there are, the values they begin with, and what follows from another value here.
//!
//! Follows: linux v6.12 Documentation/networking/ip-sysctl.rst, Documentation/admin-guide/sysctl/net.rst.

use super::more;
use crate::route::Multipath;
use Follows::{As, Moot, Not};

/// What follows from a value that is not the one a key begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Follows {
    /// What follows on Linux.
    As,
    /// Nothing, as nothing would on Linux in a network like those here; why.
    Moot(&'static str),
    /// Nothing, where on Linux something does: what is done here, whatever the value.
    Not(&'static str),
}

/// A key, the value it begins with where it is kept as text, and what follows.
pub(super) type Key = (&'static str, &'static str, Follows);

const NO_RANDOM_LOAD: &str = "no host here runs out of memory";
const NO_REDIRECTS6: &str = "no router here sends redirects of IPv6";
const NO_OPTIONS: &str = "no packet here has IP options";

/// The keys there are besides those of devices and of connection tracking.
pub(super) const KEYS: &[Key] = &[
    ("net.bridge.bridge-nf-call-arptables", "1", Moot("there is no arptables here")),
    ("net.bridge.bridge-nf-call-ip6tables", "1", As),
    ("net.bridge.bridge-nf-call-iptables", "1", As),
    ("net.bridge.bridge-nf-filter-pppoe-tagged", "0", Not("frames of PPPoE on a bridge meet no rules")),
    ("net.bridge.bridge-nf-filter-vlan-tagged", "0", Not("frames with a VLAN tag on a bridge meet no rules")),
    ("net.bridge.bridge-nf-pass-vlan-input-dev", "0", Moot("frames with a VLAN tag meet no rules")),
    ("net.core.bpf_jit_enable", "1", Moot("programs do the same compiled")),
    ("net.core.default_qdisc", "", As),
    ("net.core.netdev_budget", "300", Moot("cards are served frame by frame")),
    ("net.core.netdev_max_backlog", "1000", As),
    ("net.core.optmem_max", "131072", Moot("no socket here has options of that size")),
    ("net.core.rmem_default", "212992", Moot("programs here read at once what has come")),
    ("net.core.rmem_max", "212992", As),
    ("net.core.somaxconn", "4096", Moot("servers here accept at once")),
    ("net.core.txrehash", "1", As),
    ("net.core.wmem_default", "212992", As),
    ("net.core.wmem_max", "212992", As),
    ("net.ipv4.icmp_echo_ignore_all", "", As),
    ("net.ipv4.icmp_echo_ignore_broadcasts", "1", As),
    ("net.ipv4.icmp_ratelimit", "1000", As),
    ("net.ipv4.ip_default_ttl", "", As),
    ("net.ipv4.ip_dynaddr", "0", Moot("addresses here do not change under a connection")),
    ("net.ipv4.ip_forward", "", As),
    ("net.ipv4.ip_local_port_range", "32768\t60999", As),
    ("net.ipv4.ip_no_pmtu_disc", "0", Not("packets of TCP carry DF")),
    ("net.ipv4.ipfrag_high_thresh", "4194304", Not("fragments may take 4194304 bytes")),
    ("net.ipv4.ipfrag_time", "30", As),
    (
        "net.ipv4.raw_l3mdev_accept",
        "1",
        Not("a ping that is bound to no device hears the answers in every VRF"),
    ),
    ("net.ipv4.route.flush", "0", As),
    ("net.ipv4.tcp_adv_win_scale", "1", Moot("obsolete since Linux 6.6")),
    ("net.ipv4.tcp_allowed_congestion_control", "", As),
    ("net.ipv4.tcp_available_congestion_control", "", As),
    ("net.ipv4.tcp_base_mss", "1024", Moot("it says where probes for the MTU begin, and there are none")),
    ("net.ipv4.tcp_congestion_control", "", As),
    ("net.ipv4.tcp_dsack", "1", As),
    ("net.ipv4.tcp_early_retrans", "3", As),
    ("net.ipv4.tcp_ecn", "", As),
    ("net.ipv4.tcp_fack", "0", Moot("it has done nothing since Linux 4.15")),
    ("net.ipv4.tcp_fastopen", "1", As),
    ("net.ipv4.tcp_fin_timeout", "60", Moot("every program here closes its connections to the end")),
    ("net.ipv4.tcp_frto", "2", As),
    ("net.ipv4.tcp_keepalive_time", "7200", Moot("no program here asks for keepalives")),
    ("net.ipv4.tcp_l3mdev_accept", "0", As),
    ("net.ipv4.tcp_limit_output_bytes", "1048576", As),
    ("net.ipv4.tcp_low_latency", "0", Moot("it has done nothing since Linux 4.14")),
    ("net.ipv4.tcp_max_syn_backlog", "128", Moot("servers here accept at once")),
    ("net.ipv4.tcp_mem", "22425\t29902\t44850", Moot(NO_RANDOM_LOAD)),
    ("net.ipv4.tcp_min_tso_segs", "2", As),
    ("net.ipv4.tcp_moderate_rcvbuf", "1", As),
    ("net.ipv4.tcp_mtu_probing", "0", Not("no connection probes for the MTU of its path")),
    ("net.ipv4.tcp_no_metrics_save", "0", As),
    ("net.ipv4.tcp_notsent_lowat", "4294967295", As),
    ("net.ipv4.tcp_pacing_ca_ratio", "120", As),
    ("net.ipv4.tcp_pacing_ss_ratio", "200", As),
    ("net.ipv4.tcp_recovery", "1", Not("without its bit 1 too losses are found by RACK")),
    ("net.ipv4.tcp_reordering", "3", As),
    ("net.ipv4.tcp_retries2", "15", As),
    ("net.ipv4.tcp_rmem", "4096\t131072\t6291456", As),
    ("net.ipv4.tcp_rto_min_us", "200000", As),
    ("net.ipv4.tcp_sack", "", As),
    ("net.ipv4.tcp_slow_start_after_idle", "1", As),
    ("net.ipv4.tcp_syn_retries", "6", As),
    ("net.ipv4.tcp_synack_retries", "5", As),
    ("net.ipv4.tcp_syncookies", "1", Moot("no queue of connections overflows here")),
    ("net.ipv4.tcp_timestamps", "", As),
    ("net.ipv4.tcp_tso_win_divisor", "3", As),
    ("net.ipv4.tcp_tw_reuse", "2", Moot("a port is free again when its connection is over")),
    ("net.ipv4.tcp_window_scaling", "", As),
    ("net.ipv4.tcp_wmem", "4096\t16384\t4194304", As),
    ("net.ipv4.udp_l3mdev_accept", "0", As),
    ("net.ipv6.ip6frag_high_thresh", "4194304", As),
    ("net.ipv6.ip6frag_low_thresh", "3145728", As),
    ("net.ipv6.ip6frag_time", "60", As),
    ("net.netfilter.nf_conntrack_frag6_high_thresh", "4194304", As),
    ("net.netfilter.nf_conntrack_frag6_low_thresh", "3145728", As),
    ("net.netfilter.nf_conntrack_frag6_timeout", "60", As),
    ("net.vrf.strict_mode", "0", Not("several VRFs may have one table")),
];

/// The keys below `net.ipv4.conf.NAME`.
pub(super) const CONF: &[Key] = &[
    ("accept_local", "0", As),
    ("accept_redirects", "1", As),
    ("accept_source_route", "1", Moot(NO_OPTIONS)),
    ("arp_accept", "0", As),
    ("arp_announce", "0", As),
    ("arp_filter", "0", As),
    ("arp_ignore", "0", As),
    ("arp_notify", "0", As),
    ("forwarding", "", As),
    ("log_martians", "0", Moot("it writes to the log alone")),
    ("promote_secondaries", "0", As),
    ("proxy_arp", "0", As),
    ("route_localnet", "0", As),
    ("rp_filter", "0", As),
    ("secure_redirects", "1", As),
    ("send_redirects", "1", As),
    ("shared_media", "1", As),
];

/// The keys below `net.ipv6.conf.NAME`.
pub(super) const CONF6: &[Key] = &[
    ("accept_ra", "1", As),
    ("accept_redirects", "1", Moot(NO_REDIRECTS6)),
    ("addr_gen_mode", "1", As),
    ("autoconf", "1", As),
    ("dad_transmits", "1", Moot("addresses are usable at once")),
    ("disable_ipv6", "0", As),
    ("forwarding", "0", As),
    ("hop_limit", "64", As),
    ("keep_addr_on_down", "0", As),
    ("mtu", "1280", As),
    ("proxy_ndp", "0", As),
    ("use_tempaddr", "0", Not("a host makes one address of a prefix, that of its hardware address")),
];

/// Whether a value of a key that is not followed in all is one that is.
pub(super) fn is_followed(key: &str, value: &str) -> bool {
    match key {
        // TCP_RACK_LOSS_DETECTION, with the two others or without.
        "net.ipv4.tcp_recovery" => value.parse::<i64>().is_ok_and(|n| n & 1 == 1),
        _ if key.ends_with(".fib_multipath_hash_policy") => matches!(value, "1" | "3"),
        _ if key.ends_with(".fib_multipath_hash_fields") => {
            value.parse::<i64>().is_ok_and(|n| n & !Multipath::OUTER == 0)
        }
        _ => false,
    }
}

/// All keys with what is said of a value that they do not begin with: that nothing follows here where on Linux something does (`true`), or that
/// nothing could (`false`). Those of devices are below `NAME`.
pub fn unfollowed() -> impl Iterator<Item = (String, bool, &'static str)> {
    let own = KEYS.iter().map(|&(key, _, follows)| (key.to_owned(), follows));
    let four = CONF.iter().map(|&(key, _, follows)| (format!("net.ipv4.conf.NAME.{key}"), follows));
    let six = CONF6.iter().map(|&(key, _, follows)| (format!("net.ipv6.conf.NAME.{key}"), follows));
    let rest = more::MORE.iter().map(|&(key, _, follows)| (key.to_owned(), follows));
    let below = [
        ("net.ipv4.conf", more::MORE_CONF),
        ("net.ipv6.conf", more::MORE_CONF6),
        ("net.ipv4.neigh", more::NEIGH),
        ("net.ipv6.neigh", more::NEIGH),
    ];
    let below = below.into_iter().flat_map(|(folder, table)| {
        table.iter().map(move |&(key, _, follows)| (format!("{folder}.NAME.{key}"), follows))
    });
    let elsewhere = more::ELSEWHERE.iter().map(|&(key, _)| (key.to_owned(), Moot(more::NO_NETWORK)));
    own.chain(four).chain(six).chain(rest).chain(below).chain(elsewhere).filter_map(|(key, follows)| {
        match follows {
            As => None,
            Moot(why) => Some((key, false, why)),
            Not(what) => Some((key, true, what)),
        }
    })
}

/// What follows from a key's value; `None` for one that is not of these lists (those of connection tracking).
pub(super) fn follows(key: &str) -> Option<Follows> {
    for (folder, conf) in [("net.ipv4.conf.", CONF), ("net.ipv6.conf.", CONF6)] {
        if let Some((_, attribute)) = key.strip_prefix(folder).and_then(|rest| rest.rsplit_once('.'))
            && let Some(own) = conf.iter().find(|c| c.0 == attribute)
        {
            return Some(own.2);
        }
    }
    KEYS.iter().find(|k| k.0 == key).or_else(|| more::find(key)).map(|k| k.2)
}
