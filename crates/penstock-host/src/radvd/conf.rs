//! `radvd.conf`: what is advertised, and how often.
//!
//! Follows: radvd 2.19 `scanner.l`, `gram.y`, `defaults.h`, `interface.c` `check_iface`; `radvd.conf.5`.
//! Differs: whatever `check_iface` finds wrong ends the program, also where `IgnoreIfMissing` is on and radvd would go on without the device; no
//! `lowpanco`, no `abro`.

use std::net::Ipv6Addr;

/// For ever.
const INFINITE: u32 = u32::MAX;

/// One `interface`.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub name: String,
    /// `IgnoreIfMissing`: it may come later.
    pub ignore_missing: bool,
    /// `AdvSendAdvert`.
    pub send: bool,
    /// `MinRtrAdvInterval` and `MaxRtrAdvInterval`, seconds.
    pub every: (f64, f64),
    /// `MinDelayBetweenRAs`, seconds.
    pub min_delay: f64,
    pub managed: bool,
    pub other: bool,
    /// Of a router as RFC 4191 has it: 0 medium, 1 high, 3 low.
    pub pref: u8,
    /// `AdvDefaultLifetime`, seconds.
    pub lifetime: u16,
    /// ms.
    pub reachable: u32,
    pub retrans: u32,
    pub hop_limit: u8,
    pub link_mtu: u32,
    /// `AdvRAMTU`: no message is longer, bytes.
    pub ra_mtu: u32,
    /// `AdvSourceLLAddress`.
    pub source_mac: bool,
    pub unicast_only: bool,
    /// `AdvRASolicitedUnicast`.
    pub answers_one: bool,
    pub home_agent: bool,
    /// `AdvIntervalOpt`.
    pub interval: bool,
    /// `AdvHomeAgentInfo`: preference, lifetime, `AdvMobRtrSupportFlag`.
    pub agent: Option<(u16, u16, bool)>,
    pub prefixes: Vec<Prefix>,
    pub routes: Vec<Route>,
    pub rdnss: Vec<Names>,
    pub dnssl: Vec<Names>,
    /// Only these are answered and told.
    pub clients: Vec<Ipv6Addr>,
    /// `AdvRASrcAddress`: the first of these that the device has speaks.
    pub sources: Vec<Ipv6Addr>,
}

/// A `prefix`.
#[derive(Clone, Debug)]
pub(crate) struct Prefix {
    /// `::` stands for those of the device.
    pub addr: Ipv6Addr,
    pub len: u8,
    /// Flags of the option.
    pub flags: u8,
    /// Seconds; they become less where `decrements`.
    pub valid: u32,
    pub preferred: u32,
    pub deprecates: bool,
    pub decrements: bool,
    /// `Base6Interface`: those of this device instead.
    pub base: Option<String>,
}

/// A `route`.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub addr: Ipv6Addr,
    pub len: u8,
    pub pref: u8,
    /// Seconds.
    pub lifetime: u32,
    pub removes: bool,
}

/// `RDNSS` or `DNSSL`: the option's bytes behind its lifetime.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub bytes: Vec<u8>,
    /// Seconds.
    pub lifetime: u32,
    pub flushes: bool,
}

struct Words<'a> {
    all: Vec<(usize, &'a str)>,
    at: usize,
}

type Read<T> = Result<T, String>;

fn words(text: &str) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut rest = line;
        while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
            rest = &rest[start..];
            let end = rest.find(|c: char| c.is_whitespace() || "{};/".contains(c)).unwrap_or(rest.len());
            let (word, behind) =
                rest.split_at(end.max(rest.chars().next().map_or(1, char::len_utf8).min(rest.len())));
            all.push((n + 1, word));
            rest = behind;
        }
    }
    all
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Read<&'a str> {
        let word = self.all.get(self.at).map(|w| w.1);
        self.at += 1;
        word.ok_or_else(|| self.wrong("the file ends here"))
    }
    fn peek(&self) -> Option<&'a str> {
        self.all.get(self.at).map(|w| w.1)
    }
    /// What is wrong with the word before.
    fn wrong(&self, why: &str) -> String {
        let last = self.all.len().saturating_sub(1);
        let (line, word) = self.all.get(self.at.saturating_sub(1).min(last)).copied().unwrap_or((1, ""));
        format!("{line}: syntax error at \"{word}\": {why}")
    }
    fn expect(&mut self, what: &str) -> Read<()> {
        if self.next()? == what { Ok(()) } else { Err(self.wrong(&format!("\"{what}\" belongs here"))) }
    }
    fn read<T>(&mut self, what: &str, read: impl FnOnce(&str) -> Option<T>) -> Read<T> {
        let word = self.next()?;
        read(word).ok_or_else(|| self.wrong(what))
    }
    fn on(&mut self) -> Read<bool> {
        let on = |w: &str| match w {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        self.read("on or off belongs here", on)
    }
    fn number(&mut self) -> Read<u32> {
        self.read("a number belongs here", |w| w.parse().ok())
    }
    fn within(&mut self, most: u32) -> Read<u32> {
        self.read(&format!("a number up to {most} belongs here"), |w| w.parse().ok().filter(|n| *n <= most))
    }
    fn seconds(&mut self) -> Read<u32> {
        let seconds = |w: &str| if w == "infinity" { Some(INFINITE) } else { w.parse().ok() };
        self.read("seconds or infinity belong here", seconds)
    }
    fn decimal(&mut self) -> Read<f64> {
        let decimal = |w: &str| w.parse().ok().filter(|n: &f64| (0.0..=1e6).contains(n));
        self.read("seconds belong here", decimal)
    }
    fn preference(&mut self) -> Read<u8> {
        let preference = |w: &str| match w {
            "low" => Some(3),
            "medium" => Some(0),
            "high" => Some(1),
            _ => None,
        };
        self.read("low, medium or high belongs here", preference)
    }
    fn addr(&mut self) -> Read<Ipv6Addr> {
        self.read("an address of IPv6 belongs here", |w| w.parse().ok())
    }
    fn network(&mut self) -> Read<(Ipv6Addr, u8)> {
        let addr = self.addr()?;
        self.expect("/")?;
        Ok((addr, self.within(128)? as u8))
    }
    /// `{ WORD …; … };` or `;`: `item` reads what stands between a word and its `;`, and answers whether it knows the word.
    fn block(&mut self, mut item: impl FnMut(&mut Self, &str) -> Read<bool>) -> Read<()> {
        if self.peek() == Some("{") {
            self.at += 1;
            loop {
                let word = self.next()?;
                if word == "}" {
                    break;
                }
                if !item(self, word)? {
                    return Err(self.wrong("no word of radvd.conf for this place"));
                }
                self.expect(";")?;
            }
        }
        self.expect(";")
    }
}

/// All of a file.
///
/// # Errors
/// The line, and what is wrong there.
pub(crate) fn parse(text: &str) -> Read<Vec<Interface>> {
    let mut w = Words { all: words(text), at: 0 };
    let mut all: Vec<Interface> = Vec::new();
    while w.peek().is_some() {
        w.expect("interface")?;
        let name = w.next()?;
        if all.iter().any(|i| i.name == name) {
            return Err(w.wrong("a second time the same interface"));
        }
        let read = interface(&mut w, name)?;
        check(&read).map_err(|why| format!("{}: {why}", w.all.get(w.at - 1).map_or(0, |l| l.0)))?;
        all.push(read);
    }
    if all.is_empty() { Err("1: there is no interface in it".to_owned()) } else { Ok(all) }
}

fn interface(w: &mut Words<'_>, name: &str) -> Read<Interface> {
    let mut i = Interface {
        name: name.to_owned(),
        ignore_missing: true,
        send: false,
        every: (-1.0, 600.0),
        min_delay: 3.0,
        managed: false,
        other: false,
        pref: 0,
        lifetime: 0,
        reachable: 0,
        retrans: 0,
        hop_limit: 64,
        link_mtu: 0,
        ra_mtu: 1280,
        source_mac: true,
        unicast_only: false,
        answers_one: true,
        home_agent: false,
        interval: false,
        agent: None,
        prefixes: Vec::new(),
        routes: Vec::new(),
        rdnss: Vec::new(),
        dnssl: Vec::new(),
        clients: Vec::new(),
        sources: Vec::new(),
    };
    let mut lifetime = None;
    let (mut agent, mut agent_said) = ((0, None, false), false);
    // A route, a list of name servers or of domains lasts as the intervals say that stand before it.
    w.expect("{")?;
    loop {
        let word = w.next()?;
        match word {
            "}" => break,
            "prefix" => {
                i.prefixes.push(prefix(w)?);
                continue;
            }
            "route" => {
                let (addr, len) = w.network()?;
                let mut route =
                    Route { addr, len, pref: 0, lifetime: (3.0 * i.every.1) as u32, removes: true };
                w.block(|w, word| {
                    match word {
                        "AdvRouteLifetime" => route.lifetime = w.seconds()?,
                        "AdvRoutePreference" => route.pref = w.preference()?,
                        "RemoveRoute" => route.removes = w.on()?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                i.routes.push(route);
                continue;
            }
            "RDNSS" | "DNSSL" => {
                let names = names(w, word == "DNSSL", i.every.1 as u32)?;
                if word == "DNSSL" {
                    i.dnssl.push(names)
                } else {
                    i.rdnss.push(names)
                }
                continue;
            }
            "clients" | "AdvRASrcAddress" => {
                // The last client is told first.
                let clients = word == "clients";
                w.expect("{")?;
                while w.peek() != Some("}") {
                    let addr = w.addr()?;
                    if clients {
                        i.clients.insert(0, addr)
                    } else {
                        i.sources.push(addr)
                    }
                    w.expect(";")?;
                }
                w.at += 1;
                w.expect(";")?;
                continue;
            }
            "lowpanco" | "abro" => return Err(w.wrong("is about radio networks, which are not simulated")),
            "IgnoreIfMissing" => i.ignore_missing = w.on()?,
            "AdvSendAdvert" => i.send = w.on()?,
            "MaxRtrAdvInterval" => i.every.1 = w.decimal()?,
            "MinRtrAdvInterval" => i.every.0 = w.decimal()?,
            "MinDelayBetweenRAs" => i.min_delay = w.decimal()?,
            "AdvManagedFlag" => i.managed = w.on()?,
            "AdvOtherConfigFlag" => i.other = w.on()?,
            "AdvLinkMTU" => i.link_mtu = w.number()?,
            "AdvRAMTU" => i.ra_mtu = w.within(131_072)?,
            "AdvReachableTime" => i.reachable = w.number()?,
            "AdvRetransTimer" => i.retrans = w.within(3_600_000)?,
            "AdvCurHopLimit" => i.hop_limit = w.within(255)? as u8,
            "AdvDefaultLifetime" => lifetime = Some(w.number()?),
            "AdvDefaultPreference" => i.pref = w.preference()?,
            "AdvSourceLLAddress" => i.source_mac = w.on()?,
            "UnicastOnly" => i.unicast_only = w.on()?,
            "AdvRASolicitedUnicast" => i.answers_one = w.on()?,
            "AdvHomeAgentFlag" => i.home_agent = w.on()?,
            "AdvIntervalOpt" => i.interval = w.on()?,
            "AdvHomeAgentInfo" => agent_said = w.on()?,
            "HomeAgentPreference" => agent.0 = w.within(0xffff)? as u16,
            "HomeAgentLifetime" => agent.1 = Some(w.within(65_520)?),
            "AdvMobRtrSupportFlag" => agent.2 = w.on()?,
            _ => return Err(w.wrong("no word of radvd.conf for this place")),
        }
        w.expect(";")?;
    }
    w.expect(";")?;
    if i.every.0 < 0.0 {
        i.every.0 = 0.33 * i.every.1;
    }
    let usual = ((3.0 * i.every.1) as u32).max(1);
    let life = lifetime.unwrap_or(usual);
    if life != 0 && !((i.every.1 as u32).max(1)..=9_000).contains(&life) {
        return Err(w.wrong(&format!(
            "AdvDefaultLifetime for {name} ({life}) must be zero or between {} and 9000",
            (i.every.1 as u32).max(1)
        )));
    }
    i.lifetime = life as u16;
    let (preference, life, mobile) = agent;
    i.agent = agent_said.then(|| (preference, life.map_or(i.lifetime, |l| l as u16), mobile));
    Ok(i)
}

fn prefix(w: &mut Words<'_>) -> Read<Prefix> {
    let (addr, len) = w.network()?;
    let mut p = Prefix {
        addr,
        len,
        flags: 0xc0,
        valid: 86_400,
        preferred: 14_400,
        deprecates: false,
        decrements: false,
        base: None,
    };
    w.block(|w, word| {
        let flag = match word {
            "AdvOnLink" => 0x80,
            "AdvAutonomous" => 0x40,
            "AdvRouterAddr" => 0x20,
            _ => 0,
        };
        match word {
            "AdvOnLink" | "AdvAutonomous" | "AdvRouterAddr" => {
                p.flags = if w.on()? { p.flags | flag } else { p.flags & !flag };
            }
            "AdvValidLifetime" => p.valid = w.seconds()?,
            "AdvPreferredLifetime" => p.preferred = w.seconds()?,
            "DeprecatePrefix" => p.deprecates = w.on()?,
            "DecrementLifetimes" => p.decrements = w.on()?,
            "Base6Interface" => p.base = Some(w.next()?.to_owned()),
            "Base6to4Interface" => return Err(w.wrong("6to4 is not simulated: write the prefix")),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(p)
}

fn names(w: &mut Words<'_>, domains: bool, lifetime: u32) -> Read<Names> {
    let mut names = Names { bytes: Vec::new(), lifetime, flushes: true };
    let mut count = 0;
    while !matches!(w.peek(), Some("{" | ";") | None) {
        count += 1;
        if !domains {
            if count > 3 {
                return Err(w.wrong("no more than three servers fit into one RDNSS"));
            }
            names.bytes.extend(w.addr()?.octets());
            continue;
        }
        // RFC 1035 section 3.1.
        let name = w.next()?;
        for label in name.split('.').filter(|l| !l.is_empty()) {
            if label.len() > 63 {
                return Err(w.wrong("no label of a domain is longer than 63 bytes"));
            }
            names.bytes.push(label.len() as u8);
            names.bytes.extend(label.bytes());
        }
        names.bytes.push(0);
    }
    if names.bytes.is_empty() || names.bytes.len() > 2_000 {
        w.at += 1;
        return Err(w.wrong("of names there must be one, and no more than 2000 bytes of them"));
    }
    w.block(|w, word| {
        match word {
            "AdvRDNSSLifetime" if !domains => names.lifetime = w.seconds()?,
            "AdvDNSSLLifetime" if domains => names.lifetime = w.seconds()?,
            "FlushRDNSS" if !domains => names.flushes = w.on()?,
            "FlushDNSSL" if domains => names.flushes = w.on()?,
            "AdvRDNSSPreference" if !domains => drop(w.number()?),
            "AdvRDNSSOpen" if !domains => drop(w.on()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(names)
}

/// `check_iface`.
fn check(i: &Interface) -> Result<(), String> {
    let name = &i.name;
    let router = |p: &Prefix| p.flags & 0x20 != 0;
    let mobile = i.home_agent || i.agent.is_some() || i.interval || i.prefixes.iter().any(router);
    let (least_min, least_max, least_delay) = if mobile { (0.03, 0.07, 0.03) } else { (3.0, 4.0, 3.0) };
    let (min, max) = i.every;
    if min < least_min || min > 0.75 * max {
        return Err(format!(
            "MinRtrAdvInterval for {name} ({min:.2}) must be at least {least_min:.2} but no more than 3/4 of MaxRtrAdvInterval ({:.2})",
            0.75 * max
        ));
    }
    if max < least_max || max > 1_800.0 {
        return Err(format!(
            "MaxRtrAdvInterval for {name} ({max:.2}) must be between {least_max:.2} and 1800"
        ));
    }
    if i.min_delay < least_delay {
        let delay = i.min_delay;
        return Err(format!("MinDelayBetweenRAs for {name} ({delay:.2}) must be at least {least_delay:.2}"));
    }
    if i.link_mtu != 0 && !(1_280..=1_500).contains(&i.link_mtu) {
        return Err(format!("AdvLinkMTU for {name} ({}) must be zero or between 1280 and 1500", i.link_mtu));
    }
    if i.reachable > 3_600_000 {
        return Err(format!(
            "AdvReachableTime for {name} ({}) must not be greater than 3600000",
            i.reachable
        ));
    }
    if i.agent.is_some() && !i.home_agent {
        return Err(format!("AdvHomeAgentFlag for {name} must be set with HomeAgentInfo"));
    }
    for p in &i.prefixes {
        if p.preferred > p.valid {
            return Err(format!(
                "AdvValidLifetime for {name} ({}) must be greater than AdvPreferredLifetime ({})",
                p.valid, p.preferred
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads() {
        let text = "interface lan0 { # the house\n  AdvSendAdvert on;\n MaxRtrAdvInterval 30;\n\
            prefix 2001:db8:1::/64 { AdvOnLink on; AdvAutonomous on; AdvValidLifetime infinity; };\n\
            prefix ::/64;\n route 2001:db8::/32 { AdvRoutePreference high; };\n\
            RDNSS fd00::1 fd00::2 { AdvRDNSSLifetime 60; };\n DNSSL home.arpa lan {};\n\
            clients { fe80::9; };\n};";
        let all = parse(text).unwrap();
        let i = &all[0];
        assert_eq!((all.len(), i.send, i.lifetime, i.every.1), (1, true, 90, 30.0));
        assert_eq!((i.prefixes.len(), i.prefixes[0].valid, i.prefixes[0].preferred), (2, u32::MAX, 14_400));
        assert_eq!((i.routes[0].pref, i.routes[0].lifetime), (1, 90));
        assert_eq!((i.rdnss[0].bytes.len(), i.rdnss[0].lifetime), (32, 60));
        assert_eq!(i.dnssl[0].bytes, b"\x04home\x04arpa\0\x03lan\0");
        assert_eq!(i.clients, ["fe80::9".parse::<Ipv6Addr>().unwrap()]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, said) in [
            ("", "1: there is no interface in it"),
            (
                "interface lan0 {\n AdvSendAdvert yes;\n};",
                "2: syntax error at \"yes\": on or off belongs here",
            ),
            (
                "interface lan0 {\n Advertise on;\n};",
                "2: syntax error at \"Advertise\": no word of radvd.conf for this place",
            ),
            (
                "interface lan0 {\n prefix 10.0.0.0/24 {};\n};",
                "2: syntax error at \"10.0.0.0\": an address of IPv6 belongs here",
            ),
            ("interface lan0 {\n AdvSendAdvert on\n};", "3: syntax error at \"}\": \";\" belongs here"),
            ("interface lan0 {", "1: syntax error at \"{\": the file ends here"),
            (
                "interface lan0 {\n MaxRtrAdvInterval 3;\n};",
                "3: MinRtrAdvInterval for lan0 (0.99) must be at least 3.00 but no more than 3/4 of MaxRtrAdvInterval (2.25)",
            ),
            ("interface é {", "1: syntax error at \"{\": the file ends here"),
        ] {
            assert_eq!(parse(text).unwrap_err(), said, "{text}");
        }
    }

    proptest::proptest! {
        /// Whatever stands in a file, it is read or refused.
        #[test]
        fn any_text_is_read_or_refused(
            words in proptest::collection::vec(
                proptest::sample::select(vec![
                    "interface", "lan0", "{", "}", ";", "/", "prefix", "route", "RDNSS", "DNSSL", "clients", "::", "fd00::1", "64", "129", "on",
                    "off", "infinity", "high", "AdvSendAdvert", "MaxRtrAdvInterval", "MinDelayBetweenRAs", "AdvDefaultLifetime", "HomeAgentLifetime",
                    "1e300", "-1", "4294967296", "a..b", "é#", "#",
                ]),
                0..40,
            ),
        ) {
            let _ = parse(&words.join(" "));
            let _ = parse(&format!("interface lan0 {{ {} }};", words.join(" ")));
        }
    }
}
