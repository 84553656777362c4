//! The duration and the fragments of an MP4 file (ISO/IEC 14496-12).
//!
//! An MP4 file is a sequence of boxes, each with a length and a type. This module reads only what
//! a server needs: the duration from `mvhd` (section 8.2.2) or `mehd` (8.8.2), and the fragments
//! from the first segment index, `sidx` (8.16.3).

use std::io;
use std::ops::Range;

/// Bound, in boxes: the maximum number of boxes of one level that the parser examines; it ignores
/// further ones. A file needs about ten.
const BOXES_MAX: usize = 256;

/// The duration and the structure of an MP4 file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Movie {
    /// The duration, in milliseconds; `None` if the file does not state it.
    pub duration_ms: Option<u64>,
    /// The bytes that a player needs before any fragment: everything up to the end of `moov`.
    pub init: Range<u64>,
    /// The fragments, in file order; the list is empty if the file has no index, or if the index
    /// refers to other indexes.
    pub fragments: Vec<Fragment>,
}

/// A fragment of a file. A player that has the file's [`init`](Movie::init) bytes can play the
/// fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The range of the fragment's bytes in the file.
    pub bytes: Range<u64>,
    /// The duration, in milliseconds.
    pub duration_ms: u64,
}

/// Reads the duration and the structure of a file of `len` bytes. `read` must fill its buffer with
/// the file's bytes at the given offset; these bytes always lie within the file.
///
/// Returns `None` if the file is not MP4, or has no `moov` box with an `mvhd` box.
///
/// # Errors
/// Returns any error from `read`.
///
/// ```
/// # let boxed = |kind: &[u8; 4], body: &[u8]| {
/// #     let len = u32::try_from(8 + body.len()).expect("a short box").to_be_bytes();
/// #     [&len, kind.as_slice(), body].concat()
/// # };
/// # let mut mvhd = vec![0; 100];
/// # mvhd[12..16].copy_from_slice(&1000_u32.to_be_bytes());
/// # mvhd[16..20].copy_from_slice(&90_000_u32.to_be_bytes());
/// # let file = [boxed(b"ftyp", b"isom"), boxed(b"moov", &boxed(b"mvhd", &mvhd))].concat();
/// let movie = tussah_wire::mp4::movie(file.len() as u64, |at, buffer| {
///     let at = at as usize;
///     buffer.copy_from_slice(&file[at..at + buffer.len()]);
///     Ok(())
/// })?;
/// assert_eq!(movie.and_then(|movie| movie.duration_ms), Some(90_000));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn movie(
    len: u64,
    read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Option<Movie>> {
    // A file has no longer offsets, so sums of them do not overflow.
    let len = len.min(i64::MAX.cast_unsigned());
    let mut file = File { len, read };
    let (mut movie, mut is_mp4, mut has_header) = (Movie::default(), false, false);
    let mut at = 0;
    for number in 0..BOXES_MAX {
        let Some(found) = file.header(at, len)? else {
            break;
        };
        // Old files have no `ftyp`, and begin with `moov` or `mdat`.
        is_mp4 |= number == 0 && matches!(&found.kind, b"ftyp" | b"styp" | b"moov" | b"mdat");
        match &found.kind {
            _ if !is_mp4 => return Ok(None),
            b"moov" => {
                has_header = file.moov(found.body.clone(), &mut movie)?;
                movie.init = 0..found.body.end;
            }
            b"sidx" => {
                movie.fragments = file.sidx(found.body.clone())?;
                break;
            }
            // No index comes after the first fragment.
            b"moof" => break,
            _ => {}
        }
        at = found.body.end;
    }
    if movie.duration_ms.is_none() && !movie.fragments.is_empty() {
        let durations = movie.fragments.iter().map(|it| it.duration_ms);
        movie.duration_ms = Some(durations.fold(0, u64::saturating_add));
    }
    Ok(has_header.then_some(movie))
}

/// A box of a file: its type, and the bytes after its header.
struct Found {
    kind: [u8; 4],
    body: Range<u64>,
}

struct File<R> {
    len: u64,
    read: R,
}

impl<R: FnMut(u64, &mut [u8]) -> io::Result<()>> File<R> {
    fn array<const N: usize>(&mut self, at: u64, end: u64) -> io::Result<Option<[u8; N]>> {
        let end = end.min(self.len);
        let mut bytes = [0; N];
        if at.checked_add(N as u64).is_none_or(|last| last > end) {
            return Ok(None);
        }
        (self.read)(at, &mut bytes)?;
        Ok(Some(bytes))
    }

    fn number32(&mut self, at: u64, end: u64) -> io::Result<Option<u64>> {
        let bytes = self.array(at, end)?;
        Ok(bytes.map(|bytes| u32::from_be_bytes(bytes).into()))
    }

    fn number64(&mut self, at: u64, end: u64) -> io::Result<Option<u64>> {
        Ok(self.array(at, end)?.map(u64::from_be_bytes))
    }

    /// Reads the header of the box at an offset (section 4.2). Returns `None` if there is no whole
    /// box before `end`.
    fn header(&mut self, at: u64, end: u64) -> io::Result<Option<Found>> {
        let Some([a, b, c, d, kind @ ..]) = self.array::<8>(at, end)? else {
            return Ok(None);
        };
        let (header, len) = match u32::from_be_bytes([a, b, c, d]) {
            // The box reaches to the end.
            0 => (8, end - at),
            1 => match self.number64(at + 8, end)? {
                Some(len) => (16, len),
                None => return Ok(None),
            },
            len => (8, len.into()),
        };
        let last = at.checked_add(len).filter(|last| *last <= end);
        let body = last.filter(|_| len >= header);
        Ok(body.map(|last| Found {
            kind,
            body: at + header..last,
        }))
    }

    /// Reads `moov`. Returns whether it has a header.
    fn moov(&mut self, body: Range<u64>, movie: &mut Movie) -> io::Result<bool> {
        let (mut timescale, mut duration, mut has_header) = (0, 0, false);
        let mut at = body.start;
        for _ in 0..BOXES_MAX {
            let Some(found) = self.header(at, body.end)? else {
                break;
            };
            match &found.kind {
                b"mvhd" => {
                    if let Some((scale, len)) = self.mvhd(found.body.clone())? {
                        (timescale, duration, has_header) = (scale, len.max(duration), true);
                    }
                }
                b"mvex" => {
                    let first = self.header(found.body.start, found.body.end)?;
                    if let Some(mehd) = first.filter(|it| &it.kind == b"mehd") {
                        let long = self.long(mehd.body.start, 4, mehd.body.end)?;
                        duration = long.unwrap_or(0).max(duration);
                    }
                }
                _ => {}
            }
            at = found.body.end;
        }
        movie.duration_ms = milliseconds(duration, timescale).filter(|ms| *ms > 0);
        Ok(has_header)
    }

    /// Reads the timescale and the duration of a `mvhd` box.
    fn mvhd(&mut self, body: Range<u64>) -> io::Result<Option<(u64, u64)>> {
        let Some([version, ..]) = self.array::<4>(body.start, body.end)? else {
            return Ok(None);
        };
        let is_long = version == 1;
        let at = body.start + if is_long { 20 } else { 12 };
        let timescale = self.number32(at, body.end)?;
        // A duration of all ones is unknown.
        let duration = match is_long {
            true => self.number64(at + 4, body.end)?.map(|it| (it, u64::MAX)),
            false => self
                .number32(at + 4, body.end)?
                .map(|it| (it, u32::MAX.into())),
        };
        let duration = duration.map(|(it, unknown)| if it == unknown { 0 } else { it });
        Ok(timescale.zip(duration))
    }

    /// Reads a number that is `after` bytes into a box with a version, and is longer in version 1.
    fn long(&mut self, at: u64, after: u64, end: u64) -> io::Result<Option<u64>> {
        match self.array::<4>(at, end)? {
            Some([0, ..]) => self.number32(at + after, end),
            Some(_) => self.number64(at + after, end),
            None => Ok(None),
        }
    }

    /// Reads the fragments of a `sidx` box. There are none if it refers to other indexes.
    fn sidx(&mut self, body: Range<u64>) -> io::Result<Vec<Fragment>> {
        let Some([version, ..]) = self.array::<4>(body.start, body.end)? else {
            return Ok(Vec::new());
        };
        let timescale = self.number32(body.start + 8, body.end)?.unwrap_or(0);
        let (first, table) = match version {
            0 => (self.number32(body.start + 16, body.end)?, body.start + 24),
            _ => (self.number64(body.start + 20, body.end)?, body.start + 32),
        };
        let count = self.array(table - 2, body.end)?.map(u16::from_be_bytes);
        let (Some(first), Some(count)) = (first, count) else {
            return Ok(Vec::new());
        };
        let Some(mut at) = body.end.checked_add(first) else {
            return Ok(Vec::new());
        };
        let mut fragments = Vec::new();
        for number in 0..u64::from(count) {
            let Some(entry) = self.array::<12>(table + 12 * number, body.end)? else {
                return Ok(Vec::new());
            };
            let [a, b, c, d, e, f, g, h, ..] = entry;
            let duration = u32::from_be_bytes([e, f, g, h]).into();
            let len = u64::from(u32::from_be_bytes([a, b, c, d]));
            let end = at.checked_add(len).filter(|end| *end <= self.len);
            // The first bit of the length marks another index.
            let is_media = a & 0x80 == 0 && len > 0;
            let (Some(end), Some(duration_ms), true) =
                (end, milliseconds(duration, timescale), is_media)
            else {
                return Ok(Vec::new());
            };
            fragments.push(Fragment {
                bytes: at..end,
                duration_ms,
            });
            at = end;
        }
        Ok(fragments)
    }
}

fn milliseconds(duration: u64, timescale: u64) -> Option<u64> {
    let ms = u128::from(duration) * 1000;
    u64::try_from(ms.checked_div(timescale.into())?).ok()
}

#[cfg(test)]
mod tests;
