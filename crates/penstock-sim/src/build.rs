//! Building a world: machines, links, names, programs, flows.

use crate::app::{self, Program};
use crate::cpu::Cpu;
use crate::event::{Event, Timer};
use crate::index::NONE;
use crate::link::{Port, Segment, Way, Wire};
use crate::machine::{Loopback, Machine};
use crate::net::Net;
use crate::results::AppResult;
use crate::script::{Script, Scripted};
use crate::sock::SocketTable;
use crate::spec::{
    AppId, BuildError, Cost, Duplex, FlowId, FlowSpec, HostId, Iperf, LinkId, LinkSpec, Stack, Transport,
};
use crate::world::{App, World};
use penstock_host::Host;
use penstock_model::traffic::{Dist, Load};
use penstock_model::{Kernel, PschedClock, Span, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// The number of a machine's first process.
const FIRST_PID: u32 = 1_000;

impl World {
    /// Adds a machine with `lo` and nothing else. Its name can be used as a destination by programs.
    pub fn add_host(&mut self, name: &str, kernel: Kernel) -> HostId {
        let id = self.push_machine(Host::new(name, kernel, self.net.seed));
        self.net.plug(id);
        HostId(id)
    }
    /// Adds this machine, whose devices have no cards yet.
    pub(crate) fn push_machine(&mut self, host: Host) -> u32 {
        self.changed = true;
        let (name, kernel) = (host.name().to_owned(), host.kernel());
        let cpu = Cpu::new(Cost::ZERO, self.net.rng(&format!("host:{name}/cpu")), kernel.hz());
        let sockets = SocketTable::new(self.net.rng(&format!("host:{name}/sockets")));
        let id = self.net.machines.len() as u32;
        self.net.names.hosts.entry(name.clone()).or_insert(id);
        self.net.machines.push(Machine {
            name,
            kernel,
            stack: Stack::Linux,
            iperf: Iperf::default(),
            processor: NONE,
            host,
            nics: Vec::new(),
            cpu,
            timer: Timer::default(),
            sockets,
            lo: Loopback::default(),
            spaces: Default::default(),
        });
        id
    }
    /// The host of this name.
    pub fn find_host(&self, name: &str) -> Option<HostId> {
        self.net.names.hosts.get(name).map(|&i| HostId(i))
    }
    /// A machine.
    pub fn host(&self, id: HostId) -> &Host {
        &self.net.machines[id.0 as usize].host
    }
    /// A machine, to be changed by other means than commands (while time stands still).
    pub fn host_mut(&mut self, id: HostId) -> &mut Host {
        self.changed = true;
        &mut self.net.machines[id.0 as usize].host
    }
    /// Its name.
    pub fn host_name(&self, id: HostId) -> &str {
        &self.net.machines[id.0 as usize].name
    }
    /// Whose TCP and programs the host has.
    pub fn set_stack(&mut self, id: HostId, stack: Stack) {
        self.net.machines[id.0 as usize].stack = stack;
    }
    /// Makes the host a router with IOS: its TCP, and who comes by telnet sees this configuration as `show run` prints it.
    pub fn set_console(&mut self, id: HostId, config: &str) {
        self.net.names.consoles.insert(id.0, config.to_owned());
        self.set_stack(id, Stack::Ios);
    }
    /// Which iperf 2 the host has.
    pub fn set_iperf(&mut self, id: HostId, iperf: Iperf) {
        self.net.machines[id.0 as usize].iperf = iperf;
    }
    /// What its processor spends on each frame that comes in.
    pub fn set_cost(&mut self, id: HostId, cost: Cost) {
        let machine = &mut self.net.machines[id.0 as usize];
        machine.cpu.set_cost(cost);
        machine.cpu.hz = match machine.host.psched_clock() {
            PschedClock::Old(old) => old.hz,
            PschedClock::Ktime => machine.host.hz(),
        };
    }
    /// Lets these hosts share one processor, as virtual machines do: it serves one frame at a time, of whichever host; a host with more frames
    /// to come waits for those that others have brought before. Each spends what its own cost says.
    pub fn share_processor(&mut self, hosts: &[HostId]) {
        let shared = self.net.processors.len() as u32;
        self.net.processors.push(Time::ZERO);
        hosts.iter().for_each(|id| self.net.machines[id.0 as usize].processor = shared);
    }
    /// Adds a device to a host; one of that name may be there already. Answers its index.
    pub fn add_device(&mut self, id: HostId, name: &str) -> u32 {
        self.changed = true;
        let ifindex = self.net.machines[id.0 as usize].host.add_device(name);
        self.net.plug(id.0);
        ifindex
    }
    /// Adds a link; its devices are made where they do not exist.
    ///
    /// # Errors
    /// Fewer than two ends, an unknown host, a device that is on a link already or twice on this one, a rate of 0.
    pub fn add_link(&mut self, spec: LinkSpec) -> Result<LinkId, BuildError> {
        self.changed = true;
        if spec.ends.len() < 2 {
            return Err(BuildError(format!("a link has two ends or more, not {}", spec.ends.len())));
        }
        let mut ends = BTreeSet::new();
        for end in &spec.ends {
            let Some(machine) = self.net.machines.get(end.host.0 as usize) else {
                return Err(BuildError(format!("there is no host number {}", end.host.0)));
            };
            let name = format!("{}:{}", machine.name, end.device);
            let twice = !ends.insert((end.host, &end.device));
            let taken = machine.host.ifindex(&end.device).is_some_and(|ifindex| {
                let nic = machine.nics[ifindex as usize];
                nic != NONE && self.net.cables.nics[nic as usize].port != Port::Nothing
            });
            if twice || taken || end.device == "lo" {
                return Err(BuildError(format!("{name} is on a link already; give this end another device")));
            }
            if let Some(course) = &end.course {
                let shared = spec.ends.len() > 2 || spec.duplex == Duplex::Half;
                course.check(&name, shared, end.ring, end.rate.or(spec.rate)).map_err(BuildError)?;
            }
            if end.rate.or(spec.rate).is_some_and(|r| r.bytes_per_s() == 0) {
                return Err(BuildError(format!(
                    "the rate at {name} is 0; leave it out for a link without a rate"
                )));
            }
        }
        let name = if spec.name.is_empty() {
            let name = |e: &crate::spec::End| format!("{}:{}", self.host_name(e.host), e.device);
            spec.ends.iter().map(name).collect::<Vec<_>>().join("-")
        } else {
            spec.name.clone()
        };
        let nics: Vec<u32> = spec
            .ends
            .iter()
            .map(|end| {
                let ifindex = self.add_device(end.host, &end.device);
                if end.bql {
                    let now = self.net.now();
                    self.net.machines[end.host.0 as usize].host.set_bql(ifindex, now);
                }
                let n = self.net.machines[end.host.0 as usize].nics[ifindex as usize];
                let nic = &mut self.net.cables.nics[n as usize];
                nic.rate = end.rate.or(spec.rate);
                nic.ring = end.ring;
                nic.tx_frames = end.tx_frames;
                nic.bql = end.bql.then(Box::default);
                if let Some(course) = &end.course {
                    nic.plain = false;
                    nic.pace = course.pace().map(Box::new);
                }
                n
            })
            .collect();
        let way = |net: &Net, from: usize, to: usize| Way {
            delay: spec.ends[from].delay.unwrap_or(spec.delay),
            loss_ppb: spec.ends[from].loss_ppb.unwrap_or(spec.loss_ppb),
            bleach: spec.ends[from].bleach.unwrap_or(spec.bleach),
            rng: net.rng(&format!("link:{name}/loss/{from}-{to}")),
            course: spec.ends[from].course.as_ref().map(|course| {
                let delay = spec.ends[from].delay.unwrap_or(spec.delay);
                Box::new(course.way(delay, spec.ends[from].loss_ppb.unwrap_or(spec.loss_ppb)))
            }),
        };
        let wire = |net: &Net, from: usize, to: usize| {
            let (way, nic) = (way(net, from, to), &net.cables.nics[nics[to] as usize]);
            Wire {
                to: (nic.host, nic.ifindex),
                framing: spec.framing,
                far: way.least_delay() > Span::ZERO,
                leaves: false,
                in_flight: VecDeque::new(),
                way,
            }
        };
        if nics.len() == 2 && spec.duplex == Duplex::Full {
            for (from, to) in [(0, 1), (1, 0)] {
                let wire = wire(&self.net, from, to);
                self.net.cables.wires.push(wire);
                self.net.cables.nics[nics[from] as usize].port =
                    Port::Wire(self.net.cables.wires.len() as u32 - 1);
            }
        } else {
            let s = self.net.cables.segments.len() as u32;
            for (&n, place) in nics.iter().zip(0..) {
                let nic = &mut self.net.cables.nics[n as usize];
                (nic.port, nic.place) = (Port::Segment(s), place);
            }
            let way = |from: usize| {
                let way = way(&self.net, from, from);
                (way.delay, way.loss_ppb, way.bleach)
            };
            let ways = (0..nics.len()).map(way).collect();
            self.net.cables.segments.push(Segment {
                name,
                nics,
                ways,
                wires: BTreeMap::new(),
                by_mac: BTreeMap::new(),
                by_mac_of: None,
                hear_all: Vec::new(),
                framing: spec.framing,
                busy_until: Time::ZERO,
                serving: false,
                free_pending: false,
                line: VecDeque::new(),
            });
        }
        self.links += 1;
        Ok(LinkId(self.links - 1))
    }
    /// A file for programs that copy one: `scp NAME …` finds its length here.
    pub fn add_file(&mut self, name: &str, bytes: u64) {
        self.net.names.files.insert(name.to_owned(), bytes);
    }
    /// A name for an address, as `/etc/hosts` on every host has it. Hosts' own names are known by themselves.
    pub fn add_name(&mut self, name: &str, addr: IpAddr) {
        self.net.names.addresses.insert(name.to_owned(), addr);
    }
    /// Starts a program on a host at `at`: `iperf`, `iperf3`, `ping`, `scp`, `ssh`, `telnet` with the arguments of the
    /// real ones. An unknown program or option fails when it is started, in the shell's or the program's words.
    pub fn add_app(&mut self, id: HostId, line: &str, at: Time) -> AppId {
        let n = self.push_app(id.0, line, Some(at), None);
        self.show_app(n)
    }
    /// The same `gap` after another program has ended; never, if that one never ends.
    pub fn add_app_after(&mut self, id: HostId, line: &str, after: AppId, gap: Span) -> AppId {
        let n = self.push_app(id.0, line, None, None);
        let first = self.visible[after.0 as usize];
        self.apps[first as usize].followers.push((n, gap));
        self.show_app(n)
    }
    /// Makes the program a script of the host's own shell: it begins when the program starts, and ends it.
    pub fn set_script(&mut self, app: AppId, script: Box<dyn Script>) {
        let n = self.visible[app.0 as usize];
        self.apps[n as usize].script = Some(Scripted::new(script));
    }
    /// Lets a script begin that is not a program of the timetable: what a setup left running in the background.
    pub fn add_script(&mut self, id: HostId, script: Box<dyn Script>, at: Time) {
        let n = self.push_app(id.0, "jobs", Some(at), None);
        self.apps[n as usize].script = Some(Scripted::new(script));
    }
    /// Whether a command line is a program of the simulator's, alone.
    pub fn is_program(line: &str) -> bool {
        app::is_program(line)
    }
    fn show_app(&mut self, n: u32) -> AppId {
        let app = AppId(self.visible.len() as u32);
        self.apps[n as usize].result.id = app;
        self.visible.push(n);
        app
    }
    /// Adds flows.
    ///
    /// # Errors
    /// An unknown host, a receiver without an address, `Greedy` or `Bytes` over UDP, a congestion control there is not.
    pub fn add_flow(&mut self, mut spec: FlowSpec) -> Result<Vec<FlowId>, BuildError> {
        spec.load = spec.load.paced();
        if matches!(spec.load, Load::Arrivals(_)) {
            return Err(BuildError("connections that arrive are a flow each".to_owned()));
        }
        let hosts = self.net.machines.len() as u32;
        if spec.from.0 >= hosts || spec.to.0 >= hosts {
            return Err(BuildError("a flow runs between two hosts of this world".to_owned()));
        }
        if spec.transport == Transport::Udp
            && matches!(spec.load, Load::Greedy | Load::Bytes(_) | Load::Pages { .. })
        {
            return Err(BuildError(
                "UDP has no end to fill: give the flow a rate or packets with gaps".to_owned(),
            ));
        }
        if spec.transport != Transport::Udp && matches!(spec.load, Load::Echo { .. }) {
            return Err(BuildError("an echo probe sends datagrams: write udp = true".to_owned()));
        }
        if let Transport::Tcp(tcp) = &spec.transport
            && let Some(cc) = &tcp.cc
        {
            app::flow::configure(self.net.tcp_config(spec.from.0), tcp).set_cc(cc).map_err(BuildError)?;
        }
        let name = if spec.name.is_empty() {
            format!("{}-{}", self.host_name(spec.from), self.host_name(spec.to))
        } else {
            spec.name.clone()
        };
        let mut rng = self.net.rng(&format!("flow:{name}/start"));
        let spread = Dist::Uniform { from: Span::ZERO, to: (spec.start_to - spec.start).max(Span::ZERO) };
        let mut ids = Vec::new();
        for i in 0..spec.count.max(1) {
            let name = if spec.count > 1 { format!("{name}-{}", i + 1) } else { name.clone() };
            let proto = if spec.transport == Transport::Udp { "udp" } else { "tcp" };
            let flow = self.net.meter.new_flow(name.clone(), spec.from.0, spec.to.0, proto);
            self.net.meter.flows[flow as usize].group.clone_from(&spec.group);
            if spec.trace {
                self.net.meter.flows[flow as usize].passages = Some(Vec::new());
            }
            let at = spec.start + if spec.start_to > spec.start { spread.draw(&mut rng) } else { Span::ZERO };
            let program = app::flow::Source::new(&spec, flow, &name, &self.net);
            self.push_app(spec.from.0, &name, Some(at), Some(Box::new(program)));
            ids.push(FlowId(flow));
        }
        Ok(ids)
    }
    /// Starts a test's own program.
    #[cfg(test)]
    pub(crate) fn add_program(&mut self, id: HostId, line: &str, at: Time, program: Box<dyn Program>) {
        self.push_app(id.0, line, Some(at), Some(program));
    }
    /// `at` is `None` for one that another's end starts.
    pub(crate) fn push_app(
        &mut self,
        host: u32,
        line: &str,
        at: Option<Time>,
        program: Option<Box<dyn Program>>,
    ) -> u32 {
        let starts = at.is_some();
        let at = at.unwrap_or_default().max(self.net.now());
        let n = self.apps.len() as u32;
        let program_name = line.split_whitespace().next().unwrap_or_default();
        let started = if starts { at } else { Time::MAX };
        let result = AppResult::new(AppId(NONE), HostId(host), line, program_name, started);
        let run = line.to_owned();
        self.apps.push(App {
            host,
            run,
            at,
            program,
            script: None,
            parent: NONE,
            begun: Vec::new(),
            followers: Vec::new(),
            stands_in: false,
            result,
        });
        if let Some(machine) = self.net.machines.get_mut(host as usize) {
            let processes = &mut machine.sockets.processes;
            let pid = FIRST_PID + processes.len() as u32;
            let name = program_name.rsplit('/').next().unwrap_or(program_name).to_owned();
            processes.insert(n, (name, pid));
        }
        if starts {
            self.net.queue.schedule(at, Event::Start(n));
        }
        n
    }
}
