//! The grounds with a real Linux: this machine's kernel, or a virtual one in exact time.

use super::record::{Measured, assemble};
use super::{Also, Ground, Options, Outcome, build};
use crate::experiment::{self as spec, Experiment, Os, Script, program};
use penstock_kernel::plan::{self, Plan};
use penstock_kernel::printed::{self, Printed};
use penstock_kernel::{AppRun, DeviceEnd, FlowRun, SetupFailure, Trouble};
use penstock_lang::{cisco, setup};
use penstock_measure::record;
use penstock_measure::{Distribution, Series};
use penstock_model::traffic::Load;
use penstock_model::{Diagnostic, Rng, Span, ifname};

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
    for link in &experiment.links {
        let ends: Vec<String> = link.ends.iter().map(|e| format!("{}:{}", e.host, e.dev)).collect();
        if link.ends.len() > 2 {
            notes.push(format!("{}: a switch replaces the shared medium", ends.join(" ")));
        } else if link.half_duplex {
            notes.push(format!("{}: both directions send at once", ends.join(" ")));
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
    for flow in &experiment.flows {
        match flow.load {
            Load::Pages { .. } | Load::Arrivals(_) => {
                faults.push(fault(&flow.place, "pages and arrivals"));
            }
            Load::Echo { .. } => faults.push(fault(&flow.place, "load = { echo }")),
            _ => {}
        }
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
        flows(flow, seed, &at, &mut plan);
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

fn flows(flow: &spec::Flow, seed: u64, at: &dyn Fn(&str) -> usize, plan: &mut Plan) {
    let Some(addr) = plan.hosts[at(&flow.to)].address() else { return };
    let mut dice = Rng::named(seed, &format!("flow/{}/start", flow.name));
    for n in 0..flow.count {
        let name = if flow.count == 1 { flow.name.clone() } else { format!("{}-{}", flow.name, n + 1) };
        let width = (flow.at.1 - flow.at.0).as_ns().max(0) as u64 + 1;
        let start = flow.at.0.as_ns() + ((u128::from(dice.next_u64()) * u128::from(width)) >> 64) as i64;
        plan.flows.push(plan::Flow {
            from: at(&flow.from),
            to: at(&flow.to),
            addr,
            tcp: flow.tcp.clone(),
            load: flow.load.clone(),
            at: Span::from_ns(start),
            until: flow.until,
            tos: flow.tos,
            mark: flow.mark,
            port: if flow.count == 1 { flow.port } else { 0 },
            name,
        });
    }
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
    // Their senders and receivers speak IPv4.
    let four = |name: &str| {
        let host = experiment.hosts.iter().find(|h| h.name == name);
        host.is_some_and(|h| h.devices.iter().any(|d| !d.addresses.is_empty()))
    };
    if let Some(flow) = experiment.flows.iter().find(|flow| flow.ipv6 || !four(&flow.to)) {
        let message = "flows over IPv6 run on sim alone: elsewhere write an [[app]], iperf3 -6 or ping -6";
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
    let tc = ran.devices.iter().filter(|d| experiment.hosts[d.host].cisco.is_none());
    let tc = tc.map(|d| (experiment.hosts[d.host].name.clone(), d.dev.clone(), d.text.clone())).collect();
    let outputs = ran.apps.iter().map(|a| a.output.clone()).collect();
    let flows: Vec<record::Flow> =
        plan.flows.iter().zip(&ran.flows).map(|(f, run)| flow_record(experiment, &plan, f, run)).collect();
    let devices = ran.devices.iter().filter(|d| experiment.hosts[d.host].cisco.is_none());
    let failure = |f: &SetupFailure| record::SetupFailure {
        host: f.host.clone(),
        command: f.command.clone(),
        message: f.message.clone(),
    };
    let measured = Measured {
        rig: rig(experiment, &ran),
        apps: experiment.apps.iter().zip(&ran.apps).map(|(app, run)| app_record(app, run)).collect(),
        groups: super::record::groups(experiment, &flows, &series),
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
        passages: Vec::new(),
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

fn rig(experiment: &Experiment, ran: &penstock_kernel::Outcome) -> record::Rig {
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
            notes: notes(experiment),
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

/// Bytes of headers of a datagram, and of a segment with timestamps.
const HEADERS: [u64; 2] = [28, 52];
/// Those of the frame around it.
const ETHERNET: u64 = 14;

fn flow_record(experiment: &Experiment, plan: &Plan, flow: &plan::Flow, run: &FlowRun) -> record::Flow {
    let sent = run.sent.clone().unwrap_or_default();
    let received = run.received.clone().unwrap_or_default();
    let tcp = flow.tcp.is_some();
    let start = run.sent.as_ref().map(|s| s.start_s);
    let end =
        sent.end_s.unwrap_or_else(|| flow.until.unwrap_or(plan.duration).min(plan.duration).as_secs_f64());
    // What was given before the end may arrive behind it.
    let ended = tcp && sent.end_s.is_some();
    let end = if ended { end } else { received.last_s.unwrap_or(end).max(end) };
    let life = start.map_or(0.0, |s| end - s);
    let rate = |bytes: u64| if life > 0.0 { bytes as f64 * 8.0 / life } else { 0.0 };
    let frame = HEADERS[usize::from(tcp)] + ETHERNET;
    let group = experiment
        .flows
        .iter()
        .find(|f| flow.name == f.name || flow.name.starts_with(&format!("{}-", f.name)));
    record::Flow {
        analysis: None,
        name: flow.name.clone(),
        from: plan.hosts[flow.from].name.clone(),
        to: plan.hosts[flow.to].name.clone(),
        proto: if tcp { "tcp" } else { "udp" }.to_owned(),
        group: group.and_then(|f| f.group.clone()),
        app: None,
        start_s: start,
        end_s: sent.end_s,
        sent_packets: sent.sent_packets,
        received_packets: received.received_packets,
        // Of TCP the retransmits; what is still on the way when the run ends is not lost.
        lost_packets: match tcp {
            true => sent.retransmitted_packets.unwrap_or(0),
            false => sent.sent_packets.saturating_sub(received.received_packets),
        },
        // What is under way in a kernel nobody can count.
        in_flight_packets: None,
        copied_packets: None,
        fragments: None,
        losses: Vec::new(),
        marked_packets: received.marked_packets,
        retransmitted_packets: sent.retransmitted_packets,
        payload_bytes: Some(received.bytes),
        sent_bytes: Some(sent.sent_bytes + sent.sent_packets * frame),
        received_bytes: Some(received.bytes + received.received_packets * frame),
        goodput_bit_s: rate(received.bytes),
        throughput_bit_s: rate(received.bytes + received.received_packets * HEADERS[usize::from(tcp)]),
        owd_ms: received.owd_ms,
        rtt_ms: None,
        owd_quantiles_ms: Vec::new(),
        jitter_mean_ms: None,
        jitter_max_ms: None,
        jitter_ms: received.jitter_ms,
        dscp: super::outcome::code_point(flow.tos),
        late_us: sent.late_us,
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
    for (flow, run) in plan.flows.iter().zip(&ran.flows) {
        let object = format!("flow {}", flow.name);
        let mut before = run.sent.as_ref().map_or(0.0, |s| s.start_s.max(0.0));
        for s in run.received.iter().flat_map(|r| &r.samples) {
            if s.time_s <= before {
                continue;
            }
            all.add("", &object, "goodput_bit_s", s.time_s, s.bytes as f64 * 8.0 / (s.time_s - before));
            before = s.time_s;
            if let Some(owd) = s.owd_ms {
                all.add("", &object, "owd_ms", s.time_s, owd);
            }
        }
        for s in run.sent.iter().flat_map(|s| &s.samples) {
            all.add("", &object, "cwnd_packets", s.time_s, f64::from(s.cwnd_packets));
            all.add("", &object, "srtt_ms", s.time_s, s.srtt_ms);
            if let Some(threshold) = s.ssthresh_packets {
                all.add("", &object, "ssthresh_packets", s.time_s, f64::from(threshold));
            }
        }
    }
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
