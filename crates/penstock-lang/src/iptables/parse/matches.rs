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
        self.loaded.push((kind, self.rule.matches.len(), false));
        self.rule.matches.push(fresh);
    }

    /// The place of the newest loaded extension of this kind in the rule's matches; notes that an option of it was seen.
    fn of(&mut self, kind: Loaded) -> Option<usize> {
        let entry = self.loaded.iter_mut().rev().find(|l| l.0 == kind)?;
        entry.2 = true;
        Some(entry.1)
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
                let at = self.of(kind).unwrap_or(0);
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
                let at = self.of(Loaded::Tcp).unwrap_or(0);
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
                let at = self.of(Loaded::Icmp).unwrap_or(0);
                let (text, invert) = self.option_value(name, attached)?;
                let (ty, code) = self.icmp_type(&text)?;
                self.rule.matches[at] = Match::Icmp { ty, code, invert };
            }
            "mark" => {
                let Some(at) = self.of(Loaded::Mark) else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let (mark, mask) = self.mark_mask("mark", name, &text)?;
                self.rule.matches[at] = Match::Mark { mark, mask, invert };
            }
            "dports" | "destination-ports" | "sports" | "source-ports" | "ports" => {
                let Some(at) = self.of(Loaded::Multiport) else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let ports = self.port_list(&text)?;
                let kind = match name.as_bytes()[0] {
                    b'd' => PortKind::Destination,
                    b's' => PortKind::Source,
                    _ => PortKind::Either,
                };
                let seen =
                    matches!(&self.rule.matches[at], Match::Multiport { ports, .. } if !ports.is_empty());
                if seen {
                    return self.fail(here, "multiport can only have one option", "");
                }
                self.rule.matches[at] = Match::Multiport { kind, ports, invert };
            }
            "dscp" | "dscp-class" => {
                let Some(at) = self.of(Loaded::Dscp) else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let dscp = if name == "dscp" { self.dscp(&text)? } else { self.dscp_class(&text)? };
                self.rule.matches[at] = Match::Dscp { dscp, invert };
            }
            "tos" => {
                let Some(at) = self.of(Loaded::Tos) else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let (value, mask) = self.tos("tos", name, &text)?;
                self.rule.matches[at] = Match::Tos { value, mask, invert };
            }
            "length" => {
                let Some(at) = self.of(Loaded::Length) else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let (min, max) = self.range16("length", name, &text)?;
                self.rule.matches[at] = Match::Length { min, max, invert };
            }
            "ttl-eq" | "ttl-lt" | "ttl-gt" | "ttl" => {
                let Some(at) = self.of(Loaded::Ttl) else { return Ok(false) };
                let (text, invert) = self.option_value(name, attached)?;
                let Some(ttl) = parse_u32(&text).filter(|&n| n <= 255) else {
                    return self.bad_integer("ttl", name, "0-255");
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
                let Some(at) = self.of(Loaded::Limit) else { return Ok(false) };
                let (text, _) = self.option_value(name, attached)?;
                let Some((amount, per_s)) = rate(&text) else {
                    return self.fail(
                        self.at - 1,
                        format!("bad rate \"{text}\"'"),
                        "e.g. 5/second, 10/minute",
                    );
                };
                if let Match::Limit { amount: a, per_s: p, .. } = &mut self.rule.matches[at] {
                    (*a, *p) = (amount, per_s);
                }
            }
            "limit-burst" => {
                let Some(at) = self.of(Loaded::Limit) else { return Ok(false) };
                let (text, _) = self.option_value(name, attached)?;
                let Some(n) = parse_u32(&text).filter(|&n| n <= 10_000) else {
                    return self.bad_integer("limit", name, "0-10000");
                };
                if let Match::Limit { burst, .. } = &mut self.rule.matches[at] {
                    *burst = n;
                }
            }
            "comment" => {
                let Some(at) = self.of(Loaded::Comment) else { return Ok(false) };
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
        for &(kind, at, seen) in &self.loaded.clone() {
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
                let message = "multiport needs `-p tcp', `-p udp', `-p udplite', `-p sctp' or `-p dccp'";
                return self.fail(0, message, "ports belong to a protocol");
            }
            if seen {
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
                _ => continue,
            };
            let _ = at;
            return self.fail(0, message, "");
        }
        Ok(())
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
        let Some((from, to)) = text.split_once([':', '-']).filter(|_| text.contains(':')) else {
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
                format!("Invalid ICMP type `{ty}'\n"),
                "a number or a name, e.g. echo-request",
            );
        };
        match code.map(number) {
            None => Ok((ty, (0, 255))),
            Some(Some(code)) => Ok((ty, (code, code))),
            Some(None) => {
                let code = code.unwrap_or("");
                self.fail(self.at - 1, format!("Invalid ICMP code `{code}'\n"), "0 to 255")
            }
        }
    }

    pub(super) fn dscp(&self, text: &str) -> Parsed<u8> {
        match parse_u32(text) {
            Some(n) if n < 64 => Ok(n as u8),
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
                let message = format!("{ext}: bad value for option \"--{name}\", or out of range (0-255).\n");
                if self.old() {
                    return self.bad_integer(ext, name, "0 to 0xff");
                }
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
            (Some(min), Some(max)) if min <= max => Ok((min, max)),
            _ => self.bad_integer(ext, name, "bytes, or least:most"),
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
    // The kernel counts in ten thousandths of a second: nothing faster fits.
    (amount <= 10_000 * per_s).then_some((amount, per_s))
}
