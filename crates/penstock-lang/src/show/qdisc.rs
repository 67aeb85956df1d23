//! `print_qdisc`.

use super::{Out, stats};
use crate::tc::{Show, kinds};
use penstock_model::rtnetlink::QdiscDump;
use penstock_model::{Handle, Kernel, Options};

pub fn print(dumps: &[(String, QdiscDump)], show: &Show, kernel: Kernel) -> String {
    let mut out = Out::new(&show.form, kernel, true);
    for (dev, dump) in dumps {
        let handle = show.handle == Handle::UNSPEC || show.handle == dump.handle;
        // tc of 2010 leaves the parent to the kernel, which does not look at it.
        let parent = out.old() || show.parent == Handle::UNSPEC || show.parent == dump.parent;
        if handle && parent {
            one(dev, dump, show, &mut out);
        }
    }
    out.finish()
}

/// The parameters alone, in one line with single blanks.
pub fn options(dump: &QdiscDump, kernel: Kernel) -> String {
    let show = Show::default();
    let mut out = Out::new(&show.form, kernel, true);
    parameters(dump, &mut out);
    let text = out.finish();
    text.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The shared blocks of filters, then what is the kind's own.
fn parameters(dump: &QdiscDump, out: &mut Out) {
    for name in ["ingress_block", "egress_block"] {
        if let Some(block) = dump.options.u32(name) {
            out.num(name, block, format_args!("{name} {block} "));
        }
    }
    out.open_object(Some("options"));
    kinds::print_qdisc(dump.kind, &dump.options, out);
    out.close_object();
}

fn one(dev: &str, dump: &QdiscDump, show: &Show, out: &mut Out) {
    out.open_object(None);
    out.string("kind", dump.kind, format_args!("qdisc {}", dump.kind));
    let handle = format!("{:x}:", dump.handle.major());
    out.string("handle", &handle, format_args!(" {handle}"));
    if out.form.raw && !out.old() {
        out.text_only(format_args!("[{:08x}]", dump.handle.0));
    }
    out.text_only(format_args!(" "));
    if show.dev.is_none() {
        out.device(dev);
    }
    if dump.parent == Handle::ROOT {
        out.flag("root", format_args!("root "));
    } else if dump.parent != Handle::UNSPEC {
        out.string("parent", &dump.parent.to_string(), format_args!("parent {} ", dump.parent));
    }
    if dump.refcnt != 1 {
        out.num("refcnt", dump.refcnt, format_args!("refcnt {} ", dump.refcnt));
    }
    parameters(dump, out);
    out.nl();
    if out.form.details
        && let Some(stab) = dump.options.nested("stab")
    {
        print_stab(stab, out);
        out.nl();
    }
    if out.form.stats {
        stats(&dump.stats, " ", out);
        out.nl();
        if let Some(xstats) = &dump.xstats
            && kinds::print_xstats(dump.kind, xstats, out)
        {
            out.nl();
        }
    }
    out.close_object();
}

/// `print_size_table`.
fn print_stab(stab: &Options, out: &mut Out) {
    out.open_object(Some("stab"));
    out.text_only(format_args!(" "));
    let u32 = |name: &str| stab.u32(name).unwrap_or(0);
    if u32("linklayer") != 0 {
        let name = kinds::linklayer_name(u32("linklayer"));
        out.string("linklayer", name, format_args!("linklayer {name} "));
    }
    let overhead = stab.i64("overhead").unwrap_or(0);
    if overhead != 0 {
        out.num("overhead", overhead, format_args!("overhead {overhead} "));
    }
    for name in ["mpu", "mtu", "tsize"] {
        if u32(name) != 0 {
            out.num(name, u32(name), format_args!("{name} {} ", u32(name)));
        }
    }
    out.close_object();
}
