//! What cannot work, told before the run: no link, no common network, no route, nobody who listens.
//!
//! The machines stand as their setups have left them. A script that runs later may change anything, so all of this is a warning; what is
//! not known for certain (rules by mark, translated addresses, devices of a setup's own) is not told of at all.

use super::build::Built;
use super::record::is_one_of;
use crate::experiment::{App, Experiment, Place};
use penstock_host::{Goes, NetDevice};
use penstock_measure::record::{self, Record};
use penstock_model::{Diagnostic, Severity};
use penstock_sim::{Call, Intent, World};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Whom a warning concerns: an app or a flow of the experiment, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Who {
    App(usize),
    Flow(usize),
}

/// A cause, told once, and whom it concerns.
pub(super) struct Warning {
    cause: String,
    help: String,
    place: Place,
    /// Who cannot work; nobody where it is about what is written alone.
    who: Vec<Who>,
}

/// What is to be told, in the order it was found.
#[derive(Default)]
struct Told {
    order: Vec<Warning>,
    places: BTreeMap<String, usize>,
}

impl Told {
    fn tell(&mut self, place: &Place, who: Who, cause: String, help: String) {
        match self.places.get(&cause) {
            Some(&at) => self.order[at].who.push(who),
            None => {
                self.places.insert(cause.clone(), self.order.len());
                self.order.push(Warning { cause, help, place: place.clone(), who: vec![who] });
            }
        }
    }
}

/// Why packets do not come to an address.
enum Cause {
    /// Nobody can tell.
    Unknown,
    /// What is wrong, and what to do.
    Known(String, String),
}

use Cause::Unknown;

fn known<T>(what: impl Into<String>, help: impl Into<String>) -> Result<T, Cause> {
    Err(Cause::Known(what.into(), help.into()))
}

/// The network as it stands before the run.
struct Net<'a> {
    experiment: &'a Experiment,
    built: &'a Built,
    /// Hosts by their names.
    index: BTreeMap<&'a str, usize>,
    /// The link that a device of a host is an end of.
    links: BTreeMap<(usize, &'a str), usize>,
    /// Of each link the first of those that bridges make one network of.
    joined: Vec<usize>,
    /// The links that are one network with a link, by the first of them.
    together: BTreeMap<usize, Vec<usize>>,
    /// Who has an address.
    owners: BTreeMap<IpAddr, usize>,
    /// Hosts with their addresses.
    holds: BTreeSet<(usize, IpAddr)>,
}

/// More machines on a way than these: it goes in a circle.
const MAX_HOPS: usize = 64;

impl<'a> Net<'a> {
    fn new(experiment: &'a Experiment, built: &'a Built) -> Net<'a> {
        let index: BTreeMap<&str, usize> =
            experiment.hosts.iter().enumerate().map(|(i, h)| (h.name.as_str(), i)).collect();
        let mut links = BTreeMap::new();
        for (number, link) in experiment.links.iter().enumerate() {
            for end in &link.ends {
                if let Some(&host) = index.get(end.host.as_str()) {
                    links.insert((host, end.dev.as_str()), number);
                }
            }
        }
        let joined = (0..experiment.links.len()).collect();
        let (together, owners, holds) = Default::default();
        let mut net = Net { experiment, built, index, links, joined, together, owners, holds };
        net.join_by_bridges();
        for (link, &first) in net.joined.iter().enumerate() {
            net.together.entry(first).or_default().push(link);
        }
        for host in 0..experiment.hosts.len() {
            for address in net.addresses(host) {
                net.owners.entry(address).or_insert(host);
                net.holds.insert((host, address));
            }
        }
        net
    }
    /// Makes one network of the links whose ends are ports of one bridge; the bridge is an end of it, too.
    fn join_by_bridges(&mut self) {
        for host in 0..self.experiment.hosts.len() {
            let machine = self.machine(host);
            for port in machine.devices().iter().filter(|d| d.up) {
                let Some(bridge) = port.master.and_then(|m| machine.device(m)) else { continue };
                let Some(&link) = self.links.get(&(host, port.name.as_str())) else { continue };
                if bridge.class.kind != "bridge" || !bridge.up {
                    continue;
                }
                let first = *self.links.entry((host, bridge.name.as_str())).or_insert(link);
                let (a, b) = (self.joined[first], self.joined[link]);
                let (least, most) = (a.min(b), a.max(b));
                self.joined.iter_mut().filter(|l| **l == most).for_each(|l| *l = least);
            }
        }
    }
    /// The ends of the links that are one network with a link.
    fn all_ends(&self, link: usize) -> impl Iterator<Item = &'a crate::experiment::End> {
        let together = &self.together[&self.joined[link]];
        together.iter().flat_map(|&link| &self.experiment.links[link].ends)
    }
    fn machine(&self, host: usize) -> &'a penstock_host::Host {
        self.built.world.host(self.built.hosts[host])
    }
    fn host(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }
    fn name(&self, host: usize) -> &'a str {
        &self.experiment.hosts[host].name
    }
    fn addresses(&self, host: usize) -> impl Iterator<Item = IpAddr> + use<'a> {
        let devices = || self.machine(host).devices().iter().filter(|d| !d.loopback);
        let four = devices().flat_map(|d| d.addresses.iter().map(|a| IpAddr::V4(a.prefix.addr)));
        four.chain(devices().flat_map(|d| d.addresses6.iter().map(|a| IpAddr::V6(a.addr))))
    }
    /// The ends of a link, with their addresses.
    fn ends(&self, link: usize) -> String {
        let one = |end: &crate::experiment::End| {
            let host = self.host(&end.host);
            let machine = host.map(|h| self.machine(h));
            let addresses = machine.and_then(|m| m.device(m.ifindex(&end.dev)?)).map(|d| {
                let four = d.addresses.iter().map(|a| format!("{}/{}", a.prefix.addr, a.prefix.len));
                let own = |a: &&penstock_host::six::Address6| !penstock_host::six::is_link_local(a.addr);
                let six = d.addresses6.iter().filter(own).map(|a| format!("{}/{}", a.addr, a.len));
                four.chain(six).collect::<Vec<_>>()
            });
            match addresses.filter(|a| !a.is_empty()) {
                Some(addresses) => format!("{}:{} has {}", end.host, end.dev, addresses.join(" and ")),
                None => format!("{}:{} has no address", end.host, end.dev),
            }
        };
        let ends: Vec<String> = self.all_ends(link).take(4).map(one).collect();
        ends.join(", ")
    }
    /// Whether a machine's ways hang on more than a destination.
    fn is_plain(&self, host: usize, dst: IpAddr) -> bool {
        let machine = self.machine(host);
        !machine.has_rules_for(dst) && !machine.translates()
    }

    /// The machine that packets of `from` to `dst` come to.
    fn way(&self, from: usize, dst: IpAddr) -> Result<usize, Cause> {
        let mut at = from;
        for hop in 0..MAX_HOPS {
            let machine = self.machine(at);
            if !self.is_plain(at, dst) {
                return Err(Unknown);
            }
            let name = self.name(at);
            let way = machine.way_to(dst);
            match way.goes {
                Goes::Here => return Ok(at),
                _ if hop > 0 && !machine.forwards_to(dst) => {
                    let key =
                        if dst.is_ipv4() { "net.ipv4.ip_forward" } else { "net.ipv6.conf.all.forwarding" };
                    return known(
                        format!("{name} does not forward: nothing gets through it to {dst}"),
                        format!("write in [host.{name}]: setup = [\"sysctl -w {key}=1\"]"),
                    );
                }
                Goes::On => {}
                // A route that refuses is meant to.
                Goes::Elsewhere => return Err(Unknown),
                Goes::Nowhere => return self.no_route(at, dst),
            }
            let Some(device) = machine.device(way.oif).filter(|d| !d.loopback) else { return Err(Unknown) };
            let Some(&link) = self.links.get(&(at, device.name.as_str())) else {
                let declared = self.experiment.hosts[at].devices.iter().any(|d| d.name == device.name);
                if !declared {
                    return Err(Unknown);
                }
                return known(
                    format!(
                        "{name}:{} is at no link: nothing that {name} sends to {dst} gets anywhere",
                        device.name
                    ),
                    format!("add a [[link]] with ends = [\"{name}:{}\", \"OTHER:eth0\"]", device.name),
                );
            };
            if !device.up || device.carrier == Some(false) {
                return known(
                    format!(
                        "{name}:{} is down: nothing that {name} sends to {dst} gets anywhere",
                        device.name
                    ),
                    format!("ip link set {} up, in the setup of {name}", device.name),
                );
            }
            let others = self.all_ends(link).filter(|e| e.host != name).filter_map(|e| {
                let at = self.host(&e.host)?;
                let machine = self.machine(at);
                let device = machine.device(machine.ifindex(&e.dev)?)?;
                Some((at, device))
            });
            let others: Vec<_> = others.filter(|(_, device)| device.up).collect();
            // Linux answers ARP for any address of the machine, whichever device it stands on (arp_ignore 0); and a proxy for those of others.
            let holds = others.iter().find(|(at, _)| self.holds.contains(&(*at, way.next)));
            let answers = |(at, device): &&(usize, &NetDevice)| {
                self.machine(*at).answers_for_other(device.ifindex, way.next)
            };
            let next = holds.or_else(|| others.iter().find(answers)).copied();
            at = match next {
                Some((next, _)) => next,
                None if machine.neighbours().iter().any(|n| n.addr == way.next) => {
                    return Err(Unknown);
                }
                // A network namespace of a machine there may have it, by a bridge or a macvlan.
                None if self
                    .all_ends(link)
                    .filter_map(|e| self.host(&e.host))
                    .any(|h| self.machine(h).has_spaces()) =>
                {
                    return Err(Unknown);
                }
                None => {
                    let ends = self.ends(link);
                    let whose = self
                        .owners
                        .get(&way.next)
                        .map_or(String::new(), |&h| format!(" (it is {}'s, on another link)", self.name(h)));
                    return known(
                        format!(
                            "nobody on the link of {name}:{} has the address {}{whose}",
                            device.name, way.next
                        ),
                        ends,
                    );
                }
            };
        }
        Err(Unknown)
    }

    /// Why a machine has no route to an address.
    fn no_route<T>(&self, at: usize, dst: IpAddr) -> Result<T, Cause> {
        let name = self.name(at);
        let owner = self.owners.get(&dst).copied();
        // A neighbour on the same link, with an address of another network.
        let shared = owner.and_then(|owner| {
            let of = |host: usize| {
                self.links.iter().filter(move |((h, _), _)| *h == host).map(|(_, l)| self.joined[*l])
            };
            of(at).find(|link| of(owner).any(|other| other == *link))
        });
        if let Some(link) = shared {
            let help = format!("{}: give both addresses of one network, or a route", self.ends(link));
            return known(
                format!("{name} has no route to {dst}: the ends of their link share no network"),
                help,
            );
        }
        let help = match self.experiment.hosts[at].via {
            _ if dst.is_ipv6() && self.experiment.hosts[at].via6.is_none() => {
                format!("write in [host.{name}]: via = \"ADDRESS OF ITS ROUTER\"; of both families a list")
            }
            None => format!("write in [host.{name}]: via = \"ADDRESS OF ITS ROUTER\""),
            Some(_) => format!("ip route add {dst} via ADDRESS, in the setup of {name}"),
        };
        known(format!("{name} has no route to {dst}"), help)
    }

    /// Whether packets get there, and answers back.
    fn there_and_back(&self, from: usize, dst: IpAddr, answers: bool) -> Result<(), Cause> {
        let broadcast = matches!(dst, IpAddr::V4(dst) if dst.is_broadcast());
        // Where routers tell of themselves, who has which address and route is seen in the run.
        let learnt = dst.is_ipv6() && super::build::has_radvd(self.experiment);
        if dst.is_loopback() || dst.is_multicast() || broadcast || learnt {
            return Err(Unknown);
        }
        let there = self.way(from, dst)?;
        if !answers || there == from {
            return Ok(());
        }
        let source = self.machine(from).way_to(dst).src.ok_or(Unknown)?;
        self.way(there, source).map(|_| ())
    }
}

/// What cannot work.
pub(super) fn warnings(experiment: &Experiment, built: &Built) -> Vec<Warning> {
    let net = Net::new(experiment, built);
    let mut told = Told::default();
    let intents: Vec<Option<Intent>> = experiment.apps.iter().map(|app| intent(app, built)).collect();
    for (number, (app, intent)) in experiment.apps.iter().zip(&intents).enumerate() {
        let (who, place) = (Who::App(number), &app.run_place);
        let Some(call) = intent.as_ref().and_then(|i| i.calls.as_ref()).filter(|_| !app.may_fail) else {
            continue;
        };
        let Some(from) = net.host(&app.on) else { continue };
        let Some(dst) = call.addr else {
            let help = "write an address, or the name of a [host]".to_owned();
            told.tell(place, who, format!("nobody is called \"{}\"", call.peer), help);
            continue;
        };
        match net.there_and_back(from, dst, true) {
            Err(Cause::Known(cause, help)) => told.tell(place, who, cause, help),
            Err(Unknown) => {}
            Ok(()) => {
                if let Some((cause, help)) = nobody_listens(&net, app, call, dst, &intents) {
                    told.tell(place, who, cause, help);
                }
            }
        }
    }
    for (number, flow) in experiment.flows.iter().enumerate() {
        let (Some(from), Some(to)) = (net.host(&flow.from), net.host(&flow.to)) else { continue };
        let wanted = |dst: &IpAddr| {
            !flow.ipv6 || matches!(dst, IpAddr::V6(a) if !penstock_host::six::is_link_local(*a))
        };
        let Some(dst) = net.addresses(to).find(wanted) else { continue };
        if let Err(Cause::Known(cause, help)) = net.there_and_back(from, dst, flow.tcp.is_some()) {
            told.tell(&flow.place, Who::Flow(number), cause, help);
        }
    }
    told.order.extend(nothing_is_sent(experiment));
    told.order.extend(rates_in_bytes(experiment));
    told.order
}

/// An experiment without any traffic: its summary would be empty, and nothing would say why. Who expects something of the setups alone knows it.
fn nothing_is_sent(experiment: &Experiment) -> Option<Warning> {
    let idle = experiment.apps.is_empty() && experiment.flows.is_empty() && experiment.expects.is_empty();
    let host = experiment.hosts.iter().find(|host| !host.switch)?;
    let place = host.place.clone();
    let to = experiment.hosts.iter().rfind(|other| !other.switch && other.name != host.name);
    let to = to.map_or("ADDRESS", |other| other.name.as_str());
    idle.then(|| Warning {
        cause: "nothing is sent in this run: there is no [[app]], no [[flow]] and no [[test]]".to_owned(),
        help: format!("add e.g. [[app]] with on = \"{}\" and run = \"ping -c 3 {to}\"", host.name),
        place,
        who: Vec::new(),
    })
}

/// The first rate of the file in tc's `bps`, which are bytes: most who write `10Mbps` mean bits.
fn rates_in_bytes(experiment: &Experiment) -> Option<Warning> {
    let text = &experiment.sources[0].text;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let begin = at;
        at += line.len();
        let Some((key, value)) = line.split('#').next().and_then(|l| l.split_once('=')) else { continue };
        let value = value.trim();
        let word = value.trim_matches('"');
        if key.trim() != "rate" || !word.to_ascii_lowercase().ends_with("bps") {
            continue;
        }
        let rate = penstock_model::Rate::parse(word).ok()?;
        let from = begin + line.find(value)?;
        return Some(Warning {
            cause: format!(
                "{word} is {} Mbit/s: tc's bps are bytes per second",
                rate.bit_per_s() as f64 / 1e6
            ),
            help: format!("write {}it where bits are meant", word[..word.len() - 2].to_ascii_lowercase()),
            place: Place { source: 0, span: from..from + value.len() },
            who: Vec::new(),
        });
    }
    None
}

impl Warning {
    fn message(&self, experiment: &Experiment) -> String {
        let name = match self.who.first() {
            Some(&Who::App(i)) => &experiment.apps[i].name,
            Some(&Who::Flow(i)) => &experiment.flows[i].name,
            None => return self.cause.clone(),
        };
        let others = match self.who.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{name}{others} cannot work: {}", self.cause)
    }
    /// As it is told before the run.
    pub(super) fn told(&self, experiment: &Experiment) -> Diagnostic {
        let message = format!("warning: {}", self.message(experiment));
        let fault =
            experiment.sources[self.place.source].fault(self.place.span.clone(), message, self.help.as_str());
        Diagnostic { severity: Severity::Warning, ..fault }
    }
    /// As the record of the run has it: whether it came so.
    pub(super) fn recorded(&self, experiment: &Experiment, record: &Record) -> record::Warning {
        let failed = |who: &Who| match *who {
            // A sender of datagrams ends well whether anybody hears it or not.
            Who::App(i) => {
                let app = &record.apps[i];
                let mut own = record.flows.iter().filter(|f| f.app.as_deref() == Some(&app.name)).peekable();
                app.exit != Some(0) || own.peek().is_some() && own.all(|f| f.received_packets == 0)
            }
            Who::Flow(i) => {
                let name = &experiment.flows[i].name;
                let own = |f: &&record::Flow| f.app.is_none() && f.name == *name || is_one_of(f, name);
                record.flows.iter().filter(own).any(|f| f.received_packets == 0)
            }
        };
        let fault = self.told(experiment);
        record::Warning {
            file: fault.file,
            line: fault.line,
            message: self.message(experiment),
            help: self.help.clone(),
            came_true: self.who.iter().any(failed),
        }
    }
}

/// What a program is going to do; `None` for a script.
fn intent(app: &App, built: &Built) -> Option<Intent> {
    let is_program = app.script.is_none() && World::is_program(&app.run);
    is_program.then(|| built.world.intent(built.id(&app.on), &app.run).unwrap_or_default())
}

/// Why nobody answers at the port that is called: no program listens at it, or none does yet.
fn nobody_listens(
    net: &Net<'_>,
    app: &App,
    call: &Call,
    dst: IpAddr,
    intents: &[Option<Intent>],
) -> Option<(String, String)> {
    let (proto, port) = call.port?;
    let to = &net.experiment.hosts[*net.owners.get(&dst)?];
    let there = || net.experiment.apps.iter().zip(intents).filter(|(other, _)| other.on == to.name);
    // What a script listens at nobody can tell, nor what a setup has left running.
    if to.cisco.is_some()
        || there().any(|(_, i)| i.is_none())
        || net.built.with_jobs.contains(&net.built.id(&to.name))
    {
        return None;
    }
    let listens = |i: &Option<Intent>| i.as_ref().is_some_and(|i| i.listens == Some((proto, port)));
    let mut waiting = there().filter(|(_, i)| listens(i)).map(|(other, _)| other);
    let Some(first) = waiting.next() else {
        let program = app.run.split_whitespace().next().unwrap_or_default();
        let server = match (proto, port) {
            ("udp", 5001) => format!("{program} -s -u"),
            ("udp", _) => format!("{program} -s -u -p {port}"),
            (_, 5001 | 5201) => format!("{program} -s"),
            _ => format!("{program} -s -p {port}"),
        };
        let help = format!("add an [[app]] with on = \"{}\" and run = \"{server}\"", to.name);
        return Some((format!("nobody on {} listens at {proto} port {port}", to.name), help));
    };
    let later = |other: &App| other.after.is_none() && other.at > app.at;
    (app.after.is_none() && later(first) && waiting.all(later)).then(|| {
        let (host, from) = (&to.name, first.at);
        let cause = format!("nobody on {host} listens at {proto} port {port} before {from}");
        (cause, "let the server start first, or the client later (at = \"1s\")".to_owned())
    })
}
