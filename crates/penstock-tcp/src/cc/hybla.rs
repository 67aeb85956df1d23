//! `hybla`: a long round trip grows as fast as one of 25 ms would.
//!
//! Follows: linux v6.12 net/ipv4/tcp_hybla.c; Caini & Firrincieli 2004.
//! Differs: none known.

use super::reno::reno_cong_avoid;
use super::{Algorithm, Build, CongestionControl, Parameter, Window};
use crate::info::CaState;
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "hybla",
    about: "a long round trip grows as fast as one of 25 ms (Caini & Firrincieli)",
    from: Kernel::V6_12,
    parameters: &[Parameter::new("rtt0", 25)],
    build,
};

/// 2 to the eighths, in 128ths.
const FRACTIONS: [u32; 8] = [128, 139, 152, 165, 181, 197, 215, 234];

fn build(b: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Hybla { rtt0: b.parameters.of(&ALGORITHM, "rtt0") as u32, enabled: true, ..Hybla::default() })
}

/// The controller of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hybla {
    // Parameters
    /// The round trip all are compared with, milliseconds.
    rtt0: u32,
    // Variables
    enabled: bool,
    /// Growth of less than a segment so far, 128ths.
    cents: u32,
    /// The round trip over `rtt0`, at least 1; times 8; its square times 128.
    rho: u32,
    rho_3ls: u32,
    rho2_7ls: u32,
    /// The least smoothed round trip, microseconds times 8.
    min_srtt: u32,
}

impl Hybla {
    //= linux v6.12 net/ipv4/tcp_hybla.c hybla_recalc_param
    fn recalc(&mut self, w: &Window) {
        self.rho_3ls = (w.srtt_us8 / self.rtt0.wrapping_mul(1_000).max(1)).max(8);
        self.rho = self.rho_3ls >> 3;
        self.rho2_7ls = self.rho_3ls.wrapping_mul(self.rho_3ls) << 1;
    }
}

impl CongestionControl for Hybla {
    //= linux v6.12 net/ipv4/tcp_hybla.c hybla_init
    fn init(&mut self, w: &mut Window) {
        (self.cents, self.enabled) = (0, true);
        w.cwnd_clamp = 65_535;
        self.recalc(w);
        self.min_srtt = w.srtt_us8;
        w.cwnd = self.rho;
    }
    fn ssthresh(&mut self, w: &Window) -> u32 {
        (w.cwnd >> 1).max(2)
    }
    //= linux v6.12 net/ipv4/tcp_hybla.c hybla_cong_avoid
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        if w.srtt_us8 < self.min_srtt {
            self.recalc(w);
            self.min_srtt = w.srtt_us8;
        }
        if !w.cwnd_limited {
            return;
        }
        if !self.enabled {
            return reno_cong_avoid(w, acked);
        }
        if self.rho == 0 {
            self.recalc(w);
        }
        let slow_start = w.in_slow_start();
        let increment = if slow_start {
            // 2^rho - 1, in 128ths.
            let fraction = FRACTIONS[(self.rho_3ls - (self.rho << 3)) as usize & 7];
            (1 << self.rho.min(16)) * fraction - 128
        } else {
            let increment = self.rho2_7ls / w.cwnd;
            if increment < 128 {
                w.cwnd_cnt += 1;
            }
            increment
        };
        let odd = increment % 128;
        w.cwnd += increment >> 7;
        self.cents += odd;
        while self.cents >= 128 {
            w.cwnd += 1;
            self.cents -= 128;
            w.cwnd_cnt = 0;
        }
        if increment == 0 && odd == 0 && w.cwnd_cnt >= w.cwnd {
            w.cwnd += 1;
            w.cwnd_cnt = 0;
        }
        if slow_start {
            w.cwnd = w.cwnd.min(w.ssthresh);
        }
        w.cwnd = w.cwnd.min(w.cwnd_clamp);
    }
    fn on_state(&mut self, _: &mut Window, state: CaState) {
        self.enabled = state == CaState::Open;
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![("rho8", self.rho_3ls.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Parameters;

    fn at(rtt_ms: u32, parameters: &[(&str, i64)]) -> (Box<dyn CongestionControl>, Window) {
        let mut w = Window::new(250, false);
        w.srtt_us8 = rtt_ms * 8_000;
        w.cwnd_limited = true;
        let mut c = Parameters::default().with(&ALGORITHM, parameters).build(&ALGORITHM, Kernel::V6_12);
        c.init(&mut w);
        (c, w)
    }

    #[test]
    fn the_window_begins_with_the_ratio_of_round_trips() {
        for (rtt_ms, cwnd) in [(20, 1), (25, 1), (50, 2), (250, 10), (600, 24)] {
            assert_eq!(at(rtt_ms, &[]).1.cwnd, cwnd, "{rtt_ms}");
        }
        assert_eq!(at(250, &[("rtt0", 125)]).1.cwnd, 2);
    }

    #[test]
    fn slow_start_adds_two_to_the_rho_less_one() {
        // 62.5 ms: rho is 2.5, an ACK adds 2^2.5 - 1 = 4.66 segments: 4 × 181 - 128 = 596 of 128.
        let (mut c, mut w) = at(62, &[]);
        assert_eq!(c.info()[0].1, 8 * 62 / 25);
        w.srtt_us8 = 0;
        let (mut c5, mut w5) = (at(63, &[]).0, w);
        w5.cwnd = 10;
        // 63 ms: 8 × 63 / 25 = 20 eighths.
        w5.srtt_us8 = u32::MAX;
        c5.cong_avoid(&mut w5, 1);
        assert_eq!(w5.cwnd, 10 + 596 / 128);
        // 596 % 128 = 84: the second ACK's fraction makes one more.
        c5.cong_avoid(&mut w5, 1);
        assert_eq!(w5.cwnd, 10 + 4 + 4 + 1);
        // A round trip that falls changes the ratio: now it is 1, and an ACK adds one.
        w.cwnd = 10;
        c.cong_avoid(&mut w, 1);
        assert_eq!(w.cwnd, 11);
    }

    #[test]
    fn congestion_avoidance_adds_rho_squared_in_a_round_trip() {
        let (mut c, mut w) = at(100, &[]);
        (w.cwnd, w.ssthresh) = (64, 2);
        // rho 4: 16 segments a window; 16 × 128 / 64 = 32 of 128 an ACK.
        for _ in 0..4 {
            c.cong_avoid(&mut w, 1);
        }
        assert_eq!(w.cwnd, 65);
        // In trouble it is Reno.
        c.on_state(&mut w, CaState::Disorder);
        w.cwnd_cnt = 0;
        for _ in 0..64 {
            c.cong_avoid(&mut w, 1);
        }
        assert_eq!(w.cwnd, 65);
        c.cong_avoid(&mut w, 1);
        assert_eq!(w.cwnd, 66);
    }
}
