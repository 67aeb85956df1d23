//! `tracepath`: who is on the way, and how long a packet it takes.
//!
//! Follows: iputils 20221126 `tracepath.c` (`probe_ttl`, `recverr`, `print_host`, `main`); linux v6.12 `net/ipv4/icmp.c` `icmp_err_convert`,
//! `net/ipv6/icmp.c` `icmpv6_err_convert` (what an error is called).
//! Differs: names are those of `/etc/hosts`; where they end "???" stands, as without a server of names.

use crate::app::options::{self, Known, o};
use crate::app::{Cx, Failure, Family, Program, name_of_address};
use crate::index::NONE;
use crate::intent::Intent;
use crate::socket::probe::{Discover, Probe, Unsent};
use crate::wake::Wake;
use penstock_model::Time;
use penstock_packet::{L4, Udp};
use std::net::{IpAddr, Ipv4Addr};

pub(crate) const KNOWN: &[Known] = &[
    o('4', "", false),
    o('6', "", false),
    o('n', "", false),
    o('b', "", false),
    o('h', "", false),
    o('l', "", true),
    o('m', "", true),
    o('p', "", true),
    o('V', "", false),
];

const USAGE: &str = concat!(
    "\nUsage\n",
    "  tracepath [options] <destination>\n",
    "\nOptions:\n",
    "  -4             use IPv4\n",
    "  -6             use IPv6\n",
    "  -b             print both name and ip\n",
    "  -l <length>    use packet <length>\n",
    "  -m <hops>      use maximum <hops>\n",
    "  -n             no dns name resolution\n",
    "  -p <port>      use destination <port>\n",
    "  -V             print version and exit\n",
    "  <destination>  dns name or ip address\n",
    "\nFor more details see tracepath(8).\n",
);

/// How often a packet that is not sent is tried again, and how often one that is not answered.
const MAX_PROBES: u32 = 10;
const TRIES: u32 = 3;
/// Ports that are used one after another.
const PORTS: usize = 64;
const COLUMN: usize = 52;
const WAIT: u32 = 0;

/// What a probe has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// Nothing was heard.
    Silence,
    /// The next hop may be asked.
    Progress,
    /// The way is at its end.
    Over,
}

/// One `tracepath`.
pub(crate) struct Tracepath {
    // Parameters
    family: Family,
    target: String,
    numeric: bool,
    both: bool,
    max_hops: u32,
    base_port: u16,
    length: u32,
    // Variables
    addr: IpAddr,
    from: IpAddr,
    sock: u32,
    sport: u16,
    mtu: u32,
    /// The MTU before the probe at hand.
    old_mtu: u32,
    ttl: u32,
    tries: u32,
    /// Of each port: the hop that was asked last, and when.
    sent: Vec<Option<(u32, Time)>>,
    port: usize,
    hops: Option<(u32, u32)>,
    timer: u32,
}

/// `strtol_or_err`.
fn number(value: &str, least: i64, most: i64) -> Result<i64, Failure> {
    let wrong = |why: String| Failure::new(format!("tracepath: invalid argument: '{value}'{why}\n"), 1);
    let text = value.trim_start();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong(String::new()));
    }
    match text.trim_start_matches('+').parse::<i64>() {
        Err(_) => Err(wrong(": Numerical result out of range".to_owned())),
        Ok(n) if !(least..=most).contains(&n) => {
            Err(wrong(format!(": out of range: {least} <= value <= {most}")))
        }
        Ok(n) => Ok(n),
    }
}

impl Tracepath {
    pub(crate) fn parse(program: &str, args: &[&str]) -> Result<Tracepath, Failure> {
        let (options, targets) = options::parse_all("tracepath", args, KNOWN, &[], USAGE, 255)?;
        let mut t = Tracepath {
            family: match program {
                "tracepath4" => Family::Four,
                "tracepath6" => Family::Six,
                _ => Family::Any,
            },
            target: String::new(),
            numeric: false,
            both: false,
            max_hops: 30,
            base_port: 0,
            length: 0,
            addr: Ipv4Addr::UNSPECIFIED.into(),
            from: Ipv4Addr::UNSPECIFIED.into(),
            sock: 0,
            sport: 0,
            mtu: 0,
            old_mtu: 0,
            ttl: 1,
            tries: 0,
            sent: vec![None; PORTS],
            port: 0,
            hops: None,
            timer: 0,
        };
        for (letter, value) in options {
            match letter {
                '4' | '6' => {
                    let family = if letter == '4' { Family::Four } else { Family::Six };
                    if t.family != Family::Any && t.family != family {
                        let text = "tracepath: Only one -4 or -6 option may be specified\n";
                        return Err(Failure::new(text, 2));
                    }
                    t.family = family;
                }
                'n' => t.numeric = true,
                'b' => t.both = true,
                'l' => t.length = number(value, 0, i32::MAX.into())? as u32,
                'm' => t.max_hops = number(value, 0, 255)? as u32,
                'p' => t.base_port = number(value, 0, 65_535)? as u16,
                'V' => {
                    let text = "tracepath from iputils 20221126\nlibcap: yes, IDN: yes, NLS: no, error.h: yes, \
                        getrandom(): yes, __fpending(): yes\n";
                    return Err(Failure::new(text, 0));
                }
                _ => return Err(Failure::new(USAGE, 255)),
            }
        }
        let [target] = targets[..] else { return Err(Failure::new(USAGE, 255)) };
        target.clone_into(&mut t.target);
        if t.base_port == 0 {
            t.base_port = 44_444;
            if let Some((name, port)) = target.split_once('/') {
                (t.target, t.base_port) = (name.to_owned(), number(port, 0, 65_535)? as u16);
            }
        }
        Ok(t)
    }
    /// The headers of IP and UDP, bytes.
    fn overhead(&self) -> u32 {
        if self.addr.is_ipv4() { 28 } else { 48 }
    }

    // Probes.

    /// Sends probes until one is on its way, or none can be sent.
    fn probe(&mut self, cx: &mut Cx<'_>) {
        loop {
            self.old_mtu = self.mtu;
            if let Some(outcome) = self.send(cx) {
                if !self.next(outcome, cx) {
                    return;
                }
                continue;
            }
            // select waits for a second.
            cx.net.set_timer(self.timer, cx.now() + crate::wake::poll(1000));
            return;
        }
    }
    /// `probe_ttl` up to where it waits; what it has come to otherwise.
    fn send(&mut self, cx: &mut Cx<'_>) -> Option<Outcome> {
        let mut tries = 0;
        // What is no longer than its headers is not sent.
        while tries < MAX_PROBES && self.mtu > self.overhead() {
            let dport = self.base_port.wrapping_add(self.port as u16);
            self.sent[self.port] = Some((self.ttl, cx.now()));
            let probe = Probe {
                from: self.from,
                to: self.addr,
                size: self.mtu - self.overhead() + 8,
                ttl: self.ttl as u8,
                tos: 0,
                mark: 0,
                label: 0,
                bound: 0,
                flow: NONE,
                discover: Discover::Do,
                l4: L4::Udp(Udp { sport: self.sport, dport }),
            };
            match cx.net.send_probe(cx.host, &probe) {
                Ok(()) => {
                    self.port = (self.port + 1) % PORTS;
                    return None;
                }
                // No datagram of UDP over IPv4 is that long, and the queue of errors says nothing of it.
                Err(Unsent::TooLong(_)) if self.addr.is_ipv4() && probe.size - 8 > 0xffff => tries += 1,
                Err(Unsent::TooLong(mtu)) => {
                    let text = format!("{:2}?: {:<32} ", self.ttl, "[LOCALHOST]");
                    cx.print(&text);
                    // Of IPv6 the queue of errors knows the port.
                    if self.addr.is_ipv6() {
                        cx.print("  0.000ms ");
                    }
                    cx.print(&format!("pmtu {mtu}\n"));
                    self.mtu = mtu;
                    tries = 0;
                }
                Err(Unsent::Error(_)) => tries += 1,
            }
            self.sent[self.port] = None;
        }
        self.port = (self.port + 1) % PORTS;
        cx.print(&format!("{:2}:  send failed\n", self.ttl));
        Some(Outcome::Over)
    }
    /// What follows from a probe's outcome; `false`: tracepath has ended.
    fn next(&mut self, outcome: Outcome, cx: &mut Cx<'_>) -> bool {
        if self.mtu != self.old_mtu {
            self.tries = 0;
            return true;
        }
        match outcome {
            Outcome::Over => {
                self.finish(cx);
                return false;
            }
            Outcome::Progress => {}
            Outcome::Silence => {
                self.tries += 1;
                if self.tries < TRIES {
                    return true;
                }
                cx.print(&format!("{:2}:  no reply\n", self.ttl));
            }
        }
        (self.ttl, self.tries) = (self.ttl + 1, 0);
        if self.ttl > self.max_hops {
            self.too_many(cx);
            return false;
        }
        true
    }
    fn too_many(&mut self, cx: &mut Cx<'_>) {
        cx.print(&format!("     Too many hops: pmtu {}\n", self.mtu));
        self.finish(cx);
    }
    fn finish(&mut self, cx: &mut Cx<'_>) {
        cx.print(&format!("     Resume: pmtu {} ", self.mtu));
        if let Some((to, back)) = self.hops {
            cx.print(&format!("hops {to} back {back} "));
        }
        cx.print("\n");
        cx.net.wakes.stop_timer(self.timer);
        cx.net.udp_close(self.sock);
        cx.exit(0);
    }

    // Answers.

    /// `recverr`: what an error says.
    fn told(
        &mut self,
        (from, ttl): (IpAddr, u8),
        (ty, code, info): (u8, u8, u32),
        dport: u16,
        cx: &mut Cx<'_>,
    ) -> Outcome {
        let slot = usize::from(dport.wrapping_sub(self.base_port));
        let sent = self.sent.get(slot).copied().flatten();
        match sent {
            Some((hop, _)) => cx.print(&format!("{hop:2}:  ")),
            None => cx.print(&format!("{:2}?: ", self.ttl)),
        }
        let name = || name_of_address(from, cx.net).unwrap_or_else(|| "???".to_owned());
        let host = match (self.numeric, self.both) {
            (true, false) => from.to_string(),
            (true, true) => format!("{from} ({})", name()),
            (false, true) => format!("{} ({from})", name()),
            (false, false) => name(),
        };
        cx.print(&format!("{host}{:pad$}", "", pad = COLUMN - host.len().min(COLUMN - 1)));
        if let Some((_, at)) = sent {
            let us = (cx.now() - at).as_ns() / 1000;
            cx.print(&format!("{:3}.{:03}ms ", us / 1000, us % 1000));
        }
        let back = match ttl {
            0..=64 => 65 - u32::from(ttl),
            65..=128 => 129 - u32::from(ttl),
            _ => 256 - u32::from(ttl),
        };
        let hop = sent.map_or(self.ttl, |(hop, _)| hop);
        let four = self.addr.is_ipv4();
        let said = match (four, ty, code) {
            (true, 3, 4) | (false, 2, _) => {
                cx.print(&format!("pmtu {info}\n"));
                self.mtu = info;
                return Outcome::Progress;
            }
            (true, 3, 3) | (false, 1, 4) => {
                self.hops = Some((hop, back));
                "reached\n".to_owned()
            }
            (true, 11, 0) | (false, 3, 0) => {
                let asymm = if back != hop { format!("asymm {back:2} ") } else { String::new() };
                cx.print(&format!("{asymm}\n"));
                return Outcome::Progress;
            }
            (true, 3, 0 | 6 | 9 | 11) | (false, 1, 0) => "!N\n".to_owned(),
            (true, 3, 1 | 10 | 12..) | (true, 11, _) | (false, 1, 2 | 3) | (false, 3, _) => "!H\n".to_owned(),
            (false, 1, 1 | 5 | 6) => "!A\n".to_owned(),
            (true, 3, code) => {
                let why = match code {
                    2 => "Protocol not available",
                    5 => "Operation not supported",
                    7 => "Host is down",
                    _ => "Machine is not on the network",
                };
                format!("\ntracepath: NET ERROR: {why}\n")
            }
            _ => "!P\n".to_owned(),
        };
        cx.print(&said);
        Outcome::Over
    }
}

impl Program for Tracepath {
    fn intent(&self) -> Intent {
        Intent::call(&self.target, None, None).over(self.family)
    }
    fn needs_all(&self) -> bool {
        !self.numeric || self.both
    }
    fn largest(&self) -> u32 {
        // Longer ones are not sent before it is known what goes through.
        0
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        let Some(addr) = cx.resolve(&self.target, self.family) else {
            let target = &self.target;
            let known = target.parse::<IpAddr>().is_ok();
            let why =
                if known { "Address family for hostname not supported" } else { "Name or service not known" };
            cx.print(&format!("tracepath: {target}: {why}\n"));
            return cx.exit(1);
        };
        self.addr = addr;
        let most = if addr.is_ipv4() { 65_535 } else { 128_000 };
        self.mtu = if self.length == 0 { most } else { self.length };
        if self.mtu <= self.overhead() {
            let least = self.overhead();
            cx.print(&format!("tracepath: pktlen must be within: {least} < value <= {}\n", i32::MAX));
            return cx.exit(1);
        }
        let (app, host) = (cx.app, cx.host);
        if let Some(from) = cx.net.machines[host as usize].host.source_to(addr) {
            self.from = from;
        }
        match cx.net.probe_socket(host, app, (addr, 0), self.from, 0) {
            Ok((sock, sport)) => (self.sock, self.sport) = (sock, sport),
            Err(why) => {
                cx.print(&format!("tracepath: socket/connect: {why}\n"));
                return cx.exit(1);
            }
        }
        self.timer = cx.net.wakes.new_timer(app, WAIT);
        if self.max_hops == 0 {
            return self.too_many(cx);
        }
        self.probe(cx);
    }
    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        let outcome = match wake {
            Wake::Timer(_) => Outcome::Silence,
            Wake::Datagram { .. } => {
                cx.print(&format!("{:2}?: reply received 8)\n", self.ttl));
                Outcome::Over
            }
            Wake::Told { from, ttl, ty, code, info, ports, .. } => {
                self.told((from, ttl), (ty, code, info), ports.1, cx)
            }
            _ => return,
        };
        cx.net.wakes.stop_timer(self.timer);
        if self.next(outcome, cx) {
            self.probe(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracepath_prints_what_was_recorded() {
        crate::recorded::check("tracepath.jsonl", 60);
    }

    #[test]
    fn options_are_read_as_tracepath_reads_them() {
        let fail = |line: &str| {
            let args: Vec<&str> = line.split(' ').collect();
            let failure = Tracepath::parse("tracepath", &args).err().unwrap();
            (failure.text, failure.status)
        };
        let said = |text: &str, status| (text.to_owned(), status);
        assert_eq!(
            fail("-m 300 b"),
            said("tracepath: invalid argument: '300': out of range: 0 <= value <= 255\n", 1)
        );
        assert_eq!(fail("-p x b"), said("tracepath: invalid argument: 'x'\n", 1));
        assert_eq!(fail("-4 -6 b"), said("tracepath: Only one -4 or -6 option may be specified\n", 2));
        assert_eq!(fail("a b"), said(USAGE, 255));
        assert!(fail("-q b").0.starts_with("tracepath: invalid option -- 'q'\n\nUsage\n"));
        let t = Tracepath::parse("tracepath", &["b/5000"]).ok().unwrap();
        assert_eq!((t.target.as_str(), t.base_port, t.max_hops), ("b", 5000, 30));
    }
}
