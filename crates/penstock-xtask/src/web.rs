//! The page in the browser: compiled, built into `web/dist`, tried in node and in a real browser.

use crate::tidy;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program is compiled for.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// The least node.
const LEAST: u32 = 20;

/// Options of `cargo xtask web`.
#[derive(clap::Args)]
pub struct Args {
    /// Try it as well: in node, and in Chromium and Firefox where these are installed
    #[arg(long)]
    test: bool,
    /// Leave the program as it was compiled last; build the page alone
    #[arg(long)]
    page: bool,
}

/// What is needed for the page, or why it cannot be had here.
pub struct Kit {
    folder: PathBuf,
}

/// Whether the target is installed; tries to install it.
pub fn has_target() -> bool {
    let has = || {
        let out = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
        out.is_ok_and(|o| Path::new(String::from_utf8_lossy(&o.stdout).trim()).exists())
    };
    if !has() {
        let _ = Command::new("rustup").args(["target", "add", TARGET]).status();
    }
    has()
}

/// Finds node and the target, and gets the packages.
///
/// # Errors
/// A sentence: what is not there.
pub fn kit() -> Result<Kit, String> {
    let said = Command::new("node").arg("--version").output();
    let said = said.ok().filter(|o| o.status.success()).ok_or("node is not installed")?;
    let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    let major = said.trim_start_matches('v').split('.').next().and_then(|n| n.parse::<u32>().ok());
    if major.is_none_or(|n| n < LEAST) {
        return Err(format!("node is {said}; the page needs {LEAST}"));
    }
    if !has_target() {
        return Err(format!("the target is not installed: rustup target add {TARGET}"));
    }
    let folder = tidy::root().join("web");
    let wanted = std::fs::metadata(folder.join("package-lock.json")).and_then(|m| m.modified());
    let got = std::fs::metadata(folder.join("node_modules/.package-lock.json")).and_then(|m| m.modified());
    if !matches!((wanted, got), (Ok(wanted), Ok(got)) if got >= wanted) {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--silent"]).current_dir(&folder);
        if !npm.status().is_ok_and(|s| s.success()) {
            return Err("the packages cannot be had: npm ci, in web".to_owned());
        }
    }
    Ok(Kit { folder })
}

/// A browser that the page is tried in.
struct Browser {
    /// Its name, the word for `tests/browser.mjs`, and the variable that names another program.
    name: &'static str,
    word: &'static str,
    variable: &'static str,
    /// Where distributions have it.
    usual: &'static [&'static str],
    package: &'static str,
}

const BROWSERS: [Browser; 2] = [
    Browser {
        name: "Chromium",
        word: "chromium",
        variable: "CHROMIUM",
        usual: &["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"],
        package: "chromium",
    },
    Browser {
        name: "Firefox",
        word: "firefox",
        variable: "FIREFOX",
        usual: &["/usr/bin/firefox-esr", "/usr/bin/firefox"],
        package: "firefox-esr",
    },
];

impl Browser {
    /// The program, where it is installed.
    fn program(&self) -> Option<PathBuf> {
        let named = std::env::var_os(self.variable).map(PathBuf::from);
        named.into_iter().chain(self.usual.iter().map(PathBuf::from)).find(|path| path.is_file())
    }
}

impl Kit {
    fn run(&self, what: &str, command: &mut Command) -> Result<()> {
        println!("== web: {what}");
        let status = command.current_dir(&self.folder).status().with_context(|| what.to_owned())?;
        if !status.success() {
            bail!("{what} failed ({status})");
        }
        Ok(())
    }

    /// Builds `web/dist`.
    ///
    /// # Errors
    /// Something does not compile, or the page is larger than it may be.
    pub fn build(&self, page_alone: bool) -> Result<()> {
        if !page_alone {
            // From its own folder: its settings for the compiler lie there.
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--release", "--locked"]).env_remove("RUSTFLAGS");
            let core = self.folder.join("core");
            println!("== web: cargo build, in {}", core.display());
            let status = cargo.current_dir(core).status().context("cargo build")?;
            if !status.success() {
                bail!("the program does not compile for {TARGET} ({status})");
            }
        }
        self.run("types", Command::new("node").arg("node_modules/typescript/bin/tsc").arg("--noEmit"))?;
        let mut build = Command::new("node");
        build.arg("build.mjs").args(page_alone.then_some("--page"));
        self.run("build", &mut build)
    }

    /// Holds the page against the native program: in node, and in a browser. Answers what was left out.
    ///
    /// # Errors
    /// A test fails.
    pub fn test(&self) -> Result<Option<String>> {
        let root = tidy::root();
        let status = Command::new(env!("CARGO"))
            // Of the workspace: with its features other crates are compiled already.
            .args(["build", "--quiet", "--workspace", "--bin", "penstock"])
            .current_dir(&root)
            .status()
            .context("cargo build")?;
        if !status.success() {
            bail!("the native program does not compile ({status})");
        }
        let metadata = tidy::metadata()?;
        let target =
            metadata["target_directory"].as_str().context("no target_directory in cargo metadata")?;
        let native =
            Path::new(target).join("debug").join(format!("penstock{}", std::env::consts::EXE_SUFFIX));
        let mut node = Command::new("node");
        node.args(["--test", "tests/node.test.mjs"]).env("PENSTOCK", &native);
        self.run("tests in node", &mut node)?;
        let mut left_out = Vec::new();
        for browser in &BROWSERS {
            let Some(program) = browser.program() else {
                left_out.push(format!("the page in {}: apt-get install {}", browser.name, browser.package));
                continue;
            };
            let mut tests = Command::new("node");
            tests
                .args(["tests/browser.mjs", browser.word])
                .env("PENSTOCK", &native)
                .env(browser.variable, &program);
            self.run(&format!("tests in {}", browser.name), &mut tests)?;
            if browser.variable == "CHROMIUM" {
                let mut pictures = Command::new("node");
                pictures.arg("tests/pictures.mjs").env("PENSTOCK", &native).env("CHROMIUM", &program);
                self.run("pictures", &mut pictures)?;
            }
        }
        Ok((!left_out.is_empty()).then(|| left_out.join("; ")))
    }
}

/// `cargo xtask web`.
///
/// # Errors
/// What is not there, does not compile, or fails.
pub fn run(args: &Args) -> Result<()> {
    let kit = kit().map_err(|why| anyhow::anyhow!("the page was not built: {why}"))?;
    kit.build(args.page)?;
    if args.test
        && let Some(left_out) = kit.test()?
    {
        println!("== web: SKIPPED {left_out}");
    }
    Ok(())
}
