//! `tussah video`, spoken to over sockets.

mod admission;
mod pace;
mod play;
mod playlist;
mod process;
mod server;
