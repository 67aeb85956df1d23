//! The machine the probe runs on: its clock, its timers, the device with its qdiscs.
//!
//! In the exact-time kernel code takes no time: the clock moves only when everything sleeps, by 1 ns when a program
//! reads it, and by 1 us when one of its system calls fails (so that nobody who tries again and again stops the
//! clock); interrupts wait for the end of such a step. A timer's interrupt comes 1 ns after its expiry (`itimer_next_event` adds one), which is where
//! the nanosecond comes from that each departure of a paced queue is late. All timers that are due by then go off in
//! the same interrupt, and so does a sleeping program's, which may do so from its time on but is not set for earlier
//! than 1 ns later (the probe asks for a timer slack of 1 ns). Seen on 6.12 with `time-travel=inf-cpu`; see
//! `docs/notes/replay.md`.

use penstock_model::{Rng, Time};
use penstock_packet::{L3, Packet, Pool, Skb};
use penstock_sched::act::{Port, Sent};
use penstock_sched::tree::Tree;
use penstock_sched::{Actions, Cx, Device, Ledger, Look, Xmit};

/// A packet that came out at the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its number; `None` for a probe frame.
    pub i: Option<u32>,
    /// When, ns of the machine's clock.
    pub at: i64,
}

/// How late the probe sees what happens: the machine's clock here is the probe's. It shows where a kind counts time in
/// ticks of 64 ns (cbq), of which a millisecond has a whole number.
const SEEN_LATE_NS: i64 = 1;
/// How late an interrupt is.
const INTERRUPT_NS: i64 = 1;
/// The clock's tick (HZ 100), and how long after it its interrupt comes as the probe, whose times are 1 ns late, sees it.
const TICK_NS: i64 = 10_000_000;
const TICK_INTERRUPT_NS: i64 = 2;
/// How far apart the kernel's own timers are, and the tick on which the probe made its network namespace.
const OWN_NS: i64 = 110_000_000;
const BORN_NS: i64 = 1_000_000_000;
/// What reading the clock costs a program.
const READ_NS: i64 = 1;
/// What a system call that fails costs.
const FAILED_CALL_NS: i64 = 1000;
/// Calls that fail when the interpreter makes two pipes of file objects.
const PIPE_FAILURES: u32 = 4;
/// How often a fork looks at the clock.
const FORK_READS: u32 = 3;
/// Folders of the interpreter's PATH before the one that has `tc`: as on the machine the vectors were recorded on.
const PATH_MISSES: u32 = 15;
/// Calls that fail while a program starts: the loader's and the C library's, libcap's four.
const LOADER_FAILURES: u32 = 6;
/// How often the interpreter looks at the clock until it knows that a program has ended.
const WAIT_READS: u32 = 5;
/// How much later than asked a sleeper's timer is set.
const SLACK_NS: i64 = 1;
/// The longest frame the peer takes: its MTU, the link header and a VLAN tag (`is_skb_forwardable`).
const PEER_LEN_MAX: u32 = 1518;
/// Sequence number of frames that carry none.
pub const UNNUMBERED: u64 = u64::MAX;

/// The machine.
pub struct Machine {
    /// The device's qdiscs.
    pub tree: Tree,
    /// What came out at the peer, in order.
    pub arrivals: Vec<Arrival>,
    now: i64,
    /// When a program last ran.
    ran: i64,
    rng: Rng,
    /// As the dice lay at the start.
    unthrown: Rng,
    drops: Ledger,
    acts: Actions,
    pool: Pool,
    sent: Vec<Sent>,
    /// Packets arrive at the device instead of leaving by it.
    turned: bool,
}

/// `PACKET_OTHERHOST`.
const OTHERHOST: u8 = 3;
/// The peer's index.
const PEER: u32 = 2;

impl Machine {
    /// A machine with one device that is up; its clock stands at `now`.
    pub fn new(device: Device, now: i64, seed: u64) -> Machine {
        let rng = Rng::named(seed, "replay");
        let mut acts = Actions::new();
        let names = [("lo", 1), ("v1", PEER), (super::DEV, device.ifindex)];
        acts.set_ports(names.into_iter().map(|(name, ifindex)| Port {
            name: name.to_owned(),
            ifindex,
            up: ifindex != 1,
        }));
        Machine {
            tree: Tree::without_queue(device),
            arrivals: Vec::new(),
            now,
            ran: now,
            unthrown: rng.clone(),
            rng,
            drops: Ledger::new(),
            acts,
            pool: Pool::new(),
            sent: Vec::new(),
            turned: false,
        }
    }
    /// A command has been carried out or `refused`.
    pub fn command_over(&mut self, refused: bool) {
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
        self.acts.program_begins();
        // The pipes are no terminals and do not seek; then the fork, which looks at the clock three times.
        (0..PIPE_FAILURES).for_each(|_| self.fail_call());
        (0..FORK_READS).for_each(|_| self.step(READ_NS));
        (0..PATH_MISSES + LOADER_FAILURES + modules).for_each(|_| self.fail_call());
    }
    /// The program has ended; the interpreter notices.
    pub fn program_ends(&mut self) {
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
            self.arrivals.push(Arrival { i: number(&sent.skb), at: self.now });
        }
    }
    /// Sends a frame: `__dev_queue_xmit`. Whether `send` succeeds.
    pub fn send(&mut self, skb: &Skb) -> bool {
        let mut packet: Packet = self.pool.alloc(skb.clone());
        packet.created = self.kernel_time();
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
        (packet.priority, packet.tc.ptype) = (0, Some(OTHERHOST));
        if let Some(packet) = self.with_tree(|tree, cx| tree.receive(packet, cx)) {
            if matches!(packet.l3, L3::Ipv4(_) | L3::Ipv6(_)) {
                self.arrivals.push(Arrival { i: number(&packet), at: self.now });
            }
            self.pool.free(packet);
        }
    }
    /// `__qdisc_run`: the device takes all it is given; the peer has it at once.
    pub fn serve(&mut self) {
        while let Some(packet) = self.with_tree(|tree, cx| tree.dequeue(cx)) {
            if packet.len > PEER_LEN_MAX {
                self.pool.free(packet);
                continue;
            }
            self.arrivals.push(Arrival { i: number(&packet), at: self.now });
            self.pool.free(packet);
        }
    }
    /// The clock moves on under a running program; interrupts that come on the way are taken at the end.
    fn step(&mut self, ns: i64) {
        self.now += ns;
        self.ran = self.now;
        if self.next_interrupt().is_some_and(|due| due <= self.now) {
            self.interrupt(self.now);
        }
    }
    /// A program sleeps until `moment` (`clock_nanosleep`, absolute).
    pub fn sleep_until(&mut self, moment: i64) {
        self.acts.idle();
        let last = moment + SLACK_NS + INTERRUPT_NS;
        while let Some(due) = self.next_interrupt().filter(|&due| due < last) {
            let due = due.max(self.now + 1);
            self.interrupt(due);
            if due >= moment {
                self.ran = self.now;
                return;
            }
        }
        self.interrupt(last.max(self.now));
        self.ran = self.now;
    }
    /// When the next qdisc's timer interrupts. One that expires with the interrupt of a tick goes off in that; there
    /// is a tick where a program has run since the one before, and where a timer is on it.
    fn next_interrupt(&self) -> Option<i64> {
        let expiry = self.tree.next_wakeup()?.as_ns().saturating_add(SEEN_LATE_NS);
        // A timer with slack goes off in the first tick from its time on.
        let from = self.tree.earliest_wakeup()?.as_ns().saturating_add(SEEN_LATE_NS).max(self.now);
        let mut tick = from.saturating_add(TICK_NS - TICK_INTERRUPT_NS - 1) / TICK_NS * TICK_NS;
        while tick.saturating_add(TICK_INTERRUPT_NS) <= expiry {
            if self.is_tick(tick) {
                return Some(tick + TICK_INTERRUPT_NS);
            }
            tick += TICK_NS;
        }
        Some(expiry.saturating_add(INTERRUPT_NS))
    }
    /// Whether the clock's tick at this moment comes: not all do on an idle machine.
    fn is_tick(&self, tick: i64) -> bool {
        let soon = tick + TICK_INTERRUPT_NS - self.ran < TICK_NS;
        soon || own_timer(tick) || self.tree.ticks_at(Time::from_ns(tick))
    }
    /// A timer interrupt: all timers that are due go off, and the device is asked once if there were any.
    fn interrupt(&mut self, at: i64) {
        self.now = at;
        let now = self.kernel_time();
        if self.tree.earliest_wakeup().is_some_and(|due| due <= now) {
            self.tree.expire(now);
            self.serve();
        }
    }
    /// Most packets that one shown qdisc holds.
    pub fn backlog(&self) -> u32 {
        let dumps = self.tree.dump_qdiscs(self.kernel_time());
        dumps.iter().map(|d| d.stats.qlen).max().unwrap_or(0)
    }
}

/// The number that the probe reads in a frame: in none with a tag in it.
fn number(skb: &Skb) -> Option<u32> {
    if skb.seq == UNNUMBERED || skb.tc.within.is_some() { None } else { u32::try_from(skb.seq).ok() }
}

/// Whether the kernel has a timer of its own on this tick: the probe's network namespace a thread of `pktgen`, which was made with it, and
/// the first namespace another, beside `tcp_orphan_update`. All sleep ten ticks, and one for the timer wheel.
fn own_timer(tick: i64) -> bool {
    let (first, since) = (tick % OWN_NS, tick - BORN_NS);
    first == 0 || (since > 0 && since % OWN_NS == 0)
}

/// The frame by which the probe learns how late a frame is, and which keeps the line busy.
pub fn probe_frame() -> Skb {
    Skb {
        seq: UNNUMBERED,
        eth: ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
        ..Skb::new(1514, L3::Other(0x88b5), penstock_packet::headers::L4::None)
    }
}
