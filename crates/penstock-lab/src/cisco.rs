//! What an experiment must know of a Cisco configuration before it runs: which interfaces there are.

use penstock_host::{Host, Prefix};
use penstock_model::Diagnostic;
use std::net::Ipv4Addr;

/// An interface's name and its addresses with prefix lengths.
pub(crate) type Interface = (String, Vec<(Ipv4Addr, u8)>);

/// The interfaces of a configuration.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn interfaces(text: &str) -> Result<Vec<Interface>, Vec<Diagnostic>> {
    let mut found: Vec<Interface> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), found.last_mut()) {
            (["interface", name], _) => found.push(((*name).to_owned(), Vec::new())),
            (["ip", "address", address, mask, ..], Some((_, addresses))) => {
                let mask = mask.parse().map(|m: Ipv4Addr| u32::from(m).leading_ones() as u8);
                if let (Ok(address), Ok(len)) = (address.parse(), mask) {
                    addresses.push((address, len));
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Gives a machine the addresses and static routes of a configuration, and lets it forward.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn configure(host: &mut Host, text: &str) -> Result<(), Vec<Diagnostic>> {
    host.set_forwarding(true);
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["ip", "route", net, mask, via, ..] = words.as_slice() else { continue };
        let (Ok(net), Ok(mask), Ok(via)) = (net.parse(), mask.parse::<Ipv4Addr>(), via.parse()) else {
            continue;
        };
        let prefix = Prefix::new(net, u32::from(mask).leading_ones() as u8);
        if let Err(e) = host.add_route(prefix, via) {
            faults.push(Diagnostic::error(e.to_string()).at("", number, 1, 1).source(line));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}
