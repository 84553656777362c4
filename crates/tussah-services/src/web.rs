//! A web server: a network of stages, with a connection as a color.

// What needs no runtime: files beneath a root, and what is around the server.
mod civil;
pub mod config;
pub mod site;
