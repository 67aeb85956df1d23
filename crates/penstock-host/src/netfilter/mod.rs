//! netfilter: the five hooks, the tables of `iptables` and `ip6tables`, the rules of `nft`, the chains of `ipchains`, connections,
//! and a packet's way through them.
//!
//! At each hook the stations stand in the kernel's order of priorities: raw (-300), connection tracking (-200), mangle
//! (-150), nat (-100 or 100), filter (0), security (50), and nft's chains among them.
//!
//! Follows: linux v6.12 `net/ipv4/netfilter/ip_tables.c` `ipt_do_table`, `iptable_*.c`, `net/netfilter/xt_*.c`,
//! `nf_conntrack_core.c`, `nf_tables_core.c`; the same of 2.6.35, whose `CLASSIFY` is for mangle alone.
//! Differs: what [`Netfilter::unsimulated`] names.

mod asks;
mod change;
mod check;
pub(crate) mod conntrack;
pub(crate) mod ct;
mod eval;
mod fib;
mod ipchains;
mod ipset;
mod mss;
mod nat;
pub mod nft;
mod places;
mod report;
mod restore;
mod state;

use asks::hashlimit::Hashlimits;
use asks::recent::Recents;
pub(crate) use conntrack::{Change, New};
pub use conntrack::{Connection, Tracking, Tuple, status};
pub use ipchains::Ipchains;
pub use state::TableState;

use crate::route::Fib;
use crate::six::Fib6;
use penstock_lang::iptables::{Asks, Edit, Family, Match, Rule, Table, Target};
use penstock_model::{Kernel, Rng, Time};
use penstock_packet::{L3, Skb};

/// Where a packet is on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Hook {
    /// Just received.
    Prerouting,
    /// For this machine, whole.
    Input,
    /// For another machine, TTL already one less.
    Forward,
    /// Made here.
    Output,
    /// On its way out, not yet cut into fragments.
    Postrouting,
}

impl Hook {
    /// All, in this order.
    pub const ALL: [Hook; 5] =
        [Hook::Prerouting, Hook::Input, Hook::Forward, Hook::Output, Hook::Postrouting];

    /// The built-in chain of this hook.
    pub const fn chain(self) -> &'static str {
        match self {
            Hook::Prerouting => "PREROUTING",
            Hook::Input => "INPUT",
            Hook::Forward => "FORWARD",
            Hook::Output => "OUTPUT",
            Hook::Postrouting => "POSTROUTING",
        }
    }
    /// The hook of a built-in chain.
    fn of_chain(name: &str) -> Option<Hook> {
        Hook::ALL.into_iter().find(|h| h.chain() == name)
    }
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What became of a packet at a hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It goes on.
    Accept,
    /// It is gone.
    Drop,
    /// It is gone, and its sender is told: an ICMP code of "destination unreachable", or a TCP reset.
    Reject(Option<u8>),
}

/// The devices a packet came in by and leaves by, empty where there is none (yet, or any more).
#[derive(Clone, Copy)]
pub struct Devices<'a> {
    /// In.
    pub input: &'a str,
    /// Out.
    pub output: &'a str,
    /// The machine's routes, which know whose an address is.
    pub fib: Option<&'a Fib>,
    /// The same of IPv6.
    pub fib6: Option<&'a Fib6>,
    /// The devices themselves, where addresses may be translated to theirs.
    pub ports: Option<Ports<'a>>,
}

/// Where a packet came in and leaves, for those who need more than names.
#[derive(Clone, Copy)]
pub struct Ports<'a> {
    /// The machine's devices.
    pub devices: &'a crate::Devices,
    /// Index of the one it came in by; 0: none.
    pub iif: u32,
    /// Index of the one it leaves by; 0: none.
    pub oif: u32,
    /// The next machine on its way.
    pub next: std::net::Ipv4Addr,
}

impl Ports<'_> {
    /// The address this machine speaks to the next with (`inet_select_addr`).
    fn source(&self) -> Option<std::net::Ipv4Addr> {
        let own = self.devices.get(self.oif)?.address_towards(self.next);
        own.or_else(|| self.devices.iter().filter(|d| !d.loopback).find_map(|d| d.primary_address()))
    }
}

/// What stands at a hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Station {
    Table(Table),
    Tracking,
    /// Translation: the tables and chains of `nat` for a connection's first packet, what was decided for all.
    Nat,
    /// The connection is in the table from here on.
    Confirm,
    /// The chain of `ipchains`.
    Ipchains,
    /// A chain of nft: its table's and its own place.
    Chain(u32, u32),
}

/// Dice; two machines are alike whatever theirs would throw next.
#[derive(Clone, Debug)]
struct Dice(Rng);

impl PartialEq for Dice {
    fn eq(&self, _: &Dice) -> bool {
        true
    }
}

/// A count that makes no machine different from another.
#[derive(Clone, Debug, Default)]
struct Looked(u64);

impl PartialEq for Looked {
    fn eq(&self, _: &Looked) -> bool {
        true
    }
}

/// The tables, the connections, and which hooks have anything to do.
#[derive(Clone, PartialEq, Debug)]
#[repr(C)]
pub struct Netfilter {
    // With each packet, in this order: what lies together comes into the cache together.
    /// A bit a hook, by [`Hook`]'s order: set where something stands for IPv4.
    busy: u8,
    /// The same for IPv6.
    busy6: u8,
    /// Whether any chain of nft hangs at a device.
    device_chains: bool,
    /// Whether a rule asks what a connection has carried.
    counts: bool,
    /// Whether addresses may be translated.
    translates: bool,
    /// A rule asks or has asked for a bridge's ports, for which its module loads br_netfilter.
    physdev: bool,
    /// Rules of tables and of `ipchains` that packets were compared with since it was last taken.
    looked: Looked,
    // The others.
    /// By family, then by [`Table`]'s order.
    tables: [Vec<TableState>; 2],
    /// Tables that were ever used, the newest first, by family.
    loaded: [Vec<Table>; 2],
    nft: nft::Ruleset,
    ipchains: Ipchains,
    tracking: Tracking,
    dice: Dice,
    /// Tables of `hashlimit`.
    hashes: Hashlimits,
    /// Lists of `recent`.
    recents: Recents,
    /// Sets of `ipset`.
    sets: ipset::Sets,
    /// By family and hook: what a packet meets, in order.
    stations: [[Vec<Station>; 5]; 2],
    /// The same of what decides on translation.
    translators: [[Vec<Station>; 5]; 2],
    /// Packets are as a capture shows them, behind translation: it is not done again.
    pub(crate) translated: bool,
}

impl Default for Netfilter {
    fn default() -> Netfilter {
        Netfilter::new(Rng::named(0, "netfilter"))
    }
}

impl Netfilter {
    /// Empty tables; `dice` are what `-m statistic` throws.
    pub fn new(dice: Rng) -> Netfilter {
        let tables = |family| Table::ALL.map(|t| TableState::new(family, t)).to_vec();
        Netfilter {
            tables: [tables(Family::Ip), tables(Family::Ip6)],
            loaded: [Vec::new(), Vec::new()],
            nft: nft::Ruleset::default(),
            ipchains: Ipchains::default(),
            tracking: Tracking::default(),
            sets: ipset::Sets::new(Rng::named(dice.clone().next_u64(), "ipset")),
            dice: Dice(dice),
            hashes: Hashlimits::default(),
            recents: Recents::default(),
            stations: std::array::from_fn(|_| std::array::from_fn(|_| Vec::new())),
            translators: std::array::from_fn(|_| std::array::from_fn(|_| Vec::new())),
            translated: false,
            busy: 0,
            busy6: 0,
            device_chains: false,
            counts: false,
            translates: false,
            physdev: false,
            looked: Looked::default(),
        }
    }
    /// The same of a machine of this profile, which counts time in its ticks.
    pub(crate) fn ticking(mut self, kernel: Kernel) -> Netfilter {
        self.tracking.set_hz(kernel.hz());
        self
    }
    /// Takes the count of rules that packets were compared with.
    pub(crate) fn take_looked(&mut self) -> u64 {
        std::mem::take(&mut self.looked.0)
    }
    /// A table.
    pub fn table(&self, family: Family, table: Table) -> &TableState {
        &self.tables[family as usize][table as usize]
    }
    fn table_mut(&mut self, family: Family, table: Table) -> &mut TableState {
        &mut self.tables[family as usize][table as usize]
    }
    /// Tables that a command has ever used, the newest first, as `/proc/net/ip_tables_names` has them.
    pub fn loaded(&self, family: Family) -> &[Table] {
        &self.loaded[family as usize]
    }
    /// The chains of `ipchains`.
    pub fn ipchains(&self) -> &Ipchains {
        &self.ipchains
    }
    /// Carries out a command of `ipchains`; answers what it prints.
    ///
    /// # Errors
    /// Its message and exit status; nothing is changed then.
    pub fn execute_ipchains(
        &mut self,
        command: &penstock_lang::ipchains::Command,
    ) -> Result<String, penstock_lang::ipchains::Failure> {
        let before = self.ipchains.touched;
        let printed = self.ipchains.execute(command)?;
        if self.ipchains.touched != before {
            self.arrange();
        }
        Ok(printed)
    }
    /// The connections that are known.
    pub fn tracking(&self) -> &Tracking {
        &self.tracking
    }
    /// Whether there are tables of `hashlimit`.
    pub(crate) fn limits_hashes(&self) -> bool {
        !self.hashes.is_empty()
    }
    /// Their names.
    pub(crate) fn hashlimit_names(&self, family: Family) -> Vec<String> {
        self.hashes.names(family)
    }
    /// What of them is in `/proc/net/ipt_hashlimit`, or `ip6t_hashlimit`.
    pub(crate) fn hashlimit_text(&self, family: Family, name: &str, now: Time) -> Option<String> {
        self.hashes.text(family, name, self.tracking.ticks(now), self.tracking.hz())
    }
    /// Lists of `recent`: files below `/proc/net/xt_recent`.
    pub(crate) fn recent_names(&self) -> Vec<String> {
        self.recents.names()
    }
    /// What such a file holds.
    pub(crate) fn recent_text(&self, name: &str) -> Option<String> {
        self.recents.text(name)
    }
    /// The mark of the connection a packet belongs to.
    pub fn connection_mark(&self, skb: &Skb, now: Time) -> Option<u32> {
        let id = match skb.rare().ct {
            Some(known) => known.id,
            None => self.tracking.peek(skb, now).map(|(id, _)| id),
        };
        self.tracking.get(id).map(|c| c.mark)
    }
    /// Whether addresses may be translated.
    #[inline]
    pub(crate) fn translates(&self) -> bool {
        self.translates
    }
    /// Notes on a packet that comes to a qdisc what it is to the inside (`nf_ct_get_tuple_skb`), for those who sort by that.
    #[cold]
    pub(crate) fn note_inside(&mut self, skb: &mut Skb, now: Time) {
        let (id, reply, turned) = match skb.rare().ct {
            Some(known) => (known.id, known.reply, false),
            None => match self.tracking.peek(skb, now) {
                Some((id, reply)) => (Some(id), !reply, true),
                None => return,
            },
        };
        let nat = status::SRC_NAT | status::DST_NAT;
        let Some(c) = self.tracking.get(id).filter(|c| c.status & nat != 0) else { return };
        let t = c.tuples[usize::from(reply)];
        let (from, to) = ((t.src, t.sport), (t.dst, t.dport));
        skb.rare_mut().inside = Some(if turned { [to, from] } else { [from, to] });
    }
    /// Whether a packet at this hook has to be looked at: a table was ever touched (its module is loaded then, and
    /// its policies count packets from that moment).
    #[inline]
    pub fn busy(&self, hook: Hook) -> bool {
        self.busy & hook.bit() != 0
    }
    /// The same of a packet of IPv6.
    #[inline]
    pub fn busy6(&self, hook: Hook) -> bool {
        self.busy6 & hook.bit() != 0
    }
    /// Whether anything stands at any hook of IPv4 or hangs at a device.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.busy != 0 || self.device_chains
    }
    /// Whether anything stands at a hook of IPv4, or of IPv6.
    pub(crate) fn has_rules(&self, four: bool) -> bool {
        if four { self.busy != 0 } else { self.busy6 != 0 }
    }
    /// Whether a rule asks for a bridge's ports (`-m physdev`), or has.
    pub(crate) fn asks_physdev(&self) -> bool {
        self.physdev
    }
    /// A command has used `table`: its hooks are registered from now on.
    pub(crate) fn load(&mut self, family: Family, table: Table) {
        if !self.loaded(family).contains(&table) {
            self.loaded[family as usize].insert(0, table);
            self.arrange();
        }
    }

    /// Puts what stands at each hook in order. Connections are tracked once anything asks for them.
    fn arrange(&mut self) {
        let asks = |family: &Vec<TableState>| {
            family.iter().any(|t| t.chains().iter().any(|c| c.rules.iter().any(|r| tracks(&r.rule))))
        };
        let bridged = |family: &Vec<TableState>| {
            family.iter().any(|t| t.chains().iter().any(|c| c.rules.iter().any(|r| asks_physdev(&r.rule))))
        };
        self.physdev |= self.tables.iter().any(bridged);
        let nat = self.loaded.iter().any(|l| l.contains(&Table::Nat));
        if nat || self.tables.iter().any(asks) || self.nft.tracks() {
            self.tracking.on = true;
        }
        //= linux v6.12 net/netfilter/xt_connbytes.c connbytes_mt_check; net/netfilter/nft_ct.c nft_ct_get_init: the first rule that asks turns it on
        let counts = |family: &Vec<TableState>| {
            let asks = |m: &Match| matches!(m, Match::Connbytes { .. });
            let rules = |t: &TableState| {
                t.chains().iter().any(|c| c.rules.iter().any(|r| r.rule.matches.iter().any(asks)))
            };
            family.iter().any(rules)
        };
        let counts = self.tables.iter().any(counts) || self.nft.counts();
        if counts && !self.counts {
            self.tracking.shows_counts = true;
        }
        self.counts = counts;
        for family in [Family::Ip, Family::Ip6] {
            let translates = self.loaded(family).contains(&Table::Nat) || self.nft.translates(family);
            for hook in Hook::ALL {
                let mut all: Vec<(i32, Station)> = Vec::new();
                let mut nat: Vec<(i32, Station)> = Vec::new();
                for &table in self.loaded(family) {
                    if table.built_in().contains(&hook.chain()) {
                        let list = if table == Table::Nat { &mut nat } else { &mut all };
                        list.push((priority(table, hook), Station::Table(table)));
                    }
                }
                if self.tracking.on && matches!(hook, Hook::Prerouting | Hook::Output) {
                    all.push((-200, Station::Tracking));
                }
                if self.tracking.on && matches!(hook, Hook::Input | Hook::Postrouting) {
                    all.push((i32::MAX, Station::Confirm));
                }
                //= linux v6.12 net/netfilter/nf_nat_proto.c nf_nat_ipv4_ops, nf_nat_ipv6_ops
                if translates && hook != Hook::Forward {
                    all.push((priority(Table::Nat, hook), Station::Nat));
                }
                if self.ipchains.touched && family == Family::Ip && Ipchains::of_hook(hook).is_some() {
                    all.push((0, Station::Ipchains));
                }
                for (table, chain, priority) in self.nft.base_chains(family, hook) {
                    let list = if self.nft.is_nat(table, chain) { &mut nat } else { &mut all };
                    list.push((priority, Station::Chain(table, chain)));
                }
                nat.sort_by_key(|s| s.0);
                self.translators[family as usize][hook as usize] = nat.into_iter().map(|s| s.1).collect();
                all.sort_by_key(|s| s.0);
                self.stations[family as usize][hook as usize] = all.into_iter().map(|s| s.1).collect();
            }
        }
        self.device_chains = self.nft.at_devices();
        let nat = |hooks: &[Vec<Station>; 5]| hooks.iter().any(|h| h.contains(&Station::Nat));
        self.translates = self.stations.iter().any(nat);
        let busy = |family: Family| {
            let here = |h: &&Hook| !self.stations[family as usize][**h as usize].is_empty();
            Hook::ALL.iter().filter(here).map(|h| h.bit()).sum()
        };
        (self.busy, self.busy6) = (busy(Family::Ip), busy(Family::Ip6));
    }

    /// Whether anything hangs at a device.
    #[inline]
    pub fn at_devices(&self) -> bool {
        self.device_chains
    }

    /// Takes a packet through nft's chains at a device: as it comes in, or before its qdisc.
    pub fn run_device(&mut self, ingress: bool, device: &str, skb: &mut Skb, now: Time) -> Fate {
        let hook = if ingress { "ingress" } else { "egress" };
        let (input, output) = if ingress { (device, "") } else { ("", device) };
        let devices = Devices { input, output, fib: None, fib6: None, ports: None };
        for (table, chain) in self.nft.device_chains(hook, device) {
            let mut way = eval::Way {
                hook: Hook::Prerouting,
                devices,
                now,
                tracking: &mut self.tracking,
                dice: &mut self.dice,
                hashes: &mut self.hashes,
                recents: &mut self.recents,
                sets: &mut self.sets,
                looked: 0,
                hotdrop: false,
            };
            let fate = self.nft.run(table, chain, skb, &mut way);
            if fate != Fate::Accept {
                return fate;
            }
        }
        Fate::Accept
    }

    /// A packet is gone: a connection that it was to begin goes with it.
    pub(crate) fn let_go(&mut self, packet: &Skb) {
        if let Some(known) = packet.rare().ct
            && let (Some(id), false) = (known.id, known.reply)
        {
            self.tracking.let_go(id);
        }
    }
    /// A device went down, or lost an address: connections that were given its address are forgotten.
    pub(crate) fn unmasquerade(&mut self, ifindex: u32, addr: Option<std::net::IpAddr>) {
        //= linux v6.12 net/netfilter/nf_nat_masquerade.c device_cmp, inet_cmp
        let addr = addr.map(conntrack::any);
        self.tracking
            .forget_all(|c| c.masqueraded == ifindex && addr.is_none_or(|addr| c.tuples[1].dst == addr));
    }
    /// The connections, to be changed.
    /// Enters a connection, with what its source and its destination are translated to: addresses and ports.
    ///
    /// # Errors
    /// EEXIST, EBUSY, ENOMEM.
    pub(crate) fn make_connection(
        &mut self,
        new: &New,
        to: [Option<(u128, Option<u16>)>; 2],
        now: Time,
    ) -> Result<(), i32> {
        let id = self.tracking.make(new, now)?;
        if to.iter().any(Option::is_some) {
            let six = new.tuples[0].src >> 32 != 0 || new.tuples[0].dst >> 32 != 0;
            let mut table = nat::Table { tracking: &mut self.tracking, dice: &mut self.dice, now };
            // The destination first.
            for (source, to) in [(false, to[1]), (true, to[0])] {
                match to {
                    Some((addr, port)) => {
                        let ports = port.map(|p| (p, p));
                        let range =
                            nat::Range { addresses: Some((addr, addr)), ports, six, ..nat::Range::default() };
                        table.set_up(id, &range, source);
                    }
                    None => table.leave_as_is(id, source),
                }
            }
        }
        self.tracking.settle(id, new, now)
    }
    pub(crate) fn tracking_mut(&mut self) -> &mut Tracking {
        &mut self.tracking
    }
    /// Takes a packet through what stands at a hook. Addresses, ports, the mark, ToS, TTL and priority may change.
    #[inline]
    pub fn run(&mut self, hook: Hook, skb: &mut Skb, devices: Devices<'_>, now: Time) -> Fate {
        let family = match skb.l3 {
            L3::Ipv4(_) => Family::Ip,
            L3::Ipv6(_) => Family::Ip6,
            _ => return Fate::Accept,
        };
        if self.stations[family as usize][hook as usize].is_empty() {
            return Fate::Accept;
        }
        self.pass(family, hook, skb, devices, now)
    }
}

/// `enum nf_ip_hook_priorities`.
const fn priority(table: Table, hook: Hook) -> i32 {
    match (table, hook) {
        (Table::Raw, _) => -300,
        (Table::Mangle, _) => -150,
        (Table::Nat, Hook::Prerouting | Hook::Output) => -100,
        (Table::Nat, _) => 100,
        (Table::Filter, _) => 0,
        (Table::Security, _) => 50,
    }
}

/// Whether a rule asks for the packet's connection.
fn asks_physdev(rule: &Rule) -> bool {
    rule.matches.iter().any(|m| matches!(m, Match::Worded(_, Asks::Physdev(_))))
}

fn tracks(rule: &Rule) -> bool {
    let asks = |m: &Match| {
        matches!(
            m,
            Match::Conntrack(_)
                | Match::Connmark { .. }
                | Match::Connbytes { .. }
                | Match::Worded(_, Asks::Connlimit(_) | Asks::Helper { .. })
        )
    };
    matches!(rule.target, Target::Edit(Edit::Connmark { .. }) | Target::Notrack(_) | Target::Zone(..))
        || rule.matches.iter().any(asks)
}
