//! Rules of nft as sets of packets: what each asks of a packet as it is by then, and what it does.
//!
//! Follows: linux v6.12 `net/netfilter/nf_tables_core.c` `nft_do_chain`, `net/netfilter/core.c` `nf_hook_slow` (chains and tables of a hook by
//! priority), `include/uapi/linux/netfilter_ipv4.h` `enum nf_ip_hook_priorities`.

mod change;
mod keys;

pub(super) use change::Change;
use change::changed;

use super::ask::{State, tos_at};
use super::cube::{Any, Cube, Names, Place};
use crate::facts::Facts;
use crate::filters::{IP, IP6};
use penstock_host::netfilter::nft::{StandingChain, StandingTable};
use penstock_lang::iptables::{self, Iface, Table};
use penstock_lang::nft::{Data, Expr, Family, Kind, Options, Rule, Statement, Verdict, dynamic, show};
use std::collections::BTreeMap;

/// Where packets are on their way, with the devices they are at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hook<'a> {
    /// `PREROUTING`, `ingress`, ….
    pub name: &'a str,
    /// The device they leave by.
    pub output: &'a str,
}

/// What stands at a hook, in order.
pub(super) enum Station {
    /// A table of iptables.
    Table(Table),
    /// A base chain of nft.
    Chain(Base),
}

/// A base chain with all chains of its table.
pub(super) struct Base {
    /// Its table and itself in words.
    pub name: String,
    /// Its own name.
    pub chain: String,
    /// Whether it translates.
    pub nat: bool,
    /// Where its policy drops what no rule accepts: the command, and the line of the text that it reads.
    pub drops: Option<(usize, u32)>,
    /// The packets that come to it.
    pub comes: Any,
    /// Chains of its table by name.
    pub chains: BTreeMap<String, Vec<Line>>,
}

/// A rule.
pub(super) struct Line {
    /// Its command, and the line of the text that it reads.
    pub by: (usize, u32),
    /// As `nft list` writes it.
    pub text: String,
    /// What may become of a packet: the first of these that it fits does.
    pub ways: Vec<Way>,
    /// What of it is not followed.
    pub lost: Vec<String>,
}

/// What becomes of some packets at a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Way {
    /// The packets as they are by then: [`Place::Mark`] and [`Place::Conn`] are the marks that they have now.
    pub asked: Any,
    /// What is done to them.
    pub changes: Vec<Change>,
    /// Where they go on.
    pub end: End,
}

/// Where packets go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// With the next rule.
    Next,
    /// They are through with this base chain.
    Accept,
    /// They are gone.
    Drop,
    /// Where this chain was called from.
    Return,
    /// In another chain, and then here.
    Jump(String),
    /// In another chain alone.
    Goto(String),
}

/// More sets than these are not made of one rule.
const MOST: usize = 1 << 17;

/// Both of two lists; `None` where they would be too many.
fn both(a: &[Cube], b: &[Cube]) -> Option<Any> {
    let few = a.len().saturating_mul(b.len()) <= MOST;
    few.then(|| a.iter().flat_map(|x| b.iter().filter_map(|y| x.and(y))).collect())
}

/// Who asks.
pub(super) struct Asking<'a> {
    facts: &'a Facts,
    table: &'a StandingTable,
    names: &'a mut Names,
    hook: Hook<'a>,
    /// The line at hand, in words.
    place: String,
}

/// Numbers of the priorities at a hook.
const fn priority(table: Table, late: bool) -> i32 {
    match table {
        Table::Raw => -300,
        Table::Mangle => -150,
        Table::Nat if late => 100,
        Table::Nat => -100,
        Table::Filter => 0,
        Table::Security => 50,
    }
}

/// What stands at a hook, in order: of equal priorities the tables of iptables first, then the older chain.
pub(super) fn stations<'a>(facts: &'a Facts, hook: Hook<'a>, names: &mut Names) -> Vec<Station> {
    let late = hook.name == "POSTROUTING";
    let mut all: Vec<((i32, u8, i32), Station)> = Vec::new();
    for table in Table::ALL.into_iter().filter(|t| t.built_in().contains(&hook.name)) {
        let class = u8::from(table == Table::Nat);
        let own = priority(table, late);
        all.push(((own, class, own), Station::Table(table)));
    }
    for table in &facts.netfilter.of_nft.tables {
        for chain in &table.chains {
            let Some(base) = &chain.base else { continue };
            if base.hook != hook.name.to_ascii_lowercase() {
                continue;
            }
            let nat = base.ty == "nat";
            let comes = match comes(table.family, &base.devices, hook, names) {
                Some(comes) => comes,
                None => continue,
            };
            // Chains that translate are asked where translation stands, by their own priorities.
            let order = if nat {
                (priority(Table::Nat, late), 1, base.priority)
            } else {
                (base.priority, 2, base.priority)
            };
            let drops = base.drop.then(|| facts.netfilter.of_nft.by(chain.written, &facts.steps));
            let name = format!("{} {} {}", table.family.name(), table.name, chain.name);
            let chains = lines(facts, table, hook, &comes, names);
            let base = Base { name, chain: chain.name.clone(), nat, drops, comes, chains };
            all.push((order, Station::Chain(base)));
        }
    }
    all.sort_by_key(|s| s.0);
    all.into_iter().map(|s| s.1).collect()
}

/// The packets that come to a base chain; `None`: none on this way.
fn comes(family: Family, devices: &[String], hook: Hook<'_>, names: &mut Names) -> Option<Any> {
    let here = match hook.name {
        "ingress" => devices.iter().map(|d| Cube::of(Place::Input, 0xffff, names.input(d))).collect(),
        "egress" if devices.iter().any(|d| d == hook.output) => vec![Cube::all()],
        "egress" => return None,
        _ => vec![Cube::all()],
    };
    let versions: Any = match family {
        Family::Ip => vec![Cube::ethertype(IP)],
        Family::Ip6 => vec![Cube::ethertype(IP6)],
        Family::Inet if matches!(hook.name, "ingress" | "egress") => vec![Cube::all()],
        Family::Inet => vec![Cube::ethertype(IP), Cube::ethertype(IP6)],
        Family::Netdev => vec![Cube::all()],
        Family::Arp | Family::Bridge => return None,
    };
    both(&here, &versions).filter(|all| !all.is_empty())
}

/// All chains of a table, as rules at a hook.
fn lines(
    facts: &Facts,
    table: &StandingTable,
    hook: Hook<'_>,
    comes: &Any,
    names: &mut Names,
) -> BTreeMap<String, Vec<Line>> {
    let mut of = |chain: &StandingChain| -> Vec<Line> {
        let of = |(rule, written): &(Rule, _)| {
            let by = facts.netfilter.of_nft.by(*written, &facts.steps);
            let place = facts.rule_place(by.0, by.1);
            let asking = &mut Asking { facts, table, names: &mut *names, hook, place };
            asking.line(rule, by, comes)
        };
        chain.rules.iter().map(of).collect()
    };
    table.chains.iter().map(|c| (c.name.clone(), of(c))).collect()
}

/// A rule's statements one after the other, as far as they have been gone through.
#[derive(Clone)]
struct So {
    asked: Any,
    changes: Vec<Change>,
    /// What the rule has set by now.
    state: State,
    /// Whether it has set marks to what is not known here.
    blurred: bool,
}

impl Asking<'_> {
    fn line(&mut self, rule: &Rule, by: (usize, u32), comes: &Any) -> Line {
        let plain = Options { stateless: true, ..Options::default() };
        let mut line = Line {
            by,
            text: show::rule(rule, self.table.family, &plain),
            ways: Vec::new(),
            lost: Vec::new(),
        };
        let so = So { asked: comes.clone(), changes: Vec::new(), state: State::default(), blurred: false };
        self.statements(&rule.statements, so, &mut line);
        line
    }

    fn statements(&mut self, all: &[Statement], so: So, line: &mut Line) {
        if so.asked.is_empty() {
            return;
        }
        let ends = |so: So, end: End, line: &mut Line| {
            line.ways.push(Way { asked: so.asked, changes: so.changes, end });
        };
        let Some((first, rest)) = all.split_first() else {
            if !so.changes.is_empty() {
                ends(so, End::Next, line);
            }
            return;
        };
        match first {
            Statement::Match(left, how, right) => {
                let asked = self.holds(left, *how, right);
                let asked = asked.and_then(|a| self.now(a, &so)).unwrap_or_else(|| self.other(first));
                self.those(asked, rest, so, line);
            }
            Statement::Limit(_) | Statement::Quota(_) | Statement::Count { .. } => {
                let asked = self.other(first);
                self.those(asked, rest, so, line);
            }
            Statement::Object(kind, ..) if *kind != Kind::Counter => {
                let asked = self.other(first);
                self.those(asked, rest, so, line);
            }
            Statement::Dynset(d) => {
                let own = d.states.iter().any(|s| !matches!(s, Statement::Counter(..)));
                if own || d.op != dynamic::Op::Delete && self.table.set(&d.set).is_some_and(limits) {
                    let asked = self.other(first);
                    self.those(asked, rest, so, line);
                } else {
                    self.statements(rest, so, line);
                }
            }
            Statement::Set(left, right) => self.sets(left, right, first, rest, so, line),
            Statement::Verdict(verdict) => {
                let end = end(verdict);
                if end != End::Next || !so.changes.is_empty() {
                    ends(so, end, line);
                }
            }
            Statement::Vmap(key, map) => {
                let Some(groups) = self.groups(key, map) else {
                    // Some of its verdicts may hold: that is a condition, and what then becomes of the packet nobody says.
                    line.lost.push(self.text(first));
                    self.statements(rest, so.lost(), line);
                    return;
                };
                let Some(groups) = self.all_now(groups, &so) else {
                    line.lost.push(self.text(first));
                    self.statements(rest, so.lost(), line);
                    return;
                };
                for (asked, data) in groups {
                    let Data::Verdict(verdict) = data else { continue };
                    if let Some(asked) = both(&so.asked, &asked).filter(|a| !a.is_empty()) {
                        ends(So { asked, ..so.clone() }, end(&verdict), line);
                    }
                }
                // What is not in the map goes on; what does not have its key leaves the rule.
                let asked = self.have(key);
                let asked = asked.and_then(|a| self.now(a, &so)).unwrap_or_else(|| self.other(first));
                self.those(asked, rest, so, line);
            }
            Statement::Reject(..) => ends(so, End::Drop, line),
            Statement::Nat(text) => self.translates(text, so, line),
            Statement::Notrack => {
                line.lost.push(self.text(first));
                self.statements(rest, so.lost(), line);
            }
            Statement::Counter(..) | Statement::Object(..) | Statement::Log(_) | Statement::Other(_) => {
                self.statements(rest, so, line);
            }
        }
    }

    /// `masquerade`, `snat`, and what is not followed.
    fn translates(&mut self, text: &str, so: So, line: &mut Line) {
        let mut words = text.split_whitespace();
        let own = match words.next() {
            Some("masquerade") => true,
            Some("snat") => false,
            // Filters see another destination then.
            _ => {
                line.lost.push(text.to_owned());
                let so = so.lost();
                line.ways.push(Way { asked: so.asked, changes: so.changes, end: End::Accept });
                return;
            }
        };
        let to = words.skip_while(|w| *w != "to").nth(1).unwrap_or("");
        let output = Iface { name: self.hook.output.to_owned(), wildcard: false, invert: false };
        for (family, ethertype) in [(iptables::Family::Ip, IP), (iptables::Family::Ip6, IP6)] {
            let asked = both(&so.asked, &[Cube::ethertype(ethertype)]).unwrap_or_default();
            if asked.is_empty() {
                continue;
            }
            let save = if own { text.to_owned() } else { format!("SNAT --to-source {to}") };
            let source = super::hooks::source(self.facts, family, &save, Some(&output));
            let changes = [so.changes.clone(), vec![Change::Source(source)]].concat();
            line.ways.push(Way { asked, changes, end: End::Accept });
        }
    }

    /// Goes on with those packets that are asked for; what has been done to the others stays done.
    fn those(&mut self, asked: Any, rest: &[Statement], so: So, line: &mut Line) {
        let Some(both) = both(&so.asked, &asked) else {
            line.lost.push(line.text.clone());
            let changes = [so.changes, vec![Change::Lost]].concat();
            line.ways.push(Way { asked: so.asked, changes, end: End::Next });
            return;
        };
        self.statements(rest, So { asked: both, ..so.clone() }, line);
        if !so.changes.is_empty() {
            line.ways.push(Way { asked: so.asked, changes: so.changes, end: End::Next });
        }
    }

    /// `… set …`.
    fn sets(
        &mut self,
        left: &Expr,
        right: &Expr,
        whole: &Statement,
        rest: &[Statement],
        so: So,
        line: &mut Line,
    ) {
        let goes_on = |so: &So, change: Change| {
            let mut so = so.clone();
            so.note(change);
            so.changes.push(change);
            so
        };
        if let Expr::Map(key, map) = right {
            let groups = self.groups(key, map).and_then(|g| self.all_now(g, &so));
            let Some(groups) = groups else {
                line.lost.push(self.text(whole));
                return self.statements(rest, so.lost(), line);
            };
            for (asked, data) in groups {
                let Data::Value(value) = data else { continue };
                let Some(asked) = both(&so.asked, &asked) else {
                    line.lost.push(self.text(whole));
                    continue;
                };
                let so = So { asked, ..so.clone() };
                match changed(left, &value) {
                    Some(Some(change)) => self.statements(rest, goes_on(&so, change), line),
                    Some(None) => self.statements(rest, so, line),
                    None => {
                        line.lost.push(self.text(whole));
                        self.statements(rest, so.lost(), line);
                    }
                }
            }
            if !so.changes.is_empty() {
                line.ways.push(Way { asked: so.asked, changes: so.changes, end: End::Next });
            }
            return;
        }
        match changed(left, right) {
            // A header that the packet does not have is not changed.
            Some(Some(change @ Change::Tos { six, .. })) => {
                let own = Cube::ethertype(if six { IP6 } else { IP });
                let other = Cube::ethertype(if six { IP } else { IP6 });
                let mine = both(&so.asked, &[own]).unwrap_or_default();
                let others = both(&so.asked, &[other]).unwrap_or_default();
                self.statements(rest, goes_on(&So { asked: mine, ..so.clone() }, change), line);
                self.statements(rest, So { asked: others, ..so }, line);
            }
            Some(Some(change)) => self.statements(rest, goes_on(&so, change), line),
            Some(None) => self.statements(rest, so, line),
            None => {
                line.lost.push(self.text(whole));
                self.statements(rest, so.lost(), line);
            }
        }
    }

    /// What a map gives, with the packets it gives it to; `None` where headers do not tell.
    fn groups(&mut self, key: &Expr, map: &Expr) -> Option<Vec<(Any, Data)>> {
        let set = self.set(map)?.clone();
        let mut out: Vec<(Any, Data)> = Vec::new();
        for element in &set.elements {
            let data = element.data.clone()?;
            let asked = self.shown(key, &element.key)?;
            match out.iter_mut().find(|o| o.1 == data) {
                Some(same) => same.0.extend(asked),
                None => out.push((asked, data)),
            }
        }
        Some(out)
    }
    fn all_now(&self, groups: Vec<(Any, Data)>, so: &So) -> Option<Vec<(Any, Data)>> {
        groups.into_iter().map(|(asked, data)| Some((self.now(asked, so)?, data))).collect()
    }

    /// What is asked of packets behind what their rule has set: asked of them as they came to the rule. `None`: that cannot be told.
    fn now(&self, asked: Any, so: &So) -> Option<Any> {
        let marks = |c: &Cube| c.0.iter().any(|b| matches!(b.0, Place::Mark | Place::Conn));
        if so.blurred && asked.iter().any(marks) {
            return None;
        }
        Some(asked.iter().filter_map(|c| settled(c, &so.state, Place::Conn)).collect())
    }

    /// What only connections, counters, sets that packets change or time tell: a condition of its own.
    fn other(&mut self, statement: &Statement) -> Any {
        let text = format!("{}, {}", self.text(statement), self.place);
        vec![Cube::of(Place::Other(self.names.other(&text)), 1, 1)]
    }
    fn text(&self, statement: &Statement) -> String {
        let rule = Rule { statements: vec![statement.clone()], comment: None };
        show::rule(&rule, self.table.family, &Options::default())
    }

    /// The packets that came in by a device, or by one whose name begins so.
    fn came_by(&self, wanted: &Iface) -> Any {
        match self.hook.name {
            "OUTPUT" | "egress" => wanted.matches("").then(Cube::all).into_iter().collect(),
            _ if wanted.wildcard && wanted.name.is_empty() => vec![Cube::all()],
            _ => {
                let all = self.names.numbers(wanted).into_iter();
                all.map(|n| Cube::of(Place::Input, 0xffff, n)).collect()
            }
        }
    }
    /// The packets that leave by one.
    fn leaves_by(&self, wanted: &Iface) -> Any {
        let output = if matches!(self.hook.name, "PREROUTING" | "ingress") { "" } else { self.hook.output };
        if output.is_empty() {
            return wanted.matches("").then(Cube::all).into_iter().collect();
        }
        super::chains::leaves_by(self.facts, self.names, output, wanted).into_iter().collect()
    }
}

/// Whether the elements of a set limit anything.
fn limits(set: &penstock_lang::nft::Set) -> bool {
    set.states.iter().any(|s| !matches!(s, Statement::Counter(..)))
}

fn end(verdict: &Verdict) -> End {
    match verdict {
        Verdict::Accept => End::Accept,
        Verdict::Drop => End::Drop,
        Verdict::Continue => End::Next,
        Verdict::Return => End::Return,
        Verdict::Jump(to) => End::Jump(to.clone()),
        Verdict::Goto(to) => End::Goto(to.clone()),
    }
}

impl So {
    /// A statement is not followed here.
    fn lost(mut self) -> So {
        self.changes.push(Change::Lost);
        self
    }
    fn note(&mut self, change: Change) {
        match change {
            Change::Mark(b) | Change::Conn(b) if b.of_mark | b.of_conn != 0 => self.blurred = true,
            Change::Mark(b) => self.state.mark = (u32::MAX, b.xor),
            Change::Conn(b) => self.state.conn = (u32::MAX, b.xor),
            Change::Tos { six, mask, value } => {
                self.state.tos = (self.state.tos.0 | mask, self.state.tos.1 & !mask | value);
                self.state.six = six;
            }
            Change::Priority(_) | Change::Source(_) | Change::Lost => {}
        }
    }
}

/// A set of packets as they are now, as a set of packets as they came: bits that were set since fall out. Those of the connection's mark
/// which nobody has set stand at `conn` then.
pub(super) fn settled(cube: &Cube, state: &State, conn: Place) -> Option<Cube> {
    let mut out = Cube::all();
    for &(place, mask, value) in &cube.0 {
        let one = match place {
            Place::Conn => {
                let (known, is) = state.conn;
                if (is ^ value) & mask & known != 0 {
                    return None;
                }
                Cube::of(conn, mask & !known, value)
            }
            _ => super::ask::adapt(&Cube::of(place, mask, value), state)?,
        };
        out = out.and(&one)?;
    }
    Some(out)
}

/// Whether a set of packets asks for what rules may have set.
pub(super) fn asks_state(cube: &Cube) -> bool {
    cube.0.iter().any(|&(place, mask, _)| match place {
        Place::Mark | Place::Conn => true,
        Place::Word(0) => mask & (0xff << tos_at(false) | 0xff << tos_at(true)) != 0,
        _ => false,
    })
}

/// A rule that no packet comes to, for one before it in its chain that takes all of its packets and does something else with them.
pub(crate) struct Behind {
    /// The command, and the line of the text that it reads.
    pub by: (usize, u32),
    /// The same of the rule before it.
    pub taker: (usize, u32),
    /// What that one does with them: `accept`, `drop`.
    pub verdict: &'static str,
}

/// Rules of nft that stand behind one which takes all of their packets.
pub(crate) fn behind(facts: &Facts) -> Vec<Behind> {
    let mut out: Vec<Behind> = Vec::new();
    // What hangs on more than the packet's own bits, or on what rules before may have set, is not compared.
    let plain = |cube: &Cube| !cube.0.iter().any(|p| matches!(p.0, Place::Other(_))) && !asks_state(cube);
    let within = |few: &Any, many: &Any| {
        let holds = |c: &Cube| many.iter().filter(|d| plain(d)).any(|d| c.and(d).as_ref() == Some(c));
        !few.is_empty() && few.iter().all(holds)
    };
    let verdict = |way: &Way| match way.end {
        End::Accept if way.changes.is_empty() => Some("accept"),
        End::Drop => Some("drop"),
        _ => None,
    };
    for hook in ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"] {
        let mut names = Names::default();
        devices(&facts.netfilter.of_nft.tables, &mut names);
        for station in stations(facts, Hook { name: hook, output: "" }, &mut names) {
            let Station::Chain(base) = station else { continue };
            for lines in base.chains.values() {
                for (at, late) in lines.iter().enumerate().filter(|l| l.1.lost.is_empty()) {
                    let [way] = late.ways.as_slice() else { continue };
                    let own = verdict(way);
                    if own.is_none() && way.changes.is_empty() {
                        continue;
                    }
                    let taker = lines[..at].iter().filter(|l| l.lost.is_empty()).find_map(|l| {
                        let ends = |w: &&Way| verdict(w).is_some() && within(&way.asked, &w.asked);
                        Some((l, verdict(l.ways.iter().find(ends)?)?))
                    });
                    let Some((line, does)) = taker.filter(|t| Some(t.1) != own) else { continue };
                    if out.iter().all(|o| o.by != late.by) && line.by != late.by {
                        out.push(Behind { by: late.by, taker: line.by, verdict: does });
                    }
                }
            }
        }
    }
    out
}

/// Every device that rules name as one that packets come in by.
pub(super) fn devices(tables: &[StandingTable], names: &mut Names) {
    let mut known = |name: &String| {
        let wildcard = name.ends_with('*');
        let name = name.trim_end_matches('*').to_owned();
        if !name.is_empty() {
            names.known(&Iface { name, wildcard, invert: false });
        }
    };
    let mut of = |e: &Expr| {
        each(e, &mut |e| {
            if let Expr::Name(name) = e {
                known(name);
            }
        });
    };
    for table in tables {
        for chain in &table.chains {
            for device in chain.base.iter().flat_map(|b| &b.devices) {
                of(&Expr::Name(device.clone()));
            }
            for statement in chain.rules.iter().flat_map(|r| &r.0.statements) {
                match statement {
                    Statement::Match(left, _, right) if comes_in(left) => of(right),
                    Statement::Vmap(key, map) if comes_in(key) => of(map),
                    Statement::Set(_, map @ Expr::Map(key, _)) if comes_in(key) => of(map),
                    _ => {}
                }
            }
        }
        for (_, set) in &table.sets {
            set.elements.iter().for_each(|e| of(&e.key));
        }
    }
}

/// Whether an expression looks at the device a packet came in by.
fn comes_in(e: &Expr) -> bool {
    let mut found = false;
    each(e, &mut |e| found |= matches!(e, Expr::Meta("iifname" | "iif")));
    found
}

fn each(e: &Expr, what: &mut dyn FnMut(&Expr)) {
    what(e);
    match e {
        Expr::Op(_, a, b) | Expr::Map(a, b) => {
            each(a, what);
            each(b, what);
        }
        Expr::Concat(all) => all.iter().for_each(|e| each(e, what)),
        Expr::Set(set) => set.elements.iter().for_each(|e| each(&e.key, what)),
        _ => {}
    }
}

/// Tables whose packets do not go this way: what is said of them.
pub(super) fn elsewhere(tables: &[StandingTable]) -> Vec<String> {
    let other = |t: &&StandingTable| matches!(t.family, Family::Arp | Family::Bridge);
    let rules = |t: &&StandingTable| t.chains.iter().any(|c| !c.rules.is_empty());
    let all = tables.iter().filter(other).filter(rules);
    all.map(|t| format!("table {} {} of nft is not followed", t.family.name(), t.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rule_has_set_is_not_asked_of_the_packet() {
        let state = State { mark: (u32::MAX, 5), ..State::default() };
        let asked = |value| settled(&Cube::of(Place::Mark, u32::MAX, value), &state, Place::Mark);
        assert_eq!((asked(5), asked(6)), (Some(Cube::all()), None));
        let conn = Cube::of(Place::Conn, 7, 5);
        let partly = State { conn: (4, 4), ..State::default() };
        assert_eq!(settled(&conn, &partly, Place::Mark), Some(Cube::of(Place::Mark, 3, 1)));
    }
}
