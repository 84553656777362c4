//! A channel for a single value; from `oneshot`.
//!
//! Sending never waits. Await the receiver, or block an OS thread with [`Receiver::recv`]. The
//! receiver gets [`RecvError`] if the sender was dropped unused. If the receiver was dropped, the
//! sender gets its value back.
//!
//! # Cancellation
//!
//! Dropping a receiver drops a value that was already sent.
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
