//! Writes to the standard streams. Each stream has an OS thread, since the reader of a pipe may
//! stop reading: neither a worker nor the end of the program waits for it.

mod log;

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

pub use self::log::{Line, install_log};

/// Bound, in bytes: the maximum length of the output that waits for a stream, about a thousand
/// lines. Further output is lost.
const PENDING_BYTES_MAX: usize = 256 << 10;

/// Bound, in seconds: the maximum time for which a program that ends waits for the remaining output
/// of a stream.
const FLUSH_SECONDS: u64 = 1;

/// Standard output.
pub static STDOUT: Console = Console::new("stdout", |bytes| io::stdout().write_all(bytes));

/// Standard error.
pub static STDERR: Console = Console::new("stderr", |bytes| io::stderr().write_all(bytes));

/// A standard stream.
#[derive(Debug)]
pub struct Console {
    name: &'static str,
    write: fn(&[u8]) -> io::Result<()>,
    /// The channel to the OS thread, which starts with the first line; `None` if it could not be
    /// started.
    writer: OnceLock<Option<Sender<Order>>>,
    /// The number of waiting bytes.
    pending: AtomicUsize,
    /// The number of lines lost since the last report of losses.
    lost: AtomicUsize,
}

#[derive(Debug)]
enum Order {
    Write(Vec<u8>),
    /// Drops the sender once everything before it has been written.
    Flush(Sender<()>),
}

impl Console {
    const fn new(name: &'static str, write: fn(&[u8]) -> io::Result<()>) -> Self {
        Self {
            name,
            write,
            writer: OnceLock::new(),
            pending: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
        }
    }

    /// Queues lines for writing. The stream may have no reader.
    pub fn say(&'static self, lines: Vec<u8>) {
        // Relaxed: a bound depends on no order.
        let before = self.pending.fetch_add(lines.len(), Ordering::Relaxed);
        if before + lines.len() > PENDING_BYTES_MAX {
            self.pending.fetch_sub(lines.len(), Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        match self.writer() {
            // The OS thread never ends.
            Some(writer) => drop(writer.send(Order::Write(lines))),
            None => self.write(&lines),
        }
    }

    /// Waits until all queued lines have been written, for at most a second. It blocks the OS
    /// thread.
    pub fn flush(&self) {
        let Some(Some(writer)) = self.writer.get() else {
            return; // there is nothing to write
        };
        let (done, wait) = channel();
        drop(writer.send(Order::Flush(done)));
        // The sender is dropped without sending: either result means the end.
        let _ = wait.recv_timeout(Duration::from_secs(FLUSH_SECONDS));
    }

    fn writer(&'static self) -> Option<&'static Sender<Order>> {
        let start = || {
            let (sender, orders) = channel();
            let thread = thread::Builder::new().name(self.name.into());
            let started = thread.spawn(move || self.run(&orders));
            started.is_ok().then_some(sender)
        };
        self.writer.get_or_init(start).as_ref()
    }

    fn run(&self, orders: &Receiver<Order>) {
        for order in orders {
            match order {
                Order::Write(lines) => self.write(&lines),
                Order::Flush(done) => drop(done),
            }
        }
    }

    fn write(&self, lines: &[u8]) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let text = format!("messages lost because nobody read the output: {lost}\n");
            drop((self.write)(text.as_bytes()));
        }
        drop((self.write)(lines));
        self.pending.fetch_sub(lines.len(), Ordering::Relaxed);
    }
}
