//! `ip link`: its words.
//!
//! Follows: iproute2 6.1.0 `ip/iplink.c` `iplink_parse`, `iplink_modify`, `iplink_prop_mod`, `ip/link_veth.c`, `iplink_vlan.c`,
//! `iplink_macvlan.c`.
//! Differs: the options of kinds other than veth, vlan, macvlan, vxlan and tunnels are kept as words, unchecked; virtual functions and XDP are
//! refused.

use super::words::{Parsed, Words, is_altifname, is_ifname, matches, number};
use super::{Command, Failure, LinkFilter, TunnelSet, TunnelWords, VxlanSet};

/// What is done with a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkVerb {
    /// `add`.
    Add,
    /// `set`, `change`.
    #[default]
    Set,
    /// `replace`.
    Replace,
    /// `delete`.
    Del,
}

/// What `type` says of a link beyond its kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum LinkData {
    /// Nothing.
    #[default]
    None,
    /// `vlan`.
    Vlan {
        /// `id`; `None` where it was not given, which the kernel refuses.
        id: Option<u16>,
        /// `protocol`: 0x8100 or 0x88a8.
        protocol: u16,
        /// Flags: 1 REORDER_HDR, 2 GVRP, 4 LOOSE_BINDING, 8 MVRP, 16 BRIDGE_BINDING.
        flags: u32,
        /// Which of the flags the words say.
        mask: u32,
        /// `ingress-qos-map`: a tag's priority and the packet's, in the order given.
        ingress: Vec<(u32, u32)>,
        /// `egress-qos-map`: a packet's priority and its tag's, in the order given.
        egress: Vec<(u32, u32)>,
    },
    /// `macvlan`, `macvtap`: the mode, and the flags `nopromisc` and `nodst` behind it.
    Macvlan(String),
    /// `vrf`: its table; `None` where it was not given, which the kernel refuses.
    Vrf(Option<u32>),
    /// `veth … peer`: the other end as its words describe it.
    Peer(Box<LinkRequest>),
    /// `ipip`, `sit`, `gre`, `gretap`: what the words say.
    Tunnel(Box<TunnelWords>),
    /// The same: what a device is set to.
    TunnelSet(Box<TunnelSet>),
    /// `vxlan`.
    Vxlan(Box<VxlanSet>),
    /// A device of `ip tuntap`.
    Tun(Box<super::TunSet>),
    /// Words of a kind whose options are kept as they are.
    Words(Vec<String>),
}

/// RTM_NEWLINK or RTM_DELLINK as the words describe it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkRequest {
    /// What to do.
    pub verb: LinkVerb,
    /// The device that is there.
    pub dev: Option<String>,
    /// The name it gets.
    pub name: Option<String>,
    /// `index`.
    pub index: Option<u32>,
    /// `link`.
    pub link: Option<String>,
    /// `address`.
    pub address: Option<Vec<u8>>,
    /// `txqueuelen`.
    pub txqueuelen: Option<i64>,
    /// `mtu`.
    pub mtu: Option<i64>,
    /// `netns`: a name or a process.
    pub netns: Option<String>,
    /// `IFF_*` to be changed, and their values.
    pub change: u32,
    /// See `change`.
    pub flags: u32,
    /// `carrier`.
    pub carrier: Option<bool>,
    /// `master`; empty for `nomaster`.
    pub master: Option<String>,
    /// The master was named by `vrf`, and must be one.
    pub master_is_vrf: bool,
    /// `alias`.
    pub alias: Option<String>,
    /// `group`.
    pub group: Option<u32>,
    /// `numtxqueues`, `numrxqueues`.
    pub queues: (Option<i64>, Option<i64>),
    /// `type`.
    pub kind: Option<String>,
    /// What follows `type`.
    pub data: LinkData,
    /// `gso_max_size`, bytes.
    pub gso_max_size: Option<u32>,
    /// `gso_max_segs`.
    pub gso_max_segs: Option<u32>,
    /// `gro_max_size`, bytes.
    pub gro_max_size: Option<u32>,
    /// `addrgenmode`: 0 eui64, 1 none, 2 stable_secret, 3 random.
    pub addr_gen_mode: Option<u8>,
}

/// `IFF_UP`.
const UP: u32 = 1;

const USAGE_VETH: &str =
    "Usage: ip link <options> type veth [peer <options>]\nTo get <options> type 'ip link add help'\n";

/// Groups with names (`/etc/iproute2/group`): `default` alone.
pub(super) fn group(text: &str) -> Option<u32> {
    match text {
        "default" => Some(0),
        _ => number(text),
    }
}

impl Words<'_> {
    /// `iplink_parse`, up to the end or behind `type KIND`.
    fn link_words(&mut self, verb: LinkVerb) -> Parsed<LinkRequest> {
        let create = matches!(verb, LinkVerb::Add | LinkVerb::Replace);
        let mut r = LinkRequest { verb, ..LinkRequest::default() };
        while let Some(word) = self.next() {
            let is = |full: &str| matches(&word, full);
            match word.as_str() {
                "up" => (r.change, r.flags) = (r.change | UP, r.flags | UP),
                "down" => (r.change, r.flags) = (r.change | UP, r.flags & !UP),
                "name" => {
                    let text = self.value()?;
                    if r.name.is_some() {
                        return self.twice("name", &text);
                    }
                    if !is_ifname(&text) {
                        return self.invalid(&text, "\"name\" not a valid ifname");
                    }
                    r.dev.get_or_insert_with(|| text.clone());
                    r.name = Some(text);
                }
                "index" => {
                    let text = self.value()?;
                    if r.index.is_some() {
                        return self.twice("index", &text);
                    }
                    match text.parse::<u32>() {
                        Ok(index) if index > 0 && index <= i32::MAX as u32 => r.index = Some(index),
                        _ => return self.invalid(&text, "Invalid \"index\" value"),
                    }
                }
                _ if is("link") => r.link = Some(self.value()?),
                _ if is("address") => r.address = Some(self.lladdr()?),
                _ if is("broadcast") || word == "brd" => {
                    self.lladdr()?;
                }
                _ if is("txqueuelen") || word == "qlen" || is("txqlen") => {
                    if r.txqueuelen.is_some() {
                        let text = self.value()?;
                        return self.twice("txqueuelen", &text);
                    }
                    r.txqueuelen = Some(self.integer("Invalid \"txqueuelen\" value\n")?);
                }
                "mtu" => {
                    if r.mtu.is_some() {
                        let text = self.value()?;
                        return self.twice("mtu", &text);
                    }
                    r.mtu = Some(self.integer("Invalid \"mtu\" value\n")?);
                }
                "xdp" | "xdpgeneric" | "xdpdrv" | "xdpoffload" => {
                    return self.fail(255, "xdp programs cannot be loaded here", "");
                }
                "netns" => {
                    let text = self.value()?;
                    if r.netns.is_some() {
                        return self.twice("netns", &text);
                    }
                    r.netns = Some(text);
                }
                "multicast" => self.flag(&mut r, 0x1000, "multicast", false)?,
                "allmulticast" => self.flag(&mut r, 0x200, "allmulticast", false)?,
                "promisc" => self.flag(&mut r, 0x100, "promisc", false)?,
                "trailers" => self.flag(&mut r, 0x20, "trailers", true)?,
                "arp" => self.flag(&mut r, 0x80, "arp", true)?,
                "carrier" => r.carrier = Some(self.on_off("carrier")?),
                "vf" => {
                    let text = self.value()?;
                    return match number(&text) {
                        Some(_) => {
                            self.fail(2, "RTNETLINK answers: Operation not supported", "no virtual functions")
                        }
                        None => self.invalid(&text, "Invalid \"vf\" value\n"),
                    };
                }
                _ if is("master") => r.master = Some(self.value()?),
                "vrf" => (r.master, r.master_is_vrf) = (Some(self.value()?), true),
                _ if is("nomaster") => r.master = Some(String::new()),
                _ if is("dynamic") => self.flag(&mut r, 0x8000, "dynamic", false)?,
                _ if is("type") => {
                    r.kind = Some(self.value()?);
                    break;
                }
                _ if is("alias") => {
                    let text = self.value()?;
                    if text.len() >= 256 {
                        return self.invalid(&text, "alias too long\n");
                    }
                    r.alias = Some(text);
                }
                "group" => {
                    let text = self.value()?;
                    if r.group.is_some() {
                        return self.twice("group", &text);
                    }
                    match group(&text) {
                        Some(g) => r.group = Some(g),
                        None => return self.invalid(&text, "Invalid \"group\" value\n"),
                    }
                }
                "mode" => {
                    let text = self.value()?;
                    if !matches!(text.as_str(), "default" | "dormant") {
                        return self.invalid(&text, "Invalid link mode\n");
                    }
                }
                "state" => {
                    let text = self.value()?;
                    let states =
                        ["UNKNOWN", "NOTPRESENT", "DOWN", "LOWERLAYERDOWN", "TESTING", "DORMANT", "UP"];
                    if !states.iter().any(|s| s.eq_ignore_ascii_case(&text)) {
                        return self.invalid(&text, "Invalid operstate\n");
                    }
                }
                _ if is("numtxqueues") => {
                    r.queues.0 = Some(self.integer("Invalid \"numtxqueues\" value\n")?);
                }
                _ if is("numrxqueues") => {
                    r.queues.1 = Some(self.integer("Invalid \"numrxqueues\" value\n")?);
                }
                _ if is("addrgenmode") => {
                    let text = self.value()?;
                    let modes = ["eui64", "none", "stable_secret", "random"];
                    match modes.iter().position(|m| *m == text) {
                        Some(mode) => r.addr_gen_mode = Some(mode as u8),
                        None => return self.invalid(&text, "Invalid address generation mode\n"),
                    }
                }
                _ if is("link-netns") || is("link-netnsid") || word == "parentdev" => {
                    self.value()?;
                }
                "protodown" => {
                    self.on_off("protodown")?;
                }
                "protodown_reason" => {
                    self.value()?;
                    self.on_off("protodown_reason")?;
                }
                "gso_max_size" | "gso_max_segs" | "gro_max_size" => {
                    let value = self.number(&format!("Invalid \"{word}\" value\n"))?;
                    let place = match &*word {
                        "gso_max_size" => &mut r.gso_max_size,
                        "gso_max_segs" => &mut r.gso_max_segs,
                        _ => &mut r.gro_max_size,
                    };
                    *place = Some(value);
                }
                _ => {
                    if is("help") {
                        return self.usage(super::usage::LINK);
                    }
                    let dev = if word == "dev" { self.value()? } else { word };
                    if r.dev != r.name {
                        return self.duplicate("dev", &dev);
                    }
                    if !is_altifname(&dev) {
                        return self.invalid(&dev, "\"dev\" not a valid ifname");
                    }
                    r.dev = Some(dev);
                }
            }
        }
        if r.name.is_none() {
            r.name.clone_from(&r.dev);
        } else if r.dev.is_none() {
            r.dev.clone_from(&r.name);
        }
        if r.index.is_some() && !create && r.netns.is_none() {
            let message =
                "index can be used only when creating devices or when moving device to another netns.";
            return self.fail(255, message, "");
        }
        if r.group.is_some() && r.dev.is_none() {
            if let Some(word) = self.peek().map(str::to_owned) {
                return self.garbage(&word);
            }
            if create {
                return self.fail(255, "group cannot be used when creating devices.", "");
            }
            r.kind = None;
            return Ok(r);
        }
        if !create {
            if r.dev.is_none() {
                return self.need_dev(255);
            }
            // Not renaming to the same name.
            if r.name == r.dev {
                r.name = None;
            }
        } else if r.name != r.dev {
            return self.fail(255, "both \"name\" and \"dev\" cannot be used when creating devices.", "");
        }
        Ok(r)
    }
    fn garbage<T>(&self, word: &str) -> Parsed<T> {
        let message = format!("Garbage instead of arguments \"{word} ...\". Try \"ip link help\".");
        self.fail(255, message, "")
    }
    fn flag(&mut self, r: &mut LinkRequest, flag: u32, name: &str, inverse: bool) -> Parsed<()> {
        r.change |= flag;
        if self.on_off(name)? != inverse {
            r.flags |= flag;
        } else {
            r.flags &= !flag;
        }
        Ok(())
    }

    /// `iplink_modify`.
    pub(super) fn link_modify(&mut self, verb: LinkVerb) -> Parsed<Command> {
        let mut r = self.link_words(verb)?;
        let Some(kind) = r.kind.clone() else {
            if matches!(verb, LinkVerb::Add | LinkVerb::Replace) {
                return self.fail(
                    1,
                    "Not enough information: \"type\" argument is required",
                    "e.g. type veth",
                );
            }
            return Ok(Command::Link(Box::new(r)));
        };
        if self.peek().is_some() {
            r.data = match kind.as_str() {
                "veth" => self.veth_words(verb)?,
                "vlan" => self.vlan_words()?,
                "macvlan" | "macvtap" => self.macvlan_words(&kind)?,
                "ipip" | "sit" | "gre" | "gretap" => self.tunnel_words(&kind)?,
                "vrf" => self.vrf_words()?,
                "vxlan" => self.vxlan_words()?,
                // Kinds of which iproute2 knows no words.
                "wireguard" => {
                    let word = self.next().unwrap_or_default();
                    let message =
                        format!("Garbage instead of arguments \"{word} ...\". Try \"ip link help\".");
                    return self.fail(1, message, "leave it out");
                }
                _ => LinkData::Words(std::iter::from_fn(|| self.next()).collect()),
            };
        }
        Ok(Command::Link(Box::new(r)))
    }

    /// `veth_parse_opt`.
    fn veth_words(&mut self, verb: LinkVerb) -> Parsed<LinkData> {
        if self.value()? != "peer" {
            let word = self.at - 1;
            return Err(Failure { stderr: USAGE_VETH.to_owned(), exit: 1, word, help: String::new() });
        }
        let peer = self.link_words(verb)?;
        if let Some(kind) = peer.kind {
            return self.twice("type", &kind);
        }
        Ok(LinkData::Peer(Box::new(peer)))
    }

    /// `vlan_parse_opt`.
    fn vlan_words(&mut self) -> Parsed<LinkData> {
        let (mut id, mut protocol, mut flags, mut mask) = (None, 0x8100, 1u32, 0u32);
        let (mut ingress, mut egress) = (Vec::new(), Vec::new());
        while let Some(word) = self.next() {
            let is = |full: &str| matches(&word, full);
            let bit =
                [("reorder_hdr", 1), ("gvrp", 2), ("mvrp", 8), ("loose_binding", 4), ("bridge_binding", 16)]
                    .into_iter()
                    .find(|(name, _)| is(name));
            if is("protocol") {
                let text = self.value()?;
                protocol = match text.to_ascii_lowercase().as_str() {
                    "802.1q" => 0x8100,
                    "802.1ad" => 0x88a8,
                    _ => match number(&text).and_then(|n| u16::try_from(n).ok()) {
                        Some(n) => n,
                        None => return self.invalid(&text, "protocol is invalid"),
                    },
                };
            } else if is("id") {
                let text = self.value()?;
                match number(&text).and_then(|n| u16::try_from(n).ok()) {
                    Some(n) => id = Some(n),
                    None => return self.invalid(&text, "id is invalid"),
                }
            } else if let Some((name, bit)) = bit {
                let on = self.on_off(name)?;
                flags = if on { flags | bit } else { flags & !bit };
                mask |= bit;
            } else if is("ingress-qos-map") || is("egress-qos-map") {
                let (map, name) = match is("ingress-qos-map") {
                    true => (&mut ingress, "ingress-qos-map"),
                    false => (&mut egress, "egress-qos-map"),
                };
                // vlan_parse_qos_map: words with a colon, as many as there are.
                while let Some(word) = self.peek().filter(|w| w.contains(':')).map(|w| w.to_string()) {
                    self.next();
                    let pair = word.split_once(':').and_then(|(from, to)| Some((number(from)?, number(to)?)));
                    match pair {
                        Some(pair) => map.push(pair),
                        None => return self.invalid(&word, &format!("invalid {name}")),
                    }
                }
            } else {
                let word = self.at - 1;
                let stderr = if is("help") {
                    "Usage: ... vlan id VLANID\n".to_owned()
                } else {
                    format!("vlan: unknown command \"{}\"?\n", self.words[word].text)
                };
                return Err(Failure { stderr, exit: 1, word, help: String::new() });
            }
        }
        Ok(LinkData::Vlan { id, protocol, flags, mask, ingress, egress })
    }

    /// `macvlan_parse_opt`.
    fn macvlan_words(&mut self, kind: &str) -> Parsed<LinkData> {
        let (mut mode, mut flag) = ("vepa".to_owned(), String::new());
        while let Some(word) = self.next() {
            if matches(&word, "mode") {
                mode = self.value()?;
                flag = String::new();
                if !["private", "vepa", "bridge", "passthru", "source"].contains(&mode.as_str()) {
                    let message = format!(
                        "Error: argument of \"mode\" must be \"private\", \"vepa\", \"bridge\", \"passthru\" or \"source\", not \"{mode}\""
                    );
                    return self.fail(1, message, "");
                }
            } else if matches(&word, "flag") && self.peek().is_some() {
            } else if matches(&word, "nopromisc") || matches(&word, "nodst") {
                let flags = ["nopromisc", "nodst"];
                flag += flags.iter().find(|f| f.starts_with(&word)).map_or("", |f| f);
                flag.insert(0, ' ');
            } else if ["macaddr", "bcqueuelen", "bclim"].iter().any(|known| matches(&word, known)) {
                return self.fail(255, format!("{kind}: {word}: not simulated"), "leave it out");
            } else {
                return self.fail(1, format!("{kind}: unknown option \"{word}\"?"), "mode bridge");
            }
        }
        Ok(LinkData::Macvlan(mode + &flag))
    }

    /// `ip link property add|del`.
    pub(super) fn link_property(&mut self) -> Parsed<Command> {
        let Some(verb) = self.next() else {
            return self.usage(super::usage::LINK);
        };
        let add = matches(&verb, "add");
        if !add && !matches(&verb, "del") {
            if matches(&verb, "help") {
                return self.usage(super::usage::LINK);
            }
            let message = "Operator required\n".to_string();
            return self.fail(255, message.trim_end(), "add or del");
        }
        let (mut dev, mut names) = (None, Vec::new());
        while let Some(word) = self.next() {
            if matches(&word, "altname") {
                let name = self.value()?;
                if !is_altifname(&name) {
                    return self.invalid(&name, "not a valid altname");
                }
                names.push(name);
            } else if matches(&word, "help") {
                return self.usage(super::usage::LINK);
            } else {
                let text = if word == "dev" { self.value()? } else { word };
                if dev.is_some() {
                    return self.duplicate("dev", &text);
                }
                dev = Some(text);
            }
        }
        match dev {
            Some(dev) => Ok(Command::AltNames { dev, add, names }),
            None => self.need_dev(255),
        }
    }

    /// The words of `ip link show` and `ip addr show` that choose devices.
    pub(super) fn link_filter(&mut self, mut filter: LinkFilter) -> Parsed<LinkFilter> {
        while let Some(word) = self.next() {
            let is = |full: &str| matches(&word, full);
            match word.as_str() {
                "to" => {
                    filter.to = Some({
                        let text = self.value()?;
                        self.prefix(&text, filter.family)?
                    })
                }
                "scope" => {
                    filter.scope = Some({
                        let text = self.value()?;
                        self.scope(&text)?
                    })
                }
                "up" => filter.up = true,
                "label" => filter.label = Some(self.value()?),
                "group" => {
                    let text = self.value()?;
                    match group(&text) {
                        Some(g) => filter.group = Some(g),
                        None => return self.invalid(&text, "Invalid \"group\" value\n"),
                    }
                }
                "master" => filter.master = Some(self.value()?),
                "nomaster" => filter.nomaster = true,
                "vrf" => (filter.master, filter.master_is_vrf) = (Some(self.value()?), true),
                "type" => filter.kind = Some(self.value()?),
                _ if filter.addresses && super::addr::flag_filter(&word, &mut filter.flags) => {}
                _ => {
                    if is("help") {
                        let text = if filter.addresses { super::usage::ADDR } else { super::usage::LINK };
                        return self.usage(text);
                    }
                    let dev = if word == "dev" { self.value()? } else { word };
                    if filter.dev.is_some() {
                        return self.duplicate("dev", &dev);
                    }
                    filter.dev = Some(dev);
                }
            }
        }
        Ok(filter)
    }
    /// `rtnl_rtscope_a2n`.
    pub(super) fn scope(&self, text: &str) -> Parsed<u8> {
        let named = match text {
            "global" => Some(0),
            "nowhere" => Some(255),
            "host" => Some(254),
            "link" => Some(253),
            "site" => Some(200),
            _ => number(text).and_then(|n| u8::try_from(n).ok()),
        };
        match named {
            Some(scope) => Ok(scope),
            None if text == "all" => Ok(0),
            None => self.invalid(text, "invalid \"scope\" value."),
        }
    }
}
