//! The time, to the second, for all connections.
//!
//! The kernel's coarse clocks lag by a few milliseconds, and are cheap enough to read for each
//! request. A timer that read an exact clock every second would keep an idle server awake. The C
//! library reads the clocks: rustix looks up the kernel's functions itself, which crashes a program
//! under valgrind.
//!
//! Code that answers many requests at once reads the clock once for all of them ([`Clock::look`]).

use std::cell::RefCell;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use tussah_wire::http::{Status, date};

const SECOND_NS: i64 = 1_000_000_000;

/// The wall clock's second, and the seconds since the start.
pub(crate) struct Clock {
    start_ns: i64,
    /// The runtime's clock, if it is moved by hand, and its start.
    by_hand: Option<(tussah::Clock, Instant)>,
    /// The start of the wall clock's next second, on the monotonic clock. A change of the wall
    /// clock then takes effect.
    next_ns: AtomicI64,
    // The values of the clocks at the last look.
    unix_s: AtomicU64,
    passed_s: AtomicU64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let clock = tussah::Handle::current().clock();
        let by_hand = clock.is_manual().then(|| {
            let start = clock.now();
            (clock, start)
        });
        Self {
            start_ns: ns(read(ClockId::CLOCK_MONOTONIC_COARSE)),
            by_hand,
            next_ns: AtomicI64::new(0),
            unix_s: AtomicU64::new(0),
            passed_s: AtomicU64::new(0),
        }
    }

    /// Reads the clocks. Call it before answering requests.
    pub(crate) fn look(&self) {
        let now_ns = ns(read(ClockId::CLOCK_MONOTONIC_COARSE));
        // Relaxed: the seconds publish nothing else.
        if now_ns >= self.next_ns.load(Ordering::Relaxed) {
            let wall = read(ClockId::CLOCK_REALTIME_COARSE);
            // A clock set to a time before 1970 counts as 1970.
            let unix_s = u64::try_from(wall.tv_sec()).unwrap_or(0);
            self.unix_s.store(unix_s, Ordering::Relaxed);
            let next_ns = now_ns + SECOND_NS - wall.tv_nsec();
            self.next_ns.store(next_ns, Ordering::Relaxed);
        }
        let passed_s = match &self.by_hand {
            Some(_) => self.passed().as_secs(),
            None => ((now_ns - self.start_ns) / SECOND_NS) as u64,
        };
        // Usually the value is unchanged, and no other worker has to read it again. A late store
        // changes nothing.
        if self.last_passed_s() < passed_s {
            self.passed_s.fetch_max(passed_s, Ordering::Relaxed);
        }
    }

    /// Returns the current second, since 1970.
    pub(crate) fn unix_s(&self) -> u64 {
        self.look();
        self.last_unix_s()
    }

    /// Returns the seconds since the start, which never decrease.
    pub(crate) fn passed_s(&self) -> u64 {
        self.look();
        self.last_passed_s()
    }

    /// Returns the time since the start, with the fraction of the second.
    pub(crate) fn passed(&self) -> Duration {
        match &self.by_hand {
            Some((clock, start)) => clock.now().saturating_duration_since(*start),
            None => {
                let passed_ns = ns(read(ClockId::CLOCK_MONOTONIC_COARSE)) - self.start_ns;
                Duration::from_nanos(passed_ns as u64)
            }
        }
    }

    /// Returns the second of the last [`look`](Self::look), since 1970, for code that answers a
    /// request after that look.
    #[inline]
    pub(crate) fn last_unix_s(&self) -> u64 {
        self.unix_s.load(Ordering::Relaxed)
    }

    /// Returns the second of the last [`look`](Self::look), counted from the start.
    #[inline]
    pub(crate) fn last_passed_s(&self) -> u64 {
        self.passed_s.load(Ordering::Relaxed)
    }

    /// Appends a status line and the date (RFC 9110, section 6.6.1), with which each response
    /// begins. Call it after a look.
    #[inline]
    pub(crate) fn begin(&self, status: Status, to: &mut Vec<u8>) {
        let unix_s = self.last_unix_s();
        LINES.with_borrow_mut(|lines| {
            if lines.unix_s != unix_s {
                lines.renew(unix_s);
            }
            if status == Status::OK {
                to.extend_from_slice(&lines.ok);
            } else {
                other(status, lines, to);
            }
        });
    }
}

fn ns(time: TimeSpec) -> i64 {
    time.tv_sec() * SECOND_NS + time.tv_nsec()
}

#[inline]
fn read(clock: ClockId) -> TimeSpec {
    clock_gettime(clock).expect("Linux has had the coarse clocks since 2.6.32")
}

/// Returns a status line with 200, and the date.
pub(crate) fn ok(unix_s: u64) -> [u8; OK_LEN] {
    let text = [OK, DATE, &date::format(unix_s), b"\r\n"].concat();
    text.try_into().expect("they are always as long")
}

#[cold]
fn other(status: Status, lines: &Lines, to: &mut Vec<u8>) {
    to.extend_from_slice(b"HTTP/1.1 ");
    to.extend_from_slice(status.code().to_string().as_bytes());
    to.push(b' ');
    to.extend_from_slice(status.reason().as_bytes());
    to.extend_from_slice(&lines.ok[OK.len()..]);
}

const OK: &[u8] = b"HTTP/1.1 200 OK";
const DATE: &[u8] = b"\r\nDate: ";
/// The length of a status line with 200 and the date.
pub(crate) const OK_LEN: usize = OK.len() + DATE.len() + date::LEN + 2;

/// The first lines of the responses of this second.
struct Lines {
    unix_s: u64,
    ok: [u8; OK_LEN],
}

impl Lines {
    #[cold]
    fn renew(&mut self, unix_s: u64) {
        self.unix_s = unix_s;
        self.ok = ok(unix_s);
    }
}

thread_local! {
    static LINES: RefCell<Lines> = const { RefCell::new(Lines { unix_s: 0, ok: [0; OK_LEN] }) };
}
