//! The run folder: `record.json`, `series.parquet`, `apps/`, `tc/`, `report.html`.
//!
//! Written beside its place under another name and moved there when it is whole: nobody ever sees half a folder.

use super::Outcome;
use penstock_measure::report::{self, Page};
use penstock_measure::{Record, Series};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A run folder as it is read back.
pub struct Folder {
    /// Where it lies.
    pub path: PathBuf,
    /// Its record.
    pub record: Record,
    /// Its series.
    pub series: Series,
    /// What each app printed, in the order of the record.
    pub outputs: Vec<String>,
    /// What tc showed of each device: machine, device, text.
    pub tc: Vec<(String, String, String)>,
}

impl Outcome {
    /// Writes the run folder `path`; an earlier run that lies there is replaced.
    ///
    /// # Errors
    /// A sentence when it cannot be written, or what lies there is no run folder.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        if path.exists() && !path.join("record.json").is_file() && !is_empty(path) {
            return Err(format!(
                "{} is there and is no run folder; choose another with --out",
                path.display()
            ));
        }
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().ok_or_else(|| format!("{} is no folder's name", path.display()))?;
        let beside =
            |what: &str| parent.join(format!(".{}.{what}-{}", name.to_string_lossy(), std::process::id()));
        let (new, old) = (beside("new"), beside("old"));
        let say = |e: io::Error| format!("cannot write {}: {e}", path.display());
        let done = self.fill(&new).and_then(|()| swap(&new, path, &old));
        if done.is_err() {
            // What was begun is taken away; the reason to tell is the first one.
            let _ = fs::remove_dir_all(&new);
        }
        done.map_err(say)
    }

    fn fill(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder.join("apps"))?;
        fs::create_dir_all(folder.join("tc"))?;
        fs::write(folder.join("record.json"), self.record.to_json())?;
        fs::write(folder.join("series.parquet"), self.series.to_parquet().map_err(io::Error::other)?)?;
        for (i, (app, text)) in self.record.apps.iter().zip(&self.outputs).enumerate() {
            fs::write(folder.join("apps").join(app_file(i, &app.host)), text)?;
        }
        let traced = self.results.flows.iter().enumerate().filter(|(_, f)| !f.passages.is_empty());
        for (i, flow) in traced {
            fs::create_dir_all(folder.join("flows"))?;
            let name: String = flow
                .name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
                .collect();
            let file = folder.join("flows").join(format!("{:02}-{name}.csv", i + 1));
            fs::write(file, penstock_measure::passage::csv(&super::outcome::passages(flow)))?;
        }
        for (host, dev, text) in &self.tc {
            fs::write(folder.join("tc").join(tc_file(host, dev)), text)?;
        }
        let page = Page { record: &self.record, series: &self.series, outputs: &self.outputs, tc: &self.tc };
        fs::write(folder.join("report.html"), report::html(&page))
    }
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Puts `new` in the place of `path`, and what was there out of the way.
fn swap(new: &Path, path: &Path, old: &Path) -> io::Result<()> {
    if path.exists() {
        fs::rename(path, old)?;
        if let Err(e) = fs::rename(new, path) {
            let _ = fs::rename(old, path);
            return Err(e);
        }
        return fs::remove_dir_all(old);
    }
    fs::rename(new, path)
}

fn app_file(i: usize, host: &str) -> String {
    format!("{:02}-{host}.txt", i + 1)
}

fn tc_file(host: &str, dev: &str) -> String {
    format!("{host}-{}.txt", dev.replace('/', "_"))
}

impl Folder {
    /// Reads a run folder, or the one a path to its `record.json` or `report.html` lies in.
    ///
    /// # Errors
    /// A sentence when it is none or not whole.
    pub fn read(path: &Path) -> Result<Folder, String> {
        let path = if path.is_file() { path.parent().unwrap_or(Path::new(".")) } else { path };
        let file = |name: &str| {
            let full = path.join(name);
            fs::read(&full).map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => format!("{} is no run folder: it has no {name}", path.display()),
                _ => format!("cannot read {}: {e}", full.display()),
            })
        };
        let text = String::from_utf8(file("record.json")?);
        let text = text.map_err(|_| format!("{}/record.json is not text", path.display()))?;
        let record = Record::from_json(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let series = Series::from_parquet(file("series.parquet")?);
        let series = series.map_err(|e| format!("{}: {e}", path.display()))?;
        let lossy = |name: String| file(&name).map(|b| String::from_utf8_lossy(&b).into_owned());
        let outputs = record.apps.iter().enumerate();
        let outputs =
            outputs.map(|(i, app)| lossy(format!("apps/{}", app_file(i, &app.host))).unwrap_or_default());
        let outputs = outputs.collect();
        let tc = record.devices.iter().filter_map(|d| {
            let text = lossy(format!("tc/{}", tc_file(&d.host, &d.dev))).ok()?;
            Some((d.host.clone(), d.dev.clone(), text))
        });
        let tc = tc.collect();
        Ok(Folder { path: path.to_owned(), record, series, outputs, tc })
    }
}

/// Writes a folder's report again.
///
/// # Errors
/// A sentence when it cannot be written.
pub fn write_report(folder: &Folder) -> Result<PathBuf, String> {
    let page =
        Page { record: &folder.record, series: &folder.series, outputs: &folder.outputs, tc: &folder.tc };
    let file = folder.path.join("report.html");
    let new = folder.path.join(format!(".report.html.new-{}", std::process::id()));
    let done = fs::write(&new, report::html(&page)).and_then(|()| fs::rename(&new, &file));
    done.map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    Ok(file)
}
