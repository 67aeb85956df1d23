//! The options of iperf 2.2 and what it prints around its rows.
//!
//! Follows: iperf 2.2.1 `Settings.cpp`, `ReportOutputs.c` `reporter_output_listener_settings`, `reporter_output_client_settings`,
//! `reporter_print_connection_report`. A process's number is one more than its place among the run's programs.

use crate::app::Cx;
use crate::app::iperf::report::Printer;
use crate::app::iperf::rows::{Form, Tcp, amount, day_and_time};
use crate::app::iperf::{SEPARATOR, Settings};
use crate::app::options::{Known, NotHere, o};
use crate::net::Net;
use crate::sock::Addr;
use penstock_model::{Span, Time};
use std::net::IpAddr;

/// `--dscp`, `--utc`, `--ignore-shutdown`: options without a letter.
pub(super) const DSCP: char = '\u{1}';
pub(super) const UTC: char = '\u{2}';

pub(crate) const KNOWN: &[Known] = &[
    o('b', "bandwidth", true),
    o('c', "client", true),
    o('e', "enhanced", false),
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
    o('y', "reportstyle", true),
    o('B', "bind", true),
    o('C', "compatibility", false),
    o('D', "daemon", false),
    o('M', "mss", true),
    o('N', "nodelay", false),
    o('P', "parallel", true),
    o('S', "tos", true),
    o('U', "single_udp", false),
    o('V', "ipv6_domain", false),
    o('Z', "tcp-congestion", true),
    o(DSCP, "dscp", true),
    o(UTC, "utc", false),
];

const OTHER_WAY: &str = "run the client on the other host, or write a second [[app]] there";
const CLOCKS: &str = "ping measures round trips, a [[flow]] the delay of each packet";
const PACES: &str = "-b paces in the program; below it the qdisc fq paces (maxrate)";
const START: &str = "write at = in the [[app]]";
const BURSTS: &str = "[[flow]] with load = { on = …, off = … } sends in bursts";
const ECHOES: &str = "[[flow]] with load = \"echo\" sends requests that are answered";
const GROUPS: &str = "a group is joined by ip maddr, and [[flow]] is between two hosts";

/// What iperf 2.2 has and is not here, and what to do instead.
pub(crate) const NOT_HERE: &[NotHere] = &[
    ("-d --dualtest -r --tradeoff -R --reverse --full-duplex", OTHER_WAY),
    ("-L --listenport", OTHER_WAY),
    ("--trip-times --histograms --jitter-histograms --tcp-write-times", CLOCKS),
    ("--bounceback --bounceback-request --bounceback-reply --bounceback-hold", ECHOES),
    ("--bounceback-no-quickack --bounceback-period --bounceback-txdelay", ECHOES),
    ("--working-load --working-load-cca", "write a [[flow]] or a second [[app]] beside it"),
    ("--isochronous --burst-size --burst-period --burst-size --ipg --frame-interval", BURSTS),
    ("--fq-rate --fq-rate-step --fq-rate-step-interval --near-congestion", PACES),
    ("--txstart-time --txdelay-time --delay-start", START),
    ("--connect-only --connect-retries --connect-retry-timer --connect-retry-time --no-connect-sync", START),
    (
        "--tcp-write-prefetch --tcp-quickack --tcp-rx-window-clamp --tcp-tx-delay",
        "sysctl sets TCP's options for all",
    ),
    ("--udp-l4s --udp-l4s-video", "run TCP with -Z prague"),
    ("-T --ttl -H --ssm-host --igmp-queries", GROUPS),
    ("-F --fileinput -I --stdin", "there is no file to send; -n says how many bytes"),
    ("-o --output", "write > FILE in a script; what an [[app]] prints is in apps/"),
    ("-x --reportexclude", "2>/dev/null and grep in a script choose the lines"),
    (
        "-1 --singleclient --permit-key --permit-key-timeout --test-exchange-timeout",
        "leave it out: who may call is netfilter's",
    ),
    ("--incr-dstip --incr-dstport --incr-srcip --incr-srcport", "write an [[app]] for each"),
    (
        "--sum-only --sum-dstip --hide-ips --sync-transfer-id",
        "leave it out: it changes what is printed alone",
    ),
    (
        "-z --realtime --skip-rx-copy --NUM_REPORT_STRUCTS --no-udp-fin",
        "leave it out: it is of the real machine",
    ),
    ("-X --peer-detect", "leave it out: all are of one version"),
    ("-K --tap-dev --tun-dev", "there is no device of a program"),
    ("--local-only --tos-override --ignore-shutdown", "leave it out: it is not done here"),
];

/// How it prints; `None` for 2.0.
impl Settings {
    pub(super) fn form(&self) -> Option<Form> {
        self.new.as_ref().map(|new| Form {
            enhanced: new.enhanced,
            csv: new.csv,
            udp: self.udp,
            server: self.server,
            format: self.format,
            heads: Vec::new(),
        })
    }
    pub(super) fn printer(&self) -> Printer {
        Printer::new(self.format, self.form())
    }
    /// Whether nothing but rows is printed.
    fn rows_alone(&self) -> bool {
        self.new.as_ref().is_some_and(|new| new.csv)
    }
    fn enhanced(&self) -> bool {
        self.new.as_ref().is_some_and(|new| new.enhanced)
    }
    /// What stands above all rows; `window`: what the socket answers, bytes. `cc`: the congestion control in force.
    pub(super) fn report_2_2(&self, window: u32, app: u32, cc: Option<&str>) -> String {
        if self.rows_alone() {
            return String::new();
        }
        let protocol = if self.udp { "UDP" } else { "TCP" };
        let (enhanced, port) = (self.enhanced(), self.port);
        let pid = if enhanced { format!(" with pid {}", app + 1) } else { String::new() };
        let mut text = String::from(SEPARATOR);
        let version =
            if enhanced && self.family == crate::app::Family::Six && self.server { " (v6)" } else { "" };
        let len = f64::from(self.len);
        if self.server {
            text.push_str(&format!("Server listening on {protocol}{version} port {port}{pid}\n"));
            if let Some(bind) = self.bind.as_ref().filter(|_| enhanced) {
                text.push_str(&format!("Binding to local address {bind}\n"));
            }
            if enhanced && self.udp {
                text.push_str(&format!("Read buffer size: {} \n", amount(len, 'B')));
            } else if enhanced {
                let (size, bin) = (amount(len, self.format.to_ascii_uppercase()), amount(len / 8.0, 'A'));
                text.push_str(&format!("Read buffer size: {size} (Dist bin width={bin})\n"));
            }
        } else {
            let flows = if enhanced { format!(" ({}/0 flows/load)", self.threads) } else { String::new() };
            text.push_str(&format!(
                "Client connecting to {}, {protocol} port {port}{pid}{flows}\n",
                self.host
            ));
            if enhanced && !self.udp {
                text.push_str(&format!("Write buffer size: {}\n", amount(len, 'B')));
            }
        }
        let mss = match (self.print_mss, self.mss) {
            (false, _) => String::new(),
            // Before the socket is connected.
            (true, 0) => "MSS size 536 bytes\n".to_owned(),
            (true, mss) => format!("MSS req size {mss} bytes (per TCP_MAXSEG)\n"),
        };
        if !self.server {
            text.push_str(&mss);
        }
        let default = if self.server { " default" } else { "" };
        match (&self.congestion, cc) {
            (Some(asked), Some(cc)) => {
                text.push_str(&format!("TCP congestion control{default} set to {asked} using {cc}\n"));
            }
            (None, Some(cc)) if enhanced => {
                let using = if self.server { "" } else { " using" };
                text.push_str(&format!("TCP congestion control{default}{using} {cc}\n"));
            }
            _ => {}
        }
        let (tos, dscp, ecn) = (self.tos, self.tos >> 2, self.tos & 3);
        if self.server {
            text.push_str(&mss);
            if tos > 0 {
                text.push_str(&format!("TOS will be set to 0x{tos:x} (dscp={dscp},ecn={ecn})\n"));
            }
        } else if enhanced {
            let set = if self.new.as_ref().is_some_and(|new| new.tos_set) { "set" } else { "defaults" };
            let ecn_bits = if ecn > 0 { " (warn ecn bits set)" } else { "" };
            let nagle = if self.nodelay { " and nodelay (Nagle off)" } else { " (Nagle on)" };
            text.push_str(&format!("TOS {set} to 0x{tos:x} (dscp={dscp},ecn={ecn}){ecn_bits}{nagle}\n"));
        }
        if self.udp && !self.server {
            // The distance is known only when the first stream begins, so that 0 is told.
            text.push_str(&format!(
                "Sending {} byte datagrams, IPG target: 0.00 us (kalman adjust)\n",
                self.len
            ));
        }
        let unit = if self.format.eq_ignore_ascii_case(&'b') { 'B' } else { 'A' };
        let what = if self.udp { "UDP buffer size" } else { "TCP window size" };
        text.push_str(&format!("{what}: {}", amount(f64::from(window), unit)));
        if self.window == 0 {
            text.push_str(" (default)");
        } else if self.window != window {
            let asked = amount(f64::from(self.window), self.format.to_ascii_uppercase());
            text.push_str(&format!(" (WARNING: requested {asked})"));
        }
        text.push('\n');
        text.push_str(SEPARATOR);
        text
    }
    /// The line of a connection. `tcp`: what TCP says of it; `took`: how long connecting took; `seen`: that a server has heard the other's version.
    pub(super) fn peer_2_2(
        &self,
        id: u32,
        ends: (Addr, Addr),
        tcp: Option<Tcp>,
        took: Option<Span>,
        cx: &Cx<'_>,
    ) -> String {
        if self.rows_alone() {
            return String::new();
        }
        let ((local, port), (peer, peer_port)) = ends;
        let mut rest = String::new();
        let enhanced = self.enhanced();
        if let Some(cc) = self.congestion.as_ref().filter(|_| enhanced && !self.udp) {
            rest.push_str(&format!(" ({cc})"));
        }
        if self.tos > 0 {
            let (tos, dscp, ecn) = (self.tos, self.tos >> 2, self.tos & 3);
            rest.push_str(&format!(" (tos tx=0x{tos:x},dscp={dscp},ecn={ecn})"));
        }
        let mut on = String::new();
        if enhanced {
            if self.server {
                rest.push_str(" (peer 2.2.1-rc)");
            }
            if let Some(tcp) = tcp {
                let Tcp { cwnd, mss, rtt_us, .. } = tcp;
                rest.push_str(&format!(" (icwnd/mss/irtt={}/{mss}/{rtt_us})", cwnd * mss / 1024));
            }
            if let Some(took) = took.filter(|t| *t > Span::ZERO) {
                rest.push_str(&format!(" (ct={:4.2} ms)", took.as_secs_f64() * 1e3));
            }
            rest.push_str(&format!(" on {}", day_and_time(cx.now().as_ns(), true)));
            on = device(local, cx.host, cx.net).map(|dev| format!("%{dev}")).unwrap_or_default();
        }
        format!("[{id:3}] local {local}{on} port {port} connected with {peer} port {peer_port}{rest}\n")
    }
    /// A connection that did not come about.
    pub(super) fn refused(&self, id: u32, to: (IpAddr, u16), why: &str, now: Time) -> String {
        if self.new.is_none() {
            return format!("connect failed: {why}\n");
        }
        let at = day_and_time(now.as_ns(), false);
        format!("[{id:3}] tcp connect to {} port {} failed ({why}) on {at}\n", to.0, to.1)
    }
}

/// The device that has an address.
fn device(addr: IpAddr, host: u32, net: &Net) -> Option<String> {
    let has = |d: &&penstock_host::NetDevice| match addr {
        IpAddr::V4(a) => d.addresses.iter().any(|own| own.prefix.addr == a),
        IpAddr::V6(a) => d.addresses6.iter().any(|own| own.addr == a),
    };
    net.machines[host as usize].host.devices().iter().find(has).map(|d| d.name.to_string())
}

/// The ends as `-y C` has them: the client's, then the server's.
pub(super) fn ends(client: Addr, server: Addr) -> String {
    format!("{},{},{},{}", client.0, client.1, server.0, server.1)
}

/// What `TCP_INFO` says of a socket.
pub(super) fn tcp(sock: u32, net: &Net) -> Option<Tcp> {
    let info = net.endpoint(sock)?.info();
    let flying = (info.unacked + info.retrans).saturating_sub(info.sacked + info.lost);
    let us = |span: Span| (span.as_ns() / 1000).max(0) as u64;
    Some(Tcp {
        retries: info.total_retrans,
        flying: flying.into(),
        cwnd: info.cwnd.into(),
        mss: info.snd_mss.into(),
        rtt_us: us(info.srtt),
        rttvar_us: us(info.rttvar),
    })
}

/// Its help: what is here, by letter and name.
pub(super) fn help() -> String {
    let mut text = String::from("Usage: iperf [-s|-c host] [options]\n\nOptions that are simulated:\n");
    for known in KNOWN {
        let letter =
            if known.short.is_ascii_graphic() { format!("-{}, ", known.short) } else { "    ".to_owned() };
        let value = if known.value { " #" } else { "" };
        text.push_str(&format!("  {letter}--{}{value}\n", known.long));
    }
    text
}
