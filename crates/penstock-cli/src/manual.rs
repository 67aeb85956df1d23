//! `penstock completions` and `penstock man`: both made from the one definition of the command line.

use anyhow::{Context as _, Result, bail};
use clap::{Command, ValueEnum};
use clap_complete::Generator;
use clap_complete::aot::{Bash, Elvish, Fish, PowerShell, Zsh};
use std::path::PathBuf;
use std::process::ExitCode;

/// What `penstock completions` takes.
#[derive(clap::Args)]
#[command(
    after_help = "Bash:  penstock completions bash > ~/.local/share/bash-completion/completions/penstock\n\
                        Zsh:   penstock completions zsh > DIR/_penstock, where DIR is in $fpath\n\
                        Fish:  penstock completions fish > ~/.config/fish/completions/penstock.fish"
)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Shells there are completions for.
#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

/// What `penstock man` takes.
#[derive(clap::Args)]
#[command(after_help = "Try:  penstock man run | man -l -\n      penstock man --out ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The command [default: the page of penstock itself]
    verb: Option<String>,
    /// Write all pages into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    out: Option<PathBuf>,
}

/// Prints what a shell reads to complete words.
pub fn completions(args: &CompletionsArgs, command: Command) -> Result<ExitCode> {
    let text = match args.shell {
        Shell::Bash => written(Bash, command),
        Shell::Zsh => written(Zsh, command),
        Shell::Fish => written(Fish, command),
        Shell::Elvish => written(Elvish, command),
        Shell::Powershell => written(PowerShell, command),
    };
    crate::print(&String::from_utf8(text?)?)?;
    Ok(ExitCode::SUCCESS)
}

fn written(shell: impl Generator, mut command: Command) -> Result<Vec<u8>> {
    command.set_bin_name("penstock");
    command.build();
    let mut text = Vec::new();
    shell.try_generate(&command, &mut text)?;
    Ok(text)
}

/// Prints a page, or writes all.
pub fn man(args: &ManArgs, command: Command) -> Result<ExitCode> {
    let pages = pages(command)?;
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        for (name, text) in &pages {
            let path = folder.join(format!("{name}.1"));
            penstock_files::replace(&path, text).map_err(|e| anyhow::anyhow!("{}: {e}", path.display()))?;
        }
        crate::show(&format!("{}: {} pages\n", folder.display(), pages.len()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = args.verb.as_ref().map_or("penstock".to_owned(), |verb| format!("penstock-{verb}"));
    let Some((_, text)) = pages.iter().find(|(name, _)| *name == wanted) else {
        let verbs: Vec<&str> = pages.iter().filter_map(|(name, _)| name.strip_prefix("penstock-")).collect();
        bail!(
            "there is no page of \"{}\"; {}there is {}",
            args.verb.as_deref().unwrap_or_default(),
            crate::near::name(args.verb.as_deref().unwrap_or_default(), &verbs),
            verbs.join(", ")
        );
    };
    crate::print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Each page with its name, `penstock` first.
fn pages(mut command: Command) -> Result<Vec<(String, String)>> {
    // `help` is no page of its own.
    command = command.disable_help_subcommand(true);
    command.build();
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    let verbs: Vec<Command> = verbs.collect();
    std::iter::once(command)
        .chain(verbs)
        .map(|page| {
            let name = page.get_display_name().unwrap_or(page.get_name()).to_owned();
            let version = format!("penstock {}", env!("CARGO_PKG_VERSION"));
            let mut text = Vec::new();
            // Without a date: the same program gives the same bytes.
            clap_mangen::Man::new(page)
                .title(name.to_uppercase())
                .source(version)
                .manual("Penstock")
                .render(&mut text)?;
            Ok((name, String::from_utf8(text)?))
        })
        .collect()
}
