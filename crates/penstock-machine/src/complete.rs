//! What may follow what has been typed, for the prompt: programs, tc's objects and verbs, devices, and the words of a kind with
//! what they mean.

use crate::live::{ABOUT, PING};
use penstock_host::Program;
use penstock_lang::tc::kinds::{KINDS, Kind, OptionWord};

/// A word that may stand next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The word.
    pub word: String,
    /// What it means, with what follows it; may be empty.
    pub about: String,
}

fn choice(word: &str, about: &str) -> Choice {
    Choice { word: word.to_owned(), about: about.to_owned() }
}

fn of_option(o: &OptionWord) -> Choice {
    let value = if o.value.is_empty() { String::new() } else { format!("{}: ", o.value) };
    Choice { word: o.word.to_owned(), about: format!("{value}{}", o.about) }
}

const OBJECTS: &[(&str, &str)] = &[
    ("qdisc", "what queues packets on a device"),
    ("class", "a part of a classful qdisc"),
    ("filter", "what sends packets to classes and actions"),
    ("chain", "a chain of filters"),
    ("actions", "actions by themselves"),
];
const VERBS: &[&str] = &["add", "change", "del", "replace", "show"];
const PLACES: &[(&str, &str)] = &[
    ("dev", "the device"),
    ("root", "directly on the device"),
    ("parent", "HANDLE: below this class or qdisc"),
    ("handle", "HANDLE: the name it gets, e.g. 1:"),
];
const FILTER_PLACES: &[(&str, &str)] = &[
    ("protocol", "ip, ipv6, all, …"),
    ("prio", "filters with lower numbers are asked first"),
    ("chain", "number of the chain"),
];
const IP_OBJECTS: &[&str] = &["addr", "link", "neigh", "netns", "route", "rule"];

/// The choices for the last word of a line, which may be empty or begun; `devices` are the machine's.
pub fn choices(line: &str, devices: &[String]) -> Vec<Choice> {
    let part = line.rsplit([';', '|', '&', '(', '{', '`', '\n']).next().unwrap_or(line);
    let opens = |w: &&str| ["do", "else", "if", "then", "until", "while", "!"].contains(w);
    let mut words: Vec<&str> = part.split_whitespace().skip_while(opens).collect();
    let begun = if part.ends_with(char::is_whitespace) { "" } else { words.pop().unwrap_or("") };
    let all = after(&words, devices);
    all.into_iter().filter(|c| c.word.starts_with(begun)).collect()
}

fn after(words: &[&str], devices: &[String]) -> Vec<Choice> {
    let Some(&program) = words.first() else {
        let tools = Program::tools().map(|p| choice(p.name, p.about));
        return tools.chain([choice(PING, ABOUT)]).collect();
    };
    if words.last() == Some(&"dev") {
        return devices.iter().map(|d| choice(d, "")).collect();
    }
    let plain: Vec<&str> = words[1..].iter().copied().filter(|w| !w.starts_with('-')).collect();
    match (program, plain.as_slice()) {
        ("tc", []) => OBJECTS.iter().map(|(w, about)| choice(w, about)).collect(),
        ("tc", [_]) => VERBS.iter().map(|w| choice(w, "")).collect(),
        ("tc", [object, _, rest @ ..]) => tc(object, rest),
        ("ip", []) => IP_OBJECTS.iter().map(|w| choice(w, "")).collect(),
        ("ip", [_]) => VERBS.iter().chain(&["set"]).map(|w| choice(w, "")).collect(),
        ("ip", _) => vec![choice("dev", "the device")],
        _ => Vec::new(),
    }
}

/// Words of a kind that stands among these, else places and kinds.
fn tc(object: &str, words: &[&str]) -> Vec<Choice> {
    let kind = words.iter().find_map(|w| KINDS.iter().find(|k| k.id == *w));
    let options = |kind: &Kind| match object {
        "class" => kind.class_words(),
        _ => kind.words(),
    };
    if let Some(kind) = kind {
        return options(kind).iter().map(of_option).collect();
    }
    let mut all: Vec<Choice> = PLACES.iter().map(|(w, about)| choice(w, about)).collect();
    match object {
        "class" => {
            all.push(choice("classid", "HANDLE: the name it gets, e.g. 1:10"));
            all.extend(KINDS.iter().filter(|k| !k.class_words().is_empty()).map(|k| choice(k.id, "")));
        }
        "filter" => all.extend(FILTER_PLACES.iter().map(|(w, about)| choice(w, about))),
        "qdisc" => all.extend(KINDS.iter().map(|k| choice(k.id, ""))),
        _ => {}
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, want: &[&str]) {
        let devices = ["lo", "eth0", "eth1"].map(str::to_owned);
        let got: Vec<String> = choices(line, &devices).into_iter().map(|c| c.word).collect();
        assert_eq!(got, want, "{line}");
    }

    #[test]
    fn what_may_follow() {
        check("ipt", &["iptables", "iptables-restore", "iptables-save"]);
        check("tc q", &["qdisc"]);
        check("for i in 1 2\ndo tc q", &["qdisc"]);
        check("if ! tc qdisc show dev l", &["lo"]);
        check("tc qdisc add dev e", &["eth0", "eth1"]);
        check("tc -s qdisc add dev eth0 root tb", &["tbf"]);
        check("tc qdisc add dev eth0 root tbf la", &["latency"]);
        check("tc class add dev eth0 parent 1: classid 1:1 htb cb", &["cburst"]);
        check("tc qdisc show | tc cl", &["class"]);
        check("echo ", &[]);
    }

    #[test]
    fn options_say_what_they_are() {
        let about = &choices("tc qdisc add dev eth0 root tbf rat", &[])[0].about;
        assert_eq!(about, "RATE: long-term rate, link headers included");
    }
}
