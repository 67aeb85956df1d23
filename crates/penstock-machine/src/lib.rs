//! A virtual machine that lives between calls: what `penstock tc …` acts on.
//!
//! Its state is a journal (`journal-PROFILE`, one JSON object a line): every command that may have changed something, with
//! the texts it read and its exit status, executed again on a fresh machine with `lo`, `eth0` and `eth1` at each call. A
//! command that failed is written down as well: the kernel may have carried out a part of it before it refused the rest.
//! Each command is one virtual millisecond later than the one before has ended. Commands take no time; a `ping` takes what it takes, and from the
//! first on packets stand and go on the machine (see [`live`]).
//!
//! Calls that may change hold a lock on the folder alone, calls that only show share it. An entry is one write at the
//! journal's end; one that was cut short does not count and is taken away by the next. A long journal is made anew of what is
//! still needed ([`compact`]), in a file of its own that then takes its name.

mod compact;
pub mod complete;
pub mod dump;
pub mod import;
mod live;
mod reads;
pub mod script;

use live::Live;
use penstock_host::{FileError, Files, Host, Output, Program};
use penstock_model::{Diagnostic, Kernel, Span, Time};
use penstock_sim::Unending;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// The machine's own name, in its random streams.
const NAME: &str = "penstock";

/// Whether there is a tool of this name.
pub fn is_tool(name: &str) -> bool {
    name == live::PING || Program::tools().any(|p| p.name == name)
}

/// A machine with its state in a folder.
pub struct Machine {
    folder: PathBuf,
    kernel: Kernel,
}

/// A command that may have changed the machine.
#[derive(Serialize, Deserialize)]
struct Entry {
    argv: Vec<String>,
    /// What it read, by path; `-` is standard input.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, String>,
    status: i32,
    /// Its number, where it is not the one behind the entry before: the journal has been made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    /// How long its script has slept before it, ns, where packets were on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slept: Option<i64>,
    /// The last handle the kernel has chosen for a qdisc by then, where the journal has been made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auto_handle: Option<u32>,
}

impl Machine {
    /// The machine of this profile whose state lies in `folder`; it is made when the first command changes it.
    pub fn new(folder: &Path, kernel: Kernel) -> Machine {
        Machine { folder: folder.to_owned(), kernel }
    }

    /// Executes one command, one of the tools ([`is_tool`]), and keeps what it changed. Standard input and files that it names are this
    /// process's own.
    ///
    /// # Errors
    /// A sentence when the state cannot be read or written. A command that is refused is not an error but an [`Output`] with
    /// its own status.
    pub fn exec(&self, words: &[String]) -> Result<Output, String> {
        let mut files = Own::default();
        if reads::standard_input(words) {
            // Before the lock is held: whoever writes to us may call us too.
            let _ = files.read("-");
        }
        self.session().exec(words, &mut files)
    }

    /// The machine held in memory, for many commands one after the other; what other processes do to it in between is seen.
    pub fn session(&self) -> Session<'_> {
        Session { machine: self, held: None, script: Span::ZERO, sleeps: Span::ZERO }
    }

    /// The machine as it is now.
    ///
    /// # Errors
    /// A sentence when the state cannot be read.
    pub fn host(&self) -> Result<Host, String> {
        if !self.folder.is_dir() {
            return Ok(self.fresh());
        }
        let _lock = self.lock(true)?;
        Ok(self.replay()?.live.into_host())
    }

    /// The machine as it is now, and the moment its next command would happen.
    ///
    /// # Errors
    /// A sentence when the state cannot be read.
    pub fn host_now(&self) -> Result<(Host, Time), String> {
        if !self.folder.is_dir() {
            return Ok((self.fresh(), moment(0)));
        }
        let _lock = self.lock(true)?;
        let held = self.replay()?;
        let now = held.now();
        Ok((held.live.into_host(), now))
    }

    /// Released when the file is closed, whatever happens.
    fn lock(&self, shared: bool) -> Result<File, String> {
        let open = || {
            make_private(&self.folder)?;
            let lock = File::options().create(true).append(true).open(self.folder.join("lock"))?;
            if shared { lock.lock_shared() } else { lock.lock() }?;
            Ok(lock)
        };
        open().map_err(|e| self.unusable(&e))
    }

    fn unusable(&self, e: &io::Error) -> String {
        format!("cannot use the state in {}: {e}", self.folder.display())
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

    /// The machine as its journal leaves it.
    fn replay(&self) -> Result<Held, String> {
        let mark = self.mark();
        let (entries, length) = self.entries()?;
        let mut held = Held::new(self.fresh(), Mark { length, ..mark }, entries.len());
        for entry in entries {
            held.execute(entry).map_err(|e| format!("{e} ({})", self.path().display()))?;
        }
        Ok(held)
    }

    /// The journal and how long it is in bytes.
    fn entries(&self) -> Result<(Vec<Entry>, u64), String> {
        let mut text = String::new();
        match File::open(self.path()).and_then(|mut file| file.read_to_string(&mut text)) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
            Err(e) => return Err(format!("cannot read {}: {e}", self.path().display())),
        }
        // Without its newline the last entry was never wholly written.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        let read = |(number, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|e| {
                let path = self.path();
                format!(
                    "line {} of {} is damaged ({e}): delete the file to begin anew",
                    number + 1,
                    path.display()
                )
            })
        };
        let entries = text[..whole].lines().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok((entries, whole as u64))
    }

    /// Writes an entry at the journal's end and answers how long the journal is then.
    fn append(&self, length: u64, entry: &Entry) -> io::Result<u64> {
        let mut file = File::options().create(true).write(true).truncate(false).open(self.path())?;
        file.set_len(length)?;
        file.seek(io::SeekFrom::End(0))?;
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let done = file.write_all(&line);
        if done.is_err() {
            // On a full disk half an entry would only take room.
            let _ = file.set_len(length);
        }
        done.map(|()| length + line.len() as u64)
    }

    /// Which file the journal is, and how long.
    fn mark(&self) -> Mark {
        let Ok(found) = fs::metadata(self.path()) else { return Mark::default() };
        #[cfg(unix)]
        let file = std::os::unix::fs::MetadataExt::ino(&found);
        #[cfg(not(unix))]
        let file = 0;
        Mark { file, length: found.len() }
    }
}

/// A journal as it was once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Mark {
    /// The file's number; 0 where the system has none.
    file: u64,
    /// Bytes.
    length: u64,
}

/// A machine in memory and the journal it stands for.
struct Held {
    live: Live,
    mark: Mark,
    /// The next entry's number.
    number: u64,
    /// How long the programs so far have taken, and scripts slept.
    late: Span,
    /// How long a script has slept of late, which no entry says yet.
    slept: Span,
    /// Entries of the journal.
    entries: usize,
}

impl Held {
    fn new(host: Host, mark: Mark, entries: usize) -> Held {
        Held { live: Live::new(host), mark, number: 0, late: Span::ZERO, slept: Span::ZERO, entries }
    }

    /// When the next command happens.
    fn now(&self) -> Time {
        moment(self.number) + self.late
    }

    /// Carries out one command, and answers what it gave.
    fn carry_out(&mut self, words: &[String], files: &mut dyn Files) -> Result<Output, String> {
        let now = self.now();
        if live::ping_at(words).is_none() {
            return Ok(self.live.command(words, files, now));
        }
        let done = self.live.ping(words, now);
        let (output, ended) = done.map_err(|Unending| format!("{}: {TOO_LONG}", words.join(" ")))?;
        self.late += ended - now;
        Ok(output)
    }

    fn execute(&mut self, entry: Entry) -> Result<(), String> {
        self.number = entry.number.unwrap_or(self.number);
        self.late += Span::from_ns(entry.slept.unwrap_or(0));
        self.carry_out(&entry.argv, &mut Written(entry.files))?;
        self.number += 1;
        if let (Some(handle), Some(host)) = (entry.auto_handle, self.live.still()) {
            host.set_auto_handle(handle);
        }
        Ok(())
    }
}

/// Why a ping is not carried out.
const TOO_LONG: &str = "it is more than is sent in one call, and has not happened; send less (-c), or put it in an experiment (penstock run)";

/// When the journal's entry of this number, from 0, happens.
fn moment(number: u64) -> Time {
    Time::from_ns(1_000_000 * (number as i64 + 1))
}

/// A machine held between commands.
pub struct Session<'a> {
    machine: &'a Machine,
    held: Option<Held>,
    /// The time of the script that it carries out.
    script: Span,
    /// How long that has slept since the last command.
    sleeps: Span,
}

impl Session<'_> {
    /// Executes one command and keeps what it changed; `files` lends what it reads.
    ///
    /// # Errors
    /// A sentence when the state cannot be read or written.
    pub fn exec(&mut self, words: &[String], files: &mut dyn Files) -> Result<Output, String> {
        let machine = self.machine;
        if let Some(at) = live::ping_at(words)
            && let Some(output) = penstock_sim::read_ping(&words[at..], machine.kernel)
        {
            return Ok(output);
        }
        let shows = reads::only_shows(words);
        let lock = if shows && !machine.folder.is_dir() { None } else { Some(machine.lock(shows)?) };
        let held = match &mut self.held {
            Some(held) if held.mark == machine.mark() => held,
            held => held.insert(match lock {
                Some(_) => machine.replay()?,
                None => Held::new(machine.fresh(), Mark::default(), 0),
            }),
        };
        let sleeps = std::mem::take(&mut self.sleeps);
        if held.live.is_sending() {
            held.late += sleeps;
            held.slept += sleeps;
        }
        let mut files = Noted { files, texts: BTreeMap::new() };
        let output = match held.carry_out(words, &mut files) {
            Ok(output) => output,
            Err(why) => {
                // The machine stands amid it; the journal does not know of it.
                self.held = None;
                return Err(why);
            }
        };
        if !shows {
            let entry = Entry {
                argv: words.to_vec(),
                files: files.texts,
                status: output.status,
                number: None,
                slept: Some(std::mem::take(&mut held.slept).as_ns()).filter(|&ns| ns > 0),
                auto_handle: None,
            };
            // What a killed call has left of a journal that it made anew.
            penstock_files::sweep(&machine.folder);
            let length = machine.append(held.mark.length, &entry).map_err(|e| machine.unusable(&e))?;
            held.mark = Mark { length, ..machine.mark() };
            (held.number, held.entries) = (held.number + 1, held.entries + 1);
            machine.compact(held).map_err(|e| machine.unusable(&e))?;
        }
        Ok(output)
    }
}

impl penstock_shell::Machine for Session<'_> {
    fn command(&mut self, words: &[String], files: &mut dyn Files) -> Output {
        self.exec(words, files).unwrap_or_else(|e| Output {
            stderr: format!("penstock: {e}\n"),
            status: 2,
            ..Output::default()
        })
    }
    fn passes(&mut self, since: Span) {
        self.sleeps += since - self.script;
        self.script = since;
    }
    /// A ping, which is over when this answers: a script goes on behind it, also where it does not wait for it.
    fn launch(&mut self, words: &[String]) -> Option<Result<u32, Output>> {
        live::ping_at(words)?;
        Some(Err(penstock_shell::Machine::command(self, words, &mut penstock_host::NoFiles)))
    }
}

/// Files of this process; standard input is read once.
#[derive(Default)]
struct Own(Option<String>);

impl Files for Own {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        let standard = matches!(path, "-" | "/dev/stdin");
        if let Some(text) = self.0.as_ref().filter(|_| standard) {
            return Ok(text.clone());
        }
        let bytes = match path {
            "-" => penstock_files::read_stdin(penstock_files::TEXT),
            path => penstock_files::read_io(Path::new(path), penstock_files::TEXT),
        }
        .map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => FileError::NotFound,
            io::ErrorKind::PermissionDenied => FileError::Denied,
            io::ErrorKind::IsADirectory => FileError::IsFolder,
            _ => FileError::Other,
        })?;
        let text = penstock_model::binary::text_lossy(&bytes);
        if standard {
            self.0 = Some(text.clone());
        }
        Ok(text)
    }
}

/// Somebody's files, noted as they are read.
struct Noted<'a> {
    files: &'a mut dyn Files,
    texts: BTreeMap<String, String>,
}

impl Files for Noted<'_> {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        let text = self.files.read(path)?;
        self.texts.insert(path.to_owned(), text.clone());
        Ok(text)
    }
}

/// Files as the journal has them.
struct Written(BTreeMap<String, String>);

impl Files for Written {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        self.0.get(path).cloned().ok_or(FileError::NotFound)
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
    fn state_lives_between_calls() {
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
        let journal = || fs::read_to_string(folder.join("journal-6.12")).unwrap();
        assert_eq!((refused.status, journal().lines().count()), (1, 2), "a refusal may leave traces");
        assert!(exec("tc qdisc show dev eth0").stdout.starts_with("qdisc tbf 1: root"));
        fs::write(folder.join("journal-6.12"), journal() + "{\"argv\":[\"tc\",\"qd").unwrap();
        assert!(
            exec("tc qdisc show dev eth0").stdout.starts_with("qdisc tbf 1: root"),
            "half an entry is none"
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
