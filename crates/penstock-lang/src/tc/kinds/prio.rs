//! `prio`, and pfifo_fast's dump.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_prio.c`.

use super::{Kind, OptionWord, Side, helped, what_is, word};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::say::Say;
use crate::tc::{Command, Failure, num};
use penstock_model::Options;

const USAGE: &str = "Usage: ... prio bands NUMBER priomap P1 P2...[multiqueue]
       ... prio [ bands NUMBER ] [ priomap BAND BAND ... ]\n";

/// Band by priority where no priomap is given: the kernel's `prio2band`.
const PRIOMAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

const WORDS: &[OptionWord] = &[
    word("bands", "NUMBER", "2 to 16; default 3"),
    word(
        "priomap",
        "BAND…",
        "16 bands, one for each packet priority; default 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
    ),
];

pub static KIND: Kind =
    Kind { id: "prio", qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }), print, ..Kind::BARE };

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let (mut bands, mut priomap) = (3i32, PRIOMAP);
    let (mut index, mut in_map, mut multiqueue) = (0, false, false);
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "bands" => {
                if in_map {
                    args.said.push(Command::Help(USAGE.to_owned()));
                }
                let v = args.value()?;
                bands = num::integer(&v.text, 10)
                    .ok_or_else(|| args.fail("Illegal \"bands\"", 1, "a number from 2 to 16"))?;
            }
            "priomap" => {
                if in_map {
                    return Err(args.fail("Error: duplicate priomap", 1, "give one priomap"));
                }
                in_map = true;
            }
            "multiqueue" => multiqueue = true,
            "help" => return Err(helped(args, USAGE)),
            other if !in_map => {
                return Err(what_is(args, other, USAGE, "prio takes bands and priomap"));
            }
            other => {
                let band = num::u32(other, 10)
                    .ok_or_else(|| args.fail("Illegal \"priomap\" element", 1, "bands are numbers from 0"))?;
                // The comparison is one of unsigned numbers; 2.6.35 lets the band after the last pass.
                if band > bands as u32 || (!args.old() && band == bands as u32) {
                    let help = format!("bands count from 0 to {}", bands.saturating_sub(1));
                    return Err(args.fail("\"priomap\" element is out of bands", 1, help));
                }
                if index > 15 {
                    let line = "\"priomap\" index > TC_PRIO_MAX=15";
                    return Err(args.fail(line, 1, "a priomap has 16 elements"));
                }
                priomap[index] = band as u8;
                index += 1;
            }
        }
    }
    let mut options = Options::new().with("bands", bands as u32).with("priomap", priomap.to_vec());
    if multiqueue {
        options.set("multiqueue", penstock_model::Value::Flag);
    }
    Ok(Some(options))
}

pub fn print(options: &Options, out: &mut Out) {
    let bands = options.u32("bands").unwrap_or(0);
    out.num("bands", bands, format_args!("bands {bands} "));
    out.open_array("priomap", if out.old() { "priomap " } else { "priomap" });
    for &band in options.bytes("priomap").unwrap_or(&[]) {
        out.item(band, format_args!(" {band}"));
    }
    out.close_array();
    if !out.old() {
        out.json_bool("multiqueue", false);
    }
}

fn say_qdisc(say: &mut Say) {
    let o = say.o;
    say.pair("bands", o.u32("bands").unwrap_or(3)).list("priomap", o.bytes("priomap"));
}
