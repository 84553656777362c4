//! Responses: writing and parsing their heads.

mod parse;
mod write;

pub use parse::{Field, ResponseHead, RetryAfter, parse};
pub(crate) use write::push_decimal;
pub use write::{FieldInvalid, HeadWriter};

use super::{Method, Status};

/// Returns whether a response with `status` to a `method` request has a body, which may be empty
/// (RFC 9112, section 6.3).
pub fn has_body(method: Method, status: Status) -> bool {
    let is_tunnel = method == Method::Connect && matches!(status.code(), 200..=299);
    method != Method::Head && !is_tunnel && status.has_body()
}
