//! Shared parts of the three web proxies: everything that does not wait and does not depend on the
//! style.
// Each program uses only some of these parts.
#![allow(dead_code, unused_imports)]

mod cache;
mod callbacks;
mod flow;
mod head;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use tussah::Runtime;
use tussah::net::TcpListener;

pub use cache::{ANSWER_MAX, Cache};
pub use callbacks::{Limit, Step, Tunnel, forward, pass, when_readable, when_writable};
pub use flow::{Body, Flow};
pub use head::{Request, Response};

/// Bound, in bytes: the longest head of a message.
pub const HEAD_MAX: usize = 16 * 1024;

/// Bound, in connections: the maximum number that are served at the same time. Any others wait in
/// the system's queue.
pub const CONNECTIONS_MAX: usize = 4096;

/// Bound, in seconds: the maximum time that a client has to send the head of a request.
pub const CLIENT_LIMIT: Duration = Duration::from_secs(60);

/// Bound, in seconds: the maximum time for which a client may continue to send while its connection
/// is being closed.
pub const LINGER: Duration = Duration::from_secs(2);

/// A web proxy for HTTP/1.1 (RFC 9110, RFC 9112) and tunnels (CONNECT).
#[derive(Clone, Debug, Parser)]
#[command(after_help = "Examples:
  cargo run --example proxy -- --listen 127.0.0.1:8081 &
  curl --proxy http://127.0.0.1:8081 http://example.com/")]
pub struct Options {
    /// The address to listen on; with port 0, the system chooses the port.
    #[arg(long, default_value = "127.0.0.1:8081")]
    pub listen: SocketAddr,
    /// Number of workers [default: one for each CPU]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Size of the response cache in bytes; 0 disables it
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub cache: usize,
    /// Time in seconds that an origin has to accept the connection, and again to respond
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    origin_limit: u64,
}

impl Options {
    /// Returns the command-line options.
    pub fn get() -> Self {
        Self::parse()
    }

    pub fn runtime(&self) -> io::Result<Runtime> {
        let mut builder = Runtime::builder().name("proxy");
        if let Some(workers) = self.workers {
            builder = builder.workers(workers.into());
        }
        builder.build()
    }

    /// Listens on the address and prints it.
    pub fn listen(&self) -> io::Result<TcpListener> {
        let builder = TcpListener::builder().connections_max(CONNECTIONS_MAX);
        let listener = builder.bind(self.listen)?;
        println!("listening at {}", listener.local_addr()?);
        Ok(listener)
    }

    pub fn origin_limit(&self) -> Duration {
        Duration::from_secs(self.origin_limit)
    }
}

/// An error at startup. `main` prints it in readable form.
pub struct Failure(io::Error);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The reason why the proxy itself responds to a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    pub status: u16,
    pub text: String,
}

impl Fault {
    pub fn new(status: u16, text: impl fmt::Display) -> Self {
        let text = text.to_string();
        Self { status, text }
    }

    /// The request is invalid.
    pub fn bad(text: impl fmt::Display) -> Self {
        Self::new(400, text)
    }

    /// The origin is unreachable or aborted the connection.
    pub fn origin(error: io::Error) -> Self {
        let status = match error.kind() {
            io::ErrorKind::TimedOut => 504,
            _ => 502,
        };
        Self::new(status, error)
    }

    /// The origin's response is invalid.
    pub fn broken(text: impl fmt::Display) -> Self {
        Self::new(502, format_args!("the origin's answer: {text}"))
    }

    pub fn no_answer() -> Self {
        Self::new(
            502,
            "the origin has closed the connection without an answer",
        )
    }

    pub fn late() -> Self {
        Self::new(504, "the origin has not answered in time")
    }

    /// Returns the response, after which the connection is closed.
    pub fn answer(&self) -> Vec<u8> {
        let reason = match self.status {
            400 => "Bad Request",
            431 => "Request Header Fields Too Large",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            _ => "Gateway Timeout",
        };
        let text = format!("{} {reason}: {}\n", self.status, self.text);
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.status,
            text.len()
        );
        (head + &text).into_bytes()
    }
}

/// The reason why the rest of a message cannot be forwarded.
#[derive(Debug)]
pub enum Cut {
    Read(io::Error),
    Write(io::Error),
    Message(&'static str),
}

/// The irregular end of a connection.
#[derive(Debug)]
pub enum End {
    /// The connection ends with a response.
    Fault(Fault),
    /// The connection is reset, so that the client does not mistake a truncated response for a
    /// complete one.
    CutOff,
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The result of forwarding a request.
impl From<Cut> for End {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Read(_) => Self::CutOff,
            Cut::Write(error) => Self::Fault(Fault::origin(error)),
            Cut::Message(text) => Self::Fault(Fault::bad(text)),
        }
    }
}

/// The response to the client once its tunnel is connected.
pub const TUNNEL: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// The response to a client that waits before it sends the body.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
