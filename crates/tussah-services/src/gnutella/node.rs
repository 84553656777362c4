//! The state that the modules of a router share.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tussah::stage::Network;
use tussah::sync::{Notify, oneshot};
use tussah_wire::gnutella::Guid;

use super::counts::Counts;
use super::options::Options;
use super::peer::{Peer, random_guid};
use super::running::GnutellaError;
use super::share::Share;
use super::why::Why;

/// The state that the modules of a router share.
pub struct Node {
    pub(super) options: Options,
    /// The identifier of this router.
    pub(super) guid: Guid,
    pub(super) share: Share,
    pub(super) counts: Counts,
    /// The address at which peers connect, once the graph has been made.
    pub(super) listening: OnceLock<SocketAddrV4>,
    /// The address of HTTP, once the graph runs.
    pub(super) http: OnceLock<SocketAddr>,
    /// The stages of the graph, once it runs.
    pub(super) network: OnceLock<Network>,
    /// To notify when HTTP listens.
    pub(super) ready: Mutex<Option<oneshot::Sender<SocketAddr>>>,
    seats: Mutex<Seats>,
    /// Notified when the last peer has left.
    empty: Notify,
    /// Notified when the router begins to shut down.
    closing: Notify,
    next: AtomicU64,
}

#[derive(Default)]
struct Seats {
    /// The connections from the handshake on.
    taken: usize,
    each: HashMap<IpAddr, usize>,
    peers: BTreeMap<u64, Arc<Peer>>,
    is_closed: bool,
}

impl Node {
    pub(super) fn new(
        options: Options,
        ready: oneshot::Sender<SocketAddr>,
    ) -> Result<Self, GnutellaError> {
        options.check().map_err(GnutellaError::Option)?;
        let share = Share::open(options.share.as_deref())?;
        Ok(Self {
            guid: random_guid(),
            share,
            counts: Counts::default(),
            listening: OnceLock::new(),
            http: OnceLock::new(),
            network: OnceLock::new(),
            ready: Mutex::new(Some(ready)),
            seats: Mutex::default(),
            empty: Notify::new(),
            closing: Notify::new(),
            next: AtomicU64::new(1),
            options,
        })
    }

    /// Takes a seat for a connection.
    ///
    /// # Errors
    /// Returns the reason why the peer cannot be admitted.
    pub(super) fn seat(self: &Arc<Self>, from: IpAddr, guid: Option<Guid>) -> Result<Seat, Why> {
        let mut seats = self.seats.lock();
        let is_known = |guid| {
            let mut peers = seats.peers.values();
            guid == self.guid || peers.any(|peer| peer.theirs.guid == Some(guid))
        };
        if guid.is_some_and(is_known) {
            return Err(Why::Known);
        }
        if seats.is_closed || seats.taken >= self.options.peers_max {
            return Err(Why::Full);
        }
        let each = seats.each.entry(from).or_default();
        if *each >= self.options.each_max {
            return Err(Why::Greedy);
        }
        *each += 1;
        seats.taken += 1;
        Ok(Seat {
            node: Arc::clone(self),
            from,
            peer: None,
        })
    }

    /// Returns the number of connections, from the handshake on.
    pub(super) fn len(&self) -> usize {
        self.seats.lock().taken
    }

    pub(super) fn peers(&self) -> Vec<Arc<Peer>> {
        self.seats.lock().peers.values().cloned().collect()
    }

    /// Returns the addresses of the peers that accept connections.
    pub(super) fn hosts(&self) -> Vec<String> {
        let seats = self.seats.lock();
        let hosts = seats.peers.values().map(|peer| peer.theirs.host.clone());
        hosts.flatten().collect()
    }

    /// Returns the next number of a connection.
    pub(super) fn number(&self) -> u64 {
        // Relaxed: only the number counts.
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Ends all connections, and admits no further ones.
    pub(super) fn close(&self) {
        self.seats.lock().is_closed = true;
        self.closing.notify_waiters();
        for peer in self.peers() {
            peer.end(Why::Stopping);
        }
    }

    /// Returns whether the router shuts down.
    pub(super) fn is_closed(&self) -> bool {
        self.seats.lock().is_closed
    }

    /// Waits until the router shuts down.
    pub(super) async fn closed(&self) {
        let closing = self.closing.notified();
        if !self.is_closed() {
            closing.await;
        }
    }

    /// Waits until no peer is connected.
    pub(super) async fn empty(&self) {
        loop {
            let empty = self.empty.notified();
            if self.seats.lock().taken == 0 {
                return;
            }
            empty.await;
        }
    }

    /// Returns the address at which HTTP clients get files, for a peer that sees this address.
    pub(super) fn http_for(&self, local: Ipv4Addr) -> Option<SocketAddrV4> {
        let SocketAddr::V4(http) = *self.http.get()? else {
            return None;
        };
        let ip = match http.ip().is_unspecified() {
            true => local,
            false => *http.ip(),
        };
        Some(SocketAddrV4::new(ip, http.port()))
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("guid", &self.guid)
            .finish_non_exhaustive()
    }
}

/// The seat of a connection, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    node: Arc<Node>,
    from: IpAddr,
    peer: Option<u64>,
}

impl Seat {
    /// Adds the peer to those that are connected.
    pub(super) fn take(&mut self, peer: &Arc<Peer>) {
        let mut seats = self.node.seats.lock();
        seats.peers.insert(peer.number, Arc::clone(peer));
        self.peer = Some(peer.number);
        if seats.is_closed {
            // It came after `close` had looked at all peers.
            peer.end(Why::Stopping);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.node.seats.lock();
        let peer = self.peer.and_then(|number| seats.peers.remove(&number));
        seats.taken -= 1;
        if let Some(each) = seats.each.get_mut(&self.from) {
            *each -= 1;
            if *each == 0 {
                seats.each.remove(&self.from);
            }
        }
        let is_empty = seats.taken == 0;
        drop(seats);
        // The peer may be dropped here, which must not happen under the lock.
        drop(peer);
        if is_empty {
            self.node.empty.notify_waiters();
        }
    }
}
