//! `ip`: its command lines to data, its refusals and its listings word for word.
//!
//! Follows: iproute2 6.1.0 `ip/ip.c`, `ipaddress.c`, `iplink.c`, `iproute.c`, `iprule.c`, `ipneigh.c`, `ipnetns.c`, `ipnexthop.c`, `iptunnel.c`, `ipvrf.c`; 2.6.35 for the
//! old profile's listings.
//! Differs: the objects address, addrlabel, link, maddress, route, rule, neigh, netconf, netns, nexthop, ntable, tcp_metrics, token, tunnel, tuntap, vrf; the others are refused by name;
//! no colours; the texts of usage are our own, except for their first lines.

mod addr;
mod addrlabel;
mod bridge;
mod iptoken;
mod link;
mod maddr;
mod neigh;
mod netconf;
mod nexthop;
mod ntable;
mod route;
mod rt_names;
mod rule;
mod show;
mod tcpmetrics;
mod tunnel;
mod tuntap;
mod usage;
mod vrf;
mod vxlan;
pub(crate) mod words;

pub use addr::{AUTOJOIN, AddrSpec, HOME, MANAGE_TEMPORARY, NODAD};
pub use addrlabel::{AddrLabel, AddrLabelRequest, LabelView, labels};
pub use bridge::{Bridge, FdbChange, FdbFilter, VlanChange, bridge};
pub use iptoken::{TokenSet, tokens};
pub use link::{LinkData, LinkRequest, LinkVerb};
pub use maddr::{GroupView, groups};
pub use neigh::{NeighFilter, NeighSpec, NeighVerb, NetnsCommand, STATES};
pub use netconf::{NetconfView, netconf};
pub use nexthop::{NexthopFilter, NexthopSpec, NexthopVerb};
pub use ntable::{NTABLE_PARMS, NtableChange, NtableConfig, NtableFilter, NtableView, ntables};
pub use route::{NextHopSpec, RouteFilter, RouteQuestion, RouteSpec, RouteVerb};
pub use rt_names::{METRICS, TYPES, control_of, protocol_name, scope_name, table_name};
pub use rule::{NAT, NOP, RuleSpec, RuleVerb};
pub use show::{
    AddressView, Details, FdbView, LinkRef, LinkView, NeighView, NetnsRef, NextHopView, NexthopView,
    PortView, RouteView, RuleView, Said, SaidValue, VlanView, fdbs, links, neighbours, netns, netns_ids,
    nexthops, ports, routes, rules, tunnels, vlans, vrfs,
};
pub use tcpmetrics::{TcpMetricsRequest, TcpMetricsVerb, tcp_metrics};
pub use tunnel::{TunnelRequest, TunnelSet, TunnelVerb, TunnelView, TunnelWords};
pub use tuntap::{TunRequest, TunSet, tuntaps};
pub use vxlan::{Df, Ttl, VxlanSet};
pub use words::Family;

use crate::token::Word;
use penstock_model::Kernel;
use std::net::{IpAddr, Ipv4Addr};
use words::{Parsed, Words, matches};

/// How a listing is printed, and of what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Form {
    /// `-s`, how often.
    pub stats: u8,
    /// `-d`.
    pub details: bool,
    /// `-br`.
    pub brief: bool,
    /// `-o`.
    pub oneline: bool,
    /// `-j`.
    pub json: bool,
    /// `-p`.
    pub pretty: bool,
    /// `-4`, `-6`, `-0`.
    pub family: Family,
}

impl Form {
    fn out(self) -> crate::show::Form {
        crate::show::Form {
            stats: self.stats > 0,
            details: self.details,
            json: self.json,
            pretty: self.pretty,
            oneline: self.oneline,
            brief: self.brief,
            ..crate::show::Form::default()
        }
    }
}

/// An IPv4 address and a prefix length, host bits kept.
pub type Prefix = (Ipv4Addr, u8);

/// An address of either family and a prefix length, host bits kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Net {
    /// Address.
    pub addr: IpAddr,
    /// Length in bits.
    pub len: u8,
}

impl Net {
    /// The address as a number, left in 128 bits.
    fn bits(addr: IpAddr) -> u128 {
        match addr {
            IpAddr::V4(a) => u128::from(u32::from(a)) << 96,
            IpAddr::V6(a) => u128::from(a),
        }
    }
    /// Whether `other` begins with the same bits, of the same family.
    pub fn contains(&self, other: IpAddr) -> bool {
        let mask = u128::MAX.checked_shl(128 - u32::from(self.len)).unwrap_or(0);
        self.addr.is_ipv4() == other.is_ipv4() && (Net::bits(self.addr) ^ Net::bits(other)) & mask == 0
    }
}

/// `brd`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broadcast {
    /// `+`: the network's last address.
    Last,
    /// `-`: the network's first address.
    First,
    /// Given.
    Addr(Ipv4Addr),
}

/// Which devices, and which of their addresses, are shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkFilter {
    /// `ip addr` rather than `ip link`.
    pub addresses: bool,
    /// Which addresses.
    pub family: Family,
    /// `dev`.
    pub dev: Option<String>,
    /// `up`.
    pub up: bool,
    /// `group`.
    pub group: Option<u32>,
    /// `master`.
    pub master: Option<String>,
    /// The master was named by `vrf`, and must be one.
    pub master_is_vrf: bool,
    /// `nomaster`.
    pub nomaster: bool,
    /// `type`.
    pub kind: Option<String>,
    /// `to`.
    pub to: Option<Net>,
    /// `scope`.
    pub scope: Option<u8>,
    /// `label`.
    pub label: Option<String>,
    /// `IFA_F_*` and which of them count.
    pub flags: (u32, u32),
}

/// One command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// `ip addr add|replace|change`.
    AddrAdd {
        /// Address.
        spec: AddrSpec,
        /// `replace`, `change`: being there already is not a fault.
        replace: bool,
    },
    /// `ip addr del`.
    AddrDel(AddrSpec),
    /// `ip addr flush`.
    AddrFlush(LinkFilter),
    /// `ip addr show` and `ip link show`.
    Show(LinkFilter, Form),
    /// `ip link add|set|del`.
    Link(Box<LinkRequest>),
    /// `ip link property`.
    AltNames {
        /// Device.
        dev: String,
        /// `add`, else `del`.
        add: bool,
        /// `altname`s.
        names: Vec<String>,
    },
    /// `ip route add|append|change|replace|del`.
    Route(RouteVerb, Box<RouteSpec>),
    /// `ip route show`.
    RouteShow(RouteFilter, Form),
    /// `ip route get`.
    RouteGet(Box<RouteQuestion>, Form),
    /// `ip route flush`.
    RouteFlush(RouteFilter, Form),
    /// `ip nexthop add|replace|del`.
    Nexthop(NexthopVerb, Box<NexthopSpec>),
    /// `ip nexthop show`.
    NexthopShow(Box<NexthopFilter>, Form),
    /// `ip nexthop get id ID`.
    NexthopGet(u32, Form),
    /// `ip nexthop flush`.
    NexthopFlush(Box<NexthopFilter>),
    /// `ip rule`.
    Rule(RuleVerb, Box<RuleSpec>, Form),
    /// `ip neigh show`.
    NeighShow(NeighFilter, Form),
    /// `ip neigh add|replace|change|del|get`.
    Neigh(NeighVerb, NeighSpec),
    /// `ip neigh flush`.
    NeighFlush(NeighFilter, Form),
    /// `ip tunnel add|change|delete`.
    Tunnel(Box<TunnelRequest>),
    /// `ip tunnel show`.
    TunnelShow(Option<String>, Form),
    /// `ip tuntap add|del`.
    Tun(Box<TunRequest>),
    /// `ip tuntap show`.
    TunShow(Form),
    /// `ip token set`.
    Token(TokenSet),
    /// `ip token list`, of one device or of all.
    TokenShow(Option<String>, Form),
    /// `ip tcp_metrics`.
    TcpMetrics(Box<TcpMetricsRequest>, Form),
    /// `ip maddr show`, of one device or of all.
    MaddrShow(Option<String>, Form),
    /// `ip maddr add|del`.
    Maddr {
        /// `add`, else `del`.
        add: bool,
        /// Hardware address.
        mac: [u8; 6],
        /// `dev`.
        dev: String,
    },
    /// `ip addrlabel`.
    AddrLabel(AddrLabelRequest, Form),
    /// `ip netconf show`, of one device or of all.
    NetconfShow(Option<String>, Form),
    /// `ip ntable show`.
    NtableShow(NtableFilter, Form),
    /// `ip ntable change`.
    NtableChange(Box<NtableChange>),
    /// `ip vrf show [NAME]`.
    VrfShow(Option<String>, Form),
    /// `ip vrf exec NAME PROGRAM …`: the name, and which word is the program's name.
    VrfExec(String, usize),
    /// `ip vrf pids NAME`.
    VrfPids(String),
    /// `ip netns`.
    Netns(NetnsCommand, Form),
    /// `-b FILE`, with `-force`.
    Batch(String, bool),
    /// For standard output.
    Say(String),
}

/// A refused line: what goes to standard error, and the exit status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Standard error.
    pub stderr: String,
    /// Exit status: 1, 2 (the kernel), or 255.
    pub exit: i32,
    /// Place of the wrong word among the command's words; 0 for the command as a whole.
    pub word: usize,
    /// Our advice; may be empty.
    pub help: String,
}

/// The program's refusal of a device that is not there.
pub fn no_device(name: &str) -> Failure {
    let help = "ip link shows the devices there are".to_owned();
    Failure { stderr: format!("Cannot find device \"{name}\"\n"), exit: 1, word: 0, help }
}

/// What is printed when the kernel refuses.
pub fn refused(error: &penstock_model::KernelError) -> Failure {
    Failure { stderr: format!("{error}\n"), exit: 2, word: 0, help: String::new() }
}

/// The namespace that `-n NAME` in front of the object names: it is entered before anything else is read.
pub fn netns_option(words: &[Word]) -> Option<&str> {
    let mut found = None;
    let mut rest = words.iter().skip(1).map(|w| w.text.as_str());
    while let Some(word) = rest.next() {
        let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { break };
        if option == "n" || option.len() > 1 && "netns".starts_with(option) {
            found = Some(rest.next().unwrap_or("(null)"));
        } else if ["f", "b", "rc", "l"].contains(&option)
            || option.len() > 1
                && ["family", "batch", "rcvbuf", "loops"].iter().any(|o| o.starts_with(option))
        {
            rest.next();
        }
    }
    found
}

/// Of `ip netns exec NAME PROGRAM …`: the namespace, and which word is the program's name. `None` of all other commands.
pub fn netns_exec(words: &[String]) -> Option<(String, usize)> {
    if !words.iter().any(|w| w.starts_with('e'))
        || words.first().is_none_or(|w| w.rsplit('/').next() != Some("ip"))
    {
        return None;
    }
    match parse(&crate::token::Line::of_words(words).words, Kernel::default()) {
        Ok(Command::Netns(NetnsCommand::Exec(Some(name), at), _)) if at < words.len() => Some((name, at)),
        _ => None,
    }
}

/// Reads the words of a line, `ip` first.
///
/// # Errors
/// What ip says of the line.
pub fn parse(words: &[Word], kernel: Kernel) -> Result<Command, Failure> {
    let mut w = Words { words, at: 1, kernel };
    let mut form = Form::default();
    let (mut all, mut force, mut batch) = (false, false, None);
    while let Some(option) = w.peek().filter(|t| t.starts_with('-') && t.len() > 1).map(str::to_owned) {
        w.at += 1;
        let o = option.strip_prefix("--").map_or(option.clone(), |rest| format!("-{rest}"));
        let is = |full: &str| matches(&o, full);
        if is("-loops") {
            w.value()?;
        } else if is("-family") {
            let family = w.value()?;
            form.family = match family.as_str() {
                "help" => return w.usage(usage::IP),
                "inet" => Family::Inet,
                "inet6" => Family::Inet6,
                "link" => Family::Link,
                "mpls" | "bridge" => Family::Other,
                _ => return w.invalid(&family, "invalid protocol family\n"),
            };
        } else if o == "-4" {
            form.family = Family::Inet;
        } else if o == "-6" {
            form.family = Family::Inet6;
        } else if o == "-0" {
            form.family = Family::Link;
        } else if o == "-M" || o == "-B" {
            form.family = Family::Other;
        } else if is("-human") || is("-human-readable") || is("-iec") {
        } else if is("-stats") || is("-statistics") {
            form.stats += 1;
        } else if is("-details") {
            form.details = true;
        } else if is("-resolve") {
        } else if is("-oneline") {
            form.oneline = true;
        } else if is("-timestamp") || is("-tshort") {
        } else if is("-Version") {
            let version = match kernel {
                Kernel::V2_6_35 => "ip utility, iproute2-ss100804\n",
                Kernel::V6_12 => "ip utility, iproute2-6.1.0, libbpf 1.1.2\n",
                Kernel::V7_2 => "ip utility, iproute2-7.3.0, libbpf 1.7.0\n",
            };
            return Ok(Command::Say(version.to_owned()));
        } else if is("-force") {
            force = true;
        } else if is("-batch") {
            batch = Some(w.value()?);
        } else if is("-brief") {
            form.brief = true;
        } else if is("-json") {
            form.json = true;
        } else if is("-pretty") {
            form.pretty = true;
        } else if is("-rcvbuf") {
            w.value()?;
        } else if o.starts_with("-c") && (is("-color") || o.starts_with("-color=") || o.starts_with("-c=")) {
        } else if is("-help") {
            return w.usage(usage::IP);
        } else if is("-netns") {
            w.next();
        } else if is("-Numeric") || is("-echo") {
        } else if is("-all") {
            all = true;
        } else {
            return w.fail(
                255,
                format!("Option \"{option}\" is unknown, try \"ip -help\"."),
                "-s -d -j -o -4 -6",
            );
        }
    }
    if let Some(file) = batch {
        return Ok(Command::Batch(file, force));
    }
    let Some(object) = w.next() else { return w.usage(usage::IP) };
    let is = |full: &str| matches(&object, full);
    if is("address") {
        w.address(form)
    } else if is("route") {
        w.route(form)
    } else if is("rule") {
        w.rule(form)
    } else if is("neighbor") || is("neighbour") {
        w.neigh(form)
    } else if is("link") {
        w.link(form)
    } else if is("tunnel") || is("tunl") {
        w.tunnel(form)
    } else if is("tuntap") || is("tap") {
        w.tuntap(form)
    } else if is("addrlabel") {
        w.addrlabel(form)
    } else if is("maddress") {
        w.maddr(form)
    } else if is("ntable") || is("ntbl") {
        w.ntable(form)
    } else if is("token") && kernel != Kernel::V2_6_35 {
        w.token(form)
    } else if is("netns") {
        w.netns(all, form)
    } else if is("netconf") && kernel != Kernel::V2_6_35 {
        w.netconf(form)
    } else if is("tcpmetrics") || is("tcp_metrics") {
        w.tcp_metrics(form)
    } else if is("vrf") && kernel != Kernel::V2_6_35 {
        w.vrf(form)
    } else if is("nexthop") && kernel != Kernel::V2_6_35 {
        w.nexthop(form)
    } else if is("help") {
        w.usage(usage::IP)
    } else {
        let exit = if kernel == Kernel::V2_6_35 { 255 } else { 1 };
        if let Some((name, instead)) = ELSEWHERE.iter().find(|e| is(e.0)) {
            return w.fail(exit, format!("ip {name}: not simulated"), instead);
        }
        let help = "address, addrlabel, link, maddress, neigh, netconf, netns, nexthop, ntable, route, rule, tcp_metrics, token, tunnel, tuntap, vrf";
        w.fail(exit, format!("Object \"{object}\" is unknown, try \"ip help\"."), help)
    }
}

/// Objects of iproute2 that are not here, with what to do instead.
pub const ELSEWHERE: [(&str, &str); 12] = [
    ("monitor", "ip addr, ip route and ip neigh show what there is"),
    ("xfrm", "IPsec is not simulated: a tunnel (ip link add … type ipip) has an overhead too"),
    ("mroute", "no packet here goes to a group: leave it out"),
    ("mrule", "no packet here goes to a group: leave it out"),
    ("sr", "segment routing is not simulated: write routes on each router"),
    ("mptcp", "there is no MPTCP here: leave it out"),
    ("ioam", "no packet here has extension headers: leave it out"),
    ("stats", "ip -s link shows what is counted"),
    ("l2tp", "of tunnels ipip, sit, gre, gretap and vxlan carry packets"),
    ("fou", "of tunnels ipip, sit, gre, gretap and vxlan carry packets"),
    ("ila", "of tunnels ipip, sit, gre, gretap and vxlan carry packets"),
    ("macsec", "of tunnels ipip, sit, gre, gretap and vxlan carry packets"),
];

impl Words<'_> {
    fn link(&mut self, form: Form) -> Parsed<Command> {
        let filter = LinkFilter::default();
        let Some(verb) = self.next() else { return Ok(Command::Show(filter, form)) };
        let is = |full: &str| matches(&verb, full);
        if is("add") {
            self.link_modify(LinkVerb::Add)
        } else if is("set") || is("change") {
            self.link_modify(LinkVerb::Set)
        } else if is("replace") {
            self.link_modify(LinkVerb::Replace)
        } else if is("delete") {
            self.link_modify(LinkVerb::Del)
        } else if is("show") || is("lst") || is("list") {
            Ok(Command::Show(self.link_filter(filter)?, form))
        } else if is("xstats") || is("afstats") {
            self.fail(1, format!("ip link {verb}: not simulated"), "ip -s link shows what is counted")
        } else if is("property") {
            self.link_property()
        } else if is("help") {
            self.usage(usage::LINK)
        } else {
            self.unknown_command(&verb, "link")
        }
    }
}

#[cfg(test)]
mod tests;
