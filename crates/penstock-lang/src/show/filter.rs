//! `print_filter`.

use super::Out;
use crate::tc::{Show, filters, num};
use penstock_model::rtnetlink::{ChainDump, FilterDump};
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

pub fn print_chains(dumps: &[(String, ChainDump)], show: &Show, kernel: Kernel) -> String {
    let mut out = Out::new(&show.form, kernel, true);
    for (dev, dump) in dumps {
        chain(dev, dump, show, &mut out);
    }
    out.finish()
}

/// Where it hangs, as far as it was not asked for.
fn place(dev: &str, parent: Handle, block: u32, show: &Show, out: &mut Out) {
    if block != 0 {
        if show.block != block {
            out.num("block", block, format_args!("block {block} "));
        }
        return;
    }
    if show.dev.is_none() {
        out.device(dev);
    }
    if show.parent == Handle::UNSPEC || show.parent != parent {
        if parent == Handle::ROOT {
            out.flag("root", format_args!("root "));
        } else if parent == CLSACT_INGRESS && !out.old() {
            out.flag("ingress", format_args!("ingress "));
        } else if parent == CLSACT_EGRESS && !out.old() {
            out.flag("egress", format_args!("egress "));
        } else {
            out.string("parent", &parent.to_string(), format_args!("parent {parent} "));
        }
    }
}

fn chain_index(chain: u32, show: &Show, out: &mut Out) {
    if !out.old() && show.chain != Some(chain) {
        out.num("chain", chain, format_args!("chain {chain} "));
    }
}

fn one(dev: &str, dump: &FilterDump, show: &Show, out: &mut Out) {
    out.open_object(None);
    out.text_only(format_args!("filter "));
    place(dev, dump.parent, dump.block, show, out);
    if (show.protocol == 0 || show.protocol != dump.protocol) && dump.protocol != 0 {
        let name = num::protocol_name(dump.protocol, out.kernel(), out.form.numeric);
        out.string("protocol", &name, format_args!("protocol {name} "));
    }
    if (show.prio == 0 || show.prio != u32::from(dump.prio)) && dump.prio != 0 {
        out.num("pref", dump.prio, format_args!("pref {} ", dump.prio));
    }
    out.string("kind", dump.kind, format_args!("{} ", dump.kind));
    chain_index(dump.chain, show, out);
    if let Some(options) = &dump.options {
        out.open_object(Some("options"));
        filters::print(dump, options, out);
        out.close_object();
    }
    out.nl();
    // The counters of an old police, in the old form.
    if let (true, Some(police)) = (out.form.stats, dump.options.as_ref().and_then(|o| o.nested("police"))) {
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

fn chain(dev: &str, dump: &ChainDump, show: &Show, out: &mut Out) {
    out.open_object(None);
    out.text_only(format_args!("chain "));
    place(dev, dump.parent, dump.block, show, out);
    if let Some((kind, _)) = &dump.template {
        out.string("kind", kind, format_args!("{kind} "));
    }
    chain_index(dump.chain, show, out);
    if let Some((kind, options)) = &dump.template {
        out.open_object(Some("options"));
        let (kind, chain, options) = (*kind, dump.chain, options.clone());
        let template = FilterDump {
            kind,
            block: dump.block,
            parent: dump.parent,
            protocol: 0,
            prio: 0,
            chain,
            handle: 0,
            options: None,
        };
        filters::print(&template, &options, out);
        out.close_object();
    }
    out.nl();
    out.close_object();
}
