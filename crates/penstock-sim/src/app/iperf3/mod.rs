//! `iperf3` 3.18: options and the talk between client and server.
//!
//! Follows: iperf 3.18 `src/iperf_api.c`, `iperf_client_api.c`, `iperf_server_api.c`, `iperf_locale.c`, `iperf_udp.c`. Beside real kernels
//! ([`Iperf::V2_1`]) a datagram without `-l` is as long as the segments of the control connection, as since 3.2; before it was 8 KB.
//! What is printed was recorded from Debian 13's (`vectors/iperf3`); `-Z` and `-A` cost a real host less and change no packet.
//! Differs: no diskfile, and what [`NOT_HERE`] lists; CPU use is told as zero; the time of day of a run is the epoch.

mod client;
mod json;
mod print;
#[cfg(test)]
mod recorded;
mod server;
mod test;

use crate::app::options::{self, Known, c_number, o, scaled, seconds};
use crate::app::{Failure, Family, Program};
use crate::spec::Iperf;
use penstock_model::Span;

pub(crate) const KNOWN: &[Known] = &[
    o('c', "client", true),
    o('s', "server", false),
    o('p', "port", true),
    o('f', "format", true),
    o('i', "interval", true),
    o('u', "udp", false),
    o('b', "bandwidth", true),
    o('\u{1}', "bitrate", true),
    o('t', "time", true),
    o('n', "bytes", true),
    o('l', "length", true),
    o('P', "parallel", true),
    o('R', "reverse", false),
    o('\u{3}', "bidir", false),
    o('\u{4}', "get-server-output", false),
    o('\u{5}', "json-stream", false),
    o('\u{6}', "logfile", true),
    o('\u{7}', "forceflush", false),
    o('w', "window", true),
    o('M', "set-mss", true),
    o('N', "no-delay", false),
    o('S', "tos", true),
    o('C', "congestion", true),
    o('J', "json", false),
    o('V', "verbose", false),
    o('D', "daemon", false),
    o('1', "one-off", false),
    o('4', "version4", false),
    o('6', "version6", false),
    o('T', "title", true),
    o('k', "blockcount", true),
    o('\u{2}', "dscp", true),
    o('O', "omit", true),
    o('Z', "zerocopy", false),
    o('A', "affinity", true),
    o('v', "version", false),
    o('h', "help", false),
];

/// The version that is printed: Debian 13's.
pub(crate) const VERSION: &str = "iperf 3.18";

/// What iperf 3.18 has beside these.
pub(crate) const NOT_HERE: &[options::NotHere] = &[
    ("--timestamps", "intervals have their times"),
    ("-F --file", "there is no file to send; -n says how many bytes"),
    ("-B --bind --bind-dev", "routes and rules choose the address; give the host another address or route"),
    ("--cport", "ports are chosen by the system; the server's is -p"),
    ("--fq-rate", "-b paces in the program; below it the qdisc fq paces (maxrate)"),
    ("--pacing-timer", "it is 1000 us"),
    ("-X --xbind --sctp --nstreams", "there is no SCTP"),
    ("-L --flowlabel", "flow labels are the stack's own"),
    ("--connect-timeout --rcv-timeout --snd-timeout --idle-timeout", "timeouts are TCP's own"),
    ("--server-bitrate-limit", "limit the client with -b"),
    ("--dont-fragment", "TCP sets it; datagrams up to 1472 bytes are not cut"),
    ("--udp-counters-64bit", "counters do not wrap here: leave it out"),
    ("--repeating-payload", "payload has no contents: leave it out"),
    ("--extra-data", "it changes nothing but the JSON"),
    (
        "--username --rsa-public-key-path --rsa-private-key-path --authorized-users-path --time-skew-threshold",
        "there are no users",
    ),
    ("-m --mptcp", "there is no MPTCP"),
    ("-I --pidfile", "there are no process files"),
    ("-d --debug", "it changes nothing but what is printed"),
];

const USAGE: &str = "Usage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n";
const HELP: &str = "\
Usage: iperf3 [-s|-c host] [options]
       iperf3 [-h|--help] [-v|--version]

Server or Client:
  -p, --port      #         server port to listen on/connect to
  -f, --format    [kmgKMG]  format to report: Kbits, Mbits, KBytes, MBytes
  -i, --interval  #         seconds between periodic throughput reports
  -J, --json                output in JSON format
  --json-stream             output in line-delimited JSON format
  --logfile f               send output to a log file
Server specific:
  -s, --server              run in server mode
  -1, --one-off             handle one client connection then exit
Client specific:
  -c, --client    <host>    run in client mode, connecting to <host>
  -u, --udp                 use UDP rather than TCP
  -b, --bitrate #[KMG]      target bitrate in bits/sec (0 for unlimited)
                            (default 1 Mbit/sec for UDP, unlimited for TCP)
  -t, --time      #         time in seconds to transmit for (default 10 secs)
  -n, --bytes     #[KMG]    number of bytes to transmit (instead of -t)
  -l, --length    #[KMG]    length of buffer to read or write
                            (default 128 KB for TCP, 8 KB for UDP)
  -P, --parallel  #         number of parallel client streams to run
  -R, --reverse             run in reverse mode (server sends, client receives)
  --bidir                   run in bidirectional mode.
                            Client and server send and receive data.
  -w, --window    #[KMG]    set window size / socket buffer size
  -C, --congestion <algo>   set TCP congestion control algorithm (Linux and FreeBSD only)
  -M, --set-mss   #         set TCP maximum segment size (MTU - 40 bytes)
  -N, --no-delay            set TCP no delay, disabling Nagle's Algorithm
  -S, --tos N               set the IP type of service, 0-255.
  --dscp N or --dscp val    set the IP dscp value, either 0-63 or symbolic.
  -O, --omit N              omit the first N seconds of the test
  --get-server-output       get results from server
";

/// Messages on the control connection.
pub(crate) mod say {
    pub(crate) const COOKIE: u32 = 10;
    pub(crate) const PARAM_EXCHANGE: u32 = 11;
    pub(crate) const PARAMS: u32 = 12;
    pub(crate) const CREATE_STREAMS: u32 = 13;
    pub(crate) const TEST_START: u32 = 14;
    pub(crate) const TEST_RUNNING: u32 = 15;
    pub(crate) const TEST_END: u32 = 16;
    pub(crate) const EXCHANGE_RESULTS: u32 = 17;
    pub(crate) const RESULTS: u32 = 18;
    pub(crate) const DISPLAY_RESULTS: u32 = 19;
    pub(crate) const IPERF_DONE: u32 = 20;
    pub(crate) const ACCESS_DENIED: u32 = 21;
}
/// Length of a cookie.
pub(crate) const COOKIE_SIZE: u64 = 37;
/// `Skb::seq` of the datagram that opens a stream, and of its answer.
pub(crate) const HELLO: u64 = 1 << 61;

/// What the options say.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) host: String,
    pub(crate) server: bool,
    pub(crate) port: u16,
    pub(crate) format: char,
    pub(crate) interval: Span,
    pub(crate) udp: bool,
    /// Bits per second; 0: no limit.
    pub(crate) rate: u64,
    pub(crate) time: Span,
    /// Instead of the time, when not 0.
    pub(crate) bytes: u64,
    /// In place of these, so many blocks.
    pub(crate) blocks: u64,
    /// How long it sends before it counts.
    pub(crate) omit: Span,
    pub(crate) len: u32,
    /// In place of that, as long as a segment.
    pub(crate) fits: bool,
    pub(crate) parallel: u32,
    pub(crate) family: Family,
    pub(crate) reverse: bool,
    pub(crate) window: u32,
    pub(crate) mss: u16,
    pub(crate) nodelay: bool,
    pub(crate) tos: u8,
    pub(crate) congestion: Option<String>,
    pub(crate) json: bool,
    /// As JSON, line by line.
    pub(crate) stream: bool,
    /// Both sides send.
    pub(crate) bidir: bool,
    /// The client wants to have what the server prints.
    pub(crate) server_output: bool,
    /// Congestion control of both sides, once they are connected.
    pub(crate) sender_cc: String,
    pub(crate) receiver_cc: String,
    pub(crate) one_off: bool,
    pub(crate) warnings: String,
}

impl Settings {
    /// As many bytes as the blocks have.
    fn count_blocks(&mut self) {
        if self.blocks > 0 {
            self.bytes = self.blocks * u64::from(self.len);
        }
    }
    /// TCP as the options set it.
    ///
    /// # Errors
    /// What iperf3 says of a congestion control that there is not.
    fn tcp_config(&self, net: &crate::net::Net, host: u32) -> Result<penstock_tcp::Config, String> {
        let mut cfg = net.tcp_config(host);
        if self.window > 0 {
            cfg.set_sndbuf(self.window);
            cfg.set_rcvbuf(self.window);
            if self.window > cfg.sndbuf.initial() || self.window > cfg.rcvbuf.initial() {
                return Err("iperf3: error - socket buffer size not set correctly\n".to_owned());
            }
        }
        if self.mss > 0 {
            (cfg.mss, cfg.mss_follows_mtu) = (self.mss, false);
        }
        cfg.nodelay = self.nodelay;
        if let Some(name) = &self.congestion {
            cfg.set_cc(name).map_err(|_| {
                "iperf3: error - unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host\n"
            })?;
        }
        Ok(cfg)
    }
}

/// Reads the arguments and makes client or server.
pub(crate) fn parse(args: &[&str], iperf: Iperf) -> Result<Box<dyn Program>, Failure> {
    let mut settings = settings(args)?;
    settings.fits &= iperf >= Iperf::V2_1;
    Ok(if settings.server {
        Box::new(server::Server::new(settings))
    } else {
        Box::new(client::Client::new(settings))
    })
}

fn settings(args: &[&str]) -> Result<Settings, Failure> {
    let (options, rest) = options::parse_all("iperf3", args, KNOWN, NOT_HERE, USAGE, 1)?;
    let mut s = Settings {
        host: String::new(),
        server: false,
        port: 5201,
        format: 'a',
        interval: Span::from_secs(1),
        udp: false,
        rate: 0,
        time: Span::from_secs(10),
        bytes: 0,
        blocks: 0,
        omit: Span::ZERO,
        len: 0,
        fits: false,
        parallel: 1,
        family: Family::Any,
        reverse: false,
        window: 0,
        mss: 0,
        nodelay: false,
        tos: 0,
        congestion: None,
        json: false,
        stream: false,
        bidir: false,
        server_output: false,
        sender_cc: String::new(),
        receiver_cc: String::new(),
        one_off: false,
        warnings: String::new(),
    };
    let error = |text: &str| Failure::new(format!("iperf3: parameter error - {text}\n\n{USAGE}"), 1);
    let bytes = |t: &str| scaled(&t.to_ascii_uppercase(), &[('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)]);
    let bits =
        |t: &str| scaled(&t.to_ascii_lowercase(), &[('g', 1_000_000_000), ('m', 1_000_000), ('k', 1000)]);
    let mut rate = None;
    let mut len = None;
    let mut client_only = false;
    let mut ends = std::collections::BTreeSet::new();
    for (letter, value) in options {
        let wrong = || error(&format!("invalid value \"{value}\" for -{letter}"));
        match letter {
            'c' if s.server => return Err(error("cannot be both server and client")),
            'c' => value.clone_into(&mut s.host),
            's' if !s.host.is_empty() => return Err(error("cannot be both server and client")),
            's' => s.server = true,
            'p' => {
                s.port = c_number(value)
                    .and_then(|p| u16::try_from(p).ok())
                    .filter(|&p| p > 0)
                    .ok_or_else(wrong)?
            }
            'f' => s.format = value.chars().next().filter(|c| "kmgKMGaA".contains(*c)).unwrap_or('a'),
            'i' => {
                let ns = seconds(value).ok_or_else(wrong)?;
                if ns != 0 && !(100_000_000..=60_000_000_000).contains(&ns) {
                    return Err(error("invalid report interval (min = 0.1, max = 60 seconds)"));
                }
                s.interval = Span::from_ns(ns);
            }
            'u' => s.udp = true,
            'b' | '\u{1}' => rate = Some(bits(value.split('/').next().unwrap_or(value)).ok_or_else(wrong)?),
            't' => {
                let ns = seconds(value).ok_or_else(wrong)?;
                if ns > 86_400_000_000_000 {
                    return Err(error("test duration too long (maximum = 86400 seconds)"));
                }
                s.time = Span::from_secs(ns / 1_000_000_000);
            }
            'n' => s.bytes = bytes(value).ok_or_else(wrong)?,
            'k' => s.blocks = bytes(value).ok_or_else(wrong)?,
            'O' => {
                let ns = seconds(value).filter(|ns| (0..=600_000_000_000).contains(ns));
                let ns = ns.ok_or_else(|| error("bogus value for --omit"))?;
                s.omit = Span::from_secs(ns / 1_000_000_000);
            }
            '\u{2}' => {
                let dscp = match c_number(value) {
                    Some(n) => u8::try_from(n).ok().filter(|n| *n < 64),
                    None => penstock_packet::dscp::parse(value),
                };
                let bad = || error("bad TOS value (must be between 0 and 255 inclusive)");
                s.tos = dscp.ok_or_else(bad)? << 2;
            }
            'l' => {
                len = Some(
                    bytes(value)
                        .filter(|&n| n <= 1 << 20)
                        .ok_or_else(|| error("block size too large (maximum = 1048576 bytes)"))?
                        as u32,
                )
            }
            'P' => {
                let n = c_number(value).ok_or_else(wrong)?;
                if n > 128 {
                    return Err(error("number of parallel streams too large (maximum = 128)"));
                }
                s.parallel = n.max(1) as u32;
            }
            'R' if s.bidir => return Err(error("cannot be both reverse and bidirectional")),
            'R' => s.reverse = true,
            '\u{3}' if s.reverse => return Err(error("cannot be both reverse and bidirectional")),
            '\u{3}' => s.bidir = true,
            '\u{4}' => s.server_output = true,
            '\u{5}' => (s.json, s.stream) = (true, true),
            '4' => s.family = Family::Four,
            '6' => s.family = Family::Six,
            'w' => {
                let n = bytes(value).ok_or_else(wrong)?;
                if n > 512 << 20 {
                    return Err(error("socket buffer size too large (maximum = 536870912 bytes)"));
                }
                s.window = n as u32;
            }
            'M' => s.mss = c_number(value).and_then(|n| u16::try_from(n).ok()).ok_or_else(wrong)?,
            'N' => s.nodelay = true,
            'S' => {
                let n = c_number(value).filter(|n| (0..=255).contains(n));
                s.tos = n.ok_or_else(|| error("bad TOS value (must be between 0 and 255 inclusive)"))? as u8;
            }
            'C' => s.congestion = Some(value.to_owned()),
            'J' => s.json = true,
            '1' => s.one_off = true,
            'v' => return Err(Failure::new(format!("{VERSION} (cJSON 1.7.15)\nLinux\n"), 0)),
            'h' => return Err(Failure::new(HELP, 0)),
            _ => {}
        }
        client_only |= matches!(
            letter,
            'u' | 'b'
                | 't'
                | 'n'
                | 'k'
                | 'O'
                | 'Z'
                | 'l'
                | 'P'
                | 'R'
                | 'w'
                | 'M'
                | 'N'
                | 'S'
                | 'C'
                | '\u{2}'
                | '\u{3}'
                | '\u{4}'
        );
        if matches!(letter, 't' | 'n' | 'k') {
            ends.insert(letter);
        }
    }
    for extra in rest {
        s.warnings.push_str(&format!("iperf3: ignoring extra argument -- {extra}\n"));
    }
    if !s.server && s.host.is_empty() {
        return Err(error("must either be a client (-c) or server (-s)"));
    }
    if ends.len() > 1 {
        return Err(error("only one test end condition (-t, -n, -k) may be specified"));
    }
    if s.server && client_only {
        return Err(error("some option you are trying to set is client only"));
    }
    s.rate = rate.unwrap_or(if s.udp { 1024 * 1024 } else { 0 });
    s.fits = s.udp && len.is_none_or(|n| n == 0);
    s.len = len.filter(|&n| n > 0).unwrap_or(if s.udp { 8192 } else { 128 << 10 });
    if s.udp {
        s.len = s.len.clamp(16, 65_507);
    }
    s.count_blocks();
    Ok(s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Settings, Failure> {
        settings(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn options_are_iperf3_s() {
        let s = read("-c 192.168.1.173 -u -b 1G -p 5201 -S 16").unwrap();
        assert_eq!((s.rate, s.len, s.tos, s.udp), (1_000_000_000, 8192, 16, true));
        assert_eq!(read("-c h -b 10M/5").unwrap().rate, 10_000_000);
        assert_eq!(read("-c h -u").unwrap().rate, 1_048_576);
        assert_eq!(read("-c h").unwrap().rate, 0);
        let text = |line: &str| read(line).unwrap_err().text;
        assert!(
            text("-s -u")
                .starts_with("iperf3: parameter error - some option you are trying to set is client only\n")
        );
        assert!(
            text("").starts_with("iperf3: parameter error - must either be a client (-c) or server (-s)\n")
        );
        assert!(text("-c h -i 0.01").contains("invalid report interval (min = 0.1, max = 60 seconds)"));
        assert!(text("-c h -q").starts_with("iperf3: invalid option -- 'q'\n"));
        // Those of 3.12: what it says was recorded.
        let s = read("-c h -O 2 -k 20 -Z -A 0,1 --dscp EF").unwrap();
        assert_eq!((s.omit, s.bytes, s.tos), (Span::from_secs(2), 20 * (128 << 10), 0xb8));
        assert_eq!((read("-c h --dscp 10").unwrap().tos, read("-c h --dscp 0x2e").unwrap().tos), (40, 0xb8));
        assert!(text("-c h --dscp XX").contains("bad TOS value (must be between 0 and 255 inclusive)"));
        assert!(text("-c h -O 700").starts_with("iperf3: parameter error - bogus value for --omit\n"));
        assert!(
            text("-c h -k 5 -n 10").contains("only one test end condition (-t, -n, -k) may be specified")
        );
        assert!(text("-c h --bidir -R").contains("cannot be both reverse and bidirectional"));
        assert!(text("-c h -R --bidir").contains("cannot be both reverse and bidirectional"));
        assert_eq!(
            text("-c h --pidfile x"),
            "iperf3: --pidfile is not simulated: there are no process files\n"
        );
        assert!(text("-c h -F x").starts_with("iperf3: -F is not simulated: "));
        assert!(text("-c h --nonsense").starts_with("iperf3: unrecognized option '--nonsense'\n"));
    }
}
