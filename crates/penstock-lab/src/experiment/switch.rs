//! `[switch.NAME]`: a switch with a port for each end that is plugged into it.
//!
//! It is a machine whose devices are the ports of a bridge: learning, forgetting and flooding are those of Linux. Each port is a
//! link of its own, in both directions at once, with a queue of its own at the switch.

use super::Builder;
use super::forms;
use super::host::Draft;
use super::link;
use super::read::{self, Faults, Table};
use super::source::Place;
use super::spec::{Device, End, Link, Script};
use penstock_model::Span;
use toml::de::DeValue;

/// The bridge within.
const BRIDGE: &str = "br0";
/// Packets that a port holds where nothing is said.
const LIMIT: u64 = 100;

/// A switch as a file has it.
pub(super) struct Switch {
    name: String,
    place: Place,
    /// Words of tc for each port's queue.
    queue: String,
    ageing: Option<Span>,
    /// What is to be done when it is set up.
    setup: Vec<Script>,
}

impl Builder<'_> {
    pub(super) fn read_switches(&mut self, root: &mut Table<'_>, faults: &mut Faults<'_>) {
        let Some(value) = root.take("switch") else { return };
        let Some(mut switches) = Table::of(value, "switch", &forms::SWITCHES, faults) else { return };
        for (name, key, value) in switches.take_all(|_| true) {
            let Some(table) = Table::of(value, format!("[switch.{name}]"), &forms::SWITCH, faults) else {
                continue;
            };
            if self.hosts.iter().any(|h| h.host.name == name) {
                let message = format!("there is a host \"{name}\" already");
                faults.add(key, message, "give the switch another name");
                continue;
            }
            self.read_switch(&name, faults.place(key), table, faults);
        }
    }

    fn read_switch(&mut self, name: &str, place: Place, mut table: Table<'_>, faults: &mut Faults<'_>) {
        let mut draft = Draft::default();
        draft.host.name = name.to_owned();
        draft.host.place = place.clone();
        draft.host.switch = true;
        let rate = table.take("rate").and_then(|v| read::rate("rate", v, faults));
        let delay = table.take("delay").and_then(|v| read::time("delay", v, faults)).unwrap_or_default();
        let loss = table.take("loss").and_then(|v| read::chance("loss", v, faults)).unwrap_or_default();
        if let Some(value) = table.take("ports") {
            for (value, n) in read::list(value).into_iter().zip(1..) {
                let Some(end) = link::end(self, value, faults) else { continue };
                let port = format!("p{n}");
                let own = End {
                    host: name.to_owned(),
                    dev: port.clone(),
                    place: end.place.clone(),
                    // What the switch sends there goes at the port's rate too.
                    rate: end.rate,
                    delay: end.delay,
                    loss_ppb: end.loss_ppb,
                    changes: end.changes.clone(),
                    ..End::default()
                };
                let device = Device { name: port, place: end.place.clone(), ..Device::default() };
                draft.host.devices.push(device);
                let place = end.place.clone();
                let ends = vec![own, end];
                self.experiment.links.push(Link {
                    place,
                    ends,
                    rate,
                    delay,
                    loss_ppb: loss,
                    ..Link::default()
                });
            }
        }
        let limit = table.take("limit");
        let words = table.take("qdisc").and_then(|v| Some((v.span(), read::string("qdisc", v, faults)?)));
        let queue = match (limit, words) {
            (Some(value), Some(_)) => {
                faults.add(value.span(), "a port has either \"limit\" or \"qdisc\"", "leave one out");
                String::new()
            }
            (None, Some((_, words))) => words,
            (Some(value), None) => match value.get_ref() {
                DeValue::Integer(_) | DeValue::Float(_) => {
                    let packets = read::integer("limit", value, 1..1_000_001, faults).unwrap_or(LIMIT);
                    format!("pfifo limit {packets}")
                }
                _ => format!("bfifo limit {}", read::size("limit", value, faults).unwrap_or_default()),
            },
            (None, None) => format!("pfifo limit {LIMIT}"),
        };
        let ageing = table.take("ageing").and_then(|v| read::time("ageing", v, faults));
        let mut setup = Vec::new();
        if let Some(value) = table.take("setup") {
            for line in read::list(value) {
                let Some(text) = read::string("setup", line, faults) else { continue };
                setup.extend(self.script(&text, "setup", line.span(), faults));
            }
        }
        table.finish(faults);
        self.hosts.push(draft);
        self.switches.push(Switch { name: name.to_owned(), place, queue, ageing, setup });
    }

    /// The ports that links name, and the commands that make a bridge of them all.
    pub(super) fn finish_switches(&mut self) {
        for switch in std::mem::take(&mut self.switches) {
            let Some(at) = self.hosts.iter().position(|h| h.host.name == switch.name) else { continue };
            let mut faults = Vec::new();
            let host = &mut self.hosts[at].host;
            for end in self.experiment.links.iter().flat_map(|l| &l.ends).filter(|e| e.host == switch.name) {
                if end.dev == BRIDGE || end.dev == "lo" {
                    faults.push((end.place.clone(), format!("{}:{} is no port", end.host, end.dev)));
                } else if !host.devices.iter().any(|d| d.name == end.dev) {
                    let (name, place) = (end.dev.clone(), end.place.clone());
                    host.devices.push(Device { name, place, ..Device::default() });
                }
            }
            if host.devices.len() < 2 {
                let message = format!("[switch.{}] has {} ports", switch.name, host.devices.len());
                faults.push((switch.place.clone(), message));
            }
            let mut text = format!("ip link add name {BRIDGE} type bridge");
            if let Some(ageing) = switch.ageing {
                text.push_str(&format!(" ageing_time {}", ageing.as_ns() / 10_000_000));
            }
            for device in &host.devices {
                let dev = penstock_lang::token::quoted(&device.name);
                text.push_str(&format!("\nip link set dev {dev} up master {BRIDGE}"));
                text.push_str(&format!("\ntc qdisc replace dev {dev} root {}", switch.queue));
            }
            text.push_str(&format!("\nip link set dev {BRIDGE} up\n"));
            let source = &self.experiment.sources[switch.place.source];
            let line = source.line(switch.place.span.start);
            let file = source.name.clone();
            host.setup = vec![Script { file, line, text, place: switch.place.clone() }];
            host.setup.extend(switch.setup);
            for (place, message) in faults {
                let help = "write ports = [\"a:eth0\", \"b:eth0\"], or links with ends like \"sw:p1\"";
                self.fault(&place, message, help);
            }
        }
    }
}
