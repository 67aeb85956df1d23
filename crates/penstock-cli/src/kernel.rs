//! `penstock kernel`: the user-mode kernel of the ground `virtual`.

use anyhow::{Result, bail};
use penstock_kernel::boot::build;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `penstock kernel` takes.
#[derive(clap::Args)]
pub struct Args {
    /// build (once, about ten minutes of one processor), or status
    #[arg(value_parser = ["build", "status"])]
    what: String,
    /// Which Linux it is
    #[arg(long, default_value = "6.12")]
    profile: String,
    /// Print where it is as JSON
    #[arg(long)]
    json: bool,
}

/// What a virtual machine's own run takes.
#[derive(clap::Args)]
pub struct InsideArgs {
    /// The job folder
    job: PathBuf,
}

/// Builds it or says where it is.
pub fn main(args: &Args) -> Result<ExitCode> {
    if args.profile != build::PROFILE {
        bail!(
            "{} cannot be built: {} is, from Debian's own source package; a kernel built elsewhere is named by {}",
            args.profile,
            build::PROFILE,
            penstock_kernel::boot::KERNEL
        );
    }
    let found = |path: &std::path::Path| {
        let bytes = std::fs::metadata(path).map_or(0, |m| m.len());
        serde_json::json!({ "profile": build::PROFILE, "there": true, "path": path.display().to_string(), "bytes": bytes })
    };
    if args.what == "status" && args.json {
        crate::json(&match penstock_kernel::boot::find() {
            Ok(path) => found(&path),
            Err(why) => serde_json::json!({ "profile": build::PROFILE, "there": false, "why": why }),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.what == "status" {
        crate::print(&format!("{}\n", build::status()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let path =
        build::build(&mut |step| crate::say(&format!("penstock: {step} …"))).map_err(anyhow::Error::msg)?;
    match args.json {
        true => crate::json(&found(&path))?,
        false => crate::print(&format!("{}\n", path.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a job from within.
pub fn inside(args: &InsideArgs) -> Result<ExitCode> {
    penstock_lab::run::inside(&args.job).map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}
