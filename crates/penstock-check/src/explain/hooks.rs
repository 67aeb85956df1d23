//! A packet's way through netfilter's rules, as far as marks, ToS and classes go.

use super::Probe;
use crate::facts::Facts;
use crate::marks::Ruled;
use penstock_lang::iptables::{Edit, Family, Iface, Match, PortKind, Rule, Table, Target, Verdict};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What became of it at the hooks.
pub(super) struct Passed {
    /// What happened, in order.
    pub said: Vec<String>,
    /// Whether a rule dropped it.
    pub dropped: bool,
    /// The class a rule chose.
    pub class: Option<u32>,
}

/// netfilter's rules by chain.
pub(super) struct Hooks<'a> {
    facts: &'a Facts,
    chains: BTreeMap<(u8, Table, &'a str), Vec<&'a Ruled>>,
}

struct Way<'a> {
    own: &'a Hooks<'a>,
    output: &'a str,
    said: Vec<String>,
    class: Option<u32>,
}

/// How a chain ends.
enum End {
    Next,
    Accept,
    Drop,
}

impl<'a> Hooks<'a> {
    pub fn new(facts: &'a Facts) -> Hooks<'a> {
        Hooks { facts, chains: facts.netfilter.by_chain() }
    }

    /// Takes the packet through the hooks on its way out by `output`.
    pub fn pass(&self, probe: &mut Probe, output: &str) -> Passed {
        let hooks: &[&str] = if probe.input.is_some() {
            &["PREROUTING", "FORWARD", "POSTROUTING"]
        } else {
            &["OUTPUT", "POSTROUTING"]
        };
        let family = match probe.ethertype() {
            crate::filters::IP => Family::Ip,
            crate::filters::IP6 => Family::Ip6,
            _ => return Passed { said: Vec::new(), dropped: false, class: None },
        };
        let mut way = Way { own: self, output, said: Vec::new(), class: None };
        for hook in hooks {
            for table in Table::ALL {
                let before = (probe.mark, probe.tos);
                if table.built_in().contains(hook)
                    && let End::Drop = way.chain(family, table, hook, hook, probe, 0)
                {
                    return Passed { said: way.said, dropped: true, class: way.class };
                }
                if (probe.mark, probe.tos) != before {
                    way.said.push(format!(
                        "{} {hook}: mark {} -> {}, tos {:#04x} -> {:#04x}",
                        table.name(),
                        before.0,
                        probe.mark,
                        before.1,
                        probe.tos
                    ));
                }
            }
            // `ip_forward` sets the priority from the ToS.
            if *hook == "PREROUTING" && family == Family::Ip {
                probe.priority = penstock_host::rt_tos2priority(self.facts.kernel, probe.tos);
            }
        }
        Passed { said: way.said, dropped: false, class: way.class }
    }
}

impl Way<'_> {
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
            let line = || own.facts.steps[ruled.step].line;
            match fits(&ruled.rule, probe, input.as_deref(), self.output, hook) {
                Some(true) => {}
                Some(false) => continue,
                None => {
                    self.said.push(format!(
                        "{} {chain} line {}: cannot be told from the headers alone; taken as not fitting",
                        table.name(),
                        line()
                    ));
                    continue;
                }
            }
            self.said.push(format!(
                "{} {chain} line {}: {}",
                table.name(),
                line(),
                ruled.rule.target.name(family)
            ));
            match &ruled.rule.target {
                Target::Edit(Edit::Mark { value, mask }) => probe.mark = probe.mark & !mask ^ value,
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
                    self.said.push(
                        "the source address is translated here; filters on the device see the outside one"
                            .to_owned(),
                    );
                    return End::Accept;
                }
                _ => {}
            }
        }
        End::Next
    }
}

/// Whether a rule fits; `None` where the headers do not say.
fn fits(rule: &Rule, probe: &Probe, input: Option<&str>, output: &str, chain: &str) -> Option<bool> {
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
                let word = if probe.ethertype() == crate::filters::IP {
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
