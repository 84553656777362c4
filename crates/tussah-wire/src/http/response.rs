//! Responses: writing and reading of their heads.

mod parse;
mod write;

pub use parse::{Field, ResponseHead, RetryAfter, parse};
pub use write::{FieldInvalid, HeadWriter};
