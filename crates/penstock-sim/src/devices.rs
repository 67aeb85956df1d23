//! Commands on a machine, and the cards of devices that they make.

use crate::net::Net;
use penstock_host::{Files, Output};

impl Net {
    /// Executes one command on a machine now, and what follows from it.
    pub(crate) fn command(&mut self, host: u32, words: &[String], files: &mut dyn Files) -> Output {
        if words.iter().any(|w| w.starts_with("/proc/net")) {
            self.tell_sockets(host);
        }
        let now = self.queue.now();
        if self.tapped {
            let quoted: Vec<String> = words.iter().map(|w| penstock_lang::token::quoted(w)).collect();
            self.tap_command(host, &quoted.join(" "));
        }
        let output = self.with_spaces(host, |h| h.command(words, files, now));
        self.after_command(host);
        output
    }
    /// Lets the machine's `/proc/net` show its sockets as they are now.
    pub(crate) fn tell_sockets(&mut self, host: u32) {
        let table = self.cwnd_table(host);
        self.machines[host as usize].host.set_cwnd_table(table);
    }
    /// A command may have changed anything: new devices, queues that may go on.
    pub(crate) fn after_command(&mut self, host: u32) {
        self.cables.commands += 1;
        self.after_command_everywhere(self.whole(host));
    }
}
