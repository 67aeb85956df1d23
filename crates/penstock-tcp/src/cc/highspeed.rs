//! `highspeed`: grows faster and falls less the larger the window is.
//!
//! Follows: linux v6.12 net/ipv4/tcp_highspeed.c; RFC 3649 with the table of its appendix B, without its last row.
//! Differs: none known.

use super::{Algorithm, Build, CongestionControl, Window};
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "highspeed",
    about: "grows faster and falls less the larger the window is (RFC 3649)",
    from: Kernel::V6_12,
    parameters: &[],
    build,
};

/// Of RFC 3649 appendix B: up to this window, segments, a loss takes so many 256ths; the place in the table and one is what a round trip adds.
const AIMD: [(u32, u32); 72] = [
    (38, 128),
    (118, 112),
    (221, 104),
    (347, 98),
    (495, 93),
    (663, 89),
    (851, 86),
    (1058, 83),
    (1284, 81),
    (1529, 78),
    (1793, 76),
    (2076, 74),
    (2378, 72),
    (2699, 71),
    (3039, 69),
    (3399, 68),
    (3778, 66),
    (4177, 65),
    (4596, 64),
    (5036, 62),
    (5497, 61),
    (5979, 60),
    (6483, 59),
    (7009, 58),
    (7558, 57),
    (8130, 56),
    (8726, 55),
    (9346, 54),
    (9991, 53),
    (10661, 52),
    (11358, 52),
    (12082, 51),
    (12834, 50),
    (13614, 49),
    (14424, 48),
    (15265, 48),
    (16137, 47),
    (17042, 46),
    (17981, 45),
    (18955, 45),
    (19965, 44),
    (21013, 43),
    (22101, 43),
    (23230, 42),
    (24402, 41),
    (25618, 41),
    (26881, 40),
    (28193, 39),
    (29557, 39),
    (30975, 38),
    (32450, 38),
    (33986, 37),
    (35586, 36),
    (37253, 36),
    (38992, 35),
    (40808, 35),
    (42707, 34),
    (44694, 33),
    (46776, 33),
    (48961, 32),
    (51258, 32),
    (53677, 31),
    (56230, 30),
    (58932, 30),
    (61799, 29),
    (64851, 28),
    (68113, 28),
    (71617, 27),
    (75401, 26),
    (79517, 26),
    (84035, 25),
    (89053, 24),
];

fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(HighSpeed { ai: 0 })
}

/// The controller of one connection.
#[derive(Clone, Copy, Debug)]
pub struct HighSpeed {
    /// The place in the table.
    ai: usize,
}

impl CongestionControl for HighSpeed {
    //= linux v6.12 net/ipv4/tcp_highspeed.c hstcp_init
    fn init(&mut self, w: &mut Window) {
        self.ai = 0;
        w.cwnd_clamp = w.cwnd_clamp.min(u32::MAX / 128);
    }
    fn ssthresh(&mut self, w: &Window) -> u32 {
        (w.cwnd - (w.cwnd.wrapping_mul(AIMD[self.ai].1) >> 8)).max(2)
    }
    //= linux v6.12 net/ipv4/tcp_highspeed.c hstcp_cong_avoid
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        if !w.cwnd_limited {
            return;
        }
        if w.in_slow_start() {
            w.slow_start(acked);
            return;
        }
        if w.cwnd > AIMD[self.ai].0 {
            while w.cwnd > AIMD[self.ai].0 && self.ai < AIMD.len() - 1 {
                self.ai += 1;
            }
        } else {
            while self.ai > 0 && w.cwnd <= AIMD[self.ai - 1].0 {
                self.ai -= 1;
            }
        }
        if w.cwnd < w.cwnd_clamp {
            // By the ACK, however many segments it is for.
            w.cwnd_cnt += self.ai as u32 + 1;
            if w.cwnd_cnt >= w.cwnd {
                w.cwnd_cnt -= w.cwnd;
                w.cwnd += 1;
            }
        }
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![("ai", self.ai as u64)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Parameters;

    fn at(cwnd: u32) -> (Box<dyn CongestionControl>, Window) {
        let mut w = Window::new(250, false);
        let mut c = Parameters::default().build(&ALGORITHM, Kernel::V6_12);
        c.init(&mut w);
        (w.cwnd, w.ssthresh, w.cwnd_limited) = (cwnd, 2, true);
        c.cong_avoid(&mut w, 1);
        (c, w)
    }

    #[test]
    fn a_loss_takes_what_the_table_says() {
        for (cwnd, left) in
            [(30, 15), (100, 100 - ((100 * 112) >> 8)), (1000, 1000 - ((1000 * 83) >> 8)), (3, 2)]
        {
            let (mut c, mut w) = at(cwnd);
            w.cwnd = cwnd;
            assert_eq!(c.ssthresh(&w), left, "{cwnd}");
        }
        let (mut c, mut w) = at(200_000);
        w.cwnd = 200_000;
        assert_eq!((c.info()[0].1, c.ssthresh(&w)), (71, 200_000 - ((200_000 * 24) >> 8)));
    }

    #[test]
    fn a_round_trip_adds_what_the_table_says() {
        // 500 segments stand in the sixth row: an ACK counts six, whatever it acknowledges.
        let (mut c, mut w) = at(500);
        assert_eq!((w.cwnd, w.cwnd_cnt), (500, 6));
        for _ in 0..83 {
            c.cong_avoid(&mut w, 2);
        }
        assert_eq!((w.cwnd, w.cwnd_cnt), (501, 84 * 6 - 500));
        // It comes down the table as well.
        w.cwnd = 38;
        c.cong_avoid(&mut w, 1);
        assert_eq!(c.info()[0].1, 0);
    }
}
