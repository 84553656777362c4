//! What the server says on its standard streams. An OS thread of each stream writes it, since who reads a pipe may stop
//! doing so: neither a worker nor the end of the server waits for that.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Bound, in bytes: what waits to be written to a stream, some thousand lines; more are lost.
const PENDING_BYTES_MAX: usize = 256 << 10;

/// Bound, in seconds: how long the end of the server waits for what is still to be written to a stream.
const FLUSH_SECONDS: u64 = 1;

/// Standard output.
pub(crate) static STDOUT: Console = Console::new("stdout", |bytes| io::stdout().write_all(bytes));

/// Standard error.
pub(crate) static STDERR: Console = Console::new("stderr", |bytes| io::stderr().write_all(bytes));

/// A standard stream.
pub(crate) struct Console {
    name: &'static str,
    write: fn(&[u8]) -> io::Result<()>,
    /// To the OS thread, which begins with the first line; `None` if there can't be one.
    writer: OnceLock<Option<Sender<Order>>>,
    /// Bytes that wait.
    pending: AtomicUsize,
    /// Lines that were lost since it was last said how many.
    lost: AtomicUsize,
}

enum Order {
    Write(Vec<u8>),
    /// Drops this when all before it was written.
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

    /// Says some lines, sooner or later. Nobody may be listening.
    pub(crate) fn say(&'static self, lines: Vec<u8>) {
        // Relaxed: of a bound nothing depends on the order.
        let before = self.pending.fetch_add(lines.len(), Ordering::Relaxed);
        if before + lines.len() > PENDING_BYTES_MAX {
            self.pending.fetch_sub(lines.len(), Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        match self.writer() {
            // It never ends.
            Some(writer) => drop(writer.send(Order::Write(lines))),
            None => self.write(&lines),
        }
    }

    /// Waits until all that was said is written, for a second at most. It blocks the OS thread.
    pub(crate) fn flush(&self) {
        let Some(Some(writer)) = self.writer.get() else {
            return; // nothing was said, or it is written already
        };
        let (done, wait) = channel();
        drop(writer.send(Order::Flush(done)));
        // It is dropped, and nothing sent: either way it is over.
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
            let text =
                format!("tussah web: messages that were lost, since nobody read them: {lost}\n");
            drop((self.write)(text.as_bytes()));
        }
        drop((self.write)(lines));
        self.pending.fetch_sub(lines.len(), Ordering::Relaxed);
    }
}
