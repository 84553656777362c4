//! Content codings (RFC 9110, section 8.4.1), and their negotiation (section 12.5.3).

use std::cmp::Reverse;
use std::iter;

use super::syntax::{list, trim};

/// A content coding in which a representation can be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// No coding.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
}

/// The number of codings.
const CODINGS: usize = Coding::Zstd as usize + 1;

impl Coding {
    const KNOWN: [Self; CODINGS] = [Self::Identity, Self::Gzip, Self::Brotli, Self::Zstd];

    /// Returns the name by which `Content-Encoding` refers to the coding. The name of the identity
    /// coding occurs only in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    fn from_name(name: &[u8]) -> Option<Self> {
        let same = |coding: &Self| coding.name().as_bytes().eq_ignore_ascii_case(name);
        let old_gzip = || name.eq_ignore_ascii_case(b"x-gzip").then_some(Self::Gzip);
        Self::KNOWN.into_iter().find(same).or_else(old_gzip)
    }
}

/// An ordered set of codings. The identity coding is never a member, but implicitly comes last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Codings(u8);

/// The first coding is in the lowest bits. After the last one the bits are 0, which means identity.
const CODING_BITS: u32 = 2;

impl Codings {
    /// The empty set, which allows only the identity coding.
    pub const NONE: Self = Self(0);
    /// All codings except the identity coding, starting with the one that usually compresses best.
    pub const ALL: Self = Self::NONE
        .with(Coding::Brotli)
        .with(Coding::Zstd)
        .with(Coding::Gzip);

    /// Appends `coding`, unless the set already contains it.
    #[must_use]
    pub const fn with(self, coding: Coding) -> Self {
        let mut shift = 0;
        while self.0 >> shift != 0 {
            if self.0 >> shift & 0b11 == coding as u8 {
                return self;
            }
            shift += CODING_BITS;
        }
        Self(self.0 | (coding as u8) << shift)
    }

    /// Returns whether the set contains `coding`.
    pub fn contains(self, coding: Coding) -> bool {
        self.iter().any(|other| other == coding)
    }

    /// Returns the codings of the set, in order.
    pub fn iter(self) -> impl Iterator<Item = Coding> {
        let mut rest = self.0;
        iter::from_fn(move || {
            let coding = Coding::KNOWN[usize::from(rest & 0b11)];
            rest >>= CODING_BITS;
            (coding != Coding::Identity).then_some(coding)
        })
    }

    /// Returns a number that represents the codings and their order.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Creates the set that a number from [`bits`](Self::bits) represents. A number that does not
    /// come from `bits` also yields a valid set.
    pub fn from_bits(bits: u8) -> Self {
        Self(bits).iter().collect()
    }
}

impl FromIterator<Coding> for Codings {
    fn from_iter<T: IntoIterator<Item = Coding>>(codings: T) -> Self {
        codings.into_iter().fold(Self::NONE, Self::with)
    }
}

/// The preferences of a client, from `Accept-Encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Weights in thousandths; 0 means not accepted.
    qualities: [u16; CODINGS],
}

impl Accepted {
    /// Parses the values of the `Accept-Encoding` lines.
    ///
    /// If a request has no `Accept-Encoding` line, section 12.5.3 lets a server use any coding.
    /// However, a client that sends no `Accept-Encoding` line may understand only the identity
    /// coding, so the result then accepts no other coding. If the lines do not name the identity
    /// coding, it ranks below every other accepted coding, and `*;q=0` excludes it. Malformed
    /// members of the list are ignored.
    ///
    /// ```
    /// use tussah_wire::http::encoding::{Accepted, Coding, Codings};
    ///
    /// let accepted = Accepted::parse([&b"br;q=0.8, gzip"[..]]);
    /// assert!(accepted.preferred(Codings::ALL).iter().eq([Coding::Gzip, Coding::Brotli]));
    /// ```
    pub fn parse<'v>(lines: impl IntoIterator<Item = &'v [u8]>) -> Self {
        let mut named = [None; CODINGS];
        let mut others = None;
        for member in lines.into_iter().flat_map(list) {
            let mut parts = member.split(|&byte| byte == b';').map(trim);
            let name = parts.next().unwrap_or_default();
            let Some(quality) = quality(parts) else {
                continue;
            };
            match Coding::from_name(name) {
                Some(coding) => named[coding as usize] = Some(quality),
                None if name == b"*" => others = Some(quality),
                None => {}
            }
        }
        let mut qualities = named.map(|quality| quality.or(others).unwrap_or(0));
        let identity = &mut qualities[Coding::Identity as usize];
        if named[Coding::Identity as usize].is_none() && others != Some(0) {
            *identity = 1;
        }
        Self { qualities }
    }

    /// Returns the weight of a coding, in thousandths; 0 if it is not accepted.
    fn quality(&self, coding: Coding) -> u16 {
        self.qualities[coding as usize]
    }

    /// Returns the codings from `offered` that the client accepts, best first. The result does
    /// not contain codings of lower weight than the identity coding. Codings of equal weight keep
    /// their order.
    pub fn preferred(&self, offered: Codings) -> Codings {
        let least = self.quality(Coding::Identity).max(1);
        let mut preferred = Codings::NONE;
        let next = |preferred: Codings| {
            let liked = |coding: &Coding| self.quality(*coding) >= least;
            let rest = offered.iter().filter(liked);
            rest.filter(|&coding| !preferred.contains(coding))
                .min_by_key(|&coding| Reverse(self.quality(coding))) // the first of several
        };
        while let Some(coding) = next(preferred) {
            preferred = preferred.with(coding);
        }
        preferred
    }
}

/// Returns the weight in thousandths from the parameters of a member (section 12.4.2), or `None` if
/// it is malformed.
fn quality<'p>(mut parameters: impl Iterator<Item = &'p [u8]>) -> Option<u16> {
    let Some(weight) = parameters.next() else {
        return Some(1000);
    };
    let [b'q' | b'Q', b'=', number @ ..] = weight else {
        return None;
    };
    let (whole, fraction) = match number {
        [whole] => (whole, &b""[..]),
        [whole, b'.', fraction @ ..] => (whole, fraction),
        _ => return None,
    };
    if fraction.len() > 3 || !fraction.iter().all(u8::is_ascii_digit) || parameters.next().is_some()
    {
        return None;
    }
    let digit = |place: usize| {
        fraction
            .get(place)
            .map_or(0, |digit| u16::from(digit - b'0'))
    };
    let thousandths = digit(0) * 100 + digit(1) * 10 + digit(2);
    match whole {
        b'0' => Some(thousandths),
        b'1' if thousandths == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Coding::{Brotli, Gzip, Identity, Zstd};
    use super::*;

    #[test]
    fn preferences() {
        let check = |lines: &[&str], expected: &[Coding]| {
            let accepted = Accepted::parse(lines.iter().map(|line| line.as_bytes()));
            let preferred: Vec<_> = accepted.preferred(Codings::ALL).iter().collect();
            assert_eq!(preferred, expected, "{lines:?}");
        };
        check(&[], &[]);
        check(&[""], &[]);
        check(&["gzip"], &[Gzip]);
        check(&["GZip"], &[Gzip]);
        check(&["x-gzip"], &[Gzip]);
        check(&["gzip, deflate, br, zstd"], &[Brotli, Zstd, Gzip]);
        check(&["gzip, deflate, br"], &[Brotli, Gzip]);
        check(&["gzip", "br"], &[Brotli, Gzip]);
        check(&["gzip;q=1.0, br;q=0.9"], &[Gzip, Brotli]);
        check(&["gzip;q=0.3, br;q=0.1, zstd;q=0.2"], &[Gzip, Zstd, Brotli]);
        check(&["gzip;q=0.3, br;q=0.1, zstd;q=0.3"], &[Zstd, Gzip, Brotli]);
        check(&["gzip;q=0.001"], &[Gzip]);
        check(&["gzip; Q=0.5 , br ; q=0.6"], &[Brotli, Gzip]);
        check(&["gzip;q=0"], &[]);
        check(&["gzip;q=0.000, br;q=0.0"], &[]);
        check(&["identity"], &[]);
        check(&["identity, gzip;q=0.5"], &[]);
        check(&["identity;q=0.5, gzip;q=0.5, br;q=0.4"], &[Gzip]);
        check(&["*"], &[Brotli, Zstd, Gzip]);
        check(&["*;q=0.5, gzip"], &[Gzip, Brotli, Zstd]);
        check(&["*, br;q=0"], &[Zstd, Gzip]);
        check(&["*;q=0"], &[]);
        check(&["*;q=0, identity"], &[]);
        check(&["identity;q=0"], &[]);
        check(&["identity;q=0, gzip"], &[Gzip]);
        check(&["compress, deflate"], &[]);
        check(&["gzip;q=2, br;q=1.5, zstd;q=x"], &[]);
        check(&["gzip;q=0.1234"], &[]);
        check(&["gzip;q=", "br;q", "zstd;level=1"], &[]);
        check(&["gzip;q=1;q=1"], &[]);
        check(&["gzip;q=1.000, br;q=1."], &[Brotli, Gzip]);
        check(&[",,gzip,"], &[Gzip]);
        check(&["gzipped"], &[]);
    }

    #[test]
    fn a_coding_that_is_not_offered_is_not_chosen() {
        let accepted = Accepted::parse([&b"br, gzip;q=0.5"[..]]);
        assert_eq!(accepted.preferred(Codings::NONE), Codings::NONE);
        let gzip = Codings::NONE.with(Gzip);
        assert_eq!(accepted.preferred(gzip.with(Zstd)), gzip);
    }

    #[test]
    fn each_coding_has_one_place() {
        let check = |codings: &[Coding], expected: &[Coding]| {
            let codings: Codings = codings.iter().copied().collect();
            assert!(codings.iter().eq(expected.iter().copied()), "{codings:?}");
            assert_eq!(Codings::from_bits(codings.bits()), codings);
            for coding in Coding::KNOWN {
                assert_eq!(codings.contains(coding), expected.contains(&coding));
            }
        };
        check(&[], &[]);
        check(&[Identity], &[]);
        check(&[Zstd, Gzip], &[Zstd, Gzip]);
        check(
            &[Gzip, Identity, Gzip, Brotli, Zstd, Gzip],
            &[Gzip, Brotli, Zstd],
        );
        for bits in 0..=u8::MAX {
            let codings = Codings::from_bits(bits);
            assert_eq!(
                codings
                    .iter()
                    .chain(Codings::ALL.iter())
                    .collect::<Codings>()
                    .iter()
                    .count(),
                3,
                "{bits}"
            );
        }
    }
}
