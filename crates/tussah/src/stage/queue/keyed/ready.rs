//! The keys that are ready, in the order of their turns.

use std::collections::VecDeque;

/// Keys of one class that are ready. A key that leaves before its turn leaves a stale entry behind,
/// so that no search is needed.
#[derive(Default)]
pub(super) struct Ready {
    pub(super) entries: VecDeque<Listing>,
    /// The number of stale entries.
    pub(super) stale: usize,
}

impl Ready {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.stale
    }

    /// Returns the first key, after removing the stale entries before it.
    pub(super) fn first(&mut self, is_valid: impl Fn(Listing) -> bool) -> Option<usize> {
        while let Some(&entry) = self.entries.front() {
            if is_valid(entry) {
                return Some(entry.place);
            }
            self.entries.pop_front();
            self.stale -= 1;
        }
        None
    }
}

/// The place of a key in the list of ready keys. The entry is valid while the key has the same
/// ticket.
#[derive(Clone, Copy)]
pub(super) struct Listing {
    pub(super) place: usize,
    pub(super) ticket: u64,
}
