//! Sends the rest of a response to a client that may be slow.

use std::future::{Future as _, poll_fn};
use std::io::{self, IoSlice};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tussah::net::Hangup;
use tussah::time::timeout;

use crate::web::config::Timeouts;
use crate::web::connection::exchange::Exchange;
use crate::web::connection::response::{Response, SLICES_MAX};
use crate::web::connection::stream::{More, Stream, is_in_memory, read_file};
use crate::web::server::Server;

/// The maximum amount of a file's data that is sent at once, in bytes, which takes about 70 µs,
/// before other threads get a turn and the client's rate is checked.
const PIECE_BYTES: u64 = 256 * 1024;

/// Sends the rest of a response, and records how much of it was sent.
///
/// # Errors
/// Returns the system's error, `TimedOut` if the client is too slow, `UnexpectedEof` if a file has
/// become shorter, or the error of a body that is made while it is sent.
pub(super) async fn all(
    stream: &Stream,
    server: &Server,
    exchange: &mut Exchange,
) -> io::Result<()> {
    let sent = rest(stream, server, exchange).await;
    server.look();
    match sent {
        Ok(()) => server.note(stream, exchange),
        Err(_) => server.note_broken(stream, exchange),
    }
    let is_cut = |error: &io::Error| {
        let source = exchange.response.source.as_ref();
        error.kind() == io::ErrorKind::TimedOut || source.is_some_and(|one| one.is_until_close())
    };
    if sent.as_ref().is_err_and(is_cut) {
        stream.reset_when_closed();
    }
    sent
}

async fn rest(stream: &Stream, server: &Server, exchange: &mut Exchange) -> io::Result<()> {
    let timeouts = &server.config.timeouts;
    let mut pace = Pace::new(timeouts);
    let mut room = Room::new(timeouts.write);
    let mut sends_files = stream.sends_files();
    loop {
        let response = &mut exchange.response;
        if response.is_sent() {
            flush(stream, timeouts).await?;
            let begun = Instant::now();
            if !more(stream, server, response).await? {
                return Ok(());
            }
            pace.skip(begun.elapsed());
            continue;
        }
        if response.file().is_some() && !sends_files || is_on_disk(response) {
            let begun = Instant::now();
            read(stream, response).await?;
            pace.skip(begun.elapsed());
        }
        let sent = match room.send(stream, response).await {
            // The system cannot send this file, or has no memory for it. Reading and writing report
            // any other error.
            Err(error) if response.file().is_some() && error.raw_os_error().is_some() => {
                sends_files = false;
                continue;
            }
            sent => sent?,
        };
        response.advance(sent);
        pace.sent(sent)?;
        if response.file().is_some() || room.is_unreported {
            // The runtime's budget does not count these bytes, so other threads get a turn here.
            tussah::yield_now().await;
        }
    }
}

/// Waits for more of a body that is made while it is sent. Returns false at its end.
///
/// # Errors
/// Returns the error of the body, or `ConnectionAborted` if the client has disconnected.
async fn more(stream: &Stream, server: &Server, response: &mut Response) -> io::Result<bool> {
    if response.source.is_none() {
        return Ok(false);
    }
    let gone_at = server.config.half_close.gone_at();
    unless_gone(stream, gone_at, |cx| response.poll_more(cx)).await
}

/// Reads the next part of a file, however long its disk takes: that is not the client's fault.
///
/// # Errors
/// Returns the system's error, `UnexpectedEof` if the file has become shorter, or
/// `ConnectionAborted` if the client has disconnected.
async fn read(stream: &Stream, response: &mut Response) -> io::Result<()> {
    let data = {
        let (file, from, len) = response.file().expect("a file is next");
        let mut reading = pin!(read_file(file, from, len));
        // A client that has closed only its sending side gets its file.
        unless_gone(stream, Hangup::Full, |cx| reading.as_mut().poll(cx)).await?
    };
    response.put_read(data);
    Ok(())
}

/// Waits for what this server has to make, unless the client disconnects.
async fn unless_gone<T>(
    stream: &Stream,
    gone_at: Hangup,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>,
) -> io::Result<T> {
    poll_fn(|cx| match stream.poll_more(cx, gone_at) {
        Poll::Ready(More::Gone) => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
        Poll::Ready(More::Bytes) | Poll::Pending => poll(cx),
    })
    .await
}

async fn flush(stream: &Stream, timeouts: &Timeouts) -> io::Result<()> {
    let flush = poll_fn(|cx| stream.poll_flush(cx));
    timeout(timeouts.write, flush).await?
}

/// Sends as much of the next pieces as there is room for, and waits until there is some room.
async fn some(stream: &Stream, response: &mut Response) -> io::Result<u64> {
    if let Some((file, from, len)) = response.file() {
        return stream.send_file(file, from, len.min(PIECE_BYTES)).await;
    }
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let count = response.slices(&mut slices);
    let sent = poll_fn(|cx| stream.poll_write(cx, &slices[..count])).await?;
    Ok(sent as u64)
}

/// Returns whether the next piece has to be read from a disk.
fn is_on_disk(response: &Response) -> bool {
    let file = response.file();
    file.is_some_and(|(file, from, len)| !is_in_memory(file, from, len.min(PIECE_BYTES)))
}

/// Does the same as [`some`] without waiting for room. Returns `None` if there is none.
fn some_at_once(stream: &Stream, response: &Response) -> io::Result<Option<u64>> {
    let sent = if let Some((file, from, len)) = response.file() {
        stream.try_send_file(file, from, len.min(PIECE_BYTES))
    } else {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let count = response.slices(&mut slices);
        let more = count < response.pieces.len();
        let sent = stream.try_write_vectored(&slices[..count], more);
        sent.map(|sent| sent as u64)
    };
    match sent {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        sent => sent.map(Some),
    }
}

/// The room that a client makes by reading.
///
/// The system reports room only when a third of its buffer is free. It also moves data to the
/// client's system without a report, for some milliseconds after the client has stopped reading. A
/// client that reads slowly therefore needs attempts that no report asks for, and for a client that
/// reads nothing these attempts have to end soon.
struct Room {
    /// How long a client may read nothing.
    stall_max: Duration,
    /// True if the last bytes went into room that the system has not reported.
    is_unreported: bool,
}

/// The maximum number of attempts without a report in the time for which a client may read nothing.
/// An attempt that finds room restarts this time.
const ATTEMPTS: u32 = 8;

impl Room {
    fn new(stall_max: Duration) -> Self {
        Self {
            stall_max,
            is_unreported: false,
        }
    }

    /// Sends as much of the next pieces as there is room for, and waits until there is some room.
    /// Returns 0 if a disk has to be read first.
    ///
    /// # Errors
    /// Returns the system's error, or `TimedOut` if the client has read nothing for too long.
    async fn send(&mut self, stream: &Stream, response: &mut Response) -> io::Result<u64> {
        if (self.is_unreported || response.file().is_some())
            && let Some(sent) = some_at_once(stream, response)?
        {
            return Ok(sent);
        }
        self.is_unreported = false;
        for _ in 0..ATTEMPTS {
            if let Ok(sent) = timeout(self.stall_max / ATTEMPTS, some(stream, response)).await {
                return sent;
            }
            if is_on_disk(response) {
                return Ok(0); // the system has dropped the data, and the caller reads it again
            }
            if let Some(sent) = some_at_once(stream, response)? {
                self.is_unreported = true;
                return Ok(sent);
            }
        }
        let text = "the client reads nothing (timeouts.write)";
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }
}

/// Sends some bytes.
pub(super) async fn bytes(stream: &Stream, server: &Server, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let slices = [IoSlice::new(bytes)];
        let write = poll_fn(|cx| stream.poll_write(cx, &slices));
        let sent = timeout(server.config.timeouts.write, write).await??;
        bytes = &bytes[sent..];
    }
    flush(stream, &server.config.timeouts).await
}

/// The rate at which a client reads.
struct Pace<'a> {
    timeouts: &'a Timeouts,
    begun: Instant,
    bytes: u64,
}

impl<'a> Pace<'a> {
    fn new(timeouts: &'a Timeouts) -> Self {
        Self {
            timeouts,
            begun: Instant::now(),
            bytes: 0,
        }
    }

    /// Records that for this time there was nothing to read.
    fn skip(&mut self, time: Duration) {
        self.begun += time;
    }

    /// Records that the client has accepted `bytes` more bytes.
    fn sent(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes += bytes;
        let timeouts = self.timeouts;
        let passed = self.begun.elapsed();
        if passed < timeouts.write {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.bytes);
        self.begun = Instant::now();
        match timeouts.rate {
            Some(rate) if (bytes as f64) < rate as f64 * passed.as_secs_f64() => {
                let text =
                    format!("the client reads less than {rate} bytes per second (timeouts.rate)");
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
            _ => Ok(()),
        }
    }
}
