//! Values of parameters with their kinds.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::parse::ConstantError;
use crate::types::Type;
use crate::unit;

/// The kind of a parameter or an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A non-negative integer.
    Count,
    /// A number, possibly with a fraction or a sign. Where a number is expected, a count or a
    /// percentage is accepted.
    Number,
    /// A number of bytes.
    Size,
    /// A length of time.
    Duration,
    /// A number of items per unit of time.
    Rate,
    /// Text.
    Text,
    /// The path of a file. Where a path is expected, a string is read as a path.
    Path,
    /// A host and a port. Where an address is expected, a string is read as an address.
    Address,
    /// A Rust type. Only graphs that are compiled into a program can have parameters of this kind.
    Rust(Type),
}

impl Kind {
    /// The kinds that have a name in Weave.
    pub(crate) const NAMED: &[Kind] = &[
        Kind::Flag,
        Kind::Count,
        Kind::Number,
        Kind::Size,
        Kind::Duration,
        Kind::Rate,
        Kind::Text,
        Kind::Path,
        Kind::Address,
    ];

    /// Returns the name of the kind. The name of a [`Rust`](Self::Rust) kind is always
    /// `value of a Rust type`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Count => "count",
            Self::Number => "number",
            Self::Size => "size",
            Self::Duration => "duration",
            Self::Rate => "rate",
            Self::Text => "text",
            Self::Path => "path",
            Self::Address => "address",
            Self::Rust(_) => "value of a Rust type",
        }
    }

    /// Returns an example of a value, for help texts. `None` if the values have a Rust type.
    #[must_use]
    pub fn example(&self) -> Option<&'static str> {
        Some(match self {
            Self::Flag => "true",
            Self::Count => "10 or 2 k",
            Self::Number => "0.5 or 5 %",
            Self::Size => "200 MiB",
            Self::Duration => "50 ms",
            Self::Rate => "10 k/s",
            Self::Text => "\"text\"",
            Self::Path => "\"directory/file\"",
            Self::Address => "\"127.0.0.1:8080\"",
            Self::Rust(_) => return None,
        })
    }

    /// Returns whether a value of this kind can be given where `wanted` is expected.
    pub(crate) fn suits(&self, wanted: &Kind) -> bool {
        self == wanted
            || matches!(
                (self, wanted),
                (Self::Count, Self::Number) | (Self::Text, Self::Path | Self::Address)
            )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rust(ty) => write!(out, "{ty}"),
            kind => out.write_str(kind.name()),
        }
    }
}

/// The value of a parameter or an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Flag(bool),
    /// A non-negative integer.
    Count(u64),
    /// A finite number.
    Number(f64),
    /// A number of bytes.
    Size(u64),
    /// A length of time.
    Duration(Duration),
    /// A number of items per second, finite and not negative.
    Rate(f64),
    /// Text.
    Text(String),
    /// The path of a file.
    Path(String),
    /// A host and a port, such as `127.0.0.1:8080` or `[::1]:80`.
    Address(String),
    /// The name of a parameter that has a Rust type. The parameter's value exists only in the
    /// compiled program.
    Rust(String),
}

/// The error for a string or a value that cannot be converted to the expected kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    message: String,
}

impl fmt::Display for ValueError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl Error for ValueError {}

impl Value {
    /// Returns the kind. If the value has a Rust type, the kind contains the name of the parameter
    /// instead of the type.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Flag(_) => Kind::Flag,
            Self::Count(_) => Kind::Count,
            Self::Number(_) => Kind::Number,
            Self::Size(_) => Kind::Size,
            Self::Duration(_) => Kind::Duration,
            Self::Rate(_) => Kind::Rate,
            Self::Text(_) => Kind::Text,
            Self::Path(_) => Kind::Path,
            Self::Address(_) => Kind::Address,
            Self::Rust(name) => Kind::Rust(Type::new(name.as_str())),
        }
    }

    /// Converts the value to `kind`: for example, a count to a number, or a string to a path or an
    /// address.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be converted to `kind`, for example because a string
    /// does not consist of a host and a port.
    pub fn convert(self, kind: &Kind) -> Result<Self, ValueError> {
        match (self, kind) {
            (Self::Count(count), Kind::Number) => Ok(Self::Number(count as f64)),
            (Self::Text(text), Kind::Path) => Ok(Self::Path(text)),
            (Self::Text(text), Kind::Address) => match is_address(&text) {
                true => Ok(Self::Address(text)),
                false => Err(ValueError {
                    message: format!(
                        "{text:?} is not an address, expected a host and a port such as \
                         \"127.0.0.1:8080\""
                    ),
                }),
            },
            (value @ Self::Rust(_), Kind::Rust(_)) => Ok(value),
            (value, kind) if value.kind() == *kind => Ok(value),
            (value, kind) => {
                let shown = match value {
                    // Without a point, it would be a count.
                    Self::Number(number) if number.fract() == 0.0 => format!("{number:.1}"),
                    _ => value.to_string(),
                };
                let message = format!("{shown} is a {}, expected a {kind}", value.kind());
                Err(ValueError { message })
            }
        }
    }

    /// Returns the number in the value: of items, bytes, seconds, or items per second. Returns
    /// `None` if the value is not a number.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(number) | Self::Size(number) => Some(*number as f64),
            Self::Number(number) | Self::Rate(number) => Some(*number),
            Self::Duration(time) => Some(time.as_secs_f64()),
            _ => None,
        }
    }

    /// Returns the text in the value, or an empty string if the value is not a text.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Path(text) | Self::Address(text) | Self::Rust(text) => text,
            _ => "",
        }
    }

    /// Parses a value from a command line, where strings have no quotes.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a valid value of this kind.
    ///
    /// ```
    /// use tussah_weave::{Kind, Value};
    ///
    /// assert_eq!(Value::parse("200 MiB", &Kind::Size), Ok(Value::Size(200 << 20)));
    /// assert_eq!(Value::parse("2k", &Kind::Count), Ok(Value::Count(2000)));
    /// assert_eq!(Value::parse("a b", &Kind::Text), Ok(Value::Text("a b".into())));
    /// assert!(Value::parse("50 ms", &Kind::Size).is_err());
    /// ```
    pub fn parse(text: &str, kind: &Kind) -> Result<Self, ValueError> {
        let error = |message: String| ValueError { message };
        match kind {
            Kind::Text => Ok(Self::Text(text.to_owned())),
            Kind::Path | Kind::Address => Self::Text(text.to_owned()).convert(kind),
            Kind::Rust(ty) => Err(error(format!("a {ty} cannot be given as text"))),
            _ => {
                let found = crate::parse::constant(text).map_err(|why| {
                    let example = kind.example().unwrap_or_default();
                    let value = text.trim();
                    error(match why {
                        ConstantError::NotConstant => {
                            format!("{text:?} is not a {kind}, expected for example {example}")
                        }
                        ConstantError::Number(why) => format!("{value} {why}"),
                        ConstantError::TooLarge => format!("{value} is too large"),
                    })
                })?;
                let found_kind = found.kind();
                // The value may have been written in another form.
                found.convert(kind).map_err(|_| {
                    let text = text.trim();
                    error(format!("{text} is a {found_kind}, expected a {kind}"))
                })
            }
        }
    }
}

/// Returns whether a string is a host, a colon and a port.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let is_bare = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
    !host.is_empty()
        && is_bare
        && !host.contains(char::is_whitespace)
        && port.parse::<u16>().is_ok()
}

/// Writes the value as Weave spells it.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(out, "{flag}"),
            Self::Count(count) => write!(out, "{count}"),
            Self::Number(number) => write!(out, "{number}"),
            Self::Size(bytes) => {
                let (count, unit) = unit::size(*bytes);
                write!(out, "{count} {unit}")
            }
            Self::Duration(time) => {
                let (count, unit) = unit::duration(*time);
                write!(out, "{count} {unit}")
            }
            Self::Rate(rate) => write!(out, "{rate}/s"),
            Self::Text(text) | Self::Path(text) | Self::Address(text) => {
                out.write_str("\"")?;
                for c in text.chars() {
                    match c {
                        '\'' => out.write_str("'")?,
                        c => write!(out, "{}", c.escape_debug())?,
                    }
                }
                out.write_str("\"")
            }
            Self::Rust(name) => out.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        let check = |text: &str, expected: bool| assert_eq!(is_address(text), expected, "{text}");
        check("127.0.0.1:8080", true);
        check("localhost:0", true);
        check("[::1]:80", true);
        check("::1:80", false);
        check(":80", false);
        check("localhost", false);
        check("localhost:99999", false);
        check("a b:80", false);
    }

    #[test]
    fn values_are_read_from_a_command_line() {
        let check = |text: &str, kind: Kind, expected: &str| {
            let shown = match Value::parse(text, &kind) {
                Ok(value) => value.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(shown, expected);
        };
        check("true", Kind::Flag, "true");
        check("1.5 GiB", Kind::Size, "1536 MiB");
        check("90s", Kind::Duration, "90 s");
        check("3", Kind::Number, "3");
        check("2.0", Kind::Count, "2.0 is a number, expected a count");
        check("-1", Kind::Count, "-1 is a number, expected a count");
        check("99999999TiB", Kind::Size, "99999999TiB is too large");
        check(
            "18446744073709551616",
            Kind::Count,
            "18446744073709551616 is too large",
        );
        check("0.5 B", Kind::Size, "0.5 B is not a whole number of bytes");
        check("5 M * 1 h", Kind::Duration, "5000000 h");
        check(
            "5 M * 1 h + 1 ns",
            Kind::Duration,
            "5 M * 1 h + 1 ns is too large",
        );
        check(
            "5000001 h",
            Kind::Duration,
            "5000001 h is longer than 5000000 h, the longest duration",
        );
        check(
            "2 * 10000000 TiB",
            Kind::Size,
            "2 * 10000000 TiB is too large",
        );
        check(
            "10 MiB/s",
            Kind::Rate,
            "\"10 MiB/s\" is not a rate, expected for example 10 k/s",
        );
        check("10 k/s", Kind::Rate, "10000/s");
        check(
            "x",
            Kind::Count,
            "\"x\" is not a count, expected for example 10 or 2 k",
        );
        check("50 ms", Kind::Size, "50 ms is a duration, expected a size");
        check(
            "1 +",
            Kind::Count,
            "\"1 +\" is not a count, expected for example 10 or 2 k",
        );
        check(
            "http://a",
            Kind::Address,
            "\"http://a\" is not an address, expected a host and a port such as \"127.0.0.1:8080\"",
        );
    }
}
