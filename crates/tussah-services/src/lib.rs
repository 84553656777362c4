//! Servers that tussah is proved by, as libraries: a web server, and what loads it.

#![forbid(unsafe_code)]

pub mod load;
mod signals;
mod units;
pub mod web;
