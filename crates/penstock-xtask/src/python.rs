//! The Python module: built by maturin, installed into a fresh virtual environment, tried there.

use crate::tidy;
use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// The least Python.
const LEAST: (u32, u32) = (3, 10);

/// What is needed for the module, or why it cannot be had here.
pub struct Kit {
    folder: PathBuf,
}

/// Makes the virtual environment and gets maturin into it.
///
/// # Errors
/// A sentence: what is not there.
pub fn kit() -> Result<Kit, String> {
    let code = "import sys, venv; print(sys.version_info[0], sys.version_info[1])";
    let said = Command::new("python3").args(["-c", code]).output();
    let said = said.ok().filter(|o| o.status.success()).ok_or("python3 with venv is not installed")?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let mut words = said.split_whitespace().map(|w| w.parse().unwrap_or(0));
    let version = (words.next().unwrap_or(0), words.next().unwrap_or(0));
    if version < LEAST {
        return Err(format!(
            "python3 is {}.{}; the module needs {}.{}",
            version.0, version.1, LEAST.0, LEAST.1
        ));
    }
    let folder = tidy::root().join("target/python");
    let _ = std::fs::remove_dir_all(&folder);
    let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).status();
    if !made.is_ok_and(|s| s.success()) {
        return Err("python3 -m venv failed: apt-get install python3-venv".to_owned());
    }
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "maturin>=1.8,<2"]);
    if !pip.status().is_ok_and(|s| s.success()) {
        return Err("maturin cannot be had: pip install maturin".to_owned());
    }
    Ok(Kit { folder })
}

impl Kit {
    /// Builds the wheel into `target/wheels`, installs it, runs its tests.
    ///
    /// # Errors
    /// One of these fails.
    pub fn run(&self) -> Result<()> {
        let root = tidy::root();
        let wheels = root.join("target/wheels");
        let _ = std::fs::remove_dir_all(&wheels);
        let target = root.join("target");
        let run = |what: &str, command: &mut Command| -> Result<()> {
            let status = command.current_dir(root.join("python")).status().context(what.to_owned())?;
            if !status.success() {
                bail!("{what} failed ({status})");
            }
            Ok(())
        };
        let mut build = Command::new(self.folder.join("bin/maturin"));
        build.args(["build", "--profile", "dev", "--out"]).arg(&wheels).env("CARGO_TARGET_DIR", target);
        run("maturin build", &mut build)?;
        let python = self.folder.join("bin/python");
        let mut install = Command::new(&python);
        install
            .args(["-m", "pip", "install", "--quiet", "--no-index", "--find-links"])
            .arg(&wheels)
            .arg("penstock");
        run("pip install penstock", &mut install)?;
        // From another folder: what is tried is the package that was installed, not its sources.
        let mut tests = Command::new(&python);
        tests.args(["-m", "unittest", "discover", "-s"]).arg(root.join("python/tests"));
        let status = tests.current_dir(&self.folder).status().context("the module's tests")?;
        if !status.success() {
            bail!("the module's tests failed ({status})");
        }
        Ok(())
    }
}
