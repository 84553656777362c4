//! The servers and the command, from outside.

mod config;
mod fastcgi;
mod gnutella;
mod load;
mod modules;
mod send;
mod site;
mod video;
mod weave;
mod web;
mod web_robust;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};

/// An address that refuses TCP connections while its socket is kept: that one does not listen. A
/// port that was given back could become another test's.
fn refusing() -> (OwnedFd, SocketAddr) {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
    let socket = socket.expect("there are descriptors");
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("there is a port");
    let address = getsockname(&socket).expect("it is bound").try_into();
    (socket, address.expect("it is an IP address"))
}
