//! The same script means the same on every ground: what real bash and the real tools on Linux 6.12 made of setups and whole scripts
//! (`vectors/grounds`, recorded by `cargo xtask grounds`), and what ours makes of them. Exit status, both outputs and the state they leave
//! are equal, but for the cases of `differences.txt`.
//!
//! `PENSTOCK_GROUNDS=NAME,NAME` tries these alone and shows every difference.

use penstock_host::Host;
use penstock_model::{Kernel, Time};
use penstock_shell::{At, Kept, Running, Script};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/grounds")
}

fn text(name: &str) -> String {
    let path = folder().join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn recorded() -> Vec<Value> {
    text("recorded.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// Files that stand beside every script.
fn beside() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder().join("beside")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        files.push((format!("/root/{name}"), fs::read_to_string(&path).unwrap()));
    }
    files.sort();
    files
}

/// The machine that the recorder makes.
fn machine(auto: u64) -> Host {
    let mut host = Host::new("penstock", Kernel::V6_12, 1);
    for (dev, address) in [("eth0", "10.0.0.1/24"), ("eth1", "192.168.1.1/24")] {
        host.add_device(dev);
        let mac = dev.replace("eth0", "01").replace("eth1", "02");
        for line in [
            format!("ip link set {dev} address 02:00:00:00:00:{mac}"),
            format!("ip addr add {address} brd + dev {dev}"),
            // The recorder's machine has no IPv6 of its own accord.
            format!("ip link set {dev} addrgenmode none"),
            "sysctl -q -w net.ipv6.conf.lo.disable_ipv6=1".to_owned(),
        ] {
            let out = host.exec(&line, Time::ZERO);
            assert_eq!((out.status, out.stderr.as_str()), (0, ""), "{line}");
        }
    }
    assert_eq!(host.exec("ip route add default via 10.0.0.254", Time::ZERO).status, 0);
    host.set_auto_handle((auto as u32) << 16);
    host
}

fn settings(host: &mut Host) -> BTreeMap<String, String> {
    let shown = host.exec("sysctl -a", Time::ZERO).stdout;
    shown
        .lines()
        .filter_map(|l| l.split_once(" = "))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Without comments and what the kernel throws: card addresses that nobody gave.
fn fixed(shown: &str) -> String {
    // The recorder's kernel has one table of IPv6, where the routes of addresses and of multicast stand too.
    let table = ["#", "multicast ff00::/8 ", "local ", "anycast "];
    let kept = |l: &&str| {
        !table.iter().any(|t| l.starts_with(t) && (*t != "local " || l.contains(" metric 0 pref ")))
    };
    let mut lines: Vec<String> =
        shown.trim_end().lines().filter(kept).map(|l| l.trim_end().to_owned()).collect();
    let mut thrown = Vec::new();
    for line in &lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["link/ether", mac, ..] = words.as_slice()
            && !mac.starts_with("02:00:00:00:00:0")
        {
            thrown.push((*mac).to_owned());
        }
    }
    for (n, mac) in thrown.iter().enumerate() {
        let byte: Vec<u8> = mac.split(':').map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
        let pair = |a: u8, b: u8| format!("{:x}", u16::from(a) << 8 | u16::from(b));
        let local = format!(
            "fe80::{}:{}:{}:{}",
            pair(byte[0] ^ 2, byte[1]),
            pair(byte[2], 0xff),
            pair(0xfe, byte[3]),
            pair(byte[4], byte[5])
        );
        for line in &mut lines {
            *line = line.replace(mac, &format!("thrown-{n}")).replace(&local, &format!("local-{n}"));
        }
    }
    lines.join("\n")
}

/// What differs between a recorded case and ours, in words; empty where nothing does.
fn differences(case: &Value, base: &Value, beside: &[(String, String)]) -> String {
    let name = case["name"].as_str().unwrap();
    let mut host = machine(case["auto"].as_u64().unwrap());
    let before = settings(&mut host);
    let script = Script {
        text: case["text"].as_str().unwrap().to_owned(),
        name: name.to_owned(),
        files: beside.to_vec(),
        ..Script::default()
    };
    let mut kept = Kept::default();
    let done = Running::new(&script)
        .and_then(|mut script| script.body(&mut At { host: &mut host, now: Time::ZERO }, &mut kept));
    let mut said = String::new();
    let mut hold = |what: &str, real: &str, ours: &str| {
        let (real, ours) = (fixed(real), fixed(ours));
        if real != ours {
            let indented = |text: &str| text.replace('\n', "\n        ");
            writeln!(said, "  {what}\n    real: {}\n    ours: {}", indented(&real), indented(&ours)).unwrap();
        }
    };
    let status = match &done {
        Ok((status, _)) => status.to_string(),
        Err(why) => why.clone(),
    };
    hold("exit", &case["exit"].to_string(), &status);
    hold("stdout", case["stdout"].as_str().unwrap(), &kept.stdout);
    hold("stderr", case["stderr"].as_str().unwrap(), &kept.stderr);
    let mut state = base.as_object().unwrap().clone();
    state.extend(case["state"].as_object().unwrap().clone());
    // A device that is gone has nothing to show.
    state.retain(|_, shown| !shown.is_null());
    for (command, real) in state.iter().filter(|(command, _)| *command != "sysctl -a") {
        let out = host.exec(command, Time::ZERO);
        hold(command, real.as_str().unwrap(), &(out.stdout + &out.stderr));
    }
    let changed: Vec<String> = settings(&mut host)
        .into_iter()
        .filter(|(key, value)| before.get(key).is_some_and(|b| b != value))
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    let known = |line: &&str| line.split_once(" = ").is_some_and(|(key, _)| before.contains_key(key));
    let real: Vec<&str> = state["sysctl -a"].as_str().unwrap().lines().filter(known).collect();
    hold("sysctl -a", &real.join("\n"), &changed.join("\n"));
    said
}

#[test]
fn scripts_mean_the_same_on_every_ground() {
    let listed: BTreeMap<String, String> = text("differences.txt")
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(|l| l.split_once(": ").map(|(name, why)| (name.to_owned(), why.to_owned())).unwrap())
        .collect();
    let cases = recorded();
    let base = &cases.iter().find(|c| c["name"] == "nothing").unwrap()["state"];
    let beside = beside();
    let chosen = std::env::var("PENSTOCK_GROUNDS").unwrap_or_default();
    let (mut faults, mut agreeing) = (Vec::new(), 0);
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        if !chosen.is_empty() && !chosen.split(',').any(|c| c == name || c == "all") {
            continue;
        }
        let said = differences(case, base, &beside);
        if !chosen.is_empty() {
            println!("{name}: {}\n{said}", if said.is_empty() { "agrees" } else { "differs" });
        }
        match (said.is_empty(), listed.contains_key(name)) {
            (true, false) => agreeing += 1,
            (false, true) => {}
            (true, true) => faults.push(format!("{name} agrees: take it off the list")),
            (false, false) => faults.push(format!("{name}\n{said}")),
        }
    }
    let shown = faults.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(faults.is_empty(), "{} differ, {agreeing} agree\n{shown}", faults.len());
    let named = |name: &String| cases.iter().any(|c| c["name"] == name.as_str());
    assert!(listed.keys().all(named), "the list has a case that nobody recorded");
}

#[test]
fn what_is_recorded_is_what_stands_in_the_files() {
    let mut standing: BTreeMap<String, String> = BTreeMap::from([("nothing".to_owned(), String::new())]);
    for case in format!("\n{}", text("lines.txt")).split("\n== ").skip(1) {
        let (name, lines) = case.split_once('\n').unwrap();
        standing.insert(name.to_owned(), format!("{}\n", lines.trim_end_matches('\n')));
    }
    let lines = standing.len() - 1;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "sh") {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            standing.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
    let whole = standing.len() - 1 - lines;
    let recorded: BTreeMap<String, String> = recorded()
        .iter()
        .map(|c| (c["name"].as_str().unwrap().to_owned(), c["text"].as_str().unwrap().to_owned()))
        .collect();
    assert!(recorded == standing, "record anew: cargo xtask grounds");
    assert!(lines >= 150 && whole >= 30, "{lines} setups and {whole} scripts");
}
