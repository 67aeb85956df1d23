//! Nexthops as they are printed.

use crate::ip::{Form, protocol_name, scope_name};
use crate::show::Out;
use penstock_model::Kernel;
use std::net::IpAddr;

/// A nexthop as the kernel gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NexthopView {
    /// Its id, from 1.
    pub id: u32,
    /// Members by id and weight; empty where it is not a group.
    pub group: Vec<(u32, u16)>,
    /// `via`.
    pub via: Option<IpAddr>,
    /// `dev`.
    pub dev: Option<String>,
    /// `RT_SCOPE_*`.
    pub scope: u8,
    /// `blackhole`.
    pub blackhole: bool,
    /// `RTPROT_*`; 0 where none was said.
    pub protocol: u8,
    /// `onlink`.
    pub flags: Vec<&'static str>,
}

/// `ip nexthop show` and `get`.
pub fn nexthops(views: &[NexthopView], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for view in views {
        entry(&mut out, None, view, form);
        out.text_only(format_args!("\n"));
    }
    out.finish()
}

//= iproute2 6.1.0 ip/ipnexthop.c __print_nexthop_entry
pub(super) fn entry(out: &mut Out, key: Option<&str>, view: &NexthopView, form: Form) {
    out.open_object(key);
    out.num("id", view.id, format_args!("id {} ", view.id));
    if !view.group.is_empty() {
        if out.is_json() {
            out.open_array("group", "");
        }
        out.text_only(format_args!("group "));
        for (at, &(id, weight)) in view.group.iter().enumerate() {
            out.open_object(None);
            out.text_only(format_args!("{}", if at > 0 { "/" } else { "" }));
            out.num("id", id, format_args!("{id}"));
            if weight > 1 {
                out.num("weight", weight, format_args!(",{weight}"));
            }
            out.close_object();
        }
        out.text_only(format_args!(" "));
        if out.is_json() {
            out.close_array();
        }
    }
    if let Some(via) = view.via {
        out.string("gateway", &via.to_string(), format_args!("via {via} "));
    }
    if let Some(dev) = &view.dev {
        out.string("dev", dev, format_args!("dev {dev} "));
    }
    if view.scope != 0 || form.details {
        let scope = scope_name(view.scope);
        out.string("scope", &scope, format_args!("scope {scope} "));
    }
    if view.blackhole {
        out.null("blackhole", format_args!("blackhole "));
    }
    if view.protocol != 0 || form.details {
        let protocol = protocol_name(view.protocol);
        out.string("protocol", &protocol, format_args!("proto {protocol} "));
    }
    out.open_array("flags", "");
    for flag in &view.flags {
        out.item(format_args!("\"{flag}\""), format_args!("{flag} "));
    }
    out.close_array();
    out.close_object();
}
