//! `ip ntable`: the tables of neighbours and their settings.
//!
//! Follows: iproute2 6.1.0 `ip/ipntable.c` `do_ipntable`, `ipntable_modify`, `ipntable_show`, `print_ntable`, `print_ndtconfig`, `print_ndtparams`, `print_ndtstats`.

use super::words::{Family, Parsed, Words, matches, number};
use super::{Command, Failure, Form};
use crate::show::Out;
use penstock_model::Kernel;

/// `ip ntable change`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NtableChange {
    /// `-4`, `-6`.
    pub family: Family,
    /// `name`.
    pub name: String,
    /// `dev`; `None`: what devices begin with.
    pub dev: Option<String>,
    /// `thresh1`, `thresh2`, `thresh3`, `gc_int` as they were said.
    pub table: Vec<(&'static str, u64)>,
    /// The others: times in ms.
    pub parms: Vec<(&'static str, u64)>,
    /// What is said of the words behind `dev`, where that is there.
    pub refused: Option<Failure>,
}

/// What `ip ntable show` is of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NtableFilter {
    /// `dev`; an empty one is `none`.
    pub dev: Option<String>,
    /// `name`.
    pub name: Option<String>,
}

/// A table's own numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NtableConfig {
    /// `thresh1` to `thresh3`, `gc_int` in ms.
    pub limits: [u64; 4],
    /// Bytes of an address, and of an entry.
    pub sizes: (u32, u32),
    /// Entries.
    pub entries: u32,
    /// Dates of `last_flush` and `last_rand`, `%Y-%m-%d %T`.
    pub dates: (String, String),
    /// `hash_rnd`, `hash_mask`.
    pub hash: (u32, u32),
    /// What is counted: `allocs`, `destroys`, `hash_grows`, `res_failed`, `lookups`, `hits`, `rcv_probes_mcast`, `rcv_probes_ucast`, `periodic_gc_runs`,
    /// `forced_gc_runs`, `table_fulls`.
    pub stats: [u64; 11],
}

/// The settings of a table, or of a device in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NtableView {
    /// Whether it is that of neighbour discovery.
    pub six: bool,
    /// The device, where it is of one.
    pub dev: Option<String>,
    /// The table's numbers, where it is of the table.
    pub config: Option<NtableConfig>,
    /// By the order of [`NTABLE_PARMS`].
    pub parms: [u64; 14],
}

/// What is shown of a device's settings, and in which lines: times in ms.
pub const NTABLE_PARMS: [(&str, usize); 14] = [
    ("refcnt", 0),
    ("reachable", 0),
    ("base_reachable", 0),
    ("retrans", 0),
    ("gc_stale", 1),
    ("delay_probe", 1),
    ("queue", 1),
    ("app_probes", 2),
    ("ucast_probes", 2),
    ("mcast_probes", 2),
    ("anycast_delay", 3),
    ("proxy_delay", 3),
    ("proxy_queue", 3),
    ("locktime", 3),
];
const TABLE_WORDS: [&str; 4] = ["thresh1", "thresh2", "thresh3", "gc_int"];
const STATS: [(&str, usize); 11] = [
    ("allocs", 0),
    ("destroys", 0),
    ("hash_grows", 0),
    ("res_failed", 1),
    ("lookups", 1),
    ("hits", 1),
    ("rcv_probes_mcast", 2),
    ("rcv_probes_ucast", 2),
    ("periodic_gc_runs", 3),
    ("forced_gc_runs", 3),
    ("table_fulls", 4),
];

const USAGE: &str = "Usage: ip ntable change name NAME [ dev DEV ]\n        [ thresh1 VAL ] [ thresh2 VAL ] [ thresh3 VAL ] [ gc_int MSEC ]\n        [ PARMS ]\n\
    Usage: ip ntable show [ dev DEV ] [ name NAME ]\n\
    PARMS: base_reachable retrans gc_stale delay_probe queue app_probes ucast_probes mcast_probes\n       anycast_delay proxy_delay proxy_queue locktime\n";

/// `get_u64` with base 0.
fn wide(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, radix).ok() }
}

impl Words<'_> {
    pub(super) fn ntable(&mut self, form: Form) -> Parsed<Command> {
        let Some(verb) = self.next() else { return Ok(Command::NtableShow(NtableFilter::default(), form)) };
        let is = |full: &str| matches(&verb, full);
        if is("change") || is("chg") {
            return self.ntable_change(form);
        }
        if is("show") || is("lst") || is("list") {
            let mut filter = NtableFilter::default();
            while let Some(word) = self.next() {
                match word.as_str() {
                    "dev" => {
                        let name = self.value()?;
                        filter.dev = Some(if name == "none" { String::new() } else { name });
                    }
                    "name" => filter.name = Some(self.value()?),
                    _ => return self.invalid(&word, "unknown"),
                }
            }
            return Ok(Command::NtableShow(filter, form));
        }
        if is("help") { self.usage(USAGE) } else { self.unknown_command(&verb, "ntable") }
    }
    fn ntable_change(&mut self, form: Form) -> Parsed<Command> {
        let mut change = NtableChange { family: form.family, ..NtableChange::default() };
        match self.ntable_words(&mut change) {
            Err(refused) if change.dev.is_some() => change.refused = Some(refused),
            done => done?,
        }
        Ok(Command::NtableChange(Box::new(change)))
    }
    fn ntable_words(&mut self, change: &mut NtableChange) -> Parsed<()> {
        let mut named = false;
        while let Some(word) = self.next() {
            if word == "name" {
                let name = self.value()?;
                if named {
                    return self.twice("NAME", &name);
                }
                (change.name, named) = (name, true);
                continue;
            }
            if word == "dev" {
                change.dev = Some(self.value()?);
                continue;
            }
            let of_table = TABLE_WORDS.iter().find(|w| **w == word);
            let parm = NTABLE_PARMS[2..].iter().find(|p| p.0 == word);
            let (Some(&name), list) = (match of_table {
                Some(name) => (Some(name), &mut change.table),
                None => (parm.map(|p| &p.0), &mut change.parms),
            }) else {
                return self.invalid(&word, "unknown");
            };
            let text = match self.words.get(self.at) {
                Some(word) => word.text.clone(),
                None => return self.value().map(|_| ()),
            };
            self.at += 1;
            let short = ["queue", "app_probes", "ucast_probes", "mcast_probes", "proxy_queue"]
                .contains(&name)
                || name.starts_with("thresh");
            let value = if short { number(&text).map(u64::from) } else { wide(&text) };
            match value {
                Some(value) => list.push((name, value)),
                None => return self.invalid(&text, &format!("\"{name}\" value is invalid")),
            }
        }
        if !named {
            return self.fail(
                255,
                "Error: argument \"NAME\" is required",
                "name arp_cache, name ndisc_cache",
            );
        }
        if change.table.is_empty() && change.parms.is_empty() {
            return self.fail(255, "Not enough information: changeable attributes required.", "retrans 500");
        }
        Ok(())
    }
}

fn show_lines<const N: usize>(
    names: &[(&'static str, usize); N],
    values: &[u64; N],
    out: &mut Out,
    nl: &str,
) {
    let mut line = 0;
    for (&(name, of), value) in names.iter().zip(values) {
        if std::mem::replace(&mut line, of) != of {
            out.text_only(format_args!("{nl}    "));
        }
        out.num(name, value, format_args!("{name} {value} "));
    }
    out.nl();
}

fn show_config(c: &NtableConfig, out: &mut Out) {
    let ((key, entry), entries) = (c.sizes, c.entries);
    out.num("key_length", key, format_args!("    config key_len {key} "));
    out.num("entry_size", entry, format_args!("entry_size {entry} "));
    out.num("entries", entries, format_args!("entries {entries} "));
    out.nl();
    let (flush, rand) = &c.dates;
    out.string("last_flush", flush, format_args!("        last_flush {flush} "));
    out.string("last_rand", rand, format_args!("last_rand {rand} "));
    out.nl();
    let (rnd, mask) = c.hash;
    out.num("hash_rnd", rnd, format_args!("        hash_rnd {rnd} "));
    out.string("hash_mask", &format!("0x{mask:x}"), format_args!("hash_mask {mask:08x} "));
    out.num("hash_chain_gc", 0, format_args!("hash_chain_gc 0 "));
    out.num("proxy_qlen", 0, format_args!("proxy_qlen 0 "));
    out.nl();
}

/// `ip ntable show` of these.
pub fn ntables(all: &[NtableView], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    let nl = if form.oneline { "\\" } else { "\n" };
    for v in all {
        let (family, name) = if v.six { ("inet6", "ndisc_cache") } else { ("inet", "arp_cache") };
        out.open_object(None);
        out.string("family", family, format_args!("{family} "));
        out.string("name", name, format_args!("{name} "));
        out.nl();
        if let Some(c) = &v.config {
            out.text_only(format_args!("    "));
            for (word, value) in TABLE_WORDS.into_iter().zip(c.limits) {
                let key = if word == "gc_int" { "gc_interval" } else { word };
                out.num(key, value, format_args!("{word} {value} "));
            }
            out.nl();
            if form.stats > 0 {
                show_config(c, &mut out);
            }
        }
        if let Some(dev) = &v.dev {
            out.string("dev", dev, format_args!("    dev {dev} "));
            out.nl();
        }
        out.text_only(format_args!("    "));
        show_lines(&NTABLE_PARMS, &v.parms, &mut out, nl);
        if let Some(c) = v.config.as_ref().filter(|_| form.stats > 0) {
            out.text_only(format_args!("    stats "));
            show_lines(&STATS, &c.stats, &mut out, nl);
        }
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}
