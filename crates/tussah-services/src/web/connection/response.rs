//! A response to send: pieces of memory and of files, which are shared and not copied.

use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tussah_wire::http::Status;

use super::source::Source;
use crate::web::answer::page::Page;

/// The maximum number of pieces in one system call.
pub(crate) const SLICES_MAX: usize = 8;

/// A response.
pub(crate) struct Response {
    pub(crate) status: Status,
    /// True if the connection stays open afterwards.
    pub(crate) keep_alive: bool,
    /// The response's own bytes: its head, or the beginning of the head, and other bytes to which
    /// `pieces` refer.
    pub(crate) own: Vec<u8>,
    pub(crate) pieces: Vec<Piece>,
    /// The rest of the body, if it is made while it is sent.
    pub(crate) source: Option<Source>,
    /// The total length of all pieces.
    pub(crate) len: u64,
    /// The length of the head.
    pub(crate) head_len: u64,
    /// The number of bytes sent of the first remaining piece; earlier pieces have been removed.
    sent: u64,
    /// The number of bytes sent in total.
    pub(crate) sent_in_all: u64,
}

/// A piece of a response.
pub(crate) enum Piece {
    /// A part of the response's own bytes.
    Own(Range<usize>),
    /// A part of a page in memory.
    Page(Arc<Page>, Range<usize>),
    /// A part of a page's file.
    File(Arc<Page>, Range<u64>),
    /// Other bytes.
    Bytes(Arc<[u8]>),
    /// A part of another file.
    Open(Arc<File>, Range<u64>),
    /// A part of a file that has been read, since the system cannot send it directly.
    Read(Vec<u8>),
}

impl Piece {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Own(range) | Self::Page(_, range) => range.len() as u64,
            Self::File(_, range) | Self::Open(_, range) => range.end - range.start,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Read(bytes) => bytes.len() as u64,
        }
    }
}

impl Default for Response {
    fn default() -> Self {
        Self {
            status: Status::OK,
            keep_alive: false,
            own: Vec::new(),
            pieces: Vec::new(),
            source: None,
            len: 0,
            head_len: 0,
            sent: 0,
            sent_in_all: 0,
        }
    }
}

impl Response {
    /// Clears the response for reuse.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.own.clear();
        self.pieces.clear();
        self.source = None;
        self.len = 0;
        self.head_len = 0;
        self.sent = 0;
        self.sent_in_all = 0;
    }

    /// Adds a piece.
    #[inline]
    pub(crate) fn push(&mut self, piece: Piece) {
        self.len += piece.len();
        self.pieces.push(piece);
    }

    /// Returns the number of bytes of the body that have been sent.
    pub(crate) fn body_sent(&self) -> u64 {
        self.sent_in_all.saturating_sub(self.head_len)
    }

    /// Returns the remaining data, if it is one piece in memory.
    #[inline]
    pub(crate) fn only(&self) -> Option<&[u8]> {
        match &*self.pieces {
            [piece] => Some(&self.bytes(piece)?[self.sent as usize..]),
            _ => None,
        }
    }

    #[inline]
    fn bytes<'a>(&'a self, piece: &'a Piece) -> Option<&'a [u8]> {
        match piece {
            Piece::Own(range) => Some(&self.own[range.clone()]),
            Piece::Page(page, range) => Some(&page.bytes()[range.clone()]),
            Piece::Bytes(bytes) => Some(bytes),
            Piece::Read(bytes) => Some(bytes),
            Piece::File(..) | Piece::Open(..) => None,
        }
    }

    /// Stores the next pieces in memory. There are none if a file is next, or if nothing is left.
    #[inline]
    pub(crate) fn slices<'a>(&'a self, to: &mut [IoSlice<'a>; SLICES_MAX]) -> usize {
        let mut skip = self.sent as usize;
        let mut count = 0;
        for piece in self.pieces.iter().take(SLICES_MAX) {
            let Some(bytes) = self.bytes(piece) else {
                break;
            };
            to[count] = IoSlice::new(&bytes[skip..]);
            count += 1;
            skip = 0;
        }
        count
    }

    /// Returns the file if it is next, with the offset and the number of bytes.
    pub(crate) fn file(&self) -> Option<(&File, u64, u64)> {
        let (file, range) = match self.pieces.first()? {
            Piece::File(page, range) => {
                let file = page.file.as_ref();
                (file.expect("a piece of a file has one"), range)
            }
            Piece::Open(file, range) => (&**file, range),
            _ => return None,
        };
        let from = range.start + self.sent;
        Some((file, from, range.end - from))
    }

    /// Puts the next data of the file that is next in its place.
    pub(crate) fn put_read(&mut self, bytes: Vec<u8>) {
        let Some(Piece::File(_, range) | Piece::Open(_, range)) = self.pieces.first_mut() else {
            unreachable!("the data is that of the first piece");
        };
        range.start += self.sent + bytes.len() as u64;
        let read = Piece::Read(bytes);
        match range.is_empty() {
            true => self.pieces[0] = read,
            false => self.pieces.insert(0, read),
        }
        self.sent = 0;
    }

    /// Records that `len` more bytes have been sent. Returns whether this completes the response.
    #[inline]
    pub(crate) fn advance(&mut self, len: u64) -> bool {
        self.sent_in_all += len;
        self.sent += len;
        if self.sent_in_all == self.len {
            self.pieces.clear();
            self.sent = 0;
            return self.source.is_none();
        }
        self.skip_sent();
        false
    }

    /// Returns whether no piece is left.
    pub(crate) fn is_sent(&self) -> bool {
        self.sent_in_all == self.len
    }

    /// Waits for the next part of a body that is made while it is sent, once all pieces have been
    /// sent. Returns false at the end of the body.
    pub(crate) fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let Some(source) = &mut self.source else {
            return Poll::Ready(Ok(false));
        };
        debug_assert!(self.pieces.is_empty(), "its own bytes are used again");
        self.own.clear();
        let goes_on = ready!(source.poll_fill(cx, &mut self.own))?;
        let file = source.take_file();
        if !goes_on {
            self.source = None;
        }
        let len = self.own.len();
        if len > 0 {
            self.push(Piece::Own(0..len));
        }
        if let Some((file, range)) = file {
            self.push(Piece::Open(file, range));
        }
        Poll::Ready(Ok(!self.is_sent()))
    }

    /// Removes the pieces that have been sent.
    #[cold]
    fn skip_sent(&mut self) {
        let mut done = 0;
        for piece in &self.pieces {
            if self.sent < piece.len() {
                break;
            }
            self.sent -= piece.len();
            done += 1;
        }
        self.pieces.drain(..done);
    }
}
