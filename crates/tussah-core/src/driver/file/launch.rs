//! The choice between a worker's ring and the blocking pool for each operation.

#[cfg(all(test, not(loom)))]
mod tests;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::operation::Operate;
use super::ring::{Ring, Size};
use crate::blocking::{SubmitError, in_job};
use crate::quietly::quietly;
use crate::runtime::Handle;
use crate::worker::{Remote, Worker};

/// The ring of one worker's place, made for the first operation pushed there.
#[derive(Default)]
pub(crate) struct RingPlace {
    /// `None` if the system refused a ring: the operations of this worker go to the pool.
    ring: OnceLock<Option<Arc<Ring>>>,
}

impl RingPlace {
    /// Returns the ring, if it exists.
    #[inline]
    pub(crate) fn get(&self) -> Option<&Arc<Ring>> {
        self.ring.get()?.as_ref()
    }

    /// Hands queued entries to the kernel, and takes completions. Returns the number of
    /// completions.
    #[inline]
    pub(crate) fn serve(&self) -> usize {
        self.get().map_or(0, |ring| {
            ring.flush_or_tell();
            ring.reap()
        })
    }

    /// Hands queued entries to the kernel. Returns false if the kernel did not take all of them.
    #[inline]
    pub(crate) fn flush(&self) -> bool {
        self.get().is_none_or(|ring| ring.flush())
    }

    /// Does the same as [`flush`](Self::flush) for a worker that is ending. Entries that the kernel
    /// refused are left to the worker that takes over its place.
    pub(crate) fn flush_last(&self) {
        if let Some(ring) = self.get() {
            ring.flush_or_tell();
        }
    }

    /// Returns whether an operation is in flight.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.get().is_some_and(|ring| ring.in_flight() > 0)
    }

    /// Returns the ring, and makes it if it does not exist. `made` sees a new ring before anything
    /// uses it, and may refuse it.
    fn get_or_make(&self, made: impl FnOnce(&Arc<Ring>) -> io::Result<()>) -> Option<&Arc<Ring>> {
        let make = || {
            let ring = Ring::new(Size::default()).and_then(|ring| made(&ring).map(|()| ring));
            ring.inspect_err(|error| {
                let text =
                    "a worker has no io_uring: its operations on files go to the blocking pool";
                quietly(|| tracing::warn!(target: "tussah", %error, "{text}"));
            })
            .ok()
        };
        self.ring.get_or_init(make).as_ref()
    }

    /// Closes the ring; see [`Ring::close`]. No further ring is made afterwards.
    pub(crate) fn close(&self, limit: Duration) -> bool {
        self.ring
            .get_or_init(|| None)
            .as_ref()
            .is_none_or(|ring| ring.close(limit))
    }
}

/// The route that an operation takes.
pub(super) enum Route {
    Ring {
        ring: Arc<Ring>,
        /// The caller is not the worker whose loop flushes the ring.
        outside: bool,
    },
    Pool,
}

/// Returns the route that an operation of this runtime takes from here.
pub(super) fn route(handle: &Handle, code: u8) -> Route {
    let shared = &handle.shared;
    if !shared.world.files.has(code) {
        return Route::Pool;
    }
    let made = |place: usize, remote: &Remote| {
        let ring = remote
            .files
            .get_or_make(|ring| super::register(shared, place, ring));
        ring.cloned()
    };
    let here = Worker::with(|worker| {
        let worker = worker.filter(|worker| worker.is_of(shared))?;
        Some(made(worker.index, &worker.remote))
    });
    let outside = here.is_none();
    match here.unwrap_or_else(|| made(0, shared.place(0))) {
        Some(ring) => Route::Ring { ring, outside },
        None => Route::Pool,
    }
}

/// Returns whether an operation would go from inside one job of the pool to another job. It may
/// then block on this OS thread, as a nested join does, and needs no second OS thread.
pub(super) fn runs_here(handle: &Handle, code: u8) -> bool {
    in_job() && matches!(route(handle, code), Route::Pool)
}

/// Hands a cancellation request to the kernel, unless the caller is the ring's own worker, whose
/// loop does that.
pub(super) fn flush_unless_own(ring: &Arc<Ring>) {
    let is_own = Worker::with(|worker| {
        let own = worker.and_then(|worker| worker.remote.files.get());
        own.is_some_and(|own| Arc::ptr_eq(own, ring))
    });
    if !is_own {
        ring.flush_or_tell();
    }
}

/// A job of the pool that runs an operation. The operation fails if the job is dropped.
struct Job(Option<Arc<dyn Operate>>);

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(operation) = self.0.take() {
            operation.dropped_by_pool();
        }
    }
}

/// Submits an operation to the pool.
///
/// # Errors
/// Returns the pool's refusal, together with the job. The caller decides on the operation's result
/// before it drops the job.
pub(super) fn submit(
    handle: &Handle,
    operation: Arc<dyn Operate>,
) -> Result<(), (io::Error, impl FnOnce() + use<>)> {
    let mut job = Job(Some(operation));
    let submitted = handle.shared.blocking.submit(move || {
        if let Some(operation) = job.0.take() {
            operation.run();
        }
    });
    match submitted {
        Ok(_) => Ok(()),
        Err(error) => Err((refused(&error), error.into_inner())),
    }
}

/// Translates the pool's refusal into an I/O error.
pub(super) fn refused<F>(error: &SubmitError<F>) -> io::Error {
    let kind = if error.is_full() {
        io::ErrorKind::WouldBlock
    } else {
        io::ErrorKind::Other
    };
    io::Error::new(kind, error.to_string())
}
