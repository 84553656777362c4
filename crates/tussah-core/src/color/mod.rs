//! Colors: serialization domains.

pub(crate) mod cell;
mod depth;
pub(crate) mod held;
#[cfg(all(test, loom))]
mod loom_tests;
mod post;
mod prune;
pub(crate) mod read;
mod reference;
pub(crate) mod table;
pub(crate) mod turn;

pub(crate) use post::Full;
pub use reference::ColorRef;

/// The name of a serialization domain (libasync-smp, USENIX 2003, "Coordinating callbacks").
///
/// Events of one color run one at a time and in the order in which they were posted; events of different colors may
/// run in parallel. Any value may be used: the number of a connection, the address of a shared structure, a hash.
/// Two equal values are the same color and two different values never are. The paper's colors were 32 bits wide and
/// were folded into 1,024 buckets; ours are 64 bits and exact, so an accidental clash needs the same value.
///
/// # Examples
/// ```
/// # use tussah_core as tussah;
/// use tussah::Color;
/// assert_eq!(Color::DEFAULT, Color(0));
/// assert_ne!(Color(1), Color(1 + 1024));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Color(pub u64);

impl Color {
    /// The color of every event that names none.
    pub const DEFAULT: Color = Color(0);
}

/// What a report calls a color.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ColorName {
    /// A color given by number.
    Number(Color),
    /// The color of a [`Colored`](crate::Colored) value of this type.
    Value {
        /// The type of the value.
        type_name: &'static str,
        /// Tells values of one type apart, in the order in which they were made.
        number: u64,
    },
}

impl From<u64> for Color {
    fn from(value: u64) -> Self {
        Color(value)
    }
}
