//! What `tc … show` prints: text of both profiles, and JSON.
//!
//! Follows: iproute2 6.1.0 `tc/tc_qdisc.c` `print_qdisc`, `tc/tc_class.c` `print_class`, `tc/tc_filter.c` `print_filter`,
//! `tc/tc_util.c` `print_tcstats2_attr`; the same of 2.6.35. Trailing blanks are tc's.
//! Differs: `-j` of filters is always valid JSON (tc 6.1 breaks it for fw, and for u32 with `-p` or an offset).

mod action;
mod class;
mod filter;
mod graph;
mod out;
mod qdisc;

pub use out::{Out, size_text, time_text};

use crate::tc::Show;
use penstock_model::rtnetlink::{ChainDump, ClassDump, FilterDump, QdiscDump, Stats};
use penstock_model::{Kernel, Options};

/// tc's flags that decide how things are printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Form {
    /// `-s`: counters.
    pub stats: bool,
    /// `-d`: details.
    pub details: bool,
    /// `-r`: raw numbers beside.
    pub raw: bool,
    /// `-p`: JSON over several lines; u32 keys as they were meant.
    pub pretty: bool,
    /// `-j`.
    pub json: bool,
    /// `-iec`: rates in powers of 1024.
    pub iec: bool,
    /// `-g`: classes as a tree.
    pub graph: bool,
    /// `-o`: one line each.
    pub oneline: bool,
    /// `-N`: protocols as numbers.
    pub numeric: bool,
    /// `-nm`: class names from a file; there are none here.
    pub names: bool,
    /// `-br`.
    pub brief: bool,
    /// `-c`: names of devices in colour, except in JSON.
    pub colour: bool,
}

/// `tc qdisc show`: the dumps in the kernel's order, each with its device's name. Those that `show` does not ask for are left out,
/// except that the caller chooses the devices.
pub fn qdiscs(dumps: &[(String, QdiscDump)], show: &Show, kernel: Kernel) -> String {
    qdisc::print(dumps, show, kernel)
}

/// The parameters of a qdisc in one line: what tc prints of it behind its parent.
pub fn options(dump: &QdiscDump, kernel: Kernel) -> String {
    qdisc::options(dump, kernel)
}

/// `tc class show`. Below which parent the kernel looks is the caller's to choose (`show.parent`).
pub fn classes(dumps: &[(String, ClassDump)], show: &Show, kernel: Kernel) -> String {
    class::print(dumps, show, kernel)
}

/// `tc filter show`. Which parent, priority and protocol the kernel dumps is the caller's to choose.
pub fn filters(dumps: &[(String, FilterDump)], show: &Show, kernel: Kernel) -> String {
    filter::print(dumps, show, kernel)
}

/// `tc actions show`: the messages of a dump, each with its actions and the number it gives of them; of `get` with none.
pub fn actions(messages: &[(u32, Vec<Options>)], form: &Form, kernel: Kernel) -> String {
    action::print(messages, form, kernel)
}

/// `tc chain show`.
pub fn chains(dumps: &[(String, ChainDump)], show: &Show, kernel: Kernel) -> String {
    filter::print_chains(dumps, show, kernel)
}

/// Counters, as both qdiscs and classes have them, each line behind `prefix`. No newline at the end.
pub(crate) fn stats(stats: &Stats, prefix: &str, out: &mut Out) {
    out.text_only(format_args!("{prefix}"));
    out.num("bytes", stats.bytes, format_args!("Sent {} bytes", stats.bytes));
    out.num("packets", stats.packets, format_args!(" {} pkt", stats.packets));
    queue_stats(stats, prefix, out);
}

/// Counters of a class that counts only what is queued (sfq's).
fn queue_stats(stats: &Stats, prefix: &str, out: &mut Out) {
    out.num("drops", stats.drops, format_args!(" (dropped {}", stats.drops));
    out.num("overlimits", stats.overlimits, format_args!(", overlimits {}", stats.overlimits));
    out.num("requeues", stats.requeues, format_args!(" requeues {}) ", stats.requeues));
    let old = out.old();
    if let Some((bytes_per_s, packets_per_s)) = stats.rate {
        out.text_only(format_args!("\n{prefix}"));
        out.rate(Some("rate"), "rate ", bytes_per_s, "");
        out.num("pps", packets_per_s, format_args!(" {packets_per_s}pps{}", if old { " " } else { "" }));
    } else {
        out.nl();
    }
    // Behind a rate the line goes on, today with the prefix once more.
    if !old || stats.rate.is_none() {
        out.text_only(format_args!("{prefix}"));
    }
    out.size("backlog", "backlog ", stats.backlog, "");
    out.num("qlen", stats.qlen, format_args!(" {}p", stats.qlen));
    out.text_only(format_args!(" requeues {}{}", stats.requeues, if old { " " } else { "" }));
}
