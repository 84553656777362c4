//! A fused chain of modules, and the same steps in calls that are written by hand.
//!
//! The unit is an item: from the source, through one queue, and through four modules, each of which
//! handles one item at a time. By hand, one module has the other modules as fields. The result of
//! all steps is checked.

use super::{Peer, Workload, peer};

#[cfg(feature = "tussah")]
mod tussah;

pub static WORKLOAD: Workload = Workload {
    name: "fused",
    about: "items through a queue and four modules: ns an item",
    peers: PEERS,
};

#[cfg(feature = "tussah")]
const PEERS: &[Peer] = &[
    peer("floor", tussah::by_hand),
    peer("tussah", tussah::fused),
    peer("tussah-called", tussah::called),
    peer("tussah-queued", tussah::queued),
];

#[cfg(not(feature = "tussah"))]
const PEERS: &[Peer] = &[peer("floor", |_| Vec::new())];
