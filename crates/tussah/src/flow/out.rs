//! The output ports of a module, as its methods see them.

use std::future::Future;

use super::flows::Key;

/// An output port of a plain `fn`.
///
/// Sending never fails and never waits: items for which there is no room stay in the port's outbox,
/// and the instance takes its next item when its outboxes are empty. An item goes to all edges of
/// the port. The sent item is in the flow of the item that the module is handling, unless the
/// method names another flow.
///
/// # Panics
/// All methods panic if the outbox is full, that is, if one call has sent 1024 items for which
/// there was no room. All items that were sent before the panic arrive, the last one included. A
/// module that sends an unbounded number of items is an `async fn`, whose
/// ports are [`AsyncOut`]s.
pub trait Out<T> {
    /// Sends an item.
    fn send(&self, item: T);

    /// Sends an item in the flow of this name, which begins with its first item.
    ///
    /// A module that opens flows also has to [close](Self::close) them, or to bound them by
    /// `#[module(flows)]`.
    fn to(&self, flow: impl Into<Key>, item: T);

    /// Ends the flow of this name: its state is dropped when its last item has been handled.
    fn close(&self, flow: impl Into<Key>);

    /// Sends a copy of an item in each flow that this port has opened and not closed.
    fn each_flow(&self, item: T)
    where
        T: Clone;
}

/// An output port of an `async fn`.
///
/// Sending waits until each edge of the port has room for the item. Dropping the future drops the
/// item, unless it was already sent.
pub trait AsyncOut<T: Send>: Sync {
    /// Sends an item.
    fn send(&self, item: T) -> impl Future<Output = ()> + Send;

    /// Sends an item in the flow of this name, which begins with its first item.
    ///
    /// A module that opens flows also has to [close](Self::close) them, or to bound them by
    /// `#[module(flows)]`.
    fn to(&self, flow: impl Into<Key> + Send, item: T) -> impl Future<Output = ()> + Send;

    /// Ends the flow of this name: its state is dropped when its last item has been handled.
    fn close(&self, flow: impl Into<Key>);

    /// Sends a copy of an item in each flow that this port has opened and not closed.
    fn each_flow(&self, item: T) -> impl Future<Output = ()> + Send
    where
        T: Clone;
}
