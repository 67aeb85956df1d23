//! Variables that a file of YAML gives its commands: `env` of a workflow, `environment` of a compose file, `variables` of GitLab, `env` of a container.

use std::collections::BTreeMap;

/// Keys below which variables stand.
const KEYS: [&str; 3] = ["env:", "environment:", "variables:"];

/// Names and values that are written in the file, each name once: what has another value elsewhere, or one that is filled in, is not known.
pub(crate) fn of(name: &str, text: &str) -> Vec<(String, String)> {
    let mut all: BTreeMap<String, Option<String>> = BTreeMap::new();
    if ![".yml", ".yaml"].iter().any(|e| name.ends_with(e)) {
        return Vec::new();
    }
    let indent = |l: &str| l.chars().take_while(|c| *c == ' ').count();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let key = line.trim_start().trim_start_matches("- ").trim_end();
        if !KEYS.contains(&key) {
            continue;
        }
        let of = indent(line);
        let own = |l: &&&str| {
            let deep = indent(l);
            l.trim().is_empty() || deep > of || deep == of && l.trim_start().starts_with("- ")
        };
        let body: Vec<&str> = lines[at + 1..].iter().take_while(own).copied().collect();
        let level = body.iter().find(|l| !l.trim().is_empty()).map_or(0, |l| indent(l));
        let mut named = None;
        for line in body.iter().filter(|l| !l.trim_start().starts_with('#')) {
            let words = line.trim();
            // `- NAME=VALUE`, `- name: NAME` with `value: VALUE` behind it, `NAME: VALUE`.
            let pair = match words.strip_prefix("- ") {
                Some(item) if item.trim_start().starts_with("name:") => {
                    named = item.split_once(':').map(|n| plain(n.1));
                    continue;
                }
                Some(item) => item.trim_matches(['"', '\'']).split_once('='),
                None if words.starts_with("value:") && named.is_some() => {
                    named.as_deref().zip(words.split_once(':').map(|v| v.1))
                }
                None if indent(line) == level => words.split_once(':'),
                None => None,
            };
            let Some((name, value)) = pair.map(|(n, v)| (n.trim().to_owned(), plain(v))) else { continue };
            named = None;
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_name {
                continue;
            }
            let filled_in = value.is_empty() || value.contains(['$', '{', '|', '>', '*', '&']);
            let value = (!filled_in).then_some(value);
            let known = all.entry(name).or_insert_with(|| value.clone());
            if *known != value {
                *known = None;
            }
        }
    }
    all.into_iter().filter_map(|(n, v)| Some((n, v?))).collect()
}

/// A value without its quotes and the comment behind it.
fn plain(value: &str) -> String {
    let value = value.trim();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    match quote.and_then(|q| value[1..].split_once(q)) {
        Some((within, _)) => within.to_owned(),
        None => value.split(" #").next().unwrap_or("").trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_once_is_known() {
        let text = "env:\n  A: 5mbit # up\n  B: ${{ vars.B }}\njobs:\n  x:\n    env:\n      C: \"10 ms\"\n      D: 1\n    steps:\n    - env:\n        D: 2\n      run: tc\n";
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(of("w.yml", text), [pair("A", "5mbit"), pair("C", "10 ms")]);
        let compose = "services:\n  a:\n    environment:\n      - RATE=5mbit\n      - \"DEV=eth0\"\n      - HOME\n    image: x\n";
        assert_eq!(of("compose.yaml", compose), [pair("DEV", "eth0"), pair("RATE", "5mbit")]);
        let pod =
            "    env:\n    - name: DELAY\n      value: \"20ms\"\n    - name: SECRET\n      valueFrom: x\n";
        assert_eq!(of("pod.yaml", pod), [pair("DELAY", "20ms")]);
        assert_eq!(of("shape.sh", text), []);
    }
}
