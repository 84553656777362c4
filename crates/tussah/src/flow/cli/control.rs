//! The control socket of `run`: `tap` connects to it.
//!
//! A client sends one line, `edges` or `tap EDGE`. The answer is one JSON object a line:
//!
//! | object | meaning |
//! |---|---|
//! | `{"edge": "a -> b"}` | an edge of the graph |
//! | `{"item": "text", "flow": "key"}` | an item; without `flow` it is in no flow |
//! | `{"skipped": 3}` | the number of items that were skipped here |
//! | `{"error": "text"}` | the request is wrong |
//!
//! The server closes the connection after the list, after an error, and when the graph ends.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use serde_json::{Value, json};

use crate::JoinHandle;
use crate::flow::tap::{HELD_MAX, cut};
use crate::flow::{Key, Running, TappedItem};
use crate::net::{UnixListener, UnixStream};
use crate::sync::mpmc::{Receiver, Sender, channel};
use crate::time::{sleep, timeout};

/// Bound, in clients: the maximum number of clients of a control socket at a time; a further client
/// gets an error. Each client may hold 256 items.
const CLIENTS_MAX: usize = 16;

/// Bound, in bytes: the maximum length of the line that a client sends. The rest of a longer line
/// is ignored.
const REQUEST_MAX: usize = 4096;

/// Bound, in time: the maximum wait for the line that a client sends, after which the client is
/// disconnected, and for clients that are still reading when the program ends.
const PATIENCE: Duration = Duration::from_secs(1);

/// The pause between two looks at a tap, so that formatting items costs the graph little: a tap
/// shows at most 256 items a pause.
const PAUSE: Duration = Duration::from_millis(50);

/// Bound, in connections: the maximum number that wait until the control socket accepts
/// them. Further clients wait in `connect`.
const BACKLOG: i32 = 16;

/// A control socket. Its file disappears with this value.
pub(super) struct Socket {
    path: PathBuf,
    listener: UnixListener,
}

impl Socket {
    /// Listens at a path that only this user can connect to. Takes the place of a socket whose
    /// process is gone.
    ///
    /// # Errors
    /// Returns the reason if the path is in use, or the socket cannot be created.
    pub(super) fn bind(path: &Path) -> Result<Self, String> {
        let error =
            |error: io::Error| format!("cannot make the socket {}: {error}", path.display());
        let listener = match listen(path) {
            Err(in_use) if in_use.kind() == io::ErrorKind::AddrInUse => {
                let is_socket = |file: fs::Metadata| file.file_type().is_socket();
                if !fs::symlink_metadata(path).is_ok_and(is_socket) {
                    let path = path.display();
                    return Err(format!("{path} exists and is not a socket"));
                }
                match net::UnixStream::connect(path) {
                    Err(gone) if gone.kind() == io::ErrorKind::ConnectionRefused => {
                        fs::remove_file(path).map_err(error)?;
                        listen(path)
                    }
                    _ => {
                        let path = path.display();
                        return Err(format!("another process uses the socket {path}"));
                    }
                }
            }
            made => made,
        };
        Ok(Self {
            path: path.to_owned(),
            listener: listener.and_then(UnixListener::from_std).map_err(error)?,
        })
    }

    /// Removes the file, before the process exits without dropping this value.
    pub(super) fn remove(&self) {
        // Without the file, nothing remains to be done.
        let _ = fs::remove_file(&self.path);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns whether a path leads to a socket.
pub(super) fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

fn listen(path: &Path) -> io::Result<net::UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    // The file that `bind` makes has the mode of the socket, so there is no time at which another
    // user could connect.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Serves the clients of a control socket.
pub(super) struct Control {
    socket: Arc<Socket>,
    accepting: JoinHandle<()>,
    /// Ends when all clients have gone.
    clients: Receiver<()>,
}

impl Control {
    pub(super) fn start(socket: Socket, running: &Arc<Running>) -> Self {
        let socket = Arc::new(socket);
        let (client, clients) = channel(1);
        let (listener, running) = (Arc::clone(&socket), Arc::clone(running));
        let accepting =
            crate::spawn(async move { accept(&listener.listener, running, client).await });
        Self {
            socket,
            accepting,
            clients,
        }
    }

    /// Removes the file, before the process exits at once.
    pub(super) fn remove(&self) {
        self.socket.remove();
    }

    /// Waits until the clients have got the last items.
    pub(super) async fn end(self) {
        self.accepting.abort();
        // Drops its own handle for clients.
        drop(self.accepting.await);
        // A client that does not read gets no more.
        let _ = timeout(PATIENCE, self.clients.recv()).await;
    }
}

async fn accept(listener: &UnixListener, running: Arc<Running>, client: Sender<()>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptor is free; a client that waits gets one later.
            sleep(PAUSE).await;
            continue;
        };
        if client.sender_count() > CLIENTS_MAX {
            let error = format!("{CLIENTS_MAX} clients are connected already");
            drop(stream.try_write(line(&json!({"error": error})).as_bytes()));
            continue;
        }
        let (running, client) = (Arc::clone(&running), client.clone());
        crate::spawn(async move {
            // A client that is gone needs no answer.
            drop(serve(stream, &running).await);
            drop(client);
        });
    }
}

async fn serve(mut stream: UnixStream, running: &Running) -> io::Result<()> {
    let Ok(request) = timeout(PATIENCE, request(&stream)).await else {
        return Ok(());
    };
    let request = request?;
    let (reading, writing) = stream.split();
    if request == "edges" {
        let edges = running.edges().into_iter();
        let edges: String = edges.map(|edge| line(&json!({ "edge": edge }))).collect();
        return writing.write_all(edges.as_bytes()).await;
    }
    let tap = match request.strip_prefix("tap ") {
        Some(edge) => running.tap(edge).map_err(|error| error.to_string()),
        None => Err("expected `edges` or `tap EDGE`".to_owned()),
    };
    let mut tap = match tap {
        Ok(tap) => tap,
        Err(error) => {
            let error = line(&json!({ "error": error }));
            return writing.write_all(error.as_bytes()).await;
        }
    };
    let mut skipped = 0;
    let mut gone = std::pin::pin!(end_of(reading));
    let show = async {
        while let Some(item) = tap.next().await {
            let mut lines = item_line(&item);
            // No more than the tap holds, because a fast sender never lets it run empty.
            for item in std::iter::from_fn(|| tap.try_next()).take(HELD_MAX - 1) {
                lines += &item_line(&item);
            }
            let now = tap.skipped();
            if now > skipped {
                lines += &line(&json!({ "skipped": now - skipped }));
                skipped = now;
            }
            writing.write_all(lines.as_bytes()).await?;
            sleep(PAUSE).await;
        }
        Ok(())
    };
    match select(std::pin::pin!(show), gone.as_mut()).await {
        Either::Left((shown, _)) => shown,
        Either::Right(_) => Ok(()),
    }
}

/// Reads the line of a client.
async fn request(stream: &UnixStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; REQUEST_MAX];
    while bytes.len() < REQUEST_MAX && !bytes.ends_with(b"\n") {
        match stream.read(&mut buffer).await? {
            0 => break,
            len => bytes.extend(&buffer[..len]),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// Waits until the client has gone.
async fn end_of(stream: &UnixStream) {
    let mut buffer = [0; 64];
    while stream.read(&mut buffer).await.is_ok_and(|len| len > 0) {}
}

fn item_line(item: &TappedItem) -> String {
    let mut object = json!({ "item": item.text });
    match &item.flow {
        None => {}
        Some(Key::Number(number)) => object["flow"] = (*number).into(),
        Some(key) => object["flow"] = cut(&key.to_string()).into(),
    }
    line(&object)
}

fn line(object: &Value) -> String {
    let mut line = String::new();
    // A string takes all.
    let _ = writeln!(line, "{object}");
    line
}

#[cfg(test)]
mod tests {
    use super::super::tap::LINE_MAX;
    use super::*;

    /// `tap` takes no longer line.
    #[test]
    fn the_line_of_an_item_has_a_bound() {
        let long = "\u{1}".repeat(100_000);
        let item = TappedItem {
            text: cut(&long).to_owned(),
            flow: Some(Key::from(long)),
        };
        let line = item_line(&item);
        assert!(line.len() <= LINE_MAX, "{}", line.len());
    }
}
