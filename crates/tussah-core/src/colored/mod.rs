//! Colored state: values that only events of one color can access.

mod all;
mod in_span;
#[cfg(all(test, loom))]
mod loom_tests;
mod reply;
mod ticket;
mod value;
mod with;

pub use all::{AllColored, WithAll, with_all};
pub use value::Colored;
pub use with::{Operation, Read, With, Write};
