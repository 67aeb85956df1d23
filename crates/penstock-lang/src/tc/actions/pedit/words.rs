//! Keys back to `munge …`: the field that makes the same key is found by reading what would be typed.

use super::{KIND, layers};
use crate::tc::Env;
use crate::tc::args::Args;
use crate::token::Word;
use penstock_model::{Kernel, Options};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The numbers of a key that a dump has.
fn numbers(key: &Options) -> [i64; 8] {
    let n = |name: &str| key.i64(name).unwrap_or(0);
    [n("val"), n("mask"), n("off"), n("header"), n("cmd"), n("at"), n("offmask"), n("shift")]
}

/// The words of all keys.
///
/// # Errors
/// A key that no field makes.
pub fn words(keys: &[Options], extended: bool) -> Result<Vec<String>, String> {
    let mut said = Vec::new();
    let mut rest = keys;
    while let Some(key) = rest.first() {
        let [_, _, off, header, cmd, ..] = numbers(key);
        let fields = if header == 0 { offsets(key) } else { of_header(header) };
        let found = fields.iter().find_map(|field| {
            commands(rest, field, cmd != 0).into_iter().find_map(|command| {
                let one = [&["munge".to_owned()], field.as_slice(), &command].concat();
                made(&one, rest, extended).map(|n| (one, n))
            })
        });
        let (one, used) =
            found.ok_or_else(|| format!("pedit: no field makes the key at {off} of header {header}"))?;
        said.extend(one);
        rest = &rest[used..];
    }
    Ok(said)
}

/// `offset OFF u32` and the halves and bytes of that word.
fn offsets(key: &Options) -> Vec<Vec<String>> {
    let [_, _, off, _, _, at, offmask, shift] = numbers(key);
    let sizes = [("u32", &[0][..]), ("u16", &[0, 1, 2]), ("u8", &[0, 1, 2, 3])];
    let one = |size: &str, by: i64| {
        let mut words = vec!["offset".to_owned(), (off + by).to_string(), size.to_owned()];
        if (at, offmask, shift) != (0, 0, 0) {
            words.extend(["at".to_owned(), at.to_string(), format!("{offmask:x}"), shift.to_string()]);
        }
        words
    };
    sizes.into_iter().flat_map(|(size, by)| by.iter().map(move |&by| one(size, by))).collect()
}

fn of_header(header: i64) -> Vec<Vec<String>> {
    let fields = layers::NAMES.iter().filter(|n| i64::from(n.0) == header);
    fields.map(|&(_, layer, field)| [layer, field].map(str::to_owned).to_vec()).collect()
}

/// What may have been said of a field, the plain ones first.
fn commands(keys: &[Options], field: &[String], add: bool) -> Vec<Vec<String>> {
    let word = if add { "add" } else { "set" };
    let retained =
        |retain: Option<u32>| retain.into_iter().flat_map(|r| ["retain".to_owned(), format!("{r:#x}")]);
    let mut all = Vec::new();
    for (value, retain) in candidates(keys, field) {
        all.push([word.to_owned(), value].into_iter().chain(retained(retain)).collect());
    }
    let others: &[&str] = if add { &["decrement"] } else { &["invert", "clear", "preserve"] };
    for other in others {
        for (_, retain) in
            candidates(keys, field).into_iter().filter(|c| c.1.is_some()).chain([(String::new(), None)])
        {
            all.push(std::iter::once((*other).to_owned()).chain(retained(retain)).collect());
        }
    }
    all
}

/// How many keys these words make, where they are those that `keys` begins with.
fn made(words: &[String], keys: &[Options], extended: bool) -> Option<usize> {
    let head = if extended { &["pedit", "ex"][..] } else { &["pedit"] };
    let all = head.iter().map(|w| (*w).to_owned()).chain(words.iter().cloned());
    let all: Vec<Word> = all.map(|text| Word { text, line: 1, column: 1, len: 1 }).collect();
    let env = Env { kernel: Kernel::V6_12, device: &|_| None, objects: &crate::tc::NoObjects };
    let mut args = Args::new(&all, &env);
    let made = (KIND.parse)(&mut args).ok()?;
    let made = made.list("keys");
    let same = !made.is_empty() && made.len() <= keys.len() && args.left() == 0;
    (same && made.iter().zip(keys).all(|(a, b)| numbers(a) == numbers(b))).then_some(made.len())
}

/// Values a field may have been given, the plain ones first.
fn candidates(keys: &[Options], field: &[String]) -> Vec<(String, Option<u32>)> {
    let [val, mask, ..] = numbers(&keys[0]);
    let (val, mask) = (val as u32, mask as u32);
    let word = |i: usize| keys.get(i).map(|k| numbers(k)[0] as u32).unwrap_or(0);
    let mut all: Vec<(String, Option<u32>)> = Vec::new();
    let name = field.last().map_or("", String::as_str);
    if field[0] == "offset" {
        all.push((format!("{val:#x}"), Some(!mask)));
    }
    if matches!(name, "src" | "dst") {
        let six = (0..4).fold(0u128, |n, i| n << 32 | u128::from(word(i)));
        all.push((Ipv6Addr::from_bits(six).to_string(), None));
        for wide in [
            u64::from(val) << 16 | u64::from(word(1)) >> 16,
            u64::from(val & 0xffff) << 32 | u64::from(word(1)),
        ] {
            let octets: Vec<String> = wide.to_be_bytes()[2..].iter().map(|b| format!("{b:02x}")).collect();
            all.push((octets.join(":"), None));
        }
        let four = Ipv4Addr::from_bits(val).to_string();
        all.extend([(four.clone(), None), (four, Some(!mask))]);
        return all;
    }
    for (val, mask) in [(val, mask), (val >> 4, mask >> 4)] {
        for bits in [8u32, 16, 32] {
            for shift in (0..=32 - bits).step_by(8) {
                let cut = |n: u32| if bits == 32 { n } else { n >> shift & ((1 << bits) - 1) };
                let retain = if bits == 32 { !cut(mask) } else { !cut(mask) & ((1 << bits) - 1) };
                all.push((cut(val).to_string(), None));
                all.push((cut(val).to_string(), Some(retain)));
                // Bits within that are retained as they are may be set all the same.
                all.push((cut(val).to_string(), Some(cut(val))));
            }
        }
    }
    all
}
