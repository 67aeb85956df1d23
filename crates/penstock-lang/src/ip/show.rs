//! `ip address`, `ip link`, `ip route` and `ip neigh` as they are printed.

use super::{Form, Prefix};
use penstock_model::Kernel;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// An address as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressView {
    /// Address and length.
    pub prefix: Prefix,
    /// `brd`.
    pub broadcast: Option<Ipv4Addr>,
    /// `secondary`.
    pub secondary: bool,
    /// `scope host`.
    pub host_scope: bool,
}

/// A device as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkView {
    /// Index.
    pub ifindex: u32,
    /// Name.
    pub name: String,
    /// `lo`.
    pub loopback: bool,
    /// Administratively up.
    pub up: bool,
    /// MTU.
    pub mtu: u32,
    /// Kind of the root qdisc.
    pub qdisc: String,
    /// txqueuelen.
    pub qlen: u32,
    /// Hardware address.
    pub mac: [u8; 6],
    /// Received: bytes, packets, dropped.
    pub rx: (u64, u64, u64),
    /// Sent: bytes, packets, dropped.
    pub tx: (u64, u64, u64),
    /// Addresses.
    pub addresses: Vec<AddressView>,
}

/// A route as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteView {
    /// `unreachable`, `local`, …; empty for unicast.
    pub kind: &'static str,
    /// Destination; length 0 is `default`.
    pub dst: Prefix,
    /// `via`.
    pub via: Option<Ipv4Addr>,
    /// `dev`.
    pub dev: Option<String>,
    /// `table`, where it is not the one asked for.
    pub table: Option<&'static str>,
    /// `proto`.
    pub proto: Option<&'static str>,
    /// `scope`.
    pub scope: Option<&'static str>,
    /// `src`.
    pub src: Option<Ipv4Addr>,
    /// `metric`.
    pub metric: Option<u32>,
}

/// A neighbour as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeighView {
    /// Address.
    pub addr: Ipv4Addr,
    /// `dev`, where no device was asked for.
    pub dev: Option<String>,
    /// `lladdr`, where it is known.
    pub mac: Option<[u8; 6]>,
    /// State.
    pub state: &'static str,
}

fn mac_text(mac: [u8; 6]) -> String {
    mac.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
}

fn flags(l: &LinkView) -> String {
    let kind = if l.loopback { "LOOPBACK" } else { "BROADCAST,MULTICAST" };
    format!("<{kind}{}>", if l.up { ",UP,LOWER_UP" } else { "" })
}

fn state(l: &LinkView) -> &'static str {
    match (l.up, l.loopback) {
        (false, _) => "DOWN",
        (true, true) => "UNKNOWN",
        (true, false) => "UP",
    }
}

/// `ip address` (`addresses`) or `ip link`.
pub fn links(views: &[LinkView], addresses: bool, form: Form, kernel: Kernel) -> String {
    let mut out = String::new();
    let nl = if form.oneline { "\\" } else { "\n" };
    for l in views {
        let old = kernel == Kernel::V2_6_35;
        if form.brief && !old {
            let _ = write!(out, "{:<16} {:<14} ", l.name, state(l));
            if addresses {
                for a in &l.addresses {
                    let _ = write!(out, "{}/{} ", a.prefix.0, a.prefix.1);
                }
            } else {
                let _ = write!(out, "{} {} ", mac_text(l.mac), flags(l));
            }
            out.push('\n');
            continue;
        }
        if addresses && form.oneline {
            for a in &l.addresses {
                let _ = write!(out, "{}: {}", l.ifindex, l.name);
                address(&mut out, a, l, old, nl);
            }
            continue;
        }
        let _ = write!(
            out,
            "{}: {}: {} mtu {} qdisc {} state {} ",
            l.ifindex,
            l.name,
            flags(l),
            l.mtu,
            l.qdisc,
            state(l)
        );
        if !old {
            out.push_str(if addresses { "group default " } else { "mode DEFAULT group default " });
        }
        if l.qlen > 0 {
            let _ = write!(out, "qlen {}", l.qlen);
        }
        let (kind, all) = if l.loopback { ("loopback", [0; 6]) } else { ("ether", [0xff; 6]) };
        let _ = write!(out, "{nl}    link/{kind} {} brd {}", mac_text(l.mac), mac_text(all));
        if form.stats && !addresses {
            stats(&mut out, l, old, nl);
        }
        out.push('\n');
        if addresses {
            for a in &l.addresses {
                address(&mut out, a, l, old, nl);
            }
        }
    }
    out
}

fn address(out: &mut String, a: &AddressView, l: &LinkView, old: bool, nl: &str) {
    let _ = write!(out, "    inet {}/{} ", a.prefix.0, a.prefix.1);
    if let Some(brd) = a.broadcast {
        let _ = write!(out, "brd {brd} ");
    }
    let scope = if a.host_scope { "host" } else { "global" };
    let secondary = if a.secondary { "secondary " } else { "" };
    let _ = write!(out, "scope {scope} {secondary}{}", l.name);
    if !old {
        let _ = write!(out, "{nl}       valid_lft forever preferred_lft forever");
    }
    out.push('\n');
}

fn stats(out: &mut String, l: &LinkView, old: bool, nl: &str) {
    let (rx, tx) = ([l.rx.0, l.rx.1, 0, l.rx.2, 0, 0], [l.tx.0, l.tx.1, 0, l.tx.2, 0, 0]);
    if old {
        for (name, last, v) in [("RX", "overrun mcast   ", rx), ("TX", "carrier collsns ", tx)] {
            let _ = write!(out, "{nl}    {name}: bytes  packets  errors  dropped {last}{nl}");
            let _ =
                write!(out, "    {:<10} {:<8} {:<7} {:<7} {:<7} {:<7}", v[0], v[1], v[2], v[3], v[4], v[5]);
        }
        return;
    }
    // Columns are as wide as their widest number, and no narrower than their headings.
    let least = [13, 7, 6, 7, 7, 7];
    let width: Vec<usize> =
        (0..6).map(|i| least[i].max(rx[i].to_string().len()).max(tx[i].to_string().len())).collect();
    for (name, heads, v) in [
        ("RX", ["bytes", "packets", "errors", "dropped", "missed", "mcast"], rx),
        ("TX", ["bytes", "packets", "errors", "dropped", "carrier", "collsns"], tx),
    ] {
        let _ = write!(out, "{nl}    {name}: {:>1$}", heads[0], width[0] - 4);
        for i in 1..6 {
            let _ = write!(out, " {:>1$}", heads[i], width[i]);
        }
        let _ = write!(out, " {:>1$}{nl}    ", "", 10);
        for i in 0..6 {
            let _ = write!(out, "{:>1$} ", v[i], width[i]);
        }
    }
}

/// `ip route show`.
pub fn routes(views: &[RouteView], kernel: Kernel) -> String {
    let mut out = String::new();
    for r in views {
        route(&mut out, r, kernel);
        out.push('\n');
    }
    out
}

fn route(out: &mut String, r: &RouteView, kernel: Kernel) {
    // The old form separates with two blanks where a word brings its own in front.
    let gap = if kernel == Kernel::V2_6_35 { " " } else { "" };
    if !r.kind.is_empty() {
        let _ = write!(out, "{} ", r.kind);
    }
    let _ = match r.dst {
        (_, 0) => write!(out, "default "),
        (addr, 32) => write!(out, "{addr} "),
        (addr, len) => write!(out, "{addr}/{len} "),
    };
    if let Some(via) = r.via {
        let _ = write!(out, "via {via} ");
    }
    if let Some(dev) = &r.dev {
        let _ = write!(out, "dev {dev} ");
    }
    for (word, value) in [("table", r.table), ("proto", r.proto), ("scope", r.scope)] {
        if let Some(value) = value {
            let _ = write!(out, "{gap}{word} {value} ");
        }
    }
    if let Some(src) = r.src {
        let _ = write!(out, "{gap}src {src} ");
    }
    if let Some(metric) = r.metric {
        let _ = write!(out, "{gap}metric {metric} ");
    }
}

/// `ip route get`: the route of one address. `kind` is `local` or `broadcast` where it is not plain.
pub fn route_got(view: &RouteView, kernel: Kernel) -> String {
    let mut out = String::new();
    route(&mut out, view, kernel);
    match kernel {
        Kernel::V2_6_35 => {
            let cache = if view.kind.is_empty() { "" } else { "<local> " };
            let _ = write!(out, "\n    cache {cache}\n");
        }
        Kernel::V6_12 => {
            let cache = if view.kind.is_empty() { "" } else { "<local> " };
            let _ = write!(out, "uid 0 \n    cache {cache}\n");
        }
    }
    out
}

/// `ip neigh show`.
pub fn neighbours(views: &[NeighView], kernel: Kernel) -> String {
    let mut out = String::new();
    for n in views {
        let _ = write!(out, "{} ", n.addr);
        if let Some(dev) = &n.dev {
            let _ = write!(out, "dev {dev} ");
        }
        if let Some(mac) = n.mac {
            let _ = write!(out, "lladdr {}", mac_text(mac));
        }
        let (before, after) = match (kernel, n.mac.is_some()) {
            (Kernel::V2_6_35, _) => (" ", ""),
            (Kernel::V6_12, true) => (" ", " "),
            (Kernel::V6_12, false) => ("", " "),
        };
        let _ = writeln!(out, "{before}{}{after}", n.state);
    }
    out
}
