//! A bounded queue with many senders and many receivers, from the crate `async-channel`.
//!
//! Values leave the queue in the order in which they were sent, and each goes to one receiver.
//! Senders wait while the queue is full, and receivers wait while it is empty. Waiters are woken in
//! order, but a newly arriving sender or receiver may overtake them.
//!
//! After the last sender is dropped, receivers still get the queued values, and then [`RecvError`].
//! After the last receiver is dropped, a send returns its value as an error. Values that no
//! receiver can take any longer are dropped together with the last sender.
//!
//! # Cancellation
//!
//! If a [`Send`] is dropped before it completes, nothing is sent, and its value is dropped. If a
//! [`Recv`] is dropped before it completes, no value is lost.

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
