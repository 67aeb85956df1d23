//! `penstock shell`: a prompt at the virtual machine, and scripts run on it.

use crate::machine::{advises, folder, kernel};
use anyhow::{Context as _, Result};
use penstock_lab::machine::complete::choices;
use penstock_lab::machine::{Machine, advice};
use penstock_lab::script::{self, Console, Given, Prompt, Script};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `penstock shell` takes.
#[derive(clap::Args)]
#[command(
    after_help = "Without SCRIPT: a prompt, or the script on standard input. Scripts are bash's; tc, ip, iptables and the other network tools \
                  act on the virtual machine, text tools are built in, and nothing else is reached. At the prompt, Tab completes and \
                  `exit` leaves."
)]
pub struct Args {
    /// Folder of the machine's state [default: as `penstock tc`]
    #[arg(long, value_name = "STATE")]
    host: Option<PathBuf>,
    /// A file of this computer that the script may read, or a folder with all that is in it: PATH, or PATH=FILE where it has another
    /// name here
    #[arg(long, value_name = "PATH[=FILE]")]
    file: Vec<String>,
    /// A script to run
    script: Option<PathBuf>,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Runs the script, or reads commands until the end.
pub fn main(args: &Args) -> Result<ExitCode> {
    let state = match &args.host {
        Some(folder) => folder.clone(),
        None => folder()?,
    };
    let machine = Machine::new(&state, kernel()?);
    let files = args.file.iter().map(|f| lent(f)).collect::<Result<Vec<_>>>()?.concat();
    let mut script = Script { args: args.args.clone(), files, ..Script::default() };
    if let Some(path) = &args.script {
        script.name = path.display().to_string();
        script.text = read(path)?;
    } else if std::io::stdin().is_terminal() {
        return prompt(&machine, &script.files);
    } else {
        std::io::stdin().read_to_string(&mut script.text).context("cannot read standard input")?;
    }
    let status = script::run(&machine, &script, &mut Terminal::default()).map_err(anyhow::Error::msg)?;
    Ok(ExitCode::from(status as u8))
}

fn read(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `--file`: the path as the script says it, and the text; of a folder, every file in it.
pub fn lent(given: &str) -> Result<Vec<(String, String)>> {
    let (path, file) = given.split_once('=').unwrap_or((given, given));
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/root/{path}") };
    let mut files = Vec::new();
    lend(path.trim_end_matches('/'), Path::new(file), &mut files)?;
    Ok(files)
}

fn lend(path: &str, file: &Path, files: &mut Vec<(String, String)>) -> Result<()> {
    if !file.is_dir() {
        files.push((path.to_owned(), read(file)?));
        return Ok(());
    }
    let cannot = || format!("cannot read {}", file.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(file).with_context(cannot)? {
        names.push(entry.with_context(cannot)?.file_name());
    }
    names.sort();
    for name in names {
        lend(&format!("{path}/{}", name.to_string_lossy()), &file.join(&name), files)?;
    }
    Ok(())
}

/// Standard output and standard error, as it comes; advice on what was refused where a person reads it.
#[derive(Default)]
struct Terminal {
    /// What a command said first, and our advice on it.
    advice: Vec<(String, String)>,
}

impl Console for Terminal {
    fn print(&mut self, stdout: &str, stderr: &str) {
        // A reader that has gone away is no error.
        let _ = std::io::stdout().write_all(stdout.as_bytes());
        let _ = std::io::stdout().flush();
        let _ = std::io::stderr().write_all(stderr.as_bytes());
        // Below the tool's own words, where they are shown.
        for (said, advice) in std::mem::take(&mut self.advice) {
            if !said.is_empty() && stderr.contains(&said) {
                eprint!("{advice}");
            }
        }
    }
    fn given(&mut self, given: Given) {
        if advises() {
            let said = given.output.stderr.lines().next().unwrap_or_default().to_owned();
            self.advice.push((said, advice(&given.output)));
        }
    }
}

fn prompt(machine: &Machine, files: &[(String, String)]) -> Result<ExitCode> {
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor: Editor<Words, FileHistory> = Editor::with_config(config)?;
    let history = folder()?.join("history");
    // There is none before the first time.
    let _ = editor.load_history(&history);
    let mut prompt = Prompt::new(machine, files);
    let mut status = 0;
    loop {
        let devices = machine.host().map_err(anyhow::Error::msg)?;
        let devices = devices.devices().iter().map(|d| d.name.clone()).collect();
        editor.set_helper(Some(Words { devices }));
        let line = match editor.readline("penstock# ") {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(e.into()),
        };
        let typed = line.trim();
        if typed.is_empty() {
            continue;
        }
        // A history that cannot grow is no reason to stop.
        let _ = editor.add_history_entry(typed);
        if matches!(typed, "quit" | "logout") {
            break;
        }
        match prompt.line(typed, &mut Terminal::default()) {
            Ok(code) => status = code,
            Err(why) => eprintln!("penstock: {why}"),
        }
        if prompt.has_ended() {
            break;
        }
    }
    if history.parent().is_some_and(Path::is_dir) {
        let _ = editor.save_history(&history);
    }
    Ok(ExitCode::from(status as u8))
}

/// Completion from the machine's devices and the kinds' tables; the hint says what a word means.
struct Words {
    devices: Vec<String>,
}

impl Completer for Words {
    type Candidate = Pair;
    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        let start = typed.rfind(char::is_whitespace).map_or(0, |i| i + 1);
        let pair = |c: penstock_lab::machine::complete::Choice| Pair {
            display: if c.about.is_empty() { c.word.clone() } else { format!("{:14} {}", c.word, c.about) },
            replacement: c.word + " ",
        };
        Ok((start, choices(typed, &self.devices).into_iter().map(pair).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<String> {
        let word = line.rsplit(char::is_whitespace).next().filter(|w| !w.is_empty() && at == line.len())?;
        let found =
            choices(line, &self.devices).into_iter().find(|c| c.word == word && !c.about.is_empty())?;
        Some(format!("   {}", found.about))
    }
}

impl Highlighter for Words {}
impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let more = script::wants_more(context.input());
        Ok(if more { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}
impl Helper for Words {}
