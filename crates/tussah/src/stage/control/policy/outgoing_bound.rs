//! A bound on the write queue of each socket.
//!
//! SEDA (Welsh, Culler and Brewer, SOSP 2001), §5.2.2: a packet router ran out of memory, as "a
//! large number of outgoing packets were queueing up for certain wide-area connections"; the
//! authors' solution was "to impose a threshold on the outgoing packet queue for each socket, and
//! close connections that exceed their threshold". The paper's threshold is fixed. The bound here
//! can also divide a fixed amount of memory among the open connections.

use crate::stage::control::{Cadence, Controller, Owns, Sample, Settings};

/// The smallest part of the shared memory for a peer, in bytes: one packet.
const LEAST: u64 = 16 * 1024;

/// The time between two counts of the connections, in nanoseconds. In this time a new connection
/// can hardly queue much data.
const INTERVAL_NS: u64 = 20_000_000;

/// A controller that bounds the number of bytes in the write queue of each socket.
///
/// Pass it to [`Sockets::control_writes`](crate::stage::net::Sockets::control_writes).
/// [`SocketOptions::when_full`](crate::stage::net::SocketOptions::when_full) determines what
/// happens when a buffer would make a write queue exceed the bound. By default, the connection is
/// closed.
///
/// # Examples
/// ```
/// use tussah::stage::Network;
/// use tussah::stage::control::policy::OutgoingBound;
/// use tussah::stage::net::Sockets;
///
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// let network = Network::on(runtime.handle(), "router");
/// let sockets = Sockets::new(&network, "sockets")?;
/// // 128 KiB each; less if there are more than 500 connections.
/// sockets.control_writes(OutgoingBound::each(128 * 1024).of_all(64 * 1024 * 1024))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OutgoingBound {
    each: u64,
    all: Option<u64>,
}

impl OutgoingBound {
    /// Creates a controller that bounds the number of bytes in the write queue of each socket. A
    /// value above
    /// [`SocketOptions::outgoing_bytes_max`](crate::stage::net::SocketOptions::outgoing_bytes_max)
    /// has no effect.
    #[must_use]
    pub fn each(bytes: u64) -> Self {
        Self {
            each: bytes,
            all: None,
        }
    }

    /// Also bounds the total number of bytes in all write queues. Each socket, including each
    /// listening socket, gets an equal share of the total: at least 16 KiB, and at most the bound
    /// that was passed to [`each`](Self::each). If new sockets reduce this share below the length
    /// of a queue, the queued data stays, but no more data is queued until enough of it has been
    /// written.
    #[must_use]
    pub fn of_all(self, bytes: u64) -> Self {
        let all = Some(bytes);
        Self { all, ..self }
    }
}

impl Controller for OutgoingBound {
    fn name(&self) -> &'static str {
        "outgoing-bound"
    }

    fn owns(&self) -> Owns {
        Owns::OUTGOING
    }

    fn cadence(&self) -> Cadence {
        Cadence::every_ns(INTERVAL_NS)
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        let connections = sample.servlets.target.max(1) as u64;
        let part = self.all.map_or(u64::MAX, |all| all / connections);
        let wanted = part.max(LEAST).min(self.each);
        Settings {
            outgoing_max: (wanted != sample.outgoing_max).then_some(wanted),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::Servlets;
    use crate::stage::control::testing::quiet;

    #[test]
    fn the_memory_is_divided() {
        let check = |mut bound: OutgoingBound, connections, expected| {
            let mut sample = Sample {
                servlets: Servlets {
                    target: connections,
                    ..Servlets::default()
                },
                outgoing_max: u64::MAX,
                ..quiet()
            };
            let wanted = bound.sample(&sample, 0).outgoing_max;
            assert_eq!(wanted, Some(expected), "{connections}");
            sample.outgoing_max = expected;
            assert_eq!(bound.sample(&sample, 0).outgoing_max, None);
        };
        let mib = 1024 * 1024;
        check(OutgoingBound::each(1000), 5, 1000);
        check(OutgoingBound::each(mib).of_all(8 * mib), 0, mib);
        check(OutgoingBound::each(mib).of_all(8 * mib), 8, mib);
        check(OutgoingBound::each(mib).of_all(8 * mib), 16, mib / 2);
        check(OutgoingBound::each(mib).of_all(8 * mib), 10_000, LEAST);
        check(OutgoingBound::each(1000).of_all(8 * mib), 10_000, 1000);
    }
}
