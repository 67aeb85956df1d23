//! `ifconfig`, `route`, `arp`, `netstat -r` of net-tools, and `brctl`: what they change, said in `ip`'s requests, and what they
//! show.
//!
//! Follows: net-tools 2.10 `ifconfig.c`, `lib/interface.c` `ife_print_long`, `lib/inet_sr.c` `INET_setroute`,
//! `lib/inet_gr.c` `rprint_fib`, `arp.c`; bridge-utils 1.7 `brctl_cmd.c`; linux v6.12 `net/ipv4/devinet.c` `devinet_ioctl`.
//! Differs: the words of the usage are our own; the forms of 2010 are those of today; names are never looked up, save `default`.

use super::Ran;
use crate::route::{MAIN, RouteKind};
use crate::{Host, NetDevice, Nud, Output, Prefix};
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

/// The mask of an address's class.
fn class_len(addr: Ipv4Addr) -> u8 {
    match addr.octets()[0] {
        0 => 0,
        1..=127 => 8,
        128..=191 => 16,
        _ => 24,
    }
}

fn mask_len(text: &str) -> Option<u8> {
    let mask = u32::from(text.parse::<Ipv4Addr>().ok()?);
    let len = mask.leading_ones();
    (mask.checked_shl(len).unwrap_or(0) == 0).then_some(len as u8)
}

impl Host {
    /// Runs one of ip's commands; answers its status and errno's text.
    fn by_ip(&mut self, text: &str, now: Time) -> Result<(), String> {
        let out = self.exec(text, now);
        match out.status {
            0 => Ok(()),
            _ => {
                let first = out.stderr.lines().next().unwrap_or("").to_owned();
                let why = first.strip_prefix("RTNETLINK answers: ").unwrap_or(&first);
                let errno = match why.strip_prefix("Error: ").unwrap_or(why).trim_end_matches('.') {
                    "Nexthop has invalid gateway" => "Network is unreachable",
                    "Device for nexthop is not up" => "Network is down",
                    _ if why.starts_with("Cannot find device") => "No such device",
                    "mtu less than device minimum" | "mtu greater than device maximum" => "Invalid argument",
                    other => other,
                };
                Err(errno.to_owned())
            }
        }
    }

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
            let c = d.counters;
            let _ = write!(
                out,
                "        RX packets {}  bytes {}\n        RX errors 0  dropped {}  overruns 0  frame 0\n        TX packets {}  bytes {}\n        TX errors 0  dropped {} overruns 0  carrier 0  collisions 0\n",
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
        let c = d.counters;
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

    pub(super) fn route_tool(&mut self, line: &Line, now: Time) -> Ran {
        let words: Vec<&str> = line.words[1..].iter().map(|w| w.text.as_str()).collect();
        let (options, rest): (Vec<&str>, Vec<&str>) =
            words.iter().partition(|w| w.starts_with('-') && !matches!(**w, "-net" | "-host"));
        let letters: String = options.iter().flat_map(|o| o.trim_start_matches('-').chars()).collect();
        if options.contains(&"--version") || letters == "V" {
            return Output::say("net-tools 2.10\n");
        }
        let extended = letters.matches('e').count();
        match rest.split_first() {
            None => Output::say(self.route_table(letters.contains('n'), extended)),
            Some((&("add" | "del"), more)) if !more.is_empty() => self.route_set(rest[0], more, now),
            Some((&("add" | "del"), _)) => Output::say(
                "Usage: inet_route [-vF] {add|del} {-host|-net} Target[/prefix] [gw Gw] [[dev] If]\n",
            ),
            Some(_) => Output::fail(
                "Usage: route [-nNvee] [-FC] [<AF>]           List kernel routing tables\n",
                3,
                "",
            ),
        }
    }

    fn route_set(&mut self, verb: &str, words: &[&str], now: Time) -> Ran {
        let ioctl = if verb == "add" { "SIOCADDRT" } else { "SIOCDELRT" };
        let mut words = words.iter().copied().peekable();
        let form = words.next_if(|w| matches!(*w, "-net" | "-host"));
        let target = words.next().unwrap_or_default();
        let (addr, given) = match target.split_once('/') {
            Some((addr, len)) => (addr, len.parse::<u8>().ok().filter(|n| *n <= 32)),
            None => (target, None),
        };
        let default = target == "default";
        let addr = if default { Ok(Ipv4Addr::UNSPECIFIED) } else { addr.parse::<Ipv4Addr>() };
        let Ok(addr) = addr else {
            return Output::fail(format!("{target}: Host name lookup failure\n"), 6, "");
        };
        let (mut len, mut rest, mut kind) = (given, String::new(), "");
        while let Some(word) = words.next() {
            let value = |w: Option<&str>| w.unwrap_or_default().to_owned();
            match word {
                "gw" => {
                    let gw = value(words.next());
                    if gw.parse::<Ipv4Addr>().is_err() {
                        return Output::fail(format!("{gw}: Unknown host\n"), 6, "");
                    }
                    rest += &format!(" via {gw}");
                }
                "netmask" => {
                    let mask = value(words.next());
                    match mask_len(&mask) {
                        Some(n) => len = Some(n),
                        None => return Output::fail(format!("route: bogus netmask {mask}\n"), 3, ""),
                    }
                }
                "metric" => rest += &format!(" metric {}", value(words.next())),
                "mss" => rest += &format!(" advmss {}", value(words.next())),
                "window" => rest += &format!(" window {}", value(words.next())),
                "irtt" => {
                    words.next();
                }
                "reject" => {
                    kind = "unreachable ";
                    rest += " scope host";
                }
                "mod" | "dyn" | "reinstate" => {}
                "dev" | "device" => rest += &format!(" dev {}", value(words.next())),
                other => rest += &format!(" dev {other}"),
            }
        }
        let len = match (default, form, len) {
            (true, ..) => len.unwrap_or(0),
            (_, Some("-host"), _) => 32,
            (_, _, Some(len)) => len,
            (_, Some(_), None) => class_len(addr),
            (_, None, None) => 32,
        };
        let prefix = Prefix::new(addr, len);
        if prefix.network() != prefix {
            let text = "route: netmask doesn't match route address\n";
            return Output::fail(text, 3, "");
        }
        let target = if len == 0 { "default".to_owned() } else { prefix.to_string() };
        match self.by_ip(&format!("ip route {verb} {kind}{target}{rest}"), now) {
            Ok(()) => Output::default(),
            Err(why) => Output::fail(format!("{ioctl}: {why}\n"), 7, ""),
        }
    }

    pub(super) fn route_table(&self, numeric: bool, extended: usize) -> String {
        let mut out = String::from("Kernel IP routing table\n");
        out += match extended {
            0 => "Destination     Gateway         Genmask         Flags Metric Ref    Use Iface\n",
            1 => "Destination     Gateway         Genmask         Flags   MSS Window  irtt Iface\n",
            _ => {
                "Destination     Gateway         Genmask         Flags Metric Ref    Use Iface    MSS   Window irtt\n"
            }
        };
        let mut routes: Vec<_> = self.fib.routes().iter().filter(|r| r.table == MAIN).collect();
        routes.sort_by_key(|r| (r.dst.addr, 32 - r.dst.len, r.metric));
        for r in routes {
            let refused = r.kind != RouteKind::Unicast;
            let dst = if r.dst.len == 0 && !numeric { "default".to_owned() } else { r.dst.addr.to_string() };
            let via = match (refused, r.via) {
                (true, _) => "-".to_owned(),
                (false, via) => via.unwrap_or(Ipv4Addr::UNSPECIFIED).to_string(),
            };
            let mask = Ipv4Addr::from(r.dst.mask()).to_string();
            let flags = if refused {
                "!".to_owned()
            } else {
                format!(
                    "U{}{}",
                    if r.via.is_some() { "G" } else { "" },
                    if r.dst.len == 32 { "H" } else { "" }
                )
            };
            let dev = self.device(r.dev).filter(|_| !refused).map_or("-", |d| d.name.as_str());
            let _ = write!(out, "{dst:<15} {via:<15} {mask:<15} {flags:<5} ");
            let of = |n: u8| r.metrics.iter().find(|m| m.0 == n).map_or(0, |m| m.1);
            let (mss, window) = (of(8), of(3));
            let _ = match (extended, refused) {
                (1, false) => writeln!(out, "{mss:>5} {window:<5}  {:>5} {dev}", 0),
                (1, true) => writeln!(out, "    - -          - {dev}"),
                (0, false) => writeln!(out, "{:<6} {:<2} {:>7} {dev}", r.metric, 0, 0),
                (0, true) => writeln!(out, "{:<6} {:<2} {:>7} {dev}", r.metric, "-", 0),
                (_, false) => {
                    writeln!(out, "{:<6} {:<2} {:>7} {dev:<8} {mss:<5} {window:<6} {}", r.metric, 0, 0, 0)
                }
                (_, true) => writeln!(out, "{:<6} {:<2} {:>7} {dev:<8} -     -      -", r.metric, "-", 0),
            };
        }
        out
    }

    pub(super) fn arp_tool(&mut self, line: &Line, now: Time) -> Ran {
        let words: Vec<&str> = line.words[1..].iter().map(|w| w.text.as_str()).collect();
        let (mut bsd, mut set, mut del, mut dev, mut rest) = (false, false, false, None, Vec::new());
        let mut at = words.iter().copied();
        while let Some(word) = at.next() {
            match word.strip_prefix('-') {
                Some("i") => dev = at.next(),
                Some(letters) if !letters.is_empty() => {
                    for letter in letters.chars() {
                        match letter {
                            'a' => bsd = true,
                            's' => set = true,
                            'd' => del = true,
                            _ => {}
                        }
                    }
                }
                _ => rest.push(word),
            }
        }
        let addr = rest.first().and_then(|w| w.parse::<Ipv4Addr>().ok());
        if set || del {
            let Some(addr) = addr else {
                return Output::fail("arp: need host name\n", 255, "");
            };
            if set && rest.len() < 2 {
                return Output::fail("arp: need hardware address\n", 255, "");
            }
            let known = self.neigh.iter().find(|n| n.addr == addr).map(|n| n.ifindex);
            let hop = self.fib.search(addr);
            let out = dev.map(str::to_owned).or_else(|| {
                let index =
                    known.or((hop.kind == Some(RouteKind::Unicast) && hop.next == addr).then_some(hop.oif));
                index.and_then(|i| self.device(i)).map(|d| d.name.clone())
            });
            let Some(out) = out else {
                let text = if del { format!("No ARP entry for {addr}\n") } else { String::new() };
                let err = if del { String::new() } else { "SIOCSARP: Network is unreachable\n".to_owned() };
                return Output { stdout: text, ..Output::fail(err, 255, "") };
            };
            let request = if set {
                let nud = if rest.contains(&"temp") { "reachable" } else { "permanent" };
                format!("ip neigh replace {addr} lladdr {} dev {out} nud {nud}", rest[1])
            } else {
                format!("ip neigh del {addr} dev {out}")
            };
            return match self.by_ip(&request, now) {
                Ok(()) => Output::default(),
                Err(why) if why.contains("lladdr") => {
                    Output::fail("arp: invalid hardware address\n", 255, "")
                }
                Err(_) if del => {
                    Output { stdout: format!("No ARP entry for {addr}\n"), ..Output::fail("", 255, "") }
                }
                Err(why) => Output::fail(format!("SIOCSARP: {why}\n"), 255, ""),
            };
        }
        let all: Vec<_> = self.neigh.iter().filter(|n| !matches!(n.state, Nud::None | Nud::Noarp)).collect();
        let index = dev.map(|d| self.ifindex(d).unwrap_or(0));
        let shown =
            all.iter().filter(|n| index.is_none_or(|i| i == n.ifindex) && addr.is_none_or(|a| a == n.addr));
        let (mut out, mut count) = (String::new(), 0);
        for n in shown {
            let device = self.device(n.ifindex).map_or("", |d| d.name.as_str());
            let mac = n.mac.map(|b| format!("{b:02x}")).join(":");
            let permanent = n.state == Nud::Permanent;
            if count == 0 && !bsd {
                out += "Address                  HWtype  HWaddress           Flags Mask            Iface\n";
            }
            count += 1;
            let _ = match (bsd, n.state.is_valid()) {
                (true, true) => {
                    writeln!(
                        out,
                        "? ({}) at {mac} [ether] {}on {device}",
                        n.addr,
                        if permanent { "PERM " } else { "" }
                    )
                }
                (true, false) => writeln!(out, "? ({}) at <incomplete>  on {device}", n.addr),
                (false, true) => {
                    let flags = if permanent { "CM" } else { "C" };
                    writeln!(
                        out,
                        "{:<23}  ether   {mac:<18}  {flags:<6}{:<15} {device}",
                        n.addr.to_string(),
                        ""
                    )
                }
                (false, false) => writeln!(
                    out,
                    "{:<23}          (incomplete)        {:<6}{:<15} {device}",
                    n.addr.to_string(),
                    "",
                    ""
                ),
            };
        }
        if count == 0 {
            if let Some(addr) = addr {
                out = format!("{addr} ({addr}) -- no entry\n");
            } else if index.is_some() && !all.is_empty() {
                out = format!("arp: in {} entries no match found.\n", all.len());
            }
        }
        Output::say(out)
    }

    pub(super) fn brctl(&mut self, line: &Line, now: Time) -> Ran {
        let words: Vec<&str> = line.words[1..].iter().map(|w| w.text.as_str()).collect();
        let bridge =
            |host: &Host, name: &str| host.ifindex(name).filter(|&i| host.devices[i].class.kind == "bridge");
        let fail = |text: String| Output::fail(text, 1, "");
        match words.as_slice() {
            ["addbr", name] => match self.by_ip(&format!("ip link add name {name} type bridge"), now) {
                Ok(()) => Output::default(),
                Err(_) => {
                    fail(format!("device {name} already exists; can't create bridge with the same name\n"))
                }
            },
            ["delbr", name] => match bridge(self, name) {
                None => fail(format!("bridge {name} doesn't exist; can't delete it\n")),
                Some(i) if self.devices[i].up => {
                    fail(format!("bridge {name} is still up; can't delete it\n"))
                }
                Some(i) => {
                    self.delete_link(i, now);
                    Output::default()
                }
            },
            [verb @ ("addif" | "delif"), name, devs @ ..] => {
                for dev in devs {
                    let Some(ifindex) = self.ifindex(dev) else {
                        return fail(format!("interface {dev} does not exist!\n"));
                    };
                    let Some(to) = bridge(self, name) else {
                        return fail(format!("bridge {name} does not exist!\n"));
                    };
                    let master = self.devices[ifindex].master;
                    match (*verb, master) {
                        ("addif", Some(_)) => {
                            return fail(format!(
                                "device {dev} is already a member of a bridge; can't add it to bridge {name}.\n"
                            ));
                        }
                        ("delif", m) if m != Some(to) => {
                            return fail(format!("device {dev} is not a port of {name}\n"));
                        }
                        ("addif", None) => {
                            if let Err(why) = self.by_ip(&format!("ip link set {dev} master {name}"), now) {
                                return fail(format!("can't add {dev} to bridge {name}: {why}\n"));
                            }
                        }
                        _ => self.set_master(ifindex, None),
                    }
                }
                Output::default()
            }
            ["show", ..] => {
                let mut out = String::from("bridge name\tbridge id\t\tSTP enabled\tinterfaces\n");
                for d in self.devices.iter().filter(|d| d.class.kind == "bridge") {
                    let id = d.mac.map(|b| format!("{b:02x}")).concat();
                    let mut ports =
                        self.devices.iter().filter(|p| p.master == Some(d.ifindex)).map(|p| p.name.as_str());
                    let _ = writeln!(out, "{}\t\t8000.{id}\tno\t\t{}", d.name, ports.next().unwrap_or(""));
                    for port in ports {
                        let _ = writeln!(out, "\t\t\t\t\t\t\t{port}");
                    }
                }
                Output::say(out)
            }
            ["stp" | "setfd" | "sethello" | "setmaxage" | "setageing" | "setbridgeprio", name, ..] => {
                match bridge(self, name) {
                    Some(_) => Output::default(),
                    None => fail(format!("bridge {name} does not exist!\n")),
                }
            }
            [] => fail("Usage: brctl [commands]\n".to_owned()),
            [other, ..] => fail(format!("never heard of command [{other}]\n")),
        }
    }
}

fn short_head() -> String {
    "Iface      MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg\n".to_owned()
}
