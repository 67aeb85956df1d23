//! The virtual ground: a real Linux as a user-mode process, whose time is exact.
//!
//! The kernel that [`build`](build::build) makes runs with `time-travel=inf-cpu`: code takes no time, and when every process sleeps the clock
//! jumps to the next timer. All its randomness follows from a seed. This program is its first process ([`init`]): it lays a throw-away
//! layer over the machine's own root file system, which it sees read-only, and starts itself again as an ordinary process, with every right
//! inside and none outside.

pub mod build;

use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use penstock_files::Scratch;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Timer interrupts per second of a user-mode kernel (`arch/um/Kconfig`).
pub const HZ: u32 = 100;
/// Environment variable that names another kernel than the cache's.
pub const KERNEL: &str = "PENSTOCK_UML";
/// Environment variable by which the first process knows its job folder.
const JOB: &str = "PENSTOCK_JOB";
/// The moment at which every virtual machine starts, ns since 1970.
const START: &str = "1700000000000000000";
/// Memory of the virtual machine; only what is touched is taken.
const MEMORY: &str = "mem=1024M";
/// What the layer is mounted on, inside the virtual machine only.
const LAYER: &str = "/mnt";

/// Where `penstock kernel build` puts the kernel.
pub fn cache() -> PathBuf {
    let home = || std::env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from);
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
    cache.join("penstock/kernel")
}

/// The kernel to boot.
///
/// # Errors
/// There is none yet, and how to get one.
pub fn find() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(KERNEL) {
        let path = PathBuf::from(named);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(format!("{KERNEL} names {}, and there is no such file", path.display()))
        };
    }
    let path = cache().join("linux");
    if path.is_file() {
        return Ok(path);
    }
    Err(format!(
        "the ground \"virtual\" needs a user-mode kernel, and {} is not there: run `penstock kernel build` once (10 minutes of one \
         processor, 3 GB of disk for the while), or name one with {KERNEL}",
        path.display()
    ))
}

/// A folder for one job, taken away when dropped. Jobs of killed processes go with the next one.
pub struct Job(Scratch);

impl Job {
    /// Makes it below the folder for temporary files.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> Result<Job, String> {
        let folder = std::env::temp_dir();
        let said = |e: std::io::Error| format!("cannot make a folder in {}: {e}", folder.display());
        let folder = folder.canonicalize().map_err(said)?;
        penstock_files::sweep_with(&folder, &mut crate::names::forget);
        let job = Job(Scratch::new(&folder).map_err(said)?);
        fs::create_dir(job.path().join("uml")).map_err(said)?;
        Ok(job)
    }
    /// Its path, the same outside and inside.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
    /// The random part of its name.
    pub fn token(&self) -> &str {
        self.0.token()
    }
    /// The file whose lock keeps it: for whoever works in it besides this process.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn lock(&self) -> Result<fs::File, String> {
        self.0.lock().map_err(|e| format!("{}: {e}", self.path().display()))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        crate::names::forget(self.token());
    }
}

/// Boots a kernel for a job: `program` is its first process and finds the job folder by its path. Returns when the machine has switched
/// itself off.
///
/// # Errors
/// There is no kernel; it did not start; it ended before the job did; what it said last.
pub fn boot(job: &Job, program: &Path, seed: u64) -> Result<(), String> {
    let kernel = find()?;
    let path = job.path();
    let log = path.join("console.log");
    let file = |name: &Path| fs::File::create(name).map_err(|e| format!("{}: {e}", name.display()));
    let arguments = [
        MEMORY.to_owned(),
        "rootfstype=hostfs".to_owned(),
        "rootflags=/".to_owned(),
        "ro".to_owned(),
        "quiet".to_owned(),
        "loglevel=4".to_owned(),
        "panic=-1".to_owned(),
        "con=null".to_owned(),
        "con0=null,fd:1".to_owned(),
        format!("uml_dir={}/uml", path.display()),
        "time-travel=inf-cpu".to_owned(),
        format!("time-travel-start={START}"),
        format!("init={}", program.display()),
        format!("{JOB}={}", path.display()),
    ];
    let mut command = if crate::exec::has("setpriv") {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(&kernel);
        command
    } else {
        Command::new(&kernel)
    };
    use std::os::unix::process::CommandExt as _;
    command.args(arguments).env("UML_SEED", seed.to_string()).env("TMPDIR", path).process_group(0);
    command.stdin(Stdio::null()).stdout(file(&log)?).stderr(file(&path.join("error.log"))?);
    let mut child = command.spawn().map_err(|e| format!("cannot start {}: {e}", kernel.display()))?;
    let begin = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(e) => return Err(format!("{}: {e}", kernel.display())),
        }
        if begin.elapsed() > Duration::from_secs(30) && !path.join("up").exists() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("the kernel showed no sign of life for 30 s: {}", last_words(path)));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if path.join("done").exists() {
        return Ok(());
    }
    Err(format!("the virtual kernel ended before its job ({status}): {}", last_words(path)))
}

/// What the kernel said last.
fn last_words(job: &Path) -> String {
    let text = |name: &str| {
        fs::read(job.join(name)).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
    };
    let all = text("console.log") + &text("error.log");
    let lines: Vec<&str> = all.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let panic = lines.iter().position(|l| l.contains("Kernel panic") || l.contains("penstock:"));
    let from = panic.unwrap_or(lines.len().saturating_sub(3));
    let said = lines[from..].iter().take(4).copied().collect::<Vec<_>>().join("; ");
    if said.is_empty() { "it said nothing".to_owned() } else { said }
}

/// The job folder, when this is the first process of a virtual machine.
pub fn is_init() -> Option<PathBuf> {
    (std::process::id() == 1).then(|| std::env::var_os(JOB).map(PathBuf::from)).flatten()
}

/// The first process: mounts, starts this program again with the word `inside` and the job folder, and switches the machine off.
pub fn init(job: &Path) -> ! {
    let done = prepare(job).and_then(|()| {
        // The kernel's timers are exact from its first tick on.
        std::thread::sleep(Duration::from_secs(1));
        let program = std::env::current_exe().map_err(|e| format!("who am I: {e}"))?;
        let mut command = Command::new(program);
        command
            .arg("inside")
            .arg(job)
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("HOME", "/root").env("LC_ALL", "C").env("PENSTOCK_EXACT", "1").current_dir("/");
        command.status().map_err(|e| format!("cannot start: {e}"))
    });
    match done {
        Ok(status) => {
            let _ = fs::write(job.join("done"), format!("{}\n", status.code().unwrap_or(255)));
        }
        Err(e) => println!("penstock: {e}"),
    }
    nix::unistd::sync();
    let Err(e) = reboot(RebootMode::RB_POWER_OFF);
    println!("penstock: {e}");
    std::process::exit(1)
}

fn prepare(job: &Path) -> Result<(), String> {
    let on = |what: &str, kind: &str, to: &Path, data: Option<&str>| {
        mount(Some(what), to, Some(kind), MsFlags::empty(), data)
            .map_err(|e| format!("mount {kind} on {}: {e}", to.display()))
    };
    let folder = |path: PathBuf| {
        fs::create_dir_all(&path).map(|()| path.clone()).map_err(|e| format!("{}: {e}", path.display()))
    };
    let layer = Path::new(LAYER);
    on("tmpfs", "tmpfs", layer, Some("mode=755"))?;
    for name in ["upper", "work", "root"] {
        folder(layer.join(name))?;
    }
    let root = layer.join("root");
    on(
        "overlay",
        "overlay",
        &root,
        Some(&format!("lowerdir=/,upperdir={LAYER}/upper,workdir={LAYER}/work")),
    )?;
    let below = |name: &str| root.join(name.trim_start_matches('/'));
    // What other runs have on this machine at the moment is none of this one's business (`/etc/netns`).
    for (what, kind, to) in [
        ("proc", "proc", "/proc"),
        ("tmpfs", "tmpfs", "/etc/netns"),
        ("sysfs", "sysfs", "/sys"),
        ("devtmpfs", "devtmpfs", "/dev"),
        ("tmpfs", "tmpfs", "/run"),
    ] {
        on(what, kind, &folder(below(to))?, None)?;
    }
    for (what, kind, to) in [("devpts", "devpts", "/dev/pts"), ("tmpfs", "tmpfs", "/dev/shm")] {
        // Nothing of a run needs them; a kernel may lack one.
        let _ = on(what, kind, &folder(below(to))?, None);
    }
    let inside = below(&job.to_string_lossy());
    on("none", "hostfs", &folder(inside)?, Some(&job.to_string_lossy()))?;
    nix::unistd::chdir(&root).map_err(|e| format!("chdir: {e}"))?;
    nix::unistd::chroot(".").map_err(|e| format!("chroot: {e}"))?;
    nix::unistd::chdir("/").map_err(|e| format!("chdir: {e}"))?;
    for (link, to) in [
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
    ] {
        let _ = std::os::unix::fs::symlink(to, link);
    }
    fs::write(job.join("up"), "").map_err(|e| format!("{}: {e}", job.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_taken_away() {
        let job = Job::new().unwrap();
        let path = job.path().to_owned();
        assert!(path.join("uml").is_dir());
        drop(job);
        assert!(!path.exists());
    }

    #[test]
    fn only_the_first_process_is_init() {
        assert_eq!(is_init(), None);
    }
}
