//! `route`, `arp`, `netstat -r` of net-tools, and `brctl`: what they change, said in `ip`'s requests, and what they show.
//!
//! Follows: net-tools 2.10 `lib/inet_sr.c` `INET_setroute`, `lib/inet_gr.c` `rprint_fib`, `arp.c`; bridge-utils 1.7
//! `brctl_cmd.c`.
//! Differs: the words of the usage are our own; the forms of 2010 are those of today; names are never looked up, save `default`.

use super::Ran;
use crate::route::{MAIN, RouteKind};
use crate::{Host, Nud, Output, Prefix};
use penstock_lang::token::Line;
use penstock_model::Time;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

/// The mask of an address's class.
pub(super) fn class_len(addr: Ipv4Addr) -> u8 {
    match addr.octets()[0] {
        0 => 0,
        1..=127 => 8,
        128..=191 => 16,
        _ => 24,
    }
}

pub(super) fn mask_len(text: &str) -> Option<u8> {
    let mask = u32::from(text.parse::<Ipv4Addr>().ok()?);
    let len = mask.leading_ones();
    (mask.checked_shl(len).unwrap_or(0) == 0).then_some(len as u8)
}

impl Host {
    /// Runs one of ip's commands; answers its status and errno's text.
    pub(super) fn by_ip(&mut self, text: &str, now: Time) -> Result<(), String> {
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
        let mut routes: Vec<_> = self.fib.routes().filter(|r| r.table == MAIN).collect();
        routes.sort_by_key(|r| (r.dst.addr, 32 - r.dst.len, r.metric));
        for r in routes {
            let refused = r.kind != RouteKind::Unicast;
            let dst = if r.dst.len == 0 && !numeric { "default".to_owned() } else { r.dst.addr.to_string() };
            let via = match (refused, r.via) {
                (true, _) => "-".to_owned(),
                //= linux v6.12 net/ipv4/fib_trie.c fib_route_seq_show: a gateway of IPv6 has no place there
                (false, Some(IpAddr::V4(via))) => via.to_string(),
                (false, _) => Ipv4Addr::UNSPECIFIED.to_string(),
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
            let known = self.neigh.iter().find(|n| n.addr == IpAddr::V4(addr)).map(|n| n.ifindex);
            let hop = self.fib.search(addr);
            let out = dev.map(str::to_owned).or_else(|| {
                let index = known
                    .or((hop.kind == Some(RouteKind::Unicast) && (hop.next, hop.six) == (addr, 0))
                        .then_some(hop.oif));
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
                        _ => self.set_master(ifindex, None, now),
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
                    let prio = d.bridge.as_ref().map_or(0x8000, |b| b.priority);
                    let stp = if self.tree_of(d.ifindex).is_some_and(|t| t.on) { "yes" } else { "no" };
                    let first = ports.next().unwrap_or("");
                    let _ = writeln!(out, "{}\t\t{prio:04x}.{id}\t{stp}\t\t{first}", d.name);
                    for port in ports {
                        let _ = writeln!(out, "\t\t\t\t\t\t\t{port}");
                    }
                }
                Output::say(out)
            }
            ["showstp", name] => Output::fail(
                "brctl showstp: not simulated\n",
                127,
                &format!("bridge link show; grep . /sys/class/net/{name}/bridge/root_*"),
            ),
            ["showmacs", name] => match bridge(self, name) {
                None => fail("read of forward table failed: No such device\n".to_owned()),
                Some(i) => Output::say(self.macs_behind(i, now)),
            },
            ["hairpin", name, port, how] => match (bridge(self, name), self.ifindex(port), *how) {
                (None, ..) => fail(format!("bridge {name} does not exist!\n")),
                (Some(to), Some(i), "on" | "yes" | "1" | "off" | "no" | "0")
                    if self.devices[i].master == Some(to) =>
                {
                    let ports = self.devices[to].bridge.iter_mut().flat_map(|b| b.ports.iter_mut());
                    for port in ports.filter(|p| p.ifindex == i) {
                        port.set.hairpin = matches!(*how, "on" | "yes" | "1");
                    }
                    Output::default()
                }
                (Some(_), Some(i), "on" | "yes" | "1" | "off" | "no" | "0") => {
                    fail(format!("interface {} is not a port of {name}\n", self.devices[i].name))
                }
                (Some(_), None, _) => fail(format!("interface {port} does not exist!\n")),
                _ => fail("expect on/off for argument\n".to_owned()),
            },
            ["stp", name, how] => match (bridge(self, name), *how) {
                (None, _) => fail(format!("bridge {name} does not exist!\n")),
                (Some(i), "on" | "yes" | "1" | "off" | "no" | "0") => {
                    let state = if matches!(*how, "on" | "yes" | "1") { "1" } else { "0" };
                    match self.write_bridge_word(i, "stp_state", state, now) {
                        Ok(()) => Output::default(),
                        Err(why) => fail(format!("set stp status failed: {why}\n")),
                    }
                }
                _ => fail("expect on/off for argument\n".to_owned()),
            },
            [verb @ ("setfd" | "setageing" | "sethello" | "setmaxage"), name, seconds] => {
                let Some(i) = bridge(self, name) else {
                    return fail(format!("bridge {name} does not exist!\n"));
                };
                let Some(span) = seconds.parse().ok().filter(|s: &f64| (0.0..4e6).contains(s)) else {
                    return fail("bad time value\n".to_owned());
                };
                // As hundredths of a second.
                let hundredths = ((span * 100.0) as i64).to_string();
                let (word, what) = match *verb {
                    "setfd" => ("forward_delay", "forward delay"),
                    "sethello" => ("hello_time", "hello timer"),
                    "setmaxage" => ("max_age", "max age"),
                    _ => ("ageing_time", "ageing time"),
                };
                match self.write_bridge_word(i, word, &hundredths, now) {
                    Ok(()) => Output::default(),
                    Err(why) => fail(format!("set {what} failed: {why}\n")),
                }
            }
            ["setbridgeprio", name, prio] => match (bridge(self, name), prio.parse::<u16>()) {
                (None, _) => fail(format!("bridge {name} does not exist!\n")),
                (_, Err(_)) => fail("bad priority\n".to_owned()),
                (Some(i), Ok(prio)) => {
                    self.set_bridge_priority(i, prio, now);
                    Output::default()
                }
            },
            [verb @ ("setpathcost" | "setportprio"), name, port, number] => {
                let Some(to) = bridge(self, name) else {
                    return fail(format!("bridge {name} does not exist!\n"));
                };
                let (cost, what) = (
                    *verb == "setpathcost",
                    if *verb == "setpathcost" { "path cost" } else { "port priority" },
                );
                let Ok(number) = number.parse::<u32>() else {
                    return fail(format!("bad {} value\n", if cost { "path cost" } else { "path priority" }));
                };
                let Some(i) = self.ifindex(port).filter(|&i| self.devices[i].master == Some(to)) else {
                    return fail(format!("interface {port} is not a port of {name}\n"));
                };
                let (cost, priority) = if cost { (Some(number), None) } else { (None, Some(number)) };
                match self.set_port_of_tree(i, priority, cost, now) {
                    Ok(()) => Output::default(),
                    Err(_) => fail(format!("set {what} failed: Numerical result out of range\n")),
                }
            }
            [] => fail("Usage: brctl [commands]\n".to_owned()),
            [other, ..] => fail(format!("never heard of command [{other}]\n")),
        }
    }

    /// `brctl showmacs`: by address, as br_cmd_showmacs sorts.
    fn macs_behind(&self, bridge: u32, now: Time) -> String {
        let mut out = String::from("port no\tmac addr\t\tis local?\tageing timer\n");
        let mut heard = self.devices[bridge].bridge.as_ref().map_or(Vec::new(), |b| b.heard(now));
        heard.sort_by_key(|h| h.mac);
        for h in heard {
            // Who is behind no port, the bridge itself, is not told (br_fdb_fillbuf).
            let bridge = self.devices[bridge].bridge.as_deref();
            let Some(port) = h.port.and_then(|port| bridge?.port_number(port)) else { continue };
            let mac: Vec<String> = h.mac.iter().map(|b| format!("{b:02x}")).collect();
            let hundredths = h.age.as_ns() / 10_000_000;
            let local = if h.local { "yes" } else { "no" };
            let _ = writeln!(
                out,
                "{:>3}\t{}\t{local}\t\t{:>4}.{:02}",
                port,
                mac.join(":"),
                hundredths / 100,
                hundredths % 100
            );
        }
        out
    }
}
