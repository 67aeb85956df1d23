//! What somebody relies on who comes from outside: variables that are told, crates that introduce themselves, one number for the oldest Rust.

use crate::tidy::root;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Everything that breaks these rules; `metadata` is that of `cargo metadata --no-deps`.
pub fn faults(metadata: &Value) -> Result<Vec<String>> {
    let text = |name: &str| fs::read_to_string(root().join(name)).with_context(|| name.to_owned());
    let contributing = text("CONTRIBUTING.md")?;
    let mut faults = variables(&used()?, &contributing);
    faults.extend(oldest(&text("Cargo.toml")?, &contributing, &text(".github/workflows/ci.yml")?)?);
    faults.extend(profiles(&text("Cargo.toml")?, metadata)?);
    for package in metadata["packages"].as_array().into_iter().flatten() {
        faults.extend(introduces_itself(package)?);
    }
    faults.extend(twice(&examples(metadata)));
    Ok(faults)
}

/// The variables that sources name.
fn used() -> Result<BTreeSet<String>> {
    let out = Command::new("git").args(["ls-files"]).current_dir(root()).output();
    let mut found = BTreeSet::new();
    let Ok(out) = out else { return Ok(found) };
    for name in String::from_utf8_lossy(&out.stdout).lines() {
        if name == "test" || [".rs", ".py", ".sh", ".yml"].iter().any(|e| name.ends_with(e)) {
            let text = fs::read(root().join(name)).unwrap_or_default();
            found.extend(names(&String::from_utf8_lossy(&text)));
        }
    }
    Ok(found)
}

/// Our variables in a text.
fn names(text: &str) -> BTreeSet<String> {
    let whole = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
        rest[..end.unwrap_or(rest.len())].trim_end_matches('_').to_owned()
    };
    let places = text.match_indices(concat!("PENSTOCK", "_"));
    // `PENSTOCK_*` stands for many names and is not one.
    places.map(|(at, _)| whole(&text[at..])).filter(|name| name.contains('_')).collect()
}

/// Each variable has its line in CONTRIBUTING.md, and each line its variable.
fn variables(used: &BTreeSet<String>, contributing: &str) -> Vec<String> {
    let told = names(contributing);
    let untold = used.difference(&told).map(|v| format!("CONTRIBUTING.md does not say what {v} means"));
    let gone = told.difference(used).map(|v| format!("CONTRIBUTING.md tells of {v}, which nothing reads"));
    untold.chain(gone).collect()
}

/// The oldest Rust is one number, wherever it stands.
fn oldest(workspace: &str, contributing: &str, workflow: &str) -> Result<Vec<String>> {
    let table: toml::Table = workspace.parse().context("Cargo.toml")?;
    let version = table.get("workspace").and_then(|w| w.get("package")?.get("rust-version")?.as_str());
    let version = version.context("Cargo.toml has no workspace.package.rust-version")?;
    let mut faults = Vec::new();
    if !contributing.contains(&format!("Rust {version} or later")) {
        faults
            .push(format!("CONTRIBUTING.md does not say \"Rust {version} or later\", as rust-version does"));
    }
    if !workflow.contains(&format!("\"{version}\"")) {
        faults
            .push(format!(".github/workflows/ci.yml does not try Rust {version}, as rust-version promises"));
    }
    Ok(faults)
}

/// A profile that names one of our crates names one that there is: cargo only warns.
fn profiles(workspace: &str, metadata: &Value) -> Result<Vec<String>> {
    let table: toml::Table = workspace.parse().context("Cargo.toml")?;
    let ours: BTreeSet<&str> =
        metadata["packages"].as_array().into_iter().flatten().filter_map(|p| p["name"].as_str()).collect();
    let mut faults = Vec::new();
    for (profile, rules) in table.get("profile").and_then(toml::Value::as_table).into_iter().flatten() {
        for name in
            rules.get("package").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys)
        {
            if name.starts_with("penstock-") && !ours.contains(name.as_str()) {
                faults.push(format!("Cargo.toml: profile {profile} names {name}, which there is not"));
            }
        }
    }
    Ok(faults)
}

/// Whether a package is for others to use.
pub fn is_published(package: &Value) -> bool {
    // `publish = false` is an empty list of registries.
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

/// A crate that is published has a description, a README, and, where it is a library, an example that runs; the README names it.
fn introduces_itself(package: &Value) -> Result<Vec<String>> {
    if !is_published(package) {
        return Ok(Vec::new());
    }
    let name = package["name"].as_str().context("a package without a name")?;
    let folder = Path::new(package["manifest_path"].as_str().context("no manifest_path")?).with_file_name("");
    let mut faults = Vec::new();
    if package["description"].as_str().is_none_or(str::is_empty) {
        faults.push(format!("{name} has no description"));
    }
    let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
    if !readme.starts_with(&format!("# {name}\n")) {
        faults.push(format!("{name} has no README.md that begins with its name"));
    }
    let is =
        |target: &Value, kind: &str| target["kind"].as_array().is_some_and(|k| k.iter().any(|k| k == kind));
    let targets = package["targets"].as_array().map_or(&[][..], Vec::as_slice);
    let examples: Vec<&str> =
        targets.iter().filter(|t| is(t, "example")).filter_map(|t| t["name"].as_str()).collect();
    if targets.iter().any(|t| is(t, "lib")) && examples.is_empty() {
        faults.push(format!("{name} has no example"));
    }
    for example in examples {
        if !readme.contains(&format!("-p {name} --example {example}")) {
            faults.push(format!("{name}'s README.md does not say how its example {example} is run"));
        }
    }
    Ok(faults)
}

/// Examples of our crates: package and example, in order.
pub fn examples(metadata: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        for target in package["targets"].as_array().into_iter().flatten() {
            if target["kind"].as_array().is_some_and(|k| k.iter().any(|k| k == "example")) {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                found.push((text(&package["name"]), text(&target["name"])));
            }
        }
    }
    found.sort();
    found
}

/// Examples of several crates that have one name: the build keeps one of them.
fn twice(examples: &[(String, String)]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let again = examples.iter().filter(|(_, example)| !seen.insert(example));
    again
        .map(|(package, example)| format!("{package}'s example {example} has the name of another crate's"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_are_told_and_read() {
        let text = concat!("env(\"PENSTOCK", "_A_B\") PENSTOCK", "_* ${PENSTOCK", "_C:0:2}");
        let used = names(text);
        assert_eq!(used.iter().map(|v| &v[9..]).collect::<Vec<_>>(), ["A_B", "C"]);
        assert_eq!(variables(&used, text), [""; 0]);
        let told = concat!("`PENSTOCK", "_C` `PENSTOCK", "_D`");
        let faults = variables(&used, told);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            faults[0].ends_with("_A_B means") && faults[1].ends_with("_D, which nothing reads"),
            "{faults:?}"
        );
    }

    #[test]
    fn the_oldest_rust_is_one_number() {
        let workspace = "[workspace.package]\nrust-version = '1.80'";
        assert_eq!(oldest(workspace, "Rust 1.80 or later", "[\"1.80\", stable]").unwrap(), [""; 0]);
        assert_eq!(oldest(workspace, "Rust 1.8 or later", "1.80").unwrap().len(), 2);
        assert!(oldest("[workspace]", "", "").is_err());
    }

    #[test]
    fn profiles_name_crates_that_there_are() {
        let metadata = json!({"packages": [{"name": "penstock-a"}]});
        let of =
            |name| profiles(&format!("[profile.x.package.{name}]\nopt-level = 1"), &metadata).unwrap().len();
        assert_eq!((of("penstock-a"), of("penstock-b"), of("other")), (0, 1, 0));
    }

    #[test]
    fn examples_have_names_of_their_own() {
        let of = |package: &str, example: &str| (package.to_owned(), example.to_owned());
        assert_eq!(twice(&[of("a", "x"), of("a", "y"), of("b", "z")]), [""; 0]);
        assert_eq!(twice(&[of("a", "x"), of("b", "x")]), ["b's example x has the name of another crate's"]);
    }

    #[test]
    fn crates_introduce_themselves() {
        let package = |publish: Value, kinds: &[&str]| {
            let targets: Vec<Value> = kinds.iter().map(|k| json!({"kind": [k], "name": "it"})).collect();
            json!({"name": "x", "manifest_path": "nowhere/Cargo.toml", "publish": publish, "targets": targets})
        };
        assert_eq!(introduces_itself(&package(json!([]), &["lib"])).unwrap(), [""; 0]);
        assert_eq!(
            introduces_itself(&package(Value::Null, &["lib"])).unwrap(),
            ["x has no description", "x has no README.md that begins with its name", "x has no example"]
        );
        assert_eq!(introduces_itself(&package(Value::Null, &["lib", "example"])).unwrap().len(), 3);
        assert_eq!(introduces_itself(&package(Value::Null, &["bin"])).unwrap().len(), 2);
    }
}
