//! Tunnels: the words of `ip link … type ipip|sit|gre|gretap` and of `ip tunnel`.
//!
//! Follows: iproute2 6.1.0 `ip/link_iptnl.c` `iptunnel_parse_opt`, `link_gre.c` `gre_parse_opt`, `iptunnel.c` `parse_args`, `tnl_parse_key`.
//! Differs: 6rd, ISATAP, `vti`, `erspan`, `external`, and encapsulations in UDP (`encap`) are refused by name; the texts of usage are our own, except
//! for their first lines.

use super::words::{Parsed, Words, matches, number};
use super::{Command, Failure, Family, LinkData};
use std::net::{IpAddr, Ipv4Addr};

/// What is said of a tunnel; `None` is left as it is, or as the kernel has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TunnelWords {
    /// `remote`; 0.0.0.0 is `any`.
    pub remote: Option<Ipv4Addr>,
    /// `local`; 0.0.0.0 is `any`.
    pub local: Option<Ipv4Addr>,
    /// `dev`: the device that its packets leave by.
    pub dev: Option<String>,
    /// `ttl`, 1 to 255; 0 is `inherit`.
    pub ttl: Option<u8>,
    /// `tos`; 1 is `inherit`.
    pub tos: Option<u8>,
    /// `pmtudisc`, `nopmtudisc`. Default on.
    pub pmtudisc: Option<bool>,
    /// `ignore-df`, `noignore-df`.
    pub ignore_df: Option<bool>,
    /// `ikey`, or `noikey`.
    pub ikey: Option<Option<u32>>,
    /// `okey`, or `nookey`.
    pub okey: Option<Option<u32>>,
    /// `iseq`.
    pub iseq: Option<bool>,
    /// `oseq`.
    pub oseq: Option<bool>,
    /// `icsum`.
    pub icsum: Option<bool>,
    /// `ocsum`.
    pub ocsum: Option<bool>,
    /// `mode`: what it carries, a protocol's number: 4, 41, or 0 for any.
    pub proto: Option<u8>,
    /// `fwmark`: the mark that its packets are routed by.
    pub fwmark: Option<u32>,
}

/// A tunnel as it is set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelView {
    /// Its name.
    pub name: String,
    /// `ipip`, `sit`, `gre`.
    pub kind: &'static str,
    /// What it is set to.
    pub set: TunnelSet,
}

/// What a tunnel is set to. As it begins: any ends, everything of what it carries, no key, `pmtudisc`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelSet {
    /// The other end; 0.0.0.0: any.
    pub remote: Ipv4Addr,
    /// This end; 0.0.0.0: any.
    pub local: Ipv4Addr,
    /// The device that its packets leave by.
    pub dev: Option<String>,
    /// Time to live of its packets; 0: that of what they carry.
    pub ttl: u8,
    /// Type of service of its packets; with the lowest bit: that of what they carry.
    pub tos: u8,
    /// Its packets are not cut on their way (DF).
    pub pmtudisc: bool,
    /// What it carries may forbid cutting in vain.
    pub ignore_df: bool,
    /// The key that packets have to have.
    pub ikey: Option<u32>,
    /// The key of its packets.
    pub okey: Option<u32>,
    /// Packets out of order are dropped.
    pub iseq: bool,
    /// Its packets are numbered.
    pub oseq: bool,
    /// Packets have to have a checksum.
    pub icsum: bool,
    /// Its packets have a checksum.
    pub ocsum: bool,
    /// What it carries: 4, 41, or 0 for any.
    pub proto: u8,
    /// The mark that its packets are routed by.
    pub fwmark: u32,
}

impl Default for TunnelSet {
    fn default() -> TunnelSet {
        TunnelSet {
            remote: Ipv4Addr::UNSPECIFIED,
            local: Ipv4Addr::UNSPECIFIED,
            dev: None,
            ttl: 0,
            tos: 0,
            pmtudisc: true,
            ignore_df: false,
            ikey: None,
            okey: None,
            iseq: false,
            oseq: false,
            icsum: false,
            ocsum: false,
            proto: 0,
            fwmark: 0,
        }
    }
}

impl TunnelWords {
    /// What a tunnel is set to that was set to `before`.
    pub fn over(&self, before: &TunnelSet) -> TunnelSet {
        TunnelSet {
            remote: self.remote.unwrap_or(before.remote),
            local: self.local.unwrap_or(before.local),
            dev: self.dev.clone().or_else(|| before.dev.clone()),
            ttl: self.ttl.unwrap_or(before.ttl),
            tos: self.tos.unwrap_or(before.tos),
            pmtudisc: self.pmtudisc.unwrap_or(before.pmtudisc),
            ignore_df: self.ignore_df.unwrap_or(before.ignore_df),
            ikey: self.ikey.unwrap_or(before.ikey),
            okey: self.okey.unwrap_or(before.okey),
            iseq: self.iseq.unwrap_or(before.iseq),
            oseq: self.oseq.unwrap_or(before.oseq),
            icsum: self.icsum.unwrap_or(before.icsum),
            ocsum: self.ocsum.unwrap_or(before.ocsum),
            proto: self.proto.unwrap_or(before.proto),
            fwmark: self.fwmark.unwrap_or(before.fwmark),
        }
    }
}

/// What `ip tunnel` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TunnelVerb {
    /// `add`.
    Add,
    /// `change`.
    Change,
    /// `delete`.
    Del,
}

/// `ip tunnel add|change|delete`: the name, the mode as a kind of link, the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelRequest {
    /// What is done.
    pub verb: TunnelVerb,
    /// The tunnel.
    pub name: Option<String>,
    /// `ipip`, `gre`, `sit`; `None` where none was given.
    pub kind: Option<&'static str>,
    /// What is said of it.
    pub words: TunnelWords,
}

const USAGE: &str = "\
Usage: ip tunnel { add | change | del | show | prl | 6rd } [ NAME ]\n\
\t[ mode { gre | ipip | isatap | sit | vti } ]\n\
\t[ remote ADDR ] [ local ADDR ]\n\
\t[ [i|o]seq ] [ [i|o]key KEY ] [ [i|o]csum ]\n\
\t[ ttl TTL ] [ tos TOS ] [ [no]pmtudisc ] [ dev PHYS_DEV ]\n\
";

impl Words<'_> {
    /// The words behind `type ipip`, `type sit`, `type gre`, `type gretap`.
    pub(super) fn tunnel_words(&mut self, kind: &str) -> Parsed<LinkData> {
        let gre = matches!(kind, "gre" | "gretap");
        let mut w = TunnelWords::default();
        while let Some(word) = self.next() {
            if self.tunnel_word(&word, &mut w, gre, true)? {
                continue;
            }
            let mode = |text: &str| match text {
                "ipv6/ipv4" | "ip6ip" if kind == "sit" => Some(41),
                "ipv4/ipv4" | "ipip" | "ip4ip4" => Some(4),
                "any/ipv4" | "any" => Some(0),
                _ => None,
            };
            if !gre && matches(&word, "mode") {
                let text = self.value()?;
                match mode(&text) {
                    Some(proto) => w.proto = Some(proto),
                    None => return self.invalid(&text, "Cannot guess tunnel mode."),
                }
                continue;
            }
            let help = "remote local ttl tos dev pmtudisc key csum seq";
            let usage = format!("Usage: ... {kind:<8} [ remote ADDR ]\n\t\t[ local ADDR ]\n");
            return Err(Failure { stderr: usage, exit: 1, word: self.at - 1, help: help.to_owned() });
        }
        self.tunnel_agrees(&w, 255)?;
        Ok(LinkData::Tunnel(Box::new(w)))
    }
    fn tunnel_agrees(&self, w: &TunnelWords, exit: i32) -> Parsed<()> {
        if w.ttl.is_some_and(|ttl| ttl > 0) && w.pmtudisc == Some(false) {
            return self.fail(exit, "ttl != 0 and nopmtudisc are incompatible", "leave one of them out");
        }
        Ok(())
    }
    /// A word that both know; `false`: it is none. `link`: as `ip link` says it.
    fn tunnel_word(&mut self, word: &str, w: &mut TunnelWords, gre: bool, link: bool) -> Parsed<bool> {
        let is = |full: &str| if link { matches(word, full) } else { word == full };
        match word {
            _ if is("remote") => w.remote = Some(self.tunnel_addr()?),
            _ if is("local") => w.local = Some(self.tunnel_addr()?),
            _ if is("dev") => w.dev = Some(self.value()?),
            _ if is("ttl") || is("hoplimit") || is("hlim") => {
                let text = self.value()?;
                w.ttl = match number(&text) {
                    _ if text == "inherit" => Some(0),
                    Some(n) if n <= 255 => Some(n as u8),
                    _ => return self.invalid(&text, "invalid TTL\n"),
                };
            }
            _ if is("tos") || is("tclass") || link && is("dsfield") => {
                let text = self.value()?;
                w.tos = match u8::from_str_radix(text.strip_prefix("0x").unwrap_or(&text), 16) {
                    _ if text == "inherit" => Some(1),
                    Ok(tos) => Some(tos),
                    Err(_) => return self.invalid(&text, "bad TOS value"),
                };
            }
            "pmtudisc" => w.pmtudisc = Some(true),
            "nopmtudisc" => w.pmtudisc = Some(false),
            "ignore-df" if gre => w.ignore_df = Some(true),
            "noignore-df" if gre => w.ignore_df = Some(false),
            "key" if gre => {
                let key = self.tunnel_key("key")?;
                (w.ikey, w.okey) = (Some(Some(key)), Some(Some(key)));
            }
            "ikey" if gre => w.ikey = Some(Some(self.tunnel_key("ikey")?)),
            "okey" if gre => w.okey = Some(Some(self.tunnel_key("okey")?)),
            "nokey" if gre => (w.ikey, w.okey) = (Some(None), Some(None)),
            "noikey" if gre => w.ikey = Some(None),
            "nookey" if gre => w.okey = Some(None),
            "seq" if gre => (w.iseq, w.oseq) = (Some(true), Some(true)),
            "iseq" if gre => w.iseq = Some(true),
            "oseq" if gre => w.oseq = Some(true),
            "noseq" if gre => (w.iseq, w.oseq) = (Some(false), Some(false)),
            "noiseq" if gre => w.iseq = Some(false),
            "nooseq" if gre => w.oseq = Some(false),
            "csum" if gre => (w.icsum, w.ocsum) = (Some(true), Some(true)),
            "icsum" if gre => w.icsum = Some(true),
            "ocsum" if gre => w.ocsum = Some(true),
            "nocsum" if gre => (w.icsum, w.ocsum) = (Some(false), Some(false)),
            "noicsum" if gre => w.icsum = Some(false),
            "noocsum" if gre => w.ocsum = Some(false),
            "fwmark" => {
                let text = self.value()?;
                match number(&text) {
                    Some(mark) => w.fwmark = Some(mark),
                    None => return self.invalid(&text, "invalid fwmark\n"),
                }
            }
            "noencap" => {}
            "encap" => {
                let text = self.value()?;
                if text != "none" {
                    return self.fail(
                        255,
                        format!("encap {text}: encapsulation in UDP (fou, gue) is not known here"),
                        "leave encap out, or use vxlan",
                    );
                }
            }
            "external" => {
                return self.fail(
                    255,
                    "external: tunnels whose packets are told where to go one by one are not known here",
                    "say remote and local",
                );
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
    fn tunnel_addr(&mut self) -> Parsed<Ipv4Addr> {
        let text = self.value()?;
        match self.addr(&text, Family::Inet)? {
            IpAddr::V4(addr) => Ok(addr),
            IpAddr::V6(_) => self.invalid(&text, "an inet address is expected"),
        }
    }
    /// `tnl_parse_key`.
    fn tunnel_key(&mut self, name: &str) -> Parsed<u32> {
        let text = self.value()?;
        let key = match text.contains('.') {
            true => text.parse::<Ipv4Addr>().ok().map(u32::from),
            false => number(&text),
        };
        match key {
            Some(key) => Ok(key),
            None => {
                let message =
                    format!("invalid value for \"{name}\": \"{text}\"; it should be an unsigned integer");
                self.fail(255, message, "e.g. 7 or 0.0.0.7")
            }
        }
    }

    /// `ip tunnel`.
    pub(super) fn tunnel(&mut self, form: super::Form) -> Parsed<Command> {
        let Some(verb) = self.next() else { return Ok(Command::TunnelShow(None, form)) };
        let is = |full: &str| matches(&verb, full);
        let verb = if is("add") {
            TunnelVerb::Add
        } else if is("change") {
            TunnelVerb::Change
        } else if is("delete") {
            TunnelVerb::Del
        } else if is("show") || is("lst") || is("list") {
            let mut name = None;
            while let Some(word) = self.next() {
                name = Some(if word == "name" { self.value()? } else { word });
            }
            return Ok(Command::TunnelShow(name, form));
        } else if is("help") {
            return self.usage(USAGE);
        } else if is("prl") || is("6rd") {
            return self.fail(
                255,
                format!("ip tunnel {verb}: ISATAP and 6rd are not known here"),
                "say the remote of a sit tunnel",
            );
        } else {
            return self.unknown_command(&verb, "tunnel");
        };
        let mut r = TunnelRequest { verb, name: None, kind: None, words: TunnelWords::default() };
        while let Some(word) = self.next() {
            if word == "mode" {
                let mode = self.value()?;
                (r.kind, r.words.proto) = match mode.as_str() {
                    "ipip" | "ip/ip" => (Some("ipip"), Some(4)),
                    "gre" | "gre/ip" => (Some("gre"), None),
                    "sit" | "ipv6/ip" => (Some("sit"), Some(41)),
                    "isatap" | "vti" => {
                        return self.fail(
                            255,
                            format!("mode {mode}: not known here"),
                            "ipip, gre and sit are",
                        );
                    }
                    _ => {
                        return self.fail(255, format!("Unknown tunnel mode \"{mode}\""), "ipip, gre or sit");
                    }
                };
                continue;
            }
            let name_first = r.name.is_none() && word == "name";
            if !name_first && self.tunnel_word(&word, &mut r.words, true, false)? {
                continue;
            }
            let text = if name_first { self.value()? } else { word };
            if matches(&text, "help") {
                return self.usage(USAGE);
            }
            if r.name.is_some() {
                return self.twice("name", &text);
            }
            if !super::words::is_ifname(&text) {
                return self.invalid(&text, "\"name\" not a valid ifname");
            }
            r.name = Some(text);
        }
        let any_key = matches!(r.words.ikey, Some(Some(_))) || matches!(r.words.okey, Some(Some(_)));
        if matches!(r.kind, Some("ipip" | "sit")) && any_key {
            return self.fail(1, "keys are not allowed with ipip and sit tunnels", "mode gre has keys");
        }
        self.tunnel_agrees(&r.words, 1)?;
        if r.kind.is_none() && r.verb == TunnelVerb::Add {
            let message = "cannot determine tunnel mode (ipip, gre, vti or sit)";
            return self.fail(1, message, "e.g. mode gre");
        }
        Ok(Command::Tunnel(Box::new(r)))
    }
}
