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
                let of_group =
                    |group: u32| devices.iter().filter(move |d| d.group == group).map(|d| d.ifindex);
                rule.suppressed =
                    rule.spec.suppress_group.map_or_else(Vec::new, |group| of_group(group).collect());
                rule.suppressed.sort_unstable();
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

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::{Kernel, Time};

    /// The device that a packet leaves by, of IPv4 and of IPv6.
    fn ways(host: &mut Host) -> [String; 2] {
        ["ip route get 192.0.2.9 mark 5", "ip -6 route get 2001:db8:9::9 mark 5"].map(|line| {
            let said = host.exec(line, Time::ZERO).stdout;
            let mut words = said.split(' ').skip_while(|w| *w != "dev");
            words.nth(1).unwrap_or("nowhere").to_owned()
        })
    }

    #[test]
    fn rules_lead_past_others() {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        for (name, n) in [("eth0", 1), ("eth1", 2), ("eth2", 3)] {
            host.add_device(name);
            for line in [
                format!("ip link set {name} up"),
                format!("ip addr add 10.0.{n}.1/24 dev {name}"),
                format!("ip addr add fd00:{n}::1/64 dev {name} nodad"),
                format!("ip route add default via 10.0.{n}.2 table {}", 100 + n),
                format!("ip -6 route add default via fd00:{n}::2 dev {name} table {}", 100 + n),
            ] {
                assert_eq!(host.exec(&line, Time::ZERO).stderr, "", "{line}");
            }
        }
        let mut both = |line: &str| {
            for family in ["", "-6 "] {
                let line = format!("ip {family}rule {line}");
                assert_eq!(host.exec(&line, Time::ZERO).stderr, "", "{line}");
            }
            ways(&mut host)
        };
        let all = |dev: &str| [dev.to_owned(), dev.to_owned()];
        assert_eq!(both("add pref 20 lookup 101"), all("eth0"));
        assert_eq!(both("add pref 30 lookup 102"), all("eth0"));
        assert_eq!(both("add pref 10 nop"), all("eth0"));
        assert_eq!(both("add pref 11 fwmark 6 goto 30"), all("eth0"), "of another mark");
        assert_eq!(both("add pref 12 fwmark 5 goto 25"), all("eth0"), "to no rule");
        assert_eq!(both("add pref 25 lookup 103"), all("eth2"), "now there is one");
        assert_eq!(both("del pref 25"), all("eth0"));
        assert_eq!(both("add pref 13 not fwmark 6 goto 30"), all("eth1"));
        assert_eq!(both("del pref 13"), all("eth0"));
        both("del pref 20");
        both("add pref 20 lookup 101 suppress_ifgroup 7");
        assert_eq!(ways(&mut host), all("eth0"));
        host.exec("ip link set eth0 group 7", Time::ZERO);
        assert_eq!(ways(&mut host), all("eth1"), "its device is of the group now");
    }

    #[test]
    fn the_metric_of_an_address_decides_between_devices() {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        for (name, n, metric) in [("eth0", 1, 300), ("eth1", 2, 100)] {
            host.add_device(name);
            for line in [
                format!("ip link set {name} up"),
                format!("ip addr add 192.0.2.{n}/24 dev {name} metric {metric}"),
                format!("ip addr add 2001:db8:9::{n}/64 dev {name} nodad metric {metric}"),
            ] {
                assert_eq!(host.exec(&line, Time::ZERO).stderr, "", "{line}");
            }
        }
        assert_eq!(ways(&mut host), ["eth1", "eth1"]);
        host.exec("ip addr change 192.0.2.1/24 dev eth0 metric 50", Time::ZERO);
        host.exec("ip addr change 2001:db8:9::1/64 dev eth0 metric 50", Time::ZERO);
        assert_eq!(ways(&mut host), ["eth0", "eth0"]);
    }
}
