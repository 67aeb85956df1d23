//! `print_class`. tc 6.1.0 knows no JSON of classes: `-j` prints the same text. That of 7.2 does.

use super::{Out, graph, queue_stats, stats};
use crate::tc::{Show, kinds};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel};

pub fn print(dumps: &[(String, ClassDump)], show: &Show, kernel: Kernel) -> String {
    let mut out = Out::new(&show.form, kernel, kernel >= Kernel::V7_2 && !show.form.graph);
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
    out.open_object(None);
    out.string("class", dump.kind, format_args!("class {} ", dump.kind));
    out.string("handle", &classid, format_args!("{classid} "));
    if show.dev.is_none() {
        if out.since_7() {
            out.device(dev);
        } else {
            out.text_only(format_args!("dev {dev} "));
        }
    }
    if dump.parent == Handle::ROOT {
        out.flag("root", format_args!("root "));
    } else {
        let parent = id(dump.parent).to_string();
        out.string("parent", &parent, format_args!("parent {parent} "));
    }
    if let Some(leaf) = dump.leaf.filter(|&l| l != Handle::UNSPEC) {
        let leaf = leaf.major();
        out.string("leaf", &format!("{leaf:#x}"), format_args!("leaf {leaf:x}: "));
    }
    kinds::print_class(dump.kind, &dump.options, out);
    end_line(out);
    if out.form.stats {
        out.open_object(Some("stats"));
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
        out.close_object();
    }
    out.close_object();
}

/// The end of the first line, which is one with `-o` too before 7.2.
fn end_line(out: &mut Out) {
    if out.since_7() {
        out.nl();
    } else {
        out.text_only(format_args!("\n"));
    }
}
