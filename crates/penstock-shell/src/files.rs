//! The files a script sees: its own in memory, and those of the machine under `/proc` and `/sys`.
//!
//! A script may write everywhere but below `/proc` and `/sys`: nothing of it outlasts the script. What it writes below `/proc/sys`
//! the machine takes as a setting.

use crate::chance::{Chance, READ};
use crate::limits::Guard;
use crate::serve::Ask;
use bashkit::time::{SystemTime, UNIX_EPOCH};
use bashkit::{
    DirEntry, FileSystem, FileSystemExt, FileType, FsLimits, FsUsage, InMemoryFs, Metadata, Result,
    async_trait,
};
use penstock_host::{Output, Program};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Folders there are from the beginning.
const FOLDERS: &[&str] = &[
    "/tmp",
    "/var",
    "/run",
    "/root",
    "/home",
    "/dev",
    "/opt",
    "/mnt",
    "/srv",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/var/run",
    "/var/lock",
    "/var/lib",
    "/var/cache",
    "/var/log",
    "/var/tmp",
    "/var/spool",
    "/run/lock",
    "/proc",
    "/proc/net",
    "/proc/sys",
    "/sys",
    "/sys/class",
    "/sys/class/net",
    "/sys/module",
    "/sys/module/tcp_cubic",
    "/sys/module/tcp_cubic/parameters",
    "/sbin",
    "/usr/sbin",
    "/etc",
    "/etc/cron.d",
    "/etc/default",
    "/etc/init.d",
    "/etc/iproute2",
    "/etc/network",
    "/etc/sysctl.d",
    "/etc/wireguard",
];

/// A folder whose name ends with a file mode mask: who lists it tells which mask the script has (`umask`).
pub(crate) const UMASK: &str = "/dev/.umask/";

/// The kernel's own sources of ids.
const UUID: &str = "/proc/sys/kernel/random/uuid";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// What the machine itself answers for.
const OF_MACHINE: &[&str] = &[
    "/proc/net",
    "/proc/sys",
    "/sys/class/net",
    "/sys/module/tcp_bic/parameters",
    "/sys/module/tcp_cdg/parameters",
    "/sys/module/tcp_cubic/parameters",
    "/sys/module/tcp_dctcp/parameters",
    "/sys/module/tcp_htcp/parameters",
    "/sys/module/tcp_hybla/parameters",
    "/sys/module/tcp_nv/parameters",
    "/sys/module/tcp_vegas/parameters",
];

/// When every file was written: the moment the interpreter's clock stands at.
pub(crate) const EPOCH: i64 = penstock_model::EPOCH;

/// A folder of files of so many bytes of chance each, for `dd`.
pub(crate) const RANDOM: &str = "/dev/.random/";

/// The same of zeros.
pub(crate) const ZERO: &str = "/dev/.zero/";

/// Most that is read of a device at once, bytes: as much as the interpreter's `dd` moves.
pub(crate) const MAX_DEVICE_READ: u64 = 64 << 20;

pub(crate) struct MachineFs {
    own: InMemoryFs,
    ask: Ask,
    chance: Arc<Chance>,
    /// The file that is read next is run: its text is rewritten.
    is_run: Arc<AtomicBool>,
    guard: Arc<Guard>,
    /// What files hold that are not there, where that is said.
    unknown: Option<String>,
    umask: AtomicU32,
    /// What a file is when it is read for the first time.
    at_first: Mutex<Option<(PathBuf, Vec<u8>)>>,
}

impl MachineFs {
    pub(crate) fn new(
        ask: Ask,
        tools: impl Iterator<Item = &'static str>,
        files: &[(String, String)],
        chance: Arc<Chance>,
        is_run: Arc<AtomicBool>,
        guard: Arc<Guard>,
        unknown: Option<String>,
    ) -> MachineFs {
        let own = InMemoryFs::with_limits(guard.limits.of_files());
        for folder in FOLDERS {
            own.add_dir(folder, 0o755);
        }
        for tool in tools {
            for folder in ["/sbin", "/usr/sbin"] {
                own.add_file(format!("{folder}/{tool}"), format!("#!/bin/sh\nexec {tool} \"$@\"\n"), 0o755);
            }
        }
        own.add_file("/usr/bin/wg-quick", include_str!("scripts/wg-quick"), 0o755);
        own.add_file("/etc/hosts", "127.0.0.1 localhost\n", 0o644);
        own.add_file("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n", 0o644);
        own.add_file("/etc/group", "root:x:0:\n", 0o644);
        own.add_file(
            "/etc/iproute2/rt_tables",
            "#\n# reserved values\n#\n255\tlocal\n254\tmain\n253\tdefault\n0\tunspec\n#\n# local\n#\n#1\tinr.ruhep\n",
            0o644,
        );
        own.add_file("/proc/uptime", "0.00 0.00\n", 0o444);
        own.add_file(
            "/etc/os-release",
            "NAME=\"Penstock\"\nID=penstock\nPRETTY_NAME=\"Penstock virtual machine\"\n",
            0o644,
        );
        own.add_file("/proc/version", "", 0o444);
        for (path, text) in files {
            own.add_file(path, text, 0o755);
        }
        MachineFs {
            own,
            ask,
            chance,
            is_run,
            guard,
            unknown,
            umask: AtomicU32::new(0o022),
            at_first: Mutex::new(None),
        }
    }

    /// What a file is when it is read for the first time, and not again.
    pub(crate) fn at_first(&self, path: &str, text: &str) {
        let first = (PathBuf::from(path), text.as_bytes().to_vec());
        *self.at_first.lock().unwrap_or_else(PoisonError::into_inner) = Some(first);
    }

    async fn cat(&self, path: &str) -> Option<Output> {
        let output = self.ask.command(&["cat".to_owned(), path.to_owned()], None).await;
        (output.status == 0).then_some(output)
    }

    /// Whether a file may be called by its path and would throw other dice, or read another clock, than the script's. Who calls a
    /// file is not known here.
    async fn is_program(&self, path: &Path, bytes: &[u8]) -> bool {
        let has = |name: &[u8]| bytes.windows(name.len()).any(|w| w == name);
        bytes.starts_with(b"#!")
            && (has(b"SRANDOM") || has(b"EPOCH"))
            && self.own.stat(path).await.is_ok_and(|found| found.mode & 0o111 != 0)
    }

    /// The names in a folder of the machine's, and whether each is a folder.
    async fn list(&self, path: &str) -> Option<Vec<(String, bool)>> {
        let output = self.ask.command(&["ls", "-F", path].map(str::to_owned), None).await;
        let name = |line: &str| (line.trim_end_matches('/').to_owned(), line.ends_with('/'));
        (output.status == 0).then(|| output.stdout.lines().map(name).collect())
    }
}

/// A path as the interpreter should have given it: without the marks it keeps for itself.
fn clean(path: &Path) -> PathBuf {
    PathBuf::from(crate::marks::plain(&path.to_string_lossy()).as_ref())
}

fn of_machine(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let inside = |folder: &&&str| {
        text == **folder || text.strip_prefix(**folder).is_some_and(|rest| rest.starts_with('/'))
    };
    (text == "/proc/modules" || OF_MACHINE.iter().any(|f| inside(&f))).then_some(text)
}

fn moment() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(EPOCH as u64)
}

fn file(size: usize, mode: u32) -> Metadata {
    Metadata { file_type: FileType::File, size: size as u64, mode, modified: moment(), created: moment() }
}

fn folder() -> Metadata {
    Metadata { file_type: FileType::Directory, size: 0, mode: 0o755, modified: moment(), created: moment() }
}

fn missing() -> bashkit::Error {
    Error::new(ErrorKind::NotFound, "No such file or directory").into()
}

/// A network tool at a place of a script's own (`/opt/iproute2/tc/tc`): the mark by which the interpreter calls it at once, so that the command stands
/// where the script has it. One built by hand is in `/usr/local` only where nobody knows what the machine has.
fn tool(path: &Path, known: bool) -> Option<String> {
    const OTHERS: &[&str] = &["/proc", "/sys", "/etc", "/tmp", "/var", "/run", "/dev"];
    let name = path.file_name()?.to_str()?;
    let other = OTHERS.iter().any(|o| path.starts_with(o)) || known && path.starts_with("/usr/local");
    let tool = Program::is_of_scripts(name) && !other;
    tool.then(|| format!("#!/bin/sh\n# bashkit builtin: {name}\nexec {name} \"$@\"\n"))
}

/// Refuses to change what is the kernel's.
fn may_write(path: &Path) -> Result<()> {
    if path.starts_with("/proc") || path.starts_with("/sys") {
        return Err(Error::new(ErrorKind::PermissionDenied, "Permission denied").into());
    }
    Ok(())
}

impl MachineFs {
    /// The mode of what is new.
    fn masked(&self, mode: u32) -> u32 {
        mode & !self.umask.load(Ordering::Relaxed)
    }
    /// Gives what is new its mode, where that is not what the memory gives.
    async fn begins_with(&self, path: &Path, mode: u32) -> Result<()> {
        if self.umask.load(Ordering::Relaxed) == 0o022 {
            return Ok(());
        }
        self.own.chmod(path, self.masked(mode)).await
    }
    /// Where nobody knows what the machine has, it has the folder of a file that is written.
    async fn folder_of(&self, path: &Path) -> Result<()> {
        let Some(folder) = path.parent().filter(|_| self.unknown.is_some() && path.is_absolute()) else {
            return Ok(());
        };
        match self.own.exists(folder).await? {
            true => Ok(()),
            false => self.own.mkdir(folder, true).await,
        }
    }
}

#[async_trait]
impl FileSystemExt for MachineFs {
    fn usage(&self) -> FsUsage {
        self.own.usage()
    }
    fn limits(&self) -> FsLimits {
        self.own.limits()
    }
    fn backend_kind(&self) -> &'static str {
        "penstock"
    }
    async fn mkfifo(&self, path: &Path, mode: u32) -> Result<()> {
        let path = clean(path);
        may_write(&path)?;
        self.guard.written(self.own.mkfifo(&path, mode).await)
    }
}

#[async_trait]
impl FileSystem for MachineFs {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        let path = clean(path);
        // A script that calls itself by its path is met here: no command of the interpreter's begins.
        if !self.guard.has_room() {
            return Err(Error::other("too much stands within each other").into());
        }
        match path.to_str() {
            Some("/dev/random" | "/dev/urandom") => {
                self.guard.reads_device();
                return Ok(self.chance.bytes(READ));
            }
            Some("/dev/zero") => self.guard.reads_device(),
            Some(UUID) => return Ok((self.chance.uuid() + "\n").into_bytes()),
            Some(BOOT) => return Ok(b"00000000-0000-4000-8000-000000000001\n".to_vec()),
            Some(path) => {
                let bytes = |folder| path.strip_prefix(folder)?.parse::<u64>().ok();
                if let Some(bytes) = bytes(RANDOM) {
                    return Ok(self.chance.bytes(bytes.min(MAX_DEVICE_READ) as usize));
                }
                if let Some(bytes) = bytes(ZERO) {
                    return Ok(vec![0; bytes.min(MAX_DEVICE_READ) as usize]);
                }
            }
            None => {}
        }
        if path == Path::new("/proc/version") {
            let release = self.ask.command(&["uname", "-r"].map(str::to_owned), None).await.stdout;
            return Ok(format!("Linux version {} (penstock) #1 SMP\n", release.trim_end()).into_bytes());
        }
        let first = {
            let mut first = self.at_first.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_some_and(|(of, _)| *of == path) { first.take() } else { None }
        };
        if let Some((_, text)) = first {
            self.is_run.store(false, Ordering::Relaxed);
            return Ok(text);
        }
        match of_machine(&path) {
            Some(text) => Ok(self.cat(text).await.ok_or_else(missing)?.stdout.into_bytes()),
            None => match self.own.read_file(&path).await {
                Err(e) => {
                    let text = tool(&path, self.unknown.is_none()).or_else(|| {
                        let unknown = self.unknown.as_ref().filter(|_| crate::unknown::may_hold(&path))?;
                        let sourced = self.is_run.swap(false, Ordering::Relaxed);
                        Some(if sourced {
                            String::new()
                        } else {
                            format!("{unknown} {unknown} {unknown} {unknown}\n")
                        })
                    });
                    text.map(String::into_bytes).ok_or(e)
                }
                Ok(bytes)
                    if self.is_run.swap(false, Ordering::Relaxed) || self.is_program(&path, &bytes).await =>
                {
                    Ok(match String::from_utf8(bytes) {
                        Ok(text) => crate::rewrite::rewrite(&text).into_bytes(),
                        Err(other) => other.into_bytes(),
                    })
                }
                found => found,
            },
        }
    }
    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        let path = clean(path);
        if path == Path::new("/dev/null") {
            self.guard.hears(&String::from_utf8_lossy(content));
        }
        let Some(text) = of_machine(&path) else {
            may_write(&path)?;
            let content = crate::marks::traced_bytes(content);
            let is_new = !self.own.exists(&path).await?;
            self.folder_of(&path).await?;
            self.guard.written(self.own.write_file(&path, &content).await)?;
            return if is_new { self.begins_with(&path, 0o666).await } else { Ok(()) };
        };
        // A redirection first empties the file; settings are not emptied.
        if content.is_empty() {
            return self.cat(text).await.map(|_| ()).ok_or_else(missing);
        }
        let words = ["tee".to_owned(), text.to_owned()];
        let output = self.ask.command(&words, Some(&String::from_utf8_lossy(content))).await;
        if output.status == 0 {
            return Ok(());
        }
        let said = output.stderr.trim().rsplit(": ").next().unwrap_or_default().to_owned();
        self.guard.refused(text, &said);
        Err(Error::other(said).into())
    }
    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        let path = clean(path);
        if of_machine(&path).is_some() {
            return self.write_file(&path, content).await;
        }
        may_write(&path)?;
        let content = crate::marks::traced_bytes(content);
        let is_new = !self.own.exists(&path).await?;
        self.folder_of(&path).await?;
        self.guard.written(self.own.append_file(&path, &content).await)?;
        if is_new { self.begins_with(&path, 0o666).await } else { Ok(()) }
    }
    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        let path = clean(path);
        if recursive && self.own.exists(&path).await? {
            return Ok(());
        }
        may_write(&path)?;
        let mut new = Vec::new();
        for folder in path.ancestors() {
            if self.own.exists(folder).await? {
                break;
            }
            new.push(folder);
        }
        self.guard.written(self.own.mkdir(&path, recursive).await)?;
        for (n, folder) in new.into_iter().enumerate() {
            // Who makes the folders above has to get through them.
            self.begins_with(folder, 0o777).await?;
            if n > 0 && self.masked(0o700) != 0o700 {
                self.own.chmod(folder, self.masked(0o777) | 0o300).await?;
            }
        }
        Ok(())
    }
    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        let path = clean(path);
        may_write(&path)?;
        self.own.remove(&path, recursive).await
    }
    async fn stat(&self, path: &Path) -> Result<Metadata> {
        let path = clean(path);
        if matches!(path.to_str(), Some(UUID | BOOT)) {
            return Ok(file(37, 0o444));
        }
        if let Some(bytes) = path
            .to_str()
            .and_then(|p| p.strip_prefix(RANDOM).or_else(|| p.strip_prefix(ZERO)))
            .and_then(|n| n.parse().ok())
        {
            return Ok(file(bytes, 0o444));
        }
        if let Some(text) = of_machine(&path)
            && !FOLDERS.contains(&text)
        {
            let shown = self.ask.command(&["cat".to_owned(), text.to_owned()], None).await;
            // What cannot be read at the moment (the speed of a card that says none) is there all the same.
            if shown.status == 0 || shown.stderr.trim_end().ends_with(": Invalid argument") {
                return Ok(file(shown.stdout.len(), 0o644));
            }
            return self.list(text).await.map(|_| folder()).ok_or_else(missing);
        }
        let found = match (self.own.stat(&path).await, tool(&path, self.unknown.is_none())) {
            (Err(_), Some(text)) => file(text.len(), 0o755),
            (found, _) => found?,
        };
        Ok(Metadata { modified: moment(), created: moment(), ..found })
    }
    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let path = clean(path);
        if let Some(mask) = path.to_str().and_then(|p| p.strip_prefix(UMASK)) {
            self.umask.store(u32::from_str_radix(mask, 8).unwrap_or(0o022), Ordering::Relaxed);
            return Ok(Vec::new());
        }
        let Some(text) = of_machine(&path) else {
            // The interpreter's own memory has them in an order that changes from run to run.
            let mut entries = self.own.read_dir(&path).await?;
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            return Ok(entries);
        };
        let names = self.list(text).await.ok_or_else(missing)?;
        let entry = |(name, is_folder)| DirEntry {
            name,
            metadata: if is_folder { folder() } else { file(0, 0o644) },
        };
        Ok(names.into_iter().map(entry).collect())
    }
    async fn exists(&self, path: &Path) -> Result<bool> {
        let path = clean(path);
        match of_machine(&path) {
            Some(_) => Ok(self.stat(&path).await.is_ok()),
            None => Ok(self.own.exists(&path).await? || tool(&path, self.unknown.is_none()).is_some()),
        }
    }
    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let (from, to) = (clean(from), clean(to));
        may_write(&from)?;
        may_write(&to)?;
        self.own.rename(&from, &to).await
    }
    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let (from, to) = (clean(from), clean(to));
        let content = self.read_file(&from).await?;
        self.write_file(&to, &content).await
    }
    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        let (target, link) = (clean(target), clean(link));
        may_write(&link)?;
        self.guard.written(self.own.symlink(&target, &link).await)
    }
    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        self.own.read_link(&clean(path)).await
    }
    async fn set_modified_time(&self, _: &Path, _: SystemTime) -> Result<()> {
        // The clock stands still.
        Ok(())
    }
    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        let path = clean(path);
        may_write(&path)?;
        self.own.chmod(&path, mode).await
    }
}
