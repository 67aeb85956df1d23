//! A rate for each of many (`hashlimit`): tables by name, which the rules of that name share.
//!
//! Follows: linux 6.12.y `net/netfilter/xt_hashlimit.c` `hashlimit_mt_common`, `rateinfo_init`, `rateinfo_recalc`, `hashlimit_byte_cost`,
//! `hashlimit_mt_check_common`, `htable_create`, `dl_seq_print`.
//! Differs: 2.6.35 counts as 6.12 does, with its own ticks; what has expired is taken out exactly once an interval, where the kernel's deferrable timer
//! comes up to some ticks later; `/proc/net/ipt_hashlimit` has the oldest first.

use super::super::eval::{Ip, Way, ports};
use super::super::places::{Key, Places};
use super::super::state::More;
use super::super::{Netfilter, TableState};
use penstock_lang::iptables::asks::hash;
use penstock_lang::iptables::{
    self as xt, Asks, Failure, Family, HashTable, Hashlimit, Match, Program, Rule,
};
use penstock_packet::Skb;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The most places or entries a table may be said to have.
const HASHLIMIT_MAX_SIZE: u32 = 1_048_576;
/// Places of a table of a machine of 1 GB.
const SIZE: u32 = 8192;
/// `XT_HASHLIMIT_SCALE_v2`: `avg` is in parts of a second so small.
const SCALE: u64 = 1_000_000;

/// Whose rate it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Dst {
    src: u128,
    dst: u128,
    sport: u16,
    dport: u16,
}

impl Key for Dst {
    fn words(&self) -> [u64; 5] {
        let ports = u64::from(self.sport) << 16 | u64::from(self.dport);
        [self.src as u64, (self.src >> 64) as u64, self.dst as u64, (self.dst >> 64) as u64, ports]
    }
}

/// How far a rate is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Used {
    Credit {
        credit: u64,
        cap: u64,
        cost: u64,
    },
    /// With `--hashlimit-rate-match`. `over`: the interval before was above the rate.
    Window {
        interval: u32,
        over: bool,
        current: u64,
        rate: u64,
        burst: u64,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    /// The tick from which on it may be taken out.
    expires: i64,
    /// The tick at which it was last brought up to date.
    previous: i64,
    used: Used,
    /// Its place among all that ever came.
    number: u64,
}

/// Credits of a tick, packets and bytes: powers of two of which a day's fit 64 bits, and a second's 32.
fn per_tick(hz: u64) -> (u64, u64) {
    let below = |most: u64| 1 << most.ilog2();
    (below(u64::MAX / (hz * 86_400)), below(u64::from(u32::MAX) / hz))
}
fn credits(user: u64, hz: u64) -> u64 {
    let second = hz * per_tick(hz).0;
    match SCALE >= second {
        true => user / (SCALE / second),
        false => user.wrapping_mul(second / SCALE),
    }
}
fn byte_credits(user: u64, hz: u64) -> u64 {
    (u64::from(user as u32) * (hz * per_tick(hz).1)) >> 32
}
fn rate_of_bytes(cost: u64) -> u64 {
    let r = u64::from(u32::MAX).checked_div(u64::from(cost as u32)).unwrap_or(u32::MAX.into());
    r.wrapping_sub(1) << 4
}

/// What the kernel refuses: errno, and advice.
pub(in crate::netfilter) fn refused(h: &Hashlimit, hz: u32) -> Option<(Errno, &'static str)> {
    let t = &h.table;
    let hz = hz.into();
    if h.name == "." || h.name == ".." || h.name.contains('/') {
        return Some((Errno::Invalid, "--hashlimit-name is a file's name below /proc/net"));
    }
    if t.gc_interval == 0 || t.expire == 0 {
        return Some((
            Errno::Invalid,
            "--hashlimit-htable-gcinterval and --hashlimit-htable-expire are 1 ms at least",
        ));
    }
    if h.rate_match {
        return match t.avg == 0 || t.avg > u32::MAX.into() {
            true => Some((Errno::Range, "a rate of one packet in 4294 seconds at least")),
            false => None,
        };
    }
    if h.bytes {
        return match byte_credits(t.avg, hz) {
            0 => Some((Errno::Invalid, "a smaller rate")),
            _ => None,
        };
    }
    match t.burst == 0 || credits(t.avg.wrapping_mul(t.burst), hz) < credits(t.avg, hz) {
        true => Some((
            Errno::Range,
            "burst times the gap between packets is too long; take a smaller --hashlimit-burst, not 0",
        )),
        false => None,
    }
}

/// Errors of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::netfilter) enum Errno {
    /// EINVAL.
    Invalid,
    /// ERANGE.
    Range,
}

/// `struct xt_hashlimit_htable`.
#[derive(Clone, PartialEq, Debug)]
struct Table {
    family: Family,
    name: String,
    rate_match: bool,
    cfg: HashTable,
    entries: Places<Dst, Entry>,
    /// The tick at which entries are next taken out; unknown before the first packet or look.
    next: Option<i64>,
    /// How many entries ever came.
    came: u64,
}

impl Table {
    fn new(family: Family, h: &Hashlimit) -> Table {
        let mut cfg = h.table;
        cfg.size = if cfg.size == 0 { SIZE } else { cfg.size.min(HASHLIMIT_MAX_SIZE) };
        cfg.max = match cfg.max {
            0 => 8 * cfg.size,
            max => max.min(HASHLIMIT_MAX_SIZE).max(cfg.size),
        };
        let (name, rate_match) = (h.name.clone(), h.rate_match);
        Table { family, name, rate_match, cfg, entries: Places::default(), next: None, came: 0 }
    }

    /// The last tick up to `now` at which entries are taken out, and the one after it.
    fn sweeps(&self, now: i64, hz: i64) -> Option<(i64, i64)> {
        let (every, next) = (ticks_of_ms(self.cfg.gc_interval, hz), self.next?);
        let last = next + (now - next).div_euclid(every) * every;
        (last >= next).then_some((last, last + every))
    }
    fn sweep(&mut self, now: i64, hz: i64) {
        if self.next.is_none() {
            self.next = Some(now + ticks_of_ms(self.cfg.gc_interval, hz));
        }
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        let Some((last, next)) = self.sweeps(now, hz) else { return };
        self.next = Some(next);
        let old = |e: &Entry| e.expires <= last;
        if self.entries.iter().any(|(_, e)| old(e)) {
            let gone: Vec<Dst> = self.entries.iter().filter(|(_, e)| old(e)).map(|(dst, _)| *dst).collect();
            gone.iter().for_each(|dst| self.entries.remove(dst));
        }
    }

    /// `rateinfo_init`.
    fn begin(&self, now: i64, hz: u64) -> Entry {
        let c = &self.cfg;
        let used = match (self.rate_match, c.bytes) {
            (true, bytes) => {
                let (rate, burst) = match (bytes, c.burst) {
                    (true, 0) => (rate_of_bytes(c.avg), rate_of_bytes(c.avg)),
                    (true, n) => (rate_of_bytes(c.avg), n.wrapping_mul(rate_of_bytes(c.avg))),
                    (false, n) => (SCALE / c.avg.max(1), n + SCALE / c.avg.max(1)),
                };
                Used::Window { interval: c.interval, over: false, current: 0, rate, burst }
            }
            (false, true) => {
                Used::Credit { credit: per_tick(hz).1 * hz, cap: c.burst, cost: byte_credits(c.avg, hz) }
            }
            (false, false) => {
                let cap = credits(c.avg.wrapping_mul(c.burst), hz);
                Used::Credit { credit: cap, cap, cost: credits(c.avg, hz) }
            }
        };
        Entry { expires: 0, previous: now, used, number: self.came }
    }

    fn dst(&self, skb: &Skb, ip: &Ip) -> Dst {
        let c = &self.cfg;
        let when = |bit: u8, value: u128| if c.mode & bit != 0 { value } else { 0 };
        let (sport, dport) = match c.mode & (hash::SRCPORT | hash::DSTPORT) {
            0 => (0, 0),
            _ => ports(skb).unwrap_or_default(),
        };
        Dst {
            src: when(hash::SRCIP, ip.src & c.srcmask),
            dst: when(hash::DSTIP, ip.dst & c.dstmask),
            sport: when(hash::SRCPORT, sport.into()) as u16,
            dport: when(hash::DSTPORT, dport.into()) as u16,
        }
    }
}

/// `msecs_to_jiffies`.
fn ticks_of_ms(ms: u32, hz: i64) -> i64 {
    (i64::from(ms) * hz + 999) / 1000
}

impl Entry {
    /// `rateinfo_recalc`.
    fn bring_up(&mut self, now: i64, bytes: bool, hz: u64) {
        let delta = (now - self.previous).max(0) as u64;
        if delta == 0 {
            return;
        }
        match &mut self.used {
            Used::Window { interval, over, current, rate, .. } => {
                let interval = u64::from(*interval) * hz;
                if delta < interval {
                    return;
                }
                *over = current.wrapping_mul(interval) > delta.wrapping_mul(*rate);
                *current = 0;
            }
            Used::Credit { credit, cap, .. } => {
                let (packets, bytes_a_tick) = per_tick(hz);
                let (a_tick, most) = if bytes { (bytes_a_tick, bytes_a_tick * hz) } else { (packets, *cap) };
                let (sum, over) = credit.overflowing_add(a_tick.wrapping_mul(delta));
                *credit = if bytes && over { most } else { sum.min(most) };
            }
        }
        self.previous = now;
    }
    /// Whether a packet is within the rate; what it costs is paid.
    fn takes(&mut self, bytes: bool, len: u32, hz: u64) -> bool {
        match &mut self.used {
            Used::Window { over, current, burst, .. } => {
                *current += if bytes { len.into() } else { 1 };
                !*over && *current <= *burst
            }
            Used::Credit { credit, cap, cost } => {
                let mut cost = *cost;
                if bytes {
                    let second = per_tick(hz).1 * hz;
                    cost = (u64::from((len >> 4) + 1) * cost).min(second);
                    if *credit < cost && *cap > 0 {
                        *cap -= 1;
                        *credit = second;
                    }
                }
                let enough = *credit >= cost;
                *credit -= if enough { cost } else { 0 };
                enough
            }
        }
    }
}

/// All tables of a machine.
#[derive(Clone, PartialEq, Debug, Default)]
pub(in crate::netfilter) struct Hashlimits(Vec<Option<Table>>);

impl Hashlimits {
    fn find(&self, family: Family, name: &str) -> Option<usize> {
        self.0.iter().position(|t| t.as_ref().is_some_and(|t| t.family == family && t.name == name))
    }
    /// Whether a table of this name counts in another way.
    pub(in crate::netfilter) fn conflicts(&self, family: Family, h: &Hashlimit) -> bool {
        let found = self.find(family, &h.name).and_then(|at| self.0[at].as_ref());
        found.is_some_and(|t| t.rate_match != h.rate_match)
    }
    /// The place of a rule's table, which is made where there is none.
    pub(in crate::netfilter) fn bind(&mut self, family: Family, h: &Hashlimit) -> u32 {
        let at = self.find(family, &h.name).unwrap_or_else(|| {
            let free = self.0.iter().position(Option::is_none).unwrap_or_else(|| {
                self.0.push(None);
                self.0.len() - 1
            });
            self.0[free] = Some(Table::new(family, h));
            free
        });
        at as u32
    }
    /// Tables of a family that no rule names any more go.
    pub(in crate::netfilter) fn keep(&mut self, family: Family, named: impl Fn(&str) -> bool) {
        for place in &mut self.0 {
            if place.as_ref().is_some_and(|t| t.family == family && !named(&t.name)) {
                *place = None;
            }
        }
    }
    /// Whether there are any.
    pub(in crate::netfilter) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Their names, as files below `/proc/net/ipt_hashlimit` or `ip6t_hashlimit`.
    pub(in crate::netfilter) fn names(&self, family: Family) -> Vec<String> {
        let mut names: Vec<String> =
            self.0.iter().flatten().filter(|t| t.family == family).map(|t| t.name.clone()).collect();
        names.sort_unstable();
        names
    }
    /// What such a file holds.
    pub(in crate::netfilter) fn text(&self, family: Family, name: &str, now: i64, hz: i64) -> Option<String> {
        let table = self.0[self.find(family, name)?].as_ref()?;
        let last = table.sweeps(now, hz).map_or(i64::MIN, |s| s.0);
        let mut all: Vec<(&Dst, Entry)> =
            table.entries.iter().filter(|(_, e)| e.expires > last).map(|(dst, e)| (dst, *e)).collect();
        all.sort_by_key(|(_, e)| e.number);
        let addr = |a: u128| match family {
            Family::Ip => Ipv4Addr::from(a as u32).to_string(),
            Family::Ip6 => Ipv6Addr::from(a).segments().map(|s| format!("{s:04x}")).join(":"),
        };
        let mut out = String::new();
        for (dst, mut e) in all {
            e.bring_up(now, table.cfg.bytes, hz as u64);
            let (a, b, c) = match e.used {
                Used::Credit { credit, cap, cost } => (credit, cap, cost),
                Used::Window { interval, over, current, rate, .. } => {
                    (u64::from(over) << 32 | u64::from(interval), current, rate)
                }
            };
            let (src, to) = (addr(dst.src), addr(dst.dst));
            let left = (e.expires - now) / hz;
            let _ = writeln!(out, "{left} {src}:{}->{to}:{} {a} {b} {c}", dst.sport, dst.dport);
        }
        Some(out)
    }
}

/// Whether a packet fits; `None`: the table is full.
pub(super) fn fits(h: &Hashlimit, place: u32, skb: &Skb, ip: &Ip, way: &mut Way<'_>) -> Option<bool> {
    let hz = way.tracking.hz();
    let now = way.tracking.ticks(way.now);
    let table = way.hashes.0.get_mut(place as usize)?.as_mut()?;
    table.sweep(now, hz);
    let dst = table.dst(skb, ip);
    let expires = now + ticks_of_ms(table.cfg.expire, hz);
    if table.entries.get(&dst).is_none() {
        if table.entries.len() >= table.cfg.max as usize {
            return None;
        }
        let entry = table.begin(now, hz as u64);
        table.came += 1;
        table.entries.insert(dst, entry);
    }
    let bytes = table.cfg.bytes;
    let entry = table.entries.get_mut(&dst)?;
    entry.expires = expires;
    entry.bring_up(now, bytes, hz as u64);
    Some(entry.takes(h.bytes, skb.network_len(), hz as u64) != h.above)
}

impl Netfilter {
    /// Rules that share a table count alike: all with `--hashlimit-rate-match`, or none.
    pub(in crate::netfilter) fn check_hashes<'a>(
        &self,
        family: Family,
        rules: impl Iterator<Item = &'a Rule>,
        program: Program,
    ) -> Result<(), Failure> {
        let mut seen: Vec<&Hashlimit> = Vec::new();
        for h in rules.flat_map(hashlimits) {
            let other = |s: &&Hashlimit| s.name == h.name && s.rate_match != h.rate_match;
            if self.hashes.conflicts(family, h) || seen.iter().any(other) {
                let help =
                    format!("rules of the name {} have all --hashlimit-rate-match, or none of them", h.name);
                return Err(program.refused(super::super::check::EINVAL, &help));
            }
            seen.push(h);
        }
        Ok(())
    }
    /// A table has other rules than before: each that has a `hashlimit` or a `recent` gets its table or list, and those that nobody names go.
    pub(in crate::netfilter) fn bind_hashes(&mut self, family: Family, table: xt::Table) {
        let Netfilter { tables, hashes, recents, .. } = self;
        let tables = &mut tables[family as usize];
        let had = !hashes.is_empty();
        tables[table as usize].each_memory(|asks, memory| match asks {
            Asks::Hashlimit(h) => memory.more = More::Table(hashes.bind(family, h)),
            Asks::Recent(r) => memory.more = More::Table(recents.bind(r)),
            _ => {}
        });
        if had {
            let rules = |t: &TableState| t.all_rules().flat_map(hashlimits).map(|h| h.name.clone()).collect();
            let names: Vec<String> = tables.iter().flat_map(|t| -> Vec<String> { rules(t) }).collect();
            hashes.keep(family, |name| names.iter().any(|n| n == name));
        }
        self.keep_recents();
        self.bind_sets(family, table);
    }
}

fn hashlimits(rule: &Rule) -> impl Iterator<Item = &Hashlimit> {
    rule.matches.iter().filter_map(|m| match m {
        Match::Worded(_, Asks::Hashlimit(h)) => Some(h),
        _ => None,
    })
}
