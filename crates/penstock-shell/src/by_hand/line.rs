//! The interpreter's end of the line to whoever answers: what it asks is answered on the spot, where somebody listens.

use crate::serve::Request;
use crate::{Answers, Halt};
use scoped_tls_hkt::{ReborrowMut, scoped_thread_local};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Who answers.
pub(super) struct Listener<'a>(pub(super) &'a mut dyn Answers);

impl<'b, 'a: 'b> ReborrowMut<'b> for Listener<'a> {
    type Result = Listener<'b>;
    fn reborrow_mut(&'b mut self) -> Listener<'b> {
        Listener(self.0)
    }
}

scoped_thread_local!(
    /// Who answers, while the interpreter is being polled.
    pub(super) static mut LISTENER: for<'a> Listener<'a>
);

/// Where requests go.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    open: VecDeque<Request>,
    /// What an answer has said.
    halt: Option<Halt>,
    /// Who waits for an answer.
    waiting: Vec<Waker>,
}

impl Requests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Asks.
    pub(crate) fn send(&self, request: Request) -> Result<(), ()> {
        self.state().open.push_back(request);
        self.have_answered();
        Ok(())
    }
    /// Has everything answered, until an answer says to halt. Where nobody listens, or whoever listens is busy, it stays open.
    pub(super) fn have_answered(&self) {
        while LISTENER.is_set() {
            let mut state = self.state();
            if state.halt.is_some() {
                return;
            }
            let Some(request) = state.open.pop_front() else { return };
            drop(state);
            let halt = LISTENER.with(|listener| listener.0.answer(request));
            self.state().halt = halt;
        }
    }
    /// What the last answer has said.
    pub(super) fn halt(&self) -> Option<Halt> {
        self.state().halt.take()
    }
    /// Whether anything is not answered.
    pub(super) fn are_open(&self) -> bool {
        !self.state().open.is_empty()
    }
    /// Whoever waits for an answer looks whether it is there.
    pub(super) fn wake(&self) {
        let waiting = std::mem::take(&mut self.state().waiting);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// The next thing that comes; `None` where nothing will.
pub(crate) async fn next<T>(from: &mut Receiver<T>, requests: &Requests) -> Option<T> {
    poll_fn(move |cx| match from.try_recv() {
        Ok(found) => Poll::Ready(Some(found)),
        Err(TryRecvError::Disconnected) => Poll::Ready(None),
        Err(TryRecvError::Empty) => {
            requests.state().waiting.push(cx.waker().clone());
            Poll::Pending
        }
    })
    .await
}
