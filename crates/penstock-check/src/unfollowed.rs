//! Matches and targets that iptables has and the machine here has not.
//!
//! A rule with one is carried out with a match of chance in the place of the match, so that jumps, marks and verdicts behind it stand as ways that a packet
//! may go, and none that all packets go; and that it was not followed is said.

use penstock_host::{FileError, Files};
use penstock_lang::iptables::{self, Action, Target};
use penstock_lang::token::Line;
use penstock_model::Kernel;

/// What stands for a match that is not followed.
const CHANCE: [&str; 6] = ["-m", "statistic", "--mode", "random", "--probability", "0.5"];

/// Targets of Linux's and iptables' own that the machine here does not have: their options are unknown to it.
pub(crate) const TARGETS: [&str; 17] = [
    "AUDIT",
    "CHECKSUM",
    "CLUSTERIP",
    "CONNSECMARK",
    "DNPT",
    "HMARK",
    "IDLETIMER",
    "LED",
    "NFLOG",
    "RATEEST",
    "SECMARK",
    "SET",
    "SNPT",
    "SYNPROXY",
    "TCPOPTSTRIP",
    "TEE",
    "TPROXY",
];

/// Options of a rule's own, and of the matches by protocol: what begins with another dash behind a match that is not known is that match's.
const GENERAL: [&str; 24] = [
    "--append",
    "--insert",
    "--protocol",
    "--proto",
    "--source",
    "--destination",
    "--src",
    "--dst",
    "--in-interface",
    "--out-interface",
    "--jump",
    "--goto",
    "--match",
    "--table",
    "--fragment",
    "--wait",
    "--dport",
    "--sport",
    "--destination-port",
    "--source-port",
    "--syn",
    "--tcp-flags",
    "--icmp-type",
    "--icmpv6-type",
];

/// A rule that can be carried out here, and what of it is not followed; `None` where that is nothing.
pub(crate) fn without(words: &[String], kernel: Kernel) -> Option<(Vec<String>, String)> {
    let mut out: Vec<String> = Vec::new();
    let mut left = Vec::new();
    let mut at = 0;
    let ends = |w: &str| w == "!" || w.starts_with('-') && (!w.starts_with("--") || GENERAL.contains(&w));
    while at < words.len() {
        let name = words.get(at + 1).map_or("", String::as_str);
        let plain = || !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let own = |from: usize| {
            let mut behind = from;
            let negated = |n: usize| words[n] == "!" && words.get(n + 1).is_some_and(|w| !ends(w));
            while behind < words.len() && (!ends(&words[behind]) || negated(behind)) {
                behind += 1;
            }
            behind
        };
        match words[at].as_str() {
            "-m" | "--match" if plain() && !is_known(&words[0], name, kernel) => {
                out.extend(CHANCE.map(str::to_owned));
                left.push(format!("-m {name}"));
                at = own(at + 2);
            }
            "-j" | "--jump" if TARGETS.contains(&name) && is_absent(&words[0], "-j", name, kernel) => {
                let behind = own(at + 2);
                let mark = words[at..behind].iter().position(|w| w == "--tproxy-mark");
                if let Some(mark) = mark.and_then(|n| words.get(at + n + 1)) {
                    out.extend(["-j", "MARK", "--set-xmark", mark].map(str::to_owned));
                }
                left.push(format!("-j {name}"));
                at = behind;
            }
            word => {
                out.push(word.to_owned());
                at += 1;
            }
        }
    }
    (!left.is_empty()).then(|| (out, left.join(" ")))
}

/// Whether there is no match (`-m`) or target (`-j`) of this name here: a jump to it is one to a chain.
fn is_absent(program: &str, option: &str, name: &str, kernel: Kernel) -> bool {
    let words = [program, "-A", "INPUT", option, name].map(str::to_owned);
    match iptables::parse(&Line::of_words(&words).words, kernel) {
        Ok(command) => match &command.action {
            Action::Append(_, rules, _) => {
                option == "-j" && rules.iter().any(|r| matches!(&r.target, Target::Jump(to) if to == name))
            }
            _ => false,
        },
        Err(refused) => refused.stderr.contains("Couldn't load"),
    }
}

/// Whether there is a match of this name here, or one that is nearly of this name, so that it is misspelt.
fn is_known(program: &str, name: &str, kernel: Kernel) -> bool {
    !is_absent(program, "-m", name, kernel) || misspelt(name).is_some()
}

/// The match that is meant by a name that no kernel has: one or two slips away.
pub(crate) fn misspelt(name: &str) -> Option<&'static str> {
    const OFTEN: [&str; 20] = [
        "multiport",
        "conntrack",
        "connmark",
        "comment",
        "connbytes",
        "connlimit",
        "hashlimit",
        "iprange",
        "length",
        "limit",
        "mark",
        "owner",
        "physdev",
        "recent",
        "state",
        "statistic",
        "string",
        "dscp",
        "addrtype",
        "pkttype",
    ];
    const ABSENT: [&str; 24] = [
        "ah",
        "bpf",
        "cgroup",
        "cluster",
        "connlabel",
        "dccp",
        "devgroup",
        "dst",
        "esp",
        "eui64",
        "hbh",
        "ipcomp",
        "ipp2p",
        "ipvs",
        "layer7",
        "mh",
        "nfacct",
        "osf",
        "quota2",
        "rateest",
        "rt",
        "sctp",
        "socket",
        "srh",
    ];
    let near =
        |known: &&&str| strsim::damerau_levenshtein(known, name) <= if known.len() > 6 { 2 } else { 1 };
    (!ABSENT.contains(&name) && !OFTEN.contains(&name)).then(|| OFTEN.iter().find(near).copied())?
}

/// A saved file with such rules, line by line.
pub(crate) fn without_in(text: &str, program: &str, kernel: Kernel) -> Option<(String, String)> {
    let mut all: Vec<String> = Vec::new();
    let line = |line: &str| {
        let begins = line.starts_with('-') || line.starts_with('[');
        let given = begins.then(|| penstock_lang::token::read(line, 1).ok()).flatten();
        let words = given.map(|l| l.words.iter().map(|w| w.text.clone()).collect::<Vec<_>>());
        let mut words = words.unwrap_or_default();
        words.insert(0, program.to_owned());
        match without(&words, kernel) {
            Some((words, left)) => {
                if !all.contains(&left) {
                    all.push(left);
                }
                Line::of_words(&words[1..]).source
            }
            None => line.to_owned(),
        }
    };
    let out: Vec<String> = text.lines().map(line).collect();
    (!all.is_empty()).then(|| (out.join("\n") + "\n", all.join(", ")))
}

/// Files, one of which holds another text.
pub(crate) struct Instead<'a> {
    pub files: &'a mut dyn Files,
    pub name: &'a str,
    pub text: &'a str,
}

impl Files for Instead<'_> {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        if path == self.name { Ok(self.text.to_owned()) } else { self.files.read(path) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_followed_goes_with_its_options_and_the_rest_stays() {
        let told = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            without(&words, Kernel::V6_12).map(|(words, left)| {
                (words.join(" ").replace("-m statistic --mode random --probability 0.5", "CHANCE"), left)
            })
        };
        let is = |line: &str, words: &str, left: &str| {
            assert_eq!(told(line), Some((words.to_owned(), left.to_owned())), "{line}");
        };
        is(
            "iptables -A PREROUTING -p tcp -m socket --transparent -j DIVERT",
            "iptables -A PREROUTING -p tcp CHANCE -j DIVERT",
            "-m socket",
        );
        is(
            "iptables -A OUTPUT -m cgroup ! --path a/b -m mark --mark 1 -j ACCEPT",
            "iptables -A OUTPUT CHANCE -m mark --mark 1 -j ACCEPT",
            "-m cgroup",
        );
        is(
            "iptables -t mangle -A PREROUTING -p tcp --dport 80 -j TPROXY --on-port 1 --tproxy-mark 0x1/0x1",
            "iptables -t mangle -A PREROUTING -p tcp --dport 80 -j MARK --set-xmark 0x1/0x1",
            "-j TPROXY",
        );
        is("ip6tables -A INPUT -m rt --rt-type 0 -j DROP", "ip6tables -A INPUT CHANCE -j DROP", "-m rt");
        is(
            "iptables -A INPUT -p tcp -j SYNPROXY --sack-perm --mss 1460",
            "iptables -A INPUT -p tcp",
            "-j SYNPROXY",
        );
        for line in [
            "iptables -A INPUT -m multipot --dports 1,2 -j DROP",
            "iptables -A INPUT -m conntrack --ctstate NEW -j DROP",
            "iptables -A INPUT -j MINE",
            "iptables -A INPUT -p tcp -j TEE --gateway 10.0.0.1",
            "iptables -A INPUT -j SET --add-set nowhere src",
        ] {
            assert_eq!(told(line), None, "{line}");
        }
        assert_eq!(misspelt("contrack"), Some("conntrack"));
        assert_eq!(misspelt("socket"), None);
        let text = "*mangle\n-A INPUT -m esp --espspi 5 -j DROP\nCOMMIT\n";
        let (text, left) = without_in(text, "iptables", Kernel::V6_12).unwrap();
        assert!(
            text.contains("\n-A INPUT -m statistic --mode random --probability 0.5 -j DROP\nCOMMIT\n"),
            "{text}"
        );
        assert_eq!(left, "-m esp");
    }
}
