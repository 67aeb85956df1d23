//! `ethtool`: features, speed and the driver of a card; `modprobe`: the modules there are.
//!
//! Follows: ethtool 6.1 `ethtool.c`, `netlink/features.c`, `netlink/settings.c`; kmod `modprobe.c`; linux v6.12
//! `drivers/net/ifb.c` `numifbs`, `drivers/net/dummy.c` `numdummies`.
//! Differs: features are noted and change nothing; those listed are the ones shaping scripts turn off; a module is never
//! missing for a kind that is known here, and asking for a kind of link makes no devices by itself.

use super::Ran;
use crate::{Host, NetDevice, Output};
use penstock_lang::token::Line;
use penstock_model::{Kernel, Time};
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

/// Modules besides those of qdiscs, classifiers, actions and ematches.
const MODULES: [&str; 62] = [
    "8021q",
    "act_bpf",
    "act_connmark",
    "act_csum",
    "act_ct",
    "act_ctinfo",
    "act_gact",
    "act_gate",
    "act_ife",
    "act_mirred",
    "act_mpls",
    "act_nat",
    "act_pedit",
    "act_police",
    "act_sample",
    "act_simple",
    "act_skbedit",
    "act_skbmod",
    "act_tunnel_key",
    "act_vlan",
    "bonding",
    "br_netfilter",
    "bridge",
    "cls_basic",
    "cls_bpf",
    "cls_cgroup",
    "cls_flow",
    "cls_flower",
    "cls_fw",
    "cls_matchall",
    "cls_route",
    "cls_u32",
    "dummy",
    "em_canid",
    "em_cmp",
    "em_ipset",
    "em_ipt",
    "em_meta",
    "em_nbyte",
    "em_text",
    "em_u32",
    "ifb",
    "ip6_tables",
    "ip6table_filter",
    "ip6table_mangle",
    "ip_tables",
    "iptable_filter",
    "iptable_mangle",
    "iptable_nat",
    "macvlan",
    "nf_conntrack",
    "nf_conntrack_ftp",
    "nf_nat",
    "nf_tables",
    "sch_ingress",
    "tcp_cubic",
    "tun",
    "veth",
    "vrf",
    "vxlan",
    "x_tables",
    "xt_conntrack",
];

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
        let known = [
            "",
            "-i",
            "--driver",
            "-k",
            "--show-features",
            "--show-offload",
            "-K",
            "--features",
            "--offload",
            "-s",
            "--change",
            "-S",
            "--statistics",
            "-l",
            "--show-channels",
            "-g",
            "--show-ring",
            "-a",
            "-c",
            "-P",
            "-G",
            "-C",
            "-A",
            "-L",
            "--set-channels",
            "--coalesce",
            "--pause",
            "--set-ring",
        ];
        let (Some((name, rest)), true) = (rest.split_first(), known.contains(&option)) else { return bad() };
        let Some(ifindex) = self.ifindex(name) else {
            let (text, exit) = match option {
                "" => ("netlink error: no device matches name (offset 24)\n", 75),
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
        let unsupported = |exit| Output::fail("netlink error: Operation not supported\n", exit, "");
        match option {
            "" => self.ethtool_settings(d),
            "-i" | "--driver" => {
                let version = if d.class.kind == "veth" { "1.0" } else { "6.12.0" };
                let driver = if d.class.kind.is_empty() { "penstock" } else { d.class.kind };
                let statistics = if d.class.kind == "veth" { "yes" } else { "no" };
                Output::say(format!(
                    "driver: {driver}\nversion: {version}\nfirmware-version: \nexpansion-rom-version: \nbus-info: \nsupports-statistics: {statistics}\nsupports-test: no\nsupports-eeprom-access: no\nsupports-register-dump: no\nsupports-priv-flags: no\n"
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
            "-s" | "--change" => {
                if !self.devices[ifindex].class.kind.is_empty() {
                    return unsupported(75);
                }
                for pair in rest.chunks(2) {
                    if let ["speed", speed] = pair {
                        match speed.parse::<u32>() {
                            Ok(speed) => self.devices[ifindex].speed_mbit = Some(speed),
                            Err(_) => {
                                let text =
                                    format!("ethtool (-s): invalid value '{speed}' for parameter 'speed'\n");
                                return Output::fail(text, 1, "");
                            }
                        }
                    }
                }
                Output::default()
            }
            "-S" | "--statistics" => Output::fail("no stats available\n", 94, ""),
            "-P" => {
                let mac = d.mac.map(|b| format!("{b:02x}")).join(":");
                let text = if d.class.kind.is_empty() { mac } else { "not set".to_owned() };
                Output::say(format!("Permanent address: {text}\n"))
            }
            "-l" | "--show-channels" if d.class.kind == "veth" => {
                let (tx, rx) = d.queues;
                let table = format!("RX:\t\t{rx}\nTX:\t\t{tx}\nOther:\t\tn/a\nCombined:\tn/a\n");
                Output::say(format!(
                    "Channel parameters for {name}:\nPre-set maximums:\n{table}Current hardware settings:\n{table}"
                ))
            }
            _ => unsupported(1),
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
                "Settings for {}:\n\tSupported ports: [  ]\n\tSupported link modes:   Not reported\n\tSupported pause frame use: No\n\tSupports auto-negotiation: No\n\tSupported FEC modes: Not reported\n\tAdvertised link modes:  Not reported\n\tAdvertised pause frame use: No\n\tAdvertised auto-negotiation: No\n\tAdvertised FEC modes: Not reported\n\tSpeed: {speed}Mb/s\n\tDuplex: Full\n\tAuto-negotiation: off\n\tPort: Twisted Pair\n\tPHYAD: 0\n\tTransceiver: internal\n\tMDI-X: Unknown\n\tLink detected: {}\n",
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
            let Some(feature) = FEATURES.iter().find(|f| f.0 == pair[0] || f.1 == pair[0]) else {
                let known: Vec<&str> = FEATURES.iter().map(|f| f.1).collect();
                let text = "netlink error: bit name not found (offset 52)\n";
                return Output::fail(text, 92, &known.join(" "));
            };
            changes.push((feature.0.to_owned(), on));
        }
        self.devices[ifindex].features.extend(changes);
        Output::default()
    }

    pub(super) fn modprobe(&mut self, line: &Line, now: Time) -> Ran {
        let (mut quiet, mut remove, mut several, mut names, mut values) =
            (false, false, false, Vec::new(), Vec::new());
        for (at, word) in line.words.iter().enumerate().skip(1) {
            match word.text.as_str() {
                "-q" | "--quiet" => quiet = true,
                "-r" | "--remove" => remove = true,
                "-a" | "--all" => several = true,
                text if text.starts_with('-') => {}
                text if text.contains('=') => values.push(text.to_owned()),
                text if names.is_empty() || several || remove => names.push((at, text.replace('-', "_"))),
                _ => {}
            }
        }
        for (at, name) in names {
            if !self.has_module(&name) {
                let text = match (quiet, self.kernel) {
                    (true, _) => String::new(),
                    (_, Kernel::V2_6_35) => format!("FATAL: Module {name} not found.\n"),
                    _ => {
                        format!("modprobe: FATAL: Module {name} not found in directory /lib/modules/6.12.0\n")
                    }
                };
                let help = "what this kernel has needs no loading";
                return Output::fail(text, 1, help).at_word(line, at);
            }
            let number = |key: &str, otherwise: u32| {
                let given = values.iter().find_map(|v| v.strip_prefix(key)?.strip_prefix('=')?.parse().ok());
                given.unwrap_or(otherwise)
            };
            let (kind, count) = match name.as_str() {
                "ifb" => ("ifb", number("numifbs", 2)),
                "dummy" => ("dummy", number("numdummies", 1)),
                _ => continue,
            };
            let all: Vec<u32> =
                self.devices.iter().filter(|d| d.class.kind == kind).map(|d| d.ifindex).collect();
            if remove {
                for ifindex in all {
                    self.delete_link(ifindex, now);
                }
                self.modules.remove(kind);
            } else if self.modules.insert(kind) {
                for _ in 0..count.min(1024) {
                    let name = self.free_name(kind);
                    self.new_device(&name, kind, None);
                }
            }
        }
        Output::default()
    }
    fn has_module(&self, name: &str) -> bool {
        let qdisc = name
            .strip_prefix("sch_")
            .is_some_and(|kind| penstock_sched::sch::find(kind, self.kernel).is_some());
        // Some files hold several kinds, and some kinds are older than either profile's modules.
        let more = ["sch_fq_pie", "sch_cbq", "sch_dsmark", "sch_atm", "cls_tcindex", "cls_rsvp", "cls_rsvp6"];
        let old = self.kernel == Kernel::V2_6_35;
        let netfilter = ["xt_", "ipt_", "nf_", "nft_", "ip6t_"].iter().any(|p| name.starts_with(p));
        qdisc || MODULES.contains(&name) || netfilter || old && more.contains(&name)
    }
}
