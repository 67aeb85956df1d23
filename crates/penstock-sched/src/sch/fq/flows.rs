//! The flows that are known, by what tells them apart: `fq_root`, `fq_gc`, `fq_rehash`.

use super::queue::{NIL, Queue};

/// `FQ_GC_MAX`: most flows forgotten in one search.
const GC_MAX: usize = 8;
/// `FQ_GC_AGE`, seconds: a flow that was empty for longer is forgotten when it is met.
const GC_AGE_S: u64 = 3;

/// `struct fq_flow`.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    /// What tells it apart: a socket's number times two, or a hash times two and one.
    key: u64,
    pub queue: Queue,
    pub qlen: u32,
    /// Bytes it may still send in its turn.
    pub credit: i32,
    pub band: u8,
    /// It stands in no list since this tick, made odd (`age`).
    pub detached: Option<u64>,
    /// The flow behind it in its list.
    pub next: u32,
    /// When it may send next, ns; 0: at once.
    pub time_next_packet: u64,
    /// Which of the entries among those that wait for their time is its own; 0: it does not wait.
    pub waits: u64,
}

impl Flow {
    /// A flow with nothing in it.
    pub(super) fn new(key: u64, credit: i32, age: u64) -> Flow {
        let (queue, next) = (Queue::default(), NIL);
        Flow {
            key,
            queue,
            qlen: 0,
            credit,
            band: 0,
            detached: Some(age),
            next,
            time_next_packet: 0,
            waits: 0,
        }
    }
    /// `fq_gc_candidate`.
    fn is_old(&self, jiffies: u64, hz: u32) -> bool {
        self.detached.is_some_and(|age| jiffies > age + GC_AGE_S * u64::from(hz))
    }
}

/// All flows, in memory that is used again, and the buckets they are looked for in.
#[derive(Default)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// Flows by key. The kernel has a tree here; the search meets the flows that it would in a balanced one.
    buckets: Vec<Vec<u32>>,
    log: u32,
}

/// `hash_ptr`.
fn hash(key: u64, log: u32) -> usize {
    (key.wrapping_mul(0x61c8_8646_80b5_83eb) >> (64 - log)) as usize
}

impl Flows {
    /// Of so many buckets, a power of two; answers how many flows were forgotten (`fq_resize`).
    pub(super) fn resize(&mut self, log: u32, jiffies: u64, hz: u32) -> u32 {
        if log == self.log && !self.buckets.is_empty() {
            return 0;
        }
        let old = std::mem::replace(&mut self.buckets, vec![Vec::new(); 1 << log]);
        self.log = log;
        let mut forgotten = 0;
        for n in old.into_iter().flatten() {
            if self.flows[n as usize].is_old(jiffies, hz) {
                self.free.push(n);
                forgotten += 1;
                continue;
            }
            let key = self.flows[n as usize].key;
            let bucket = &mut self.buckets[hash(key, log)];
            let at = bucket.partition_point(|&f| self.flows[f as usize].key < key);
            bucket.insert(at, n);
        }
        forgotten
    }
    /// Looks for a flow. Of those met on the way that are old at most eight are forgotten (`fq_gc`): how many is the
    /// second answer.
    pub(super) fn find(&mut self, key: u64, jiffies: u64, hz: u32) -> (Option<u32>, u32) {
        let bucket = &mut self.buckets[hash(key, self.log)];
        let (mut low, mut high) = (0, bucket.len());
        let (mut found, mut old, mut count) = (None, [0; GC_MAX], 0);
        while low < high {
            let middle = low + (high - low) / 2;
            let n = bucket[middle];
            let flow = &self.flows[n as usize];
            if flow.key == key {
                found = Some(n);
                break;
            }
            if count < GC_MAX && flow.is_old(jiffies, hz) {
                old[count] = n;
                count += 1;
            }
            if flow.key < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if count > 0 {
            bucket.retain(|n| !old[..count].contains(n));
            self.free.extend(&old[..count]);
        }
        (found, count as u32)
    }
    /// Adds a flow that was not found.
    pub(super) fn insert(&mut self, flow: Flow) -> u32 {
        let n = match self.free.pop() {
            Some(n) => {
                self.flows[n as usize] = flow;
                n
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        let bucket = &mut self.buckets[hash(flow.key, self.log)];
        let at = bucket.partition_point(|&f| self.flows[f as usize].key < flow.key);
        bucket.insert(at, n);
        n
    }
    pub(super) fn at(&mut self, n: u32) -> &mut Flow {
        &mut self.flows[n as usize]
    }
    /// Forgets all, after `visit` has seen each.
    pub(super) fn clear(&mut self, mut visit: impl FnMut(&mut Flow)) {
        for bucket in &mut self.buckets {
            for n in bucket.drain(..) {
                visit(&mut self.flows[n as usize]);
                self.free.push(n);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_flows_are_forgotten_when_they_are_met() {
        let mut flows = Flows::default();
        assert_eq!(flows.resize(1, 0, 100), 0);
        let keys: Vec<u64> = (0..20u64).map(|n| 2 * n + 1).collect();
        for &key in &keys {
            assert_eq!(flows.find(key, 5, 100), (None, 0));
            flows.insert(Flow::new(key, 0, 5));
        }
        for &key in &keys {
            assert!(flows.find(key, 305, 100).0.is_some());
        }
        // Three seconds and a tick later.
        let mut forgotten = 0;
        let mut met = 0;
        for &key in &keys {
            let (found, gone) = flows.find(key, 306, 100);
            (met, forgotten) = (met + u32::from(found.is_some()), forgotten + gone);
        }
        assert!(forgotten > 0 && met > 0 && met + forgotten >= 20, "{forgotten} {met}");
        // The rest goes when the table is made anew; one in use stays.
        let n = flows.insert(Flow::new(99, 0, 1));
        flows.at(n).detached = None;
        assert_eq!(flows.resize(4, 400, 100), 20 - forgotten);
        assert_eq!(flows.find(99, 1000, 100), (Some(n), 0));
        let mut seen = 0;
        flows.clear(|_| seen += 1);
        assert_eq!((seen, flows.find(99, 1000, 100)), (1, (None, 0)));
    }
}
