//! `ping`.
//!
//! Follows: iputils s20100418 (profile 2.6.35: `icmp_req=`, whole percents) and 20221126 (today: `icmp_seq=`),
//! `ping_common.c` `gather_statistics`, `finish`, `llsqrt`; `ping.c` `pr_icmph`.
//! A process is woken late: by up to a jiffy of 4 ms in 2.6.35 (`SO_RCVTIMEO` counts jiffies), by some 1.4 ms today (ping counts
//! milliseconds); drawn from the seed, so that `time 19041ms` for 20 packets.
//! Differs: no options of IP; names are not looked up for replies; a packet that the device's queue
//! drops is taken for sent, where Linux says ENOBUFS and ping tries again; over IPv4 each ping learns a path's MTU for itself.

mod pace;
mod parse;
#[cfg(test)]
mod recorded;
mod words;

pub(crate) use parse::{KNOWN, NOT_HERE};

use crate::app::{Cx, Family, Program};
use crate::histogram::Histogram;
use crate::intent::Intent;
use crate::socket::udp::Echo;
use crate::wake::Wake;
use penstock_model::traffic::Dist;
use penstock_model::{Kernel, Rng, Span, Time};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address and the device that is named behind it (`fe80::1%eth0`).
fn with_scope(text: &str) -> (&str, Option<&str>) {
    text.split_once('%').map_or((text, None), |(addr, device)| (addr, Some(device)))
}
/// Whether an address means something on one link only, so that its device is named (`IN6_IS_ADDR_LINKLOCAL`, `IN6_IS_ADDR_MC_LINKLOCAL`).
fn is_of_link(addr: Ipv6Addr) -> bool {
    penstock_host::six::is_link_local(addr) || addr.segments()[0] & 0xff0f == 0xff02
}

const LINGER_MAX: Span = Span::from_secs(10);

/// One `ping`.
pub(crate) struct Ping {
    // Parameters
    kernel: Kernel,
    /// What reading the options said.
    said: String,
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
    outstanding: bool,
    times: bool,
    audible: bool,
    verbose: bool,
    /// `-e`.
    ident: Option<u16>,
    /// `-t`.
    ttl: Option<u8>,
    mark: u32,
    /// `-F`: the flow label of IPv6; 0 asks for any.
    label: Option<u32>,
    /// `-M`.
    pmtudisc: Option<PmtuDisc>,
    /// `-I` with a device: its name, and its index once the socket is bound to it.
    device: Option<String>,
    bound: u32,
    /// The device that requests of IPv6 go over, where they have to go over one: that of `-I`, of `%` behind the target, or of the first route to an address
    /// of one link; and its name.
    link: u32,
    link_name: String,
    /// `-B`, `-I` with an address: the socket is bound to its source.
    strict: bool,
    /// `-I` with an address of each family, and the one that is used.
    source4: Option<IpAddr>,
    source6: Option<IpAddr>,
    source: Option<IpAddr>,
    /// `-p`: what stands before all else.
    pattern: Option<String>,
    /// `-i` was given.
    at_intervals: bool,
    // Variables
    pace: pace::Pace,
    rng: Rng,
    id: u16,
    flow: u32,
    timer: u32,
    /// The timer of the end.
    exit: u32,
    started: Time,
    last_sent: Time,
    /// Each request, by sequence number from 1.
    sent: Vec<Probe>,
    received: u64,
    repeats: u64,
    errors: u64,
    /// What has been heard of the path over IPv4: its MTU, whether packets may be cut on it, and until when that is believed.
    path: Option<(u32, bool, Time)>,
    /// How many were under way at most.
    pipesize: u64,
    sum_us: i64,
    sum2_us: i128,
    min_us: i64,
    max_us: i64,
}

/// `net.ipv4.route.min_pmtu`, bytes, and `mtu_expires`: how long a path's MTU is believed.
const MIN_PMTU: u32 = 552;
const MTU_EXPIRES: Span = Span::from_secs(600);

const SEND: u32 = 0;
const EXIT: u32 = 1;

/// A request.
#[derive(Clone, Copy)]
struct Probe {
    at: Time,
    answered: bool,
}

/// What `-M` asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PmtuDisc {
    Do,
    Want,
    Dont,
}

impl Ping {
    /// What ping does without an option.
    fn new(kernel: Kernel) -> Ping {
        Ping {
            kernel,
            said: String::new(),
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
            outstanding: false,
            times: false,
            audible: false,
            verbose: false,
            ident: None,
            ttl: None,
            mark: 0,
            label: None,
            pmtudisc: None,
            device: None,
            bound: 0,
            link: 0,
            link_name: String::new(),
            strict: false,
            source4: None,
            source6: None,
            source: None,
            pattern: None,
            at_intervals: false,
            pace: pace::Pace::new(),
            rng: Rng::named(0, ""),
            id: 0,
            flow: 0,
            timer: 0,
            exit: 0,
            started: Time::ZERO,
            last_sent: Time::ZERO,
            sent: Vec::new(),
            received: 0,
            repeats: 0,
            errors: 0,
            path: None,
            pipesize: 0,
            sum_us: 0,
            sum2_us: 0,
            min_us: i64::MAX,
            max_us: 0,
        }
    }
    /// The headers of Ethernet and IP, bytes.
    fn headers(&self) -> u32 {
        if self.addr.is_ipv4() { 34 } else { 54 }
    }
    /// Sends the next request (`pinger`).
    fn send(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.request(cx);
        let all = self.count > 0 && self.sent.len() as u64 >= self.count && self.deadline.is_none();
        if all
            && let wait = self.wait_for_the_last()
            && wait > Span::ZERO
        {
            cx.net.set_timer(self.exit, now + wait);
        }
        // An error of its own ping counts when it has waited for an interval (`recvmsg`).
        if !all || self.enough() {
            let wait = self.interval + self.lateness();
            cx.net.set_timer(self.timer, now + wait);
        }
    }
    /// Makes the next request and hands it over; whether that went.
    fn request(&mut self, cx: &mut Cx<'_>) -> bool {
        let now = cx.now();
        let before = self.sent.len() as u64;
        if self.outstanding && self.sent.last().is_some_and(|probe| !probe.answered) {
            self.print_timestamp(cx);
            cx.print(&format!("no answer yet for icmp_seq={}\n", before % 0x10000));
        }
        self.sent.push(Probe { at: now, answered: false });
        self.last_sent = now;
        let went = self.probe((before + 1) as u16, cx);
        cx.result.packets = Some((self.sent.len() as u64, self.received));
        went
    }
    /// Hands one request over (`ping4_send_probe`, `ping6_send_probe`).
    fn probe(&mut self, seq: u16, cx: &mut Cx<'_>) -> bool {
        let (host, now, four) = (cx.host, cx.now(), self.addr.is_ipv4());
        let data = self.size + 8;
        if four && data > 0xffff {
            //= linux v6.12 net/ipv4/raw.c raw_sendmsg: EMSGSIZE, and nothing in the queue of errors
            return false;
        }
        let len = self.size + self.headers() - 14 + 8;
        let of_route = cx.net.machines[host as usize].host.mtu_by(self.bound, self.addr, now).unwrap_or(1500);
        let path = self.path.filter(|&(mtu, _, until)| now < until && mtu < of_route);
        let (mtu, locked) = path.map_or((of_route, false), |(mtu, locked, _)| (mtu, locked));
        //= linux v6.12 net/ipv4/ip_output.c __ip_append_data, net/ipv6/ip6_output.c __ip6_append_data: the most without fragments
        let most = match self.pmtudisc {
            Some(PmtuDisc::Do) => mtu,
            _ if four => 0xffff,
            _ => 0xffff + 40,
        };
        if len > most {
            if !self.quiet {
                self.errors += 1;
                let text = words::too_long(self.kernel, four, mtu);
                cx.print(if self.pace.flood { "E" } else { &text });
            }
            return false;
        }
        //= linux v6.12 net/ipv4/ip_output.c __ip_make_skb
        let whole = match self.pmtudisc {
            Some(PmtuDisc::Do) => true,
            Some(PmtuDisc::Dont) => false,
            Some(PmtuDisc::Want) | None => len <= mtu && !locked,
        };
        let echo = Echo {
            id: self.id,
            seq,
            len: self.size,
            tos: self.tos,
            ttl: self.ttl.unwrap_or(0),
            mark: self.mark,
            label: self.label.unwrap_or(0),
            from: self.source.filter(|_| self.strict),
            bound: if four { self.bound } else { self.link },
            whole,
        };
        let Err(error) = cx.net.echo_request(host, self.addr, echo, self.flow) else { return true };
        if self.kernel == Kernel::V2_6_35 && !self.quiet {
            let text = format!("ping: sendmsg: {error}\n");
            cx.print(if self.pace.flood { "E" } else { &text });
        }
        // Today's ping tells nobody (`receive_error_msg` finds no error in the queue, and counts one of its own).
        false
    }
    /// Whether there is nothing to wait for any more (`main_loop`).
    fn enough(&self) -> bool {
        self.count > 0 && self.received + self.errors >= self.count
            || self.deadline.is_some() && self.errors > 0
    }
    /// An address as ping prints it: one of a link has its device behind it.
    fn shown(&self, addr: IpAddr) -> String {
        match addr {
            IpAddr::V6(six) if is_of_link(six) && self.link != 0 => format!("{addr}%{}", self.link_name),
            _ => addr.to_string(),
        }
    }
    /// Whether a reply is from an address that was not asked, which today's ping remarks upon.
    fn is_other(&self, from: IpAddr) -> bool {
        let anycast = matches!(self.addr, IpAddr::V6(to) if to.octets()[8..] == [0; 8]);
        from != self.addr && !anycast && !self.addr.is_multicast() && self.kernel != Kernel::V2_6_35
    }
    fn redirected(&self, from: IpAddr, seq: u16, what: &str, cx: &mut Cx<'_>) {
        if !self.quiet && !self.pace.flood {
            self.print_timestamp(cx);
            cx.print(&format!("From {from}: icmp_seq={seq} {what}\n"));
        }
    }
    fn print_timestamp(&self, cx: &mut Cx<'_>) {
        if self.times {
            // A run begins in 1970, as iperf3's times say.
            let us = cx.now().as_ns() / 1000;
            cx.print(&format!("[{}.{:06}] ", us / 1_000_000, us % 1_000_000));
        }
    }
    /// `acknowledge`.
    fn acknowledge(&mut self, seq: u16) {
        let sent = self.sent.len() as u16;
        let diff = sent.wrapping_sub(seq);
        if diff <= 0x7fff {
            self.pipesize = self.pipesize.max(u64::from(diff) + 1);
            self.pace.acknowledge(seq, sent);
        }
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

    /// Chooses the source, and refuses what cannot be sent (`ping4_run`, `ping6_run`).
    fn bind(&mut self, cx: &mut Cx<'_>) -> Result<(), String> {
        let old = self.kernel == Kernel::V2_6_35;
        let host = &mut cx.net.machines[cx.host as usize].host;
        if self.addr == IpAddr::V4(Ipv4Addr::UNSPECIFIED) {
            self.addr = Ipv4Addr::LOCALHOST.into();
        }
        let four = self.addr.is_ipv4();
        // An address of the other family is nobody's business.
        self.source = if four { self.source4 } else { self.source6 };
        if let Some(device) = &self.device {
            match host.ifindex(device) {
                Some(ifindex)
                    if host.device(ifindex).is_some_and(|d| d.loopback) && !self.addr.is_loopback() =>
                {
                    return Err(format!(
                        "ping: -I {device} is not simulated: nobody is behind it; leave it out\n"
                    ));
                }
                Some(ifindex) => self.bound = ifindex,
                None if !four => return Err(format!("ping: unknown iface: {device}\n")),
                None => return Err(format!("ping: SO_BINDTODEVICE {device}: No such device\n")),
            }
        }
        let broadcast = match old {
            true => "Do you want to ping broadcast? Then -b\n",
            false => {
                "ping: Do you want to ping broadcast? Then -b. If not, check your local firewall rules\n"
            }
        };
        let over = match self.addr {
            IpAddr::V6(dst) if !dst.is_loopback() => {
                let dev = if self.bound != 0 { self.bound } else { self.link };
                let scoped = dev != 0 || is_of_link(dst);
                let over = host.connects_over(self.mark, dev, dst);
                if let (Ok((_, link)), true) = (&over, scoped) {
                    self.link = *link;
                }
                over.map(|(source, _)| source.into())
            }
            _ => host.connects_marked(self.mark, self.bound, self.addr),
        };
        self.link_name = host.device(self.link).map_or_else(String::new, |d| d.name.clone());
        let source = match over {
            Ok(source) => source,
            // A broadcast is what it takes this for.
            Err(error) if error.errno == 13 && four => return Err(broadcast.to_owned()),
            Err(error) => {
                let word = if old { "connect" } else { "ping: connect" };
                return Err(format!("{word}: {}\n", error.strerror()));
            }
        };
        if let IpAddr::V4(to) = self.addr
            && host.is_broadcast_to(self.bound, to)
        {
            return Err(broadcast.to_owned());
        }
        if let Some(source) = self.source
            && !host.has_address(source)
        {
            let what = if four { "bind" } else { "bind icmp socket" };
            return Err(format!("ping: {what}: Cannot assign requested address\n"));
        }
        if matches!(self.source, Some(IpAddr::V6(source)) if is_of_link(source)) && self.device.is_none() {
            return Err("ping: bind icmp socket: Invalid argument\n".to_owned());
        }
        self.source = self.source.or(Some(source));
        if self.ttl == Some(0) {
            return Err(if four {
                "ping: cannot set unicast time-to-live: Invalid argument\n".to_owned()
            } else {
                "ping: -t 0 is not simulated over IPv6: write 1 or more\n".to_owned()
            });
        }
        Ok(())
    }

    fn finish(&mut self, cx: &mut Cx<'_>) {
        let sent = self.sent.len() as u64;
        let mut text = format!(
            "\n--- {} ping statistics ---\n{sent} packets transmitted, {} received",
            self.target, self.received
        );
        if self.repeats > 0 {
            let _ = write!(text, ", +{} duplicates", self.repeats);
        }
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
                    let percent = (lost as f64 * 100.0 / sent as f64) as f32;
                    let percent = penstock_model::time::general(percent.into(), 6);
                    let _ = write!(text, ", {percent}% packet loss");
                }
            }
            let ns = (self.pace.last().unwrap_or(self.last_sent) - self.started).as_ns();
            let ms = match self.kernel {
                Kernel::V2_6_35 => ns / 1_000_000,
                Kernel::V6_12 | Kernel::V7_2 => (ns + 500_000) / 1_000_000,
            };
            let _ = write!(text, ", time {ms}ms");
        }
        text.push('\n');
        let mut rest = Vec::new();
        // Without room for a time of day in the packet there is nothing to measure by.
        if self.received > 0 && self.size >= 16 {
            let n = (self.received + self.repeats) as i64;
            let mean = self.sum_us / n;
            let mdev = words::mdev(self.kernel, n, self.sum_us, self.sum2_us);
            let ms = |us: i64| format!("{}.{:03}", us / 1000, us % 1000);
            let figures = [self.min_us, mean, self.max_us, mdev].map(ms).join("/");
            rest.push(format!("rtt min/avg/max/mdev = {figures} ms"));
            cx.result.rtt_mdev = Some(Span::from_us(mdev));
        }
        if self.pipesize > 1 {
            rest.push(format!("pipe {}", self.pipesize));
        }
        let by_answers = self.interval == Span::ZERO || self.pace.flood || self.pace.adaptive;
        if self.received > 0 && by_answers && sent > 1 {
            let since = self.pace.last().map_or(Span::ZERO, |last| last - self.started);
            rest.push(self.pace.summary(since, sent as i64));
        }
        let _ = writeln!(text, "{}", rest.join(", "));
        cx.print(&text);
        let machine = &mut cx.net.machines[cx.host as usize];
        machine.sockets.pings.retain(|&(_, app, _)| app != cx.app);
        cx.net.wakes.stop_timer(self.timer);
        cx.net.wakes.stop_timer(self.exit);
        let failed = self.received == 0 || self.deadline.is_some() && self.received < self.count;
        cx.exit(i32::from(failed));
    }
}

/// Says why ping does not begin.
fn stop(cx: &mut Cx<'_>, text: &str) {
    cx.complain(text);
    cx.exit(2);
}

impl Program for Ping {
    fn ends(&self) -> bool {
        self.count > 0 || self.deadline.is_some()
    }
    fn intent(&self) -> Intent {
        // The first packet goes at once, the last as many intervals later.
        let lasts = self.deadline.or_else(|| {
            let gaps = i64::try_from(self.count.checked_sub(1)?).ok()?;
            Some(Span::from_ns(self.interval.as_ns().saturating_mul(gaps)))
        });
        Intent::call(with_scope(&self.target).0, None, lasts).over(self.family)
    }
    fn largest(&self) -> u32 {
        self.size.min(65_507)
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        let old = self.kernel == Kernel::V2_6_35;
        let talks = self.verbose && !old;
        cx.print(&std::mem::take(&mut self.said));
        if let Some(pattern) = self.pattern.take().filter(|_| !self.quiet) {
            cx.print(&pattern);
        }
        if talks {
            cx.print(&words::sockets(self.family, self.ident == Some(0)));
        }
        let target = self.target.clone();
        let (name, scope) = with_scope(&target);
        let first = cx.resolve(name, Family::Any);
        let mut addr = cx.resolve(name, self.family);
        if let Some(scope) = scope {
            // getaddrinfo takes the name of a device behind an address of one link alone.
            let device = cx.net.machines[cx.host as usize].host.ifindex(scope);
            self.link = device.unwrap_or(0);
            addr = addr.filter(|a| matches!(a, IpAddr::V6(a) if is_of_link(*a)) && self.link != 0);
        }
        let first = first.filter(|_| scope.is_none());
        let Some(addr) = addr else {
            let target = &self.target;
            let text = match (old, first) {
                (true, _) => format!("ping: unknown host {target}\n"),
                (false, Some(_)) => format!("ping: {target}: Address family for hostname not supported\n"),
                (false, None) => format!("ping: {target}: Name or service not known\n"),
            };
            return stop(cx, &text);
        };
        if talks {
            cx.print(&words::found(&self.target, first.unwrap_or(addr), addr));
        }
        self.addr = addr;
        if let Err(text) = self.bind(cx) {
            return stop(cx, &text);
        }
        // Over IPv6 nobody has been asked for the source where the address is of one link.
        let unknown = matches!(self.addr, IpAddr::V6(to) if is_of_link(to) && !self.strict);
        let host = &cx.net.machines[cx.host as usize].host;
        let has = |source: IpAddr| {
            host.device(self.bound).is_some_and(|d| match source {
                IpAddr::V4(source) => d.addresses.iter().any(|a| a.prefix.addr == source),
                IpAddr::V6(source) => source.is_loopback() || d.addresses6.iter().any(|a| a.addr == source),
            })
        };
        if let Some(device) = &self.device
            && (unknown || self.source.is_some_and(|source| !has(source)))
        {
            let text =
                format!("ping: Warning: source address might be selected on device other than: {device}\n");
            cx.print(&text);
        }
        self.id = self.ident.unwrap_or_else(|| (cx.app as u16).wrapping_add(1000));
        cx.net.machines[cx.host as usize].sockets.pings.push((self.id, cx.app, self.bound));
        let to = cx.net.host_of(self.addr).unwrap_or(cx.host);
        let name = cx.flow_name();
        self.rng = cx.net.rng(&format!("app:{name}/{}", cx.app));
        self.flow = cx.new_flow(name, cx.host, to, "icmp");
        cx.result.rtt = Some(Histogram::default());
        if self.label == Some(0) && addr.is_ipv6() {
            //= linux v6.12 net/ipv6/ip6_flowlabel.c fl_intern: any but 0
            self.label = Some(1 + self.rng.below(0xf_ffff));
        }
        let (target, addr, size) = (&self.target, self.addr, self.size);
        let device = self.device.as_deref().unwrap_or("");
        let from = match self.source.filter(|_| self.strict || self.device.is_some()) {
            Some(_) if unknown => format!("from :: {device}: "),
            Some(source) => format!("from {} {device}: ", self.shown(source)),
            None => String::new(),
        };
        let label = match self.label {
            None => String::new(),
            Some(label) => format!(", flow {label:#07x}, "),
        };
        let of = scope.map_or_else(String::new, |scope| format!("%{scope}"));
        cx.print(&match addr {
            IpAddr::V4(_) => format!("PING {target} ({addr}) {from}{size}({}) bytes of data.\n", size + 28),
            IpAddr::V6(_) => format!("PING {target}({addr}{of}) {label}{from}{size} data bytes\n"),
        });
        self.timer = cx.net.wakes.new_timer(cx.app, SEND);
        self.exit = cx.net.wakes.new_timer(cx.app, EXIT);
        self.started = cx.now();
        if let Some(deadline) = self.deadline {
            cx.net.set_timer(self.exit, self.started + deadline);
        }
        if self.is_quick() {
            return self.turn(cx);
        }
        self.send(cx);
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        let now = cx.now();
        match wake {
            Wake::Timer(SEND) if self.is_quick() => self.turn(cx),
            Wake::Timer(SEND) if self.enough() => self.finish(cx),
            Wake::Timer(SEND) => self.send(cx),
            Wake::Timer(EXIT) => self.finish(cx),
            Wake::Echo { len, seq, ttl, from } => {
                // Sequence numbers wrap at 65536: the latest request of this number is meant.
                let count = self.sent.len();
                let back = (count as u16).wrapping_sub(seq) as usize;
                let Some(probe) = count.checked_sub(1 + back).and_then(|i| self.sent.get_mut(i)) else {
                    return;
                };
                let (sent, again) = (probe.at, probe.answered);
                probe.answered = true;
                self.acknowledge(seq);
                let rtt = now - sent;
                let us = rtt.as_ns() / 1000;
                self.received += u64::from(!again);
                self.repeats += u64::from(again);
                self.sum_us += us;
                self.sum2_us += i128::from(us) * i128::from(us);
                self.min_us = self.min_us.min(us);
                self.max_us = self.max_us.max(us);
                let quick = self.is_quick();
                if self.size >= 16 {
                    let ms = self.pace.answered(us, self.interval.as_ns() / 1_000_000);
                    if self.pace.adaptive {
                        self.interval = Span::from_ms(ms);
                    }
                }
                if !again {
                    cx.net.meter.flows[self.flow as usize].arrived(len + self.headers(), false, sent, now);
                    cx.result.packets = Some((count as u64, self.received));
                    cx.result.rtts.push(rtt.as_ns());
                    cx.result.rtt_times.push(now);
                    if let Some(h) = &mut cx.result.rtt {
                        h.record(rtt.as_ns() as u64);
                    }
                }
                if self.pace.flood && !self.quiet {
                    cx.print(if self.audible { "\x08 \x08\x07" } else { "\x08 \x08" });
                } else if !self.quiet {
                    let word = if self.kernel == Kernel::V2_6_35 { "icmp_req" } else { "icmp_seq" };
                    // Without room for a time of day in the packet there is nothing to measure by.
                    let time = if self.size >= 16 {
                        format!(" time={}", words::triptime(self.kernel, us))
                    } else {
                        String::new()
                    };
                    let ident = match self.verbose && self.kernel != Kernel::V2_6_35 {
                        true => format!(" ident={}", self.id),
                        false => String::new(),
                    };
                    let dup = if again { " (DUP!)" } else { "" };
                    let other = if self.is_other(from) { " (DIFFERENT ADDRESS!)" } else { "" };
                    let bell = if self.audible { "\x07" } else { "" };
                    self.print_timestamp(cx);
                    let from = self.shown(from);
                    cx.print(&format!(
                        "{len} bytes from {from}: {word}={seq}{ident} ttl={ttl}{time}{dup}{other}{bell}\n"
                    ));
                }
                if quick {
                    self.go_on(cx);
                } else if self.enough() {
                    self.finish(cx);
                }
            }
            // The raw socket hears of it; it is no error (`parse_reply`).
            Wake::EchoError { from, ty: 5, code, seq, info, .. } if from.is_ipv4() => {
                self.redirected(from, seq, &words::redirect4(code, info), cx);
            }
            Wake::EchoError { from, ty, code, seq, info, .. } => {
                self.errors += 1;
                let four = from.is_ipv4();
                if four {
                    self.acknowledge(seq);
                }
                if four && (ty, code) == (3, 4) {
                    //= linux v6.12 net/ipv4/route.c __ip_rt_update_pmtu: min_pmtu, mtu_expires
                    self.path = Some((info.max(MIN_PMTU), info < MIN_PMTU, now.saturating_add(MTU_EXPIRES)));
                }
                let what = if four { words::error4(ty, code, info) } else { words::error6(ty, code, info) };
                if self.pace.flood && !self.quiet {
                    cx.print("\x08E");
                } else if !self.quiet {
                    self.print_timestamp(cx);
                    cx.print(&format!("From {} icmp_seq={seq} {what}\n", self.shown(from)));
                }
                if self.is_quick() {
                    let again = four && self.errors == 1;
                    self.go_on(cx);
                    // The raw socket has the first such message besides, behind what is sent now (`parse_reply`); later ones are kept
                    // from it by ICMP_FILTER.
                    if again && cx.result.exit.is_none() {
                        self.acknowledge(seq);
                    }
                } else if self.enough() {
                    self.finish(cx);
                }
            }
            _ => {}
        }
    }
}
