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
use crate::event::{Event, Seq};
use crate::index::NONE;
use crate::intent::Intent;
use crate::net::Net;
use crate::places::Places;
use crate::results::{AppResult, CommandResult, Results, SeriesSet};
use crate::sample::{Sampler, View};
use crate::script::Scripted;
use crate::spec::HostId;
use crate::wake::Wake;
use penstock_host::{Files, Output};
use penstock_model::{Span, Time};
use std::collections::BTreeMap;

/// A program of the timetable.
pub(crate) struct App {
    pub(crate) host: u32,
    pub(crate) run: String,
    pub(crate) at: Time,
    pub(crate) program: Option<Box<dyn Program>>,
    /// What runs in its place, where it is not a program of the simulator's.
    pub(crate) script: Option<Scripted>,
    /// The script that began it; [`NONE`] for none.
    pub(crate) parent: u32,
    /// The programs that its script has begun.
    pub(crate) begun: Vec<u32>,
    /// Which programs start when it ends, and how long after.
    pub(crate) followers: Vec<(u32, Span)>,
    /// It is the receiver of a flow whose source is on another core.
    pub(crate) stands_in: bool,
    pub(crate) result: AppResult,
}

struct Command {
    host: u32,
    line: String,
    at: Time,
}

/// A whole network with its traffic, from its building to its results.
pub struct World {
    pub(crate) net: Net,
    /// Programs first, as they were added; then those that flows are.
    pub(crate) apps: Vec<App>,
    /// Which of `apps` were added as programs.
    pub(crate) visible: Vec<u32>,
    commands: Vec<Command>,
    command_results: Vec<CommandResult>,
    pub(crate) links: u32,
    /// Command lines executed so far.
    pub(crate) executed: u64,
    /// Machines may have been changed by other means than commands since time passed last.
    pub(crate) changed: bool,
    pub(crate) sampler: Option<Sampler>,
    pub(crate) events: u64,
    /// How many cores may make the run, and what they must gain.
    pub(crate) cores: (usize, u64),
    /// Why one core makes the run although more were asked for: from when that is known it stays so.
    pub(crate) one_core: Option<String>,
    /// What is where, once several make it; and where the next sample stands in the order of each.
    pub(crate) places: Option<Places>,
    pub(crate) samples: Vec<Seq>,
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
            changed: true,
            sampler: None,
            events: 0,
            cores: (1, 0),
            one_core: None,
            places: None,
            samples: Vec::new(),
        }
    }
    /// The present.
    pub fn now(&self) -> Time {
        self.net.now()
    }

    // Commands.

    /// Executes one command on a host now: its words as a process gets them; `files` lends what it reads.
    pub fn command(&mut self, id: HostId, words: &[String], files: &mut dyn Files) -> Output {
        self.executed += 1;
        self.net.command(id.0, words, files)
    }
    /// Executes one command on a host now, as [`penstock_host::Host::exec`] reads it.
    pub fn exec(&mut self, id: HostId, line: &str) -> Output {
        self.executed += 1;
        if line.split_whitespace().any(crate::devices::shows_sockets) {
            self.net.tell_sockets(id.0);
        }
        let now = self.net.now();
        self.net.tap_command(id.0, line);
        let output = self.net.with_spaces(id.0, |host| host.exec(line, now));
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

    // Running.

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
        self.run_telling(until, &mut |_| {});
    }
    /// The same; where several cores make the run `tell` hears of the time meanwhile.
    pub fn run_telling(&mut self, until: Time, tell: &mut dyn FnMut(Time)) {
        self.net.guard.expect(self.net.machines.len() + self.net.sockets.all.len() + self.apps.len());
        if std::mem::take(&mut self.changed) {
            for host in 0..self.net.machines.len() as u32 {
                if self.net.whole(host) == host {
                    self.net.after_command(host);
                }
            }
        }
        self.net.forget_decided();
        if self.cores.0 > 1
            && self.cores().is_ok()
            && let Some(places) = self.places.take()
        {
            self.run_on_cores(until, &places, tell);
            self.places = Some(places);
            return;
        }
        if self.pass(until, false) {
            self.net.queue.advance(until.max(self.net.now()));
        }
    }
    /// Lets what is due until then happen; `false` where the run was ended. One of several cores stops at a sample, which they take together.
    pub(crate) fn pass(&mut self, until: Time, one_of_several: bool) -> bool {
        while let Some((seq, event)) = self.net.queue.next_until(until) {
            self.events += 1;
            self.net.guard.event(self.net.queue.now());
            if self.net.guard.is_near() && self.stands_still(event) {
                return false;
            }
            match event {
                Event::Arrive(wire) => self.net.arrive(wire),
                Event::TxDone(nic) => self.net.tx_done(nic),
                Event::SegmentFree(s) => self.net.segment_free(s),
                Event::Watchdog(nic) => self.net.watchdog(nic, seq),
                Event::Cpu(host) => self.net.cpu_done(host),
                Event::Loop(host) => self.net.looped(host),
                Event::Across(host) => self.net.came_across(host),
                Event::HostTimer(host) => self.net.host_timer(host, seq),
                Event::Tcp(sock) => self.net.tcp_timer(sock, seq),
                Event::App(timer) => self.net.wakes.fires(timer, seq),
                Event::Command(n) => self.timed_command(n),
                Event::Start(n) => self.start(n),
                Event::Script(n) => self.script_timer(n, seq),
                Event::Sample if one_of_several => {
                    self.events -= 1;
                    return true;
                }
                Event::Sample => self.sample(),
            }
            if !self.wake_due() {
                return false;
            }
        }
        true
    }
    /// Wakes the programs whose turn it is at this instant; `false` where that goes on for ever.
    #[inline(always)] // After each event.
    pub(crate) fn wake_due(&mut self) -> bool {
        while let Some((app, wake)) = self.net.wakes.due.pop_front() {
            self.net.guard.step();
            if self.net.guard.is_near() {
                let host = &self.net.machines[self.apps[app as usize].host as usize].name;
                let text = format!("{host}: {} wakes for {wake:?}", self.apps[app as usize].run);
                self.net.guard.tell(text);
            }
            if self.net.guard.is_over() {
                self.net.guard.stop();
                return false;
            }
            self.wake(app, wake);
        }
        true
    }
    /// Tells the event; `true` where such events go on for ever.
    #[cold]
    fn stands_still(&mut self, event: Event) -> bool {
        let host = |host: u32| self.net.machines[host as usize].name.clone();
        let device = |at: u32, ifindex: u32| format!("{} {}", host(at), self.net.device_name(at, ifindex));
        let nic =
            |n: u32| device(self.net.cables.nics[n as usize].host, self.net.cables.nics[n as usize].ifindex);
        let text = match event {
            Event::Arrive(wire) => {
                let (host, ifindex) = self.net.cables.wires[wire as usize].to;
                format!("{}: a frame arrives", device(host, ifindex))
            }
            Event::TxDone(n) => format!("{}: the wire is free", nic(n)),
            Event::Watchdog(n) => format!("{}: the queue's timer", nic(n)),
            Event::Cpu(h) | Event::HostTimer(h) | Event::Loop(h) | Event::Across(h) => {
                format!("{}: {event:?}", host(h))
            }
            Event::Tcp(sock) => {
                format!("{}: the timer of socket {sock}", host(self.net.sockets[sock].host))
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
    pub(crate) fn start(&mut self, n: u32) {
        let now = self.net.now();
        let app = &mut self.apps[n as usize];
        app.result.started = now;
        // Its start is an event already: that of the source.
        self.events -= u64::from(app.stands_in);
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
    /// Lets those start that waited for program `n`, if it has ended.
    pub(crate) fn start_followers(&mut self, n: u32) {
        if self.apps[n as usize].result.ended.is_none() {
            return;
        }
        self.tell_script(n);
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
        cx.net.todo.in_call = true;
        f(&mut *program, &mut cx);
        cx.net.todo.in_call = false;
        app.program = Some(program);
        self.net.settle(host);
        while let Some((host, port)) = self.net.wakes.daemons.pop() {
            let listens = self.net.listens(host, port);
            if !listens {
                let daemon = app::daemon::Daemon::new(port);
                let n = self.push_app(host, "daemon", None, Some(Box::new(daemon)));
                self.start(n);
            }
        }
        if !self.apps[n as usize].followers.is_empty() || self.apps[n as usize].parent != NONE {
            self.start_followers(n);
        }
    }
    fn sample(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.sample(&View::of_one(&self.net));
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
        let series = self.sampler.as_ref().map(Sampler::set).unwrap_or_default();
        self.results_with(series)
    }
    /// The same at the end: the series are given away, not copied, and nothing is sampled from now on.
    pub fn last_results(&mut self) -> Results {
        let series = self.sampler.take().map(Sampler::into_set).unwrap_or_default();
        self.results_with(series)
    }
    fn results_with(&mut self, series: SeriesSet) -> Results {
        self.net.note_all_tcp();
        let in_flight = self.net.in_flight();
        let result = |&n: &u32| {
            let app = &self.apps[n as usize];
            let mut result = app.result.clone();
            if let Some(program) = &app.program {
                program.report(&mut result, &self.net);
            }
            self.add_programs(n, &mut result);
            result
        };
        Results {
            apps: self.visible.iter().map(result).collect(),
            flows: self
                .net
                .meter
                .flows
                .iter()
                .zip(in_flight)
                .zip(0..)
                .map(|((f, i), id)| self.flow_result(f, i, id))
                .collect(),
            drops: self.net.drops(),
            commands: self.command_results.clone(),
            series,
            ended: self.net.now(),
            packet_hops: self.net.cables.hops,
            events: self.events,
            counted_from: self.net.meter.counted_from,
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
        in_flight: crate::meter::InFlight,
        id: u32,
    ) -> crate::results::FlowResult {
        let place = |&(host, ifindex, count): &(u32, u32, crate::results::PlaceCount)| {
            crate::results::Place { host: HostId(host), device: self.net.device_name(host, ifindex), count }
        };
        let mut places: Vec<_> = flow.places.iter().map(place).collect();
        places.sort_by(|a, b| (a.host, &a.device).cmp(&(b.host, &b.device)));
        let (copies, fragments) = self.net.meter.extras(id, in_flight, &self.net.pool);
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
    /// What a program of this command line is going to do on a machine as it is now.
    ///
    /// # Errors
    /// What it prints and its exit status, where it ends before it does anything: options it does not know, a file that is not there.
    pub fn intent(&self, id: HostId, line: &str) -> Result<Intent, (String, i32)> {
        let program = app::launch(line, id.0, &self.net).map_err(|f| (f.text, f.status))?;
        let mut intent = program.intent();
        if let Some(call) = &mut intent.calls {
            call.addr = app::resolve(&call.peer, call.family, &self.net);
        }
        Ok(intent)
    }
    /// How many flows there are so far.
    pub fn flows(&self) -> usize {
        self.net.meter.flows.len()
    }
    /// Packets over links so far: one packet over one link is one hop.
    pub fn packet_hops(&self) -> u64 {
        self.net.cables.hops
    }
    /// Names of the hosts, by number.
    pub fn host_names(&self) -> BTreeMap<HostId, String> {
        self.net.machines.iter().zip(0..).map(|(m, i)| (HostId(i), m.name.clone())).collect()
    }
}
