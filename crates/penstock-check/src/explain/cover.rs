//! Which earlier sets meet a set, and whether they leave anything of it.

use super::cube::{Cube, Place};
use std::collections::BTreeMap;

/// What is looked at, apart from the values.
type Shape = Vec<(Place, u32)>;
type Values = Vec<u32>;

/// Shapes that look-ups go by; with more of them all sets are looked through.
const SHAPES: usize = 200;

/// Sets in an order, to be asked which of them meet another.
#[derive(Default)]
pub struct Index {
    all: Vec<Cube>,
    shapes: BTreeMap<Shape, Members>,
}

#[derive(Default)]
struct Members {
    ids: Vec<usize>,
    /// By the bits in common with who asks: numbers by values.
    by: BTreeMap<Shape, BTreeMap<Values, Vec<usize>>>,
}

fn shape(cube: &Cube) -> Shape {
    cube.0.iter().map(|b| (b.0, b.1)).collect()
}

fn values(cube: &Cube, common: &Shape) -> Values {
    common.iter().map(|&(place, mask)| cube.at(place).1 & mask).collect()
}

impl Index {
    /// Adds a set behind the others.
    pub fn push(&mut self, cube: &Cube) {
        let id = self.all.len();
        self.all.push(cube.clone());
        if self.shapes.len() <= SHAPES {
            let members = self.shapes.entry(shape(cube)).or_default();
            members.ids.push(id);
            for (common, by) in &mut members.by {
                by.entry(values(cube, common)).or_default().push(id);
            }
        }
    }
    /// The numbers of those that meet a set, in order.
    pub fn meeting(&mut self, cube: &Cube) -> Vec<usize> {
        if self.shapes.len() > SHAPES {
            return (0..self.all.len()).filter(|&i| self.all[i].meets(cube)).collect();
        }
        let mut out: Vec<usize> = Vec::new();
        for (theirs, members) in &mut self.shapes {
            let common: Shape = theirs
                .iter()
                .filter_map(|&(place, mask)| Some((place, mask & cube.at(place).0)).filter(|c| c.1 != 0))
                .collect();
            if common.is_empty() {
                out.extend(members.ids.iter().copied());
                continue;
            }
            let Members { ids, by } = members;
            let all = &self.all;
            let by = by.entry(common.clone()).or_insert_with(|| {
                let mut by: BTreeMap<Values, Vec<usize>> = BTreeMap::new();
                for &id in ids.iter() {
                    by.entry(values(&all[id], &common)).or_default().push(id);
                }
                by
            });
            out.extend(by.get(&values(cube, &common)).into_iter().flatten().copied());
        }
        // Lengths exclude one another in ways values do not show.
        out.retain(|&i| self.all[i].and(cube).is_some());
        out.sort_unstable();
        out
    }
    /// One of them.
    pub fn get(&self, id: usize) -> &Cube {
        &self.all[id]
    }
}

/// What is left of a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// At least these packets.
    Some(Cube),
    /// That would take too long to find out.
    Unknown,
}

/// How much all questions together may take.
pub struct Patience(usize);

impl Patience {
    /// For the questions of one list of so many sets.
    pub fn new(sets: usize) -> Patience {
        Patience(400_000 + 300 * sets)
    }
}

/// Whether sets leave anything of another.
pub fn left(cube: &Cube, others: &[&Cube], patience: &mut Patience) -> Left {
    let most = (20_000 + 60 * others.len()).min(patience.0);
    let mut budget = most;
    let found = search(cube, others, &mut budget);
    patience.0 -= most - budget;
    match found {
        Ok(Some(found)) => Left::Some(found),
        Ok(None) => Left::Nothing,
        Err(()) => Left::Unknown,
    }
}

/// Packets of `cube` that none of the others has.
fn search(cube: &Cube, others: &[&Cube], budget: &mut usize) -> Result<Option<Cube>, ()> {
    let asked = others.len();
    let others: Vec<&Cube> = others.iter().copied().filter(|o| o.meets(cube)).collect();
    let Some(rest) = budget.checked_sub(asked + 4 * others.len() + 1) else {
        *budget = 0;
        return Err(());
    };
    *budget = rest;
    if others.is_empty() {
        return Ok(Some(cube.clone()));
    }
    // A bit that is free here: the value that lets most of the others go is tried first.
    let mut wanted: BTreeMap<(Place, u32), (usize, usize)> = BTreeMap::new();
    for other in others.iter().take(2000) {
        let mut free = false;
        for &(place, mask, value) in &other.0 {
            let mut bits = mask & !cube.at(place).0;
            free |= bits != 0;
            while bits != 0 {
                let bit = 1 << (31 - bits.leading_zeros());
                bits &= !bit;
                let counts = wanted.entry((place, bit)).or_default();
                if value & bit != 0 { counts.1 += 1 } else { counts.0 += 1 }
            }
        }
        if !free {
            // It has all of them.
            return Ok(None);
        }
    }
    let Some((&(place, bit), &(zeros, ones))) = wanted.iter().max_by_key(|w| w.1.0.max(w.1.1)) else {
        return Ok(None);
    };
    let first = if ones >= zeros { 0 } else { bit };
    for value in [first, bit ^ first] {
        let Some(half) = cube.and(&Cube::of(place, bit, value)) else { continue };
        if let Some(found) = search(&half, &others, budget)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dst(addr: u32, len: u32) -> Cube {
        Cube::of(Place::Word(16), u32::MAX << (32 - len), addr)
    }

    #[test]
    fn who_meets_whom() {
        let mut index = Index::default();
        for cube in [
            dst(0x0a01_0000, 16),
            dst(0x0a02_0000, 16),
            Cube::of(Place::Word(12), 1, 1),
            dst(0x0a01_0203, 32),
        ] {
            index.push(&cube);
        }
        assert_eq!(index.meeting(&dst(0x0a01_0200, 24)), [0, 2, 3]);
        assert_eq!(index.meeting(&dst(0x0a01_0202, 32)), [0, 2]);
        index.push(&dst(0x0a01_0202, 32));
        assert_eq!(index.meeting(&dst(0x0a01_0202, 32)), [0, 2, 4]);
        assert_eq!(index.meeting(&Cube::all()), [0, 1, 2, 3, 4]);
    }

    fn ask(cube: &Cube, others: &[&Cube]) -> Left {
        left(cube, others, &mut Patience::new(1000))
    }

    #[test]
    fn what_is_left() {
        let halves = [dst(0, 1), dst(0x8000_0000, 1)];
        let all: Vec<&Cube> = halves.iter().collect();
        assert_eq!(ask(&Cube::all(), &all), Left::Nothing);
        assert_eq!(ask(&Cube::all(), &all[..1]), Left::Some(dst(0x8000_0000, 1)));
        let hosts: Vec<Cube> = (0..10_000).map(|n| dst(0x0a00_0000 + n, 32)).collect();
        let all: Vec<&Cube> = hosts.iter().collect();
        assert!(matches!(ask(&dst(0x0a00_0000, 8), &all), Left::Some(_)));
        let net: Vec<Cube> = (0..256).map(|n| dst(0x0a00_0000 + n, 32)).collect();
        assert_eq!(ask(&dst(0x0a00_0000, 24), &net.iter().collect::<Vec<_>>()), Left::Nothing);
    }
}
