//! Pages that are made from the code: `docs/programs.md` and `docs/limits.md`. `PENSTOCK_BLESS=1` writes them.

use penstock_host::Host;
use penstock_lab::experiment::{CALLS, NOT_HERE, TESTS};
use penstock_model::{Kernel, Time};
use std::fmt::Write as _;
use std::path::Path;

fn same(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("PENSTOCK_BLESS").is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "docs/{name} is not what the code says: PENSTOCK_BLESS=1 cargo test -p penstock-lab pages::"
    );
}

/// Words in lines of at most so many letters.
fn filled(text: &mut String, indent: &str, words: impl IntoIterator<Item = String>) {
    let mut line = String::from(indent);
    for word in words {
        if line.len() + word.len() > 150 && line.trim() != "" {
            writeln!(text, "{}", line.trim_end()).unwrap();
            line = indent.to_owned();
        }
        line.push_str(&word);
        line.push(' ');
    }
    writeln!(text, "{}", line.trim_end()).unwrap();
}

/// An entry of a list: what, and below it what is said of it.
fn entry(text: &mut String, what: &str, said: &str) {
    // A word of many letters, so that code is not broken.
    let words: Vec<String> =
        if what.len() > 150 { what.split("; ").map(str::to_owned).collect() } else { vec![what.to_owned()] };
    let last = words.len() - 1;
    let words = words.into_iter().enumerate().map(|(n, w)| if n < last { format!("{w};") } else { w });
    let mut lines = String::new();
    filled(&mut lines, "", words);
    let mut lines = lines.lines();
    writeln!(text, "- {}", lines.next().unwrap_or_default()).unwrap();
    lines.for_each(|l| writeln!(text, "  {l}").unwrap());
    filled(text, "  ", said.split(' ').map(str::to_owned));
}

#[test]
fn programs_and_their_options() {
    let mut text = String::from(
        "# Programs\n\nWhat an [`[[app]]`](experiment-file.md#app) and a script may run on the ground `sim`, and which of their options are here. On `kernel` and `virtual` the\n\
         programs are those installed there. A test makes this page from the code.\n\n\
         An option of the real program that is not here is refused before the run, by name, with what to write instead; one that nobody knows is refused in the program's own words.\n\n",
    );
    for program in penstock_sim::programs() {
        writeln!(text, "## {}\n\n{}.\n", program.names.join(", "), program.about).unwrap();
        let option =
            |(written, value): &(String, bool)| format!("`{written}{}`", if *value { " …" } else { "" });
        filled(&mut text, "", program.options.iter().map(option));
        if !program.not_here.is_empty() {
            text.push_str("\n| known, not simulated | instead |\n|---|---|\n");
            for (written, why) in program.not_here {
                let each: Vec<String> = written.split(' ').map(|w| format!("`{w}`")).collect();
                writeln!(text, "| {} | {why} |", each.join(" ")).unwrap();
            }
        }
        text.push('\n');
    }
    text.push_str(
        "iperf3 is that of Debian 13, 3.18: text, JSON (`-J`) and the line-by-line JSON (`--json-stream`) were recorded from it\n\
         (`vectors/iperf3`) and are the same to the byte for the same numbers. \
         CPU use is told as zero, and the system as `Linux`. `-Z`, `-A`, `--forceflush` and `-D` change no packet, and `-V` and `-T`\n\
         nothing that is printed. `--logfile` in a script writes that file; of an `[[app]]` the log is what stands in apps/.\n\
         A datagram without `-l` has 8 KB, as 3.1 had it; with `run --modern` it is as long as a segment, as today.\n\n\
         iperf 2 is 2.0.5 where a host does not say otherwise. With `iperf = \"2.2\"` it is 2.2.1: heads, rows, sums, `-e` and `-y C` were recorded from it\n\
         (`vectors/iperf2`) and are the same to the byte for the same numbers. With \"2.1\" transfers end as in 2.1.8, in the form of 2.0.5.\n\n\
         ## flent\n\nTests that [`[[test]]`](experiment-file.md#test) makes, by flent's names (2.3.0):\n\n",
    );
    filled(&mut text, "", TESTS.into_iter().chain(CALLS).map(|t| format!("`{t}`")));
    text.push_str("\nNot here:\n\n");
    for (names, why) in NOT_HERE {
        let names = names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" ");
        entry(&mut text, &names, why);
    }
    same("programs.md", &text);
}

/// A row of a table, or several of one sentence where its keys are too many for a line.
fn row(text: &mut String, keys: &[String], what: &str) {
    let mut line = String::new();
    for key in keys {
        if !line.is_empty() && line.chars().count() + key.chars().count() + what.chars().count() > 180 {
            writeln!(text, "| {line} | {what} |").unwrap();
            line.clear();
        }
        line += if line.is_empty() { "" } else { ", " };
        line += key;
    }
    writeln!(text, "| {line} | {what} |").unwrap();
}

/// What a machine says after these commands of what it does not do to packets.
fn said(commands: &str) -> Vec<String> {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    for name in ["eth0", "eth1"] {
        let ifindex = host.add_device(name);
        let address = if name == "eth0" { "10.0.0.1/24" } else { "10.0.1.1/24" };
        host.exec(&format!("ip addr add {address} dev {name}"), Time::ZERO);
        host.exec(&format!("ip link set {name} up"), Time::ZERO);
        assert!(ifindex > 0);
    }
    let mut failed = Vec::new();
    for command in commands.split("; ") {
        let output = host.exec(command, Time::ZERO);
        if output.status != 0 {
            let first =
                output.stderr.lines().find(|l| !l.trim().is_empty()).unwrap_or("refused").trim().to_owned();
            failed.push(first);
            break;
        }
    }
    let found = host.unsimulated_devices().into_iter().chain(host.unsimulated());
    let plain = |s: String| s.strip_prefix("r: ").or(s.strip_prefix("r ")).map_or(s.clone(), str::to_owned);
    failed.into_iter().chain(found.map(plain)).collect()
}

/// Set-ups that people have, tried one by one.
const TRIED: [(&str, &[&str]); 3] = [
    (
        "Devices",
        &[
            "ethtool -K eth0 tso on gro on",
            "ip link add bond0 type bond mode 802.3ad; ip link set bond0 up",
            "ip link add mac0 link eth0 type macvlan mode source; ip link set mac0 up",
            "ip link add vx0 type vxlan id 7 group 239.1.1.1 dev eth0 dstport 4789; ip link set vx0 up",
            "ip link add vx0 type vxlan id 7 dstport 4789 external; ip link set vx0 up",
            "ip link add red type vrf table 10; ip link set eth1 master red; ip -6 addr add fd00::1/64 dev eth1",
            "ip link add gre1 type gre local 10.0.0.1; ip link set gre1 up",
            "ip tunnel add sit1 mode sit local 10.0.0.1; ip link set sit1 up",
            "ip link add gre2 type gre external",
            "ip link add br0 type bridge mcast_querier 1; ip link set eth0 master br0; ip link set br0 up",
        ],
    ),
    (
        "Rules",
        &[
            "iptables -A FORWARD -m string --string x --algo bm -j DROP",
            "iptables -A FORWARD -j NFQUEUE --queue-num 1",
            "iptables -A FORWARD -m devgroup --src-group 1 -j DROP",
            "iptables -A FORWARD -j TEE --gateway 10.0.0.9",
            "nft add table inet t; nft add flowtable inet t f",
            "nft add table inet t; nft add map inet t m { type ipv4_addr : counter }",
            "iptables -t nat -A POSTROUTING -o eth1 -j NETMAP --to 192.0.2.0/24",
            "ipset create s hash:ip; iptables -t mangle -A POSTROUTING -j SET --map-set s dst --map-queue",
        ],
    ),
    (
        "Routes",
        &[
            "ip rule add fwmark 1 lookup 100",
            "ip route add 192.0.2.0/24 nexthop via 10.0.0.2 nexthop via 10.0.1.2",
            "ip route add 192.0.2.0/24 encap mpls 100 via 10.0.0.2",
            "ip -6 route add 2001:db8::/64 encap seg6 mode encap segs 2001:db8::1 dev eth0",
        ],
    ),
];

/// Congestion controls of Linux 6.12.
const CONTROLS: [&str; 17] = [
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

#[test]
fn what_packets_cannot_do_yet() {
    let mut text = String::from(
        "# What packets cannot do yet\n\nWhat the ground `sim` does not do to packets, made from the code by a test. All of it is refused before the run, in these words;\n\
         where something can be set up and shown all the same, the tools on the [virtual machine](verbs/tc.md) take it. Linux itself (`--on kernel`, `--on virtual`) does all of it.\n\n## Queueing\n\n\
         These can be set up, changed and shown, with their checks and messages; packets do not go through them:\n\n",
    );
    let qdiscs = penstock_sched::sch::KINDS.iter().filter(|k| !k.simulated).map(|k| k.id);
    let filters = penstock_sched::cls::KINDS.iter().filter(|k| !k.simulated).map(|k| k.id);
    let actions = penstock_sched::act::KINDS.iter().filter(|k| !k.simulated).map(|k| k.id);
    let list = |names: &mut dyn Iterator<Item = &str>| {
        names.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
    };
    for (what, mut names) in [
        ("qdiscs", Box::new(qdiscs) as Box<dyn Iterator<Item = &str>>),
        ("filters", Box::new(filters)),
        ("actions", Box::new(actions)),
    ] {
        let names = list(&mut *names);
        writeln!(text, "- {what}: {}", if names.is_empty() { "none" } else { &names }).unwrap();
    }
    for (title, tried) in TRIED {
        writeln!(text, "\n## {title}\n").unwrap();
        for commands in tried {
            let answers = said(commands);
            // What has come to be simulated leaves the page.
            if !answers.is_empty() {
                entry(&mut text, &format!("`{commands}`"), &answers.join("; "));
            }
        }
    }
    // By what to do instead, in the order of the first.
    text.push_str("\n## Commands\n\nRefused by name:\n\n| command | instead |\n|---|---|\n");
    let programs = penstock_shell::not_here().iter().map(|(name, instead)| ((*name).to_owned(), *instead));
    let mut instead: Vec<(&str, Vec<String>)> = Vec::new();
    for (command, what) in penstock_host::not_here().into_iter().chain(programs) {
        match instead.iter_mut().find(|row| row.0 == what) {
            Some(row) => row.1.push(format!("`{command}`")),
            None => instead.push((what, vec![format!("`{command}`")])),
        }
    }
    instead.iter().for_each(|(what, commands)| row(&mut text, commands, what));
    let helpers: Vec<String> =
        penstock_sched::ebpf::missing_helpers().map(|name| format!("`{name}`")).collect();
    text.push_str("\n## eBPF\n\nHelpers that programs for tc may call on Linux and not here ([what programs may do](kinds/bpf.md#objects)):\n\n");
    filled(&mut text, "", helpers);
    text.push_str(
        "\n## Settings\n\nKeys of `sysctl` that are kept and shown. A value that they do not begin with is refused before the run where on Linux something follows from it:\n\n\
         | key | whatever its value |\n|---|---|\n",
    );
    // A row for each sentence.
    let rows = |text: &mut String, followed: bool| {
        let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
        for (key, _, what) in penstock_host::unfollowed_settings().filter(|s| s.1 == followed) {
            let key = format!("`{key}`");
            match rows.iter_mut().find(|r| r.0 == what) {
                Some(row) => row.1.push(key),
                None => rows.push((what, vec![key])),
            }
        }
        rows.iter().for_each(|(what, keys)| row(text, keys, what));
    };
    rows(&mut text, true);
    text.push_str("\nFrom these nothing could follow here:\n\n| key | why |\n|---|---|\n");
    rows(&mut text, false);
    let known = penstock_tcp::cc::names();
    let missing: Vec<String> =
        CONTROLS.iter().filter(|c| !known.contains(*c)).map(|c| format!("`{c}`")).collect();
    assert!(
        missing.is_empty(),
        "congestion controls of Linux 6.12 that are not here: {}",
        missing.join(", ")
    );
    let old = ["bic", "highspeed", "htcp", "hybla", "illinois", "lp", "scalable", "veno", "yeah"];
    let there = penstock_tcp::cc::names_of(Kernel::V2_6_35);
    let missing = old.iter().filter(|c| !there.contains(*c)).map(|c| format!("`{c}`"));
    writeln!(
        text,
        "\n## TCP\n\nCongestion controls of Linux 2.6.35 that are not in its profile, which has them otherwise than 6.12: {}.",
        missing.collect::<Vec<_>>().join(", ")
    )
    .unwrap();
    text.push_str(
        "There is no MPTCP, no SCTP, no QUIC.\n\n\
         ## Elsewhere\n\n\
         - [Programs](programs.md) and their options.\n\
         - [IPv6](experiment-file.md#ipv6): privacy addresses, redirects, multicast listeners, extension headers other than that of [fragments](ipv6.md).\n\
         - [Scripts](notes/shell-limits.md): how far the interpreter goes.\n\
         - [Conformance](conformance.md): what is compared with a real Linux, and what differs.\n",
    );
    same("limits.md", &text);
}
