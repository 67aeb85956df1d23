//! `htb`: the qdisc and its classes.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_htb.c`.

use super::{Kind, OptionWord, Side, cell_log, helped, linklayer, linklayer_name, rate, what_is, word};
use crate::show::{Out, size_text};
use crate::tc::args::{Args, matches};
use crate::tc::say::{Say, Unit, burst};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value, psched};

const USAGE: &str = "\
Usage: ... qdisc add ... htb [default N] [r2q N]
       ... qdisc add ... htb [ default N ] [ r2q N ] [ direct_qlen P ] [ offload ]
          default      minor of the class that takes what no filter classifies (hexadecimal) {0: direct}
          r2q          a class's quantum is its rate in bytes/s divided by this {10}
          direct_qlen  packets the direct queue holds
       ... class add ... htb rate RATE [ ceil RATE ] [ burst BYTES[/BYTES] ] [ cburst BYTES[/BYTES] ]
          [ prio P ] [ quantum BYTES ] [ mtu BYTES ] [ mpu BYTES ] [ overhead BYTES ] [ linklayer TYPE ]
          rate         what the class may send of its own; ceil: what it may borrow up to {rate}
          burst        bytes at once from rate, cburst from ceil {computed}
          prio         lower borrows first {0}
";

const WORDS: &[OptionWord] = &[
    word(
        "default",
        "MINOR",
        "minor number (hexadecimal) of the class of packets that no filter sorts; default 0: unshaped",
    ),
    word("r2q", "NUMBER", "a class's quantum is its rate in bytes per second divided by this; default 10"),
    word("direct_qlen", "PACKETS", "maximum packets queued unshaped; default txqueuelen"),
    word("offload", "", "let the card shape"),
];
const CLASS_WORDS: &[OptionWord] = &[
    word("rate", "RATE", "what the class is guaranteed"),
    word("ceil", "RATE", "what it may reach by borrowing; default rate"),
    word("burst", "BYTES", "what may leave at once beyond rate; default: rate over one tick, plus mtu"),
    word("cburst", "BYTES", "what may leave at once beyond ceil; default: ceil over one tick, plus mtu"),
    word("prio", "NUMBER", "0 to 7: the lower borrows first; default 0"),
    word(
        "quantum",
        "BYTES",
        "bytes it may send per turn while borrowing; default rate / r2q, 1000 to 200000",
    ),
    word("mtu", "BYTES", "largest packet in the computed bursts; default 1600"),
    word("mpu", "BYTES", "minimum size that a packet counts as; default 0"),
    word("overhead", "BYTES", "bytes added to each packet's length; default 0"),
    word("linklayer", "TYPE", "ethernet, atm or adsl; default ethernet"),
];

pub static KIND: Kind = Kind {
    id: "htb",
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    class: Some(Side { parse: parse_class, say: say_class, words: CLASS_WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

const BYTES: &str = "bytes, e.g. 15k";

fn illegal(args: &Args, name: &str, help: &str) -> Failure {
    args.fail(format!("Illegal \"{name}\""), 1, help).usage(USAGE)
}

fn number(args: &mut Args, name: &str, base: u32, help: &str) -> Result<u32, Failure> {
    let v = args.value()?;
    num::u32(&v.text, base).ok_or_else(|| illegal(args, name, help))
}

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let (mut r2q, mut default, mut debug) = (10, 0, 0u32);
    let (mut direct_qlen, mut offload) = (None, false);
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("r2q") {
            r2q = number(args, "r2q", 10, "a number, e.g. 10")?;
        } else if is("default") {
            default = number(
                args,
                "default",
                16,
                "the minor of a class, hexadecimal, without a colon: default 10",
            )?;
        } else if is("debug") {
            let digits = args.value()?.text.bytes().take(16).take_while(|b| (b'0'..=b'3').contains(b));
            for (i, digit) in digits.enumerate() {
                debug |= u32::from(digit - b'0') << (2 * i);
            }
        } else if !args.old() && is("direct_qlen") {
            direct_qlen = Some(number(args, "direct_qlen", 10, "a number of packets")?);
        } else if !args.old() && is("offload") {
            offload = true;
        } else {
            return Err(what_is(args, &word.text, USAGE, "the htb qdisc takes default, r2q, direct_qlen"));
        }
    }
    let mut o = Options::new().with("r2q", r2q).with("default", default).with("version", 3u32);
    if debug != 0 {
        o = o.with("debug", debug);
    }
    if let Some(qlen) = direct_qlen.filter(|&q| q != u32::MAX) {
        o = o.with("direct_qlen", qlen);
    }
    if offload {
        o.set("offload", Value::Flag);
    }
    Ok(Some(o))
}

/// What the words said of a class.
struct ClassOptions {
    rate: u64,
    ceil: u64,
    buffer: u64,
    cbuffer: u32,
    cell: Option<u32>,
    ccell: Option<u32>,
    mtu: u32,
    mpu: u16,
    overhead: u16,
    linklayer: u32,
    prio: u32,
    quantum: u32,
}

fn parse_class(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut g = ClassOptions {
        rate: 0,
        ceil: 0,
        buffer: 0,
        cbuffer: 0,
        cell: None,
        ccell: None,
        mtu: 1600,
        mpu: 0,
        overhead: 0,
        linklayer: 1,
        prio: 0,
        quantum: 0,
    };
    while let Some(word) = args.next_word() {
        one(args, &word.text, dev, &mut g)?;
    }
    if g.rate == 0 {
        return Err(args.fail("\"rate\" is required.", 1, "e.g. htb rate 1mbit"));
    }
    if g.ceil == 0 {
        g.ceil = g.rate;
    }
    let burst = |rate: u64| rate / u64::from(args.kernel().user_hz()) + u64::from(g.mtu);
    let cut = |size: u64| if args.since_7() { size } else { u64::from(size as u32) };
    let buffer = if g.buffer == 0 { cut(burst(g.rate)) } else { g.buffer };
    let cbuffer = if g.cbuffer == 0 { burst(g.ceil) as u32 } else { g.cbuffer };
    let ticks = |rate, size| num::xmittime(rate, size, args.kernel());
    //= iproute2 7.1 tc/q_htb.c htb_parse_class_opt: of cburst what is too much is cut.
    if args.since_7() && ticks(g.rate, buffer) == u32::MAX {
        return Err(args.fail("htb: burst out of range", 1, num::BURST_HELP));
    }
    Ok(Some(
        Options::new()
            .with("rate", g.rate)
            .with("ceil", g.ceil)
            .with("buffer", ticks(g.rate, buffer))
            .with("cbuffer", ticks(g.ceil, u64::from(cbuffer)))
            .with("quantum", g.quantum)
            .with("prio", g.prio)
            .with("mpu", u32::from(g.mpu))
            .with("overhead", i64::from(g.overhead))
            .with("linklayer", g.linklayer)
            .with("cell_log", cell_log(g.cell, g.mtu))
            .with("ccell_log", cell_log(g.ccell, g.mtu)),
    ))
}

/// One option of a class and its value.
fn one(args: &mut Args, name: &str, dev: Option<&str>, g: &mut ClassOptions) -> Result<(), Failure> {
    let is = |full: &str| matches(name, full);
    if is("prio") {
        g.prio = number(args, "prio", 10, "a number from 0 to 7")?;
    } else if is("mtu") {
        g.mtu = number(args, "mtu", 10, "bytes, without a unit")?;
    } else if is("mpu") {
        let v = args.value()?;
        g.mpu = num::u16(&v.text, 10).ok_or_else(|| illegal(args, "mpu", "bytes, without a unit"))?;
    } else if is("overhead") {
        let v = args.value()?;
        g.overhead =
            num::u16(&v.text, 10).ok_or_else(|| illegal(args, "overhead", "bytes, without a unit"))?;
    } else if is("linklayer") {
        let v = args.value()?;
        g.linklayer = linklayer(&v.text).ok_or_else(|| illegal(args, "linklayer", "ethernet or atm"))?;
    } else if is("quantum") {
        g.quantum = number(args, "quantum", 10, "bytes, without a unit")?;
    } else if is("burst") || name == "buffer" || name == "maxburst" {
        (g.buffer, g.cell) = sized(args, name, "buffer", g.cell)?;
    } else if is("cburst") || name == "cbuffer" || name == "cmaxburst" {
        let (size, cell) = sized(args, name, "cbuffer", g.ccell)?;
        let wrong = || illegal(args, if args.old() { "cbuffer" } else { name }, BYTES);
        (g.cbuffer, g.ccell) = (u32::try_from(size).map_err(|_| wrong())?, cell);
    } else if name == "ceil" {
        g.ceil = rated(args, "ceil", dev, g.ceil)?;
    } else if name == "rate" {
        g.rate = rated(args, "rate", dev, g.rate)?;
    } else if name == "help" {
        return Err(helped(args, USAGE));
    } else {
        let help =
            "an htb class takes rate, ceil, burst, cburst, prio, quantum, mtu, mpu, overhead, linklayer";
        return Err(what_is(args, name, USAGE, help));
    }
    Ok(())
}

fn sized(
    args: &mut Args,
    name: &str,
    old_name: &str,
    cell: Option<u32>,
) -> Result<(u64, Option<u32>), Failure> {
    let v = args.value()?;
    let name = if args.old() { old_name } else { name };
    let (size, log) =
        num::size64_and_cell(&v.text, args.kernel()).ok_or_else(|| illegal(args, name, BYTES))?;
    Ok((size, log.or(cell)))
}

fn rated(args: &mut Args, name: &str, dev: Option<&str>, before: u64) -> Result<u64, Failure> {
    let v = args.value()?;
    if before != 0 {
        return Err(args.fail(format!("Double \"{name}\" spec"), 1, format!("give {name} once")));
    }
    rate(&v.text, args, dev).map_err(|said| {
        let f = illegal(args, name, "a rate, e.g. 800kbit, 10mbit, 50%");
        match said {
            Some(line) => f.also(&line),
            None => f,
        }
    })
}

fn print(o: &Options, out: &mut Out) {
    if o.has("rate") {
        if out.old() { print_class_2010(o, out) } else { print_class(o, out) }
    }
    if o.has("r2q") {
        print_qdisc(o, out);
    }
}

fn print_class(o: &Options, out: &mut Out) {
    let u32 = |name: &str| o.u32(name).unwrap_or(0);
    leaf_part(o, out);
    let (rate, ceil) = (out.wire_rate(o, "rate"), out.wire_rate(o, "ceil"));
    out.rate(Some("rate"), "rate ", rate, " ");
    let overhead = o.i64("overhead").unwrap_or(0);
    if overhead != 0 {
        out.num("overhead", overhead, format_args!("overhead {overhead} "));
    }
    out.rate(Some("ceil"), "ceil ", ceil, " ");
    let layer = u32("linklayer");
    if layer > 1 || out.form.details {
        let name = linklayer_name(layer);
        out.string("linklayer", name, format_args!("linklayer {name} "));
    }
    if out.since_7() {
        bursts(o, (rate, ceil), out);
        return raw_part(o, out);
    }
    let burst = size_text(psched::xmitsize(rate, u32("buffer")), out.kernel());
    let cburst = size_text(psched::xmitsize(ceil, u32("cbuffer")), out.kernel());
    if out.form.details {
        let mpu = size_text(u32("mpu"), out.kernel());
        let cell = |name: &str| 1u64 << (u32(name) & 31);
        out.text_only(format_args!("burst {burst}/{} mpu {mpu} ", cell("cell_log")));
        out.text_only(format_args!("cburst {cburst}/{} mpu {mpu} ", cell("ccell_log")));
        out.text_only(format_args!("level {} ", u32("level") as i32));
    } else {
        out.text_only(format_args!("burst {burst} cburst {cburst} "));
    }
    raw_part(o, out);
}

/// As of 7.2: with `-d` the size of a cell stands at what follows it.
fn bursts(o: &Options, (rate, ceil): (u64, u64), out: &mut Out) {
    let u32 = |name: &str| o.u32(name).unwrap_or(0);
    let burst = psched::xmitsize_fine(rate, u32("buffer"));
    let cburst = psched::xmitsize_fine(ceil, u32("cbuffer"));
    if !out.form.details {
        out.size("burst", "burst ", burst, " ");
        out.size("cburst", "cburst ", cburst, "");
        return;
    }
    let sizes = [("burst", burst, "cell_log", "mpu_rate"), ("cburst", cburst, "ccell_log", "mpu_ceil")];
    for (name, size, log, mpu) in sizes {
        let cell = 1u64 << (u32(log) & 31);
        out.size(name, &format!("{name} "), size, "/");
        out.num(&format!("{name}_cell"), cell, format_args!("{cell}"));
        out.size(mpu, "mpu ", u32("mpu"), " ");
    }
    let level = u32("level") as i32;
    out.num("level", level, format_args!("level {level} "));
}

fn print_class_2010(o: &Options, out: &mut Out) {
    let u32 = |name: &str| o.u32(name).unwrap_or(0);
    leaf_part(o, out);
    let (rate, ceil) = (out.wire_rate(o, "rate"), out.wire_rate(o, "ceil"));
    out.rate(None, "rate ", rate, " ");
    out.rate(None, "ceil ", ceil, " ");
    let burst = size_text(psched::xmitsize(rate, u32("buffer")), out.kernel());
    let cburst = size_text(psched::xmitsize(ceil, u32("cbuffer")), out.kernel());
    if out.form.details {
        // The two bytes of mpu, of which tc made mpu and overhead.
        let (mpu, over) =
            (size_text(u32("mpu") & 0xff, out.kernel()), size_text(u32("mpu") >> 8 & 0xff, out.kernel()));
        let cell = |name: &str| 1u64 << (u32(name) & 31);
        out.text_only(format_args!("burst {burst}/{} mpu {mpu} overhead {over} ", cell("cell_log")));
        out.text_only(format_args!("cburst {cburst}/{} mpu {mpu} overhead {over} ", cell("ccell_log")));
        out.text_only(format_args!("level {} ", u32("level") as i32));
    } else {
        out.text_only(format_args!("burst {burst} cburst {cburst} "));
    }
    raw_part(o, out);
}

/// What only a class without children has.
fn leaf_part(o: &Options, out: &mut Out) {
    let i32 = |name: &str| o.u32(name).unwrap_or(0) as i32;
    if i32("level") == 0 {
        out.num("prio", i32("prio"), format_args!("prio {} ", i32("prio")));
        if out.form.details {
            out.num("quantum", i32("quantum"), format_args!("quantum {} ", i32("quantum")));
        }
    }
}

fn raw_part(o: &Options, out: &mut Out) {
    if out.form.raw {
        let u32 = |name: &str| o.u32(name).unwrap_or(0);
        out.text_only(format_args!("buffer [{:08x}] cbuffer [{:08x}] ", u32("buffer"), u32("cbuffer")));
    }
}

fn print_qdisc(o: &Options, out: &mut Out) {
    let u32 = |name: &str| o.u32(name).unwrap_or(0);
    let (r2q, default, direct) = (u32("r2q") as i32, u32("default"), u32("direct_packets_stat"));
    // C's %#x prints 0 without its prefix.
    let hex = if default == 0 { "0".to_owned() } else { format!("{default:#x}") };
    out.num("r2q", r2q, format_args!("r2q {r2q}"));
    if out.old() {
        out.text_only(format_args!(" default {default:x}"));
    } else {
        out.string("default", &hex, format_args!(" default {hex}"));
    }
    out.num("direct_packets_stat", direct, format_args!(" direct_packets_stat {direct}"));
    if out.form.details {
        let version = u32("version");
        let ver = format!("{}.{}", version >> 16, version & 0xffff);
        out.string("ver", &ver, format_args!(" ver {ver}"));
    }
    if out.old() {
        return;
    }
    if let Some(qlen) = o.u32("direct_qlen") {
        out.num("direct_qlen", qlen, format_args!(" direct_qlen {qlen}"));
    }
    if o.has("offload") {
        out.null("offload", format_args!(" offload"));
    }
}

fn print_xstats(o: &Options, out: &mut Out) {
    let u32 = |name: &str| o.u32(name).unwrap_or(0);
    let i64 = |name: &str| o.i64(name).unwrap_or(0);
    out.num("lended", u32("lends"), format_args!(" lended: {} ", u32("lends")));
    out.num("borrowed", u32("borrows"), format_args!("borrowed: {} ", u32("borrows")));
    out.num("giants", u32("giants"), format_args!("giants: {}", u32("giants")));
    let end = if out.since_7() && out.form.oneline { "\\" } else { "\n" };
    out.text_only(format_args!("{end}"));
    out.num("tokens", i64("tokens"), format_args!(" tokens: {} ", i64("tokens")));
    out.num("ctokens", i64("ctokens"), format_args!("ctokens: {}", i64("ctokens")));
    out.text_only(format_args!("{end}"));
}

fn say_qdisc(say: &mut Say) {
    let default = say.n("default");
    say.pair("default", format!("{default:x}")).given("r2q", Unit::Plain);
    if !say.old {
        say.given("direct_qlen", Unit::Plain);
        if say.o.has("offload") {
            say.word("offload");
        }
    }
}

fn say_class(say: &mut Say) {
    let o = say.o;
    let rate = |name| o.u64(name).unwrap_or(0);
    say.given("rate", Unit::Rate).given("ceil", Unit::Rate);
    for (word, of, ticks) in [("burst", "rate", "buffer"), ("cburst", "ceil", "cbuffer")] {
        let size = burst(rate(of), say.n(ticks), say.kernel);
        // Without a burst tc computes one.
        let cell = 1u64 << (say.n(if word == "burst" { "cell_log" } else { "ccell_log" }) & 31);
        let text = if cell > 1 { format!("{}/{cell}", size.max(1)) } else { size.max(1).to_string() };
        say.pair(word, text);
    }
    say.given("prio", Unit::Plain);
    say.unless_zero("quantum", Unit::Plain).unless_zero("mpu", Unit::Plain).overhead();
}
