//! State shared by a request's future and its color: first the closure with its span, later the
//! outcome, and the waker.
//!
//! | bit | set by | meaning |
//! |---|---|---|
//! | `CLAIMED` | the color or the future, whichever is first | the closure and its span were taken: to run, or by cancellation |
//! | `DONE` | the color; cleared by the future | the outcome is stored |
//! | `COLOR_GONE` | the color | the color no longer touches the request |
//! | `FUTURE_GONE` | the future | the future no longer touches the request |
//!
//! The side that sets its `GONE` bit second frees the request. The closure belongs to the side that
//! set `CLAIMED`. The outcome belongs to the future once it sees `DONE`. If `DONE` is still set
//! when both sides are gone, the outcome belongs to the second side to go.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::panic::resume_unwind;
use std::task::{Context, Poll};

use super::in_span::InSpan;
use crate::loom::atomic::{AtomicU8, Ordering};
use crate::loom::{Mutex, UnsafeCell, lock};
use crate::quietly::quietly;
use crate::tiny_waker::TinyWaker;

const CLAIMED: u8 = 1;
const DONE: u8 = 2;
const COLOR_GONE: u8 = 4;
const FUTURE_GONE: u8 = 8;

/// The end of a request.
pub(super) enum Outcome<R> {
    Returned(R),
    Panicked(Box<dyn Any + Send>),
    ShutDown,
}

impl<R> Outcome<R> {
    /// Returns the result, or resumes the closure's panic.
    pub(super) fn get(self) -> R {
        match self {
            Outcome::Returned(result) => result,
            Outcome::Panicked(payload) => resume_unwind(payload),
            Outcome::ShutDown => panic!("the runtime was shut down before the request ran"),
        }
    }
}

union Body<F, R> {
    closure: ManuallyDrop<InSpan<F>>,
    outcome: ManuallyDrop<Outcome<R>>,
}

/// The part of a request that the color and the future share.
pub(super) struct Reply<F, R> {
    state: AtomicU8,
    waker: Mutex<TinyWaker>,
    body: UnsafeCell<Body<F, R>>,
}

impl<F, R> Reply<F, R> {
    pub(super) fn new(closure: InSpan<F>, waker: TinyWaker) -> Self {
        Self {
            state: AtomicU8::new(0),
            waker: Mutex::new(waker),
            body: UnsafeCell::new(Body {
                closure: ManuallyDrop::new(closure),
            }),
        }
    }

    /// Takes the closure on behalf of the color. Returns `None` if the request was cancelled.
    ///
    /// # Safety
    /// This must be called only once, and only by the color.
    pub(super) unsafe fn claim(&self) -> Option<InSpan<F>> {
        // Relaxed: the bit publishes nothing, since the closure was published by the queue.
        if self.state.fetch_or(CLAIMED, Ordering::Relaxed) & CLAIMED != 0 {
            return None;
        }
        // SAFETY: the claim gives this call the closure, which is read once.
        Some(
            self.body
                .with_mut(|body| unsafe { ManuallyDrop::take(&mut (*body).closure) }),
        )
    }

    /// Passes the closure to `run` inside its span and stores the outcome.
    ///
    /// # Safety
    /// The color must hold the claim, and must call this only once.
    pub(super) unsafe fn finish(&self, closure: InSpan<F>, run: impl FnOnce(F) -> R) {
        let outcome = closure.run(run);
        // SAFETY: passed on from the caller.
        unsafe { self.store(outcome.map_or_else(Outcome::Panicked, Outcome::Returned)) }
    }

    /// Drops the closure, unless the request was cancelled, and reports the end of the runtime to
    /// the future.
    ///
    /// # Safety
    /// This must be called only once, by the color, instead of `claim`.
    pub(super) unsafe fn shut_down(&self) {
        // SAFETY: passed on from the caller.
        unsafe {
            if let Some(closure) = self.claim() {
                drop_guarded(closure);
                self.store(Outcome::ShutDown);
            }
        }
    }

    unsafe fn store(&self, outcome: Outcome<R>) {
        // SAFETY: the caller holds the claim, so it owns the body until `DONE`.
        self.body
            .with_mut(|body| unsafe { (*body).outcome = ManuallyDrop::new(outcome) });
        let waker = {
            // Set under the lock. A future that stores another waker either stores it earlier, so
            // that this waker is called, or later, when it sees `DONE`.
            let mut waker = lock(&self.waker);
            self.state.fetch_or(DONE, Ordering::Release); // pairs with the Acquire in `poll` and in `gone`
            waker.take()
        };
        waker.wake_guarded();
    }

    /// Takes the outcome if it is stored; otherwise stores the waker.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<Outcome<R>> {
        if self.state.load(Ordering::Acquire) & DONE == 0 {
            let new = TinyWaker::from_waker(context.waker());
            let old = std::mem::replace(&mut *lock(&self.waker), new);
            drop(old);
            if self.state.load(Ordering::Acquire) & DONE == 0 {
                return Poll::Pending;
            }
        }
        // SAFETY: `DONE` gives the outcome to the future, and clearing the bit marks it as taken.
        // The color stores only one outcome, so it does not set the bit again.
        let outcome = self
            .body
            .with_mut(|body| unsafe { ManuallyDrop::take(&mut (*body).outcome) });
        self.state.fetch_and(!DONE, Ordering::Release); // pairs with the Acquire in `gone`
        Poll::Ready(outcome)
    }

    /// Ends the color's use of the request. Returns true if the caller must free it.
    ///
    /// # Safety
    /// This must be called only once, by the color, which must not use the request afterwards.
    pub(super) unsafe fn color_gone(&self) -> bool {
        // SAFETY: passed on from the caller.
        unsafe { self.gone(COLOR_GONE, FUTURE_GONE) }
    }

    /// Returns whether the closure was taken. For a queued request this means that it was
    /// cancelled.
    pub(super) fn is_claimed(&self) -> bool {
        self.state.load(Ordering::Relaxed) & CLAIMED != 0
    }

    /// Cancels the request if it has not run. Returns true if this call cancelled it; the request
    /// then holds none of the user's values.
    ///
    /// # Safety
    /// This must be called only once, and only by the future.
    pub(super) unsafe fn cancel(&self) -> bool {
        // SAFETY: upheld by the caller; a successful claim gives this call the closure.
        let Some(closure) = (unsafe { self.claim() }) else {
            return false;
        };
        let waker = lock(&self.waker).take();
        drop(waker); // its drop catches panics
        drop_guarded(closure);
        true
    }

    /// Ends the future's use of the request. Returns true if the caller must free it.
    ///
    /// # Safety
    /// This must be called only once, by the future, after it has taken the outcome or cancelled
    /// the request. The future must not use the request afterwards.
    pub(super) unsafe fn future_gone(&self) -> bool {
        // SAFETY: passed on from the caller.
        unsafe { self.gone(FUTURE_GONE, COLOR_GONE) }
    }

    unsafe fn gone(&self, mine: u8, other: u8) -> bool {
        // AcqRel: the second side to go sees everything that the first one did before it frees the
        // request.
        let old = self.state.fetch_or(mine, Ordering::AcqRel);
        if old & other == 0 {
            return false;
        }
        // This also runs if the body is already empty: the body is about to be freed, and models
        // check for concurrent use.
        let outcome = self.body.with_mut(|body| {
            // SAFETY: both sides are gone, and the outcome was not taken.
            (old & DONE != 0).then(|| unsafe { ManuallyDrop::take(&mut (*body).outcome) })
        });
        if let Some(outcome) = outcome {
            drop_guarded(outcome);
        }
        true
    }
}

/// Drops a user's value and swallows a panic of its destructor.
fn drop_guarded<T>(value: T) {
    quietly(|| drop(value));
}
