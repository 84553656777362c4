//! Reads a file in chunks that end between two words.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bound, in bytes: the maximum size of a chunk. Counting a chunk takes about a millisecond, during
/// which other events of the worker wait.
pub(crate) const CHUNK_MAX: usize = 128 * 1024;

/// Bound, in bytes: text without any ASCII space or punctuation is cut after this length; a word
/// that is cut counts as two.
const WORD_MAX: usize = 8 * 1024 * 1024;

/// A file that is being read. Its methods block.
pub(crate) struct Reader {
    file: File,
    /// The data after the last chunk that has already been read.
    rest: Vec<u8>,
    ended: bool,
}

impl Reader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            rest: Vec::new(),
            ended: false,
        })
    }

    /// Returns the next chunk, or `None` at the end of the file.
    pub(crate) fn next_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        while !self.ended {
            let before = self.rest.len();
            self.rest.reserve(CHUNK_MAX);
            let read = (&self.file)
                .take(CHUNK_MAX as u64)
                .read_to_end(&mut self.rest)?;
            self.ended = read == 0;
            if let Some(end) = end_of_words(&self.rest, before) {
                let rest = self.rest.split_off(end);
                return Ok(Some(std::mem::replace(&mut self.rest, rest)));
            }
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        Ok(Some(std::mem::take(&mut self.rest)))
    }
}

/// Returns the position to cut at: after the last byte, starting at `from`, that does not belong to
/// a word. In UTF-8, an ASCII byte is never part of another character.
fn end_of_words(text: &[u8], from: usize) -> Option<usize> {
    let is_between = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
    let end = text[from..]
        .iter()
        .rposition(is_between)
        .map(|last| from + last + 1);
    if end.is_some() || text.len() < WORD_MAX {
        return end;
    }
    // The last character may be incomplete, so the text is cut before its first byte.
    let is_first = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    Some(
        text.iter()
            .rposition(is_first)
            .filter(|&first| first > 0)
            .unwrap_or(text.len()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_end_between_words() {
        let check = |text: &str, from: usize, expected: Option<usize>| {
            assert_eq!(
                end_of_words(text.as_bytes(), from),
                expected,
                "{text:?} from {from}"
            );
        };
        check("", 0, None);
        check("one", 0, None);
        check("one two", 0, Some(4));
        check("one two", 4, None);
        check("żółw ", 0, Some(8));
        check("żółw", 0, None);
    }

    #[test]
    fn text_without_spaces_is_cut_between_characters() {
        let text = "ż".repeat(WORD_MAX / 2);
        assert_eq!(end_of_words(text.as_bytes(), 0), Some(WORD_MAX - 2));
    }
}
