//! Modules that import each other in a circle.
//!
//! A module uses another where its code says `use crate::a::B`, `super::a::B` or `crate::a::b()`. A folder and what lies in it count as one
//! towards the outside; its files are then compared among themselves. A module and those within it are free to use each other.

use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crates whose modules must not.
pub const CRATES: &[&str] = &["sim", "tcp"];

/// A module: its path, and its source.
type Source = (Vec<String>, String);
/// Which module uses which within one folder, by name.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Every circle among the modules of [`CRATES`].
pub fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for name in CRATES {
        let src = root.join(format!("crates/penstock-{name}/src"));
        let mut sources = Vec::new();
        read(&src, &[], &mut sources)?;
        for (folder, members) in circles(&sources) {
            let place = if folder.is_empty() { String::new() } else { format!(" in {}", folder.join("::")) };
            faults.push(format!("penstock-{name}: modules{place} import each other: {}", members.join(", ")));
        }
    }
    Ok(faults)
}

fn read(folder: &Path, path: &[String], into: &mut Vec<Source>) -> Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .filter_map(|e| Some(e.ok()?.path()))
        .collect();
    entries.sort();
    for entry in entries {
        let stem = entry.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
        let mut module = path.to_vec();
        if entry.is_dir() {
            module.push(stem);
            read(&entry, &module, into)?;
        } else if entry.extension().is_some_and(|e| e == "rs") {
            if !matches!(stem.as_str(), "lib" | "main" | "mod") {
                module.push(stem);
            }
            into.push((
                module,
                std::fs::read_to_string(&entry).with_context(|| entry.display().to_string())?,
            ));
        }
    }
    Ok(())
}

/// The circles: the folder they are in, and who takes part.
fn circles(sources: &[Source]) -> Vec<(Vec<String>, Vec<String>)> {
    let modules: BTreeSet<&[String]> = sources.iter().map(|s| s.0.as_slice()).collect();
    let tests: BTreeSet<Vec<String>> = sources.iter().flat_map(|s| tests_of(&s.0, &s.1)).collect();
    let codes: Vec<(&[String], String)> = sources
        .iter()
        .filter(|s| !tests.iter().any(|test| s.0.starts_with(test)))
        .map(|s| (s.0.as_slice(), code(&s.1)))
        .collect();
    // What a module passes on under its own name (`pub use a::B`).
    let mut passed: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (module, code) in &codes {
        for import in imports(code).into_iter().filter(|i| i.public) {
            let mut name = module.to_vec();
            name.extend(import.path.last().cloned());
            passed.insert(name, absolute(module, &import.path, &modules));
        }
    }
    let mut graphs: BTreeMap<Vec<String>, Graph> = BTreeMap::new();
    for (module, code) in &codes {
        for import in imports(code) {
            let mut path = absolute(module, &import.path, &modules);
            // Not round and round.
            for _ in 0..8 {
                match passed.get(&path) {
                    Some(there) if *there != path => path = there.clone(),
                    _ => break,
                }
            }
            while !modules.contains(path.as_slice()) && path.pop().is_some() {}
            let common = module.iter().zip(&path).take_while(|(a, b)| a == b).count();
            if common < module.len() && common < path.len() {
                let graph = graphs.entry(path[..common].to_vec()).or_default();
                graph.entry(module[common].clone()).or_default().insert(path[common].clone());
            }
        }
    }
    let mut found = Vec::new();
    for (folder, graph) in graphs {
        let mut seen = BTreeSet::new();
        for name in graph.keys() {
            let circle: Vec<String> =
                reach(&graph, name).into_iter().filter(|other| reach(&graph, other).contains(name)).collect();
            if !circle.is_empty() && seen.insert(circle.clone()) {
                found.push((folder.clone(), circle));
            }
        }
    }
    found
}

/// What can be come to from `name`, itself only where it lies on a circle.
fn reach(graph: &Graph, name: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut todo = vec![name.to_owned()];
    while let Some(at) = todo.pop() {
        for next in graph.get(&at).into_iter().flatten() {
            if seen.insert(next.clone()) {
                todo.push(next.clone());
            }
        }
    }
    seen
}

/// The files that a module has for its tests alone (`#[cfg(test)] mod NAME;`).
fn tests_of<'a>(module: &'a [String], text: &'a str) -> impl Iterator<Item = Vec<String>> + 'a {
    let names = text.split("#[cfg(test)]\nmod ").skip(1).filter_map(|rest| Some(rest.split_once(';')?.0));
    let is_name = |name: &&str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    names.filter(is_name).map(move |name| [module, &[name.to_owned()]].concat())
}

/// The text without comments, and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().map(|l| l.find("//").map_or(l, |at| &l[..at]));
    lines.collect::<Vec<_>>().join("\n")
}

/// A path that the code names.
struct Import {
    path: Vec<String>,
    /// It is passed on.
    public: bool,
}

fn imports(code: &str) -> Vec<Import> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = ["crate::", "super::", "use "].iter().filter_map(|w| rest.find(w)).min() {
        let (before, from) = rest.split_at(at);
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '(';
        let whole = from.starts_with("use ") && before.chars().next_back().is_none_or(char::is_whitespace);
        if whole {
            let end = from.find(';').unwrap_or(from.len());
            let public = before.lines().next_back().is_some_and(|l| l.trim_start().starts_with("pub"));
            expand(&from[4..end], &[], public, &mut found);
            rest = &from[end..];
        } else if from.starts_with("use ") || before.chars().next_back().is_some_and(|c| word(c) && c != '(')
        {
            rest = &from[4..];
        } else {
            let end =
                from.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(from.len());
            expand(&from[..end], &[], false, &mut found);
            rest = &from[end..];
        }
    }
    found
}

/// `a::{b, c::D}` is `a::b` and `a::c::D`.
fn expand(text: &str, prefix: &[String], public: bool, into: &mut Vec<Import>) {
    let text = text.trim();
    let Some(open) = text.find('{') else {
        let text = text.split(" as ").next().unwrap_or(text);
        let mut path = prefix.to_vec();
        path.extend(
            text.split("::")
                .map(str::trim)
                .filter(|p| !p.is_empty() && *p != "self" && *p != "*")
                .map(str::to_owned),
        );
        into.push(Import { path, public });
        return;
    };
    let mut outer = prefix.to_vec();
    outer.extend(text[..open].split("::").map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned));
    let inner = text[open + 1..].strip_suffix('}').unwrap_or(&text[open + 1..]);
    let (mut depth, mut from) = (0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&inner[from..at], &outer, public, into);
                from = at + 1;
            }
            _ => {}
        }
    }
    if !inner[from..].trim().is_empty() {
        expand(&inner[from..], &outer, public, into);
    }
}

/// A path as `module` writes it, from the crate's root; of another crate: nothing.
fn absolute(module: &[String], path: &[String], modules: &BTreeSet<&[String]>) -> Vec<String> {
    let Some(first) = path.first() else { return Vec::new() };
    if first == "crate" {
        return path[1..].to_vec();
    }
    let ups = path.iter().take_while(|p| *p == "super").count();
    let mut from = module[..module.len().saturating_sub(ups)].to_vec();
    from.extend(path[ups..].iter().cloned());
    let child = [module, std::slice::from_ref(first)].concat();
    if ups > 0 || modules.contains(child.as_slice()) { from } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(Vec<String>, Vec<String>)> {
        let path = |name: &str| name.split("::").filter(|p| !p.is_empty()).map(str::to_owned).collect();
        circles(&files.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect::<Vec<_>>())
    }

    #[test]
    fn a_circle_is_found() {
        let files = [
            ("a", "use crate::b::{B, C};"),
            ("b", "use crate::c::x::D;"),
            ("c::x", "fn f() { crate::a::g() }"),
            ("c", ""),
        ];
        assert_eq!(found(&files), [(vec![], vec!["a".to_owned(), "b".to_owned(), "c".to_owned()])]);
    }

    #[test]
    fn within_a_folder_too() {
        let files = [("f", "mod x; mod y;"), ("f::x", "use super::y::Y;"), ("f::y", "use crate::f::x::X;")];
        assert_eq!(found(&files), [(vec!["f".to_owned()], vec!["x".to_owned(), "y".to_owned()])]);
    }

    #[test]
    fn through_a_name_that_is_passed_on() {
        let files = [("", "mod a;\npub use a::A;"), ("a", "use crate::b::B;"), ("b", "use crate::A;")];
        assert_eq!(found(&files).len(), 1);
    }

    #[test]
    fn a_folder_and_its_files_are_one() {
        let files = [
            ("", "mod a;"),
            ("a", "mod b;\nuse b::B; use crate::c::C;"),
            ("a::b", "use super::A; use crate::a::A2; // use crate::d::D"),
            ("c", "use std::fmt;\n#[cfg(test)]\nmod tests {\n use crate::a::A;\n}"),
            ("d", "use crate::a::b::B;"),
        ];
        assert_eq!(found(&files), []);
    }

    #[test]
    fn files_of_tests_alone_do_not_count() {
        let of = |head: &str| {
            let a = format!("{head}\nmod recorded;");
            found(&[("a", &a), ("a::recorded", "use crate::b::B;"), ("b", "use crate::a::A;")]).len()
        };
        assert_eq!((of(""), of("#[cfg(test)]")), (1, 0));
    }

    #[test]
    fn no_crate_on_the_list_has_any() {
        assert_eq!(faults(&crate::tidy::root()).unwrap(), Vec::<String>::new());
    }
}
