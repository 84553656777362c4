//! A web server and a load generator as libraries. They show how tussah works in practice.

#![forbid(unsafe_code)]

mod descriptors;
mod html;
pub mod load;
pub mod new;
mod signals;
mod units;
pub mod web;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/web-server.md")]
struct WebServer;
