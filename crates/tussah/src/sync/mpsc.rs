//! A bounded queue with many senders and one receiver.
//!
//! The queue is the same as in [`mpmc`], except that its receiver cannot be cloned: a single
//! receiver gets every value. Order, closing and cancellation work as in [`mpmc`].

use std::fmt;

use super::mpmc;
pub use super::mpmc::{Recv, RecvError, Send, SendError, TryRecvError, TrySendError};

/// Creates a queue for at most `capacity` values.
///
/// # Panics
///
/// Panics if `capacity` is 0. Rendezvous channels are not supported.
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

/// The sending side of a queue. Clones send to the same queue.
pub struct Sender<T> {
    queue: mpmc::Sender<T>,
}

impl<T> Sender<T> {
    /// Waits while the queue is full, and then sends `value`.
    ///
    /// # Errors
    ///
    /// Returns an error with the value if the receiver was dropped or has closed the queue.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it completes, nothing is sent, and the value is dropped.
    pub fn send(&self, value: T) -> Send<'_, T> {
        self.queue.send(value)
    }

    /// Sends `value` if the queue is not full.
    ///
    /// # Errors
    ///
    /// Returns an error with the value if the queue is full or closed.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.queue.try_send(value)
    }

    /// Sends like [`send`](Self::send), but blocks the OS thread. Do not call this method in a
    /// thread of a runtime, because it would block the worker.
    ///
    /// # Errors
    ///
    /// Returns an error with the value if the receiver was dropped or has closed the queue.
    pub fn send_blocking(&self, value: T) -> Result<(), SendError<T>> {
        self.queue.send_blocking(value)
    }

    /// Waits until the receiver is dropped or has closed the queue.
    pub async fn closed(&self) {
        self.queue.closed().await;
    }

    /// Returns whether the receiver was dropped or has closed the queue.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Returns the number of queued values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the maximum number of queued values.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.queue
            .capacity()
            .expect("`channel` makes bounded queues only")
    }

    /// Returns whether both senders send to the same receiver.
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

/// The receiving side of a queue. A queue has only one receiver.
pub struct Receiver<T> {
    queue: mpmc::Receiver<T>,
}

impl<T> Receiver<T> {
    /// Waits for a value.
    ///
    /// # Errors
    ///
    /// Returns an error if the queue is empty and either all senders have been dropped or the queue
    /// has been [closed](Self::close).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped before it completes, no value is lost.
    pub fn recv(&mut self) -> Recv<'_, T> {
        self.queue.recv()
    }

    /// Takes a value if one is queued.
    ///
    /// # Errors
    ///
    /// Returns an error if the queue is empty. The error says whether the queue is also closed.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.queue.try_recv()
    }

    /// Receives like [`recv`](Self::recv), but blocks the OS thread. Do not call this method in a
    /// thread of a runtime, because it would block the worker.
    ///
    /// # Errors
    ///
    /// Returns an error if the queue is empty and either all senders have been dropped or the queue
    /// has been [closed](Self::close).
    pub fn recv_blocking(&mut self) -> Result<T, RecvError> {
        self.queue.recv_blocking()
    }

    /// Closes the queue to new values; queued values can still be received. Returns false if the
    /// queue was already closed.
    pub fn close(&mut self) -> bool {
        self.queue.close()
    }

    /// Returns whether all senders were dropped or the queue was [closed](Self::close). A closed
    /// queue may still contain values.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Returns the number of queued values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the maximum number of queued values.
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
