//! Spawning and posting in the current runtime.

use std::future::Future;
use std::panic::Location;

use super::handle::Handle;
use super::post::{AsColor, PostError};
use crate::color::Color;
use crate::thread::JoinHandle;
use crate::worker::Worker;

/// Spawns a thread in the current runtime, as [`Handle::spawn`] does.
///
/// # Panics
/// Panics if called outside a runtime, or if the runtime has shut down.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let location = Location::caller();
    Handle::with_current(|handle| handle.spawn_at(location, future))
}

/// Spawns a thread in a color of the current runtime, as [`Handle::spawn_in`] does.
///
/// # Panics
/// Panics if called outside a runtime, if the runtime has shut down, or if the color belongs to
/// another runtime.
#[track_caller]
pub fn spawn_in<F>(color: impl AsColor, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let location = Location::caller();
    Handle::with_current(|handle| handle.spawn_in_at(location, color, future))
}

/// Posts an event in the current runtime, as [`Handle::post`] does.
///
/// # Errors
/// Returns the closure if the color is full or the runtime has shut down.
///
/// # Panics
/// Panics if called outside a runtime.
#[inline(always)]
#[track_caller]
pub fn post<F: FnOnce() + Send + 'static>(f: F) -> Result<(), PostError<F>> {
    post_here(Location::caller(), Color::DEFAULT, f)
}

/// Posts an event in a color of the current runtime, as [`Handle::post_in`] does.
///
/// # Errors
/// Returns the closure if the color is full or the runtime has shut down.
///
/// # Panics
/// Panics if called outside a runtime, or if the color belongs to another runtime.
#[inline(always)]
#[track_caller]
pub fn post_in<F: FnOnce() + Send + 'static>(
    color: impl AsColor,
    f: F,
) -> Result<(), PostError<F>> {
    post_here(Location::caller(), color, f)
}

/// Inlined, and so are its callees: see
/// [`ColorCell::post_body`](crate::color::cell::ColorCell::post_body).
#[inline(always)]
#[track_caller]
fn post_here<F: FnOnce() + Send + 'static>(
    location: &'static Location<'static>,
    color: impl AsColor,
    f: F,
) -> Result<(), PostError<F>> {
    let entered;
    // SAFETY: the reference to the worker ends with this function.
    let handle = match unsafe { Worker::here() } {
        Some(worker) => &worker.handle,
        None => {
            entered = Handle::current();
            &entered
        }
    };
    handle.post_in_at(location, color, f)
}
