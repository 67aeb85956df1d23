//! The tables of actions, and what holds an action in them.
//!
//! Follows: linux v6.12 `net/sched/act_api.c` `tcf_idr_create`, `tcf_action_init`, `tcf_action_init_1`, `tcf_action_dump_1`,
//! `tcf_tm_dump`.

use super::ct::Connections;
use super::exec::{Counts, Ports, Sent};
use super::going::{Going, Shrinking};
use super::{Act, ActSpec, Init, MAX_PRIO, Offload, Ready, SKIP_HW, SKIP_SW, find, goto_chain, refusal};
use crate::estimator::Estimator;
use penstock_model::{Kernel, KernelError, Options, Stats, Time};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// One action: `struct tc_action`.
pub(super) struct Action {
    pub spec: &'static ActSpec,
    pub index: u32,
    /// `tc actions` made it, and it stays without filters.
    pub standalone: bool,
    /// One more of these for each filter that holds it; it says when the last one let go ([`Going::next`]).
    bound: Arc<AtomicU32>,
    /// Its table's count of holds that ended.
    ended: Arc<AtomicU32>,
    going: Arc<Going>,
    /// Made by a list that is still being read.
    pub pending: bool,
    pub control: i32,
    pub flags: u32,
    /// What it has counted.
    pub counts: Counts,
    /// When it first met a packet.
    pub first_used: Option<Time>,
    /// A filter made it (`TCA_ACT_FLAGS_BIND` of its flags).
    by_filter: bool,
    hw_stats: u32,
    cookie: Vec<u8>,
    /// `struct tcf_t`.
    installed: Time,
    pub used: Time,
    /// Its counters were once asked of hardware, which had none (`used_hw_stats_valid`).
    asked: Cell<bool>,
    pub params: Box<dyn Act>,
}

impl Action {
    /// `tcfa_bindcnt`.
    pub fn bind(&self) -> u32 {
        Arc::strong_count(&self.bound) as u32 - 1
    }
    /// `tcfa_refcnt`.
    pub fn refs(&self) -> u32 {
        self.bind() + u32::from(self.standalone)
    }
    fn hold(&self) -> ActRef {
        ActRef {
            kind: self.spec.id,
            index: self.index,
            bound: Arc::clone(&self.bound),
            ended: Arc::clone(&self.ended),
            going: Arc::clone(&self.going),
        }
    }
    /// The kind's options with what all kinds dump.
    fn options(&self, now: Time) -> Options {
        let mut options = self.params.dump(now);
        debug_assert!(!options.has("action"), "{}", self.spec.id);
        for (name, value) in [("index", self.index), ("ref", self.refs()), ("bind", self.bind())] {
            options = options.with(name, value);
        }
        options
            .with("action", i64::from(self.control))
            .with("installed", hundredths(now, self.installed))
            .with("used", hundredths(now, self.used))
            .with("firstused", self.first_used.map_or(0, |at| hundredths(now, at)))
            .with("expires", jiffies(self.params.expires()) * 100 / HZ)
    }
    fn stats(&self, now: Time) -> Stats {
        let stats = self.counts.stats;
        let rate = self.counts.estimator.map(|e| e.rate_at(now, stats.bytes, stats.packets));
        Stats { rate, ..stats }
    }
    /// `tcf_action_update_hw_stats`, which the listing of a table asks for.
    pub fn ask_hardware(&self) {
        if !matches!(self.params.offload(self.control), Offload::No | Offload::Says(_)) {
            self.asked.set(true);
        }
    }
    /// `tcf_exts_hw_stats_update`: what hardware once said is replaced by what the filter's own hardware says, and it has none.
    fn forget_hardware(&self) {
        self.asked.set(false);
    }
    /// `tcf_action_dump_1`.
    fn dump(&self, order: u32, now: Time) -> Options {
        let mut o = Options::new()
            .with("order", order)
            .with("kind", self.spec.id)
            .with("stats", self.stats(now).to_options());
        if !self.cookie.is_empty() {
            o = o.with("cookie", self.cookie.clone());
        }
        if self.hw_stats != HW_STATS_ANY {
            o = o.with("hw_stats", self.hw_stats);
        }
        if self.asked.get() {
            o = o.with("used_hw_stats", 0u32);
        }
        if self.flags != 0 {
            o = o.with("flags", self.flags);
        }
        o.with("in_hw_count", 0u32).with("options", self.options(now))
    }
}

/// `TCA_ACT_HW_STATS_ANY`.
const HW_STATS_ANY: u32 = 3;
/// Jiffies a second.
const HZ: u64 = 250;

fn jiffies(at: Time) -> u64 {
    at.as_ns().max(0) as u64 / (1_000_000_000 / HZ)
}
/// `jiffies_to_clock_t` of the time since `then`.
fn hundredths(now: Time, then: Time) -> u64 {
    (jiffies(now) - jiffies(then).min(jiffies(now))) * 100 / HZ
}

/// The actions of one kind: `struct tcf_idrinfo`.
#[derive(Default)]
pub(super) struct Table {
    actions: BTreeMap<u32, Action>,
    /// The last index 2.6.35 chose.
    chosen: u32,
    /// Holds that ended since the last sweep.
    ended: Arc<AtomicU32>,
    /// No index from 1 to below this one was free when it was last looked for.
    full: Cell<u32>,
    /// Indices of actions that are gone and not freed yet, and how many programs have begun since, or [`BARRED`].
    waiting: BTreeMap<u32, u8>,
}

impl Table {
    /// Whether there is no action.
    pub(super) fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }
    /// The action with this index.
    pub fn at(&self, index: u32) -> Option<&Action> {
        self.actions.get(&index).filter(|a| a.pending || a.refs() > 0)
    }
    /// All of them, by index.
    pub fn iter(&self) -> impl Iterator<Item = &Action> {
        self.actions.values().filter(|a| a.refs() > 0)
    }
    pub fn remove(&mut self, index: u32) {
        self.full.set(0);
        self.actions.remove(&index);
    }
    /// The same, to run or change it.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Action> {
        self.actions.get_mut(&index)
    }
    fn at_mut(&mut self, index: u32) -> &mut Action {
        self.actions.get_mut(&index).expect("the action is there")
    }
    /// The index the kernel gives: today the lowest that is free, in 2010 the next one.
    pub fn unused(&self, kernel: Kernel) -> u32 {
        match kernel {
            Kernel::V2_6_35 => {
                let after = (1..=u32::MAX).map(|n| self.chosen.wrapping_add(n)).filter(|&i| i != 0);
                after.into_iter().find(|&i| self.at(i).is_none()).expect("not all indices are taken")
            }
            Kernel::V6_12 | Kernel::V7_2 => {
                let mut free = self.full.get().max(1);
                while self.at(free).is_some() || self.waiting.contains_key(&free) {
                    free += 1;
                }
                self.full.set(free);
                free
            }
        }
    }
    /// Forgets what nobody holds any more.
    fn sweep(&mut self) {
        if self.ended.swap(0, Ordering::Relaxed) == 0 {
            return;
        }
        self.full.set(0);
        self.actions.retain(|_, a| a.pending || a.refs() > 0);
    }
}

/// A filter's hold on an action. The action lives while one exists.
#[derive(Debug)]
pub struct ActRef {
    kind: &'static str,
    index: u32,
    bound: Arc<AtomicU32>,
    ended: Arc<AtomicU32>,
    going: Arc<Going>,
}

impl Drop for ActRef {
    fn drop(&mut self) {
        self.bound.store(self.going.next(), Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

impl ActRef {
    /// The action's kind.
    pub fn kind(&self) -> &'static str {
        self.kind
    }
    /// Its index.
    pub fn index(&self) -> u32 {
        self.index
    }
}

/// What a dump needs besides the tree.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The machine's actions.
    pub acts: &'a Actions,
    /// The present moment.
    pub now: Time,
}

/// All actions of one machine.
#[derive(Default)]
pub struct Actions {
    pub(super) tables: BTreeMap<&'static str, Table>,
    /// What mirred has sent elsewhere.
    pub(crate) sent: Vec<Sent>,
    /// The device that a program has named for the packet at hand, and whether it is to be received there (`struct bpf_redirect_info`).
    pub(crate) redirect: Option<(u32, bool)>,
    /// The machine's devices.
    pub(super) ports: Ports,
    /// Its connections, while they are lent.
    pub(super) connections: Option<Box<dyn Connections>>,
    /// A filter looks at connections, or has.
    pub(super) look_at_connections: bool,
    going: Arc<Going>,
    /// The worker that frees filters waits for a tick.
    barred: bool,
}

/// Of an index: the worker that frees it waits for a tick.
const BARRED: u8 = u8::MAX;
const LATE: &str = "act_api: Failed to setup tc actions for offload";

/// What came of a list.
pub(crate) struct Made {
    /// The holds of the filter that asked.
    pub held: Vec<ActRef>,
    /// The sentence 6.12 adds although all went well.
    pub warning: Option<&'static str>,
}

/// Who asks for a list of actions, and how.
pub(crate) struct Ask {
    pub kernel: Kernel,
    pub now: Time,
    /// A filter, and its `skip_hw` and `skip_sw` as an action's flags.
    pub filter: Option<u32>,
    pub replace: bool,
    /// The filter's old `police`.
    pub police: bool,
    pub estimator: Option<(i8, u8)>,
    /// The filter is one of arriving packets.
    pub ingress: bool,
    /// It hangs on an `ingress` or a `clsact` qdisc.
    pub clsact: bool,
}

impl Actions {
    /// A command is over. What a filter that is gone held alone the kernel frees after a grace period, by a worker; until then its index is
    /// taken. Whoever calls this says by [`Actions::idle`] when the kernel had nothing to do, by [`Actions::program_begins`] when a
    /// program began, and by [`Actions::ticked`] when the clock ticked. Of a command that was `refused` nothing is kept. Without this call
    /// an index is free at once.
    pub fn command_over(&mut self, refused: bool) {
        let bar = self.going.take_bar().filter(|_| !refused);
        let barred = self.barred;
        self.barred |= bar.is_some();
        let waits = |a: &Action| {
            let behind = bar.is_some_and(|bar| a.bound.load(Ordering::Relaxed) > bar);
            if barred || behind { BARRED } else { 0 }
        };
        for table in self.tables.values_mut() {
            if !refused && table.ended.load(Ordering::Relaxed) > 0 {
                let gone = table.actions.values().filter(|a| !a.pending && a.refs() == 0);
                table.waiting.extend(gone.map(|a| (a.index, waits(a))));
            }
            table.sweep();
        }
    }
    /// A program begins: the worker has its turn when it is the one of that number since.
    pub fn program_begins(&mut self, turns: u8) {
        self.free(|begun| {
            *begun = if *begun == BARRED { BARRED } else { *begun + 1 };
            *begun == BARRED || *begun < turns
        });
    }
    /// The kernel has nothing to do: what waits for the worker's turn is freed.
    pub fn idle(&mut self) {
        self.free(|begun| *begun == BARRED);
    }
    /// The clock ticks: a worker that waited for it goes on.
    pub fn ticked(&mut self) {
        self.going.tick();
        if std::mem::take(&mut self.barred) {
            self.free(|begun| *begun != BARRED);
        }
    }
    fn free(&mut self, mut waits_on: impl FnMut(&mut u8) -> bool) {
        for table in self.tables.values_mut().filter(|table| !table.waiting.is_empty()) {
            table.waiting.retain(|_, begun| waits_on(begun));
            table.full.set(0);
        }
    }
    /// The table of filters behind a new mask of flower.
    pub(crate) fn shrinking(&self) -> Shrinking {
        Shrinking::new(&self.going)
    }
    /// None yet.
    pub fn new() -> Actions {
        Actions::default()
    }
    pub(super) fn table(&mut self, kind: &'static str) -> &mut Table {
        let table = self.tables.entry(kind).or_default();
        table.sweep();
        table
    }
    fn action(&self, held: &ActRef) -> &Action {
        self.tables[held.kind].at(held.index).expect("an action that is held is there")
    }
    /// `tcf_action_dump` of a filter's actions, numbered from 1.
    pub(crate) fn dump_held<'r>(&self, held: impl Iterator<Item = &'r ActRef>, now: Time) -> Vec<Options> {
        (1..).zip(held).map(|(order, r)| self.action(r).dump(order, now)).collect()
    }
    /// A filter that is itself left to hardware asks that for its counters before it is dumped.
    pub(crate) fn forget_hardware<'r>(&self, held: impl Iterator<Item = &'r ActRef>) {
        held.for_each(|r| self.action(r).forget_hardware());
    }
    /// `tcf_action_dump_old`: the kind's options alone.
    pub(crate) fn dump_old(&self, held: &ActRef, now: Time) -> Options {
        let action = self.action(held);
        action.options(now).with("stats", action.stats(now).to_options())
    }
    /// The chain that an action goes to.
    pub(crate) fn chain_of(&self, held: &ActRef) -> Option<u32> {
        goto_chain(self.action(held).control)
    }
    /// Several actions of one table as they are dumped.
    pub(super) fn dump_numbered<'r>(
        &self,
        picked: impl Iterator<Item = (u32, &'static str, u32)> + 'r,
        now: Time,
    ) -> Vec<Options> {
        picked
            .map(|(order, kind, index)| self.tables[kind].at(index).expect("it was found").dump(order, now))
            .collect()
    }

    /// A device is gone: what pointed at it points nowhere.
    pub fn device_gone(&mut self, name: &str) {
        self.each(&mut |params| params.device_gone(name));
    }
    /// A device has another name.
    pub fn device_renamed(&mut self, old: &str, new: &str) {
        self.each(&mut |params| params.device_renamed(old, new));
    }
    fn each(&mut self, work: &mut dyn FnMut(&mut dyn Act)) {
        for action in self.tables.values_mut().flat_map(|t| t.actions.values_mut()) {
            work(&mut *action.params);
        }
    }

    /// `tcf_action_init`: makes, changes or binds the actions of a list, all of them or none. What replaced an action's
    /// parameters before another one failed stays replaced.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub(crate) fn init(&mut self, list: &[Options], ask: &Ask) -> Result<Made, KernelError> {
        if ask.kernel >= Kernel::V7_2 && list.len() > MAX_PRIO {
            return Err(refusal(ask.kernel, KernelError::EINVAL, "Only 32 actions supported per filter"));
        }
        let mut specs = Vec::new();
        for one in list.iter().take(MAX_PRIO) {
            specs.push(load(one.str("kind"), ask.kernel)?);
        }
        let mut made: Vec<(&'static str, u32)> = Vec::new();
        let (mut held, mut warning) = (Vec::new(), None);
        let mut result = Ok(());
        for (one, spec) in list.iter().zip(specs) {
            match self.init_1(one, spec, ask) {
                Ok((index, fresh)) => {
                    if fresh {
                        made.push((spec.id, index));
                    }
                    let action = self.table(spec.id).at_mut(index);
                    if ask.filter.is_some() {
                        held.push(action.hold());
                    }
                    result = offload(action, ask, &mut warning);
                }
                Err(e) => result = Err(e),
            }
            if result.is_err() {
                break;
            }
        }
        for (kind, index) in made {
            let table = self.table(kind);
            if result.is_err() {
                table.remove(index);
            } else {
                let action = table.at_mut(index);
                action.pending = false;
                action.standalone = ask.filter.is_none();
            }
        }
        result.map(|()| Made { held, warning })
    }

    /// `tcf_action_init_1`: the action's index, and whether it is new.
    fn init_1(
        &mut self,
        one: &Options,
        spec: &'static ActSpec,
        ask: &Ask,
    ) -> Result<(u32, bool), KernelError> {
        let flags = one.u32("flags").unwrap_or(0);
        if flags & (SKIP_HW | SKIP_SW) == SKIP_HW | SKIP_SW {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        let going = Arc::clone(&self.going);
        let table = self.table(spec.id);
        let init = Init {
            kernel: ask.kernel,
            now: ask.now,
            bind: ask.filter.is_some(),
            replace: ask.replace,
            police: ask.police,
            flags,
            ingress: ask.ingress,
            clsact: ask.clsact,
            estimator: ask.estimator,
            table,
        };
        let ready = (spec.init)(&init, one.nested("options"))?;
        let (index, fresh) = match ready {
            Ready::Bound(index) => (index, false),
            Ready::Set { place, control, params } if place.exists => {
                let action = table.at_mut(place.index);
                (action.control, action.params) = (control, params);
                if let Some(spec) = ask.estimator {
                    let stats = action.counts.stats;
                    let mut new = Estimator::new(ask.kernel, spec, ask.now, stats.bytes, stats.packets)?;
                    if let Some(old) = &action.counts.estimator {
                        new = new.continuing(old);
                    }
                    action.counts.estimator = Some(new);
                }
                (place.index, false)
            }
            Ready::Set { place, control, params } => {
                let estimator = match ask.estimator {
                    Some(spec) => Some(Estimator::new(ask.kernel, spec, ask.now, 0, 0)?),
                    None => None,
                };
                let action = Action {
                    spec,
                    index: place.index,
                    standalone: false,
                    bound: Arc::default(),
                    ended: Arc::clone(&table.ended),
                    going: Arc::clone(&going),
                    pending: true,
                    control,
                    flags,
                    counts: Counts { estimator, ..Counts::default() },
                    first_used: None,
                    by_filter: ask.filter.is_some(),
                    hw_stats: HW_STATS_ANY,
                    cookie: Vec::new(),
                    installed: ask.now,
                    used: ask.now,
                    asked: Cell::new(false),
                    params,
                };
                if one.nested("options").is_none_or(|o| o.u32("index").unwrap_or(0) == 0) {
                    table.chosen = place.index;
                }
                table.actions.insert(place.index, action);
                (place.index, true)
            }
        };
        if ask.police {
            // Nobody sets it.
            table.at_mut(index).hw_stats = 0;
        } else if ask.kernel >= Kernel::V6_12 {
            let action = table.at_mut(index);
            if let Some(cookie) = one.bytes("cookie") {
                action.cookie = cookie.to_vec();
            }
            action.hw_stats = one.u32("hw_stats").unwrap_or(HW_STATS_ANY);
        }
        Ok((index, fresh))
    }
}

/// `tc_action_load_ops`.
fn load(kind: Option<&str>, kernel: Kernel) -> Result<&'static ActSpec, KernelError> {
    let no = |errno, why| Err(refusal(kernel, errno, why));
    match kind {
        None => no(KernelError::EINVAL, "TC action kind must be specified"),
        Some(kind) if kind.len() >= 16 => no(KernelError::EINVAL, "TC action name too long"),
        Some(kind) => find(kind, kernel)
            .ok_or_else(|| refusal(kernel, KernelError::ENOENT, "Failed to load TC action module")),
    }
}

/// What of an action is left to hardware has to be the same of the filter; and there is no hardware here.
fn offload(action: &mut Action, ask: &Ask, warning: &mut Option<&'static str>) -> Result<(), KernelError> {
    let skips = action.flags & (SKIP_HW | SKIP_SW);
    match ask.filter {
        _ if ask.police => Ok(()),
        None if ask.kernel == Kernel::V2_6_35 || skips & SKIP_HW != 0 => Ok(()),
        None => {
            let (errno, said) = match action.params.offload(action.control) {
                Offload::Yes => (KernelError::EINVAL, None),
                Offload::No => (KernelError::EOPNOTSUPP, None),
                Offload::Says(why) => (KernelError::EOPNOTSUPP, Some(why)),
                Offload::Late => (KernelError::EOPNOTSUPP, Some(LATE)),
            };
            *warning = said.or(*warning);
            if skips & SKIP_SW == 0 {
                return Ok(());
            }
            Err(refusal(ask.kernel, errno, warning.unwrap_or("")))
        }
        Some(filter) => {
            let mismatch = if action.by_filter { skips & !filter != 0 } else { skips != filter };
            if mismatch {
                let why = "Mismatch between action and filter offload flags";
                return Err(refusal(ask.kernel, KernelError::EINVAL, why));
            }
            if action.by_filter {
                action.flags |= filter;
            }
            Ok(())
        }
    }
}
