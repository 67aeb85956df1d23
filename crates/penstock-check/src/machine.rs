//! The machine a script runs on, and what it keeps of each command.

use crate::card;
use crate::elsewhere::{After, Elsewhere, Inner, elsewhere};
use crate::facts::{Class, Device, Qdisc, Step, What};
use crate::filters::Filters;
use crate::lent::{lend_one, lend_to, owners, read_from, with_device};
use crate::names::{added, deleted, moved, named};
use crate::unfollowed;
use crate::unknown::{Guessed, settled};
use penstock_host::{Files, Host, Loading, Output};
use penstock_lang::iptables;
use penstock_lang::tc::{self, Command, Env, batch};
use penstock_lang::token::Line;
use penstock_model::rtnetlink::Verb;
use penstock_model::{Diagnostic, Handle, Time};
use penstock_shell::Machine;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Transmit queues of a card that was there, where a script divides them.
const QUEUES: u32 = 16;

/// Whether a command takes something away.
fn what_deletes(what: &What) -> bool {
    let deletes = |c: &Command| match c {
        Command::Qdisc { req, .. } => req.verb == Verb::Del,
        Command::Class { req, .. } => req.verb == Verb::Del,
        Command::Filter { req, .. } => req.verb == Verb::Del,
        _ => false,
    };
    matches!(what, What::Tc(commands) if commands.iter().any(deletes))
}

/// What a device's part was made by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Part {
    /// The qdisc below a parent.
    Qdisc(Handle),
    Class(Handle),
}

/// The machine's side.
pub(crate) struct Watched<'a> {
    pub(crate) host: Host,
    /// The namespace that is looked at; none is the machine's first.
    pub(crate) focus: Option<String>,
    /// Other namespaces commands were carried out in, with the words that led there.
    pub(crate) spaces: BTreeMap<String, String>,
    /// Whether the script makes namespaces itself: then it makes all of them.
    pub(crate) makes_spaces: bool,
    pub(crate) log: &'a RefCell<Vec<Step>>,
    pub(crate) pending: &'a RefCell<Vec<(Step, Option<u32>)>>,
    /// Names the script makes devices of itself.
    pub(crate) own: BTreeSet<String>,
    pub(crate) foreign: BTreeSet<String>,
    pub(crate) made: BTreeSet<String>,
    pub(crate) gone: BTreeSet<String>,
    pub(crate) makers: BTreeMap<(String, Part), usize>,
    pub(crate) filters: BTreeMap<String, Filters>,
    pub(crate) lives: Vec<Device>,
    /// Whether a failing command ends the script.
    pub(crate) errexit: bool,
    /// Calls of `nft` that changed something, counted as the machine counts them, with the commands that they were.
    pub(crate) nft_calls: Vec<(u32, usize)>,
    /// What stands for the unknown.
    pub(crate) unknown: Option<String>,
    /// The device that an unknown one is taken for.
    pub(crate) dev: String,
    /// What the command at hand was given for its unknown words.
    pub(crate) guessed: Option<Guessed>,
    /// Whether the script asks for addresses: then devices that were there have one.
    pub(crate) asks_address: bool,
    /// Whether the script gets the names of devices from other programs: then one that turns out empty is unknown.
    pub(crate) asks_device: bool,
}

impl Machine for Watched<'_> {
    fn command(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        self.pending.borrow_mut().clear();
        let settled = self.settle(words, files);
        let words = settled.as_deref().unwrap_or(words);
        match elsewhere(words) {
            Some(there) => self.there(words, &there, files),
            None if self.focus.is_some() => self.aside(words, files),
            None => self.here(words, files),
        }
    }
    fn elsewhere(&mut self, words: &[String], files: &mut dyn Files) -> Option<Output> {
        self.pending.borrow_mut().clear();
        let there = elsewhere(words);
        // What cannot be read is kept, so that it can be told.
        if there.is_none() && words.iter().any(|w| w.contains(' ') && crate::embedded::speaks(w)) {
            self.note_aside(words, &Output::default());
            if let Some((step, _)) = self.pending.borrow_mut().last_mut() {
                step.unsimulated = Some(words[0].clone());
            }
        }
        Some(self.there(words, &there?, files))
    }
}

impl Watched<'_> {
    /// The words with something for each that is unknown; `None` where none is.
    fn settle(&mut self, words: &[String], files: &mut dyn Files) -> Option<Vec<String>> {
        self.guessed = None;
        let symbol = self.unknown.as_deref()?;
        // A pattern that fits none of the devices here (`/sys/class/net/e*`) fits those of the script's own machine.
        let patterns: Vec<String> =
            named(words).into_iter().filter(|n| n.contains(['*', '?', '['])).collect();
        let fitted: Option<Vec<String>> = (!patterns.is_empty()).then(|| {
            words.iter().map(|w| if patterns.contains(w) { self.dev.clone() } else { w.clone() }).collect()
        });
        let words = fitted.as_deref().unwrap_or(words);
        let devices = self.asks_device.then(|| with_device(words, symbol)).flatten();
        let given = devices.as_deref().unwrap_or(words);
        let Some((words, guessed)) = settled(given, symbol, &self.dev) else { return fitted };
        // Options that a variable may hold (`cake $OPTIONS`) are left out where the rest is a command.
        if !guessed.options.is_empty() && self.parse(&Line::of_words(&words), files).is_err() {
            let kept: Vec<usize> = (0..words.len()).filter(|at| !guessed.options.contains(at)).collect();
            let shorter: Vec<String> = kept.iter().map(|&at| words[at].clone()).collect();
            if self.parse(&Line::of_words(&shorter), files).is_ok() {
                let places = (0..kept.len()).filter(|&at| guessed.words.contains(&kept[at])).collect();
                self.guessed = Some(Guessed { words: places, options: BTreeSet::new(), ..guessed });
                return Some(shorter);
            }
        }
        let measures = guessed.measures && guessed.options.is_empty();
        self.guessed = Some(Guessed { measures, ..guessed });
        Some(words)
    }
    /// The namespace that is looked at.
    pub(crate) fn seen(&self) -> &Host {
        self.focus.as_deref().and_then(|place| self.host.netns(place)).unwrap_or(&self.host)
    }
    /// Does something in the namespace that is looked at.
    pub(crate) fn on<T>(&mut self, work: impl FnOnce(&mut Host) -> T) -> Option<T> {
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
        for Inner { words: inner, after } in &there.commands {
            let due = match after {
                After::Any => true,
                After::Success => all.status == 0,
                After::Failure => all.status != 0,
            };
            if !due {
                continue;
            }
            if inner.is_empty() {
                all.status = 0;
                continue;
            }
            let settled = self.settle(inner, files);
            let inner = settled.as_deref().unwrap_or(inner);
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
        // With a namespace go its devices, and the other ends of its veth pairs.
        if takes_space(words) {
            let devices: BTreeSet<String> = self.makers.keys().map(|k| k.0.clone()).collect();
            devices.iter().for_each(|dev| self.keep_life(dev));
        }
        let mut output = self.host.command(words, files, Time::ZERO);
        if takes_space(words) && self.focus.is_some() {
            let seen = self.focus.as_deref().and_then(|place| self.host.netns(place));
            let there = |dev: &str| seen.is_some_and(|host| host.ifindex(dev).is_some());
            self.makers.retain(|k, _| there(&k.0));
            self.filters.retain(|dev, _| there(dev));
        }
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
        let step = Step { words: kept, output, ..Step::new() };
        self.pending.borrow_mut().push((step, None));
    }

    /// A command for the namespace that is looked at.
    fn here(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        self.lend(words);
        self.speed(words);
        let line = Line::of_words(words);
        if words.first().is_some_and(|w| tc::is_tc(w)) {
            let parsed = self.parse(&line, files);
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
            "iptables" | "ip6tables" => {
                let known = owners(words).map(|w| Line::of_words(&w));
                let line = known.as_ref().unwrap_or(&line);
                iptables::parse(&line.words, self.host.kernel())
                    .map_or(What::Other, |c| What::Iptables(Box::new(c)))
            }
            "nft" | "iptables-restore" | "ip6tables-restore" => {
                let from = read_from(words);
                // What there is to read is read by whoever carries it out; here it is looked at only.
                let text = files.read(from).unwrap_or_default();
                // A file that nobody has given: what is in it is unknown, and the words are right.
                if let Some(symbol) = self.unknown.as_deref()
                    && from != "-"
                    && !text.trim().is_empty()
                    && text.split_whitespace().all(|w| w == symbol)
                {
                    let guessed = Some(Guessed { deep: true, whole: true, ..Guessed::default() });
                    let step = Step { words: words.to_vec(), guessed, ..Step::new() };
                    self.pending.borrow_mut().push((step, None));
                    return Output::default();
                }
                What::Rules(format!("{}\n{text}", words.join(" ")))
            }
            _ => What::Other,
        };
        self.step(words, what, None, files)
    }

    fn parse(&self, line: &Line, files: &mut dyn Files) -> Result<Vec<Command>, tc::Failure> {
        let device = |name: &str| {
            let index = self.seen().ifindex(name)?;
            Some(tc::Link { ifindex: index, speed_mbit: self.seen().device(index)?.speed_mbit })
        };
        let kernel = self.host.kernel();
        let objects = Loading::new(files, kernel, 0);
        tc::parse_in(&line.words, &Env { kernel, device: &device, objects: &objects })
    }

    /// Carries out one command and keeps it.
    fn step(&mut self, words: &[String], what: What, inner: Option<u32>, files: &mut dyn Files) -> Output {
        if let What::Tc(commands) = &what {
            commands.iter().for_each(|c| self.before(c));
        } else {
            self.before_link(words);
        }
        let known = owners(words);
        let carried = known.as_deref().unwrap_or(words);
        let mut output = self.on(|host| host.command(carried, files, Time::ZERO)).unwrap_or_default();
        let mut what = what;
        if output.status != 0
            && let Some((done, instead)) = self.elsewhere_only(words, &output, files)
        {
            (output, what) = (done, instead);
        }
        let mut unsimulated = self.unsimulated(words, &mut output);
        if output.status != 0
            && let Some((done, instead, left)) = self.not_followed(carried, &what, files)
        {
            (output, what, unsimulated) = (done, instead, Some(left));
        } else if unsimulated.is_some() {
            output = Output { stdout: self.unknown.clone().unwrap_or_default() + "\n", ..Output::default() };
            // A device of a kind that is not simulated is there all the same.
            if let Some(name) = added(words) {
                self.on(|host| lend_one(host, &name));
            }
        }
        if let Some(told) = self.told_by_peers(words).or_else(|| self.told_of_sockets(words, &output)) {
            output = told;
        }
        let at = self.log.borrow().len() + self.pending.borrow().len();
        let calls = self.seen().netfilter().nft_calls();
        if self.nft_calls.last().is_none_or(|c| c.0 != calls) {
            self.nft_calls.push((calls, at));
        }
        if output.status == 0 {
            if let What::Tc(commands) = &what {
                commands.iter().for_each(|c| self.after(c, at));
            } else {
                self.after_link(words);
            }
        }
        let guessed = self.guessed.clone();
        let step =
            Step { words: words.to_vec(), output: output.clone(), what, guessed, unsimulated, ..Step::new() };
        self.pending.borrow_mut().push((step, inner));
        output
    }

    /// What `wg` tells hangs on keys and peers that only the script's own machine has: it succeeds, and what it prints is unknown.
    fn told_by_peers(&self, words: &[String]) -> Option<Output> {
        let program = words.first()?.rsplit('/').next()?;
        let symbol = self.unknown.as_deref().filter(|_| program == "wg")?;
        let prints =
            !words.get(1).is_some_and(|w| matches!(w.as_str(), "set" | "setconf" | "addconf" | "syncconf"));
        let one = words.last().is_some_and(|w| {
            matches!(
                w.as_str(),
                "genkey"
                    | "genpsk"
                    | "pubkey"
                    | "peers"
                    | "public-key"
                    | "private-key"
                    | "listen-port"
                    | "fwmark"
                    | "interfaces"
            )
        });
        // A peer's line has several fields.
        let stdout = match (prints, one) {
            (false, _) => String::new(),
            (true, true) => format!("{symbol}\n"),
            (true, false) => format!("{}\n", [symbol; 8].join("\t")),
        };
        Some(Output { stdout, ..Output::default() })
    }
    /// Which sockets there are when `ss` is asked nobody has said: what it prints is unknown, where it has nothing against its words.
    fn told_of_sockets(&self, words: &[String], said: &Output) -> Option<Output> {
        let symbol = self.unknown.as_deref().filter(|_| said.status == 0)?;
        let about_itself = said.stdout.starts_with("Usage:") || said.stdout.starts_with("ss utility");
        let within = words.len() > 4 && words[1..3] == ["netns", "exec"];
        let program = words.get(if within { 4 } else { 0 })?;
        let asks = program.rsplit('/').next()? == "ss" && !about_itself;
        asks.then(|| Output { stdout: format!("{symbol}\n"), ..Output::default() })
    }
    /// What of a command Linux would have carried out and the machine here does not.
    fn unsimulated(&self, words: &[String], refused: &mut Output) -> Option<String> {
        if let Some(what) = refused.unsimulated() {
            return Some(what.rsplit(": ").next().unwrap_or(what).to_owned());
        }
        let program = words.first()?.rsplit('/').next()?;
        // What runs on the machine nobody has said.
        if matches!(program, "killall" | "pkill")
            && refused.stderr.lines().all(|l| l.ends_with(": no process found"))
        {
            *refused = Output::default();
        }
        if program == "radvd" && refused.stderr.starts_with("radvd: can't open") {
            return Some("radvd: its file, which is not given".to_owned());
        }
        if matches!(program, "pppd" | "pon" | "pppoe-server") && refused.status != 0 {
            if refused.stderr.contains("Can't open options file") {
                return Some(format!("{program}: a file of options that is not given"));
            }
            let said = refused.stderr.lines().find_map(|l| l.strip_suffix(" is not simulated"))?;
            let is_unknown = self.unknown.as_ref().is_some_and(|symbol| said.contains(symbol.as_str()));
            return Some(if is_unknown {
                format!("{program}: a file of options that is not given")
            } else {
                said.to_owned()
            });
        }
        let name = words.iter().skip(1).find(|w| !w.starts_with('-'))?;
        if let Some(key) = crate::rules::setting_missed(program, refused) {
            let meant = crate::rules::setting_meant(self.seen(), &key);
            return match meant {
                None => Some(key),
                Some(meant) => {
                    refused.diagnostics = vec![Diagnostic::error(key).help(meant)];
                    None
                }
            };
        }
        // A driver that the script's own machine has; those of queues are known here.
        let of_queues = ["sch_", "cls_", "act_", "em_"].iter().any(|p| name.starts_with(p));
        (program == "modprobe" && refused.status != 0 && !of_queues).then(|| format!("modprobe {name}"))
    }

    /// What becomes of a command that was refused for what a card or a file of the script's own machine may have.
    fn elsewhere_only(
        &mut self,
        words: &[String],
        refused: &Output,
        files: &mut dyn Files,
    ) -> Option<(Output, What)> {
        if !words.first().is_some_and(|w| tc::is_tc(w)) {
            return None;
        }
        // A device that the script makes is none of hardware: the kernel refuses there too.
        let name = words.iter().position(|w| w == "dev").and_then(|at| words.get(at + 1));
        let made = name.is_some_and(|n| self.made.contains(n) || self.own.contains(n));
        let soft = card::in_software(words, &refused.stderr);
        if let Some(soft) = soft.filter(|_| !(made && words.iter().any(|w| w == "skip_sw"))) {
            let output = self.on(|host| host.command(&soft, files, Time::ZERO)).unwrap_or_default();
            let what = self.parse(&Line::of_words(&soft), files).map_or(What::Other, What::Tc);
            return (output.status == 0).then_some((output, what));
        }
        let pinned =
            refused.stderr.contains("No such file or directory") && refused.stderr.contains("program");
        // A file that nobody has given is there, with what is unknown in it.
        let symbol = self.unknown.clone().unwrap_or_default();
        let given = |text: String| symbol.is_empty() || !text.contains(&symbol);
        let absent = card::object(words).is_some_and(|path| !files.read(path).is_ok_and(given));
        if card::loads_code(words) && (pinned || absent) {
            // What it does to packets nobody knows.
            self.guessed = Some(Guessed { deep: true, whole: true, ..Guessed::default() });
            return Some((Output::default(), What::Other));
        }
        None
    }

    /// What becomes of rules with matches and targets that are not here ([`crate::unfollowed`]): what was done, as what, and what of it is not followed.
    fn not_followed(
        &mut self,
        words: &[String],
        what: &What,
        files: &mut dyn Files,
    ) -> Option<(Output, What, String)> {
        let program = words.first()?.rsplit('/').next()?;
        let kernel = self.host.kernel();
        match (program, what) {
            ("iptables" | "ip6tables", _) => {
                let (soft, left) = unfollowed::without(words, kernel)?;
                let done = self.on(|host| host.command(&soft, files, Time::ZERO))?;
                let parsed = iptables::parse(&Line::of_words(&soft).words, kernel);
                let what = parsed.map_or(What::Other, |c| What::Iptables(Box::new(c)));
                Some((done, what, format!("{program} {left}")))
            }
            ("iptables-restore" | "ip6tables-restore", What::Rules(text)) => {
                let (head, text) = text.split_once('\n')?;
                let (text, left) =
                    unfollowed::without_in(text, program.trim_end_matches("-restore"), kernel)?;
                let mut files = unfollowed::Instead { files, name: read_from(words), text: &text };
                let done = self.on(|host| host.command(words, &mut files, Time::ZERO))?;
                Some((done, What::Rules(format!("{head}\n{text}")), format!("{program} {left}")))
            }
            _ => None,
        }
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
            if let Some(words) = self.settle(&inner, files) {
                inner = words;
            }
            self.lend(&inner);
            let what = self.parse(&Line::of_words(&inner), files).map_or(What::Other, What::Tc);
            let deletes = what_deletes(&what);
            let one = self.step(&inner, what, Some(line.number), files);
            if let Some((step, _)) = self.pending.borrow_mut().last_mut() {
                step.batch = Some(force);
            }
            all.stdout.push_str(&one.stdout);
            all.stderr.push_str(&one.stderr);
            if one.status != 0 {
                let said: Diagnostic =
                    one.diagnostics.first().cloned().unwrap_or_else(|| Diagnostic::error("failed"));
                all.diagnostics.push(said);
                all.stderr.push_str(&format!("Command failed {file}:{}\n", line.number));
                all.status = 1;
                // A deletion that finds nothing ends the batch; it is read on, and that is said.
                if !force && !deletes {
                    break;
                }
            }
        }
        all
    }

    /// Gives a card that was there a speed, where a share of it is asked for: `rate 50%`.
    fn speed(&mut self, words: &[String]) {
        let share = |w: &String| w.strip_suffix('%').is_some_and(|n| n.parse::<f64>().is_ok());
        let rates = ["rate", "ceil", "peakrate", "maxrate", "bandwidth"];
        let asks = words.windows(2).any(|w| rates.contains(&w[0].as_str()) && share(&w[1]));
        if let (true, Some(dev)) =
            (asks, words.iter().position(|w| w == "dev").and_then(|n| words.get(n + 1)))
            && self.foreign.contains(dev)
        {
            self.on(|host| host.exec(&format!("ethtool -s {dev} speed 1000 duplex full"), Time::ZERO));
        }
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
                if self.asks_address {
                    let number = self.foreign.len() + 3;
                    self.on(|host| {
                        host.exec(&format!("ip addr add 192.0.{number}.2/24 dev {name}"), Time::ZERO)
                    });
                }
                self.foreign.insert(name);
            }
        }
    }

    /// What is about to be torn down is kept as it stands.
    fn before(&mut self, command: &Command) {
        let Command::Qdisc { dev: Some(dev), req } = command else { return };
        // Who gives a card's queues to traffic classes has a card with several.
        let divides = matches!(req.kind.as_deref(), Some("taprio" | "mqprio" | "multiq"));
        if divides && self.foreign.contains(dev) && !self.makers.keys().any(|k| k.0 == *dev) {
            self.on(|host| host.set_tx_queues(dev, QUEUES));
        }
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
                        Some(kind) if penstock_sched::sch::ingress::is(kind) => Handle::INGRESS,
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
        if let Some(name) = deleted(words).filter(|name| !self.is_trial(name)) {
            self.keep_life(&name);
        }
    }
    /// Whether a device was made only to see whether a command works: nothing else was done since.
    fn is_trial(&self, name: &str) -> bool {
        let log = self.log.borrow();
        let made = log.iter().rposition(|s| added(&s.words).is_some_and(|n| n == name));
        made.is_some_and(|at| log.len() - at < 6 && log[at..].iter().all(|s| s.has(name)))
    }
    fn after_link(&mut self, words: &[String]) {
        if let Some(name) = deleted(words) {
            self.makers.retain(|k, _| k.0 != name);
            self.filters.remove(&name);
            self.gone.insert(name);
        }
        if let Some(name) = moved(words) {
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
    pub(crate) fn capture(&self, name: &str) -> Option<Device> {
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
        let (mut by_handle, mut by_parent) = (BTreeMap::new(), BTreeMap::new());
        for (at, qdisc) in qdiscs.iter().enumerate() {
            by_handle.entry(qdisc.handle).or_insert(at);
            by_parent.entry(qdisc.parent).or_insert(at);
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
            by_handle,
            by_parent,
        })
    }
}

/// Whether a command takes away a namespace.
fn takes_space(words: &[String]) -> bool {
    let mut plain = words.iter().map(String::as_str).filter(|w| !w.starts_with('-'));
    plain.next() == Some("ip")
        && plain.next() == Some("netns")
        && plain.next().is_some_and(|verb| verb.starts_with('d'))
}
