//! `bridge`: its words.
//!
//! Follows: iproute2 6.1.0 `bridge/bridge.c`, `bridge/vlan.c` `vlan_modify`, `vlan_show`; `bridge/fdb.c` `fdb_modify`, `fdb_show`; `bridge/link.c`
//! `brlink_modify`, `brlink_show`.
//! Differs: `mdb`, `monitor`, `mst` and `vni`, settings of single VLANs (`vlan set`, `vlan global`) and tunnels of VLANs (`tunnel_info`) are refused by name.

use super::words::{Family, Parsed, Words, matches};
use super::{Failure, Form};
use crate::token::Word;
use penstock_model::Kernel;
use std::net::IpAddr;

/// One command of `bridge`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bridge {
    /// `fdb show`.
    FdbShow(FdbFilter, Form),
    /// `fdb add|append|replace|del`.
    Fdb(FdbChange),
    /// `vlan show`: of one device, or of all; of one VLAN, or of all.
    VlanShow(Option<String>, Option<u16>, Form),
    /// `vlan add|del`.
    Vlan(VlanChange),
    /// `link show`: of one device, or of all.
    LinkShow(Option<String>, Form),
    /// `link set dev NAME`: names and values in turn, as `ip link set … type bridge_slave` has them.
    LinkSet(String, Vec<String>),
    /// For standard output.
    Say(String),
}

/// A change of who is in which VLAN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VlanChange {
    /// `add`, else `del`.
    pub add: bool,
    /// The device.
    pub dev: String,
    /// `vid`: the first and the last; the same where there is one. Below 4096; which are valid the kernel says.
    pub vids: (u16, u16),
    /// `pvid`.
    pub pvid: bool,
    /// `untagged`.
    pub untagged: bool,
    /// `self`.
    pub own: bool,
    /// `master`.
    pub master: bool,
}

/// Which entries of forwarding tables are shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FdbFilter {
    /// `dev`, `brport`.
    pub dev: Option<String>,
    /// `br`.
    pub br: Option<String>,
    /// `vlan`.
    pub vlan: Option<u16>,
    /// `dynamic`: those that age.
    pub dynamic: bool,
    /// `state permanent|static|stale|reachable`.
    pub state: Option<&'static str>,
}

/// A change of a forwarding table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FdbChange {
    /// `add`, `append`, `replace`, `del`.
    pub verb: &'static str,
    /// The address.
    pub mac: [u8; 6],
    /// The device.
    pub dev: String,
    /// `dst`.
    pub dst: Option<IpAddr>,
    /// `permanent` and `static` entries stay; a `dynamic` one ages.
    pub stays: bool,
    /// `permanent` or nothing: the address is the machine's own. Neither `static` nor `dynamic`.
    pub local: bool,
    /// `master`: in the table of the device's bridge.
    pub master: bool,
    /// `vlan`.
    pub vlan: Option<u16>,
    /// Other words that are not known here.
    pub asked: Vec<String>,
}

const USAGE: &str = "Usage: bridge [ OPTIONS ] OBJECT { COMMAND | help }\n       bridge [ -force ] -batch filename\nwhere  OBJECT := { link | fdb | mdb | vlan | monitor }\n";

/// What is not here of `bridge`, with what to do instead.
const OBJECTS: [(&str, &str); 4] = [
    ("mdb", "no host here joins groups: leave it out"),
    ("monitor", "bridge fdb, bridge vlan and bridge link show what there is"),
    ("mst", "there is no spanning tree here: leave it out"),
    ("vni", "a vxlan device for each network does the same"),
];

/// Reads `bridge …`.
///
/// # Errors
/// What bridge says of the line.
pub fn bridge(words: &[Word], kernel: Kernel) -> Result<Bridge, Failure> {
    let mut w = Words { words, at: 1, kernel };
    let mut form = Form::default();
    while let Some(option) = w.peek().filter(|t| t.starts_with('-') && t.len() > 1).map(str::to_owned) {
        w.at += 1;
        let o = option.strip_prefix("--").map_or(option.clone(), |rest| format!("-{rest}"));
        let is = |full: &str| matches(&o, full);
        if is("-help") {
            return w.usage(USAGE);
        } else if is("-Version") {
            let version = if kernel == Kernel::V7_2 { "7.3.0" } else { "6.1.0" };
            return Ok(Bridge::Say(format!("bridge utility, {version}\n")));
        } else if is("-stats") || is("-statistics") {
            form.stats += 1;
        } else if is("-details") {
            form.details = true;
        } else if is("-oneline") {
            form.oneline = true;
        } else if is("-netns") {
            w.next();
        } else if is("-json") {
            form.json = true;
        } else if is("-pretty") {
            form.pretty = true;
        } else if o.starts_with("-c") && (is("-color") || is("-compressvlans") || matches_color(&o)) {
            if matches(&o, "-compressvlans") && !matches(&o, "-color") {
                return w.fail(
                    255,
                    format!("bridge {option}: not simulated"),
                    "without it each VLAN has its line",
                );
            }
        } else if is("-timestamp") || is("-force") {
        } else if is("-batch") {
            return w.fail(255, format!("bridge {option}: not simulated"), "write each line as a command");
        } else {
            let message = format!("Option \"{option}\" is unknown, try \"bridge help\".");
            return w.fail(255, message, "");
        }
    }
    let Some(object) = w.next() else { return w.usage(USAGE) };
    match object.as_str() {
        o if matches(o, "link") => link(&mut w, form),
        o if matches(o, "fdb") => fdb(&mut w, form),
        o if matches(o, "vlan") => vlan(&mut w, form),
        o if matches(o, "help") => w.usage(USAGE),
        o => match OBJECTS.iter().find(|known| matches(o, known.0)) {
            Some((name, instead)) => w.fail(127, format!("bridge {name}: not simulated"), instead),
            None => w.fail(255, format!("Object \"{o}\" is unknown, try \"bridge help\"."), ""),
        },
    }
}

/// `matches_color`: a beginning of `-color`, with `=WHEN` behind it.
fn matches_color(option: &str) -> bool {
    let known = ["", "always", "auto", "never"];
    option.split_once('=').is_some_and(|(name, when)| matches(name, "-color") && known.contains(&when))
}

/// `atoi`, as far as 16 bits go.
fn atoi(text: &str) -> i64 {
    let text = text.trim_start();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number: i64 = digits[..end].parse().unwrap_or(if end == 0 { 0 } else { i64::from(i32::MAX) });
    if text.starts_with('-') { -number } else { number }
}

fn vlan(w: &mut Words<'_>, form: Form) -> Parsed<Bridge> {
    let verb = w.next().unwrap_or_else(|| "show".to_owned());
    let add = match verb.as_str() {
        v if matches(v, "add") => true,
        v if matches(v, "delete") => false,
        v if matches(v, "show") || v == "lst" || v == "list" => {
            let (mut dev, mut vid) = (None, None);
            while let Some(word) = w.next() {
                match word.as_str() {
                    "dev" => {
                        let text = w.value()?;
                        if dev.is_some() {
                            return w.twice("dev", &text);
                        }
                        dev = Some(text);
                    }
                    "vid" => {
                        let text = w.value()?;
                        if vid.is_some() {
                            return w.twice("vid", &text);
                        }
                        vid = Some(atoi(&text) as u16).filter(|v| *v != 0);
                    }
                    _ => {}
                }
            }
            if form.stats > 0 || form.details {
                let what = if form.details { "-d" } else { "-s" };
                let help = "bridge vlan show without it; ip -s link shows what devices have counted";
                return w.fail(127, format!("bridge {what} vlan: not simulated"), help);
            }
            return Ok(Bridge::VlanShow(dev, vid, form));
        }
        v if matches(v, "set") || matches(v, "tunnelshow") || matches(v, "global") => {
            let help = "VLANs here are added, deleted and shown";
            return w.fail(127, format!("bridge vlan {v}: not simulated"), help);
        }
        v if matches(v, "help") => {
            return w.usage(
                "Usage: bridge vlan { add | del } vid VLAN_ID dev DEV [ tunnel_info id TUNNEL_ID ]\n",
            );
        }
        v => {
            let message = format!("Command \"{v}\" is unknown, try \"bridge vlan help\".");
            return w.fail(255, message, "add, del or show");
        }
    };
    let (mut dev, mut vid, mut end) = (None, -1, None);
    let (mut pvid, mut untagged, mut own, mut master) = (false, false, false, false);
    while let Some(word) = w.next() {
        match word.as_str() {
            "dev" => dev = Some(w.value()?),
            "vid" => {
                let text = w.value()?;
                match text.split_once('-') {
                    Some((first, last)) => (vid, end) = (atoi(first), Some(atoi(last))),
                    None => vid = atoi(&text),
                }
            }
            "self" => own = true,
            "master" => master = true,
            "pvid" => pvid = true,
            "untagged" => untagged = true,
            "tunnel_info" => {
                let help = "a vxlan device for each network does the same";
                return w.fail(127, "bridge vlan tunnel_info: not simulated", help);
            }
            // What else stands there bridge does not look at.
            _ => {}
        }
    }
    // Its numbers are those of a short.
    let (vid, end) = (vid as i16, end.map(|e: i64| e as i16));
    let Some(dev) = dev.filter(|_| vid != -1) else {
        return w.fail(255, "Device and VLAN ID are required arguments.", "bridge vlan add dev DEV vid N");
    };
    if vid as u16 >= 4096 {
        return w.fail(255, format!("Invalid VLAN ID \"{}\"", vid as u16), "1 to 4094");
    }
    if let Some(end) = end {
        if end as u16 >= 4096 || vid >= end {
            return w.fail(
                255,
                format!("Invalid VLAN range \"{}-{}\"", vid as u16, end as u16),
                "e.g. 10-12",
            );
        }
        if pvid {
            return w.fail(255, "pvid cannot be configured for a vlan range", "pvid for one VLAN");
        }
    }
    let vids = (vid as u16, end.unwrap_or(vid) as u16);
    Ok(Bridge::Vlan(VlanChange { add, dev, vids, pvid, untagged, own, master }))
}

/// Words of `bridge link set` that are those of `ip link set … type bridge_slave` with other names.
const PORT: [(&str, &str); 18] = [
    ("guard", "guard"),
    ("hairpin", "hairpin"),
    ("fastleave", "fastleave"),
    ("root_block", "root_block"),
    ("learning", "learning"),
    ("flood", "flood"),
    ("mcast_router", "mcast_router"),
    ("mcast_flood", "mcast_flood"),
    ("bcast_flood", "bcast_flood"),
    ("mcast_to_unicast", "mcast_to_unicast"),
    ("cost", "cost"),
    ("priority", "priority"),
    ("state", "state"),
    ("neigh_suppress", "neigh_suppress"),
    ("vlan_tunnel", "vlan_tunnel"),
    ("isolated", "isolated"),
    ("locked", "locked"),
    ("backup_port", "backup_port"),
];
/// Of 802.1D, by their numbers.
const STATES: [&str; 5] = ["disabled", "listening", "learning", "forwarding", "blocking"];

fn link(w: &mut Words<'_>, form: Form) -> Parsed<Bridge> {
    let verb = w.next().unwrap_or_else(|| "show".to_owned());
    match verb.as_str() {
        v if matches(v, "set") || matches(v, "change") => {}
        v if matches(v, "show") || v == "lst" || v == "list" => {
            let mut dev = None;
            while let Some(word) = w.next() {
                if word == "dev" {
                    dev = Some(w.value()?);
                }
            }
            return Ok(Bridge::LinkShow(dev, form));
        }
        v if matches(v, "help") => {
            return w
                .usage("Usage: bridge link set dev DEV [ cost COST ] [ priority PRIO ] [ state STATE ]\n");
        }
        v => {
            let message = format!("Command \"{v}\" is unknown, try \"bridge link help\".");
            return w.fail(255, message, "set or show");
        }
    }
    let (mut dev, mut set) = (None, Vec::new());
    while let Some(word) = w.next() {
        match word.as_str() {
            "dev" => dev = Some(w.value()?),
            "master" => {}
            "nobackup_port" => set.push(word),
            "self" | "hwmode" | "learning_sync" => {
                let help = "what concerns a card's own switch is not here";
                return w.fail(127, format!("bridge link set {word}: not simulated"), help);
            }
            _ => {
                match PORT.iter().find(|known| known.0 == word) {
                    Some((_, name)) => {
                        let mut value = w.value()?;
                        if *name == "state"
                            && let Some(n) = STATES.iter().position(|s| s.eq_ignore_ascii_case(&value))
                        {
                            value = n.to_string();
                        }
                        set.extend([(*name).to_owned(), value]);
                    }
                    None => return w.usage(
                        "Usage: bridge link set dev DEV [ cost COST ] [ priority PRIO ] [ state STATE ]\n",
                    ),
                }
            }
        }
    }
    match dev {
        Some(dev) => Ok(Bridge::LinkSet(dev, set)),
        None => w.fail(255, "Device is a required argument.", "bridge link set dev DEV learning off"),
    }
}

fn fdb(w: &mut Words<'_>, form: Form) -> Parsed<Bridge> {
    let verb = w.next().unwrap_or_else(|| "show".to_owned());
    let verb = match verb.as_str() {
        v if matches(v, "show") || v == "list" || v == "lst" => {
            let mut filter = FdbFilter::default();
            while let Some(word) = w.next() {
                match word.as_str() {
                    "dev" | "brport" => filter.dev = Some(w.value()?),
                    "br" => filter.br = Some(w.value()?),
                    "vlan" => filter.vlan = Some(atoi(&w.value()?) as u16),
                    "dynamic" => filter.dynamic = true,
                    "state" => {
                        let text = w.value()?;
                        filter.state = match text.as_str() {
                            s if matches(s, "permanent") => Some("permanent"),
                            s if matches(s, "static") || matches(s, "temp") => Some("static"),
                            s if matches(s, "stale") => Some("stale"),
                            s if matches(s, "reachable") => Some(""),
                            "all" => None,
                            _ => return w.invalid(&text, "invalid state"),
                        };
                    }
                    _ => filter.dev = Some(word),
                }
            }
            return Ok(Bridge::FdbShow(filter, form));
        }
        v if matches(v, "add") => "add",
        v if matches(v, "append") => "append",
        v if matches(v, "replace") => "replace",
        v if matches(v, "delete") => "del",
        v if matches(v, "flush") || matches(v, "get") => {
            return w.fail(
                127,
                format!("bridge fdb {v}: not simulated"),
                "bridge fdb show, bridge fdb del MAC dev DEV master",
            );
        }
        v => {
            let message = format!("Command \"{v}\" is unknown, try \"bridge fdb help\".");
            return w.fail(255, message, "add, append, replace, del or show");
        }
    };
    let (mut mac, mut dev, mut dst, mut asked) = (None, None, None, Vec::new());
    let (mut stays, mut permanent, mut reachable, mut master, mut vlan) = (true, false, false, false, None);
    while let Some(word) = w.next() {
        match word.as_str() {
            "dev" => dev = Some(w.value()?),
            "dst" => {
                let text = w.value()?;
                dst = Some(w.addr(&text, Family::Any)?);
            }
            "self" => {}
            "local" | "permanent" => permanent = true,
            "static" | "temp" => reachable = true,
            "dynamic" => (stays, reachable) = (false, true),
            "master" => master = true,
            "vlan" => {
                let value = w.value()?;
                asked.push(format!("{word} {value}"));
                vlan = Some(atoi(&value) as u16);
            }
            "router" | "use" | "extern_learn" | "sticky" => asked.push(word),
            "port" | "vni" | "src_vni" | "via" | "nhid" => {
                let value = w.value()?;
                asked.push(format!("{word} {value}"));
            }
            _ => {
                let bytes: Vec<Option<u8>> =
                    word.split(':').map(|b| u8::from_str_radix(b, 16).ok()).collect();
                let read = bytes.into_iter().collect::<Option<Vec<u8>>>().and_then(|b| b.try_into().ok());
                match read {
                    Some(read) => mac = Some(read),
                    None => {
                        return w.fail(255, format!("Invalid address \"{word}\""), "e.g. 02:00:00:00:00:01");
                    }
                }
            }
        }
    }
    let local = permanent || !reachable;
    match (mac, dev) {
        (Some(mac), Some(dev)) => {
            Ok(Bridge::Fdb(FdbChange { verb, mac, dev, dst, stays, local, master, vlan, asked }))
        }
        _ => {
            w.fail(255, "Device and address are required arguments.", "bridge fdb append MAC dev DEV dst IP")
        }
    }
}
