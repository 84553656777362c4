//! Items that ended without being handled.

use std::fmt;

use super::edge::Wait;
use super::flows::Flow;
use super::outlet::Outlet;
use crate::stage::{Reason, Refusal};

/// An item that an instance did not handle and therefore sent to its `dropped` port.
pub struct Dropped<T> {
    /// The item, or `None` if its type is not `Clone` and a call that had taken the item panicked
    /// or was stopped.
    pub item: Option<T>,
    /// The reason why the item was not handled.
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

impl<T: Send + 'static> Outlet<Dropped<T>> {
    /// Keeps a copy of an item while it is handled, in case the call panics.
    #[inline]
    pub fn keep<'a>(
        &'a self,
        item: &T,
        flow: &'a Flow,
        clone: Option<fn(&T) -> T>,
    ) -> Option<Kept<'a, T>> {
        if !self.is_connected() {
            return None;
        }
        // If the clone panics, the item is reported without a copy.
        let mut kept = Kept {
            outlet: self,
            item: None,
            flow,
            is_handled: false,
        };
        kept.item = clone.map(|clone| clone(item));
        Some(kept)
    }

    /// Sends an unhandled item to the `dropped` port.
    pub fn dropped<I>(&self, item: T, flow: &Flow, reason: Reason) -> Unhandled<I> {
        if !self.is_connected() {
            return Unhandled::Whole;
        }
        let dropped = Dropped {
            item: Some(item),
            reason,
            flow: flow.clone(),
        };
        match self.push_later(flow, dropped) {
            Some(wait) => Unhandled::Waits(wait),
            None => Unhandled::Whole,
        }
    }
}

/// The end of an unhandled item.
pub enum Unhandled<I> {
    /// The item has ended.
    Whole,
    /// The item waits for room at the receiver of the `dropped` port.
    Waits(Wait<'static>),
    /// The item stands for a call to `wake`, which must not be lost.
    Alarm(I),
}

/// An item that is being handled. If the call that handles it panics or is dropped, the item goes
/// to the `dropped` port.
pub struct Kept<'a, T: Send + 'static> {
    outlet: &'a Outlet<Dropped<T>>,
    item: Option<T>,
    flow: &'a Flow,
    is_handled: bool,
}

impl<T: Send + 'static> Kept<'_, T> {
    /// Marks the item as handled.
    #[inline]
    pub fn handled(mut self) {
        self.is_handled = true;
    }
}

impl<T: Send + 'static> Drop for Kept<'_, T> {
    fn drop(&mut self) {
        if self.is_handled {
            return;
        }
        let reason = match std::thread::panicking() {
            true => Reason::Panicked,
            false => Reason::ShutDown,
        };
        let dropped = Dropped {
            item: self.item.take(),
            reason,
            flow: self.flow.clone(),
        };
        self.outlet.offer(self.flow, dropped);
    }
}

/// Returns the reason for which an item ends that an instance refused.
pub(super) fn reason(why: Refusal) -> Reason {
    match why {
        Refusal::Closed => Reason::ShutDown,
        _ => Reason::Shed,
    }
}
