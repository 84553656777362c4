//! Spawning and posting in the current runtime.

use std::future::Future;
use std::panic::Location;

use super::handle::Handle;
use super::post::{AsColor, PostError};
use crate::color::Color;
use crate::task::JoinHandle;

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
#[inline]
#[track_caller]
pub fn post<F: FnOnce() + Send + 'static>(f: F) -> Result<(), PostError<F>> {
    let location = Location::caller();
    Handle::with_current(|handle| handle.post_in_at(location, Color::DEFAULT, f))
}

/// [`Handle::post_in`] in the current runtime.
///
/// # Errors
/// Gives the closure back if the color is full or the runtime is shut down.
///
/// # Panics
/// Outside of a runtime, and if the color is of another one.
#[inline]
#[track_caller]
pub fn post_in<F: FnOnce() + Send + 'static>(
    color: impl AsColor,
    f: F,
) -> Result<(), PostError<F>> {
    let location = Location::caller();
    Handle::with_current(|handle| handle.post_in_at(location, color, f))
}
