//! `[[app]]` and `[[flow]]`.

use super::Builder;
use super::forms;
use super::host::dist;
use super::link::tables;
use super::meter::code_point;
use super::read::{self, Faults, Table, Val};
use super::source::{Place, meant};
use super::spec::{App, Flow};
use penstock_model::Span;
use penstock_model::traffic::{Dist, Load, TcpWishes, TxTimeWish};
use std::collections::BTreeMap;
use toml::de::DeValue;

/// Most flows of one `[[flow]]`.
const MAX_FLOWS: u64 = 50_000;

/// An app as a file has it.
pub(super) struct AppDraft {
    app: App,
    /// Whether it has a name of its own.
    named: bool,
    after: Option<(String, Place)>,
    starts: Vec<Span>,
}

impl AppDraft {
    /// One that has a name, and starts once.
    pub(super) fn named(app: App, at: Span) -> AppDraft {
        AppDraft { app, named: true, after: None, starts: vec![at] }
    }
}

impl Builder<'_> {
    pub(super) fn read_apps(&mut self, root: &mut Table<'_>, faults: &mut Faults<'_>) {
        for mut table in tables(root, "app", "on = \"u1\", run = \"ping 10.0.0.2\"", faults) {
            let mut app = App { place: faults.place(table.span()), ..App::default() };
            if let Some(value) = table.need("on", "on = \"u1\"", faults) {
                app.on = read::string("on", value, faults).unwrap_or_default();
                if app.on.is_empty() && matches!(value.get_ref(), DeValue::String(_)) {
                    faults.add(value.span(), "on is empty", "write the machine it runs on: on = \"u1\"");
                }
                app.place = faults.place(value.span());
            }
            if let Some(value) = table.need("run", "run = \"ping 10.0.0.2\"", faults)
                && let Some(run) = read::string("run", value, faults)
            {
                if run.trim().is_empty() {
                    faults.add(value.span(), "run is empty", "write run = \"ping 10.0.0.2\"");
                }
                if run.starts_with('@') {
                    app.script = self.script(&run, "run", value.span(), faults);
                }
                app.run = run;
                app.run_place = faults.place(value.span());
            }
            let mut named = false;
            if let Some(value) = table.take("name")
                && let Some(name) = read::string("name", value, faults)
            {
                if name.trim().is_empty() || name.contains(char::is_control) {
                    faults.add(value.span(), "name is empty", "leave it out, or write name = \"upload\"");
                }
                (app.name, named) = (name, true);
            }
            let mut starts = vec![Span::ZERO];
            if let Some(value) = table.take("at") {
                if read::list(value).is_empty() {
                    faults.add(
                        value.span(),
                        "at is an empty list",
                        "write at = \"1s\" or at = [\"1s\", \"20s\"]",
                    );
                }
                starts = read::list(value).into_iter().filter_map(|v| read::time("at", v, faults)).collect();
            }
            if let Some(value) = table.take("may_fail") {
                app.may_fail = read::boolean("may_fail", value, faults).unwrap_or_default();
            }
            let after = table.take("after").and_then(|v| {
                let name = read::string("after", v, faults)?;
                Some((name, faults.place(v.span())))
            });
            table.finish(faults);
            self.apps.push(AppDraft { app, named, after, starts });
        }
    }

    /// One app for each start, each with a name of its own.
    pub(super) fn finish_apps(&mut self) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut afters: Vec<(usize, String, Place)> = Vec::new();
        for draft in std::mem::take(&mut self.apps) {
            let app = draft.app;
            if !app.on.is_empty() {
                self.has_host(&app.on, &app.place);
            }
            if draft.after.is_none() {
                let late = draft.starts.iter().copied().find(|at| *at >= self.experiment.duration);
                if let Some(at) = late {
                    let message = format!("this app starts at {at}, but the run ends then or before");
                    self.fault(&app.place, message, format!("duration is {}", self.experiment.duration));
                }
            }
            let base = match draft.named {
                true => app.name.clone(),
                false => format!("{} {}", app.on, program(&app.run)),
            };
            if draft.named && counts.contains_key(&base) {
                self.fault(&app.place, format!("there is an app \"{base}\" already"), "give it another name");
            }
            for at in draft.starts {
                let n = counts.entry(base.clone()).or_insert(0);
                *n += 1;
                let name = if *n == 1 { base.clone() } else { format!("{base} {n}") };
                let number = self.experiment.apps.len();
                if let Some((after, place)) = &draft.after {
                    afters.push((number, after.clone(), place.clone()));
                }
                self.experiment.apps.push(App { name, at, ..app.clone() });
            }
        }
        for (number, name, place) in afters {
            match self.experiment.apps.iter().position(|a| a.name == name) {
                Some(first) if first != number => self.experiment.apps[number].after = Some(first),
                Some(_) => self.fault(&place, "this app waits for itself", "name another one"),
                None => {
                    let names: Vec<&str> = self.experiment.apps.iter().map(|a| a.name.as_str()).collect();
                    let help = match meant(&name, &names) {
                        Some(name) => format!("did you mean \"{name}\"?"),
                        None => format!("there are \"{}\"", names.join("\", \"")),
                    };
                    self.fault(&place, format!("after: there is no app \"{name}\""), help);
                }
            }
        }
        self.no_circles();
    }

    fn no_circles(&mut self) {
        for i in 0..self.experiment.apps.len() {
            let mut at = i;
            for _ in 0..=self.experiment.apps.len() {
                match self.experiment.apps[at].after {
                    Some(next) => at = next,
                    None => break,
                }
            }
            if self.experiment.apps[at].after.is_some() {
                let place = self.experiment.apps[i].place.clone();
                self.fault(
                    &place,
                    "these apps wait for each other",
                    "let one of them start without \"after\"",
                );
                return;
            }
        }
    }

    pub(super) fn read_flows(&mut self, root: &mut Table<'_>, faults: &mut Faults<'_>) {
        for table in tables(root, "flow", "from = \"a\", to = \"b\", load = \"greedy\"", faults) {
            self.read_flow(table, faults);
        }
    }

    fn read_flow(&mut self, mut table: Table<'_>, faults: &mut Faults<'_>) {
        let place = faults.place(table.span());
        let mut host = |key, example| {
            let value = table.need(key, example, faults)?;
            read::string(key, value, faults)
        };
        let from = host("from", "from = \"a\"");
        let to = host("to", "to = \"b\"");
        let name = table.take("name").and_then(|v| read::string("name", v, faults));
        let group = table.take("group").and_then(|v| read::string("group", v, faults));
        let count = table.take("count").and_then(|v| read::integer("count", v, 1..MAX_FLOWS + 1, faults));
        let tcp = table.take("tcp").map(|v| (v, tcp(v, faults)));
        let udp = table.take("udp").map(|v| (v, read::boolean("udp", v, faults)));
        let datagrams = match (&tcp, &udp) {
            (Some(_), Some((value, _))) => {
                faults.add(value.span(), "a flow has either \"tcp\" or \"udp\"", "leave one out");
                false
            }
            (_, Some((_, chosen))) => chosen.unwrap_or(true),
            _ => false,
        };
        let load = table
            .need("load", "load = \"greedy\"", faults)
            .and_then(|v| Some((v.span(), self.load(v, faults)?)));
        if let Some((span, load)) = &load
            && datagrams
            && matches!(load, Load::Greedy | Load::Bytes(_) | Load::Pages { .. } | Load::Arrivals(_))
        {
            faults.add(
                span.clone(),
                "datagrams need a rate or a gap",
                "write load = \"1mbit\" or { size = 160, gap = \"20ms\" }",
            );
        }
        if let Some((span, Load::Pages { .. })) = &load
            && tcp.as_ref().is_some_and(|(_, t)| t.as_ref().is_some_and(|t| t.fastopen))
        {
            let help = "write a number of bytes, \"greedy\" or arrivals, or leave fastopen out";
            faults.add(span.clone(), "pages are not sent by Fast Open", help);
        }
        if let Some((span, Load::Echo { .. })) = &load
            && !datagrams
        {
            faults.add(span.clone(), "an echo probe sends datagrams", "write udp = true");
        }
        let at = match table.take("at").map(|v| dist("at", v, faults)) {
            None => (Span::ZERO, Span::ZERO),
            Some(Some(Dist::Constant(at))) => (at, at),
            Some(Some(Dist::Uniform { from, to })) => (from, to),
            Some(None) => (Span::ZERO, Span::ZERO),
            Some(Some(_)) => {
                let help = "write at = \"1s\" or at = { from = \"0s\", to = \"1s\" }";
                faults.add(place.span.clone(), "a flow starts at one time or between two", help);
                (Span::ZERO, Span::ZERO)
            }
        };
        if at.1 >= LONGEST_START {
            faults.add(place.span.clone(), "at is out of range", "write less than 86400s");
        }
        let until = table.take("until").and_then(|v| {
            let until = read::time("until", v, faults)?;
            if until <= at.0 {
                faults.add(v.span(), "until does not lie after at", "write a later time");
            }
            Some(until)
        });
        let mut number = |key, range| table.take(key).and_then(|v| read::integer(key, v, range, faults));
        let tos = number("tos", 0..256);
        let mark = number("mark", 0..1 << 32);
        let port = number("port", 1..65_536);
        let drift = number("drift", 0..100_001);
        let dscp = table.take("dscp").and_then(|v| Some((v.span(), code_point("dscp", v, faults)?)));
        if let (Some(_), Some((span, _))) = (tos, &dscp) {
            faults.add(span.clone(), "a flow has either \"tos\" or \"dscp\"", "leave one out");
        }
        let jitter = table.take("jitter").map(|v| read::time("jitter", v, faults));
        let ipv6 = table.take("ipv6").and_then(|v| read::boolean("ipv6", v, faults));
        let trace = table.take("trace").map(|v| (v.span(), read::boolean("trace", v, faults)));
        if let Some((span, Some(true))) = &trace
            && !datagrams
        {
            faults.add(
                span.clone(),
                "only datagrams are traced one by one",
                "add udp = true, or leave trace out",
            );
        }
        let txtime = table.take("txtime").map(|v| (v.span(), txtime(v, faults)));
        if let Some((span, _)) = &txtime
            && !datagrams
        {
            faults.add(
                span.clone(),
                "only datagrams name a time of departure",
                "add udp = true, or leave txtime out",
            );
        }
        table.finish(faults);
        let (Some(from), Some(to), Some((_, load))) = (from, to, load) else { return };
        self.experiment.flows.push(Flow {
            name: name.unwrap_or_default(),
            place,
            group,
            from,
            to,
            ipv6: ipv6.unwrap_or(false),
            count: count.unwrap_or(1) as u32,
            tcp: (!datagrams).then(|| tcp.and_then(|(_, t)| t).unwrap_or_default()),
            load,
            at,
            until,
            tos: dscp.map_or(tos.unwrap_or(0) as u8, |(_, dscp)| dscp << 2),
            mark: mark.unwrap_or(0) as u32,
            port: port.unwrap_or(0) as u16,
            drift_ppm: drift.unwrap_or(0) as u32,
            jitter: jitter.flatten().unwrap_or(Span::ZERO),
            trace: trace.and_then(|(_, t)| t).unwrap_or(false),
            txtime: txtime.and_then(|(_, t)| t),
        });
    }

    pub(super) fn finish_flows(&mut self) {
        let mut flows = std::mem::take(&mut self.experiment.flows);
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        let mut total = self.experiment.apps.len() as u64;
        let many = format!("more than {MAX_FLOWS} flows and apps in all");
        if let Some(app) = self.experiment.apps.get(MAX_FLOWS as usize) {
            let place = app.place.clone();
            self.fault(&place, format!("there are {many}"), "share them among several runs");
        }
        for flow in &mut flows {
            // Each holds sockets, series and a record: what fits memory for one must fit for all.
            let before = total;
            total += u64::from(flow.count);
            if before <= MAX_FLOWS && total > MAX_FLOWS {
                let message = format!("with this flow there are {many}");
                self.fault(&flow.place, message, "share them among several runs");
            }
            self.has_host(&flow.from, &flow.place);
            self.has_host(&flow.to, &flow.place);
            if flow.from == flow.to {
                self.fault(&flow.place, "a flow goes from one host to another", "name two hosts");
            }
            if flow.at.0 >= self.experiment.duration {
                let help = format!("duration is {}", self.experiment.duration);
                self.fault(
                    &flow.place,
                    format!("this flow starts at {}, when the run is over", flow.at.0),
                    help,
                );
            }
            let named = !flow.name.is_empty();
            if !named {
                flow.name = format!("{}-{}", flow.from, flow.to);
            }
            let n = names.entry(flow.name.clone()).or_insert(0);
            *n += 1;
            if *n > 1 {
                if named {
                    let message = format!("there is a flow \"{}\" already", flow.name);
                    self.fault(&flow.place, message, "give it another name");
                }
                flow.name = format!("{} {n}", flow.name);
            }
        }
        self.experiment.flows = flows;
    }
}

/// No flow starts later than this.
const LONGEST_START: Span = Span::from_secs(86_400);

/// The program of a command line: its first word that is not `sudo`, without folders.
pub(crate) fn program(run: &str) -> &str {
    let word = run.trim_start_matches('@').split_whitespace().find(|w| *w != "sudo").unwrap_or("");
    word.rsplit('/').next().unwrap_or(word)
}

/// `txtime = "5ms"`, or `txtime = { after = "5ms", clock = "monotonic", deadline = true }`.
fn txtime(value: Val<'_>, faults: &mut Faults<'_>) -> Option<TxTimeWish> {
    let wish = |after| TxTimeWish { after, monotonic: false, deadline: false };
    if value.get_ref().is_str() {
        return read::time("txtime", value, faults).map(wish);
    }
    let mut table = Table::of(value, "txtime", &forms::TXTIME, faults)?;
    let after = table.need("after", "after = \"5ms\"", faults).and_then(|v| read::time("after", v, faults));
    let clock = table.take("clock").and_then(|v| Some((v.span(), read::string("clock", v, faults)?)));
    let monotonic = match &clock {
        None => false,
        Some((_, name)) if name == "tai" => false,
        Some((_, name)) if name == "monotonic" => true,
        Some((span, name)) => {
            let message = format!("there is no clock {name:?} for times of departure");
            faults.add(span.clone(), message, "write \"tai\" (for etf) or \"monotonic\" (for fq)");
            false
        }
    };
    let deadline = table.take("deadline").and_then(|v| read::boolean("deadline", v, faults));
    table.finish(faults);
    Some(TxTimeWish { monotonic, deadline: deadline.unwrap_or(false), ..wish(after?) })
}

/// `tcp = { profile, cc, mss, ecn, sack, sndbuf, rcvbuf, initial_window, min_rto, quickack, hz, … }` or `tcp = true`.
fn tcp(value: Val<'_>, faults: &mut Faults<'_>) -> Option<TcpWishes> {
    if value.get_ref().as_bool() == Some(true) {
        return Some(TcpWishes::default());
    }
    let mut table = Table::of(value, "tcp", &forms::TCP, faults)?;
    let mut flag = |key| table.take(key).and_then(|v| read::boolean(key, v, faults));
    let (ecn, sack, quickack) = (flag("ecn"), flag("sack"), flag("quickack"));
    let fastopen = flag("fastopen").unwrap_or(false);
    let ns2 = ns2(&mut table, faults);
    let cc = table.take("cc").and_then(|v| {
        let name = read::string("cc", v, faults)?;
        let known = match ns2 {
            Some(_) => penstock_tcp::ns2::Variant::ALL.map(|v| v.0).to_vec(),
            None => penstock_tcp::cc::names(),
        };
        if known.contains(&name.as_str()) {
            return Some(name);
        }
        let help = match meant(&name, &known) {
            Some(name) => format!("did you mean \"{name}\"?"),
            None => format!("there are \"{}\"", known.join("\", \"")),
        };
        faults.add(v.span(), format!("cc: no congestion control is called \"{name}\""), help);
        None
    });
    let mss = table.take("mss").and_then(|v| read::integer("mss", v, 48..65_496, faults)).map(|n| n as u16);
    let mut buffer = |key| {
        let value = table.take(key)?;
        let bytes = read::size(key, value, faults)?;
        if !(256..=1 << 30).contains(&bytes) {
            faults.add(value.span(), format!("{key} is out of range"), "write 256 to 1g");
        }
        Some(bytes.clamp(256, 1 << 30) as u32)
    };
    let (sndbuf, rcvbuf) = (buffer("sndbuf"), buffer("rcvbuf"));
    let initial_window =
        table.take("initial_window").and_then(|v| read::integer("initial_window", v, 1..1_000, faults));
    let hz = table.take("hz").and_then(|v| read::integer("hz", v, 10..10_001, faults)).map(|n| n as u32);
    let min_rto = table.take("min_rto").and_then(|v| {
        let span = read::time("min_rto", v, faults)?;
        if !(Span::from_ms(1)..=Span::from_secs(60)).contains(&span) {
            faults.add(v.span(), "min_rto is out of range", "write 1ms to 60s");
        }
        Some(span)
    });
    table.finish(faults);
    Some(TcpWishes {
        cc,
        mss,
        ecn,
        sack,
        sndbuf,
        rcvbuf,
        initial_window: initial_window.map(|n| n as u32),
        min_rto,
        quickack: quickack.unwrap_or(false),
        fastopen,
        hz,
        ns2,
    })
}

/// `profile = "ns-2"` and what ns-2's agents can be set to beside.
fn ns2(table: &mut Table<'_>, faults: &mut Faults<'_>) -> Option<penstock_tcp::ns2::Options> {
    let profile = table.take("profile")?;
    let mut o = penstock_tcp::ns2::Options::default();
    match read::string("profile", profile, faults)?.as_str() {
        "linux" => return None,
        "ns-2" => {}
        // As it was in 2004, before three of its defaults changed.
        "ns-2.27" => {
            (o.precise, o.cwr_on_retransmit) = (false, false);
            (o.min_rto, o.initial_rto) = (Span::from_secs(1), Span::from_secs(6));
        }
        other => {
            let help = "write \"linux\", \"ns-2\" or \"ns-2.27\"";
            faults.add(profile.span(), format!("profile: there is no TCP called \"{other}\""), help);
        }
    }
    if let Some(n) = table.take("window").and_then(|v| read::integer("window", v, 1..1 << 20, faults)) {
        o.window = n as u32;
    }
    let mut time = |key, slot: &mut Span| {
        if let Some(span) = table.take(key).and_then(|v| read::time(key, v, faults)) {
            *slot = span.max(Span::from_us(1));
        }
    };
    time("tick", &mut o.tick);
    time("initial_rto", &mut o.initial_rto);
    time("max_rto", &mut o.max_rto);
    let mut delay = Span::ZERO;
    time("delayed_ack", &mut delay);
    o.delayed_ack = (delay > Span::ZERO).then_some(delay);
    if let Some(on) =
        table.take("limited_transmit").and_then(|v| read::boolean("limited_transmit", v, faults))
    {
        o.limited_transmit = on;
    }
    if let Some(on) = table.take("impatient").and_then(|v| read::boolean("impatient", v, faults)) {
        o.impatient = on;
    }
    Some(o)
}
