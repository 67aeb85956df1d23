//! Commands on a machine, and the cards of devices that they make.

use crate::net::Net;
use crate::sock::Kind;
use penstock_host::{Files, Output};
use std::collections::BTreeMap;

/// Whether a command with this word may look at sockets.
pub(crate) fn shows_sockets(word: &str) -> bool {
    let program = word.rsplit('/').next().unwrap_or(word);
    matches!(program, "ss" | "nstat") || word.starts_with("/proc/net")
}

impl Net {
    /// Executes one command on a machine now, and what follows from it.
    pub(crate) fn command(&mut self, host: u32, words: &[String], files: &mut dyn Files) -> Output {
        if words.iter().any(|w| shows_sockets(w)) {
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
    /// Tells a machine and its namespaces of their sockets as they are now.
    pub(crate) fn tell_sockets(&mut self, host: u32) {
        for host in self.family(self.whole(host)) {
            let table = self.cwnd_table(host);
            let sockets = self.sockets_of(host);
            let told = &mut self.machines[host as usize].host;
            told.set_cwnd_table(table);
            told.tell_sockets(sockets);
            let counted = self.tcp_counted(host);
            self.machines[host as usize].host.snmp_mut().tell_tcp(counted);
        }
    }
    /// What the connections of a machine have counted.
    fn tcp_counted(&self, host: u32) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        for s in self.sockets.all.iter().filter(|s| s.host == host) {
            if let Kind::Tcp(t) = &s.kind {
                t.end.counted(&mut |name, n| *all.entry(name).or_default() += n);
            }
        }
        all
    }
    /// A command may have changed anything: new devices, queues that may go on.
    pub(crate) fn after_command(&mut self, host: u32) {
        self.cables.commands += 1;
        self.after_command_everywhere(self.whole(host));
    }
}
