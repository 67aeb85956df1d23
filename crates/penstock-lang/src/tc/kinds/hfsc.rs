//! `hfsc`: the qdisc and its classes.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_hfsc.c`.
//! Differs: a rate of 0 beside neither umax nor dmax ends tc with a division by zero; here the curve has two zero slopes.
//! `-j` of the qdisc is valid JSON, which tc's is not.

use super::{Kind, OptionWord, Side, helped, rate32, what_is_spaced, word};
use crate::show::{Out, time_text};
use crate::tc::args::{Args, matches};
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::Options;

const USAGE: &str = "\
Usage: ... hfsc [ default CLASSID ]
          CLASSID  minor (hexadecimal) of the class of packets that no filter sorts
";
const CLASS_USAGE: &str = "\
Usage: ... hfsc [ [ rt SC ] [ ls SC ] | [ sc SC ] ] [ ul SC ]
          SC is      [ m1 RATE d TIME ] m2 RATE     slope, how long, slope after it
          or         [ umax BYTES ] [ dmax TIME ] rate RATE
          rt guarantees, ls shares what is left, sc is both, ul limits (with ls or sc only)
";

const WORDS: &[OptionWord] = &[word(
    "default",
    "MINOR",
    "minor number (hexadecimal) of the class of packets that no filter sorts; without it they are dropped",
)];
const CLASS_WORDS: &[OptionWord] = &[
    word("rt", "CURVE", "real-time curve: what the class is guaranteed"),
    word("ls", "CURVE", "link-sharing curve: its share of what is left"),
    word("sc", "CURVE", "both rt and ls"),
    word("ul", "CURVE", "upper-limit curve: what link sharing may not pass"),
    word("m1", "RATE", "of a curve: slope of its first part; default 0"),
    word("d", "TIME", "of a curve: how long its first part is; default 0"),
    word("m2", "RATE", "of a curve: slope after that"),
    word("umax", "BYTES", "of a curve: largest unit of work"),
    word("dmax", "TIME", "of a curve: when that must be done"),
    word("rate", "RATE", "of a curve: its rate in the long run"),
];

pub static KIND: Kind = Kind {
    id: "hfsc",
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    class: Some(Side { parse: parse_class, say: say_class, words: CLASS_WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

fn illegal(args: &Args, name: &str, help: &str) -> Failure {
    args.fail(format!("HFSC: Illegal \"{name}\""), 1, help)
}

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut default = 0;
    while let Some(word) = args.next_word() {
        if matches(&word.text, "default") {
            let v = args.value()?;
            if default != 0 {
                return Err(args.fail("HFSC: Double \"default\"", 1, "give default once"));
            }
            default = num::u16(&v.text, 16).ok_or_else(|| {
                illegal(args, "default", "the minor of a class, hexadecimal, without a colon: default 10")
            })?;
        } else if matches(&word.text, "help") {
            return Err(helped(args, USAGE));
        } else {
            return Err(what_is_spaced("HFSC", args, &word.text, USAGE, "the hfsc qdisc takes default"));
        }
    }
    Ok(Some(Options::new().with("default", u32::from(default))))
}

/// `struct tc_service_curve`: bytes per second, µs, bytes per second.
#[derive(Clone, Copy)]
struct Curve {
    m1: u32,
    d: u32,
    m2: u32,
}

impl Curve {
    fn options(self) -> Options {
        Options::new().with("m1", self.m1).with("d", self.d).with("m2", self.m2)
    }
}

fn parse_class(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let (mut rt, mut ls, mut ul) = (None, None, None);
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("rt") {
            rt = Some(curve(args, "rt", dev)?);
        } else if is("ls") {
            ls = Some(curve(args, "ls", dev)?);
        } else if is("sc") {
            rt = Some(curve(args, "sc", dev)?);
            ls = rt;
        } else if is("ul") {
            ul = Some(curve(args, "ul", dev)?);
        } else if is("help") {
            return Err(helped(args, CLASS_USAGE));
        } else {
            let help = "an hfsc class takes rt, ls, sc, ul, each with a curve";
            return Err(what_is_spaced("HFSC", args, &word.text, CLASS_USAGE, help));
        }
    }
    if rt.is_none() && ls.is_none() && ul.is_none() {
        let f = args.fail("HFSC: no parameters given", 1, "e.g. hfsc sc rate 1mbit");
        return Err(f.usage(CLASS_USAGE));
    }
    if ul.is_some() && ls.is_none() {
        let line = "HFSC: Upper-limit Service Curve without Link-Share Service Curve";
        return Err(args.fail(line, 1, "give ls or sc as well").usage(CLASS_USAGE));
    }
    let mut o = Options::new();
    for (name, curve) in [("rt", rt), ("ls", ls), ("ul", ul)] {
        if let Some(curve) = curve {
            o = o.with(name, curve.options());
        }
    }
    Ok(Some(o))
}

/// `hfsc_get_sc`: one of two forms; what is said of the first stays when the second is tried.
fn curve(args: &mut Args, name: &str, dev: Option<&str>) -> Result<Curve, Failure> {
    let mut said = String::new();
    let begin = args.mark();
    args.value()?;
    for form in [slopes, delay] {
        args.back_to(begin);
        if let Some(curve) = form(args, dev, &mut said)? {
            if curve.m1 == 0 && curve.m2 == 0 {
                said.push_str("HFSC: Service Curve has two zero slopes\n");
                break;
            }
            return Ok(curve);
        }
    }
    let mut failure = illegal(args, name, "a curve: rate 1mbit, or m1 5mbit d 10ms m2 1mbit");
    failure.stderr.insert_str(0, &said);
    Err(failure)
}

/// A form of a curve: `None` where it is not one, with what tc says of it.
type Form<T> = Result<Option<T>, Failure>;

/// The value of `name` where the next word is that, read by `read`; `default` where it is not. The word after it is there.
fn part(
    args: &mut Args,
    name: &str,
    said: &mut String,
    read: impl FnOnce(&str, &Args, &mut String) -> Option<u32>,
) -> Form<u32> {
    if !args.peek_text().is_some_and(|text| matches(text, name)) {
        return Ok(Some(0));
    }
    args.next_word();
    let v = args.value()?;
    let Some(value) = read(&v.text, args, said) else {
        said.push_str(&format!("HFSC: Illegal \"{name}\"\n"));
        return Ok(None);
    };
    need_more(args)?;
    Ok(Some(value))
}

/// `NEXT_ARG` without taking the word.
fn need_more(args: &mut Args) -> Result<(), Failure> {
    let here = args.mark();
    args.value()?;
    args.back_to(here);
    Ok(())
}

/// The last part of a form, which must be there.
fn last(args: &mut Args, name: &str, dev: Option<&str>, said: &mut String) -> Form<u32> {
    if !args.peek_text().is_some_and(|text| matches(text, name)) {
        return Ok(None);
    }
    args.next_word();
    let v = args.value()?;
    let value = read_rate(&v.text, args, dev, said);
    if value.is_none() {
        said.push_str(&format!("HFSC: Illegal \"{name}\"\n"));
    }
    Ok(value)
}

fn read_rate(text: &str, args: &Args, dev: Option<&str>, said: &mut String) -> Option<u32> {
    match rate32(text, args, dev) {
        Ok(rate) => Some(rate),
        Err(line) => {
            said.extend(line.map(|line| line + "\n"));
            None
        }
    }
}

/// `hfsc_get_sc1`: `[ m1 RATE ] [ d TIME ] m2 RATE`.
fn slopes(args: &mut Args, dev: Option<&str>, said: &mut String) -> Form<Curve> {
    let rate = |text: &str, args: &Args, said: &mut String| read_rate(text, args, dev, said);
    let Some(m1) = part(args, "m1", said, rate)? else { return Ok(None) };
    let Some(d) = part(args, "d", said, |text, _, _| num::time(text))? else { return Ok(None) };
    Ok(last(args, "m2", dev, said)?.map(|m2| Curve { m1, d, m2 }))
}

/// `hfsc_get_sc2`: `[ umax BYTES ] [ dmax TIME ] rate RATE`.
fn delay(args: &mut Args, dev: Option<&str>, said: &mut String) -> Form<Curve> {
    let kernel = args.kernel();
    let Some(umax) = part(args, "umax", said, |text, _, _| num::size(text, kernel))? else { return Ok(None) };
    let Some(dmax) = part(args, "dmax", said, |text, _, _| num::time(text))? else { return Ok(None) };
    let Some(rate) = last(args, "rate", dev, said)? else { return Ok(None) };
    if umax != 0 && dmax == 0 {
        said.push_str("HFSC: umax given but dmax is zero.\n");
        return Ok(None);
    }
    let slope = (f64::from(umax) * 1_000_000.0 / f64::from(dmax)).ceil();
    if dmax != 0 && slope > f64::from(rate) {
        // Concave: umax within dmax, the rate after it.
        return Ok(Some(Curve { m1: num::cast_u32(slope), d: dmax, m2: rate }));
    }
    // Convex: nothing until the rate alone is in time. C counts in 32 bits here.
    let wait = umax.wrapping_mul(1_000_000).checked_div(rate).unwrap_or(0);
    Ok(Some(Curve { m1: 0, d: dmax.wrapping_sub(wait), m2: rate }))
}

fn print(o: &Options, out: &mut Out) {
    if let Some(default) = o.u32("default").filter(|&d| d != 0) {
        let hex = format!("{default:#x}");
        if out.since_7() {
            out.string("default", &hex, format_args!(" default {hex} "));
        } else {
            out.string("default", &hex, format_args!("default {default:x} "));
        }
    }
    let curve = |name: &str| o.nested(name);
    match (curve("rt"), curve("ls")) {
        (Some(rt), Some(ls)) if rt == ls => print_curve("sc", rt, out),
        (rt, ls) => {
            for (name, curve) in [("rt", rt), ("ls", ls)] {
                if let Some(curve) = curve {
                    print_curve(name, curve, out);
                }
            }
        }
    }
    if let Some(ul) = curve("ul") {
        print_curve("ul", ul, out);
    }
}

fn print_curve(name: &str, curve: &Options, out: &mut Out) {
    let number = |name: &str| curve.u32(name).unwrap_or(0);
    out.open_object(Some(name));
    out.text_only(format_args!("{name} "));
    out.rate(Some("m1"), "m1 ", u64::from(number("m1")), " ");
    let d = time_text(number("d"), out.old());
    out.num("d", number("d"), format_args!("d {d} "));
    out.rate(Some("m2"), "m2 ", u64::from(number("m2")), " ");
    out.close_object();
}

fn print_xstats(o: &Options, out: &mut Out) {
    let (period, level) = (o.u32("period").unwrap_or(0), o.u32("level").unwrap_or(0));
    out.num("period", period, format_args!(" period {period} "));
    for name in ["work", "rtwork"] {
        if let Some(bytes) = o.u64(name).filter(|&bytes| bytes != 0) {
            out.num(name, bytes, format_args!("{name} {bytes} bytes "));
        }
    }
    if out.since_7() {
        out.num("level", level, format_args!(" level {level} "));
        out.nl();
    } else {
        out.text_only(format_args!("level {level} \n"));
    }
}

fn say_class(say: &mut Say) {
    for name in ["rt", "ls", "ul"] {
        let Some(curve) = say.o.nested(name) else { continue };
        let n = |part| curve.u64(part).unwrap_or(0);
        say.word(name);
        say.word("m1").value(&format!("{name}/m1"), n("m1"), Unit::Rate);
        say.word("d").value(&format!("{name}/d"), n("d"), Unit::Us);
        say.word("m2").value(&format!("{name}/m2"), n("m2"), Unit::Rate);
    }
}

fn say_qdisc(say: &mut Say) {
    let default = say.n("default");
    if default != 0 {
        say.pair("default", format!("{default:x}"));
    }
}
