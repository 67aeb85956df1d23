//! The interpreter on a thread of its own: how it is made ready, and what makes it run one job after the other.

use crate::chance::{self, Chance};
use crate::limits::{self, Guard};
use crate::marks::TRACE;
use crate::serve::{Ask, Request};
use crate::{HOME, LINE, Script, clock, dice, files, line, programs, rewrite, time, tools, unknown};
use bashkit::hooks::HookAction;
use bashkit::parser::Parser;
use bashkit::{Bash, ExecOptions, FileSystem, SessionLimits, StreamData};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

/// One thing to run.
pub(crate) struct Job {
    /// What the interpreter reads.
    pub text: String,
    /// `$0`.
    pub zero: String,
    pub script: Script,
}

/// What an interpreter begins with.
pub(crate) struct Begin {
    pub hostname: String,
    pub files: Vec<(String, String)>,
    pub seed: u64,
    pub clock: i64,
    /// Bytes of text that it is to read.
    pub text: usize,
    /// The file that is the script, where one is.
    pub main: Option<String>,
    /// What stands for the unknown ([`Script::unknown`]).
    pub unknown: Option<String>,
}

/// The interpreter's thread.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn interpret(
    begin: Begin,
    requests: line::Requests,
    todo: Receiver<Job>,
    ended: &Arc<AtomicBool>,
    guard: &Arc<Guard>,
) {
    // Its clock stands still and jumps to the next timer where everything waits.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .thread_stack_size(limits::PARSER_STACK)
        .max_blocking_threads(1)
        .build();
    let Ok(runtime) = runtime else { return };
    let (ended, guard) = (Arc::clone(ended), Arc::clone(guard));
    runtime.block_on(crate::turns::InTurns::new(serve_jobs(begin, requests, todo, ended, guard)));
}

/// Makes the interpreter ready, and runs one job after the other until there will be no more.
pub(crate) async fn serve_jobs(
    begin: Begin,
    requests: line::Requests,
    mut todo: Receiver<Job>,
    ended: Arc<AtomicBool>,
    guard: Arc<Guard>,
) {
    let (ended, guard) = (&ended, &guard);
    let ask = &Ask { requests, began: time::Instant::now() };
    let chance = Arc::new(Chance::new(begin.seed));
    let is_run = Arc::new(AtomicBool::new(false));
    let fs = Arc::new(files::MachineFs::new(
        ask.clone(),
        penstock_host::Program::of_scripts().map(|p| p.name),
        &begin.files,
        Arc::clone(&chance),
        Arc::clone(&is_run),
        Arc::clone(guard),
        begin.unknown.clone(),
    ));
    let mut builder = Bash::builder()
        .fs(fs.clone())
        .limits(guard.limits.of_interpreter(begin.text))
        .memory_limits(guard.limits.of_memory())
        .session_limits(SessionLimits::unlimited())
        .fixed_epoch(files::EPOCH + begin.clock)
        .hostname(&begin.hostname)
        .username("root")
        .env("UID", "0")
        .env("EUID", "0")
        .env("HOME", "/root")
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .cwd(HOME)
        .builtin_filter(|name| !tools::REFUSED.contains(&name) && !programs::NAMES.contains(&name))
        .command_resolver(Arc::new(tools::Elsewhere(ask.clone(), Arc::clone(guard), begin.unknown.clone())));
    let clock = clock::Clock::new(begin.clock, guard);
    let ours = tools::all(ask, guard).into_iter().chain(clock.tools()).chain(dice::tools(&chance));
    for (name, builtin) in ours.chain(tools::of_files()) {
        builder = builder.builtin(name, builtin);
    }
    let is_unknown = begin.unknown.is_some();
    if is_unknown {
        builder = builder.builtin("which", Box::new(unknown::Which));
    }
    let end = Arc::clone(ended);
    let exits = ask.clone();
    let before = Arc::clone(guard);
    let mut bash = builder
        .on_exit(Box::new(move |event| {
            end.store(true, Ordering::Relaxed);
            let _ = exits.requests.send(Request::Body(exits.now(), event.code));
            HookAction::Continue(event)
        }))
        .before_tool(Box::new(move |mut event| {
            if !before.may_begin(&event.name) {
                return HookAction::Cancel("at a limit".to_owned());
            }
            is_run.store(matches!(event.name.as_str(), "." | "source" | "bash" | "sh"), Ordering::Relaxed);
            tools::instead(&event.name, &mut event.args, &before);
            if is_unknown {
                unknown::instead(&event.name, &mut event.args);
            }
            rewrite_words(&event.name, &mut event.args);
            HookAction::Continue(event)
        }))
        .build();
    guard.begins(bash.cancellation_token());
    // A file that the interpreter's memory does not take would not be run, and nobody would know.
    let mut lost = None;
    for (path, _) in &begin.files {
        if !fs.exists(Path::new(path)).await.unwrap_or(false) {
            lost = Some(format!("{path}: its name cannot be held by the virtual machine"));
        }
    }
    // Bash runs what stands before a fault of syntax: the file is read twice then, the second time for the fault alone.
    let is_main = |(path, _): &&(String, String)| begin.main.as_ref() == Some(path);
    let mut twice = false;
    if let Some((path, text)) = begin.files.iter().rev().find(is_main)
        && let Some(before) = before_fault(text)
    {
        twice = true;
        fs.at_first(path, before);
    }
    let seed = if begin.seed == 0 { 1 } else { chance::mix(begin.seed) as u32 >> 1 };
    let _ = bash
        .exec(&format!(
            "RANDOM={seed}; declare -n SRANDOM=RANDOM; unset OLDPWD; export -n UID EUID; PS4='{TRACE}+ '"
        ))
        .await;
    while let Some(job) = line::next(&mut todo, &ask.requests).await {
        if let Some(lost) = &lost {
            let _ = ask.requests.send(Request::Done(ask.now(), Err(lost.clone())));
            continue;
        }
        let (printer, hears) = (ask.requests.clone(), Arc::clone(guard));
        let print = move |stdout: &StreamData, stderr: &StreamData| {
            let (stdout, stderr) = (stdout.text_lossy(), stderr.text_lossy());
            hears.prints(&stdout, &stderr);
            let _ = printer.send(Request::Print(stdout.into_owned(), stderr.into_owned()));
        };
        let options =
            ExecOptions::new().arg0(job.zero).positional(job.script.args).streaming(Box::new(print));
        let options = if job.script.stdin.is_empty() { options } else { options.stdin(job.script.stdin) };
        let text = if twice { job.text.replacen(". \"$0\"", ". \"$0\"; . \"$0\"", 1) } else { job.text };
        let done = bash.exec_with_options(&text, options).await;
        let state = bash.shell_state_view();
        let line = state.variables.get(LINE).and_then(|place| place.split(':').next()?.parse().ok());
        let done = guard.done(done.map(|result| result.exit_code), line.unwrap_or(0));
        if ask.requests.send(Request::Done(ask.now(), done)).is_err() {
            return;
        }
    }
}

/// The lines of a script that bash runs before it meets a fault of syntax; `None` where there is none, or nothing before it.
fn before_fault(text: &str) -> Option<&str> {
    let parsed = |text: &str| {
        let fuel = text.len().saturating_mul(50).saturating_add(1_000_000);
        Parser::with_limits(text, limits::CONSTRUCTS, fuel).parse()
    };
    if text.len() > limits::TRIED || !matches!(parsed(text), Err(bashkit::Error::Parse { .. })) {
        return None;
    }
    let ends = text.match_indices('\n').map(|(at, _)| at + 1).filter(|&end| end < text.len());
    let ends: Vec<usize> = ends.collect();
    // What opens a construct that never closes may stand far above.
    let mut read = 0;
    let end = ends
        .into_iter()
        .rev()
        .take_while(|&end| {
            read += end;
            read <= limits::TRIED * 64
        })
        .find(|&end| !rewrite::here_document_is_open(&text[..end]) && parsed(&text[..end]).is_ok())?;
    Some(&text[..end])
}

/// Text that a command runs as a script, written as the interpreter reads it rightly.
fn rewrite_words(name: &str, words: &mut [String]) {
    let at = match name {
        "trap" => words.iter().position(|w| !w.starts_with('-')),
        "bash" | "sh" => words.iter().position(|w| w.starts_with('-') && w.ends_with('c')).map(|at| at + 1),
        "eval" if words.len() > 1 => {
            // Words are one text; a quote may begin in one and end in another.
            if words.iter().any(|w| w.contains(['`', '$', '{'])) {
                let joined = rewrite::rewrite(&words.join(" "));
                words.fill(String::new());
                words[0] = joined;
            }
            return;
        }
        "eval" => Some(0),
        _ => None,
    };
    if let Some(word) = at.and_then(|at| words.get_mut(at)) {
        *word = rewrite::rewrite(word);
    }
}
