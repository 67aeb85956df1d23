//! What comes back of a probe, and how it is printed.
//!
//! Follows: traceroute 2.1.2 `recv_reply`, `parse_icmp_res`, `parse_local_res`, `print_probe`.

use super::{Method, One, Traceroute};
use crate::app::{Cx, name_of_address};
use std::net::IpAddr;

impl Traceroute {
    pub(super) fn find(&self, key: u32) -> Option<usize> {
        self.probes.iter().position(|p| p.key == Some(key))
    }
    /// An answer of the destination's.
    pub(super) fn answered(&mut self, n: usize, (from, ttl): (IpAddr, u8), at: i64, cx: &mut Cx<'_>) {
        let one = &mut self.probes[n];
        (one.last, one.from, one.heard, one.ttl) = (true, Some(from), Some(at), ttl);
        self.done(n, cx);
    }
    /// An ICMP error about a probe.
    pub(super) fn told(
        &mut self,
        n: usize,
        (from, ttl): (IpAddr, u8),
        (ty, code, info): (u8, u8, u32),
        at: i64,
        cx: &mut Cx<'_>,
    ) {
        let one = &mut self.probes[n];
        (one.from, one.heard, one.ttl) = (Some(from), Some(at), ttl);
        if let Some(said) = word_of(self.addr.is_ipv4(), ty, code, info) {
            one.last = true;
            if !said.is_empty() {
                one.said = said;
            }
        }
        if !self.shorter(n, info, cx) {
            self.done(n, cx);
        }
    }
    /// A probe is longer than the first device takes.
    pub(super) fn too_long(&mut self, n: usize, mtu: u32, cx: &mut Cx<'_>) {
        // A raw socket does not say which: the first is meant.
        let n = match self.method {
            Method::Default | Method::Udp => n,
            Method::Icmp | Method::Tcp => (self.first_hop as usize - 1) * self.probes_per_hop as usize,
        };
        if self.probes[n].done {
            return;
        }
        let now = Traceroute::now(cx);
        let one = &mut self.probes[n];
        (one.heard, one.last, one.said) = (Some(now), true, format!("!F-{mtu}"));
        if !self.shorter(n, mtu, cx) {
            self.done(n, cx);
        }
    }
    /// `--mtu`: sends probe `n` again, as long as the path takes.
    fn shorter(&mut self, n: usize, mtu: u32, cx: &mut Cx<'_>) -> bool {
        let lengths = self.header_len..self.header_len + self.data_len;
        if !self.mtudisc || !lengths.contains(&mtu) {
            return false;
        }
        self.data_len = mtu - self.header_len;
        self.done(n, cx);
        self.probes[n] = One { said: format!("F={mtu}"), ..One::default() };
        true
    }

    pub(super) fn print_probe(&self, n: usize, cx: &mut Cx<'_>) {
        let per_hop = self.probes_per_hop as usize;
        let (one, hop) = (&self.probes[n], self.hop_of(n));
        let mut text = String::new();
        if n.is_multiple_of(per_hop) {
            text.push_str(&format!("\n{:2} ", hop + 1));
        }
        match one.from {
            None => text.push_str(" *"),
            Some(from) => {
                // Those without an answer are passed over.
                let before = self.probes[n - n % per_hop..n].iter().rev().find(|p| p.from.is_some());
                let same = |p: &One| p.from == one.from && (!self.back || p.ttl == one.ttl);
                if !before.is_some_and(same) {
                    if self.numeric {
                        text.push_str(&format!(" {from}"));
                    } else {
                        let name = name_of_address(from, cx.net).unwrap_or_else(|| from.to_string());
                        text.push_str(&format!(" {name} ({from})"));
                    }
                    let hops = hops_of(one.ttl);
                    if self.back && one.ttl != 0 && hops != hop + 1 {
                        text.push_str(&format!(" '-{hops}'"));
                    }
                }
            }
        }
        if let Some(heard) = one.heard {
            let us = heard - one.sent.unwrap_or(0);
            text.push_str(&format!("  {}.{:03} ms", us / 1000, us % 1000));
        }
        if !one.said.is_empty() {
            text.push_str(&format!(" {}", one.said));
        }
        cx.print(&text);
    }
}

/// How far away an answer with this TTL was sent, if its sender began with 64, 128 or 255.
pub(super) fn hops_of(ttl: u8) -> usize {
    let begins = match ttl {
        0..=64 => 65,
        65..=128 => 129,
        _ => 256,
    };
    begins - usize::from(ttl)
}

/// `parse_icmp_res`: what is printed of an error that ends the way; `None`: a router's, as it is meant.
fn word_of(four: bool, ty: u8, code: u8, info: u32) -> Option<String> {
    let text = match (four, ty, code) {
        (true, 11, 0) | (false, 3, 0) => return None,
        (true, 3, 0 | 6 | 8 | 11) | (false, 1, 0) => "!N",
        (true, 3, 1 | 7 | 12) | (false, 1, 2 | 3) => "!H",
        (true, 3, 9 | 10 | 13) | (false, 1, 1) => "!X",
        (true, 3, 3) | (false, 1, 4) => "",
        (true, 3, 2) => "!P",
        (true, 3, 4) | (false, 2, _) => return Some(format!("!F-{info}")),
        (true, 3, 5) => "!S",
        (true, 3, 14) => "!V",
        (true, 3, 15) => "!C",
        (true, 3, _) | (false, 1, _) => return Some(format!("!<{code}>")),
        _ => return Some(format!("!<{ty}-{code}>")),
    };
    Some(text.to_owned())
}
