//! Counts of responses by route: status codes, bytes, rejections. Each OS thread has its own
//! counters, so that counting costs a few instructions per request.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tussah_wire::http::Status;

/// The counters of requests that are neither for a file nor for a route: malformed requests, and
/// requests for the status page.
pub(crate) const OTHER: u32 = 0;

/// The counters of requests for files.
pub(crate) const FILES: u32 = 1;

/// Returns the index of a route's counters.
pub(crate) fn of_route(index: usize) -> u32 {
    index as u32 + 2
}

/// The counters other than the classes of status codes, which come first.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    /// Bytes sent, heads included.
    Bytes = 5,
    /// Requests rejected because they could not be answered within the target.
    Overload,
    /// Requests rejected because the queue was full.
    Full,
    /// Requests that were cancelled because their clients had disconnected.
    Gone,
    /// Requests that the server cut before their responses began.
    Cut,
    /// Requests for a page that was not in memory.
    Missed,
    /// Requests for a page that was in memory, after its file was checked again.
    Checked,
}

/// The number of counters of each route and OS thread, up to the last of [`Count`].
const COUNTS: usize = Count::Checked as usize + 1;

/// The counters of a route on some OS threads, aligned so that no two of them share a cache line.
#[derive(Default)]
#[repr(align(128))]
struct Counters([AtomicU64; COUNTS]);

/// The sums of a route's counters.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counted([u64; COUNTS]);

/// All counters of a process.
pub(crate) struct Counts {
    /// The counters of the first shard, then those of the next, and so on.
    all: Box<[Counters]>,
    sources: usize,
    /// The number of shards, a power of two, minus 1.
    mask: usize,
}

/// The value for an OS thread that has counted nothing yet.
const NO_SHARD: usize = usize::MAX;

thread_local! {
    /// The shard of this OS thread, in its lower bits.
    static SHARD: Cell<usize> = const { Cell::new(NO_SHARD) };
}

#[cold]
fn first_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    SHARD.set(number);
    number
}

impl Counts {
    /// Creates counters for `routes` routes and `workers` workers.
    pub(crate) fn new(routes: usize, workers: usize) -> Self {
        let sources = of_route(routes) as usize;
        let shards = workers.next_power_of_two();
        Self {
            all: (0..sources * shards).map(|_| Counters::default()).collect(),
            sources,
            mask: shards - 1,
        }
    }

    #[inline]
    fn here(&self, source: u32) -> &[AtomicU64; COUNTS] {
        let mut number = SHARD.get();
        if number == NO_SHARD {
            number = first_shard();
        }
        &self.all[(number & self.mask) * self.sources + source as usize].0
    }

    /// Counts a response of which `bytes` bytes were sent.
    #[inline]
    pub(crate) fn add_response(&self, source: u32, status: Status, bytes: u64) {
        let class = usize::from(status.code() / 100).clamp(1, 5) - 1;
        let here = self.here(source);
        // Relaxed: counters publish nothing else.
        here[class].fetch_add(1, Ordering::Relaxed);
        here[Count::Bytes as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts another event.
    pub(crate) fn add(&self, source: u32, count: Count) {
        self.here(source)[count as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the sums of a source over all OS threads.
    pub(crate) fn of(&self, source: u32) -> Counted {
        let mut counted = Counted::default();
        for shard in self.all.chunks(self.sources) {
            for (sum, count) in counted.0.iter_mut().zip(&shard[source as usize].0) {
                *sum += count.load(Ordering::Relaxed);
            }
        }
        counted
    }

    /// Returns the index of a route's counters. Routes for which there is no room, because a
    /// configuration has more of them than the first one, count as other requests.
    #[inline]
    pub(crate) fn source_of(&self, route: usize) -> u32 {
        let source = of_route(route);
        if (source as usize) < self.sources {
            source
        } else {
            OTHER
        }
    }

    /// Returns all sources: the server itself, files, and routes.
    pub(crate) fn sources(&self) -> std::ops::Range<u32> {
        0..self.sources as u32
    }
}

impl Counted {
    /// Returns responses by the class of their status, from 1xx to 5xx.
    pub(crate) fn codes(&self) -> [u64; 5] {
        std::array::from_fn(|class| self.0[class])
    }

    /// Returns the number of responses with any status.
    pub(crate) fn responses(&self) -> u64 {
        self.codes().iter().sum()
    }

    pub(crate) fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_several_threads_are_summed() {
        let counts = Counts::new(2, 3);
        std::thread::scope(|scope| {
            for _ in 0..7 {
                scope.spawn(|| {
                    for code in [100, 200, 204, 404, 503, 999] {
                        let status = Status::new(code).expect("it has three digits");
                        counts.add_response(of_route(1), status, 10);
                    }
                    counts.add(FILES, Count::Missed);
                });
            }
        });
        let route = counts.of(of_route(1));
        assert_eq!(route.codes(), [7, 14, 0, 7, 14]);
        assert_eq!((route.responses(), route.get(Count::Bytes)), (42, 420));
        assert_eq!(counts.of(FILES).get(Count::Missed), 7);
        assert_eq!(counts.of(of_route(0)).responses(), 0);
        assert_eq!(counts.source_of(1), of_route(1));
        assert_eq!(counts.source_of(2), OTHER);
    }
}
