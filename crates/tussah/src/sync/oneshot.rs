//! One value, from one thread to another, once; of `oneshot`.
//!
//! Sending never waits. The receiver is awaited, or blocks an OS thread with [`Receiver::recv`]. It gets [`RecvError`]
//! if the sender was dropped unused; a sender whose receiver is gone gets its value back.
//!
//! # Cancellation
//!
//! Dropping a receiver drops the value, if it had been sent.
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
