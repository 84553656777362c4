//! The state of one operation: its data, its waiter and its progress.
//!
//! # Who may touch what
//!
//! An operation is one allocation. Its future holds a reference, and so does the structure that the
//! operation is currently in: a file's queue, a ring's slot or a job of the pool. Its *body* owns
//! everything that the kernel may access: buffers, paths, a reference to the descriptor.
//!
//! | place | the body is accessed by | the operation leaves this place by |
//! |---|---|---|
//! | `New` | the future's first poll | `start` |
//! | `Queued` | nobody | its turn in the file's queue, or its abandonment, which removes it from the queue |
//! | `Ring` | the kernel | its completion, which finishes it or submits it again; never, if the ring closes and the kernel still has it |
//! | `Pool` | nobody: the job waits in the pool's queue | `begin`, by the job, or by a waiter inside of another job; or the drop of the job |
//! | `Running` | the OS thread that has begun it | its end |
//!
//! The transition to `Running` happens under the state's lock, so only one caller makes it. Other
//! callers find that the operation has already begun.
//!
//! Dropping the future gives up the result, not the body. The body is dropped with the last
//! reference. In `Ring`, `Pool` and `Running` a reference is held until the operation has ended. If
//! the operation has produced a result by then, such as a descriptor, the result is dropped like
//! any other value.
//!
//! # Locks
//!
//! The locks of the file's queue and of the ring may be taken while the lock of a state is held.
//! Only the party named in the table takes the body's lock, so this lock is never contended. No
//! code of the user (a waker, a buffer's methods or its drop) runs under any of them.

#[cfg(all(test, not(loom)))]
mod tests;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use io_uring::squeue;
use parking_lot::Mutex;
use rustix::io::Errno;

use super::launch::{self, Route};
use super::operation::{Awaited, Operate, Operation, WhenDropped, as_of_a_call};
use super::order::Order;
use super::ring::Ring;
use super::slots::Key;
use crate::quietly::quietly;
use crate::runtime::Handle;
use crate::tiny_waker::TinyWaker;

/// The maximum number of times that an operation that the kernel has given up is submitted again
/// without progress. The OS thread that resubmits it is awake, so one try is enough unless that OS
/// thread ends, too.
const RETRIES_MAX: u8 = 16;

/// An operation; see the module's documentation.
pub(super) struct Cell<O: Operation> {
    body: Mutex<Option<O>>,
    state: Mutex<State<O::Output>>,
    /// The file's queue in which the operation has its turn. This is not the file itself, because
    /// the waiter may close the file as soon as it has the result.
    order: Option<Arc<Order>>,
}

struct State<T> {
    place: Place,
    result: Option<T>,
    waker: TinyWaker,
    abandoned: bool,
    cancelled: bool,
    /// The number of times that the operation was submitted again since its last progress.
    retries: u8,
}

/// The place of an operation; see the module's documentation.
enum Place {
    New,
    Queued(u64),
    Ring(Arc<Ring>, Key),
    Pool,
    Running,
    Ended,
}

impl<O: Operation> Cell<O> {
    pub(super) fn new(body: O, order: Option<Arc<Order>>) -> Arc<Self> {
        Arc::new(Self {
            body: Mutex::new(Some(body)),
            state: Mutex::new(State {
                place: Place::New,
                result: None,
                waker: TinyWaker::NONE,
                abandoned: false,
                cancelled: false,
                retries: 0,
            }),
            order,
        })
    }

    /// Returns the operation's ticket in the file's queue, even if its turn has just come.
    fn ticket(&self) -> Option<u64> {
        match self.state.lock().place {
            Place::Queued(ticket) => Some(ticket),
            _ => None,
        }
    }

    /// Gives the caller the right to run the operation, if `is_here` holds.
    fn begin(&self, is_here: impl FnOnce(&State<O::Output>) -> bool) -> bool {
        let mut state = self.state.lock();
        let begins = is_here(&state);
        if begins {
            state.place = Place::Running;
        }
        begins
    }

    /// Runs an operation that the caller has begun.
    fn run_begun(&self) {
        if O::WHEN_DROPPED == WhenDropped::Cancelled && self.state.lock().abandoned {
            self.drop_body();
            self.let_next();
            return;
        }
        let result = {
            let mut body = self.body.lock();
            let body = body.as_mut().expect("an operation ends once");
            loop {
                match body.block() {
                    Ok(done) if body.goes_on(done) => {}
                    Err(Errno::INTR) => {}
                    Ok(done) => break Ok(done),
                    Err(error) => break Err(error.into()),
                }
            }
        };
        self.finish(result);
        self.let_next();
    }

    /// Lets the next operation of the file begin.
    fn let_next(&self) {
        if let Some(order) = &self.order {
            order.next();
        }
    }

    /// Hands the result to the waiter.
    fn publish(&self, result: O::Output) {
        let mut state = self.state.lock();
        // The reference to the ring, which has a slot for this operation, is dropped with the
        // place.
        let place = std::mem::replace(&mut state.place, Place::Ended);
        if state.abandoned {
            drop(state);
            quietly(|| drop(result));
            return;
        }
        state.result = Some(result);
        let waker = state.waker.take();
        drop(state);
        drop(place);
        waker.wake_guarded();
    }

    fn finish(&self, result: io::Result<u32>) {
        let body = self.body.lock().take();
        let body = body.expect("an operation ends once");
        self.publish(body.finish(result));
    }

    /// Ends an operation that has not begun and has no waiter.
    fn drop_body(&self) {
        let body = self.body.lock().take();
        quietly(|| drop(body));
    }

    /// Returns whether the operation continues after this partial result.
    fn goes_on(&self, result: &io::Result<u32>) -> bool {
        match result {
            Ok(done) => {
                self.state.lock().retries = 0;
                let mut body = self.body.lock();
                body.as_mut()
                    .expect("an operation ends once")
                    .goes_on(*done)
            }
            Err(error) => {
                let mut state = self.state.lock();
                state.retries += 1;
                state.retries <= RETRIES_MAX
                    && Errno::from_io_error(error).is_some_and(O::is_retried)
            }
        }
    }

    /// Submits an operation to its ring again, unless it is cancelled or the ring is closed.
    fn submit_again(self: &Arc<Self>) -> Result<(), io::Error> {
        let mut state = self.state.lock();
        if state.cancelled {
            return Err(Errno::CANCELED.into());
        }
        let Place::Ring(ring, key) = &mut state.place else {
            unreachable!("only a ring completes an operation in parts");
        };
        *key = ring.push(self.clone()).map_err(|_| super::ended())?;
        Ok(())
    }
}

impl<O: Operation> Awaited<O::Output> for Cell<O> {
    fn prepare(&mut self) {
        let body = self.body.get_mut().as_mut();
        body.expect("an operation ends once").prepare();
    }

    fn start(self: Arc<Self>, handle: &Handle) {
        if let Some(order) = &self.order {
            let mut state = self.state.lock();
            if let Some(ticket) = order.wait(self.clone(), handle) {
                state.place = Place::Queued(ticket);
                return;
            }
        }
        if launch::runs_here(handle, O::CODE) {
            self.run_for_another();
        } else if !self.clone().launch(handle) {
            self.let_next();
        }
    }

    fn poll_take(&self, context: &mut Context<'_>) -> Poll<O::Output> {
        {
            let mut state = self.state.lock();
            if let Some(result) = state.result.take() {
                return Poll::Ready(result);
            }
            if state.waker.will_wake(context.waker()) {
                return Poll::Pending;
            }
        }
        // Cloning a waker runs foreign code and happens outside the lock, so the state is checked
        // again.
        let waker = TinyWaker::from_waker(context.waker());
        let mut state = self.state.lock();
        if let Some(result) = state.result.take() {
            drop(state);
            return Poll::Ready(result);
        }
        let replaced = std::mem::replace(&mut state.waker, waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }

    fn help(self: Arc<Self>) {
        if let Some(order) = &self.order {
            while let Some(ticket) = self.ticket()
                && let Some(turn) = order.help(ticket)
                && turn.run_for_another()
            {}
        }
        self.run();
    }

    fn abandon(&self) {
        let mut state = self.state.lock();
        state.abandoned = true;
        let waker = state.waker.take();
        let result = state.result.take();
        let mut queued = None;
        let mut cancel = None;
        match &state.place {
            Place::Queued(ticket) => queued = Some(*ticket),
            Place::Ring(ring, key) if O::WHEN_DROPPED == WhenDropped::Cancelled => {
                cancel = Some((ring.clone(), *key));
            }
            _ => {}
        }
        state.cancelled = cancel.is_some();
        drop(state);
        if let (Some(ticket), Some(order)) = (queued, &self.order) {
            drop(order.remove(ticket));
        }
        if let Some((ring, key)) = cancel {
            ring.cancel(key);
            launch::flush_unless_own(&ring);
        }
        quietly(|| drop((waker, result)));
    }
}

impl<O: Operation> Operate for Cell<O> {
    fn entry(&self) -> squeue::Entry {
        let mut body = self.body.lock();
        body.as_mut().expect("an operation ends once").entry()
    }

    fn run(self: Arc<Self>) {
        if self.begin(|state| matches!(state.place, Place::Pool)) {
            self.run_begun();
        }
    }

    fn run_for_another(self: Arc<Self>) -> bool {
        let begins = self.begin(|state| match state.place {
            Place::Pool => true,
            // It is the operation's turn, and the caller that gave the turn is about to launch it
            // or to find it abandoned.
            Place::New | Place::Queued(_) => !state.abandoned,
            Place::Ring(..) | Place::Running | Place::Ended => false,
        });
        if begins {
            self.run_begun();
        }
        begins
    }

    fn is_carried_out(&self) -> bool {
        O::WHEN_DROPPED == WhenDropped::CarriedOut
    }

    fn wake(&self) {
        let waker = self.state.lock().waker.take();
        waker.wake_guarded();
    }

    fn completed(self: Arc<Self>, mut result: io::Result<u32>) {
        if self.goes_on(&result) {
            match self.submit_again() {
                Ok(()) => return,
                Err(error) => result = Err(error),
            }
        }
        self.finish(result.map_err(as_of_a_call));
        self.let_next();
    }

    fn fail(self: Arc<Self>, error: io::Error) {
        self.finish(Err(error));
        self.let_next();
    }

    fn dropped_by_pool(self: Arc<Self>) {
        if self.begin(|state| matches!(state.place, Place::Pool)) {
            self.fail(super::ended());
        }
    }

    fn launch(self: Arc<Self>, handle: &Handle) -> bool {
        let mut state = self.state.lock();
        if matches!(state.place, Place::Running | Place::Ended) {
            return true;
        }
        if state.abandoned {
            drop(state);
            self.drop_body();
            return false;
        }
        match launch::route(handle, O::CODE) {
            Route::Ring { ring, outside } => {
                let pushed = ring.push(self.clone());
                let Ok(key) = pushed else {
                    drop(state);
                    self.finish(Err(super::ended()));
                    return false;
                };
                state.place = Place::Ring(ring.clone(), key);
                drop(state);
                if outside {
                    ring.flush_or_tell();
                }
            }
            Route::Pool => {
                state.place = Place::Pool;
                drop(state);
                if let Err((error, job)) = launch::submit(handle, self.clone()) {
                    let begins = self.begin(|state| matches!(state.place, Place::Pool));
                    drop(job);
                    if begins {
                        self.finish(Err(error));
                    }
                    return !begins;
                }
            }
        }
        true
    }
}
