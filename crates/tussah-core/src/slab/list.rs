//! An intrusive list of spans.
//!
//! It is doubly linked, because a span leaves from the middle when it becomes full or empty.

use super::span::Span;
use std::ptr::null_mut;

/// The neighbors of a span in a list.
#[derive(Clone, Copy)]
pub(super) struct Links {
    prev: *mut Span,
    next: *mut Span,
}

impl Links {
    pub(super) const NONE: Self = Self {
        prev: null_mut(),
        next: null_mut(),
    };
}

/// An intrusive list of spans, linked through the links number `BY` of their headers.
pub(super) struct List<const BY: usize> {
    head: *mut Span,
}

impl<const BY: usize> List<BY> {
    pub(super) const fn new() -> Self {
        Self { head: null_mut() }
    }

    /// Returns the span that was pushed last, or null.
    pub(super) fn first(&self) -> *mut Span {
        self.head
    }

    /// The caller holds the depot's lock (or owns the list and the spans). `span` is live and in no
    /// `BY` list.
    pub(super) unsafe fn push(&mut self, span: *mut Span) {
        // SAFETY: by contract. The head is live because spans leave the list before they are
        // unmapped.
        unsafe {
            (*span).moving.links[BY] = Links {
                prev: null_mut(),
                next: self.head,
            };
            if !self.head.is_null() {
                (*self.head).moving.links[BY].prev = span;
            }
        }
        self.head = span;
    }

    /// # Safety
    /// The caller must hold the depot's lock (or owns the list and the spans). `span` must be in
    /// this list.
    pub(super) unsafe fn remove(&mut self, span: *mut Span) {
        // SAFETY: the neighbors are in the list, too, so they are live.
        unsafe {
            let Links { prev, next } = (*span).moving.links[BY];
            if prev.is_null() {
                self.head = next;
            } else {
                (*prev).moving.links[BY].next = next;
            }
            if !next.is_null() {
                (*next).moving.links[BY].prev = prev;
            }
        }
    }

    /// Calls `f` with each span.
    ///
    /// # Safety
    /// The caller must hold the depot's lock (or owns the list and the spans).
    pub(super) unsafe fn for_each(&self, mut f: impl FnMut(*mut Span)) {
        let mut at = self.head;
        while !at.is_null() {
            // SAFETY: spans in the list are live, and the lock keeps the list unchanged.
            let next = unsafe { (*at).moving.links[BY].next };
            f(at);
            at = next;
        }
    }

    /// Returns all spans of the list to their origin.
    ///
    /// # Safety
    /// The caller must own the list. Its spans must be in no other list, and neither they nor their
    /// slots may be used again.
    pub(super) unsafe fn unmap_all(&mut self) {
        while !self.head.is_null() {
            let span = self.head;
            // SAFETY: by contract.
            unsafe {
                self.remove(span);
                Span::unmap(span);
            }
        }
    }
}
