//! A shared value and its color.

use std::alloc::Layout;
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
use crate::slab::Kind;
use crate::worker::{InColor, Worker};

/// A shared value that only events of one color can access, without a lock.
///
/// Each `Colored` has its own color, which differs from every [`Color`](crate::Color). Clones refer
/// to the same value. The value is dropped once all clones of the `Colored` and all references to
/// its color have been dropped: immediately if the color is idle, and otherwise after the color's
/// last event, on the OS thread that ran this event.
///
/// Access the value by sending closures to it; no reference to the value can escape from a closure:
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

/// The cell is the first field, so a pointer to the cell is a pointer to the whole allocation.
/// Cache-line alignment suits the cell's field order.
#[repr(C, align(64))]
pub(super) struct Inner<T> {
    cell: ColorCell,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached under its color, one event at a time, possibly on another OS
// thread.
unsafe impl<T: Send> Send for Colored<T> {}
// SAFETY: as above; `read`, which shares access, requires `T: Sync`.
unsafe impl<T: Send> Sync for Colored<T> {}

impl<T: Send + 'static> Colored<T> {
    /// Creates a colored value in the current runtime.
    ///
    /// # Panics
    /// Panics if called outside a runtime; use [`Colored::new_in`] there.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Handle::with_current(|handle| Self::new_in(handle, value))
    }

    /// Creates a colored value in the given runtime.
    pub fn new_in(handle: &Handle, value: T) -> Self {
        let number = handle.shared.values_made.fetch_add(1, Ordering::Relaxed);
        let name = ColorName::Value {
            type_name: std::any::type_name::<T>(),
            number,
        };
        let inner = Inner {
            cell: ColorCell::new(&handle.shared, name, destroy::<T>),
            value: UnsafeCell::new(value),
        };
        let layout = Layout::new::<Inner<T>>();
        let memory = handle.shared.alloc(Kind::Event, layout).cast();
        // SAFETY: the memory was allocated for it.
        unsafe { memory.write(inner) };
        // This is the value's own counted reference to the runtime, kept as the cell's pointer;
        // `destroy` releases it.
        std::mem::forget(handle.shared.clone());
        Self { inner: memory }
    }

    /// Runs a closure on the value and returns its result.
    ///
    /// If the color is idle, the closure runs immediately, on this OS thread and without
    /// allocation. The call then costs about as much as an uncontended lock. Otherwise the closure
    /// is queued as an event of the color. The future completes with the closure's result. No OS
    /// thread blocks.
    ///
    /// Requests run in the order in which they were first polled. Each closure runs in the
    /// `tracing` span that was current when its future was first polled, even if the closure was
    /// queued.
    ///
    /// Requests do not count against the color's depth limit: each request belongs to one pending
    /// future, so the number of these futures bounds the number of requests.
    ///
    /// # Cancellation
    /// Dropping the future cancels the closure if it is still queued, and otherwise discards its
    /// result. Dropping the future never blocks. Cancelled requests leave the queue in batches. A
    /// color holds at most 192 cancelled requests or three times the peak number of its other
    /// queued events, whichever is larger.
    ///
    /// # Panics
    /// If the closure panics, the panic resumes in the caller. The value stays as the closure left
    /// it, and nothing is poisoned. The future also panics if the runtime's shutdown dropped the
    /// request.
    ///
    /// The closure holds the color, so it must not wait for other events. Inside the closure,
    /// [`block_on`](Handle::block_on) and other blocking calls of this library panic, on any OS
    /// thread. Other ways of waiting, such as a lock of the standard library or another executor,
    /// are not detected and can deadlock.
    pub fn with<F, R>(&self, f: F) -> With<'_, T, Write<F>, R>
    where
        F: FnOnce(&mut T) -> R + Send + 'static,
        R: Send + 'static,
    {
        With::new(self, Write(f))
    }

    /// Runs a closure on the value. This is an alias for [`with`](Colored::with) and the
    /// counterpart of [`read`](Colored::read).
    pub fn write<F, R>(&self, f: F) -> With<'_, T, Write<F>, R>
    where
        F: FnOnce(&mut T) -> R + Send + 'static,
        R: Send + 'static,
    {
        With::new(self, Write(f))
    }

    /// Runs a closure that only reads the value, concurrently with other readers.
    ///
    /// If no writer is running and no events are queued, the closure runs immediately. Otherwise
    /// the closure is queued, as in [`with`](Colored::with). A reader therefore never overtakes a
    /// queued writer.
    pub fn read<F, R>(&self, f: F) -> With<'_, T, Read<F>, R>
    where
        T: Sync,
        F: FnOnce(&T) -> R + Send + 'static,
        R: Send + 'static,
    {
        With::new(self, Read(f))
    }

    /// Runs a closure on the value if its color is idle.
    ///
    /// # Errors
    /// Returns the closure if the color is in use.
    ///
    /// # Panics
    /// Panics if the closure panics.
    #[inline]
    pub fn try_with<F: FnOnce(&mut T) -> R, R>(&self, f: F) -> Result<R, F> {
        Worker::with(|worker| self.try_now(worker, Write(f))).map_err(|operation| operation.0)
    }

    /// Posts a closure to the value without waiting for a result.
    ///
    /// # Errors
    /// Returns the closure if the color is full or the runtime has shut down.
    #[inline(always)]
    #[track_caller]
    pub fn post<F: FnOnce(&mut T) + Send + 'static>(&self, f: F) -> Result<(), PostError<F>> {
        let location = Location::caller();
        let cell = self.cell();
        if !cell.shared().is_open() {
            return Err(PostError::shut_down(f));
        }
        // SAFETY: this value owns a handle.
        match unsafe { ColorCell::post_body(self.cell_ptr(), location, OnValue(f, PhantomData)) } {
            Ok(()) => Ok(()),
            Err(full) => Err(PostError::full(full.body.0, full.depth_max)),
        }
    }

    /// Returns the value's color. Events posted to this color never run at the same time as
    /// closures on the value.
    pub fn color(&self) -> ColorRef {
        self.cell().retain();
        // SAFETY: the reference takes over the new handle.
        unsafe { ColorRef::from_cell(self.cell_ptr(), self.shared()) }
    }
}

impl<T> Colored<T> {
    pub(super) fn cell(&self) -> &ColorCell {
        // SAFETY: this value owns a handle.
        unsafe { &self.inner.as_ref().cell }
    }

    /// Runs the operation immediately if the color admits it.
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
        // SAFETY: this call holds the color's token, or a reader's share for an operation that only
        // reads, and this value owns a handle.
        Ok(unsafe { operation.call(Inner::value(self.inner)) })
    }

    fn shared(&self) -> Arc<Shared> {
        let shared = self.cell().shared_ptr().as_ptr();
        // SAFETY: the pointer came from an `Arc`; the value owns a counted reference and outlives
        // this handle.
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
    /// Returns a pointer to the value. The caller's share of the color decides how it may access
    /// the value.
    ///
    /// # Safety
    /// The caller must hold the color's token or a reader's share.
    #[inline]
    pub(super) unsafe fn value(inner: NonNull<Self>) -> NonNull<T> {
        // SAFETY: the caller's share of the color keeps the value alive.
        unsafe { NonNull::new_unchecked(inner.as_ref().value.get()) }
    }
}

/// A closure posted to the color of an `Inner<T>`.
struct OnValue<T, F>(F, PhantomData<fn(&mut T)>);

impl<T: Send + 'static, F: FnOnce(&mut T) + Send + 'static> Body for OnValue<T, F> {
    #[inline]
    fn call(self, worker: &Worker) {
        // SAFETY: the event runs with the token of the color that it was posted to.
        (self.0)(unsafe { Inner::value(worker.color().cast::<Inner<T>>()).as_mut() });
    }
}

/// An inline entry; dropping it, also by unwinding, leaves the color.
struct Inside<'a> {
    cell: NonNull<ColorCell>,
    color: Option<InColor<'a>>,
    reads: bool,
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        // The worker forgets the color before others can take it.
        let appended = self.color.take().is_some_and(|color| color.appended());
        // SAFETY: the entry holds the token or a reader's share, and the value's handle outlives
        // it.
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
    // SAFETY: the cell heads an `Inner<T>` made by `new_in`, and no handle to it is left. The
    // reference to the runtime is taken out with it and is released last.
    unsafe {
        let _shared = Arc::from_raw(cell.as_ref().shared_ptr().as_ptr());
        let inner = cell.cast::<Inner<T>>();
        // A panic in a user's destructor stays in this last event of the color.
        crate::quietly::quietly(|| inner.drop_in_place());
        Shared::free(Kind::Event, inner.cast(), Layout::new::<Inner<T>>());
    }
}

impl<T> Clone for Colored<T> {
    fn clone(&self) -> Self {
        self.cell().retain();
        Self { inner: self.inner }
    }
}

impl<T> Drop for Colored<T> {
    fn drop(&mut self) {
        // SAFETY: this gives up the value's own handle.
        unsafe { ColorCell::release(self.cell_ptr()) };
    }
}

impl<T> fmt::Debug for Colored<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Colored").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Runtime;

    #[test]
    fn a_value_takes_a_slot_of_two_cache_lines() {
        const VALUES: usize = if cfg!(miri) { 600 } else { 10_000 };
        let runtime = Runtime::builder().workers(1).build().expect("it starts");
        let slab = &runtime.handle().shared.slab;
        let before = slab.stats().bytes;
        let make = |number: usize| Colored::new_in(&runtime, number as u64);
        let values: Vec<_> = (0..VALUES).map(make).collect();
        let bytes = slab.stats().bytes - before;
        assert!(bytes <= VALUES * 130 + 65_536, "{bytes}");
        for (number, value) in values.iter().enumerate() {
            let found = value.try_with(|value| *value).ok();
            assert_eq!(found, Some(number as u64));
            assert!(value.inner.is_aligned());
        }
        drop(values);
        let kept = slab.stats().bytes - before;
        assert!(kept <= 2 * 65_536, "{kept}");
    }
}
