//! `modprobe`, `rmmod`, `lsmod`, `/proc/modules`: the modules there are.
//!
//! Follows: kmod 30 `modprobe.c`, `lsmod.c`; linux v6.12 `drivers/net/ifb.c` `numifbs`, `drivers/net/dummy.c` `numdummies`.
//! Differs: a module is never missing for a kind that is known here, and all of those are loaded from the beginning, each shown with
//! the same size and no users; asking for a kind of link makes no devices by itself.

use super::Ran;
use crate::{Host, Output};
use penstock_lang::token::Line;
use penstock_model::{Kernel, Time};

/// Modules besides those of qdiscs, classifiers, actions and ematches.
const MODULES: [&str; 69] = [
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
    "ip_gre",
    "ip_tables",
    "ipip",
    "iptable_filter",
    "iptable_mangle",
    "iptable_nat",
    "macvlan",
    "nf_conntrack",
    "nf_conntrack_ftp",
    "nf_nat",
    "nf_tables",
    "ppp_generic",
    "pppoe",
    "pppox",
    "sch_ingress",
    "sit",
    "tcp_cubic",
    "tun",
    "veth",
    "vrf",
    "vxlan",
    "wireguard",
    "x_tables",
    "xt_conntrack",
];

/// Kinds that the kernel has without a module of that name.
const BUILT_IN: [&str; 7] = ["bfifo", "clsact", "mq", "noqueue", "pfifo", "pfifo_fast", "pfifo_head_drop"];

/// Modules that make devices when they are loaded, and so are not before.
const DEVICES: [&str; 2] = ["dummy", "ifb"];

/// What every module is said to take, in bytes.
const SIZE: u32 = 16384;

/// Modules of Linux that are not here: of what they do nothing is simulated, or nothing else follows from loading them than from not doing so.
/// A card's driver is there as the card is.
const ELSEWHERE: [&str; 90] = [
    "8139cp",
    "8139too",
    "af_key",
    "ah4",
    "amt",
    "arp_tables",
    "arptable_filter",
    "ath10k_pci",
    "ath9k",
    "bareudp",
    "batman_adv",
    "bnx2",
    "bnx2x",
    "cdc_ether",
    "cdc_ncm",
    "cfg80211",
    "dccp",
    "e100",
    "e1000",
    "e1000e",
    "ebtables",
    "ebtable_broute",
    "ebtable_filter",
    "ebtable_nat",
    "ena",
    "esp4",
    "esp6",
    "forcedeth",
    "fou",
    "fuse",
    "garp",
    "geneve",
    "gtp",
    "hv_netvsc",
    "i40e",
    "igb",
    "igc",
    "ice",
    "inet_diag",
    "ip6_gre",
    "ip6_tunnel",
    "ip_set",
    "ip_vs",
    "ip_vti",
    "ipcomp",
    "ipvlan",
    "iwlwifi",
    "ixgbe",
    "l2tp_core",
    "l2tp_eth",
    "l2tp_netlink",
    "llc",
    "loop",
    "mac80211",
    "mac80211_hwsim",
    "macsec",
    "macvtap",
    "mlx4_en",
    "mlx5_core",
    "mpls_iptunnel",
    "mpls_router",
    "mrp",
    "msr",
    "netconsole",
    "netdevsim",
    "nlmon",
    "openvswitch",
    "overlay",
    "pktgen",
    "ppp_async",
    "ppp_deflate",
    "ppp_generic",
    "ppp_mppe",
    "pppoe",
    "pppox",
    "pptp",
    "psnap",
    "r8169",
    "sctp",
    "stp",
    "tap",
    "tcp_diag",
    "team",
    "tg3",
    "udp_diag",
    "vhost_net",
    "virtio_net",
    "vmxnet3",
    "xfrm_user",
    "zram",
];

impl Host {
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
            if let Some(ran) = self.modprobe_control(&name, &values, remove) {
                if ran.status != 0 {
                    return ran;
                }
                continue;
            }
            let number = |key: &str, otherwise: u32| {
                let given = values.iter().find_map(|v| v.strip_prefix(key)?.strip_prefix('=')?.parse().ok());
                given.unwrap_or(otherwise)
            };
            let (kind, count) = match name.as_str() {
                "ifb" => ("ifb", number("numifbs", 2)),
                "dummy" => ("dummy", number("numdummies", 1)),
                "sch_teql" => {
                    if remove && !self.unload_teql(now) {
                        let text = "modprobe: FATAL: Module sch_teql is in use.\n".to_owned();
                        return Output::fail(text, 1, "delete the qdiscs teql0 first").at_word(line, at);
                    }
                    if !remove {
                        self.load_teql();
                    }
                    continue;
                }
                "br_netfilter" if remove => {
                    self.modules.remove("br_netfilter");
                    continue;
                }
                "br_netfilter" => {
                    self.modules.insert("br_netfilter");
                    continue;
                }
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
        // The old names are aliases of today's.
        let netfilter = [
            "xt_",
            "ipt_",
            "nf_",
            "nft_",
            "ip6t_",
            "ip_conntrack",
            "ip_nat",
            "ip6table_",
            "iptable_",
            "ip_set_",
            "ebt_",
            "ip_vs_",
        ]
        .iter()
        .any(|p| name.starts_with(p));
        // A module is called by its kind, but for that of teql0.
        qdisc
            || MODULES.contains(&name)
            || ELSEWHERE.contains(&name)
            || self.has_control_module(name)
            || netfilter
            || name == "sch_teql"
            || old && more.contains(&name)
    }

    pub(super) fn rmmod(&mut self, line: &Line, now: Time) -> Ran {
        match line.words.get(1).map(|w| w.text.as_str()) {
            Some(name) if self.has_module(&name.replace('-', "_")) => {
                self.modprobe(&Line::of_words(&["modprobe", "-r", name].map(str::to_owned)), now)
            }
            Some(name) => {
                let text = format!("rmmod: ERROR: Module {name} is not currently loaded\n");
                Output::fail(text, 1, "lsmod lists the modules")
            }
            None => Output::fail("rmmod: ERROR: missing module name.\n", 1, ""),
        }
    }

    /// The modules that are loaded, by name.
    fn loaded(&self) -> Vec<String> {
        let own = |kind: &str| DEVICES.contains(&kind) && !self.modules.contains(kind);
        let others = MODULES.iter().filter(|m| !own(m)).map(|&m| m.to_owned());
        let kinds = penstock_sched::sch::KINDS.iter().filter(|k| k.kernels.contains(&self.kernel));
        let kinds = kinds.map(|k| k.id).filter(|id| !BUILT_IN.contains(id) && *id != "teql0");
        let kinds = kinds.map(|id| format!("sch_{id}")).chain(self.teql.map(|_| "sch_teql".to_owned()));
        let mut all: Vec<String> = others.chain(kinds).chain(self.control_modules()).collect();
        all.sort();
        all
    }

    pub(super) fn lsmod(&self) -> Ran {
        let row = |name: &String| format!("{name:<19} {SIZE:>8}  0\n");
        let rows: String = self.loaded().iter().map(row).collect();
        Output::say(format!("Module                  Size  Used by\n{rows}"))
    }

    /// `/proc/modules`.
    pub(crate) fn proc_modules(&self) -> String {
        let row = |name: &String| format!("{name} {SIZE} 0 - Live 0x0000000000000000\n");
        self.loaded().iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_make_devices_are_there_once_they_are_asked_for() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        let mut said = |command: &str| {
            let out = host.exec(command, Time::ZERO);
            (out.status, out.stdout + &out.stderr)
        };
        let (_, before) = said("lsmod");
        assert!(
            before.starts_with("Module                  Size  Used by\n8021q                  16384  0\n"),
            "{before}"
        );
        assert!(
            before.contains("sch_netem ") && !before.contains("ifb ") && !before.contains("sch_pfifo "),
            "{before}"
        );
        assert_eq!(said("modprobe ifb numifbs=1"), (0, String::new()));
        assert!(said("lsmod").1.contains("\nifb                    16384  0\n"));
        assert!(said("cat /proc/modules").1.contains("\nifb 16384 0 - Live 0x0000000000000000\n"));
        assert_eq!(said("rmmod ifb"), (0, String::new()));
        assert_eq!(said("lsmod").1, before);
        assert_eq!(
            said("rmmod nosuch"),
            (1, "rmmod: ERROR: Module nosuch is not currently loaded\n".to_owned())
        );
    }
}
