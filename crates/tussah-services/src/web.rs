//! A web server: a network of stages, with a connection as a color.

mod accept;
mod answer;
mod cache_miss;
mod clock;
mod connection;
mod exchange;
mod graph;
mod page;
mod page_cache;
mod parse;
mod receive;
mod response;
mod send;
pub mod serve;
mod server;
mod stream;
mod thread;
// What needs no runtime: files beneath a root, and what is around the server.
pub mod access_log;
mod civil;
pub mod config;
pub mod port;
pub mod site;
pub mod tls;
