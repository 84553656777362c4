//! Connection persistence (RFC 9112, section 9.3).

use super::head::Version;
use super::syntax::{is_word, list};

/// The options from the `Connection` fields read so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Connection {
    close: bool,
    keep_alive: bool,
}

impl Connection {
    /// Adds the value of a line.
    pub(crate) fn field(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= is_word(option, b"close");
            self.keep_alive |= is_word(option, b"keep-alive");
        }
    }

    /// Returns whether the connection stays open. `close` takes precedence.
    #[inline]
    pub(crate) fn is_kept(self, version: Version) -> bool {
        !self.close && (self.keep_alive || version == Version::Http11)
    }
}
