//! The handshake of version 0.6, as the servent that connects, and as the one that answers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use tussah::net::TcpStream;
use tussah::time::timeout;
use tussah_wire::gnutella::Guid;
use tussah_wire::gnutella::handshake::{self, Handshake, Limits};
use tussah_wire::http::Status;
use tussah_wire::http::response::HeadWriter;

use super::hosts::is_believed;
use super::node::{Node, Seat};
use super::why::Why;

/// Bound, in time: the maximum duration of a handshake. The router ends a connection whose
/// handshake takes longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bound, in hosts: the maximum number of other hosts that the router names to a peer that gets no
/// seat.
const TRY_MAX: usize = 10;
/// Bound, in characters: the maximum length of the part of a peer's name that is kept and shown.
const AGENT_MAX: usize = 64;
/// The name of this router.
const AGENT: &str = concat!("tussah/", env!("CARGO_PKG_VERSION"));

/// The properties that a peer states about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Theirs {
    pub(super) agent: String,
    pub(super) guid: Option<Guid>,
    /// The address at which the peer accepts connections.
    pub(super) host: Option<String>,
}

/// The result of a handshake.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) seat: Seat,
    pub(super) theirs: Theirs,
    /// The bytes that came after the handshake.
    pub(super) rest: Vec<u8>,
}

/// A handshake that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) why: Why,
    /// Other hosts that the peer named.
    pub(super) hosts: Vec<SocketAddrV4>,
}

impl From<Why> for Failed {
    fn from(why: Why) -> Self {
        let hosts = Vec::new();
        Self { why, hosts }
    }
}

/// Greets a peer that has connected.
pub(super) async fn answer(
    node: &Arc<Node>,
    stream: &TcpStream,
    from: SocketAddr,
) -> Result<Greeted, Failed> {
    let greeted = timeout(PATIENCE, answer_in_time(node, stream, from)).await;
    greeted.unwrap_or_else(|_| Err(Why::Silent.into()))
}

async fn answer_in_time(
    node: &Arc<Node>,
    stream: &TcpStream,
    from: SocketAddr,
) -> Result<Greeted, Failed> {
    let mut buffer = Vec::new();
    let (theirs, seat) = match admit(node, stream, from, &mut buffer).await {
        Ok(admitted) => admitted,
        Err(why) => {
            refuse(node, stream, &why).await;
            return Err(why.into());
        }
    };
    let mut out = Vec::new();
    let mut head = handshake::answer(&mut out, Status::OK);
    fields(node, &mut head, stream, from.ip());
    head.end();
    write(stream, &out).await?;
    let part = read(stream, &mut buffer).await?;
    if part.status != Some(Status::OK) {
        let status = part.status.unwrap_or(Status::BAD_REQUEST);
        return Err(Why::Rejected(status).into());
    }
    buffer.drain(..part.len());
    Ok(Greeted {
        seat,
        theirs,
        rest: buffer,
    })
}

/// Reads the request to connect, and takes a seat.
async fn admit(
    node: &Arc<Node>,
    stream: &TcpStream,
    from: SocketAddr,
    buffer: &mut Vec<u8>,
) -> Result<(Theirs, Seat), Why> {
    let part = read(stream, buffer).await?;
    if part.status.is_some() {
        return Err(Why::Rejected(Status::BAD_REQUEST));
    }
    let theirs = Theirs::of(&part, buffer, from.ip());
    buffer.drain(..part.len());
    let seat = node.seat(from.ip(), theirs.guid)?;
    Ok((theirs, seat))
}

/// Greets a host to which this router has connected. Returns the other hosts that it named, too.
pub(super) async fn connect(
    node: &Arc<Node>,
    stream: &TcpStream,
    to: SocketAddr,
    host: &str,
) -> Result<(Greeted, Vec<SocketAddrV4>), Failed> {
    let greeted = timeout(PATIENCE, connect_in_time(node, stream, to, host)).await;
    greeted.unwrap_or_else(|_| Err(Why::Silent.into()))
}

async fn connect_in_time(
    node: &Arc<Node>,
    stream: &TcpStream,
    to: SocketAddr,
    host: &str,
) -> Result<(Greeted, Vec<SocketAddrV4>), Failed> {
    let mut out = Vec::new();
    let mut head = handshake::connect(&mut out);
    fields(node, &mut head, stream, to.ip());
    head.end();
    write(stream, &out).await?;
    let mut buffer = Vec::new();
    let part = read(stream, &mut buffer).await?;
    let hosts = hosts(&part, &buffer, to.ip());
    if part.status != Some(Status::OK) {
        let why = Why::Rejected(part.status.unwrap_or(Status::BAD_REQUEST));
        return Err(Failed { why, hosts });
    }
    let mut theirs = Theirs::of(&part, &buffer, to.ip());
    theirs.host = Some(host.to_owned());
    buffer.drain(..part.len());
    let seat = match node.seat(to.ip(), theirs.guid) {
        Ok(seat) => seat,
        Err(why) => {
            refuse(node, stream, &why).await;
            return Err(Failed { why, hosts });
        }
    };
    out.clear();
    handshake::answer(&mut out, Status::OK).end();
    write(stream, &out).await?;
    let greeted = Greeted {
        seat,
        theirs,
        rest: buffer,
    };
    Ok((greeted, hosts))
}

/// Tells a peer that it has no seat, and where it may find one.
async fn refuse(node: &Node, stream: &TcpStream, why: &Why) {
    let mut out = Vec::new();
    let mut head = handshake::answer(&mut out, why.status());
    let mut hosts = node.hosts();
    hosts.truncate(TRY_MAX);
    // Addresses are valid values.
    let _ = head.field("User-Agent", AGENT);
    let _ = head.field("X-Try", hosts.join(","));
    head.end();
    // Fails if the peer has gone.
    let _ = write(stream, &out).await;
}

/// Adds what this router says about itself.
fn fields(node: &Node, head: &mut HeadWriter<'_>, stream: &TcpStream, remote: IpAddr) {
    let host = node.listening.get().map(|listening| {
        let ip = match listening.ip().is_unspecified() {
            true => local(stream),
            false => *listening.ip(),
        };
        SocketAddrV4::new(ip, listening.port()).to_string()
    });
    let fields = [
        ("User-Agent", AGENT.to_owned()),
        ("Listen-IP", host.unwrap_or_default()),
        ("Remote-IP", remote.to_string()),
        ("GUID", node.guid.to_string()),
        // Peers send all queries to an ultrapeer, and this router passes them on as one does.
        ("X-Ultrapeer", "True".to_owned()),
        ("Bye-Packet", "0.1".to_owned()),
    ];
    for (name, value) in fields {
        head.field(name, value).expect("names and values are valid");
    }
}

/// Returns this router's own address, as the peer sees it.
pub(super) fn local(stream: &TcpStream) -> Ipv4Addr {
    match stream.local_addr() {
        Ok(SocketAddr::V4(address)) => *address.ip(),
        _ => Ipv4Addr::UNSPECIFIED,
    }
}

impl Theirs {
    fn of(part: &Handshake, bytes: &[u8], from: IpAddr) -> Self {
        let agent = String::from_utf8_lossy(part.field("User-Agent", bytes).unwrap_or_default());
        let mut host = part.hosts("Listen-IP", bytes);
        // A peer cannot speak for another machine, and so cannot direct others to it.
        let host = host.next().filter(|host| IpAddr::V4(*host.ip()) == from);
        Self {
            agent: agent.chars().take(AGENT_MAX).collect(),
            guid: part.field("GUID", bytes).and_then(read_guid),
            host: host.map(|host| host.to_string()),
        }
    }
}

fn read_guid(text: &[u8]) -> Option<Guid> {
    let text = str::from_utf8(text).ok().filter(|text| text.len() == 32)?;
    // A sign is no digit.
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex)?;
    Some(Guid(number.to_be_bytes()))
}

fn hosts(part: &Handshake, bytes: &[u8], from: IpAddr) -> Vec<SocketAddrV4> {
    let lists = ["X-Try", "X-Try-Ultrapeers"];
    let hosts = lists.into_iter().flat_map(|name| part.hosts(name, bytes));
    hosts.filter(|host| is_believed(from, *host)).collect()
}

/// Reads a part of the handshake to the end of `buffer`, which may hold a start of it.
async fn read(stream: &TcpStream, buffer: &mut Vec<u8>) -> Result<Handshake, Why> {
    let mut bytes = [0; 1024];
    loop {
        match handshake::parse(buffer, &Limits::default()) {
            Ok(Some(part)) => return Ok(part),
            Ok(None) => {}
            Err(malformed) => return Err(Why::Malformed(malformed)),
        }
        match stream.read(&mut bytes).await {
            Ok(0) => return Err(Why::Gone),
            Err(error) => return Err(Why::of(&error)),
            Ok(len) => buffer.extend_from_slice(&bytes[..len]),
        }
    }
}

async fn write(stream: &TcpStream, bytes: &[u8]) -> Result<(), Why> {
    let written = stream.write_all(bytes).await;
    written.map_err(|error| Why::of(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_are_read_as_they_are_written() {
        let guid = Guid(*b"0123456789abcdef");
        assert_eq!(read_guid(guid.to_string().as_bytes()), Some(guid));
        for text in [
            &b""[..],
            b"0",
            &[b'g'; 32],
            &[b'0'; 33],
            b"+0000000000000000000000000000000",
            &[0xff; 32],
        ] {
            assert_eq!(read_guid(text), None);
        }
    }
}
