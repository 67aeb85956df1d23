//! The Python module: built by maturin, installed into a fresh virtual environment, tried there.

use crate::tidy;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The least Python.
const LEAST: (u32, u32) = (3, 10);

/// What is needed for the module.
pub struct Kit {
    folder: PathBuf,
    /// What its tests leave out, and why.
    left_out: Vec<String>,
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
    Ok(Kit { folder, left_out: Vec::new() })
}

/// What the tests need beside the module.
const TESTS: [&str; 12] = [
    "pytest>=8",
    "mypy>=1.10",
    "pyright[nodejs]>=1.1.380",
    "pyarrow>=14",
    "numpy>=1.24",
    "pandas>=2",
    "polars>=1",
    "duckdb>=1.1",
    "matplotlib>=3.8",
    "nbclient>=0.10",
    "nbformat>=5",
    "ipykernel>=6",
];
/// Clusters on which sweeps are tried where they can be had, and how long that may take for each.
const CLUSTERS: [&str; 2] = ["ray>=2.9", "distributed>=2024.1"];
const PATIENCE: Duration = Duration::from_secs(300);

impl Kit {
    /// Gets what the tests need beside the module. Most of that is waiting for a network.
    ///
    /// # Errors
    /// It cannot be had.
    pub fn with_packages(mut self) -> Result<Kit, String> {
        let why = |e: anyhow::Error| e.to_string();
        run("pip install", self.pip().arg("wheel").args(TESTS)).map_err(why)?;
        for cluster in CLUSTERS {
            // None of the two is needed for the rest.
            if let Err(why) = within(PATIENCE, self.pip().arg(cluster)) {
                self.left_out.push(format!("sweeps on a cluster: pip install '{cluster}': {why}"));
            }
        }
        Ok(self)
    }
    fn pip(&self) -> Command {
        let mut pip = Command::new(self.folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip
    }
    /// Builds the program and the wheel, puts one into the other in `target/wheels`, installs it, runs its tests with the packages they need
    /// ([`Kit::with_packages`]). What was left out, and why.
    ///
    /// # Errors
    /// One of these fails.
    pub fn run(self) -> Result<Vec<String>> {
        let root = tidy::root();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        run("cargo build", cargo.current_dir(&root).args(["build", "--workspace", "--bin", "penstock"]))?;
        let wheels = root.join("target/wheels");
        let _ = std::fs::remove_dir_all(&wheels);
        let wheel = self.wheel("dev", &root.join("target/debug/penstock"), &wheels)?;
        self.tried(&wheel)?;
        run("pip install", self.pip().arg("--no-index").arg(&wheel))?;
        // From another folder: what is tried is the package that was installed, not its sources.
        let python = || {
            let mut python = Command::new(self.folder.join("bin/python"));
            python.current_dir(&self.folder);
            python
        };
        let tests = root.join("python/tests");
        let mut pytest = python();
        pytest.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "pytester"]).arg(&tests);
        run("the module's tests", &mut pytest)?;
        let typed = tests.join("typed.py");
        let mypy = ["-m", "mypy", "--strict", "--no-incremental"];
        run("mypy --strict -p penstock", python().args(mypy).args(["-p", "penstock"]))?;
        run("mypy --strict typed.py", python().args(mypy).arg(&typed))?;
        let place = "import penstock, os; print(os.path.dirname(penstock.__file__))";
        let place = python().args(["-c", place]).output()?.stdout;
        let package = PathBuf::from(String::from_utf8(place)?.trim_end());
        let all = std::fs::read_dir(package)?.filter_map(|e| e.ok().map(|e| e.path()));
        let is_python = |p: &PathBuf| p.extension().is_some_and(|e| e == "py" || e == "pyi");
        let files: Vec<PathBuf> = all.filter(is_python).chain([typed]).collect();
        run("pyright", python().args(["-m", "pyright", "--pythonpath", "bin/python"]).args(files))?;
        Ok(self.left_out)
    }

    /// The wheel that is shipped, in `out`; tried in a fresh environment.
    ///
    /// # Errors
    /// A step fails.
    pub fn shipped(&self, program: &Path, out: &Path) -> Result<PathBuf> {
        let (program, out) = (program.canonicalize()?, out.canonicalize()?);
        let wheel = self.wheel("release", &program, &out)?;
        self.tried(&wheel)?;
        Ok(wheel)
    }

    /// Builds the wheel of the module, and packs it again with the program: `pip install` gives both.
    fn wheel(&self, profile: &str, program: &Path, out: &Path) -> Result<PathBuf> {
        let root = tidy::root();
        let work = root.join("target/wheel");
        let _ = std::fs::remove_dir_all(&work);
        std::fs::create_dir_all(&work)?;
        std::fs::create_dir_all(out)?;
        let mut build = Command::new(self.folder.join("bin/maturin"));
        build.args(["build", "--profile", profile, "--out"]).arg(work.join("plain"));
        build.env("CARGO_TARGET_DIR", root.join("target")).current_dir(root.join("python"));
        run("maturin build", &mut build)?;
        let python = self.folder.join("bin/python");
        run("pip install wheel", self.pip().arg("wheel"))?;
        let mut unpack = Command::new(&python);
        unpack
            .args(["-m", "wheel", "unpack", "--dest"])
            .arg(work.join("open"))
            .arg(only(&work.join("plain"), "whl")?);
        run("wheel unpack", &mut unpack)?;
        let open = std::fs::read_dir(work.join("open"))?.next().context("an empty wheel")??.path();
        let name = open.file_name().context("a wheel has a name")?.to_string_lossy().into_owned();
        // What lies there goes beside Python itself.
        let scripts = open.join(format!("{name}.data/scripts"));
        std::fs::create_dir_all(&scripts)?;
        std::fs::copy(program, scripts.join("penstock"))?;
        let mut pack = Command::new(&python);
        pack.args(["-m", "wheel", "pack", "--dest-dir"]).arg(out).arg(&open);
        run("wheel pack", &mut pack)?;
        only(out, "whl")
    }

    /// Installs a wheel into a fresh environment, where the command and the module say the same, and runs the README's example there.
    fn tried(&self, wheel: &Path) -> Result<()> {
        let begun = Instant::now();
        let folder = tidy::root().join("target/python-tried");
        let _ = std::fs::remove_dir_all(&folder);
        run("python3 -m venv", Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let mut install = Command::new(folder.join("bin/python"));
        install
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"])
            .arg(wheel);
        run("pip install", &mut install)?;
        let said = |command: &mut Command| -> Result<String> {
            let output = command.current_dir(&folder).output()?;
            if !output.status.success() {
                bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            }
            Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
        };
        let command = said(Command::new(folder.join("bin/penstock")).arg("--version"))?;
        let module = "import penstock; print('penstock', penstock.__version__)";
        let module = said(Command::new(folder.join("bin/python")).args(["-c", module]))?;
        if command != module {
            bail!("the command of the wheel says {command:?} and its module {module:?}");
        }
        println!("{}: {command}, as a command and as a module", wheel.display());
        let example = example(&std::fs::read_to_string(tidy::root().join("README.md"))?)?;
        std::fs::create_dir_all(folder.join("examples"))?;
        for name in ["home-line.toml", "home-line-unshaped.toml", "home-line.sh"] {
            std::fs::copy(tidy::root().join("examples").join(name), folder.join("examples").join(name))?;
        }
        let printed = said(Command::new(folder.join("bin/python")).args(["-c", &example]))?;
        let picture = std::fs::read_to_string(folder.join(PICTURE)).context(PICTURE)?;
        if !picture.starts_with("<svg") {
            bail!("the README's example made no picture");
        }
        let s = begun.elapsed().as_secs_f64();
        println!(
            "README's example: {printed}; {PICTURE} has {} bytes; installed and run in {s:.1} s",
            picture.len()
        );
        Ok(())
    }
}

/// What the README's example draws.
const PICTURE: &str = "call.svg";

/// The README's example in Python.
fn example(readme: &str) -> Result<String> {
    let from = readme.split_once("```python\n").context("the README has an example in Python")?.1;
    Ok(from.split_once("```").context("which ends")?.0.to_owned())
}

/// Runs a command to its end.
fn run(what: &str, command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| what.to_owned())?;
    if !status.success() {
        bail!("{what} failed ({status})");
    }
    Ok(())
}

/// Runs a command to its end, or to its death after so long.
fn within(patience: Duration, command: &mut Command) -> Result<()> {
    let mut child = command.spawn()?;
    let begun = Instant::now();
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => bail!("it failed ({status})"),
            None if begun.elapsed() > patience => {
                child.kill()?;
                child.wait()?;
                bail!("it took more than {} s", patience.as_secs());
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// The one file of a kind in a folder.
fn only(folder: &Path, kind: &str) -> Result<PathBuf> {
    let all = std::fs::read_dir(folder)?.filter_map(|e| e.ok().map(|e| e.path()));
    let all: Vec<PathBuf> = all.filter(|p| p.extension().is_some_and(|e| e == kind)).collect();
    match &all[..] {
        [one] => Ok(one.clone()),
        _ => bail!("{} has {} files of {kind}; one is meant", folder.display(), all.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_takes_too_long_is_ended() {
        let long = Duration::from_secs(60);
        assert!(within(long, &mut Command::new("true")).is_ok());
        let failed = within(long, &mut Command::new("false")).unwrap_err().to_string();
        assert!(failed.starts_with("it failed"), "{failed}");
        let begun = Instant::now();
        let ended = within(Duration::from_millis(100), Command::new("sleep").arg("50")).unwrap_err();
        assert_eq!(ended.to_string(), "it took more than 0 s");
        assert!(begun.elapsed() < Duration::from_secs(40));
    }
}
