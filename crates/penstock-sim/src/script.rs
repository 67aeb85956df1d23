//! A script of a machine's own shell: what it is asked, and what it may ask.

use crate::event::Timer;
use penstock_host::{Files, Output};
use penstock_model::Span;

/// What a script asks of its machine.
pub trait Execute {
    /// Carries out a command: its words as a process gets them, and what lends it files.
    fn command(&mut self, words: &[String], files: &mut dyn Files) -> Output;
    /// Begins a program that takes time: its number, or what it gave where it ended at once. `None` where there is no such program.
    fn launch(&mut self, words: &[String]) -> Option<Result<u32, Output>>;
    /// The programs of this script's that have ended since this was asked last, with what they printed and their exit status.
    fn ended(&mut self) -> Vec<(u32, Output)>;
    /// Gives a program a `SIGTERM`: its sockets are closed, and what it has printed is all it prints. iperf 2 goes on until it is done, as
    /// it does (`Sig_Interupt` waits for its threads at the first signal).
    fn kill(&mut self, program: u32);
}

/// A script of a machine's own shell, which may take pauses. The interpreter is the caller's.
pub trait Script: Send {
    /// Goes on at `since`, counted from its start, until it takes a pause or ends. It is called before its pause is over, too: when
    /// a program of its own has ended.
    fn go_on(&mut self, since: Span, execute: &mut dyn Execute) -> ScriptState;
    /// What it has printed since it was asked last.
    fn printed(&mut self) -> String;
}

/// How a script stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScriptState {
    /// It goes on so long after its start; `None` where it waits for programs alone.
    Waits(Option<Span>),
    /// Its exit status.
    Ended(i32),
}

/// A script with what it waits for.
pub(crate) struct Scripted {
    pub(crate) script: Box<dyn Script>,
    pub(crate) timer: Timer,
    /// Its programs of whose end it has not heard.
    pub(crate) programs: Vec<u32>,
}

impl Scripted {
    pub(crate) fn new(script: Box<dyn Script>) -> Scripted {
        Scripted { script, timer: Timer::default(), programs: Vec::new() }
    }
}
