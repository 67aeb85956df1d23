//! Cisco IOS configurations: what of them makes a router here.
//!
//! Read: `hostname`, `interface` with `ip address` (also `secondary`), `no ip address`, `shutdown`, `no shutdown`,
//! `hold-queue N out`, `bandwidth`, and `ip route`. Every other line is tolerated and listed.
//!
//! Follows: Cisco IOS 12.3 Configuration Fundamentals and IP Routing command references.
//! Differs: static routing alone; sub-interfaces are interfaces of their own.

use penstock_model::Diagnostic;
use std::net::Ipv4Addr;

/// One interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Name as written: `FastEthernet0/0`.
    pub name: String,
    /// Addresses with their prefix lengths, the primary one first.
    pub addresses: Vec<(Ipv4Addr, u8)>,
    /// `shutdown`.
    pub shutdown: bool,
    /// `hold-queue N out`, packets. IOS's default is 40.
    pub hold_queue_out: Option<u32>,
    /// Line it begins on.
    pub line: u32,
}

/// `ip route`: a static route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaticRoute {
    /// Network.
    pub network: Ipv4Addr,
    /// Prefix length.
    pub len: u8,
    /// Next hop.
    pub via: Option<Ipv4Addr>,
    /// Interface.
    pub interface: Option<String>,
    /// Administrative distance. Default 1.
    pub distance: u8,
    /// Line it stands on.
    pub line: u32,
}

/// A router's configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// `hostname`.
    pub hostname: Option<String>,
    /// Interfaces in order.
    pub interfaces: Vec<Interface>,
    /// Static routes in order.
    pub routes: Vec<StaticRoute>,
    /// Lines that were read and mean nothing here: number and text.
    pub ignored: Vec<(u32, String)>,
}

/// Reads a configuration as `show running-config` prints it. Indentation does not matter: an interface goes on until a
/// line that begins another section.
///
/// # Errors
/// Every malformed line, with IOS's own first line.
pub fn parse(text: &str) -> Result<Config, Vec<Diagnostic>> {
    let mut config = Config::default();
    let mut errors = Vec::new();
    let mut current: Option<usize> = None;
    for (i, raw) in text.lines().enumerate() {
        let number = i as u32 + 1;
        let line = raw.trim();
        if line.is_empty() {
            continue;
        }
        if line.starts_with('!') {
            current = None;
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match read(&mut config, &mut current, &words, number) {
            Ok(true) => {}
            Ok(false) => config.ignored.push((number, line.to_owned())),
            Err(fault) => {
                let at = fault.word.min(words.len() - 1);
                let column =
                    raw.find(line).unwrap_or(0) + words[..at].iter().map(|w| w.len() + 1).sum::<usize>();
                let len = words[at].chars().count() as u32;
                let d = Diagnostic::error(fault.message).at("", number, column as u32 + 1, len);
                errors.push(d.source(raw).help(fault.help));
            }
        }
    }
    if errors.is_empty() { Ok(config) } else { Err(errors) }
}

struct Fault {
    message: &'static str,
    word: usize,
    help: String,
}

fn fault<T>(message: &'static str, word: usize, help: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { message, word, help: help.into() })
}

const INVALID: &str = "% Invalid input detected at '^' marker.";
const INCOMPLETE: &str = "% Incomplete command.";

/// Reads one line; `false` where it means nothing here.
fn read(config: &mut Config, current: &mut Option<usize>, words: &[&str], line: u32) -> Result<bool, Fault> {
    match words {
        ["hostname", name, ..] => config.hostname = Some((*name).to_owned()),
        ["hostname"] => return fault(INCOMPLETE, 0, "hostname NAME"),
        ["interface"] => return fault(INCOMPLETE, 0, "interface NAME"),
        ["interface", rest @ ..] => {
            let name = rest.concat();
            let at = config.interfaces.iter().position(|i| i.name == name);
            *current = Some(at.unwrap_or(config.interfaces.len()));
            if at.is_none() {
                let (addresses, hold_queue_out) = (Vec::new(), None);
                config.interfaces.push(Interface { name, addresses, shutdown: false, hold_queue_out, line });
            }
        }
        ["ip", "route", rest @ ..] => {
            let route = static_route(rest, line)?;
            config.routes.push(route);
            *current = None;
        }
        ["ip", "address", rest @ ..] => {
            let Some(at) = *current else {
                return fault(INVALID, 1, "ip address belongs below an interface");
            };
            return address(config, at, rest, line);
        }
        ["no", "ip", "address", ..] => {
            let Some(at) = *current else {
                return fault(INVALID, 1, "no ip address belongs below an interface");
            };
            config.interfaces[at].addresses.clear();
        }
        ["shutdown"] | ["no", "shutdown"] => {
            let Some(at) = *current else { return Ok(false) };
            config.interfaces[at].shutdown = words.len() == 1;
        }
        ["hold-queue", packets, "out"] => {
            let Some(at) = *current else {
                return fault(INVALID, 0, "hold-queue belongs below an interface");
            };
            match packets.parse::<u32>() {
                Ok(n) if n <= 4096 => config.interfaces[at].hold_queue_out = Some(n),
                _ => return fault(INVALID, 1, "0 to 4096 packets"),
            }
        }
        ["line" | "router" | "voice-port" | "end", ..] => {
            *current = None;
            return Ok(false);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn mask_len(text: &str) -> Option<u8> {
    let mask = u32::from(text.parse::<Ipv4Addr>().ok()?);
    let len = mask.leading_ones();
    (mask.checked_shl(len).unwrap_or(0) == 0).then_some(len as u8)
}

fn address(config: &mut Config, at: usize, rest: &[&str], line: u32) -> Result<bool, Fault> {
    let (addr, mask) = match rest {
        ["dhcp" | "negotiated", ..] => return Ok(false),
        [addr, mask] | [addr, mask, "secondary"] => (addr, mask),
        [] | [_] => return fault(INCOMPLETE, rest.len() + 1, "ip address ADDRESS MASK"),
        _ => return fault(INVALID, 4, "ip address ADDRESS MASK [secondary]"),
    };
    let Ok(addr) = addr.parse::<Ipv4Addr>() else { return fault(INVALID, 2, "e.g. 10.3.31.77") };
    let Some(len) = mask_len(mask) else { return fault(INVALID, 3, "e.g. 255.255.255.0") };
    let host = u32::from(addr) & !(u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0));
    let all_ones = u32::MAX.checked_shr(u32::from(len)).unwrap_or(0);
    if len < 31 && (host == 0 || host == all_ones) {
        return fault("Bad mask for address", 2, "this is the network itself, or its broadcast address");
    }
    let overlap = config.interfaces.iter().enumerate().find(|(i, other)| {
        *i != at && other.addresses.iter().any(|&(a, l)| same_network(a, addr, l.min(len)))
    });
    if let Some((_, other)) = overlap {
        let help = format!("the network of {} holds this address too (line {line})", other.name);
        return fault("% Overlaps with another interface", 2, help);
    }
    let interface = &mut config.interfaces[at];
    if rest.len() == 3 || interface.addresses.is_empty() {
        interface.addresses.push((addr, len));
    } else {
        // A second primary address replaces the first.
        interface.addresses[0] = (addr, len);
    }
    Ok(true)
}

fn same_network(a: Ipv4Addr, b: Ipv4Addr, len: u8) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
    (u32::from(a) ^ u32::from(b)) & mask == 0
}

fn static_route(rest: &[&str], line: u32) -> Result<StaticRoute, Fault> {
    const FORM: &str = "ip route NETWORK MASK NEXT-HOP|INTERFACE [DISTANCE]";
    let [network, mask, to, more @ ..] = rest else { return fault(INCOMPLETE, rest.len() + 1, FORM) };
    let Ok(network) = network.parse::<Ipv4Addr>() else { return fault(INVALID, 2, FORM) };
    let Some(len) = mask_len(mask) else { return fault(INVALID, 3, "e.g. 255.255.255.0") };
    let keep = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
    if u32::from(network) & !keep != 0 {
        return fault("%Inconsistent address and mask", 2, "the network has bits outside its mask");
    }
    let via = to.parse::<Ipv4Addr>().ok();
    let mut interface = None;
    if via.is_none() {
        let named =
            to.starts_with(|c: char| c.is_ascii_alphabetic()) && to.contains(|c: char| c.is_ascii_digit());
        if !named {
            return fault(INVALID, 4, FORM);
        }
        interface = Some((*to).to_owned());
    }
    let mut route = StaticRoute { network, len, via, interface, distance: 1, line };
    for (i, word) in more.iter().enumerate() {
        match (word.parse::<u8>(), word.parse::<Ipv4Addr>()) {
            (Ok(d), _) if d > 0 => route.distance = d,
            (_, Ok(hop)) if route.via.is_none() => route.via = Some(hop),
            _ if matches!(*word, "permanent" | "name" | "tag" | "track") => break,
            _ => return fault(INVALID, 5 + i, FORM),
        }
    }
    Ok(route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_is_read() {
        let text = "hostname R1\n!\ninterface FastEthernet0/0\nip address 10.3.31.77 255.255.255.0\nduplex auto\n!\ninterface Serial0/0\n no ip address\n shutdown\n!\n\
            ip route 10.3.33.0 255.255.255.0 10.3.32.55\nend\n";
        let c = parse(text).unwrap();
        assert_eq!(c.hostname.as_deref(), Some("R1"));
        assert_eq!(c.interfaces[0].addresses, [(Ipv4Addr::new(10, 3, 31, 77), 24)]);
        assert!(!c.interfaces[0].shutdown && c.interfaces[1].shutdown);
        assert_eq!((c.routes[0].len, c.routes[0].via), (24, Some(Ipv4Addr::new(10, 3, 32, 55))));
        assert_eq!(c.ignored, [(5, "duplex auto".to_owned()), (12, "end".to_owned())]);
    }

    #[test]
    fn malformed_lines_have_their_place() {
        let check = |text: &str, line: u32, column: u32| {
            let e = parse(text).expect_err(text);
            assert_eq!((e.len(), e[0].line, e[0].column), (1, line, column), "{text}: {e:?}");
        };
        check("interface F0\n ip address 10.0.0.300 255.0.0.0", 2, 13);
        check("interface F0\nip address 10.0.0.3 255.0.255.0", 2, 21);
        check("ip route 10.0.0.1 255.0.0.0 1.2.3.4", 1, 10);
        check("ip route 10.0.0.0", 1, 10);
        check("ip address 10.0.0.1 255.0.0.0", 1, 4);
        check("interface F0\nip address 10.0.0.0 255.0.0.0", 2, 12);
        assert!(
            parse(
                "interface A0\nip address 10.0.0.1 255.0.0.0\ninterface A1\nip address 10.1.0.1 255.255.0.0"
            )
            .is_err()
        );
    }
}
