//! A run on this machine's kernel in namespaces of its own, so that it leaves nothing and touches nothing.
//!
//! The run is the first process of a PID namespace ([`supervise`]): when it ends, however that comes about, the kernel kills every process of
//! that namespace, whatever it called itself and wherever it hid. The run ends with its maker: by `PR_SET_PDEATHSIG`, and because it
//! watches the pipe to it. It has a mount namespace as well ([`enter`]): the names of its network namespaces, `/run`, `/dev` and everything
//! that is written go with it. Its root is the machine's own below a throw-away layer; where there is no overlayfs it is read-only.
//!
//! What is left outside is the job's folder, whose lock both processes hold ([`penstock_files::Scratch`]).

use crate::boot::Job;
use crate::exec;
use crate::names::TRACING;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

/// Rights that a run of ours has no use for and that reach beyond its namespaces: the clock, the machine's switch, ports and memory of
/// devices, device files, the kernel's log.
const DROPPED: &str = "-sys_time,-sys_boot,-sys_rawio,-mknod,-syslog,-wake_alarm,-mac_admin,-mac_override,-linux_immutable,-audit_control";
/// What the run says on standard error, in its job's folder.
const SAID: &str = "said";
/// What bash does before anything else in a machine of a run on this kernel: `ip netns exec` has mounted a `/sys` that can be written, in
/// which there is more than the machine's devices.
pub(crate) const GUARD: &str = "mount -o remount,bind,ro /sys || exit 125; ";
/// Environment variable: `0` does as if there were no overlayfs.
const OVERLAY: &str = "PENSTOCK_OVERLAY";
/// File systems of the kernel itself, of which a run gets its own or none.
const KERNELS: [&str; 23] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "tracefs",
    "debugfs",
    "securityfs",
    "selinuxfs",
    "bpf",
    "mqueue",
    "hugetlbfs",
    "configfs",
    "fusectl",
    "fuse.lxcfs",
    "pstore",
    "efivarfs",
    "binfmt_misc",
    "rpc_pipefs",
    "autofs",
    "nsfs",
    "ramfs",
];
/// Folders of which a run gets its own.
const OWN: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];
/// Device files that are no hardware.
const DEVICES: [&str; 8] = ["null", "zero", "full", "random", "urandom", "tty", "net/tun", "vhost-net"];

/// How a contained run ended.
pub enum Ended {
    /// By itself; what it said on standard error where it failed.
    Done(Result<(), String>),
    /// A signal asked to stop, and it was killed.
    Stopped,
}

/// Starts `program inside JOB` in a PID namespace, tells its progress, and waits for its end. Where a signal asks to stop, it is killed, and
/// with it everything it has started.
///
/// # Errors
/// There is no PID namespace to be had, or the program cannot be started.
pub fn supervise(job: &Job, program: &Path, progress: &mut dyn FnMut(f64)) -> Result<Ended, String> {
    let mut set = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().for_each(|s| set.add(s));
    let before = SigSet::thread_get_mask().map_err(|e| format!("signals: {e}"))?;
    // The thread below inherits it; the program does not, the standard library clears it for children.
    set.thread_block().map_err(|e| format!("signals: {e}"))?;
    let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC);
    let lock = job.lock();
    let (tell, told) = mpsc::channel();
    let ended = std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let signals = signals.map_err(|e| format!("signals: {e}"))?;
            attend(job.path(), start(job.path(), program, lock?)?, &signals, &tell)
        });
        while let Ok(share) = told.recv() {
            progress(share);
        }
        worker.join().unwrap_or_else(|_| Err("the run's supervisor panicked".to_owned()))
    });
    let _ = before.thread_set_mask();
    ended
}

/// The first process of a new PID namespace. Only this thread's children are born there, and `PR_SET_PDEATHSIG` counts this thread's life.
fn start(job: &Path, program: &Path, lock: File) -> Result<Child, String> {
    unshare(CloneFlags::CLONE_NEWPID).map_err(|e| {
        format!("cannot make a PID namespace ({e}): that needs CAP_SYS_ADMIN and a kernel with CONFIG_PID_NS; --on virtual needs neither")
    })?;
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", DROPPED, "--"]).arg(program).arg("inside").arg(job);
    // Its standard input is the lock on the job's folder: it is held until the last of us is gone.
    command.stdin(lock).stdout(Stdio::piped());
    // A file: this thread can have no other beside it that reads a pipe, once its children are born elsewhere.
    let said = job.join(SAID);
    command.stderr(File::create(&said).map_err(|e| format!("{}: {e}", said.display()))?);
    command.spawn().map_err(|e| format!("cannot start setpriv (package util-linux): {e}"))
}

fn attend(
    job: &Path,
    mut child: Child,
    signals: &SignalFd,
    tell: &mpsc::Sender<f64>,
) -> Result<Ended, String> {
    let mut out = child.stdout.take().ok_or("the run has no pipe")?;
    let mut stopped = false;
    let mut line = Vec::new();
    let mut part = [0; 512];
    loop {
        let mut waited =
            [PollFd::new(out.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        // An interrupted wait is as good as one that ended.
        let _ = poll(&mut waited, PollTimeout::NONE);
        let ready = |n: usize| waited[n].revents().is_some_and(|e| !e.is_empty());
        let (from_run, from_signal) = (ready(0), ready(1));
        if from_signal && matches!(signals.read_signal(), Ok(Some(_))) {
            stopped = true;
            let _ = child.kill();
            break;
        }
        if from_run {
            match out.read(&mut part) {
                Ok(0) => break,
                Ok(count) => line.extend(&part[..count]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            while let Some(end) = line.iter().position(|b| *b == b'\n') {
                let text: Vec<u8> = line.drain(..=end).collect();
                if let Some(share) = std::str::from_utf8(&text).ok().and_then(|t| t.trim().parse().ok()) {
                    // Who does not listen any more does not want to know.
                    let _ = tell.send(share);
                }
            }
        }
    }
    let status = child.wait().map_err(|e| format!("the run: {e}"))?;
    let said = penstock_files::read(&job.join(SAID), penstock_files::TEXT).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    if stopped {
        return Ok(Ended::Stopped);
    }
    Ok(Ended::Done(match status.success() {
        true => Ok(()),
        false if said.is_empty() => Err(format!("the run ended with {status}")),
        false => Err(said),
    }))
}

/// Tells the supervisor how far the run is.
pub fn tell(share: f64) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{share}").and_then(|()| out.flush());
}

/// The other side: leaves the machine's namespaces for ones of its own. What is written below `writable` stays, as does what is written into the
/// job's folder.
///
/// # Errors
/// This process is not a first process, or a part of the new root cannot be made.
pub fn enter(job: &Path, writable: &[PathBuf]) -> Result<(), String> {
    if std::process::id() != 1 {
        return Err("a run on this kernel is started by penstock run --on kernel".to_owned());
    }
    let died = |e: Errno| format!("cannot be made to end with its parent: {e}");
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(died)?;
    let kinds = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC;
    unshare(kinds).map_err(|e| {
        format!("cannot make namespaces ({e}): that needs CAP_SYS_ADMIN; --on virtual needs no rights")
    })?;
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let program = std::env::current_exe().map_err(|e| format!("who am I: {e}"))?;
    on(None, Path::new("/"), None, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None)?;
    let layer = folder(job.join("layer"))?;
    on(Some("tmpfs"), &layer, Some("tmpfs"), MsFlags::MS_NODEV, Some("mode=755"))?;
    let mounts = mounts()?;
    let overlay = std::env::var_os(OVERLAY).is_none_or(|v| v != "0");
    let root = match overlay.then(|| layered(&layer, &mounts, job)) {
        Some(Ok(root)) => root,
        _ => read_only(&layer, &program)?,
    };
    kernels_own(&root)?;
    let into = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    bind(job, &folder(into(job))?, MsFlags::empty())?;
    for path in writable {
        let to = into(path);
        folder(to.clone()).map_err(|e| format!("--allow-writes: {e}"))?;
        bind(path, &to, MsFlags::MS_REC).map_err(|e| format!("--allow-writes: {e}"))?;
    }
    change_root(&root)?;
    let _ = nix::unistd::chdir(&here);
    watch();
    Ok(())
}

/// Ends this process, and so every one of the run, when nobody reads its standard output any more: its maker has died.
fn watch() {
    std::thread::spawn(|| {
        let out = std::io::stdout();
        loop {
            let mut waited = [PollFd::new(out.as_fd(), PollFlags::empty())];
            let _ = poll(&mut waited, PollTimeout::NONE);
            if waited[0].revents().is_some_and(|e| e.intersects(PollFlags::POLLERR | PollFlags::POLLHUP)) {
                std::process::exit(1);
            }
        }
    });
}

/// A mount of this machine.
struct Mount {
    at: PathBuf,
    kind: String,
}

fn mounts() -> Result<Vec<Mount>, String> {
    let text =
        fs::read_to_string("/proc/self/mountinfo").map_err(|e| format!("/proc/self/mountinfo: {e}"))?;
    Ok(text.lines().filter_map(mount_of).collect())
}

/// A line of mountinfo (`proc(5)`): the fifth field is the place, the first behind ` - ` the kind.
fn mount_of(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let at = unescaped(before.split(' ').nth(4)?);
    Some(Mount { at: PathBuf::from(at), kind: after.split(' ').next()?.to_owned() })
}

/// Blanks, tabs, line ends and backslashes stand there as octal numbers.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((plain, code)) = rest.split_once('\\') {
        out.push_str(plain);
        match code.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(char::from(byte));
                rest = &code[3..];
            }
            None => {
                out.push('\\');
                rest = code;
            }
        }
    }
    out + rest
}

fn on(
    what: Option<&str>,
    at: &Path,
    kind: Option<&str>,
    flags: MsFlags,
    data: Option<&str>,
) -> Result<(), String> {
    mount(what, at, kind, flags, data)
        .map_err(|e| format!("mount {} on {}: {e}", kind.unwrap_or_default(), at.display()))
}

fn bind(from: &Path, to: &Path, more: MsFlags) -> Result<(), String> {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND | more, None::<&str>)
        .map_err(|e| format!("mount {} on {}: {e}", from.display(), to.display()))
}

/// Forbids writing through one mount; what it forbids already stays so.
fn forbid(at: &Path) -> Result<(), String> {
    use nix::sys::statvfs::{FsFlags, statvfs};
    let said = |e: Errno| format!("mount {} read-only: {e}", at.display());
    let now = statvfs(at).map_err(said)?.flags();
    let mut flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    for (is, stays) in [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
    ] {
        flags.set(stays, now.contains(is));
    }
    mount(None::<&str>, at, None::<&str>, flags, None::<&str>).map_err(said)
}

fn folder(path: PathBuf) -> Result<PathBuf, String> {
    fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

/// The machine's root, and every file system that is mounted in it, below a layer that takes what is written.
fn layered(layer: &Path, mounts: &[Mount], job: &Path) -> Result<PathBuf, String> {
    let lay = |number: usize, lower: &Path, at: &Path| {
        let part = |what: &str| folder(layer.join(format!("{what}{number}")));
        let (lower, upper, work) = (lower.to_string_lossy().into_owned(), part("upper")?, part("work")?);
        // The kernel reads these words with marks of its own.
        if lower.contains([',', ':', '\\']) || layer.to_string_lossy().contains([',', ':', '\\']) {
            return Err(format!("{lower}: no name for an overlay"));
        }
        let data = format!("lowerdir={lower},upperdir={},workdir={}", upper.display(), work.display());
        on(Some("overlay"), at, Some("overlay"), MsFlags::MS_NODEV, Some(&data))
    };
    let root = folder(layer.join("root"))?;
    lay(0, Path::new("/"), &root)?;
    for (number, mount) in mounts.iter().enumerate() {
        let outside = mount.at == Path::new("/") || mount.at.starts_with(job);
        if outside
            || KERNELS.contains(&mount.kind.as_str())
            || OWN.iter().any(|own| mount.at.starts_with(own))
        {
            continue;
        }
        let to = root.join(mount.at.strip_prefix("/").unwrap_or(&mount.at));
        // A mount below another one, or that was moved away, is not there.
        if !to.exists() || !mount.at.exists() {
            continue;
        }
        if mount.at.is_dir() && lay(number + 1, &mount.at, &to).is_ok() {
            continue;
        }
        bind(&mount.at, &to, MsFlags::empty())?;
        forbid(&to)?;
    }
    Ok(root)
}

/// The machine's root without overlayfs: every entry read-only, `/tmp`, `/var/tmp` and new names in `/` and `/etc` in memory.
fn read_only(layer: &Path, program: &Path) -> Result<PathBuf, String> {
    let root = folder(layer.join("bare"))?;
    bind(&root, &root, MsFlags::empty())?;
    let etc = Path::new("/etc");
    entries(Path::new("/"), &root, &|path| {
        path == etc || path == Path::new("/tmp") || OWN.iter().any(|own| path == Path::new(own))
    })?;
    entries(etc, &folder(root.join("etc"))?, &|path| path == Path::new("/etc/netns"))?;
    for mount in mounts()?.iter().rev().filter(|m| m.at.starts_with(&root) && m.at != root) {
        forbid(&mount.at)?;
    }
    for name in ["tmp", "var/tmp"] {
        let at = root.join(name);
        if name == "tmp" || at.is_dir() {
            on(
                Some("tmpfs"),
                &folder(at)?,
                Some("tmpfs"),
                MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
                Some("mode=1777"),
            )?;
        }
    }
    let inside = root.join(program.strip_prefix("/").unwrap_or(program));
    if !inside.exists() {
        folder(inside.parent().unwrap_or(&root).to_owned())?;
        File::create(&inside).map_err(|e| format!("{}: {e}", inside.display()))?;
        bind(program, &inside, MsFlags::empty())?;
        forbid(&inside)?;
    }
    Ok(root)
}

/// Each entry of a folder mounted in another one; links are made anew.
fn entries(from: &Path, to: &Path, but: &dyn Fn(&Path) -> bool) -> Result<(), String> {
    let said = |e: std::io::Error| format!("{}: {e}", from.display());
    for entry in fs::read_dir(from).map_err(said)? {
        let entry = entry.map_err(said)?;
        let (path, there, kind) =
            (entry.path(), to.join(entry.file_name()), entry.file_type().map_err(said)?);
        if but(&path) {
            continue;
        }
        if kind.is_symlink() {
            fs::read_link(&path).and_then(|to| symlink(to, &there)).map_err(said)?;
            continue;
        }
        if kind.is_dir() { fs::create_dir(&there) } else { File::create(&there).map(drop) }.map_err(said)?;
        bind(&path, &there, MsFlags::MS_REC)?;
    }
    Ok(())
}

/// `/proc`, `/sys`, `/dev` and `/run` of the run's own: of the kernel's settings only those of its network namespaces can be written.
fn kernels_own(root: &Path) -> Result<(), String> {
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let proc = folder(root.join("proc"))?;
    on(Some("proc"), &proc, Some("proc"), plain, None)?;
    let settings = proc.join("sys");
    bind(&settings, &settings, MsFlags::empty())?;
    forbid(&settings)?;
    let net = settings.join("net");
    bind(&net, &net, MsFlags::empty())?;
    // Bound from what is read-only it is so too, until it is told otherwise.
    on(None, &net, None, MsFlags::MS_BIND | MsFlags::MS_REMOUNT | plain, None)?;
    for name in ["sysrq-trigger", "irq", "bus", "acpi", "scsi", "fs"] {
        let at = proc.join(name);
        if at.exists() {
            bind(&at, &at, MsFlags::empty())?;
            forbid(&at)?;
        }
    }
    // `ip netns exec` mounts another one in its place: [`GUARD`].
    let sys = folder(root.join("sys"))?;
    on(Some("sysfs"), &sys, Some("sysfs"), plain | MsFlags::MS_RDONLY, None)?;
    if let Some(tracing) = TRACING.iter().find(|r| Path::new(r).join("instances").is_dir()) {
        // Without it there are no reasons of drops, and nothing else is missing.
        let _ = bind(Path::new(tracing), &sys.join("kernel/tracing"), MsFlags::empty());
    }
    let dev = folder(root.join("dev"))?;
    on(Some("tmpfs"), &dev, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC, Some("mode=755"))?;
    for name in DEVICES {
        let (from, to) = (Path::new("/dev").join(name), dev.join(name));
        if from.exists() {
            folder(to.parent().unwrap_or(&dev).to_owned())?;
            File::create(&to).map_err(|e| format!("{}: {e}", to.display()))?;
            bind(&from, &to, MsFlags::empty())?;
        }
    }
    for (name, to) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(to, dev.join(name)).map_err(|e| format!("/dev/{name}: {e}"))?;
    }
    let private = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    // Nothing of a run needs them; a kernel may lack one.
    let _ = on(
        Some("devpts"),
        &folder(dev.join("pts"))?,
        Some("devpts"),
        private,
        Some("newinstance,ptmxmode=0666"),
    );
    let _ = on(Some("tmpfs"), &folder(dev.join("shm"))?, Some("tmpfs"), private | MsFlags::MS_NODEV, None);
    let run = folder(root.join("run"))?;
    on(Some("tmpfs"), &run, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=755"))?;
    let lock = folder(run.join("lock"))?;
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o1777)).map_err(|e| format!("/run/lock: {e}"))
}

/// Makes a folder the root; the old one is reached by nothing any more.
fn change_root(root: &Path) -> Result<(), String> {
    let said = |e: Errno| format!("cannot change the root: {e}");
    nix::unistd::chdir(root).map_err(said)?;
    match nix::unistd::pivot_root(".", ".") {
        Ok(()) => umount2(".", MntFlags::MNT_DETACH).map_err(said)?,
        // The first file system of the machine (an initramfs) cannot be left: it is covered.
        Err(Errno::EINVAL) => {
            mount(Some("."), "/", None::<&str>, MsFlags::MS_MOVE, None::<&str>).map_err(said)?;
            nix::unistd::chroot(".").map_err(said)?;
        }
        Err(e) => return Err(said(e)),
    }
    nix::unistd::chdir("/").map_err(said)
}

/// Whether what a run is contained with is here; a sentence what is not.
pub(crate) fn missing() -> Option<String> {
    let needed =
        [("setpriv", "util-linux"), ("nsenter", "util-linux"), ("unshare", "util-linux"), ("mount", "mount")];
    let (program, package) = needed.into_iter().find(|(program, _)| !exec::has(program))?;
    Some(format!("{program} is not installed, runs are kept apart with it: apt-get install {package}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_as_the_kernel_writes_them() {
        let line =
            "36 35 98:0 /mnt1 /mnt\\0402/a\\134b rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = mount_of(line).unwrap();
        assert_eq!((mount.at.to_str().unwrap(), mount.kind.as_str()), ("/mnt 2/a\\b", "ext3"));
        assert!(mount_of("nonsense").is_none());
        assert!(mounts().unwrap().iter().any(|m| m.at == Path::new("/")));
    }

    #[test]
    fn nobody_enters_but_a_first_process() {
        assert!(enter(Path::new("/nowhere"), &[]).unwrap_err().contains("penstock run --on kernel"));
    }
}
