//! The connections of a child's standard streams.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::pipe::{Reader, Writer};

/// The source or destination of one of a child's standard streams.
///
/// # Examples
/// ```
/// use tussah::process::{Command, Stdio};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// // `echo hello | tr a-z A-Z`, connected by a pipe that does not go through this process.
/// let (reader, writer) = std::io::pipe()?;
/// let mut echo = Command::new("echo").arg("hello").stdout(writer).spawn().await?;
/// let upper = Command::new("tr").args(["a-z", "A-Z"]).stdin(reader).output().await?;
/// assert_eq!(upper.stdout, b"HELLO\n");
/// assert!(echo.wait().await?.success());
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct Stdio(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Inherit,
    Null,
    Piped,
    Fd(Arc<OwnedFd>),
}

impl Stdio {
    /// Inherits the stream of this process.
    #[must_use]
    pub fn inherit() -> Self {
        Self(Kind::Inherit)
    }

    /// Connects the stream to `/dev/null`.
    #[must_use]
    pub fn null() -> Self {
        Self(Kind::Null)
    }

    /// Connects the stream to a new pipe; the [`Child`](super::Child) holds the other end.
    #[must_use]
    pub fn piped() -> Self {
        Self(Kind::Piped)
    }

    /// Converts to the standard library's type. A descriptor is duplicated, since a command may be
    /// spawned more than once.
    pub(super) fn to_std(&self) -> io::Result<std::process::Stdio> {
        Ok(match &self.0 {
            Kind::Inherit => std::process::Stdio::inherit(),
            Kind::Null => std::process::Stdio::null(),
            Kind::Piped => std::process::Stdio::piped(),
            Kind::Fd(fd) => fd.try_clone()?.into(),
        })
    }
}

/// Uses a descriptor, which is closed in this process when the command is dropped.
impl From<OwnedFd> for Stdio {
    fn from(fd: OwnedFd) -> Self {
        Self(Kind::Fd(Arc::new(fd)))
    }
}

impl From<File> for Stdio {
    fn from(file: File) -> Self {
        OwnedFd::from(file).into()
    }
}

impl From<io::PipeReader> for Stdio {
    fn from(pipe: io::PipeReader) -> Self {
        OwnedFd::from(pipe).into()
    }
}

impl From<io::PipeWriter> for Stdio {
    fn from(pipe: io::PipeWriter) -> Self {
        OwnedFd::from(pipe).into()
    }
}

/// Uses the reading end of a pipe, such as another child's output, in blocking mode.
impl TryFrom<Reader> for Stdio {
    type Error = io::Error;

    fn try_from(reader: Reader) -> io::Result<Self> {
        reader.into_fd().map(Self::from)
    }
}

/// Uses the writing end of a pipe, such as another child's input, in blocking mode.
impl TryFrom<Writer> for Stdio {
    type Error = io::Error;

    fn try_from(writer: Writer) -> io::Result<Self> {
        writer.into_fd().map(Self::from)
    }
}
