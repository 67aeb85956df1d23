//! Files that scripts find beside the experiment: what the words of a setup or of an app's script name below the experiment's folder.
//!
//! A script sources a file, gives it to `tc -batch`, reads it: each word that is the path of a text file there is looked up, from the
//! experiment's folder and from the script's own. What such a file names in turn is found as well.

use super::{Experiment, Loader, Script};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A file that scripts find where they run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lent {
    /// Its path from the experiment's folder.
    pub path: String,
    /// Its path as the experiment's own was given.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// How deep files name files.
const DEEP: usize = 8;
/// Most files.
const FILES: usize = 1000;

/// The files that the scripts of an experiment name.
pub(super) fn of(experiment: &Experiment, loader: Loader<'_>) -> Vec<Lent> {
    let main = experiment.sources.first().map_or("", |s| s.name.as_str());
    let folder = folder_of(main);
    let setups = experiment.hosts.iter().flat_map(|h| &h.setup);
    let scripts = setups.chain(experiment.apps.iter().filter_map(|a| a.script.as_ref()));
    let mut found: BTreeMap<String, Lent> = BTreeMap::new();
    let mut tried: BTreeSet<String> = BTreeSet::new();
    let mut texts: Vec<(String, String)> = Vec::new();
    for Script { file, text, .. } in scripts {
        texts.push((below(&folder, &folder_of(file)), text.clone()));
    }
    for app in experiment.apps.iter().filter(|a| a.script.is_none()) {
        texts.push((String::new(), app.run.clone()));
    }
    for _ in 0..DEEP {
        let mut next = Vec::new();
        for (own, text) in std::mem::take(&mut texts) {
            for word in paths(&text) {
                for path in [word.clone(), joined(&own, &word)] {
                    if found.len() >= FILES || !tried.insert(path.clone()) {
                        continue;
                    }
                    let name = joined(&folder, &path);
                    if let Ok(text) = loader(&name) {
                        next.push((folder_of(&path), text.clone()));
                        found.insert(path.clone(), Lent { path, name, text });
                    }
                }
            }
        }
        texts = next;
    }
    found.into_values().collect()
}

fn folder_of(path: &str) -> String {
    Path::new(path).parent().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default()
}

fn joined(folder: &str, path: &str) -> String {
    if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") }
}

/// A folder's path from another above it; empty where it lies elsewhere.
fn below(folder: &str, path: &str) -> String {
    match path.strip_prefix(folder) {
        Some(rest) if folder.is_empty() => rest.to_owned(),
        Some(rest) => rest.strip_prefix('/').unwrap_or_default().to_owned(),
        None => String::new(),
    }
}

/// The words of a script that may be paths: those with a dot or a slash, and whatever is sourced. `$(dirname "$0")/x`, `${0%/*}/x` and
/// `$HERE/x` are `x`.
fn paths(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut before = "";
    for line in text.lines().filter(|l| !l.trim_start().starts_with('#')) {
        for word in line.split(|c: char| c.is_whitespace() || "\"'`;&|<>()=,".contains(c)) {
            if word.is_empty() {
                continue;
            }
            let sourced = matches!(before, "." | "source");
            before = word;
            let path = match word.rfind(['$', '}']) {
                Some(_) => word.split_once('/').filter(|(first, _)| first.starts_with('$')).map_or(
                    "",
                    |(_, rest)| {
                        // The slash within `${0%/*}` is none of the path's.
                        rest.strip_prefix("*}/").unwrap_or(rest)
                    },
                ),
                None => word,
            };
            let path = path.trim_start_matches('/');
            let path = path.strip_prefix("./").unwrap_or(path);
            let usual = |c: char| c.is_ascii_alphanumeric() || "_./+-@".contains(c);
            let named = path.chars().any(|c| c.is_ascii_alphabetic()) && path.chars().all(usual);
            let inside = !path.split('/').any(|part| matches!(part, "" | "." | ".."));
            if named && inside && !path.starts_with('-') && (sourced || path.contains(['.', '/'])) {
                paths.push(path.to_owned());
            }
        }
        before = "";
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_may_be_paths() {
        let text = ". ./lib.sh\nsource \"$(dirname \"$0\")/parts/a.sh\"; . functions\n# . none.sh\n. ${0%/*}/b.sh\n\
                    tc -batch classes.tc\nip addr add 10.0.0.1/24 dev eth0\niptables-restore < $HERE/rules.v4\n. ../up.sh\n[ -f x/y ]\n";
        let want = ["lib.sh", "parts/a.sh", "functions", "b.sh", "classes.tc", "rules.v4", "x/y"];
        assert_eq!(paths(text), want);
    }

    #[test]
    fn folders() {
        assert_eq!([below("a", "a/b"), below("", "b"), below("a", "a"), below("a", "c")], ["b", "b", "", ""]);
        assert_eq!([joined("", "x"), joined("a", "x")], ["x", "a/x"]);
    }
}
