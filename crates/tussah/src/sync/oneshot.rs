//! A channel for a single value, from the crate `oneshot`.
//!
//! Sending never waits. Await the receiver, or block an OS thread with [`Receiver::recv`]. If the
//! sender is dropped without sending, the receiver gets [`RecvError`]. If the receiver was dropped,
//! the send returns its value as an error.
//!
//! # Cancellation
//!
//! If a value was already sent, dropping the receiver drops the value.
//!
//! ```
//! use tussah::sync::oneshot;
//!
//! # futures_lite::future::block_on(async {
//! let (sender, receiver) = oneshot::channel();
//! sender.send(7)?;
//! assert_eq!(receiver.await, Ok(7));
//!
//! let (sender, receiver) = oneshot::channel::<u32>();
//! drop(sender);
//! assert!(receiver.await.is_err());
//!
//! let (sender, receiver) = oneshot::channel();
//! drop(receiver);
//! assert_eq!(sender.send(7).unwrap_err().into_inner(), 7);
//! # Ok::<(), oneshot::SendError<u32>>(())
//! # }).unwrap();
//! ```

pub use ::oneshot::{
    AsyncReceiver, Receiver, RecvError, RecvTimeoutError, SendError, Sender, TryRecvError,
    async_channel, channel,
};
