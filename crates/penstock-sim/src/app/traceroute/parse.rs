//! The command line of traceroute, read as traceroute reads it.
//!
//! Follows: traceroute 2.1.2 `traceroute.c` `main`, `check_progname`, `set_wait_specs`, and `libsupp/clif.c` `CLIF_parse`: letters may be
//! grouped, a value may stand at its letter or behind it; a long option takes its value behind `=`.
//! Differs: without arguments the first line of its help is all that is printed.

use super::{Method, Traceroute};
use crate::app::options::{self, Known, o};
use crate::app::{Failure, Family};
use penstock_model::Span;

/// Options without a letter.
const MTU: char = '\x01';
const BACK: char = '\x02';
const SPORT: char = '\x03';
const FWMARK: char = '\x04';

pub(crate) const KNOWN: &[Known] = &[
    o('4', "", false),
    o('6', "", false),
    o('d', "debug", false),
    o('F', "dont-fragment", false),
    o('f', "first", true),
    o('I', "icmp", false),
    o('T', "tcp", false),
    o('U', "udp", false),
    o('i', "interface", true),
    o('m', "max-hops", true),
    o('M', "module", true),
    o('N', "sim-queries", true),
    o('n', "", false),
    o('p', "port", true),
    o('t', "tos", true),
    o('l', "flowlabel", true),
    o('w', "wait", true),
    o('q', "queries", true),
    o('s', "source", true),
    o('z', "sendwait", true),
    o(SPORT, "sport", true),
    o(FWMARK, "fwmark", true),
    o(MTU, "mtu", false),
    o(BACK, "back", false),
    o('V', "version", false),
];

/// What traceroute has beside these.
pub(crate) const NOT_HERE: &[options::NotHere] = &[
    ("-A --as-path-lookups", "nobody can be asked for the numbers of networks"),
    (
        "-D --dccp -P --protocol -UL",
        "probes are datagrams of UDP, echo requests (-I) or segments of TCP (-T)",
    ),
    ("-e --extensions", "no ICMP message here has extensions"),
    ("-g --gateway", "there are no source routes"),
    ("-O --options", "probes of TCP are SYNs with the options that the machine's settings name"),
    ("-r", "routes are followed"),
    ("--help", "docs/programs.md lists the options"),
];

/// The first line of the help.
const USAGE: &str = "Usage:\n  traceroute [ -46dFITnreAUDV ] [ -f first_ttl ] [ -g gate,... ] [ -i device ] [ -m max_ttl ] [ -N squeries ] [ -p port ] \
    [ -t tos ] [ -l flow_label ] [ -w MAX,HERE,NEAR ] [ -q nqueries ] [ -s src_addr ] [ -z sendwait ] [ --fwmark=num ] host [ packetlen ]\n";

/// What a value is called.
fn value_of(letter: char) -> &'static str {
    match letter {
        'f' => "first_ttl",
        'i' => "device",
        'm' => "max_ttl",
        'M' => "name",
        'N' => "squeries",
        'p' => "port",
        't' => "tos",
        'l' => "flow_label",
        'w' => "MAX,HERE,NEAR",
        'q' => "nqueries",
        's' => "src_addr",
        'z' => "sendwait",
        _ => "num",
    }
}

fn fail<T>(text: String) -> Result<T, Failure> {
    Err(Failure::new(text, 2))
}

/// An unsigned number in the ways of C, as long as it stands alone.
fn number(value: &str) -> Option<u32> {
    options::c_number(value.trim_start().trim_start_matches('+')).and_then(|n| u32::try_from(n).ok())
}
/// A number with decimals, in billionths; `None` for anything else.
fn billionths(value: &str) -> Option<i64> {
    options::seconds(value.trim_start().trim_start_matches('+'))
}

/// An option with its value, and where it stands.
struct Found<'a> {
    letter: char,
    /// As it is called in messages.
    shown: String,
    value: &'a str,
    at: usize,
}

/// Options, and the other words with their places.
type Parsed<'a> = (Vec<Found<'a>>, Vec<(usize, &'a str)>);

/// `CLIF_parse`: the options, and the other words with their places.
fn clif<'a>(args: &[&'a str]) -> Result<Parsed<'a>, Failure> {
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    let refused = |written: &str| {
        let why = NOT_HERE.iter().find(|(names, _)| names.split(' ').any(|name| name == written));
        why.map(|(_, why)| Failure::new(format!("traceroute: {written} is not simulated: {why}\n"), 2))
    };
    let mut i = 0;
    while i < args.len() {
        // Words count from the program's name.
        let (arg, at) = (args[i], i + 1);
        i += 1;
        if let Some(long) = arg.strip_prefix("--").filter(|long| !long.starts_with('-')) {
            if long.is_empty() {
                rest.extend(args[i..].iter().enumerate().map(|(n, word)| (i + 1 + n, *word)));
                break;
            }
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            if let Some(failure) = refused(&format!("--{name}")) {
                return Err(failure);
            }
            let Some(k) = KNOWN.iter().find(|k| k.long == name && (k.value || value.is_none())) else {
                let with = value.map_or(String::new(), |value| format!(" (with arg `{value}')"));
                return fail(format!("Bad option `{arg}'{with} (argc {at})\n"));
            };
            let shown = format!("--{name}");
            let value = match (k.value, value) {
                (true, None) => {
                    let wants = value_of(k.short);
                    return fail(format!(
                        "Option `{shown}' (argc {at}) requires an argument: `{shown}={wants}'\n"
                    ));
                }
                (_, value) => value.unwrap_or_default(),
            };
            found.push(Found { letter: k.short, shown, value, at });
            continue;
        }
        if let Some(failure) = refused(arg).filter(|_| arg == "-UL") {
            return Err(failure);
        }
        let Some(letters) = arg.strip_prefix('-').filter(|l| !l.is_empty() && !l.starts_with('-')) else {
            rest.push((at, arg));
            continue;
        };
        for (n, letter) in letters.char_indices() {
            let shown = format!("-{letter}");
            if let Some(failure) = refused(&shown) {
                return Err(failure);
            }
            let Some(k) = KNOWN.iter().find(|k| k.short == letter) else {
                return fail(format!("Bad option `{shown}' (argc {at})\n"));
            };
            if !k.value {
                found.push(Found { letter, shown, value: "", at });
                continue;
            }
            let joined = &letters[n + letter.len_utf8()..];
            let wants = value_of(letter);
            let needs =
                |at: usize| format!("Option `{shown}' (argc {at}) requires an argument: `{shown} {wants}'\n");
            let (value, at) = match (joined.is_empty(), args.get(i)) {
                (true, Some(&value)) => {
                    i += 1;
                    (value, at + 1)
                }
                (false, _) if n == 0 => (joined, at),
                _ => return fail(needs(at)),
            };
            found.push(Found { letter, shown, value, at });
            break;
        }
    }
    Ok((found, rest))
}

impl Traceroute {
    pub(crate) fn parse(program: &str, args: &[&str]) -> Result<Traceroute, Failure> {
        let mut t = Traceroute::new();
        if program.ends_with('6') {
            t.family = Family::Six;
        }
        if args.is_empty() {
            return Err(Failure::new(USAGE, 0));
        }
        let (found, rest) = clif(args)?;
        for option in &found {
            t.option(option)?;
        }
        match rest[..] {
            [] => return fail("Specify \"host\" missing argument.\n".to_owned()),
            [(at, host)] => (t.target, t.target_at) = (host.to_owned(), at),
            [(at, host), (len_at, len)] => {
                (t.target, t.target_at) = (host.to_owned(), at);
                t.packet_len = match options::c_number(len).and_then(|n| i32::try_from(n).ok()) {
                    Some(n) => Some(n),
                    None => {
                        return fail(format!(
                            "Cannot handle \"packetlen\" cmdline arg `{len}' on position 2 (argc {len_at})\n"
                        ));
                    }
                };
            }
            [_, _, (at, extra), ..] => {
                return fail(format!("Extra arg `{extra}' (position 3, argc {at})\n"));
            }
        }
        t.check()?;
        Ok(t)
    }
    fn option(&mut self, option: &Found<'_>) -> Result<(), Failure> {
        let Found { letter, shown, value, at } = option;
        let letter = *letter;
        let wrong =
            || Failure::new(format!("Cannot handle `{shown}' option with arg `{value}' (argc {at})\n"), 2);
        let uint = || number(value).ok_or_else(wrong);
        match letter {
            '4' => self.family = Family::Four,
            '6' => self.family = Family::Six,
            'F' => self.dontfrag = true,
            'n' => self.numeric = true,
            'I' => self.method = Method::Icmp,
            'T' => self.method = Method::Tcp,
            'U' => self.method = Method::Udp,
            'M' => {
                self.method = match *value {
                    "default" => Method::Default,
                    "udp" => Method::Udp,
                    "icmp" => Method::Icmp,
                    "tcp" => Method::Tcp,
                    "udplite" | "dccp" | "raw" | "tcpconn" => {
                        return fail(format!(
                            "traceroute: -M {value} is not simulated: write default, udp, icmp or tcp\n"
                        ));
                    }
                    _ => return fail(format!("Unknown traceroute module {value}\n")),
                }
            }
            'f' => self.first_hop = uint()?,
            'm' => self.max_hops = uint()?,
            'N' => self.sim_probes = uint()?,
            'q' => self.probes_per_hop = uint()?,
            't' => self.tos = uint()? as u8,
            'l' => self.label = uint()? & 0xf_ffff,
            'p' => self.port = self.port_of(value).ok_or_else(wrong)?,
            SPORT => self.sport = self.port_of(value).ok_or_else(wrong)?,
            FWMARK => self.mark = uint()?,
            'i' => self.device = Some((*value).to_owned()),
            's' => self.source = Some(((*value).to_owned(), *at)),
            'w' => {
                let mut parts = value.splitn(3, ',');
                let mut next = || match parts.next() {
                    Some(part) => billionths(part).map(Some).ok_or_else(wrong),
                    None => Ok(None),
                };
                let (most, here, near) = (next()?, next()?, next()?);
                self.wait = Span::from_ns(most.unwrap_or(0));
                (self.here, self.near) = (here.unwrap_or(0), near.unwrap_or(0));
            }
            'z' => {
                // From 10 on it is milliseconds.
                let ns = billionths(value).ok_or_else(wrong)?;
                self.send_wait = Span::from_ns(if ns >= 10_000_000_000 { ns / 1000 } else { ns });
            }
            MTU => self.mtudisc = true,
            BACK => self.back = true,
            'V' => {
                let text = "Modern traceroute for Linux, version 2.1.2\nCopyright (c) 2016  Dmitry Butskoy,   License: GPL v2 or any later\n";
                return Err(Failure::new(text, 0));
            }
            _ => debug_assert!(letter == 'd', "-{letter} does nothing"),
        }
        Ok(())
    }
    /// A port as a number, or the name of a service.
    fn port_of(&self, value: &str) -> Option<u32> {
        number(value).or_else(|| penstock_lang::services::port(value).map(u32::from))
    }
    fn check(&mut self) -> Result<(), Failure> {
        if self.first_hop == 0 || self.first_hop > self.max_hops {
            return fail("first hop out of range\n".to_owned());
        }
        if self.max_hops > 255 {
            return fail("max hops cannot be more than 255\n".to_owned());
        }
        if self.probes_per_hop == 0 || self.probes_per_hop > 10 {
            return fail("no more than 10 probes per hop\n".to_owned());
        }
        if let Some(len) = self.packet_len.filter(|len| *len > 65_000) {
            return fail(format!("too big packetlen {len} specified\n"));
        }
        if self.sport != 0 {
            (self.sim_probes, self.here, self.near) = (1, 0, 0);
        }
        if self.mtudisc {
            (self.dontfrag, self.sim_probes) = (true, 1);
            self.packet_len = self.packet_len.filter(|len| *len >= 0).or(Some(65_000));
        }
        Ok(())
    }
}
