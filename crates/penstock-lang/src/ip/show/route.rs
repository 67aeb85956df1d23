//! Routes and rules as they are printed.

use super::nexthop::{NexthopView, entry};
use crate::ip::{
    Form, METRICS, NAT, NOP, Net, RouteFilter, TYPES, control_of, protocol_name, scope_name, table_name,
};
use crate::iptables::PROTOCOLS;
use crate::show::Out;
use penstock_model::Kernel;
use std::net::IpAddr;

/// One way of a route over several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextHopView {
    /// `via`.
    pub via: Option<IpAddr>,
    /// `dev`.
    pub dev: Option<String>,
    /// `weight`.
    pub weight: u32,
    /// `linkdown`, `onlink`.
    pub flags: Vec<&'static str>,
}

/// A route as the kernel gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteView {
    /// Number of its type.
    pub kind: u8,
    /// Destination; length 0 is `default`.
    pub dst: Net,
    /// `from` of `ip route get`.
    pub from: Option<IpAddr>,
    /// `tos`.
    pub tos: u8,
    /// The nexthop it goes by, by id; 0 for none.
    pub nhid: u32,
    /// That nexthop, where details are asked for.
    pub nh_info: Option<NexthopView>,
    /// `via`.
    pub via: Option<IpAddr>,
    /// `dev`.
    pub dev: Option<String>,
    /// Table.
    pub table: u32,
    /// Number of its protocol.
    pub protocol: u8,
    /// Number of its scope.
    pub scope: u8,
    /// `src`.
    pub src: Option<IpAddr>,
    /// `metric`, where the kernel tells it.
    pub metric: Option<u32>,
    /// `onlink`, `linkdown`, `dead`.
    pub flags: Vec<&'static str>,
    /// Seconds until it expires; less than zero where it has.
    pub expires: Option<i64>,
    /// Metrics by number: value, `lock`.
    pub metrics: Vec<(u8, u32, bool)>,
    /// Realms: `from` shifted by 16, and `to`.
    pub realms: u32,
    /// Ways, where there are several.
    pub nexthops: Vec<NextHopView>,
    /// `pref`, of a router (RFC 4191); of IPv6.
    pub pref: Option<&'static str>,
    /// The answer to a question: `mark`, and the flags of the cache; without a mark one of the cache that is listed; the route itself else.
    pub answer: Option<(Option<u32>, Vec<&'static str>)>,
    /// The device that packets come in by, where a question names one (`iif`).
    pub iif: Option<String>,
}

/// `ip route show` and `get`: what the filter fixes is not repeated.
pub fn routes(views: &[RouteView], f: &RouteFilter, form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for r in views {
        out.open_object(None);
        route(&mut out, r, f, form);
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}

fn route(out: &mut Out, r: &RouteView, f: &RouteFilter, form: Form) {
    // The old form separates with two blanks where a word brings its own in front.
    let gap = if out.old() { " " } else { "" };
    let details = form.details;
    let kind = TYPES.get(usize::from(r.kind)).copied().unwrap_or("none");
    if (r.kind != 1 || details) && f.kind.is_none_or(|k| k == r.kind) {
        out.string("type", kind, format_args!("{kind} "));
    }
    let host = if r.dst.addr.is_ipv4() { 32 } else { 128 };
    let dst = match r.dst.len {
        0 => "default".to_owned(),
        len if len == host => r.dst.addr.to_string(),
        len => format!("{}/{len}", r.dst.addr),
    };
    out.string("dst", &dst, format_args!("{dst} "));
    if let Some(from) = r.from {
        out.string("from", &from.to_string(), format_args!("from {from} "));
    }
    if r.nhid != 0 {
        out.num("nhid", r.nhid, format_args!("nhid {} ", r.nhid));
    }
    if r.tos != 0 && f.tos.is_none() {
        let tos = format!("{:#04x}", r.tos);
        out.string("tos", &tos, format_args!("tos {tos} "));
    }
    if let Some(via) = r.via.filter(|_| f.via.is_none_or(|v| v.len != host)) {
        gateway(out, r.dst, via);
    }
    if let Some(dev) = r.dev.as_ref().filter(|_| f.dev.is_none()) {
        out.string("dev", dev, format_args!("dev {dev} "));
    }
    if r.table != 0 && (r.table != 254 || details) && f.table == 0 {
        let table = table_name(r.table);
        out.string("table", &table, format_args!("{gap}table {table} "));
    }
    if r.answer.is_none() {
        if (r.protocol != 3 || details) && f.protocol.is_none() {
            let protocol = protocol_name(r.protocol);
            out.string("protocol", &protocol, format_args!("{gap}proto {protocol} "));
        }
        if (r.scope != 0 || details) && f.scope.is_none() {
            let scope = scope_name(r.scope);
            out.string("scope", &scope, format_args!("{gap}scope {scope} "));
        }
    }
    if let Some(src) = r.src.filter(|_| f.src.is_none_or(|s| s.len != host)) {
        out.string("prefsrc", &src.to_string(), format_args!("{gap}src {src} "));
    }
    if let Some(metric) = r.metric.filter(|_| f.metric.is_none()) {
        out.num("metric", metric, format_args!("{gap}metric {metric} "));
    }
    out.open_array("flags", "");
    for flag in &r.flags {
        out.item(format_args!("\"{flag}\""), format_args!("{flag} "));
    }
    out.close_array();
    if let Some((mark, cache)) = &r.answer {
        match mark {
            None | Some(0) => {}
            Some(n) if *n >= 16 => out.num("mark", n, format_args!("mark {n:#x} ")),
            Some(n) => out.num("mark", n, format_args!("mark {n} ")),
        }
        realms(out, r.realms);
        if !out.old() && mark.is_some() && r.iif.is_none() {
            out.num("uid", 0, format_args!("uid 0 "));
        }
        out.nl();
        out.text_only(format_args!("    cache "));
        out.open_array("cache", if cache.is_empty() { "" } else { "<" });
        for (i, flag) in cache.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            out.item(format_args!("\"{flag}\""), format_args!("{comma}{flag}"));
        }
        out.close_array();
        out.text_only(format_args!("{}", if cache.is_empty() { "" } else { "> " }));
    }
    if r.answer.is_none() {
        realms(out, r.realms);
    }
    if let Some(seconds) = r.expires {
        out.num("expires", seconds, format_args!("{gap}expires {seconds}sec "));
    }
    metrics(out, &r.metrics);
    if let Some(iif) = &r.iif {
        out.string("iif", iif, format_args!("iif {iif} "));
    }
    if let Some(pref) = r.pref {
        out.string("pref", pref, format_args!("pref {pref}"));
    }
    if let Some(info) = r.nh_info.as_ref().filter(|_| form.details) {
        out.text_only(format_args!("\n\tnh_info "));
        entry(out, Some("nh_info"), info, form);
    }
    if !r.nexthops.is_empty() {
        nexthops(out, r.dst, &r.nexthops);
    }
}

/// A gateway of the route's own family, or of the other (`RTA_VIA`).
//= iproute2 6.1.0 ip/iproute.c print_rta_gateway, print_rta_via
fn gateway(out: &mut Out, dst: Net, via: IpAddr) {
    if dst.addr.is_ipv4() == via.is_ipv4() {
        out.string("gateway", &via.to_string(), format_args!("via {via} "));
        return;
    }
    let family = if via.is_ipv4() { "inet" } else { "inet6" };
    if out.is_json() {
        out.open_object(Some("via"));
        out.string("family", family, format_args!(""));
        out.string("host", &via.to_string(), format_args!(""));
        out.close_object();
    } else {
        out.text_only(format_args!("via {family} {via} "));
    }
}

/// `print_rta_flow`.
fn realms(out: &mut Out, realms: u32) {
    if realms == 0 {
        return;
    }
    let name = |n: u32| if n == 0 { "cosmos".to_owned() } else { n.to_string() };
    let (from, to) = (realms >> 16, name(realms & 0xffff));
    if out.is_json() {
        out.open_object(Some("flow"));
        if from > 0 {
            out.string("from", &name(from), format_args!(""));
        }
        out.string("to", &to, format_args!(""));
        out.close_object();
    } else if from > 0 {
        out.text_only(format_args!("realms {}/{to} ", name(from)));
    } else {
        out.text_only(format_args!("realm {to} "));
    }
}

fn metrics(out: &mut Out, metrics: &[(u8, u32, bool)]) {
    if metrics.is_empty() {
        return;
    }
    out.open_array("metrics", "");
    out.open_object(None);
    for &(number, value, lock) in metrics {
        let name = METRICS.get(usize::from(number)).copied().unwrap_or("metric");
        let locked = if lock { "lock " } else { "" };
        let time = match name {
            "rtt" => Some(value / 8),
            "rttvar" => Some(value / 4),
            "rto_min" => Some(value),
            _ => None,
        };
        match time {
            // print_rtax_features
            None if name == "features" => {
                out.text_only(format_args!("features {locked}"));
                if value & 1 != 0 {
                    out.null("ecn", format_args!("ecn "));
                }
            }
            None if name == "congctl" => {
                let control = control_of(value).unwrap_or("");
                out.string("congestion", control, format_args!("congctl {locked}{control} "));
            }
            Some(ms) if ms >= 1000 => {
                out.num(name, ms, format_args!("{name} {locked}{}s ", f64::from(ms) / 1000.0));
            }
            Some(ms) => out.num(name, ms, format_args!("{name} {locked}{ms}ms ")),
            None => out.num(name, value, format_args!("{name} {locked}{value} ")),
        }
    }
    out.close_object();
    out.close_array();
}

fn nexthops(out: &mut Out, dst: Net, hops: &[NextHopView]) {
    out.open_array("nexthops", "");
    for hop in hops {
        out.nl();
        out.open_object(None);
        out.text_only(format_args!("\tnexthop "));
        if let Some(via) = hop.via {
            gateway(out, dst, via);
        }
        if let Some(dev) = &hop.dev {
            out.string("dev", dev, format_args!("dev {dev} "));
        }
        out.num("weight", hop.weight, format_args!("weight {} ", hop.weight));
        out.open_array("flags", "");
        for flag in &hop.flags {
            out.item(format_args!("\"{flag}\""), format_args!("{flag} "));
        }
        out.close_array();
        out.close_object();
    }
    out.close_array();
}

/// A rule as it is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuleView {
    /// Priority.
    pub pref: u32,
    /// What it asks and does.
    pub spec: crate::ip::RuleSpec,
    /// Whether the devices of `iif` and `oif` are not there.
    pub detached: (bool, bool),
    /// Whether no rule has the priority of its `goto`.
    pub unresolved: bool,
}

fn prefix_text(net: Net) -> String {
    let host = if net.addr.is_ipv4() { 32 } else { 128 };
    if net.len == host { net.addr.to_string() } else { format!("{}/{}", net.addr, net.len) }
}

/// `ip rule show`.
pub fn rules(views: &[RuleView], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for v in views {
        let r = &v.spec;
        out.open_object(None);
        out.num("priority", v.pref, format_args!("{}:\t", v.pref));
        if r.not {
            out.null("not", format_args!("not "));
        }
        match r.from.filter(|n| n.len > 0) {
            Some(net) => {
                let host = if net.addr.is_ipv4() { 32 } else { 128 };
                let text = prefix_text(net);
                out.string("src", &net.addr.to_string(), format_args!("from {text} "));
                if net.len != host {
                    out.json_num("srclen", net.len);
                }
            }
            None => out.string("src", "all", format_args!("from all ")),
        }
        if let Some(net) = r.to.filter(|n| n.len > 0) {
            let host = if net.addr.is_ipv4() { 32 } else { 128 };
            let text = prefix_text(net);
            out.string("dst", &net.addr.to_string(), format_args!("to {text} "));
            if net.len != host {
                out.json_num("dstlen", net.len);
            }
        }
        if let Some(tos) = r.tos.filter(|t| *t != 0) {
            let tos = format!("{tos:#04x}");
            out.string("tos", &tos, format_args!("tos {tos} "));
        }
        if let Some((mark, mask)) = r.fwmark {
            let text = format!("{mark:#x}");
            match mask.filter(|m| *m != u32::MAX) {
                Some(mask) => {
                    out.string("fwmark", &text, format_args!("fwmark {text}/{mask:#x} "));
                    if out.is_json() {
                        out.string("fwmask", &format!("{mask:#x}"), format_args!(""));
                    }
                }
                None => out.string("fwmark", &text, format_args!("fwmark {text} ")),
            }
        }
        if let Some(iif) = &r.iif {
            out.string("iif", iif, format_args!("iif {iif} "));
            if v.detached.0 {
                out.null("iif_detached", format_args!("[detached] "));
            }
        }
        if let Some(oif) = &r.oif {
            out.string("oif", oif, format_args!("oif {oif} "));
            if v.detached.1 {
                out.null("oif_detached", format_args!("[detached] "));
            }
        }
        if let Some((low, high)) = r.uids {
            out.num("uid_start", low, format_args!("uidrange {low}"));
            out.num("uid_end", high, format_args!("-{high} "));
        }
        if let Some(n) = r.ipproto {
            let name = match n {
                1 => "icmp".to_owned(),
                6 => "tcp".to_owned(),
                17 => "udp".to_owned(),
                132 => "sctp".to_owned(),
                n => match PROTOCOLS.iter().find(|p| p.1 == n) {
                    Some((name, _)) => (*name).to_owned(),
                    None => format!("ipproto-{n}"),
                },
            };
            out.string("ipproto", &name, format_args!("ipproto {name} "));
        }
        for (name, ports) in [("sport", r.sport), ("dport", r.dport)] {
            match ports {
                Some((low, high)) if low == high => out.num(name, low, format_args!("{name} {low} ")),
                Some((low, high)) => {
                    out.num(&format!("{name}_start"), low, format_args!("{name} {low}"));
                    out.num(&format!("{name}_end"), high, format_args!("-{high} "));
                }
                None => {}
            }
        }
        // Between what is done there is one blank, and none behind the last.
        let mut gap = "";
        if r.l3mdev && r.action.is_none() {
            out.null("l3mdev", format_args!("lookup [l3mdev-table]"));
            gap = " ";
        } else if let Some(table) = r.table {
            let table = table_name(table);
            out.string("table", &table, format_args!("lookup {table}"));
            gap = " ";
            if let Some(length) = r.suppress {
                out.num("suppress_prefixlen", length, format_args!(" suppress_prefixlength {length}"));
            }
            if let Some(group) = r.suppress_group {
                let group = if group == 0 { "default".to_owned() } else { group.to_string() };
                out.string("suppress_ifgroup", &group, format_args!(" suppress_ifgroup {group}"));
            }
        }
        if r.realms != 0 {
            let name = |n: u32| if n == 0 { "cosmos".to_owned() } else { n.to_string() };
            let (from, to) = (r.realms >> 16, name(r.realms & 0xffff));
            if from == 0 {
                out.string("flow_to", &to, format_args!("{gap}realms {to}"));
            } else {
                out.string("flow_from", &name(from), format_args!("{gap}realms {}/", name(from)));
                out.string("flow_to", &to, format_args!("{to}"));
            }
            gap = " ";
        }
        if let Some(target) = r.goto {
            out.num("goto", target, format_args!("{gap}goto {target}"));
            if v.unresolved {
                out.null("unresolved", format_args!(" [unresolved]"));
            }
        }
        match r.action {
            None => {}
            Some(NOP) => out.null("nop", format_args!("{gap}nop")),
            Some(NAT) => out.null("masquerade", format_args!("{gap}masquerade")),
            Some(action) => {
                let name = TYPES.get(usize::from(action)).copied().unwrap_or("none");
                out.string("action", name, format_args!("{gap}{name}"));
            }
        }
        let protocol = if form.details { Some(r.protocol.unwrap_or(0)) } else { r.protocol };
        if let Some(protocol) = protocol.filter(|p| *p != 2 || form.details) {
            let name = if protocol == 0 { "unspec".to_owned() } else { protocol_name(protocol) };
            out.string("protocol", &name, format_args!(" proto {name}"));
        }
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}
