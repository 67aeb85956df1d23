//! The event queue: what happens next, in a total order.
//!
//! Events are ordered by (time, sequence); the sequence is the order in which they were scheduled (or in which a
//! place was [reserved](Queue::reserve)), so equal times never leave anything to chance. Frames that come over a link with
//! delay are first at their instant, by the numbers of their wires: their order does not hang on when the other end sent them, which
//! another core may have done. A 4-ary heap of 24-byte
//! entries: half the levels of a binary one, four children in a cache line and a half. What is taken leaves its place at
//! the root empty until the next is asked for: most events schedule another, which goes straight in there.
//!
//! Timers are cancelled by generation: whoever owns one remembers the (time, sequence) it is armed for and ignores
//! an event that no longer matches. Nothing is ever searched in the heap.

use penstock_model::Time;

/// What an event is about; the number says which one. Eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The oldest frame under way on this wire direction arrives.
    Arrive(u32),
    /// This NIC has its frame on the wire and may take another.
    TxDone(u32),
    /// This shared segment is free again.
    SegmentFree(u32),
    /// The qdisc watchdog of this NIC.
    Watchdog(u32),
    /// This host's processor has finished with a packet.
    Cpu(u32),
    /// This host's own timers (ARP retries, reassembly).
    HostTimer(u32),
    /// This TCP socket's timers.
    Tcp(u32),
    /// This program or flow asked to be woken.
    App(u32),
    /// A command of the timetable.
    Command(u32),
    /// A start of a program or flow.
    Start(u32),
    /// The script of this program goes on.
    Script(u32),
    /// A packet that waited on this host's `lo` is received.
    Loop(u32),
    /// A frame that another device of the machine has sent comes in by a macvlan of this host's, or below one.
    Across(u32),
    /// Take a sample of every series.
    Sample,
}

#[derive(Clone, Copy)]
struct Entry {
    time: i64,
    seq: u64,
    event: Event,
}

impl Entry {
    /// As one number, so that comparing two takes no branch. Times are never negative.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.time as u64) << 64 | u128::from(self.seq)
    }
    #[inline]
    fn before(&self, other: &Entry) -> bool {
        self.key() < other.key()
    }
}

/// A place in the order of events that share a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Seq(u64);

/// The first place that is not a wire's.
const FIRST: u64 = 1 << 32;

impl Seq {
    /// The place of frames that come over this wire, before all that machines have scheduled for themselves.
    #[inline]
    pub(crate) fn of_wire(wire: u32) -> Seq {
        Seq(u64::from(wire))
    }
}

/// Events to come.
pub(crate) struct Queue {
    heap: Vec<Entry>,
    /// The first was taken, and nothing has been put in its place yet.
    hole: bool,
    next_seq: u64,
    /// How far the places are apart that are given here: as many queues as this give others.
    step: u64,
    now: i64,
}

impl Queue {
    /// An empty queue at time zero.
    pub(crate) fn new() -> Queue {
        Queue { heap: Vec::with_capacity(1024), hole: false, next_seq: FIRST, step: 1, now: 0 }
    }
    /// The present.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        Time::from_ns(self.now)
    }
    /// The next place in the order, for an event that is scheduled later.
    #[inline]
    pub(crate) fn reserve(&mut self) -> Seq {
        let seq = Seq(self.next_seq);
        self.next_seq += self.step;
        seq
    }
    /// Schedules an event; answers its place in the order.
    ///
    /// # Panics
    /// When `time` is in the past.
    #[inline]
    pub(crate) fn schedule(&mut self, time: Time, event: Event) -> Seq {
        let seq = self.reserve();
        self.schedule_at(time, seq, event);
        seq
    }
    /// Schedules an event at a place reserved earlier.
    ///
    /// # Panics
    /// When `time` is in the past.
    #[inline]
    pub(crate) fn schedule_at(&mut self, time: Time, seq: Seq, event: Event) {
        let time = time.as_ns();
        assert!(time >= self.now, "event {event:?} scheduled into the past: {time} ns at {} ns", self.now);
        let entry = Entry { time, seq: seq.0, event };
        if std::mem::take(&mut self.hole) {
            self.sift_down(entry);
            return;
        }
        self.heap.push(entry);
        self.sift_up(self.heap.len() - 1);
    }
    /// Takes the next event if it is due by `until`, and moves the present to it.
    #[inline]
    pub(crate) fn next_until(&mut self, until: Time) -> Option<(Seq, Event)> {
        self.close_hole();
        let first = *self.heap.first()?;
        if first.time > until.as_ns() {
            return None;
        }
        self.hole = true;
        self.now = first.time;
        Some((Seq(first.seq), first.event))
    }
    /// Puts the last in at the root, when nothing else came there.
    #[inline(never)]
    fn fill_root(&mut self, last: Entry) {
        if !self.heap.is_empty() {
            self.sift_down(last);
        }
    }
    /// Moves the present forward although nothing happens.
    pub(crate) fn advance(&mut self, to: Time) {
        assert!(to.as_ns() >= self.now, "time runs forward only");
        debug_assert!(self.hole || self.heap.first().is_none_or(|e| e.time >= to.as_ns()));
        self.now = to.as_ns();
    }

    /// An empty queue at this present: number `n` of `of` that take the place of this one. No two give the same place, and what is
    /// scheduled in one of them stands behind all that was scheduled here.
    pub(crate) fn part(&self, n: u64, of: u64) -> Queue {
        let next_seq = self.next_seq.next_multiple_of(of) + n;
        Queue { heap: Vec::with_capacity(1024), hole: false, next_seq, step: of, now: self.now }
    }
    /// Takes all events off, in no order.
    pub(crate) fn take_all(&mut self) -> Vec<(Time, Seq, Event)> {
        self.close_hole();
        self.heap.drain(..).map(|e| (Time::from_ns(e.time), Seq(e.seq), e.event)).collect()
    }
    /// All events to come, in no order.
    pub(crate) fn events(&self) -> impl Iterator<Item = (Time, Seq, Event)> {
        let taken = usize::from(self.hole);
        self.heap.iter().skip(taken).map(|e| (Time::from_ns(e.time), Seq(e.seq), e.event))
    }
    /// What is scheduled from now on stands behind all that was scheduled in another queue.
    pub(crate) fn go_behind(&mut self, other: &Queue) {
        self.next_seq = self.next_seq.max(other.next_seq);
    }
    /// When the next event is due.
    pub(crate) fn next_time(&mut self) -> Option<Time> {
        self.close_hole();
        self.heap.first().map(|e| Time::from_ns(e.time))
    }
    #[inline]
    fn close_hole(&mut self) {
        if std::mem::take(&mut self.hole) {
            let last = self.heap.pop().expect("the place that is empty");
            self.fill_root(last);
        }
    }

    fn sift_up(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / 4;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }
    /// Puts `entry` in at the root.
    #[inline(always)] // Into the two that call it.
    fn sift_down(&mut self, entry: Entry) {
        let heap = &mut self.heap[..];
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            let Some(children) = heap.get(first..).filter(|c| !c.is_empty()) else { break };
            let i = match children.first_chunk::<4>() {
                // The least of four by two and two.
                Some(four) => {
                    let left = usize::from(four[1].before(&four[0]));
                    let right = 2 + usize::from(four[3].before(&four[2]));
                    if four[right].before(&four[left]) { right } else { left }
                }
                None => {
                    (1..children.len()).fold(0, |l, i| if children[i].before(&children[l]) { i } else { l })
                }
            };
            let least = children[i];
            if !least.before(&entry) {
                break;
            }
            heap[at] = least;
            at = first + i;
        }
        heap[at] = entry;
    }
}

/// A timer that is cancelled or moved by forgetting: only the event that matches is the timer's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timer(Option<(Time, Seq)>);

impl Timer {
    /// Sees to it that an event comes at `want` or before. An armed earlier one is left to fire and be re-armed then,
    /// which costs nothing while deadlines only move later (retransmission timers do).
    #[inline]
    pub(crate) fn arm(&mut self, want: Option<Time>, event: Event, queue: &mut Queue) {
        let Some(want) = want else { return };
        let want = want.max(queue.now());
        if self.0.is_some_and(|(armed, _)| armed <= want) {
            return;
        }
        self.0 = Some((want, queue.schedule(want, event)));
    }
    /// Sets it for `at`, earlier or later than before; `None` stops it.
    pub(crate) fn move_to(&mut self, at: Option<Time>, event: Event, queue: &mut Queue) {
        self.0 = None;
        self.arm(at, event, queue);
    }
    /// When it goes off.
    pub(crate) fn at(&self) -> Option<Time> {
        self.0.map(|(at, _)| at)
    }
    /// Whether the event of this place is the timer's; disarms it then.
    #[inline]
    pub(crate) fn fires(&mut self, seq: Seq) -> bool {
        let mine = self.0.is_some_and(|(_, armed)| armed == seq);
        if mine {
            self.0 = None;
        }
        mine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Rng;

    #[test]
    fn order_is_time_then_sequence() {
        let mut queue = Queue::new();
        let mut rng = Rng::named(1, "event order");
        for i in 0..2000 {
            queue.schedule(Time::from_ns(i64::from(rng.below(50))), Event::App(i));
        }
        let mut seen = Vec::new();
        while let Some((_, Event::App(i))) = queue.next_until(Time::MAX) {
            seen.push((queue.now(), i));
        }
        assert_eq!(seen.len(), 2000);
        assert!(seen.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn a_reserved_place_is_kept() {
        let mut queue = Queue::new();
        let first = queue.reserve();
        queue.schedule(Time::from_ns(5), Event::App(2));
        queue.schedule_at(Time::from_ns(5), first, Event::App(1));
        assert_eq!(queue.next_until(Time::MAX).unwrap().1, Event::App(1));
        assert_eq!(queue.next_until(Time::MAX).unwrap().1, Event::App(2));
    }

    #[test]
    #[should_panic(expected = "into the past")]
    fn the_past_is_refused() {
        let mut queue = Queue::new();
        queue.schedule(Time::from_ns(5), Event::Sample);
        queue.next_until(Time::MAX);
        queue.schedule(Time::from_ns(4), Event::Sample);
    }

    #[test]
    fn a_moved_timer_fires_once() {
        let mut queue = Queue::new();
        let mut timer = Timer::default();
        timer.arm(Some(Time::from_ns(10)), Event::Tcp(0), &mut queue);
        timer.arm(Some(Time::from_ns(4)), Event::Tcp(0), &mut queue);
        timer.arm(Some(Time::from_ns(20)), Event::Tcp(0), &mut queue);
        let mut fired = Vec::new();
        while let Some((seq, _)) = queue.next_until(Time::MAX) {
            if timer.fires(seq) {
                fired.push(queue.now().as_ns());
            }
        }
        assert_eq!(fired, [4]);
    }

    #[test]
    fn an_event_is_eight_bytes() {
        assert_eq!(size_of::<Event>(), 8);
        assert_eq!(size_of::<Entry>(), 24);
    }
}
