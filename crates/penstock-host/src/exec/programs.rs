//! The programs of a machine: the only list of them.

use super::Files;
use crate::{Host, Output};
use penstock_lang::iptables::Family;
use penstock_lang::token::Line;
use penstock_model::{Kernel, Time};

/// A command as a program gets it.
pub(crate) struct Call<'a> {
    /// Its words, the program's name first.
    pub(crate) line: &'a Line,
    /// What lends it files.
    pub(crate) files: &'a mut dyn Files,
    /// The present.
    pub(crate) now: Time,
}

/// Who knows a program by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Everybody: it acts on the machine's network or shows it. Scripts give it to the machine, and it is a tool of its own
    /// (`penstock NAME`).
    Network,
    /// The same in scripts and on the machine; no tool of its own.
    Script,
    /// Commands on the machine alone: a script's interpreter has its own.
    Machine,
}

/// A program of a machine.
pub struct Program {
    /// The name it is called by.
    pub name: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    /// Who knows it.
    pub reach: Reach,
    run: fn(&mut Host, Call<'_>) -> Output,
}

/// Shorthand for a line of the table.
const fn program(
    name: &'static str,
    reach: Reach,
    about: &'static str,
    run: fn(&mut Host, Call<'_>) -> Output,
) -> Program {
    Program { name, about, reach, run }
}

use Reach::{Machine, Network, Script};

/// Every program of a machine, by name.
pub static PROGRAMS: &[Program] = &[
    program(":", Machine, "nothing, successfully", |_, _| Output::default()),
    program("arp", Network, "the neighbours, as net-tools show them", |h, c| h.arp_tool(c.line, c.now)),
    program("brctl", Network, "bridges", |h, c| h.brctl(c.line, c.now)),
    program("bridge", Network, "bridges, as iproute2 shows them", |h, c| h.bridge_tool(c.line, c.now)),
    program("cat", Machine, "files of /proc and /sys", |h, c| h.cat(c.line, c.now)),
    program("conntrack", Script, "the connections that netfilter tracks", |h, c| h.conntrack(c.line, c.now)),
    program("echo", Machine, "its words", |_, c| echo(c.line)),
    program("ethtool", Network, "a card's settings", |h, c| h.ethtool(c.line)),
    program("false", Machine, "nothing, and fails", |_, _| Output { status: 1, ..Output::default() }),
    program("hostname", Machine, "the machine's name", |h, c| h.hostname(c.line)),
    program("ifconfig", Network, "devices and addresses, as net-tools show them", |h, c| {
        h.ifconfig(c.line, c.now)
    }),
    program("ip", Network, "devices, addresses, routes, rules, neighbours, namespaces", |h, c| {
        h.ip(c.line, c.files, c.now)
    }),
    program("ip6tables", Network, "the packet filter of IPv6", |h, c| filter(h, Family::Ip6, "", c)),
    program("ip6tables-legacy", Script, "ip6tables", |h, c| filter(h, Family::Ip6, "", c)),
    program("ip6tables-legacy-restore", Script, "ip6tables-restore", |h, c| {
        filter(h, Family::Ip6, "-restore", c)
    }),
    program("ip6tables-legacy-save", Script, "ip6tables-save", |h, c| filter(h, Family::Ip6, "-save", c)),
    program("ip6tables-nft", Script, "ip6tables", |h, c| filter(h, Family::Ip6, "", c)),
    program("ip6tables-nft-restore", Script, "ip6tables-restore", |h, c| {
        filter(h, Family::Ip6, "-restore", c)
    }),
    program("ip6tables-nft-save", Script, "ip6tables-save", |h, c| filter(h, Family::Ip6, "-save", c)),
    program("ip6tables-restore", Network, "the packet filter of IPv6 from a dump", |h, c| {
        filter(h, Family::Ip6, "-restore", c)
    }),
    program("ip6tables-save", Network, "a dump of the packet filter of IPv6", |h, c| {
        filter(h, Family::Ip6, "-save", c)
    }),
    program("ipchains", Script, "the packet filter of Linux 2.2", |h, c| h.ipchains(c.line)),
    program("ipfwadm", Machine, "the packet filter of Linux 2.0", |_, _| {
        let said = "ipfwadm: ipfwadm is Linux 2.0's: ipchains (2.2) and iptables took its place\n";
        Output::fail(said, 1, "")
    }),
    program("ipset", Network, "sets of addresses that the packet filter asks", |h, c| {
        h.ipset(c.line, c.files, c.now)
    }),
    program("iptables", Network, "the packet filter", |h, c| filter(h, Family::Ip, "", c)),
    program("iptables-legacy", Script, "iptables", |h, c| filter(h, Family::Ip, "", c)),
    program("iptables-legacy-restore", Script, "iptables-restore", |h, c| {
        filter(h, Family::Ip, "-restore", c)
    }),
    program("iptables-legacy-save", Script, "iptables-save", |h, c| filter(h, Family::Ip, "-save", c)),
    program("iptables-nft", Script, "iptables", |h, c| filter(h, Family::Ip, "", c)),
    program("iptables-nft-restore", Script, "iptables-restore", |h, c| filter(h, Family::Ip, "-restore", c)),
    program("iptables-nft-save", Script, "iptables-save", |h, c| filter(h, Family::Ip, "-save", c)),
    program("iptables-restore", Network, "the packet filter from a dump", |h, c| {
        filter(h, Family::Ip, "-restore", c)
    }),
    program("iptables-save", Network, "a dump of the packet filter", |h, c| {
        filter(h, Family::Ip, "-save", c)
    }),
    program("killall", Script, "ends programs by their name", |h, c| h.killall(c)),
    program("ls", Machine, "folders of /proc and /sys", |h, c| h.ls(c.line)),
    program("lsmod", Network, "modules of the kernel", |h, _| h.lsmod()),
    program("modprobe", Network, "adds a module to the kernel", |h, c| h.modprobe(c.line, c.now)),
    program("netstat", Script, "the routes, as net-tools show them", |h, c| h.netstat(c.line)),
    program("nft", Network, "the packet filter nf_tables", |h, c| h.nft(c.line, c.files, c.now)),
    program("nstat", Script, "counters of IP, ICMP, UDP and TCP", |h, c| h.nstat(c)),
    program("pkill", Script, "ends programs by their name", |h, c| h.killall(c)),
    program("poff", Script, "ends lines of PPPoE", |h, c| h.poff(c)),
    program("pon", Script, "begins a line of PPPoE by the name of its file", |h, c| h.pon(c)),
    program("pppd", Script, "a line of PPPoE", |h, c| h.pppd(c)),
    program("pppoe-server", Script, "the other end of lines of PPPoE", |h, c| h.pppoe_server(c)),
    program("radvd", Script, "tells a link of its router of IPv6", |h, c| h.radvd(c)),
    program("rmmod", Network, "takes a module out of the kernel", |h, c| h.rmmod(c.line, c.now)),
    program("route", Network, "the routes, as net-tools show them", |h, c| h.route_tool(c.line, c.now)),
    program("ss", Script, "sockets, and what TCP knows of each", |h, c| h.ss(c)),
    program("sync", Machine, "nothing, successfully", |_, _| Output::default()),
    program("sysctl", Network, "settings of the kernel", |h, c| h.sysctl(c.line, c.files, c.now)),
    program("tc", Network, "qdiscs, classes, filters, actions", |h, c| h.tc_in_space(c.line, c.files, c.now)),
    program("tee", Machine, "writes files of /proc and /sys", |h, c| h.tee(c.line, c.files, c.now)),
    program("true", Machine, "nothing, successfully", |_, _| Output::default()),
    program("tunctl", Script, "devices for programs, as uml-utilities make them", |h, c| {
        h.tunctl(c.line, c.now)
    }),
    program("uname", Script, "the kernel's name and version", |h, c| h.uname(c.line)),
    program("vconfig", Script, "VLANs, as the package vlan has them", |h, c| h.vconfig(c.line, c.now)),
    program("wg", Network, "WireGuard devices and their peers", |h, c| h.wg_tool(c)),
];

/// The program of this name; folders where programs are may stand before it.
pub fn find(path: &str) -> Option<&'static Program> {
    let name = match path.rsplit_once('/') {
        Some(("/bin" | "/sbin" | "/usr/bin" | "/usr/sbin", name)) => name,
        _ => path,
    };
    PROGRAMS.binary_search_by(|p| p.name.cmp(name)).ok().map(|at| &PROGRAMS[at])
}

impl Program {
    /// Those that a script gives to the machine.
    pub fn of_scripts() -> impl Iterator<Item = &'static Program> {
        PROGRAMS.iter().filter(|p| p.reach != Machine)
    }
    /// Those that are tools of their own.
    pub fn tools() -> impl Iterator<Item = &'static Program> {
        PROGRAMS.iter().filter(|p| p.reach == Network)
    }
    /// Whether a name, without folders, is one of a script's for the machine.
    pub fn is_of_scripts(name: &str) -> bool {
        find(name).is_some_and(|p| p.reach != Machine && p.name == name)
    }
    pub(crate) fn run(&self, host: &mut Host, call: Call<'_>) -> Output {
        (self.run)(host, call)
    }
}

fn filter(host: &mut Host, family: Family, what: &'static str, call: Call<'_>) -> Output {
    host.packet_filter((family, what), call.line, call.files, call.now)
}

fn echo(line: &Line) -> Output {
    let words: Vec<&str> = line.words[1..].iter().map(|w| w.text.as_str()).collect();
    let (words, end) = match words.split_first() {
        Some((&"-n", rest)) => (rest.to_vec(), ""),
        _ => (words, "\n"),
    };
    Output::say(words.join(" ") + end)
}

impl Host {
    fn hostname(&self, line: &Line) -> Output {
        match line.words.len() {
            1 => Output::say(format!("{}\n", self.name)),
            _ => Output::fail("hostname: the name of a machine stays\n", 1, ""),
        }
    }

    fn netstat(&self, line: &Line) -> Output {
        match line.words.get(1).map(|w| w.text.as_str()) {
            Some(flags) if flags.starts_with('-') && flags.contains('r') => {
                Output::say(self.route_table(flags.contains('n'), 1))
            }
            _ => Output::fail("netstat: only the routes are here\n", 1, "netstat -r, netstat -rn"),
        }
    }

    /// The kernel's release, as `uname -r` has it.
    pub(crate) fn kernel_release(&self) -> &'static str {
        match self.kernel {
            Kernel::V2_6_35 => "2.6.35-22-generic",
            Kernel::V6_12 => "6.12.0",
            Kernel::V7_2 => "7.2.0",
        }
    }
    fn uname(&self, line: &Line) -> Output {
        let release = self.kernel_release();
        let parts = [
            ('s', "--kernel-name", "Linux"),
            ('n', "--nodename", self.name.as_str()),
            ('r', "--kernel-release", release),
            ('v', "--kernel-version", "#1 SMP"),
            ('m', "--machine", "x86_64"),
            ('p', "--processor", "unknown"),
            ('i', "--hardware-platform", "unknown"),
            ('o', "--operating-system", "GNU/Linux"),
        ];
        let mut wanted = String::new();
        for word in line.words[1..].iter().map(|w| w.text.as_str()) {
            let long = parts.iter().find(|p| p.1 == word).map(|p| p.0);
            let letters = word.strip_prefix('-').filter(|l| !l.starts_with('-') && !l.is_empty());
            let known = |l: &&str| l.chars().all(|c| c == 'a' || parts.iter().any(|p| p.0 == c));
            match (long, letters) {
                (Some(letter), _) => wanted.push(letter),
                (None, _) if word == "--all" => wanted.push('a'),
                (None, Some(letters)) if known(&letters) => wanted.push_str(letters),
                (None, Some(letters)) => {
                    let letter = letters.chars().find(|c| !known(&c.to_string().as_str())).unwrap_or('-');
                    let said = format!(
                        "uname: invalid option -- '{letter}'\nTry 'uname --help' for more information.\n"
                    );
                    return Output::fail(said, 1, "uname -r");
                }
                (None, None) => {
                    let said =
                        format!("uname: extra operand '{word}'\nTry 'uname --help' for more information.\n");
                    return Output::fail(said, 1, "uname -r");
                }
            }
        }
        if wanted.is_empty() {
            wanted.push('s');
        }
        // All of them, but what nobody knows.
        let all = wanted.contains('a');
        let shown = |letter: char, text: &str| wanted.contains(letter) || all && text != "unknown";
        let words: Vec<&str> = parts.iter().filter(|p| shown(p.0, p.2)).map(|p| p.2).collect();
        Output::say(words.join(" ") + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_uname() {
        let mut host = Host::new("gw", Kernel::V6_12, 1);
        let mut said = |line: &str| {
            let out = host.exec(line, Time::ZERO);
            (out.status, out.stdout + &out.stderr)
        };
        for (line, want) in [
            ("uname", "Linux\n"),
            ("uname -rm", "6.12.0 x86_64\n"),
            ("uname -ms", "Linux x86_64\n"),
            ("uname --nodename", "gw\n"),
            ("uname -a", "Linux gw 6.12.0 #1 SMP x86_64 GNU/Linux\n"),
        ] {
            assert_eq!(said(line), (0, want.to_owned()), "{line}");
        }
        assert_eq!(said("uname -mx").0, 1);
        assert!(said("uname -mx").1.starts_with("uname: invalid option -- 'x'\n"));
        assert!(said("uname x").1.starts_with("uname: extra operand 'x'\n"));
    }

    #[test]
    fn each_is_found_by_its_name() {
        let names: Vec<&str> = PROGRAMS.iter().map(|p| p.name).collect();
        assert!(names.is_sorted() && names.windows(2).all(|w| w[0] != w[1]), "{names:?}");
        for program in PROGRAMS {
            assert_eq!(find(program.name).map(|p| p.name), Some(program.name));
            assert!(!program.about.is_empty());
        }
        assert_eq!(find("/sbin/tc").map(|p| p.name), Some("tc"));
        assert!(find("/opt/tc").is_none() && find("t").is_none() && find("").is_none());
        assert!(Program::is_of_scripts("nft") && !Program::is_of_scripts("/sbin/nft"));
    }
}
