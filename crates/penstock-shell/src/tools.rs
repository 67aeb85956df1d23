//! Commands that are not the interpreter's own: the network tools, what stands in for a few programs, what is refused.

use crate::serve::{Ask, Reply, gone};
use bashkit::{Builtin, BuiltinContext, CommandResolver, ExecResult, Result, async_trait};
use penstock_host::Output;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Programs that act on the machine.
pub(crate) const NETWORK: &[&str] = &[
    "arp",
    "brctl",
    "bridge",
    "ethtool",
    "ifconfig",
    "ip",
    "ip6tables",
    "ip6tables-legacy",
    "ip6tables-legacy-restore",
    "ip6tables-legacy-save",
    "ip6tables-restore",
    "ip6tables-save",
    "ipchains",
    "iptables",
    "iptables-legacy",
    "iptables-legacy-restore",
    "iptables-legacy-save",
    "iptables-restore",
    "iptables-save",
    "lsmod",
    "modprobe",
    "netstat",
    "nft",
    "rmmod",
    "route",
    "sysctl",
    "tc",
    "uname",
];

/// Programs that would do something outside, or by chance, or that are not here.
pub(crate) const REFUSED: &[&str] = &[
    "apt",
    "apt-get",
    "crontab",
    "curl",
    "dmesg",
    "dnf",
    "dpkg",
    "ftp",
    "gcc",
    "git",
    "halt",
    "http",
    "iperf",
    "iperf3",
    "jq",
    "make",
    "mount",
    "nc",
    "ncat",
    "opkg",
    "perl",
    "ping",
    "ping6",
    "pip",
    "poweroff",
    "python",
    "python3",
    "reboot",
    "rsync",
    "ruby",
    "scp",
    "service",
    "sftp",
    "shuf",
    "shutdown",
    "sqlite",
    "sqlite3",
    "su",
    "systemctl",
    "tcpdump",
    "telnet",
    "umount",
    "uuidgen",
    "vi",
    "vim",
    "wget",
    "yum",
    "zcat",
];

/// Programs that carry out a command in a container or on another machine: asked of the machine, refused where it knows none.
pub(crate) const WRAPPERS: &[&str] = &[
    "docker",
    "docker-compose",
    "incus",
    "kubectl",
    "lxc",
    "lxc-attach",
    "nerdctl",
    "nsenter",
    "podman",
    "ssh",
];

/// Programs that do nothing here and are well: locks, logs, priorities, switching bash's own commands off.
const QUIET: &[&str] = &["enable", "flock", "ionice", "logger", "renice", "stty", "sync", "udevadm"];

/// One of [`NETWORK`] or [`WRAPPERS`].
struct Network {
    name: &'static str,
    ask: Ask,
}

#[async_trait]
impl Builtin for Network {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let mut words = vec![self.name.replace("-legacy", "")];
        words.extend(ctx.args.iter().map(|w| crate::plain(w).into_owned()));
        let stdin = ctx.stdin.map(|s| crate::plain(&s.text_lossy()).into_owned());
        let place = ctx.variables.get(crate::LINE).cloned().unwrap_or_default();
        let answers = self.ask.send(&words, stdin.as_deref(), Some(place));
        loop {
            let Ok(reply) = answers.recv() else { return Ok(result(gone())) };
            match reply {
                Reply::Output(output) => return Ok(result(output)),
                Reply::Read(path, text) => {
                    let path = if path.starts_with('/') { path.into() } else { ctx.cwd.join(path) };
                    let bytes = ctx.fs.read_file(Path::new(&path)).await.ok();
                    let _ = text.send(bytes.map(|b| String::from_utf8_lossy(&b).into_owned()));
                }
            }
        }
    }
}

fn result(output: Output) -> ExecResult {
    ExecResult {
        stdout: output.stdout.into(),
        stderr: output.stderr.into(),
        exit_code: output.status,
        ..ExecResult::default()
    }
}

fn said(stdout: String) -> Result<ExecResult> {
    Ok(ExecResult::ok(stdout))
}

/// Does nothing, well.
struct Quiet;

#[async_trait]
impl Builtin for Quiet {
    async fn execute(&self, _: BuiltinContext<'_>) -> Result<ExecResult> {
        said(String::new())
    }
}

/// `id`: root, as who sets up a network is.
struct Id;

#[async_trait]
impl Builtin for Id {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let flags: String = ctx.args.iter().filter_map(|w| w.strip_prefix('-')).collect();
        said(match (flags.contains('n'), flags.contains(['u', 'g', 'G'])) {
            (true, true) => "root\n".to_owned(),
            (false, true) => "0\n".to_owned(),
            _ => "uid=0(root) gid=0(root) groups=0(root)\n".to_owned(),
        })
    }
}

/// `mktemp`: names count up instead of being thrown.
struct Mktemp(AtomicU64);

#[async_trait]
impl Builtin for Mktemp {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let (mut folder, mut dry, mut template, mut base) = (false, false, None, "/tmp".to_owned());
        let mut words = ctx.args.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-p" => base = words.next().cloned().unwrap_or(base),
                "--directory" => folder = true,
                flags if flags.starts_with('-') && !flags.starts_with("--") => {
                    folder |= flags.contains('d');
                    dry |= flags.contains('u');
                }
                flags if flags.starts_with("--") => {}
                name => template = Some(name.to_owned()),
            }
        }
        let name = template.unwrap_or_else(|| format!("{base}/tmp.{}", "X".repeat(10)));
        let marks = name.chars().rev().take_while(|c| *c == 'X').count();
        let name = format!("{}{number:0marks$}", &name[..name.len() - marks]);
        let path = ctx.cwd.join(&name);
        let made = match (dry, folder) {
            (true, _) => Ok(()),
            (_, true) => ctx.fs.mkdir(&path, true).await,
            _ => ctx.fs.write_file(&path, b"").await,
        };
        match made {
            Ok(()) => said(format!("{name}\n")),
            Err(e) => Ok(ExecResult::err(format!("mktemp: {}: {e}\n", path.display()), 1)),
        }
    }
}

/// One of [`REFUSED`].
struct Refused(String);

#[async_trait]
impl Builtin for Refused {
    async fn execute(&self, _: BuiltinContext<'_>) -> Result<ExecResult> {
        Ok(result(refused(&self.0)))
    }
}

/// What a program that is not started gives.
pub(crate) fn refused(program: &str) -> Output {
    let stderr = format!(
        "{program}: not started: a script here acts on the virtual machine only (no programs, no network outside it)\n"
    );
    Output { stderr, status: 126, ..Output::default() }
}

/// Finds [`REFUSED`] and [`WRAPPERS`] when a script calls one, so that `which` does not; and the network tools wherever a script
/// thinks they are.
pub(crate) struct Elsewhere(pub(crate) Ask);

impl CommandResolver for Elsewhere {
    fn resolve(&self, name: &str) -> Option<Arc<dyn Builtin>> {
        let base = name.rsplit('/').next().unwrap_or(name);
        if let Some(&tool) = NETWORK.iter().chain(WRAPPERS).find(|t| **t == base) {
            return Some(Arc::new(Network { name: tool, ask: self.0.clone() }));
        }
        REFUSED.contains(&base).then(|| Arc::new(Refused(base.to_owned())) as Arc<dyn Builtin>)
    }
}

/// Every command of ours, by name.
pub(crate) fn all(ask: &Ask) -> Vec<(String, Box<dyn Builtin>)> {
    let mut all: Vec<(String, Box<dyn Builtin>)> = Vec::new();
    for &name in NETWORK {
        for at in ["", "/sbin/", "/usr/sbin/", "/bin/", "/usr/bin/"] {
            all.push((format!("{at}{name}"), Box::new(Network { name, ask: ask.clone() })));
        }
    }
    for &name in QUIET {
        all.push((name.to_owned(), Box::new(Quiet)));
    }
    all.push(("id".to_owned(), Box::new(Id)));
    all.push(("mktemp".to_owned(), Box::new(Mktemp(AtomicU64::new(1)))));
    all
}
