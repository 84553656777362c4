//! The counters of a router.

use std::sync::atomic::{AtomicU64, Ordering};

use super::why::Why;

macro_rules! counts {
    ($($name:ident $about:literal,)*) => {
        /// Counters of packets. Only the router changes them.
        #[derive(Debug, Default)]
        pub(super) struct Packets {
            $(#[doc = $about] pub(super) $name: Count,)*
        }

        impl Packets {
            /// Returns the names, the meanings and the values.
            pub(super) fn all(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($name), $about, self.$name.get()),)*]
            }
        }
    };
}

counts! {
    received "Packets from peers.",
    sent "Packets to peers, each copy of a broadcast included.",
    pings "Pings that were new.",
    pongs "Pongs that had a route.",
    queries "Queries that were new.",
    hits "Query hits that had a route.",
    pushes "Pushes that had a route.",
    others "Packets for neighbors alone.",
    duplicates "Pings and queries that had come before.",
    unrouted "Answers and pushes without a route.",
    expired "Packets that had no hops left.",
    malformed "Packets with a malformed payload.",
}

/// A counter that one thread at a time changes.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    /// Adds to the counter. There is a single writer, so two relaxed accesses suffice, which cost
    /// less than an atomic addition.
    #[inline]
    pub(super) fn add(&self, n: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All counters.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) packets: Packets,
    ends: [AtomicU64; Why::COUNT],
    /// Query hits of this router's own files.
    pub(super) answers: AtomicU64,
}

impl Counts {
    pub(super) fn end(&self, why: &Why) {
        // Relaxed: this is only a count.
        self.ends[why.number()].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the numbers of connections that ended or were never made, by reason: its name, its
    /// meaning, and the number.
    pub(super) fn ends(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let kinds = Why::KINDS.into_iter().zip(&self.ends);
        kinds.map(|((name, about), count)| (name, about, count.load(Ordering::Relaxed)))
    }
}
