//! The oldest runnable colors of a worker, from which a policy chooses.
//!
//! Used only if there is a choice to make: with a user's policy, or once a color has a priority.
//! The window comes before the ring and is filled from it. Thieves may take from it under its lock,
//! so colors in it are never stuck behind a long turn.

use std::ptr::NonNull;

use parking_lot::Mutex;

use crate::color::cell::ColorCell;
use crate::color::turn::TURN;
use crate::event::Node;
use crate::loom::atomic::{AtomicUsize, Ordering};
use crate::policy::{self, CANDIDATES_MAX, Candidate, Policy};

/// Runnable colors from the ring, the oldest first.
pub(crate) struct Window {
    waiting: Mutex<Vec<Waiting>>,
    /// The length of `waiting`, readable without the lock.
    len: AtomicUsize,
}

struct Waiting {
    node: NonNull<Node>,
    passed_over: u32,
}

// SAFETY: nodes may be run by any worker, and the window is a queue of them.
unsafe impl Send for Waiting {}

impl Window {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Mutex::new(Vec::new()),
            len: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Fills the window from `next` and takes the node that the policy chooses. `last` is the node
    /// that ran last on this worker; it is only compared.
    pub(crate) fn choose(
        &self,
        policy: &mut dyn Policy,
        last: *const Node,
        mut next: impl FnMut() -> Option<NonNull<Node>>,
    ) -> Option<NonNull<Node>> {
        let mut waiting = self.waiting.lock();
        while waiting.len() < CANDIDATES_MAX {
            let Some(node) = next() else { break };
            waiting.push(Waiting {
                node,
                passed_over: 0,
            });
        }
        if waiting.is_empty() {
            return None;
        }
        let mut candidates = [Candidate::default(); CANDIDATES_MAX];
        for (candidate, waiting) in candidates.iter_mut().zip(&*waiting) {
            // SAFETY: a node in a queue is alive.
            *candidate = unsafe { describe(waiting, last) };
        }
        let chosen = policy::choose(policy, &candidates[..waiting.len()]);
        let node = waiting.remove(chosen).node;
        for older in &mut waiting[..chosen] {
            older.passed_over += 1;
        }
        self.len.store(waiting.len(), Ordering::Relaxed);
        Some(node)
    }

    /// Takes up to `max` of the oldest nodes. Calls `out` after the lock is released.
    pub(crate) fn take(&self, max: usize, mut out: impl FnMut(NonNull<Node>)) -> usize {
        let mut waiting = self.waiting.lock();
        let count = max.min(waiting.len());
        let taken: Vec<_> = waiting.drain(..count).collect();
        self.len.store(waiting.len(), Ordering::Relaxed);
        drop(waiting);
        for waiting in taken {
            out(waiting.node);
        }
        count
    }
}

/// # Safety
/// The node must be alive.
unsafe fn describe(waiting: &Waiting, last: *const Node) -> Candidate {
    let mut candidate = Candidate {
        ran_last: std::ptr::eq(waiting.node.as_ptr(), last),
        passed_over: waiting.passed_over,
        ..Candidate::default()
    };
    // SAFETY: the caller promises that the node is alive; the table shows that the node is a
    // cell's.
    unsafe {
        if std::ptr::eq(waiting.node.as_ref().vtable(), &TURN) {
            let cell = ColorCell::of(waiting.node);
            candidate.priority = cell.as_ref().priority.load(Ordering::Relaxed);
            candidate.turn_ns = cell.as_ref().turn_ns();
        }
    }
    candidate
}
