//! What a socket is set to before it is opened: the sysctls and socket options of one stack.
//!
//! Follows: linux v6.12 and v2.6.35 Documentation/networking/ip-sysctl.txt, net/ipv4/tcp_ipv4.c `tcp_init_sock`.

use crate::{cc, ns2};
use penstock_model::{Kernel, Span, TcpMetrics};

/// Whose TCP this is. Decides which algorithm is used where the stacks differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stack {
    /// Linux of this kernel profile.
    Linux(Kernel),
    /// Windows XP.
    WindowsXp,
    /// ns-2's one-way agents and sinks ([`crate::ns2`]).
    Ns2,
}

impl Stack {
    /// Whether it is told when its own host drops a segment.
    pub(crate) const fn feels_its_host(self) -> bool {
        matches!(self, Stack::Linux(_))
    }
    /// Whether this is Linux as of 7.2.
    pub const fn is_linux_7_2(self) -> bool {
        matches!(self, Stack::Linux(Kernel::V7_2))
    }
    /// Whether this is Linux as of 6.12: microsecond clocks, PRR, RACK-TLP.
    pub const fn is_linux_6_12(self) -> bool {
        matches!(self, Stack::Linux(Kernel::V6_12 | Kernel::V7_2))
    }
}

/// A socket buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffer {
    /// Starts at the first size and grows by itself up to the second (tcp_wmem[1..], tcp_rmem[1..]), bytes.
    Auto(u32, u32),
    /// `sk_sndbuf`/`sk_rcvbuf` set once and for all, bytes: what `getsockopt` answers. On Linux that is twice what
    /// `setsockopt(SO_SNDBUF)` was given; see [`Config::set_sndbuf`].
    Fixed(u32),
}

impl Buffer {
    /// The size it starts with, bytes.
    pub const fn initial(self) -> u32 {
        match self {
            Buffer::Auto(initial, _) | Buffer::Fixed(initial) => initial,
        }
    }
    /// The largest size it can reach, bytes.
    pub const fn max(self) -> u32 {
        match self {
            Buffer::Auto(_, max) | Buffer::Fixed(max) => max,
        }
    }
}

/// `net.ipv4.tcp_ecn`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ecn {
    /// 0: never.
    Off,
    /// 2, Linux's default: agreed to when the other side asks.
    Accept,
    /// 1: asked for and agreed to.
    On,
    /// 3, of Linux 7.2: Accurate ECN is asked for and agreed to.
    Accurate,
    /// 4, of Linux 7.2: Accurate ECN is agreed to when the other side asks; asked for is that of RFC 3168.
    OnAcceptAccurate,
    /// 5, of Linux 7.2: Accurate ECN is agreed to when the other side asks.
    AcceptAccurate,
}

impl Ecn {
    /// What a number of `net.ipv4.tcp_ecn` says. Those of Linux 7.2 are as 2 for the others, which do not take them.
    pub const fn of_setting(n: u8) -> Ecn {
        match n {
            0 => Ecn::Off,
            1 => Ecn::On,
            3 => Ecn::Accurate,
            4 => Ecn::OnAcceptAccurate,
            5 => Ecn::AcceptAccurate,
            _ => Ecn::Accept,
        }
    }
    /// The same where a route says that ECN is asked for (`features ecn`).
    //= linux v7.2 include/net/tcp_ecn.h tcp_ecn_send_syn
    pub const fn asked(self) -> Ecn {
        match self {
            Ecn::Accurate | Ecn::OnAcceptAccurate => self,
            Ecn::AcceptAccurate => Ecn::OnAcceptAccurate,
            _ => Ecn::On,
        }
    }
    /// Whether ECN of either kind is asked for.
    pub const fn asks(self) -> bool {
        matches!(self, Ecn::On | Ecn::Accurate | Ecn::OnAcceptAccurate)
    }
    /// Whether Accurate ECN is agreed to.
    pub const fn accepts_accurate(self) -> bool {
        matches!(self, Ecn::Accurate | Ecn::OnAcceptAccurate | Ecn::AcceptAccurate)
    }
}

/// What a socket follows beside, whose program makes its calls one by one ([`Endpoint::send`](crate::Endpoint::send)): segments go in bursts that the card
/// cuts, pushes go in the midst of a write as in the kernel, and times are counted for `getsockopt(TCP_INFO)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calls {
    /// `sk_gso_max_segs`: segments that the card cuts of one packet; 1: it cuts none. Default 65535.
    pub gso_max_segs: u32,
    /// `sk_gso_max_size`: bytes of such a packet. Default 65215 (GSO_MAX_SIZE without MAX_TCP_HEADER).
    pub gso_max_size: u32,
    /// `tcp_min_tso_segs`. Default 2.
    pub min_tso_segs: u32,
    /// `tcp_tso_win_divisor`; 0: by `tcp_max_tso_deferred_mss`. Default 3.
    pub tso_win_divisor: u32,
    /// `tcp_tso_rtt_log`: the round trip by which packets may be larger is halved for each 2^n microseconds; 0: it says nothing. Default 9.
    pub tso_rtt_log: u32,
    /// `tcp_notsent_lowat`, bytes. Default 4294967295: none.
    pub notsent_lowat: u32,
    /// `tcp_mtu_probing` 2: the path's MTU is probed, from segments of so many bytes on (`tcp_base_mss`). Default none.
    pub mtu_probing: Option<u32>,
    /// Headers of IP and TCP without options, bytes. Default 40.
    pub headers: u32,
    /// A burst is handed over as one packet ([`Transmit::gso_size`](crate::Transmit::gso_size)), which the caller or its card cuts; else segment by
    /// segment, as the card sends it. Default `false`.
    pub whole: bool,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls {
            gso_max_segs: 65_535,
            gso_max_size: 65_215,
            min_tso_segs: 2,
            tso_win_divisor: 3,
            tso_rtt_log: 9,
            notsent_lowat: u32::MAX,
            mtu_probing: None,
            headers: 40,
            whole: false,
        }
    }
}

/// Parameters of one endpoint. Public fields: set what you like between a constructor and
/// [`Endpoint::connect`](crate::Endpoint::connect); nonsense (an MSS of 0, a window of 0 segments) is taken as the
/// least sensible value there, never a panic.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whose TCP.
    pub stack: Stack,
    /// Timer interrupts per second (CONFIG_HZ). Default the profile's 250; XP 100. 0 is taken as 1.
    pub hz: u32,
    /// MSS announced, bytes: MTU - 40. Default 1460. Timestamps take 12 of it in each segment.
    pub mss: u16,
    /// MSS announced where that is another than the size of our own segments, as a route's `advmss` has it. Default: `mss`.
    pub advmss: Option<u16>,
    /// Whether a path with a larger MTU (jumbo frames, `lo`) raises `mss` to what it carries: true of Linux until somebody asks for a size.
    pub mss_follows_mtu: bool,
    /// Congestion control. Set by name with [`Config::set_cc`].
    pub cc: &'static cc::Algorithm,
    /// What the parameters of the controllers' modules are set to (`/sys/module/tcp_NAME/parameters`). Default: nothing.
    pub cc_parameters: cc::Parameters,
    /// Initial congestion window, segments. 0: the stack's own rule (6.12: 10, RFC 6928; 2.6.35: RFC 3390, 3 for 1460;
    /// XP: 2).
    pub initial_window: u32,
    /// Least retransmission timeout (`tcp_rto_min_us`, `ip route … rto_min`). `None`: the stack's own (Linux 200 ms, XP 300 ms).
    pub min_rto: Option<Span>,
    /// Most segments the congestion window grows to (`ip route … cwnd lock N`). Default none.
    pub cwnd_clamp: Option<u32>,
    /// Most bytes offered to the peer (`ip route … window N`). Default none.
    pub window_clamp: Option<u32>,
    /// Most segments offered to the peer at first (`ip route … initrwnd N`). Default none.
    pub initial_rwnd: Option<u32>,
    /// Every segment is acknowledged at once (`ip route … quickack 1`). Linux alone. Default false.
    pub quickack: bool,
    /// Duplicate acknowledgements that are first held for reordering (`tcp_reordering`, `ip route … reordering N`). Default 3 on Linux, 2 on XP.
    pub reordering: Option<u32>,
    /// Offer SACK (RFC 2018). Default on.
    pub sack: bool,
    /// Offer timestamps (RFC 7323). Default on for Linux, off for XP.
    pub timestamps: bool,
    /// Each connection's timestamps begin somewhere else (`tcp_timestamps` 1, not 2; Linux 6.12). Default true.
    pub timestamp_offset: bool,
    /// Offer window scaling (RFC 7323). Default on for Linux, off for XP.
    pub window_scaling: bool,
    /// Explicit congestion notification (RFC 3168, RFC 9768). Default [`Ecn::Accept`]; XP: off.
    pub ecn: Ecn,
    /// `tcp_ecn_option` and `tcp_ecn_option_beacon` of Linux 7.2. Default 2 and 3: the option of Accurate ECN goes with every segment.
    pub ecn_option: (u8, u8),
    /// `tcp_ecn_fallback`: a repeated SYN asks for no ECN (Linux since 4.2). Default true.
    pub ecn_fallback: bool,
    /// Segments out of the window are answered no sooner than so long one after another, where they have no data (`tcp_invalid_ratelimit`; Linux since 4.0).
    /// Default 500 ms.
    pub invalid_ratelimit: Span,
    /// TCP_NODELAY: Nagle's algorithm off. Default false.
    pub nodelay: bool,
    /// Send buffer.
    pub sndbuf: Buffer,
    /// Receive buffer.
    pub rcvbuf: Buffer,
    /// Back to slow start after an idle RTO (`tcp_slow_start_after_idle`, RFC 5681 section 4.1). Default on.
    pub slow_start_after_idle: bool,
    /// Retransmissions of SYN before giving up (`tcp_syn_retries`). Default 6 (6.12), 5 (2.6.35), 2 (XP).
    pub syn_retries: u8,
    /// Retransmissions of SYN-ACK before giving up (`tcp_synack_retries`). Default 5 (XP: 2).
    pub synack_retries: u8,
    /// Retransmissions of data before giving up (`tcp_retries2`, TcpMaxDataRetransmissions). Default 15 (XP: 5).
    pub retries2: u8,
    /// Whether the hash of the flow is drawn anew after a timeout (`net.core.txrehash`, `SO_TXREHASH`; Linux 6.12). Default true.
    pub txrehash: bool,
    /// How long TIME-WAIT lasts. Default 60 s (XP: 240 s).
    pub time_wait: Span,
    /// Whether the caller reports with [`Endpoint::transmitted_freed`](crate::Endpoint::transmitted_freed) what has
    /// left the host's own queues. Then TCP small queues (6.12) and the limit on retransmissions of what still waits in
    /// the device act. Default false: the host's queues are of no concern.
    pub device_accounting: bool,
    /// The most that a program gets when it asks for a send and a receive buffer, bytes (`net.core.wmem_max`, `rmem_max`; Linux 6.12). Default 212992
    /// each.
    pub most_asked: (u32, u32),
    /// The most a socket has below it where no qdisc paces it, bytes (`tcp_limit_output_bytes`). Default 1 MiB; 4 MiB on 7.2.
    pub limit_output: u32,
    /// Whether a short segment waits while the host still holds one of the connection's (`tcp_autocorking`). Default `true`.
    pub autocorking: bool,
    /// What the agents of [`Stack::Ns2`] are set to.
    pub ns2: ns2::Options,
    /// Whether tail loss probes are sent (`tcp_early_retrans` 3 or 4; Linux 6.12). Default true.
    pub early_retrans: bool,
    /// F-RTO is used after a timeout (`tcp_frto`; Linux 6.12). Default true.
    pub frto: bool,
    /// How losses are found (`tcp_recovery`; Linux 6.12): 1 by RACK, which is always so; 2 with a reordering window that stays as it begins; 4 not by the number of
    /// duplicates. Default 1.
    pub recovery: u8,
    /// Duplicates are told by D-SACK (`tcp_dsack`, RFC 2883; Linux). Default true.
    pub dsack: bool,
    /// The pacing rate in slow start and later, per cent of a window per round trip (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`; Linux 6.12).
    /// Default 200 and 120.
    pub pacing_ratios: (u16, u16),
    /// The socket is driven call by call, as by a program (Linux 6.12). Default none: the caller writes when it likes, one segment at a time.
    pub calls: Option<Calls>,
    /// When a stack that is not Linux acknowledges data: after so many segments, or so long. Default 2 and 200 ms (XP).
    pub deferred_ack: (u32, Span),
    /// What is kept of connections before between the same addresses, and whether its slow-start threshold counts (Linux 6.12;
    /// [`Endpoint::know`](crate::Endpoint::know)). Default none.
    pub known: Option<(TcpMetrics, bool)>,
    /// The program asks for Fast Open, and has so many bytes for the SYN (`MSG_FASTOPEN`); of one that listens, `TCP_FASTOPEN`. For the caller: an endpoint is
    /// told with [`Endpoint::connect_fast`](crate::Endpoint::connect_fast). Default none.
    pub fastopen: Option<u64>,
}

impl Config {
    /// The defaults of a Linux on Ethernet with MTU 1500.
    pub fn linux(kernel: Kernel) -> Config {
        let today = kernel >= Kernel::V6_12;
        Config {
            stack: Stack::Linux(kernel),
            hz: kernel.hz(),
            mss: 1460,
            advmss: None,
            mss_follows_mtu: true,
            cc: &cc::cubic::ALGORITHM,
            cc_parameters: cc::Parameters::default(),
            initial_window: 0,
            min_rto: None,
            cwnd_clamp: None,
            window_clamp: None,
            initial_rwnd: None,
            quickack: false,
            reordering: None,
            sack: true,
            timestamps: true,
            timestamp_offset: true,
            window_scaling: true,
            ecn: Ecn::Accept,
            ecn_option: (2, 3),
            ecn_fallback: today,
            invalid_ratelimit: Span::from_ms(500),
            nodelay: false,
            sndbuf: Buffer::Auto(16_384, 4_194_304),
            //= linux v7.2 net/ipv4/tcp.c tcp_init: of a machine with 4 GiB or more; of 6.12, with 768 MiB or more
            rcvbuf: match kernel {
                Kernel::V7_2 => Buffer::Auto(131_072, 32 << 20),
                _ if today => Buffer::Auto(131_072, 6_291_456),
                _ => Buffer::Auto(87_380, 4_194_304),
            },
            slow_start_after_idle: true,
            syn_retries: if today { 6 } else { 5 },
            synack_retries: 5,
            retries2: 15,
            txrehash: true,
            time_wait: Span::from_secs(60),
            device_accounting: false,
            most_asked: (212_992, 212_992),
            autocorking: true,
            //= linux v7.2 net/ipv4/tcp_ipv4.c tcp_sk_init
            limit_output: if kernel >= Kernel::V7_2 { 4 << 20 } else { 1 << 20 },
            ns2: ns2::Options::default(),
            deferred_ack: (2, Span::from_ms(200)),
            early_retrans: true,
            frto: true,
            recovery: 1,
            dsack: true,
            pacing_ratios: (200, 120),
            calls: None,
            known: None,
            fastopen: None,
        }
    }

    /// The defaults of Windows XP on Ethernet with MTU 1500, as iperf uses it: 8 KB send buffer, receive window 17520
    /// (twelve segments), SACK, no timestamps, no window scaling, delayed ACK of 200 ms on every second segment.
    pub fn windows_xp() -> Config {
        Config {
            stack: Stack::WindowsXp,
            hz: 100,
            mss: 1460,
            advmss: None,
            mss_follows_mtu: false,
            cc: &cc::reno::ALGORITHM,
            cc_parameters: cc::Parameters::default(),
            initial_window: 0,
            min_rto: None,
            cwnd_clamp: None,
            window_clamp: None,
            initial_rwnd: None,
            quickack: false,
            reordering: None,
            sack: true,
            timestamps: false,
            timestamp_offset: true,
            window_scaling: false,
            ecn: Ecn::Off,
            ecn_option: (2, 3),
            ecn_fallback: true,
            invalid_ratelimit: Span::from_ms(500),
            nodelay: false,
            sndbuf: Buffer::Fixed(8_192),
            rcvbuf: Buffer::Fixed(17_520),
            slow_start_after_idle: true,
            syn_retries: 2,
            synack_retries: 2,
            retries2: 5,
            txrehash: true,
            time_wait: Span::from_secs(240),
            device_accounting: false,
            most_asked: (212_992, 212_992),
            autocorking: true,
            limit_output: 1 << 20,
            deferred_ack: (2, Span::from_ms(200)),
            early_retrans: true,
            frto: true,
            recovery: 1,
            dsack: true,
            pacing_ratios: (200, 120),
            calls: None,
            known: None,
            fastopen: None,
            ns2: ns2::Options::default(),
        }
    }

    /// ns-2's `Agent/TCP/Newreno` and its sink, on packets of 1460 bytes of data and 40 of headers: no timestamps, no window scaling.
    pub fn ns2() -> Config {
        Config {
            stack: Stack::Ns2,
            mss_follows_mtu: false,
            sack: false,
            timestamps: false,
            window_scaling: false,
            ecn: Ecn::Off,
            ecn_option: (2, 3),
            ecn_fallback: true,
            invalid_ratelimit: Span::from_ms(500),
            ns2: ns2::Options::default(),
            ..Config::linux(Kernel::V6_12)
        }
    }

    /// The defaults of a Sun of the nineties (Solaris 2.6) on FDDI, whose segments are cut to 1460 bytes on the way: buffers of 8 KB
    /// (`tcp_xmit_hiwat`, `tcp_recv_hiwat`; the latter made two whole segments of FDDI's 4312 bytes), neither SACK nor timestamps, a
    /// timer interrupt every 10 ms, an ACK after 50 ms (`tcp_deferred_ack_interval`) or two segments of the size it has announced:
    /// these are six of those that come, more than the window holds, so the timer alone acknowledges. The rest is as in
    /// [`Config::windows_xp`].
    pub fn solaris() -> Config {
        Config {
            sack: false,
            sndbuf: Buffer::Fixed(8_192),
            rcvbuf: Buffer::Fixed(8_624),
            syn_retries: 5,
            synack_retries: 5,
            retries2: 12,
            deferred_ack: (6, Span::from_ms(50)),
            ..Config::windows_xp()
        }
    }

    /// The defaults of a Cisco router with IOS 12: a window of 4128 bytes (`ip tcp window-size`), no SACK, no timestamps. The rest is as in
    /// [`Config::windows_xp`].
    pub fn ios() -> Config {
        Config {
            sack: false,
            sndbuf: Buffer::Fixed(4_128),
            rcvbuf: Buffer::Fixed(4_128),
            ..Config::windows_xp()
        }
    }

    /// Chooses the congestion control by its name (`reno`, `cubic`, …), as `TCP_CONGESTION` does.
    ///
    /// # Errors
    /// A sentence with the names there are, or what profile has none of this name.
    pub fn set_cc(&mut self, name: &str) -> Result<(), String> {
        if self.stack == Stack::Ns2 {
            self.ns2.variant = ns2::Variant::find(name).ok_or_else(|| {
                let names = ns2::Variant::ALL.map(|v| v.0).join(", ");
                format!("profile ns-2 has no agent \"{name}\"; there are {names}")
            })?;
            return Ok(());
        }
        let kernel = match self.stack {
            Stack::Linux(kernel) => kernel,
            Stack::WindowsXp | Stack::Ns2 => Kernel::V2_6_35,
        };
        let names = || cc::names_of(kernel).join(", ");
        let found = cc::find(name)
            .ok_or_else(|| format!("unknown congestion control \"{name}\"; there are {}", names()))?;
        if found.from > kernel {
            return Err(format!(
                "congestion control \"{name}\" is not simulated in profile {kernel}; there are {}",
                names()
            ));
        }
        self.cc = found;
        Ok(())
    }

    /// MSS that is announced.
    pub fn announced(&self) -> u16 {
        self.advmss.unwrap_or(self.mss)
    }

    /// `setsockopt(SO_SNDBUF, bytes)`: Linux doubles it (at least 4608 on 6.12, which gives `most_asked` at most; 2048 on 2.6.35), XP takes it as it
    /// is.
    pub fn set_sndbuf(&mut self, bytes: u32) {
        self.sndbuf = Buffer::Fixed(self.requested(bytes, self.most_asked.0, 4_608, 2_048));
    }
    /// `setsockopt(SO_RCVBUF, bytes)`: Linux doubles it (at least 2304 on 6.12, which gives `most_asked` at most; 256 on 2.6.35), XP takes it as it is.
    pub fn set_rcvbuf(&mut self, bytes: u32) {
        self.rcvbuf = Buffer::Fixed(self.requested(bytes, self.most_asked.1, 2_304, 256));
    }
    //= linux v6.12 net/core/sock.c sk_setsockopt
    fn requested(&self, bytes: u32, most: u32, least_today: u32, least_2010: u32) -> u32 {
        match self.stack {
            Stack::Linux(Kernel::V2_6_35) => bytes.saturating_mul(2).max(least_2010),
            Stack::Linux(_) => bytes.min(most).saturating_mul(2).max(least_today),
            Stack::WindowsXp | Stack::Ns2 => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_are_asked_for_are_bounded() {
        let mut cfg = Config::linux(Kernel::V6_12);
        cfg.set_rcvbuf(1 << 20);
        assert_eq!(cfg.rcvbuf, Buffer::Fixed(425_984));
        cfg.most_asked = (1 << 20, 16 << 20);
        cfg.set_rcvbuf(1 << 20);
        cfg.set_sndbuf(2 << 20);
        assert_eq!((cfg.rcvbuf, cfg.sndbuf), (Buffer::Fixed(2 << 20), Buffer::Fixed(2 << 20)));
        let mut old = Config::linux(Kernel::V2_6_35);
        old.set_rcvbuf(1 << 20);
        assert_eq!(old.rcvbuf, Buffer::Fixed(2 << 20));
    }
}
