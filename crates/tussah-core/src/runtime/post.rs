//! What a post names and what it gives back.

use std::fmt;
use std::mem::ManuallyDrop;

use super::handle::Handle;
use crate::color::{Color, ColorRef};

/// An event that was not taken, with what was to be run.
pub struct PostError<F> {
    body: F,
    full: Option<u32>,
}

impl<F> PostError<F> {
    pub(crate) fn full(body: F, depth_max: u32) -> Self {
        Self {
            body,
            full: Some(depth_max),
        }
    }

    pub(crate) fn shut_down(body: F) -> Self {
        Self { body, full: None }
    }

    /// What was to be run.
    pub fn into_inner(self) -> F {
        self.body
    }

    /// Whether the color had as many events queued as it may have.
    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Whether the runtime was shut down.
    pub fn is_shut_down(&self) -> bool {
        self.full.is_none()
    }
}

impl<F> fmt::Display for PostError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.full {
            Some(depth) => write!(f, "the color has {depth} events queued, which is its limit"),
            None => f.write_str("the runtime is shut down"),
        }
    }
}

impl<F> fmt::Debug for PostError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostError({self})")
    }
}

impl<F> std::error::Error for PostError<F> {}

/// What names a color: its number, or a reference to it.
pub trait AsColor: sealed::Sealed {
    #[doc(hidden)]
    fn reference(&self, handle: &Handle) -> ColorRef;
    #[doc(hidden)]
    fn with_cell<R>(&self, handle: &Handle, f: impl FnOnce(&ColorRef) -> R) -> R {
        f(&self.reference(handle))
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Color {}
    impl Sealed for &crate::ColorRef {}
}

impl AsColor for Color {
    fn reference(&self, handle: &Handle) -> ColorRef {
        if *self == Color::DEFAULT {
            return handle.shared.default_color().clone();
        }
        handle.shared.table.get(&handle.shared, *self)
    }
    fn with_cell<R>(&self, handle: &Handle, f: impl FnOnce(&ColorRef) -> R) -> R {
        if *self == Color::DEFAULT {
            return f(handle.shared.default_color());
        }
        handle.shared.table.with(&handle.shared, *self, |cell| {
            // SAFETY: the table keeps the cell alive meanwhile; this reference has no handle, so it is not dropped.
            f(&ManuallyDrop::new(unsafe { ColorRef::from_cell(cell) }))
        })
    }
}

impl AsColor for &ColorRef {
    #[inline]
    fn reference(&self, _: &Handle) -> ColorRef {
        (*self).clone()
    }
    #[inline]
    fn with_cell<R>(&self, _: &Handle, f: impl FnOnce(&ColorRef) -> R) -> R {
        f(self)
    }
}
