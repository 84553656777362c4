//! A bounded queue with many senders and one receiver.
//!
//! It is the queue of [`mpmc`] with a receiver that cannot be cloned: who holds it knows that it alone
//! sees every value. Order, closing and cancellation are as there.

use std::fmt;

use super::mpmc;
pub use super::mpmc::{Recv, RecvError, Send, SendError, TryRecvError, TrySendError};

/// Makes a queue for at most `capacity` values.
///
/// # Panics
///
/// If `capacity` is 0: a queue without room would need sender and receiver to meet.
///
/// ```
/// use tussah::sync::mpsc;
///
/// # futures_lite::future::block_on(async {
/// let (sender, mut receiver) = mpsc::channel(8);
/// for i in 0..3 {
///     sender.send(i).await?;
/// }
/// drop(sender);
/// let mut sum = 0;
/// while let Ok(i) = receiver.recv().await {
///     sum += i;
/// }
/// assert_eq!(sum, 3);
/// # Ok::<(), mpsc::SendError<i32>>(())
/// # }).unwrap();
/// ```
#[must_use]
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpmc::channel(capacity);
    (Sender { queue: sender }, Receiver { queue: receiver })
}

/// Puts values into the queue; clones put into the same one.
pub struct Sender<T> {
    queue: mpmc::Sender<T>,
}

impl<T> Sender<T> {
    /// Waits for room and puts `value` in.
    ///
    /// # Errors
    ///
    /// Gives the value back if the receiver is gone or has closed the queue.
    ///
    /// # Cancellation
    ///
    /// A future that is dropped before it has completed has sent nothing; the value is dropped with it.
    pub fn send(&self, value: T) -> Send<'_, T> {
        self.queue.send(value)
    }

    /// Puts `value` in if there is room now.
    ///
    /// # Errors
    ///
    /// Gives the value back if the queue is full, or closed.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.queue.try_send(value)
    }

    /// As [`send`](Self::send), blocking the OS thread; not for a thread of a runtime, whose worker it would stop.
    ///
    /// # Errors
    ///
    /// Gives the value back if the receiver is gone or has closed the queue.
    pub fn send_blocking(&self, value: T) -> Result<(), SendError<T>> {
        self.queue.send_blocking(value)
    }

    /// Waits until the receiver is gone or has closed the queue.
    pub async fn closed(&self) {
        self.queue.closed().await;
    }

    /// True if the receiver is gone or has closed the queue.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// How many values are queued.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// True if nothing is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How many values may be queued.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.queue
            .capacity()
            .expect("`channel` makes bounded queues only")
    }

    /// True if both send to one receiver.
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        self.queue.same_channel(&other.queue)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// Takes the values out of the queue. There is only one.
pub struct Receiver<T> {
    queue: mpmc::Receiver<T>,
}

impl<T> Receiver<T> {
    /// Waits for a value.
    ///
    /// # Errors
    ///
    /// If the queue is empty and all senders are gone, or it was [closed](Self::close).
    ///
    /// # Cancellation
    ///
    /// A future that is dropped has taken nothing.
    pub fn recv(&mut self) -> Recv<'_, T> {
        self.queue.recv()
    }

    /// Takes a value if there is one now.
    ///
    /// # Errors
    ///
    /// If the queue is empty; the error says whether it is also closed.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.queue.try_recv()
    }

    /// As [`recv`](Self::recv), blocking the OS thread; not for a thread of a runtime, whose worker it would stop.
    ///
    /// # Errors
    ///
    /// If the queue is empty and all senders are gone, or it was [closed](Self::close).
    pub fn recv_blocking(&mut self) -> Result<T, RecvError> {
        self.queue.recv_blocking()
    }

    /// Lets nothing more in; what is queued can still be received. False if it was closed before.
    pub fn close(&mut self) -> bool {
        self.queue.close()
    }

    /// True if all senders are gone, or the queue was [closed](Self::close); values may still be queued.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// How many values are queued.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// True if nothing is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How many values may be queued.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.queue
            .capacity()
            .expect("`channel` makes bounded queues only")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
