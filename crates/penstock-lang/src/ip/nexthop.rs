//! `ip nexthop`: its words.
//!
//! Follows: iproute2 6.1.0 `ip/ipnexthop.c` `ipnh_modify`, `add_nh_group_attr`, `ipnh_list_flush`, `ipnh_get`.
//! Differs: no encapsulations, no resilient groups and their buckets, no nexthops for forwarding databases; these are refused by name.

use super::rt_names::protocol_of;
use super::words::{Family, Parsed, Words, matches, number};
use super::{Command, Failure, Form};
use std::net::IpAddr;

/// What is done with a nexthop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NexthopVerb {
    /// `add`.
    Add,
    /// `replace`: it is made where it is not there.
    Replace,
    /// `del`.
    Del,
}

/// A nexthop as a command describes it. Of words that are said twice the last counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NexthopSpec {
    /// Which addresses: by `-4`, `-6`, or by the first of `dev`, `via`, `blackhole`.
    pub family: Family,
    /// `id`; 0: the kernel is to find one.
    pub id: Option<u32>,
    /// `via`.
    pub via: Option<IpAddr>,
    /// All devices that were named, of which the last counts: each must be there.
    pub devs: Vec<String>,
    /// `blackhole`.
    pub blackhole: bool,
    /// `onlink`.
    pub onlink: bool,
    /// `group`: the members' ids and weights, 1 to 256.
    pub group: Option<Vec<(u32, u16)>>,
    /// `type mpath`.
    pub typed: bool,
    /// `proto`; 0 for none.
    pub protocol: u8,
    /// What is wrong with the words behind a device: that is told where the device is there.
    pub fault: Option<Failure>,
}

/// What `ip nexthop show` and `flush` choose.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NexthopFilter {
    /// Which addresses.
    pub family: Family,
    /// `id`: this one, whatever else was said.
    pub id: Option<u32>,
    /// All devices that were named (`dev`), of which the last counts.
    pub devs: Vec<String>,
    /// All masters that were named, of which the last counts; whether by `vrf`.
    pub masters: Vec<(String, bool)>,
    /// `groups`.
    pub groups: bool,
    /// `protocol`; 0 for any.
    pub protocol: u32,
    /// Nothing was chosen.
    pub all: bool,
    /// What is wrong with the words behind a device.
    pub fault: Option<Failure>,
}

impl Words<'_> {
    pub(super) fn nexthop(&mut self, form: Form) -> Parsed<Command> {
        let show = |filter: NexthopFilter| Command::NexthopShow(Box::new(filter), form);
        let Some(verb) = self.next() else { return Ok(show(self.nexthop_filter(form.family)?)) };
        let is = |full: &str| matches(&verb, full);
        let verbs =
            [("add", NexthopVerb::Add), ("replace", NexthopVerb::Replace), ("delete", NexthopVerb::Del)];
        if let Some((_, verb)) = verbs.into_iter().find(|(name, _)| is(name)) {
            return Ok(Command::Nexthop(verb, Box::new(self.nexthop_words(form.family)?)));
        }
        if is("list") || is("show") || is("lst") {
            return Ok(show(self.nexthop_filter(form.family)?));
        }
        if is("get") {
            let mut id = 0;
            while let Some(word) = self.next() {
                if word != "id" {
                    return self.usage(super::usage::NEXTHOP);
                }
                id = self.nexthop_id()?;
            }
            return match id {
                0 => self.usage(super::usage::NEXTHOP),
                id => Ok(Command::NexthopGet(id, form)),
            };
        }
        if is("flush") {
            return Ok(Command::NexthopFlush(Box::new(self.nexthop_filter(form.family)?)));
        }
        if is("bucket") {
            return self.fail(
                1,
                "ip nexthop bucket: not simulated",
                "of groups there are those of type mpath: ip nexthop shows them",
            );
        }
        if is("help") {
            return self.usage(super::usage::NEXTHOP);
        }
        self.unknown_command(&verb, "nexthop")
    }

    fn nexthop_id(&mut self) -> Parsed<u32> {
        self.number("invalid id value")
    }

    fn nexthop_words(&mut self, family: Family) -> Parsed<NexthopSpec> {
        let mut spec = NexthopSpec { family, ..NexthopSpec::default() };
        match self.nexthop_words_into(&mut spec) {
            // Whether a device is there is asked before the words behind it are read.
            Err(fault) if !spec.devs.is_empty() => spec.fault = Some(fault),
            done => done?,
        }
        Ok(spec)
    }

    fn nexthop_words_into(&mut self, spec: &mut NexthopSpec) -> Parsed<()> {
        while let Some(word) = self.next() {
            match word.as_str() {
                "id" => spec.id = Some(self.nexthop_id()?),
                "dev" => {
                    spec.devs.push(self.value()?);
                    spec.settle(Family::Inet);
                }
                "via" => {
                    let mut text = self.value()?;
                    let mut family = spec.family;
                    if text == "inet" || text == "inet6" {
                        family = if text == "inet" { Family::Inet } else { Family::Inet6 };
                        text = self.value()?;
                    }
                    let addr = self.addr(&text, family)?;
                    let found = if addr.is_ipv4() { Family::Inet } else { Family::Inet6 };
                    spec.settle(found);
                    if spec.family != found {
                        return self.invalid(&text, "address family mismatch\n");
                    }
                    spec.via = Some(addr);
                }
                "encap" => {
                    return self.fail(
                        1,
                        "ip nexthop … encap: not simulated",
                        "a tunnel has an overhead too: ip link add … type ipip",
                    );
                }
                "blackhole" => {
                    spec.blackhole = true;
                    spec.settle(Family::Inet);
                }
                "fdb" => {
                    return self.fail(
                        1,
                        "ip nexthop … fdb: not simulated",
                        "bridge fdb add … dst ADDR says where a tunnel's frames go",
                    );
                }
                "onlink" => spec.onlink = true,
                "group" => {
                    let text = self.value()?;
                    spec.group = Some(self.nexthop_group(&text)?);
                }
                "type" => match self.value()?.as_str() {
                    "mpath" => spec.typed = true,
                    "resilient" => {
                        return self.fail(
                            1,
                            "ip nexthop … type resilient: not simulated",
                            "type mpath, as without a type: when members come or go, flows may move",
                        );
                    }
                    other => return self.invalid(other, "\"type\" value is invalid\n"),
                },
                _ if matches(&word, "protocol") => {
                    let text = self.value()?;
                    match protocol_of(&text) {
                        Some(protocol) => spec.protocol = protocol,
                        None => return self.invalid(&text, "\"protocol\" value is invalid\n"),
                    }
                }
                "help" => return self.usage(super::usage::NEXTHOP),
                _ => return self.invalid(&word, ""),
            }
        }
        Ok(())
    }

    /// `ID[,WEIGHT]/…`. What is refused is shown as far as it was cut apart.
    fn nexthop_group(&self, text: &str) -> Parsed<Vec<(u32, u16)>> {
        let refused = || {
            let first = text.split(['/', ',']).next().unwrap_or("");
            self.invalid(first, "\"group\" value is invalid\n")
        };
        if text.is_empty() {
            return refused();
        }
        let mut members = Vec::new();
        for part in text.split('/') {
            let (id, weight) = match part.split_once(',') {
                Some((id, weight)) => (id, Some(weight)),
                None => (part, None),
            };
            let Some(id) = number(id) else { return refused() };
            let weight = match weight {
                None => 1,
                Some(weight) => match number(weight).filter(|w| (1..=256).contains(w)) {
                    Some(number) => number as u16,
                    None => return self.invalid(weight, "\"weight\" is invalid\n"),
                },
            };
            members.push((id, weight));
        }
        Ok(members)
    }

    fn nexthop_filter(&mut self, family: Family) -> Parsed<NexthopFilter> {
        let mut filter = NexthopFilter { family, all: self.peek().is_none(), ..NexthopFilter::default() };
        match self.nexthop_filter_into(&mut filter) {
            Err(fault) if !filter.devs.is_empty() || !filter.masters.is_empty() => filter.fault = Some(fault),
            done => done?,
        }
        Ok(filter)
    }

    fn nexthop_filter_into(&mut self, filter: &mut NexthopFilter) -> Parsed<()> {
        while let Some(word) = self.next() {
            let is = |full: &str| matches(&word, full);
            if is("dev") {
                filter.devs.push(self.value()?);
            } else if is("groups") {
                filter.groups = true;
            } else if is("master") {
                let name = self.value()?;
                filter.masters.push((name, false));
            } else if is("vrf") {
                let name = self.value()?;
                filter.masters.push((name, true));
            } else if word == "id" {
                // The words behind it are not read.
                filter.id = Some(self.nexthop_id()?);
                return Ok(());
            } else if is("protocol") {
                filter.protocol = self.number("invalid protocol value")?;
            } else if is("fdb") {
                // The kernel shows the others all the same.
            } else if is("help") {
                return self.usage(super::usage::NEXTHOP);
            } else {
                return self.invalid(&word, "");
            }
        }
        Ok(())
    }
}

impl NexthopSpec {
    /// Its family is this one, where none was said before.
    fn settle(&mut self, family: Family) {
        if self.family == Family::Any {
            self.family = family;
        }
    }
}
