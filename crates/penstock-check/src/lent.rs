//! What a script's machine is lent: devices that were there, numbers for names of users, a device where its name is unknown.

use crate::names::{is_name, named};
use penstock_host::Host;
use penstock_model::Time;

/// The file that `nft` or `iptables-restore` reads.
pub(crate) fn read_from(words: &[String]) -> &str {
    let file = words.iter().skip(1).rfind(|w| !w.starts_with('-'));
    let reads = !words[0].ends_with("nft") || words.iter().any(|w| w == "-f");
    file.filter(|_| reads).map_or("-", String::as_str)
}

/// The words with what stands for the unknown where a device's name is empty or missing behind `dev`; `None` where none is.
pub(crate) fn with_device(words: &[String], symbol: &str) -> Option<Vec<String>> {
    let at = words.iter().position(|w| w == "dev")? + 1;
    let mut out = words.to_vec();
    match words.get(at).map(String::as_str) {
        Some("") => symbol.clone_into(&mut out[at]),
        Some(
            "root" | "parent" | "handle" | "ingress" | "egress" | "clsact" | "classid" | "protocol" | "prio"
            | "pref",
        ) if words[0].ends_with("tc") => {
            out.insert(at, symbol.to_owned());
        }
        _ => return None,
    }
    Some(out)
}

/// Makes the devices a command names where they are not there.
pub(crate) fn lend_to(host: &mut Host, words: &[String]) {
    for name in named(words) {
        lend_one(host, &name);
    }
}

/// The words with a number for each user and group that `-m owner` asks for by name: the script's own machine has them. `None` where it asks for none.
pub(crate) fn owners(words: &[String]) -> Option<Vec<String>> {
    let named = |at: &usize| {
        let option = matches!(words[at - 1].as_str(), "--uid-owner" | "--gid-owner");
        option && words[*at].starts_with(|c: char| c.is_alphabetic() || c == '_')
    };
    let places: Vec<usize> = (1..words.len()).filter(named).collect();
    let mut words = words.to_vec();
    for at in &places {
        // A number for each name.
        let sum = words[*at].bytes().fold(0u32, |n, b| n.wrapping_mul(31).wrapping_add(u32::from(b)));
        words[*at] = (1000 + sum % 50_000).to_string();
    }
    (!places.is_empty()).then_some(words)
}

/// Makes a device where there is none of this name; whether it did.
pub(crate) fn lend_one(host: &mut Host, name: &str) -> bool {
    if host.ifindex(name).is_some() || !is_name(name) {
        return false;
    }
    match ["bridge", "bond", "ifb"].into_iter().find(|kind| name.starts_with(&kind[..2])) {
        Some(kind) if name.starts_with("br") || name.starts_with(kind) => {
            host.exec(&format!("ip link add {name} type {kind}"), Time::ZERO);
            host.exec(&format!("ip link set {name} up"), Time::ZERO);
        }
        _ => {
            host.add_device(name);
        }
    }
    true
}
