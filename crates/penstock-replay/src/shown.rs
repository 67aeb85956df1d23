//! Commands among the packets that show something: what they print, and what their looking costs.

use super::clock::Machine;
use super::{DEV, without_seconds};
use penstock_lang::show;
use penstock_lang::tc::{Command, Show};
use penstock_model::{Handle, Options};
use penstock_sched::cls::Select;
use std::collections::BTreeSet;

/// What `tc qdisc|class|filter show` of the device prints; `None` for another command.
pub fn printed(machine: &mut Machine, command: &Command) -> Option<String> {
    let (Command::ShowQdisc(show) | Command::ShowClass(show) | Command::ShowFilter(show)) = command else {
        return None;
    };
    machine.show_starts(show.form.json);
    let (text, searched) = match command {
        Command::ShowQdisc(_) => qdiscs(machine, show),
        Command::ShowClass(_) => classes(machine, show),
        _ => filters(machine, show),
    };
    // It looks for their libraries when it has the answer.
    (0..searched).for_each(|_| machine.fail_call());
    Some(text)
}

/// What is printed, and how many libraries are looked for in vain. For pfifo_fast tc looks for prio.
//= iproute2 6.1 tc/tc_qdisc.c print_qdisc
fn qdiscs(machine: &mut Machine, show: &Show) -> (String, u32) {
    let dumps = machine.tree.dump_qdiscs(machine.kernel_time());
    let kinds: BTreeSet<&str> =
        dumps.iter().map(|d| if d.kind == "pfifo_fast" { "prio" } else { d.kind }).collect();
    let searched = kinds.len() as u32;
    let dumps: Vec<_> = dumps.into_iter().map(|d| (DEV.to_owned(), d)).collect();
    let text = show::qdiscs(&dumps, show, machine.kernel());
    machine.kernel_looks(machine.tree.dump_looks());
    (text, searched)
}

fn classes(machine: &mut Machine, show: &Show) -> (String, u32) {
    let dumps = machine.tree.show_classes(Handle::UNSPEC, machine.kernel_time());
    let kinds: BTreeSet<&str> = dumps.iter().map(|d| d.kind).collect();
    let searched = kinds.len() as u32;
    let dumps: Vec<_> = dumps.into_iter().map(|d| (DEV.to_owned(), d)).collect();
    (show::classes(&dumps, show, machine.kernel()), searched)
}

fn filters(machine: &mut Machine, show: &Show) -> (String, u32) {
    let select = Select { prio: show.prio as u16, protocol: show.protocol, chain: show.chain, terse: false };
    let (dumps, _) = machine.tree.show_filters(show.parent, select, machine.look());
    let kinds: BTreeSet<&str> = dumps.iter().map(|d| d.kind).collect();
    let actions: BTreeSet<String> =
        dumps.iter().filter_map(|d| d.options.as_ref()).flat_map(kinds_of_actions).collect();
    let searched = (kinds.len() + actions.len()) as u32;
    let dumps: Vec<_> = dumps.into_iter().map(|d| (DEV.to_owned(), d)).collect();
    let text = show::filters(&dumps, show, machine.kernel());
    (text.lines().map(|line| without_seconds(line) + "\n").collect(), searched)
}

/// The kinds of a filter's actions.
fn kinds_of_actions(options: &Options) -> Vec<String> {
    let kind = |action: &Options| action.str("kind").map(str::to_owned);
    options.list("action").iter().filter_map(kind).collect()
}
