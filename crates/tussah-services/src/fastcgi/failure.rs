//! The reasons why a request has no complete response.

use std::env;
use std::fmt;
use std::io;
use std::time::Duration;

use tussah_wire::Malformed;
use tussah_wire::fastcgi::ProtocolStatus;
use tussah_wire::http::Status;

/// The reason why a request has no complete response.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The queue of requests that wait for a connection is full; the field is the number of these
    /// requests.
    Busy(usize),
    /// No connection became free within the time limit.
    Queue(Duration),
    /// The application server does not accept connections.
    Connect(io::Error),
    /// The application server did not accept a connection within the time limit.
    ConnectTime(Duration),
    /// The connection broke.
    Broken(io::Error),
    /// The connection was closed before the response was complete.
    Closed,
    /// The application neither read nor sent a byte within the time limit.
    Silent(Duration),
    /// The application sent bytes that are not FastCGI.
    Records(Malformed),
    /// The head of the response is not a valid CGI head.
    Head(Malformed),
    /// The application ended the request before the head of the response was complete.
    NoHead,
    /// The application rejected the request.
    Rejected(ProtocolStatus),
    /// The length of the body differs from `Content-Length`.
    Length {
        /// The value of `Content-Length`.
        expected: u64,
        /// The number of bytes received; the count stops at the first surplus byte.
        found: u64,
    },
    /// The body of the request could not be read.
    Body(io::Error),
    /// The body of the request or of the response could not be stored in a temporary file.
    Spool(io::Error),
}

impl Failure {
    /// Returns the HTTP status to send to the client.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Busy(_) | Self::Queue(_) | Self::Rejected(ProtocolStatus::Overloaded) => {
                Status::SERVICE_UNAVAILABLE
            }
            Self::ConnectTime(_) | Self::Silent(_) => Status::GATEWAY_TIMEOUT,
            Self::Body(error) => match error.kind() {
                io::ErrorKind::FileTooLarge => Status::CONTENT_TOO_LARGE,
                io::ErrorKind::TimedOut => Status::REQUEST_TIMEOUT,
                _ => Status::BAD_REQUEST,
            },
            Self::Spool(_) => Status::INTERNAL_SERVER_ERROR,
            _ => Status::BAD_GATEWAY,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(waiting) => write!(f, "{waiting} requests wait for a connection already"),
            Self::Queue(time) => write!(f, "no connection became free within {time:?}"),
            Self::Connect(error) => error.fmt(f),
            Self::ConnectTime(time) => write!(f, "no connection was accepted within {time:?}"),
            Self::Broken(error) => write!(f, "the connection broke: {error}"),
            Self::Closed => f.write_str("the connection ended before the response"),
            Self::Silent(time) => {
                write!(
                    f,
                    "the application neither read nor sent a byte for {time:?}"
                )
            }
            Self::Records(error) => write!(f, "the response is not FastCGI: {error}"),
            Self::Head(error) => write!(f, "the head of the response is invalid: {error}"),
            Self::NoHead => {
                f.write_str("the application ended the request without a complete head")
            }
            Self::Rejected(status) => write!(f, "the application rejected the request: {status:?}"),
            Self::Length { expected, found } => write!(
                f,
                "expected a body of {expected} bytes (Content-Length), found {found}"
            ),
            Self::Body(error) => write!(f, "cannot read the body of the request: {error}"),
            Self::Spool(error) => {
                let directory = env::temp_dir();
                let directory = directory.display();
                write!(
                    f,
                    "cannot keep a body in a file in {directory} (TMPDIR): {error}"
                )
            }
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Connect(error) | Self::Broken(error) | Self::Body(error) | Self::Spool(error) => {
                Some(error)
            }
            Self::Records(error) | Self::Head(error) => Some(error),
            _ => None,
        }
    }
}
