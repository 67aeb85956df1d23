//! `ip rule`.
//!
//! Follows: linux v6.12 `net/core/fib_rules.c` `fib_nl_newrule`, `fib_nl_delrule`, `fib_default_rule_pref`, `rule_exists`.

use super::{Done, errno};
use crate::Host;
use crate::route::{MAIN, Rule};
use penstock_lang::ip::{self, Family, Form, RuleSpec, RuleVerb, RuleView};
use penstock_model::KernelError;

impl Host {
    pub(super) fn ip_rule(&mut self, verb: RuleVerb, mut spec: RuleSpec, form: Form) -> Done {
        let six = spec.family == Family::Inet6;
        match verb {
            RuleVerb::Show => {
                let views: Vec<RuleView> = self
                    .rules_of(six)
                    .iter()
                    .filter(|r| named(&spec, r))
                    .map(|r| RuleView { pref: r.pref, spec: r.spec.clone() })
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
                if spec.table.is_none() && !spec.l3mdev && spec.action.is_none_or(|a| a == 1) {
                    spec.table = Some(MAIN);
                }
                if spec.action == Some(1) {
                    spec.action = None;
                }
                // Before the first rule behind that of table local.
                let auto = self.rules_of(six).get(1).map_or(0, |r| r.pref.saturating_sub(1));
                let pref = spec.pref.take().unwrap_or(auto);
                let new = Rule { pref, spec, iif: 0, oif: 0 };
                if self.rules_of(six).iter().any(|r| r.pref == pref && r.spec == new.spec) {
                    return Err(errno(KernelError::EEXIST));
                }
                self.change_rules_of(six, |rules| rules.push(new));
                self.rebind_rules();
                Ok(String::new())
            }
        }
    }

    fn rules_of(&self, six: bool) -> &[Rule] {
        if six { self.six.fib.rules() } else { self.fib.rules() }
    }
    fn change_rules_of(&mut self, six: bool, change: impl FnOnce(&mut Vec<Rule>)) {
        if six { self.six.fib.change_rules(change) } else { self.fib.change_rules(change) }
    }

    /// Devices have come, gone or changed their names.
    pub(crate) fn rebind_rules(&mut self) {
        let devices = &self.devices;
        let of = |name: &Option<String>| match name {
            None => 0,
            Some(name) => devices.called(name).unwrap_or(u32::MAX),
        };
        let bind = |rules: &mut Vec<Rule>| {
            for rule in rules {
                (rule.iif, rule.oif) = (of(&rule.spec.iif), of(&rule.spec.oif));
            }
        };
        self.fib.change_rules(bind);
        self.six.fib.change_rules(bind);
    }
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
        && spec.action.is_none_or(|a| r.action == Some(a) || a == 1 && r.action.is_none())
}
