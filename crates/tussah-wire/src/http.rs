//! HTTP/1.1, for a server and for a load generator: RFC 9110 (semantics) and RFC 9112 (messages).
//!
//! Strict where two parsers could disagree about where a message ends or what it asks for: that is
//! how requests are smuggled. Whatever is refused is refused with a [`Refusal`], and the connection
//! is then to be closed, for nobody knows where the next message would begin.

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
mod span;
mod status;
mod syntax;
pub mod target;

pub use framing::Framing;
pub use method::Method;
pub use refusal::Refusal;
pub use status::Status;
