//! Devices as `ip link` and `ip address` print them.

use super::{AddressView, Said, addr, mac_text};
use crate::ip::{Family, Form, LinkData, LinkFilter};
use crate::show::Out;
use penstock_model::Kernel;
use std::net::Ipv4Addr;

/// The device behind a device, as its name shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkRef {
    /// In this namespace: its name, and whether it is up.
    Here(String, bool),
    /// In another: its index.
    Away(u32),
    /// A tunnel's, which has none.
    None,
}

/// A namespace as a listing names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NetnsRef {
    /// By its name and its number here.
    Named(String, i32),
    /// By its number here.
    Number(i32),
}

/// What `-d` shows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Details {
    /// How often `promisc on`.
    pub promiscuity: u32,
    /// How often `allmulticast on`.
    pub allmulti: u32,
    /// Least MTU.
    pub min_mtu: u32,
    /// Largest MTU; 0 is none.
    pub max_mtu: u32,
    /// Kind, empty for a plain card.
    pub kind: String,
    /// Its options.
    pub data: LinkData,
    /// Kind of the master, as a port's.
    pub slave_kind: String,
    /// What the master tells of it as its port.
    pub slave_data: LinkData,
    /// What a bridge or a bond tells of itself.
    pub said: Vec<Said>,
    /// What it tells of this port of it.
    pub slave_said: Vec<Said>,
    /// `addrgenmode`.
    pub addr_gen_mode: String,
    /// Queues.
    pub queues: (u32, u32),
    /// `gso_max_size`, bytes; `gso_max_segs`; `gro_max_size`, bytes.
    pub gso: (u32, u32, u32),
    /// `tso_max_size`.
    pub tso_max_size: u32,
}

/// A device as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkView {
    /// Index.
    pub ifindex: u32,
    /// Name.
    pub name: String,
    /// The device behind it.
    pub link: Option<LinkRef>,
    /// `IFF_*`, RUNNING 0x40 and LOWER_UP 0x10000 included.
    pub flags: u32,
    /// MTU.
    pub mtu: u32,
    /// Kind of the root qdisc.
    pub qdisc: String,
    /// `master`.
    pub master: Option<String>,
    /// State: `UP`, `DOWN`, `UNKNOWN`, `LOWERLAYERDOWN`.
    pub state: &'static str,
    /// Group.
    pub group: u32,
    /// txqueuelen.
    pub qlen: u32,
    /// Whether it is `lo`.
    pub loopback: bool,
    /// What it is on (`link/…`): `ether`, `loopback`, `ipip`, `gre`, `sit`, `none`, `void`.
    pub link_type: &'static str,
    /// Hardware address.
    pub mac: [u8; 6],
    /// This end and the other one of a tunnel.
    pub ends: Option<(Ipv4Addr, Ipv4Addr)>,
    /// The namespace the device behind it is in.
    pub link_netns: Option<NetnsRef>,
    /// `alias`.
    pub alias: String,
    /// `altname`s.
    pub altnames: Vec<String>,
    /// `-d`.
    pub details: Details,
    /// Received: bytes, packets, dropped.
    pub rx: (u64, u64, u64),
    /// Received packets of IP that were for another station.
    pub otherhost: u64,
    /// Received frames for groups (`mcast`).
    pub multicast: u64,
    /// Sent: bytes, packets, dropped.
    pub tx: (u64, u64, u64),
    /// Errors: received, of these frames; sent, of these without a way (`carrier`), in circles (`collsns`).
    pub errors: [u64; 5],
    /// Addresses in the order the kernel gives them.
    pub addresses: Vec<AddressView>,
}

/// `IFF_POINTOPOINT`.
const POINTOPOINT: u32 = 0x10;

/// `IFF_*` in the order they are printed.
const FLAGS: [(&str, u32); 18] = [
    ("LOOPBACK", 0x8),
    ("BROADCAST", 0x2),
    ("POINTOPOINT", 0x10),
    ("MULTICAST", 0x1000),
    ("NOARP", 0x80),
    ("ALLMULTI", 0x200),
    ("PROMISC", 0x100),
    ("MASTER", 0x400),
    ("SLAVE", 0x800),
    ("DEBUG", 0x4),
    ("DYNAMIC", 0x8000),
    ("AUTOMEDIA", 0x4000),
    ("PORTSEL", 0x2000),
    ("NOTRAILERS", 0x20),
    ("UP", 0x1),
    ("LOWER_UP", 0x10000),
    ("DORMANT", 0x20000),
    ("ECHO", 0x40000),
];

pub(super) fn flags(out: &mut Out, l: &LinkView, lower_down: bool) {
    let mut names: Vec<&str> = Vec::new();
    if l.flags & 1 != 0 && l.flags & 0x40 == 0 {
        names.push("NO-CARRIER");
    }
    names.extend(FLAGS.iter().filter(|f| l.flags & f.1 != 0).map(|f| f.0));
    out.open_array("flags", "<");
    for (i, name) in names.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        out.item(format_args!("\"{name}\""), format_args!("{comma}{name}"));
    }
    if lower_down {
        out.item("\"M-DOWN\"", format_args!(",M-DOWN"));
    }
    out.close_array();
    out.text_only(format_args!("> "));
}

/// `print_name_and_link`; answers whether the device behind is down.
pub(super) fn name(out: &mut Out, l: &LinkView, width: usize, after: &str) -> bool {
    let mut shown = l.name.clone();
    let mut down = false;
    match &l.link {
        Some(LinkRef::Here(link, up)) => {
            if out.is_json() {
                out.string("link", link, format_args!(""));
            } else {
                shown = format!("{}@{link}", l.name);
            }
            down = !up;
        }
        Some(LinkRef::Away(index)) => {
            if out.is_json() {
                out.num("link_index", index, format_args!(""));
            } else {
                shown = format!("{}@if{index}", l.name);
            }
        }
        Some(LinkRef::None) if !out.is_json() => shown = format!("{}@NONE", l.name),
        Some(LinkRef::None) => out.null("link", format_args!("")),
        None => {}
    }
    out.string("ifname", &l.name, format_args!("{shown:<width$}{after}"));
    down
}

/// `ip address` or `ip link`: the devices in the kernel's order. The devices to look at are the caller's to choose, save for
/// what a filter says of their addresses.
pub fn links(views: &[LinkView], filter: &LinkFilter, form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for l in views {
        let wanted: Vec<&AddressView> = l.addresses.iter().filter(|a| a.wanted(filter)).collect();
        let chosen = filter.addresses
            && (filter.family == Family::Inet
                || filter.family == Family::Inet6
                || filter.to.is_some()
                || filter.scope.is_some()
                || filter.label.is_some()
                || filter.flags.1 != 0);
        // Without any address that is wanted the device is not shown either.
        if chosen && wanted.is_empty() {
            continue;
        }
        if filter.addresses && form.family == Family::Other {
            continue;
        }
        let old = out.old();
        if form.brief && !old {
            out.open_object(None);
            brief(&mut out, l, filter, &wanted, form);
            out.close_object();
            continue;
        }
        let just_addresses = filter.addresses && form.oneline && form.family != Family::Link;
        if just_addresses && !out.is_json() {
            for a in &wanted {
                addr::print(&mut out, a, l, form);
            }
            continue;
        }
        out.open_object(None);
        if filter.label.is_none() {
            device(&mut out, l, filter, form);
        }
        if filter.addresses {
            if form.family != Family::Link {
                out.open_array("addr_info", "");
                for a in &wanted {
                    addr::print(&mut out, a, l, form);
                }
                out.close_array();
            }
            if form.stats > 0 && !old {
                stats(&mut out, l, form);
                out.text_only(format_args!("\n"));
            }
        }
        out.close_object();
    }
    out.finish()
}

fn brief(out: &mut Out, l: &LinkView, filter: &LinkFilter, wanted: &[&AddressView], form: Form) {
    let down = name(out, l, 16, " ");
    out.string("operstate", l.state, format_args!("{:<14} ", l.state));
    if filter.addresses && form.family != Family::Link {
        out.open_array("addr_info", "");
        for a in wanted {
            addr::print(out, a, l, form);
        }
        out.close_array();
    } else {
        let mac = match l.ends {
            Some((local, _)) => local.to_string(),
            None if matches!(l.link_type, "none" | "void" | "ppp") => String::new(),
            None => mac_text(&l.mac),
        };
        out.string("address", &mac, format_args!("{mac} "));
        flags(out, l, down);
    }
    out.text_only(format_args!("\n"));
}

fn device(out: &mut Out, l: &LinkView, filter: &LinkFilter, form: Form) {
    let (old, links) = (out.old(), !filter.addresses);
    out.num("ifindex", l.ifindex, format_args!("{}: ", l.ifindex));
    let down = name(out, l, 0, ": ");
    flags(out, l, down);
    out.num("mtu", l.mtu, format_args!("mtu {} ", l.mtu));
    // A dump of inet6 alone does not tell the qdisc.
    if filter.family != Family::Inet6 || filter.dev.is_some() || links {
        out.string("qdisc", &l.qdisc, format_args!("qdisc {} ", l.qdisc));
    }
    if let Some(master) = &l.master {
        out.string("master", master, format_args!("master {master} "));
    }
    out.string("operstate", l.state, format_args!("state {} ", l.state));
    if !old {
        if links {
            out.string("linkmode", "DEFAULT", format_args!("mode DEFAULT "));
        }
        let group = if l.group == 0 { "default".to_owned() } else { l.group.to_string() };
        if filter.family != Family::Inet6 || filter.dev.is_some() || links {
            out.string("group", &group, format_args!("group {group} "));
        }
    }
    if l.qlen > 0 {
        out.num("txqlen", l.qlen, format_args!("qlen {}", l.qlen));
    }
    let all = links || matches!(filter.family, Family::Any | Family::Link) && filter.to.is_none();
    if all || form.details {
        out.nl();
        let kind = l.link_type;
        out.string("link_type", kind, format_args!("    link/{kind} "));
        if let Some((local, remote)) = l.ends {
            let (local, remote) = (local.to_string(), remote.to_string());
            let between = if l.flags & POINTOPOINT != 0 { "peer" } else { "brd" };
            out.string("address", &local, format_args!("{local}"));
            if l.flags & POINTOPOINT != 0 {
                out.json_bool("link_pointtopoint", true);
            }
            out.string("broadcast", &remote, format_args!(" {between} {remote}"));
        } else if !matches!(kind, "none" | "void" | "ppp") {
            let brd = if l.loopback { [0; 6] } else { [0xff; 6] };
            let (mac, brd) = (mac_text(&l.mac), mac_text(&brd));
            out.string("address", &mac, format_args!("{mac}"));
            out.string("broadcast", &brd, format_args!(" brd {brd}"));
        }
    }
    match (&l.link_netns, out.is_json()) {
        (Some(NetnsRef::Named(_, id) | NetnsRef::Number(id)), true) => {
            out.num("link_netnsid", id, format_args!(""));
        }
        (Some(NetnsRef::Named(name, _)), false) => out.text_only(format_args!(" link-netns {name}")),
        (Some(NetnsRef::Number(id)), false) => out.text_only(format_args!(" link-netnsid {id}")),
        (None, _) => {}
    }
    if form.details && !old {
        details(out, &l.details, links);
    }
    if (links || form.details) && !l.alias.is_empty() {
        out.nl();
        out.string("ifalias", &l.alias, format_args!("    alias {}", l.alias));
    }
    if links && form.stats > 0 {
        if old {
            old_stats(out, l);
        } else {
            out.nl();
            stats(out, l, form);
        }
    }
    if !l.altnames.is_empty() && !old {
        out.open_array("altnames", "");
        for alt in &l.altnames {
            out.nl();
            out.item(format_args!("\"{alt}\""), format_args!("    altname {alt}"));
        }
        out.close_array();
    }
    out.text_only(format_args!("\n"));
}

fn details(out: &mut Out, d: &Details, links: bool) {
    out.num("promiscuity", d.promiscuity, format_args!(" promiscuity {} ", d.promiscuity));
    out.num("allmulti", d.allmulti, format_args!(" allmulti {} ", d.allmulti));
    out.num("min_mtu", d.min_mtu, format_args!("minmtu {} ", d.min_mtu));
    out.num("max_mtu", d.max_mtu, format_args!("maxmtu {} ", d.max_mtu));
    if !d.kind.is_empty() || !d.slave_kind.is_empty() {
        out.open_object(Some("linkinfo"));
        if !d.kind.is_empty() {
            out.nl();
            out.string("info_kind", &d.kind, format_args!("    {} ", d.kind));
            data(out, &d.data, &d.kind);
            said(out, "info_data", &d.said);
        }
        if !d.slave_kind.is_empty() {
            out.nl();
            out.string("info_slave_kind", &d.slave_kind, format_args!("    {}_slave ", d.slave_kind));
            slave_data(out, &d.slave_data);
            said(out, "info_slave_data", &d.slave_said);
        }
        out.close_object();
    }
    if links && !d.addr_gen_mode.is_empty() {
        out.string("inet6_addr_gen_mode", &d.addr_gen_mode, format_args!("addrgenmode {} ", d.addr_gen_mode));
    }
    out.num("num_tx_queues", d.queues.0, format_args!("numtxqueues {} ", d.queues.0));
    out.num("num_rx_queues", d.queues.1, format_args!("numrxqueues {} ", d.queues.1));
    for (key, value) in [
        ("gso_max_size", d.gso.0),
        ("gso_max_segs", d.gso.1),
        ("tso_max_size", d.tso_max_size),
        ("tso_max_segs", 65535),
        ("gro_max_size", d.gso.2),
    ] {
        out.num(key, value, format_args!("{key} {value} "));
    }
}

fn said(out: &mut Out, key: &str, all: &[Said]) {
    if !all.is_empty() {
        out.open_object(Some(key));
        super::said::print(out, all);
        out.close_object();
    }
}

/// What `info_slave_data` holds.
fn slave_data(out: &mut Out, data: &LinkData) {
    if let LinkData::Vrf(Some(table)) = data {
        out.open_object(Some("info_slave_data"));
        out.num("table", table, format_args!("table {table} "));
        out.close_object();
    }
}

fn data(out: &mut Out, data: &LinkData, kind: &str) {
    match data {
        LinkData::Vlan { id, protocol, flags, ingress, egress, .. } => {
            out.open_object(Some("info_data"));
            let name = match protocol {
                0x8100 => "802.1Q".to_owned(),
                0x88a8 => "802.1ad".to_owned(),
                n => format!("[{n}]"),
            };
            let id = id.unwrap_or(0);
            out.string("protocol", &name, format_args!("protocol {name} "));
            out.num("id", id, format_args!("id {id} "));
            let words =
                [(1, "REORDER_HDR"), (2, "GVRP"), (8, "MVRP"), (4, "LOOSE_BINDING"), (16, "BRIDGE_BINDING")];
            let set: Vec<&str> = words.iter().filter(|w| flags & w.0 != 0).map(|w| w.1).collect();
            out.open_array("flags", "<");
            for (i, word) in set.iter().enumerate() {
                let comma = if i + 1 < set.len() { "," } else { "" };
                out.item(format_args!("\"{word}\""), format_args!("{word}{comma}"));
            }
            out.close_array();
            out.text_only(format_args!("> "));
            let mut by_tag = [0; 8];
            ingress.iter().for_each(|&(from, to)| by_tag[(from & 7) as usize] = to);
            let by_tag = (0..8u32).zip(by_tag).filter(|&(_, to)| to != 0);
            qos_map(out, "ingress_qos", "ingress-qos-map", !ingress.is_empty(), by_tag);
            // The kernel's hash table of 16 lists, each with the newest first.
            let mut by_packet: Vec<(u32, u32)> = Vec::new();
            for &(from, to) in egress {
                match by_packet.iter_mut().find(|(known, _)| *known == from) {
                    Some(known) => known.1 = to & 7,
                    None => by_packet.insert(0, (from, to & 7)),
                }
            }
            by_packet.sort_by_key(|&(from, _)| from & 15);
            by_packet.retain(|&(_, to)| to != 0);
            qos_map(out, "egress_qos", "egress-qos-map", !egress.is_empty(), by_packet.into_iter());
            out.close_object();
        }
        LinkData::Macvlan(mode) => {
            out.open_object(Some("info_data"));
            out.string("mode", mode, format_args!("mode {mode} "));
            out.num("bcqueuelen", 1000, format_args!("bcqueuelen 1000 "));
            out.num("usedbcqueuelen", 1000, format_args!("usedbcqueuelen 1000 "));
            out.close_object();
        }
        LinkData::Vrf(table) => {
            out.open_object(Some("info_data"));
            let table = table.unwrap_or(0);
            out.num("table", table, format_args!("table {table} "));
            out.close_object();
        }
        LinkData::TunnelSet(set) => super::tunnel::data(out, set, kind),
        LinkData::Vxlan(set) => super::tunnel::vxlan(out, set),
        LinkData::Tun(set) => super::super::tuntap::details(out, set),
        _ => {}
    }
}

/// `vlan_print_map`: pairs of priorities, where any were given.
fn qos_map(out: &mut Out, key: &str, name: &str, given: bool, pairs: impl Iterator<Item = (u32, u32)>) {
    if !given {
        return;
    }
    out.nl();
    out.open_array(key, "");
    out.text_only(format_args!("      {name} {{ "));
    for (from, to) in pairs {
        out.open_object(None);
        out.num("from", from, format_args!("{from}:"));
        out.num("to", to, format_args!("{to} "));
        out.close_object();
    }
    out.close_array();
    out.text_only(format_args!("}} "));
}

/// `print_stats64`.
fn stats(out: &mut Out, l: &LinkView, form: Form) {
    if out.is_json() {
        out.open_object(Some("stats64"));
        let more = form.stats > 1;
        let rx_errors = ["length_errors", "crc_errors", "frame_errors", "fifo_errors", "missed_errors"];
        let tx_errors = ["aborted_errors", "fifo_errors", "window_errors", "heartbeat_errors"];
        let [rx_all, frame, tx_all, carrier, collisions] = l.errors;
        for (key, v, last, errors, all, two) in [
            ("rx", l.rx, ["over_errors", "multicast"], rx_errors.as_slice(), rx_all, [0, l.multicast]),
            (
                "tx",
                l.tx,
                ["carrier_errors", "collisions"],
                tx_errors.as_slice(),
                tx_all,
                [carrier, collisions],
            ),
        ] {
            out.open_object(Some(key));
            for (name, value) in [
                ("bytes", v.0),
                ("packets", v.1),
                ("errors", all),
                ("dropped", v.2),
                (last[0], two[0]),
                (last[1], two[1]),
            ] {
                out.json_num(name, value);
            }
            for name in errors.iter().filter(|_| more) {
                out.json_num(name, if *name == "frame_errors" { frame } else { 0 });
            }
            if more && key == "rx" && l.otherhost > 0 {
                out.json_num("otherhost", l.otherhost);
            }
            out.close_object();
        }
        out.close_object();
        return;
    }
    let [rx_all, frame, tx_all, carrier, collisions] = l.errors;
    let rows = [
        [l.rx.0, l.rx.1, rx_all, l.rx.2, 0, l.multicast],
        [l.tx.0, l.tx.1, tx_all, l.tx.2, carrier, collisions],
    ];
    // Columns are as wide as their widest number, and no narrower than their headings.
    let least = [10, 7, 6, 7, 7, 7];
    let width = |i: usize| {
        let digits = rows.iter().map(|r| r[i].to_string().len()).max().unwrap_or(0);
        digits.max(least[i])
    };
    let heads = [
        ("RX", ["bytes", "packets", "errors", "dropped", "missed", "mcast"]),
        ("TX", ["bytes", "packets", "errors", "dropped", "carrier", "collsns"]),
    ];
    let errors =
        [["length", "crc", "frame", "fifo", "overrun"], ["aborted", "fifo", "window", "heartbt", "transns"]];
    for (row, (name, heads)) in heads.into_iter().enumerate() {
        if row > 0 {
            out.nl();
        }
        let bytes = width(0) - 4;
        out.text_only(format_args!("    {name}:{:>1$}", heads[0], bytes + 1));
        for (i, head) in heads.iter().enumerate().skip(1) {
            out.text_only(format_args!(" {head:>0$}", width(i)));
        }
        out.text_only(format_args!(" {:>10}", ""));
        out.nl();
        out.text_only(format_args!("    "));
        for (i, value) in rows[row].iter().enumerate() {
            out.text_only(format_args!("{value:>0$} ", width(i)));
        }
        if form.stats > 1 {
            out.nl();
            out.text_only(format_args!("    {name} errors:"));
            out.text_only(format_args!("{:>1$}", errors[row][0], width(0) - 10 + width(1) + 1));
            for (i, error) in errors[row].iter().enumerate().skip(1) {
                out.text_only(format_args!(" {error:>0$}", width(i + 1)));
            }
            // A column of its own, where there is one at all.
            let otherhost = Some(l.otherhost).filter(|&n| row == 0 && n > 0);
            if otherhost.is_some() {
                out.text_only(format_args!(" otherhost"));
            }
            out.nl();
            out.text_only(format_args!("    {:>1$} ", "", width(0)));
            for i in 1..6 {
                let count = if row == 0 && i == 3 { frame } else { 0 };
                out.text_only(format_args!("{count:>0$} ", width(i)));
            }
            if let Some(n) = otherhost {
                out.text_only(format_args!("{n:>9} "));
            }
        }
    }
}

fn old_stats(out: &mut Out, l: &LinkView) {
    let (rx, tx) = ([l.rx.0, l.rx.1, 0, l.rx.2, 0, l.multicast], [l.tx.0, l.tx.1, 0, l.tx.2, 0, 0]);
    for (name, last, v) in [("RX", "overrun mcast   ", rx), ("TX", "carrier collsns ", tx)] {
        out.nl();
        out.text_only(format_args!("    {name}: bytes  packets  errors  dropped {last}"));
        out.nl();
        out.text_only(format_args!(
            "    {:<10} {:<8} {:<7} {:<7} {:<7} {:<7}",
            v[0], v[1], v[2], v[3], v[4], v[5]
        ));
    }
}
