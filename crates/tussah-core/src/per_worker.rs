//! One value for each worker of a runtime; each worker accesses its own value without a lock.
//!
//! # Why it is sound
//! Only the OS thread that is worker *i* of the runtime accesses the value at place *i*:
//!
//! - [`PerWorker::get`] uses the index of the worker that it runs on, after it has checked that
//!   this worker belongs to the runtime of the values. The `Handle` here keeps that runtime alive,
//!   so no other runtime has its address.
//! - No two OS threads have the same index at the same time. A place is filled again only when its
//!   previous OS thread has been joined, which also orders their accesses (`shutdown.rs`,
//!   `set_workers`).
//! - On one OS thread, `used` is set while a guard exists, so there is no second guard. A leaked
//!   guard leaves it set, and the value is not accessed again. A guard cannot be sent to another OS
//!   thread.
//!
//! The values are dropped with the `PerWorker`, which is exclusive then. So they have to be `Send`,
//! but need not be `Sync`.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::runtime::Handle;
use crate::worker::Worker;

/// One value for each worker of a runtime; each worker accesses its own value without a lock.
///
/// # Examples
/// ```
/// use tussah_core::{Handle, PerWorker, Runtime};
///
/// let runtime = Runtime::builder().workers(1).build()?;
/// let counts = PerWorker::new(runtime.handle(), || 0);
/// assert!(counts.get().is_none()); // not a worker
/// let count = runtime.block_on_spawned(async move {
///     *counts.get().expect("a worker") += 1;
///     *counts.get().expect("a worker")
/// });
/// assert_eq!(count, 1);
/// # std::io::Result::Ok(())
/// ```
pub struct PerWorker<T> {
    places: Box<[Place<T>]>,
    runtime: Handle,
}

/// Aligned to two cache lines, because processors fetch them in pairs.
#[repr(align(128))]
struct Place<T> {
    used: Cell<bool>,
    value: UnsafeCell<T>,
}

// SAFETY: a shared `PerWorker` gives each value to one OS thread only, as the module's
// documentation proves. The value may be dropped on another OS thread, since it is `Send`. Test:
// `each_worker_has_its_own`, under Miri.
unsafe impl<T: Send> Sync for PerWorker<T> {}

impl<T> PerWorker<T> {
    /// Creates a value for each current worker of the runtime. Workers that are added later have no
    /// value.
    pub fn new(runtime: &Handle, mut make: impl FnMut() -> T) -> Self {
        let place = |_| Place {
            used: Cell::new(false),
            value: UnsafeCell::new(make()),
        };
        Self {
            places: (0..runtime.workers()).map(place).collect(),
            runtime: runtime.clone(),
        }
    }

    /// Returns the value of the worker on which the caller runs.
    ///
    /// Returns `None` outside the runtime's workers, on a worker that was added later, and while
    /// the caller already holds a guard for the value.
    #[inline]
    pub fn get(&self) -> Option<PerWorkerGuard<'_, T>> {
        // SAFETY: the reference ends before this function returns.
        let worker = unsafe { Worker::here() }?;
        if !worker.is_of(&self.runtime.shared) {
            return None;
        }
        let place = self.places.get(worker.index)?;
        if place.used.replace(true) {
            return None;
        }
        Some(PerWorkerGuard { place })
    }
}

/// A guard that gives access to the current worker's value. The guard cannot be sent to another OS
/// thread.
pub struct PerWorkerGuard<'a, T> {
    place: &'a Place<T>,
}

impl<T> Deref for PerWorkerGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: as in `deref_mut`.
        unsafe { &*self.place.value.get() }
    }
}

impl<T> DerefMut for PerWorkerGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: only the OS thread that made the guard uses this place. The guard cannot leave
        // that OS thread (`Cell` is not `Sync`, so the reference to it is not `Send`), and `used`
        // shows that there is no other guard. Test:
        // `the_holder_of_a_value_gets_no_second_reference`.
        unsafe { &mut *self.place.value.get() }
    }
}

impl<T> Drop for PerWorkerGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.place.used.set(false);
    }
}

impl<T> fmt::Debug for PerWorker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PerWorker")
            .field(&self.places.len())
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::PerWorker;
    use crate::Runtime;

    fn runtime(workers: usize) -> Runtime {
        Runtime::builder()
            .workers(workers)
            .build()
            .expect("a runtime")
    }

    #[test]
    fn each_worker_has_its_own() {
        let runtime = runtime(2);
        let values = Arc::new(PerWorker::new(runtime.handle(), || 0u64));
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        let threads: Vec<_> = (0..rounds)
            .map(|_| {
                let values = Arc::clone(&values);
                runtime.spawn(async move { *values.get().expect("a worker") += 1 })
            })
            .collect();
        for thread in threads {
            runtime.block_on(thread).expect("no panic");
        }
        drop(runtime);
        let mut values = Arc::into_inner(values).expect("the threads are over");
        let values = values.places.iter_mut().map(|place| *place.value.get_mut());
        assert_eq!(values.sum::<u64>(), rounds);
    }

    #[test]
    fn the_holder_of_a_value_gets_no_second_reference() {
        let runtime = runtime(1);
        let values = PerWorker::new(runtime.handle(), || 1);
        let thread = runtime.spawn(async move {
            let first = values.get();
            let second = values.get().is_none();
            drop(first);
            (second, values.get().is_some())
        });
        assert_eq!(runtime.block_on(thread).expect("no panic"), (true, true));
    }

    #[test]
    fn others_have_none() {
        let (ours, theirs) = (runtime(1), runtime(1));
        let values = Arc::new(PerWorker::new(ours.handle(), || 1));
        assert!(values.get().is_none());
        let there = Arc::clone(&values);
        let thread = theirs.spawn(async move { there.get().is_none() });
        assert!(theirs.block_on(thread).expect("no panic"));
    }
}
