//! Where the interpreter runs: on a thread of its own. It asks over a channel, and stands still until it is answered.

use crate::interpreter::{Begin, Job, interpret};
use crate::limits::{self, Guard};
use crate::serve::Request;
use crate::{Answers, Halt, dead};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The interpreter and the line to it.
pub(crate) struct Engine {
    jobs: Option<Sender<Job>>,
    requests: Receiver<Request>,
    thread: Option<JoinHandle<()>>,
    guard: Arc<Guard>,
}

impl Engine {
    pub(crate) fn start(begin: Begin, ended: &Arc<AtomicBool>, guard: &Arc<Guard>) -> Engine {
        let (jobs, todo) = channel::<Job>();
        let (asks, requests) = channel();
        let (end, guards) = (Arc::clone(ended), Arc::clone(guard));
        let run = move || interpret(begin, asks, todo, &end, &guards);
        let thread = thread::Builder::new().name("script".to_owned()).stack_size(limits::STACK).spawn(run);
        Engine { jobs: Some(jobs), requests, thread: thread.ok(), guard: Arc::clone(guard) }
    }

    /// Hands it a job.
    pub(crate) fn begin(&mut self, job: Job) -> Result<(), String> {
        self.jobs.as_ref().ok_or_else(dead)?.send(job).map_err(|_| dead())
    }

    /// Has what it asks answered, until an answer says to halt.
    pub(crate) fn go_on(&mut self, answers: &mut dyn Answers) -> Halt {
        loop {
            let request = match self.requests.recv_timeout(self.guard.limits.quiet) {
                Ok(request) => request,
                Err(RecvTimeoutError::Disconnected) => return Halt::Ended(Err(dead())),
                Err(RecvTimeoutError::Timeout) => return Halt::Ended(Err(self.brake())),
            };
            if let Some(halt) = answers.answer(request) {
                return halt;
            }
        }
    }

    /// Ends an interpreter that neither prints nor asks. Where it does not end at once, it is left alone with itself.
    fn brake(&mut self) -> String {
        let quiet = self.guard.limits.quiet;
        self.guard.stop(format!("time without a word, by this computer's clock: {} s", quiet.as_secs_f64()));
        loop {
            match self.requests.recv_timeout(Duration::from_secs(5)) {
                Ok(Request::Done(_, Err(why))) => return why,
                Ok(_) => {}
                Err(_) => {
                    (self.jobs, self.thread) = (None, None);
                    return self.guard.done(Ok(0), 0).err().unwrap_or_default();
                }
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Without jobs the thread ends, when it is done with the one at hand: that is stopped, and whatever it asks is answered by the
        // machine's being gone.
        self.jobs = None;
        self.guard.stop("the machine is gone".to_owned());
        self.requests = channel().1;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
