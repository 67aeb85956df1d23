//! Actions, from the text tc prints of them; `police`, `gate`, `pedit`, `simple` from their options where these are at hand.

use crate::show::{Form, Out};
use crate::tc::actions::{pedit_words, print_actions};
use penstock_model::{Kernel, Options};

/// The words of every action in a text: of a filter's `action order 1: …`, of `tc actions list`. Each begins with its kind.
///
/// # Errors
/// What of it no words say.
pub fn actions(text: &str, kernel: Kernel) -> Result<Vec<Vec<String>>, String> {
    several(text, &[], kernel)
}

/// The words of an action as a dump has it.
///
/// # Errors
/// What of it no words say.
pub fn standalone(one: &Options, kernel: Kernel) -> Result<Vec<String>, String> {
    let mut out = Out::new(&Form::default(), kernel, false);
    print_actions(std::slice::from_ref(one), false, &mut out);
    let mut said = several(&out.finish(), std::slice::from_ref(one), kernel)?;
    said.pop().ok_or_else(|| "an action that does not show itself".to_owned())
}

pub(super) fn several(text: &str, list: &[Options], kernel: Kernel) -> Result<Vec<Vec<String>>, String> {
    let blocks = text.split("action order ").skip(1);
    let one = |(i, block): (usize, &str)| {
        let (_, block) = block.split_once(':').ok_or("an action without its number")?;
        one(block, list.get(i), kernel)
    };
    blocks.enumerate().map(one).collect()
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

fn after<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().position(|w| *w == name).and_then(|at| words.get(at + 1)).copied()
}

/// A control and what it takes, at the beginning of words.
fn control(words: &[&str]) -> Option<Vec<String>> {
    match words {
        ["goto", "chain", n, ..] => Some(strings(&["goto", "chain", n])),
        ["jump", n, ..] => Some(strings(&["jump", n])),
        [word @ ("pass" | "drop" | "pipe" | "continue" | "reclassify" | "trap"), ..] => {
            Some(strings(&[word]))
        }
        _ => None,
    }
}

/// The first control among the words.
fn any_control(words: &[&str]) -> Vec<String> {
    (0..words.len()).find_map(|at| control(&words[at..])).unwrap_or_default()
}

fn one(block: &str, options: Option<&Options>, kernel: Kernel) -> Result<Vec<String>, String> {
    let words: Vec<&str> = block.split_whitespace().collect();
    let inner = options.and_then(|o| o.nested("options"));
    let (kind, rest) = match words.as_slice() {
        ["priority", ..] => ("gate", words.as_slice()),
        [kind, rest @ ..] => (*kind, rest),
        [] => return Err("an action that does not show itself".to_owned()),
    };
    // What is the action's own ends where its index is told.
    let end = rest.iter().position(|w| *w == "index").unwrap_or(rest.len());
    let own = &rest[..end];
    let index = after(rest, "index");
    let mut said = match kind {
        "gact" => gact(own),
        "mirred" => mirred(own)?,
        "csum" => {
            let list =
                block.split_once('(').and_then(|(_, b)| b.split_once(')')).map_or("", |(list, _)| list);
            let mut said = strings(&["csum"]);
            // One that was made by its index alone has none.
            if list != "?empty" {
                said.push(list.split(", ").collect::<Vec<_>>().join(" and "));
                said = said.iter().flat_map(|w| w.split(' ')).map(str::to_owned).collect();
                said.extend(any_control(own));
            }
            said
        }
        "connmark" => plain("connmark", own),
        "ctinfo" => {
            let mut said = strings(&["ctinfo"]);
            for name in ["dscp", "cpmark"] {
                if let Some(at) = rest.iter().position(|w| *w == name) {
                    let numbers =
                        rest[at + 1..].iter().take(2).take_while(|w| w.starts_with("0x") || **w == "0");
                    said.push(name.to_owned());
                    said.extend(numbers.map(|w| (*w).to_owned()));
                }
            }
            said.extend(strings(&["zone", after(own, "zone").unwrap_or("0")]));
            said.extend(any_control(own));
            said
        }
        "bpf" => {
            if let Some(name) = inner.and_then(|o| o.str("bpf_name")) {
                return Err(format!(
                    "the program {name} is of a file that the kernel does not name: load it anew"
                ));
            }
            let program = block.split('\'').nth(1);
            let mut said = strings(&["bpf"]);
            said.extend(program.into_iter().flat_map(|p| strings(&["bytecode", p])));
            said.extend(any_control(own.split(|w| *w == "default-action").next_back().unwrap_or_default()));
            said
        }
        "nat" if own.get(1).is_some_and(|old| old.ends_with("/0")) => strings(&["nat"]),
        "vlan" | "mpls" | "nat" | "skbedit" => plain(kind, own),
        "ct" | "gate" => {
            let whole = if kind == "ct" { plain(kind, own) } else { gate(own, inner)? };
            let list: Vec<&str> = whole.iter().map(String::as_str).collect();
            // Its index stands before the control.
            let at = (1..list.len())
                .rev()
                .find(|&at| control(&list[at..]).is_some_and(|c| at + c.len() == list.len()));
            let (head, tail) = whole.split_at(at.unwrap_or(whole.len()));
            let index = index.map(|i| strings(&["index", i])).unwrap_or_default();
            return Ok(self::tail([head, &index, tail].concat(), rest));
        }
        "ife" => ife(own),
        "pedit" => match inner {
            Some(o) => pedit(o)?,
            None => pedit_text(own, rest)?,
        },
        "sample" => {
            let rate = after(own, "rate").and_then(|r| r.strip_prefix("1/")).unwrap_or("1");
            let mut said = strings(&["sample", "rate", rate, "group", after(own, "group").unwrap_or("0")]);
            said.extend(after(own, "trunc_size").into_iter().flat_map(|n| strings(&["trunc", n])));
            said.extend(any_control(own));
            said
        }
        "Simple" => {
            let shown =
                block.split_once('<').and_then(|(_, b)| b.rsplit_once('>')).map_or("", |(data, _)| data);
            let data = inner.and_then(|o| o.str("sdata")).unwrap_or(shown);
            let mut said = strings(&["simple", "sdata", data]);
            if let Some(action) = inner.and_then(|o| o.i64("action")) {
                said.extend(named(action));
            }
            said
        }
        "skbmod" => {
            let mut said = strings(&["skbmod"]);
            let first = control(own);
            said.extend(own[first.as_ref().map_or(0, Vec::len)..].iter().map(|w| (*w).to_owned()));
            said.extend(first.unwrap_or_default());
            said
        }
        "tunnel_key" => {
            let renamed = |w: &&str| if *w == "key_id" { "id".to_owned() } else { (*w).to_owned() };
            [strings(&["tunnel_key"]), own.iter().map(renamed).collect()].concat()
        }
        "police" => {
            let (mut said, index) = police(block, inner, kernel);
            said.extend(strings(&["index", &index]));
            return Ok(tail(said, &words));
        }
        other => return Err(format!("an action called {other}")),
    };
    if let Some(index) = index {
        said.extend(strings(&["index", index]));
    }
    Ok(tail(said, rest))
}

/// What stands behind every action.
fn tail(mut said: Vec<String>, words: &[&str]) -> Vec<String> {
    if let Some(cookie) = after(words, "cookie") {
        said.extend(strings(&["cookie", cookie]));
    }
    if let Some(stats) = after(words, "hw_stats") {
        said.extend(strings(&["hw_stats", stats]));
    }
    for flag in ["no_percpu", "skip_sw", "skip_hw"] {
        said.extend(words.contains(&flag).then(|| flag.to_owned()));
    }
    said
}

/// Kinds that are printed as they are read.
fn plain(kind: &str, own: &[&str]) -> Vec<String> {
    let own = own.iter().filter(|w| **w != "stolen");
    std::iter::once(kind).chain(own.copied()).map(str::to_owned).collect()
}

fn gact(own: &[&str]) -> Vec<String> {
    let at = own.iter().position(|w| *w == "random").unwrap_or(own.len());
    let mut said = strings(&["gact"]);
    said.extend(any_control(&own[..at]));
    if let Some(["type", way @ ("netrand" | "determ"), random @ ..]) = own.get(at + 1..) {
        said.extend(strings(&["random", way]));
        said.extend(any_control(random));
        said.extend(after(random, "val").map(str::to_owned));
    }
    said
}

/// `(Egress Redirect to device ifb0) stolen`.
fn mirred(own: &[&str]) -> Result<Vec<String>, String> {
    let [direction, what, "to", to, target, rest @ ..] = own else {
        return Err(format!("mirred {}", own.join(" ")));
    };
    let target = target.trim_end_matches(')');
    if target == "*" {
        return Err("mirred to a device that is gone".to_owned());
    }
    let (direction, what) = (direction.trim_start_matches('(').to_lowercase(), what.to_lowercase());
    let to = if *to == "blockid" { "blockid" } else { "dev" };
    let mut said = strings(&["mirred", &direction, &what, to, target]);
    // What is redirected is gone: no control is read there.
    said.extend(control(rest).filter(|_| what == "mirror").unwrap_or_default());
    Ok(said)
}

fn ife(own: &[&str]) -> Vec<String> {
    let mut said = strings(&["ife"]);
    let mut control = Vec::new();
    let mut rest = own;
    while let [word, more @ ..] = rest {
        let used = match *word {
            "action" => {
                control = any_control(more);
                1 + control.len()
            }
            "use" => {
                said.extend(rest.iter().take(3).map(|w| (*w).to_owned()));
                3
            }
            "encode" | "decode" => {
                said.push((*word).to_owned());
                1
            }
            _ => {
                said.extend(rest.iter().take(2).map(|w| (*w).to_owned()));
                2
            }
        };
        rest = rest.get(used..).unwrap_or_default();
    }
    said.extend(control);
    said
}

/// A control by its number.
fn named(action: i64) -> Vec<String> {
    let low = action & 0x0fff_ffff;
    match action {
        -1 => strings(&["continue"]),
        0 => strings(&["pass"]),
        1 => strings(&["reclassify"]),
        2 => strings(&["drop"]),
        3 => strings(&["pipe"]),
        8 => strings(&["trap"]),
        _ if action >> 28 == 2 => strings(&["goto", "chain", &low.to_string()]),
        _ if action >> 28 == 1 => strings(&["jump", &low.to_string()]),
        _ => Vec::new(),
    }
}

fn pedit(o: &Options) -> Result<Vec<String>, String> {
    let extended = o.has("ex")
        || o.list("keys").iter().any(|k| k.u32("header").unwrap_or(0) != 0 || k.u32("cmd") == Some(1));
    let mut said = strings(&["pedit"]);
    said.extend(extended.then(|| "ex".to_owned()));
    said.extend(pedit_words(o.list("keys"), extended)?);
    said.extend(named(o.i64("action").unwrap_or(0)));
    Ok(said)
}

/// `action pass keys 1 index 1 ref 1 bind 0 key #0 at ipv4+8: val 00400000 mask ff00ffff`.
fn pedit_text(own: &[&str], rest: &[&str]) -> Result<Vec<String>, String> {
    const HEADERS: [&str; 6] = ["", "eth", "ipv4", "ipv6", "tcp", "udp"];
    let mut keys = Vec::new();
    for at in (0..rest.len()).filter(|&i| rest[i] == "key") {
        let ["key", _, "at", place, cmd, val, "mask", mask, ..] = &rest[at..] else { continue };
        let place = place.trim_end_matches(':');
        let header = HEADERS.iter().skip(1).position(|h| place.starts_with(h)).map_or(0, |i| i + 1);
        let off: i64 = place[HEADERS[header].len()..].parse().map_err(|_| format!("pedit at {place}"))?;
        let hex = |text: &str| u32::from_str_radix(text, 16).map_err(|_| format!("pedit {text}"));
        let key = Options::new().with("val", hex(val)?).with("mask", hex(mask)?).with("off", off);
        keys.push(key.with("header", header as u32).with("cmd", u32::from(*cmd == "add")));
    }
    let o = Options::new().with("keys", keys);
    let mut said = pedit(&o)?;
    said.pop();
    said.extend(any_control(own));
    Ok(said)
}

fn gate(own: &[&str], inner: Option<&Options>) -> Result<Vec<String>, String> {
    let mut said = strings(&["gate"]);
    let exact = |name: &str| inner.and_then(|o| o.i64(name));
    if let Some(prio) = after(own, "priority").filter(|p| *p != "wildcard") {
        said.extend(strings(&["priority", prio]));
    }
    if let Some(clock) = after(own, "clockid").filter(|c| *c != "invalid") {
        said.extend(strings(&["clockid", clock]));
    }
    if let Some(flags) = after(own, "flags").filter(|f| *f != "0") {
        said.extend(strings(&["flags", flags]));
    }
    for (word, name) in
        [("base-time", "base_time"), ("cycle-time", "cycle_time"), ("cycle-time-ext", "cycle_time_ext")]
    {
        let shown = after(own, word).filter(|t| *t != "0ns").map(str::to_owned);
        let time = exact(name).map(|ns| ns.to_string()).filter(|t| t != "0").or(shown);
        said.extend(time.into_iter().flat_map(|t| strings(&[word, &t])));
    }
    let entries = inner.map(|o| o.list("entries")).unwrap_or_default();
    for (i, at) in (0..own.len()).filter(|&i| own[i] == "gate-state").enumerate() {
        let one = &own[at..];
        let interval = entries.get(i).and_then(|e| e.u32("interval")).map(|ns| ns.to_string());
        let interval = interval.unwrap_or_else(|| after(one, "interval").unwrap_or("0").to_owned());
        said.extend(strings(&["sched-entry", one.get(1).copied().unwrap_or("open"), &interval]));
        let octets =
            entries.get(i).and_then(|e| e.i64("max_octets")).filter(|&n| n >= 0).map(|n| n.to_string());
        let octets = octets.or(after(one, "max-octets").filter(|w| *w != "wildcard").map(str::to_owned));
        let ipv = after(one, "ipv").filter(|w| *w != "wildcard");
        match (ipv, octets) {
            (None, None) => {}
            (ipv, octets) => {
                said.push(ipv.unwrap_or("-1").to_owned());
                said.extend(octets);
            }
        }
    }
    said.extend((0..own.len()).rev().find_map(|at| control(&own[at..])).unwrap_or_default());
    Ok(said)
}

/// `police 0x1 rate 1Mbit burst 10Kb mtu 2Kb action drop/pass overhead 0b linklayer …`: words, and its index.
pub(super) fn police(text: &str, options: Option<&Options>, kernel: Kernel) -> (Vec<String>, String) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let index = after(&words, "police").unwrap_or("0x0").trim_start_matches("0x");
    let index = u32::from_str_radix(index, 16).unwrap_or(0).to_string();
    let mut said = strings(&["police"]);
    let rate = |name: &str| options.and_then(|o| o.u64(name)).filter(|&r| r != 0);
    let size = |n: u64| n.to_string();
    match options {
        Some(o) => {
            if let Some(r) = rate("rate") {
                // None at all would be refused.
                let burst = super::burst(r, o.u32("burst").unwrap_or(0), kernel).max(1);
                said.extend(strings(&["rate", &super::rate(r), "burst", &size(burst)]));
            }
            said.extend(strings(&["mtu", &size(u64::from(o.u32("mtu").unwrap_or(0)))]));
            for name in ["peakrate", "avrate"] {
                said.extend(rate(name).into_iter().flat_map(|r| strings(&[name, &super::rate(r)])));
            }
            if let (Some(r), Some(ticks)) = (rate("pkts_rate"), o.u64("pkts_burst")) {
                let burst = super::burst(r, ticks as u32, kernel);
                said.extend(strings(&["pkts_rate", &size(r), "pkts_burst", &size(burst)]));
            }
            if o.u32("mpu").unwrap_or(0) != 0 && rate("rate").is_some() {
                said.extend(strings(&["mpu", &size(u64::from(o.u32("mpu").unwrap_or(0)))]));
            }
        }
        None => {
            for name in ["rate", "burst", "mtu", "peakrate", "avrate", "pkts_rate", "pkts_burst"] {
                let shown = after(&words, name).filter(|v| !matches!(*v, "0bit" | "0b"));
                said.extend(shown.into_iter().flat_map(|v| strings(&[name, v])));
            }
        }
    }
    if let Some(over) = after(&words, "overhead").map(|o| o.trim_end_matches('b')).filter(|o| *o != "0") {
        said.extend(strings(&["overhead", over]));
    }
    if let Some(layer) = after(&words, "linklayer").filter(|l| !matches!(*l, "ethernet" | "unspec")) {
        said.extend(strings(&["linklayer", layer]));
    }
    if let Some(at) = words.iter().position(|w| *w == "action") {
        let until = words[at..].iter().position(|w| *w == "overhead").map_or(words.len(), |n| at + n);
        said.extend(controls(&words[at + 1..until].join(" ")));
    }
    (said, index)
}

/// `drop/pass`, `goto chain 5`, `reclassify/jump 3`.
fn controls(text: &str) -> Vec<String> {
    match text.split_once('/') {
        None if text.contains(' ') => text.split(' ').map(str::to_owned).collect(),
        None => strings(&["conform-exceed", text]),
        Some((exceed, conform)) if exceed.contains(' ') || conform.contains(' ') => {
            let mut said = strings(&["conform-exceed"]);
            said.extend(exceed.split(' ').map(str::to_owned));
            said.push("/".to_owned());
            said.extend(conform.split(' ').map(str::to_owned));
            said
        }
        Some(_) => strings(&["conform-exceed", text]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let said = actions(&format!("\taction order 1: {text}"), Kernel::V6_12).unwrap();
        assert_eq!(said[0].join(" "), want);
    }

    #[test]
    fn as_they_are_printed() {
        check(
            "gact action drop\n\t random type determ pass val 5\n\t index 2 ref 1 bind 0\n\tcookie abcd\n\tno_percpu\n",
            "gact drop random determ pass 5 index 2 cookie abcd no_percpu",
        );
        check(
            "gact action goto chain 7\n\t random type none pass val 0\n\t index 1 ref 1 bind 1\n",
            "gact goto chain 7 index 1",
        );
        check(
            "mirred (Egress Redirect to device ifb0) stolen\n\tindex 1 ref 1 bind 1\n",
            "mirred egress redirect dev ifb0 index 1",
        );
        check("csum (iph, tcp) action pass\n\tindex 1 ref 1 bind 0\n", "csum iph and tcp pass index 1");
        check(
            " police 0x1 rate 1Mbit burst 10Kb mtu 2Kb action drop/pass overhead 0b \n\tref 1 bind 1 \n",
            "police rate 1Mbit burst 10Kb mtu 2Kb conform-exceed drop/pass index 1",
        );
        check("Simple <a b>\n\t index 1 ref 1 bind 0\n", "simple sdata a b index 1");
        check(
            "skbedit  priority 1:10 mark 5/0xff pipe\n\t index 3 ref 1 bind 0\n",
            "skbedit priority 1:10 mark 5/0xff pipe index 3",
        );
        check(
            "vlan  push id 5 protocol 802.1Q priority 1 pipe\n\t index 1 ref 1 bind 0\n",
            "vlan push id 5 protocol 802.1Q priority 1 pipe index 1",
        );
        check(
            "tunnel_key  set\n\tsrc_ip 1.1.1.1\n\tdst_ip 2.2.2.2\n\tkey_id 5\n\tcsum pipe\n\t index 1 ref 1 bind 0\n",
            "tunnel_key set src_ip 1.1.1.1 dst_ip 2.2.2.2 id 5 csum pipe index 1",
        );
        check(
            "skbmod pipe set etype 0x800 \n\t set dmac 01:02:03:04:05:06 swap mac \n\t index 1 ref 1 bind 0\n",
            "skbmod set etype 0x800 set dmac 01:02:03:04:05:06 swap mac pipe index 1",
        );
        check(
            "ife encode action pipe type 0XED3E \n\tallow mark use prio 5 dst 01:02:03:04:05:06 \n\t index 1 ref 1 bind 0\n",
            "ife encode type 0XED3E allow mark use prio 5 dst 01:02:03:04:05:06 pipe index 1",
        );
        check(
            " pedit action pass keys 1\n \t index 1 ref 1 bind 0\n\t key #0  at 12: val 0a000001 mask 00000000\n",
            "pedit munge offset 12 u32 set 0xa000001 retain 0xffffffff pass index 1",
        );
        check(
            " pedit action pass keys 1\n \t index 1 ref 1 bind 0\n\t key #0  at ipv4+8: val 40000000 mask 00ffffff\n",
            "pedit ex munge ip ttl set 64 pass index 1",
        );
        check(
            "sample rate 1/100 group 5 trunc_size 64 pipe\n\t index 1 ref 1 bind 0\n",
            "sample rate 100 group 5 trunc 64 pipe index 1",
        );
        check(
            "ct commit zone 5 nat src addr 1.2.3.4 pipe\n\t index 1 ref 1 bind 0\n",
            "ct commit zone 5 nat src addr 1.2.3.4 index 1 pipe",
        );
        check(
            "\n\tpriority wildcard\tclockid TAI\tflags 0\n\tbase-time 0ns\tcycle-time 200ms\tcycle-time-ext 0ns\n\tschedule:\n\
             \t number    0\tgate-state open \tinterval 100ms\t ipv wildcard\t max-octets wildcard\n\tpipe\n\t index 1 ref 1 bind 0\n",
            "gate clockid TAI cycle-time 200ms sched-entry open 100ms index 1 pipe",
        );
    }
}
