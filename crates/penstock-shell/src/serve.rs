//! What the interpreter asks of the machine, which stays with the caller, and what comes back.

use crate::line::{self, Requests};
use crate::time::Instant;
use penstock_host::{FileError, Files, Output};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// What the interpreter asks for.
pub(crate) enum Request {
    /// Carry out a command.
    Command {
        words: Vec<String>,
        /// Standard input; `None` where there is none.
        stdin: Option<String>,
        /// Where the script calls it: `line:file`; `None` where the interpreter itself wants to know something.
        place: Option<String>,
        /// The script's time.
        at: Duration,
        /// What files it may read.
        lends: Lends,
        reply: Sender<Reply>,
    },
    /// Begin a program that takes time.
    Launch {
        words: Vec<String>,
        /// The script's time.
        at: Duration,
        reply: Sender<Launched>,
    },
    /// Tell when programs have ended. The interpreter stands still until one has, or until `next`.
    Programs {
        /// The script's time.
        at: Duration,
        /// When the script wants to go on with something else, if it wants to at all.
        next: Option<Duration>,
        /// What time it is, and the programs that have ended.
        reply: Sender<(Duration, Vec<(u32, Output)>)>,
    },
    /// Nobody waits for this program any more: it ends.
    Kill(u32),
    /// A program that is not simulated was called here.
    Unknown(String, String),
    /// Text for standard output and standard error.
    Print(String, String),
    /// The script has come to its end, or to an `exit`, at this time and with this status. Its jobs may go on.
    Body(Duration, i32),
    /// The script and its jobs are over, at this time: its exit status, or why it could not be run.
    Done(Duration, Result<i32, String>),
}

/// What becomes of a program.
pub(crate) enum Launched {
    /// It runs, under this number.
    Runs(u32),
    /// It ended at once.
    Ended(Output),
    /// The machine does not run it.
    Unknown,
}

/// What the machine answers.
pub(crate) enum Reply {
    /// Give me this file's text first.
    #[cfg_attr(target_family = "wasm", expect(dead_code, reason = "files are lent with the command"))]
    Read(String, Sender<Option<String>>),
    Output(Output),
}

/// Where the files of a command are, for who cannot ask the interpreter while that waits for an answer.
#[cfg(target_family = "wasm")]
pub(crate) type Lends = Option<(std::sync::Arc<dyn bashkit::FileSystem>, std::path::PathBuf)>;
/// The interpreter is asked for the files of a command.
#[cfg(not(target_family = "wasm"))]
#[derive(Clone, Copy)]
pub(crate) struct Lends;

/// No files.
#[cfg(target_family = "wasm")]
const NOTHING: Lends = None;
/// No files.
#[cfg(not(target_family = "wasm"))]
const NOTHING: Lends = Lends;

/// The interpreter's end of the line.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) requests: Requests,
    /// When the script's time began.
    pub(crate) began: Instant,
}

impl Ask {
    /// The script's time.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }
    /// Sends a command; answers come one by one from the receiver.
    pub(crate) fn send(
        &self,
        words: &[String],
        stdin: Option<&str>,
        place: Option<String>,
        lends: Lends,
    ) -> Receiver<Reply> {
        let (reply, answers) = channel();
        let request = Request::Command {
            words: words.to_vec(),
            stdin: stdin.map(str::to_owned),
            place,
            at: self.now(),
            lends,
            reply,
        };
        // Where nobody listens any more, no answer comes either.
        let _ = self.requests.send(request);
        answers
    }

    /// Carries out a command that reads no files.
    pub(crate) async fn command(&self, words: &[String], stdin: Option<&str>) -> Output {
        let mut answers = self.send(words, stdin, None, NOTHING);
        loop {
            match line::next(&mut answers, &self.requests).await {
                Some(Reply::Output(output)) => return output,
                Some(Reply::Read(_, text)) => {
                    let _ = text.send(None);
                }
                None => return gone(),
            }
        }
    }
}

/// What a command gives when the machine has gone away.
pub(crate) fn gone() -> Output {
    Output { stderr: "the virtual machine is gone\n".to_owned(), status: 1, ..Output::default() }
}

/// The files of a script's command, asked of the interpreter.
pub(crate) struct Asked {
    pub(crate) stdin: Option<String>,
    pub(crate) lends: Lends,
    #[cfg_attr(target_family = "wasm", expect(dead_code, reason = "files are lent with the command"))]
    pub(crate) reply: Sender<Reply>,
}

impl Files for Asked {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        if matches!(path, "-" | "/dev/stdin") {
            return Ok(self.stdin.clone().unwrap_or_default());
        }
        self.file(path).ok_or(FileError::NotFound)
    }
}

impl Asked {
    #[cfg(not(target_family = "wasm"))]
    fn file(&self, path: &str) -> Option<String> {
        let Lends = self.lends;
        let (text, answer) = channel();
        self.reply.send(Reply::Read(path.to_owned(), text)).ok()?;
        answer.recv().ok().flatten()
    }

    /// The interpreter's files lie in memory: whoever asks for one has it at once.
    #[cfg(target_family = "wasm")]
    fn file(&self, path: &str) -> Option<String> {
        use std::task::{Context, Poll, Waker};
        let (files, folder) = self.lends.as_ref()?;
        let path = folder.join(path);
        let mut read = files.read_file(&path);
        match read.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(bytes)) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Poll::Ready(Err(_)) | Poll::Pending => None,
        }
    }
}
