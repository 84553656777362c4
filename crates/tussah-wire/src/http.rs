//! HTTP/1.1, for a server and for a load generator: RFC 9110 (semantics) and RFC 9112 (messages).
//!
//! The parsers are strict wherever two parsers could disagree about the end of a message or its
//! meaning, because request smuggling exploits such differences. A parser that refuses a message
//! returns a [`Refusal`]. After a refusal, the connection must be closed, because the start of the
//! next message is unknown.

pub mod body;
pub mod condition;
mod connection;
pub mod date;
pub mod encoding;
mod framing;
pub mod head;
mod line;
mod method;
pub mod range;
mod refusal;
pub mod response;
pub(crate) mod span;
mod status;
pub(crate) mod syntax;
pub mod target;

pub use framing::Framing;
pub(crate) use framing::decimal;
pub use method::Method;
pub use refusal::Refusal;
pub use status::Status;
