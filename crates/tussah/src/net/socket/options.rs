//! Socket options.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::{AddressFamily, sockopt};

use super::Socket;
use crate::net::KeepAlive;

/// Options, set and read immediately.
impl Socket {
    pub(crate) fn set_reuse_address(&self, on: bool) -> io::Result<()> {
        Ok(sockopt::set_socket_reuseaddr(self.as_fd(), on)?)
    }

    pub(crate) fn set_reuse_port(&self, on: bool) -> io::Result<()> {
        Ok(sockopt::set_socket_reuseport(self.as_fd(), on)?)
    }

    pub(crate) fn set_v6only(&self, on: bool) -> io::Result<()> {
        Ok(sockopt::set_ipv6_v6only(self.as_fd(), on)?)
    }

    pub(crate) fn set_nodelay(&self, on: bool) -> io::Result<()> {
        Ok(sockopt::set_tcp_nodelay(self.as_fd(), on)?)
    }

    pub(crate) fn nodelay(&self) -> io::Result<bool> {
        Ok(sockopt::tcp_nodelay(self.as_fd())?)
    }

    pub(crate) fn set_keep_alive(&self, keep_alive: Option<KeepAlive>) -> io::Result<()> {
        let fd = self.as_fd();
        if let Some(keep_alive) = keep_alive {
            sockopt::set_tcp_keepidle(fd, keep_alive.idle)?;
            sockopt::set_tcp_keepintvl(fd, keep_alive.interval)?;
            sockopt::set_tcp_keepcnt(fd, keep_alive.count)?;
        }
        Ok(sockopt::set_socket_keepalive(fd, keep_alive.is_some())?)
    }

    pub(crate) fn keep_alive(&self) -> io::Result<Option<KeepAlive>> {
        let fd = self.as_fd();
        if !sockopt::socket_keepalive(fd)? {
            return Ok(None);
        }
        Ok(Some(KeepAlive {
            idle: sockopt::tcp_keepidle(fd)?,
            interval: sockopt::tcp_keepintvl(fd)?,
            count: sockopt::tcp_keepcnt(fd)?,
        }))
    }

    pub(crate) fn set_linger(&self, time: Option<Duration>) -> io::Result<()> {
        Ok(sockopt::set_socket_linger(self.as_fd(), time)?)
    }

    pub(crate) fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(sockopt::socket_linger(self.as_fd())?)
    }

    pub(crate) fn set_ttl(&self, hops: u32) -> io::Result<()> {
        let fd = self.as_fd();
        if sockopt::socket_domain(fd)? != AddressFamily::INET6 {
            return Ok(sockopt::set_ip_ttl(fd, hops)?);
        }
        let hops = u8::try_from(hops).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(sockopt::set_ipv6_unicast_hops(fd, Some(hops))?)
    }

    pub(crate) fn ttl(&self) -> io::Result<u32> {
        let fd = self.as_fd();
        if sockopt::socket_domain(fd)? != AddressFamily::INET6 {
            return Ok(sockopt::ip_ttl(fd)?);
        }
        Ok(sockopt::ipv6_unicast_hops(fd)?.into())
    }

    pub(crate) fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        Ok(sockopt::set_socket_recv_buffer_size(self.as_fd(), bytes)?)
    }

    pub(crate) fn receive_buffer(&self) -> io::Result<usize> {
        Ok(sockopt::socket_recv_buffer_size(self.as_fd())?)
    }

    pub(crate) fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        Ok(sockopt::set_socket_send_buffer_size(self.as_fd(), bytes)?)
    }

    pub(crate) fn send_buffer(&self) -> io::Result<usize> {
        Ok(sockopt::socket_send_buffer_size(self.as_fd())?)
    }
}

/// Defines the methods for options that all internet sockets have, for a type with `set` and `ask`.
macro_rules! packet_options {
    () => {
        /// Sets the TTL (maximum hops) of outgoing packets.
        ///
        /// # Errors
        /// Returns `InvalidInput` for values other than 1 to 255, and otherwise the system's error.
        pub fn set_ttl(&self, hops: u32) -> io::Result<()> {
            self.set(|socket| socket.set_ttl(hops))
        }

        /// Returns the TTL (maximum hops) of outgoing packets.
        ///
        /// # Errors
        /// Returns the system's error.
        pub fn ttl(&self) -> io::Result<u32> {
            self.ask(Socket::ttl)
        }

        /// Sets the size of the system's receive buffer, in bytes. The system doubles this size,
        /// within the limits that it sets.
        ///
        /// # Errors
        /// Returns the system's error.
        pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
            self.set(|socket| socket.set_receive_buffer(bytes))
        }

        /// Returns the size of the system's receive buffer, in bytes. A datagram that does not fit
        /// is lost.
        ///
        /// # Errors
        /// Returns the system's error.
        pub fn receive_buffer(&self) -> io::Result<usize> {
            self.ask(Socket::receive_buffer)
        }

        /// Sets the size of the system's send buffer, in bytes. The system doubles this size,
        /// within the limits that it sets.
        ///
        /// # Errors
        /// Returns the system's error.
        pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
            self.set(|socket| socket.set_send_buffer(bytes))
        }

        /// Returns the size of the system's send buffer, in bytes.
        ///
        /// # Errors
        /// Returns the system's error.
        pub fn send_buffer(&self) -> io::Result<usize> {
            self.ask(Socket::send_buffer)
        }
    };
}

pub(crate) use packet_options;
