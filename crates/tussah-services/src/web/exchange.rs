//! One request on its way through the network, with its answer: what the events of the stages are.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use tussah_wire::http::Framing;
use tussah_wire::http::head::{Head, Scan, Version};

use super::connection::Connection;
use super::response::Response;

/// Bound, in bytes: what is read of a request at first; enough for those of browsers. It grows for a longer head.
const INPUT_BYTES: usize = 4096;

/// Bound, in bytes: what a spare one keeps of an answer's own bytes; those of small dynamic pages.
const OWN_BYTES_MAX: usize = 16 << 10;

/// Bound, in exchanges: how many a worker keeps to be used again, a megabyte: as many as become ready at one look of a driver.
const SPARE_MAX: usize = 256;

/// A request and its answer. It belongs to one stage at a time, and so does the connection that it came by.
pub(crate) struct Exchange {
    /// Who is to be answered; `None` in one that is spare.
    pub(crate) connection: Option<Arc<Connection>>,
    pub(crate) input: Input,
    /// The request's head, once it is there.
    pub(crate) head: Option<Head>,
    /// Where the search for the end of the head goes on, and since when it has been coming, if it did not come at once.
    pub(crate) coming: Option<(Scan, Instant)>,
    /// What the cache knows the page by: the path, decoded and normalised, beginning with `/`, and the codings that are preferred, in a byte.
    pub(crate) key: Vec<u8>,
    /// Of the key, made in the connection's color, so that the cache need not.
    pub(crate) hash: u64,
    pub(crate) body: Body,
    /// The connection ends after it.
    pub(crate) is_last: bool,
    pub(crate) response: Response,
    /// What its connection is to do next.
    pub(crate) next: Next,
}

/// The body of a request.
#[derive(Debug, Default)]
pub(crate) enum Body {
    /// It was not read, or there is none.
    #[default]
    Unread,
    /// It is to be read, and kept if somebody wants it.
    Wanted { keep: bool },
    /// It was read, and this is what was kept.
    Read(Vec<u8>),
}

/// What a connection is to do with an exchange that it gets back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Next {
    /// The request is not complete: read more of it.
    #[default]
    Read,
    /// The request's body is wanted: read it.
    Body,
    /// Send the rest of the answer.
    Write,
    /// It has been answered, and the next request has begun to come.
    Again,
    /// Close the connection, gently: the peer may still be sending.
    Close,
    /// Close it at once: it is broken.
    Reset,
}

/// What has come of a connection and was not used yet.
#[derive(Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    filled: usize,
}

impl Input {
    /// What has come.
    #[inline]
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Where more can be put.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.filled..]
    }

    /// So many more have come.
    #[inline]
    pub(crate) fn add(&mut self, len: usize) {
        self.filled += len;
        debug_assert!(self.filled <= self.bytes.len());
    }

    /// Forgets what has been used.
    pub(crate) fn consume(&mut self, len: usize) {
        self.remove(0, len);
    }

    /// Takes out what has been used, from somewhere in the middle.
    pub(crate) fn remove(&mut self, from: usize, len: usize) {
        self.bytes.copy_within(from + len..self.filled, from);
        self.filled -= len;
    }

    /// Whether nothing more can be put.
    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.bytes.len()
    }

    /// Makes more room.
    pub(crate) fn grow(&mut self) {
        self.bytes.resize(2 * self.bytes.len(), 0);
    }
}

thread_local! {
    /// What this worker has to spare. Boxes, since they go through queues.
    #[expect(clippy::vec_box, reason = "they come in boxes")]
    static SPARE: RefCell<Vec<Box<Exchange>>> = const { RefCell::new(Vec::new()) };
}

impl Exchange {
    /// One for a connection that has something to read: used again if there is a spare one.
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
            hash: 0,
            body: Body::Unread,
            is_last: false,
            response: Response::default(),
            next: Next::Read,
        })
    }

    /// Keeps one to be used again.
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

    /// Ends an exchange that was answered whole in this second: the connection goes on by itself.
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

    /// Ends a request; says whether the next one has begun to come.
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

    /// Whether nothing of its request has been looked at yet.
    #[inline]
    pub(crate) fn begins(&self) -> bool {
        self.head.is_none() && self.coming.is_none()
    }

    /// Makes it ready for the next request.
    fn renew(&mut self) {
        self.head = None;
        self.coming = None;
        self.key.clear();
        self.body = Body::Unread;
        self.is_last = false;
        self.response.clear();
    }

    /// The head, in a stage that gets requests only.
    #[inline]
    pub(crate) fn head(&self) -> &Head {
        self.head.as_ref().expect("it has been parsed")
    }

    /// The path that is asked for.
    #[inline]
    pub(crate) fn path(&self) -> &[u8] {
        self.key.split_last().map_or(&[], |(_, path)| path)
    }

    /// Whether its connection may go on after it.
    pub(crate) fn keeps_alive(&self) -> bool {
        self.head.is_some_and(|head| head.keep_alive) && !self.is_last
    }

    /// Whether the client has said that nothing comes after its request, and as far as is known nothing has come (RFC 9112, section 9.6).
    pub(crate) fn is_clients_last(&self) -> bool {
        self.head.is_some_and(|head| {
            !head.keep_alive && head.framing == Framing::None && head.len() == self.input.filled
        })
    }

    /// Whether it is of HTTP/1.0, where to go on has to be said.
    pub(crate) fn is_old(&self) -> bool {
        self.head
            .is_some_and(|head| head.version == Version::Http10)
    }

    /// Gives it back to its connection, which does what [`next`](Self::next) says.
    pub(crate) fn give_back(mut self: Box<Self>) {
        if let Some(connection) = self.connection.take() {
            connection.hand(self);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Lost on the way, as with a handler that panics: the peer must not wait for an answer that nobody writes.
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
            assert_eq!(exchange.is_clients_last(), expected, "{text}");
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
