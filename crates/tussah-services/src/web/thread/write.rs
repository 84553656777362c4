//! Sending the rest of an answer, to a client that may be slow.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::time::Instant;

use tussah::time::timeout;

use crate::web::config::Timeouts;
use crate::web::exchange::Exchange;
use crate::web::response::{Response, SLICES_MAX};
use crate::web::server::Server;
use crate::web::stream::Stream;

/// Bound, in bytes: what is sent of a file at once, about 50 µs of copying, before others have their turn and it is looked how fast the client takes it.
const PIECE_BYTES: u64 = 256 * 1024;

/// Sends what is left of an answer, and writes down how much of it was sent.
///
/// # Errors
/// What the system says; `TimedOut` if the client is too slow; `UnexpectedEof` if a file has become shorter.
pub(super) async fn all(
    stream: &Stream,
    server: &Server,
    exchange: &mut Exchange,
) -> io::Result<()> {
    let sent = rest(stream, server, exchange).await;
    server.note(stream, exchange);
    if matches!(&sent, Err(error) if error.kind() == io::ErrorKind::TimedOut) {
        stream.reset_when_closed();
    }
    sent
}

async fn rest(stream: &Stream, server: &Server, exchange: &mut Exchange) -> io::Result<()> {
    let timeouts = &server.config.timeouts;
    let mut pace = Pace::new(timeouts);
    loop {
        let response = &exchange.response;
        let sent = match timeout(timeouts.write, some(stream, response)).await {
            Ok(sent) => sent?,
            // The system says that there is room when there is much of it; a client that is slow may have made a little.
            Err(elapsed) => match some_at_once(stream, response) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(elapsed)?,
                sent => sent?,
            },
        };
        if exchange.response.advance(sent) {
            break;
        }
        pace.sent(sent)?;
    }
    let flush = poll_fn(|cx| stream.poll_flush(cx));
    timeout(timeouts.write, flush).await?
}

/// Sends what there is room for of what comes next, and waits until there is some.
async fn some(stream: &Stream, response: &Response) -> io::Result<u64> {
    if let Some((file, from, len)) = response.file() {
        return stream.send_file(file, from, len.min(PIECE_BYTES)).await;
    }
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let count = response.slices(&mut slices);
    let sent = poll_fn(|cx| stream.poll_write(cx, &slices[..count])).await?;
    Ok(sent as u64)
}

/// The same without waiting.
fn some_at_once(stream: &Stream, response: &Response) -> io::Result<u64> {
    if let Some((file, from, len)) = response.file() {
        return stream.try_send_file(file, from, len.min(PIECE_BYTES));
    }
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let count = response.slices(&mut slices);
    let sent = stream.try_write_vectored(&slices[..count]);
    sent.map(|sent| sent as u64)
}

/// Sends some bytes.
pub(super) async fn bytes(stream: &Stream, server: &Server, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let slices = [IoSlice::new(bytes)];
        let write = poll_fn(|cx| stream.poll_write(cx, &slices));
        let sent = timeout(server.config.timeouts.write, write).await??;
        bytes = &bytes[sent..];
    }
    let flush = poll_fn(|cx| stream.poll_flush(cx));
    timeout(server.config.timeouts.write, flush).await?
}

/// How fast a client takes what it is sent.
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

    /// So much more was taken.
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
                let text = format!("the client takes less than {rate} bytes a second");
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
            _ => Ok(()),
        }
    }
}
