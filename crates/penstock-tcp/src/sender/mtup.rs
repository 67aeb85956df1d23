//! Probes of the path's MTU: now and then a segment that is larger than the others; when it arrives, the others grow.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_mtup_init`, `tcp_mtu_check_reprobe`, `tcp_sync_mss`, net/ipv4/tcp_input.c
//! `tcp_mtup_probe_success`, `tcp_mtup_probe_failed`; RFC 4821.
//! Differs: sizes are those of segments, without the headers of the path. Only `tcp_mtu_probing` 2: black holes do not begin it.

use super::Sender;
use crate::clock::Clock;
use crate::mib::Tx;

/// `tcp_probe_threshold`, bytes.
const THRESHOLD: u32 = 8;
/// `tcp_probe_interval`, seconds.
const INTERVAL_S: u64 = 600;
/// `tcp_min_snd_mss`.
const LEAST: u32 = 48;

/// The search.
#[derive(Debug)]
pub(crate) struct MtuSearch {
    // Parameters
    /// What the peer has announced (`mss_clamp`).
    clamp: u32,
    /// Headers of IP and TCP, bytes; options of TCP in each segment.
    headers: u32,
    options: u32,
    // Variables
    /// MTUs between which the path's lies (`search_low`, `search_high`).
    low: u32,
    high: u32,
    /// The segment that the route lets through, without options.
    path: u32,
    /// A probe is out: its MTU, and its sequence numbers.
    probe: Option<(u32, u64, u64)>,
    /// When the search began, jiffies.
    since: u64,
}

impl MtuSearch {
    /// A search between `tcp_base_mss` and what the peer takes; `headers`: IP's and TCP's, `options`: of each segment.
    pub fn new(base: u32, clamp: u32, path: u32, headers: u32, options: u32, clock: &Clock) -> MtuSearch {
        let (low, high) = (base + headers + options, clamp + headers);
        MtuSearch { clamp, headers, options, low, high, path, probe: None, since: clock.jiffies }
    }
    /// What a segment carries in packets of this MTU.
    fn mss(&self, mtu: u32) -> u32 {
        mtu.saturating_sub(self.headers).min(self.clamp).max(LEAST).saturating_sub(self.options).max(1)
    }
    /// The route lets segments of another size through.
    pub fn set_path(&mut self, mss: u32) {
        self.path = mss;
    }
    /// The size of the next probe, if one is due.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_mtu_probe, tcp_mtu_check_reprobe
    pub fn next(&mut self, mss: u32, clock: &Clock) -> Option<u32> {
        if self.probe.is_some() {
            return None;
        }
        let size = self.mss(self.high.saturating_add(self.low) >> 1);
        if size > self.mss(self.high) || self.high < self.low + THRESHOLD {
            if clock.jiffies - self.since >= INTERVAL_S * u64::from(clock.hz()) {
                (self.high, self.low) = (self.clamp + self.headers, mss + self.headers + self.options);
                self.since = clock.jiffies;
            }
            return None;
        }
        Some(size)
    }
    /// A probe of this size has gone.
    pub fn sent(&mut self, start: u64, len: u32) {
        self.probe = Some((len + self.headers + self.options, start, start + u64::from(len)));
    }
    /// Whether a probe is out that begins there.
    fn begins(&self, una: u64) -> bool {
        self.probe.is_some_and(|(_, start, _)| start == una)
    }
}

impl Sender {
    /// An acknowledgement may cover the probe: then segments grow, and the window counts fewer of them.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_mtup_probe_success
    pub fn mtu_probe_acked(&mut self) {
        let (una, mss) = (self.space.una(), self.space.mss());
        let Some(search) = &mut self.mtu_search else { return };
        let Some((mtu, _, _)) = search.probe.filter(|p| p.2 <= una) else { return };
        let cwnd = u64::from(self.cc.cwnd()) * u64::from(mss + search.headers + search.options)
            / u64::from(mtu.max(1));
        (search.low, search.probe) = (mtu, None);
        self.mib.one(Tx::MtupSuccess);
        let new = search.path.saturating_sub(search.options).min(search.mss(mtu)).max(1);
        self.cc.put_cwnd(cwnd.clamp(1, u64::from(u32::MAX)) as u32);
        self.cc.set_count(0);
        self.cc.touch(&self.clock);
        self.cc.set_ssthresh(self.cc.current_ssthresh());
        self.space.set_mss(new);
    }
    /// Whether what is lost is the probe: then the search goes on below, and the window does not shrink for it.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_mtup_probe_failed, tcp_simple_retransmit
    pub fn mtu_probe_failed(&mut self) -> bool {
        let (una, mss) = (self.space.una(), self.space.mss());
        let Some(search) = self.mtu_search.as_mut().filter(|s| s.begins(una)) else { return false };
        if let Some((mtu, _, _)) = search.probe.take() {
            search.high = mtu - 1;
        }
        self.mib.one(Tx::MtupFail);
        self.cc.put_cwnd(self.cc.cwnd() + 1);
        for i in 0..self.q.packets_out() as usize {
            if self.q.at(i).payload() > mss {
                self.q.mark_lost(i);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Stack;
    use penstock_model::{Kernel, Time};

    #[test]
    fn the_search_halves_what_is_left() {
        let clock = Clock::new(Stack::Linux(Kernel::V6_12), 1000, 1, Time::ZERO);
        let mut search = MtuSearch::new(512, 1460, 1460, 40, 0, &clock);
        assert_eq!(search.next(512, &clock), Some(986));
        search.sent(1, 986);
        assert_eq!(search.next(512, &clock), None, "one at a time");
        (search.probe, search.high) = (None, 1025);
        assert_eq!(search.next(512, &clock), Some(748));
        search.low = 1020;
        assert_eq!(search.next(512, &clock), None, "it is near enough");
    }
}
