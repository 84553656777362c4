//! The stages of the server, each in a file of its own, and the graph that connects them.

pub(crate) mod accept;
mod cache_miss;
mod dynamic;
pub(crate) mod graph;
mod page_cache;
mod parse;
mod receive;
mod send;
