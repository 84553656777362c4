//! Requests to several colored values at once: they enter all colors, or queue a ticket in each.

use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::ticket::{COLORS_MAX, Cells, Request, shared_of};
use super::value::{Colored, Inner};
use super::with::State;
use crate::color::cell::ColorCell;
use crate::color::held::Outside;
use crate::thread::again;
use crate::worker::{Budget, Worker};

/// A set of values on which one closure can run: a tuple of two to four references to [`Colored`].
#[allow(private_bounds)]
pub trait AllColored<F, R>: Sealed + Copy {
    /// The number of values.
    #[doc(hidden)]
    const COUNT: usize;
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn cells(self) -> Cells;
    /// Runs the closure.
    ///
    /// # Safety
    /// The argument `cells` must be the result of `Self::cells` for a value of this type, and the
    /// caller must hold the tokens of these cells.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    unsafe fn call(closure: F, cells: &Cells) -> R;
}

trait Sealed {}

macro_rules! all_colored {
    ($($value:ident $index:tt),+) => {
        impl<$($value),+> Sealed for ($(&Colored<$value>,)+) {}

        impl<Func, Res, $($value: Send + 'static),+> AllColored<Func, Res> for ($(&Colored<$value>,)+)
        where
            Func: FnOnce($(&mut $value),+) -> Res,
        {
            const COUNT: usize = [$($index),+].len();

            #[inline]
            #[allow(private_interfaces)]
            fn cells(self) -> Cells {
                let mut cells = [None; COLORS_MAX];
                $(cells[$index] = Some(self.$index.cell_ptr());)+
                cells
            }

            #[inline]
            #[allow(private_interfaces)]
            unsafe fn call(closure: Func, cells: &Cells) -> Res {
                closure($({
                    let cell = cells[$index].expect("as many cells as values");
                    // SAFETY: the cell heads an `Inner` of this type, and the caller holds its
                    // token. The cells differ, so the references do not alias.
                    unsafe { Inner::value(cell.cast::<Inner<$value>>()).as_mut() }
                }),+)
            }
        }
    };
}

all_colored!(A 0, B 1);
all_colored!(A 0, B 1, C 2);
all_colored!(A 0, B 1, C 2, D 3);

/// Runs a closure on several colored values once all of their colors are free.
///
/// If all colors are idle, the closure runs immediately. Otherwise, the request enters the queues
/// of all its colors in one step. Therefore, requests for several colors cannot deadlock, and no
/// request overtakes another. The closure runs in the `tracing` span that was current when the
/// request was first polled.
///
/// # Cancellation
/// Cancellation works as in [`Colored::with`]. A cancelled request leaves each queue when it
/// reaches the front of that queue, or earlier.
///
/// # Panics
/// Panics if two of the values have the same color, or if the values belong to different runtimes.
/// Also panics in the same cases as [`Colored::with`].
///
/// # Examples
/// ```
/// # use tussah_core as tussah;
/// use tussah::{Colored, Runtime, with_all};
/// let runtime = Runtime::builder().workers(2).build()?;
/// let (from, to) = (Colored::new_in(&runtime, 10), Colored::new_in(&runtime, 0));
/// runtime.block_on(with_all((&from, &to), |from, to| {
///     *from -= 3;
///     *to += 3;
/// }));
/// assert_eq!(runtime.block_on(to.with(|to| *to)), 3);
/// # std::io::Result::Ok(())
/// ```
#[inline]
#[track_caller]
pub fn with_all<V, F, R>(values: V, closure: F) -> WithAll<V, F, R>
where
    V: AllColored<F, R>,
    F: Send + 'static,
    R: Send + 'static,
{
    let cells = values.cells();
    for (index, cell) in cells.iter().enumerate() {
        let twice = cell.is_some() && cells[..index].contains(cell);
        assert!(
            !twice,
            "with_all was given the same color twice: the closure would get two references to one value"
        );
    }
    let shared = shared_of(&cells);
    // SAFETY: the values keep the cells alive.
    let one_runtime = cells
        .iter()
        .flatten()
        .all(|cell| std::ptr::eq(unsafe { cell.as_ref() }.shared(), shared));
    assert!(
        one_runtime,
        "with_all was given values of different runtimes"
    );
    WithAll {
        values,
        state: State::New(closure),
    }
}

/// The future of [`with_all`].
#[must_use = "a request is made when it is first polled"]
#[derive(Debug)]
pub struct WithAll<V, F, R> {
    values: V,
    state: State<F, R, NonNull<Request<F, R>>>,
}

// SAFETY: the rules of `Reply` govern the shared request; values, closure, span and outcome are
// `Send`. See `With` for the bounds.
unsafe impl<V: Send, F: Send, R: Send> Send for WithAll<V, F, R> {}

impl<V, F, R> Unpin for WithAll<V, F, R> {}

/// The entries made so far; dropping it leaves their colors.
struct Entered<'a> {
    cells: &'a Cells,
    count: usize,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        for cell in self.cells.iter().take(self.count).flatten() {
            // SAFETY: the entry holds the token, and the future's values keep the cell alive. None
            // of the colors was the innermost one, so nothing was appended.
            unsafe { ColorCell::exit(*cell, false) }
        }
    }
}

/// Enters all the colors and runs the closure, or gives it back after undoing all entries.
#[inline]
fn try_now<V: AllColored<F, R>, F, R>(
    worker: Option<&Worker>,
    cells: &Cells,
    closure: F,
) -> Result<R, F> {
    let _outside = Outside::enter(worker);
    let mut entered = Entered { cells, count: 0 };
    while entered.count < V::COUNT {
        let cell = cells[entered.count].expect("as many cells as values");
        // SAFETY: the future's values keep the cells alive.
        if !unsafe { cell.as_ref() }.try_enter() {
            return Err(closure);
        }
        entered.count += 1;
    }
    // With several colors none is the innermost, so the closure's posts to them take the path from
    // outside.
    let _color = worker.map(Worker::enter_no_color);
    // SAFETY: this OS thread holds all the tokens.
    Ok(unsafe { V::call(closure, cells) })
}

impl<V, F, R> Future for WithAll<V, F, R>
where
    V: AllColored<F, R>,
    F: Send + 'static,
    R: Send + 'static,
{
    type Output = R;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        if !matches!(self.state, State::New(_)) {
            return self.poll_again(context);
        }
        let State::New(closure) = std::mem::replace(&mut self.state, State::Over) else {
            unreachable!("it was new");
        };
        let cells = self.values.cells();
        let (tried, budget) =
            Worker::with(|worker| match worker.map_or(Budget::Left, Worker::spend) {
                Budget::Spent => (Err(closure), Budget::Spent),
                budget => (try_now::<V, F, R>(worker, &cells, closure), budget),
            });
        match tried {
            Ok(result) if budget == Budget::Left => Poll::Ready(result),
            tried => self.wait(cells, tried, context),
        }
    }
}

impl<V, F, R> WithAll<V, F, R>
where
    V: AllColored<F, R>,
    F: Send + 'static,
    R: Send + 'static,
{
    /// Queues the request or defers its result, as `With::wait` does for one color.
    #[cold]
    fn wait(&mut self, cells: Cells, tried: Result<R, F>, context: &Context<'_>) -> Poll<R> {
        match tried {
            Ok(result) => {
                self.state = State::Done(result);
                again(context);
            }
            Err(closure) => self.state.queue(closure, context, |closure, waker| {
                Request::queue(cells, V::call, closure, waker)
            }),
        }
        Poll::Pending
    }

    #[cold]
    fn poll_again(&mut self, context: &Context<'_>) -> Poll<R> {
        let State::Queued(request) = self.state else {
            let State::Done(result) = std::mem::replace(&mut self.state, State::Over) else {
                panic!("`WithAll` was polled after completion");
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

impl<V, F, R> Drop for WithAll<V, F, R> {
    #[inline]
    fn drop(&mut self) {
        if let State::Queued(request) = self.state {
            // SAFETY: the future does not use the request again, and its values keep the cells
            // alive.
            unsafe { Request::cancel(request) }
        }
    }
}
