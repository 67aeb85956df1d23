//! The run itself: programs started at their times, counters read, everything gathered.

use crate::drops::{self, Lost};
use crate::facts::{self, Facts};
use crate::plan::Plan;
use crate::reasons::Reasons;
use crate::rig::{self, Rig};
use crate::sample::{Asker, Counters};
use crate::stats::{self, Object};
use crate::traffic::{RecvReport, SendReport, arguments, draw, trace_file};
use crate::{exec, names, needs};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_getres, clock_gettime};
use penstock_model::Span;
use penstock_model::traffic::Load;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Child;
use std::time::Instant;

/// A command of a setup that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetupFailure {
    /// Machine.
    pub host: String,
    /// File it stands in.
    pub file: String,
    /// Its line there, from 1.
    pub line: u32,
    /// The command.
    pub command: String,
    /// What it said.
    pub message: String,
}

/// Why there is no outcome. Whatever it is, nothing is left behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// What the machine lacks, a sentence each.
    Machine(Vec<String>),
    /// Commands of the setups that were refused.
    Setup(Vec<SetupFailure>),
    /// A signal asked to stop.
    Stopped,
}

/// One program's run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AppRun {
    /// When it started, seconds; `None`: never.
    pub start_s: Option<f64>,
    /// When it ended; `None`: it ran till the end.
    pub end_s: Option<f64>,
    /// Exit status.
    pub exit: Option<i32>,
    /// What it printed.
    pub output: String,
}

/// One flow's run, as its two ends tell it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FlowRun {
    /// What the sender says; `None` when it said nothing.
    pub sent: Option<SendReport>,
    /// What the receiver says.
    pub received: Option<RecvReport>,
    /// What they complained of.
    pub complaint: String,
}

/// A device at the end.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeviceEnd {
    /// Index of the machine.
    pub host: usize,
    /// Device.
    pub dev: String,
    /// Its qdiscs and classes.
    pub objects: Vec<Object>,
    /// What `tc -s -d qdisc`, `class` and `filter show` print.
    pub text: String,
}

/// What a run gave.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Programs in the order of the plan.
    pub apps: Vec<AppRun>,
    /// Flows in the order of the plan.
    pub flows: Vec<FlowRun>,
    /// Devices in the order of the plan; behind a machine's own those that its setup made, where they have a queue.
    pub devices: Vec<DeviceEnd>,
    /// Counters over time: machine, object, metric, seconds, value. Rates are those since the sample before.
    pub series: Vec<(usize, String, &'static str, f64, f64)>,
    /// The rig.
    pub facts: Facts,
    /// What was lost and why, as far as the kernel tells: index of the machine, and the loss.
    pub drops: Vec<(usize, Lost)>,
    /// Why the kernel dropped packets, in its words, on the whole machine; empty where tracefs is not mounted.
    pub reasons: BTreeMap<String, u64>,
    /// Commands that failed where that is allowed.
    pub failures: Vec<SetupFailure>,
    /// Whether each machine forwards at the end.
    pub forwards: Vec<bool>,
}

/// Most flows: each has two processes.
const FLOWS: usize = 256;

/// Signals that end a run, and that of a child that ended.
fn signals() -> Result<SignalFd, String> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD] {
        set.add(signal);
    }
    // Children get an empty mask: the standard library clears it for them.
    set.thread_block().map_err(|e| format!("signals: {e}"))?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        .map_err(|e| format!("signals: {e}"))
}

/// The first tick of the kernel's timer after a moment, ns of the real-time clock: a run in exact time begins on one, as on the
/// simulator, whose machines count their ticks from there.
fn tick_after(moment: i64) -> i64 {
    let read = |t: nix::Result<TimeSpec>| t.map_or(0, |t| t.num_nanoseconds());
    let (last, length) = (
        read(clock_gettime(ClockId::CLOCK_REALTIME_COARSE)),
        read(clock_getres(ClockId::CLOCK_REALTIME_COARSE)),
    );
    let ticks = (moment - last).max(0).checked_div(length).map_or(0, |n| n + 1);
    if ticks > 0 { last + ticks * length } else { moment }
}

/// Whether a signal asks to stop; what children told is taken off the queue.
fn asked(fd: &mut SignalFd) -> bool {
    let mut stop = false;
    while let Ok(Some(info)) = fd.read_signal() {
        stop |= info.ssi_signo != Signal::SIGCHLD as u32;
    }
    stop
}

/// Carries out a plan.
///
/// # Errors
/// What is missing, what was refused, or that a signal asked to stop.
pub fn run(plan: &Plan, progress: &mut dyn FnMut(f64)) -> Result<Outcome, Trouble> {
    let machine = |e: String| Trouble::Machine(vec![e]);
    needs::check(plan).map_err(Trouble::Machine)?;
    let many = plan.flows.iter().filter(|f| f.receiver.is_none()).count();
    if many > FLOWS {
        return Err(machine(format!(
            "{many} flows: on a kernel each is two processes, and at most {FLOWS} flows are possible; the simulator takes any number"
        )));
    }
    if std::process::id() != 1 && !plan.exact {
        return Err(machine(
            "a run on this machine's kernel has namespaces of its own: penstock run --on kernel".to_owned(),
        ));
    }
    let mut fd = signals().map_err(machine)?;
    let done = rig::build(plan, &mut || asked(&mut fd))
        .and_then(|rig| Runner::new(plan, rig)?.run(&mut fd, progress));
    // What was blocked for the run is heard again.
    let mut set = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD].into_iter().for_each(|s| set.add(s));
    let _ = set.thread_unblock();
    done
}

/// A program that runs or is still to start.
struct Started {
    child: Option<Child>,
    file: PathBuf,
    run: AppRun,
    /// When it is to start, ns; `None` while it waits for another.
    due: Option<i64>,
}

struct Runner<'a> {
    plan: &'a Plan,
    reasons: Option<Reasons>,
    rig: Rig,
    begin: Instant,
    epoch_ns: i64,
    apps: Vec<Started>,
    /// Senders to start, and both ends' files.
    senders: Vec<(i64, Option<Child>)>,
    receivers: Vec<Child>,
    /// What was lost until the warm-up's end; `None` before that.
    lost: Option<Vec<(usize, Lost)>>,
    askers: Vec<Asker>,
    series: Vec<(usize, String, &'static str, f64, f64)>,
    last: Vec<(f64, Counters)>,
}

impl<'a> Runner<'a> {
    fn new(plan: &'a Plan, rig: Rig) -> Result<Runner<'a>, Trouble> {
        let askers = rig.hosts.iter().map(|name| Asker::start(name)).collect::<Result<Vec<_>, _>>();
        let askers = askers.map_err(|e| Trouble::Machine(vec![e]))?;
        let apps = plan.apps.iter().enumerate().map(|(n, app)| Started {
            child: None,
            file: names::folder().join(format!("app{n}")),
            run: AppRun::default(),
            due: app.after.is_none().then_some(app.at.as_ns()),
        });
        let apps = apps.collect();
        let senders = plan.flows.iter().map(|f| (f.at.as_ns(), None)).collect();
        let mut runner = Runner {
            plan,
            reasons: None,
            rig,
            begin: Instant::now(),
            epoch_ns: 0,
            apps,
            senders,
            receivers: Vec::new(),
            lost: (plan.warmup == Span::ZERO).then(Vec::new),
            askers,
            series: Vec::new(),
            last: Vec::new(),
        };
        runner.reasons = Reasons::start(&plan.token);
        let _ = nix::sys::prctl::set_timerslack(1);
        let start = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |t| t.num_nanoseconds());
        // Receivers listen before the first packet: they get a moment ahead of time zero. In exact time starting them takes none, and
        // the run begins with the tick behind the setups: what these left in the background has the same clock as the run.
        let ahead = if plan.exact || plan.flows.is_empty() { 0 } else { 100_000_000 };
        runner.epoch_ns = if plan.exact { tick_after(start + ahead) } else { start + ahead };
        for n in (0..plan.flows.len()).filter(|n| plan.flows[*n].receiver.is_none()) {
            let child = runner.flow(n, false).map_err(|e| Trouble::Machine(vec![e]))?;
            runner.receivers.push(child);
        }
        let late = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |t| t.num_nanoseconds());
        std::thread::sleep(std::time::Duration::from_nanos((runner.epoch_ns - late).max(0) as u64));
        runner.begin = Instant::now();
        Ok(runner)
    }

    fn now(&self) -> i64 {
        self.begin.elapsed().as_nanos() as i64
    }

    fn run(mut self, fd: &mut SignalFd, progress: &mut dyn FnMut(f64)) -> Result<Outcome, Trouble> {
        // A timer of its own is exact; the timeout of `ppoll` may be late by a thousandth of itself.
        let timer =
            TimerFd::new(TimerClock::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)
                .map_err(|e| Trouble::Machine(vec![format!("timer: {e}")]))?;
        let end = self.plan.duration.as_ns();
        let step = self.plan.sample.as_ns().max(1_000_000);
        let mut next_sample = 0;
        loop {
            let now = self.now();
            if now >= end {
                break;
            }
            self.reap(now);
            self.start_due(now)?;
            if self.lost.is_none() && now >= self.plan.warmup.as_ns() {
                let devices = self.device_ends();
                self.lost = Some(self.drops(&devices));
            }
            if now >= next_sample {
                self.sample();
                next_sample = (self.now() / step + 1) * step;
                progress(now as f64 / end as f64);
                continue;
            }
            let starts = self
                .apps
                .iter()
                .filter(|a| a.child.is_none() && a.run.start_s.is_none())
                .filter_map(|a| a.due);
            let flows = self.senders.iter().filter(|(_, child)| child.is_none()).map(|(at, _)| *at);
            let warm = self.lost.is_none().then_some(self.plan.warmup.as_ns());
            let next = starts.chain(flows).chain(warm).chain([next_sample, end]).min().unwrap_or(end);
            let wait = Expiration::OneShot(TimeSpec::nanoseconds((next - self.now()).max(1)));
            timer
                .set(wait, TimerSetTimeFlags::empty())
                .map_err(|e| Trouble::Machine(vec![format!("timer: {e}")]))?;
            let waited = [fd.as_fd(), timer.as_fd()];
            let mut polled = waited.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            // An interrupted wait is as good as one that ended.
            let _ = poll(&mut polled, PollTimeout::NONE);
            if asked(fd) {
                self.stop();
                return Err(Trouble::Stopped);
            }
        }
        self.reap(end);
        self.sample();
        Ok(self.finish())
    }

    /// Notes which programs have ended, and lets those go that waited for them.
    fn reap(&mut self, now: i64) {
        for n in 0..self.apps.len() {
            let app = &mut self.apps[n];
            let Some(status) = app.child.as_mut().and_then(|c| c.try_wait().ok().flatten()) else { continue };
            use std::os::unix::process::ExitStatusExt as _;
            app.child = None;
            app.run.end_s = Some(now as f64 / 1e9);
            app.run.exit = Some(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
            for (other, started) in self.plan.apps.iter().zip(&mut self.apps) {
                if other.after == Some(n) {
                    started.due = Some(now + other.at.as_ns());
                }
            }
        }
    }

    fn start_due(&mut self, now: i64) -> Result<(), Trouble> {
        for n in 0..self.apps.len() {
            let app = &mut self.apps[n];
            if app.run.start_s.is_none() && app.due.is_some_and(|due| due <= now) {
                let plan = &self.plan.apps[n];
                let child = start(&self.rig.hosts[plan.host], &plan.run, &app.file, self.plan.exact);
                app.child = Some(child.map_err(|e| Trouble::Machine(vec![e]))?);
                app.run.start_s = Some(now as f64 / 1e9);
            }
        }
        for n in 0..self.senders.len() {
            if self.senders[n].1.is_none() && self.senders[n].0 <= now {
                let child = self.flow(n, true).map_err(|e| Trouble::Machine(vec![e]))?;
                self.senders[n].1 = Some(child);
            }
        }
        Ok(())
    }

    /// One end of a flow.
    fn flow(&self, n: usize, sends: bool) -> Result<Child, String> {
        let flow = &self.plan.flows[n];
        if let Load::Replay(packets) = &flow.load {
            let file = trace_file(n);
            std::fs::write(&file, draw::trace_text(packets))
                .map_err(|e| format!("{}: {e}", file.display()))?;
        }
        let words = arguments(self.plan, n, sends, self.epoch_ns);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let name = &self.rig.hosts[if sends { flow.from } else { flow.to }];
        let stem = names::folder().join(format!("flow{n}-{}", if sends { "send" } else { "recv" }));
        let file = |end: &str| {
            File::create(stem.with_extension(end)).map_err(|e| format!("{}: {e}", stem.display()))
        };
        let mut command = exec::command(Some(name), &words);
        command.stdout(file("json")?).stderr(file("err")?);
        if self.plan.exact {
            command.env("PENSTOCK_EXACT", "1");
        }
        command.spawn().map_err(|e| format!("cannot start {}: {e}", words[0]))
    }

    /// Reads all counters.
    fn sample(&mut self) {
        let mut now = Vec::new();
        for (host, asker) in self.plan.hosts.iter().zip(&mut self.askers) {
            let at = self.begin.elapsed().as_nanos() as f64 / 1e9;
            now.push((at, asker.counters(host)));
        }
        let none = (0.0, Counters::default());
        for (host, (at, counters)) in now.iter().enumerate() {
            let first = self.last.is_empty();
            let (before, last) = self.last.get(host).unwrap_or(&none);
            let long = at - before;
            let mut put =
                |object: &str, metric, value| self.series.push((host, object.to_owned(), metric, *at, value));
            let rate =
                |new: u64, old: u64| if long > 0.0 { new.saturating_sub(old) as f64 / long } else { 0.0 };
            for (dev, bytes, packets) in &counters.devices {
                if let Some((_, b, p)) = last.devices.iter().find(|d| d.0 == *dev).filter(|_| !first) {
                    put(dev, "throughput_bit_s", rate(*bytes, *b) * 8.0);
                    put(dev, "rate_packets_s", rate(*packets, *p));
                }
            }
            for (is, was) in [(&counters.qdiscs, &last.qdiscs), (&counters.classes, &last.classes)] {
                // Kinds that list each flow they hold as a class: too short-lived to be curves.
                let flows = |o: &&Object| {
                    o.is_class && ["sfq", "fq_codel", "cake", "fq_pie", "hhf"].contains(&o.kind.as_str())
                };
                for o in is.iter().filter(|o| !flows(o)) {
                    let name = match o.is_class {
                        true => format!("{} class {}", o.dev, o.id),
                        false => format!("{} {} {}", o.dev, o.kind, o.id),
                    };
                    // An object that was not there before began with nothing.
                    let old = was
                        .iter()
                        .find(|w| w.dev == o.dev && w.id == o.id && w.kind == o.kind && w.parent == o.parent);
                    if !first {
                        put(&name, "throughput_bit_s", rate(o.bytes, old.map_or(0, |w| w.bytes)) * 8.0);
                        put(
                            &name,
                            "drops_packets",
                            o.drops.saturating_sub(old.map_or(0, |w| w.drops)) as f64,
                        );
                    }
                    put(&name, "backlog_bytes", o.backlog as f64);
                    put(&name, "qlen_packets", o.qlen as f64);
                }
            }
        }
        self.last = now;
    }

    /// Ends what still runs.
    fn stop(&mut self) {
        let senders = self.senders.iter_mut().filter_map(|(_, child)| child.as_mut());
        let apps = self.apps.iter_mut().filter_map(|a| a.child.as_mut());
        for child in apps.chain(senders).chain(&mut self.receivers) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn finish(mut self) -> Outcome {
        let devices = self.device_ends();
        let reasons = self.reasons.take().map(|r| r.counted()).unwrap_or_default();
        let mut drops = self.drops(&devices);
        for (host, early) in self.lost.iter().flatten() {
            let same = |l: &Lost| (&l.dev, &l.place, l.reason) == (&early.dev, &early.place, early.reason);
            if let Some((_, lost)) = drops.iter_mut().find(|(h, l)| h == host && same(l)) {
                lost.packets = lost.packets.saturating_sub(early.packets);
            }
        }
        drops.retain(|(_, lost)| lost.packets > 0);
        let forwards = self.rig.hosts.iter().map(|name| {
            let text = exec::run(Some(name), &["cat", "/proc/sys/net/ipv4/ip_forward"]);
            text.is_ok_and(|t| t.trim() == "1")
        });
        let forwards = forwards.collect();
        // The ends of flows stop by themselves at the end of the run; they get a moment to say what they saw.
        let patience = Instant::now();
        let mut running = true;
        while running && patience.elapsed().as_millis() < 1500 && !self.plan.flows.is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let senders = self.senders.iter_mut().filter_map(|(_, child)| child.as_mut());
            running = senders.chain(&mut self.receivers).any(|c| matches!(c.try_wait(), Ok(None)));
        }
        self.stop();
        let apps = self.apps.iter().map(|a| {
            let output = std::fs::read(&a.file).unwrap_or_default();
            AppRun { output: String::from_utf8_lossy(&output).into_owned(), ..a.run.clone() }
        });
        let folder = names::folder();
        let read = |n: usize, what: &str| {
            std::fs::read_to_string(folder.join(format!("flow{n}-{what}"))).unwrap_or_default()
        };
        let sent = |n: usize| serde_json::from_str::<SendReport>(&read(n, "send.json")).ok();
        let mut received: BTreeMap<usize, RecvReport> = BTreeMap::new();
        for n in (0..self.plan.flows.len()).filter(|n| self.plan.flows[*n].receiver.is_none()) {
            received.extend(serde_json::from_str(&read(n, "recv.json")).ok().map(|report| (n, report)));
        }
        let flows = (0..self.plan.flows.len()).map(|n| {
            let sent = sent(n);
            FlowRun {
                received: take(self.plan, n, sent.as_ref(), &mut received),
                sent,
                complaint: read(n, "send.err") + &read(n, "recv.err"),
            }
        });
        Outcome {
            apps: apps.collect(),
            flows: flows.collect(),
            devices,
            drops,
            reasons,
            series: std::mem::take(&mut self.series),
            facts: facts::read(self.plan.exact, self.plan.offloads, self.rig.kinds.netem),
            failures: std::mem::take(&mut self.rig.failures),
            forwards,
        }
    }
}

/// What of a receiver's report is of one flow: all, or of several senders the one with its port.
fn take(
    plan: &Plan,
    n: usize,
    sent: Option<&SendReport>,
    received: &mut BTreeMap<usize, RecvReport>,
) -> Option<RecvReport> {
    let at = plan.flows[n].receiver.unwrap_or(n);
    if !plan.flows.iter().any(|f| f.receiver == Some(at)) {
        return received.remove(&at);
    }
    let port = sent?.port;
    let senders = &mut received.get_mut(&at)?.senders;
    let place = senders.iter().position(|(from, _)| *from == port)?;
    Some(senders.remove(place).1)
}

impl Runner<'_> {
    /// All devices as they are now.
    fn device_ends(&mut self) -> Vec<DeviceEnd> {
        let mut devices = Vec::new();
        for (n, (host, asker)) in self.plan.hosts.iter().zip(&mut self.askers).enumerate() {
            devices.extend(asker.devices(host).iter().map(|dev| device_end(n, dev, &self.rig.hosts[n])));
        }
        devices
    }
    /// What was lost: on the machines, and on the links by the sending machine.
    fn drops(&self, devices: &[DeviceEnd]) -> Vec<(usize, Lost)> {
        let mut all = Vec::new();
        for (host, name) in self.rig.hosts.iter().enumerate() {
            let own = devices.iter().filter(|d| d.host == host);
            let own: Vec<_> = own.map(|d| (d.dev.clone(), d.objects.clone())).collect();
            all.extend(drops::read(name, &own).into_iter().map(|lost| (host, lost)));
        }
        for (number, link) in self.plan.links.iter().enumerate() {
            let said = exec::run(Some(&names::part(&format!("w{number}"))), &["tc", "-s", "qdisc", "show"]);
            let objects = stats::parse(&said.unwrap_or_default());
            // What leads to an end was sent by the other; of a shared link nobody tells by whom.
            for (end, from) in link.ends.iter().rev().enumerate().filter(|_| link.ends.len() == 2) {
                let leads = [format!("w{end}"), format!("x{end}")];
                let there: Vec<_> = objects.iter().filter(|o| leads.contains(&o.dev)).cloned().collect();
                all.extend(drops::of_link(&from.dev, &there).into_iter().map(|lost| (from.host, lost)));
            }
        }
        all
    }
}

/// Starts a program: one of those whose output is read replaces the shell, so that it is it that ends.
fn start(namespace: &str, run: &str, file: &std::path::Path, exact: bool) -> Result<Child, String> {
    let plain =
        ["iperf", "iperf3", "ping"].contains(&needs::program(run)) && !run.contains([';', '|', '&', '\n']);
    let guard = if exact { "" } else { crate::contain::GUARD };
    let words = run.trim().trim_start_matches("sudo ").trim_start();
    let text = match plain {
        true => format!("{guard}exec stdbuf -oL -eL {words}"),
        false => format!("{guard}sudo() {{ \"$@\"; }}\n{run}"),
    };
    let out = File::create(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let err = out.try_clone().map_err(|e| format!("{}: {e}", file.display()))?;
    let mut command = exec::command_in(Some(namespace), &names::working(), &["bash", "-c", &text]);
    command.stdout(out).stderr(err).spawn().map_err(|e| format!("cannot run bash: {e}"))
}

/// A device at the end of the run, as tc shows it.
fn device_end(host: usize, dev: &str, namespace: &str) -> DeviceEnd {
    let mut objects = Vec::new();
    let mut text = String::new();
    for what in ["qdisc", "class", "filter"] {
        let said =
            exec::run(Some(namespace), &["tc", "-s", "-d", what, "show", "dev", dev]).unwrap_or_else(|e| e);
        if what != "filter" {
            objects.extend(stats::parse(&said));
        }
        text.push_str(&format!("# tc -s -d {what} show dev {dev}\n{said}"));
        if !text.ends_with("\n\n") {
            text.push('\n');
        }
    }
    DeviceEnd { host, dev: dev.to_owned(), objects, text }
}
