//! Keeps bodies in temporary files, so that a client occupies no process of an application while it
//! sends or reads slowly. CGI also needs the length of a request's body first.

mod output;

use std::env;
use std::fs;
use std::future::Future;
use std::io::{self, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::pin::Pin;
use std::process;

use futures_lite::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use tussah::fs::{Cursor, File};
use tussah_wire::http::Status;

pub(super) use output::Output;

use super::request_body::RequestBody;
use crate::fastcgi::Failure;

/// Bound, in bytes: the maximum length of a request's body that is kept in memory. A longer one is
/// in a temporary file.
const MEMORY_BYTES: usize = 64 * 1024;

/// A future of a request's body, which completes when the body has arrived. If the body does not
/// arrive, the error is the status for the response, or `None` if the client has disconnected.
pub(crate) type Keeping = Pin<Box<dyn Future<Output = Result<RequestBody, Option<Status>>> + Send>>;

/// A body whose length is known.
pub(super) enum Arrival {
    /// The body has arrived completely, or is streamed.
    Here(RequestBody),
    /// The body has to arrive first.
    Later(Pin<Box<dyn Future<Output = Result<RequestBody, Failure>> + Send>>),
}

/// Returns a body whose length is known. One of unknown length has to arrive completely, and with
/// `buffering`, so has every other. The limit on bodies applies to the file, too.
pub(super) async fn with_len(body: RequestBody, buffering: bool) -> Arrival {
    match body.announced_len() {
        Some(_) if !(buffering && body.is_arriving()) => Arrival::Here(body),
        Some(_) => match temporary().await {
            Ok(file) => Arrival::Later(Box::pin(keep(file, Vec::new(), body))),
            Err(error) => {
                tracing::warn!("cannot keep the body of a request, so it is streamed: {error}");
                Arrival::Here(body)
            }
        },
        None => Arrival::Later(Box::pin(keep_of_unknown_len(body))),
    }
}

async fn keep_of_unknown_len(mut body: RequestBody) -> Result<RequestBody, Failure> {
    let mut bytes = Vec::new();
    // One byte more shows that the body is too long for the memory.
    let mut start = (&mut body).take(MEMORY_BYTES as u64 + 1);
    let read = start.read_to_end(&mut bytes).await;
    if read.map_err(Failure::Body)? <= MEMORY_BYTES {
        return Ok(RequestBody::whole(bytes));
    }
    keep(temporary().await.map_err(Failure::Spool)?, bytes, body).await
}

/// Moves a body, whose first bytes have been read, to a file.
async fn keep(
    file: File,
    mut bytes: Vec<u8>,
    mut body: RequestBody,
) -> Result<RequestBody, Failure> {
    let mut file = Cursor::new(file);
    let (mut len, mut whole_len) = (bytes.len(), 0);
    bytes.resize(bytes.len().max(MEMORY_BYTES), 0);
    loop {
        whole_len += len as u64;
        let written = file.write_all(&bytes[..len]).await;
        written.map_err(Failure::Spool)?;
        len = body.read(&mut bytes).await.map_err(Failure::Body)?;
        if len == 0 {
            break;
        }
    }
    let rewound = file.seek(SeekFrom::Start(0)).await;
    rewound.map_err(Failure::Spool)?;
    Ok(RequestBody::in_file(file, whole_len))
}

/// Creates a file without a name, which is gone when it is closed. The directory is that of
/// `TMPDIR`, or `/tmp`.
///
/// # Cancellation
/// One blocking job creates the file and removes its name. The job runs to its end, so no name is
/// left behind.
async fn temporary() -> io::Result<File> {
    let created = tussah::spawn_blocking(|| {
        let name = format!("tussah-{}-{:016x}", process::id(), fastrand::u64(..));
        let path = env::temp_dir().join(name);
        let mut options = fs::File::options();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let on_path = |what: &str, error: io::Error| {
            io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
        };
        let file = options
            .open(&path)
            .map_err(|error| on_path("open", error))?;
        fs::remove_file(&path).map_err(|error| on_path("remove", error))?;
        Ok(file)
    });
    let file: io::Result<fs::File> = created.await.map_err(io::Error::other)?;
    Ok(file?.into())
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use futures_lite::future;

    use super::*;

    #[test]
    fn short_bodies_of_unknown_length_stay_in_memory() {
        let check = |len: usize, is_in_file: bool| {
            let runtime = tussah::Runtime::builder().workers(1).build();
            runtime.expect("a runtime").block_on(async move {
                let body = RequestBody::whole(vec![b'x'; len]);
                let mut kept = keep_of_unknown_len(body).await.expect("there is room");
                assert_eq!(kept.is_in_file(), is_in_file, "{len}");
                let mut bytes = Vec::new();
                kept.read_to_end(&mut bytes).await.expect("it is there");
                assert_eq!(bytes.len(), len);
            });
        };
        check(0, false);
        check(MEMORY_BYTES, false);
        check(MEMORY_BYTES + 1, true);
    }

    /// The client leaves while its file is created.
    #[test]
    fn a_client_that_leaves_leaves_no_file_behind() {
        let runtime = tussah::Runtime::builder().workers(1).build();
        runtime.expect("a runtime").block_on(async {
            for _ in 0..10 {
                drop(future::poll_once(temporary()).await);
            }
            temporary().await.expect("there is room");
        });
        let start = format!("tussah-{}-", process::id());
        let is_left = || {
            let files = fs::read_dir(env::temp_dir()).expect("a directory");
            let mut names = files.flatten().map(|file| file.file_name());
            names.any(|name| name.to_string_lossy().starts_with(&start))
        };
        // Other tests make such files, too.
        let begun = Instant::now();
        while is_left() {
            assert!(begun.elapsed() < Duration::from_secs(20), "a file is left");
            thread::yield_now();
        }
    }
}
