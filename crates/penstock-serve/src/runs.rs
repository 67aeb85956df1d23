//! The folder of runs: what lies in it, as a list; its files; two of them compared.

use crate::routes::kind;
use penstock_files::Roots;
use penstock_lab::run::Folder;
use penstock_measure::compare::{self, Side};
use penstock_measure::report;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// How deep runs are looked for.
const DEEP: usize = 4;
/// Most folders that are looked into.
const FOLDERS: usize = 20_000;
/// Most bytes of a file that is sent, and of a record whose head is read.
const LARGEST: u64 = 1 << 30;

/// The folder.
pub(crate) struct Runs {
    folder: PathBuf,
    roots: Roots,
    /// The heads of records, by path, with the time and size of the file they were read from.
    heads: Mutex<BTreeMap<String, (SystemTime, u64, Head)>>,
}

/// What the list shows of a record.
#[derive(Clone, Deserialize)]
struct Head {
    title: String,
    duration_s: f64,
    seed: u64,
    #[serde(default)]
    expects: Vec<Expect>,
}

#[derive(Clone, Deserialize)]
struct Expect {
    ok: bool,
}

/// What lies in the folder.
enum Found {
    Run(Head),
    /// A sweep: how many runs have a result, and whether it is at its end.
    Sweep(usize, bool),
    /// A record that cannot be read, and why.
    Broken(String),
}

impl Runs {
    pub(crate) fn open(folder: &Path) -> Result<Runs, String> {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let roots = Roots::new().allow(folder)?;
        Ok(Runs { folder: folder.to_owned(), roots, heads: Mutex::default() })
    }

    /// What lies there, by path, in the order of the paths.
    fn list(&self) -> Vec<(String, Found)> {
        let mut found = Vec::new();
        let mut left = FOLDERS;
        self.look(&mut String::new(), 0, &mut left, &mut found);
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    fn look(&self, path: &mut String, depth: usize, left: &mut usize, found: &mut Vec<(String, Found)>) {
        let here = self.folder.join(&*path);
        if let Some(what) = self.what(path, &here) {
            found.push((path.clone(), what));
            return;
        }
        let Ok(entries) = fs::read_dir(&here) else { return };
        // Links are not followed: they may lead round, or elsewhere.
        for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if depth == DEEP || *left == 0 || name.starts_with('.') {
                continue;
            }
            *left -= 1;
            let length = path.len();
            if length > 0 {
                path.push('/');
            }
            path.push_str(&name);
            self.look(path, depth + 1, left, found);
            path.truncate(length);
        }
    }

    fn what(&self, path: &str, here: &Path) -> Option<Found> {
        let record = here.join("record.json");
        if let Ok(about) = fs::symlink_metadata(&record) {
            let (time, size) = (about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len());
            let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((t, s, head)) = heads.get(path)
                && (*t, *s) == (time, size)
            {
                return Some(Found::Run(head.clone()));
            }
            let read = self.roots.read(&record, LARGEST);
            let read = read.and_then(|b| serde_json::from_slice::<Head>(&b).map_err(|e| e.to_string()));
            return Some(match read {
                Ok(head) => {
                    heads.insert(path.to_owned(), (time, size, head.clone()));
                    Found::Run(head)
                }
                Err(why) => Found::Broken(why),
            });
        }
        let results = here.join("results");
        if !here.join("lock").is_file() || !results.is_dir() {
            return None;
        }
        let folders = fs::read_dir(results).into_iter().flatten().flatten();
        let done = folders.map(|f| fs::read_dir(f.path()).map_or(0, Iterator::count)).sum();
        Some(Found::Sweep(done, here.join("sweep.json").is_file()))
    }

    /// The list as JSON.
    pub(crate) fn json(&self) -> Value {
        let row = |(path, what): (String, Found)| match what {
            Found::Run(head) => json!({
                "kind": "run", "path": path, "title": head.title, "duration_s": head.duration_s, "seed": head.seed,
                "expects_met": head.expects.iter().filter(|e| e.ok).count(), "expects": head.expects.len(),
            }),
            Found::Sweep(done, ended) => {
                json!({ "kind": "sweep", "path": path, "results": done, "ended": ended })
            }
            Found::Broken(why) => json!({ "kind": "broken", "path": path, "why": why }),
        };
        json!(self.list().into_iter().map(row).collect::<Vec<_>>())
    }

    /// The list as a page; `page`: there is one to go back to.
    pub(crate) fn page(&self, page: bool) -> String {
        let list = self.list();
        let mut out = report::opening("Runs");
        let going = list.iter().any(|(_, what)| matches!(what, Found::Sweep(_, false)));
        if going {
            // Without scripts: the page is asked for again while a sweep goes on.
            out = out.replacen("<title>", "<meta http-equiv=\"refresh\" content=\"2\"><title>", 1);
        }
        let home = if page { "<a href=\"/\">Script, Lab, Learn</a>" } else { "" };
        let shown = escape(&self.folder.display().to_string());
        let _ = writeln!(
            out,
            "<header><h1>Runs</h1><p class=\"facts\"><span>{shown}</span><span>{home}</span></p></header>"
        );
        if !page {
            out.push_str(
                "<p>This program was built without the page for scripts and experiments: <code>cargo xtask web</code> builds it, \
                 <code>penstock serve --page web/dist</code> serves it.</p>\n",
            );
        }
        if list.is_empty() {
            out.push_str("<p>There are none yet: <code>penstock run FILE</code> and <code>penstock sweep FILE</code> write them.</p>\n");
        } else {
            out.push_str(
                "<form action=\"/compare\"><div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>run</th><th>title</th><th class=\"n\">s</th>\
                 <th class=\"n\">seed</th><th class=\"n\">expectations met</th><th>before</th><th>after</th></tr></thead><tbody>\n",
            );
            for (path, what) in &list {
                row(&mut out, path, what);
            }
            out.push_str("</tbody></table></div><p><button>Compare before and after</button></p></form>\n");
        }
        out.push_str("</main></body></html>\n");
        out
    }

    /// A file of the folder: its media type and its bytes.
    pub(crate) fn file(&self, path: &str) -> Option<(&'static str, Vec<u8>)> {
        let bytes = self.roots.read(&self.folder.join(path), LARGEST).ok()?;
        Some((kind(path), bytes))
    }

    /// The page that compares two runs of the list.
    pub(crate) fn compare(&self, before: &str, after: &str) -> Result<String, String> {
        if before.is_empty() || after.is_empty() {
            return Err("choose one run before and one after".to_owned());
        }
        let list = self.list();
        let read = |name: &str| {
            let is_run = list.iter().any(|(path, what)| path == name && matches!(what, Found::Run(_)));
            if !is_run {
                return Err(format!("there is no run {name:?}"));
            }
            Folder::read(&self.folder.join(name))
        };
        let (a, b) = (read(before)?, read(after)?);
        let before = Side { name: before.to_owned(), runs: vec![(&a.record, &a.series)] };
        let after = Side { name: after.to_owned(), runs: vec![(&b.record, &b.series)] };
        Ok(compare::html(&before, &after, &compare::compare(&before, &after)))
    }

    /// Where a run is kept under a name.
    pub(crate) fn place(&self, name: &str) -> Result<PathBuf, String> {
        let sound = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
        if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(sound) {
            return Err(format!("{name:?} is not a name for a run: letters, digits, - _ . =, at most 64"));
        }
        let place = self.folder.join(name);
        match fs::symlink_metadata(&place) {
            Ok(about) if about.file_type().is_symlink() => Err(format!("{name} is a link")),
            _ => Ok(place),
        }
    }
}

fn row(out: &mut String, path: &str, what: &Found) {
    let link = |file: &str| {
        let parts = path.split('/').map(|p| {
            percent_encoding::utf8_percent_encode(p, percent_encoding::NON_ALPHANUMERIC).to_string()
        });
        format!("/runs/{}/{file}", parts.collect::<Vec<_>>().join("/"))
    };
    let name = escape(path);
    let _ = match what {
        Found::Run(head) => {
            let met = head.expects.iter().filter(|e| e.ok).count();
            let expects = if head.expects.is_empty() {
                String::new()
            } else {
                format!("{met} of {}", head.expects.len())
            };
            let choice = |side: &str| {
                format!(
                    "<td><input type=\"radio\" name=\"{side}\" value=\"{name}\" aria-label=\"{name}\"></td>"
                )
            };
            writeln!(
                out,
                "<tr><td><a href=\"{}\">{name}</a></td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{expects}</td>{}{}</tr>",
                link("report.html"),
                escape(&head.title),
                head.duration_s,
                head.seed,
                choice("a"),
                choice("b"),
            )
        }
        Found::Sweep(done, true) => writeln!(
            out,
            "<tr><td><a href=\"{}\">{name}</a></td><td colspan=\"6\">a sweep of {done} runs</td></tr>",
            link("report.html")
        ),
        Found::Sweep(done, false) => {
            writeln!(
                out,
                "<tr><td>{name}</td><td colspan=\"6\">a sweep that goes on: {done} runs have a result</td></tr>"
            )
        }
        Found::Broken(why) => {
            writeln!(
                out,
                "<tr><td>{name}</td><td colspan=\"6\">its record cannot be read: {}</td></tr>",
                escape(why)
            )
        }
    };
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
