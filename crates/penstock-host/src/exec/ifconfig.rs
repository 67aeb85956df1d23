//! `ifconfig` of net-tools: what it changes, said in `ip`'s requests where `ip` has them, and what it shows.
//!
//! Follows: net-tools 2.10 `ifconfig.c`, `lib/interface.c` `ife_print_long`; linux v6.12 `net/ipv4/devinet.c`
//! `devinet_ioctl`.
//! Differs: the words of the usage are our own; the forms of 2010 are those of today.

use super::Ran;
use super::nettools::{class_len, mask_len};
use crate::{Host, NetDevice, Output, Prefix};
use penstock_lang::token::Line;
use penstock_model::Time;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// `IFF_*` in the order ifconfig names them.
const FLAGS: [(&str, u32); 12] = [
    ("UP", 0x1),
    ("BROADCAST", 0x2),
    ("LOOPBACK", 0x8),
    ("POINTOPOINT", 0x10),
    ("NOTRAILERS", 0x20),
    ("RUNNING", 0x40),
    ("NOARP", 0x80),
    ("PROMISC", 0x100),
    ("ALLMULTI", 0x200),
    ("SLAVE", 0x800),
    ("MASTER", 0x400),
    ("MULTICAST", 0x1000),
];

/// `12345 (12.0 KiB)`.
fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut at) = (n as f64, 0);
    while value >= 1024.0 && at + 1 < units.len() {
        (value, at) = (value / 1024.0, at + 1);
    }
    format!("{n} ({value:.1} {})", units[at])
}

impl Host {
    pub(super) fn ifconfig(&mut self, line: &Line, now: Time) -> Ran {
        let words: Vec<String> = line.words[1..].iter().map(|w| w.text.clone()).collect();
        let (mut all, mut short) = (false, false);
        let mut rest = words.as_slice();
        while let [option, more @ ..] = rest
            && option.starts_with('-')
        {
            match option.as_str() {
                "-a" => all = true,
                "-s" => short = true,
                "-v" => {}
                "-V" | "--version" => return Output::say("net-tools 2.10\n"),
                other => {
                    let text = format!("ifconfig: option `{other}' not recognised.\n");
                    return Output::fail(text, 1, "ifconfig [-a] [-s] [IFACE [ADDR] …]");
                }
            }
            rest = more;
        }
        let Some((name, settings)) = rest.split_first() else {
            let mut devices: Vec<&NetDevice> = self.devices.iter().filter(|d| all || d.up).collect();
            devices.sort_by(|a, b| a.name.cmp(&b.name));
            let mut out = if short { short_head() } else { String::new() };
            for d in devices {
                out += &if short { self.ife_short(d) } else { self.ife_long(d) };
            }
            return Output::say(out);
        };
        let base = name.split_once(':').map_or(name.as_str(), |(base, _)| base);
        if settings.is_empty() {
            let Some(d) = self.device(self.ifindex(base).unwrap_or(0)) else {
                let text = format!("{name}: error fetching interface information: Device not found\n");
                return Output::fail(text, 1, "ip link shows the devices there are");
            };
            return Output::say(match (short, name.contains(':')) {
                (true, _) => short_head() + &self.ife_short(d),
                (false, true) => self.ife_alias(d, name),
                (false, false) => self.ife_one(d, &d.name, true),
            });
        }
        self.ifconfig_set(name, base, settings, now)
    }

    fn ifconfig_set(&mut self, name: &str, base: &str, settings: &[String], now: Time) -> Ran {
        let alias = name != base;
        let mut words = settings.iter().map(String::as_str);
        let mut failed = Output::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().map(str::to_owned);
            let (on, plain) = match word.strip_prefix('-') {
                Some(rest) => ("off", rest),
                None => ("on", word),
            };
            let usage = || Output::fail("Usage:\n  ifconfig [-a] [-s] IFACE [ADDR] [up|down] …\n", 3, "");
            let (request, ioctl) = match plain {
                "up" | "down" if self.ifindex(base).is_none() => {
                    let text = format!("{name}: ERROR while getting interface flags: No such device\n");
                    return Output::fail(text, 255, "");
                }
                "down" if alias => {
                    let addresses = self.device(self.ifindex(base).unwrap_or(0)).map(|d| &d.addresses);
                    let gone = addresses.and_then(|a| a.iter().find(|a| a.label == name)).map(|a| a.prefix);
                    match gone {
                        Some(prefix) => (format!("ip addr del {prefix} dev {base}"), "SIOCSIFFLAGS"),
                        None => continue,
                    }
                }
                "up" | "down" => (format!("ip link set dev {base} {plain}"), "SIOCSIFFLAGS"),
                "promisc" => (format!("ip link set dev {base} promisc {on}"), "SIOCSIFFLAGS"),
                "allmulti" => (format!("ip link set dev {base} allmulticast {on}"), "SIOCSIFFLAGS"),
                "multicast" => (format!("ip link set dev {base} multicast {on}"), "SIOCSIFFLAGS"),
                "arp" => (format!("ip link set dev {base} arp {on}"), "SIOCSIFFLAGS"),
                "dynamic" => (format!("ip link set dev {base} dynamic {on}"), "SIOCSIFFLAGS"),
                "trailers" | "metric" | "mem_start" | "io_addr" | "irq" | "media" => {
                    if plain != "trailers" {
                        value();
                    }
                    continue;
                }
                "mtu" | "txqueuelen" => {
                    let Some(text) = value() else { return usage() };
                    let n: u32 = text.parse().unwrap_or(0);
                    let ioctl = if plain == "mtu" { "SIOCSIFMTU" } else { "SIOCSIFTXQLEN" };
                    (format!("ip link set dev {base} {plain} {n}"), ioctl)
                }
                "hw" => {
                    let (Some(_), Some(mac)) = (value(), value()) else { return usage() };
                    (format!("ip link set dev {base} address {mac}"), "SIOCSIFHWADDR")
                }
                "netmask" => {
                    let Some(text) = value() else { return usage() };
                    let done = mask_len(&text)
                        .ok_or("Invalid argument")
                        .and_then(|len| self.set_mask(name, base, len));
                    if let Err(why) = done {
                        failed = Output::fail(format!("SIOCSIFNETMASK: {why}\n"), 1, "");
                    }
                    continue;
                }
                "broadcast" => {
                    let addr = value().and_then(|text| text.parse::<Ipv4Addr>().ok());
                    self.set_broadcast(name, base, addr);
                    continue;
                }
                "add" | "del" => {
                    let Some(text) = value() else { return usage() };
                    let text = if text.contains('/') { text } else { format!("{text}/32") };
                    (format!("ip addr {plain} {text} dev {base}"), "SIOCSIFADDR")
                }
                "inet" => continue,
                _ => {
                    let (addr, len) = match word.split_once('/') {
                        Some((addr, len)) => (addr, len.parse::<u8>().ok().filter(|n| *n <= 32)),
                        None => (word, None),
                    };
                    let addr = if addr == "default" { Ok(Ipv4Addr::UNSPECIFIED) } else { addr.parse() };
                    let Ok(addr) = addr else {
                        return Output::fail(format!("{word}: Host name lookup failure\n"), 1, "");
                    };
                    let Some(ifindex) = self.ifindex(base) else {
                        return Output::fail("SIOCSIFADDR: No such device\n", 255, "");
                    };
                    self.set_inet(ifindex, name, addr, len);
                    (format!("ip link set dev {base} up"), "SIOCSIFFLAGS")
                }
            };
            if let Err(why) = self.by_ip(&request, now) {
                failed = Output::fail(
                    format!("{ioctl}: {why}\n"),
                    if why == "No such device" { 255 } else { 1 },
                    "",
                );
            }
        }
        failed
    }

    /// SIOCSIFADDR: the address of this label is replaced.
    fn set_inet(&mut self, ifindex: u32, label: &str, addr: Ipv4Addr, len: Option<u8>) {
        // One that is not there need not go.
        let _ = self.delete_address_where(ifindex, |a| a.label == label);
        if addr.is_unspecified() {
            return;
        }
        let prefix = Prefix::new(addr, len.unwrap_or(class_len(addr)));
        let loopback = self.devices[ifindex].loopback;
        let broadcast = (prefix.len < 31 && !loopback).then(|| prefix.broadcast());
        let new = crate::Address { broadcast, label: label.to_owned(), ..crate::Address::new(prefix) };
        // The same address under another label stays as it is.
        let _ = self.insert_address(ifindex, new);
    }
    fn set_mask(&mut self, label: &str, base: &str, len: u8) -> Result<(), &'static str> {
        let ifindex = self.ifindex(base).ok_or("No such device")?;
        let old = self.devices[ifindex].addresses.iter().find(|a| a.label == label).cloned();
        let old = old.ok_or("Cannot assign requested address")?;
        self.set_inet(ifindex, label, old.prefix.addr, Some(len));
        Ok(())
    }
    fn set_broadcast(&mut self, label: &str, base: &str, broadcast: Option<Ipv4Addr>) {
        let Some(ifindex) = self.ifindex(base) else { return };
        let Some(old) = self.devices[ifindex].addresses.iter().find(|a| a.label == label).cloned() else {
            return;
        };
        // It is there, and what comes back is the same but for its broadcast.
        let _ = self.delete_address_where(ifindex, |a| a.label == label);
        let _ = self.insert_address(ifindex, crate::Address { broadcast, ..old });
    }

    fn ife_flags(&self, d: &NetDevice) -> String {
        let flags = self.link_flags(d) & 0xffff;
        let names: Vec<&str> = FLAGS.iter().filter(|f| flags & f.1 != 0).map(|f| f.0).collect();
        format!("flags={flags}<{}>  mtu {}", names.join(","), d.mtu)
    }
    fn ife_long(&self, d: &NetDevice) -> String {
        let mut out = self.ife_one(d, &d.name, true);
        for a in d.addresses.iter().filter(|a| a.label != d.name && a.label.contains(':')) {
            out += &self.ife_alias(d, &a.label);
        }
        out
    }
    fn ife_alias(&self, d: &NetDevice, label: &str) -> String {
        self.ife_one(d, label, false)
    }
    fn ife_one(&self, d: &NetDevice, label: &str, counters: bool) -> String {
        let mut out = format!("{label}: {}\n", self.ife_flags(d));
        if let Some(a) = d.addresses.iter().find(|a| a.label == label) {
            let _ =
                write!(out, "        inet {}  netmask {}", a.prefix.addr, Ipv4Addr::from(a.prefix.mask()));
            if let Some(brd) = a.broadcast {
                let _ = write!(out, "  broadcast {brd}");
            } else if !d.loopback {
                out.push_str("  broadcast 0.0.0.0");
            }
            out.push('\n');
        }
        let mac = d.mac.map(|b| format!("{b:02x}")).join(":");
        let _ = match d.loopback {
            true => writeln!(out, "        loop  txqueuelen {}  (Local Loopback)", d.tx_queue_len),
            false => writeln!(out, "        ether {mac}  txqueuelen {}  (Ethernet)", d.tx_queue_len),
        };
        if counters {
            let c = self.counters(d);
            let _ = write!(
                out,
                "        RX packets {}  bytes {}\n        RX errors 0  dropped {}  overruns 0  frame 0\n        TX packets {}  bytes {}\n        TX errors 0  dropped {} \
                 overruns 0  carrier 0  collisions 0\n",
                c.rx_packets,
                bytes(c.rx_bytes),
                c.rx_dropped,
                c.tx_packets,
                bytes(c.tx_bytes),
                c.tx_dropped
            );
        }
        out + "\n"
    }
    fn ife_short(&self, d: &NetDevice) -> String {
        let c = self.counters(d);
        let flags = self.link_flags(d);
        let letters = [
            (0x2, 'B'),
            (0x8, 'L'),
            (0x400, 'm'),
            (0x1000, 'M'),
            (0x80, 'O'),
            (0x100, 'P'),
            (0x40, 'R'),
            (0x1, 'U'),
        ];
        let mut set: String = letters.iter().filter(|l| flags & l.0 != 0).map(|l| l.1).collect();
        if set.is_empty() {
            set.push_str("[NO FLAGS]");
        }
        format!(
            "{:<8}    {:>9} {:>8} {:>6} {:>6} {:<6} {:>8} {:>6} {:>6} {:>6} {set}\n",
            d.name, d.mtu, c.rx_packets, 0, c.rx_dropped, 0, c.tx_packets, 0, c.tx_dropped, 0
        )
    }
}

fn short_head() -> String {
    "Iface      MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg\n".to_owned()
}
