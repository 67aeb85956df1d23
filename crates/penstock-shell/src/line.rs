//! The interpreter's end of the line to whoever answers: on a thread of its own it sends, and stands still until the answer is there.

use crate::serve::Request;
use std::sync::mpsc::{Receiver, Sender};

/// Where requests go.
pub(crate) type Requests = Sender<Request>;

/// The next thing that comes; `None` where nothing will.
pub(crate) async fn next<T>(from: &mut Receiver<T>, _: &Requests) -> Option<T> {
    from.recv().ok()
}
