//! Recorded vectors: files of a specification and what the real kernel made of it.

use super::compare::differences;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One vector.
pub struct Vector {
    /// Kind it is about.
    pub kind: String,
    /// File.
    pub path: PathBuf,
    /// Contents: `spec` and `expected`, or `expected_by_seed` where the kernel rolls dice.
    pub value: Value,
}

/// All vectors of a folder, by kind and number.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn load(folder: &Path) -> Result<Vec<Vector>, String> {
    let list = |folder: &Path| -> Result<Vec<PathBuf>, String> {
        let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        paths.sort();
        Ok(paths)
    };
    let mut vectors = Vec::new();
    for kind in list(folder)?.into_iter().filter(|p| p.is_dir()) {
        for path in list(&kind)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "json")) {
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
            let kind = kind.file_name().unwrap_or_default().to_string_lossy().into_owned();
            vectors.push(Vector { kind, path, value });
        }
    }
    Ok(vectors)
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
            if want == got.message {
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
