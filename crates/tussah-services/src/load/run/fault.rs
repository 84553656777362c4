//! The kinds of failed requests.

use std::io;

use rustix::io::Errno;
use tussah::OpError;

/// The reason why a request was not served. A 503 is not a fault: it counts as a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No server listens at the address.
    Refused,
    /// The connection was not established within the time limit.
    ConnectTimeout,
    /// The generator has no free port (`EADDRNOTAVAIL`).
    NoPort,
    /// The generator has no free descriptor (`EMFILE`, `ENFILE`).
    NoDescriptor,
    /// The TLS handshake failed.
    Tls,
    /// The connection attempt failed for another reason.
    Connect,
    /// The connection was reset.
    Reset,
    /// The connection was closed before the first byte of the response.
    Closed,
    /// The connection was closed in the middle of the response.
    Truncated,
    /// The response was not complete within the time limit.
    Timeout,
    /// The response is not valid HTTP.
    BadResponse,
    /// The server sent data that no request on the connection asked for.
    Unsolicited,
    /// The body differs from the file, in length or in contents.
    WrongBody,
    /// The status is an error: 4xx or 5xx, but not 503.
    Status,
    /// A read or a write failed for another reason.
    Other,
}

impl Fault {
    /// All faults, in the order of their declaration.
    pub const ALL: [Self; 15] = [
        Self::Refused,
        Self::ConnectTimeout,
        Self::NoPort,
        Self::NoDescriptor,
        Self::Tls,
        Self::Connect,
        Self::Reset,
        Self::Closed,
        Self::Truncated,
        Self::Timeout,
        Self::BadResponse,
        Self::Unsolicited,
        Self::WrongBody,
        Self::Status,
        Self::Other,
    ];

    /// Returns the name of the fault in the results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "connect_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::NoPort => "no_free_port",
            Self::NoDescriptor => "no_descriptor",
            Self::Tls => "tls",
            Self::Connect => "connect_other",
            Self::Reset => "reset",
            Self::Closed => "closed_early",
            Self::Truncated => "truncated",
            Self::Timeout => "timeout",
            Self::BadResponse => "bad_response",
            Self::Unsolicited => "unsolicited",
            Self::WrongBody => "wrong_body",
            Self::Status => "status",
            Self::Other => "other",
        }
    }

    /// Classifies a failed attempt to connect.
    pub(in crate::load) fn of_connect(error: &io::Error) -> Self {
        match errno(error) {
            Some(Errno::CONNREFUSED) => Self::Refused,
            Some(Errno::ADDRNOTAVAIL) => Self::NoPort,
            Some(Errno::MFILE | Errno::NFILE) => Self::NoDescriptor,
            Some(Errno::TIMEDOUT) => Self::ConnectTimeout,
            Some(Errno::CONNRESET) => Self::Reset,
            _ => match error.kind() {
                io::ErrorKind::TimedOut => Self::ConnectTimeout,
                io::ErrorKind::ConnectionRefused => Self::Refused,
                _ => Self::Connect,
            },
        }
    }

    /// Classifies a failed read or write.
    pub(in crate::load) fn of_transfer(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Reset,
            io::ErrorKind::UnexpectedEof => Self::Closed,
            io::ErrorKind::InvalidData => Self::Tls,
            io::ErrorKind::TimedOut => Self::Timeout,
            _ => Self::Other,
        }
    }
}

/// Returns the system's error number, which the error wraps.
fn errno(error: &io::Error) -> Option<Errno> {
    let number = OpError::of(error).and_then(OpError::raw_os_error);
    let number = number.or_else(|| error.raw_os_error())?;
    Some(Errno::from_raw_os_error(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_number_and_a_name() {
        for (at, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, at);
            let same = Fault::ALL
                .iter()
                .filter(|other| other.name() == fault.name());
            assert_eq!(same.count(), 1, "{fault:?}");
        }
    }

    #[test]
    fn connect_errors() {
        let check = |errno: Errno, expected: Fault| {
            assert_eq!(Fault::of_connect(&errno.into()), expected, "{errno:?}");
        };
        check(Errno::CONNREFUSED, Fault::Refused);
        check(Errno::ADDRNOTAVAIL, Fault::NoPort);
        check(Errno::MFILE, Fault::NoDescriptor);
        check(Errno::TIMEDOUT, Fault::ConnectTimeout);
        check(Errno::HOSTUNREACH, Fault::Connect);
    }
}
