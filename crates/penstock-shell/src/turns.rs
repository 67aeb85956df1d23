//! One thread at a time.
//!
//! The interpreter has the text of `bash FILE`, `. FILE` and `eval` parsed on a second thread, and goes on with whatever else can
//! run: a job in the background, or the script in front of it. Which of the two came first would then hang on this computer. So the
//! parsing thread stands still while the interpreter runs, and the interpreter stands still until everything is parsed.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::task::{Context, Poll};

/// A future that is polled only while the runtime's blocking thread stands still and has nothing left to do. The runtime has one such
/// thread, which takes its tasks in order.
pub(crate) struct InTurns<F>(Pin<Box<F>>);

impl<F: Future> InTurns<F> {
    pub(crate) fn new(inner: F) -> InTurns<F> {
        InTurns(Box::pin(inner))
    }
}

impl<F: Future> Future for InTurns<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let (reached, is_reached) = channel();
        let (release, is_released) = channel::<()>();
        tokio::task::spawn_blocking(move || {
            let _ = reached.send(());
            // Ends with an error when the sender goes.
            let _ = is_released.recv();
        });
        let _ = is_reached.recv();
        let polled = self.0.as_mut().poll(cx);
        drop(release);
        polled
    }
}
