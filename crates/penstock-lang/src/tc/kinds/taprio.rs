//! `taprio`.
//!
//! Follows: iproute2 6.1.0 `tc/q_taprio.c`; 6.12.0 for `max-sdu` and `fp`. The tc of 2010 had none.
//! Differs: a schedule that has not begun stands in JSON under `admin`, as tc of the profile 7.2 has it: that of 6.1 writes an object without a name.

use super::queues::{self, Queues};
use super::{Kind, OptionWord, Side, clock, helped, word};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::say::Say;
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

const USAGE: &str = "\
Usage: ... taprio clockid CLOCKID
          [ num_tc NUMBER ] [ map CLASS CLASS ... ] [ queues COUNT@OFFSET ... ]
          [ sched-entry S GATES NS ] ... [ base-time NS ] [ cycle-time NS ] [ cycle-time-extension NS ]
          [ flags 0|1|2 ] [ txtime-delay NS ] [ max-sdu BYTES ... ] [ fp E|P ... ]
";
const ENTRY_USAGE: &str = "Usage: ... taprio ... sched-entry <cmd> <gate mask> <interval>\n";

const WORDS: &[OptionWord] = &[
    word("num_tc", "NUMBER", "traffic classes, 1 to 16"),
    word("map", "CLASS…", "a traffic class for each of 16 priorities; default 0"),
    word("queues", "COUNT@OFFSET…", "each traffic class's transmit queues: how many, from which"),
    word("sched-entry", "S GATES NS", "which gates are open (hexadecimal mask) and for how long, ns"),
    word("base-time", "NS", "when the schedule begins, ns by its clock; default 0"),
    word("cycle-time", "NS", "when it begins again, ns; default the sum of its entries"),
    word(
        "cycle-time-extension",
        "NS",
        "by how much a cycle may be lengthened before a new schedule; default 0",
    ),
    word("clockid", "CLOCK", "CLOCK_TAI, CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME"),
    word("flags", "NUMBER", "1: senders' times are computed, 2: the card keeps the schedule; default 0"),
    word("txtime-delay", "NS", "with flags 1: what is added to senders' times; default 0"),
    word("max-sdu", "BYTES…", "largest frame of each traffic class; default 0: no limit"),
    word("fp", "E|P…", "express or preemptible, by traffic class"),
];

pub static KIND: Kind = Kind {
    id: "taprio",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    ..Kind::BARE
};

fn duplicate(args: &Args, name: &str) -> Failure {
    args.fail(format!("taprio: duplicate \"{name}\" specification"), 1, format!("give {name} once"))
}

/// tc gives up without a word.
fn silent(args: &Args, help: &str) -> Failure {
    let mut f = args.fail("", 1, help);
    f.stderr.clear();
    f
}

fn entry(args: &mut Args) -> Result<Options, Failure> {
    let bad = |args: &Args| {
        let mut f = args.fail("", 1, "e.g. sched-entry S 01 300000");
        f.stderr = ENTRY_USAGE.to_owned();
        f
    };
    if args.value()?.text != "S" {
        return Err(bad(args));
    }
    let mask = num::u32(&args.value()?.text, 16).ok_or_else(|| bad(args))?;
    let interval = num::u32(&args.value()?.text, 0).ok_or_else(|| bad(args))?;
    Ok(Options::new().with("cmd", 0u32).with("gate-mask", mask).with("interval", interval))
}

/// What the words said so far.
#[derive(Default)]
struct TaprioOptions {
    number: u8,
    map: Vec<u8>,
    queues: Queues,
    entries: Vec<Options>,
    base_time: i64,
    cycle_time: i64,
    extension: i64,
    clockid: Option<i64>,
    flags: u32,
    txtime_delay: u32,
    max_sdu: Option<Vec<u32>>,
    fp: Option<Vec<u8>>,
}

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut g = TaprioOptions { map: vec![0; queues::MAX_QUEUES], ..TaprioOptions::default() };
    while let Some(word) = args.next_word() {
        // A time that is not a number ends the list: what stands behind it is not read.
        if !one(args, &word.text, &mut g)? {
            break;
        }
    }
    let mut o = Options::new();
    if let Some(clockid) = g.clockid {
        o = o.with("clockid", clockid);
    }
    if g.flags != 0 {
        o = o.with("flags", g.flags);
    }
    if g.number > 0 {
        o = o.with("num_tc", g.number).with("map", g.map).with("queues", g.queues.options());
    }
    if g.txtime_delay != 0 {
        o = o.with("txtime-delay", g.txtime_delay);
    }
    let times =
        [("base-time", g.base_time), ("cycle-time", g.cycle_time), ("cycle-time-extension", g.extension)];
    for (name, time) in times.into_iter().filter(|(_, time)| *time != 0) {
        o = o.with(name, time);
    }
    o.set("sched-entry", Value::List(g.entries));
    if let Some(sizes) = g.max_sdu {
        let sizes = sizes.into_iter().map(|size| Options::new().with("max-sdu", size));
        o.set("max-sdu", Value::List(sizes.collect()));
    }
    if let Some(fp) = g.fp {
        o.set("fp", Value::Bytes(fp));
    }
    Ok(Some(o))
}

/// One option and its values. `false`: tc reads no further.
fn one(args: &mut Args, name: &str, g: &mut TaprioOptions) -> Result<bool, Failure> {
    match name {
        "num_tc" => {
            let v = args.value()?;
            g.number = num::u8(&v.text, 10)
                .ok_or_else(|| args.fail("Illegal \"num_tc\"", 1, "a number from 1 to 16"))?;
        }
        "map" => g.map = queues::map(args),
        "queues" => g.queues.read(args),
        "sched-entry" => g.entries.push(entry(args)?),
        "base-time" | "cycle-time" | "cycle-time-extension" => {
            let v = args.value()?;
            let time = match name {
                "base-time" => &mut g.base_time,
                "cycle-time" => &mut g.cycle_time,
                _ => &mut g.extension,
            };
            if name != "base-time" && *time != 0 {
                return Err(duplicate(args, name));
            }
            let Some(value) = num::i64(&v.text, 10) else { return Ok(false) };
            *time = value;
        }
        "clockid" => {
            let v = args.value()?;
            if g.clockid.is_some() {
                return Err(duplicate(args, "clockid"));
            }
            g.clockid = Some(clock::parse(&v.text).ok_or_else(|| {
                let line = format!("taprio: illegal value for \"clockid\": \"{}\".", v.text);
                args.fail(line, 1, "CLOCK_TAI").usage("It must be a valid SYS-V id (i.e. CLOCK_TAI)\n")
            })?);
        }
        "flags" | "txtime-delay" => {
            let v = args.value()?;
            let number = if name == "flags" { &mut g.flags } else { &mut g.txtime_delay };
            if *number != 0 {
                return Err(duplicate(args, name));
            }
            *number = num::u32(&v.text, 0).ok_or_else(|| silent(args, "a number, without a unit"))?;
        }
        "max-sdu" => g.max_sdu = Some(queues::several(args, |text| num::u32(text, 10))),
        "fp" => g.fp = Some(queues::preemption(args)),
        "help" => return Err(helped(args, USAGE)),
        _ => return Err(args.fail("Unknown argument", 1, "taprio takes what its usage lists")),
    }
    Ok(true)
}

fn print(o: &Options, out: &mut Out) {
    let number = o.u32("num_tc").unwrap_or(0);
    out.num("tc", number, format_args!("tc {number} "));
    out.open_array("map", "map");
    for &class in o.bytes("map").unwrap_or(&[]) {
        out.item(class, format_args!(" {class}"));
    }
    out.close_array();
    out.nl();
    out.open_array("queues", "queues");
    for range in o.list("queues") {
        let value = |name: &str| range.u32(name).unwrap_or(0);
        out.open_object(None);
        out.num("offset", value("offset"), format_args!(" offset {}", value("offset")));
        out.num("count", value("count"), format_args!(" count {}", value("count")));
        out.close_object();
    }
    out.close_array();
    out.nl();
    let clock = clock::name(o.i64("clockid").unwrap_or(-1));
    out.string("clockid", clock, format_args!("clockid {clock}"));
    if let Some(flags) = o.u32("flags") {
        out.string("flags", &format!("{flags:#x}"), format_args!(" flags {flags:#x}"));
    }
    if let Some(delay) = o.u32("txtime-delay") {
        out.num("txtime_delay", delay, format_args!(" txtime delay {}", delay as i32));
    }
    print_schedule(o.nested("oper").unwrap_or(&Options::new()), out);
    if let Some(admin) = o.nested("admin") {
        out.open_object(Some("admin"));
        print_schedule(admin, out);
        out.close_object();
    }
    if out.since_7() && o.has("fp") {
        out.open_array("max-sdu", "max-sdu");
        for entry in o.list("max-sdu") {
            let bytes = entry.u32("max-sdu").unwrap_or(0);
            out.item(bytes, format_args!(" {bytes}"));
        }
        out.close_array();
        out.nl();
        out.open_array("fp", "fp");
        queues::print_preemption(o, out);
        out.nl();
    }
}

fn print_schedule(o: &Options, out: &mut Out) {
    let time = |name: &str| o.i64(name).unwrap_or(0);
    let (base, cycle, extension) = (time("base-time"), time("cycle-time"), time("cycle-time-extension"));
    // JSON has times as unsigned numbers.
    out.num("base_time", base as u64, format_args!("\tbase-time {base}"));
    out.num("cycle_time", cycle as u64, format_args!(" cycle-time {cycle}"));
    out.num("cycle_time_extension", extension as u64, format_args!(" cycle-time-extension {extension}"));
    if !o.has("sched-entry") {
        return;
    }
    out.open_array("schedule", "");
    out.nl();
    for entry in o.list("sched-entry") {
        let value = |name: &str| entry.u32(name).unwrap_or(0);
        let mask = match value("gate-mask") {
            0 => "0".to_owned(),
            mask => format!("{mask:#x}"),
        };
        let cmd = if value("cmd") == 0 { "S" } else { "Invalid" };
        out.open_object(None);
        out.num("index", value("index"), format_args!("\tindex {}", value("index")));
        out.string("cmd", cmd, format_args!(" cmd {cmd}"));
        out.string("gatemask", &mask, format_args!(" gatemask {mask}"));
        out.num("interval", value("interval"), format_args!(" interval {}", value("interval")));
        out.close_object();
        out.nl();
    }
    out.close_array();
}

fn say_qdisc(say: &mut Say) {
    let o = say.o;
    queues::say(say);
    // What runs, or what waits to.
    if let Some(schedule) = o.nested("admin").or(o.nested("oper")) {
        for name in ["base-time", "cycle-time", "cycle-time-extension"] {
            if let Some(time) = schedule.i64(name).filter(|&t| t != 0) {
                say.pair(name, time);
            }
        }
        for entry in schedule.list("sched-entry") {
            let n = |name| entry.u32(name).unwrap_or(0);
            say.word("sched-entry")
                .word("S")
                .word(format!("{:x}", n("gate-mask")))
                .word(n("interval").to_string());
        }
    }
    if let Some(flags) = o.u32("flags").filter(|&f| f != 0) {
        say.pair("flags", format!("{flags:#x}"));
    }
    if let Some(delay) = o.u32("txtime-delay").filter(|&d| d != 0) {
        say.pair("txtime-delay", delay);
    }
    if let Some(clock) = o.i64("clockid").filter(|&c| c >= 0) {
        say.pair("clockid", format!("CLOCK_{}", clock::name(clock)));
    }
}
