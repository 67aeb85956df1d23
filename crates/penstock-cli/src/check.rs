//! `penstock check`: what is wrong in a shaping script, where, and how to mend it.

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use penstock_lab::check::{Baseline, Settings, check, exit_status, fixed, form};
use penstock_lab::script::Script;
use penstock_model::{Kernel, Rate};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `penstock check` takes.
#[derive(clap::Args)]
#[command(
    after_help = "The script runs on a virtual machine; nothing real is touched. It may be bash, a list of commands, or a file for tc -batch; - is standard \
                  input. Exit status: 0 nothing found, 1 warnings, 2 errors. `# penstock: allow PS123` on a line, or above it, allows one finding."
)]
pub struct Args {
    /// The device in question [default: whatever the script names]
    #[arg(long, value_name = "D")]
    dev: Option<String>,
    /// Rate of its link, e.g. 20mbit
    #[arg(long, value_name = "LINK")]
    rate: Option<String>,
    /// The kernel it is to run on [default: the newest]
    #[arg(long, value_name = "V")]
    kernel: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// A file of findings that are known; only others are shown
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the baseline file with what is found now
    #[arg(long, requires = "baseline")]
    write_baseline: bool,
    /// Print the script with the safe mends made
    #[arg(long)]
    fix: bool,
    /// With --fix: write it into the script's file
    #[arg(long, requires = "fix")]
    write: bool,
    /// A file the script reads: PATH, or PATH=FILE where it has another name there
    #[arg(long, value_name = "PATH[=FILE]")]
    file: Vec<String>,
    /// The script
    script: PathBuf,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Forms of output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
    Github,
}

/// Checks, prints, mends.
pub fn main(args: &Args) -> Result<ExitCode> {
    let script = script(&args.script, &args.args, &args.file)?;
    let settings = settings(args.dev.clone(), args.rate.as_deref(), args.kernel.as_deref())?;
    let mut findings = check(&script, &settings);
    if let Some(path) = &args.baseline {
        if args.write_baseline {
            std::fs::write(path, Baseline::write(&findings))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        findings = Baseline::parse(&text).new_ones(findings);
    }
    if args.fix {
        let (text, mended) = fixed(&script.text, &findings);
        if args.write {
            std::fs::write(&args.script, &text)
                .with_context(|| format!("cannot write {}", args.script.display()))?;
        } else {
            crate::print(&text)?;
        }
        eprintln!("penstock: {mended} of {} findings mended", findings.len());
        let left = check(&Script { text, ..script }, &settings);
        return Ok(ExitCode::from(exit_status(&left)));
    }
    crate::print(&match args.format {
        Format::Text => form::text(&findings, &script.text),
        Format::Json => form::json(&findings),
        Format::Sarif => form::sarif(&findings),
        Format::Github => form::github(&findings),
    })?;
    Ok(ExitCode::from(exit_status(&findings)))
}

/// A script of this computer's with what it is called with.
pub fn script(path: &Path, args: &[String], files: &[String]) -> Result<Script> {
    let text = if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
        text
    } else {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let files = files.iter().map(|f| crate::shell::lent(f)).collect::<Result<Vec<_>>>()?.concat();
    let name = if path.as_os_str() == "-" { "-".to_owned() } else { path.display().to_string() };
    Ok(Script { text, name, args: args.to_vec(), files, ..Script::default() })
}

/// Settings from the command line's words.
pub fn settings(dev: Option<String>, rate: Option<&str>, kernel: Option<&str>) -> Result<Settings> {
    let kernel = match kernel {
        Some(name) => Kernel::parse(name).map_err(anyhow::Error::msg)?,
        None => crate::machine::kernel()?,
    };
    let rate = rate.map(Rate::parse).transpose().map_err(anyhow::Error::msg)?.map(Rate::bytes_per_s);
    Ok(Settings { kernel, dev, rate })
}
