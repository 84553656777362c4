//! Operating system errors, with the operation that failed and its object.

use std::error::Error;
use std::fmt;
use std::io;

/// The details of an [`io::Error`] that this crate returns: the operation, its object, and the
/// system's error.
///
/// If a function of this crate returns an [`io::Error`] because a system call failed, the error
/// contains an `OpError`. A few functions, such as the `try_` functions of sockets, return errors
/// without an `OpError`. The [`io::Error`] has the same [`kind`](io::Error::kind) as the system's
/// error. The error number is in the `OpError`, because an [`io::Error`] cannot carry both a number
/// and a message. The `Debug` form of an `OpError` is its message, because `main` prints this form
/// of an error that it returns.
///
/// # Examples
/// ```
/// use tussah::OpError;
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let error = tussah::net::TcpStream::connect("127.0.0.1:1").await.expect_err("nothing listens there");
/// assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
/// assert_eq!(error.to_string(), "connect to 127.0.0.1:1: Connection refused (os error 111)");
/// let error = OpError::of(&error).expect("the system reported it");
/// assert_eq!((error.operation(), error.raw_os_error()), ("connect to", Some(111)));
/// assert_eq!(format!("{error:?}"), error.to_string());
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
pub struct OpError {
    operation: &'static str,
    object: String,
    source: io::Error,
}

impl OpError {
    /// Returns the `OpError` inside `error`, if there is one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// Returns the operation that failed, such as `connect to` or `open`.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// Returns the object of the operation, such as an address or a path.
    #[must_use]
    pub fn object(&self) -> &str {
        &self.object
    }

    /// Returns the error number (see errno(3)), or `None` if the error did not come from the
    /// system.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.operation, self.object, self.source)
    }
}

impl fmt::Debug for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for OpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// Adds the operation and its object to an error that does not have them yet.
#[cold]
pub(crate) fn context(
    source: io::Error,
    operation: &'static str,
    object: impl fmt::Display,
) -> io::Error {
    if OpError::of(&source).is_some() {
        return source;
    }
    let kind = source.kind();
    let object = object.to_string();
    io::Error::new(
        kind,
        OpError {
            operation,
            object,
            source,
        },
    )
}

/// Copies an error so that it can be reported twice. An error that is neither a system error nor an
/// `OpError` keeps only its kind and text.
pub(crate) fn again(error: &io::Error) -> io::Error {
    if let Some(number) = error.raw_os_error() {
        return io::Error::from_raw_os_error(number);
    }
    match OpError::of(error) {
        Some(op) => context(again(&op.source), op.operation, &op.object),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
