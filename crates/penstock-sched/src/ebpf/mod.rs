//! eBPF programs: what the kernel takes for one, what it remembers in maps, and what it does to a packet.
//!
//! A program comes as the option `object` of a filter or an action (`penstock_lang::tc::object` says of what form). [`check`] is the kernel's half of
//! loading it (`BPF_PROG_LOAD`), [`Program::load`] makes it, [`Program::run`] runs it on one packet.
//!
//! The interpreter is our own: the crates there are run programs in this computer's own address space, hand helpers no packet and no maps, and know no
//! `__sk_buff`, no tail calls and no atomic operations.
//!
//! | file | what |
//! |---|---|
//! | `insn` | instructions, and the tag of a program |
//! | `verify` | what is refused for its instructions alone |
//! | `helper` | the helpers by their numbers |
//! | `map` | maps |
//! | `ctx` | `struct __sk_buff` |
//! | `vm`, `call` | instructions and helpers at work |
//! | `trial` | what is refused for what it does to some packets |
//!
//! Follows: linux v6.12 `kernel/bpf/syscall.c` `bpf_prog_load`, `kernel/bpf/verifier.c`, `net/core/filter.c`.
//! Differs: of what the verifier refuses only part is (never what it takes): what instructions alone tell, and what a program does wrong to any of a
//! few packets. A program that does so later ends there, answers 0 and is told of before the run's results are. `cb` is empty when a program begins.

mod call;
mod ctx;
mod helper;
mod insn;
mod map;
mod trial;
mod verify;
mod vm;

pub use verify::Refusal;
pub use vm::Lent;

use insn::Insn;
use map::{Map, NoMap};
use penstock_model::{Kernel, KernelError, Options};
use penstock_packet::Skb;
use std::cell::RefCell;
use vm::{FRAMES, Fault, STACK, Vm};

/// What the object itself has that is not simulated, as [`Options`] name it and as it is said.
const LACKS: [(&str, &str); 5] = [
    ("CO-RE relocations", "bpf with CO-RE relocations"),
    ("kfuncs or ksyms", "bpf with kfuncs or ksyms"),
    ("pinned maps", "bpf with pinned maps"),
    ("maps of maps", "bpf with maps of maps"),
    ("callbacks", "bpf with callbacks"),
];
/// What is said of a program that did wrong in a run.
const FAULT: &str = "bpf, whose program does what the kernel's verifier lets no program do,";

/// What a program has between packets.
struct State {
    maps: Vec<Map>,
    stack: Box<[u8]>,
    /// What it was seen to do or to ask for that is not simulated, or not allowed.
    fault: Option<&'static str>,
}

/// A program that was loaded.
pub struct Program {
    code: Vec<Insn>,
    missing: Option<&'static str>,
    state: RefCell<State>,
    /// What of it is dumped.
    shown: Options,
}

/// What a program answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// What it returns.
    pub said: u32,
    /// `tc_classid` as it leaves it.
    pub classid: u16,
}

/// The helpers that programs may call on Linux and that are not simulated, by name.
pub fn missing_helpers() -> impl Iterator<Item = &'static str> {
    helper::HELPERS.iter().filter(|h| h.missing.is_some()).map(|h| h.name)
}

/// Whether options name a program as an object.
pub fn is_object(options: &Options) -> bool {
    options.has("object")
}

/// The kernel's half of loading the object that `options` name, if they do.
///
/// # Errors
/// Why the kernel does not load it.
pub fn check(options: &Options, kernel: Kernel) -> Result<(), Refusal> {
    if is_object(options) { Program::load(options, kernel).map(drop) } else { Ok(()) }
}

impl Program {
    /// The program of the option `object`.
    ///
    /// # Errors
    /// Why the kernel does not load it.
    pub fn load(options: &Options, kernel: Kernel) -> Result<Program, Refusal> {
        let none = Options::new();
        let object = options.nested("object").unwrap_or(&none);
        let bytes = object.bytes("insns").unwrap_or_default();
        let code = insn::decode(bytes);
        let lacks = object.str("lacks").map(|lack| LACKS.iter().find(|(name, _)| *name == lack));
        let mut missing = lacks.map(|found| found.map_or("bpf", |(_, said)| said));
        let mut maps = Vec::new();
        for one in object.list("maps") {
            match Map::new(one) {
                Ok(map) => maps.push(map),
                Err(NoMap::Missing(what)) => missing = missing.or(Some(what)),
                Err(NoMap::Refused(why)) => {
                    let name = one.str("name").unwrap_or_default();
                    return Err(Refusal::new(
                        KernelError::EINVAL,
                        format!("map '{name}': failed to create: {why}"),
                    ));
                }
            }
        }
        // What has more than is known here is not looked into.
        if missing.is_none() {
            missing = verify::check(&code, maps.len(), object.str("license").unwrap_or_default())?;
        }
        let id = object.u32("id").unwrap_or(0);
        let tag: String = insn::tag(bytes, kernel).iter().map(|b| format!("{b:02x}")).collect();
        let shown = Options::new()
            .with("bpf_name", object.str("bpf_name").unwrap_or_default())
            .with("id", id)
            .with("program", object.str("program").unwrap_or_default())
            .with("tag", tag);
        let state = State { maps, stack: vec![0; STACK * FRAMES].into(), fault: None };
        let program = Program { code, missing, state: RefCell::new(state), shown };
        if program.missing.is_none() {
            trial::run(&program)?;
        }
        Ok(program)
    }
    /// What of it is not simulated, or has turned out not to be allowed; `None`: all is well.
    pub fn missing(&self) -> Option<&'static str> {
        self.missing.or_else(|| self.state.borrow().fault)
    }
    /// What a dump says of it: `bpf_name`, `id`, `program`, `tag`.
    pub fn dump(&self, out: &mut Options) {
        for (name, value) in self.shown.iter() {
            out.set(name, value.clone());
        }
    }
    /// Runs it on a packet whose `tc_classid` is this. One that cannot go on answers 0.
    pub fn run(&self, skb: &mut Skb, classid: u16, lent: &mut Lent<'_>) -> Answer {
        if self.missing.is_some() {
            return Answer { said: 0, classid };
        }
        let state = &mut *self.state.borrow_mut();
        match go(&self.code, &mut state.maps, &mut state.stack, skb, classid, lent) {
            Ok(answer) => answer,
            Err(fault) => {
                state.fault = Some(match fault {
                    Fault::Refused(_) => FAULT,
                    Fault::Missing(what) => what,
                });
                Answer { said: 0, classid }
            }
        }
    }
}

/// Runs a program on a packet.
fn go(
    code: &[Insn],
    maps: &mut [Map],
    stack: &mut [u8],
    skb: &mut Skb,
    classid: u16,
    lent: &mut Lent<'_>,
) -> Result<Answer, Fault> {
    stack[..STACK].fill(0);
    let mut vm = Vm::new(code, maps, stack, skb, lent, classid);
    let said = vm.run()? as u32;
    vm.settle();
    Ok(Answer { said, classid: vm.classid })
}

/// Sends a packet to the device that its program has named (`skb_do_redirect`).
pub(crate) fn redirect(skb: &mut Skb, acts: &mut crate::act::Actions) {
    if let Some((ifindex, receive)) = acts.redirect.take() {
        let sent = call::sent_to(skb, ifindex, receive, false);
        acts.sent.push(sent);
    }
}

#[cfg(test)]
mod tests;
