//! The options of a router.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::time::Duration;

/// The options of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The address to which other peers connect; port 0 selects a free port. Gnutella does not
    /// support IPv6.
    pub listen: SocketAddrV4,
    /// The address at which the router serves shared files and its status over HTTP; port 0 selects
    /// a free port.
    pub http: SocketAddrV4,
    /// The hosts to connect to first, each as `HOST:PORT`.
    pub peers: Vec<String>,
    /// A file with additional hosts, one per line. Empty lines and lines that begin with `#` are
    /// skipped.
    pub hosts: Option<PathBuf>,
    /// The number of peers to keep. While the router has fewer peers than this, it connects to
    /// further hosts. The range is 0 to 100.
    pub keep: usize,
    /// Bound, in peers: at most this many may be connected at the same time; a further one is
    /// rejected. The value must be from 1 to 10,000, and at least `keep`.
    pub peers_max: usize,
    /// Bound, in peers: at most this many may be connected from the same address; a further one is
    /// rejected. The range is 1 to 10,000.
    pub each_max: usize,
    /// Bound, in bytes: the total length of the packets queued for a peer. The router disconnects a
    /// peer whose queue exceeds the bound. The range is 64 KiB to 1 GiB.
    pub queue: usize,
    /// Bound, in hops: the length of a packet's path from its sender to its last receiver. The
    /// range is 1 to 7.
    pub ttl: u8,
    /// Bound, in routes: the router remembers at most this many, separately for pings, queries and
    /// servents. The range is 1 to 2^31.
    pub routes: usize,
    /// The time after which the router disconnects a peer that sends nothing; at least 80 ms.
    pub silence: Duration,
    /// A directory with files to share.
    pub share: Option<PathBuf>,
    /// The time limit for sending the last packets and finishing downloads when the router shuts
    /// down.
    pub drain: Duration,
    /// True if [`Gnutella::run`](super::Gnutella::run) logs the end of each connection, with its
    /// reason.
    pub verbose: bool,
    /// The number of workers; `None` means one per CPU.
    pub workers: Option<usize>,
    /// An artificial delay before each search of the shared files. Use it in measurements such as
    /// the one in section 5.2.2 of the SEDA paper.
    pub bottleneck: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddrV4::new([127, 0, 0, 1].into(), 6346),
            http: SocketAddrV4::new([127, 0, 0, 1].into(), 6347),
            peers: Vec::new(),
            hosts: None,
            keep: 4,
            peers_max: 100,
            each_max: 16,
            queue: 1 << 20,
            ttl: tussah_wire::gnutella::LIFE_MAX,
            routes: 100_000,
            silence: Duration::from_secs(120),
            share: None,
            drain: Duration::from_secs(5),
            verbose: false,
            workers: None,
            bottleneck: None,
        }
    }
}

impl Options {
    /// Returns an error if an option is out of range.
    pub(super) fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: usize, min: usize, max: usize| match value {
            value if (min..=max).contains(&value) => Ok(()),
            value => Err(format!("`{name}` is {value}: expected {min} to {max}")),
        };
        within("keep", self.keep, 0, KEEP_MAX)?;
        within("limit-peers", self.peers_max, self.keep.max(1), PEERS_MAX)?;
        within("limit-each", self.each_max, 1, PEERS_MAX)?;
        within(
            "ttl",
            self.ttl.into(),
            1,
            tussah_wire::gnutella::LIFE_MAX.into(),
        )?;
        within("routes", self.routes, 1, 1 << 31)?;
        within("limit-queue", self.queue, QUEUE_MIN, QUEUE_MAX)?;
        if self.silence < SILENCE_MIN {
            let silence = self.silence;
            return Err(format!(
                "`silence` is {silence:?}: expected at least {SILENCE_MIN:?}"
            ));
        }
        Ok(())
    }

    /// Returns the time between two looks at silent peers.
    pub(super) fn look(&self) -> Duration {
        (self.silence / 8).min(Duration::from_secs(1))
    }
}

/// Bound, in peers: the largest value of `keep`, and so of the attempts to connect at a time.
const KEEP_MAX: usize = 100;
/// Bound, in peers: the largest value of `limit-peers` and `limit-each`. A broadcast touches each
/// of them.
const PEERS_MAX: usize = 10_000;
/// The smallest value of `queue`, in bytes: about the longest packet.
const QUEUE_MIN: usize = 64 << 10;
/// Bound, in bytes: the largest value of `limit-queue`, which each slow peer may need.
const QUEUE_MAX: usize = 1 << 30;
/// The shortest time for which a peer may send nothing.
const SILENCE_MIN: Duration = Duration::from_millis(80);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range() {
        let check = |change: fn(&mut Options), expected: &str| {
            let mut options = Options::default();
            change(&mut options);
            assert_eq!(options.check().expect_err(expected), expected);
        };
        assert_eq!(Options::default().check(), Ok(()));
        check(|it| it.keep = 101, "`keep` is 101: expected 0 to 100");
        check(
            |it| it.peers_max = 3,
            "`limit-peers` is 3: expected 4 to 10000",
        );
        check(
            |it| it.each_max = 0,
            "`limit-each` is 0: expected 1 to 10000",
        );
        check(|it| it.ttl = 8, "`ttl` is 8: expected 1 to 7");
        check(
            |it| it.queue = 0,
            "`limit-queue` is 0: expected 65536 to 1073741824",
        );
        check(
            |it| it.routes = 0,
            "`routes` is 0: expected 1 to 2147483648",
        );
        check(
            |it| it.silence = Duration::from_millis(79),
            "`silence` is 79ms: expected at least 80ms",
        );
    }
}
