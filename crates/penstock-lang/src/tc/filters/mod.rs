//! The kinds of filters: what tc reads and prints of each.

mod address;
pub(super) use address::{address, address_text, prefix4, prefix6};
mod fw;
mod u32;

use super::args::Args;
use super::{Failure, num};
use crate::show::Out;
use penstock_model::Options;
use penstock_model::rtnetlink::FilterDump;

/// The filter's handle and options from what follows its kind.
///
/// # Errors
/// tc's refusal; exit code 1.
pub fn parse(id: &str, handle: Option<&str>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    match id {
        "u32" => u32::parse(handle, args),
        "fw" => fw::parse(handle, args),
        _ => {
            if let Some(word) = args.next_word() {
                let line = format!("Unknown filter \"{id}\", hence option \"{}\" is unparsable", word.text);
                return Err(args.fail(line, 1, "kinds of filters with options: u32, fw"));
            }
            let Some(handle) = handle else { return Ok((0, None)) };
            let number = num::u32(handle, 16).ok_or_else(|| {
                args.fail(format!("Unparsable filter ID \"{handle}\""), 1, "a hexadecimal number")
            })?;
            Ok((number, None))
        }
    }
}

/// Prints a filter's options.
pub fn print(dump: &FilterDump, out: &mut Out) {
    match dump.kind {
        "u32" => u32::print(dump, out),
        "fw" => fw::print(dump, out),
        _ if dump.handle != 0 => out.text_only(format_args!("fh {:08x} ", dump.handle)),
        _ => {}
    }
}
