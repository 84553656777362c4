//! The module that routes packets.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Instant;

use tussah::flow::{Out, module};
use tussah::sync::mpsc::Sender;
use tussah::time::now;
use tussah_wire::gnutella::{
    Descriptor, Dropped, Guid, Header, Kind, Limits, Payload, Pong, Query, QueryHits, Routes,
    push_descriptor,
};

use super::connection::{Event, Packets};
use super::counts;
use super::hosts::is_believed;
use super::node::Node;
use super::peer::{Peer, random_guid};
use super::search::{Asked, QUERY_FLAGS};
use super::why::Why;

/// The time after which a route is forgotten, in milliseconds. Answers come within seconds.
const ROUTE_MS_MAX: u64 = 600_000;
/// Bound, in packets: the number of malformed packets after which the router disconnects a peer.
const MALFORMED_MAX: u32 = 10;

/// A host that a pong names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host(pub(super) SocketAddrV4);

/// A query of this router's own.
#[derive(Debug)]
pub(super) struct OwnQuery {
    pub(super) words: String,
    pub(super) hits: Sender<Hit>,
}

/// A file that another servent has.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) address: SocketAddrV4,
    pub(super) index: u32,
    pub(super) size: u32,
    pub(super) name: String,
}

/// The end of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// The connection with this number.
    Peer(u64),
    /// This router itself.
    Own,
}

/// Routes the packets of all peers.
///
/// It handles one item at a time. A broadcast touches every peer, so each packet needs the whole
/// table of peers. One owner of the tables needs no lock, and an item is all packets of one read,
/// so that the cost of a queue is paid once for many packets. Peers are read and written by threads
/// of their own.
pub(super) struct Router {
    node: Arc<Node>,
    peers: BTreeMap<u64, Link>,
    pings: Routes<Route>,
    queries: Routes<Route>,
    servents: Routes<Route>,
    /// The receivers of the hits of this router's own queries.
    asked: HashMap<Guid, Sender<Hit>>,
    started: Instant,
}

/// A peer, as the router sees it.
struct Link {
    peer: Arc<Peer>,
    /// The packets that this call sends to the peer.
    pending: Vec<u8>,
    heard_ms: u64,
    /// True if the peer has been pinged since it was heard.
    is_pinged: bool,
    malformed: u32,
}

#[module]
impl Router {
    fn init(node: Arc<Node>) -> Self {
        let routes = || Routes::new(node.options.routes, ROUTE_MS_MAX);
        let (pings, queries, servents) = (routes(), routes(), routes());
        Self {
            node,
            peers: BTreeMap::new(),
            pings,
            queries,
            servents,
            asked: HashMap::new(),
            started: now(),
        }
    }

    fn run(&mut self, event: Event, queries: &impl Out<Asked>, hosts: &impl Out<Host>) {
        let now_ms = self.now_ms();
        match event {
            Event::Joined(peer) => self.join(peer, now_ms),
            Event::Packets(packets) => {
                if let Some(link) = self.peers.get_mut(&packets.peer.number) {
                    (link.heard_ms, link.is_pinged) = (now_ms, false);
                    self.packets(&packets, now_ms, queries, hosts);
                }
            }
            Event::Left(number) => {
                self.peers.remove(&number);
            }
        }
        self.flush();
    }

    #[port]
    fn ask(&mut self, ask: OwnQuery) {
        let (id, now_ms) = (random_guid(), self.now_ms());
        let query = Payload::Query(Query {
            min_speed: QUERY_FLAGS,
            criteria: ask.words.as_bytes(),
            extension: b"",
        });
        let mut packet = Vec::new();
        // A string that contains a NUL or is too long is not a query.
        if push_descriptor(&mut packet, id, self.node.options.ttl, 0, &query).is_ok() {
            self.queries.insert(id, Route::Own, now_ms);
            self.asked.insert(id, ask.hits);
            for link in self.peers.values_mut() {
                link.pending.extend_from_slice(&packet);
                self.node.counts.packets.sent.add(1);
            }
        }
        self.flush();
    }

    fn tick(&mut self) {
        self.asked.retain(|_, hits| !hits.is_closed());
        let (now_ms, silence) = (self.now_ms(), self.node.options.silence);
        let silence_ms = u64::try_from(silence.as_millis()).unwrap_or(u64::MAX);
        for link in self.peers.values_mut() {
            let silent_ms = now_ms.saturating_sub(link.heard_ms);
            if silent_ms > silence_ms {
                link.peer.end(Why::Silent);
            } else if silent_ms > silence_ms / 2 && !link.is_pinged {
                link.is_pinged = true;
                let id = random_guid();
                self.pings.insert(id, Route::Own, now_ms);
                ping(link, id, 1, &self.node.counts.packets);
            }
        }
        self.flush();
    }
}

/// Sends a ping to a peer.
fn ping(link: &mut Link, id: Guid, ttl: u8, counts: &counts::Packets) {
    push_descriptor(&mut link.pending, id, ttl, 0, &Payload::Ping(b"")).expect("it has no payload");
    counts.sent.add(1);
}

impl Router {
    fn now_ms(&self) -> u64 {
        let time = now().saturating_duration_since(self.started);
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }

    /// Adds a peer, and asks for the hosts that it knows.
    fn join(&mut self, peer: Arc<Peer>, now_ms: u64) {
        let number = peer.number;
        let mut link = Link {
            peer,
            pending: Vec::new(),
            heard_ms: now_ms,
            is_pinged: false,
            malformed: 0,
        };
        let id = random_guid();
        self.pings.insert(id, Route::Own, now_ms);
        let node = &self.node;
        ping(&mut link, id, node.options.ttl, &node.counts.packets);
        self.peers.insert(number, link);
    }

    /// Gives each peer what this call sends to it.
    fn flush(&mut self) {
        for link in self.peers.values_mut() {
            if !link.pending.is_empty() {
                link.peer.send(std::mem::take(&mut link.pending));
            }
        }
    }

    /// Routes whole packets of a peer.
    fn packets(
        &mut self,
        Packets { peer, bytes }: &Packets,
        now_ms: u64,
        queries: &impl Out<Asked>,
        hosts: &impl Out<Host>,
    ) {
        let mut at = 0;
        while let Ok(Some(packet)) = Descriptor::parse(&bytes[at..], &Limits::default()) {
            at += packet.len();
            self.node.counts.packets.received.add(1);
            match packet.header.kind {
                Kind::Ping => self.ping(peer, &packet, now_ms),
                Kind::Pong => self.pong(peer, &packet, now_ms, hosts),
                Kind::Query => self.query(peer, &packet, now_ms, queries),
                Kind::QueryHits => self.hits(peer, &packet, now_ms),
                Kind::Push => self.push(peer, &packet, now_ms),
                Kind::Bye => {
                    if let Ok(Payload::Bye(bye)) = Payload::parse(Kind::Bye, packet.payload) {
                        let text = String::from_utf8_lossy(bye.text);
                        let text = text.lines().next().unwrap_or_default().to_owned();
                        peer.end(Why::Bye(bye.code, text));
                    } else {
                        self.malformed(peer);
                    }
                }
                Kind::Other(_) => self.node.counts.packets.others.add(1),
            }
        }
    }

    /// Counts a packet whose payload is malformed. The next packet is intact, so a few are
    /// tolerated.
    fn malformed(&mut self, peer: &Arc<Peer>) {
        self.node.counts.packets.malformed.add(1);
        let Some(link) = self.peers.get_mut(&peer.number) else {
            return;
        };
        link.malformed += 1;
        if link.malformed == MALFORMED_MAX {
            link.peer.end(Why::Broken);
        }
    }

    fn ping(&mut self, peer: &Arc<Peer>, packet: &Descriptor<'_>, now_ms: u64) {
        let (header, counts) = (packet.header, &self.node.counts.packets);
        let forwarded = header.forwarded(self.node.options.ttl);
        if forwarded == Err(Dropped::Invalid) {
            return counts.expired.add(1);
        }
        let route = Route::Peer(peer.number);
        if !self.pings.insert(header.id, route, now_ms) {
            return counts.duplicates.add(1);
        }
        counts.pings.add(1);
        let listening = self.node.listening.get();
        let pong = Payload::Pong(Pong {
            port: listening.map_or(0, |listening| listening.port()),
            address: peer.local,
            files: self.node.share.files(),
            kilobytes: self.node.share.kilobytes(),
            extension: b"",
        });
        if let Some(link) = self.peers.get_mut(&peer.number) {
            let ttl = header.response(Kind::Pong).ttl;
            push_descriptor(&mut link.pending, header.id, ttl, 0, &pong).expect("a pong is short");
            counts.sent.add(1);
        }
        self.broadcast(peer, forwarded, packet.payload);
    }

    fn query(
        &mut self,
        peer: &Arc<Peer>,
        packet: &Descriptor<'_>,
        now_ms: u64,
        queries: &impl Out<Asked>,
    ) {
        let (header, counts) = (packet.header, &self.node.counts.packets);
        let Ok(Payload::Query(query)) = Payload::parse(Kind::Query, packet.payload) else {
            return self.malformed(peer);
        };
        let forwarded = header.forwarded(self.node.options.ttl);
        if forwarded == Err(Dropped::Invalid) {
            return counts.expired.add(1);
        }
        let route = Route::Peer(peer.number);
        if !self.queries.insert(header.id, route, now_ms) {
            return counts.duplicates.add(1);
        }
        counts.queries.add(1);
        if self.node.share.files() > 0 || self.node.options.bottleneck.is_some() {
            queries.send(Asked {
                header,
                criteria: query.criteria.to_vec(),
                peer: Arc::clone(peer),
            });
        }
        self.broadcast(peer, forwarded, packet.payload);
    }

    /// Sends a packet to all peers except its sender.
    fn broadcast(&mut self, from: &Peer, header: Result<Header, Dropped>, payload: &[u8]) {
        let counts = &self.node.counts.packets;
        let Ok(header) = header else {
            return counts.expired.add(1);
        };
        let packet = Descriptor { header, payload };
        let mut sent = 0;
        for (number, link) in &mut self.peers {
            if *number != from.number {
                packet.push(&mut link.pending);
                sent += 1;
            }
        }
        counts.sent.add(sent);
    }

    fn pong(
        &mut self,
        peer: &Arc<Peer>,
        packet: &Descriptor<'_>,
        now_ms: u64,
        hosts: &impl Out<Host>,
    ) {
        let Ok(Payload::Pong(pong)) = Payload::parse(Kind::Pong, packet.payload) else {
            return self.malformed(peer);
        };
        let route = self.pings.get(&packet.header.id, now_ms).copied();
        let host = SocketAddrV4::new(pong.address, pong.port);
        if route == Some(Route::Own) && is_believed(peer.address.ip(), host) {
            hosts.send(Host(host));
        }
        if self.back(route, packet) {
            self.node.counts.packets.pongs.add(1);
        }
    }

    fn hits(&mut self, peer: &Arc<Peer>, packet: &Descriptor<'_>, now_ms: u64) {
        let Ok(Payload::QueryHits(hits)) = Payload::parse(Kind::QueryHits, packet.payload) else {
            return self.malformed(peer);
        };
        let route = self.queries.get(&packet.header.id, now_ms).copied();
        if self.back(route, packet) {
            self.node.counts.packets.hits.add(1);
            let from = Route::Peer(peer.number);
            self.servents.update(hits.servent, from, now_ms);
        }
        if route == Some(Route::Own) {
            self.found(packet.header.id, &hits);
        }
    }

    /// Passes on the hits of a query of this router's own.
    fn found(&self, id: Guid, hits: &QueryHits<'_>) {
        let Some(asked) = self.asked.get(&id) else {
            return;
        };
        for file in hits.results {
            // Fails if there are enough hits, or if nothing waits for them any more.
            let _ = asked.try_send(Hit {
                address: SocketAddrV4::new(hits.address, hits.port),
                index: file.index,
                size: file.size,
                name: String::from_utf8_lossy(file.name).into_owned(),
            });
        }
    }

    fn push(&mut self, peer: &Arc<Peer>, packet: &Descriptor<'_>, now_ms: u64) {
        let Ok(Payload::Push(push)) = Payload::parse(Kind::Push, packet.payload) else {
            return self.malformed(peer);
        };
        let route = self.servents.get(&push.servent, now_ms).copied();
        if self.back(route, packet) {
            self.node.counts.packets.pushes.add(1);
        }
    }

    /// Sends a packet along a route. Returns whether there is one.
    fn back(&mut self, route: Option<Route>, packet: &Descriptor<'_>) -> bool {
        let counts = &self.node.counts.packets;
        let link = match route {
            Some(Route::Own) => return true,
            Some(Route::Peer(number)) => self.peers.get_mut(&number),
            None => None,
        };
        let Some(link) = link else {
            counts.unrouted.add(1);
            return false;
        };
        match packet.header.forwarded(self.node.options.ttl) {
            Ok(header) => {
                let payload = packet.payload;
                Descriptor { header, payload }.push(&mut link.pending);
                counts.sent.add(1);
            }
            Err(_) => counts.expired.add(1),
        }
        true
    }
}
