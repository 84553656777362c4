//! One direction of a connection: the bytes that were read but not yet written, and which of them
//! belong to the message.

/// The extent of a message's body (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The given number of bytes is still missing; 0 means that the body has ended.
    Length(u64),
    /// The body consists of chunks; this is the part that comes next.
    Chunked(Chunk),
    /// Everything until the end of the connection.
    ToTheEnd,
}

/// The next part of a chunked body (RFC 9112, section 7.1). Everything is forwarded unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// The size: its value so far, and the number of its digits.
    Size(u64, u8),
    /// The rest of the line after the size.
    Extension(u64),
    /// The data, of which the given number of bytes is still missing.
    Data(u64),
    /// The line ending after the data.
    DataEnd,
    /// A trailer line, and the number of its bytes that have been read, without the line ending.
    Trailer(u32),
}

/// Bound, in bytes: the longest trailer line.
const TRAILER_MAX: u32 = 8 * 1024;

impl Default for Body {
    fn default() -> Self {
        Self::NONE
    }
}

impl Body {
    pub const NONE: Self = Self::Length(0);
    pub const CHUNKED: Self = Self::Chunked(Chunk::Size(0, 0));

    /// Processes received bytes. Returns how many of them belong to the body.
    pub fn pass(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        match self {
            Self::ToTheEnd => Ok(bytes.len()),
            Self::Length(missing) => {
                let len = (*missing).min(bytes.len() as u64);
                *missing -= len;
                Ok(len as usize)
            }
            Self::Chunked(_) => self.pass_chunks(bytes),
        }
    }

    fn pass_chunks(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        let mut at = 0;
        while let (Self::Chunked(chunk), Some(&byte)) = (*self, bytes.get(at)) {
            let mut taken = 1;
            let next = match chunk {
                Chunk::Size(size, digits) => match (byte as char).to_digit(16) {
                    Some(digit) if digits < 15 => {
                        Chunk::Size(size * 16 + u64::from(digit), digits + 1)
                    }
                    None if digits > 0 && b"\r;\t ".contains(&byte) => Chunk::Extension(size),
                    _ => return Err("expected the size of a chunk"),
                },
                Chunk::Extension(0) if byte == b'\n' => Chunk::Trailer(0),
                Chunk::Extension(size) if byte == b'\n' => Chunk::Data(size),
                Chunk::Extension(size) => Chunk::Extension(size),
                Chunk::Data(missing) => {
                    let len = missing.min((bytes.len() - at) as u64);
                    taken = len as usize;
                    match missing - len {
                        0 => Chunk::DataEnd,
                        missing => Chunk::Data(missing),
                    }
                }
                Chunk::DataEnd if byte == b'\r' => Chunk::DataEnd,
                Chunk::DataEnd if byte == b'\n' => Chunk::Size(0, 0),
                Chunk::DataEnd => return Err("a chunk is longer than its size"),
                Chunk::Trailer(0) if byte == b'\n' => {
                    *self = Self::NONE;
                    return Ok(at + 1);
                }
                Chunk::Trailer(_) if byte == b'\n' => Chunk::Trailer(0),
                Chunk::Trailer(len) if byte == b'\r' => Chunk::Trailer(len),
                Chunk::Trailer(TRAILER_MAX) => return Err("a trailer is too long"),
                Chunk::Trailer(len) => Chunk::Trailer(len + 1),
            };
            *self = Self::Chunked(next);
            at += taken;
        }
        Ok(at)
    }
}

/// Bound, in bytes: the maximum amount by which reading may run ahead of writing, apart from the
/// growth of a head.
const BUFFER_MAX: usize = 64 * 1024;

/// The initial size of the buffer, into which most heads fit.
const BUFFER_MIN: usize = 4 * 1024;

/// One direction of a connection.
#[derive(Debug, Default)]
pub struct Flow {
    /// The bytes up to `end`, and room after them.
    buffer: Vec<u8>,
    end: usize,
    /// The end of the bytes that belong to the message.
    passed: usize,
    /// The end of the bytes that have been written.
    written: usize,
    body: Body,
    /// A copy of the written bytes, as long as the message may be cached.
    copy: Option<Vec<u8>>,
    copy_max: usize,
}

impl Flow {
    /// Returns the bytes that have been read but belong to no message yet: the next message starts
    /// with them.
    pub fn unclaimed(&self) -> &[u8] {
        &self.buffer[self.passed..self.end]
    }

    /// Starts a message: `head` replaces the next `len` unclaimed bytes, and the body follows. If
    /// `copy_max` is not 0, up to that many bytes are copied.
    pub fn begin(
        &mut self,
        len: usize,
        head: &[u8],
        body: Body,
        copy_max: usize,
    ) -> Result<(), &'static str> {
        self.buffer.truncate(self.end);
        let old = self.passed..self.passed + len;
        self.buffer.splice(old, head.iter().copied());
        self.end = self.buffer.len();
        self.passed += head.len();
        self.body = body;
        self.copy = (copy_max > 0).then(Vec::new);
        self.copy_max = copy_max;
        self.pass()
    }

    /// Returns the bytes to write.
    pub fn to_write(&self) -> &[u8] {
        &self.buffer[self.written..self.passed]
    }

    /// Marks `len` bytes as written.
    pub fn wrote(&mut self, len: usize) {
        if let Some(copy) = &mut self.copy {
            copy.extend_from_slice(&self.buffer[self.written..self.written + len]);
            if copy.len() > self.copy_max {
                self.copy = None;
            }
        }
        self.written += len;
    }

    /// Returns whether the whole message has been written.
    pub fn is_done(&self) -> bool {
        self.body == Body::NONE && self.to_write().is_empty()
    }

    /// Returns room to read into; everything that was read of the message must have been written.
    pub fn room(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.written..self.end, 0);
        self.end -= self.written;
        self.passed -= self.written;
        self.written = 0;
        if self.end == self.buffer.len() {
            let len = (4 * self.end).clamp(BUFFER_MIN, BUFFER_MAX.max(self.end));
            self.buffer.resize(len, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Records the number of bytes read; 0 is the end of the connection. The bytes that belong to
    /// the message can now be written.
    pub fn came(&mut self, len: usize) -> Result<(), &'static str> {
        self.end += len;
        match (len, self.body) {
            (0, Body::ToTheEnd | Body::NONE) => self.body = Body::NONE,
            (0, _) => return Err("the message ended before its end"),
            _ => self.pass()?,
        }
        Ok(())
    }

    /// Returns the message as written, if a copy was requested and did not exceed its limit.
    pub fn take_copy(&mut self) -> Option<Vec<u8>> {
        self.copy.take()
    }

    fn pass(&mut self) -> Result<(), &'static str> {
        self.passed += self.body.pass(&self.buffer[self.passed..self.end])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes the bytes in pieces of each size. Checks the number of bytes that belong to the
    /// body.
    fn check(body: Body, bytes: &str, expected: Result<usize, &str>) {
        for size in 1..=bytes.len() {
            let mut body = body;
            let mut len = 0;
            let mut result = Ok(());
            for piece in bytes.as_bytes().chunks(size) {
                match body.pass(piece) {
                    Ok(more) => len += more,
                    Err(error) => result = Err(error),
                }
                if result.is_err() || body == Body::NONE {
                    break;
                }
            }
            assert_eq!(result.map(|()| len), expected, "{bytes:?} by {size}");
        }
    }

    #[test]
    fn bodies_end_where_they_end() {
        check(Body::Length(3), "abcGET", Ok(3));
        check(Body::ToTheEnd, "abcGET", Ok(6));
        check(Body::CHUNKED, "0\r\n\r\nGET", Ok(5));
        check(Body::CHUNKED, "3\r\nabc\r\n0\r\n\r\nGET", Ok(13));
        check(
            Body::CHUNKED,
            "A;x=y\r\n0123456789\r\n0\r\na: b\r\n\r\nGET",
            Ok(30),
        );
        let expected = "expected the size of a chunk";
        check(Body::CHUNKED, "\r\n", Err(expected));
        check(Body::CHUNKED, "3x\r\n", Err(expected));
        check(Body::CHUNKED, "FFFFFFFFFFFFFFFF\r\n", Err(expected));
        check(
            Body::CHUNKED,
            "3\r\nabcde",
            Err("a chunk is longer than its size"),
        );
    }

    #[test]
    fn a_message_is_removed_from_the_buffer() {
        let mut flow = Flow::default();
        let text = b"HEAD\n12345HEAD\n";
        flow.room()[..text.len()].copy_from_slice(text);
        flow.came(text.len()).expect("it is not the end");
        assert_eq!(flow.unclaimed(), text);
        flow.begin(5, b"longer head\n", Body::Length(7), 100)
            .expect("it has a length");
        assert_eq!(flow.to_write(), b"longer head\n12345HE");
        flow.wrote(10);
        flow.wrote(9);
        assert!(flow.is_done());
        assert_eq!(
            flow.take_copy().as_deref(),
            Some(&b"longer head\n12345HE"[..])
        );
        assert_eq!(flow.unclaimed(), b"AD\n");
        flow.begin(3, b"x", Body::Length(1), 1).expect("it has one");
        assert!(!flow.is_done());
        assert_eq!(flow.to_write(), b"x");
        flow.wrote(1);
        assert!(!flow.is_done());
        flow.room()[0] = b'y';
        flow.came(1).expect("it is not the end");
        flow.wrote(1);
        assert!(flow.is_done());
        assert_eq!(flow.take_copy(), None, "it was too long");
        flow.begin(0, b"", Body::Length(1), 0).expect("it has one");
        assert_eq!(flow.came(0), Err("the message ended before its end"));
    }
}
