//! `tussah gnutella`, spoken to over sockets.

mod catcher;
mod files;
mod limits;
mod network;
mod process;
mod routes;
mod servent;
