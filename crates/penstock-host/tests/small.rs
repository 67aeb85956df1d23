//! The smaller tools as real ones answer random commands: neighbours, groups, labels and settings, sets, connections (`vectors/small/tables.jsonl`, made by
//! `vectors/small/tables.py`).

use penstock_host::{Host, NoFiles};
use penstock_model::{Kernel, Time};
use serde_json::Value;

/// Puts `with` for the number behind each `word`.
fn without_number(text: &str, word: &str, with: &str) -> String {
    let mut parts = text.split(word);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += word;
        out += with;
        out += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out
}

/// Time goes by in the recorder's kernel: what is left of 100000 s is 100000 s.
fn without_time(text: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        out += match digits.len() {
            5 if digits.as_str() >= "99900" => "100000",
            // The longest time that ipset takes.
            7 if (2_147_380..2_147_483).contains(&digits.parse().unwrap_or(0)) => "2147482",
            _ => &digits,
        };
        digits.clear();
        out.push(c);
    }
    out.pop();
    out
}

/// Lists that Linux has in the order of a hash which begins elsewhere each time.
fn sorted(text: &str) -> String {
    if let Ok(Value::Array(mut all)) = serde_json::from_str(text) {
        all.sort_by_key(Value::to_string);
        return Value::Array(all).to_string();
    }
    let text = text.replace("<flow>", "\n<flow>").replace("</conntrack>", "\n</conntrack>");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Without the neighbours that reports of groups and questions for routers leave behind.
fn without_groups(text: &str) -> String {
    let left =
        |text: &str| text.contains("ff02::16") || text.contains("ff02::2 ") || text.contains("\"ff02::2\"");
    if let Ok(Value::Array(mut all)) = serde_json::from_str(text) {
        all.retain(|entry| !left(&entry.to_string()));
        return Value::Array(all).to_string();
    }
    text.lines().filter(|line| !left(line)).collect::<Vec<_>>().join("\n")
}

fn plain(line: &str, text: &str) -> String {
    // The texts of usage are our own.
    let usage = ["Usage: ", "Usage:\t", "Command line interface for"].iter().any(|u| text.starts_with(u));
    let text = if usage { "Usage" } else { text };
    let words: Vec<&str> = line.split(' ').collect();
    match words[0] {
        "ip" if words.contains(&"ntable") => {
            let text = text.replace("base_reachable", "base");
            let words =
                ["reachable ", "\"reachable\":", "\"reachable\": ", "refcnt ", "\"refcnt\":", "\"refcnt\": "];
            words.iter().fold(text, |text, word| without_number(&text, word, ""))
        }
        "ip" if words.contains(&"neigh") => sorted(&without_groups(text)),
        "ip" if words.contains(&"addr") => {
            // 6.1 gives no sentences.
            let text =
                text.replace("Error: ipv4: Address already assigned.", "RTNETLINK answers: File exists");
            let text =
                text.replace("Error: ipv6: address already assigned.", "RTNETLINK answers: File exists");
            let text = text.replace(
                "Error: ipv4: Address not found.",
                "RTNETLINK answers: Cannot assign requested address",
            );
            let off = if line.contains(" del ") { "No such device or address" } else { "Permission denied" };
            let text = text.replace(
                "Error: ipv6: IPv6 is disabled on this device.",
                &format!("RTNETLINK answers: {off}"),
            );
            text.replace(
                "Error: ipv6: address not found.",
                "RTNETLINK answers: Cannot assign requested address",
            )
        }
        "cat" if line.ends_with("igmp6") => {
            text.lines().map(|l| l.get(..58).unwrap_or(l)).collect::<Vec<_>>().join("\n")
        }
        "cat" if line.ends_with("igmp") => {
            text.lines().map(|l| l.split(':').next().unwrap_or(l)).collect::<Vec<_>>().join("\n")
        }
        "conntrack" | "cat" if !line.ends_with("dev_mcast") => {
            // Numbers are drawn; the longest time hangs on the length of a tick, which is 10 ms there.
            let text = without_time(text).replace("21474836", "8589934");
            sorted(&without_number(&without_number(&text, " id=", ""), "<id>", ""))
        }
        "ss" => match text.find("Usage:") {
            Some(at) => text[..at].to_owned() + "Usage:",
            None => text.to_owned(),
        },
        "ipset" => {
            // Revisions are those of 6.1, sizes hang on the kernel's configuration.
            let words = ["Size in memory: ", "<memsize>", "Revision: ", "<revision>"];
            words.iter().fold(without_time(text), |text, word| without_number(&text, word, ""))
        }
        _ => text.to_owned(),
    }
}

/// Commands at which the two go apart, and why: by the seed and the step. The list may only shrink.
const APART: &[(&str, &[(u64, usize)])] = &[
    (
        "a device without a carrier makes itself a link-local address, which Linux does when there is one",
        &[
            (105, 46),
            (105, 47),
            (105, 48),
            (105, 50),
            (110, 34),
            (110, 42),
            (110, 44),
            (110, 51),
            (110, 52),
            (110, 53),
            (110, 54),
            (110, 56),
        ],
    ),
    (
        "what `default` says of IPv4 is also said of devices without an address (devinet_copy_dflt_conf)",
        &[(203, 46), (207, 32), (207, 52), (207, 59), (211, 50), (211, 52), (211, 54), (211, 59)],
    ),
    ("`ignore_routes_with_linkdown` of `all` of IPv6 is said of each device", &[(204, 50)]),
    ("where a device stands in `ip ntable` that IPv6 has left and come back to", &[(210, 55), (212, 52)]),
    ("80 is the address 0.0.0.80", &[(301, 39)]),
    ("which of two refusals of ipset comes first", &[(308, 24), (309, 15)]),
    (
        "an errno that has no name, and an empty hardware address that may be asked for, on 6.1",
        &[(309, 9), (309, 29), (310, 11)],
    ),
    ("`ss -N` looks for its namespace before the filter is read", &[(507, 14), (507, 22)]),
];

fn play(case: &Value) -> Result<(usize, Vec<(usize, String)>), String> {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    host.exec("ip link set lo down", Time::ZERO);
    host.exec("ip addr del 127.0.0.1/8 dev lo", Time::ZERO);
    // It makes addresses of IPv6 of its own from the beginning.
    host.look_for_routers(Time::ZERO);
    let steps = case["steps"].as_array().ok_or("no steps")?;
    let (mut apart, mut refused) = (Vec::new(), 0);
    for (n, step) in steps.iter().enumerate() {
        let line = step["run"].as_str().ok_or("no command")?;
        // The recorder of connections has a clock that stands still.
        let now = if case["seed"].as_u64() > Some(400) { 0 } else { n as i64 * 1_000_000 };
        let now = Time::from_ns(now);
        // Brackets of `ss` are for it, not for a shell.
        let done = match line.starts_with("ss ") {
            true => {
                let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
                host.command(&words, &mut NoFiles, now)
            }
            false => host.exec(line, now),
        };
        // What is refused by name is not compared.
        if done.unsimulated().is_some() {
            refused += 1;
            continue;
        }
        let text = |name: &str| step[name].as_str().unwrap_or_default();
        let ours = (plain(line, &done.stdout), plain(line, &done.stderr), i64::from(done.status));
        let theirs =
            (plain(line, text("out")), plain(line, text("err")), step["status"].as_i64().ok_or("no status")?);
        if ours != theirs {
            apart.push((n, format!("{line}\nours {ours:#?}\ntheirs {theirs:#?}")));
        }
    }
    Ok((steps.len() - refused, apart))
}

#[test]
fn the_smaller_tools_answer_as_real_ones_do() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/small/tables.jsonl");
    let path = std::env::var("PENSTOCK_SMALL_FILE").unwrap_or_else(|_| path.to_owned());
    let text = std::fs::read_to_string(path).expect("the recorded cases");
    let wanted: Option<u64> = std::env::var("PENSTOCK_SMALL").ok().and_then(|n| n.parse().ok());
    let (mut cases, mut steps, mut wrong) = (0, 0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        let seed = case["seed"].as_u64().unwrap_or(0);
        if wanted.is_some_and(|wanted| seed != wanted) {
            continue;
        }
        cases += 1;
        let known = |at: usize| APART.iter().any(|(_, places)| places.contains(&(seed, at)));
        let (count, apart) = play(&case).expect("a case");
        steps += count;
        for (at, why) in apart.iter().filter(|(at, _)| !known(*at)) {
            wrong.push(format!("seed {seed}, step {at}: {why}"));
        }
        for &(_, at) in APART.iter().flat_map(|(_, places)| *places).filter(|(of, _)| *of == seed) {
            if apart.iter().all(|(n, _)| *n != at) {
                wrong.push(format!("seed {seed}, step {at} is alike now: take it off the list"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {steps} steps of {cases} cases\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(wanted.is_some() || cases >= 70 && steps > 3500, "{cases} {steps}");
}
