//! Meters: they colour packets by how they keep to a profile.
//!
//! Follows: RFC 2697 (a single rate, three colours), RFC 2698 (two rates, three colours), RFC 2859 (time sliding window).
//! Differs: Linux has none of them; a traffic conditioner of an experiment's host uses them. A token here is 10^-9 byte, so that a rate in bytes
//! a second fills a bucket exactly; the window's average is kept in 10^-6 byte a second.

use penstock_model::{Rate, Rng, Time};

/// What a meter says of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Color {
    /// Within the profile.
    Green,
    /// Beyond it, within its excess.
    Yellow,
    /// Beyond that.
    Red,
}

impl Color {
    /// All, best first.
    pub const ALL: [Color; 3] = [Color::Green, Color::Yellow, Color::Red];
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Color::Green => "green",
            Color::Yellow => "yellow",
            Color::Red => "red",
        }
    }
}

/// Tokens of one byte.
const BYTE: u128 = 1_000_000_000;

/// A token bucket, full at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bucket {
    size: u128,
    tokens: u128,
}

impl Bucket {
    fn new(bytes: u64) -> Bucket {
        let size = u128::from(bytes) * BYTE;
        Bucket { size, tokens: size }
    }
    /// What does not fit is left over.
    fn fill(&mut self, tokens: u128) -> u128 {
        let taken = tokens.min(self.size - self.tokens);
        self.tokens += taken;
        tokens - taken
    }
    fn has(&self, bytes: u32) -> bool {
        self.tokens >= u128::from(bytes) * BYTE
    }
    fn take(&mut self, bytes: u32) {
        self.tokens -= u128::from(bytes) * BYTE;
    }
}

/// Tokens that a rate gives in a time.
fn tokens(rate: Rate, since: Time, now: Time) -> u128 {
    u128::from(rate.bytes_per_s()) * (now.as_ns() - since.as_ns()).max(0) as u128
}

/// The meter of RFC 2697.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SrTcm {
    // Parameters
    cir: Rate,
    // Variables
    committed: Bucket,
    excess: Bucket,
    filled: Time,
}

impl SrTcm {
    /// Committed information rate; committed and excess burst size, bytes, of which one must be larger than 0 and at least as large as the
    /// largest packet (RFC 2697 section 2).
    pub fn new(cir: Rate, cbs: u64, ebs: u64) -> SrTcm {
        SrTcm { cir, committed: Bucket::new(cbs), excess: Bucket::new(ebs), filled: Time::ZERO }
    }
    //= RFC 2697 section 3
    fn color(&mut self, bytes: u32, was: Color, now: Time) -> Color {
        let left = self.committed.fill(tokens(self.cir, self.filled, now));
        self.excess.fill(left);
        self.filled = now;
        if was == Color::Green && self.committed.has(bytes) {
            self.committed.take(bytes);
            Color::Green
        } else if was != Color::Red && self.excess.has(bytes) {
            self.excess.take(bytes);
            Color::Yellow
        } else {
            Color::Red
        }
    }
}

/// The meter of RFC 2698.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrTcm {
    // Parameters
    cir: Rate,
    pir: Rate,
    // Variables
    committed: Bucket,
    peak: Bucket,
    filled: Time,
}

impl TrTcm {
    /// Committed rate and its burst size, peak rate and its burst size; bytes. The peak rate is not the lesser one (RFC 2698 section 2).
    pub fn new(cir: Rate, cbs: u64, pir: Rate, pbs: u64) -> TrTcm {
        TrTcm { cir, pir, committed: Bucket::new(cbs), peak: Bucket::new(pbs), filled: Time::ZERO }
    }
    //= RFC 2698 section 3
    fn color(&mut self, bytes: u32, was: Color, now: Time) -> Color {
        self.committed.fill(tokens(self.cir, self.filled, now));
        self.peak.fill(tokens(self.pir, self.filled, now));
        self.filled = now;
        if was == Color::Red || !self.peak.has(bytes) {
            return Color::Red;
        }
        self.peak.take(bytes);
        if was == Color::Yellow || !self.committed.has(bytes) {
            return Color::Yellow;
        }
        self.committed.take(bytes);
        Color::Green
    }
}

/// The meter of RFC 2859: an average over a sliding window, and chance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tsw {
    // Parameters
    /// CTR, bytes a second.
    committed: u64,
    /// PTR, bytes a second.
    peak: u64,
    window_ns: u64,
    // Variables
    /// `avg-rate`, 10^-6 byte a second.
    average: u128,
    /// `t-front`.
    front: Time,
}

/// Parts of a byte in the average.
const PARTS: u128 = 1_000_000;

impl Tsw {
    /// Committed and peak target rate, and the length of the window, ns, more than 0. The average begins at the committed rate.
    pub fn new(ctr: Rate, ptr: Rate, window_ns: u64) -> Tsw {
        let committed = ctr.bytes_per_s();
        let average = u128::from(committed) * PARTS;
        Tsw { committed, peak: ptr.bytes_per_s(), window_ns, average, front: Time::ZERO }
    }
    /// The average, bytes a second.
    pub fn average(&self) -> u64 {
        (self.average / PARTS) as u64
    }
    //= RFC 2859 section 2.1, 2.2
    fn color(&mut self, bytes: u32, now: Time, rng: &mut Rng) -> Color {
        let window = u128::from(self.window_ns);
        let in_window = self.average * window + u128::from(bytes) * PARTS * BYTE;
        let elapsed = (now.as_ns() - self.front.as_ns()).max(0) as u128;
        self.average = in_window / (elapsed + window);
        self.front = now;
        let (committed, peak) = (u128::from(self.committed) * PARTS, u128::from(self.peak) * PARTS);
        if self.average <= committed {
            return Color::Green;
        }
        // A random part of the average: below what is beyond a rate with just that chance.
        let thrown = (self.average * u128::from(rng.next_u32())) >> 32;
        if self.average <= peak {
            return if thrown < self.average - committed { Color::Yellow } else { Color::Green };
        }
        if thrown < self.average - peak {
            Color::Red
        } else if thrown < self.average - committed {
            Color::Yellow
        } else {
            Color::Green
        }
    }
}

/// One of the meters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Meter {
    /// RFC 2697.
    SrTcm(SrTcm),
    /// RFC 2698.
    TrTcm(TrTcm),
    /// RFC 2859.
    Tsw(Tsw),
}

impl Meter {
    /// Colours a packet of `bytes` (of the IP packet) that was coloured `was` before; [`Color::Green`] where the meter is blind to
    /// colours. RFC 2859's is always blind.
    pub fn color(&mut self, bytes: u32, was: Color, now: Time, rng: &mut Rng) -> Color {
        match self {
            Meter::SrTcm(meter) => meter.color(bytes, was, now),
            Meter::TrTcm(meter) => meter.color(bytes, was, now),
            Meter::Tsw(meter) => meter.color(bytes, now, rng),
        }
    }
}

/// What becomes of the packets of one colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// It stays as it is.
    Keep,
    /// Its code point is this one now.
    Dscp(u8),
    /// It is dropped.
    Drop,
}

/// A traffic conditioner (RFC 2475 section 2.3.3): which packets, a meter, and what becomes of each colour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conditioner {
    /// The code points it looks at; none: every IP packet.
    pub dscp: Vec<u8>,
    /// Whether the meter goes by the colour a packet comes with: that whose [`Mark::Dscp`] it has.
    pub aware: bool,
    /// The meter.
    pub meter: Meter,
    /// Of green, yellow and red packets.
    pub marks: [Mark; 3],
}

impl Conditioner {
    /// What becomes of an IP packet with this code point and length; `None` for one it does not look at.
    pub fn judge(&mut self, dscp: u8, bytes: u32, now: Time, rng: &mut Rng) -> Option<(Color, Mark)> {
        if !self.dscp.is_empty() && !self.dscp.contains(&dscp) {
            return None;
        }
        let known = || Color::ALL.into_iter().find(|&c| self.marks[c as usize] == Mark::Dscp(dscp));
        let was = if self.aware { known().unwrap_or(Color::Green) } else { Color::Green };
        let color = self.meter.color(bytes, was, now, rng);
        Some((color, self.marks[color as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bytes: u64) -> Rate {
        Rate::from_bytes_per_s(bytes)
    }
    fn ms(ms: i64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }
    fn colors(meter: &mut Meter, at: Time, was: Color, sizes: &[u32]) -> String {
        let mut rng = Rng::named(1, "meter");
        sizes.iter().map(|&n| &meter.color(n, was, at, &mut rng).name()[..1]).collect()
    }

    #[test]
    fn one_rate_fills_the_second_bucket_when_the_first_is_full() {
        // 1000 bytes a second; 1500 committed, 3000 in excess.
        let mut m = Meter::SrTcm(SrTcm::new(rate(1000), 1500, 3000));
        assert_eq!(colors(&mut m, ms(0), Color::Green, &[1500, 1500, 1500, 1]), "gyyr");
        // After 1.5 s the committed bucket is full, the other still empty; half a second on that has 500.
        assert_eq!(colors(&mut m, ms(2000), Color::Green, &[1500, 501, 500, 1]), "gryr");
        // A yellow packet takes nothing of the committed bucket, a red one nothing at all.
        assert_eq!(colors(&mut m, ms(4000), Color::Yellow, &[501, 500]), "ry");
        assert_eq!(colors(&mut m, ms(4000), Color::Red, &[1]), "r");
        assert_eq!(colors(&mut m, ms(4000), Color::Green, &[1500]), "g");
    }

    #[test]
    fn two_rates_judge_the_peak_first() {
        let mut m = Meter::TrTcm(TrTcm::new(rate(1000), 1000, rate(2000), 2000));
        // A red packet takes nothing, a yellow one only from the peak.
        assert_eq!(colors(&mut m, ms(0), Color::Green, &[1000, 500, 501, 500, 1]), "gyryr");
        assert_eq!(colors(&mut m, ms(250), Color::Green, &[250, 250, 1]), "gyr");
        assert_eq!(colors(&mut m, ms(1250), Color::Yellow, &[1000]), "y");
        assert_eq!(colors(&mut m, ms(1250), Color::Green, &[1000, 1]), "gr");
    }

    #[test]
    fn a_window_marks_the_share_beyond_the_rates() {
        // 100 bytes each ms, 100 kB/s, of which 40 are committed and 70 the peak.
        let mut m = Tsw::new(rate(40_000), rate(70_000), 100_000_000);
        let mut rng = Rng::named(3, "tsw");
        let mut seen = [0u32; 3];
        for n in 1..=20_000 {
            let color = m.color(100, ms(n), &mut rng);
            if n > 10_000 {
                seen[color as usize] += 1;
            }
        }
        assert!((99_000..=101_000).contains(&m.average()), "{}", m.average());
        // 40, 30 and 30 of 100, within four standard errors.
        for (n, share) in seen.into_iter().zip([4000, 3000, 3000]) {
            assert!(n.abs_diff(share) < 200, "{seen:?}");
        }
        // Below the committed rate nothing is marked.
        assert!((1..500).all(|n| m.color(10, ms(20_000 + 10 * n), &mut rng) == Color::Green || n < 100));
    }

    #[test]
    fn a_conditioner_goes_by_the_code_point_it_gave() {
        let marks = [Mark::Dscp(10), Mark::Dscp(12), Mark::Drop];
        let meter = Meter::SrTcm(SrTcm::new(rate(1000), 1000, 1000));
        let mut c = Conditioner { dscp: vec![10, 12], aware: true, meter, marks };
        let mut rng = Rng::named(1, "meter");
        let mut judge = |dscp| c.judge(dscp, 1000, ms(0), &mut rng);
        assert_eq!(judge(0), None);
        assert_eq!(judge(12), Some((Color::Yellow, Mark::Dscp(12))));
        assert_eq!(judge(10), Some((Color::Green, Mark::Dscp(10))));
        assert_eq!(judge(10), Some((Color::Red, Mark::Drop)));
    }
}
