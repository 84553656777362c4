//! A limit on the rate at which sockets are read.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time over which rates are averaged.
const WINDOW: Duration = Duration::from_secs(1);

/// A read takes at most this part of what the window allows, so that one with a large buffer doesn't run far ahead.
const PIECES: f64 = 8.0;

/// A limit on the rate at which streams are read: in bytes, in reads, or in both; for one stream, or shared by several.
///
/// SEDA's input rate limit (SOSP 2001, section 4.1): the rate is averaged over a moving window of a second, and a read is delayed
/// while the average is above the limit. Our delay is not fixed but as long as the average needs to come down, so that the rate
/// is met in the long run whatever the reads are like. After a pause, what the window allows may come at once.
///
/// What is not read stays with the system, and then with the peer, whose sending stops.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tussah::net::{RateLimit, TcpListener, TcpStream};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// # let listener = TcpListener::bind("127.0.0.1:0")?;
/// # let client = TcpStream::connect(listener.local_addr()?).await?;
/// let uploads = Arc::new(RateLimit::bytes(1_000_000)); // a second, of all together
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
    /// In bytes a second.
    bytes: Option<f64>,
    /// In reads a second.
    reads: Option<f64>,
    window: Mutex<Window>,
}

/// What the average is made of.
#[derive(Debug, Default)]
struct Window {
    /// Bytes and reads that the average still counts; they are forgotten at the rate of the limit.
    bytes: f64,
    reads: f64,
    /// When they were last forgotten.
    since: Option<Instant>,
    bytes_read: u64,
    reads_delayed: u64,
}

impl RateLimit {
    /// So many bytes a second.
    ///
    /// # Panics
    /// If that is none.
    #[must_use]
    pub fn bytes(bytes_per_second: u64) -> Self {
        assert!(bytes_per_second > 0, "a rate limit is above zero");
        Self {
            bytes: Some(bytes_per_second as f64),
            reads: None,
            window: Mutex::default(),
        }
    }

    /// So many reads a second.
    ///
    /// # Panics
    /// If that is none.
    #[must_use]
    pub fn reads(reads_per_second: u64) -> Self {
        assert!(reads_per_second > 0, "a rate limit is above zero");
        Self {
            bytes: None,
            reads: Some(reads_per_second as f64),
            window: Mutex::default(),
        }
    }

    /// The same with a limit on reads besides, which makes many small messages as dear as they are.
    ///
    /// # Panics
    /// If that is none.
    #[must_use]
    pub fn and_reads(self, reads_per_second: u64) -> Self {
        let reads = Self::reads(reads_per_second).reads;
        Self { reads, ..self }
    }

    /// The same limit for another stream, which has read nothing.
    pub(crate) fn another(&self) -> Self {
        Self {
            bytes: self.bytes,
            reads: self.reads,
            window: Mutex::default(),
        }
    }

    /// How many bytes were read under this limit.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.window().bytes_read
    }

    /// How many reads had to wait for it.
    #[must_use]
    pub fn reads_delayed(&self) -> u64 {
        self.window().reads_delayed
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much one read may take.
    pub(crate) fn piece_bytes(&self) -> usize {
        let piece = self.bytes.map(|rate| rate * WINDOW.as_secs_f64() / PIECES);
        piece.map_or(usize::MAX, |bytes| (bytes as usize).max(1))
    }

    /// How long the next read has to wait, if it has to; `again` if it has waited already.
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
        // Not rounded to none at all, or who asks again would ask for ever.
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

    /// Reads as fast as the limit lets it, in simulated time; gives the bytes and reads of the last nine of ten seconds.
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
    #[should_panic = "a rate limit is above zero"]
    fn no_rate() {
        let _ = RateLimit::bytes(0);
    }
}
