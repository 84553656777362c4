//! Socket options for broadcast and multicast.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

use rustix::net::{AddressFamily, sockopt};

use super::Socket;

/// Options, set and read immediately.
impl Socket {
    pub(crate) fn set_broadcast(&self, on: bool) -> io::Result<()> {
        Ok(sockopt::set_socket_broadcast(self.as_fd(), on)?)
    }

    pub(crate) fn broadcast(&self) -> io::Result<bool> {
        Ok(sockopt::socket_broadcast(self.as_fd())?)
    }

    pub(crate) fn set_multicast_loop(&self, on: bool) -> io::Result<()> {
        let fd = self.as_fd();
        if sockopt::socket_domain(fd)? == AddressFamily::INET6 {
            return Ok(sockopt::set_ipv6_multicast_loop(fd, on)?);
        }
        Ok(sockopt::set_ip_multicast_loop(fd, on)?)
    }

    pub(crate) fn multicast_loop(&self) -> io::Result<bool> {
        let fd = self.as_fd();
        if sockopt::socket_domain(fd)? == AddressFamily::INET6 {
            return Ok(sockopt::ipv6_multicast_loop(fd)?);
        }
        Ok(sockopt::ip_multicast_loop(fd)?)
    }

    pub(crate) fn set_multicast_ttl(&self, hops: u32) -> io::Result<()> {
        let fd = self.as_fd();
        if sockopt::socket_domain(fd)? == AddressFamily::INET6 {
            return Ok(sockopt::set_ipv6_multicast_hops(fd, hops)?);
        }
        Ok(sockopt::set_ip_multicast_ttl(fd, hops)?)
    }

    pub(crate) fn multicast_ttl(&self) -> io::Result<u32> {
        let fd = self.as_fd();
        if sockopt::socket_domain(fd)? == AddressFamily::INET6 {
            return Ok(sockopt::ipv6_multicast_hops(fd)?);
        }
        Ok(sockopt::ip_multicast_ttl(fd)?)
    }

    pub(crate) fn set_multicast_if_v4(&self, interface: Ipv4Addr) -> io::Result<()> {
        Ok(sockopt::set_ip_multicast_if(self.as_fd(), &interface)?)
    }

    pub(crate) fn set_multicast_if_v6(&self, interface: u32) -> io::Result<()> {
        Ok(sockopt::set_ipv6_multicast_if(self.as_fd(), interface)?)
    }

    pub(crate) fn join_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        let fd = self.as_fd();
        Ok(sockopt::set_ip_add_membership(fd, &group, &interface)?)
    }

    pub(crate) fn leave_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        let fd = self.as_fd();
        Ok(sockopt::set_ip_drop_membership(fd, &group, &interface)?)
    }

    pub(crate) fn join_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        let fd = self.as_fd();
        Ok(sockopt::set_ipv6_add_membership(fd, &group, interface)?)
    }

    pub(crate) fn leave_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        let fd = self.as_fd();
        Ok(sockopt::set_ipv6_drop_membership(fd, &group, interface)?)
    }
}
