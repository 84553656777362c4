//! What a request to colored state and the color share: the closure with its span, then its outcome, and who waits for it.
//!
//! | bit | set by | meaning |
//! |---|---|---|
//! | `CLAIMED` | the color or the future, whoever is first | the closure is taken, with its span: run, or cancelled |
//! | `DONE` | the color; unset by the future | the outcome is in its place |
//! | `COLOR_GONE` | the color | it does not touch the request any more |
//! | `FUTURE_GONE` | the future | it does not touch the request any more |
//!
//! Who sets its own `GONE` second frees the request. The closure belongs to whoever set `CLAIMED`; the outcome belongs to
//! the future once it sees `DONE`, or to whoever is gone second if `DONE` is still set.

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

/// How a request ended.
pub(super) enum Outcome<R> {
    Returned(R),
    Panicked(Box<dyn Any + Send>),
    ShutDown,
}

impl<R> Outcome<R> {
    /// The result, or the closure's panic raised again.
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

/// The shared part of a request.
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

    /// The color's turn to take the closure: `None` if the request was cancelled.
    ///
    /// # Safety
    /// Called once, by the color.
    pub(super) unsafe fn claim(&self) -> Option<InSpan<F>> {
        // Nothing is handed over by the bit itself: the closure came with the queue.
        if self.state.fetch_or(CLAIMED, Ordering::Relaxed) & CLAIMED != 0 {
            return None;
        }
        // SAFETY: the claim made the closure ours, and it is read once.
        Some(
            self.body
                .with_mut(|body| unsafe { ManuallyDrop::take(&mut (*body).closure) }),
        )
    }

    /// Has `run` run the closure, in its span, and stores how it ended.
    ///
    /// # Safety
    /// The color has the claim, and calls this once.
    pub(super) unsafe fn finish(&self, closure: InSpan<F>, run: impl FnOnce(F) -> R) {
        let outcome = closure.run(run);
        // SAFETY: passed on from the caller.
        unsafe { self.store(outcome.map_or_else(Outcome::Panicked, Outcome::Returned)) }
    }

    /// Drops the closure, unless it was cancelled, and tells the future that the runtime ended.
    ///
    /// # Safety
    /// Called once, by the color, instead of `claim`.
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
        // SAFETY: the caller has the claim, so the body is its own until `DONE`.
        self.body
            .with_mut(|body| unsafe { (*body).outcome = ManuallyDrop::new(outcome) });
        let waker = {
            // Under the lock: a future that stores another waker either does so before, and that one is called, or after,
            // and sees `DONE`.
            let mut waker = lock(&self.waker);
            self.state.fetch_or(DONE, Ordering::Release); // pairs with the Acquire in `poll` and in `gone`
            waker.take()
        };
        waker.wake_guarded();
    }

    /// Takes the outcome, if it is there.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<Outcome<R>> {
        if self.state.load(Ordering::Acquire) & DONE == 0 {
            let new = TinyWaker::from_waker(context.waker());
            let old = std::mem::replace(&mut *lock(&self.waker), new);
            drop(old);
            if self.state.load(Ordering::Acquire) & DONE == 0 {
                return Poll::Pending;
            }
        }
        // SAFETY: `DONE` makes the outcome the future's; unsetting it says that it was taken. The color has stored the
        // outcome, so it does not write the bit again.
        let outcome = self
            .body
            .with_mut(|body| unsafe { ManuallyDrop::take(&mut (*body).outcome) });
        self.state.fetch_and(!DONE, Ordering::Release); // pairs with the Acquire in `gone`
        Poll::Ready(outcome)
    }

    /// Ends the color's use of the request; true if the caller has to free it.
    ///
    /// # Safety
    /// Called once, by the color, which does not use the request after.
    pub(super) unsafe fn color_gone(&self) -> bool {
        // SAFETY: passed on from the caller.
        unsafe { self.gone(COLOR_GONE, FUTURE_GONE) }
    }

    /// Whether the closure is taken; of a request that is queued, whether it was cancelled.
    pub(super) fn is_claimed(&self) -> bool {
        self.state.load(Ordering::Relaxed) & CLAIMED != 0
    }

    /// Cancels the request if it has not run, and says whether it did. Nothing of the user's is left in it then.
    ///
    /// # Safety
    /// Called once, by the future.
    pub(super) unsafe fn cancel(&self) -> bool {
        // SAFETY: passed on from the caller; a claim that succeeds makes the closure ours.
        let Some(closure) = (unsafe { self.claim() }) else {
            return false;
        };
        let waker = lock(&self.waker).take();
        drop(waker); // which guards itself
        drop_guarded(closure);
        true
    }

    /// Ends the future's use of the request; true if the caller has to free it.
    ///
    /// # Safety
    /// Called once, by the future, after it has taken the outcome or cancelled the request; it does not use the request after.
    pub(super) unsafe fn future_gone(&self) -> bool {
        // SAFETY: passed on from the caller.
        unsafe { self.gone(FUTURE_GONE, COLOR_GONE) }
    }

    unsafe fn gone(&self, mine: u8, other: u8) -> bool {
        // AcqRel: whoever is second sees all that the first one did, before it frees.
        let old = self.state.fetch_or(mine, Ordering::AcqRel);
        if old & other == 0 {
            return false;
        }
        // Also where nothing is left in the body: it is about to be freed, and models check that nobody uses it.
        let outcome = self.body.with_mut(|body| {
            // SAFETY: both sides are gone and the outcome was not taken.
            (old & DONE != 0).then(|| unsafe { ManuallyDrop::take(&mut (*body).outcome) })
        });
        if let Some(outcome) = outcome {
            drop_guarded(outcome);
        }
        true
    }
}

/// Drops a user's value; a panic of its destructor stays here.
fn drop_guarded<T>(value: T) {
    quietly(|| drop(value));
}
