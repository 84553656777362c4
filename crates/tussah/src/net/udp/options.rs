//! The options of UDP sockets.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::UdpSocket;
use crate::net::socket::{Socket, packet_options};

/// Options.
///
/// # Examples
/// ```
/// use std::net::Ipv4Addr;
/// use tussah::net::UdpSocket;
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let socket = UdpSocket::bind("0.0.0.0:0")?;
/// socket.set_broadcast(true)?;
/// socket.set_ttl(3)?;
/// assert!(socket.broadcast()? && socket.ttl()? == 3);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
impl UdpSocket {
    /// Whether datagrams may be sent to a broadcast address.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        self.set(|socket| socket.set_broadcast(on))
    }

    /// What [`set_broadcast`](Self::set_broadcast) has set.
    ///
    /// # Errors
    /// What the system says.
    pub fn broadcast(&self) -> io::Result<bool> {
        self.ask(Socket::broadcast)
    }

    /// Sets how many routers datagrams to a group may pass; 1 by default.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_multicast_ttl(&self, hops: u32) -> io::Result<()> {
        self.set(|socket| socket.set_multicast_ttl(hops))
    }

    /// How many routers datagrams to a group may pass.
    ///
    /// # Errors
    /// What the system says.
    pub fn multicast_ttl(&self) -> io::Result<u32> {
        self.ask(Socket::multicast_ttl)
    }

    /// Whether datagrams to a group come back to this machine, as they do by default.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_multicast_loop(&self, on: bool) -> io::Result<()> {
        self.set(|socket| socket.set_multicast_loop(on))
    }

    /// What [`set_multicast_loop`](Self::set_multicast_loop) has set.
    ///
    /// # Errors
    /// What the system says.
    pub fn multicast_loop(&self) -> io::Result<bool> {
        self.ask(Socket::multicast_loop)
    }

    /// Sets the interface, by its address, from which datagrams go to a group of IPv4.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_multicast_if_v4(&self, interface: Ipv4Addr) -> io::Result<()> {
        self.set(|socket| socket.set_multicast_if_v4(interface))
    }

    /// Sets the interface, by its number, from which datagrams go to a group of IPv6.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_multicast_if_v6(&self, interface: u32) -> io::Result<()> {
        self.set(|socket| socket.set_multicast_if_v6(interface))
    }

    /// Receives what is sent to a group, at the interface with an address; `UNSPECIFIED`: one that the system chooses.
    ///
    /// # Errors
    /// What the system says.
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.set(|socket| socket.join_v4(group, interface))
    }

    /// Ends what [`join_multicast_v4`](Self::join_multicast_v4) has begun.
    ///
    /// # Errors
    /// What the system says.
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.set(|socket| socket.leave_v4(group, interface))
    }

    /// Receives what is sent to a group, at the interface with a number; 0: one that the system chooses.
    ///
    /// # Errors
    /// What the system says.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.set(|socket| socket.join_v6(*group, interface))
    }

    /// Ends what [`join_multicast_v6`](Self::join_multicast_v6) has begun.
    ///
    /// # Errors
    /// What the system says.
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.set(|socket| socket.leave_v6(*group, interface))
    }

    packet_options!();

    /// Takes the error that the system has noted for the socket, if any. The next operation doesn't report it then.
    ///
    /// # Errors
    /// What the system says.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self.take_unreported() {
            Some(error) => Ok(Some(error)),
            None => self.ask(Socket::take_error),
        }
    }

    fn set(&self, set: impl FnOnce(&Socket) -> io::Result<()>) -> io::Result<()> {
        set(&self.socket).map_err(|error| self.failed("set an option of the socket at", error))
    }

    fn ask<T>(&self, ask: impl FnOnce(&Socket) -> io::Result<T>) -> io::Result<T> {
        ask(&self.socket).map_err(|error| self.failed("ask about the socket at", error))
    }
}
