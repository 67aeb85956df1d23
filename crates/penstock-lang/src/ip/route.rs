//! `ip route`: its words.
//!
//! Follows: iproute2 6.1.0 `ip/iproute.c` `iproute_modify`, `iproute_list_flush_or_save`, `iproute_get`, `parse_nexthops`.
//! Differs: no encapsulation.

use super::rt_names::{METRICS, number_of_control, protocol_of, realms_of, table_of, type_of};
use super::words::{Family, Parsed, Words, matches, number};
use super::{Command, Failure, Form, Net};
use penstock_model::Kernel;
use std::net::IpAddr;

/// What is done with a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RouteVerb {
    /// `add`.
    #[default]
    Add,
    /// `append`.
    Append,
    /// `prepend`: before its equals.
    Prepend,
    /// `change`.
    Change,
    /// `replace`.
    Replace,
    /// `del`.
    Del,
}

/// One way of a route over several.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NextHopSpec {
    /// `via`.
    pub via: Option<IpAddr>,
    /// What the kernel says of `via`, which it does not take.
    pub fault: Option<&'static str>,
    /// `dev`.
    pub dev: Option<String>,
    /// `weight`, from 1.
    pub weight: u32,
    /// `onlink`.
    pub onlink: bool,
}

/// A route as a command describes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RouteSpec {
    /// Which addresses.
    pub family: Family,
    /// Type, where a word names it.
    pub kind: Option<u8>,
    /// Destination, `default` as length 0; `None` where none was given.
    pub dst: Option<Net>,
    /// `tos`.
    pub tos: u8,
    /// `via`, of either family.
    pub via: Option<IpAddr>,
    /// What the kernel says of `via`, which it does not take.
    pub via_fault: Option<&'static str>,
    /// `dev`.
    pub dev: Option<String>,
    /// `src`.
    pub src: Option<IpAddr>,
    /// `metric`.
    pub metric: Option<u32>,
    /// `table`.
    pub table: Option<u32>,
    /// `vrf`: the table is that of this one.
    pub vrf: Option<String>,
    /// `proto`.
    pub protocol: Option<u8>,
    /// `scope`.
    pub scope: Option<u8>,
    /// `onlink`.
    pub onlink: bool,
    /// `mtu`, `advmss`, …: number of the metric, value, `lock`.
    pub metrics: Vec<(u8, u32, bool)>,
    /// Words with their values that a kernel takes and that have no place here: `congctl htcp`.
    pub others: Vec<String>,
    /// `expires`, seconds.
    pub expires: Option<u32>,
    /// `pref`: 0 medium, 1 high, 3 low (RFC 4191).
    pub pref: Option<u8>,
    /// `realms [FROM/]TO`: the one shifted by 16, and the other; 0 for none.
    pub realms: u32,
    /// `nhid`: the id of a nexthop; 0 is none.
    pub nhid: Option<u32>,
    /// `nexthop`s.
    pub nexthops: Vec<NextHopSpec>,
    /// What is wrong with the words behind a `nexthop`'s device.
    pub fault: Option<Failure>,
}

/// What `ip route show` and `flush` choose.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RouteFilter {
    /// Which addresses.
    pub family: Family,
    /// Table, 0 for all.
    pub table: u32,
    /// `vrf`: the table is that of this one, without what is its own (local, broadcast).
    pub vrf: Option<String>,
    /// Without local and broadcast routes.
    pub not_own: bool,
    /// `table cache`, `cached`.
    pub cache: bool,
    /// `tos`.
    pub tos: Option<u8>,
    /// `proto`.
    pub protocol: Option<u8>,
    /// `scope`.
    pub scope: Option<u8>,
    /// `type`.
    pub kind: Option<u8>,
    /// `dev`.
    pub dev: Option<String>,
    /// `metric`.
    pub metric: Option<u32>,
    /// `via`.
    pub via: Option<Net>,
    /// `src`.
    pub src: Option<Net>,
    /// `root`: only destinations within.
    pub root: Option<Net>,
    /// `match`: only destinations that hold it.
    pub covers: Option<Net>,
}

/// `ip route get`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteQuestion {
    /// Destination.
    pub dst: IpAddr,
    /// `from`.
    pub from: Option<IpAddr>,
    /// `iif`.
    pub iif: Option<String>,
    /// `oif`.
    pub oif: Option<String>,
    /// `oif` was named by `vrf`, and must be one.
    pub oif_is_vrf: bool,
    /// `mark`.
    pub mark: u32,
    /// `tos`.
    pub tos: u8,
    /// `fibmatch`: the route itself.
    pub fib_match: bool,
    /// `ipproto`; 0: none is named.
    pub ipproto: u8,
    /// `sport`; 0: none is named.
    pub sport: u16,
    /// `dport`; 0: none is named.
    pub dport: u16,
}

//= linux v6.12 net/ipv4/fib_semantics.c fib_gw_from_via, fib_get_nhs
const NO_SUCH_FAMILY: &str = "Unsupported address family in RTA_VIA";
const TWO_KINDS: &str = "Nexthop configuration can not contain both GATEWAY and VIA";

impl Words<'_> {
    pub(super) fn route(&mut self, form: Form) -> Parsed<Command> {
        let all = RouteFilter { family: form.family, table: 254, ..RouteFilter::default() };
        let Some(verb) = self.next() else { return Ok(Command::RouteShow(all, form)) };
        let is = |full: &str| matches(&verb, full);
        let verbs = [
            ("list", None),
            ("show", None),
            ("lst", None),
            ("add", Some(RouteVerb::Add)),
            ("append", Some(RouteVerb::Append)),
            ("prepend", Some(RouteVerb::Prepend)),
            ("change", Some(RouteVerb::Change)),
            ("replace", Some(RouteVerb::Replace)),
            ("delete", Some(RouteVerb::Del)),
        ];
        let found = if verb == "chg" {
            Some(("chg", Some(RouteVerb::Change)))
        } else {
            // `a` is add, `l` list, `s` show: the first that begins so.
            verbs.into_iter().find(|(name, _)| is(name))
        };
        match found {
            Some((_, None)) => return Ok(Command::RouteShow(self.route_filter(all)?, form)),
            Some((_, Some(verb))) => {
                return Ok(Command::Route(verb, Box::new(self.route_words(form.family)?)));
            }
            None => {}
        }
        if is("get") {
            return self.route_question(form);
        }
        if is("flush") {
            if self.peek().is_none() {
                return self.fail(
                    1,
                    "\"ip route flush\" requires arguments.",
                    "ip route flush dev eth0, or cache",
                );
            }
            return Ok(Command::RouteFlush(self.route_filter(all)?, form));
        }
        if is("help") {
            return self.usage(super::usage::ROUTE);
        }
        if ["save", "restore", "showdump"].iter().any(|s| is(s)) {
            return self.fail(
                255,
                "Not sending a binary stream to stdout",
                "ip route show prints what there is",
            );
        }
        self.unknown_command(&verb, "route")
    }

    fn lockable(&mut self, lock: &mut bool) -> Parsed<String> {
        let text = self.value()?;
        if text == "lock" {
            *lock = true;
            return self.value();
        }
        Ok(text)
    }

    fn route_words(&mut self, mut family: Family) -> Parsed<RouteSpec> {
        let mut r = RouteSpec::default();
        let fix = |family: &mut Family, addr: IpAddr| {
            if matches!(family, Family::Any | Family::Link) {
                *family = if addr.is_ipv4() { Family::Inet } else { Family::Inet6 };
            }
        };
        let mut type_seen = false;
        while let Some(word) = self.next() {
            let is = |full: &str| matches(&word, full);
            let metric = METRICS.iter().position(|m| {
                let exact = ["mtu", "hoplimit", "advmss", "rtt", "rto_min", "rttvar", "ssthresh"];
                let long = ["reordering", "window", "cwnd", "initcwnd", "initrwnd", "quickack"];
                (exact.contains(m) && word == **m) || (long.contains(m) && is(m))
            });
            match word.as_str() {
                "src" => {
                    let text = self.value()?;
                    let addr = self.addr(&text, family)?;
                    fix(&mut family, addr);
                    r.src = Some(addr);
                }
                "via" => {
                    let mut text = self.value()?;
                    if r.via.is_some() {
                        return self.invalid("via", "use nexthop syntax to specify multiple via\n");
                    }
                    let Some(kind) = self.family_before(&mut text, family)? else {
                        r.via_fault = Some(NO_SUCH_FAMILY);
                        continue;
                    };
                    let addr = self.addr(&text, kind)?;
                    fix(&mut family, addr);
                    r.via = Some(addr);
                }
                "from" => {
                    let text = self.value()?;
                    let net = self.prefix(&text, family)?;
                    fix(&mut family, net.addr);
                }
                _ if word == "tos" || is("dsfield") => r.tos = self.tos("\"tos\" value is invalid\n")?,
                "expires" => {
                    let seconds = self.number("\"expires\" value is invalid\n")?;
                    r.expires = Some(seconds);
                }
                _ if is("metric") || is("priority") || word == "preference" => {
                    r.metric = Some(self.number("\"metric\" value is invalid\n")?);
                }
                "scope" => {
                    let text = self.value()?;
                    r.scope = match self.scope(&text) {
                        Ok(scope) if text != "all" => Some(scope),
                        _ => return self.invalid(&text, "invalid \"scope\" value\n"),
                    };
                }
                _ if metric.is_some() => {
                    let name = METRICS[metric.unwrap_or(0)];
                    let mut lock = name == "rto_min";
                    let text = self.lockable(&mut lock)?;
                    let shown = if name == "advmss" { "mss" } else { name };
                    let value = match name {
                        "rtt" | "rttvar" | "rto_min" => time_of(&text).map(|(t, raw)| match name {
                            "rtt" if !raw => t * 8,
                            "rttvar" if !raw => t * 4,
                            _ => t,
                        }),
                        "hoplimit" => number(&text).filter(|n| *n <= 255),
                        "quickack" => number(&text).filter(|n| *n <= 1),
                        _ => number(&text),
                    };
                    match value {
                        Some(value) => r.metrics.push((metric.unwrap_or(0) as u8, value, lock)),
                        None => return self.invalid(&text, &format!("\"{shown}\" value is invalid\n")),
                    }
                }
                _ if is("features") => {
                    let value = self.value()?;
                    match value.as_str() {
                        "ecn" => r.metrics.push((12, 1, false)),
                        "tcp_usec_ts" => r.others.push(format!("features {value}")),
                        _ => return self.invalid(&value, "\"features\" value not valid\n"),
                    }
                }
                _ if is("congctl") => {
                    let mut lock = false;
                    let text = self.lockable(&mut lock)?;
                    r.metrics.push((16, number_of_control(&text), lock));
                }
                _ if is("fastopen_no_cookie") => {
                    let text = self.value()?;
                    match number(&text).filter(|n| *n <= 1) {
                        Some(value) => r.metrics.push((17, value, false)),
                        None => {
                            return self.invalid(&text, "\"fastopen_no_cookie\" value is invalid\n");
                        }
                    }
                }
                "nhid" if self.kernel == Kernel::V2_6_35 => {
                    let value = self.value()?;
                    r.others.push(format!("{word} {value}"));
                }
                "nhid" => r.nhid = Some(self.number("\"id\" value is invalid\n")?),
                _ if is("realms") => {
                    let text = self.value()?;
                    match realms_of(&text) {
                        Some(realms) => r.realms = realms,
                        None => return self.invalid(&text, "\"realm\" value is invalid\n"),
                    }
                }
                "onlink" => r.onlink = true,
                "nexthop" => {
                    self.at -= 1;
                    match self.nexthops(&mut r, &mut family) {
                        Err(fault) if r.nexthops.iter().any(|hop| hop.dev.is_some()) => {
                            r.fault = Some(fault);
                        }
                        done => done?,
                    }
                    break;
                }
                _ if is("protocol") => {
                    let text = self.value()?;
                    match protocol_of(&text) {
                        Some(p) => r.protocol = Some(p),
                        None => return self.invalid(&text, "\"protocol\" value is invalid\n"),
                    }
                }
                _ if is("table") => {
                    let text = self.value()?;
                    match table_of(&text) {
                        Some(t) => r.table = Some(t),
                        None => return self.invalid(&text, "\"table\" value is invalid\n"),
                    }
                }
                _ if is("vrf") => r.vrf = Some(self.value()?),
                "dev" | "oif" => r.dev = Some(self.value()?),
                "pref" => {
                    let text = self.value()?;
                    r.pref = Some(match (text.as_str(), number(&text)) {
                        ("low", _) => 3,
                        ("medium", _) => 0,
                        ("high", _) => 1,
                        (_, Some(n @ 0..=255)) => n as u8,
                        _ => return self.invalid(&text, "\"pref\" value is invalid\n"),
                    });
                }
                "encap" => return self.fail(255, "encapsulations are not known here", ""),
                _ => {
                    let mut text = if word == "to" { self.value()? } else { word };
                    if !type_seen
                        && r.dst.is_none()
                        && let Some(kind) = type_of(&text).filter(|_| text.parse::<u8>().is_err())
                    {
                        type_seen = true;
                        r.kind = Some(kind);
                        text = self.value()?;
                    }
                    if matches(&text, "help") {
                        return self.usage(super::usage::ROUTE);
                    }
                    if r.dst.is_some() {
                        return self.duplicate("to", &text);
                    }
                    let net = self.prefix(&text, family)?;
                    if net.len > 0 || net.addr.is_ipv6() {
                        fix(&mut family, net.addr);
                    }
                    r.dst = Some(net);
                }
            }
        }
        if r.dst.is_none() {
            return self.usage(super::usage::ROUTE);
        }
        // The same name is `default` in both families.
        if let (Family::Inet6, Some(dst)) = (family, &mut r.dst)
            && dst.len == 0
        {
            dst.addr = IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED);
        }
        r.metrics.sort_by_key(|m| m.0);
        r.family = if family == Family::Inet6 { Family::Inet6 } else { Family::Inet };
        Ok(r)
    }

    /// `read_family`: the family that stands in front of an address, and the address itself; `usual` where none does. `None`: one that no gateway has.
    fn family_before(&mut self, text: &mut String, usual: Family) -> Parsed<Option<Family>> {
        let family = match text.as_str() {
            "inet" => Family::Inet,
            "inet6" => Family::Inet6,
            "link" | "mpls" | "bridge" => {
                self.value()?;
                return Ok(None);
            }
            _ => return Ok(Some(usual)),
        };
        *text = self.value()?;
        Ok(Some(family))
    }

    fn nexthops(&mut self, r: &mut RouteSpec, family: &mut Family) -> Parsed<()> {
        while let Some(word) = self.next() {
            if word != "nexthop" {
                return self.fail(
                    255,
                    format!("Error: \"nexthop\" or end of line is expected instead of \"{word}\""),
                    "",
                );
            }
            let mut hop = NextHopSpec { weight: 1, ..NextHopSpec::default() };
            let done = self.nexthop_of_route(&mut hop, *family);
            r.nexthops.push(hop);
            done?;
        }
        Ok(())
    }
    fn nexthop_of_route(&mut self, hop: &mut NextHopSpec, family: Family) -> Parsed<()> {
        while let Some(word) = self.peek().map(str::to_owned).filter(|w| w != "nexthop") {
            self.at += 1;
            match word.as_str() {
                "via" => {
                    let mut text = self.value()?;
                    let Some(kind) = self.family_before(&mut text, family)? else {
                        hop.fault = Some(NO_SUCH_FAMILY);
                        continue;
                    };
                    let addr = self.addr(&text, kind)?;
                    // The kernel takes the first of each kind.
                    match hop.via {
                        Some(first) if first.is_ipv4() != addr.is_ipv4() => hop.fault = Some(TWO_KINDS),
                        Some(_) => {}
                        None => hop.via = Some(addr),
                    }
                }
                "dev" => hop.dev = Some(self.value()?),
                "weight" => {
                    let text = self.value()?;
                    match number(&text).filter(|w| (1..=256).contains(w)) {
                        Some(weight) => hop.weight = weight,
                        None => return self.invalid(&text, "\"weight\" is invalid\n"),
                    }
                }
                "onlink" => hop.onlink = true,
                _ if matches(&word, "realms") => {
                    self.value()?;
                }
                _ => {
                    return self.fail(
                        255,
                        format!("Error: \"nexthop\" or end of line is expected instead of \"{word}\""),
                        "",
                    );
                }
            }
        }
        Ok(())
    }

    /// `rtnl_dsfield_a2n`: a number in hexadecimal.
    pub(super) fn tos(&mut self, why: &str) -> Parsed<u8> {
        let text = self.value()?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        let named = match text.as_str() {
            "default" => Some(0),
            "EF" => Some(0xb8),
            "CS1" => Some(0x20),
            "CS2" => Some(0x40),
            "CS3" => Some(0x60),
            "CS4" => Some(0x80),
            "CS5" => Some(0xa0),
            "CS6" => Some(0xc0),
            "CS7" => Some(0xe0),
            _ => u8::from_str_radix(digits, 16).ok(),
        };
        match named {
            Some(tos) => Ok(tos),
            None => self.invalid(&text, why),
        }
    }

    fn route_filter(&mut self, mut f: RouteFilter) -> Parsed<RouteFilter> {
        while let Some(word) = self.next() {
            let is = |full: &str| matches(&word, full);
            match word.as_str() {
                _ if is("table") => {
                    let text = self.value()?;
                    match (table_of(&text), text.as_str()) {
                        (Some(table), _) => f.table = table,
                        (None, "all") => f.table = 0,
                        (None, "cache") => f.cache = true,
                        (None, "help") => return self.usage(super::usage::ROUTE),
                        _ => return self.invalid(&text, "table id value is invalid\n"),
                    }
                }
                _ if is("vrf") => f.vrf = Some(self.value()?),
                _ if is("cached") || is("cloned") => f.cache = true,
                _ if word == "tos" || is("dsfield") => f.tos = Some(self.tos("TOS value is invalid\n")?),
                _ if is("protocol") => {
                    let text = self.value()?;
                    f.protocol = protocol_of(&text);
                    if f.protocol.is_none() && text != "all" {
                        return self.invalid(&text, "invalid \"protocol\"\n");
                    }
                }
                _ if is("scope") => {
                    let text = self.value()?;
                    f.scope = match text.as_str() {
                        "all" => None,
                        _ => match self.scope(&text) {
                            Ok(scope) => Some(scope),
                            Err(_) => return self.invalid(&text, "invalid \"scope\"\n"),
                        },
                    };
                }
                _ if is("type") => {
                    let text = self.value()?;
                    f.kind = type_of(&text);
                    if f.kind.is_none() {
                        return self.invalid(&text, "node type value is invalid\n");
                    }
                }
                "dev" | "oif" => f.dev = Some(self.value()?),
                "iif" => {
                    self.value()?;
                }
                "mark" => {
                    self.number("invalid mark value")?;
                }
                _ if is("metric") || is("priority") || word == "preference" => {
                    f.metric = Some(self.number("\"metric\" value is invalid\n")?);
                }
                "via" => {
                    let named = match self.peek() {
                        Some("inet") => Some(Family::Inet),
                        Some("inet6") => Some(Family::Inet6),
                        _ => None,
                    };
                    self.at += usize::from(named.is_some());
                    f.via = Some(self.filter_prefix(named.unwrap_or(f.family))?);
                }
                "src" => f.src = Some(self.filter_prefix(f.family)?),
                _ if is("realms") => {
                    self.value()?;
                }
                _ if is("from") => {
                    self.filter_prefix(f.family)?;
                }
                _ => {
                    let mut text = if is("to") { self.value()? } else { word.clone() };
                    let (root, covers) = (matches(&text, "root"), matches(&text, "match"));
                    if root || covers || matches(&text, "exact") {
                        text = self.value()?;
                    }
                    let net = self.prefix(&text, f.family)?;
                    if !covers {
                        f.root = Some(net);
                    }
                    if !root {
                        f.covers = Some(net);
                    }
                }
            }
        }
        Ok(f)
    }
    fn filter_prefix(&mut self, family: Family) -> Parsed<Net> {
        let text = self.value()?;
        self.prefix(&text, family)
    }

    fn port(&mut self, name: &str) -> Parsed<u16> {
        let text = self.value()?;
        match text.parse() {
            Ok(port) => Ok(port),
            Err(_) => self.invalid(&text, &format!("invalid {name}\n")),
        }
    }

    fn route_question(&mut self, form: Form) -> Parsed<Command> {
        let mut family = form.family;
        let (mut dst, mut from, mut iif, mut oif, mut oif_is_vrf) = (None, None, None, None, false);
        let (mut mark, mut tos, mut fib_match) = (0, 0, false);
        let (mut ipproto, mut sport, mut dport) = (0, 0, 0);
        while let Some(word) = self.next() {
            let is = |full: &str| matches(&word, full);
            match word.as_str() {
                _ if word == "tos" || is("dsfield") => tos = self.tos("TOS value is invalid\n")?,
                _ if is("from") => {
                    let text = self.value()?;
                    let net = self.prefix(&text, family)?;
                    family = if net.addr.is_ipv4() { Family::Inet } else { Family::Inet6 };
                    from = Some(net.addr);
                }
                _ if is("iif") => iif = Some(self.value()?),
                _ if is("mark") => mark = self.number("invalid mark value")?,
                _ if is("oif") || word == "dev" => oif = Some(self.value()?),
                _ if is("notify") || is("connected") => {}
                _ if is("fibmatch") => fib_match = true,
                _ if is("sport") => sport = self.port("sport")?,
                _ if is("dport") => dport = self.port("dport")?,
                _ if is("ipproto") => ipproto = self.ipproto()?,
                _ if is("vrf") => (oif, oif_is_vrf) = (Some(self.value()?), true),
                _ if is("uid") => {
                    self.value()?;
                }
                _ => {
                    let text = if word == "to" { self.value()? } else { word.clone() };
                    if matches(&text, "help") {
                        return self.usage(super::usage::ROUTE);
                    }
                    let net = self.prefix(&text, family)?;
                    dst = Some(net.addr);
                }
            }
        }
        match dst {
            Some(dst) => {
                let question = RouteQuestion {
                    dst,
                    from,
                    iif,
                    oif,
                    oif_is_vrf,
                    mark,
                    tos,
                    fib_match,
                    ipproto,
                    sport,
                    dport,
                };
                Ok(Command::RouteGet(Box::new(question), form))
            }
            None => self.fail(1, "need at least a destination address", "ip route get 10.0.0.1"),
        }
    }
}

/// `get_time_rtt`: milliseconds, and whether the number had no unit.
fn time_of(text: &str) -> Option<(u32, bool)> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let value: f64 = digits.parse().ok()?;
    let ms = match unit.to_ascii_lowercase().as_str() {
        "" => return digits.parse().ok().map(|n| (n, true)),
        "s" | "sec" | "secs" => value * 1000.0,
        "ms" | "msec" | "msecs" => value,
        _ => return None,
    };
    (ms <= f64::from(u32::MAX)).then_some((ms.ceil() as u32, false))
}
