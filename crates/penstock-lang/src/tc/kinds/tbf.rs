//! `tbf`.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_tbf.c`.

use super::{Kind, OptionWord, Side, cell_log, helped, linklayer, linklayer_name, rate, what_is, word};
use crate::show::{Out, size_text, time_text};
use crate::tc::args::{Args, matches};
use crate::tc::say::{Say, Unit, burst};
use crate::tc::{Failure, num};
use penstock_model::{Kernel, Options, psched};

const USAGE: &str = "\
Usage: ... tbf limit BYTES burst BYTES[/BYTES] rate KBPS [ mtu BYTES[/BYTES] ]
       ... tbf rate RATE burst BYTES[/BYTES] { limit BYTES | latency TIME }
          [ peakrate RATE mtu BYTES[/BYTES] ] [ mpu BYTES ] [ overhead BYTES ] [ linklayer TYPE ]
";
const SIZE: &str = "bytes, e.g. 1540, 15k";
const RATE: &str = "a rate, e.g. 220kbit, 10mbit, 50%";
const KNOWN: &str = "tbf takes rate, burst, limit or latency, peakrate, mtu, mpu, overhead, linklayer";

const WORDS: &[OptionWord] = &[
    word("rate", "RATE", "long-term rate, link headers included"),
    word("burst", "BYTES", "size of the bucket: what may leave at once; also buffer, maxburst"),
    word("limit", "BYTES", "maximum bytes that wait for tokens; or say latency"),
    word("latency", "TIME", "longest wait for tokens; tc turns it into limit"),
    word("peakrate", "RATE", "maximum rate of a burst, over one mtu"),
    word("mtu", "BYTES", "size of the bucket of peakrate; also minburst"),
    word("mpu", "BYTES", "minimum size that a packet counts as; default 0"),
    word("overhead", "BYTES", "bytes added to each packet's length; default 0"),
    word("linklayer", "TYPE", "ethernet, atm or adsl; default ethernet"),
];

pub static KIND: Kind =
    Kind { id: "tbf", qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }), print, ..Kind::BARE };

/// What the words said.
#[derive(Default)]
struct TbfOptions {
    limit: u32,
    latency: u32,
    buffer: u64,
    mtu: u32,
    mpu: u32,
    rate: u64,
    peakrate: u64,
    overhead: u16,
    linklayer: u32,
    cell: Option<u32>,
    peak_cell: Option<u32>,
    any: bool,
}

fn illegal(args: &Args, name: &str, old_name: &str, value: &str, help: &str) -> Failure {
    if args.old() {
        args.fail(format!("Illegal \"{old_name}\""), 1, help)
    } else {
        args.fail(format!("tbf: illegal value for \"{name}\": \"{value}\""), 1, help)
    }
}

fn double(args: &Args, name: &str, old_name: &str) -> Failure {
    let line = if args.old() {
        format!("Double \"{old_name}\" spec")
    } else {
        format!("tbf: duplicate \"{name}\" specification")
    };
    args.fail(line, 1, format!("give {old_name} once"))
}

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut g = TbfOptions { linklayer: 1, ..TbfOptions::default() };
    while let Some(word) = args.next_word() {
        one(args, &word.text, dev, &mut g)?;
    }
    required(args, &g)?;
    if args.since_7() && num::xmittime(narrow(g.rate), g.buffer, args.kernel()) == u32::MAX {
        return Err(args.fail("tbf: burst out of range", 1, num::BURST_HELP));
    }
    Ok(Some(request(args, &g)))
}

/// One option and its value.
fn one(args: &mut Args, name: &str, dev: Option<&str>, g: &mut TbfOptions) -> Result<(), Failure> {
    let kernel = args.kernel();
    if matches(name, "limit") || matches(name, "latency") {
        let wants_limit = matches(name, "limit");
        let v = args.value()?;
        let both = "one of limit and latency, not both";
        if args.old() && (g.limit != 0 || g.latency != 0) {
            return Err(args.fail("Double \"limit/latency\" spec", 1, both));
        }
        if wants_limit {
            if g.limit != 0 {
                return Err(double(args, "limit", "limit"));
            }
            if g.latency != 0 {
                let line = "tbf: specifying both \"latency\" and \"limit\" is not allowed";
                return Err(args.fail(line, 1, both));
            }
            g.limit =
                num::size(&v.text, kernel).ok_or_else(|| illegal(args, "limit", "limit", &v.text, SIZE))?;
        } else {
            if g.latency != 0 {
                return Err(double(args, "latency", "latency"));
            }
            if g.limit != 0 {
                let line = "tbf: specifying both \"limit\" and \"/latency\" is not allowed";
                return Err(args.fail(line, 1, both));
            }
            g.latency = num::time(&v.text)
                .ok_or_else(|| illegal(args, "latency", "latency", &v.text, "a time, e.g. 50ms"))?;
        }
        g.any = true;
    } else if matches(name, "burst") || name == "buffer" || name == "maxburst" {
        let v = args.value()?;
        if g.buffer != 0 {
            return Err(double(args, "buffer/burst/maxburst", "buffer/burst"));
        }
        (g.buffer, g.cell) = sized(args, name, "buffer", &v.text, g.cell)?;
        g.any = true;
    } else if name == "mtu" || name == "minburst" {
        let v = args.value()?;
        if g.mtu != 0 {
            return Err(double(args, "mtu/minburst", "mtu/minburst"));
        }
        let (mtu, cell) = sized(args, name, "mtu", &v.text, g.peak_cell)?;
        let mtu = u32::try_from(mtu).map_err(|_| illegal(args, name, "mtu", &v.text, SIZE))?;
        (g.mtu, g.peak_cell) = (mtu, cell);
        g.any = true;
    } else if name == "mpu" {
        let v = args.value()?;
        if g.mpu != 0 {
            return Err(double(args, "mpu", "mpu"));
        }
        g.mpu = num::size(&v.text, kernel).ok_or_else(|| illegal(args, "mpu", "mpu", &v.text, SIZE))?;
        g.any = true;
    } else if name == "rate" {
        let v = args.value()?;
        if g.rate != 0 {
            return Err(double(args, "rate", "rate"));
        }
        g.rate = rated(args, "rate", &v.text, dev)?;
        g.any = true;
    } else if matches(name, "peakrate") {
        let v = args.value()?;
        if g.peakrate != 0 {
            return Err(double(args, "peakrate", "peakrate"));
        }
        g.peakrate = rated(args, "peakrate", &v.text, dev)?;
        g.any = true;
    } else if matches(name, "overhead") {
        let v = args.value()?;
        if g.overhead != 0 {
            return Err(double(args, "overhead", "overhead"));
        }
        g.overhead = num::u16(&v.text, 10)
            .ok_or_else(|| illegal(args, "overhead", "overhead", &v.text, "bytes from 0 to 65535"))?;
    } else if matches(name, "linklayer") {
        let v = args.value()?;
        g.linklayer = linklayer(&v.text)
            .ok_or_else(|| illegal(args, "linklayer", "linklayer", &v.text, "ethernet or atm"))?;
    } else if name == "help" {
        return Err(helped(args, USAGE));
    } else if args.old() {
        return Err(what_is(args, name, USAGE, KNOWN));
    } else {
        return Err(args.fail(format!("tbf: unknown parameter \"{name}\""), 1, KNOWN).usage(USAGE));
    }
    Ok(())
}

fn sized(
    args: &Args,
    name: &str,
    old_name: &str,
    value: &str,
    cell: Option<u32>,
) -> Result<(u64, Option<u32>), Failure> {
    // tc cuts the word at its slash and restores it when it has read two numbers.
    let shown = match value.split_once('/') {
        Some((size, cell)) if num::size64(size, args.kernel()).is_none() || cell.parse::<u32>().is_err() => {
            size
        }
        _ => value,
    };
    let (size, log) = num::size64_and_cell(value, args.kernel())
        .ok_or_else(|| illegal(args, name, old_name, shown, SIZE))?;
    Ok((size, log.or(cell)))
}

fn rated(args: &Args, name: &str, value: &str, dev: Option<&str>) -> Result<u64, Failure> {
    rate(value, args, dev).map_err(|said| {
        let f = illegal(args, name, name, value, RATE);
        match said {
            Some(line) => f.also(&line),
            None => f,
        }
    })
}

fn required(args: &Args, g: &TbfOptions) -> Result<(), Failure> {
    let (no_rate, no_burst) = (g.rate == 0, g.buffer == 0);
    let no_mtu = g.peakrate != 0 && g.mtu == 0;
    let no_limit = g.limit == 0 && g.latency == 0;
    let help = "e.g. tbf rate 1mbit burst 5k latency 50ms";
    if args.old() {
        let line = if !g.any {
            return Err(helped(args, USAGE));
        } else if no_rate || no_burst {
            "Both \"rate\" and \"burst\" are required."
        } else if no_mtu {
            "\"mtu\" is required, if \"peakrate\" is requested."
        } else if no_limit {
            "Either \"limit\" or \"latency\" are required."
        } else {
            return Ok(());
        };
        return Err(args.fail(line, 1, help));
    }
    let lines = [
        (no_rate, "tbf: the \"rate\" parameter is mandatory."),
        (no_burst, "tbf: the \"burst\" parameter is mandatory."),
        (no_mtu, "tbf: when \"peakrate\" is specified, \"mtu\" must also be specified."),
        (no_limit, "tbf: either \"limit\" or \"latency\" is required."),
    ];
    let said: Vec<&str> = lines.iter().filter(|l| l.0).map(|l| l.1).collect();
    if said.is_empty() { Ok(()) } else { Err(args.fail(said.join("\n"), 1, help).usage(USAGE)) }
}

/// What 32 bits hold of a rate.
fn narrow(rate: u64) -> u64 {
    rate.min(u64::from(u32::MAX))
}

/// The message to the kernel: rates of which 32 bits are kept decide the ticks.
fn request(args: &Args, g: &TbfOptions) -> Options {
    let limit = if g.limit != 0 {
        g.limit
    } else {
        let room = |rate: u64, burst: u64| rate as f64 * f64::from(g.latency) / 1e6 + burst as f64;
        let mut limit = room(g.rate, g.buffer);
        if g.peakrate != 0 {
            limit = room(g.peakrate, u64::from(g.mtu)).min(limit);
        }
        num::cast_u32(limit)
    };
    let mut o = Options::new()
        .with("rate", g.rate)
        .with("limit", limit)
        .with("buffer", num::xmittime(narrow(g.rate), g.buffer, args.kernel()))
        .with("cell_log", cell_log(g.cell, g.mtu))
        .with("mpu", g.mpu & 0xffff)
        .with("overhead", i64::from(g.overhead))
        .with("linklayer", g.linklayer);
    if g.peakrate != 0 {
        o = o
            .with("peakrate", g.peakrate)
            .with("mtu", num::xmittime(narrow(g.peakrate), u64::from(g.mtu), args.kernel()))
            .with("peak_cell_log", cell_log(g.peak_cell, g.mtu));
    }
    if !args.old() {
        if let Ok(burst) = u32::try_from(g.buffer) {
            o = o.with("burst", burst);
        }
        if g.peakrate != 0 {
            o = o.with("pburst", g.mtu);
        }
    }
    o
}

fn print(o: &Options, out: &mut Out) {
    let u32 = |name: &str| o.u32(name).unwrap_or(0);
    let rate = out.wire_rate(o, "rate");
    let peakrate = out.wire_rate(o, "peakrate");
    let (buffer, mtu, limit) = (u32("buffer"), u32("mtu"), u32("limit"));
    out.rate(Some("rate"), "rate ", rate, " ");
    let fine = out.since_7();
    let xmitsize = |rate, ticks| match fine {
        true => psched::xmitsize_fine(rate, ticks),
        false => u64::from(psched::xmitsize(rate, ticks)),
    };
    let burst = xmitsize(rate, buffer);
    if out.form.details {
        let text = format!("{}/{}", size_text(burst, out.kernel()), 1u64 << (u32("cell_log") & 31));
        out.string("burst", &text, format_args!("burst {text} "));
        out.size("mpu", "mpu ", u32("mpu"), " ");
    } else {
        out.size("burst", "burst ", burst, " ");
    }
    if out.form.raw {
        out.hex("burst_raw", buffer, format_args!("[{buffer:08x}] "));
    }
    if peakrate != 0 {
        out.rate(None, "peakrate ", peakrate, " ");
        if mtu != 0 || u32("mpu") != 0 {
            let minburst = xmitsize(peakrate, mtu);
            if out.form.details {
                let text =
                    format!("{}/{}", size_text(minburst, out.kernel()), 1u64 << (u32("peak_cell_log") & 31));
                out.string("mtu", &text, format_args!("mtu {text} "));
                out.size("mpu", "mpu ", u32("mpu"), " ");
            } else {
                out.size("minburst", "minburst ", minburst, " ");
            }
            if out.form.raw {
                out.hex("mtu_raw", mtu, format_args!("[{mtu:08x}] "));
            }
        }
    }
    if out.old() && out.form.raw {
        out.size("limit", "limit ", limit, " ");
    }
    let time = |ticks| if fine { psched::tick2us(ticks) } else { f64::from(psched::tick2time(ticks)) };
    let wait = |rate: u64, ticks: u32| 1e6 * (f64::from(limit) / rate as f64) - time(ticks);
    let mut latency = wait(rate, buffer);
    if peakrate != 0 {
        latency = latency.max(wait(peakrate, mtu));
    }
    let us = num::cast_u32(latency);
    if out.old() {
        out.text_only(format_args!("lat {} ", time_text(us, true)));
        if u32("overhead") != 0 {
            out.text_only(format_args!("overhead {}", u32("overhead")));
        }
        return;
    }
    if latency >= 0.0 {
        out.json_num("lat", num::cast_u64(latency));
        out.text_only(format_args!("lat {} ", time_text(us, false)));
    }
    if out.form.raw || latency < 0.0 {
        out.size("limit", "limit ", limit, " ");
    }
    let overhead = o.i64("overhead").unwrap_or(0);
    if overhead != 0 {
        out.num("overhead", overhead, format_args!("overhead {overhead} "));
    }
    let layer = u32("linklayer");
    if layer > 1 || out.form.details {
        let name = linklayer_name(layer);
        out.string("linklayer", name, format_args!("linklayer {name} "));
    }
}

fn say_qdisc(say: &mut Say) {
    let (o, kernel) = (say.o, say.kernel);
    let narrow = |name| o.u64(name).unwrap_or(0).min(u64::from(u32::MAX));
    let sized = |say: &mut Say, word: &str, rate: u64, ticks: u32, path: &str| {
        let exact = kernel != Kernel::V6_12;
        let size = if exact { burst(rate, ticks, kernel) } else { u64::from(psched::xmitsize(rate, ticks)) };
        say.word(word).value(path, size.max(1), Unit::Plain);
    };
    say.given("rate", Unit::Rate);
    sized(say, "burst", narrow("rate"), say.n("buffer"), "buffer");
    if o.u64("peakrate").unwrap_or(0) != 0 {
        say.given("peakrate", Unit::Rate);
        sized(say, "mtu", narrow("peakrate"), say.n("mtu"), "mtu");
    }
    say.given("limit", Unit::Plain);
    say.unless_zero("mpu", Unit::Plain).overhead();
}
