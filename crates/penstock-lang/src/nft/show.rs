//! Tables, chains, sets and rules as `nft list` prints them.
//!
//! Follows: nftables 1.0.6 `rule.c` `do_list_*`, `set_print_declaration`, `prio2str`; `expression.c` `calculate_delim`.

use super::Options;
use super::data::{Base, Compare, Data, Expr, Family, Limit, Rule, Set, Statement, Type};
use super::value::verdict_text;
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
    let word = if s.data.is_some() { "map" } else { "set" };
    let mut out = format!("\t{word} {name} {{");
    if o.handles {
        let _ = write!(out, " # handle {handle}");
    }
    out.push('\n');
    let types: Vec<&str> = s.key.iter().map(|t| t.name()).collect();
    let _ = write!(out, "\t\ttype {}", types.join(" . "));
    if let Some(data) = s.data {
        let _ = write!(out, " : {}", data.name());
    }
    out.push('\n');
    if s.interval {
        out.push_str("\t\tflags interval\n");
    }
    if let Some(comment) = comment {
        let _ = writeln!(out, "\t\tcomment \"{comment}\"");
    }
    if !s.elements.is_empty() && !o.terse {
        out.push_str("\t\telements = { ");
        let per_line = match s.key.as_slice() {
            [one] => one.per_line(),
            _ => 1,
        };
        for (i, e) in s.elements.iter().enumerate() {
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

fn element(e: &super::data::Element, o: &Options) -> String {
    let key = in_set(&e.key, o);
    match &e.data {
        None => key,
        Some(Data::Value(v)) => format!("{key} : {}", in_set(v, o)),
        Some(Data::Verdict(v)) => format!("{key} : {}", verdict_text(v)),
    }
}

/// An element's part: flags that stand together are joined by `|`, since a comma parts elements.
fn in_set(e: &Expr, o: &Options) -> String {
    match e {
        Expr::Flags(v, None, ty) => flags(*v, *ty, " | ", o),
        Expr::Concat(all) => all.iter().map(|e| in_set(e, o)).collect::<Vec<_>>().join(" . "),
        _ => expr(e, o),
    }
}

/// A rule's line, without its handle.
pub fn rule(r: &Rule, o: &Options) -> String {
    let hidden = implied(&r.statements);
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

/// Statements that only say what a later field says again: `meta l4proto tcp` before `tcp dport`.
fn implied(all: &[Statement]) -> Vec<usize> {
    let mut out = Vec::new();
    for (i, s) in all.iter().enumerate() {
        let Statement::Match(left, Compare::Is | Compare::Equal, Expr::Value(value, _)) = s else { continue };
        let wanted: &[&str] = match (left, value) {
            (Expr::Meta("l4proto"), 6) | (Expr::Field("ip", "protocol"), 6) => &["tcp"],
            (Expr::Meta("l4proto"), 17) | (Expr::Field("ip", "protocol"), 17) => &["udp"],
            (Expr::Meta("l4proto"), 1) | (Expr::Field("ip", "protocol"), 1) => &["icmp"],
            (Expr::Meta("l4proto"), 58) => &["icmpv6"],
            (Expr::Meta("nfproto"), 2) => &["ip"],
            (Expr::Meta("nfproto"), 10) => &["ip6"],
            _ => continue,
        };
        let next = all[i + 1..].iter().find_map(|s| match s {
            Statement::Match(e, ..) | Statement::Set(e, _) | Statement::Vmap(e, _) => first_field(e),
            _ => None,
        });
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
            let (l, r) = (expr(left, o), expr(right, o));
            let masked = matches!(left, Expr::Op(..));
            match how {
                Compare::Is | Compare::Equal if !masked => format!("{l} {r}"),
                Compare::Is | Compare::Equal => format!("{l} == {r}"),
                Compare::Not => format!("{l} != {r}"),
                Compare::Less => format!("{l} < {r}"),
                Compare::Greater => format!("{l} > {r}"),
                Compare::AtMost => format!("{l} <= {r}"),
                Compare::AtLeast => format!("{l} >= {r}"),
            }
        }
        Statement::Set(left, right) => format!("{} set {}", expr(left, o), expr(right, o)),
        Statement::Counter(..) if o.stateless => "counter".to_owned(),
        Statement::Counter(packets, bytes) => format!("counter packets {packets} bytes {bytes}"),
        Statement::Limit(l) => limit(l),
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
    let sized = |n: u64| match n {
        n if n > 0 && n % (1024 * 1024) == 0 => format!("{} mbytes", n / (1024 * 1024)),
        n if n > 0 && n % 1024 == 0 => format!("{} kbytes", n / 1024),
        n => format!("{n} bytes"),
    };
    match l.bytes {
        false if l.burst == 5 => format!("limit rate {over}{}/{unit}", l.rate),
        false => format!("limit rate {over}{}/{unit} burst {} packets", l.rate, l.burst),
        true if l.burst == 0 => format!("limit rate {over}{}/{unit}", sized(l.rate)),
        true => format!("limit rate {over}{}/{unit} burst {}", sized(l.rate), sized(l.burst)),
    }
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
        Expr::Numgen { random, modulus, offset } => {
            let mode = if *random { "random" } else { "inc" };
            let tail = if *offset == 0 { String::new() } else { format!(" offset {offset}") };
            format!("numgen {mode} mod {modulus}{tail}")
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
            let all: Vec<String> = s.elements.iter().map(|e| element(e, o)).collect();
            format!("{{ {} }}", all.join(", "))
        }
        Expr::Named(name, _) => format!("@{name}"),
        Expr::Op(op, a, b) => {
            format!("{} {} {}", expr(a, o), op.sign(), expr(b, o))
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
