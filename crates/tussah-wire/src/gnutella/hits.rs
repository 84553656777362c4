//! Query hits: the files that match a query (section 3.2.4).

use std::net::Ipv4Addr;

use super::Guid;
use super::reader::{Reader, push_text};
use crate::malformed::{Found, Malformed};

/// The length of the identifier at the end, in bytes.
const SERVENT_BYTES: usize = 16;

/// The files that match a query, all from the same servent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryHits<'b> {
    /// The port from which the files can be fetched.
    pub port: u16,
    /// The address from which the files can be fetched.
    pub address: Ipv4Addr,
    /// The speed of the servent, in kbit/s; some servents send flags instead.
    pub speed: u32,
    /// The files.
    pub results: Results<'b>,
    /// Additional data, usually a [`Trailer`]. The data can be empty.
    pub trailer: &'b [u8],
    /// The identifier of the servent that has the files. A [`Push`](super::Push) specifies it.
    pub servent: Guid,
}

/// A file that matches a query (section 3.2.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitResult<'b> {
    /// The number that the servent has assigned to the file.
    pub index: u32,
    /// The length of the file, in bytes.
    pub size: u32,
    /// The name of the file, without the terminating NUL.
    pub name: &'b [u8],
    /// Additional data, such as a URN, without the terminating NUL; may be empty.
    pub extension: &'b [u8],
}

/// An iterator over the results of a query hit.
///
/// ```
/// use tussah_wire::gnutella::{HitResult, Results};
///
/// let file = HitResult { index: 2468, size: 4_356_789, name: b"Foobar.mp3", extension: b"" };
/// let mut bytes = Vec::new();
/// file.push(&mut bytes)?;
/// assert_eq!(Results::new(&bytes)?.collect::<Vec<_>>(), [file]);
/// # Ok::<(), tussah_wire::Malformed>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Results<'b> {
    bytes: &'b [u8],
    count: u8,
}

impl<'b> Results<'b> {
    /// Creates an iterator over the results that [`HitResult::push`] has appended to `bytes`.
    ///
    /// # Errors
    ///
    /// Returns an error if there are more than 255 results, because their number has to fit in a
    /// byte. Also returns an error if `bytes` is not a valid sequence of encoded results.
    pub fn new(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let mut count: u8 = 0;
        while !reader.rest().is_empty() {
            let at = reader.at() as u64;
            HitResult::parse(&mut reader)?;
            count = count.checked_add(1).ok_or_else(|| {
                Malformed::new(at, "at most 255 results", Found::Text("one more"))
            })?;
        }
        Ok(Self { bytes, count })
    }
}

impl<'b> Iterator for Results<'b> {
    type Item = HitResult<'b>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = Reader::new(self.bytes);
        let result = HitResult::parse(&mut reader).ok()?;
        self.bytes = reader.rest();
        self.count -= 1;
        Some(result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count.into(), Some(self.count.into()))
    }
}

impl ExactSizeIterator for Results<'_> {}

impl<'b> HitResult<'b> {
    fn parse(reader: &mut Reader<'b>) -> Result<Self, Malformed> {
        Ok(Self {
            index: reader.number32("the number of a file in four bytes")?,
            size: reader.number32("the length of a file in four bytes")?,
            name: reader.text("a NUL after the name of the file")?,
            extension: reader.text("a second NUL after the name of the file")?,
        })
    }

    /// Appends the encoded result to `out`. [`Results::new`] reads such results.
    ///
    /// # Errors
    ///
    /// Returns an error, and appends nothing, if the name or the extension contains a NUL.
    pub fn push(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let start = out.len();
        out.extend_from_slice(&self.index.to_le_bytes());
        out.extend_from_slice(&self.size.to_le_bytes());
        let pushed = push_text(out, self.name).and_then(|()| push_text(out, self.extension));
        if pushed.is_err() {
            out.truncate(start);
        }
        pushed
    }
}

impl<'b> QueryHits<'b> {
    pub(super) fn parse(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let servent_at = bytes.len().saturating_sub(SERVENT_BYTES);
        let servent = Reader::new(&bytes[servent_at..]).guid()?;
        let mut reader = Reader::new(&bytes[..servent_at]);
        let count = reader.byte("a number of results in one byte")?;
        let port = reader.number16("a port of two bytes")?;
        let address = reader.address()?;
        let speed = reader.number32("a speed in four bytes")?;
        let start = reader.rest();
        for _ in 0..count {
            HitResult::parse(&mut reader)?;
        }
        let trailer = reader.rest();
        let results = Results {
            bytes: &start[..start.len() - trailer.len()],
            count,
        };
        Ok(Self {
            port,
            address,
            speed,
            results,
            trailer,
            servent,
        })
    }

    pub(super) fn push(&self, out: &mut Vec<u8>) {
        out.push(self.results.count);
        out.extend_from_slice(&self.port.to_le_bytes());
        out.extend_from_slice(&self.address.octets());
        out.extend_from_slice(&self.speed.to_le_bytes());
        out.extend_from_slice(self.results.bytes);
        out.extend_from_slice(self.trailer);
        out.extend_from_slice(&self.servent.0);
    }
}

/// The usual form of the data that follows the results, as introduced by BearShare (appendix 1).
///
/// ```
/// use tussah_wire::gnutella::Trailer;
///
/// let trailer = Trailer::parse(b"LIME\x02\x3c\x19private").expect("it has this form");
/// assert_eq!(&trailer.vendor, b"LIME");
/// assert_eq!((trailer.open, trailer.private), (&b"\x3c\x19"[..], &b"private"[..]));
/// assert_eq!(Trailer::parse(b"LIME\x02\x3c"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer<'b> {
    /// The code of the servent's vendor.
    pub vendor: [u8; 4],
    /// Data for all servents, such as flags; at most 255 bytes.
    pub open: &'b [u8],
    /// Data for servents of this vendor, or GGEP blocks.
    pub private: &'b [u8],
}

impl<'b> Trailer<'b> {
    /// Parses the data that follows the results. Returns `None` if the data has another form.
    pub fn parse(bytes: &'b [u8]) -> Option<Self> {
        let (&[vendor @ .., open_len], rest) = bytes.split_first_chunk::<5>()?;
        let (open, private) = rest.split_at_checked(open_len.into())?;
        Some(Self {
            vendor,
            open,
            private,
        })
    }

    /// Appends the trailer.
    ///
    /// # Panics
    ///
    /// Panics if `open` is longer than 255 bytes.
    pub fn push(&self, out: &mut Vec<u8>) {
        let open_len = u8::try_from(self.open.len()).expect("the open data has at most 255 bytes");
        out.extend_from_slice(&self.vendor);
        out.push(open_len);
        out.extend_from_slice(self.open);
        out.extend_from_slice(self.private);
    }
}
