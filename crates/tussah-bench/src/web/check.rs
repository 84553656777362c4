//! The checks that every server has to pass before it is measured, so that all servers do the same
//! work.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use super::response;
use super::site::Site;

/// Bound, in seconds: the maximum time for a response.
const ANSWER_SECONDS_MAX: u64 = 30;

/// Bound, in requests: the maximum number on one connection, which is more than the default limit
/// of any server here.
const REQUESTS: usize = 2500;

/// Fetches every page, at most a thousand, on one connection, and compares it. The connection has
/// to last that long.
///
/// # Errors
///
/// Returns an error if a response differs from the page, or if the server closed the connection.
pub fn answers(address: SocketAddr, site: &Site) -> Result<(), String> {
    let mut connection = Connection::open(address)?;
    for page in site.pages.iter().take(1000) {
        let file = site.folder.join(&page.path[1..]);
        let expected = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let (status, body) = connection.get(&page.path)?;
        if status != 200 || body != expected {
            let bytes = body.len();
            return Err(format!(
                "{} is status {status} with {bytes} bytes, not the file",
                page.path
            ));
        }
    }
    Ok(())
}

/// Sends more requests over one connection than any server with a default limit answers.
///
/// # Errors
///
/// Returns an error if the server closed the connection.
pub fn keeps_alive(address: SocketAddr, site: &Site) -> Result<(), String> {
    let mut connection = Connection::open(address)?;
    for _ in 0..REQUESTS {
        connection.get(&site.pages[0].path)?;
    }
    Ok(())
}

/// Searches the server's output files for requests.
///
/// # Errors
///
/// Returns an error if there are any, since an access log is then on.
pub fn log_is_off(scratch: &Path) -> Result<(), String> {
    let entries = fs::read_dir(scratch).map_err(|error| error.to_string())?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let bytes = fs::read(&path).unwrap_or_default();
        if path.is_file() && memchr::memmem::find(&bytes, b"GET /").is_some() {
            return Err(format!("{} contains requests", path.display()));
        }
    }
    Ok(())
}

/// A connection for one request at a time.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

impl Connection {
    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection was refused.
    pub fn open(address: SocketAddr) -> Result<Connection, String> {
        let stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
        let limit = Some(Duration::from_secs(ANSWER_SECONDS_MAX));
        stream
            .set_read_timeout(limit)
            .map_err(|error| error.to_string())?;
        stream
            .set_nodelay(true)
            .map_err(|error| error.to_string())?;
        let stream = BufReader::new(stream);
        Ok(Connection { stream, address })
    }

    /// Requests a page and returns its status and body.
    ///
    /// # Errors
    ///
    /// Returns an error if the response is invalid, or if the server announces the end of the
    /// connection.
    pub fn get(&mut self, path: &str) -> Result<(u16, Vec<u8>), String> {
        let failed = |error: std::io::Error| format!("{path}: {error}");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        self.stream
            .get_mut()
            .write_all(request.as_bytes())
            .map_err(failed)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).map_err(failed)?;
            head.push(byte[0]);
        }
        let head = response::head(&head)?.expect("it has its end");
        let mut body = vec![0; head.body];
        self.stream.read_exact(&mut body).map_err(failed)?;
        if head.close {
            return Err(format!("{path}: the server closes the connection"));
        }
        Ok((head.status, body))
    }
}
