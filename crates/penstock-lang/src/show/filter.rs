//! `print_filter`.

use super::Out;
use crate::tc::{Show, filters, num};
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Handle, Kernel, Options, Stats};

const CLSACT_INGRESS: Handle = Handle(0xffff_fff2);
const CLSACT_EGRESS: Handle = Handle(0xffff_fff3);

pub fn print(dumps: &[(String, FilterDump)], show: &Show, kernel: Kernel) -> String {
    let mut out = Out::new(&show.form, kernel, true);
    for (dev, dump) in dumps {
        one(dev, dump, show, &mut out);
    }
    out.finish()
}

fn one(dev: &str, dump: &FilterDump, show: &Show, out: &mut Out) {
    out.open_object(None);
    out.text_only(format_args!("filter "));
    if show.dev.is_none() {
        out.string("dev", dev, format_args!("dev {dev} "));
    }
    if show.parent == Handle::UNSPEC || show.parent != dump.parent {
        if dump.parent == Handle::ROOT {
            out.flag("root", format_args!("root "));
        } else if dump.parent == CLSACT_INGRESS && !out.old() {
            out.flag("ingress", format_args!("ingress "));
        } else if dump.parent == CLSACT_EGRESS && !out.old() {
            out.flag("egress", format_args!("egress "));
        } else {
            out.string("parent", &dump.parent.to_string(), format_args!("parent {} ", dump.parent));
        }
    }
    if (show.protocol == 0 || show.protocol != dump.protocol) && dump.protocol != 0 {
        let name = num::protocol_name(dump.protocol, out.kernel(), out.form.numeric);
        out.string("protocol", &name, format_args!("protocol {name} "));
    }
    if (show.prio == 0 || show.prio != u32::from(dump.prio)) && dump.prio != 0 {
        out.num("pref", dump.prio, format_args!("pref {} ", dump.prio));
    }
    out.string("kind", dump.kind, format_args!("{} ", dump.kind));
    if !out.old() && show.chain != Some(dump.chain) {
        out.num("chain", dump.chain, format_args!("chain {} ", dump.chain));
    }
    // A priority's header is dumped without options.
    if !dump.options.is_empty() || dump.handle != 0 {
        out.open_object(Some("options"));
        filters::print(dump, out);
        out.close_object();
    }
    out.nl();
    // The counters of an old police, in the old form.
    if let (true, Some(police)) = (out.form.stats, dump.options.nested("police")) {
        let s = Stats::from_options(police.nested("stats").unwrap_or(&Options::new()));
        let (lost, over) = (s.drops, s.overlimits);
        out.text_only(format_args!(
            " Sent {} bytes {} pkts (dropped {lost}, overlimits {over}) ",
            s.bytes, s.packets
        ));
        out.nl();
    }
    out.close_object();
}
