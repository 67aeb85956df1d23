//! Setups that only a shell can run: loops, functions, pipes, variables that are computed.

use super::build::{Built, at};
use crate::experiment::{self as spec, Experiment, Script};
use penstock_lang::token;
use penstock_measure::record::SetupFailure;
use penstock_model::{Diagnostic, Severity, Time};
use penstock_shell::{At, Given, Kept};
use penstock_sim::HostId;

/// Words that begin what only a shell understands.
const RESERVED: &[&str] = &[
    ".", "[", "[[", "{", "case", "declare", "eval", "export", "for", "function", "if", "local", "read",
    "return", "shift", "source", "test", "trap", "until", "while",
];

/// Whether a script is more than command lines one after the other. A quote that never closes and a variable that is never set
/// are faults, not reasons for a shell.
pub(super) fn wanted(text: &str) -> bool {
    const FAULTS: &[&str] = &["Unterminated quoted string", "is not set in this script"];
    match token::script(text) {
        Ok(lines) => lines.iter().any(|l| RESERVED.contains(&l.words[0].text.as_str())),
        Err(wrong) => wrong.iter().any(|d| !FAULTS.iter().any(|fault| d.message.contains(fault))),
    }
}

impl Built {
    /// Runs a setup by the interpreter. A command that fails and is heard of is a fault; one whose failure the script keeps quiet
    /// (`2>/dev/null`) is the script's own business.
    pub(super) fn interpret(
        &mut self,
        host: &spec::Host,
        id: HostId,
        script: &Script,
        experiment: &Experiment,
        faults: &mut Vec<Diagnostic>,
    ) {
        let name = if script.file.is_empty() { "setup".to_owned() } else { script.file.clone() };
        let text = penstock_shell::Script { text: script.text.clone(), name, ..Default::default() };
        let mut kept = Kept::default();
        let mut machine = At { host: self.world.host_mut(id), now: Time::ZERO };
        let status = penstock_shell::run(&text, &mut machine, &mut kept);
        // What followed from the commands is taken up by the world with the next one.
        self.world.exec(id, ":");
        let heard = |c: &&Given| {
            let said = c.output.stderr.lines().next().unwrap_or_default();
            c.output.status != 0 && !said.is_empty() && kept.stderr.contains(said)
        };
        let before = faults.len();
        for given in kept.commands.iter().filter(heard) {
            let said = given.output.stderr.trim_end();
            if host.setup_may_fail {
                let (command, message) = (given.words.join(" "), said.to_owned());
                self.failures.push(SetupFailure { host: host.name.clone(), command, message });
                continue;
            }
            let first = said.lines().next().unwrap_or_default();
            let found = given.output.diagnostics.iter().find(|d| d.severity == Severity::Error);
            let fault = match found {
                Some(d) => Diagnostic { message: format!("{}: {first}", host.name), ..d.clone() },
                None => {
                    Diagnostic { line: given.line, ..Diagnostic::error(format!("{}: {first}", host.name)) }
                }
            };
            faults.push(script.place_fault(fault));
        }
        let why = match status {
            Ok(0) => return,
            Ok(status) => format!("the script ended with status {status}"),
            // What a script has not come to is nothing that it may fail at.
            Err(why) => {
                faults.push(at(experiment, &script.place, format!("{}: {why}", host.name)));
                return;
            }
        };
        if faults.len() == before && !host.setup_may_fail {
            let said = kept.stderr.lines().last().map(|l| format!(" ({l})")).unwrap_or_default();
            faults.push(at(experiment, &script.place, format!("{}: {why}{said}", host.name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::wanted;

    #[test]
    fn who_needs_a_shell() {
        for text in [
            "for i in 1 2; do tc qdisc; done",
            "tc qdisc show | grep htb",
            "x=$(tc qdisc)\n",
            "add() { tc qdisc; }",
            "if true; then tc qdisc; fi",
            "tc qdisc > listing",
        ] {
            assert!(wanted(text), "{text}");
        }
        for text in [
            "tc qdisc show\n",
            "DEV=eth0\ntc qdisc del dev $DEV root 2>/dev/null || true",
            "tc 'open",
            "tc $NOT_SET",
        ] {
            assert!(!wanted(text), "{text}");
        }
    }
}
