//! Which machines may be on different cores, and how they are best shared among them.
//!
//! Machines are joined where one acts on another at once: by a link without delay, by a segment, by a program that starts a server elsewhere.
//! What is left between them are links with delay: a frame sent now comes so much later at the earliest, and until then either side
//! goes on by itself. The less such links are cut, and the longer they are, the seldomer cores have to wait for each other.

use crate::app;
use crate::event::Event;
use crate::index::NONE;
use crate::link::Port;
use crate::net::Net;
use crate::places::Places;
use crate::world::World;
use penstock_model::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What cores spend on waiting for each other, of each window.
const MEETING: Span = Span::from_us(15);
/// Payload of a datagram that fits into one frame.
const UNCUT: u32 = 1472;
/// What is tried for the least delay of a link that may be cut.
const TRIED: usize = 24;
/// Steps spent on finding the ways of flows.
const STEPS: usize = 20_000_000;

/// Sets of machines.
#[derive(Clone)]
struct Sets(Vec<u32>);

impl Sets {
    fn find(&mut self, mut a: u32) -> u32 {
        while self.0[a as usize] != a {
            let above = self.0[self.0[a as usize] as usize];
            self.0[a as usize] = above;
            a = above;
        }
        a
    }
    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

/// A link that may be cut.
struct Edge {
    ends: (u32, u32),
    delay: Span,
}

/// Shares the machines among at most so many cores, or says why that cannot be done.
pub(crate) fn plan(world: &mut World, cores: usize) -> Result<Places, String> {
    let hosts = world.net.machines.len() as u32;
    let mut sets = Sets((0..hosts).collect());
    let edges = edges(&world.net, &mut sets);
    let programs = join_programs(world, &mut sets);
    join_flows(world, &mut sets, &programs);
    let weights = weights(world);
    let mut delays: Vec<Span> = Vec::new();
    for edge in &edges {
        if sets.find(edge.ends.0) != sets.find(edge.ends.1) {
            delays.push(edge.delay);
        }
    }
    delays.sort_unstable();
    delays.dedup();
    delays.reverse();
    let every = delays.len().div_ceil(TRIED).max(1);
    let mut best: Option<Places> = None;
    for &least in delays.iter().step_by(every) {
        let mut sets = sets.clone();
        edges.iter().filter(|e| e.delay < least).for_each(|e| sets.join(e.ends.0, e.ends.1));
        let Some(mut places) = share(&mut sets, &weights, &edges, cores) else { continue };
        places.programs = programs.first().map_or(0, |&host| places.of(host));
        // Cutting more links must be worth it.
        if best.as_ref().is_none_or(|best| places.gain * 10 > best.gain * 11) {
            best = Some(places);
        }
    }
    best.ok_or_else(|| match programs.len() {
        0 => "no link with a delay divides the network".to_owned(),
        n => format!("no link with a delay divides the network; {n} machines with programs belong together"),
    })
}

/// What no two cores can do, in words.
pub(crate) fn undivided(world: &mut World) -> Result<(), String> {
    let name = |host: u32, net: &Net| net.machines[host as usize].name.clone();
    if world.net.tapped {
        return Err("a device is tapped".to_owned());
    }
    if !world.net.processors.is_empty() {
        return Err("machines share a processor".to_owned());
    }
    for (_, _, event) in world.net.queue.events() {
        if matches!(event, Event::Command(_)) {
            return Err("commands are carried out during the run".to_owned());
        }
    }
    let mut programs = false;
    for n in 0..world.apps.len() {
        let (host, run) = (world.apps[n].host, world.apps[n].run.clone());
        if world.apps[n].script.is_some() {
            return Err(format!("{} has a script", name(host, &world.net)));
        }
        if world.apps[n].result.ended.is_some() {
            continue;
        }
        let (largest, needs_all) = match &mut world.apps[n].program {
            Some(program) => {
                programs |= program.source().is_none();
                (program.largest(), program.needs_all())
            }
            None => {
                programs = true;
                let program = app::launch(&run, host, &world.net);
                program.map_or((0, false), |program| (program.largest(), program.needs_all()))
            }
        };
        if needs_all {
            return Err(format!("{run}: it looks at all machines"));
        }
        // The headers of IPv6 take 20 bytes more.
        let six = world.net.machines[host as usize]
            .host
            .devices()
            .iter()
            .any(|d| !d.loopback && !d.addresses6.is_empty());
        if largest > if six { UNCUT - 20 } else { UNCUT } {
            return Err(format!("{run}: its datagrams go in fragments, which any machine may lose"));
        }
    }
    for machine in &world.net.machines {
        for device in machine.host.devices().iter().filter(|d| !d.loopback) {
            if device.mtu < 1500 || (programs && device.mtu > 1500) {
                let (host, device, mtu) = (&machine.name, &device.name, device.mtu);
                return Err(format!("{host} {device} has an MTU of {mtu}: datagrams may go in fragments"));
            }
        }
    }
    Ok(())
}

/// The links with delay; joins the machines at the others.
fn edges(net: &Net, sets: &mut Sets) -> Vec<Edge> {
    let mut edges = Vec::new();
    for nic in &net.cables.nics {
        if let Port::Wire(w) = nic.port {
            let wire = &net.cables.wires[w as usize];
            match wire.far {
                true => edges.push(Edge { ends: (nic.host, wire.to.0), delay: wire.way.least_delay() }),
                false => sets.join(nic.host, wire.to.0),
            }
        }
    }
    for (machine, number) in net.machines.iter().zip(0..) {
        if let Some(whole) = machine.spaces.of {
            sets.join(whole, number);
        }
    }
    for segment in &net.cables.segments {
        let mut members = segment.nics.iter().map(|&n| net.cables.nics[n as usize].host);
        if let Some(first) = members.next() {
            members.for_each(|host| sets.join(first, host));
        }
    }
    edges
}

/// Joins the machines with programs, and those that their command lines name: a program looks its peer up, and may start a server there.
/// Answers them.
fn join_programs(world: &mut World, sets: &mut Sets) -> Vec<u32> {
    let mut hosts = BTreeSet::new();
    let mut words = BTreeSet::new();
    for app in &mut world.apps {
        if app.program.as_mut().is_some_and(|program| program.source().is_some()) {
            continue;
        }
        hosts.insert(app.host);
        let part = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_'));
        words.extend(app.run.split(part).map(str::to_owned));
    }
    let net = &world.net;
    let mut addresses = BTreeSet::new();
    for word in &words {
        hosts.extend(net.names.hosts.get(word));
        addresses.extend(word.parse::<IpAddr>().ok());
        addresses.extend(net.names.addresses.get(word));
    }
    for addr in addresses {
        let has = |host: &u32| net.machines[*host as usize].host.has_address(addr) && !addr.is_loopback();
        hosts.extend((0..net.machines.len() as u32).filter(has));
    }
    let hosts: Vec<u32> = hosts.into_iter().collect();
    hosts.windows(2).for_each(|two| sets.join(two[0], two[1]));
    hosts
}

/// Joins the ends of flows whose source has to know of the receiver what it can only see when it starts.
fn join_flows(world: &mut World, sets: &mut Sets, programs: &[u32]) {
    let net = &world.net;
    // Ports that are asked for at each machine, and how often.
    let mut wanted: BTreeMap<(u32, bool, u16), u32> = BTreeMap::new();
    let mut to_come = Vec::new();
    for app in &mut world.apps {
        let ended = app.result.ended.is_some();
        let Some(source) = app.program.as_mut().and_then(|program| program.source()) else { continue };
        let (flow, to, listens) = source.about();
        let traced = net.meter.flows[flow as usize].passages.is_some();
        if traced || (!ended && !listens && source.address(net).is_none()) {
            sets.join(app.host, to);
        }
        if ended || listens {
            continue;
        }
        let (sink, udp) = (source.sink(), source.kind().0);
        *wanted.entry((to, udp, sink.port)).or_default() += 1;
        to_come.push((app.host, to, udp, sink));
    }
    for (from, to, udp, sink) in to_come {
        let port = sink.port;
        let table = &net.machines[to as usize].sockets;
        let taken = if udp { table.udp.contains_key(&port) } else { table.listeners.contains_key(&port) };
        // Ports of its own that the machine may give to what it sends.
        let lent = udp && port >= 32_768;
        let shared = wanted[&(to, udp, port)] > 1;
        if !sink.fixed && (taken || lent || shared || programs.binary_search(&to).is_ok()) {
            sets.join(from, to);
        }
    }
}

/// How much each machine will have to do, as far as the flows tell.
fn weights(world: &mut World) -> Vec<u64> {
    let mut weights = vec![1; world.net.machines.len()];
    let mut next: Vec<Vec<u32>> = vec![Vec::new(); weights.len()];
    for edge in all_edges(&world.net) {
        next[edge.0 as usize].push(edge.1);
    }
    let mut by_source: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
    let mut by_sink: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
    for app in &mut world.apps {
        match app.program.as_mut().and_then(|program| program.source()) {
            Some(source) => {
                let weight = if source.kind().1 { 10 } else { 1 };
                let to = source.about().1;
                by_source.entry(app.host).or_default().push((to, weight));
                by_sink.entry(to).or_default().push((app.host, weight));
            }
            None => weights[app.host as usize] += 30,
        }
    }
    // Ways are the same both ways: from where there are fewer.
    let flows = if by_sink.len() < by_source.len() { by_sink } else { by_source };
    let most = STEPS / weights.len().max(1);
    for (&from, to) in flows.iter().take(most) {
        let mut before = vec![NONE; weights.len()];
        before[from as usize] = from;
        let mut line = vec![from];
        let mut at = 0;
        while let Some(&host) = line.get(at) {
            at += 1;
            for &there in &next[host as usize] {
                if before[there as usize] == NONE {
                    before[there as usize] = host;
                    line.push(there);
                }
            }
        }
        for &(to, weight) in to {
            // Sending and receiving is more than forwarding.
            weights[from as usize] += weight;
            weights[to as usize] += weight;
            let mut host = to;
            while before[host as usize] != NONE {
                weights[host as usize] += 2 * weight;
                if host == from {
                    break;
                }
                host = before[host as usize];
            }
        }
    }
    weights
}

/// From machine to machine, over whatever link.
fn all_edges(net: &Net) -> Vec<(u32, u32)> {
    let mut all = Vec::new();
    for nic in &net.cables.nics {
        match nic.port {
            Port::Wire(w) => all.push((nic.host, net.cables.wires[w as usize].to.0)),
            Port::Segment(s) => {
                // As a star: the way is as long.
                let first = net.cables.segments[s as usize].nics[0];
                let hub = net.cables.nics[first as usize].host;
                all.extend([(nic.host, hub), (hub, nic.host)]);
            }
            Port::Nothing => {}
        }
    }
    all
}

/// Shares the sets among the cores, the largest first, each to the core that has least. `None` where all is one.
fn share(sets: &mut Sets, weights: &[u64], edges: &[Edge], cores: usize) -> Option<Places> {
    let roots: Vec<u32> = (0..weights.len() as u32).map(|host| sets.find(host)).collect();
    let mut each: BTreeMap<u32, u64> = BTreeMap::new();
    for (&root, &weight) in roots.iter().zip(weights) {
        *each.entry(root).or_default() += weight;
    }
    if each.len() < 2 {
        return None;
    }
    let mut by_weight: Vec<(u64, u32)> = each.iter().map(|(&root, &weight)| (weight, root)).collect();
    by_weight.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut loads = vec![0; cores.min(each.len())];
    let mut core_of: BTreeMap<u32, u16> = BTreeMap::new();
    for (weight, root) in by_weight {
        let (core, load) = loads.iter_mut().enumerate().min_by_key(|(_, load)| **load)?;
        *load += weight;
        core_of.insert(root, core as u16);
    }
    let host: Vec<u16> = roots.iter().map(|root| core_of[root]).collect();
    let cut = edges.iter().filter(|e| host[e.ends.0 as usize] != host[e.ends.1 as usize]);
    // Parts that nothing joins never wait.
    let window = cut.map(|e| e.delay).min().unwrap_or(Span::from_secs(3600));
    let (all, most) = (loads.iter().sum::<u64>(), loads.iter().copied().max()?);
    let meeting = (u128::from(all) * MEETING.as_ns() as u128 / window.as_ns().max(1) as u128) as u64;
    let (gain, even) = (all * 1000 / (most + meeting).max(1), all * 1000 / most.max(1));
    let busiest = (0..).zip(weights).max_by_key(|(_, weight)| **weight).map_or(0, |(host, _)| host);
    Some(Places { host, cores: loads.len(), programs: 0, window, gain, even, busiest })
}
