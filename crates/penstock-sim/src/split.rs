//! A world is dealt out to several cores, and put together again.
//!
//! Each core has a world of its own with the same numbers: of what is elsewhere an empty one stands at its place. What a core adds to a table
//! gets numbers that no other core gives. A flow's record is on the core of its sink; the source's core has one for what
//! the sender knows, and every core counts in one of its own what it has lost and marked.

use crate::cpu::Cpu;
use crate::event::{Event, Seq, Timer};
use crate::flow::Flow;
use crate::index::{NONE, Numbers};
use crate::link::{Cables, Nic, Port, Segment, Wire};
use crate::machine::{Loopback, Machine};
use crate::places::{Dealt, Places};
use crate::results::AppResult;
use crate::sock::{Sock, SocketTable};
use crate::spec::{AppId, Cost, HostId, Iperf, Stack};
use crate::wake::{AppTimer, Wakes};
use crate::world::{App, World};
use penstock_host::Host;
use penstock_model::{Kernel, Rng, Time};
use std::collections::{BTreeMap, VecDeque};

/// Deals a table out: each gets all places, with an empty one where another has it.
fn deal<T>(all: &mut Vec<T>, cores: usize, of: &[usize], blank: impl Fn() -> T) -> Vec<Vec<T>> {
    let mut parts: Vec<Vec<T>> = (0..cores).map(|_| Vec::with_capacity(all.len())).collect();
    for (one, &mine) in all.drain(..).zip(of) {
        let mut one = Some(one);
        for (core, part) in parts.iter_mut().enumerate() {
            part.push(if core == mine { one.take().unwrap_or_else(&blank) } else { blank() });
        }
    }
    parts
}
/// Puts a table together. `of`: who has the first; of the others every core has those that it gave numbers to.
fn gather<T>(parts: Vec<Vec<T>>, of: impl Fn(usize) -> usize, blank: impl Fn() -> T) -> Vec<T> {
    let len = parts.iter().map(Vec::len).max().unwrap_or(0);
    let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
    (0..len)
        .map(|n| {
            let mut mine = None;
            for (core, part) in parts.iter_mut().enumerate() {
                let one = part.next();
                if core == of(n) {
                    mine = one;
                }
            }
            mine.unwrap_or_else(&blank)
        })
        .collect()
}

impl Machine {
    /// In place of one that is elsewhere.
    fn absent() -> Machine {
        Machine {
            name: String::new(),
            kernel: Kernel::V6_12,
            stack: Stack::Linux,
            iperf: Iperf::default(),
            host: Host::absent(),
            nics: Vec::new(),
            cpu: Cpu::new(Cost::ZERO, Rng::named(0, ""), 0),
            timer: Timer::default(),
            sockets: SocketTable::new(Rng::named(0, "")),
            lo: Loopback::default(),
            spaces: Default::default(),
            processor: NONE,
        }
    }
}

impl Segment {
    /// In place of one that is elsewhere.
    fn absent() -> Segment {
        Segment {
            name: String::new(),
            nics: Vec::new(),
            ways: Vec::new(),
            wires: Default::default(),
            by_mac: Default::default(),
            by_mac_of: None,
            hear_all: Vec::new(),
            framing: Default::default(),
            busy_until: Time::ZERO,
            serving: false,
            free_pending: false,
            line: VecDeque::new(),
        }
    }
}

impl App {
    /// In place of one that is elsewhere: it has ended.
    fn absent() -> App {
        App {
            host: NONE,
            run: String::new(),
            at: Time::ZERO,
            program: None,
            script: None,
            parent: NONE,
            begun: Vec::new(),
            followers: Vec::new(),
            stands_in: false,
            result: AppResult {
                ended: Some(Time::ZERO),
                ..AppResult::new(AppId(NONE), HostId(NONE), "", "", Time::ZERO)
            },
        }
    }
}

impl Dealt {
    fn of(world: &World, places: &Places) -> Dealt {
        let net = &world.net;
        let nics = net.cables.nics.iter().map(|nic| places.of(nic.host)).collect();
        let receivers: Vec<usize> = net.cables.wires.iter().map(|wire| places.of(wire.to.0)).collect();
        let mut senders = receivers.clone();
        for nic in &net.cables.nics {
            if let Port::Wire(w) = nic.port {
                senders[w as usize] = places.of(nic.host);
            }
        }
        let first = |s: &Segment| s.nics.first().map_or(0, |&n| places.of(net.cables.nics[n as usize].host));
        let apps: Vec<usize> = world.apps.iter().map(|app| places.of(app.host)).collect();
        Dealt {
            nics,
            senders,
            receivers,
            segments: net.cables.segments.iter().map(first).collect(),
            sockets: net.sockets.all.iter().map(|sock| places.of(sock.host)).collect(),
            timers: net.wakes.timers.iter().map(|t| apps.get(t.app as usize).copied().unwrap_or(0)).collect(),
            apps,
            flows: net.meter.flows.iter().map(|f| (places.of(f.from), places.of(f.to))).collect(),
        }
    }
}

impl World {
    /// Deals the world out. What is left here is what belongs to nobody: losses so far, results, the sampler.
    pub(crate) fn deal(&mut self, places: &Places) -> (Dealt, Vec<World>) {
        let cores = places.cores;
        let dealt = Dealt::of(self, places);
        let stand_ins = self.stand_ins(&dealt, places);
        let hosts: Vec<usize> = (0..self.net.machines.len() as u32).map(|host| places.of(host)).collect();
        let events = self.net.queue.take_all();
        let net = &mut self.net;
        let mut machines = deal(&mut net.machines, cores, &hosts, Machine::absent).into_iter();
        let mut nics = deal(&mut net.cables.nics, cores, &dealt.nics, || Nic::unplugged(NONE, 0)).into_iter();
        let mut segments =
            deal(&mut net.cables.segments, cores, &dealt.segments, Segment::absent).into_iter();
        let mut sockets = deal(&mut net.sockets.all, cores, &dealt.sockets, Sock::gone).into_iter();
        let mut timers =
            deal(&mut net.wakes.timers, cores, &dealt.timers, || AppTimer::new(NONE, 0)).into_iter();
        let mut apps = deal(&mut self.apps, cores, &dealt.apps, App::absent).into_iter();
        let mut wires = deal_wires(&mut net.cables.wires, cores, &dealt).into_iter();
        let mut flows = deal_flows(&mut net.meter.flows, cores, &dealt).into_iter();
        let mut worlds = Vec::new();
        for core in 0..cores {
            let numbers = Numbers { at: core, of: cores };
            let mut world = World::new(net.seed);
            world.apps = apps.next().unwrap_or_default();
            let part = &mut world.net;
            part.queue = net.queue.part(core as u64, cores as u64);
            part.guard.expect(hosts.len() + dealt.sockets.len() + dealt.apps.len());
            part.captured = net.captured;
            part.pool = net.pool.beside();
            part.machines = machines.next().unwrap_or_default();
            part.cables = Cables {
                nics: nics.next().unwrap_or_default(),
                wires: wires.next().unwrap_or_default(),
                segments: segments.next().unwrap_or_default(),
                numbers,
                hops: 0,
                commands: net.cables.commands,
            };
            (part.sockets.all, part.sockets.numbers) = (sockets.next().unwrap_or_default(), numbers);
            part.meter = net.meter.beside();
            part.meter.flows = flows.next().unwrap_or_default();
            part.wakes = Wakes { timers: timers.next().unwrap_or_default(), numbers, ..Wakes::default() };
            if core == places.programs {
                std::mem::swap(&mut part.names, &mut net.names);
                std::mem::swap(&mut part.sockets.notes, &mut net.sockets.notes);
            }
            worlds.push(world);
        }
        let start = |&(time, seq, event): &(Time, Seq, Event)| match event {
            Event::Start(app) => Some((app, (time, seq))),
            _ => None,
        };
        for &(time, seq, event) in &events {
            if event != Event::Sample {
                worlds[dealt.core(event, places)].net.queue.schedule_at(time, seq, event);
                continue;
            }
            for (core, world) in worlds.iter_mut().enumerate() {
                let seq = self.samples.get(core).copied().unwrap_or(seq);
                world.net.queue.schedule_at(time, seq, event);
            }
        }
        let starts: BTreeMap<u32, (Time, Seq)> = events.iter().filter_map(start).collect();
        for (app, core, stand_in) in stand_ins {
            if let Some(&(time, seq)) = starts.get(&app) {
                worlds[core].apps[app as usize] = stand_in;
                worlds[core].net.queue.schedule_at(time, seq, Event::Start(app));
            }
        }
        (dealt, worlds)
    }
    /// The receiving sides of flows to come whose source is elsewhere: programs, their cores, what opens them there. The source is told
    /// where it will find them.
    fn stand_ins(&mut self, dealt: &Dealt, places: &Places) -> Vec<(u32, usize, App)> {
        let mut all = Vec::new();
        for (app, n) in self.apps.iter_mut().zip(0..) {
            let at = app.at;
            if app.result.ended.is_some() {
                continue;
            }
            let Some(source) = app.program.as_mut().and_then(|program| program.source()) else { continue };
            let (_, to, listens) = source.about();
            let core = places.of(to);
            if listens || core == dealt.apps[n as usize] {
                continue;
            }
            let Some(addr) = source.address(&self.net) else { continue };
            let sink = source.sink();
            source.finds((addr, sink.port));
            let program = Some(sink.program);
            let result = AppResult::new(AppId(NONE), HostId(to), "", "", at);
            all.push((n, core, App { host: to, at, program, stands_in: true, result, ..App::absent() }));
        }
        all
    }
    /// Puts the world together again.
    pub(crate) fn gather(&mut self, mut worlds: Vec<World>, dealt: &Dealt, places: &Places) {
        let cores = worlds.len();
        self.gather_flows(&mut worlds, dealt, places);
        self.samples.clear();
        let mut events: Vec<(Time, Seq, Event)> = Vec::new();
        for (core, world) in worlds.iter_mut().enumerate() {
            self.events += world.events;
            let net = &mut self.net;
            net.cables.hops += world.net.cables.hops;
            net.queue.go_behind(&world.net.queue);
            for (time, seq, event) in world.net.queue.take_all() {
                let first = match event {
                    Event::Sample => {
                        self.samples.push(seq);
                        core == 0
                    }
                    // What stands in for a receiver is made anew.
                    Event::Start(app) => dealt.apps.get(app as usize).is_none_or(|&mine| mine == core),
                    _ => true,
                };
                if first {
                    events.push((time, seq, event));
                }
            }
            if core == places.programs {
                std::mem::swap(&mut world.net.names, &mut net.names);
                std::mem::swap(&mut world.net.sockets.notes, &mut net.sockets.notes);
            }
            net.cables.commands = net.cables.commands.max(world.net.cables.commands);
            if world.net.guard.stuck().is_some() && net.guard.stuck().is_none() {
                std::mem::swap(&mut world.net.guard, &mut net.guard);
            }
            net.pool.join(std::mem::take(&mut world.net.pool));
        }
        fn all<T>(worlds: &mut [World], of: impl Fn(&mut World) -> &mut Vec<T>) -> Vec<Vec<T>> {
            worlds.iter_mut().map(|world| std::mem::take(of(world))).collect()
        }
        let those = |of: &[usize], n: usize| of.get(n).copied().unwrap_or(n % cores);
        let net = &mut self.net;
        let parts = all(&mut worlds, |w| &mut w.net.machines);
        net.machines = gather(parts, |n| places.of(n as u32), Machine::absent);
        let parts = all(&mut worlds, |w| &mut w.net.cables.nics);
        net.cables.nics = gather(parts, |n| those(&dealt.nics, n), || Nic::unplugged(NONE, 0));
        let parts = all(&mut worlds, |w| &mut w.net.cables.segments);
        net.cables.segments = gather(parts, |n| those(&dealt.segments, n), Segment::absent);
        let parts = all(&mut worlds, |w| &mut w.net.sockets.all);
        net.sockets.all = gather(parts, |n| those(&dealt.sockets, n), Sock::gone);
        let parts = all(&mut worlds, |w| &mut w.net.wakes.timers);
        net.wakes.timers = gather(parts, |n| those(&dealt.timers, n), || AppTimer::new(NONE, 0));
        let parts = all(&mut worlds, |w| &mut w.apps);
        let programs = places.programs;
        self.apps = gather(parts, |n| dealt.apps.get(n).copied().unwrap_or(programs), App::absent);
        // Of a wire the sender has the way, with its dice, and the receiver what is under way.
        let mut parts = all(&mut worlds, |w| &mut w.net.cables.wires);
        for (wire, from, to) in dealt.cut() {
            let under_way = std::mem::take(&mut parts[to][wire as usize].in_flight);
            let wire = &mut parts[from][wire as usize];
            (wire.in_flight, wire.leaves) = (under_way, false);
        }
        net.cables.wires = gather(parts, |n| those(&dealt.senders, n), Wire::absent);
        for (time, seq, event) in events {
            net.queue.schedule_at(time, seq, event);
            if let Event::Start(app) = event
                && let Some(source) = self.apps[app as usize].program.as_mut().and_then(|p| p.source())
            {
                source.forgets();
            }
        }
    }
    fn gather_flows(&mut self, worlds: &mut [World], dealt: &Dealt, places: &Places) {
        let slots: Vec<Vec<u32>> =
            worlds.iter().map(|world| self.net.meter.join_drops(&world.net.meter)).collect();
        let len = worlds.iter().map(|world| world.net.meter.flows.len()).max().unwrap_or(0);
        let flows = &mut self.net.meter.flows;
        flows.resize_with(len, Flow::unknown);
        let own: Vec<u32> = (0..self.net.meter.drops().len() as u32).collect();
        for n in 0..len {
            let (from, to) = dealt.flow(n, places);
            let mut sink = std::mem::replace(&mut worlds[to].net.meter.flows[n], Flow::unknown());
            let mut fates = vec![(to, sink.take_fates())];
            sink.add_fates(std::mem::replace(&mut self.net.meter.flows[n], Flow::unknown()), &own);
            for (core, world) in worlds.iter_mut().enumerate().filter(|&(core, _)| core != to) {
                let Some(other) = world.net.meter.flows.get_mut(n) else { continue };
                fates.push((core, other.take_fates()));
                if core == from {
                    sink.swap_sending(other);
                }
            }
            for (core, fates) in fates {
                sink.add_fates(fates, &slots[core]);
            }
            self.net.meter.flows[n] = sink;
        }
    }
}

/// Deals wires out: the way is its sender's, what is under way its receiver's.
fn deal_wires(wires: &mut Vec<Wire>, cores: usize, dealt: &Dealt) -> Vec<Vec<Wire>> {
    let mut parts = deal(wires, cores, &dealt.senders, Wire::absent);
    for (wire, from, to) in dealt.cut() {
        let sender = &mut parts[from][wire as usize];
        sender.leaves = true;
        let (under_way, end, framing) = (std::mem::take(&mut sender.in_flight), sender.to, sender.framing);
        let receiver = &mut parts[to][wire as usize];
        (receiver.in_flight, receiver.to, receiver.framing) = (under_way, end, framing);
    }
    parts
}

/// Deals flows out. What became of their packets so far stays here.
fn deal_flows(flows: &mut [Flow], cores: usize, dealt: &Dealt) -> Vec<Vec<Flow>> {
    let mut parts: Vec<Vec<Flow>> = (0..cores).map(|_| Vec::with_capacity(flows.len())).collect();
    for (flow, &(from, to)) in flows.iter_mut().zip(&dealt.flows) {
        let fates = flow.take_fates();
        let mut sink = std::mem::replace(flow, fates);
        let sending = if from == to { flow.blank() } else { sink.take_sending() };
        let (mut sink, mut sending) = (Some(sink), Some(sending));
        for (core, part) in parts.iter_mut().enumerate() {
            let mine = if core == to {
                sink.take()
            } else if core == from {
                sending.take()
            } else {
                None
            };
            part.push(mine.unwrap_or_else(|| flow.blank()));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Queue;

    #[test]
    fn tables_are_dealt_out_and_put_together() {
        let of = [0, 2, 1, 0];
        let mut all = vec!["a", "b", "c", "d"];
        let mut parts = deal(&mut all, 3, &of, || "-");
        assert_eq!(parts, [["a", "-", "-", "d"], ["-", "-", "c", "-"], ["-", "b", "-", "-"]]);
        for (at, part) in parts.iter_mut().enumerate().filter(|(at, _)| *at != 1) {
            assert_eq!(Numbers { at, of: 3 }.next(part, || "-") as usize % 3, at);
            part.push("new");
        }
        let whose = |n: usize| of.get(n).copied().unwrap_or(n % 3);
        assert_eq!(gather(parts, whose, || "-"), ["a", "b", "c", "d", "-", "new", "new"]);
    }

    #[test]
    fn no_two_queues_give_the_same_place() {
        let mut all = Queue::new();
        let before = all.schedule(Time::from_ns(5), Event::Sample);
        let mut parts: Vec<Queue> = (0..3).map(|n| all.part(n, 3)).collect();
        let mut seqs = vec![before];
        for part in &mut parts {
            seqs.extend([part.reserve(), part.reserve()]);
            all.go_behind(part);
        }
        seqs.push(all.reserve());
        assert!(seqs[1..].iter().all(|seq| *seq > before) && seqs[..7].iter().all(|seq| *seq < seqs[7]));
        seqs.sort_unstable();
        seqs.dedup();
        assert_eq!(seqs.len(), 8);
    }
}
