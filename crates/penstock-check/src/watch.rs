//! Runs a script on a virtual machine and keeps what the rules want to know.
//!
//! Devices the script names and does not make are there: the machine makes each when it is first named. Those the script itself
//! makes, or takes away, are not.

use crate::Settings;
use crate::elsewhere::{Elsewhere, NETWORK, elsewhere};
use crate::facts::{Class, Device, Facts, Qdisc, Step, What};
use crate::filters::Filters;
use crate::marks::Netfilter;
use crate::names::{added, deleted, is_name, named};
use crate::python::{Python, Runs};
use crate::source::{Form, Source, without_sudo};
use penstock_host::{Files, Host, NoFiles, Output};
use penstock_lang::iptables;
use penstock_lang::tc::{self, Command, Env, batch};
use penstock_lang::token::Line;
use penstock_model::rtnetlink::Verb;
use penstock_model::{Diagnostic, Handle, Time};
use penstock_shell::{Console, Given, Kept, Machine, Script};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// What a device's part was made by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Part {
    /// The qdisc below a parent.
    Qdisc(Handle),
    Class(Handle),
}

/// The machine's side.
struct Watched<'a> {
    host: Host,
    /// The namespace that is looked at; none is the machine's first.
    focus: Option<String>,
    /// Other namespaces commands were carried out in, with the words that led there.
    spaces: BTreeMap<String, String>,
    /// Whether the script makes namespaces itself: then it makes all of them.
    makes_spaces: bool,
    log: &'a RefCell<Vec<Step>>,
    pending: &'a RefCell<Vec<(Step, Option<u32>)>>,
    /// Names the script makes devices of itself.
    own: BTreeSet<String>,
    foreign: BTreeSet<String>,
    made: BTreeSet<String>,
    gone: BTreeSet<String>,
    makers: BTreeMap<(String, Part), usize>,
    filters: BTreeMap<String, Filters>,
    lives: Vec<Device>,
    /// Whether a failing command ends the script.
    errexit: bool,
}

/// The script's side.
struct Keep<'a> {
    log: &'a RefCell<Vec<Step>>,
    pending: &'a RefCell<Vec<(Step, Option<u32>)>>,
    source: &'a Source,
    name: String,
    stderr: String,
}

impl Console for Keep<'_> {
    fn print(&mut self, _: &str, stderr: &str) {
        if self.stderr.len() < 1 << 16 {
            self.stderr.push_str(stderr);
        }
    }
    fn given(&mut self, given: Given) {
        let own = given.file == self.name;
        for (mut step, inner) in self.pending.borrow_mut().drain(..) {
            (step.line, step.file) = (given.line, given.file.clone());
            if let (Some(inner), Some(begins)) = (inner, self.source.heredoc(given.line).filter(|_| own)) {
                step.line = begins + inner - 1;
            }
            self.log.borrow_mut().push(step);
        }
    }
}

/// Runs a script and gathers the facts.
pub fn run(script: &Script, settings: &Settings) -> Facts {
    let source = Source::new(&script.text);
    let script =
        Script { text: source.runnable(), args: arguments(script, &source, settings), ..script.clone() };
    let (mut facts, spaces) = in_place(&script, source, settings, None);
    for (place, prefix) in spaces.into_iter().take(SPACES_MAX) {
        let (mut there, _) = in_place(&script, facts.source.clone(), settings, Some(&place));
        there.prefix = prefix;
        let known = |d: &String| there.devices.iter().any(|device| device.name == *d);
        there.dev = there.dev.filter(known);
        facts.spaces.push(there);
    }
    facts
}

/// Namespaces that are looked at, at most.
const SPACES_MAX: usize = 32;

/// The facts of one namespace, and what leads to others.
fn in_place(
    script: &Script,
    source: Source,
    settings: &Settings,
    focus: Option<&str>,
) -> (Facts, BTreeMap<String, String>) {
    let first = pass(script, &source, settings, BTreeSet::new(), focus);
    // What was lent and turns out to be the script's own to make is not there the second time.
    let lent: BTreeSet<String> = first.foreign.intersection(&first.own).cloned().collect();
    let done = if lent.is_empty() { first } else { pass(script, &source, settings, lent, focus) };
    let Done { steps, devices, foreign, stopped, stderr, partial, spaces, .. } = done;
    let name = if script.name.is_empty() { "script".to_owned() } else { script.name.clone() };
    let netfilter = Netfilter::of(&steps);
    let facts = Facts {
        name,
        source,
        kernel: settings.kernel,
        link: settings.rate,
        dev: settings.dev.clone(),
        steps,
        devices,
        netfilter,
        foreign,
        stopped,
        stderr,
        partial,
        prefix: String::new(),
        spaces: Vec::new(),
    };
    (facts, spaces)
}

/// What a script is called with where nobody says: `start` where it asks for a verb, the device where `$1` is one.
fn arguments(script: &Script, source: &Source, settings: &Settings) -> Vec<String> {
    if !script.args.is_empty() {
        return script.args.clone();
    }
    let lines: Vec<String> = source.lines.iter().map(|l| l.replace(['"', '{', '}', ' ', '\t'], "")).collect();
    let asks_verb = lines.iter().any(|l| l.starts_with("case$1in") || l.starts_with("case$1:-"));
    if asks_verb {
        for verb in ["start", "up", "add", "on", "enable"] {
            let arm = |l: &String| {
                l.starts_with(&format!("{verb})"))
                    || l.starts_with(&format!("{verb}|"))
                    || l.contains(&format!("|{verb})"))
            };
            if lines.iter().any(arm) {
                return vec![verb.to_owned()];
            }
        }
    }
    let device = |l: &String| {
        let name = l.split('=').next().unwrap_or("").to_lowercase();
        (l.ends_with("=$1") || l.contains("=$1:?"))
            && ["dev", "if", "iface", "interface", "nic", "wan", "eth", "int"].contains(&name.as_str())
    };
    if lines.iter().any(device) {
        return vec![settings.dev.clone().unwrap_or_else(|| "eth0".to_owned())];
    }
    Vec::new()
}

struct Done {
    steps: Vec<Step>,
    devices: Vec<Device>,
    own: BTreeSet<String>,
    foreign: BTreeSet<String>,
    stopped: Option<String>,
    stderr: String,
    partial: bool,
    spaces: BTreeMap<String, String>,
}

fn pass(
    script: &Script,
    source: &Source,
    settings: &Settings,
    own: BTreeSet<String>,
    focus: Option<&str>,
) -> Done {
    let (log, pending) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let mut host = Host::new("penstock", settings.kernel, 1);
    let mut foreign = BTreeSet::new();
    if let Some(dev) = settings.dev.as_ref().filter(|d| focus.is_none() && !own.contains(*d)) {
        host.add_device(dev);
        foreign.insert(dev.clone());
    }
    // A script that asks where the default route goes has one to find.
    let asks_route = source.lines.iter().any(|l| {
        let asks = ["ip route", "ip r ", "ip -4 route", "route -n", "ip -o route", "/proc/net/route"]
            .iter()
            .any(|w| l.contains(w));
        asks && (l.contains("$(") || l.contains('`') || l.contains('|')) && !l.contains(" add ")
    });
    if asks_route {
        let dev = settings.dev.as_deref().unwrap_or("eth0");
        host.add_device(dev);
        for line in [
            format!("ip addr add 192.0.2.2/24 dev {dev}"),
            format!("ip route add default via 192.0.2.1 dev {dev}"),
        ] {
            host.exec(&line, Time::ZERO);
        }
        foreign.insert(dev.to_owned());
    }
    let makes_spaces = source.lines.iter().any(|l| l.contains("netns add"));
    let mut watched = Watched {
        host,
        focus: focus.map(str::to_owned),
        spaces: BTreeMap::new(),
        makes_spaces,
        log: &log,
        pending: &pending,
        own,
        foreign,
        made: BTreeSet::new(),
        gone: BTreeSet::new(),
        makers: BTreeMap::new(),
        filters: BTreeMap::new(),
        lives: Vec::new(),
        errexit: source.errexit,
    };
    let name = if script.name.is_empty() { "script".to_owned() } else { script.name.clone() };
    let script = Script { name: name.clone(), ..script.clone() };
    let mut keep = Keep { log: &log, pending: &pending, source, name, stderr: String::new() };
    let mut partial = false;
    let ended = if source.form == Form::Python {
        let dev = settings.dev.clone().unwrap_or_else(|| "eth0".to_owned());
        let mut runs = FromPython { watched: &mut watched, keep: &mut keep, partial: false };
        Python::new(&mut runs, script.args.clone(), dev).run(&source.lines.join("\n"));
        partial = runs.partial;
        Ok(0)
    } else {
        penstock_shell::run(&script, &mut watched, &mut keep)
    };
    let stderr = std::mem::take(&mut keep.stderr);
    let names: Vec<String> = watched.seen().devices().iter().map(|d| d.name.clone()).collect();
    for name in names {
        let device = watched.capture(&name);
        watched.lives.extend(device);
    }
    let Watched { lives, foreign, made, spaces, .. } = watched;
    let own = made;
    Done {
        steps: log.into_inner(),
        devices: lives,
        own,
        foreign,
        stopped: ended.err(),
        stderr,
        partial,
        spaces,
    }
}

/// A Python script's side.
struct FromPython<'a, 'b> {
    watched: &'a mut Watched<'b>,
    keep: &'a mut Keep<'b>,
    partial: bool,
}

/// A shell's command within a Python script: its lines begin further down.
struct Within<'a, 'b> {
    keep: &'a mut Keep<'b>,
    line: u32,
}

impl Console for Within<'_, '_> {
    fn print(&mut self, stdout: &str, stderr: &str) {
        self.keep.print(stdout, stderr);
    }
    fn given(&mut self, mut given: Given) {
        given.line = self.line + given.line.max(1) - 1;
        given.file.clone_from(&self.keep.name);
        self.keep.given(given);
    }
}

impl Runs for FromPython<'_, '_> {
    fn words(&mut self, mut words: Vec<String>, line: u32) -> (i32, String) {
        if words.first().is_some_and(|w| w == "sudo") {
            words.remove(0);
        }
        let program = words.first().map_or("", |w| w.rsplit('/').next().unwrap_or(w)).to_owned();
        if let ("sh" | "bash", [_, flag, text, ..]) = (program.as_str(), words.as_slice())
            && flag.starts_with('-')
            && flag.ends_with('c')
        {
            return self.shell(&text.clone(), line);
        }
        if !NETWORK.contains(&program.as_str()) {
            return (0, String::new());
        }
        let output = self.watched.command(&words, &mut NoFiles);
        let (status, text) = (output.status, output.stdout.clone());
        let file = self.keep.name.clone();
        self.keep.given(Given { line, file, words, output });
        (status, text)
    }
    fn shell(&mut self, text: &str, line: u32) -> (i32, String) {
        let text: String = text.lines().map(|l| format!("{}\n", without_sudo(l))).collect();
        let plain = |c: char| c.is_alphanumeric() || " \n.:/_-+,@%=".contains(c);
        if text.lines().count() == 1 && text.chars().all(plain) && !text.trim_start().starts_with('.') {
            return self.words(text.split_whitespace().map(str::to_owned).collect(), line);
        }
        let script = Script { text, ..Script::default() };
        let mut out = Kept::default();
        let ended = {
            let mut within = Within { keep: self.keep, line };
            let mut both = Both(&mut within, &mut out);
            penstock_shell::run(&script, self.watched, &mut both)
        };
        (ended.unwrap_or(1), out.stdout)
    }
    fn left_out(&mut self, line: u32) {
        // Only what has to do with the network is missed.
        let text = self.keep.source.logical(line);
        self.partial |=
            NETWORK.iter().any(|p| text.contains(&format!("{p} ")) || text.contains(&format!("\"{p}\"")));
    }
}

/// Two consoles at once.
struct Both<'a, 'b, 'c>(&'a mut Within<'b, 'c>, &'a mut Kept);

impl Console for Both<'_, '_, '_> {
    fn print(&mut self, stdout: &str, stderr: &str) {
        self.0.print(stdout, stderr);
        self.1.print(stdout, stderr);
    }
    fn given(&mut self, given: Given) {
        self.0.given(given);
    }
}

impl Machine for Watched<'_> {
    fn command(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        self.pending.borrow_mut().clear();
        match elsewhere(words) {
            Some(there) => self.there(words, &there, files),
            None if self.focus.is_some() => self.aside(words, files),
            None => self.here(words, files),
        }
    }
    fn elsewhere(&mut self, words: &[String], files: &mut dyn Files) -> Option<Output> {
        self.pending.borrow_mut().clear();
        Some(self.there(words, &elsewhere(words)?, files))
    }
}

impl Watched<'_> {
    /// The namespace that is looked at.
    fn seen(&self) -> &Host {
        self.focus.as_deref().and_then(|place| self.host.netns(place)).unwrap_or(&self.host)
    }
    /// Does something in the namespace that is looked at.
    fn on<T>(&mut self, work: impl FnOnce(&mut Host) -> T) -> Option<T> {
        match &self.focus {
            Some(place) => self.host.in_netns(&place.clone(), work),
            None => Some(work(&mut self.host)),
        }
    }

    /// A command for another namespace.
    fn there(&mut self, words: &[String], there: &Elsewhere, files: &mut dyn Files) -> Output {
        let place = there.place.as_str();
        if self.host.netns(place).is_none() {
            if self.makes_spaces && there.is_space {
                return if self.focus.is_some() {
                    self.aside(words, files)
                } else {
                    self.step(words, What::Other, None, files)
                };
            }
            self.host.exec(&format!("ip netns add {place}"), Time::ZERO);
        }
        let looked_at = self.focus.as_deref() == Some(place);
        let mut all = Output::default();
        for inner in &there.commands {
            let one = if looked_at {
                self.here(inner, files)
            } else {
                if !(self.makes_spaces && there.is_space) {
                    self.host.in_netns(place, |host| lend_to(host, inner));
                }
                let run = |host: &mut Host| host.command(inner, files, Time::ZERO);
                self.host.in_netns(place, run).unwrap_or_default()
            };
            all.status = one.status;
            all.stdout.push_str(&one.stdout);
            all.stderr.push_str(&one.stderr);
            all.diagnostics.extend(one.diagnostics);
            if all.status != 0 {
                break;
            }
        }
        if !looked_at {
            self.spaces.insert(place.to_owned(), there.prefix.clone());
            self.note_aside(words, &all);
        }
        // As below, what takes away may find nothing.
        if self.errexit && words.iter().any(|w| w == "del" || w == "delete") {
            all.status = 0;
        }
        all
    }
    /// A command for the first namespace while another is looked at: it is carried out, and no rule reads it.
    fn aside(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        lend_to(&mut self.host, words);
        let mut output = self.host.command(words, files, Time::ZERO);
        self.note_aside(words, &output);
        if self.errexit && words.iter().any(|w| w == "del" || w == "delete") {
            output.status = 0;
        }
        output
    }
    /// Keeps that there was a command, in words that no rule takes for one that it knows.
    fn note_aside(&mut self, words: &[String], output: &Output) {
        let mut kept = vec!["elsewhere".to_owned()];
        kept.extend_from_slice(words);
        let output = Output { status: 0, ..output.clone() };
        let step = Step { line: 0, file: String::new(), words: kept, output, what: What::Other };
        self.pending.borrow_mut().push((step, None));
    }

    /// A command for the namespace that is looked at.
    fn here(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        self.lend(words);
        let line = Line::of_words(words);
        if words.first().is_some_and(|w| tc::is_tc(w)) {
            let parsed = self.parse(&line);
            if let Ok([.., Command::Batch { file, force, .. }]) = parsed.as_deref() {
                let (file, force) = (file.clone(), *force);
                return self.batch(words, &file, force, files);
            }
            let what = parsed.map_or(What::Other, What::Tc);
            let mut output = self.step(words, what, None, files);
            // A deletion that finds nothing would end a script under `set -e`; it is read on, and that is said.
            if self.errexit && words.iter().any(|w| w == "del" || w == "delete") {
                output.status = 0;
            }
            return output;
        }
        let program = words.first().map_or("", |w| w.rsplit('/').next().unwrap_or(w));
        let what = match program {
            "iptables" | "ip6tables" => iptables::parse(&line.words, self.host.kernel())
                .map_or(What::Other, |c| What::Iptables(Box::new(c))),
            "nft" | "iptables-restore" | "ip6tables-restore" => {
                let file = words.iter().rfind(|w| !w.starts_with('-')).filter(|w| *w != &words[0]);
                let from = match file {
                    Some(file) if program != "nft" || words.iter().any(|w| w == "-f") => file.as_str(),
                    _ => "-",
                };
                // What there is to read is read by whoever carries it out; here it is looked at only.
                let text = files.read(from).unwrap_or_default();
                What::Rules(format!("{}\n{text}", words.join(" ")))
            }
            _ => What::Other,
        };
        self.step(words, what, None, files)
    }

    fn parse(&self, line: &Line) -> Result<Vec<Command>, tc::Failure> {
        let device = |name: &str| {
            let index = self.seen().ifindex(name)?;
            Some(tc::Link { ifindex: index, speed_mbit: self.seen().device(index)?.speed_mbit })
        };
        tc::parse_in(&line.words, &Env { kernel: self.host.kernel(), device: &device })
    }

    /// Carries out one command and keeps it.
    fn step(&mut self, words: &[String], what: What, inner: Option<u32>, files: &mut dyn Files) -> Output {
        if let What::Tc(commands) = &what {
            commands.iter().for_each(|c| self.before(c));
        } else {
            self.before_link(words);
        }
        let output = self.on(|host| host.command(words, files, Time::ZERO)).unwrap_or_default();
        let at = self.log.borrow().len() + self.pending.borrow().len();
        if output.status == 0 {
            if let What::Tc(commands) = &what {
                commands.iter().for_each(|c| self.after(c, at));
            } else {
                self.after_link(words);
            }
        }
        let step = Step { line: 0, file: String::new(), words: words.to_vec(), output: output.clone(), what };
        self.pending.borrow_mut().push((step, inner));
        output
    }

    /// `tc -batch`: each line a command of its own.
    fn batch(&mut self, words: &[String], file: &str, force: bool, files: &mut dyn Files) -> Output {
        let text = match files.read(file) {
            Ok(text) => text,
            Err(_) => return self.step(words, What::Other, None, files),
        };
        let mut all = Output::default();
        for line in batch::lines(&text, self.host.kernel()) {
            let line = match line {
                Ok(line) => line,
                Err(fault) => {
                    all.stderr.push_str(&fault.stderr);
                    all.status = 1;
                    break;
                }
            };
            let mut inner = vec!["tc".to_owned()];
            inner.extend(line.words.iter().map(|w| w.text.clone()));
            self.lend(&inner);
            let what = self.parse(&Line::of_words(&inner)).map_or(What::Other, What::Tc);
            let one = self.step(&inner, what, Some(line.number), &mut NoFiles);
            all.stdout.push_str(&one.stdout);
            all.stderr.push_str(&one.stderr);
            if one.status != 0 {
                let said: Diagnostic =
                    one.diagnostics.first().cloned().unwrap_or_else(|| Diagnostic::error("failed"));
                all.diagnostics.push(said);
                all.stderr.push_str(&format!("Command failed {file}:{}\n", line.number));
                all.status = 1;
                if !force {
                    break;
                }
            }
        }
        all
    }

    /// Makes the devices a command names and nobody makes.
    fn lend(&mut self, words: &[String]) {
        // In a namespace of the script's own there is only what it put there.
        if self.focus.as_ref().is_some_and(|place| self.makes_spaces && !place.contains(':')) {
            return;
        }
        for name in named(words) {
            let ours = self.own.contains(&name) || self.gone.contains(&name);
            if !ours && self.on(|host| lend_one(host, &name)) == Some(true) {
                self.foreign.insert(name);
            }
        }
    }

    /// What is about to be torn down is kept as it stands.
    fn before(&mut self, command: &Command) {
        let Command::Qdisc { dev: Some(dev), req } = command else { return };
        let replaces = matches!(req.verb, Verb::Replace)
            && self.makers.contains_key(&(dev.clone(), Part::Qdisc(req.parent)));
        let top = matches!(req.parent, Handle::ROOT | Handle::INGRESS);
        if (req.verb == Verb::Del || replaces) && top {
            self.keep_life(dev);
        }
    }
    fn keep_life(&mut self, dev: &str) {
        let any = self.makers.keys().any(|k| k.0 == dev);
        if any && let Some(device) = self.capture(dev) {
            self.lives.push(device);
        }
    }

    fn after(&mut self, command: &Command, at: usize) {
        match command {
            Command::Qdisc { dev: Some(dev), req } => match req.verb {
                Verb::Del => self.prune(dev),
                Verb::Change => {}
                _ => {
                    if req.verb == Verb::Replace {
                        self.prune(dev);
                    }
                    let parent = match req.kind.as_deref() {
                        Some("ingress" | "clsact") => Handle::INGRESS,
                        _ => req.parent,
                    };
                    self.makers.insert((dev.clone(), Part::Qdisc(parent)), at);
                }
            },
            Command::Class { dev: Some(dev), req } => match req.verb {
                Verb::Del => self.prune(dev),
                Verb::Change => {}
                _ => {
                    self.makers.insert((dev.clone(), Part::Class(req.classid)), at);
                }
            },
            Command::Filter { dev, req } => {
                let root = dev
                    .as_ref()
                    .and_then(|d| Some(self.seen().device(self.seen().ifindex(d)?)?.tree.root().handle));
                let name = dev.clone().unwrap_or_default();
                let filters = self.filters.entry(name).or_default();
                match req.verb {
                    Verb::Del => filters.delete(req, root),
                    _ => filters.add(req, root, at),
                }
            }
            _ => {}
        }
    }

    /// Forgets makers and filters of what is no longer there.
    fn prune(&mut self, dev: &str) {
        let seen = self.focus.as_deref().and_then(|place| self.host.netns(place)).unwrap_or(&self.host);
        let Some(device) = seen.ifindex(dev).and_then(|i| seen.device(i)) else { return };
        let qdiscs: BTreeSet<(Handle, Handle)> =
            device.tree.dump_qdiscs(Time::ZERO).iter().map(|q| (q.parent, q.handle)).collect();
        let classes: BTreeSet<Handle> =
            device.tree.dump_classes(Time::ZERO).iter().map(|c| c.classid).collect();
        self.makers.retain(|(name, part), _| {
            name != dev
                || match part {
                    Part::Qdisc(parent) => qdiscs.iter().any(|q| q.0 == *parent && q.1 != Handle::UNSPEC),
                    Part::Class(id) => classes.contains(id),
                }
        });
        if let Some(filters) = self.filters.get_mut(dev) {
            filters.all.retain(|f| {
                f.parent.major() == 0xffff && qdiscs.iter().any(|q| q.0 == Handle::INGRESS)
                    || qdiscs.iter().any(|q| q.1 == f.parent.qdisc() && q.1 != Handle::UNSPEC)
            });
        }
    }

    fn before_link(&mut self, words: &[String]) {
        // What it tries to make is its own, whether it is lent already or not.
        self.made.extend(added(words));
        if let Some(name) = deleted(words) {
            self.keep_life(&name);
        }
    }
    fn after_link(&mut self, words: &[String]) {
        if let Some(name) = deleted(words) {
            self.makers.retain(|k, _| k.0 != name);
            self.filters.remove(&name);
            self.gone.insert(name);
        }
        if let Some(name) = added(words) {
            self.gone.remove(&name);
        }
        if words.iter().any(|w| w == "ifb") && words[0].ends_with("modprobe") {
            let ifbs: Vec<String> = self
                .seen()
                .devices()
                .iter()
                .map(|d| d.name.clone())
                .filter(|n| n.starts_with("ifb"))
                .collect();
            self.made.extend(ifbs);
        }
    }

    /// A device as it stands.
    fn capture(&self, name: &str) -> Option<Device> {
        let device = self.seen().device(self.seen().ifindex(name)?)?;
        let maker = |part| self.makers.get(&(name.to_owned(), part)).copied();
        let qdiscs: Vec<Qdisc> = device
            .tree
            .dump_qdiscs(Time::ZERO)
            .into_iter()
            .map(|q| Qdisc {
                kind: q.kind,
                handle: q.handle,
                parent: q.parent,
                options: q.options,
                step: maker(Part::Qdisc(q.parent)),
            })
            .collect();
        let mut classes: Vec<Class> = device
            .tree
            .dump_classes(Time::ZERO)
            .into_iter()
            .map(|c| Class {
                kind: c.kind,
                id: c.classid,
                parent: c.parent,
                options: c.options,
                step: maker(Part::Class(c.classid)),
                children: Vec::new(),
            })
            .collect();
        let by_id: BTreeMap<Handle, usize> = classes.iter().enumerate().map(|(at, c)| (c.id, at)).collect();
        for at in 0..classes.len() {
            let (id, parent) = (classes[at].id, classes[at].parent);
            if let Some(&above) = by_id.get(&parent).filter(|&&above| above != at) {
                classes[above].children.push(id);
            }
        }
        let Filters { all: filters, tables, .. } = self.filters.get(name).cloned().unwrap_or_default();
        let master = device.master.and_then(|m| self.seen().device(m)).map(|m| m.name.clone());
        Some(Device {
            name: name.to_owned(),
            kind: device.class.kind,
            mtu: device.mtu,
            txqueuelen: device.tx_queue_len,
            up: device.up,
            master,
            qdiscs,
            classes,
            filters,
            by_id,
            tables,
        })
    }
}

/// Makes the devices a command names where they are not there.
fn lend_to(host: &mut Host, words: &[String]) {
    for name in named(words) {
        lend_one(host, &name);
    }
}

/// Makes a device where there is none of this name; whether it did.
fn lend_one(host: &mut Host, name: &str) -> bool {
    if host.ifindex(name).is_some() || !is_name(name) {
        return false;
    }
    match ["bridge", "bond", "ifb"].into_iter().find(|kind| name.starts_with(&kind[..2])) {
        Some(kind) if name.starts_with("br") || name.starts_with(kind) => {
            host.exec(&format!("ip link add {name} type {kind}"), Time::ZERO);
            host.exec(&format!("ip link set {name} up"), Time::ZERO);
        }
        _ => {
            host.add_device(name);
        }
    }
    true
}
