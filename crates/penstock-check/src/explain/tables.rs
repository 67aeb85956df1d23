//! u32's tables written as sets of packets.
//!
//! Follows: linux v6.12 `net/sched/cls_u32.c` `u32_classify`.

use super::ask::{self, State};
use super::cube::{Cube, Place, known_bits};
use super::space::{Hit, Hits, Space, node};
use crate::filters::Filter;
use penstock_model::Handle;

/// What a walk through u32's tables carries along.
struct U32<'s> {
    parent: Handle,
    protocol: u16,
    state: &'s State,
    depth: u32,
}

fn in_root(hash: u32) -> bool {
    hash == 0 || hash >> 20 >= 0x800
}
fn bucket_of(filter: &Filter) -> u32 {
    filter.options.u32("hash").unwrap_or(0) >> 12 & 0xff
}
impl<'a> Space<'a> {
    /// A priority of u32.
    pub(super) fn u32_group(
        &mut self,
        group: &[&'a Filter],
        parent: Handle,
        state: &State,
        depth: u32,
    ) -> Hits {
        let mut roots: Vec<&Filter> =
            group.iter().copied().filter(|f| f.options.u32("hash").is_none_or(in_root)).collect();
        roots.sort_by_key(|f| node(f));
        let walk = U32 { parent, protocol: group[0].protocol, state, depth };
        let mut out = Vec::new();
        self.bucket(&roots, &walk, (0, 0), 0, &mut out);
        out
    }
    /// Filters of one bucket, `base` bytes and, for `nexthdr+`, `base.1` more behind the network header's begin.
    fn bucket(
        &mut self,
        filters: &[&'a Filter],
        walk: &U32<'_>,
        base: (i32, i32),
        level: u32,
        out: &mut Hits,
    ) {
        for filter in filters {
            if self.limit(out.len()) {
                return;
            }
            let Some(mut cube) = self.marked(filter, walk.state) else { continue };
            let mut fits = true;
            for (mask, value, off, offmask) in filter.keys() {
                let at = base.0 + off as i32 + (base.1 & offmask as i32);
                if at + 4 > 28 {
                    self.longs.insert((at + 4) as u32);
                    // Where the packet ends before these bytes the whole priority gives up.
                    if (at + 4) as u32 > self.most {
                        out.push((cube.clone(), Hit::Skip));
                        fits = false;
                        break;
                    }
                }
                let key = Cube::word(at, mask, value).and_then(|c| ask::adapt(&c, walk.state));
                match key.and_then(|k| cube.and(&k)) {
                    Some(both) => cube = both,
                    None => {
                        fits = false;
                        break;
                    }
                }
            }
            if !fits {
                continue;
            }
            if let Some(link) = filter.options.u32("link").filter(|l| *l != 0) {
                if level < 8 {
                    self.link(filter, &cube, link >> 20, walk, base, level, out);
                }
                if filter.classid.is_none() && filter.actions().next().is_none() {
                    continue;
                }
            } else if filter.classid.is_none() && filter.actions().next().is_none() {
                continue;
            }
            let hit = self.hit(filter, walk.parent, walk.state, walk.depth);
            out.extend(hit.map(|hit| (cube, hit)));
        }
    }
    fn marked(&mut self, filter: &Filter, state: &State) -> Option<Cube> {
        let mut cube = Cube::all();
        if let Some(mark) = filter.options.nested("mark") {
            let n = |name| mark.u32(name).unwrap_or(0);
            cube = ask::mark(state, n("mask"), n("val") & n("mask"))?;
        }
        if let Some(dev) = filter.options.str("indev") {
            cube = cube.and(&Cube::of(Place::Input, 0xffff, self.names.input(dev)))?;
        }
        Some(cube)
    }
    /// The table a filter links to, bucket by bucket.
    #[expect(clippy::too_many_arguments, reason = "what a walk through tables carries along")]
    fn link(
        &mut self,
        filter: &Filter,
        cube: &Cube,
        table: u32,
        walk: &U32<'_>,
        base: (i32, i32),
        level: u32,
        out: &mut Hits,
    ) {
        let sel = filter.options.nested("sel").cloned().unwrap_or_default();
        let n = |name: &str| sel.u32(name).unwrap_or(0);
        let divisor = self.device.tables.get(&(walk.parent.qdisc(), table)).copied().unwrap_or(1);
        let hmask = n("hmask");
        let shift = if hmask == 0 { 0 } else { hmask.trailing_zeros() };
        let hoff = base.0 + sel.i64("hoff").unwrap_or(0) as i32;
        let flags = n("flags");
        // Each value the offset may have, with the bits that say so.
        let mut offsets: Vec<(Cube, i32)> = vec![(Cube::all(), base.1)];
        if flags & 6 != 0 {
            let plus = n("off") as i32 + 3;
            offsets = vec![(Cube::all(), plus & !3)];
            if flags & 4 != 0 {
                offsets = self.offsets(&sel, walk.protocol, base.0, plus);
            }
        }
        let device = self.device;
        let mut inside: Vec<&'a Filter> = device
            .filters
            .iter()
            .filter(|f| {
                f.parent.qdisc() == walk.parent.qdisc()
                    && f.kind == "u32"
                    && f.options.u32("hash").is_some_and(|h| h >> 20 == table)
            })
            .collect();
        inside.sort_by_key(|f| (bucket_of(f), node(f)));
        for (bits, off2) in offsets {
            let Some(cube) = cube.and(&bits) else { continue };
            let next = if flags & 8 != 0 { (base.0 + off2, 0) } else { (base.0, off2) };
            for group in inside.chunk_by(|a, b| bucket_of(a) == bucket_of(b)) {
                let bucket = bucket_of(group[0]);
                let looked = (divisor - 1) << shift & hmask;
                if divisor > 1 && bucket << shift & !looked != 0 || divisor == 1 && bucket != 0 {
                    continue;
                }
                let hash =
                    if divisor > 1 { Cube::word(hoff, looked, bucket << shift) } else { Some(Cube::all()) };
                let Some(cube) = hash.and_then(|h| ask::adapt(&h, walk.state)).and_then(|h| cube.and(&h))
                else {
                    continue;
                };
                let mut own = Vec::new();
                self.bucket(group, walk, next, level + 1, &mut own);
                out.extend(own.into_iter().filter_map(|(c, h)| Some((cube.and(&c)?, h))));
            }
        }
    }
    /// What an offset read from the packet may be.
    fn offsets(
        &mut self,
        sel: &penstock_model::Options,
        protocol: u16,
        base: i32,
        plus: i32,
    ) -> Vec<(Cube, i32)> {
        let n = |name: &str| sel.u32(name).unwrap_or(0);
        let at = base + sel.i64("offoff").unwrap_or(0) as i32;
        let down = 16 - 8 * at.rem_euclid(4).min(2) as u32;
        let mask = n("offmask") & 0xffff;
        let (fixed, is) = if at - at.rem_euclid(4) == 0 { known_bits(protocol) } else { (0, 0) };
        let (fixed, is) = (fixed >> down & mask, is >> down & mask);
        let free = mask & !fixed;
        let mut out = Vec::new();
        let mut value = 0u32;
        for _ in 0..256 {
            let half = value | is & fixed;
            if let Some(cube) = Cube::word(at - at.rem_euclid(4), free << down, value << down) {
                out.push((cube, (plus + (half >> (n("offshift") & 31)) as i32) & !3));
            }
            // The next number made of the free bits.
            value = value.wrapping_sub(free) & free;
            if value == 0 {
                break;
            }
        }
        self.cut |= value != 0;
        out
    }
}
