//! The parameter types that have a kind in Weave.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use tussah_weave::{Kind, Value};

/// A number of bytes, such as `200 MiB` in Weave.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Size(pub u64);

/// A number of items per second, such as `10 k/s` in Weave.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Rate(pub f64);

/// A parameter type that has a kind in Weave.
///
/// | type | kind |
/// |---|---|
/// | `bool` | flag |
/// | `u8`, `u16`, `u32`, `u64`, `usize` | count |
/// | `f64` | number |
/// | [`Size`] | size |
/// | [`Duration`] | duration |
/// | [`Rate`] | rate |
/// | `String` | text |
/// | [`PathBuf`] | path |
/// | [`SocketAddr`] | address |
///
/// A parameter of any other type has no kind, and only Rust code can set its value.
pub trait Param: Sized {
    /// The kind.
    const KIND: Kind;

    /// The largest value, if the kind is a count. In a compiled graph, a constant that exceeds this
    /// value is a compile error.
    const COUNT_MAX: u64 = u64::MAX;

    /// Converts a Weave value of this kind to the parameter's type.
    ///
    /// # Errors
    /// Returns the expected kind and range if the value has another kind or is out of range.
    fn read(value: &Value) -> Result<Self, String>;
}

macro_rules! params {
    ($($of:ty: $kind:ident($value:ident) $(up to $max:expr)? => $read:expr;)*) => {
        $(impl Param for $of {
            const KIND: Kind = Kind::$kind;
            $(const COUNT_MAX: u64 = $max as u64;)?

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
    u8: Count(value) up to u8::MAX => count(*value);
    u16: Count(value) up to u16::MAX => count(*value);
    u32: Count(value) up to u32::MAX => count(*value);
    u64: Count(value) => Ok(*value);
    usize: Count(value) up to usize::MAX => count(*value);
    f64: Number(value) => Ok(*value);
    Size: Size(value) => Ok(Size(*value));
    Duration: Duration(value) => Ok(*value);
    Rate: Rate(value) => Ok(Rate(*value));
    String: Text(value) => Ok(value.clone());
    PathBuf: Path(value) => Ok(value.into());
    SocketAddr: Address(value) => address(value);
}

fn count<T: Param + TryFrom<u64>>(value: u64) -> Result<T, String> {
    let read = T::try_from(value);
    read.map_err(|_| format!("is {value}: expected at most {}", T::COUNT_MAX))
}

/// Reads an address, or looks its name up.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs();
    let mut found = found.map_err(|error| format!("is {text:?}: {error}"))?;
    found
        .next()
        .ok_or_else(|| format!("is {text:?}, which has no address"))
}
