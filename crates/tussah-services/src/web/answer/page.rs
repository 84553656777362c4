//! A page: the header and the body for a path in one buffer, or the file if it is large.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::mem;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tussah_wire::http::condition::Validators;
use tussah_wire::http::date;

use super::buffers::Buffers;
use super::clock::{self, OK_LEN};
use crate::web::server::Server;
use crate::web::site::{Meta, Opened};

/// A page. All requests share it without copying.
///
/// It consists of the complete response with status 200, from the status line and the date of some
/// second to the end of the body. Other responses use parts of it. The lines that also belong to
/// 304 come first, followed by those that also belong to 206.
pub(crate) struct Page {
    bytes: Vec<u8>,
    /// The end of the body, or of the part of it in memory.
    end: usize,
    /// The second of the page's date.
    date_s: u64,
    /// The pool to which the buffer finally returns.
    buffers: Arc<Buffers>,
    /// The end of the lines that also belong to 304.
    shared_end: usize,
    /// The end of the lines that also belong to 206; the length and the empty line follow.
    part_end: usize,
    /// The start of the body.
    head_end: usize,
    pub(crate) body_len: u64,
    /// The file, if the body is not in memory.
    pub(crate) file: Option<File>,
    pub(crate) meta: Meta,
    modified_s: Option<u64>,
}

impl Page {
    /// Creates the page of a file. If the body is short enough to be kept, `read` reads it.
    ///
    /// # Errors
    /// Returns the system's error; `UnexpectedEof` if the file has become shorter.
    pub(crate) fn load(
        server: &Server,
        path: &[u8],
        opened: Opened,
        read: impl FnOnce(&File, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<Self> {
        let Opened { file, meta } = opened;
        let date_s = server.clock.unix_s();
        // Last-Modified is never later than the date of any response (RFC 9110, section 8.8.2.1).
        let modified_s = seconds(meta.modified).map(|modified_s| modified_s.min(date_s));
        let (head, shared_end, part_end) = head(server, path, &meta, modified_s);
        let [shared_end, part_end, head_end] =
            [shared_end, part_end, head.len()].map(|end| OK_LEN + end);
        let body_len = meta.len;
        let keeps = body_len <= server.config.cache.file_bytes;
        let end = if keeps {
            head_end + body_len as usize
        } else {
            head_end
        };
        let mut bytes = server.buffers.take(end);
        bytes[..OK_LEN].copy_from_slice(&clock::ok(date_s));
        bytes[OK_LEN..head_end].copy_from_slice(head.as_bytes());
        let mut page = Self {
            bytes,
            end,
            date_s,
            buffers: Arc::clone(&server.buffers),
            shared_end,
            part_end,
            head_end,
            body_len,
            file: None,
            meta,
            modified_s,
        };
        if keeps {
            read(&file, &mut page.bytes[head_end..end])?;
        } else {
            page.file = Some(file);
        }
        Ok(page)
    }

    /// Returns all bytes in memory.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// Returns the memory use of the page.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether the page's date is that of this second.
    #[inline]
    pub(crate) fn is_of_second(&self, unix_s: u64) -> bool {
        self.date_s == unix_s
    }

    /// Sets the page's date to another second.
    #[cold]
    pub(crate) fn set_second(&mut self, unix_s: u64) {
        self.date_s = unix_s;
        self.bytes[..OK_LEN].copy_from_slice(&clock::ok(unix_s));
    }

    /// Returns the part of a response with 200 that is in memory.
    #[inline]
    pub(crate) fn whole(&self) -> Range<usize> {
        0..self.end
    }

    /// Returns the part that [`whole`](Self::whole) returns, without the status line and the date.
    pub(crate) fn after_date(&self) -> Range<usize> {
        OK_LEN..self.end
    }

    /// Returns the header without the status line and the date.
    pub(crate) fn head(&self) -> Range<usize> {
        OK_LEN..self.head_end
    }

    /// Returns the length of the whole header.
    #[inline]
    pub(crate) fn head_len(&self) -> usize {
        self.head_end
    }

    /// Returns the lines that also belong to 304.
    pub(crate) fn shared_lines(&self) -> Range<usize> {
        OK_LEN..self.shared_end
    }

    /// Returns the lines that also belong to 206.
    pub(crate) fn part_lines(&self) -> Range<usize> {
        OK_LEN..self.part_end
    }

    /// Returns a part of the body, if it is in memory, as a range of [`bytes`](Self::bytes).
    pub(crate) fn body(&self, range: Range<u64>) -> Range<usize> {
        self.head_end + range.start as usize..self.head_end + range.end as usize
    }

    /// Returns the values that identify the page's version.
    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators {
            etag: Some(self.meta.etag.as_str()),
            modified: self.modified_s,
        }
    }

    /// Returns whether a newly opened file is the file of this page, unchanged.
    pub(crate) fn is_of(&self, meta: &Meta) -> bool {
        self.meta.etag == meta.etag
            && self.meta.device == meta.device
            && self.meta.coding == meta.coding
            && self.meta.vary == meta.vary
    }
}

#[cfg(test)]
impl Page {
    /// Creates an empty page of `len` bytes, with or without a file, and with a date in 1970.
    pub(crate) fn blank(buffers: &Arc<Buffers>, len: usize, has_file: bool) -> Self {
        let file = File::open("/dev/null").expect("it is there");
        let stat = rustix::fs::fstat(&file).expect("it is open");
        Self {
            bytes: vec![0; len],
            end: len,
            date_s: 0,
            buffers: Arc::clone(buffers),
            shared_end: len,
            part_end: len,
            head_end: len,
            body_len: 0,
            file: has_file.then_some(file),
            meta: Meta::new(&stat, "".into()),
            modified_s: None,
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.buffers.put(mem::take(&mut self.bytes));
    }
}

/// Reads a whole file into a buffer of its length.
pub(crate) fn read(file: &File, buffer: &mut [u8]) -> io::Result<()> {
    file.read_exact_at(buffer, 0)
}

/// Reads a file if it is in the page cache.
///
/// # Errors
/// Returns `WouldBlock` if it is not, or if the system cannot tell. A read that waits then reports
/// any other error.
pub(crate) fn read_cached(file: &File, buffer: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        let into = &mut [io::IoSliceMut::new(&mut buffer[done..])];
        let flags = rustix::io::ReadWriteFlags::NOWAIT;
        match rustix::io::preadv2(file, into, done as u64, flags) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => done += len,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(io::ErrorKind::WouldBlock.into()),
        }
    }
    Ok(())
}

fn seconds(time: SystemTime) -> Option<u64> {
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// Returns the header of a page, and the ends of its parts.
fn head(
    server: &Server,
    path: &[u8],
    meta: &Meta,
    modified_s: Option<u64>,
) -> (String, usize, usize) {
    let mut head = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = write!(head, "{name}: {value}\r\n"); // a write to a string cannot fail
    };
    if let Some(name) = &server.config.server_header {
        line("Server", name);
    }
    line("ETag", meta.etag.as_str());
    if let Some(modified_s) = modified_s {
        let date = date::format(modified_s);
        line(
            "Last-Modified",
            std::str::from_utf8(&date).expect("a date is ASCII"),
        );
    }
    line("Accept-Ranges", "bytes");
    if meta.vary {
        line("Vary", "Accept-Encoding");
    }
    for (name, value) in server.site.fields(path) {
        line(name, value);
    }
    let shared_end = head.len();
    let mut line = |name: &str, value: &str| {
        let _ = write!(head, "{name}: {value}\r\n");
    };
    line("Content-Type", &meta.media_type);
    if let Some(coding) = meta.coding {
        line("Content-Encoding", coding.name());
    }
    let part_end = head.len();
    let _ = write!(head, "Content-Length: {}\r\n\r\n", meta.len);
    (head, shared_end, part_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The system cannot tell which part of a pipe is in memory, like a system without the call.
    #[test]
    fn a_file_without_cache_information_is_left_to_a_blocking_read() {
        let (reader, _writer) = io::pipe().expect("there are descriptors");
        let file = File::from(std::os::fd::OwnedFd::from(reader));
        let error = read_cached(&file, &mut [0; 4]).expect_err("a pipe has no positions");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
    }
}
