//! `iptables`, `ip6tables`, `-save`, `-restore`, `nft` and `ipchains` as programs.

use super::{Files, Ran};
use crate::{Host, Output};
use penstock_lang::iptables::restore::{restore_options, save_options};
use penstock_lang::iptables::{self, Failure, Family, Table};
use penstock_lang::token::Line;
use penstock_model::Time;

fn failed(f: &Failure, line: &Line) -> Ran {
    Output::fail(f.stderr.clone(), f.exit, &f.help).at_word(line, f.word)
}

/// The table that a line of `iptables` names.
fn table_named(line: &Line) -> Table {
    let words: Vec<&str> = line.words.iter().map(|w| w.text.as_str()).collect();
    let behind = |option: &str| words.iter().position(|w| *w == option).and_then(|at| words.get(at + 1));
    let name = behind("-t").or(behind("--table")).copied().unwrap_or("filter");
    Table::ALL.into_iter().find(|t| t.name() == name).unwrap_or(Table::Filter)
}

impl Host {
    /// What of the packet filter's rules is kept and shown and does nothing to packets here, in sentences.
    pub fn unsimulated_rules(&self) -> Vec<String> {
        self.netfilter.unsimulated()
    }

    /// The mark of the connection a packet belongs to; `None` where connections are not tracked or it has none.
    pub fn connection_mark(&self, packet: &penstock_packet::Skb, now: Time) -> Option<u32> {
        self.netfilter.connection_mark(packet, now)
    }

    pub(super) fn packet_filter(
        &mut self,
        (family, what): (Family, &str),
        line: &Line,
        files: &mut dyn Files,
        now: Time,
    ) -> Ran {
        match what {
            "-save" => self.iptables_save(family, line, now),
            "-restore" => self.iptables_restore(family, line, files),
            _ => {
                let command = match iptables::parse(&line.words, self.kernel) {
                    Ok(command) => command,
                    Err(f) => {
                        // The target is looked for when the table is there.
                        if f.stderr.contains("Couldn't load target") {
                            self.netfilter.load(family, table_named(line));
                        }
                        return failed(&f, line);
                    }
                };
                let mut out = match self.netfilter.execute(&command) {
                    Ok(stdout) => Output::say(stdout),
                    Err(f) => {
                        // Whatever becomes of a command, its table has been loaded.
                        self.netfilter.load(family, table_named(line));
                        failed(&f, line)
                    }
                };
                out.stderr.insert_str(0, &command.warnings);
                out
            }
        }
    }

    /// `ipchains`, on kernels of its time: 2.2, and 2.4 whose `ipchains.o` took the place of `ip_tables.o`.
    pub(super) fn ipchains(&mut self, line: &Line) -> Ran {
        if self.clock.release().is_none() {
            let help = "ipchains is Linux 2.2's: give the host kernel = \"2.2\", or use iptables (ipchains -A output … -m 3 is \
                        iptables -t mangle -A POSTROUTING … -j MARK --set-mark 3)";
            return Output::fail("ipchains: Incompatible with this kernel\n", 1, help);
        }
        let ran =
            penstock_lang::ipchains::parse(&line.words).and_then(|c| self.netfilter.execute_ipchains(&c));
        match ran {
            Ok(stdout) => Output::say(stdout),
            Err(f) => Output::fail(f.stderr, f.exit, &f.help),
        }
    }

    fn iptables_save(&mut self, family: Family, line: &Line, now: Time) -> Ran {
        let options = match save_options(&line.words, family) {
            Ok(options) => options,
            Err(f) => return failed(&f, line),
        };
        if options.file.is_some() {
            let stderr = "Failed to open file, error: Read-only file system\n".to_owned();
            return Output::fail(stderr, 1, "write to standard output");
        }
        match self.netfilter.save(&options, (family, self.kernel), now) {
            Ok(stdout) => Output::say(stdout),
            Err(f) => failed(&f, line),
        }
    }

    fn iptables_restore(&mut self, family: Family, line: &Line, files: &mut dyn Files) -> Ran {
        let options = match restore_options(&line.words, family) {
            Ok(options) => options,
            Err(f) => return failed(&f, line),
        };
        let name = format!("{}-restore", family.program());
        if options.version {
            let version = match self.kernel {
                penstock_model::Kernel::V2_6_35 => "1.4.4",
                penstock_model::Kernel::V6_12 | penstock_model::Kernel::V7_2 => "1.8.9 (legacy)",
            };
            return Output::say(format!("{name} v{version}\n"));
        }
        if options.help {
            let usage = format!("Usage: {name} [-c] [-v] [-V] [-t] [-h] [-n] [-T table] [file]\n");
            return Output { stderr: usage, ..Output::default() };
        }
        let path = options.file.as_deref().unwrap_or("-");
        let text = match files.read(path) {
            Ok(text) => text,
            Err(why) => return Output::fail(format!("Can't open {path}: {why}\n"), 1, ""),
        };
        let (printed, done) = self.netfilter.restore(&text, &options, (family, self.kernel));
        let mut out = match done {
            Ok(()) => Output::default(),
            Err(f) => failed(&f, line),
        };
        out.stdout = printed.stdout;
        out.stderr.insert_str(0, &printed.stderr);
        out
    }

    pub(super) fn nft(&mut self, line: &Line, files: &mut dyn Files, now: Time) -> Ran {
        let words: Vec<&str> = line.words.iter().skip(1).map(|w| w.text.as_str()).collect();
        let options = match penstock_lang::nft::options(&words) {
            Ok(options) => options,
            Err(stderr) => return Output::fail(stderr, 1, "nft [-anSyjce] COMMAND, or nft -f FILE"),
        };
        if let Some(text) = options.say {
            return Output::say(text);
        }
        let (text, source) = match &options.file {
            None => (options.command.clone(), None),
            Some(path) => {
                let name = if path == "-" { "/dev/stdin" } else { path.as_str() };
                match files.read(path) {
                    Ok(text) => (text, Some(name.to_owned())),
                    Err(why) => {
                        let stderr =
                            format!("internal:0:0-0: Error: Could not open file \"{path}\": {why}\n");
                        return Output::fail(stderr, 1, "");
                    }
                }
            }
        };
        let exists: Vec<String> = self.devices.iter().map(|d| d.name.clone()).collect();
        match self.netfilter.run_nft(&text, source.as_deref(), &options, &exists, now) {
            Ok(stdout) => Output::say(stdout),
            Err(fault) => Output::fail(fault.print(&text, source.as_deref()), 1, &fault.help),
        }
    }
}
