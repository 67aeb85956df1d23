//! Everything but the programs: the machines, what lies between them, the sockets, and what is measured.

use crate::event::Queue;
use crate::flow::Flow;
use crate::histogram::Histogram;
use crate::link::{Nic, Segment, Wire};
use crate::machine::Machine;
use crate::meter::{Decided, DropSlot};
use crate::results::Sojourn;
use crate::sock::{Message, Sock};
use crate::spec::HostId;
use crate::still::Guard;
use crate::wake::{AppTimer, Wake};
use penstock_host::{Effect, Host, HostCx};
use penstock_model::{Rng, Span, Time};
use penstock_packet::Pool;
use std::collections::{BTreeMap, VecDeque};

/// Everything but the programs.
pub(crate) struct Net {
    pub(crate) seed: u64,
    pub(crate) queue: Queue,
    pub(crate) pool: Pool,
    pub(crate) machines: Vec<Machine>,
    /// The first machine of each name.
    pub(crate) hosts: BTreeMap<String, u32>,
    pub(crate) nics: Vec<Nic>,
    pub(crate) wires: Vec<Wire>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) socks: Vec<Sock>,
    pub(crate) wakes: VecDeque<(u32, Wake)>,
    pub(crate) app_timers: Vec<AppTimer>,
    /// Hosts and ports where a daemon is to answer.
    pub(crate) wanted_daemons: Vec<(u32, u16)>,
    pub(crate) files: BTreeMap<String, u64>,
    pub(crate) names: BTreeMap<String, std::net::Ipv4Addr>,
    /// Contents of datagrams that have any, by `Skb::seq`.
    pub(crate) notes: Vec<Message>,
    pub(crate) hops: u64,
    /// Since when flows and waits are counted.
    pub(crate) counted_from: Time,
    pub(crate) out: Vec<Effect>,
    /// A program is being called: what it sends goes from its own system call, not from an interrupt.
    pub(crate) in_call: bool,
    /// An interrupt's segments are being sent.
    pub(crate) in_softirq: bool,
    /// The cards without a rate whose frames are received when that is over.
    pub(crate) unreceived: Vec<u32>,
    /// Sees to it that time goes on.
    pub(crate) guard: Guard,
    pub(crate) work: Vec<Effect>,
    pub(crate) drops: Vec<DropSlot>,
    /// Packets made before are of the warm-up.
    pub(crate) since: Time,
    pub(crate) decided: Decided,
    /// Some device has a tap.
    pub(crate) tapped: bool,
}

impl Net {
    pub(crate) fn new(seed: u64) -> Net {
        Net {
            seed,
            queue: Queue::new(),
            pool: Pool::new(),
            machines: Vec::new(),
            hosts: BTreeMap::new(),
            nics: Vec::new(),
            wires: Vec::new(),
            segments: Vec::new(),
            flows: Vec::new(),
            socks: Vec::new(),
            wakes: VecDeque::new(),
            app_timers: Vec::new(),
            wanted_daemons: Vec::new(),
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            notes: Vec::new(),
            hops: 0,
            counted_from: Time::ZERO,
            out: Vec::new(),
            in_call: false,
            in_softirq: false,
            unreceived: Vec::new(),
            guard: Guard::new(),
            work: Vec::new(),
            drops: Vec::new(),
            since: Time::ZERO,
            decided: Decided::default(),
            tapped: false,
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
        let mut cx = HostCx { now, pool: &mut self.pool, out: &mut self.out };
        let machine = &mut self.machines[host as usize];
        let answer = call(&mut machine.host, &mut cx);
        if machine.cpu.counts_work() {
            let work = machine.host.take_work();
            machine.cpu.works(work, now);
        }
        answer
    }

    /// Begins to count anew: what happened so far was warming up. Queues, connections and the devices' own counters stay.
    pub(crate) fn end_warmup(&mut self) {
        let now = self.queue.now();
        self.flows.iter_mut().for_each(|flow| flow.end_warmup(now));
        self.nics.iter_mut().for_each(|nic| nic.sojourn = Histogram::default());
        self.forget_watched();
        self.drops.clear();
        self.counted_from = now;
        self.since = now + Span::from_ns(1);
        self.decided = Decided::default();
        self.pool.count_extras_since(self.since);
    }
    /// How long frames waited for each card that has taken any, by host and device.
    pub(crate) fn sojourns(&self) -> Vec<Sojourn> {
        let taken = self.nics.iter().filter(|nic| nic.sojourn.count() > 0);
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
