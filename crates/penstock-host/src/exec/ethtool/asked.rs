//! What `ethtool` asks of a card beyond its features: rings, interrupts, pause frames, channels, settings of the line.
//!
//! Follows: ethtool 6.1 `ethtool.c`, `netlink/{rings,coalesce,pause,channels,settings}.c`; devices that have no such thing answer as a dummy and a veth of Linux
//! 6.12.117 do.
//! Differs: a card here has what is said of it in an experiment. What a command would have it do that it does already is taken, and what it cannot do is
//! refused as not simulated.

use super::super::Ran;
use crate::{Host, Output};

/// A question: its options, its exit status where a device has no such thing, and what is said then.
struct Question {
    options: &'static [&'static str],
    exit: i32,
    said: &'static str,
}

const fn question_of(options: &'static [&'static str], exit: i32, said: &'static str) -> Question {
    Question { options, exit, said }
}

const NETLINK: &str = "netlink error: Operation not supported\n";
const NO_RULES: &str = "Cannot get RX rings: Operation not supported\n\
    rxclass: Cannot get RX class rule count: Operation not supported\nRX classification rule retrieval failed\n";
const NO_HASH: &str = "Cannot change RX network flow hashing options: Operation not supported\n";
const NO_RULE: &str =
    "rmgr: Cannot delete RX class rule: Operation not supported\nCannot delete classification rule\n";

const QUESTIONS: [Question; 24] = [
    question_of(&["-g", "--show-ring"], 1, NETLINK),
    question_of(&["-G", "--set-ring"], 81, NETLINK),
    question_of(&["-c", "--show-coalesce"], 1, NETLINK),
    question_of(&["-C", "--coalesce"], 1, NETLINK),
    question_of(&["-a", "--show-pause"], 1, NETLINK),
    question_of(&["-A", "--pause"], 76, NETLINK),
    question_of(&["-L", "--set-channels"], 1, NETLINK),
    question_of(&["-T", "--show-time-stamping"], 0, ""),
    question_of(&["-m", "--dump-module-eeprom", "--module-info"], 1, NETLINK),
    question_of(&["--show-eee"], 1, NETLINK),
    question_of(&["--set-eee"], 76, NETLINK),
    question_of(&["--show-fec"], 1, NETLINK),
    question_of(&["--set-fec"], 83, NETLINK),
    question_of(&["--show-priv-flags"], 1, NETLINK),
    question_of(&["--set-priv-flags"], 1, NETLINK),
    question_of(&["-n", "-u", "--show-nfc", "--show-ntuple"], 1, NO_RULES),
    question_of(&["-N", "--config-nfc"], 0, NO_HASH),
    question_of(&["-U", "--config-ntuple"], 1, NO_RULE),
    question_of(
        &["-x", "--show-rxfh-indir", "--show-rxfh"],
        1,
        "Cannot get RX ring count: Operation not supported\n",
    ),
    question_of(
        &["-X", "--set-rxfh-indir", "--rxfh"],
        1,
        "Cannot get RX ring count: Operation not supported\n",
    ),
    question_of(&["-r", "--negotiate"], 255, "Cannot restart autonegotiation: Operation not supported\n"),
    question_of(&["-p", "--identify"], 255, "Cannot identify NIC: Operation not supported\n"),
    question_of(&["-t", "--test"], 74, "Cannot test: Operation not supported\n"),
    question_of(&["-d", "--register-dump"], 74, "Cannot get register dump: Operation not supported\n"),
];

/// The place of an option in the list of questions.
pub(super) fn question(option: &str) -> Option<usize> {
    QUESTIONS.iter().position(|q| q.options.contains(&option))
}

pub(super) fn unsupported(exit: i32) -> Ran {
    Output::fail(NETLINK, exit, "")
}

/// A value that is none of a parameter's.
fn invalid(option: &str, name: &str, value: &str) -> Ran {
    Output::fail(format!("ethtool ({option}): invalid value '{value}' for parameter '{name}'\n"), 1, "")
}

/// Words in pairs, each of a parameter that there is and a value it may have.
fn pairs<'a>(option: &str, known: &[Known], words: &[&'a str]) -> Result<Vec<(&'static str, &'a str)>, Ran> {
    let mut found = Vec::new();
    for pair in words.chunks(2) {
        let Some((name, fits)) = known.iter().find(|k| k.0 == pair[0]) else {
            let names: Vec<&str> = known.iter().map(|k| k.0).collect();
            let said = format!("ethtool ({option}): unknown parameter '{}'\n", pair[0]);
            return Err(Output::fail(said, 1, &names.join(", ")));
        };
        match pair {
            [_, value] if fits(value) => found.push((*name, *value)),
            [_, value] => return Err(invalid(option, name, value)),
            _ => {
                let said = format!("ethtool ({option}): no value for parameter '{name}'\n");
                return Err(Output::fail(said, 1, ""));
            }
        }
    }
    Ok(found)
}

fn is_switch(value: &str) -> bool {
    matches!(value, "on" | "off")
}
fn is_number(value: &str) -> bool {
    value.parse::<u32>().is_ok()
}
fn is_hex(value: &str) -> bool {
    u64::from_str_radix(value.strip_prefix("0x").unwrap_or(value), 16).is_ok()
}
fn is_text(value: &str) -> bool {
    !value.is_empty()
}
fn is_duplex(value: &str) -> bool {
    matches!(value, "half" | "full")
}
fn is_port(value: &str) -> bool {
    matches!(value, "tp" | "aui" | "mii" | "fibre" | "bnc" | "da")
}
fn is_mdix(value: &str) -> bool {
    matches!(value, "auto" | "on" | "off")
}

/// What to do in place of a question.
fn instead(short: &str) -> &'static str {
    match short {
        "-G" => "what waits for the wire is in the qdisc; ring = N at a link's end is a card's own queue",
        "-A" => "no frame is paused on a link here: leave it out",
        "-L" => "tx_queues = N at a link's end gives a card several queues",
        "-C" => "a card here interrupts for each frame: leave it out",
        "-N" | "-U" | "-X" => "a host here has one processor: leave it out",
        _ => "leave it out",
    }
}

/// The questions that a card here does not answer, with what to do instead.
pub(in crate::exec) fn not_here() -> impl Iterator<Item = (String, &'static str)> {
    let answered = ["-T", "-a", "-r"];
    let asked = QUESTIONS.iter().map(|q| q.options[0]).filter(move |o| !answered.contains(o));
    asked.map(|o| (format!("ethtool {o}"), instead(o)))
}

type Known = (&'static str, fn(&str) -> bool);

const SETTINGS: [Known; 13] = [
    ("speed", is_number),
    ("lanes", is_number),
    ("duplex", is_duplex),
    ("port", is_port),
    ("mdix", is_mdix),
    ("autoneg", is_switch),
    ("advertise", is_hex),
    ("phyad", is_number),
    ("xcvr", is_text),
    ("wol", is_text),
    ("sopass", is_text),
    ("msglvl", is_text),
    ("master-slave", is_text),
];
const RINGS: [Known; 10] = [
    ("rx", is_number),
    ("rx-mini", is_number),
    ("rx-jumbo", is_number),
    ("tx", is_number),
    ("rx-buf-len", is_number),
    ("cqe-size", is_number),
    ("tcp-data-split", is_text),
    ("tx-push", is_switch),
    ("rx-push", is_switch),
    ("tx-push-buf-len", is_number),
];
const PAUSE: [Known; 3] = [("autoneg", is_switch), ("rx", is_switch), ("tx", is_switch)];
const CHANNELS: [Known; 4] =
    [("rx", is_number), ("tx", is_number), ("other", is_number), ("combined", is_number)];

impl Host {
    /// `ethtool -s`.
    pub(super) fn change_settings(&mut self, ifindex: u32, words: &[&str]) -> Ran {
        let pairs = match pairs("-s", &SETTINGS, words) {
            Ok(pairs) => pairs,
            Err(refused) => return refused,
        };
        let device = &mut self.devices[ifindex];
        if !device.class.kind.is_empty() {
            return if pairs.is_empty() { Output::default() } else { unsupported(75) };
        }
        if pairs.contains(&("duplex", "half")) {
            let instead = "a link of two ends sends both ways at once; one of more ends is a shared medium";
            return Output::not_simulated("ethtool -s … duplex half", instead);
        }
        let speed = pairs.iter().find(|p| p.0 == "speed").and_then(|p| p.1.parse().ok());
        device.speed_mbit = speed.or(device.speed_mbit);
        Output::default()
    }

    /// The rest of what is asked of a card.
    pub(super) fn ask_card(&mut self, ifindex: u32, option: &str, words: &[&str]) -> Ran {
        let Some(question) = question(option).map(|at| &QUESTIONS[at]) else { return unsupported(1) };
        let short = question.options[0];
        let instead = instead(short);
        let known: &[Known] = match short {
            "-G" => &RINGS,
            "-A" => &PAUSE,
            "-L" => &CHANNELS,
            _ => &[],
        };
        let pairs = match known {
            [] => Vec::new(),
            known => match pairs(short, known, words) {
                Ok(pairs) => pairs,
                Err(refused) => return refused,
            },
        };
        let device = &self.devices[ifindex];
        let name = &device.name;
        if short == "-T" {
            return Output::say(format!(
                "Time stamping parameters for {name}:\nCapabilities:\n\tsoftware-transmit\n\tsoftware-receive\n\tsoftware-system-clock\n\
                 PTP Hardware Clock: none\nHardware Transmit Timestamp Modes: none\nHardware Receive Filter Modes: none\n"
            ));
        }
        if !device.class.kind.is_empty() {
            return match (short, device.class.kind) {
                ("-L", "veth") => {
                    let has = |side: &str| if side == "tx" { device.queues.0 } else { device.queues.1 };
                    let fits = |p: &(&str, &str)| matches!(p.0, "rx" | "tx") && p.1.parse() == Ok(has(p.0));
                    if pairs.iter().all(fits) {
                        Output::default()
                    } else {
                        let said = "netlink error: requested channel count exceeds maximum (offset 32)\nnetlink error: Invalid argument\n";
                        Output::fail(
                            said,
                            1,
                            "numtxqueues and numrxqueues of ip link add say how many there may be",
                        )
                    }
                }
                _ => Output::fail(question.said, question.exit, ""),
            };
        }
        let queues = device.queues.0.to_string();
        let as_it_is = match short {
            "-A" => pairs.iter().all(|p| p.1 == "off" || p.0 == "autoneg"),
            "-L" => pairs.iter().all(|p| p.0 == "combined" && p.1 == queues),
            "-G" => words.is_empty(),
            "-r" => true,
            _ => false,
        };
        match short {
            _ if as_it_is => Output::default(),
            "-a" => Output::say(format!(
                "Pause parameters for {name}:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\toff\n\n"
            )),
            _ => Output::not_simulated(&format!("ethtool {option}"), instead),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Host;
    use penstock_model::{Kernel, Time};

    #[test]
    fn what_a_card_does_already_is_taken_and_the_rest_is_not_simulated() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        host.add_device("eth0");
        for line in [
            "ethtool -A eth0 rx off tx off",
            "ethtool -L eth0 combined 1",
            "ethtool -s eth0 speed 100 duplex full autoneg off",
            "ethtool -s eth0 wol d",
            "ethtool -r eth0",
            "ethtool -T eth0",
            "ethtool -a eth0",
            "ethtool -l eth0",
        ] {
            let out = host.exec(line, Time::ZERO);
            assert_eq!((out.status, out.stderr.as_str()), (0, ""), "{line}");
        }
        assert_eq!(host.ifindex("eth0").and_then(|i| host.device(i)?.speed_mbit), Some(100));
        for (line, what) in [
            ("ethtool -G eth0 rx 4096 tx 4096", "ethtool -G"),
            ("ethtool --set-ring eth0 rx 64", "ethtool --set-ring"),
            ("ethtool -C eth0 rx-usecs 0", "ethtool -C"),
            ("ethtool -A eth0 rx on", "ethtool -A"),
            ("ethtool -L eth0 combined 4", "ethtool -L"),
            ("ethtool -X eth0 equal 2", "ethtool -X"),
            ("ethtool -N eth0 rx-flow-hash udp4 sdfn", "ethtool -N"),
            ("ethtool -s eth0 duplex half", "ethtool -s … duplex half"),
            ("ethtool --set-eee eth0 eee off", "ethtool --set-eee"),
        ] {
            let out = host.exec(line, Time::ZERO);
            assert_eq!(out.unsimulated(), Some(what), "{line}");
            assert!(!out.diagnostics[0].help.is_empty(), "{line}");
        }
    }

    /// Answers of ethtool 6.1 on Linux 6.12.117.
    #[test]
    fn refusals_are_ethtools() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        host.exec("ip link add dummy0 type dummy", Time::ZERO);
        host.exec("ip link add va type veth peer name vb", Time::ZERO);
        for (line, status, said) in [
            ("ethtool -G dummy0 rx 64", 81, "netlink error: Operation not supported\n"),
            ("ethtool -G dummy0 foo 1", 1, "ethtool (-G): unknown parameter 'foo'\n"),
            ("ethtool -A va rx off tx off", 76, "netlink error: Operation not supported\n"),
            ("ethtool -s dummy0", 0, ""),
            ("ethtool -s dummy0 speed 100", 75, "netlink error: Operation not supported\n"),
            ("ethtool -s va foo 1", 1, "ethtool (-s): unknown parameter 'foo'\n"),
            ("ethtool -s va speed x", 1, "ethtool (-s): invalid value 'x' for parameter 'speed'\n"),
            (
                "ethtool -s va autoneg maybe",
                1,
                "ethtool (-s): invalid value 'maybe' for parameter 'autoneg'\n",
            ),
            ("ethtool -s va duplex", 1, "ethtool (-s): no value for parameter 'duplex'\n"),
            (
                "ethtool -L va combined 1",
                1,
                "netlink error: requested channel count exceeds maximum (offset 32)\nnetlink error: Invalid argument\n",
            ),
            ("ethtool -L va rx 1 tx 1", 0, ""),
            ("ethtool -x dummy0", 1, "Cannot get RX ring count: Operation not supported\n"),
            (
                "ethtool -Z dummy0",
                1,
                "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n",
            ),
        ] {
            let out = host.exec(line, Time::ZERO);
            assert_eq!((out.status, out.stderr.as_str()), (status, said), "{line}");
        }
    }
}
