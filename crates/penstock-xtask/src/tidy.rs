//! Rules that the compiler does not check.

use crate::outside;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The edges there may be: a crate and what it may depend on. Arrows point down only.
const EDGES: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("packet", &["model"]),
    ("sched", &["model", "packet"]),
    ("tcp", &["model", "packet"]),
    ("lang", &["model"]),
    ("host", &["model", "packet", "sched", "lang"]),
    ("shell", &["model", "lang", "host"]),
    ("packetdrill", &["model", "packet", "sched", "tcp", "host", "shell"]),
    ("check", &["model", "packet", "sched", "lang", "host", "shell"]),
    ("sim", &["model", "packet", "sched", "tcp", "lang", "host"]),
    ("files", &[]),
    ("kernel", &["model", "lang", "measure", "files"]),
    ("measure", &["model"]),
    ("replay", &["model", "packet", "sched", "lang", "host", "shell", "measure", "files"]),
    ("machine", &["model", "tcp", "lang", "host", "shell", "sim", "files"]),
    (
        "lab",
        &[
            "model", "packet", "sched", "tcp", "lang", "host", "shell", "check", "sim", "kernel", "measure",
            "files", "replay",
        ],
    ),
    ("study", &["model", "sched", "kernel", "measure", "files", "lab"]),
    ("ask", &["model", "lang", "host", "shell", "check", "measure", "replay", "machine", "lab"]),
    ("lsp", &["model", "lab", "ask"]),
    ("serve", &["model", "files", "measure", "lab", "ask"]),
    ("link", &["model", "packet", "sched", "lang"]),
    ("wild", &[]),
    (
        "cli",
        &[
            "model",
            "check",
            "kernel",
            "measure",
            "files",
            "packetdrill",
            "replay",
            "machine",
            "lab",
            "study",
            "lsp",
            "serve",
        ],
    ),
    (
        "xtask",
        &[
            "model", "packet", "sched", "tcp", "lang", "host", "shell", "check", "sim", "measure", "kernel",
            "replay", "lab", "wild",
        ],
    ),
];

/// The workspace's root folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/penstock-xtask lies two below")
        .to_owned()
}

/// All rules; prints what breaks them.
pub fn run() -> Result<()> {
    let mut faults = edges()?;
    faults.extend(outside::faults(&metadata()?)?);
    faults.extend(features()?);
    faults.extend(kinds()?);
    faults.extend(texts()?);
    faults.extend(tests_left_out()?);
    faults.extend(crate::circles::faults(&root())?);
    faults.extend(crate::lines::run()?);
    for fault in &faults {
        eprintln!("tidy: {fault}");
    }
    if faults.is_empty() {
        println!(
            "tidy: {} crates keep to their edges; kinds, docs, variables and texts are in order",
            EDGES.len()
        );
        return Ok(());
    }
    bail!("{} faults", faults.len())
}

fn short(name: &str) -> &str {
    name.strip_prefix("penstock-").unwrap_or(name)
}

/// Our packages, as cargo knows them.
pub fn metadata() -> Result<serde_json::Value> {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .context("cargo metadata")?;
    if !out.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}

/// Every dependency between our crates (tests' own included) against [`EDGES`], from `cargo metadata`.
fn edges() -> Result<Vec<String>> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("no packages in cargo metadata")?;
    let ours: BTreeMap<&str, &serde_json::Value> =
        packages.iter().filter_map(|p| Some((short(p["name"].as_str()?), p))).collect();
    let mut faults = Vec::new();
    for (name, package) in &ours {
        let Some((_, allowed)) = EDGES.iter().find(|(n, _)| n == name) else {
            faults.push(format!("crate {name} has no line in the table of edges (xtask/src/tidy.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let target = short(dependency["name"].as_str().unwrap_or_default());
            let test_only = dependency["kind"].as_str() == Some("dev");
            if ours.contains_key(target) && !allowed.contains(&target) && !test_only {
                faults.push(format!("{name} depends on {target}; it may depend on {allowed:?} only"));
            }
        }
    }
    Ok(faults)
}

/// Other people's crates are built once: what tests depend on asks of no crate a feature that it has not for the programs too.
fn features() -> Result<Vec<String>> {
    let tree = |edges: &str| -> Result<BTreeMap<String, String>> {
        let args = ["tree", "--workspace", "--offline", "--prefix", "none", "-f", "{p}\t{f}", "--edges"];
        let out = Command::new(env!("CARGO")).args(args).arg(edges).current_dir(root()).output()?;
        if !out.status.success() {
            bail!("cargo tree: {}", String::from_utf8_lossy(&out.stderr));
        }
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let line =
            |l: &str| l.split_once('\t').map(|(p, f)| (p.to_owned(), f.trim_end_matches(" (*)").to_owned()));
        Ok(text.lines().filter_map(line).collect())
    };
    let (programs, tests) = (tree("normal,build")?, tree("normal,build,dev")?);
    let differs = programs.iter().filter_map(|(name, of_programs)| {
        let of_tests = tests.get(name).filter(|f| *f != of_programs)?;
        Some(format!(
            "{name} is built twice: with the features [{of_programs}] for programs, [{of_tests}] for tests; see the end of \
             crates/penstock-xtask/Cargo.toml"
        ))
    });
    Ok(differs.collect())
}

/// Every kind's file names what it follows and, if it is a classifier's, has its page; what else a qdisc's kind needs: [`crate::kinds`].
fn kinds() -> Result<Vec<String>> {
    let mut faults = crate::kinds::missing()?;
    for folder in ["sch", "cls"] {
        let path = root().join("crates/penstock-sched/src").join(folder);
        let Ok(entries) = std::fs::read_dir(&path) else { continue };
        let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        files.sort();
        for file in files {
            let stem = file.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
            if stem == "mod" {
                continue;
            }
            let source = if file.is_dir() { file.join("mod.rs") } else { file.clone() };
            let text = std::fs::read_to_string(&source).with_context(|| source.display().to_string())?;
            if !text.contains("pub static SPEC") {
                continue;
            }
            if !text.contains("Follows:") {
                faults.push(format!("{} does not say what it follows", source.display()));
            }
            let (registry, name) = (path.join("mod.rs"), format!("&{stem}::"));
            if folder == "sch" && !std::fs::read_to_string(&registry)?.contains(&name) {
                faults.push(format!("kind {stem} is not registered in {}", registry.display()));
            }
            if folder == "cls" && !root().join("docs/kinds").join(format!("{stem}.md")).exists() {
                faults.push(format!("classifier {stem} has no page docs/kinds/{stem}.md"));
            }
        }
    }
    Ok(faults)
}

/// Where the tests of a crate are one program, it names each file: one that it does not name would be run by nobody.
fn tests_left_out() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for crate_ in std::fs::read_dir(root().join("crates"))? {
        let folder = crate_?.path().join("tests");
        let Ok(named) = std::fs::read_to_string(folder.join("all.rs")) else { continue };
        for file in std::fs::read_dir(&folder)? {
            let path = file?.path();
            let name = path.file_stem().and_then(|n| n.to_str()).unwrap_or_default();
            let is_rust = path.extension().is_some_and(|e| e == "rs");
            if is_rust && name != "all" && !named.lines().any(|l| l == format!("mod {name};")) {
                faults.push(format!("{}: all.rs does not name it: no test of it is run", path.display()));
            }
        }
    }
    faults.sort();
    Ok(faults)
}

/// Nothing in the project's texts promises later work or speaks of the place it was written at.
fn texts() -> Result<Vec<String>> {
    let out = Command::new("git").args(["ls-files"]).current_dir(root()).output();
    let Ok(out) = out else { return Ok(Vec::new()) };
    let mut faults = Vec::new();
    let me = "crates/penstock-xtask/src/tidy.rs";
    let words = ["TODO", "FIXME", "XXX", "todo!(", "unimplemented!(", "/tmp/", "/work/"];
    for name in String::from_utf8_lossy(&out.stdout).lines().filter(|n| *n != me) {
        let source = [".rs", ".toml", ".md"].iter().any(|e| name.ends_with(e));
        if !source || name.starts_with("vectors/") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root().join(name)) else { continue };
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|w| line.contains(**w)) {
                faults.push(format!("{name}:{}: {word}", number + 1));
            }
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    #[test]
    fn crates_keep_to_their_edges() {
        assert_eq!(super::edges().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn who_comes_from_outside_finds_what_is_needed() {
        assert_eq!(super::outside::faults(&super::metadata().unwrap()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn kinds_are_documented() {
        assert_eq!(super::kinds().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn no_test_is_left_out() {
        assert_eq!(super::tests_left_out().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn texts_are_clean() {
        assert_eq!(super::texts().unwrap(), Vec::<String>::new());
    }
}
