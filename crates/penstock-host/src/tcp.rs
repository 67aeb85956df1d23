//! What a machine's settings and routes say of its TCP connections. Whoever makes these asks here.
//!
//! Follows: linux v6.12 net/ipv4/sysctl_net_ipv4.c, net/ipv4/tcp_metrics.c `tcp_init_metrics`, include/net/tcp.h `tcp_rto_min`.
//! What `tcp_ca_dst_init` and `tcp_ca_openreq_child` (net/ipv4/tcp_cong.c) take from a route stands above what a program has set before the connection is opened.
//! Differs: none known of 6.12; a host of 2.6.35 keeps nothing of a connection for the next one (Linux kept it in its cache of routes), and nothing
//! follows from a route's `rtt`, `rttvar` and `ssthresh`.

use crate::Host;
use crate::route::Key;
use penstock_model::tcp_metrics::{Metric, RouteMetrics};
use penstock_model::{Kernel, Span};
use std::net::Ipv4Addr;

/// `net.ipv4.tcp_*` and `net.core.txrehash` as far as connections follow them. `None`: as the kernel has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpSettings {
    /// `tcp_congestion_control`: a name.
    pub congestion_control: String,
    /// `/sys/module/tcp_NAME/parameters`: control, parameter, value, of those that are set to another than they begin with.
    pub parameters: Vec<(&'static str, &'static str, i64)>,
    /// `tcp_sack`.
    pub sack: bool,
    /// `tcp_timestamps`.
    pub timestamps: bool,
    /// `tcp_timestamps` 1, not 2: each connection's begin somewhere else.
    pub timestamp_offset: bool,
    /// `tcp_window_scaling`.
    pub window_scaling: bool,
    /// `tcp_ecn`: 0 never, 1 asked for, 2 agreed to; of 7.2, 3 to 5 with Accurate ECN.
    pub ecn: u8,
    /// `tcp_ecn_option` and `tcp_ecn_option_beacon` of 7.2.
    pub ecn_option: (u8, u8),
    /// `tcp_ecn_fallback`: a repeated SYN asks for no ECN.
    pub ecn_fallback: bool,
    /// `tcp_invalid_ratelimit`: segments out of the window are answered no sooner than so long one after another.
    pub invalid_ratelimit: Span,
    /// `tcp_slow_start_after_idle`.
    pub slow_start_after_idle: Option<bool>,
    /// `tcp_syn_retries`, `tcp_synack_retries`, `tcp_retries2`.
    pub retries: [Option<u8>; 3],
    /// `tcp_wmem`: what a send buffer begins with and the most it grows to, bytes.
    pub wmem: Option<(u32, u32)>,
    /// `tcp_rmem`: the same of a receive buffer.
    pub rmem: Option<(u32, u32)>,
    /// `tcp_moderate_rcvbuf`: receive buffers grow by themselves.
    pub moderate_rcvbuf: bool,
    /// `tcp_rto_min_us`: the least retransmission timeout.
    pub rto_min: Option<Span>,
    /// `tcp_early_retrans`: tail loss probes are sent.
    pub early_retrans: bool,
    /// `tcp_frto`: F-RTO is used after a timeout.
    pub frto: bool,
    /// `tcp_recovery`: how losses are found.
    pub recovery: u8,
    /// `tcp_dsack`: duplicates are told.
    pub dsack: bool,
    /// `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`, per cent.
    pub pacing_ratios: (u16, u16),
    /// `tcp_reordering`: duplicates that are first held for reordering.
    pub reordering: Option<u32>,
    /// `net.core.wmem_max` and `rmem_max`: the most that programs get when they ask for buffers, bytes.
    pub most_asked: (Option<u32>, Option<u32>),
    /// `tcp_min_tso_segs`, `tcp_tso_win_divisor`, `tcp_tso_rtt_log`.
    pub tso: [Option<u32>; 3],
    /// `tcp_notsent_lowat`, bytes, where it bounds anything.
    pub notsent_lowat: Option<u32>,
    /// `tcp_autocorking`.
    pub autocorking: bool,
    /// `tcp_limit_output_bytes`: the most a socket has below it, bytes.
    pub limit_output: Option<u32>,
    /// `net.core.txrehash`: a socket draws the hash of its flow anew after a timeout.
    pub txrehash: bool,
    /// `tcp_fastopen`, bits; `tcp_fastopen_blackhole_timeout_sec`; `tcp_fastopen_key`, where it is set: one key or two.
    pub fastopen: u32,
    /// See there.
    pub fastopen_blackhole_s: u32,
    /// See there.
    pub fastopen_keys: Vec<[u8; 16]>,
}

/// What a route says of connections that go by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpRoute {
    /// `rto_min`.
    pub rto_min: Option<Span>,
    /// `initcwnd`, segments.
    pub initcwnd: Option<u32>,
    /// `initrwnd`, segments.
    pub initrwnd: Option<u32>,
    /// `window`: the most that is offered to the peer, bytes.
    pub window: Option<u32>,
    /// `cwnd lock`: the most the congestion window grows to, segments.
    pub cwnd: Option<u32>,
    /// `advmss`, bytes.
    pub advmss: Option<u32>,
    /// `reordering`, segments.
    pub reordering: Option<u32>,
    /// `quickack 1`: every segment is acknowledged at once.
    pub quickack: bool,
    /// `congctl`: the congestion control, whatever the program has asked for.
    pub congctl: Option<&'static str>,
    /// `fastopen_no_cookie 1`: Fast Open without a cookie.
    pub fastopen_no_cookie: bool,
    /// `features ecn`: ECN is asked for and agreed to.
    pub ecn: bool,
    /// What a row of `ip tcp_metrics` begins with.
    pub kept: RouteMetrics,
}

// `RTAX_*`.
const WINDOW: u8 = 3;
const RTT: u8 = 4;
const RTTVAR: u8 = 5;
const SSTHRESH: u8 = 6;
const CWND: u8 = 7;
const ADVMSS: u8 = 8;
const REORDERING: u8 = 9;
const INITCWND: u8 = 11;
const FEATURES: u8 = 12;
const RTO_MIN: u8 = 13;
const INITRWND: u8 = 14;
const QUICKACK: u8 = 15;
const CC_ALGO: u8 = 16;
const FASTOPEN_NO_COOKIE: u8 = 17;

/// The keys that `net.ipv4.tcp_fastopen_key` says: one, or two with a comma between; `None` where it is not understood.
//= linux v6.12 net/ipv4/sysctl_net_ipv4.c proc_tcp_fastopen_key
pub(crate) fn fastopen_keys(text: &str) -> Option<Vec<[u8; 16]>> {
    let one = |text: &str| {
        let mut key = [0; 16];
        let mut parts = text.split('-');
        for to in key.chunks_exact_mut(4) {
            let part = parts.next()?;
            let hex = (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit());
            to.copy_from_slice(&u32::from_str_radix(part, 16).ok().filter(|_| hex)?.to_le_bytes());
        }
        parts.next().is_none().then_some(key)
    };
    text.trim().splitn(2, ',').map(one).collect()
}

impl Host {
    /// The settings of TCP.
    pub fn tcp_settings(&self) -> TcpSettings {
        let s = &self.sysctl;
        let number = |name: &str| s.kept.get(name).and_then(|v| v.split('\t').next()?.parse::<i64>().ok());
        let small = |name: &str| number(name).map(|n| n.clamp(1, 255) as u8);
        let range = |name: &str| {
            let mut parts = s.kept.get(name)?.split('\t').skip(1).map(|v| v.parse::<i64>().unwrap_or(0));
            let mut next = || Some(parts.next()?.clamp(1, 1 << 30) as u32);
            let first = next()?;
            Some((first, next().unwrap_or(first).max(first)))
        };
        TcpSettings {
            congestion_control: s.congestion_control.clone(),
            parameters: s.parameters.iter().map(|(&(of, name), &value)| (of, name, value)).collect(),
            sack: s.tcp_sack,
            timestamps: s.tcp_timestamps > 0,
            timestamp_offset: s.tcp_timestamps == 1,
            window_scaling: s.tcp_window_scaling,
            ecn: s.tcp_ecn,
            ecn_option: (
                number("net.ipv4.tcp_ecn_option").map_or(2, |n| n as u8),
                number("net.ipv4.tcp_ecn_option_beacon").map_or(3, |n| n as u8),
            ),
            ecn_fallback: number("net.ipv4.tcp_ecn_fallback")
                .map_or(self.kernel != Kernel::V2_6_35, |n| n != 0),
            invalid_ratelimit: Span::from_ms(
                number("net.ipv4.tcp_invalid_ratelimit").map_or(500, |n| n.clamp(0, i64::from(i32::MAX))),
            ),
            slow_start_after_idle: number("net.ipv4.tcp_slow_start_after_idle").map(|n| n != 0),
            retries: ["net.ipv4.tcp_syn_retries", "net.ipv4.tcp_synack_retries", "net.ipv4.tcp_retries2"]
                .map(small),
            wmem: range("net.ipv4.tcp_wmem"),
            rmem: range("net.ipv4.tcp_rmem"),
            moderate_rcvbuf: number("net.ipv4.tcp_moderate_rcvbuf") != Some(0),
            rto_min: number("net.ipv4.tcp_rto_min_us").map(|us| Span::from_us(us.max(1))),
            //= linux v6.12 net/ipv4/tcp_output.c tcp_schedule_loss_probe: of 3 and 4 alone
            early_retrans: number("net.ipv4.tcp_early_retrans").is_none_or(|n| n == 3 || n == 4),
            frto: number("net.ipv4.tcp_frto") != Some(0),
            recovery: number("net.ipv4.tcp_recovery").map_or(1, |n| n as u8),
            dsack: number("net.ipv4.tcp_dsack") != Some(0),
            pacing_ratios: (
                number("net.ipv4.tcp_pacing_ss_ratio").map_or(200, |n| n as u16),
                number("net.ipv4.tcp_pacing_ca_ratio").map_or(120, |n| n as u16),
            ),
            reordering: number("net.ipv4.tcp_reordering").map(|n| n.clamp(1, 300) as u32),
            most_asked: (
                number("net.core.wmem_max").map(|n| n.clamp(4_608, 1 << 30) as u32),
                number("net.core.rmem_max").map(|n| n.clamp(2_304, 1 << 30) as u32),
            ),
            tso: ["net.ipv4.tcp_min_tso_segs", "net.ipv4.tcp_tso_win_divisor", "net.ipv4.tcp_tso_rtt_log"]
                .map(|name| number(name).map(|n| n.clamp(0, i64::from(u32::MAX)) as u32)),
            notsent_lowat: number("net.ipv4.tcp_notsent_lowat")
                .and_then(|n| u32::try_from(n).ok())
                .filter(|&n| n != u32::MAX),
            autocorking: number("net.ipv4.tcp_autocorking") != Some(0),
            limit_output: number("net.ipv4.tcp_limit_output_bytes").map(|n| n.clamp(1, 1 << 30) as u32),
            txrehash: number("net.core.txrehash") != Some(0),
            fastopen: number("net.ipv4.tcp_fastopen").map_or(1, |n| n as u32),
            fastopen_blackhole_s: number("net.ipv4.tcp_fastopen_blackhole_timeout_sec")
                .map_or(0, |n| n.clamp(0, i64::from(i32::MAX)) as u32),
            fastopen_keys: s
                .kept
                .get("net.ipv4.tcp_fastopen_key")
                .and_then(|v| fastopen_keys(v))
                .unwrap_or_default(),
        }
    }
    /// The congestion controls that routes name (`congctl`).
    pub fn route_controls(&self) -> Vec<&'static str> {
        let four = self.fib.routes().flat_map(|r| &r.metrics);
        let all = four.chain(self.six.fib.routes().flat_map(|r| &r.metrics));
        all.filter(|m| m.0 == CC_ALGO).filter_map(|m| penstock_lang::ip::control_of(m.1)).collect()
    }
    /// Whether a socket that is bound to no device hears what comes in VRFs (`tcp_l3mdev_accept`, else `udp_l3mdev_accept`). Default: no.
    pub fn accepts_of_vrfs(&self, tcp: bool) -> bool {
        let key = if tcp { "net.ipv4.tcp_l3mdev_accept" } else { "net.ipv4.udp_l3mdev_accept" };
        self.sysctl.kept.get(key).is_some_and(|v| v != "0")
    }
    /// `net.core.wmem_default`, where a command has set it: the send buffer of a new socket that is not TCP's, bytes.
    pub fn send_buffer(&self) -> Option<u32> {
        let set = self.sysctl.kept.get("net.core.wmem_default")?;
        set.parse::<i64>().ok().map(|n| n.clamp(4_608, 1 << 30) as u32)
    }
    /// `ip_local_port_range`, where a command has set it: the first and the last port.
    pub fn port_range(&self) -> Option<(u16, u16)> {
        let (low, high) = self.sysctl.kept.get("net.ipv4.ip_local_port_range")?.split_once('\t')?;
        Some((low.parse().ok()?, high.parse().ok()?))
    }
    /// What the route to `dst` says of a connection.
    pub fn tcp_route(&self, dst: Ipv4Addr) -> TcpRoute {
        self.tcp_route_of(&Key::to(dst))
    }
    pub(crate) fn tcp_route_of(&self, key: &Key) -> TcpRoute {
        match self.fib.search_route(key) {
            Ok(Some(route)) => TcpRoute::of(&route.metrics),
            _ => TcpRoute::default(),
        }
    }
}

impl TcpRoute {
    /// What a route's metrics say.
    pub(crate) fn of(metrics: &[(u8, u32, bool)]) -> TcpRoute {
        let mut t = TcpRoute::default();
        for &(metric, value, locked) in metrics {
            let value_if = Some(value).filter(|&v| v > 0);
            let mut keep = |metric| t.kept.set(metric, value, locked);
            match metric {
                RTT => keep(Metric::Rtt),
                RTTVAR => keep(Metric::Rttvar),
                SSTHRESH => keep(Metric::Ssthresh),
                CWND => keep(Metric::Cwnd),
                REORDERING => keep(Metric::Reordering),
                _ => {}
            }
            match metric {
                WINDOW => t.window = value_if,
                CWND if locked => t.cwnd = value_if,
                ADVMSS => t.advmss = value_if,
                REORDERING => t.reordering = value_if,
                INITCWND => t.initcwnd = value_if,
                RTO_MIN => t.rto_min = value_if.map(|ms| Span::from_ms(ms.into())),
                INITRWND => t.initrwnd = value_if,
                QUICKACK => t.quickack = value != 0,
                FASTOPEN_NO_COOKIE => t.fastopen_no_cookie = value != 0,
                // RTAX_FEATURE_ECN
                FEATURES => t.ecn = value & 1 != 0,
                // Of 6.12 and later.
                CC_ALGO => t.congctl = penstock_lang::ip::control_of(value),
                _ => {}
            }
        }
        t
    }
}
