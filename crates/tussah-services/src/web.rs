//! A web server: a network of stages, with a connection as a color.

mod accept;
mod answer;
mod buffers;
mod cache_miss;
mod clock;
mod connection;
#[cfg(test)]
mod connection_loom_tests;
mod connections;
mod console;
mod counts;
mod diagnostics;
mod dynamic;
mod exchange;
mod graph;
mod page;
mod page_cache;
mod parse;
mod receive;
mod response;
mod retry;
mod route;
mod running;
mod send;
mod serve;
mod server;
mod status;
mod stream;
mod sync;
mod thread;
mod totals;
mod work;
// The modules that need no runtime: files beneath a root, and the server's surroundings.
pub mod access_log;
mod civil;
pub mod config;
pub mod port;
pub mod site;
pub mod tls;

pub use route::{Reply, Request, Route, Routes};
pub use running::{Running, Stopped};
pub use serve::{Web, WebError};
pub use tussah_wire::http::{Method, Status};
