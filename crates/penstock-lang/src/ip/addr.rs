//! `ip address`: its words.
//!
//! Follows: iproute2 6.1.0 `ip/ipaddress.c` `ipaddr_modify`, `ipaddr_list_flush_or_save`.

use super::words::{Family, Parsed, Words, matches, number};
use super::{Broadcast, Command, Form, LinkFilter, Net};
use std::net::IpAddr;

/// An address as a command describes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AddrSpec {
    /// `dev`.
    pub dev: String,
    /// The address; `None` where there is none, which the kernel refuses.
    pub local: Option<Net>,
    /// Whether the length was written.
    pub has_length: bool,
    /// `peer`.
    pub peer: Option<Net>,
    /// `brd`.
    pub broadcast: Option<Broadcast>,
    /// `scope`.
    pub scope: Option<u8>,
    /// `label`.
    pub label: Option<String>,
    /// `valid_lft`, `preferred_lft`.
    pub lifetime: Option<(u32, u32)>,
    /// `metric`, `priority`, `preference`: of the route of its network; 0 where none was given.
    pub metric: u32,
    /// `noprefixroute`.
    pub no_prefix_route: bool,
    /// What else was said of it that the kernel keeps: [`NODAD`], [`HOME`], [`MANAGE_TEMPORARY`], [`AUTOJOIN`].
    pub flags: u32,
    /// What ip warns of before it asks the kernel.
    pub warning: String,
}

/// `IFA_F_NODAD`.
pub const NODAD: u32 = 0x02;
/// `IFA_F_HOMEADDRESS`.
pub const HOME: u32 = 0x10;
/// `IFA_F_MANAGETEMPADDR`.
pub const MANAGE_TEMPORARY: u32 = 0x100;
/// `IFA_F_MCAUTOJOIN`.
pub const AUTOJOIN: u32 = 0x400;

/// `IFA_F_*` words: name, flag, whether it cannot be set, whether it is IPv6's alone.
const FLAGS: [(&str, u32, bool, bool); 13] = [
    ("secondary", 0x01, true, false),
    ("temporary", 0x01, true, false),
    ("nodad", 0x02, false, true),
    ("optimistic", 0x04, false, true),
    ("dadfailed", 0x08, true, true),
    ("home", 0x10, false, true),
    ("deprecated", 0x20, true, true),
    ("tentative", 0x40, true, true),
    ("permanent", 0x80, true, true),
    ("mngtmpaddr", 0x100, false, true),
    ("noprefixroute", 0x200, false, false),
    ("autojoin", 0x400, false, false),
    ("stable-privacy", 0x800, true, true),
];

/// `get_filter`: `secondary`, `-tentative`, `dynamic`, `primary`. `flags` are the values and the mask.
pub(super) fn flag_filter(word: &str, flags: &mut (u32, u32)) -> bool {
    let (mut inverse, mut name) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    if name == "dynamic" {
        (inverse, name) = (!inverse, "permanent");
    } else if name == "primary" {
        (inverse, name) = (!inverse, "secondary");
    }
    let Some(&(_, bit, ..)) = FLAGS.iter().find(|f| f.0 == name) else { return false };
    flags.0 = if inverse { flags.0 & !bit } else { flags.0 | bit };
    flags.1 |= bit;
    true
}

impl Words<'_> {
    pub(super) fn address(&mut self, form: Form) -> Parsed<Command> {
        let filter = LinkFilter { addresses: true, family: form.family, ..LinkFilter::default() };
        let Some(verb) = self.next() else { return Ok(Command::Show(filter, form)) };
        let is = |full: &str| matches(&verb, full);
        if is("add") {
            return Ok(Command::AddrAdd { spec: self.addr_words(form.family, false)?, replace: false });
        }
        if is("change") || verb == "chg" {
            return Ok(Command::AddrAdd { spec: self.addr_words(form.family, false)?, replace: true });
        }
        if is("replace") {
            return Ok(Command::AddrAdd { spec: self.addr_words(form.family, false)?, replace: true });
        }
        if is("delete") {
            return Ok(Command::AddrDel(self.addr_words(form.family, true)?));
        }
        if is("show") || is("lst") || is("list") {
            return Ok(Command::Show(self.link_filter(filter)?, form));
        }
        if is("flush") {
            if self.peek().is_none() {
                return self.fail(1, "Flush requires arguments.", "ip addr flush dev eth0");
            }
            return Ok(Command::AddrFlush(self.link_filter(filter)?));
        }
        if is("help") {
            return self.usage(super::usage::ADDR);
        }
        if ["showdump", "save", "restore"].iter().any(|s| is(s)) {
            let message = "Not sending a binary stream to stdout";
            return self.fail(255, message, "ip addr show prints what there is");
        }
        self.unknown_command(&verb, "address")
    }

    fn addr_words(&mut self, mut family: Family, delete: bool) -> Parsed<AddrSpec> {
        let mut spec = AddrSpec::default();
        let mut dev = None;
        let (mut valid, mut preferred) = (None, None);
        let fix = |family: &mut Family, addr: IpAddr| {
            if *family == Family::Any {
                *family = if addr.is_ipv4() { Family::Inet } else { Family::Inet6 };
            }
        };
        while let Some(word) = self.next() {
            let is = |full: &str| matches(&word, full);
            match word.as_str() {
                "peer" | "remote" => {
                    let text = self.value()?;
                    if spec.peer.is_some() {
                        return self.twice("peer", &text);
                    }
                    let net = self.prefix(&text, family)?;
                    fix(&mut family, net.addr);
                    spec.peer = Some(net);
                }
                _ if is("broadcast") || word == "brd" => {
                    let text = self.value()?;
                    if spec.broadcast.is_some() {
                        return self.twice("broadcast", &text);
                    }
                    spec.broadcast = Some(match text.as_str() {
                        "+" => Broadcast::Last,
                        "-" => Broadcast::First,
                        _ => match self.addr(&text, family)? {
                            IpAddr::V4(addr) => Broadcast::Addr(addr),
                            IpAddr::V6(_) => return self.fail(2, "RTNETLINK answers: Invalid argument", ""),
                        },
                    });
                }
                "anycast" => {
                    let text = self.value()?;
                    self.addr(&text, family)?;
                }
                "scope" => {
                    let text = self.value()?;
                    spec.scope = match self.scope(&text) {
                        Ok(scope) if text != "all" => Some(scope),
                        _ => return self.invalid(&text, "invalid scope value."),
                    };
                }
                "dev" => dev = Some(self.value()?),
                "label" => spec.label = Some(self.value()?),
                _ if is("metric") || is("priority") || is("preference") => {
                    spec.metric = self.number("\"metric\" value is invalid\n")?;
                }
                _ if is("valid_lft") => valid = Some(self.lifetime("valid_lft value")?),
                _ if is("preferred_lft") => preferred = Some(self.lifetime("preferred_lft value")?),
                _ if FLAGS.iter().any(|f| f.0 == word) => {
                    let &(name, bit, fixed, v6only) =
                        FLAGS.iter().find(|f| f.0 == word).expect("it was found");
                    if fixed {
                        spec.warning += &format!("Warning: {name} option is not mutable from userspace\n");
                    } else if v6only && family != Family::Inet6 {
                        spec.warning +=
                            &format!("Warning: {name} option can be set only for IPv6 addresses\n");
                    } else {
                        spec.no_prefix_route |= bit == 0x200;
                        spec.flags |= bit & (NODAD | HOME | MANAGE_TEMPORARY | AUTOJOIN);
                    }
                }
                _ => {
                    let text = if word == "local" { self.value()? } else { word };
                    if matches(&text, "help") {
                        return self.usage(super::usage::ADDR);
                    }
                    if spec.local.is_some() {
                        return self.duplicate("local", &text);
                    }
                    let net = self.prefix(&text, family)?;
                    fix(&mut family, net.addr);
                    spec.has_length = text.contains('/');
                    spec.local = Some(net);
                }
            }
        }
        let Some(dev) = dev else { return self.need_dev(1) };
        spec.dev = dev;
        if let (true, Some(Net { addr: IpAddr::V4(addr), .. }), None, false) =
            (delete, spec.local, spec.peer, spec.has_length)
        {
            spec.warning += &format!(
                "Warning: Executing wildcard deletion to stay compatible with old scripts.\n         Explicitly specify the prefix length ({addr}/32) to avoid this \
                 warning.\n         This special behaviour is likely to disappear in further releases,\n         fix your scripts!\n"
            );
        }
        let v6 = spec.local.is_some_and(|n| n.addr.is_ipv6());
        if v6 && matches!(spec.broadcast, Some(Broadcast::Last | Broadcast::First)) && !delete {
            return self.fail(1, "Broadcast can be set only for IPv4 addresses", "");
        }
        let local = spec.local.map(|n| n.addr);
        if spec.flags & AUTOJOIN != 0 && !delete && local.is_some_and(|a| !a.is_multicast()) {
            let why = format!("{}autojoin needs multicast address", spec.warning);
            return self.fail(1, why, "");
        }
        if valid.is_some() || preferred.is_some() {
            let (valid, preferred) = (valid.unwrap_or(u32::MAX), preferred.unwrap_or(u32::MAX));
            if valid == 0 {
                return self.fail(1, "valid_lft is zero", "");
            }
            if valid < preferred {
                return self.fail(1, "preferred_lft is greater than valid_lft", "");
            }
            spec.lifetime = Some((valid, preferred));
        }
        Ok(spec)
    }
    fn lifetime(&mut self, why: &str) -> Parsed<u32> {
        let text = self.value()?;
        match number(&text) {
            _ if text == "forever" => Ok(u32::MAX),
            Some(n) => Ok(n),
            None => self.invalid(&text, why),
        }
    }
}
