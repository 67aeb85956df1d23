//! Scripts and the prompt, on the machine that lives between calls.

use crate::machine::{Machine, Session};
pub use penstock_shell::{Console, Given, Kept, Script, wants_more};

/// Runs a script on a machine: what its commands change is kept, command by command.
///
/// # Errors
/// Why it cannot be run at all.
pub fn run(machine: &Machine, script: &Script, console: &mut dyn Console) -> Result<i32, String> {
    penstock_shell::run(script, &mut machine.session(), console)
}

/// A prompt: variables and functions live from line to line.
pub struct Prompt<'a> {
    session: Session<'a>,
    shell: penstock_shell::Shell,
}

impl<'a> Prompt<'a> {
    /// A prompt at a machine.
    pub fn new(machine: &'a Machine, files: &[(String, String)]) -> Prompt<'a> {
        Prompt { session: machine.session(), shell: penstock_shell::Shell::new("penstock", files) }
    }

    /// Runs what was typed.
    ///
    /// # Errors
    /// Why it cannot be run at all.
    pub fn line(&mut self, text: &str, console: &mut dyn Console) -> Result<i32, String> {
        self.shell.line(text, &mut self.session, console)
    }

    /// Whether a line has said `exit`.
    pub fn has_ended(&self) -> bool {
        self.shell.has_ended()
    }
}
