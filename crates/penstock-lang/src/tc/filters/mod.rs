//! The kinds of filters: what tc reads and prints of each.
//!
//! A kind is one [`FilterKind`]; what several share (`action`, `police`, `classid`, flags) is in [`exts`], the extended matches
//! of basic, cgroup and flow in [`ematch`].

mod address;
mod basic;
mod bpf;
mod cgroup;
mod ematch;
mod exts;
mod flow;
mod flower;
pub(super) use address::{address, address_text, prefix4, prefix6};
mod fw;
mod matchall;
mod route;
mod rsvp;
mod tcindex;
mod u32;

use super::args::Args;
use super::kinds::OptionWord;
use super::{Failure, num};
use crate::show::Out;
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Handle, Options};

/// What stood before the kind.
pub struct FilterHead<'a> {
    /// `handle`.
    pub handle: Option<&'a str>,
    /// Ethertype in host order.
    pub protocol: u16,
    /// What the filter hangs on.
    pub parent: Handle,
}

/// The filter's handle and options from what stood before the kind and what follows it.
type Parse = fn(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure>;

/// tc's half of one kind (`struct filter_util`).
pub struct FilterKind {
    /// The word.
    pub id: &'static str,
    /// Whether the tc of 2010 has it.
    old: bool,
    /// The filter's handle and options from what stood before the kind and what follows it.
    parse: Parse,
    /// Prints the options of a dump.
    print: fn(dump: &FilterDump, options: &Options, out: &mut Out),
    /// The words of its options.
    words: &'static [OptionWord],
}

impl FilterKind {
    /// A kind that tc of 2010 has too, to be filled in: `FilterKind { id: "fw", …, ..FilterKind::BARE }`.
    const BARE: FilterKind =
        FilterKind { id: "", old: true, parse: parse_other, print: |_, _, _| (), words: &[] };
    /// The words of its options.
    pub fn words(&self) -> &'static [OptionWord] {
        self.words
    }
}

/// Every kind, by name.
pub static KINDS: &[&FilterKind] = &[
    &basic::KIND,
    &bpf::KIND,
    &cgroup::KIND,
    &flow::KIND,
    &flower::KIND,
    &fw::KIND,
    &matchall::KIND,
    &route::KIND,
    &rsvp::RSVP,
    &rsvp::RSVP6,
    &tcindex::KIND,
    &u32::KIND,
];

fn find(id: &str, old: bool) -> Option<&'static FilterKind> {
    KINDS.iter().copied().find(|k| k.id == id && (k.old || !old))
}

/// The filter's handle and options from what follows its kind.
///
/// # Errors
/// tc's refusal; exit code 1.
pub fn parse(id: &str, given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    if let Some(kind) = find(id, args.old()) {
        return (kind.parse)(given, args);
    }
    if let Some(word) = args.next_word() {
        let line = format!("Unknown filter \"{id}\", hence option \"{}\" is unparsable", word.text);
        let names: Vec<&str> = KINDS.iter().map(|k| k.id).collect();
        return Err(args.fail(line, 1, format!("kinds of filters: {}", names.join(", "))));
    }
    parse_other(given, args)
}

/// `parse_nofopt`.
fn parse_other(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let Some(handle) = given.handle else { return Ok((0, None)) };
    let number = num::u32(handle, 16)
        .ok_or_else(|| args.fail(format!("Unparsable filter ID \"{handle}\""), 1, "a hexadecimal number"))?;
    Ok((number, None))
}

/// Prints a filter's options.
pub fn print(dump: &FilterDump, options: &Options, out: &mut Out) {
    match find(dump.kind, out.old()) {
        Some(kind) => (kind.print)(dump, options, out),
        None if dump.handle != 0 => out.text_only(format_args!("fh {:08x} ", dump.handle)),
        None => {}
    }
}
