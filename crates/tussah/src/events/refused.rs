//! Rejected posts.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::fmt;

use tussah_core::PostError;

/// A rejected event, which contains either the posted closure or the argument with which the
/// callback was fired.
pub struct Refused<T> {
    value: T,
    cause: Cause,
}

#[derive(Clone, Copy, Debug)]
enum Cause {
    Full,
    ShutDown,
}

impl<T> Refused<T> {
    /// Returns the closure or argument of the rejected event.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns whether the color's queue was full. A later attempt may succeed.
    pub fn is_full(&self) -> bool {
        matches!(self.cause, Cause::Full)
    }

    /// Returns whether the runtime is shutting down or has shut down. No later attempt can succeed.
    pub fn is_shut_down(&self) -> bool {
        matches!(self.cause, Cause::ShutDown)
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.cause {
            Cause::Full => "the color's queue is full",
            Cause::ShutDown => "the runtime is shut down",
        })
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refused({self})")
    }
}

impl<T> Error for Refused<T> {}

/// The value that `unpack` on this OS thread waits for, once it has arrived.
enum Back {
    Unwanted,
    Wanted,
    Given(Box<dyn Any>),
}

thread_local! {
    static BACK: RefCell<Back> = const { RefCell::new(Back::Unwanted) };
}

/// A value on its way through a post, inside the posted closure.
///
/// A rejected post returns an opaque closure. Dropping that closure drops the parcel, which then
/// hands over its value.
pub(super) struct Parcel<T: 'static>(Option<T>);

impl<T: 'static> Parcel<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Takes the value out. Returns `None` if it has been handed back.
    pub(super) fn open(&mut self) -> Option<T> {
        self.0.take()
    }

    /// Returns whether the value is still inside.
    pub(super) fn is_full(&self) -> bool {
        self.0.is_some()
    }

    /// Hands the value over if this OS thread is inside [`unpack`].
    pub(super) fn give_back(&mut self) {
        let wanted = BACK
            .try_with(|back| matches!(*back.borrow(), Back::Wanted))
            .unwrap_or(false);
        if wanted && let Some(value) = self.0.take() {
            BACK.set(Back::Given(Box::new(value)));
        }
    }
}

impl<T: 'static> Drop for Parcel<T> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Takes the value out of the parcel in a rejected closure.
pub(super) fn unpack<F, T: 'static>(error: PostError<F>) -> Refused<T> {
    let cause = if error.is_full() {
        Cause::Full
    } else {
        Cause::ShutDown
    };
    // Dropping the closure may drop further values, which may post and be rejected themselves.
    // Hence the old state is restored.
    let before = BACK.replace(Back::Wanted);
    drop(error.into_inner());
    match BACK.replace(before) {
        Back::Given(value) => match value.downcast() {
            Ok(value) => Refused {
                value: *value,
                cause,
            },
            Err(_) => unreachable!("the first parcel that is dropped is that of the closure"),
        },
        Back::Unwanted | Back::Wanted => unreachable!("a closure that was refused has its parcel"),
    }
}
