//! The keys of `/proc/sys` that change nothing here, beside those of [`super::keys`] that do: what begins with `net.`, and what has nothing to do with
//! networks.
//!
//! Follows: `sysctl -a` of linux 6.12.117; Documentation/networking/ip-sysctl.rst, Documentation/admin-guide/sysctl/.
//! Differs: those of DCCP's and SCTP's connections take any number; first values that hang on a machine's memory are those of one with 1 GiB.

use super::keys::Follows::{As, Moot, Not};
use super::keys::Key;

const AS_FIRST: &str = "packets go as with the value it begins with";
const WITHIN: &str = "a packet's own addresses and ports choose its way, never those of a packet within it";
const FRAMES: &str = "cards are served frame by frame, as soon as a frame is there";
const MEMORY: &str = "no host here runs out of memory";
const LOG: &str = "it is about what the log or watching programs are told";
const PROCESSOR: &str = "a host here has one processor";
const CACHE: &str = "what is known of routes and sockets is found anew for each packet";
const SYN: &str = "servers here accept at once";
const KEEPALIVE: &str = "no program here asks for keepalives";
const PROBES: &str = "it is about probes for the MTU of a path, and there are none";
const OFF: &str = "it is about what net.ipv4.tcp_plb_enabled turns on";
const URGENT: &str = "no program here sends urgent data";
const SOCKETS: &str = "programs here get the addresses and ports they ask for";
const MULTICAST: &str = "no host here reports the groups it is in";
const SIX_OPTIONS: &str = "no packet here has options of IPv6";
const ADDRESSES: &str = "addresses of IPv6 are usable at once";
const PRIVACY: &str = "no host here makes privacy addresses";
const XFRM: &str = "no host here has policies of IPsec";
const TAG: &str = "nothing reads it here";
const TABLE: &str = "no table of neighbours here overflows";
const PROXY: &str = "a host answers for its own addresses alone";
const DAEMON: &str = "no program here resolves addresses for the kernel";
const PROTOCOL: &str = "no program here speaks it";

/// The keys besides those of devices and of neighbours.
pub(super) const MORE: &[Key] = &[
    ("net.core.busy_poll", "0", Moot(FRAMES)),
    ("net.core.busy_read", "0", Moot(FRAMES)),
    ("net.core.dev_weight", "64", Moot(FRAMES)),
    ("net.core.dev_weight_rx_bias", "1", Moot(FRAMES)),
    ("net.core.dev_weight_tx_bias", "1", Moot(FRAMES)),
    ("net.core.devconf_inherit_init_net", "0", Not(AS_FIRST)),
    ("net.core.fb_tunnels_only_for_init_net", "0", Not(AS_FIRST)),
    ("net.core.flow_limit_cpu_bitmap", "0", Moot(PROCESSOR)),
    ("net.core.flow_limit_table_len", "4096", Moot(PROCESSOR)),
    ("net.core.gro_normal_batch", "8", Moot(FRAMES)),
    ("net.core.high_order_alloc_disable", "0", Moot(MEMORY)),
    ("net.core.max_skb_frags", "17", Moot(MEMORY)),
    ("net.core.mem_pcpu_rsv", "256", Moot(MEMORY)),
    ("net.core.message_burst", "10", Moot(LOG)),
    ("net.core.message_cost", "5", Moot(LOG)),
    ("net.core.netdev_budget_usecs", "20000", Moot(FRAMES)),
    ("net.core.netdev_tstamp_prequeue", "1", Moot(FRAMES)),
    ("net.core.netdev_unregister_timeout_secs", "10", Moot(LOG)),
    ("net.core.rps_sock_flow_entries", "0", Moot(PROCESSOR)),
    ("net.core.skb_defer_max", "64", Moot(FRAMES)),
    ("net.core.tstamp_allow_data", "1", Moot(LOG)),
    ("net.core.warnings", "0", Moot(LOG)),
    ("net.ipv4.fib_multipath_hash_fields", "7", Not(WITHIN)),
    ("net.ipv4.fib_multipath_hash_policy", "0", Not(WITHIN)),
    ("net.ipv4.fib_multipath_use_neigh", "0", Not(AS_FIRST)),
    ("net.ipv4.fib_notify_on_flag_change", "0", Moot(LOG)),
    ("net.ipv4.fib_sync_mem", "524288", Moot(MEMORY)),
    ("net.ipv4.fwmark_reflect", "0", Not(AS_FIRST)),
    ("net.ipv4.icmp_echo_enable_probe", "0", Not(AS_FIRST)),
    ("net.ipv4.icmp_errors_use_inbound_ifaddr", "0", Not(AS_FIRST)),
    ("net.ipv4.icmp_ignore_bogus_error_responses", "1", Moot(LOG)),
    ("net.ipv4.icmp_msgs_burst", "50", As),
    ("net.ipv4.icmp_msgs_per_sec", "1000", As),
    ("net.ipv4.icmp_ratemask", "6168", As),
    ("net.ipv4.igmp_link_local_mcast_reports", "1", Moot(MULTICAST)),
    ("net.ipv4.igmp_max_memberships", "20", Moot(MULTICAST)),
    ("net.ipv4.igmp_max_msf", "10", Moot(MULTICAST)),
    ("net.ipv4.igmp_qrv", "2", Moot(MULTICAST)),
    ("net.ipv4.inet_peer_maxttl", "600", Moot(CACHE)),
    ("net.ipv4.inet_peer_minttl", "120", Moot(CACHE)),
    ("net.ipv4.inet_peer_threshold", "54529", Moot(CACHE)),
    ("net.ipv4.ip_autobind_reuse", "0", Moot(SOCKETS)),
    ("net.ipv4.ip_early_demux", "1", Moot(CACHE)),
    ("net.ipv4.ip_forward_update_priority", "1", Not(AS_FIRST)),
    ("net.ipv4.ip_forward_use_pmtu", "0", Not(AS_FIRST)),
    ("net.ipv4.ip_local_reserved_ports", "", Moot(SOCKETS)),
    ("net.ipv4.ip_nonlocal_bind", "0", Moot(SOCKETS)),
    ("net.ipv4.ip_unprivileged_port_start", "1024", Moot(SOCKETS)),
    ("net.ipv4.ipfrag_low_thresh", "3145728", Not(AS_FIRST)),
    ("net.ipv4.ipfrag_max_dist", "64", Not(AS_FIRST)),
    ("net.ipv4.ipfrag_secret_interval", "0", Not(AS_FIRST)),
    ("net.ipv4.nexthop_compat_mode", "1", Not(AS_FIRST)),
    ("net.ipv4.ping_group_range", "1\t0", Moot(SOCKETS)),
    ("net.ipv4.route.error_burst", "500", Not(AS_FIRST)),
    ("net.ipv4.route.error_cost", "100", Not(AS_FIRST)),
    ("net.ipv4.route.gc_elasticity", "8", Moot(CACHE)),
    ("net.ipv4.route.gc_interval", "60", Moot(CACHE)),
    ("net.ipv4.route.gc_min_interval", "0", Moot(CACHE)),
    ("net.ipv4.route.gc_min_interval_ms", "500", Moot(CACHE)),
    ("net.ipv4.route.gc_thresh", "-1", Moot(CACHE)),
    ("net.ipv4.route.gc_timeout", "300", Moot(CACHE)),
    ("net.ipv4.route.max_size", "2147483647", Moot(CACHE)),
    ("net.ipv4.route.min_adv_mss", "256", Not(AS_FIRST)),
    ("net.ipv4.route.min_pmtu", "552", Not(AS_FIRST)),
    ("net.ipv4.route.mtu_expires", "600", Not(AS_FIRST)),
    ("net.ipv4.route.redirect_load", "2", As),
    ("net.ipv4.route.redirect_number", "9", As),
    ("net.ipv4.route.redirect_silence", "2048", As),
    ("net.ipv4.tcp_abort_on_overflow", "0", Moot(SYN)),
    ("net.ipv4.tcp_app_win", "31", Not(AS_FIRST)),
    ("net.ipv4.tcp_autocorking", "1", As),
    ("net.ipv4.tcp_backlog_ack_defer", "1", Not(AS_FIRST)),
    ("net.ipv4.tcp_challenge_ack_limit", "2147483647", Not(AS_FIRST)),
    ("net.ipv4.tcp_child_ehash_entries", "0", Moot(SOCKETS)),
    ("net.ipv4.tcp_comp_sack_delay_ns", "1000000", Not(AS_FIRST)),
    ("net.ipv4.tcp_comp_sack_nr", "44", Not(AS_FIRST)),
    ("net.ipv4.tcp_comp_sack_slack_ns", "100000", Not(AS_FIRST)),
    ("net.ipv4.tcp_early_demux", "1", Moot(CACHE)),
    ("net.ipv4.tcp_ecn_fallback", "1", As),
    ("net.ipv4.tcp_ecn_option", "2", As),
    ("net.ipv4.tcp_ecn_option_beacon", "3", As),
    ("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "0", As),
    ("net.ipv4.tcp_fastopen_key", "00000000-00000000-00000000-00000000", As),
    ("net.ipv4.tcp_fwmark_accept", "0", Not(AS_FIRST)),
    ("net.ipv4.tcp_invalid_ratelimit", "500", As),
    ("net.ipv4.tcp_keepalive_intvl", "75", Moot(KEEPALIVE)),
    ("net.ipv4.tcp_keepalive_probes", "9", Moot(KEEPALIVE)),
    ("net.ipv4.tcp_max_orphans", "4096", Moot(MEMORY)),
    ("net.ipv4.tcp_max_reordering", "300", Not(AS_FIRST)),
    ("net.ipv4.tcp_max_tw_buckets", "4096", Moot(MEMORY)),
    ("net.ipv4.tcp_migrate_req", "0", Moot(SYN)),
    ("net.ipv4.tcp_min_rtt_wlen", "300", Not(AS_FIRST)),
    ("net.ipv4.tcp_min_snd_mss", "48", Not(AS_FIRST)),
    ("net.ipv4.tcp_mtu_probe_floor", "48", Moot(PROBES)),
    ("net.ipv4.tcp_no_ssthresh_metrics_save", "1", As),
    ("net.ipv4.tcp_orphan_retries", "0", Not(AS_FIRST)),
    ("net.ipv4.tcp_pingpong_thresh", "1", Not(AS_FIRST)),
    ("net.ipv4.tcp_plb_cong_thresh", "128", Moot(OFF)),
    ("net.ipv4.tcp_plb_enabled", "0", Not(AS_FIRST)),
    ("net.ipv4.tcp_plb_idle_rehash_rounds", "3", Moot(OFF)),
    ("net.ipv4.tcp_plb_rehash_rounds", "12", Moot(OFF)),
    ("net.ipv4.tcp_plb_suspend_rto_sec", "60", Moot(OFF)),
    ("net.ipv4.tcp_probe_interval", "600", Moot(PROBES)),
    ("net.ipv4.tcp_probe_threshold", "8", Moot(PROBES)),
    ("net.ipv4.tcp_reflect_tos", "0", Not(AS_FIRST)),
    ("net.ipv4.tcp_retrans_collapse", "1", Not(AS_FIRST)),
    ("net.ipv4.tcp_retries1", "3", Not(AS_FIRST)),
    ("net.ipv4.tcp_rfc1337", "0", Not(AS_FIRST)),
    ("net.ipv4.tcp_shrink_window", "0", Not(AS_FIRST)),
    ("net.ipv4.tcp_stdurg", "0", Moot(URGENT)),
    ("net.ipv4.tcp_syn_linear_timeouts", "4", Not(AS_FIRST)),
    ("net.ipv4.tcp_thin_linear_timeouts", "0", Not(AS_FIRST)),
    ("net.ipv4.tcp_tso_rtt_log", "9", As),
    ("net.ipv4.tcp_workaround_signed_windows", "0", Not(AS_FIRST)),
    ("net.ipv4.udp_child_hash_entries", "0", Moot(SOCKETS)),
    ("net.ipv4.udp_early_demux", "1", Moot(CACHE)),
    ("net.ipv4.udp_mem", "23820\t31760\t47640", Moot(MEMORY)),
    ("net.ipv4.udp_rmem_min", "4096", Moot(MEMORY)),
    ("net.ipv4.udp_wmem_min", "4096", Moot(MEMORY)),
    ("net.ipv6.anycast_src_echo_reply", "0", Not(AS_FIRST)),
    ("net.ipv6.auto_flowlabels", "1", Not(AS_FIRST)),
    ("net.ipv6.bindv6only", "0", Moot(SOCKETS)),
    ("net.ipv6.fib_multipath_hash_fields", "7", Not(WITHIN)),
    ("net.ipv6.fib_multipath_hash_policy", "0", Not(WITHIN)),
    ("net.ipv6.fib_notify_on_flag_change", "0", Moot(LOG)),
    ("net.ipv6.flowlabel_consistency", "1", Not(AS_FIRST)),
    ("net.ipv6.flowlabel_reflect", "0", Not(AS_FIRST)),
    ("net.ipv6.flowlabel_state_ranges", "0", Not(AS_FIRST)),
    ("net.ipv6.fwmark_reflect", "0", Not(AS_FIRST)),
    ("net.ipv6.icmp.echo_ignore_all", "0", Not(AS_FIRST)),
    ("net.ipv6.icmp.echo_ignore_anycast", "0", Not(AS_FIRST)),
    ("net.ipv6.icmp.echo_ignore_multicast", "0", Not(AS_FIRST)),
    ("net.ipv6.icmp.error_anycast_as_unicast", "0", Not(AS_FIRST)),
    ("net.ipv6.icmp.ratelimit", "1000", Not(AS_FIRST)),
    ("net.ipv6.icmp.ratemask", "0-1,3-127", Not(AS_FIRST)),
    ("net.ipv6.idgen_delay", "1", Moot(ADDRESSES)),
    ("net.ipv6.idgen_retries", "3", Moot(ADDRESSES)),
    ("net.ipv6.ioam6_id", "16777215", Moot(SIX_OPTIONS)),
    ("net.ipv6.ioam6_id_wide", "72057594037927935", Moot(SIX_OPTIONS)),
    ("net.ipv6.ip6frag_secret_interval", "0", Not(AS_FIRST)),
    ("net.ipv6.ip_nonlocal_bind", "0", Moot(SOCKETS)),
    ("net.ipv6.max_dst_opts_length", "2147483647", Moot(SIX_OPTIONS)),
    ("net.ipv6.max_dst_opts_number", "8", Moot(SIX_OPTIONS)),
    ("net.ipv6.max_hbh_length", "2147483647", Moot(SIX_OPTIONS)),
    ("net.ipv6.max_hbh_opts_number", "8", Moot(SIX_OPTIONS)),
    ("net.ipv6.mld_max_msf", "64", Moot(MULTICAST)),
    ("net.ipv6.mld_qrv", "2", Moot(MULTICAST)),
    ("net.ipv6.route.flush", "", Moot(CACHE)),
    ("net.ipv6.route.gc_elasticity", "9", Moot(CACHE)),
    ("net.ipv6.route.gc_interval", "30", Moot(CACHE)),
    ("net.ipv6.route.gc_min_interval", "0", Moot(CACHE)),
    ("net.ipv6.route.gc_min_interval_ms", "500", Moot(CACHE)),
    ("net.ipv6.route.gc_thresh", "1024", Moot(CACHE)),
    ("net.ipv6.route.gc_timeout", "60", Moot(CACHE)),
    ("net.ipv6.route.max_size", "2147483647", Moot(CACHE)),
    ("net.ipv6.route.min_adv_mss", "1220", Not(AS_FIRST)),
    ("net.ipv6.route.mtu_expires", "600", Not(AS_FIRST)),
    ("net.ipv6.route.skip_notify_on_dev_down", "0", Moot(LOG)),
    ("net.ipv6.seg6_flowlabel", "0", Moot(SIX_OPTIONS)),
    ("net.mpls.default_ttl", "255", Not(AS_FIRST)),
    ("net.mpls.ip_ttl_propagate", "1", Not(AS_FIRST)),
    ("net.mpls.platform_labels", "0", Not(AS_FIRST)),
    ("net.netfilter.nf_conntrack_dccp_loose", "1", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_dccp_timeout_closereq", "64", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_dccp_timeout_closing", "64", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_dccp_timeout_open", "43200", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_dccp_timeout_partopen", "480", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_dccp_timeout_request", "240", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_dccp_timeout_respond", "480", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_dccp_timeout_timewait", "240", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_expect_max", "128", Not(AS_FIRST)),
    ("net.netfilter.nf_conntrack_log_invalid", "0", Moot(LOG)),
    ("net.netfilter.nf_conntrack_sctp_timeout_closed", "10", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_sctp_timeout_cookie_echoed", "3", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_sctp_timeout_cookie_wait", "3", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_sctp_timeout_established", "210", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_sctp_timeout_heartbeat_sent", "30", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_sctp_timeout_shutdown_ack_sent", "3", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_sctp_timeout_shutdown_recd", "3", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_sctp_timeout_shutdown_sent", "3", Moot(PROTOCOL)),
    ("net.netfilter.nf_conntrack_tcp_ignore_invalid_rst", "0", Not(AS_FIRST)),
    ("net.netfilter.nf_flowtable_tcp_timeout", "30", Not(AS_FIRST)),
    ("net.netfilter.nf_flowtable_udp_timeout", "30", Not(AS_FIRST)),
    ("net.netfilter.nf_log.0", "NONE", Moot(LOG)),
    ("net.netfilter.nf_log.1", "NONE", Moot(LOG)),
    ("net.netfilter.nf_log.10", "NONE", Moot(LOG)),
    ("net.netfilter.nf_log.2", "NONE", Moot(LOG)),
    ("net.netfilter.nf_log.3", "NONE", Moot(LOG)),
    ("net.netfilter.nf_log.4", "NONE", Moot(LOG)),
    ("net.netfilter.nf_log.5", "NONE", Moot(LOG)),
    ("net.netfilter.nf_log.6", "NONE", Moot(LOG)),
    ("net.netfilter.nf_log.7", "NONE", Moot(LOG)),
    ("net.netfilter.nf_log.8", "NONE", Moot(LOG)),
    ("net.netfilter.nf_log.9", "NONE", Moot(LOG)),
    ("net.netfilter.nf_log_all_netns", "0", Moot(LOG)),
    ("net.unix.max_dgram_qlen", "10", Moot(MEMORY)),
];

/// The keys below `net.ipv4.conf.NAME`.
pub(super) const MORE_CONF: &[Key] = &[
    ("arp_evict_nocarrier", "1", Not(AS_FIRST)),
    ("bc_forwarding", "0", Not(AS_FIRST)),
    ("bootp_relay", "0", Moot(TAG)),
    ("disable_policy", "0", Moot(XFRM)),
    ("disable_xfrm", "0", Moot(XFRM)),
    ("drop_gratuitous_arp", "0", As),
    ("drop_unicast_in_l2_multicast", "0", Not(AS_FIRST)),
    ("force_igmp_version", "0", Moot(MULTICAST)),
    ("igmpv2_unsolicited_report_interval", "10000", Moot(MULTICAST)),
    ("igmpv3_unsolicited_report_interval", "1000", Moot(MULTICAST)),
    ("ignore_routes_with_linkdown", "0", Not(AS_FIRST)),
    ("medium_id", "0", As),
    ("proxy_arp_pvlan", "0", As),
    ("src_valid_mark", "0", As),
    ("tag", "0", Moot(TAG)),
];

/// The keys below `net.ipv6.conf.NAME`.
pub(super) const MORE_CONF6: &[Key] = &[
    ("accept_dad", "0", Moot(ADDRESSES)),
    ("accept_ra_defrtr", "1", As),
    ("accept_ra_from_local", "0", As),
    ("accept_ra_min_hop_limit", "1", As),
    ("accept_ra_min_lft", "0", As),
    ("accept_ra_mtu", "1", As),
    ("accept_ra_pinfo", "1", As),
    ("accept_ra_rt_info_max_plen", "0", As),
    ("accept_ra_rt_info_min_plen", "0", As),
    ("accept_ra_rtr_pref", "1", As),
    ("accept_untracked_na", "0", Not(AS_FIRST)),
    ("disable_policy", "0", Moot(XFRM)),
    ("drop_unicast_in_l2_multicast", "0", Not(AS_FIRST)),
    ("drop_unsolicited_na", "0", Not(AS_FIRST)),
    ("enhanced_dad", "1", Moot(ADDRESSES)),
    ("force_mld_version", "0", Moot(MULTICAST)),
    ("force_tllao", "0", Not(AS_FIRST)),
    ("ignore_routes_with_linkdown", "0", Not(AS_FIRST)),
    ("ioam6_enabled", "0", Moot(SIX_OPTIONS)),
    ("ioam6_id", "65535", Moot(SIX_OPTIONS)),
    ("ioam6_id_wide", "4294967295", Moot(SIX_OPTIONS)),
    ("max_addresses", "16", As),
    ("max_desync_factor", "600", Moot(PRIVACY)),
    ("mldv1_unsolicited_report_interval", "10000", Moot(MULTICAST)),
    ("mldv2_unsolicited_report_interval", "1000", Moot(MULTICAST)),
    ("ndisc_evict_nocarrier", "1", Not(AS_FIRST)),
    ("ndisc_notify", "0", Not(AS_FIRST)),
    ("ndisc_tclass", "0", Not(AS_FIRST)),
    ("ra_defrtr_metric", "1024", As),
    ("ra_honor_pio_life", "0", As),
    ("ra_honor_pio_pflag", "0", As),
    ("regen_max_retry", "3", Moot(PRIVACY)),
    ("regen_min_advance", "2", Moot(PRIVACY)),
    ("router_probe_interval", "60", Not("a router that does not answer is not probed for its preference")),
    ("router_solicitation_delay", "1", As),
    ("router_solicitation_interval", "4", As),
    ("router_solicitation_max_interval", "3600", As),
    ("router_solicitations", "-1", As),
    ("rpl_seg_enabled", "0", Moot(SIX_OPTIONS)),
    ("seg6_enabled", "0", Moot(SIX_OPTIONS)),
    ("stable_secret", "", Moot(ADDRESSES)),
    ("suppress_frag_ndisc", "1", Moot(SIX_OPTIONS)),
    ("temp_prefered_lft", "86400", Moot(PRIVACY)),
    ("temp_valid_lft", "604800", Moot(PRIVACY)),
    ("use_oif_addrs_only", "0", Not(AS_FIRST)),
];

/// The keys below `net.ipv4.neigh.NAME` and `net.ipv6.neigh.NAME`.
pub(super) const NEIGH: &[Key] = &[
    ("anycast_delay", "100", Moot(PROXY)),
    ("app_solicit", "0", Moot(DAEMON)),
    ("base_reachable_time", "30", As),
    ("base_reachable_time_ms", "30000", As),
    ("delay_first_probe_time", "5", As),
    ("gc_interval", "30", Moot(TABLE)),
    ("gc_stale_time", "60", Moot(TABLE)),
    ("gc_thresh1", "128", Moot(TABLE)),
    ("gc_thresh2", "512", Moot(TABLE)),
    ("gc_thresh3", "1024", Moot(TABLE)),
    ("interval_probe_time_ms", "5000", Not(AS_FIRST)),
    ("locktime", "100", Not(AS_FIRST)),
    ("mcast_resolicit", "0", As),
    ("mcast_solicit", "3", As),
    ("proxy_delay", "80", Moot(PROXY)),
    ("proxy_qlen", "64", Moot(PROXY)),
    ("retrans_time", "100", As),
    ("retrans_time_ms", "1000", As),
    ("ucast_solicit", "3", As),
    ("unres_qlen", "101", Not(AS_FIRST)),
    ("unres_qlen_bytes", "212992", Not(AS_FIRST)),
];
/// The keys that have nothing to do with networks, with the values they begin with. They take any text.
pub(super) const ELSEWHERE: &[(&str, &str)] = &[
    ("dev.tty.ldisc_autoload", "0"),
    ("dev.tty.legacy_tiocsti", "0"),
    ("fs.aio-max-nr", "65536"),
    ("fs.dir-notify-enable", "1"),
    ("fs.epoll.max_user_watches", "227595"),
    ("fs.fanotify.max_queued_events", "16384"),
    ("fs.fanotify.max_user_groups", "128"),
    ("fs.fanotify.max_user_marks", "205039"),
    ("fs.fanotify.watchdog_timeout", "0"),
    ("fs.file-max", "102192"),
    ("fs.inotify.max_queued_events", "16384"),
    ("fs.inotify.max_user_instances", "128"),
    ("fs.inotify.max_user_watches", "9025"),
    ("fs.lease-break-time", "45"),
    ("fs.leases-enable", "1"),
    ("fs.mount-max", "100000"),
    ("fs.mqueue.msg_default", "10"),
    ("fs.mqueue.msg_max", "10"),
    ("fs.mqueue.msgsize_default", "8192"),
    ("fs.mqueue.msgsize_max", "8192"),
    ("fs.mqueue.queues_max", "256"),
    ("fs.nr_open", "1048576"),
    ("fs.overflowgid", "65534"),
    ("fs.overflowuid", "65534"),
    ("fs.pipe-max-size", "1048576"),
    ("fs.pipe-user-pages-hard", "0"),
    ("fs.pipe-user-pages-soft", "16384"),
    ("fs.protected_fifos", "0"),
    ("fs.protected_hardlinks", "1"),
    ("fs.protected_regular", "0"),
    ("fs.protected_symlinks", "1"),
    ("fs.suid_dumpable", "0"),
    ("kernel.auto_msgmni", "0"),
    ("kernel.bpf_stats_enabled", "0"),
    ("kernel.core_pattern", "core"),
    ("kernel.core_pipe_limit", "0"),
    ("kernel.core_uses_pid", "0"),
    ("kernel.ctrl-alt-del", "1"),
    ("kernel.dmesg_restrict", "0"),
    ("kernel.ftrace_dump_on_oops", "0"),
    ("kernel.ftrace_enabled", "1"),
    ("kernel.hardlockup_all_cpu_backtrace", "0"),
    ("kernel.hardlockup_panic", "0"),
    ("kernel.hung_task_all_cpu_backtrace", "0"),
    ("kernel.hung_task_check_count", "4194304"),
    ("kernel.hung_task_panic", "0"),
    ("kernel.hung_task_timeout_secs", "120"),
    ("kernel.hung_task_warnings", "10"),
    ("kernel.io_delay_type", "0"),
    ("kernel.io_uring_disabled", "0"),
    ("kernel.io_uring_group", "-1"),
    ("kernel.kexec_load_disabled", "0"),
    ("kernel.keys.gc_delay", "300"),
    ("kernel.keys.maxbytes", "20000"),
    ("kernel.keys.maxkeys", "200"),
    ("kernel.keys.persistent_keyring_expiry", "259200"),
    ("kernel.keys.root_maxbytes", "25000000"),
    ("kernel.keys.root_maxkeys", "1000000"),
    ("kernel.kptr_restrict", "0"),
    ("kernel.max_lock_depth", "1024"),
    ("kernel.max_rcu_stall_to_panic", "0"),
    ("kernel.modules_disabled", "0"),
    ("kernel.msgmax", "8192"),
    ("kernel.msgmnb", "16384"),
    ("kernel.msgmni", "32000"),
    ("kernel.numa_balancing", "0"),
    ("kernel.numa_balancing_promote_rate_limit_MBps", "65536"),
    ("kernel.oops_all_cpu_backtrace", "0"),
    ("kernel.oops_limit", "10000"),
    ("kernel.overflowgid", "65534"),
    ("kernel.overflowuid", "65534"),
    ("kernel.panic", "0"),
    ("kernel.panic_on_io_nmi", "0"),
    ("kernel.panic_on_oops", "0"),
    ("kernel.panic_on_rcu_stall", "0"),
    ("kernel.panic_on_unrecovered_nmi", "0"),
    ("kernel.panic_on_warn", "0"),
    ("kernel.panic_print", "0"),
    ("kernel.perf_cpu_time_max_percent", "25"),
    ("kernel.perf_event_max_contexts_per_stack", "8"),
    ("kernel.perf_event_max_sample_rate", "100000"),
    ("kernel.perf_event_max_stack", "127"),
    ("kernel.perf_event_mlock_kb", "516"),
    ("kernel.perf_event_paranoid", "2"),
    ("kernel.pid_max", "32768"),
    ("kernel.print-fatal-signals", "0"),
    ("kernel.printk", "4 4 1 7"),
    ("kernel.printk_delay", "0"),
    ("kernel.printk_devkmsg", "ratelimit"),
    ("kernel.printk_ratelimit", "5"),
    ("kernel.printk_ratelimit_burst", "10"),
    ("kernel.pty.max", "4096"),
    ("kernel.pty.reserve", "1024"),
    ("kernel.random.urandom_min_reseed_secs", "60"),
    ("kernel.random.write_wakeup_threshold", "256"),
    ("kernel.randomize_va_space", "2"),
    ("kernel.sched_autogroup_enabled", "1"),
    ("kernel.sched_cfs_bandwidth_slice_us", "5000"),
    ("kernel.sched_deadline_period_max_us", "4194304"),
    ("kernel.sched_deadline_period_min_us", "100"),
    ("kernel.sched_migration_cost_ns", "500000"),
    ("kernel.sched_rr_timeslice_ms", "100"),
    ("kernel.sched_rt_period_us", "1000000"),
    ("kernel.sched_rt_runtime_us", "950000"),
    ("kernel.sem", "32000 1024000000 500 32000"),
    ("kernel.shm_rmid_forced", "0"),
    ("kernel.shmall", "18446744073692774399"),
    ("kernel.shmmax", "18446744073692774399"),
    ("kernel.shmmni", "4096"),
    ("kernel.soft_watchdog", "1"),
    ("kernel.softlockup_all_cpu_backtrace", "0"),
    ("kernel.softlockup_panic", "0"),
    ("kernel.split_lock_mitigate", "1"),
    ("kernel.sysctl_writes_strict", "1"),
    ("kernel.sysrq", "16"),
    ("kernel.tainted", "0"),
    ("kernel.task_delayacct", "0"),
    ("kernel.threads-max", "7987"),
    ("kernel.timer_migration", "1"),
    ("kernel.traceoff_on_warning", "0"),
    ("kernel.tracepoint_printk", "0"),
    ("kernel.unknown_nmi_panic", "0"),
    ("kernel.unprivileged_bpf_disabled", "2"),
    ("kernel.unprivileged_userns_clone", "1"),
    ("kernel.warn_limit", "0"),
    ("kernel.watchdog", "1"),
    ("kernel.watchdog_cpumask", "0-1"),
    ("kernel.watchdog_thresh", "10"),
    ("kernel.yama.ptrace_scope", "0"),
    ("vm.admin_reserve_kbytes", "8192"),
    ("vm.compact_memory", ""),
    ("vm.compact_unevictable_allowed", "1"),
    ("vm.compaction_proactiveness", "20"),
    ("vm.dirty_background_bytes", "0"),
    ("vm.dirty_background_ratio", "10"),
    ("vm.dirty_bytes", "0"),
    ("vm.dirty_expire_centisecs", "3000"),
    ("vm.dirty_ratio", "20"),
    ("vm.dirty_writeback_centisecs", "500"),
    ("vm.dirtytime_expire_seconds", "43200"),
    ("vm.drop_caches", ""),
    ("vm.extfrag_threshold", "500"),
    ("vm.hugetlb_shm_group", "0"),
    ("vm.laptop_mode", "0"),
    ("vm.legacy_va_layout", "0"),
    ("vm.lowmem_reserve_ratio", "32 0"),
    ("vm.max_map_count", "65530"),
    ("vm.memfd_noexec", "0"),
    ("vm.min_free_kbytes", "4044"),
    ("vm.min_slab_ratio", "5"),
    ("vm.min_unmapped_ratio", "1"),
    ("vm.mmap_min_addr", "4096"),
    ("vm.mmap_rnd_bits", "28"),
    ("vm.mmap_rnd_compat_bits", "8"),
    ("vm.nr_hugepages", "0"),
    ("vm.nr_hugepages_mempolicy", "0"),
    ("vm.nr_overcommit_hugepages", "0"),
    ("vm.numa_zonelist_order", "Node"),
    ("vm.oom_dump_tasks", "1"),
    ("vm.oom_kill_allocating_task", "0"),
    ("vm.overcommit_kbytes", "0"),
    ("vm.overcommit_memory", "0"),
    ("vm.overcommit_ratio", "50"),
    ("vm.page-cluster", "3"),
    ("vm.page_lock_unfairness", "5"),
    ("vm.panic_on_oom", "0"),
    ("vm.percpu_pagelist_high_fraction", "0"),
    ("vm.stat_interval", "1"),
    ("vm.stat_refresh", ""),
    ("vm.swappiness", "60"),
    ("vm.unprivileged_userfaultfd", "0"),
    ("vm.user_reserve_kbytes", "31909"),
    ("vm.vfs_cache_pressure", "100"),
    ("vm.watermark_boost_factor", "15000"),
    ("vm.watermark_scale_factor", "10"),
    ("vm.zone_reclaim_mode", "0"),
];

/// What is said of those.
pub(super) const NO_NETWORK: &str = "no packet meets it";

/// The key of one of these tables.
pub(super) fn find(key: &str) -> Option<&'static Key> {
    let of = |folder: &str, table: &'static [Key]| {
        let (_, attribute) = key.strip_prefix(folder)?.rsplit_once('.')?;
        table.iter().find(|k| k.0 == attribute)
    };
    of("net.ipv4.conf.", MORE_CONF)
        .or_else(|| of("net.ipv6.conf.", MORE_CONF6))
        .or_else(|| of("net.ipv4.neigh.", NEIGH))
        .or_else(|| of("net.ipv6.neigh.", NEIGH))
        .or_else(|| MORE.binary_search_by(|k| k.0.cmp(key)).ok().map(|at| &MORE[at]))
}

/// The value a key begins with that has nothing to do with networks.
pub(super) fn elsewhere(key: &str) -> Option<&'static str> {
    ELSEWHERE.binary_search_by(|k| k.0.cmp(key)).ok().map(|at| ELSEWHERE[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host;
    use penstock_model::{Kernel, Time};

    #[test]
    fn the_tables_are_in_order_and_name_each_key_once() {
        for table in [MORE, MORE_CONF, MORE_CONF6, NEIGH] {
            assert!(table.windows(2).all(|w| w[0].0 < w[1].0));
        }
        assert!(ELSEWHERE.windows(2).all(|w| w[0].0 < w[1].0));
        for (key, ..) in MORE {
            assert!(super::super::keys::KEYS.iter().all(|k| k.0 != *key), "{key} stands twice");
        }
    }

    #[test]
    fn what_linux_has_is_there_and_what_it_has_not_is_refused() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        let mut said = |command: &str| {
            let out = host.exec(command, Time::ZERO);
            (out.status, out.stdout + &out.stderr)
        };
        for (command, want) in [
            ("sysctl -w vm.swappiness=10", "vm.swappiness = 10\n"),
            ("sysctl vm.swappiness", "vm.swappiness = 10\n"),
            ("sysctl -w kernel.core_pattern=/var/core.%p", "kernel.core_pattern = /var/core.%p\n"),
            (
                "sysctl -w net.ipv4.neigh.default.gc_thresh3=4096",
                "net.ipv4.neigh.default.gc_thresh3 = 4096\n",
            ),
            ("sysctl net.ipv4.neigh.default.gc_thresh3", "net.ipv4.neigh.default.gc_thresh3 = 4096\n"),
            ("sysctl -qw net.ipv4.neigh.lo.retrans_time_ms=500", ""),
            ("sysctl net.ipv4.neigh.lo.retrans_time", "net.ipv4.neigh.lo.retrans_time = 50\n"),
            ("sysctl net.ipv6.neigh.lo.gc_thresh1", "net.ipv6.neigh.lo.gc_thresh1 = 128\n"),
            ("sysctl -w net.core.busy_poll=50", "net.core.busy_poll = 50\n"),
            ("sysctl net.ipv4.udp_mem", "net.ipv4.udp_mem = 23820\t31760\t47640\n"),
            ("sysctl -n net.ipv6.icmp.ratemask", "0-1,3-127\n"),
        ] {
            assert_eq!(said(command), (0, want.to_owned()), "{command}");
        }
        for key in ["vm.swapiness", "net.core.busy_pol", "net.ipv4.neigh.nosuch.gc_thresh1"] {
            let path = key.replace('.', "/");
            let want = format!("sysctl: cannot stat /proc/sys/{path}: No such file or directory\n");
            assert_eq!(said(&format!("sysctl -w {key}=1")), (1, want), "{key}");
        }
        assert!(host.unfollowed_settings().is_empty(), "{:?}", host.unfollowed_settings());
        host.exec("sysctl -w net.ipv4.fib_multipath_hash_policy=1", Time::ZERO);
        assert!(host.unfollowed_settings().is_empty(), "{:?}", host.unfollowed_settings());
        host.exec("sysctl -w net.ipv4.fib_multipath_hash_policy=2", Time::ZERO);
        assert_eq!(
            host.unfollowed_settings(),
            [format!("sysctl net.ipv4.fib_multipath_hash_policy = 2: not simulated; {WITHIN}")]
        );
    }
}
