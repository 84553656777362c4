//! A value and its color.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;

use super::with::{Operation, Read, With, Write};
use crate::color::cell::ColorCell;
use crate::color::held::Outside;
use crate::color::{ColorName, ColorRef};
use crate::event::Body;
use crate::loom::atomic::Ordering;
use crate::runtime::{Handle, PostError, Shared};
use crate::worker::{InColor, Worker};

/// A value that only events of one color touch: shared state without a lock to hold.
///
/// Each `Colored` is a color of its own, outside of the 64 bits of [`Color`](crate::Color). Clones refer to the same
/// value. The value is dropped as the last event of its color, after the last clone is gone; wherever that happens.
///
/// Closures are sent to the value, not references to the value out of it:
///
/// ```compile_fail
/// # use tussah_core as tussah;
/// # let runtime = tussah::Runtime::builder().workers(1).build().unwrap();
/// let value = tussah::Colored::new_in(&runtime, String::new());
/// let leaked: &mut String = runtime.block_on(value.with(|text| text));
/// ```
///
/// # Examples
/// ```
/// # use tussah_core as tussah;
/// use tussah::{Colored, Runtime};
/// let runtime = Runtime::builder().workers(2).build()?;
/// let hits = Colored::new_in(&runtime, 0u64);
/// let total = runtime.block_on(hits.with(|hits| { *hits += 1; *hits }));
/// assert_eq!(total, 1);
/// # std::io::Result::Ok(())
/// ```
pub struct Colored<T> {
    inner: NonNull<Inner<T>>,
}

/// The cell comes first: a pointer to it is a pointer to the whole. Aligned to a cache line: see the order of its fields.
#[repr(C, align(64))]
pub(super) struct Inner<T> {
    cell: ColorCell,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached under its color only, one event at a time, possibly on another OS thread.
unsafe impl<T: Send> Send for Colored<T> {}
// SAFETY: as above; shared access by `read` asks for `T: Sync` there.
unsafe impl<T: Send> Sync for Colored<T> {}

impl<T: Send + 'static> Colored<T> {
    /// A value in the current runtime.
    ///
    /// # Panics
    /// Outside of a runtime; use [`Colored::new_in`] there.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Handle::with_current(|handle| Self::new_in(handle, value))
    }

    /// A value in the given runtime.
    pub fn new_in(handle: &Handle, value: T) -> Self {
        let number = handle.shared.values_made.fetch_add(1, Ordering::Relaxed);
        let name = ColorName::Value {
            type_name: std::any::type_name::<T>(),
            number,
        };
        let inner = Box::new(Inner {
            cell: ColorCell::new(&handle.shared, name, destroy::<T>),
            value: UnsafeCell::new(value),
        });
        // The value's own reference to the runtime, whose pointer the cell has; `destroy` gives it back.
        std::mem::forget(handle.shared.clone());
        Self {
            inner: NonNull::from(Box::leak(inner)),
        }
    }

    /// Runs a closure on the value and gives its result.
    ///
    /// If nobody has the color, the closure runs at once, on this OS thread and without allocation: the price of an
    /// uncontended lock. Else it is queued as an event of the color, runs where the color is, and the result comes back:
    /// nobody blocks. Requests run in the order in which they were made (when first polled), and closures in the span of `tracing`
    /// that was current then, queued or not.
    ///
    /// # Cancellation
    /// Dropping the future cancels a closure that is still queued, and discards the result of one that is running or has
    /// run; it never blocks. Cancelled requests leave the queue in batches: a color keeps at most three times as many of them as the
    /// most other events that have waited in it at once, or three times 64. `with` is exempt from the color's depth limit: a
    /// thread waits for each, so threads bound them.
    ///
    /// # Panics
    /// A panic of the closure is raised again in the caller; the value stays as the closure left it, and nothing is
    /// poisoned. Awaiting a request that the runtime's shutdown dropped panics.
    ///
    /// The closure holds the color, and so must not wait for others: inside of it [`block_on`](Handle::block_on) and the other calls of
    /// this library that block their OS thread panic, on whichever OS thread it runs. Waiting by other means, such as a lock of the standard library or another
    /// executor, is not noticed, and can deadlock.
    pub fn with<F, R>(&self, f: F) -> With<'_, T, Write<F>, R>
    where
        F: FnOnce(&mut T) -> R + Send + 'static,
        R: Send + 'static,
    {
        With::new(self, Write(f))
    }

    /// The same as [`with`](Colored::with): the counterpart of [`read`](Colored::read).
    pub fn write<F, R>(&self, f: F) -> With<'_, T, Write<F>, R>
    where
        F: FnOnce(&mut T) -> R + Send + 'static,
        R: Send + 'static,
    {
        With::new(self, Write(f))
    }

    /// Runs a closure that only reads the value, at the same time as others that do.
    ///
    /// It enters at once if nobody writes and no writer is queued: a reader never passes a queued writer. Otherwise as for
    /// [`with`](Colored::with).
    pub fn read<F, R>(&self, f: F) -> With<'_, T, Read<F>, R>
    where
        T: Sync,
        F: FnOnce(&T) -> R + Send + 'static,
        R: Send + 'static,
    {
        With::new(self, Read(f))
    }

    /// Runs the closure if nobody has the color.
    ///
    /// # Errors
    /// Gives the closure back if somebody has it.
    ///
    /// # Panics
    /// If the closure panics.
    #[inline]
    pub fn try_with<F: FnOnce(&mut T) -> R, R>(&self, f: F) -> Result<R, F> {
        Worker::with(|worker| self.try_now(worker, Write(f))).map_err(|operation| operation.0)
    }

    /// Posts a closure on the value, whose result nobody waits for.
    ///
    /// # Errors
    /// Gives the closure back if the color is full or the runtime is shut down.
    #[inline(always)]
    #[track_caller]
    pub fn post<F: FnOnce(&mut T) + Send + 'static>(&self, f: F) -> Result<(), PostError<F>> {
        let location = Location::caller();
        let cell = self.cell();
        if !cell.shared().is_open() {
            return Err(PostError::shut_down(f));
        }
        // SAFETY: we have a handle.
        match unsafe { ColorCell::post_body(self.cell_ptr(), location, OnValue(f, PhantomData)) } {
            Ok(()) => Ok(()),
            Err(full) => Err(PostError::full(full.body.0, full.depth_max)),
        }
    }

    /// The color of the value: events posted in it alternate with those of the value.
    pub fn color(&self) -> ColorRef {
        self.cell().retain();
        // SAFETY: the handle that was added becomes the reference's.
        unsafe { ColorRef::from_cell(self.cell_ptr(), self.shared()) }
    }
}

impl<T> Colored<T> {
    pub(super) fn cell(&self) -> &ColorCell {
        // SAFETY: we have a handle.
        unsafe { &self.inner.as_ref().cell }
    }

    /// Runs the operation if the color lets it.
    #[inline]
    pub(super) fn try_now<O, R>(&self, worker: Option<&Worker>, operation: O) -> Result<R, O>
    where
        O: Operation<T, R>,
    {
        let (cell, reads) = (self.cell_ptr(), O::READS);
        let entered = if reads {
            self.cell().try_read()
        } else {
            self.cell().try_enter()
        };
        if !entered {
            return Err(operation);
        }
        let color = worker.map(|worker| {
            if reads {
                worker.enter_no_color()
            } else {
                worker.enter_color(cell)
            }
        });
        let _outside = Outside::enter(worker);
        let _inside = Inside { cell, color, reads };
        // SAFETY: we have the token of the color, or a reader's part in it for an operation that only reads; we have a
        // handle.
        Ok(unsafe { operation.call(Inner::value(self.inner)) })
    }

    fn shared(&self) -> Arc<Shared> {
        let shared = self.cell().shared_ptr().as_ptr();
        // SAFETY: the pointer came from an `Arc`; the value has a reference, and outlives our handle.
        unsafe {
            Arc::increment_strong_count(shared);
            Arc::from_raw(shared)
        }
    }

    #[inline]
    pub(super) fn cell_ptr(&self) -> NonNull<ColorCell> {
        self.inner.cast()
    }
}

impl<T> Inner<T> {
    /// Where the value is. What may be done to it follows from what part of the color the caller has.
    ///
    /// # Safety
    /// The caller has the token of the color, or reads.
    #[inline]
    pub(super) unsafe fn value(inner: NonNull<Self>) -> NonNull<T> {
        // SAFETY: the token keeps the value alive.
        unsafe { NonNull::new_unchecked(inner.as_ref().value.get()) }
    }
}

/// A closure that is posted to the color of an `Inner<T>`.
struct OnValue<T, F>(F, PhantomData<fn(&mut T)>);

impl<T: Send + 'static, F: FnOnce(&mut T) + Send + 'static> Body for OnValue<T, F> {
    #[inline]
    fn call(self, worker: &Worker) {
        // SAFETY: the event runs in the color that it was posted to, with its token.
        (self.0)(unsafe { Inner::value(worker.color().cast::<Inner<T>>()).as_mut() });
    }
}

/// An inline entry: leaves the color when dropped, unwinding included.
struct Inside<'a> {
    cell: NonNull<ColorCell>,
    color: Option<InColor<'a>>,
    reads: bool,
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        // The worker forgets the color before others can have it.
        let appended = self.color.take().is_some_and(|color| color.appended());
        // SAFETY: the entry has the token, or a part, and the value's handle outlives it.
        unsafe {
            if self.reads {
                ColorCell::exit_read(self.cell);
            } else {
                ColorCell::exit(self.cell, appended);
            }
        }
    }
}

unsafe fn destroy<T>(cell: NonNull<ColorCell>) {
    // SAFETY: the cell heads an `Inner<T>` that `new_in` made, and nobody refers to it any more; with it goes its reference
    // to the runtime, which is given back last.
    let (_shared, inner) = unsafe {
        let shared = Arc::from_raw(cell.as_ref().shared_ptr().as_ptr());
        (shared, Box::from_raw(cell.cast::<Inner<T>>().as_ptr()))
    };
    // A panic in a user's destructor stays in this last event of the color.
    crate::quietly::quietly(|| drop(inner));
}

impl<T> Clone for Colored<T> {
    fn clone(&self) -> Self {
        self.cell().retain();
        Self { inner: self.inner }
    }
}

impl<T> Drop for Colored<T> {
    fn drop(&mut self) {
        // SAFETY: our handle ends here.
        unsafe { ColorCell::release(self.cell_ptr()) };
    }
}

impl<T> fmt::Debug for Colored<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Colored").finish_non_exhaustive()
    }
}
