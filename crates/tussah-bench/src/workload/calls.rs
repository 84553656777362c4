//! A handler that calls another handler: directly, and through the edges of stages.
//!
//! The workload measures the call alone: the callee reads the batch and leaves it unchanged.

use super::{Peer, Workload, peer};

#[cfg(feature = "tussah")]
mod tussah;

pub static WORKLOAD: Workload = Workload {
    name: "calls",
    about: "a handler calls another handler with its own batch: ns a call",
    peers: PEERS,
};

#[cfg(feature = "tussah")]
const PEERS: &[Peer] = &[
    peer("floor", tussah::direct),
    peer("floor-boxed", tussah::boxed),
    peer("tussah", tussah::typed),
    peer("tussah-named", tussah::named),
    peer("tussah-serial", tussah::serial),
    peer("tussah-keyed", tussah::keyed),
];

#[cfg(not(feature = "tussah"))]
const PEERS: &[Peer] = &[peer("floor", |_| Vec::new())];
