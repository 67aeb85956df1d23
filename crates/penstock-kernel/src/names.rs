//! Names of what a run makes.
//!
//! Namespaces and files of a run lie in a mount namespace that is its own ([`crate::contain`]) and go with its last process, so their names
//! need not tell whose they are. What lies outside (the job's folder, an instance of the kernel's tracing) carries the job's random token.

use std::path::{Path, PathBuf};

/// Where `ip netns exec` looks for a namespace's own `/etc/hosts`.
const ETC: &str = "/etc/netns";
/// Where a run keeps its files.
const RUN: &str = "/run/penstock";
/// Where tracefs may be mounted.
pub(crate) const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The name of a namespace.
pub(crate) fn part(part: &str) -> String {
    format!("penstock-{part}")
}

/// The folder of the run's files.
pub(crate) fn folder() -> &'static Path {
    Path::new(RUN)
}

/// The folder in which scripts run that find files.
pub(crate) fn lending() -> PathBuf {
    folder().join("files")
}

/// The folder in which scripts run: that of the files they find, or ours.
pub(crate) fn working() -> PathBuf {
    let folder = lending();
    if folder.is_dir() { folder } else { std::env::current_dir().unwrap_or(PathBuf::from("/")) }
}

/// Where a file lies that scripts find by this relative path; `None` where the path leads elsewhere.
pub(crate) fn lent(path: &str) -> Option<PathBuf> {
    let inside = Path::new(path)
        .components()
        .all(|c| matches!(c, std::path::Component::Normal(_) | std::path::Component::CurDir));
    inside.then(|| lending().join(path))
}

/// The `/etc/hosts` of a namespace.
pub(crate) fn hosts_file(name: &str) -> PathBuf {
    Path::new(ETC).join(name).join("hosts")
}

/// Where the mounts of a machine are entered.
pub(crate) fn mounts(name: &str) -> PathBuf {
    folder().join("mounts").join(name)
}

/// The instance of tracing below a mount of tracefs, by the token of the job.
pub(crate) fn instance(root: &str, token: &str) -> PathBuf {
    Path::new(root).join("instances").join(format!("penstock-{token}"))
}

/// Takes away the tracing of a job that is no more. The token is 128 bits of chance that only the job's own folder knows.
pub(crate) fn forget(token: &str) {
    for root in TRACING {
        let _ = std::fs::remove_dir(instance(root, token));
    }
}
