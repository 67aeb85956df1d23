//! The devices of `[host.NAME]`: every key that is not one of the host's own, and `[host.NAME.device]` for any name whatever.

use super::Builder;
use super::forms;
use super::read::{self, Faults, Table, Val};
use super::source::meant;
use super::spec::{Device, Host};
use penstock_model::ifname;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use toml::de::DeValue;

/// What a device's table may hold.
const KEYS: [&str; 4] = ["address", "mtu", "txqueuelen", "capture"];

/// A device as the file has it.
struct Found<'a> {
    name: String,
    key: Range<usize>,
    value: Val<'a>,
    /// Whether the name is meant to the letter, `@` included.
    exact: bool,
}

/// Reads the devices of a host: what is left when the host's own keys are taken.
pub(super) fn read(host: &mut Host, table: &mut Table<'_>, faults: &mut Faults<'_>) {
    let mut found = Vec::new();
    let known = table.known().to_vec();
    for (name, key, value) in table.rest() {
        // A table of devices; anything else is a device that is called so.
        if let (DeValue::Table(_), "device") = (value.get_ref(), name.as_str()) {
            table.took(key);
            let Some(mut devices) = Table::of(value, "device", &forms::CARDS, faults) else { continue };
            let all = devices.take_all(|_| true);
            found.extend(all.into_iter().map(|(name, key, value)| Found { name, key, value, exact: true }));
            continue;
        }
        // A device for certain, whatever its name is like?
        let sure = likely(&name, value, true);
        let typo = !sure && meant(&name, &known).is_some();
        match sure || likely(&name, value, typo) {
            true => {
                table.took(key.clone());
                found.push(Found { name, key, value, exact: false });
            }
            // A word that nearly is a key of the host is faulted with the others.
            false if typo => {}
            false => {
                table.took(key.clone());
                let help = format!(
                    "there are {}; a device stands with its addresses: {} = \"10.0.0.1/24\"",
                    known.join(", "),
                    penstock_lang::toml::key(&name)
                );
                faults.add(key, format!("[host.{}] has no key \"{name}\"", host.name), help);
            }
        }
    }
    // The order of the file is that of the interface indices.
    found.sort_by_key(|f| f.key.start);
    let mut places: BTreeMap<String, usize> =
        host.devices.iter().enumerate().map(|(at, d)| (d.name.clone(), at)).collect();
    for Found { name, key, value, exact } in found {
        let Some(name) = called(host, &name, exact, &key, faults) else { continue };
        let have = places.get(&name).copied();
        if have.is_some_and(|at| host.devices[at].place.source == faults.index) {
            let message = format!("[host.{}] has the device \"{name}\" twice", host.name);
            faults.add(key, message, "write its addresses as a list: [\"10.0.0.1/24\", \"10.0.1.1/24\"]");
            continue;
        }
        let mut device = Device { name, place: faults.place(key), ..Device::default() };
        read_device(&mut device, value, faults);
        match have {
            Some(at) => host.devices[at] = device,
            None => {
                places.insert(device.name.clone(), host.devices.len());
                host.devices.push(device);
            }
        }
    }
}

/// Whether a key that is none of the host's is a device. `typo`: it is close to one of the host's.
fn likely(name: &str, value: Val<'_>, typo: bool) -> bool {
    let address = |v: Val<'_>| {
        let text = v.get_ref().as_str()?;
        let alone = || !typo && text.parse::<IpAddr>().is_ok();
        Some(read::parse_prefix(text).is_some() || alone())
    };
    match value.get_ref() {
        DeValue::Table(table) => !typo || table.keys().any(|k| KEYS.contains(&&**k.get_ref())),
        DeValue::Array(items) if items.is_empty() => !typo,
        DeValue::Array(_) | DeValue::String(_) => {
            let numbered = !typo && name.contains(|c: char| c.is_ascii_digit());
            numbered || read::list(value).into_iter().any(|v| address(v) == Some(true))
        }
        _ => false,
    }
}

/// The name a device has in the machine; `None` with a fault where it can have none.
fn called(
    host: &Host,
    name: &str,
    exact: bool,
    key: &Range<usize>,
    faults: &mut Faults<'_>,
) -> Option<String> {
    let name = match ifname::shown(name).filter(|_| !exact) {
        // The other end of a pair, somewhere else: what a link's end is.
        Some((dev, peer)) if is_number(peer) => dev,
        Some((dev, peer)) => {
            let kind =
                if peer == "NONE" { "a tunnel".to_owned() } else { format!("a device on top of {peer}") };
            let message = format!(
                "[host.{}]: \"{name}\" is how ip shows {kind}, which carries no packets here yet",
                host.name
            );
            let help = format!(
                "write {} = … for a card of that name; a name that holds \"@\" is below [host.{}.device]",
                penstock_lang::toml::key(dev),
                host.name
            );
            faults.add(key.clone(), message, help);
            return None;
        }
        None => name,
    };
    if let Err(fault) = ifname::check(name) {
        let message = format!("[host.{}]: a device cannot be called \"{name}\": {fault}", host.name);
        faults.add(key.clone(), message, format!("of ip link add: {}", fault.in_ips_words(name)));
        return None;
    }
    Some(name.to_owned())
}

/// `if5`: the index of a device in another namespace.
pub(super) fn is_number(peer: &str) -> bool {
    let digits = peer.strip_prefix("if").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// `"10.0.0.1/24"`, a list of such, or `{ address, mtu, txqueuelen, capture }`.
fn read_device(device: &mut Device, value: Val<'_>, faults: &mut Faults<'_>) {
    let name = device.name.clone();
    if !value.get_ref().is_table() {
        addresses(&name, value, device, faults);
        return;
    }
    let Some(mut table) = Table::of(value, name.clone(), &forms::DEVICE, faults) else { return };
    if let Some(value) = table.take("address") {
        addresses("address", value, device, faults);
    }
    let mut number = |key, range| {
        let value = table.take(key)?;
        read::integer(key, value, range, faults).map(|n| n as u32)
    };
    device.mtu = number("mtu", 68..65_536);
    device.txqueuelen = number("txqueuelen", 0..u64::from(u32::MAX));
    device.capture = table.take("capture").and_then(|v| read::boolean("capture", v, faults)).unwrap_or(false);
    for (part, key, value) in table.rest() {
        // `eth0.100 = …` is a table of TOML.
        if meant(&part, &KEYS).is_none() && likely(&part, value, false) {
            table.took(key.clone());
            let whole = penstock_lang::toml::key(&format!("{name}.{part}"));
            let message = format!("{name} has no key \"{part}\"");
            faults.add(
                key,
                message,
                format!("a name with a dot is written in quotes: {whole} = \"10.0.0.1/24\""),
            );
        }
    }
    table.finish(faults);
}

fn addresses(key: &str, value: Val<'_>, device: &mut Device, faults: &mut Faults<'_>) {
    for value in read::list(value) {
        match read::prefix(key, value, faults) {
            Some((IpAddr::V4(address), len)) => {
                device.addresses.push((address, len));
                let (own, hosts) = (u32::from(address), u32::MAX.checked_shr(len.into()).unwrap_or(0));
                let (what, fix) = match own & hosts {
                    0 => ("the network", own | 1),
                    all if all == hosts => ("everybody in its network", own - 1),
                    _ => continue,
                };
                // A network of two, or of one, has no such addresses.
                if len <= 30 {
                    let fix = Ipv4Addr::from(fix);
                    faults.add(
                        value.span(),
                        format!("{key}: {address}/{len} stands for {what}, not for a machine"),
                        format!("write e.g. {} = \"{fix}/{len}\"", penstock_lang::toml::key(key)),
                    );
                }
            }
            Some((IpAddr::V6(address), len)) => device.addresses6.push((address, len)),
            None => {}
        }
    }
}

impl Builder<'_> {
    /// The device of a machine that `dev` names: exactly, or as ip shows it, `wan@if5` for `wan`.
    pub(super) fn device_meant(&mut self, host: &str, dev: &str) -> String {
        let Some(machine) = self.known_host(host) else { return dev.to_owned() };
        let is = |name: &str| machine.devices.iter().any(|d| d.name == name);
        match ifname::shown(dev) {
            Some((plain, peer)) if is_number(peer) && !is(dev) && is(plain) => plain.to_owned(),
            _ => dev.to_owned(),
        }
    }
}
