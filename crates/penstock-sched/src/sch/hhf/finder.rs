//! Which flows are heavy hitters: a filter of counters that forgets, and a table of those that it has found.
//!
//! Follows: linux v6.12 `net/sched/sch_hhf.c` `hhf_classify`. Times are ticks of the clock in 32 bits.

use super::Key;
use crate::jiffies;
use penstock_model::Options;
use penstock_packet::Skb;

/// `HH_FLOWS_CNT`, `HHF_ARRAYS_LEN`.
const LEN: usize = 1024;
/// `HHF_ARRAYS_CNT`.
const ARRAYS: usize = 4;
/// `HHF_BIT_MASK_LEN`.
const BITS: u32 = 10;
/// No flow.
const NIL: u32 = u32::MAX;

/// `struct hh_flow_state`.
#[derive(Clone, Copy)]
struct Flow {
    hash: u32,
    /// When it was last seen.
    hit: u32,
    /// The next in its list.
    next: u32,
}

/// The table and the filter, from the first packet on.
struct Tables {
    /// The first flow of each list.
    lists: [u32; LEN],
    flows: Vec<Flow>,
    free: Vec<u32>,
    counters: [[u32; LEN]; ARRAYS],
    /// The counters that count, a bit each; the others are 0.
    valid: [[u64; LEN / 64]; ARRAYS],
}

/// Finds heavy hitters.
pub(super) struct Finder {
    // Parameters
    key: Key,
    /// Most heavy hitters at a time.
    hh_limit: u32,
    /// Jiffies.
    reset_timeout: u64,
    admit_bytes: u32,
    /// Jiffies.
    evict_timeout: u64,
    // Variables
    tables: Option<Box<Tables>>,
    /// When the counters were last forgotten.
    reset_at: u32,
    overlimit: u32,
    total: u32,
    current: u32,
}

/// `hhf_time_before`.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Finder {
    /// With the kernel's defaults.
    pub(super) fn new(key: Key, hz: u32, now: u32) -> Finder {
        Finder {
            key,
            hh_limit: 2 * LEN as u32,
            reset_timeout: u64::from(hz / 25),
            admit_bytes: 131_072,
            evict_timeout: u64::from(hz),
            tables: None,
            reset_at: now,
            overlimit: 0,
            total: 0,
            current: 0,
        }
    }
    /// Takes over what is given; times in us.
    pub(super) fn change(&mut self, o: &Options, hz: u32) {
        self.hh_limit = o.u32("hh_limit").unwrap_or(self.hh_limit);
        self.admit_bytes = o.u32("admit_bytes").unwrap_or(self.admit_bytes);
        for (name, time) in
            [("reset_timeout", &mut self.reset_timeout), ("evict_timeout", &mut self.evict_timeout)]
        {
            *time = o.u32(name).map_or(*time, |us| jiffies::from_us(us, hz));
        }
    }
    /// Adds them to a dump.
    pub(super) fn dump(&self, o: Options, hz: u32) -> Options {
        o.with("hh_limit", self.hh_limit)
            .with("reset_timeout", jiffies::to_us(self.reset_timeout, hz))
            .with("admit_bytes", self.admit_bytes)
            .with("evict_timeout", jiffies::to_us(self.evict_timeout, hz))
    }
    /// Adds what it has counted.
    pub(super) fn xstats(&self, o: Options) -> Options {
        o.with("hh_overlimit", self.overlimit).with("tot_hh", self.total).with("cur_hh", self.current)
    }
    /// `hhf_reset_classifier`.
    pub(super) fn reset(&mut self, now: u32) {
        if let Some(tables) = &mut self.tables {
            tables.lists = [NIL; LEN];
            tables.flows.clear();
            tables.free.clear();
            tables.valid = [[0; LEN / 64]; ARRAYS];
        }
        self.current = 0;
        self.reset_at = now;
    }
    /// `hhf_classify`: whether a packet is of a heavy hitter; it is counted.
    pub(super) fn is_heavy(&mut self, skb: &Skb, now: u32) -> bool {
        let evict = self.evict_timeout as u32;
        let tables = self.tables.get_or_insert_with(|| Box::new(Tables::new()));
        if before(self.reset_at.wrapping_add(self.reset_timeout as u32), now) {
            tables.valid = [[0; LEN / 64]; ARRAYS];
            self.reset_at = now;
        }
        let hash = self.key.hash(skb);
        let list = (hash & ((1 << BITS) - 1)) as usize;
        if let Some(flow) = tables.seek(list, hash, now, evict, &mut self.current) {
            tables.flows[flow as usize].hit = now;
            return true;
        }
        let places = places(hash);
        let most = tables.count(places, skb.pkt_len);
        if most > self.admit_bytes {
            let flow = match tables.expired(list, now, evict) {
                Some(flow) => flow,
                None if self.current >= self.hh_limit => {
                    self.overlimit = self.overlimit.wrapping_add(1);
                    return false;
                }
                None => {
                    self.current += 1;
                    tables.append(list)
                }
            };
            let flow = &mut tables.flows[flow as usize];
            (flow.hash, flow.hit) = (hash, now);
            self.total = self.total.wrapping_add(1);
            return true;
        }
        for (array, place) in tables.counters.iter_mut().zip(places) {
            array[place] = array[place].max(most);
        }
        false
    }
}

/// The counters of a flow: ten bits of its hash each, and what they make together.
fn places(hash: u32) -> [usize; ARRAYS] {
    let mask = (1 << BITS) - 1;
    let (a, b, c) = (hash & mask, hash >> BITS & mask, hash >> (2 * BITS) & mask);
    [a, b, c, a ^ b ^ c ^ hash >> (3 * BITS)].map(|place| place as usize)
}

impl Tables {
    fn new() -> Tables {
        Tables {
            lists: [NIL; LEN],
            flows: Vec::new(),
            free: Vec::new(),
            counters: [[0; LEN]; ARRAYS],
            valid: [[0; LEN / 64]; ARRAYS],
        }
    }
    /// `seek_list`: expired flows go on the way, but for one that is the last of its list.
    fn seek(&mut self, list: usize, hash: u32, now: u32, evict: u32, current: &mut u32) -> Option<u32> {
        let mut at = self.lists[list];
        let mut last = NIL;
        while at != NIL {
            let flow = self.flows[at as usize];
            if before(flow.hit.wrapping_add(evict), now) {
                if flow.next == NIL {
                    return None;
                }
                match last {
                    NIL => self.lists[list] = flow.next,
                    last => self.flows[last as usize].next = flow.next,
                }
                self.free.push(at);
                *current -= 1;
            } else if flow.hash == hash {
                return Some(at);
            } else {
                last = at;
            }
            at = flow.next;
        }
        None
    }
    /// An expired flow of a list.
    fn expired(&self, list: usize, now: u32, evict: u32) -> Option<u32> {
        let mut at = self.lists[list];
        while at != NIL && !before(self.flows[at as usize].hit.wrapping_add(evict), now) {
            at = self.flows[at as usize].next;
        }
        (at != NIL).then_some(at)
    }
    /// A new flow at the end of a list.
    fn append(&mut self, list: usize) -> u32 {
        let new = Flow { hash: 0, hit: 0, next: NIL };
        let number = match self.free.pop() {
            Some(number) => {
                self.flows[number as usize] = new;
                number
            }
            None => {
                self.flows.push(new);
                self.flows.len() as u32 - 1
            }
        };
        let mut at = self.lists[list];
        if at == NIL {
            self.lists[list] = number;
        } else {
            while self.flows[at as usize].next != NIL {
                at = self.flows[at as usize].next;
            }
            self.flows[at as usize].next = number;
        }
        number
    }
    /// The least of a flow's counters with a packet of so many bytes.
    fn count(&mut self, places: [usize; ARRAYS], len: u32) -> u32 {
        let mut least = u32::MAX;
        for (n, place) in places.into_iter().enumerate() {
            let bit = 1 << (place % 64);
            if self.valid[n][place / 64] & bit == 0 {
                self.valid[n][place / 64] |= bit;
                self.counters[n][place] = 0;
            }
            least = least.min(self.counters[n][place].wrapping_add(len));
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expired_flow_goes_but_for_the_last_of_a_list() {
        let mut tables = Tables::new();
        let mut current = 0;
        for (hash, hit) in [(1, 0), (2, 50), (3, 0)] {
            let flow = tables.append(7);
            (tables.flows[flow as usize].hash, tables.flows[flow as usize].hit) = (hash, hit);
            current += 1;
        }
        // At 100 with a timeout of 60: the first and the last have expired.
        assert_eq!(tables.expired(7, 100, 60), Some(0));
        assert_eq!((tables.seek(7, 2, 100, 60, &mut current), current), (Some(1), 2));
        assert_eq!((tables.seek(7, 3, 100, 60, &mut current), current), (None, 2));
        assert_eq!((tables.expired(7, 100, 60), tables.append(7)), (Some(2), 0));
    }

    #[test]
    fn the_fourth_place_is_made_of_the_others() {
        assert_eq!(places(0b11_0000000001_0000000010_0000000100), [4, 2, 1, 4]);
    }
}
