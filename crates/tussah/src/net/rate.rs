//! Rate limits on reading from sockets.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time window over which rates are averaged.
const WINDOW: Duration = Duration::from_secs(1);

/// A read takes at most this fraction of the window's allowance, so that a large buffer does not
/// run far ahead.
const PIECES: f64 = 8.0;

/// A limit on the read rate of one or more streams: in bytes per second, in reads per second, or in
/// both.
///
/// This type implements SEDA's input rate limit (SOSP 2001, section 4.1). The rate is averaged over
/// a moving window of one second, and reads are delayed while the average exceeds the limit. Unlike
/// in SEDA, the delay is not fixed: it lasts until the average has fallen to the limit, so the
/// limit holds in the long term for any pattern of reads. After a pause, the streams can
/// immediately read as much as the limit allows in a whole window.
///
/// Unread data stays in the system's buffer. When this buffer is full, flow control makes the peer
/// stop sending.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tussah::net::{RateLimit, TcpListener, TcpStream};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// # let listener = TcpListener::bind("127.0.0.1:0")?;
/// # let client = TcpStream::connect(listener.local_addr()?).await?;
/// let uploads = Arc::new(RateLimit::bytes(1_000_000)); // per second, for all streams together
/// let (stream, _) = listener.accept().await?;
/// stream.set_read_limit(Some(uploads.clone()));
/// # client.write_all(b"hello").await?;
/// # let mut buffer = [0; 16];
/// # stream.read(&mut buffer).await?;
/// assert_eq!(uploads.bytes_read(), 5);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct RateLimit {
    /// The limit, in bytes per second.
    bytes: Option<f64>,
    /// The limit, in reads per second.
    reads: Option<f64>,
    window: Mutex<Window>,
}

/// The state of the moving average.
#[derive(Debug, Default)]
struct Window {
    /// Bytes and reads that the average still counts. They decay at the rate of the limit.
    bytes: f64,
    reads: f64,
    /// The time of the last decay.
    since: Option<Instant>,
    bytes_read: u64,
    reads_delayed: u64,
}

impl RateLimit {
    /// Creates a limit in bytes per second.
    ///
    /// # Panics
    /// Panics if the rate is 0.
    #[must_use]
    pub fn bytes(bytes_per_second: u64) -> Self {
        assert!(bytes_per_second > 0, "a rate limit must not be zero");
        Self {
            bytes: Some(bytes_per_second as f64),
            reads: None,
            window: Mutex::default(),
        }
    }

    /// Creates a limit in reads per second.
    ///
    /// # Panics
    /// Panics if the rate is 0.
    #[must_use]
    pub fn reads(reads_per_second: u64) -> Self {
        assert!(reads_per_second > 0, "a rate limit must not be zero");
        Self {
            bytes: None,
            reads: Some(reads_per_second as f64),
            window: Mutex::default(),
        }
    }

    /// Adds a limit in reads per second. Such a limit also slows down peers that send many small
    /// messages.
    ///
    /// # Panics
    /// Panics if the rate is 0.
    #[must_use]
    pub fn and_reads(self, reads_per_second: u64) -> Self {
        let reads = Self::reads(reads_per_second).reads;
        Self { reads, ..self }
    }

    /// Creates the same limit for another stream, with nothing read yet.
    pub(crate) fn another(&self) -> Self {
        Self {
            bytes: self.bytes,
            reads: self.reads,
            window: Mutex::default(),
        }
    }

    /// Returns the number of bytes read under this limit.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.window().bytes_read
    }

    /// Returns the number of reads that the limit delayed.
    #[must_use]
    pub fn reads_delayed(&self) -> u64 {
        self.window().reads_delayed
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the most bytes that one read may take.
    pub(crate) fn piece_bytes(&self) -> usize {
        let piece = self.bytes.map(|rate| rate * WINDOW.as_secs_f64() / PIECES);
        piece.map_or(usize::MAX, |bytes| (bytes as usize).max(1))
    }

    /// Returns how long the next read must wait, if at all. `again` is set if it has already
    /// waited.
    pub(crate) fn delay(&self, now: Instant, again: bool) -> Option<Duration> {
        let mut window = self.window();
        window.forget(now, self);
        let over = |counted: f64, rate: Option<f64>| {
            rate.map_or(0.0, |rate| counted / rate - WINDOW.as_secs_f64())
        };
        let seconds = over(window.bytes, self.bytes).max(over(window.reads, self.reads));
        if seconds <= 0.0 {
            return None;
        }
        window.reads_delayed += u64::from(!again);
        // The result is never rounded down to zero, which would make the caller ask forever.
        Some(Duration::from_secs_f64(seconds).max(Duration::from_nanos(1)))
    }

    /// Counts a read.
    pub(crate) fn count(&self, now: Instant, bytes: usize) {
        let mut window = self.window();
        window.forget(now, self);
        window.bytes += bytes as f64;
        window.reads += 1.0;
        window.bytes_read += bytes as u64;
    }
}

impl Window {
    fn forget(&mut self, now: Instant, limit: &RateLimit) {
        let since = self.since.replace(now).unwrap_or(now);
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        self.bytes = (self.bytes - limit.bytes.unwrap_or(0.0) * seconds).max(0.0);
        self.reads = (self.reads - limit.reads.unwrap_or(0.0) * seconds).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads as fast as the limit allows, in simulated time. Returns the bytes and reads of the
    /// last nine of ten seconds.
    fn simulate(limit: &RateLimit, len: usize) -> (u64, u64) {
        let start = Instant::now();
        let mut now = start;
        let (mut bytes, mut reads) = (0, 0);
        while now < start + Duration::from_secs(10) {
            if let Some(delay) = limit.delay(now, false) {
                now += delay;
            }
            let len = len.min(limit.piece_bytes());
            limit.count(now, len);
            if now > start + Duration::from_secs(1) {
                bytes += len as u64;
                reads += 1;
            }
            now += Duration::from_micros(10);
        }
        (bytes, reads)
    }

    #[test]
    fn the_rate_is_met_whatever_the_reads_are_like() {
        for len in [100, 1_000, 10_000, 1_000_000] {
            let (bytes, _) = simulate(&RateLimit::bytes(100_000), len);
            assert!((850_000..=950_000).contains(&bytes), "{len}: {bytes}");
        }
        let (_, reads) = simulate(&RateLimit::reads(100), 5);
        assert!((850..=950).contains(&reads), "{reads}");
    }

    #[test]
    fn the_stricter_limit_counts() {
        let both = || RateLimit::bytes(100_000).and_reads(100);
        let (bytes, reads) = simulate(&both(), 10);
        assert!((850..=950).contains(&reads) && bytes < 10_000);
        let (bytes, reads) = simulate(&both(), 10_000);
        assert!(reads < 100 && (850_000..=950_000).contains(&bytes));
    }

    #[test]
    fn a_pause_allows_a_window_at_once() {
        let limit = RateLimit::bytes(100);
        let start = Instant::now();
        limit.count(start, 100);
        assert_eq!(limit.delay(start, false), None);
        limit.count(start, 50);
        assert_eq!(limit.delay(start, false), Some(Duration::from_millis(500)));
        let later = start + Duration::from_secs(100);
        assert_eq!(limit.delay(later, false), None);
        limit.count(later, 100);
        assert_eq!(limit.delay(later, false), None);
        assert_eq!((limit.bytes_read(), limit.reads_delayed()), (250, 1));
    }

    #[test]
    #[should_panic = "a rate limit must not be zero"]
    fn no_rate() {
        let _ = RateLimit::bytes(0);
    }
}
