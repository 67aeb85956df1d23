//! `penstock check`: what is wrong in a shaping script, where, and how to fix it.

mod beside;
mod config;
mod experiment;
mod folders;
mod watch;

use crate::shell::Lent;
use anyhow::{Context as _, Result};
use clap::ValueEnum;
use penstock_check::{
    Answer, Baseline, Fails, Finding, Level, Settings, Sourced, Which, difference, examine_with, exit_status,
    fixed, form,
};
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
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// A file of known findings; only others are shown
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the baseline file with the present findings
    #[arg(long, requires = "baseline")]
    write_baseline: bool,
    /// Print the script with the safe fixes applied
    #[arg(long)]
    fix: bool,
    /// With --fix: the likely fixes as well
    #[arg(long = "unsafe", requires = "fix")]
    likely: bool,
    /// With --fix: print what changes instead of the script
    #[arg(long, requires = "fix", conflicts_with = "write")]
    diff: bool,
    /// Show only findings whose codes begin so; may be repeated
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    select: Vec<String>,
    /// Do not show findings whose codes begin so; may be repeated
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    ignore: Vec<String>,
    /// The configuration [default: penstock.toml here or in a folder above]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read no configuration
    #[arg(long, conflicts_with = "config")]
    no_config: bool,
    /// What standard input is called in findings and in the configuration
    #[arg(long, value_name = "NAME")]
    stdin_filename: Option<String>,
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
    /// The least that ends with a status other than 0 [default: warning]
    #[arg(long, value_enum, value_name = "LEVEL")]
    fail_on: Option<FailOn>,
    /// Look again whenever a script, or a file that it sources, changes; Ctrl-C ends it
    #[arg(long, conflicts_with_all = ["fix", "write_baseline", "explain"])]
    watch: bool,
    /// Say what a code means, and check nothing
    #[arg(long, value_name = "CODE")]
    explain: Option<String>,
    /// The scripts, or an experiment (TOML), whose setups are checked; of a folder all that hold commands of tc or a packet filter
    #[arg(value_name = "SCRIPT", required_unless_present = "explain")]
    scripts: Vec<PathBuf>,
    /// Arguments of the script, behind `--`
    #[arg(last = true)]
    args: Vec<String>,
}

/// What ends with a status other than 0.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Note,
    Warning,
    Error,
    Never,
}

/// Forms of output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
    Github,
    Gcc,
    Checkstyle,
    Junit,
}

/// Checks, prints, fixes.
pub fn main(args: &Args) -> Result<ExitCode> {
    if let Some(code) = &args.explain {
        crate::print(&explained(code)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.watch {
        return watch::watch(args);
    }
    let found = config::find(args.config.as_deref(), args.no_config)?;
    let conf = config::with(&found.config, &args.select, &args.ignore)?;
    let fail_on = match args.fail_on {
        Some(FailOn::Note) => Fails::Note,
        Some(FailOn::Warning) => Fails::Warning,
        Some(FailOn::Error) => Fails::Error,
        Some(FailOn::Never) => Fails::Never,
        None => conf.fail_on.unwrap_or_default(),
    };
    let stdin = args.scripts.iter().any(|s| s.as_os_str() == "-");
    anyhow::ensure!(!args.write || !stdin, "--write needs a file: standard input cannot be changed");
    let paths = folders::scripts(&args.scripts)?;
    anyhow::ensure!(
        !args.fix || args.write || args.diff || paths.len() == 1,
        "--fix prints one script; write --fix --write to change {} files",
        paths.len()
    );
    let words: Vec<String> = args.arg.iter().chain(&args.args).cloned().collect();
    let env: Vec<(String, String)> = args.env.iter().map(|pair| variable(pair)).collect::<Result<_>>()?;
    let one = |path: &PathBuf| Ok(Script { env: env.clone(), ..script(path, &words, &args.files)? });
    let mut scripts: Vec<Script> = paths.iter().map(one).collect::<Result<_>>()?;
    if let Some(name) = &args.stdin_filename {
        scripts.iter_mut().filter(|s| s.name == "-").for_each(|s| s.name.clone_from(name));
    }
    let beside: Vec<Vec<Sourced>> =
        scripts.iter().zip(&paths).map(|(s, path)| beside::read(s, path, &args.scripts)).collect();
    let settings = settings(
        args.dev.clone().or_else(|| conf.dev.clone()),
        args.rate.as_deref().or(conf.rate.as_deref()),
        args.kernel.as_deref().or(conf.kernel.as_deref()),
    )?;
    let configured =
        |script: &Script, findings: Vec<Finding>| conf.applied(&found.relative(&script.name), findings);
    let known = args.baseline.as_deref().filter(|_| !args.write_baseline);
    let known = known.map(|path| text(path, &read(path)?)).transpose()?;
    let experiments = experiment::load(&paths)?;
    anyhow::ensure!(
        !args.fix || experiments.iter().all(Option::is_none),
        "--fix changes scripts; an experiment's setups are changed by hand"
    );
    // All is read: what the scripts do is done without the files of this computer.
    let mut written: Vec<&Path> = paths.iter().filter(|_| args.write).map(PathBuf::as_path).collect();
    written.extend(args.baseline.as_deref().filter(|_| args.write_baseline));
    confine(&written);
    let mut answers = folders::examine_all(&scripts, &beside, &experiments, &settings);
    beside::shared(&scripts, &mut answers);
    for (script, answer) in scripts.iter().zip(&mut answers) {
        answer.findings = configured(script, std::mem::take(&mut answer.findings));
    }
    if let Some(path) = &args.baseline {
        let all: Vec<_> = answers.iter().flat_map(|a| a.findings.clone()).collect();
        if args.write_baseline {
            penstock_files::replace(path, Baseline::write(&all))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let known = known.unwrap_or_else(|| Baseline::write(&all));
        for answer in &mut answers {
            answer.findings = Baseline::parse(&known).new_ones(std::mem::take(&mut answer.findings));
        }
        let left: usize = answers.iter().map(|a| a.findings.len()).sum();
        if all.len() > left {
            let plural = if all.len() - left == 1 { "" } else { "s" };
            crate::say(&format!(
                "penstock: {} finding{plural} hidden by the baseline {}",
                all.len() - left,
                path.display()
            ));
        }
    }
    if args.fix {
        let (mut left, mut count) = (Vec::new(), 0);
        let which = if args.likely { Which::Likely } else { Which::Safe };
        for (((script, path), answer), beside) in scripts.into_iter().zip(&paths).zip(&answers).zip(&beside) {
            // What stands in other files is not changed here.
            let own: Vec<Finding> =
                answer.findings.iter().filter(|f| f.file == script.name).cloned().collect();
            let (text, of_it) = fixed(&script.text, &own, which);
            count += of_it;
            if args.write {
                penstock_files::replace(path, &text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            } else if args.diff {
                crate::show(&difference(&script.name, &script.text, &text))?;
            } else {
                crate::print(&text)?;
            }
            let script = Script { text, ..script };
            let mut after = examine_with(&script, beside, &settings);
            after.findings = configured(&script, after.findings);
            left.push(after);
        }
        let all: usize = answers.iter().map(|a| a.findings.len()).sum();
        crate::say(&format!("penstock: {count} of {all} findings fixed"));
        return Ok(ExitCode::from(status(&left, fail_on)));
    }
    let each: Vec<(&str, &[Finding], &penstock_check::Coverage)> = scripts
        .iter()
        .zip(&answers)
        .map(|(s, a)| (s.name.as_str(), a.findings.as_slice(), &a.coverage))
        .collect();
    match if args.json { Format::Json } else { args.format } {
        Format::Text => crate::show(&folders::text(&scripts, &beside, &answers)),
        Format::Gcc => crate::show(&each.iter().map(|(n, f, c)| form::gcc(f, c, n)).collect::<String>()),
        Format::Checkstyle => crate::print(&form::checkstyle(&each)),
        Format::Junit => {
            let least = match fail_on {
                Fails::Note => Some(Level::Note),
                Fails::Warning => Some(Level::Warning),
                Fails::Error => Some(Level::Error),
                Fails::Never => None,
            };
            crate::print(&form::junit(&each, least))
        }
        Format::Json => crate::print(&folders::json(&scripts, &answers)),
        Format::Sarif => {
            let whole = folders::together(&scripts, &answers);
            crate::print(&form::sarif(&whole.findings, &whole.coverage))
        }
        Format::Github => {
            let each = scripts.iter().zip(&answers);
            let text: String = each.map(|(s, a)| form::github(&a.findings, &a.coverage, &s.name)).collect();
            crate::show(&text)
        }
    }?;
    Ok(ExitCode::from(status(&answers, fail_on)))
}

/// The status of several answers: an error before lines that were not looked at, those before warnings.
fn status(answers: &[Answer], fail_on: Fails) -> u8 {
    let of = |answer: &Answer| {
        let notes = fail_on == Fails::Note && !answer.findings.is_empty();
        match (exit_status(&answer.findings), fail_on) {
            (_, Fails::Never) => 0,
            (2, _) => 2,
            _ if !answer.coverage.is_whole() => 3,
            (1, Fails::Error) => 0,
            (0, _) if notes => 1,
            (status, _) => status,
        }
    };
    let all: Vec<u8> = answers.iter().map(of).collect();
    [2, 3, 1].into_iter().find(|status| all.contains(status)).unwrap_or(0)
}

/// What a code means: its page in words.
fn explained(code: &str) -> Result<String> {
    let code = code.to_uppercase();
    let rule = penstock_check::rules::all()
        .find(|r| r.code == code)
        .with_context(|| format!("{code} is not a code of check; write one like PS101"))?;
    let fix = penstock_check::class_of(rule.code).words();
    let met: String =
        penstock_check::rules::met(&code).map(|(at, what)| format!("met: {at} ({what})\n")).collect();
    Ok(format!(
        "{code}: {}\n\n{} · fix: {fix}\n\n{}\n\n{met}{}\n",
        rule.about,
        rule.severity.name(),
        rule.why,
        form::link(rule.code)
    ))
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
    crate::near::there(path)?;
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

/// The same where an experiment would be no script: `explain`, `diff`, `shell`, `replay --through`.
pub fn script_alone(path: &Path, args: &[String], files: &Lent) -> Result<Script> {
    let script = script(path, args, files)?;
    no_experiment(path, &script.text)?;
    Ok(script)
}

/// Says so where an experiment stands in a script's place: each of its lines would be a command that is not found.
pub fn no_experiment(path: &Path, text: &str) -> Result<()> {
    let experiment = path.extension().is_some_and(|e| e == "toml")
        && text.lines().any(|line| line.trim_start().starts_with("[host.") || line.starts_with("base"));
    let name = path.display();
    anyhow::ensure!(
        !experiment,
        "{name} is an experiment, not a script: penstock run {name} runs it, penstock check {name} looks at its setups"
    );
    Ok(())
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
