//! The packets' way through the machine's device.

use super::read::{Moment, What};
use penstock_host::{Effect, Host, HostCx, NoFiles, Turn, rt_tos2priority};
use penstock_lang::token::Line;
use penstock_model::{Handle, Rate, Span, Time};
use penstock_packet::{L3, L4, Packet, Pool, Skb};
use std::collections::BTreeMap;

/// What became of a packet.
#[derive(Clone, Debug, Default)]
pub enum Fate {
    /// It is nowhere to be seen: still queued, or taken by an action.
    #[default]
    Unknown,
    /// A device took it, or it got past the ingress hook.
    Left(Box<Left>),
    /// It was lost.
    Dropped(Lost),
    /// An action gave it to this machine's own receiving side.
    Received,
}

/// A departure.
#[derive(Clone, Debug)]
pub struct Left {
    /// When the device took it, ns.
    pub t_ns: i64,
    /// The device's index.
    pub ifindex: u32,
    /// The class whose queue it was in.
    pub class: Option<Handle>,
    /// The packet as it left.
    pub skb: Skb,
}

/// A loss.
#[derive(Clone, Debug)]
pub struct Lost {
    /// When, ns.
    pub t_ns: i64,
    /// Where: `qdisc`, a netfilter chain, ….
    pub place: &'static str,
    /// Why, in a word.
    pub reason: &'static str,
    /// The class whose queue it had reached.
    pub class: Option<Handle>,
}

/// How the device is served.
pub struct Served {
    /// The device's index.
    pub ifindex: u32,
    /// The packets arrive at the device, and get in or not.
    pub ingress: bool,
    /// Index of the device the packets came in by; none for this machine's own.
    pub from: Option<u32>,
    /// Rate of the line behind it; without one the device takes all it is given.
    pub rate: Option<Rate>,
    /// How long the last packets are waited for.
    pub drain: Span,
    /// The packets are a simulation's.
    pub simulated: Option<Simulated>,
}

/// What is known besides of a simulation's packets: they come to the device itself, behind the rules, as they are.
pub struct Simulated {
    /// Of each moment: what of the card's own is still to come then, and whether more packets come of the same call.
    pub turns: Vec<(Turn, bool)>,
    /// When the simulation ended.
    pub end: Time,
}

/// All that came of it.
#[derive(Debug, Default)]
pub struct Played {
    /// By number.
    pub fates: Vec<Fate>,
    /// Departures in order: number, and whether it is the packet's first.
    pub order: Vec<u32>,
    /// Losses in order.
    pub lost: Vec<u32>,
    /// Further departures of packets that were mirrored.
    pub copies: u64,
    /// Packets that the machine made itself (answers of REJECT).
    pub own: u64,
    /// Segments that were lost of super-packets of which others have left.
    pub segments_lost: u64,
    /// Packets still held at the end.
    pub held: u32,
    /// When it ended, ns.
    pub end_ns: i64,
    /// Commands that were refused: the moment's number, and its words.
    pub refused: Vec<(usize, String)>,
}

/// Marks the replayed packets among those the machine makes itself.
const FLOW: u32 = u32::MAX;

struct Player<'a> {
    host: &'a mut Host,
    moments: &'a [Moment],
    /// Of each super-packet that was cut, how many segments were lost.
    lost_of: BTreeMap<u32, u64>,
    line: &'a Served,
    start: Time,
    now: Time,
    pool: Pool,
    out: Vec<Effect>,
    /// When each device that was asked to send is free.
    busy: BTreeMap<u32, Time>,
    /// The card's own turn comes when this moment is over.
    waits: Turn,
    /// Packets of one call are coming: the card is asked behind them.
    more: bool,
    /// How often it was to be asked meanwhile.
    owed: u32,
    done: Played,
}

/// Time a packet takes on the line, each of its segments with what Ethernet puts around a frame: padding to 60 bytes, FCS 4, preamble 8, gap 12.
fn on_the_wire(skb: &Skb, rate: Option<Rate>) -> Span {
    rate.map_or(Span::ZERO, |rate| {
        // Each frame ends at a whole nanosecond, as a card's do.
        let frame = |len: u32| {
            let bytes = u64::from(len.max(60) + 24);
            (bytes * 1_000_000_000).div_ceil(rate.bytes_per_s().max(1)) as i64
        };
        Span::from_ns(skb.gso().map_or(frame(skb.len), |gso| {
            let (size, before_last) = (u32::from(gso.size), u32::from(gso.segs - 1));
            let full = frame(skb.segment_headers() + size);
            full * i64::from(before_last) + frame(skb.len.saturating_sub(size * before_last))
        }))
    })
}

/// What the machine has changed of a segment, on the packet that it is one of.
fn as_whole(segment: &Skb, whole: &Skb) -> Skb {
    let mut skb = segment.clone();
    skb.len = whole.len;
    if let (L3::Ipv4(is), L3::Ipv4(was)) = (&mut skb.l3, &whole.l3) {
        is.id = was.id;
    }
    if let (L4::Tcp(is), L4::Tcp(was)) = (&mut skb.l4, &whole.l4) {
        (is.seq, is.flags) = (was.seq, was.flags);
    }
    skb
}

fn class_of(skb: &Skb) -> Option<Handle> {
    (skb.tc.class != Handle::ROOT && skb.tc.class != Handle::UNSPEC).then_some(skb.tc.class)
}

/// Plays the moments from `start` on.
pub fn play(host: &mut Host, line: &Served, moments: &[Moment], start: Time) -> Played {
    let done = Played { fates: vec![Fate::Unknown; moments.len()], ..Played::default() };
    let (pool, out) = (Pool::new(), Vec::new());
    let mut player = Player {
        host,
        moments,
        lost_of: BTreeMap::new(),
        line,
        start,
        now: start,
        pool,
        out,
        busy: BTreeMap::new(),
        waits: Turn::Over,
        more: false,
        owed: 0,
        done,
    };
    player.host.take_effects(&mut player.out);
    player.settle();
    for (i, moment) in moments.iter().enumerate() {
        player.comes(i, start + Span::from_ns(moment.t_ns));
        match &moment.what {
            What::Packet(skb) => player.send(i as u32, skb),
            What::Command(text) => player.command(i, text),
        }
        player.call_over(i);
    }
    match &line.simulated {
        Some(simulated) => player.until(simulated.end),
        None => player.drain(),
    }
    player.done.held = player.host.held_packets();
    player.done.end_ns = (player.now - start).as_ns();
    player.done
}

impl Player<'_> {
    /// Lends the host what a call needs, and acts on what follows.
    fn with<T>(&mut self, work: impl FnOnce(&mut Host, &mut HostCx<'_>) -> T) -> T {
        let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut self.out };
        work(self.host, &mut cx)
    }

    fn send(&mut self, i: u32, skb: &Skb) {
        let mut packet = self.pool.alloc(skb.clone());
        if self.line.simulated.is_none() {
            packet.created = self.now;
        }
        (packet.seq, packet.flow) = (u64::from(i), FLOW);
        if packet.priority == 0 && !self.line.ingress && self.line.simulated.is_none() {
            packet.priority = rt_tos2priority(self.host.kernel(), packet.tos());
        }
        let Served { ifindex, from, ingress, .. } = *self.line;
        let as_it_is = self.line.simulated.is_some();
        self.with(|host, cx| match ingress {
            true => host.arrive_at(ifindex, packet, cx),
            false if as_it_is => host.comes_to(ifindex, packet, cx),
            false => host.leave_by(ifindex, from, packet, cx),
        });
        self.settle();
    }

    fn command(&mut self, i: usize, text: &str) {
        let words = match penstock_lang::token::words(text) {
            Ok(words) => words,
            Err(wrong) => return self.done.refused.push((i, wrong.message)),
        };
        let mut words: Vec<String> = words.into_iter().map(|w| w.text).collect();
        if words.first().is_some_and(|w| ["qdisc", "class", "filter"].contains(&w.as_str())) {
            words.insert(0, "tc".to_owned());
        }
        let output = self.host.command(&words, &mut NoFiles, self.now);
        if output.status != 0 {
            self.done
                .refused
                .push((i, format!("{}: {}", Line::of_words(&words).source, output.stderr.trim())));
        }
        self.host.take_effects(&mut self.out);
        self.settle();
    }

    /// Acts on effects until there are none.
    fn settle(&mut self) {
        while !self.out.is_empty() {
            for effect in std::mem::take(&mut self.out) {
                match effect {
                    Effect::Kick(ifindex) => self.serve(ifindex),
                    Effect::Next(ifindex, packet) => {
                        self.with(|host, cx| host.comes_to(ifindex, packet, cx));
                        self.settle();
                    }
                    Effect::Deliver(packet) if self.line.ingress => self.left(packet, self.line.ifindex),
                    Effect::Deliver(packet) => self.note(packet, |_, _| Fate::Received),
                    Effect::Across { ifindex, how, packet, .. } => {
                        self.with(|host, cx| host.comes_across(ifindex, how, packet, cx));
                    }
                    Effect::Moved(packet) => self.pool.free(packet),
                    Effect::Orphaned(_) => {}
                    Effect::Dropped { packet, place, reason, .. } => {
                        let lost = |t_ns, skb: &Skb| Lost { t_ns, place, reason, class: class_of(skb) };
                        self.note(packet, |t_ns, skb| Fate::Dropped(lost(t_ns, skb)));
                    }
                }
            }
        }
    }

    /// The card takes what it can.
    fn serve(&mut self, ifindex: u32) {
        if self.more && ifindex == self.line.ifindex {
            self.owed += 1;
            return;
        }
        loop {
            let free = *self.busy.entry(ifindex).or_insert(self.now);
            if free > self.now || self.waits == Turn::Wire && ifindex == self.line.ifindex {
                return;
            }
            let Some(packet) = self.with(|host, cx| host.dequeue(ifindex, cx)) else { return };
            let rate = self.line.rate.filter(|_| ifindex == self.line.ifindex);
            self.busy.insert(ifindex, self.now + on_the_wire(&packet, rate));
            self.left(packet, ifindex);
        }
    }

    /// It has left by the device, or got in.
    fn left(&mut self, packet: Packet, ifindex: u32) {
        self.note(packet, |t_ns, skb| {
            Fate::Left(Box::new(Left { t_ns, ifindex, class: class_of(skb), skb: skb.clone() }))
        });
    }

    fn note(&mut self, packet: Packet, fate: impl FnOnce(i64, &Skb) -> Fate) {
        if packet.flow != FLOW {
            self.done.own += 1;
        } else if packet.rare().segment.is_some() {
            self.note_segment(&packet, fate);
        } else {
            let i = packet.seq as u32;
            let known = &mut self.done.fates[i as usize];
            if matches!(known, Fate::Left(_)) {
                self.done.copies += 1;
            } else {
                *known = fate((self.now - self.start).as_ns(), &packet);
                match known {
                    Fate::Left(_) => self.done.order.push(i),
                    Fate::Dropped(_) => self.done.lost.push(i),
                    _ => {}
                }
            }
        }
        self.pool.free(packet);
    }

    /// One of a packet's segments. The packet has left when the last one has that leaves, and is lost where all are.
    fn note_segment(&mut self, segment: &Skb, fate: impl FnOnce(i64, &Skb) -> Fate) {
        let i = segment.seq as u32;
        let What::Packet(whole) = &self.moments[i as usize].what else { return };
        let fate = fate((self.now - self.start).as_ns(), &as_whole(segment, whole));
        let known = &mut self.done.fates[i as usize];
        match (&mut *known, fate) {
            (Fate::Left(known), Fate::Left(left)) => known.t_ns = left.t_ns,
            (Fate::Left(_), Fate::Dropped(_)) => self.done.segments_lost += 1,
            (_, fate @ Fate::Dropped(_)) => {
                let lost = self.lost_of.entry(i).or_default();
                *lost += 1;
                if *lost == u64::from(whole.segments()) {
                    *known = fate;
                    self.done.lost.push(i);
                    self.lost_of.remove(&i);
                }
            }
            (_, fate) => {
                self.done.segments_lost += self.lost_of.remove(&i).unwrap_or(0);
                self.done.order.push(i);
                *known = fate;
            }
        }
    }

    /// When something happens by itself next.
    fn next(&self) -> Option<Time> {
        let cards = self.busy.iter().filter_map(|(&ifindex, &free)| match free > self.now {
            true => Some(free),
            false => self.host.next_wakeup(ifindex).map(|at| at.max(self.now + Span::from_ns(1))),
        });
        cards.chain(self.host.next_timer()).min()
    }

    /// The time of moment `i` comes, before or behind what the card does of itself then.
    fn comes(&mut self, i: usize, at: Time) {
        let (turn, more) = self.line.simulated.as_ref().map_or((Turn::Over, false), |s| s.turns[i]);
        if self.more {
            // Of the same call as the last.
        } else if turn == Turn::Over {
            self.until(at);
        } else {
            if at > self.now {
                self.until(at - Span::from_ns(1));
            }
            (self.now, self.waits) = (at, turn);
        }
        self.more |= more;
    }
    /// Moment `i` has been carried out: the card is asked as often as there were packets, if those of the call are all there.
    fn call_over(&mut self, i: usize) {
        if self.more && !self.line.simulated.as_ref().is_some_and(|s| s.turns[i].1) {
            self.more = false;
            for _ in 0..std::mem::take(&mut self.owed) {
                self.serve(self.line.ifindex);
                self.settle();
            }
        }
    }

    /// Lets happen what is due until `moment`, and puts the clock there.
    fn until(&mut self, moment: Time) {
        if std::mem::take(&mut self.waits) != Turn::Over {
            self.happen();
        }
        while let Some(at) = self.next().filter(|&at| at <= moment) {
            self.now = self.now.max(at);
            self.happen();
        }
        self.now = self.now.max(moment);
    }

    /// The cards whose wire becomes free now, or whose queue's timer is due, are asked; no other.
    fn happen(&mut self) {
        self.with(|host, cx| host.handle_timer(cx));
        self.settle();
        let due = |ifindex: &u32| self.host.next_wakeup(*ifindex).is_some_and(|at| at <= self.now);
        let asked = self.busy.iter().filter(|(ifindex, free)| **free == self.now || due(ifindex));
        let asked: Vec<u32> = asked.map(|(&ifindex, _)| ifindex).collect();
        for ifindex in asked {
            self.serve(ifindex);
        }
        self.settle();
    }

    /// Waits for the last packets.
    fn drain(&mut self) {
        let end = self.now + self.line.drain;
        while self.host.held_packets() > 0 {
            match self.next().filter(|&at| at <= end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            self.happen();
        }
    }
}
