//! Words to a command.

use super::{Broadcast, Command, Failure, Form, Prefix, RouteKind, RouteSpec, RouteVerb};
use crate::token::Word;
use penstock_model::Kernel;
use std::net::Ipv4Addr;

type Parsed<T = Command> = Result<T, Failure>;

struct Words<'a> {
    words: &'a [Word],
    at: usize,
    kernel: Kernel,
}

const HELP: &str = "Usage: ip [ OPTIONS ] OBJECT { COMMAND | help }\nwhere  OBJECT := { address | link | neigh | route }\n       OPTIONS := { -s[tatistics] | -br[ief] | -o[neline] | -4 | -V[ersion] }\n";
const ADDR_HELP: &str = "Usage: ip address {add|change|replace} IFADDR dev IFNAME [ broadcast ADDR ]\n       ip address del IFADDR dev IFNAME\n       ip address {show|flush} [ dev IFNAME ]\n";
const LINK_HELP: &str = "Usage: ip link set { DEVICE | dev DEVICE } [ { up | down } ] [ mtu MTU ]\n               [ txqueuelen PACKETS ] [ address LLADDR ]\n       ip link show [ DEVICE ]\n";
const ROUTE_HELP: &str = "Usage: ip route { add | del | change | append | replace } ROUTE\n       ip route { show | flush } [ dev DEVICE ]\n       ip route get ADDRESS\nROUTE := [ unreachable | prohibit | blackhole ] PREFIX [ via ADDRESS ] [ dev DEVICE ]\n         [ src ADDRESS ] [ metric NUMBER ] [ proto PROTO ]\n";
const NEIGH_HELP: &str = "Usage: ip neigh { add | del | change | replace } ADDR [ lladdr LLADDR ] [ nud STATE ] dev DEV\n       ip neigh { show | flush } [ dev DEV ]\n";

/// iproute2's `matches`: `word` is a beginning of `full`.
fn matches(word: &str, full: &str) -> bool {
    !word.is_empty() && full.starts_with(word)
}

/// Reads the words of a line, `ip` first.
///
/// # Errors
/// What ip says of the line.
pub fn parse(words: &[Word], kernel: Kernel) -> Parsed {
    let mut w = Words { words, at: 1, kernel };
    let mut form = Form::default();
    while let Some(option) = w.peek().filter(|t| t.starts_with('-') && t.len() > 1).map(str::to_owned) {
        w.at += 1;
        let o = option.strip_prefix("--").map_or(option.clone(), |rest| format!("-{rest}"));
        if matches(&o, "-statistics") || matches(&o, "-stats") {
            form.stats = true;
        } else if o == "-br" || (o.len() > 2 && matches(&o, "-brief")) {
            form.brief = true;
        } else if matches(&o, "-oneline") {
            form.oneline = true;
        } else if matches(&o, "-Version") {
            let version = match kernel {
                Kernel::V2_6_35 => "ip utility, iproute2-ss100804\n",
                Kernel::V6_12 => "ip utility, iproute2-6.1.0, libbpf 1.1.2\n",
            };
            return Ok(Command::Say(version.to_owned()));
        } else if matches(&o, "-help") || matches(&o, "-human-readable") && o == "-h" {
            return Ok(Command::Help(HELP.to_owned()));
        } else if o == "-4" || matches(&o, "-details") || matches(&o, "-color") || o == "-c" {
        } else if matches(&o, "-family") {
            let family = w.value()?;
            if family != "inet" {
                return w.fail(
                    255,
                    format!("Error: argument \"{family}\" is wrong: invalid protocol family"),
                    "inet",
                );
            }
        } else {
            return w.fail(255, format!("Option \"{option}\" is unknown, try \"ip -help\"."), "-s -br -o -4");
        }
    }
    let Some(object) = w.next() else { return Ok(Command::Help(HELP.to_owned())) };
    if matches(&object, "address") {
        w.address(form)
    } else if matches(&object, "route") {
        w.route(form)
    } else if matches(&object, "neighbor") || matches(&object, "neighbour") {
        w.neigh(form)
    } else if matches(&object, "link") {
        w.link(form)
    } else if matches(&object, "help") {
        Ok(Command::Help(HELP.to_owned()))
    } else {
        let exit = if kernel == Kernel::V2_6_35 { 255 } else { 1 };
        w.fail(
            exit,
            format!("Object \"{object}\" is unknown, try \"ip help\"."),
            "address, link, route, neigh",
        )
    }
}

impl Words<'_> {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(|w| w.text.as_str())
    }
    fn next(&mut self) -> Option<String> {
        let text = self.peek()?.to_owned();
        self.at += 1;
        Some(text)
    }
    /// Fails at the word just read.
    fn fail<T>(&self, exit: i32, message: impl AsRef<str>, help: &str) -> Parsed<T> {
        let stderr = format!("{}\n", message.as_ref());
        Err(Failure { stderr, exit, word: self.at.saturating_sub(1), help: help.to_owned() })
    }
    /// `NEXT_ARG`.
    fn value(&mut self) -> Parsed<String> {
        match self.next() {
            Some(text) => Ok(text),
            None => {
                self.fail(255, "Command line is not complete. Try option \"help\"", "a value is missing here")
            }
        }
    }
    fn unknown_command<T>(&self, command: &str, object: &str) -> Parsed<T> {
        let message = format!("Command \"{command}\" is unknown, try \"ip {object} help\".");
        self.fail(255, message, "")
    }
    fn invalid<T>(&self, text: &str, why: &str) -> Parsed<T> {
        self.fail(255, format!("Error: argument \"{text}\" is wrong: {why}"), "")
    }
    fn duplicate<T>(&self, name: &str, text: &str) -> Parsed<T> {
        let message = format!("Error: either \"{name}\" is duplicate, or \"{text}\" is a garbage.");
        self.fail(255, message, "")
    }
    fn prefix(&self, text: &str) -> Parsed<Prefix> {
        let (addr, len) = match text.split_once('/') {
            Some((addr, len)) => (addr, mask_len(len)),
            None => (text, Some(32)),
        };
        match (short_address(addr), len) {
            (Some(addr), Some(len)) => Ok((addr, len)),
            _ => {
                let what = if self.kernel == Kernel::V2_6_35 { "an inet" } else { "any valid" };
                let message = format!("Error: {what} prefix is expected rather than \"{text}\".");
                self.fail(1, message, "e.g. 10.3.31.88/24")
            }
        }
    }
    fn addr(&self, text: &str) -> Parsed<Ipv4Addr> {
        match short_address(text) {
            Some(addr) => Ok(addr),
            None => {
                let what = if self.kernel == Kernel::V2_6_35 { "an inet" } else { "any valid" };
                let message = format!("Error: {what} address is expected rather than \"{text}\".");
                self.fail(1, message, "e.g. 10.3.31.88")
            }
        }
    }
    fn number(&mut self, what: &str) -> Parsed<u32> {
        let text = self.value()?;
        let parsed = match text.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None if text.starts_with('+') => None,
            None => text.parse().ok(),
        };
        match parsed {
            Some(n) => Ok(n),
            None => self.invalid(&text, &format!("Invalid \"{what}\" value\n")),
        }
    }
    fn mac(&mut self) -> Parsed<[u8; 6]> {
        let text = self.value()?;
        let parts: Vec<Option<u8>> = text
            .split(':')
            .map(|p| u8::from_str_radix(p, 16).ok().filter(|_| p.len() <= 2 && !p.starts_with('+')))
            .collect();
        let mut mac = [0; 6];
        if parts.len() != 6 || parts.iter().any(Option::is_none) {
            let first = text.split(':').next().unwrap_or("").to_owned();
            return self.fail(
                1,
                format!("\"{first}\" is invalid lladdr."),
                "six bytes in hex, 02:00:00:00:00:01",
            );
        }
        for (m, p) in mac.iter_mut().zip(parts) {
            *m = p.unwrap_or(0);
        }
        Ok(mac)
    }
    fn need_dev<T>(&self) -> Parsed<T> {
        let message = match self.kernel {
            Kernel::V2_6_35 => "Not enough information: \"dev\" argument is required.",
            Kernel::V6_12 => "Not enough information: \"dev\" argument is required.",
        };
        let exit = if self.kernel == Kernel::V2_6_35 { 255 } else { 1 };
        self.fail(exit, message, "dev eth0")
    }

    fn address(&mut self, form: Form) -> Parsed {
        let Some(verb) = self.next() else { return Ok(Command::Show(None, true, form)) };
        let replace = matches(&verb, "change") || verb == "chg" || matches(&verb, "replace");
        if matches(&verb, "add") || replace {
            let (dev, prefix, broadcast) = self.address_words()?;
            return Ok(Command::AddrAdd { dev, prefix, broadcast, replace });
        }
        if matches(&verb, "delete") {
            let (dev, prefix, _) = self.address_words()?;
            return Ok(Command::AddrDel { dev, prefix });
        }
        if matches(&verb, "show") || matches(&verb, "lst") || matches(&verb, "list") {
            return Ok(Command::Show(self.shown_device()?, true, form));
        }
        if matches(&verb, "flush") {
            return match self.shown_device()? {
                Some(dev) => Ok(Command::AddrFlush(dev)),
                None => self.fail(1, "Flush requires arguments.", "ip addr flush dev eth0"),
            };
        }
        if matches(&verb, "help") {
            return Ok(Command::Help(ADDR_HELP.to_owned()));
        }
        self.unknown_command(&verb, if self.kernel == Kernel::V2_6_35 { "addr" } else { "address" })
    }

    fn address_words(&mut self) -> Parsed<(String, Prefix, Option<Broadcast>)> {
        let (mut dev, mut prefix, mut broadcast) = (None, None, None);
        while let Some(word) = self.next() {
            match word.as_str() {
                "dev" => dev = Some(self.value()?),
                "brd" | "broadcast" => {
                    let text = self.value()?;
                    broadcast = Some(match text.as_str() {
                        "+" => Broadcast::Last,
                        "-" => continue,
                        _ => Broadcast::Addr(self.addr(&text)?),
                    });
                }
                "label" | "scope" => {
                    self.value()?;
                }
                _ => {
                    let text = if word == "local" { self.value()? } else { word };
                    if matches(&text, "help") && prefix.is_none() {
                        return Err(Failure {
                            stderr: ADDR_HELP.to_owned(),
                            exit: 255,
                            word: 0,
                            help: String::new(),
                        });
                    }
                    if prefix.is_some() {
                        return self.duplicate("local", &text);
                    }
                    prefix = Some(self.prefix(&text)?);
                }
            }
        }
        match (dev, prefix) {
            (None, _) => self.need_dev(),
            (Some(_), None) => self.fail(
                2,
                match self.kernel {
                    Kernel::V2_6_35 => "RTNETLINK answers: Invalid argument",
                    Kernel::V6_12 => "Error: ipv4: Local address is not supplied.",
                },
                "name an address, e.g. 10.3.31.88/24",
            ),
            (Some(dev), Some(prefix)) => Ok((dev, prefix, broadcast)),
        }
    }

    /// `[dev] NAME`, and filters that change nothing here (`up`, `scope global`).
    fn shown_device(&mut self) -> Parsed<Option<String>> {
        let mut dev = None;
        while let Some(word) = self.next() {
            match word.as_str() {
                "up" => {}
                "scope" | "label" | "to" => {
                    self.value()?;
                }
                _ => {
                    let name = if word == "dev" { self.value()? } else { word };
                    if dev.is_some() {
                        return self.duplicate("dev", &name);
                    }
                    dev = Some(name);
                }
            }
        }
        Ok(dev)
    }

    fn link(&mut self, form: Form) -> Parsed {
        let Some(verb) = self.next() else { return Ok(Command::Show(None, false, form)) };
        if matches(&verb, "set") || matches(&verb, "change") {
            return self.link_set();
        }
        if matches(&verb, "show") || matches(&verb, "lst") || matches(&verb, "list") {
            return Ok(Command::Show(self.shown_device()?, false, form));
        }
        if matches(&verb, "help") {
            return Ok(Command::Help(LINK_HELP.to_owned()));
        }
        if matches(&verb, "add") || matches(&verb, "delete") {
            let help = "machines get their devices from the experiment";
            return self.fail(2, "RTNETLINK answers: Operation not supported", help);
        }
        self.unknown_command(&verb, "link")
    }

    fn link_set(&mut self) -> Parsed {
        let mut dev = None;
        let (mut up, mut mtu, mut txqueuelen, mut address) = (None, None, None, None);
        while let Some(word) = self.next() {
            match word.as_str() {
                "up" => up = Some(true),
                "down" => up = Some(false),
                "mtu" if mtu.is_some() => return self.duplicate("mtu", "mtu"),
                "mtu" => mtu = Some(self.number("mtu")?),
                "qlen" | "txqueuelen" | "txqlen" => txqueuelen = Some(self.number("txqueuelen")?),
                "address" => address = Some(self.mac()?),
                "multicast" | "arp" | "promisc" | "allmulticast" | "dynamic" => {
                    let value = self.value()?;
                    if value != "on" && value != "off" {
                        let message = format!(
                            "Error: argument of \"{word}\" must be \"on\" or \"off\", not \"{value}\""
                        );
                        return self.fail(255, message, "");
                    }
                    return self.fail(2, "RTNETLINK answers: Operation not supported", "not modelled");
                }
                "help" => return Ok(Command::Help(LINK_HELP.to_owned())),
                _ => {
                    let name = if word == "dev" { self.value()? } else { word };
                    if dev.is_some() {
                        return self.duplicate("dev", &name);
                    }
                    dev = Some(name);
                }
            }
        }
        match dev {
            Some(dev) => Ok(Command::LinkSet { dev, up, mtu, txqueuelen, address }),
            None => self.need_dev(),
        }
    }

    fn route(&mut self, _form: Form) -> Parsed {
        let show = |w: &mut Self| w.route_show();
        let Some(verb) = self.next() else { return show(self) };
        let is = |full: &str| matches(&verb, full);
        if is("list") || is("show") || is("lst") {
            return show(self);
        }
        if is("get") {
            return self.route_get();
        }
        let kind = if is("add") {
            RouteVerb::Add
        } else if is("change") || verb == "chg" {
            RouteVerb::Change
        } else if is("replace") {
            RouteVerb::Replace
        } else if is("append") {
            RouteVerb::Append
        } else if is("delete") {
            RouteVerb::Del
        } else if is("flush") {
            return self.route_flush();
        } else if is("help") {
            return Ok(Command::Help(ROUTE_HELP.to_owned()));
        } else {
            return self.unknown_command(&verb, "route");
        };
        Ok(Command::Route(kind, self.route_spec()?))
    }

    fn route_spec(&mut self) -> Parsed<RouteSpec> {
        let mut spec = RouteSpec::default();
        while let Some(word) = self.next() {
            match word.as_str() {
                "via" => {
                    let text = self.value()?;
                    spec.via = Some(self.addr(&text)?);
                }
                "dev" | "oif" => spec.dev = Some(self.value()?),
                "src" => {
                    let text = self.value()?;
                    spec.src = Some(self.addr(&text)?);
                }
                "metric" | "priority" | "preference" => spec.metric = Some(self.number("metric")?),
                "proto" | "protocol" => {
                    let text = self.value()?;
                    spec.proto_static = match text.as_str() {
                        "static" => true,
                        "boot" | "kernel" | "dhcp" | "ra" => false,
                        t if t.parse::<u8>().is_ok() => false,
                        _ => return self.invalid(&text, "\"protocol\" value is invalid\n"),
                    };
                }
                "scope" => {
                    let text = self.value()?;
                    if !matches!(text.as_str(), "global" | "link" | "host" | "site" | "0" | "253" | "254") {
                        return self.invalid(&text, "invalid \"scope\" value\n");
                    }
                }
                "table" => {
                    let text = self.value()?;
                    if !matches!(text.as_str(), "main" | "254") {
                        return self.fail(
                            2,
                            "RTNETLINK answers: Operation not supported",
                            "the table main is the one there is",
                        );
                    }
                }
                "onlink" | "nexthop" | "mtu" | "tos" | "dsfield" | "initcwnd" | "rto_min" | "advmss"
                | "window" => {
                    let help = format!("{word} is not modelled");
                    return self.fail(2, "RTNETLINK answers: Operation not supported", &help);
                }
                "unicast" if spec.kind.is_none() && !spec.given_dst => spec.kind = Some(RouteKind::Unicast),
                "unreachable" if spec.kind.is_none() && !spec.given_dst => {
                    spec.kind = Some(RouteKind::Unreachable)
                }
                "prohibit" if spec.kind.is_none() && !spec.given_dst => spec.kind = Some(RouteKind::Prohibit),
                "blackhole" if spec.kind.is_none() && !spec.given_dst => {
                    spec.kind = Some(RouteKind::Blackhole)
                }
                _ => {
                    let text = if word == "to" { self.value()? } else { word };
                    if matches(&text, "help") {
                        return Err(Failure {
                            stderr: ROUTE_HELP.to_owned(),
                            exit: 255,
                            word: 0,
                            help: String::new(),
                        });
                    }
                    if spec.given_dst {
                        return self.duplicate("to", &text);
                    }
                    spec.given_dst = true;
                    spec.dst = match text.as_str() {
                        "default" | "any" | "all" => None,
                        _ => Some(self.prefix(&text)?),
                    };
                }
            }
        }
        Ok(spec)
    }

    fn route_show(&mut self) -> Parsed {
        let (mut dev, mut table, mut dst, mut default) = (None, 254, None, false);
        while let Some(word) = self.next() {
            match word.as_str() {
                "dev" | "oif" => dev = Some(self.value()?),
                "table" => {
                    let text = self.value()?;
                    table = match text.as_str() {
                        "main" | "254" => 254,
                        "local" | "255" => 255,
                        "all" | "0" => 0,
                        _ => return self.invalid(&text, "table id value is invalid\n"),
                    };
                }
                "proto" | "protocol" | "scope" | "type" | "via" | "src" => {
                    let help = format!("{word} is not understood here in a listing");
                    return self.fail(2, "RTNETLINK answers: Operation not supported", &help);
                }
                _ => {
                    let text = match word.as_str() {
                        "to" | "exact" | "root" | "match" => self.value()?,
                        _ => word,
                    };
                    match text.as_str() {
                        "default" => default = true,
                        _ => dst = Some(self.prefix(&text)?),
                    }
                }
            }
        }
        Ok(Command::RouteShow { dev, table, dst, default })
    }

    fn route_get(&mut self) -> Parsed {
        let mut to = None;
        while let Some(word) = self.next() {
            match word.as_str() {
                "from" | "iif" | "oif" | "dev" | "tos" | "mark" => {
                    let help = format!("{word} is not understood here");
                    return self.fail(2, "RTNETLINK answers: Operation not supported", &help);
                }
                _ => {
                    let text = if word == "to" { self.value()? } else { word };
                    let (addr, _) = self.prefix(&text)?;
                    to = Some(addr);
                }
            }
        }
        match to {
            Some(addr) => Ok(Command::RouteGet(addr)),
            None => self.fail(1, "need at least a destination address", "ip route get 10.0.0.1"),
        }
    }

    fn route_flush(&mut self) -> Parsed {
        let (mut dev, mut cache) = (None, false);
        while let Some(word) = self.next() {
            match word.as_str() {
                "dev" | "oif" => dev = Some(self.value()?),
                "cache" => cache = true,
                "table" => {
                    let text = self.value()?;
                    cache |= text == "cache";
                }
                _ => {
                    return self.fail(
                        2,
                        "RTNETLINK answers: Operation not supported",
                        "ip route flush dev eth0, or cache",
                    );
                }
            }
        }
        if dev.is_none() && !cache {
            return self.fail(
                255,
                "\"ip route flush\" requires arguments.",
                "ip route flush dev eth0, or cache",
            );
        }
        Ok(Command::RouteFlush { dev, cache })
    }

    fn neigh(&mut self, form: Form) -> Parsed {
        let Some(verb) = self.next() else { return Ok(Command::NeighShow(None, form)) };
        let is = |full: &str| matches(&verb, full);
        if is("show") || is("lst") || is("list") {
            return Ok(Command::NeighShow(self.shown_device()?, form));
        }
        if is("flush") {
            return match self.shown_device()? {
                Some(dev) => Ok(Command::NeighFlush(dev)),
                None => self.fail(1, "Flush requires arguments.", "ip neigh flush dev eth0"),
            };
        }
        if is("help") {
            return Ok(Command::Help(NEIGH_HELP.to_owned()));
        }
        let (exclusive, delete) = (is("add"), is("delete"));
        if !(exclusive || delete || is("change") || verb == "chg" || is("replace")) {
            return self.unknown_command(&verb, "neigh");
        }
        let (mut dev, mut addr, mut mac, mut state) = (None, None, None, "permanent".to_owned());
        while let Some(word) = self.next() {
            match word.as_str() {
                "lladdr" => mac = Some(self.mac()?),
                "dev" => dev = Some(self.value()?),
                "nud" => {
                    state = self.value()?;
                    if !matches!(state.as_str(), "permanent" | "reachable" | "stale" | "noarp") {
                        return self.invalid(&state.clone(), "nud state is bad");
                    }
                }
                _ => {
                    let text = if word == "to" { self.value()? } else { word };
                    if addr.is_some() {
                        return self.duplicate("to", &text);
                    }
                    addr = Some(self.addr(&text)?);
                }
            }
        }
        match (dev, addr, mac) {
            (Some(dev), Some(addr), _) if delete => Ok(Command::NeighDel { dev, addr }),
            (Some(dev), Some(addr), Some(mac)) => Ok(Command::NeighAdd { dev, addr, mac, state, exclusive }),
            (Some(_), Some(_), None) => {
                self.fail(2, "RTNETLINK answers: Invalid argument", "lladdr is missing")
            }
            _ => {
                let message = "Device and destination are required arguments.";
                self.fail(if self.kernel == Kernel::V2_6_35 { 255 } else { 1 }, message, "ADDR dev eth0")
            }
        }
    }
}

/// A prefix length, or a mask that is one.
fn mask_len(text: &str) -> Option<u8> {
    if let Ok(n) = text.parse::<u8>() {
        return (n <= 32 && !text.starts_with('+')).then_some(n);
    }
    let mask = u32::from(text.parse::<Ipv4Addr>().ok()?);
    let len = mask.leading_ones();
    (mask.checked_shl(len).unwrap_or(0) == 0).then_some(len as u8)
}

/// An address whose last parts may be missing: `10.3` is 10.3.0.0.
fn short_address(text: &str) -> Option<Ipv4Addr> {
    if text == "default" || text == "any" {
        return Some(Ipv4Addr::UNSPECIFIED);
    }
    let mut octets = [0u8; 4];
    for (i, part) in text.split('.').enumerate() {
        if i == 4 || part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        octets[i] = part.parse().ok()?;
    }
    Some(Ipv4Addr::from(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Parsed {
        let words: Vec<Word> = line.split_whitespace().map(|w| Word::new(w, 0)).collect();
        parse(&words, Kernel::V6_12)
    }

    #[test]
    fn abbreviations_and_forms() {
        let ten = (Ipv4Addr::new(10, 0, 0, 1), 24);
        let add = |brd| Command::AddrAdd { dev: "eth0".into(), prefix: ten, broadcast: brd, replace: false };
        assert_eq!(read("ip a a 10.0.0.1/24 dev eth0"), Ok(add(None)));
        assert_eq!(read("ip addr add 10.0.0.1/24 brd + dev eth0"), Ok(add(Some(Broadcast::Last))));
        assert_eq!(read("ip -br a"), Ok(Command::Show(None, true, Form { brief: true, ..Form::default() })));
        let up = Command::LinkSet {
            dev: "eth0".into(),
            up: Some(true),
            mtu: Some(1400),
            txqueuelen: Some(50),
            address: None,
        };
        assert_eq!(read("ip l set dev eth0 up mtu 1400 txqueuelen 50"), Ok(up));
        let Ok(Command::Route(RouteVerb::Add, spec)) = read("ip r add 10.3.33.0/24 via 10.3.32.55 metric 5")
        else {
            panic!()
        };
        assert_eq!(
            (spec.dst, spec.via, spec.metric),
            (Some((Ipv4Addr::new(10, 3, 33, 0), 24)), Some(Ipv4Addr::new(10, 3, 32, 55)), Some(5))
        );
        assert!(
            matches!(read("ip route add default via 10.0.0.1"), Ok(Command::Route(_, s)) if s.given_dst && s.dst.is_none())
        );
        assert!(matches!(read("ip ro get 10.0.0.1"), Ok(Command::RouteGet(_))));
    }

    #[test]
    fn refusals_in_ip_s_words() {
        let check = |line: &str, want: &str, exit: i32| {
            let f = read(line).expect_err(line);
            assert_eq!((f.stderr.trim_end(), f.exit), (want, exit), "{line}");
        };
        check("ip foo", "Object \"foo\" is unknown, try \"ip help\".", 1);
        check("ip addr foo", "Command \"foo\" is unknown, try \"ip address help\".", 255);
        check("ip addr add 10.0.0.1/24", "Not enough information: \"dev\" argument is required.", 1);
        check("ip addr add x dev eth0", "Error: any valid prefix is expected rather than \"x\".", 1);
        check(
            "ip addr add 10.0.0.1/33 dev eth0",
            "Error: any valid prefix is expected rather than \"10.0.0.1/33\".",
            1,
        );
        check("ip addr add 10.0.0.1 dev", "Command line is not complete. Try option \"help\"", 255);
        check("ip -x a", "Option \"-x\" is unknown, try \"ip -help\".", 255);
        check(
            "ip route add 10.0.0.0/8 foo",
            "Error: either \"to\" is duplicate, or \"foo\" is a garbage.",
            255,
        );
        check("ip link set eth0 mtu x", "Error: argument \"x\" is wrong: Invalid \"mtu\" value", 255);
    }
}
