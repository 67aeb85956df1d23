//! `ip rule`.
//!
//! Follows: linux v6.12 `net/core/fib_rules.c` `fib_nl_newrule`, `fib_nl_delrule`, `fib_default_rule_pref`, `rule_exists`.

use super::{Done, Failure, errno};
use crate::Host;
use crate::route::{MAIN, Rule};
use penstock_lang::ip::{self, Family, Form, RuleSpec, RuleVerb, RuleView};
use penstock_model::KernelError;

impl Host {
    pub(super) fn ip_rule(&mut self, verb: RuleVerb, mut spec: RuleSpec, form: Form) -> Done {
        let six = spec.family == Family::Inet6;
        if matches!(verb, RuleVerb::Add | RuleVerb::Del) {
            self.check_rule(&mut spec, six, verb)?;
        }
        match verb {
            RuleVerb::Show => {
                // iproute2 reads the word and does not look at it.
                spec.protocol = None;
                let views: Vec<RuleView> = self
                    .rules_of(six)
                    .iter()
                    .filter(|r| named(&spec, r))
                    .map(|r| RuleView {
                        pref: r.pref,
                        spec: r.spec.clone(),
                        detached: (r.iif == u32::MAX, r.oif == u32::MAX),
                        unresolved: r.goes_nowhere(self.rules_of(six)),
                    })
                    .collect();
                Ok(ip::rules(&views, form, self.kernel))
            }
            RuleVerb::Flush => {
                self.change_rules_of(six, |rules| rules.retain(|r| r.pref == 0 || !named(&spec, r)));
                Ok(String::new())
            }
            RuleVerb::Del => {
                let found = self.rules_of(six).iter().position(|r| named(&spec, r));
                let Some(at) = found else { return Err(errno(KernelError::ENOENT)) };
                self.change_rules_of(six, |rules| {
                    rules.remove(at);
                });
                Ok(String::new())
            }
            RuleVerb::Add => {
                let asks_table = spec.action.is_none_or(|a| a == 1) && spec.goto.is_none();
                if spec.table.is_none() && !spec.l3mdev && asks_table {
                    spec.table = Some(MAIN);
                }
                if spec.action == Some(1) {
                    spec.action = None;
                }
                let warned = std::mem::take(&mut spec.warning);
                let pref = spec.pref.take().unwrap_or(self.free_pref(six));
                let new = Rule { pref, spec, iif: 0, oif: 0, suppressed: Vec::new() };
                if self.rules_of(six).iter().any(|r| r.pref == pref && alike(&r.spec, &new.spec)) {
                    return Err(errno(KernelError::EEXIST));
                }
                self.change_rules_of(six, |rules| rules.push(new));
                self.rebind_rules();
                Ok(warned)
            }
        }
    }

    /// `fib_default_rule_pref`: before the first rule behind that of table local.
    fn free_pref(&self, six: bool) -> u32 {
        self.rules_of(six).get(1).map_or(0, |r| r.pref.saturating_sub(1))
    }
    /// What the kernel looks at in a rule, be it to be made or to be found (`fib_nl2rule`).
    fn check_rule(&self, spec: &mut RuleSpec, six: bool, verb: RuleVerb) -> Result<(), Failure> {
        // A mark of 0 without a mask is none.
        spec.fwmark = spec.fwmark.filter(|fwmark| *fwmark != (0, None));
        let wrong = |ports: Option<(u16, u16)>| {
            ports.is_some_and(|(low, high)| low == 0 || high == u16::MAX || low > high)
        };
        let refused = |why: &str| Err(self.no(KernelError::EINVAL, why));
        if spec.goto.is_some_and(|target| target <= spec.pref.unwrap_or_else(|| self.free_pref(six))) {
            return refused("Backward goto not supported");
        }
        if wrong(spec.sport) || wrong(spec.dport) {
            let which = if wrong(spec.sport) { "sport" } else { "dport" };
            return refused(&format!("Invalid {which} range"));
        }
        //= linux v6.12 net/ipv4/fib_rules.c fib4_rule_configure; net/ipv6/fib6_rules.c fib6_rule_configure
        let tos = spec.tos.filter(|_| verb == RuleVerb::Add).unwrap_or(0);
        if tos & 0x03 != 0 {
            let what = if six { "Invalid dsfield (dscp)" } else { "Invalid dsfield (tos)" };
            return refused(&format!("{what}: ECN bits must be 0"));
        }
        if !six && tos & !0x1e != 0 { refused("Invalid tos") } else { Ok(()) }
    }

    fn rules_of(&self, six: bool) -> &[Rule] {
        if six { self.six.fib.rules() } else { self.fib.rules() }
    }
    fn change_rules_of(&mut self, six: bool, change: impl FnOnce(&mut Vec<Rule>)) {
        if six { self.six.fib.change_rules(change) } else { self.fib.change_rules(change) }
    }

    /// Devices have come, gone or changed their names or groups.
    pub(crate) fn rebind_rules(&mut self) {
        let devices = &self.devices;
        let of = |name: &Option<String>| match name {
            None => 0,
            Some(name) => devices.called(name).unwrap_or(u32::MAX),
        };
        let bind = |rules: &mut Vec<Rule>| {
            for rule in rules {
                rule.suppressed = match rule.spec.suppress_group {
                    None => Vec::new(),
                    Some(group) => devices.iter().filter(|d| d.group == group).map(|d| d.ifindex).collect(),
                };
                (rule.iif, rule.oif) = (of(&rule.spec.iif), of(&rule.spec.oif));
            }
        };
        self.fib.change_rules(bind);
        self.six.fib.change_rules(bind);
    }
}

/// Whether the kernel takes a new rule for one of the same priority that is there (`rule_exists`): where the new one says no `from`, `to`, `tos`
/// or `realms`, the other's do not count (`fib4_rule_compare`), and `not` and where a `goto` leads to never do.
fn alike(old: &RuleSpec, new: &RuleSpec) -> bool {
    let looked_at = |r: &RuleSpec| RuleSpec {
        goto: r.goto.map(|_| 0),
        not: false,
        realms: if new.realms == 0 { 0 } else { r.realms },
        from: r.from.filter(|_| new.from.is_some_and(|n| n.len > 0)),
        to: r.to.filter(|_| new.to.is_some_and(|n| n.len > 0)),
        tos: r.tos.filter(|_| new.tos.is_some_and(|tos| tos != 0)),
        fwmark: r.fwmark.map(|(mark, mask)| (mark, Some(mask.unwrap_or(u32::MAX)))),
        ..r.clone()
    };
    looked_at(old) == looked_at(new)
}

/// Whether a rule has all that a command names.
fn named(spec: &RuleSpec, rule: &Rule) -> bool {
    let r = &rule.spec;
    (!spec.not || r.not)
        && (!spec.l3mdev || r.l3mdev)
        && spec.pref.is_none_or(|p| p == rule.pref)
        && spec.from.is_none_or(|n| r.from == Some(n) || n.len == 0 && r.from.is_none())
        && spec.to.is_none_or(|n| r.to == Some(n) || n.len == 0 && r.to.is_none())
        && spec.tos.is_none_or(|t| r.tos == Some(t))
        && spec.fwmark.is_none_or(|(mark, mask)| {
            r.fwmark.is_some_and(|(m, k)| m == mark && mask.is_none_or(|mask| k.unwrap_or(u32::MAX) == mask))
        })
        && spec.table.is_none_or(|t| r.table == Some(t))
        && spec.iif.as_ref().is_none_or(|d| r.iif.as_ref() == Some(d))
        && spec.oif.as_ref().is_none_or(|d| r.oif.as_ref() == Some(d))
        && spec.uids.is_none_or(|u| r.uids == Some(u))
        && spec.ipproto.is_none_or(|p| r.ipproto == Some(p))
        && spec.sport.is_none_or(|p| r.sport == Some(p))
        && spec.dport.is_none_or(|p| r.dport == Some(p))
        && spec.protocol.is_none_or(|p| r.protocol == Some(p))
        && spec.goto.is_none_or(|target| r.goto == Some(target))
        && spec.suppress.is_none_or(|len| r.suppress == Some(len))
        && spec.suppress_group.is_none_or(|group| r.suppress_group == Some(group))
        && (spec.realms == 0 || spec.realms == r.realms)
        && spec.action.is_none_or(|a| r.action == Some(a) || a == 1 && r.action.is_none())
}
