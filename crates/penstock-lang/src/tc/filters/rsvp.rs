//! `rsvp` and `rsvp6`: sessions of the Resource Reservation Protocol: destination, sender and where in the packet their ports are.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/f_rsvp.c`, `lib/inet_proto.c`.
//! Differs: keys are kept in host order of the packet's big-endian words; of `/etc/protocols` the well-known names are known; the
//! JSON, which tc leaves out, has the words of the options.

use super::address::{address4, address6};
use super::{FilterHead, FilterKind, exts};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::kinds::{OptionWord, helped, what_is, word};
use crate::tc::{Failure, num};
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Handle, Options};
use std::net::{Ipv4Addr, Ipv6Addr};

const USAGE: &str = "\
Usage:\t... rsvp ipproto PROTOCOL session DST[/PORT | GPI ]
               [ sender SRC[/PORT | GPI ] ]
          [ classid CLASSID ] [ tunnelid ID ] [ tunnel ID skip NUMBER ] [ action ACTION_SPEC ]
GPI := { flowlabel NUMBER | spi/ah SPI | spi/esp SPI | u{8|16|32} NUMBER mask MASK at OFFSET }
";

const WORDS: &[OptionWord] = &[
    word("ipproto", "PROTOCOL", "the transport protocol: tcp, udp or a number"),
    word("session", "DST[/PORT|GPI]", "destination address, with its port or another mark in the packet"),
    word("sender", "SRC[/PORT|GPI]", "source address, likewise"),
    word("classid", "CLASSID", "the class of the flow"),
    word("tunnelid", "ID", "the tunnel the packet must have come out of"),
    word("tunnel", "ID skip NUMBER", "goes into this tunnel: looks again after this many bytes"),
    word("action", "ACTION_SPEC", "action for matching packets"),
    word("police", "POLICE_SPEC", "a policer, in the old form"),
];

pub static RSVP: FilterKind = FilterKind {
    id: "rsvp",
    parse: |given, args| parse(given, args, false),
    print,
    words: WORDS,
    ..FilterKind::BARE
};
pub static RSVP6: FilterKind = FilterKind {
    id: "rsvp6",
    parse: |given, args| parse(given, args, true),
    print,
    words: WORDS,
    ..FilterKind::BARE
};

const PROTOCOLS: [(&str, u32); 12] = [
    ("ip", 0),
    ("icmp", 1),
    ("igmp", 2),
    ("ipencap", 4),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("ipv6-icmp", 58),
    ("ospf", 89),
    ("sctp", 132),
];

/// `struct tc_rsvp_gpi`.
#[derive(Clone, Copy, Default)]
struct Gpi {
    key: u32,
    mask: u32,
    offset: i32,
}

/// `struct tc_rsvp_pinfo`.
#[derive(Default)]
struct Pinfo {
    dpi: Gpi,
    spi: Gpi,
    protocol: u32,
    tunnelid: u32,
    tunnelhdr: u32,
}

/// `get_addr_and_pi`: the address as bytes, or `None` where tc says only what it was reading.
fn address_and_gpi(
    args: &mut Args,
    pinfo: &mut Pinfo,
    to: bool,
    six: bool,
) -> Result<Option<Vec<u8>>, Failure> {
    exts::follows(args)?;
    let text = args.value()?.text.as_str();
    let (name, port) = text.split_once('/').map_or((text, None), |(name, port)| (name, Some(port)));
    let mut gpi = if to { pinfo.dpi } else { pinfo.spi };
    if let Some(port) = port {
        let Some(port) = num::u16(port, 0) else { return Ok(None) };
        gpi = if to {
            Gpi { key: u32::from(port), mask: 0xffff, offset: 0 }
        } else {
            Gpi { key: u32::from(port) << 16, mask: 0xffff_0000, offset: 0 }
        };
    }
    let any = matches!(name, "default" | "all" | "any");
    let address = match six {
        _ if any => Some(vec![0; if six { 16 } else { 4 }]),
        false => address4(name).map(|a| a.to_be_bytes().to_vec()),
        true => address6(name).map(|a| a.to_vec()),
    };
    let Some(address) = address else { return Ok(None) };
    if gpi.mask == 0 && !more(args, &mut gpi, pinfo, six)? {
        return Ok(None);
    }
    *(if to { &mut pinfo.dpi } else { &mut pinfo.spi }) = gpi;
    Ok(Some(address))
}

/// What may stand behind an address instead of a port.
fn more(args: &mut Args, gpi: &mut Gpi, pinfo: &mut Pinfo, six: bool) -> Result<bool, Failure> {
    let Some(word) = args.peek_text() else { return Ok(true) };
    let spi = |args: &mut Args| -> Result<Option<u32>, Failure> {
        args.next_word();
        Ok(num::u32(&args.value()?.text, 0))
    };
    match word {
        "spi/ah" | "gpi/ah" | "spi/esp" | "gpi/esp" => {
            let ah = word.ends_with("/ah");
            let Some(key) = spi(args)? else { return Ok(false) };
            *gpi = Gpi { key, mask: u32::MAX, offset: if ah { 4 } else { 0 } };
            if pinfo.protocol == 0 {
                pinfo.protocol = if ah { 51 } else { 50 };
            }
        }
        "flowlabel" => {
            let Some(label) = spi(args)? else { return Ok(false) };
            if !six {
                return Ok(false);
            }
            *gpi = Gpi { key: label & 0xf_ffff, mask: 0xf_ffff, offset: -40 };
        }
        "u32" | "u16" | "u8" => {
            // The masks of u16 and u32 are tc's.
            let (size, mut mask) = match word {
                "u32" => (4, 0xffff),
                "u16" => (2, 0xffff_ffff),
                _ => (1, 0xffu32),
            };
            let Some(mut key) = spi(args)? else { return Ok(false) };
            let mut offset = 0;
            if args.peek_text() == Some("mask") {
                args.next_word();
                let Some(given) = num::u32(&args.value()?.text, 16) else { return Ok(false) };
                mask = given;
            }
            if args.peek_text() == Some("at") {
                args.next_word();
                let Some(given) = num::integer(&args.value()?.text, 0) else { return Ok(false) };
                offset = given;
            }
            let shift = match (size, offset & 3) {
                (1, 0) => 24,
                (1, 1) | (2, 0) => 16,
                (1, 3) => 8,
                _ => 0,
            };
            (key, mask) = (key << shift, mask << shift);
            *gpi = Gpi { key: key & mask, mask, offset: offset & !3 };
        }
        _ => {}
    }
    Ok(true)
}

fn parse(given: &FilterHead<'_>, args: &mut Args, six: bool) -> Result<(u32, Option<Options>), Failure> {
    let handle = exts::strict_handle(given.handle, args)?;
    if args.left() == 0 {
        return Ok((handle, None));
    }
    let mut o = Options::new();
    let mut pinfo = Pinfo::default();
    let mut known = false;
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        let unsigned = |args: &mut Args, name: &str| {
            let v = args.value()?;
            num::u32(&v.text, 0).ok_or_else(|| args.fail(format!("Illegal \"{name}\""), 1, "a number"))
        };
        if is("session") || is("sender") || is("flowspec") {
            let to = is("session");
            let (name, option) = if to { ("session", "dst") } else { ("sender", "src") };
            let help = "an address, e.g. 10.0.0.1/80 or 10.0.0.1 spi/esp 5";
            let address = address_and_gpi(args, &mut pinfo, to, six)?
                .ok_or_else(|| args.fail(format!("Illegal \"{name}\""), 1, help))?;
            o.set(option, address.into());
            known |= (if to { pinfo.dpi.mask } else { pinfo.spi.mask }) != 0 || pinfo.protocol != 0;
        } else if !word.text.is_empty() && word.text.starts_with("ipproto") {
            // tc asks it the other way round: anything that begins with the word will do.
            let v = args.value()?;
            let named = PROTOCOLS.iter().find(|(name, _)| *name == v.text).map(|p| p.1);
            let number = num::u32(&v.text, 10).filter(|&n| n <= 255).or(named);
            let help = "a protocol, e.g. tcp, udp, 17";
            pinfo.protocol = number.ok_or_else(|| args.fail("Illegal \"ipproto\"", 1, help))?;
            known = true;
        } else if is("classid") || word.text == "flowid" {
            o.set("classid", exts::classid(args)?.into());
        } else if word.text == "tunnelid" {
            pinfo.tunnelid = unsigned(args, "tunnelid")? & 0xff;
            known = true;
        } else if word.text == "tunnel" {
            o.set("classid", unsigned(args, "tunnel")?.into());
            exts::follows(args)?;
            if args.peek_text() == Some("skip") {
                args.next_word();
            }
            pinfo.tunnelhdr = unsigned(args, "skip")? & 0xff;
            known = true;
        } else if !args.old() && is("action") {
            exts::action(args, &mut o, "Illegal \"action\"")?;
        } else if is("police") {
            exts::police(args, &mut o)?;
        } else if word.text == "help" {
            return Err(helped(args, USAGE));
        } else {
            let help = "rsvp takes session, sender, ipproto, classid, tunnelid, tunnel, action, police";
            return Err(what_is(args, &word.text, USAGE, help));
        }
    }
    if known {
        let gpi = |g: Gpi| {
            Options::new().with("key", g.key).with("mask", g.mask).with("offset", i64::from(g.offset))
        };
        let nested = Options::new()
            .with("dpi", gpi(pinfo.dpi))
            .with("spi", gpi(pinfo.spi))
            .with("protocol", pinfo.protocol)
            .with("tunnelid", pinfo.tunnelid)
            .with("tunnelhdr", pinfo.tunnelhdr);
        o.set("pinfo", nested.into());
    }
    Ok((handle, Some(o)))
}

/// `sprint_spi`.
fn gpi_text(o: &Options, to: bool) -> String {
    let n = |name| o.u32(name).unwrap_or(0);
    let (key, mask, offset) = (n("key"), n("mask"), o.i64("offset").unwrap_or(0));
    match (offset, mask) {
        (0, 0xffff) if to => format!("/{key}"),
        (0, 0xffff_0000) if !to => format!("/{}", key >> 16),
        (0, u32::MAX) => format!(" spi/esp 0x{key:08x}"),
        (4, u32::MAX) => format!(" spi/ah 0x{key:08x}"),
        (-40, 0xf_ffff) => format!(" flowlabel 0x{key:05x}"),
        _ => format!(" u32 0x{key:08x} mask {mask:08x} at {offset}"),
    }
}

fn address_text(bytes: &[u8]) -> String {
    match (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes)) {
        (Ok(four), _) => Ipv4Addr::from(four).to_string(),
        (_, Ok(six)) => Ipv6Addr::from(six).to_string(),
        _ => String::new(),
    }
}

fn print(dump: &FilterDump, o: &Options, out: &mut Out) {
    if dump.handle != 0 {
        let handle = format!("0x{:08x}", dump.handle);
        out.string("fh", &handle, format_args!("fh {handle} "));
    }
    let empty = Options::new();
    let pinfo = o.nested("pinfo").unwrap_or(&empty);
    let n = |name| pinfo.u32(name).unwrap_or(0);
    let skip = n("tunnelhdr");
    match o.u32("classid") {
        Some(id) if skip != 0 => {
            out.num("tunnel", id as i32, format_args!("tunnel {} ", id as i32));
            out.num("skip", skip, format_args!("skip {skip} "));
        }
        Some(id) => {
            let id = Handle(id).to_string();
            out.string("flowid", &id, format_args!("flowid {id} "));
        }
        None if skip != 0 => {
            out.text_only(format_args!("tunnel [BAD] "));
            out.num("skip", skip, format_args!("skip {skip} "));
        }
        None => {}
    }
    let side = |name: &str, to: bool| {
        pinfo.nested(name).filter(|g| g.u32("mask").unwrap_or(0) != 0).map(|g| gpi_text(g, to))
    };
    let (dpi, spi) = (side("dpi", true), side("spi", false));
    match (o.bytes("dst"), &dpi) {
        (Some(address), dpi) => {
            let text = address_text(address) + dpi.as_deref().unwrap_or("");
            out.string("session", &text, format_args!("session {text} "));
        }
        (None, Some(dpi)) => out.string("session", dpi.trim(), format_args!("session [NONE]{dpi} ")),
        (None, None) => out.text_only(format_args!("session NONE ")),
    }
    if n("protocol") != 0 {
        let number = n("protocol");
        let named = PROTOCOLS.iter().find(|p| p.1 == number).map(|p| p.0.to_owned());
        let name = named.unwrap_or_else(|| format!("ipproto-{number}"));
        out.string("ipproto", &name, format_args!("ipproto {name} "));
    }
    if n("tunnelid") != 0 {
        out.num("tunnelid", n("tunnelid"), format_args!("tunnelid {} ", n("tunnelid")));
    }
    match (o.bytes("src"), &spi) {
        (Some(address), spi) => {
            let text = address_text(address) + spi.as_deref().unwrap_or("");
            out.string("sender", &text, format_args!("sender  {text} "));
        }
        (None, Some(spi)) => out.string("sender", spi.trim(), format_args!("sender [NONE]{spi} ")),
        (None, None) => {}
    }
    exts::print_action(o, out);
    exts::print_old_police(o, false, out);
}
