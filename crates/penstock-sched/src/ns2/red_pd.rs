//! `red_pd`: RED with preferential dropping. Flows that RED hits again and again send more than their share; a filter before
//! the queue drops some of their packets by chance, the more the longer that goes on.
//!
//! Follows: ns-2.35 `queue/red-pd.cc` `RedPDQueue::enque` (the filter), `tcl/ex/red-pd/monitoring.tcl`, `helper.tcl` (who is
//! filtered, and how much); Mahajan, Floyd, Wetherall, "Controlling High-Bandwidth Flows at the Congested Router", ICNP 2001.
//! Differs: lists are closed when the first packet comes after their time, and flows are let off at that moment (there 1 ms
//! later); the first list begins with the first packet, not after 10.1 s. Flows are told apart by addresses, protocol and ports.

use super::flows::{Flows, Key};
use super::red::{self, Red, seconds};
use super::{Kind, Word, flag, real, refuse, word};
use crate::aqm::floyd::unit;
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Init, Qdisc, Xmit};
use crate::sch::KindSpec;
use crate::traits::{Holds, NOTHING, Traits};
use penstock_model::{Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "red_pd",
    about: "RED that finds flows which send too much by its own drops, and filters them",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits { queue: Holds::Managed, ..NOTHING },
};

/// Its own words.
const OWN: [Word; 4] = [
    word("target_rtt", Kind::Time),
    word("unresponsive_test", Kind::Flag),
    word("unresponsive_penalty", Kind::Real),
    word("noidle", Kind::Flag),
];

/// What sets it: RED's words and its own.
pub(super) const WORDS: &[Word] = &{
    let mut all = [OWN[0]; red::WORDS.len() + OWN.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < OWN.len() { OWN[at] } else { red::WORDS[at - OWN.len()] };
        at += 1;
    }
    all
};

/// Lists of drops that are kept (`MaxHighDRFlowHist_`), and in how many of them a flow that is filtered stands (`XinRegular_`).
const LISTS: usize = 5;
const REGULAR: usize = 3;
/// Flows in one list (`MaxDropList_`).
const LIST_LEN: usize = 50;
/// What is remembered of a filtered flow's rates (`Hist_Max_`).
const RATES: usize = 5;
/// Largest step down of a filter's probability (`maxPReduction_`).
const STEP_DOWN: f64 = 0.05;
/// Least time between two changes of one filter, s (`minTimetoConsider_`).
const LEAST_BETWEEN: f64 = 0.4;
/// Where RED drops less, nobody is filtered more.
const LEAST_DROP_RATE: f64 = 0.001;

fn build(_: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let red = Red::new(red::params(options)?);
    Ok(Box::new(RedPd {
        parms: Parms::read(options)?,
        red,
        flows: Flows::with_room(64),
        begun: None,
        intervals: [0.0; LISTS],
        newest: 0,
        drop_rate: None,
        arrived: 0,
        dropped: 0,
        filtered: 0,
        list: Vec::with_capacity(64),
    }))
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Parms {
    /// Round-trip time, s: who sends more than a TCP with it would at this drop rate is found. Default 0.04.
    target_rtt: f64,
    /// Flows that do not slow down are looked for. Default true.
    unresponsive_test: bool,
    /// By what their filter's probability is multiplied. Default 1.
    unresponsive_penalty: f64,
    /// Nothing of theirs is filtered when the queue is empty. Default false.
    noidle: bool,
}

impl Parms {
    fn read(options: Option<&Options>) -> Result<Parms, KernelError> {
        let none = Options::new();
        let o = options.unwrap_or(&none);
        let parms = Parms {
            target_rtt: real(o, "target_rtt", 0.04)?,
            unresponsive_test: flag(o, "unresponsive_test", true),
            unresponsive_penalty: real(o, "unresponsive_penalty", 1.0)?,
            noidle: flag(o, "noidle", false),
        };
        if parms.target_rtt < 0.001 || parms.target_rtt > 100.0 || parms.unresponsive_penalty < 0.0 {
            return Err(refuse("red_pd: target_rtt is from 1 ms to 100 s, unresponsive_penalty not below 0"));
        }
        Ok(parms)
    }
}

/// What is kept of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Bytes that came since the list was begun, that RED dropped of these, and that the filter did.
    arrived: u64,
    dropped: u64,
    filtered: u64,
    /// Bytes that RED dropped in the last lists, the newest first; 0: it is not in that list.
    lists: [u64; LISTS],
    /// The filter's probability; `None`: it is not filtered.
    filter: Option<f64>,
    unresponsive: bool,
    /// Packets since the filter dropped one.
    count: u32,
    /// When the filter was changed last, s.
    changed: f64,
    /// Bytes a second and the part of them dropped, at the last changes; the newest last.
    rates: [(f64, f64); RATES],
    rates_len: usize,
}

impl Account {
    fn lists_in(&self) -> usize {
        self.lists.iter().filter(|&&bytes| bytes > 0).count()
    }
    fn listed_bytes(&self) -> u64 {
        self.lists.iter().sum()
    }
    /// `check-unresponsive`: whether it does not send less where more of it is dropped, as a TCP would by the root of that.
    fn does_not_respond(&self) -> bool {
        let (mut good, mut bad) = (0u32, 0u32);
        let rates = &self.rates[..self.rates_len];
        for &(slow, low) in rates {
            for &(fast, high) in rates {
                if low >= high || low / high <= 0.1 {
                    continue;
                }
                if fast / slow > (low / high).sqrt() { bad += 1 } else { good += 1 }
            }
        }
        good == 0 && bad >= 3 || good == 1 && bad >= 4 || good >= 2 && bad >= 4 * good
    }
    fn note_rate(&mut self, rate: (f64, f64)) {
        if self.rates_len == RATES {
            self.rates.rotate_left(1);
            self.rates_len -= 1;
        }
        self.rates[self.rates_len] = rate;
        self.rates_len += 1;
    }
    /// More is filtered. `share`: the drop rate it has earned; `usable`: that of the queue.
    fn tighten(&mut self, share: f64, usable: f64, test: bool) {
        let Some(old) = self.filter else {
            self.filter = Some(share.min(2.0 * usable).min(0.5));
            return;
        };
        self.unresponsive |= test && self.does_not_respond();
        let times = if self.unresponsive { 3.0 } else { 2.0 };
        let new = if share > old { times * old } else { old + (times - 1.0) * share };
        self.filter = Some(if new > 1.0 { 1.0 - (1.0 - old) / times } else { new });
    }
    /// Less is filtered, or nothing any more.
    fn loosen(&mut self) {
        let Some(old) = self.filter else { return };
        let (least, by) = if self.unresponsive { (0.0025, 1.5) } else { (0.005, 2.0) };
        if old <= least {
            (self.filter, self.unresponsive, self.rates_len) = (None, false, 0);
        } else {
            self.filter = Some(if old > by * STEP_DOWN { old - STEP_DOWN } else { old / by });
        }
    }
}

/// The queue.
struct RedPd {
    // Parameters
    parms: Parms,
    // Variables
    red: Red,
    flows: Flows<Account>,
    /// When the present list was begun and when it ends, s.
    begun: Option<(f64, f64)>,
    /// Lengths of the last lists, s, in a ring.
    intervals: [f64; LISTS],
    newest: usize,
    /// Average part of the bytes that RED drops.
    drop_rate: Option<f64>,
    /// Bytes in this list's time: all that came, RED's drops, the filter's.
    arrived: u64,
    dropped: u64,
    /// Packets that the filter has dropped.
    filtered: u32,
    /// For the longest drops of a list.
    list: Vec<u64>,
}

impl RedPd {
    /// `calculateB`: how long the next list is: three fifths of the time between two drops of a TCP with the target's round trip.
    fn interval(&mut self, p: f64) -> f64 {
        let rtt = self.parms.target_rtt;
        if p == 0.0 {
            return 10.0 * rtt;
        }
        let between = REGULAR as f64 / LISTS as f64 * rtt / (1.5 * p).sqrt();
        let interval = between.clamp(2.0 * rtt, 10.0 * rtt);
        self.newest = (self.newest + 1) % LISTS;
        self.intervals[self.newest] = interval;
        interval
    }
    /// `minLastChange`: the time of the last `n` lists.
    fn last_lists(&self, n: usize) -> f64 {
        let sum: f64 = (0..n).map(|back| self.intervals[(self.newest + LISTS - back) % LISTS]).sum();
        sum.max(LEAST_BETWEEN)
    }
    /// Closes the lists whose time is over.
    fn close_lists(&mut self, now: f64) {
        let (mut begun, mut end) = *self.begun.get_or_insert((now, now + 10.0 * self.parms.target_rtt));
        while now >= end {
            let interval = self.close(end, end - begun);
            (begun, end) = (end, end + interval);
            self.begun = Some((begun, end));
        }
    }
    /// `do_detect` and `do_reward` at `now`, after a list of `elapsed` seconds; answers how long the next one is.
    fn close(&mut self, now: f64, elapsed: f64) -> f64 {
        let current = if self.arrived == 0 { 0.0 } else { self.dropped as f64 / self.arrived as f64 };
        let average = self.drop_rate.map_or(current, |old| 0.5 * current + 0.5 * old);
        self.drop_rate = Some(average);
        let usable = current.min(average);
        // The fifty that lost most stand in the list.
        self.list.clear();
        self.list.extend(self.flows.iter_mut().map(|flow| flow.dropped).filter(|&bytes| bytes > 0));
        self.list.sort_unstable_by(|a, b| b.cmp(a));
        let enough = self.list.get(LIST_LEN - 1).copied().unwrap_or(1);
        let (mut regular, mut bytes) = (0u64, 0u64);
        for flow in self.flows.iter_mut() {
            flow.lists.rotate_right(1);
            flow.lists[0] = if flow.dropped >= enough { flow.dropped } else { 0 };
            if flow.lists_in() >= REGULAR {
                (regular, bytes) = (regular + 1, bytes + flow.listed_bytes());
            }
        }
        let mean = bytes as f64 / regular as f64;
        let (four, test) = (self.last_lists(4), self.parms.unresponsive_test);
        let tightens = current > LEAST_DROP_RATE;
        for flow in self.flows.iter_mut() {
            let struck = flow.dropped + flow.filtered;
            if tightens && flow.lists_in() >= REGULAR && now - flow.changed >= four && struck != 0 {
                flow.tighten(usable * flow.listed_bytes() as f64 / mean, usable, test);
                flow.changed = now;
                let arrived = flow.arrived as f64;
                flow.note_rate((arrived / elapsed, struck as f64 / arrived));
            }
            (flow.arrived, flow.dropped, flow.filtered) = (0, 0, 0);
        }
        (self.arrived, self.dropped) = (0, 0);
        let interval = self.interval(average);
        let (three, five) = (self.last_lists(3), self.last_lists(5));
        for flow in self.flows.iter_mut().filter(|flow| flow.filter.is_some() && flow.lists_in() == 0) {
            if now - flow.changed >= if flow.unresponsive { five } else { three } {
                flow.loosen();
                flow.changed = now;
            }
        }
        self.flows.retain(|flow| flow.filter.is_some() || flow.lists_in() > 0);
        interval
    }
    /// The filter: whether this flow's packet is dropped before it comes to the queue.
    fn filters(&mut self, key: &Key, cx: &mut Cx<'_>) -> bool {
        let Some(flow) = self.flows.get_mut(key) else { return false };
        let Some(filter) = flow.filter else { return false };
        let p = if flow.unresponsive { filter * self.parms.unresponsive_penalty } else { filter };
        if p <= 0.0 {
            return false;
        }
        let count = f64::from(flow.count) * p;
        let spread = if count < 1.0 { (p / (1.0 - count)).min(1.0) } else { 1.0 };
        let (queued, average) = (self.red.queued(), self.red.floyd().average());
        let may = match flow.unresponsive {
            false => average >= self.red.floyd().least() && queued > 1,
            true => queued > 1 || !self.parms.noidle,
        };
        let drops = unit(cx.rng.next_u64()) <= spread && may;
        flow.count = if drops { 0 } else { flow.count.saturating_add(1) };
        drops
    }
}

impl Qdisc for RedPd {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.close_lists(seconds(cx.now));
        let (key, bytes) = (Key::of(&packet), u64::from(packet.network_len()));
        self.flows.entry(key).arrived += bytes;
        if self.filters(&key, cx) {
            self.flows.entry(key).filtered += bytes;
            self.filtered = self.filtered.wrapping_add(1);
            self.red.discard(packet, DropReason::Early, cx.drops);
            return Xmit::Cn;
        }
        self.arrived += bytes;
        let before = cx.drops.len();
        let answer = self.red.enqueue(packet, cx);
        if cx.drops.len() > before
            && let Some((victim, _)) = cx.drops.entries().last()
        {
            let bytes = u64::from(victim.network_len());
            self.flows.entry(Key::of(victim)).dropped += bytes;
            self.dropped += bytes;
        }
        answer
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.red.dequeue(cx)
    }
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        self.red.peek(cx)
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let parms = Parms::read(options)?;
        self.red.change(options, cx)?;
        self.parms = parms;
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.red.reset(cx);
        self.flows.clear();
    }
    fn stats(&self) -> Stats {
        self.red.stats()
    }
    fn qlen(&self) -> u32 {
        self.red.qlen()
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.red.packets(see);
    }
    fn dump(&self) -> Options {
        let p = &self.parms;
        self.red
            .dump()
            .with("target_rtt", format!("{}", p.target_rtt))
            .with("unresponsive_test", u32::from(p.unresponsive_test))
            .with("unresponsive_penalty", format!("{}", p.unresponsive_penalty))
            .with("noidle", u32::from(p.noidle))
    }
    fn marks(&self) -> Option<u64> {
        self.red.marks()
    }
    /// RED's, and what the filter has dropped.
    fn xstats(&self, now: Time) -> Option<Options> {
        Some(self.red.xstats(now)?.with("filtered", self.filtered))
    }
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};
    use penstock_model::Handle;
    use penstock_packet::L4;

    fn queue(own: Options, bench: &mut Bench) -> Box<dyn Qdisc> {
        let init = Init { device: device(Kernel::V6_12), handle: Handle::UNSPEC, parent: Handle::ROOT };
        let o = own.with("limit", 100u32).with("thresh", 10u32).with("maxthresh", 40u32);
        let o = o.with("queue_in_bytes", 0u32).with("bytes", 0u32).with("q_weight", "0.02");
        build(&init, Some(&o), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Twenty seconds of one flow with 600 packets a second and six with 100 each, into a line of 1000 packets a second: what each
    /// got through.
    fn contest(o: Options) -> (u64, u64, u32) {
        let mut bench = Bench::new();
        let mut q = queue(o, &mut bench);
        let mut out = [0u64; 7];
        for ms in 0..20_000i64 {
            let now = ms * 1_000_000;
            for flow in 0..7u16 {
                let sends = if flow == 0 { ms % 5 < 3 } else { ms % 10 == i64::from(flow) };
                if sends {
                    let mut p = packet(u64::from(flow), 1014);
                    if let L4::Udp(u) = &mut p.l4 {
                        u.sport = 100 + flow;
                    }
                    q.enqueue(p, &mut bench.cx(now));
                }
            }
            if let Some(p) = q.dequeue(&mut bench.cx(now + 500_000)) {
                out[p.seq as usize] += 1;
            }
            bench.dropped();
        }
        let filtered = q.xstats(Time::ZERO).and_then(|x| x.u32("filtered")).unwrap_or(0);
        (out[0], out[1..].iter().sum::<u64>() / 6, filtered)
    }

    #[test]
    fn who_sends_too_much_is_filtered_and_the_others_are_spared() {
        let (greedy, modest, filtered) = contest(Options::new());
        // Of 12000 and 2000 packets: RED alone would take a sixth of each, 10000 and 1667.
        assert!(filtered > 1000 && greedy < 9_900 && modest > 1_780, "{greedy} {modest} {filtered}");
    }

    #[test]
    fn a_filter_grows_and_goes() {
        let mut a = Account::default();
        a.tighten(0.3, 0.02, true);
        assert_eq!(a.filter, Some(0.04));
        a.tighten(0.3, 0.02, true);
        a.tighten(0.02, 0.02, true);
        assert_eq!(a.filter, Some(0.1));
        a.loosen();
        assert_eq!(a.filter, Some(0.05));
        (0..5).for_each(|_| a.loosen());
        assert_eq!(a.filter, None);
        // Twice the drops and the same rate, three times over: it does not respond.
        for n in 1..4 {
            a.note_rate((1000.0, 0.1 * f64::from(n)));
        }
        assert!(a.does_not_respond());
        let mut tcp = Account::default();
        for n in [1.0f64, 2.0, 4.0] {
            tcp.note_rate((1000.0 / n.sqrt() * 0.99, 0.1 * n));
        }
        assert!(!tcp.does_not_respond());
    }

    #[test]
    fn lists_last_between_two_and_ten_round_trips() {
        let parms = Parms::read(None).unwrap();
        assert_eq!(parms.target_rtt, 0.04);
        assert!(Parms::read(Some(&Options::new().with("target_rtt", "0"))).is_err());
        assert!(Parms::read(Some(&Options::new().with("unresponsive_penalty", "-1"))).is_err());
        let red = Red::new(red::params(None).unwrap_or_else(|e| panic!("{e}")));
        let mut pd = RedPd {
            parms,
            red,
            flows: Flows::with_room(1),
            begun: None,
            intervals: [0.0; LISTS],
            newest: 0,
            drop_rate: None,
            arrived: 0,
            dropped: 0,
            filtered: 0,
            list: Vec::new(),
        };
        assert_eq!([0.0, 1.0, 1e-9].map(|p| pd.interval(p)), [0.4, 0.08, 0.4]);
        // Three fifths of 40 ms by the root of 1.5 %.
        assert!((pd.interval(0.01) - 0.195_959).abs() < 1e-6);
    }
}
