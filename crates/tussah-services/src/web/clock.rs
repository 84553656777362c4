//! The time, to the second: looked at once a second, for all connections.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tussah_wire::http::{Status, date};

/// The wall clock's second, and how many have passed.
pub(crate) struct Clock {
    unix_s: AtomicU64,
    /// Seconds since the start, which never go back.
    passed_s: AtomicU64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            unix_s: AtomicU64::new(date::unix_seconds(SystemTime::now())),
            passed_s: AtomicU64::new(0),
        }
    }

    /// Keeps it going, for as long as it is polled.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            tussah::time::sleep(Duration::from_secs(1)).await;
            let unix_s = date::unix_seconds(SystemTime::now());
            self.unix_s.store(unix_s, Ordering::Relaxed);
            self.passed_s.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The second, since 1970.
    pub(crate) fn unix_s(&self) -> u64 {
        self.unix_s.load(Ordering::Relaxed)
    }

    /// Seconds since the start.
    #[inline]
    pub(crate) fn passed_s(&self) -> u64 {
        self.passed_s.load(Ordering::Relaxed)
    }

    /// Appends a status line and the date (RFC 9110, section 6.6.1), with which each response begins.
    #[inline]
    pub(crate) fn begin(&self, status: Status, to: &mut Vec<u8>) {
        let unix_s = self.unix_s();
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

/// A status line with 200, and the date.
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
/// Bytes of a status line with 200 and the date.
pub(crate) const OK_LEN: usize = OK.len() + DATE.len() + date::LEN + 2;

/// What responses of this second begin with.
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
