//! An origin for the proxies, on OS threads of the standard library.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tussah::stage::sim::Random;

/// Bytes of a large body.
pub(super) const LARGE: usize = 10_000_000;

/// Lives as long as the test's process.
pub(super) struct Origin {
    pub(super) address: SocketAddr,
}

impl Origin {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it has one");
        let kept = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, kept) = (stream.expect("it comes"), kept.clone());
                // A peer that goes away ends its thread.
                std::thread::spawn(move || drop(serve(stream, &kept)));
            }
        });
        Self { address }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Bytes without a pattern that a fault would keep.
pub(super) fn bytes(len: usize) -> Vec<u8> {
    let mut random = Random::new(1);
    std::iter::repeat_with(|| random.next() as u8)
        .take(len)
        .collect()
}

/// FNV-1a.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
    })
}

/// A body in chunks of different sizes.
pub(super) fn chunks(mut bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut len = 1;
    while !bytes.is_empty() {
        let (chunk, rest) = bytes.split_at(len.min(bytes.len()));
        all.extend(format!("{:x};n=v\r\n", chunk.len()).into_bytes());
        all.extend_from_slice(chunk);
        all.extend_from_slice(b"\r\n");
        bytes = rest;
        len = len * 3 % 70_001 + 1;
    }
    all.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
    all
}

fn serve(stream: TcpStream, kept: &AtomicUsize) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let with_length = |fields: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    };
    let count = || format!("{}\n", kept.fetch_add(1, Ordering::Relaxed) + 1);
    let answer = match path.split('?').next().unwrap_or_default() {
        "/small" if head.starts_with("HEAD") => with_length("", b"hello\n")[..38].to_vec(),
        "/small" => with_length("", b"hello\n"),
        "/large" => with_length("", &bytes(LARGE)),
        "/seen" => with_length(
            "Connection: keep-alive\r\nKeep-Alive: x\r\n",
            head.as_bytes(),
        ),
        "/kept" => with_length("Cache-Control: max-age=60\r\n", count().as_bytes()),
        "/other" => with_length("Cache-Control: no-store\r\n", count().as_bytes()),
        "/to-the-end" => [b"HTTP/1.0 200 OK\r\n\r\n", &bytes(100_000)[..]].concat(),
        "/chunked" => {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            [head, &chunks(&bytes(300_000))[..]].concat()
        }
        "/nothing-of-a-chunk" => {
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n".to_vec()
        }
        "/bad-chunk" => {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186A0\r\n";
            [head, &bytes(100_000)[..], b"\r\nx\r\n"].concat()
        }
        "/short" => with_length("", &bytes(100_000))[..50_000].to_vec(),
        "/reset" => with_length("", &bytes(100_000))[..50_000].to_vec(),
        "/reset-to-the-end" => [b"HTTP/1.0 200 OK\r\n\r\n", &bytes(50_000)[..]].concat(),
        "/nothing" => Vec::new(),
        "/nonsense" => b"nonsense\r\n\r\n".to_vec(),
        "/sum" => {
            let body = read_body(&mut reader, &head)?;
            with_length(
                "",
                format!("{} {}\n", body.len(), checksum(&body)).as_bytes(),
            )
        }
        // Until the proxy has enough.
        _ => return reader.read_exact(&mut [0]),
    };
    let mut stream = reader.into_inner();
    stream.write_all(&answer)?;
    if path.starts_with("/reset") {
        // Bytes that are not sent when the connection is closed are dropped, and the peer told.
        rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO))?;
    }
    Ok(())
}

fn read_body(reader: &mut BufReader<TcpStream>, head: &str) -> io::Result<Vec<u8>> {
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = Vec::new();
    if let Some(length) = length {
        body.resize(length.parse().expect("a number"), 0);
        reader.read_exact(&mut body)?;
        return Ok(body);
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            while reader.read_line(&mut line)? > 2 {}
            return Ok(body);
        }
        let before = body.len();
        body.resize(before + size + 2, 0);
        reader.read_exact(&mut body[before..])?;
        body.truncate(before + size);
    }
}
