//! `cbq`: the qdisc and its classes.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_cbq.c`, `tc/tc_cbq.c`.
//! Differs: `-r` does not print the rate table. `-j` is valid JSON, which tc's is not.

use super::{Kind, OptionWord, Side, cell_log, helped, linklayer, linklayer_name, rate32, what_is, word};
use crate::show::{Out, time_text};
use crate::tc::args::{Args, matches};
use crate::tc::say::{Say, Unit, rate};
use crate::tc::{Failure, num};
use penstock_model::time::general;
use penstock_model::{Handle, Options, psched};

const USAGE: &str = "\
Usage: ... cbq bandwidth BPS avpkt BYTES [ mpu BYTES ]
          [ cell BYTES ] [ ewma LOG ]
          [ overhead BYTES ] [ linklayer TYPE ]
";
const CLASS_USAGE: &str = "\
Usage: ... cbq	bandwidth BPS rate BPS maxburst PKTS [ avpkt BYTES ]
          [ allot BYTES ]
          [ prio NUMBER ] [ weight RATE ] [ minburst PACKETS ] [ minidle NUMBER ] [ bounded | borrow ]
          [ isolated | sharing ] [ mpu BYTES ] [ cell BYTES ] [ ewma LOG ] [ split CLASSID ]
          [ defmap MASK[/CHANGE] ] [ overhead BYTES ] [ linklayer TYPE ]
";

const WORDS: &[OptionWord] = &[
    word("bandwidth", "RATE", "rate of the device"),
    word("avpkt", "BYTES", "average packet"),
    word("mpu", "BYTES", "minimum size that a packet counts as; default 0"),
    word("cell", "BYTES", "step of the rate table, a power of two; default what fits allot into 256 steps"),
    word("ewma", "LOG", "how slowly the idle time is averaged, up to 31; default 5"),
    word("allot", "BYTES", "read and not used, but for the rate table"),
    word("overhead", "BYTES", "bytes added to each packet's length; default 0"),
    word("linklayer", "TYPE", "ethernet, atm or adsl; default ethernet"),
];
const CLASS_WORDS: &[OptionWord] = &[
    word("bandwidth", "RATE", "rate of the device"),
    word("rate", "RATE", "rate of the class"),
    word("allot", "BYTES", "bytes it may send per turn; default 1.5 avpkt"),
    word("weight", "RATE", "its share of turns; default rate"),
    word("prio", "NUMBER", "1 to 8, the lower first; default 8: it never sends of itself"),
    word("avpkt", "BYTES", "average packet; default the qdisc's"),
    word("maxburst", "PACKETS", "how many packets it may send at once after idling"),
    word("minburst", "PACKETS", "how many at once while it is over its limit"),
    word("minidle", "NUMBER", "how far below 0 its idle time may fall"),
    word("bounded", "", "does not borrow; borrow: it does (default)"),
    word("isolated", "", "does not lend; sharing: it does (default)"),
    word("ewma", "LOG", "how slowly its idle time is averaged, up to 31; default 5"),
    word("split", "CLASSID", "the class whose unsorted packets defmap is about"),
    word("defmap", "MASK[/CHANGE]", "which priorities of those come here, hexadecimal"),
    word("mpu", "BYTES", "minimum size that a packet counts as; default 0"),
    word("cell", "BYTES", "step of the rate table, a power of two"),
    word("overhead", "BYTES", "bytes added to each packet's length; default 0"),
    word("linklayer", "TYPE", "ethernet, atm or adsl; default ethernet"),
];

/// `TC_CBQ_MAXPRIO`.
const MAXPRIO: u32 = 8;
/// `TC_CBQ_DEF_EWMA`.
const EWMA: i32 = 5;
/// `TCF_CBQ_LSS_*`.
mod lss {
    pub const FLAGS: u32 = 1;
    pub const EWMA: u32 = 2;
    pub const MAXIDLE: u32 = 4;
    pub const MINIDLE: u32 = 8;
    pub const OFFTIME: u32 = 16;
    pub const AVPKT: u32 = 32;
    pub const BOUNDED: u32 = 1;
    pub const ISOLATED: u32 = 2;
}

pub static KIND: Kind = Kind {
    id: "cbq",
    in_7_2: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    class: Some(Side { parse: parse_class, say: say_class, words: CLASS_WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

fn illegal(args: &Args, name: &str) -> Failure {
    args.fail(format!("Illegal \"{name}\""), 1, "see help for what it takes")
}

/// What the words said, of the qdisc or of a class.
#[derive(Default)]
struct CbqOptions {
    rate: u32,
    bandwidth: u32,
    mpu: u32,
    overhead: u16,
    linklayer: Option<u32>,
    cell: Option<u32>,
    ewma: Option<i32>,
    avpkt: u32,
    allot: u32,
    weight: u32,
    prio: u32,
    minidle: u32,
    minburst: u32,
    maxburst: u32,
    flags: u32,
    change: u32,
    has_wrr: bool,
    split: u32,
    defmap: u32,
    defchange: u32,
    has_fopt: bool,
}

fn rated(args: &mut Args, name: &str, dev: Option<&str>) -> Result<u32, Failure> {
    let v = args.value()?;
    rate32(&v.text, args, dev).map_err(|said| match said {
        Some(line) => illegal(args, name).also(&line),
        None => illegal(args, name),
    })
}

fn sized(args: &mut Args, name: &str) -> Result<u32, Failure> {
    let v = args.value()?;
    num::size(&v.text, args.kernel()).ok_or_else(|| illegal(args, name))
}

fn number(args: &mut Args, name: &str) -> Result<u32, Failure> {
    let v = args.value()?;
    num::u32(&v.text, 0).ok_or_else(|| illegal(args, name))
}

/// A word that the qdisc and its classes share. `false`: it is none of those.
fn shared(args: &mut Args, text: &str, g: &mut CbqOptions) -> Result<bool, Failure> {
    let is = |full: &str| matches(text, full);
    if is("ewma") {
        let v = args.value()?;
        let ewma = num::integer(&v.text, 0).ok_or_else(|| illegal(args, "ewma"))?;
        if ewma > 31 {
            return Err(args.fail("ewma_log must be < 32", 1, "a logarithm, e.g. 5"));
        }
        // tc takes a negative one for none.
        g.ewma = Some(ewma).filter(|&log| log >= 0);
        g.change |= lss::EWMA;
    } else if is("cell") {
        let cell = sized(args, "cell")?;
        let log = (0..32).find(|&log| 1u32 << log == cell);
        g.cell = Some(log.ok_or_else(|| args.fail("cell must be 2^n", 1, "a power of two, e.g. 8"))?);
    } else if is("avpkt") {
        g.avpkt = sized(args, "avpkt")?;
        g.change |= lss::AVPKT;
    } else if is("mpu") {
        g.mpu = sized(args, "mpu")?;
    } else if is("allot") {
        g.allot = sized(args, "allot")?;
    } else if is("overhead") {
        let v = args.value()?;
        g.overhead = num::u16(&v.text, 10).ok_or_else(|| illegal(args, "overhead"))?;
    } else if is("linklayer") {
        let v = args.value()?;
        g.linklayer = Some(linklayer(&v.text).ok_or_else(|| illegal(args, "linklayer"))?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// `struct tc_ratespec`, the table's cells chosen so that `mtu` fits.
fn rate_options(g: &CbqOptions, mtu: u32) -> Options {
    Options::new()
        .with("rate", g.rate)
        .with("cell_log", cell_log(g.cell, mtu))
        .with("mpu", g.mpu & 0xffff)
        .with("overhead", u32::from(g.overhead))
        .with("linklayer", g.linklayer.unwrap_or(1))
}

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut g = CbqOptions::default();
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("bandwidth") || is("rate") {
            g.rate = rated(args, "bandwidth", dev)?;
        } else if !shared(args, &word.text, &mut g)? {
            if is("help") {
                return Err(helped(args, USAGE));
            }
            let help = "the cbq qdisc takes bandwidth, avpkt, mpu, cell, ewma";
            return Err(what_is(args, &word.text, USAGE, help));
        }
    }
    if g.rate == 0 {
        return Err(args.fail("CBQ: bandwidth is required parameter.", 1, "e.g. bandwidth 10mbit"));
    }
    if g.avpkt == 0 {
        return Err(args.fail("CBQ: \"avpkt\" is required.", 1, "e.g. avpkt 1000"));
    }
    let allot = g.allot.max(g.avpkt.wrapping_mul(3) / 2);
    let lss = Options::new()
        .with("change", lss::MAXIDLE | lss::EWMA | lss::AVPKT)
        .with("ewma", g.ewma.unwrap_or(EWMA) as u32)
        .with("maxidle", psched::xmittime(u64::from(g.rate), g.avpkt))
        .with("avpkt", g.avpkt);
    Ok(Some(rate_options(&g, allot).with("lss", lss)))
}

/// One word of a class that the qdisc has not.
fn of_class(args: &mut Args, text: &str, g: &mut CbqOptions) -> Result<(), Failure> {
    let is = |full: &str| matches(text, full);
    if is("minidle") {
        (g.minidle, g.change) = (number(args, "minidle")?, g.change | lss::MINIDLE);
    } else if is("minburst") {
        (g.minburst, g.change) = (number(args, "minburst")?, g.change | lss::OFFTIME);
    } else if is("maxburst") {
        (g.maxburst, g.change) = (number(args, "maxburst")?, g.change | lss::MAXIDLE);
    } else if is("bounded") {
        (g.flags, g.change) = (g.flags | lss::BOUNDED, g.change | lss::FLAGS);
    } else if is("borrow") {
        (g.flags, g.change) = (g.flags & !lss::BOUNDED, g.change | lss::FLAGS);
    } else if is("isolated") {
        (g.flags, g.change) = (g.flags | lss::ISOLATED, g.change | lss::FLAGS);
    } else if is("sharing") {
        (g.flags, g.change) = (g.flags & !lss::ISOLATED, g.change | lss::FLAGS);
    } else if is("prio") {
        let prio = number(args, "prio")?;
        if prio > MAXPRIO {
            let line = format!("\"prio\" must be number in the range 1...{MAXPRIO}");
            return Err(args.fail(line, 1, "1 sends first"));
        }
        (g.prio, g.has_wrr) = (prio, true);
    } else if is("weight") {
        (g.weight, g.has_wrr) = (sized(args, "weight")?, true);
    } else if is("split") {
        let v = args.value()?;
        let split = num::classid(&v.text, args.kernel())
            .ok_or_else(|| args.fail("Invalid split node ID.", 1, "a classid, e.g. 1:0"))?;
        (g.split, g.has_fopt) = (split.0, true);
    } else if is("defmap") {
        let v = args.value()?;
        let help = "hexadecimal, e.g. c0 or c0/ff";
        (g.defmap, g.defchange) =
            defmap(&v.text).ok_or_else(|| args.fail("Invalid defmap, should be MASK32[/MASK]", 1, help))?;
        g.has_fopt = true;
    } else if is("allot") {
        // Before avpkt, which the qdisc has first.
        g.allot = sized(args, "allot")?;
    } else if shared(args, text, g)? {
        return Ok(());
    } else if is("help") {
        return Err(helped(args, CLASS_USAGE));
    } else {
        let help =
            "a cbq class takes bandwidth, rate, allot, prio, weight, avpkt, maxburst, bounded, isolated";
        return Err(what_is(args, text, CLASS_USAGE, help));
    }
    Ok(())
}

/// `sscanf` of `%08x/%08x`.
fn defmap(text: &str) -> Option<(u32, u32)> {
    let (map, rest) = hex8(text)?;
    let change = rest.strip_prefix('/').and_then(hex8).map_or(u32::MAX, |(change, _)| change);
    Some((map, change))
}

/// Up to eight characters of a hexadecimal number, and the rest.
fn hex8(text: &str) -> Option<(u32, &str)> {
    let text = text.trim_start();
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let (digits, most) = digits.map_or((text, 8), |digits| (digits, 6));
    let len = digits.bytes().take(most).take_while(u8::is_ascii_hexdigit).count();
    Some((u32::from_str_radix(&digits[..len], 16).ok()?, &digits[len..]))
}

fn parse_class(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut g = CbqOptions::default();
    while let Some(word) = args.next_word() {
        if matches(&word.text, "rate") {
            g.rate = rated(args, "rate", dev)?;
        } else if matches(&word.text, "bandwidth") {
            g.bandwidth = rated(args, "bandwidth", dev)?;
        } else {
            of_class(args, &word.text, &mut g)?;
        }
    }
    let rate = (g.rate != 0).then(|| rate_options(&g, g.allot));
    if rate.is_some() {
        g.allot = g.allot.max(g.avpkt.wrapping_mul(3) / 2);
    }
    if g.change & (lss::OFFTIME | lss::MAXIDLE) != 0 {
        if g.avpkt == 0 {
            let line = "CBQ: avpkt is required for max/minburst.";
            return Err(args.fail(line, 1, "e.g. avpkt 1000"));
        }
        if g.bandwidth == 0 || g.rate == 0 {
            let line = "CBQ: bandwidth&rate are required for max/minburst.";
            return Err(args.fail(line, 1, "e.g. bandwidth 10mbit rate 1mbit"));
        }
    }
    if g.prio == 0 && args.exclusive {
        (g.has_wrr, g.prio) = (true, MAXPRIO);
        if g.allot == 0 {
            g.allot = g.avpkt.wrapping_mul(3) / 2;
        }
    }
    if g.has_wrr {
        if g.weight == 0 {
            g.weight = if g.prio == MAXPRIO { 1 } else { g.rate };
        }
        if g.allot == 0 {
            let line = "CBQ: \"allot\" is required to set WRR parameters.";
            return Err(args.fail(line, 1, "e.g. allot 1514"));
        }
    }
    let mut o = rate.unwrap_or_default();
    if g.change != 0 {
        o = o.with("lss", link_sharing(&mut g));
    }
    if g.has_wrr {
        let wrr = Options::new().with("priority", g.prio).with("allot", g.allot).with("weight", g.weight);
        o = o.with("wrr", wrr);
    }
    if g.has_fopt {
        let fopt = Options::new().with("split", g.split).with("defmap", g.defmap);
        o = o.with("fopt", fopt.with("defchange", g.defchange));
    }
    Ok(Some(o))
}

/// `struct tc_cbq_lssopt`; idle times in ticks.
fn link_sharing(g: &mut CbqOptions) -> Options {
    let ewma = g.ewma.unwrap_or(EWMA);
    let mut o = Options::new();
    if g.change & lss::MAXIDLE != 0 {
        g.change |= lss::EWMA | lss::AVPKT;
        o = o.with("maxidle", max_idle(g.bandwidth, g.rate, g.avpkt, ewma, g.maxburst));
    }
    if g.change & lss::OFFTIME != 0 {
        g.change |= lss::EWMA | lss::AVPKT;
        o = o.with("offtime", off_time(g.bandwidth, g.rate, g.avpkt, ewma, g.minburst));
    }
    if g.change & lss::MINIDLE != 0 {
        g.change |= lss::EWMA;
        o = o.with("minidle", g.minidle.wrapping_shl(ewma as u32));
    }
    o.with("change", g.change | lss::FLAGS)
        .with("flags", g.flags)
        .with("ewma", ewma as u32)
        .with("avpkt", g.avpkt)
}

/// C's conversion of microseconds to ticks.
fn ticks(us: f64) -> u32 {
    psched::time2tick(f64::from(num::cast_u32(us)))
}

/// The weight that `ewma` leaves the old average: `1 - 1/2^ewma`.
fn kept(ewma: i32) -> f64 {
    1.0 - 1.0 / f64::from(1i32.wrapping_shl(ewma as u32))
}

/// `tc_cbq_calc_maxidle`.
fn max_idle(bandwidth: u32, rate: u32, avpkt: u32, ewma: i32, maxburst: u32) -> u32 {
    let g = kept(ewma);
    let wire = f64::from(avpkt) / f64::from(bandwidth);
    let mut idle = wire * (1.0 - g);
    if bandwidth != rate && maxburst != 0 {
        let spare = (f64::from(avpkt) / f64::from(rate) - wire) * (g.powf(-f64::from(maxburst)) - 1.0);
        if spare > idle {
            idle = spare;
        }
    }
    ticks(idle * f64::from(1i32.wrapping_shl(ewma as u32)) * psched::TIME_UNITS_PER_SEC)
}

/// `tc_cbq_calc_offtime`.
fn off_time(bandwidth: u32, rate: u32, avpkt: u32, ewma: i32, minburst: u32) -> u32 {
    let g = kept(ewma);
    let off = f64::from(avpkt) / f64::from(rate) - f64::from(avpkt) / f64::from(bandwidth);
    let times = match minburst {
        0 => return 0,
        1 => g.powf(-1.0) - 1.0,
        n => 1.0 + (g.powf(-f64::from(n - 1)) - 1.0) / (1.0 - g),
    };
    ticks(off * times * psched::TIME_UNITS_PER_SEC)
}

fn print(o: &Options, out: &mut Out) {
    let details = out.form.details;
    if let Some(rate) = o.u32("rate") {
        print_rate(rate, o, out);
    }
    let nothing = Options::new();
    let (lss, wrr) = (o.nested("lss").unwrap_or(&nothing), o.nested("wrr"));
    let flag = |flag: u32| lss.u32("flags").unwrap_or(0) & flag != 0;
    match (flag(lss::BOUNDED), flag(lss::ISOLATED)) {
        (true, true) => out.text_only(format_args!("(bounded,isolated) ")),
        (true, false) => out.text_only(format_args!("(bounded) ")),
        (false, true) => out.text_only(format_args!("(isolated) ")),
        (false, false) => {}
    }
    if let Some(wrr) = wrr {
        let number = |name: &str| wrr.u32(name).unwrap_or(0);
        match number("priority") {
            MAXPRIO => out.text_only(format_args!("prio no-transmit")),
            prio => out.text_only(format_args!("prio {prio}")),
        }
        if details {
            out.text_only(format_args!("/{} ", number("cpriority")));
            if number("weight") != 1 {
                out.rate(None, "weight ", u64::from(number("weight")), " ");
            }
            if number("allot") != 0 {
                out.text_only(format_args!("allot {}b ", number("allot")));
            }
        }
    }
    if details {
        print_idle(lss, out);
        if let Some(fopt) = o.nested("fopt") {
            let number = |name: &str| fopt.u32(name).unwrap_or(0);
            out.text_only(format_args!("\nsplit {} ", Handle(number("split"))));
            if number("defmap") != 0 {
                out.text_only(format_args!("defmap {:08x}", number("defmap")));
            }
        }
    }
}

fn print_rate(rate: u32, o: &Options, out: &mut Out) {
    let details = out.form.details;
    let number = |name: &str| o.u32(name).unwrap_or(0);
    out.rate(None, "rate ", u64::from(rate), " ");
    let layer = number("linklayer");
    if !out.old() && (layer > 1 || details) {
        out.text_only(format_args!("linklayer {} ", linklayer_name(layer)));
    }
    if details {
        out.text_only(format_args!("cell {}b ", 1i32.wrapping_shl(number("cell_log"))));
        for name in ["mpu", "overhead"] {
            if number(name) != 0 {
                out.text_only(format_args!("{name} {}b ", number(name)));
            }
        }
    }
}

fn print_idle(lss: &Options, out: &mut Out) {
    let number = |name: &str| lss.u32(name).unwrap_or(0);
    let ewma = number("ewma");
    out.text_only(format_args!("\nlevel {} ewma {ewma} avpkt {}b ", number("level"), number("avpkt")));
    let shown = |name: &str, shift: u32, out: &mut Out| {
        let ticks = number(name);
        let time = time_text(psched::tick2time(ticks.wrapping_shr(shift)), out.old());
        out.text_only(format_args!("{name} {time} "));
        if out.form.raw {
            out.text_only(format_args!("[{ticks:08x}] "));
        }
    };
    if number("maxidle") != 0 {
        shown("maxidle", ewma, out);
    }
    if number("minidle") != 0x7fff_ffff {
        shown("minidle", ewma, out);
    }
    if number("offtime") != 0 {
        shown("offtime", 0, out);
    }
}

fn print_xstats(o: &Options, out: &mut Out) {
    let number = |name: &str| o.u32(name).unwrap_or(0);
    let idle = |name: &str| general(o.i64(name).unwrap_or(0) as f64, 6);
    out.text_only(format_args!(
        "  borrowed {} overactions {} avgidle {} undertime {}",
        number("borrows"),
        number("overactions"),
        idle("avgidle"),
        idle("undertime")
    ));
}

fn say_qdisc(say: &mut Say) {
    let o = say.o;
    if let Some(rate) = o.u64("rate") {
        say.word("bandwidth").value("rate", rate, Unit::Rate);
    }
    let cell = 1u64 << (say.n("cell_log") & 31);
    say.pair("cell", cell);
    if let Some(lss) = o.nested("lss") {
        say.pair("avpkt", lss.u32("avpkt").unwrap_or(0)).pair("ewma", lss.u32("ewma").unwrap_or(0));
    }
    say.unless_zero("mpu", Unit::Plain).overhead();
    if let Some(allot) = o.nested("wrr").and_then(|w| w.u32("allot")).filter(|&a| a != 0) {
        say.pair("allot", allot);
    }
}

fn say_class(say: &mut Say) {
    let o = say.o;
    let none = Options::new();
    let (lss, wrr) = (o.nested("lss").unwrap_or(&none), o.nested("wrr").unwrap_or(&none));
    let n = |of: &Options, name: &str| of.u32(name).unwrap_or(0);
    say.pair("bandwidth", rate(u64::from(say.bandwidth)));
    say.given("rate", Unit::Rate);
    say.pair("cell", 1u64 << (say.n("cell_log") & 31));
    say.pair("avpkt", n(lss, "avpkt")).pair("ewma", n(lss, "ewma"));
    say.pair("allot", n(wrr, "allot").max(1))
        .pair("prio", n(wrr, "priority"))
        .pair("weight", n(wrr, "weight").max(1));
    let flags = n(lss, "flags");
    say.word(if flags & 1 != 0 { "bounded" } else { "borrow" });
    say.word(if flags & 2 != 0 { "isolated" } else { "sharing" });
    let mut lacking = None;
    if n(lss, "maxidle") != 0 {
        // How many packets may come at once: the number whose idle time tc makes so.
        say.word("maxburst").value("lss/maxidle", 20, Unit::Plain);
        lacking = Some("maxburst");
    }
    if n(lss, "offtime") != 0 {
        say.word("minburst").value("lss/offtime", 2, Unit::Plain);
        lacking = Some("minburst");
    }
    say.unless_zero("mpu", Unit::Plain).overhead();
    if let Some(fopt) = o.nested("fopt") {
        say.pair("split", Handle(n(fopt, "split")));
        say.pair("defmap", format!("{:x}", n(fopt, "defmap")));
    }
    say.lacks(lacking);
}
