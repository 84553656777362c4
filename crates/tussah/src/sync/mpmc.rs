//! A bounded queue with many senders and many receivers; of `async-channel`.
//!
//! Each value goes to one receiver, in the order in which they were sent. Senders wait while the queue is full,
//! receivers while it is empty; those who wait are woken in order, but one who comes just then may be first.
//!
//! When the last sender is gone, receivers still get what is queued and then [`RecvError`]. When the last receiver is
//! gone, sending gives the value back. What is queued then is dropped with the last sender.
//!
//! # Cancellation
//!
//! A [`Send`] that is dropped before it has completed has sent nothing; its value is dropped with it. A [`Recv`] that
//! is dropped has taken nothing.

pub use async_channel::{
    Receiver, Recv, RecvError, Send, SendError, Sender, TryRecvError, TrySendError, WeakReceiver,
    WeakSender,
};

/// Makes a queue for at most `capacity` values.
///
/// # Panics
///
/// If `capacity` is 0: a queue without room would need sender and receiver to meet.
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
    assert!(capacity > 0, "the capacity of a channel is at least 1");
    async_channel::bounded(capacity)
}
