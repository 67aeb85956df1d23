//! The grounds with a real Linux: this machine's kernel, or a virtual one in exact time.

mod flows;

use super::record::{Measured, assemble};
use super::{Also, Ground, Options, Outcome, build};
use crate::experiment::{self as spec, Experiment, Os, Script, program};
use penstock_kernel::plan::{self, Plan};
use penstock_kernel::printed::{self, Printed};
use penstock_kernel::{AppRun, DeviceEnd, FlowRun, SetupFailure, Trouble};
use penstock_lang::{cisco, setup};
use penstock_measure::record;
use penstock_measure::{Distribution, Series};
use penstock_model::{Diagnostic, Span, ifname};

/// A device's name as Linux can have it: a Cisco router's `FastEthernet0/0` holds a stroke.
fn device(name: &str) -> String {
    name.replace('/', "_").chars().take(ifname::MAX).collect()
}

/// What of an experiment no real kernel of today does, a sentence each.
fn notes(experiment: &Experiment) -> Vec<String> {
    let mut notes = Vec::new();
    for host in &experiment.hosts {
        let name = &host.name;
        if host.cost.is_some() {
            notes.push(format!("{name}: its processor's cost per packet is left out"));
        }
        if host.ahead != Span::ZERO {
            notes.push(format!("{name}: its clock is that of all others"));
        }
        if host.processor.is_some() {
            notes.push(format!("{name}: it shares its processor with nobody"));
        }
        if host.os != Os::Linux {
            notes.push(format!("{name}: Linux replaces its system"));
        }
        if host.cisco.is_some() {
            notes
                .push(format!("{name}: Linux replaces a Cisco router, with its addresses and static routes"));
        }
    }
    for flow in &experiment.flows {
        let tcp = flow.tcp.as_ref();
        if tcp.is_some_and(|t| t.ns2.is_some()) {
            notes.push(format!("{}: Linux's own TCP replaces ns-2's", flow.name));
        } else if tcp.is_some_and(|t| {
            t.initial_window.is_some() || t.min_rto.is_some() || t.quickack || t.hz.is_some()
        }) {
            notes.push(format!("{}: initial window and minimum timeout are the kernel's own", flow.name));
        }
    }
    for flow in experiment.flows.iter().filter(|f| f.tcp.as_ref().is_some_and(|t| t.fastopen)) {
        notes.push(format!("{}: its connections are opened without Fast Open", flow.name));
    }
    for link in &experiment.links {
        let ends: Vec<String> = link.ends.iter().map(|e| format!("{}:{}", e.host, e.dev)).collect();
        if link.ends.len() > 2 {
            notes.push(format!("{}: a switch replaces the shared medium", ends.join(" ")));
        } else if link.half_duplex {
            notes.push(format!("{}: both directions send at once", ends.join(" ")));
        }
        for end in link.ends.iter().filter(|e| e.ring > 0) {
            notes.push(format!("{}:{}: its card has no ring", end.host, end.dev));
        }
    }
    notes
}

/// What of an experiment only the simulator has, and that cannot be left out.
pub(super) fn only_simulated(experiment: &Experiment) -> Vec<Diagnostic> {
    let fault = |place: &spec::Place, what: &str| {
        let message = format!("{what}: only the simulator has this");
        experiment.sources[place.source].fault(place.span.clone(), message, "run it with --on sim")
    };
    let mut faults = Vec::new();
    for link in &experiment.links {
        let queues = link.ends.iter().filter_map(|e| e.queue.as_ref()).chain(&link.queue);
        faults.extend(queues.map(|q| fault(&q.place, &format!("queue {}", q.kind))));
        if link.ecn != spec::Ecn::Pass || link.ends.iter().any(|e| e.ecn.is_some()) {
            faults.push(fault(&link.place, "ecn"));
        }
        if link.changes.any() || link.ends.iter().any(|e| e.changes.any()) {
            faults.push(fault(&link.place, "a rate, delay or loss that changes, and down"));
        }
        if link.ends.iter().any(|e| e.tx_queues > 1) {
            faults.push(fault(&link.place, "tx_queues"));
        }
        if link.ends.iter().any(|e| e.bql) {
            faults.push(fault(&link.place, "bql"));
        }
        if !matches!(link.framing, spec::Framing::Ethernet | spec::Framing::None) {
            faults.push(fault(&link.place, &format!("framing = \"{}\"", link.framing.name())));
        }
    }
    for capture in &experiment.captures {
        let message = format!("capture {}: only the simulator has this", capture.name);
        let place = &capture.place;
        let help = "run it with --on sim, or run tcpdump as an [[app]]";
        faults.push(experiment.sources[place.source].fault(place.span.clone(), message, help));
    }
    // One place, one sentence: a test of flent's is several flows.
    faults.dedup_by_key(|f| (f.file.clone(), f.line, f.column, f.message.clone()));
    faults
}

/// The plan of an experiment. `exact`: time is virtual.
fn plan_of(experiment: &Experiment, seed: u64, exact: bool) -> Result<Plan, Vec<Diagnostic>> {
    let at = |name: &str| experiment.hosts.iter().position(|h| h.name == name).unwrap_or(0);
    let mut faults = only_simulated(experiment);
    let program = std::env::current_exe().unwrap_or_else(|_| "penstock".into());
    let mut plan = Plan {
        seed,
        duration: experiment.duration,
        warmup: experiment.warmup,
        sample: experiment.sample(),
        offloads: experiment.offloads,
        exact,
        penstock: program,
        files: experiment
            .lent
            .iter()
            .flat_map(|l| [(l.path.clone(), l.text.clone()), (l.name.clone(), l.text.clone())])
            .collect(),
        ..Plan::default()
    };
    for host in &experiment.hosts {
        match machine(host) {
            Ok(host) => plan.hosts.push(host),
            Err(wrong) => faults.extend(wrong),
        }
    }
    for link in &experiment.links {
        let ends = link.ends.iter().map(|e| plan::End {
            host: at(&e.host),
            dev: device(&e.dev),
            rate: e.rate,
            delay: e.delay,
            loss_ppb: e.loss_ppb,
        });
        plan.links.push(plan::Link {
            ends: ends.collect(),
            rate: link.rate,
            delay: link.delay,
            loss_ppb: link.loss_ppb,
            ethernet: link.framing == spec::Framing::Ethernet,
        });
    }
    for app in &experiment.apps {
        let run = app.script.as_ref().map_or_else(|| app.run.clone(), |s| s.text.clone());
        plan.apps.push(plan::App { host: at(&app.on), run, at: app.at, after: app.after });
    }
    for flow in &experiment.flows {
        if let Err(fault) = flows::plan(flow, experiment, seed, &at, &mut plan) {
            faults.push(fault);
        }
    }
    if faults.is_empty() { Ok(plan) } else { Err(faults) }
}

fn machine(host: &spec::Host) -> Result<plan::Host, Vec<Diagnostic>> {
    let devices = host.devices.iter().map(|d| plan::Device {
        name: device(&d.name),
        addresses: d.addresses.clone(),
        addresses6: d.addresses6.clone(),
        mtu: d.mtu,
        txqueuelen: d.txqueuelen,
    });
    let mut made = plan::Host {
        name: host.name.clone(),
        devices: devices.collect(),
        via: host.via.as_ref().map(|(via, _)| *via),
        via6: host.via6.as_ref().map(|(via, _)| *via),
        setup_may_fail: host.setup_may_fail,
        ..plan::Host::default()
    };
    let script = |s: &Script| plan::Script { file: s.file.clone(), line: s.line, text: s.text.clone() };
    made.setup = host.setup.iter().map(script).collect();
    let Some(config) = &host.cisco else { return Ok(made) };
    let parsed = cisco::parse(&config.text)
        .map_err(|wrong| wrong.into_iter().map(|f| config.place_fault(f)).collect::<Vec<_>>())?;
    made.forwards = true;
    for (interface, device) in parsed.interfaces.iter().zip(&mut made.devices) {
        // The output queue of IOS is 40 packets unless the configuration says otherwise.
        device.txqueuelen = interface.hold_queue_out.or(Some(40));
    }
    for route in &parsed.routes {
        let via = route.via.map(|v| format!(" via {v}")).unwrap_or_default();
        let dev = route.interface.as_ref().map(|i| format!(" dev {}", device(i))).unwrap_or_default();
        let metric = if route.distance == 1 { String::new() } else { format!(" metric {}", route.distance) };
        made.routes.push(format!("append {}/{}{via}{dev}{metric} proto static", route.network, route.len));
    }
    Ok(made)
}

/// Carries out an experiment on the kernel this process finds itself in. `ground` is what the record calls it, `token` the job's.
pub(super) fn run(
    experiment: &Experiment,
    options: &mut Options<'_>,
    ground: Ground,
    token: &str,
) -> Result<Outcome, Vec<Diagnostic>> {
    if let Some(meter) = experiment.meters.first() {
        let message = "meters are not there on a real kernel: Linux has none of these".to_owned();
        return Err(vec![build::at(experiment, &meter.place, message)]);
    }
    if let Some(flow) = experiment.flows.iter().find(|flow| flow.txtime.is_some()) {
        let message = "txtime: senders on a real kernel do not name times of departure yet; run this on sim";
        return Err(vec![build::at(experiment, &flow.place, message.to_owned())]);
    }
    let seed = options.seed.unwrap_or(experiment.seed);
    let mut plan = plan_of(experiment, seed, ground == Ground::Virtual)?;
    plan.token = token.to_owned();
    let ran = penstock_kernel::run(&plan, options.progress).map_err(|trouble| match trouble {
        Trouble::Machine(missing) => missing.into_iter().map(Diagnostic::error).collect(),
        Trouble::Setup(wrong) => wrong.iter().map(refusal).collect::<Vec<_>>(),
        Trouble::Stopped => vec![Diagnostic::error("stopped by a signal; nothing is left of the run")],
    })?;
    let series = series(experiment, &plan, &ran);
    let complaint = |f: &FlowRun| if f.sent.is_none() { Some(f.complaint.trim().to_owned()) } else { None };
    if let Some(said) = ran.flows.iter().filter_map(complaint).find(|said| !said.is_empty()) {
        return Err(said.lines().map(Diagnostic::error).collect());
    }
    let failed = plan.flows.iter().zip(&ran.flows).filter_map(|(flow, run)| {
        let why = run.sent.as_ref()?.failed.as_ref()?;
        Some(format!("{}: it could not connect to {why}", flow.name))
    });
    let failed: Vec<String> = failed.collect();
    let tc = ran.devices.iter().filter(|d| experiment.hosts[d.host].cisco.is_none());
    let tc = tc.map(|d| (experiment.hosts[d.host].name.clone(), d.dev.clone(), d.text.clone())).collect();
    let outputs = ran.apps.iter().map(|a| a.output.clone()).collect();
    let flows: Vec<record::Flow> =
        plan.flows.iter().zip(&ran.flows).map(|(f, run)| flows::record(experiment, &plan, f, run)).collect();
    let passages = plan.flows.iter().zip(&ran.flows).enumerate();
    let passages = passages.filter(|(_, (f, _))| f.trace).map(|(n, (_, run))| (n, flows::passages(run)));
    let passages = passages.collect();
    let transfers = flows::transfers(&plan, &ran);
    let devices = ran.devices.iter().filter(|d| experiment.hosts[d.host].cisco.is_none());
    let failure = |f: &SetupFailure| record::SetupFailure {
        host: f.host.clone(),
        command: f.command.clone(),
        message: f.message.clone(),
    };
    let measured = Measured {
        rig: rig(experiment, &ran, failed),
        apps: experiment.apps.iter().zip(&ran.apps).map(|(app, run)| app_record(app, run)).collect(),
        groups: super::record::groups(experiment, &flows, &transfers, &series),
        together: super::record::together(experiment, &flows),
        flows,
        devices: devices.map(|d| device_record(experiment, d)).collect(),
        // No kernel tells of the packets of a device one by one.
        per_hop: Vec::new(),
        drops: ran.drops.iter().map(|(host, lost)| drop_record(experiment, *host, lost)).collect(),
        setup_failures: ran.failures.iter().map(failure).collect(),
    };
    let record = assemble(experiment, ground, seed, measured, &series);
    Ok(Outcome {
        record,
        series,
        outputs,
        tc,
        passages,
        packet_hops: 0,
        one_thread: None,
        captures: Vec::new(),
        test: experiment.test.clone(),
        also: Also::default(),
    })
}

fn refusal(failure: &SetupFailure) -> Diagnostic {
    let first = setup::told(failure.message.lines());
    let said = Diagnostic::error(format!("{}: {first}", failure.host))
        .at(&failure.file, failure.line, 1, failure.command.chars().count() as u32)
        .source(&failure.command);
    match penstock_kernel::needs::advice(&failure.message) {
        Some(how) => said.help(how),
        None => said,
    }
}

fn rig(experiment: &Experiment, ran: &penstock_kernel::Outcome, failed: Vec<String>) -> record::Rig {
    let facts = &ran.facts;
    let hosts = experiment.hosts.iter().zip(&ran.forwards).map(|(host, forwards)| record::Host {
        name: host.name.clone(),
        kernel: host.cisco.is_none().then(|| facts.kernel.clone()),
        tcp: None,
        system: super::record::system(host),
        forwards: *forwards,
        via: host.gateway(),
        processor_share: None,
        devices: host
            .devices
            .iter()
            .filter(|d| d.name != "lo")
            .map(|d| record::Interface {
                dev: d.name.clone(),
                addresses: (d.addresses.iter().map(|(a, len)| format!("{a}/{len}")))
                    .chain(d.addresses6.iter().map(|(a, len)| format!("{a}/{len}")))
                    .collect(),
            })
            .collect(),
    });
    record::Rig {
        hosts: hosts.collect(),
        links: super::outcome::links(experiment),
        machine: Some(record::Machine {
            kernel: facts.kernel.clone(),
            iproute2: facts.iproute2.clone(),
            hz: facts.hz,
            clock_source: facts.clock_source.clone(),
            cpu: facts.cpu.clone(),
            cpus: facts.cpus,
            offloads: facts.offloads.clone(),
            delay_by: facts.delay_by.clone(),
            drop_reasons: ran.reasons.clone(),
            notes: notes(experiment).into_iter().chain(failed).collect(),
        }),
    }
}

fn app_record(app: &spec::App, run: &AppRun) -> record::App {
    let said = printed::parse(&app.run, &run.output);
    let mut rtts: Vec<f64> = said.rtts.iter().map(|r| r.1).collect();
    let streams = said.intervals.iter().map(|i| i.0).max().unwrap_or(0);
    let interval = |i: &(u32, f64, f64, u64, f64)| record::Interval {
        stream: (streams > 0).then_some(i.0),
        from_s: i.1,
        to_s: i.2,
        bytes: i.3,
        throughput_bit_s: i.4,
    };
    record::App {
        name: app.name.clone(),
        host: app.on.clone(),
        run: app.run.clone(),
        start_s: run.start_s,
        end_s: run.end_s,
        exit: run.exit,
        throughput_bit_s: said.throughput_bit_s,
        so_far_bit_s: None,
        may_fail: app.may_fail,
        bytes: said.bytes,
        sent_packets: said.packets.map(|p| p.0),
        received_packets: said.packets.map(|p| p.1),
        lost_packets: said.packets.map(|p| p.0.saturating_sub(p.1)),
        retransmitted_packets: said.retransmitted,
        rtt_ms: Distribution::of(&mut rtts),
        jitter_ms: said.jitter_ms,
        intervals: said.intervals.iter().map(interval).collect(),
    }
}

fn device_record(experiment: &Experiment, device: &DeviceEnd) -> record::Device {
    let qdiscs = device.objects.iter().filter(|o| !o.is_class).map(|o| record::Qdisc {
        kind: o.kind.clone(),
        handle: o.id.clone(),
        parent: o.parent.clone(),
        options: (!o.options.is_empty()).then(|| o.options.clone()),
        rate_bit_s: o.rate_bit_s,
        bytes: o.bytes,
        packets: o.packets,
        drops: o.drops,
        overlimits: o.overlimits,
        requeues: o.requeues,
        backlog: o.backlog,
        qlen: o.qlen,
        marked_packets: None,
    });
    let classes = device.objects.iter().filter(|o| o.is_class).map(|o| record::Class {
        kind: o.kind.clone(),
        classid: o.id.clone(),
        parent: o.parent.clone(),
        leaf: o.leaf.clone(),
        rate_bit_s: o.rate_bit_s,
        ceil_bit_s: o.ceil_bit_s,
        prio: o.prio,
        bytes: o.bytes,
        packets: o.packets,
        drops: o.drops,
        lended: o.lended,
        borrowed: o.borrowed,
    });
    record::Device {
        host: experiment.hosts[device.host].name.clone(),
        dev: device.dev.clone(),
        sojourn_ms: None,
        qdiscs: qdiscs.collect(),
        classes: classes.collect(),
        meters: Vec::new(),
    }
}

fn drop_record(experiment: &Experiment, host: usize, lost: &penstock_kernel::drops::Lost) -> record::Drop {
    record::Drop {
        host: experiment.hosts[host].name.clone(),
        dev: (!lost.dev.is_empty()).then(|| lost.dev.clone()),
        place: lost.place.clone(),
        reason: lost.reason.to_owned(),
        packets: lost.packets,
        fragments: None,
        copies: None,
    }
}

/// Seconds between the requests of a ping: its `-i`, else one.
fn pace(run: &str) -> f64 {
    let mut words = run.split_whitespace();
    words.find(|w| *w == "-i").and_then(|_| words.next()).and_then(|w| w.parse().ok()).unwrap_or(1.0)
}

fn series(experiment: &Experiment, plan: &Plan, ran: &penstock_kernel::Outcome) -> Series {
    let mut all = Series::new();
    for (host, object, metric, time, value) in &ran.series {
        all.add(&plan.hosts[*host].name, object, metric, *time, *value);
    }
    flows::series(plan, ran, &mut all);
    for (app, run) in experiment.apps.iter().zip(&ran.apps) {
        let Some(start) = run.start_s else { continue };
        let said: Printed = printed::parse(&app.run, &run.output);
        let mut sums: Vec<(f64, f64)> = Vec::new();
        for (_, from, to, bytes, _) in &said.intervals {
            let rate = *bytes as f64 * 8.0 / (to - from).max(1e-9);
            match sums.iter_mut().find(|s| (s.0 - to).abs() < 0.01) {
                Some(sum) => sum.1 += rate,
                None => sums.push((*to, rate)),
            }
        }
        for (to, rate) in sums {
            all.add(&app.on, &app.name, "goodput_bit_s", start + to, rate);
        }
        let pace = if program(&app.run) == "ping" { pace(&app.run) } else { 1.0 };
        for (number, rtt) in &said.rtts {
            let time = start + number.saturating_sub(1) as f64 * pace + rtt / 1e3;
            all.add(&app.on, &app.name, "rtt_ms", time, *rtt);
        }
    }
    all
}
