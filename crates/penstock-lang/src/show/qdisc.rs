//! `print_qdisc`.

use super::{Out, stats};
use crate::tc::{Show, kinds};
use penstock_model::rtnetlink::QdiscDump;
use penstock_model::{Handle, Kernel};

pub fn print(dumps: &[(String, QdiscDump)], show: &Show, kernel: Kernel) -> String {
    let mut out = Out::new(&show.form, kernel, true);
    for (dev, dump) in dumps {
        let handle = show.handle == Handle::UNSPEC || show.handle == dump.handle;
        let parent = show.parent == Handle::UNSPEC || show.parent == dump.parent;
        if handle && parent {
            one(dev, dump, show, &mut out);
        }
    }
    out.finish()
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
        out.string("dev", dev, format_args!("dev {dev} "));
    }
    if dump.parent == Handle::ROOT {
        out.flag("root", format_args!("root "));
    } else if dump.parent != Handle::UNSPEC {
        out.string("parent", &dump.parent.to_string(), format_args!("parent {} ", dump.parent));
    }
    if dump.refcnt != 1 {
        out.num("refcnt", dump.refcnt, format_args!("refcnt {} ", dump.refcnt));
    }
    out.open_object(Some("options"));
    kinds::print_qdisc(dump.kind, &dump.options, out);
    out.close_object();
    out.nl();
    if out.form.stats {
        stats(&dump.stats, out);
        out.nl();
        if let Some(xstats) = &dump.xstats
            && kinds::print_xstats(dump.kind, xstats, out)
        {
            out.nl();
        }
    }
    out.close_object();
}
