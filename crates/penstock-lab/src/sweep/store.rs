//! The folder of a sweep. Each run's result is a file of its own, written whole and renamed: after `kill -9` it is there or not. Its name is made of all that the run
//! depends on, so a result is found again by whoever asks for the same run, and by nobody else.

use crate::experiment::Experiment;
use penstock_measure::sweep::{Figure, Run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The format of a result.
const FORMAT: u32 = 1;
/// What a sweep writes into its folder.
const OWN: [&str; 7] =
    ["lock", "report.html", "results", "results.parquet", "runs", "sweep.json", "tune.json"];
/// Most bytes of a result.
const LARGEST: u64 = 64 << 20;

/// A run's result as it lies there.
#[derive(Serialize, Deserialize)]
struct Stored {
    format: u32,
    set: BTreeMap<String, String>,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    refused: Option<String>,
    #[serde(default)]
    expects_met: u64,
    #[serde(default)]
    expects_unmet: u64,
    /// Null: it was asked for, and the run has none.
    figures: BTreeMap<String, Option<f64>>,
    /// What the record in the run's own folder is, where it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    record: Option<String>,
}

impl Stored {
    fn new(set: &[(String, String)], run: &Run, figures: &[Figure]) -> Stored {
        Stored {
            format: FORMAT,
            set: set.iter().cloned().collect(),
            seed: run.seed,
            refused: run.refused.clone(),
            expects_met: run.met,
            expects_unmet: run.unmet,
            figures: figures.iter().map(|f| f.what.clone()).zip(run.values.iter().copied()).collect(),
            record: None,
        }
    }
}

/// The result of a run as text.
pub(super) fn said(set: &[(String, String)], run: &Run, figures: &[Figure]) -> Result<String, String> {
    serde_json::to_string(&Stored::new(set, run, figures)).map_err(|e| e.to_string())
}

/// A sweep's folder, locked.
pub(crate) struct Store {
    folder: PathBuf,
    _lock: File,
}

/// One run: what it is, and where its own folder would be.
pub(super) struct Id<'a> {
    pub(super) key: String,
    pub(super) set: &'a [(String, String)],
    pub(super) seed: u64,
}

impl Store {
    /// Opens the folder, or makes it.
    ///
    /// # Errors
    /// It holds what no sweep wrote, another sweep is at work there, or it cannot be written.
    pub(crate) fn open(folder: &Path) -> Result<Store, String> {
        let shown = folder.display();
        let cannot = |e: std::io::Error| format!("cannot write {shown}: {e}");
        fs::create_dir_all(folder).map_err(cannot)?;
        for entry in fs::read_dir(folder).map_err(cannot)? {
            let name = entry.map_err(cannot)?.file_name();
            let name = name.to_string_lossy();
            if !OWN.contains(&&*name) && !name.starts_with(".penstock-") {
                return Err(format!(
                    "{shown} holds {name}, which no sweep wrote; move it away, or choose another folder with --out"
                ));
            }
        }
        let lock = File::create(folder.join("lock")).map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "another sweep is at work in {shown}; wait for it, or choose another folder with --out"
                ));
            }
            Err(TryLockError::Error(e)) => return Err(cannot(e)),
        }
        Ok(Store { folder: folder.to_owned(), _lock: lock })
    }

    fn file(&self, key: &str) -> PathBuf {
        self.folder.join("results").join(&key[..2]).join(format!("{}.json", &key[2..]))
    }

    /// The folder of a run: `runs/link.uplink.rate=10mbit/seed=1`.
    pub(super) fn run_folder(&self, id: &Id<'_>) -> PathBuf {
        let mut path = self.folder.join("runs");
        for (name, value) in id.set {
            path.push(file_name(name, value));
        }
        path.join(format!("seed={}", id.seed))
    }

    /// The result of a run, where it lies there with all these figures; `folder`: and its own folder does too.
    pub(super) fn find(&self, id: &Id<'_>, point: usize, figures: &[Figure], folder: bool) -> Option<Run> {
        let text = read(&self.file(&id.key))?;
        let stored: Stored = serde_json::from_slice(&text).ok()?;
        let same =
            stored.set.len() == id.set.len() && id.set.iter().all(|(k, v)| stored.set.get(k) == Some(v));
        if stored.format != FORMAT || !same || stored.seed != id.seed {
            return None;
        }
        if folder && stored.refused.is_none() {
            let record = read(&self.run_folder(id).join("record.json"))?;
            if stored.record != Some(hash(&record)) {
                return None;
            }
        }
        let values = match stored.refused.is_some() {
            true => vec![None; figures.len()],
            false => {
                figures.iter().map(|f| stored.figures.get(&f.what).copied()).collect::<Option<Vec<_>>>()?
            }
        };
        Some(Run {
            point,
            seed: stored.seed,
            refused: stored.refused,
            values,
            met: stored.expects_met,
            unmet: stored.expects_unmet,
        })
    }

    /// Writes the result of a run.
    pub(super) fn put(&self, id: &Id<'_>, run: &Run, figures: &[Figure], folder: bool) -> Result<(), String> {
        let record = match folder && run.refused.is_none() {
            true => read(&self.run_folder(id).join("record.json")).map(|bytes| hash(&bytes)),
            false => None,
        };
        self.keep(id, &Stored { record, ..Stored::new(id.set, run, figures) })
    }

    /// Writes the result of a run that was made elsewhere, from the text that [`said`] made there.
    ///
    /// # Errors
    /// It is not the result of that run with these figures, or cannot be written.
    pub(super) fn put_said(&self, id: &Id<'_>, text: &str, figures: &[Figure]) -> Result<(), String> {
        let stored: Stored = serde_json::from_str(text).map_err(|e| format!("a result is damaged: {e}"))?;
        if stored.format != FORMAT {
            return Err(format!("a result has format {}; this program knows {FORMAT}", stored.format));
        }
        let same =
            stored.set.len() == id.set.len() && id.set.iter().all(|(k, v)| stored.set.get(k) == Some(v));
        let all = figures.iter().all(|f| stored.figures.contains_key(&f.what));
        if !same || stored.seed != id.seed || !all {
            return Err("a result is that of another run".to_owned());
        }
        self.keep(id, &Stored { record: None, ..stored })
    }

    fn keep(&self, id: &Id<'_>, stored: &Stored) -> Result<(), String> {
        let file = self.file(&id.key);
        let cannot = |e: std::io::Error| format!("cannot write {}: {e}", file.display());
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).map_err(cannot)?;
        }
        let text = serde_json::to_string(stored).map_err(|e| cannot(e.into()))?;
        penstock_files::replace(&file, text + "\n").map_err(cannot)
    }

    /// Writes a file of the whole sweep.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), String> {
        let file = self.folder.join(name);
        penstock_files::replace(&file, bytes).map_err(|e| format!("cannot write {}: {e}", file.display()))
    }
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A folder's name: what is neither a letter nor harmless is written as `%2F`. A long one ends in a number for the rest.
fn file_name(name: &str, value: &str) -> String {
    let mut out = format!("{}=", escaped(name));
    out += &escaped(value);
    match out.len() {
        0..=200 => out,
        _ => format!("{}~{}", out.chars().take(160).collect::<String>(), &hash(value.as_bytes())[..12]),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => out.push(char::from(byte)),
            other => out += &format!("%{other:02X}"),
        }
    }
    out
}

/// FNV-1a of 128 bits in hexadecimal.
pub(super) fn hash(bytes: &[u8]) -> String {
    let mut hash = Fnv::default();
    hash.add(bytes);
    hash.text()
}

struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
    fn text(&self) -> String {
        format!("{:032x}", self.0)
    }
}

impl std::fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

/// All that the runs of an experiment depend on but the seed: what was read, and `how` it is run. The texts themselves do not count: where nothing else
/// differs, only what nobody reads does.
pub(super) fn key(experiment: &Experiment, how: &str) -> String {
    use std::fmt::Write as _;
    let read = Experiment { sources: Vec::new(), sweep: None, ..experiment.clone() };
    let mut all = Fnv::default();
    let _ = write!(all, "{how}\n{read:?}");
    all.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // The authors' test vectors: of nothing, and of "a".
        assert_eq!(hash(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(hash(b"a"), "d228cb696f1a8caf78912b704e4a8964");
    }

    #[test]
    fn names_of_folders_are_harmless() {
        assert_eq!(file_name("link.up.rate", "10mbit"), "link.up.rate=10mbit");
        assert_eq!(file_name("host.a.setup", "../x y"), "host.a.setup=..%2Fx%20y");
        assert!(file_name("a", &"é".repeat(300)).len() < 200);
        assert_ne!(file_name("a", &"x".repeat(300)), file_name("a", &"x".repeat(301)));
    }

    #[test]
    fn a_result_is_found_by_its_own_run_only() {
        let place = std::env::temp_dir().join(format!("penstock-store-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        let store = Store::open(&place).unwrap();
        assert!(Store::open(&place).err().unwrap().contains("another sweep is at work"));
        let figures = |names: &[&str]| -> Vec<Figure> {
            names
                .iter()
                .map(|n| Figure { what: (*n).to_owned(), unit: "ms", shown: true, more: None })
                .collect()
        };
        let set = [("link.up.rate".to_owned(), "10mbit".to_owned())];
        let id = Id { key: hash(b"one"), set: &set, seed: 3 };
        let run = Run { point: 5, seed: 3, values: vec![Some(0.1 + 0.2), None], met: 1, ..Run::default() };
        let two = figures(&["a", "b"]);
        assert_eq!(store.find(&id, 5, &two, false), None);
        store.put(&id, &run, &two, false).unwrap();
        assert_eq!(store.find(&id, 5, &two, false), Some(run));
        // Another figure, another value, another key, or the folder of the run: it must be run.
        assert_eq!(store.find(&id, 5, &figures(&["a", "c"]), false), None);
        assert_eq!(store.find(&id, 5, &two, true), None);
        let other = [("link.up.rate".to_owned(), "20mbit".to_owned())];
        assert_eq!(store.find(&Id { key: hash(b"one"), set: &other, seed: 3 }, 5, &two, false), None);
        assert_eq!(store.find(&Id { key: hash(b"two"), set: &set, seed: 3 }, 5, &two, false), None);
        // Half a file is none.
        fs::write(store.file(&id.key), "{\"format\":1,").unwrap();
        assert_eq!(store.find(&id, 5, &two, false), None);
        drop(store);
        fs::write(place.join("notes.txt"), "").unwrap();
        assert!(Store::open(&place).err().unwrap().contains("holds notes.txt"));
        fs::remove_dir_all(place).unwrap();
    }
}
