//! Match extensions: loading them and reading their options.

use super::*;

/// The whole of a tcp match before any option.
const ANY_TCP: TcpMatch =
    TcpMatch { sport: PortMatch::ANY, dport: PortMatch::ANY, flags: (0, 0), invert_flags: false };

/// TCP flags by name.
pub(in crate::iptables) const TCP_FLAGS: [(&str, u8); 6] =
    [("FIN", 0x01), ("SYN", 0x02), ("RST", 0x04), ("PSH", 0x08), ("ACK", 0x10), ("URG", 0x20)];

/// Type of service by name (`libxt_tos`), for masks of 0x3f.
pub(in crate::iptables) const TOS_NAMES: [(&str, u8); 5] = [
    ("Minimize-Delay", 0x10),
    ("Maximize-Throughput", 0x08),
    ("Maximize-Reliability", 0x04),
    ("Minimize-Cost", 0x02),
    ("Normal-Service", 0x00),
];

/// ICMP types by name: type, first and last code.
pub(in crate::iptables) const ICMP_NAMES: &[(&str, u8, u8, u8)] = &[
    ("any", 255, 0, 255),
    ("echo-reply", 0, 0, 255),
    ("pong", 0, 0, 255),
    ("destination-unreachable", 3, 0, 255),
    ("network-unreachable", 3, 0, 0),
    ("host-unreachable", 3, 1, 1),
    ("protocol-unreachable", 3, 2, 2),
    ("port-unreachable", 3, 3, 3),
    ("fragmentation-needed", 3, 4, 4),
    ("source-quench", 4, 0, 255),
    ("redirect", 5, 0, 255),
    ("echo-request", 8, 0, 255),
    ("ping", 8, 0, 255),
    ("router-advertisement", 9, 0, 255),
    ("router-solicitation", 10, 0, 255),
    ("time-exceeded", 11, 0, 255),
    ("ttl-exceeded", 11, 0, 255),
    ("ttl-zero-during-transit", 11, 0, 0),
    ("ttl-zero-during-reassembly", 11, 1, 1),
    ("parameter-problem", 12, 0, 255),
    ("timestamp-request", 13, 0, 255),
    ("timestamp-reply", 14, 0, 255),
];

const MULTIPORT_NEEDS: &str = "multiport needs `-p tcp', `-p udp', `-p udplite', `-p sctp' or `-p dccp'";

/// Options of two names under one of them.
fn one_name(name: &str) -> &'static str {
    const SAME: &[(&str, &str)] = &[
        ("sport", "source-port"),
        ("dport", "destination-port"),
        ("syn", "tcp-flags"),
        ("sports", "source-ports"),
        ("dports", "destination-ports"),
        ("ttl", "ttl-eq"),
    ];
    const ALONE: &[&str] =
        &["icmp-type", "mark", "ports", "dscp", "dscp-class", "tos", "length", "ttl-lt", "ttl-gt", "limit"];
    const REST: &[&str] = &["limit-burst", "comment"];
    let same = SAME.iter().find(|(alias, whole)| *alias == name || *whole == name).map(|s| s.1);
    same.or_else(|| ALONE.iter().chain(REST).find(|n| **n == name).copied()).unwrap_or("")
}

/// The only option that begins with `name`, unless it is one itself or several do.
fn only(options: &mut Vec<&str>, name: &str) -> String {
    options.sort_unstable();
    options.dedup();
    let mut like = options.iter().filter(|o| o.starts_with(name));
    match (options.contains(&name), like.next(), like.next()) {
        (false, Some(only), None) => (*only).to_owned(),
        _ => name.to_owned(),
    }
}

impl Loaded {
    fn name(self) -> &'static str {
        match self {
            Loaded::Tcp => "tcp",
            Loaded::Udp => "udp",
            Loaded::Icmp => "icmp",
            Loaded::Mark => "mark",
            Loaded::Multiport => "multiport",
            Loaded::Dscp => "dscp",
            Loaded::Tos => "tos",
            Loaded::Length => "length",
            Loaded::Ttl => "ttl",
            Loaded::Limit => "limit",
            Loaded::Comment => "comment",
        }
    }
    /// Its options in the order of its table.
    fn options(self) -> &'static [&'static str] {
        match self {
            Loaded::Tcp => &["source-port", "sport", "destination-port", "dport", "syn", "tcp-flags"],
            Loaded::Udp => &["source-port", "sport", "destination-port", "dport"],
            Loaded::Icmp => &["icmp-type"],
            Loaded::Mark => &["mark"],
            Loaded::Multiport => &["source-ports", "sports", "destination-ports", "dports", "ports"],
            Loaded::Dscp => &["dscp", "dscp-class"],
            Loaded::Tos => &["tos"],
            Loaded::Length => &["length"],
            Loaded::Ttl => &["ttl-lt", "ttl-gt", "ttl-eq", "ttl"],
            Loaded::Limit => &["limit", "limit-burst"],
            Loaded::Comment => &["comment"],
        }
    }
}

impl Parser<'_> {
    /// `-m NAME`.
    pub(super) fn load(&mut self, here: usize, name: &str) -> Parsed {
        let kind = match name {
            "tcp" => Loaded::Tcp,
            "udp" => Loaded::Udp,
            "icmp" => Loaded::Icmp,
            "mark" => Loaded::Mark,
            "multiport" => Loaded::Multiport,
            "dscp" => Loaded::Dscp,
            "tos" => Loaded::Tos,
            "length" => Loaded::Length,
            "ttl" => Loaded::Ttl,
            "limit" => Loaded::Limit,
            "comment" => Loaded::Comment,
            _ => {
                let message = if self.old() {
                    format!(
                        "Couldn't load match `{name}':/lib/xtables/libipt_{name}.so: cannot open shared object file: No such file or directory\n"
                    )
                } else {
                    format!("Couldn't load match `{name}':No such file or directory\n")
                };
                let help = "matches: tcp udp icmp mark multiport dscp tos length ttl limit comment";
                return self.fail(here, message, help);
            }
        };
        self.put(kind);
        Ok(())
    }

    fn put(&mut self, kind: Loaded) {
        let fresh = match kind {
            Loaded::Tcp => Match::Tcp(ANY_TCP),
            Loaded::Udp => Match::Udp(PortMatch::ANY, PortMatch::ANY),
            Loaded::Icmp => Match::Icmp { ty: 255, code: (0, 255), invert: false },
            Loaded::Mark => Match::Mark { mark: 0, mask: 0, invert: false },
            Loaded::Multiport => {
                Match::Multiport { kind: PortKind::Either, ports: Vec::new(), invert: false }
            }
            Loaded::Dscp => Match::Dscp { dscp: 0, invert: false },
            Loaded::Tos => Match::Tos { value: 0, mask: 0, invert: false },
            Loaded::Length => Match::Length { min: 0, max: 0, invert: false },
            Loaded::Ttl => Match::Ttl { ttl: 0, mode: 0 },
            Loaded::Limit => Match::Limit { amount: 3, per_s: 3600, burst: 5 },
            Loaded::Comment => Match::Comment(String::new()),
        };
        self.loaded.push((kind, self.rule.matches.len(), Vec::new()));
        self.rule.matches.push(fresh);
    }

    /// The place of the newest loaded extension of this kind in the rule's matches; notes which option of it was seen,
    /// and refuses it the second time.
    fn of(&mut self, kind: Loaded, here: usize, name: &str) -> Parsed<Option<usize>> {
        let Some(entry) = self.loaded.iter().rposition(|l| l.0 == kind) else { return Ok(None) };
        let option = one_name(name);
        if !self.old() && self.loaded[entry].2.contains(&option) {
            let message = match kind {
                Loaded::Tcp if option == "tcp-flags" => {
                    "Only one of `--syn' or `--tcp-flags'  allowed".to_owned()
                }
                Loaded::Tcp => format!("Only one `--{option}' allowed"),
                _ => format!("{}: option \"--{option}\" can only be used once.\n", kind.name()),
            };
            return self.fail(here, message, "take one off");
        }
        let fixed = matches!(option, "limit" | "limit-burst" | "comment" | "ttl-lt" | "ttl-gt");
        if !self.old() && self.invert && fixed {
            let message = format!("{}: option \"--{name}\" cannot be inverted.\n", kind.name());
            return self.fail(here, message, "take the ! off");
        }
        self.loaded[entry].2.push(option);
        Ok(Some(self.loaded[entry].1))
    }

    /// The long option a word means: itself, or the only one that begins so among those that may stand here.
    pub(super) fn whole_name(&self, name: &str) -> String {
        let mut options: Vec<&str> = LONG.iter().map(|(long, _)| *long).collect();
        for l in &self.loaded {
            options.extend(l.0.options());
        }
        if let Some((_, target, _)) = &self.target {
            options.extend(targets::options(target));
        }
        // The protocol's own extension is looked for only where nothing else has the option.
        if options.iter().any(|o| o.starts_with(name)) {
            return only(&mut options, name);
        }
        match self.rule.protocol {
            Some((6, false)) => options.extend(Loaded::Tcp.options()),
            Some((17, false)) => options.extend(Loaded::Udp.options()),
            Some((1, false)) => options.extend(Loaded::Icmp.options()),
            _ => {}
        }
        only(&mut options, name)
    }

    /// `-p tcp` loads its extension when one of its options is seen.
    fn port_match(&mut self) -> Option<Loaded> {
        if let Some(l) = self.loaded.iter().rev().find(|l| matches!(l.0, Loaded::Tcp | Loaded::Udp)) {
            return Some(l.0);
        }
        match self.rule.protocol {
            Some((6, false)) => {
                self.put(Loaded::Tcp);
                Some(Loaded::Tcp)
            }
            Some((17, false)) => {
                self.put(Loaded::Udp);
                Some(Loaded::Udp)
            }
            _ => None,
        }
    }

    /// An option of an extension; `false` where none that is loaded has it.
    pub(super) fn extension_option(
        &mut self,
        here: usize,
        name: &str,
        attached: Option<String>,
    ) -> Parsed<bool> {
        let known = self.match_option(here, name, attached.clone())?;
        Ok(known || self.target_option(here, name, attached)?)
    }

    pub(super) fn option_value(&mut self, name: &str, attached: Option<String>) -> Parsed<(String, bool)> {
        match attached {
            Some(value) => Ok((value, std::mem::take(&mut self.invert))),
            None => self.invertible(&format!("--{name}")),
        }
    }

    fn match_option(&mut self, here: usize, name: &str, attached: Option<String>) -> Parsed<bool> {
        match name {
            "sport" | "source-port" | "dport" | "destination-port" => {
                let Some(kind) = self.port_match() else {
                    return Ok(false);
                };
                let at = self.of(kind, here, name)?.unwrap_or(0);
                let (text, invert) = self.option_value(name, attached)?;
                let port = PortMatch { ports: self.ports(self.at - 1, &text)?, invert };
                let source = name.starts_with('s');
                match &mut self.rule.matches[at] {
                    Match::Tcp(t) if source => t.sport = port,
                    Match::Tcp(t) => t.dport = port,
                    Match::Udp(s, _) if source => *s = port,
                    Match::Udp(_, d) => *d = port,
                    _ => {}
                }
            }
            "tcp-flags" | "syn" => {
                if self.port_match() != Some(Loaded::Tcp) {
                    return Ok(false);
                }
                let at = self.of(Loaded::Tcp, here, name)?.unwrap_or(0);
                let (flags, invert) = if name == "syn" {
                    ((0x17, 0x02), std::mem::take(&mut self.invert))
                } else {
                    let (mask, invert) = self.option_value(name, attached)?;
                    let comp = match self.optional() {
                        Some(comp) => comp,
                        None => {
                            return self.fail(
                                here,
                                "--tcp-flags requires two args.",
                                "mask and the flags set",
                            );
                        }
                    };
                    ((self.flags(&mask)?, self.flags(&comp)?), invert)
                };
                if let Match::Tcp(t) = &mut self.rule.matches[at] {
                    (t.flags, t.invert_flags) = (flags, invert);
                }
            }
            "icmp-type" => {
                if !self.loaded.iter().any(|l| l.0 == Loaded::Icmp) {
                    if self.rule.protocol != Some((1, false)) {
                        return Ok(false);
                    }
                    self.put(Loaded::Icmp);
                }
                let at = self.of(Loaded::Icmp, here, name)?.unwrap_or(0);
                let (text, invert) = self.option_value(name, attached)?;
                let (ty, code) = self.icmp_type(&text)?;
                self.rule.matches[at] = Match::Icmp { ty, code, invert };
            }
            "mark" => {
                let Some(at) = self.of(Loaded::Mark, here, name)? else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let (mark, mask) = self.mark_mask("mark", name, &text)?;
                self.rule.matches[at] = Match::Mark { mark, mask, invert };
            }
            "dports" | "destination-ports" | "sports" | "source-ports" | "ports" => {
                let Some(at) = self.of(Loaded::Multiport, here, name)? else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let ports = self.port_list(&text)?;
                if !self.old() {
                    let help = "ports belong to a protocol: -p tcp or -p udp before -m multiport";
                    match self.rule.protocol {
                        Some((6 | 17 | 33 | 132 | 136, false)) => {}
                        None | Some((_, true)) => return self.fail(here, MULTIPORT_NEEDS, help),
                        Some(_) => {
                            let message = "multiport only works with TCP, UDP, UDPLITE, SCTP and DCCP";
                            return self.fail(here, message, help);
                        }
                    }
                }
                let kind = match name.as_bytes()[0] {
                    b'd' => PortKind::Destination,
                    b's' => PortKind::Source,
                    _ => PortKind::Either,
                };
                let seen =
                    matches!(&self.rule.matches[at], Match::Multiport { ports, .. } if !ports.is_empty());
                if seen && self.old() {
                    return self.fail(here, "multiport can only have one option", "");
                }
                self.rule.matches[at] = Match::Multiport { kind, ports, invert };
            }
            "dscp" | "dscp-class" => {
                let Some(at) = self.of(Loaded::Dscp, here, name)? else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let dscp =
                    if name == "dscp" { self.dscp("dscp", name, &text)? } else { self.dscp_class(&text)? };
                self.rule.matches[at] = Match::Dscp { dscp, invert };
            }
            "tos" => {
                let Some(at) = self.of(Loaded::Tos, here, name)? else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let (value, mask) = self.tos("tos", name, &text)?;
                self.rule.matches[at] = Match::Tos { value, mask, invert };
            }
            "length" => {
                let Some(at) = self.of(Loaded::Length, here, name)? else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let (min, max) = self.range16("length", name, &text)?;
                self.rule.matches[at] = Match::Length { min, max, invert };
            }
            "ttl-eq" | "ttl-lt" | "ttl-gt" | "ttl" => {
                let Some(at) = self.of(Loaded::Ttl, here, name)? else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let Some(ttl) = parse_u32(&text).filter(|&n| n <= 255) else {
                    return self.bad_value("ttl", name, "0-255");
                };
                let mode = match (name, invert) {
                    ("ttl-lt", _) => -1,
                    ("ttl-gt", _) => 1,
                    (_, true) => 2,
                    _ => 0,
                };
                self.rule.matches[at] = Match::Ttl { ttl: ttl as u8, mode };
            }
            "limit" => {
                let Some(at) = self.of(Loaded::Limit, here, name)? else { return Ok(false) };
                let (text, _) = self.option_value(name, attached)?;
                let Some((amount, per_s)) = rate(&text) else {
                    let help = "e.g. 5/second, 10/minute";
                    return self.fail(self.at - 1, format!("bad rate \"{text}\"'"), help);
                };
                // The kernel counts in ten thousandths of a second: nothing faster fits.
                if amount / per_s > 10_000 || (self.old() && amount > 10_000 * per_s) {
                    let message = match self.old() {
                        true => format!("bad rate \"{text}\"'"),
                        false => format!("Rate too fast \"{text}\"\n"),
                    };
                    return self.fail(self.at - 1, message, "at most 10000/second");
                }
                if let Match::Limit { amount: a, per_s: p, .. } = &mut self.rule.matches[at] {
                    (*a, *p) = (amount, per_s);
                }
            }
            "limit-burst" => {
                let Some(at) = self.of(Loaded::Limit, here, name)? else { return Ok(false) };
                let (text, _) = self.option_value(name, attached)?;
                let Some(n) = parse_u32(&text).filter(|&n| n <= 10_000) else {
                    return self.bad_value("limit", name, "0-10000");
                };
                if let Match::Limit { burst, .. } = &mut self.rule.matches[at] {
                    *burst = n;
                }
            }
            "comment" => {
                let Some(at) = self.of(Loaded::Comment, here, name)? else { return Ok(false) };
                let (text, _) = self.option_value(name, attached)?;
                if text.len() > 255 {
                    return self.fail(self.at - 1, "COMMENT must be shorter than 256 characters", "");
                }
                self.rule.matches[at] = Match::Comment(text);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What every match needs, once all words are read.
    pub(super) fn finish_matches(&mut self) -> Parsed {
        for (kind, _, seen) in &self.loaded.clone() {
            let kind = *kind;
            if !self.old() {
                self.together(kind.name(), kind.options(), seen)?;
            }
            let protocol = self.rule.protocol;
            let stray = match kind {
                Loaded::Tcp if protocol != Some((6, false)) => Some("tcp"),
                Loaded::Udp if protocol != Some((17, false)) => Some("udp"),
                Loaded::Icmp if protocol != Some((1, false)) => Some("icmp"),
                _ => None,
            };
            if let Some(name) = stray {
                // The kernel refuses: the match is for that protocol alone.
                return Err(Failure::invalid(&format!("-m {name} needs -p {name}")));
            }
            if matches!(kind, Loaded::Multiport)
                && !matches!(protocol, Some((6 | 17 | 33 | 132 | 136, false)))
            {
                return self.fail(0, MULTIPORT_NEEDS, "ports belong to a protocol");
            }
            if !seen.is_empty() {
                continue;
            }
            let message = match kind {
                Loaded::Mark => "mark: option \"--mark\" must be specified",
                Loaded::Multiport => "multiport expection an option",
                Loaded::Dscp => "DSCP match: Parameter --dscp is required",
                Loaded::Tos => "tos: option \"--tos\" must be specified",
                Loaded::Length => "length: option \"--length\" must be specified",
                Loaded::Ttl => "TTL match: You must specify one of `--ttl-eq', `--ttl-lt', `--ttl-gt",
                Loaded::Comment => "comment: option \"--comment\" must be specified",
                Loaded::Icmp if !self.old() => "icmp: option \"--icmp-type\" must be specified",
                _ => continue,
            };
            return self.fail(0, message, "");
        }
        Ok(())
    }

    /// Options of one extension of which only one may be given (`xtables_options_fcheck`).
    pub(super) fn together(&self, ext: &str, options: &[&str], seen: &[&str]) -> Parsed {
        if !matches!(ext, "multiport" | "dscp" | "ttl" | "MARK" | "TOS" | "DSCP") {
            return Ok(());
        }
        let mut given = options.iter().filter(|o| seen.contains(o));
        match (given.next(), given.next()) {
            (Some(a), Some(b)) => {
                let message = format!("{ext}: option \"--{a}\" cannot be used together with \"--{b}\".\n");
                self.fail(0, message, "take one off")
            }
            _ => Ok(()),
        }
    }

    /// A number out of its range, the range told.
    pub(super) fn bad_value<T>(&self, ext: &str, name: &str, range: &str) -> Parsed<T> {
        if self.old() {
            return self.bad_integer(ext, name, range);
        }
        let message = format!("{ext}: bad value for option \"--{name}\", or out of range ({range}).\n");
        self.fail(self.at - 1, message, range)
    }

    pub(super) fn bad_integer<T>(&self, ext: &str, name: &str, range: &str) -> Parsed<T> {
        let value = self.words[self.at - 1].text.clone();
        if self.old() {
            return self.fail(
                self.at - 1,
                format!("{ext}: Bad value for \"--{name}\" option: \"{value}\""),
                range,
            );
        }
        let message = format!("{ext}: bad integer value for option \"--{name}\", or out of range.\n");
        self.fail(self.at - 1, message, range)
    }

    pub(super) fn mark_mask(&self, ext: &str, name: &str, text: &str) -> Parsed<(u32, u32)> {
        let (value, mask) = match text.split_once('/') {
            Some((value, mask)) => (parse_u32(value), parse_u32(mask)),
            None => (parse_u32(text), Some(u32::MAX)),
        };
        match (value, mask) {
            (Some(value), Some(mask)) => Ok((value, mask)),
            _ => self.bad_integer(ext, name, "value or value/mask, up to 0xffffffff"),
        }
    }

    fn port(&self, here: usize, text: &str) -> Parsed<u16> {
        if let Some(n) = parse_u32(text).filter(|&n| n <= 65_535) {
            return Ok(n as u16);
        }
        match SERVICES.iter().find(|(name, _)| *name == text) {
            Some(&(_, port)) => Ok(port),
            None => {
                let message = format!("invalid port/service `{text}' specified");
                self.fail(here, message, "0 to 65535, or first:last")
            }
        }
    }

    fn ports(&self, here: usize, text: &str) -> Parsed<Ports> {
        let Some((from, to)) = text.split_once(':') else {
            let port = self.port(here, text)?;
            return Ok(Ports { from: port, to: port });
        };
        let (from, to) = (
            if from.is_empty() { 0 } else { self.port(here, from)? },
            if to.is_empty() { 65_535 } else { self.port(here, to)? },
        );
        if from > to {
            return self.fail(here, "invalid portrange (min > max)", "first:last");
        }
        Ok(Ports { from, to })
    }

    fn port_list(&self, text: &str) -> Parsed<Vec<Ports>> {
        let here = self.at - 1;
        let mut list = Vec::new();
        let mut slots = 0;
        for part in text.split(',') {
            let backwards = |p: &str| {
                let (from, to) = p.split_once(':')?;
                Some(self.port(here, from).ok()? >= self.port(here, to).ok()?)
            };
            if !self.old() && backwards(part) == Some(true) {
                return self.fail(here, "invalid portrange specified", "first:last");
            }
            let ports = self.ports(here, part)?;
            slots += if part.contains(':') { 2 } else { 1 };
            list.push(ports);
        }
        if slots > 15 {
            return self.fail(here, "too many ports specified", "at most 15, a range counts twice");
        }
        Ok(list)
    }

    fn flags(&self, text: &str) -> Parsed<u8> {
        let mut all = 0;
        for name in text.split(',') {
            match name {
                "ALL" => all |= 0x3f,
                "NONE" => {}
                _ => match TCP_FLAGS.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
                    Some((_, bit)) => all |= bit,
                    None => {
                        let message = format!("Unknown TCP flag `{name}'");
                        return self.fail(self.at - 1, message, "SYN, ACK, FIN, RST, URG, PSH, ALL, NONE");
                    }
                },
            }
        }
        Ok(all)
    }

    fn icmp_type(&self, text: &str) -> Parsed<(u8, (u8, u8))> {
        let lower = text.to_ascii_lowercase();
        let exact = ICMP_NAMES.iter().find(|n| n.0 == lower);
        let mut like = ICMP_NAMES.iter().filter(|n| !lower.is_empty() && n.0.starts_with(&lower));
        if let Some(n) = exact.or_else(|| like.next()) {
            return Ok((n.1, (n.2, n.3)));
        }
        let (ty, code) = match text.split_once('/') {
            Some((ty, code)) => (ty, Some(code)),
            None => (text, None),
        };
        let number = |t: &str| parse_u32(t).filter(|&n| n <= 255).map(|n| n as u8);
        let Some(ty) = number(ty) else {
            return self.fail(
                self.at - 1,
                match self.old() {
                    true => format!("Invalid ICMP type `{ty}'\n"),
                    false => format!("Unknown ICMP type `{text}'\n"),
                },
                "a number or a name, e.g. echo-request",
            );
        };
        match code.map(number) {
            None => Ok((ty, (0, 255))),
            Some(Some(code)) => Ok((ty, (code, code))),
            Some(None) => {
                let message = match self.old() {
                    true => format!("Invalid ICMP code `{}'\n", code.unwrap_or("")),
                    false => format!("Unknown ICMP code `{text}'\n"),
                };
                self.fail(self.at - 1, message, "0 to 255")
            }
        }
    }

    pub(super) fn dscp(&self, ext: &str, name: &str, text: &str) -> Parsed<u8> {
        match parse_u32(text) {
            Some(n) if n < 64 => Ok(n as u8),
            _ if !self.old() => self.bad_value(ext, name, "0-63"),
            Some(_) => {
                let message = format!("DSCP `{text}` out of range\n");
                self.fail(self.at - 1, message, "0 to 63 (the ToS byte divided by four)")
            }
            None => self.fail(self.at - 1, format!("Invalid dscp `{text}'\n"), "0 to 63"),
        }
    }

    pub(super) fn dscp_class(&self, text: &str) -> Parsed<u8> {
        const CLASSES: &[(&str, u8)] = &[
            ("CS0", 0x00),
            ("CS1", 0x08),
            ("CS2", 0x10),
            ("CS3", 0x18),
            ("CS4", 0x20),
            ("CS5", 0x28),
            ("CS6", 0x30),
            ("CS7", 0x38),
            ("BE", 0x00),
            ("AF11", 0x0a),
            ("AF12", 0x0c),
            ("AF13", 0x0e),
            ("AF21", 0x12),
            ("AF22", 0x14),
            ("AF23", 0x16),
            ("AF31", 0x1a),
            ("AF32", 0x1c),
            ("AF33", 0x1e),
            ("AF41", 0x22),
            ("AF42", 0x24),
            ("AF43", 0x26),
            ("EF", 0x2e),
        ];
        match CLASSES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            Some(&(_, dscp)) => Ok(dscp),
            None => {
                let message = format!("Invalid DSCP value `{text}'\n");
                self.fail(self.at - 1, message, "CS0 to CS7, AF11 to AF43, EF, BE")
            }
        }
    }

    pub(super) fn tos(&self, ext: &str, name: &str, text: &str) -> Parsed<(u8, u8)> {
        if let Some((_, value)) = TOS_NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(text)) {
            return Ok((*value, 0x3f));
        }
        let byte = |t: &str| parse_u32(t).filter(|&n| n <= 255).map(|n| n as u8);
        let (value, mask) = match text.split_once('/') {
            Some((value, mask)) => (byte(value), byte(mask)),
            None => (byte(text), Some(0xff)),
        };
        match (value, mask) {
            (Some(value), Some(mask)) => Ok((value, mask)),
            _ => {
                if self.old() {
                    return self.bad_integer(ext, name, "0 to 0xff");
                }
                let message = match text.contains('/') {
                    true => format!("Illegal value: \"{text}\""),
                    false => format!("Symbolic name \"{text}\" is unknown\n"),
                };
                self.fail(self.at - 1, message, "0 to 0xff, value/mask, or a name, e.g. Minimize-Delay")
            }
        }
    }

    fn range16(&self, ext: &str, name: &str, text: &str) -> Parsed<(u16, u16)> {
        let number = |t: &str| parse_u32(t).filter(|&n| n <= 65_535).map(|n| n as u16);
        let (min, max) = match text.split_once(':') {
            Some(("", max)) => (Some(0), number(max)),
            Some((min, "")) => (number(min), Some(65_535)),
            Some((min, max)) => (number(min), number(max)),
            None => (number(text), number(text)),
        };
        match (min, max) {
            (Some(min), Some(max)) if min <= max || !self.old() => Ok((min, max)),
            _ if self.old() => self.bad_integer(ext, name, "bytes, or least:most"),
            _ => {
                let near = text.split(':').find(|t| !t.is_empty() && number(t).is_none()).unwrap_or(text);
                let message = format!(
                    "{ext}: bad value for option \"--{name}\" near \"{near}\", or out of range (0-65535).\n"
                );
                self.fail(self.at - 1, message, "bytes, or least:most")
            }
        }
    }
}

/// `3/hour`, `5/s`: packets and the span in seconds.
fn rate(text: &str) -> Option<(u32, u32)> {
    let (amount, unit) = text.split_once('/').unwrap_or((text, "s"));
    let amount = amount.parse::<u32>().ok().filter(|&n| n > 0)?;
    let lower = unit.to_ascii_lowercase();
    let per_s = [("second", 1), ("minute", 60), ("hour", 3600), ("day", 86_400)]
        .into_iter()
        .find(|(name, _)| !lower.is_empty() && name.starts_with(&lower))?
        .1;
    Some((amount, per_s))
}
