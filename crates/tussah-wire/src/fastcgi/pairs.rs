//! Name-value pairs (section 3.4).

use crate::malformed::{Found, Malformed};

/// Appends a name-value pair. A length of up to 127 is encoded in one byte, and a larger length in
/// four bytes.
///
/// ```
/// let mut out = Vec::new();
/// tussah_wire::fastcgi::push_pair(&mut out, b"SERVER_PORT", b"80");
/// assert_eq!(out, b"\x0b\x02SERVER_PORT80");
/// ```
///
/// # Panics
///
/// Panics if the name or the value is 2 GiB or longer.
pub fn push_pair(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for len in [name.len(), value.len()] {
        match u8::try_from(len) {
            Ok(len @ 0..=127) => out.push(len),
            _ => {
                let len = i32::try_from(len).expect("a name or a value has less than 2 GiB");
                out.extend_from_slice(&(len as u32 | LONG).to_be_bytes());
            }
        }
    }
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

/// The bit that marks a length of four bytes.
const LONG: u32 = 1 << 31;

/// An iterator over the name-value pairs of a complete stream.
///
/// The iterator ends after the first error.
///
/// ```
/// use tussah_wire::fastcgi::Pairs;
///
/// let mut pairs = Pairs::new(b"\x0f\x01FCGI_MPXS_CONNS0");
/// assert_eq!(pairs.next(), Some(Ok((&b"FCGI_MPXS_CONNS"[..], &b"0"[..]))));
/// assert_eq!(pairs.next(), None);
/// ```
#[derive(Clone, Debug)]
pub struct Pairs<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Pairs<'b> {
    /// Creates an iterator over the pairs in `bytes`.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the next `len` bytes.
    fn take(&mut self, len: usize, expected: &'static str) -> Result<&'b [u8], Malformed> {
        let rest = &self.bytes[self.at..];
        match rest.get(..len) {
            Some(taken) => {
                self.at += len;
                Ok(taken)
            }
            None => {
                let found = Found::Number(rest.len() as u64);
                Err(Malformed::new(self.at as u64, expected, found))
            }
        }
    }

    fn len(&mut self) -> Result<usize, Malformed> {
        let first = self.take(1, "the length of a name or a value in one byte")?[0];
        if first <= 127 {
            return Ok(first.into());
        }
        self.at -= 1;
        let four = self.take(4, "the length of a name or a value in four bytes")?;
        let four = u32::from_be_bytes(four.try_into().expect("these are four bytes"));
        Ok((four & !LONG) as usize)
    }

    fn pair(&mut self) -> Result<(&'b [u8], &'b [u8]), Malformed> {
        let (name_len, value_len) = (self.len()?, self.len()?);
        let name = self.take(name_len, "as many bytes as the name has")?;
        Ok((
            name,
            self.take(value_len, "as many bytes as the value has")?,
        ))
    }
}

impl<'b> Iterator for Pairs<'b> {
    type Item = Result<(&'b [u8], &'b [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.bytes.len() {
            return None;
        }
        let pair = self.pair();
        if pair.is_err() {
            self.at = self.bytes.len();
        }
        Some(pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The four forms of section 3.4, and their bounds.
    #[test]
    fn lengths_have_one_or_four_bytes() {
        let check = |name_len: usize, value_len: usize, head: &[u8]| {
            let (name, value) = (vec![b'n'; name_len], vec![b'v'; value_len]);
            let mut out = Vec::new();
            push_pair(&mut out, &name, &value);
            assert_eq!(out[..head.len()], *head, "{name_len} and {value_len}");
            assert_eq!(out.len(), head.len() + name_len + value_len);
            let mut pairs = Pairs::new(&out);
            assert_eq!(pairs.next(), Some(Ok((&name[..], &value[..]))));
            assert_eq!(pairs.next(), None);
        };
        check(0, 0, &[0, 0]);
        check(11, 127, &[11, 127]);
        check(11, 128, &[11, 0x80, 0, 0, 128]);
        check(300, 2, &[0x80, 0, 1, 44, 2]);
        check(70_000, 128, &[0x80, 1, 0x11, 0x70, 0x80, 0, 0, 128]);
    }

    #[test]
    fn incomplete_pairs_are_refused_once() {
        let check = |bytes: &[u8], expected: &str| {
            let mut pairs = Pairs::new(bytes);
            let error = pairs.next().expect("there is an error").unwrap_err();
            assert_eq!(error.to_string(), expected);
            assert_eq!(pairs.next(), None);
        };
        let one = "expected the length of a name or a value in one byte";
        let four = "expected the length of a name or a value in four bytes";
        check(b"\x01", &format!("byte 1: {one}, found 0"));
        check(b"\x80\0\0", &format!("byte 0: {four}, found 3"));
        check(
            b"\x02\x01n",
            "byte 2: expected as many bytes as the name has, found 1",
        );
        check(
            b"\x01\xff\xff\xff\xffnv",
            "byte 6: expected as many bytes as the value has, found 1",
        );
    }
}
