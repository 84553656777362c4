//! Which codings of the content a client takes (RFC 9110, section 12.5.3).

use super::syntax::{list, trim};

/// A coding that a representation can be stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// As it is.
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
}

/// How many codings there are.
const CODINGS: usize = Coding::Zstd as usize + 1;

impl Coding {
    /// The name in `Content-Encoding`; that of the identity is only used in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    fn from_name(name: &[u8]) -> Option<Self> {
        let known = [Self::Identity, Self::Gzip, Self::Brotli, Self::Zstd];
        let same = |coding: &Self| coding.name().as_bytes().eq_ignore_ascii_case(name);
        let old_gzip = || name.eq_ignore_ascii_case(b"x-gzip").then_some(Self::Gzip);
        known.into_iter().find(same).or_else(old_gzip)
    }
}

/// What a client says about codings: how much it likes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// In thousandths, from 0, which is not at all.
    qualities: [u16; CODINGS],
}

impl Accepted {
    /// Reads the values of the lines of `Accept-Encoding`.
    ///
    /// Without any line the client takes every coding, says section 12.5.3; but only the identity is sure to be understood,
    /// and so only it is accepted. It is also accepted if it is not named, but liked less than
    /// whatever is. A member of the list that is malformed is left out.
    ///
    /// ```
    /// use tussah_wire::http::encoding::{Accepted, Coding};
    ///
    /// let accepted = Accepted::parse([&b"gzip;q=0.8, br"[..]]);
    /// assert_eq!(accepted.choose(&[Coding::Gzip, Coding::Brotli]), Some(Coding::Brotli));
    /// assert_eq!(accepted.choose(&[Coding::Zstd, Coding::Identity]), Some(Coding::Identity));
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

    /// How much a coding is liked, in thousandths; 0 if it is not accepted.
    pub fn quality(&self, coding: Coding) -> u16 {
        self.qualities[coding as usize]
    }

    /// The coding out of `offered` that the client likes most, and the first of those that it likes equally; nothing if
    /// it takes none of them.
    pub fn choose(&self, offered: &[Coding]) -> Option<Coding> {
        // Of several maxima `max_by_key` takes the last.
        let best = offered
            .iter()
            .copied()
            .rev()
            .max_by_key(|&coding| self.quality(coding))?;
        (self.quality(best) > 0).then_some(best)
    }
}

/// The weight in thousandths, of the parameters of a member (section 12.4.2); nothing if it is malformed.
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
    use super::*;

    #[test]
    fn choices() {
        use Coding::*;
        let check = |lines: &[&str], expected| {
            let accepted = Accepted::parse(lines.iter().map(|line| line.as_bytes()));
            assert_eq!(
                accepted.choose(&[Zstd, Brotli, Gzip, Identity]),
                expected,
                "{lines:?}"
            );
        };
        check(&[], Some(Identity));
        check(&[""], Some(Identity));
        check(&["gzip"], Some(Gzip));
        check(&["GZip"], Some(Gzip));
        check(&["x-gzip"], Some(Gzip));
        check(&["gzip, deflate, br, zstd"], Some(Zstd));
        check(&["gzip, deflate, br"], Some(Brotli));
        check(&["gzip", "br"], Some(Brotli));
        check(&["gzip;q=1.0, br;q=0.9"], Some(Gzip));
        check(&["gzip;q=0.001"], Some(Gzip));
        check(&["gzip; Q=0.5 , br ; q=0.6"], Some(Brotli));
        check(&["gzip;q=0"], Some(Identity));
        check(&["gzip;q=0.000, br;q=0.0"], Some(Identity));
        check(&["identity"], Some(Identity));
        check(&["identity, gzip;q=0.5"], Some(Identity));
        check(&["identity;q=0.5, gzip"], Some(Gzip));
        check(&["*"], Some(Zstd));
        check(&["*;q=0.5, br"], Some(Brotli));
        check(&["*, zstd;q=0"], Some(Brotli));
        check(&["*;q=0"], None);
        check(&["*;q=0, identity"], Some(Identity));
        check(&["identity;q=0"], None);
        check(&["identity;q=0, gzip"], Some(Gzip));
        check(&["compress, deflate"], Some(Identity));
        check(&["gzip;q=2, br;q=1.5, zstd;q=x"], Some(Identity));
        check(&["gzip;q=0.1234"], Some(Identity));
        check(&["gzip;q=", "br;q", "zstd;level=1"], Some(Identity));
        check(&["gzip;q=1;q=1"], Some(Identity));
        check(&["gzip;q=1.000, br;q=1."], Some(Brotli));
        check(&[",,gzip,"], Some(Gzip));
        check(&["gzipped"], Some(Identity));
    }

    #[test]
    fn nothing_is_chosen_of_what_is_not_offered() {
        let accepted = Accepted::parse([&b"br"[..]]);
        assert_eq!(accepted.choose(&[]), None);
        assert_eq!(accepted.choose(&[Coding::Gzip]), None);
        assert_eq!(
            (
                accepted.quality(Coding::Brotli),
                accepted.quality(Coding::Gzip)
            ),
            (1000, 0)
        );
    }
}
