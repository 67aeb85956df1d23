//! Recorded vectors: specifications and what the real kernel made of them, one a line.

use super::chance::{self, Case};
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

/// All vectors of a folder, by kind and number: of each `KIND.jsonl` every line; and those of the other kernels, which are in folders of their
/// profiles' names, with kinds such as `7.2/htb`.
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
    for ground in super::Ground::ALL {
        let name = ground.kernel.name();
        let below = folder.join(name);
        if below.is_dir() {
            let named = |v: Vector| Vector { kind: format!("{name}/{}", v.kind), ..v };
            vectors.extend(load(&below)?.into_iter().map(named));
        }
    }
    Ok(vectors)
}

/// The vectors of one file.
///
/// # Errors
/// A file that cannot be read, a line that is not JSON.
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
    /// Replays an exact one: how the answer differs from the recorded one; empty where it does not.
    pub fn replay(&self) -> Vec<String> {
        judge(&self.value["spec"], &[&self.value["expected"]])
    }
    /// Where the kernel rolls dice: its answers beside `throws` of ours.
    ///
    /// # Errors
    /// A specification that is refused here; answers that count other things.
    pub fn chance(&self, throws: u64) -> Result<Case, String> {
        let spec = &self.value["spec"];
        let recorded = self.value["expected_by_seed"].as_array().ok_or("no answers by seed")?;
        let thrown = (1..=throws).map(|seed| super::run_seeded(spec, seed).map(|a| chance::outcome(&a)));
        let ours: Result<Vec<Value>, _> = thrown.collect();
        let ours = ours.map_err(|refused| format!("refused here: {refused}"))?;
        let packets = spec["packets"].as_array().into_iter().flatten();
        let packets: u64 = packets.map(|p| p["repeat"].as_u64().unwrap_or(1)).sum();
        Case::new(packets as usize, recorded, &ours)
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
