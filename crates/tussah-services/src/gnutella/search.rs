//! The module that answers queries.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tussah::flow::module;
use tussah::time::sleep;
use tussah_wire::gnutella::{
    Header, HitResult, Kind, Payload, QueryHits, Results, Trailer, push_descriptor,
};

use super::node::Node;
use super::peer::Peer;

/// Bound, in files: the maximum number in one answer. The number has to fit into a byte.
const HITS_MAX: usize = 64;
/// The code of this router's vendor.
const VENDOR: [u8; 4] = *b"TSSH";
/// The speed that answers state, in kbit/s.
const SPEED: u32 = 10_000;

/// The first two bytes of this router's queries: flags instead of a speed, none of which is set.
/// gtk-gnutella (`search_request_get_flags`) takes queries with two zeros for ancient, and drops
/// them.
pub(super) const QUERY_FLAGS: u16 = u16::from_le_bytes([0x80, 0]);

/// A query of a peer.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) header: Header,
    pub(super) criteria: Vec<u8>,
    pub(super) peer: Arc<Peer>,
}

/// Answers queries with the files that this router shares.
pub(super) struct Search {
    node: Arc<Node>,
}

#[module]
impl Search {
    fn init(node: Arc<Node>) -> Self {
        Self { node }
    }

    async fn run(&self, asked: Asked) {
        if let Some(time) = self.node.options.bottleneck {
            sleep(time).await;
        }
        if let Some(packet) = self.answer(&asked) {
            // Relaxed: this is only a count.
            self.node.counts.answers.fetch_add(1, Ordering::Relaxed);
            asked.peer.send(packet);
        }
    }
}

impl Search {
    /// Returns the packet that answers a query, if there are such files.
    fn answer(&self, asked: &Asked) -> Option<Vec<u8>> {
        let http = self.node.http_for(asked.peer.local)?;
        let mut bytes = Vec::new();
        for (index, file) in self.node.share.find(&asked.criteria).take(HITS_MAX) {
            let result = HitResult {
                index,
                size: u32::try_from(file.len).unwrap_or(u32::MAX),
                name: file.name.as_bytes(),
                extension: b"",
            };
            result.push(&mut bytes).expect("no name has a NUL");
        }
        if bytes.is_empty() {
            return None;
        }
        let mut trailer = Vec::new();
        let vendor = Trailer {
            vendor: VENDOR,
            open: b"",
            private: b"",
        };
        vendor.push(&mut trailer);
        let hits = Payload::QueryHits(QueryHits {
            port: http.port(),
            address: *http.ip(),
            speed: SPEED,
            results: Results::new(&bytes).expect("they have been written"),
            trailer: &trailer,
            servent: self.node.guid,
        });
        let ttl = asked.header.response(Kind::QueryHits).ttl;
        let mut packet = Vec::new();
        push_descriptor(&mut packet, asked.header.id, ttl, 0, &hits).ok()?;
        Some(packet)
    }
}
