//! Accepting TCP connections in callbacks.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use tussah_core::Handle;

use super::{TcpListener, add, with_permit};
use crate::net::TcpStream;
use crate::net::socket::Direction;
use crate::net::tcp::accept::{Pauses, Verdict};

impl TcpListener {
    /// Accepts a pending connection without waiting, for use in callbacks; see
    /// [`on_readable`](crate::events::on_readable).
    ///
    /// # Errors
    /// Returns `WouldBlock` if no connection is pending, or if the number of connections has
    /// reached its limit. Returns the operating system's error if no descriptors or memory are
    /// left; a callback for the listener is then called again after a millisecond, or when a stream
    /// is closed. Otherwise, returns any error from the operating system.
    ///
    /// # Examples
    /// ```
    /// use tussah::net::{TcpListener, TcpStream};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let error = listener.try_accept().expect_err("none is pending");
    /// assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    /// let client = TcpStream::connect(listener.local_addr()?).await?;
    /// let (_, peer) = listener.try_accept()?;
    /// assert_eq!(peer, client.local_addr()?);
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn try_accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let permit = match &self.connections {
            Some(connections) => {
                let permit = connections.try_acquire_arc();
                Some(permit.ok_or(io::ErrorKind::WouldBlock)?)
            }
            None => None,
        };
        loop {
            let error = match self.attempt() {
                Ok(accepted) => {
                    add(&self.counts.accepted);
                    return Ok(with_permit(accepted, permit));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            match Verdict::of(&error) {
                Verdict::Again => add(&self.counts.failed),
                Verdict::Pause => {
                    self.exhausted.store(true, Ordering::Relaxed);
                    return Err(self.failed("accept at", error));
                }
                Verdict::Fail => return Err(self.failed("accept at", error)),
            }
        }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.socket.handle()
    }

    /// Waits until [`try_accept`](Self::try_accept) would not return `WouldBlock`. Pauses first if
    /// resources were exhausted.
    ///
    /// # Errors
    /// Returns the system's bare error if the descriptor cannot be registered, and `Other` when the
    /// runtime ends.
    pub(crate) async fn wait_ready(&self, direction: Direction) -> io::Result<()> {
        if self.exhausted.swap(false, Ordering::Relaxed) {
            add(&self.counts.pauses);
            Box::pin(Pauses::new().wait()).await;
        }
        if let Some(connections) = &self.connections {
            // If another thread takes the place in the meantime, the callback finds none and waits
            // once more.
            drop(connections.acquire().await);
        }
        self.socket.wait_ready(direction).await
    }
}
