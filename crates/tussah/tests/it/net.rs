//! The network.

mod dropped;
mod exhausted;
mod faults;
mod files;
mod hangup;
mod hint;
mod listener;
mod outgoing;
mod stream;

use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tussah::net::{TcpListener, TcpStream};

use crate::alone::{alone, descriptors};

/// Runs a test on a runtime with N workers.
fn run<F: Future<Output = io::Result<()>>>(workers: usize, test: F) {
    let runtime = crate::runtime(workers);
    runtime.block_on(test).expect("the network works");
}

/// Two ends of a connection.
async fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?).await?;
    let (server, _) = listener.accept().await?;
    Ok((client, server))
}

/// Two ends with small buffers, so that a transfer takes many steps. Segments are small too: a
/// window that has no room for one would stay closed until a timer of the system's.
async fn narrow_pair() -> io::Result<(TcpStream, TcpStream)> {
    const BUFFER: usize = 8192;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let socket = socket2::SockRef::from(&listener);
    socket.set_tcp_mss(1000)?;
    socket.set_recv_buffer_size(BUFFER)?;
    socket.set_send_buffer_size(BUFFER)?;
    let options = TcpStream::builder()
        .receive_buffer(BUFFER)
        .send_buffer(BUFFER);
    let client = options.connect(listener.local_addr()?).await?;
    let (server, _) = listener.accept().await?;
    Ok((client, server))
}

/// Polls once, with a waker that does nothing.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Bytes that show where they belong.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// Lets others have their turn until `done`.
async fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        tussah::yield_now().await;
    }
}
