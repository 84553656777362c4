//! Posting closures to a color.

use std::alloc::Layout;
use std::panic::Location;
use std::ptr::NonNull;

use super::cell::ColorCell;
use crate::event::{Body, Posted};
use crate::slab::Kind;
use crate::worker::Worker;

/// A color that has as many posts queued as it may have, with what was to be posted.
pub(crate) struct Full<B> {
    pub(crate) body: B,
    pub(crate) depth_max: u32,
}

impl ColorCell {
    /// Posts what `body` runs, unless the color is full.
    ///
    /// # Safety
    /// Something keeps the cell alive for the call.
    #[inline]
    pub(crate) unsafe fn post_body<B: Body>(
        cell: NonNull<Self>,
        location: &'static Location<'static>,
        body: B,
    ) -> Result<(), Full<B>> {
        Worker::with(|worker| match worker {
            // The color's own events post to it at the price of an append.
            Some(worker) if worker.is_home_of(cell) => {
                // SAFETY: the caller keeps the cell alive.
                let this = unsafe { cell.as_ref() };
                if let Err(depth_max) = this.admit() {
                    return Err(Full { body, depth_max });
                }
                this.depth.count_local();
                let memory = worker.alloc(Kind::Event, Layout::new::<Posted<B>>());
                // SAFETY: the memory is for this event; this worker has the token.
                unsafe { this.append(Posted::write(memory.cast(), location, body), worker) };
                Ok(())
            }
            // SAFETY: passed on from the caller.
            _ => unsafe { Self::post_body_remote(cell, location, body) },
        })
    }

    #[inline(never)]
    unsafe fn post_body_remote<B: Body>(
        cell: NonNull<Self>,
        location: &'static Location<'static>,
        body: B,
    ) -> Result<(), Full<B>> {
        // SAFETY: the caller keeps the cell alive.
        let this = unsafe { cell.as_ref() };
        if let Err(depth_max) = this.admit() {
            return Err(Full { body, depth_max });
        }
        let memory = this.shared().alloc(Kind::Event, Layout::new::<Posted<B>>());
        // SAFETY: the memory is for this event, whose node is then ours to post.
        unsafe {
            let node = Posted::write(memory.cast(), location, body);
            // A worker that has entered a color of another runtime posts to it as from outside, too: the order is kept,
            // because all that it posts goes this way.
            Self::post_from_outside::<true>(cell, node);
        }
        Ok(())
    }
}
