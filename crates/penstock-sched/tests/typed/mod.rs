//! A device and what one types at it.

use penstock_lang::show;
use penstock_lang::tc::{self, Command};
use penstock_model::rtnetlink::{ClassDump, QdiscDump};
use penstock_model::{Kernel, KernelError, Rng, Time};
use penstock_sched::{Actions, Cx, Device, Ledger, Tree};

/// A device with its qdiscs.
pub struct Bench {
    tree: Tree,
    rng: Rng,
    drops: Ledger,
    acts: Actions,
    kernel: Kernel,
}

impl Bench {
    /// With this tree.
    pub fn new(tree: Tree) -> Bench {
        let kernel = tree.device().kernel;
        Bench { tree, rng: Rng::named(1, "typed"), drops: Ledger::new(), acts: Actions::new(), kernel }
    }
    /// Runs a command: what tc prints to standard output, or its first line on standard error.
    pub fn tc(&mut self, line: &str) -> String {
        let words = penstock_lang::token::words(&format!("tc {line}")).unwrap();
        let command = match tc::parse(&words, self.kernel) {
            Ok(mut commands) => commands.pop().expect("a command"),
            Err(failure) => return failure.stderr.lines().next().unwrap_or("").to_owned() + "\n",
        };
        let mut cx = Cx { now: Time::ZERO, rng: &mut self.rng, drops: &mut self.drops, acts: &mut self.acts };
        let done = match &command {
            Command::Qdisc { req, .. } => self.tree.qdisc(req, &mut cx),
            Command::Class { req, .. } => self.tree.class(req, &mut cx),
            Command::Filter { req, .. } => self.tree.filter(req, &mut cx),
            Command::ShowQdisc(asked) => {
                let dumps = match asked.invisible {
                    true => self.tree.dump_invisible(Time::ZERO),
                    false => self.tree.dump_qdiscs(Time::ZERO),
                };
                let dumps: Vec<(String, QdiscDump)> =
                    dumps.into_iter().map(|d| ("d".to_owned(), d)).collect();
                return show::qdiscs(&dumps, asked, self.kernel);
            }
            Command::ShowClass(asked) => {
                let dumps = self.tree.dump_classes(Time::ZERO);
                let dumps: Vec<(String, ClassDump)> =
                    dumps.into_iter().map(|d| ("d".to_owned(), d)).collect();
                return show::classes(&dumps, asked, self.kernel);
            }
            _ => panic!("{line}"),
        };
        match done {
            Ok(()) => self.tree.take_warning().map_or_else(String::new, |said| format!("Warning: {said}.\n")),
            Err(error) => said(&error),
        }
    }
    /// The same, for one that must print exactly this.
    pub fn gives(&mut self, line: &str, want: &str) {
        assert_eq!(self.tc(line), want, "tc {line}");
    }
}

fn said(error: &KernelError) -> String {
    format!("{error}\n")
}

/// An Ethernet device with this many transmit queues.
pub fn device(tx_queues: u32, kernel: Kernel) -> Device {
    let (mtu, tx_queue_len) = (1500, 1000);
    Device {
        ifindex: 2,
        mtu,
        hard_header_len: 14,
        tx_queue_len,
        tx_queues,
        speed_mbit: None,
        kernel,
        clock: Default::default(),
        hz: kernel.hz(),
    }
}
