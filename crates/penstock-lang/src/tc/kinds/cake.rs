//! `cake`.
//!
//! Follows: iproute2 6.1.0 `tc/q_cake.c`; 7.1.0 for `cake_mq` and `active queues`.

use super::plain::{self, Read, illegal, plain};
use super::{Kind, OptionWord, Side, helped, what_is, word};
use crate::show::{Out, size_text, time_text};
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::{Options, Rate, Value};

const USAGE: &str = "\
Usage: ... cake [ bandwidth RATE | unlimited* | autorate-ingress ]
          [ rtt TIME | datacentre | lan | metro | regional | internet* | oceanic | satellite | interplanetary ]
          [ besteffort | diffserv8 | diffserv4 | diffserv3* ]
          [ flowblind | srchost | dsthost | hosts | flows | dual-srchost | dual-dsthost | triple-isolate* ]
          [ nat | nonat* ] [ wash | nowash* ] [ split-gso* | no-split-gso ]
          [ ack-filter | ack-filter-aggressive | no-ack-filter* ] [ memlimit LIMIT ] [ fwmark MASK ]
          [ ptm | atm | noatm* ] [ overhead N | conservative | raw* ] [ mpu N ] [ ingress | egress* ]
          (* marks defaults)
";
const KNOWN: &str = "e.g. cake bandwidth 50mbit besteffort nat overhead 18";

const WORDS: &[OptionWord] = &[
    word("bandwidth", "RATE", "maximum rate; default unlimited"),
    word("unlimited", "", "no shaping; the default"),
    word("autorate-ingress", "", "guess the bandwidth from what comes in"),
    word("rtt", "TIME", "round trip time of what passes; default 100ms; target is a twentieth"),
    word("datacentre", "", "rtt 100us"),
    word("lan", "", "rtt 1ms"),
    word("metro", "", "rtt 10ms"),
    word("regional", "", "rtt 30ms"),
    word("internet", "", "rtt 100ms; the default"),
    word("oceanic", "", "rtt 300ms"),
    word("satellite", "", "rtt 1s"),
    word("interplanetary", "", "rtt 1000s: no AQM"),
    word("besteffort", "", "one tin"),
    word("precedence", "", "eight tins by IP precedence"),
    word("diffserv8", "", "eight tins by the DS field"),
    word("diffserv4", "", "four tins by the DS field"),
    word("diffserv3", "", "three tins by the DS field; the default"),
    word("flowblind", "", "all is one flow"),
    word("srchost", "", "flows are source hosts"),
    word("dsthost", "", "flows are destination hosts"),
    word("hosts", "", "flows are pairs of hosts"),
    word("flows", "", "flows are flows"),
    word("dual-srchost", "", "fair between source hosts, then between flows"),
    word("dual-dsthost", "", "fair between destination hosts, then between flows"),
    word("triple-isolate", "", "fair between both sides' hosts, then between flows; the default"),
    word("nat", "", "hosts are looked up behind NAT"),
    word("nonat", "", "they are not; the default"),
    word("wash", "", "clear the DS field"),
    word("nowash", "", "leave it; the default"),
    word("split-gso", "", "take large packets apart; the default"),
    word("no-split-gso", "", "leave them whole"),
    word("ack-filter", "", "drop acks that a later one makes needless"),
    word("ack-filter-aggressive", "", "drop all acks but the last"),
    word("no-ack-filter", "", "keep them; the default"),
    word("memlimit", "BYTES", "maximum memory for packets; default from bandwidth and rtt"),
    word("fwmark", "MASK", "these bits of the mark choose the tin"),
    word("atm", "", "count ATM cells"),
    word("ptm", "", "count PTM's coding"),
    word("noatm", "", "count bytes; the default"),
    word("overhead", "N", "bytes added to each packet, -64 to 256; default: the link header as it is (raw)"),
    word("mpu", "N", "minimum size that a packet counts as, 0 to 256; default 0"),
    word("raw", "", "no overhead, the packet as the device has it; the default"),
    word("conservative", "", "atm overhead 48"),
    word("ethernet", "", "overhead 38 mpu 84, added to what stands before"),
    word("ether-vlan", "", "overhead 4, added"),
    word("docsis", "", "noatm overhead 18 mpu 64, added"),
    word("pppoe-ptm", "", "ptm overhead 30, added"),
    word("bridged-ptm", "", "ptm overhead 22, added"),
    word("ingress", "", "count what is dropped as sent"),
    word("egress", "", "count what is sent; the default"),
];

pub static KIND: Kind = Kind {
    id: "cake",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

/// One for each transmit queue, with the same words.
pub static MQ: Kind = Kind {
    id: "cake_mq",
    in_2_6_35: false,
    in_6_12: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

/// Round trips by name: word, target and interval in µs.
const PRESETS: [(&str, u32, u32); 8] = [
    ("datacentre", 5, 100),
    ("lan", 50, 1000),
    ("metro", 500, 10_000),
    ("regional", 1500, 30_000),
    ("internet", 5000, 100_000),
    ("oceanic", 15_000, 300_000),
    ("satellite", 50_000, 1_000_000),
    ("interplanetary", 50_000_000, 1_000_000_000),
];
/// Words that stand alone and set a number.
const SETS: [(&str, &str, u32); 29] = [
    ("besteffort", "diffserv", 3),
    ("precedence", "diffserv", 4),
    ("diffserv8", "diffserv", 2),
    ("diffserv4", "diffserv", 1),
    ("diffserv", "diffserv", 1),
    ("diffserv3", "diffserv", 0),
    ("nowash", "wash", 0),
    ("wash", "wash", 1),
    ("split-gso", "split_gso", 1),
    ("no-split-gso", "split_gso", 0),
    ("flowblind", "flowmode", 0),
    ("srchost", "flowmode", 1),
    ("dsthost", "flowmode", 2),
    ("hosts", "flowmode", 3),
    ("flows", "flowmode", 4),
    ("dual-srchost", "flowmode", 5),
    ("dual-dsthost", "flowmode", 6),
    ("triple-isolate", "flowmode", 7),
    ("nat", "nat", 1),
    ("nonat", "nat", 0),
    ("ptm", "atm", PTM),
    ("atm", "atm", ATM),
    ("noatm", "atm", NOATM),
    ("ingress", "ingress", 1),
    ("egress", "ingress", 0),
    ("no-ack-filter", "ack_filter", 0),
    ("ack-filter", "ack_filter", 1),
    ("ack-filter-aggressive", "ack_filter", 2),
    ("autorate-ingress", "autorate", 1),
];
const NOATM: u32 = 0;
const ATM: u32 = 1;
const PTM: u32 = 2;
/// Links by name: word, cells, overhead added to what stands before, least packet.
const LINKS: [(&str, Option<u32>, i32, Option<i32>); 13] = [
    ("ipoa-vcmux", Some(ATM), 8, None),
    ("ipoa-llcsnap", Some(ATM), 16, None),
    ("bridged-vcmux", Some(ATM), 24, None),
    ("bridged-llcsnap", Some(ATM), 32, None),
    ("pppoa-vcmux", Some(ATM), 10, None),
    ("pppoa-llc", Some(ATM), 14, None),
    ("pppoe-vcmux", Some(ATM), 32, None),
    ("pppoe-llcsnap", Some(ATM), 40, None),
    ("pppoe-ptm", Some(PTM), 30, None),
    ("bridged-ptm", Some(PTM), 22, None),
    ("ethernet", None, 38, Some(84)),
    ("ether-vlan", None, 4, None),
    ("docsis", Some(NOATM), 18, Some(64)),
];
const DIFFSERV: [&str; 5] = ["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"];
const FLOWMODE: [&str; 8] =
    ["flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"];

/// What needs more than a table.
#[derive(Default)]
struct CakeOptions {
    bandwidth: u64,
    unlimited: bool,
    preset: Option<&'static str>,
    target: u32,
    interval: u32,
    overhead: i32,
    overhead_set: bool,
    raw: bool,
    mpu: i32,
    memlimit: u32,
    fwmark: u32,
}

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let (mut g, mut o) = (CakeOptions::default(), Options::new());
    while let Some(word) = args.next_word() {
        let name = word.text.as_str();
        if let Some((_, option, value)) = SETS.into_iter().find(|s| s.0 == name) {
            o.set(option, Value::U32(value));
        } else if let Some((_, atm, overhead, mpu)) = LINKS.into_iter().find(|l| l.0 == name) {
            if let Some(atm) = atm {
                o.set("atm", Value::U32(atm));
            }
            g.overhead = g.overhead.wrapping_add(overhead);
            g.overhead_set = true;
            g.mpu = mpu.unwrap_or(g.mpu);
        } else if let Some((preset, target, interval)) = PRESETS.into_iter().find(|p| p.0 == name) {
            if let Some(before) = g.preset {
                return Err(args.duparg(name, before));
            }
            (g.preset, g.target, g.interval) = (Some(preset), target, interval);
        } else {
            other(args, dev, name, &mut g, &mut o)?;
        }
    }
    Ok(Some(request(&g, o)))
}

fn other(
    args: &mut Args,
    dev: Option<&str>,
    name: &str,
    g: &mut CakeOptions,
    o: &mut Options,
) -> Result<(), Failure> {
    match name {
        "bandwidth" => {
            let v = args.value()?;
            g.bandwidth = num::rate(&v.text, args.kernel())
                .ok_or_else(|| illegal(args, "bandwidth", "a rate, e.g. 50mbit"))?;
            g.unlimited = false;
            o.set("autorate", Value::U32(0));
        }
        "unlimited" => {
            (g.bandwidth, g.unlimited) = (0, true);
            o.set("autorate", Value::U32(0));
        }
        "rtt" => {
            g.interval = plain::read(args, dev, &plain("rtt", Read::Time))?;
            g.target = (g.interval / 20).max(1);
        }
        "raw" => {
            o.set("atm", Value::U32(NOATM));
            (g.overhead, g.overhead_set, g.raw) = (0, true, true);
        }
        "conservative" => {
            o.set("atm", Value::U32(ATM));
            (g.overhead, g.overhead_set) = (48, true);
        }
        // The kernel sees to it by itself.
        "via-ethernet" => {}
        "overhead" => {
            g.overhead = whole(args, "overhead", -64..=256)?;
            g.overhead_set = true;
        }
        "mpu" => g.mpu = whole(args, "mpu", 0..=256)?,
        "memlimit" => g.memlimit = odd(args, "memlimit", |args, text| num::size(text, args.kernel()))?,
        "fwmark" => g.fwmark = odd(args, "fwmark", |_, text| num::u32(text, 0))?,
        "help" => return Err(helped(args, USAGE)),
        _ => return Err(what_is(args, name, USAGE, KNOWN)),
    }
    Ok(())
}

/// A whole number in a range. tc's message ends in a backslash and an n.
fn whole(args: &mut Args, name: &str, range: std::ops::RangeInclusive<i32>) -> Result<i32, Failure> {
    let v = args.value()?;
    let value = match num::strtoul(&v.text, 10) {
        Some((value, "")) => Some(value as i32),
        None if v.text.is_empty() => Some(0),
        _ => None,
    };
    value.filter(|value| range.contains(value)).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        let line = format!("Illegal \"{name}\", valid range is {least} to {most}");
        let mut f = args.fail(line.as_str(), 1, "a whole number of bytes");
        f.stderr = line + "\\n";
        f
    })
}

/// A value whose refusal repeats it.
fn odd(args: &mut Args, name: &str, read: impl Fn(&Args, &str) -> Option<u32>) -> Result<u32, Failure> {
    let v = args.value()?;
    read(args, &v.text).ok_or_else(|| {
        args.fail(format!("Illegal value for \"{name}\": \"{}\"", v.text), 1, "a whole number")
    })
}

/// tc sends zero only where it means something.
fn request(g: &CakeOptions, mut o: Options) -> Options {
    if g.bandwidth != 0 || g.unlimited {
        o = o.with("bandwidth", g.bandwidth);
    }
    if g.overhead_set {
        o = o.with("overhead", i64::from(g.overhead));
    }
    if g.raw {
        o = o.with("raw", Value::Flag);
    }
    if g.mpu > 0 {
        o = o.with("mpu", g.mpu as u32);
    }
    let numbers = [("rtt", g.interval), ("target", g.target), ("memlimit", g.memlimit), ("fwmark", g.fwmark)];
    numbers.into_iter().filter(|&(_, value)| value != 0).fold(o, |o, (name, value)| o.with(name, value))
}

fn mode(key: &str, value: u32, names: &[&str], out: &mut Out) {
    match names.get(value as usize) {
        Some(name) => out.string(key, name, format_args!("{name} ")),
        None => out.string(key, "unknown", format_args!("(?{key}?)")),
    }
}

/// A word in text, true or false in JSON. Without a word for "off" text says nothing of it.
fn either(key: &str, on: bool, words: [&str; 2], out: &mut Out) {
    out.json_bool(key, on);
    out.text_only(format_args!("{}", words[usize::from(on)]));
}

fn print(o: &Options, out: &mut Out) {
    let n = |name| o.u32(name).unwrap_or(0);
    match o.u64("bandwidth").unwrap_or(0) {
        0 => out.string("bandwidth", "unlimited", format_args!("bandwidth unlimited ")),
        rate => out.rate(Some("bandwidth"), "bandwidth ", rate, " "),
    }
    if n("autorate") != 0 {
        out.string("autorate", "autorate-ingress", format_args!("autorate-ingress "));
    }
    mode("diffserv", n("diffserv"), &DIFFSERV, out);
    mode("flowmode", n("flowmode"), &FLOWMODE, out);
    let on = |name| n(name) != 0;
    either("nat", on("nat"), ["nonat ", "nat "], out);
    either("wash", on("wash"), ["nowash ", "wash "], out);
    either("ingress", on("ingress"), ["", "ingress "], out);
    match n("ack_filter") {
        2 => out.string("ack-filter", "aggressive", format_args!("ack-filter-aggressive ")),
        1 => out.string("ack-filter", "enabled", format_args!("ack-filter ")),
        _ => out.string("ack-filter", "disabled", format_args!("no-ack-filter ")),
    }
    either("split_gso", on("split_gso"), ["no-split-gso ", "split-gso "], out);
    if on("rtt") {
        out.text_only(format_args!("rtt {} ", time_text(n("rtt"), false)));
    }
    out.json_num("rtt", n("rtt"));
    let raw = o.has("raw");
    either("raw", raw, ["", "raw "], out);
    match n("atm") {
        ATM => out.string("atm", "atm", format_args!("atm ")),
        PTM => out.string("atm", "ptm", format_args!("ptm ")),
        _ if raw => {}
        _ => out.string("atm", "noatm", format_args!("noatm ")),
    }
    let overhead = o.i64("overhead").unwrap_or(0);
    out.num("overhead", overhead, format_args!("overhead {overhead} "));
    if on("mpu") {
        out.num("mpu", n("mpu"), format_args!("mpu {} ", n("mpu")));
    }
    if on("memlimit") {
        out.size("memlimit", "memlimit ", n("memlimit"), " ");
    }
    if on("fwmark") {
        out.text_only(format_args!("fwmark 0x{:x} ", n("fwmark")));
    }
    if out.is_json() {
        // C's %#x has no 0x before a zero.
        let mask = if on("fwmark") { format!("0x{:x}", n("fwmark")) } else { "0".to_owned() };
        out.string("fwmark", &mask, format_args!(""));
    }
}

/// A flow's own.
fn print_class(o: &Options, out: &mut Out) {
    let n = |name| o.u32(name).unwrap_or(0);
    let deficit = o.i64("deficit").unwrap_or(0) as i32;
    out.num("deficit", deficit, format_args!("  deficit {deficit}"));
    out.num("count", n("count"), format_args!(" count {}", n("count")));
    if n("dropping") != 0 {
        out.flag("dropping", format_args!(" dropping"));
        since("drop_next", o, out);
    }
    out.num("blue_prob", n("blue_prob"), format_args!(" blue_prob {}", n("blue_prob")));
    since("blue_timer", o, out);
}

/// How long something is ago, µs. What lies ahead has a minus, and behind it what its 32 bits are without a sign; in JSON it is not there.
fn since(name: &'static str, o: &Options, out: &mut Out) {
    let Some(us) = o.i64(name) else { return };
    let us = us as i32;
    let sign = if us < 0 { "-" } else { "" };
    if us >= 0 {
        out.json_num(name, us);
    }
    out.text_only(format_args!(" {name} {sign}{}", time_text(us as u32, false)));
}

fn print_xstats(o: &Options, out: &mut Out) {
    if o.has("deficit") {
        return print_class(o, out);
    }
    let n = |name| o.u32(name).unwrap_or(0);
    let kernel = out.kernel();
    let (used, limit) = (size_text(n("memory_used"), kernel), size_text(n("memory_limit"), kernel));
    out.text_only(format_args!(" memory used: {used} of {limit}\n"));
    for name in ["memory_used", "memory_limit"] {
        out.json_num(name, n(name));
    }
    let capacity = o.u64("capacity_estimate").unwrap_or(0);
    out.rate(Some("capacity_estimate"), " capacity estimate: ", capacity, "\n");
    let sizes = [
        ("min_network_size", "max_network_size", " min/max network layer size:", 12),
        ("min_adj_size", "max_adj_size", " min/max overhead-adjusted size:", 8),
    ];
    for (min, max, text, width) in sizes {
        out.num(min, n(min), format_args!("{text} {:width$}", n(min)));
        out.num(max, n(max), format_args!(" /{:8}\n", n(max)));
    }
    if let Some(active) = o.u32("active_queues") {
        out.num("active_queues", active, format_args!(" active queues: {active:25}\n"));
    }
    let offset = n("avg_hdr_offset");
    out.num("avg_hdr_offset", offset, format_args!(" average network hdr offset: {offset:12}\n\n"));
    if out.is_json() {
        json_tins(o.list("tins"), out);
    } else {
        text_tins(o.list("tins"), out);
    }
}

fn json_tins(tins: &[Options], out: &mut Out) {
    const NAMES: [&str; 20] = [
        "threshold_rate",
        "sent_bytes",
        "backlog_bytes",
        "target_us",
        "interval_us",
        "peak_delay_us",
        "avg_delay_us",
        "base_delay_us",
        "sent_packets",
        "way_indirect_hits",
        "way_misses",
        "way_collisions",
        "drops",
        "ecn_mark",
        "ack_drops",
        "sparse_flows",
        "bulk_flows",
        "unresponsive_flows",
        "max_pkt_len",
        "flow_quantum",
    ];
    out.open_array("tins", "");
    for tin in tins {
        out.open_object(None);
        for name in NAMES {
            out.json_num(name, tin.u64(name).unwrap_or(0));
        }
        out.close_object();
    }
    out.close_array();
}

fn text_tins(tins: &[Options], out: &mut Out) {
    match tins.len() {
        3 => out.text_only(format_args!("                   Bulk  Best Effort        Voice\n")),
        4 => out.text_only(format_args!("                   Bulk  Best Effort        Video        Voice\n")),
        count => {
            out.text_only(format_args!("          "));
            (0..count).for_each(|i| out.text_only(format_args!("        Tin {i}")));
            out.nl();
        }
    }
    let (kernel, iec) = (out.kernel(), out.form.iec);
    let rate = |v: u64| Rate::from_bytes_per_s(v).tc_text(kernel, iec);
    let mut row = |title: &str, name: &str, text: &dyn Fn(u64) -> String| {
        out.text_only(format_args!("  {title:8}"));
        for tin in tins {
            out.text_only(format_args!(" {:>12}", text(tin.u64(name).unwrap_or(0))));
        }
        out.nl();
    };
    let time = |us: u64| time_text(us as u32, false);
    let number = |v: u64| v.to_string();
    row("thresh", "threshold_rate", &rate);
    row("target", "target_us", &time);
    row("interval", "interval_us", &time);
    row("pk_delay", "peak_delay_us", &time);
    row("av_delay", "avg_delay_us", &time);
    row("sp_delay", "base_delay_us", &time);
    row("backlog", "backlog_bytes", &|v| size_text(v as u32, kernel));
    row("pkts", "sent_packets", &number);
    row("bytes", "sent_bytes", &number);
    row("way_inds", "way_indirect_hits", &number);
    row("way_miss", "way_misses", &number);
    row("way_cols", "way_collisions", &number);
    row("drops", "drops", &number);
    row("marks", "ecn_mark", &number);
    row("ack_drop", "ack_drops", &number);
    row("sp_flows", "sparse_flows", &number);
    row("bk_flows", "bulk_flows", &number);
    row("un_flows", "unresponsive_flows", &number);
    row("max_len", "max_pkt_len", &number);
    row("quantum", "flow_quantum", &number);
}

fn say_qdisc(say: &mut Say) {
    const DIFFSERV: [&str; 5] = ["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"];
    const FLOWS: [&str; 8] = [
        "flowblind",
        "srchost",
        "dsthost",
        "hosts",
        "flows",
        "dual-srchost",
        "dual-dsthost",
        "triple-isolate",
    ];
    const ACKS: [&str; 3] = ["no-ack-filter", "ack-filter", "ack-filter-aggressive"];
    let o = say.o;
    match o.u64("bandwidth").unwrap_or(0) {
        0 => say.word("unlimited"),
        rate => say.word("bandwidth").value("bandwidth", rate, Unit::Rate),
    };
    // Behind the bandwidth, which turns it off.
    if say.n("autorate") != 0 {
        say.word("autorate-ingress");
    }
    for (name, words) in [("diffserv", &DIFFSERV[..]), ("flowmode", &FLOWS), ("ack_filter", &ACKS)] {
        if let Some(word) = words.get(say.n(name) as usize).filter(|_| o.has(name)) {
            say.word(*word);
        }
    }
    say.either("nat", "nat", "nonat").either("wash", "wash", "nowash").either("ingress", "ingress", "egress");
    say.either("split_gso", "split-gso", "no-split-gso");
    if let Some(rtt) = o.u64("rtt").filter(|&rtt| rtt != 0) {
        say.word("rtt").value("rtt", rtt, Unit::Us);
    }
    // raw takes ATM back: what is said of it comes behind.
    if o.has("raw") {
        say.word("raw");
    }
    match say.n("atm") {
        1 => {
            say.word("atm");
        }
        2 => {
            say.word("ptm");
        }
        _ if !o.has("raw") => {
            say.word("noatm");
        }
        _ => {}
    }
    if !o.has("raw") || o.i64("overhead").is_some_and(|n| n != 0) {
        say.signed("overhead");
    }
    for name in ["mpu", "memlimit", "fwmark"] {
        say.unless_zero(name, Unit::Plain);
    }
}
