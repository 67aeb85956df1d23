//! First-match lists of sets as decision diagrams: the same packets go to the same places, by fewer sets.
//!
//! A list becomes a diagram over the bits that are looked at, whose leaves are places (R. Bryant, IEEE Transactions on Computers C-35, 1986:
//! ordered and reduced). Out of it each place's packets are read as a sum of products from which nothing can be left out (S. Minato,
//! ISMVL 1993, "Fast generation of prime-irredundant covers"); what earlier places have counts as free.

use super::cube::{Cube, Place};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Lists up to this long stay as they were written.
const FEW: usize = 100;
/// Products of lists up to this long are made set by set.
const PLAIN: usize = 4000;
/// How much work one diagram may be.
const WORK: usize = 2_000_000;

/// A list of sets with what each means; a packet is in the first that has it.
pub type List<P> = Vec<(Cube, P)>;

/// The same list with fewer sets, where it has many for few places.
pub fn tidy<P: Ord + Clone>(list: List<P>) -> List<P> {
    let mut places: Vec<&P> = list.iter().map(|e| &e.1).collect();
    places.sort_unstable();
    places.dedup();
    if list.len() <= FEW.max(4 * places.len()) {
        return list;
    }
    let tidied = Diagram::of(&[&list]).and_then(|(mut diagram, roots, places)| {
        let list = diagram.read(roots[0], &places)?;
        Some(list)
    });
    tidied.filter(|t| t.len() < list.len()).unwrap_or(list)
}

/// Puts a list in the place of each thing that `list` leads to, and `rest` behind it all; `None` where there would be more than `most`
/// sets. The lists of [`sub`](expand) leave no packet over.
pub fn expand<K: Ord + Clone, P: Ord + Clone>(
    list: &List<K>,
    rest: &List<P>,
    most: usize,
    sub: &mut dyn FnMut(&K) -> List<P>,
) -> Option<List<P>> {
    let mut known: BTreeMap<&K, List<P>> = BTreeMap::new();
    for (_, key) in list {
        if !known.contains_key(key) {
            known.insert(key, sub(key));
        }
    }
    let size: usize = list.iter().map(|e| known[&e.1].len()).sum::<usize>() + rest.len();
    let mut places: Vec<&P> = known.values().flatten().map(|e| &e.1).collect();
    places.sort_unstable();
    places.dedup();
    if size > PLAIN
        && size > 4 * places.len()
        && let Some(small) = compose(list, rest, &known)
    {
        return Some(small);
    }
    if size > most {
        return None;
    }
    let mut out = Vec::with_capacity(size);
    for (cube, key) in list {
        out.extend(known[key].iter().filter_map(|(c, p)| Some((cube.and(c)?, p.clone()))));
    }
    out.extend(rest.iter().cloned());
    Some(tidy(out))
}

/// Where two lists lead to different things.
pub struct Differing<P> {
    /// What the first list leads to.
    pub from: P,
    /// What the second one leads to.
    pub to: P,
    /// The packets.
    pub cubes: Vec<Cube>,
    /// Those of them that are not meant: for them both lists lead to the same.
    pub without: Vec<Cube>,
}

/// Exact sets of up to so many products are not looked at twice.
const SHORT: usize = 3;

/// Where two lists lead to different things, exactly; `None` where that takes too much work.
pub fn differing<P: Ord + Clone>(a: &List<P>, b: &List<P>) -> Option<Vec<Differing<P>>> {
    let (mut diagram, roots, places) = Diagram::of(&[a, b])?;
    let mut pairs = BTreeSet::new();
    diagram.pairs(roots[0], roots[1], &mut BTreeSet::new(), &mut pairs)?;
    let (mut same, mut moved) = (BTreeMap::new(), Vec::new());
    for (x, y) in pairs.into_iter().filter(|(x, y)| *x != 0 && *y != 0) {
        let one = diagram.leaves(roots[0], &|leaf| leaf == x, &mut Known::default())?;
        let two = diagram.leaves(roots[1], &|leaf| leaf == y, &mut Known::default())?;
        let both = diagram.apply(0, one, two)?;
        if x == y {
            same.insert(x, both);
        } else {
            moved.push((x, y, both));
        }
    }
    let mut out = Vec::new();
    for (x, y, both) in moved {
        let (mut cubes, _) = diagram.cubes(both, both)?;
        let mut without = Vec::new();
        let places_of: &[u32] = if cubes.len() > SHORT { &[y, x] } else { &[] };
        for place in places_of {
            // Fewer sets, and what is taken out of them again: packets that go to one of the two all the same.
            let Some(&same) = same.get(place) else { continue };
            let may = diagram.apply(1, both, same)?;
            let (wide, has) = diagram.cubes(both, may)?;
            let more = diagram.apply(2, has, both)?;
            let outside = diagram.apply(2, YES, has)?;
            let free = diagram.apply(1, more, outside)?;
            let (less, _) = diagram.cubes(more, free)?;
            if 2 * (wide.len() + less.len()) <= cubes.len() + without.len() {
                (cubes, without) = (wide, less);
            }
        }
        if !cubes.is_empty() {
            let (from, to) = (places[x as usize - 1].clone(), places[y as usize - 1].clone());
            out.push(Differing { from, to, cubes, without });
        }
    }
    Some(out)
}

fn compose<K: Ord + Clone, P: Ord + Clone>(
    list: &List<K>,
    rest: &List<P>,
    known: &BTreeMap<&K, List<P>>,
) -> Option<List<P>> {
    let keys: Vec<&K> = known.keys().copied().collect();
    let numbered: List<usize> =
        list.iter().filter_map(|(c, k)| Some((c.clone(), keys.binary_search(&k).ok()?))).collect();
    let mut lists: Vec<&List<P>> = known.values().collect();
    lists.push(rest);
    let (mut diagram, subs, places) = Diagram::of_all(&lists, &numbered)?;
    // Keys and places are numbers of leaves of their own kind; the list of keys is made last.
    let root = diagram.list(numbered.iter().map(|(c, k)| (c, *k as u32 + 1)))?;
    let whole = diagram.put(root, &subs)?;
    diagram.read(whole, &places)
}

/// A node: a leaf with its number, or the place of an inner node.
type Id = u32;
const LEAF: Id = 1 << 31;
const NO: Id = LEAF;
const YES: Id = LEAF | 1;

/// The literals of a product: variable and value, in the order of variables.
type Product = Vec<(u32, bool)>;
/// A sum of products, and the diagram of what it has.
type Sum = (Rc<Vec<Product>>, Id);

/// Numbers by three numbers.
#[derive(Default)]
struct Known {
    /// Key and number, one after the other; a number that is none is free.
    slots: Vec<([u32; 3], Option<Id>)>,
    used: usize,
}

impl Known {
    fn place(&self, key: [u32; 3]) -> usize {
        let mixed = key
            .iter()
            .fold(0u64, |h, k| (h ^ u64::from(*k)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
        let mut at = (mixed >> 32) as usize & (self.slots.len() - 1);
        while self.slots[at].1.is_some() && self.slots[at].0 != key {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }
    fn get(&self, key: [u32; 3]) -> Option<Id> {
        if self.slots.is_empty() { None } else { self.slots[self.place(key)].1 }
    }
    fn insert(&mut self, key: [u32; 3], id: Id) {
        if 2 * self.used >= self.slots.len() {
            let larger = vec![([0; 3], None); (2 * self.slots.len()).max(16)];
            for (key, id) in std::mem::replace(&mut self.slots, larger).into_iter().filter(|s| s.1.is_some())
            {
                let at = self.place(key);
                self.slots[at] = (key, id);
            }
        }
        let at = self.place(key);
        self.used += usize::from(self.slots[at].1.is_none());
        self.slots[at] = (key, Some(id));
    }
}

#[derive(Default)]
struct Diagram {
    /// What each variable is.
    bits: Vec<(Place, u32)>,
    nodes: Vec<(u32, Id, Id)>,
    unique: Known,
    both: Known,
    work: usize,
    /// How much work it may be.
    limit: usize,
}

impl Diagram {
    /// Diagrams of lists with the same places, which are answered too: leaf `n + 1` is place `n`, leaf 0 what no set has.
    fn of<P: Ord + Clone>(lists: &[&List<P>]) -> Option<(Diagram, Vec<Id>, Vec<P>)> {
        Diagram::of_all(lists, &Vec::new())
    }
    /// The same with room for the bits of another list.
    fn of_all<P: Ord + Clone>(lists: &[&List<P>], more: &List<usize>) -> Option<(Diagram, Vec<Id>, Vec<P>)> {
        let mut places: Vec<P> = Vec::new();
        let mut number: BTreeMap<&P, u32> = BTreeMap::new();
        let mut masks: BTreeMap<Place, u32> = BTreeMap::new();
        for (cube, place) in lists.iter().flat_map(|l| l.iter()) {
            number.entry(place).or_insert_with(|| {
                places.push(place.clone());
                places.len() as u32
            });
            cube.0.iter().for_each(|b| *masks.entry(b.0).or_default() |= b.1);
        }
        more.iter().flat_map(|e| &e.0.0).for_each(|b| *masks.entry(b.0).or_default() |= b.1);
        let mut diagram = Diagram { limit: WORK, ..Diagram::default() };
        for (place, mask) in masks {
            let bits = (0..32).rev().map(|n| 1u32 << n).filter(|bit| mask & bit != 0);
            diagram.bits.extend(bits.map(|bit| (place, bit)));
        }
        let mut roots = Vec::new();
        for list in lists {
            roots.push(diagram.list(list.iter().map(|(c, p)| (c, number[p])))?);
        }
        Some((diagram, roots, places))
    }

    fn step(&mut self) -> Option<()> {
        self.work += 1;
        (self.work <= self.limit).then_some(())
    }
    fn var(&self, id: Id) -> u32 {
        if id & LEAF != 0 { u32::MAX } else { self.nodes[id as usize].0 }
    }
    /// What is left of a diagram where a variable has a value.
    fn cut(&self, id: Id, var: u32) -> (Id, Id) {
        if self.var(id) == var {
            let node = self.nodes[id as usize];
            (node.1, node.2)
        } else {
            (id, id)
        }
    }
    fn node(&mut self, var: u32, low: Id, high: Id) -> Id {
        if low == high {
            return low;
        }
        if let Some(id) = self.unique.get([var, low, high]) {
            return id;
        }
        self.nodes.push((var, low, high));
        let id = self.nodes.len() as Id - 1;
        self.unique.insert([var, low, high], id);
        id
    }

    fn list<'c>(&mut self, list: impl DoubleEndedIterator<Item = (&'c Cube, u32)>) -> Option<Id> {
        let mut root = LEAF;
        for (cube, leaf) in list.rev() {
            let product = self.product(cube);
            root = self.over(&product, LEAF | leaf, root, &mut Known::default())?;
        }
        Some(root)
    }
    fn product(&self, cube: &Cube) -> Product {
        let mut out = Vec::new();
        for &(place, mask, value) in &cube.0 {
            let from = self.bits.partition_point(|b| b.0 < place);
            let own = self.bits.iter().enumerate().skip(from).take_while(|(_, b)| b.0 == place);
            out.extend(own.filter(|(_, b)| b.1 & mask != 0).map(|(n, b)| (n as u32, b.1 & value != 0)));
        }
        out
    }
    /// `leaf` for the packets of a product, `rest` for the others.
    fn over(&mut self, product: &[(u32, bool)], leaf: Id, rest: Id, known: &mut Known) -> Option<Id> {
        let Some(&(var, value)) = product.first() else { return Some(leaf) };
        if rest == leaf {
            return Some(leaf);
        }
        let key = [product.len() as u32, rest, 0];
        if let Some(id) = known.get(key) {
            return Some(id);
        }
        self.step()?;
        let top = self.var(rest);
        let id = if top < var {
            let (low, high) = self.cut(rest, top);
            let low = self.over(product, leaf, low, known)?;
            let high = self.over(product, leaf, high, known)?;
            self.node(top, low, high)
        } else {
            let (low, high) = self.cut(rest, var);
            match value {
                true => {
                    let high = self.over(&product[1..], leaf, high, known)?;
                    self.node(var, low, high)
                }
                false => {
                    let low = self.over(&product[1..], leaf, low, known)?;
                    self.node(var, low, high)
                }
            }
        };
        known.insert(key, id);
        Some(id)
    }

    /// Diagrams in the place of leaves: the one of leaf `n + 1` is `subs[n]`, that of leaf 0 the last.
    fn put(&mut self, id: Id, subs: &[Id]) -> Option<Id> {
        let (mut known, mut muxed) = (Known::default(), Known::default());
        self.put_in(id, subs, &mut known, &mut muxed)
    }
    fn put_in(&mut self, id: Id, subs: &[Id], known: &mut Known, muxed: &mut Known) -> Option<Id> {
        if id & LEAF != 0 {
            let leaf = (id & !LEAF) as usize;
            return subs.get(leaf.checked_sub(1).unwrap_or(subs.len() - 1)).copied();
        }
        if let Some(done) = known.get([id, 0, 0]) {
            return Some(done);
        }
        let (var, low, high) = self.nodes[id as usize];
        let low = self.put_in(low, subs, known, muxed)?;
        let high = self.put_in(high, subs, known, muxed)?;
        let done = self.mux(var, low, high, muxed)?;
        known.insert([id, 0, 0], done);
        Some(done)
    }
    /// One diagram where a variable is 0, another where it is 1.
    fn mux(&mut self, var: u32, low: Id, high: Id, known: &mut Known) -> Option<Id> {
        if low == high {
            return Some(low);
        }
        let top = self.var(low).min(self.var(high));
        if top >= var {
            let (low, high) = (self.cut(low, var).0, self.cut(high, var).1);
            return Some(self.node(var, low, high));
        }
        if let Some(done) = known.get([var, low, high]) {
            return Some(done);
        }
        self.step()?;
        let (a, b) = (self.cut(low, top), self.cut(high, top));
        let (zero, one) = (self.mux(var, a.0, b.0, known)?, self.mux(var, a.1, b.1, known)?);
        let done = self.node(top, zero, one);
        known.insert([var, low, high], done);
        Some(done)
    }

    /// `and` (0), `or` (1), `and not` (2) of two diagrams of yes and no.
    fn apply(&mut self, what: u32, a: Id, b: Id) -> Option<Id> {
        let said = match (what, a, b) {
            (0 | 2, NO, _) | (0, _, NO) | (2, _, YES) => Some(NO),
            (1, YES, _) | (1, _, YES) => Some(YES),
            (0, YES, x) | (0, x, YES) | (1, NO, x) | (1, x, NO) | (2, x, NO) => Some(x),
            (0 | 1, x, y) if x == y => Some(x),
            (2, x, y) if x == y => Some(NO),
            _ => None,
        };
        if said.is_some() {
            return said;
        }
        if let Some(done) = self.both.get([what, a, b]) {
            return Some(done);
        }
        self.step()?;
        let var = self.var(a).min(self.var(b));
        let (x, y) = (self.cut(a, var), self.cut(b, var));
        let (low, high) = (self.apply(what, x.0, y.0)?, self.apply(what, x.1, y.1)?);
        let done = self.node(var, low, high);
        self.both.insert([what, a, b], done);
        Some(done)
    }
    /// Yes where a leaf is one of these.
    fn leaves(&mut self, id: Id, of: &dyn Fn(u32) -> bool, known: &mut Known) -> Option<Id> {
        if id & LEAF != 0 {
            return Some(if of(id & !LEAF) { YES } else { NO });
        }
        if let Some(done) = known.get([id, 0, 0]) {
            return Some(done);
        }
        self.step()?;
        let (var, low, high) = self.nodes[id as usize];
        let (low, high) = (self.leaves(low, of, known)?, self.leaves(high, of, known)?);
        let done = self.node(var, low, high);
        known.insert([id, 0, 0], done);
        Some(done)
    }

    /// Sets that have all of `must` and nothing outside `may`, and the diagram of what they have.
    fn cubes(&mut self, must: Id, may: Id) -> Option<(Vec<Cube>, Id)> {
        let (products, has) = self.sum(must, may, &mut BTreeMap::new())?;
        Some((products.iter().map(|p| self.cube(p)).filter(Cube::can_be).collect(), has))
    }

    /// Which leaves of two diagrams the same packets come to.
    fn pairs(
        &mut self,
        a: Id,
        b: Id,
        seen: &mut BTreeSet<(Id, Id)>,
        out: &mut BTreeSet<(u32, u32)>,
    ) -> Option<()> {
        if a & b & LEAF != 0 {
            out.insert((a & !LEAF, b & !LEAF));
            return Some(());
        }
        if !seen.insert((a, b)) {
            return Some(());
        }
        self.step()?;
        let var = self.var(a).min(self.var(b));
        let (x, y) = (self.cut(a, var), self.cut(b, var));
        self.pairs(x.0, y.0, seen, out)?;
        self.pairs(x.1, y.1, seen, out)
    }

    /// A list out of a diagram.
    fn read<P: Clone>(&mut self, root: Id, places: &[P]) -> Option<List<P>> {
        let natural: Vec<u32> = (1..=places.len() as u32).collect();
        let spent = self.work;
        let plain = self.read_in(root, places, &natural);
        if plain.as_ref().is_some_and(|p| p.len() <= FEW.max(4 * places.len())) {
            return plain;
        }
        // What is scattered most comes last, for it may then have all that is said before it.
        self.work = spent;
        let mut order = natural;
        order.sort_by_cached_key(|&leaf| self.alone(root, leaf, spent + WORK));
        (self.work, self.limit) = (spent, WORK);
        // The order they were written in is easier to read where it is not much longer.
        match (plain, self.read_in(root, places, &order)) {
            (Some(plain), Some(short)) if plain.len() < short.len() * 2 => Some(plain),
            (plain, short) => short.or(plain),
        }
    }
    /// How many products a leaf takes by itself; one that takes too much work counts as most.
    fn alone(&mut self, root: Id, leaf: u32, most: usize) -> usize {
        self.limit = most.min(self.work + WORK / 20);
        let must = self.leaves(root, &|l| l == leaf, &mut Known::default());
        let sum = must.and_then(|must| self.sum(must, must, &mut BTreeMap::new()));
        sum.map_or(usize::MAX, |(products, _)| products.len())
    }
    fn read_in<P: Clone>(&mut self, root: Id, places: &[P], order: &[u32]) -> Option<List<P>> {
        let mut out = Vec::new();
        for (at, &leaf) in order.iter().enumerate() {
            let must = self.leaves(root, &|l| l == leaf, &mut Known::default())?;
            let may = self.leaves(root, &|l| order[..=at].contains(&l), &mut Known::default())?;
            let (products, _) = self.sum(must, may, &mut BTreeMap::new())?;
            let cubes = products.iter().map(|p| self.cube(p)).filter(Cube::can_be);
            out.extend(cubes.map(|c| (c, places[leaf as usize - 1].clone())));
        }
        Some(out)
    }
    fn cube(&self, product: &Product) -> Cube {
        let mut cube: Vec<(Place, u32, u32)> = Vec::new();
        for &(var, value) in product {
            let (place, bit) = self.bits[var as usize];
            let set = if value { bit } else { 0 };
            match cube.last_mut().filter(|b| b.0 == place) {
                Some(bits) => (bits.1, bits.2) = (bits.1 | bit, bits.2 | set),
                None => cube.push((place, bit, set)),
            }
        }
        Cube(cube)
    }
    /// Products that have all of `must` and nothing outside `may`.
    fn sum(&mut self, must: Id, may: Id, known: &mut BTreeMap<(Id, Id), Sum>) -> Option<Sum> {
        if must == NO {
            return Some((Rc::new(Vec::new()), NO));
        }
        if may == YES {
            return Some((Rc::new(vec![Vec::new()]), YES));
        }
        if let Some(done) = known.get(&(must, may)) {
            return Some(done.clone());
        }
        self.step()?;
        let var = self.var(must).min(self.var(may));
        let (must0, must1) = self.cut(must, var);
        let (may0, may1) = self.cut(may, var);
        let only0 = self.apply(2, must0, may1)?;
        let (zeros, has0) = self.sum(only0, may0, known)?;
        let only1 = self.apply(2, must1, may0)?;
        let (ones, has1) = self.sum(only1, may1, known)?;
        let (left0, left1) = (self.apply(2, must0, has0)?, self.apply(2, must1, has1)?);
        let (left, free) = (self.apply(1, left0, left1)?, self.apply(0, may0, may1)?);
        let (others, has) = self.sum(left, free, known)?;
        self.work += zeros.len() + ones.len() + others.len();
        let with = |value: bool, sum: &[Product]| -> Vec<Product> {
            sum.iter().map(|p| [(var, value)].iter().chain(p).copied().collect()).collect()
        };
        let mut all = with(false, &zeros);
        all.extend(with(true, &ones));
        all.extend(others.iter().cloned());
        let (low, high) = (self.apply(1, has0, has)?, self.apply(1, has1, has)?);
        let done = (Rc::new(all), self.node(var, low, high));
        known.insert((must, may), done.clone());
        Some(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(off: i32, mask: u32, value: u32) -> Cube {
        Cube::of(Place::Word(off), mask, value)
    }

    /// What a list says of four bits at 12 and four at 16.
    fn says(list: &List<u32>, a: u32, b: u32) -> Option<u32> {
        let here = word(12, 15, a).and(&word(16, 15, b)).unwrap();
        list.iter().find(|e| e.0.meets(&here)).map(|e| e.1)
    }

    struct Dice(u64);

    impl Dice {
        fn below(&mut self, n: u64) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % n) as u32
        }
        fn list(&mut self, len: u32, places: u64) -> List<u32> {
            let one = |d: &mut Dice| {
                let (m, n) = (d.below(16), d.below(16));
                word(12, m, d.below(16)).and(&word(16, n, d.below(16))).unwrap()
            };
            (0..len).map(|_| (one(self), self.below(places))).collect()
        }
    }

    #[test]
    fn a_list_and_its_diagram_say_the_same() {
        let mut dice = Dice(3);
        for _ in 0..10 {
            let list = dice.list(1500, 4);
            let short = tidy(list.clone());
            assert!(short.len() < list.len());
            for (a, b) in (0..256).map(|n| (n / 16, n % 16)) {
                assert_eq!(says(&list, a, b), says(&short, a, b), "{a} {b}");
            }
        }
    }

    #[test]
    fn lists_in_the_place_of_what_a_list_leads_to() {
        let mut dice = Dice(5);
        let list = dice.list(80, 3);
        let mut subs: Vec<List<u32>> = (0..4).map(|_| dice.list(60, 5)).collect();
        subs.iter_mut().for_each(|s| s.push((Cube::all(), 9)));
        let rest = subs.pop().unwrap();
        let whole = expand(&list, &rest, 100_000, &mut |k| subs[*k as usize].clone()).unwrap();
        assert!(whole.len() < 300, "{}", whole.len());
        for (a, b) in (0..256).map(|n| (n / 16, n % 16)) {
            let want = match says(&list, a, b) {
                Some(k) => says(&subs[k as usize], a, b),
                None => says(&rest, a, b),
            };
            assert_eq!(says(&whole, a, b), want, "{a} {b}");
        }
    }

    #[test]
    fn where_two_lists_differ() {
        let mut dice = Dice(9);
        for _ in 0..20 {
            let whole = |mut list: List<u32>| {
                list.push((Cube::all(), 9));
                list
            };
            let (a, b) = (whole(dice.list(12, 3)), whole(dice.list(12, 3)));
            let found = differing(&a, &b).unwrap();
            for (x, y) in (0..256).map(|n| (n / 16, n % 16)) {
                let here = word(12, 15, x).and(&word(16, 15, y)).unwrap();
                let mut said: Vec<(u32, u32)> = Vec::new();
                for one in &found {
                    let within = |sets: &[Cube]| sets.iter().any(|c| c.meets(&here));
                    let meant = within(&one.cubes) && !within(&one.without);
                    said.extend(meant.then_some((one.from, one.to)));
                }
                let (from, to) = (says(&a, x, y).unwrap(), says(&b, x, y).unwrap());
                assert_eq!(said, if from == to { vec![] } else { vec![(from, to)] });
            }
        }
    }

    #[test]
    fn what_is_few_stays_as_it_was() {
        let list: List<u32> = (0..50).map(|n| (word(12, u32::MAX, n), n % 2)).collect();
        assert_eq!(tidy(list.clone()), list);
        // A prefix's addresses one by one become the prefix.
        let hosts: List<u32> = (0..2048).map(|n| (word(12, u32::MAX, n), 1)).collect();
        assert_eq!(tidy(hosts), [(word(12, 0xffff_f800, 0), 1)]);
    }
}
