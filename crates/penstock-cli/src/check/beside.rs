//! Files that scripts source: read where they lie beside the script, in the folder that was named, or in the working folder, and nowhere else.

use penstock_check::{Answer, Sourced, SourcedWord, sourced};
use penstock_files::Roots;
use penstock_machine::script::Script;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Files of one script, at most, and bytes of each.
const FILES: usize = 64;
const MOST: u64 = 4 << 20;

/// What a script sources, and what that sources in turn. `named` is what stands on the command line.
pub fn read(script: &Script, path: &Path, named: &[PathBuf]) -> Vec<Sourced> {
    let is_file = !(path.as_os_str() == "-" || path.starts_with("/dev") || path.starts_with("/proc"));
    let folder = |p: &Path| p.parent().map(Path::to_owned).unwrap_or_default();
    let own = is_file.then(|| folder(path));
    let above = named.iter().filter(|n| n.is_dir() && path.starts_with(n) || **n == Path::new("."));
    let folders: Vec<PathBuf> = own.iter().chain(above).cloned().chain([PathBuf::new()]).collect();
    let look = Look { folders, named };
    let mut all: Vec<Sourced> = Vec::new();
    let mut known: BTreeSet<String> = BTreeSet::from([script.name.clone()]);
    let mut next = vec![(script.name.clone(), script.text.clone(), own)];
    while let Some((within, text, folder)) = next.pop() {
        for word in sourced(&within, &text) {
            let Some((path, text)) = look.find(&word, folder.as_deref()) else { continue };
            let name = path.display().to_string();
            if let Ok(text) = &text
                && known.len() < FILES
                && known.insert(name.clone())
            {
                next.push((name.clone(), text.clone(), Some(self::folder(&path))));
            }
            all.push(Sourced { within: within.clone(), word: word.word, name, text });
        }
    }
    all
}

fn folder(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Where is looked.
struct Look<'a> {
    /// The script's folder, the one named, the working folder (empty).
    folders: Vec<PathBuf>,
    named: &'a [PathBuf],
}

impl Look<'_> {
    /// The file of a word, or why it is not read; `None` where the word names none.
    fn find(&self, word: &SourcedWord, folder: Option<&Path>) -> Option<(PathBuf, Result<String, String>)> {
        let first = PathBuf::from(word.paths.first()?);
        if first.is_absolute() {
            let above = self.named.iter().filter(|n| n.is_absolute());
            let roots = above.map(|n| if n.is_dir() { n.clone() } else { self::folder(n) });
            let roots: Vec<PathBuf> = roots.filter(|r| first.starts_with(r)).collect();
            let text = match roots.is_empty() {
                true => {
                    Err(format!("it is not in a folder that was named; --file {} gives it", first.display()))
                }
                false => text(&roots.into_iter().fold(Roots::new(), allowed), &first),
            };
            return Some((first, text));
        }
        let roots = self.folders.iter().cloned().fold(Roots::new(), allowed);
        let mut said = None;
        for path in &word.paths {
            for folder in folder.into_iter().chain(self.folders.iter().map(PathBuf::as_path)) {
                let path = plain(&folder.join(path));
                match text(&roots, &path) {
                    Ok(text) => return Some((path, Ok(text))),
                    Err(why) if why.contains("no such file") => {}
                    Err(why) => said = said.or(Some((path, Err(why)))),
                }
            }
        }
        let none = "there is no such file beside the script; --file PATH=FILE gives one";
        said.or_else(|| Some((first, Err(none.to_owned()))))
    }
}

fn allowed(roots: Roots, folder: PathBuf) -> Roots {
    let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
    roots.clone().allow(&folder).unwrap_or(roots)
}

/// The text of a file below these folders.
fn text(roots: &Roots, path: &Path) -> Result<String, String> {
    let bytes = roots.read(path, MOST).map_err(|why| match why.split_once(": --allow-path") {
        Some((outside, _)) => format!("{outside}; --file PATH=FILE gives it"),
        None => why,
    })?;
    if bytes.contains(&0) {
        return Err("it is not a text file".to_owned());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A path without `.`, and without `..` behind a name.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        let named = matches!(out.components().next_back(), Some(Component::Normal(_)));
        match part {
            Component::CurDir => {}
            Component::ParentDir if named => _ = out.pop(),
            part => out.push(part),
        }
    }
    out
}

/// Of several scripts one that sources another: what stands in the other is counted and told there, and judged as the one that sources it carries it out.
pub fn shared(scripts: &[Script], answers: &mut [Answer]) {
    let names: Vec<String> = scripts.iter().map(|s| s.name.clone()).collect();
    let mut told = BTreeSet::new();
    for at in 0..answers.len() {
        let shared: Vec<String> =
            answers[at].coverage.files.keys().filter(|f| names.contains(f)).cloned().collect();
        for file in shared {
            let coverage = &mut answers[at].coverage;
            if let Some(of) = coverage.files.get_mut(&file) {
                let (commands, looked_at) = std::mem::take(of);
                coverage.commands -= commands;
                coverage.looked_at -= looked_at;
            }
            coverage.missed.retain(|m| m.file != file);
            let lines: BTreeSet<u32> =
                answers[at].carried_out.iter().filter(|l| l.0 == file).map(|l| l.1).collect();
            // What another script sees in it is said once, in its own place in the order.
            let (theirs, own): (Vec<_>, Vec<_>) =
                std::mem::take(&mut answers[at].findings).into_iter().partition(|f| f.file == file);
            answers[at].findings = own;
            let Some(there) = names.iter().position(|n| *n == file) else { continue };
            let of = &mut answers[there].findings;
            of.retain(|f| {
                !lines.contains(&f.begins)
                    || told.contains(&(f.file.clone(), f.code, f.line, f.column))
                    || f.code == "PS008"
            });
            for f in theirs {
                let place = (f.file.clone(), f.code, f.line, f.column);
                let known = of
                    .iter()
                    .any(|k| (&k.file, k.code, k.line, k.column) == (&f.file, f.code, f.line, f.column));
                if !known && told.insert(place) {
                    of.push(f);
                }
            }
            of.sort();
        }
    }
}
