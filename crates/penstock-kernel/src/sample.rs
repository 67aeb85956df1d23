//! Counters while the run goes on: one `tc -batch` for each machine stays and is asked again and again.

use crate::exec;
use crate::plan::Host;
use crate::stats::{self, Object};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A tc in a machine's namespace that answers.
pub(crate) struct Asker {
    namespace: String,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

/// Counters of one machine at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// Device, bytes sent, packets sent.
    pub(crate) devices: Vec<(String, u64, u64)>,
    /// Qdiscs, each with its device.
    pub(crate) qdiscs: Vec<Object>,
    /// Classes, each with its device.
    pub(crate) classes: Vec<Object>,
}

/// No command of tc's: what it says of it is the end of an answer. (One that names a device is not to be asked: tc keeps the device, and
/// the next `qdisc show` is of that alone.)
const MARK: &str = "penstock";
const END: &str = "Object \"penstock\" is unknown";

impl Asker {
    pub(crate) fn start(namespace: &str) -> Result<Asker, String> {
        // Its complaints come in their places among its answers.
        let words = ["sh", "-c", "exec stdbuf -oL tc -s -force -batch - 2>&1"];
        let mut command = exec::command(Some(namespace), &words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| format!("cannot run tc: {e}"))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                let namespace = namespace.to_owned();
                Ok(Asker { namespace, child, stdin, stdout: BufReader::new(stdout) })
            }
            _ => Err("tc has no pipes".to_owned()),
        }
    }

    /// The answer to one tc command; empty when tc is no more.
    pub(crate) fn ask(&mut self, command: &str) -> String {
        let mut text = String::new();
        if writeln!(self.stdin, "{command}\n{MARK}").is_err() {
            return text;
        }
        let mut line = String::new();
        loop {
            line.clear();
            if self.stdout.read_line(&mut line).unwrap_or(0) == 0 {
                return text;
            }
            if line.starts_with(END) {
                // "Command failed", with its number.
                let _ = self.stdout.read_line(&mut line);
                return text;
            }
            text.push_str(&line);
        }
    }

    /// All counters of the machine.
    pub(crate) fn counters(&mut self, host: &Host) -> Counters {
        let qdiscs = stats::parse(&self.ask("qdisc show"));
        let devices = names(host, &qdiscs);
        let text = std::fs::read_to_string(format!("/proc/{}/net/dev", self.child.id())).unwrap_or_default();
        let mut found = Counters { devices: stats::devices(&text), ..Counters::default() };
        found.devices.retain(|(name, ..)| devices.contains(name));
        found.devices.sort_by_key(|(name, ..)| devices.iter().position(|d| d == name));
        found.qdiscs = qdiscs;
        found.qdiscs.retain(|q| devices.contains(&q.dev));
        // Only a classful qdisc needs a second question.
        for dev in devices.iter().filter(|d| found.qdiscs.iter().any(|q| q.dev == **d && q.id != "0:")) {
            // tc finds `if5` by its index.
            let path = format!("/sys/class/net/{dev}/ifindex");
            let index = exec::is_odd(dev).then(|| exec::run(Some(&self.namespace), &["cat", &path]));
            let index = index.and_then(Result::ok).map(|n| format!("if{}", n.trim()));
            let called = index.as_deref().unwrap_or(dev);
            let mut classes = stats::parse(&self.ask(&format!("class show dev {called}")));
            classes.iter_mut().for_each(|c| c.dev = dev.to_owned());
            found.classes.append(&mut classes);
        }
        found
    }
    /// The names of all devices of the machine that have a queue: its own in their order, then those that its setup made.
    pub(crate) fn devices(&mut self, host: &Host) -> Vec<String> {
        names(host, &stats::parse(&self.ask("qdisc show")))
    }
}

/// A machine's own devices, and others that qdiscs stand on.
fn names(host: &Host, qdiscs: &[Object]) -> Vec<String> {
    let mut all: Vec<String> = host.devices.iter().map(|d| d.name.clone()).filter(|d| d != "lo").collect();
    for made in qdiscs.iter().map(|q| &q.dev).filter(|d| *d != "lo") {
        if !all.contains(made) {
            all.push(made.clone());
        }
    }
    all
}

impl Drop for Asker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
