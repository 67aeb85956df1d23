//! `ets`.
//!
//! Follows: iproute2 6.1.0 `tc/q_ets.c`. The tc of 2010 had none.
//! Differs: more than 16 quanta, which tc writes over its stack, go to the kernel, which refuses them.

use super::{Kind, OptionWord, Side, helped, what_is, word};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::Options;

const USAGE: &str = "\
Usage: ... ets [bands NUMBER] [strict NUMBER] [quanta Q1 Q2...] [priomap P1 P2...]
";
const CLASS_USAGE: &str = "Usage: ... ets [quantum Q1]\n";

/// `TCQ_ETS_MAX_BANDS`.
const BANDS_MAX: u32 = 16;

const WORDS: &[OptionWord] = &[
    word("bands", "NUMBER", "1 to 16; default as many as strict and quanta name"),
    word("strict", "NUMBER", "how many of them, the first, are strict; default 0"),
    word("quanta", "BYTES…", "what the others may send a turn, 256 to 1048576; default MTU with header"),
    word("priomap", "BAND…", "a band for each packet priority, up to 16; default the last band"),
];
const CLASS_WORDS: &[OptionWord] =
    &[word("quantum", "BYTES", "what a band that is not strict may send a turn, 256 to 1048576")];

pub static KIND: Kind = Kind {
    id: "ets",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    class: Some(Side { parse: parse_class, say: say_class, words: CLASS_WORDS }),
    print,
    ..Kind::BARE
};

fn quantum(args: &Args, text: &str) -> Result<u32, Failure> {
    match num::u32(text, 10) {
        None => Err(args.fail("Illegal \"quanta\" element", 1, "bytes, without a unit")),
        Some(0) => Err(args.fail("\"quanta\" must be > 0", 1, "bytes, e.g. 1514")),
        Some(quantum) => Ok(quantum),
    }
}

fn bands(args: &mut Args, what: &str, before: u32) -> Result<u32, Failure> {
    if before != 0 {
        return Err(args.fail(format!("Duplicate \"{what}\""), 1, format!("give {what} once")));
    }
    let v = args.value()?;
    match num::u32(&v.text, 10) {
        None => Err(args.fail(format!("Illegal \"{what}\""), 1, "a number up to 16")),
        Some(n) if n > BANDS_MAX => {
            let line = format!("The number of \"{what}\" must be <= {BANDS_MAX}");
            Err(args.fail(line, 1, "a number up to 16"))
        }
        Some(n) => Ok(n),
    }
}

/// Which list bare numbers belong to.
#[derive(PartialEq)]
enum List {
    None,
    Quanta,
    Priomap,
}

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let (mut count, mut strict) = (0, 0);
    let (mut quanta, mut priomap) = (Vec::new(), Vec::new());
    let mut list = List::None;
    while let Some(word) = args.next_word() {
        let mut text = word.text.as_str();
        match text {
            "bands" => {
                count = bands(args, "bands", count)?;
                list = List::None;
                continue;
            }
            "strict" => {
                strict = bands(args, "strict", strict)?;
                list = List::None;
                continue;
            }
            "quanta" if !quanta.is_empty() => {
                return Err(args.fail("Duplicate \"quanta\"", 1, "give quanta once"));
            }
            "priomap" if !priomap.is_empty() => {
                return Err(args.fail("Duplicate \"priomap\"", 1, "give priomap once"));
            }
            "quanta" => (list, text) = (List::Quanta, &args.value()?.text),
            "priomap" => (list, text) = (List::Priomap, &args.value()?.text),
            "help" => return Err(helped(args, USAGE)),
            _ => {}
        }
        match list {
            List::Quanta => quanta.push(quantum(args, text)?),
            List::Priomap => {
                let band = num::u32(text, 10)
                    .ok_or_else(|| args.fail("Illegal \"priomap\" element", 1, "bands are numbers from 0"))?;
                if priomap.len() > 15 {
                    let line = "\"priomap\" index cannot be higher than 15";
                    return Err(args.fail(line, 1, "a priomap has 16 elements at most"));
                }
                priomap.push(band as u8);
            }
            List::None => {
                return Err(what_is(args, text, USAGE, "ets takes bands, strict, quanta, priomap"));
            }
        }
    }
    options(args, count, strict, quanta, priomap).map(Some)
}

fn options(
    args: &Args,
    mut count: u32,
    strict: u32,
    quanta: Vec<u32>,
    priomap: Vec<u8>,
) -> Result<Options, Failure> {
    if count == 0 {
        count = (quanta.len() as u32 + strict) & 0xff;
    }
    if count == 0 {
        let line = "One of \"bands\", \"quanta\" or \"strict\" needs to be specified";
        return Err(args.fail(line, 1, "e.g. ets bands 3 strict 1").usage(USAGE));
    }
    if strict + quanta.len() as u32 > count {
        let line = "Not enough total bands to cover all the strict bands and quanta";
        return Err(args.fail(line, 1, "bands is the sum of both, at least").usage(USAGE));
    }
    if priomap.iter().any(|&band| u32::from(band) >= count) {
        let help = format!("bands count from 0 to {}", count - 1);
        return Err(args.fail("\"priomap\" element is out of bounds", 1, help));
    }
    let mut o = Options::new().with("bands", count);
    if strict != 0 {
        o = o.with("strict", strict);
    }
    if !quanta.is_empty() {
        let quanta = quanta.into_iter().map(|q| Options::new().with("quantum", q));
        o = o.with("quanta", quanta.collect::<Vec<_>>());
    }
    if !priomap.is_empty() {
        o = o.with("priomap", priomap);
    }
    Ok(o)
}

fn parse_class(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut o = Options::new();
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "quantum" if o.has("quantum") => {
                return Err(args.fail("Duplicate \"quantum\"", 1, "give quantum once"));
            }
            "quantum" => {
                let v = args.value()?;
                o = o.with("quantum", quantum(args, &v.text)?);
            }
            "help" => return Err(helped(args, CLASS_USAGE)),
            other => return Err(what_is(args, other, CLASS_USAGE, "an ets class takes quantum")),
        }
    }
    Ok(Some(o))
}

fn print(o: &Options, out: &mut Out) {
    let number = |name: &str| o.u32(name);
    if let Some(quantum) = number("quantum") {
        out.num("quantum", quantum, format_args!("quantum {quantum} "));
    }
    let Some(bands) = number("bands") else { return };
    out.num("bands", bands, format_args!("bands {bands} "));
    if let Some(strict) = number("strict") {
        out.num("strict", strict, format_args!("strict {strict} "));
    }
    if o.has("quanta") {
        out.open_array("quanta", "quanta");
        for quantum in o.list("quanta").iter().filter_map(|q| q.u32("quantum")) {
            out.item(quantum, format_args!(" {quantum}"));
        }
        out.close_array();
        out.text_only(format_args!(" "));
    }
    out.open_array("priomap", "priomap");
    for &band in o.bytes("priomap").unwrap_or(&[]) {
        out.item(band, format_args!(" {band}"));
    }
    out.close_array();
    out.text_only(format_args!(" "));
}

fn say_qdisc(say: &mut Say) {
    let o = say.o;
    say.given("bands", Unit::Plain).unless_zero("strict", Unit::Plain);
    let quanta: Vec<u32> = o.list("quanta").iter().filter_map(|q| q.u32("quantum")).collect();
    say.list("quanta", Some(quanta).filter(|q| !q.is_empty()));
    say.list("priomap", o.bytes("priomap").filter(|map| !map.is_empty()));
}

fn say_class(say: &mut Say) {
    say.all(&["quantum"], Unit::Plain);
}
