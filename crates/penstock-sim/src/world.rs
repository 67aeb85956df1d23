//! A world: machines, links, programs, flows, and the loop that lets time pass.
//!
//! ```
//! use penstock_sim::{End, LinkSpec, World};
//! use penstock_host::Prefix;
//! use penstock_model::{Kernel, Rate, Span, Time};
//!
//! let mut world = World::new(1);
//! let a = world.add_host("a", Kernel::default());
//! let b = world.add_host("b", Kernel::default());
//! let link = LinkSpec::new(End::new(a, "eth0"), End::new(b, "eth0"), Some(Rate::from_bit_per_s(10_000_000)), Span::from_ms(5));
//! world.add_link(link).unwrap();
//! for (host, address) in [(a, "10.0.0.1/24"), (b, "10.0.0.2/24")] {
//!     let eth0 = world.host(host).ifindex("eth0").unwrap();
//!     world.host_mut(host).add_address(eth0, Prefix::parse(address).unwrap()).unwrap();
//! }
//! world.add_app(a, "ping -c 3 10.0.0.2", Time::ZERO);
//! let results = world.run(Time::from_ns(5_000_000_000));
//! assert!(results.apps[0].output.contains("3 packets transmitted, 3 received, 0% packet loss"));
//! ```

use crate::app::{self, Program};
use crate::event::{Event, Timer};
use crate::link::{Cpu, Port, Segment, Way, Wire};
use crate::net::{Machine, NONE, Net, Wake};
use crate::results::{AppResult, CommandResult, Results};
use crate::sample::Sampler;
use crate::socket::SocketTable;
use crate::spec::{
    AppId, BuildError, Cost, Duplex, FlowId, FlowSpec, HostId, Iperf, LinkId, LinkSpec, Stack, Transport,
};
use penstock_host::{Files, Host, Output};
use penstock_model::traffic::{Dist, Load};
use penstock_model::{Kernel, PschedClock, Span, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// A program of the timetable.
pub(crate) struct App {
    pub(crate) host: u32,
    pub(crate) run: String,
    pub(crate) at: Time,
    pub(crate) program: Option<Box<dyn Program>>,
    /// What runs in its place, where it is not a program of the simulator's.
    pub(crate) script: Option<Box<dyn Script>>,
    /// Which programs start when it ends, and how long after.
    pub(crate) followers: Vec<(u32, Span)>,
    pub(crate) result: AppResult,
}

struct Command {
    host: u32,
    line: String,
    at: Time,
}

/// Carries out a command of a machine's: its words as a process gets them, and what lends it files.
pub type Execute<'a> = dyn FnMut(&[String], &mut dyn Files) -> Output + 'a;

/// A script of a machine's own shell, which may take pauses. The interpreter is the caller's.
pub trait Script {
    /// Goes on at `since`, counted from its start, until it takes a pause or ends. `execute` carries out its commands.
    fn go_on(&mut self, since: Span, execute: &mut Execute<'_>) -> ScriptState;
    /// What it has printed since it was asked last.
    fn printed(&mut self) -> String;
}

/// How a script stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScriptState {
    /// It goes on so long after its start.
    Waits(Span),
    /// Its exit status.
    Ended(i32),
}

/// A whole network with its traffic, from its building to its results.
pub struct World {
    pub(crate) net: Net,
    /// Programs first, as they were added; then those that flows are.
    apps: Vec<App>,
    /// Which of `apps` were added as programs.
    visible: Vec<u32>,
    commands: Vec<Command>,
    command_results: Vec<CommandResult>,
    links: u32,
    /// Command lines executed so far.
    executed: u64,
    sampler: Option<Sampler>,
    events: u64,
}

impl World {
    /// An empty world. Equal seeds and equal calls give equal results, on every platform.
    pub fn new(seed: u64) -> World {
        World {
            net: Net::new(seed),
            apps: Vec::new(),
            visible: Vec::new(),
            commands: Vec::new(),
            command_results: Vec::new(),
            links: 0,
            executed: 0,
            sampler: None,
            events: 0,
        }
    }
    /// The present.
    pub fn now(&self) -> Time {
        self.net.now()
    }

    // Building.

    /// Adds a machine with `lo` and nothing else. Its name can be used as a destination by programs.
    pub fn add_host(&mut self, name: &str, kernel: Kernel) -> HostId {
        let host = Host::new(name, kernel, self.net.seed);
        let cpu = Cpu::new(Cost::ZERO, self.net.rng(&format!("host:{name}/cpu")), kernel.hz());
        let sockets = SocketTable::new(self.net.rng(&format!("host:{name}/sockets")));
        self.net.machines.push(Machine {
            name: name.to_owned(),
            kernel,
            stack: Stack::Linux,
            iperf: Iperf::default(),
            host,
            nics: Vec::new(),
            cpu,
            timer: Timer::default(),
            sockets,
            lo: crate::net::Loopback::default(),
        });
        let id = self.net.machines.len() as u32 - 1;
        self.net.hosts.entry(name.to_owned()).or_insert(id);
        self.net.plug_new_devices(id);
        HostId(id)
    }
    /// The host of this name.
    pub fn find_host(&self, name: &str) -> Option<HostId> {
        self.net.hosts.get(name).map(|&i| HostId(i))
    }
    /// A machine.
    pub fn host(&self, id: HostId) -> &Host {
        &self.net.machines[id.0 as usize].host
    }
    /// A machine, to be changed by other means than commands (while time stands still).
    pub fn host_mut(&mut self, id: HostId) -> &mut Host {
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
    /// Adds a device to a host; one of that name may be there already. Answers its index.
    pub fn add_device(&mut self, id: HostId, name: &str) -> u32 {
        let ifindex = self.net.machines[id.0 as usize].host.add_device(name);
        self.net.plug_new_devices(id.0);
        ifindex
    }
    /// Adds a link; its devices are made where they do not exist.
    ///
    /// # Errors
    /// Fewer than two ends, an unknown host, a device that is on a link already or twice on this one, a rate of 0.
    pub fn add_link(&mut self, spec: LinkSpec) -> Result<LinkId, BuildError> {
        if spec.ends.len() < 2 {
            return Err(BuildError(format!("a link has two ends or more, not {}", spec.ends.len())));
        }
        for (i, end) in spec.ends.iter().enumerate() {
            let Some(machine) = self.net.machines.get(end.host.0 as usize) else {
                return Err(BuildError(format!("there is no host number {}", end.host.0)));
            };
            let name = format!("{}:{}", machine.name, end.device);
            let twice = spec.ends[..i].iter().any(|e| e.host == end.host && e.device == end.device);
            let taken = machine.host.ifindex(&end.device).is_some_and(|ifindex| {
                let nic = machine.nics[ifindex as usize];
                nic != NONE && self.net.nics[nic as usize].port != Port::Nothing
            });
            if twice || taken || end.device == "lo" {
                return Err(BuildError(format!("{name} is on a link already; give this end another device")));
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
                let n = self.net.machines[end.host.0 as usize].nics[ifindex as usize];
                let nic = &mut self.net.nics[n as usize];
                nic.rate = end.rate.or(spec.rate);
                nic.ring = end.ring;
                nic.tx_frames = end.tx_frames;
                n
            })
            .collect();
        let way = |net: &Net, from: usize, to: usize| Way {
            delay: spec.ends[from].delay.unwrap_or(spec.delay),
            loss_ppb: spec.ends[from].loss_ppb.unwrap_or(spec.loss_ppb),
            bleach: spec.ends[from].bleach.unwrap_or(spec.bleach),
            rng: net.rng(&format!("link:{name}/loss/{from}-{to}")),
        };
        let wire = |net: &Net, from: usize, to: usize| Wire {
            way: way(net, from, to),
            to_nic: nics[to],
            framing: spec.framing,
            in_flight: VecDeque::new(),
        };
        if nics.len() == 2 && spec.duplex == Duplex::Full {
            for (from, to) in [(0, 1), (1, 0)] {
                let wire = wire(&self.net, from, to);
                self.net.wires.push(wire);
                self.net.nics[nics[from] as usize].port = Port::Wire(self.net.wires.len() as u32 - 1);
            }
        } else {
            let mut wires = Vec::new();
            for from in 0..nics.len() {
                for to in 0..nics.len() {
                    let wire = wire(&self.net, from, to);
                    self.net.wires.push(wire);
                    wires.push(self.net.wires.len() as u32 - 1);
                }
            }
            let s = self.net.segments.len() as u32;
            for &n in &nics {
                self.net.nics[n as usize].port = Port::Segment(s);
            }
            self.net.segments.push(Segment {
                nics,
                wires,
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
    /// Executes one command on a host now: its words as a process gets them; `files` lends what it reads.
    pub fn command(&mut self, id: HostId, words: &[String], files: &mut dyn Files) -> Output {
        self.executed += 1;
        self.net.command(id.0, words, files)
    }
    /// Executes command lines on a host now, without an interpreter: words in quotes, `;`, `2>/dev/null` and `|| true`.
    pub fn exec(&mut self, id: HostId, line: &str) -> Output {
        self.executed += 1;
        self.net.tell_sockets(id.0);
        let now = self.net.now();
        self.net.tap_command(id.0, line);
        let output = self.net.machines[id.0 as usize].host.exec(line, now);
        self.net.after_command(id.0);
        output
    }
    /// How many command lines were executed so far, by whomever: where none was, no machine is set up otherwise than before.
    pub fn executed(&self) -> u64 {
        self.executed
    }
    /// Executes a command line on a host at a time to come; what it prints is among the results.
    pub fn exec_at(&mut self, id: HostId, line: &str, at: Time) {
        let at = at.max(self.net.now());
        let n = self.commands.len() as u32;
        self.commands.push(Command { host: id.0, line: line.to_owned(), at });
        self.net.queue.schedule(at, Event::Command(n));
    }
    /// A file for programs that copy one: `scp NAME …` finds its length here.
    pub fn add_file(&mut self, name: &str, bytes: u64) {
        self.net.files.insert(name.to_owned(), bytes);
    }
    /// A name for an address, as `/etc/hosts` on every host has it. Hosts' own names are known by themselves.
    pub fn add_name(&mut self, name: &str, addr: Ipv4Addr) {
        self.net.names.insert(name.to_owned(), addr);
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
        self.apps[n as usize].script = Some(script);
    }
    /// Lets a script begin that is not a program of the timetable: what a setup left running in the background.
    pub fn add_script(&mut self, id: HostId, script: Box<dyn Script>, at: Time) {
        let n = self.push_app(id.0, "jobs", Some(at), None);
        self.apps[n as usize].script = Some(script);
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
            let flow = self.net.new_flow(name.clone(), spec.from.0, spec.to.0, proto);
            self.net.flows[flow as usize].group.clone_from(&spec.group);
            if spec.trace {
                self.net.flows[flow as usize].passages = Some(Vec::new());
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
    fn push_app(
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
        self.apps.push(App { host, run, at, program, script: None, followers: Vec::new(), result });
        if starts {
            self.net.queue.schedule(at, Event::Start(n));
        }
        n
    }
    /// Samples every series at this interval from now on. Nothing else changes by it. Memory is bounded: when there are
    /// 65,536 instants, every second is given up and the interval doubles.
    pub fn sample_every(&mut self, interval: Span) {
        if interval > Span::ZERO {
            if self.sampler.is_none() {
                self.net.queue.schedule(self.net.now(), Event::Sample);
            }
            self.sampler = Some(Sampler::new(interval));
        }
    }

    // Running.

    /// Lets time pass until `until`, and answers what there is to tell by then. May be called again with a later time.
    pub fn run(&mut self, until: Time) -> Results {
        self.run_quietly(until);
        self.results()
    }
    /// Why the run was ended before its time: more steps were made at one instant than any traffic asks for. That is a fault of this
    /// program, never of the experiment; what was measured is of no use.
    pub fn stuck(&self) -> Option<&str> {
        self.net.guard.stuck()
    }
    /// Lets time pass until `until`; see [`stuck`](World::stuck).
    pub fn run_quietly(&mut self, until: Time) {
        self.net.guard.expect(self.net.machines.len() + self.net.socks.len() + self.apps.len());
        for host in 0..self.net.machines.len() as u32 {
            self.net.after_command(host);
        }
        self.net.forget_decided();
        while let Some((seq, event)) = self.net.queue.next_until(until) {
            self.events += 1;
            self.net.guard.event(self.net.queue.now());
            if self.net.guard.is_near() && self.stands_still(event) {
                return;
            }
            match event {
                Event::Arrive(wire) => self.net.arrive(wire),
                Event::TxDone(nic) => self.net.tx_done(nic),
                Event::SegmentFree(s) => self.net.segment_free(s),
                Event::Watchdog(nic) => self.net.watchdog(nic, seq),
                Event::Cpu(host) => self.net.cpu_done(host),
                Event::Loop(host) => self.net.looped(host),
                Event::HostTimer(host) => self.net.host_timer(host, seq),
                Event::Tcp(sock) => self.net.tcp_timer(sock, seq),
                Event::App(timer) => {
                    let t = &mut self.net.app_timers[timer as usize];
                    if t.timer.fires(seq) {
                        self.net.wakes.push_back((t.app, Wake::Timer(t.token)));
                    }
                }
                Event::Command(n) => self.timed_command(n),
                Event::Start(n) => self.start(n),
                Event::Script(n) => self.script(n),
                Event::Sample => self.sample(),
            }
            while let Some((app, wake)) = self.net.wakes.pop_front() {
                self.net.guard.step();
                if self.net.guard.is_near() {
                    let host = &self.net.machines[self.apps[app as usize].host as usize].name;
                    let text = format!("{host}: {} wakes for {wake:?}", self.apps[app as usize].run);
                    self.net.guard.tell(text);
                }
                if self.net.guard.is_over() {
                    self.net.guard.stop();
                    return;
                }
                self.wake(app, wake);
            }
        }
        self.net.queue.advance(until.max(self.net.now()));
    }
    /// Tells the event; `true` where such events go on for ever.
    #[cold]
    fn stands_still(&mut self, event: Event) -> bool {
        let host = |host: u32| self.net.machines[host as usize].name.clone();
        let nic = |n: u32| {
            let nic = &self.net.nics[n as usize];
            format!("{} {}", host(nic.host), self.net.device_name(nic.host, nic.ifindex))
        };
        let text = match event {
            Event::Arrive(wire) => format!("{}: a frame arrives", nic(self.net.wires[wire as usize].to_nic)),
            Event::TxDone(n) => format!("{}: the wire is free", nic(n)),
            Event::Watchdog(n) => format!("{}: the queue's timer", nic(n)),
            Event::Cpu(h) | Event::HostTimer(h) | Event::Loop(h) => format!("{}: {event:?}", host(h)),
            Event::Tcp(sock) => {
                format!("{}: the timer of socket {sock}", host(self.net.socks[sock as usize].host))
            }
            other => format!("{other:?}"),
        };
        self.net.guard.tell(text);
        let over = self.net.guard.is_over();
        if over {
            self.net.guard.stop();
        }
        over
    }
    fn timed_command(&mut self, n: u32) {
        let Command { host, line, at } = &self.commands[n as usize];
        let (host, line, at) = (HostId(*host), line.clone(), *at);
        let output = self.exec(host, &line);
        self.command_results.push(CommandResult {
            host,
            at,
            line,
            stdout: output.stdout,
            stderr: output.stderr,
            status: output.status,
        });
    }
    fn start(&mut self, n: u32) {
        let now = self.net.now();
        let app = &mut self.apps[n as usize];
        app.result.started = now;
        if app.script.is_some() {
            return self.script(n);
        }
        if app.program.is_none() {
            match app::launch(&app.run, app.host, &self.net) {
                Ok(program) => app.program = Some(program),
                Err(failure) => {
                    app.result.output.push_str(&failure.text);
                    app.result.exit = Some(failure.status);
                    app.result.ended = Some(now);
                    self.start_followers(n);
                    return;
                }
            }
        }
        self.call(n, |program, cx| program.start(cx));
    }
    /// Lets the script of program `n` go on.
    fn script(&mut self, n: u32) {
        let now = self.net.now();
        let app = &mut self.apps[n as usize];
        let Some(mut script) = app.script.take() else { return };
        let (host, started) = (app.host, app.result.started);
        let mut executed = 0;
        let mut execute = |words: &[String], files: &mut dyn Files| {
            executed += 1;
            self.net.command(host, words, files)
        };
        let state = script.go_on(now - started, &mut execute);
        self.executed += executed;
        let app = &mut self.apps[n as usize];
        app.result.output.push_str(&script.printed());
        match state {
            ScriptState::Waits(since) => {
                app.script = Some(script);
                self.net.queue.schedule(started.saturating_add(since).max(now), Event::Script(n));
            }
            ScriptState::Ended(status) => {
                app.result.exit = Some(status);
                app.result.ended = Some(now);
                self.start_followers(n);
            }
        }
    }
    /// Lets those start that waited for program `n`, if it has ended.
    fn start_followers(&mut self, n: u32) {
        if self.apps[n as usize].result.ended.is_none() {
            return;
        }
        for (follower, gap) in std::mem::take(&mut self.apps[n as usize].followers) {
            let at = self.net.now().saturating_add(gap);
            self.apps[follower as usize].at = at;
            self.net.queue.schedule(at, Event::Start(follower));
        }
    }
    fn wake(&mut self, n: u32, wake: Wake) {
        self.call(n, |program, cx| program.wake(wake, cx));
    }
    fn call(&mut self, n: u32, f: impl FnOnce(&mut dyn Program, &mut app::Cx<'_>)) {
        let app = &mut self.apps[n as usize];
        if app.result.ended.is_some() {
            return;
        }
        let Some(mut program) = app.program.take() else { return };
        let host = app.host;
        let mut cx = app::Cx { net: &mut self.net, app: n, host, result: &mut app.result };
        cx.net.in_call = true;
        f(&mut *program, &mut cx);
        cx.net.in_call = false;
        app.program = Some(program);
        self.net.settle(host);
        while let Some((host, port)) = self.net.wanted_daemons.pop() {
            let listens = self.net.listens(host, port);
            if !listens {
                let daemon = app::daemon::Daemon::new(port);
                let n = self.push_app(host, "daemon", None, Some(Box::new(daemon)));
                self.start(n);
            }
        }
        if !self.apps[n as usize].followers.is_empty() {
            self.start_followers(n);
        }
    }
    fn sample(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.sample(&self.net);
            if cfg!(debug_assertions) {
                let miscounts = self.net.miscounts();
                assert!(miscounts.is_empty(), "at {}: {}", self.net.now(), miscounts.join("; "));
            }
            self.net.queue.schedule(self.net.now() + sampler.interval(), Event::Sample);
        }
    }

    // Results.

    /// What there is to tell by now.
    pub fn results(&mut self) -> Results {
        self.net.note_all_tcp();
        let in_flight = self.net.in_flight();
        let result = |&n: &u32| {
            let app = &self.apps[n as usize];
            let mut result = app.result.clone();
            if let Some(program) = &app.program {
                program.report(&mut result, &self.net);
            }
            result
        };
        Results {
            apps: self.visible.iter().map(result).collect(),
            flows: self
                .net
                .flows
                .iter()
                .zip(in_flight)
                .zip(0..)
                .map(|((f, i), id)| self.flow_result(f, i, id))
                .collect(),
            drops: self.net.drops(),
            commands: self.command_results.clone(),
            series: self.sampler.as_ref().map(|s| s.set().clone()).unwrap_or_default(),
            ended: self.net.now(),
            packet_hops: self.net.hops,
            events: self.events,
            counted_from: self.net.counted_from,
            sojourns: self.net.sojourns(),
            watched: self.net.watched(),
            busy: self.net.machines.iter().map(|m| m.cpu.spent(self.net.now())).collect(),
        }
    }
    /// What does not add up of the packets so far: of each flow, sent = received + lost + in flight; of each qdisc, what
    /// it was given and what it gave on, dropped and holds; of all together, those made and those that are somewhere. A sentence
    /// each, naming the flow or machine and device with the figures. There is none but by a fault of the simulator's: its figures
    /// are not to be believed then.
    pub fn miscounts(&self) -> Vec<String> {
        self.net.miscounts()
    }
    fn flow_result(
        &self,
        flow: &crate::flow::Flow,
        in_flight: crate::account::InFlight,
        id: u32,
    ) -> crate::results::FlowResult {
        let place = |&(host, ifindex, count): &(u32, u32, crate::results::PlaceCount)| {
            crate::results::Place { host: HostId(host), device: self.net.device_name(host, ifindex), count }
        };
        let mut places: Vec<_> = flow.places.iter().map(place).collect();
        places.sort_by(|a, b| (a.host, &a.device).cmp(&(b.host, &b.device)));
        let (copies, fragments) = self.net.extras(id, in_flight);
        crate::results::FlowResult {
            places,
            in_flight_packets: in_flight.packets,
            copies,
            fragments,
            losses: self.net.named_losses(&flow.lost_at),
            ..flow.result(id)
        }
    }
    /// Ends the warm-up: flows, waits and losses are counted from now on. Queues, connections, samples and the devices' own
    /// counters go on as they are.
    pub fn end_warmup(&mut self) {
        self.net.end_warmup();
    }
    /// Packets over links so far: one packet over one link is one hop.
    pub fn packet_hops(&self) -> u64 {
        self.net.hops
    }
    /// Names of the hosts, by number.
    pub fn host_names(&self) -> BTreeMap<HostId, String> {
        self.net.machines.iter().zip(0..).map(|(m, i)| (HostId(i), m.name.clone())).collect()
    }
}
