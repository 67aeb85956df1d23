//! A gate control list: which gates are open when, how long each stays open, and how far the schedule has come.
//!
//! Follows: linux v6.12 `net/sched/sch_taprio.c` `struct sched_gate_list`, `struct sched_entry`.

use penstock_model::{KernelError, Options};
use penstock_packet::Skb;

/// `TC_MAX_QUEUE`: most traffic classes.
pub const CLASSES_MAX: usize = 16;
/// `ETH_ZLEN`: the shortest frame, bytes.
const SHORTEST: u32 = 60;
/// `KTIME_MAX`: a gate that never closes.
const NEVER: i64 = i64::MAX;
/// `ETH_MAX_MTU`, which a device takes at most.
const MTU_MAX: u32 = 65_535;

/// `picos_per_byte`: how long a byte takes on the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteTime(u64);

impl ByteTime {
    /// `taprio_set_picos_per_byte`, with what it says of a line that is too fast.
    pub fn of(mbit: u32) -> (ByteTime, Option<String>) {
        const LEAST: u64 = 17;
        let picos = 8_000_000 / u64::from(mbit.max(1));
        let warning = format!("sch_taprio: Link speed {mbit} is too high. Schedule may be inaccurate.");
        (ByteTime(picos.max(LEAST)), (picos < LEAST).then_some(warning))
    }
    /// `length_to_duration`, ns.
    pub fn duration(self, bytes: u32) -> i64 {
        i64::from((u64::from(bytes) * self.0 / 1000) as i32)
    }
    /// `duration_to_length`, bytes.
    fn length(self, ns: u64) -> i32 {
        (ns.wrapping_mul(1000) / self.0) as i32
    }
}

/// `struct sched_entry`: times in ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    cmd: u32,
    /// The gates that are open.
    pub mask: u32,
    interval: u32,
    /// How long each class's gate is open from this entry's beginning on.
    duration: [u64; CLASSES_MAX],
    /// Bytes that each class may still send before its gate closes.
    budget: [i32; CLASSES_MAX],
    close: [i64; CLASSES_MAX],
    pub end: i64,
    next_txtime: i64,
}

impl Entry {
    /// `taprio_entry_allows_tx`.
    pub fn allows(&self, end: i64, class: usize) -> bool {
        end < self.close[class]
    }
    /// `taprio_update_budgets`: what is left to the class that sends.
    pub fn spend(&mut self, len: u32, class: usize, classes: usize) -> i32 {
        let mut left = 0;
        for (n, budget) in self.budget[..classes].iter_mut().enumerate() {
            if *budget != i32::MAX {
                *budget = budget.wrapping_sub(len as i32);
            }
            if n == class {
                left = *budget;
            }
        }
        left
    }
}

/// `struct sched_gate_list`: times in ns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    pub base_time: i64,
    pub cycle_time: i64,
    extension: i64,
    pub entries: Vec<Entry>,
    /// The longest that each class's gate is open at a stretch.
    longest: [u64; CLASSES_MAX],
    /// The longest frame of each class.
    frame_max: [u32; CLASSES_MAX],
    /// The same without the link's header, 0: any.
    max_sdu: [u32; CLASSES_MAX],
    cycle_end: i64,
}

fn no<T>(sentence: &str) -> Result<T, KernelError> {
    Err(KernelError::new(KernelError::EINVAL, sentence))
}

impl Schedule {
    /// `parse_taprio_schedule`, on a line of this speed.
    ///
    /// # Errors
    /// The kernel's sentences.
    pub fn parse(options: &Options, byte: ByteTime, classes: usize) -> Result<Schedule, KernelError> {
        let time = |name: &str| options.i64(name).unwrap_or(0);
        let shortest = byte.duration(SHORTEST);
        let mut entries = Vec::new();
        for entry in options.list("sched-entry") {
            let number = |name: &str| entry.u32(name).unwrap_or(0);
            if i64::from(number("interval")) < shortest {
                return no("Invalid interval for schedule entry");
            }
            entries.push(Entry {
                cmd: number("cmd"),
                mask: number("gate-mask"),
                interval: number("interval"),
                duration: [0; CLASSES_MAX],
                budget: [0; CLASSES_MAX],
                close: [0; CLASSES_MAX],
                end: 0,
                next_txtime: 0,
            });
        }
        let mut cycle_time = time("cycle-time");
        if cycle_time == 0 {
            cycle_time = entries.iter().map(|e| i64::from(e.interval)).sum();
            if cycle_time > i64::from(i32::MAX) {
                return no("'cycle_time' is too big");
            }
        }
        if cycle_time < entries.len() as i64 * shortest {
            return no("'cycle_time' is too small");
        }
        let mut schedule = Schedule {
            base_time: time("base-time"),
            cycle_time,
            extension: time("cycle-time-extension"),
            entries,
            longest: [0; CLASSES_MAX],
            frame_max: [u32::MAX; CLASSES_MAX],
            max_sdu: [0; CLASSES_MAX],
            cycle_end: 0,
        };
        schedule.reckon_durations(classes);
        Ok(schedule)
    }
    /// `taprio_calculate_gate_durations`.
    fn reckon_durations(&mut self, classes: usize) {
        let count = self.entries.len();
        for from in 0..count {
            let mut open = self.entries[from].mask;
            let mut duration = [0; CLASSES_MAX];
            for n in 0..count {
                let (mask, interval) = {
                    let entry = &self.entries[(from + n) % count];
                    (entry.mask, entry.interval)
                };
                open &= mask;
                for (class, duration) in duration.iter_mut().enumerate().take(classes) {
                    *duration += if open >> class & 1 == 1 { u64::from(interval) } else { 0 };
                }
            }
            for (longest, duration) in self.longest.iter_mut().zip(duration) {
                *longest = duration.max(*longest);
            }
            self.entries[from].duration = duration;
        }
    }
    /// `taprio_update_queue_max_sdu`: `wishes` are the user's, 0: none.
    pub fn limit_frames(&mut self, byte: ByteTime, wishes: &[u32; CLASSES_MAX], header: u32, classes: usize) {
        for (class, &wish) in wishes.iter().enumerate().take(classes) {
            let mut most = u32::MAX;
            if self.longest[class] != self.cycle_time as u64 {
                let sdu = (byte.length(self.longest[class]) as u32).wrapping_sub(header);
                if sdu <= MTU_MAX {
                    most = sdu;
                }
            }
            if wish != 0 {
                most = most.min(wish);
            }
            self.max_sdu[class] = if most == u32::MAX { 0 } else { most };
            self.frame_max[class] = if most == u32::MAX { most } else { most + header };
        }
    }
    /// Whether a frame is longer than its class may send.
    pub fn is_too_long(&self, len: u32, class: usize) -> bool {
        len > self.frame_max[class]
    }
    /// `taprio_get_start_time`.
    pub fn start(&self, now: i64) -> i64 {
        if self.base_time > now {
            return self.base_time;
        }
        let cycles = now.wrapping_sub(self.base_time) / self.cycle_time;
        self.base_time.wrapping_add((cycles + 1).wrapping_mul(self.cycle_time))
    }
    /// `setup_txtime`.
    pub fn set_txtimes(&mut self, start: i64) {
        let mut at = start;
        for entry in &mut self.entries {
            entry.next_txtime = at;
            at = at.wrapping_add(i64::from(entry.interval));
        }
    }
    fn set_close(&mut self, entry: usize, from: i64, classes: usize) {
        let entry = &mut self.entries[entry];
        for (close, &duration) in entry.close.iter_mut().zip(&entry.duration).take(classes) {
            let always = duration == self.cycle_time as u64;
            *close = if always { NEVER } else { from.wrapping_add(duration as i64) };
        }
    }
    /// `taprio_set_budgets`.
    fn set_budgets(&mut self, entry: usize, byte: ByteTime, classes: usize) {
        let entry = &mut self.entries[entry];
        for (budget, &duration) in entry.budget.iter_mut().zip(&entry.duration).take(classes) {
            *budget = if duration == self.cycle_time as u64 { i32::MAX } else { byte.length(duration) };
        }
    }
    /// `setup_first_end_time`.
    pub fn begin_at(&mut self, start: i64, byte: ByteTime, classes: usize) {
        self.cycle_end = start.wrapping_add(self.cycle_time);
        let first = &mut self.entries[0];
        first.end = start.wrapping_add(i64::from(first.interval));
        self.set_budgets(0, byte, classes);
        self.set_close(0, start, classes);
    }
    /// `should_change_schedules`: whether this one, which an entry that ends then would carry on, gives way to another.
    fn gives_way(&self, to: &Schedule, end: i64) -> bool {
        to.base_time <= end || to.base_time <= end.wrapping_add(self.extension)
    }
    /// Whole cycles go by in which nobody looks: as many as end before `until`.
    pub fn skip_cycles(&mut self, current: usize, until: i64) {
        let lag = until.saturating_sub(self.entries[current].end);
        let by = (lag / self.cycle_time - 1).max(0) * self.cycle_time;
        self.cycle_end += by;
        let entry = &mut self.entries[current];
        entry.end += by;
        entry.close.iter_mut().filter(|close| **close != NEVER).for_each(|close| *close += by);
    }
    /// `get_cycle_time_elapsed`.
    fn elapsed(&self, time: i64) -> i64 {
        time.wrapping_sub(self.base_time) % self.cycle_time
    }
    /// `get_interval_end_time`.
    fn interval_end(&self, admin: Option<i64>, entry: usize, start: i64) -> i64 {
        let cycle_end = start + (self.cycle_time - self.elapsed(start));
        let end = start + i64::from(self.entries[entry].interval);
        let extended = cycle_end + self.extension;
        match admin {
            _ if end < cycle_end => end,
            Some(base) if base > cycle_end && base < extended => base,
            _ => cycle_end,
        }
    }
    /// `find_entry_to_transmit`: the entry, and from when to when it is this. `admin`: when another schedule begins. `exactly`: only whether the
    /// gate is open at `time`.
    pub fn find(
        &self,
        (class, duration): (usize, i64),
        admin: Option<i64>,
        time: i64,
        exactly: bool,
    ) -> Option<(usize, i64, i64)> {
        let (mut found, mut available, mut earliest) = (None, false, NEVER);
        let mut end = time - self.elapsed(time);
        let cycle_end = end + self.cycle_time;
        for (n, entry) in self.entries.iter().enumerate() {
            let start = end;
            end = self.interval_end(admin, n, start);
            if start > cycle_end {
                break;
            }
            if entry.mask >> class & 1 == 0 || duration > i64::from(entry.interval) {
                continue;
            }
            let txtime = entry.next_txtime;
            if txtime < time || exactly {
                if start < time && time + duration < end || start > time && !exactly {
                    return Some((n, start, end));
                }
                if !available && !exactly {
                    available = true;
                    found = Some((n, start + self.cycle_time, end + self.cycle_time));
                }
            } else if txtime < earliest && !available {
                earliest = txtime;
                let cycles = i64::from(((txtime - start) / self.cycle_time) as i32) * self.cycle_time;
                found = Some((n, start + cycles, end + cycles));
            }
        }
        found
    }
    /// `taprio_dump_tc_entries`.
    pub fn dump_max_sdu(&self) -> Vec<Options> {
        self.max_sdu.iter().map(|&size| Options::new().with("max-sdu", size)).collect()
    }
    /// As it is dumped.
    pub fn dump(&self) -> Options {
        let entry = |(index, e): (usize, &Entry)| {
            Options::new()
                .with("index", index as u32)
                .with("cmd", e.cmd)
                .with("gate-mask", e.mask)
                .with("interval", e.interval)
        };
        Options::new()
            .with("base-time", self.base_time)
            .with("cycle-time", self.cycle_time)
            .with("cycle-time-extension", self.extension)
            .with("sched-entry", self.entries.iter().enumerate().map(entry).collect::<Vec<_>>())
    }
}

/// The schedule that runs, and the one that is to.
#[derive(Clone, Default, Debug)]
pub struct Schedules {
    /// `oper_sched`.
    pub oper: Option<Schedule>,
    /// `admin_sched`.
    pub admin: Option<Schedule>,
    /// `current_entry` of the one that runs; none: all gates are open.
    pub current: Option<usize>,
}

impl Schedules {
    /// `switch_schedules`.
    pub fn switch(&mut self) {
        self.oper = self.admin.take();
    }
    /// `advance_sched`: when to do so again.
    pub fn advance(&mut self, byte: ByteTime, classes: usize) -> Option<i64> {
        let entry = self.current;
        if self.oper.is_none() {
            self.switch();
        }
        let oper = self.oper.as_mut()?;
        let before = entry.map(|entry| oper.entries[entry].end);
        let Some((entry, before)) = entry.zip(before).filter(|&(_, end)| end != oper.base_time) else {
            self.current = Some(0);
            return Some(oper.entries[0].end);
        };
        let mut next = entry + 1;
        if next == oper.entries.len() || before == oper.cycle_end {
            next = 0;
            oper.cycle_end = oper.cycle_end.wrapping_add(oper.cycle_time);
        }
        let mut end = before.wrapping_add(i64::from(oper.entries[next].interval)).min(oper.cycle_end);
        oper.set_close(next, before, classes);
        if self.admin.as_ref().is_some_and(|admin| oper.gives_way(admin, end)) {
            self.switch();
            next = 0;
            end = self.oper.as_ref()?.entries[0].end;
        }
        let oper = self.oper.as_mut()?;
        oper.entries[next].end = end;
        oper.set_budgets(next, byte, classes);
        self.current = Some(next);
        Some(end)
    }
    /// `get_packet_txtime`: when a packet of this class, which the line takes so long, is to leave, not before `earliest`; `None`: never.
    pub fn txtime(&mut self, class: usize, duration: i64, mut earliest: i64) -> Option<i64> {
        if self.admin.as_ref().is_some_and(|admin| earliest > admin.base_time) {
            self.switch();
        }
        let coming = self.admin.as_ref().map(|admin| admin.base_time);
        let mut by_admin = false;
        match &self.oper {
            Some(oper) if earliest >= oper.base_time => {}
            _ => return Some(earliest),
        }
        loop {
            let schedule = if by_admin { self.admin.as_mut()? } else { self.oper.as_mut()? };
            let other = coming.filter(|_| !by_admin);
            let (entry, start, end) = schedule.find((class, duration), other, earliest, false)?;
            let cycle = schedule.cycle_time;
            let entry = &mut schedule.entries[entry];
            let at = entry.next_txtime.max(earliest).max(start);
            if other.is_some_and(|base| at > base) {
                by_admin = true;
                continue;
            }
            earliest = at + duration;
            if earliest <= end {
                entry.next_txtime = earliest;
                // Linux takes 0 for none.
                return Some(at).filter(|&at| at != 0);
            }
            entry.next_txtime = start + cycle;
        }
    }
    /// `is_valid_interval`: whether the gate is open at a packet's own time for as long as the line takes.
    pub fn is_open(&self, skb: &Skb, class: usize, duration: i64) -> bool {
        let coming = self.admin.as_ref().map(|admin| admin.base_time);
        let at = skb.sender.departs.as_ns();
        self.oper.as_ref().is_some_and(|oper| oper.find((class, duration), coming, at, true).is_some())
    }
}
