//! VXLAN: the words of `ip link … type vxlan`.
//!
//! Follows: iproute2 6.1.0 `ip/iplink_vxlan.c` `vxlan_parse_opt`, `vxlan_print_opt`.

use super::words::{Parsed, Words, matches, number};
use super::{Failure, Family, LinkData};
use std::net::IpAddr;

/// `ttl`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ttl {
    /// `auto`: the machine's own.
    #[default]
    Auto,
    /// `inherit`: that of what is carried.
    Inherit,
    /// A number, 1 to 255.
    Is(u8),
}

/// `df`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Df {
    /// `unset`: packets may be cut on their way.
    #[default]
    Unset,
    /// `set`: they may not.
    Set,
    /// `inherit`: as what is carried says.
    Inherit,
}

/// What a VXLAN device is set to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VxlanSet {
    /// `id`; `None` where none was given, which the kernel refuses.
    pub id: Option<u32>,
    /// `remote` or `group`.
    pub remote: Option<IpAddr>,
    /// `local`.
    pub local: Option<IpAddr>,
    /// `dev`: the device that its packets leave by.
    pub dev: Option<String>,
    /// `ttl`.
    pub ttl: Ttl,
    /// `tos`; 1 is `inherit`.
    pub tos: u8,
    /// `df`.
    pub df: Df,
    /// `dstport`. Default 8472, the kernel's of old.
    pub dstport: u16,
    /// `srcport MIN MAX`; 0 0: the machine's range.
    pub srcport: (u16, u16),
    /// `learning`, `nolearning`.
    pub learning: bool,
    /// `ageing`, seconds. Default 300; 0 is none.
    pub ageing: u32,
    /// `maxaddress`; 0 is no limit.
    pub maxaddress: u32,
    /// `udpcsum`, `noudpcsum`.
    pub udpcsum: bool,
    /// What it is to do that is not done here: the words.
    pub asked: Vec<String>,
}

impl Default for VxlanSet {
    fn default() -> VxlanSet {
        VxlanSet {
            id: None,
            remote: None,
            local: None,
            dev: None,
            ttl: Ttl::Auto,
            tos: 0,
            df: Df::Unset,
            dstport: 8472,
            srcport: (0, 0),
            learning: true,
            ageing: 300,
            maxaddress: 0,
            udpcsum: true,
            asked: Vec::new(),
        }
    }
}

const USAGE: &str = "\
Usage: ... vxlan id VNI\n\
\t\t[ { group | remote } IP_ADDRESS ]\n\
\t\t[ local ADDR ]\n\
\t\t[ ttl TTL ]\n\
\t\t[ tos TOS ]\n\
\t\t[ df DF ]\n\
\t\t[ dev PHYS_DEV ]\n\
\t\t[ dstport PORT ]\n\
\t\t[ srcport MIN MAX ]\n\
\t\t[ [no]learning ]\n\
\t\t[ ageing SECONDS ]\n\
\t\t[ maxaddress NUMBER ]\n\
";

impl Words<'_> {
    /// The words behind `type vxlan`.
    pub(super) fn vxlan_words(&mut self) -> Parsed<LinkData> {
        let mut v = VxlanSet::default();
        while let Some(word) = self.next() {
            match word.as_str() {
                _ if matches(&word, "id") || matches(&word, "vni") => {
                    let text = self.value()?;
                    match number(&text).filter(|&n| n < 1 << 24) {
                        Some(id) => v.id = Some(id),
                        None => return self.invalid(&text, "invalid id"),
                    }
                }
                _ if matches(&word, "group") || matches(&word, "remote") => {
                    let text = self.value()?;
                    let addr = self.addr(&text, Family::Any)?;
                    if addr.is_multicast() != matches(&word, "group") {
                        let why = if addr.is_multicast() {
                            "invalid remote address"
                        } else {
                            "invalid group address"
                        };
                        return self.invalid(&text, why);
                    }
                    v.remote = Some(addr);
                }
                _ if matches(&word, "local") => {
                    let text = self.value()?;
                    let addr = self.addr(&text, Family::Any)?;
                    if addr.is_multicast() {
                        return self.invalid(&text, "invalid local address");
                    }
                    v.local = Some(addr);
                }
                "dev" => v.dev = Some(self.value()?),
                _ if matches(&word, "ttl") || matches(&word, "hoplimit") => {
                    let text = self.value()?;
                    v.ttl = match (text.as_str(), number(&text)) {
                        ("inherit", _) => Ttl::Inherit,
                        ("auto", _) | (_, Some(0)) => Ttl::Auto,
                        (_, Some(n)) if n <= 255 => Ttl::Is(n as u8),
                        _ => return self.invalid(&text, "TTL must be <= 255"),
                    };
                }
                _ if matches(&word, "tos") || matches(&word, "dsfield") => {
                    let text = self.value()?;
                    v.tos = match u8::from_str_radix(text.strip_prefix("0x").unwrap_or(&text), 16) {
                        _ if text == "inherit" => 1,
                        Ok(tos) => tos,
                        Err(_) => return self.invalid(&text, "bad TOS value"),
                    };
                }
                "df" => {
                    let text = self.value()?;
                    v.df = match text.as_str() {
                        "unset" => Df::Unset,
                        "set" => Df::Set,
                        "inherit" => Df::Inherit,
                        _ => return self.invalid(&text, "DF must be 'unset', 'set' or 'inherit'"),
                    };
                }
                "dstport" => {
                    let text = self.value()?;
                    match text.parse() {
                        Ok(port) => v.dstport = port,
                        Err(_) => return self.invalid(&text, "dst port"),
                    }
                }
                "srcport" | "port" => {
                    let mut port = |what: &str| -> Parsed<u16> {
                        let text = self.value()?;
                        match text.parse() {
                            Ok(port) => Ok(port),
                            Err(_) => self.invalid(&text, what),
                        }
                    };
                    v.srcport = (port("min port")?, port("max port")?);
                }
                "learning" => v.learning = true,
                "nolearning" => v.learning = false,
                "ageing" => {
                    let text = self.value()?;
                    v.ageing = match number(&text) {
                        _ if text == "none" => 0,
                        Some(n) => n,
                        None => return self.invalid(&text, "ageing timer"),
                    };
                }
                "maxaddress" => {
                    let text = self.value()?;
                    v.maxaddress = match number(&text) {
                        _ if text == "unlimited" => 0,
                        Some(n) => n,
                        None => return self.invalid(&text, "max addresses"),
                    };
                }
                "udpcsum" => v.udpcsum = true,
                "noudpcsum" => v.udpcsum = false,
                // A checksum of UDP costs no byte.
                "udp6zerocsumtx" | "noudp6zerocsumtx" | "udp6zerocsumrx" | "noudp6zerocsumrx" => {}
                "noproxy" | "norsc" | "nol2miss" | "nol3miss" | "noremcsumtx" | "noremcsumrx"
                | "noexternal" | "novnifilter" => {}
                "proxy" | "rsc" | "l2miss" | "l3miss" | "remcsumtx" | "remcsumrx" | "external" | "gbp"
                | "gpe" | "vnifilter" => v.asked.push(word),
                "flowlabel" => {
                    let text = self.value()?;
                    v.asked.push(format!("flowlabel {text}"));
                }
                _ => {
                    let word_at = self.at - 1;
                    let said = format!("vxlan: unknown command \"{word}\"?\n");
                    let stderr = if matches(&word, "help") { USAGE.to_owned() } else { said + USAGE };
                    let help = "id remote local dev dstport ttl tos".to_owned();
                    return Err(Failure { stderr, exit: 1, word: word_at, help });
                }
            }
        }
        // Packets of an `external` one bring their number.
        let external = v.asked.iter().any(|word| word == "external");
        if external && v.id.is_some() {
            return self.fail(
                255,
                "vxlan: both 'external' and vni cannot be specified",
                "external without id",
            );
        }
        if v.id.is_none() && !external {
            return self.fail(255, "vxlan: missing virtual network identifier", "id VNI");
        }
        let both = [v.local, v.remote].into_iter().flatten().collect::<Vec<_>>();
        if let [a, b] = both[..]
            && a.is_ipv4() != b.is_ipv4()
        {
            return self.fail(255, "vxlan: both group and remote must be of the same address family", "");
        }
        Ok(LinkData::Vxlan(Box::new(v)))
    }
}
