//! The children of a scope: their number, their abort handles, and the first failure.

use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;
use tussah_core::{AbortHandle, quietly};

use super::Failure;

/// State shared by a scope and its children. No foreign code runs under its lock.
pub(super) struct Children<E> {
    state: Mutex<State<E>>,
}

struct State<E> {
    /// One entry for each child that has not ended. `None` until its thread is started.
    running: HashMap<u64, Option<AbortHandle>>,
    /// The key of the next child. Keys are not reused, because a child may end before `started`
    /// records it.
    next_key: u64,
    failure: Option<Failure<E>>,
    /// Set when all children must end.
    aborting: bool,
    /// Set when the scope has ended, after which no child can start.
    over: bool,
    /// Wakers of tasks that wait for a child without a result.
    lost: Vec<Waker>,
    /// The waker of the scope.
    waker: Option<Waker>,
}

impl<E> Children<E> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                running: HashMap::new(),
                next_key: 0,
                failure: None,
                aborting: false,
                over: false,
                lost: Vec::new(),
                waker: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.state().running.len()
    }

    /// Registers a child. It is removed when its future is dropped.
    #[track_caller]
    pub(super) fn enter<F>(this: &Arc<Self>, future: F) -> (Running<F, E>, u64) {
        let key = {
            let mut state = this.state();
            if state.over {
                drop(state);
                panic!("cannot start a child: the scope has ended");
            }
            let key = state.next_key;
            state.next_key += 1;
            state.running.insert(key, None);
            key
        };
        let entry = Entry {
            children: this.clone(),
            key,
            told: false,
        };
        (Running { future, entry }, key)
    }

    /// Records the child's thread, which may have ended in the meantime.
    pub(super) fn started(&self, key: u64, thread: AbortHandle) {
        let mut state = self.state();
        if state.aborting {
            drop(state);
            return thread.abort();
        }
        if let Some(entry) = state.running.get_mut(&key) {
            *entry = Some(thread);
        }
    }

    /// Records the first failure, aborts all children and wakes the scope.
    pub(super) fn fail(&self, failure: Failure<E>) {
        let mut state = self.state();
        let later = match state.failure {
            // The value of a later failure runs foreign code when it is dropped: drop it after
            // releasing the lock.
            Some(_) => Some(failure),
            None => {
                state.failure = Some(failure);
                None
            }
        };
        let waker = state.waker.take();
        drop(state);
        self.abort_all();
        quietly(|| drop(later));
        if let Some(waker) = waker {
            quietly(|| waker.wake());
        }
    }

    /// Aborts all children, including those that are being started.
    pub(super) fn abort_all(&self) {
        let threads: Vec<_> = {
            let mut state = self.state();
            state.aborting = true;
            state
                .running
                .values_mut()
                .filter_map(Option::take)
                .collect()
        };
        for thread in threads {
            thread.abort();
        }
    }

    /// Ends the scope, at its end or because its future was dropped.
    pub(super) fn close(&self) {
        self.abort_all();
        let lost = {
            let mut state = self.state();
            state.over = true;
            std::mem::take(&mut state.lost)
        };
        for waker in lost {
            quietly(|| waker.wake());
        }
    }

    /// Waits until the scope has ended.
    pub(super) fn poll_over(&self, context: &Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        let mut state = self.state();
        if state.over {
            drop(state);
            drop(waker);
            return Poll::Ready(());
        }
        state.lost.push(waker);
        Poll::Pending
    }

    /// Returns whether the scope has failed. If it has not failed, registers the scope's waker for
    /// a failure.
    pub(super) fn poll_failed(&self, context: &Context<'_>) -> bool {
        self.register(context, |state| state.failure.is_some())
    }

    /// Waits for the last child, and then refuses new children.
    pub(super) fn poll_ended(&self, context: &Context<'_>) -> Poll<()> {
        let ended = self.register(context, |state| {
            state.over = state.running.is_empty();
            state.over
        });
        if ended {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn register(&self, context: &Context<'_>, done: impl Fn(&mut State<E>) -> bool) -> bool {
        let waker = context.waker().clone();
        let mut state = self.state();
        if done(&mut state) {
            drop(state);
            drop(waker);
            return true;
        }
        let old = state.waker.replace(waker);
        drop(state);
        quietly(|| drop(old));
        false
    }

    pub(super) fn take_failure(&self) -> Option<Failure<E>> {
        self.state().failure.take()
    }

    /// Removes a child that has ended. `told` is false if the child was dropped before it finished.
    fn leave(&self, key: u64, told: bool) {
        let mut state = self.state();
        let thread = state.running.remove(&key);
        if !told && !state.aborting {
            drop(state);
            drop(thread);
            return self.fail(Failure::ShutDown);
        }
        let waker = if state.running.is_empty() {
            state.waker.take()
        } else {
            None
        };
        drop(state);
        drop(thread);
        if let Some(waker) = waker {
            quietly(|| waker.wake());
        }
    }
}

pin_project! {
    /// The future of a child. The fields are dropped in order, so the child leaves after its future
    /// has been dropped.
    pub(super) struct Running<F, E> {
        #[pin]
        future: F,
        entry: Entry<E>,
    }
}

struct Entry<E> {
    children: Arc<Children<E>>,
    key: u64,
    /// True if the child has finished or reported its failure.
    told: bool,
}

impl<E> Drop for Entry<E> {
    fn drop(&mut self) {
        self.children.leave(self.key, self.told);
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Future for Running<F, E> {
    /// `None` if the child has failed.
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.project();
        let failure = match catch_unwind(AssertUnwindSafe(|| this.future.poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ok(value))) => {
                this.entry.told = true;
                return Poll::Ready(Some(value));
            }
            Ok(Poll::Ready(Err(error))) => Failure::Error(error),
            Err(payload) => Failure::Panic(payload),
        };
        this.entry.told = true;
        this.entry.children.fail(failure);
        Poll::Ready(None)
    }
}
