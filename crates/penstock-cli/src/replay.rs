//! `penstock replay`.

use anyhow::{Context, Result};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `penstock replay` takes.
#[derive(clap::Args)]
pub struct Args {
    /// The specification: setup commands, a rate, packets with their times ("-" reads standard input)
    #[arg(value_name = "SPEC.json")]
    spec: PathBuf,
    /// Where the answer goes [default: standard output]
    #[arg(value_name = "OUT.json")]
    out: Option<PathBuf>,
}

/// Does it.
pub fn main(args: &Args) -> Result<ExitCode> {
    let mut text = String::new();
    if args.spec.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    } else {
        text = std::fs::read_to_string(&args.spec)
            .with_context(|| format!("cannot read {}", args.spec.display()))?;
    }
    let name =
        if args.spec.as_os_str() == "-" { "standard input".into() } else { args.spec.display().to_string() };
    let spec = serde_json::from_str(&text).with_context(|| format!("{name} is not JSON"))?;
    let answer = match penstock_lab::replay::run(&spec) {
        Ok(answer) => answer,
        Err(fault) => return Ok(crate::run::refuse(&[fault])),
    };
    let mut text = serde_json::to_string_pretty(&answer)?;
    text.push('\n');
    match &args.out {
        Some(path) if path.as_os_str() != "-" => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?
        }
        _ => crate::print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}
