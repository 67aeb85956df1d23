//! Network namespaces of a machine: each is a machine of its own here, with its sockets, its cards and its timer, but for commands.
//!
//! A command may look at any of them, so for its time the machine has them all back. Afterwards each device has its card, wherever it has gone
//! meanwhile, and the two ends of a veth pair are joined by a cable without a rate.
//!
//! Differs from Linux: a frame is its socket's memory until it has crossed its first pair, not until the network layer takes it.

use crate::cpu::Cpu;
use crate::event::Timer;
use crate::index::NONE;
use crate::link::{Port, Way, Wire};
use crate::machine::{Loopback, Machine, Spaces};
use crate::net::Net;
use crate::sock::SocketTable;
use crate::spec::{Bleach, Cost, Framing, HostId};
use crate::world::World;
use penstock_host::Host;
use penstock_model::{Span, Time};
use penstock_packet::Packet;
use std::collections::VecDeque;

impl World {
    /// The network namespaces of a machine (`ip netns add`) that have a name, by their numbers: hosts, each with its name.
    pub fn namespaces(&self, id: HostId) -> Vec<(HostId, String)> {
        let machine = &self.net.machines[id.0 as usize];
        let named = machine.spaces.others.iter().filter_map(|(&space, &m)| {
            let name = machine.host.name_of_space(space)?;
            Some((HostId(m), name.to_owned()))
        });
        named.collect()
    }
}

impl Net {
    /// The machine that a namespace is one of: for a machine as such itself.
    pub(crate) fn whole(&self, host: u32) -> u32 {
        self.machines[host as usize].spaces.of.unwrap_or(host)
    }
    /// The machine that is a namespace of this one's, by its name.
    pub(crate) fn namespace(&self, host: u32, name: &str) -> Option<u32> {
        let whole = self.whole(host);
        let machine = &self.machines[whole as usize];
        let space = machine.host.space_called(name)?;
        machine.spaces.others.get(&space).copied()
    }
    /// Lets a command be carried out on a machine or in one of its namespaces: for that time it has them all.
    pub(crate) fn with_spaces<R>(&mut self, host: u32, work: impl FnOnce(&mut Host) -> R) -> R {
        let whole = self.whole(host);
        if !self.machines[whole as usize].host.has_spaces() {
            let answer = work(&mut self.machines[whole as usize].host);
            if self.machines[whole as usize].host.has_spaces() {
                self.spread(whole);
            }
            return answer;
        }
        self.gather(whole);
        let space = match host == whole {
            true => 0,
            false => self.space_of(whole, host),
        };
        let mut work = Some(work);
        let mut answer = None;
        self.machines[whole as usize]
            .host
            .in_space(space, |host| answer = work.take().map(|work| work(host)));
        self.spread(whole);
        answer.expect("a machine has the namespaces that it is given")
    }
    /// Gives a machine all its namespaces back.
    pub(crate) fn gather(&mut self, whole: u32) {
        let others: Vec<u32> = self.machines[whole as usize].spaces.others.values().copied().collect();
        for m in others {
            let machine = &mut self.machines[m as usize];
            let mut there = machine.spaces.absent.take().unwrap_or_else(|| Box::new(Host::absent()));
            std::mem::swap(&mut *there, &mut machine.host);
            self.machines[whole as usize].host.give_space(*there);
        }
    }
    /// The number of the namespace that a machine is.
    fn space_of(&self, whole: u32, host: u32) -> u32 {
        let others = &self.machines[whole as usize].spaces.others;
        others.iter().find(|(_, m)| **m == host).map_or(0, |(space, _)| *space)
    }
    /// Makes machines of a machine's namespaces again.
    pub(crate) fn spread(&mut self, whole: u32) {
        for mut host in self.machines[whole as usize].host.take_spaces() {
            let m = match self.machines[whole as usize].spaces.others.get(&host.space()) {
                Some(&known) => known,
                None => self.new_namespace(whole, &host),
            };
            let machine = &mut self.machines[m as usize];
            std::mem::swap(&mut machine.host, &mut host);
            machine.spaces.absent = Some(Box::new(host));
        }
    }
    fn new_namespace(&mut self, whole: u32, host: &Host) -> u32 {
        let m = self.machines.len() as u32;
        let space = host.space();
        let owner = &self.machines[whole as usize];
        let name = match owner.host.name_of_space(space) {
            Some(own) => format!("{}/{own}", owner.name),
            None => format!("{}/{space}", owner.name),
        };
        let cost = owner.cpu.cost.clone();
        if cost != Cost::ZERO && owner.processor == NONE {
            self.machines[whole as usize].processor = self.processors.len() as u32;
            self.processors.push(Time::ZERO);
        }
        let owner = &self.machines[whole as usize];
        let mut cpu = Cpu::new(cost, self.rng(&format!("host:{name}/cpu")), owner.kernel.hz());
        cpu.hz = owner.cpu.hz;
        let machine = Machine {
            kernel: owner.kernel,
            stack: owner.stack,
            iperf: owner.iperf,
            processor: owner.processor,
            host: Host::absent(),
            nics: Vec::new(),
            cpu,
            timer: Timer::default(),
            sockets: SocketTable::new(self.rng(&format!("host:{name}/sockets"))),
            lo: Loopback::default(),
            spaces: Spaces { of: Some(whole), ..Spaces::default() },
            name,
        };
        self.machines.push(machine);
        self.machines[whole as usize].spaces.others.insert(space, m);
        m
    }
    /// A machine and its namespaces.
    pub(crate) fn family(&self, whole: u32) -> Vec<u32> {
        let others = self.machines[whole as usize].spaces.others.values().copied();
        [whole].into_iter().chain(others).collect()
    }
    /// Gives each device of a machine its card, wherever it has gone, and joins the ends of veth pairs; then what its namespaces' calls asked
    /// for is done.
    pub(crate) fn after_command_everywhere(&mut self, whole: u32) {
        let family = self.family(whole);
        let changed: Vec<u32> = family.iter().copied().filter(|&m| self.plug(m)).collect();
        for &m in &changed {
            self.join_pairs(whole, m);
        }
        for m in family {
            self.machines[m as usize].host.take_effects(&mut self.todo.asked);
            self.settle(m);
        }
    }
    /// Gives each device of a machine its card; `false` where none has come or gone.
    pub(crate) fn plug(&mut self, m: u32) -> bool {
        let Machine { host, nics, spaces, .. } = &mut self.machines[m as usize];
        if std::mem::replace(&mut spaces.seen, host.devices().changes()) == host.devices().changes() {
            return false;
        }
        nics.clear();
        nics.resize(host.devices().highest() as usize + 1, NONE);
        let mut moved = Vec::new();
        for device in host.devices_mut() {
            let ifindex = device.ifindex;
            let n = match device.card() {
                Some(n) => n,
                None => {
                    let n = self.cables.add(m, ifindex);
                    device.set_card(n);
                    n
                }
            };
            nics[ifindex as usize] = n;
            let nic = &self.cables.nics[n as usize];
            if (nic.host, nic.ifindex) != (m, ifindex) {
                moved.push((n, ifindex));
            }
        }
        for (n, ifindex) in moved {
            self.move_card(n, (m, ifindex));
        }
        true
    }
    /// A card has gone to another machine, or is known by another index.
    fn move_card(&mut self, n: u32, to: (u32, u32)) {
        let nic = &mut self.cables.nics[n as usize];
        let from = (nic.host, nic.ifindex);
        (nic.host, nic.ifindex) = to;
        if nic.port != Port::Nothing {
            self.cables.wires.iter_mut().filter(|wire| wire.to == from).for_each(|wire| wire.to = to);
        }
    }
    /// Joins the ends of the veth pairs that a machine has an end of.
    fn join_pairs(&mut self, whole: u32, m: u32) {
        let host = &self.machines[m as usize].host;
        let ends: Vec<(u32, u32, u32)> = host
            .devices()
            .iter()
            .filter_map(|d| host.veth_peer(d.ifindex).map(|peer| (d.ifindex, peer.space, peer.ifindex)))
            .collect();
        for (ifindex, space, peer) in ends {
            let there = match space {
                0 => Some(whole),
                other => self.machines[whole as usize].spaces.others.get(&other).copied(),
            };
            if let Some(there) = there {
                self.join(m, ifindex, (there, peer));
                self.join(there, peer, (m, ifindex));
            }
        }
    }
    /// Lets what leaves by a device come to another.
    fn join(&mut self, m: u32, ifindex: u32, to: (u32, u32)) {
        let Some(&n) = self.machines[m as usize].nics.get(ifindex as usize).filter(|n| **n != NONE) else {
            return;
        };
        match self.cables.nics[n as usize].port {
            Port::Wire(wire) => self.cables.wires[wire as usize].to = to,
            _ => {
                let rng = self.rng("veth");
                let way = Way { delay: Span::ZERO, loss_ppb: 0, bleach: Bleach::No, rng, course: None };
                let wire = self.cables.numbers.next(&mut self.cables.wires, Wire::absent);
                let (framing, in_flight) = (Framing::default(), VecDeque::new());
                self.cables.wires.push(Wire { to, framing, far: false, leaves: false, in_flight, way });
                let nic = &mut self.cables.nics[n as usize];
                (nic.port, nic.pair) = (Port::Wire(wire), true);
            }
        }
    }
    /// A frame that has left by an end of a veth pair comes to the other; `None`: it was too long, and is lost.
    #[cold]
    pub(crate) fn cross(&mut self, n: u32, wire: u32, mut frame: Packet) -> Option<Packet> {
        let nic = &self.cables.nics[n as usize];
        let (host, ifindex) = (nic.host, nic.ifindex);
        let (there, peer) = self.cables.wires[wire as usize].to;
        let mtu = self.machines[there as usize].host.device(peer).map_or(0, |d| d.mtu);
        if self.machines[host as usize].host.cross(ifindex, &mut frame, mtu, host == there) {
            return Some(frame);
        }
        self.machines[there as usize].host.refused_frame(peer);
        self.lost_on(host, ifindex, frame, "netif", "too-long");
        None
    }
}
