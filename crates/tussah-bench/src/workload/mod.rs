//! The workloads: one file for each, with one function for each peer.
//!
//! A workload is written so that all its forms can be compared: the floor comes first, then the
//! peers, and tussah last.

use crate::cli::Options;
use crate::metric::Metric;

mod burst;
mod bursts;
mod calls;
mod churn;
mod colors;
mod connect;
mod contended;
mod cross;
mod disk;
mod echo;
mod fifo;
mod flow;
mod fused;
mod gnutella;
mod idle;
mod mixed;
mod readers;
mod senders;
mod spawn;
mod stages;
mod steal;
mod table2;
mod timers;
mod transfer;
mod wake;
mod with;
mod r#yield;

/// A workload, with one form for each of several peers.
#[derive(Debug)]
pub struct Workload {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for `list` and for the header of the table.
    pub about: &'static str,
    /// The peers, in the order of the runs.
    pub peers: &'static [Peer],
}

/// One form of a workload.
#[derive(Debug)]
pub struct Peer {
    /// The name in tables. The name of a floor begins with `floor`, and our own name is `tussah`.
    pub name: &'static str,
    /// Runs the workload once and reports its metrics.
    ///
    /// # Panics
    ///
    /// Panics if the peer lost or doubled something.
    pub run: fn(&Options) -> Vec<Metric>,
}

const fn peer(name: &'static str, run: fn(&Options) -> Vec<Metric>) -> Peer {
    Peer { name, run }
}

/// All workloads, in the order in which `list` prints them.
pub static ALL: &[&Workload] = &[
    &table2::WORKLOAD,
    &colors::WORKLOAD,
    &contended::WORKLOAD,
    &with::WORKLOAD,
    &transfer::WORKLOAD,
    &readers::WORKLOAD,
    &spawn::WORKLOAD,
    &idle::WORKLOAD,
    &steal::WORKLOAD,
    &wake::WORKLOAD,
    &mixed::WORKLOAD,
    &mixed::CHANGE,
    &burst::WORKLOAD,
    &cross::WORKLOAD,
    &r#yield::WORKLOAD,
    &timers::WORKLOAD,
    &churn::WORKLOAD,
    &echo::WORKLOAD,
    &connect::WORKLOAD,
    &fifo::WORKLOAD,
    &disk::WORKLOAD,
    &bursts::WORKLOAD,
    &stages::WORKLOAD,
    &senders::WORKLOAD,
    &calls::WORKLOAD,
    &flow::WORKLOAD,
    &fused::WORKLOAD,
    &gnutella::WORKLOAD,
];

/// Returns the workload with that name.
pub fn find(name: &str) -> Option<&'static Workload> {
    ALL.iter().copied().find(|workload| workload.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_workload_has_a_floor() {
        for workload in ALL {
            assert_eq!(
                ALL.iter()
                    .filter(|other| other.name == workload.name)
                    .count(),
                1
            );
            let names: Vec<_> = workload.peers.iter().map(|peer| peer.name).collect();
            assert!(
                names.iter().any(|name| name.starts_with("floor")),
                "{}",
                workload.name
            );
            for name in &names {
                assert_eq!(
                    names.iter().filter(|other| other == &name).count(),
                    1,
                    "{name}"
                );
            }
        }
    }
}
