//! The machines of a plan as namespaces: made, set up, taken away.

use crate::contain::GUARD;
use crate::links;
use crate::needs::Kinds;
use crate::plan::{Host, Plan};
use crate::run::{SetupFailure, Trouble};
use crate::{exec, names, needs};
use penstock_lang::setup::{self, Setup};
use penstock_model::binary;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Stdio};

/// What was built. The namespaces go with the run's last process.
pub(crate) struct Rig {
    /// Namespaces of the machines, in the order of the plan.
    pub(crate) hosts: Vec<String>,
    pub(crate) kinds: Kinds,
    pub(crate) failures: Vec<SetupFailure>,
    relays: Vec<Child>,
    /// What keeps the mounts of the machines.
    mounts: Vec<[fs::File; 2]>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        for relay in &mut self.relays {
            let _ = relay.kill();
            let _ = relay.wait();
        }
    }
}

/// What a fresh machine is: quiet (no IPv6 of its own accord; with addresses of IPv6 it has link-local ones too, at once), not forwarding, taking
/// what comes from anywhere, with the buffers of TCP that Linux has where there is enough memory, and with CUBIC where a namespace may have it
/// (`tcp_set_default_congestion_control` refuses what is not in `tcp_allowed_congestion_control`). A namespace has its maker's else, whatever this
/// machine was tuned to.
const FRESH: &str = "ip link set lo up
for f in /proc/sys/net/ipv6/conf/all /proc/sys/net/ipv6/conf/default; do
  for k in accept_ra accept_dad router_solicitations; do [ -e $f/$k ] && echo 0 >$f/$k; done
  [ -e $f/addr_gen_mode ] && echo $QUIET >$f/addr_gen_mode
done
echo $FORWARD >/proc/sys/net/ipv4/ip_forward
for f in all default; do echo 0 >/proc/sys/net/ipv4/conf/$f/rp_filter; done
cd /proc/sys/net/ipv4
read -r known <tcp_available_congestion_control
case \" $known \" in *' cubic '*) (echo cubic >tcp_congestion_control) 2>/dev/null;; esac
echo 4096 131072 6291456 >tcp_rmem
echo 4096 16384 4194304 >tcp_wmem
true";

/// Time for the devices to settle before the setups: carrier events, and in the virtual kernel the first timer tick.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(200);

/// Builds everything up to and with the setups. `stop` is asked between the steps.
pub(crate) fn build(plan: &Plan, stop: &mut dyn FnMut() -> bool) -> Result<Rig, Trouble> {
    let hosts: Vec<String> = (0..plan.hosts.len()).map(|n| names::part(&n.to_string())).collect();
    let kinds = Kinds { netem: false };
    let mut rig = Rig { hosts, kinds, failures: Vec::new(), relays: Vec::new(), mounts: Vec::new() };
    let machine = |e: String| Trouble::Machine(vec![e]);
    fs::create_dir_all(names::folder())
        .map_err(|e| machine(format!("cannot make {}: {e}", names::folder().display())))?;
    lend(plan).map_err(machine)?;
    let known = hosts_file(plan);
    for (host, name) in plan.hosts.iter().zip(&rig.hosts) {
        if stop() {
            return Err(Trouble::Stopped);
        }
        let file = names::hosts_file(name);
        let written =
            file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, &known));
        written.map_err(|e| machine(format!("cannot write {}: {e}", file.display())))?;
        if Path::new("/etc/gai.conf").exists() {
            // Of a name with addresses of both families that of IPv4 is called, as on the simulator.
            let order = file.with_file_name("gai.conf");
            let written = fs::write(&order, "precedence ::ffff:0:0/96 100\n");
            written.map_err(|e| machine(format!("cannot write {}: {e}", order.display())))?;
        }
        exec::run(None, &["ip", "netns", "add", name]).map_err(|e| {
            machine(format!("{e}: network namespaces need CAP_SYS_ADMIN and a kernel with CONFIG_NET_NS; --on virtual needs neither"))
        })?;
        rig.mounts.push(mounts(name).map_err(machine)?);
        let six = host.devices.iter().any(|d| !d.addresses6.is_empty());
        let fresh = FRESH
            .replace("$FORWARD", if host.forwards { "1" } else { "0" })
            .replace("$QUIET", if six { "0" } else { "1" });
        exec::run(Some(name), &["bash", "-c", &fresh]).map_err(machine)?;
    }
    let probe = names::part("probe");
    exec::run(None, &["ip", "netns", "add", &probe]).map_err(machine)?;
    rig.kinds = needs::kinds(&probe).map_err(machine)?;
    let first =
        rig.hosts.iter().map(|name| first_index(name)).collect::<Result<Vec<_>, _>>().map_err(machine)?;
    rig.relays = links::connect(plan, &rig.hosts, &first, rig.kinds).map_err(machine)?;
    for ((host, name), first) in plan.hosts.iter().zip(&rig.hosts).zip(first) {
        devices(plan, host, name, first, &probe).map_err(|e| machine(format!("{}: {e}", host.name)))?;
    }
    std::thread::sleep(SETTLE);
    for (host, name) in plan.hosts.iter().zip(rig.hosts.clone()) {
        if stop() {
            return Err(Trouble::Stopped);
        }
        setup(plan, host, &name, &mut rig.failures)?;
        if !plan.offloads && !host.setup.is_empty() {
            made(host, &name).map_err(|e| machine(format!("{}: {e}", host.name)))?;
        }
    }
    Ok(rig)
}

/// What stands in a machine's own mounts: its devices in `/sys`, its files in `/etc`, and no namespaces but those it makes itself.
const MOUNTS: &str =
    "umount -l /sys 2>/dev/null; mount -t sysfs sysfs /sys && mount -o remount,bind,ro /sys || exit
for f in /etc/netns/\"$0\"/*; do mount --bind \"$f\" \"/etc/${f##*/}\" || exit; done
mount -t tmpfs netns /run/netns";

/// Gives a machine mounts of its own that stay as long as the files that are returned, the namespace and its root: what `ip netns add` of its setup mounts is there for the
/// programs that run behind it, and two machines may use the same name. `ip netns exec` makes mounts anew for each command.
///
/// The namespace is held open, not mounted somewhere: that the kernel may refuse (`mnt_ns_loop` compares numbers that since Linux 6.18 need not
/// grow with time).
fn mounts(name: &str) -> Result<[fs::File; 2], String> {
    let net = format!("--net=/run/netns/{name}");
    let script = format!("{MOUNTS}\necho made; read -r _");
    let words = ["unshare", "--mount", "--propagation", "slave", "nsenter", &net, "sh", "-c", &script, name];
    let said = |e: std::io::Error| format!("cannot make the mounts of a machine: {e}");
    let mut command = exec::command(None, &words);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(said)?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(said)?;
    }
    let [held, root] = ["ns/mnt", "root"].map(|what| fs::File::open(format!("/proc/{}/{what}", child.id())));
    let done = child.wait_with_output().map_err(said)?;
    if line != "made\n" {
        let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        return Err(format!("cannot make the mounts of a machine: {why}"));
    }
    let (held, root) = (held.map_err(said)?, root.map_err(said)?);
    let folder = names::mounts(name);
    fs::create_dir_all(&folder).map_err(said)?;
    for (file, link) in [(&held, "mnt"), (&root, "root")] {
        let at = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        symlink(at, folder.join(link)).map_err(said)?;
    }
    Ok([held, root])
}

/// The tunnels, VLANs and other devices that a setup has made carry single packets as the cards do, unless it says itself what they join.
fn made(host: &Host, name: &str) -> Result<(), String> {
    let says = |dev: &str| {
        let lines = host.setup.iter().flat_map(|script| script.text.lines());
        lines
            .filter(|l| l.contains("ethtool") || l.contains("gso_") || l.contains("gro_"))
            .any(|l| l.split_whitespace().any(|word| word == dev))
    };
    let known = |dev: &str| dev == "lo" || host.devices.iter().any(|d| d.name == dev);
    // What modules leave in each namespace (`sit0`) is down.
    let all = exec::run(Some(name), &["ip", "-o", "link", "show", "up"])?;
    for line in all.lines() {
        let dev = line.split_whitespace().nth(1).unwrap_or_default().trim_end_matches(':');
        let dev = dev.split('@').next().unwrap_or_default();
        if !dev.is_empty() && !known(dev) && !says(dev) {
            links::single_packets(name, dev)?;
        }
    }
    Ok(())
}

/// The files that scripts find, in the folder they run in.
fn lend(plan: &Plan) -> Result<(), String> {
    for (path, text) in &plan.files {
        // What lies elsewhere on this machine stays as it is.
        let Some(path) = names::lent(path) else { continue };
        let written = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, binary::bytes_of(text)));
        written.map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}

/// `/etc/hosts` of all machines: each name its first address.
fn hosts_file(plan: &Plan) -> String {
    let mut text = "127.0.0.1 localhost\n".to_owned();
    for host in &plan.hosts {
        if let Some(address) = host.address() {
            text.push_str(&format!("{address} {}\n", host.name));
        }
        if let Some((address, _)) = host.devices.iter().flat_map(|d| &d.addresses6).next() {
            text.push_str(&format!("{address} {}\n", host.name));
        }
    }
    text
}

/// The first interface index that is free in a namespace: behind `lo` and what modules leave in each (`sit0`).
fn first_index(name: &str) -> Result<usize, String> {
    let text = exec::run(Some(name), &["sh", "-c", "cat /sys/class/net/*/ifindex"])?;
    Ok(text.lines().filter_map(|l| l.trim().parse::<usize>().ok()).max().unwrap_or(1) + 1)
}

/// Addresses, sizes, routes; devices that no link has made yet get a peer that is down, in the namespace `away`.
fn devices(plan: &Plan, host: &Host, name: &str, first: usize, away: &str) -> Result<(), String> {
    let there = exec::run(Some(name), &["ls", "-A", "/sys/class/net"])?;
    let mut lines = Vec::new();
    for device in &host.devices {
        let dev = &device.name;
        if let Some(place) = host.place_of(dev).filter(|_| !there.lines().any(|d| d == dev)) {
            let index = first + place;
            // The kernel names the peer.
            lines.push(format!("link add name {dev} index {index} type veth peer netns {away}"));
        }
        if let Some(mtu) = device.mtu {
            lines.push(format!("link set dev {dev} mtu {mtu}"));
        }
        if let Some(packets) = device.txqueuelen {
            lines.push(format!("link set dev {dev} txqueuelen {packets}"));
        }
        for (address, len) in &device.addresses {
            lines.push(format!("addr add {address}/{len} brd + dev {dev}"));
        }
        for (address, len) in &device.addresses6 {
            lines.push(format!("addr add {address}/{len} dev {dev} nodad"));
        }
        lines.push(format!("link set dev {dev} up"));
    }
    if let Some(via) = host.via {
        lines.push(format!("route add default via {via}"));
    }
    if let Some(via) = host.via6 {
        lines.push(format!("route add ::/0 via {via}"));
    }
    lines.extend(host.routes.iter().map(|r| format!("route {r}")));
    exec::batch(Some(name), "ip", &lines)?;
    if !plan.offloads {
        for device in host.devices.iter().filter(|d| d.name != "lo") {
            links::single_packets(name, &device.name)?;
        }
    }
    Ok(())
}

/// Lines before the setup's own, in one: who is root already needs no sudo.
const PRELUDE: &str = "sudo() { \"$@\"; }";

/// Runs the setup of a machine, one script of all its texts, and gathers what failed and said so.
fn setup(plan: &Plan, host: &Host, name: &str, failures: &mut Vec<SetupFailure>) -> Result<(), Trouble> {
    if host.setup.is_empty() {
        return Ok(());
    }
    let whole = Setup::of(host.setup.iter().map(|s| s.text.as_str()));
    let guard = if plan.exact { "" } else { GUARD };
    let text = format!("{guard}{PRELUDE}; {}\n{}", setup::TRAP, whole.text());
    let zero = match host.setup.as_slice() {
        [one] if one.line == 1 && !one.file.is_empty() => &one.file,
        _ => "setup",
    };
    let words = ["bash", "-c", &text, zero];
    // Into a file: what it leaves running in the background would keep a pipe open, and nobody waits for that.
    let machine = |e: std::io::Error| Trouble::Machine(vec![format!("cannot run bash: {e}")]);
    let errors = names::folder().join("setup.err");
    let stderr = fs::File::create(&errors).map_err(machine)?;
    let mut command = exec::command_in(Some(name), &names::working(), &words);
    let status = command.stdout(Stdio::null()).stderr(stderr).status().map_err(machine)?;
    let said = String::from_utf8_lossy(&fs::read(&errors).map_err(machine)?).into_owned();
    let (failed, rest, last) = setup::failures(&said, 1);
    let failure = |line: u32, command: &str, message: String| {
        let (at, line) = whole.place(line);
        let script = &host.setup[at.min(host.setup.len() - 1)];
        let source = script.text.lines().nth(line as usize - 1).unwrap_or_default().trim();
        SetupFailure {
            host: host.name.clone(),
            file: script.file.clone(),
            line: script.line + line - 1,
            command: if matches!(command, "" | "\"$@\"") { source } else { command }.to_owned(),
            message,
        }
    };
    let mut wrong: Vec<SetupFailure> =
        failed.iter().map(|f| failure(f.line, &f.command, f.said.join("\n"))).collect();
    if host.setup_may_fail {
        failures.extend(wrong);
        return Ok(());
    }
    if !status.success() && wrong.is_empty() {
        // `exit`, `set -e` behind a silent command, or a fault of the shell's own.
        let code = status.code().unwrap_or(1);
        wrong.push(failure(last.map_or(1, |(line, _)| line), "", setup::ended(code, &rest)));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Trouble::Setup(wrong)) }
}
