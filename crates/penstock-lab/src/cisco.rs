//! What an experiment must know of a Cisco configuration before it runs: which interfaces there are.

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
