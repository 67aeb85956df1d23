//! `xtask bench write`: makes the tables of docs/notes/speed.md anew.
//!
//! A table stands there between `<!-- NAME: made by … -->` and `<!-- end of NAME -->`; what is around it is written by hand.

use crate::{tidy, valgrind};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::process::Command;

/// Makes a table.
type Make = fn() -> Result<String>;

/// The tables, and what makes each.
const TABLES: [(&str, Make); 5] = [
    ("compare", || own(&["bench", "compare"], true)),
    ("count", || own(&["bench", "count"], false)),
    ("growth", || own(&["bench", "growth"], false)),
    ("memory", memory),
    ("queues", queues),
];

/// Makes the tables named, or all.
///
/// # Errors
/// There is no such table, the page has no place for it, or what makes it fails.
pub fn write(names: &[String]) -> Result<()> {
    let page = tidy::root().join("docs/notes/speed.md");
    for name in names {
        ensure!(TABLES.iter().any(|(known, _)| known == name), "there is no table {name}: {}", known());
    }
    for (name, make) in
        TABLES.iter().filter(|(n, _)| names.is_empty() || names.iter().any(|asked| asked == n))
    {
        println!("{name}");
        let table = make().with_context(|| format!("table {name}"))?;
        // Read anew: a table takes minutes, and somebody may have written meanwhile.
        let text = fs::read_to_string(&page)?;
        fs::write(&page, put(&text, name, &table)?)?;
    }
    Ok(())
}

fn known() -> String {
    TABLES.map(|(name, _)| name).join(", ")
}

/// The page with another table in the place of the old one.
fn put(page: &str, name: &str, table: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name}: "), format!("<!-- end of {name} -->"));
    let from = page.find(&begin).with_context(|| format!("no line begins with {begin}"))?;
    let from = from + page[from..].find('\n').context("the page ends with that line")? + 1;
    let to = from + page[from..].find(&end).with_context(|| format!("no {end}"))?;
    Ok(format!("{}\n{}\n\n{}", &page[..from], table.trim_end(), &page[to..]))
}

/// What another command of this program prints, as it is or `fenced` as text. One that fails by what it has found has made its table all the same.
fn own(args: &[&str], fenced: bool) -> Result<String> {
    let output = valgrind::own(args, false)?.output()?;
    let text = String::from_utf8(output.stdout)?;
    if text.lines().count() < 3 {
        bail!("{}", String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("it printed no table"));
    }
    Ok(if fenced { format!("```text\n{}\n```", text.trim_end()) } else { text })
}

/// Of what there are so many, to see what one takes: cases of `bench growth`.
const THINGS: [(&str, &str, u32); 8] = [
    ("hosts", "machine with a link to a router, and a flow of datagrams", 1000),
    ("sockets", "TCP connection, both ends", 2000),
    ("flows", "flow of datagrams", 2000),
    ("classes", "htb class with fq_codel, sampled and reported", 2000),
    ("htb", "htb class with a fifo that holds packets", 2000),
    ("links", "device of `ip link`", 2000),
    ("routes", "route", 10_000),
    ("conntrack", "tracked connection", 10_000),
];

/// What one of each takes: the difference between so many and twice as many, whole process, report included where there is one.
fn memory() -> Result<String> {
    let mut table = String::from("| one more | bytes |\n|---|---|\n");
    for (case, what, some) in THINGS {
        let most = |things: u32| -> Result<f64> {
            let child = ["bench", "growth", "--child", case, &things.to_string(), "0"].map(str::to_owned);
            let args: Vec<&str> = child.iter().map(String::as_str).collect();
            let (said, _) = valgrind::run(valgrind::own(&args, false)?, false)?;
            valgrind::behind(&said, "kB")
        };
        let each = (most(2 * some)? - most(some)?) * 1024.0 / f64::from(some);
        table.push_str(&format!("| {what} | {each:.0} |\n"));
    }
    Ok(table)
}

/// What Linux itself takes for one more qdisc on the way, ns: medians over noqueue on a user-mode kernel of 6.12.
const LINUX: [(&str, &str); 7] = [
    ("prio", "53"),
    ("tbf", "59"),
    ("red", "80"),
    ("htb_1_class", "123"),
    ("sfq", "133"),
    ("fq_codel", "194"),
    ("cake", "311 to 332"),
];

/// The fastest sample of each line of the bench of `penstock-sched`, of the profile 6.12 where it has both.
fn queues() -> Result<String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let output = cargo.args(["bench", "--package", "penstock-sched"]).output().context("cargo")?;
    ensure!(output.status.success(), "cargo bench failed: {}", String::from_utf8_lossy(&output.stderr));
    let rows = fastest(&String::from_utf8(output.stdout)?);
    ensure!(!rows.is_empty(), "cargo bench printed no line that could be read");
    let mut table = String::from("| one packet in and one out | ns | Linux, ns |\n|---|---|---|\n");
    for (name, ns) in rows {
        let kind = name.split(' ').next().unwrap_or(&name);
        let linux = LINUX.iter().find(|(k, _)| *k == kind).map_or("", |(_, ns)| ns);
        table.push_str(&format!("| {name} | {ns} | {linux} |\n"));
    }
    Ok(table)
}

/// Names and times of what divan prints as a tree: a line a bench, or a line for each of its arguments below it.
fn fastest(printed: &str) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut above = String::new();
    for line in printed.lines() {
        let first = line.split('│').find(|part| !part.trim().is_empty()).unwrap_or_default();
        let Some((_, entry)) = first.split_once("─ ") else { continue };
        let mut words: Vec<&str> = entry.split_whitespace().collect();
        let inner = line.starts_with(['│', ' ']);
        let time = match words[..] {
            [.., number, "ns"] if number.parse::<f64>().is_ok() => Some(number.to_owned()),
            _ => None,
        };
        if time.is_some() {
            words.truncate(words.len() - 2);
        }
        let name = words.join(" ");
        match (time, inner) {
            (None, false) => above = name,
            (Some(ns), false) => rows.push((name, ns)),
            (Some(ns), true) if name == "6.12" => rows.push((above.clone(), ns)),
            (Some(ns), true) if name != "2.6.35" => rows.push((format!("{above} {name}"), ns)),
            _ => {}
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_each_table() {
        let page = fs::read_to_string(tidy::root().join("docs/notes/speed.md")).unwrap();
        for (name, _) in TABLES {
            let new = put(&page, name, "| a table |").unwrap();
            assert!(new.contains("\n| a table |\n\n<!-- end of"), "{name}");
            assert_eq!(put(&new, name, "| a table |").unwrap(), new, "{name}: twice is once");
        }
        assert!(put(&page, "nothing", "").is_err());
    }

    #[test]
    fn divan_s_tree_is_read() {
        let printed = "\
qdiscs                         fastest       │ slowest       │ median\n\
├─ codel                       19.8 ns       │ 25.15 ns      │ 20 ns\n\
│                              50 Mitem/s    │ 39 Mitem/s    │ 49 Mitem/s\n\
├─ pfifo                                     │               │\n\
│  ├─ 6.12                     9.4 ns        │ 10.1 ns       │ 9.5 ns\n\
│  │                           100 Mitem/s   │ 99 Mitem/s    │ 98 Mitem/s\n\
│  ╰─ 2.6.35                   8.4 ns        │ 10.1 ns       │ 9.5 ns\n\
╰─ cake                                      │               │\n   \
   ╰─ besteffort flows         99.1 ns       │ 101 ns        │ 100 ns\n";
        let rows = fastest(printed);
        let told: Vec<(&str, &str)> = rows.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
        assert_eq!(told, [("codel", "19.8"), ("pfifo", "9.4"), ("cake besteffort flows", "99.1")]);
    }
}
