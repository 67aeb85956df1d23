//! What may come into the build: `deny.toml`, read by `cargo deny` where it is installed, and by this file where it is not.

use crate::{outside, tidy};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use toml::Table;

/// The part of `deny.toml` that needs no program of others: licences, sources, duplicates, wildcards.
///
/// # Errors
/// A crate breaks a rule, or the list of crates cannot be had.
pub fn run() -> Result<String> {
    let path = tidy::root().join("deny.toml");
    let rules: Table = std::fs::read_to_string(&path).context("deny.toml")?.parse().context("deny.toml")?;
    let (metadata, whole) = metadata()?;
    let faults = faults(&rules, &metadata, whole)?;
    for fault in &faults {
        eprintln!("deny: {fault}");
    }
    if !faults.is_empty() {
        bail!("{} faults against deny.toml", faults.len());
    }
    let n = metadata["packages"].as_array().map_or(0, Vec::len);
    let of =
        if whole { "all platforms" } else { "this platform only: the others' crates are not downloaded" };
    Ok(format!("{n} packages ({of}) keep to deny.toml: licences, sources, duplicates, wildcards"))
}

/// Every package of the workspace, and whether those of other platforms are among them.
fn metadata() -> Result<(Value, bool)> {
    let ask = |more: &[&str]| -> Result<Value> {
        let out = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--locked"])
            .args(more)
            .current_dir(tidy::root())
            .output()
            .context("cargo metadata")?;
        if !out.status.success() {
            bail!("cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
        }
        Ok(serde_json::from_slice(&out.stdout)?)
    };
    let host = super::ci::host_triple()?;
    match ask(&["--offline"]).or_else(|_| ask(&[])) {
        Ok(all) => Ok((all, true)),
        Err(_) => Ok((ask(&["--offline", "--filter-platform", &host])?, false)),
    }
}

/// What breaks the rules. `whole`: a rule that nothing needs is a fault too.
fn faults(rules: &Table, metadata: &Value, whole: bool) -> Result<Vec<String>> {
    let list = |part: &str, key: &str| -> Result<Vec<&str>> {
        let list = rules.get(part).and_then(|p| p.get(key)?.as_array());
        let list = list.with_context(|| format!("deny.toml has no list {part}.{key}"))?;
        Ok(list.iter().filter_map(toml::Value::as_str).collect())
    };
    let (allowed, registries) = (list("licenses", "allow")?, list("sources", "allow-registry")?);
    let packages = metadata["packages"].as_array().context("no packages in cargo metadata")?;
    let mut faults = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let (name, version) = (text("name"), text("version"));
        let it = format!("{name} {version}");
        versions.entry(name).or_default().insert(version);
        if !permits(text("license"), &allowed).with_context(|| it.clone())? {
            faults.push(format!("{it}: licence {:?} is not among the allowed", text("license")));
        }
        // Ours has no source.
        if let Some(source) = package["source"].as_str() {
            let registry = source.strip_prefix("registry+");
            if !registry.is_some_and(|r| registries.contains(&r)) {
                faults.push(format!("{it}: comes from {source}"));
            }
            continue;
        }
        for needs in package["dependencies"].as_array().into_iter().flatten() {
            // A registry takes no crate whose needs have only a path.
            if needs["req"] == "*" && (needs["path"].is_null() || outside::is_published(package)) {
                faults.push(format!("{it}: takes any version of {}", needs["name"]));
            }
        }
    }
    faults.extend(duplicates(rules, &versions, whole)?);
    Ok(faults)
}

/// Several versions of a crate of which more than one has no line under `bans.skip`.
fn duplicates(rules: &Table, versions: &BTreeMap<&str, BTreeSet<&str>>, whole: bool) -> Result<Vec<String>> {
    let skips = rules.get("bans").and_then(|b| b.get("skip")?.as_array());
    let mut skipped = BTreeSet::new();
    let mut faults = Vec::new();
    for skip in skips.into_iter().flatten() {
        let spec = skip.get("crate").and_then(toml::Value::as_str).context("a skip without `crate`")?;
        if skip.get("reason").and_then(toml::Value::as_str).is_none_or(|r| r.trim().is_empty()) {
            faults.push(format!("bans.skip {spec}: no reason"));
        }
        let (name, wanted) = spec.split_once('@').with_context(|| format!("{spec}: no version"))?;
        let matching = versions.get(name).into_iter().flatten().filter(|v| is_version(v, wanted));
        let before = skipped.len();
        skipped.extend(matching.map(|&v| (name, v)));
        if whole && skipped.len() == before {
            faults.push(format!("bans.skip {spec}: nothing needs it any more"));
        }
    }
    for (name, versions) in versions {
        let left: Vec<&str> = versions.iter().copied().filter(|v| !skipped.contains(&(*name, *v))).collect();
        if left.len() > 1 {
            faults.push(format!("{name} {}: several versions, none of them skipped", left.join(", ")));
        }
    }
    Ok(faults)
}

/// Whether `version` begins with the numbers of `wanted`: 2.0.119 is of 2.
fn is_version(version: &str, wanted: &str) -> bool {
    version.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+']))
}

/// Whether an SPDX expression can be met with allowed licences. (The old slash between two is an `OR`.)
fn permits(expression: &str, allowed: &[&str]) -> Result<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = either(&words, &mut at, allowed)?;
    if at != words.len() {
        bail!("licence {expression:?} is not an expression");
    }
    Ok(met)
}

fn either(words: &[&str], at: &mut usize, allowed: &[&str]) -> Result<bool> {
    let mut met = both(words, at, allowed)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= both(words, at, allowed)?;
    }
    Ok(met)
}

fn both(words: &[&str], at: &mut usize, allowed: &[&str]) -> Result<bool> {
    let mut met = one(words, at, allowed)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed)?;
    }
    Ok(met)
}

fn one(words: &[&str], at: &mut usize, allowed: &[&str]) -> Result<bool> {
    let word = *words.get(*at).context("a licence is missing")?;
    *at += 1;
    if word == "(" {
        let met = either(words, at, allowed)?;
        if words.get(*at) != Some(&")") {
            bail!("a parenthesis of a licence is open");
        }
        *at += 1;
        return Ok(met);
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).context("WITH what?")?;
        *at += 2;
        return Ok(allowed.contains(&format!("{word} WITH {exception}").as_str()));
    }
    Ok(allowed.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn licences_are_expressions() {
        let met = |text| permits(text, &["MIT", "Zlib"]).unwrap();
        assert!(met("MIT") && met("GPL-2.0 OR MIT") && met("Apache-2.0/MIT") && met("(MIT AND Zlib) OR X"));
        assert!(!met("MIT AND X") && !met("MIT WITH Y") && !met("X") && met("Apache-2.0 WITH Y OR Zlib"));
        assert!(permits("", &[]).is_err() && permits("MIT MIT", &["MIT"]).is_err());
        assert!(permits("(MIT", &["MIT"]).is_err());
    }

    fn found(change: impl FnOnce(&mut Vec<Value>), skip: &str) -> Vec<String> {
        let rules = format!(
            "[licenses]\nallow = ['MIT']\n[sources]\nallow-registry = ['https://here']\n[bans]\nskip = [{skip}]"
        );
        let of = |name: &str, version: &str| json!({"name": name, "version": version, "license": "MIT", "source": "registry+https://here"});
        let mut packages = vec![of("a", "1.0.3"), of("b", "0.2.1")];
        change(&mut packages);
        faults(&rules.parse().unwrap(), &json!({"packages": packages}), true).unwrap()
    }

    #[test]
    fn each_rule_is_broken_by_name() {
        assert_eq!(found(|_| {}, ""), [""; 0]);
        assert_eq!(
            found(|p| p[0]["license"] = json!("GPL-3.0"), ""),
            ["a 1.0.3: licence \"GPL-3.0\" is not among the allowed"]
        );
        assert_eq!(
            found(|p| p[1]["source"] = json!("git+https://elsewhere"), ""),
            ["b 0.2.1: comes from git+https://elsewhere"]
        );
        let mut ours = json!({"name": "o", "version": "1.0.0", "license": "MIT", "source": null, "publish": [],
                              "dependencies": [{"name": "a", "req": "*"}, {"name": "p", "req": "*", "path": "/p"}]});
        assert_eq!(found(|p| p.push(ours.clone()), ""), ["o 1.0.0: takes any version of \"a\""]);
        ours["publish"] = Value::Null;
        assert_eq!(found(|p| p.push(ours), "").len(), 2);
        let twice = |p: &mut Vec<Value>| {
            let mut older = p[0].clone();
            older["version"] = json!("0.9.1");
            p.push(older);
        };
        assert_eq!(found(twice, ""), ["a 0.9.1, 1.0.3: several versions, none of them skipped"]);
        assert_eq!(found(twice, "{crate = 'a@0.9', reason = 'b needs it'}"), [""; 0]);
        assert_eq!(found(twice, "{crate = 'a@0.9'}"), ["bans.skip a@0.9: no reason"]);
        // A part of a number is none: 1 is not 10.
        assert_eq!(
            found(|_| {}, "{crate = 'a@1.0.33', reason = 'x'}"),
            ["bans.skip a@1.0.33: nothing needs it any more"]
        );
    }

    #[test]
    fn this_workspace_keeps_to_its_rules() {
        run().unwrap();
    }
}
