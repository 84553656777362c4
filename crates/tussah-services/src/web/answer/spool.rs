//! Keeps bodies in temporary files, so that a client occupies no process of an application while it
//! sends or reads slowly. CGI also needs the length of a request's body first.

mod output;

use std::env;
use std::io::{self, SeekFrom};
use std::process;

use futures_lite::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use tussah::fs::{self, Cursor, File};

pub(super) use output::Output;

use super::request_body::RequestBody;
use crate::fastcgi::Failure;

/// Bound, in bytes: the length of a request's body that is kept in memory. A longer one is in a
/// temporary file.
const MEMORY_BYTES: usize = 64 * 1024;

/// Returns a body whose length is known. One of unknown length has arrived completely, and with
/// `buffering`, so has every other. The limit on bodies applies to the file, too.
pub(super) async fn with_len(
    mut body: RequestBody,
    buffering: bool,
) -> Result<RequestBody, Failure> {
    if body.announced_len().is_some() && !(buffering && body.is_arriving()) {
        return Ok(body);
    }
    if body.announced_len().is_some() {
        return match temporary().await {
            Ok(file) => keep(file, Vec::new(), body).await,
            Err(error) => {
                tracing::warn!("cannot keep the body of a request, so it is streamed: {error}");
                Ok(body)
            }
        };
    }
    let mut bytes = Vec::new();
    let mut start = (&mut body).take(MEMORY_BYTES as u64);
    let read = start.read_to_end(&mut bytes).await;
    if read.map_err(Failure::Body)? < MEMORY_BYTES {
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
    bytes.resize(MEMORY_BYTES, 0);
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
async fn temporary() -> io::Result<File> {
    let name = format!("tussah-{}-{:016x}", process::id(), fastrand::u64(..));
    let path = env::temp_dir().join(name);
    let mut options = File::options();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path).await?;
    fs::remove_file(&path).await?;
    Ok(file)
}
