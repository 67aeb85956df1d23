//! Everything but the programs: the machines, what lies between them, the sockets, and what is measured.

use crate::event::Queue;
use crate::link::Cables;
use crate::machine::Machine;
use crate::meter::Meter;
use crate::results::Sojourn;
use crate::sock::Sockets;
use crate::spec::HostId;
use crate::still::Guard;
use crate::wake::Wakes;
use penstock_host::{Effect, Host, HostCx};
use penstock_model::{Rng, Time};
use penstock_packet::{Packet, Pool};
use std::collections::BTreeMap;

/// Everything but the programs.
pub(crate) struct Net {
    pub(crate) seed: u64,
    pub(crate) queue: Queue,
    /// Sees to it that time goes on.
    pub(crate) guard: Guard,
    pub(crate) pool: Pool,
    pub(crate) machines: Vec<Machine>,
    /// Of each processor that machines share: until when frames have it.
    pub(crate) processors: Vec<Time>,
    pub(crate) cables: Cables,
    pub(crate) sockets: Sockets,
    pub(crate) meter: Meter,
    pub(crate) wakes: Wakes,
    pub(crate) names: Names,
    pub(crate) todo: Todo,
    /// Some device has a tap.
    pub(crate) tapped: bool,
    /// Some card is captured.
    pub(crate) captured: bool,
}

/// What programs find by its name.
#[derive(Default)]
pub(crate) struct Names {
    /// The first machine of each name.
    pub(crate) hosts: BTreeMap<String, u32>,
    /// As `/etc/hosts` on every host has them.
    pub(crate) addresses: BTreeMap<String, std::net::IpAddr>,
    /// Of a router with a console: its configuration, as `show run` has it.
    pub(crate) consoles: BTreeMap<u32, String>,
    /// Lengths of files, bytes.
    pub(crate) files: BTreeMap<String, u64>,
}

/// What was asked for at this instant and is still to be done: `effects` does it.
#[derive(Default)]
pub(crate) struct Todo {
    /// By calls to the host at hand.
    pub(crate) asked: Vec<Effect>,
    /// The room of what was asked before.
    pub(crate) spare: Vec<Effect>,
    /// The rooms of lists of what is asked for while another machine's is put aside.
    pub(crate) rooms: Vec<Vec<Effect>>,
    /// A program is being called: what it sends goes from its own system call, not from an interrupt.
    pub(crate) in_call: bool,
    /// An interrupt's segments are being sent.
    pub(crate) in_softirq: bool,
    /// The cards without a rate whose frames are received when that is over.
    pub(crate) unreceived: Vec<u32>,
}

impl Net {
    pub(crate) fn new(seed: u64) -> Net {
        Net {
            seed,
            queue: Queue::new(),
            guard: Guard::new(),
            pool: Pool::new(),
            machines: Vec::new(),
            processors: Vec::new(),
            cables: Cables::default(),
            sockets: Sockets::default(),
            meter: Meter::default(),
            wakes: Wakes::default(),
            names: Names::default(),
            todo: Todo::default(),
            tapped: false,
            captured: false,
        }
    }
    /// The present.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.queue.now()
    }
    /// A stream of chance of this run.
    pub(crate) fn rng(&self, name: &str) -> Rng {
        Rng::named(self.seed, name)
    }

    /// Calls a host with what it needs; [`settle`](Net::settle) afterwards.
    #[inline]
    pub(crate) fn on_host<R>(&mut self, host: u32, call: impl FnOnce(&mut Host, &mut HostCx<'_>) -> R) -> R {
        self.guard.step();
        let now = self.queue.now();
        let mut cx = HostCx { now, pool: &mut self.pool, out: &mut self.todo.asked };
        let machine = &mut self.machines[host as usize];
        let answer = call(&mut machine.host, &mut cx);
        if machine.cpu.counts_work() {
            let work = machine.host.take_work();
            machine.cpu.works(work, now);
        }
        answer
    }

    /// The device by which a packet leaves that is one of most packets: [`Host::way_out`].
    #[inline(always)] // Of those that call it one counts.
    pub(crate) fn way_out(&mut self, host: u32, packet: &mut Packet) -> Option<u32> {
        let machine = &mut self.machines[host as usize];
        if machine.cpu.counts_work() { None } else { machine.host.way_out(packet, self.queue.now()) }
    }

    /// Begins to count anew: what happened so far was warming up. Queues, connections and the devices' own counters stay.
    pub(crate) fn end_warmup(&mut self) {
        let since = self.meter.end_warmup(self.queue.now());
        self.cables.end_warmup();
        self.pool.count_extras_since(since);
    }
    /// How long frames waited for each card that has taken any, by host and device.
    pub(crate) fn sojourns(&self) -> Vec<Sojourn> {
        let taken = self.cables.nics.iter().filter(|nic| nic.sojourn.count() > 0);
        let named = taken.map(|nic| Sojourn {
            host: HostId(nic.host),
            device: self.device_name(nic.host, nic.ifindex),
            waits: nic.sojourn.clone(),
        });
        named.collect()
    }
    pub(crate) fn device_name(&self, host: u32, ifindex: u32) -> String {
        let device = self.machines[host as usize].host.device(ifindex);
        device.map(|d| d.name.clone()).unwrap_or_default()
    }
}
