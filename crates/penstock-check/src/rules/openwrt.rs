//! PS320 to PS326: the configuration of sqm-scripts and qosmate.

use crate::facts::Facts;
use crate::finding::{Found, Level, Rule, Say};
use crate::uci::{Entry, Package, Section};

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS320",
        "sqm: the script does not go with the queue discipline",
        "`piece_of_cake.qos` and `layer_cake.qos` put cake where the shaper is, whatever `qdisc` says; the others build HTB or tbf with `qdisc` in the leaves, where cake \
         without a bandwidth manages no line. https://openwrt.org/docs/guide-user/network/traffic-shaping/sqm-details, https://github.com/tohojo/sqm-scripts.",
        script,
    ),
    Rule::warning(
        "PS321",
        "a rate that is not kbit/s",
        "sqm-scripts and qosmate write `kbit` behind the number. A unit in the option makes a word that tc refuses, and the rate in megabits makes a line a thousand times \
         too slow. https://github.com/tohojo/sqm-scripts.",
        rates,
    ),
    Rule::note(
        "PS322",
        "sqm: one direction is not shaped",
        "A rate of 0 switches the shaper of that direction off. https://openwrt.org/docs/guide-user/network/traffic-shaping/sqm-details.",
        unshaped,
    ),
    Rule::warning(
        "PS323",
        "sqm: overhead without a link layer",
        "With `linklayer none` sqm-scripts leave overhead out (`get_stab_string`, `get_cake_lla_string`): every packet is longer on the line than is counted. Say \
         `ethernet` or `atm`. https://github.com/tohojo/sqm-scripts.",
        linklayer,
    ),
    Rule::warning(
        "PS324",
        "sqm: two queues for one interface",
        "The second is not started: its state file is there already (`start_sqm_section` of run-openwrt.sh). https://github.com/tohojo/sqm-scripts.",
        twice,
    ),
    Rule::warning(
        "PS325",
        "sqm: hosts are told apart on the wrong side",
        "`iqdisc_opts` is for what comes in, where your own hosts are destinations; `eqdisc_opts` for what goes out, where they are sources. With the two exchanged cake is \
         fair between servers. https://openwrt.org/docs/guide-user/network/traffic-shaping/sqm-details.",
        hosts,
    ),
    Rule::warning(
        "PS326",
        "an option that nobody reads",
        "A misspelled option is left out without a word, and its default holds. sqm-scripts read those of `start_sqm_section` (run-openwrt.sh): \
         https://github.com/tohojo/sqm-scripts.",
        unread,
    ),
];

/// Sections of sqm that are switched on.
fn queues(facts: &Facts) -> impl Iterator<Item = &Section> {
    let uci = facts.uci.iter().filter(|u| u.package == Package::Sqm);
    uci.flat_map(|u| &u.sections).filter(|s| s.kind == "queue" && s.enabled())
}

/// Says something of an option's value.
fn at(found: &mut Found, entry: &Entry, say: Say) {
    let len = entry.value.chars().count() as u32;
    found.at_line(entry.line, entry.column, len, say);
}

/// The option as it would be written.
fn option(name: &str, value: &str) -> String {
    format!("option {name} '{value}'")
}

fn script(facts: &Facts, found: &mut Found) {
    for section in queues(facts) {
        let Some(script) = section.get("script") else { continue };
        let qdisc = section.get("qdisc");
        let name = qdisc.map_or("fq_codel", |q| q.value.as_str());
        let for_cake = matches!(script.value.as_str(), "piece_of_cake.qos" | "layer_cake.qos");
        let known = matches!(script.value.as_str(), "simple.qos" | "simplest.qos" | "simplest_tbf.qos");
        if for_cake && !name.starts_with("cake") {
            let reason = format!("{} uses cake; qdisc is {name}.", script.value);
            at(
                found,
                qdisc.unwrap_or(script),
                Say::new(format!("{} needs cake", script.value), reason, option("qdisc", "cake")),
            );
        } else if known && name.starts_with("cake") {
            let reason = format!("{} shapes by itself and puts {name} into its leaves.", script.value);
            at(
                found,
                script,
                Say::new(
                    format!("{} does not go with {name}", script.value),
                    reason,
                    option("script", "piece_of_cake.qos"),
                ),
            );
        }
    }
}

/// Options that are rates.
fn rates_of(facts: &Facts) -> Vec<&Entry> {
    let mut all: Vec<&Entry> = queues(facts)
        .flat_map(|s| ["download", "upload"].into_iter().filter_map(move |n| s.get(n)))
        .collect();
    let qosmate = facts.uci.iter().filter(|u| u.package == Package::Qosmate);
    let settings = qosmate.flat_map(|u| &u.sections).filter(|s| s.kind == "settings");
    all.extend(settings.flat_map(|s| ["DOWNRATE", "UPRATE"].into_iter().filter_map(move |n| s.get(n))));
    all
}

fn rates(facts: &Facts, found: &mut Found) {
    for entry in rates_of(facts) {
        let value = entry.value.trim();
        match value.parse::<u64>() {
            Ok(n @ 1..1000) => {
                let reason = format!("{n} is {n} kbit/s; {n} Mbit/s are {}.", n * 1000);
                let fix = option(&entry.name, &(n * 1000).to_string());
                at(found, entry, Say::new(format!("{} {n} is less than 1 Mbit/s", entry.name), reason, fix));
            }
            Ok(_) => {}
            Err(_) => {
                let digits: String = value.chars().take_while(|c| c.is_ascii_digit()).collect();
                let unit = value[digits.len()..].trim().to_lowercase();
                let times = match unit.as_str() {
                    "kbit" | "k" | "kbps" | "kbit/s" => 1,
                    "mbit" | "m" | "mbps" | "mbit/s" => 1000,
                    "gbit" | "g" | "gbps" | "gbit/s" => 1_000_000,
                    _ => 0,
                };
                let fix = digits
                    .parse::<u64>()
                    .ok()
                    .filter(|_| times > 0)
                    .map_or(String::new(), |n| option(&entry.name, &(n * times).to_string()));
                let reason = format!("tc would get `{value}kbit`.");
                let say =
                    Say::new(format!("{} '{value}' is not a number of kbit/s", entry.name), reason, fix);
                at(found, entry, say.level(Level::Error));
            }
        }
    }
}

fn unshaped(facts: &Facts, found: &mut Found) {
    for section in queues(facts) {
        let zero = |name: &str| section.get(name).filter(|e| e.value == "0");
        for (name, what) in [("download", "incoming"), ("upload", "outgoing")] {
            if let Some(entry) = zero(name) {
                at(
                    found,
                    entry,
                    Say::new(format!("{what} traffic is not shaped"), format!("{name} is 0."), ""),
                );
            }
        }
    }
}

fn linklayer(facts: &Facts, found: &mut Found) {
    for section in queues(facts) {
        let layer = section.get("linklayer").map_or("none", |e| e.value.as_str());
        let Some(overhead) = section.get("overhead") else { continue };
        match overhead.value.parse::<i64>() {
            Ok(bytes) if bytes != 0 && layer == "none" => {
                let reason = format!("linklayer is none, so the {bytes} bytes are left out.");
                at(
                    found,
                    overhead,
                    Say::new("the overhead is not counted", reason, option("linklayer", "ethernet")),
                );
            }
            Ok(_) => {}
            Err(_) => {
                let reason = "It is a number of bytes.".to_owned();
                at(
                    found,
                    overhead,
                    Say::new(format!("overhead '{}' is not a number", overhead.value), reason, "")
                        .level(Level::Error),
                );
            }
        }
        if let Some(entry) = section.get("linklayer")
            && !matches!(layer, "none" | "ethernet" | "atm" | "adsl" | "cake")
        {
            let reason = "sqm-scripts know none, ethernet and atm (adsl).".to_owned();
            at(
                found,
                entry,
                Say::new(
                    format!("linklayer '{layer}' is not known"),
                    reason,
                    option("linklayer", "ethernet"),
                ),
            );
        }
    }
}

fn twice(facts: &Facts, found: &mut Found) {
    let mut known: Vec<&Entry> = Vec::new();
    for section in queues(facts) {
        let Some(interface) = section.get("interface") else {
            let say = Say::new("the queue has no interface", "sqm-scripts take eth0 then.", "");
            found.at_line(section.line, 1, 0, say);
            continue;
        };
        if let Some(first) = known.iter().find(|e| e.value == interface.value) {
            let reason = format!("Line {} has one for {} already.", first.line, first.value);
            at(
                found,
                interface,
                Say::new(format!("this queue of {} is not started", interface.value), reason, ""),
            );
        }
        known.push(interface);
    }
}

fn hosts(facts: &Facts, found: &mut Found) {
    for section in queues(facts) {
        for (name, wrong, right) in
            [("iqdisc_opts", "dual-srchost", "dual-dsthost"), ("eqdisc_opts", "dual-dsthost", "dual-srchost")]
        {
            if let Some(entry) = section.get(name).filter(|e| e.value.split_whitespace().any(|w| w == wrong))
            {
                let reason = format!("{name} has {wrong}; your hosts are on the other side.");
                let fix = option(name, &entry.value.replace(wrong, right));
                at(
                    found,
                    entry,
                    Say::new(format!("cake is fair between the others' hosts ({name})"), reason, fix),
                );
            }
        }
    }
}

/// Options of a queue that sqm-scripts or their page in LuCI read.
const SQM: [&str; 38] = [
    "enabled",
    "interface",
    "download",
    "upload",
    "qdisc",
    "script",
    "qdisc_advanced",
    "qdisc_really_really_advanced",
    "squash_dscp",
    "squash_ingress",
    "ingress_ecn",
    "egress_ecn",
    "iqdisc_opts",
    "eqdisc_opts",
    "linklayer",
    "overhead",
    "linklayer_advanced",
    "linklayer_adaptation_mechanism",
    "tcMTU",
    "tcTSIZE",
    "tcMPU",
    "ilimit",
    "elimit",
    "itarget",
    "etarget",
    "target",
    "shaper_burst",
    "htb_quantum_function",
    "debug_logging",
    "verbosity",
    "autoflow",
    "limit",
    "advanced",
    "use_mq",
    "name",
    "ignore_dscp",
    "zero_dscp",
    "comment",
];

fn unread(facts: &Facts, found: &mut Found) {
    for section in queues(facts) {
        for entry in section.entries.iter().filter(|e| !SQM.contains(&e.name.as_str())) {
            let near = SQM.iter().find(|n| n.eq_ignore_ascii_case(&entry.name) || is_near(n, &entry.name));
            let fix = near.map_or(String::new(), |n| option(n, &entry.value));
            let say =
                Say::new(format!("sqm-scripts read no option {}", entry.name), "Its default holds.", fix);
            found.at_line(entry.line, entry.name_column, entry.name.chars().count() as u32, say);
        }
    }
}

/// Whether two names differ by one letter, put in, left out or changed, or by two that changed places.
fn is_near(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let tail = |i: usize, j: usize| a.get(i..) == b.get(j..);
    tail(same + 1, same + 1)
        || tail(same + 1, same)
        || tail(same, same + 1)
        || a.get(same) == b.get(same + 1) && a.get(same + 1) == b.get(same) && tail(same + 2, same + 2)
}
