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
/// Events of one color run one at a time, in the order in which they were posted. Events of
/// different colors may run in parallel. Any 64-bit number can serve as a color, such as the number
/// of a connection, the address of a shared structure, or a hash.
///
/// Equal values name the same color, and different values always name different colors. In the
/// libasync-smp paper, colors were 32-bit numbers that were folded into 1,024 buckets; here, colors
/// are 64-bit numbers that are never folded.
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
    /// The color of all events for which no color is given.
    pub const DEFAULT: Color = Color(0);
}

/// The name of a color in reports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ColorName {
    /// A color that is identified by a number.
    Number(Color),
    /// The color of a [`Colored`](crate::Colored) value.
    Value {
        /// The type of the value.
        type_name: &'static str,
        /// The position of the value among all colored values of the runtime, in order of creation,
        /// counted from 0.
        number: u64,
    },
}

impl From<u64> for Color {
    fn from(value: u64) -> Self {
        Color(value)
    }
}
