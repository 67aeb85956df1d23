//! `ethtool`: features, speed and the driver of a card.
//!
//! Follows: ethtool 6.1 `ethtool.c`, `netlink/features.c`, `netlink/settings.c`; its answers on a veth and a dummy of Linux 6.12.117.
//! Differs: `tso` and `gso` have TCP make super-packets (see [`crate::GsoLimits`]); of the others that join packets [`not_followed`] tells before a run; the rest
//! are noted and change nothing. Those listed are the ones shaping scripts turn off.

pub(super) mod asked;

use super::Ran;
use crate::{Host, NetDevice, Output};
use penstock_lang::token::Line;
use penstock_model::Kernel;
use std::fmt::Write;

/// Features: the long name, the short one of `-K`, whether it is on at first.
const FEATURES: [(&str, &str, bool); 13] = [
    ("rx-checksumming", "rx", true),
    ("tx-checksumming", "tx", true),
    ("scatter-gather", "sg", true),
    ("tcp-segmentation-offload", "tso", true),
    ("generic-segmentation-offload", "gso", true),
    ("generic-receive-offload", "gro", true),
    ("large-receive-offload", "lro", false),
    ("rx-vlan-offload", "rxvlan", true),
    ("tx-vlan-offload", "txvlan", true),
    ("ntuple-filters", "ntuple", false),
    ("receive-hashing", "rxhash", false),
    ("tx-udp-segmentation", "tx-udp-segmentation", true),
    ("udp-fragmentation-offload", "ufo", false),
];

/// The other features of Linux 6.12 (`netdev_features_strings`): off at first, and not listed.
const MORE: [&str; 56] = [
    "esp-hw-offload",
    "esp-tx-csum-hw-offload",
    "highdma",
    "hsr-dup-offload",
    "hsr-fwd-offload",
    "hsr-tag-ins-offload",
    "hsr-tag-rm-offload",
    "hw-tc-offload",
    "l2-fwd-offload",
    "loopback",
    "macsec-hw-offload",
    "rx-all",
    "rx-checksum",
    "rx-fcs",
    "rx-gro",
    "rx-gro-hw",
    "rx-gro-list",
    "rx-hashing",
    "rx-lro",
    "rx-ntuple-filter",
    "rx-udp-gro-forwarding",
    "rx-udp_tunnel-port-offload",
    "rx-vlan-filter",
    "rx-vlan-hw-parse",
    "rx-vlan-stag-filter",
    "rx-vlan-stag-hw-parse",
    "tls-hw-record",
    "tls-hw-rx-offload",
    "tls-hw-tx-offload",
    "tx-checksum-fcoe-crc",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-checksum-sctp",
    "tx-esp-segmentation",
    "tx-fcoe-segmentation",
    "tx-generic-segmentation",
    "tx-gre-csum-segmentation",
    "tx-gre-segmentation",
    "tx-gso-list",
    "tx-gso-partial",
    "tx-gso-robust",
    "tx-ipxip4-segmentation",
    "tx-ipxip6-segmentation",
    "tx-nocache-copy",
    "tx-scatter-gather",
    "tx-scatter-gather-fraglist",
    "tx-sctp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-tunnel-remcsum-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-udp_tnl-segmentation",
    "tx-vlan-stag-hw-insert",
];

/// Why nothing follows here from a feature that has segments or datagrams travel together as one; `None` where what follows on Linux does.
pub(crate) fn not_followed(feature: &str, kernel: Kernel) -> Option<&'static str> {
    let ends = ["-segmentation-offload", "-receive-offload", "-segmentation", "-fragmentation-offload"];
    let joins = ["rx-gro", "rx-lro", "rx-udp-gro"].iter().any(|begin| feature.starts_with(begin));
    match feature {
        "tcp-segmentation-offload" | "generic-segmentation-offload" if kernel >= Kernel::V6_12 => None,
        "tcp-segmentation-offload" | "generic-segmentation-offload" => {
            Some("TCP of this kernel makes no super-packets here")
        }
        _ if joins || feature.ends_with("-receive-offload") => {
            Some("frames are taken one by one as they come, and none is joined to another")
        }
        _ => ends.iter().any(|end| feature.ends_with(end)).then_some("each datagram is a packet of its own"),
    }
}

/// What is said of each of the five questions about a card that is not there.
const NO_DEVICE: &str = concat!(
    "netlink error: no device matches name (offset 24)\nnetlink error: No such device\n",
    "netlink error: no device matches name (offset 24)\nnetlink error: No such device\n",
    "netlink error: no device matches name (offset 24)\nnetlink error: No such device\n",
    "netlink error: no device matches name (offset 24)\nnetlink error: No such device\n",
    "netlink error: no device matches name (offset 24)\nnetlink error: No such device\n",
);

impl Host {
    pub(super) fn ethtool(&mut self, line: &Line) -> Ran {
        let words: Vec<&str> = line.words[1..].iter().map(|w| w.text.as_str()).collect();
        let bad = || {
            Output::fail(
                "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n",
                1,
                "",
            )
        };
        let (option, rest) = match words.as_slice() {
            ["--version" | "-V", ..] => return Output::say("ethtool version 6.1\n"),
            [option, rest @ ..] if option.starts_with('-') => (*option, rest),
            [name] => ("", std::slice::from_ref(name)),
            _ => return bad(),
        };
        let known = ["", "-i", "--driver", "-k", "--show-features", "--show-offload"].contains(&option)
            || ["-K", "--features", "--offload", "-s", "--change", "-S", "--statistics"].contains(&option)
            || ["-l", "--show-channels", "-P"].contains(&option)
            || asked::question(option).is_some();
        let (Some((name, rest)), true) = (rest.split_first(), known) else { return bad() };
        let Some(ifindex) = self.ifindex(name) else {
            let (text, exit) = match option {
                "" => (NO_DEVICE, 75),
                "-i" | "--driver" => ("Cannot get driver information: No such device\n", 71),
                _ => ("netlink error: no device matches name (offset 24)\n", 1),
            };
            let mut out = Output::fail(text, exit, "ip link shows the devices there are");
            if option.is_empty() {
                out.stdout = "No data available\n".to_owned();
            }
            return out;
        };
        let d = &self.devices[ifindex];
        let unsupported = asked::unsupported;
        match option {
            "" => self.ethtool_settings(d),
            "-i" | "--driver" => {
                let version = if d.class.kind == "veth" { "1.0" } else { "6.12.0" };
                let driver = if d.class.kind.is_empty() { "penstock" } else { d.class.kind };
                let statistics = if d.class.kind == "veth" { "yes" } else { "no" };
                Output::say(format!(
                    "driver: {driver}\nversion: {version}\nfirmware-version: \nexpansion-rom-version: \nbus-info: \nsupports-statistics: {statistics}\nsupports-test: no\n\
                     supports-eeprom-access: no\nsupports-register-dump: no\nsupports-priv-flags: no\n"
                ))
            }
            "-k" | "--show-features" | "--show-offload" => {
                let mut out = format!("Features for {name}:\n");
                for (long, _, first) in FEATURES {
                    let on = d.features.get(long).copied().unwrap_or(first);
                    let _ = writeln!(out, "{long}: {}", if on { "on" } else { "off" });
                }
                Output::say(out)
            }
            "-K" | "--features" | "--offload" => self.set_features(ifindex, rest),
            "-s" | "--change" => self.change_settings(ifindex, rest),
            "-S" | "--statistics" => Output::fail("no stats available\n", 94, ""),
            "-P" => {
                let mac = d.mac.map(|b| format!("{b:02x}")).join(":");
                let text = if d.class.kind.is_empty() { mac } else { "not set".to_owned() };
                Output::say(format!("Permanent address: {text}\n"))
            }
            "-l" | "--show-channels" if d.class.kind == "veth" || d.class.kind.is_empty() => {
                let (tx, rx) = d.queues;
                // Those of a card serve both directions.
                let table = match d.class.kind {
                    "veth" => format!("RX:\t\t{rx}\nTX:\t\t{tx}\nOther:\t\tn/a\nCombined:\tn/a\n"),
                    _ => format!("RX:\t\tn/a\nTX:\t\tn/a\nOther:\t\tn/a\nCombined:\t{tx}\n"),
                };
                Output::say(format!(
                    "Channel parameters for {name}:\nPre-set maximums:\n{table}Current hardware settings:\n{table}"
                ))
            }
            "-l" | "--show-channels" => unsupported(1),
            _ => self.ask_card(ifindex, option, rest),
        }
    }

    fn ethtool_settings(&self, d: &NetDevice) -> Ran {
        let link = if d.up && self.carrier(d) { "yes" } else { "no" };
        match (self.speed(d), d.class.kind) {
            (None, "dummy" | "ifb") => {
                Output { stdout: "No data available\n".to_owned(), status: 75, ..Output::default() }
            }
            (None, _) => Output::say(format!("Settings for {}:\n\tLink detected: {link}\n", d.name)),
            (Some(speed), _) => Output::say(format!(
                "Settings for {}:\n\tSupported ports: [  ]\n\tSupported link modes:   Not reported\n\tSupported pause frame use: No\n\tSupports auto-negotiation: No\n\
                 \tSupported FEC modes: Not reported\n\tAdvertised link modes:  Not reported\n\tAdvertised pause frame use: No\n\tAdvertised auto-negotiation: No\n\
                 \tAdvertised FEC modes: Not reported\n\tSpeed: {speed}Mb/s\n\tDuplex: Full\n\tAuto-negotiation: off\n\tPort: Twisted Pair\n\tPHYAD: 0\n\
                 \tTransceiver: internal\n\tMDI-X: Unknown\n\tLink detected: {}\n",
                d.name, link
            )),
        }
    }

    fn set_features(&mut self, ifindex: u32, words: &[&str]) -> Ran {
        if words.is_empty() {
            return Output::fail("Could not change any device features\n", 1, "");
        }
        let mut changes = Vec::new();
        for pair in words.chunks(2) {
            let on = match pair {
                [_, "on"] => true,
                [_, "off"] => false,
                [_, other] => {
                    let text = format!(
                        "ethtool (-K): flag '{other}' for parameter '(null)' is not followed by 'on' or 'off'\n"
                    );
                    return Output::fail(text, 1, "on or off");
                }
                _ => return Output::fail("ethtool (-K): no value for parameter\n", 1, "on or off"),
            };
            let own = FEATURES.iter().find(|f| f.0 == pair[0] || f.1 == pair[0]).map(|f| f.0);
            let Some(feature) = own.or_else(|| MORE.into_iter().find(|m| *m == pair[0])) else {
                let known: Vec<&str> = FEATURES.iter().map(|f| f.1).collect();
                let text = "netlink error: bit name not found (offset 52)\n";
                return Output::fail(text, 92, &known.join(" "));
            };
            changes.push((feature.to_owned(), on));
        }
        self.devices[ifindex].features.extend(changes);
        Output::default()
    }
}
