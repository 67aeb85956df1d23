//! Elements that have a time or count something, and sets that packets add to.
//!
//! Follows: linux v6.12 `nft_set_hash.c` `nft_rhash_update`, `nft_rhash_gc`, `nf_tables_api.c` `nft_add_set_elem`, `nft_dynset.c` `nft_dynset_new`.
//! Differs: elements whose time is over make room at whole multiples of `gc-interval` from when the set was made, where the kernel's worker comes
//! a little later each time.

use super::super::eval::Way;
use super::super::places::{Key, Places};
use super::super::state::Memory;
use super::state::{State, evaluate};
use penstock_lang::nft::{Data, Dynset, Element, Expr, More, Set, Statement, Type, dynamic::Op, value};
use penstock_packet::Skb;

/// The size of a set that packets add to and that names none.
pub(super) const SIZE: u32 = 0xffff;

/// What an expression gives: a number, or a device's name.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Number(u128),
    Name(String),
}

/// A name as it lies in memory.
pub(super) fn of_name(name: &str) -> u128 {
    let mut bytes = [0u8; 16];
    for (b, c) in bytes.iter_mut().zip(name.bytes()) {
        *b = c;
    }
    u128::from_be_bytes(bytes)
}

/// A key in the kernel's registers (`NFT_REG32_COUNT`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Packed([u32; 16]);

impl Packed {
    fn of(parts: impl Iterator<Item = u128>, key: &[Type]) -> Option<Packed> {
        let (mut words, mut at) = ([0; 16], 0);
        for (part, ty) in parts.zip(key) {
            for n in (0..ty.bits().div_ceil(32)).rev() {
                *words.get_mut(at)? = (part >> (32 * n)) as u32;
                at += 1;
            }
        }
        Some(Packed(words))
    }
    fn seen(seen: &[Seen], key: &[Type]) -> Option<Packed> {
        let number = |s: &Seen| match s {
            Seen::Number(n) => *n,
            Seen::Name(name) => of_name(name),
        };
        Packed::of(seen.iter().map(number), key)
    }
    fn element(key: &Expr, types: &[Type]) -> Option<Packed> {
        match key {
            Expr::Concat(parts) => Packed::of(parts.iter().map(|p| value::bounds(p).0), types),
            one => Packed::of(std::iter::once(value::bounds(one).0), types),
        }
    }
}

impl Key for Packed {
    fn words(&self) -> [u64; 5] {
        let mut out = [0u64; 5];
        for (n, pair) in self.0.chunks(2).enumerate() {
            let word = u64::from(pair[0]) << 32 | u64::from(pair[1]);
            out[n % 5] ^= word.rotate_left(17 * (n as u32 / 5));
        }
        out
    }
}

/// An element beside its key in the set.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Entry {
    key: Expr,
    pub(super) data: Option<Data>,
    comment: Option<String>,
    /// How long it is kept, ticks; `None`: for good.
    timeout: Option<i64>,
    /// The tick at which it goes.
    until: Option<i64>,
    pub(super) states: Vec<State>,
}

impl Entry {
    fn is_over(&self, now: i64) -> bool {
        self.until.is_some_and(|until| now >= until)
    }
}

/// How a set's elements are kept besides [`Set::elements`].
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) enum Kept {
    /// They are that, and no more.
    #[default]
    Plain,
    /// They are here, by their keys.
    Hashed(Box<Hashed>),
    /// For each of them, in their order.
    Beside(Vec<Entry>),
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Hashed {
    entries: Places<Packed, Entry>,
    /// Elements that are out of the set and still take room in it.
    gone: u32,
    /// The tick at which those whose time is over next make room.
    next: i64,
}

/// The kernel's ticks.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) now: i64,
    pub(super) hz: i64,
}

impl Clock {
    pub(super) fn of(way: &Way<'_>) -> Clock {
        Clock { now: way.tracking.ticks(way.now), hz: way.tracking.hz() }
    }
    /// `nf_msecs_to_jiffies64`.
    fn ticks(self, ms: u64) -> i64 {
        (i128::from(ms) * i128::from(self.hz) / 1000).min(i64::MAX.into()) as i64
    }
    fn ms(self, ticks: i64) -> u64 {
        (ticks.max(0) as u64).saturating_mul(1000) / self.hz as u64
    }
}

/// Why an element is not taken.
pub(super) enum Refused {
    /// It is there.
    Exists,
    /// It is there and gives something else.
    Differs,
    /// There is no room.
    Full,
}

impl Kept {
    /// For a set that is made.
    pub(super) fn of(set: &Set, clock: Clock) -> Kept {
        match set.timeouts || set.dynamic || !set.states.is_empty() {
            true if set.interval => Kept::Beside(Vec::new()),
            true => Kept::Hashed(Box::new(Hashed::new(set, clock))),
            false => Kept::Plain,
        }
    }
    /// Packets add to it from now on: its elements are kept by their keys.
    pub(super) fn hash(&mut self, set: &mut Set, clock: Clock) {
        if *self != Kept::Plain {
            return;
        }
        let mut hashed = Hashed::new(set, clock);
        for element in std::mem::take(set.elements_mut()) {
            let more = element.more.map(|m| *m).unwrap_or_default();
            let entry = entry(set, element.key, element.data, more, clock);
            if let Some(key) = Packed::element(&entry.key, &set.key) {
                hashed.entries.insert(key, entry);
            }
        }
        *self = Kept::Hashed(Box::new(hashed));
    }
    pub(super) fn clear(&mut self) {
        match self {
            Kept::Plain => {}
            Kept::Hashed(h) => (h.entries, h.gone) = (Places::default(), 0),
            Kept::Beside(all) => all.clear(),
        }
    }
    /// Enters an element of a set that is not plain.
    pub(super) fn add(
        &mut self,
        set: &mut Set,
        new: Element,
        create: bool,
        clock: Clock,
    ) -> Result<(), Refused> {
        let more = new.more.map(|m| *m).unwrap_or_default();
        let fresh = entry(set, new.key, new.data, more, clock);
        match self {
            Kept::Plain => Ok(()),
            Kept::Hashed(h) => {
                h.sweep(set, None, clock);
                let Some(key) = Packed::element(&fresh.key, &set.key) else { return Ok(()) };
                let full = h.is_full(set);
                match h.entries.get_mut(&key).filter(|e| !e.is_over(clock.now)) {
                    Some(_) if create => Err(Refused::Exists),
                    Some(old) if old.data != fresh.data => Err(Refused::Differs),
                    Some(old) => {
                        renew(old, &fresh, clock);
                        Ok(())
                    }
                    None if full => Err(Refused::Full),
                    None => {
                        h.gone += u32::from(h.entries.get(&key).is_some());
                        h.entries.insert(key, fresh);
                        Ok(())
                    }
                }
            }
            Kept::Beside(all) => {
                drop_over(set, all, clock.now);
                match set.elements.iter().position(|e| e.key == fresh.key) {
                    Some(_) if create => Err(Refused::Exists),
                    Some(at) if set.elements[at].data != fresh.data => Err(Refused::Differs),
                    Some(at) => {
                        renew(&mut all[at], &fresh, clock);
                        Ok(())
                    }
                    None if set.size.is_some_and(|size| set.elements.len() >= size as usize) => {
                        Err(Refused::Full)
                    }
                    None => {
                        let order = value::order(&fresh.key);
                        let at = set.elements.partition_point(|e| value::order(&e.key) < order);
                        set.elements_mut().insert(at, Element::new(fresh.key.clone(), fresh.data.clone()));
                        all.insert(at, fresh);
                        Ok(())
                    }
                }
            }
        }
    }
    /// Takes an element out by its key; whether it was there. Not of plain sets.
    pub(super) fn remove(&mut self, set: &mut Set, key: &Expr, clock: Clock) -> bool {
        match self {
            Kept::Plain => false,
            Kept::Hashed(h) => {
                let Some(key) = Packed::element(key, &set.key) else { return false };
                let there = h.entries.get(&key).is_some_and(|e| !e.is_over(clock.now));
                if there {
                    h.entries.remove(&key);
                }
                there
            }
            Kept::Beside(all) => {
                drop_over(set, all, clock.now);
                let at = set.elements.iter().position(|e| e.key == *key);
                if let Some(at) = at {
                    set.elements_mut().remove(at);
                    all.remove(at);
                }
                at.is_some()
            }
        }
    }
    /// The set as it is shown: with its elements that are not over, and what each has.
    pub(super) fn shown(&self, set: &Set, clock: Clock) -> Set {
        let mut shown = set.clone();
        let elements = |all: &mut dyn Iterator<Item = &Entry>| -> Vec<Element> {
            all.filter(|e| !e.is_over(clock.now)).map(|e| element(e, set, clock)).collect()
        };
        *shown.elements_mut() = match self {
            Kept::Plain => set.elements.clone(),
            Kept::Hashed(h) => elements(&mut h.entries.iter().map(|(_, e)| e)),
            Kept::Beside(all) => elements(&mut all.iter()),
        };
        if *self != Kept::Plain {
            value::ordered(shown.elements_mut());
        }
        shown
    }
    /// The element of a hashed set that a packet shows.
    pub(super) fn find(&mut self, set: &Set, seen: &[Seen], now: i64) -> Option<&mut Entry> {
        let Kept::Hashed(h) = self else { return None };
        h.entries.get_mut(&Packed::seen(seen, &set.key)?).filter(|e| !e.is_over(now))
    }
    /// The element beside one of the set's.
    pub(super) fn at(&mut self, place: usize, now: i64) -> Option<&mut Entry> {
        let Kept::Beside(all) = self else { return None };
        all.get_mut(place).filter(|e| !e.is_over(now))
    }

    /// `nft_dynset_eval`: whether the rule goes on.
    pub(super) fn by_packet(
        &mut self,
        set: &Set,
        d: &Dynset,
        (seen, data): (&[Seen], Option<&[Seen]>),
        skb: &Skb,
        way: &mut Way<'_>,
    ) -> bool {
        let clock = Clock::of(way);
        let Kept::Hashed(h) = self else { return false };
        h.sweep(set, Some(&mut *way), clock);
        let Some(key) = Packed::seen(seen, &set.key) else { return false };
        let there = h.entries.get(&key).is_some_and(|e| !e.is_over(clock.now));
        if d.op == Op::Delete {
            if there {
                h.entries.remove(&key);
                h.gone += 1;
            }
            return true;
        }
        if !there {
            if h.is_full(set) {
                return false;
            }
            h.gone += u32::from(h.entries.get(&key).is_some());
            let timeout =
                d.timeout.or(set.timeout).map(|ms| clock.ticks(ms)).filter(|&t| t > 0 && set.timeouts);
            let states = if d.states.is_empty() { &set.states } else { &d.states };
            let entry = Entry {
                key: expr_of(seen, &set.key),
                data: data.zip(set.data).map(|(seen, ty)| Data::Value(expr_of(seen, &[ty]))),
                comment: None,
                timeout,
                until: timeout.map(|t| clock.now + t),
                states: states.iter().map(State::copy).collect(),
            };
            h.entries.insert(key, entry);
        }
        let Some(entry) = h.entries.get_mut(&key) else { return false };
        if there && d.op == Op::Update && entry.timeout.is_some() {
            let timeout = d.timeout.or(set.timeout).map_or(0, |ms| clock.ticks(ms));
            entry.until = Some(clock.now + timeout);
        }
        evaluate(&mut entry.states, skb, way)
    }
}

impl Hashed {
    fn new(set: &Set, clock: Clock) -> Hashed {
        Hashed { entries: Places::default(), gone: 0, next: clock.now + every(set, clock) }
    }
    fn is_full(&self, set: &Set) -> bool {
        set.size.is_some_and(|size| self.entries.len() + self.gone as usize >= size as usize)
    }
    /// `nft_rhash_gc`, as often as it has come by now.
    fn sweep(&mut self, set: &Set, way: Option<&mut Way<'_>>, clock: Clock) {
        if clock.now < self.next || !(set.timeouts || set.dynamic) {
            return;
        }
        let every = every(set, clock);
        let last = self.next + (clock.now - self.next).div_euclid(every) * every;
        self.next = last + every;
        self.gone = 0;
        let mut gone: Vec<Packed> = Vec::new();
        let counts = |s: &State| matches!(s.statement, Statement::Count { .. });
        if let Some(way) = way
            && set.states.iter().any(|s| matches!(s, Statement::Count { .. }))
                | self.entries.iter().any(|(_, e)| e.states.iter().any(counts))
        {
            for (key, entry) in self.entries.iter_mut() {
                if entry.states.iter_mut().any(|s| s.forgets(way)) {
                    gone.push(*key);
                }
            }
        }
        gone.extend(self.entries.iter().filter(|(_, e)| e.is_over(last)).map(|(key, _)| *key));
        gone.iter().for_each(|key| self.entries.remove(key));
    }
}

/// `nft_set_gc_interval`.
fn every(set: &Set, clock: Clock) -> i64 {
    set.gc_interval.map_or(clock.hz, |ms| ((ms as i64).saturating_mul(clock.hz) + 999) / 1000).max(1)
}

/// An element that is there is entered again: its time may be another (`nft_setelem_update`).
fn renew(old: &mut Entry, new: &Entry, clock: Clock) {
    if new.timeout.is_none() || old.timeout.is_none() {
        return;
    }
    if old.timeout != new.timeout {
        (old.timeout, old.until) = (new.timeout, new.until);
    } else if new.until != new.timeout.map(|t| clock.now + t) {
        old.until = new.until;
    }
}

/// Those of a set of intervals whose time is over go.
fn drop_over(set: &mut Set, all: &mut Vec<Entry>, now: i64) {
    if all.iter().any(|e| e.is_over(now)) {
        let mut at = all.iter().map(|e| !e.is_over(now)).collect::<Vec<_>>().into_iter();
        set.elements_mut().retain(|_| at.next().unwrap_or(true));
        all.retain(|e| !e.is_over(now));
    }
}

fn entry(set: &Set, key: Expr, data: Option<Data>, more: More, clock: Clock) -> Entry {
    let timeout = more.timeout.or(set.timeout).map(|ms| clock.ticks(ms)).filter(|&t| t > 0 && set.timeouts);
    let until = timeout.map(|t| clock.now + more.expires.map_or(t, |ms| clock.ticks(ms)));
    let states = match more.states.as_slice() {
        [] => set.states.iter().map(State::copy).collect(),
        own => own.iter().map(State::begin).collect(),
    };
    Entry { key, data, comment: more.comment, timeout, until, states }
}

/// An element as it is shown: a time that all have is not told of each.
fn element(e: &Entry, set: &Set, clock: Clock) -> Element {
    let own = e.timeout.filter(|&t| set.timeout.is_none_or(|ms| clock.ticks(ms) != t));
    let more = More {
        timeout: own.map(|t| clock.ms(t)),
        expires: e.until.map(|until| clock.ms(until - clock.now)),
        comment: e.comment.clone(),
        states: e.states.iter().map(|s| s.statement.clone()).collect(),
    };
    let plain = more == More::default();
    Element { key: e.key.clone(), data: e.data.clone(), more: (!plain).then(|| Box::new(more)) }
}

/// What was seen as a value of these types.
fn expr_of(seen: &[Seen], types: &[Type]) -> Expr {
    let one = |(seen, ty): (&Seen, &Type)| match seen {
        Seen::Name(name) => Expr::Name(name.clone()),
        Seen::Number(n) if ty.is_flags() => Expr::Flags(*n, None, *ty),
        Seen::Number(n) => Expr::Value(*n, *ty),
    };
    let mut parts: Vec<Expr> = seen.iter().zip(types).map(one).collect();
    if parts.len() == 1 { parts.swap_remove(0) } else { Expr::Concat(parts) }
}

impl State {
    fn begin(statement: &Statement) -> State {
        State { statement: statement.clone(), memory: Memory::default() }
    }
    /// From what a set or a rule declares for each element (`nft_expr_clone`).
    fn copy(statement: &Statement) -> State {
        let mut state = State::begin(statement);
        if let Statement::Quota(q) = &mut state.statement {
            q.used = 0;
        }
        state
    }
}
