//! The identifiers of descriptors and servents.

use std::fmt;

/// The identifier of a descriptor or a servent: 16 opaque bytes (section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// Creates an identifier from random bytes. Two bytes mark the servent as a modern one: byte 8
    /// is set to 0xff, and byte 15 to 0 (section 3.1).
    ///
    /// ```
    /// let id = tussah_wire::gnutella::Guid::from_random([0x5a; 16]);
    /// assert_eq!(id.to_string(), "5a5a5a5a5a5a5a5aff5a5a5a5a5a5a00");
    /// ```
    pub fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[8] = 0xff;
        bytes[15] = 0;
        Self(bytes)
    }
}

/// Formats as 32 hexadecimal digits.
impl fmt::Display for Guid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}
