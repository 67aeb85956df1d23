//! `police`: a token bucket, as an action and as the old word of filters.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/m_police.c`.

use super::{Action, advance, bad, control, option_value, print_times, silent, usage};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::kinds::{cell_log, linklayer, linklayer_name};
use crate::tc::{Failure, num};
use penstock_model::{Kernel, Options, psched};

pub(super) static KIND: Action = Action {
    id: "police",
    old: true,
    parse: |args| {
        advance(args)?;
        parse_police(args)
    },
    print: print_police,
};

const USAGE: &str = "\
Usage: ... police [ rate BPS burst BYTES[/BYTES] ] 
          [ pkts_rate RATE pkts_burst PACKETS ] [ mtu BYTES[/BYTES] ] [ peakrate BPS ]
          [ avrate BPS ] [ overhead BYTES ] [ linklayer TYPE ] [ ACTION ]
          [ conform-exceed EXCEEDACT[/NOTEXCEEDACT] ]
";
const OLD_USAGE: &str = "\
Usage: ... police rate BPS burst BYTES[/BYTES] [ mtu BYTES[/BYTES] ]
          [ peakrate BPS ] [ avrate BPS ] [ overhead BYTES ] [ linklayer TYPE ]
          [ ACTION | { action | conform-exceed } EXCEEDACT[/NOTEXCEEDACT] ]
";
const SIZE: &str = "bytes, e.g. 1540, 15k";
const RATE: &str = "a rate, e.g. 220kbit, 10mbit";
const EXAMPLE: &str = "e.g. police rate 1mbit burst 10k drop";
const RECLASSIFY: i32 = 1;

/// What the words said.
struct PoliceOptions {
    index: u32,
    buffer: u64,
    mtu: u32,
    mpu: u32,
    rate: u64,
    avrate: u32,
    peakrate: u64,
    overhead: u16,
    linklayer: u32,
    cell: Option<u32>,
    peak_cell: Option<u32>,
    pkts_rate: u64,
    pkts_burst: u64,
    action: i32,
    result: i32,
    any: bool,
}

/// `act_parse_police`: what follows the word `police`.
///
/// # Errors
/// tc's refusal; the caller adds its own line.
pub fn parse_police(args: &mut Args) -> Result<Options, Failure> {
    if args.left() == 0 {
        return Err(silent(args));
    }
    let mut g = PoliceOptions {
        index: 0,
        buffer: 0,
        mtu: 0,
        mpu: 0,
        rate: 0,
        avrate: 0,
        peakrate: 0,
        overhead: 0,
        linklayer: 1,
        cell: None,
        peak_cell: None,
        pkts_rate: 0,
        pkts_burst: 0,
        action: RECLASSIFY,
        result: 0,
        any: false,
    };
    while let Some(word) = args.peek_text() {
        if !one(args, word, &mut g)? {
            break;
        }
        g.any = true;
    }
    required(args, &g)?;
    Ok(request(args, &g))
}

/// A filter's word `police` and what follows: its options' `police`.
///
/// # Errors
/// tc's refusal.
pub fn police_of_filter(args: &mut Args, o: &mut Options, illegal: &str) -> Result<(), Failure> {
    if args.left() == 0 {
        args.value()?;
    }
    let police = parse_police(args).map_err(|f| f.then(illegal))?;
    o.set("police", police.into());
    Ok(())
}

/// One option with its value. `false`: none of police's.
fn one(args: &mut Args, word: &str, g: &mut PoliceOptions) -> Result<bool, Failure> {
    let (old, kernel) = (args.old(), args.kernel());
    let is = |full: &str| matches(word, full);
    let wrong = |args: &Args, name: &str, v: &str, help: &str| match old {
        true => bad(args, format!("Illegal \"{name}\""), help),
        false => args.invarg(name, v, help),
    };
    let twice = |args: &Args, name: &str, v: &str| match old {
        true => bad(args, format!("Double \"{name}\" spec"), "give it once"),
        false => args.duparg(name, v),
    };
    if is("index") {
        let v = option_value(args)?;
        g.index = num::u32(v, 10).ok_or_else(|| wrong(args, "index", v, "a number"))?;
    } else if is("burst") || word == "buffer" || word == "maxburst" {
        let v = option_value(args)?;
        if g.buffer != 0 {
            return Err(twice(args, "buffer/burst", v));
        }
        let (size, log) =
            num::size64_and_cell(v, kernel).ok_or_else(|| wrong(args, "buffer", cut(v, kernel), SIZE))?;
        (g.buffer, g.cell) = (size, log.or(g.cell));
    } else if word == "mtu" || word == "minburst" {
        let v = option_value(args)?;
        if g.mtu != 0 {
            return Err(twice(args, "mtu/minburst", v));
        }
        let (size, log) =
            num::size_and_cell(v, kernel).ok_or_else(|| wrong(args, "mtu", cut(v, kernel), SIZE))?;
        (g.mtu, g.peak_cell) = (size, log.or(g.peak_cell));
    } else if word == "mpu" {
        let v = option_value(args)?;
        if g.mpu != 0 {
            return Err(twice(args, "mpu", v));
        }
        g.mpu = num::size(v, kernel).ok_or_else(|| wrong(args, "mpu", v, SIZE))?;
    } else if word == "rate" {
        let v = option_value(args)?;
        if g.rate != 0 {
            return Err(twice(args, "rate", v));
        }
        g.rate = num::rate(v, kernel).ok_or_else(|| wrong(args, "rate", v, RATE))?;
    } else if word == "avrate" {
        let v = option_value(args)?;
        if g.avrate != 0 {
            return Err(twice(args, "avrate", v));
        }
        let rate = num::rate(v, kernel).and_then(|r| u32::try_from(r).ok());
        g.avrate = rate.ok_or_else(|| wrong(args, "avrate", v, RATE))?;
    } else if is("peakrate") {
        let v = option_value(args)?;
        if g.peakrate != 0 {
            return Err(twice(args, "peakrate", v));
        }
        g.peakrate = num::rate(v, kernel).ok_or_else(|| wrong(args, "peakrate", v, RATE))?;
    } else if controls(word, old) {
        g.action = if old { plain_old(args, word) } else { control::control(args, false)? };
    } else if word == "conform-exceed" || (old && word == "action") {
        advance(args)?;
        if old {
            (g.action, g.result) = pair_old(args)?;
        } else {
            let (action, result) = control::control_slash(args, true)?;
            (g.action, g.result) = (action, result.unwrap_or(g.result));
        }
    } else if is("overhead") {
        let v = option_value(args)?;
        g.overhead = num::u16(v, 10).ok_or_else(|| wrong(args, "overhead", v, "bytes from 0 to 65535"))?;
    } else if is("linklayer") {
        let v = option_value(args)?;
        g.linklayer = linklayer(v).ok_or_else(|| wrong(args, "linklayer", v, "ethernet or atm"))?;
    } else if !old && is("pkts_rate") {
        let v = option_value(args)?;
        if g.pkts_rate != 0 {
            return Err(twice(args, "pkts_rate", v));
        }
        g.pkts_rate = num::u64(v, 10).ok_or_else(|| wrong(args, "pkts_rate", v, "packets a second"))?;
    } else if !old && is("pkts_burst") {
        let v = option_value(args)?;
        if g.pkts_burst != 0 {
            return Err(twice(args, "pkts_burst", v));
        }
        g.pkts_burst = num::u64(v, 10).ok_or_else(|| wrong(args, "pkts_burst", v, "packets"))?;
    } else if word == "help" {
        return Err(usage(args, if old { OLD_USAGE } else { USAGE }));
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// tc cuts a word at its slash and restores it when it has read two numbers.
fn cut(value: &str, kernel: Kernel) -> &str {
    match value.split_once('/') {
        Some((size, cell)) if num::size64(size, kernel).is_none() || num::integer(cell, 0).is_none() => size,
        _ => value,
    }
}

/// The control words police takes as they stand.
fn controls(word: &str, old: bool) -> bool {
    let words = ["reclassify", "drop", "shot", "continue", "pass", "ok", "pipe", "goto"];
    words.iter().any(|w| matches(word, w) && !(old && matches!(*w, "goto" | "ok")))
}

fn plain_old(args: &mut Args, word: &str) -> i32 {
    args.next_word();
    let actions = [("reclassify", 1), ("drop", 2), ("shot", 2), ("continue", -1), ("pass", 0), ("ok", 0)];
    actions.iter().find(|(name, _)| matches(word, name)).map_or(3, |a| a.1)
}

/// `get_police_result` of 2010: one word, perhaps with a stroke in it.
fn pair_old(args: &mut Args) -> Result<(i32, i32), Failure> {
    let word = args.value()?.text.as_str();
    let (one, two) = word.split_once('/').map_or((word, None), |(a, b)| (a, Some(b)));
    let pipe = |text: &str| matches(text, "pipe").then_some(3);
    let read = |text: &str| match text {
        "p" => Some(0),
        _ => pipe(text).or_else(|| control::word(text, true, true)),
    };
    let found = read(one).zip(two.map_or(Some(0), read));
    found.ok_or_else(|| bad(args, "Illegal \"action\"", "EXCEED/NOTEXCEED, e.g. drop/pass"))
}

/// What must be there, in tc's order.
fn required(args: &Args, g: &PoliceOptions) -> Result<(), Failure> {
    if !g.any || (!args.old() && g.rate != 0 && g.avrate != 0) {
        return Err(silent(args));
    }
    let old = args.old();
    if !old && g.rate == 0 && g.avrate == 0 && g.index == 0 && g.mtu == 0 && g.pkts_rate == 0 {
        let line = "'rate' or 'avrate' or 'mtu' or 'pkts_rate' MUST be specified.";
        return Err(bad(args, line, EXAMPLE));
    }
    let line = |new: &'static str, then: &'static str| if old { then } else { new };
    if g.rate != 0 && g.buffer == 0 && (old || g.avrate == 0) {
        return Err(bad(args, line("'burst' requires 'rate'.", "\"burst\" requires \"rate\"."), EXAMPLE));
    }
    if g.pkts_rate != 0 && g.pkts_burst == 0 {
        return Err(bad(args, "'pkts_burst' requires 'pkts_rate'.", EXAMPLE));
    }
    if g.pkts_rate != 0 && g.rate != 0 {
        return Err(bad(args, "'rate' and 'pkts_rate' are not allowed in same action.", EXAMPLE));
    }
    if g.peakrate != 0 && g.rate == 0 {
        let said = line("'peakrate' requires 'rate'.", "\"peakrate\" requires \"rate\".");
        return Err(bad(args, said, EXAMPLE));
    }
    if g.peakrate != 0 && g.mtu == 0 {
        let said = line(
            "'mtu' is required, if 'peakrate' is requested.",
            "\"mtu\" is required, if \"peakrate\" is requested.",
        );
        return Err(bad(args, said, EXAMPLE));
    }
    if args.since_7() && g.rate != 0 && num::xmittime(g.rate, g.buffer, args.kernel()) == u32::MAX {
        return Err(bad(args, "POLICE: burst out of range", num::BURST_HELP));
    }
    Ok(())
}

/// The message to the kernel.
fn request(args: &Args, g: &PoliceOptions) -> Options {
    let mut o = Options::new().with("index", g.index).with("action", i64::from(g.action)).with("mtu", g.mtu);
    if g.rate != 0 {
        o = o
            .with("rate", g.rate)
            .with("burst", num::xmittime(g.rate, g.buffer, args.kernel()))
            .with("cell_log", cell_log(g.cell, g.mtu))
            .with("mpu", g.mpu & 0xffff)
            .with("overhead", u32::from(g.overhead))
            .with("linklayer", if args.old() { 0 } else { g.linklayer });
    }
    if g.peakrate != 0 {
        o = o.with("peakrate", g.peakrate).with("peak_cell_log", cell_log(g.peak_cell, g.mtu));
    }
    if g.avrate != 0 {
        o = o.with("avrate", g.avrate);
    }
    if g.result != 0 {
        o = o.with("result", i64::from(g.result));
    }
    if g.pkts_rate != 0 {
        o = o
            .with("pkts_rate", g.pkts_rate)
            .with("pkts_burst", u64::from(num::xmittime(g.pkts_rate, g.pkts_burst, args.kernel())));
    }
    o
}

/// `print_police`, of an action and of a filter's old `police`.
pub fn print_police(o: &Options, out: &mut Out) {
    let n = |name: &str| o.u32(name).unwrap_or(0);
    let old = out.old();
    let rate = out.wire_rate(o, "rate");
    let peakrate = out.wire_rate(o, "peakrate");
    if out.is_json() {
        out.string("kind", "police", format_args!(""));
        out.json_num("index", n("index"));
    }
    out.text_only(format_args!(" police 0x{:x} ", n("index")));
    out.rate(None, "rate ", rate, " ");
    let kernel = out.kernel();
    let text = |bytes: u64| crate::show::size_text(bytes, kernel);
    let fine = out.since_7();
    let xmitsize = |rate, ticks| match fine {
        true => psched::xmitsize_fine(rate, ticks),
        false => u64::from(psched::xmitsize(rate, ticks)),
    };
    out.text_only(format_args!("burst {} ", text(xmitsize(rate, n("burst")))));
    out.text_only(format_args!("mtu {} ", text(u64::from(n("mtu")))));
    if out.form.raw {
        out.text_only(format_args!("[{:08x}] ", n("burst")));
    }
    if peakrate != 0 {
        out.rate(None, "peakrate ", peakrate, " ");
    }
    if let Some(avrate) = o.u64("avrate") {
        out.rate(None, "avrate ", avrate, " ");
    }
    if let (Some(rate), Some(ticks)) = (o.u64("pkts_rate"), o.u64("pkts_burst")) {
        let burst = xmitsize(rate, ticks as u32);
        out.num("pkts_rate", rate, format_args!("pkts_rate {rate} "));
        out.num("pkts_burst", burst, format_args!("pkts_burst {burst} "));
    }
    let action = control::of(o);
    let result = o.i64("result").map(|r| r as i32);
    if old {
        out.text_only(format_args!("action {}", control::name(action)));
        match result {
            Some(result) => out.text_only(format_args!("/{} ", control::name(result))),
            None => out.text_only(format_args!(" ")),
        }
        out.text_only(format_args!("overhead {}b ", n("overhead")));
        out.text_only(format_args!("\nref {} bind {}\n", n("ref"), n("bind")));
        return;
    }
    control::print_control("action ", action, "", out);
    match result {
        Some(result) => control::print_control("/", result, " ", out),
        None => out.text_only(format_args!(" ")),
    }
    out.size("overhead", "overhead ", n("overhead"), " ");
    if n("linklayer") > 1 || out.form.details {
        let name = linklayer_name(n("linklayer"));
        out.string("linklayer", name, format_args!("linklayer {name} "));
    }
    out.nl();
    out.num("ref", n("ref"), format_args!("\tref {} ", n("ref")));
    out.num("bind", n("bind"), format_args!("bind {} ", n("bind")));
    if out.form.stats {
        print_times(o, out);
    }
    out.nl();
}
