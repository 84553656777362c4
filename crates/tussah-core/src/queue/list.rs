//! An intrusive first-in first-out list with one owner.

use std::ptr::{self, NonNull};

use super::{Link, link};
use crate::loom::atomic::Ordering;

/// The queue of a color: nodes, oldest first.
///
/// It does not own its nodes: dropping the list forgets them. It has no bound of its own. A node is
/// in it at most once, so the number of live nodes bounds its length.
///
/// The list takes one word, so that a color has room for a value on the cache line that a turn
/// accesses. The links form a circle, from the newest node to the oldest and on to the newest.
pub(crate) struct List<T> {
    /// The newest node; null if there is none.
    last: *mut T,
}

impl<T: Link> List<T> {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            last: ptr::null_mut(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_null()
    }

    /// Queues a node behind all other nodes.
    ///
    /// # Safety
    /// The node must be alive and in no list, and the caller must leave it to this list until it is
    /// popped.
    #[inline]
    pub(crate) unsafe fn push_back(&mut self, node: NonNull<T>) {
        let first = match NonNull::new(self.last) {
            None => node.as_ptr(),
            Some(last) => {
                // SAFETY: the callers of `push_back` promised that the list's nodes are alive and
                // belong to the list until now.
                let link = unsafe { link(last) };
                let first = link.load(Ordering::Relaxed);
                link.store(node.as_ptr(), Ordering::Relaxed);
                first
            }
        };
        // SAFETY: the node is the caller's to give.
        unsafe { link(node) }.store(first, Ordering::Relaxed);
        self.last = node.as_ptr();
    }

    /// Queues several nodes behind all others. They are linked from the newest to the oldest, as in
    /// an inbox, and the oldest links to null.
    ///
    /// # Safety
    /// Every node must meet the requirements of [`push_back`](Self::push_back).
    #[inline]
    pub(crate) unsafe fn push_chain(&mut self, newest: NonNull<T>) {
        let mut oldest = newest;
        // SAFETY: the nodes are the caller's to give, and those of the list are alive and belong to
        // it.
        unsafe {
            let mut rest = link(newest).load(Ordering::Relaxed);
            while let Some(node) = NonNull::new(rest) {
                rest = link(node).load(Ordering::Relaxed);
                link(node).store(oldest.as_ptr(), Ordering::Relaxed);
                oldest = node;
            }
            let mut first = oldest.as_ptr();
            if let Some(last) = NonNull::new(self.last) {
                first = link(last).load(Ordering::Relaxed);
                link(last).store(oldest.as_ptr(), Ordering::Relaxed);
            }
            link(newest).store(first, Ordering::Relaxed);
        }
        self.last = newest.as_ptr();
    }

    /// Takes the oldest node.
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<NonNull<T>> {
        let last = NonNull::new(self.last)?;
        // SAFETY: the callers of `push_back` promised that the list's nodes are alive and belong to
        // the list until now. The link of each node names the next node, and the link of the newest
        // node names the oldest.
        unsafe {
            let first = NonNull::new_unchecked(link(last).load(Ordering::Relaxed));
            if first == last {
                self.last = ptr::null_mut();
            } else {
                link(last).store(link(first).load(Ordering::Relaxed), Ordering::Relaxed);
            }
            Some(first)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{TestNode, TestNodes};
    use super::*;

    fn push(list: &mut List<TestNode>, nodes: &TestNodes, number: usize) {
        // SAFETY: `get` checks that the node is in no list, and the nodes outlive the list.
        unsafe { list.push_back(nodes.get(number)) }
    }

    fn drain(list: &mut List<TestNode>) -> Vec<usize> {
        std::iter::from_fn(|| list.pop_front())
            .map(|node| TestNode::take(node).1)
            .collect()
    }

    #[test]
    fn first_in_first_out() {
        let nodes = TestNodes::new(0, 5);
        let mut list = List::new();
        assert!(list.is_empty() && list.pop_front().is_none());
        for number in 0..3 {
            push(&mut list, &nodes, number);
        }
        assert_eq!(list.pop_front().map(TestNode::take), Some((0, 0)));
        push(&mut list, &nodes, 3);
        assert_eq!(drain(&mut list), [1, 2, 3]);
        assert!(list.is_empty());
        push(&mut list, &nodes, 4); // an empty list forgets its last node
        assert_eq!(drain(&mut list), [4]);
    }

    #[test]
    fn a_chain_goes_behind_all_others() {
        let nodes = TestNodes::new(0, 7);
        let mut list = List::new();
        let push_chain = |list: &mut List<TestNode>, numbers: &[usize]| {
            let mut newest = ptr::null_mut();
            for number in numbers {
                let node = nodes.get(*number);
                // SAFETY: the node is in no list.
                unsafe { link(node) }.store(newest, Ordering::Relaxed);
                newest = node.as_ptr();
            }
            // SAFETY: as in `push`, and the nodes are linked from the newest to the oldest.
            unsafe { list.push_chain(NonNull::new(newest).expect("a node")) }
        };
        push_chain(&mut list, &[0, 1, 2]);
        push(&mut list, &nodes, 3);
        push_chain(&mut list, &[4]);
        push_chain(&mut list, &[5, 6]);
        assert_eq!(drain(&mut list), [0, 1, 2, 3, 4, 5, 6]);
        push_chain(&mut list, &[0]);
        assert_eq!(drain(&mut list), [0]);
    }

    #[test]
    fn a_node_can_be_queued_again() {
        let nodes = TestNodes::new(0, 2);
        let mut list = List::new();
        push(&mut list, &nodes, 0);
        push(&mut list, &nodes, 1);
        for _ in 0..3 {
            let node = list.pop_front().expect("two nodes are queued");
            // SAFETY: the node was popped and is in no list.
            unsafe { list.push_back(node) };
        }
        assert_eq!(drain(&mut list), [1, 0]);
    }

    #[test]
    fn is_one_word() {
        assert_eq!(size_of::<List<TestNode>>(), size_of::<usize>());
    }
}
