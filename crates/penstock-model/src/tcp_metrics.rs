//! What a machine keeps of a TCP connection for the next one between the same addresses: the rows of `ip tcp_metrics`.
//!
//! Follows: linux v6.12 net/ipv4/tcp_metrics.c `struct tcp_metrics_block`, `tcpm_suck_dst`, `tcpm_check_stamp`.
//! Differs: none known.

use std::net::IpAddr;

/// Seconds after which what was kept counts no more.
const TIMEOUT_S: u64 = 3_600;

/// Which value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// Smoothed round trip, microseconds times 8.
    Rtt,
    /// Its deviation, microseconds times 4.
    Rttvar,
    /// Slow-start threshold, segments.
    Ssthresh,
    /// Congestion window, segments.
    Cwnd,
    /// Degree of reordering, segments.
    Reordering,
}

/// One row: what is known of the path from one address to another. 0 stands for "not known".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpMetrics {
    values: [u32; 5],
    /// A bit for each value that the route has locked.
    locked: u8,
    /// When it was written last, jiffies.
    stamp: u64,
    /// What is kept of TCP Fast Open.
    pub fast: FastOpenMetrics,
}

/// What is kept of TCP Fast Open with a server (`struct tcp_fastopen_metrics`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FastOpenMetrics {
    /// Its segment size; 0: not known.
    pub mss: u16,
    /// How many SYNs with data were lost one after another.
    pub syn_loss: u16,
    /// When the last was, jiffies.
    pub last_syn_loss: u64,
    /// Whether the option's form of the experiment is to be tried (1), or has been (2).
    pub try_exp: u8,
    /// The cookie came in that form.
    pub exp: bool,
    len: u8,
    cookie: [u8; 16],
}

impl FastOpenMetrics {
    /// The server's cookie; empty: there is none.
    pub fn cookie(&self) -> &[u8] {
        &self.cookie[..usize::from(self.len)]
    }
    /// Keeps a cookie, of 16 bytes at most.
    pub fn set_cookie(&mut self, cookie: &[u8], exp: bool) {
        let len = cookie.len().min(16);
        self.cookie = [0; 16];
        self.cookie[..len].copy_from_slice(&cookie[..len]);
        (self.len, self.exp) = (len as u8, exp);
    }
}

impl TcpMetrics {
    /// A row as it begins: with what the route says, round trips in ms times 8 and 4.
    //= linux v6.12 net/ipv4/tcp_metrics.c tcpm_suck_dst
    pub fn of_route(route: &RouteMetrics, jiffies: u64) -> TcpMetrics {
        let mut values = route.values;
        values[Metric::Rtt as usize] = values[Metric::Rtt as usize].wrapping_mul(1_000);
        values[Metric::Rttvar as usize] = values[Metric::Rttvar as usize].wrapping_mul(1_000);
        TcpMetrics { values, locked: route.locked, stamp: jiffies, fast: FastOpenMetrics::default() }
    }
    /// One of its values.
    pub fn get(&self, metric: Metric) -> u32 {
        self.values[metric as usize]
    }
    /// Sets one of its values; not one that is locked.
    pub fn learn(&mut self, metric: Metric, value: u32) {
        if !self.is_locked(metric) {
            self.values[metric as usize] = value;
        }
    }
    /// Whether the route has locked it.
    pub fn is_locked(&self, metric: Metric) -> bool {
        self.locked & 1 << metric as u8 != 0
    }
    /// It was written now.
    pub fn touch(&mut self, jiffies: u64) {
        self.stamp = jiffies;
    }
    /// How long ago that was, jiffies.
    pub fn age(&self, jiffies: u64) -> u64 {
        jiffies.saturating_sub(self.stamp)
    }
    /// Whether it counts no more.
    //= linux v6.12 net/ipv4/tcp_metrics.c tcpm_check_stamp
    pub fn is_stale(&self, jiffies: u64, hz: u32) -> bool {
        self.age(jiffies) > TIMEOUT_S * u64::from(hz)
    }
}

/// What a route says of the connections that go by it, as the kernel keeps it (`RTAX_RTT`, `RTAX_RTTVAR`, `RTAX_SSTHRESH`, `RTAX_CWND`, `RTAX_REORDERING`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RouteMetrics {
    values: [u32; 5],
    locked: u8,
}

impl RouteMetrics {
    /// Notes a value, and whether it is locked.
    pub fn set(&mut self, metric: Metric, value: u32, locked: bool) {
        self.values[metric as usize] = value;
        self.locked |= u8::from(locked) << metric as u8;
    }
}

/// The rows of a machine, by destination and source.
pub type TcpMetricsTable = std::collections::BTreeMap<(IpAddr, IpAddr), TcpMetrics>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_route_locks_is_not_learned() {
        let mut route = RouteMetrics::default();
        route.set(Metric::Rtt, 90 * 8, true);
        route.set(Metric::Ssthresh, 20, false);
        let mut row = TcpMetrics::of_route(&route, 100);
        assert_eq!((row.get(Metric::Rtt) >> 3, row.get(Metric::Ssthresh)), (90_000, 20));
        row.learn(Metric::Rtt, 8);
        row.learn(Metric::Ssthresh, 7);
        assert_eq!((row.get(Metric::Rtt) >> 3, row.get(Metric::Ssthresh)), (90_000, 7));
    }

    #[test]
    fn an_hour_makes_it_stale() {
        let row = TcpMetrics::of_route(&RouteMetrics::default(), 100);
        assert!(!row.is_stale(100 + 3_600 * 250, 250) && row.is_stale(101 + 3_600 * 250, 250));
    }
}
