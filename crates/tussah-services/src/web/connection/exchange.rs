//! A request in flight with its response: the event of the stages.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use tussah_wire::http::head::{Head, Scan, Version};
use tussah_wire::http::{Framing, Status};

use super::pipe::Pipe;
use super::response::Response;
use super::state::Connection;
use crate::web::answer::request_body::RequestBody;
use crate::web::server::counts::OTHER;

/// The maximum length of the first read of a request, in bytes, which is enough for the requests of
/// browsers. The buffer grows for a longer head.
const INPUT_BYTES: usize = 4096;

/// The maximum size, in bytes, of the buffer for a response's own bytes that a spare exchange
/// keeps, which is enough for small dynamic pages.
const OWN_BYTES_MAX: usize = 16 << 10;

/// The maximum number of spare exchanges of a worker, about a megabyte. This is the number of
/// connections that a driver can report at once.
const SPARE_MAX: usize = 256;

/// A request and its response. One stage at a time owns it, and with it the connection.
pub(crate) struct Exchange {
    /// The connection on which to respond; `None` in a spare exchange.
    pub(crate) connection: Option<Arc<Connection>>,
    pub(crate) input: Input,
    /// The request's head, once it is complete.
    pub(crate) head: Option<Head>,
    /// The position of the search for the end of the head, and the time of its first byte, if the
    /// head did not arrive all at once.
    pub(crate) coming: Option<(Scan, Instant)>,
    /// The key of the page in the cache: the path, decoded and normalized, beginning with `/`, and
    /// a byte for the preferred codings.
    pub(crate) key: Vec<u8>,
    /// The path that takes the place of the requested path, decoded: that of a script which is the
    /// index of a directory, or the site's fallback.
    pub(crate) redirected: Option<Vec<u8>>,
    /// The hash of the key, computed in the connection's color to relieve the cache.
    pub(crate) hash: u64,
    /// The index of the request's counters: see [`counts`](crate::web::server::counts).
    pub(crate) source: u32,
    pub(crate) body: Body,
    /// True if the connection ends after this exchange.
    pub(crate) is_last: bool,
    pub(crate) response: Response,
    /// The connection's next action.
    pub(crate) next: Next,
}

/// The body of a request.
#[derive(Debug, Default)]
pub(crate) enum Body {
    /// The body has not been read, or is absent.
    #[default]
    Unread,
    /// The body has to be read.
    Wanted(Want),
    /// The body has been read; this is the kept part.
    Read(Vec<u8>),
    /// The head or the body is not valid, too long or too late. This is the status with which to
    /// respond.
    Refused(Status),
    /// The connection's thread reads the body while its handler reads from this pipe. Meanwhile,
    /// only the thread writes to the connection.
    Piped(Arc<Pipe>),
    /// The body was piped, and has been kept.
    Kept(RequestBody),
}

/// The reason for reading a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    /// The next request comes after it.
    Next,
    /// A handler needs the whole body.
    Whole,
    /// A handler reads the body while it arrives.
    Stream,
}

/// The action that a connection takes with an exchange that comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Next {
    /// Read more of the incomplete request.
    #[default]
    Read,
    /// Read the request's body.
    Body,
    /// Send the rest of the response.
    Write,
    /// Continue with a request whose piped body has been kept, or is refused.
    Kept,
    /// Continue: the request has been answered, and the next request has begun to arrive. Or the
    /// same request begins again with another [path](Exchange::redirected).
    Again,
    /// Close the connection gracefully: the peer may still be sending.
    Close,
    /// Reset the broken connection.
    Reset,
}

/// The received but unused bytes of a connection.
#[derive(Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    filled: usize,
}

impl Input {
    /// Returns the received bytes.
    #[inline]
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Returns the free room.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.filled..]
    }

    /// Records that `len` more bytes have arrived.
    #[inline]
    pub(crate) fn add(&mut self, len: usize) {
        self.filled += len;
        debug_assert!(self.filled <= self.bytes.len());
    }

    /// Discards used bytes.
    pub(crate) fn consume(&mut self, len: usize) {
        self.remove(0, len);
    }

    /// Removes used bytes from the middle.
    pub(crate) fn remove(&mut self, from: usize, len: usize) {
        self.bytes.copy_within(from + len..self.filled, from);
        self.filled -= len;
    }

    /// Adds bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        while self.room().len() < bytes.len() {
            self.grow();
        }
        self.room()[..bytes.len()].copy_from_slice(bytes);
        self.add(bytes.len());
    }

    /// Returns whether there is no room.
    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.bytes.len()
    }

    /// Adds room.
    pub(crate) fn grow(&mut self) {
        self.bytes.resize(2 * self.bytes.len(), 0);
    }
}

thread_local! {
    /// The spare exchanges of this worker. They are boxed, since they go through queues.
    #[expect(clippy::vec_box, reason = "they come in boxes")]
    static SPARE: RefCell<Vec<Box<Exchange>>> = const { RefCell::new(Vec::new()) };
}

impl Exchange {
    /// Returns an exchange for a connection with data to read, a spare exchange if possible.
    #[inline]
    pub(crate) fn take() -> Box<Self> {
        let spare = SPARE.with_borrow_mut(Vec::pop);
        spare.unwrap_or_else(Self::make)
    }

    #[cold]
    fn make() -> Box<Self> {
        Box::new(Self {
            connection: None,
            input: Input {
                bytes: vec![0; INPUT_BYTES],
                filled: 0,
            },
            head: None,
            coming: None,
            key: Vec::new(),
            redirected: None,
            hash: 0,
            source: OTHER,
            body: Body::Unread,
            is_last: false,
            response: Response::default(),
            next: Next::Read,
        })
    }

    /// Keeps an exchange for reuse.
    #[inline]
    pub(crate) fn put(mut this: Box<Self>) {
        debug_assert!(this.connection.is_none(), "its connection has been told");
        this.input.filled = 0;
        this.renew();
        this.next = Next::Read;
        if this.input.bytes.len() > INPUT_BYTES {
            this.input.bytes.truncate(INPUT_BYTES);
            this.input.bytes.shrink_to_fit();
        }
        if this.response.own.capacity() > OWN_BYTES_MAX {
            this.response.own = Vec::new();
        }
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < SPARE_MAX {
                spare.push(this);
            }
        });
    }

    /// Ends an exchange that was answered completely in this second; the connection continues on
    /// its own.
    #[inline]
    pub(crate) fn finish(mut self: Box<Self>, now_s: u64) {
        if !self.response.keep_alive {
            self.next = Next::Close;
            return self.give_back();
        }
        if self.has_more() {
            self.next = Next::Again;
            return self.give_back();
        }
        let connection = self.connection.take();
        Self::put(self);
        if let Some(connection) = connection {
            connection.release(now_s);
        }
    }

    /// Ends a request. Returns whether the next request has begun to arrive.
    #[inline]
    pub(crate) fn has_more(&mut self) -> bool {
        let used = self.head.take().map_or(0, |head| head.len());
        if self.input.filled == used {
            return false;
        }
        self.input.consume(used);
        self.renew();
        true
    }

    /// Returns whether no part of the request has been examined yet.
    #[inline]
    pub(crate) fn begins(&self) -> bool {
        self.head.is_none() && self.coming.is_none()
    }

    /// Prepares for the next request.
    fn renew(&mut self) {
        self.head = None;
        self.coming = None;
        self.key.clear();
        self.redirected = None;
        self.source = OTHER;
        self.body = Body::Unread;
        self.is_last = false;
        self.response.clear();
    }

    /// Returns the head, in a stage that only receives requests.
    #[inline]
    pub(crate) fn head(&self) -> &Head {
        self.head.as_ref().expect("it has been parsed")
    }

    /// Returns the requested path.
    #[inline]
    pub(crate) fn path(&self) -> &[u8] {
        self.key.split_last().map_or(&[], |(_, path)| path)
    }

    /// Returns whether the exchange's connection may continue.
    pub(crate) fn keeps_alive(&self) -> bool {
        let is_read = |head: Head| match &self.body {
            Body::Unread => matches!(head.framing, Framing::None | Framing::Length(0)),
            Body::Piped(pipe) => pipe.is_complete(),
            _ => true,
        };
        let keeps = |head: Head| head.keep_alive && !self.is_last && is_read(head);
        self.head.is_some_and(keeps)
    }

    /// Returns whether the client announced its last request, and no further data is known to have
    /// arrived (RFC 9112, section 9.6).
    pub(crate) fn is_last_of_client(&self) -> bool {
        self.head.is_some_and(|head| {
            !head.keep_alive && head.framing == Framing::None && head.len() == self.input.filled
        })
    }

    /// Returns whether the client uses HTTP/1.0, which has to announce that the connection stays
    /// open.
    pub(crate) fn is_old(&self) -> bool {
        self.head
            .is_some_and(|head| head.version == Version::Http10)
    }

    /// Returns whether the exchange's client has disconnected.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| connection.is_gone())
    }

    /// Begins the request again with another path, which a route answers.
    pub(crate) fn redirect(mut self: Box<Self>, path: Vec<u8>) {
        self.key.clear();
        self.redirected = Some(path);
        self.next = Next::Again;
        self.give_back();
    }

    /// Begins the request again with its body, which was piped, or refuses it with this status.
    pub(crate) fn resume(mut self: Box<Self>, body: Result<RequestBody, Status>) {
        self.key.clear();
        self.body = match body {
            Ok(body) => Body::Kept(body),
            Err(status) => Body::Refused(status),
        };
        self.next = Next::Kept;
        self.give_back();
    }

    /// Ends an exchange without a waiting client, and its connection.
    pub(crate) fn abandon(mut self: Box<Self>) {
        let connection = self.connection.take();
        Self::put(self);
        if let Some(connection) = connection {
            connection.lose();
        }
    }

    /// Hands the exchange back to its connection, which performs [`next`](Self::next).
    pub(crate) fn give_back(mut self: Box<Self>) {
        if let Some(connection) = self.connection.take() {
            connection.hand(self);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // The exchange was lost, as with a handler that panics: the peer must not wait for a
        // response that never comes.
        if let Some(connection) = self.connection.take() {
            connection.lose();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tussah_wire::http::head;

    #[test]
    fn a_spare_one_keeps_little() {
        let mut exchange = Exchange::take();
        let place = std::ptr::from_ref(&*exchange);
        exchange.input.grow();
        exchange.response.own = vec![0; 4_000_000];
        exchange.key = b"/".to_vec();
        Exchange::put(exchange);
        let again = Exchange::take();
        assert!(std::ptr::eq(place, &*again), "it is used again");
        assert_eq!(again.input.bytes.capacity(), INPUT_BYTES);
        assert!(again.response.own.capacity() <= OWN_BYTES_MAX);
        assert!(again.key.is_empty());
    }

    #[test]
    fn after_the_last_request_of_a_client_nothing_comes() {
        let check = |text: &str, expected| {
            let mut exchange = Exchange::take();
            exchange.input.room()[..text.len()].copy_from_slice(text.as_bytes());
            exchange.input.add(text.len());
            let parsed = head::parse(exchange.input.filled(), &head::Limits::default());
            exchange.head = parsed.expect("it is valid");
            assert_eq!(exchange.is_last_of_client(), expected, "{text}");
        };
        let close = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        check(close, true);
        check(&format!("{close}GET"), false);
        check("GET / HTTP/1.0\r\n\r\n", true);
        check("GET / HTTP/1.1\r\nHost: a\r\n\r\n", false);
        check("POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\n", false);
        check("GET / HTTP/1.0\r\n", false);
    }
}
