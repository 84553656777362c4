//! The output ports of a module, as its methods see them.

use std::future::Future;

use super::flows::Key;

/// An output port of a plain `fn`.
///
/// A send never waits and returns no error. If a receiver cannot accept an item yet, the item stays
/// in the port's outbox; the instance takes its next item only when all of its outboxes are empty.
/// Each item goes to all edges of the port. An item sent with [`send`](Self::send) belongs to the
/// flow of the item that the module is handling; the other methods choose another flow.
///
/// # Panics
/// A send panics if a receiver cannot accept the item while 1024 items from the same call are
/// already waiting in outboxes. An item that its edge drops waits there, too, while the receiver of
/// the `dropped` port has no room. In an `ordered` module, each call to a method of this trait
/// counts as one waiting item, because its effect is delayed until the module has finished all
/// earlier items. All items sent before the panic are delivered, and so is the item that caused the
/// panic. A method that sends an unbounded number of items should be an `async fn` with
/// [`AsyncOut`] ports.
pub trait Out<T> {
    /// Sends an item.
    fn send(&self, item: T);

    /// Sends an item in the flow with this name. The flow starts with its first item.
    ///
    /// A module that opens flows must [close](Self::close) them, or limit their number with
    /// `#[module(flows)]`.
    fn to(&self, flow: impl Into<Key>, item: T);

    /// Closes the flow with this name. When the flow's last item has been handled, the flow's state
    /// is dropped.
    fn close(&self, flow: impl Into<Key>);

    /// Sends a copy of an item in each open flow of this port.
    fn each_flow(&self, item: T)
    where
        T: Clone;
}

/// An output port of an `async fn`.
///
/// A send waits until every receiver can accept the item. If the future is dropped, the item is
/// dropped, unless it was already sent.
pub trait AsyncOut<T>: Sync {
    /// Sends an item.
    fn send(&self, item: T) -> impl Future<Output = ()> + Send;

    /// Sends an item in the flow with this name. The flow starts with its first item.
    ///
    /// A module that opens flows must [close](Self::close) them, or limit their number with
    /// `#[module(flows)]`.
    fn to(&self, flow: impl Into<Key> + Send, item: T) -> impl Future<Output = ()> + Send;

    /// Closes the flow with this name. When the flow's last item has been handled, the flow's state
    /// is dropped.
    fn close(&self, flow: impl Into<Key>);

    /// Sends a copy of an item in each open flow of this port.
    fn each_flow(&self, item: T) -> impl Future<Output = ()> + Send
    where
        T: Clone;
}
