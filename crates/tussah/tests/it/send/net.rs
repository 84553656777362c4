//! Sockets.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::StreamExt;
use tussah::Color;
use tussah::net::unix::{self, UnixDatagram};
use tussah::net::{
    self, ConnectOptions, Outgoing, OwnedReadHalf, OwnedWriteHalf, RecvSlot, SocketAddr,
    TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream,
};

use super::{addresses, futures, paths};

/// Awaits a future with each kind of buffer that can be written.
macro_rules! owned {
    ($buffer:ident => $future:expr) => {{
        const BYTES: &[u8] = b"static";
        {
            let $buffer = "static";
            let _ = $future.await;
        }
        {
            let $buffer = BYTES;
            let _ = $future.await;
        }
        {
            let $buffer = b"static";
            let _ = $future.await;
        }
        {
            let $buffer = String::new();
            let _ = $future.await;
        }
        {
            let $buffer = Vec::<u8>::new();
            let _ = $future.await;
        }
        {
            let $buffer = Arc::<[u8]>::default();
            let _ = $future.await;
        }
    }};
}

/// Awaits what a stream and its halves read by.
macro_rules! reads {
    ($stream:ident, $name:ident) => {{
        let mut buffer = vec![0; 1];
        let _ = $stream.$name(&mut buffer).await;
        let _ = $stream.$name(&mut [0; 4]).await;
    }};
}

/// Awaits what a stream and its halves write by.
macro_rules! writes {
    ($stream:ident, $name:ident) => {{
        let buffer = vec![0; 1];
        let _ = $stream.$name(&buffer).await;
        let _ = $stream.$name(b"static").await;
        let _ = $stream.$name("static".as_bytes()).await;
    }};
}

futures! {
    "net/tcp/connect::connect" () { addresses!(address => TcpStream::connect(address)) }
    "net/tcp/connect::connect" () { addresses!(address => net::connect(address)) }
    "net/tcp/connect::connect" (options: ConnectOptions) { addresses!(address => options.connect(address)) }
    "net/tcp/connect::connect_timeout" () {
        addresses!(address => TcpStream::connect_timeout(address, Duration::ZERO));
    }
    "net/tcp/listener::accept" (listener: TcpListener) { listener.accept().await }
    "net/tcp/listener::accept_in" (listener: TcpListener, text: String) {
        let serve = async |stream: TcpStream, _| stream.write_all(b"static").await.map_err(|_| "static");
        let _ = listener.accept_in(Color(1), serve).await;
    }
    "net/tcp/listener::incoming" (listener: TcpListener) {
        let mut incoming = std::pin::pin!(listener.incoming());
        let _ = incoming.next().await;
    }
    "net/tcp/read::read" (stream: TcpStream) { reads!(stream, read) }
    "net/tcp/read::read_exact" (stream: TcpStream) { reads!(stream, read_exact) }
    "net/tcp/read::read_vectored" (stream: TcpStream, buffer: Vec<u8>) {
        let _ = stream.read_vectored(&mut [IoSliceMut::new(&mut buffer)]).await;
    }
    "net/tcp/read::peek" (stream: TcpStream) { reads!(stream, peek) }
    "net/tcp/read::readable" (stream: TcpStream) { stream.readable().await }
    "net/tcp/read::read_owned" (stream: TcpStream) {
        let _ = stream.read_owned(Vec::new()).await;
        let _ = stream.read_owned([0; 4]).await;
    }
    "net/tcp/write::write" (stream: TcpStream) { writes!(stream, write) }
    "net/tcp/write::write_all" (stream: TcpStream) { writes!(stream, write_all) }
    "net/tcp/write::write_vectored" (stream: TcpStream, buffer: Vec<u8>) {
        let _ = stream.write_vectored(&[IoSlice::new(&buffer), IoSlice::new(b"static")]).await;
    }
    "net/tcp/write::write_all_vectored" (stream: TcpStream, buffer: Vec<u8>) {
        let _ = stream.write_all_vectored(&mut [IoSlice::new(&buffer), IoSlice::new(b"static")]).await;
    }
    "net/tcp/write::writable" (stream: TcpStream) { stream.writable().await }
    "net/tcp/write::write_owned" (stream: TcpStream) { owned!(buffer => stream.write_owned(buffer)) }
    "net/tcp/write::write_all_owned" (stream: TcpStream) { owned!(buffer => stream.write_all_owned(buffer)) }
    "net/tcp/split::read" (read: OwnedReadHalf, stream: TcpStream) {
        reads!(read, read);
        let (read, _write) = stream.split();
        reads!(read, read);
    }
    "net/tcp/split::read_exact" (read: OwnedReadHalf, stream: TcpStream) {
        reads!(read, read_exact);
        let (read, _write) = stream.split();
        reads!(read, read_exact);
    }
    "net/tcp/split::read_vectored" (read: OwnedReadHalf, stream: TcpStream, buffer: Vec<u8>) {
        let _ = read.read_vectored(&mut [IoSliceMut::new(&mut buffer)]).await;
        let (read, _write) = stream.split();
        let _ = read.read_vectored(&mut [IoSliceMut::new(&mut buffer)]).await;
    }
    "net/tcp/split::read_owned" (read: OwnedReadHalf, stream: TcpStream) {
        let _ = read.read_owned(Vec::new()).await;
        let (read, _write) = stream.split();
        let _ = read.read_owned(Vec::new()).await;
    }
    "net/tcp/split::peek" (read: OwnedReadHalf, stream: TcpStream) {
        reads!(read, peek);
        let (read, _write) = stream.split();
        reads!(read, peek);
    }
    "net/tcp/split::readable" (read: OwnedReadHalf, stream: TcpStream) {
        let _ = read.readable().await;
        let (read, _write) = stream.split();
        let _ = read.readable().await;
    }
    "net/tcp/split::write" (write: OwnedWriteHalf, stream: TcpStream) {
        writes!(write, write);
        let (_read, write) = stream.split();
        writes!(write, write);
    }
    "net/tcp/split::write_all" (write: OwnedWriteHalf, stream: TcpStream) {
        writes!(write, write_all);
        let (_read, write) = stream.split();
        writes!(write, write_all);
    }
    "net/tcp/split::write_vectored" (write: OwnedWriteHalf, stream: TcpStream, buffer: Vec<u8>) {
        let _ = write.write_vectored(&[IoSlice::new(&buffer)]).await;
        let (_read, write) = stream.split();
        let _ = write.write_vectored(&[IoSlice::new(&buffer)]).await;
    }
    "net/tcp/split::write_all_vectored" (write: OwnedWriteHalf, stream: TcpStream, buffer: Vec<u8>) {
        let _ = write.write_all_vectored(&mut [IoSlice::new(&buffer)]).await;
        let (_read, write) = stream.split();
        let _ = write.write_all_vectored(&mut [IoSlice::new(&buffer)]).await;
    }
    "net/tcp/split::write_all_owned" (write: OwnedWriteHalf, stream: TcpStream) {
        owned!(buffer => write.write_all_owned(buffer));
        let (_read, write) = stream.split();
        owned!(buffer => write.write_all_owned(buffer));
    }
    "net/tcp/split::send_file" (write: OwnedWriteHalf, stream: TcpStream, file: OwnedFd) {
        let _ = write.send_file(file.as_fd(), 0, 1).await;
        let (_read, write) = stream.split();
        let _ = write.send_file(file.as_fd(), 0, 1).await;
    }
    "net/tcp/split::writable" (write: OwnedWriteHalf, stream: TcpStream) {
        let _ = write.writable().await;
        let (_read, write) = stream.split();
        let _ = write.writable().await;
    }
    "net/tcp/send_file::send_file" (stream: TcpStream, file: OwnedFd) {
        let _ = stream.send_file(file.as_fd(), 0, 1).await;
    }
    "net/udp::send" (socket: UdpSocket) { writes!(socket, send) }
    "net/udp::send_to" (socket: UdpSocket, data: Vec<u8>) {
        addresses!(address => socket.send_to(b"static", address));
        addresses!(address => socket.send_to(&data, address));
    }
    "net/udp::recv" (socket: UdpSocket) { reads!(socket, recv) }
    "net/udp::recv_from" (socket: UdpSocket) { reads!(socket, recv_from) }
    "net/udp::peek" (socket: UdpSocket) { reads!(socket, peek) }
    "net/udp::peek_from" (socket: UdpSocket) { reads!(socket, peek_from) }
    "net/udp/batch::recv_batch" (socket: UdpSocket, buffer: Vec<u8>) {
        let _ = socket.recv_batch(&mut [RecvSlot::new(&mut buffer)]).await;
    }
    "net/udp/batch::send_batch" (socket: UdpSocket, data: Vec<u8>, to: Option<SocketAddr>) {
        let _ = socket.send_batch(&[(b"static", to), (&data, None)]).await;
    }
    "net/outgoing::push" (texts: Outgoing<&'static str>, bytes: Outgoing<Vec<u8>>) {
        let _ = texts.push("static").await;
        let _ = bytes.push(Vec::new()).await;
    }
    "net/outgoing::finish" (texts: Outgoing<&'static str>) { texts.finish().await }
    "net/unix/stream::connect" () { paths!(path => UnixStream::connect(path)) }
    "net/unix/stream::connect_addr" (address: unix::SocketAddr) {
        let _ = UnixStream::connect_addr(&address).await;
    }
    "net/unix/stream::read" (stream: UnixStream) { reads!(stream, read) }
    "net/unix/stream::read_exact" (stream: UnixStream) { reads!(stream, read_exact) }
    "net/unix/stream::write" (stream: UnixStream) { writes!(stream, write) }
    "net/unix/stream::write_all" (stream: UnixStream) { writes!(stream, write_all) }
    "net/unix/listener::accept" (listener: UnixListener) { listener.accept().await }
    "net/unix/listener::incoming" (listener: UnixListener) {
        let mut incoming = std::pin::pin!(listener.incoming());
        let _ = incoming.next().await;
    }
    "net/unix/halves::read" (read: unix::OwnedReadHalf) { reads!(read, read) }
    "net/unix/halves::read_exact" (read: unix::OwnedReadHalf) { reads!(read, read_exact) }
    "net/unix/halves::write" (write: unix::OwnedWriteHalf) { writes!(write, write) }
    "net/unix/halves::write_all" (write: unix::OwnedWriteHalf) { writes!(write, write_all) }
    "net/unix/descriptors::send_fds" (stream: UnixStream, file: OwnedFd, data: Vec<u8>) {
        let _ = stream.send_fds(b"static", &[file.as_fd()]).await;
        let _ = stream.send_fds(&data, &[file.as_fd()]).await;
    }
    "net/unix/descriptors::recv_fds" (stream: UnixStream, buffer: Vec<u8>) { stream.recv_fds(&mut buffer, 1).await }
    "net/unix/datagram::send" (socket: UnixDatagram) { writes!(socket, send) }
    "net/unix/datagram::send_to" (socket: UnixDatagram, data: Vec<u8>, place: PathBuf) {
        paths!(path => socket.send_to(b"static", path));
        paths!(path => socket.send_to(&data, path));
    }
    "net/unix/datagram::send_to_addr" (socket: UnixDatagram, data: Vec<u8>, address: unix::SocketAddr) {
        let _ = socket.send_to_addr(&data, &address).await;
        let _ = socket.send_to_addr(b"static", &address).await;
    }
    "net/unix/datagram::recv" (socket: UnixDatagram) { reads!(socket, recv) }
    "net/unix/datagram::recv_from" (socket: UnixDatagram) { reads!(socket, recv_from) }
    "net/unix/datagram::peek" (socket: UnixDatagram) { reads!(socket, peek) }
    "net/unix/datagram::send_fds" (socket: UnixDatagram, file: OwnedFd, data: Vec<u8>) {
        let _ = socket.send_fds(b"static", &[file.as_fd()]).await;
        let _ = socket.send_fds(&data, &[file.as_fd()]).await;
    }
    "net/unix/datagram::recv_fds" (socket: UnixDatagram, buffer: Vec<u8>) {
        let _ = socket.recv_fds(&mut buffer, 1).await;
    }
}
