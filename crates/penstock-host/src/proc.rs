//! Virtual files: `/proc/sys`, `/proc/net`, `/sys/class/net`, read and written as the kernel's are.
//!
//! Follows: linux v6.12 `net/core/net-procfs.c` `dev_seq_printf_stats`, `net/core/net-sysfs.c`, `net/ipv4/fib_trie.c`
//! `fib_route_seq_show`, `net/ipv4/arp.c` `arp_format_neigh_entry`; 2.6.35 alike.
//! Differs: the files listed by [`Host::list_dir`] and no others.

mod queues;

use crate::bridge::{FILES, PORT_FILES};
use crate::route::{MAIN, RouteKind};
use crate::{Host, NetDevice, Nud};
use penstock_lang::ip::LinkData;
use penstock_lang::iptables::Family;
use penstock_lang::sysctl;
use penstock_model::{Kernel, Time};
use std::fmt::Write;

/// Why a file cannot be read or written: errno's text.
pub(crate) type Refusal = &'static str;

const NOT_FOUND: Refusal = "No such file or directory";
const INVALID: Refusal = "Invalid argument";
const DENIED: Refusal = "Permission denied";

/// How CUBIC finds the end of slow start (1: trains of ACKs, 2: delay).
const HYSTART_DETECT: &str = "/sys/module/tcp_cubic/parameters/hystart_detect";

/// Tables of `hashlimit`.
const IPT_HASHLIMIT: &str = "/proc/net/ipt_hashlimit/";
const IP6T_HASHLIMIT: &str = "/proc/net/ip6t_hashlimit/";
/// Lists of `recent`.
const XT_RECENT: &str = "/proc/net/xt_recent/";

const ATTRIBUTES: [&str; 22] = [
    "addr_len",
    "address",
    "broadcast",
    "carrier",
    "duplex",
    "flags",
    "gro_flush_timeout",
    "ifalias",
    "ifindex",
    "iflink",
    "mtu",
    "napi_defer_hard_irqs",
    "netdev_group",
    "operstate",
    "proto_down",
    "queues",
    "speed",
    "statistics",
    "threaded",
    "tx_queue_len",
    "type",
    "uevent",
];
const STATISTICS: [&str; 8] = [
    "rx_bytes",
    "rx_dropped",
    "rx_errors",
    "rx_packets",
    "tx_bytes",
    "tx_dropped",
    "tx_errors",
    "tx_packets",
];

/// `tun_flags`, `owner`, `group` of a device of `ip tuntap`.
fn tun_attribute(d: &NetDevice, attribute: &str) -> String {
    let LinkData::Tun(set) = &d.data else { return String::new() };
    let owner = |who: Option<u32>| who.map_or_else(|| "-1".to_owned(), |who| who.to_string());
    match attribute {
        "owner" => owner(set.user),
        "group" => owner(set.group),
        _ => {
            // IFF_TUN or IFF_TAP, IFF_PERSIST, IFF_NO_PI, IFF_ONE_QUEUE, IFF_VNET_HDR, IFF_MULTI_QUEUE.
            let bits = [
                (1 + u32::from(set.tap), true),
                (0x800, true),
                (0x1000, !set.pi),
                (0x2000, set.one_queue),
                (0x4000, set.vnet_hdr),
                (0x100, set.multi_queue),
            ];
            let flags: u32 = bits.iter().filter(|b| b.1).map(|b| b.0).sum();
            format!("{flags:#x}")
        }
    }
}

impl Host {
    /// The text of a virtual file.
    ///
    /// # Errors
    /// errno's text.
    pub fn read_file(&self, path: &str) -> Result<String, Refusal> {
        if let Some(key) = sysctl::key_of_path(path) {
            return self.setting(&key).map(|value| format!("{value}\n")).ok_or(NOT_FOUND);
        }
        if let Some(rest) = path.strip_prefix("/sys/class/net/") {
            let (name, attribute) = rest.split_once('/').ok_or("Is a directory")?;
            let device = self.devices.iter().find(|d| d.name == name).ok_or(NOT_FOUND)?;
            if let Some(file) = attribute.strip_prefix("bonding/") {
                return self.read_bonding(device.ifindex, file).ok_or(NOT_FOUND);
            }
            return self.attribute(device, attribute);
        }
        if let Some(text) = self.read_parameter(path) {
            return Ok(text);
        }
        if let Some(file) = path.strip_prefix("/proc/net/vlan/") {
            return self.proc_vlan(file).ok_or(NOT_FOUND);
        }
        if let Some(name) = path.strip_prefix("/proc/net/bonding/") {
            return self.proc_bonding(name).ok_or(NOT_FOUND);
        }
        match path {
            "/proc/net/dev" => Ok(self.proc_net_dev()),
            "/proc/net/route" => Ok(self.proc_net_route()),
            "/proc/net/arp" => Ok(self.proc_net_arp()),
            "/proc/net/snmp" => self.proc_snmp().ok_or(NOT_FOUND),
            "/proc/net/snmp6" => self.proc_snmp6().ok_or(NOT_FOUND),
            "/proc/net/netstat" => self.proc_netstat().ok_or(NOT_FOUND),
            "/proc/net/dev_mcast" => Ok(self.proc_dev_mcast()),
            "/proc/net/igmp" => Ok(self.proc_igmp()),
            "/proc/net/igmp6" => Ok(self.proc_igmp6()),
            "/proc/net/penstock_cwnd" => self.cwnd_table.clone().ok_or(NOT_FOUND),
            "/proc/modules" => Ok(self.proc_modules()),
            "/proc/sys/kernel/hostname" => Ok(format!("{}\n", self.name)),
            _ => Err(NOT_FOUND),
        }
    }

    /// The same at a moment, for those that tell how long something is kept.
    ///
    /// # Errors
    /// errno's text.
    pub fn read_file_at(&self, path: &str, now: Time) -> Result<String, Refusal> {
        if let Some((name, rest)) = path.strip_prefix("/sys/class/net/").and_then(|rest| rest.split_once('/'))
            && let Some(file) = rest.strip_prefix("brport/")
        {
            let device = self.devices.iter().find(|d| d.name == name).ok_or(NOT_FOUND)?;
            return self.read_port_file(device, file, now).map(|text| text + "\n").ok_or(NOT_FOUND);
        }
        if let Some((name, rest)) = path.strip_prefix("/sys/class/net/").and_then(|rest| rest.split_once('/'))
            && let Some(file) = rest.strip_prefix("bridge/")
        {
            let device = self.devices.iter().find(|d| d.name == name).ok_or(NOT_FOUND)?;
            return self.read_bridge_file(device, file, now).map(|text| text + "\n").ok_or(NOT_FOUND);
        }
        match path {
            "/proc/net/nf_conntrack" if self.netfilter.tracking().has_files() => {
                Ok(self.netfilter.tracking().proc_text(now))
            }
            _ => {
                let of = |family, folder| {
                    let name = path.strip_prefix(folder)?;
                    self.netfilter.hashlimit_text(family, name, now)
                };
                let recent = || self.netfilter.recent_text(path.strip_prefix(XT_RECENT)?);
                of(Family::Ip, IPT_HASHLIMIT)
                    .or_else(recent)
                    .or_else(|| of(Family::Ip6, IP6T_HASHLIMIT))
                    .map_or_else(|| self.read_file(path), Ok)
            }
        }
    }

    /// What `/proc/net/penstock_cwnd` holds from now on: the sockets are the caller's, not this machine's. No Linux has the file.
    pub fn set_cwnd_table(&mut self, text: String) {
        self.cwnd_table = Some(text);
    }

    /// Writes a virtual file, as `echo TEXT > PATH` does.
    ///
    /// # Errors
    /// errno's text.
    pub fn write_file(&mut self, path: &str, text: &str, now: Time) -> Result<(), Refusal> {
        if let Some(key) = sysctl::key_of_path(path) {
            return match self.setting(&key) {
                Some(_) => self.set_setting(&key, text, now),
                None => Err(NOT_FOUND),
            };
        }
        if path == HYSTART_DETECT && self.kernel != Kernel::V2_6_35 {
            // Both ways of detection are what connections follow; no other choice is simulated.
            return if text.trim() == "3" { Ok(()) } else { Err(DENIED) };
        }
        if let Some(done) = self.write_parameter(path, text) {
            return done;
        }
        let rest = path.strip_prefix("/sys/class/net/").ok_or(NOT_FOUND)?;
        let (name, attribute) = rest.split_once('/').ok_or("Is a directory")?;
        let device = self.devices.iter().find(|d| d.name == name).ok_or(NOT_FOUND)?;
        let (ifindex, text) = (device.ifindex, text.trim());
        if let Some(file) = attribute.strip_prefix("bonding/") {
            return self.write_bonding(ifindex, file, text, now);
        }
        if let Some(file) = attribute.strip_prefix("bridge/") {
            return self.write_bridge_file(ifindex, file, text, now);
        }
        if let Some(file) = attribute.strip_prefix("brport/") {
            return self.write_port_file(ifindex, file, text, now);
        }
        let number = text.parse::<u32>().map_err(|_| INVALID);
        match attribute {
            "mtu" => self.set_mtu(ifindex, number?, now).map_err(|_| INVALID),
            "tx_queue_len" => self.set_tx_queue_len(ifindex, number?, now).map_err(|_| INVALID),
            "netdev_group" => {
                self.devices[ifindex].group = number?;
                Ok(())
            }
            "proto_down" => match number? {
                0 => Ok(()),
                _ => Err(DENIED),
            },
            "ifalias" => {
                self.devices[ifindex].alias = text.to_owned();
                Ok(())
            }
            below if queues::begins(device, below).is_some() => {
                let device = &mut self.devices[ifindex];
                queues::write(device, below, text)
            }
            known if ATTRIBUTES.contains(&known) => Err(DENIED),
            _ => Err(NOT_FOUND),
        }
    }

    /// The names in a virtual folder; `None` where there is none.
    pub fn list_dir(&self, path: &str) -> Option<Vec<String>> {
        let path = path.trim_end_matches('/');
        let names = |list: &[&str]| Some(list.iter().map(|s| (*s).to_owned()).collect());
        if let Some(below) = path.strip_prefix("/proc/sys") {
            let prefix = match below.trim_start_matches('/').replace('/', ".") {
                key if key.is_empty() => String::new(),
                key => format!("{key}."),
            };
            let mut found: Vec<String> = self
                .setting_keys()
                .iter()
                .filter_map(|key| Some(key.strip_prefix(&prefix)?.split('.').next()?.to_owned()))
                .collect();
            found.sort();
            found.dedup();
            return (!found.is_empty()).then_some(found);
        }
        if let Some(names) = self.list_parameters(path) {
            return Some(names);
        }
        match path {
            "/proc/net" => {
                let tracks = self.netfilter.tracking().has_files();
                let all = [
                    ("arp", true),
                    ("bonding", !self.bonding_names().is_empty()),
                    ("dev", true),
                    ("dev_mcast", true),
                    ("igmp", true),
                    ("igmp6", true),
                    ("ip6t_hashlimit", self.netfilter.limits_hashes()),
                    ("ipt_hashlimit", self.netfilter.limits_hashes()),
                    ("netstat", self.has_snmp()),
                    ("nf_conntrack", tracks),
                    ("penstock_cwnd", self.cwnd_table.is_some()),
                    ("route", true),
                    ("snmp", self.has_snmp()),
                    ("snmp6", self.has_snmp()),
                    ("vlan", !self.vlan_files().is_empty()),
                    ("xt_recent", !self.netfilter.recent_names().is_empty()),
                ];
                Some(all.into_iter().filter(|f| f.1).map(|f| f.0.to_owned()).collect())
            }
            "/proc/net/bonding" => Some(self.bonding_names()).filter(|names| !names.is_empty()),
            "/proc/net/vlan" => Some(self.vlan_files()).filter(|files| !files.is_empty()),
            "/proc/net/ipt_hashlimit" if self.netfilter.limits_hashes() => {
                Some(self.netfilter.hashlimit_names(Family::Ip))
            }
            "/proc/net/ip6t_hashlimit" if self.netfilter.limits_hashes() => {
                Some(self.netfilter.hashlimit_names(Family::Ip6))
            }
            "/proc/net/xt_recent" if !self.netfilter.recent_names().is_empty() => {
                Some(self.netfilter.recent_names())
            }
            "/sys/module/tcp_cubic/parameters" if self.kernel != Kernel::V2_6_35 => {
                names(&["hystart_detect"])
            }
            "/sys/class/net" => {
                let mut found: Vec<String> = self.devices.iter().map(|d| d.name.clone()).collect();
                found.sort();
                Some(found)
            }
            _ => {
                let rest = path.strip_prefix("/sys/class/net/")?;
                let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
                let device = self.devices.iter().find(|d| d.name == name)?;
                match below {
                    "" => names(&ATTRIBUTES),
                    "bridge" if device.bridge.is_some() => names(&FILES),
                    "brport" if self.bridge_of(device.ifindex).is_some() => names(&PORT_FILES),
                    "statistics" => names(&STATISTICS),
                    "queues" => {
                        let rx = (0..device.queues.1).map(|n| format!("rx-{n}"));
                        Some(rx.chain((0..device.queues.0).map(|n| format!("tx-{n}"))).collect())
                    }
                    below => names(queues::folder(device, below)?),
                }
            }
        }
    }

    fn attribute(&self, d: &NetDevice, attribute: &str) -> Result<String, Refusal> {
        let mac = |bytes: [u8; 6]| bytes.map(|b| format!("{b:02x}")).join(":");
        let c = self.counters(d);
        let text = match attribute {
            "mtu" => d.mtu.to_string(),
            "address" => mac(d.mac),
            "broadcast" => mac(if d.loopback { [0; 6] } else { [0xff; 6] }),
            "addr_len" => "6".to_owned(),
            "operstate" => self.operstate(d).to_ascii_lowercase(),
            "tx_queue_len" => d.tx_queue_len.to_string(),
            "ifindex" => d.ifindex.to_string(),
            "iflink" => d.lower.map_or(d.ifindex, |l| l.ifindex).to_string(),
            "flags" => format!("{:#x}", self.link_flags(d) & 0xffff & !0x40),
            "type" if d.loopback => "772".to_owned(),
            "type" if d.class.link_type == "none" => "65534".to_owned(),
            "type" if d.class.link_type == "void" => "65535".to_owned(),
            "type" if d.class.link_type == "ppp" => "512".to_owned(),
            "type" => "1".to_owned(),
            "tun_flags" | "owner" | "group" if d.class.is_tun() => tun_attribute(d, attribute),
            "netdev_group" => d.group.to_string(),
            "ifalias" if d.alias.is_empty() => return Ok(String::new()),
            "ifalias" => d.alias.clone(),
            "carrier" if d.up => u8::from(self.carrier(d)).to_string(),
            "speed" if d.up => self.speed(d).ok_or(INVALID)?.to_string(),
            "duplex" if d.up => self.speed(d).map(|_| "full".to_owned()).ok_or(INVALID)?,
            "carrier" | "speed" | "duplex" => return Err(INVALID),
            "proto_down" => "0".to_owned(),
            "uevent" => format!("INTERFACE={}\nIFINDEX={}", d.name, d.ifindex),
            "statistics/rx_bytes" => c.rx_bytes.to_string(),
            "statistics/rx_packets" => c.rx_packets.to_string(),
            "statistics/rx_dropped" => c.rx_dropped.to_string(),
            "statistics/tx_bytes" => c.tx_bytes.to_string(),
            "statistics/tx_packets" => c.tx_packets.to_string(),
            "statistics/tx_dropped" => c.tx_dropped.to_string(),
            "statistics/rx_errors" | "statistics/tx_errors" => "0".to_owned(),
            "statistics" | "queues" => return Err("Is a directory"),
            below => match queues::begins(d, below) {
                Some(begins) => queues::counted(d, below)
                    .unwrap_or_else(|| d.kept.get(below).map_or(begins, String::as_str).to_owned()),
                None => return Err(NOT_FOUND),
            },
        };
        Ok(text + "\n")
    }

    fn proc_net_dev(&self) -> String {
        let mut out = String::from(
            "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    \
             packets errs drop fifo colls carrier compressed\n",
        );
        for d in self.devices.by_age() {
            let c = self.counters(d);
            let _ = writeln!(
                out,
                "{:>6}: {:>7} {:>7} {:>4} {:>4} {:>4} {:>5} {:>10} {:>9} {:>8} {:>7} {:>4} {:>4} {:>4} {:>5} {:>7} {:>10}",
                d.name,
                c.rx_bytes,
                c.rx_packets,
                0,
                c.rx_dropped,
                0,
                0,
                0,
                c.rx_multicast,
                c.tx_bytes,
                c.tx_packets,
                0,
                c.tx_dropped,
                0,
                0,
                0,
                0
            );
        }
        out
    }

    fn proc_net_route(&self) -> String {
        let line = |text: String| format!("{text:<127}\n");
        let mut out = line(
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT".to_owned(),
        );
        let hex = |addr: std::net::Ipv4Addr| format!("{:08X}", u32::from(addr).swap_bytes());
        let mut routes: Vec<_> = self.fib.routes().filter(|r| r.table == MAIN).collect();
        routes.sort_by_key(|r| (r.dst.addr, 32 - r.dst.len, r.metric));
        for r in routes {
            let refuses = matches!(r.kind, RouteKind::Unreachable | RouteKind::Prohibit);
            //= linux v6.12 net/ipv4/fib_trie.c fib_route_seq_show: of several ways the first
            let (via, dev) = r.nexthops.first().map_or((r.via, r.dev), |hop| (hop.via, hop.dev));
            let flags = if refuses { 0x200 } else { 0 }
                | 1
                | if via.is_some() { 2 } else { 0 }
                | if r.dst.len == 32 { 4 } else { 0 };
            // A nexthop that drops all stands on `lo`.
            let dev = if r.by.is_some() && dev == 0 { 1 } else { dev };
            let dev = self.device(dev).map_or("*", |d| d.name.as_str());
            let via = hex(match via {
                Some(std::net::IpAddr::V4(via)) => via,
                _ => std::net::Ipv4Addr::UNSPECIFIED,
            });
            let mask = format!("{:08X}", r.dst.mask().swap_bytes());
            out += &line(format!(
                "{dev}\t{}\t{via}\t{flags:04X}\t0\t0\t{}\t{mask}\t0\t0\t0",
                hex(r.dst.addr),
                r.metric
            ));
        }
        out
    }

    fn proc_net_arp(&self) -> String {
        let mut out =
            String::from("IP address       HW type     Flags       HW address            Mask     Device\n");
        let shown = |n: &&crate::neigh::Neigh| n.addr.is_ipv4() && !matches!(n.state, Nud::None | Nud::Noarp);
        for n in self.neigh.iter().filter(shown) {
            let flags = match n.state {
                Nud::Permanent => 6,
                state if state.is_valid() => 2,
                _ => 0,
            };
            let mac = n.mac.map(|b| format!("{b:02x}")).join(":");
            let dev = self.device(n.ifindex).map_or("", |d| d.name.as_str());
            let _ = writeln!(
                out,
                "{:<16} 0x{:<10x}0x{:<10x}{mac:<17}     *        {dev}",
                n.addr.to_string(),
                1,
                flags
            );
        }
        out
    }
}
