//! Why a name could not be resolved.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::net::NetError;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;

/// Why a name could not be resolved: which name, what was asked for, which server, and what came instead.
///
/// As an [`io::Error`] it has the kind `NotFound`, `TimedOut`, `InvalidData` for a malformed answer, `InvalidInput` for a
/// name that is none, that of the operating system's error, or else `Other`; this error is inside of it.
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// // Names in `invalid` never exist (RFC 6761, section 6.4): nobody is asked.
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

/// What went wrong, and with which server.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The last that was asked; `None` if none was, or if it is not known which.
    pub(super) server: Option<SocketAddr>,
    pub(super) reason: Reason,
}

#[derive(Clone, Debug)]
pub(super) enum Reason {
    /// NXDOMAIN.
    NoSuchName,
    /// The name exists, but has no such records.
    NoRecords,
    TimedOut(Duration),
    /// SERVFAIL, and all codes that have no reason of their own.
    ServerFailure(ResponseCode),
    /// REFUSED.
    Refused,
    Malformed(String),
    /// What was asked for is no name.
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

    /// Before any server was asked.
    pub(super) fn here(name: &str, asked: &'static str, reason: Reason) -> Self {
        let server = None;
        Self::new(name, asked, Failure { server, reason })
    }

    /// The name that was to be resolved, as it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The type of the records that were asked for, as in `AAAA`.
    #[must_use]
    pub fn record_type(&self) -> &'static str {
        self.0.asked
    }

    /// The server that was asked last; `None` if none was asked, if several were, or if the [answer](Self::is_not_found) is that
    /// there is nothing, which may have been kept since an earlier question.
    #[must_use]
    pub fn server(&self) -> Option<SocketAddr> {
        self.0.failure.server
    }

    /// The name does not exist (NXDOMAIN), or has no records of this type (RFC 2308, section 2). Asking again soon brings
    /// the same answer.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.reason(), Reason::NoSuchName | Reason::NoRecords)
    }

    /// The name does not exist, with no records of any type (NXDOMAIN).
    #[must_use]
    pub fn is_no_such_name(&self) -> bool {
        matches!(self.reason(), Reason::NoSuchName)
    }

    /// No server answered in time. Asking again may help.
    #[must_use]
    pub fn is_timed_out(&self) -> bool {
        matches!(self.reason(), Reason::TimedOut(_))
    }

    /// The server said that it could not answer: SERVFAIL, or any other code (RFC 1035, section 4.1.1) that has no
    /// method here.
    #[must_use]
    pub fn is_server_failure(&self) -> bool {
        matches!(self.reason(), Reason::ServerFailure(_))
    }

    /// The server refuses to answer us (REFUSED).
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.reason(), Reason::Refused)
    }

    /// What the server sent is no answer to the question.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        matches!(self.reason(), Reason::Malformed(_))
    }

    fn reason(&self) -> &Reason {
        &self.0.failure.reason
    }

    /// The next candidate for a name may still exist: we know that this one does not, or that nobody wants to tell. If nobody
    /// answered, the name may be this one, and another one would be wrong.
    pub(crate) fn allows_next(&self) -> bool {
        self.is_not_found() || self.is_server_failure() || self.is_refused()
    }

    /// Of several failures to resolve a name the one to tell of: the first that is more than "not found". If they are all the
    /// same but for the types of the records, those are put together.
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
    /// What the library says of an exchange with a server.
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

/// How an error names a type of records.
pub(super) fn type_name(record_type: RecordType) -> &'static str {
    record_type.into()
}
