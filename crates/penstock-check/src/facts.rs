//! All that is known of a script once it has run on a virtual machine: its commands in order, what they left, who made what.

use crate::filters::Filter;
use crate::finding::Finding;
use crate::marks::{Netfilter, is_marking};
use crate::source::Source;
use penstock_host::Output;
use penstock_lang::iptables;
use penstock_lang::tc;
use penstock_model::{Handle, Kernel, Options};
use penstock_sched::sch;
use penstock_sched::traits::{LimitsRate, Traits};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// One network command of the script.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its line, from 1; 0 where it is not known.
    pub line: u32,
    /// The file of that line.
    pub file: String,
    /// Its words.
    pub words: Vec<String>,
    /// What it gave.
    pub output: Output,
    /// What it asked for.
    pub what: What,
    /// The lines of the calls that led to it, the nearest first.
    pub calls: Vec<u32>,
    /// What its unknown words were given, where it has some.
    pub guessed: Option<crate::unknown::Guessed>,
    /// What of it Linux would have carried out and the machine here does not: it is taken to have ended well.
    pub unsimulated: Option<String>,
    /// Whether `tc -batch` read it, and goes on when a line fails (`-force`).
    pub batch: Option<bool>,
}

/// What a command asks for.
#[derive(Clone, Debug)]
pub enum What {
    /// `tc`.
    Tc(Vec<tc::Command>),
    /// `iptables`, `ip6tables`.
    Iptables(Box<iptables::Command>),
    /// `nft`, `iptables-restore`: with what it reads.
    Rules(String),
    /// Another program, or one whose words are not understood.
    Other,
}

impl Step {
    /// One of no words.
    pub(crate) fn new() -> Step {
        Step {
            line: 0,
            file: String::new(),
            words: Vec::new(),
            output: Output::default(),
            what: What::Other,
            calls: Vec::new(),
            guessed: None,
            unsimulated: None,
            batch: None,
        }
    }
    /// Whether it was carried out.
    pub fn ok(&self) -> bool {
        self.output.status == 0
    }
    /// The words as they would be typed.
    pub fn text(&self) -> String {
        penstock_lang::token::Line::of_words(&self.words).source
    }
    /// The word behind the first of these words.
    pub fn value(&self, names: &[&str]) -> Option<&str> {
        let at = self.words.iter().position(|w| names.contains(&w.as_str()))?;
        self.words.get(at + 1).map(String::as_str)
    }
    /// Whether a word stands in it.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|w| w == word)
    }
    /// The command with another value behind a word, or with both added at its end.
    pub fn with(&self, name: &str, value: &str) -> String {
        let mut step = self.clone();
        match step.words.iter().position(|w| w == name) {
            Some(at) if at + 1 < step.words.len() => step.words[at + 1] = value.to_owned(),
            _ => step.words.extend([name.to_owned(), value.to_owned()].into_iter().filter(|w| !w.is_empty())),
        }
        step.text()
    }
    /// The command with another word in the place of one.
    pub fn with_word(&self, old: &str, new: &str) -> String {
        let mut step = self.clone();
        step.words.iter_mut().filter(|w| *w == old).for_each(|w| new.clone_into(w));
        step.text()
    }
    /// The command without a word and its value.
    pub fn without(&self, name: &str) -> String {
        let mut step = self.clone();
        if let Some(at) = step.words.iter().position(|w| w == name) {
            step.words.drain(at..(at + 2).min(step.words.len()));
        }
        step.text()
    }
    /// The first of its tc commands.
    pub fn tc(&self) -> Option<&tc::Command> {
        match &self.what {
            What::Tc(commands) => commands.first(),
            _ => None,
        }
    }
    /// The program's name.
    pub fn program(&self) -> &str {
        let first = self.words.first().map_or("", String::as_str);
        first.rsplit('/').next().unwrap_or(first)
    }
}

/// A qdisc that stands when the device's set-up is complete.
#[derive(Clone, Debug)]
pub struct Qdisc {
    /// Kind.
    pub kind: &'static str,
    /// Handle.
    pub handle: Handle,
    /// [`Handle::ROOT`], [`Handle::INGRESS`] or a class.
    pub parent: Handle,
    /// Its options as the kernel dumps them.
    pub options: Options,
    /// The command that made it; `None` where the kernel did.
    pub step: Option<usize>,
}

/// A class.
#[derive(Clone, Debug)]
pub struct Class {
    /// Kind of its qdisc.
    pub kind: &'static str,
    /// Its id.
    pub id: Handle,
    /// [`Handle::ROOT`], its qdisc or a class.
    pub parent: Handle,
    /// Options as the kernel dumps them.
    pub options: Options,
    /// The command that made it; `None` where the kernel did.
    pub step: Option<usize>,
    /// Classes right below it.
    pub children: Vec<Handle>,
}

impl Facts {
    /// Qdiscs that commands made: device, qdisc, step.
    pub fn made(&self) -> impl Iterator<Item = (&Device, &Qdisc, usize)> {
        self.devices.iter().flat_map(|d| d.qdiscs.iter().filter_map(move |q| Some((d, q, q.step?))))
    }
    /// Those of these kinds.
    pub fn made_of<'a>(
        &'a self,
        kinds: &'a [&'a str],
    ) -> impl Iterator<Item = (&'a Device, &'a Qdisc, usize)> {
        self.made().filter(|(_, q, _)| kinds.contains(&q.kind))
    }
}

impl Qdisc {
    /// What holds of every qdisc of its kind.
    pub fn traits(&self) -> &'static Traits {
        sch::traits(self.kind)
    }
    /// The rate that it does not exceed, bytes per second, where its own options say one.
    pub fn most(&self) -> Option<u64> {
        match self.traits().limits_rate {
            LimitsRate::Qdisc(name) => self.options.u64(name).filter(|&rate| rate > 0),
            LimitsRate::No | LimitsRate::Classes(_) | LimitsRate::Emulates | LimitsRate::Otherwise => None,
        }
    }
}

impl Class {
    /// The most that it may send, bytes per second, where its own options say that.
    pub fn most(&self) -> Option<u64> {
        let LimitsRate::Classes(Some(path)) = sch::traits(self.kind).limits_rate else { return None };
        let (within, name) = path.rsplit_once('/').unwrap_or(("", path));
        let inner = within.split('/').filter(|name| !name.is_empty());
        let options = inner.into_iter().try_fold(&self.options, |options, name| options.nested(name))?;
        options.u64(name).filter(|&rate| rate > 0)
    }
    /// `rate`, bytes per second (HTB).
    pub fn rate(&self) -> u64 {
        self.options.u64("rate").unwrap_or(0)
    }
    /// `ceil`, bytes per second (HTB).
    pub fn ceil(&self) -> u64 {
        self.options.u64("ceil").unwrap_or(0)
    }
}

/// A device at the moment its set-up was complete: at the end, or right before the script tore it down.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Kind (`ifb`, `veth`, …); empty for a card.
    pub kind: &'static str,
    /// MTU, bytes.
    pub mtu: u32,
    /// txqueuelen, packets.
    pub txqueuelen: u32,
    /// Whether it is up.
    pub up: bool,
    /// The bridge or bond it is a port of.
    pub master: Option<String>,
    /// Qdiscs.
    pub qdiscs: Vec<Qdisc>,
    /// Classes.
    pub classes: Vec<Class>,
    /// Filters in the order they were given.
    pub filters: Vec<Filter>,
    /// Classes by id.
    pub by_id: BTreeMap<Handle, usize>,
    /// Hash tables of u32 with their numbers of buckets, by qdisc and number.
    pub tables: BTreeMap<(Handle, u32), u32>,
    /// The first qdisc of each handle, and the first below each parent.
    pub(crate) by_handle: BTreeMap<Handle, usize>,
    pub(crate) by_parent: BTreeMap<Handle, usize>,
}

impl Device {
    /// The root qdisc, where the script put one.
    pub fn root(&self) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|q| q.parent == Handle::ROOT && q.step.is_some())
    }
    /// The qdisc with a handle.
    pub fn qdisc(&self, handle: Handle) -> Option<&Qdisc> {
        self.by_handle.get(&handle).map(|&at| &self.qdiscs[at])
    }
    /// The qdisc in a class.
    pub fn leaf(&self, class: Handle) -> Option<&Qdisc> {
        self.by_parent.get(&class).map(|&at| &self.qdiscs[at])
    }
    /// A class.
    pub fn class(&self, id: Handle) -> Option<&Class> {
        self.by_id.get(&id).map(|&at| &self.classes[at])
    }
    /// Classes of a qdisc.
    pub fn classes_of(&self, qdisc: Handle) -> impl Iterator<Item = &Class> {
        self.classes.iter().filter(move |c| c.id.qdisc() == qdisc)
    }
    /// Whether a class stands lower in its tree than another, or than its qdisc (`level` of `struct hfsc_class`).
    pub fn is_below(&self, id: Handle, than: Handle) -> bool {
        fn level(device: &Device, id: Handle, most: u32) -> u32 {
            let children = device.class(id).filter(|_| most > 0).map_or(&[][..], |c| &c.children);
            children.iter().map(|c| 1 + level(device, *c, most - 1)).max().unwrap_or(0)
        }
        id != than && (self.class(than).is_none() || level(self, id, 16) < level(self, than, 16))
    }
    /// Whether the script put a qdisc at the ingress hook.
    pub fn ingress(&self) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|q| q.parent == Handle::INGRESS)
    }
    /// Largest frame, bytes.
    pub fn frame(&self) -> u64 {
        u64::from(self.mtu) + 14
    }
    /// The rate at which what is queued in `parent` leaves at most, bytes per second, as far as the tree says.
    pub fn drain(&self, parent: Handle, link: Option<u64>) -> Option<u64> {
        let mut best = link;
        let mut lower =
            |rate: u64| best = Some(best.map_or(rate, |b| b.min(rate))).filter(|&r| r > 0).or(best);
        let mut at = parent;
        for _ in 0..32 {
            if at == Handle::ROOT || at == Handle::UNSPEC || at == Handle::INGRESS {
                break;
            }
            let owner = self.qdisc(at.qdisc());
            if let Some(class) = self.class(at) {
                if let Some(most) = class.most() {
                    lower(most);
                }
                if self.class(class.parent).is_some() {
                    at = class.parent;
                    continue;
                }
            }
            let Some(owner) = owner else { break };
            if let Some(rate) = owner.most() {
                lower(rate);
            }
            at = owner.parent;
        }
        best
    }
}

/// Everything the rules look at.
pub struct Facts {
    /// The script's name.
    pub name: String,
    /// Names of variables that it reads and never sets, and that are nearly those of variables that it sets: the names that are meant.
    pub misspelt: BTreeMap<String, String>,
    /// Lines with network commands that are no such commands as they are written (`eval "$X"`, `xargs tc`).
    pub hidden: BTreeSet<u32>,
    /// Names of variables that its environment has, with values that are known or not.
    pub given: BTreeSet<String>,
    /// Its text.
    pub source: Source,
    /// The kernel it ran on.
    pub kernel: Kernel,
    /// The link's rate, bytes per second, where somebody says it.
    pub link: Option<u64>,
    /// The device in question, where somebody says it.
    pub dev: Option<String>,
    /// Its commands in order.
    pub steps: Vec<Step>,
    /// Where the script was called again on the same machine: how many commands there were before each of the further calls.
    pub(crate) turns: Vec<usize>,
    /// Devices at the moments their set-ups were complete.
    pub devices: Vec<Device>,
    /// Rules of the packet filter.
    pub netfilter: Netfilter,
    /// Devices that no command made: they were there.
    pub foreign: BTreeSet<String>,
    /// Why it could not be run at all.
    pub stopped: Option<String>,
    /// What it wrote to standard error.
    pub stderr: String,
    /// Whether commands were left out because their words are not known: what is missing then says nothing.
    pub partial: bool,
    /// Whether something of its course was decided for it, so that what its commands meet is not what they would meet.
    pub forced: bool,
    /// Whether the script as it stands gives no network command: it is there to be sourced.
    pub library: bool,
    /// The line in which functions are called that nobody else calls; 0 where that is behind the text.
    pub(crate) planned: u32,
    /// Which of the text's commands were carried out.
    pub(crate) reached: BTreeSet<usize>,
    /// Programs that are not simulated, with the lines of their calls.
    pub(crate) unknown: BTreeSet<(String, u32)>,
    /// Lines of Python whose commands were left out, and those of them that were not reached.
    pub(crate) left_out: BTreeSet<u32>,
    pub(crate) not_called: BTreeSet<u32>,
    /// What stands before a command that is to be carried out where these facts hold: empty, or `ip netns exec NAME`.
    pub prefix: String,
    /// The same of other network namespaces that commands were carried out in.
    pub spaces: Vec<Facts>,
    /// The rules of nft that it leaves, as `nft list ruleset` prints them.
    pub nft: String,
    /// OpenWrt's configuration, where the text is that.
    pub(crate) uci: Option<crate::uci::Uci>,
    /// Lines that another run of the same text has had judged: nothing more is said of them.
    pub(crate) judged: BTreeSet<(String, u32)>,
    /// What all rules find, comments aside: asked for more than once, worked out once.
    pub(crate) found: OnceLock<Vec<Finding>>,
}

impl Facts {
    /// The namespace in which the script sets up this device: these facts where none does.
    pub fn having(&self, device: &str) -> &Facts {
        let has = |f: &&Facts| f.shaped().any(|d| d.name == device);
        std::iter::once(self).chain(&self.spaces).find(has).unwrap_or(self)
    }

    /// Whether the script is one that is installed and runs again: no bare list of commands.
    pub fn installed(&self) -> bool {
        matches!(self.source.form, crate::source::Form::Script | crate::source::Form::Python)
    }
    /// The link's rate where it is that of this device.
    pub fn link_of(&self, device: &str) -> Option<u64> {
        let said = match &self.dev {
            Some(dev) if dev != device => None,
            _ => self.link,
        };
        // Or the speed that the script gives the card, Mbit/s.
        let sets = |s: &&Step| s.ok() && s.program() == "ethtool" && s.has("-s") && s.has(device);
        let given = || self.steps.iter().rev().find(sets)?.value(&["speed"])?.parse::<u64>().ok();
        said.or_else(|| given().filter(|n| *n > 0)?.checked_mul(125_000))
    }
    /// Whether a call at this line is one that the script itself makes.
    pub(crate) fn is_called(&self, line: u32) -> bool {
        line > 0 && line <= self.source.lines.len() as u32 && line != self.planned
    }
    /// The line that a command is known by: where a function only passes its words on, that of the call.
    pub(crate) fn known_line(&self, step: &Step) -> u32 {
        let wrapped = || crate::written::Written::of(self, step).is_some_and(|w| !w.one_to_one());
        match step.calls.iter().find(|l| self.is_called(**l)) {
            Some(call) if step.file == self.name && wrapped() => *call,
            _ => step.line,
        }
    }
    /// The line of a rule that stands in a text which a command reads (`line`, from 1; 0 is the command itself): in the script where it can
    /// be found there, else the command's.
    pub(crate) fn rule_line(&self, step: usize, line: u32) -> u32 {
        self.line_in_script(step, line).unwrap_or_else(|| self.known_line(&self.steps[step]))
    }
    /// The same in words; of a text that is not the script's with its own line.
    pub(crate) fn rule_place(&self, step: usize, line: u32) -> String {
        let place = format!("line {}", self.rule_line(step, line));
        if line == 0 || self.line_in_script(step, line).is_some() {
            return place;
        }
        let file = self.steps[step].words.iter().skip(1).rfind(|w| !w.starts_with('-') && !w.contains(' '));
        let file = file.map_or("what it reads", String::as_str);
        format!("{place}, line {line} of {file}")
    }
    fn line_in_script(&self, step: usize, line: u32) -> Option<u32> {
        let step = &self.steps[step];
        let What::Rules(text) = &step.what else { return None };
        if line == 0 || step.file != self.name {
            return None;
        }
        let words: Vec<String> =
            text.lines().nth(line as usize)?.split_whitespace().map(str::to_owned).collect();
        // A here-document's line is the one that reads so.
        let begins = self.source.heredoc(step.line).map(|b| b + line - 1);
        let own = begins.filter(|&n| words.first().is_none_or(|w| self.source.line(n).contains(w.as_str())));
        own.or_else(|| self.source.writes(&words))
    }
    /// Devices the script put a qdisc on.
    pub fn shaped(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|d| d.qdiscs.iter().any(|q| q.step.is_some()))
    }
    /// Steps that are tc commands and were carried out.
    pub fn tc_done(&self) -> impl Iterator<Item = (usize, &Step, &tc::Command)> {
        self.steps.iter().enumerate().filter(|s| s.1.ok()).filter_map(|(at, s)| Some((at, s, s.tc()?)))
    }
    /// Whether any command sets marks at all, in whatever way.
    pub fn sets_marks(&self) -> bool {
        self.steps.iter().any(is_marking)
    }
}

/// A rate in bytes per second as tc writes it.
pub fn rate(bytes: u64) -> String {
    let bits = bytes * 8;
    for (unit, name) in [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1000, "kbit")] {
        if bits >= unit {
            if bits.is_multiple_of(unit) {
                return format!("{}{name}", bits / unit);
            }
            let hundredths = (bits * 100 + unit / 2) / unit;
            let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            return format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    format!("{bits}bit")
}

/// How long so many bytes take at a rate.
pub fn lasts(bytes: u64, rate: u64) -> String {
    let us = (u128::from(bytes) * 1_000_000 / u128::from(rate.max(1))) as u64;
    match us {
        0..1000 => format!("{us} us"),
        1000..10_000 => format!("{}.{} ms", us / 1000, us % 1000 / 100),
        10_000..2_000_000 => format!("{} ms", us / 1000),
        _ => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
    }
}

/// Milliseconds that so many bytes take at a rate.
pub fn ms(bytes: u64, rate: u64) -> u64 {
    (u128::from(bytes) * 1000 / u128::from(rate.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_tc_writes_them() {
        assert_eq!([125_000, 187_500, 16_000, 3].map(rate), ["1mbit", "1.5mbit", "128kbit", "24bit"]);
        assert_eq!(lasts(1500, 125_000), "12 ms");
        assert_eq!(lasts(1_500_000, 125_000), "12.0 s");
    }
}
