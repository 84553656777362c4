//! The queues that events wait in. None of them owns or allocates what it holds.
//!
//! | queue | of | puts | takes |
//! |---|---|---|---|
//! | [`Ring`] | a worker: what is runnable | the worker | the worker one by one, thieves in batches |
//! | [`Inbox`] | a worker: what others post to it | anyone | anyone, all at once |
//! | [`List`] | a color: its events | whoever has the color | whoever has the color |
//!
//! All three are first in, first out.

mod inbox;
mod list;
mod ring;

pub(crate) use inbox::{Chain, Inbox};
pub(crate) use list::List;
pub(crate) use ring::Ring;

use std::ptr::NonNull;

use crate::loom::atomic::AtomicPtr;

/// A node of an intrusive list: it has room for the pointer to the next one.
///
/// # Safety
/// For a live node `link` returns a pointer to an initialised atomic inside of it, always the same one, that is
/// valid for as long as the node, and does not touch the node otherwise. Nobody but the list that holds the node
/// accesses that atomic.
pub(crate) unsafe trait Link: Sized {
    /// The place of the link inside of the node.
    fn link(node: NonNull<Self>) -> NonNull<AtomicPtr<Self>>;
}

/// The link of a node.
///
/// # Safety
/// The node is alive, and stays so for `'a`.
#[inline]
unsafe fn link<'a, T: Link>(node: NonNull<T>) -> &'a AtomicPtr<T> {
    // SAFETY: the node is alive as the caller says, and so its link is valid, by the contract of `Link`.
    unsafe { T::link(node).as_ref() }
}

/// A value that has its cache lines to itself, so that who writes its neighbours does not slow it down. 128 bytes:
/// x86 prefetches lines in pairs, and some ARM processors have lines of this size.
#[repr(align(128))]
struct Line<T>(T);

#[cfg(test)]
struct TestNode {
    link: AtomicPtr<TestNode>,
    /// Who pushed the node.
    from: usize,
    number: usize,
    /// Has a value as long as the node is in a queue: a model sees from it whether the content arrives with the node.
    content: crate::loom::UnsafeCell<Option<usize>>,
}

// SAFETY: `link` names the same field always, and no test touches it.
#[cfg(test)]
unsafe impl Link for TestNode {
    fn link(node: NonNull<Self>) -> NonNull<AtomicPtr<Self>> {
        // SAFETY: the callers are the lists, which know the node to be alive; no reference is made.
        unsafe { NonNull::new_unchecked(&raw mut (*node.as_ptr()).link) }
    }
}

#[cfg(test)]
impl TestNode {
    fn new(from: usize, number: usize) -> NonNull<Self> {
        let link = AtomicPtr::new(std::ptr::null_mut());
        let content = crate::loom::UnsafeCell::new(Some(number));
        NonNull::from(Box::leak(Box::new(Self {
            link,
            from,
            number,
            content,
        })))
    }

    /// Frees a node that came out of a queue; its `from` and `number`.
    fn take(node: NonNull<Self>) -> (usize, usize) {
        // SAFETY: the node was made by `new`, and whoever takes it out of a queue is its only owner.
        let node = unsafe { Box::from_raw(node.as_ptr()) };
        // SAFETY: as above; loom checks it.
        let content = node
            .content
            .with_mut(|content| unsafe { (*content).take() });
        assert_eq!(
            content,
            Some(node.number),
            "a node was taken twice or without its content"
        );
        (node.from, node.number)
    }
}
