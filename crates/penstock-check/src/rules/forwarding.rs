//! PS343 to PS345: what a router lets through: the way back of packets, forwarding at all, and rules for what DNAT has changed.

use crate::facts::{Facts, Step, What};
use crate::finding::{Found, Rule, Say};
use crate::marks::Ruled;
use penstock_lang::iptables::extension::PortMatch;
use penstock_lang::iptables::{Family, Match, Table, Target, Verdict};
use std::net::Ipv4Addr;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS343",
        "answers of a route by mark fail the test of the way back",
        "With `rp_filter` 1 a packet comes in by a device only if the way back to its source goes out by it (`__fib_validate_source`). That way is looked for without the \
         packet's mark, by the main table, unless `src_valid_mark` is set: what comes back by the device of another table is dropped without a word. `rp_filter` 2 asks only for \
         some way back. The larger of `conf.all` and the device's own counts.",
        way_back,
    ),
    Rule::warning(
        "PS344",
        "a router that forwards nothing",
        "With `net.ipv4.ip_forward` 0 the kernel drops what is not for this machine itself (`ip_route_input_slow`), before FORWARD and before POSTROUTING: rules for packets from \
         one device to another, and NAT for them, have nothing to do.",
        no_forward,
    ),
    Rule::warning(
        "PS345",
        "a rule of FORWARD asks for what DNAT has changed",
        "DNAT changes address and port in PREROUTING. FORWARD comes later and sees the new ones alone: the inside host's address, and the port behind its colon. A rule for the \
         outside ones fits no such packet.",
        before_translation,
    ),
];

/// Whether a line of the text sets one of these keys of `/proc/sys` to something; comments aside: line, from 1, and the value.
pub(super) fn settings<'a>(facts: &'a Facts, key: &'a str) -> impl Iterator<Item = (u32, &'a str)> {
    let by_path = key.replace('.', "/");
    facts.source.lines.iter().enumerate().filter_map(move |(n, line)| {
        let text = line.trim_start();
        if text.starts_with(['#', ';']) {
            return None;
        }
        let digits = |v: &'a str| {
            let v = v.trim_start_matches([' ', '"', '\'']);
            v.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("")
        };
        let at = text.find(key).or_else(|| text.find(&by_path))?;
        // `KEY=VALUE`, or `echo VALUE > /proc/sys/KEY`.
        let value = match text[at + key.len()..].trim_start_matches([' ', '"', '\'']).strip_prefix('=') {
            Some(value) => digits(value),
            None => {
                let (_, said) = text[..at].rsplit_once("echo")?;
                digits(said.trim_start().trim_start_matches("-n"))
            }
        };
        (!value.is_empty()).then_some((n as u32 + 1, value))
    })
}

/// What a routing rule or a route is of: the words behind `rule` or `route`.
fn words_of<'a>(step: &'a Step, object: &[&str]) -> Option<&'a [String]> {
    let at = step.words.iter().take(4).position(|w| object.contains(&w.as_str()))?;
    // Gateways and names of tables may be those of the script's own machine alone.
    (step.program() == "ip").then(|| &step.words[at + 1..])
}

fn behind<'a>(words: &'a [String], names: &[&str]) -> Option<&'a str> {
    let at = words.iter().position(|w| names.contains(&w.as_str()))?;
    words.get(at + 1).map(String::as_str)
}

fn way_back(facts: &Facts, found: &mut Found) {
    let all: Vec<(u32, &str)> = settings(facts, "rp_filter").collect();
    let strict = all.iter().find(|s| s.1 == "1");
    // Who sets it in more than one way, or lets marks count, knows of it.
    let Some(&(line, _)) = strict.filter(|_| all.iter().all(|s| s.1 == "1")) else { return };
    if facts.partial || facts.source.holds(&["src_valid_mark"]) {
        return;
    }
    let adds =
        |w: &[String]| w.first().is_some_and(|v| matches!(v.as_str(), "add" | "a" | "replace" | "append"));
    let rules: Vec<&[String]> =
        facts.steps.iter().filter_map(|s| words_of(s, &["rule", "ru"])).filter(|w| adds(w)).collect();
    let routes: Vec<&[String]> =
        facts.steps.iter().filter_map(|s| words_of(s, &["route", "r", "ro"])).filter(|w| adds(w)).collect();
    let table = |w: &[String]| behind(w, &["table", "lookup"]).unwrap_or("main").to_owned();
    let is_default = |w: &[String]| w.iter().any(|x| matches!(x.as_str(), "default" | "0.0.0.0/0"));
    for rule in rules.iter().filter(|w| behind(w, &["fwmark"]).is_some()) {
        let own = table(rule);
        // A rule by source finds the way back for what is for this machine itself, one without conditions for all.
        let others = rules.iter().any(|w| table(w) == own && behind(w, &["fwmark"]).is_none());
        let route = routes.iter().find(|w| table(w) == own && is_default(w));
        let Some(dev) = route.and_then(|w| behind(w, &["dev"])).filter(|d| *d != "lo" && !others) else {
            continue;
        };
        let main = |w: &&&[String]| table(w) == "main" && is_default(w);
        if routes.iter().filter(main).any(|w| behind(w, &["dev"]) == Some(dev)) {
            continue;
        }
        // The value may be one of a single device.
        let text = facts.source.line(line);
        let of = |d: &str| text.contains(&format!("conf.{d}.")) || text.contains(&format!("conf/{d}/"));
        if !(of("all") || of(dev) || ["conf/*", "conf/$", "conf.$"].iter().any(|w| text.contains(w))) {
            continue;
        }
        let mark = behind(rule, &["fwmark"]).unwrap_or("");
        let reason = format!(
            "The way back is looked for without mark {mark}: not in table {own}, which alone goes out by {dev}."
        );
        let column = text.find("rp_filter").map_or(0, |at| text[..at].chars().count() as u32 + 1);
        let fix =
            text.trim().replacen("=1", "=2", 1).replacen("= 1", "= 2", 1).replacen("echo 1", "echo 2", 1);
        found.at_line(
            line,
            column,
            9,
            Say::new(format!("answers that come in by {dev} are dropped"), reason, fix),
        );
        return;
    }
}

fn no_forward(facts: &Facts, found: &mut Found) {
    let all: Vec<(u32, &str)> =
        settings(facts, "ip_forward").chain(settings(facts, "ipv4.conf.all.forwarding")).collect();
    // Whoever turns it on anywhere does so when it is to be.
    let Some(&(line, _)) = all.iter().find(|s| s.1 == "0").filter(|_| all.iter().all(|s| s.1 == "0")) else {
        return;
    };
    let translates = |r: &&Ruled| {
        r.family == Family::Ip
            && r.table == Table::Nat
            && r.chain == "POSTROUTING"
            && matches!(&r.rule.target, Target::Plain(p) if matches!(p.name.as_str(), "MASQUERADE" | "SNAT"))
    };
    let passes = |r: &&Ruled| {
        r.family == Family::Ip
            && r.table == Table::Filter
            && r.chain == "FORWARD"
            && matches!(r.rule.target, Target::Verdict(Verdict::Accept))
            && r.rule.input.is_some()
            && r.rule.output.is_some()
    };
    let rules = &facts.netfilter.standing.rules;
    let by_rule = rules.iter().find(translates).or_else(|| rules.iter().find(passes)).map(|r| r.step);
    let nft = || {
        let masks =
            |s: &Step| matches!(&s.what, What::Rules(t) if s.program() == "nft" && t.contains("masquerade"));
        facts.steps.iter().position(|s| s.ok() && masks(s))
    };
    let Some(at) = by_rule.or_else(nft) else { return };
    let text = facts.source.line(line);
    let column = text.find("forward").map_or(0, |n| text[..n].chars().count() as u32 + 1);
    let reason = format!(
        "Line {} is for packets that are forwarded, and nothing in the script turns that on again.",
        facts.steps[at].line
    );
    let fix = text.trim().replacen("=0", "=1", 1).replacen("= 0", "= 1", 1).replacen("echo 0", "echo 1", 1);
    found.at_line(line, column, 7, Say::new("nothing is forwarded", reason, fix));
}

/// The one port that a rule's match by destination port asks for, with its protocol.
fn port(ruled: &Ruled) -> Option<(u8, u16)> {
    let one = |p: &PortMatch| (p.ports.from == p.ports.to && !p.invert).then_some(p.ports.from);
    ruled.rule.matches.iter().find_map(|m| match m {
        Match::Tcp(tcp) => Some((6, one(&tcp.dport)?)),
        Match::Udp(_, dport) => Some((17, one(dport)?)),
        _ => None,
    })
}

/// What a rule's DNAT puts in: address and port.
fn put_in(ruled: &Ruled) -> Option<(Ipv4Addr, Option<u16>)> {
    let Target::Plain(plain) = &ruled.rule.target else { return None };
    let to = plain.save.split_whitespace().skip_while(|w| *w != "--to-destination").nth(1)?;
    if plain.name != "DNAT" || to.contains('-') {
        return None;
    }
    match to.split_once(':') {
        Some((addr, port)) => Some((addr.parse().ok()?, Some(port.parse().ok()?))),
        None => Some((to.parse().ok()?, None)),
    }
}

/// The one address that a rule asks for as destination.
fn destination(ruled: &Ruled) -> Option<Ipv4Addr> {
    let dst = ruled.rule.dst.filter(|d| !d.invert && d.mask as u32 == u32::MAX)?;
    Some(Ipv4Addr::from(dst.addr as u32))
}

/// The same of texts for nft: `tcp dport 8080 dnat to ADDRESS:80`, and `ip daddr ADDRESS tcp dport 8080 accept`.
fn before_translation_of_nft(facts: &Facts, found: &mut Found) {
    let mut lines: Vec<(usize, usize, Vec<&str>)> = Vec::new();
    for (at, step) in facts.steps.iter().enumerate().filter(|s| s.1.ok() && s.1.program() == "nft") {
        let What::Rules(text) = &step.what else { continue };
        for (n, line) in text.lines().enumerate().filter(|l| !l.1.trim_start().starts_with('#')) {
            let words = line.split(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}' | '"'));
            lines.push((at, n, words.filter(|w| !w.is_empty()).collect()));
        }
    }
    let behind = |words: &[&str], name: &str| {
        words.iter().position(|w| *w == name).and_then(|n| words.get(n + 1)).map(|w| (*w).to_owned())
    };
    let asked = |words: &[&str]| behind(words, "dport").and_then(|p| p.parse::<u16>().ok());
    let made: Vec<_> = lines
        .iter()
        .filter_map(|(at, n, words)| {
            let dnat = words.iter().position(|w| *w == "dnat")?;
            let to = behind(&words[dnat..], "to")?;
            let (addr, port) = to.split_once(':').unwrap_or((&to, ""));
            let new = port.parse::<u16>().ok();
            Some((asked(&words[..dnat]), addr.parse::<Ipv4Addr>().ok()?, new, *at, *n))
        })
        .collect();
    for (at, n, words) in &lines {
        let (Some(port), Some(to)) = (asked(words), behind(words, "daddr")) else { continue };
        let Ok(to) = to.parse::<Ipv4Addr>() else { continue };
        if !words.contains(&"accept") || words.contains(&"saddr") {
            continue;
        }
        let fits = made.iter().any(|m| m.1 == to && m.2.or(m.0).is_none_or(|p| p == port));
        let taken = made.iter().find(|m| m.1 == to && m.0 == Some(port) && m.2.is_some_and(|p| p != port));
        if let Some((_, addr, Some(new), by, line)) = taken.filter(|_| !fits) {
            let reason = format!(
                "dnat ({}) has made {addr} port {new} of it before forward is asked.",
                facts.rule_place(*by, *line as u32)
            );
            let say = Say::new(format!("no packet from outside has port {port} any more"), reason, "");
            found.at_text(*at, *n, &port.to_string(), say);
        }
    }
}

fn before_translation(facts: &Facts, found: &mut Found) {
    before_translation_of_nft(facts, found);
    let rules = &facts.netfilter.standing.rules;
    let translates: Vec<_> = rules
        .iter()
        .filter(|r| r.family == Family::Ip && r.table == Table::Nat && r.chain == "PREROUTING")
        .filter_map(|r| Some((r, put_in(r)?)))
        .collect();
    for ruled in rules.iter().filter(|r| r.family == Family::Ip && r.table == Table::Filter) {
        let passes = matches!(ruled.rule.target, Target::Verdict(Verdict::Accept));
        if ruled.chain != "FORWARD" || !passes {
            continue;
        }
        let Some((proto, asked)) = port(ruled) else { continue };
        let to = destination(ruled);
        let same_way = |d: &Ruled| match (&d.rule.input, &ruled.rule.input) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        // Some DNAT, or none, gives packets this port at this address.
        let fits = translates.iter().any(|(d, (addr, new))| {
            let new = new.or_else(|| port(d).map(|p| p.1));
            new == Some(asked) && to.is_none_or(|t| t == *addr)
        });
        let taken = translates.iter().find(|(d, (addr, new))| {
            let old = port(d);
            let moved = new.is_some_and(|n| n != asked) && to.is_some_and(|t| t == *addr);
            let outside = to.is_some() && destination(d) == to && to != Some(*addr);
            old == Some((proto, asked)) && (moved || outside) && same_way(d)
        });
        let Some((nat, (addr, new))) = taken.filter(|_| !fits) else { continue };
        let new = new.unwrap_or(asked);
        let step = &facts.steps[ruled.step];
        let reason = format!(
            "DNAT ({}) has made {addr} port {new} of it before FORWARD is asked.",
            facts.rule_place(nat.step, nat.line)
        );
        let (old, of) = (asked.to_string(), to.map_or(String::new(), |t| t.to_string()));
        let by_port = new != asked;
        let (message, word) = match by_port {
            true => (format!("no packet from outside has port {asked} any more"), old.clone()),
            false => (format!("no packet has the destination {of} any more"), of.clone()),
        };
        let fix = match (ruled.line, by_port) {
            (0, true) => step.with_word(&old, &new.to_string()),
            (0, false) => step.with_word(&of, &addr.to_string()),
            _ => String::new(),
        };
        found.at_text(ruled.step, ruled.line as usize, &word, Say::new(message, reason, fix));
    }
}
