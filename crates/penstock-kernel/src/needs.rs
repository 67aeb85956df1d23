//! What a run on the kernel needs of this machine, said before anything is made.

use crate::exec;
use crate::plan::Plan;

/// What this kernel can do for links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kinds {
    /// `netem`: delay and loss in the kernel.
    pub netem: bool,
}

/// Whether this process may make namespaces at all.
///
/// # Errors
/// A sentence why not.
pub fn rights() -> Result<(), String> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let said = "the ground \"kernel\" makes network namespaces, which only root may: run it with sudo, or use --on virtual, which needs no rights";
    Err(said.to_owned())
}

/// Checks rights, tools and kernel parts.
///
/// # Errors
/// A sentence for each thing that is missing: what, and how to get it.
pub fn check(plan: &Plan) -> Result<(), Vec<String>> {
    rights().map_err(|said| vec![said])?;
    let missing = std::cell::RefCell::new(Vec::from_iter(crate::contain::missing()));
    let need = |program: &str, package: &str, why: &str| {
        if !exec::has(program) {
            missing
                .borrow_mut()
                .push(format!("{program} is not installed, {why}: apt-get install {package}"));
        }
    };
    need("ip", "iproute2", "namespaces and devices are made with it");
    need("tc", "iproute2", "queues are set up and read with it");
    need("stdbuf", "coreutils", "programs print line by line with it");
    need("bash", "bash", "setups are run by it");
    if !plan.offloads {
        need("ethtool", "ethtool", "offloads are switched off with it (offloads = true leaves them on)");
    }
    let packages = [
        ("iperf", "iperf"),
        ("iperf3", "iperf3"),
        ("mtr", "mtr-tiny"),
        ("ping", "iputils-ping"),
        ("tracepath", "iputils-tracepath"),
        ("traceroute", "traceroute"),
    ];
    for app in &plan.apps {
        let name = program(&app.run);
        if let Some((program, package)) = packages.iter().find(|(p, _)| *p == name) {
            need(program, package, "an app of the experiment");
        } else if ["scp", "pscp", "ssh", "putty", "plink", "telnet"].contains(&name) {
            missing.borrow_mut().push(format!(
                "\"{}\": {name} needs an account on another machine; only the simulator runs it",
                app.run
            ));
        } else if is_name(name) && !BUILTINS.contains(&name) && !exec::has(name) {
            missing
                .borrow_mut()
                .push(format!("{name} is not installed, an app of the experiment: \"{}\"", app.run));
        }
    }
    let texts = || plan.hosts.iter().flat_map(|h| h.setup.iter().map(|s| s.text.as_str()));
    for (program, package) in TOOLS {
        let called = |t: &str| t.split(|c: char| !is_name_char(c)).any(|word| word == program);
        if texts().any(called) {
            need(program, package, "the setup uses it");
        }
    }
    let mut missing = missing.into_inner();
    missing.sort();
    missing.dedup();
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

/// Programs a setup may call that are not everywhere, and the package of each.
const TOOLS: [(&str, &str); 9] = [
    ("iptables", "iptables"),
    ("ip6tables", "iptables"),
    ("iptables-restore", "iptables"),
    ("nft", "nftables"),
    ("ipset", "ipset"),
    ("brctl", "bridge-utils"),
    ("ifconfig", "net-tools"),
    ("sysctl", "procps"),
    ("ethtool", "ethtool"),
];
/// Words of bash that begin a command line and are no programs.
const BUILTINS: [&str; 63] = [
    ".",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "time",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
    "true",
    "false",
];

/// What the kernel and the tools say where a part of them is missing, and what that part is.
const SAID: [(&str, &str); 8] = [
    ("Specified qdisc kind is unknown", "the qdisc's module (sch_KIND)"),
    ("Failed to load specified qdisc", "the qdisc's module (sch_KIND)"),
    ("TC classifier not found", "the classifier's module (cls_KIND)"),
    ("Failed to load TC action module", "the action's module (act_KIND)"),
    ("Failed to load ematch module", "the match's module (em_KIND)"),
    ("Table does not exist (do you need to insmod?)", "the table's module (iptable_TABLE)"),
    (
        "No chain/target/match by that name",
        "the target's or the match's module (xt_NAME), or a chain of that name is missing",
    ),
    ("Unknown device type", "the link kind's module"),
];

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}
fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(is_name_char)
}

/// How to get what a command of a setup lacked, from what it said; `None` where it said something else.
pub fn advice(message: &str) -> Option<String> {
    if message.contains("command not found") {
        return Some("install the program, or use --on sim, which has its own".to_owned());
    }
    let part = SAID.iter().find(|(said, _)| message.contains(said))?.1;
    Some(format!(
        "this kernel lacks {part}: modprobe loads a module that is installed; --on virtual has them all"
    ))
}

/// First word of a command line that is not `sudo`, without folders.
pub fn program(run: &str) -> &str {
    let word = run.split_whitespace().find(|w| *w != "sudo").unwrap_or("");
    word.rsplit('/').next().unwrap_or(word)
}

/// Tries in a namespace of the run whether the kernel has what links are made of.
///
/// # Errors
/// What is missing, with the way to get it.
pub fn kinds(namespace: &str) -> Result<Kinds, String> {
    let ns = Some(namespace);
    let (yes, no) = ("--on virtual has all of them", "modprobe");
    if let Err(e) = exec::line(ns, "ip link add t0 type veth peer name t1") {
        return Err(format!(
            "this kernel makes no veth devices ({e}): {no} veth, or use a kernel with CONFIG_VETH=y; {yes}"
        ));
    }
    let has = |tool: &str| exec::line(ns, tool);
    let parts = [
        ("tc qdisc add dev t0 root handle 1: htb", "sch_htb", "a link's rate is kept by htb"),
        (
            "tc class add dev t0 parent 1: classid 1:1 htb rate 1mbit",
            "sch_htb",
            "a link's rate is kept by htb",
        ),
        ("tc qdisc add dev t1 ingress", "sch_ingress", "frames are carried across a link by it"),
        (
            "tc filter add dev t1 parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev t0",
            "cls_u32 and act_mirred",
            "frames are carried across a link by them",
        ),
    ];
    for (command, module, why) in parts {
        if let Err(e) = has(command) {
            return Err(format!("this kernel lacks {module}, and {why} ({e}): {no} {module}; {yes}"));
        }
    }
    let netem = exec::line(ns, "tc qdisc replace dev t0 root netem delay 1ms").is_ok();
    exec::line(ns, "ip link del t0")?;
    Ok(Kinds { netem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_before_anything_is_made() {
        let app = |run: &str| crate::plan::App { run: run.to_owned(), ..Default::default() };
        let plan = Plan {
            apps: vec![
                app("sudo ssh a"),
                app("true"),
                app("no-such-program -c 1"),
                app("for i in 1; do true; done"),
                app(". ./lib.sh; shape"),
                app("local x"),
            ],
            // What this computer lacks beside is not asked for.
            offloads: true,
            ..Plan::default()
        };
        let said = check(&plan).unwrap_err().join("\n");
        if nix::unistd::geteuid().is_root() {
            assert!(said.contains("\"sudo ssh a\": ssh needs an account"), "{said}");
            assert!(said.contains("no-such-program is not installed, an app"), "{said}");
            assert_eq!(said.lines().count(), 2, "{said}");
        } else {
            assert!(said.contains("only root may") && said.contains("--on virtual"), "{said}");
        }
    }

    #[test]
    fn what_a_setup_lacked_is_told_from_what_it_said() {
        let said = advice("Error: Specified qdisc kind is unknown.").unwrap();
        assert!(
            said.contains("sch_KIND") && said.contains("modprobe") && said.contains("--on virtual"),
            "{said}"
        );
        assert!(advice("bash: line 2: foo: command not found").unwrap().contains("install"));
        assert_eq!(advice("Error: Exclusivity flag on, cannot modify."), None);
    }
}
