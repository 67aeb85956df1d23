//! A u32 filter as tc prints it.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/f_u32.c` `u32_print_opt`, `print_raw`, `print_ipv4`, `print_ipv6`.
//! Differs: the JSON of several keys is a list under `match`; tc repeats the name.

use super::{EAT, OFFSET, SKIP_HW, SKIP_SW, TERMINAL, VAROFFSET, handle_text};
use crate::show::Out;
use crate::tc::filters::address::mask_bits;
use crate::tc::filters::exts;
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Handle, Options};
use std::net::Ipv4Addr;

pub fn print(dump: &FilterDump, o: &Options, out: &mut Out) {
    let (old, raw) = (out.old(), out.form.raw);
    if dump.handle != 0 {
        let fh = handle_text(dump.handle, raw, old);
        out.string("fh", &fh, format_args!("fh {fh} "));
    }
    let node = dump.handle & 0xfff;
    if node != 0 {
        out.num("order", node, format_args!("order {node} "));
    }
    if let Some(divisor) = o.u32("divisor") {
        out.num("ht_divisor", divisor, format_args!("ht divisor {divisor} "));
    } else if let Some(htid) = o.u32("hash") {
        let (table, bucket) = (htid >> 20, htid >> 12 & 0xff);
        out.hex("key_ht", table, format_args!("key ht {table:x} "));
        out.hex("bkt", bucket, format_args!("bkt {bucket:x} "));
    } else if old {
        out.text_only(format_args!("??? "));
    }
    let sel = o.nested("sel");
    let flags = sel.and_then(|s| s.u32("flags")).unwrap_or(0);
    let terminal = flags & TERMINAL != 0;
    if let Some(id) = o.u32("classid") {
        let id = Handle(id);
        // tc of 6.1 puts the star where it does not belong.
        if terminal != (old || out.since_7()) {
            out.text_only(format_args!("*"));
        }
        out.string("flowid", &id.to_string(), format_args!("flowid {id} "));
    } else if terminal {
        out.text_only(format_args!("terminal flowid {}", if old { "??? " } else { "" }));
    }
    if let Some(link) = o.u32("link") {
        let link = handle_text(link, raw, old);
        out.string("link", &link, format_args!("link {link} "));
    }
    if !old {
        for (bit, name) in [(SKIP_HW, "skip_hw"), (SKIP_SW, "skip_sw")] {
            if o.u32("flags").unwrap_or(0) & bit != 0 {
                out.flag(name, format_args!("{name} "));
            }
        }
        let in_hw = o.u32("flags").unwrap_or(0);
        if in_hw & 4 != 0 {
            out.flag("in_hw", format_args!("in_hw "));
        } else if in_hw & 8 != 0 {
            out.flag("not_in_hw", format_args!("not_in_hw "));
        }
    }
    let counted = out.form.stats.then(|| o.nested("pcnt")).flatten();
    if let (Some(_), Some(pcnt)) = (sel, counted) {
        let n = |name| pcnt.u64(name).unwrap_or(0);
        let before = if old { " " } else { "" };
        out.num("rule_hit", n("rcnt"), format_args!("{before}(rule hit {} ", n("rcnt")));
        out.num("success", n("rhit"), format_args!("success {})", n("rhit")));
    }
    if let Some(mark) = o.nested("mark") {
        let n = |name| mark.u32(name).unwrap_or(0);
        out.nl();
        out.string("fwmark_value", &c_hex(n("val")), format_args!("  mark 0x{:04x} ", n("val")));
        out.string("fwmark_mask", &c_hex(n("mask")), format_args!("0x{:04x} ", n("mask")));
        out.num("fwmark_success", n("success"), format_args!("(success {})", n("success")));
    }
    if let Some(sel) = sel {
        print_sel(dump, sel, counted, out);
    }
    exts::print_old_police(o, true, out);
    if let Some(dev) = o.str("indev") {
        out.nl();
        out.string("input_dev", dev, format_args!("  input dev {dev}"));
        out.nl();
    }
    exts::print_action(o, out);
}

/// C's `%#x`.
fn c_hex(n: u32) -> String {
    if n == 0 { "0".to_owned() } else { format!("{n:#x}") }
}

fn print_sel(dump: &FilterDump, sel: &Options, counted: Option<&Options>, out: &mut Out) {
    let keys = sel.list("keys");
    let hits = counted.map(|p| p.list("kcnts")).unwrap_or(&[]);
    let many = keys.len() > 1;
    if many && out.is_json() {
        out.open_array("match", "");
    }
    for (i, key) in keys.iter().enumerate() {
        let name = if many { None } else { Some("match") };
        print_key(dump.protocol, key, name, hits.get(i).and_then(|k| k.u64("hits")), out);
    }
    if many && out.is_json() {
        out.close_array();
    }
    let u32 = |name: &str| sel.u32(name).unwrap_or(0);
    let i64 = |name: &str| sel.i64(name).unwrap_or(0);
    if u32("flags") & (VAROFFSET | OFFSET) != 0 {
        out.nl();
        out.text_only(format_args!("    offset "));
        if u32("flags") & VAROFFSET != 0 {
            out.hex("offset_mask", u32("offmask"), format_args!("{:04x}", u32("offmask")));
            out.num("offset_shift", u32("offshift"), format_args!(">>{} ", u32("offshift")));
            out.num("offset_off", i64("offoff"), format_args!("at {} ", i64("offoff")));
        }
        if u32("off") != 0 {
            out.num("plus", u32("off"), format_args!("plus {} ", u32("off")));
        }
    }
    if u32("flags") & EAT != 0 {
        out.flag("eat", format_args!(" eat "));
    }
    if u32("hmask") != 0 {
        out.nl();
        out.hex("hash_mask", u32("hmask"), format_args!("    hash mask {:08x} ", u32("hmask")));
        out.num("hash_off", i64("hoff"), format_args!("at {} ", i64("hoff")));
    }
}

/// One key, with `-p` as what it means; `hits` where the kernel counts.
fn print_key(protocol: u16, key: &Options, name: Option<&str>, hits: Option<u64>, out: &mut Out) {
    let val = key.u32("val").unwrap_or(0);
    let mask = key.u32("mask").unwrap_or(0);
    let off = key.i64("off").unwrap_or(0);
    let nexthdr = key.i64("offmask").unwrap_or(0) != 0;
    out.open_object(name);
    let meaning = if out.form.pretty { protocol } else { 0 };
    match meaning {
        0x0800 => print_ip(val, mask, off, false, out),
        0x86dd => print_ip(val, mask, off, true, out),
        _ => {
            out.nl();
            out.hex("value", val, format_args!("  match {val:08x}"));
            out.hex("mask", mask, format_args!("/{mask:08x} "));
            let next = if nexthdr { "nexthdr+" } else { "" };
            out.string("offmask", next, format_args!("at {next}"));
            out.num("off", off, format_args!("{off}"));
        }
    }
    if let Some(hits) = hits {
        out.num("success", hits, format_args!(" (success {hits} ) "));
    }
    out.close_object();
}

/// `print_ipv4` and `print_ipv6`, which differ in the ports only (and of IPv6 know nothing). What they do not know they do not print.
fn print_ip(val: u32, mask: u32, off: i64, six: bool, out: &mut Out) {
    let old = out.old();
    match (off, mask) {
        (0, 0x0f00_0000) => {
            out.nl();
            out.num("ip_ihl", val >> 24, format_args!("  match IP ihl {}", val >> 24));
        }
        (0, 0x00ff_0000) => {
            out.nl();
            let field = c_hex(val >> 16);
            out.string("ip_dsfield", &field, format_args!("  match IP dsfield {field}"));
        }
        (8, 0x00ff_0000) => {
            out.nl();
            out.num("ip_protocol", val >> 16, format_args!("  match IP protocol {}", val >> 16));
        }
        (12 | 16, _) => {
            let Some(bits) = mask_bits(mask) else { return };
            let side = if off == 12 { "src" } else { "dst" };
            let address = Ipv4Addr::from_bits(val).to_string();
            out.nl();
            out.text_only(format_args!("  match IP {side} "));
            out.open_object(Some(side));
            out.string("address", &address, format_args!("{address}"));
            out.num("prefixlen", bits, format_args!("/{bits}"));
            out.close_object();
        }
        (20, 0x0000_ffff | 0xffff_0000 | u32::MAX) => print_ports(val, mask, six, old, out),
        _ => {}
    }
}

/// The ports: what 2.6.35 and today's IPv6 printer call sport stands in the lower half, where the destination port is.
fn print_ports(val: u32, mask: u32, six: bool, old: bool, out: &mut Out) {
    let (low, high) = (val & 0xffff, val >> 16);
    let (low_name, high_name) = if six || old { ("sport", "dport") } else { ("dport", "sport") };
    match mask {
        0x0000_ffff => {
            let own_line = six || old;
            if own_line {
                out.nl();
            }
            let blank = if own_line { "  " } else { "" };
            out.num(low_name, low, format_args!("{blank}match {low_name} {low}"));
        }
        0xffff_0000 => {
            let own_line = !six || old;
            if own_line {
                out.nl();
            }
            let blank = if own_line { "  " } else { "" };
            out.num(high_name, high, format_args!("{blank}match {high_name} {high}"));
        }
        _ => {
            out.nl();
            out.num(low_name, low, format_args!("  match {low_name} {low}, "));
            out.num(high_name, high, format_args!("match {high_name} {high}"));
        }
    }
}
