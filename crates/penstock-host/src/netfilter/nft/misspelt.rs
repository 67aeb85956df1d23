//! Names that were perhaps meant, as nft finds them.
//!
//! Follows: nftables 1.0.6 `misspell.c`, `cache.c` `chain_lookup_fuzzy`, `cmd.c` `nft_cmd_enoent_chain`.

use super::change::ENOENT;
use super::{ChainState, Ruleset, SetState, TableState};
use penstock_lang::nft::{Fault, Name};

/// Deletions, insertions and changes from one name to the other (`string_distance`). Its rows are as long as the second name, so that the
/// last place of each is the first of the next, and the letter behind the last is compared too: as there.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let letter = |text: &[u8], at: usize| text.get(at).copied().unwrap_or(0);
    let row = b.len();
    let mut all = vec![0; (a.len() + 1) * (b.len() + 1)];
    for i in 0..=a.len() {
        all[i * row] = i;
    }
    for (j, place) in all.iter_mut().enumerate().take(row + 1) {
        *place = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let cost = usize::from(letter(a, i) != letter(b, j));
            let mut least = (all[(i - 1) * row + j] + 1)
                .min(all[i * row + j - 1] + 1)
                .min(all[(i - 1) * row + j - 1] + cost);
            if i > 1 && j > 1 && letter(a, i) == letter(b, j - 1) && letter(a, i - 1) == letter(b, j) {
                least = least.min(all[(i - 2) * row + j - 2] + cost);
            }
            all[i * row + j] = least;
        }
    }
    all[a.len() * row + b.len()]
}

/// The longest name that the kernel takes (`NFT_NAME_MAXLEN` with its end).
const MOST: usize = 255;

/// How far a name is from the wanted one, where it is near enough (`string_misspell_update`).
fn near(name: &str, wanted: &str) -> Option<usize> {
    let (most, least) = (name.len().max(wanted.len()), name.len().min(wanted.len()));
    if most <= 1 || most > MOST {
        return None;
    }
    let threshold = if most - least <= 1 { most.div_ceil(3).max(1) } else { (most + 2).div_ceil(3) };
    Some(distance(name.as_bytes(), wanted.as_bytes())).filter(|d| *d <= threshold)
}

/// Of several things the first that is nearest to the wanted name, if that is not its own.
fn nearest<'a, T>(
    all: impl Iterator<Item = (&'a TableState, &'a T)>,
    name: fn(&T) -> &str,
    wanted: &str,
) -> Option<(&'a TableState, &'a T)> {
    let far = all.filter_map(|(table, one)| Some((near(name(one), wanted)?, table, one)));
    far.min_by_key(|f| f.0).filter(|f| name(f.2) != wanted).map(|(_, table, one)| (table, one))
}

/// That there is no such thing, and which was perhaps meant.
fn none(name: &Name, meant: Option<(&str, &str, &TableState)>, help: &str) -> Fault {
    match meant {
        Some((kind, own, table)) => {
            let (family, of) = (table.family.name(), &table.name);
            let said = format!("{ENOENT}; did you mean {kind} ‘{own}’ in table {family} ‘{of}’?");
            Fault::new(name.pos, said, help)
        }
        None => Fault::kernel(name.pos, ENOENT, help),
    }
}

impl Ruleset {
    /// That there is no chain of this name in a table that is there. Names of one letter are near to nothing, not even to themselves.
    pub(super) fn no_chain(&self, name: &Name) -> Fault {
        let all = self.tables.iter().flat_map(|t| t.chains.iter().map(move |c| (t, c)));
        let found = nearest(all, |c: &ChainState| &c.name, &name.name);
        none(name, found.map(|(t, c)| ("chain", c.name.as_str(), t)), "nft add chain makes one")
    }
    /// The same of a set or map.
    pub(super) fn no_set(&self, name: &Name) -> Fault {
        let all = self.tables.iter().flat_map(|t| t.sets.iter().map(move |s| (t, s)));
        let found = nearest(all.filter(|s| !s.1.set.meter), |s: &SetState| &s.name, &name.name);
        let kind = |s: &SetState| if s.set.data.is_some() { "map" } else { "set" };
        none(name, found.map(|(t, s)| (kind(s), s.name.as_str(), t)), "nft add set makes one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_near_where_nft_finds_it_so() {
        assert_eq!(near("c1", "b"), Some(1));
        assert_eq!(near("b", "c"), None);
        assert!(near("forward", "froward").is_some());
        assert_eq!(near("postrouting", "input"), None);
        assert_eq!(near(&"x".repeat(100_000), &"x".repeat(100_000)), None);
    }
}
