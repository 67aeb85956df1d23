//! Whether what a packet shows is in a set, and what a map gives for it.
//!
//! Follows: linux v6.12 `net/netfilter/nft_lookup.c` `nft_lookup_eval`.

use super::super::eval::Way;
use super::TableState;
use super::live::{Clock, Kept, Seen};
use super::state::evaluate;
use penstock_lang::nft::{Data, Expr, Set, value};
use penstock_packet::Skb;

/// What a set says.
pub(super) enum Lookup<'a> {
    /// This is no set.
    NoSet,
    /// It is not in it.
    Absent,
    /// It is, and what its element limits does not let the rule go on.
    Broke,
    /// It is; what a map gives for it.
    Found(Option<&'a Data>),
}

impl TableState {
    /// Looks for what is seen. `not`: the rule goes on where it is not there, and the element counts nothing.
    pub(super) fn consult<'a>(
        &'a mut self,
        set: &'a Expr,
        seen: &[Seen],
        not: bool,
        skb: &Skb,
        way: &mut Way<'_>,
    ) -> Lookup<'a> {
        let state = match set {
            Expr::Set(s) => {
                return match place(s, seen) {
                    Some(at) => Lookup::Found(s.elements[at].data.as_ref()),
                    None => Lookup::Absent,
                };
            }
            Expr::Named(name, _) => self.sets.iter_mut().find(|s| s.name == *name),
            _ => return Lookup::NoSet,
        };
        let Some(state) = state else { return Lookup::NoSet };
        let now = Clock::of(way).now;
        let entry = match &state.kept {
            Kept::Hashed(_) => state.kept.find(&state.set, seen, now),
            Kept::Plain => {
                return match place(&state.set, seen) {
                    Some(at) => Lookup::Found(state.set.elements[at].data.as_ref()),
                    None => Lookup::Absent,
                };
            }
            Kept::Beside(_) => match place(&state.set, seen) {
                Some(at) => state.kept.at(at, now),
                None => None,
            },
        };
        let Some(entry) = entry else { return Lookup::Absent };
        match not || evaluate(&mut entry.states, skb, way) {
            true => Lookup::Found(entry.data.as_ref()),
            false => Lookup::Broke,
        }
    }
}

/// The place of the first element of a set whose key is what is seen.
pub(super) fn place(set: &Set, seen: &[Seen]) -> Option<usize> {
    // Keys of more parts are rare, and then looked for one after the other.
    let mut numbers = [0; 8];
    let mut known = 0;
    for (seen, number) in seen.iter().zip(&mut numbers) {
        if let Seen::Number(n) = seen {
            *number = *n;
            known += 1;
        }
    }
    if known == seen.len()
        && let Some(found) = set.find(&numbers[..seen.len()])
    {
        return found;
    }
    set.elements.iter().position(|e| is_key(seen, &e.key))
}

/// Whether what is seen is this value, or within it.
pub(super) fn is_key(seen: &[Seen], key: &Expr) -> bool {
    match (seen, key) {
        (parts, Expr::Concat(keys)) => {
            parts.len() == keys.len()
                && parts.iter().zip(keys).all(|(part, key)| is_key(std::slice::from_ref(part), key))
        }
        ([Seen::Number(n)], Expr::Flags(v, Some(mask), _)) => n & mask == *v,
        ([Seen::Number(n)], key) => {
            let (first, last) = value::bounds(key);
            (first..=last).contains(n)
        }
        ([Seen::Name(name)], Expr::Name(wanted)) => match wanted.strip_suffix('*') {
            Some(head) => name.starts_with(head),
            None => name == wanted,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_lang::nft::{Element, Type};

    /// Keys of every kind, overlapping ranges among them: what is found is what a walk finds.
    #[test]
    fn an_element_is_the_one_that_a_walk_finds() {
        let mut dice = penstock_model::Rng::named(3, "sets");
        let t = Type::Service;
        for round in 0..300 {
            let kinds = [1, 3, 4, 5][round % 4];
            let mut set = Set::default();
            for _ in 0..dice.below(40) {
                let (n, more) = (u128::from(dice.below(60)), u128::from(dice.below(9)));
                let key = match dice.below(kinds) {
                    0 => Expr::Value(n, t),
                    1 => Expr::Range(n, n + more, t),
                    2 => Expr::Prefix(n & !3, 14, t),
                    3 => Expr::Name(format!("eth{n}")),
                    _ => Expr::Flags(n, Some(7), t),
                };
                set.elements_mut().push(Element::new(key, None));
            }
            if round % 5 == 4 {
                for e in set.elements_mut() {
                    e.key = Expr::Concat(vec![e.key.clone(), Expr::Value(u128::from(dice.below(3)), t)]);
                }
            }
            value::ordered(set.elements_mut());
            for n in 0..70 {
                for seen in [
                    vec![Seen::Number(n)],
                    vec![Seen::Number(n), Seen::Number(1)],
                    vec![Seen::Name(format!("eth{n}"))],
                ] {
                    let walked = set.elements.iter().position(|e| is_key(&seen, &e.key));
                    assert_eq!(place(&set, &seen), walked, "{n} in {set:?}");
                }
            }
        }
    }
}
