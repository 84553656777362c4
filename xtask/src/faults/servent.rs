//! A servent of the Gnutella network, which talks to the router of the sweep.

use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::client::{connect, failed, plain};
use super::outcome::Step;

/// The time limit for a search to find the file of the other router. A failed attempt to connect is
/// repeated after about a second.
const PATIENCE: Duration = Duration::from_secs(20);
/// The length of the header of a packet, in bytes.
const HEADER: usize = 23;
const QUERY: u8 = 0x80;
const QUERY_HITS: u8 = 0x81;

/// Returns the addresses for peers and for HTTP in the line with which a router starts.
pub(super) fn addresses(line: &str) -> (&str, &str) {
    let mut addresses = line.split_whitespace().filter_map(|word| {
        let at = word.find("127.0.0.1:")?;
        word[at..].split(['/', ')', ',']).next()
    });
    let peers = addresses.next().unwrap_or_default();
    (peers, addresses.next().unwrap_or_default())
}

/// Connects as a peer, and sends a query for a shared file.
pub(super) fn ask(address: &str) -> Step {
    match try_ask(address) {
        Ok(step) => step,
        Err(error) => failed(&error),
    }
}

fn try_ask(address: &str) -> io::Result<Step> {
    let mut stream = connect(address)?;
    stream.write_all(b"GNUTELLA CONNECT/0.6\r\n\r\n")?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    if !head.starts_with(b"GNUTELLA/0.6 200 ") {
        let line = String::from_utf8_lossy(&head);
        let line = line.lines().next().unwrap_or_default();
        return Ok(Step::Refused(line.to_owned()));
    }
    let id = identifier();
    let payload = b"\0\0small\0";
    let mut bytes = b"GNUTELLA/0.6 200 OK\r\n\r\n".to_vec();
    bytes.extend_from_slice(&id);
    bytes.extend_from_slice(&[QUERY, 2, 0]);
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(payload);
    stream.write_all(&bytes)?;
    loop {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header)?;
        let len = u32::from_le_bytes([header[19], header[20], header[21], header[22]]);
        let mut payload = vec![0; len as usize];
        stream.read_exact(&mut payload)?;
        if header[..16] == id && header[16] == QUERY_HITS {
            let name = b"small.txt";
            let is_right = payload.windows(name.len()).any(|part| part == name);
            let wrong = || Step::Wrong("hits without the file".to_owned());
            return Ok(if is_right { Step::Right } else { wrong() });
        }
    }
}

/// Returns an identifier that no router has seen.
fn identifier() -> [u8; 16] {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let time_ns = time.map_or(0, |time| time.as_nanos() as u64);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&time_ns.to_le_bytes());
    id[8..].copy_from_slice(&number.to_le_bytes());
    id
}

/// Asks the router to find the file of the other router, to which it connects by itself.
pub(super) fn search(http: &str) -> Step {
    let request =
        "GET /search?q=far&hits=1&wait=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        match plain(http, request) {
            Ok((200, _, body)) if String::from_utf8_lossy(&body).contains("far.txt") => {
                return Step::Right;
            }
            // The router is not connected yet.
            Ok((200, ..)) => {}
            Ok((status @ 500.., ..)) => return Step::Refused(format!("/search: {status}")),
            Ok((status, ..)) => return Step::Wrong(format!("/search: {status}")),
            Err(error) => return failed(&error),
        }
    }
    Step::Wrong("the router does not connect".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found() {
        let line = "tussah gnutella: listening at 127.0.0.1:7 for peers (files: 2, \
                    status: http://127.0.0.1:8/status)";
        assert_eq!(addresses(line), ("127.0.0.1:7", "127.0.0.1:8"));
        assert_eq!(addresses("error"), ("", ""));
    }
}
