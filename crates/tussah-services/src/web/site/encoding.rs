//! Content codings (RFC 9110, section 8.4.1) that a file can lie beside itself in.

/// A content coding of a precompressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `br`, RFC 7932, in `FILE.br`.
    Brotli,
    /// `zstd`, RFC 8878, in `FILE.zst`.
    Zstd,
    /// `gzip`, RFC 1952, in `FILE.gz`.
    Gzip,
}

impl Encoding {
    /// All of them, what is usually smallest first: the order in which files are looked for.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// The name in `Accept-Encoding` and `Content-Encoding`.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// What the name of such a file ends with.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }
}

/// A set of content codings; "identity" is in every one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Encodings(u8);

impl Encodings {
    /// Only "identity".
    pub const NONE: Self = Self(0);
    /// All of [`Encoding::ALL`].
    pub const ALL: Self = Self(0b111);

    /// The set with another coding in it.
    #[must_use]
    pub const fn with(self, encoding: Encoding) -> Self {
        Self(self.0 | 1 << encoding as u8)
    }

    /// Whether a coding is in the set.
    #[must_use]
    pub const fn contains(self, encoding: Encoding) -> bool {
        self.0 & 1 << encoding as u8 != 0
    }

    /// The set with these [bits](Self::bits); others count for nothing.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The set as a number below 8, to index tables with.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl FromIterator<Encoding> for Encodings {
    fn from_iter<T: IntoIterator<Item = Encoding>>(encodings: T) -> Self {
        encodings.into_iter().fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        let set = Encodings::NONE.with(Encoding::Zstd);
        assert_eq!(Encoding::ALL.map(|e| set.contains(e)), [false, true, false]);
        assert_eq!(
            Encoding::ALL.into_iter().collect::<Encodings>(),
            Encodings::ALL
        );
        assert_eq!(
            Encoding::ALL.map(|e| Encodings::NONE.contains(e)),
            [false; 3]
        );
    }
}
