//! A machine as a fragment of an experiment file that runs: its devices as cards, everything else as a setup that has been tried.

use super::link::Link;
use super::{Found, Made, Text, filters, firewall, route, sort, words};
use penstock_host::{Host, NoFiles, Prefix};
use penstock_lang::token::Line;
use penstock_lang::toml::{key, quoted as toml};
use penstock_model::{Kernel, Time, ifname};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Keys of a host, which a device of that name must not stand beside.
const KEYS: [&str; 14] = [
    "kernel",
    "clock",
    "hz",
    "mhz",
    "setup_may_fail",
    "via",
    "setup",
    "cisco",
    "processor",
    "ahead",
    "os",
    "cost",
    "files",
    "device",
];

/// A fragment and what is not in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fragment {
    /// `[host.NAME]` with its devices and its setup; the notes stand before it.
    pub text: String,
    /// What stands in for something else, what was left out and why.
    pub notes: Vec<String>,
}

/// Makes `[host.NAME]` of the texts: at once an experiment that runs.
///
/// # Errors
/// A text whose form is not known, or a name that no host can have.
pub fn experiment(name: &str, texts: &[Text], kernel: Kernel) -> Result<Fragment, String> {
    let fits = |c: char| c.is_alphanumeric() || "_.-".contains(c);
    if name.is_empty() || name.len() > 63 || !name.chars().all(fits) {
        return Err(format!(
            "a host cannot be called \"{name}\": letters, digits, \"-\", \"_\" and \".\", at most 63"
        ));
    }
    let mut found = Found::default();
    for text in texts {
        sort(text, &mut found)?;
    }
    super::parents_first(&mut found.classes);
    let links = links(&found);
    let mut made = Made::new(Host::new("import", kernel, 1));
    let mut cards = Cards::default();
    for link in links.iter().filter(|l| is_card(l)) {
        cards.add(link, &links, &mut made);
    }
    cards.make(&mut made.host);
    for link in &links {
        others(link, &cards, &mut made);
    }
    for words in cards.after.clone() {
        made.run(&words);
    }
    settings(&found, &mut made);
    // A gateway is reached by a route that is there already.
    let (far, near): (Vec<_>, Vec<_>) =
        found.routes.iter().partition(|words| words.iter().any(|w| w == "via" || w == "nexthop"));
    for words in near.into_iter().chain(far).chain(&found.rules) {
        made.run(words);
    }
    queues(&found, &mut made);
    let firewalls = firewall::commands(&found, &cards.host(kernel), &mut made);
    made.import.commands.extend(firewalls);
    let commands = tried(&cards, kernel, &mut made);
    let notes = made.import.notes;
    let head: String = notes.iter().map(|n| format!("# {}\n", n.replace(['\n', '\r'], " "))).collect();
    let setup = match commands.is_empty() {
        true => String::new(),
        false => format!("setup = {}\n", block(&commands.join("\n"))),
    };
    let text = format!("{head}[host.{}]\n{}{setup}", key(name), cards.text);
    Ok(Fragment { text, notes })
}

/// Text of several lines as TOML writes it.
fn block(text: &str) -> String {
    let raw = |c: char| c == '\n' || c == '\t' || !c.is_control();
    if !text.contains("'''") && !text.ends_with('\'') && text.chars().all(raw) {
        return format!("'''\n{text}\n'''");
    }
    let lines: Vec<String> = text.split('\n').map(toml).collect();
    let inner: Vec<&str> = lines.iter().map(|l| &l[1..l.len() - 1]).collect();
    format!("\"\"\"\n{}\n\"\"\"", inner.join("\n"))
}

/// All devices in the order of their indices; those that only other commands name stand last.
fn links(found: &Found) -> Vec<Link> {
    let mut all: Vec<Link> = Vec::new();
    for link in &found.links {
        match all.iter_mut().find(|l| l.name == link.name) {
            Some(have) => have.merge(link.clone()),
            None => all.push(link.clone()),
        }
    }
    all.sort_by_key(|l| l.index);
    let shown = found.qdiscs.iter().chain(&found.classes).map(|s| s.dev.as_str());
    let filtered = found.filters.iter().chain(&found.chains).map(|(dev, _)| dev.as_str());
    let routed = found.routes.iter().chain(&found.rules).flat_map(|words| route::devices(words));
    for name in shown.chain(filtered).chain(routed) {
        if name != "lo" && !all.iter().any(|l| l.name == name) {
            all.push(Link { name: name.to_owned(), kind: guessed(name).to_owned(), ..Link::default() });
        }
    }
    for at in 0..all.len() {
        let kind = kind_of(&all[at], &all);
        all[at].kind = kind;
    }
    all
}

/// What a device of this name is where nothing else tells.
fn guessed(name: &str) -> &'static str {
    let numbered =
        |begin: &str| name.strip_prefix(begin).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    if name.starts_with("ifb") {
        "ifb"
    } else if numbered("dummy") {
        "dummy"
    } else {
        ""
    }
}

/// What a device is: what `-d` said, else what can be seen without it.
fn kind_of(link: &Link, all: &[Link]) -> String {
    let starts = |names: &[&str]| names.iter().any(|n| link.name.starts_with(n));
    let ports = || all.iter().any(|l| l.master.as_deref() == Some(&link.name));
    let lower = link.lower.as_deref().unwrap_or_default();
    let away =
        lower.strip_prefix("if").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let kind = match () {
        () if !link.kind.is_empty() => return link.kind.clone(),
        () if link.medium == "loopback" || link.name == "lo" => "loopback",
        () if link.is("MASTER") => "bond",
        () if link.medium == "ppp" || link.medium.is_empty() && starts(&["ppp"]) => "ppp",
        () if lower == "NONE"
            || matches!(link.medium.as_str(), "sit" | "gre" | "ipip" | "tunnel6" | "gre6") =>
        {
            "tunnel"
        }
        () if link.medium == "none" && starts(&["wg"]) => "wireguard",
        () if link.medium == "none" => "tun",
        () if link.is("NOARP") && !guessed(&link.name).is_empty() => guessed(&link.name),
        () if away || starts(&["veth", "fwpr", "fwln"]) && !lower.is_empty() => "veth",
        () if !lower.is_empty() && link.name.contains('.') => "vlan",
        () if !lower.is_empty() => "stacked",
        () if starts(&["tap"]) => "tun",
        () if ports()
            || link.qdisc == "noqueue" && starts(&["br", "vmbr", "docker", "virbr", "lxcbr", "fwbr"]) =>
        {
            "bridge"
        }
        () if starts(&["wl", "wifi", "phy", "ath", "ra"]) && link.medium == "ether" => "wireless",
        () => "",
    };
    kind.to_owned()
}

/// Whether it becomes a card of the host.
fn is_card(link: &Link) -> bool {
    !matches!(link.kind.as_str(), "loopback" | "ifb" | "dummy") && !is_idle_tunnel(link)
}

/// What a loaded module leaves in every machine: `sit0@NONE`, down and empty.
fn is_idle_tunnel(link: &Link) -> bool {
    let tunnel = matches!(
        link.kind.as_str(),
        "tunnel" | "sit" | "gre" | "gretap" | "ipip" | "ip6tnl" | "erspan" | "ip6gre" | "vti" | "vti6"
    );
    tunnel && !link.up() && link.addresses.is_empty()
}

/// A device: name, MTU, txqueuelen, addresses.
type Card = (String, Option<u32>, Option<u32>, Vec<(IpAddr, u8)>);

/// The devices that stand as keys of the host.
#[derive(Default)]
struct Cards {
    text: String,
    all: Vec<Card>,
    taken: BTreeSet<IpAddr>,
    /// Commands that make what a key cannot say.
    after: Vec<Vec<String>>,
}

impl Cards {
    fn add(&mut self, link: &Link, all: &[Link], made: &mut Made) {
        if let Err(fault) = ifname::check(&link.name) {
            made.note(format!("{}: left out: {fault}", link.name));
            return;
        }
        if let Some(note) = stands_for(link, all) {
            made.note(note);
        }
        let mtu = link.mtu.filter(|&m| m != 1500).and_then(|m| u32::try_from(m).ok());
        let fits = mtu.filter(|m| (68..=65_535).contains(m));
        if let (Some(mtu), None) = (mtu, fits) {
            made.note(format!("{}: an MTU of {mtu} is none that a card has: 1500 here", link.name));
        }
        let qlen = link.qlen.filter(|&n| n != 1000).and_then(|n| u32::try_from(n).ok());
        let mut plain = Vec::new();
        for address in link.addresses.iter().filter(|a| !a.is_own(link)) {
            let by_default = address.peer.is_none()
                && (address.scope == "global" || address.local.is_ipv6())
                && address.label.as_deref().is_none_or(|l| l == link.name);
            if by_default && self.taken.insert(address.local) {
                plain.push((address.local, address.len));
            } else {
                let mut words = ["ip", "addr", "add"].map(str::to_owned).to_vec();
                words.extend(address.words(&link.name));
                self.after.push(words);
            }
        }
        if !link.up() {
            self.after.push(["ip", "link", "set", "dev", &link.name, "down"].map(str::to_owned).to_vec());
        }
        let shown: Vec<String> = plain.iter().map(|(a, len)| format!("\"{a}/{len}\"")).collect();
        let address = match shown.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let more: Vec<String> = [("mtu", fits), ("txqueuelen", qlen)]
            .into_iter()
            .filter_map(|(key, n)| Some(format!("{key} = {}", n?)))
            .collect();
        let value = match more.is_empty() {
            true => address,
            false => format!("{{ address = {address}, {} }}", more.join(", ")),
        };
        let own = KEYS.contains(&link.name.as_str()) || ifname::shown(&link.name).is_some();
        let before = if own { "device." } else { "" };
        self.text.push_str(&format!("{before}{} = {value}\n", key(&link.name)));
        self.all.push((link.name.clone(), fits, qlen, plain));
    }

    /// Gives a machine these cards, as an experiment does.
    fn make(&self, host: &mut Host) {
        for (name, mtu, qlen, addresses) in &self.all {
            let ifindex = host.add_device(name);
            // All of these were read by the experiment's own rules.
            let _ = mtu.map(|mtu| host.set_mtu(ifindex, mtu, Time::ZERO));
            let _ = qlen.map(|n| host.set_tx_queue_len(ifindex, n, Time::ZERO));
            for &(address, len) in addresses {
                let _ = match address {
                    IpAddr::V4(a) => host.add_address(ifindex, Prefix::new(a, len)),
                    IpAddr::V6(a) => host.add_address6(ifindex, a, len),
                };
            }
        }
    }

    fn host(&self, kernel: Kernel) -> Host {
        let mut host = Host::new("import", kernel, 1);
        self.make(&mut host);
        host
    }
}

/// What a card stands for that is more than a card: by name, with what that means.
fn stands_for(link: &Link, all: &[Link]) -> Option<String> {
    let (name, lower) = (&link.name, link.lower.as_deref().unwrap_or_default());
    let on = |what: &str| {
        let over = if lower.is_empty() || lower == "NONE" { String::new() } else { format!(" on {lower}") };
        let rest = match lower.starts_with("if") || over.is_empty() {
            true => String::new(),
            false => format!("; its packets do not pass {lower} and its queues"),
        };
        format!("{name} is {what}{over}: a card of that name here{rest}")
    };
    let ports: Vec<&str> =
        all.iter().filter(|l| l.master.as_deref() == Some(name)).map(|l| l.name.as_str()).collect();
    let over = |what: &str| {
        let of = if ports.is_empty() { String::new() } else { format!(" of {}", ports.join(", ")) };
        format!(
            "{name} is a {what}{of}: a card of that name here, which carries nothing from or to other devices"
        )
    };
    let said = match link.kind.as_str() {
        "" => None,
        kind @ ("bridge" | "bond" | "team" | "vrf" | "batadv" | "hsr") => Some(over(kind)),
        "vlan" => Some(on("a VLAN")),
        "veth" => Some(on("one end of a veth pair")),
        "ppp" => Some(on("a PPP link")),
        "wireguard" => Some(on("a WireGuard tunnel, whose packets are not wrapped")),
        "tun" => Some(on("a tun or tap device, behind which a program reads")),
        "wireless" => Some(on("wireless")),
        "stacked" => Some(on("a device on top of another")),
        "tunnel" => Some(on("a tunnel, whose packets are not wrapped")),
        kind => Some(on(&format!("a {kind} device"))),
    };
    let port = link.master.as_ref().map(|m| format!("{name} belongs to {m}: a card by itself here"));
    match (said, port) {
        (Some(said), Some(port)) => Some(format!("{said}; {port}")),
        (said, port) => said.or(port),
    }
}

/// What is made by commands: `lo`'s further addresses, ifb, dummy.
fn others(link: &Link, cards: &Cards, made: &mut Made) {
    let name = link.name.as_str();
    let word = |words: &[&str]| -> Vec<String> { words.iter().map(|w| (*w).to_owned()).collect() };
    match link.kind.as_str() {
        "loopback" => {}
        "ifb" | "dummy" => {
            made.run(&word(&["ip", "link", "add", "name", name, "type", &link.kind]));
            if let Some(mtu) = link.mtu.filter(|m| *m != 1500) {
                made.run(&word(&["ip", "link", "set", "dev", name, "mtu", &mtu.to_string()]));
            }
            let default = if link.kind == "ifb" { 32 } else { 1000 };
            if let Some(len) = link.qlen.filter(|&n| n != default) {
                made.run(&word(&["ip", "link", "set", "dev", name, "txqueuelen", &len.to_string()]));
            }
            if link.up() {
                made.run(&word(&["ip", "link", "set", "dev", name, "up"]));
            }
        }
        _ if is_idle_tunnel(link) => {
            made.note(format!("{name} is a tunnel that is down and has no address: left out"));
            return;
        }
        _ => return,
    }
    for address in link.addresses.iter().filter(|a| !a.is_own(link)) {
        if cards.taken.contains(&address.local) {
            made.note(format!("{name}: {} is an address of another device too", address.local));
        }
        let mut words = word(&["ip", "addr", "add"]);
        words.extend(address.words(name));
        made.run(&words);
    }
}

/// `sysctl` of what packets depend on.
fn settings(found: &Found, made: &mut Made) {
    for (name, value) in &found.settings {
        if name == "net.ipv4.tcp_congestion_control" && !penstock_tcp::cc::names().contains(&value.as_str()) {
            made.note(format!("{name} = {value}: not simulated; the profile's own here"));
            continue;
        }
        made.run(&["sysctl", "-q", "-w", &format!("{name}={value}")].map(str::to_owned));
    }
}

/// Qdiscs, classes, filters and actions.
fn queues(found: &Found, made: &mut Made) {
    defaults(found, made);
    for shown in &found.qdiscs {
        // A parent's classes come before what hangs on them.
        if let [word, parent] = shown.place.as_slice()
            && word == "parent"
        {
            let of =
                |c: &&super::Shown| c.dev == shown.dev && super::major(&c.handle) == super::major(parent);
            found.classes.iter().filter(of).for_each(|c| words::class(c, made));
        }
        words::qdisc(shown, made);
    }
    for shown in &found.classes {
        words::class(shown, made);
    }
    words::compare(made);
    for text in &found.actions {
        filters::actions(text, made);
    }
    for (dev, text) in &found.chains {
        filters::chains(dev, text, made);
    }
    for (dev, text) in &found.filters {
        filters::filters(dev, text, made);
    }
}

/// The qdisc a device has had from the start where that is not the one a card has here (`net.core.default_qdisc`), once for a card with
/// several queues.
fn defaults(found: &Found, made: &mut Made) {
    const HANDLE: &str = "9999:";
    for root in found.qdiscs.iter().filter(|q| q.handle == "0:" && q.place == ["root"]) {
        let below = |q: &&super::Shown| {
            q.dev == root.dev && q.handle == "0:" && q.place.first().is_some_and(|w| w == "parent")
        };
        let several = matches!(root.kind.as_str(), "mq" | "mqprio");
        let queue = match several {
            true => found.qdiscs.iter().find(below).map(|q| (q, found.qdiscs.iter().filter(below).count())),
            false => Some((root, 1)),
        };
        let Some((queue, count)) = queue else { continue };
        if matches!(queue.kind.as_str(), "pfifo_fast" | "noqueue" | "noop" | "mq")
            || made.host.ifindex(&root.dev).is_none()
        {
            continue;
        }
        let mut shown = queue.clone();
        (shown.handle, shown.place) = (HANDLE.to_owned(), vec!["root".to_owned()]);
        let before = made.import.commands.len();
        words::qdisc(&shown, made);
        // The kernel numbers it, as it did there.
        for command in &mut made.import.commands[before..] {
            *command = command.replace(&format!(" handle {HANDLE}"), "");
        }
        if count > 1 {
            made.note(format!(
                "{}: {} gives each of {count} queues a {}: one here",
                root.dev, root.kind, queue.kind
            ));
        }
    }
}

/// The commands that a machine with these cards carries out, and that do to packets what they say; the others are noted.
fn tried(cards: &Cards, kernel: Kernel, made: &mut Made) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut host = cards.host(kernel);
    for command in std::mem::take(&mut made.import.commands) {
        let output = run(&mut host, &command);
        let first = command.lines().next().unwrap_or_default().to_owned();
        if output.status != 0 {
            made.note(format!("left out: {first}: {}", output.stderr.lines().next().unwrap_or_default()));
            continue;
        }
        let doubts: Vec<String> = host.unsimulated_devices().into_iter().chain(host.unsimulated()).collect();
        if doubts.is_empty() {
            kept.push(command);
            continue;
        }
        made.note(format!(
            "left out: {first}: {}",
            doubts[0].trim_start_matches("import: ").trim_start_matches("import ")
        ));
        host = cards.host(kernel);
        for command in &kept {
            run(&mut host, command);
        }
    }
    kept
}

/// Carries out one command, with a here-document or without.
pub(super) fn run(host: &mut Host, command: &str) -> penstock_host::Output {
    match command.split_once(" <<'END'\n") {
        Some((program, text)) => {
            let text = text.strip_suffix("\nEND").unwrap_or(text);
            let words: Vec<String> = program.split(' ').map(str::to_owned).collect();
            host.command(&words, &mut Stdin(text), Time::ZERO)
        }
        None => match penstock_lang::token::words(command) {
            Ok(words) => {
                let words: Vec<String> = words.into_iter().map(|w| w.text).collect();
                host.command(&words, &mut NoFiles, Time::ZERO)
            }
            Err(_) => host.command(
                &Line::of_words(&[]).words.iter().map(|w| w.text.clone()).collect::<Vec<_>>(),
                &mut NoFiles,
                Time::ZERO,
            ),
        },
    }
}

/// A text on standard input.
pub(super) struct Stdin<'a>(pub(super) &'a str);

impl penstock_host::Files for Stdin<'_> {
    fn read(&mut self, path: &str) -> Result<String, penstock_host::FileError> {
        match path {
            "-" => Ok(self.0.to_owned()),
            _ => Err(penstock_host::FileError::NotFound),
        }
    }
}
