//! Nonsense: no text makes a machine panic, and a command that fails has changed nothing.

use penstock_host::{Host, Prefix};
use penstock_lang::cisco;
use penstock_model::{Kernel, Time};
use proptest::prelude::*;

fn machine(kernel: Kernel) -> Host {
    let mut host = Host::new("u4", kernel, 1);
    for (dev, addr) in [("eth0", "10.3.31.77/24"), ("eth1", "10.3.34.22/24")] {
        let ifindex = host.add_device(dev);
        host.add_address(ifindex, Prefix::parse(addr).unwrap()).unwrap();
    }
    host.exec(include_str!("../../penstock-study/studies/virtual-lab/commands/10.1-marks.sh"), Time::ZERO);
    host
}

/// Words that commands are made of, most of them right somewhere.
const WORDS: &[&str] = &[
    "tc",
    "ip",
    "iptables",
    "sysctl",
    "sudo",
    "echo",
    "cat",
    "modprobe",
    "qdisc",
    "class",
    "filter",
    "add",
    "del",
    "change",
    "replace",
    "show",
    "dev",
    "eth0",
    "eth1",
    "eth9",
    "lo",
    "root",
    "parent",
    "handle",
    "1:",
    "1:1",
    "1:10",
    "20:",
    "htb",
    "sfq",
    "pfifo",
    "tbf",
    "prio",
    "u32",
    "fw",
    "rate",
    "ceil",
    "burst",
    "10mbit",
    "15k",
    "limit",
    "5",
    "default",
    "30",
    "protocol",
    "match",
    "ip",
    "src",
    "10.3.34.11",
    "10.0.0.1/24",
    "10.3.33.0/24",
    "flowid",
    "addr",
    "link",
    "route",
    "neigh",
    "set",
    "up",
    "down",
    "mtu",
    "1400",
    "68",
    "txqueuelen",
    "via",
    "10.3.31.1",
    "metric",
    "flush",
    "get",
    "lladdr",
    "02:00:00:00:00:01",
    "nud",
    "-t",
    "mangle",
    "filter",
    "-A",
    "-I",
    "-D",
    "-N",
    "-X",
    "-F",
    "-P",
    "-L",
    "-S",
    "-Z",
    "-E",
    "-R",
    "INSHAPER",
    "PREROUTING",
    "INPUT",
    "FORWARD",
    "POSTROUTING",
    "NEW",
    "-p",
    "tcp",
    "udp",
    "icmp",
    "--dport",
    "5001",
    "1:5",
    "-m",
    "mark",
    "--mark",
    "0",
    "-j",
    "MARK",
    "--set-mark",
    "10",
    "0x1/0x3",
    "DROP",
    "ACCEPT",
    "RETURN",
    "TOS",
    "--set-tos",
    "DSCP",
    "--set-dscp",
    "CLASSIFY",
    "--set-class",
    "!",
    "-i",
    "-o",
    "-s",
    "-d",
    "-v",
    "-n",
    "multiport",
    "--dports",
    "80,443",
    "-w",
    "net.ipv4.ip_forward=1",
    "net.ipv4.ip_forward",
    ">",
    "/proc/sys/net/ipv4/ip_forward",
    "1",
    "||",
    "true",
    ";",
    "&&",
    "-1",
    "4294967296",
    "99999999999999999999",
    "é",
    "\"",
    "'",
    "\\",
    "$X",
    "|",
    "#",
];

fn sentence() -> impl Strategy<Value = String> {
    let program = prop::sample::select(
        &[
            "tc",
            "ip",
            "iptables",
            "sysctl",
            "tc qdisc",
            "tc class",
            "tc filter",
            "ip addr",
            "ip route",
            "ip link set",
            "ip neigh",
            "iptables -t mangle",
        ][..],
    );
    let words = prop::collection::vec(prop::sample::select(WORDS), 0..10);
    (program, words).prop_map(|(program, words)| format!("{program} {}", words.join(" ")))
}

/// A right command with a word changed, left out or doubled.
fn nearly() -> impl Strategy<Value = String> {
    let right: Vec<&str> = [
        include_str!("../../penstock-study/studies/virtual-lab/commands/10.1-marks.sh"),
        include_str!("../../penstock-study/studies/virtual-lab/commands/07.4-prio.sh"),
        include_str!("../../penstock-study/studies/virtual-lab/commands/08.2-user-limits.sh"),
        "ip addr add 10.0.0.1/24 brd + dev eth0\nip route add 10.9.0.0/16 via 10.3.31.1 metric 3\nip link set dev eth0 mtu 1400 txqueuelen 10 up\n\
         ip neigh add 10.3.31.9 lladdr 02:00:00:00:00:09 dev eth0\nip route replace default via 10.3.34.1 dev eth1 src 10.3.34.22",
        "iptables -t mangle -R INSHAPER 2 -p udp -m multiport --sports 1,2:3 -j DSCP --set-dscp-class ef\niptables -t mangle -E INSHAPER OTHER\niptables -P FORWARD DROP\n\
         sysctl -w net.ipv4.ip_default_ttl=32",
    ]
    .into_iter()
    .flat_map(str::lines)
    .filter(|l| !l.starts_with('#'))
    .collect();
    let change = (any::<prop::sample::Index>(), prop::sample::select(WORDS), 0..4u8);
    (prop::sample::select(right), change).prop_map(|(line, (at, word, how))| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let at = at.index(words.len());
        match how {
            0 => words[at] = word,
            1 => {
                words.remove(at);
            }
            2 => words.insert(at, words[at]),
            _ => words.truncate(at + 1),
        }
        words.join(" ")
    })
}

/// Whether Linux keeps a part of such a command when the rest of it is refused.
fn keeps_a_part(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().skip_while(|w| *w == "sudo").collect();
    let any = |list: &[&str]| words.iter().any(|w| list.contains(w));
    match words.first().copied().unwrap_or_default() {
        // procps sets one after the other.
        "sysctl" => words.iter().skip(1).filter(|w| !w.starts_with('-')).count() > 1,
        // net-tools and bridge-utils: an ioctl for each word.
        "ifconfig" | "brctl" => true,
        // linux v6.12 net/core/rtnetlink.c do_setlink: "A link change request failed with some changes committed already."
        "ip" => any(&["set", "change"]) && words.iter().any(|w| "link".starts_with(*w)),
        // fq_change, fq_pie_change and gred_change take option after option; tcf_action_init action after action.
        "tc" => any(&["change", "replace"]) && any(&["fq", "fq_pie", "gred", "action", "actions"]),
        _ => false,
    }
}

fn check(line: &str) -> Result<(), TestCaseError> {
    for kernel in Kernel::ALL {
        let mut host = machine(kernel);
        let before = host.dump(Time::ZERO);
        let out = host.exec(line, Time::ZERO);
        if out.status != 0 {
            prop_assert!(
                !out.stderr.is_empty() || !out.diagnostics.is_empty() || line.contains("false"),
                "{line}: silent"
            );
            if !keeps_a_part(line) {
                prop_assert_eq!(&before, &host.dump(Time::ZERO), "{} {}", line, out.stderr);
            }
        }
        // Whatever it did, the machine still answers and says the same twice.
        prop_assert_eq!(host.dump(Time::ZERO), host.dump(Time::ZERO));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_survived(line in any::<String>()) {
        check(&line)?;
    }
    #[test]
    fn any_words_are_survived(line in sentence()) {
        check(&line)?;
    }
    #[test]
    fn nearly_right_commands_change_all_or_nothing(line in nearly()) {
        check(&line)?;
    }
    #[test]
    fn any_configuration_is_survived(text in "(interface|ip address|ip route|no|shutdown|hostname|10\\.0\\.0\\.1|255\\.0\\.0\\.0|x|!| |\n){0,20}") {
        if let Ok(config) = cisco::parse(&text) {
            let _ = Host::from_cisco("r", &config, 1);
        }
    }
}
