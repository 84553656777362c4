//! A page: what is sent for a path, header and body in one buffer, or its file if that is large.

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
use super::server::Server;
use super::site::{Meta, Opened};

/// A page. Shared by all who are sent it, and not copied.
///
/// It is what is sent with 200, whole: from the status line and the date, of some second, to the end of the body. What other answers have in common with that, they take
/// from it; so the lines that 304 has too come first, and then those that 206 has.
pub(crate) struct Page {
    bytes: Vec<u8>,
    /// Where the body ends, or what of it is in memory.
    end: usize,
    /// The second of its date.
    date_s: u64,
    /// Where the bytes go in the end.
    buffers: Arc<Buffers>,
    /// Where the lines end that belong to 304 as well.
    shared_end: usize,
    /// Where the lines end that belong to 206 as well; then come the length and the empty line.
    part_end: usize,
    /// Where the body begins.
    head_end: usize,
    pub(crate) body_len: u64,
    /// The file, if the body is not in memory.
    pub(crate) file: Option<File>,
    pub(crate) meta: Meta,
    modified_s: Option<u64>,
}

impl Page {
    /// Makes a page of a file: its body is read if it is short enough to be kept, and `read` says how.
    ///
    /// # Errors
    /// What the system says; `UnexpectedEof` if the file has become shorter.
    pub(crate) fn load(
        server: &Server,
        path: &[u8],
        opened: Opened,
        read: impl FnOnce(&File, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<Self> {
        let Opened { file, meta } = opened;
        let date_s = server.clock.unix_s();
        // Never later than the date of any answer (RFC 9110, section 8.8.2.1).
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

    /// All that is in memory.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// What it takes in memory.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the date at its beginning is of this second.
    #[inline]
    pub(crate) fn is_of_second(&self, unix_s: u64) -> bool {
        self.date_s == unix_s
    }

    /// Makes the date at its beginning that of another second.
    #[cold]
    pub(crate) fn set_second(&mut self, unix_s: u64) {
        self.date_s = unix_s;
        self.bytes[..OK_LEN].copy_from_slice(&clock::ok(unix_s));
    }

    /// All that is sent with 200, as far as it is in memory.
    #[inline]
    pub(crate) fn whole(&self) -> Range<usize> {
        0..self.end
    }

    /// The same without the status line and the date.
    pub(crate) fn after_date(&self) -> Range<usize> {
        OK_LEN..self.end
    }

    /// The header without the status line and the date.
    pub(crate) fn head(&self) -> Range<usize> {
        OK_LEN..self.head_end
    }

    /// Bytes of the whole header.
    #[inline]
    pub(crate) fn head_len(&self) -> usize {
        self.head_end
    }

    /// The lines that belong to 304 as well.
    pub(crate) fn shared_lines(&self) -> Range<usize> {
        OK_LEN..self.shared_end
    }

    /// The lines that belong to 206 as well.
    pub(crate) fn part_lines(&self) -> Range<usize> {
        OK_LEN..self.part_end
    }

    /// Bytes of the body, if it is in memory, as a range of [`bytes`](Self::bytes).
    pub(crate) fn body(&self, range: Range<u64>) -> Range<usize> {
        self.head_end + range.start as usize..self.head_end + range.end as usize
    }

    /// What tells it from other versions.
    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators {
            etag: Some(self.meta.etag.as_str()),
            modified: self.modified_s,
        }
    }

    /// Whether a file that was opened now is the one that this was made of, and has not changed since.
    pub(crate) fn is_of(&self, meta: &Meta) -> bool {
        self.meta.etag == meta.etag
            && self.meta.device == meta.device
            && self.meta.coding == meta.coding
            && self.meta.vary == meta.vary
    }
}

#[cfg(test)]
impl Page {
    /// One of nothing that takes so many bytes, with a file or without, and with a date of 1970.
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

/// Reads all of a file that is as long as the buffer.
pub(crate) fn read(file: &File, buffer: &mut [u8]) -> io::Result<()> {
    file.read_exact_at(buffer, 0)
}

/// Reads it if it is in the system's memory.
///
/// # Errors
/// `WouldBlock` if it is not, or if the system can't say: a reading that waits then says what is wrong, if anything is.
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

/// The header of a page, and where its parts end.
fn head(
    server: &Server,
    path: &[u8],
    meta: &Meta,
    modified_s: Option<u64>,
) -> (String, usize, usize) {
    let mut head = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = write!(head, "{name}: {value}\r\n"); // a string takes all
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

    /// Nobody can say what of a pipe is in memory, as on a system without the call.
    #[test]
    fn what_the_system_cannot_say_of_a_file_is_left_to_a_reading_that_waits() {
        let (reader, _writer) = io::pipe().expect("there are descriptors");
        let file = File::from(std::os::fd::OwnedFd::from(reader));
        let error = read_cached(&file, &mut [0; 4]).expect_err("a pipe has no positions");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
    }
}
