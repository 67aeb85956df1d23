//! The experiments that are part of the program: `penstock examples`, `penstock new`, `run example:NAME`.
//!
//! All of `examples/` (here `experiments`, a link, so that the published crate has them) is in the program, scripts too, so an
//! installed program needs no other file. The name of an example is its path without ending: `home-line`, `systems/rsvp`.
//! Templates for `penstock new` are those in `new/`.

use anyhow::{Context as _, Result, bail, ensure};
use include_dir::{Dir, include_dir};
use penstock_lab::experiment::{self, Experiment};
use penstock_measure::table::{Align, Table};
use penstock_model::Diagnostic;
use serde_json::json;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use toml::de::DeTable;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/experiments");
/// What stands before an example's name in place of a file.
const SCHEME: &str = "example:";
/// The folder of the templates.
const TEMPLATES: &str = "new/";
/// What `penstock new` writes when nobody says.
const FIRST: &str = "home-line";

/// What `penstock examples` takes.
#[derive(clap::Args)]
#[command(after_help = "Without a name: which examples there are.\nTry:  penstock run example:home-line")]
pub struct Args {
    /// Print the text of this example
    name: Option<String>,
    /// Print the list, or the example with its text, as JSON
    #[arg(long)]
    json: bool,
}

/// What `penstock new` takes.
#[derive(clap::Args)]
#[command(
    after_help = "Nothing that is there is replaced.\nTry:  penstock new bufferbloat && penstock run bufferbloat.toml"
)]
pub struct NewArgs {
    /// The template (--list shows them) [default: home-line]
    template: Option<String>,
    /// The file to write, or the folder to write into [default: the template's name and .toml]
    file: Option<PathBuf>,
    /// Show which templates there are
    #[arg(long, conflicts_with_all = ["template", "file"])]
    list: bool,
    /// Print the list, or what was written, as JSON
    #[arg(long)]
    json: bool,
}

/// An experiment that is part of the program.
struct Example {
    /// Its path without ending.
    name: String,
    text: &'static str,
}

impl Example {
    fn title(&self) -> String {
        let table = DeTable::parse_recoverable(self.text).0;
        let title = table.get_ref().get("title").and_then(|v| v.get_ref().as_str().map(str::to_owned));
        title.unwrap_or_else(|| self.name.clone())
    }
}

/// All of them: those of the folder itself, then folder by folder.
fn all() -> Vec<Example> {
    let mut list = Vec::new();
    gather(&FILES, &mut list);
    list.sort_by_key(|e| (e.name.contains('/'), e.name.clone()));
    list
}

fn gather(folder: &'static Dir<'static>, list: &mut Vec<Example>) {
    for file in folder.files().filter(|f| f.path().extension().is_some_and(|e| e == "toml")) {
        if let Some(text) = file.contents_utf8() {
            list.push(Example { name: slashes(&file.path().with_extension("")), text });
        }
    }
    for folder in folder.dirs() {
        gather(folder, list);
    }
}

/// A path as it stands in a name, on every system.
fn slashes(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|c| c.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// The example of that name; a name without its folder will do where it is the only one.
fn find(name: &str) -> Result<Example> {
    let wanted = name.strip_suffix(".toml").unwrap_or(name);
    let all = all();
    let at = all.iter().position(|e| e.name == wanted).or_else(|| {
        let ends = |e: &Example| e.name.rsplit('/').next() == Some(wanted);
        all.iter().position(ends).filter(|first| !all[first + 1..].iter().any(ends))
    });
    if let Some(at) = at {
        return Ok(all.into_iter().nth(at).expect("it is in the list"));
    }
    let names: Vec<&str> = all.iter().map(|e| e.name.as_str()).collect();
    let near = crate::near::name(wanted, &names);
    bail!("there is no example \"{name}\"; {near}penstock examples lists them")
}

/// The name of an example, where a file is asked for.
pub fn named(file: &Path) -> Option<&str> {
    file.to_str()?.strip_prefix(SCHEME)
}

/// The file whose name a run has: that of an example without its folders.
pub fn as_file(file: &Path) -> &Path {
    named(file).map_or(file, |name| Path::new(Path::new(name).file_name().unwrap_or_default()))
}

/// Reads an example; what it names is read from the program too.
///
/// # Errors
/// There is no such example. Faults within one are the inner error.
pub fn load(name: &str) -> Result<Result<Experiment, Vec<Diagnostic>>> {
    let (text, file) = text(name)?;
    Ok(experiment::parse_with(text, &file, &inside))
}

/// The text of an example, and the name it has as a file.
///
/// # Errors
/// There is no such example.
pub fn text(name: &str) -> Result<(&'static str, String)> {
    let example = find(name)?;
    // The slash makes `example:` the folder that other files are read from.
    Ok((example.text, format!("{SCHEME}/{}.toml", example.name)))
}

/// The text of a file that an example names.
///
/// # Errors
/// A sentence why there is none.
pub fn inside(path: &str) -> Result<String, String> {
    let inside = path.strip_prefix(SCHEME).unwrap_or(path);
    let parts = Path::new(inside).components().filter(|c| !matches!(c, Component::RootDir));
    let mut inside = PathBuf::new();
    for part in parts {
        match part {
            Component::ParentDir => {
                inside.pop();
            }
            part => inside.push(part),
        }
    }
    let file = FILES.get_file(slashes(&inside)).ok_or("it is not part of the program")?;
    penstock_model::binary::text_of(file.contents().to_vec())
        .ok_or_else(|| "it is not a text file".to_owned())
}

/// `penstock examples`.
pub fn main(args: &Args) -> Result<ExitCode> {
    if let Some(name) = &args.name {
        let example = find(named(Path::new(name)).unwrap_or(name))?;
        match args.json {
            true => {
                crate::json(&json!({ "name": example.name, "title": example.title(), "text": example.text }))?
            }
            false => crate::print(example.text)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let examples = all();
    if args.json {
        listed(&examples, "")?;
    } else {
        crate::print(&table("example", &examples, ""))?;
        crate::print("\npenstock run example:NAME runs one, penstock examples NAME prints its text.\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(head: &str, examples: &[Example], folder: &str) -> String {
    let mut table = Table::new(&[(head, Align::Left), ("what it shows", Align::Left)]);
    for example in examples {
        let name = example.name.strip_prefix(folder).unwrap_or(&example.name);
        table.row([name.to_owned(), example.title()]);
    }
    table.text(0)
}

fn listed(examples: &[Example], folder: &str) -> Result<()> {
    let row = |e: &Example| {
        let name = e.name.strip_prefix(folder).unwrap_or(&e.name);
        json!({ "name": name, "title": e.title() })
    };
    let rows: Vec<_> = examples.iter().map(row).collect();
    crate::json(&rows)
}

/// `penstock new`.
pub fn new(args: &NewArgs) -> Result<ExitCode> {
    let templates: Vec<Example> = all().into_iter().filter(|e| e.name.starts_with(TEMPLATES)).collect();
    if args.list {
        if args.json {
            listed(&templates, TEMPLATES)?;
        } else {
            crate::print(&table("template", &templates, TEMPLATES))?;
            crate::print("\npenstock new TEMPLATE writes one.\n")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = args.template.as_deref().unwrap_or(FIRST);
    let names: Vec<&str> = templates.iter().map(|e| &e.name[TEMPLATES.len()..]).collect();
    let Some(at) = names.iter().position(|n| *n == wanted) else {
        let near = crate::near::name(wanted, &names);
        bail!("there is no template \"{wanted}\"; {near}there is {}", names.join(", "));
    };
    let file = match &args.file {
        Some(path) if path.is_dir() => path.join(format!("{wanted}.toml")),
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{wanted}.toml")),
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut files = vec![(file.clone(), templates[at].text)];
    // The scripts it names keep their names.
    let beside = FILES.get_dir("new").into_iter().flat_map(Dir::files);
    for script in beside.filter(|f| f.path().extension().is_some_and(|e| e != "toml")) {
        let name = script.path().file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if templates[at].text.contains(&format!("\"@{name}\"")) {
            let text = script.contents_utf8().context("a template is text")?;
            files.push((folder.join(name), text));
        }
    }
    for (path, _) in &files {
        ensure!(
            std::fs::symlink_metadata(path).is_err_and(|e| e.kind() == ErrorKind::NotFound),
            "{} is there already; nothing was written. Name another file: penstock new {wanted} FILE",
            path.display()
        );
    }
    if !folder.as_os_str().is_empty() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    for (path, text) in &files {
        penstock_files::replace(path, text).map_err(|e| anyhow::anyhow!("{}: {e}", path.display()))?;
        if !args.json {
            crate::show(&format!("{}\n", path.display()))?;
        }
    }
    if args.json {
        let written: Vec<_> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        crate::json(
            &json!({ "template": wanted, "experiment": file.display().to_string(), "written": written }),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    crate::show(&format!("\nNext:  penstock run {}\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_and_without_folder() {
        let name = |n: &str| find(n).map(|e| e.name).map_err(|e| e.to_string());
        assert_eq!(name("home-line").unwrap(), "home-line");
        assert_eq!(name("home-line.toml").unwrap(), "home-line");
        assert_eq!(name("rsvp").unwrap(), "systems/rsvp");
        assert_eq!(name("new/home-line").unwrap(), "new/home-line");
        let none = "there is no example \"home-lien\"; did you mean home-line? penstock examples lists them";
        assert_eq!(name("home-lien").unwrap_err(), none);
    }

    #[test]
    fn the_program_has_what_the_folder_has() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut folders = vec![root.clone()];
        let mut names = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
                if entry.is_dir() {
                    folders.push(entry);
                } else {
                    names.push(slashes(entry.strip_prefix(&root).unwrap()));
                }
            }
        }
        for name in names {
            let text = std::fs::read(root.join(&name)).unwrap();
            let file = FILES
                .get_file(&name)
                .unwrap_or_else(|| panic!("{name} is not in the program: build it again"));
            assert_eq!(file.contents(), text, "{name}");
        }
    }

    #[test]
    fn every_example_is_read_without_a_file_and_has_a_title_of_its_own() {
        let mut titles = std::collections::BTreeMap::new();
        for example in all() {
            let read = load(&example.name).unwrap();
            let experiment = read.unwrap_or_else(|faults| panic!("{}: {}", example.name, faults[0]));
            assert_ne!(example.title(), example.name, "{} has no title", example.name);
            assert_eq!(experiment.title, example.title(), "{}", example.name);
            if let Some(other) = titles.insert(example.title(), example.name.clone()) {
                panic!("{other} and {} have the same title", example.name);
            }
        }
    }
}
