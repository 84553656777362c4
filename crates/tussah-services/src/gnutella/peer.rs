//! A peer that is connected.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use tussah::net::{Outgoing, OutgoingOptions, OverflowPolicy, OwnedWriteHalf};
use tussah::sync::Notify;
use tussah_wire::gnutella::{Bye, Guid, Payload, push_descriptor};

use super::handshake::Theirs;
use super::options::Options;
use super::why::Why;

/// The time within which a peer takes what was queued before the end.
const FINISH: Duration = Duration::from_secs(2);

/// A peer that is connected.
pub(super) struct Peer {
    /// The number of the connection, which is never used again.
    pub(super) number: u64,
    pub(super) address: SocketAddr,
    /// This router's own address, as the peer sees it.
    pub(super) local: Ipv4Addr,
    pub(super) theirs: Theirs,
    /// True if this router connected to the peer.
    pub(super) is_ours: bool,
    /// The packets that wait to be written. Its bound cuts off a slow peer.
    outgoing: Outgoing<Vec<u8>>,
    /// Notified when the packets that were read last have been routed.
    pub(super) turn: Notify,
    ended: OnceLock<Why>,
    end: Notify,
}

impl Peer {
    pub(super) fn new(
        number: u64,
        (address, local): (SocketAddr, Ipv4Addr),
        theirs: Theirs,
        is_ours: bool,
        write: OwnedWriteHalf,
        options: &Options,
    ) -> Self {
        let outgoing = OutgoingOptions::default()
            .bytes_max(options.queue)
            // A router that is not busy queues packets one by one.
            .buffers_max(options.queue / 64)
            .when_full(OverflowPolicy::Close)
            .finish_max(FINISH)
            .start(write);
        Self {
            number,
            address,
            local,
            theirs,
            is_ours,
            outgoing,
            turn: Notify::new(),
            ended: OnceLock::new(),
            end: Notify::new(),
        }
    }

    /// Queues packets. A peer whose queue is full is cut off.
    pub(super) fn send(&self, packets: Vec<u8>) {
        // Fails if the peer has ended, or ends by this. Its connection's thread reports that.
        let _ = self.outgoing.try_push(packets);
    }

    /// Ends the connection, with a Bye where this is of use to the peer.
    pub(super) fn end(&self, why: Why) {
        if self.ended.set(why.clone()).is_err() {
            // Only the first reason counts.
            return;
        }
        if let Some(code) = why.bye() {
            let text = why.to_string();
            let bye = Bye {
                code,
                text: text.as_bytes(),
            };
            let (mut packet, id) = (Vec::new(), random_guid());
            if push_descriptor(&mut packet, id, 1, 0, &Payload::Bye(bye)).is_ok() {
                self.send(packet);
            }
        }
        self.end.notify_one();
    }

    /// Waits until [`end`](Self::end) is called. Only the connection's thread calls this.
    pub(super) async fn ended(&self) -> Why {
        self.end.notified().await;
        self.ended.get().cloned().unwrap_or(Why::Gone)
    }

    /// Returns whether the peer was cut off because its queue was full.
    pub(super) fn was_slow(&self) -> bool {
        self.outgoing.stats().refused > 0
    }

    /// Returns the number of bytes that wait to be written.
    pub(super) fn queued(&self) -> usize {
        self.outgoing.stats().bytes
    }

    /// Writes the rest, at most for two seconds, and closes the connection.
    ///
    /// # Errors
    /// Returns the error that ended the writing, also if that was earlier.
    pub(super) async fn finish(&self) -> io::Result<()> {
        self.outgoing.finish().await
    }

    /// Closes the connection at once.
    pub(super) fn break_off(&self) {
        self.outgoing.break_off();
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("number", &self.number)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Returns a new identifier.
pub(super) fn random_guid() -> Guid {
    Guid::from_random(fastrand::u128(..).to_ne_bytes())
}
