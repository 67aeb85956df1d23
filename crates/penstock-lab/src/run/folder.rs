//! The run folder: `record.json`, `series.parquet`, `apps/`, `flows/`, `tc/`, `report.html`.
//!
//! Written beside its place and exchanged with what is there when it is whole: nobody ever sees half a folder. An earlier run is replaced only
//! where it holds nothing but what its own record says that it wrote.

use super::Outcome;
use penstock_files::Roots;
use penstock_measure::report::{self, Page};
use penstock_measure::{Record, Series, record};
use std::collections::{BTreeMap, BTreeSet};
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

/// The series as text.
const CSV: &str = "series.csv";
/// The series as flent reads them.
const FLENT: &str = "data.flent.gz";
/// Most bytes of a record that is read.
const RECORD: u64 = 256 << 20;
/// Most bytes of any other file of a run folder that is read.
const PART: u64 = 1 << 30;

impl Outcome {
    /// Writes the run folder `path`; an earlier run that lies there is replaced.
    ///
    /// # Errors
    /// A sentence when it cannot be written, what lies there is no run folder, or it holds a file that no run wrote. Then what was there
    /// is there.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        if path.exists() {
            replaceable(path, path)?;
        }
        path.file_name().ok_or_else(|| format!("{} is not a folder name", path.display()))?;
        let spare = |there: &Path| replaceable(there, path);
        let done = penstock_files::replace_folder(path, &spare, &mut |new| self.fill(new));
        done.map_err(|e| match e.get_ref() {
            Some(why) if e.kind() == io::ErrorKind::AlreadyExists => why.to_string(),
            _ => format!("cannot write {}: {e}", path.display()),
        })
    }

    /// Writes the run folder into a place where nothing is and nobody looks yet.
    ///
    /// # Errors
    /// A sentence when it cannot be written.
    pub(super) fn write_new(&self, path: &Path) -> Result<(), String> {
        self.fill(path).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }

    fn fill(&self, folder: &Path) -> io::Result<()> {
        let page = Page { record: &self.record, series: &self.series, outputs: &self.outputs, tc: &self.tc };
        // The page takes as long as all the rest, and needs none of it.
        std::thread::scope(|scope| {
            let html = scope.spawn(|| report::html(&page));
            self.fill_but_page(folder)?;
            let html = html.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            fs::write(folder.join("report.html"), html)
        })
    }

    fn fill_but_page(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder.join("apps"))?;
        fs::create_dir_all(folder.join("tc"))?;
        fs::write(folder.join("record.json"), self.record.to_json())?;
        let series = fs::File::create(folder.join("series.parquet"))?;
        self.series.write_parquet(series).map_err(io::Error::other)?;
        for (i, (app, text)) in self.record.apps.iter().zip(&self.outputs).enumerate() {
            fs::write(folder.join("apps").join(app_file(i, &app.host)), text)?;
        }
        for (i, passages) in &self.passages {
            fs::create_dir_all(folder.join("flows"))?;
            let file = folder.join("flows").join(flow_file(*i, &self.record.flows[*i].name));
            fs::write(file, penstock_measure::passage::csv(passages))?;
        }
        if !self.captures.is_empty() {
            fs::create_dir_all(folder.join("captures"))?;
        }
        for capture in &self.captures {
            capture.write(&folder.join("captures"))?;
        }
        if self.also.csv {
            let mut to = io::BufWriter::new(fs::File::create(folder.join(CSV))?);
            self.series.write_csv(&mut to).and_then(|()| io::Write::flush(&mut to))?;
        }
        if self.also.flent {
            let mut to = io::BufWriter::new(fs::File::create(folder.join(FLENT))?);
            penstock_measure::flent::write(&self.record, &self.series, self.test.as_deref(), &mut to)?;
            io::Write::flush(&mut to)?;
        }
        let names = tc_names(self.record.devices.iter().map(|d| (&*d.host, &*d.dev)));
        let places: BTreeMap<(&str, &str), usize> =
            self.record.devices.iter().enumerate().rev().map(|(at, d)| ((&*d.host, &*d.dev), at)).collect();
        let together = self.record.devices.len() > MANY;
        let mut plain = String::new();
        for (host, dev, text) in &self.tc {
            let Some(&at) = places.get(&(&**host, &**dev)) else { continue };
            let device = &self.record.devices[at];
            match (idle(device), together && unshaped(device)) {
                (true, _) => {}
                (false, true) => plain.extend([HEAD, host, " ", dev, "\n", text]),
                (false, false) => fs::write(folder.join("tc").join(&names[at]), text)?,
            }
        }
        if !plain.is_empty() {
            fs::write(folder.join("tc").join(UNSHAPED), plain)?;
        }
        Ok(())
    }
}

/// Whether the folder `there` may go; `path` is its name in messages.
fn replaceable(there: &Path, path: &Path) -> Result<(), String> {
    let shown = path.display();
    let mut files = Vec::new();
    walk(there, Path::new(""), &mut files).map_err(|e| match e.kind() {
        io::ErrorKind::NotADirectory => {
            format!("{shown} exists and is not a folder; choose another with --out")
        }
        _ => format!("cannot read {shown}: {e}"),
    })?;
    if files.is_empty() {
        return Ok(());
    }
    if !files.iter().any(|f| f == Path::new("record.json")) {
        return Err(format!("{shown} exists and is not a run folder; choose another with --out"));
    }
    let record = Roots::new().allow(there).and_then(|roots| roots.read(&there.join("record.json"), RECORD));
    let text = record.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "this is not text".to_owned()));
    let names = text.and_then(|text| record::Names::from_json(&text));
    let names = names.map_err(|e| format!("{shown}/record.json: {e}; choose another folder with --out"))?;
    let own = written(&names);
    let mut others = files.iter().filter(|f| !own.contains(*f));
    match (others.next(), others.count()) {
        (None, _) => Ok(()),
        (Some(other), more) => {
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Err(format!(
                "{shown} holds {}{more}, which no run wrote; move it away, or choose another folder with --out",
                other.display()
            ))
        }
    }
}

/// What a run with this record has written, apart from folders.
fn written(record: &record::Names) -> BTreeSet<PathBuf> {
    let mut files: BTreeSet<PathBuf> =
        ["record.json", "series.parquet", "report.html", CSV, FLENT].map(PathBuf::from).into();
    files.extend(record.captures.iter().map(|capture| PathBuf::from(&capture.file)));
    let apps = record.apps.iter().enumerate();
    files.extend(apps.map(|(i, app)| Path::new("apps").join(app_file(i, &app.host))));
    let flows = record.flows.iter().enumerate();
    files.extend(flows.map(|(i, flow)| Path::new("flows").join(flow_file(i, &flow.name))));
    let devices = record.devices.iter().map(|d| (&*d.host, &*d.dev));
    files.extend(tc_names(devices).into_iter().map(|name| Path::new("tc").join(name)));
    files.insert(Path::new("tc").join(UNSHAPED));
    files
}

/// All that lies below a folder and is not a folder of a run; empty folders of other names count as well.
fn walk(folder: &Path, below: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        let ours = below.as_os_str().is_empty()
            && ["apps", "captures", "flows", "tc"].iter().any(|n| name == Path::new(n));
        if ours && entry.file_type()?.is_dir() {
            walk(folder, &name, files)?;
        } else {
            files.push(name);
        }
    }
    Ok(())
}

fn flow_file(i: usize, name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    format!("{:02}-{}.csv", i + 1, name.chars().map(plain).collect::<String>())
}

fn app_file(i: usize, host: &str) -> String {
    format!("{:02}-{host}.txt", i + 1)
}

/// Whether a device has only the queue that the kernel gave it, and nothing went through it: it has no file in `tc`.
fn idle(device: &record::Device) -> bool {
    device.classes.is_empty()
        && device.qdiscs.iter().all(|q| q.handle == "0:" && q.packets == 0 && q.drops == 0)
}

/// Whether a device has only the queue that the kernel gave it, and that dropped nothing.
fn unshaped(device: &record::Device) -> bool {
    device.classes.is_empty() && device.qdiscs.iter().all(|q| q.handle == "0:" && q.drops == 0)
}

/// Of a run with more devices than this the unshaped ones have one file together: thousands of files cost more than the run.
const MANY: usize = 200;
/// That file, in `tc`.
const UNSHAPED: &str = "unshaped.txt";
/// What a device's text begins with there: `## HOST DEV`.
const HEAD: &str = "## ";

/// The texts of that file: machine, device, text.
fn texts(file: &str) -> Vec<(String, String, String)> {
    let mut texts: Vec<(String, String, String)> = Vec::new();
    for line in file.split_inclusive('\n') {
        let named = line.strip_prefix(HEAD).and_then(|names| names.trim_end().split_once(' '));
        match (named, texts.last_mut()) {
            (Some((host, dev)), _) => texts.push((host.to_owned(), dev.to_owned(), String::new())),
            (None, Some(last)) => last.2.push_str(line),
            (None, None) => {}
        }
    }
    texts
}

/// The files of a record's devices: `HOST-DEV.txt`. Where two would have the same (`a-b` and `c`, `a` and `b-c`), the later one has a number
/// behind it.
fn tc_names<'a>(devices: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut taken = BTreeSet::from([UNSHAPED.to_owned()]);
    let mut name = |(host, dev): (&str, &str)| {
        let plain = format!("{}-{}", host.replace('/', "_"), dev.replace('/', "_"));
        let numbered = (2u32..).map(|n| format!("{plain}-{n}.txt"));
        let free = std::iter::once(format!("{plain}.txt")).chain(numbered).find(|f| !taken.contains(f));
        let free = free.unwrap_or_default();
        taken.insert(free.clone());
        free
    };
    devices.map(&mut name).collect()
}

impl Folder {
    /// Reads a run folder, or the one a path to its `record.json` or `report.html` lies in.
    ///
    /// # Errors
    /// A sentence when it is none or not whole.
    pub fn read(path: &Path) -> Result<Folder, String> {
        let given = path;
        let path = match path.parent() {
            Some(parent) if path.is_file() && parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) if path.is_file() => parent,
            _ => path,
        };
        if !path.is_dir() {
            return Err(format!("{} is not a run folder: it has no record.json", path.display()));
        }
        // What lies in a run folder may have come from anywhere: its links lead nowhere else.
        let roots = Roots::new().allow(path)?;
        let file = |name: &str| {
            let full = path.join(name);
            let limit = if name == "record.json" { RECORD } else { PART };
            roots.read(&full, limit).map_err(|e| match full.symlink_metadata().is_err() {
                true if given.is_file() => {
                    format!("{} is not in a run folder: there is no {name} beside it", given.display())
                }
                true => format!("{} is not a run folder: it has no {name}", path.display()),
                false => format!("cannot read {}: {e}", full.display()),
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
        let together = record.devices.len() > MANY;
        let plain = texts(&lossy(format!("tc/{UNSHAPED}")).unwrap_or_default());
        let mut plain: BTreeMap<_, _> = plain.into_iter().map(|(h, d, text)| ((h, d), text)).collect();
        let names = tc_names(record.devices.iter().map(|d| (&*d.host, &*d.dev)));
        let tc = record.devices.iter().zip(names).filter(|(d, _)| !idle(d)).filter_map(|(d, name)| {
            let (host, dev) = (d.host.clone(), d.dev.clone());
            let own = || lossy(format!("tc/{name}")).ok();
            // A run of an earlier version has a file for each.
            let text = if together && unshaped(d) {
                plain.remove(&(host.clone(), dev.clone())).or_else(own)
            } else {
                own()
            };
            Some((host, dev, text?))
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
    let done = penstock_files::replace(&file, report::html(&page));
    done.map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_run_wrote_stays() {
        let text = "title = \"t\"\nduration = \"100ms\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
                    [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"1mbit\"\n[[app]]\non = \"a\"\nrun = \"ping -c 1 10.0.0.2\"\n\
                    [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = \"64kbit\"\n";
        let experiment = crate::experiment::parse(text, "x.toml").unwrap_or_else(|d| panic!("{}", d[0]));
        let mut options = crate::run::Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
        let outcome = crate::run::run(&experiment, &mut options).unwrap_or_else(|d| panic!("{}", d[0]));
        let place = std::env::temp_dir().join(format!("penstock-folder-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        let folder = place.join("runs/r");
        outcome.write(&folder).unwrap();
        outcome.write(&folder).unwrap();
        assert_eq!(Folder::read(&folder).unwrap().record, outcome.record);
        for name in ["notes.txt", "apps/notes.txt", "apps/02-a.txt", "flows/01-g.csv", "more/x"] {
            let foreign = folder.join(name);
            let parent = foreign.parent().unwrap();
            fs::create_dir_all(parent).unwrap();
            fs::write(&foreign, "mine").unwrap();
            let said = outcome.write(&folder).unwrap_err();
            let shown = if name == "more/x" { "more" } else { name };
            assert!(said.contains(&format!("holds {shown}, which no run wrote")), "{said}");
            assert_eq!(fs::read_to_string(&foreign).unwrap(), "mine");
            fs::remove_file(&foreign).unwrap();
            let _ = fs::remove_dir(parent);
        }
        outcome.write(&folder).unwrap();
        // A record.json that is none makes no run folder, and a folder without one is somebody's.
        fs::write(folder.join("record.json"), "{}").unwrap();
        assert!(outcome.write(&folder).unwrap_err().contains("record.json: this is not a run record"));
        fs::remove_file(folder.join("record.json")).unwrap();
        assert!(outcome.write(&folder).unwrap_err().contains("is not a run folder"));
        assert!(outcome.write(&folder.join("series.parquet")).unwrap_err().contains("is not a folder"));
        assert_eq!(fs::read_dir(place.join("runs")).unwrap().count(), 1);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn of_many_devices_those_without_queues_of_their_own_share_a_file() {
        let text = "duration = \"100ms\"\n[host.\"u{1..150}\"]\neth0 = \"10.0.{n}.2/24\"\nvia = \"10.0.{n}.1\"\n\
                    [host.r]\n\"p{1..150}\" = \"10.0.{n}.1/24\"\n\
                    setup = [\"sysctl -w net.ipv4.ip_forward=1\", \"tc qdisc add dev p7 root tbf rate 1mbit burst 5k latency 50ms\"]\n\
                    [[link]]\neach = \"1..150\"\nends = [\"u{n}:eth0\", \"r:p{n}\"]\nrate = \"10mbit\"\n\
                    [[flow]]\nname = \"f\"\nfrom = \"u1\"\nto = \"u7\"\nudp = true\nload = \"64kbit\"\n";
        let experiment = crate::experiment::parse(text, "x.toml").unwrap_or_else(|d| panic!("{}", d[0]));
        let mut options = crate::run::Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
        let outcome = crate::run::run(&experiment, &mut options).unwrap_or_else(|d| panic!("{}", d[0]));
        let place = std::env::temp_dir().join(format!("penstock-folder-many-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        let folder = place.join("r");
        outcome.write(&folder).unwrap();
        outcome.write(&folder).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(folder.join("tc")).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["r-p7.txt", "unshaped.txt"]);
        let mut kept = outcome.tc.clone();
        kept.retain(|(host, dev, _)| {
            !idle(outcome.record.devices.iter().find(|d| d.host == *host && d.dev == *dev).unwrap())
        });
        assert_eq!(kept.len(), 4, "u1 eth0, r p1, r p7, u7 eth0");
        let mut read = Folder::read(&folder).unwrap().tc;
        kept.sort();
        read.sort();
        assert_eq!(read, kept);
        fs::remove_dir_all(&place).unwrap();
    }
}
