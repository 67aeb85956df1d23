//! Where the configuration of `penstock check` is found, and what the command line adds to it.

use anyhow::{Context as _, Result};
use penstock_check::Config;
use std::path::{Path, PathBuf};

/// A configuration and the folder it speaks of.
pub struct Found {
    pub config: Config,
    folder: PathBuf,
}

impl Found {
    /// A script's path as the configuration's patterns see it.
    pub fn relative(&self, name: &str) -> String {
        let path = Path::new(name);
        let real = path.canonicalize().or_else(|_| std::env::current_dir().map(|d| d.join(path)));
        let real = real.unwrap_or_else(|_| path.to_path_buf());
        real.strip_prefix(&self.folder).map_or(name.to_owned(), |p| p.display().to_string())
    }
}

/// The configuration that is named, else `penstock.toml` in the working folder or one above it; else an empty one.
pub fn find(named: Option<&Path>, none: bool) -> Result<Found> {
    let here = std::env::current_dir().unwrap_or_default();
    if none {
        return Ok(Found { config: Config::default(), folder: here });
    }
    let path = match named {
        Some(path) => Some(path.to_path_buf()),
        None => here.ancestors().map(|d| d.join("penstock.toml")).find(|p| p.is_file()),
    };
    let Some(path) = path else { return Ok(Found { config: Config::default(), folder: here }) };
    let text = super::text(&path, &super::read(&path)?)?;
    let config =
        Config::parse(&text).map_err(anyhow::Error::msg).with_context(|| format!("in {}", path.display()))?;
    let real = path.canonicalize().unwrap_or(path);
    Ok(Found { config, folder: real.parent().unwrap_or(Path::new("/")).to_owned() })
}

/// With what the command line selects and ignores.
pub fn with(config: &Config, select: &[String], ignore: &[String]) -> Result<Config> {
    let list = |name: &str, codes: &[String]| -> Result<Vec<String>> {
        let words: Vec<String> = codes.iter().map(|c| format!("{:?}", c.to_uppercase())).collect();
        let text = format!("[check]\n{name} = [{}]\n", words.join(", "));
        let read = Config::parse(&text).map_err(anyhow::Error::msg).with_context(|| format!("--{name}"))?;
        Ok(if name == "select" { read.select } else { read.ignore })
    };
    let mut all = config.clone();
    if !select.is_empty() {
        all.select = list("select", select)?;
    }
    all.ignore.extend(list("ignore", ignore)?);
    Ok(all)
}
