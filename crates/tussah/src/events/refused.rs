//! Posts that were not taken.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::fmt;

use tussah_core::PostError;

/// An event that was not taken, with what it was given: the closure, or the argument of the callback.
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
    /// What was to be run or passed.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Whether the color had as many events queued as it may have. Trying again later can help.
    pub fn is_full(&self) -> bool {
        matches!(self.cause, Cause::Full)
    }

    /// Whether the runtime is shut down. Trying again cannot help.
    pub fn is_shut_down(&self) -> bool {
        matches!(self.cause, Cause::ShutDown)
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.cause {
            Cause::Full => "the color has as many events queued as it may have",
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

/// Whether something that is dropped on this OS thread is wanted back, and what has come.
enum Back {
    Unwanted,
    Wanted,
    Given(Box<dyn Any>),
}

thread_local! {
    static BACK: RefCell<Back> = const { RefCell::new(Back::Unwanted) };
}

/// A value on its way through a post, inside of the closure.
///
/// The closure that a refused post gives back is opaque. Dropping it drops the parcel, which hands its value over.
pub(super) struct Parcel<T: 'static>(Option<T>);

impl<T: 'static> Parcel<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Takes the value out. `None` if it was given back.
    pub(super) fn open(&mut self) -> Option<T> {
        self.0.take()
    }

    /// Whether the value is still in it.
    pub(super) fn is_full(&self) -> bool {
        self.0.is_some()
    }

    /// Hands the value over if this OS thread is in [`unpack`] just now.
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

/// Takes the value out of the parcel in a closure that was refused.
pub(super) fn unpack<F, T: 'static>(error: PostError<F>) -> Refused<T> {
    let cause = if error.is_full() {
        Cause::Full
    } else {
        Cause::ShutDown
    };
    // What else the closure owns may be dropped with it, and may be refused a post in turn: hence the slot is kept.
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
