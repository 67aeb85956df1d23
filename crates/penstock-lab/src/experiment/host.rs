//! `[host.NAME]`.

use super::Builder;
use super::device;
use super::env::{self, Env};
use super::forms;
use super::read::{self, Faults, Table, Val};
use super::source::{Place, meant};
use super::spec::{Cost, Device, Host, Os, Script};
use penstock_lang::cisco;
use penstock_model::time::split_number;
use penstock_model::traffic::Dist;
use penstock_model::{ClockSource, Kernel, OldClock, OldRelease, PschedClock, Span};
use penstock_sim::Iperf;
use std::collections::BTreeMap;
use std::net::IpAddr;
use toml::de::DeValue;

/// A host as the files so far have it.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) host: Host,
    kernel: Option<Profile>,
    clock: Option<(ClockSource, Place)>,
    hz: Option<(u32, Place)>,
    mhz: Option<(u32, Place)>,
    setup_may_fail: Option<bool>,
    /// Variables of the setup, by name.
    env: Env,
}

/// A kernel profile: a kernel before 2.6 is the oldest there is with another clock.
pub(super) type Profile = (Kernel, Option<OldRelease>);

/// The names of all kernel profiles.
pub(super) fn kernels() -> Vec<&'static str> {
    let old = OldRelease::ALL.iter().map(|k| k.name());
    old.chain(Kernel::ALL.iter().map(|k| k.name())).collect()
}

/// A kernel profile's name.
pub(super) fn kernel(value: Val<'_>, faults: &mut Faults<'_>) -> Option<Profile> {
    let text = match value.get_ref() {
        // 6.12 without quotes is a number in TOML.
        DeValue::Float(x) => x.as_str().to_owned(),
        _ => read::string("kernel", value, faults)?,
    };
    if let Some(old) = OldRelease::ALL.into_iter().find(|old| old.name() == text) {
        return Some((Kernel::V2_6_35, Some(old)));
    }
    let names = kernels();
    match Kernel::parse(&text) {
        Ok(kernel) => Some((kernel, None)),
        Err(_) => {
            let (last, others) = names.split_last().expect("there are profiles");
            let help = format!("there are \"{}\" and \"{last}\"", others.join("\", \""));
            faults.add(value.span(), format!("unknown kernel profile \"{text}\""), help);
            None
        }
    }
}

/// A random length of time: `"20us"`, `["20us", "30us"]`, `{ from, to }`, `{ mean }`.
pub(super) fn dist(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<Dist> {
    match value.get_ref() {
        DeValue::Array(items) if items.is_empty() => {
            faults.add(value.span(), format!("{key} is an empty list"), "write at least one time");
            None
        }
        DeValue::Array(items) => {
            let times: Vec<_> = items.iter().map(|v| read::time(key, v, faults)).collect();
            times.into_iter().collect::<Option<Vec<_>>>().map(Dist::Table)
        }
        DeValue::Table(_) => {
            let mut table = Table::of(value, format!("{key} = {{ … }}"), &forms::TIMES, faults)?;
            let found = span_of(&mut table, faults);
            table.finish(faults);
            found
        }
        _ => read::time(key, value, faults).map(Dist::Constant),
    }
}

/// `from` and `to`; `mean`; `mean` and `shape`, with `most` or without; `mean` and `deviation`.
fn span_of(table: &mut Table<'_>, faults: &mut Faults<'_>) -> Option<Dist> {
    if let Some(mean) = table.take("mean") {
        let mean = read::time("mean", mean, faults);
        return drawn(table, mean, &|key, v, faults| read::time(key, v, faults), faults);
    }
    let from = table.need("from", "from = \"10us\", to = \"30us\"", faults);
    let to = table.need("to", "to = \"30us\"", faults)?;
    let (from, to_span) = (read::time("from", from?, faults)?, read::time("to", to, faults)?);
    if to_span < from {
        faults.add(to.span(), "to lies before from", "write the smaller one first");
        return None;
    }
    Some(Dist::Uniform { from, to: to_span })
}

/// How a key of a quantity is read, as a length of time.
type ReadSpan<'r> = dyn Fn(&str, Val<'_>, &mut Faults<'_>) -> Option<Span> + 'r;

/// What goes with a `mean`: nothing, `shape` (and `most`), or `deviation`.
pub(super) fn drawn(
    table: &mut Table<'_>,
    mean: Option<Span>,
    read_span: &ReadSpan<'_>,
    faults: &mut Faults<'_>,
) -> Option<Dist> {
    let most = table.take("most").map(|v| read_span("most", v, faults));
    if let Some(value) = table.take("shape") {
        let shape = read::fraction("shape", value, faults)?;
        if !(1.01..=100.0).contains(&shape) {
            faults.add(value.span(), "shape is out of range", "write 1.01 to 100, e.g. 1.5");
            return None;
        }
        // A Pareto distribution's mean is least * shape / (shape - 1).
        let least = Span::from_ns((mean?.as_ns() as f64 * (shape - 1.0) / shape).round() as i64);
        let shape_milli = (shape * 1000.0).round() as u32;
        return Some(Dist::Pareto { least, shape_milli, most: most.unwrap_or_default() });
    }
    if most.is_some() {
        faults.add(table.span(), "most needs shape", "add e.g. shape = 1.5");
        return None;
    }
    match table.take("deviation") {
        Some(value) => Some(Dist::Normal { mean: mean?, deviation: read_span("deviation", value, faults)? }),
        None => mean.map(|mean| Dist::Exponential { mean }),
    }
}

/// `pause = { at, lasts }` or a list of them: when another task has the processor; in the order of time.
fn pauses(value: Val<'_>, faults: &mut Faults<'_>) -> Option<Vec<(Span, Span)>> {
    let span = value.span();
    let mut all: Vec<(Span, Span)> = Vec::new();
    let mut one = |value: Val<'_>, faults: &mut Faults<'_>| {
        let mut table = Table::of(value, "pause = { at = \"5s\", lasts = \"50ms\" }", &forms::PAUSE, faults)?;
        let mut time = |key: &'static str| match table.take(key) {
            Some(v) => read::time(key, v, faults),
            None => {
                let message = format!("pause has no \"{key}\"");
                faults.add(table.span(), message, "write pause = { at = \"5s\", lasts = \"50ms\" }");
                None
            }
        };
        let (at, lasts) = (time("at"), time("lasts"));
        table.finish(faults);
        all.push((at?, lasts?));
        Some(())
    };
    match value.get_ref() {
        DeValue::Array(items) => {
            for item in items {
                one(item, faults)?;
            }
        }
        _ => one(value, faults)?,
    }
    if all.windows(2).any(|w| w[0].0 + w[0].1 > w[1].0) {
        let help = "list them in the order of time, each after the end of the one before";
        faults.add(span, "a pause begins before the one before it ends", help);
        return None;
    }
    Some(all)
}

/// `cost = "20us"` or `{ packet, spread, byte, tick, send, classify, clock, thread, qdisc, pause }`.
fn cost(value: Val<'_>, faults: &mut Faults<'_>) -> Option<Cost> {
    if !value.get_ref().is_table() {
        return Some(Cost {
            packet: dist("cost", value, faults)?,
            byte_ps: 0,
            tick: Span::ZERO,
            send: Span::ZERO,
            classify: Span::ZERO,
            clock: Span::ZERO,
            thread: Dist::ZERO,
            qdisc: Span::ZERO,
            pauses: Vec::new(),
        });
    }
    let mut table = Table::of(value, "cost = { … }", &forms::COST, faults)?;
    let packet = table.take("packet").map(|v| (v, dist("packet", v, faults)));
    let spread = table.take("spread").map(|v| (v, read::time("spread", v, faults)));
    let byte = table.take("byte").map(|v| picoseconds(v, faults));
    let thread = table.take("thread").map_or(Some(Dist::ZERO), |v| dist("thread", v, faults));
    let pause = table.take("pause").map_or(Some(Vec::new()), |v| pauses(v, faults));
    let mut span = |key| table.take(key).map_or(Some(Span::ZERO), |v| read::time(key, v, faults));
    let others = ["tick", "send", "classify", "clock", "qdisc"].map(&mut span);
    let [tick, send, classify, clock, qdisc] = others;
    let alone = pause.as_ref().is_none_or(|p| !p.is_empty()) || thread != Some(Dist::ZERO);
    if packet.is_none() && byte.is_none() && !alone && others.iter().all(|o| *o == Some(Span::ZERO)) {
        faults.add(table.span(), "cost has neither \"packet\" nor \"byte\"", "add e.g. packet = \"20us\"");
    }
    table.finish(faults);
    let packet = match (packet, spread) {
        (None, None) => Dist::Constant(Span::ZERO),
        (None, Some((v, _))) => {
            faults.add(v.span(), "spread without \"packet\"", "add packet = \"20us\"");
            return None;
        }
        (Some((_, packet)), None) => packet?,
        (Some((v, packet)), Some((_, spread))) => match (packet?, spread?) {
            (Dist::Constant(middle), spread) => {
                let low = Span::from_ns((middle - spread).as_ns().max(0));
                Dist::Uniform { from: low, to: middle + spread }
            }
            _ => {
                faults.add(v.span(), "spread needs a single time", "write packet = \"20us\"");
                return None;
            }
        },
    };
    let (classify, clock) = (classify?, clock?);
    Some(Cost {
        packet,
        byte_ps: byte.unwrap_or(Some(0))?,
        tick: tick?,
        send: send?,
        thread: thread?,
        classify,
        clock,
        qdisc: qdisc?,
        pauses: pause?,
    })
}

/// A time that may be a fraction of a nanosecond: `80ns`, `0.8ns`; picoseconds.
fn picoseconds(value: Val<'_>, faults: &mut Faults<'_>) -> Option<u64> {
    let text = read::string("byte", value, faults)?;
    let scale = |unit: &str| match unit {
        "us" => Some(1e6),
        "ns" => Some(1e3),
        "ps" => Some(1.0),
        _ => None,
    };
    let ps =
        split_number(&text).and_then(|(x, unit)| Some(x * scale(unit)?)).filter(|x| (0.0..1e12).contains(x));
    if ps.is_none() {
        faults.add(
            value.span(),
            format!("byte: \"{text}\" is not a time for a byte"),
            "write byte = \"0.8ns\"",
        );
    }
    ps.map(|x| x.round() as u64)
}

/// Most hosts of a run: 25 KB each, and as much again for its series.
const MAX_HOSTS: usize = 32_768;

/// Up to so many devices of a host are searched one by one.
const FEW: usize = 16;

impl Builder<'_> {
    pub(super) fn read_hosts(&mut self, table: &mut Table<'_>, faults: &mut Faults<'_>) {
        let Some(value) = table.take("host") else { return };
        let DeValue::Table(hosts) = value.get_ref() else {
            faults.add(value.span(), "host is not a table", "write [host.u1] and its keys below");
            return;
        };
        let mut names: Vec<_> = hosts.iter().collect();
        names.sort_by_key(|(name, _)| read::order(name));
        let begun = self.hosts.iter().enumerate().map(|(at, h)| (h.host.name.clone(), at));
        let mut begun: BTreeMap<String, usize> = begun.collect();
        for (name, value) in names {
            let fits = |c: char| c.is_alphanumeric() || "_.-".contains(c);
            let text = name.get_ref();
            if text.is_empty() || text.len() > 63 || !text.chars().all(fits) {
                let help = "use letters, digits, \"-\", \"_\" and \".\", at most 63";
                faults.add(name.span(), format!("a host cannot be called \"{text}\""), help);
                continue;
            }
            let Some(table) = Table::of(value, format!("[host.{text}]"), &forms::HOST, faults) else {
                continue;
            };
            let at = match begun.get(&**text) {
                Some(&at) => at,
                None => {
                    let mut draft = Draft::default();
                    draft.host.name = text.to_string();
                    draft.host.place = faults.place(name.span());
                    begun.insert(text.to_string(), self.hosts.len());
                    self.hosts.push(draft);
                    self.hosts.len() - 1
                }
            };
            let mut draft = std::mem::take(&mut self.hosts[at]);
            self.read_host(&mut draft, table, faults);
            self.hosts[at] = draft;
        }
    }

    fn read_host(&mut self, draft: &mut Draft, mut table: Table<'_>, faults: &mut Faults<'_>) {
        if let Some(value) = table.take("kernel") {
            draft.kernel = kernel(value, faults).or(draft.kernel);
        }
        if let Some(value) = table.take("clock")
            && let Some(source) = source(value, faults)
        {
            draft.clock = Some((source, faults.place(value.span())));
        }
        for (key, range, slot) in
            [("hz", OldClock::HZ, &mut draft.hz), ("mhz", OldClock::MHZ, &mut draft.mhz)]
        {
            let range = u64::from(*range.start())..u64::from(*range.end()) + 1;
            if let Some(value) = table.take(key)
                && let Some(number) = read::integer(key, value, range, faults)
            {
                *slot = Some((number as u32, faults.place(value.span())));
            }
        }
        if let Some(value) = table.take("setup_may_fail") {
            draft.setup_may_fail = read::boolean("setup_may_fail", value, faults).or(draft.setup_may_fail);
        }
        if let Some(value) = table.take("env") {
            env::read(value, &mut draft.env, faults);
        }
        let host = &mut draft.host;
        if let Some(value) = table.take("via") {
            gateways(host, value, faults);
        }
        if let Some(value) = table.take("setup") {
            for line in read::list(value) {
                let Some(text) = read::string("setup", line, faults) else { continue };
                host.setup.extend(self.script(&text, "setup", line.span(), faults));
            }
        }
        if let Some(value) = table.take("cisco")
            && let Some(text) = read::string("cisco", value, faults)
        {
            host.cisco = self.script(&text, "cisco", value.span(), faults);
        }
        if let Some(value) = table.take("os") {
            host.os = os(value, faults).unwrap_or(host.os);
        }
        if let Some(value) = table.take("iperf") {
            host.iperf = iperf(value, faults).unwrap_or(host.iperf);
        }
        if let Some(value) = table.take("cost") {
            host.cost = cost(value, faults);
        }
        if let Some(value) = table.take("ahead")
            && let Some(ahead) = read::time("ahead", value, faults)
        {
            host.ahead = ahead;
        }
        if let Some(value) = table.take("processor")
            && let Some(name) = read::string("processor", value, faults)
        {
            host.processor = Some((name, faults.place(value.span())));
        }
        if let Some(value) = table.take("files") {
            files(value, host, faults);
        }
        device::read(host, &mut table, faults);
        // For the advice when a key is unknown.
        table.take("eth0");
        table.finish(faults);
    }

    pub(super) fn finish_hosts(&mut self) {
        if let Some(draft) = self.hosts.get(MAX_HOSTS) {
            let place = draft.host.place.clone();
            self.fault(
                &place,
                format!("there are more than {MAX_HOSTS} hosts"),
                "share them among several runs",
            );
        }
        let mut taken: BTreeMap<IpAddr, String> = BTreeMap::new();
        for draft in std::mem::take(&mut self.hosts) {
            let mut host = draft.host;
            let (kernel, old) = draft.kernel.or(self.kernel).unwrap_or_default();
            host.kernel = kernel;
            if let Some(release) = old {
                let mut clock = OldClock::new(release);
                clock.source = draft.clock.as_ref().map_or(clock.source, |c| c.0);
                clock.hz = draft.hz.as_ref().map_or(clock.hz, |hz| hz.0);
                clock.mhz = draft.mhz.as_ref().map_or(clock.mhz, |mhz| mhz.0);
                host.clock = PschedClock::Old(clock);
            } else {
                let places = [
                    ("clock", draft.clock.map(|c| c.1)),
                    ("hz", draft.hz.map(|h| h.1)),
                    ("mhz", draft.mhz.map(|m| m.1)),
                ];
                for (key, place) in places {
                    let Some(place) = place else { continue };
                    let message = format!("[host.{}]: {key} needs kernel 2.2 or 2.4", host.name);
                    self.fault(&place, message, "write kernel = \"2.2\", or leave it out");
                }
            }
            host.setup_may_fail = draft.setup_may_fail.or(self.setup_may_fail).unwrap_or(false);
            self.finish_env(&mut host, &draft.env);
            if let Some(script) = host.cisco.clone() {
                self.finish_cisco(&mut host, &script);
            }
            if let Some((_, place)) = &host.processor
                && host.cost.is_none()
            {
                let message = format!("[host.{}] shares a processor and spends nothing on it", host.name);
                self.fault(place, message, "add e.g. cost = \"20us\"");
            }
            for device in &host.devices {
                let v4 = device.addresses.iter().map(|&(a, _)| IpAddr::V4(a));
                let v6 = device.addresses6.iter().map(|&(a, _)| IpAddr::V6(a));
                // Those of the link may be the same everywhere.
                for address in v4.chain(v6.filter(|a| !is_link_local(a))) {
                    let here = format!("{}:{}", host.name, device.name);
                    match taken.get(&address) {
                        Some(other) => {
                            let message = format!("{here} has the address {address}, and so has {other}");
                            self.fault(&device.place.clone(), message, "give each its own");
                        }
                        None => drop(taken.insert(address, here)),
                    }
                }
            }
            if let Some((via, place)) = &host.via6
                && !is_link_local(&IpAddr::V6(*via))
                && !host.devices.iter().flat_map(|d| &d.addresses6).any(|&(a, len)| {
                    penstock_host::six::network(a, len) == penstock_host::six::network(*via, len)
                })
            {
                let message = format!("via: {} has no device in {via}'s network", host.name);
                self.fault(place, message, "give it a device with an address in the gateway's network");
            }
            if let Some((via, place)) = &host.via
                && !host.devices.iter().flat_map(|d| &d.addresses).any(|&(a, len)| same_net(a, *via, len))
            {
                let nets: Vec<String> = host
                    .devices
                    .iter()
                    .flat_map(|d| d.addresses.iter().map(move |(a, len)| format!("{} {a}/{len}", d.name)))
                    .collect();
                let help = match nets.is_empty() {
                    true => "give it a device with an address in the gateway's network".to_owned(),
                    false => format!("its networks are those of {}", nets.join(", ")),
                };
                self.fault(place, format!("via: {} has no device in {via}'s network", host.name), help);
            }
            self.experiment.hosts.push(host);
        }
    }

    /// The devices of a Cisco router are those of its configuration.
    fn finish_cisco(&mut self, host: &mut Host, script: &Script) {
        if let Some(device) = host.devices.first() {
            let message = format!("[host.{}] has \"cisco\" and \"{}\"", host.name, device.name);
            self.fault(
                &device.place.clone(),
                message,
                "a Cisco router's interfaces stand in its configuration",
            );
        }
        if let Some(line) = host.setup.first() {
            let message = format!("[host.{}] has \"cisco\" and \"setup\"", host.name);
            self.fault(&line.place.clone(), message, "everything is in the configuration");
        }
        match cisco::parse(&script.text) {
            Ok(config) => host.devices.extend(config.interfaces.into_iter().map(|interface| Device {
                name: interface.name,
                place: script.place.clone(),
                addresses: interface.addresses,
                ..Device::default()
            })),
            Err(faults) => self.faults.extend(faults.into_iter().map(|fault| script.place_fault(fault))),
        }
    }

    /// Whether a host has a device; a fault at `place` when not.
    pub(super) fn has_device(&mut self, host: &str, dev: &str, place: &Place) -> bool {
        if !self.has_host(host, place) {
            return false;
        }
        let known = self.known_host(host).map_or(0, |h| h.devices.len());
        if known > FEW && !self.indexed.contains_key(host) {
            let names = self.known_host(host).into_iter().flat_map(|h| &h.devices).map(|d| d.name.clone());
            let names = names.collect();
            self.indexed.insert(host.to_owned(), names);
        }
        let has = match self.indexed.get(host) {
            Some(names) => names.contains(dev),
            None => self.known_host(host).is_some_and(|h| h.devices.iter().any(|d| d.name == dev)),
        };
        if has {
            return true;
        }
        let devices: Vec<String> =
            self.known_host(host).into_iter().flat_map(|h| &h.devices).map(|d| d.name.clone()).collect();
        let names: Vec<&str> = devices.iter().map(String::as_str).collect();
        let help = match (meant(dev, &names), names.is_empty()) {
            (_, true) => format!("add {} = \"10.0.0.1/24\" to [host.{host}]", penstock_lang::toml::key(dev)),
            (Some(name), _) => format!("did you mean \"{host}:{name}\"?"),
            (None, _) => format!("it has {}", names.join(", ")),
        };
        self.fault(place, format!("{host} has no device \"{dev}\""), help);
        false
    }

    /// A host by its name.
    pub(super) fn known_host(&mut self, name: &str) -> Option<&Host> {
        for (at, host) in self.experiment.hosts.iter().enumerate().skip(self.known.len()) {
            self.known.entry(host.name.clone()).or_insert(at);
        }
        self.known.get(name).map(|&at| &self.experiment.hosts[at])
    }

    /// Whether there is such a host; a fault at `place` when not.
    pub(super) fn has_host(&mut self, name: &str, place: &Place) -> bool {
        if self.known_host(name).is_some() {
            return true;
        }
        let names: Vec<&str> = self.experiment.hosts.iter().map(|h| h.name.as_str()).collect();
        let help = match (meant(name, &names), names.is_empty()) {
            (_, true) => format!("add [host.{name}]"),
            (Some(name), _) => format!("did you mean \"{name}\"?"),
            (None, _) => format!("there are {}", names.join(", ")),
        };
        self.fault(place, format!("there is no host \"{name}\""), help);
        false
    }
}

fn is_link_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(a) if a.segments()[0] & 0xffc0 == 0xfe80)
}

/// `via`: a gateway, or one of each family.
fn gateways(host: &mut Host, value: Val<'_>, faults: &mut Faults<'_>) {
    for one in read::list(value) {
        let place = faults.place(one.span());
        match one.get_ref().as_str().and_then(|text| text.parse().ok()) {
            Some(IpAddr::V6(via)) if is_link_local(&IpAddr::V6(via)) => {
                let help = "write its global address, or in the setup: ip -6 route add default via ADDRESS dev DEVICE";
                faults.add(one.span(), format!("via: {via} means something on one link only"), help);
            }
            Some(IpAddr::V6(via)) => host.via6 = Some((via, place)),
            _ => {
                if let Some(via) = read::address("via", one, faults) {
                    host.via = Some((via, place));
                }
            }
        }
    }
}

fn same_net(a: std::net::Ipv4Addr, b: std::net::Ipv4Addr, len: u8) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
    (u32::from(a) ^ u32::from(b)) & mask == 0
}

/// `clock = "cpu"`.
fn source(value: Val<'_>, faults: &mut Faults<'_>) -> Option<ClockSource> {
    let text = read::string("clock", value, faults)?;
    let names: Vec<&str> = ClockSource::ALL.iter().map(|(name, _)| *name).collect();
    let source = ClockSource::ALL.iter().find(|(name, _)| *name == text).map(|(_, source)| *source);
    if source.is_none() {
        let help = match meant(&text, &names) {
            Some(name) => format!("did you mean \"{name}\"?"),
            None => format!("there are \"{}\"", names.join("\", \"")),
        };
        faults.add(value.span(), format!("clock: \"{text}\" is unknown"), help);
    }
    source
}

/// `os = "windows-xp"`.
fn os(value: Val<'_>, faults: &mut Faults<'_>) -> Option<Os> {
    let text = read::string("os", value, faults)?;
    let names: Vec<&str> = Os::ALL.iter().map(|(name, _)| *name).collect();
    let os = Os::ALL.iter().find(|(name, _)| *name == text).map(|(_, os)| *os);
    if os.is_none() {
        let help = match meant(&text, &names) {
            Some(name) => format!("did you mean \"{name}\"?"),
            None => format!("there are \"{}\"", names.join("\" and \"")),
        };
        faults.add(value.span(), format!("os: \"{text}\" is unknown"), help);
    }
    os
}

/// The versions of iperf 2 that a host may have.
pub(super) const IPERFS: [(&str, Iperf); 3] =
    [("2.0", Iperf::V2_0), ("2.1", Iperf::V2_1), ("2.2", Iperf::V2_2)];

/// `iperf = "2.2"`.
fn iperf(value: Val<'_>, faults: &mut Faults<'_>) -> Option<Iperf> {
    let text = match value.get_ref() {
        // 2.2 without quotes is a number in TOML.
        DeValue::Float(x) => x.as_str().to_owned(),
        _ => read::string("iperf", value, faults)?,
    };
    let version = IPERFS.iter().find(|(name, _)| *name == text).map(|(_, version)| *version);
    if version.is_none() {
        let names = IPERFS.map(|(name, _)| format!("\"{name}\""));
        let help = format!("there are {}; iperf3 is another program, which each host has", names.join(", "));
        faults.add(value.span(), format!("iperf: \"{text}\" is unknown"), help);
    }
    version
}

/// `files = { "video.wmv" = "30mb" }`.
fn files(value: Val<'_>, host: &mut Host, faults: &mut Faults<'_>) {
    let Some(mut table) = Table::of(value, "files", &forms::FILES, faults) else { return };
    for (name, key, value) in table.take_all(|_| true) {
        if name.is_empty() || name.contains(char::is_whitespace) || name.contains(':') {
            faults.add(key, format!("a file cannot be called \"{name}\""), "leave out blanks and colons");
        } else if let Some(bytes) = read::size("files", value, faults) {
            host.files.retain(|(have, _)| *have != name);
            host.files.push((name, bytes));
        }
    }
    table.finish(faults);
}
