//! Series: every counter and every queue, looked at in equal intervals.
//!
//! A sample reads and changes nothing. Counters are kept as they stand (cumulative), so giving up every second sample
//! loses no traffic, only resolution.
//!
//! What stands still is not looked at: of a device through which nothing went since the sample before and in which nothing waits, three counters are read, and its series
//! go on with their last values when something happens or the run ends. A device that never had anything has no series.

mod flows;
mod layout;

use crate::machine::Machine;
use crate::net::Net;
use crate::places::{Dealt, Places};
use crate::results::{Metric, Series, SeriesSet};
use crate::spec::HostId;
use flows::Rows;
use layout::{Layout, stand_still};
use penstock_model::{Handle, Span, Time};
use penstock_sched::sch::traits;
use penstock_sched::traits::Classes;
use penstock_sched::tree::Counters;
use penstock_tcp::cc::INFINITE_SSTHRESH;
use std::collections::BTreeMap;

/// Instants kept before every second one is given up.
const MAX_INSTANTS: usize = 65_536;
/// Values of all series kept before the same (half a gigabyte), and the fewest instants that are then left.
const MAX_VALUES: usize = 64 << 20;
const FEWEST: usize = 64;

/// What is sampled: the world, or what several cores have of it.
pub(crate) struct View<'a> {
    now: Time,
    nets: Vec<&'a Net>,
    /// What was there before the cores began, where a flow and a machine are.
    cores: Option<(&'a Net, &'a Dealt, &'a Places)>,
}

impl<'a> View<'a> {
    pub(crate) fn of_one(net: &'a Net) -> View<'a> {
        View { now: net.now(), nets: vec![net], cores: None }
    }
    pub(crate) fn of_cores(
        now: Time,
        nets: Vec<&'a Net>,
        before: &'a Net,
        dealt: &'a Dealt,
        places: &'a Places,
    ) -> View<'a> {
        View { now, nets, cores: Some((before, dealt, places)) }
    }
    fn flows(&self) -> usize {
        self.nets.iter().map(|net| net.meter.flows.len()).max().unwrap_or(0)
    }
    /// The nets of a flow's source and sink.
    fn ends(&self, flow: usize) -> (&'a Net, &'a Net) {
        let (from, to) = self.cores.map_or((0, 0), |(_, dealt, places)| dealt.flow(flow, places));
        (self.nets[from], self.nets[to])
    }
    /// Packets of a flow that were lost and marked, wherever.
    fn fates(&self, flow: usize) -> (u64, u64) {
        let (mut lost, mut marked) = (0, 0);
        let mut add = |net: &Net| {
            let Some(flow) = net.meter.flows.get(flow) else { return };
            lost += flow.lost_packets;
            flow.places.iter().for_each(|place| marked += place.2.marked_packets);
        };
        self.nets.iter().for_each(|net| add(net));
        if let Some((before, ..)) = self.cores {
            add(before);
        }
        (lost, marked)
    }
    /// The machines, each with the net it is in.
    fn machines(&self) -> impl Iterator<Item = (&'a Net, &'a Machine)> {
        (0..self.nets[0].machines.len()).map(|host| {
            let core = self.cores.map_or(0, |(.., places)| places.of(host as u32));
            (self.nets[core], &self.nets[core].machines[host])
        })
    }
}

/// What a device was like at the sample before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Seen {
    /// Frames that left; those that came in, where it has an ingress qdisc.
    packets: [u64; 2],
    /// What its root qdisc counted: bytes, drops, overlimits, packets waiting.
    root: [u64; 4],
}

impl Seen {
    fn of(device: &penstock_host::NetDevice) -> Seen {
        let root = device.tree.root().stats();
        let came = if device.tree.ingress().is_some() { device.counters.rx_packets } else { 0 };
        Seen {
            packets: [device.counters.tx_packets, came],
            root: [root.bytes, root.drops.into(), root.overlimits.into(), root.qlen.into()],
        }
    }
    /// Whether nothing waits in it.
    fn is_empty(&self) -> bool {
        self.root[3] == 0
    }
}

/// What is remembered of a device.
#[derive(Clone, Copy, Default)]
struct Watched {
    seen: Seen,
    /// Something went through it: it has series.
    used: bool,
    /// It has gauges that move by themselves (cbq).
    restless: bool,
    /// At which instant it was looked at last.
    last: usize,
}

/// What a flow was like at the sample before.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Still {
    /// Sent, arrived, lost, marked; and what moved in its connection.
    packets: [u64; 5],
    /// It has a connection.
    connected: bool,
    /// It was so at the sample before that, too.
    twice: bool,
    /// Sum and number of its one-way delays.
    owd: (i64, i64),
}

impl Still {
    /// Whether nothing has happened since.
    #[inline]
    fn is(&self, packets: &[u64; 5], connected: bool) -> bool {
        self.connected == connected && self.packets.iter().zip(packets).all(|(a, b)| a == b)
    }
}

/// Takes the samples.
pub(crate) struct Sampler {
    interval: Span,
    set: SeriesSet,
    /// Flows as they were at the sample before, and what they were like until then.
    still: Vec<Still>,
    rows: Vec<Rows>,
    /// Devices as they were at the sample before, by machine and place.
    devices: Vec<Vec<Watched>>,
    /// What they showed, in the same places.
    layouts: Vec<Vec<Layout>>,
    /// The series of the device at hand, in the order in which it shows them.
    shown: Vec<(u64, Metric, u32)>,
    /// Where the search for the next series goes on: objects come in the same order every time.
    cursor: usize,
    /// Where each series stands, for those that are not the next one.
    index: BTreeMap<(Option<u32>, u64, Metric), usize>,
    /// Values in all series.
    values: usize,
}

impl Sampler {
    pub(crate) fn new(interval: Span) -> Sampler {
        Sampler {
            interval,
            set: SeriesSet::default(),
            still: Vec::new(),
            rows: Vec::new(),
            devices: Vec::new(),
            layouts: Vec::new(),
            shown: Vec::new(),
            cursor: 0,
            index: BTreeMap::new(),
            values: 0,
        }
    }
    pub(crate) fn interval(&self) -> Span {
        self.interval
    }
    /// All series, those of objects that stand still up to the last sample.
    pub(crate) fn set(&self) -> SeriesSet {
        let mut set = self.set.clone();
        self.rows.iter().for_each(|rows| rows.fill(set.times.len(), &mut set.series));
        self.layouts.iter().flatten().for_each(|layout| layout.fill(&mut set.series));
        self.go_on(&mut set);
        set
    }
    /// The same at the end.
    pub(crate) fn into_set(mut self) -> SeriesSet {
        let mut set = std::mem::take(&mut self.set);
        // What is made of a flow's rows takes the room of the flow's before.
        self.rows.drain(..).for_each(|rows| rows.fill(set.times.len(), &mut set.series));
        self.layouts.drain(..).flatten().for_each(|layout| layout.fill(&mut set.series));
        self.go_on(&mut set);
        set
    }
    /// Devices that stand still have their last values until the last sample.
    fn go_on(&self, set: &mut SeriesSet) {
        for series in &mut set.series {
            // What was not there any more when its device was looked at last ended then.
            let Some(host) = series.host else { continue };
            let device = self.devices.get(host.0 as usize).and_then(|d| d.get((series.key >> 40) as usize));
            if device.is_some_and(|d| series.first + series.values.len() == d.last + 1) {
                let last = series.values.last().copied().unwrap_or(0);
                series.values.resize(set.times.len() - series.first, last);
            }
        }
    }

    /// Takes one sample of everything.
    pub(crate) fn sample(&mut self, view: &View<'_>) {
        let now = view.now;
        self.set.times.push(now);
        self.cursor = 0;
        let at = self.set.times.len() - 1;
        self.flows(view, at);
        self.devices.resize(view.nets[0].machines.len(), Vec::new());
        self.layouts.resize_with(view.nets[0].machines.len(), Vec::new);
        for (h, (net, machine)) in view.machines().enumerate() {
            if machine.cpu.cost != crate::spec::Cost::ZERO {
                let spent = machine.cpu.spent(now).as_ns();
                self.put(
                    Some(HostId(h as u32)),
                    1 << 63,
                    &|| "processor".to_owned(),
                    Metric::Processor,
                    spent,
                );
            }
            for device in machine.host.devices().iter().filter(|d| !d.loopback) {
                let d = device.ifindex as usize;
                if self.devices[h].len() <= d {
                    self.devices[h].resize(d + 1, Watched::default());
                    self.layouts[h].resize_with(d + 1, Layout::default);
                }
                let (seen, before) = (Seen::of(device), self.devices[h][d]);
                if seen == before.seen && seen.is_empty() && !before.restless {
                    continue;
                }
                let nic =
                    machine.nics.get(device.ifindex as usize).and_then(|&n| net.cables.nics.get(n as usize));
                let marked = nic.map_or(0, |nic| nic.marked);
                let layout = &mut self.layouts[h][d];
                layout.begin();
                let restless = shown(device, marked, now, &mut |key, _, metric, value| {
                    layout.put(key, metric, value);
                });
                match layout.end(at, before.last) {
                    Some(more) => self.values += more,
                    None => self.other_series(h, device, marked, !before.used),
                }
                self.devices[h][d] = Watched { seen, used: true, restless, last: at };
            }
        }
        let instants = self.set.times.len();
        if instants >= MAX_INSTANTS || (self.values > MAX_VALUES && instants >= FEWEST) {
            self.halve();
        }
    }

    /// Samples the flows.
    fn flows(&mut self, view: &View<'_>, at: usize) {
        let flows = view.flows();
        self.rows.resize_with(flows, Rows::default);
        self.still.resize(flows, Still::default());
        for (i, (still, rows)) in self.still.iter_mut().zip(&mut self.rows).enumerate() {
            let (source, sink) = view.ends(i);
            let (lost, marks) = view.fates(i);
            let flow = &sink.meter.flows[i];
            let end = source.endpoint(source.meter.flows[i].socks[0]);
            let moves = end.map_or(0, penstock_tcp::Endpoint::moves);
            let packets = [source.meter.flows[i].sent_packets, flow.arrived_packets, lost, marks, moves];
            let connected = end.is_some();
            // Its delay of the interval is once 0, before it is left alone.
            let same = at > 0 && still.is(&packets, connected);
            if same && still.twice {
                continue;
            }
            if still.connected && !connected {
                rows.end(at);
            }
            let (sum, count) = flow.owd_total();
            let (sum_before, count_before) = still.owd;
            *still = Still { packets, connected, twice: same, owd: (sum, count) };
            let mut row = rows.row();
            row.set(0, flow.goodput_bytes as i64);
            row.set(1, flow.received_bytes as i64);
            row.set(2, lost as i64);
            if marks > 0 {
                row.set(3, marks as i64);
            }
            row.set(4, if count > count_before { (sum - sum_before) / (count - count_before) } else { 0 });
            if let Some(end) = end {
                let info = end.gauges();
                row.set(5, i64::from(info.cwnd));
                row.set(6, info.srtt.as_ns());
                row.set_once(7, i64::from(info.ssthresh), info.ssthresh < INFINITE_SSTHRESH);
                row.set(8, info.rttvar.as_ns());
                row.set(9, info.rto.as_ns());
                row.set_once(10, info.pacing_rate as i64, info.srtt > Span::ZERO);
                row.set_once(11, info.delivery_rate as i64, info.delivery_rate > 0);
                row.set_once(12, i64::from(info.sacked), info.sacked > 0);
                row.set_once(13, i64::from(info.lost), info.lost > 0);
                row.set_once(14, info.total_retrans as i64, info.total_retrans > 0);
            }
            self.values += rows.enter(at, &row, &mut self.set.series, i, &flow.name);
        }
    }
    /// What was not there before had counted nothing until now: series that are entered with the first use of their device begin with the run.
    fn begin_with_the_run(&mut self, new: usize) {
        let moves = |s: &&mut Series| !matches!(s.metric, Metric::Avgidle | Metric::Undertime);
        for series in self.set.series[new..].iter_mut().filter(moves) {
            self.values += series.first;
            series.values.splice(0..0, std::iter::repeat_n(0, series.first));
            series.first = 0;
        }
    }

    /// Samples a device that does not show what it showed before, or had none: series by series.
    fn other_series(&mut self, h: usize, device: &penstock_host::NetDevice, marked: u64, first: bool) {
        let now = self.set.times.last().copied().unwrap_or(Time::ZERO);
        let d = device.ifindex as usize;
        self.layouts[h][d].fill(&mut self.set.series);
        self.layouts[h][d].clear();
        let new = self.set.series.len();
        let host = Some(HostId(h as u32));
        self.shown.clear();
        shown(device, marked, now, &mut |key, name, metric, value| {
            let place = self.put(host, key, name, metric, value);
            self.shown.push((key, metric, place as u32));
        });
        if first {
            self.begin_with_the_run(new);
        }
        self.layouts[h][d].becomes(self.shown.clone());
    }

    /// Enters one value; makes the series when there is none.
    fn put(
        &mut self,
        host: Option<HostId>,
        key: u64,
        name: &dyn Fn() -> String,
        metric: Metric,
        value: i64,
    ) -> usize {
        let at = self.set.times.len() - 1;
        let is_it = |s: &Series| s.key == key && s.host == host && s.metric == metric;
        // Mostly the next one; else it is looked up, or new.
        let i = match self.set.series.get(self.cursor) {
            Some(next) if is_it(next) => self.cursor,
            _ => *self.index.entry((host.map(|h| h.0), key, metric)).or_insert_with(|| {
                let object = name();
                self.set.series.push(Series { host, key, object, metric, first: at, values: Vec::new() });
                self.set.series.len() - 1
            }),
        };
        self.cursor = i + 1;
        self.extend(i, value);
        i
    }
    /// Enters the present value of the series at a place.
    fn extend(&mut self, i: usize, value: i64) {
        let at = self.set.times.len() - 1;
        let series = &mut self.set.series[i];
        // An object that was away for a while (a class deleted and made again) stands still meanwhile.
        let (before, wanted) = (series.values.len(), at - series.first);
        stand_still(series, at);
        series.values.push(value);
        self.values += wanted + 1 - before;
    }

    /// Gives up every second instant and doubles the interval.
    fn halve(&mut self) {
        self.interval = self.interval * 2;
        let mut set = std::mem::take(&mut self.set);
        for layout in self.layouts.iter_mut().flatten() {
            layout.fill(&mut set.series);
            layout.clear();
        }
        self.go_on(&mut set);
        self.set = set;
        for series in &mut self.set.series {
            let first = series.first;
            let mut at = first;
            series.values.retain(|_| {
                at += 1;
                (at - 1) % 2 == 0
            });
            series.first = first.div_ceil(2);
        }
        let mut at = 0;
        self.set.times.retain(|_| {
            at += 1;
            (at - 1) % 2 == 0
        });
        let left = self.set.times.len();
        self.devices.iter_mut().flatten().for_each(|d| d.last = left.saturating_sub(1));
        self.rows.iter_mut().for_each(|rows| rows.halve(left));
        let of_flows = self.rows.iter().map(|rows| rows.count(left, &self.set.series));
        self.values = self.set.series.iter().map(|s| s.values.len()).chain(of_flows).sum();
    }
}

/// Hears of a value: the key of its series, what that is called, the metric, the value.
type Put<'a> = &'a mut dyn FnMut(u64, &dyn Fn() -> String, Metric, i64);

/// What a device shows; whether it has gauges that move by themselves.
fn shown(device: &penstock_host::NetDevice, marked: u64, now: Time, put: Put<'_>) -> bool {
    let mut restless = false;
    let key = u64::from(device.ifindex) << 40;
    let name = || device.name.clone();
    put(key, &name, Metric::Bytes, device.counters.tx_bytes as i64);
    put(key, &name, Metric::Packets, device.counters.tx_packets as i64);
    if marked > 0 {
        put(key, &name, Metric::Marks, marked as i64);
    }
    for (at, counted) in device.tree.counters(now).into_iter().enumerate() {
        let Counters { kind, handle: qdisc, parent, stats: s, marks } = counted;
        // What the kernel has put into classes by itself (the queues of mq) has no handle of its own. The class shows it, but for what it
        // lost and marked.
        if at > 0 && handle(qdisc) == 0 {
            let id = key | 3 << 36 | u64::from(handle(parent)) << 1;
            let name = || format!("{} {kind} 0: in {parent}", device.name);
            if let Some(marks) = marks.filter(|marks| *marks > 0) {
                put(id, &name, Metric::Marks, marks as i64);
            }
            put(id, &name, Metric::Drops, i64::from(s.drops));
            continue;
        }
        let id = key | 1 << 36 | u64::from(handle(qdisc)) << 1;
        let name = || format!("{} {kind} {qdisc}", device.name);
        // From the first mark on.
        if let Some(marks) = marks.filter(|marks| *marks > 0) {
            put(id, &name, Metric::Marks, marks as i64);
        }
        put(id, &name, Metric::Bytes, s.bytes as i64);
        put(id, &name, Metric::Drops, i64::from(s.drops));
        put(id, &name, Metric::Backlog, i64::from(s.backlog));
        put(id, &name, Metric::Qlen, i64::from(s.qlen));
    }
    // A flow that a qdisc holds at the moment, or the place of an inner qdisc, is nothing that was set up.
    let set_up = |kind: &str| !matches!(traits(kind).classes, Classes::Flows | Classes::Inner);
    for c in device.tree.dump_classes_of(now, &set_up) {
        let id = key | 2 << 36 | u64::from(handle(c.classid)) << 1;
        let name = || format!("{} class {}", device.name, c.classid);
        let s = &c.stats;
        put(id, &name, Metric::Bytes, s.bytes as i64);
        put(id, &name, Metric::Drops, i64::from(s.drops));
        put(id, &name, Metric::Backlog, i64::from(s.backlog));
        put(id, &name, Metric::Qlen, i64::from(s.qlen));
        // What cbq keeps of a class, and nobody else.
        let Some(xstats) = c.xstats.as_ref().filter(|x| x.has("avgidle")) else { continue };
        restless = true;
        let count = |name: &str| xstats.u64(name).unwrap_or(0) as i64;
        put(id, &name, Metric::Overlimits, i64::from(s.overlimits));
        put(id, &name, Metric::Borrowed, count("borrows"));
        put(id, &name, Metric::Overactions, count("overactions"));
        put(id, &name, Metric::Avgidle, xstats.i64("avgidle").unwrap_or(0));
        put(id, &name, Metric::Undertime, xstats.i64("undertime").unwrap_or(0));
    }
    restless
}

fn handle(handle: Handle) -> u32 {
    handle.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_keeps_values_with_their_instants() {
        let mut sampler = Sampler::new(Span::from_ms(1));
        for i in 0..10i64 {
            sampler.set.times.push(Time::from_ns(i));
            sampler.cursor = 0;
            sampler.put(None, 1, &|| "a".to_owned(), Metric::Bytes, i);
            if i >= 3 {
                sampler.put(None, 2, &|| "b".to_owned(), Metric::Bytes, i);
            }
        }
        sampler.halve();
        let set = sampler.set();
        for series in &set.series {
            for (i, &value) in series.values.iter().enumerate() {
                assert_eq!(set.times[series.first + i].as_ns(), value, "{}", series.object);
            }
            assert_eq!(series.first + series.values.len(), set.times.len());
        }
    }

    /// Objects that begin late, in another order, and beside others: each series has its own values.
    #[test]
    fn series_are_found_in_any_order() {
        let mut sampler = Sampler::new(Span::from_ms(1));
        for t in 0..40i64 {
            sampler.set.times.push(Time::from_ns(t));
            sampler.cursor = 0;
            for n in 0..40i64 {
                // Another order each time, and some that are away now and then.
                let key = (n * 7 + t) % 40;
                if key < t && (key + t) % 5 != 0 {
                    let host = (key % 2 == 0).then_some(HostId(1));
                    let value = key * 1000 + t;
                    sampler.put(host, key as u64, &|| format!("o{key}"), Metric::Bytes, value);
                    sampler.put(host, key as u64, &|| format!("o{key}"), Metric::Drops, -value);
                }
            }
        }
        let set = &sampler.set;
        assert_eq!(set.series.len(), 2 * set.series.iter().filter(|s| s.metric == Metric::Bytes).count());
        let kept: usize = set.series.iter().map(|s| s.values.len()).sum();
        assert_eq!(sampler.values, kept);
        for series in &set.series {
            let key: i64 = series.object[1..].parse().unwrap();
            assert_eq!((series.key, series.host.is_some()), (key as u64, key % 2 == 0));
            for (i, &value) in series.values.iter().enumerate() {
                let t = (series.first + i) as i64;
                // Away: it stands still.
                let seen = (key + 1..=t).rev().find(|t| (key + t) % 5 != 0).unwrap();
                let sign = if series.metric == Metric::Bytes { 1 } else { -1 };
                assert_eq!(value, sign * (key * 1000 + seen), "{} at {t}", series.object);
            }
        }
    }

    #[test]
    fn many_series_have_fewer_instants() {
        let mut sampler = Sampler::new(Span::from_ms(1));
        let world = crate::World::new(1);
        for t in 0..FEWEST {
            assert_eq!(sampler.set.times.len(), t);
            sampler.values = MAX_VALUES + 1;
            sampler.sample(&View::of_one(&world.net));
        }
        assert_eq!((sampler.set.times.len(), sampler.interval), (FEWEST / 2, Span::from_ms(2)));
    }
}
