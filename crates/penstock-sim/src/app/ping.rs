//! `ping`.
//!
//! Follows: iputils s20100418 (profile 2.6.35: `icmp_req=`, whole percents) and 20221126 (today: `icmp_seq=`),
//! `ping_common.c` `gather_statistics`, `finish`, `llsqrt`; `ping.c` `pr_icmph`.
//! A process is woken late: by up to a jiffy of 4 ms in 2.6.35 (`SO_RCVTIMEO` counts jiffies), by some 1.4 ms today (ping counts
//! milliseconds); drawn from the seed, so that `time 19041ms` for 20 packets.
//! Differs: no flood, no record route, no timestamps; names are not looked up for replies.

use crate::app::options::{self, Known, c_number, o, seconds};
use crate::app::{Cx, Failure, Family, Program};
use crate::histogram::Histogram;
use crate::intent::Intent;
use crate::wake::Wake;
use penstock_model::traffic::Dist;
use penstock_model::{Kernel, Rng, Span, Time};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

pub(crate) const KNOWN: &[Known] = &[
    o('c', "", true),
    o('i', "", true),
    o('s', "", true),
    o('Q', "", true),
    o('W', "", true),
    o('w', "", true),
    o('t', "", true),
    o('n', "", false),
    o('q', "", false),
    o('4', "", false),
    o('6', "", false),
    o('O', "", false),
    o('D', "", false),
];

/// What iputils' ping has beside these.
pub(crate) const NOT_HERE: &[options::NotHere] = &[
    ("-A", "write the interval: -i"),
    ("-a", "there is nothing to hear"),
    ("-b", "broadcasts are not answered"),
    ("-B -I", "routes and rules choose the address and the device"),
    ("-C -3 -e -f -l -N", "write the interval and the count: -i, -c"),
    ("-d -v -V -H -h", "it changes nothing but what is printed"),
    ("-F", "flow labels are the stack's own"),
    ("-L -P -r -R -T", "there are no IP options, and no multicast"),
    ("-m", "a mark is set by rules: iptables -t mangle … -j MARK"),
    ("-M", "the length decides what is cut: -s"),
    ("-p", "payload has no contents"),
    ("-S", "the socket's memory is the system's"),
    ("-U", "the time is always that of the network alone"),
];

const LINGER_MAX: Span = Span::from_secs(10);

/// One `ping`.
pub(crate) struct Ping {
    // Parameters
    kernel: Kernel,
    target: String,
    addr: IpAddr,
    family: Family,
    count: u64,
    interval: Span,
    size: u32,
    tos: u8,
    linger: Span,
    deadline: Option<Span>,
    quiet: bool,
    // Variables
    rng: Rng,
    id: u16,
    flow: u32,
    timer: u32,
    started: Time,
    last_sent: Time,
    /// When each request was sent, by sequence number; `None` once it was answered.
    sent: Vec<Option<Time>>,
    received: u64,
    errors: u64,
    finishing: bool,
    sum_us: i64,
    sum2_us: i128,
    min_us: i64,
    max_us: i64,
}

const SEND: u32 = 0;

impl Ping {
    pub(crate) fn parse(args: &[&str], kernel: Kernel) -> Result<Ping, Failure> {
        let usage_2010 = "Usage: ping [-LRUbdfnqrvVaAD] [-c count] [-i interval] [-w deadline]\n            [-p pattern] [-s packetsize] [-t ttl] [-I \
            interface]\n            [-M pmtudisc-hint] [-m mark] [-S sndbuf]\n            [-T tstamp-options] [-Q tos] [hop1 ...] destination\n";
        let usage = if kernel == Kernel::V2_6_35 {
            usage_2010
        } else {
            "\nUsage\n  ping [options] <destination>\n\nFor more details see ping(8).\n"
        };
        let (options, words) = options::parse_all("ping", args, KNOWN, NOT_HERE, usage, 2)?;
        let mut ping = Ping {
            kernel,
            target: String::new(),
            addr: Ipv4Addr::UNSPECIFIED.into(),
            family: Family::Any,
            count: 0,
            interval: Span::from_secs(1),
            size: 56,
            tos: 0,
            linger: LINGER_MAX,
            deadline: None,
            quiet: false,
            rng: Rng::named(0, ""),
            id: 0,
            flow: 0,
            timer: 0,
            started: Time::ZERO,
            last_sent: Time::ZERO,
            sent: Vec::new(),
            received: 0,
            errors: 0,
            finishing: false,
            sum_us: 0,
            sum2_us: 0,
            min_us: i64::MAX,
            max_us: 0,
        };
        for (letter, value) in options {
            let invalid = || Failure::new(format!("ping: invalid argument: '{value}'\n"), 1);
            let out_of_range = |from: i64, to: i64| {
                Failure::new(
                    format!("ping: invalid argument: '{value}': out of range: {from} <= value <= {to}\n"),
                    1,
                )
            };
            match letter {
                'c' => {
                    let n = c_number(value).ok_or_else(invalid)?;
                    if n < 1 {
                        return Err(match kernel {
                            Kernel::V2_6_35 => Failure::new("ping: bad number of packets to transmit.\n", 2),
                            Kernel::V6_12 | Kernel::V7_2 => out_of_range(1, i64::MAX),
                        });
                    }
                    ping.count = n as u64;
                }
                'i' => {
                    let ns = seconds(value).ok_or_else(|| match kernel {
                        Kernel::V2_6_35 => Failure::new("ping: bad timing interval.\n", 2),
                        Kernel::V6_12 | Kernel::V7_2 => {
                            Failure::new(format!("ping: bad timing interval: {value}\n"), 2)
                        }
                    })?;
                    // Whole milliseconds.
                    ping.interval = Span::from_ns(ns / 1_000_000 * 1_000_000);
                }
                's' => {
                    let n = c_number(value).ok_or_else(invalid)?;
                    if !(0..=65_507).contains(&n) {
                        return Err(match kernel {
                            Kernel::V2_6_35 if n < 0 => {
                                Failure::new(format!("ping: illegal negative packet size {n}.\n"), 2)
                            }
                            Kernel::V2_6_35 => Failure::new(format!("ping: packet size too large: {n}\n"), 2),
                            Kernel::V6_12 | Kernel::V7_2 => out_of_range(0, 65_507),
                        });
                    }
                    ping.size = n as u32;
                }
                'Q' => {
                    let n = c_number(value)
                        .ok_or_else(|| Failure::new("ping: TOS bits error: not a number\n", 2))?;
                    if !(0..=255).contains(&n) {
                        return Err(Failure::new(
                            format!("ping: the decimal value of TOS bits must be in range 0-255: {n}\n"),
                            2,
                        ));
                    }
                    ping.tos = n as u8;
                }
                'W' => {
                    let ns = seconds(value).ok_or_else(|| Failure::new("ping: bad linger time.\n", 2))?;
                    ping.linger = Span::from_ns(ns.max(1));
                }
                'w' => {
                    let ns = seconds(value).ok_or_else(|| Failure::new("ping: bad wait time.\n", 2))?;
                    ping.deadline = Some(Span::from_ns(ns));
                }
                't' => {
                    c_number(value)
                        .filter(|t| (0..=255).contains(t))
                        .ok_or_else(|| Failure::new(format!("ping: ttl {value} out of range\n"), 2))?;
                }
                'q' => ping.quiet = true,
                '4' => ping.family = Family::Four,
                '6' => ping.family = Family::Six,
                _ => {}
            }
        }
        let Some(&target) = words.last() else {
            let text = if kernel == Kernel::V2_6_35 {
                usage_2010.to_owned()
            } else {
                "ping: usage error: Destination address required\n".to_owned()
            };
            return Err(Failure::new(text, if kernel == Kernel::V2_6_35 { 2 } else { 1 }));
        };
        target.clone_into(&mut ping.target);
        Ok(ping)
    }

    /// The headers of Ethernet and IP, bytes.
    fn headers(&self) -> u32 {
        if self.addr.is_ipv4() { 34 } else { 54 }
    }
    fn send(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        let seq = (self.sent.len() + 1) as u16;
        let sent = cx.net.echo_request(cx.host, self.addr, self.id, seq, self.size, self.tos, self.flow);
        self.sent.push(Some(now));
        self.last_sent = now;
        if let Err(error) = sent {
            self.errors += 1;
            cx.print(&format!("ping: sendmsg: {error}\n"));
        }
        cx.result.packets = Some((self.sent.len() as u64, self.received));
        let all = self.count > 0 && self.sent.len() as u64 >= self.count;
        let wait = if all {
            self.wait_for_the_last()
        } else {
            self.interval.max(Span::from_ms(1)) + self.lateness()
        };
        self.finishing = all;
        cx.net.set_timer(self.timer, now + wait);
    }
    /// How late the process is woken for the next request.
    fn lateness(&mut self) -> Span {
        let most = match self.kernel {
            Kernel::V2_6_35 => Span::from_ms(4),
            Kernel::V6_12 | Kernel::V7_2 => Span::from_us(2800),
        };
        Dist::Uniform { from: Span::ZERO, to: most }.draw(&mut self.rng)
    }
    /// How long ping waits for replies to the last request: twice the longest round trip, if there was one
    /// (`schedule_exit`), at least an interval.
    fn wait_for_the_last(&self) -> Span {
        if self.received > 0 { Span::from_us(2 * self.max_us).max(self.interval) } else { self.linger }
    }

    fn finish(&mut self, cx: &mut Cx<'_>) {
        let sent = self.sent.len() as u64;
        let mut text = format!(
            "\n--- {} ping statistics ---\n{sent} packets transmitted, {} received",
            self.target, self.received
        );
        if self.errors > 0 {
            let _ = write!(text, ", +{} errors", self.errors);
        }
        if sent > 0 {
            let lost = sent - self.received.min(sent);
            match self.kernel {
                Kernel::V2_6_35 => {
                    let _ = write!(text, ", {}% packet loss", lost * 100 / sent);
                }
                Kernel::V6_12 | Kernel::V7_2 => {
                    let percent = penstock_model::time::general(lost as f64 * 100.0 / sent as f64, 6);
                    let _ = write!(text, ", {percent}% packet loss");
                }
            }
            let _ = write!(text, ", time {}ms", (self.last_sent - self.started).as_ns() / 1_000_000);
        }
        text.push('\n');
        if self.received > 0 {
            let n = self.received as i64;
            let mean = self.sum_us / n;
            let mdev = llsqrt(self.sum2_us / i128::from(n) - i128::from(mean) * i128::from(mean));
            let ms = |us: i64| format!("{}.{:03}", us / 1000, us % 1000);
            let _ = writeln!(
                text,
                "rtt min/avg/max/mdev = {}/{}/{}/{} ms",
                ms(self.min_us),
                ms(mean),
                ms(self.max_us),
                ms(mdev)
            );
            cx.result.rtt_mdev = Some(Span::from_us(mdev));
        } else {
            text.push('\n');
        }
        cx.print(&text);
        let machine = &mut cx.net.machines[cx.host as usize];
        machine.sockets.pings.retain(|&(id, _)| id != self.id);
        cx.net.wakes.stop_timer(self.timer);
        let failed = self.received == 0 || self.deadline.is_some() && self.received < self.count;
        cx.exit(i32::from(failed));
    }
}

/// An error of ICMPv6 in ping's words (iputils `ping6_common.c` `print_icmp`).
fn error6(ty: u8, code: u8, info: u32) -> String {
    let unreachable = match code {
        0 => "No route",
        1 => "Administratively prohibited",
        2 => "Beyond scope of source address",
        3 => "Address unreachable",
        4 => "Port unreachable",
        _ => "",
    };
    match (ty, code) {
        (1, 0..=4) => format!("Destination unreachable: {unreachable}"),
        (1, _) => format!("Destination unreachable: Unknown code {code}"),
        (2, 0) => format!("Packet too big: mtu={info}"),
        (2, _) => format!("Packet too big: mtu={info}, code={code}"),
        (3, 0) => "Time exceeded: Hop limit".to_owned(),
        (3, 1) => "Time exceeded: Defragmentation failure".to_owned(),
        (3, _) => format!("Time exceeded: code {code}"),
        (_, 1) => "Parameter problem: Unknown header ".to_owned(),
        (_, 2) => "Parameter problem: Unknown option ".to_owned(),
        _ => "Parameter problem: Wrong header field ".to_owned(),
    }
}

/// The integer square root as ping takes it.
fn llsqrt(a: i128) -> i64 {
    let mut prev = i128::from(i64::MAX);
    let mut x = a;
    if x > 0 {
        while x < prev {
            prev = x;
            x = (x + a / x) / 2;
        }
    }
    x as i64
}

/// A round trip as ping prints it: three significant digits from 1 ms on, cut off (`gather_statistics`).
fn triptime(us: i64) -> String {
    match us {
        100_000.. => format!("{} ms", us / 1000),
        10_000.. => format!("{}.{} ms", us / 1000, us % 1000 / 100),
        1000.. => format!("{}.{:02} ms", us / 1000, us % 1000 / 10),
        _ => format!("{}.{:03} ms", us / 1000, us % 1000),
    }
}

impl Program for Ping {
    fn intent(&self) -> Intent {
        // The first packet goes at once, the last as many intervals later.
        let lasts = self.deadline.or_else(|| {
            let gaps = i64::try_from(self.count.checked_sub(1)?).ok()?;
            Some(Span::from_ns(self.interval.as_ns().saturating_mul(gaps)))
        });
        Intent::call(&self.target, None, lasts).over(self.family)
    }
    fn largest(&self) -> u32 {
        self.size
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        let Some(addr) = cx.resolve(&self.target, self.family) else {
            let text = match self.kernel {
                Kernel::V2_6_35 => format!("ping: unknown host {}\n", self.target),
                Kernel::V6_12 | Kernel::V7_2 => format!("ping: {}: Name or service not known\n", self.target),
            };
            cx.print(&text);
            cx.exit(2);
            return;
        };
        self.addr = addr;
        if cx.net.machines[cx.host as usize].host.source_to(addr).is_none() {
            let word = if self.kernel == Kernel::V2_6_35 { "connect" } else { "ping: connect" };
            cx.print(&format!("{word}: Network is unreachable\n"));
            cx.exit(2);
            return;
        }
        self.id = (cx.app as u16).wrapping_add(1000);
        cx.net.machines[cx.host as usize].sockets.pings.push((self.id, cx.app));
        let to = cx.net.host_of(addr).unwrap_or(cx.host);
        let name = cx.flow_name();
        self.rng = cx.net.rng(&format!("app:{name}/{}", cx.app));
        self.flow = cx.new_flow(name, cx.host, to, "icmp");
        cx.result.rtt = Some(Histogram::default());
        let (target, size) = (&self.target, self.size);
        cx.print(&match addr {
            IpAddr::V4(_) => format!("PING {target} ({addr}) {size}({}) bytes of data.\n", size + 28),
            IpAddr::V6(_) => format!("PING {target}({addr}) {size} data bytes\n"),
        });
        self.timer = cx.net.wakes.new_timer(cx.app, SEND);
        self.started = cx.now();
        self.send(cx);
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        let now = cx.now();
        match wake {
            Wake::Timer(SEND) => {
                let over = self.deadline.is_some_and(|d| now >= self.started + d);
                if self.finishing || over {
                    self.finish(cx);
                } else {
                    self.send(cx);
                }
            }
            Wake::Echo { len, seq, ttl, from } => {
                // Sequence numbers wrap at 65536: the latest request of this number is meant.
                let count = self.sent.len();
                let back = (count as u16).wrapping_sub(seq) as usize;
                let Some(slot) = count.checked_sub(1 + back).and_then(|i| self.sent.get_mut(i)) else {
                    return;
                };
                let Some(sent) = slot.take() else { return };
                let rtt = now - sent;
                let us = rtt.as_ns() / 1000;
                self.received += 1;
                self.sum_us += us;
                self.sum2_us += i128::from(us) * i128::from(us);
                self.min_us = self.min_us.min(us);
                self.max_us = self.max_us.max(us);
                cx.net.meter.flows[self.flow as usize].arrived(len + self.headers(), false, sent, now);
                cx.result.packets = Some((count as u64, self.received));
                cx.result.rtts.push(rtt.as_ns());
                let now = cx.now();
                cx.result.rtt_times.push(now);
                if let Some(h) = &mut cx.result.rtt {
                    h.record(rtt.as_ns() as u64);
                }
                if !self.quiet {
                    let word = if self.kernel == Kernel::V2_6_35 { "icmp_req" } else { "icmp_seq" };
                    // Without room for a time of day in the packet there is nothing to measure by.
                    let time =
                        if self.size >= 16 { format!(" time={}", triptime(us)) } else { String::new() };
                    cx.print(&format!("{len} bytes from {from}: {word}={seq} ttl={ttl}{time}\n"));
                }
                if self.finishing && self.received + self.errors >= self.count {
                    self.finish(cx);
                }
            }
            Wake::EchoError { from, ty, code, seq, info } => {
                self.errors += 1;
                let four = from.is_ipv4();
                let what = match (ty, code) {
                    _ if !four => error6(ty, code, info),
                    (3, 0) => "Destination Net Unreachable".to_owned(),
                    (3, 1) => "Destination Host Unreachable".to_owned(),
                    (3, 2) => "Destination Protocol Unreachable".to_owned(),
                    (3, 3) => "Destination Port Unreachable".to_owned(),
                    (3, 13) => "Packet filtered".to_owned(),
                    (3, code) => format!("Dest Unreachable, Bad Code: {code}"),
                    _ => "Time to live exceeded".to_owned(),
                };
                if !self.quiet {
                    let colon = if four { "" } else { ":" };
                    cx.print(&format!("From {from}{colon} icmp_seq={seq} {what}\n"));
                }
                if self.finishing && self.received + self.errors >= self.count {
                    self.finish(cx);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_cut_off() {
        let check = |us: i64, text: &str| assert_eq!(triptime(us), text);
        check(1645, "1.64 ms");
        check(999, "0.999 ms");
        check(12_999, "12.9 ms");
        check(123_999, "123 ms");
    }

    #[test]
    fn the_document_s_mdev_is_ping_s() {
        // Founding document 004, section 4: twenty round trips give 1.212/1.346/1.645/0.102 ms; the
        // lines show them cut off to 10 us.
        let us = [
            1645i64, 1400, 1410, 1260, 1380, 1320, 1310, 1220, 1310, 1300, 1450, 1320, 1340, 1230, 1212,
            1350, 1410, 1480, 1260, 1240,
        ];
        let n = us.len() as i64;
        let mean = us.iter().sum::<i64>() / n;
        let square = us.iter().map(|&u| i128::from(u * u)).sum::<i128>() / i128::from(n);
        let mdev = llsqrt(square - i128::from(mean * mean));
        assert!((1340..=1346).contains(&mean) && (100..=107).contains(&mdev), "{mean} {mdev}");
    }

    #[test]
    fn wrong_arguments_are_refused_in_ping_s_words() {
        let fail = |args: &[&str]| Ping::parse(args, Kernel::V6_12).err().unwrap();
        assert_eq!(fail(&["-c", "x", "h"]).text, "ping: invalid argument: 'x'\n");
        assert_eq!(fail(&[]).status, 1);
        assert_eq!(fail(&["-Z", "h"]).status, 2);
        assert!(Ping::parse(&["10.0.0.1", "-c", "20"], Kernel::V2_6_35).is_ok());
    }
}
