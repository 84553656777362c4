//! A bounded queue with many senders and many receivers; from `async-channel`.
//!
//! Values are received in the order in which they were sent, each by one receiver. Senders wait
//! while the queue is full, receivers while it is empty. Waiters are woken in order, but a newly
//! arriving sender or receiver may overtake them.
//!
//! When the last sender is dropped, receivers still get the queued values, and then [`RecvError`].
//! When the last receiver is dropped, sending returns the value. Values still queued then are
//! dropped with the last sender.
//!
//! # Cancellation
//!
//! A [`Send`] dropped before completion has sent nothing, and drops its value. A dropped [`Recv`]
//! has taken nothing.

pub use async_channel::{
    Receiver, Recv, RecvError, Send, SendError, Sender, TryRecvError, TrySendError, WeakReceiver,
    WeakSender,
};

/// Creates a queue for at most `capacity` values.
///
/// # Panics
///
/// Panics if `capacity` is 0. Rendezvous channels are not supported.
///
/// ```
/// use tussah::sync::mpmc;
///
/// # futures_lite::future::block_on(async {
/// let (sender, first) = mpmc::channel(2);
/// let second = first.clone();
/// sender.send("a").await?;
/// sender.send("b").await?;
/// assert!(sender.try_send("c").is_err_and(|error| error.is_full()));
/// assert_eq!((first.recv().await, second.recv().await), (Ok("a"), Ok("b")));
/// # Ok::<(), mpmc::SendError<&str>>(())
/// # }).unwrap();
/// ```
#[must_use]
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "the capacity of a channel must be at least 1");
    async_channel::bounded(capacity)
}
