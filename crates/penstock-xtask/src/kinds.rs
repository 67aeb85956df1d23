//! The places a kind of qdisc has: what `tidy` asks of each kind, and what `new-kind` writes.
//!
//! What the compiler asks for is not repeated here: [`KindSpec`](sch::KindSpec) has no field with a default.

use crate::tidy;
use anyhow::{Context, Result, bail};
use penstock_lang::tc::kinds as words;
use penstock_sched::sch;
use std::fs;
use std::path::Path;

/// What is known of a kind before its files are looked at.
struct Kind<'a> {
    id: &'a str,
    /// Whether tc has words of it.
    has_words: bool,
    /// Whether it carries packets.
    simulated: bool,
}

/// What is missing of the kinds there are, a line each.
pub fn missing() -> Result<Vec<String>> {
    let root = tidy::root();
    let mut faults = Vec::new();
    for spec in sch::KINDS {
        let has_words = words::find(spec.id).is_some();
        faults.extend(places(&root, &Kind { id: spec.id, has_words, simulated: spec.simulated })?);
    }
    for kind in words::KINDS.iter().filter(|kind| !sch::KINDS.iter().any(|spec| spec.id == kind.id)) {
        faults.push(format!("kind {} has words but no file in crates/penstock-sched/src/sch", kind.id));
    }
    Ok(faults)
}

/// Whether a text has a word, between what cannot be part of one.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|w| w == word)
}

/// The places of one kind that lack it.
fn places(root: &Path, kind: &Kind) -> Result<Vec<String>> {
    let id = kind.id;
    let mut faults = Vec::new();
    // A page may tell of kinds that belong together: its first line names them, or it has one's name.
    let page = texts(&root.join("docs/kinds"), "md")?
        .into_iter()
        .find(|(name, text)| name == id || has_word(text.lines().next().unwrap_or(""), id))
        .map(|(_, text)| text);
    if page.is_none() {
        faults.push(format!("kind {id} has no page docs/kinds/{id}.md"));
    }
    let says = |words: &str| page.as_ref().is_some_and(|text| text.contains(words));
    if !kind.has_words && !says("tc knows no words") {
        faults.push(format!(
            "kind {id} has no file crates/penstock-lang/src/tc/kinds/{id}.rs, registered in kinds/mod.rs (or its page says that tc knows no words of it)"
        ));
    }
    let grammars = texts(&root.join("crates/penstock-xtask/grammar"), "txt")?;
    if !grammars.iter().any(|(_, text)| has_word(text, id)) && !says("No grammar:") {
        faults.push(format!(
            "kind {id} is in no grammar: crates/penstock-xtask/grammar/{id}.txt (or its page says `No grammar:` and why)"
        ));
    }
    // Kernels besides the main one have folders of their own.
    let folders = ["", "7.2"].map(|folder| root.join("vectors").join(folder).join(format!("{id}.jsonl")));
    let recorded = folders.iter().any(|path| path.exists());
    if kind.simulated && !recorded && !says("No vectors:") {
        faults.push(format!(
            "kind {id} carries packets without vectors/{id}.jsonl: cargo xtask record {id} (or its page says `No vectors:` and why)"
        ));
    }
    if !kind.simulated && recorded {
        faults.push(format!("kind {id} has vectors, but its SPEC says that it is not simulated"));
    }
    Ok(faults)
}

/// Name without ending, and text, of the files of a folder, by name.
fn texts(folder: &Path, ending: &str) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == ending) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            all.push((name, fs::read_to_string(&path)?));
        }
    }
    all.sort();
    Ok(all)
}

/// Options of `cargo xtask new-kind`.
#[derive(clap::Args)]
pub struct Args {
    /// Its name in tc: small letters, digits and `_`
    name: String,
}

/// Writes the skeleton of a kind.
pub fn new(args: &Args) -> Result<()> {
    for path in write(&tidy::root(), &args.name)? {
        println!("{path}");
    }
    println!(
        "It compiles and can be set up. CONTRIBUTING.md, \"A qdisc\", says what to fill in; `cargo xtask tidy` names what is missing."
    );
    Ok(())
}

/// Where the registry of the kernel's half is, and of tc's.
const REGISTRIES: [(&str, &str, &str); 2] = [
    ("crates/penstock-sched/src/sch/mod.rs", "pub mod ", "SPEC"),
    ("crates/penstock-lang/src/tc/kinds/mod.rs", "mod ", "KIND"),
];

/// Writes all files of a kind; answers their places.
fn write(root: &Path, name: &str) -> Result<Vec<String>> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
        bail!("{name:?} is not a name: small letters, digits and _");
    }
    let mut files = Vec::new();
    for (path, before, item) in REGISTRIES {
        let text = fs::read_to_string(root.join(path)).with_context(|| path.to_owned())?;
        files.push((path.to_owned(), register(&text, name, before, item).with_context(|| path.to_owned())?));
    }
    let skeletons = [
        (format!("crates/penstock-sched/src/sch/{name}.rs"), include_str!("../skeleton/sched.txt")),
        (format!("crates/penstock-lang/src/tc/kinds/{name}.rs"), include_str!("../skeleton/lang.txt")),
        (format!("crates/penstock-xtask/grammar/{name}.txt"), include_str!("../skeleton/grammar.txt")),
        (format!("docs/kinds/{name}.md"), include_str!("../skeleton/page.txt")),
    ];
    for (path, text) in skeletons {
        if root.join(&path).exists() {
            bail!("{path} is there already");
        }
        files.push((path, text.replace("@Name@", &camel(name)).replace("@name@", name)));
    }
    for (path, text) in &files {
        fs::write(root.join(path), text).with_context(|| path.clone())?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

/// `fq_pie` to `FqPie`.
fn camel(name: &str) -> String {
    let part = |part: &str| part[..part.len().min(1)].to_uppercase() + part.get(1..).unwrap_or("");
    name.split('_').map(part).collect()
}

/// A registry with the lines of one kind more, in order: `mod NAME;` and `&NAME::ITEM,`.
fn register(text: &str, name: &str, before: &str, item: &str) -> Result<String> {
    let module = format!("{before}{name};");
    let entry = format!("    &{name}::{item},");
    let of_module = |line: &str| {
        let line = line.strip_prefix("pub(super) ").or(line.strip_prefix("pub ")).unwrap_or(line);
        line.strip_prefix("mod ").and_then(|l| l.strip_suffix(';')).map(str::to_owned)
    };
    let of_entry = |line: &str| {
        let line = line.strip_prefix("    &")?.strip_suffix(&format!("::{item},"))?;
        Some(line.to_owned())
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (new, of) in [(&module, &of_module as &dyn Fn(&str) -> Option<String>), (&entry, &of_entry)] {
        if lines.contains(new) {
            bail!("{name} is registered already");
        }
        let after = |line: &String| of(line).is_some_and(|other| other.as_str() > name);
        let last = lines.iter().rposition(|line| of(line).is_some()).context("no registry")?;
        let at = lines.iter().position(after).unwrap_or(last + 1);
        lines.insert(at, new.clone());
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_kind_is_missing_from_a_place() {
        assert_eq!(missing().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn every_place_that_lacks_a_kind_is_named() {
        let kind = Kind { id: "unheard_of", has_words: false, simulated: true };
        let faults = places(&tidy::root(), &kind).unwrap().join("\n");
        for place in [
            "docs/kinds/unheard_of.md",
            "tc/kinds/unheard_of.rs",
            "grammar/unheard_of.txt",
            "vectors/unheard_of.jsonl",
        ] {
            assert!(faults.contains(place), "{place}: {faults}");
        }
    }

    #[test]
    fn a_new_kind_is_written_and_complete() {
        let root = std::env::temp_dir().join(format!("penstock-new-kind-{}", std::process::id()));
        for (path, _, _) in REGISTRIES {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::copy(tidy::root().join(path), root.join(path)).unwrap();
        }
        fs::create_dir_all(root.join("crates/penstock-xtask/grammar")).unwrap();
        fs::create_dir_all(root.join("docs/kinds")).unwrap();
        let written = write(&root, "fq_new").unwrap();
        assert_eq!(written.len(), 6, "{written:?}");
        for (path, before, item) in REGISTRIES {
            let text = fs::read_to_string(root.join(path)).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for (line, above) in [
                (format!("{before}fq_new;"), format!("{before}fq_codel;")),
                (format!("    &fq_new::{item},"), format!("    &fq_codel::{item},")),
            ] {
                let at = lines.iter().position(|l| *l == line).unwrap_or_else(|| panic!("{path}: no {line}"));
                assert_eq!(lines[at - 1], above);
            }
        }
        let spec = fs::read_to_string(root.join("crates/penstock-sched/src/sch/fq_new.rs")).unwrap();
        assert!(spec.contains("struct FqNew") && !spec.contains('@'), "{spec}");
        let kind = Kind { id: "fq_new", has_words: true, simulated: false };
        assert_eq!(places(&root, &kind).unwrap(), Vec::<String>::new());
        assert!(write(&root, "fq_new").is_err(), "written over");
        assert!(write(&root, "Bad-Name").is_err());
        fs::remove_dir_all(&root).unwrap();
    }
}
