//! Connections: their threads, streams and exchanges, and the state that a thread shares with the
//! stages.

pub(crate) mod connections;
pub(crate) mod exchange;
#[cfg(test)]
mod loom_tests;
pub(crate) mod pipe;
pub(crate) mod response;
pub(crate) mod source;
pub(crate) mod state;
pub(crate) mod stream;
mod sync;
pub(crate) mod thread;
