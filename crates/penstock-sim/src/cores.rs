//! A run that several cores make together.
//!
//! Each core lets the time of its own world pass up to a common end, which is before anything that another does meanwhile can arrive: the first
//! event of all and the least delay between two cores. Then they meet, take what the others have sent, and agree on the next
//! end. What a world does hangs on what it gets and on its own order of events alone, and that order is the one the whole would have
//! ([`event`](crate::event)); so the bytes are the same for any number of cores.

use crate::event::Event;
use crate::flow::Flow;
use crate::part::{plan, undivided};
use crate::places::{Dealt, Places};
use crate::sample::View;
use crate::world::World;
use penstock_model::{Span, Time};
use penstock_packet::Skb;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Barrier, Mutex, MutexGuard};

/// A frame on its way to another core: its wire, when it arrives, what it is.
type Letter = (u32, Time, Skb);

/// What a core writes before cores meet and the others read afterwards. There are two of each, used in turns: who is ahead by one
/// meeting writes the one while others read the other.
struct Post {
    /// When the first event of each core is due; [`STOP`] where the run cannot go on.
    next: Vec<AtomicI64>,
    /// From each core, to each core.
    letters: Vec<Vec<Mutex<Vec<Letter>>>>,
    /// How many flows there are: programs make more.
    flows: AtomicUsize,
}

const STOP: i64 = i64::MIN;

/// All that the cores of a run share.
struct Common<'a> {
    places: &'a Places,
    worlds: Vec<Mutex<World>>,
    post: [Post; 2],
    /// When the next sample is taken.
    /// [`STOP`] where that could not be done.
    sample: AtomicI64,
    meeting: Barrier,
    until: Time,
    panic: Mutex<Option<Box<dyn std::any::Any + Send>>>,
}

/// What a core has in hand.
struct Core {
    number: usize,
    /// Wires to other cores, and to which.
    out: Vec<(u32, usize)>,
}

impl World {
    /// Lets up to so many cores make the run together, where that promises to make it so much faster: `gain` is the time of one core over
    /// theirs, in thousandths. The results are the same, to the byte.
    pub fn set_cores(&mut self, cores: usize, gain: u64) {
        self.cores = (cores, gain);
        self.one_core = None;
    }
    /// How many cores will make the run from now on, or why it is only one.
    ///
    /// # Errors
    /// What does not let the run be divided, in words.
    pub fn cores(&mut self) -> Result<usize, String> {
        let (cores, gain) = self.cores;
        if cores < 2 {
            return Err("no more were asked for".to_owned());
        }
        // What does not let a run be divided at its beginning may be over later, but what came of it (fragments under way) is still there.
        if let Some(why) = &self.one_core {
            return Err(why.clone());
        }
        let found = self.divide(cores, gain);
        self.one_core = found.as_ref().err().cloned();
        found
    }
    fn divide(&mut self, cores: usize, gain: u64) -> Result<usize, String> {
        undivided(self)?;
        if self.places.as_ref().is_some_and(|places| places.host.len() == self.net.machines.len()) {
            return Ok(self.places.as_ref().map_or(1, |places| places.cores));
        }
        let places = plan(self, cores)?;
        if places.gain < gain {
            let why = match places.even < gain {
                true => {
                    format!("most of the work is around {}", self.net.machines[places.busiest as usize].name)
                }
                false => format!("links that divide it have a delay of only {} ns", places.window.as_ns()),
            };
            return Err(format!("it would hardly be faster: {why}"));
        }
        let cores = places.cores;
        self.places = Some(places);
        Ok(cores)
    }
    /// Lets time pass on several cores. `tell` hears of the time now and then.
    pub(crate) fn run_on_cores(&mut self, until: Time, places: &Places, tell: &mut dyn FnMut(Time)) {
        let (dealt, worlds) = self.deal(places);
        let due = match &self.sampler {
            Some(_) => worlds[0].sample_due(),
            None => i64::MAX,
        };
        let cores = worlds.len();
        let flows = self.net.meter.flows.len();
        let post = || Post {
            next: (0..cores).map(|_| AtomicI64::new(0)).collect(),
            letters: (0..cores).map(|_| (0..cores).map(|_| Mutex::default()).collect()).collect(),
            flows: AtomicUsize::new(flows),
        };
        let common = Common {
            places,
            worlds: worlds.into_iter().map(Mutex::new).collect(),
            post: [post(), post()],
            sample: AtomicI64::new(due),
            meeting: Barrier::new(cores),
            until,
            panic: Mutex::default(),
        };
        for (core, next) in common.post[0].next.iter().enumerate() {
            next.store(common.world(core).first_event(), Relaxed);
        }
        std::thread::scope(|scope| {
            for number in 1..cores {
                let (common, dealt) = (&common, &dealt);
                let work = move || Core::new(number, dealt).work(common, &mut |_| {}, &mut |_| Span::ZERO);
                std::thread::Builder::new().spawn_scoped(scope, work).expect("the system gives a thread");
            }
            let mut sample = |now: Time| self.sample_cores(&common, &dealt, now);
            Core::new(0, &dealt).work(&common, tell, &mut sample);
        });
        if let Some(panic) = common.panic.into_inner().ok().flatten() {
            resume_unwind(panic);
        }
        let worlds =
            common.worlds.into_iter().map(|w| w.into_inner().expect("no core has panicked")).collect();
        self.gather(worlds, &dealt, places);
        if self.net.guard.stuck().is_none() {
            self.net.queue.advance(until.max(self.net.now()));
        }
    }
    /// Takes a sample of all cores; answers how long after it the next one is taken.
    fn sample_cores(&mut self, common: &Common<'_>, dealt: &Dealt, now: Time) -> Span {
        self.events += 1;
        let Some(sampler) = &mut self.sampler else { return Span::from_ns(i64::MAX) };
        let worlds: Vec<MutexGuard<'_, World>> = (0..common.worlds.len()).map(|n| common.world(n)).collect();
        let nets = worlds.iter().map(|world| &world.net).collect();
        sampler.sample(&View::of_cores(now, nets, &self.net, dealt, common.places));
        sampler.interval()
    }
    fn sample_due(&self) -> i64 {
        let mut samples = self.net.queue.events().filter(|e| e.2 == Event::Sample);
        samples.next().map_or(i64::MAX, |(time, ..)| time.as_ns())
    }
    fn first_event(&mut self) -> i64 {
        self.net.queue.next_time().map_or(i64::MAX, Time::as_ns)
    }
}

impl Common<'_> {
    fn world(&self, core: usize) -> MutexGuard<'_, World> {
        self.worlds[core].lock().expect("a core that panics says so before")
    }
    /// Whether a core cannot go on.
    fn stops(&self, turn: usize) -> bool {
        self.post[turn].next.iter().any(|next| next.load(Relaxed) == STOP)
    }
}

impl Core {
    fn new(number: usize, dealt: &Dealt) -> Core {
        let out =
            dealt.cut().filter(|&(_, from, _)| from == number).map(|(wire, _, to)| (wire, to)).collect();
        Core { number, out }
    }
    /// Works until the end. The first core alone tells and samples.
    fn work(
        &mut self,
        common: &Common<'_>,
        tell: &mut dyn FnMut(Time),
        sample: &mut dyn FnMut(Time) -> Span,
    ) {
        let until = common.until.as_ns();
        let mut turn = 0;
        loop {
            let post = &common.post[turn];
            let next = post.next.iter().map(|next| next.load(Relaxed)).min().unwrap_or(STOP);
            let due = common.sample.load(Relaxed);
            if next == STOP || next.min(due) > until {
                break;
            }
            let end = next.saturating_add(common.places.window.as_ns() - 1).min(due).min(until);
            self.guarded(common, 1 - turn, |core| {
                core.take(common, turn);
                core.window(common, Time::from_ns(end), 1 - turn);
            });
            turn = 1 - turn;
            common.meeting.wait();
            if end == due && !common.stops(turn) {
                if self.number == 0 {
                    // Nobody looks at the next post before the meeting behind this.
                    common.sample.store(STOP, Relaxed);
                    self.guarded(common, 1 - turn, |_| {
                        let interval = sample(Time::from_ns(due));
                        common.sample.store(due.saturating_add(interval.as_ns()), Relaxed);
                    });
                }
                common.meeting.wait();
                let again = common.sample.load(Relaxed);
                if again == STOP {
                    break;
                }
                common.world(self.number).net.queue.schedule(Time::from_ns(again), Event::Sample);
            }
            tell(Time::from_ns(end));
        }
        // What has been sent in the last window is under way.
        if !common.stops(turn) {
            self.take(common, turn);
        }
    }
    /// Does something; where it panics the others stop, and the run ends with that panic.
    fn guarded(&mut self, common: &Common<'_>, turn: usize, work: impl FnOnce(&mut Core)) {
        let number = self.number;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(self))) {
            if let Ok(mut first) = common.panic.lock() {
                first.get_or_insert(panic);
            }
            common.post[turn].next[number].store(STOP, Relaxed);
        }
    }
    /// Takes what has come in the post of this turn.
    fn take(&mut self, common: &Common<'_>, turn: usize) {
        let post = &common.post[turn];
        let mut world = common.world(self.number);
        let net = &mut world.net;
        let flows = post.flows.load(Relaxed);
        if net.meter.flows.len() < flows {
            net.meter.flows.resize_with(flows, Flow::unknown);
        }
        for from in &post.letters {
            let mut letters = from[self.number].lock().expect("nobody panics with the post");
            for (wire, arrival, skb) in letters.drain(..) {
                let packet = net.pool.alloc(skb);
                net.cables.wires[wire as usize].comes(wire, packet, arrival, &mut net.queue);
            }
        }
    }
    /// Lets time pass, and puts what has been sent into the post of the next turn.
    fn window(&mut self, common: &Common<'_>, end: Time, turn: usize) {
        let post = &common.post[turn];
        let mut world = common.world(self.number);
        world.pass(end, true);
        let mut first = world.first_event();
        let net = &mut world.net;
        for &(wire, to) in &self.out {
            let under_way = &mut net.cables.wires[wire as usize].in_flight;
            if under_way.is_empty() {
                continue;
            }
            let mut letters = post.letters[self.number][to].lock().expect("nobody panics with the post");
            for (arrival, _, packet) in under_way.drain(..) {
                first = first.min(arrival.as_ns());
                letters.push((wire, arrival, net.pool.hand_over(packet)));
            }
        }
        if self.number == common.places.programs {
            post.flows.store(net.meter.flows.len(), Relaxed);
        }
        let stuck = net.guard.stuck().is_some();
        post.next[self.number].store(if stuck { STOP } else { first }, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::bench::{dumbbell, greedy};
    use crate::*;
    use penstock_host::Prefix;
    use penstock_model::{Kernel, Rate, Span, Time};

    fn ms(ms: i64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }
    /// A dumbbell with all kinds of flows, losses on its core, and programs on the last pair of hosts.
    fn mixed(seed: u64, programs: bool) -> World {
        let mut world = dumbbell(6, seed);
        let host = |world: &World, name: &str| world.find_host(name).unwrap();
        let (left, right) = (host(&world, "left"), host(&world, "right"));
        world.exec(left, "tc qdisc replace dev core root netem loss 0.5% limit 200");
        world.exec(right, "tc qdisc replace dev core root fq_codel");
        let udp = |world: &World, from: &str, to: &str, load: Load| FlowSpec {
            transport: Transport::Udp,
            load,
            start: ms(7),
            start_to: ms(300),
            count: 3,
            ..greedy(host(world, from), host(world, to))
        };
        let steady = Load::steady(Rate::from_bit_per_s(800_000), 1000);
        let echo = Load::Echo { size: Sizes::Constant(100), gap: Dist::Constant(Span::from_ms(20)) };
        let on = Dist::Exponential { mean: Span::from_ms(50) };
        let gap = Dist::Constant(Span::from_ms(2));
        let on_off = Load::OnOff { size: Sizes::Constant(400), gap, on: on.clone(), off: on };
        for (from, to, load) in
            [("a0", "b1", steady.clone()), ("b2", "a0", echo), ("a3", "b3", on_off), ("b1", "left", steady)]
        {
            let spec = udp(&world, from, to, load);
            world.add_flow(spec).unwrap();
        }
        let think = Dist::Constant(Span::from_ms(30));
        let pages = Load::Pages { size: Sizes::Uniform { from: 100, to: 60_000 }, think };
        for load in [pages, Load::Bytes(200_000)] {
            let both = (host(&world, "b0"), host(&world, "a1"));
            let spec = FlowSpec { load, count: 4, start_to: ms(400), port: 80, ..greedy(both.0, both.1) };
            world.add_flow(FlowSpec { port: 0, ..spec.clone() }).unwrap();
            world.add_flow(spec).unwrap();
        }
        if programs {
            let (a, b) = (host(&world, "a5"), host(&world, "b5"));
            world.add_app(b, "iperf -s", Time::ZERO);
            let first = world.add_app(a, "iperf -c 10.2.5.2 -t 1 -P 2", ms(100));
            world.add_app_after(a, "ping -c 20 -i 0.05 b5", first, Span::from_ms(10));
            world.add_app(a, "ping -c 20 -i 0.05 10.1.4.2", ms(400));
        }
        world
    }
    /// What a world gives on so many cores, with a warm-up.
    fn run(mut world: World, cores: usize, wants: bool) -> Results {
        world.set_cores(cores, 0);
        assert_eq!(world.cores().is_ok(), wants && cores > 1, "{:?}", world.cores());
        world.sample_every(Span::from_ms(30));
        world.run_quietly(ms(450));
        world.end_warmup();
        world.run_quietly(ms(1000));
        assert_eq!(world.miscounts(), Vec::<String>::new());
        let results = world.run(ms(2000));
        assert_eq!(world.miscounts(), Vec::<String>::new());
        results
    }
    fn same(one: &Results, other: &Results) {
        for (a, b) in one.flows.iter().zip(&other.flows) {
            assert_eq!(a, b);
        }
        for (a, b) in one.series.series.iter().zip(&other.series.series) {
            assert_eq!(a, b);
        }
        assert_eq!(one.apps, other.apps);
        assert_eq!(one, other);
    }

    #[test]
    fn any_number_of_cores_gives_the_same() {
        for (seed, programs) in [(1, false), (2, true)] {
            let one = run(mixed(seed, programs), 1, true);
            assert!(
                one.flows.iter().any(|f| f.lost_packets > 0) && one.packet_hops > 50_000,
                "{}",
                one.packet_hops
            );
            for cores in [2, 3, 8] {
                same(&one, &run(mixed(seed, programs), cores, true));
            }
        }
    }

    /// Frames of several machines that come to a router at the same nanosecond, and leave it when the timer of its own goes off.
    #[test]
    fn what_comes_at_once_comes_in_the_same_order() {
        let star = || {
            let mut world = World::new(3);
            let hub = world.add_host("hub", Kernel::V6_12);
            let sink = world.add_host("sink", Kernel::V6_12);
            world.host_mut(hub).set_forwarding(true);
            let rate = Some(Rate::from_bit_per_s(10_000_000));
            for i in 0..9 {
                let host = if i == 0 { sink } else { world.add_host(&format!("h{i}"), Kernel::V6_12) };
                let port = format!("p{i}");
                let link =
                    LinkSpec::new(End::new(host, "eth0"), End::new(hub, &port), rate, Span::from_ms(1));
                world.add_link(link).unwrap();
                for (at, dev, n) in [(hub, port.as_str(), 1), (host, "eth0", 2)] {
                    let ifindex = world.host(at).ifindex(dev).unwrap();
                    let prefix = Prefix::parse(&format!("10.0.{i}.{n}/24")).unwrap();
                    world.host_mut(at).add_address(ifindex, prefix).unwrap();
                }
                world.host_mut(host).add_default_route(format!("10.0.{i}.1").parse().unwrap()).unwrap();
                if i > 0 {
                    let load = Load::steady(Rate::from_bit_per_s(2_000_000), 1000);
                    world
                        .add_flow(FlowSpec { transport: Transport::Udp, load, ..greedy(host, sink) })
                        .unwrap();
                }
            }
            assert_eq!(world.exec(hub, "tc qdisc add dev p0 root pfifo limit 7").status, 0);
            world
        };
        let one = run(star(), 1, true);
        assert!(one.flows.iter().any(|f| f.lost_packets > 100));
        for cores in [2, 3, 8] {
            same(&one, &run(star(), cores, true));
        }
    }

    /// Probes and what answers them cross from part to part.
    #[test]
    fn probes_on_several_cores_hear_what_they_hear_on_one() {
        let world = || {
            let mut world = mixed(3, true);
            for (line, at) in
                [("traceroute -n b0", 5), ("mtr -rn -c 1 -G 0.5 b0", 20), ("tracepath -n b0", 900)]
            {
                world.add_app(HostId(2), line, ms(at));
            }
            world
        };
        let one = run(world(), 1, true);
        assert!(
            one.apps.iter().any(|app| app.output.contains("30 hops max") && app.exit == Some(0)),
            "{:?}",
            one.apps
        );
        same(&one, &run(world(), 3, true));
    }

    #[test]
    fn what_cannot_be_divided_says_why() {
        let why = |mut world: World| {
            world.set_cores(2, 0);
            world.cores().unwrap_err()
        };
        let mut timed = mixed(1, false);
        timed.exec_at(HostId(0), "tc qdisc del dev core root", ms(5));
        assert_eq!(why(timed), "commands are carried out during the run");
        let mut fragments = mixed(1, true);
        fragments.add_app(HostId(2), "ping -s 2000 b0", ms(5));
        assert_eq!(
            why(fragments),
            "ping -s 2000 b0: its datagrams go in fragments, which any machine may lose"
        );
        let mut named = mixed(1, true);
        named.add_app(HostId(2), "traceroute b0", ms(5));
        assert_eq!(why(named), "traceroute b0: it looks at all machines");
        let mut tapped = mixed(1, false);
        tapped.tap(HostId(0), "core");
        assert_eq!(why(tapped), "a device is tapped");
        let mut one = World::new(1);
        let (a, b) = (one.add_host("a", Kernel::V6_12), one.add_host("b", Kernel::V6_12));
        one.add_link(LinkSpec::new(End::new(a, "eth0"), End::new(b, "eth0"), None, Span::ZERO)).unwrap();
        assert_eq!(why(one), "no link with a delay divides the network");
        let mut little = mixed(1, false);
        little.set_cores(2, 1990);
        assert!(little.cores().unwrap_err().starts_with("it would hardly be faster"));
    }
}
