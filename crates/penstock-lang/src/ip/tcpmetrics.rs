//! `ip tcp_metrics`: what is kept of TCP connections for those to come.
//!
//! Follows: iproute2 6.1.0 `ip/tcp_metrics.c` `do_tcp_metrics`, `tcpm_do_cmd`, `process_msg`, `print_tcp_metrics`.
//! Differs: rows stand in the order of their addresses; Linux has them in that of a hash which begins elsewhere at each start.

use super::words::{Family, Parsed, Words, matches};
use super::{Command, Form, Net};
use crate::show::Out;
use penstock_model::tcp_metrics::{Metric, TcpMetrics};
use penstock_model::time::general;
use penstock_model::{Kernel, TcpMetricsTable};
use std::net::IpAddr;

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpMetricsVerb {
    /// `show`.
    Show,
    /// `delete`.
    Delete,
    /// `flush`.
    Flush,
}

/// `ip tcp_metrics show|delete|flush [[address] PREFIX] [source PREFIX]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpMetricsRequest {
    /// What is to be done.
    pub verb: TcpMetricsVerb,
    /// Of these destinations; `None`: of all.
    pub dst: Option<Net>,
    /// From these addresses.
    pub src: Option<Net>,
    /// `-4`, `-6`: of one family.
    pub family: Family,
}

impl TcpMetricsRequest {
    /// Whether a row is meant.
    pub fn means(&self, dst: IpAddr, src: IpAddr) -> bool {
        let of_family = match self.family {
            Family::Inet => dst.is_ipv4(),
            Family::Inet6 => dst.is_ipv6(),
            _ => true,
        };
        let within = |net: Option<Net>, addr: IpAddr| {
            net.is_none_or(|net| net.addr.is_ipv4() == addr.is_ipv4() && net.contains(addr))
        };
        of_family && within(self.dst, dst) && within(self.src, src)
    }
    /// The one destination that is meant, if it is one.
    pub fn one(&self) -> Option<IpAddr> {
        one(self.dst?)
    }
}

fn one(net: Net) -> Option<IpAddr> {
    (net.len == if net.addr.is_ipv4() { 32 } else { 128 }).then_some(net.addr)
}

const USAGE: &str = "Usage:\tip tcp_metrics/tcpmetrics { COMMAND | help }\n\
    \tip tcp_metrics { show | flush } SELECTOR\n\tip tcp_metrics delete [ address ] ADDRESS\nSELECTOR := [ [ address ] PREFIX ]\n";

impl Words<'_> {
    pub(super) fn tcp_metrics(&mut self, form: Form) -> Parsed<Command> {
        let verb = match self.next() {
            None => TcpMetricsVerb::Show,
            Some(verb) => match &verb {
                v if matches(v, "list") || matches(v, "lst") || matches(v, "show") => TcpMetricsVerb::Show,
                v if matches(v, "delete") || matches(v, "remove") => TcpMetricsVerb::Delete,
                v if matches(v, "flush") => TcpMetricsVerb::Flush,
                v if matches(v, "help") => return self.usage(USAGE),
                _ => return self.unknown_command(&verb, "tcp_metrics"),
            },
        };
        let mut asked = TcpMetricsRequest { verb, dst: None, src: None, family: form.family };
        while let Some(mut word) = self.next() {
            let mut name = "address".to_owned();
            let source = word == "src" || word == "source";
            if source || word == "addr" || word == "address" {
                name = std::mem::replace(&mut word, self.value()?);
            }
            if matches(&word, "help") {
                return self.usage(USAGE);
            }
            let before = if source { asked.src } else { asked.dst };
            if before.is_some() {
                return self.duplicate(&name, &word);
            }
            let net = self.prefix(&word, form.family)?;
            if one(net).is_none() && (source || verb == TcpMetricsVerb::Delete) {
                let said = format!("Error: a specific IP address is expected rather than \"{word}\"");
                return self.fail(1, said, "e.g. 10.0.0.1");
            }
            *(if source { &mut asked.src } else { &mut asked.dst }) = Some(net);
            // The loop goes on by one word too many.
            self.next();
        }
        if verb == TcpMetricsVerb::Delete && asked.dst.is_none() {
            let said = "Error: argument \"address\" is required";
            return self.fail(255, said, "ip tcp_metrics delete ADDRESS; ip tcp_metrics flush for all");
        }
        Ok(Command::TcpMetrics(Box::new(asked), form))
    }
}

/// `ip tcp_metrics show`. `jiffies` is now, of which there are `hz` a second; of a single row that was asked for there is no JSON.
pub fn tcp_metrics(
    rows: &TcpMetricsTable,
    asked: &TcpMetricsRequest,
    (jiffies, hz): (u64, u32),
    form: Form,
    kernel: Kernel,
) -> String {
    let single = asked.one().is_some();
    let form = Form { json: form.json && !single, ..form };
    let mut out = Out::new(&form.out(), kernel, true);
    let meant = rows.iter().filter(|((dst, src), _)| asked.means(*dst, *src));
    for (&(dst, src), row) in meant.take(if single { 1 } else { usize::MAX }) {
        out.open_object(None);
        show_row(dst, src, row, (jiffies, hz), &mut out);
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}

fn show_row(dst: IpAddr, src: IpAddr, row: &TcpMetrics, (jiffies, hz): (u64, u32), out: &mut Out) {
    out.string("dst", &dst.to_string(), format_args!("{dst}"));
    let age = (row.age(jiffies) * 1_000 / u64::from(hz)) as f64 / 1_000.0;
    out.num("age", general(age, 6), format_args!(" age {age:.3}sec"));
    for (metric, name) in
        [(Metric::Ssthresh, "ssthresh"), (Metric::Cwnd, "cwnd"), (Metric::Reordering, "reordering")]
    {
        let value = row.get(metric);
        if value > 0 {
            out.num(name, value, format_args!(" {name} {value}"));
        }
    }
    for (metric, name, shift) in [(Metric::Rtt, "rtt", 3), (Metric::Rttvar, "rttvar", 2)] {
        let us = row.get(metric) >> shift;
        if us > 0 {
            out.num(name, general(f64::from(us) / 1e6, 6), format_args!(" {name} {us}us"));
        }
    }
    let fast = &row.fast;
    if fast.mss > 0 {
        out.num("fo_mss", fast.mss, format_args!(" fo_mss {}", fast.mss));
    }
    if fast.syn_loss > 0 {
        let ms = jiffies.saturating_sub(fast.last_syn_loss) * 1_000 / u64::from(hz);
        out.num("fo_syn_drops", fast.syn_loss, format_args!(" fo_syn_drops {}", fast.syn_loss));
        let age = ms as f64 / 1_000.0;
        out.num("fo_syn_drops_age", general(age, 6), format_args!("/{age:.3}sec ago"));
    }
    if !fast.cookie().is_empty() {
        let cookie: String = fast.cookie().iter().map(|b| format!("{b:02x}")).collect();
        out.string("fo_cookie", &cookie, format_args!(" fo_cookie {cookie}"));
    }
    out.string("source", &src.to_string(), format_args!(" source {src}"));
}
