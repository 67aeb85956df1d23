//! `print_class`. tc 6.1.0 knows no JSON of classes: `-j` prints the same text.

use super::{Out, graph, queue_stats, stats};
use crate::tc::{Show, kinds};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel};

pub fn print(dumps: &[(String, ClassDump)], show: &Show, kernel: Kernel) -> String {
    let mut out = Out::new(&show.form, kernel, false);
    if show.form.graph {
        graph::print(dumps, &mut out);
        return out.finish();
    }
    for (dev, dump) in dumps {
        let qdisc = show.qdisc == Handle::UNSPEC || show.qdisc.major() == dump.classid.major();
        let class = show.classid == Handle::UNSPEC || show.classid == dump.classid;
        if qdisc && class {
            one(dev, dump, show, &mut out);
        }
    }
    out.finish()
}

fn one(dev: &str, dump: &ClassDump, show: &Show, out: &mut Out) {
    let id = |h: Handle| if show.qdisc == Handle::UNSPEC { h } else { Handle::new(0, h.minor()) };
    let classid = if dump.classid == Handle::UNSPEC { String::new() } else { id(dump.classid).to_string() };
    out.text_only(format_args!("class {} {classid} ", dump.kind));
    if show.dev.is_none() {
        out.text_only(format_args!("dev {dev} "));
    }
    if dump.parent == Handle::ROOT {
        out.text_only(format_args!("root "));
    } else {
        out.text_only(format_args!("parent {} ", id(dump.parent)));
    }
    if let Some(leaf) = dump.leaf.filter(|&l| l != Handle::UNSPEC) {
        out.text_only(format_args!("leaf {:x}: ", leaf.major()));
    }
    kinds::print_class(dump.kind, &dump.options, out);
    out.text_only(format_args!("\n"));
    if out.form.stats {
        match dump.counters {
            Counters::All => stats(&dump.stats, " ", out),
            Counters::Queue => queue_stats(&dump.stats, " ", out),
            // tc ends the empty line.
            Counters::None => {}
        }
        out.text_only(format_args!("\n"));
        if let Some(xstats) = &dump.xstats
            && kinds::print_xstats(dump.kind, xstats, out)
        {
            out.text_only(format_args!("\n"));
        }
    }
}
