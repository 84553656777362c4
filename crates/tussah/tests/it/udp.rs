//! UDP.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tussah::net::{RecvSlot, UdpSocket};
use tussah::{OpError, spawn};

use crate::alone::{alone, descriptors, descriptors_at_rest};
use crate::cancel::{cut, cuts};
use crate::{run, run_on_one};

fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("there is a port")
}

fn address(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().expect("it is bound")
}

/// Two sockets, each of which is the other's peer.
fn pair() -> (UdpSocket, UdpSocket) {
    let (a, b) = (socket(), socket());
    a.connect(address(&b)).expect("it is there");
    b.connect(address(&a)).expect("it is there");
    (a, b)
}

/// Makes the system refuse what others send to the socket, as if there were none. A port that was
/// given back could become another test's.
fn become_deaf(socket: &UdpSocket) {
    socket.connect(address(socket)).expect("it is there");
}

/// A socket that refuses all datagrams from others.
fn deaf() -> UdpSocket {
    let socket = socket();
    become_deaf(&socket);
    socket
}

#[test]
fn datagrams_arrive_whole_with_their_source() {
    run(async {
        let (a, b) = (socket(), socket());
        for len in [0, 1, 1000, 20_000] {
            a.send_to(&vec![7; len], address(&b)).await.expect("sent");
            let mut buffer = vec![0; 30_000];
            let peeked = b.peek_from(&mut buffer).await.expect("it came");
            assert_eq!(peeked, (len, address(&a)));
            let received = b.recv_from(&mut buffer).await.expect("it came");
            assert_eq!(received, (len, address(&a)));
            assert!(buffer[..len].iter().all(|&byte| byte == 7));
        }
        let error = a.send_to(&[0; 70_000], address(&b)).await;
        let error = error.expect_err("it is too long");
        assert_eq!(OpError::of(&error).expect("ours").operation(), "send to");
    });
}

#[test]
fn a_waiting_receiver_is_woken() {
    run(async {
        let (a, b) = pair();
        let echo = spawn(async move {
            let mut buffer = [0; 16];
            for _ in 0..200 {
                let len = b.recv(&mut buffer).await?;
                b.send(&buffer[..len]).await?;
            }
            io::Result::Ok(())
        });
        for n in 0..200u8 {
            a.send(&[n]).await.expect("sent");
            let mut buffer = [0; 16];
            assert_eq!(a.recv(&mut buffer).await.expect("it came"), 1);
            assert_eq!(buffer[0], n);
        }
        echo.await.expect("no panic").expect("it works");
    });
}

#[test]
fn a_datagram_that_is_too_long_is_cut_off() {
    run(async {
        let (a, b) = pair();
        a.send(b"hello").await.expect("sent");
        a.send(b"you").await.expect("sent");
        let mut buffer = [0; 3];
        assert_eq!(b.peek(&mut buffer).await.expect("it came"), 3);
        assert_eq!(b.recv(&mut buffer).await.expect("it came"), 3);
        assert_eq!(&buffer, b"hel");
        assert_eq!(b.recv(&mut buffer).await.expect("it came"), 3);
        assert_eq!(&buffer, b"you");
    });
}

#[test]
fn a_closed_port_is_reported() {
    run(async {
        let a = socket();
        let gone = deaf();
        a.connect(address(&gone)).expect("it is an address");
        a.send(b"hello").await.expect("nothing is known yet");
        let error = a.recv(&mut [0; 16]).await.expect_err("nobody is there");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let of = OpError::of(&error).expect("ours");
        assert_eq!(of.object(), address(&a).to_string());
        // The socket works as before, with another peer.
        let b = socket();
        a.connect(address(&b)).expect("it is an address");
        a.send(b"hello").await.expect("sent");
        assert_eq!(b.recv(&mut [0; 16]).await.expect("it came"), 5);
    });
}

#[test]
fn a_waiting_sender_learns_that_the_port_is_closed() {
    run(async {
        let a = Arc::new(socket());
        let gone = socket();
        a.connect(address(&gone)).expect("it is an address");
        let waits = spawn({
            let a = a.clone();
            async move { a.recv(&mut [0; 16]).await }
        });
        become_deaf(&gone);
        while !waits.is_finished() {
            // It may be this call that gets the error.
            if a.send(b"hello").await.is_err() {
                a.send(b"hello").await.expect("it was told");
            }
            tussah::yield_now().await;
        }
        let error = waits.await.expect("no panic").expect_err("nobody is there");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn batches() {
    run(async {
        let (a, b) = pair();
        let c = socket();
        assert_eq!(a.send_batch(&[]).await.expect("nothing"), 0);
        assert_eq!(b.recv_batch(&mut []).await.expect("nothing"), 0);
        // More than one call takes.
        let data: Vec<_> = (0..40u8).map(|n| [n, n, n]).collect();
        let all: Vec<_> = data.iter().map(|data| (&data[..], None)).collect();
        assert_eq!(a.send_batch(&all).await.expect("sent"), 32);
        assert_eq!(a.send_batch(&all[32..]).await.expect("sent"), 8);
        let mut buffers = [[0; 2]; 50];
        let mut slots: Vec<_> = buffers
            .iter_mut()
            .map(|buffer| RecvSlot::new(buffer))
            .collect();
        let mut next = 0;
        while next < 40 {
            let count = b.recv_batch(&mut slots).await.expect("they came");
            assert!(count <= 32);
            for slot in &slots[..count] {
                assert_eq!(slot.data(), [next, next]);
                assert!(slot.is_truncated());
                assert_eq!(slot.peer(), Some(address(&a)));
                next += 1;
            }
            assert!(slots[count..].iter().all(|slot| slot.peer().is_none()));
        }
        // To different ones, by the same call.
        let d = socket();
        let to = [(&b"b"[..], Some(address(&b))), (b"d", Some(address(&d)))];
        assert_eq!(c.send_batch(&to).await.expect("sent"), 2);
        let mut byte = [0];
        d.recv(&mut byte).await.expect("it came");
        assert_eq!(&byte, b"d");
    });
}

/// A batch is returned before the error that follows it, which the next operation returns.
#[test]
fn an_error_in_a_batch_is_not_lost() {
    run(async {
        let (a, b) = pair();
        let to_a = address(&a);
        b.send(b"one").await.expect("sent");
        become_deaf(&b);
        a.send(b"x").await.expect("nothing is known yet");
        let mut buffers = [[0; 8]; 4];
        let mut slots = buffers.each_mut().map(|buffer| RecvSlot::new(buffer));
        let (mut came, mut refused) = (0, 0);
        while came + refused < 2 {
            match a.recv_batch(&mut slots).await {
                Ok(count) => came += count,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
                    refused += 1;
                }
            }
        }
        assert_eq!((came, refused), (1, 1), "at {to_a}");
    });
}

#[test]
fn options_and_groups() {
    run(async {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("there is a port");
        for on in [false, true] {
            socket.set_broadcast(on).expect("set");
            assert_eq!(socket.broadcast().expect("asked"), on);
            socket.set_multicast_loop(on).expect("set");
            assert_eq!(socket.multicast_loop().expect("asked"), on);
        }
        socket.set_ttl(7).expect("set");
        socket.set_multicast_ttl(9).expect("set");
        let hops = (socket.ttl(), socket.multicast_ttl());
        assert_eq!((hops.0.expect("asked"), hops.1.expect("asked")), (7, 9));
        socket.set_receive_buffer(20_000).expect("set");
        socket.set_send_buffer(20_000).expect("set");
        assert!(socket.receive_buffer().expect("asked") >= 20_000);
        assert!(socket.send_buffer().expect("asked") >= 20_000);
        let group = Ipv4Addr::new(239, 255, 77, 1);
        socket
            .set_multicast_if_v4(Ipv4Addr::LOCALHOST)
            .expect("it is there");
        socket
            .join_multicast_v4(group, Ipv4Addr::LOCALHOST)
            .expect("joined");
        let again = socket.join_multicast_v4(group, Ipv4Addr::LOCALHOST);
        assert_eq!(again.expect_err("twice").kind(), io::ErrorKind::AddrInUse);
        let port = address(&socket).port();
        socket.send_to(b"all", (group, port)).await.expect("sent");
        let mut buffer = [0; 8];
        assert_eq!(socket.recv(&mut buffer).await.expect("it came back"), 3);
        socket
            .leave_multicast_v4(group, Ipv4Addr::LOCALHOST)
            .expect("left");
        let error = socket.leave_multicast_v4(group, Ipv4Addr::LOCALHOST);
        assert!(error.is_err());
        assert!(socket.take_error().expect("asked").is_none());

        let Ok(six) = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)) else {
            return; // there is no IPv6 here
        };
        six.set_ttl(5).expect("set");
        six.set_multicast_ttl(6).expect("set");
        assert_eq!(six.ttl().expect("asked"), 5);
        assert_eq!(six.multicast_ttl().expect("asked"), 6);
        six.set_multicast_loop(false).expect("set");
        assert!(!six.multicast_loop().expect("asked"));
    });
}

#[test]
fn errors_name_the_address() {
    run(async {
        let socket = socket();
        let taken = address(&socket);
        let error = UdpSocket::bind(taken).expect_err("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().starts_with(&format!("bind to {taken}: ")));
        let error = socket.send(b"x").await.expect_err("there is no peer");
        assert!(
            error
                .to_string()
                .starts_with(&format!("send from {taken}: "))
        );
        assert!(socket.peer_addr().is_err());
        let error = UdpSocket::bind(&[] as &[SocketAddr]).expect_err("none");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let mut buffer = [0; 8];
        let error = socket.try_recv_from(&mut buffer).expect_err("nothing came");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        socket.try_send(b"x", Some(taken)).expect("there is room");
        assert_eq!(socket.recv(&mut buffer).await.expect("it came"), 1);
        let back = UdpSocket::from_std(socket.into_std()).expect("it works");
        assert_eq!(address(&back), taken);
    });
}

#[test]
fn a_cancelled_receive_has_received_nothing() {
    alone("udp::a_cancelled_receive_has_received_nothing", || {
        run_on_one(async {
            let (a, b) = pair();
            let (a, b) = (Arc::new(a), Arc::new(b));
            let before = descriptors_at_rest().await;
            for kind in 0..4 {
                for polls in cuts() {
                    let sends = spawn({
                        let a = a.clone();
                        async move { a.send(b"hello").await }
                    });
                    let mut buffer = [0; 16];
                    let ended = match kind {
                        0 => cut(b.recv(&mut buffer), polls).await.is_some(),
                        1 => cut(b.recv_from(&mut buffer), polls).await.is_some(),
                        2 => {
                            let mut slots = [RecvSlot::new(&mut buffer)];
                            cut(b.recv_batch(&mut slots), polls).await.is_some()
                        }
                        _ => cut(b.peek(&mut buffer), polls).await.is_some(),
                    };
                    if !ended || kind == 3 {
                        assert_eq!(b.recv(&mut buffer).await.expect("it is there"), 5);
                    }
                    assert_eq!(&buffer[..5], b"hello");
                    sends.await.expect("no panic").expect("sent");
                    let error = b.try_recv_from(&mut buffer).expect_err("nothing is left");
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    assert_eq!(descriptors(), before);
                    if ended {
                        break;
                    }
                }
            }
        });
    });
}
