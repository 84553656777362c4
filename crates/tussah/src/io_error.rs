//! Errors of the operating system that say what was tried, and on what.

use std::error::Error;
use std::fmt;
use std::io;

/// What is inside of each [`io::Error`] of this crate that the operating system caused: the operation, its object, and what
/// the system said.
///
/// The [`kind`](io::Error::kind) of the outer error is that of the system's. Its number is here, since an [`io::Error`] can't
/// have both a number and a text of ours.
///
/// # Examples
/// ```
/// use tussah::OpError;
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let error = tussah::net::TcpStream::connect("127.0.0.1:1").await.expect_err("nobody listens there");
/// assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
/// assert_eq!(error.to_string(), "connect to 127.0.0.1:1: Connection refused (os error 111)");
/// let error = OpError::of(&error).expect("the system said so");
/// assert_eq!((error.operation(), error.raw_os_error()), ("connect to", Some(111)));
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct OpError {
    operation: &'static str,
    object: String,
    source: io::Error,
}

impl OpError {
    /// What is inside of an error, if it is one of these.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// What was tried: `connect to`, `open`.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// On what: an address or a path.
    #[must_use]
    pub fn object(&self) -> &str {
        &self.object
    }

    /// The number of the error, as in errno(3); `None` if it was not the system's own.
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

impl Error for OpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// Says what was tried when this error came. One that says so already stays as it is.
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

/// The same error once more, for another who is to be told. Of what is neither the system's nor from here, the kind and the text.
pub(crate) fn again(error: &io::Error) -> io::Error {
    if let Some(number) = error.raw_os_error() {
        return io::Error::from_raw_os_error(number);
    }
    match OpError::of(error) {
        Some(op) => context(again(&op.source), op.operation, &op.object),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
