//! PS00x: what is refused.

use crate::facts::{Facts, Step, What};
use crate::finding::{Found, Level, Rule, Say};
use crate::unfollowed::{self, TARGETS};
use crate::written::Written;
use penstock_lang::tc::Command;
use penstock_lang::token::Line;
use penstock_model::Handle;
use penstock_model::rtnetlink::Verb;
use penstock_sched::{sch, traits::Classes};
use std::collections::BTreeSet;

pub const RULES: &[Rule] = &[
    Rule {
        code: "PS001",
        severity: Level::Error,
        about: "tc does not understand the command",
        why: "tc reads the words itself before it asks the kernel; what it cannot read it refuses, and nothing is changed. The message is tc's own.",
        find: tc_refuses,
    },
    Rule {
        code: "PS002",
        severity: Level::Error,
        about: "the kernel refuses the command",
        why: "The words are right, but the kernel does not take what they ask for in the state the commands before left. The message is the one tc prints.",
        find: kernel_refuses,
    },
    Rule {
        code: "PS003",
        severity: Level::Error,
        about: "iptables or ipset refuses the command",
        why: "The rule, the set or the element is not there afterwards, so packets it was meant to mark or to let through go another way. The message is the program's own.",
        find: rules_refuse,
    },
    Rule {
        code: "PS004",
        severity: Level::Error,
        about: "ip, bridge or brctl refuses the command",
        why: "The program cannot read the words, or there is no such device: nothing is changed, and what follows on it is refused too. The message is its own.",
        find: ip_refuses,
    },
    Rule {
        code: "PS005",
        severity: Level::Error,
        about: "the script cannot be run to its end",
        why: "The shell itself gives up: an open quote, a loop that never ends, a construct that is not bash, a limit of the virtual machine.",
        find: stopped,
    },
];

/// Places a refusal at the word it is about.
fn refused(facts: &Facts, found: &mut Found, at: usize, step: &Step) {
    let typed = Line::of_words(&step.words);
    let said = step.output.diagnostics.first();
    let message = said.map(|d| d.message.clone()).filter(|m| !m.is_empty());
    let message =
        message.unwrap_or_else(|| step.output.stderr.lines().next().unwrap_or("refused").to_owned());
    let at_word = said.and_then(|d| typed.words.iter().position(|w| d.column > 0 && w.column == d.column));
    let word = at_word.map(|at| &typed.words[at]);
    // What its unknown words were given says nothing. A filter's handle is told of where its kind is read.
    let handle = || step.words.iter().position(|w| w == "handle").map(|at| at + 1);
    let of_handle = if message.contains("filter ID") { handle() } else { None };
    let whole = || super::cause::is_of_a_device(step) && super::cause::is_whole_arm(facts, at, step);
    if let Some(guessed) = step.guessed.as_ref().filter(|_| !whole())
        && (guessed.whole
            || of_handle.is_some_and(|at| guessed.words.contains(&at))
            || at_word.is_none_or(|at| guessed.words.contains(&at)))
    {
        return;
    }
    // Nor do several numbers together, of which some are worked out from them.
    if step.guessed.as_ref().is_some_and(|g| g.deep) && step.output.stderr.contains("tc_red_eval") {
        return;
    }
    // Nor does a word that is worked out from them.
    if step.guessed.as_ref().is_some_and(|g| g.deep)
        && let Some(at_word) = at_word
        && let Some(token) = Written::of(facts, step).as_ref().and_then(|w| w.token(at_word))
        && !token.is_literal()
    {
        return;
    }
    let help = said.map(|d| d.help.clone()).unwrap_or_default();
    let hidden = if facts.source.is_hushed(step.line) {
        " Its error goes to /dev/null, so nobody sees it."
    } else {
        ""
    };
    if super::cause::is_cut_off(facts, step) {
        return;
    }
    let swapped = || super::aqm::swapped(step);
    let (why, instead) = super::cause::cause(facts, at, step).or_else(swapped).unwrap_or_default();
    let near = word.and_then(|w| Some((w.text.as_str(), super::words::listed(&help, &w.text)?)));
    let (reason, help) = match (near, why.is_empty()) {
        (Some((word, meant)), true) => {
            let reason = format!("`{word}` is no word here; did you mean `{meant}`?{hidden}");
            (reason, step.with_word(word, meant))
        }
        (_, true) => (format!("`{}` is refused.{hidden}", step.text()), help),
        (_, false) => (format!("{why}{hidden}"), help),
    };
    let help = if instead.is_empty() { help } else { instead };
    found.at(at, word.map_or("", |w| w.text.as_str()), Say::new(message, reason, help));
}

fn failing(facts: &Facts) -> impl Iterator<Item = (usize, &Step)> {
    let bad =
        |s: &(usize, &Step)| !(s.1.ok() || s.1.file == facts.name && facts.source.expects_failure(s.1.line));
    facts.steps.iter().enumerate().filter(bad)
}

/// Whether a class cannot be deleted for what leads to it or stands below (`htb_delete`).
fn in_use(step: &Step) -> bool {
    let said = &step.output.stderr;
    step.has("class") && (said.contains("in use") || said.contains("resource busy"))
}

/// Whether the command takes something away.
fn deletes(step: &Step) -> bool {
    match step.tc() {
        Some(Command::Qdisc { req, .. }) => req.verb == Verb::Del,
        Some(Command::Class { req, .. }) => req.verb == Verb::Del,
        Some(Command::Filter { req, .. } | Command::Chain { req, .. }) => req.verb == Verb::Del,
        Some(Command::Action { .. }) => step.has("del") || step.has("flush"),
        _ => false,
    }
}

/// Whether tc only shows something.
pub(super) fn shows(step: &Step) -> bool {
    !matches!(
        step.tc(),
        None | Some(
            Command::Qdisc { .. }
                | Command::Class { .. }
                | Command::Filter { .. }
                | Command::Chain { .. }
                | Command::Action { .. }
                | Command::Fail(_)
        )
    )
}

fn by_tc(step: &Step) -> bool {
    matches!(&step.what, What::Other) || matches!(step.tc(), Some(Command::Fail(_) | Command::Help(_)))
}

fn tc_refuses(facts: &Facts, found: &mut Found) {
    for (at, step) in failing(facts).filter(|s| s.1.program() == "tc" && by_tc(s.1)) {
        if super::removed::replacement(facts, step).is_none() && !super::words::never_added(facts, at) {
            refused(facts, found, at, step);
        }
    }
    for (at, step) in facts.steps.iter().enumerate().filter(|s| s.1.program() == "tc") {
        unknown_set(facts, found, at);
        let Some(last) = step.words.last().filter(|w| w.len() > 1 && "-batch".starts_with(w.as_str())) else {
            continue;
        };
        let reason = "tc takes the word behind it for the name of a file. There is none: it prints its usage, does nothing and ends with status 0.";
        found.at(
            at,
            last,
            Say::new(format!("{last} is given no file"), reason, format!("{} -", step.text())),
        );
    }
}

/// A set that an ematch asks for and that nobody makes, where the script makes its sets itself (`ipset_parse_eopt`: tc looks it up).
fn unknown_set(facts: &Facts, found: &mut Found, at: usize) {
    let step = &facts.steps[at];
    let asked =
        step.words.iter().find_map(|w| w.split_once("ipset(")?.1.split([' ', ')']).find(|n| !n.is_empty()));
    let Some(name) = asked.filter(|_| step.ok() && makes_sets(facts) && step.guessed.is_none()) else {
        return;
    };
    let makes = |s: &Step| {
        s.program() == "ipset"
            && (s.has(name) || s.words.iter().any(|w| matches!(w.as_str(), "restore" | "-R")))
    };
    if !facts.partial && !facts.steps.iter().any(makes) {
        let reason = "tc looks for the set when it reads the filter; the script makes others.";
        found.at(at, name, Say::new(format!("Set {name} doesn't exist."), reason, ""));
    }
}

/// What refused commands would have made: by device, the handles and classes. What is refused for their absence has its cause there.
fn never_made(facts: &Facts) -> BTreeSet<(usize, String, String)> {
    let mut all = BTreeSet::new();
    for (at, step) in
        facts.steps.iter().enumerate().filter(|s| !s.1.ok() && s.1.program() == "tc" && !deletes(s.1))
    {
        // Without its device's name it is that of any.
        let lost = super::cause::unset(facts, step).is_some() || super::cause::is_cut_off(facts, step);
        let dev = if lost { "*".to_owned() } else { step.value(&["dev"]).unwrap_or("").to_owned() };
        let handle = step.value(&["handle"]).filter(|_| step.has("qdisc"));
        for id in step.value(&["classid"]).into_iter().chain(handle) {
            all.insert((at, dev.clone(), id.trim_end_matches('0').to_owned()));
        }
    }
    all
}

/// Whether a command needs what one before it should have made and did not.
fn follows(never: &BTreeSet<(usize, String, String)>, at: usize, step: &Step) -> bool {
    let dev = step.value(&["dev"]).unwrap_or("");
    let Some(parent) = step.value(&["parent"]) else { return false };
    let major = |id: &str| id.split(':').next().unwrap_or("").to_owned();
    never.iter().any(|(before, of, id)| {
        let qdisc = id.ends_with(':') && major(id) == major(parent);
        *before < at && (of == dev || of == "*") && (id == parent.trim_end_matches('0') || qdisc)
    })
}

fn kernel_refuses(facts: &Facts, found: &mut Found) {
    let never = never_made(facts);
    let makes = |s: &Step| matches!(s.tc(), Some(Command::Qdisc { req, .. }) if req.verb != Verb::Del);
    let borrows = !facts.steps.iter().any(makes);
    // A deletion may find nothing. One that names no place finds nothing ever (tc_get_qdisc looks for the handle 0).
    for (at, step) in facts.steps.iter().enumerate().filter(|s| !s.1.ok() && s.1.guessed.is_none()) {
        let Some(Command::Qdisc { req, dev: Some(dev) }) = step.tc() else { continue };
        let nothing = req.parent == Handle::UNSPEC && req.handle == Handle::UNSPEC;
        if req.verb == Verb::Del && nothing && step.output.stderr.contains("specified handle") {
            let reason = format!(
                "Neither root, ingress, a parent nor a handle says which qdisc of {dev} is to go: none does."
            );
            let said = step.output.stderr.lines().next().unwrap_or("refused");
            found.at(at, dev, Say::new(said, reason, format!("tc qdisc del dev {dev} root")));
        }
    }
    for (at, step) in failing(facts)
        .filter(|s| s.1.program() == "tc" && !by_tc(s.1) && (!deletes(s.1) || in_use(s.1)) && !shows(s.1))
    {
        let gone = super::removed::replacement(facts, step).is_some();
        let hushed = facts.source.is_hushed(step.line) && step.output.stderr.contains("xclusivity flag on");
        // A real card has more queues than the one that stands for it here.
        let queues = match step.tc() {
            Some(Command::Qdisc { dev: Some(dev), req }) => {
                req.kind.as_deref().is_some_and(|kind| sch::traits(kind).classes == Classes::Queues)
                    && req.parent == Handle::ROOT
                    && facts.foreign.contains(dev)
                    && step.output.stderr.contains("not supported")
            }
            _ => false,
        };
        // What the script would have made before is not there where its course was decided for it.
        let elsewhere =
            facts.forced && !super::cause::is_whole_function(facts, at, step) || step.guessed.is_some();
        let elsewhere =
            elsewhere && !(super::cause::is_of_a_device(step) && super::cause::is_whole_arm(facts, at, step));
        // A script that makes no qdisc at all, and replaces or changes, goes on with what another has made.
        let lent = match step.tc() {
            Some(Command::Class { req, .. }) => borrows && req.verb != Verb::Add,
            Some(Command::Filter { req, .. }) => borrows && req.verb != Verb::Add,
            _ => false,
        };
        if !gone
            && !hushed
            && !queues
            && !elsewhere
            && !lent
            && !follows(&never, at, step)
            && !super::words::never_added(facts, at)
        {
            refused(facts, found, at, step);
        }
    }
}

/// Whether a rule names a target that no kernel has and that is one or two slips away from one.
fn misspelled_target(step: &Step) -> bool {
    const KNOWN: [&str; 18] = [
        "ACCEPT",
        "DROP",
        "RETURN",
        "REJECT",
        "LOG",
        "MARK",
        "CONNMARK",
        "CLASSIFY",
        "MASQUERADE",
        "SNAT",
        "DNAT",
        "REDIRECT",
        "TCPMSS",
        "DSCP",
        "TOS",
        "NFQUEUE",
        "NOTRACK",
        "IMQ",
    ];
    let to = step.value(&["-j", "--jump"]).unwrap_or("");
    let near = |known: &&str| {
        let most = if known.len() > 5 { 2 } else { 1 };
        let upper = to.to_uppercase();
        strsim::damerau_levenshtein(known, &upper) <= most
    };
    step.output.stderr.contains("target")
        && to.len() > 2
        && !KNOWN.contains(&to)
        && !TARGETS.contains(&to)
        && KNOWN.iter().any(near)
}

/// Whether a rule's own options are refused for such a target.
fn jumps_elsewhere(step: &Step) -> bool {
    let to = step.value(&["-j", "--jump"]);
    to.is_some_and(|to| TARGETS.contains(&to))
        && ["unknown option", "requires an argument", "Unknown arg"]
            .iter()
            .any(|w| step.output.stderr.contains(w))
}

fn rules_refuse(facts: &Facts, found: &mut Found) {
    iptables_refuses(facts, found);
    super::chains::restore_refuses(facts, found);
    ipset_refuses(facts, found);
    ports_wrap(facts, found);
}

fn iptables_refuses(facts: &Facts, found: &mut Found) {
    let takes_away = |s: &Step| {
        s.words.iter().any(|w| {
            matches!(
                w.as_str(),
                "-D" | "-F" | "-X" | "-C" | "-Z" | "--delete" | "--flush" | "--delete-chain" | "--check"
            )
        })
    };
    for (at, step) in failing(facts).filter(|s| matches!(s.1.program(), "iptables" | "ip6tables")) {
        let stderr = &step.output.stderr;
        let hushed = facts.source.is_hushed(step.line) && step.has("-N");
        // Another script may have made the sets, unless this one makes some itself.
        let sets = stderr.contains("Set ") && stderr.contains("doesn't exist") && !makes_sets(facts);
        let misspelt = step.value(&["-m", "--match"]).is_some_and(|m| unfollowed::misspelt(m).is_some());
        let missing = stderr.contains("Couldn't load") && !misspelled_target(step) && !misspelt
            || stderr.contains("not installed")
            || sets;
        // Users and groups are the machine's.
        let owner = ["--uid-owner", "--gid-owner"].iter().any(|o| {
            let name =
                step.value(&[o]).is_some_and(|v| v.starts_with(|c: char| c.is_alphabetic() || c == '_'));
            name && stderr.contains(o)
        });
        // Asks for a chain that another way through the script makes.
        let asks = step.words.iter().any(|w| {
            w == "--list"
                || w == "--list-rules"
                || w.starts_with('-') && !w.starts_with("--") && w.contains(['L', 'S'])
        });
        let hushed = hushed || asks && facts.source.is_hushed(step.line);
        let excused = takes_away(step) || hushed || missing || owner || jumps_elsewhere(step);
        if !excused {
            refused(facts, found, at, step);
        }
    }
}

/// Ports that do not exist and that iptables takes for others: of udp's it keeps the last sixteen bits (`xtopt_parse_port`).
fn ports_wrap(facts: &Facts, found: &mut Found) {
    let rules = |s: &(usize, &Step)| s.1.ok() && matches!(s.1.program(), "iptables" | "ip6tables");
    for (at, step) in facts.steps.iter().enumerate().filter(rules) {
        for option in ["--dport", "--sport", "--destination-port", "--source-port"] {
            let Some(value) = step.value(&[option]) else { continue };
            let wrong = value.split(':').find_map(|p| p.parse::<u32>().ok().filter(|n| *n > 65_535));
            if let Some(port) = wrong {
                let why = format!(
                    "Ports end at 65535. Of this one the last sixteen bits are kept, without a word: the rule is for {}.",
                    port & 0xffff
                );
                found.at(at, value, Say::new(format!("there is no port {port}"), why, ""));
            }
        }
    }
}

/// Whether the script makes sets.
fn makes_sets(facts: &Facts) -> bool {
    let makes = |s: &&Step| {
        s.program() == "ipset"
            && s.words
                .iter()
                .skip(1)
                .any(|w| matches!(w.as_str(), "create" | "-N" | "new" | "n" | "restore" | "-R"))
    };
    facts.steps.iter().any(|s| makes(&s))
}

fn ipset_refuses(facts: &Facts, found: &mut Found) {
    for (at, step) in failing(facts).filter(|s| s.1.program() == "ipset") {
        let stderr = &step.output.stderr;
        // Asks, or takes away what may not be there.
        let verb = step
            .words
            .iter()
            .skip(1)
            .find(|w| !w.starts_with("-q") && !w.starts_with("-!"))
            .map_or("", |w| w.as_str());
        let absent = stderr.contains("does not exist") || stderr.contains("it's not added");
        let takes_away = matches!(
            verb,
            "destroy"
                | "flush"
                | "del"
                | "x"
                | "-X"
                | "-F"
                | "-D"
                | "list"
                | "-L"
                | "save"
                | "-S"
                | "swap"
                | "rename"
        ) && absent;
        let tests = matches!(verb, "test" | "-T" | "t") && !stderr.starts_with("ipset v");
        let elsewhere = stderr.contains("The set with the given name does not exist") && !makes_sets(facts);
        let unread = step.output.status == 255;
        if !(takes_away || tests || elsewhere || unread || facts.source.is_hushed(step.line)) {
            refused(facts, found, at, step);
        }
    }
}

fn ip_refuses(facts: &Facts, found: &mut Found) {
    for (at, step) in failing(facts).filter(|s| s.1.program() == "ip") {
        if let Some((why, instead)) = super::gateways::unreachable(facts, step) {
            let word = step.value(&["via"]).unwrap_or("via");
            let said = step.output.stderr.lines().next().unwrap_or("refused");
            found.at(at, word, Say::new(said, why, instead));
            continue;
        }
        if let Some((word, meant)) = super::words::misspelt(step) {
            let said = step.output.stderr.lines().next().unwrap_or("refused");
            let reason = format!("`{word}` is no word of ip here; did you mean `{meant}`?");
            found.at(at, word, Say::new(said, reason, step.with_word(word, meant)));
            continue;
        }
        let stderr = &step.output.stderr;
        // What is put down to be taken away.
        let goes = |s: &Step| {
            let names = |s: &Step| {
                s.words.last().cloned().into_iter().chain(s.words.get(3).cloned()).collect::<BTreeSet<_>>()
            };
            (s.has("del") || s.has("delete"))
                && s.has("link")
                && s.words.iter().any(|w| names(step).contains(w))
        };
        let goes = step.has("down") && facts.steps[at..].iter().take(4).any(goes);
        let takes_away = goes || ["del", "delete", "flush", "show", "get"].iter().any(|verb| step.has(verb));
        // Of a device that is not there nothing is shown, and nothing is taken away.
        let missing = !takes_away
            && stderr.contains("Cannot find device")
            && !facts.source.is_hushed(step.line)
            && !super::words::never_added(facts, at);
        if missing
            || !takes_away && by_nexthops(facts, step)
            || by_ip(step)
            || of_no_machine(step)
            || is_unfinished(step) && is_literal(facts, step)
        {
            refused(facts, found, at, step);
        }
    }
    // Values that no bridge takes, whatever the machine has.
    let values = [
        "Invalid VLAN ID \"",
        "Invalid VLAN range \"",
        "Invalid address \"",
        "Error: bridge: Vlan id is invalid.",
    ];
    for (at, step) in failing(facts).filter(|s| s.1.program() == "bridge") {
        if values.iter().any(|said| step.output.stderr.starts_with(said)) {
            refused(facts, found, at, step);
        }
    }
    // The same of brctl, whose kernel takes them no more than ip's.
    let values = ["bad ", "expect on/off for argument", "never heard of command "];
    for (at, step) in failing(facts).filter(|s| s.1.program() == "brctl") {
        let said = &step.output.stderr;
        if said.contains(RANGE) || values.iter().any(|v| said.starts_with(v)) {
            refused(facts, found, at, step);
        }
    }
}

/// Whether the kernel refuses members of a group of nexthops, or a route's nexthop, in a script that makes nexthops itself.
fn by_nexthops(facts: &Facts, step: &Step) -> bool {
    let of_group = [
        "Nexthop id can not be used twice in a group",
        "Hash-threshold group can not be a nexthop within a group",
        "Blackhole nexthop can not be used in a group with more than 1 path",
    ];
    // A route by one that was refused is refused with it.
    let refused = facts.steps.iter().any(|s| !s.ok() && s.words.get(1).is_some_and(|w| w == "nexthop"));
    let of_route = if refused { "Invalid nexthop id" } else { "Nexthop id does not exist" };
    let not_there = ["Invalid nexthop id", of_route];
    let says = |all: &[&str]| all.iter().any(|w| step.output.stderr.contains(w));
    let adds = |s: &Step| {
        s.ok()
            && s.program() == "ip"
            && s.words.get(1).is_some_and(|w| "nexthop".starts_with(w.as_str()) && w.len() > 2)
    };
    says(&of_group) || says(&not_there) && !facts.partial && facts.steps.iter().any(adds)
}

/// Whether ip misses words: a value behind the last one, or an argument that must be there.
fn is_unfinished(step: &Step) -> bool {
    let said = step.output.stderr.lines().next().unwrap_or("");
    said.starts_with("Command line is not complete.")
        || said.starts_with("Error: argument \"") && said.ends_with("\" is required")
}

/// Whether a command is written out in the script itself: nothing in its line is filled in, which could be empty here alone.
fn is_literal(facts: &Facts, step: &Step) -> bool {
    let line = step.line.checked_sub(1).and_then(|at| facts.source.lines.get(at as usize));
    step.file == facts.name && line.is_some_and(|l| !l.contains(['$', '`']) && !l.trim_end().ends_with('\\'))
}

/// What the kernel says of a number beyond what it takes (ERANGE).
const RANGE: &str = "Numerical result out of range";

/// Whether no kernel would take these values, whatever its machine has.
fn of_no_machine(step: &Step) -> bool {
    const SAID: [&str; 6] = [
        "Backward goto not supported",
        "port range",
        "ECN bits must be 0",
        "Error: Invalid tos.",
        "Cannot assign multicast address",
        "autojoin needs multicast address",
    ];
    // Those of ip-tunnel(8), be they simulated or not.
    const MODES: [&str; 16] = [
        "ipip", "ip/ip", "ipv4", "gre", "gre/ip", "sit", "isatap", "vti", "ip6", "ipv6", "ip6ip6", "ipip6",
        "ip6gre", "gre/ipv6", "vti6", "any",
    ];
    let mode = || step.value(&["mode"]).is_some_and(|m| !MODES.contains(&m) && !m.contains('/'));
    let said = step.output.stderr.as_str();
    step.program() == "ip"
        && (SAID.iter().any(|words| said.contains(words)) || said.contains("Unknown tunnel mode") && mode())
}

/// Whether ip refuses the words for themselves, whatever the machine has and however new its iproute2 is: values that none takes, and words
/// one slip away from one that all know.
fn by_ip(step: &Step) -> bool {
    const WORDS: [&str; 12] = [
        "up",
        "down",
        "dev",
        "mtu",
        "via",
        "table",
        "master",
        "nomaster",
        "txqueuelen",
        "address",
        "lladdr",
        "metric",
    ];
    let said = step.output.stderr.lines().next().unwrap_or("");
    let quoted = |at: usize| said.split('"').nth(at).unwrap_or("");
    if said.contains("\" is a garbage.") {
        let word = quoted(3);
        return !WORDS.contains(&word)
            && WORDS.iter().any(|known| strsim::damerau_levenshtein(known, word) == 1);
    }
    // Names in /etc/iproute2, devices and namespaces are the machine's.
    let of_machine = [
        "table",
        "realm",
        "protocol",
        "scope",
        "group",
        "TOS",
        "tos",
        "netns",
        "does not exist",
        "rule type",
    ];
    let value = said.contains("is wrong: ") && !of_machine.iter().any(|w| said.contains(w));
    // Times and costs of a bridge's spanning tree.
    let of_bridge =
        step.words.windows(2).any(|w| w[0] == "type" && matches!(&*w[1], "bridge" | "bridge_slave"));
    if said.contains(RANGE) && of_bridge {
        return true;
    }
    let bounds = [
        "mtu less than device",
        "mtu greater than device",
        "Invalid VLAN id",
        "Invalid prefix for given prefix length",
        "Egress device not specified",
    ];
    value || said.contains("is expected rather than") || bounds.iter().any(|b| said.contains(b))
}

/// The line in which a shell says that it gives up a command. nft has syntax errors too: `Error: syntax error …`.
pub(crate) fn gives_up(stderr: &str) -> Option<&str> {
    const GIVES_UP: [&str; 5] = [
        "syntax error",
        "unexpected EOF while looking for",
        "value too great for base",
        "division by 0",
        "(error token is ",
    ];
    // tc's own words, and those of `expr`, which end nothing.
    let of_program =
        |l: &str| l.contains("Error: ") || l.starts_with("Parse error") || l.starts_with("expr: ");
    stderr.lines().find(|l| !of_program(l) && GIVES_UP.iter().any(|w| l.contains(w)))
}

fn stopped(facts: &Facts, found: &mut Found) {
    let syntax = gives_up(&facts.stderr).map(str::to_owned);
    let Some(why) = &facts.stopped.clone().or(syntax) else { return };
    // A divisor that a program nobody has here would have set is no mistake of the script's; what was not reached is counted.
    if let Some(name) = why.split_once("division by 0 (error token is \"").and_then(|w| w.1.split('"').next())
    {
        let plain = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let set = |l: &String| l.contains(&format!("{name}="));
        if plain && !facts.source.lines.iter().any(set) {
            return;
        }
    }
    let said =
        why.split("line ").nth(1).and_then(|t| t.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    let last = facts.steps.last().map_or(1, |s| s.line.max(1));
    let line = said.filter(|&l: &u32| l > 0).unwrap_or(last).min(facts.source.lines.len() as u32);
    let why = why.lines().next().unwrap_or("it cannot be run");
    let message = why.split_once("line ").and_then(|w| w.1.split_once(": ")).map_or(why, |w| w.1);
    found.at_line(
        line,
        0,
        0,
        Say::new(
            message,
            format!("{}The commands behind this place have not been looked at.", arithmetic(message)),
            "",
        ),
    );
}

/// What is wrong with a number in `$(( … ))`.
fn arithmetic(said: &str) -> String {
    let Some((_, token)) = said.split_once("(error token is \"") else { return String::new() };
    let token = token.split('"').next().unwrap_or("");
    let digits = token.len() - token.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match (digits, token) {
        (_, t) if t.starts_with('.') => {
            "`$(( … ))` has whole numbers alone: multiply first and divide last. ".to_owned()
        }
        (d, t) if d == t.len() && t.starts_with('0') && d > 1 => {
            format!("A number that begins with 0 is octal; write `10#{t}`. ")
        }
        (d, t) if d > 0 && d < t.len() => format!(
            "`{t}` has a unit: keep the bare number in the variable, and write the unit behind it where tc reads it. "
        ),
        _ => String::new(),
    }
}
