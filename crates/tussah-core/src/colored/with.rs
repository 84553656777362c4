//! The future of a request to a colored value.
//!
//! Uncontended, it enters the color and runs the closure in place. Contended, the closure moves to a request node that
//! the future and the color share:
//!
//! | bit | set by | meaning |
//! |---|---|---|
//! | `CLAIMED` | the color or the future, whoever is first | the closure is taken: run, or cancelled |
//! | `DONE` | the color | the outcome is in its place |
//! | `COLOR_GONE` | the color | it does not touch the node any more |
//! | `FUTURE_GONE` | the future | it does not touch the node any more |
//!
//! Who sets its own `GONE` second frees the node. The closure belongs to whoever set `CLAIMED`; the outcome belongs to the
//! future once it sees `DONE`, or to the color if it finds `FUTURE_GONE`.

use std::alloc::Layout;
use std::any::Any;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::value::{Colored, Inner};
use crate::color::cell::ColorCell;
use crate::event::{After, Allocation, DropReason, Node, VTable};
use crate::loom::atomic::{AtomicU8, Ordering};
use crate::slab::Kind;
use crate::worker::Worker;

const CLAIMED: u8 = 1;
const DONE: u8 = 2;
const COLOR_GONE: u8 = 4;
const FUTURE_GONE: u8 = 8;

/// How a request ended.
enum Outcome<R> {
    Returned(R),
    Panicked(Box<dyn Any + Send>),
    ShutDown,
}

union Body<F, R> {
    closure: ManuallyDrop<F>,
    outcome: ManuallyDrop<Outcome<R>>,
}

#[repr(C)]
struct Request<T, F, R> {
    node: Node,
    state: AtomicU8,
    waker: Mutex<Option<Waker>>,
    body: UnsafeCell<Body<F, R>>,
    value: PhantomData<fn(&mut T)>,
}

impl<T, F, R> Request<T, F, R>
where
    T: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    R: Send + 'static,
{
    const VTABLE: VTable = VTable {
        run: Self::run,
        drop: Self::drop,
        name: std::any::type_name::<F>,
        location: Self::location,
    };

    unsafe fn location(_: NonNull<Node>) -> Option<&'static Location<'static>> {
        None
    }

    /// Queues a closure; the returned node is shared with the color from now on.
    fn queue(colored: &Colored<T>, f: F, waker: Waker) -> NonNull<Self> {
        let shared = &colored.cell().shared;
        let request = shared.alloc(Kind::Event, Layout::new::<Self>()).cast::<Self>();
        // SAFETY: the memory is ours; then the node is given to the color, which our handle keeps alive.
        unsafe {
            request.write(Self {
                node: Node::new(&Self::VTABLE),
                state: AtomicU8::new(0),
                waker: Mutex::new(Some(waker)),
                body: UnsafeCell::new(Body { closure: ManuallyDrop::new(f) }),
                value: PhantomData,
            });
            ColorCell::post(colored.cell_ptr(), request.cast());
        }
        request
    }

    unsafe fn run(node: NonNull<Node>, worker: &Worker) -> After {
        let this = node.cast::<Self>();
        // SAFETY: the color has not set `COLOR_GONE`, so the node is alive. AcqRel: the cancelling side reads nothing of
        // ours, but the closure must not be touched before the claim.
        let claimed = unsafe { this.as_ref() }.state.fetch_or(CLAIMED, Ordering::AcqRel) & CLAIMED;
        if claimed == 0 {
            // SAFETY: the claim made the closure ours; the event runs in the color of an `Inner<T>` with its token.
            let outcome = unsafe {
                let closure = ManuallyDrop::take(&mut (*this.as_ref().body.get()).closure);
                let value = worker.color().cast::<Inner<T>>();
                catch_unwind(AssertUnwindSafe(|| closure(Inner::value_mut(value))))
            };
            let outcome = outcome.map_or_else(Outcome::Panicked, Outcome::Returned);
            // SAFETY: the claim is ours.
            unsafe { Self::finish(this, outcome) }
        }
        // SAFETY: the color is done with the node.
        unsafe { Self::color_gone(this) };
        After::Continue
    }

    unsafe fn drop(node: NonNull<Node>, _reason: DropReason) {
        let this = node.cast::<Self>();
        // SAFETY: as in `run`.
        unsafe {
            if this.as_ref().state.fetch_or(CLAIMED, Ordering::AcqRel) & CLAIMED == 0 {
                let body = this.as_ref().body.get();
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    ManuallyDrop::drop(&mut (*body).closure);
                }));
                Self::finish(this, Outcome::ShutDown);
            }
            Self::color_gone(this);
        }
    }

    /// Stores the outcome and wakes the future.
    unsafe fn finish(this: NonNull<Self>, outcome: Outcome<R>) {
        // SAFETY: the caller has the claim, so the body is its own until `DONE`.
        let request = unsafe { this.as_ref() };
        // SAFETY: as above.
        unsafe { (*request.body.get()).outcome = ManuallyDrop::new(outcome) };
        let waker = {
            // Under the lock: a future that stores another waker either does so before, and this one is called, or after,
            // and sees `DONE`.
            let mut waker = request.waker.lock();
            request.state.fetch_or(DONE, Ordering::Release); // pairs with the Acquire in `poll_request` and in `Drop`
            waker.take()
        };
        if let Some(waker) = waker {
            crate::task::wake_guarded(waker);
        }
    }

    /// Ends the color's use of the node.
    unsafe fn color_gone(this: NonNull<Self>) {
        // SAFETY: the node is alive until both sides are gone. AcqRel: see the other side's last writes before freeing.
        let old = unsafe { this.as_ref() }.state.fetch_or(COLOR_GONE, Ordering::AcqRel);
        if old & FUTURE_GONE != 0 {
            // SAFETY: both sides are gone; `DONE` is still set if the future went without taking the outcome.
            unsafe {
                if old & DONE != 0 {
                    Self::drop_outcome(this);
                }
                Self::free(this);
            }
        }
    }

    unsafe fn drop_outcome(this: NonNull<Self>) {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the caller owns the outcome.
            unsafe { ManuallyDrop::drop(&mut (*this.as_ref().body.get()).outcome) }
        }));
    }

    unsafe fn free(this: NonNull<Self>) {
        // SAFETY: nobody refers to the node any more; what is left of it to drop is the waker.
        unsafe { std::ptr::drop_in_place(&raw mut (*this.as_ptr()).waker) };
        drop(Allocation { ptr: this.cast(), layout: Layout::new::<Self>() });
    }

    fn poll_request(this: NonNull<Self>, context: &Context<'_>) -> Poll<Outcome<R>> {
        // SAFETY: the future is not gone, so the node is alive.
        let request = unsafe { this.as_ref() };
        if request.state.load(Ordering::Acquire) & DONE == 0 {
            let new = context.waker().clone();
            let old = request.waker.lock().replace(new);
            drop(old);
            if request.state.load(Ordering::Acquire) & DONE == 0 {
                return Poll::Pending;
            }
        }
        // SAFETY: `DONE` makes the outcome ours; clearing it says that it is taken. The closure ran, so nobody else writes
        // the bit again.
        unsafe {
            let outcome = ManuallyDrop::take(&mut (*request.body.get()).outcome);
            request.state.fetch_and(!DONE, Ordering::Release);
            Poll::Ready(outcome)
        }
    }

    /// Ends the future's use of the node.
    unsafe fn future_gone(this: NonNull<Self>) {
        // SAFETY: as in `color_gone`.
        let old = unsafe { this.as_ref() }.state.fetch_or(CLAIMED | FUTURE_GONE, Ordering::AcqRel);
        // SAFETY: the claim, `DONE` and `COLOR_GONE` say what is ours.
        unsafe {
            if old & CLAIMED == 0 {
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    ManuallyDrop::drop(&mut (*this.as_ref().body.get()).closure);
                }));
            }
            if old & COLOR_GONE != 0 {
                if old & DONE != 0 {
                    Self::drop_outcome(this);
                }
                Self::free(this);
            }
        }
    }
}

/// The future of [`Colored::with`].
#[must_use = "a request is made when it is first polled"]
pub struct With<'a, T, F, R>
where
    T: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    R: Send + 'static,
{
    colored: &'a Colored<T>,
    closure: Option<F>,
    request: Option<NonNull<Request<T, F, R>>>,
}

// SAFETY: the node is shared by its own rules, and closure and outcome are `Send`.
unsafe impl<T, F, R> Send for With<'_, T, F, R>
where
    T: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    R: Send + 'static,
{
}

impl<T, F, R> Unpin for With<'_, T, F, R>
where
    T: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    R: Send + 'static,
{
}

impl<'a, T, F, R> With<'a, T, F, R>
where
    T: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    R: Send + 'static,
{
    pub(super) fn new(colored: &'a Colored<T>, closure: F) -> Self {
        Self { colored, closure: Some(closure), request: None }
    }

    /// The first poll's slow way: no budget, or somebody has the color.
    #[cold]
    fn wait(&mut self, closure: F, has_budget: bool, context: &Context<'_>) -> Poll<R> {
        if has_budget {
            self.request = Some(Request::queue(self.colored, closure, context.waker().clone()));
        } else {
            self.closure = Some(closure);
            crate::task::again(context);
        }
        Poll::Pending
    }

    #[cold]
    fn poll_request(&mut self, context: &Context<'_>) -> Poll<R> {
        let request = self.request.expect("`With` was polled after it gave its result");
        match Request::poll_request(request, context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(outcome) => {
                self.request = None;
                // SAFETY: the future is done with the node.
                unsafe { Request::future_gone(request) };
                match outcome {
                    Outcome::Returned(result) => Poll::Ready(result),
                    Outcome::Panicked(payload) => resume_unwind(payload),
                    Outcome::ShutDown => panic!("the runtime was shut down before the request ran"),
                }
            }
        }
    }
}

impl<T, F, R> Future for With<'_, T, F, R>
where
    T: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    R: Send + 'static,
{
    type Output = R;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let Some(closure) = self.closure.take() else {
            return self.poll_request(context);
        };
        let has_budget = Worker::with(|worker| worker.is_none_or(Worker::spend));
        if !has_budget {
            return self.wait(closure, false, context);
        }
        match self.colored.try_with(closure) {
            Ok(result) => Poll::Ready(result),
            Err(closure) => self.wait(closure, true, context),
        }
    }
}

impl<T, F, R> Drop for With<'_, T, F, R>
where
    T: Send + 'static,
    F: FnOnce(&mut T) -> R + Send + 'static,
    R: Send + 'static,
{
    fn drop(&mut self) {
        if let Some(request) = self.request {
            // SAFETY: the future is done with the node.
            unsafe { Request::future_gone(request) }
        }
    }
}
