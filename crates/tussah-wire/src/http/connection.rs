//! Whether a connection outlives a message (RFC 9112, section 9.3).

use super::head::Version;
use super::syntax::{is_word, list};

/// What the `Connection` fields of a head have said so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Connection {
    close: bool,
    keep_alive: bool,
}

impl Connection {
    /// Takes the value of a line.
    pub(crate) fn field(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= is_word(option, b"close");
            self.keep_alive |= is_word(option, b"keep-alive");
        }
    }

    /// Whether it is kept open; to close it prevails.
    #[inline]
    pub(crate) fn is_kept(self, version: Version) -> bool {
        !self.close && (self.keep_alive || version == Version::Http11)
    }
}
