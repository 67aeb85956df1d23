//! What ns-2's TCP agents are set to.

use crate::Span;

/// Which of ns-2's agents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// `Agent/TCP`: slow start after every loss.
    Tahoe,
    /// `Agent/TCP/Reno`: fast recovery.
    Reno,
    /// `Agent/TCP/Newreno`: stays in recovery over partial ACKs (RFC 2582, RFC 6582).
    Newreno,
    /// `Agent/TCP/Sack1`: selective acknowledgements and a pipe (Fall & Floyd 1996).
    Sack1,
}

impl Variant {
    /// All, with the names flows call them by.
    pub const ALL: [(&'static str, Variant); 4] = [
        ("tahoe", Variant::Tahoe),
        ("reno", Variant::Reno),
        ("newreno", Variant::Newreno),
        ("sack1", Variant::Sack1),
    ];
    /// The agent of this name.
    pub fn find(name: &str) -> Option<Variant> {
        Variant::ALL.iter().find(|v| v.0 == name).map(|v| v.1)
    }
    /// Its name.
    pub fn name(self) -> &'static str {
        Variant::ALL.iter().find(|v| v.1 == self).map_or("newreno", |v| v.0)
    }
}

/// What an agent is set to; ns-2's names in brackets, its defaults unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Which agent. Default [`Variant::Newreno`].
    pub variant: Variant,
    /// The receiver's window, packets (`window_`). Default 20.
    pub window: u32,
    /// Window after the SYN's acknowledgement, packets (`windowInit_`). Default 2.
    pub window_init: u32,
    /// The clock round trips are measured with (`tcpTick_`). Default 10 ms.
    pub tick: Span,
    /// Least retransmission timeout (`minrto_`). Default 200 ms (ns-2 before 2.29: 1 s).
    pub min_rto: Span,
    /// Greatest (`maxrto_`). Default 60 s.
    pub max_rto: Span,
    /// Timeout before the first round trip (`rtxcur_init_`). Default 3 s.
    pub initial_rto: Span,
    /// Half a window is not rounded down (`precisionReduce_`). Default true (ns-2 before 2.28: false).
    pub precise: bool,
    /// A new packet for each of the first two duplicates (`singledup_`, RFC 3042). Default true.
    pub limited_transmit: bool,
    /// NewReno: a partial ACK takes what it acknowledges off the window (`partial_window_deflation_`). Default true.
    pub deflate: bool,
    /// NewReno: only the first partial ACK sets the timer anew (`newreno_changes1_`). Default true.
    pub impatient: bool,
    /// SACK: two packets for each partial ACK (`partial_ack_`). Default false.
    pub partial_ack: bool,
    /// ECN (`ecn_`). Default false; set from the host's setting.
    pub ecn: bool,
    /// A retransmission may carry CWR (`SetCWRonRetransmit_`). Default true (ns-2 before 2.29: false).
    pub cwr_on_retransmit: bool,
    /// The sink acknowledges every second packet, others after this time (`Agent/TCPSink/DelAck`, `interval_` 100 ms). Default: every packet at once.
    pub delayed_ack: Option<Span>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            variant: Variant::Newreno,
            window: 20,
            window_init: 2,
            tick: Span::from_ms(10),
            min_rto: Span::from_ms(200),
            max_rto: Span::from_secs(60),
            initial_rto: Span::from_secs(3),
            precise: true,
            limited_transmit: true,
            deflate: true,
            impatient: true,
            partial_ack: false,
            ecn: false,
            cwr_on_retransmit: true,
            delayed_ack: None,
        }
    }
}
