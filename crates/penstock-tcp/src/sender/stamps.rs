//! Timestamps (RFC 7323): what is echoed, and what the peer's echo shows.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_replace_ts_recent`, include/net/tcp.h `tcp_paws_check`; v2.6.35 likewise.
//! Differs: none known.

/// A timestamp older than this is no ground for refusing a segment: 24 days, microseconds.
const PAWS_24DAYS_US: u64 = 24 * 86_400 * 1_000_000;
const PAWS_WRAP_US: u64 = i32::MAX as u64 / 1_000_000 * 1_000_000;

/// The connection's timestamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    // Parameters
    /// Whether they were agreed on.
    ok: bool,
    /// After so long without a timestamp any is believed, microseconds.
    wrap_us: u64,
    // Variables
    recent: u32,
    recent_us: u64,
    /// What the segment at hand echoes.
    ecr: Option<u32>,
}

impl Stamps {
    //= linux v6.12 include/net/tcp.h TCP_PAWS_WRAP; v2.6.35 TCP_PAWS_24DAYS
    pub fn new(ok: bool, today: bool) -> Stamps {
        let wrap_us = if today { PAWS_WRAP_US } else { PAWS_24DAYS_US };
        Stamps { ok, wrap_us, recent: 0, recent_us: 0, ecr: None }
    }
    /// Whether they are used.
    #[inline]
    pub fn ok(&self) -> bool {
        self.ok
    }
    /// What our segments echo.
    #[inline]
    pub fn recent(&self) -> u32 {
        self.recent
    }
    /// What the segment at hand echoes.
    #[inline]
    pub fn ecr(&self) -> Option<u32> {
        self.ecr
    }
    /// Whether what it echoes lies before `when`.
    pub fn ecr_before(&self, when: u32) -> bool {
        self.ecr.is_some_and(|ecr| ecr != 0 && (ecr.wrapping_sub(when) as i32) < 0)
    }

    /// What the peer's SYN says.
    pub fn read_syn(&mut self, wanted: bool, stamps: Option<(u32, u32)>, now_us: u64) {
        self.ok = wanted && stamps.is_some();
        if let Some((val, ecr)) = stamps.filter(|_| self.ok) {
            (self.recent, self.recent_us, self.ecr) = (val, now_us, Some(ecr));
        }
    }
    /// Notes what a segment echoes.
    #[inline]
    pub fn echoed(&mut self, ecr: Option<u32>) {
        self.ecr = ecr;
    }
    /// Whether `val` is too old to be believed; one tick back is let pass (TCP_PAWS_WINDOW).
    #[inline]
    pub fn is_old(&self, val: u32, now_us: u64) -> bool {
        (self.recent.wrapping_sub(val) as i32) > 1
            && now_us - self.recent_us < self.wrap_us
            && self.recent != 0
    }
    /// Notes the timestamp to echo.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_replace_ts_recent; RFC 7323 section 4.3
    #[inline]
    pub fn replace(&mut self, val: u32, now_us: u64) {
        if (val.wrapping_sub(self.recent) as i32) >= 0 || now_us - self.recent_us >= self.wrap_us {
            (self.recent, self.recent_us) = (val, now_us);
        }
    }
}
