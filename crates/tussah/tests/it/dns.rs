//! Resolving names, with a name server that the tests write themselves.

mod connect;
mod dropped;
mod lies;
mod lookups;
mod server;
mod servers;

use std::collections::HashSet;
use std::fs;
use std::net::IpAddr;

use tussah::dns::{Resolver, ResolverBuilder};

use server::Server;

/// A resolver that asks these servers and nobody else.
fn builder<'a>(servers: impl IntoIterator<Item = &'a Server>) -> ResolverBuilder {
    let servers = servers.into_iter().map(|server| server.address);
    Resolver::builder().servers(servers).no_hosts_file()
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    let parsed = texts.iter().map(|text| text.parse().expect("an address"));
    parsed.collect()
}

/// How many sockets of this process talk to a port: the other tests of this binary talk to others.
fn sockets_to(port: u16) -> usize {
    let mut inodes = HashSet::new();
    for table in ["udp", "tcp", "udp6", "tcp6"] {
        let lines = fs::read_to_string(format!("/proc/self/net/{table}")).expect("it is there");
        for line in lines.lines().skip(1) {
            let columns: Vec<_> = line.split_whitespace().collect();
            if columns[2].ends_with(&format!(":{port:04X}")) {
                inodes.insert(format!("socket:[{}]", columns[9]));
            }
        }
    }
    let descriptors = fs::read_dir("/proc/self/fd")
        .expect("it is there")
        .flatten();
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    let of_port =
        |target: &std::path::PathBuf| target.to_str().is_some_and(|it| inodes.contains(it));
    targets.filter(of_port).count()
}
