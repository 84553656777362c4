//! Unix sockets.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt};
use rustix::io::{Errno, FdFlags, fcntl_getfd};
use rustix::net::SendFlags;
use tussah::events::on_readable;
use tussah::net::unix::SocketAddr;
use tussah::net::{Shutdown, UnixDatagram, UnixListener, UnixStream};
use tussah::{Callback, Color, spawn};

use crate::alone::{alone, descriptors, descriptors_at_rest, until};
use crate::cancel::{cut, cuts};
use crate::{by_hand, run, run_on_one, runtime};

/// More than a socket holds.
const MUCH: usize = 1_000_000;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// An abstract address of this process's.
fn name(of: &str) -> SocketAddr {
    let name = format!("tussah-test-{}-{of}", std::process::id());
    SocketAddr::from_abstract_name(name).expect("it is short")
}

#[test]
fn more_than_a_socket_holds_goes_through() {
    run(async {
        let (a, b) = UnixStream::pair().expect("made");
        let written = spawn(async move {
            a.write_all(&pattern(MUCH)).await?;
            a.shutdown(Shutdown::Write)?;
            let mut rest = Vec::new();
            AsyncReadExt::read_to_end(&mut &a, &mut rest).await?;
            io::Result::Ok(rest)
        });
        let mut all = vec![0; MUCH];
        b.read_exact(&mut all).await.expect("it comes");
        assert!(all == pattern(MUCH));
        assert_eq!(b.read(&mut [0]).await.expect("the end"), 0);
        let (read, mut write) = b.into_split();
        AsyncWriteExt::write_all(&mut write, &pattern(MUCH))
            .await
            .expect("written");
        drop(write);
        assert!(written.await.expect("no panic").expect("read") == pattern(MUCH));
        drop(read);
    });
}

#[test]
fn listeners_at_paths() {
    run(async {
        let folder = tempfile::tempdir().expect("made");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("it is free");
        let error = UnixListener::bind(&path).expect_err("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("listen at {}: ", path.display())),
            "{text}"
        );
        assert!(
            text.ends_with("remove it if no process listens there"),
            "{text}"
        );
        let client = spawn({
            let path = path.clone();
            async move { UnixStream::connect(path).await }
        });
        let (server, peer) = listener.accept().await.expect("it comes");
        assert!(peer.is_unnamed());
        let client = client.await.expect("no panic").expect("connected");
        let address = client.peer_addr().expect("asked");
        assert_eq!(address.as_pathname(), Some(&*path));
        let credentials = server.peer_credentials().expect("asked");
        assert_eq!(credentials.pid, Some(std::process::id()));
        assert_eq!(credentials.uid, rustix::process::getuid().as_raw());
        drop(listener);
        // A child that another test is about to start has the listener a little longer.
        let error = loop {
            match UnixStream::connect(&path).await {
                Ok(_) => tussah::yield_now().await,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        std::fs::remove_file(&path).expect("the file is there");
        let error = UnixStream::connect(&path).await.expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = UnixListener::bind("x".repeat(200)).expect_err("it is too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    });
}

#[test]
fn a_full_queue_is_waited_for() {
    run(async {
        let address = name("full");
        let std = std::os::unix::net::UnixListener::bind_addr(&address).expect("it is free");
        rustix::net::listen(&std, 0).expect("a queue of one");
        let listener = UnixListener::from_std(std).expect("made");
        let mut clients = Vec::new();
        for _ in 0..20 {
            let address = address.clone();
            clients.push(spawn(
                async move { UnixStream::connect_addr(&address).await },
            ));
        }
        let mut incoming = Box::pin(listener.incoming());
        for _ in 0..20 {
            incoming.next().await.expect("no end").expect("it comes");
        }
        for client in clients {
            client.await.expect("no panic").expect("connected");
        }
    });
}

#[test]
fn halves_come_together_again() {
    run(async {
        let (a, b) = UnixStream::pair().expect("made");
        let (a_read, a_write) = a.into_split();
        let (b_read, b_write) = b.into_split();
        let (b_read, a_write) = b_read.reunite(a_write).expect_err("they are of two");
        let a = a_read.reunite(a_write).expect("they are of one");
        a.write_all(b"x").await.expect("it is open");
        b_read.read_exact(&mut [0]).await.expect("it comes");
        drop(b_write);
        assert_eq!(a.read(&mut [0]).await.expect("the end"), 0);
    });
}

/// A read that ends at a message with descriptors is short though more is there.
#[test]
fn a_short_read_is_no_reason_to_wait() {
    run(async {
        let (a, b) = UnixStream::pair().expect("made");
        // So that the descriptor is registered, and nothing will be reported of what is there
        // already.
        assert!(cut(b.read(&mut [0]), 1).await.is_none());
        for _ in 0..3 {
            a.write_all(b"one").await.expect("there is room");
            a.send_fds(b"two", &[a.as_fd()])
                .await
                .expect("there is room");
            a.write_all(b"three").await.expect("there is room");
            let mut all = Vec::<u8>::new();
            while all.len() < 11 {
                let mut buffer = [0; 64];
                let len = b.read(&mut buffer).await.expect("it is there");
                all.extend(&buffer[..len]);
            }
            assert_eq!(all, b"onetwothree");
        }
    });
}

/// A read that ends before an urgent byte is also short though more is there.
#[test]
fn an_urgent_byte_is_no_reason_to_wait() {
    run(async {
        let (a, b) = UnixStream::pair().expect("made");
        assert!(cut(b.read(&mut [0]), 1).await.is_none());
        a.write_all(b"one").await.expect("there is room");
        match rustix::net::send(&a, b"!", SendFlags::OOB) {
            // Linux before 5.15.
            Err(Errno::OPNOTSUPP) => return println!("this kernel has no urgent bytes"),
            sent => assert_eq!(sent, Ok(1)),
        }
        a.write_all(b"two").await.expect("there is room");
        let mut all = Vec::<u8>::new();
        while all.len() < 6 {
            let mut buffer = [0; 64];
            let len = b.read(&mut buffer).await.expect("it is there");
            all.extend(&buffer[..len]);
        }
        assert_eq!(all, b"onetwo");
    });
}

#[test]
fn a_stream_is_not_readable_after_a_short_read() {
    run(async {
        let (a, b) = UnixStream::pair().expect("made");
        assert!(cut(b.read(&mut [0]), 1).await.is_none());
        let is_readable = |b: &UnixStream| {
            let mut context = Context::from_waker(Waker::noop());
            b.poll_readable(&mut context).is_ready()
        };
        for vectored in [false, true] {
            a.write_all(b"four").await.expect("there is room");
            until("the driver reports it", || is_readable(&b)).await;
            let (mut start, mut rest) = ([0; 3], [0; 3]);
            if vectored {
                let buffers = &mut [IoSliceMut::new(&mut start), IoSliceMut::new(&mut rest)];
                let read = AsyncReadExt::read_vectored(&mut &b, buffers).await;
                assert_eq!(read.expect("it is there"), 4);
            } else {
                // Not short: there may be more.
                assert_eq!(b.read(&mut start).await.expect("it is there"), 3);
                assert!(is_readable(&b));
                assert_eq!(b.read(&mut rest).await.expect("it is there"), 1);
            }
            assert!(!is_readable(&b));
        }
    });
}

/// A pipe whose reading end is to be sent.
fn pipe(text: &str) -> OwnedFd {
    let (reader, mut writer) = io::pipe().expect("made");
    writer.write_all(text.as_bytes()).expect("there is room");
    reader.into()
}

fn text_of(fd: OwnedFd) -> String {
    io::read_to_string(File::from(fd)).expect("it is a pipe")
}

#[test]
fn descriptors_go_through() {
    alone("unix::descriptors_go_through", || {
        run_on_one(async {
            let before = descriptors_at_rest().await;
            let (a, b) = UnixStream::pair().expect("made");
            let sent = [pipe("one"), pipe("two"), pipe("three")];
            let borrowed = sent.each_ref().map(|fd| fd.as_fd());
            assert_eq!(a.send_fds(b"abc", &borrowed).await.expect("sent"), 3);
            a.write_all(b"def").await.expect("sent");
            let mut buffer = [0; 16];
            let received = b.recv_fds(&mut buffer, 8).await.expect("it comes");
            assert!(!received.fds_lost && !received.is_truncated);
            let flags = received.fds.iter().map(|fd| fcntl_getfd(fd).expect("open"));
            assert!(
                flags
                    .into_iter()
                    .all(|flags| flags.contains(FdFlags::CLOEXEC))
            );
            assert_eq!(received.fds.len(), 3);
            drop(sent);
            let texts: Vec<_> = received.fds.into_iter().map(text_of).collect();
            assert_eq!(texts, ["one", "two", "three"]);
            let mut rest = received.len;
            while rest < 6 {
                let more = b.recv_fds(&mut buffer, 8).await.expect("it is there");
                assert!(more.fds.is_empty());
                rest += more.len;
            }
            assert_eq!(rest, 6);
            drop(a);
            let end = b.recv_fds(&mut buffer, 8).await.expect("the end");
            assert_eq!((end.len, end.fds.len()), (0, 0));
            drop(b);
            assert_eq!(descriptors(), before);
        });
    });
}

#[test]
fn descriptors_without_a_place_are_closed() {
    alone("unix::descriptors_without_a_place_are_closed", || {
        run_on_one(async {
            let before = descriptors_at_rest().await;
            let (a, b) = UnixStream::pair().expect("made");
            for (count, room) in [
                (1, 0),
                (2, 1),
                (3, 1),
                (3, 2),
                (10, 4),
                (253, 252),
                (253, 9),
            ] {
                let with_both = descriptors();
                let fd = pipe("x");
                let sent = vec![fd.as_fd(); count];
                a.send_fds(b"x", &sent).await.expect("sent");
                let received = b.recv_fds(&mut [0; 8], room).await.expect("it comes");
                assert_eq!((received.len, received.fds.len()), (1, room), "{count}");
                assert!(received.fds_lost, "{count} into {room}");
                drop((fd, received));
                assert_eq!(descriptors(), with_both, "{count} into {room}");
            }
            let fd = pipe("x");
            let too_many = a.send_fds(b"x", &vec![fd.as_fd(); 254]).await;
            assert_eq!(
                too_many.expect_err("too many").kind(),
                io::ErrorKind::InvalidInput
            );
            let nothing = a.send_fds(b"", &[fd.as_fd()]).await;
            assert_eq!(
                nothing.expect_err("no bytes").kind(),
                io::ErrorKind::InvalidInput
            );
            // Read without asking for them, or never read.
            a.send_fds(b"x", &[fd.as_fd()]).await.expect("sent");
            assert_eq!(b.read(&mut [0; 8]).await.expect("it comes"), 1);
            a.send_fds(b"x", &[fd.as_fd()]).await.expect("sent");
            drop((a, b, fd));
            assert_eq!(descriptors(), before);
        });
    });
}

#[test]
fn datagrams_come_whole() {
    run(async {
        let address = name("whole");
        let server = UnixDatagram::bind_addr(&address).expect("it is free");
        let error = UnixDatagram::bind_addr(&address).expect_err("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        let client = UnixDatagram::bind_addr(&name("whole-client")).expect("it is free");
        client.send_to_addr(b"hello", &address).await.expect("sent");
        client.send_to_addr(b"", &address).await.expect("sent");
        let mut buffer = [0; 3];
        assert_eq!(server.peek(&mut buffer).await.expect("it is there"), 3);
        let (len, from) = server.recv_from(&mut buffer).await.expect("it is there");
        assert_eq!((len, &buffer), (3, b"hel"));
        let expected = name("whole-client");
        assert_eq!(from.as_abstract_name(), expected.as_abstract_name());
        assert_eq!(server.recv(&mut buffer).await.expect("it is there"), 0);
        client.connect_addr(&address).expect("it is there");
        let peer = client.peer_addr().expect("asked");
        assert_eq!(peer.as_abstract_name(), address.as_abstract_name());
        client.send(b"x").await.expect("sent");
        drop(server);
        // A child that another test is about to start has the server a little longer.
        let error = loop {
            if let Err(error) = client.send(b"x").await {
                break error;
            }
        };
        assert!(
            error.to_string().starts_with("send from @tussah-test-"),
            "{error}"
        );
        let error = client.send_to("x".as_bytes(), "/no/such").await;
        assert_eq!(error.expect_err("none").kind(), io::ErrorKind::NotFound);

        let (a, b) = UnixDatagram::pair().expect("made");
        let fd = pipe("sent");
        a.send_fds(b"12345", &[fd.as_fd(), fd.as_fd()])
            .await
            .expect("sent");
        let received = b.recv_fds(&mut buffer, 1).await.expect("it is there");
        assert!(received.is_truncated && received.fds_lost);
        assert_eq!((received.len, received.fds.len()), (3, 1));
    });
}

/// The system does not report when the queue of a socket that is not the peer has room.
#[test]
fn sending_to_a_socket_filled_by_others_waits_for_room() {
    run_on_one(async {
        let address = name("others");
        let server = UnixDatagram::bind_addr(&address).expect("it is free");
        let (other, client) = (UnixDatagram::unbound(), UnixDatagram::unbound());
        let (other, client) = (other.expect("made"), client.expect("made"));
        let mut full = 0;
        while cut(other.send_to_addr(b"x", &address), 1).await.is_some() {
            full += 1;
        }
        let mut send = Box::pin(client.send_to_addr(b"yes", &address));
        // Often enough that what the system reports of the socket itself has been used up.
        for _ in 0..1000 {
            let pending = futures_lite::future::poll_once(&mut send).await;
            assert!(pending.is_none());
            tussah::yield_now().await;
        }
        let mut buffer = [0; 8];
        for _ in 0..full {
            assert_eq!(server.recv(&mut buffer).await.expect("it is there"), 1);
        }
        send.await.expect("there is room");
        assert_eq!(server.recv(&mut buffer).await.expect("it came"), 3);
    });
}

#[test]
fn sending_to_another_address_does_not_wait_for_the_peer() {
    run_on_one(async {
        let (address, peer_address) = (name("not-the-peer"), name("the-peer"));
        let server = UnixDatagram::bind_addr(&address).expect("it is free");
        let _peer = UnixDatagram::bind_addr(&peer_address).expect("it is free");
        let client = UnixDatagram::unbound().expect("made");
        client.connect_addr(&peer_address).expect("it is there");
        // Both are full.
        while cut(client.send(b"x"), 1).await.is_some() {}
        let other = UnixDatagram::unbound().expect("made");
        let mut full = 0;
        while cut(other.send_to_addr(b"x", &address), 1).await.is_some() {
            full += 1;
        }
        let mut send = Box::pin(client.send_to_addr(b"yes", &address));
        assert!(futures_lite::future::poll_once(&mut send).await.is_none());
        let mut buffer = [0; 8];
        for _ in 0..full {
            assert_eq!(server.recv(&mut buffer).await.expect("it is there"), 1);
        }
        let mut sent = None;
        until("it is sent", || {
            let mut context = Context::from_waker(Waker::noop());
            sent = Some(send.as_mut().poll(&mut context));
            sent.as_ref().is_some_and(Poll::is_ready)
        })
        .await;
        assert!(matches!(sent, Some(Poll::Ready(Ok(3)))));
        assert_eq!(server.recv(&mut buffer).await.expect("it came"), 3);
    });
}

#[test]
fn sending_to_a_full_socket_waits_for_room() {
    run(async {
        for connected in [false, true] {
            let address = name(if connected { "room-c" } else { "room" });
            let server = UnixDatagram::bind_addr(&address).expect("it is free");
            let client = UnixDatagram::unbound().expect("made");
            if connected {
                client.connect_addr(&address).expect("it is there");
            }
            let sends = spawn(async move {
                for n in 0..2000u32 {
                    let data = n.to_ne_bytes();
                    match connected {
                        true => client.send(&data).await?,
                        false => client.send_to_addr(&data, &address).await?,
                    };
                }
                io::Result::Ok(())
            });
            for n in 0..2000u32 {
                let mut buffer = [0; 4];
                server.recv(&mut buffer).await.expect("it comes");
                assert_eq!(u32::from_ne_bytes(buffer), n);
            }
            sends.await.expect("no panic").expect("sent");
        }
    });
}

#[test]
fn cancelled_operations_of_streams() {
    alone("unix::cancelled_operations_of_streams", || {
        run_on_one(async {
            let before = descriptors_at_rest().await;
            for kind in 0..3 {
                for polls in cuts() {
                    let (a, b) = UnixStream::pair().expect("made");
                    let sends = spawn(async move {
                        let fd = pipe("x");
                        a.send_fds(b"hello", &[fd.as_fd()]).await.expect("sent");
                        a
                    });
                    let mut buffer = [0; 5];
                    let ended = match kind {
                        0 => cut(b.read(&mut buffer), polls).await.is_some(),
                        1 => cut(b.recv_fds(&mut buffer, 1), polls).await.is_some(),
                        _ => cut(AsyncReadExt::read(&mut &b, &mut buffer), polls)
                            .await
                            .is_some(),
                    };
                    let a = sends.await.expect("no panic");
                    if !ended {
                        let received = b.recv_fds(&mut buffer, 1).await.expect("it is there");
                        assert_eq!((received.len, received.fds.len()), (5, 1));
                    }
                    assert_eq!(&buffer, b"hello");
                    drop((a, b));
                    assert_eq!(descriptors(), before);
                    if ended {
                        break;
                    }
                }
            }
            for kind in 0..3 {
                for polls in cuts() {
                    let (a, b) = UnixStream::pair().expect("made");
                    let mut full = 0;
                    while let Ok(len) = a.try_write(&[0; 4096]) {
                        full += len;
                    }
                    let reads = spawn(async move {
                        let mut all = vec![0; full];
                        b.read_exact(&mut all).await.expect("it is there");
                        let mut count = 0;
                        all.clear();
                        loop {
                            let mut buffer = [0; 64];
                            let received = b.recv_fds(&mut buffer, 1).await.expect("it works");
                            if received.len == 0 {
                                return (all, count);
                            }
                            all.extend(&buffer[..received.len]);
                            count += received.fds.len();
                        }
                    });
                    let fd = pipe("x");
                    let ended = match kind {
                        0 => cut(a.write(b"first"), polls).await.is_some(),
                        1 => cut(a.send_fds(b"first", &[fd.as_fd()]), polls)
                            .await
                            .is_some(),
                        _ => cut(AsyncWriteExt::write(&mut &a, b"first"), polls)
                            .await
                            .is_some(),
                    };
                    a.write_all(b"second").await.expect("there is room");
                    drop((a, fd));
                    let (all, count) = reads.await.expect("no panic");
                    assert_eq!(
                        all,
                        if ended {
                            &b"firstsecond"[..]
                        } else {
                            b"second"
                        }
                    );
                    assert_eq!(count, usize::from(ended && kind == 1));
                    assert_eq!(descriptors(), before);
                    if ended {
                        break;
                    }
                }
            }
        });
    });
}

#[test]
fn cancelled_connects_and_accepts() {
    alone("unix::cancelled_connects_and_accepts", || {
        run_on_one(async {
            let before = descriptors_at_rest().await;
            let address = name("cancel");
            let listener = Arc::new(UnixListener::bind_addr(&address).expect("it is free"));
            for polls in cuts() {
                let connects = spawn({
                    let address = address.clone();
                    async move { UnixStream::connect_addr(&address).await }
                });
                let accepted = cut(listener.accept(), polls).await;
                let ended = accepted.is_some();
                let server = match accepted {
                    Some(accepted) => accepted.expect("it comes").0,
                    None => listener.accept().await.expect("it comes").0,
                };
                let client = connects.await.expect("no panic").expect("connected");
                client.write_all(b"x").await.expect("there is room");
                server.read_exact(&mut [0]).await.expect("it comes");
                drop((client, server));
                assert_eq!(descriptors(), before + 1);
                if ended {
                    break;
                }
            }
            for polls in cuts() {
                let ended = cut(UnixStream::connect_addr(&address), polls)
                    .await
                    .is_some();
                if ended {
                    listener.accept().await.expect("it came");
                }
                let (client, server) = (UnixStream::connect_addr(&address), listener.accept());
                let (client, server) = futures_lite::future::zip(client, server).await;
                assert!(client.is_ok() && server.is_ok());
                drop((client, server));
                assert_eq!(descriptors(), before + 1);
                if ended {
                    break;
                }
            }
            drop(listener);
            until("all is closed", || descriptors() == before).await;
        });
    });
}

#[test]
fn cancelled_operations_of_datagrams() {
    run(async {
        for polls in cuts() {
            // Another name each time: a process that another test starts has the socket, too, until
            // it runs its program.
            let address = name(&format!("cancel-datagram-{polls}"));
            let server = UnixDatagram::bind_addr(&address).expect("it is free");
            let client = UnixDatagram::unbound().expect("made");
            let mut full = 0u32;
            while cut(client.send_to_addr(&full.to_ne_bytes(), &address), 1)
                .await
                .is_some()
            {
                full += 1;
            }
            let reads = spawn(async move {
                let mut all = Vec::new();
                let mut buffer = [0; 4];
                while server.recv(&mut buffer).await.expect("it comes") == 4 {
                    all.push(u32::from_ne_bytes(buffer));
                }
                all
            });
            let data = full.to_ne_bytes();
            let cut_off = cut(client.send_to_addr(&data, &address), polls).await;
            let ended = cut_off.is_some();
            client.send_to_addr(b"end", &address).await.expect("sent");
            let all = reads.await.expect("no panic");
            assert!(all.into_iter().eq(0..full + u32::from(ended)));
            if ended {
                break;
            }
        }
        let (a, b) = UnixDatagram::pair().expect("made");
        for polls in cuts() {
            let mut buffer = [0; 4];
            a.send(b"abcd").await.expect("there is room");
            let ended = cut(b.recv_from(&mut buffer), polls).await.is_some();
            if !ended {
                b.recv(&mut buffer).await.expect("it is there");
            }
            assert_eq!(&buffer, b"abcd");
            if ended {
                break;
            }
        }
    });
}

#[test]
fn the_standard_library_takes_them_and_gives_them() {
    run(async {
        let (a, b) = UnixStream::pair().expect("made");
        a.write_all(b"hello").await.expect("there is room");
        let number = b.as_raw_fd();
        let mut std = b.into_std();
        assert_eq!(std.as_raw_fd(), number);
        let mut buffer = [0; 5];
        std.read_exact(&mut buffer).expect("it is there");
        let b = UnixStream::from_std(std).expect("it works");
        a.write_all(b"again").await.expect("there is room");
        b.read_exact(&mut buffer).await.expect("it comes");
        assert_eq!(&buffer, b"again");
    });
}

/// A name of all the bytes that an address has, without a zero behind it, for which the standard
/// library has no address.
#[test]
fn peers_with_the_longest_names() {
    run(async {
        let folder = tempfile::tempdir().expect("made");
        let longest = |letter: &str| {
            let len = 108 - folder.path().as_os_str().len() - 1;
            let path = folder.path().join(letter.repeat(len));
            rustix::net::SocketAddrUnix::new(&path).expect("it fits")
        };
        let to = |path| rustix::net::SocketAddrUnix::new(path).expect("it fits");
        let socket = |kind| {
            let family = rustix::net::AddressFamily::UNIX;
            rustix::net::socket(family, kind, None).expect("made")
        };

        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).expect("it is free");
        let client = socket(rustix::net::SocketType::STREAM);
        rustix::net::bind(&client, &longest("a")).expect("bound");
        rustix::net::connect(&client, &to(&path)).expect("connected");
        let (server, peer) = listener.accept().await.expect("it comes");
        assert!(peer.is_unnamed());
        assert!(server.peer_addr().expect("it has a peer").is_unnamed());

        let path = folder.path().join("d");
        let receiver = UnixDatagram::bind(&path).expect("it is free");
        let sender = socket(rustix::net::SocketType::DGRAM);
        rustix::net::bind(&sender, &longest("b")).expect("bound");
        rustix::net::connect(&sender, &to(&path)).expect("connected");
        rustix::net::send(&sender, b"hello", rustix::net::SendFlags::empty()).expect("sent");
        let (len, peer) = receiver.recv_from(&mut [0; 9]).await.expect("it comes");
        assert!(len == 5 && peer.is_unnamed());
    });
}

#[test]
fn streams_have_time_limits() {
    let (clock, runtime) = by_hand();
    let second = Duration::from_secs(1);
    let test = async move {
        let timed_out = async |operation: tussah::JoinHandle<io::Result<usize>>| {
            until("the time is up", || {
                clock.advance(second / 10);
                operation.is_finished()
            })
            .await;
            let result = operation.await.expect("no panic");
            assert_eq!(result.expect_err("too late").kind(), ErrorKind::TimedOut);
        };
        let (a, b) = UnixStream::pair().expect("made");
        assert_eq!(a.read_timeout(), None);
        let error = a.set_write_timeout(Some(Duration::ZERO));
        assert_eq!(error.expect_err("zero").kind(), ErrorKind::InvalidInput);
        a.set_read_timeout(Some(second)).expect("not zero");
        a.set_write_timeout(Some(second)).expect("not zero");
        assert_eq!(
            (a.read_timeout(), a.write_timeout()),
            (Some(second), Some(second))
        );
        let a = Arc::new(a);
        let this = a.clone();
        timed_out(spawn(async move { this.read(&mut [0; 16]).await })).await;
        let this = a.clone();
        timed_out(spawn(async move {
            AsyncReadExt::read(&mut &*this, &mut [0; 16]).await
        }))
        .await;
        let this = a.clone();
        timed_out(spawn(async move {
            Ok(this.recv_fds(&mut [0; 16], 1).await?.len)
        }))
        .await;
        while a.try_write(&[0; 100_000]).is_ok() {}
        let this = a.clone();
        timed_out(spawn(async move { this.write(&[0; 16]).await })).await;
        // Nothing was lost.
        b.write_all(b"late").await.expect("there is room");
        a.read_exact(&mut [0; 4]).await.expect("it is there");
    };
    runtime.block_on_spawned(test);
}

#[test]
fn callbacks_for_listeners_and_datagrams() {
    let runtime = runtime(1);
    let (sender, receiver) = mpsc::channel();
    let would_block = |error: io::Error| assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let (clients, listener, datagrams) = runtime.block_on(async {
        let address = name("callbacks");
        let listener = Arc::new(UnixListener::bind_addr(&address).expect("it is free"));
        would_block(listener.try_accept().expect_err("there is none"));
        let this = listener.clone();
        let accepted = sender.clone();
        let accept = Callback::new(Color(1), move |()| {
            let stream = this.try_accept().expect("there is one").0;
            accepted.send(stream).expect("the test listens");
        });
        on_readable(&listener, accept);
        let client = UnixStream::connect_addr(&address).await;
        let other = UnixStream::connect_addr(&address).await;
        let clients = [client.expect("it is there"), other.expect("it is there")];

        let address = name("callback-datagrams");
        let socket = Arc::new(UnixDatagram::bind_addr(&address).expect("it is free"));
        would_block(socket.try_recv_from(&mut [0]).expect_err("there is none"));
        let (sender, receiver) = mpsc::channel();
        let this = socket.clone();
        let receive = Callback::new(Color(1), move |()| {
            let (len, from) = this.try_recv_from(&mut [0; 8]).expect("there is one");
            sender
                .send((len, from.is_unnamed()))
                .expect("the test listens");
        });
        on_readable(&socket, receive);
        let client = UnixDatagram::unbound().expect("made");
        assert_eq!(
            client
                .try_send(b"four", Some(&address))
                .expect("there is room"),
            4
        );
        (clients, listener, (receiver, socket))
    });
    for client in &clients {
        let stream = receiver.recv().expect("it is called");
        assert_eq!(stream.try_write(b"hello").expect("there is room"), 5);
        let mut buffer = [0; 8];
        assert_eq!(
            runtime.block_on(client.read(&mut buffer)).expect("it came"),
            5
        );
    }
    on_readable(&listener, None);
    let (receiver, socket) = datagrams;
    assert_eq!(receiver.recv(), Ok((4, true)));
    on_readable(&socket, None);
}

#[test]
fn several_buffers_are_written_without_waiting() {
    run(async {
        let (a, b) = UnixStream::pair().expect("made");
        let parts = [&b"one"[..], b"", b"three"].map(IoSlice::new);
        let len = a.try_write_vectored(&parts).expect("there is room");
        assert_eq!(len, 8);
        let mut buffer = [0; 8];
        b.read_exact(&mut buffer).await.expect("it came");
        assert_eq!(&buffer, b"onethree");
        while a.try_write(&[0; 100_000]).is_ok() {}
        let full = a.try_write_vectored(&parts).expect_err("there is no room");
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
    });
}
