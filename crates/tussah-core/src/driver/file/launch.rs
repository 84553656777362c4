//! Which way an operation goes: a worker's ring, or the blocking pool.

#[cfg(all(test, not(loom)))]
mod tests;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::operation::Operate;
use super::ring::{Ring, Size};
use crate::blocking::{SubmitError, in_job};
use crate::runtime::Handle;
use crate::worker::{Remote, Worker};

/// The ring of one worker's place, made with the first operation that is pushed there.
#[derive(Default)]
pub(crate) struct RingPlace {
    /// `None` if the system refused it: the operations of this worker go to the pool.
    ring: OnceLock<Option<Arc<Ring>>>,
}

impl RingPlace {
    /// The ring, if there is one.
    #[inline]
    pub(crate) fn get(&self) -> Option<&Arc<Ring>> {
        self.ring.get()?.as_ref()
    }

    /// Hands over what is queued, and takes what has ended; says how much that was.
    #[inline]
    pub(crate) fn serve(&self) -> usize {
        self.get().map_or(0, |ring| {
            ring.flush_or_tell();
            ring.reap()
        })
    }

    /// Hands over what is queued. False if the kernel did not take all of it.
    #[inline]
    pub(crate) fn flush(&self) -> bool {
        self.get().is_none_or(|ring| ring.flush())
    }

    /// The same for a worker that ends: what the kernel did not take is left to the one that looks after its place.
    pub(crate) fn flush_last(&self) {
        if let Some(ring) = self.get() {
            ring.flush_or_tell();
        }
    }

    /// Whether something is under way.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.get().is_some_and(|ring| ring.in_flight() > 0)
    }

    /// The ring, which is made if there is none; `made` is told of it before anybody uses it, and may refuse it.
    fn get_or_make(&self, made: impl FnOnce(&Arc<Ring>) -> io::Result<()>) -> Option<&Arc<Ring>> {
        let make = || {
            let ring = Ring::new(Size::default()).and_then(|ring| made(&ring).map(|()| ring));
            ring.inspect_err(|error| {
                let text =
                    "a worker has no io_uring: its operations on files go to the blocking pool";
                tracing::warn!(target: "tussah", %error, "{text}");
            })
            .ok()
        };
        self.ring.get_or_init(make).as_ref()
    }

    /// See [`Ring::close`]. No ring is made afterwards.
    pub(crate) fn close(&self, limit: Duration) -> bool {
        self.ring
            .get_or_init(|| None)
            .as_ref()
            .is_none_or(|ring| ring.close(limit))
    }
}

/// Which way an operation goes.
pub(super) enum Route {
    Ring {
        ring: Arc<Ring>,
        /// The caller is not the worker whose loop flushes the ring.
        outside: bool,
    },
    Pool,
}

/// Which way an operation of this runtime goes from here.
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

/// Whether an operation would go to the pool from inside of one of its jobs: it may block right here, as a nested join does,
/// and so needs no second OS thread.
pub(super) fn runs_here(handle: &Handle, code: u8) -> bool {
    in_job() && matches!(route(handle, code), Route::Pool)
}

/// Hands over a request to cancel, unless that is left to the loop of the worker that asks.
pub(super) fn flush_unless_own(ring: &Arc<Ring>) {
    let is_own = Worker::with(|worker| {
        let own = worker.and_then(|worker| worker.remote.files.get());
        own.is_some_and(|own| Arc::ptr_eq(own, ring))
    });
    if !is_own {
        ring.flush_or_tell();
    }
}

/// An operation on the pool. It ends with an error if the job is dropped.
struct Job(Option<Arc<dyn Operate>>);

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(operation) = self.0.take() {
            operation.dropped_by_pool();
        }
    }
}

/// Has the pool do an operation.
///
/// # Errors
/// If it can't, with the job: the operation says what it means that it is dropped.
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

/// The pool's refusal as an error of input and output.
pub(super) fn refused<F>(error: &SubmitError<F>) -> io::Error {
    let kind = if error.is_full() {
        io::ErrorKind::WouldBlock
    } else {
        io::ErrorKind::Other
    };
    io::Error::new(kind, error.to_string())
}
