//! `dctcp`: the window falls by the share of segments that were marked.
//!
//! Follows: linux v6.12 net/ipv4/tcp_dctcp.c; RFC 8257.
//! Differs: no path changes (PLB).

use super::reno::reno_cong_avoid;
use super::{Algorithm, Build, CongestionControl, Window};
use crate::info::CaState;
use penstock_model::Kernel;
use penstock_model::sockets::ControlDiag;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "dctcp",
    about: "falls by the share of marked segments (RFC 8257)",
    from: Kernel::V2_6_35,
    parameters: &[],
    build,
};

/// All segments were marked.
const MAX_ALPHA: u32 = 1024;
/// log2 of 1/g, the weight of a new share (RFC 8257 section 4.2: 1/16).
const SHIFT_G: u32 = 4;

fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Dctcp { alpha: MAX_ALPHA, ..Dctcp::default() })
}

/// The controller of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dctcp {
    /// The share of marked segments, smoothed, in 1024ths. At first all.
    alpha: u32,
    next_seq: u64,
    old_delivered: u64,
    old_delivered_ce: u64,
    loss_cwnd: u32,
    /// Without ECN on the path it is Reno.
    reno: bool,
}

impl Dctcp {
    fn reset(&mut self, w: &Window) {
        self.next_seq = w.snd_nxt;
        self.old_delivered = w.delivered;
        self.old_delivered_ce = w.delivered_ce;
    }
    fn half(&mut self, w: &mut Window) {
        if !self.reno {
            self.loss_cwnd = w.cwnd;
            w.ssthresh = (w.cwnd >> 1).max(2);
        }
    }
}

impl CongestionControl for Dctcp {
    fn hears_acks(&self) -> bool {
        true
    }
    fn init(&mut self, w: &mut Window) {
        self.reno = !w.ecn_ok;
        self.alpha = MAX_ALPHA;
        self.loss_cwnd = 0;
        self.reset(w);
    }
    fn needs_ecn(&self) -> bool {
        !self.reno
    }
    //= linux v6.12 net/ipv4/tcp_dctcp.c dctcp_ssthresh
    //= RFC 8257 section 3.4
    fn ssthresh(&mut self, w: &Window) -> u32 {
        if self.reno {
            return (w.cwnd / 2).max(2);
        }
        self.loss_cwnd = w.cwnd;
        (w.cwnd - ((u64::from(w.cwnd) * u64::from(self.alpha)) >> 11) as u32).max(2)
    }
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        reno_cong_avoid(w, acked);
    }
    /// Once a round trip: the share of marked segments.
    //= linux v6.12 net/ipv4/tcp_dctcp.c dctcp_update_alpha
    //= RFC 8257 section 3.3
    fn in_ack_event(&mut self, w: &mut Window) {
        if self.reno || w.snd_una < self.next_seq {
            return;
        }
        let delivered = (w.delivered - self.old_delivered) as u32;
        let marked = (w.delivered_ce - self.old_delivered_ce) as u32;
        let less = self.alpha >> SHIFT_G;
        self.alpha -= if less > 0 { less } else { self.alpha };
        if marked > 0 {
            self.alpha = (self.alpha + (marked << (10 - SHIFT_G)) / delivered.max(1)).min(MAX_ALPHA);
        }
        self.reset(w);
    }
    fn on_state(&mut self, w: &mut Window, state: CaState) {
        if state == CaState::Recovery {
            self.half(w);
        }
    }
    fn on_loss(&mut self, w: &mut Window) {
        self.half(w);
    }
    fn undo_cwnd(&mut self, w: &Window) -> u32 {
        w.cwnd.max(if self.reno { w.prior_cwnd } else { self.loss_cwnd })
    }
    fn diag(&self, w: &Window) -> Option<ControlDiag> {
        let bytes = |segments: u64| w.mss.wrapping_mul(segments as u32);
        let (marked, all) = (w.delivered_ce - self.old_delivered_ce, w.delivered - self.old_delivered);
        Some(ControlDiag::Dctcp((!self.reno).then(|| [0, self.alpha, bytes(marked), bytes(all)])))
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![("alpha", self.alpha.into()), ("enabled", (!self.reno).into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut d = Dctcp::default();
        let mut w = Window::new(250, false);
        w.ecn_ok = true;
        d.init(&mut w);
        w.cwnd = 100;
        assert_eq!(d.ssthresh(&w), 50, "at first all count as marked");
        for round in 1..200u64 {
            (w.snd_una, w.snd_nxt) = (round * 100, round * 100);
            w.delivered += 100;
            w.delivered_ce += 25;
            d.in_ack_event(&mut w);
        }
        assert!((240..=272).contains(&d.alpha), "a quarter: {}", d.alpha);
        assert!((87..=89).contains(&d.ssthresh(&w)), "falls by an eighth");
    }
}
