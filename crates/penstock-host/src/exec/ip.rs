//! `ip`: addresses, links, routes and neighbours, changed and shown.
//!
//! Follows: linux v6.12 `net/ipv4/devinet.c`, `fib_semantics.c`, `fib_frontend.c`, `net/core/rtnetlink.c` for what is
//! refused and how; the same of 2.6.35, which gives no sentences.

use super::Ran;
use crate::arp::MAC_BROADCAST;
use crate::route::{Proto, Route, RouteKind, Table};
use crate::{Host, HostCx, Nud, Output, Prefix};
use penstock_lang::ip::{
    self, AddressView, Broadcast, Command, Failure, LinkView, NeighView, RouteSpec, RouteVerb, RouteView,
};
use penstock_lang::token::Line;
use penstock_model::{Kernel, KernelError, Time};
use penstock_packet::Pool;
use std::net::Ipv4Addr;

type Done = Result<String, Failure>;

impl Host {
    pub(super) fn ip(&mut self, line: &Line, now: Time) -> Ran {
        let done = ip::parse(&line.words, self.kernel).and_then(|command| match command {
            Command::Help(text) => Err(Failure { stderr: text, exit: 255, word: 0, help: String::new() }),
            Command::Say(text) => Ok(text),
            other => self.ip_command(other, now),
        });
        match done {
            Ok(stdout) => Output::say(stdout),
            Err(f) => Output::fail(f.stderr, f.exit, &f.help).at_word(line, f.word),
        }
    }

    /// A refusal: the sentence under 6.12, the bare errno under 2.6.35.
    fn no(&self, errno: i32, sentence: &str) -> Failure {
        ip::refused(&match self.kernel {
            Kernel::V2_6_35 => KernelError::errno(errno),
            Kernel::V6_12 => KernelError::new(errno, sentence),
        })
    }
    fn dev(&self, name: &str) -> Result<u32, Failure> {
        self.ifindex(name).ok_or_else(|| ip::no_device(name))
    }

    fn ip_command(&mut self, command: Command, now: Time) -> Done {
        let quiet = |()| String::new();
        match command {
            Command::Help(text) | Command::Say(text) => Ok(text),
            Command::AddrAdd { dev, prefix, broadcast, replace } => {
                let ifindex = self.dev(&dev)?;
                let prefix = Prefix::new(prefix.0, prefix.1);
                let broadcast = broadcast.map(|b| match b {
                    Broadcast::Last => prefix.broadcast(),
                    Broadcast::Addr(addr) => addr,
                });
                match self.add_address_with(ifindex, prefix, broadcast) {
                    Err(e) if e.errno == KernelError::EEXIST && replace => Ok(String::new()),
                    Err(e) if e.errno == KernelError::EEXIST => {
                        Err(self.no(KernelError::EEXIST, "ipv4: Address already assigned"))
                    }
                    Err(e) => Err(ip::refused(&e)),
                    Ok(()) => Ok(String::new()),
                }
            }
            Command::AddrDel { dev, prefix } => {
                let ifindex = self.dev(&dev)?;
                self.delete_address(ifindex, Prefix::new(prefix.0, prefix.1))
                    .map_err(|_| self.no(99, "ipv4: Address not found"))
                    .map(quiet)
            }
            Command::AddrFlush(dev) => {
                let ifindex = self.dev(&dev)?;
                while let Some(a) = self.devices[ifindex as usize - 1].addresses.first() {
                    let prefix = a.prefix;
                    self.delete_address(ifindex, prefix).map_err(|e| ip::refused(&e))?;
                }
                Ok(String::new())
            }
            Command::Show(dev, addresses, form) => {
                let only = dev.map(|d| self.missing_or(&d)).transpose()?;
                let views = self.link_views(only);
                Ok(ip::links(&views, addresses, form, self.kernel))
            }
            Command::LinkSet { dev, up, mtu, txqueuelen, address } => {
                let ifindex = self.dev(&dev)?;
                self.link_set(ifindex, up, mtu, txqueuelen, address, now).map(quiet)
            }
            Command::Route(verb, spec) => self.route_change(verb, &spec).map(quiet),
            Command::RouteShow { dev, table, dst, default } => {
                let dev = dev.map(|d| self.dev(&d)).transpose()?;
                Ok(self.show_routes(dev, table, dst, default))
            }
            Command::RouteGet(addr) => self.route_get(addr),
            Command::RouteFlush { dev, cache } => {
                if let Some(dev) = dev {
                    let ifindex = self.dev(&dev)?;
                    self.fib.remove(|r| r.dev == ifindex && r.table == Table::Main);
                } else if cache {
                    self.fib.invalidate();
                }
                Ok(String::new())
            }
            Command::NeighShow(dev, _) => {
                let only = dev.as_deref().map(|d| self.dev(d)).transpose()?;
                Ok(ip::neighbours(&self.neigh_views(only), self.kernel))
            }
            Command::NeighAdd { dev, addr, mac, state, exclusive } => {
                let ifindex = self.dev(&dev)?;
                if exclusive && self.neigh.find(ifindex, addr).is_some() {
                    return Err(ip::refused(&KernelError::errno(KernelError::EEXIST)));
                }
                self.neigh_set(ifindex, addr, mac, &state, now);
                Ok(String::new())
            }
            Command::NeighDel { dev, addr } => {
                let ifindex = self.dev(&dev)?;
                match self.neigh.find(ifindex, addr) {
                    Some(at) => {
                        self.neigh_delete(at);
                        Ok(String::new())
                    }
                    None => Err(ip::refused(&KernelError::errno(KernelError::ENOENT))),
                }
            }
            Command::NeighFlush(dev) => {
                let ifindex = self.dev(&dev)?;
                for at in 0..self.neigh.len() {
                    let n = self.neigh.at(at);
                    if n.ifindex == ifindex && n.state != Nud::Permanent && n.state != Nud::Noarp {
                        self.neigh_delete(at);
                    }
                }
                Ok(String::new())
            }
        }
    }

    /// `ip … show dev NAME` has its own words for a device that is not there.
    fn missing_or(&self, name: &str) -> Result<u32, Failure> {
        self.ifindex(name).ok_or_else(|| Failure {
            stderr: format!("Device \"{name}\" does not exist.\n"),
            exit: 1,
            word: 0,
            help: "ip link shows the devices there are".to_owned(),
        })
    }

    fn link_set(
        &mut self,
        ifindex: u32,
        up: Option<bool>,
        mtu: Option<u32>,
        txqueuelen: Option<u32>,
        address: Option<[u8; 6]>,
        now: Time,
    ) -> Result<(), Failure> {
        let loopback = self.devices[ifindex as usize - 1].loopback;
        let most = if loopback { 0x7fff_ffff } else { 65_535 };
        match mtu {
            Some(mtu) if mtu < 68 => return Err(self.no(22, "mtu less than device minimum")),
            Some(mtu) if mtu > most => return Err(self.no(22, "mtu greater than device maximum")),
            _ => {}
        }
        if let Some(mac) = address
            && (loopback || mac == [0; 6] || mac == MAC_BROADCAST || mac[0] & 1 == 1)
        {
            return Err(ip::refused(&KernelError::errno(99)));
        }
        if let Some(mac) = address {
            self.devices[ifindex as usize - 1].mac = mac;
        }
        let refused = |e: KernelError| ip::refused(&e);
        if let Some(mtu) = mtu {
            self.set_mtu(ifindex, mtu, now).map_err(refused)?;
        }
        if let Some(packets) = txqueuelen {
            self.set_tx_queue_len(ifindex, packets, now).map_err(refused)?;
        }
        if let Some(up) = up {
            self.set_up(ifindex, up);
        }
        Ok(())
    }

    fn route_change(&mut self, verb: RouteVerb, spec: &RouteSpec) -> Result<(), Failure> {
        let dev = spec.dev.as_deref().map(|d| self.dev(d)).transpose()?;
        let dst = spec.dst.map_or(Prefix::new(Ipv4Addr::UNSPECIFIED, 0), |(a, l)| Prefix::new(a, l));
        if dst.network() != dst {
            return Err(self.no(22, "Invalid prefix for given prefix length"));
        }
        let kind = match spec.kind {
            None | Some(ip::RouteKind::Unicast) => RouteKind::Unicast,
            Some(ip::RouteKind::Unreachable) => RouteKind::Unreachable,
            Some(ip::RouteKind::Prohibit) => RouteKind::Prohibit,
            Some(ip::RouteKind::Blackhole) => RouteKind::Blackhole,
        };
        if verb == RouteVerb::Del {
            let gone = self.fib.remove_first(|r| {
                r.table == Table::Main
                    && r.dst == dst
                    && (spec.via.is_none() || r.via == spec.via)
                    && dev.is_none_or(|d| r.dev == d)
                    && spec.metric.is_none_or(|m| r.metric == m)
                    && spec.src.is_none_or(|s| r.src == Some(s))
                    && (spec.kind.is_none() || r.kind == kind)
            });
            return match gone {
                Some(_) => Ok(()),
                None => Err(ip::refused(&KernelError::errno(KernelError::ESRCH))),
            };
        }
        let route = self.new_route(spec, dst, kind, dev)?;
        let same = |r: &Route| r.table == Table::Main && r.dst == dst && r.metric == route.metric;
        let there = self.fib.routes().iter().any(same);
        match (verb, there) {
            (RouteVerb::Add, true) => return Err(ip::refused(&KernelError::errno(KernelError::EEXIST))),
            (RouteVerb::Change, false) => return Err(ip::refused(&KernelError::errno(KernelError::ENOENT))),
            (RouteVerb::Change | RouteVerb::Replace, true) => {
                self.fib.remove_first(same);
            }
            _ => {}
        }
        self.fib.insert(route);
        Ok(())
    }

    /// `fib_check_nh`: the next hop must be a neighbour.
    fn new_route(
        &self,
        spec: &RouteSpec,
        dst: Prefix,
        kind: RouteKind,
        dev: Option<u32>,
    ) -> Result<Route, Failure> {
        let proto = if spec.proto_static { Proto::Static } else { Proto::Boot };
        let metric = spec.metric.unwrap_or(0);
        let route =
            |dev| Route { table: Table::Main, dst, kind, via: spec.via, dev, src: spec.src, metric, proto };
        if let Some(src) = spec.src
            && !self.is_local(src)
        {
            return Err(self.no(22, "Invalid prefsrc address"));
        }
        if kind != RouteKind::Unicast {
            if spec.via.is_some() || dev.is_some() {
                return Err(self.no(22, "Invalid route type"));
            }
            return Ok(route(0));
        }
        let down = |d: u32| !self.devices[d as usize - 1].up;
        match (spec.via, dev) {
            (None, None) => {
                let (errno, sentence) = (19, "Nexthop has invalid gateway or device mismatch");
                Err(match self.kernel {
                    Kernel::V2_6_35 => self.no(errno, sentence),
                    Kernel::V6_12 => ip::refused(&KernelError::errno(errno)),
                })
            }
            (None, Some(d)) if down(d) => Err(self.no(100, "Device for nexthop is not up")),
            (None, Some(d)) => Ok(route(d)),
            (Some(via), dev) => {
                let hop = self.fib.search(via);
                let direct = hop.kind == Some(RouteKind::Unicast) && hop.next == via;
                // An outgoing device must be the one the gateway is behind.
                let behind = dev.is_none_or(|d| d == hop.oif);
                if dev.is_some_and(down) {
                    return Err(ip::refused(&KernelError::errno(100)));
                }
                if !direct || !behind {
                    let errno = match (self.kernel, hop.kind) {
                        (_, Some(RouteKind::Local | RouteKind::Broadcast)) => 22,
                        (Kernel::V2_6_35, None) => 3,
                        _ => 101,
                    };
                    return Err(self.no(errno, "Nexthop has invalid gateway"));
                }
                Ok(route(hop.oif))
            }
        }
    }

    fn link_views(&self, only: Option<u32>) -> Vec<LinkView> {
        let wanted = self.devices.iter().filter(|d| only.is_none_or(|i| i == d.ifindex));
        wanted
            .map(|d| LinkView {
                ifindex: d.ifindex,
                name: d.name.clone(),
                loopback: d.loopback,
                up: d.up,
                mtu: d.mtu,
                qdisc: if d.loopback { "noqueue" } else { d.tree.root().kind() }.to_owned(),
                qlen: d.tx_queue_len,
                mac: d.mac,
                rx: (d.counters.rx_bytes, d.counters.rx_packets, d.counters.rx_dropped),
                tx: (d.counters.tx_bytes, d.counters.tx_packets, d.counters.tx_dropped),
                addresses: d
                    .addresses
                    .iter()
                    .map(|a| AddressView {
                        prefix: (a.prefix.addr, a.prefix.len),
                        broadcast: a.broadcast,
                        secondary: a.secondary,
                        host_scope: d.loopback,
                    })
                    .collect(),
            })
            .collect()
    }

    fn route_view(&self, r: &Route, tables: bool) -> RouteView {
        let link = r.via.is_none() && r.kind == RouteKind::Unicast || r.kind == RouteKind::Broadcast;
        RouteView {
            kind: match r.kind {
                RouteKind::Unicast => "",
                RouteKind::Local => "local",
                RouteKind::Broadcast => "broadcast",
                RouteKind::Unreachable => "unreachable",
                RouteKind::Prohibit => "prohibit",
                RouteKind::Blackhole => "blackhole",
            },
            dst: (r.dst.addr, r.dst.len),
            via: r.via,
            dev: self.device(r.dev).map(|d| d.name.clone()),
            table: (tables && r.table == Table::Local).then_some("local"),
            proto: match r.proto {
                Proto::Kernel => Some("kernel"),
                Proto::Static => Some("static"),
                Proto::Boot => None,
            },
            scope: match r.kind {
                RouteKind::Local => Some("host"),
                _ if link => Some("link"),
                _ => None,
            },
            src: r.src,
            metric: (r.metric != 0).then_some(r.metric),
        }
    }

    fn show_routes(&self, dev: Option<u32>, table: u8, dst: Option<ip::Prefix>, default: bool) -> String {
        let mut wanted: Vec<&Route> = self
            .fib
            .routes()
            .iter()
            .filter(|r| match table {
                0 => true,
                255 => r.table == Table::Local,
                _ => r.table == Table::Main,
            })
            .filter(|r| dev.is_none_or(|d| d == r.dev))
            .filter(|r| dst.is_none_or(|(a, l)| r.dst == Prefix::new(a, l)))
            .filter(|r| !default || r.dst.len == 0)
            .collect();
        // Today's trie is walked by address, longest prefix first; 2.6.35's hash by length.
        if self.kernel == Kernel::V6_12 {
            wanted.sort_by_key(|r| {
                (table == 0 && r.table == Table::Local, r.dst.addr, 32 - r.dst.len, r.metric)
            });
        }
        let views: Vec<RouteView> = wanted
            .into_iter()
            .map(|r| {
                let mut view = self.route_view(r, table == 0);
                if dev.is_some() {
                    view.dev = None;
                }
                view
            })
            .collect();
        ip::routes(&views, self.kernel)
    }

    fn route_get(&mut self, addr: Ipv4Addr) -> Done {
        let hop = self.fib.search(addr);
        let errno = match hop.kind {
            None => 101,
            Some(RouteKind::Unreachable) => 113,
            Some(RouteKind::Prohibit) => 13,
            Some(RouteKind::Blackhole) => 22,
            _ => 0,
        };
        if errno != 0 {
            return Err(ip::refused(&KernelError::errno(errno)));
        }
        let local = hop.kind == Some(RouteKind::Local);
        let oif = if local { 1 } else { hop.oif };
        let view = RouteView {
            kind: match hop.kind {
                Some(RouteKind::Local) => "local",
                Some(RouteKind::Broadcast) => "broadcast",
                _ => "",
            },
            dst: (addr, 32),
            via: (hop.next != addr).then_some(hop.next),
            dev: self.device(oif).map(|d| d.name.clone()),
            table: None,
            proto: None,
            scope: None,
            src: Some(self.source_for(&hop, addr)),
            metric: None,
        };
        Ok(ip::route_got(&view, self.kernel))
    }

    fn neigh_views(&self, only: Option<u32>) -> Vec<NeighView> {
        self.neigh
            .iter()
            .filter(|n| only.is_none_or(|i| i == n.ifindex) && !matches!(n.state, Nud::None | Nud::Noarp))
            .map(|n| NeighView {
                addr: n.addr,
                dev: match only {
                    Some(_) => None,
                    None => self.device(n.ifindex).map(|d| d.name.clone()),
                },
                mac: n.state.is_valid().then_some(n.mac),
                state: n.state.name(),
            })
            .collect()
    }

    /// Enters a neighbour by hand; what waited for it goes out.
    fn neigh_set(&mut self, ifindex: u32, addr: Ipv4Addr, mac: [u8; 6], state: &str, now: Time) {
        let at = self.neigh.find_or_create(ifindex, addr, now);
        let state = match state {
            "reachable" => Nud::Reachable,
            "stale" => Nud::Stale,
            "noarp" => Nud::Noarp,
            _ => Nud::Permanent,
        };
        if matches!(self.neigh.at(at).state, Nud::Permanent | Nud::Noarp) {
            self.neigh.at_mut(at).state = Nud::Stale;
        }
        let (mut pool, mut out) = (Pool::new(), std::mem::take(&mut self.pending));
        let mut cx = HostCx { now, pool: &mut pool, out: &mut out };
        self.neigh_update(at, mac, state, true, &mut cx);
        out.append(&mut self.pending);
        self.pending = out;
    }
}
