//! What a run gave, in the form of the record.

use super::build::Built;
use super::record::{Hop, Measured, assemble};
use super::{Also, Ground, Outcome};
use crate::experiment::{self as spec, Experiment, Os};
use penstock_host::{Conditioned, Host, NetDevice, Output};
use penstock_lang::show;
use penstock_lang::token::quoted;
use penstock_measure::passage::{Analysis, Passage};
use penstock_measure::phb::Carried;
use penstock_measure::quantile::SHARES;
use penstock_measure::record;
use penstock_measure::series::{Instants, Quantity};
use penstock_measure::{Distribution, Series};
use penstock_model::rtnetlink::{ClassDump, QdiscDump};
use penstock_model::{Handle, Kernel, OldRelease, Span, Time};
use penstock_packet::dscp;
use penstock_sim::{AppResult, FlowResult, Histogram, Metric, Results, SeriesSet};
use std::collections::BTreeMap;

/// Everything that is recorded of a run.
pub(super) fn collect(experiment: &Experiment, seed: u64, mut built: Built, mut results: Results) -> Outcome {
    let owners = owners(&built, &results);
    let mut set = std::mem::take(&mut results.series);
    super::names::tell_apart(experiment, &owners, &mut results.flows, &mut set);
    let series = series(experiment, &built, &results, set);
    let (apps, outputs) = apps(experiment, &built, &results);
    let tc = tc_outputs(experiment, &mut built);
    let measured = Measured {
        rig: rig(experiment, &built, &results),
        apps,
        flows: flows(experiment, &built, &results, &owners),
        groups: super::groups::groups(experiment, &built, &results, &series),
        together: super::groups::together(experiment, &built, &results),
        devices: devices(experiment, &built, &results),
        per_hop: super::record::per_hop(experiment, |host, dev| hop(experiment, &built, &results, host, dev)),
        drops: drops(experiment, &built, &results),
        setup_failures: std::mem::take(&mut built.failures),
    };
    let record = assemble(experiment, Ground::Sim, seed, measured, &series);
    let traced = results.flows.iter().enumerate().filter(|(_, f)| !f.passages.is_empty());
    let passages = traced.map(|(i, flow)| (i, passages(flow))).collect();
    Outcome {
        record,
        series,
        outputs,
        tc,
        passages,
        packet_hops: results.packet_hops,
        one_thread: None,
        captures: Vec::new(),
        test: experiment.test.clone(),
        also: Also::default(),
    }
}

/// What a watched device sent and lost.
fn hop(experiment: &Experiment, built: &Built, results: &Results, host: &str, dev: &str) -> Option<Hop> {
    let at = experiment.hosts.iter().position(|h| h.name == host)?;
    let watched = results.watched.iter().find(|w| w.host == built.hosts[at] && w.device == dev)?;
    let carried = |c: &penstock_sim::Carried| Carried {
        code: c.code,
        flow: c.flow,
        bytes: c.bytes,
        arrived_ns: c.arrived.as_ns(),
        begun_ns: c.begun.as_ns(),
        left_ns: c.left.as_ns(),
    };
    Some(Hop { sent: watched.sent.iter().map(carried).collect(), lost: watched.lost.clone() })
}

/// What was lost, by cause.
fn drops(experiment: &Experiment, built: &Built, results: &Results) -> Vec<record::Drop> {
    let host = |id: penstock_sim::HostId| {
        // Hosts are numbered as they were added; their network namespaces come behind them.
        let at = built.hosts.binary_search(&id).ok();
        at.map_or_else(|| built.world.host_name(id).to_owned(), |at| experiment.hosts[at].name.clone())
    };
    let row = |(key, count): (&penstock_sim::DropKey, &penstock_sim::DropCount)| record::Drop {
        host: host(key.host),
        dev: (!key.device.is_empty()).then(|| key.device.clone()),
        place: key.place.to_owned(),
        reason: key.reason.to_owned(),
        packets: count.packets,
        fragments: (count.fragments > 0).then_some(count.fragments),
        copies: (count.copies > 0).then_some(count.copies),
    };
    results.drops.iter().map(row).collect()
}

fn ms(span: Span) -> f64 {
    span.as_ns() as f64 / 1e6
}

fn rig(experiment: &Experiment, built: &Built, results: &Results) -> record::Rig {
    let hosts = experiment.hosts.iter().zip(&built.hosts).map(|(host, &id)| record::Host {
        name: host.name.clone(),
        kernel: host
            .cisco
            .is_none()
            .then(|| host.clock.release().map_or(host.kernel.name(), OldRelease::name).to_owned()),
        tcp: (host.os != Os::Linux)
            .then(|| Os::ALL.iter().find(|(_, os)| *os == host.os).map_or("", |(name, _)| name).to_owned()),
        system: super::record::system(host),
        forwards: built.world.host(id).forwards(),
        via: host.gateway(),
        processor_share: host.cost.as_ref().map(|_| {
            results.busy[id.0 as usize].as_secs_f64() / results.ended.as_secs_f64().max(f64::MIN_POSITIVE)
        }),
        devices: (built.world.host(id).devices().iter().filter(|d| !d.loopback))
            .map(|d| record::Interface {
                dev: d.name.clone(),
                addresses: d
                    .addresses
                    .iter()
                    .map(|a| format!("{}/{}", a.prefix.addr, a.prefix.len))
                    .chain(d.addresses6.iter().map(|a| format!("{}/{}", a.addr, a.len)))
                    .collect(),
            })
            .collect(),
    });
    record::Rig { hosts: hosts.collect(), links: links(experiment), machine: None }
}

/// The links of an experiment as the record has them.
pub(super) fn links(experiment: &Experiment) -> Vec<record::Link> {
    let links = experiment.links.iter().map(|link| record::Link {
        ends: link.ends.iter().map(|e| format!("{}:{}", e.host, e.dev)).collect(),
        rate_bit_s: link.rate.map(|r| r.bit_per_s() as f64),
        end_rates_bit_s: match link.ends.iter().any(|e| e.rate.is_some()) {
            true => {
                link.ends.iter().map(|e| e.rate.or(link.rate).map_or(0.0, |r| r.bit_per_s() as f64)).collect()
            }
            false => Vec::new(),
        },
        delay_ms: ms(link.delay),
        loss: (link.loss_ppb > 0).then(|| f64::from(link.loss_ppb) / 1e9),
    });
    links.collect()
}

fn apps(experiment: &Experiment, built: &Built, results: &Results) -> (Vec<record::App>, Vec<String>) {
    let mut outputs = Vec::new();
    let apps = experiment.apps.iter().zip(&built.apps).map(|(app, id)| {
        let result = &results.apps[id.0 as usize];
        outputs.push(result.output.clone());
        let mut rtts: Vec<f64> = result.rtts.iter().map(|ns| *ns as f64 / 1e6).collect();
        let packets = result.packets;
        let streams = result.intervals.iter().map(|i| i.stream).max().unwrap_or(0);
        record::App {
            name: app.name.clone(),
            host: app.on.clone(),
            run: app.run.clone(),
            start_s: started(result).map(Time::as_secs_f64),
            end_s: result.ended.map(Time::as_secs_f64),
            exit: result.exit,
            throughput_bit_s: result.throughput_bit_s.map(|x| x as f64),
            so_far_bit_s: so_far(result, results),
            may_fail: app.may_fail,
            bytes: result.bytes,
            sent_packets: packets.map(|p| p.0),
            received_packets: packets.map(|p| p.1),
            lost_packets: packets.map(|p| p.0.saturating_sub(p.1)),
            retransmitted_packets: retransmitted(result, results),
            rtt_ms: Distribution::of(&mut rtts),
            jitter_ms: result.jitter.map(ms),
            intervals: result
                .intervals
                .iter()
                .map(|i| {
                    let long = (i.to - i.from).as_secs_f64();
                    record::Interval {
                        stream: (streams > 0).then_some(i.stream),
                        from_s: i.from.as_secs_f64(),
                        to_s: i.to.as_secs_f64(),
                        bytes: i.bytes,
                        throughput_bit_s: if long > 0.0 { i.bytes as f64 * 8.0 / long } else { 0.0 },
                    }
                })
                .collect(),
        }
    });
    let apps = apps.collect();
    (apps, outputs)
}

/// Payload bits per second of a program that the run's end cut off before it told its own figure.
fn so_far(app: &AppResult, results: &Results) -> Option<f64> {
    if app.exit.is_some() || app.throughput_bit_s.is_some() {
        return None;
    }
    let own = app.flows.iter().filter_map(|id| results.flows.get(id.0 as usize));
    let own: Vec<&FlowResult> =
        own.filter(|f| f.proto != "icmp" && (f.from == app.host || f.goodput_bytes > 0)).collect();
    let first = own.iter().filter_map(|f| f.started).min()?.max(results.counted_from);
    let long = (results.ended - first).as_secs_f64();
    let bytes: u64 = own.iter().map(|f| f.goodput_bytes).sum();
    (long > 0.0).then(|| bytes as f64 * 8.0 / long)
}

fn started(result: &AppResult) -> Option<Time> {
    (result.started != Time::MAX).then_some(result.started)
}

/// Retransmitted segments on the TCP connections of an app; `None` where it has none.
fn retransmitted(app: &AppResult, results: &Results) -> Option<u64> {
    let own = app.flows.iter().filter_map(|id| results.flows.get(id.0 as usize));
    let tcp: Vec<u64> = own.filter(|f| f.proto == "tcp").map(|f| f.retransmitted_packets).collect();
    (!tcp.is_empty()).then(|| tcp.iter().sum())
}

/// The distribution of a histogram of nanoseconds, in ms.
pub(super) fn distribution(h: &Histogram) -> Option<Distribution> {
    let ms = |ns: u64| ns as f64 / 1e6;
    Some(Distribution {
        min: ms(h.min()?),
        mean: ms(h.mean()?),
        p50: ms(h.quantile(500)?),
        p95: ms(h.quantile(950)?),
        p99: ms(h.quantile(990)?),
        max: ms(h.max()?),
    })
}

/// The quantiles of a histogram of nanoseconds at [`SHARES`], in ms; empty where it is.
pub(super) fn quantiles(h: &Histogram) -> Vec<f64> {
    let of = |share: f64| match share {
        0.0 => h.min(),
        1.0 => h.max(),
        share => h.quantile((share * 1000.0).round() as u32),
    };
    SHARES.iter().filter_map(|&share| Some(of(share)? as f64 / 1e6)).collect()
}

/// The name or number of a code point that is not 0.
pub(super) fn code_point(tos: u8) -> Option<String> {
    let dscp = tos >> 2;
    (dscp != 0).then(|| dscp::name(dscp).map_or_else(|| dscp.to_string(), str::to_owned))
}

/// The first program that has each flow, by its place in the experiment.
fn owners(built: &Built, results: &Results) -> Vec<Option<usize>> {
    let mut owners: Vec<Option<usize>> = vec![None; results.flows.len()];
    for (i, id) in built.apps.iter().enumerate().rev() {
        let app = &results.apps[id.0 as usize];
        for flow in app.flows.iter().chain(&app.control) {
            if let Some(owner) = owners.get_mut(flow.0 as usize) {
                *owner = Some(i);
            }
        }
    }
    owners
}

fn flows(
    experiment: &Experiment,
    built: &Built,
    results: &Results,
    owners: &[Option<usize>],
) -> Vec<record::Flow> {
    let mut tos = vec![0; results.flows.len()];
    for (flow, ids) in experiment.flows.iter().zip(&built.flows) {
        ids.iter().for_each(|id| tos[id.0 as usize] = flow.tos);
    }
    // Of flows that are many of one `[[flow]]` the quantiles of all together are kept.
    let mut alone = vec![true; results.flows.len()];
    for ids in built.flows.iter().filter(|ids| ids.len() > 1) {
        ids.iter().for_each(|id| alone[id.0 as usize] = false);
    }
    let host = |id: penstock_sim::HostId| built.world.host_name(id).to_owned();
    results
        .flows
        .iter()
        .enumerate()
        .map(|(i, flow)| {
            let app = owners[i];
            let life = life(flow, results.ended).map_or(0.0, |(from, to)| (to - from).as_secs_f64());
            let rate = |bytes: u64| if life > 0.0 { bytes as f64 * 8.0 / life } else { 0.0 };
            record::Flow {
                name: flow.name.clone(),
                from: host(flow.from),
                to: host(flow.to),
                proto: flow.proto.to_owned(),
                group: (!flow.group.is_empty()).then(|| flow.group.clone()),
                app: app.map(|i| experiment.apps[i].name.clone()),
                dscp: code_point(tos[i]),
                start_s: flow.started.map(Time::as_secs_f64),
                end_s: flow.completed.map(Time::as_secs_f64),
                sent_packets: flow.sent_packets,
                received_packets: flow.received_packets,
                lost_packets: flow.lost_packets,
                in_flight_packets: Some(flow.in_flight_packets),
                copied_packets: (flow.copies.made > 0).then_some(flow.copies.made),
                fragments: (flow.fragments.made > 0).then_some(flow.fragments.made),
                losses: flow
                    .losses
                    .iter()
                    .map(|(key, packets)| record::Loss {
                        host: host(key.host),
                        dev: (!key.device.is_empty()).then(|| key.device.clone()),
                        place: key.place.to_owned(),
                        reason: key.reason.to_owned(),
                        packets: *packets,
                    })
                    .collect(),
                marked_packets: flow.marked_packets,
                retransmitted_packets: (flow.proto == "tcp").then_some(flow.retransmitted_packets),
                payload_bytes: Some(flow.goodput_bytes),
                sent_bytes: Some(flow.sent_bytes),
                received_bytes: Some(flow.received_bytes),
                goodput_bit_s: rate(flow.goodput_bytes),
                throughput_bit_s: rate(flow.received_bytes.saturating_sub(14 * flow.arrived_packets)),
                owd_ms: distribution(&flow.owd),
                owd_quantiles_ms: if alone[i] { quantiles(&flow.owd) } else { Vec::new() },
                rtt_ms: Distribution::of(
                    &mut flow.rtts.iter().map(|r| r.1.as_ns() as f64 / 1e6).collect::<Vec<f64>>(),
                ),
                jitter_ms: (flow.received_packets > 1).then(|| ms(flow.jitter)),
                jitter_mean_ms: (flow.received_packets > 1).then(|| ms(flow.jitter_mean)),
                jitter_max_ms: (flow.received_packets > 1).then(|| ms(flow.jitter_max)),
                late_us: None,
                analysis: Analysis::of(&passages(flow)),
            }
        })
        .collect()
}

/// The datagrams of a traced flow.
fn passages(flow: &FlowResult) -> Vec<Passage> {
    let passage = |p: &penstock_sim::Passage| Passage {
        bytes: p.bytes,
        sent_s: p.sent.as_secs_f64(),
        received_s: p.received.map(Time::as_secs_f64),
    };
    flow.passages.iter().map(passage).collect()
}

/// When a flow lived: from its start to its end, or to the run's.
pub(super) fn life(flow: &FlowResult, ended: Time) -> Option<(Time, Time)> {
    let last = flow.received_span.map(|(_, last)| last);
    let end = flow.completed.map_or(ended, |done| last.map_or(done, |last| last.max(done).min(ended)));
    flow.started.map(|start| (start, end))
}

/// How long frames waited at each device, where any waited at all.
fn waits(results: &Results) -> BTreeMap<(penstock_sim::HostId, &str), Distribution> {
    let waited = results.sojourns.iter().filter_map(|s| {
        let waits = distribution(&s.waits).filter(|d| d.max > 0.0)?;
        Some(((s.host, &*s.device), waits))
    });
    waited.collect()
}

fn devices(experiment: &Experiment, built: &Built, results: &Results) -> Vec<record::Device> {
    let now = results.ended;
    let mut waits = waits(results);
    let mut found = Vec::new();
    for (host, name, id) in machines(experiment, built) {
        if host.cisco.is_some() {
            continue;
        }
        for device in built.world.host(id).devices().iter().filter(|d| !d.loopback) {
            let qdiscs = device.tree.dump_qdiscs(now);
            let marks = device.tree.counters(now).into_iter().map(|c| c.marks);
            found.push(record::Device {
                host: name.clone(),
                dev: device.name.clone(),
                sojourn_ms: waits.remove(&(id, &*device.name)),
                qdiscs: qdiscs.iter().zip(marks).map(|(q, marks)| qdisc(q, marks, host.kernel)).collect(),
                classes: device.tree.dump_classes(now).iter().map(class).collect(),
                meters: meters(experiment, built.world.host(id), &name, device),
            });
        }
    }
    found
}

/// The machines, each followed by its network namespaces: what the experiment says of it, its name, its number.
fn machines<'a>(
    experiment: &'a Experiment,
    built: &Built,
) -> Vec<(&'a spec::Host, String, penstock_sim::HostId)> {
    let each = experiment.hosts.iter().zip(&built.hosts).flat_map(|(host, &id)| {
        let spaces = built.world.namespaces(id).into_iter();
        let spaces = spaces.map(move |(space, _)| (host, built.world.host_name(space).to_owned(), space));
        [(host, host.name.clone(), id)].into_iter().chain(spaces)
    });
    each.collect()
}

/// The meters of a device: those of the experiment and what they have seen stand in the same order.
fn meters(experiment: &Experiment, host: &Host, name: &str, device: &NetDevice) -> Vec<record::Meter> {
    let said = experiment.meters.iter().filter(|m| m.host == name && m.dev == device.name);
    let seen = host.conditioners().iter().filter(|c| c.ifindex == device.ifindex);
    let meter = |(m, c): (&spec::Meter, &Conditioned)| {
        let [green_packets, yellow_packets, red_packets] = c.packets;
        record::Meter { kind: m.kind.clone(), green_packets, yellow_packets, red_packets }
    };
    said.zip(seen).map(meter).collect()
}

fn handle(handle: Handle) -> String {
    if handle == Handle::UNSPEC { "0:".to_owned() } else { handle.to_string() }
}

fn qdisc(dump: &QdiscDump, marks: Option<u64>, kernel: Kernel) -> record::Qdisc {
    let options = show::options(dump, kernel);
    record::Qdisc {
        kind: dump.kind.to_owned(),
        handle: handle(dump.handle),
        parent: dump.parent.to_string(),
        options: (!options.is_empty()).then_some(options),
        rate_bit_s: dump.options.u64("rate").map(|bytes| bytes as f64 * 8.0),
        bytes: dump.stats.bytes,
        packets: dump.stats.packets,
        drops: dump.stats.drops.into(),
        overlimits: dump.stats.overlimits.into(),
        requeues: dump.stats.requeues.into(),
        backlog: dump.stats.backlog.into(),
        qlen: dump.stats.qlen.into(),
        marked_packets: marks,
    }
}

fn class(dump: &ClassDump) -> record::Class {
    let rate = |name: &str| dump.options.u64(name).map(|bytes| bytes as f64 * 8.0);
    let count = |name: &str| dump.xstats.as_ref().and_then(|x| x.u64(name));
    let leaf_class = dump.options.u32("level").is_none_or(|level| level == 0);
    record::Class {
        kind: dump.kind.to_owned(),
        classid: dump.classid.to_string(),
        parent: dump.parent.to_string(),
        leaf: dump.leaf.filter(|h| *h != Handle::UNSPEC).map(|h| h.to_string()),
        rate_bit_s: rate("rate"),
        ceil_bit_s: rate("ceil"),
        prio: dump.options.u32("prio").filter(|_| dump.kind == "htb" && leaf_class),
        bytes: dump.stats.bytes,
        packets: dump.stats.packets,
        drops: dump.stats.drops.into(),
        lended: count("lends"),
        borrowed: count("borrows"),
    }
}

/// `tc -s -d qdisc|class|filter show` of each device of each Linux, in the form of its profile.
fn tc_outputs(experiment: &Experiment, built: &mut Built) -> Vec<(String, String, String)> {
    let mut texts = Vec::new();
    for (host, name, id) in machines(experiment, built) {
        if host.cisco.is_some() || host.os != Os::Linux {
            continue;
        }
        let now = built.world.now();
        let machine = built.world.host(id);
        let devices = machine.devices().iter().filter(|d| !d.loopback);
        let devices: Vec<(String, Shown)> =
            devices.map(|d| (d.name.clone(), Shown::of(d, machine.look(now)))).collect();
        for (dev, shown) in devices {
            let word = quoted(&dev);
            let mut commands = vec![
                format!("tc -s -d qdisc show dev {word}"),
                format!("tc -s -d class show dev {word}"),
                format!("tc -s -d filter show dev {word}"),
            ];
            commands
                .extend(shown.parents.iter().map(|p| format!("tc -s -d filter show dev {word} parent {p}")));
            let mut text = String::new();
            for (n, command) in commands.into_iter().enumerate() {
                // Of most of thousands of devices there is nothing to show.
                let output = match n > 0 && shown.plain {
                    true => Output::default(),
                    false => built.world.exec(id, &command),
                };
                text.push_str(&format!("# {command}\n{}{}", output.stdout, output.stderr));
                if !text.ends_with("\n\n") {
                    text.push('\n');
                }
            }
            texts.push((name.clone(), dev, text));
        }
    }
    texts
}

/// What there is to show of a device beside its qdiscs.
struct Shown {
    /// Neither classes nor filters.
    plain: bool,
    /// Qdiscs and classes other than the root qdisc that have filters.
    parents: Vec<Handle>,
}

impl Shown {
    fn of(device: &NetDevice, look: penstock_sched::Look<'_>) -> Shown {
        let qdiscs = device.tree.dump_qdiscs(look.now);
        let classes = device.tree.dump_classes(look.now);
        let root = device.tree.dump_filters(Handle::UNSPEC, look);
        if let ([_], [], Ok([])) = (&qdiscs[..], &classes[..], root.as_deref()) {
            return Shown { plain: true, parents: Vec::new() };
        }
        let inner = qdiscs.iter().filter(|q| q.parent != Handle::ROOT).map(|q| q.handle);
        let classes = classes.into_iter().map(|c| c.classid);
        let mut parents: Vec<Handle> = inner.chain(classes).filter(|h| *h != Handle::UNSPEC).collect();
        parents.retain(|&h| device.tree.dump_filters(h, look).is_ok_and(|filters| !filters.is_empty()));
        parents.dedup();
        Shown { plain: false, parents }
    }
}

/// The name of a quantity, with its unit, and what it is made of.
fn quantity(metric: Metric) -> (&'static str, Quantity) {
    use Quantity::{Gauge, Measured, More, Rate};
    match metric {
        Metric::Bytes => ("throughput_bit_s", Rate(8, 1.0)),
        Metric::Goodput => ("goodput_bit_s", Rate(8, 1.0)),
        Metric::Packets => ("rate_packets_s", Rate(1, 1.0)),
        Metric::Processor => ("share", Rate(1, 1e9)),
        Metric::Drops => ("drops_packets", More),
        Metric::Borrowed => ("borrowed_packets", More),
        Metric::Retrans => ("retrans_packets", More),
        Metric::Overlimits | Metric::Overactions => (metric.as_str(), More),
        Metric::Avgidle => ("avgidle_ticks", Gauge(1.0, 1.0)),
        Metric::Undertime => ("undertime_ticks", Gauge(1.0, 1.0)),
        Metric::Backlog => ("backlog_bytes", Gauge(1.0, 1.0)),
        Metric::Qlen => ("qlen_packets", Gauge(1.0, 1.0)),
        Metric::Marks => ("marks_packets", Gauge(1.0, 1.0)),
        Metric::Cwnd => ("cwnd_packets", Gauge(1.0, 1.0)),
        Metric::Ssthresh => ("ssthresh_packets", Gauge(1.0, 1.0)),
        Metric::Sacked => ("sacked_packets", Gauge(1.0, 1.0)),
        Metric::Lost => ("lost_packets", Gauge(1.0, 1.0)),
        Metric::Rto => ("rto_ms", Gauge(1.0, 1e6)),
        Metric::Rttvar => ("rttvar_ms", Gauge(1.0, 1e6)),
        Metric::PacingRate => ("pacing_bit_s", Gauge(8.0, 1.0)),
        Metric::DeliveryRate => ("delivery_bit_s", Gauge(8.0, 1.0)),
        Metric::Srtt => ("srtt_ms", Measured(1e6)),
        Metric::Owd => ("owd_ms", Measured(1e6)),
    }
}

/// The simulator's series with units, and each app's goodput and round trips.
fn series(experiment: &Experiment, built: &Built, results: &Results, set: SeriesSet) -> Series {
    let mut all = Series::new();
    let instants = Instants::new(set.times.iter().map(|t| t.as_ns()).collect());
    for series in set.series {
        let host = series.host.map_or("", |id| built.world.host_name(id));
        let object = series.object.strip_suffix(" none").map(|name| format!("{name} 0:"));
        let object = object.as_deref().unwrap_or(&series.object);
        let (metric, quantity) = quantity(series.metric);
        all.extend(host, object, metric, instants.points(series.first, &series.values, quantity));
    }
    for flow in &results.flows {
        for (time, rtt) in &flow.rtts {
            all.add("", &format!("flow {}", flow.name), "rtt_ms", time.as_secs_f64(), ms(*rtt));
        }
    }
    for (app, id) in experiment.apps.iter().zip(&built.apps) {
        let result = &results.apps[id.0 as usize];
        goodput(&mut all, &app.on, &app.name, result, results);
        for (time, rtt) in result.rtt_times.iter().zip(&result.rtts) {
            all.add(&app.on, &app.name, "rtt_ms", time.as_secs_f64(), *rtt as f64 / 1e6);
        }
    }
    all
}

/// The goodput of all connections of an app together.
fn goodput(all: &mut Series, host: &str, name: &str, app: &AppResult, results: &Results) {
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for id in &app.flows {
        let Some(flow) = results.flows.get(id.0 as usize).filter(|f| f.proto != "icmp") else { continue };
        let object = format!("flow {}", flow.name);
        for &(t, v) in all.points("", &object, "goodput_bit_s") {
            match sums.binary_search_by(|s| s.0.total_cmp(&t)) {
                Ok(at) => sums[at].1 += v,
                Err(at) => sums.insert(at, (t, v)),
            }
        }
    }
    for (t, v) in sums {
        all.add(host, name, "goodput_bit_s", t, v);
    }
}
