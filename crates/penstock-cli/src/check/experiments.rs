//! `penstock check FILE.toml`: what the setups of an experiment say.

use super::Format;
use anyhow::{Result, bail};
use penstock_check::{Fails, Level};
use penstock_lab::{experiment, run};
use penstock_measure::record::Finding;
use std::path::Path;
use std::process::ExitCode;

/// Whether a file is an experiment: by its name.
pub fn is_one(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"))
}

/// Checks the setups of all its machines. `configured`: the level that a finding in a file has, by its code and its own level; `None` where
/// it is not shown.
pub fn check(
    path: &Path,
    format: Format,
    fails: Fails,
    configured: &dyn Fn(&str, &str, Level) -> Option<Level>,
) -> Result<ExitCode> {
    let experiment = match experiment::load(path) {
        Ok(experiment) => experiment,
        Err(faults) => return Ok(crate::run::refuse(&faults)),
    };
    super::confine(&[]);
    let leveled = |mut finding: Finding| {
        let level = Level::named(&finding.level).unwrap_or(Level::Warning);
        finding.level = configured(&finding.file, &finding.code, level)?.name().to_owned();
        Some(finding)
    };
    let findings: Vec<Finding> = run::findings(&experiment).into_iter().filter_map(leveled).collect();
    let setups = experiment.hosts.iter().filter(|h| !h.setup.is_empty() && !h.switch).count();
    match format {
        Format::Text => crate::show(&text(&findings, setups))?,
        Format::Json => {
            let json = serde_json::json!({ "file": path.display().to_string(), "setups": setups, "findings": findings });
            crate::print(&format!("{json:#}\n"))?;
        }
        Format::Sarif | Format::Github | Format::Gcc | Format::Checkstyle | Format::Junit => {
            bail!(
                "{}: an experiment's findings come as text or json; write --format text or json",
                path.display()
            )
        }
    }
    let has = |level: &str| findings.iter().any(|f| f.level == level);
    let status = match fails {
        Fails::Never => 0,
        _ if has("error") => 2,
        Fails::Warning | Fails::Note if has("warning") => 1,
        Fails::Note if has("note") => 1,
        _ => 0,
    };
    Ok(ExitCode::from(status))
}

fn text(findings: &[Finding], setups: usize) -> String {
    let mut out = String::new();
    for f in findings {
        let place = match (f.line, f.column) {
            (0, _) => f.file.clone(),
            (line, 0) => format!("{}:{line}", f.file),
            (line, column) => format!("{}:{line}:{column}", f.file),
        };
        out += &format!("{place}: {} {}: {}: {}\n  {}\n", f.level, f.code, f.host, f.message, f.reason);
        if !f.fix.is_empty() {
            out += &format!("  fix: {}\n", f.fix);
        }
    }
    let of = match setups {
        0 => return "no machine of it has a setup\n".to_owned(),
        1 => "the setup of 1 machine".to_owned(),
        n => format!("the setups of {n} machines"),
    };
    out + &match findings.len() {
        0 => format!("nothing found in {of}\n"),
        1 => format!("1 finding in {of}\n"),
        n => format!("{n} findings in {of}\n"),
    }
}
