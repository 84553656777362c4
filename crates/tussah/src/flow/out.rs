//! The output ports of a module, as its methods see them.

use std::future::Future;

use super::flows::Key;

/// An output port of a plain `fn`.
///
/// Sending never fails and never waits. If a receiver has no room, the item stays in the port's
/// outbox; the instance takes its next item only when all of its outboxes are empty. An item goes
/// to all edges of the port. The item belongs to the flow of the item that the module is handling,
/// unless the method names another flow.
///
/// # Panics
/// All methods panic if the outbox is full, that is, if it already holds 1024 items that one call
/// has sent and that the receivers have no room for. In an `ordered` module, all items that a call
/// sends count, because all of them wait for their turn. All items sent before the panic are
/// delivered, including the last one. A method that sends an unbounded number of items should be an
/// `async fn` with [`AsyncOut`] ports.
pub trait Out<T> {
    /// Sends an item.
    fn send(&self, item: T);

    /// Sends an item in the flow with this name. The flow starts with its first item.
    ///
    /// A module that opens flows must [close](Self::close) them, or bound them with
    /// `#[module(flows)]`.
    fn to(&self, flow: impl Into<Key>, item: T);

    /// Closes the flow with this name. The flow's state is dropped when its last item has been
    /// handled.
    fn close(&self, flow: impl Into<Key>);

    /// Sends a copy of an item in each open flow of this port.
    fn each_flow(&self, item: T)
    where
        T: Clone;
}

/// An output port of an `async fn`.
///
/// Sending waits until each edge of the port has room for the item. If the future is dropped, the
/// item is dropped, unless it was already sent.
pub trait AsyncOut<T>: Sync {
    /// Sends an item.
    fn send(&self, item: T) -> impl Future<Output = ()> + Send;

    /// Sends an item in the flow with this name. The flow starts with its first item.
    ///
    /// A module that opens flows must [close](Self::close) them, or bound them with
    /// `#[module(flows)]`.
    fn to(&self, flow: impl Into<Key> + Send, item: T) -> impl Future<Output = ()> + Send;

    /// Closes the flow with this name. The flow's state is dropped when its last item has been
    /// handled.
    fn close(&self, flow: impl Into<Key>);

    /// Sends a copy of an item in each open flow of this port.
    fn each_flow(&self, item: T) -> impl Future<Output = ()> + Send
    where
        T: Clone;
}
