//! Recorded vectors: specifications and what the real kernel made of them, one a line.

use super::compare::differences;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One vector.
pub struct Vector {
    /// Kind it is about.
    pub kind: String,
    /// File and line.
    pub place: String,
    /// Contents: `case` (its number), `spec` and `expected`, or `expected_by_seed` where the kernel rolls dice.
    pub value: Value,
}

/// All vectors of a folder, by kind and number: of each `KIND.jsonl` every line.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn load(folder: &Path) -> Result<Vec<Vector>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "jsonl"));
    paths.sort();
    let mut vectors = Vec::new();
    for path in paths {
        vectors.extend(read(&path)?);
    }
    Ok(vectors)
}

/// The vectors of one file.
///
/// # Errors
/// A file that cannot be read, a line that is no JSON.
pub fn read(path: &Path) -> Result<Vec<Vector>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let kind = path.file_stem().unwrap_or_default().to_string_lossy();
    let one = |(n, line): (usize, &str)| {
        let place = format!("{}:{}", path.display(), n + 1);
        let value = serde_json::from_str(line).map_err(|e| format!("{place}: {e}"))?;
        Ok(Vector { kind: kind.to_string(), place, value })
    };
    text.lines().enumerate().map(one).collect()
}

impl Vector {
    /// Whether the kernel gives one answer whatever its dice.
    pub fn exact(&self) -> bool {
        self.value["exact"] == true
    }
    /// Replays it: how the answer differs from the recorded one; empty where it does not. Where the kernel rolls
    /// dice the answer is held against each that it gave, and the nearest counts.
    pub fn replay(&self) -> Vec<String> {
        judge(&self.value["spec"], &self.recorded())
    }
    /// Where the kernel rolls dice: how what is counted over many throws here differs from what it counted over its
    /// own; empty where it does not by more than chance allows.
    pub fn compare_distributions(&self, throws: u64) -> Vec<String> {
        let recorded: Vec<Value> = self.recorded().into_iter().cloned().collect();
        let ours: Result<Vec<Value>, _> =
            (1..=throws).map(|seed| super::run_seeded(&self.value["spec"], seed)).collect();
        match ours {
            Ok(ours) => distributions(&recorded, &ours),
            Err(refused) => vec![format!("refused here: {refused}")],
        }
    }
    fn recorded(&self) -> Vec<&Value> {
        match self.value.get("expected") {
            Some(one) => vec![one],
            None => self.value["expected_by_seed"].as_array().into_iter().flatten().collect(),
        }
    }
}

/// How the answer to a specification differs from the nearest of the recorded ones.
pub fn judge(spec: &Value, recorded: &[&Value]) -> Vec<String> {
    let answer = super::run(spec);
    let differ = |recorded: &&Value| match (recorded["error"].as_str(), &answer) {
        (Some(want), Err(got)) => {
            let want = want.strip_prefix("qdisc_order: error: ").unwrap_or(want);
            // Usage texts are our own.
            let before_usage = |text: &str| text.split("\nUsage:").next().unwrap_or_default().to_owned();
            if before_usage(want) == before_usage(&got.message) {
                Vec::new()
            } else {
                vec![format!("error:\n      recorded {want}\n      here     {}", got.message)]
            }
        }
        (Some(want), Ok(_)) => vec![format!("recorded was {want}; here it runs")],
        (None, Err(got)) => vec![format!("refused here: {got}")],
        (None, Ok(answer)) => differences(recorded, answer),
    };
    recorded.iter().map(differ).min_by_key(Vec::len).unwrap_or_default()
}

/// Differences of means that are more than chance: four standard errors of both, and a hundredth.
fn distributions(recorded: &[Value], ours: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |what: &str, count: &dyn Fn(&Value) -> f64| {
        let ((mean, error), (mean_here, error_here)) = (mean(recorded, count), mean(ours, count));
        let allowed = 4.0 * (error * error + error_here * error_here).sqrt() + 0.01 * mean.abs();
        if (mean - mean_here).abs() > allowed {
            found.push(format!(
                "{what}: recorded {mean:.2} on average, here {mean_here:.2} (chance allows {allowed:.2})"
            ));
        }
    };
    let length = |v: &Value| v.as_array().map_or(0, Vec::len) as f64;
    check("packets dropped", &|a| length(&a["drops"]));
    check("packets left", &|a| length(&a["departures"]));
    let packets = recorded.first().and_then(|a| a["packets"].as_u64()).unwrap_or(0);
    for i in 0..packets {
        let place = |a: &Value| {
            let places = a["departures"].as_array().into_iter().flatten();
            places.enumerate().find(|(_, d)| d["i"] == i).map_or(packets as f64, |(n, _)| n as f64)
        };
        check(&format!("place of packet {i}"), &place);
    }
    found
}

/// Mean and its standard error.
fn mean(answers: &[Value], count: &dyn Fn(&Value) -> f64) -> (f64, f64) {
    let n = answers.len().max(2) as f64;
    let mean = answers.iter().map(count).sum::<f64>() / n;
    let variance = answers.iter().map(|a| (count(a) - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}
