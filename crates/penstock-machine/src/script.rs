//! Scripts and the prompt, on the machine that lives between calls.

use crate::{Machine, Session};
use penstock_host::Host;
use penstock_model::{Kernel, Time};
pub use penstock_shell::{Console, Given, Kept, Script, wants_more};

/// Runs a script on a machine: what its commands change is kept, command by command.
///
/// # Errors
/// Why it cannot be run at all.
pub fn run(machine: &Machine, script: &Script, console: &mut dyn Console) -> Result<i32, String> {
    penstock_shell::run(script, &mut machine.session(), console)
}

/// Runs a script on a machine made for it, with `eth0`, `eth1` and these devices. Answers the machine, the moment, and the script's
/// exit status.
///
/// # Errors
/// Why it cannot be run at all.
pub fn on_a_fresh_machine(
    script: &Script,
    kernel: Kernel,
    devices: &[&str],
    console: &mut dyn Console,
) -> Result<(Host, Time, i32), String> {
    let mut host = Host::new("penstock", kernel, 1);
    for name in ["eth0", "eth1"].iter().chain(devices) {
        host.add_device(name);
    }
    let now = Time::ZERO;
    let status = penstock_shell::run(script, &mut penstock_shell::At { host: &mut host, now }, console)?;
    Ok((host, now, status))
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
