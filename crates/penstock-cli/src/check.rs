//! `penstock check`: what is wrong in a shaping script, where, and how to fix it.

use crate::shell::Lent;
use anyhow::{Context as _, Result};
use clap::ValueEnum;
use penstock_check::{Answer, Baseline, Settings, examine, fixed, form};
use penstock_machine::script::Script;
use penstock_model::{Kernel, Rate};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `penstock check` takes.
#[derive(clap::Args)]
#[command(
    after_help = "The script runs on a virtual machine; nothing real is touched. It may be bash, a list of commands, or a file for tc -batch; - is standard \
                  input. To accept a finding, write `# penstock: allow PS123` on its line or the line above.\n\
                  Exit status: 0 nothing found, 1 warnings, 2 errors; 3 no error, but network commands that were not looked at."
)]
pub struct Args {
    /// The device to shape [default: those the script names]
    #[arg(long, value_name = "D")]
    dev: Option<String>,
    /// Rate of the device's link, e.g. 20mbit
    #[arg(long, value_name = "LINK")]
    rate: Option<String>,
    /// The kernel the script will run on [default: the newest]
    #[arg(long, value_name = "V")]
    kernel: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// A file of known findings; only others are shown
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the baseline file with the present findings
    #[arg(long, requires = "baseline")]
    write_baseline: bool,
    /// Print the script with the safe fixes applied
    #[arg(long)]
    fix: bool,
    /// With --fix: change the script's file
    #[arg(long, requires = "fix")]
    write: bool,
    /// An argument of the script; may be repeated
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    arg: Vec<String>,
    /// A variable of the script's environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    #[command(flatten)]
    files: Lent,
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

/// Checks, prints, fixes.
pub fn main(args: &Args) -> Result<ExitCode> {
    anyhow::ensure!(
        !args.write || args.script.as_os_str() != "-",
        "--write needs a file: standard input cannot be changed"
    );
    let words: Vec<String> = args.arg.iter().chain(&args.args).cloned().collect();
    let mut script = script(&args.script, &words, &args.files)?;
    script.env = args.env.iter().map(|pair| variable(pair)).collect::<Result<_>>()?;
    let settings = settings(args.dev.clone(), args.rate.as_deref(), args.kernel.as_deref())?;
    let known = args.baseline.as_deref().filter(|_| !args.write_baseline);
    let known = known.map(|path| text(path, &read(path)?)).transpose()?;
    // All is read: what the script does is done without the files of this computer.
    let written = [
        args.write.then_some(args.script.as_path()),
        args.baseline.as_deref().filter(|_| args.write_baseline),
    ];
    confine(&written.into_iter().flatten().collect::<Vec<_>>());
    let Answer { mut findings, coverage } = examine(&script, &settings);
    if let Some(path) = &args.baseline {
        if args.write_baseline {
            penstock_files::replace(path, Baseline::write(&findings))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let known = known.unwrap_or_else(|| Baseline::write(&findings));
        findings = Baseline::parse(&known).new_ones(findings);
    }
    if args.fix {
        let (text, count) = fixed(&script.text, &findings);
        if args.write {
            penstock_files::replace(&args.script, &text)
                .with_context(|| format!("cannot write {}", args.script.display()))?;
        } else {
            crate::print(&text)?;
        }
        crate::say(&format!("penstock: {count} of {} findings fixed", findings.len()));
        let left = examine(&Script { text, ..script }, &settings);
        return Ok(ExitCode::from(left.exit_status()));
    }
    match args.format {
        Format::Text => crate::show(&form::text(&findings, &coverage, &script.text)),
        Format::Json => crate::print(&form::json(&findings, &coverage)),
        Format::Sarif => crate::print(&form::sarif(&findings, &coverage)),
        Format::Github => crate::show(&form::github(&findings, &coverage, &script.name)),
    }?;
    Ok(ExitCode::from(Answer { findings, coverage }.exit_status()))
}

/// A variable of `--env`.
fn variable(pair: &str) -> Result<(String, String)> {
    let is_name = |n: &str| {
        !n.starts_with(|c: char| c.is_ascii_digit())
            && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match pair.split_once('=').filter(|(name, _)| !name.is_empty() && is_name(name)) {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => anyhow::bail!("--env {pair}: not a variable; write NAME=VALUE"),
    }
}

/// Gives up every right to files, except in the folders that these ones lie in, wherever symbolic links lead. Where the kernel cannot, nothing is
/// given up.
pub fn confine(written: &[&Path]) {
    let folder = |path: &&Path| {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        real.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
    };
    penstock_files::confine(&written.iter().map(folder).collect::<Vec<_>>());
}

/// The bytes of a file that somebody named; `-` is standard input.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        return penstock_files::read_stdin(penstock_files::TEXT).context("cannot read standard input");
    }
    let cannot = || format!("cannot read {}", path.display());
    penstock_files::read(path, penstock_files::TEXT).map_err(anyhow::Error::msg).with_context(cannot)
}

/// The text in a file's bytes; what holds a zero byte is none. (An old script may be in ISO 8859: what is not UTF-8 is a mark.)
pub fn text(path: &Path, bytes: &[u8]) -> Result<String> {
    anyhow::ensure!(!bytes.contains(&0), "{} is not a text file: it holds a zero byte", path.display());
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// A script of this computer's with what it is called with.
pub fn script(path: &Path, args: &[String], files: &Lent) -> Result<Script> {
    let text = text(path, &read(path)?)?;
    let files = files.read()?;
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
