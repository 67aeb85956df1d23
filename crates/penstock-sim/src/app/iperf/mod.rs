//! `iperf` 2.0.4 and 2.0.5: options, settings, reports.
//!
//! Follows: iperf 2.0.4 `src/Settings.cpp`, `Locale.c`, `ReportDefault.c`, `Reporter.c`; 2.0.5 where it differs: the header is
//! printed once, the UDP header has one blank more, 128 KB buffers (profile 6.12; 8 KB before).
//! With [`Iperf::V2_1`] a client of TCP ends as 2.1.8 does (`Client.cpp` `FinishTrafficActions`, `AwaitServerCloseEvent`); what is printed
//! keeps the form of 2.0.5. With [`Iperf::V2_2`] it has the options and prints in the form of 2.2.1 (`v22`, `rows`).
//! Differs: unicast only; options that are not here are refused; a connection that fails ends the program with status 1 (2.2 with 0).

#[cfg(test)]
mod recorded;
mod report;
mod rows;
mod tcp;
mod udp;
pub(crate) mod v22;

pub(crate) use tcp::throughput;

use crate::app::form::units;
use crate::app::options::{self, Known, NotHere, c_number, o, scaled, seconds};
use crate::app::{Cx, Failure, Family, Program};
use crate::sock::SockOpts;
use crate::spec::{Iperf, Stack};
use penstock_model::{Kernel, Span};
use std::net::IpAddr;

pub(crate) const SEPARATOR: &str = "------------------------------------------------------------\n";

pub(crate) const KNOWN: &[Known] = &[
    o('b', "bandwidth", true),
    o('c', "client", true),
    o('f', "format", true),
    o('h', "help", false),
    o('i', "interval", true),
    o('l', "len", true),
    o('m', "print_mss", false),
    o('n', "num", true),
    o('p', "port", true),
    o('s', "server", false),
    o('t', "time", true),
    o('u', "udp", false),
    o('v', "version", false),
    o('w', "window", true),
    o('B', "bind", true),
    o('C', "compatibility", false),
    o('D', "daemon", false),
    o('M', "mss", true),
    o('N', "nodelay", false),
    o('P', "parallel", true),
    o('S', "tos", true),
    o('U', "single_udp", false),
    o('V', "ipv6_domain", false),
    o('Z', "linux-congestion", true),
];

/// What 2.0 has and is not here.
pub(crate) const NOT_HERE: &[NotHere] = &[
    (
        "-d --dualtest -r --tradeoff -R --reverse --full-duplex -L --listenport",
        "run the client on the other host, or write a second [[app]] there",
    ),
    ("-T --ttl", "there are no datagrams to groups; the system's TTL is net.ipv4.ip_default_ttl"),
    ("-F --fileinput -I --stdin", "there is no file to send; -n says how many bytes"),
    ("-o --output", "write > FILE in a script; what an [[app]] prints is in apps/"),
    ("-x --reportexclude", "grep in a script chooses the lines"),
    ("-y --reportstyle", "write iperf = \"2.2\" in the [host]: it has -y C"),
    ("--trip-times --histograms", "ping measures round trips, a [[flow]] the delay of each packet"),
    ("--bounceback", "[[flow]] with load = \"echo\" sends requests that are answered"),
    ("-e --enhanced --dscp", "it is of iperf 2.1 and 2.2: write iperf = \"2.2\" in the [host]"),
];

const USAGE: &str = "Usage: iperf [-s|-c host] [options]\nTry `iperf --help' for more information.\n";
const HELP: &str = "\
Usage: iperf [-s|-c host] [options]
       iperf [-h|--help] [-v|--version]

Client/Server:
  -f, --format    [kmKM]   format to report: Kbits, Mbits, KBytes, MBytes
  -i, --interval  #        seconds between periodic bandwidth reports
  -l, --len       #[KM]    length of buffer to read or write (default 8 KB)
  -m, --print_mss          print TCP maximum segment size (MTU - TCP/IP header)
  -p, --port      #        server port to listen on/connect to
  -u, --udp                use UDP rather than TCP
  -w, --window    #[KM]    TCP window size (socket buffer size)
  -M, --mss       #        set TCP maximum segment size (MTU - 40 bytes)
  -N, --nodelay            set TCP no delay, disabling Nagle's Algorithm

Server specific:
  -s, --server             run in server mode

Client specific:
  -b, --bandwidth #[KM]    for UDP, bandwidth to send at in bits/sec
                           (default 1 Mbit/sec, implies -u)
  -c, --client    <host>   run in client mode, connecting to <host>
  -n, --num       #[KM]    number of bytes to transmit (instead of -t)
  -t, --time      #        time in seconds to transmit for (default 10 secs)
  -P, --parallel  #        number of parallel client threads to run
  -S, --tos       #        the type-of-service for outgoing packets
  -Z, --linux-congestion <algo>  set TCP congestion control algorithm (Linux only)
";

/// What the options say.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) host: String,
    pub(crate) server: bool,
    pub(crate) udp: bool,
    /// That of IPv6 with `-V` alone.
    pub(crate) family: Family,
    pub(crate) port: u16,
    /// Time mode: how long; `None`: [`amount`](Settings::amount).
    pub(crate) time: Option<Span>,
    pub(crate) amount: u64,
    /// Zero: no interval reports.
    pub(crate) interval: Span,
    pub(crate) threads: u32,
    /// Bits per second.
    pub(crate) udp_rate: u64,
    pub(crate) len: u32,
    /// 0: default.
    pub(crate) window: u32,
    pub(crate) mss: u16,
    pub(crate) print_mss: bool,
    pub(crate) nodelay: bool,
    pub(crate) format: char,
    pub(crate) tos: u8,
    pub(crate) congestion: Option<String>,
    pub(crate) bind: Option<String>,
    pub(crate) stack: Stack,
    /// A client of TCP waits until the server has closed, and a server of UDP for nothing, as in 2.1.
    pub(crate) waits: bool,
    /// Warnings, before anything else is printed.
    pub(crate) warnings: String,
    /// What 2.2 has besides.
    pub(crate) new: Option<New>,
}

/// What only iperf 2.2 has.
#[derive(Clone, Debug, Default)]
pub(crate) struct New {
    pub(crate) enhanced: bool,
    /// `-y C`.
    pub(crate) csv: bool,
    /// The type of service was asked for.
    pub(crate) tos_set: bool,
    /// Bits per second that a client of TCP keeps to (`-b`).
    pub(crate) rate: Option<u64>,
}

/// Reads the arguments and makes client or server.
pub(crate) fn parse(
    args: &[&str],
    kernel: Kernel,
    stack: Stack,
    iperf: Iperf,
) -> Result<Box<dyn Program>, Failure> {
    let settings = Settings { waits: iperf >= Iperf::V2_1, ..settings(args, kernel, stack, iperf)? };
    Ok(match (settings.server, settings.udp) {
        (true, false) => Box::new(tcp::Server::new(settings)),
        (true, true) => Box::new(udp::Server::new(settings)),
        (false, false) => Box::new(tcp::Client::new(settings)),
        (false, true) => Box::new(udp::Client::new(settings)),
    })
}

fn settings(args: &[&str], kernel: Kernel, stack: Stack, iperf: Iperf) -> Result<Settings, Failure> {
    let newest = iperf >= Iperf::V2_2;
    let (known, not_here) = if newest { (v22::KNOWN, v22::NOT_HERE) } else { (KNOWN, NOT_HERE) };
    let (options, rest) = options::parse_all("iperf", args, known, not_here, USAGE, 1)?;
    let udp = options.iter().any(|(letter, _)| *letter == 'u');
    let (mut client, mut server) = (false, false);
    let mut len = None;
    let mut s = Settings {
        host: String::new(),
        server: false,
        udp: false,
        port: 5001,
        time: Some(Span::from_secs(10)),
        amount: 0,
        interval: Span::ZERO,
        threads: 1,
        udp_rate: 1024 * 1024,
        len: 0,
        window: 0,
        mss: 0,
        print_mss: false,
        nodelay: false,
        format: 'a',
        tos: 0,
        congestion: None,
        bind: None,
        stack,
        family: Family::Four,
        waits: false,
        warnings: String::new(),
        new: newest.then(New::default),
    };
    let bytes =
        |text: &str| scaled(&text.to_ascii_uppercase(), &[('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)]);
    let bits = |text: &str| {
        scaled(&text.to_ascii_lowercase(), &[('g', 1_000_000_000), ('m', 1_000_000), ('k', 1000)])
    };
    for (letter, value) in options {
        let wrong = || Failure::new(format!("iperf: invalid value \"{value}\" for -{letter}\n{USAGE}"), 1);
        match letter {
            'b' if newest => {
                let rate = bits(value).filter(|&r| r > 0).ok_or_else(wrong)?;
                match &mut s.new {
                    _ if udp => s.udp_rate = rate,
                    Some(new) => new.rate = Some(rate),
                    None => {}
                }
            }
            'b' => {
                if !s.udp {
                    s.warnings.push_str("WARNING: option -b implies udp testing\n");
                }
                if server {
                    s.warnings.push_str("WARNING: option -b is not valid for server mode\n");
                    continue;
                }
                s.udp = true;
                s.udp_rate = bits(value).filter(|&r| r > 0).ok_or_else(wrong)?;
            }
            'c' => {
                client = !server;
                value.clone_into(&mut s.host);
            }
            's' if client => s.warnings.push_str("WARNING: option -s is not valid for client mode\n"),
            's' => server = true,
            'V' => s.family = Family::Six,
            'e' => s.new.get_or_insert_default().enhanced = true,
            'y' if value == "C" || value == "c" => s.new.get_or_insert_default().csv = true,
            'y' => s
                .warnings
                .push_str(&format!("WARNING: unknown reporting style \"{value}\", switching to default\n")),
            v22::DSCP => {
                let dscp = match c_number(value) {
                    Some(n) => u8::try_from(n).ok().filter(|&n| n < 64),
                    None => penstock_packet::dscp::parse(value),
                };
                s.tos = dscp.ok_or_else(wrong)? << 2;
                s.new.get_or_insert_default().tos_set = true;
            }
            'f' => {
                s.format = value.chars().next().filter(|c| "kmgKMGaAbB".contains(*c)).unwrap_or('a');
            }
            'h' if newest => return Err(Failure::new(v22::help(), 0)),
            'v' if newest => return Err(Failure::new("iperf version 2.2.1 (4 Nov 2024) pthreads\n", 0)),
            'h' => return Err(Failure::new(HELP, 1)),
            'v' => return Err(Failure::new("iperf version 2.0.5 (08 Jul 2010) pthreads\n", 1)),
            'i' => {
                let ns = seconds(value).ok_or_else(wrong)?;
                if newest {
                    if ns < 5_000_000 {
                        s.warnings
                            .push_str("WARNING: interval too small, increasing to 5.000 milliseconds.\n");
                    }
                    s.interval = Span::from_ns(ns.max(5_000_000));
                    continue;
                }
                if ns < 500_000_000 {
                    let text = format!(
                        "WARNING: interval too small, increasing from {:3.2} to 0.5 seconds.\n",
                        ns as f64 / 1e9
                    );
                    s.warnings.push_str(&text);
                }
                s.interval = Span::from_ns(ns.max(500_000_000));
            }
            'l' => len = Some(bytes(value).filter(|&n| (1..=1 << 30).contains(&n)).ok_or_else(wrong)? as u32),
            'm' => s.print_mss = true,
            'n' => {
                s.time = None;
                s.amount = bytes(value).ok_or_else(wrong)?;
            }
            'p' => s.port = c_number(value).and_then(|p| u16::try_from(p).ok()).ok_or_else(wrong)?,
            't' => s.time = Some(Span::from_ns(seconds(value).ok_or_else(wrong)? / 10_000_000 * 10_000_000)),
            'u' => s.udp = true,
            'w' => {
                let n = bytes(value).filter(|&n| n <= 1 << 30).ok_or_else(wrong)? as u32;
                if n < 2048 {
                    s.warnings.push_str(&format!(
                        "WARNING: TCP window size set to {n} bytes. A small window size\nwill give poor performance. See the Iperf documentation.\n"
                    ));
                }
                s.window = n;
            }
            'M' => s.mss = bytes(value).and_then(|n| u16::try_from(n).ok()).ok_or_else(wrong)?,
            'N' => s.nodelay = true,
            'P' => {
                s.threads = c_number(value).filter(|n| (1..=4096).contains(n)).ok_or_else(wrong)? as u32;
            }
            'S' if newest && c_number(value).is_none() => {
                s.tos = penstock_packet::dscp::parse(value).ok_or_else(wrong)? << 2;
                s.new.get_or_insert_default().tos_set = true;
            }
            'S' => s.tos = c_number(value).filter(|n| (0..=255).contains(n)).ok_or_else(wrong)? as u8,
            'Z' => s.congestion = Some(value.to_owned()),
            'B' => s.bind = Some(value.to_owned()),
            _ => {}
        }
    }
    for extra in rest {
        s.warnings.push_str(&format!("iperf: ignoring extra argument -- {extra}\n"));
    }
    if !client && !server {
        return Err(Failure::new(USAGE, 1));
    }
    s.server = server;
    if let Some(new) = &mut s.new {
        new.tos_set |= s.tos > 0;
        if new.csv && new.enhanced {
            let text = "iperf: -y C with -e is not simulated: write one of them\n";
            return Err(Failure::new(text, 1));
        }
    }
    let old = kernel == Kernel::V2_6_35 || stack == Stack::WindowsXp;
    let default = match (s.udp, old) {
        (true, _) if s.family == Family::Six => 1450,
        (true, _) => 1470,
        (false, true) => 8 << 10,
        (false, false) => 128 << 10,
    };
    s.len = len.unwrap_or(default);
    if s.udp {
        if s.len < 12 {
            s.len = 12;
            s.warnings.push_str("WARNING: the UDP buffer was increased to 12 for proper operation\n");
        }
        s.len = s.len.min(65_507);
    }
    Ok(s)
}

impl Settings {
    /// The socket's own options.
    fn sock_opts(&self) -> SockOpts {
        SockOpts { tos: self.tos, ..SockOpts::default() }
    }
    /// The head of the output; `window` is what the socket answers, bytes.
    fn report(&self, window: u32, app: u32, cc: Option<&str>) -> String {
        if self.new.is_some() {
            return self.report_2_2(window, app, cc);
        }
        let mut text = String::from(SEPARATOR);
        let protocol = if self.udp { "UDP" } else { "TCP" };
        if self.server {
            text.push_str(&format!("Server listening on {protocol} port {}\n", self.port));
        } else {
            text.push_str(&format!("Client connecting to {}, {protocol} port {}\n", self.host, self.port));
        }
        if let Some(bind) = &self.bind {
            text.push_str(&format!("Binding to local address {bind}\n"));
        }
        if self.udp {
            let what = if self.server { "Receiving" } else { "Sending" };
            text.push_str(&format!("{what} {} byte datagrams\n", self.len));
        }
        let what = if self.udp { "UDP buffer size" } else { "TCP window size" };
        text.push_str(&format!("{what}: {}", units(f64::from(window), 'A')));
        if self.window == 0 {
            text.push_str(" (default)");
        } else if self.window != window {
            text.push_str(&format!(" (WARNING: requested {})", units(f64::from(self.window), 'A')));
        }
        text.push('\n');
        text.push_str(SEPARATOR);
        text
    }
    /// The number that stands for a socket in the reports: the file descriptor, or Windows's handle.
    fn id(&self, n: u32) -> u32 {
        if self.new.is_some() {
            return 1 + n;
        }
        match self.stack {
            Stack::Linux | Stack::Ios | Stack::Solaris => 3 + n,
            Stack::WindowsXp => 1912 - 16 * n.min(100),
        }
    }
    /// The address of the server; prints what is wrong with it.
    fn server_addr(&self, cx: &mut Cx<'_>) -> Option<IpAddr> {
        let addr = cx.resolve(&self.host, self.family);
        if addr.is_none() {
            cx.print("error: Name or service not known\n");
            cx.exit(1);
        }
        addr
    }
    /// TCP as the options set it.
    fn tcp_config(&self, cx: &mut Cx<'_>) -> Option<penstock_tcp::Config> {
        let mut cfg = cx.net.tcp_config(cx.host);
        if self.window > 0 {
            cfg.set_sndbuf(self.window);
            cfg.set_rcvbuf(self.window);
        }
        if self.mss > 0 {
            (cfg.mss, cfg.mss_follows_mtu) = (self.mss, false);
        }
        cfg.nodelay = self.nodelay;
        if let Some(name) = &self.congestion
            && cfg.set_cc(name).is_err()
        {
            let text =
                format!("Attempt to set '{name}' congestion control failed: No such file or directory\n");
            cx.print(&text);
            cx.exit(1);
            return None;
        }
        Some(cfg)
    }
}

/// `[  3] local 10.0.0.1 port 42966 connected with 10.0.0.2 port 5001`.
fn peer_line(id: u32, local: crate::sock::Addr, peer: crate::sock::Addr) -> String {
    format!("[{id:3}] local {} port {} connected with {} port {}\n", local.0, local.1, peer.0, peer.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Settings, Failure> {
        let args: Vec<&str> = line.split_whitespace().collect();
        settings(&args, Kernel::V6_12, Stack::Linux, Iperf::V2_0)
    }

    #[test]
    fn options_are_iperf_s() {
        let s = read("-c 10.3.31.88 -p 5002 -t 30 -i 2 -P 2").unwrap();
        assert_eq!(
            (s.port, s.threads, s.interval, s.time),
            (5002, 2, Span::from_secs(2), Some(Span::from_secs(30)))
        );
        assert_eq!(read("-c h -u -b 10M").unwrap().udp_rate, 10_000_000);
        assert_eq!(read("-c h -u").unwrap().udp_rate, 1_048_576);
        assert_eq!(read("-c h -b 1m").unwrap().warnings, "WARNING: option -b implies udp testing\n");
        assert_eq!(read("-c h -w 64k -l 8K").unwrap().window, 65_536);
        assert_eq!(read("-c h -n 1M").unwrap().amount, 1 << 20);
        assert_eq!(read("-c h -S 0x10").unwrap().tos, 16);
        assert_eq!(read("-c h").unwrap().len, 131_072);
        assert_eq!(settings(&["-c", "h"], Kernel::V2_6_35, Stack::Linux, Iperf::V2_0).unwrap().len, 8192);
        assert_eq!(read("").unwrap_err().text, USAGE);
        assert!(read("-c h -k 3").unwrap_err().text.starts_with("iperf: invalid option -- 'k'\n"));
        assert!(read("-c h -P x").is_err());
    }

    #[test]
    fn the_head_is_iperf_s() {
        let s = settings(&["-c", "10.3.31.88"], Kernel::V2_6_35, Stack::Linux, Iperf::V2_0).unwrap();
        let want = format!(
            "{SEPARATOR}Client connecting to 10.3.31.88, TCP port 5001\nTCP window size: 16.0 KByte (default)\n{SEPARATOR}"
        );
        assert_eq!(s.report(16_384, 0, None), want);
        let s = read("-s -u").unwrap();
        assert!(
            s.report(212_992, 0, None)
                .contains("Receiving 1470 byte datagrams\nUDP buffer size:  208 KByte (default)\n")
        );
    }
}
