//! A machine that lives as long as somebody holds it: a prompt.

use penstock_host::{Files, Host, Output};
use penstock_model::{Kernel, Time};
use penstock_shell::{Kept, Shell};
use serde_json::{Value, json};

/// A virtual machine with `eth0` and `eth1`, and a prompt at it.
pub struct Machine {
    host: Host,
    shell: Shell,
    commands: i64,
}

/// Each command happens a millisecond after the one before, as on the machine of `penstock tc`.
struct Ticking<'a>(&'a mut Host, &'a mut i64);

impl penstock_shell::Machine for Ticking<'_> {
    fn command(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        *self.1 += 1;
        self.0.command(words, files, Time::from_ns(*self.1 * 1_000_000))
    }
}

impl Default for Machine {
    fn default() -> Machine {
        let mut host = Host::new("penstock", Kernel::default(), 1);
        host.add_device("eth0");
        host.add_device("eth1");
        Machine { host, shell: Shell::new("penstock", &[]), commands: 0 }
    }
}

impl Machine {
    /// Runs what was typed: `{"stdout","stderr","status","ended"}`.
    pub fn line(&mut self, text: &str) -> Value {
        let mut kept = Kept::default();
        let mut machine = Ticking(&mut self.host, &mut self.commands);
        let done = self.shell.line(text, &mut machine, &mut kept);
        let (status, why) = match done {
            Ok(status) => (status, String::new()),
            Err(why) => (1, format!("{why}\n")),
        };
        json!({
            "stdout": kept.stdout, "stderr": kept.stderr + &why, "status": status, "ended": self.shell.has_ended(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_up_stays() {
        let mut machine = Machine::default();
        assert_eq!(machine.line("D=eth0; tc qdisc add dev $D root handle 7: sfq")["status"], 0);
        let shown = machine.line("tc qdisc show dev $D | cut -d' ' -f1-3");
        assert_eq!(
            (shown["stdout"].as_str(), shown["ended"].as_bool()),
            (Some("qdisc sfq 7:\n"), Some(false))
        );
        assert_eq!(machine.line("exit 3")["ended"], true);
    }
}
