//! Words of `ip` that are a slip away from one of its own: part of PS004.

use crate::facts::{Facts, Step};

/// Whether a command is refused for want of a device that a command before it was to make, and that one's words were refused: its cause is said there.
pub(super) fn never_added(facts: &Facts, at: usize) -> bool {
    let said = facts.steps[at].output.stderr.lines().find_map(|l| l.split_once("Cannot find device \""));
    let Some(dev) = said.and_then(|s| s.1.split('"').next()) else { return false };
    let adds =
        |s: &Step| s.program() == "ip" && !s.ok() && s.has("add") && s.has(dev) && misspelt(s).is_some();
    facts.steps[..at].iter().any(adds)
}

/// What ip works on, what is done to it, words of devices and tunnels, and kinds of devices: words that all its versions know.
const OBJECTS: [&str; 10] =
    ["link", "addr", "address", "route", "rule", "neigh", "netns", "tunnel", "maddress", "monitor"];
const OPTIONS: [&str; 26] = [
    "dev",
    "name",
    "type",
    "link",
    "mtu",
    "master",
    "nomaster",
    "txqueuelen",
    "address",
    "lladdr",
    "metric",
    "via",
    "table",
    "peer",
    "local",
    "remote",
    "mode",
    "ttl",
    "id",
    "down",
    "numtxqueues",
    "scope",
    "broadcast",
    "label",
    "default",
    "parent",
];
const KINDS: [&str; 20] = [
    "dummy",
    "ifb",
    "veth",
    "vlan",
    "bridge",
    "bond",
    "macvlan",
    "macvtap",
    "ipvlan",
    "vxlan",
    "gretap",
    "ip6gre",
    "ipip",
    "ip6tnl",
    "wireguard",
    "geneve",
    "team",
    "vrf",
    "gre",
    "sit",
];

/// Of the words that a refusal lists (`words here: limit, flows, …`, `an htb class takes rate, ceil, …`), the one that another is a slip away from.
pub(super) fn listed<'a>(help: &'a str, word: &str) -> Option<&'a str> {
    let (_, known) = help.split_once("words here: ").or_else(|| help.split_once(" takes "))?;
    let most = if word.len() > 6 { 2 } else { 1 };
    let near = |k: &&str| (1..=most).contains(&strsim::damerau_levenshtein(k, word));
    let mut fits = known.split(", ").filter(near);
    let first = fits.next().filter(|_| word.len() > 2)?;
    // Of two it is not known which is meant.
    fits.next().is_none().then_some(first)
}

/// A word that ip refuses, and the one that it is a slip away from.
pub(super) fn misspelt(step: &Step) -> Option<(&str, &'static str)> {
    let said = step.output.stderr.lines().next()?;
    let near = |word: &str, known: &'static [&'static str]| {
        let one = |k: &&&str| strsim::damerau_levenshtein(k, word) == 1;
        known.iter().find(one).copied().filter(|_| word.len() > 2 && !known.contains(&word))
    };
    if said.starts_with("Object \"") {
        let word = said.split('"').nth(1)?;
        return Some((word, near(word, &OBJECTS)?));
    }
    if said.contains("Unknown device type") {
        let word = step.value(&["type"])?;
        return Some((step.words.iter().find(|w| *w == word)?, near(word, &KINDS)?));
    }
    let words = said.contains("\" is a garbage.")
        || said.contains(": unknown command \"")
        || said.starts_with("Error: duplicate \"");
    // A name may be anything.
    let is_name = |at: usize| {
        matches!(step.words[at - 1].as_str(), "dev" | "name" | "link" | "master" | "add" | "set" | "netns")
    };
    let first = |at: &usize| {
        !is_name(*at) || step.words.get(at + 1).is_some_and(|w| said.contains(&format!("\"{w}\"")))
    };
    let of = |at: usize| Some((step.words[at].as_str(), near(&step.words[at], &OPTIONS)?));
    if words { (3..step.words.len()).filter(first).find_map(of) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word() {
        let help = "words here: limit, flows, quantum, ce_threshold, ecn, noecn";
        assert_eq!(listed(help, "lmit"), Some("limit"));
        assert_eq!(listed(help, "ce_treshhold"), Some("ce_threshold"));
        assert_eq!(listed("an htb class takes rate, ceil, burst, cburst", "rat"), Some("rate"));
        assert_eq!(listed(help, "rate"), None);
        assert_eq!(listed(help, "necn"), None, "ecn or noecn");
        assert_eq!(listed("e.g. limit 100", "lmit"), None);
    }
}
