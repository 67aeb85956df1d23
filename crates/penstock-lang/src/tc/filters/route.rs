//! `route`: the realms of the route a packet takes.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/f_route.c`, `lib/rt_names.c` `rtnl_rtrealm_a2n` with an empty table of names.
//! Differs: the JSON, which tc leaves out, has the keys of iproute2 6.12, with `to` and `from` for its two `name`.

use super::{FilterHead, FilterKind, exts};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::kinds::{helped, what_is, word};
use crate::tc::{Failure, num};
use penstock_model::Options;
use penstock_model::rtnetlink::FilterDump;

const USAGE: &str = "\
Usage: ... route [ from REALM | fromif TAG ] [ to REALM ]
       ... route [ from REALM | fromif DEV ] [ to REALM ] [ order N ] [ classid CLASSID ]
          [ action ACTION_SPEC ]
";

pub static KIND: FilterKind = FilterKind {
    id: "route",
    parse,
    print,
    words: &[
        word("to", "REALM", "realm of the destination, 0 to 255"),
        word("from", "REALM", "realm of the source, 0 to 255"),
        word("fromif", "DEV", "interface the packet came in by"),
        word("order", "N", "which of several alike, 0 to 127"),
        word("classid", "CLASSID", "the class for matching packets"),
        word("action", "ACTION_SPEC", "action for matching packets"),
        word("police", "POLICE_SPEC", "a policer, in the old form"),
    ],
    ..FilterKind::BARE
};

/// `rtnl_rtrealm_a2n`: `cosmos` is 0.
fn realm(text: &str) -> Option<u32> {
    if text == "cosmos" {
        return Some(0);
    }
    num::strtoul(text, 0).filter(|(n, rest)| rest.is_empty() && *n <= 255).map(|(n, _)| n as u32)
}

/// `rtnl_rtrealm_n2a`: 0 has a name before the file of names is read, and another in it.
fn realm_name(realm: u32, out: &mut Out) -> String {
    if realm == 0 && !out.form.numeric {
        return if out.realms_read { "cosmos" } else { "unknown" }.to_owned();
    }
    out.realms_read = true;
    realm.to_string()
}

fn parse(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let given = exts::strict_handle(given.handle, args)?;
    if args.left() == 0 {
        return Ok((given, None));
    }
    let mut o = Options::new();
    let (mut fh, mut order) = (0xffff_8000u32, 0u32);
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("to") || is("from") {
            let to = is("to");
            let name = if to { "to" } else { "from" };
            let v = args.value()?;
            let id = realm(&v.text).ok_or_else(|| {
                args.fail(format!("Illegal \"{name}\""), 1, "a realm is a number up to 255")
            })?;
            o.set(name, id.into());
            fh = if to { fh & !0x80ff | id & 0xff } else { fh & 0xffff | id << 16 };
        } else if is("fromif") {
            let v = args.value()?;
            let index = (args.env.device)(&v.text).map(|link| link.ifindex).filter(|&i| i != 0);
            let index = index.ok_or_else(|| args.fail("Illegal \"fromif\"", 1, "there is no such device"))?;
            o.set("fromif", v.text.as_str().into());
            o.set("iif", index.into());
            fh = fh & 0xffff | (0x8000 | index) << 16;
        } else if is("classid") || word.text == "flowid" {
            o.set("classid", exts::classid(args)?.into());
        } else if is("police") {
            exts::police(args, &mut o)?;
        } else if !args.old() && is("action") {
            exts::action(args, &mut o, "Illegal \"action\"")?;
        } else if is("order") {
            let v = args.value()?;
            order = num::u32(&v.text, 0)
                .ok_or_else(|| args.fail("Illegal \"order\"", 1, "a number up to 127"))?;
        } else if word.text == "help" {
            return Err(helped(args, USAGE));
        } else {
            let help = "route takes to, from, fromif, order, classid, action, police";
            return Err(what_is(args, &word.text, USAGE, help));
        }
    }
    if order != 0 {
        fh = fh & !0x7f00 | order << 8 & 0x7f00;
    }
    Ok((if given != 0 { given } else { fh }, Some(o)))
}

fn print(dump: &FilterDump, o: &Options, out: &mut Out) {
    let handle = dump.handle;
    if handle != 0 {
        out.string("fh", &format!("0x{handle:x}"), format_args!("fh 0x{handle:08x} "));
    }
    let order = handle >> 8 & 0x7f;
    if order != 0 {
        out.num("order", order, format_args!("order {order} "));
    }
    exts::print_flowid(o, out);
    for name in ["to", "from"] {
        if let Some(realm) = o.u32(name) {
            let realm = realm_name(realm, out);
            out.string(name, &realm, format_args!("{name} {realm} "));
        }
    }
    if let Some(dev) = o.str("fromif") {
        out.string("fromif", dev, format_args!("fromif {dev}"));
    }
    exts::print_old_police(o, false, out);
    exts::print_action(o, out);
}
