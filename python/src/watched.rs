//! Work without the interpreter's lock, which Ctrl-C ends.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Ends the thread of work that nobody waits for any more.
struct Stopped;

/// How often signals are asked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// Does work on a thread of its own, with the lock let go. Work tells its progress; where a signal's handler raised, or `ended` was set, it ends there.
///
/// # Errors
/// What the handler raised; a KeyboardInterrupt where `ended` was set.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    ended: &AtomicBool,
    work: impl FnOnce(&mut dyn FnMut(f64)) -> T + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let (tell, told) = channel::<()>();
    let told = Mutex::new(told);
    let goes_on = || {
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout)
    };
    std::thread::scope(|scope| {
        let stop = &stop;
        let worker = scope.spawn(move || {
            // Dropped when the thread ends, however it does.
            let _tell = tell;
            work(&mut |_| {
                if stop.load(Ordering::Relaxed) || ended.load(Ordering::Relaxed) {
                    // Past the panic's message: nothing is wrong.
                    resume_unwind(Box::new(Stopped));
                }
            })
        });
        while py.detach(goes_on) {
            if let Err(signal) = py.check_signals() {
                stop.store(true, Ordering::Relaxed);
                let _ = py.detach(|| worker.join());
                return Err(signal);
            }
        }
        match py.detach(|| worker.join()) {
            Ok(done) => Ok(done),
            Err(why) if why.is::<Stopped>() => Err(PyKeyboardInterrupt::new_err("the run was ended")),
            Err(panic) => resume_unwind(panic),
        }
    })
}
