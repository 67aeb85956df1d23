//! The experiment file: machines, links, commands, traffic, expectations.
//!
//! TOML, every quantity written as tc writes it (`10mbit`, `15k`, `50ms`). Reading is strict: an unknown key, a
//! missing one, a value of the wrong kind, a name that means nothing are errors with file, line, column and what to
//! write instead, and all of them come at once. Nothing is read but what the file names (`base`, `@file`, `cisco`, `replay`), and of that
//! only regular files below the experiment's own folder and those that were allowed.

mod capture;
mod change;
mod device;
mod env;
mod expect;
mod form;
mod forms;
mod host;
mod lent;
mod link;
mod load;
mod meter;
mod queue;
mod read;
mod schema;
mod source;
mod spec;
mod sweep;
mod switch;
mod template;
mod test;
mod traffic;

pub use form::{Form, Key, Kind};
pub use lent::Lent;
pub use penstock_model::traffic::{Arrivals, Dist, Load, Sizes, TcpWishes};
pub use schema::{form, schema};
pub use source::{Place, Source, meant};
pub use spec::*;
pub use sweep::{Given, Sweep};
pub(crate) use sweep::{MOST, design};
pub use test::{CALLS, NOT_HERE, TESTS};
pub(crate) use traffic::program;

use penstock_files::Roots;
use penstock_model::{Diagnostic, Span};
use read::{Faults, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// Gives the text of a file that an experiment names, or a sentence why not.
pub type Loader<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// How deep one `base` may stand on another.
const BASES: usize = 8;
/// Longest run: a day.
const LONGEST: Span = Span::from_secs(86_400);

/// Reads an experiment from a file, with everything it names beside it.
///
/// # Errors
/// All faults, in the order of the text.
pub fn load(path: &Path) -> Result<Experiment, Vec<Diagnostic>> {
    load_with(path, &[])
}

/// The same; what the file names may lie below these folders too.
///
/// # Errors
/// All faults, in the order of the text.
pub fn load_with(path: &Path, allowed: &[PathBuf]) -> Result<Experiment, Vec<Diagnostic>> {
    let opened = Opened::new(path, allowed)?;
    parse_with(&opened.text, &opened.name, &|name| opened.file(name))
}

/// A file that was opened, before anybody reads what it says.
pub struct Opened {
    /// Its text.
    pub text: String,
    /// Its name as it was given.
    pub name: String,
    roots: Roots,
}

impl Opened {
    /// Opens a file; what it names may lie below these folders too.
    ///
    /// # Errors
    /// The file cannot be read, or there is no such folder.
    pub fn new(path: &Path, allowed: &[PathBuf]) -> Result<Opened, Vec<Diagnostic>> {
        let name = path.to_string_lossy().into_owned();
        let fault = |e: String| vec![Diagnostic::error(e)];
        let text = read_file(&name).map_err(|e| fault(format!("cannot read {name}: {e}")))?;
        let roots = allowed.iter().try_fold(Roots::beside(path).map_err(fault)?, |roots, folder| {
            roots.allow(folder).map_err(|e| fault(format!("--allow-path {e}")))
        })?;
        Ok(Opened { text, name, roots })
    }

    /// A text that lies in no file, by a name for its faults; what it names may lie below the folder of that name.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn of_text(text: String, name: &str) -> Result<Opened, Vec<Diagnostic>> {
        let roots = Roots::beside(Path::new(name)).map_err(|e| vec![Diagnostic::error(e)])?;
        Ok(Opened { text, name: name.to_owned(), roots })
    }

    /// The text of a file that it names.
    ///
    /// # Errors
    /// A sentence why it cannot be read.
    pub fn file(&self, path: &str) -> Result<String, String> {
        read_below(&self.roots, path)
    }
}

/// Reads a text file that somebody named on the command line: a regular one of bounded size. A capture is given as the recording that it is to
/// a flow, lines of time and size.
///
/// # Errors
/// A sentence why not.
pub fn read_file(path: &str) -> Result<String, String> {
    text_of(penstock_files::read(Path::new(path), penstock_files::TEXT)?, path)
}

/// The same of a file that another file names: below the folders that are allowed.
fn read_below(roots: &Roots, path: &str) -> Result<String, String> {
    text_of(roots.read(Path::new(path), penstock_files::LARGE)?, path)
}

fn text_of(bytes: Vec<u8>, path: &str) -> Result<String, String> {
    if penstock_replay::capture::is_capture(&bytes) {
        return load::of_capture(&bytes, path);
    }
    if bytes.len() as u64 > penstock_files::TEXT {
        return Err(format!("it is larger than {} MiB", penstock_files::TEXT >> 20));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("it is UTF-16; save it as UTF-8".to_owned());
    }
    penstock_model::binary::text_of(bytes).ok_or_else(|| "it is not a text file".to_owned())
}

/// A shell script in an experiment's place: its first command is not TOML either, and that alone would not say what to do.
fn script(source: &Source) -> Option<Diagnostic> {
    let command = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|w| *w == "sudo");
        let program = words.next().unwrap_or_default();
        let known = ["tc", "ip", "iptables", "ip6tables", "nft", "sysctl", "modprobe", "ifconfig"];
        known.contains(&program) && words.next().is_some_and(|w| w != "=")
    };
    let mut at = 0;
    for line in source.text.split_inclusive('\n') {
        // From here on it is TOML; a text of several lines may hold commands.
        if line.trim_start().starts_with('[') || line.split_whitespace().nth(1) == Some("=") {
            return None;
        }
        let end = at + line.trim_end().len();
        if line.starts_with("#!") || command(line) {
            let name = &source.name;
            let help = format!(
                "penstock check {name} reads it; to run it in a network: setup = [\"@{name}\"] of a [host], as penstock new my-script writes"
            );
            return Some(source.fault(at..end, "this is a shell script, not an experiment", help));
        }
        at += line.len();
    }
    None
}

/// Reads an experiment from its text; `file` is its name, and the files it names are read from beside it.
///
/// # Errors
/// All faults, in the order of the text.
pub fn parse(text: &str, file: &str) -> Result<Experiment, Vec<Diagnostic>> {
    parse_with(text, file, &|name| read_below(&Roots::beside(Path::new(file))?, name))
}

/// The same with a `loader` that gives the files it names.
///
/// # Errors
/// All faults, in the order of the text.
pub fn parse_with(text: &str, file: &str, loader: Loader<'_>) -> Result<Experiment, Vec<Diagnostic>> {
    let mut builder = Builder::new(loader);
    builder.file(text.to_owned(), file, 0);
    builder.finish(file)
}

/// What is being put together from a file and its bases.
struct Builder<'l> {
    loader: Loader<'l>,
    experiment: Experiment,
    kernel: Option<host::Profile>,
    setup_may_fail: Option<bool>,
    hosts: Vec<host::Draft>,
    switches: Vec<switch::Switch>,
    /// Where each of the experiment's hosts stands: hosts are only added.
    known: BTreeMap<String, usize>,
    /// The names of the devices of hosts that have many.
    indexed: BTreeMap<String, BTreeSet<String>>,
    apps: Vec<traffic::AppDraft>,
    tests: Vec<test::Draft>,
    expects: Vec<expect::Draft>,
    faults: Vec<Diagnostic>,
}

impl<'l> Builder<'l> {
    fn new(loader: Loader<'l>) -> Builder<'l> {
        let experiment = Experiment { duration: Span::from_secs(10), seed: 1, ..Experiment::default() };
        Builder {
            loader,
            experiment,
            kernel: None,
            setup_may_fail: None,
            hosts: Vec::new(),
            switches: Vec::new(),
            known: BTreeMap::new(),
            indexed: BTreeMap::new(),
            apps: Vec::new(),
            tests: Vec::new(),
            expects: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Reads one file over what its base says.
    fn file(&mut self, text: String, name: &str, depth: usize) {
        let index = self.experiment.sources.len();
        let source = Source { name: name.to_owned(), text };
        self.experiment.sources.push(source.clone());
        let (mut root, errors) = DeTable::parse_recoverable(&source.text);
        if let Some(fault) = script(&source).filter(|_| !errors.is_empty()) {
            self.faults.push(fault);
            return;
        }
        if !errors.is_empty() {
            // What follows from a text that is not TOML would only confuse.
            self.faults.extend(errors.iter().map(|e| {
                let span = e.span().unwrap_or(0..0);
                source.fault(span, e.message().trim().replace('\n', "; "), "this is not TOML")
            }));
            return;
        }
        let mut list = Vec::new();
        let faults = &mut Faults { source: &source, index, list: &mut list };
        template::expand(root.get_mut(), faults);
        if !faults.list.is_empty() {
            // What a wrong template leads to would only confuse.
            self.faults.append(&mut list);
            return;
        }
        let mut table = Table::new(root.get_ref(), root.span(), "an experiment", &forms::EXPERIMENT);
        if let Some(value) = table.take("base")
            && let Some(path) = read::string("base", value, faults)
        {
            let place = value.span();
            if depth >= BASES {
                faults.add(place, "base: files extend one another too deeply", "does one name itself?");
            } else {
                match self.open(&path, name) {
                    Ok((path, text)) => {
                        self.file(text, &path, depth + 1);
                        // What to expect of another experiment says nothing about this one.
                        self.expects.clear();
                        self.experiment.sweep = None;
                    }
                    Err(e) => faults.add(
                        place,
                        format!("base: cannot read {path}: {e}"),
                        format!("the path is read from the folder of {name}"),
                    ),
                }
            }
        }
        self.head(&mut table, faults);
        self.read_hosts(&mut table, faults);
        self.read_switches(&mut table, faults);
        self.read_links(&mut table, faults);
        self.read_apps(&mut table, faults);
        self.read_flows(&mut table, faults);
        self.read_tests(&mut table, faults);
        self.read_meters(&mut table, faults);
        self.read_captures(&mut table, faults);
        self.read_expects(&mut table, faults);
        self.read_sweep(&mut table, faults);
        table.finish(faults);
        self.faults.append(&mut list);
    }

    fn head(&mut self, table: &mut Table<'_>, faults: &mut Faults<'_>) {
        if let Some(title) = table.take("title").and_then(|v| read::string("title", v, faults)) {
            self.experiment.title = title;
        }
        if let Some(about) = table.take("about").and_then(|v| read::string("about", v, faults)) {
            self.experiment.about = Some(about);
        }
        if let Some(value) = table.take("duration")
            && let Some(span) = read::time("duration", value, faults)
        {
            let right = span > Span::ZERO && span <= LONGEST;
            if !right {
                faults.add(value.span(), "duration is out of range", "write more than 0s, at most 86400s");
            }
            // With a wrong one, what starts too late for it would be told once more.
            self.experiment.duration = if right { span } else { LONGEST };
        }
        if let Some(value) = table.take("warmup")
            && let Some(span) = read::time("warmup", value, faults)
        {
            if span >= self.experiment.duration {
                faults.add(value.span(), "the run is all warm-up", "write less than its duration");
            }
            self.experiment.warmup = span;
        }
        if let Some(value) = table.take("seed")
            && let Some(seed) = read::integer("seed", value, 0..i64::MAX as u64, faults)
        {
            self.experiment.seed = seed;
        }
        if let Some(value) = table.take("sample")
            && let Some(span) = read::time("sample", value, faults)
        {
            if span < Span::from_us(100) {
                faults.add(value.span(), "sample is out of range", "write 100us or more");
            }
            self.experiment.sample = Some(span);
        }
        if let Some(value) = table.take("offloads") {
            self.experiment.offloads = read::boolean("offloads", value, faults).unwrap_or_default();
        }
        if let Some(value) = table.take("kernel") {
            self.kernel = host::kernel(value, faults).or(self.kernel);
        }
        if let Some(value) = table.take("setup_may_fail") {
            self.setup_may_fail = read::boolean("setup_may_fail", value, faults).or(self.setup_may_fail);
        }
    }

    /// A file named by `from`: its path and text.
    fn open(&self, path: &str, from: &str) -> Result<(String, String), String> {
        let beside = Path::new(from).parent().filter(|p| !p.as_os_str().is_empty());
        let full = match beside {
            Some(folder) if !Path::new(path).is_absolute() => {
                folder.join(path).to_string_lossy().into_owned()
            }
            _ => path.to_owned(),
        };
        let text = (self.loader)(&full)?;
        Ok((full, text))
    }

    /// The lines of `@file`, or the text itself.
    fn script(
        &mut self,
        text: &str,
        what: &str,
        span: std::ops::Range<usize>,
        faults: &mut Faults<'_>,
    ) -> Option<Script> {
        let place = faults.place(span.clone());
        let Some(path) = text.strip_prefix('@') else {
            let line = faults.source.line(span.start);
            return Some(Script { file: faults.source.name.clone(), line, text: text.to_owned(), place });
        };
        match self.open(path, &faults.source.name) {
            Ok((file, text)) => {
                if !self.experiment.sources.iter().any(|s| s.name == file) {
                    self.experiment.sources.push(Source { name: file.clone(), text: text.clone() });
                }
                Some(Script { file, line: 1, text, place })
            }
            Err(e) => {
                let help = format!("the path is read from the folder of {}", faults.source.name);
                faults.add(span, format!("{what}: cannot read {path}: {e}"), help);
                None
            }
        }
    }

    fn fault(&mut self, place: &Place, message: impl Into<String>, help: impl Into<String>) {
        let fault = self.experiment.sources[place.source].fault(place.span.clone(), message, help);
        self.faults.push(fault);
    }

    /// What only the whole can tell: names that mean something, each end used once.
    fn finish(mut self, file: &str) -> Result<Experiment, Vec<Diagnostic>> {
        self.finish_switches();
        self.finish_hosts();
        self.finish_links();
        self.finish_tests();
        self.finish_apps();
        self.finish_flows();
        self.finish_meters();
        self.finish_captures();
        if self.faults.is_empty() {
            self.finish_expects();
        }
        self.experiment.lent = lent::of(&self.experiment, self.loader);
        if self.experiment.hosts.is_empty() && self.faults.is_empty() {
            let place = Place::default();
            self.fault(&place, "there is no host", "add e.g. [host.u1] with eth0 = \"10.0.0.1/24\"");
        }
        if self.experiment.title.is_empty() {
            let stem = Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned());
            self.experiment.title = stem.unwrap_or_default();
        }
        if !self.faults.is_empty() {
            let order = |f: &str| self.experiment.sources.iter().position(|s| s.name == f);
            self.faults.sort_by_key(|d| (order(&d.file), d.line, d.column));
            // Copies of a template have the same fault at the same place, with other numbers.
            self.faults.dedup_by_key(|d| (d.file.clone(), d.line, d.column, without_numbers(&d.message)));
            return Err(self.faults);
        }
        Ok(self.experiment)
    }
}

/// A text with `#` in place of each number.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_ascii_digit() {
            true if out.ends_with('#') => {}
            true => out.push('#'),
            false => out.push(c),
        }
    }
    out
}

impl Experiment {
    /// Distance of the samples of its series.
    pub fn sample(&self) -> Span {
        self.sample.unwrap_or_else(|| {
            let least = (self.duration.as_ns() / 250).max(100_000);
            let mut power = 100_000i64;
            loop {
                for factor in [1, 2, 5] {
                    if power * factor >= least {
                        return Span::from_ns(power * factor);
                    }
                }
                power *= 10;
            }
        })
    }
    /// The name of its file, without folder and ending.
    pub fn stem(&self) -> String {
        let name = self.sources.first().map_or("experiment", |s| s.name.as_str());
        Path::new(name).file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned())
    }
    /// A host by its name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|h| h.name == name)
    }
}

#[cfg(test)]
mod tests;
