//! `cbs`.
//!
//! Follows: iproute2 6.1.0 `tc/q_cbs.c`. The tc of 2010 had none.

use super::{Kind, OptionWord, Side, helped, word};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::say::Say;
use crate::tc::{Failure, num};
use penstock_model::Options;

const USAGE: &str = "\
Usage: ... cbs hicredit BYTES locredit BYTES sendslope BPS idleslope BPS
          [ offload 0|1 ]; the slopes are in kbit/s
";

const WORDS: &[OptionWord] = &[
    word("hicredit", "BYTES", "maximum credit; default 0"),
    word("locredit", "BYTES", "minimum credit, negative; default 0"),
    word("sendslope", "KBIT/S", "how credit falls while a frame is sent, negative; default 0"),
    word("idleslope", "KBIT/S", "how credit grows while frames wait; default 0"),
    word("offload", "0|1", "let the card shape; default 0"),
];

/// As tc reads and prints them; the first is read as one byte.
const NAMES: [&str; 5] = ["offload", "hicredit", "locredit", "sendslope", "idleslope"];

pub static KIND: Kind = Kind {
    id: "cbs",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    ..Kind::BARE
};

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut values = [0i32; 5];
    while let Some(word) = args.next_word() {
        let Some(which) = NAMES.iter().position(|name| matches(&word.text, name)) else {
            if word.text == "help" {
                return Err(helped(args, USAGE));
            }
            let line = format!("cbs: unknown parameter \"{}\"", word.text);
            let help = "cbs takes hicredit, locredit, sendslope, idleslope, offload";
            return Err(args.fail(line, 1, help).usage(USAGE));
        };
        let (name, v) = (NAMES[which], args.value()?);
        if values[which] != 0 {
            let line = format!("cbs: duplicate \"{name}\" specification");
            return Err(args.fail(line, 1, format!("give {name} once")));
        }
        let value = match name {
            "offload" => num::u8(&v.text, 0).map(i32::from),
            _ => num::integer(&v.text, 0),
        };
        values[which] = value.ok_or_else(|| {
            let line = format!("cbs: illegal value for \"{name}\": \"{}\"", v.text);
            args.fail(line, 1, "a whole number, without a unit")
        })?;
    }
    let mut o = Options::new();
    for (name, value) in NAMES.into_iter().zip(values).skip(1) {
        o = o.with(name, i64::from(value));
    }
    Ok(Some(o.with("offload", values[0] as u32)))
}

fn print(o: &Options, out: &mut Out) {
    for name in ["hicredit", "locredit", "sendslope", "idleslope", "offload"] {
        let value = o.i64(name).unwrap_or(0);
        out.num(name, value, format_args!("{name} {value} "));
    }
}

fn say_qdisc(say: &mut Say) {
    for name in ["hicredit", "locredit", "sendslope", "idleslope", "offload"] {
        say.signed(name);
    }
}
