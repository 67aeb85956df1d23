//! What a script asks of programs and files that are not here, where the caller wants it taken for unknown and not for missing.
//!
//! A program that is not simulated is there, does nothing, ends well and prints the text that stands for what is unknown. A file that is not there
//! has a line of such texts when it is read, and none when it is sourced; that it is not there stays true for whoever tests it.

use crate::serve::{Ask, Request};
use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait};
use penstock_host::Program;
use std::path::Path;

/// A program that is not simulated.
pub(crate) struct Opaque {
    pub(crate) name: String,
    /// What it prints.
    pub(crate) text: String,
    pub(crate) ask: Ask,
}

#[async_trait]
impl Builtin for Opaque {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let place = ctx.variables.get(crate::LINE).cloned().unwrap_or_default();
        let _ = self.ask.requests.send(Request::Unknown(self.name.clone(), place));
        Ok(ExecResult::ok(format!("{}\n", self.text)))
    }
}

/// `which`: every program is there.
pub(crate) struct Which;

#[async_trait]
impl Builtin for Which {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let path = |w: &String| {
            let folder = if Program::is_of_scripts(w) { "/usr/sbin" } else { "/usr/bin" };
            if w.starts_with('/') { format!("{w}\n") } else { format!("{folder}/{w}\n") }
        };
        Ok(ExecResult::ok(ctx.args.iter().filter(|w| !w.starts_with('-')).map(path).collect::<String>()))
    }
}

/// `command -v NAME`, `type NAME`, `hash NAME`: asks for one that is there instead of one that nobody knows.
pub(crate) fn instead(name: &str, args: &mut [String]) {
    let asks = match name {
        "command" => args.first().is_some_and(|w| w == "-v" || w == "-V"),
        "type" | "hash" => true,
        _ => false,
    };
    if asks {
        let unknown = |w: &&mut String| !w.starts_with('-') && !Program::is_of_scripts(w);
        args.iter_mut().filter(unknown).for_each(|w| *w = "true".to_owned());
    }
}

/// Whether a file that is not there may have something in it that nobody knows: not what the machine answers for, nor what a script itself
/// would have written.
pub(crate) fn may_hold(path: &Path) -> bool {
    !["/proc", "/sys", "/dev", "/tmp", "/run", "/var/run", "/var/lock", "/bin", "/sbin", "/usr"]
        .iter()
        .any(|folder| path.starts_with(folder))
}
