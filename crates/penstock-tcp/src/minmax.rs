//! The least and the greatest value lately, each by three samples.
//!
//! Follows: linux v6.12 lib/win_minmax.c (Nichols' windowed filter).
//! Differs: none known.

/// The best value seen lately, the best since that was seen, and the best since then, with their times.
type Samples = [(u64, u64); 3];

/// Takes `value` at time `now`; values older than `window` are forgotten. `beats`: whether the first is as good as the second.
//= linux v6.12 lib/win_minmax.c minmax_running_min, minmax_running_max, minmax_subwin_update
#[inline]
fn running(s: &mut Samples, now: u64, window: u64, value: u64, beats: impl Fn(u64, u64) -> bool) {
    let sample = (now, value);
    if beats(value, s[0].1) || now - s[2].0 > window {
        *s = [sample; 3];
        return;
    }
    if beats(value, s[1].1) {
        s[2] = sample;
        s[1] = sample;
    } else if beats(value, s[2].1) {
        s[2] = sample;
    }
    let age = now - s[0].0;
    if age > window {
        *s = [s[1], s[2], sample];
        if now - s[0].0 > window {
            *s = [s[1], s[2], sample];
        }
    } else if s[1].0 == s[0].0 && age > window / 4 {
        s[2] = sample;
        s[1] = sample;
    } else if s[2].0 == s[1].0 && age > window / 2 {
        s[2] = sample;
    }
}

/// The least of the values seen within a window of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowedMin(Samples);

impl WindowedMin {
    pub fn new() -> WindowedMin {
        WindowedMin([(0, u64::from(u32::MAX)); 3])
    }
    /// The least value; `u32::MAX` before the first.
    #[inline]
    pub fn value(&self) -> u32 {
        self.0[0].1 as u32
    }
    /// Takes `value` at time `now`; values older than `window` are forgotten.
    #[inline]
    pub fn update(&mut self, now: u64, window: u64, value: u32) {
        running(&mut self.0, now, window, u64::from(value), |new, old| new <= old);
    }
}

/// The greatest of the values seen within a window of rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowedMax(Samples);

impl WindowedMax {
    /// The greatest value; 0 before the first.
    #[inline]
    pub fn value(&self) -> u64 {
        self.0[0].1
    }
    /// Takes `value` in round `now`; values older than `window` rounds are forgotten.
    pub fn update(&mut self, window: u32, now: u32, value: u64) {
        running(&mut self.0, u64::from(now), u64::from(window), value, |new, old| new >= old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_rtt_is_forgotten_after_its_window() {
        let mut m = WindowedMin::new();
        m.update(0, 100, 50);
        m.update(10, 100, 70);
        assert_eq!(m.value(), 50);
        for t in (20..140).step_by(10) {
            m.update(t, 100, 60);
        }
        assert_eq!(m.value(), 60);
    }

    #[test]
    fn the_greatest_rate_is_remembered_ten_rounds() {
        let mut m = WindowedMax::default();
        m.update(10, 1, 100);
        for t in 2..=11 {
            m.update(10, t, 50);
            assert_eq!(m.value(), 100, "round {t}");
        }
        m.update(10, 12, 50);
        assert_eq!(m.value(), 50);
        m.update(10, 13, 70);
        assert_eq!(m.value(), 70);
    }
}
