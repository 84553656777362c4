//! One job of the blocking pool: its closure, then its result.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use parking_lot::{Condvar, Mutex};

use crate::join_error::JoinError;
use crate::quietly::quietly;
use crate::tiny_waker::TinyWaker;

/// The numbers of ended jobs of a pool. Each job is counted before its handle sees the result, and
/// the slot's lock orders these two steps. So a caller that has joined a job finds it in the
/// counters.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) completed: AtomicU64,
    pub(super) panicked: AtomicU64,
    pub(super) cancelled: AtomicU64,
}

/// A job as its pool sees it. Only the caller that took the job out of the queue may call these,
/// and only one of them, once.
pub(super) trait Job: Send + Sync {
    /// Runs the closure and publishes its result. Never unwinds.
    fn run(&self, counters: &Counters);
    /// Drops the closure, then publishes the error. Never unwinds.
    fn cancel(&self, error: JoinError, counters: &Counters);
}

/// A job as its handle sees it.
pub(super) trait Outcome<T>: Send + Sync {
    /// Returns true until a caller has begun to run or cancel the job.
    fn is_queued(&self) -> bool;
    /// Returns true once there is (or was) a result.
    fn is_finished(&self) -> bool;
    /// Takes the result, or keeps the waker until there is one.
    fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>>;
    /// Blocks until there is a result and takes it.
    fn wait_take(&self) -> Result<T, JoinError>;
    /// Declares that the result will not be taken.
    fn detach(&self);
}

enum Stage<F, T> {
    Queued(F),
    Running,
    Done(Result<T, JoinError>),
    Taken,
}

struct State<F, T> {
    stage: Stage<F, T>,
    waker: TinyWaker,
    detached: bool,
}

/// The storage of a job: `Queued`, `Running`, `Done`, `Taken`, in this order.
///
/// No user code (closure, waker, drop) runs under the lock. When the last reference is dropped, the
/// slot no longer holds any of the user's values. The closure has left with `run`, `cancel` or
/// `reclaim`. The result has left with the handle, or immediately if the handle no longer existed.
/// So the drop cannot panic, on whichever OS thread it happens.
pub(super) struct Slot<F, T> {
    state: Mutex<State<F, T>>,
    done: Condvar,
}

impl<F, T> Slot<F, T> {
    pub(super) fn new(f: F) -> Self {
        let state = State {
            stage: Stage::Queued(f),
            waker: TinyWaker::NONE,
            detached: false,
        };
        Self {
            state: Mutex::new(state),
            done: Condvar::new(),
        }
    }

    /// Takes the closure of a job that is in no queue and has not run.
    pub(super) fn reclaim(&self) -> F {
        match mem::replace(&mut self.state.lock().stage, Stage::Running) {
            Stage::Queued(f) => f,
            _ => unreachable!("a job is run or cancelled once, by who took it out of the queue"),
        }
    }

    fn publish(&self, result: Result<T, JoinError>) {
        let mut state = self.state.lock();
        if state.detached {
            drop(state);
            drop_caught(result);
            return;
        }
        state.stage = Stage::Done(result);
        let waker = state.waker.take();
        drop(state);
        self.done.notify_all();
        waker.wake_guarded();
    }
}

impl<F, T> State<F, T> {
    fn take(&mut self) -> Option<Result<T, JoinError>> {
        match mem::replace(&mut self.stage, Stage::Taken) {
            Stage::Done(result) => Some(result),
            Stage::Taken => panic!("a blocking handle was polled after it had given its result"),
            pending => {
                self.stage = pending;
                None
            }
        }
    }
}

impl<F, T> Job for Slot<F, T>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    fn run(&self, counters: &Counters) {
        let f = self.reclaim();
        let result = catch_unwind(AssertUnwindSafe(f)).map_err(JoinError::panic);
        let counter = if result.is_ok() {
            &counters.completed
        } else {
            &counters.panicked
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.publish(result);
    }

    fn cancel(&self, error: JoinError, counters: &Counters) {
        drop_caught(self.reclaim());
        counters.cancelled.fetch_add(1, Ordering::Relaxed);
        self.publish(Err(error));
    }
}

impl<F, T> Outcome<T> for Slot<F, T>
where
    F: Send,
    T: Send,
{
    fn is_queued(&self) -> bool {
        matches!(self.state.lock().stage, Stage::Queued(_))
    }

    fn is_finished(&self) -> bool {
        matches!(self.state.lock().stage, Stage::Done(_) | Stage::Taken)
    }

    fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        {
            let mut state = self.state.lock();
            if let Some(result) = state.take() {
                return Poll::Ready(result);
            }
            if state.waker.will_wake(cx.waker()) {
                return Poll::Pending;
            }
        }
        // Cloning a waker runs foreign code and happens outside the lock, so the state is checked
        // again.
        let waker = TinyWaker::from_waker(cx.waker());
        let mut state = self.state.lock();
        if let Some(result) = state.take() {
            drop(state);
            return Poll::Ready(result);
        }
        let replaced = mem::replace(&mut state.waker, waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }

    fn wait_take(&self) -> Result<T, JoinError> {
        let mut state = self.state.lock();
        loop {
            if let Some(result) = state.take() {
                return result;
            }
            self.done.wait(&mut state);
        }
    }

    fn detach(&self) {
        let mut state = self.state.lock();
        state.detached = true;
        let waker = state.waker.take();
        let finished = matches!(state.stage, Stage::Done(_));
        let result = if finished { state.take() } else { None };
        drop(state);
        drop(waker);
        drop_caught(result);
    }
}

fn drop_caught<V>(value: V) {
    quietly(|| drop(value));
}
