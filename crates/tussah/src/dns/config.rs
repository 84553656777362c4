//! Settings of a resolver: from its builder, the system, and the defaults.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV6};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hickory_resolver::Hosts;
use hickory_resolver::proto::rr::Name;
use resolv_conf::ScopedIp;
use rustix::net::{self, AddressFamily, SocketType};
use tussah_core::Handle;

use super::names::{SEARCH_MAX, parse};
use super::resolver::Resolver;

const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";

/// The port of DNS (RFC 1035, section 4.2).
const PORT: u16 = 53;

/// Bound, in seconds: the maximum of `timeout` in resolv.conf(5); longer values are reduced to it.
const TIMEOUT_SECONDS_MAX: u32 = 30;

/// Bound, in attempts: the maximum of `attempts` in resolv.conf(5); larger values are reduced to
/// it.
const ATTEMPTS_MAX: u32 = 5;

/// Bound, in answers: the default maximum number in the cache, at most 16 KiB for each answer.
const CACHE_SIZE: u64 = 8192;

/// Bound, in bytes: the most that is read of a system file; longer files are truncated. The largest
/// lists of blocked hosts have this size.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The address families to look up, and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpStrategy {
    /// Both families, IPv6 first (RFC 8305, section 4).
    #[default]
    Ipv6First,
    /// Both families, IPv4 first.
    Ipv4First,
    /// Only IPv6 (AAAA records).
    Ipv6Only,
    /// Only IPv4 (A records).
    Ipv4Only,
}

/// The order in which the resolver queries servers, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerOrder {
    /// The order in which the servers are listed.
    #[default]
    Listed,
    /// A rotating order: each query starts with the next server (`rotate` in resolv.conf(5)).
    Rotate,
}

/// A builder for a [`Resolver`].
///
/// If the program does not set a value, the resolver takes the value from `/etc/resolv.conf`. If
/// neither the program nor `/etc/resolv.conf` sets a value, the resolver uses the default from
/// resolv.conf(5). If the program sets servers, the resolver does not read `/etc/resolv.conf`.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tussah::dns::{IpStrategy, Resolver};
///
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let resolver = Resolver::builder()
///     .servers(["192.0.2.53:53".parse().expect("an address")])
///     .search(["corp.example"])
///     .timeout(Duration::from_secs(1))
///     .ip_strategy(IpStrategy::Ipv4Only)
///     .build();
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct ResolverBuilder {
    servers: Vec<SocketAddr>,
    port: u16,
    search: Option<Vec<String>>,
    ndots: Option<usize>,
    timeout: Option<Duration>,
    attempts: Option<usize>,
    cache_size: u64,
    hosts: Option<PathBuf>,
    strategy: Option<IpStrategy>,
    order: Option<ServerOrder>,
}

impl ResolverBuilder {
    pub(super) fn new() -> Self {
        Self {
            servers: Vec::new(),
            port: PORT,
            search: None,
            ndots: None,
            timeout: None,
            attempts: None,
            cache_size: CACHE_SIZE,
            hosts: Some(HOSTS.into()),
            strategy: None,
            order: None,
        }
    }

    /// Sets the servers to query. The resolver then does not read `/etc/resolv.conf`.
    pub fn servers(mut self, servers: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.servers = servers.into_iter().collect();
        self
    }

    /// Sets the port on which to query the servers that `/etc/resolv.conf` lists. Default: 53.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets the search list: the domains that are appended to incomplete names. Invalid domains,
    /// and domains after the 16th, are ignored.
    pub fn search<S: Into<String>>(mut self, domains: impl IntoIterator<Item = S>) -> Self {
        self.search = Some(domains.into_iter().map(Into::into).collect());
        self
    }

    /// Sets `ndots` of resolv.conf(5): a name with at least this many dots is first tried
    /// unchanged. A name with fewer dots is first tried with the domains of the search list.
    /// Default: 1.
    pub fn ndots(mut self, dots: usize) -> Self {
        self.ndots = Some(dots);
        self
    }

    /// Sets the maximum time to wait for an answer from one server. Default: 5 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how many times the resolver queries each server before a lookup fails. Default: 2; 0
    /// counts as 1.
    pub fn attempts(mut self, attempts: usize) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// Sets the maximum number of cached answers. Default: 8192; 0 disables the cache. Answers that
    /// take more than about 16 KiB of memory are not cached.
    pub fn cache_size(mut self, answers: u64) -> Self {
        self.cache_size = answers;
        self
    }

    /// Sets the hosts file, in the format of hosts(5). Default: `/etc/hosts`. A hosts file that
    /// cannot be read counts as empty.
    pub fn hosts_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.hosts = Some(path.into());
        self
    }

    /// Disables the hosts file.
    pub fn no_hosts_file(mut self) -> Self {
        self.hosts = None;
        self
    }

    /// Sets the address families for `lookup_ip` and for connecting by name. Default: only IPv4 if
    /// `/etc/resolv.conf` has the option `no-aaaa`; otherwise both families, IPv6 first.
    pub fn ip_strategy(mut self, strategy: IpStrategy) -> Self {
        self.strategy = Some(strategy);
        self
    }

    /// Sets the order in which servers are queried. Default: rotating if `/etc/resolv.conf` has the
    /// option `rotate`; otherwise as listed.
    pub fn server_order(mut self, order: ServerOrder) -> Self {
        self.order = Some(order);
        self
    }

    /// Creates the resolver in the current runtime. The resolver's first lookup reads the hosts
    /// file (unless disabled) and `/etc/resolv.conf` (unless servers are set).
    ///
    /// # Panics
    /// Panics if called outside a runtime.
    #[track_caller]
    #[must_use]
    pub fn build(self) -> Resolver {
        self.build_in(&Handle::current())
    }

    /// Creates the resolver in the given runtime.
    #[must_use]
    pub fn build_in(self, handle: &Handle) -> Resolver {
        Resolver::with_config(self, handle)
    }

    /// Reads the files and fills in the remaining settings. Blocks.
    pub(super) fn read(&self) -> Settings {
        let system = if self.servers.is_empty() {
            system(&read_file(RESOLV_CONF.as_ref()).unwrap_or_default())
        } else {
            resolv_conf::Config::new()
        };
        let mut hosts = Hosts::default();
        if let Some(path) = &self.hosts
            && let Ok(text) = read_file(path)
        {
            // A name that is not valid UTF-8 cannot be asked for.
            let _ = hosts.read_hosts_conf(String::from_utf8_lossy(&text).as_bytes());
        }
        self.fill_in(&system, hosts)
    }

    fn fill_in(&self, system: &resolv_conf::Config, hosts: Hosts) -> Settings {
        let mut servers = self.servers.clone();
        if servers.is_empty() {
            let listed = system.nameservers.iter();
            servers.extend(listed.filter_map(|server| address(server, self.port)));
        }
        if servers.is_empty() {
            // Without any server in the file, the server on this machine is used: resolv.conf(5),
            // `nameserver`.
            servers.push((Ipv4Addr::LOCALHOST, self.port).into());
        }
        let search = match &self.search {
            Some(domains) => domains.clone(),
            None => system.get_last_search_or_domain().cloned().collect(),
        };
        let search = search.iter().filter_map(|domain| parse(domain).ok());
        let rotate = match system.rotate {
            true => ServerOrder::Rotate,
            false => ServerOrder::Listed,
        };
        let families = match system.no_aaaa {
            true => IpStrategy::Ipv4Only,
            false => IpStrategy::default(),
        };
        Settings {
            servers,
            search: search.take(SEARCH_MAX).collect(),
            ndots: self.ndots.unwrap_or(system.ndots as usize),
            timeout: self
                .timeout
                .unwrap_or(Duration::from_secs(system.timeout.into())),
            attempts: self.attempts.unwrap_or(system.attempts as usize).max(1),
            cache_size: self.cache_size,
            strategy: self.strategy.unwrap_or(families),
            order: self.order.unwrap_or(rotate),
            hosts,
        }
    }
}

/// All settings of a resolver.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) servers: Vec<SocketAddr>,
    pub(super) search: Vec<Name>,
    pub(super) ndots: usize,
    pub(super) timeout: Duration,
    pub(super) attempts: usize,
    pub(super) cache_size: u64,
    pub(super) strategy: IpStrategy,
    pub(super) order: ServerOrder,
    pub(super) hosts: Hosts,
}

/// Parses a resolv.conf(5). Invalid lines are ignored, as in the C library.
fn system(text: &[u8]) -> resolv_conf::Config {
    let (mut config, _) = resolv_conf::Config::parse_with_errors(text);
    config.glibc_normalize();
    config.timeout = config.timeout.clamp(1, TIMEOUT_SECONDS_MAX);
    config.attempts = config.attempts.min(ATTEMPTS_MAX);
    config
}

/// Returns the address of a server. A link-local address includes the index of its interface (RFC
/// 4007, section 11). Returns `None` if that interface does not exist.
fn address(server: &ScopedIp, port: u16) -> Option<SocketAddr> {
    let ScopedIp::V6(ip, Some(scope)) = server else {
        return Some(SocketAddr::new(server.into(), port));
    };
    let scope = scope.parse().ok().or_else(|| interface(scope))?;
    Some(SocketAddrV6::new(*ip, port, 0, scope).into())
}

/// Returns the index of an interface.
fn interface(name: &str) -> Option<u32> {
    let socket = net::socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    net::netdevice::name_to_index(socket, name).ok()
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut text = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(builder: ResolverBuilder, text: &str) -> Settings {
        builder.fill_in(&system(text.as_bytes()), Hosts::default())
    }

    #[test]
    fn the_system_decides_what_the_builder_does_not() {
        let text = "nameserver 192.0.2.1\nnameserver 2001:db8::1\nsearch corp.example example\n\
                    options ndots:3 timeout:7 attempts:4 rotate\n";
        let check = |builder: ResolverBuilder, expected: &str| {
            let it = settings(builder, text);
            let servers: Vec<_> = it.servers.iter().map(ToString::to_string).collect();
            let search: Vec<_> = it.search.iter().map(Name::to_ascii).collect();
            let (ndots, timeout, attempts, order) = (it.ndots, it.timeout, it.attempts, it.order);
            let found = format!("{servers:?} {search:?} {ndots} {timeout:?} {attempts} {order:?}");
            assert_eq!(found, expected);
        };
        let new = ResolverBuilder::new;
        check(
            new(),
            r#"["192.0.2.1:53", "[2001:db8::1]:53"] ["corp.example", "example"] 3 7s 4 Rotate"#,
        );
        let told = new().port(5353).search(["a", "", "b..c", "d"]).ndots(0);
        let told = told.timeout(Duration::from_millis(30)).attempts(0);
        check(
            told.server_order(ServerOrder::Listed),
            r#"["192.0.2.1:5353", "[2001:db8::1]:5353"] ["a", "d"] 0 30ms 1 Listed"#,
        );
        check(
            new().servers(["127.0.0.1:1".parse().expect("an address")]),
            r#"["127.0.0.1:1"] ["corp.example", "example"] 3 7s 4 Rotate"#,
        );
    }

    #[test]
    fn defaults_when_nothing_is_there_or_nothing_makes_sense() {
        for text in [
            "",
            "nameserver\noptions ndots:x\n\u{1}",
            "search\n# nameserver 192.0.2.1\n",
        ] {
            let it = settings(ResolverBuilder::new(), text);
            assert_eq!(it.servers, ["127.0.0.1:53".parse().expect("an address")]);
            assert_eq!(
                (it.ndots, it.timeout, it.attempts),
                (1, Duration::from_secs(5), 2)
            );
            assert!(it.search.is_empty());
        }
    }

    #[test]
    fn a_server_on_a_link_has_its_interface() {
        let text = "nameserver fe80::1%lo\nnameserver fe80::2%7\nnameserver fe80::3\n\
                    nameserver fe80::4%nosuchinterface\n";
        let it = settings(ResolverBuilder::new(), text);
        let servers: Vec<_> = it.servers.iter().map(ToString::to_string).collect();
        // The loopback interface is the first.
        let expected = ["[fe80::1%1]:53", "[fe80::2%7]:53", "[fe80::3]:53"];
        assert_eq!(servers, expected);
    }

    #[test]
    fn a_search_list_is_not_endless() {
        let domains: Vec<_> = (0..100)
            .map(|number| format!("d{number}.example"))
            .collect();
        let it = settings(ResolverBuilder::new().search(domains), "");
        assert_eq!(it.search.len(), SEARCH_MAX);
    }
}
