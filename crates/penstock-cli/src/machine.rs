//! `penstock tc|ip|iptables|sysctl`: the tools themselves, on a virtual machine.

use anyhow::Result;
use penstock_lab::machine::{Machine, advice};
use penstock_model::Kernel;
use std::path::PathBuf;
use std::process::ExitCode;

/// The tool's own words.
#[derive(clap::Args)]
#[command(
    after_help = "The machine has eth0 and eth1. Its state is kept in $PENSTOCK_STATE (else $XDG_RUNTIME_DIR/penstock, else \
                        ~/.local/state/penstock); its kernel is $PENSTOCK_KERNEL (6.12 or 2.6.35). Delete the folder to begin anew."
)]
pub struct Args {
    /// As the tool takes them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub words: Vec<String>,
}

/// Runs the tool; standard output, standard error and exit status are its own, our advice follows on standard error.
pub fn main(tool: &str, args: &Args) -> Result<ExitCode> {
    let kernel = match std::env::var("PENSTOCK_KERNEL") {
        Ok(name) if !name.is_empty() => {
            Kernel::parse(&name).map_err(|e| anyhow::anyhow!("PENSTOCK_KERNEL: {e}"))?
        }
        _ => Kernel::default(),
    };
    let mut words = vec![tool.to_owned()];
    words.extend(args.words.iter().cloned());
    let output = Machine::new(&folder()?, kernel).exec(&words).map_err(anyhow::Error::msg)?;
    crate::print(&output.stdout)?;
    eprint!("{}{}", output.stderr, advice(&output));
    Ok(ExitCode::from(output.status.clamp(0, 255) as u8))
}

/// Where the state is kept.
fn folder() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("PENSTOCK_STATE") {
        return Ok(folder);
    }
    if let Some(folder) = set("XDG_RUNTIME_DIR") {
        return Ok(folder.join("penstock"));
    }
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| home.join(".local/state")));
    let state =
        state.ok_or_else(|| anyhow::anyhow!("there is no home folder; set PENSTOCK_STATE to a folder"))?;
    Ok(state.join("penstock"))
}
