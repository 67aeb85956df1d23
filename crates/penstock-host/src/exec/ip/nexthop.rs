//! `ip nexthop`.
//!
//! Follows: linux v6.12 `net/ipv4/nexthop.c` `rtm_to_nh_config`, `nh_check_attr_group`, `nexthop_add`, `replace_nexthop`, `nh_valid_get_del_req`,
//! `nh_dump_filtered`; iproute2 6.1.0 `ip/ipnexthop.c` `ipnh_flush`.

use super::{Done, Ran, errno, says};
use crate::link::ENETDOWN;
use crate::nexthop::{Kind, Nexthop, Single};
use crate::route::{Key, LOCAL, MAIN, RouteKind};
use crate::{Host, Output};
use penstock_lang::ip::{self, Failure, Family, Form, NexthopFilter, NexthopSpec, NexthopVerb, NexthopView};
use penstock_model::KernelError;
use std::net::IpAddr;

/// What iproute2 says of a device that is not there.
fn no_such_device(name: &str) -> Failure {
    Failure {
        help: "ip link shows the devices there are".to_owned(),
        ..says(255, format!("Error: argument \"{name}\" is wrong: Device does not exist\n"))
    }
}

impl Host {
    fn invalid(&self, sentence: &str) -> Failure {
        self.no(KernelError::EINVAL, sentence)
    }
    /// The last of the devices a command names; each must be there.
    fn last_of(&self, names: &[String]) -> Result<Option<u32>, Failure> {
        let found = names.iter().map(|name| self.ifindex(name).ok_or_else(|| no_such_device(name)));
        found.collect::<Result<Vec<_>, _>>().map(|all| all.last().copied())
    }

    pub(super) fn nexthop_change(&mut self, verb: NexthopVerb, spec: &NexthopSpec) -> Done {
        let dev = self.last_of(&spec.devs)?;
        if let Some(fault) = &spec.fault {
            return Err(fault.clone());
        }
        if verb == NexthopVerb::Del {
            return self.nexthop_delete(spec);
        }
        let wanted = self.wanted_nexthop(spec, dev)?;
        let id = match (spec.id.filter(|&id| id != 0), verb) {
            (Some(id), _) => id,
            (None, NexthopVerb::Replace) => return Err(self.invalid("Replace requires nexthop id")),
            (None, _) => self.nexthops.unused_id().ok_or_else(|| self.invalid("No unused id"))?,
        };
        let kind = match wanted {
            Wanted::Group(members) => Kind::Group(members),
            Wanted::Blackhole => Kind::Single(self.new_blackhole(spec.family)?),
            Wanted::Way(dev) => Kind::Single(self.new_way(spec, dev)?),
        };
        let new = Nexthop { protocol: spec.protocol, kind };
        match (self.nexthops.get(id).map(|n| &n.kind), verb) {
            (Some(_), NexthopVerb::Add) => return Err(errno(KernelError::EEXIST)),
            (Some(old), _) => self.check_replace(id, old, &new.kind)?,
            (None, _) => {}
        }
        self.put_nexthop(id, new);
        Ok(String::new())
    }

    /// `nh_valid_get_del_req`, in front of which a request is read strictly.
    fn nexthop_delete(&mut self, spec: &NexthopSpec) -> Done {
        let more = spec.via.is_some() || !spec.devs.is_empty() || spec.group.is_some();
        if more || spec.blackhole || spec.typed {
            return Err(self.invalid("Unknown attribute type"));
        }
        if spec.protocol != 0 || spec.onlink {
            return Err(self.invalid("Invalid values in header"));
        }
        match spec.id {
            None => Err(self.invalid("Nexthop id is missing")),
            Some(0) => Err(self.invalid("Invalid nexthop id")),
            Some(id) if self.remove_nexthop(id) => Ok(String::new()),
            Some(_) => Err(errno(KernelError::ENOENT)),
        }
    }

    /// `rtm_to_nh_config`: what a command asks for, where that can be.
    fn wanted_nexthop(&self, spec: &NexthopSpec, dev: Option<u32>) -> Result<Wanted, Failure> {
        let known = matches!(spec.family, Family::Inet | Family::Inet6);
        if !(known || spec.family == Family::Any && spec.group.is_some()) {
            return Err(self.invalid("Invalid address family"));
        }
        if let Some(members) = &spec.group {
            if known {
                return Err(self.invalid("Invalid family for group"));
            }
            self.check_group(members)?;
            return Ok(Wanted::Group(members.clone()));
        }
        if spec.blackhole {
            if spec.via.is_some() || dev.is_some() {
                let why = "Blackhole attribute can not be used with gateway, oif, encap or fdb";
                return Err(self.invalid(why));
            }
            return Ok(Wanted::Blackhole);
        }
        let Some(dev) = dev else {
            return Err(self.invalid("Device attribute required for non-blackhole and non-fdb nexthops"));
        };
        if !self.devices[dev].up {
            return Err(self.no(ENETDOWN, "Nexthop device is not up"));
        }
        if !self.carrier(&self.devices[dev]) {
            return Err(self.no(ENETDOWN, "Carrier for nexthop device is down"));
        }
        if spec.via.is_none() && spec.onlink {
            return Err(self.invalid("ONLINK flag can not be set for nexthop without a gateway"));
        }
        Ok(Wanted::Way(dev))
    }

    /// `nh_check_attr_group`.
    fn check_group(&self, members: &[(u32, u16)]) -> Result<(), Failure> {
        let twice = |at: usize| members[at + 1..].iter().any(|m| m.0 == members[at].0);
        if (0..members.len()).any(twice) {
            return Err(self.invalid("Nexthop id can not be used twice in a group"));
        }
        for &(id, _) in members {
            match self.nexthops.get(id).map(|n| &n.kind) {
                None => return Err(self.invalid("Invalid nexthop id")),
                Some(Kind::Group(_)) => {
                    return Err(self.invalid("Hash-threshold group can not be a nexthop within a group"));
                }
                Some(Kind::Single(way)) if way.blackhole && members.len() > 1 => {
                    let why = "Blackhole nexthop can not be used in a group with more than 1 path";
                    return Err(self.invalid(why));
                }
                Some(Kind::Single(_)) => {}
            }
        }
        Ok(())
    }

    fn new_blackhole(&self, family: Family) -> Result<Single, Failure> {
        let six = family == Family::Inet6;
        let dev = match six {
            true => self.check_way6(None, Some(1), false)?,
            false => self.check_way(MAIN, None, Some(1), false, 0)?,
        };
        Ok(Single { six, via: None, dev, blackhole: true, onlink: false, scope: 0 })
    }

    /// `nh_create_ipv4`, `nh_create_ipv6`.
    fn new_way(&self, spec: &NexthopSpec, dev: u32) -> Result<Single, Failure> {
        let onlink = spec.onlink;
        let via = spec.via.filter(|via| !via.is_unspecified());
        let single = |scope: u8| Single {
            six: spec.family == Family::Inet6,
            via,
            dev,
            blackhole: false,
            onlink,
            scope,
        };
        let via = match via {
            Some(IpAddr::V4(via)) => Some(via),
            Some(IpAddr::V6(via)) => {
                self.check_way6(Some(via), Some(dev), onlink)?;
                return Ok(single(253));
            }
            None if spec.family == Family::Inet6 => {
                self.check_way6(None, Some(dev), false)?;
                return Ok(single(253));
            }
            None => None,
        };
        let Some(via) = via else {
            self.check_way(MAIN, None, Some(dev), false, 0)?;
            return Ok(single(254));
        };
        // Of a VRF's port the gateway is looked for in the VRF's table.
        let table = match self.fib.l3mdevs().of(dev).table {
            0 => MAIN,
            table => table,
        };
        let own = self.fib.find_in(if table == MAIN { LOCAL } else { table }, &Key::to(via)).map(|r| r.kind);
        //= linux v6.12 net/ipv4/fib_semantics.c fib_check_nh_v4_gw
        let nobody = via.is_multicast() || matches!(own, Some(RouteKind::Local | RouteKind::Broadcast));
        if onlink && nobody {
            return Err(self.invalid("Nexthop has invalid gateway"));
        }
        self.check_way(table, Some(via), Some(dev), onlink, 0)?;
        Ok(single(if own == Some(RouteKind::Local) { 254 } else { 253 }))
    }

    /// `replace_nexthop`: what goes by the old one must be able to go by the new one.
    fn check_replace(&self, id: u32, old: &Kind, new: &Kind) -> Result<(), Failure> {
        self.check_routes_by(id, new)?;
        let blackhole = matches!(new, Kind::Single(way) if way.blackhole);
        for (group, size) in self.nexthops.groups_of(id) {
            if blackhole && size > 1 {
                let why = "Blackhole nexthop can not be a member of a group with more than one path";
                return Err(self.invalid(why));
            }
            self.check_routes_by(group, new)?;
        }
        match (old, new) {
            (Kind::Group(_), Kind::Single(_)) => {
                Err(self.invalid("Can not replace a nexthop group with a nexthop."))
            }
            (Kind::Single(_), Kind::Group(_)) => {
                Err(self.invalid("Can not replace a nexthop with a nexthop group."))
            }
            _ => Ok(()),
        }
    }
    /// `fib_check_nh_list`, `fib6_check_nh_list`: the routes that go by `id` could go by `new`.
    fn check_routes_by(&self, id: u32, new: &Kind) -> Result<(), Failure> {
        let ways = self.nexthops.ways_of(id, new);
        for route in self.fib.routes().filter(|r| r.by.is_some_and(|by| by.id == id)) {
            self.check_ways(&ways, route.scope, matches!(new, Kind::Group(_)))?;
        }
        if self.six.fib.routes().any(|r| r.by.is_some_and(|by| by.id == id)) {
            self.check_ways6(&ways)?;
        }
        Ok(())
    }
    /// `fib_check_nexthop`: a route of IPv4 of this scope may go these ways.
    pub(super) fn check_ways(
        &self,
        ways: &[(u32, &Single, u16)],
        scope: u8,
        group: bool,
    ) -> Result<(), Failure> {
        if group && scope == 254 {
            return Err(self.invalid("Route with host scope can not have multiple nexthops"));
        }
        if let Some((_, first, _)) = ways.first() {
            if scope == 254 && first.via.is_some() {
                return Err(self.invalid("Route with host scope can not have a gateway"));
            }
            if first.onlink && scope >= 253 {
                return Err(self.invalid("Scope mismatch with nexthop"));
            }
        }
        self.check_gateways(ways)
    }
    /// There is room for gateways of IPv6 that routes of IPv4 are to lead to.
    pub(super) fn check_gateways(&self, ways: &[(u32, &Single, u16)]) -> Result<(), Failure> {
        if ways.iter().any(|(_, way, _)| way.via.is_some_and(|via| via.is_ipv6())) {
            self.check_room6()?;
        }
        Ok(())
    }
    /// `fib6_check_nexthop`.
    pub(super) fn check_ways6(&self, ways: &[(u32, &Single, u16)]) -> Result<(), Failure> {
        match ways.iter().any(|(_, way, _)| !way.six) {
            true => Err(self.invalid("IPv6 routes can not use an IPv4 nexthop")),
            false => Ok(()),
        }
    }

    pub(super) fn nexthop_view(&self, id: u32, nexthop: &Nexthop) -> NexthopView {
        let bare = NexthopView {
            id,
            group: Vec::new(),
            via: None,
            dev: None,
            scope: 0,
            blackhole: false,
            protocol: nexthop.protocol,
            flags: Vec::new(),
        };
        match &nexthop.kind {
            Kind::Group(members) => NexthopView { group: members.clone(), ..bare },
            Kind::Single(way) if way.blackhole => NexthopView { blackhole: true, ..bare },
            Kind::Single(way) => NexthopView {
                via: way.via,
                dev: self.dev_name(way.dev),
                scope: way.scope,
                flags: if way.onlink { vec!["onlink"] } else { Vec::new() },
                ..bare
            },
        }
    }
    /// The ids that a listing is of (`nh_dump_filtered`), those the program leaves out too.
    fn nexthops_wanted(&self, f: &NexthopFilter) -> Result<Vec<u32>, Failure> {
        let dev = self.last_of(&f.devs)?;
        let mut master = None;
        for (name, vrf) in &f.masters {
            master = Some(match vrf {
                true => self.vrf_called(name, "Invalid VRF\n")?,
                false => self.ifindex(name).ok_or_else(|| no_such_device(name))?,
            });
        }
        if let Some(fault) = &f.fault {
            return Err(fault.clone());
        }
        let wanted = |n: &Nexthop| match &n.kind {
            Kind::Group(_) => f.family == Family::Any && dev.is_none() && master.is_none(),
            Kind::Single(way) => {
                let family = match f.family {
                    Family::Any => true,
                    Family::Inet => !way.six,
                    Family::Inet6 => way.six,
                    Family::Link | Family::Other => false,
                };
                let of = self.device(way.dev).and_then(|d| d.master);
                !f.groups && family && dev.is_none_or(|d| d == way.dev) && (master.is_none() || master == of)
            }
        };
        let spoken = |n: &Nexthop| f.protocol == 0 || f.protocol == u32::from(n.protocol);
        let all = self.nexthops.iter().filter(|(_, n)| wanted(n) && spoken(n));
        Ok(all.map(|(id, _)| id).collect())
    }
    pub(super) fn nexthop_show(&self, f: &NexthopFilter, form: Form) -> Done {
        let wanted = self.nexthops_wanted(f)?;
        if let Some(id) = f.id {
            return self.nexthop_get(id, form);
        }
        let view = |id: u32| self.nexthops.get(id).map(|n| self.nexthop_view(id, n));
        let views: Vec<NexthopView> = wanted.into_iter().filter_map(view).collect();
        Ok(ip::nexthops(&views, form, self.kernel))
    }
    pub(super) fn nexthop_get(&self, id: u32, form: Form) -> Done {
        match self.nexthops.get(id) {
            _ if id == 0 => Err(self.invalid("Invalid nexthop id")),
            None => Err(errno(KernelError::ENOENT)),
            Some(n) => Ok(ip::nexthops(&[self.nexthop_view(id, n)], form, self.kernel)),
        }
    }
    /// `ipnh_flush`: all of them, the groups first.
    pub(super) fn nexthop_flush(&mut self, f: &NexthopFilter) -> Result<Ran, Failure> {
        let mut wanted = self.nexthops_wanted(f)?;
        if let Some(id) = f.id {
            return match id {
                0 => Err(Failure { exit: 1, ..self.invalid("Invalid nexthop id") }),
                id if self.remove_nexthop(id) => Ok(Output::default()),
                _ => Err(Failure { exit: 1, ..errno(KernelError::ENOENT) }),
            };
        }
        if f.all {
            let is_group = |id: &u32| matches!(self.nexthops.get(*id).map(|n| &n.kind), Some(Kind::Group(_)));
            wanted.sort_by_key(|id| !is_group(id));
        }
        let mut flushed = 0;
        let mut stderr = String::new();
        for id in wanted {
            if self.remove_nexthop(id) {
                flushed += 1;
            } else {
                // It went with its last member.
                stderr += &errno(KernelError::ENOENT).stderr;
            }
        }
        let stdout = match flushed {
            0 => "Nothing to flush\n".to_owned(),
            n => format!("Flushed {n} nexthops\n"),
        };
        Ok(Output { stderr, ..Output::say(stdout) })
    }
}

/// What a command asks for.
enum Wanted {
    /// A group.
    Group(Vec<(u32, u16)>),
    /// What drops all.
    Blackhole,
    /// A way over this device.
    Way(u32),
}
