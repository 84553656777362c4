//! Colored state: values that only the events of one color touch.

mod value;
mod with;

pub use value::Colored;
pub use with::With;
