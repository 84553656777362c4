//! Lookups that are given up, at every point where they wait: nothing stays behind.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;

use tussah::net::TcpStream;

use super::server::{Reply, Server, a, aaaa, bytes, zone};
use super::{builder, sockets_to};
use crate::{by_hand, runtime};

/// Polls a future N times, each time after it was woken, and then drops it. Returns `None` if the
/// future has not ended by then. The server of [`roundabout`] answers nothing during a poll.
async fn polled<F: Future>(times: usize, server: &Mutex<()>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut count = 0;
    poll_fn(|context| {
        if count == times {
            return Poll::Ready(None);
        }
        count += 1;
        let _silent = server.lock().expect("no panic");
        match future.as_mut().poll(context) {
            Poll::Pending if count == times => Poll::Ready(None),
            other => other.map(Some),
        }
    })
    .await
}

/// Starts a server that reports by UDP that its answer is too long, and then sends it by TCP, so
/// that a lookup takes all of its steps. The server is silent while a test holds the lock.
fn roundabout() -> (Server, Arc<Mutex<()>>) {
    let silent = Arc::new(Mutex::new(()));
    let lock = silent.clone();
    let server = Server::new(move |asked| {
        drop(lock.lock().expect("no panic"));
        let ip = "2001:db8::1".parse().expect("an address");
        let mut message = zone(
            asked,
            &[a("host.test.", [127, 0, 0, 1]), aaaa("host.test.", ip)],
        );
        message.metadata.truncation = !asked.by_tcp;
        vec![Reply::Bytes(bytes(&message))]
    });
    (server, silent)
}

#[test]
fn a_lookup_that_is_dropped_leaves_nothing_behind() {
    let (server, silent) = roundabout();
    let port = server.address.port();
    let mut most = 0;
    for times in 1.. {
        let runtime = runtime(1);
        let done = runtime.block_on(async {
            let resolver = builder([&server]).build();
            // It has read its files.
            resolver.lookup_ip("127.0.0.1").await.expect("it is one");
            let mut lookup = Some(Box::pin(resolver.lookup_ip("host.test")));
            let lookup_ref = lookup.as_mut().expect("it is there");
            let done = polled(times, &silent, lookup_ref).await.is_some();
            most = most.max(sockets_to(port));
            drop(lookup);
            assert_eq!(sockets_to(port), 0, "after {times} polls");
            // What is left of it does no harm to the next one.
            let found = resolver.lookup_ip("host.test").await.expect("it is there");
            assert_eq!(found.as_slice().len(), 2);
            done
        });
        if done {
            assert!(times > 1, "it has to wait");
            break;
        }
    }
    assert_eq!(most, 2, "it asks two questions at a time");
}

#[test]
fn a_lookup_from_elsewhere_that_is_dropped_ends() {
    let server = Server::new(|_| Vec::new());
    let asked = server.tell();
    let (_clock, runtime) = by_hand();
    let resolver = builder([&server]).build_in(&runtime);
    futures_lite::future::block_on(async {
        let mut lookup = Box::pin(resolver.lookup_a("host.test"));
        assert!(futures_lite::future::poll_once(&mut lookup).await.is_none());
        asked.recv().expect("it goes on in its runtime");
        assert_eq!(sockets_to(server.address.port()), 1);
        drop(lookup);
    });
    // It is aborted by an event there.
    while sockets_to(server.address.port()) > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_cancelled_lookup_does_not_take_the_answer_from_others() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let server = Server::new(move |asked| {
        let released = released.lock().expect("no panic").recv();
        released.expect("the test lets it answer");
        let records = [a("host.test.", [192, 0, 2, 1])];
        vec![Reply::Bytes(bytes(&zone(asked, &records)))]
    });
    let asked = server.tell();
    let (_clock, runtime) = by_hand();
    runtime.block_on(async {
        let resolver = builder([&server]).build();
        resolver.lookup_a("127.0.0.1").await.expect("it is one");
        let mut first = Box::pin(resolver.lookup_a("host.test"));
        assert!(futures_lite::future::poll_once(&mut first).await.is_none());
        let mut second = Box::pin(resolver.lookup_a("host.test"));
        assert!(futures_lite::future::poll_once(&mut second).await.is_none());
        asked.recv().expect("it was sent");
        drop(first);
        release.send(()).expect("the server waits");
        second.await.expect("it is there");
    });
    assert_eq!(server.count(), 1);
}

#[test]
fn connecting_that_is_dropped_leaves_nothing_behind() {
    let (server, silent) = roundabout();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    for times in 1.. {
        let done = runtime(1).block_on(async {
            let resolver = builder([&server]).build();
            let options = TcpStream::builder().resolver(&resolver);
            let mut connect = Box::pin(options.connect(("host.test", port)));
            let done = polled(times, &silent, &mut connect).await;
            drop(connect);
            assert_eq!(sockets_to(server.address.port()), 0, "after {times} polls");
            let expected = usize::from(done.is_some());
            assert_eq!(sockets_to(port), expected, "after {times} polls");
            done.map(|stream| stream.expect("one address is right"))
        });
        if done.is_some() {
            return;
        }
    }
}
