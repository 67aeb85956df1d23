//! `net.netfilter.nf_conntrack_*`: how long connections are kept, how many there may be.

use super::{Timeouts, Tracking};

/// The keys there are.
pub(crate) const KEYS: [&str; 24] = [
    "net.netfilter.nf_conntrack_acct",
    "net.netfilter.nf_conntrack_buckets",
    "net.netfilter.nf_conntrack_count",
    "net.netfilter.nf_conntrack_generic_timeout",
    "net.netfilter.nf_conntrack_icmp_timeout",
    "net.netfilter.nf_conntrack_icmpv6_timeout",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_tcp_be_liberal",
    "net.netfilter.nf_conntrack_tcp_loose",
    "net.netfilter.nf_conntrack_tcp_max_retrans",
    "net.netfilter.nf_conntrack_tcp_timeout_close",
    "net.netfilter.nf_conntrack_tcp_timeout_close_wait",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "net.netfilter.nf_conntrack_tcp_timeout_fin_wait",
    "net.netfilter.nf_conntrack_tcp_timeout_last_ack",
    "net.netfilter.nf_conntrack_tcp_timeout_max_retrans",
    "net.netfilter.nf_conntrack_tcp_timeout_syn_recv",
    "net.netfilter.nf_conntrack_tcp_timeout_syn_sent",
    "net.netfilter.nf_conntrack_tcp_timeout_time_wait",
    "net.netfilter.nf_conntrack_tcp_timeout_unacknowledged",
    "net.netfilter.nf_conntrack_udp_timeout",
    "net.netfilter.nf_conntrack_udp_timeout_stream",
    "net.nf_conntrack_max",
    "net.netfilter.nf_conntrack_checksum",
];

/// States of TCP by the end of their key.
const STATES: [(&str, usize); 8] = [
    ("syn_sent", 1),
    ("syn_recv", 2),
    ("established", 3),
    ("fin_wait", 4),
    ("close_wait", 5),
    ("last_ack", 6),
    ("time_wait", 7),
    ("close", 8),
];

impl Timeouts {
    /// One of them by the end of its key, ticks.
    fn time(&mut self, name: &str) -> Option<&mut i64> {
        Some(match name {
            "generic_timeout" => &mut self.generic,
            "icmp_timeout" | "icmpv6_timeout" => &mut self.icmp,
            "udp_timeout" => &mut self.udp[0],
            "udp_timeout_stream" => &mut self.udp[1],
            "tcp_timeout_max_retrans" => &mut self.tcp_retrans,
            "tcp_timeout_unacknowledged" => &mut self.tcp_unack,
            _ => {
                let state = name.strip_prefix("tcp_timeout_")?;
                let at = STATES.iter().find(|s| s.0 == state)?.1;
                &mut self.tcp[at]
            }
        })
    }
}

impl Tracking {
    fn name(key: &str) -> Option<&str> {
        let known = KEYS.contains(&key);
        let name =
            key.strip_prefix("net.netfilter.nf_conntrack_").or(key.strip_prefix("net.nf_conntrack_"))?;
        known.then_some(name)
    }
    /// A setting's value; `None` for a key that is not of connections.
    pub(crate) fn setting(&self, key: &str) -> Option<i64> {
        let t = &self.timeouts;
        Some(match Self::name(key)? {
            "acct" => i64::from(self.shows_counts),
            "buckets" => self.max as i64,
            "checksum" => 1,
            "count" => self.connections.len() as i64,
            "max" => self.max as i64,
            "tcp_be_liberal" => i64::from(t.tcp_be_liberal),
            "tcp_loose" => i64::from(t.tcp_loose),
            "tcp_max_retrans" => i64::from(t.tcp_max_retrans),
            name => *t.clone().time(name)? / t.hz,
        })
    }
    /// Sets one; `None` where the value is not taken.
    pub(crate) fn set_setting(&mut self, key: &str, value: i64) -> Option<()> {
        let hz = self.hz();
        let flag = || matches!(value, 0 | 1).then_some(value == 1);
        match Self::name(key)? {
            "acct" => self.shows_counts = flag()?,
            "count" => return None,
            "buckets" | "checksum" => {}
            "max" => self.max = usize::try_from(value).ok()?,
            "tcp_be_liberal" => self.timeouts.tcp_be_liberal = flag()?,
            "tcp_loose" => self.timeouts.tcp_loose = flag()?,
            "tcp_max_retrans" => self.timeouts.tcp_max_retrans = u8::try_from(value).ok()?,
            name => *self.timeouts.time(name)? = i64::from(u32::try_from(value).ok()?) * hz,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_kept_in_seconds() {
        let mut t = Tracking::default();
        assert_eq!(t.setting("net.netfilter.nf_conntrack_tcp_timeout_established"), Some(432_000));
        for key in KEYS {
            assert!(t.setting(key).is_some(), "{key}");
        }
        t.set_setting("net.netfilter.nf_conntrack_udp_timeout", 7).unwrap();
        assert_eq!(t.setting("net.netfilter.nf_conntrack_udp_timeout"), Some(7));
        assert_eq!(t.set_setting("net.netfilter.nf_conntrack_acct", 2), None);
        assert_eq!(t.setting("net.netfilter.nf_conntrack_tcp_timeout_listen"), None);
    }
}
