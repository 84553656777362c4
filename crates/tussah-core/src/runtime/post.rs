//! The arguments and the error of a post.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::handle::Handle;
use super::shared::Shared;
use crate::color::cell::ColorCell;
use crate::color::{Color, ColorRef, Full};
use crate::event::Body;

/// The error for a rejected post; it contains the closure, which has not run.
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

    /// Returns the closure that was rejected.
    pub fn into_inner(self) -> F {
        self.body
    }

    /// Returns whether the color's queue had reached its limit.
    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Returns whether the runtime had shut down.
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

/// A value that identifies a color: a color's number, or a reference to a color.
#[allow(private_bounds)]
pub trait AsColor: Sealed {}

pub(crate) trait Sealed {
    fn reference(&self, shared: &Arc<Shared>) -> ColorRef;
    /// Posts an event that runs `body`, unless the color is full.
    fn post<B: Body>(
        &self,
        handle: &Handle,
        location: &'static Location<'static>,
        body: B,
    ) -> Result<(), Full<B>>;
}

impl AsColor for Color {}
impl AsColor for &ColorRef {}

impl Sealed for Color {
    fn reference(&self, shared: &Arc<Shared>) -> ColorRef {
        shared.table.get(shared, *self)
    }
    fn post<B: Body>(
        &self,
        handle: &Handle,
        location: &'static Location<'static>,
        body: B,
    ) -> Result<(), Full<B>> {
        let shared = &handle.shared;
        // SAFETY: during the call, the runtime keeps the default color alive, and the table the
        // others.
        unsafe {
            if *self == Color::DEFAULT {
                return ColorCell::post_body(shared.default_color(), location, body);
            }
            shared.table.with(shared, *self, |cell| {
                ColorCell::post_body(cell, location, body)
            })
        }
    }
}

impl Sealed for &ColorRef {
    #[inline]
    fn reference(&self, _: &Arc<Shared>) -> ColorRef {
        (*self).clone()
    }
    #[inline(always)]
    #[track_caller]
    fn post<B: Body>(
        &self,
        handle: &Handle,
        location: &'static Location<'static>,
        body: B,
    ) -> Result<(), Full<B>> {
        handle.assert_mine(self.cell());
        // SAFETY: the reference keeps the cell alive.
        unsafe { ColorCell::post_body(self.cell(), location, body) }
    }
}
