//! The modules that keep a router connected.

use std::io::Read as _;
use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future;
use tussah::flow::{AsyncOut, Out, module};
use tussah::net::{TcpStream, ToAddresses as _};
use tussah::time::now;

use super::handshake;
use super::hosts::Hosts;
use super::node::Node;
use super::router::Host;
use super::server::Connected;
use super::why::Why;

/// Bound, in bytes: the maximum length of the file with hosts. The rest is not read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Bound, in time: the maximum duration of an attempt to connect, before the handshake. A longer
/// attempt fails.
const PATIENCE: Duration = Duration::from_secs(10);

/// A host to connect to, as `HOST:PORT`.
#[derive(Debug)]
pub(super) struct Dial(String);

/// The end of an attempt to connect.
#[derive(Debug)]
pub(super) struct Tried {
    host: String,
    result: Result<(), Why>,
    /// Other hosts that the host named.
    hosts: Vec<SocketAddrV4>,
}

/// Connects to further hosts while the router has too few peers.
pub(super) struct Catcher {
    node: Arc<Node>,
    hosts: Hosts,
}

#[module]
impl Catcher {
    fn init(node: Arc<Node>) -> Result<Self, String> {
        let mut hosts = Hosts::default();
        for name in &node.options.peers {
            hosts.add(name.clone(), true);
        }
        if let Some(path) = &node.options.hosts {
            for name in read_hosts(path)? {
                hosts.add(name, false);
            }
        }
        Ok(Self { node, hosts })
    }

    fn run(&mut self, host: Host, out: &impl Out<Dial>) {
        self.add(host.0);
        self.dial(out);
    }

    #[port]
    fn tried(&mut self, tried: Tried, out: &impl Out<Dial>) {
        let jitter = fastrand::f64();
        let (host, is_connected) = (&tried.host, tried.result.is_ok());
        let is_news = self.hosts.tried(host, is_connected, now(), jitter);
        // A host that answers is there, even if it has no room, or is a peer already.
        if let (true, Err(why @ Why::Unreachable(_))) = (is_news, &tried.result) {
            tracing::warn!(%host, "{why} (trying again)");
        }
        for host in tried.hosts {
            self.add(host);
        }
        self.dial(out);
    }

    fn tick(&mut self, out: &impl Out<Dial>) {
        self.dial(out);
    }
}

impl Catcher {
    fn add(&mut self, host: SocketAddrV4) {
        if self.node.listening.get() != Some(&host) {
            self.hosts.add(host.to_string(), false);
        }
    }

    /// Starts attempts to connect until there are enough peers and attempts.
    fn dial(&mut self, out: &impl Out<Dial>) {
        let has = self.node.len() + self.hosts.trying();
        if has >= self.node.options.keep || self.node.is_closed() {
            return;
        }
        let connected = self.node.hosts();
        for _ in has..self.node.options.keep {
            let next = self.hosts.next(now(), &connected, || fastrand::u32(..));
            let Some(host) = next else { return };
            out.send(Dial(host));
        }
    }
}

/// Reads the hosts in a file.
fn read_hosts(path: &Path) -> Result<Vec<String>, String> {
    let mut text = String::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| format!("cannot read the hosts in {}: {error}", path.display()))?;
    let lines = (1..).zip(text.lines().map(str::trim));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let host = |(number, line): (u32, &str)| match line.to_target() {
        Ok(_) => Ok(line.to_owned()),
        Err(error) => Err(format!("{}:{number}: {error}", path.display())),
    };
    lines.map(host).collect()
}

/// Connects to hosts, and makes the handshakes.
pub(super) struct Connect {
    node: Arc<Node>,
}

#[module]
impl Connect {
    fn init(node: Arc<Node>) -> Self {
        Self { node }
    }

    async fn run(&self, dial: Dial, out: &impl AsyncOut<Connected>, tried: &impl AsyncOut<Tried>) {
        let host = dial.0;
        // A router that shuts down does not wait for a host.
        let stopped = async {
            self.node.closed().await;
            Err(Why::Stopping.into())
        };
        let (result, hosts) = match future::or(self.connect(&host), stopped).await {
            Ok((connected, hosts)) => {
                out.send(connected).await;
                (Ok(()), hosts)
            }
            Err(failed) => {
                self.node.counts.end(&failed.why);
                tracing::info!(%host, "not connected: {}", failed.why);
                (Err(failed.why), failed.hosts)
            }
        };
        let ended = Tried {
            host,
            result,
            hosts,
        };
        tried.send(ended).await;
    }
}

impl Connect {
    /// Returns the connection, and the other hosts that the host named.
    async fn connect(
        &self,
        host: &str,
    ) -> Result<(Connected, Vec<SocketAddrV4>), handshake::Failed> {
        let unreachable = |error: std::io::Error| Why::Unreachable(error.to_string());
        let options = TcpStream::builder().timeout(PATIENCE).nodelay(true);
        let stream = options.connect(host).await.map_err(unreachable)?;
        let address = stream.peer_addr().map_err(unreachable)?;
        let greeted = handshake::connect(&self.node, &stream, address, host).await;
        let (greeted, hosts) = greeted?;
        let connected = Connected {
            stream,
            address,
            greeted,
        };
        Ok((connected, hosts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_hosts() {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("hosts");
        std::fs::write(&path, "# known\n\n a:1 \n192.0.2.1:6346\n").expect("there is room");
        assert_eq!(
            read_hosts(&path),
            Ok(vec!["a:1".into(), "192.0.2.1:6346".into()])
        );
        std::fs::write(&path, "a:1\n\nfoo\n").expect("there is room");
        let error = read_hosts(&path).expect_err("a line has no port");
        assert!(
            error.contains("hosts:3: ") && error.contains("foo"),
            "{error}"
        );
        let error = read_hosts(&directory.path().join("none")).expect_err("it is missing");
        assert!(error.starts_with("cannot read the hosts in "), "{error}");
    }
}
