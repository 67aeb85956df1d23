//! `struct tcp_info` as names for the code of scripts.
//!
//! Follows: google/packetdrill `code.c`; linux v6.12 include/uapi/linux/tcp.h.
//! Differs: members that nothing here keeps (`tcpi_max_pacing_rate`, `tcpi_rcv_space`, …) are not defined: code that asks for one gets
//! a NameError.

use crate::code::Names;
use crate::net::{Kind, Sock};
use penstock_model::{Span, Time};
use penstock_tcp::{CaState, State};

/// States and flags by their names.
pub(crate) fn constants() -> Names {
    let mut names = Names::default();
    let states = [
        "TCP_ESTABLISHED",
        "TCP_SYN_SENT",
        "TCP_SYN_RECV",
        "TCP_FIN_WAIT1",
        "TCP_FIN_WAIT2",
        "TCP_TIME_WAIT",
        "TCP_CLOSE",
        "TCP_CLOSE_WAIT",
        "TCP_LAST_ACK",
        "TCP_LISTEN",
        "TCP_CLOSING",
    ];
    for (name, n) in states.iter().zip(1_i128..) {
        names.set_int(name, n);
    }
    for (name, n) in ["TCP_CA_Open", "TCP_CA_Disorder", "TCP_CA_CWR", "TCP_CA_Recovery", "TCP_CA_Loss"]
        .iter()
        .zip(0_i128..)
    {
        names.set_int(name, n);
    }
    let options = ["TIMESTAMPS", "SACK", "WSCALE", "ECN", "ECN_SEEN", "SYN_DATA"];
    for (n, name) in options.iter().enumerate() {
        names.set_int(&format!("TCPI_OPT_{name}"), 1_i128 << n);
    }
    names
}

/// Sets what `getsockopt(TCP_INFO)` tells of a socket.
pub(crate) fn tell(names: &mut Names, sock: &Sock, now: Time) {
    let us = |span: Span| i128::from(span.as_ns() / 1_000);
    let ms = |span: Span| i128::from(span.as_ns() / 1_000_000);
    let end = match &sock.kind {
        Kind::Tcp(end) => end,
        Kind::Listens(_) => return names.set_int("tcpi_state", 10),
        Kind::Fresh | Kind::Gone => return names.set_int("tcpi_state", 7),
    };
    let i = end.info();
    let state = match i.state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    };
    let ca = match i.ca_state {
        CaState::Open => 0,
        CaState::Disorder => 1,
        CaState::Cwr => 2,
        CaState::Recovery => 3,
        CaState::Loss => 4,
    };
    let ecn = &i.ecn;
    let [e1, e0, ce] = ecn.received;
    let [delivered_e1, delivered_e0, delivered_ce] = ecn.delivered;
    let whole: [(&str, u64); 36] = [
        ("tcpi_state", state),
        ("tcpi_ca_state", ca),
        ("tcpi_backoff", i.backoff.into()),
        ("tcpi_snd_mss", i.snd_mss.into()),
        ("tcpi_rcv_mss", i.rcv_mss.into()),
        ("tcpi_unacked", i.unacked.into()),
        ("tcpi_sacked", i.sacked.into()),
        ("tcpi_lost", i.lost.into()),
        ("tcpi_retrans", i.retrans.into()),
        ("tcpi_fackets", 0),
        ("tcpi_snd_ssthresh", i.ssthresh.into()),
        ("tcpi_snd_cwnd", i.cwnd.into()),
        ("tcpi_reordering", i.reordering.into()),
        ("tcpi_total_retrans", i.total_retrans),
        ("tcpi_pacing_rate", i.pacing_rate),
        ("tcpi_bytes_acked", i.bytes_acked),
        ("tcpi_bytes_received", i.bytes_received),
        ("tcpi_segs_out", i.segs_out),
        ("tcpi_segs_in", i.segs_in),
        ("tcpi_notsent_bytes", i.notsent_bytes),
        ("tcpi_delivery_rate", i.delivery_rate),
        ("tcpi_delivered", i.delivered),
        ("tcpi_delivered_ce", i.delivered_ce),
        ("tcpi_bytes_retrans", i.bytes_retrans),
        ("tcpi_dsack_dups", i.dsack_dups),
        ("tcpi_snd_wnd", i.snd_wnd.into()),
        ("tcpi_received_ce", ecn.received_ce.into()),
        ("tcpi_received_e1_bytes", e1.into()),
        ("tcpi_received_e0_bytes", e0.into()),
        ("tcpi_received_ce_bytes", ce.into()),
        ("tcpi_delivered_e1_bytes", delivered_e1.into()),
        ("tcpi_delivered_e0_bytes", delivered_e0.into()),
        ("tcpi_delivered_ce_bytes", delivered_ce.into()),
        ("tcpi_ecn_mode", ecn.mode as u64),
        ("tcpi_accecn_opt_seen", ecn.option_seen.into()),
        ("tcpi_accecn_fail_mode", ecn.fail_mode.into()),
    ];
    for (name, value) in whole {
        names.set_int(name, value);
    }
    let d = end.diag(now, 1_500, false);
    let options = [d.timestamps, d.sack, d.wscale.is_some(), d.ecn, d.ecn_seen, d.fastopen];
    let bits = options.iter().enumerate().map(|(n, &on)| i128::from(on) << n).sum::<i128>();
    names.set_int("tcpi_options", bits);
    names.set_int("tcpi_fastopen_client_fail", i.fastopen_client_fail);
    names.set_int("tcpi_rcv_wnd", i.rcv_wnd);
    names.set_int("tcpi_rto", us(i.rto));
    names.set_int("tcpi_ato", us(i.ato));
    names.set_int("tcpi_rtt", us(i.srtt));
    names.set_int("tcpi_rttvar", us(i.rttvar));
    names.set_int("tcpi_min_rtt", i.min_rtt.map_or(i128::from(u32::MAX), us));
    if let Some(c) = end.call_info(now) {
        names.set_int("tcpi_busy_time", us(c.busy_time));
        names.set_int("tcpi_rwnd_limited", us(c.rwnd_limited));
        names.set_int("tcpi_sndbuf_limited", us(c.sndbuf_limited));
        names.set_int("tcpi_last_data_recv", ms(c.last_data_recv));
        names.set_int("tcpi_last_ack_recv", ms(c.last_ack_recv));
        names.set_int("tcpi_last_data_sent", ms(c.last_data_sent));
        names.set_int("tcpi_probes", c.probes);
        names.set_int("tcpi_retransmits", c.retransmits);
        names.set_int("tcpi_advmss", c.advmss);
        names.set_int("tcpi_reord_seen", c.reord_seen);
    }
}
