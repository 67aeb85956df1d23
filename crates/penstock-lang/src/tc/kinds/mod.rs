//! The kinds of queueing disciplines: what tc reads and prints of each.

mod atm;
mod cake;
mod cbq;
mod cbs;
mod choke;
pub(super) mod clock;
mod codel;
mod drr;
mod dsmark;
mod dualpi2;
mod etf;
mod ets;
mod fifo;
mod fq;
mod fq_codel;
mod fq_pie;
mod gred;
mod hfsc;
mod hhf;
mod htb;
mod mqprio;
mod multiq;
mod netem;
mod pie;
mod plain;
mod plug;
mod prio;
mod qfq;
mod queues;
mod red;
pub(super) mod red_parms;
mod sfb;
mod sfq;
mod skbprio;
mod taprio;
mod tbf;

use super::args::{Args, matches};
use super::say::Say;
use super::{Failure, num};
use crate::show::Out;
use penstock_model::{Kernel, Options};

/// Reads a kind's options; the device's name is known where it stood before the kind.
type Parse = fn(&mut Args, Option<&str>) -> Result<Option<Options>, Failure>;
/// Prints what a dump holds.
type Print = fn(&Options, &mut Out);

/// Says options again: puts the words that make them into [`Say`].
type Speak = fn(&mut Say);

/// The options of a kind's qdiscs, or of its classes: how they are read, said again and explained. One cannot be there without the others.
struct Side {
    parse: Parse,
    say: Speak,
    /// For help and completion.
    words: &'static [OptionWord],
}

/// tc's half of one kind (`struct qdisc_util`).
pub struct Kind {
    /// The word.
    pub id: &'static str,
    /// Whether the tc of 2010 knows it.
    in_2_6_35: bool,
    /// Whether that of the profile 6.12 does.
    in_6_12: bool,
    /// Whether that of 7.2 still does.
    in_7_2: bool,
    /// Options of the qdisc; `None`: the kind takes none.
    qdisc: Option<Side>,
    /// Options of its classes, which `print` prints too; `None`: tc calls it classless.
    class: Option<Side>,
    /// Prints a qdisc's or a class's options.
    print: Print,
    /// Prints the kind's own counters; ends with a newline where tc's does.
    print_xstats: Option<Print>,
}

/// One word among a kind's options, as help and completion show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionWord {
    /// The word: `limit`.
    pub word: &'static str,
    /// What follows it: `PACKETS`, `TIME`, `RATE`; empty for a word that stands alone.
    pub value: &'static str,
    /// What it sets, with unit, range and default, in a line.
    pub about: &'static str,
}

/// Writes an [`OptionWord`]; for the tables of kinds.
pub const fn word(word: &'static str, value: &'static str, about: &'static str) -> OptionWord {
    OptionWord { word, value, about }
}

impl Kind {
    /// A kind that takes no options and prints none, to be filled in: `Kind { id: "codel", …, ..Kind::BARE }`.
    const BARE: Kind = Kind {
        id: "",
        in_2_6_35: true,
        in_6_12: true,
        in_7_2: true,
        qdisc: None,
        class: None,
        print: |_, _| (),
        print_xstats: None,
    };
    /// Whether the tc of this profile knows it.
    const fn is_in(&self, kernel: Kernel) -> bool {
        match kernel {
            Kernel::V2_6_35 => self.in_2_6_35,
            Kernel::V6_12 => self.in_6_12,
            Kernel::V7_2 => self.in_7_2,
        }
    }
    /// The words of its qdisc's options.
    pub fn words(&self) -> &'static [OptionWord] {
        self.qdisc.as_ref().map_or(&[], |side| side.words)
    }
    /// The words of its classes' options.
    pub fn class_words(&self) -> &'static [OptionWord] {
        self.class.as_ref().map_or(&[], |side| side.words)
    }
    /// Says a qdisc's options again.
    pub(super) fn say(&self, say: &mut Say) {
        if let Some(side) = &self.qdisc {
            (side.say)(say);
        }
    }
    /// Says a class's options again.
    pub(super) fn say_class(&self, say: &mut Say) {
        if let Some(side) = &self.class {
            (side.say)(say);
        }
    }
}

/// The kind called `id`.
pub fn find(id: &str) -> Option<&'static Kind> {
    KINDS.iter().copied().find(|k| k.id == id)
}

/// Option of a request that has NLM_F_CREATE set by its kind, whatever the verb (gred's `setup`). Taken out again before
/// the kernel sees it.
pub const CREATES: &str = "nlm_f_create";

/// Every kind, by name.
pub static KINDS: &[&Kind] = &[
    &atm::KIND,
    &fifo::BFIFO,
    &cake::KIND,
    &cake::MQ,
    &cbq::KIND,
    &cbs::KIND,
    &choke::KIND,
    &CLSACT,
    &codel::KIND,
    &drr::KIND,
    &dsmark::KIND,
    &dualpi2::KIND,
    &etf::KIND,
    &ets::KIND,
    &fq::KIND,
    &fq_codel::KIND,
    &fq_pie::KIND,
    &gred::KIND,
    &hfsc::KIND,
    &hhf::KIND,
    &htb::KIND,
    &INGRESS,
    &mqprio::KIND,
    &multiq::KIND,
    &netem::KIND,
    &fifo::PFIFO,
    &fifo::PFIFO_FAST,
    &fifo::PFIFO_HEAD_DROP,
    &pie::KIND,
    &plug::KIND,
    &prio::KIND,
    &qfq::KIND,
    &red::KIND,
    &sfb::KIND,
    &sfq::KIND,
    &skbprio::KIND,
    &taprio::KIND,
    &tbf::KIND,
];

static INGRESS: Kind = Kind {
    id: "ingress",
    qdisc: Some(Side {
        parse: |args, _| {
            while let Some(word) = args.next_word() {
                if word.text != "handle" {
                    let help = "ingress takes no options";
                    return Err(what_is(args, &word.text, "Usage: ... ingress\n", help));
                }
                args.value()?;
            }
            Ok(None)
        },
        say: |_| (),
        words: &[],
    }),
    print: |_, out| out.text_only(format_args!("---------------- ")),
    ..Kind::BARE
};

static CLSACT: Kind = Kind {
    id: "clsact",
    in_2_6_35: false,
    qdisc: Some(Side {
        parse: |args, _| match args.next_word() {
            Some(word) => Err(what_is(args, &word.text, "Usage: ... clsact\n", "clsact takes no options")),
            None => Ok(None),
        },
        say: |_| (),
        words: &[],
    }),
    ..Kind::BARE
};

fn kind(id: &str, args: &Args) -> Option<&'static Kind> {
    KINDS.iter().copied().find(|k| k.id == id && k.is_in(args.kernel()))
}

/// The options of `tc qdisc add … KIND OPTIONS`.
///
/// # Errors
/// tc's refusal; exit code 1 from within a kind.
pub fn parse_qdisc(id: &str, args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let Some(kind) = kind(id, args) else {
        let Some(word) = args.next_word() else { return Ok(None) };
        return Err(unknown(id, args, &word.text));
    };
    match &kind.qdisc {
        Some(side) => (side.parse)(args, dev),
        None if args.left() == 0 && !args.old() => Ok(None),
        None => {
            args.next_word();
            let line = format!("qdisc '{id}' does not support option parsing");
            Err(args.fail(line, 255, "it is the default; take the root qdisc away to get it"))
        }
    }
}

/// The options of `tc class add … KIND OPTIONS`.
///
/// # Errors
/// tc's refusal.
pub fn parse_class(id: &str, args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let Some(side) = kind(id, args).and_then(|k| k.class.as_ref()) else {
        let help = match id {
            "prio" => {
                "prio's classes exist by themselves, one a band; give them qdiscs with parent 1:1, 1:2, …"
            }
            _ if args.since_7() => "classes can be added to htb, hfsc, drr and qfq",
            _ => "classes can be added to htb, hfsc, drr, qfq and cbq",
        };
        return Err(args.fail(format!("Error: Qdisc \"{id}\" is classless."), 1, help));
    };
    (side.parse)(args, dev)
}

/// Prints the options of a qdisc; pfifo_fast is printed as prio.
pub fn print_qdisc(id: &str, options: &Options, out: &mut Out) {
    if let Some(kind) = find(id) {
        (kind.print)(options, out);
    }
}

/// Prints the options of a class. `false`: tc has no words for them.
pub fn print_class(id: &str, options: &Options, out: &mut Out) -> bool {
    match find(id).filter(|k| k.class.is_some()) {
        Some(kind) => {
            (kind.print)(options, out);
            true
        }
        None => false,
    }
}

/// Prints the kind's own counters. `false`: it has none.
pub fn print_xstats(id: &str, xstats: &Options, out: &mut Out) -> bool {
    match find(id).and_then(|k| k.print_xstats) {
        Some(print) => {
            print(xstats, out);
            true
        }
        None => false,
    }
}

fn unknown(id: &str, args: &Args, word: &str) -> Failure {
    let mut help = "kinds with options: ".to_owned();
    // tc knows these two words, but no kernel here has the kinds.
    let here = |id: &str| id != "ingress" && id != "clsact";
    let kinds = KINDS.iter().filter(|k| k.qdisc.is_some() && k.is_in(args.kernel()) && here(k.id));
    let names: Vec<&str> = kinds.map(|k| k.id).collect();
    help.push_str(&names.join(", "));
    if let Some(kind) = names.iter().find(|k| id.len() > k.len() && id.starts_with(**k)) {
        help = format!("a blank is missing: \"{kind} {}\"", &id[kind.len()..]);
    }
    args.fail(format!("Unknown qdisc \"{id}\", hence option \"{word}\" is unparsable"), 1, help)
}

/// `What is "…"?` and the usage.
pub fn what_is(args: &Args, word: &str, usage: &str, help: impl Into<String>) -> Failure {
    args.fail(format!("What is \"{word}\"?"), 1, help).usage(usage)
}

/// The same in the words of hfsc.
fn what_is_spaced(kind: &str, args: &Args, word: &str, usage: &str, help: &str) -> Failure {
    args.fail(format!("{kind}: What is \"{word}\" ?"), 1, help).usage(usage)
}

/// `help` within a kind's options: its usage, and failure.
pub fn helped(args: &Args, usage: &str) -> Failure {
    let mut f = args.fail("", 1, "");
    f.stderr = usage.to_owned();
    f.diagnostic.message = usage.lines().next().unwrap_or("").to_owned();
    f
}

/// `get_linklayer`: `ethernet` 1, `atm` and `adsl` 2.
pub fn linklayer(word: &str) -> Option<u32> {
    if matches(word, "ethernet") {
        Some(1)
    } else if matches(word, "atm") || matches(word, "adsl") {
        Some(2)
    } else {
        None
    }
}

/// The name of a link layer as tc prints it.
pub fn linklayer_name(linklayer: u32) -> &'static str {
    match linklayer {
        0 => "unspec",
        1 => "ethernet",
        2 => "atm",
        _ => "unknown",
    }
}

/// The cell's logarithm as `tc_calc_rtable` chooses it: the smallest with which `mtu` fits 256 cells.
pub fn cell_log(given: Option<u32>, mtu: u32) -> u32 {
    given.unwrap_or_else(|| {
        let mtu = if mtu == 0 { 2047 } else { mtu };
        (0..32).find(|&log| mtu >> log <= 255).unwrap_or(31)
    })
}

/// `rate` with a `%` of the device's speed, or absolute. The lines tc prints before the kind's own refusal come back.
pub fn rate(word: &str, args: &Args, dev: Option<&str>) -> Result<u64, Option<String>> {
    if args.old() || !word.contains('%') {
        return num::rate(word, args.kernel()).ok_or(None);
    }
    let Some(dev) = dev else {
        return Err(Some("No device specified; specify device to rate limit by percentage".to_owned()));
    };
    let path = format!("/sys/class/net/{dev}/speed");
    let Some(link) = (args.env.device)(dev) else {
        return Err(Some(format!("fopen {path}: No such file or directory")));
    };
    let Some(speed) = link.speed_mbit else {
        return Err(Some(format!("property \"speed\" in file {path} is currently unknown")));
    };
    let malformed = || Err(Some("Specified rate value could not be read or is malformed".to_owned()));
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '%').unwrap_or(word.len());
    let percent = &word[..end];
    if percent.is_empty() {
        return malformed();
    }
    let (value, rest) = num::strtod(percent).unwrap_or((0.0, percent));
    let share = value / 100.0;
    if !(0.0..=1.0).contains(&share) {
        return Err(Some(format!("Invalid rate specified; should be between [0,100]% but is {word}")));
    }
    if !rest.is_empty() && rest != "%" {
        return malformed();
    }
    let text = format!("{:.6}", share * f64::from(speed) * 1000.0 * 1000.0);
    if text.len() >= 20 {
        return Err(Some("Unable to parse calculated rate".to_owned()));
    }
    num::rate(&text, args.kernel()).ok_or(None)
}

/// The same where the kind keeps 32 bits of it (`get_percent_rate`, `get_rate`).
/// [`rate`] where 32 bits are to hold it.
pub fn rate32(word: &str, args: &Args, dev: Option<&str>) -> Result<u32, Option<String>> {
    if args.old() || !word.contains('%') {
        return num::rate32(word, args.kernel()).ok_or(None);
    }
    u32::try_from(rate(word, args, dev)?).map_err(|_| None)
}
