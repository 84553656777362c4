//! One handler calls another: directly, and by the edges of stages.
//!
//! What is measured is the call alone: the callee looks at the batch and leaves it as it is.

use super::{Peer, Workload, peer};

#[cfg(feature = "tussah")]
mod tussah;

pub static WORKLOAD: Workload = Workload {
    name: "calls",
    about: "a handler calls another's on its own batch: ns a call",
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
