//! `ip rule`: its words.
//!
//! Follows: iproute2 6.1.0 `ip/iprule.c` `iprule_modify`, `iprule_list_flush_or_save`.

use super::words::{Family, Parsed, Words, matches, number};
use super::{Command, Form, Net};
use crate::iptables::PROTOCOLS;

/// What is done with a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleVerb {
    /// `add`.
    Add,
    /// `del`.
    Del,
    /// `show`.
    Show,
    /// `flush`.
    Flush,
}

/// `FR_ACT_NOP`, of a kind of its own here since `RTN_BROADCAST` has its number.
pub const NOP: u8 = 100;
/// `RTN_NAT`, which no kernel since 2.6 knows.
pub const NAT: u8 = 10;

/// A rule as a command describes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuleSpec {
    /// Which addresses.
    pub family: Family,
    /// `not`.
    pub not: bool,
    /// `from`.
    pub from: Option<Net>,
    /// `to`.
    pub to: Option<Net>,
    /// `pref`.
    pub pref: Option<u32>,
    /// `tos`.
    pub tos: Option<u8>,
    /// `fwmark` and its mask.
    pub fwmark: Option<(u32, Option<u32>)>,
    /// `table`.
    pub table: Option<u32>,
    /// `l3mdev`: the table is that of the packet's VRF.
    pub l3mdev: bool,
    /// `iif`.
    pub iif: Option<String>,
    /// `oif`.
    pub oif: Option<String>,
    /// `uidrange`.
    pub uids: Option<(u32, u32)>,
    /// `ipproto`.
    pub ipproto: Option<u8>,
    /// `sport`.
    pub sport: Option<(u16, u16)>,
    /// `dport`.
    pub dport: Option<(u16, u16)>,
    /// `prohibit`, …: `RTN_*`, which are `FR_ACT_*` too; [`NOP`]; [`NAT`].
    pub action: Option<u8>,
    /// `goto`: the priority of the rule that is asked next.
    pub goto: Option<u32>,
    /// `suppress_prefixlength`.
    pub suppress: Option<u32>,
    /// `suppress_ifgroup`: a group of devices.
    pub suppress_group: Option<u32>,
    /// `realms`: as those of a route; 0 for none.
    pub realms: u32,
    /// `protocol`.
    pub protocol: Option<u8>,
    /// What ip warns of before it asks the kernel.
    pub warning: String,
}

/// `LOW-HIGH` or one number. Whether the one is below the other is the kernel's to say.
fn range<T: std::str::FromStr>(text: &str) -> Option<(T, T)> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    Some((low.parse().ok()?, high.parse().ok()?))
}

impl Words<'_> {
    pub(super) fn rule(&mut self, form: Form) -> Parsed<Command> {
        let none = RuleSpec { family: form.family, ..RuleSpec::default() };
        let Some(verb) = self.next() else {
            return Ok(Command::Rule(RuleVerb::Show, Box::new(none), form));
        };
        let is = |full: &str| matches(&verb, full);
        let verb = if is("list") || is("lst") || is("show") {
            RuleVerb::Show
        } else if is("flush") {
            RuleVerb::Flush
        } else if is("add") {
            RuleVerb::Add
        } else if is("delete") {
            RuleVerb::Del
        } else if is("help") {
            return self.usage(super::usage::RULE);
        } else if is("save") || is("restore") {
            return self.fail(
                255,
                "Not sending a binary stream to stdout",
                "ip rule show prints what there is",
            );
        } else {
            return self.unknown_command(&verb, "rule");
        };
        if verb == RuleVerb::Del && self.peek().is_none() {
            return self.fail(1, "\"ip rule del\" requires arguments.", "e.g. ip rule del pref 5");
        }
        if verb == RuleVerb::Add && self.peek().is_none() {
            return self.fail(
                1,
                "\"ip rule add\" requires arguments.",
                "e.g. ip rule add fwmark 5 lookup 100",
            );
        }
        let spec = self.rule_words(none, verb)?;
        Ok(Command::Rule(verb, Box::new(spec), form))
    }

    fn rule_words(&mut self, mut r: RuleSpec, verb: RuleVerb) -> Parsed<RuleSpec> {
        let listing = matches!(verb, RuleVerb::Show | RuleVerb::Flush);
        while let Some(word) = self.next() {
            let is = |full: &str| matches(&word, full);
            match word.as_str() {
                "not" => r.not = true,
                "from" => r.from = Some(self.rule_prefix(&mut r.family)?),
                "to" => r.to = Some(self.rule_prefix(&mut r.family)?),
                _ if is("preference") || is("order") || is("priority") => {
                    r.pref = Some(self.number("preference value is invalid\n")?);
                }
                _ if word == "tos" || is("dsfield") => r.tos = Some(self.tos("TOS value is invalid\n")?),
                "fwmark" => {
                    let text = self.value()?;
                    let (mark, mask) = match text.split_once('/') {
                        Some((mark, mask)) => (mark.to_owned(), Some(mask.to_owned())),
                        None => (text, None),
                    };
                    let Some(value) = number(&mark) else {
                        return self.invalid(&mark, "fwmark value is invalid\n");
                    };
                    let mask = match mask {
                        None => None,
                        Some(text) => match number(&text) {
                            Some(mask) => Some(mask),
                            None => return self.invalid(&text, "fwmask value is invalid\n"),
                        },
                    };
                    r.fwmark = Some((value, mask));
                }
                _ if is("realms") => {
                    let text = self.value()?;
                    match super::rt_names::realms_of(&text) {
                        Some(realms) => r.realms = realms,
                        None => return self.invalid(&text, "invalid realms\n"),
                    }
                }
                _ if is("protocol") => {
                    let text = self.value()?;
                    r.protocol = match super::rt_names::protocol_of(&text) {
                        Some(n) => Some(n),
                        None => return self.invalid(&text, "\"protocol\" value is invalid\n"),
                    };
                }
                _ if is("table") || word == "lookup" => {
                    let text = self.value()?;
                    match super::rt_names::table_of(&text) {
                        Some(table) => r.table = Some(table),
                        None if listing => return self.invalid(&text, "table id value is invalid\n"),
                        None => return self.invalid(&text, "invalid table ID\n"),
                    }
                }
                _ if matches(&word, "suppress_prefixlength") || word == "sup_pl" => {
                    r.suppress = Some(self.number("suppress_prefixlength value is invalid\n")?);
                }
                _ if is("suppress_ifgroup") || word == "sup_group" => {
                    let text = self.value()?;
                    r.suppress_group = match text.as_str() {
                        "default" => Some(0),
                        _ => match number(&text) {
                            Some(group) => Some(group),
                            None => return self.invalid(&text, "Invalid \"suppress_ifgroup\" value\n"),
                        },
                    };
                }
                "tun_id" => {
                    self.value()?;
                    return self.fail(
                        255,
                        "ip rule tun_id: not simulated",
                        "no rule here asks for a tunnel's key: leave it out",
                    );
                }
                _ if is("nat") || is("map-to") => {
                    self.value()?;
                    r.warning = "Warning: route NAT is deprecated\n".to_owned();
                    (r.action, r.table) = (Some(NAT), r.table.or(Some(254)));
                }
                "dev" | "iif" => r.iif = Some(self.value()?),
                "oif" => r.oif = Some(self.value()?),
                "uidrange" => {
                    let text = self.value()?;
                    r.uids = match range(&text).filter(|u: &(u32, u32)| text.contains('-') && u.0 <= u.1) {
                        Some(uids) => Some(uids),
                        None => return self.invalid(&text, "invalid UID range\n"),
                    };
                }
                "ipproto" => r.ipproto = Some(self.ipproto()?),
                "sport" => r.sport = Some(self.ports("sport")?),
                "dport" => r.dport = Some(self.ports("dport")?),
                "l3mdev" => r.l3mdev = true,
                _ if is("help") => return self.usage(super::usage::RULE),
                _ => {
                    let text = if word == "type" { self.value()? } else { word };
                    let kinds =
                        [("blackhole", 6), ("unreachable", 7), ("prohibit", 8), ("unicast", 1), ("nat", NAT)];
                    match kinds.iter().find(|k| k.0 == text) {
                        Some(&(_, n)) => r.action = Some(n),
                        None if text == "goto" => {
                            let target = self.value()?;
                            match number(&target) {
                                Some(target) => r.goto = Some(target),
                                None => return self.invalid(&target, "invalid target\n"),
                            }
                        }
                        None if text == "nop" => r.action = Some(NOP),
                        None => return self.invalid(&text, "Failed to parse rule type"),
                    }
                }
            }
        }
        if r.l3mdev && r.table.is_some() && !listing {
            return self.fail(22, "table can not be specified for l3mdev rules", "a VRF brings its table");
        }
        Ok(r)
    }
    fn rule_prefix(&mut self, family: &mut Family) -> Parsed<Net> {
        let text = self.value()?;
        let net = self.prefix(&text, *family)?;
        if *family == Family::Any && net.addr.is_ipv6() {
            *family = Family::Inet6;
        }
        Ok(net)
    }
    /// `inet_proto_a2n`.
    pub(super) fn ipproto(&mut self) -> Parsed<u8> {
        let text = self.value()?;
        match text.as_str() {
            "icmp" => Ok(1),
            "tcp" => Ok(6),
            "udp" => Ok(17),
            "sctp" => Ok(132),
            _ => match text.parse().ok().or(PROTOCOLS.iter().find(|p| p.0 == text).map(|p| p.1)) {
                Some(n) => Ok(n),
                None => self.invalid(&text, "Invalid \"ipproto\" value\n"),
            },
        }
    }
    fn ports(&mut self, name: &str) -> Parsed<(u16, u16)> {
        let text = self.value()?;
        match range(&text) {
            Some(ports) => Ok(ports),
            None => self.invalid(&text, &format!("invalid \"{name}\"\n")),
        }
    }
}
