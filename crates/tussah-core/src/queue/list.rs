//! An intrusive first-in first-out list with one owner.

use std::ptr::{self, NonNull};

use super::{Link, link};
use crate::loom::atomic::Ordering;

/// The queue of a color: nodes, oldest first.
///
/// It does not own its nodes: what is in it when it is dropped is forgotten. It has no bound of its own; a node is in
/// it at most once, so the number of live nodes bounds it.
pub(crate) struct List<T> {
    /// The oldest node, from which following the links leads to the newest; null if there is none.
    first: *mut T,
    /// The newest node, whose own link means nothing. Means nothing if there is none.
    last: *mut T,
}

impl<T: Link> List<T> {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Queues a node behind all others.
    ///
    /// # Safety
    /// The node is alive and in no list, and the caller leaves it to this one until it is popped.
    #[inline]
    pub(crate) unsafe fn push_back(&mut self, node: NonNull<T>) {
        if self.is_empty() {
            self.first = node.as_ptr();
        } else {
            // SAFETY: the list is not empty, so `last` is one of its nodes; as in `pop_front`.
            unsafe { link(NonNull::new_unchecked(self.last)) }
                .store(node.as_ptr(), Ordering::Relaxed);
        }
        self.last = node.as_ptr();
    }

    /// Takes the oldest node.
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<NonNull<T>> {
        let node = NonNull::new(self.first)?;
        self.first = if self.first == self.last {
            ptr::null_mut()
        } else {
            // SAFETY: the nodes of the list are alive and its own until now, as the callers of `push_back` said.
            unsafe { link(node) }.load(Ordering::Relaxed)
        };
        Some(node)
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
        push(&mut list, &nodes, 4); // an empty list forgets what was last
        assert_eq!(drain(&mut list), [4]);
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
    fn is_two_words() {
        assert_eq!(size_of::<List<TestNode>>(), 2 * size_of::<usize>());
    }
}
