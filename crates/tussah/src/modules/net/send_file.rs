//! A module that sends files over TCP connections.

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::Duration;

use super::peer::Peer;
use super::reply::{PATIENCE, report};
use crate::flow::{AsyncOut, module};
use crate::fs::File;
use crate::modules::Attempt;
use crate::modules::files::Root;

/// A file, or part of a file, to be sent to a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePart {
    /// The peer, which must be a connection.
    pub peer: Peer,
    /// The path of the file.
    pub path: PathBuf,
    /// The offset of the first byte to send, in bytes from the start of the file.
    pub from: u64,
    /// The number of bytes to send, or `None` to send the rest of the file.
    pub len: Option<u64>,
}

impl FilePart {
    /// Creates a `FilePart` that covers a whole file.
    #[must_use]
    pub fn whole(peer: Peer, path: impl Into<PathBuf>) -> Self {
        Self {
            peer,
            path: path.into(),
            from: 0,
            len: None,
        }
    }
}

/// Sends files, or parts of files, over the connections of [`TcpListen`](super::TcpListen), without
/// copying the data through the process
/// ([`TcpStream::send_file`](crate::net::TcpStream::send_file)).
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `root` | path, optional | the directory of the files; paths that start with `/` or lead out of it by `..` are refused |
/// | `patience` | duration, default 10 s | the maximum time in which the next 64 KiB are read and sent |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | [`FilePart`] | the file, or part of one, to send |
/// | output `sent`, optional | [`FilePart`] | a part of which the system has accepted all bytes, with their number in `len` |
/// | output `failed` | [`Attempt<FilePart>`] | a part that could not be sent completely |
///
/// The module sends the files of a flow one at a time, in order. It follows symbolic links.
///
/// If the framing of the connection is `lines`, the module sends the bytes unchanged. If the
/// framing is `lengths`, the module sends the bytes as one frame, which must be shorter than 4 GiB.
///
/// Nothing is sent if the file is missing, is not a regular file, or is shorter than the requested
/// part. Some bytes may have been sent if the file is truncated during the transfer, if the peer
/// reads too slowly, or if the graph is stopped. After an incomplete transfer, the module closes
/// the connection, because the peer would mistake the next message for the rest of the file.
#[module]
pub struct SendFile {
    root: Root,
    patience: Duration,
}

#[module]
impl SendFile {
    fn init(root: Option<PathBuf>, patience: Option<Duration>) -> Result<Self, String> {
        Ok(Self {
            root: Root::new(root)?,
            patience: patience.unwrap_or(PATIENCE),
        })
    }

    // The state is empty: it keeps the files of a flow in order.
    async fn run(
        &self,
        part: FilePart,
        _order: &mut (),
        sent: Option<&impl AsyncOut<FilePart>>,
    ) -> Result<(), Attempt<FilePart>> {
        let len = match self.send(&part).await {
            Ok(len) => Some(len),
            Err(why) => return Err(Attempt::first(part, why)),
        };
        report(FilePart { len, ..part }, sent).await;
        Ok(())
    }
}

impl SendFile {
    /// Returns the number of bytes sent.
    async fn send(&self, part: &FilePart) -> Result<u64, String> {
        let connection = part.peer.connection()?;
        let path = self.root.join(&part.path)?;
        let fails = |error: String| format!("cannot send {}: {error}", path.display());
        // Without this flag, opening a pipe waits for a process that writes to it.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut options = File::options();
        let opened = options.read(true).custom_flags(flags).open(&path).await;
        let file = opened.map_err(|error| error.to_string())?;
        let metadata = file.metadata().await;
        let metadata = metadata.map_err(|error| error.to_string())?;
        if !metadata.is_file() {
            return Err(fails("it is not a regular file".to_owned()));
        }
        let (from, size) = (part.from, metadata.len);
        let rest = size.checked_sub(from);
        let len = rest.and_then(|rest| match part.len {
            None => Some(rest),
            Some(len) => (len <= rest).then_some(len),
        });
        let len = len.ok_or_else(|| {
            let end = part.len.map_or(from, |len| from.saturating_add(len));
            fails(format!("it has {size} bytes, and the part ends at {end}"))
        })?;
        let sent = connection.send_file(file.as_fd(), (from, len), self.patience);
        sent.await.map_err(fails)?;
        Ok(len)
    }
}
