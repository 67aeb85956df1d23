//! `ip tcp_metrics`, and the table behind it.
//!
//! Follows: linux v6.12 `net/ipv4/tcp_metrics.c` `tcp_get_metrics`, `tcpm_new`, `tcp_metrics_nl_cmd_get`, `tcp_metrics_nl_cmd_del`.

use super::{Done, errno};
use crate::Host;
use penstock_lang::ip::{self, Form, TcpMetricsRequest, TcpMetricsVerb};
use penstock_model::tcp_metrics::TcpMetrics;
use penstock_model::{KernelError, Time};
use std::collections::btree_map::Entry;
use std::net::IpAddr;

impl Host {
    /// The clock that rows are stamped by.
    pub fn tcp_jiffies(&self, now: Time) -> u64 {
        (now.as_ns().max(0) / (1_000_000_000 / i64::from(self.hz))) as u64
    }
    /// Whether what connections learn is kept (`tcp_no_metrics_save` 0).
    pub fn keeps_metrics(&self) -> bool {
        self.sysctl.kept.get("net.ipv4.tcp_no_metrics_save").is_none_or(|v| v == "0")
    }
    /// Whether their slow-start thresholds are (`tcp_no_ssthresh_metrics_save` 0).
    pub fn keeps_ssthresh(&self) -> bool {
        self.sysctl.kept.get("net.ipv4.tcp_no_ssthresh_metrics_save").is_some_and(|v| v == "0")
    }
    /// What is kept of connections from `src` to `dst` of sockets bound to `bound` (0: to no device); with `create` there is a row after it, which begins as the route has it.
    pub fn tcp_metrics(
        &mut self,
        bound: u32,
        src: IpAddr,
        dst: IpAddr,
        create: bool,
        now: Time,
    ) -> Option<&mut TcpMetrics> {
        if !create && self.tcp_metrics.is_empty() {
            return None;
        }
        let (jiffies, hz) = (self.tcp_jiffies(now), self.hz);
        let anew = |route| TcpMetrics::of_route(&route, jiffies);
        let stale = self.tcp_metrics.get(&(dst, src)).is_some_and(|row| row.is_stale(jiffies, hz));
        let route = (create || stale).then(|| self.tcp_route_by(bound, dst).kept);
        match self.tcp_metrics.entry((dst, src)) {
            Entry::Occupied(row) => {
                let row = row.into_mut();
                if stale {
                    *row = anew(route?);
                }
                Some(row)
            }
            Entry::Vacant(place) if create => Some(place.insert(anew(route?))),
            Entry::Vacant(_) => None,
        }
    }
    pub(super) fn tcp_metrics_command(&mut self, asked: &TcpMetricsRequest, form: Form, now: Time) -> Done {
        let meant = self.tcp_metrics.keys().filter(|(dst, src)| asked.means(*dst, *src)).count();
        let all = asked.dst.is_none_or(|net| net.len == 0) && asked.src.is_none();
        match asked.verb {
            _ if asked.one().is_some() && meant == 0 => Err(errno(KernelError::ESRCH)),
            TcpMetricsVerb::Show => {
                let clock = (self.tcp_jiffies(now), self.hz);
                Ok(ip::tcp_metrics(&self.tcp_metrics, asked, clock, form, self.kernel))
            }
            TcpMetricsVerb::Flush if asked.one().is_none() && !(all && form.family == ip::Family::Any) => {
                if meant == 0 {
                    return Err(super::says(0, "Nothing to flush."));
                }
                self.tcp_metrics.retain(|(dst, src), _| !asked.means(*dst, *src));
                Ok(super::rounds(meant, form))
            }
            TcpMetricsVerb::Delete | TcpMetricsVerb::Flush => {
                self.tcp_metrics.retain(|(dst, src), _| !asked.means(*dst, *src));
                Ok(String::new())
            }
        }
    }
}
