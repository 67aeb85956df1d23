//! Links and addresses as `ip addr` and `ip link` show them, in text or JSON.

use penstock_model::ifname;
use serde_json::Value;
use std::net::IpAddr;

/// A device as a machine shows it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Link {
    pub(super) index: u64,
    pub(super) name: String,
    /// What `-d` tells (`bridge`, `vlan`); else what can be seen without it; empty for a card.
    pub(super) kind: String,
    /// The device behind it, as ip shows it: `eth0`, `if5`, `NONE`.
    pub(super) lower: Option<String>,
    /// The bridge or bond it belongs to.
    pub(super) master: Option<String>,
    pub(super) mtu: Option<u64>,
    pub(super) qlen: Option<u64>,
    pub(super) flags: Vec<String>,
    /// `ether`, `loopback`, `none`, `ppp`.
    pub(super) medium: String,
    pub(super) qdisc: String,
    pub(super) addresses: Vec<Addr>,
}

/// An address of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Addr {
    pub(super) local: IpAddr,
    pub(super) len: u8,
    pub(super) peer: Option<IpAddr>,
    pub(super) broadcast: Option<String>,
    /// `global`, `link`, `host`.
    pub(super) scope: String,
    pub(super) label: Option<String>,
}

/// Kinds as the line of `-d` begins with them; a device of hardware has none.
const KINDS: [&str; 34] = [
    "bridge",
    "vlan",
    "bond",
    "veth",
    "dummy",
    "ifb",
    "macvlan",
    "macvtap",
    "ipvlan",
    "vxlan",
    "geneve",
    "gre",
    "gretap",
    "erspan",
    "ip6gre",
    "ip6gretap",
    "ipip",
    "ip6tnl",
    "sit",
    "vti",
    "vti6",
    "xfrm",
    "wireguard",
    "tun",
    "ppp",
    "vrf",
    "team",
    "batadv",
    "bareudp",
    "dsa",
    "hsr",
    "macsec",
    "nlmon",
    "gtp",
];

impl Link {
    /// Whether it has a flag.
    pub(super) fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }
    /// Whether it is up; what says nothing of flags is.
    pub(super) fn up(&self) -> bool {
        self.flags.is_empty() || self.is("UP")
    }

    /// An object of `ip -j addr` or `ip -j link`.
    pub(super) fn of_json(object: &Value) -> Link {
        let word = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| object.get(key).and_then(Value::as_u64);
        let list = |key: &str| object.get(key).and_then(Value::as_array).into_iter().flatten();
        let kind = object.get("linkinfo").and_then(|l| l.get("info_kind")).and_then(Value::as_str);
        let away = number("link_index").map(|n| format!("if{n}"));
        Link {
            index: number("ifindex").unwrap_or_default(),
            name: word("ifname").unwrap_or_default(),
            kind: kind.unwrap_or_default().to_owned(),
            lower: word("link").or(away),
            master: word("master"),
            mtu: number("mtu"),
            qlen: number("txqlen"),
            flags: list("flags").filter_map(Value::as_str).map(str::to_owned).collect(),
            medium: word("link_type").unwrap_or_default(),
            qdisc: word("qdisc").unwrap_or_default(),
            addresses: list("addr_info").filter_map(Addr::of_json).collect(),
        }
    }

    /// The devices of a text of `ip addr` or `ip link`, `-d` or not, iproute2's or busybox'.
    pub(super) fn of_text(text: &str) -> Vec<Link> {
        let mut all: Vec<Link> = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            if let Some(link) = head(line) {
                all.push(link);
                continue;
            }
            let Some(link) = all.last_mut() else { continue };
            match words.as_slice() {
                ["inet" | "inet6", address, rest @ ..] => {
                    link.addresses.extend(Addr::of_words(address, rest, &link.name));
                }
                [medium, ..] if medium.starts_with("link/") => link.medium = medium[5..].to_owned(),
                // What `-d` says of the device; `bridge_slave` and the like are of the one it belongs to.
                [kind, ..] if link.kind.is_empty() && KINDS.contains(kind) => link.kind = (*kind).to_owned(),
                _ => {}
            }
        }
        all
    }

    /// Whether a line begins a device in the text of `ip addr` or `ip link`.
    pub(super) fn begins(line: &str) -> bool {
        head(line).is_some()
    }

    /// Adds what another showing of the same device tells.
    pub(super) fn merge(&mut self, other: Link) {
        let take = |mine: &mut String, other: String| {
            if mine.is_empty() {
                *mine = other;
            }
        };
        take(&mut self.kind, other.kind);
        take(&mut self.medium, other.medium);
        take(&mut self.qdisc, other.qdisc);
        self.lower = self.lower.take().or(other.lower);
        self.master = self.master.take().or(other.master);
        self.mtu = self.mtu.or(other.mtu);
        self.qlen = self.qlen.or(other.qlen);
        if self.flags.is_empty() {
            self.flags = other.flags;
        }
        for address in other.addresses {
            if !self.addresses.iter().any(|a| a.local == address.local && a.peer == address.peer) {
                self.addresses.push(address);
            }
        }
    }
}

/// `3: eth0.2@eth0: <BROADCAST,UP> mtu 1500 qdisc noqueue master br-lan state UP qlen 1000`.
fn head(line: &str) -> Option<Link> {
    let (index, rest) = line.split_once(": ")?;
    let index = index.parse().ok()?;
    let (name, rest) = rest.split_once(": <")?;
    let (flags, rest) = rest.split_once('>')?;
    let (name, lower) = match ifname::shown(name) {
        Some((name, lower)) => (name, Some(lower.to_owned())),
        None => (name, None),
    };
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let after = |key: &str| words.iter().position(|w| *w == key).and_then(|at| words.get(at + 1)).copied();
    Some(Link {
        index,
        name: name.to_owned(),
        lower,
        master: after("master").map(str::to_owned),
        mtu: after("mtu").and_then(|w| w.parse().ok()),
        qlen: after("qlen").and_then(|w| w.parse().ok()),
        flags: flags.split(',').filter(|f| !f.is_empty()).map(str::to_owned).collect(),
        qdisc: after("qdisc").unwrap_or_default().to_owned(),
        ..Link::default()
    })
}

impl Addr {
    fn of_json(object: &Value) -> Option<Addr> {
        let word = |key: &str| object.get(key).and_then(Value::as_str);
        let local: IpAddr = word("local")?.parse().ok()?;
        let len = object.get("prefixlen").and_then(Value::as_u64).and_then(|n| u8::try_from(n).ok());
        Some(Addr {
            local,
            len: len.unwrap_or(if local.is_ipv4() { 32 } else { 128 }),
            peer: word("address").and_then(|p| p.parse().ok()),
            broadcast: word("broadcast").map(str::to_owned),
            scope: word("scope").unwrap_or("global").to_owned(),
            label: word("label").map(str::to_owned),
        })
    }

    /// `192.0.2.1/24 brd 192.0.2.255 scope global eth0`, `192.0.2.7 peer 198.51.100.1/32 scope global ppp0`.
    fn of_words(address: &str, rest: &[&str], dev: &str) -> Option<Addr> {
        let after = |key: &str| rest.iter().position(|w| *w == key).and_then(|at| rest.get(at + 1)).copied();
        let split = |text: &str| -> Option<(IpAddr, Option<u8>)> {
            match text.split_once('/') {
                Some((ip, len)) => Some((ip.parse().ok()?, Some(len.parse().ok()?))),
                None => Some((text.parse().ok()?, None)),
            }
        };
        let (local, len) = split(address)?;
        let peer = after("peer").and_then(split);
        let most = if local.is_ipv4() { 32 } else { 128 };
        let label = rest.last().filter(|w| w.split(':').next() == Some(dev) && rest.contains(&"scope"));
        Some(Addr {
            local,
            len: peer.and_then(|p| p.1).or(len).unwrap_or(most),
            peer: peer.map(|p| p.0),
            broadcast: after("brd").map(str::to_owned),
            scope: after("scope").unwrap_or("global").to_owned(),
            label: label.map(|l| (*l).to_owned()),
        })
    }
    /// Whether the kernel gives it to a device by itself.
    pub(super) fn is_own(&self, link: &Link) -> bool {
        let six = |a: std::net::Ipv6Addr| a.segments()[0] & 0xffc0 == 0xfe80;
        match self.local {
            IpAddr::V4(a) => link.name == "lo" && a.is_loopback(),
            IpAddr::V6(a) => a.is_loopback() || six(a),
        }
    }
    /// The words behind `ip addr add`.
    pub(super) fn words(&self, dev: &str) -> Vec<String> {
        let mut words = match self.peer {
            Some(peer) => vec![self.local.to_string(), "peer".to_owned(), format!("{peer}/{}", self.len)],
            None => vec![format!("{}/{}", self.local, self.len)],
        };
        let mut add = |key: &str, value: &str| words.extend([key.to_owned(), value.to_owned()]);
        if let Some(broadcast) = &self.broadcast {
            add("brd", broadcast);
        }
        add("dev", dev);
        if self.scope != "global" && self.local.is_ipv4() {
            add("scope", &self.scope);
        }
        if let Some(label) = self.label.as_deref().filter(|l| *l != dev) {
            add("label", label);
        }
        words
    }
}
