//! Futures of requests to one colored value.

use std::alloc::Layout;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::in_span::{InSpan, RequestSpan};
use super::reply::Reply;
use super::value::{Colored, Inner};
use crate::color::cell::ColorCell;
use crate::color::read::Part;
use crate::event::{After, Allocation, Cancel, DropReason, Node, VTable};
use crate::slab::Kind;
use crate::thread::again;
use crate::tiny_waker::TinyWaker;
use crate::worker::{Budget, Worker};

/// An operation that takes a colored value of type `T` and returns an `R`. Only [`Write`] and
/// [`Read`] implement this trait.
#[allow(private_bounds)]
pub trait Operation<T, R>: Sealed + Sized {
    /// True if the operation only reads, so that several such operations may run at the same time.
    #[doc(hidden)]
    const READS: bool;
    /// Runs the closure.
    ///
    /// # Safety
    /// The caller must hold the value's color: shared with other readers if `READS` is true, and
    /// exclusively otherwise.
    #[doc(hidden)]
    unsafe fn call(self, value: NonNull<T>) -> R;
}

trait Sealed {}

/// An operation that may change the value.
#[derive(Debug)]
pub struct Write<F>(pub(super) F);

/// An operation that only reads the value.
#[derive(Debug)]
pub struct Read<F>(pub(super) F);

impl<F> Sealed for Write<F> {}
impl<F> Sealed for Read<F> {}

impl<T, R, F: FnOnce(&mut T) -> R> Operation<T, R> for Write<F> {
    const READS: bool = false;
    #[inline]
    unsafe fn call(self, mut value: NonNull<T>) -> R {
        // SAFETY: the caller holds the color exclusively.
        (self.0)(unsafe { value.as_mut() })
    }
}

impl<T, R, F: FnOnce(&T) -> R> Operation<T, R> for Read<F> {
    const READS: bool = true;
    #[inline]
    unsafe fn call(self, value: NonNull<T>) -> R {
        // SAFETY: the caller holds the color, and any other holder only reads.
        (self.0)(unsafe { value.as_ref() })
    }
}

/// A request in the queue of its color, shared with its future.
#[repr(C)]
struct Request<T, O, R> {
    node: Node,
    reply: Reply<O, R>,
    value: std::marker::PhantomData<fn(&mut T)>,
}

impl<T, O, R> Request<T, O, R>
where
    T: Send + 'static,
    O: Operation<T, R> + Send + 'static,
    R: Send + 'static,
{
    const VTABLE: VTable = VTable {
        run: Self::run,
        drop: Self::drop,
        name: std::any::type_name::<O>,
        location_at: None,
        cancel: Some(Cancel {
            is_cancelled: Self::is_cancelled,
            leave: Self::leave,
        }),
    };

    /// Queues an operation. From now on the color shares the returned request.
    fn queue(colored: &Colored<T>, operation: InSpan<O>, waker: TinyWaker) -> NonNull<Self> {
        let request = colored
            .cell()
            .shared()
            .alloc(Kind::Event, Layout::new::<Self>())
            .cast::<Self>();
        // SAFETY: the memory was allocated for this request; the node then goes to the color, which
        // the value's handle keeps alive.
        unsafe {
            request.write(Self {
                node: Node::new(&Self::VTABLE),
                reply: Reply::new(operation, waker),
                value: std::marker::PhantomData,
            });
            ColorCell::post_request(colored.cell_ptr(), request.cast());
        }
        request
    }

    unsafe fn run(node: NonNull<Node>, worker: &Worker) -> After {
        let this = node.cast::<Self>();
        let cell = worker.color();
        // SAFETY: `color_gone` has not been called, so the request is alive; it runs once, here.
        let Some(operation) = (unsafe { this.as_ref().reply.claim() }) else {
            // SAFETY: the color does not use the request again.
            unsafe { Self::color_gone(this) };
            return After::Continue;
        };
        // SAFETY: the request was posted to the color of an `Inner<T>`.
        let value = unsafe { Inner::value(cell.cast::<Inner<T>>()) };
        // SAFETY: the event runs with the token of the color.
        let shares = O::READS && unsafe { cell.as_ref().try_share() };
        // Without the token the turn ends here, so an unwinding event leaves no color to queue.
        let part = shares.then(|| {
            worker.end_turn();
            // SAFETY: `try_share` turned the token into the share that this value takes.
            unsafe { Part::new(cell) }
        });
        // SAFETY: this call holds the claim and the color: its token, or a reader's share for an
        // operation that only reads.
        unsafe {
            let reply = &this.as_ref().reply;
            reply.finish(operation, |operation| operation.call(value));
            Self::color_gone(this);
        }
        match part {
            None => After::Continue,
            Some(_ends_here) => After::Parked,
        }
    }

    unsafe fn drop(node: NonNull<Node>, _reason: DropReason) -> After {
        let this = node.cast::<Self>();
        // SAFETY: as in `run`.
        unsafe {
            this.as_ref().reply.shut_down();
            Self::color_gone(this);
        }
        After::Continue
    }

    unsafe fn is_cancelled(node: NonNull<Node>) -> bool {
        // SAFETY: the node is queued, so `color_gone` has not been called and the request is alive.
        unsafe { node.cast::<Self>().as_ref() }.reply.is_claimed()
    }

    unsafe fn leave(node: NonNull<Node>) {
        // SAFETY: the node was in the color's queue, so this is the color's side.
        unsafe { Self::color_gone(node.cast()) }
    }

    unsafe fn color_gone(this: NonNull<Self>) {
        // SAFETY: the caller is the color's side and does not use the request afterwards.
        if unsafe { this.as_ref().reply.color_gone() } {
            // SAFETY: both sides are gone.
            unsafe { Self::free(this) }
        }
    }
}

impl<T, O, R> Request<T, O, R> {
    #[cold]
    unsafe fn future_gone(this: NonNull<Self>) {
        // SAFETY: the caller is the future and does not use the request afterwards.
        if unsafe { this.as_ref().reply.future_gone() } {
            // SAFETY: both sides are gone.
            unsafe { Self::free(this) }
        }
    }

    /// Frees the request. No user code that may panic runs here: closure and outcome are gone, and
    /// dropping the waker catches panics.
    unsafe fn free(this: NonNull<Self>) {
        let _free = Allocation(this);
        // SAFETY: the caller holds the last reference to the request.
        unsafe { std::ptr::drop_in_place(this.as_ptr()) }
    }
}

/// The future of [`Colored::with`], [`Colored::read`] and [`Colored::write`].
#[must_use = "a request is made when it is first polled"]
#[derive(Debug)]
pub struct With<'a, T, O, R> {
    colored: &'a Colored<T>,
    state: State<O, R, NonNull<Request<T, O, R>>>,
}

/// Progress of a request's future.
#[derive(Debug)]
pub(super) enum State<O, R, Q> {
    /// Not polled yet.
    New(O),
    /// The request is queued in its color, or has been answered.
    Queued(Q),
    /// The operation ran immediately and used up the poll's budget; the result waits for the next
    /// poll.
    Done(R),
    /// The result was returned, or the operation panicked.
    Over,
}

impl<O, R, Q> State<O, R, Q> {
    /// Makes the request, in the current span.
    ///
    /// Cloning a foreign waker may panic, and so may a subscriber. The operation is then kept, and
    /// the future is in the same state as before its first poll.
    pub(super) fn queue(
        &mut self,
        operation: O,
        context: &Context<'_>,
        queue: impl FnOnce(InSpan<O>, TinyWaker) -> Q,
    ) {
        *self = State::New(operation);
        let waker = TinyWaker::from_waker(context.waker());
        let span = RequestSpan::current();
        let State::New(closure) = std::mem::replace(self, State::Over) else {
            unreachable!("it was just put there");
        };
        *self = State::Queued(queue(InSpan { closure, span }, waker));
    }
}

// SAFETY: the rules of `Reply` govern the shared request; operation, span and outcome are `Send`.
//
// This implementation has no further bounds, and the type has none. Inside an `async` block the
// compiler forgets which lifetimes are `'static`, so it could not prove a bound that needs it.
unsafe impl<T: Send, O: Send, R: Send> Send for With<'_, T, O, R> {}

impl<T, O, R> Unpin for With<'_, T, O, R> {}

impl<'a, T, O, R> With<'a, T, O, R>
where
    T: Send + 'static,
    O: Operation<T, R> + Send + 'static,
    R: Send + 'static,
{
    pub(super) fn new(colored: &'a Colored<T>, operation: O) -> Self {
        Self {
            colored,
            state: State::New(operation),
        }
    }

    /// Finishes a first poll that did not complete, because the color is in use or the budget is
    /// used up.
    ///
    /// A request that has not run is queued now, so nothing posted after this poll gets ahead of
    /// it. An operation that used up the budget has run already, and its result waits for the next
    /// poll. Queueing a request instead would make the color look busy to everyone else.
    #[cold]
    fn wait(&mut self, tried: Result<R, O>, context: &Context<'_>) -> Poll<R> {
        match tried {
            Ok(result) => {
                self.state = State::Done(result);
                again(context);
            }
            Err(operation) => {
                let colored = self.colored;
                self.state.queue(operation, context, |operation, waker| {
                    Request::queue(colored, operation, waker)
                });
            }
        }
        Poll::Pending
    }

    #[cold]
    fn poll_again(&mut self, context: &Context<'_>) -> Poll<R> {
        let State::Queued(request) = self.state else {
            let State::Done(result) = std::mem::replace(&mut self.state, State::Over) else {
                panic!("`With` was polled after completion");
            };
            return Poll::Ready(result);
        };
        // SAFETY: the future still exists, so the request is alive.
        match unsafe { request.as_ref() }.reply.poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(outcome) => {
                self.state = State::Over;
                // SAFETY: the future has the outcome and does not use the request again.
                unsafe { Request::future_gone(request) };
                Poll::Ready(outcome.get())
            }
        }
    }
}

impl<T, O, R> Future for With<'_, T, O, R>
where
    T: Send + 'static,
    O: Operation<T, R> + Send + 'static,
    R: Send + 'static,
{
    type Output = R;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        if !matches!(self.state, State::New(_)) {
            return self.poll_again(context);
        }
        let State::New(operation) = std::mem::replace(&mut self.state, State::Over) else {
            unreachable!("it was new");
        };
        let colored = self.colored;
        let (tried, budget) =
            Worker::with(|worker| match worker.map_or(Budget::Left, Worker::spend) {
                Budget::Spent => (Err(operation), Budget::Spent),
                budget => (colored.try_now(worker, operation), budget),
            });
        match tried {
            Ok(result) if budget == Budget::Left => Poll::Ready(result),
            tried => self.wait(tried, context),
        }
    }
}

impl<T, O, R> Drop for With<'_, T, O, R> {
    #[inline]
    fn drop(&mut self) {
        if let State::Queued(request) = self.state {
            // SAFETY: the future does not use the request again; the value keeps its cell alive.
            unsafe {
                let cancelled = request.as_ref().reply.cancel();
                Request::future_gone(request);
                if cancelled {
                    ColorCell::count_cancelled(self.colored.cell_ptr());
                }
            }
        }
    }
}
