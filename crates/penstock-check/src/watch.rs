//! Runs a script on a virtual machine and keeps what the rules want to know.
//!
//! Devices the script names and does not make are there: the machine makes each when it is first named. Those the script itself
//! makes, or takes away, are not.

use crate::Settings;
use crate::explore::Variant;
use crate::facts::{Device, Facts, Step};
use crate::machine::Watched;
use crate::marks::Netfilter;
use crate::python::{Python, Runs};
use crate::source::{Form, Source, without_sudo};
use crate::sourced::Whole;
use crate::standing::OfNft;
use crate::syntax::Syntax;
use penstock_host::{Host, NoFiles, Program};
use penstock_model::Time;
use penstock_shell::{Console, Given, Kept, Machine, Script};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// The script's side.
struct Keep<'a> {
    log: &'a RefCell<Vec<Step>>,
    pending: &'a RefCell<Vec<(Step, Option<u32>)>>,
    source: &'a Source,
    whole: &'a Whole,
    name: String,
    stderr: String,
    syntax: Option<&'a Syntax>,
    reached: BTreeSet<usize>,
    unknown: BTreeSet<(String, u32)>,
    hidden: BTreeSet<u32>,
}

impl Console for Keep<'_> {
    fn print(&mut self, _: &str, stderr: &str) {
        if self.stderr.len() < 1 << 16 {
            self.stderr.push_str(stderr);
        }
    }
    fn given(&mut self, mut given: Given) {
        // Lines are those of the whole text.
        for (at, call) in given.calls.iter_mut().enumerate() {
            let file = given.callers.get(at).unwrap_or(&self.name);
            *call = self.whole.line(file, *call).unwrap_or(*call);
        }
        // Where a file is sourced is no call.
        given.calls.retain(|line| !self.whole.sources(*line));
        given.callers.clear();
        if let Some(line) = self.whole.line(&given.file, given.line) {
            (given.line, given.file) = (line, self.name.clone());
        }
        let own = given.file == self.name;
        // The text of `sh -c '…'` has no lines of its own.
        if own && given.line == 0 {
            given.line = self.source.line_of(&given.words).unwrap_or(0);
        }
        if own
            && let Some(syntax) = self.syntax
            && self.source.line(given.line).replace("||", "").contains('|')
            && let Some(line) = syntax.in_pipeline(given.line, &given.words)
        {
            given.line = line;
        }
        if let Some(syntax) = self.syntax.filter(|_| own) {
            syntax.given(given.line, &given.words, &given.calls, &mut self.reached);
        }
        let base = |w: &String| w.rsplit('/').next().unwrap_or(w).to_owned();
        let is_network = |s: &(Step, Option<u32>)| {
            let first = s.0.words.iter().find(|w| *w != "elsewhere").map(base).unwrap_or_default();
            crate::syntax::is_network(&first) || s.0.words.first().is_some_and(|w| w == "elsewhere")
        };
        if let Some(syntax) = self.syntax.filter(|_| own)
            && self.pending.borrow().iter().any(is_network)
            && !syntax.counts(given.line, &given.words, &given.calls)
        {
            let known = |line: &&u32| (1..=self.source.lines.len() as u32).contains(*line);
            self.hidden.extend(given.calls.iter().chain([&given.line]).find(known));
        }
        for (mut step, inner) in self.pending.borrow_mut().drain(..) {
            (step.line, step.file) = (given.line, given.file.clone());
            step.calls.clone_from(&given.calls);
            if let (Some(inner), Some(begins)) = (inner, self.source.heredoc(given.line).filter(|_| own)) {
                step.line = begins + inner - 1;
            } else if inner.is_some()
                && own
                && let Some(line) = self.source.writes(&step.words[1..])
            {
                step.line = line;
            }
            self.log.borrow_mut().push(step);
        }
    }
    fn unknown(&mut self, program: &str, file: &str, line: u32) {
        let line = self.whole.line(file, line).unwrap_or(line);
        self.unknown.insert((program.to_owned(), line));
    }
}

/// Runs a script and gathers the facts.
pub(crate) fn run(variant: &Variant<'_>, settings: &Settings) -> Facts {
    let (mut facts, spaces) = in_place(variant, settings, None);
    for (place, prefix) in spaces.into_iter().take(SPACES_MAX) {
        let (mut there, _) = in_place(variant, settings, Some(&place));
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
    variant: &Variant<'_>,
    settings: &Settings,
    focus: Option<&str>,
) -> (Facts, BTreeMap<String, String>) {
    let (script, source) = (&variant.script, variant.source.clone());
    let first = pass(variant, settings, BTreeSet::new(), focus);
    // What was lent and turns out to be the script's own to make is not there the second time.
    let lent: BTreeSet<String> = first.foreign.intersection(&first.own).cloned().collect();
    let done = if lent.is_empty() { first } else { pass(variant, settings, lent, focus) };
    let Done {
        turns,
        steps,
        devices,
        foreign,
        stopped,
        stderr,
        partial,
        spaces,
        reached,
        unknown,
        left_out,
        uncalled,
        hidden,
        nft,
        of_nft,
        ..
    } = done;
    let partial = partial || steps.iter().any(|s| s.guessed.as_ref().is_some_and(|g| g.deep));
    let name = if script.name.is_empty() { "script".to_owned() } else { script.name.clone() };
    let mut netfilter = Netfilter::of(&steps, settings.kernel);
    netfilter.of_nft = of_nft;
    let facts = Facts {
        turns,
        name,
        misspelt: variant.misspelt.clone(),
        hidden,
        given: script.env.iter().map(|e| e.0.clone()).collect(),
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
        forced: uncalled,
        library: uncalled,
        planned: 0,
        reached,
        unknown,
        left_out,
        not_called: BTreeSet::new(),
        prefix: String::new(),
        spaces: Vec::new(),
        nft,
        uci: None,
        judged: BTreeSet::new(),
        found: OnceLock::new(),
    };
    (facts, spaces)
}

/// Whether a device's name comes from another program (`dev "$veth"` behind `veth=$(…)`), and none from a variable that nothing sets.
fn asks_device(source: &Source) -> bool {
    let code: Vec<&str> =
        source.lines.iter().map(String::as_str).filter(|l| !l.trim_start().starts_with('#')).collect();
    let mut names = BTreeSet::new();
    for line in &code {
        for (at, _) in line.match_indices("dev ") {
            let rest = line[at + 4..].trim_start().trim_start_matches(['"', '$', '{']);
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            if line[at + 4..].trim_start().trim_start_matches('"').starts_with('$') && end > 0 {
                names.insert(&rest[..end]);
            }
        }
    }
    let sets = |name: &str, how: &[&str]| {
        let given = |l: &&str| how.iter().any(|h| l.contains(&format!("{name}{h}")));
        code.iter().any(|l| given(l) || l.contains("read ") && l.contains(name))
    };
    let asked = |name: &&str| sets(name, &["=$(", "=\"$(", "=`", "=\"`"]);
    let digits = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
    let loops = |name: &str| code.iter().any(|l| l.contains(&format!("for {name} ")));
    names.iter().any(asked) && names.iter().all(|n| digits(n) || loops(n) || sets(n, &["="]))
}

/// What a script is called with where nobody says: `start` where it asks for a verb, the device where `$1` is one.
pub(crate) fn arguments(script: &Script, source: &Source, settings: &Settings) -> Vec<String> {
    if !script.args.is_empty() {
        return script.args.clone();
    }
    let lines: Vec<String> = source.lines.iter().map(|l| l.replace(['"', '{', '}', ' ', '\t'], "")).collect();
    let asks_verb = lines.iter().any(|l| l.starts_with("case$1in") || l.starts_with("case$1:-"));
    if asks_verb {
        for verb in ["start", "up", "setup", "init", "install", "add", "on", "enable"] {
            if lines.iter().any(|l| is_arm(l, verb)) {
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

/// Whether a line, without blanks, quotes and braces, begins an arm of `case` for this word.
pub(crate) fn is_arm(line: &str, verb: &str) -> bool {
    line.starts_with(&format!("{verb})"))
        || line.starts_with(&format!("{verb}|"))
        || line.contains(&format!("|{verb})"))
        || line.starts_with("case")
            && [format!("in{verb})"), format!(";;{verb})")].iter().any(|a| line.contains(a.as_str()))
}

struct Done {
    /// How many commands there were when each further call began.
    turns: Vec<usize>,
    steps: Vec<Step>,
    devices: Vec<Device>,
    own: BTreeSet<String>,
    foreign: BTreeSet<String>,
    stopped: Option<String>,
    stderr: String,
    partial: bool,
    spaces: BTreeMap<String, String>,
    reached: BTreeSet<usize>,
    unknown: BTreeSet<(String, u32)>,
    left_out: BTreeSet<u32>,
    hidden: BTreeSet<u32>,
    /// The rules of nft at the end.
    nft: String,
    of_nft: OfNft,
    /// Whether only functions that nobody calls gave commands.
    uncalled: bool,
}

fn pass(variant: &Variant<'_>, settings: &Settings, own: BTreeSet<String>, focus: Option<&str>) -> Done {
    let (script, source) = (&variant.script, &variant.source);
    let (log, pending) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let mut host = Host::new("penstock", settings.kernel, 1);
    let mut foreign = BTreeSet::new();
    if let Some(dev) = settings.dev.as_ref().filter(|d| focus.is_none() && !own.contains(*d)) {
        host.add_device(dev);
        foreign.insert(dev.clone());
    }
    // A script that asks where the default route goes has one to find.
    let asks_route = source.lines.iter().any(|l| {
        let asks = [
            "ip route",
            "ip r ",
            "ip -4 route",
            "route -n",
            "ip -o route",
            "ip -o -4 route",
            "ip -4 -o route",
            "ip -j route",
            "route show",
            "route get",
            "/proc/net/route",
        ]
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
    // One that asks for a device's address finds one.
    let asks_address = source.lines.iter().any(|l| {
        let asks =
            ["ip addr", "ip a ", "ip -4 a", "ip -o a", "ip -o -4 a", "ip -4 -o a", "ifconfig", "ip -br a"];
        asks.iter().any(|w| l.contains(w))
            && (l.contains("$(") || l.contains('`') || l.contains('|'))
            && !l.contains(" add ")
    });
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
        nft_calls: Vec::new(),
        unknown: script.unknown.clone(),
        dev: settings.dev.clone().unwrap_or_else(|| "eth0".to_owned()),
        guessed: None,
        asks_address,
        asks_device: asks_device(source),
    };
    let name = if script.name.is_empty() { "script".to_owned() } else { script.name.clone() };
    let script = match variant.whole.is_alone() {
        true => Script { name: name.clone(), ..script.clone() },
        false => {
            let (text, parts) = variant.whole.apart(&script.text);
            let others = script.files.iter().filter(|f| !parts.iter().any(|p| p.0 == f.0)).cloned();
            let files = others.chain(parts.iter().cloned()).collect();
            Script { name: name.clone(), text, files, ..script.clone() }
        }
    };
    let (reached, unknown) = (BTreeSet::new(), BTreeSet::new());
    let syntax = variant.syntax;
    let mut keep = Keep {
        log: &log,
        pending: &pending,
        source,
        whole: variant.whole,
        name,
        stderr: String::new(),
        syntax,
        reached,
        unknown,
        hidden: BTreeSet::new(),
    };
    let mut left_out = BTreeSet::new();
    let (mut partial, mut uncalled) = (false, false);
    let ended = if source.form == Form::Python {
        let dev = settings.dev.clone().unwrap_or_else(|| "eth0".to_owned());
        let mut runs = FromPython {
            watched: &mut watched,
            keep: &mut keep,
            partial: false,
            left_out: BTreeSet::new(),
            limit: None,
        };
        let mut python = Python::new(&mut runs, script.args.clone(), dev);
        let ended = python.run(&source.lines.join("\n"));
        uncalled = python.uncalled;
        partial = runs.partial;
        left_out = std::mem::take(&mut runs.left_out);
        let limit = runs.limit.take();
        ended.and(limit.map_or(Ok(0), Err))
    } else {
        penstock_shell::run_within(&variant.limits, &script, &mut watched, &mut keep)
    };
    let mut turns = Vec::new();
    for args in &variant.again {
        turns.push(log.borrow().len());
        let again = Script { args: args.clone(), ..script.clone() };
        // How it ends is nothing of the first call's.
        _ = penstock_shell::run_within(&variant.limits, &again, &mut watched, &mut keep);
    }
    let (reached, unknown) = (std::mem::take(&mut keep.reached), std::mem::take(&mut keep.unknown));
    let stderr = variant.whole.said(&keep.stderr);
    let hidden = std::mem::take(&mut keep.hidden);
    let names: Vec<String> = watched.seen().devices().iter().map(|d| d.name.clone()).collect();
    for name in names {
        let device = watched.capture(&name);
        watched.lives.extend(device);
    }
    let ruled = log.borrow().iter().any(|s: &Step| s.program() == "nft");
    let list = |host: &mut Host| host.exec("nft list ruleset", Time::ZERO).stdout;
    let nft = if ruled { watched.on(list).unwrap_or_default() } else { String::new() };
    let tables = watched.seen().netfilter().nft_standing(Time::ZERO);
    let Watched { lives, foreign, made, spaces, nft_calls, .. } = watched;
    let own = made;
    Done {
        turns,
        steps: log.into_inner(),
        devices: lives,
        own,
        foreign,
        stopped: ended.err(),
        stderr,
        partial,
        spaces,
        reached,
        unknown,
        left_out,
        uncalled,
        hidden,
        nft,
        of_nft: OfNft { tables, calls: nft_calls },
    }
}

/// A Python script's side.
struct FromPython<'a, 'b> {
    watched: &'a mut Watched<'b>,
    keep: &'a mut Keep<'b>,
    partial: bool,
    left_out: BTreeSet<u32>,
    /// Why a shell's command was stopped.
    limit: Option<String>,
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
        // Without a shell the whole string is a program's name.
        if let [one] = words.as_slice()
            && one.contains(' ')
        {
            self.keep.unknown.insert((one.clone(), line));
        }
        if !Program::is_of_scripts(&program) {
            return (0, String::new());
        }
        let output = self.watched.command(&words, &mut NoFiles);
        let (status, text) = (output.status, output.stdout.clone());
        let file = self.keep.name.clone();
        self.keep.given(Given { line, file, calls: Vec::new(), callers: Vec::new(), words, output });
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
        if let Err(why) = &ended {
            self.limit.get_or_insert(format!("line {line}: {why}"));
        }
        (ended.unwrap_or(1), out.stdout)
    }
    fn unknown(&self) -> Option<&str> {
        self.watched.unknown.as_deref()
    }
    fn left_out(&mut self, line: u32) {
        // Only what has to do with the network is missed.
        let text = self.keep.source.logical(line);
        let network = Program::tools()
            .any(|p| ["{p} ", "\"{p}\""].iter().any(|f| text.contains(&f.replace("{p}", p.name))));
        if network {
            self.partial = true;
            self.left_out.insert(line);
        }
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
