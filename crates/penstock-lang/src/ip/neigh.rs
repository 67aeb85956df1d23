//! `ip neigh` and `ip netns`: their words.
//!
//! Follows: iproute2 6.1.0 `ip/ipneigh.c` `ipneigh_modify`, `do_show_or_flush`, `ipneigh_get`; `ip/ipnetns.c` `do_netns`.

use super::rt_names::protocol_of;
use super::words::{Family, Parsed, Words, matches, number};
use super::{Command, Form, Net};
use std::net::IpAddr;

/// A neighbour as a command describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeighSpec {
    /// Device; a proxy may do without.
    pub dev: Option<String>,
    /// Address.
    pub addr: IpAddr,
    /// `lladdr`.
    pub mac: Option<Vec<u8>>,
    /// `nud`: `NUD_*`.
    pub state: u16,
    /// `proxy`.
    pub proxy: bool,
    /// `router`.
    pub router: bool,
    /// `extern_learn`.
    pub extern_learn: bool,
    /// `managed`.
    pub managed: bool,
    /// `use`: it is asked for at once.
    pub used: bool,
    /// `protocol`; 0: not said.
    pub protocol: u8,
}

/// What `ip neigh show` and `flush` choose.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NeighFilter {
    /// Which addresses.
    pub family: Family,
    /// `dev`.
    pub dev: Option<String>,
    /// `master`, `vrf`: those on its ports.
    pub master: Option<String>,
    /// The master was named by `vrf`, and must be one.
    pub master_is_vrf: bool,
    /// `to`.
    pub to: Option<Net>,
    /// `nud`: bits of `NUD_*`, 0x100 for none at all; `None` is all but noarp and none.
    pub states: Option<u16>,
    /// `proxy`.
    pub proxy: bool,
    /// `protocol`; 0: any.
    pub protocol: u8,
    /// `nomaster`.
    pub nomaster: bool,
    /// `unused`: those that nothing holds.
    pub unused: bool,
}

/// What is done with neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NeighVerb {
    /// `add`.
    Add,
    /// `change`.
    Change,
    /// `replace`.
    Replace,
    /// `del`.
    Del,
    /// `get`.
    Get,
}

/// `ip netns`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NetnsCommand {
    /// `list`.
    List,
    /// `list-id`.
    ListId,
    /// `add`.
    Add(String),
    /// `attach`: there are no processes to attach.
    Set(String, i64),
    /// `delete`; all of them with `-all`.
    Del(Option<String>),
    /// `exec`: the name (none with `-all`), and where its command begins among the words.
    Exec(Option<String>, usize),
    /// `identify`.
    Identify(Option<String>),
    /// `pids`.
    Pids(String),
}

/// `nud_state_a2n`.
pub const STATES: [(&str, u16); 9] = [
    ("permanent", 0x80),
    ("reachable", 0x02),
    ("noarp", 0x40),
    ("none", 0),
    ("stale", 0x04),
    ("incomplete", 0x01),
    ("delay", 0x08),
    ("probe", 0x10),
    ("failed", 0x20),
];

fn state_of(text: &str) -> Option<u16> {
    let named = STATES.iter().find(|(name, _)| matches(text, name)).map(|s| s.1);
    named.or_else(|| number(text).and_then(|n| u16::try_from(n).ok()).filter(|n| *n <= 0xff))
}

impl Words<'_> {
    pub(super) fn neigh(&mut self, form: Form) -> Parsed<Command> {
        let all = NeighFilter { family: form.family, ..NeighFilter::default() };
        let Some(verb) = self.next() else { return Ok(Command::NeighShow(all, form)) };
        let is = |full: &str| matches(&verb, full);
        if is("add") {
            return Ok(Command::Neigh(NeighVerb::Add, self.neigh_words(form.family)?));
        }
        if is("change") || verb == "chg" {
            return Ok(Command::Neigh(NeighVerb::Change, self.neigh_words(form.family)?));
        }
        if is("replace") {
            return Ok(Command::Neigh(NeighVerb::Replace, self.neigh_words(form.family)?));
        }
        if is("delete") {
            return Ok(Command::Neigh(NeighVerb::Del, self.neigh_words(form.family)?));
        }
        if is("get") {
            return Ok(Command::Neigh(NeighVerb::Get, self.neigh_get_words(form.family)?));
        }
        if is("show") || is("lst") || is("list") {
            return Ok(Command::NeighShow(self.neigh_filter(all)?, form));
        }
        if is("flush") {
            if self.peek().is_none() {
                return self.fail(1, "Flush requires arguments.", "ip neigh flush dev eth0");
            }
            return Ok(Command::NeighFlush(self.neigh_filter(all)?, form));
        }
        if is("help") {
            return self.usage(super::usage::NEIGH);
        }
        self.unknown_command(&verb, "neigh")
    }

    fn neigh_words(&mut self, family: Family) -> Parsed<NeighSpec> {
        let (mut dev, mut addr, mut lladdr, mut state, mut proxy) = (None, None, None, 0x80, false);
        let (mut router, mut extern_learn, mut managed, mut used, mut protocol) =
            (false, false, false, false, 0);
        while let Some(word) = self.next() {
            let is = |full: &str| matches(&word, full);
            match word.as_str() {
                _ if is("lladdr") => {
                    let text = self.value()?;
                    if lladdr.is_some() {
                        return self.twice("lladdr", &text);
                    }
                    lladdr = Some((text, self.at - 1));
                }
                "nud" => {
                    let text = self.value()?;
                    match state_of(&text) {
                        Some(s) => state = s,
                        None => return self.invalid(&text, "nud state is bad"),
                    }
                }
                _ if is("proxy") => {
                    addr = Some(self.neigh_proxy(addr, family)?);
                    proxy = true;
                }
                "router" => router = true,
                "use" => used = true,
                "managed" => (managed, state) = (true, 0),
                _ if is("extern_learn") => extern_learn = true,
                "dev" => dev = Some(self.value()?),
                _ if is("protocol") => {
                    let text = self.value()?;
                    match protocol_of(&text) {
                        Some(number) => protocol = number,
                        None => return self.invalid(&text, "\"protocol\" value is invalid\n"),
                    }
                }
                _ => {
                    let mut text = if word == "to" { self.value()? } else { word.clone() };
                    if matches(&text, "help") {
                        text = self.value()?;
                    }
                    if addr.is_some() {
                        return self.duplicate("to", &text);
                    }
                    addr = Some(self.addr(&text, family)?);
                }
            }
        }
        let Some(addr) = addr.filter(|_| dev.is_some() || proxy) else {
            return self.fail(255, "Device and destination are required arguments.", "ADDR dev eth0");
        };
        let mac = match lladdr {
            Some((text, at)) if text != "null" => {
                let end = std::mem::replace(&mut self.at, at);
                let mac = self.lladdr()?;
                self.at = end;
                Some(mac)
            }
            _ => None,
        };
        Ok(NeighSpec { dev, addr, mac, state, proxy, router, extern_learn, managed, used, protocol })
    }
    /// The address behind `proxy`.
    fn neigh_proxy(&mut self, before: Option<IpAddr>, family: Family) -> Parsed<IpAddr> {
        let text = self.value()?;
        if matches(&text, "help") {
            return self.usage(super::usage::NEIGH);
        }
        if before.is_some() {
            return self.twice("address", &text);
        }
        self.addr(&text, family)
    }
    /// `ipneigh_get`, which knows fewer words.
    fn neigh_get_words(&mut self, family: Family) -> Parsed<NeighSpec> {
        let (mut dev, mut addr, mut proxy) = (None, None, false);
        while let Some(word) = self.next() {
            if word == "dev" {
                dev = Some(self.value()?);
            } else if matches(&word, "proxy") {
                addr = Some(self.neigh_proxy(addr, family)?);
                proxy = true;
            } else {
                let text = if word == "to" { self.value()? } else { word };
                if matches(&text, "help") {
                    return self.usage(super::usage::NEIGH);
                }
                if addr.is_some() {
                    return self.duplicate("to", &text);
                }
                addr = Some(self.addr(&text, family)?);
            }
        }
        let Some(addr) = addr.filter(|_| dev.is_some() || proxy) else {
            return self.fail(1, "Device and address are required arguments.", "ADDR dev eth0");
        };
        let no = false;
        let (router, extern_learn, managed, used) = (no, no, no, no);
        Ok(NeighSpec {
            dev,
            addr,
            mac: None,
            state: 0,
            proxy,
            router,
            extern_learn,
            managed,
            used,
            protocol: 0,
        })
    }

    fn neigh_filter(&mut self, mut f: NeighFilter) -> Parsed<NeighFilter> {
        while let Some(word) = self.next() {
            match word.as_str() {
                "dev" => {
                    let text = self.value()?;
                    if f.dev.is_some() {
                        return self.twice("dev", &text);
                    }
                    f.dev = Some(text);
                }
                "master" => f.master = Some(self.value()?),
                "vrf" => (f.master, f.master_is_vrf) = (Some(self.value()?), true),
                "nomaster" => f.nomaster = true,
                "unused" => f.unused = true,
                "nud" => {
                    let text = self.value()?;
                    let state = match (state_of(&text), text.as_str()) {
                        (_, "all") => 0x1ff,
                        (Some(0), _) => 0x100,
                        (Some(state), _) => state,
                        _ => return self.invalid(&text, "nud state is bad"),
                    };
                    f.states = Some(f.states.unwrap_or(0) | state);
                }
                "proxy" => f.proxy = true,
                word if matches(word, "protocol") => {
                    let text = self.value()?;
                    f.protocol = match protocol_of(&text) {
                        Some(number) => number,
                        None if text == "all" => 0,
                        None => return self.invalid(&text, "invalid \"protocol\"\n"),
                    };
                }
                _ => {
                    let text = if word == "to" { self.value()? } else { word };
                    if matches(&text, "help") {
                        return self.usage(super::usage::NEIGH);
                    }
                    if text != "all" {
                        let net = self.prefix(&text, f.family)?;
                        if f.family == Family::Any {
                            f.family = if net.addr.is_ipv4() { Family::Inet } else { Family::Inet6 };
                        }
                        f.to = Some(net);
                    }
                }
            }
        }
        Ok(f)
    }

    pub(super) fn netns(&mut self, all: bool, form: Form) -> Parsed<Command> {
        let say = |c| Ok(Command::Netns(c, form));
        let Some(verb) = self.next() else { return say(NetnsCommand::List) };
        let is = |full: &str| matches(&verb, full);
        let no_name = "No netns name specified";
        let name = |w: &mut Self| match w.next() {
            Some(name) if name.contains('/') || name.is_empty() || name == "." || name == ".." => {
                w.fail(255, format!("Invalid netns name \"{name}\""), "")
            }
            Some(name) => Ok(name),
            None => w.fail(1, no_name, ""),
        };
        if !is("help") && ["list-id"].contains(&verb.as_str()) {
            return say(NetnsCommand::ListId);
        }
        if is("help") {
            return self.usage(super::usage::NETNS);
        }
        if is("list") || is("show") || is("lst") {
            return say(NetnsCommand::List);
        }
        if is("list-id") {
            return say(NetnsCommand::ListId);
        }
        if is("add") {
            let name = name(self)?;
            return say(NetnsCommand::Add(name));
        }
        if is("set") {
            let name = name(self)?;
            let Some(id) = self.next() else { return self.fail(1, "No nsid specified", "") };
            if id == "auto" {
                return say(NetnsCommand::Set(name, -1));
            }
            return match id.parse::<i32>() {
                Ok(id) => say(NetnsCommand::Set(name, i64::from(id))),
                Err(_) => self.invalid(&id, "Invalid \"netnsid\" value\n"),
            };
        }
        if is("delete") {
            if all {
                return say(NetnsCommand::Del(None));
            }
            let name = name(self)?;
            return say(NetnsCommand::Del(Some(name)));
        }
        if is("identify") {
            let pid = self.next();
            if let Some(pid) = &pid
                && pid.parse::<u32>().is_err()
            {
                return self.fail(1, format!("Specified string '{pid}' is not a pid"), "");
            }
            return say(NetnsCommand::Identify(pid));
        }
        if is("pids") {
            let name = name(self)?;
            return say(NetnsCommand::Pids(name));
        }
        if is("exec") {
            let space = if all { None } else { Some(name(self)?) };
            if self.peek().is_none() {
                return self.fail(1, "No command specified", "");
            }
            return say(NetnsCommand::Exec(space, self.at));
        }
        if is("monitor") {
            return self.fail(1, "nothing to monitor here", "");
        }
        self.unknown_command(&verb, "netns")
    }
}
