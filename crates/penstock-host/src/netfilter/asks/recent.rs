//! Addresses that were seen lately (`recent`).
//!
//! A list has 100 addresses at most (`ip_list_tot`), the one that was seen longest ago first.
//!
//! Follows: linux v6.12 `net/netfilter/xt_recent.c` `recent_mt`, `recent_mt_check`.
//! Differs: `/proc/net/xt_recent/NAME` shows the one that was seen longest ago first, where the kernel goes by its hash; it cannot be written to.

use super::super::Netfilter;
use super::super::check::EINVAL;
use super::super::eval::{Ip, Way};
use super::Origin;
use penstock_lang::iptables::{Asks, Family, Match, Recent, RecentOp, Rule};
use penstock_packet::Skb;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// `ip_list_tot`.
const MOST: usize = 100;
/// `XT_RECENT_MAX_NSTAMPS`.
const MOST_STAMPS: u32 = 65_536;
/// Times of an address where no rule asks for more.
const STAMPS: u32 = 32;

#[derive(Clone, PartialEq, Debug)]
struct Entry {
    family: Family,
    addr: u128,
    ttl: u8,
    /// Where the next time goes.
    index: usize,
    stamps: Vec<i64>,
}

/// `struct recent_table`.
#[derive(Clone, PartialEq, Debug)]
struct List {
    name: String,
    mask: u128,
    /// So many times of an address are kept: a power of two.
    stamps: usize,
    entries: Vec<Entry>,
}

/// All lists of a machine.
#[derive(Clone, PartialEq, Debug, Default)]
pub(in crate::netfilter) struct Recents(Vec<Option<List>>);

/// What the kernel refuses.
pub(in crate::netfilter) fn refused(r: &Recent) -> Option<(&'static str, &'static str)> {
    let asks = matches!(r.op, RecentOp::Rcheck | RecentOp::Update);
    if !asks && (r.seconds > 0 || r.hitcount > 0 || r.ttl || r.reap) {
        return Some((EINVAL, "--seconds, --hitcount and --rttl are for --rcheck and --update"));
    }
    if r.hitcount >= MOST_STAMPS {
        return Some((EINVAL, "--hitcount is less than 65536"));
    }
    match r.name.is_empty() || r.name.contains('/') || r.name == "." || r.name == ".." {
        true => Some((EINVAL, "--name is a file's name below /proc/net/xt_recent")),
        false => None,
    }
}

impl Recents {
    fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|l| l.as_ref().is_some_and(|l| l.name == name))
    }
    /// The place of a rule's list, which is made where there is none. One that is to keep more times than before begins anew.
    pub(in crate::netfilter) fn bind(&mut self, r: &Recent) -> u32 {
        let stamps = if r.hitcount > 0 { r.hitcount.next_power_of_two() } else { STAMPS } as usize;
        let at = self.find(&r.name).unwrap_or_else(|| {
            let free = self.0.iter().position(Option::is_none).unwrap_or_else(|| {
                self.0.push(None);
                self.0.len() - 1
            });
            self.0[free] = Some(List { name: r.name.clone(), mask: r.mask, stamps, entries: Vec::new() });
            free
        });
        if let Some(list) = self.0[at].as_mut().filter(|l| l.stamps < stamps) {
            list.entries.clear();
            list.stamps = stamps;
        }
        at as u32
    }
    /// Lists that no rule names any more go.
    pub(in crate::netfilter) fn keep(&mut self, named: impl Fn(&str) -> bool) {
        self.0.iter_mut().filter(|l| l.as_ref().is_some_and(|l| !named(&l.name))).for_each(|l| *l = None);
    }
    pub(in crate::netfilter) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
    /// Files below `/proc/net/xt_recent`.
    pub(in crate::netfilter) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.iter().flatten().map(|l| l.name.clone()).collect();
        names.sort_unstable();
        names
    }
    /// What such a file holds.
    pub(in crate::netfilter) fn text(&self, name: &str) -> Option<String> {
        let list = self.0[self.find(name)?].as_ref()?;
        let mut out = String::new();
        for e in &list.entries {
            let addr = match e.family {
                Family::Ip => Ipv4Addr::from(e.addr as u32).to_string(),
                Family::Ip6 => Ipv6Addr::from(e.addr).segments().map(|s| format!("{s:04x}")).join(":"),
            };
            let last = e.stamps[(e.index - 1) & (list.stamps - 1)];
            let all: Vec<String> = e.stamps.iter().map(i64::to_string).collect();
            let _ = writeln!(
                out,
                "src={addr} ttl: {} last_seen: {last} oldest_pkt: {} {}",
                e.ttl,
                e.index,
                all.join(", ")
            );
        }
        Some(out)
    }
}

impl Entry {
    /// `recent_entry_update`.
    fn seen(&mut self, now: i64, most: usize) {
        self.index &= most - 1;
        match self.stamps.get_mut(self.index) {
            Some(stamp) => *stamp = now,
            None => self.stamps.push(now),
        }
        self.index += 1;
    }
}

/// Whether a packet fits.
pub(super) fn fits(r: &Recent, place: u32, skb: &Skb, ip: &Ip, way: &mut Way<'_>) -> bool {
    let (now, hz) = (way.tracking.ticks(way.now), way.tracking.hz());
    let leaves = !way.devices.output.is_empty();
    let Some(list) = way.recents.0.get_mut(place as usize).and_then(Option::as_mut) else { return false };
    let family = if matches!(skb.l3, penstock_packet::L3::Ipv4(_)) { Family::Ip } else { Family::Ip6 };
    let addr = if r.dst { ip.dst } else { ip.src } & list.mask;
    // The TTL is that before a router took one off.
    let ttl = if leaves && Origin::of(skb) == Origin::Elsewhere { ip.ttl.wrapping_add(1) } else { ip.ttl };
    let asked = if r.ttl { ttl } else { 0 };
    let is = |e: &Entry| e.family == family && e.addr == addr && (asked == 0 || e.ttl == 0 || asked == e.ttl);
    let Some(at) = list.entries.iter().position(is) else {
        if r.op != RecentOp::Set {
            return r.invert;
        }
        if list.entries.len() >= MOST {
            list.entries.remove(0);
        }
        list.entries.push(Entry { family, addr, ttl, index: 1, stamps: vec![now] });
        return !r.invert;
    };
    let mut fits = r.invert;
    match r.op {
        RecentOp::Set => fits = !fits,
        RecentOp::Remove => {
            list.entries.remove(at);
            return !fits;
        }
        RecentOp::Rcheck | RecentOp::Update => {
            let since = now - i64::from(r.seconds) * hz;
            let within = |stamp: &&i64| r.seconds == 0 || **stamp >= since;
            let hits = list.entries[at].stamps.iter().filter(within).count();
            if hits >= r.hitcount.max(1) as usize {
                fits = !fits;
            }
            // The one that was seen longest ago, unless it is this one and seen now.
            let spared = at == 0 && r.op == RecentOp::Update && fits;
            let mask = list.stamps - 1;
            if r.reap && !spared && list.entries[0].stamps[(list.entries[0].index - 1) & mask] < since {
                list.entries.remove(0);
                if at == 0 {
                    return fits;
                }
                return renew(list, at - 1, r.op == RecentOp::Update && fits, (now, ttl), fits);
            }
        }
    }
    let anew = r.op == RecentOp::Set || r.op == RecentOp::Update && fits;
    renew(list, at, anew, (now, ttl), fits)
}

/// An address is seen now, where it counts as such; whether the packet fits is handed on.
fn renew(list: &mut List, at: usize, anew: bool, (now, ttl): (i64, u8), fits: bool) -> bool {
    if anew {
        let mut entry = list.entries.remove(at);
        entry.seen(now, list.stamps);
        entry.ttl = ttl;
        list.entries.push(entry);
    }
    fits
}

/// The lists that a rule names.
pub(in crate::netfilter) fn of_rule(rule: &Rule) -> impl Iterator<Item = &Recent> {
    rule.matches.iter().filter_map(|m| match m {
        Match::Worded(_, Asks::Recent(r)) => Some(r),
        _ => None,
    })
}

impl Netfilter {
    /// Lists that no rule of any table names go.
    pub(in crate::netfilter) fn keep_recents(&mut self) {
        if self.recents.is_empty() {
            return;
        }
        let tables = self.tables.iter().flatten();
        let names: Vec<String> = tables
            .flat_map(|t| t.all_rules().flat_map(of_rule).map(|r| r.name.clone()).collect::<Vec<_>>())
            .collect();
        self.recents.keep(|name| names.iter().any(|n| n == name));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Fate;
    use super::super::tests::Server;
    use crate::tests::skb;
    use penstock_packet::headers::ipproto;
    use penstock_packet::{L3, L4, Udp};

    /// Counters and files are those of Linux 6.18 after the same packets at the same ticks (250 a second).
    #[test]
    fn lists_are_those_of_linux() {
        let rules = [
            "--rcheck --name a",
            "--set --name a",
            "--rcheck --name a",
            "--update --seconds 2 --hitcount 3 --name b",
            "--set --name b",
            "--rcheck --seconds 2 --hitcount 4 --name b",
            "--rcheck --rttl --name a",
            "! --rcheck --name c",
            "--update --name c",
            "--set --name c --mask 255.255.255.0",
            "--rcheck --name c --mask 255.255.255.0",
            "! --set --name d",
            "--remove --name d",
            "--update --seconds 1 --reap --name e",
            "--set --name e --rdest",
            "--rcheck --hitcount 2 --rdest --name e",
        ];
        let lines: Vec<String> =
            rules.iter().map(|r| format!("iptables -A INPUT -p udp -m recent {r}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut s = Server::new(&lines);
        let send = |s: &mut Server, tick: i64, last: u8, ttl: u8| {
            s.ms = tick * 4;
            let mut p = skb(
                &format!("127.0.0.{last}"),
                "127.0.0.1",
                ipproto::UDP,
                L4::Udp(Udp { sport: 9, dport: 9 }),
                58,
            );
            if let L3::Ipv4(h) = &mut p.l3 {
                h.ttl = ttl;
            }
            assert_eq!(s.pass(&mut p, true), Fate::Accept);
            s.counts()
        };
        for (tick, last, ttl, wanted) in [
            (1262, 1, 64, [0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0]),
            (1315, 1, 64, [1, 2, 2, 0, 2, 0, 2, 1, 1, 2, 2, 0, 2, 1, 2, 1]),
            (1392, 1, 64, [2, 3, 3, 0, 3, 0, 3, 1, 2, 3, 3, 0, 3, 2, 3, 2]),
            (1470, 2, 64, [2, 4, 4, 0, 4, 0, 4, 2, 2, 4, 4, 0, 4, 2, 4, 3]),
            (1567, 1, 63, [3, 5, 5, 1, 5, 1, 5, 2, 3, 5, 5, 0, 5, 3, 5, 4]),
            (2277, 1, 64, [4, 6, 6, 1, 6, 1, 6, 2, 4, 6, 6, 0, 6, 3, 6, 4]),
            (2382, 2, 64, [5, 7, 7, 1, 7, 1, 7, 2, 5, 7, 7, 0, 7, 3, 7, 5]),
        ] {
            assert_eq!(send(&mut s, tick, last, ttl), wanted, "tick {tick}");
        }
        let file = |s: &Server, name: &str| {
            let text = s.nf.recent_text(name).expect("there is such a list");
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(
            file(&s, "b"),
            [
                "src=127.0.0.1 ttl: 64 last_seen: 2277 oldest_pkt: 6 1262, 1315, 1392, 1567, 1567, 2277",
                "src=127.0.0.2 ttl: 64 last_seen: 2382 oldest_pkt: 2 1470, 2382",
            ]
        );
        assert_eq!(
            file(&s, "c"),
            [
                "src=127.0.0.1 ttl: 64 last_seen: 2277 oldest_pkt: 9 1262, 1315, 1315, 1392, 1392, 1567, 1567, 2277, 2277",
                "src=127.0.0.2 ttl: 64 last_seen: 2382 oldest_pkt: 3 1470, 2382, 2382",
            ]
        );
        assert!(file(&s, "d").is_empty());
        assert_eq!(file(&s, "e"), ["src=127.0.0.1 ttl: 64 last_seen: 2382 oldest_pkt: 2 2277, 2382"]);
        // Who wants more times than the list keeps empties it.
        super::super::super::change::tests::run(
            &mut s.nf,
            "iptables -A INPUT -p udp -m recent --rcheck --name a --hitcount 40",
        )
        .unwrap();
        assert!(file(&s, "a").is_empty());
        assert_eq!(send(&mut s, 2485, 1, 64), [5, 8, 8, 1, 8, 1, 8, 2, 6, 8, 8, 0, 8, 4, 8, 6, 0]);
        // A list goes with the last rule that names it.
        super::super::super::change::tests::run(&mut s.nf, "iptables -F").unwrap();
        assert!(s.nf.recent_names().is_empty());
    }

    /// The recipe against tries of passwords: the fourth connection within a minute is dropped, and so is each that follows too soon.
    #[test]
    fn a_fourth_try_is_dropped() {
        let mut s = Server::new(&[
            "iptables -A INPUT -p udp --dport 22 -m recent --set --name ssh",
            "iptables -A INPUT -p udp --dport 22 -m recent --update --seconds 60 --hitcount 4 --name ssh -j DROP",
        ]);
        let mut fates = Vec::new();
        for second in [0, 10, 20, 30, 70, 200] {
            s.ms = second * 1000;
            let udp = L4::Udp(Udp { sport: 9, dport: 22 });
            fates.push(s.pass(&mut skb("10.0.0.2", "10.0.0.1", ipproto::UDP, udp, 60), true));
        }
        use Fate::{Accept, Drop};
        assert_eq!(fates, [Accept, Accept, Accept, Drop, Drop, Accept]);
    }
}
