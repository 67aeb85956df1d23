//! The pages that penstock writes, tried in a real Chromium: `pages/pages.mjs` presses everything and looks at what happens.

use crate::tidy;
use anyhow::{Context as _, Result, bail, ensure};
use penstock_lab::experiment::{self, Experiment};
use penstock_lab::run::{self, Options, Outcome};
use penstock_measure::compare;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of `cargo xtask pages`.
#[derive(clap::Args)]
pub struct Args {
    /// Write the README's picture anew: the beginning of the report of examples/home-line.toml
    #[arg(long)]
    picture: bool,
}

/// Most bytes of the report of examples/home-line.toml, and of a run with a thousand flows.
const MOST: (u64, u64) = (400_000, 5_000_000);

/// What is needed to try the pages.
pub struct Kit {
    folder: PathBuf,
    chromium: PathBuf,
}

/// Finds Chromium and Node, and gets puppeteer-core (Apache-2.0), which drives it.
///
/// # Errors
/// A sentence: what is not there.
pub fn kit() -> Result<Kit, String> {
    const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find =
        |name: &str| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    let chromium = NAMES.into_iter().find_map(find);
    let chromium = chromium.ok_or("there is no browser: apt-get install chromium")?;
    for name in ["node", "npm"] {
        if find(name).is_none() {
            return Err(format!("{name} is not installed: apt-get install nodejs npm"));
        }
    }
    let folder = tidy::root().join("target/pages");
    let own = tidy::root().join("crates/penstock-xtask/pages");
    let copy = |name: &str| std::fs::copy(own.join(name), folder.join(name)).map(|_| ());
    let made = std::fs::create_dir_all(&folder)
        .and_then(|()| ["package.json", "package-lock.json", "pages.mjs"].into_iter().try_for_each(copy));
    made.map_err(|e| format!("{}: {e}", folder.display()))?;
    let got =
        Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--silent"]).current_dir(&folder).status();
    if !got.is_ok_and(|s| s.success()) {
        return Err("puppeteer-core cannot be had: npm ci failed".to_owned());
    }
    Ok(Kit { folder, chromium })
}

/// A thousand connections of ten machines through one bottleneck.
const THOUSAND: &str = r#"
title = "A thousand connections"
duration = "4s"

[host.r]
down = "10.1.0.1/16"
up = "10.2.0.1/24"
setup = ["sysctl -w net.ipv4.ip_forward=1", "tc qdisc replace dev down root fq_codel"]

[host.server]
eth0 = "10.2.0.2/24"
via = "10.2.0.1"

[host."u{1..10}"]
eth0 = "10.1.{n}.2/16"
via = "10.1.0.1"

[[link]]
ends = ["r:down", "u{1..10}:eth0"]
rate = "100mbit"

[[link]]
ends = ["r:up", "server:eth0"]
rate = "1gbit"
delay = "10ms"

[[flow]]
name = "f{n}"
from = "server"
to = "u{1..10}"
count = 100
load = "greedy"
"#;

impl Kit {
    /// Makes the pages and tries them.
    ///
    /// # Errors
    /// A run fails, a page is larger than it may be, or does not do what it says.
    pub fn run(&self, picture: bool) -> Result<()> {
        let mut pages = Vec::new();
        let example = |name: &str| {
            experiment::load(&tidy::root().join("examples").join(format!("{name}.toml"))).map_err(faults)
        };
        let unshaped = self.page("home-line-unshaped", &example("home-line-unshaped")?, &mut pages)?;
        let shaped = self.page("home-line", &example("home-line")?, &mut pages)?;
        let thousand = experiment::parse(THOUSAND, "thousand.toml").map_err(faults)?;
        self.page("thousand", &thousand, &mut pages)?;
        for (page, most) in [(&pages[1], MOST.0), (&pages[2], MOST.1)] {
            let size = std::fs::metadata(page)?.len();
            ensure!(size <= most, "{} has {size} bytes, {most} at most are right", page.display());
        }
        let side =
            |name: &str, outcome: &'_ Outcome| -> String { format!("{name} ({})", outcome.record.title) };
        let (before, after) = (
            compare::Side {
                name: side("unshaped", &unshaped),
                runs: vec![(&unshaped.record, &unshaped.series)],
            },
            compare::Side { name: side("shaped", &shaped), runs: vec![(&shaped.record, &shaped.series)] },
        );
        let rows = compare::compare(&before, &after);
        let file = self.folder.join("compare/report.html");
        std::fs::create_dir_all(self.folder.join("compare"))?;
        std::fs::write(&file, compare::html(&before, &after, &rows))?;
        pages.push(file);
        let out = self.folder.join("out");
        let mut node = Command::new("node");
        node.arg("pages.mjs").arg(&self.chromium).arg(&out).args(&pages).current_dir(&self.folder);
        let status = node.status().context("node")?;
        if !status.success() {
            bail!("pages failed ({status}); screenshots are in {}", out.display());
        }
        if picture {
            let to = tidy::root().join("docs/pictures/home-line.png");
            std::fs::copy(out.join("home-line-report-top.png"), &to).context(to.display().to_string())?;
        }
        Ok(())
    }

    fn page(&self, name: &str, experiment: &Experiment, pages: &mut Vec<PathBuf>) -> Result<Outcome> {
        let mut options = Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
        let outcome = run::run(experiment, &mut options).map_err(faults)?;
        let folder = self.folder.join("runs").join(name);
        write(&outcome, &folder)?;
        pages.push(folder.join("report.html"));
        Ok(outcome)
    }
}

fn write(outcome: &Outcome, folder: &Path) -> Result<()> {
    if let Some(above) = folder.parent() {
        std::fs::create_dir_all(above)?;
    }
    outcome.write(folder).map_err(anyhow::Error::msg)
}

fn faults(all: Vec<penstock_model::Diagnostic>) -> anyhow::Error {
    let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
    anyhow::Error::msg(lines.join("\n"))
}

/// `cargo xtask pages`.
///
/// # Errors
/// As [`Kit::run`]; or what is needed is not there.
pub fn run(args: &Args) -> Result<()> {
    match kit() {
        Ok(kit) => kit.run(args.picture),
        Err(why) => bail!("the pages were not tried: {why}"),
    }
}
