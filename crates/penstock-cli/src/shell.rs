//! `penstock shell`: a prompt at the virtual machine, and scripts run on it.

use crate::check::{no_experiment, read, text};
use crate::machine::{advises, folder, kernel};
use anyhow::{Context as _, Result};
use penstock_files::{Roots, TEXT};
use penstock_machine::complete::choices;
use penstock_machine::script::{self, Console, Given, Prompt, Script};
use penstock_machine::{Machine, advice};
use penstock_measure::text::visible;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::io::IsTerminal as _;
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
    #[command(flatten)]
    files: Lent,
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
    let files = args.files.read()?;
    let mut script = Script { args: args.args.clone(), files, ..Script::default() };
    if let Some(path) = &args.script {
        script.name = path.display().to_string();
        script.text = text(path, &read(path)?)?;
        no_experiment(path, &script.text)?;
    } else if std::io::stdin().is_terminal() {
        return prompt(&machine, &script.files);
    } else {
        script.text = text(Path::new("standard input"), &read(Path::new("-"))?)?;
    }
    let mut terminal = Terminal::default();
    let status = script::run(&machine, &script, &mut terminal).map_err(anyhow::Error::msg)?;
    terminal.failed.map_or(Ok(ExitCode::from(status as u8)), Err)
}

/// Files of this computer that a script may read.
#[derive(clap::Args, Default)]
pub struct Lent {
    /// A file of this computer that the script may read, or a folder with its contents: PATH, or PATH=FILE if the file has another
    /// name here
    #[arg(long, value_name = "PATH[=FILE]")]
    file: Vec<String>,
    /// A folder that symbolic links in such a folder may lead into; may be repeated
    #[arg(long, value_name = "DIR", requires = "file")]
    allow_path: Vec<PathBuf>,
}

/// Most files of a lent folder, and most bytes of all that is lent.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 256 << 20;

impl Lent {
    /// Whether nothing is lent.
    pub fn is_empty(&self) -> bool {
        self.file.is_empty()
    }

    /// Each file: its path as the script says it, and its text.
    pub fn read(&self) -> Result<Vec<(String, String)>> {
        let mut lending = Lending { files: Vec::new(), bytes: 0 };
        for given in &self.file {
            let (path, file) = given.split_once('=').unwrap_or((given, given));
            let path = if path.starts_with('/') { path.to_owned() } else { format!("/root/{path}") };
            let file = Path::new(file);
            let cannot = || format!("cannot read {}", file.display());
            if file.is_dir() {
                let roots = self.allow_path.iter().try_fold(Roots::new(), |roots, f| roots.allow(f));
                let roots = roots.map_err(|e| anyhow::anyhow!("--allow-path {e}"))?;
                let roots = roots.allow(file).map_err(anyhow::Error::msg).with_context(cannot)?;
                lending.folder(path.trim_end_matches('/'), file, &roots)?;
            } else {
                // Named on the command line: whoever typed it chose it, wherever it leads.
                let bytes =
                    penstock_files::read(file, TEXT).map_err(anyhow::Error::msg).with_context(cannot)?;
                lending.put(path.trim_end_matches('/').to_owned(), &bytes)?;
            }
        }
        Ok(lending.files)
    }
}

struct Lending {
    files: Vec<(String, String)>,
    bytes: u64,
}

impl Lending {
    fn put(&mut self, path: String, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        anyhow::ensure!(
            self.files.len() < MAX_FILES && self.bytes <= MAX_BYTES,
            "--file: more than {MAX_FILES} files or {} MiB are lent; name those that the script reads",
            MAX_BYTES >> 20
        );
        self.files.push((path, penstock_model::binary::text_lossy(bytes)));
        Ok(())
    }

    /// All that is in a folder; links lead nowhere but below the roots, and folders are not entered through links.
    fn folder(&mut self, path: &str, folder: &Path, roots: &Roots) -> Result<()> {
        let cannot = || format!("cannot read {}", folder.display());
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(folder).with_context(cannot)? {
            let entry = entry.with_context(cannot)?;
            entries.push((entry.file_name(), entry.file_type().with_context(cannot)?));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in entries {
            let (path, file) = (format!("{path}/{}", name.to_string_lossy()), folder.join(&name));
            if kind.is_dir() {
                self.folder(&path, &file, roots)?;
                continue;
            }
            let bytes = roots.read(&file, TEXT).map_err(anyhow::Error::msg);
            self.put(path, &bytes.with_context(|| format!("cannot read {}", file.display()))?)?;
        }
        Ok(())
    }
}

/// Writes the history whole or not at all: the editor itself would empty the file first.
fn keep(editor: &mut Editor<Words, FileHistory>, history: &Path) -> Result<()> {
    let scratch = penstock_files::Scratch::new(history.parent().unwrap_or(Path::new(".")))?;
    let new = scratch.path().join("history");
    editor.save_history(&new)?;
    Ok(penstock_files::replace(history, std::fs::read(new)?)?)
}

/// Standard output and standard error, as it comes; advice on what was refused where a person reads it.
#[derive(Default)]
struct Terminal {
    /// What a command said first, and our advice on it.
    advice: Vec<(String, String)>,
    /// Why standard output could not be written.
    failed: Option<anyhow::Error>,
}

impl Console for Terminal {
    fn print(&mut self, stdout: &str, stderr: &str) {
        // The script goes on; that somebody missed what it said is told by the exit status.
        self.failed = self.failed.take().or(crate::print(stdout).err());
        crate::complain(stderr);
        // Below the tool's own words, where they are shown.
        for (said, advice) in std::mem::take(&mut self.advice) {
            if !said.is_empty() && stderr.contains(&said) {
                crate::complain(&visible(&advice));
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
        // A history that cannot grow is not a reason to stop.
        let _ = editor.add_history_entry(typed);
        if matches!(typed, "quit" | "logout") {
            break;
        }
        match prompt.line(typed, &mut Terminal::default()) {
            Ok(code) => status = code,
            Err(why) => crate::say(&format!("penstock: {why}")),
        }
        if prompt.has_ended() {
            break;
        }
    }
    if history.parent().is_some_and(Path::is_dir) {
        let _ = keep(&mut editor, &history);
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
        let pair = |c: penstock_machine::complete::Choice| Pair {
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
