//! PS341 and PS342: slaves of bonds and ports of bridges.

use crate::facts::{Device, Facts, Step};
use crate::finding::{Found, Level, Rule, Say};

pub const RULES: &[Rule] = &[
    Rule {
        code: "PS341",
        severity: Level::Error,
        about: "a slave is given to the bond while it is up",
        why: "`bond_enslave` takes a device that is down alone: `Error: Device can not be enslaved while up.` The bond goes without this slave. `ip link set DEV down` before \
              `master`; the bond sets its slaves up itself. `ifenslave` does all of that.",
        find: up_slave,
    },
    Rule::warning(
        "PS342",
        "an address stands on a port of a bridge or on a slave of a bond",
        "What comes in by a port is the bridge's (`br_handle_frame`), and a bond's slave gives its packets to the bond. An address on the port makes a route by that port \
         alone: answers to hosts behind the others leave by the wrong one. The address belongs on the bridge, or on the bond.",
        port_address,
    ),
];

/// Those of later numbers.
pub const LATER: &[Rule] = &[Rule::warning(
    "PS352",
    "VLANs of a bridge that looks at none",
    "`bridge vlan add` writes which VLANs a port has, and the bridge asks it only with `vlan_filtering 1` (`br_allowed_ingress`): without, every port gets the frames of \
     all VLANs, and `pvid` tags nothing. `ip link set BRIDGE type bridge vlan_filtering 1`. bridge(8).",
    unfiltered,
)];

fn unfiltered(facts: &Facts, found: &mut Found) {
    if facts.source.holds(&["vlan_filtering"]) {
        return;
    }
    for (at, step) in facts.steps.iter().enumerate().filter(|s| s.1.ok() && s.1.program() == "bridge") {
        let Some(dev) = step.value(&["dev"]).filter(|_| step.has("vlan") && step.has("add")) else {
            continue;
        };
        let device = facts.devices.iter().find(|d| d.name == dev);
        let bridge = match device.and_then(|d| d.master.as_deref()) {
            Some(bridge) => bridge,
            None if step.has("self") => dev,
            None => continue,
        };
        let makes = |s: &Step| {
            of_ip(s, "link").is_some_and(|w| w.first().is_some_and(|v| v == "add"))
                && s.value(&["type"]) == Some("bridge")
                && s.has(bridge)
        };
        if facts.steps.iter().any(makes) {
            let reason = format!("{bridge} is made without `vlan_filtering 1`, and nothing sets that later.");
            let fix = format!("ip link set {bridge} type bridge vlan_filtering 1");
            found.at(at, "vlan", Say::new(format!("{bridge} does not look at VLANs"), reason, fix));
            return;
        }
    }
}

/// The object of `ip` that a command is about (`ip -4 link …`: `link`), and the words behind it.
fn of_ip<'a>(step: &'a Step, object: &str) -> Option<&'a [String]> {
    if step.program() != "ip" {
        return None;
    }
    let at = step.words.iter().skip(1).position(|w| !w.starts_with('-'))? + 1;
    let word = step.words[at].as_str();
    let is = object.starts_with(word) && !(object == "address" && word.is_empty());
    is.then(|| &step.words[at + 1..])
}

/// The device that `ip link set` changes, and the words of what becomes of it.
fn set(step: &Step) -> Option<(&str, &[String])> {
    let words = of_ip(step, "link")?;
    let (verb, rest) = words.split_first()?;
    if verb != "set" && verb != "s" {
        return None;
    }
    let rest = if rest.first().is_some_and(|w| w == "dev") { &rest[1..] } else { rest };
    let (dev, rest) = rest.split_first()?;
    Some((dev, rest))
}

/// Whether a device is a bond that the script makes by `ip link add`.
fn makes_bond(facts: &Facts, name: &str) -> bool {
    let makes = |s: &Step| {
        of_ip(s, "link").is_some_and(|w| w.first().is_some_and(|v| "add".starts_with(v.as_str())))
            && s.value(&["type"]) == Some("bond")
            && s.has(name)
    };
    facts.steps.iter().any(makes)
}

fn up_slave(facts: &Facts, found: &mut Found) {
    for (at, step) in facts.steps.iter().enumerate().filter(|s| s.1.guessed.is_none()) {
        let Some((dev, words)) = set(step) else { continue };
        let Some(bond) = words.iter().position(|w| w == "master").and_then(|n| words.get(n + 1)) else {
            continue;
        };
        // `ip link set DEV down master BOND` does both: the flags go first (`do_setlink`).
        if !makes_bond(facts, bond) || words.iter().any(|w| w == "down") {
            continue;
        }
        let sets = |s: &Step| -> Option<bool> {
            let by_ip = set(s).filter(|(d, _)| *d == dev).and_then(|(_, words)| {
                let last = words.iter().rfind(|w| matches!(w.as_str(), "up" | "down"))?;
                Some(last == "up")
            });
            let by_ifconfig = s.program() == "ifconfig" && s.words.get(1).is_some_and(|w| w == dev);
            by_ip.or_else(|| by_ifconfig.then(|| !s.has("down")))
        };
        let Some((before, true)) = facts.steps[..at].iter().rev().find_map(|s| Some((s, sets(s)?))) else {
            continue;
        };
        let reason = format!("Line {} has set {dev} up.", before.line);
        let fix = format!("ip link set {dev} down && {}", step.text());
        found.at(at, dev, Say::new("Error: Device can not be enslaved while up.", reason, fix));
    }
}

/// The bridge or bond that a device is a port of; a VRF's devices have addresses of their own.
fn master<'a>(facts: &'a Facts, device: &'a Device) -> Option<(&'a str, &'static str)> {
    let master = device.master.as_deref()?;
    let made = |kind: &str| {
        facts
            .steps
            .iter()
            .any(|s| s.program() == "ip" && s.has("add") && s.value(&["type"]) == Some(kind) && s.has(master))
    };
    let by_brctl = || facts.steps.iter().any(|s| s.program() == "brctl" && s.has(master));
    match () {
        () if made("bridge") || by_brctl() => Some((master, "bridge")),
        () if made("bond") => Some((master, "bond")),
        () => None,
    }
}

fn port_address(facts: &Facts, found: &mut Found) {
    for device in &facts.devices {
        let Some((master, kind)) = master(facts, device) else { continue };
        let name = device.name.as_str();
        // What a command takes away again, or moves, is not meant to stay.
        let takes = |s: &Step| {
            of_ip(s, "address")
                .is_some_and(|w| w.first().is_some_and(|v| matches!(v.as_str(), "del" | "delete" | "flush")))
                && s.has(name)
                || s.program() == "ifconfig" && s.has(name) && (s.has("0.0.0.0") || s.has("0"))
        };
        if facts.steps.iter().any(takes) {
            continue;
        }
        let gives = |s: &Step| -> Option<String> {
            let by_ip = of_ip(s, "address").and_then(|words| {
                let verb = words.first()?;
                let adds = matches!(verb.as_str(), "add" | "a" | "replace" | "r");
                let on = words.windows(2).any(|w| w[0] == "dev" && w[1] == name);
                let address =
                    words[1..].iter().find(|w| w.starts_with(|c: char| c.is_ascii_hexdigit() || c == ':'))?;
                (adds && on && !address.starts_with("fe80")).then(|| address.clone())
            });
            let by_ifconfig = || {
                let own = s.program() == "ifconfig" && s.words.get(1).is_some_and(|w| w == name);
                s.words.get(2).filter(|w| own && w.contains('.') && **w != "0.0.0.0").cloned()
            };
            by_ip.or_else(by_ifconfig)
        };
        for (at, step) in facts.steps.iter().enumerate().filter(|s| s.1.ok() && s.1.guessed.is_none()) {
            let Some(address) = gives(step) else { continue };
            let reason = format!("{name} belongs to {master}: what comes in by it is {master}'s.");
            let fix = step.with_word(name, master);
            let part = if kind == "bond" { "slave" } else { "port" };
            found.at(
                at,
                name,
                Say::new(format!("{address} is put on a {part} of the {kind} {master}"), reason, fix),
            );
        }
    }
}
