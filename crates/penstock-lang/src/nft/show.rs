//! Tables, chains, sets and rules as `nft list` prints them.
//!
//! Follows: nftables 1.0.6 `rule.c` `do_list_*`, `set_print_declaration`, `prio2str`; `expression.c` `calculate_delim`.

use super::Options;
use super::data::{
    Base, Compare, Data, Element, Expr, Family, FibResult, Limit, Rule, Set, Statement, Type, fib,
};
use super::dynamic::{Dynset, Object, Quota};
use super::time;
use super::value::{bounds, verdict_text};
use std::fmt::Write;

/// Names of priorities.
const PRIORITIES: [(i32, &str); 6] =
    [(-300, "raw"), (-150, "mangle"), (-100, "dstnat"), (0, "filter"), (50, "security"), (100, "srcnat")];

fn priority_fits(value: i32, family: Family, hook: &str) -> bool {
    match value {
        0 => true,
        -300 | -150 | 50 => matches!(family, Family::Ip | Family::Ip6 | Family::Inet),
        -100 => matches!(family, Family::Ip | Family::Ip6 | Family::Inet) && hook == "prerouting",
        _ => matches!(family, Family::Ip | Family::Ip6 | Family::Inet) && hook == "postrouting",
    }
}

/// The priority of this name at a hook.
pub fn priority_named(name: &str, family: Family, hook: &str) -> Option<i32> {
    PRIORITIES.iter().find(|p| p.1 == name && priority_fits(p.0, family, hook)).map(|p| p.0)
}

fn priority_text(value: i32, family: Family, hook: &str, o: &Options) -> String {
    if o.numeric || o.numeric_priority {
        return value.to_string();
    }
    match PRIORITIES.iter().find(|p| (value - p.0).abs() <= 10) {
        Some((std, name)) if priority_fits(*std, family, hook) => match value - std {
            0 => (*name).to_owned(),
            n if n > 0 => format!("{name} + {n}"),
            n => format!("{name} - {}", -n),
        },
        _ => value.to_string(),
    }
}

/// The line of a base chain.
pub fn base(b: &Base, family: Family, o: &Options) -> String {
    let mut out = format!("type {} hook {} ", b.ty, b.hook);
    match b.devices.as_slice() {
        [] => {}
        [one] => {
            let _ = write!(out, "device \"{one}\" ");
        }
        many => {
            let quoted: Vec<String> = many.iter().map(|d| format!("\"{d}\"")).collect();
            let _ = write!(out, "devices = {{ {} }} ", quoted.join(", "));
        }
    }
    let priority = priority_text(b.priority, family, &b.hook, o);
    let policy = if b.drop { "drop" } else { "accept" };
    let _ = write!(out, "priority {priority}; policy {policy};");
    out
}

/// A set's or map's block; nothing where it stands in the list of another.
pub fn set(name: &str, s: &Set, comment: Option<&str>, handle: u64, o: &Options) -> String {
    let word = match s.data {
        _ if s.meter => "meter",
        Some(_) => "map",
        None => "set",
    };
    let mut out = format!("\t{word} {name} {{");
    if o.handles {
        let _ = write!(out, " # handle {handle}");
    }
    out.push('\n');
    match s.type_of.as_deref() {
        Some((key, data)) => {
            let plain = Options::default();
            let _ = write!(out, "\t\ttypeof {}", expr(key, &plain));
            match data {
                Some(data) => {
                    let _ = write!(out, " : {}", expr(data, &plain));
                }
                None if s.data.is_some() => out.push_str(" : verdict"),
                None => {}
            }
        }
        None => {
            let types: Vec<&str> = s.key.iter().map(|t| t.name()).collect();
            let _ = write!(out, "\t\ttype {}", types.join(" . "));
            if let Some(data) = s.data {
                let _ = write!(out, " : {}", data.name());
            }
        }
    }
    out.push('\n');
    declared(&mut out, s, o);
    if let Some(comment) = comment {
        let _ = writeln!(out, "\t\tcomment \"{comment}\"");
    }
    if !s.elements.is_empty() && !o.terse {
        out.push_str("\t\telements = { ");
        let per_line = match s.key.as_slice() {
            [one] => one.per_line(),
            _ => 1,
        };
        for (i, e) in in_order(s).into_iter().enumerate() {
            if i > 0 {
                out.push_str(if i % per_line == 0 { ",\n\t\t\t     " } else { ", " });
            }
            out.push_str(&element(e, o));
        }
        out.push_str(" }\n");
    }
    out.push_str("\t}\n");
    out
}

/// Lines of a set's block between its type and its comment (`set_print_declaration`).
fn declared(out: &mut String, s: &Set, o: &Options) {
    if !s.constant {
        out.push_str(if s.memory { "\t\tpolicy memory\n" } else { "" });
        if let Some(size) = s.size {
            let _ = writeln!(out, "\t\tsize {size}");
        }
    }
    let all =
        [(s.constant, "constant"), (s.dynamic, "dynamic"), (s.interval, "interval"), (s.timeouts, "timeout")];
    let flags: Vec<&str> = all.iter().filter(|f| f.0).map(|f| f.1).collect();
    // That elements may go by themselves goes without saying where they all do.
    let needless = flags == ["timeout"] && s.timeout.is_some();
    if !flags.is_empty() && !needless {
        let _ = writeln!(out, "\t\tflags {}", flags.join(","));
    }
    if !s.states.is_empty() {
        // What a set declares has no count of its own.
        let plain = Options { stateless: true, ..o.clone() };
        let _ = writeln!(out, "\t\t{}", states(&s.states, &plain));
    }
    out.push_str(if s.auto_merge { "\t\tauto-merge\n" } else { "" });
    if let Some(ms) = s.timeout {
        let _ = writeln!(out, "\t\ttimeout {}", time::text(ms));
    }
    if let Some(ms) = s.gc_interval {
        let _ = writeln!(out, "\t\tgc-interval {}", time::text(ms));
    }
}

fn states(all: &[Statement], o: &Options) -> String {
    all.iter().map(|s| statement(s, o)).collect::<Vec<_>>().join(" ")
}

/// An object's block (`obj_print_data`).
pub fn object(name: &str, object: &Object, comment: Option<&str>, handle: u64, o: &Options) -> String {
    let mut out = format!("\t{} {name} {{", object.kind().word());
    if o.handles {
        let _ = write!(out, " # handle {handle}");
    }
    out.push('\n');
    if let Some(comment) = comment {
        let _ = writeln!(out, "\t\tcomment \"{comment}\"");
    }
    let said = match object {
        Object::Counter(..) if o.stateless => String::new(),
        Object::Counter(packets, bytes) => format!("packets {packets} bytes {bytes}"),
        Object::Quota(q) => quota(q, o),
        Object::Limit(l) => limit(l),
    };
    if !said.is_empty() {
        let _ = writeln!(out, "\t\t{said}");
    }
    out.push_str("\t}\n");
    out
}

fn element(e: &Element, o: &Options) -> String {
    let mut key = in_set(&e.key, o);
    if let Some(more) = e.more.as_deref() {
        for s in &more.states {
            let _ = write!(key, " {}", statement(s, o));
        }
        if let Some(ms) = more.timeout {
            let _ = write!(key, " timeout {}", time::text(ms));
        }
        if let Some(ms) = more.expires.filter(|_| !o.stateless) {
            let _ = write!(key, " expires {}", time::text(ms));
        }
        if let Some(comment) = &more.comment {
            let _ = write!(key, " comment \"{comment}\"");
        }
    }
    match &e.data {
        None => key,
        Some(Data::Value(v)) => format!("{key} : {}", in_set(v, o)),
        Some(Data::Verdict(v)) => format!("{key} : {}", verdict_text(v)),
    }
}

/// Elements as they are listed: names of devices by their letters where some stand for all that begin so.
fn in_order(s: &Set) -> Vec<&Element> {
    let mut all: Vec<&Element> = s.elements.iter().collect();
    let wild = |e: &&Element| matches!(&e.key, Expr::Name(name) if name.ends_with('*'));
    if s.key == [Type::Ifname] && (s.interval || all.iter().any(wild)) {
        all.sort_by_key(|e| bounds(&e.key));
    }
    all
}

/// An element's part: flags that stand together are joined by `|`, since a comma parts elements.
fn in_set(e: &Expr, o: &Options) -> String {
    match e {
        Expr::Flags(v, None, ty) => flags(*v, *ty, " | ", o),
        Expr::Concat(all) => all.iter().map(|e| in_set(e, o)).collect::<Vec<_>>().join(" . "),
        _ => expr(e, o),
    }
}

/// A rule's line in a table of this family, without its handle.
pub fn rule(r: &Rule, family: Family, o: &Options) -> String {
    let hidden = implied(&r.statements, family);
    let mut words: Vec<String> = Vec::new();
    for (i, s) in r.statements.iter().enumerate() {
        if !hidden.contains(&i) {
            words.push(statement(s, o));
        }
    }
    if let Some(comment) = &r.comment {
        words.push(format!("comment \"{comment}\""));
    }
    words.join(" ")
}

/// Statements that only say what a later field says again: `meta l4proto tcp` before `tcp dport` (`payload_dependency_kill`). What is done in
/// between keeps them.
fn implied(all: &[Statement], family: Family) -> Vec<usize> {
    let mut out = Vec::new();
    for (i, s) in all.iter().enumerate() {
        let Statement::Match(left, Compare::Is | Compare::Equal, Expr::Value(value, _)) = s else { continue };
        let wanted: &[&str] = match (left, value) {
            (Expr::Field("ip", "protocol"), _) if family != Family::Ip => continue,
            (Expr::Meta("l4proto") | Expr::Field("ip", "protocol"), 6) => &["tcp"],
            (Expr::Meta("l4proto") | Expr::Field("ip", "protocol"), 17) => &["udp"],
            (Expr::Meta("l4proto") | Expr::Field("ip", "protocol"), 1) => &["icmp"],
            (Expr::Meta("l4proto"), 58) => &["icmpv6"],
            (Expr::Meta("nfproto"), 2) => &["ip"],
            (Expr::Meta("nfproto"), 10) => &["ip6", "frag", "exthdr"],
            (Expr::Field("ether", "type"), 0x0800) if family == Family::Ip => &["ip", "tcp", "udp", "icmp"],
            (Expr::Field("ether", "type"), 0x0800) => &["ip"],
            (Expr::Field("ether", "type"), 0x86dd) => &["ip6", "frag", "exthdr"],
            _ => continue,
        };
        let mut next = None;
        for s in &all[i + 1..] {
            next = match s {
                Statement::Match(e, ..) | Statement::Set(e, _) | Statement::Vmap(e, _) => first_field(e),
                Statement::Dynset(d) => first_field(&d.key),
                _ => None,
            };
            if let (None, Statement::Set(_, e)) = (next, s) {
                next = first_field(e);
            }
            // An answer of one family says which it is.
            if let (Statement::Reject(text, _), Expr::Meta("nfproto")) = (s, left) {
                next = match text.split(' ').nth(2) {
                    Some("icmp") => Some("ip"),
                    Some("icmpv6") => Some("ip6"),
                    _ => None,
                };
            }
            if next.is_some() || !matches!(s, Statement::Match(..)) {
                break;
            }
        }
        if next.is_some_and(|h| wanted.contains(&h)) {
            out.push(i);
        }
    }
    // In a table of one family its own name says nothing and is not written.
    for (i, s) in all.iter().enumerate() {
        if let Statement::Match(Expr::Meta("protocol-of-family"), ..) = s {
            out.push(i);
        }
    }
    out
}

fn first_field(e: &Expr) -> Option<&'static str> {
    match e {
        Expr::Field(header, _) => Some(header),
        Expr::Op(_, a, _) | Expr::Map(a, _) => first_field(a),
        Expr::Concat(all) => all.iter().find_map(first_field),
        _ => None,
    }
}

fn statement(s: &Statement, o: &Options) -> String {
    match s {
        Statement::Match(left, how, right) => {
            if let Expr::Flags(v, mask, ty) = right {
                return flags_match(&expr(left, o), *how, (*v, *mask), *ty, o);
            }
            let (l, r) = (expr(left, o), expr(right, o));
            let masked = matches!(left, Expr::Op(..));
            match how {
                Compare::Is | Compare::Equal if !masked => format!("{l} {r}"),
                Compare::Is | Compare::Equal => format!("{l} == {r}"),
                Compare::Not => format!("{l} != {r}"),
                Compare::Without => format!("{l} ! {r}"),
                Compare::Less => format!("{l} < {r}"),
                Compare::Greater => format!("{l} > {r}"),
                Compare::AtMost => format!("{l} <= {r}"),
                Compare::AtLeast => format!("{l} >= {r}"),
            }
        }
        Statement::Set(left, right) => format!("{} set {}", expr(left, o), expr(right, o)),
        Statement::Counter(..) if o.stateless => "counter".to_owned(),
        Statement::Counter(packets, bytes) => format!("counter packets {packets} bytes {bytes}"),
        Statement::Limit(l) => format!("limit {}", limit(l)),
        Statement::Quota(q) => format!("quota {}", quota(q, o)),
        Statement::Count { over, count } => format!("ct count {}{count}", if *over { "over " } else { "" }),
        Statement::Object(kind, name, _) => format!("{} name \"{name}\"", kind.word()),
        Statement::Dynset(d) => dynset(d, o),
        Statement::Verdict(v) => verdict_text(v),
        Statement::Vmap(key, map) => format!("{} vmap {}", expr(key, o), expr(map, o)),
        Statement::Reject(text, code) => match code {
            Some(code) if o.numeric && text.contains("icmpx") => {
                format!("reject with icmpx {}", icmpx(*code))
            }
            _ => text.clone(),
        },
        Statement::Notrack => "notrack".to_owned(),
        Statement::Log(text) | Statement::Nat(text) | Statement::Other(text) => text.clone(),
    }
}

/// Flags compared (`relational_binop_postprocess`, `relational_expr_print`).
fn flags_match(l: &str, how: Compare, (v, mask): (u128, Option<u128>), ty: Type, o: &Options) -> String {
    let listed = |v: u128| flags(v, ty, ",", o);
    let not = if how == Compare::Not { "!= " } else { "" };
    if let Some(mask) = mask {
        return match mask == v && mask.is_power_of_two() {
            true => format!("{l} & {0} {1} {0}", listed(v), if how == Compare::Not { "!=" } else { "==" }),
            false => format!("{l} {not}{} / {}", listed(v), listed(mask)),
        };
    }
    let several = v.count_ones() > 1;
    match how {
        Compare::Without => format!("{l} ! {}", listed(v)),
        Compare::Equal | Compare::Not if several && ty != Type::TcpFlag => {
            format!("{l} {not}{}", flags(v, ty, " | ", o))
        }
        Compare::Equal | Compare::Not => {
            let value = if several { format!("0x{v:x}") } else { listed(v) };
            format!("{l} {} {value}", if how == Compare::Not { "!=" } else { "==" })
        }
        _ => format!("{l} {}", listed(v)),
    }
}

/// The number of an ICMP code among those of both families.
fn icmpx(code: u8) -> u8 {
    match code {
        0 => 0,
        3 => 1,
        1 => 2,
        _ => 3,
    }
}

fn limit(l: &Limit) -> String {
    let unit = match l.per_s {
        1 => "second",
        60 => "minute",
        3600 => "hour",
        86_400 => "day",
        _ => "week",
    };
    let over = if l.over { "over " } else { "" };
    match l.bytes {
        false if l.burst == 5 => format!("rate {over}{}/{unit}", l.rate),
        false => format!("rate {over}{}/{unit} burst {} packets", l.rate, l.burst),
        true if l.burst == 0 => format!("rate {over}{}/{unit}", sized(l.rate)),
        true => format!("rate {over}{}/{unit} burst {}", sized(l.rate), sized(l.burst)),
    }
}

/// Bytes in the greatest unit without a rest (`get_rate`).
fn sized(n: u64) -> String {
    match n {
        n if n % (1024 * 1024) == 0 => format!("{} mbytes", n / (1024 * 1024)),
        n if n % 1024 == 0 => format!("{} kbytes", n / 1024),
        n => format!("{n} bytes"),
    }
}

fn quota(q: &Quota, o: &Options) -> String {
    let over = if q.over { "over " } else { "" };
    // What came after the last byte is not told.
    match q.used.min(q.bytes) {
        used if used > 0 && !o.stateless => format!("{over}{} used {}", sized(q.bytes), sized(used)),
        _ => format!("{over}{}", sized(q.bytes)),
    }
}

fn dynset(d: &Dynset, o: &Options) -> String {
    let mut out = match d.meter {
        Some(size) => format!("meter {} size {size} {{ ", d.set),
        None => format!("{} @{} {{ ", d.op.word(), d.set),
    };
    out.push_str(&expr(&d.key, o));
    if let Some(ms) = d.timeout {
        let _ = write!(out, " timeout {}", time::text(ms));
    }
    if !d.states.is_empty() {
        let plain = Options { stateless: true, ..o.clone() };
        let _ = write!(out, " {}", states(&d.states, &plain));
    }
    if let Some(data) = &d.data {
        let _ = write!(out, " : {}", expr(data, o));
    }
    out.push_str(" }");
    out
}

/// An expression.
pub fn expr(e: &Expr, o: &Options) -> String {
    match e {
        Expr::Meta(key @ ("iifname" | "oifname" | "iif" | "oif" | "skuid" | "skgid")) => match *key {
            "skuid" | "skgid" => format!("meta {key}"),
            _ => (*key).to_owned(),
        },
        Expr::Meta(key) => format!("meta {key}"),
        Expr::Ct(key, None) => format!("ct {key}"),
        Expr::Ct(key, Some(reply)) => {
            format!("ct {} {key}", if *reply { "reply" } else { "original" })
        }
        Expr::Field(header, field) => format!("{header} {field}"),
        Expr::Fib { by, result } => {
            let words: Vec<&str> = fib::WORDS.iter().filter(|w| by & w.1 != 0).map(|w| w.0).collect();
            let result = match result {
                FibResult::Type => "type",
                FibResult::Oif | FibResult::Present => "oif",
                FibResult::Oifname => "oifname",
            };
            format!("fib {} {result}", words.join(" . "))
        }
        Expr::Numgen { random, modulus, offset } => {
            let mode = if *random { "random" } else { "inc" };
            let tail = if *offset == 0 { String::new() } else { format!(" offset {offset}") };
            format!("numgen {mode} mod {modulus}{tail}")
        }
        Expr::Hash { key, modulus, seed, offset } => {
            let mut out = match key {
                Some(key) => format!("jhash {} mod {modulus}", expr(key, o)),
                None => format!("symhash mod {modulus}"),
            };
            if let Some(seed) = seed {
                let _ = write!(out, " seed 0x{seed:x}");
            }
            if *offset > 0 {
                let _ = write!(out, " offset {offset}");
            }
            out
        }
        Expr::Value(v, ty) => ty.text(*v, o.numeric, o.services),
        Expr::Name(name) => format!("\"{name}\""),
        // Ports in ranges are always numbers.
        Expr::Range(a, b, ty) => {
            format!("{}-{}", ty.text(*a, o.numeric, false), ty.text(*b, o.numeric, false))
        }
        Expr::Prefix(v, len, ty) => format!("{}/{len}", ty.text(*v, o.numeric, false)),
        Expr::Flags(v, mask, ty) => {
            let one = flags(*v, *ty, ",", o);
            match mask {
                Some(mask) => format!("{one} / {}", flags(*mask, *ty, ",", o)),
                None => one,
            }
        }
        Expr::Set(s) => {
            let all: Vec<String> = in_order(s).into_iter().map(|e| element(e, o)).collect();
            format!("{{ {} }}", all.join(", "))
        }
        Expr::Named(name, _) => format!("@{name}"),
        Expr::Op(op, a, b) => {
            let right = match b.as_ref() {
                Expr::Flags(v, None, ty) if v.count_ones() > 1 => format!("({})", flags(*v, *ty, " | ", o)),
                b => expr(b, o),
            };
            format!("{} {} {right}", expr(a, o), op.sign())
        }
        Expr::Map(key, map) => format!("{} map {}", expr(key, o), expr(map, o)),
        Expr::Concat(all) => all.iter().map(|e| expr(e, o)).collect::<Vec<_>>().join(" . "),
    }
}

/// Names of the bits that are set, from the lowest, with `between` between them.
fn flags(v: u128, ty: Type, between: &str, o: &Options) -> String {
    let bits: Vec<String> = (0..ty.bits())
        .map(|b| 1u128 << b)
        .filter(|b| v & b != 0)
        .map(|b| ty.text(b, o.numeric, false))
        .collect();
    if bits.is_empty() { ty.text(0, true, false) } else { bits.join(between) }
}
