//! What a command line will do, told from its words alone: whether it surely changes nothing, whether it reads standard
//! input.

/// Whether a command surely changes nothing: it is then neither written down nor made to wait for others.
pub(super) fn only_shows(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str).skip_while(|w| *w == "sudo");
    let program = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let any = |list: &[&str]| rest.iter().any(|w| list.contains(w));
    match program.rsplit('/').next().unwrap_or_default() {
        name @ ("tc" | "ip" | "bridge") => iproute2(name, &rest),
        "iptables" | "ip6tables" => {
            let lists = ["-L", "-S", "--list", "--list-rules", "-h", "--help", "-V", "--version"];
            any(&lists) && !any(&["-Z", "--zero"])
        }
        "iptables-save" | "ip6tables-save" => true,
        "sysctl" => {
            let changes = |w: &&str| {
                w.contains('=') || w.starts_with("-w") || w.starts_with("-p") || w.starts_with("--")
            };
            !rest.iter().any(changes) && !any(&["-f"])
        }
        "cat" | "ls" => true,
        "nft" => rest.iter().find(|w| !w.starts_with('-')) == Some(&"list"),
        "ifconfig" | "route" | "arp" => {
            rest.iter().all(|w| w.starts_with('-') && w.len() == 2 && *w != "-s" && *w != "-d")
        }
        "ethtool" => match rest.as_slice() {
            [dev] => !dev.starts_with('-'),
            [flag, ..] => {
                ["-k", "-g", "-i", "-c", "-a", "-l", "-S"].contains(flag) || flag.starts_with("--show")
            }
            [] => true,
        },
        _ => false,
    }
}

/// Options of tc, ip and bridge that take a word of their own.
const WITH_VALUE: &[&str] =
    &["-n", "-netns", "-cf", "-conf", "-l", "-loops", "-f", "-family", "-rc", "-rcvbuf"];

/// `tc [flags] OBJECT [VERB …]`: without a verb it shows. Abbreviations differ from object to object (`tc qdisc l` is `link`);
/// only those that mean one thing everywhere count.
fn iproute2(name: &str, rest: &[&str]) -> bool {
    const SHOWS: &[&str] = &["show", "sho", "sh", "list", "lis", "lst", "ls", "get", "help"];
    let mut plain = Vec::new();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if plain.is_empty() && word.starts_with('-') {
            let word = if word.starts_with("--") { &word[1..] } else { word };
            // For tc, -f is -force; it stands with -batch only.
            if word.starts_with("-b") && !word.starts_with("-br") || name == "tc" && word.starts_with("-f") {
                return false;
            }
            if WITH_VALUE.contains(&word) {
                words.next();
            }
        } else {
            plain.push(*word);
        }
    }
    match plain.as_slice() {
        [] => true,
        [object, ..] if "monitor".starts_with(object) || "exec".starts_with(object) => false,
        [_] => true,
        [_, verb, ..] => SHOWS.contains(verb) || name == "tc" && *verb == "s",
    }
}

/// Whether a command reads its standard input to the end.
pub(super) fn standard_input(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).skip_while(|w| *w == "sudo").collect();
    let [program, rest @ ..] = words.as_slice() else { return false };
    let named = |flag: &dyn Fn(&str) -> bool| rest.windows(2).any(|pair| flag(pair[0]) && pair[1] == "-");
    match program.rsplit('/').next().unwrap_or_default() {
        "tc" | "ip" | "bridge" => {
            let batch = |w: &str| w.trim_start_matches('-').starts_with('b') && w.starts_with('-');
            named(&batch) || rest.last().is_some_and(|w| batch(w))
        }
        "iptables-restore" | "ip6tables-restore" => {
            let options = ["-T", "--table", "-M", "--modprobe", "-w", "--wait"];
            let mut before = "";
            !rest.iter().any(|w| {
                let file = !w.starts_with('-') && !options.contains(&before);
                before = w;
                file
            })
        }
        "nft" => named(&|w| w == "-f" || w == "--file"),
        "sysctl" => named(&|w| w.starts_with("-p") || w == "-f" || w.starts_with("--load")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_only_shows_is_known() {
        for text in [
            "tc qdisc",
            "tc qdisc show",
            "tc -s -d qdisc ls dev eth0",
            "tc class list dev eth0",
            "tc -j filter sh dev eth0",
            "tc qdisc help",
            "tc",
            "ip addr",
            "ip -br link show",
            "ip route get 10.0.0.1",
            "iptables -t mangle -L -n -v",
            "iptables -S",
            "sysctl net.ipv4.ip_forward",
            "sysctl -a",
            "iptables-save -c",
            "ifconfig -a",
            "route -n",
            "ip -4 -o addr show dev eth0",
            "tc -n blue qdisc show",
            "ethtool -k eth0",
        ] {
            assert!(only_shows(&words(text)), "{text}");
        }
        for text in [
            "tc qdisc add dev eth0 root pfifo",
            "tc q a dev eth0 root pfifo",
            "tc qdisc del dev eth0 root",
            "tc -batch file",
            "ip addr add 10.0.0.1/24 dev eth0",
            "iptables -t mangle -F",
            "iptables -L -Z",
            "sysctl -w net.ipv4.ip_forward=1",
            "sysctl net.ipv4.ip_forward=1",
            "tc qdisc replace dev eth0 root sfq",
            "tc q l dev eth0 root sfq limit 5",
            "tc -n blue qdisc add dev eth0 root sfq",
            "ip link s eth0 up",
            "ip netns exec blue tc qdisc show",
            "ip -b -",
            "nft -f rules",
            "iptables-restore",
            "ifconfig eth0 up",
            "ethtool -K eth0 tso off",
            "modprobe ifb",
        ] {
            assert!(!only_shows(&words(text)), "{text}");
        }
    }

    #[test]
    fn who_reads_standard_input_is_known() {
        for text in [
            "tc -b -",
            "tc -force -batch -",
            "ip -b -",
            "iptables-restore",
            "iptables-restore -n -T mangle",
            "nft -f -",
            "sysctl -p -",
        ] {
            assert!(standard_input(&words(text)), "{text}");
        }
        for text in ["tc -b file", "tc qdisc", "iptables-restore rules", "nft -f rules", "iptables -A x -j y"]
        {
            assert!(!standard_input(&words(text)), "{text}");
        }
    }
}
