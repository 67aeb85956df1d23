//! `cdg`: backs off by chance, the likelier the faster the round trip grows.
//!
//! Follows: linux v6.12 net/ipv4/tcp_cdg.c; Hayes & Armitage 2011.
//! Differs: the dice are the connection's own.

use super::path::Dice;
use super::reno::reno_cong_avoid;
use super::{AckSample, Algorithm, Build, CongestionControl, Parameter, Window};
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "cdg",
    about: "backs off by chance as the round trip grows (Hayes & Armitage)",
    from: Kernel::V6_12,
    parameters: &[
        // The square root of a half.
        Parameter::new("backoff_beta", 724),
        Parameter::new("backoff_factor", 42),
        Parameter::new("hystart_detect", 3),
        Parameter::new("use_ineff", 5),
        Parameter::new("use_shadow", 1),
        Parameter::new("use_tolerance", 0),
        Parameter::read_only("window", 8),
    ],
    build,
};

const HYSTART_ACK_TRAIN: u32 = 1;
const HYSTART_DELAY: u32 = 2;

fn build(b: &Build<'_>) -> Box<dyn CongestionControl> {
    let of = |name| b.parameters.of(&ALGORITHM, name) as u32;
    let window = of("window").clamp(1, 256).next_power_of_two() as usize;
    Box::new(Cdg {
        backoff_beta: of("backoff_beta"),
        backoff_factor: of("backoff_factor"),
        hystart_detect: of("hystart_detect"),
        use_ineff: of("use_ineff"),
        use_shadow: of("use_shadow") != 0,
        use_tolerance: of("use_tolerance") != 0,
        gradients: if window > 1 { vec![MinMax::default(); window] } else { Vec::new() },
        v: Variables::default(),
        dice: Dice::default(),
    })
}

/// The least and the longest round trip, microseconds, or their changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct MinMax {
    min: i32,
    max: i32,
}

impl MinMax {
    fn is_known(self) -> bool {
        self != MinMax::default()
    }
}

/// What the round trips tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Unknown,
    NonFull,
    Full,
    Backoff,
}

/// The controller of one connection.
#[derive(Debug)]
pub struct Cdg {
    // Parameters
    /// What a backoff leaves, 1024ths.
    backoff_beta: u32,
    /// How likely it is.
    backoff_factor: u32,
    hystart_detect: u32,
    /// Backoffs without effect after which there are no more.
    use_ineff: u32,
    use_shadow: bool,
    use_tolerance: bool,
    // Variables
    /// The last changes, as many as `window`.
    gradients: Vec<MinMax>,
    v: Variables,
    dice: Dice,
}

/// What an idle connection forgets.
#[derive(Clone, Copy, Debug, Default)]
struct Variables {
    rtt: MinMax,
    rtt_prev: MinMax,
    /// The sum of `gradients`.
    gsum: MinMax,
    gfilled: bool,
    tail: usize,
    state: State,
    delack: u8,
    /// The end of the round trip at hand.
    rtt_seq: u64,
    /// The window as losses alone would have it.
    shadow_wnd: u32,
    backoff_cnt: u16,
    sample_cnt: u16,
    delay_min: i32,
    last_ack: u32,
    round_start: u32,
}

/// e to the minus `ux` millionths, of 2^32 - 1.
//= linux v6.12 net/ipv4/tcp_cdg.c nexp_u32
fn nexp(ux: u32) -> u32 {
    // e^-x × 65536 - 1, for x = 0.000256 × 2^n.
    const V: [u32; 16] = [
        65_518, 65_501, 65_468, 65_401, 65_267, 65_001, 64_470, 63_422, 61_378, 57_484, 50_423, 38_795,
        22_965, 8_047, 987, 14,
    ];
    let mut bits = ux >> 8;
    if bits > 0xffff {
        return 0;
    }
    let mut res = u32::MAX - (ux & 0xff) * (u32::MAX / 1_000_000);
    for v in V {
        if bits == 0 {
            break;
        }
        let y = if bits & 1 == 1 { v + 1 } else { 65_536 };
        res = ((u64::from(res) * u64::from(y)) >> 16) as u32;
        bits >>= 1;
    }
    res
}
/// The least of both, where neither is 0.
fn min_not_zero(a: i32, b: i32) -> i32 {
    match (a, b) {
        (0, x) | (x, 0) => x,
        (a, b) => a.min(b),
    }
}
/// A 64th, rounded to the nearest.
fn closest_64th(x: i32) -> i32 {
    if x > 0 { x.wrapping_add(32) / 64 } else { x.wrapping_sub(32) / 64 }
}
/// Whether the time `a` is before `b`, modulo 2^32.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Cdg {
    //= linux v6.12 net/ipv4/tcp_cdg.c tcp_cdg_hystart_update
    fn hystart_update(&mut self, w: &mut Window) {
        let v = &mut self.v;
        v.delay_min = min_not_zero(v.delay_min, v.rtt.min);
        if v.delay_min == 0 {
            return;
        }
        if self.hystart_detect & HYSTART_ACK_TRAIN != 0 {
            let now = w.now_us as u32;
            if v.last_ack == 0 || !w.is_cwnd_limited() {
                (v.last_ack, v.round_start) = (now, now);
            } else if before(now, v.last_ack.wrapping_add(3_000)) {
                let base_owd = (v.delay_min as u32 / 2).max(125);
                v.last_ack = now;
                if before(v.round_start.wrapping_add(base_owd), now) {
                    w.hystart.by_train(w.cwnd);
                    w.ssthresh = w.cwnd;
                    return;
                }
            }
        }
        if self.hystart_detect & HYSTART_DELAY != 0 {
            if v.sample_cnt < 8 {
                v.sample_cnt += 1;
            } else {
                let delay = v.delay_min as u32;
                let thresh = delay.wrapping_add(delay / 8).max(125) as i32;
                if v.rtt.min > thresh {
                    w.hystart.by_delay(w.cwnd);
                    w.ssthresh = w.cwnd;
                }
            }
        }
    }
    /// How the round trip changes.
    //= linux v6.12 net/ipv4/tcp_cdg.c tcp_cdg_grad
    fn grad(&mut self) -> i32 {
        let window = self.gradients.len();
        let v = &mut self.v;
        let mut gmin = v.rtt.min.wrapping_sub(v.rtt_prev.min);
        let mut gmax = v.rtt.max.wrapping_sub(v.rtt_prev.max);
        if window > 0 {
            let old = std::mem::replace(&mut self.gradients[v.tail], MinMax { min: gmin, max: gmax });
            v.gsum.min = v.gsum.min.wrapping_add(gmin.wrapping_sub(old.min));
            v.gsum.max = v.gsum.max.wrapping_add(gmax.wrapping_sub(old.max));
            v.tail = (v.tail + 1) & (window - 1);
            (gmin, gmax) = (v.gsum.min, v.gsum.max);
        }
        let mut grad = if gmin > 0 { gmin } else { gmax };
        if !v.gfilled {
            if v.tail == 0 {
                v.gfilled = true;
            } else {
                grad = grad.wrapping_mul(window as i32) / v.tail as i32;
            }
        }
        // The backoff was of effect.
        if gmin <= -32 || gmax <= -32 {
            v.backoff_cnt = 0;
        }
        if self.use_tolerance {
            let (gmin, gmax) = (closest_64th(gmin), closest_64th(gmax));
            if gmin > 0 && gmax <= 0 {
                v.state = State::Full;
            } else if gmin > 0 && gmax > 0 || gmax < 0 {
                v.state = State::NonFull;
            }
        }
        grad
    }
    //= linux v6.12 net/ipv4/tcp_cdg.c tcp_cdg_backoff
    fn backs_off(&mut self, w: &mut Window, grad: u32) -> bool {
        if self.dice.draw(1 << 32) as u32 <= nexp(grad.wrapping_mul(self.backoff_factor)) {
            return false;
        }
        let v = &mut self.v;
        if self.use_ineff > 0 {
            v.backoff_cnt = v.backoff_cnt.wrapping_add(1);
            if u32::from(v.backoff_cnt) > self.use_ineff {
                return false;
            }
        }
        v.shadow_wnd = v.shadow_wnd.max(w.cwnd);
        v.state = State::Backoff;
        w.enters_cwr = true;
        true
    }
}

impl CongestionControl for Cdg {
    //= linux v6.12 net/ipv4/tcp_cdg.c tcp_cdg_init
    fn init(&mut self, w: &mut Window) {
        self.v = Variables { rtt_seq: w.snd_nxt, shadow_wnd: w.cwnd, ..Variables::default() };
        self.dice = Dice::new(w.seed);
    }
    //= linux v6.12 net/ipv4/tcp_cdg.c tcp_cdg_ssthresh
    fn ssthresh(&mut self, w: &Window) -> u32 {
        let v = &mut self.v;
        if v.state == State::Backoff {
            return (w.cwnd.wrapping_mul(self.backoff_beta.min(1_024)) >> 10).max(2);
        }
        if v.state == State::NonFull && self.use_tolerance {
            return w.cwnd;
        }
        v.shadow_wnd = (v.shadow_wnd >> 1).min(w.cwnd);
        let half = (w.cwnd >> 1).max(2);
        if self.use_shadow { half.max(v.shadow_wnd) } else { half }
    }
    //= linux v6.12 net/ipv4/tcp_cdg.c tcp_cdg_cong_avoid
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        if w.in_slow_start() && self.hystart_detect != 0 {
            self.hystart_update(w);
        }
        if w.snd_una > self.v.rtt_seq && self.v.rtt.is_known() {
            let grad = if self.v.rtt_prev.is_known() { self.grad() } else { 0 };
            let v = &mut self.v;
            v.rtt_seq = w.snd_nxt;
            v.rtt_prev = std::mem::take(&mut v.rtt);
            (v.last_ack, v.sample_cnt) = (0, 0);
            if grad > 0 && self.backs_off(w, grad as u32) {
                return;
            }
        }
        if !w.is_cwnd_limited() {
            self.v.shadow_wnd = self.v.shadow_wnd.min(w.cwnd);
            return;
        }
        let prior = w.cwnd;
        // Slow start may have ended above.
        w.cwnd_limited = true;
        reno_cong_avoid(w, acked);
        let shadow = self.v.shadow_wnd;
        self.v.shadow_wnd = shadow.max(shadow.wrapping_add(w.cwnd.wrapping_sub(prior)));
    }
    //= linux v6.12 net/ipv4/tcp_cdg.c tcp_cdg_acked
    fn pkts_acked(&mut self, _: &mut Window, sample: &AckSample) {
        let Some(rtt) = sample.rtt_us.map(|us| us as i32).filter(|&us| us > 0) else { return };
        let v = &mut self.v;
        // Delayed ACKs count for less (Hayes 2010).
        if sample.sacked_out == 0 {
            if sample.pkts_acked == 1 && v.delack > 0 {
                v.rtt.min = v.rtt.min.min(rtt);
                v.delack -= 1;
                return;
            } else if sample.pkts_acked > 1 && v.delack < 5 {
                v.delack += 1;
            }
        }
        v.rtt.min = min_not_zero(v.rtt.min, rtt);
        v.rtt.max = v.rtt.max.max(rtt);
    }
    //= linux v6.12 net/ipv4/tcp_cdg.c tcp_cdg_cwnd_event
    fn on_cwnd_restart(&mut self, w: &mut Window) {
        self.gradients.fill(MinMax::default());
        self.v = Variables { rtt_seq: w.snd_nxt, shadow_wnd: w.cwnd, ..Variables::default() };
    }
    fn on_complete_cwr(&mut self, w: &mut Window) {
        let v = &mut self.v;
        (v.state, v.rtt_seq) = (State::Unknown, w.snd_nxt);
        v.rtt_prev = std::mem::take(&mut v.rtt);
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("shadow_wnd", self.v.shadow_wnd.into()),
            ("backoff_cnt", self.v.backoff_cnt.into()),
            ("delay_min_us", self.v.delay_min as u64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_e() {
        assert_eq!(nexp(0), u32::MAX);
        // Linear below 256: 4294 less for each millionth.
        assert_eq!(nexp(100), u32::MAX - 429_400);
        assert_eq!(nexp(1 << 24), 0);
        for ux in [1_000u32, 10_000, 100_000, 693_147, 2_302_585] {
            let (is, want) = (f64::from(nexp(ux)) / f64::from(u32::MAX), (-f64::from(ux) / 1e6).exp());
            assert!((is - want).abs() < 1e-4, "{ux}: {is} {want}");
        }
    }

    /// A controller with the dice loaded: a round trip that grows never backs it off (0), or always.
    fn begun(backoff_factor: i64) -> (Cdg, Window) {
        let p = [("backoff_factor", backoff_factor)];
        let parameters = crate::cc::Parameters::default().with(&ALGORITHM, &p);
        let of = |name| parameters.of(&ALGORITHM, name) as u32;
        let mut c = Cdg {
            backoff_beta: of("backoff_beta"),
            backoff_factor: of("backoff_factor"),
            hystart_detect: 0,
            use_ineff: of("use_ineff"),
            use_shadow: true,
            use_tolerance: false,
            gradients: vec![MinMax::default(); 8],
            v: Variables::default(),
            dice: Dice::default(),
        };
        let mut w = Window::new(250, false);
        (w.cwnd, w.ssthresh, w.is_cwnd_limited) = (100, 2, true);
        c.init(&mut w);
        (c, w)
    }
    fn round(c: &mut Cdg, w: &mut Window, rtt_us: u32) {
        c.pkts_acked(w, &AckSample { pkts_acked: 1, rtt_us: Some(rtt_us), ..AckSample::default() });
        (w.snd_una, w.snd_nxt) = (w.snd_nxt + 1, w.snd_nxt + 100);
        c.cong_avoid(w, 1);
    }

    #[test]
    fn a_round_trip_that_grows_backs_off() {
        let (mut c, mut w) = begun(1 << 24);
        round(&mut c, &mut w, 10_000);
        round(&mut c, &mut w, 10_000);
        assert!(!w.enters_cwr);
        // One gradient of 1 us in two of eight: 1 × 8 / 2 = 4, and 4 × 2^24 is far beyond the dice.
        round(&mut c, &mut w, 10_001);
        assert!(std::mem::take(&mut w.enters_cwr));
        assert_eq!(c.ssthresh(&w), (100 * 724) >> 10);
        c.on_complete_cwr(&mut w);
        // A loss: the shadow window's half, which is more than that of a window that has backed off.
        w.cwnd = 70;
        assert_eq!((c.v.shadow_wnd, c.ssthresh(&w)), (100, 50));
        let (mut c, mut w) = begun(0);
        for rtt in 10_000..10_020 {
            round(&mut c, &mut w, rtt);
        }
        assert!(!w.enters_cwr);
    }

    #[test]
    fn backoffs_without_effect_end() {
        let (mut c, mut w) = begun(1 << 24);
        let mut backoffs = 0;
        for n in 0..20 {
            round(&mut c, &mut w, 10_000 + n);
            backoffs += u32::from(std::mem::take(&mut w.enters_cwr));
        }
        assert_eq!(backoffs, 5);
    }

    #[test]
    fn delayed_acks_are_not_the_longest() {
        let (mut c, mut w) = begun(0);
        let ack = |pkts_acked, us| AckSample { pkts_acked, rtt_us: Some(us), ..AckSample::default() };
        c.pkts_acked(&mut w, &ack(2, 1_000));
        c.pkts_acked(&mut w, &ack(1, 9_000));
        assert_eq!((c.v.rtt, c.v.delack), (MinMax { min: 1_000, max: 1_000 }, 0));
        c.pkts_acked(&mut w, &ack(1, 9_000));
        assert_eq!(c.v.rtt, MinMax { min: 1_000, max: 9_000 });
    }
}
