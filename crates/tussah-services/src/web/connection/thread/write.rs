//! Sends the rest of a response to a client that may be slow.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::Poll;
use std::time::{Duration, Instant};

use tussah::time::timeout;

use crate::web::config::Timeouts;
use crate::web::connection::exchange::Exchange;
use crate::web::connection::response::{Response, SLICES_MAX};
use crate::web::connection::stream::{More, Stream, is_in_memory};
use crate::web::server::Server;

/// Bound, in bytes: the maximum amount of a file's data that is sent at once, which takes about 70
/// µs, before other threads get a turn and the client's rate is checked.
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
        let sent = room.send(stream, response).await?;
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
    poll_fn(|cx| match stream.poll_more(cx, gone_at) {
        Poll::Ready(More::Gone) => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
        Poll::Ready(More::Bytes) | Poll::Pending => response.poll_more(cx),
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

/// Does the same as [`some`] without waiting. Returns `None` if there is no room, or if a piece of
/// a file fails or is on a disk: [`some`] then copies the piece, or reports the error.
fn some_at_once(stream: &Stream, response: &Response) -> io::Result<Option<u64>> {
    if is_on_disk(response) {
        return Ok(None);
    }
    if let Some((file, from, len)) = response.file() {
        return Ok(stream.try_send_file(file, from, len.min(PIECE_BYTES)).ok());
    }
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let count = response.slices(&mut slices);
    let more = count < response.pieces.len();
    match stream.try_write_vectored(&slices[..count], more) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        sent => sent.map(|sent| Some(sent as u64)),
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

/// Bound, in attempts: the maximum number without a report in the time for which a client may read
/// nothing. An attempt that finds room restarts this time.
const ATTEMPTS: u32 = 8;

impl Room {
    fn new(stall_max: Duration) -> Self {
        Self {
            stall_max,
            is_unreported: false,
        }
    }

    /// Sends as much of the next pieces as there is room for, and waits until there is some room.
    ///
    /// # Errors
    /// Returns the system's error, or `TimedOut` if the client has read nothing for too long.
    async fn send(&mut self, stream: &Stream, response: &mut Response) -> io::Result<u64> {
        // `some` would check again whether the piece is on a disk.
        if (self.is_unreported || response.file().is_some())
            && let Some(sent) = some_at_once(stream, response)?
        {
            return Ok(sent);
        }
        self.is_unreported = false;
        // An attempt would interrupt the reading of a disk.
        let attempts = if is_on_disk(response) { 1 } else { ATTEMPTS };
        for _ in 0..attempts {
            if let Ok(sent) = timeout(self.stall_max / attempts, some(stream, response)).await {
                return sent;
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
