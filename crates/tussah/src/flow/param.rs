//! The parameter types that have a kind in Weave.

use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::{NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use tussah_weave::{Domain, Kind, Value};

/// A number of bytes, such as `200 MiB` in Weave.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Size(pub u64);

/// A number of items per second, such as `10 k/s` in Weave.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Rate(pub f64);

/// A number from 0 to 1, such as `0.5` or `5 %` in Weave.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Share(pub f64);

/// A time that is not 0, such as the `5 ms` between two ticks.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::flow::Period;
///
/// let second = Duration::from_secs(1);
/// assert_eq!(Period::new(second).map(Period::get), Some(second));
/// assert_eq!(Period::new(Duration::ZERO), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Period(Duration);

impl Period {
    /// Creates a period, or returns `None` if the time is 0.
    #[must_use]
    pub fn new(time: Duration) -> Option<Self> {
        (!time.is_zero()).then_some(Self(time))
    }

    /// Returns the time.
    #[must_use]
    pub fn get(self) -> Duration {
        self.0
    }
}

/// A parameter type that has a kind in Weave.
///
/// | type | kind |
/// |---|---|
/// | `bool` | flag |
/// | `u8`, `u16`, `u32`, `u64`, `usize` | count |
/// | `NonZeroU8`, `NonZeroU16`, `NonZeroU32`, `NonZeroU64`, `NonZeroUsize` | count, at least 1 |
/// | `f64` | number |
/// | [`Share`] | number from 0 to 1 |
/// | [`Size`] | size |
/// | [`Duration`] | duration |
/// | [`Period`] | duration, at least 1 ns |
/// | [`Rate`] | rate |
/// | `String` | text |
/// | [`FieldName<T>`](super::FieldName) | text, a field of `T` |
/// | [`PathBuf`] | path |
/// | [`SocketAddr`] | address |
///
/// A parameter of any other type has no kind, and only Rust code can set its value.
pub trait Param: Sized {
    /// The kind.
    const KIND: Kind;

    /// The least accepted number: of items, bytes, seconds, or items per second.
    const LEAST: f64 = f64::NEG_INFINITY;

    /// The greatest accepted number.
    const MOST: f64 = f64::INFINITY;

    /// The accepted texts. An empty slice means that any text is accepted.
    const WORDS: &'static [&'static str] = &[];

    /// Converts a Weave value to the parameter's type. The value is of the kind [`KIND`], within
    /// the range from [`LEAST`] to [`MOST`], and one of the [`WORDS`].
    ///
    /// [`KIND`]: Self::KIND
    /// [`LEAST`]: Self::LEAST
    /// [`MOST`]: Self::MOST
    /// [`WORDS`]: Self::WORDS
    ///
    /// # Errors
    /// Returns the reason if the type has no such value. The reason continues a sentence that
    /// begins with the name of the parameter, such as `is \"x:1\", which has no address`.
    fn read(value: &Value) -> Result<Self, String>;
}

/// Converts a Weave value that may be of another kind, or one that the parameter does not accept.
pub(super) fn read<T: Param>(value: &Value) -> Result<T, String> {
    if value.kind() != T::KIND {
        return Err(format!("is a {}: expected a {}", value.kind(), T::KIND));
    }
    let domain = domain((T::LEAST, T::MOST), T::WORDS);
    let checked = domain.check(value);
    checked.map_err(|expected| format!("is {value}: expected {expected}"))?;
    T::read(value)
}

/// Returns the domain of a parameter's type.
pub(super) fn domain((least, most): (f64, f64), words: &[&str]) -> Domain {
    Domain {
        least: Some(least).filter(|it| it.is_finite()),
        most: Some(most).filter(|it| it.is_finite()),
        words: words.iter().map(|&word| word.to_owned()).collect(),
        field_of: None,
    }
}

macro_rules! params {
    ($($of:ty: $kind:ident($value:ident) $(from $least:literal)? $(to $most:expr)? => $read:expr;)*) => {
        $(impl Param for $of {
            const KIND: Kind = Kind::$kind;
            $(const LEAST: f64 = $least;)?
            $(const MOST: f64 = $most as f64;)?

            fn read(value: &Value) -> Result<Self, String> {
                match value {
                    Value::$kind($value) => $read,
                    other => Err(format!("is a {}: expected a {}", other.kind(), Kind::$kind)),
                }
            }
        })*
    };
}

params! {
    bool: Flag(value) => Ok(*value);
    u8: Count(value) to u8::MAX => count(*value);
    u16: Count(value) to u16::MAX => count(*value);
    u32: Count(value) to u32::MAX => count(*value);
    u64: Count(value) => Ok(*value);
    usize: Count(value) to usize::MAX => count(*value);
    NonZeroU8: Count(value) from 1.0 to u8::MAX => count(*value).and_then(count::<u8, _>);
    NonZeroU16: Count(value) from 1.0 to u16::MAX => count(*value).and_then(count::<u16, _>);
    NonZeroU32: Count(value) from 1.0 to u32::MAX => count(*value).and_then(count::<u32, _>);
    NonZeroU64: Count(value) from 1.0 => count(*value);
    NonZeroUsize: Count(value) from 1.0 to usize::MAX => count(*value).and_then(count::<usize, _>);
    f64: Number(value) => Ok(*value);
    Share: Number(value) from 0.0 to 1.0 => Ok(Share(*value));
    Size: Size(value) => Ok(Size(*value));
    Duration: Duration(value) => Ok(*value);
    Period: Duration(value) from 1e-9 => Period::new(*value).ok_or_else(|| "is 0".to_owned());
    Rate: Rate(value) => Ok(Rate(*value));
    String: Text(value) => Ok(value.clone());
    PathBuf: Path(value) => Ok(value.into());
    SocketAddr: Address(value) => address(value);
}

/// Converts a count to another type of integers.
fn count<N: Copy + Display, T: TryFrom<N>>(value: N) -> Result<T, String> {
    let read = T::try_from(value);
    read.map_err(|_| format!("is {value}, which is out of range"))
}

/// Reads an address, or looks its name up.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs();
    let mut found = found.map_err(|error| format!("is {text:?}: {error}"))?;
    found
        .next()
        .ok_or_else(|| format!("is {text:?}, which has no address"))
}
