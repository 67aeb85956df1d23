//! What a sweep is going to run: parameters, points, seeds, figures; all of it checked before the first run.

use super::design;
use super::edit::{Fault, Path, Texts};
use super::value::{Quantity, Value, Values};
use crate::experiment::{self, Experiment, Given, Loader, Measure, Place, Source, Subject};
use penstock_measure::sweep::{Figure, Parameter, Point};
use penstock_model::Diagnostic;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// What somebody asks for beside the table `[sweep]` of the file, and in place of what stands there.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wishes {
    /// `link.uplink.rate=10mbit,20mbit`.
    pub set: Vec<String>,
    /// How many seeds.
    pub seeds: Option<u64>,
    /// The first seed.
    pub seed: Option<u64>,
    /// How the points are chosen.
    pub design: Option<String>,
    /// How many points a random design has.
    pub points: Option<u64>,
    /// Figures in the words of expectations.
    pub figures: Vec<String>,
    /// Two figures between which compromises are sought.
    pub pareto: Vec<String>,
}

/// A sweep, ready to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiment's title.
    pub title: String,
    /// The design's name.
    pub design: &'static str,
    /// What is varied.
    pub parameters: Vec<Parameter>,
    /// The points.
    pub points: Vec<Point>,
    /// The seeds of every point.
    pub seeds: Vec<u64>,
    /// What is measured of every run.
    pub figures: Vec<Figure>,
    /// Two of these, by their places.
    pub pareto: Option<(usize, usize)>,
    /// The largest of the experiments, in memory.
    pub largest: Experiment,
    texts: Texts,
    paths: Vec<Path>,
    values: Vec<Vec<Value>>,
    /// What each parameter may be.
    axes: Vec<Values>,
    files: BTreeMap<String, Result<String, String>>,
}

/// A parameter with the place it was written at.
struct Setting {
    path: Path,
    values: Values,
    /// What it was written in, where its path and its values stand.
    source: Source,
    at: Range<usize>,
    value_at: Range<usize>,
    /// Whether spans within the path are places of the source too: they are not where TOML has escapes.
    exact: bool,
}

/// Most points.
const POINTS: usize = experiment::MOST as usize;
/// Points of a random design where nobody says how many.
const DRAWN: u64 = 20;
/// Apps, and flows, whose usual figures are kept.
const KEPT: usize = 64;
/// Figures that are shown where nobody asks for any.
const SHOWN: usize = 6;
/// Most faults that are told.
const FAULTS: usize = 10;

impl Plan {
    /// Reads the experiment, finds what is varied, and reads it at every point.
    ///
    /// # Errors
    /// All faults, each with its place: in the file, or in what stands behind `--set`.
    pub fn new(text: &str, name: &str, loader: Loader<'_>, wishes: &Wishes) -> Result<Plan, Vec<Diagnostic>> {
        Plan::read_all(text, name, loader, wishes, false)
    }

    /// The same without points: whoever searches adds them by [`Plan::add`].
    pub(crate) fn open(
        text: &str,
        name: &str,
        loader: Loader<'_>,
        wishes: &Wishes,
    ) -> Result<Plan, Vec<Diagnostic>> {
        Plan::read_all(text, name, loader, wishes, true)
    }

    fn read_all(
        text: &str,
        name: &str,
        loader: Loader<'_>,
        wishes: &Wishes,
        search: bool,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let files = RefCell::new(BTreeMap::new());
        let kept = |path: &str| -> Result<String, String> {
            if let Some(known) = files.borrow().get(path) {
                return Clone::clone(known);
            }
            let read = loader(path);
            files.borrow_mut().insert(path.to_owned(), read.clone());
            read
        };
        let plain = experiment::parse_with(text, name, &kept)?;
        let texts = Texts::read(text, name, &kept);
        let table = plain.sweep.clone().unwrap_or_default();
        let mut settings = Vec::new();
        let mut faults = Vec::new();
        for (path, place, given) in &table.set {
            let source = &plain.sources[place.source];
            match in_file(&plain, path, place, given, source) {
                Ok(setting) => settings.push(setting),
                Err(fault) => faults.push(fault),
            }
        }
        for word in &wishes.set {
            match on_command_line(&plain, word) {
                // What is said here takes the place of what the file says.
                Ok(setting) => match settings.iter_mut().find(|s| s.path.shown() == setting.path.shown()) {
                    Some(old) => *old = setting,
                    None => settings.push(setting),
                },
                Err(fault) => faults.push(fault),
            }
        }
        if settings.is_empty() && faults.is_empty() {
            let help = "add --set 'link.uplink.rate=10mbit,20mbit', or a table [sweep] to the file";
            faults.push(Diagnostic::error("nothing is varied").help(help));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let plan = Plan {
            title: plain.title.clone(),
            design: "grid",
            parameters: Vec::new(),
            points: Vec::new(),
            seeds: Vec::new(),
            figures: Vec::new(),
            pareto: None,
            largest: plain.clone(),
            texts,
            paths: settings.iter().map(|s| s.path.clone()).collect(),
            values: Vec::new(),
            axes: settings.iter().map(|s| s.values.clone()).collect(),
            files: BTreeMap::new(),
        };
        plan.try_each(&settings, &kept)?;
        plan.choose(&plain, &table, &settings, wishes, search, &kept)
            .map(|plan| Plan { files: files.take(), ..plan })
    }

    /// Tries every value of every parameter by itself, with the first values of the others.
    fn try_each(&self, settings: &[Setting], loader: Loader<'_>) -> Result<(), Vec<Diagnostic>> {
        let first: Vec<Value> = settings.iter().map(|s| s.values.at(0.0)).collect();
        let mut faults = Vec::new();
        for (n, setting) in settings.iter().enumerate() {
            for value in setting.values.tried() {
                let point: Vec<Value> = first
                    .iter()
                    .enumerate()
                    .map(|(i, v)| if i == n { value.clone() } else { v.clone() })
                    .collect();
                let mut texts = self.texts.clone();
                if let Err(fault) = texts.put(&setting.path, &value) {
                    faults.push(setting.fault(fault));
                    break;
                }
                // What is wrong with another parameter is told as that one's.
                let Err(why) = self.read(&point, loader) else { continue };
                let Err(own) = read(&texts, loader) else { continue };
                let head = format!("{} = {}: ", setting.path.shown(), value.shown);
                if let Some(fault) = own.into_iter().chain(why).next() {
                    let span = setting.place_of(&value);
                    faults.push(setting.source.fault(span, head + &fault.message, fault.help));
                }
            }
        }
        faults.truncate(FAULTS);
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Chooses points, seeds and figures.
    fn choose(
        mut self,
        plain: &Experiment,
        table: &experiment::Sweep,
        settings: &[Setting],
        wishes: &Wishes,
        search: bool,
        loader: Loader<'_>,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let one = |fault: Diagnostic| vec![fault];
        self.design = match &wishes.design {
            _ if search => "search",
            None => table.design.unwrap_or("grid"),
            Some(name) => experiment::design(name).map_err(|help| {
                let text = Source { name: "--design".to_owned(), text: name.clone() };
                one(text.fault(0..name.len(), format!("\"{name}\" is no design"), help))
            })?,
        };
        let first = wishes.seed.unwrap_or(plain.seed);
        let count = wishes.seeds.or(table.seeds).unwrap_or(1);
        self.seeds = (0..count).map(|n| first.wrapping_add(n)).collect();
        let shown: Vec<String> = settings.iter().map(|s| s.path.shown()).collect();
        let axes: Vec<design::Axis<'_>> =
            shown.iter().zip(settings).map(|(path, s)| (path.as_str(), &s.values)).collect();
        self.values = match self.design {
            // What is measured, and how much memory it takes, is found at the ends of the ranges.
            "search" => {
                let tried: Vec<Vec<Value>> = settings.iter().map(|s| s.values.tried()).collect();
                let most = tried.iter().map(Vec::len).max().unwrap_or(0);
                let at = |n: usize| tried.iter().map(|v| v[n.min(v.len() - 1)].clone()).collect();
                (0..most).map(at).collect()
            }
            "grid" => {
                if let Some(open) = settings.iter().find(|s| s.values.grid().is_none()) {
                    let help =
                        "say how many values it has, e.g. /5 behind it; or take --design random or latin";
                    let message = "a grid needs values, not a range";
                    return Err(one(open.source.fault(open.value_at.clone(), message, help)));
                }
                let help = "take fewer values, or --design latin --points 1000";
                design::grid(&axes, POINTS).ok_or_else(|| {
                    one(Diagnostic::error(format!("there are more than {POINTS} points")).help(help))
                })?
            }
            other => {
                let count = wishes.points.or(table.points).unwrap_or(DRAWN) as usize;
                design::drawn(&axes, count, other == "latin", first)
            }
        };
        let quantities: Vec<Option<Quantity>> = (0..settings.len())
            .map(|n| {
                let mut all = self.values.iter().map(|point| Quantity::of(&point[n].shown).map(|q| q.0));
                let kind = all.next().flatten()?;
                all.all(|other| other == Some(kind)).then_some(kind)
            })
            .collect();
        let parameter = |(path, quantity): (&String, &Option<Quantity>)| Parameter {
            path: path.clone(),
            unit: quantity.map(Quantity::suffix),
        };
        self.parameters = shown.iter().zip(&quantities).map(parameter).collect();
        let number = |(value, quantity): (&Value, &Option<Quantity>)| {
            Quantity::of(&value.shown).filter(|_| quantity.is_some()).map(|q| q.1)
        };
        let point = |values: &Vec<Value>| Point {
            values: values.iter().map(|v| v.shown.clone()).collect(),
            numbers: values.iter().zip(&quantities).map(number).collect(),
        };
        self.points = self.values.iter().map(point).collect();
        let mut plan = self.figures(table, wishes, loader)?;
        if search {
            plan.points.clear();
            plan.values.clear();
        }
        Ok(plan)
    }

    /// How many values a parameter has; `None`: it has a range.
    pub(crate) fn choices(&self, parameter: usize) -> Option<usize> {
        match &self.axes[parameter] {
            Values::List(values) => Some(values.len()),
            Values::Range(range) => range.steps,
        }
    }

    /// Adds the point at these shares of the parameters' values, 0..=1 each, unless it is there. The number of the point, and whether it is new.
    pub(crate) fn add(&mut self, shares: &[f64]) -> (usize, bool) {
        let value = |(axis, &share): (&Values, &f64)| match axis.grid() {
            Some(values) => values[((share * values.len() as f64) as usize).min(values.len() - 1)].clone(),
            None => axis.at(share),
        };
        let values: Vec<Value> = self.axes.iter().zip(shares).map(value).collect();
        if let Some(known) = self.values.iter().position(|v| *v == values) {
            return (known, false);
        }
        let numbers = values.iter().zip(&self.parameters);
        let numbers = numbers.map(|(v, p)| p.unit.and(Quantity::of(&v.shown)).map(|q| q.1)).collect();
        self.points.push(Point { values: values.iter().map(|v| v.shown.clone()).collect(), numbers });
        self.values.push(values);
        (self.points.len() - 1, true)
    }

    /// Reads the experiment at every point, and finds what is to be measured there.
    fn figures(
        mut self,
        table: &experiment::Sweep,
        wishes: &Wishes,
        loader: Loader<'_>,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let words =
            |given: &[String], flag: &str, file: &[(String, Place)]| -> Vec<(String, Source, Range<usize>)> {
                let source = |text: &String| Source { name: flag.to_owned(), text: text.clone() };
                match given.is_empty() {
                    false => given.iter().map(|w| (w.clone(), source(w), 0..w.len())).collect(),
                    true => file
                        .iter()
                        .map(|(w, p)| (w.clone(), self.largest.sources[p.source].clone(), p.span.clone()))
                        .collect(),
                }
            };
        let asked = words(&wishes.figures, "--figure", &table.figures);
        let pareto = words(&wishes.pareto, "--pareto", &table.pareto);
        let mut usual: Vec<Figure> = Vec::new();
        let mut expected: Vec<String> = Vec::new();
        let mut known: Vec<Figure> = Vec::new();
        for (n, values) in self.values.iter().enumerate() {
            let experiment = self.read(values, loader).map_err(|mut faults| {
                faults.truncate(FAULTS);
                let help = format!("at the point {}", self.point_text(n));
                faults
                    .into_iter()
                    .map(|f| Diagnostic { help: format!("{} ({help})", f.help), ..f })
                    .collect::<Vec<_>>()
            })?;
            for (what, source, span) in asked.iter().chain(&pareto) {
                let found = figure(&experiment, what);
                let unit =
                    found.map_err(|(message, help)| vec![source.fault(span.clone(), message, help)])?.1;
                if !known.iter().any(|f| f.what == *what) {
                    known.push(Figure { what: what.clone(), unit, shown: true, more: None });
                }
            }
            for expect in &experiment.expects {
                if !expected.contains(&expect.what) {
                    expected.push(expect.what.clone());
                }
            }
            for what in usual_figures(&experiment) {
                if let Ok((_, unit)) = experiment.figure(&what)
                    && !usual.iter().any(|f| f.what == what)
                {
                    usual.push(Figure { what, unit, shown: false, more: None });
                }
            }
            if crate::run::memory::needed(&experiment) > crate::run::memory::needed(&self.largest) {
                self.largest = experiment;
            }
        }
        let place = |what: &str, all: &[Figure]| all.iter().position(|f| f.what == what);
        let mut shown = if known.is_empty() { SHOWN } else { 0 };
        for mut other in usual {
            if place(&other.what, &known).is_none() {
                // Without a wish the expectations' figures are shown, else the first of the usual.
                let fits = expected.is_empty() || expected.contains(&other.what);
                other.shown = fits && shown > 0;
                shown -= usize::from(other.shown);
                known.push(other);
            }
        }
        if let [(a, ..), (b, ..), ..] = &pareto[..] {
            self.pareto = place(a, &known).zip(place(b, &known));
        }
        self.figures = known;
        Ok(self)
    }

    /// The experiment at a point.
    ///
    /// # Errors
    /// What is wrong with it; that was told when the plan was made.
    pub fn experiment(&self, point: usize) -> Result<Experiment, Vec<Diagnostic>> {
        let none = || Err("it was not there when the sweep was planned".to_owned());
        let loader: Loader<'_> = &|path| self.files.get(path).cloned().unwrap_or_else(none);
        let mut experiment = self.read(&self.values[point], loader)?;
        // A sweep keeps figures, no run folders.
        experiment.captures.clear();
        Ok(experiment)
    }

    fn read(&self, values: &[Value], loader: Loader<'_>) -> Result<Experiment, Vec<Diagnostic>> {
        let mut texts = self.texts.clone();
        for (path, value) in self.paths.iter().zip(values) {
            texts.put(path, value).map_err(|f| vec![Diagnostic::error(f.message).help(f.help)])?;
        }
        read(&texts, loader)
    }

    /// The files that the experiment names, by their paths, and their texts or why they cannot be read: with the experiment's own text and the wishes they are all that
    /// [`Plan::new`] needs to make the same plan elsewhere.
    pub fn files(&self) -> &BTreeMap<String, Result<String, String>> {
        &self.files
    }

    /// A point in words.
    pub fn point_text(&self, point: usize) -> String {
        let pairs = self.parameters.iter().zip(&self.points[point].values);
        pairs.map(|(p, v)| format!("{}={v}", p.path)).collect::<Vec<_>>().join(" ")
    }
}

fn read(texts: &Texts, loader: Loader<'_>) -> Result<Experiment, Vec<Diagnostic>> {
    let main = &texts.0[0];
    experiment::parse_with(&main.text, &main.name, &|path| match texts.0[1..].iter().find(|s| s.name == path)
    {
        Some(base) => Ok(base.text.clone()),
        None => loader(path),
    })
}

/// What a figure measures in an experiment, and its unit; what is wrong and what to write where it measures nothing.
pub(crate) fn figure(
    experiment: &Experiment,
    what: &str,
) -> Result<(Measure, &'static str), (String, String)> {
    let (measure, unit) = experiment.figure(what)?;
    let watched = || experiment.expects.iter().any(|e| e.measure == measure);
    if matches!(measure.subject, Subject::Phb { .. }) && !watched() {
        let help = format!("add [[expect]] with what = \"{what}\" and a value to the file");
        return Err((
            "the packets of a code point are watched only where an expectation asks".to_owned(),
            help,
        ));
    }
    Ok((measure, unit))
}

/// What is kept of every run: the figures of the expectations, and the usual ones of programs, flows and groups.
pub fn usual_figures(experiment: &Experiment) -> Vec<String> {
    let mut all: Vec<String> = experiment.expects.iter().map(|e| e.what.clone()).collect();
    let mut add = |name: &str, figures: &[&str]| all.extend(figures.iter().map(|f| format!("{name} {f}")));
    for app in experiment.apps.iter().take(KEPT) {
        add(&app.name, &["throughput", "rtt p50", "rtt p95", "loss", "jitter", "retransmits", "duration"]);
    }
    for flow in experiment.flows.iter().take(KEPT) {
        add(&flow.name, &["goodput", "owd p50", "owd p99", "loss", "retransmits", "marked", "duration"]);
    }
    let mut groups: Vec<&String> = experiment.flows.iter().filter_map(|f| f.group.as_ref()).collect();
    groups.dedup();
    for group in groups.into_iter().take(KEPT) {
        add(group, &["goodput", "owd p50", "owd p99", "loss", "fairness"]);
    }
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|what| seen.insert(what.clone()));
    all
}

/// A parameter of the table `[sweep]`.
fn in_file(
    experiment: &Experiment,
    path: &str,
    place: &Place,
    given: &Given,
    source: &Source,
) -> Result<Setting, Diagnostic> {
    let at = place.span.clone();
    let path = match path.strip_prefix('$') {
        None => path.to_owned(),
        Some(name) => variable(experiment, name).map_err(|(m, h)| source.fault(at.clone(), m, h))?,
    };
    let parsed = Path::parse(&path).map_err(|f| source.fault(at.clone(), f.message, f.help))?;
    let (values, value_at) = match given {
        Given::Text(text, place) => {
            let values = Values::parse(text);
            let values =
                values.map_err(|(_, message, help)| source.fault(place.span.clone(), message, help))?;
            (values, place.span.clone())
        }
        Given::List(items) => {
            let span = items.first().map_or(0, |i| i.1.span.start)..items.last().map_or(0, |i| i.1.span.end);
            (Values::List(items.iter().map(|(raw, _)| Value::of(raw)).collect()), span)
        }
    };
    Ok(Setting { path: parsed, values, source: source.clone(), at, value_at, exact: false })
}

/// The path of `$RATE`: the variable of the one host whose setup has it.
fn variable(experiment: &Experiment, name: &str) -> Result<String, (String, String)> {
    let has = |text: &str| {
        text.match_indices(name).any(|(at, _)| {
            let ends = !text[at + name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            ends && (text[..at].ends_with('$') || text[..at].ends_with("${"))
        })
    };
    let hosts: Vec<&str> = experiment
        .hosts
        .iter()
        .filter(|h| h.setup.iter().any(|s| has(&s.text)))
        .map(|h| h.name.as_str())
        .collect();
    let path = |host: &str| format!("host.{}.env.{name}", penstock_lang::toml::key(host));
    match &hosts[..] {
        [host] => Ok(path(host)),
        [] => Err((
            format!("no setup has ${name}"),
            format!("write ${{{name}:=10mbit}} where the setup has the value"),
        )),
        [a, b, ..] => {
            let all = hosts.len();
            Err((
                format!("the setups of {all} hosts have ${name}"),
                format!("write {} or {}", path(a), path(b)),
            ))
        }
    }
}

/// A parameter of the command line: `PATH=VALUES`, or `$NAME=VALUES` for a variable of a setup.
fn on_command_line(experiment: &Experiment, word: &str) -> Result<Setting, Diagnostic> {
    let source = Source { name: "--set".to_owned(), text: word.to_owned() };
    let mut quote = None;
    let equals = word.char_indices().find(|&(_, c)| {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        quote.is_none() && c == '='
    });
    let Some((at, _)) = equals else {
        let help = "write a path, = and values: link.uplink.rate=10mbit,20mbit";
        return Err(source.fault(0..word.len(), "there is no \"=\"", help));
    };
    let (path, exact) = match word[..at].trim_end().strip_prefix('$') {
        None => (word[..at].trim_end().to_owned(), true),
        Some(name) => {
            let found = variable(experiment, name);
            (found.map_err(|(message, help)| source.fault(0..at, message, help))?, false)
        }
    };
    let path = Path::parse(&path)
        .map_err(|f| source.fault(if exact { f.span } else { 0..at }, f.message, f.help))?;
    let values = Values::parse(&word[at + 1..]);
    let values = values.map_err(|(span, message, help)| {
        source.fault(span.start + at + 1..span.end + at + 1, message, help)
    })?;
    Ok(Setting { path, values, source, at: 0..at, value_at: at + 1..word.len(), exact })
}

impl Setting {
    fn fault(&self, fault: Fault) -> Diagnostic {
        let span = if self.exact { fault.span } else { self.at.clone() };
        self.source.fault(span, fault.message, fault.help)
    }

    /// Where a value stands, as far as it can be found again.
    fn place_of(&self, value: &Value) -> Range<usize> {
        let text = &self.source.text[self.value_at.clone()];
        text.find(&value.shown).map_or(self.value_at.clone(), |at| {
            let from = self.value_at.start + at;
            from..from + value.shown.len()
        })
    }
}
