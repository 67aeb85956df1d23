//! What a new connection is set to: by its host, its route, its program.

use super::*;

/// What the host's settings say (`net.ipv4.tcp_*`, `net.core.txrehash`). A controller that is not here leaves the kernel's own.
fn set_up(cfg: &mut Config, s: &TcpSettings) {
    if cfg.cc.name != s.congestion_control {
        let _ = cfg.set_cc(&s.congestion_control);
    }
    for &(control, name, value) in &s.parameters {
        if let Some(control) = penstock_tcp::cc::find(control) {
            cfg.cc_parameters.set(control, name, value);
        }
    }
    cfg.timestamp_offset = s.timestamp_offset;
    (cfg.sack, cfg.timestamps, cfg.window_scaling) = (s.sack, s.timestamps, s.window_scaling);
    cfg.ecn = Ecn::of_setting(s.ecn);
    (cfg.ecn_option, cfg.ecn_fallback) = (s.ecn_option, s.ecn_fallback);
    cfg.invalid_ratelimit = s.invalid_ratelimit;
    cfg.slow_start_after_idle = s.slow_start_after_idle.unwrap_or(cfg.slow_start_after_idle);
    let [syn, synack, data] = s.retries;
    cfg.syn_retries = syn.unwrap_or(cfg.syn_retries);
    cfg.synack_retries = synack.unwrap_or(cfg.synack_retries);
    cfg.retries2 = data.unwrap_or(cfg.retries2);
    cfg.reordering = s.reordering;
    let (send, receive) = s.most_asked;
    cfg.most_asked = (send.unwrap_or(cfg.most_asked.0), receive.unwrap_or(cfg.most_asked.1));
    cfg.limit_output = s.limit_output.unwrap_or(cfg.limit_output);
    cfg.autocorking = s.autocorking;
    cfg.txrehash = s.txrehash;
    cfg.early_retrans = s.early_retrans;
    (cfg.frto, cfg.recovery, cfg.dsack, cfg.pacing_ratios) = (s.frto, s.recovery, s.dsack, s.pacing_ratios);
    if let Some((first, most)) = s.wmem {
        cfg.sndbuf = Buffer::Auto(first, most);
    }
    if let Some((first, most)) = s.rmem {
        cfg.rcvbuf = Buffer::Auto(first, most);
    }
    if !s.moderate_rcvbuf {
        let first = cfg.rcvbuf.initial();
        cfg.rcvbuf = Buffer::Auto(first, first);
    }
}

/// A route's congestion control stands above a program's; its `features ecn` is as `tcp_ecn` 1.
//= linux v6.12 net/ipv4/tcp_cong.c tcp_ca_dst_init, tcp_ca_openreq_child; net/ipv4/tcp_output.c tcp_ecn_send_syn
fn route_control(cfg: &mut Config, route: &TcpRoute) {
    if let Some(name) = route.congctl {
        // One that is not simulated was refused before the run.
        let _ = cfg.set_cc(name);
    }
    if route.ecn {
        cfg.ecn = cfg.ecn.asked();
    }
}

impl Net {
    /// The TCP that a host's sockets start with.
    pub(crate) fn tcp_config(&self, host: u32) -> Config {
        let machine = &self.machines[host as usize];
        let mut cfg = match machine.stack {
            Stack::Linux => Config::linux(machine.kernel),
            Stack::WindowsXp => Config::windows_xp(),
            Stack::Ios => Config::ios(),
            Stack::Solaris => Config::solaris(),
        };
        cfg.device_accounting = machine.stack == Stack::Linux;
        if machine.stack == Stack::Linux {
            cfg.hz = machine.host.hz();
            set_up(&mut cfg, &machine.host.tcp_settings());
        }
        cfg
    }
    /// The segment size that the route's MTU allows.
    pub(super) fn route_mss(&mut self, host: u32, bound: u32, peer: IpAddr, cfg: &mut Config) {
        let now = self.now();
        if let Some(mtu) = self.machines[host as usize].host.mtu_by(bound, peer, now) {
            let mss = mtu.saturating_sub(headers(peer) - ETH_HLEN + 20).clamp(1, 65_495) as u16;
            cfg.mss = if cfg.mss_follows_mtu { mss } else { cfg.mss.min(mss) };
            //= linux v6.12 net/ipv6/route.c ip6_default_advmss: at least net.ipv6.route.min_adv_mss
            if peer.is_ipv6() && mtu < 1_280 && cfg.stack.is_linux_6_12() {
                cfg.advmss = Some(1_220);
            }
        }
    }
    /// Whether the socket's packets are super-packets, how large, and what bounds its program's writes.
    //= linux v6.12 net/core/sock.c sk_setup_caps
    fn call_config(&mut self, host: u32, bound: u32, peer: IpAddr, cfg: &mut Config) {
        let machine = &mut self.machines[host as usize];
        if !cfg.stack.is_linux_6_12() {
            return;
        }
        let limits = machine.host.gso_by(bound, peer);
        let settings = machine.host.tcp_settings();
        if limits.is_none() && settings.notsent_lowat.is_none() {
            return;
        }
        let own = Calls::default();
        let [min, divisor, rtt_log] = settings.tso;
        cfg.calls = Some(Calls {
            gso_max_segs: limits.map_or(1, |l| l.segments),
            gso_max_size: limits.map_or(own.gso_max_size, |l| l.size),
            min_tso_segs: min.map_or(own.min_tso_segs, |n| n.max(1)),
            tso_win_divisor: divisor.unwrap_or(own.tso_win_divisor),
            tso_rtt_log: rtt_log.unwrap_or(own.tso_rtt_log),
            notsent_lowat: settings.notsent_lowat.unwrap_or(own.notsent_lowat),
            mtu_probing: None,
            headers: headers(peer) - ETH_HLEN + 20,
            whole: true,
        });
    }
    /// What the route to a peer says of a connection, and the host's least timeout. What a program or a flow has asked for stands.
    pub(super) fn route_config(&mut self, host: u32, bound: u32, peer: IpAddr, cfg: &mut Config) {
        if !matches!(cfg.stack, penstock_tcp::Stack::Linux(_)) {
            return;
        }
        self.call_config(host, bound, peer, cfg);
        let machine = &self.machines[host as usize];
        let route = machine.host.tcp_route_by(bound, peer);
        let least = || machine.host.tcp_settings().rto_min;
        cfg.min_rto = cfg.min_rto.or(route.rto_min).or_else(least);
        if cfg.initial_window == 0 {
            cfg.initial_window = route.initcwnd.unwrap_or(0);
        }
        cfg.initial_rwnd = cfg.initial_rwnd.or(route.initrwnd);
        cfg.window_clamp = cfg.window_clamp.or(route.window);
        if !cfg.stack.is_linux_6_12() {
            // Since Linux 3.6 they count where a row of `ip tcp_metrics` has taken them up.
            cfg.cwnd_clamp = cfg.cwnd_clamp.or(route.cwnd);
            cfg.reordering = route.reordering.or(cfg.reordering);
        }
        cfg.quickack |= route.quickack;
        route_control(cfg, &route);
        if let Some(advmss) = route.advmss {
            cfg.advmss = Some(advmss.min(65_495) as u16);
        }
    }
}
