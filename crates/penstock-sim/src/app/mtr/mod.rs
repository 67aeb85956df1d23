//! `mtr`: probes to all hops round after round, and a report of who has answered.
//!
//! Follows: mtr 0.95 `ui/select.c` `select_loop`, `ui/net.c` (`net_send_batch`, `net_process_ping`, `net_max`), `ui/raw.c`,
//! `packet/construct_unix.c` (sizes), `packet/deconstruct_unix.c` (which messages count).
//! Differs: names are those of `/etc/hosts`, and known as soon as somebody answers; a probe of TCP (`-T`) is a SYN whose answer is answered with a RST,
//! and is not sent again. The real mtr connects a socket for it and closes that.

mod parse;
mod words;

pub(crate) use parse::{KNOWN, NOT_HERE};

use crate::app::traceroute;
use crate::app::{Cx, Family, Program, name_of_address};
use crate::index::NONE;
use crate::intent::Intent;
use crate::socket::probe::{Discover, Probe, Unsent};
use crate::wake::Wake;
use penstock_model::{Span, Time};
use penstock_packet::headers::ipproto;
use penstock_packet::{Icmp, L4, Tcp, Udp};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use words::{Field, Head, Named};

/// What is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Report,
    Raw,
    Csv,
    Json,
    Xml,
}

/// The hops that there are at most, the addresses that are kept of each.
const MAX_HOST: usize = 256;
const MAX_PATH: usize = 8;
/// The sequence numbers, from the first to before the last.
const SEQUENCE: (u16, u32) = (33_000, 65_536);
/// The longest packet that is made, bytes.
const BUFFER: i64 = 9000;
const SELECT: u32 = 0;

/// What is known of a hop. Times are microseconds.
#[derive(Clone, Default)]
struct Hop {
    /// Who has answered last, and all who have.
    addr: Option<IpAddr>,
    addrs: Vec<IpAddr>,
    /// The last answer was an error that ends the way.
    error: bool,
    transit: bool,
    sent: i64,
    returned: i64,
    last: i64,
    best: i64,
    worst: i64,
    avg: i64,
    /// Sum of the squares of what differs from the average.
    ssd: i64,
    gmean: i64,
    jitter: i64,
    javg: i64,
    jworst: i64,
    jinta: i64,
}

impl Hop {
    /// An answer came after so many microseconds (`net_process_ping`).
    fn answered(&mut self, us: i64) {
        self.jitter = (us - self.last).abs();
        self.last = us;
        if self.returned < 1 {
            (self.best, self.worst, self.gmean) = (us, us, us);
            (self.avg, self.ssd, self.jitter, self.jworst, self.jinta) = (0, 0, 0, 0, 0);
        }
        self.best = self.best.min(us);
        self.worst = self.worst.max(us);
        self.jworst = self.jworst.max(self.jitter);
        self.returned += 1;
        let (n, before) = (self.returned, self.avg);
        // Integers there, cut off after each sum of doubles.
        self.avg = (self.avg as f64 + (us - before) as f64 / n as f64) as i64;
        self.ssd = (self.ssd as f64 + (us - before) as f64 * (us - self.avg) as f64) as i64;
        self.javg += (self.jitter - self.javg) / n;
        self.jinta += self.jitter - ((self.jinta + 8) >> 4);
        if n > 1 {
            let part = 1.0 / n as f64;
            self.gmean = ((self.gmean as f64).powf((n as f64 - 1.0) * part) * (us as f64).powf(part)) as i64;
        }
        self.transit = false;
    }
}

/// One `mtr`.
pub(crate) struct Mtr {
    // Parameters
    family: Family,
    form: Option<Form>,
    wide: bool,
    numeric: bool,
    show_ips: bool,
    fields: Vec<Field>,
    wait: Span,
    grace: Span,
    timeout: Span,
    count: i64,
    size: i64,
    bitpattern: i64,
    tos: u8,
    mark: u32,
    address: Option<String>,
    first: i64,
    last: i64,
    max_unknown: i64,
    udp: bool,
    tcp: bool,
    port: u16,
    target: String,
    // Variables
    addr: IpAddr,
    from: IpAddr,
    ident: u16,
    hops: Vec<Hop>,
    batch_at: usize,
    numhosts: i64,
    rounds: i64,
    next: u16,
    /// Probes under way, by sequence number: the hop, and when it left.
    sent: BTreeMap<u16, (usize, Time)>,
    /// Of probes of TCP, the sequence number by the port that one has; the flow of what they open.
    ports: BTreeMap<u16, u16>,
    flow: u32,
    last_time: i64,
    grace_since: Option<i64>,
    timer: u32,
}

impl Mtr {
    /// What mtr does without an option.
    fn new() -> Mtr {
        Mtr {
            family: Family::Any,
            form: None,
            wide: false,
            numeric: false,
            show_ips: false,
            fields: "LS NABWV".chars().filter_map(Field::of).collect(),
            wait: Span::from_secs(1),
            grace: Span::from_secs(5),
            timeout: Span::from_secs(10),
            count: 10,
            size: 64,
            bitpattern: 0,
            tos: 0,
            mark: 0,
            address: None,
            first: 1,
            last: 30,
            max_unknown: 12,
            udp: false,
            tcp: false,
            port: 0,
            target: String::new(),
            addr: Ipv4Addr::UNSPECIFIED.into(),
            from: Ipv4Addr::UNSPECIFIED.into(),
            ident: 0,
            hops: vec![Hop::default(); MAX_HOST],
            batch_at: 0,
            numhosts: 10,
            rounds: 0,
            next: SEQUENCE.0,
            sent: BTreeMap::new(),
            ports: BTreeMap::new(),
            flow: NONE,
            last_time: 0,
            grace_since: None,
            timer: 0,
        }
    }
    fn now(cx: &Cx<'_>) -> i64 {
        cx.now().as_ns() / 1000
    }

    // Beginning.

    /// Finds the addresses; answers why not, with the exit status.
    fn prepare(&mut self, cx: &mut Cx<'_>) -> Result<(), (String, i32)> {
        let Some(addr) = cx.resolve(&self.target, self.family) else {
            let target = &self.target;
            let known = target.parse::<IpAddr>().is_ok();
            let why =
                if known { "Address family for hostname not supported" } else { "Name or service not known" };
            return Err((format!("mtr: Failed to resolve host: {target}: {why}\n"), 0));
        };
        self.addr = addr;
        let host = &mut cx.net.machines[cx.host as usize].host;
        self.from = match &self.address {
            Some(address) => match address.parse::<IpAddr>() {
                Ok(from) if from.is_ipv4() == addr.is_ipv4() => from,
                _ => return Err(("mtr: invalid local address: Success\n".to_owned(), 1)),
            },
            None => match host.connects_by(0, addr) {
                Ok(from) => from,
                Err(why) if why.strerror() == "No route to host" => self.from,
                Err(why) => return Err((format!("mtr: udp socket connect failed: {}\n", why.strerror()), 1)),
            },
        };
        self.ident = (cx.app as u16).wrapping_add(1000);
        if self.tcp {
            let to = cx.net.host_of(addr).unwrap_or(cx.host);
            self.flow = cx.new_flow(cx.flow_name(), cx.host, to, "tcp");
        }
        let table = &mut cx.net.machines[cx.host as usize].sockets;
        match (self.tcp, self.udp) {
            (true, _) => table.raws.push((ipproto::TCP, addr, cx.app)),
            (_, true) => table.raws.push((ipproto::UDP, addr, cx.app)),
            _ => table.pings.push((self.ident, cx.app, 0)),
        }
        self.batch_at = self.first as usize - 1;
        Ok(())
    }

    // Sending.

    /// `net_send_query`; what ends mtr, where something does.
    fn send(&mut self, index: usize, cx: &mut Cx<'_>) -> Option<&'static str> {
        let seq = self.next;
        self.next = if u32::from(seq) + 1 >= SEQUENCE.1 { SEQUENCE.0 } else { seq + 1 };
        if self.form == Some(Form::Raw) {
            cx.print(&format!("x {index} {seq}\n"));
        }
        let hop = &mut self.hops[index];
        hop.sent += 1;
        hop.transit = true;
        self.sent.insert(seq, (index, cx.now()));
        let headers: i64 = if self.addr.is_ipv4() { 20 } else { 40 };
        let (least, l4) = match self.udp {
            _ if self.tcp => {
                let port = if self.port == 0 { 80 } else { self.port };
                let Some(sport) = cx.net.probe_port(cx.host, (self.addr, port)) else {
                    return Some("mtr-packet reported address in use");
                };
                self.ports.insert(sport, seq);
                let number = cx.net.probe_number(cx.host);
                let syn = traceroute::syn(self.addr, 0, cx);
                let l4 = Tcp { sport, dport: port, seq: number, ..syn };
                (headers + i64::from(l4.header_len()), L4::Tcp(l4))
            }
            true => {
                // The port that is not asked for counts.
                let (sport, dport) = if self.port == 0 { (self.ident, seq) } else { (seq, self.port) };
                (headers + 12, L4::Udp(Udp { sport, dport }))
            }
            false => {
                let ty = if self.addr.is_ipv4() { 8 } else { 128 };
                (headers + 8, L4::Icmp(Icmp::new(ty, 0, self.ident, seq)))
            }
        };
        // A SYN is as long as it is.
        let size = if self.tcp { least } else { self.size.max(least) };
        let probe = Probe {
            from: self.from,
            to: self.addr,
            size: (size - headers).min(65_507) as u32,
            ttl: index as u8 + 1,
            tos: self.tos,
            mark: self.mark,
            label: 0,
            bound: 0,
            flow: self.flow,
            discover: Discover::Dont,
            l4,
        };
        // Its headers are mtr's own over IPv4: such a packet is not cut.
        //= linux v6.12 net/ipv4/raw.c raw_send_hdrinc
        let now = cx.now();
        let host = &mut cx.net.machines[cx.host as usize].host;
        let longest = match self.addr {
            IpAddr::V4(_) => host.probing(|h| h.mtu_by(0, self.addr, now)).unwrap_or(u32::MAX),
            IpAddr::V6(_) => u32::MAX,
        };
        if self.size > BUFFER {
            return Some("mtr-packet reported invalid argument");
        }
        if size > i64::from(longest) {
            return Some("Unexpected mtr-packet error");
        }
        match cx.net.send_probe(cx.host, &probe) {
            Err(Unsent::Error("Operation not permitted")) => Some("Permission denied"),
            Err(Unsent::Error("Invalid argument")) => Some("mtr-packet reported invalid argument"),
            // No route: the probe is on its way for ever.
            _ => None,
        }
    }
    /// `net_send_batch`; whether a round is over.
    fn send_batch(&mut self, cx: &mut Cx<'_>) -> Result<bool, &'static str> {
        let at = self.batch_at;
        if let Some(why) = self.send(at, cx) {
            return Err(why);
        }
        let first = self.first as usize - 1;
        let reached = |hop: &Hop| hop.addr == Some(self.addr);
        let before = self.hops.get(first..at).unwrap_or_default();
        let found = before.iter().position(reached);
        // Those up to who was sought.
        let looked_at = found.map_or(before, |n| &before[..=n]);
        let unknown = looked_at.iter().filter(|hop| hop.addr.is_none()).count() as i64;
        let mut over = None;
        if let Some(n) = found {
            over = Some(first + n + 1);
        }
        if reached(&self.hops[at]) || unknown > self.max_unknown || at as i64 >= self.last - 1 {
            over = Some(at + 1);
        }
        match over {
            Some(hosts) => {
                self.numhosts = hosts as i64;
                self.batch_at = first;
                Ok(true)
            }
            None => {
                self.batch_at += 1;
                Ok(false)
            }
        }
    }

    // The loop.

    /// `select_loop`, as far as it comes without waiting.
    fn go_on(&mut self, cx: &mut Cx<'_>) {
        let now = Mtr::now(cx);
        let interval = self.wait.as_ns() / 1000 / self.numhosts;
        if now >= self.last_time + interval {
            self.last_time = now;
            if self.grace_since.is_none() {
                if self.rounds >= self.count {
                    self.grace_since = Some(now);
                } else {
                    match self.send_batch(cx) {
                        Ok(over) => self.rounds += i64::from(over),
                        Err(why) => {
                            self.close(cx);
                            cx.print(&format!("mtr: {why}\n"));
                            return self.stop(1, cx);
                        }
                    }
                }
            }
        }
        if self.grace_since.is_some_and(|since| self.grace.as_ns() / 1000 < now - since) {
            self.hops.iter_mut().for_each(|hop| hop.transit = false);
            self.close(cx);
            return self.stop(0, cx);
        }
        let left = (interval - (now - self.last_time)).max(0);
        cx.net.set_timer(self.timer, cx.now() + crate::wake::select(left));
    }
    fn stop(&mut self, status: i32, cx: &mut Cx<'_>) {
        let table = &mut cx.net.machines[cx.host as usize].sockets;
        table.pings.retain(|&(_, app, _)| app != cx.app);
        table.raws.retain(|raw| raw.2 != cx.app);
        cx.net.wakes.stop_timer(self.timer);
        cx.exit(status);
    }

    // Answers.

    /// `net_process_ping`.
    fn answered(&mut self, seq: u16, from: IpAddr, error: bool, cx: &mut Cx<'_>) {
        let Some((index, left)) = self.sent.remove(&seq) else { return };
        if cx.now() >= left.saturating_add(self.timeout) {
            return;
        }
        let us = Mtr::now(cx) - left.as_ns() / 1000;
        let hop = &mut self.hops[index];
        hop.error = error;
        let raw = self.form == Some(Form::Raw);
        if hop.addr != Some(from) {
            let known = hop.addrs.contains(&from);
            if !known && hop.addrs.len() < MAX_PATH {
                hop.addrs.push(from);
                if raw {
                    cx.print(&format!("h {index} {from}\n"));
                }
            }
            hop.addr = Some(from);
            if raw {
                cx.print(&format!("h {index} {from}\n"));
            }
        }
        let first = hop.returned == 0;
        hop.answered(us);
        if raw {
            if first && !self.numeric {
                let name = name_of_address(from, cx.net).unwrap_or_else(|| from.to_string());
                cx.print(&format!("d {index} {name}\n"));
            }
            cx.print(&format!("p {index} {us} {seq}\n"));
        }
    }
    /// Of whom the report speaks: how many hops (`net_max`).
    fn hops(&self) -> usize {
        let mut most = 0;
        for (at, hop) in self.hops.iter().enumerate().take(self.last as usize) {
            if hop.addr == Some(self.addr) || hop.error {
                return at + 1;
            }
            if hop.addr.is_some() {
                most = at + 2;
            }
        }
        most.min(self.last as usize)
    }
    /// `snprint_addr`.
    fn name(&self, addr: Option<IpAddr>, cx: &Cx<'_>) -> String {
        let Some(addr) = addr else { return "???".to_owned() };
        let found = if self.numeric { None } else { name_of_address(addr, cx.net) };
        match found {
            None => addr.to_string(),
            Some(name) if self.show_ips => format!("{name} ({addr})"),
            Some(name) => name,
        }
    }
    /// `display_close`.
    fn close(&self, cx: &mut Cx<'_>) {
        let hostname = cx.net.machines[cx.host as usize].name.clone();
        let named = |(at, hop): (usize, &'_ Hop)| {
            let others = hop.addrs.iter().filter(|addr| Some(**addr) != hop.addr);
            (
                at + 1,
                self.name(hop.addr, cx),
                others.map(|addr| self.name(Some(*addr), cx)).collect::<Vec<_>>(),
            )
        };
        let shown = self.hops.iter().enumerate().take(self.hops()).skip(self.first as usize - 1);
        let hops: Vec<Named<'_>> = shown
            .map(|(at, hop)| {
                let (number, name, others) = named((at, hop));
                Named { number, hop, name, others }
            })
            .collect();
        let head = Head {
            source: &hostname,
            target: &self.target,
            tos: self.tos,
            tests: self.count,
            size: self.size,
            bitpattern: self.bitpattern,
        };
        let text = match self.form {
            Some(Form::Report) => words::report(&hostname, &self.fields, &hops, self.wide),
            Some(Form::Csv) => words::csv(&self.target, seconds(cx), &self.fields, &hops, self.wide),
            Some(Form::Json) => words::json(&head, &self.fields, &hops),
            Some(Form::Xml) => words::xml(&head, &self.fields, &hops),
            Some(Form::Raw) | None => String::new(),
        };
        cx.print(&text);
    }
}

/// Seconds since 1970.
fn seconds(cx: &Cx<'_>) -> i64 {
    penstock_model::time::EPOCH + cx.now().as_ns() / 1_000_000_000
}

impl Program for Mtr {
    fn intent(&self) -> Intent {
        let lasts = self.wait.as_ns().saturating_mul(self.count.max(0));
        Intent::call(&self.target, None, Some(Span::from_ns(lasts))).over(self.family)
    }
    fn needs_all(&self) -> bool {
        !self.numeric || self.tcp
    }
    fn largest(&self) -> u32 {
        self.size.clamp(0, 65_507) as u32
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        if let Err((text, status)) = self.prepare(cx) {
            cx.print(&text);
            cx.exit(status);
            return;
        }
        if self.form == Some(Form::Report) {
            cx.print(&format!("Start: {}\n", crate::app::form::date(seconds(cx))));
        }
        self.timer = cx.net.wakes.new_timer(cx.app, SELECT);
        self.last_time = Mtr::now(cx);
        self.go_on(cx);
    }
    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        let four = self.addr.is_ipv4();
        // Whether a message of this type counts, and whether it is an error that ends the way.
        let counts = |ty: u8, code: u8| match (four, ty, code) {
            (true, 11, _) | (false, 3, _) | (true, 3, 3) | (false, 1, 4) => Some(false),
            (true, 3, _) | (false, 1, _) => Some(true),
            _ => None,
        };
        match wake {
            Wake::Timer(_) => {}
            Wake::Echo { seq, from, .. } => self.answered(seq, from, false, cx),
            Wake::EchoError { from, ty, code, seq, .. } => {
                let Some(error) = counts(ty, code) else { return };
                self.answered(seq, from, error, cx);
            }
            Wake::Told { from, ty, code, ports, .. } => {
                let Some(error) = counts(ty, code) else { return };
                let seq = match self.tcp {
                    true => self.ports.get(&ports.0).copied().unwrap_or_default(),
                    false if self.port == 0 => ports.1,
                    false => ports.0,
                };
                self.answered(seq, from, error, cx);
            }
            // Whether it opens or refuses.
            Wake::Segment { from, ports, .. } => {
                let Some(&seq) = self.ports.get(&ports.1) else { return };
                self.answered(seq, from, false, cx);
            }
            _ => return,
        }
        if cx.result.ended.is_none() {
            self.go_on(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mtr_prints_what_was_recorded() {
        crate::recorded::check("mtr.jsonl", 45);
    }

    /// mtr 0.95 over a router (`vectors/traceroute/mtr-tcp.txt`): the rows without their times are the same, whether the port is open, closed or filtered.
    #[test]
    fn probes_of_tcp_are_answered_as_recorded() {
        let recorded = include_str!("../../../../../vectors/traceroute/mtr-tcp.txt");
        // Hop, loss and number sent; the addresses are others here.
        let rows = |text: &str| -> Vec<String> {
            let rows = text.lines().filter(|line| line.contains("|-- "));
            let words = rows.map(|line| line.split_whitespace().collect::<Vec<_>>());
            words.map(|w| format!("{} {} {} {}", w[0], w[1] == "???", w[2], w[3])).collect()
        };
        for (options, name) in [
            ("-T -r -n -c 3", "-T -r -n -c 3"),
            ("-T -P 81 -r -n -c 3", "-T -P 81 -r -n -c 3"),
            ("-T -P 82 -r -n -c 2", "-T -P 82 -r -n -c 2"),
            ("-T -r -n -c 2 -s 200", "-T -r -n -c 2 -s 200"),
        ] {
            let (mut world, [client, _, _, server]) =
                crate::scenarios::office(1, penstock_model::Kernel::V6_12);
            let drop = world.exec(server, "iptables -A INPUT -p tcp --dport 82 -j DROP");
            assert_eq!(drop.status, 0, "{}", drop.stderr);
            world.add_app(server, "iperf -s -p 80", Time::ZERO);
            let line = format!("mtr -G 1 -i 0.3 {options} 10.2.0.1");
            let app = world.add_app(client, &line, Time::from_ns(1_000_000_000));
            let output = world.run(Time::from_ns(30_000_000_000)).apps[app.0 as usize].output.clone();
            let real = recorded.split("$ mtr ").find(|run| run.starts_with(&format!("{name} 10"))).unwrap();
            assert!(!rows(real).is_empty());
            assert_eq!(rows(&output), rows(real), "{options}:\n{output}");
        }
    }

    #[test]
    fn times_of_the_day() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00+0000"),
            (1_700_000_005, "2023-11-14T22:13:25+0000"),
            (951_782_399, "2000-02-28T23:59:59+0000"),
            (951_782_400, "2000-02-29T00:00:00+0000"),
            (penstock_model::time::EPOCH, "2026-01-01T00:00:00+0000"),
        ] {
            assert_eq!(crate::app::form::date(seconds), date);
        }
    }

    #[test]
    fn what_mtr_cannot_do_here_is_refused_by_name() {
        let said = |line: &str| Mtr::parse(&line.split(' ').collect::<Vec<_>>()).err().unwrap().text;
        assert_eq!(said("b"), "mtr: the interactive screen is not simulated: write -r for a report\n");
        for line in ["-r -z b", "-S -r b", "-t b", "-r a b", "-r -s -100 b"] {
            assert!(said(line).contains(" is not simulated: "), "{line}: {}", said(line));
        }
        assert_eq!(said("-T -u -r b"), "mtr: -u , -T and -S are mutually exclusive\n");
        assert_eq!(said("-u -T -r b"), "mtr: -u , -T and -S are mutually exclusive\n");
        assert_eq!(said("-r -i 0 b"), "mtr: wait time must be positive\n");
        assert_eq!(said("-r -o Q b"), "mtr: Unknown field identifier: Q\n");
        assert_eq!(said("-r -P 70000 b"), "mtr: Illegal port number: 70000\n");
    }
}
