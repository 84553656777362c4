//! A web server, a video server, a Gnutella router, a load generator, and HTTP modules for flow
//! graphs, as libraries. These libraries show how tussah works in practice.

#![forbid(unsafe_code)]

mod address;
mod command;
mod descriptors;
pub mod fastcgi;
pub mod gnutella;
mod graph_status;
pub mod load;
pub mod modules;
pub mod new;
mod signals;
mod units;
pub mod video;
pub mod web;

pub use command::Messages;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/web-server.md")]
struct WebServer;
