//! Maps: what programs remember from one packet to the next.
//!
//! Follows: linux v6.12 `kernel/bpf/arraymap.c`, `hashtab.c`, `lpm_trie.c`, `helpers.c`; one processor, so that what is per processor is there once.
//! Differs: an LRU map throws out the element that was used least recently; the kernel, which looks at them in batches, nearly that one.

use penstock_model::Options;

/// Errors as helpers answer them.
pub(super) const ENOENT: i64 = -2;
pub(super) const E2BIG: i64 = -7;
pub(super) const EEXIST: i64 = -17;
pub(super) const EINVAL: i64 = -22;
pub(super) const ENOSPC: i64 = -28;

/// `BPF_NOEXIST`, `BPF_EXIST`, `BPF_F_LOCK`.
const NOEXIST: u64 = 1;
const EXIST: u64 = 2;
const F_LOCK: u64 = 4;
/// Largest key of a hash table, bytes (`MAX_BPF_STACK`).
pub(super) const KEY_MAX: usize = 512;
/// Most bytes that the values of one map may take here.
const VALUES_MAX: u64 = 1 << 28;
/// No element.
const NONE: u32 = u32::MAX;

/// What a map is made of.
#[derive(Clone, Debug)]
enum Index {
    Array,
    Hash(Table),
    /// Longest prefix: the elements by their prefix, and how many there are of each length.
    Lpm(Table, Vec<u32>),
    /// Programs: the places in which the program stands that the map was loaded with, in order.
    Programs(Vec<u32>),
    /// Of events that nobody listens to.
    Events,
}

/// A map.
#[derive(Clone, Debug)]
pub(super) struct Map {
    index: Index,
    pub key_size: usize,
    pub value_size: usize,
    /// Bytes from one value to the next.
    stride: usize,
    max_entries: u32,
    values: Vec<u8>,
    /// Programs only read it.
    pub frozen: bool,
}

/// Why a map is not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoMap {
    /// The kernel refuses it.
    Refused(&'static str),
    /// It is not simulated.
    Missing(&'static str),
}

impl Map {
    /// `map_create`.
    pub fn new(o: &Options) -> Result<Map, NoMap> {
        let n = |name| o.u32(name).unwrap_or(0);
        let (key, value, max) = (n("key_size"), n("value_size"), n("max_entries"));
        let invalid = NoMap::Refused("Invalid argument");
        let too_big = NoMap::Refused("Argument list too long");
        let stride = value.div_ceil(8).checked_mul(8).ok_or(too_big)?;
        let kind = n("type");
        let hashed = |lru| Table::new(key as usize, max, lru);
        let index = match kind {
            // Hash tables: plain, per processor, least recently used, both.
            1 | 5 | 9 | 10 if key == 0 || value == 0 || max == 0 => return Err(invalid),
            1 | 5 | 9 | 10 if key as usize > KEY_MAX => return Err(too_big),
            1 | 5 => Index::Hash(hashed(false)),
            9 | 10 => Index::Hash(hashed(true)),
            2 | 6 if key != 4 || value == 0 || max == 0 => return Err(invalid),
            2 | 6 => Index::Array,
            3 | 4 if key != 4 || value != 4 || max == 0 => return Err(invalid),
            3 => Index::Programs(programs(o)),
            4 => Index::Events,
            // A length of 4 bytes, and 1 to 256 bytes of what it is the length of; memory is taken as it is needed.
            11 if !(5..=260).contains(&key) || value == 0 || max == 0 || n("map_flags") & 1 == 0 => {
                return Err(invalid);
            }
            11 => Index::Lpm(hashed(false), vec![0; (key as usize - 4) * 8 + 1]),
            other => return Err(named(other)),
        };
        let room = u64::from(stride) * u64::from(max);
        let kept = matches!(index, Index::Array | Index::Hash(_) | Index::Lpm(..));
        if kept && room > VALUES_MAX {
            return Err(NoMap::Missing("bpf with a map of more than 256 MiB"));
        }
        let mut values = o.bytes("data").map(<[u8]>::to_vec).unwrap_or_default();
        if matches!(index, Index::Array) {
            values.resize(room as usize, 0);
        }
        let (key_size, value_size, stride) = (key as usize, value as usize, stride as usize);
        let frozen = n("frozen") != 0;
        Ok(Map { index, key_size, value_size, stride, max_entries: max, values, frozen })
    }
    /// Bytes of its values that are there.
    pub fn values(&self) -> &[u8] {
        &self.values
    }
    pub fn values_mut(&mut self) -> &mut [u8] {
        &mut self.values
    }
    /// Where within [`Map::values`] a pointer into it at `at` may go on for `len` bytes: it stays within its value.
    pub fn holds(&self, at: usize, len: usize) -> bool {
        let within = at % self.stride.max(1);
        within + len <= self.value_size && at + len <= self.values.len()
    }
    /// Whether it is of programs, which only a tail call may use.
    pub fn is_programs(&self) -> bool {
        matches!(self.index, Index::Programs(_))
    }
    /// Whether it is of events.
    pub fn is_events(&self) -> bool {
        matches!(self.index, Index::Events)
    }
    /// Whether the program stands in this place of an array of programs.
    pub fn has_program(&self, at: u32) -> bool {
        matches!(&self.index, Index::Programs(list) if list.binary_search(&at).is_ok())
    }

    /// `map_lookup_elem`: where the value begins in [`Map::values`].
    pub fn lookup(&mut self, key: &[u8]) -> Option<usize> {
        let at = match &mut self.index {
            Index::Array => number(key).filter(|&at| at < self.max_entries),
            Index::Hash(table) => table.find(key).inspect(|&at| table.used(at)),
            Index::Lpm(table, lengths) => longest(table, lengths, key),
            Index::Programs(_) | Index::Events => None,
        };
        at.map(|at| at as usize * self.stride)
    }

    /// `map_update_elem`: 0, or what is wrong.
    pub fn update(&mut self, key: &[u8], value: &[u8], flags: u64) -> i64 {
        if flags & !F_LOCK > EXIST {
            return EINVAL;
        }
        let mut prefix = [0; KEY_MAX];
        let place = match &mut self.index {
            Index::Array => match number(key).filter(|&at| at < self.max_entries) {
                None => return E2BIG,
                Some(_) if flags & NOEXIST != 0 => return EEXIST,
                Some(at) => Ok(at),
            },
            Index::Hash(table) => match table.find(key) {
                Some(_) if flags & NOEXIST != 0 => Err(EEXIST),
                Some(at) => {
                    table.used(at);
                    Ok(at)
                }
                None if flags & EXIST != 0 => Err(ENOENT),
                None => table.add(key).ok_or(E2BIG),
            },
            Index::Lpm(table, lengths) => {
                let Some((len, own)) = masked(key, lengths.len() - 1, &mut prefix) else { return EINVAL };
                match table.find(own) {
                    Some(_) if flags & NOEXIST != 0 => Err(EEXIST),
                    Some(at) => Ok(at),
                    None if flags & EXIST != 0 => Err(ENOENT),
                    None => table.add(own).ok_or(ENOSPC).inspect(|_| lengths[len] += 1),
                }
            }
            Index::Programs(_) | Index::Events => Err(EINVAL),
        };
        let at = match place {
            Ok(at) => at as usize * self.stride,
            Err(why) => return why,
        };
        if self.values.len() < at + self.stride {
            self.values.resize(at + self.stride, 0);
        }
        self.values[at..at + self.value_size].copy_from_slice(&value[..self.value_size]);
        0
    }

    /// `map_delete_elem`.
    pub fn delete(&mut self, key: &[u8]) -> i64 {
        let mut prefix = [0; KEY_MAX];
        let gone = match &mut self.index {
            Index::Array | Index::Programs(_) | Index::Events => return EINVAL,
            Index::Hash(table) => table.remove(key),
            Index::Lpm(table, lengths) => {
                let Some((len, own)) = masked(key, lengths.len() - 1, &mut prefix) else { return EINVAL };
                let gone = table.remove(own);
                lengths[len] -= u32::from(gone);
                gone
            }
        };
        if gone { 0 } else { ENOENT }
    }
}

/// The kinds of maps that the kernel has and this machine does not.
fn named(kind: u32) -> NoMap {
    NoMap::Missing(match kind {
        7 => "bpf with a map of stack traces",
        8 | 19 | 21 => "bpf with a map of cgroups",
        12 | 13 => "bpf with a map of maps",
        14 | 16 | 17 | 25 => "bpf with a map of devices",
        15 | 18 | 20 => "bpf with a map of sockets",
        22 | 23 => "bpf with a queue or a stack",
        24 | 29 | 32 => "bpf with local storage",
        26 => "bpf with struct_ops",
        27 | 31 => "bpf with a ring buffer",
        28 | 33 => "bpf with inodes or arenas",
        30 => "bpf with a bloom filter",
        _ => return NoMap::Refused("Invalid argument"),
    })
}

/// The places of an array of programs that are taken.
fn programs(o: &Options) -> Vec<u32> {
    let mut list: Vec<u32> = o.list("programs").iter().filter_map(|slot| slot.u32("index")).collect();
    list.sort_unstable();
    list
}

/// A key of four bytes.
fn number(key: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(key.get(..4)?.try_into().ok()?))
}

/// A prefix with its length, of whose bits only that many count; `None` where it is longer than `most` bits.
fn masked<'a>(key: &[u8], most: usize, out: &'a mut [u8; KEY_MAX]) -> Option<(usize, &'a [u8])> {
    let len = number(key)? as usize;
    if len > most {
        return None;
    }
    cut(key, len, out);
    Some((len, &out[..key.len()]))
}

/// The first `len` bits of a key's data, with that length before them.
fn cut(key: &[u8], len: usize, out: &mut [u8; KEY_MAX]) {
    out[..4].copy_from_slice(&(len as u32).to_le_bytes());
    let data = &mut out[4..key.len()];
    data.copy_from_slice(&key[4..]);
    for (i, byte) in data.iter_mut().enumerate() {
        let kept = len.saturating_sub(8 * i).min(8);
        *byte &= (0xff00_u16 >> kept) as u8;
    }
}

/// `trie_lookup_elem`: the element of the longest prefix that a key begins with.
fn longest(table: &Table, lengths: &[u32], key: &[u8]) -> Option<u32> {
    let asked = (number(key)? as usize).min(lengths.len() - 1);
    let mut prefix = [0; KEY_MAX];
    (0..=asked).rev().filter(|&len| lengths[len] > 0).find_map(|len| {
        cut(key, len, &mut prefix);
        table.find(&prefix[..key.len()])
    })
}

/// Keys with the numbers of their elements, chained by a hash; and the elements in the order of their last use.
#[derive(Clone, Debug)]
struct Table {
    key_size: usize,
    max: u32,
    /// The first element of each chain.
    chains: Vec<u32>,
    /// Of each element: the next of its chain.
    next: Vec<u32>,
    keys: Vec<u8>,
    free: Vec<u32>,
    len: u32,
    /// Whether a new element takes the place of the one used longest ago, where it is full.
    lru: bool,
    /// Of each element: the one used next before, and next after; those of the ends, last of all.
    order: Vec<(u32, u32)>,
    oldest: u32,
    youngest: u32,
}

impl Table {
    fn new(key_size: usize, max: u32, lru: bool) -> Table {
        Table {
            key_size,
            max,
            chains: vec![NONE; 16],
            next: Vec::new(),
            keys: Vec::new(),
            free: Vec::new(),
            len: 0,
            lru,
            order: Vec::new(),
            oldest: NONE,
            youngest: NONE,
        }
    }
    fn key(&self, at: u32) -> &[u8] {
        &self.keys[at as usize * self.key_size..][..self.key_size]
    }
    /// The chain of a key (FNV-1a).
    fn chain(&self, key: &[u8]) -> usize {
        let hash = key
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
        (hash ^ hash >> 32) as usize & (self.chains.len() - 1)
    }
    fn find(&self, key: &[u8]) -> Option<u32> {
        let mut at = self.chains[self.chain(key)];
        while at != NONE {
            if self.key(at) == key {
                return Some(at);
            }
            at = self.next[at as usize];
        }
        None
    }
    /// A new element, which is not there yet; `None` where there is no room.
    fn add(&mut self, key: &[u8]) -> Option<u32> {
        if self.len >= self.max {
            if !self.lru || self.oldest == NONE {
                return None;
            }
            let mut old = [0; KEY_MAX];
            let own = &mut old[..self.key_size];
            own.copy_from_slice(self.key(self.oldest));
            let own = &old[..self.key_size];
            self.remove(own);
        }
        if self.len as usize >= self.chains.len() {
            self.grow();
        }
        let at = match self.free.pop() {
            Some(at) => {
                self.keys[at as usize * self.key_size..][..self.key_size].copy_from_slice(key);
                at
            }
            None => {
                self.keys.extend_from_slice(key);
                self.next.push(NONE);
                self.order.push((NONE, NONE));
                self.next.len() as u32 - 1
            }
        };
        let chain = self.chain(key);
        self.next[at as usize] = std::mem::replace(&mut self.chains[chain], at);
        self.len += 1;
        self.append(at);
        Some(at)
    }
    fn remove(&mut self, key: &[u8]) -> bool {
        let chain = self.chain(key);
        let (mut before, mut at) = (NONE, self.chains[chain]);
        while at != NONE && self.key(at) != key {
            (before, at) = (at, self.next[at as usize]);
        }
        if at == NONE {
            return false;
        }
        let next = self.next[at as usize];
        if before == NONE {
            self.chains[chain] = next;
        } else {
            self.next[before as usize] = next;
        }
        self.unlink(at);
        self.free.push(at);
        self.len -= 1;
        true
    }
    /// Twice as many chains.
    fn grow(&mut self) {
        let all: Vec<u32> = self.chains.iter().flat_map(|&first| self.from(first)).collect();
        self.chains = vec![NONE; self.chains.len() * 2];
        for at in all {
            let chain = self.chain(self.key(at));
            self.next[at as usize] = std::mem::replace(&mut self.chains[chain], at);
        }
    }
    fn from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let there = |at: u32| (at != NONE).then_some(at);
        std::iter::successors(there(first), move |&at| there(self.next[at as usize]))
    }
    /// An element was used.
    fn used(&mut self, at: u32) {
        if self.lru && self.youngest != at {
            self.unlink(at);
            self.append(at);
        }
    }
    fn append(&mut self, at: u32) {
        if !self.lru {
            return;
        }
        self.order[at as usize] = (self.youngest, NONE);
        match self.youngest {
            NONE => self.oldest = at,
            before => self.order[before as usize].1 = at,
        }
        self.youngest = at;
    }
    fn unlink(&mut self, at: u32) {
        if !self.lru {
            return;
        }
        let (before, after) = self.order[at as usize];
        match before {
            NONE => self.oldest = after,
            before => self.order[before as usize].1 = after,
        }
        match after {
            NONE => self.youngest = before,
            after => self.order[after as usize].0 = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(kind: u32, key: u32, value: u32, max: u32, flags: u32) -> Result<Map, NoMap> {
        let o = Options::new().with("type", kind).with("key_size", key).with("value_size", value);
        Map::new(&o.with("max_entries", max).with("map_flags", flags))
    }
    fn read(map: &mut Map, key: &[u8]) -> Option<u8> {
        map.lookup(key).map(|at| map.values()[at])
    }

    #[test]
    fn a_hash_table_takes_what_fits_and_says_what_is_wrong() {
        let mut m = map(1, 2, 3, 2, 0).unwrap();
        assert_eq!(m.update(&[1, 0], &[9; 3], EXIST), ENOENT);
        assert_eq!([m.update(&[1, 0], &[9; 3], 0), m.update(&[2, 0], &[8; 3], NOEXIST)], [0, 0]);
        assert_eq!([m.update(&[1, 0], &[7; 3], NOEXIST), m.update(&[3, 0], &[7; 3], 0)], [EEXIST, E2BIG]);
        assert_eq!(m.update(&[1, 0], &[7; 3], 3), EINVAL);
        assert_eq!((read(&mut m, &[1, 0]), read(&mut m, &[3, 0])), (Some(9), None));
        assert_eq!([m.delete(&[1, 0]), m.delete(&[1, 0]), m.update(&[3, 0], &[7; 3], 0)], [0, ENOENT, 0]);
        assert_eq!(
            (read(&mut m, &[1, 0]), read(&mut m, &[2, 0]), read(&mut m, &[3, 0])),
            (None, Some(8), Some(7))
        );
    }

    #[test]
    fn an_array_is_there_from_the_beginning_and_nothing_of_it_goes() {
        let mut m = map(2, 4, 1, 3, 0).unwrap();
        let at = |n: u32| n.to_le_bytes();
        assert_eq!((read(&mut m, &at(2)), read(&mut m, &at(3))), (Some(0), None));
        assert_eq!([m.update(&at(2), &[5], 0), m.update(&at(3), &[5], 0)], [0, E2BIG]);
        assert_eq!([m.update(&at(2), &[6], NOEXIST), m.delete(&at(2))], [EEXIST, EINVAL]);
        assert_eq!(read(&mut m, &at(2)), Some(5));
        // A pointer into one value does not reach the next.
        assert!(m.holds(8, 1) && !m.holds(8, 2) && !m.holds(24, 1));
    }

    #[test]
    fn the_longest_prefix_is_found() {
        let mut m = map(11, 8, 1, 4, 1).unwrap();
        let key = |len: u32, a: [u8; 4]| [len.to_le_bytes(), a].concat();
        for (len, net, value) in [(0, [0; 4], 1), (8, [10, 0, 0, 0], 2), (23, [10, 1, 3, 0], 3)] {
            assert_eq!(m.update(&key(len, net), &[value], 0), 0);
        }
        let of = |m: &mut Map, a| read(m, &key(32, a));
        assert_eq!(
            [[10, 1, 2, 9], [10, 1, 4, 9], [9, 9, 9, 9]].map(|a| of(&mut m, a)),
            [Some(3), Some(2), Some(1)]
        );
        assert_eq!(read(&mut m, &key(16, [10, 1, 2, 0])), Some(2), "no prefix longer than what is asked");
        assert_eq!([m.delete(&key(23, [10, 1, 2, 0])), m.delete(&key(23, [10, 1, 2, 0]))], [0, ENOENT]);
        assert_eq!((of(&mut m, [10, 1, 2, 9]), m.update(&key(33, [0; 4]), &[1], 0)), (Some(2), EINVAL));
        assert_eq!([1u32, 2].map(|len| m.update(&key(len, [128, 0, 0, 0]), &[1], 0)), [0, 0]);
        assert_eq!(m.update(&key(3, [128, 0, 0, 0]), &[1], 0), ENOSPC);
    }

    #[test]
    fn the_least_recently_used_makes_room() {
        let mut m = map(9, 1, 1, 2, 0).unwrap();
        assert_eq!([m.update(&[1], &[1], 0), m.update(&[2], &[2], 0)], [0, 0]);
        assert_eq!(read(&mut m, &[1]), Some(1));
        assert_eq!(m.update(&[3], &[3], 0), 0);
        assert_eq!([1, 2, 3].map(|k| read(&mut m, &[k])), [Some(1), None, Some(3)]);
        for k in 4..100 {
            assert_eq!(m.update(&[k], &[k], 0), 0);
        }
        assert_eq!([97, 98, 99].map(|k| read(&mut m, &[k])), [None, Some(98), Some(99)]);
    }

    #[test]
    fn many_keys_are_found_again() {
        let mut m = map(1, 4, 4, 5000, 0).unwrap();
        for n in 0..5000u32 {
            assert_eq!(m.update(&n.to_be_bytes(), &n.to_le_bytes(), 0), 0);
        }
        let found =
            |m: &mut Map, n: u32| m.lookup(&n.to_be_bytes()).map(|at| m.values()[at..at + 4].to_vec());
        assert!((0..5000u32).all(|n| found(&mut m, n) == Some(n.to_le_bytes().to_vec())));
    }

    #[test]
    fn what_the_kernel_refuses_and_what_is_not_here() {
        assert!(matches!(map(2, 8, 4, 1, 0), Err(NoMap::Refused(_))));
        assert!(matches!(map(11, 8, 1, 4, 0), Err(NoMap::Refused(_))), "without BPF_F_NO_PREALLOC");
        assert!(matches!(map(27, 0, 0, 4096, 0), Err(NoMap::Missing("bpf with a ring buffer"))));
    }
}
