//! `ss`: which sockets are asked for, and how they are printed.
//!
//! Follows: iproute2 6.1.0 `misc/ss.c` `main`, `filter_db_set`, `filter_af_set`, `filter_merge_defaults`, `scan_state`.
//! Differs: sockets of TCP, UDP and ICMP alone; what asks for others, and what needs a kernel's own things, is refused by name.

mod filter;
mod show;
mod usage;

pub use filter::Filter;
pub use show::{Around, show, summary};

use penstock_model::sockets::{Protocol, Socket, SocketState};

/// Tables of sockets, a bit each. `OTHERS` are there by default and empty.
mod table {
    pub(super) const TCP: u8 = 1;
    pub(super) const MPTCP: u8 = 2;
    pub(super) const DCCP: u8 = 4;
    pub(super) const UDP: u8 = 8;
    pub(super) const RAW: u8 = 16;
    pub(super) const SCTP: u8 = 32;
    pub(super) const OTHERS: u8 = 64;
    pub(super) const INET: u8 = TCP | MPTCP | DCCP | UDP | RAW | SCTP;
}
use table::{INET, OTHERS, RAW, TCP, UDP};

const fn bit(state: SocketState) -> u16 {
    1 << state as u16
}
/// States, a bit each.
const ALL: u16 = (1 << 12) - 1;
const CONNECTED: u16 = ALL
    & !(bit(SocketState::Listen)
        | bit(SocketState::Close)
        | bit(SocketState::TimeWait)
        | bit(SocketState::SynRecv));

/// What is asked for.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Request {
    /// `-N`: in this namespace.
    pub netns: Option<String>,
    /// `-s`: counts first.
    pub summary: bool,
    /// Sockets too.
    pub rows: bool,
    numeric: bool,
    timers: bool,
    details: bool,
    memory: bool,
    info: bool,
    processes: bool,
    threads: bool,
    tos: bool,
    sockopts: bool,
    oneline: bool,
    no_header: bool,
    tables: u8,
    states: u16,
    /// Of IPv4, of IPv6.
    families: [bool; 2],
    filter: Option<Filter>,
}

impl Request {
    /// Whether a socket is asked for.
    pub fn means(&self, s: &Socket, ephemeral: (u16, u16)) -> bool {
        let table = match s.protocol {
            Protocol::Tcp => TCP,
            Protocol::Udp => UDP,
            Protocol::Raw(_) => RAW,
        };
        self.tables & table != 0
            && self.states & bit(s.state) != 0
            && self.families[usize::from(s.local.0.is_ipv6())]
            && self.filter.as_ref().is_none_or(|f| f.holds(s, ephemeral))
    }
}

/// Why nothing is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The program has said this on standard output, this on standard error, and ends with this status.
    Said(String, String, i32),
    /// It would do what is not simulated; what to write instead.
    NotSimulated(String, &'static str),
}

/// What it asks of the machine.
pub struct Machine<'a> {
    /// The number of a device.
    pub device: &'a dyn Fn(&str) -> Option<u32>,
}

const OTHERS_ARE_NOT: &str = "write -t, -u or -w: no other sockets are simulated";

/// Options with a letter, in the order of their long names; those without one follow with their own sign.
const LONG: &[(&str, bool, char)] = &[
    ("numeric", false, 'n'),
    ("resolve", false, 'r'),
    ("options", false, 'o'),
    ("extended", false, 'e'),
    ("memory", false, 'm'),
    ("info", false, 'i'),
    ("processes", false, 'p'),
    ("threads", false, 'T'),
    ("bpf", false, 'b'),
    ("events", false, 'E'),
    ("dccp", false, 'd'),
    ("tcp", false, 't'),
    ("sctp", false, 'S'),
    ("udp", false, 'u'),
    ("raw", false, 'w'),
    ("unix", false, 'x'),
    ("tipc", false, 'C'),
    ("vsock", false, 'k'),
    ("all", false, 'a'),
    ("listening", false, 'l'),
    ("ipv4", false, '4'),
    ("ipv6", false, '6'),
    ("packet", false, '0'),
    ("family", true, 'f'),
    ("socket", true, 'A'),
    ("query", true, 'A'),
    ("summary", false, 's'),
    ("diag", true, 'D'),
    ("filter", true, 'F'),
    ("version", false, 'V'),
    ("help", false, 'h'),
    ("context", false, 'Z'),
    ("contexts", false, 'z'),
    ("net", true, 'N'),
    ("tipcinfo", false, 'I'),
    ("tos", false, 'q'),
    ("cgroup", false, 'c'),
    ("kill", false, 'K'),
    ("no-header", false, 'H'),
    ("xdp", false, 'X'),
    ("mptcp", false, 'M'),
    ("oneline", false, 'O'),
    ("inet-sockopt", false, 'j'),
];
const LETTERS: &str = "dhaletuwxnro460spTbEfmMiADFvVzZNKHSO";
const WITH_VALUE: &str = "fADFN";

/// The words of a line, read as `getopt_long` reads them.
struct Words<'a> {
    rest: std::slice::Iter<'a, &'a str>,
    /// Letters of the word at hand that are still to be read.
    letters: String,
    /// Arguments that are not options: the filter.
    plain: Vec<&'a str>,
}

fn failed(said: impl Into<String>, status: i32) -> Refusal {
    Refusal::Said(String::new(), said.into(), status)
}
fn usage(said: &str) -> Refusal {
    failed(format!("{said}{}", usage::USAGE), 255)
}
fn not_simulated<T>(what: &str, instead: &'static str) -> Result<T, Refusal> {
    Err(Refusal::NotSimulated(what.to_owned(), instead))
}

impl Words<'_> {
    fn next(&mut self) -> Result<Option<(char, String)>, Refusal> {
        if !self.letters.is_empty() {
            return self.letter().map(Some);
        }
        while let Some(&word) = self.rest.next() {
            if word == "--" {
                self.plain.extend(self.rest.by_ref());
                break;
            }
            if let Some(long) = word.strip_prefix("--") {
                return self.long(long).map(Some);
            }
            match word.strip_prefix('-').filter(|l| !l.is_empty()) {
                Some(letters) => {
                    self.letters = letters.to_owned();
                    return self.letter().map(Some);
                }
                None => self.plain.push(word),
            }
        }
        Ok(None)
    }
    fn letter(&mut self) -> Result<(char, String), Refusal> {
        let c = self.letters.remove(0);
        if !LETTERS.contains(c) {
            return Err(usage(&format!("ss: invalid option -- '{c}'\n")));
        }
        let mut value = String::new();
        if WITH_VALUE.contains(c) {
            value = std::mem::take(&mut self.letters);
            if value.is_empty() {
                let missing = || usage(&format!("ss: option requires an argument -- '{c}'\n"));
                value = (*self.rest.next().ok_or_else(missing)?).to_owned();
            }
        }
        Ok((c, value))
    }
    fn long(&mut self, word: &str) -> Result<(char, String), Refusal> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let mut found: Vec<_> = LONG.iter().filter(|o| o.0 == name).collect();
        if found.is_empty() {
            found = LONG.iter().filter(|o| o.0.starts_with(name)).collect();
        }
        let Some(&&(whole, takes, c)) = found.first() else {
            return Err(usage(&format!("ss: unrecognized option '--{word}'\n")));
        };
        if found.iter().any(|o| o.2 != c) {
            let names: Vec<String> = found.iter().map(|o| format!("'--{}'", o.0)).collect();
            let names = names.join(" ");
            return Err(usage(&format!("ss: option '--{word}' is ambiguous; possibilities: {names}\n")));
        }
        match (takes, value) {
            (false, Some(_)) => Err(usage(&format!("ss: option '--{whole}' doesn't allow an argument\n"))),
            (true, None) => match self.rest.next() {
                Some(value) => Ok((c, (*value).to_owned())),
                None => Err(usage(&format!("ss: option '--{whole}' requires an argument\n"))),
            },
            _ => Ok((c, value.unwrap_or("").to_owned())),
        }
    }
}

/// What has been said of tables, states and families so far.
struct Chosen {
    request: Request,
    /// States that are asked for by themselves; 0: none.
    asked: u16,
    by_default: bool,
    by_query: bool,
    preferred: Option<bool>,
}

impl Chosen {
    fn table(&mut self, table: u8, on: bool) {
        if on {
            self.request.states |= match table {
                UDP | RAW => bit(SocketState::Established),
                _ => CONNECTED,
            };
            self.request.tables |= table;
        } else {
            self.request.tables &= !table;
        }
        self.by_default = false;
    }
    fn family(&mut self, six: bool) {
        self.request.states |= CONNECTED;
        self.request.families[usize::from(six)] = true;
        self.by_default = false;
        self.preferred = Some(six);
    }
    /// A table by its name.
    fn query(&mut self, name: &str) -> Result<(), Refusal> {
        let (on, bare) = match name.strip_prefix('!') {
            Some(bare) => (false, bare),
            None => (true, name),
        };
        let tables = match bare {
            "all" => INET | OTHERS,
            "inet" => INET,
            "udp" => UDP,
            "tcp" => TCP,
            "raw" => RAW,
            "dccp" | "mptcp" | "sctp" | "unix" | "unix_stream" | "u_str" | "unix_dgram" | "u_dgr"
            | "unix_seqpacket" | "u_seq" | "packet" | "packet_raw" | "p_raw" | "packet_dgram" | "p_dgr"
            | "netlink" | "tipc" | "vsock" | "vsock_stream" | "v_str" | "vsock_dgram" | "v_dgr" | "xdp" => {
                return not_simulated(&format!("ss -A {bare}"), OTHERS_ARE_NOT);
            }
            _ => return Err(usage(&format!("ss: \"{bare}\" is illegal socket table id\n"))),
        };
        for n in 0..8 {
            if tables & 1 << n != 0 {
                self.table(1 << n, on);
            }
        }
        Ok(())
    }
    fn option(&mut self, c: char, value: &str) -> Result<(), Refusal> {
        let r = &mut self.request;
        match c {
            'n' => r.numeric = true,
            'r' => return not_simulated("ss -r", "addresses are shown as they are: leave it out"),
            'o' => r.timers = true,
            'e' => (r.timers, r.details) = (true, true),
            'm' => r.memory = true,
            'i' => r.info = true,
            'p' => r.processes = true,
            'T' => r.threads = true,
            'H' => r.no_header = true,
            'O' => r.oneline = true,
            'q' => r.tos = true,
            'j' => r.sockopts = true,
            's' => r.summary = true,
            'N' => r.netns = Some(value.to_owned()),
            'a' => self.asked = ALL,
            'l' => self.asked = bit(SocketState::Listen) | bit(SocketState::Close),
            't' => self.table(TCP, true),
            'u' => self.table(UDP, true),
            'w' => self.table(RAW, true),
            '4' => self.family(false),
            '6' => self.family(true),
            'f' => match value {
                "inet" => self.family(false),
                "inet6" => self.family(true),
                "link" | "unix" | "netlink" | "tipc" | "vsock" | "xdp" => {
                    return not_simulated(&format!("ss -f {value}"), OTHERS_ARE_NOT);
                }
                "help" => return Err(Refusal::Said(usage::USAGE.to_owned(), String::new(), 0)),
                _ => return Err(usage(&format!("ss: \"{value}\" is invalid family\n"))),
            },
            'A' => {
                if !self.by_query {
                    self.request.tables = 0;
                    self.asked = if self.asked == 0 { CONNECTED } else { self.asked };
                    (self.by_query, self.by_default) = (true, false);
                }
                for name in value.split(',') {
                    self.query(name)?;
                }
            }
            'v' | 'V' => {
                let said = "ss utility, iproute2-6.1.0\n".to_owned();
                return Err(Refusal::Said(said, String::new(), 0));
            }
            'h' => return Err(Refusal::Said(usage::USAGE.to_owned(), String::new(), 0)),
            'z' | 'Z' => return Err(failed("ss: SELinux is not enabled.\n", 1)),
            'E' => return not_simulated("ss -E", "call ss again and again"),
            'K' => return not_simulated("ss -K", "end the program whose socket it is"),
            'D' => return not_simulated("ss -D", "ss -tin prints what is known of TCP's sockets"),
            'F' => return not_simulated("ss -F", "write the filter on the command line"),
            'b' => return not_simulated("ss -b", "no socket here has a filter: leave it out"),
            'c' => return not_simulated("ss --cgroup", "there are no control groups here: leave it out"),
            _ => {
                let long = LONG.iter().find(|o| o.2 == c).map_or("", |o| o.0);
                return not_simulated(&format!("ss --{long}"), OTHERS_ARE_NOT);
            }
        }
        Ok(())
    }
}

fn state(name: &str) -> Result<u16, Refusal> {
    use SocketState::*;
    let lower = name.to_ascii_lowercase();
    Ok(match lower.as_str() {
        "close" | "closed" | "unconnected" => bit(Close),
        "syn-rcv" | "syn-recv" => bit(SynRecv),
        "established" => bit(Established),
        "all" => ALL,
        "connected" => ALL & !(bit(Close) | bit(Listen)),
        "synchronized" => ALL & !(bit(Close) | bit(Listen) | bit(SynSent)),
        "bucket" => bit(SynRecv) | bit(TimeWait),
        "big" => ALL & !(bit(SynRecv) | bit(TimeWait)),
        "unknown" => 1,
        "syn-sent" => bit(SynSent),
        "fin-wait-1" => bit(FinWait1),
        "fin-wait-2" => bit(FinWait2),
        "time-wait" => bit(TimeWait),
        "close-wait" => bit(CloseWait),
        "last-ack" => bit(LastAck),
        "listening" => bit(Listen),
        "closing" => bit(Closing),
        _ => return Err(failed(format!("ss: wrong state name: {name}\n"), 255)),
    })
}

/// Reads a line's words, those behind the program's name.
///
/// # Errors
/// What the program says instead of a table, or what is not simulated.
pub fn parse(words: &[&str], machine: &Machine<'_>) -> Result<Request, Refusal> {
    let mut w = Words { rest: words.iter(), letters: String::new(), plain: Vec::new() };
    let mut chosen =
        Chosen { request: Request::default(), asked: 0, by_default: true, by_query: false, preferred: None };
    while let Some((c, value)) = w.next()? {
        chosen.option(c, &value)?;
    }
    let mut plain = w.plain.as_slice();
    if chosen.request.summary && chosen.by_default && plain.is_empty() {
        return Ok(chosen.request);
    }
    chosen.request.rows = true;
    let mut saw = false;
    while let Some((&word @ ("state" | "exclude" | "excl"), rest)) = plain.split_first() {
        let missing = || failed("Command line is not complete. Try option \"help\"\n", 255);
        let (name, rest) = rest.split_first().ok_or_else(missing)?;
        let of_name = |name| state(name);
        if word == "state" {
            chosen.asked = if saw { chosen.asked } else { 0 } | of_name(name)?;
        } else {
            chosen.asked = if saw { chosen.asked } else { ALL } & !of_name(name)?;
        }
        (saw, plain) = (true, rest);
    }
    let mut r = chosen.request;
    if chosen.by_default {
        chosen.asked = if chosen.asked == 0 { CONNECTED } else { chosen.asked };
        (r.tables, r.states) = (INET | OTHERS, ALL);
    }
    if chosen.asked != 0 {
        r.states = chosen.asked;
    }
    // Families of tables, tables of families.
    if r.tables != 0 && !r.families.contains(&true) {
        r.families = [true; 2];
    }
    if r.families.contains(&true) && r.tables & INET == 0 {
        r.tables |= INET;
    }
    for (none, what) in [
        (r.tables == 0, "socket tables"),
        (!r.families.contains(&true), "families"),
        (r.states == 0, "socket states"),
    ] {
        if none {
            let said = format!("ss: no {what} to show with such filter.\n");
            return Err(Refusal::Said(String::new(), said, 0));
        }
    }
    r.filter = filter::parse(plain, machine, &mut chosen.preferred)?;
    if let Some(six) = chosen.preferred
        && r.filter.is_some()
    {
        r.families = [!six, six];
    }
    Ok(r)
}

#[cfg(test)]
mod tests;
