//! `penstock.toml`: which findings are shown, how bad they are, and what fails.

use crate::finding::{Finding, Level};
use crate::rules;
use toml::{Table, Value};

/// The least level that ends with a status other than 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fails {
    /// Notes already.
    Note,
    /// Warnings and errors.
    #[default]
    Warning,
    /// Errors alone.
    Error,
    /// Nothing.
    Never,
}

impl Fails {
    /// By its name.
    pub fn named(name: &str) -> Option<Fails> {
        [("note", Fails::Note), ("warning", Fails::Warning), ("error", Fails::Error), ("never", Fails::Never)]
            .into_iter()
            .find(|n| n.0 == name)
            .map(|n| n.1)
    }
}

/// What a `penstock.toml` says under `[check]`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// Codes or their beginnings (`PS1`); only these are shown. Empty: all.
    pub select: Vec<String>,
    /// Codes or their beginnings that are not shown.
    pub ignore: Vec<String>,
    /// Levels of codes, in the order of the file.
    pub severity: Vec<(String, Level)>,
    /// For the files a pattern fits: codes that are not shown there.
    pub per_path: Vec<(String, Vec<String>)>,
    /// What fails, where the file says it.
    pub fail_on: Option<Fails>,
    /// Device, rate and kernel, where the file says them.
    pub dev: Option<String>,
    /// As `--rate`.
    pub rate: Option<String>,
    /// As `--kernel`.
    pub kernel: Option<String>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not TOML, or has a word under `[check]` that is not known or of another form: what, and what to write instead.
    pub fn parse(text: &str) -> Result<Config, String> {
        let table: Table = text.parse().map_err(|e: toml::de::Error| e.to_string())?;
        let mut config = Config::default();
        let Some(check) = table.get("check") else { return Ok(config) };
        let check = check.as_table().ok_or("`check` is not a table; write [check]")?;
        for (name, value) in check {
            match name.as_str() {
                "select" => config.select = codes(name, value)?,
                "ignore" => config.ignore = codes(name, value)?,
                "fail-on" => {
                    let named = value.as_str().and_then(Fails::named);
                    config.fail_on =
                        Some(named.ok_or("`fail-on` is one of \"note\", \"warning\", \"error\", \"never\"")?);
                }
                "dev" => config.dev = Some(string(name, value)?),
                "rate" => config.rate = Some(string(name, value)?),
                "kernel" => config.kernel = Some(string(name, value)?),
                "severity" => {
                    let all = value
                        .as_table()
                        .ok_or("`severity` is a table: [check.severity] PS101 = \"error\"")?;
                    for (code, level) in all {
                        let known = level.as_str().and_then(Level::named);
                        let level = known.ok_or_else(|| {
                            format!("`severity.{code}` is one of \"note\", \"warning\", \"error\"")
                        })?;
                        config.severity.push((code_of(code)?, level));
                    }
                }
                "per-path" => {
                    let all = value
                        .as_table()
                        .ok_or("`per-path` is a table: [check.per-path] \"old/**\" = [\"PS006\"]")?;
                    for (pattern, ignored) in all {
                        config.per_path.push((pattern.clone(), codes(pattern, ignored)?));
                    }
                }
                _ => {
                    return Err(format!(
                        "`check.{name}` is not known; known are select, ignore, severity, per-path, fail-on, dev, rate, kernel"
                    ));
                }
            }
        }
        Ok(config)
    }

    /// The level of a finding, by its code and the level of its rule; `None` where it is not shown. `path` is relative to the folder of the
    /// file that says it.
    pub fn level(&self, path: &str, code: &str, level: Level) -> Option<Level> {
        let begins = |codes: &[String]| codes.iter().any(|c| code.starts_with(c.as_str()));
        let ignored = || self.per_path.iter().any(|(pattern, codes)| fits(pattern, path) && begins(codes));
        if !self.select.is_empty() && !begins(&self.select) || begins(&self.ignore) || ignored() {
            return None;
        }
        // The longest beginning counts.
        let own = self.severity.iter().filter(|(own, _)| code.starts_with(own.as_str()));
        Some(own.max_by_key(|s| s.0.len()).map_or(level, |s| s.1))
    }

    /// What is left of the findings of a file, with the levels that are asked for.
    pub fn applied(&self, path: &str, findings: Vec<Finding>) -> Vec<Finding> {
        let leveled = |mut f: Finding| {
            f.severity = self.level(path, f.code, f.severity)?;
            Some(f)
        };
        findings.into_iter().filter_map(leveled).collect()
    }
}

fn string(name: &str, value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("`{name}` is not a text; write {name} = \"…\""))
}

fn codes(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let list = value
        .as_array()
        .ok_or_else(|| format!("`{name}` is not a list of codes; write {name} = [\"PS250\"]"))?;
    list.iter()
        .map(|v| {
            v.as_str()
                .ok_or_else(|| format!("`{name}` has something in it that is not a code"))
                .and_then(code_of)
        })
        .collect()
}

/// A code or the beginning of some.
fn code_of(text: &str) -> Result<String, String> {
    let known = !text.is_empty() && rules::all().any(|r| r.code.starts_with(text));
    known
        .then(|| text.to_owned())
        .ok_or_else(|| format!("{text:?} begins no code of check; write one like PS101 or PS1"))
}

/// Whether a path fits a pattern: `*` is anything within a folder, `**` anything, `?` one character.
fn fits(pattern: &str, path: &str) -> bool {
    fn go(p: &[char], t: &[char]) -> bool {
        match p {
            [] => t.is_empty(),
            ['*', '*', '/', rest @ ..] => {
                go(rest, t) || (0..t.len()).any(|n| t[n] == '/' && go(rest, &t[n + 1..]))
            }
            ['*', '*', rest @ ..] => (0..=t.len()).any(|n| go(rest, &t[n..])),
            ['*', rest @ ..] => {
                let end = t.iter().position(|c| *c == '/').unwrap_or(t.len());
                (0..=end).any(|n| go(rest, &t[n..]))
            }
            ['?', rest @ ..] => t.first().is_some_and(|c| *c != '/') && go(rest, &t[1..]),
            [c, rest @ ..] => t.first() == Some(c) && go(rest, &t[1..]),
        }
    }
    let chars = |t: &str| t.trim_start_matches("./").chars().collect::<Vec<_>>();
    let (pattern, path) = (chars(pattern), chars(path));
    // A folder stands for all in it.
    go(&pattern, &path) || pattern.last() == Some(&'/') && path.starts_with(&pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_paths() {
        let all = [
            ("old/**", "old/a/b.sh", true),
            ("old/", "old/a.sh", true),
            ("*.sh", "a.sh", true),
            ("*.sh", "a/b.sh", false),
            ("**/*.sh", "a/b.sh", true),
            ("**/*.sh", "b.sh", true),
            ("a?.sh", "ab.sh", true),
            ("./a.sh", "a.sh", true),
        ];
        for (pattern, path, want) in all {
            assert_eq!(fits(pattern, path), want, "{pattern} {path}");
        }
    }

    #[test]
    fn a_file_is_read_and_what_it_does_not_know_is_refused() {
        let text = "[check]\nignore = [\"PS25\"]\nfail-on = \"error\"\n[check.severity]\nPS1 = \"note\"\nPS101 = \"error\"\n[check.per-path]\n\"old/**\" = [\"PS\"]\n";
        let config = Config::parse(text).unwrap();
        assert_eq!((config.fail_on, config.ignore.len()), (Some(Fails::Error), 1));
        let of = |code: &'static str| Finding {
            file: String::new(),
            line: 1,
            column: 0,
            len: 0,
            code,
            severity: Level::Warning,
            message: String::new(),
            reason: String::new(),
            fix: String::new(),
            edits: Vec::new(),
            safe: false,
            begins: 1,
        };
        let left = config.applied("a.sh", vec![of("PS101"), of("PS102"), of("PS250")]);
        let short: Vec<_> = left.iter().map(|f| (f.code, f.severity)).collect();
        assert_eq!(short, [("PS101", Level::Error), ("PS102", Level::Note)]);
        assert_eq!(config.applied("old/x/a.sh", vec![of("PS101")]), []);
        assert!(Config::parse("[check]\nselct = []").unwrap_err().contains("`check.selct` is not known"));
        assert!(Config::parse("[check]\nignore = [\"XY1\"]").unwrap_err().contains("begins no code"));
    }
}
