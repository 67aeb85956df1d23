//! A virtual machine that lives between calls: what `penstock tc …` acts on.
//!
//! Its state is the list of commands that changed it (`journal-PROFILE`, one JSON string a line), executed again on a fresh
//! machine with `eth0` and `eth1` at each call. So the state is small, readable, and never half-applied: a command that
//! fails changes nothing and is not written down. Calls that change hold a lock on the folder alone, calls that only
//! show share it; the journal is written beside its place and moved there.

use penstock_host::{Host, Output};
use penstock_lang::tc;
use penstock_lang::token::{self, Word};
use penstock_model::{Diagnostic, Kernel, Time};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The machine's own name, in its random streams.
const NAME: &str = "penstock";

/// A machine with its state in a folder.
pub struct Machine {
    folder: PathBuf,
    kernel: Kernel,
}

impl Machine {
    /// The machine of this profile whose state lies in `folder`; it is made when the first command changes it.
    pub fn new(folder: &Path, kernel: Kernel) -> Machine {
        Machine { folder: folder.to_owned(), kernel }
    }

    /// Executes one command (`tc`, `ip`, `iptables`, `sysctl`) and keeps what it changed.
    ///
    /// # Errors
    /// A sentence when the state cannot be read or written. A command that is refused is no error but an [`Output`] with
    /// its own status.
    pub fn exec(&self, words: &[String]) -> Result<Output, String> {
        let line = words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ");
        let changes = !only_shows(words);
        let say = |e: io::Error| format!("cannot use the state in {}: {e}", self.folder.display());
        if !changes && !self.folder.is_dir() {
            return Ok(self.fresh().exec(&line, Time::ZERO));
        }
        make_private(&self.folder).map_err(say)?;
        // Released when the file is closed, whatever happens.
        let lock = File::options().create(true).append(true).open(self.folder.join("lock")).map_err(say)?;
        if changes { lock.lock() } else { lock.lock_shared() }.map_err(say)?;
        let mut lines = self.journal()?;
        let mut host = self.fresh();
        for (number, old) in (1..).zip(&lines) {
            let output = host.exec(old, Time::ZERO);
            if output.status != 0 {
                return Err(format!(
                    "line {number} of {} does not execute any more ({}): delete the file to begin anew",
                    self.path().display(),
                    output.stderr.trim()
                ));
            }
        }
        let before = lines.len();
        let output = match batch(words, self.kernel) {
            Some(batch) => batch.exec(&mut host, &mut lines),
            None => {
                let output = host.exec(&line, Time::ZERO);
                if changes && output.status == 0 {
                    lines.push(line);
                }
                output
            }
        };
        if lines.len() > before {
            self.write(&lines).map_err(say)?;
        }
        Ok(output)
    }

    fn fresh(&self) -> Host {
        let mut host = Host::new(NAME, self.kernel, 1);
        host.add_device("eth0");
        host.add_device("eth1");
        host
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("journal-{}", self.kernel.name()))
    }

    fn journal(&self) -> Result<Vec<String>, String> {
        let text = match fs::read_to_string(self.path()) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(format!("cannot read {}: {e}", self.path().display())),
        };
        let read = |(number, line): (usize, &str)| {
            serde_json::from_str(line)
                .map_err(|e| format!("line {} of {} is damaged: {e}", number + 1, self.path().display()))
        };
        text.lines().enumerate().map(read).collect()
    }

    fn write(&self, lines: &[String]) -> io::Result<()> {
        let new = self.folder.join(format!(".journal.new-{}", std::process::id()));
        let text: String =
            lines.iter().map(|l| format!("{}\n", serde_json::Value::from(l.as_str()))).collect();
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, self.path())
        };
        let done = write();
        if done.is_err() {
            // On a full disk half a file would only take room.
            let _ = fs::remove_file(&new);
        }
        done
    }
}

/// `tc -batch FILE`.
struct Batch {
    file: String,
    force: bool,
    /// `tc` and the flags that hold for every line.
    prefix: String,
}

fn batch(words: &[String], kernel: Kernel) -> Option<Batch> {
    if !words.first().is_some_and(|w| tc::is_tc(w)) || !words.iter().any(|w| w.starts_with("-b")) {
        return None;
    }
    let read: Vec<Word> = words.iter().map(|w| Word::new(w.as_str(), 0)).collect();
    let commands = tc::parse(&read, kernel).ok()?;
    let found = commands.into_iter().find_map(|c| match c {
        tc::Command::Batch { file, force, .. } => Some((file, force)),
        _ => None,
    });
    let (file, force) = found?;
    let flags = words[1..].iter().filter(|w| **w != file && !w.starts_with("-b") && !w.starts_with("-f"));
    let prefix = flags.fold("tc".to_owned(), |line, flag| format!("{line} {}", quoted(flag)));
    Some(Batch { file, force, prefix })
}

impl Batch {
    /// Executes the file line by line; each that succeeds is kept, whatever becomes of those after it.
    ///
    /// Follows: iproute2 6.1 `lib/utils.c` `do_batch`.
    fn exec(&self, host: &mut Host, kept: &mut Vec<String>) -> Output {
        let text = match self.file.as_str() {
            "-" => io::read_to_string(io::stdin()),
            file => fs::read_to_string(file),
        };
        let fail = |stderr: String| Output { stderr, status: 1, ..Output::default() };
        let text = match text {
            Ok(text) => text,
            Err(e) => {
                let why = match e.kind() {
                    io::ErrorKind::NotFound => "No such file or directory",
                    io::ErrorKind::PermissionDenied => "Permission denied",
                    _ => "Input/output error",
                };
                return fail(format!("Cannot open file \"{}\" for reading: {why}\n", self.file));
            }
        };
        let lines = match token::script(&text) {
            Ok(lines) => lines,
            Err(faults) => {
                let said =
                    faults.into_iter().map(|d| format!("{}\n", Diagnostic { file: self.file.clone(), ..d }));
                return fail(said.collect());
            }
        };
        let mut all = Output::default();
        for line in lines {
            let words: Vec<String> = line.words.iter().map(|w| w.text.clone()).collect();
            let command = words.iter().fold(self.prefix.clone(), |c, w| format!("{c} {}", quoted(w)));
            let output = host.exec(&command, Time::ZERO);
            all.stdout.push_str(&output.stdout);
            all.stderr.push_str(&output.stderr);
            if output.status == 0 {
                let tc = std::iter::once("tc".to_owned()).chain(words).collect::<Vec<_>>();
                if !only_shows(&tc) {
                    kept.push(command);
                }
                continue;
            }
            all.stderr.push_str(&format!("Command failed {}:{}\n", self.file, line.number));
            all.diagnostics.extend(output.diagnostics);
            all.status = 1;
            if !self.force {
                break;
            }
        }
        all
    }
}

/// Makes the folder for its owner alone.
fn make_private(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Whether a command surely changes nothing: it is then neither written down nor made to wait for others.
fn only_shows(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str).skip_while(|w| *w == "sudo");
    let program = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let shows = |verb: &str| ["show", "list", "ls", "lst", "help", "get"].iter().any(|s| s.starts_with(verb));
    match program.rsplit('/').next().unwrap_or_default() {
        // `tc [flags] OBJECT [VERB …]`: without a verb it shows.
        "tc" | "ip" => {
            let plain: Vec<&&str> = rest.iter().filter(|w| !w.starts_with('-')).collect();
            let batch = rest.iter().any(|w| *w == "-b" || w.starts_with("-ba") || w.starts_with("-force"));
            !batch && plain.get(1).is_none_or(|verb| !verb.is_empty() && shows(verb))
        }
        "iptables" => {
            let lists = ["-L", "-S", "--list", "--list-rules", "-h", "--help", "-V", "--version"];
            rest.iter().any(|w| lists.contains(w)) && !rest.iter().any(|w| *w == "-Z" || *w == "--zero")
        }
        "sysctl" => !rest.iter().any(|w| w.contains('=') || *w == "-w" || *w == "-p"),
        _ => false,
    }
}

pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:,=@%+!^*[]~{}".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Our advice on a command that was refused, to stand below the tool's own words; empty when there is none.
pub fn advice(output: &Output) -> String {
    let with_help = output.diagnostics.iter().filter(|d| !d.help.is_empty());
    let lines = with_help.map(|d: &Diagnostic| {
        let shown = d.to_string();
        // The message is the tool's, and has been printed.
        let ours = shown.lines().skip(d.message.lines().count().max(1));
        ours.map(|line| format!("{line}\n")).collect::<String>()
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_only_shows_is_known() {
        for text in [
            "tc qdisc",
            "tc qdisc show",
            "tc -s -d qdisc ls dev eth0",
            "tc class list dev eth0",
            "tc -j filter sh dev eth0",
            "tc qdisc help",
            "tc",
            "ip addr",
            "ip -br link show",
            "ip route get 10.0.0.1",
            "iptables -t mangle -L -n -v",
            "iptables -S",
            "sysctl net.ipv4.ip_forward",
            "sysctl -a",
        ] {
            assert!(only_shows(&words(text)), "{text}");
        }
        for text in [
            "tc qdisc add dev eth0 root pfifo",
            "tc q a dev eth0 root pfifo",
            "tc qdisc del dev eth0 root",
            "tc -batch file",
            "ip addr add 10.0.0.1/24 dev eth0",
            "iptables -t mangle -F",
            "iptables -L -Z",
            "sysctl -w net.ipv4.ip_forward=1",
            "sysctl net.ipv4.ip_forward=1",
            "tc qdisc replace dev eth0 root sfq",
        ] {
            assert!(!only_shows(&words(text)), "{text}");
        }
    }

    #[test]
    fn state_lives_between_calls_and_failures_leave_none() {
        let folder = std::env::temp_dir().join(format!("penstock-machine-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let machine = || Machine::new(&folder, Kernel::V6_12);
        let exec = |text: &str| machine().exec(&words(text)).unwrap();
        assert!(exec("tc qdisc show dev eth0").stdout.starts_with("qdisc pfifo_fast 0: root"));
        assert!(!folder.exists(), "showing makes no state");
        assert_eq!(
            exec("tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 5k latency 50ms").status,
            0
        );
        assert!(exec("tc qdisc show dev eth0").stdout.starts_with("qdisc tbf 1: root"));
        let refused = exec("tc qdisc add dev eth0 root handle 2: tbf rate 1mbit");
        assert_eq!(
            (refused.status, fs::read_to_string(folder.join("journal-6.12")).unwrap().lines().count()),
            (1, 1)
        );
        assert_eq!(exec("tc qdisc del dev eth0 root").status, 0);
        assert!(exec("tc qdisc show dev eth0").stdout.starts_with("qdisc pfifo_fast 0: root"));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_batch_keeps_what_came_before_its_failure() {
        let folder = std::env::temp_dir().join(format!("penstock-lines-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("lines");
        fs::write(&file, "# a comment\nqdisc add dev eth0 root handle 1: prio\nqdisc add dev eth9 root sfq\nqdisc add dev eth1 root sfq\n").unwrap();
        let exec =
            |text: &str| Machine::new(&folder.join("state"), Kernel::V6_12).exec(&words(text)).unwrap();
        let batch = format!("tc -batch {}", file.display());
        let output = exec(&batch);
        assert_eq!(output.status, 1);
        assert!(
            output.stderr.ends_with(&format!("Command failed {}:3\n", file.display())),
            "{}",
            output.stderr
        );
        assert!(exec("tc qdisc show dev eth0").stdout.starts_with("qdisc prio 1: root"));
        assert!(exec("tc qdisc show dev eth1").stdout.starts_with("qdisc pfifo_fast"));
        assert_eq!(exec("tc qdisc del dev eth0 root").status, 0);
        let output = exec(&batch.replace("-batch", "-force -batch"));
        assert_eq!(output.status, 1);
        assert!(exec("tc qdisc show dev eth1").stdout.starts_with("qdisc sfq"));
        assert_eq!(
            exec("tc -b nowhere").stderr,
            "Cannot open file \"nowhere\" for reading: No such file or directory\n"
        );
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn calls_at_once_lose_nothing() {
        let folder = std::env::temp_dir().join(format!("penstock-machines-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let exec = |text: String| Machine::new(&folder, Kernel::V6_12).exec(&words(&text)).unwrap();
        assert_eq!(exec("tc qdisc add dev eth0 root handle 1: htb".to_owned()).status, 0);
        std::thread::scope(|scope| {
            for i in 1..=16 {
                scope.spawn(move || {
                    let text = format!("tc class add dev eth0 parent 1: classid 1:{i:x} htb rate {i}mbit");
                    assert_eq!(exec(text).status, 0);
                });
            }
        });
        let shown = exec("tc class show dev eth0".to_owned()).stdout;
        assert_eq!(shown.lines().filter(|l| l.starts_with("class htb")).count(), 16, "{shown}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
