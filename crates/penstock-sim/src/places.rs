//! Where everything is while several cores make a run: data.

use crate::event::Event;
use penstock_model::Span;

/// The cores of the machines.
pub(crate) struct Places {
    /// The core of each machine.
    pub(crate) host: Vec<u16>,
    pub(crate) cores: usize,
    /// The core of all programs but the sources of flows.
    pub(crate) programs: usize,
    /// Least delay of the links between two cores.
    pub(crate) window: Span,
    /// How much faster the run becomes, as far as that can be told before: 2000 is twice as fast.
    pub(crate) gain: u64,
    /// The same if cores met at no cost.
    pub(crate) even: u64,
    /// The machine that has most to do, as far as that can be told.
    pub(crate) busiest: u32,
}

impl Places {
    /// The core of a machine.
    pub(crate) fn of(&self, host: u32) -> usize {
        self.host.get(host as usize).map_or(self.programs, |&core| usize::from(core))
    }
}

/// What is the same for each core, and needed to put the world together.
pub(crate) struct Dealt {
    /// Cores of nics, wires by their senders and by their receivers, segments, sockets, programs and their timers.
    pub(crate) nics: Vec<usize>,
    pub(crate) senders: Vec<usize>,
    pub(crate) receivers: Vec<usize>,
    pub(crate) segments: Vec<usize>,
    pub(crate) sockets: Vec<usize>,
    pub(crate) timers: Vec<usize>,
    pub(crate) apps: Vec<usize>,
    /// Of each flow: the core of its source, and of its sink.
    pub(crate) flows: Vec<(usize, usize)>,
}

impl Dealt {
    /// The core that deals with an event.
    pub(crate) fn core(&self, event: Event, places: &Places) -> usize {
        match event {
            Event::Arrive(wire) => self.receivers[wire as usize],
            Event::TxDone(nic) | Event::Watchdog(nic) => self.nics[nic as usize],
            Event::SegmentFree(s) => self.segments[s as usize],
            Event::Cpu(host) | Event::HostTimer(host) | Event::Loop(host) | Event::Across(host) => {
                places.of(host)
            }
            Event::Tcp(sock) => self.sockets[sock as usize],
            Event::App(timer) => self.timers[timer as usize],
            Event::Start(app) | Event::Script(app) => self.apps[app as usize],
            Event::Command(_) | Event::Sample => places.programs,
        }
    }
    /// The cores of a flow's source and sink: of those that programs have made since, theirs.
    pub(crate) fn flow(&self, flow: usize, places: &Places) -> (usize, usize) {
        self.flows.get(flow).copied().unwrap_or((places.programs, places.programs))
    }
    /// Wires whose ends are on two cores: their numbers, with the cores of sender and receiver.
    pub(crate) fn cut(&self) -> impl Iterator<Item = (u32, usize, usize)> {
        let both = self.senders.iter().zip(&self.receivers).zip(0..);
        both.filter(|((from, to), _)| from != to).map(|((&from, &to), wire)| (wire, from, to))
    }
}
