//! Spawning and posting in the current runtime.

use std::future::Future;
use std::panic::Location;

use super::handle::Handle;
use super::post::{AsColor, PostError};
use crate::color::Color;
use crate::task::JoinHandle;
use crate::worker::Worker;

/// [`Handle::spawn`] in the current runtime.
///
/// # Panics
/// Outside of a runtime, and if it is shut down.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let location = Location::caller();
    Handle::with_current(|handle| handle.spawn_at(location, future))
}

/// [`Handle::spawn_in`] in the current runtime.
///
/// # Panics
/// Outside of a runtime, if it is shut down, and if the color is of another one.
#[track_caller]
pub fn spawn_in<F>(color: impl AsColor, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let location = Location::caller();
    Handle::with_current(|handle| handle.spawn_in_at(location, color, future))
}

/// [`Handle::post`] in the current runtime.
///
/// # Errors
/// Gives the closure back if the color is full or the runtime is shut down.
///
/// # Panics
/// Outside of a runtime.
#[inline(always)]
#[track_caller]
pub fn post<F: FnOnce() + Send + 'static>(f: F) -> Result<(), PostError<F>> {
    post_here(Location::caller(), Color::DEFAULT, f)
}

/// [`Handle::post_in`] in the current runtime.
///
/// # Errors
/// Gives the closure back if the color is full or the runtime is shut down.
///
/// # Panics
/// Outside of a runtime, and if the color is of another one.
#[inline(always)]
#[track_caller]
pub fn post_in<F: FnOnce() + Send + 'static>(
    color: impl AsColor,
    f: F,
) -> Result<(), PostError<F>> {
    post_here(Location::caller(), color, f)
}

/// Inlined, as is what it calls: see [`ColorCell::post_body`](crate::color::cell::ColorCell::post_body).
#[inline(always)]
#[track_caller]
fn post_here<F: FnOnce() + Send + 'static>(
    location: &'static Location<'static>,
    color: impl AsColor,
    f: F,
) -> Result<(), PostError<F>> {
    let entered;
    // SAFETY: the worker is not kept.
    let handle = match unsafe { Worker::here() } {
        Some(worker) => &worker.handle,
        None => {
            entered = Handle::current();
            &entered
        }
    };
    handle.post_in_at(location, color, f)
}
