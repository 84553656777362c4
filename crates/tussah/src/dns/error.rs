//! Errors of name resolution.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::net::NetError;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;

/// The error that a failed lookup returns, with the name, the record type, the server and the
/// cause.
///
/// This error can be converted into an [`io::Error`] that contains it. The `io::Error` has one of
/// these kinds:
///
/// - `NotFound` or `TimedOut`
/// - `InvalidData` for a malformed answer
/// - `InvalidInput` for an invalid name
/// - the kind of the operating system's error
/// - `Other` otherwise
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// // Names in `invalid` never exist (RFC 6761, section 6.4): no server is asked.
/// let resolver = tussah::dns::Resolver::new();
/// let error = resolver.lookup_a("nosuch.invalid.").await.expect_err("it does not exist");
/// assert!(error.is_not_found());
/// assert_eq!(error.to_string(), "resolve nosuch.invalid. (A): no such name");
/// assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::NotFound);
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    name: String,
    asked: &'static str,
    failure: Failure,
}

/// A failure, and the server it concerns.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The last server asked. `None` if none was asked, or if it is unknown.
    pub(super) server: Option<SocketAddr>,
    pub(super) reason: Reason,
}

#[derive(Clone, Debug)]
pub(super) enum Reason {
    /// NXDOMAIN.
    NoSuchName,
    /// The name exists, but has no records of this type.
    NoRecords,
    TimedOut(Duration),
    /// SERVFAIL, and all other codes that have no variant here.
    ServerFailure(ResponseCode),
    /// REFUSED.
    Refused,
    Malformed(String),
    /// The name is invalid.
    NoName(String),
    Io(Arc<io::Error>),
}

impl Error {
    pub(super) fn new(name: &str, asked: &'static str, failure: Failure) -> Self {
        Self(Box::new(Inner {
            name: name.to_owned(),
            asked,
            failure,
        }))
    }

    /// Creates an error that occurred before any server was asked.
    pub(super) fn here(name: &str, asked: &'static str, reason: Reason) -> Self {
        let server = None;
        Self::new(name, asked, Failure { server, reason })
    }

    /// Returns the name that the caller passed to the lookup.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the requested record type, such as `AAAA`.
    #[must_use]
    pub fn record_type(&self) -> &'static str {
        self.0.asked
    }

    /// Returns the server that caused this failure. Returns `None` if no server was queried, or if
    /// the chain of aliases is too long. Also returns `None` if the answer is
    /// [negative](Self::is_not_found), because such an answer may come from the cache.
    #[must_use]
    pub fn server(&self) -> Option<SocketAddr> {
        self.0.failure.server
    }

    /// Returns whether the name does not exist (NXDOMAIN) or has no records of the requested type
    /// (RFC 2308, section 2). A retry soon afterwards would probably get the same answer.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.reason(), Reason::NoSuchName | Reason::NoRecords)
    }

    /// Returns whether the name does not exist (NXDOMAIN), which means that it has no records of
    /// any type.
    #[must_use]
    pub fn is_no_such_name(&self) -> bool {
        matches!(self.reason(), Reason::NoSuchName)
    }

    /// Returns whether this failure is a timeout: the server did not answer in time. Trying again
    /// may help.
    #[must_use]
    pub fn is_timed_out(&self) -> bool {
        matches!(self.reason(), Reason::TimedOut(_))
    }

    /// Returns whether the server reported a failure: SERVFAIL, or another code (RFC 1035, section
    /// 4.1.1) for which [`Error`] has no method of its own.
    #[must_use]
    pub fn is_server_failure(&self) -> bool {
        matches!(self.reason(), Reason::ServerFailure(_))
    }

    /// Returns whether the server refused to answer (REFUSED).
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.reason(), Reason::Refused)
    }

    /// Returns whether the server's response was malformed or did not answer the question.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        matches!(self.reason(), Reason::Malformed(_))
    }

    fn reason(&self) -> &Reason {
        &self.0.failure.reason
    }

    /// Returns whether the next candidate for a name may be tried: this one does not exist, or
    /// every server fails or refuses. If no server answered, this candidate may exist, and another
    /// one would be wrong.
    pub(crate) fn allows_next(&self) -> bool {
        self.is_not_found() || self.is_server_failure() || self.is_refused()
    }

    /// Selects the failure to report: the first one that is not "not found". If all errors differ
    /// only in their record types, the types are combined.
    pub(crate) fn worst<'a>(errors: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let errors: Vec<_> = errors.into_iter().collect();
        let first = errors.first()?;
        let worst = errors.iter().find(|error| !error.is_not_found());
        let mut worst = Self::clone(worst.unwrap_or(first));
        let same = |error: &&Self| error.0.failure.to_string() == worst.0.failure.to_string();
        let asked = |error: &&Self| error.0.asked != worst.0.asked;
        if errors.iter().all(same) && errors.iter().any(asked) {
            worst.0.asked = "A, AAAA";
        }
        Some(worst)
    }
}

impl Reason {
    /// Converts the DNS library's error from an exchange with a server.
    pub(super) fn of(error: NetError, timeout: Duration) -> Self {
        match error {
            NetError::Timeout => Self::TimedOut(timeout),
            NetError::Io(error) => Self::Io(error),
            other => Self::Malformed(other.to_string()),
        }
    }

    fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NoSuchName | Self::NoRecords => io::ErrorKind::NotFound,
            Self::TimedOut(_) => io::ErrorKind::TimedOut,
            Self::ServerFailure(_) | Self::Refused => io::ErrorKind::Other,
            Self::Malformed(_) => io::ErrorKind::InvalidData,
            Self::NoName(_) => io::ErrorKind::InvalidInput,
            Self::Io(error) => error.kind(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = self.server {
            write!(f, "{server}: ")?;
        }
        match &self.reason {
            Reason::NoSuchName => f.write_str("no such name"),
            Reason::NoRecords => f.write_str("no such records"),
            Reason::TimedOut(limit) => write!(f, "no answer within {limit:?}"),
            Reason::ServerFailure(code) => write!(f, "server failure ({code:?})"),
            Reason::Refused => f.write_str("the server refused to answer"),
            Reason::Malformed(what) => write!(f, "malformed answer: {what}"),
            Reason::NoName(what) => write!(f, "not a name: {what}"),
            Reason::Io(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            name,
            asked,
            failure,
        } = &*self.0;
        write!(f, "resolve {name} ({asked}): {failure}")
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Error").field(&self.to_string()).finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self.reason() {
            Reason::Io(error) => Some(&**error),
            _ => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::new(error.reason().kind(), error)
    }
}

/// Returns the text for a record type in errors.
pub(super) fn type_name(record_type: RecordType) -> &'static str {
    record_type.into()
}
