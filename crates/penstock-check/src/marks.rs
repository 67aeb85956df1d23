//! The packet filter's rules with the commands that made them, and who sets which mark.

use crate::facts::{Step, What};
use crate::standing::{OfNft, Standing, apply, by_chain};
use penstock_lang::iptables::{Action, Connmark, Edit, Family, Iface, Match, Rule, Table, Target, Verdict};
use penstock_model::{Handle, Kernel};
use std::collections::{BTreeMap, BTreeSet};

/// A rule as it stands.
#[derive(Clone, Debug)]
pub struct Ruled {
    /// Family.
    pub family: Family,
    /// Table.
    pub table: Table,
    /// Chain.
    pub chain: String,
    /// The rule.
    pub rule: Rule,
    /// The command.
    pub step: usize,
    /// The line of the text that the command reads, from 1; 0 is the command itself.
    pub line: u32,
}

/// Rules of `iptables` and `ip6tables`, and what `nft` and restored files say of marks.
#[derive(Clone, Debug, Default)]
pub struct Netfilter {
    /// Rules that were typed one by one, in the order of their chains.
    pub rules: Vec<Ruled>,
    /// All rules of `iptables` and `ip6tables` as they stand at the end, typed or restored.
    pub standing: Standing,
    /// The rules of `nft` as they stand at the end.
    pub of_nft: OfNft,
    /// The user's chains with the commands that made them.
    pub chains: Vec<(Family, Table, String, usize)>,
    /// Whether rules came from texts that are not read rule by rule.
    pub texts: bool,
    /// Marks set by `nft` and by restored files, with their commands.
    pub others: Vec<(u32, usize)>,
    /// Marks that `nft` sets on packets of one version of IP alone, by the table or by what the rule asks: mark, whether IPv6.
    pub versions: Vec<(u32, bool)>,
    /// Marks that `nft` sets.
    pub hooked: Vec<NftMark>,
    /// Statements of `nft` that save packets' marks to connections: chain, command, line of its text.
    pub saves: Vec<(String, usize, usize)>,
    /// The hooks of nft's chains.
    chains_of_nft: BTreeMap<String, String>,
    /// Whether marks are set by texts in a way that does not tell the version, or in both.
    pub any_version: bool,
    /// Whether marks are set that are no plain number.
    pub unknown: bool,
    /// Whether some of those are more than what `nft` puts back from connections as it is.
    pub odd: bool,
    /// Classes that `nft` puts packets into by `meta priority set`, with their commands and the lines of their texts.
    pub priorities: Vec<(Handle, usize, usize)>,
}

/// A mark that `nft` sets.
#[derive(Clone, Debug)]
pub struct NftMark {
    /// Its value.
    pub mark: u32,
    /// The chain's name.
    pub chain: String,
    /// The hook of the chain, where that is known.
    pub hook: Option<String>,
    /// The command.
    pub step: usize,
    /// The line of the command's text, from 0; 0 is the command itself.
    pub line: usize,
    /// The source that the rule asks for: address and bits of its prefix.
    pub source: Option<(std::net::Ipv4Addr, u32)>,
}

/// The source that a line of nft asks for, where it is one network of IPv4.
fn source_of(line: &str) -> Option<(std::net::Ipv4Addr, u32)> {
    let mut words = line.split_whitespace().skip_while(|w| *w != "saddr").skip(1);
    let (addr, bits) = words.next().map(|w| w.split_once('/').unwrap_or((w, "32")))?;
    Some((addr.parse().ok()?, bits.parse().ok().filter(|b| *b <= 32)?))
}

/// Whether a command sets marks in any way.
pub fn is_marking(step: &Step) -> bool {
    step.words.iter().any(|w| {
        matches!(
            w.as_str(),
            "MARK" | "CONNMARK" | "--set-mark" | "--set-xmark" | "skbedit" | "ctinfo" | "connmark"
        ) || w.contains("mark set")
    }) || matches!(&step.what, What::Rules(text) if text.contains("mark") || text.contains("MARK"))
}

impl Netfilter {
    /// From a script's commands.
    pub fn of(steps: &[Step], kernel: Kernel) -> Netfilter {
        let mut n = Netfilter::default();
        for (at, step) in steps.iter().enumerate().filter(|s| s.1.ok()) {
            match &step.what {
                What::Iptables(command) => {
                    n.apply(command.program.family, command.table, &command.action, at);
                    n.standing.carry_out(command, at, 0);
                }
                What::Rules(text) => {
                    n.text(text, at);
                    n.standing.restore(&step.words, text, at, kernel);
                }
                _ => {}
            }
        }
        n
    }

    fn apply(&mut self, family: Family, table: Table, action: &Action, step: usize) {
        apply(&mut self.rules, (family, table), action, (step, 0));
        match action {
            Action::NewChain(name) => self.chains.push((family, table, name.clone(), step)),
            Action::DeleteChain(name) => {
                self.chains
                    .retain(|c| (c.0, c.1) != (family, table) || name.as_ref().is_some_and(|n| *n != c.2));
            }
            _ => {}
        }
    }

    /// Marks that `nft` or a restored file sets, found by their words.
    fn text(&mut self, text: &str, step: usize) {
        let apart = |c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}' | '"' | '\'');
        let numbered = text.lines().enumerate().flat_map(|(n, l)| l.split(apart).map(move |w| (w, n)));
        let (words, lines): (Vec<&str>, Vec<usize>) = numbered.filter(|w| !w.0.is_empty()).unzip();
        let restored = text.contains("--set-mark") || text.contains("--set-xmark");
        self.any_version |= restored;
        let mut statement = Version::default();
        let mut chain = String::new();
        for (at, word) in words.iter().enumerate() {
            statement.word(&words, at);
            // `chain NAME`, `add chain FAMILY TABLE NAME`, `add rule FAMILY TABLE NAME`.
            if matches!(*word, "chain" | "rule") {
                let added = at > 0 && matches!(words[at - 1], "add" | "create" | "insert");
                let family = words.get(at + 1).is_some_and(|w| FAMILIES.contains(w));
                let name = at + if added { 2 } else { 1 } + usize::from(added && family);
                chain = words.get(name).map_or(String::new(), |w| (*w).to_owned());
            }
            if *word == "hook" {
                let hook = words.get(at + 1).map_or(String::new(), |w| (*w).to_owned());
                self.chains_of_nft.insert(chain.clone(), hook);
            }
            let value = match *word {
                // `ct mark set` marks the connection, and no filter sees that.
                "set" if at > 1 && words[at - 1] == "mark" && words[at - 2] == "ct" => {
                    let saves = words.get(at + 1).is_some_and(|w| *w == "mark")
                        || words.get(at + 1..at + 3).is_some_and(|w| w == ["meta", "mark"]);
                    self.saves.extend(saves.then(|| (chain.clone(), step, lines[at])));
                    continue;
                }
                "set" if at > 0 && words[at - 1] == "mark" => words.get(at + 1),
                "--set-mark" | "--set-xmark" => words.get(at + 1),
                "set" if at > 0 && words[at - 1] == "priority" => {
                    let id = words
                        .get(at + 1)
                        .filter(|w| w.contains(':'))
                        .and_then(|w| Handle::parse_classid(w).ok());
                    self.priorities.extend(id.map(|id| (id, step, lines[at])));
                    continue;
                }
                "--restore-mark" => {
                    (self.unknown, self.odd) = (true, true);
                    None
                }
                _ => continue,
            };
            let Some(value) = value else { continue };
            match number(value.split('/').next().unwrap_or("")) {
                Some(mark) => {
                    self.others.push((mark, step));
                    self.hooked.push(NftMark {
                        mark,
                        chain: chain.clone(),
                        hook: self.chains_of_nft.get(&chain).cloned(),
                        step,
                        line: lines[at],
                        source: text.lines().nth(lines[at]).and_then(source_of),
                    });
                    match statement.of() {
                        Some(six) if !restored => self.versions.push((mark, six)),
                        _ => self.any_version = true,
                    }
                }
                None => {
                    self.unknown = true;
                    self.odd |= *value != "ct" || words.get(at + 2) != Some(&"mark");
                }
            }
        }
        // A file that cannot be read may set any mark.
        let from_file = text.lines().next().is_some_and(|l| l.contains(" -f") || l.contains("restore"));
        let absent = from_file && text.lines().nth(1).is_none();
        (self.unknown, self.odd) = (self.unknown || absent, self.odd || absent);
        self.texts = true;
    }

    /// Every mark that rules set: value, mask, command. `None` where some are set that nobody can tell.
    pub fn marks(&self) -> Option<Vec<(u32, u32, usize)>> {
        if self.unknown {
            return None;
        }
        let set = self.rules.iter().filter_map(|r| match &r.rule.target {
            Target::Edit(Edit::Mark { value, mask }) => Some((*value, *mask, r.step)),
            Target::Edit(Edit::Connmark { op: Connmark::Set, value, .. }) => Some((*value, u32::MAX, r.step)),
            _ => None,
        });
        Some(set.chain(self.others.iter().map(|o| (o.0, u32::MAX, o.1))).collect())
    }

    /// Whether marks travel with connections: set on one packet, put back on others in both directions.
    pub fn travels(&self) -> bool {
        self.unknown
            || self
                .rules
                .iter()
                .any(|r| matches!(r.rule.target, Target::Edit(Edit::Connmark { op: Connmark::Restore, .. })))
    }

    /// The built-in chains that lead to a chain, each with the devices all ways there ask for.
    pub fn ways(&self, ruled: &Ruled) -> Vec<(String, Vec<Iface>, Vec<Iface>)> {
        let mut found = Vec::new();
        let mut todo = vec![(
            ruled.chain.clone(),
            Vec::from_iter(ruled.rule.input.clone()),
            Vec::from_iter(ruled.rule.output.clone()),
        )];
        let mut seen = BTreeSet::new();
        while let Some((chain, input, output)) = todo.pop() {
            if ruled.table.built_in().contains(&chain.as_str()) {
                found.push((chain, input, output));
                continue;
            }
            for from in self.rules.iter().filter(|r| (r.family, r.table) == (ruled.family, ruled.table)) {
                let jumps = matches!(&from.rule.target, Target::Jump(to) | Target::Goto(to) if *to == chain);
                if jumps && seen.insert((from.step, from.chain.clone(), chain.clone())) {
                    let mut both = (input.clone(), output.clone());
                    both.0.extend(from.rule.input.clone());
                    both.1.extend(from.rule.output.clone());
                    todo.push((from.chain.clone(), both.0, both.1));
                }
            }
        }
        found
    }

    /// Chains with their rules, in order.
    pub fn by_chain(&self) -> BTreeMap<(u8, Table, &str), Vec<&Ruled>> {
        by_chain(&self.rules)
    }
}

/// Families of nft's tables.
const FAMILIES: [&str; 6] = ["ip", "ip6", "inet", "arp", "bridge", "netdev"];

/// The version of IP that a rule of nft is for, as its words go by.
#[derive(Default)]
struct Version {
    /// Of the table.
    table: Option<bool>,
    /// Of what the rule asks for so far.
    rule: Option<bool>,
}

impl Version {
    fn word(&mut self, words: &[&str], at: usize) {
        let version = |w: Option<&&str>| match w {
            Some(&"ip6") => Some(true),
            Some(&("inet" | "bridge" | "netdev" | "arp")) => None,
            _ => Some(false),
        };
        let next = words.get(at + 1);
        match words[at] {
            // `table ip NAME`, `add rule ip NAME CHAIN`: without a family it is ip.
            "table" | "rule" => (self.table, self.rule) = (version(next), None),
            // A rule has ended where the next begins with its verdict or its action behind it.
            "accept" | "return" | "drop" | "chain" | "counter" => self.rule = None,
            "ip" | "icmp" if !matches!(at.checked_sub(1).map(|n| words[n]), Some("table" | "rule")) => {
                self.rule = Some(false);
            }
            "ip6" | "icmpv6" if !matches!(at.checked_sub(1).map(|n| words[n]), Some("table" | "rule")) => {
                self.rule = Some(true);
            }
            _ => {}
        }
    }
    fn of(&mut self) -> Option<bool> {
        self.rule.take().or(self.table)
    }
}

/// A number as shells and tools write it.
pub fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Whether every packet that fits `b` fits `a` too: all that `a` asks `b` asks as well.
pub fn covers(a: &Rule, b: &Rule) -> bool {
    let plain = |m: &Match| !matches!(m, Match::Comment(_));
    let addr = |x: &Option<penstock_lang::iptables::AddrMatch>,
                y: &Option<penstock_lang::iptables::AddrMatch>| match (x, y) {
        (None, _) => true,
        (Some(x), Some(y)) => {
            x == y || !x.invert && !y.invert && x.mask & !y.mask == 0 && (x.addr ^ y.addr) & x.mask == 0
        }
        _ => false,
    };
    let same = |x: &Option<Iface>, y: &Option<Iface>| x.is_none() || x == y;
    same(&a.input, &b.input)
        && same(&a.output, &b.output)
        && addr(&a.src, &b.src)
        && addr(&a.dst, &b.dst)
        && (a.protocol.is_none() || a.protocol == b.protocol)
        && (a.fragment.is_none() || a.fragment == b.fragment)
        && a.matches
            .iter()
            .filter(|m| plain(m))
            .all(|m| is_open(m) || b.matches.iter().any(|of| m == of || has_ports(m, of)))
}

/// Whether a match by ports takes all ports of another: `--dport 1:1024` those of `--dport 22`.
fn has_ports(wide: &Match, narrow: &Match) -> bool {
    use penstock_lang::iptables::{PortKind, PortMatch, Ports};
    let within = |a: Ports, b: Ports| a.from <= b.from && b.to <= a.to;
    let side = |a: PortMatch, b: PortMatch| {
        a == b || a == PortMatch::ANY || !a.invert && !b.invert && within(a.ports, b.ports)
    };
    match (wide, narrow) {
        (Match::Tcp(a), Match::Tcp(b)) => {
            side(a.sport, b.sport)
                && side(a.dport, b.dport)
                && (a.flags == (0, 0) || a.flags == b.flags && a.invert_flags == b.invert_flags)
                && (a.option.is_none() || a.option == b.option)
        }
        (Match::Udp(s, d), Match::Udp(t, e)) => side(*s, *t) && side(*d, *e),
        (
            Match::Multiport { kind, ports, invert: false },
            Match::Multiport { kind: of, ports: few, invert: false },
        ) => kind == of && few.iter().all(|f| ports.iter().any(|p| within(*p, *f))),
        (Match::Multiport { kind, ports, invert: false }, Match::Tcp(_) | Match::Udp(..)) => {
            let (source, destination) = match narrow {
                Match::Tcp(t) => (t.sport, t.dport),
                Match::Udp(s, d) => (*s, *d),
                _ => return false,
            };
            let all = |m: PortMatch| !m.invert && ports.iter().any(|p| within(*p, m.ports));
            match kind {
                PortKind::Source => all(source),
                PortKind::Destination => all(destination),
                _ => all(source) || all(destination),
            }
        }
        _ => false,
    }
}

/// A match of a protocol's that asks for nothing.
fn is_open(m: &Match) -> bool {
    use penstock_lang::iptables::PortMatch;
    match m {
        Match::Tcp(t) => {
            t.sport == PortMatch::ANY && t.dport == PortMatch::ANY && t.flags == (0, 0) && t.option.is_none()
        }
        Match::Udp(s, d) => *s == PortMatch::ANY && *d == PortMatch::ANY,
        _ => false,
    }
}

/// Whether a packet that fits goes no further in its table's hook, or leaves the chain.
pub fn leaves(target: &Target) -> bool {
    matches!(
        target,
        Target::Verdict(Verdict::Accept | Verdict::Drop)
            | Target::Return
            | Target::Goto(_)
            | Target::Reject(_)
    )
}
