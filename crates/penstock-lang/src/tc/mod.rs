//! `tc`: its command lines to requests, its refusals word for word.
//!
//! [`parse`] is tc's own half of the work: grammar, units, the values it computes before it asks the kernel (bursts, cell
//! sizes, u32 keys), and its messages. The kernel's half (what is legal in the tree as it stands) is `sched`'s.
//!
//! Follows: iproute2 6.1.0 `tc/tc.c`, `tc_qdisc.c`, `tc_class.c`, `tc_filter.c`; iproute2 2.6.35 for [`Kernel::V2_6_35`].
//! Differs: usage texts are our own but for their first lines; `monitor`, `exec bpf` and `-netns` are refused with a sentence.

pub mod actions;
pub mod args;
pub mod batch;
mod bpf;
pub mod kinds;
pub mod num;
pub mod object;

mod class;
mod estimator;
mod filter;
pub mod filters;
mod qdisc;
pub mod say;
mod usage;

use crate::show::Form;
use crate::token::Word;
use args::{Args, matches};
use penstock_model::rtnetlink::{
    ActionDump, ActionRequest, ActionVerb, ClassRequest, FilterRequest, QdiscRequest,
};
use penstock_model::{Diagnostic, Handle, Kernel, Options};

/// What one command line asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// RTM_NEWQDISC, RTM_DELQDISC. Without a device the kernel answers ENODEV.
    Qdisc {
        /// Device.
        dev: Option<String>,
        /// The request.
        req: QdiscRequest,
    },
    /// RTM_NEWTCLASS, RTM_DELTCLASS.
    Class {
        /// Device.
        dev: Option<String>,
        /// The request.
        req: ClassRequest,
    },
    /// RTM_NEWTFILTER, RTM_DELTFILTER.
    Filter {
        /// Device.
        dev: Option<String>,
        /// The request.
        req: FilterRequest,
    },
    /// RTM_NEWCHAIN, RTM_DELCHAIN.
    Chain {
        /// Device.
        dev: Option<String>,
        /// The request.
        req: FilterRequest,
    },
    /// `tc qdisc show`.
    ShowQdisc(Show),
    /// `tc class show`.
    ShowClass(Show),
    /// `tc filter show`.
    ShowFilter(Show),
    /// `tc filter get`: the one filter the request names.
    GetFilter(Show, FilterRequest),
    /// `tc chain show`.
    ShowChain(Show),
    /// `tc chain get`: the one chain the request names.
    GetChain(Show, FilterRequest),
    /// RTM_NEWACTION, RTM_DELACTION, RTM_GETACTION.
    Action {
        /// The request.
        req: ActionRequest,
        /// How to print what is got.
        form: Form,
    },
    /// `tc actions show`.
    ShowActions {
        /// What is asked for.
        dump: ActionDump,
        /// How to print.
        form: Form,
    },
    /// A refusal of tc behind a command that is carried out first.
    Fail(Failure),
    /// Usage and warnings, which tc writes to stderr. Exit code 0 of themselves.
    Help(String),
    /// What tc writes to stdout of itself: its version.
    Say(String),
    /// `tc -batch FILE`: each line of it is a command without the word `tc`. Without `force` the first failure ends it.
    Batch {
        /// File name; `-` is standard input.
        file: String,
        /// `-force`.
        force: bool,
        /// The flags given before, which hold for every line.
        form: Form,
    },
}

/// What a `show` command asks for.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Show {
    /// Device; all of them where none is given.
    pub dev: Option<String>,
    /// The shared block of filters instead of a device's; 0 for none.
    pub block: u32,
    /// Only children of this parent (qdiscs), only filters on it (filters; [`Handle::UNSPEC`]: the root qdisc's), only below
    /// it (classes). [`Handle::UNSPEC`]: no matter.
    pub parent: Handle,
    /// Only the qdisc with this handle.
    pub handle: Handle,
    /// Only classes of this qdisc; their ids are then printed without the major.
    pub qdisc: Handle,
    /// Only this class.
    pub classid: Handle,
    /// Only filters of this priority; 0: all.
    pub prio: u32,
    /// Only filters of this protocol; 0: all.
    pub protocol: u16,
    /// Only filters of this chain.
    pub chain: Option<u32>,
    /// `invisible`: also qdiscs the kernel hides (the `pfifo` leaves of classes).
    pub invisible: bool,
    /// How to print.
    pub form: Form,
}

/// tc's refusal.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// What tc writes to stderr, newline included; the first line is tc's own.
    pub stderr: String,
    /// Its exit code: 1, 2 or 255.
    pub exit: i32,
    /// tc calls `exit` here, so that even a batch ends.
    pub aborts: bool,
    /// The same with place and advice. `line` and `source` are the caller's to fill in
    /// ([`Line::place`](crate::token::Line::place)).
    pub diagnostic: Box<Diagnostic>,
}

/// What tc asks its surroundings while it reads a command.
pub struct Env<'a> {
    /// Profile: which iproute2 this is.
    pub kernel: Kernel,
    /// The device of that name, where there is one.
    pub device: &'a dyn Fn(&str) -> Option<Link>,
    /// The files that commands name, and the kernel that loads programs from them.
    pub objects: &'a dyn Objects,
}

/// Files with programs of BPF, and the kernel that takes them.
pub trait Objects {
    /// The whole of a file, as [`penstock_model::binary`] carries it; `None`: it cannot be read.
    fn read(&self, path: &str) -> Option<String>;
    /// Loads the program of the option `object` (`BPF_PROG_LOAD`); its id.
    ///
    /// # Errors
    /// The errno, and the last line of the verifier's log.
    fn load(&self, options: &Options) -> Result<u32, (i32, String)>;
}

/// No files.
pub struct NoObjects;

impl Objects for NoObjects {
    fn read(&self, _: &str) -> Option<String> {
        None
    }
    fn load(&self, _: &Options) -> Result<u32, (i32, String)> {
        Ok(0)
    }
}

/// What tc learns of a device from `/sys/class/net`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Link {
    /// Index, from 1; 0 where it does not matter.
    pub ifindex: u32,
    /// `speed`, Mbit/s; `None` where the driver gives none.
    pub speed_mbit: Option<u32>,
}

/// Reads one command line, with or without its first word `tc`. More than one command comes back where tc prints a usage text or
/// a warning before it does the work.
///
/// # Errors
/// tc's refusal.
pub fn parse(words: &[Word], kernel: Kernel) -> Result<Vec<Command>, Failure> {
    parse_in(words, &Env { kernel, device: &|_| Some(Link::default()), objects: &NoObjects })
}

/// The same with surroundings: which devices there are and how fast.
///
/// # Errors
/// tc's refusal.
pub fn parse_in(words: &[Word], env: &Env) -> Result<Vec<Command>, Failure> {
    let words = match words.first() {
        Some(w) if is_tc(&w.text) => &words[1..],
        _ => words,
    };
    let mut args = Args::new(words, env);
    let command = flags(&mut args);
    after(args.said, command)
}

/// Reads one line of a batch file: no flags of its own.
///
/// # Errors
/// tc's refusal.
pub fn parse_batch_line(words: &[Word], form: &Form, env: &Env) -> Result<Vec<Command>, Failure> {
    let mut args = Args::new(words, env);
    args.raw = form.raw;
    let command = object(&mut args, form.clone());
    after(args.said, command)
}

/// What was said on the way, then the command; a refusal's stderr begins with it.
fn after(said: Vec<Command>, command: Result<Option<Command>, Failure>) -> Result<Vec<Command>, Failure> {
    match command {
        Ok(command) => Ok(said.into_iter().chain(command).collect()),
        Err(mut failure) => {
            let before = said.iter().filter_map(|c| match c {
                Command::Help(text) => Some(text.as_str()),
                _ => None,
            });
            failure.stderr = before.collect::<String>() + &failure.stderr;
            Err(failure)
        }
    }
}

/// Whether a word names the program: `tc`, `/sbin/tc`.
pub fn is_tc(word: &str) -> bool {
    word == "tc" || word.ends_with("/tc")
}

/// tc's refusal of a device that is not there.
pub fn no_device(name: &str) -> Failure {
    let line = format!("Cannot find device \"{name}\"");
    let diagnostic = Diagnostic::error(line.clone()).help("there is no such device on this machine");
    Failure { stderr: line + "\n", exit: 1, aborts: false, diagnostic: Box::new(diagnostic) }
}

/// What tc prints when the kernel refuses a request, its exit code 2 with it. Filters have a second line.
pub fn refused(command: &Command, error: &penstock_model::KernelError) -> Failure {
    let line = error.to_string();
    let mut stderr = format!("{line}\n");
    if matches!(
        command,
        Command::Filter { .. } | Command::GetFilter(..) | Command::Chain { .. } | Command::GetChain(..)
    ) {
        stderr.push_str("We have an error talking to the kernel\n");
    }
    let mut exit = 2;
    if let Command::Action { req, .. } = command {
        exit = if req.verb == ActionVerb::Flush { 1 } else { 255 };
        stderr.push_str(match req.verb {
            ActionVerb::Flush => "We have an error flushing\n",
            ActionVerb::Add | ActionVerb::Replace => "We have an error talking to the kernel\n",
            // tc goes on with the word before the kind.
            ActionVerb::Del | ActionVerb::Get => {
                "We have an error talking to the kernel\nCommand \"action\" is unknown, try \"tc actions help\".\n"
            }
        });
    }
    Failure { stderr, exit, aborts: false, diagnostic: Box::new(Diagnostic::error(line)) }
}

fn flags(args: &mut Args) -> Result<Option<Command>, Failure> {
    let (mut form, mut force, mut batch) = (Form::default(), false, None);
    let old = args.old();
    while let Some(word) = args.peek().filter(|w| w.text.starts_with('-')) {
        args.next_word();
        let is = |full: &str| matches(&word.text, full);
        if is("-stats") || is("-statistics") {
            form.stats = true;
        } else if is("-details") {
            form.details = true;
        } else if is("-raw") {
            (form.raw, args.raw) = (true, true);
        } else if is("-pretty") {
            form.pretty = true;
        } else if !old && is("-graph") {
            form.graph = true;
        } else if is("-Version") {
            let version = match args.kernel() {
                Kernel::V2_6_35 => "tc utility, iproute2-ss100804\n",
                Kernel::V6_12 => "tc utility, iproute2-6.1.0, libbpf 1.1.2\n",
                Kernel::V7_2 => "tc utility, iproute2-7.3.0, libbpf 1.7.0\n",
            };
            return Ok(Some(Command::Say(version.to_owned())));
        } else if is("-iec") {
            form.iec = true;
        } else if is("-help") {
            return Ok(Some(Command::Help(usage::TC.to_owned())));
        } else if is("-force") {
            force = true;
        } else if is("-batch") {
            match args.next_word() {
                Some(file) => batch = Some(file.text.clone()),
                None if old => batch = Some("-".to_owned()),
                None => return Ok(Some(Command::Help(usage::TC.to_owned()))),
            }
        } else if old {
            return Err(unknown_option(args, &word.text));
        } else if is("-netns") {
            args.value()?;
            return Err(args.fail(
                "tc: -netns is not understood here",
                255,
                "give the command on the machine it is meant for",
            ));
        } else if is("-Numeric") {
            form.numeric = true;
        } else if is("-names") || is("-nm") {
            form.names = true;
        } else if is("-cf") || is("-conf") {
            // tc counts its own name as the value that must follow.
            args.next_word();
        } else if let Some(when) = colour(&word.text) {
            // No terminal is looked at: `auto` is never.
            form.colour = when;
        } else if ["-timestamp", "-tshort"].into_iter().any(is) {
            // Only `monitor` has times.
        } else if is("-json") {
            form.json = true;
        } else if is("-oneline") {
            form.oneline = true;
        } else if is("-brief") {
            form.brief = true;
        } else {
            return Err(unknown_option(args, &word.text));
        }
    }
    if let Some(file) = batch {
        return Ok(Some(Command::Batch { file, force, form }));
    }
    if args.left() == 0 {
        return Ok(Some(Command::Help(usage::TC.to_owned())));
    }
    object(args, form)
}

/// `matches_color`: `-color` or a beginning of it, perhaps with `=always`, `=auto`, `=never`. Whether it asks for colours.
fn colour(word: &str) -> Option<bool> {
    let (name, when) = word.split_once('=').unwrap_or((word, ""));
    let known = matches(name, "-color") && ["", "always", "auto", "never"].contains(&when);
    known.then_some(matches!(when, "" | "always"))
}

fn unknown_option(args: &Args, word: &str) -> Failure {
    args.fail(
        format!("Option \"{word}\" is unknown, try \"tc -help\"."),
        255,
        "options before the object: -s -d -r -p -j -b FILE …",
    )
}

/// `do_tcmonitor`: its words are checked.
fn monitor(args: &mut Args) -> Result<Option<Command>, Failure> {
    let help = "tc qdisc show, tc class show and tc filter show say how it is now";
    while let Some(word) = args.next_word() {
        if matches(&word.text, "file") {
            args.value()?;
        } else if matches(&word.text, "help") {
            let text = usage::MONITOR.trim_end();
            return Err(args.fail(text, 255, help).aborting());
        } else {
            let line = format!("Argument \"{}\" is unknown, try \"tc monitor help\".", word.text);
            return Err(args.fail(line, 255, help).aborting());
        }
    }
    let line = "tc monitor: this machine reports no events; its commands are in the journal of its state";
    Err(args.fail(line, 1, help))
}

/// `do_exec`: of its kinds only bpf does anything, and there are no programs of that sort here.
fn exec(args: &mut Args) -> Result<Option<Command>, Failure> {
    let help = "tc exec bpf works on compiled programs, which are not run here";
    let Some(kind) = args.next_word() else {
        return Err(args.fail("No command given, try \"tc exec help\".", 255, help));
    };
    if matches(&kind.text, "help") {
        return Ok(Some(Command::Help(usage::EXEC.to_owned())));
    }
    if kind.text == "bpf" {
        return Err(args.fail("tc exec: programs of bpf are not run here", 255, help));
    }
    match args.next_word() {
        None => Ok(None),
        Some(word) => {
            let line =
                format!("Unknown exec \"{}\", hence option \"{}\" is unparsable", kind.text, word.text);
            Err(args.fail(line, 255, help))
        }
    }
}

fn object(args: &mut Args, form: Form) -> Result<Option<Command>, Failure> {
    let Some(word) = args.next_word() else { return Ok(None) };
    let is = |full: &str| matches(&word.text, full);
    if is("qdisc") {
        qdisc::command(args, form).map(Some)
    } else if is("class") {
        class::command(args, form).map(Some)
    } else if is("filter") {
        filter::command(args, form).map(Some)
    } else if !args.old() && is("chain") {
        filter::chain_command(args, form).map(Some)
    } else if is("actions") {
        actions::command(args, &form)
    } else if is("monitor") {
        monitor(args)
    } else if !args.old() && is("exec") {
        exec(args)
    } else if is("help") {
        Ok(Some(Command::Help(usage::TC.to_owned())))
    } else {
        Err(args.fail(
            format!("Object \"{}\" is unknown, try \"tc help\".", word.text),
            255,
            "objects: qdisc, class, filter",
        ))
    }
}
