//! Service curves: two straight lines, of slope `m1` for a time `d` and of slope `m2` from then on.
//!
//! Follows: linux v6.12 net/sched/sch_hfsc.c from `seg_x2y` to `rtsc_min`; 2.6.35 reckons in the same way.

use penstock_model::Options;
use penstock_model::psched::TICK_NS;

/// `PSCHED_TICKS_PER_SEC`.
const TICKS_PER_SEC: u64 = 1_000_000_000 / TICK_NS;
/// `SM_SHIFT`: bits behind the point of bytes per tick.
const SM_SHIFT: u32 = 24;
/// `ISM_SHIFT`: bits behind the point of ticks per byte.
const ISM_SHIFT: u32 = 14;
/// `HT_INFINITY`: what a slope of 0 needs for a byte.
const NEVER: u64 = u64::MAX;

/// A curve as it was set (`struct internal_sc`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Curve {
    /// Bytes per tick in the first part, 24 bits behind the point.
    pub(super) sm1: u64,
    /// Ticks per byte in it, 14 bits behind the point.
    ism1: u64,
    /// Ticks that the first part lasts.
    dx: u64,
    /// Bytes it brings.
    dy: u64,
    /// The same of the second part, which does not end.
    pub(super) sm2: u64,
    ism2: u64,
}

/// `seg_x2y`: what a slope brings in so many ticks.
#[inline]
fn bytes_in(ticks: u64, sm: u64) -> u64 {
    let (whole, rest) = (ticks >> SM_SHIFT, ticks & ((1 << SM_SHIFT) - 1));
    whole.wrapping_mul(sm).wrapping_add(rest.wrapping_mul(sm) >> SM_SHIFT)
}

/// `seg_y2x`: how many ticks a slope needs for so many bytes.
#[inline]
fn ticks_for(bytes: u64, ism: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    if ism == NEVER {
        return NEVER;
    }
    let (whole, rest) = (bytes >> ISM_SHIFT, bytes & ((1 << ISM_SHIFT) - 1));
    whole.wrapping_mul(ism).wrapping_add(rest.wrapping_mul(ism) >> ISM_SHIFT)
}

impl Curve {
    /// `sc2isc` of one of tc's: `m1` and `m2` in bytes per second, `d` in µs. `None` where both slopes are 0.
    pub(super) fn parse(options: Option<&Options>) -> Option<Curve> {
        let options = options?;
        let number = |name: &str| u64::from(options.u32(name).unwrap_or(0));
        let slope = |m: u64| (m << SM_SHIFT).div_ceil(TICKS_PER_SEC);
        let inverse = |m: u64| if m == 0 { NEVER } else { (TICKS_PER_SEC << ISM_SHIFT).div_ceil(m) };
        let (m1, m2) = (number("m1"), number("m2"));
        let dx = (number("d") * TICKS_PER_SEC).div_ceil(1_000_000);
        let (sm1, sm2) = (slope(m1), slope(m2));
        let (ism1, ism2) = (inverse(m1), inverse(m2));
        (m1 != 0 || m2 != 0).then(|| Curve { sm1, ism1, dx, dy: bytes_in(dx, sm1), sm2, ism2 })
    }
    /// `hfsc_dump_sc`.
    pub(super) fn dump(&self) -> Options {
        let rate = |sm: u64| (sm.wrapping_mul(TICKS_PER_SEC) >> SM_SHIFT) as u32;
        let d = (self.dx.wrapping_mul(1_000_000) / TICKS_PER_SEC) as u32;
        Options::new().with("m1", rate(self.sm1)).with("d", d).with("m2", rate(self.sm2))
    }
    /// Whether the second part is at least as steep as the first.
    #[inline]
    pub(super) fn is_convex(&self) -> bool {
        self.sm1 <= self.sm2
    }
}

/// A curve that runs from a point (`struct runtime_sc`): `y` bytes at tick `x`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Running {
    curve: Curve,
    pub(super) x: u64,
    y: u64,
    dx: u64,
    dy: u64,
}

impl Running {
    /// `rtsc_init`.
    pub(super) fn start(curve: &Curve, x: u64, y: u64) -> Running {
        Running { curve: *curve, x, y, dx: curve.dx, dy: curve.dy }
    }
    /// The same without its first part, as a convex curve decides who is eligible.
    pub(super) fn eligible(mut self, curve: &Curve) -> Running {
        if curve.is_convex() {
            (self.dx, self.dy) = (0, 0);
        }
        self
    }
    /// `rtsc_y2x`: the tick at which it has brought `y` bytes.
    #[inline]
    pub(super) fn tick_of(&self, y: u64) -> u64 {
        if y < self.y {
            self.x
        } else if y <= self.y.wrapping_add(self.dy) {
            let first = if self.dy == 0 { self.dx } else { ticks_for(y - self.y, self.curve.ism1) };
            self.x.wrapping_add(first)
        } else {
            let second = ticks_for(y.wrapping_sub(self.y).wrapping_sub(self.dy), self.curve.ism2);
            self.x.wrapping_add(self.dx).wrapping_add(second)
        }
    }
    /// `rtsc_x2y`: the bytes it has brought at a tick.
    #[inline]
    fn bytes_at(&self, x: u64) -> u64 {
        if x <= self.x {
            self.y
        } else if x <= self.x.wrapping_add(self.dx) {
            self.y.wrapping_add(bytes_in(x - self.x, self.curve.sm1))
        } else {
            let second = bytes_in(x.wrapping_sub(self.x).wrapping_sub(self.dx), self.curve.sm2);
            self.y.wrapping_add(self.dy).wrapping_add(second)
        }
    }
    /// `rtsc_min`: the lesser of itself and of `curve` from (x, y) on.
    pub(super) fn lessen(&mut self, curve: &Curve, x: u64, y: u64) {
        let y1 = self.bytes_at(x);
        if curve.is_convex() {
            if y1 >= y {
                (self.x, self.y) = (x, y);
            }
            return;
        }
        if y1 <= y {
            return;
        }
        let y2 = self.bytes_at(x.wrapping_add(curve.dx));
        if y2 >= y.wrapping_add(curve.dy) {
            (self.x, self.y, self.dx, self.dy) = (x, y, curve.dx, curve.dy);
            return;
        }
        // They cross: where both have brought as much.
        let mut dx = ((y1 - y) << SM_SHIFT) / (curve.sm1 - curve.sm2);
        let end = self.x.wrapping_add(self.dx);
        if end > x {
            dx = dx.wrapping_add(end - x);
        }
        (self.x, self.y, self.dx, self.dy) = (x, y, dx, bytes_in(dx, curve.sm1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(m1: u32, d: u32, m2: u32) -> Curve {
        Curve::parse(Some(&Options::new().with("m1", m1).with("d", d).with("m2", m2))).unwrap()
    }

    #[test]
    fn a_straight_line_brings_its_rate() {
        // 125,000 bytes/s: 1,000 bytes in 8 ms, which are 125,000 ticks of 64 ns.
        let line = Running::start(&curve(0, 0, 125_000), 1_000, 0);
        assert_eq!((line.tick_of(0), line.tick_of(1000)), (1_000, 126_000));
        assert_eq!((line.bytes_at(126_000), line.bytes_at(999)), (1000, 0));
    }

    #[test]
    fn the_first_part_ends_after_d() {
        // 1,250,000 bytes/s for 10 ms (156,250 ticks), 125,000 from then on.
        let c = curve(1_250_000, 10_000, 125_000);
        let steep = Running::start(&c, 0, 0);
        assert_eq!(steep.tick_of(12_500), 156_250);
        assert_eq!(steep.tick_of(12_500 + 1000), 156_250 + 125_000);
        // Convex: who is eligible is decided by the second part alone.
        let late = curve(0, 10_000, 125_000);
        assert_eq!(Running::start(&late, 0, 0).tick_of(1000), 156_250 + 125_000);
        assert_eq!(Running::start(&late, 0, 0).eligible(&late).tick_of(1000), 125_000);
        assert_eq!(steep.eligible(&c), steep);
    }

    #[test]
    fn the_lesser_of_two_curves() {
        let c = curve(1_250_000, 10_000, 125_000);
        // Long idle: the whole first part is there again.
        let mut run = Running::start(&c, 0, 0);
        run.lessen(&c, 10_000_000, 12_500);
        assert_eq!((run.x, run.tick_of(25_000)), (10_000_000, 10_156_250));
        // Ahead of the old curve: nothing changes.
        let before = run;
        run.lessen(&c, 10_000_001, 500_000);
        assert_eq!(run, before);
        // A short rest gives back a part of it: 1 ms is 125 bytes of the second line, which the first crosses soon.
        let mut run = Running::start(&c, 0, 0);
        run.lessen(&c, 156_250 + 15_625, 12_500);
        assert!(run.dy > 125 && run.dy < 12_500, "{run:?}");
    }

    #[test]
    fn a_slope_of_nothing_never_gets_there() {
        let c = curve(125_000, 8_000, 0);
        let run = Running::start(&c, 0, 0);
        assert_eq!(run.tick_of(1000), 125_000);
        // The kernel's sum goes round.
        assert_eq!(run.tick_of(1001), 125_000 - 1);
    }
}
