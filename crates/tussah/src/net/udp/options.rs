//! Options of UDP sockets.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::UdpSocket;
use crate::net::socket::{Socket, packet_options};

/// Socket options.
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
    /// Sets whether datagrams may be sent to a broadcast address.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        self.set(|socket| socket.set_broadcast(on))
    }

    /// Returns whether broadcasting is allowed; see [`set_broadcast`](Self::set_broadcast).
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn broadcast(&self) -> io::Result<bool> {
        self.ask(Socket::broadcast)
    }

    /// Sets the TTL (maximum hops) of multicast datagrams. Default: 1.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn set_multicast_ttl(&self, hops: u32) -> io::Result<()> {
        self.set(|socket| socket.set_multicast_ttl(hops))
    }

    /// Returns the TTL (maximum hops) of multicast datagrams.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn multicast_ttl(&self) -> io::Result<u32> {
        self.ask(Socket::multicast_ttl)
    }

    /// Sets whether multicast datagrams loop back to this machine. Default: true.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn set_multicast_loop(&self, on: bool) -> io::Result<()> {
        self.set(|socket| socket.set_multicast_loop(on))
    }

    /// Returns whether multicast datagrams loop back; see
    /// [`set_multicast_loop`](Self::set_multicast_loop).
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn multicast_loop(&self) -> io::Result<bool> {
        self.ask(Socket::multicast_loop)
    }

    /// Sets the interface, identified by its address, for outgoing IPv4 multicast datagrams.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn set_multicast_if_v4(&self, interface: Ipv4Addr) -> io::Result<()> {
        self.set(|socket| socket.set_multicast_if_v4(interface))
    }

    /// Sets the interface, identified by its index, for outgoing IPv6 multicast datagrams.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn set_multicast_if_v6(&self, interface: u32) -> io::Result<()> {
        self.set(|socket| socket.set_multicast_if_v6(interface))
    }

    /// Joins a multicast group on the interface with the given address. With `UNSPECIFIED`, the
    /// system chooses the interface.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.set(|socket| socket.join_v4(group, interface))
    }

    /// Leaves a group joined with [`join_multicast_v4`](Self::join_multicast_v4).
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.set(|socket| socket.leave_v4(group, interface))
    }

    /// Joins a multicast group on the interface with the given index. With 0, the system chooses
    /// the interface.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.set(|socket| socket.join_v6(*group, interface))
    }

    /// Leaves a group joined with [`join_multicast_v6`](Self::join_multicast_v6).
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.set(|socket| socket.leave_v6(*group, interface))
    }

    packet_options!();

    /// Returns and clears the socket's pending error, if any. Later operations do not report the
    /// cleared error again.
    ///
    /// # Errors
    /// Returns the system's error.
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
