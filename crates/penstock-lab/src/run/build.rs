//! The world that an experiment describes, with its setup done.

use crate::experiment::{self as spec, Change, Experiment, Script};
use penstock_host::{Host, Prefix};
use penstock_lang::cisco;
use penstock_measure::record::SetupFailure;
use penstock_model::traffic::{Arrivals, Dist, Load, pareto};
use penstock_model::{Diagnostic, Rate, Rng, Span, Time};
use penstock_sim::{
    AppId, Bleach, Cost, Course, Duplex, End, FlowId, FlowSpec, Framing, HostId, Iperf, LinkSpec, RateCourse,
    SenderClock, Stack, Transport, World,
};
use std::collections::BTreeMap;

/// A world and which of its parts are which of the experiment's.
pub(super) struct Built {
    /// The world, at time zero.
    pub(super) world: World,
    /// Its hosts, in the order of the experiment's.
    pub(super) hosts: Vec<HostId>,
    /// The same by their names.
    ids: BTreeMap<String, HostId>,
    /// The hosts of each processor that is shared.
    processors: BTreeMap<String, Vec<HostId>>,
    /// Its programs, in the order of the experiment's.
    pub(super) apps: Vec<AppId>,
    /// For each of the experiment's flows its own, `count` of them.
    pub(super) flows: Vec<Vec<FlowId>>,
    /// Commands that failed where that is allowed.
    pub(super) failures: Vec<SetupFailure>,
    /// How long the setups took, one after another.
    pub(super) setups: Span,
    /// What they have left in the background.
    pub(super) jobs: Vec<super::scripts::Jobs>,
    /// The hosts on which such went on into the run.
    pub(super) with_jobs: Vec<HostId>,
}

/// Most connections of one `arrivals`.
const MAX_ARRIVALS: u32 = 20_000;
/// Most failed commands that are shown at once.
const MAX_FAULTS: usize = 20;

/// Builds the world.
pub(super) fn world(experiment: &Experiment, seed: u64) -> Result<Built, Vec<Diagnostic>> {
    let mut built = Built {
        world: World::new(seed),
        hosts: Vec::new(),
        ids: BTreeMap::new(),
        processors: BTreeMap::new(),
        apps: Vec::new(),
        flows: Vec::new(),
        failures: Vec::new(),
        setups: Span::ZERO,
        jobs: Vec::new(),
        with_jobs: Vec::new(),
    };
    let mut faults = Vec::new();
    for host in &experiment.hosts {
        built.host(host, seed, experiment, &mut faults);
    }
    for hosts in built.processors.values() {
        built.world.share_processor(hosts);
    }
    for link in &experiment.links {
        built.link(link, experiment, &mut faults);
    }
    if has_radvd(experiment) {
        for (host, &id) in experiment.hosts.iter().zip(&built.hosts) {
            if host.os == spec::Os::Linux && host.cisco.is_none() && !host.switch {
                built.world.host_mut(id).look_for_routers(Time::ZERO);
            }
        }
    }
    for (host, &id) in experiment.hosts.iter().zip(&built.hosts.clone()) {
        built.setup(host, id, experiment, dice_of(seed, &host.name), &mut faults);
    }
    built.start_jobs();
    // Who waits for another comes after it; the experiment was checked: nobody waits in a circle.
    let mut made: Vec<Option<AppId>> = vec![None; experiment.apps.len()];
    while made.contains(&None) {
        for (i, app) in experiment.apps.iter().enumerate() {
            let ready = app.after.is_none_or(|first| made[first].is_some());
            if made[i].is_none() && ready {
                made[i] = Some(built.app(
                    app,
                    app.after.and_then(|first| made[first]),
                    experiment,
                    seed,
                    &mut faults,
                ));
            }
        }
    }
    built.apps = made.into_iter().flatten().collect();
    for meter in &experiment.meters {
        let host = built.id(&meter.host);
        built.world.host_mut(host).add_conditioner(&meter.dev, meter.conditioner.clone());
    }
    for flow in &experiment.flows {
        built.flow(flow, experiment, seed, &mut faults);
    }
    if !faults.is_empty() {
        let more = faults.len().saturating_sub(MAX_FAULTS);
        faults.truncate(MAX_FAULTS);
        if more > 0 {
            faults.push(Diagnostic::error(format!("and {more} more commands that failed")));
        }
        return Err(faults);
    }
    for expect in &experiment.expects {
        if let spec::Subject::Phb { host, dev, .. } = &expect.measure.subject {
            let id = built.id(host);
            built.world.watch(id, dev);
        }
    }
    built.world.sample_every(experiment.sample());
    Ok(built)
}

/// Whether a machine may tell others of routers: then all look for them.
pub(super) fn has_radvd(experiment: &Experiment) -> bool {
    let setups = experiment.hosts.iter().flat_map(|h| &h.setup).map(|s| &s.text);
    let scripts = experiment.apps.iter().flat_map(|a| a.script.iter().map(|s| &s.text).chain([&a.run]));
    setups.chain(scripts).any(|text| text.contains("radvd"))
}

impl Built {
    pub(super) fn id(&self, name: &str) -> HostId {
        *self.ids.get(name).expect("the experiment was checked: its hosts are there")
    }

    fn host(&mut self, host: &spec::Host, seed: u64, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
        let world = &mut self.world;
        let id = world.add_host(&host.name, host.kernel);
        self.hosts.push(id);
        self.ids.insert(host.name.clone(), id);
        world.host_mut(id).set_psched_clock(host.clock);
        if let Some(hz) = experiment
            .hz
            .filter(|_| host.kernel >= penstock_model::Kernel::V6_12 && host.os == spec::Os::Linux)
        {
            world.host_mut(id).set_hz(hz);
        }
        world.host_mut(id).set_offloads(experiment.offloads);
        match host.os {
            spec::Os::Linux => {}
            spec::Os::WindowsXp => world.set_stack(id, Stack::WindowsXp),
            spec::Os::Solaris => world.set_stack(id, Stack::Solaris),
        }
        let least = if experiment.modern { Iperf::V2_1 } else { Iperf::V2_0 };
        world.set_iperf(id, host.iperf.max(least));
        if let Some(cost) = &host.cost {
            let (packet, thread) = (cost.packet.clone(), cost.thread.clone());
            let spec::Cost { byte_ps, tick, send, classify, clock, qdisc, .. } = *cost;
            let pauses = cost.pauses.iter().map(|(at, length)| (Time::ZERO + *at, *length)).collect();
            world.set_cost(id, Cost { packet, byte_ps, tick, send, classify, clock, thread, qdisc, pauses });
        }
        for (name, bytes) in &host.files {
            world.add_file(name, *bytes);
        }
        if let Some((processor, _)) = &host.processor {
            self.processors.entry(processor.clone()).or_default().push(id);
        }
        if let Some(script) = &host.cisco {
            let config = cisco::parse(&script.text);
            match config.and_then(|config| Host::from_cisco(&host.name, &config, seed)) {
                Ok(router) => {
                    *world.host_mut(id) = router;
                    world.set_console(id, &script.text);
                }
                Err(wrong) => faults.extend(wrong.into_iter().map(|fault| script.place_fault(fault))),
            }
            for device in &host.devices {
                world.add_device(id, &device.name);
            }
            return;
        }
        for device in &host.devices {
            let ifindex = world.add_device(id, &device.name);
            let machine = world.host_mut(id);
            let mut done = Ok(());
            if let Some(mtu) = device.mtu {
                done = done.and(machine.set_mtu(ifindex, mtu, Time::ZERO));
            }
            if let Some(packets) = device.txqueuelen {
                done = done.and(machine.set_tx_queue_len(ifindex, packets, Time::ZERO));
            }
            for &(address, len) in &device.addresses {
                done = done.and(machine.add_address(ifindex, Prefix::new(address, len)));
            }
            for &(address, len) in &device.addresses6 {
                done = done.and(machine.add_address6(ifindex, address, len));
            }
            if let Err(e) = done {
                faults.push(at(experiment, &device.place, format!("{}: {e}", device.name)));
            }
        }
        if let Some((via, place)) = &host.via
            && let Err(e) = world.host_mut(id).add_default_route(*via)
        {
            faults.push(at(experiment, place, format!("via: {e}")));
        }
        if let Some((via, place)) = &host.via6
            && let Err(e) = world.host_mut(id).add_default_route6(*via)
        {
            faults.push(at(experiment, place, format!("via: {e}")));
        }
    }

    fn link(&mut self, link: &spec::Link, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
        let ends = link.ends.iter().map(|end| End {
            host: self.id(&end.host),
            device: end.dev.clone(),
            rate: end.rate,
            delay: end.delay,
            loss_ppb: end.loss_ppb,
            bleach: end.ecn.map(bleach),
            ring: end.ring,
            tx_frames: end.tx_frames,
            bql: end.bql,
            course: course(link, end, experiment.duration),
        });
        let made = LinkSpec {
            name: link.name.clone(),
            ends: ends.collect(),
            rate: link.rate,
            delay: link.delay,
            loss_ppb: link.loss_ppb,
            bleach: bleach(link.ecn),
            framing: match link.framing {
                spec::Framing::Ethernet => Framing::Ethernet,
                spec::Framing::None => Framing::None,
                spec::Framing::Ip => Framing::Ip,
                spec::Framing::Pos => Framing::Pos,
                spec::Framing::Fddi => Framing::Fddi,
                spec::Framing::Atm => Framing::Atm,
                spec::Framing::Ppp => Framing::Ppp,
                spec::Framing::FrameRelay => Framing::FrameRelay,
                spec::Framing::TokenRing => Framing::TokenRing,
            },
            duplex: if link.half_duplex { Duplex::Half } else { Duplex::Full },
        };
        if let Err(e) = self.world.add_link(made) {
            faults.push(at(experiment, &link.place, e.to_string()));
            return;
        }
        for end in link.ends.iter().filter(|end| end.tx_queues > 1) {
            let host = self.id(&end.host);
            self.world.host_mut(host).set_tx_queues(&end.dev, end.tx_queues);
        }
        for end in &link.ends {
            if let Some(queue) = end.queue.as_ref().or(link.queue.as_ref()) {
                let host = self.id(&end.host);
                let mut options = queue.options.clone();
                if let Some(rate) = end.rate.or(link.rate) {
                    options.set("bandwidth", rate.bit_per_s().into());
                }
                options.set("delay", (end.delay.unwrap_or(link.delay).as_ns().max(0) as u64).into());
                let machine = self.world.host_mut(host);
                let ifindex = machine.ifindex(&end.dev).unwrap_or(0);
                if let Err(e) = machine.set_ns2_queue(ifindex, queue.kind, &options) {
                    faults.push(at(experiment, &queue.place, e.extack));
                }
            }
        }
    }

    fn app(
        &mut self,
        app: &spec::App,
        after: Option<AppId>,
        experiment: &Experiment,
        seed: u64,
        faults: &mut Vec<Diagnostic>,
    ) -> AppId {
        let host = self.id(&app.on);
        let id = match after {
            Some(first) => self.world.add_app_after(host, &app.run, first, app.at),
            None => self.world.add_app(host, &app.run, Time::from_ns(app.at.as_ns())),
        };
        // What is not a program of the simulator's, alone, is a line of the machine's shell.
        let script = app.script.clone().or_else(|| {
            let place = app.run_place.clone();
            (!World::is_program(&app.run)).then(|| Script {
                text: app.run.clone(),
                place,
                ..Script::default()
            })
        });
        if let Some(script) = script {
            let seed = dice_of(seed, &format!("{}/{}", app.on, app.name));
            let ahead = experiment.hosts.iter().find(|h| h.name == app.on).map_or(Span::ZERO, |h| h.ahead);
            let begins = if app.after.is_none() { app.at + ahead } else { ahead };
            if app.script.is_none() && !app.may_fail {
                unknown_program(app, &script, experiment, faults);
            }
            self.script_of(id, &script, experiment, (seed, begins), faults);
        } else if !app.may_fail {
            self.refused_options(app, host, experiment, faults);
        }
        id
    }
    /// A program that would end before it does anything: options it does not know, a file that is not there.
    fn refused_options(
        &self,
        app: &spec::App,
        host: HostId,
        experiment: &Experiment,
        faults: &mut Vec<Diagnostic>,
    ) {
        let asked = |w: &str| matches!(w, "-h" | "--help" | "-v" | "-V" | "--version");
        let Err((said, status)) = self.world.intent(host, &app.run) else { return };
        if status == 0 || app.run.split_whitespace().any(asked) {
            return;
        }
        let line = said.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("it ends at once");
        let message = format!("{}: {line}", app.name);
        let help =
            format!("it would end with status {status} at once; may_fail = true in this [[app]] lets it");
        let place = &app.run_place;
        faults.push(experiment.sources[place.source].fault(place.span.clone(), message, help));
    }

    fn flow(&mut self, flow: &spec::Flow, experiment: &Experiment, seed: u64, faults: &mut Vec<Diagnostic>) {
        if let Load::Arrivals(arrivals) = &flow.load {
            self.flows.push(Vec::new());
            let all = match self::arrivals(flow, arrivals, experiment, seed) {
                Ok(all) => all,
                Err(fault) => return faults.push(fault),
            };
            for (n, (start, bytes)) in (1u32..).zip(all) {
                let one = spec::Flow {
                    name: format!("{}-{n}", flow.name),
                    count: 1,
                    load: Load::Bytes(bytes),
                    at: (start, start),
                    until: None,
                    ..flow.clone()
                };
                let ids = self.one_flow(&one, experiment, faults);
                self.flows.last_mut().expect("just pushed").extend(ids);
            }
            return;
        }
        let ids = self.one_flow(flow, experiment, faults);
        self.flows.push(ids);
    }

    fn one_flow(
        &mut self,
        flow: &spec::Flow,
        experiment: &Experiment,
        faults: &mut Vec<Diagnostic>,
    ) -> Vec<FlowId> {
        let transport = match &flow.tcp {
            None => Transport::Udp,
            Some(tcp) => Transport::Tcp(tcp.resolved()),
        };
        let made = self.world.add_flow(FlowSpec {
            name: flow.name.clone(),
            group: flow.group.clone().unwrap_or_default(),
            from: self.id(&flow.from),
            to: self.id(&flow.to),
            to_addr: None,
            ipv6: flow.ipv6,
            count: flow.count,
            transport,
            load: flow.load.clone(),
            start: Time::from_ns(flow.at.0.as_ns()),
            start_to: Time::from_ns(flow.at.1.as_ns()),
            stop: flow.until.map(|t| Time::from_ns(t.as_ns())),
            tos: flow.tos,
            mark: flow.mark,
            port: flow.port,
            clock: SenderClock { drift_ppm: flow.drift_ppm, jitter: flow.jitter },
            trace: flow.trace,
            txtime: flow.txtime,
        });
        made.unwrap_or_else(|e| {
            faults.push(at(experiment, &flow.place, e.to_string()));
            Vec::new()
        })
    }
}

/// The connections of a Poisson process that begin in a run: when, and with how many bytes.
///
/// # Errors
/// There are more than [`MAX_ARRIVALS`].
pub(super) fn arrivals(
    flow: &spec::Flow,
    arrivals: &Arrivals,
    experiment: &Experiment,
    seed: u64,
) -> Result<Vec<(Span, u64)>, Diagnostic> {
    let mut dice = Rng::named(seed, &format!("flow:{}/arrivals", flow.name));
    let end = flow.until.unwrap_or(experiment.duration).min(experiment.duration);
    let gap = Dist::Exponential { mean: arrivals.gap };
    let mut start = flow.at.0;
    let mut all = Vec::new();
    loop {
        start += gap.draw(&mut dice);
        if start >= end {
            return Ok(all);
        }
        if all.len() as u32 >= MAX_ARRIVALS {
            let message = format!("more than {MAX_ARRIVALS} connections come in this run");
            return Err(at(experiment, &flow.place, message));
        }
        let bytes = match arrivals.shape_milli {
            None => arrivals.bytes,
            // The least that gives the mean asked for.
            Some(shape) => {
                let least = u128::from(arrivals.bytes) * u128::from(shape - 1000) / u128::from(shape);
                pareto((least as u64).max(1), shape, &mut dice)
            }
        };
        all.push((start, bytes));
    }
}

/// Refuses a line that begins with a program there is not: of all lines of `run`, the ones that are nothing but a program and its words.
fn unknown_program(app: &spec::App, script: &Script, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let plain = |w: &&str| w.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
    let Some(program) = app.run.split_whitespace().next().filter(plain) else { return };
    if super::scripts::knows(program, script, experiment) {
        return;
    }
    let place = &app.run_place;
    let message = format!("{}: there is no program \"{program}\" on the simulator", app.name);
    let help = match program {
        "flent" => {
            let known = |word: &&str| spec::TESTS.contains(word) || spec::CALLS.contains(word);
            let test = app.run.split_whitespace().find(known).unwrap_or("rrul");
            format!("in its place write [[test]] with run = \"{test}\", from = \"{}\" and to = a host", app.on)
        }
        _ => "there are ping, iperf, iperf3, scp, ssh, telnet, traceroute, tracepath, mtr and a shell's tools; --on kernel runs what is installed"
            .to_owned(),
    };
    faults.push(experiment.sources[place.source].fault(place.span.clone(), message, help));
}

/// What the dice of a script begin at: another number for each machine and program.
fn dice_of(seed: u64, name: &str) -> u64 {
    Rng::named(seed, &format!("script:{name}")).next_u64()
}

pub(super) fn at(experiment: &Experiment, place: &spec::Place, message: String) -> Diagnostic {
    experiment.sources[place.source].fault(place.span.clone(), message, "")
}

/// How what an end sends with changes; `None` where nothing does.
fn course(link: &spec::Link, end: &spec::End, duration: Span) -> Option<Course> {
    if !link.changes.any() && !end.changes.any() {
        return None;
    }
    let at = |span: Span| Time::from_ns(span.as_ns());
    fn of<'c, T>(own: Option<T>, change: &'c Option<Change>, link: &'c Option<Change>) -> Option<&'c Change> {
        match own {
            Some(_) => change.as_ref(),
            None => link.as_ref(),
        }
    }
    let steps = |change: Option<&Change>| match change {
        Some(Change::Values(values)) => values.steps(duration),
        _ => Vec::new(),
    };
    let rate = match of(end.rate, &end.changes.rate, &link.changes.rate) {
        Some(Change::Trace(ms)) => RateCourse::Opportunities(ms.clone()),
        Some(change @ Change::Values(_)) => {
            let mut steps = steps(Some(change));
            // What would stand still for ever goes on when the run is over.
            if let Some(&(last, 0)) = steps.last() {
                let first = end.rate.or(link.rate).map_or(8, |rate| rate.bit_per_s());
                steps.push((last.max(duration) + Span::from_ns(1), first));
            }
            let rate = |&(from, bits): &(Span, u64)| (at(from), Rate::from_bit_per_s(bits));
            RateCourse::Steps(steps.iter().map(rate).collect())
        }
        None => RateCourse::Constant,
    };
    let delay = steps(of(end.delay, &end.changes.delay, &link.changes.delay));
    let loss = steps(of(end.loss_ppb, &end.changes.loss, &link.changes.loss));
    let down = if end.changes.down.is_empty() { &link.changes.down } else { &end.changes.down };
    Some(Course {
        rate,
        delay: delay.into_iter().map(|(from, ns)| (at(from), Span::from_ns(ns as i64))).collect(),
        loss_ppb: loss.into_iter().map(|(from, ppb)| (at(from), ppb as u32)).collect(),
        down: down.iter().map(|&(from, to)| (at(from), at(to))).collect(),
    })
}

fn bleach(ecn: spec::Ecn) -> Bleach {
    match ecn {
        spec::Ecn::Pass => Bleach::No,
        spec::Ecn::Bleach => Bleach::Ect,
        spec::Ecn::Unmark => Bleach::Ce,
    }
}
