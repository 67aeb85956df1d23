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

/// How far a name is from the wanted one, where it is near enough (`string_misspell_update`).
fn near(name: &str, wanted: &str) -> Option<usize> {
    let (most, least) = (name.len().max(wanted.len()), name.len().min(wanted.len()));
    if most <= 1 {
        return None;
    }
    let threshold = if most - least <= 1 { most.div_ceil(3).max(1) } else { (most + 2).div_ceil(3) };
    Some(distance(name.as_bytes(), wanted.as_bytes())).filter(|d| *d <= threshold)
}

impl Ruleset {
    /// That there is no chain of this name in a table that is there, and which was perhaps meant. Names of one letter are near to nothing, not
    /// even to themselves.
    pub(super) fn no_chain(&self, name: &Name) -> Fault {
        let all = || self.tables.iter().flat_map(|t| t.chains.iter().map(move |c| (t, c)));
        let mut best: Option<(usize, &TableState, &ChainState)> = None;
        for (table, chain) in all() {
            if let Some(d) = near(&chain.name, &name.name)
                && best.is_none_or(|(least, ..)| d < least)
            {
                best = Some((d, table, chain));
            }
        }
        match best.filter(|b| b.2.name != name.name) {
            Some((_, table, chain)) => {
                let (family, of) = (table.family.name(), &table.name);
                let meant =
                    format!("{ENOENT}; did you mean chain ‘{}’ in table {family} ‘{of}’?", chain.name);
                Fault::new(name.pos, meant, "nft add chain makes one")
            }
            None => Fault::kernel(name.pos, ENOENT, "nft add chain makes one"),
        }
    }
}

impl Ruleset {
    /// The same of a set or map.
    pub(super) fn no_set(&self, name: &Name) -> Fault {
        let all =
            || self.tables.iter().flat_map(|t| t.sets.iter().filter(|s| !s.set.meter).map(move |s| (t, s)));
        let mut best: Option<(usize, &TableState, &SetState)> = None;
        for (table, set) in all() {
            if let Some(d) = near(&set.name, &name.name)
                && best.is_none_or(|(least, ..)| d < least)
            {
                best = Some((d, table, set));
            }
        }
        match best.filter(|b| b.2.name != name.name) {
            Some((_, table, set)) => {
                let (family, of) = (table.family.name(), &table.name);
                let kind = if set.set.data.is_some() { "map" } else { "set" };
                let meant = format!("{ENOENT}; did you mean {kind} ‘{}’ in table {family} ‘{of}’?", set.name);
                Fault::new(name.pos, meant, "nft add set makes one")
            }
            None => Fault::kernel(name.pos, ENOENT, "nft add set makes one"),
        }
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
    }
}
