//! Commands that are not the interpreter's own: the network tools, what stands in for a few programs, what is refused.

use crate::chance::READ;
use crate::files;
use crate::limits::{DD, Guard, Limits, dd_stops};
use crate::line;
use crate::programs;
use crate::serve::{Ask, Reply, Request, gone};
use crate::unknown::Opaque;
use bashkit::{Bash, Builtin, BuiltinContext, CommandResolver, ExecOptions, ExecResult, Result, async_trait};
use penstock_host::{Output, Program};
use std::path::Path;
use std::sync::Arc;

/// Programs of files and options that the interpreter lacks or has in part.
pub(crate) fn of_files() -> Vec<(String, Box<dyn Builtin>)> {
    vec![
        ("stat".to_owned(), Box::new(crate::stat::Stat)),
        ("getopt".to_owned(), Box::new(crate::getopt::Getopt)),
        ("install".to_owned(), Box::new(crate::install::Install)),
        ("expr".to_owned(), Box::new(crate::expr::Expr)),
    ]
}

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
    "jq",
    "make",
    "mount",
    "nc",
    "ncat",
    "opkg",
    "perl",
    "ping6",
    "pip",
    "poweroff",
    "python",
    "python3",
    "reboot",
    "rsync",
    "ruby",
    "service",
    "sftp",
    "shutdown",
    "sqlite",
    "sqlite3",
    "systemctl",
    "tcpdump",
    "umount",
    "vi",
    "vim",
    "wget",
    "yum",
    "zcat",
];

/// Programs of networks that Linux has and the virtual machine has not, with what to do instead.
pub(crate) const NETWORK: &[(&str, &str)] = &[
    ("arping", "ping -c 1 asks for the neighbour's address too"),
    ("arptables", "ARP meets no rules here"),
    ("dcb", "leave it out"),
    ("devlink", "leave it out"),
    ("ebtables", "iptables, ip6tables and nft see what is bridged, with br_netfilter"),
    ("hping3", "[[flow]] sends what it is told to"),
    ("irqbalance", "a host here has one processor: leave it out"),
    ("lnstat", "nstat and tc -s show what is counted"),
    ("mii-tool", "ethtool shows a card"),
    ("nmap", "leave it out"),
    ("nping", "[[flow]] sends what it is told to"),
    ("openvpn", "a tunnel of ip link add … type ipip has an overhead too"),
    ("rdma", "leave it out"),
    ("tipc", "leave it out"),
    ("tshark", "capture = true at a device writes what goes by"),
    ("vdpa", "leave it out"),
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

/// Programs that do nothing here and are well: locks, logs, priorities, switching bash's own commands off, the history that a script
/// does not have.
const QUIET: &[&str] =
    &["enable", "fc", "flock", "history", "ionice", "logger", "renice", "stty", "sync", "udevadm"];

/// A program of the machine's ([`Program::of_scripts`]) or one of [`WRAPPERS`].
struct Network {
    name: &'static str,
    ask: Ask,
    guard: Arc<Guard>,
}

#[async_trait]
impl Builtin for Network {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let mut words = vec![usual_name(self.name)];
        words.extend(ctx.args.iter().map(|w| crate::marks::plain(w).into_owned()));
        if let Some(program) = programs::in_namespace(&words) {
            let (name, ask, guard) = (program.to_owned(), self.ask.clone(), Arc::clone(&self.guard));
            let place = (Arc::clone(&ctx.fs), ctx.cwd.clone());
            // Where nobody runs it the machine has its word for that.
            if let Some(result) = (programs::Launch { name, ask, guard }).run(words.clone(), place).await {
                return Ok(result);
            }
        }
        let stdin = ctx.stdin.map(|s| crate::marks::plain(&s.text_lossy()).into_owned());
        let place = ctx.variables.get(crate::LINE).cloned().unwrap_or_default();
        #[cfg(target_family = "wasm")]
        let lends = Some((Arc::clone(&ctx.fs), ctx.cwd.clone()));
        #[cfg(not(target_family = "wasm"))]
        let lends = crate::serve::Lends;
        let mut answers = self.ask.send(&words, stdin.as_deref(), Some(place), lends);
        loop {
            let Some(reply) = line::next(&mut answers, &self.ask.requests).await else {
                return Ok(result(gone()));
            };
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

/// The name a program is known by: the variants of iptables are one.
pub(crate) fn usual_name(name: &str) -> String {
    name.replace("-legacy", "").replace("tables-nft", "tables")
}

pub(crate) fn result(output: Output) -> ExecResult {
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

/// The command that tells that the script has come to its end: its word is the status.
pub(crate) const BODY: &str = "penstock-body";

struct Body(Ask);

#[async_trait]
impl Builtin for Body {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let status = ctx.args.first().and_then(|w| w.parse().ok()).unwrap_or(0);
        let _ = self.0.requests.send(Request::Body(self.0.now(), status));
        Ok(ExecResult { exit_code: status, ..ExecResult::default() })
    }
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

/// A command of the interpreter's own that one of ours stands before: carried out by an interpreter of its own, over the same files.
pub(crate) async fn own(name: &str, ctx: &BuiltinContext<'_>) -> Result<ExecResult> {
    let limits = Limits::default();
    let mut bash = Bash::builder()
        .fs(Arc::clone(&ctx.fs))
        .cwd(ctx.cwd.clone())
        .limits(limits.of_interpreter(0))
        .memory_limits(limits.of_memory())
        .build();
    let mut line = name.to_owned();
    for word in ctx.args {
        line.push(' ');
        line.push_str(&crate::clock::quoted(word));
    }
    let options = ExecOptions::new();
    bash.exec_with_options(
        &line,
        match ctx.stdin {
            Some(stdin) => options.stdin(stdin.clone()),
            None => options,
        },
    )
    .await
}

/// `seq` of whole numbers, as long as it is asked for; with other words the interpreter's own.
struct Seq(Arc<Guard>);

/// Lines of a `seq`, at most.
const SEQ_MOST: u64 = 10_000_000;

/// First, step, last.
fn whole(args: &[String]) -> Option<(i64, i64, i64)> {
    let numbers: Option<Vec<i64>> = args.iter().map(|w| w.parse().ok()).collect();
    // Zeros in front do not change what is printed, which a width does.
    Some(match numbers?.as_slice() {
        [last] => (1, 1, *last),
        [first, last] => (*first, 1, *last),
        [first, step, last] if *step != 0 => (*first, *step, *last),
        _ => return None,
    })
}

#[async_trait]
impl Builtin for Seq {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let Some((first, step, last)) = whole(ctx.args) else { return own("seq", &ctx).await };
        let span = i128::from(last) - i128::from(first);
        let count =
            if (span < 0) == (step < 0) || span == 0 { (span / i128::from(step) + 1) as u64 } else { 0 };
        let mut out = String::new();
        for n in 0..count.min(SEQ_MOST) {
            out.push_str(&(i128::from(first) + i128::from(n) * i128::from(step)).to_string());
            out.push('\n');
        }
        if count > SEQ_MOST {
            let said = format!("seq: line limit ({SEQ_MOST}) exceeded; output truncated\n");
            self.0.hears(&said);
            return Ok(ExecResult { stdout: out.into(), ..ExecResult::err(said, 1) });
        }
        said(out)
    }
}

/// The words a command is given instead, where the interpreter's own would take for ever by a number of them, or throw this
/// computer's dice.
pub(crate) fn instead(name: &str, args: &mut [String], guard: &Guard) {
    match name {
        // A device is read to its end first, and so much of it is there.
        "head" => {
            let bytes =
                |w: &str| ["-c", "--bytes="].iter().find_map(|o| w.strip_prefix(o)).map(str::to_owned);
            let given = args.iter().enumerate().find_map(|(at, w)| {
                let direct = bytes(w).filter(|n| !n.is_empty());
                direct
                    .or_else(|| ["-c", "--bytes"].contains(&w.as_str()).then(|| args.get(at + 1).cloned())?)
            });
            let Some(count) = given.as_deref().and_then(size).filter(|n| *n > READ as u64) else { return };
            let device =
                args.iter_mut().find(|w| matches!(w.as_str(), "/dev/urandom" | "/dev/random" | "/dev/zero"));
            match device {
                Some(device) if count <= files::MAX_DEVICE_READ => {
                    let folder = if device == "/dev/zero" { files::ZERO } else { files::RANDOM };
                    *device = format!("{folder}{count}");
                }
                Some(_) => guard.note(format!("bytes of a device read at once: {}", files::MAX_DEVICE_READ)),
                None if guard.device_read() => guard.note(format!("bytes of a device read at once: {READ}")),
                None => {}
            }
        }
        // Fields and characters are skipped one by one, though the line has ended.
        "uniq" => {
            for at in 0..args.len() {
                let option = |w: &str| {
                    ["-f", "-s", "-w", "--skip-fields", "--skip-chars", "--check-chars"].contains(&w)
                };
                if at > 0 && option(&args[at - 1]) {
                    args[at] = smaller(&args[at]);
                } else if args[at].starts_with('-') || args[at].starts_with('+') {
                    let digits = args[at].find(|c: char| c.is_ascii_digit()).unwrap_or(args[at].len());
                    let (head, tail) = args[at].split_at(digits);
                    args[at] = format!("{head}{}", smaller(tail));
                }
            }
        }
        "dd" => {
            let value = |key: &str| args.iter().rev().find_map(|w| w.strip_prefix(key)).map(size);
            let block = value("ibs=").or(value("bs=")).flatten().unwrap_or(512);
            let asked = value("count=").flatten().map_or(u64::MAX, |n| n.saturating_mul(block));
            let endless =
                |w: &String| matches!(w.as_str(), "if=/dev/urandom" | "if=/dev/random" | "if=/dev/zero");
            // What it says of this the script may hide.
            if asked > DD && args.iter().any(endless) {
                guard.note(dd_stops());
            }
            let bytes = asked.min(files::MAX_DEVICE_READ);
            for word in args {
                if matches!(word.as_str(), "if=/dev/urandom" | "if=/dev/random") {
                    *word = format!("if={}{bytes}", files::RANDOM);
                }
            }
        }
        _ => {}
    }
}

/// No number above what any line has.
fn smaller(number: &str) -> String {
    const LINE: &str = "1000000000";
    let longer = number.len() > LINE.len() || number.len() == LINE.len() && number > LINE;
    if longer && number.bytes().all(|b| b.is_ascii_digit()) {
        "1000000".to_owned()
    } else {
        number.to_owned()
    }
}

/// `4k` in bytes.
fn size(word: &str) -> Option<u64> {
    let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let unit = match &word[digits..] {
        "" | "c" => 1,
        "w" => 2,
        "b" => 512,
        "k" | "K" | "KiB" => 1 << 10,
        "kB" => 1000,
        "M" | "MiB" => 1 << 20,
        "MB" => 1_000_000,
        "G" | "GiB" => 1 << 30,
        _ => return None,
    };
    word[..digits].parse::<u64>().ok()?.checked_mul(unit)
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
    if let Some((_, instead)) = NETWORK.iter().find(|n| n.0 == program) {
        return Output {
            stderr: format!("{program}: not simulated: {instead}\n"),
            status: 126,
            ..Output::default()
        };
    }
    let stderr = format!(
        "{program}: not started: a script here acts on the virtual machine only (no programs, no network outside it)\n"
    );
    Output { stderr, status: 126, ..Output::default() }
}

/// Finds [`REFUSED`], [`WRAPPERS`] and [`programs::NAMES`] when a script calls one, so that `which` does not; and the network tools wherever a script
/// thinks they are.
pub(crate) struct Elsewhere(pub(crate) Ask, pub(crate) Arc<Guard>, pub(crate) Option<String>);

impl CommandResolver for Elsewhere {
    fn resolve(&self, name: &str) -> Option<Arc<dyn Builtin>> {
        let base = name.rsplit('/').next().unwrap_or(name);
        let own = Program::of_scripts().map(|p| p.name);
        if let Some(tool) = own.chain(WRAPPERS.iter().copied()).find(|t| *t == base) {
            return Some(Arc::new(Network { name: tool, ask: self.0.clone(), guard: Arc::clone(&self.1) }));
        }
        if let Some(text) = &self.2 {
            let (name, text, ask) = (base.to_owned(), text.clone(), self.0.clone());
            return Some(Arc::new(Opaque { name, text, ask }));
        }
        if programs::NAMES.contains(&base) {
            let (name, ask, guard) = (base.to_owned(), self.0.clone(), Arc::clone(&self.1));
            return Some(Arc::new(programs::Launch { name, ask, guard }));
        }
        (REFUSED.contains(&base) || NETWORK.iter().any(|n| n.0 == base))
            .then(|| Arc::new(Refused(base.to_owned())) as Arc<dyn Builtin>)
    }
}

/// Every command of ours, by name.
pub(crate) fn all(ask: &Ask, guard: &Arc<Guard>) -> Vec<(String, Box<dyn Builtin>)> {
    let mut all: Vec<(String, Box<dyn Builtin>)> = Vec::new();
    for Program { name, .. } in Program::of_scripts() {
        for at in ["", "/sbin/", "/usr/sbin/", "/bin/", "/usr/bin/"] {
            let tool = Network { name, ask: ask.clone(), guard: Arc::clone(guard) };
            all.push((format!("{at}{name}"), Box::new(tool)));
        }
    }
    for &name in programs::NAMES {
        for at in ["/bin/", "/usr/bin/"] {
            let launch =
                programs::Launch { name: name.to_owned(), ask: ask.clone(), guard: Arc::clone(guard) };
            all.push((format!("{at}{name}"), Box::new(launch)));
        }
    }
    for &name in QUIET {
        all.push((name.to_owned(), Box::new(Quiet)));
    }
    all.push((BODY.to_owned(), Box::new(Body(ask.clone()))));
    all.push(("id".to_owned(), Box::new(Id)));
    all.push(("seq".to_owned(), Box::new(Seq(Arc::clone(guard)))));
    all.push(("mktemp".to_owned(), Box::new(crate::mktemp::Mktemp::new())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_would_take_for_ever() {
        let told = |name: &str, line: &str| {
            let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            instead(name, &mut words, &Guard::new(Limits::default()));
            words.join(" ")
        };
        assert_eq!(told("uniq", "-f 99999999999999 x1"), "-f 1000000 x1");
        assert_eq!(told("uniq", "-cf99999999999999 99999999999999"), "-cf1000000 99999999999999");
        assert_eq!(told("uniq", "--skip-chars=99999999999 -w 5"), "--skip-chars=1000000 -w 5");
        assert_eq!(
            told("dd", "if=/dev/urandom bs=4k count=3 of=x"),
            "if=/dev/.random/12288 bs=4k count=3 of=x"
        );
        assert_eq!(told("dd", "if=/dev/zero"), "if=/dev/zero");
        assert_eq!(told("head", "-c 2M /dev/urandom"), "-c 2M /dev/.random/2097152");
        assert_eq!(told("head", "-c9 /dev/urandom"), "-c9 /dev/urandom");
    }

    /// A script that writes `2> /dev/null` behind it hides what the interpreter says.
    #[test]
    fn dd_tells_of_its_limit_before_it_begins() {
        let ends = |line: &str| {
            let guard = Guard::new(Limits::default());
            let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            instead("dd", &mut words, &guard);
            guard.done(Ok(0), 3)
        };
        let told = Err(
            "line 3: stopped at a limit of the virtual machine: bytes that dd moves: 67108864".to_owned()
        );
        for line in
            ["if=/dev/zero of=x", "if=/dev/zero bs=1M count=65", "of=x if=/dev/urandom count=1G bs=1G"]
        {
            assert_eq!(ends(line), told, "{line}");
        }
        for line in ["if=/dev/zero bs=1M count=64 of=x", "if=x of=y", "if=/dev/random count=1"] {
            assert_eq!(ends(line), Ok(0), "{line}");
        }
    }

    #[test]
    fn whole_sequences() {
        let of = |line: &str| whole(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!([of("5"), of("2 5"), of("9 -2 1")], [Some((1, 1, 5)), Some((2, 1, 5)), Some((9, -2, 1))]);
        assert_eq!([of("1.5"), of("-w 5"), of("1 0 5"), of("")], [None; 4]);
    }
}
