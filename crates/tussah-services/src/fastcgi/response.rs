//! The response of an application: its head, and its body as a stream.

use futures_io::AsyncRead;
use tussah_wire::cgi::{self, CgiHead};

use super::exchange::Exchange;
use super::failure::Failure;

/// A response whose head is complete. Dropping the response before the end of its body closes the
/// connection.
pub struct Response<B> {
    exchange: Box<Exchange<B>>,
    head: CgiHead,
    /// The head, followed by the first part of the body.
    bytes: Vec<u8>,
    /// The next chunk of the body, if it arrived with the head.
    first: Vec<u8>,
    /// The length that the body must have, if it is known.
    expected: Option<u64>,
    /// The number of bytes of the body so far.
    found: u64,
}

impl<B: AsyncRead + Unpin> Response<B> {
    /// Waits for the head.
    pub(super) async fn begin(
        mut exchange: Box<Exchange<B>>,
        is_head: bool,
    ) -> Result<Self, Failure> {
        let limits = exchange.pool.options.head;
        let mut bytes = Vec::new();
        let mut parsed = 0;
        loop {
            let before = bytes.len();
            if !exchange.read(&mut bytes).await? {
                return Err(Failure::NoHead);
            }
            // Parsing starts at the first byte. It must not happen for each of many small records.
            if bytes.len() < 2 * parsed && !has_empty_line(&bytes[before.saturating_sub(2)..]) {
                continue;
            }
            parsed = bytes.len();
            if let Some(head) = cgi::parse(&bytes, &limits).map_err(Failure::Head)? {
                let first = bytes.split_off(head.len());
                // The length is that of the response to GET, whether or not a body follows.
                let has_body = !is_head && head.status.has_body();
                return Ok(Self {
                    exchange,
                    head,
                    bytes,
                    first,
                    expected: head.content_length.filter(|_| has_body),
                    found: 0,
                });
            }
        }
    }

    /// Returns the head.
    #[must_use]
    pub fn head(&self) -> &CgiHead {
        &self.head
    }

    /// Returns the header fields to send to the client; see [`CgiHead::fields`].
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.head.fields(&self.bytes)
    }

    /// Returns the value of `Content-Type`.
    #[must_use]
    pub fn content_type(&self) -> Option<&[u8]> {
        self.head.content_type(&self.bytes)
    }

    /// Returns the next part of the body, or `None` at its end. While it waits, the method also
    /// sends the rest of the request's body.
    ///
    /// # Errors
    /// Returns the reason why the rest of the body is missing.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let mut chunk = std::mem::take(&mut self.first);
        let is_some = !chunk.is_empty() || self.exchange.read(&mut chunk).await?;
        self.found += chunk.len() as u64;
        let found = self.found;
        match self.expected {
            Some(expected) if found > expected || (!is_some && found < expected) => {
                Err(Failure::Length { expected, found })
            }
            _ => Ok(is_some.then_some(chunk)),
        }
    }
}

fn has_empty_line(text: &[u8]) -> bool {
    text.windows(2).any(|two| two == b"\n\n") || text.windows(3).any(|three| three == b"\n\r\n")
}
