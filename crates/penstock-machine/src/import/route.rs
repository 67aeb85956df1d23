//! Routes and rules, from the text or the JSON of `ip route` and `ip rule`, as the words that make them.

use serde_json::Value;

/// Kinds of routes that a line may begin with.
const TYPES: [&str; 9] = [
    "unicast",
    "local",
    "broadcast",
    "multicast",
    "throw",
    "unreachable",
    "prohibit",
    "blackhole",
    "anycast",
];
/// What a route shows of its state, with a value; no command sets it.
const STATES: [&str; 8] = ["expires", "error", "pref", "hoplimit", "age", "used", "users", "ipid"];
/// The same without a value.
const MARKS: [&str; 8] =
    ["linkdown", "dead", "offload", "trap", "rt_offload", "rt_trap", "cache", "pervasive"];

/// Whether a line is a route of `ip route show`.
pub(super) fn is_route(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let first = words.next().unwrap_or_default();
    let dst = if TYPES.contains(&first) { words.next().unwrap_or_default() } else { first };
    let ip = dst.split('/').next().unwrap_or_default();
    (dst == "default" || ip.parse::<std::net::IpAddr>().is_ok())
        && words.any(|w| matches!(w, "dev" | "via" | "proto" | "scope" | "nexthop" | "metric" | "table"))
        || TYPES.contains(&first) && dst == "default"
}

/// Whether a line is a rule of `ip rule show`: `32766: from all lookup main`.
pub(super) fn is_rule(line: &str) -> bool {
    line.split_once(':').is_some_and(|(pref, rest)| {
        pref.parse::<u32>().is_ok() && rest.trim_start().split(' ').any(|w| w == "from")
    })
}

/// `ip route add …` for each route of a text that is not the kernel's own.
pub(super) fn of_text(text: &str) -> Vec<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        match lines.last_mut() {
            // The hops of a route over several ways stand below it.
            Some(last) if line.starts_with([' ', '\t']) => last.push_str(&format!(" {}", line.trim())),
            _ => lines.push(line.to_owned()),
        }
    }
    lines.iter().filter_map(|line| of_line(line)).collect()
}

fn of_line(line: &str) -> Option<Vec<String>> {
    let all: Vec<&str> = line.split_ascii_whitespace().collect();
    // The kernel makes routes of addresses, never one through a gateway; Proxmox' ifupdown2 calls its own `proto kernel` all the same.
    let kernels = all.windows(2).any(|w| w == ["proto", "kernel"]);
    if kernels && !all.contains(&"via")
        || all.windows(2).any(|w| w == ["table", "local"])
        || ["broadcast", "local", "anycast", "multicast"].contains(all.first()?)
    {
        return None;
    }
    let six = all.contains(&"pref");
    let mut words = Vec::new();
    let mut rest = all.iter();
    while let Some(&word) = rest.next() {
        if STATES.contains(&word) || kernels && word == "proto" {
            rest.next();
        } else if !MARKS.contains(&word) {
            words.push(word.to_owned());
        }
    }
    Some(command(words, six))
}

/// `ip route add` and the words; `-6` where one of them is an IPv6 address, or only a route of IPv6 shows what this one does (`pref`).
fn command(words: Vec<String>, six: bool) -> Vec<String> {
    let six = six
        || words.iter().any(|w| {
            w.contains(':') && w.split('/').next().is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok())
        });
    let start = if six { &["ip", "-6", "route", "add"][..] } else { &["ip", "route", "add"] };
    start.iter().map(|w| (*w).to_owned()).chain(words).collect()
}

/// The same of an object of `ip -j route show`.
pub(super) fn of_json(route: &Value) -> Option<Vec<String>> {
    let word = |key: &str| route.get(key).and_then(Value::as_str);
    // The kernel makes those itself when the address is given.
    if word("protocol") == Some("kernel") && word("gateway").is_none() {
        return None;
    }
    let mut words: Vec<String> =
        word("type").filter(|t| *t != "unicast").map(str::to_owned).into_iter().collect();
    words.push(word("dst").unwrap_or("default").to_owned());
    hop(route, &mut words);
    for (key, say) in [("prefsrc", "src"), ("table", "table"), ("scope", "scope")] {
        if let Some(value) = word(key) {
            words.extend([say.to_owned(), value.to_owned()]);
        }
    }
    if let Some(metric) = route.get("metric").and_then(Value::as_u64) {
        words.extend(["metric".to_owned(), metric.to_string()]);
    }
    for next in route.get("nexthops").and_then(Value::as_array).into_iter().flatten() {
        words.push("nexthop".to_owned());
        hop(next, &mut words);
        if let Some(weight) = next.get("weight").and_then(Value::as_u64) {
            words.extend(["weight".to_owned(), weight.to_string()]);
        }
    }
    Some(command(words, route.get("pref").is_some()))
}

/// Where a route, or one of its ways, goes.
fn hop(object: &Value, words: &mut Vec<String>) {
    let word = |key: &str| object.get(key).and_then(Value::as_str);
    let via = object.get("via").and_then(|v| v.get("host")).and_then(Value::as_str);
    for (value, say) in [(word("gateway").or(via), "via"), (word("dev"), "dev")] {
        if let Some(value) = value {
            words.extend([say.to_owned(), value.to_owned()]);
        }
    }
    let flags = object.get("flags").and_then(Value::as_array).into_iter().flatten();
    if flags.filter_map(Value::as_str).any(|f| f == "onlink") {
        words.push("onlink".to_owned());
    }
}

/// `ip rule add …` for each rule of a text but the three there always are.
pub(super) fn rules(text: &str) -> Vec<Vec<String>> {
    let each = text.lines().filter_map(|line| {
        let (pref, rest) = line.split_once(':')?;
        let pref = pref.trim();
        if matches!(pref, "0" | "32766" | "32767") {
            return None;
        }
        let start = ["ip", "rule", "add", "pref", pref].map(str::to_owned);
        // `[detached]` and `[unresolved]` are remarks; a rule of VRFs is made by a word of its own.
        let rest = rest.replace("lookup [l3mdev-table]", "l3mdev");
        let words = rest.split_ascii_whitespace().filter(|w| !w.starts_with('[')).map(str::to_owned);
        Some(start.into_iter().chain(words).collect())
    });
    each.collect()
}

/// The device that a command names.
pub(super) fn devices(words: &[String]) -> Vec<&str> {
    words
        .windows(2)
        .filter(|w| matches!(w[0].as_str(), "dev" | "iif" | "oif"))
        .map(|w| w[1].as_str())
        .collect()
}
