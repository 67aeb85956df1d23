//! A clock that stands still and jumps to the next timer, as tokio's does when it is paused: timers go off at whole milliseconds, in
//! the order in which they were set.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::{Add, Sub};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

thread_local! {
    /// The clock of the interpreter that is being polled.
    static CLOCK: RefCell<Option<Arc<Clock>>> = const { RefCell::new(None) };
}

/// A script's clock.
#[derive(Default)]
pub(crate) struct Clock(Mutex<State>);

#[derive(Default)]
struct State {
    now: Duration,
    /// By the millisecond at which they go off, and the order of setting.
    timers: BTreeMap<(u128, u64), Waker>,
    set: u64,
}

/// The millisecond at which a timer for `end` goes off.
fn tick(end: Instant) -> u128 {
    end.0.as_nanos().div_ceil(1_000_000)
}

impl Clock {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Goes on to the next timer, or to `alarm` where that comes first: then everybody wakes. Answers whether there was one.
    pub(crate) fn jump(&self, alarm: Option<Instant>) -> bool {
        let mut state = self.state();
        let timer = state.timers.first_key_value().map(|((at, _), _)| *at);
        let alarm = alarm.map(tick);
        let Some(next) = timer.into_iter().chain(alarm).min() else { return false };
        state.now = state.now.max(Duration::from_millis(u64::try_from(next).unwrap_or(u64::MAX)));
        let behind = match alarm == Some(next) {
            true => BTreeMap::new(),
            false => state.timers.split_off(&(next + 1, 0)),
        };
        let woken = std::mem::replace(&mut state.timers, behind);
        drop(state);
        woken.into_values().for_each(Waker::wake);
        true
    }
}

/// Until it is dropped, this clock is the one that is read.
pub(crate) fn within(clock: &Arc<Clock>) -> Within {
    Within(CLOCK.replace(Some(Arc::clone(clock))))
}

/// The clock that was read before.
pub(crate) struct Within(Option<Arc<Clock>>);

impl Drop for Within {
    fn drop(&mut self) {
        CLOCK.set(self.0.take());
    }
}

/// A moment of a script's clock, since it began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Instant {
        Instant(CLOCK.with_borrow(|clock| clock.as_ref().map_or(Duration::ZERO, |c| c.state().now)))
    }
    pub(crate) fn elapsed(&self) -> Duration {
        Instant::now().duration_since(*self)
    }
    pub(crate) fn duration_since(&self, earlier: Instant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, span: Duration) -> Instant {
        Instant(self.0 + span)
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, span: Duration) -> Instant {
        Instant(self.0.saturating_sub(span))
    }
}

/// Microseconds of the clock that is read now: what the interpreter itself takes for the time.
pub(crate) fn micros() -> u64 {
    u64::try_from(Instant::now().0.as_micros()).unwrap_or(u64::MAX)
}

/// Waits so long.
pub(crate) fn sleep(span: Duration) -> Sleep {
    sleep_until(Instant::now() + span)
}

/// Waits until then.
pub(crate) fn sleep_until(end: Instant) -> Sleep {
    Sleep { end, key: None, clock: CLOCK.with_borrow(Clone::clone).unwrap_or_default() }
}

/// Somebody waits.
pub(crate) struct Sleep {
    end: Instant,
    key: Option<(u128, u64)>,
    clock: Arc<Clock>,
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let clock = Arc::clone(&self.clock);
        let mut state = clock.state();
        let at = tick(self.end);
        if state.now.as_nanos() >= at * 1_000_000 {
            return Poll::Ready(());
        }
        let key = *self.key.get_or_insert_with(|| {
            state.set += 1;
            (at, state.set)
        });
        state.timers.insert(key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.clock.state().timers.remove(&key);
        }
    }
}
