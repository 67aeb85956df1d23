//! The interpreter without a thread and without a runtime: where there are neither (WebAssembly), its future is polled by hand.
//!
//! What it asks is answered while it is being polled, by whoever polls it: so one command follows another as if the interpreter stood
//! still meanwhile. Where a request is to wait (it lies at a time to come), the future is left pending, and polled again when it is
//! answered. The clock stands still while anything can go on, and jumps to the next timer, as a paused clock of tokio's does.
//!
//! Differs from the interpreter on its thread: text of `eval`, `. FILE` and `bash FILE` is parsed where it stands, and nothing else
//! comes first meanwhile; while a request waits, jobs in the background that wake at the same moment go on until they ask for
//! something too. A script of one job does not see either. Nobody ends what neither prints nor asks; the steps of a script end.

pub(crate) mod line;
pub(crate) mod time;

use crate::interpreter::{Begin, Job, serve_jobs};
use crate::limits::Guard;
use crate::{Answers, Halt, dead};
use line::Requests;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Wake, Waker};

/// The interpreter and the line to it.
pub(crate) struct Engine {
    /// Goes first: what is dropped with it may still say something.
    interpreter: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    jobs: Sender<Job>,
    requests: Requests,
    clock: Arc<time::Clock>,
    woken: Arc<Woken>,
    guard: Arc<Guard>,
}

/// Whether the future may go on.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Engine {
    pub(crate) fn start(begin: Begin, ended: &Arc<AtomicBool>, guard: &Arc<Guard>) -> Engine {
        let (jobs, todo) = channel::<Job>();
        let requests = Requests::default();
        let interpreter = serve_jobs(begin, requests.clone(), todo, Arc::clone(ended), Arc::clone(guard));
        Engine {
            interpreter: Some(Box::pin(interpreter)),
            jobs,
            requests,
            clock: Arc::default(),
            woken: Arc::new(Woken(AtomicBool::new(false))),
            guard: Arc::clone(guard),
        }
    }

    /// Hands it a job.
    pub(crate) fn begin(&mut self, job: Job) -> Result<(), String> {
        self.jobs.send(job).map_err(|_| dead())
    }

    /// Has what it asks answered, until an answer says to halt.
    pub(crate) fn go_on(&mut self, answers: &mut dyn Answers) -> Halt {
        line::LISTENER.set(line::Listener(answers), || self.poll())
    }

    fn poll(&mut self) -> Halt {
        let _within = time::within(&self.clock);
        let waker = Waker::from(Arc::clone(&self.woken));
        loop {
            self.requests.have_answered();
            if let Some(halt) = self.requests.halt() {
                return halt;
            }
            self.requests.wake();
            self.woken.0.store(false, Ordering::Relaxed);
            let Some(interpreter) = self.interpreter.as_mut() else { return Halt::Ended(Err(dead())) };
            if let Poll::Ready(()) = interpreter.as_mut().poll(&mut Context::from_waker(&waker)) {
                self.interpreter = None;
            }
            if let Some(halt) = self.requests.halt() {
                return halt;
            }
            let alarm = self.guard.sleepers.next_alarm(time::Instant::now());
            if !self.woken.0.load(Ordering::Relaxed)
                && !self.requests.are_open()
                && self.interpreter.is_some()
                && !self.clock.jump(alarm)
            {
                return Halt::Ended(Err(self.brake()));
            }
        }
    }

    /// Ends an interpreter that waits for what never comes.
    fn brake(&mut self) -> String {
        self.guard.stop("waiting for what never comes".to_owned());
        self.interpreter = None;
        self.guard.done(Ok(0), 0).err().unwrap_or_default()
    }
}
