//! The stages of the server, each in its own file, and the graph that connects them. No stage names
//! another stage; only the graph knows both ends of an edge.

pub(crate) mod accept;
pub(crate) mod admission;
mod cache_miss;
mod dynamic;
pub(crate) mod graph;
mod message;
mod page_cache;
pub(crate) mod parse;
mod plan;
mod receive;
pub(crate) mod send;
