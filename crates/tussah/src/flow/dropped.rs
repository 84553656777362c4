//! Items that ended without being handled.

use std::fmt;

use super::flows::Flow;
use crate::stage::Reason;

/// An item that ended without being handled, as an instance sends it to its port `dropped`.
pub struct Dropped<T> {
    /// The item. It is `None` if a call that panicked had taken the item, and the item cannot be
    /// cloned.
    pub item: Option<T>,
    /// The reason.
    pub reason: Reason,
    /// The flow of the item.
    pub flow: Flow,
}

impl<T: Clone> Clone for Dropped<T> {
    fn clone(&self) -> Self {
        Self {
            item: self.item.clone(),
            reason: self.reason,
            flow: self.flow.clone(),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Dropped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dropped")
            .field("item", &self.item)
            .field("reason", &self.reason)
            .field("flow", &self.flow)
            .finish()
    }
}
