//! What the real programs give, against what we give: exit status, the first line of standard error and all of standard
//! output, word for word.
//!
//! `golden/*-*.txt` were recorded by `golden/record.py` from the scenes in the file before the dash: `iptables` and `aqm` on
//! Linux 6.12.117 (`aqm-2.6.35` from `aqm-old`, both with dummy devices), the others on Linux 6.18.44; the file's name says with which version of the program.

use penstock_host::{FileError, Files, Host, Output};
use penstock_model::{Kernel, Time};
use std::fmt::Write;

/// Standard input and nothing else.
struct Input(String);

impl Files for Input {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        if path == "-" { Ok(self.0.clone()) } else { Err(FileError::NotFound) }
    }
}

/// What a command gave, in the form of the recorded files.
fn told(line: &str, given: &str, out: &Output) -> String {
    let mut text = format!("$ {line}\n");
    for line in given.lines() {
        let _ = writeln!(text, "< {line}");
    }
    let _ = writeln!(text, "= {}", out.status);
    if let Some(first) = out.stderr.lines().next() {
        let _ = writeln!(text, "! {first}");
    }
    for line in out.stdout.lines().filter(|l| !l.starts_with("# Generated") && !l.starts_with("# Completed"))
    {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// Words as a shell makes them: quotes and backslashes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut any) = (Vec::new(), String::new(), None, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\'' | '"', None) => (quote, any) = (Some(c), true),
            ('\\', None | Some('"')) => word.extend(chars.next()),
            (' ', None) => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            _ => word.push(c),
        }
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    words
}

/// Hardware addresses by the order they come in: those nobody set are made up by each side.
fn masked(text: &str, seen: &mut Vec<String>) -> String {
    let is_mac = |w: &str| w.len() == 17 && w.split(':').filter(|p| p.len() == 2).count() == 6;
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) =
        rest.char_indices().map(|(i, _)| i).find(|&i| rest.get(i..i + 17).is_some_and(is_mac))
    {
        let (before, after) = (&rest[..at], &rest[at + 17..]);
        let mac = &rest[at..at + 17];
        out.push_str(before);
        let made_up =
            !mac.starts_with("02:00:00:00:00:") && mac != "ff:ff:ff:ff:ff:ff" && mac != "00:00:00:00:00:00";
        if made_up {
            let place = seen.iter().position(|s| s == mac).unwrap_or_else(|| {
                seen.push(mac.to_owned());
                seen.len() - 1
            });
            out.push_str(&format!("mac-{place}"));
        } else {
            out.push_str(mac);
        }
        rest = after;
    }
    out + rest
}

/// The kernel keeps neighbours in no order.
fn unordered(line: &str, text: String) -> String {
    if !(line.contains("ip n") && !line.contains("netns") || line.contains("arp ")) {
        return text;
    }
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Runs every scene on a machine that `make` gives.
fn check(golden: &str, make: fn() -> Host) {
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut host = make();
    let (mut our_macs, mut their_macs) = (Vec::new(), Vec::new());
    let mut lines = golden.lines().filter(|l| !l.starts_with('#')).peekable();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else {
            assert!(line.is_empty(), "not a command: {line}");
            host = make();
            (our_macs, their_macs) = (Vec::new(), Vec::new());
            continue;
        };
        let mut theirs = format!("{line}\n");
        let mut given = String::new();
        while let Some(more) = lines.next_if(|l| !l.is_empty() && !l.starts_with("$ ")) {
            theirs += &format!("{more}\n");
            if let Some(text) = more.strip_prefix("< ") {
                given += &format!("{text}\n");
            }
        }
        count += 1;
        let out = host.command(&words(command), &mut Input(given.clone()), Time::ZERO);
        let ours = told(command, &given, &out);
        let ours = unordered(line, masked(&ours, &mut our_macs));
        let theirs = unordered(line, masked(&theirs, &mut their_macs));
        if ours != theirs {
            wrong.push(format!("{theirs}-- we:\n{ours}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn router() -> Host {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    host.add_device("eth0");
    host.add_device("eth1");
    host
}

/// No devices but `lo`.
fn bare() -> Host {
    Host::new("r", Kernel::V6_12, 1)
}

#[test]
fn iptables_1_8_9_says_the_same() {
    check(include_str!("golden/iptables-1.8.9.txt"), router);
}

#[test]
fn saved_files_ip6tables_and_all_extensions_say_the_same() {
    check(include_str!("golden/netfilter-1.8.9.txt"), bare);
}

#[test]
fn ipset_7_17_says_the_same() {
    check(include_str!("golden/ipset-7.17.txt"), bare);
}

#[test]
fn iptables_1_8_9_says_the_same_of_routes_and_zones() {
    check(include_str!("golden/routes-1.8.9.txt"), bare);
}

#[test]
fn nft_1_0_6_says_the_same_of_fib_and_zones() {
    check(include_str!("golden/fib-1.0.6.txt"), router);
}

#[test]
fn ip6tables_1_8_9_and_nft_1_0_6_say_the_same_of_translation() {
    check(include_str!("golden/nat6-1.0.6.txt"), bare);
}

#[test]
fn nft_1_0_6_says_the_same() {
    check(include_str!("golden/nft-1.0.6.txt"), bare);
}

/// As `golden/machine.py` leaves it: IPv6 makes no address by itself.
fn just_started() -> Host {
    let mut host = Host::just_started("m", Kernel::V6_12, 1);
    for line in ["net.ipv6.conf.all.addr_gen_mode=1", "net.ipv6.conf.lo.disable_ipv6=1"] {
        assert_eq!(host.exec(&format!("sysctl -qw {line}"), Time::ZERO).status, 0, "{line}");
    }
    host
}

#[test]
fn ip_link_6_1_0_says_the_same() {
    check(include_str!("golden/ip-link-6.1.0.txt"), just_started);
}

#[test]
fn ip_6_1_0_says_the_same() {
    check(include_str!("golden/ip-6.1.0.txt"), just_started);
}

#[test]
fn ip_6_1_0_says_the_same_of_ipv6() {
    check(include_str!("golden/ip6-6.1.0.txt"), just_started);
}

#[test]
fn tc_6_1_0_says_the_same_of_queue_management() {
    check(include_str!("golden/aqm-6.1.0.txt"), router);
}

#[test]
fn tc_2_6_35_says_the_same_of_what_it_knew() {
    let old = || {
        let mut host = Host::new("r", Kernel::V2_6_35, 1);
        host.add_device("eth0");
        host
    };
    check(include_str!("golden/aqm-2.6.35.txt"), old);
}

#[test]
fn net_tools_2_10_ethtool_6_1_and_procps_4_0_2_say_the_same() {
    check(include_str!("golden/nettools-2.10.txt"), just_started);
}
