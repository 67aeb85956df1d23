//! PS004 of routes: a gateway that no route of the script reaches.

use crate::facts::{Facts, Step};
use std::net::IpAddr;

/// An address with its network's length, as `ip addr add` is given it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Given<'a> {
    dev: &'a str,
    addr: IpAddr,
    len: u8,
    /// The command's number.
    step: usize,
}

fn bits(addr: IpAddr) -> (u128, u8) {
    match addr {
        IpAddr::V4(a) => (u128::from(u32::from(a)) << 96, 32),
        IpAddr::V6(a) => (a.into(), 128),
    }
}

/// Whether two addresses agree in so many bits.
fn near(a: IpAddr, b: IpAddr, len: u8) -> bool {
    let ((a, all), (b, other)) = (bits(a), bits(b));
    all == other && (len == 0 || (a ^ b) >> (128 - u32::from(len)) == 0)
}

fn addresses(facts: &Facts) -> Vec<Given<'_>> {
    let mut all = Vec::new();
    for (at, step) in facts.steps.iter().enumerate() {
        let words = &step.words;
        let verb = words.iter().position(|w| matches!(w.as_str(), "add" | "a" | "replace"));
        let of_address = words.iter().take(4).any(|w| matches!(w.as_str(), "addr" | "address" | "a"));
        let found = match (step.program(), verb) {
            ("ip", Some(verb)) if of_address => {
                let one =
                    words[verb + 1..].iter().find(|w| w.contains(['.', ':']) && w.parse::<Net>().is_ok());
                one.zip(step.value(&["dev"]))
            }
            ("ifconfig", _) => {
                words.get(2).filter(|w| w.parse::<Net>().is_ok()).zip(words.get(1).map(String::as_str))
            }
            _ => None,
        };
        if let Some((word, dev)) = found
            && let Ok(Net { addr, len }) = word.parse()
        {
            // `ifconfig` takes the class's length, or that of `netmask`.
            let len = if step.program() == "ifconfig" && !word.contains('/') { 8 } else { len };
            all.push(Given { dev, addr, len, step: at });
        }
    }
    all
}

struct Net {
    addr: IpAddr,
    len: u8,
}

impl std::str::FromStr for Net {
    type Err = ();
    fn from_str(text: &str) -> Result<Net, ()> {
        let (addr, len) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let addr: IpAddr = addr.parse().map_err(drop)?;
        let whole = bits(addr).1;
        let len = len.map_or(Ok(whole), |l| l.parse().map_err(drop))?;
        if len > whole { Err(()) } else { Ok(Net { addr, len }) }
    }
}

//= linux v6.12 net/ipv4/fib_semantics.c fib_check_nh_v4_gw
/// Why the gateway of a refused route is not reached, and what to write; `None` where another command, or the machine itself, may have what reaches it.
pub(super) fn unreachable(facts: &Facts, step: &Step) -> Option<(String, String)> {
    let said = step.output.stderr.as_str();
    let refused = ["Nexthop has invalid gateway", "No route to host"].iter().any(|w| said.contains(w));
    let route = step.words.iter().take(4).any(|w| matches!(w.as_str(), "route" | "r" | "ro"));
    let adds = step.words.iter().any(|w| matches!(w.as_str(), "add" | "replace" | "append" | "a"));
    if !(refused && route && adds)
        || facts.source.is_hushed(step.line)
        || step.guessed.is_some()
        || facts.forced
    {
        return None;
    }
    let via: IpAddr = step.value(&["via"])?.parse().ok()?;
    let link_local = matches!(via, IpAddr::V6(a) if a.segments()[0] & 0xffc0 == 0xfe80);
    if link_local {
        return None;
    }
    let dev = step.value(&["dev"]);
    let all = addresses(facts);
    let of_family: Vec<&Given<'_>> =
        all.iter().filter(|g| g.addr.is_ipv4() == via.is_ipv4() && g.dev != "lo").collect();
    let own = |name: &str| !facts.foreign.contains(name);
    let addressed = |name: &str| of_family.iter().any(|g| g.dev == name);
    // Whether the script says all there is to say of how the gateway is reached.
    let known = match dev {
        Some(dev) => own(dev) || addressed(dev),
        None => {
            let close = of_family.iter().any(|g| near(g.addr, via, if via.is_ipv4() { 24 } else { 48 }));
            let cards = of_family.iter().any(|g| !own(g.dev));
            !facts.prefix.is_empty() || close || cards
        }
    };
    if !known || of_family.is_empty() {
        return None;
    }
    let covers = |g: &&&Given<'_>| near(g.addr, via, g.len) && dev.is_none_or(|d| d == g.dev);
    let at = facts.steps.iter().position(|s| std::ptr::eq(s, step)).unwrap_or(0);
    if let Some(given) = of_family.iter().find(covers) {
        if given.step > at {
            let line = facts.steps[given.step].line;
            let why = format!("The address whose network holds {via} is given later, in line {line}.");
            return Some((why, String::new()));
        }
        let up = facts.steps[..at].iter().any(|s| s.ok() && s.has(given.dev) && s.has("up"));
        if own(given.dev) && !up {
            let why = format!("{} is not up yet, and what is down reaches nothing.", given.dev);
            return Some((why, format!("ip link set dev {} up", given.dev)));
        }
        return None;
    }
    let listed: Vec<String> =
        of_family.iter().take(4).map(|g| format!("{}/{} on {}", g.addr, g.len, g.dev)).collect();
    let why = format!("No address reaches {via}: there is {}.", listed.join(", "));
    let instead = match dev {
        Some(_) => format!("{} onlink", step.text()),
        None => String::new(),
    };
    Some((why, instead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
        let of = |t: &str| t.parse::<IpAddr>().unwrap();
        assert!(near(of("10.0.0.1"), of("10.0.0.200"), 24) && !near(of("10.0.0.1"), of("10.0.1.1"), 24));
        assert!(
            near(of("2001:db8::1"), of("2001:db8::f"), 64) && !near(of("2001:db8::1"), of("10.0.0.1"), 0)
        );
        assert!("10.0.0.1/33".parse::<Net>().is_err());
    }
}
