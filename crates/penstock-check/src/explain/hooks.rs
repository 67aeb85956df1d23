//! A packet's way through netfilter's rules, as far as marks, ToS and classes go.

use super::Probe;
use super::cube::{Cube, Names, Place};
use super::nft::{self, Station};
use crate::facts::Facts;
use crate::marks::Ruled;
use penstock_lang::iptables::{Connmark, Edit, Family, Iface, Match, PortKind, Rule, Table, Target, Verdict};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

/// What became of it at the hooks.
pub(super) struct Passed {
    /// What happened, in order.
    pub said: Vec<String>,
    /// Whether a rule dropped it.
    pub dropped: bool,
    /// The class a rule chose.
    pub class: Option<u32>,
    /// The mark of its connection behind them.
    pub conn: u32,
}

/// What stands for the address of a device that nobody has said: one that no machine has.
fn nobody(family: Family) -> IpAddr {
    match family {
        Family::Ip => Ipv4Addr::new(240, 0, 0, 1).into(),
        Family::Ip6 => Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 1).into(),
    }
}

/// The address a packet has behind `SNAT` or `MASQUERADE`, as `iptables -S` writes the target; `None` where the script does not say it.
pub(super) fn source(facts: &Facts, family: Family, save: &str, output: Option<&Iface>) -> Option<IpAddr> {
    let mut words = save.split_whitespace();
    if words.any(|w| w == "--to-source") {
        let to = words.next()?;
        return match family {
            Family::Ip => to.split([':', '-']).next()?.parse().ok(),
            Family::Ip6 => to.trim_start_matches('[').split([']', '-']).next()?.parse().ok(),
        };
    }
    let own = |w: &String| {
        let addr = w.split('/').next()?.parse::<IpAddr>().ok()?;
        (addr.is_ipv6() == (family == Family::Ip6)).then_some(addr)
    };
    let output = output.filter(|o| !o.wildcard && !o.invert)?.name.as_str();
    let mut steps = facts.steps.iter().rev().filter(|s| s.ok() && s.program() == "ip");
    let given = steps.find(|s| {
        let to = s.value(&["dev"]) == Some(output);
        to && s.words.iter().any(|w| w.starts_with('a') && "address".starts_with(w.as_str()))
            && (s.has("add") || s.has("a") || s.has("replace"))
            && s.words.iter().any(|w| own(w).is_some())
    })?;
    given.words.iter().find_map(own)
}

/// Commands that make VLAN devices above a device: the new one's name, its tag's ethertype and number.
fn vlans<'a>(facts: &'a Facts, above: &'a str) -> impl Iterator<Item = (&'a str, u16, u16)> {
    facts.steps.iter().filter(move |s| s.ok() && s.program() == "ip" && s.has("vlan")).filter_map(move |s| {
        let name = s.value(&["name"]).or_else(|| s.value(&["add"]).filter(|w| *w != "link"));
        let id = crate::marks::number(s.value(&["id"])?)?;
        let tpid = if s.has("802.1ad") { 0x88a8 } else { 0x8100 };
        (s.value(&["link"]) == Some(above) || s.words.windows(3).any(|w| w[1] == "link" && w[2] == above))
            .then_some((name?, tpid, id as u16))
    })
}

/// The tag of what leaves by a device over a VLAN device of this name.
pub(super) fn vlan_id(facts: &Facts, above: &str, name: &str) -> Option<u16> {
    let made = vlans(facts, above).find(|v| v.0 == name).map(|v| v.2);
    made.or_else(|| name.strip_prefix(above)?.strip_prefix('.')?.parse().ok())
}

/// The device over which a packet with its tags leaves by `above`.
fn over(facts: &Facts, above: &str, probe: &Probe) -> String {
    let Some(&(tpid, tci)) = probe.tags.first() else { return above.to_owned() };
    let made = vlans(facts, above).find(|v| (v.1, v.2) == (tpid, tci & 0xfff));
    made.map_or_else(|| format!("{above}.{}", tci & 0xfff), |v| v.0.to_owned())
}

/// What stands at each hook, by the device that packets leave by.
type Known = BTreeMap<(&'static str, String), Rc<Vec<Station>>>;

/// netfilter's rules by chain.
pub(super) struct Hooks<'a> {
    facts: &'a Facts,
    chains: BTreeMap<(u8, Table, &'a str), Vec<&'a Ruled>>,
    /// Devices that rules name.
    names: Names,
    /// What stands at each hook for packets that leave by a device, as far as somebody has asked.
    stations: RefCell<Known>,
}

struct Way<'a> {
    own: &'a Hooks<'a>,
    output: &'a str,
    said: Vec<String>,
    class: Option<u32>,
    conn: u32,
    /// Whether its source has been translated.
    translated: bool,
    /// Whether it was said what its connection's state is taken for.
    state_said: bool,
}

/// How a chain ends.
enum End {
    Next,
    Accept,
    Drop,
}

impl<'a> Hooks<'a> {
    pub fn new(facts: &'a Facts) -> Hooks<'a> {
        let mut names = Names::default();
        let chains = facts.netfilter.standing.by_chain();
        for input in facts.netfilter.standing.rules.iter().filter_map(|r| r.rule.input.as_ref()) {
            names.known(input);
        }
        nft::devices(&facts.netfilter.of_nft.tables, &mut names);
        Hooks { facts, chains, names, stations: RefCell::default() }
    }
    /// What stands at a hook.
    fn stations(&self, hook: &'static str, output: &str) -> Rc<Vec<Station>> {
        let key = (hook, output.to_owned());
        if let Some(known) = self.stations.borrow().get(&key) {
            return known.clone();
        }
        let made = nft::stations(self.facts, nft::Hook { name: hook, output }, &mut self.names.clone());
        let made = Rc::new(made);
        self.stations.borrow_mut().insert(key, made.clone());
        made
    }

    /// Takes the packet through the hooks on its way out by `output`.
    pub fn pass(&self, probe: &mut Probe, output: &str) -> Passed {
        let hooks: &[&'static str] = if probe.input.is_some() {
            &["ingress", "PREROUTING", "FORWARD", "POSTROUTING", "egress"]
        } else {
            &["OUTPUT", "POSTROUTING", "egress"]
        };
        let conn = probe.connmark.unwrap_or(0);
        let family = match probe.innermost() {
            crate::filters::IP => Family::Ip,
            crate::filters::IP6 => Family::Ip6,
            _ => return Passed { said: Vec::new(), dropped: false, class: None, conn },
        };
        let output = over(self.facts, output, probe);
        let mut way = Way {
            own: self,
            output: &output,
            said: Vec::new(),
            class: None,
            conn,
            translated: false,
            state_said: probe.state.is_some(),
        };
        for &hook in hooks {
            for station in self.stations(hook, &output).iter() {
                let (before, conn) = ((probe.mark, probe.tos), way.conn);
                let (name, end) = match station {
                    Station::Table(Table::Nat) if way.translated => continue,
                    Station::Chain(base) if base.nat && way.translated => continue,
                    Station::Table(table) => {
                        let end = match way.chain(family, *table, hook, hook, probe, 0) {
                            End::Next => way.policy(family, *table, hook),
                            end => end,
                        };
                        (format!("{} {hook}", table.name()), end)
                    }
                    Station::Chain(base) => {
                        if self.holds(&base.comes, probe, way.conn) != Some(true) {
                            continue;
                        }
                        let end = match (way.lines(base, &base.chain, probe, 0), base.drops) {
                            (End::Next, Some((step, line))) => {
                                let place = self.facts.rule_place(step, line);
                                way.said.push(format!("{} {place}: policy drop", base.name));
                                End::Drop
                            }
                            (end, _) => end,
                        };
                        (base.name.clone(), end)
                    }
                };
                if let End::Drop = end {
                    let Way { said, class, conn, .. } = way;
                    return Passed { said, dropped: true, class, conn };
                }
                if way.conn != conn {
                    way.said.push(format!("{name}: connmark {conn} -> {}", way.conn));
                }
                if (probe.mark, probe.tos) != before {
                    way.said.push(format!(
                        "{name}: mark {} -> {}, tos {:#04x} -> {:#04x}",
                        before.0, probe.mark, before.1, probe.tos
                    ));
                }
            }
            // `ip_forward` sets the priority from the ToS.
            if hook == "PREROUTING" && family == Family::Ip {
                probe.priority = penstock_host::rt_tos2priority(self.facts.kernel, probe.tos);
                way.class = None;
            }
        }
        let Way { said, class, conn, .. } = way;
        Passed { said, dropped: false, class, conn }
    }

    /// Whether a packet as it is by now, with its connection's mark, is in any of these sets; `None` where the headers do not say.
    fn holds(&self, all: &[Cube], probe: &Probe, conn: u32) -> Option<bool> {
        let mut known = true;
        for cube in all {
            let has = |&(place, mask, value): &(Place, u32, u32)| {
                let have = match place {
                    Place::Mark => probe.mark,
                    Place::Conn => conn,
                    _ => probe.at(place, &self.names),
                };
                (have ^ value) & mask == 0
            };
            let other = |b: &&(Place, u32, u32)| matches!(b.0, Place::Other(_));
            if cube.0.iter().all(has) {
                return Some(true);
            }
            known &= !cube.0.iter().any(|b| other(&b)) || !cube.0.iter().filter(|b| !other(b)).all(has);
        }
        known.then_some(false)
    }

    /// The marks a connection may have whose packets the other way look so, of 0 and what rules give it.
    pub fn marks_of(&self, probe: &Probe, output: &str) -> Vec<u32> {
        let inputs = self.names.inputs.iter();
        let named =
            inputs.filter(|i| !i.wildcard && !i.invert && i.name != "lo").map(|i| Some(i.name.clone()));
        let mut ways: Vec<Option<String>> = named.chain([None, Some("another".to_owned())]).collect();
        ways.sort();
        ways.dedup();
        let mut marks: Vec<u32> = ways
            .into_iter()
            .map(|input| {
                let mut probe = Probe { input, ..probe.answered() };
                self.pass(&mut probe, output).conn
            })
            .filter(|mark| *mark != 0)
            .collect();
        marks.sort_unstable();
        marks.dedup();
        marks
    }
}

impl Way<'_> {
    /// What becomes of a packet at the end of a built-in chain.
    fn policy(&mut self, family: Family, table: Table, chain: &str) -> End {
        let facts = self.own.facts;
        match facts.netfilter.standing.drops.get(&(family as u8, table, chain.to_owned())) {
            Some(&(step, line)) => {
                let place = facts.rule_place(step, line);
                self.said.push(format!("{} {chain} {place}: policy DROP", table.name()));
                End::Drop
            }
            None => End::Next,
        }
    }
    /// A rule asks for the state of the packet's connection.
    fn asks_state(&mut self, name: &str, place: &str) {
        if !self.state_said {
            self.state_said = true;
            self.said.push(format!(
                "{name} {place} asks for its connection's state: taken as the first of its connection (else write `state established`)"
            ));
        }
    }

    /// A chain of nft.
    fn lines(&mut self, base: &nft::Base, chain: &str, probe: &mut Probe, depth: u32) -> End {
        let own = self.own;
        let Some(lines) = base.chains.get(chain).filter(|_| depth <= 16) else { return End::Next };
        // Chains are named where they are not the one at the hook.
        let name = match chain == base.chain {
            true => base.name.clone(),
            false => format!("{} {chain}", base.name),
        };
        for line in lines {
            let mut unknown = false;
            let place = || own.facts.rule_place(line.by.0, line.by.1);
            let asked = line.ways.iter().flat_map(|w| &w.asked);
            if !self.state_said && asked.clone().any(|c| c.0.iter().any(|b| b.0 == Place::State)) {
                self.asks_state(&name, &place());
            }
            let way = line.ways.iter().find(|w| match own.holds(&w.asked, probe, self.conn) {
                Some(fits) => fits,
                None => {
                    unknown = true;
                    false
                }
            });
            if unknown {
                self.said.push(format!(
                    "{name} {}: cannot be told from the headers alone; taken as not fitting: {}",
                    place(),
                    line.text
                ));
            }
            let Some(way) = way else { continue };
            self.said.push(format!("{name} {}: {}", place(), line.text));
            if way.changes.contains(&nft::Change::Lost) {
                let lost =
                    line.lost.iter().map(|lost| format!("{name} {}: `{lost}` is not followed", place()));
                self.said.extend(lost);
            }
            for change in &way.changes {
                self.change(change, probe);
            }
            let end = match &way.end {
                nft::End::Next => continue,
                nft::End::Accept => End::Accept,
                nft::End::Drop => End::Drop,
                nft::End::Return => End::Next,
                nft::End::Jump(to) => match self.lines(base, to, probe, depth + 1) {
                    End::Next => continue,
                    end => end,
                },
                nft::End::Goto(to) => self.lines(base, to, probe, depth + 1),
            };
            return end;
        }
        End::Next
    }
    fn change(&mut self, change: &nft::Change, probe: &mut Probe) {
        match *change {
            nft::Change::Mark(bits) => probe.mark = bits.of(probe.mark, self.conn),
            nft::Change::Conn(bits) => self.conn = bits.of(probe.mark, self.conn),
            nft::Change::Tos { mask, value, .. } => probe.tos = probe.tos & !mask | value,
            nft::Change::Priority(n) => self.class = Some(n),
            nft::Change::Lost => {}
            nft::Change::Source(to) => self.translate(to, probe),
        }
    }
    fn translate(&mut self, to: Option<IpAddr>, probe: &mut Probe) {
        let family = if probe.src.is_ipv6() { Family::Ip6 } else { Family::Ip };
        let seen = match to {
            Some(to) => format!("{to} here"),
            None => "that of the device here, which the script does not give".to_owned(),
        };
        self.said.push(format!("the source {} becomes {seen}: filters see that one", probe.src));
        probe.translate(to.unwrap_or(nobody(family)));
        self.translated = true;
    }

    fn chain(
        &mut self,
        family: Family,
        table: Table,
        chain: &str,
        hook: &str,
        probe: &mut Probe,
        depth: u32,
    ) -> End {
        let own = self.own;
        let rules =
            own.chains.iter().find(|(k, _)| (k.0, k.1, k.2) == (family as u8, table, chain)).map(|c| c.1);
        if depth > 16 {
            return End::Next;
        }
        for ruled in rules.into_iter().flatten() {
            let input = if matches!(hook, "POSTROUTING" | "OUTPUT") { None } else { probe.input.clone() };
            let line = || own.facts.rule_place(ruled.step, ruled.line);
            let asks = |m: &Match| matches!(m, Match::Conntrack(c) if super::chains::states(c).is_some());
            if !self.state_said && ruled.rule.matches.iter().any(asks) {
                self.asks_state(&format!("{} {chain}", table.name()), &line());
            }
            match fits(&ruled.rule, probe, self.conn, input.as_deref(), self.output, hook) {
                Some(true) => {}
                Some(false) => continue,
                None => {
                    self.said.push(format!(
                        "{} {chain} {}: cannot be told from the headers alone; taken as not fitting",
                        table.name(),
                        line()
                    ));
                    continue;
                }
            }
            self.said.push(format!(
                "{} {chain} {}: {}",
                table.name(),
                line(),
                ruled.rule.target.name(family)
            ));
            match &ruled.rule.target {
                Target::Edit(Edit::Mark { value, mask }) => probe.mark = probe.mark & !mask ^ value,
                Target::Edit(Edit::Connmark { op, value, ctmask, nfmask, shift }) => {
                    let moved = |mark: u32| match shift {
                        s if *s > 0 => mark.checked_shl(*s as u32).unwrap_or(0),
                        s => mark.checked_shr(s.unsigned_abs().into()).unwrap_or(0),
                    };
                    match op {
                        Connmark::Set => self.conn = moved(self.conn & !ctmask ^ value),
                        Connmark::Save => self.conn = self.conn & !ctmask ^ moved(probe.mark & nfmask),
                        Connmark::Restore => probe.mark = probe.mark & !nfmask ^ moved(self.conn & ctmask),
                    }
                }
                Target::Edit(Edit::Tos { value, mask }) => probe.tos = probe.tos & !mask ^ value,
                Target::Edit(Edit::Dscp(dscp)) => probe.tos = probe.tos & 3 | dscp << 2,
                Target::Edit(Edit::Classify(class)) => self.class = Some(class.0),
                Target::Verdict(Verdict::Accept) => return End::Accept,
                Target::Verdict(Verdict::Drop) | Target::Reject(_) => return End::Drop,
                Target::Return => return End::Next,
                Target::Jump(to) | Target::Goto(to) => {
                    match self.chain(family, table, to, hook, probe, depth + 1) {
                        End::Next => {}
                        end => return end,
                    }
                    if matches!(ruled.rule.target, Target::Goto(_)) {
                        return End::Next;
                    }
                }
                Target::Plain(p) if matches!(p.name.as_str(), "MASQUERADE" | "SNAT") => {
                    let to = source(own.facts, family, &p.save, ruled.rule.output.as_ref());
                    self.translate(to, probe);
                    return End::Accept;
                }
                Target::Plain(p) if matches!(p.name.as_str(), "DNAT" | "REDIRECT" | "NETMAP") => {
                    self.said.push(format!(
                        "{} {chain} {}: `{}` is not followed",
                        table.name(),
                        line(),
                        p.name
                    ));
                    return End::Accept;
                }
                _ => {}
            }
        }
        End::Next
    }
}

/// Whether a rule fits; `None` where the headers do not say.
fn fits(
    rule: &Rule,
    probe: &Probe,
    conn: u32,
    input: Option<&str>,
    output: &str,
    chain: &str,
) -> Option<bool> {
    let device = |want: &Option<Iface>, name: &str| want.as_ref().is_none_or(|i| i.matches(name));
    let out = if chain == "PREROUTING" { "" } else { output };
    let bits = |addr: IpAddr| match addr {
        IpAddr::V4(addr) => u128::from(u32::from(addr)),
        IpAddr::V6(addr) => u128::from(addr),
    };
    let addr = |want: &Option<penstock_lang::iptables::AddrMatch>, addr| {
        want.as_ref().is_none_or(|a| a.matches(bits(addr)))
    };
    let plain = device(&rule.input, input.unwrap_or(""))
        && device(&rule.output, out)
        && addr(&rule.src, probe.src)
        && addr(&rule.dst, probe.dst);
    let protocol = rule.protocol.is_none_or(|(p, invert)| (p == probe.protocol) != invert);
    if !plain || !protocol || rule.fragment == Some(false) {
        return Some(false);
    }
    let mut known = true;
    for m in &rule.matches {
        let one = match m {
            Match::Tcp(t) => {
                probe.protocol == 6
                    && t.sport.matches(probe.sport)
                    && t.dport.matches(probe.dport)
                    && (t.flags.0 == 0 || ((0x10 & t.flags.0) == t.flags.1) != t.invert_flags)
            }
            Match::Udp(s, d) => probe.protocol == 17 && s.matches(probe.sport) && d.matches(probe.dport),
            Match::Mark { mark, mask, invert } => (probe.mark & mask == *mark) != *invert,
            Match::Connmark { mark, mask, invert } => (conn & mask == *mark) != *invert,
            Match::Multiport { kind, ports, invert } => {
                let on = |port: u16| ports.iter().any(|p| p.holds(port));
                let hit = match kind {
                    PortKind::Source => on(probe.sport),
                    PortKind::Destination => on(probe.dport),
                    PortKind::Either => on(probe.sport) || on(probe.dport),
                };
                hit != *invert
            }
            Match::Dscp { dscp, invert } => (probe.tos >> 2 == *dscp) != *invert,
            Match::Tos { value, mask, invert } => (probe.tos & mask == *value) != *invert,
            Match::Length { min, max, invert } => (*min..=*max).contains(&probe.len) != *invert,
            Match::Icmp { ty, code, invert } => {
                let here =
                    (probe.dport >> 8) as u8 == *ty && (code.0..=code.1).contains(&(probe.dport as u8));
                matches!(probe.protocol, 1 | 58) && (*ty == 255 || here) != *invert
            }
            Match::Ttl { ttl, mode } => {
                let word = if probe.innermost() == crate::filters::IP {
                    probe.word(8) >> 24
                } else {
                    probe.word(4) & 0xff
                };
                match mode {
                    -1 => word < u32::from(*ttl),
                    1 => word > u32::from(*ttl),
                    2 => word != u32::from(*ttl),
                    _ => word == u32::from(*ttl),
                }
            }
            Match::Iprange { src, dst } => {
                let within = |range: &Option<(u128, u128, bool)>, addr| {
                    range.is_none_or(|(from, to, invert)| (from..=to).contains(&bits(addr)) != invert)
                };
                within(src, probe.src) && within(dst, probe.dst)
            }
            Match::Comment(_) => true,
            Match::Conntrack(c) if super::chains::states(c).is_some() => super::chains::states(c)
                .is_some_and(|(bits, invert)| {
                    super::chains::has_state(bits, probe.state.unwrap_or(0)) != invert
                }),
            _ => {
                known = false;
                true
            }
        };
        if !one {
            return Some(false);
        }
    }
    known.then_some(true)
}
