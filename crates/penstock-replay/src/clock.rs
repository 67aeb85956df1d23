//! The machine the probe runs on: its clock, its timers, the device with its qdiscs.
//!
//! In the exact-time kernel code takes no time: the clock moves only when everything sleeps, by 1 ns when a program
//! reads it, and by 1 us when one of its system calls fails (so that nobody who tries again and again stops the
//! clock); interrupts wait for the end of such a step. A timer's interrupt comes 1 ns after its expiry (`itimer_next_event` adds one), which is where
//! the nanosecond comes from that each departure of a paced queue is late. All timers that are due by then go off in
//! the same interrupt, and so does a sleeping program's, which may do so from its time on but is not set for earlier
//! than 1 ns later (the probe asks for a timer slack of 1 ns). Seen on 6.12 with `time-travel=inf-cpu`; see
//! `docs/notes/replay.md`.

use super::ground::Ground;
use super::ticks::Ticks;
use penstock_model::{Kernel, Rng, Time};
use penstock_packet::{L3, Packet, Pool, Skb, TxClock};
use penstock_sched::act::{Port, Sent};
use penstock_sched::tree::Tree;
use penstock_sched::{Actions, Cx, Device, Due, Ledger, Look, Xmit};

/// A packet that came out at the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its number; `None` for a probe frame.
    pub i: Option<u32>,
    /// Which segment it is of a packet that was cut.
    pub segment: Option<u16>,
    /// When, ns of the machine's clock.
    pub at: i64,
}

impl Arrival {
    fn of(skb: &Skb, at: i64) -> Arrival {
        Arrival { i: number(skb), segment: skb.rare().segment.map(|segment| segment.number), at }
    }
}

/// How late the probe sees what happens: the machine's clock here is the probe's. It shows where a kind counts time in
/// ticks of 64 ns (cbq), of which a millisecond has a whole number.
const SEEN_LATE_NS: i64 = 1;
/// How late an interrupt is.
const INTERRUPT_NS: i64 = 1;
/// How long after a timer's latest moment, on the kernel's clock, its interrupt comes, as the probe sees it.
const EXPIRY_NS: i64 = SEEN_LATE_NS + INTERRUPT_NS;
/// What reading the clock costs a program.
const READ_NS: i64 = 1;
/// What a system call that fails costs.
const FAILED_CALL_NS: i64 = 1000;
/// Calls that fail when the interpreter makes two pipes of file objects.
const PIPE_FAILURES: u32 = 4;
/// How often the interpreter looks at the clock until it knows that a program has ended.
const WAIT_READS: u32 = 5;
/// How much later than asked a sleeper's timer is set.
const SLACK_NS: i64 = 1;
/// The longest frame the peer takes: its MTU, the link header and a VLAN tag (`is_skb_forwardable`).
const PEER_LEN_MAX: u32 = 1518;
/// How many packets a device of several queues takes at most behind a first one.
const MORE_MAX: u32 = 8;
/// Sequence number of frames that carry none.
pub const UNNUMBERED: u64 = u64::MAX;

/// The machine.
pub struct Machine {
    /// The device's qdiscs.
    pub tree: Tree,
    /// What came out at the peer, in order.
    pub arrivals: Vec<Arrival>,
    /// What its programs cost.
    pub ground: &'static Ground,
    now: i64,
    ticks: Ticks,
    rng: Rng,
    /// As the dice lay at the start.
    unthrown: Rng,
    drops: Ledger,
    acts: Actions,
    pool: Pool,
    sent: Vec<Sent>,
    /// Packets arrive at the device instead of leaving by it.
    turned: bool,
    /// Packets that leave together with one before them.
    batch: Vec<Packet>,
    /// How often the clock is looked at for the program that runs, once more.
    owed: u32,
    /// No program has run since the line was made: the first one has no such look.
    fresh: bool,
}

/// `PACKET_OTHERHOST`.
const OTHERHOST: u8 = 3;
/// The peer's index.
const PEER: u32 = 2;

impl Machine {
    /// A machine with one device that is up; its clock stands at `now`.
    pub fn new(device: Device, now: i64, seed: u64, ground: &'static Ground) -> Machine {
        let rng = Rng::named(seed, "replay");
        let mut acts = Actions::new();
        acts.lend(Some(penstock_host::connections(device.kernel)));
        let names = [("lo", 1), ("v1", PEER), (super::DEV, device.ifindex)];
        acts.set_ports(names.into_iter().map(|(name, ifindex)| Port {
            name: name.to_owned(),
            ifindex,
            up: ifindex != 1,
        }));
        Machine {
            tree: Tree::without_queue(device),
            arrivals: Vec::new(),
            ground,
            now,
            ticks: Ticks::new(now - SEEN_LATE_NS),
            unthrown: rng.clone(),
            rng,
            drops: Ledger::new(),
            acts,
            pool: Pool::new(),
            sent: Vec::new(),
            turned: false,
            batch: Vec::new(),
            owed: 0,
            fresh: false,
        }
    }
    /// The profile.
    pub fn kernel(&self) -> Kernel {
        self.ground.kernel
    }
    /// A command has been carried out or `refused`.
    pub fn command_over(&mut self, refused: bool) {
        // From now on the timers of a qdisc that was made go off by the interrupts here.
        self.tree.do_chores(Time::from_ns(i64::MIN));
        self.acts.command_over(refused);
    }
    /// Whether any queue threw dice.
    pub fn threw_dice(&self) -> bool {
        self.rng.clone().next_u64() != self.unthrown.clone().next_u64()
    }
    /// The moment as the kernel has it.
    pub fn kernel_time(&self) -> Time {
        Time::from_ns(self.now - SEEN_LATE_NS)
    }
    /// The moment, without looking at a clock.
    pub fn now(&self) -> i64 {
        self.now
    }
    /// Reads the clock.
    pub fn read_clock(&mut self) -> i64 {
        self.step(READ_NS);
        self.now
    }
    /// The kernel reads the clock for a program, so many times.
    pub fn kernel_looks(&mut self, times: u32) {
        (0..times).for_each(|_| self.step(READ_NS));
    }
    /// A program's system call fails.
    pub fn fail_call(&mut self) {
        self.step(FAILED_CALL_NS);
    }
    /// The probe runs `tc` or `ip`: what passes of the clock before the request reaches the kernel. `modules` is how
    /// many kinds tc meets, for each of which it looks for a library that is not there.
    pub fn program_starts(&mut self, modules: u32) {
        self.starts(self.ground.tc_failures + modules);
    }
    /// The probe has `tc` show something, as JSON or not.
    pub fn show_starts(&mut self, json: bool) {
        self.starts(self.ground.tc_failures - if json { self.ground.json_failures } else { 0 });
    }
    /// The same of `ip`.
    pub fn ip_starts(&mut self) {
        self.starts(self.ground.ip_failures);
    }
    fn starts(&mut self, failures: u32) {
        self.acts.program_begins(self.ground.worker_turn);
        // The pipes are no terminals and do not seek; then the fork, which looks at the clock some times.
        (0..PIPE_FAILURES).for_each(|_| self.fail_call());
        (0..self.ground.fork_reads).for_each(|_| self.step(READ_NS));
        (0..failures).for_each(|_| self.fail_call());
        self.owed = if std::mem::take(&mut self.fresh) { 0 } else { self.ground.late_reads };
    }
    /// What the program asks for is about to make something: the clock is looked at before.
    pub fn makes(&mut self) {
        let owed = std::mem::take(&mut self.owed);
        self.kernel_looks(owed);
    }
    /// The line is made: what the kernel looks at the clock for once more came before.
    pub fn line_made(&mut self) {
        self.fresh = true;
    }
    /// The program has ended; the interpreter notices.
    pub fn program_ends(&mut self) {
        self.makes();
        if self.ground.link_ticks {
            self.ticks.ask(self.now - SEEN_LATE_NS);
        }
        (0..WAIT_READS).for_each(|_| self.step(READ_NS));
    }
    /// What a dump of filters needs besides the tree.
    pub fn look(&self) -> Look<'_> {
        Look { acts: &self.acts, now: self.kernel_time() }
    }
    /// The tree and what its calls need.
    pub fn with_tree<T>(&mut self, work: impl FnOnce(&mut Tree, &mut Cx<'_>) -> T) -> T {
        let mut cx =
            Cx { now: self.kernel_time(), rng: &mut self.rng, drops: &mut self.drops, acts: &mut self.acts };
        let result = work(&mut self.tree, &mut cx);
        self.drops.recycle(&mut self.pool);
        if self.acts.has_sent() {
            self.send_elsewhere();
        }
        result
    }
    /// What mirred sends to the peer's receiving side the probe reads there; nobody sees the rest.
    fn send_elsewhere(&mut self) {
        self.acts.take_sent(&mut self.sent);
        if self.turned {
            // At the peer the probe's sending socket takes IPv4; anything else nobody does (`netif_receive_skb` says so).
            for sent in self.sent.drain(..) {
                if sent.receive && sent.ifindex == PEER && !matches!(sent.skb.l3, L3::Ipv4(_)) {
                    self.acts.sending_failed(sent.action);
                }
            }
        }
        for sent in self.sent.drain(..).filter(|sent| sent.receive && sent.ifindex == PEER) {
            self.arrivals.push(Arrival::of(&sent.skb, self.now));
        }
    }
    /// Sends a frame, which asks to leave at `departs` by a clock that stands as this does: `__dev_queue_xmit`. Whether `send` succeeds.
    pub fn send(&mut self, skb: &Skb, departs: Option<i64>) -> bool {
        let mut packet: Packet = self.pool.alloc(skb.clone());
        packet.created = self.kernel_time();
        packet.sender.departs = departs.map_or(Time::ZERO, Time::from_ns);
        let answer = self.with_tree(|tree, cx| tree.enqueue(packet, cx));
        self.serve();
        //= linux v6.12 af_packet.c packet_snd: net_xmit_errno lets NET_XMIT_CN pass.
        if answer == Xmit::Drop {
            self.fail_call();
        }
        answer != Xmit::Drop
    }
    /// The peer sends a frame, which arrives at once (`veth_xmit`): past the ingress hook it comes to the sockets of its protocol.
    pub fn receive(&mut self, skb: &Skb) {
        self.turned = true;
        let mut packet: Packet = self.pool.alloc(skb.clone());
        packet.created = self.kernel_time();
        packet.iif = self.tree.device().ifindex;
        // Nothing but the mark comes through a pair of devices, and the frame is for another address.
        (packet.priority, packet.rare_mut().ptype) = (0, Some(OTHERHOST));
        if let Some(gso) = &mut packet.rare_mut().gso {
            // The peer's side has counted its segments when it let it go (`tcp_gso_segment`).
            (gso.dodgy, gso.counted) = (false, true);
        }
        if let Some(packet) = self.with_tree(|tree, cx| tree.receive(packet, cx)) {
            if matches!(packet.l3, L3::Ipv4(_) | L3::Ipv6(_)) {
                self.arrivals.push(Arrival::of(&packet, self.now));
            }
            self.pool.free(packet);
        }
    }
    /// `__qdisc_run`: the device takes all it is given; the peer has it at once.
    pub fn serve(&mut self) {
        let mut other = None;
        while let Some(packet) = other.take().or_else(|| self.dequeue()) {
            other = match self.tree.shares_queues() {
                true => self.take_more(packet.rare().queue_mapping),
                false => None,
            };
            self.deliver(packet);
            let mut more = std::mem::take(&mut self.batch);
            more.drain(..).for_each(|packet| self.deliver(packet));
            self.batch = more;
        }
    }
    /// What one qdisc has for several transmit queues is taken some packets at a time, all of one queue. Answers the first of another
    /// queue, which comes next.
    //= linux v6.12 net/sched/sch_generic.c try_bulk_dequeue_skb_slow
    fn take_more(&mut self, queue: u16) -> Option<Packet> {
        for _ in 0..MORE_MAX {
            let packet = self.dequeue()?;
            if packet.rare().queue_mapping != queue {
                return Some(packet);
            }
            self.batch.push(packet);
        }
        None
    }
    fn dequeue(&mut self) -> Option<Packet> {
        self.with_tree(|tree, cx| tree.dequeue(cx))
    }
    fn deliver(&mut self, packet: Packet) {
        // A super-packet is taken however long it is (`is_skb_forwardable`).
        if packet.len <= PEER_LEN_MAX || packet.gso().is_some() {
            let at = stamped(&packet).map_or(self.now, |at| at + SEEN_LATE_NS);
            self.arrivals.push(Arrival::of(&packet, at));
        }
        self.pool.free(packet);
    }
    /// The device asks for packets where a qdisc has had it do so (`net_tx_action`).
    pub fn run_scheduled(&mut self) {
        if self.drops.take_scheduled() {
            self.serve();
        }
    }
    /// The clock moves on under a running program; interrupts that come on the way are taken at the end.
    fn step(&mut self, ns: i64) {
        self.now += ns;
        if self.first_expiry(i64::MAX) + EXPIRY_NS <= self.now {
            self.interrupt(self.now, None);
        }
    }
    /// A program sleeps until `moment` (`clock_nanosleep`, absolute).
    pub fn sleep_until(&mut self, moment: i64) {
        self.acts.idle();
        let from = moment - SEEN_LATE_NS;
        loop {
            let expiry = self.first_expiry(from + SLACK_NS);
            self.interrupt((expiry + EXPIRY_NS).max(self.now + 1), Some(from));
            if self.now >= moment {
                return self.ticks.run(self.now - SEEN_LATE_NS);
            }
        }
    }
    /// The latest moment of the timer that comes first: one of the qdiscs', the tick's, or a sleeper's.
    fn first_expiry(&self, sleeper: i64) -> i64 {
        let mut first = self.ticks.tick.min(sleeper);
        self.tree.timers(&mut |_, hard| first = first.min(hard.as_ns()));
        self.tree.chores(&mut |at| first = first.min(at.as_ns()));
        first.min(i64::MAX - EXPIRY_NS)
    }
    /// A timer interrupt (`hrtimer_interrupt`): the timers that are due go off, and the device is asked once if there were any. `sleeper`: from
    /// when on a program that sleeps may be woken; without one it is running.
    fn interrupt(&mut self, at: i64, sleeper: Option<i64>) {
        self.now = at;
        let now = at - SEEN_LATE_NS;
        let ticked = self.ticks.expire(now);
        if ticked.is_some() {
            self.acts.ticked();
        }
        let mut before = self.ticks.tick;
        if let Some(from) = sleeper.filter(|&from| from > now) {
            before = before.min(from + SLACK_NS);
        }
        self.tree.timers(&mut |soft, hard| {
            if soft.as_ns() > now {
                before = before.min(hard.as_ns());
            }
        });
        let due = Due { now: Time::from_ns(now), before: Time::from_ns(before) };
        let mut any = false;
        self.tree.timers(&mut |soft, hard| any |= due.has(soft, hard));
        if any {
            self.tree.expire(due);
            self.serve();
        }
        //= linux v7.2 include/linux/interrupt.h: of the softirqs HRTIMER comes behind NET_TX.
        self.tree.do_chores(Time::from_ns(now));
        if sleeper.is_some() {
            let tree = &self.tree;
            self.ticks.idle(now, ticked, &|tick| tree.ticks_at(Time::from_ns(tick)));
        }
    }
    /// Most packets that one shown qdisc holds.
    pub fn backlog(&self) -> u32 {
        let dumps = self.tree.dump_qdiscs(self.kernel_time());
        dumps.iter().map(|d| d.stats.qlen).max().unwrap_or(0)
    }
}

/// The peer takes a time that stands on a packet for that of its arrival, unless it is known to be a time of departure: that by `CLOCK_REALTIME`, and what taprio
/// writes there, are not.
//= linux v6.12 include/linux/skbuff.h skb_clear_tstamp, net/core/dev.c net_timestamp_check
fn stamped(skb: &Skb) -> Option<i64> {
    skb.rare().txtime.filter(|t| !t.asked || t.clock == TxClock::Realtime)?;
    Some(skb.sender.departs.as_ns()).filter(|&at| at != 0)
}

/// The number that the probe reads in a frame: in none with a tag in it, of another ethertype, or without its head.
fn number(skb: &Skb) -> Option<u32> {
    let rare = skb.rare();
    let numbered = matches!(skb.l3, L3::Ipv4(_) | L3::Ipv6(_)) && rare.within.is_none() && !rare.headless;
    if skb.seq == UNNUMBERED || !numbered { None } else { u32::try_from(skb.seq).ok() }
}

/// The frame by which the probe learns how late a frame is, and which keeps the line busy.
pub fn probe_frame() -> Skb {
    Skb {
        seq: UNNUMBERED,
        eth: ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
        ..Skb::new(1514, L3::Other(0x88b5), penstock_packet::headers::L4::None)
    }
}
