//! Sending the rest of an answer, to a client that may be slow.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::AsFd as _;
use std::time::Instant;

use tussah::time::timeout;

use crate::web::exchange::Exchange;
use crate::web::response::SLICES_MAX;
use crate::web::server::Server;
use crate::web::stream::Stream;

/// Bound, in bytes: what is sent of a file before it is looked how fast the client takes it.
const PIECE_BYTES: u64 = 256 * 1024;

/// Sends what is left of an answer.
///
/// # Errors
/// What the system says; `TimedOut` if the client is too slow; `UnexpectedEof` if a file has become shorter.
pub(super) async fn all(
    stream: &Stream,
    server: &Server,
    exchange: &mut Exchange,
) -> io::Result<()> {
    let mut pace = Pace::new(server);
    loop {
        let response = &exchange.response;
        let sent = if let Some((page, from, len)) = response.file() {
            let file = page.file.as_ref().expect("a piece of a file has one");
            let len = len.min(pace.piece_bytes());
            let send = stream.send_file(file.as_fd(), from, len);
            timeout(server.config.timeouts.write, send).await??;
            len
        } else {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = response.slices(&mut slices);
            let write = poll_fn(|cx| stream.poll_write(cx, &slices[..count]));
            timeout(server.config.timeouts.write, write).await?? as u64
        };
        if exchange.response.advance(sent) {
            break;
        }
        pace.sent(sent)?;
    }
    let flush = poll_fn(|cx| stream.poll_flush(cx));
    timeout(server.config.timeouts.write, flush).await??;
    server.note(stream, exchange);
    Ok(())
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
    server: &'a Server,
    begun: Instant,
    bytes: u64,
}

impl<'a> Pace<'a> {
    fn new(server: &'a Server) -> Self {
        Self {
            server,
            begun: Instant::now(),
            bytes: 0,
        }
    }

    /// What may be sent of a file within one time limit: less where clients may be slow.
    fn piece_bytes(&self) -> u64 {
        let timeouts = &self.server.config.timeouts;
        let slowest = timeouts.rate.map_or(PIECE_BYTES, |rate| {
            (rate.saturating_mul(timeouts.write.as_secs())).max(4096)
        });
        PIECE_BYTES.min(slowest)
    }

    /// So much more was taken.
    fn sent(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes += bytes;
        let timeouts = &self.server.config.timeouts;
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
