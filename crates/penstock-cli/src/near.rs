//! What was meant: words of the command line, names and files that are a few letters from one that is there.

use crate::Cli;
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use penstock_lab::experiment::meant;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `did you mean X? `, or nothing.
pub fn name(word: &str, known: &[&str]) -> String {
    meant(word, known).map(|near| format!("did you mean {near}? ")).unwrap_or_default()
}

/// Most entries of a folder that are looked at.
const ENTRIES: usize = 10_000;

/// The path that was meant by one where nothing is: of the same folder, or below a folder that was misspelt.
fn path(given: &Path) -> Option<PathBuf> {
    if given.as_os_str() == "-" || given.exists() {
        return None;
    }
    let name = given.file_name()?.to_str()?;
    let above = given.parent().unwrap_or(Path::new(""));
    let above = match above.as_os_str().is_empty() || above.is_dir() {
        true => above.to_owned(),
        false => path(above)?,
    };
    let right = above.join(name);
    if right.exists() {
        return Some(right);
    }
    let folder = if above.as_os_str().is_empty() { Path::new(".") } else { &above };
    let entries = std::fs::read_dir(folder).ok()?.take(ENTRIES);
    let mut names: Vec<String> = entries
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|n| !n.starts_with('.'))
        .collect();
    names.sort();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // The ending may be what is wrong, or missing.
    let stem = |n: &str| Path::new(n).file_stem().map(|s| s.to_string_lossy().into_owned());
    let other = names.iter().copied().find(|n| *n != name && stem(n) == stem(name));
    other.or_else(|| meant(name, &names)).map(|near| above.join(near))
}

/// Whether a file or folder is there.
///
/// # Errors
/// Nothing is there, and something with nearly that name is: both are told.
pub fn there(given: &Path) -> anyhow::Result<()> {
    match path(given) {
        Some(near) => anyhow::bail!(
            "cannot read {}: there is no such file; did you mean {}?",
            given.display(),
            near.display()
        ),
        None => Ok(()),
    }
}

/// A refused command line, with the verb or option that was probably meant.
pub fn line(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    let command = Cli::command();
    match error.kind() {
        ErrorKind::InvalidSubcommand => verb(&mut error, &command),
        ErrorKind::UnknownArgument if error.get(ContextKind::SuggestedArg).is_none() => {
            if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
                && let Some(near) = option(word, args, &command)
            {
                error.insert(ContextKind::SuggestedArg, ContextValue::String(near));
            }
        }
        // An option that was misspelt is missing, and stands among what is for a script.
        ErrorKind::MissingRequiredArgument => {
            let near = args.iter().skip(2).find_map(|word| {
                let word = word.to_str().filter(|w| w.starts_with("--") && w.len() > 2)?;
                option(word, args, &command).map(|near| format!("{word} is no option; did you mean {near}?"))
            });
            if let Some(near) = near {
                error.insert(
                    ContextKind::Suggested,
                    ContextValue::StyledStrs(vec![clap::builder::StyledStr::from(near)]),
                );
            }
        }
        _ => {}
    }
    error
}

/// clap's own measure takes `rnu` for nothing known, and offers verbs that are hidden.
fn verb(error: &mut clap::Error, command: &clap::Command) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return };
    let verbs = command.get_subcommands().filter(|v| !v.is_hide_set()).map(clap::Command::get_name);
    let verbs: Vec<&str> = verbs.collect();
    // A file alone is an experiment.
    let near = match word.ends_with(".toml") || word.starts_with("example:") {
        true => Some(format!("run {word}")),
        false => meant(word, &verbs).map(str::to_owned),
    };
    let near = match (near, error.remove(ContextKind::SuggestedSubcommand)) {
        (Some(near), _) => vec![near],
        (None, Some(ContextValue::Strings(clap))) => {
            clap.into_iter().filter(|verb| verbs.contains(&verb.as_str())).collect()
        }
        _ => Vec::new(),
    };
    if !near.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
    }
}

/// The option of the verb at hand that a word is near to, with its dashes; `None` for one that there is.
fn option(word: &str, args: &[OsString], command: &clap::Command) -> Option<String> {
    let word = word.strip_prefix("--")?;
    let word = word.split_once('=').map_or(word, |(name, _)| name);
    let verb = args.iter().skip(1).filter_map(|a| a.to_str()).find_map(|a| command.find_subcommand(a))?;
    let known = verb.get_arguments().chain(command.get_arguments());
    let known: Vec<&str> = known.filter(|a| !a.is_hide_set()).filter_map(clap::Arg::get_long).collect();
    let near = meant(word, &known).filter(|near| *near != word)?;
    Some(format!("--{near}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_by_its_name_its_ending_or_its_folder() {
        let folder = std::env::temp_dir().join(format!("penstock-near-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("runs/home-line")).unwrap();
        std::fs::write(folder.join("home.toml"), "").unwrap();
        let near =
            |given: &str| path(&folder.join(given)).map(|p| p.strip_prefix(&folder).unwrap().to_owned());
        assert_eq!(near("hmoe.toml"), Some("home.toml".into()));
        assert_eq!(near("home.tml"), Some("home.toml".into()));
        assert_eq!(near("home"), Some("home.toml".into()));
        assert_eq!(near("run/home-line"), Some("runs/home-line".into()));
        assert_eq!(near("run/home-lnie"), Some("runs/home-line".into()));
        assert_eq!(near("home.toml"), None);
        assert_eq!(near("quite-another.sh"), None);
        assert_eq!(path(Path::new("-")), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
