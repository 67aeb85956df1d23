//! What a program is, and what it works with.

use crate::intent::{Family, Intent};
use crate::net::Net;
use crate::results::AppResult;
use crate::spec::FlowId;
use crate::wake::Wake;
use penstock_model::Time;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A running program.
pub(crate) trait Program: Send {
    /// It begins.
    fn start(&mut self, cx: &mut Cx<'_>);
    /// Something it waits for has happened.
    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>);
    /// Adds what can only be told at the end of the run (of a program that may still be running).
    fn report(&self, result: &mut AppResult, net: &Net) {
        let _ = (result, net);
    }
    /// What it is going to do.
    fn intent(&self) -> Intent {
        Intent::default()
    }
    /// Whether it ends by itself, as far as its options tell.
    fn ends(&self) -> bool {
        true
    }
    /// Whether what it does hangs on all machines: it asks for the names of whoever answers, or begins flows with segments of its own.
    fn needs_all(&self) -> bool {
        false
    }
    /// The source of a flow, where it is one.
    fn source(&mut self) -> Option<&mut dyn Source> {
        None
    }
    /// The most payload that a datagram of its may have, bytes.
    fn largest(&self) -> u32 {
        0
    }
}

/// The source of a flow: what is to be known of it where its receiver is on another core.
pub(crate) trait Source {
    /// The flow's number, its receiver, and whether that listens already.
    fn about(&self) -> (u32, u32, bool);
    /// Whether it sends over UDP, and as much as it can.
    fn kind(&self) -> (bool, bool);
    /// Its receiving side.
    fn sink(&self) -> Sink;
    /// Where the receiver is to be found, as far as is known before it begins.
    fn address(&self, net: &Net) -> Option<IpAddr>;
    /// Somebody else opens the receiving side: it is found there.
    fn finds(&mut self, remote: (IpAddr, u16));
    /// It has not begun yet after all.
    fn forgets(&mut self);
}

/// The receiving side of a flow.
pub(crate) struct Sink {
    pub(crate) program: Box<dyn Program>,
    /// The port it asks for first.
    pub(crate) port: u16,
    /// It takes that one or none.
    pub(crate) fixed: bool,
}

/// What a program works with.
pub(crate) struct Cx<'a> {
    pub(crate) net: &'a mut Net,
    pub(crate) app: u32,
    pub(crate) host: u32,
    pub(crate) result: &'a mut AppResult,
}

impl Cx<'_> {
    pub(crate) fn now(&self) -> Time {
        self.net.now()
    }
    pub(crate) fn print(&mut self, text: &str) {
        self.result.output.push_str(text);
    }
    /// Prints the last that it says, on standard error.
    pub(crate) fn complain(&mut self, text: &str) {
        self.print(text);
        self.result.complaint = text.len();
    }
    /// Ends the program.
    pub(crate) fn exit(&mut self, status: i32) {
        if self.result.ended.is_none() {
            self.result.ended = Some(self.net.now());
            self.result.exit = Some(status);
        }
    }
    /// Adds a flow of this program's.
    pub(crate) fn new_flow(&mut self, name: String, from: u32, to: u32, proto: &'static str) -> u32 {
        let flow = self.net.meter.new_flow(name, from, to, proto);
        self.result.flows.push(FlowId(flow));
        flow
    }
    /// The name a flow of this program gets: host and program, and a number from the second on.
    pub(crate) fn flow_name(&self) -> String {
        let base = format!("{} {}", self.net.machines[self.host as usize].name, self.result.program);
        match self.result.flows.len() {
            0 => base,
            n => format!("{base} {}", n + 1),
        }
    }
    /// The address of a name: as numbers, of `/etc/hosts`, or a host's own.
    pub(crate) fn resolve(&self, name: &str, family: Family) -> Option<IpAddr> {
        resolve(name, family, self.net)
    }
}

pub(crate) fn resolve(name: &str, family: Family, net: &Net) -> Option<IpAddr> {
    if let Ok(addr) = name.parse::<IpAddr>() {
        return Some(addr).filter(|&addr| family.has(addr));
    }
    if let Some(&addr) = net.names.addresses.get(name) {
        return Some(addr).filter(|&addr| family.has(addr));
    }
    if name == "localhost" {
        return Some(match family {
            Family::Six => Ipv6Addr::LOCALHOST.into(),
            Family::Any | Family::Four => Ipv4Addr::LOCALHOST.into(),
        });
    }
    first_address(net, *net.names.hosts.get(name)?, family)
}

/// The name of an address, as `/etc/hosts` has it: a host's first addresses are its own.
pub(crate) fn name_of_address(addr: IpAddr, net: &Net) -> Option<String> {
    if addr == Ipv4Addr::LOCALHOST || addr == Ipv6Addr::LOCALHOST {
        return Some("localhost".to_owned());
    }
    if let Some((name, _)) = net.names.addresses.iter().find(|(_, named)| **named == addr) {
        return Some(name.clone());
    }
    let family = if addr.is_ipv4() { Family::Four } else { Family::Six };
    let mut hosts: Vec<(&String, &u32)> = net.names.hosts.iter().collect();
    hosts.sort_by_key(|(_, host)| **host);
    hosts
        .into_iter()
        .find(|(_, host)| first_address(net, **host, family) == Some(addr))
        .map(|(n, _)| n.clone())
}

/// The first address of a host that is not `lo`'s.
pub(crate) fn first_address(net: &Net, host: u32, family: Family) -> Option<IpAddr> {
    let devices = || net.machines[host as usize].host.devices().iter().filter(|d| !d.loopback);
    let four = || devices().find_map(|d| d.primary_address()).map(IpAddr::V4);
    let global = |addr: &&Ipv6Addr| !penstock_host::six::is_link_local(**addr);
    // The newest of a device stands first.
    let six = || {
        devices()
            .find_map(|d| d.addresses6.iter().rev().map(|a| &a.addr).find(global).copied().map(IpAddr::V6))
    };
    match family {
        Family::Any => four().or_else(six),
        Family::Four => four(),
        Family::Six => six(),
    }
}

/// Why a program did not start: what it printed, and its exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    pub(crate) status: i32,
}

impl Failure {
    pub(crate) fn new(text: impl Into<String>, status: i32) -> Failure {
        Failure { text: text.into(), status }
    }
}
