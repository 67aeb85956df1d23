//! What nobody knows before a script runs for real: arguments, files, answers of other programs. A number stands for it ([`symbol`]), which the script
//! carries through its own arithmetic; where a command needs something else at that place, it is given one.

use std::collections::BTreeSet;

/// The numbers that may stand for the unknown: the first that a text does not have in it.
const SYMBOLS: [&str; 6] = ["7301", "7307", "7309", "7321", "7331", "7333"];

/// An address for a place where one is needed.
const ADDRESS: &str = "192.0.2.73";
const ADDRESS6: &str = "2001:db8::73";

/// What stands for the unknown in a text.
pub(crate) fn symbol(text: &str) -> &'static str {
    SYMBOLS.into_iter().find(|s| !text.contains(s)).unwrap_or(SYMBOLS[0])
}

/// Whether a word is nothing but what stands for the unknown.
pub(crate) fn is_symbol(word: &str) -> bool {
    SYMBOLS.contains(&word)
}

/// What a command's unknown words were given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Guessed {
    /// The places of the words.
    pub words: BTreeSet<usize>,
    /// Whether more is unknown than devices and addresses: numbers, names of kinds.
    pub deep: bool,
    /// Whether what the command does at all is unknown: its kind, its verb.
    pub whole: bool,
    /// Whether all that is unknown beside devices and addresses is how much: rates, sizes, times, and options that were left out.
    pub measures: bool,
    /// The places of words that may be options or nothing: `cake $OPTIONS`.
    pub options: BTreeSet<usize>,
}

/// Whether the symbol stands in a word, and no digit beside it; of a class's number or a handle's its hexadecimal form too (`1:$(printf %x $N)`).
fn has(word: &str, symbol: &str) -> bool {
    let hex = || symbol.parse::<u32>().map_or(String::new(), |n| format!("{n:x}"));
    if word.contains(':') && word.rsplit(':').next().is_some_and(|p| p.len() == 4 && p == hex()) {
        return true;
    }
    word.match_indices(symbol).any(|(at, _)| {
        let beside = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        !beside(word[..at].chars().next_back()) && !beside(word[at + symbol.len()..].chars().next())
    })
}

/// Where the word behind a device's name is a name with the unknown in it (`ifb4$IFACE`): a variable held two names, and nobody knows which.
fn second_name(words: &[String], symbol: &str) -> Option<usize> {
    let at = words.iter().position(|w| w == "dev")? + 2;
    let word = words.get(at)?;
    (word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.contains(symbol)).then_some(at)
}

/// Words in front of what says how much.
const MEASURES: [&str; 16] = [
    "rate",
    "ceil",
    "bandwidth",
    "maxrate",
    "peakrate",
    "burst",
    "cburst",
    "latency",
    "delay",
    "quantum",
    "mtu",
    "overhead",
    "m1",
    "m2",
    "target",
    "interval",
];

/// The command with something at each unknown place; `None` where everything is known.
pub(crate) fn settled(words: &[String], symbol: &str, dev: &str) -> Option<(Vec<String>, Guessed)> {
    let second = second_name(words, symbol).filter(|_| words[0].rsplit('/').next() == Some("tc"));
    if second.is_none() && !words.iter().any(|w| has(w, symbol)) {
        return None;
    }
    let mut out = words.to_vec();
    let mut guessed = Guessed {
        words: second.into_iter().collect(),
        deep: second.is_some(),
        whole: second.is_some(),
        measures: second.is_none(),
        options: BTreeSet::new(),
    };
    let six = words[0].contains("ip6") || words.iter().any(|w| w == "ip6" || w == "-6" || w == "ipv6");
    let tc = words[0].rsplit('/').next() == Some("tc");
    let filter = words.iter().any(|w| w == "filter");
    for at in 0..words.len() {
        if !has(&words[at], symbol) {
            continue;
        }
        guessed.words.insert(at);
        let before = if at > 0 { words[at - 1].as_str() } else { "" };
        let address = if six { ADDRESS6 } else { ADDRESS };
        let rest = words[at].replacen(symbol, "", 1);
        let is_prefix = rest.is_empty() || rest.starts_with('/');
        let new = match before {
            "dev" | "-i" | "-o" | "--in-interface" | "--out-interface" | "oif" | "iif" | "indev"
            | "iifname" | "oifname" | "physdev" | "master" => Some(dev.to_owned()),
            "src" | "dst" | "src_ip" | "dst_ip" | "-s" | "-d" | "--source" | "--destination" | "via"
            | "local" | "remote" | "from" | "to" | "--src" | "--dst" | "saddr" | "daddr" | "nexthop"
            | "add" | "default"
                if is_prefix && !(before == "add" && tc) =>
            {
                Some(format!("{address}{}", if has(&rest, symbol) || rest == "/" { "/24" } else { &rest }))
            }
            "to-source" | "--to-source" | "--to-destination" => Some(address.to_owned()),
            "set" | "show" if words.get(1).is_some_and(|w| w.starts_with('l')) => Some(dev.to_owned()),
            _ => None,
        };
        if let Some(new) = new {
            out[at] = new;
            continue;
        }
        guessed.deep = true;
        let whole = words[at] == symbol;
        let optional = guessed.options.len();
        let new = match before {
            _ if !whole => None,
            "rate" | "ceil" | "bandwidth" | "maxrate" | "peakrate" => Some("10mbit"),
            "limit" if filter => None,
            "delay" | "latency" | "target" | "interval" => Some("10ms"),
            "loss" => Some("1%"),
            "protocol" => Some("ip"),
            "-p" | "--protocol" => Some("tcp"),
            "-j" | "--jump" => Some("ACCEPT"),
            "-t" | "--table" => Some("mangle"),
            "-A" | "-I" | "-D" | "--append" | "--insert" => Some("FORWARD"),
            "parent" | "classid" | "flowid" => Some("1:1"),
            "burst" | "cburst" | "mtu" | "quantum" | "prio" | "handle" | "limit" | "dport" | "sport"
            | "perturb" | "--dport" | "--sport" | "--set-mark" | "--mark" | "match" | "default" | "table"
            | "r2q" | "pref" | "fw" | "avpkt" | "min" | "max" | "tos" | "--set-dscp" | "port" | "mark"
            | "dst_port" | "src_port" | "flows" | "rtt" | "memlimit" | "buckets" | "numtxqueues"
            | "txqueuelen" | "id" => None,
            _ => {
                // A verb, a kind, a word of a kind's own: nothing can be said of the command.
                guessed.whole |= tc && !words[at - 1.min(at)].starts_with('-');
                if tc && at > 4 {
                    guessed.options.insert(at);
                }
                if at == 2 && tc { Some("add") } else { None }
            }
        };
        guessed.measures &= MEASURES.contains(&before) || guessed.options.len() > optional;
        if let Some(new) = new {
            out[at] = new.to_owned();
        }
    }
    Some((out, guessed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_get_what_their_place_needs() {
        let told = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let (words, guessed) = settled(&words, "7301", "eth0").unwrap();
            (words.join(" "), guessed.deep, guessed.whole)
        };
        let line = |text: &str, deep, whole| (text.to_owned(), deep, whole);
        assert_eq!(
            told("tc qdisc add dev 7301 root sfq"),
            line("tc qdisc add dev eth0 root sfq", false, false)
        );
        assert_eq!(
            told("tc class add dev eth0 parent 1: classid 1:7301 htb rate 7301mbit ceil 7301"),
            line("tc class add dev eth0 parent 1: classid 1:7301 htb rate 7301mbit ceil 10mbit", true, false)
        );
        assert_eq!(
            told("iptables -A FORWARD -s 7301/24 -i 7301 -j MARK --set-mark 7301"),
            line("iptables -A FORWARD -s 192.0.2.73/24 -i eth0 -j MARK --set-mark 7301", true, false)
        );
        let hex = line("tc class add dev eth0 parent 1: classid 1:1c85 htb rate 5mbit", true, false);
        assert_eq!(told("tc class add dev eth0 parent 1: classid 1:1c85 htb rate 5mbit"), hex);
        assert!(told("tc qdisc add dev eth0 root 7301 limit 5").2);
        assert!(told("tc qdisc del dev eth0 ifb47301 root").2);
        let known = ["tc", "qdisc", "add", "dport", "17301"].map(str::to_owned);
        assert_eq!(settled(&known, "7301", "eth0"), None);
        assert_eq!(symbol("port 7301"), "7307");
    }
}
