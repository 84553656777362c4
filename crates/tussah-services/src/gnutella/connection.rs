//! A connection to a peer, after the handshake.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_lite::future;
use tussah::net::{OwnedReadHalf, TcpStream};
use tussah::sync::mpsc::Sender;
use tussah_wire::Malformed;
use tussah_wire::gnutella::{Descriptor, HEADER_BYTES, Limits, PAYLOAD_BYTES_MAX};

use super::handshake::{Greeted, local};
use super::node::Node;
use super::peer::Peer;
use super::why::Why;

/// The maximum length of one read, in bytes, and so of the packets of a peer that are in the graph
/// at a time. A peer that floods the router therefore takes turns with the others. The longest
/// packet fits.
const READ_MAX: usize = HEADER_BYTES + PAYLOAD_BYTES_MAX;

/// An event of a connection.
#[derive(Debug)]
pub(super) enum Event {
    Joined(Arc<Peer>),
    Packets(Packets),
    /// The connection with this number has ended.
    Left(u64),
}

/// Whole packets of a peer, in order. The next ones enter the graph after these are dropped.
#[derive(Debug)]
pub(super) struct Packets {
    pub(super) peer: Arc<Peer>,
    pub(super) bytes: Vec<u8>,
}

impl Drop for Packets {
    fn drop(&mut self) {
        self.peer.turn.notify_one();
    }
}

/// Serves a connection until it ends.
pub(super) async fn serve(
    node: &Arc<Node>,
    (stream, address): (TcpStream, SocketAddr),
    greeted: Greeted,
    is_ours: bool,
    events: &Sender<Event>,
) {
    let Greeted {
        mut seat,
        theirs,
        rest,
    } = greeted;
    let addresses = (address, local(&stream));
    let (read, write) = stream.into_split();
    let number = node.number();
    let peer = Peer::new(number, addresses, theirs, is_ours, write, &node.options);
    let peer = Arc::new(peer);
    seat.take(&peer);
    // Sending fails if the graph is gone.
    let _ = events.send(Event::Joined(Arc::clone(&peer))).await;
    let came = receive(&peer, &read, rest, events);
    let mut why = future::or(peer.ended(), came).await;
    match why {
        Why::Gone | Why::Slow | Why::Failed(_) => peer.break_off(),
        _ => peer.end(why.clone()),
    }
    let written = peer.finish().await;
    if why == Why::Gone {
        why = match written {
            _ if peer.was_slow() => Why::Slow,
            Ok(()) => Why::Gone,
            Err(error) => Why::of(&error),
        };
    }
    node.counts.end(&why);
    if let Why::Failed(_) = why {
        tracing::warn!(peer = %address, "a connection failed: {why}");
    }
    tracing::info!(peer = %address, agent = %peer.theirs.agent, "a connection ended: {why}");
    drop(seat);
    let _ = events.send(Event::Left(number)).await;
}

/// Sends the packets of a peer until it disconnects, or sends something else.
async fn receive(
    peer: &Arc<Peer>,
    read: &OwnedReadHalf,
    mut bytes: Vec<u8>,
    events: &Sender<Event>,
) -> Why {
    // The first packets need not wait.
    peer.turn.notify_one();
    let mut filled = bytes.len();
    bytes.resize(READ_MAX.max(filled), 0);
    loop {
        let whole = match whole(&bytes[..filled]) {
            Ok(whole) => whole,
            Err(malformed) => return Why::Malformed(malformed),
        };
        if whole > 0 {
            peer.turn.notified().await;
            let packets = Packets {
                peer: Arc::clone(peer),
                bytes: bytes[..whole].to_vec(),
            };
            if events.send(Event::Packets(packets)).await.is_err() {
                return Why::Stopping;
            }
            bytes.copy_within(whole..filled, 0);
            filled -= whole;
        }
        match read.read(&mut bytes[filled..]).await {
            Ok(0) => return Why::Gone,
            Err(error) => return Why::of(&error),
            Ok(len) => filled += len,
        }
    }
}

/// Returns the length of the whole packets at the start of `bytes`.
fn whole(bytes: &[u8]) -> Result<usize, Malformed> {
    let mut at = 0;
    while let Some(packet) = Descriptor::parse(&bytes[at..], &Limits::default())? {
        at += packet.len();
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use tussah_wire::gnutella::{Guid, Payload, push_descriptor};

    use super::*;

    #[test]
    fn whole_packets_are_found() {
        let mut bytes = Vec::new();
        for len in [0, 10, 4096] {
            let payload = vec![0; len];
            let ping = Payload::Ping(&payload);
            push_descriptor(&mut bytes, Guid([1; 16]), 7, 0, &ping).expect("it fits");
        }
        let ends = [23, 56, 4175];
        for len in 0..=bytes.len() {
            let expected = ends.iter().rev().find(|end| **end <= len);
            assert_eq!(whole(&bytes[..len]), Ok(expected.copied().unwrap_or(0)));
        }
        bytes.extend([0xff; 23]);
        assert!(whole(&bytes).is_err());
    }
}
