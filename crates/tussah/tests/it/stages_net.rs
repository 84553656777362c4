//! Sockets as stages: what comes to a stage's queue, in which order, and what is bounded.

mod control;

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::process::{Resource, setrlimit};
use tussah::net::{
    OverflowPolicy, RateLimit, Shutdown, TcpListener, TcpStream, UnixListener, UnixStream,
};
use tussah::stage::control::{Admission, Arrival, Cadence, Controller, Owns, Sample, Settings};
use tussah::stage::host::ErasedHost;
use tussah::stage::net::{
    CloseReason, Connection, SocketEvent, SocketOptions, Sockets, WhenRejected,
};
use tussah::stage::{Batch, Handler, Network, Stage};
use tussah::sync::mpsc;
use tussah::{Color, OpError, spawn};

use crate::alone::{alone, descriptors, descriptors_at_rest, exhaust, until};
use crate::{by_hand, run, run_on_one};

/// Answers each packet with the same; refuses to see the events of a connection in another order
/// than promised.
#[derive(Default)]
struct Echo;

/// The reports of a connection so far.
#[derive(Default)]
struct Seen {
    events: AtomicU64,
    closed: AtomicU64,
}

impl Handler for Echo {
    type Event = SocketEvent;
    async fn handle(&self, batch: &mut Batch<SocketEvent>) {
        while let Some(event) = batch.next() {
            match event {
                SocketEvent::Accepted(connection) => {
                    let seen: &Seen = connection.data();
                    assert_eq!(seen.events.fetch_add(1, Ordering::Relaxed), 0);
                }
                SocketEvent::Packet(connection, bytes) => {
                    let seen: &Seen = connection.data();
                    assert!(seen.events.fetch_add(1, Ordering::Relaxed) > 0);
                    connection.try_send(bytes).expect("the peer reads");
                }
                SocketEvent::Closed(connection, closed) => {
                    assert!(matches!(closed, CloseReason::Finished), "{closed}");
                    let seen: &Seen = connection.data();
                    assert_eq!(seen.closed.fetch_add(1, Ordering::Relaxed), 0);
                }
                // It ends when this is dropped, since nobody else keeps a handle.
                SocketEvent::Ended(_) | SocketEvent::Stopped(_, None) => {}
                other => panic!("nothing else happens: {other:?}"),
            }
        }
    }
}

/// Passes on what it is sent.
struct Pass(mpsc::Sender<SocketEvent>);

impl Handler for Pass {
    type Event = SocketEvent;
    async fn handle(&self, batch: &mut Batch<SocketEvent>) {
        while let Some(event) = batch.next() {
            self.0.send(event).await.expect("the test receives");
        }
    }
}

/// A stage whose events the test receives, in order.
fn receiving_stage(
    network: &Network,
    queue: u64,
) -> (Stage<SocketEvent, ErasedHost>, mpsc::Receiver<SocketEvent>) {
    let (sender, receiver) = mpsc::channel(1000);
    let stage = network.stage("told").queue(queue).servlets(1).manual();
    stage
        .handler(|_| Ok(Pass(sender)))
        .expect("the name is free");
    (network.find("told").expect("it was just made"), receiver)
}

macro_rules! next {
    ($events:expr, $pattern:pat $(if $guard:expr)? => $value:expr) => {
        match $events.recv().await.expect("the stage is there") {
            $pattern $(if $guard)? => $value,
            other => panic!("expected {}, not {other:?}", stringify!($pattern)),
        }
    };
}

/// A connection to a stage, and the other end of it.
fn pair(sockets: &Sockets, to: &Stage<SocketEvent>) -> (Connection, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("made");
    let connection = sockets.adopt(ours, &to.sender());
    (connection.expect("there is room"), theirs)
}

/// Waits until nobody listens there. A child that another test is about to start has the listener a
/// little longer.
async fn refused(address: SocketAddr) {
    while TcpStream::connect(address).await.is_ok() {
        tussah::yield_now().await;
    }
}

#[test]
fn a_hundred_connections_echo_in_order() {
    run(async {
        let network = Network::new("echo");
        let echo = network.stage("echo").queue(50).keyed_by(SocketEvent::id);
        let echo = echo.handler(|_| Ok(Echo)).expect("the name is free");
        let options = SocketOptions::default()
            .when_full(OverflowPolicy::Drop)
            .outgoing_bytes_max(usize::MAX)
            .outgoing_buffers_max(usize::MAX);
        let sockets = Sockets::new(&network, "sockets")
            .expect("the name is free")
            .with(options);
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = sockets.listen(listener, &echo.sender())?;
        assert_eq!(server.local().tcp(), Some(address));
        let clients: Vec<_> = (0..100u64)
            .map(|client| {
                spawn(async move {
                    let stream = TcpStream::connect(address).await?;
                    let mut sent = Vec::new();
                    for number in 0..30u64 {
                        let words = [client, number].map(u64::to_le_bytes).concat();
                        let packet = words.repeat(1 + (client * number) as usize % 50);
                        stream.write_all(&packet).await?;
                        sent.extend(packet);
                    }
                    stream.shutdown(Shutdown::Write)?;
                    let mut echoed = vec![0; sent.len()];
                    stream.read_exact(&mut echoed).await?;
                    assert!(echoed == sent, "{client}");
                    assert_eq!(stream.read(&mut [0]).await?, 0);
                    io::Result::Ok(sent.len() as u64)
                })
            })
            .collect();
        let mut bytes = 0;
        for client in clients {
            bytes += client.await.expect("no panic")?;
        }
        sockets.close();
        sockets.settled().await;
        echo.drain().await;
        let stats = sockets.stats();
        assert_eq!((stats.servers, stats.connections), (0, 0));
        assert_eq!((stats.slow, stats.failed), (0, 0));
        assert_eq!(stats.listen.finished, 100);
        assert_eq!((stats.read.bytes, stats.read.queued), (bytes, 0));
        assert_eq!((stats.write.bytes, stats.write.queued), (bytes, 0));
        assert_eq!(stats.read.finished, stats.write.finished);
        // Accepted, Ended and Closed of each, and Stopped.
        assert_eq!(echo.stats().finished, stats.read.finished + 301);
        assert_eq!(echo.stats().panicked, 0);
        io::Result::Ok(())
    })
    .expect("the network works");
}

#[test]
fn the_life_of_a_connection() {
    run_on_one(async {
        let network = Network::new("life");
        let (stage, mut events) = receiving_stage(&network, 100);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let sockets = sockets.with(SocketOptions::default().completions(true).nodelay(true));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = sockets.listen(listener, &stage.sender())?;
        let asked = sockets.connect(address, &stage.sender())?;
        let mut both = Vec::new();
        for _ in 0..2 {
            match events.recv().await.expect("the stage is there") {
                SocketEvent::Accepted(accepted) => both.push(accepted),
                SocketEvent::Connected(connected) => {
                    assert_eq!((both.len(), connected.id()), (both.len(), asked));
                    both.insert(0, connected);
                }
                other => panic!("{other:?}"),
            }
        }
        let (connected, accepted) = (&both[0], &both[1]);
        assert_ne!(connected, accepted);
        assert_eq!(connected.peer().tcp(), Some(address));
        assert_eq!(accepted.peer().tcp(), connected.local().tcp());

        assert_eq!(connected.try_send("hello").expect("there is room"), 1);
        assert_eq!(
            connected
                .send(vec![1; 40_000])
                .await
                .expect("there is room"),
            2
        );
        let (mut received, mut sent) = (Vec::new(), 0);
        while received.len() < 40_005 || sent < 2 {
            match events.recv().await.expect("the stage is there") {
                SocketEvent::Packet(from, bytes) => {
                    assert_eq!(&from, accepted);
                    assert!((1..=16 * 1024).contains(&bytes.len()));
                    received.extend(bytes);
                }
                SocketEvent::Sent(by, number) => {
                    assert_eq!(&by, connected);
                    assert!(number > sent);
                    sent = number;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(received, [b"hello".as_slice(), &[1; 40_000]].concat());

        // One side ends; the other still answers.
        connected.close();
        connected.try_send("no more").expect_err("it was closed");
        // The order of the two events depends on which connection comes first.
        let mut finished = 0;
        let mut ended = false;
        while finished < 2 {
            match events.recv().await.expect("the stage is there") {
                SocketEvent::Ended(end) if &end == accepted => {
                    ended = true;
                    accepted.close();
                }
                SocketEvent::Closed(_, CloseReason::Finished) => finished += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(ended);
        server.close();
        next!(events, SocketEvent::Stopped(stopped, None) => assert_eq!(stopped, server));
        sockets.settled().await;
        assert!(events.is_empty());
        io::Result::Ok(())
    })
    .expect("the network works");
}

#[test]
fn a_connection_is_open_for_writing_as_long_as_somebody_has_it() {
    run_on_one(async {
        let network = Network::new("half open");
        let (stage, mut events) = receiving_stage(&network, 100);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let (connection, theirs) = pair(&sockets, &stage);
        theirs.write_all(b"question").await?;
        theirs.shutdown(Shutdown::Write)?;
        next!(events, SocketEvent::Packet(_, bytes) => assert_eq!(bytes, b"question"));
        next!(events, SocketEvent::Ended(ended) => assert_eq!(ended, connection));
        connection.try_send("late ").expect("it is open");
        let other = connection.clone();
        drop(connection);
        other.try_send("answer").expect("it is open");
        drop(other);
        let mut answer = [0; 11];
        theirs.read_exact(&mut answer).await?;
        assert_eq!((&answer, theirs.read(&mut [0]).await?), (b"late answer", 0));
        next!(events, SocketEvent::Closed(_, CloseReason::Finished) => ());
        io::Result::Ok(())
    })
    .expect("the network works");
}

#[test]
fn an_unreachable_peer_is_reported() {
    run_on_one(async {
        let network = Network::new("refused");
        let (stage, mut events) = receiving_stage(&network, 100);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let sockets = sockets.with(SocketOptions::default().connections_max(1));
        let asked = sockets.connect("127.0.0.1:1", &stage.sender())?;
        let error = sockets.connect("127.0.0.1:1", &stage.sender());
        let error = error.expect_err("there is one already");
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
        let error = next!(events, SocketEvent::NotConnected(id, error) if id == asked => error);
        let text = "connect to 127.0.0.1:1: Connection refused (os error 111)";
        assert_eq!(error.to_string(), text);
        sockets.settled().await;

        let asked = sockets.connect_unix("/no/such/socket", &stage.sender())?;
        let error = next!(events, SocketEvent::NotConnected(id, error) if id == asked => error);
        let error = OpError::of(&error).expect("the system said so");
        assert_eq!(
            (error.operation(), error.object()),
            ("connect to", "/no/such/socket")
        );
        sockets.settled().await;

        // An attempt that never ends is given up when all are closed.
        let never = std::future::pending::<io::Result<TcpStream>>();
        let asked = sockets.connect_by(never, &stage.sender())?;
        assert_eq!(sockets.stats().connect.in_service, 1);
        sockets.close();
        let error = next!(events, SocketEvent::NotConnected(id, error) if id == asked => error);
        assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
        sockets.settled().await;
        sockets
            .connect("127.0.0.1:1", &stage.sender())
            .expect_err("they were closed");
        let connect = sockets.stats().connect;
        assert_eq!(
            (connect.in_service, connect.finished, connect.failed),
            (0, 0, 3)
        );
        io::Result::Ok(())
    })
    .expect("the network works");
}

#[test]
fn unix_sockets_serve_too() {
    run(async {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("socket");
        let network = Network::new("unix");
        let echo = network.stage("echo").keyed_by(SocketEvent::id);
        let echo = echo.handler(|_| Ok(Echo)).expect("the name is free");
        let (stage, mut events) = receiving_stage(&network, 100);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let server = sockets.listen(UnixListener::bind(&path)?, &echo.sender())?;
        assert_eq!(server.local().to_string(), path.display().to_string());
        sockets.connect_unix(&path, &stage.sender())?;
        let client = next!(events, SocketEvent::Connected(client) => client);
        assert_eq!(client.peer().to_string(), path.display().to_string());
        client.try_send("hello").expect("there is room");
        next!(events, SocketEvent::Packet(_, bytes) => assert_eq!(bytes, b"hello"));
        client.close();
        next!(events, SocketEvent::Closed(_, CloseReason::Finished) => ());
        sockets.close();
        sockets.settled().await;
        io::Result::Ok(())
    })
    .expect("the network works");
}

/// Sends without end to a peer that reads nothing; says what the last was answered.
async fn flood(connection: &Connection) -> (u64, Option<ErrorKind>) {
    for sent in 0.. {
        if let Err(error) = connection.try_send(vec![0; 10_000]) {
            return (sent, error.closed.map(|error| error.kind()));
        }
    }
    unreachable!("it is bounded")
}

#[test]
fn a_slow_peer_is_closed() {
    run_on_one(async {
        let network = Network::new("slow");
        let (stage, mut events) = receiving_stage(&network, 100);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let sockets = sockets.with(SocketOptions::default().outgoing_bytes_max(100_000));
        let (connection, theirs) = pair(&sockets, &stage);
        let (sent, error) = flood(&connection).await;
        assert_eq!((sent, error), (10, Some(ErrorKind::TimedOut)));
        assert!(connection.outgoing().bytes <= 100_000);
        let slow = next!(events, SocketEvent::Closed(_, CloseReason::Slow(error)) => error);
        assert_eq!(slow.to_string(), "the peer is too slow: the queue is full");
        sockets.settled().await;
        let stats = sockets.stats();
        assert_eq!(
            (stats.slow, stats.write.refused, stats.write.failed),
            (1, 1, 10)
        );
        assert_eq!((stats.write.queued, stats.write.queued_bytes), (0, 0));
        assert_eq!(theirs.read(&mut [0]).await?, 0);
        io::Result::Ok(())
    })
    .expect("the network works");
}

#[test]
fn a_full_write_queue_drops_the_buffer_or_makes_the_sender_wait() {
    run_on_one(async {
        let network = Network::new("told");
        let (stage, mut events) = receiving_stage(&network, 100);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let options = SocketOptions::default().outgoing_buffers_max(5);
        let drops = sockets.with(options.clone().when_full(OverflowPolicy::Drop));
        let (connection, _theirs) = pair(&drops, &stage);
        assert_eq!(flood(&connection).await, (5, None));
        connection.break_off();
        next!(events, SocketEvent::Closed(_, CloseReason::BrokenOff) => ());

        let waits = sockets.with(options.when_full(OverflowPolicy::Wait));
        let (connection, theirs) = pair(&waits, &stage);
        let sender = spawn(async move {
            for number in 1..=100 {
                let sent = connection.send(vec![0; 10_000]).await;
                assert_eq!(sent.expect("it waits"), number);
            }
            connection.close();
        });
        let mut all = vec![0; 1_000_000];
        theirs.read_exact(&mut all).await?;
        sender.await.expect("no panic");
        drop(theirs);
        next!(events, SocketEvent::Closed(_, CloseReason::Finished) => ());
        io::Result::Ok(())
    })
    .expect("the network works");
}

#[test]
fn a_connection_to_a_peer_that_stops_reading_is_aborted() {
    let (clock, runtime) = by_hand();
    runtime.block_on_spawned(async move {
        let network = Network::new("rest");
        let (stage, mut events) = receiving_stage(&network, 100);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let options = SocketOptions::default().finish_max(Duration::from_secs(7));
        let sockets = sockets.with(options.outgoing_bytes_max(2_000_000));
        let (connection, _theirs) = pair(&sockets, &stage);
        connection.try_send(vec![0; 1_000_000]).expect("it fits");
        until("it is written", || connection.outgoing().bytes < 1_000_000).await;
        connection.close();
        tussah::yield_now().await;
        until("its time is up", || {
            clock.advance(Duration::from_secs(1));
            !events.is_empty()
        })
        .await;
        let late = next!(events, SocketEvent::Closed(_, CloseReason::Slow(error)) => error);
        assert_eq!(late.to_string(), "the rest was not written within 7s");
    });
}

#[test]
fn a_peer_gets_the_last_response_though_its_input_was_not_read() {
    let (clock, runtime) = by_hand();
    let test = async move {
        let network = Network::new("linger");
        let (stage, mut events) = receiving_stage(&network, 100);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        sockets.listen(listener, &stage.sender())?;
        let client = TcpStream::connect(address).await?;
        let server = next!(events, SocketEvent::Accepted(server) => server);
        server.try_send("no").expect("there is room");
        server.close();
        let mut answer = [0; 3];
        assert_eq!(client.read(&mut answer).await?, 2);
        // It goes on, and it is not reset for that.
        for number in 1..=10 {
            client.write_all(&[0; 10_000]).await?;
            until("it is dropped", || sockets.stats().read.refused >= number).await;
        }
        assert_eq!(client.read(&mut answer).await?, 0);
        assert!(events.is_empty(), "it waits for the client");
        until("its time is up", || {
            clock.advance(Duration::from_secs(1));
            !events.is_empty()
        })
        .await;
        next!(events, SocketEvent::Closed(_, CloseReason::Finished) => ());
        io::Result::Ok(())
    };
    runtime.block_on_spawned(test).expect("the network works");
}

#[test]
fn a_full_queue_stops_reading() {
    run_on_one(async {
        let network = Network::new("full");
        let (stage, mut events) = receiving_stage(&network, 2);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let (connection, theirs) = pair(&sockets, &stage);
        stage.pause();
        // A Unix socket says at once how much it takes, and nothing moves on by itself.
        let mut sent = 0;
        let mut fill = || {
            while let Ok(len) = theirs.try_write(&[7; 4096]) {
                sent += len;
            }
        };
        until("a packet waits", || {
            fill();
            sockets.stats().read.queued == 1
        })
        .await;
        fill();
        let error = theirs
            .try_write(&[7])
            .expect_err("the peer's buffer is full");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        for _ in 0..100 {
            tussah::yield_now().await;
            assert!(theirs.try_write(&[7]).is_err(), "nobody reads");
        }
        let read = sockets.stats().read;
        assert_eq!(
            (stage.stats().queued, read.finished, read.queued),
            (2, 2, 1)
        );
        assert!(read.queued_bytes <= 16 * 1024);
        // What goes the other way is written meanwhile.
        connection.try_send("hello").expect("there is room");
        let mut buffer = [0; 5];
        theirs.read_exact(&mut buffer).await?;
        assert_eq!(&buffer, b"hello");

        stage.resume();
        theirs.shutdown(Shutdown::Write)?;
        while sent > 0 {
            sent -= next!(events, SocketEvent::Packet(_, bytes) => bytes.len());
        }
        next!(events, SocketEvent::Ended(_) => ());
        io::Result::Ok(())
    })
    .expect("the network works");
}

/// Rejects the given number of events.
struct Gate(Arc<AtomicU64>);

impl Controller for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }
    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1_000_000)
    }
    fn sample(&mut self, _: &Sample<'_>, _: u64) -> Settings {
        Settings::default()
    }
    fn on_enqueue(&mut self, _: &Arrival) -> Admission {
        let turn_away = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        match turn_away {
            Ok(_) => Admission::Reject,
            Err(_) => Admission::Admit,
        }
    }
}

#[test]
fn rejected_reads_are_dropped_close_the_connection_or_wait_as_configured() {
    let (clock, runtime) = by_hand();
    runtime
        .block_on_spawned(async move {
            let network = Network::new("gate");
            let (sender, mut events) = mpsc::channel(100);
            let rejected = Arc::new(AtomicU64::new(0));
            let gate = Gate(Arc::clone(&rejected));
            let stage = network.stage("gate").manual().controller(gate).servlets(1);
            let stage = stage
                .handler(|_| Ok(Pass(sender)))
                .expect("the name is free");
            let stage = network.find(stage.name()).expect("it is there");
            let sockets = Sockets::new(&network, "sockets").expect("the name is free");
            let by = |when| sockets.with(SocketOptions::default().when_rejected(when));

            let (connection, theirs) = pair(&by(WhenRejected::Drop), &stage);
            rejected.store(1, Ordering::Relaxed);
            theirs.write_all(b"lost").await?;
            until("it is lost", || sockets.stats().read.refused == 1).await;
            theirs.write_all(b"found").await?;
            next!(events, SocketEvent::Packet(_, bytes) => assert_eq!(bytes, b"found"));
            connection.close();
            drop(theirs);
            next!(events, SocketEvent::Closed(_, CloseReason::Finished) => ());

            let (connection, theirs) = pair(&by(WhenRejected::Close), &stage);
            connection.try_send("before").expect("there is room");
            rejected.store(1, Ordering::Relaxed);
            theirs.write_all(b"too much").await?;
            assert_eq!(theirs.read(&mut [0; 10]).await?, 6);
            assert_eq!(theirs.read(&mut [0; 10]).await?, 0);
            drop(theirs);
            next!(events, SocketEvent::Closed(_, CloseReason::Rejected) => ());

            let (connection, theirs) = pair(&by(WhenRejected::Wait), &stage);
            rejected.store(3, Ordering::Relaxed);
            theirs.write_all(b"late").await?;
            until("it is let in", || {
                clock.advance(Duration::from_millis(1));
                !events.is_empty()
            })
            .await;
            next!(events, SocketEvent::Packet(_, bytes) => assert_eq!(bytes, b"late"));
            // The end has to arrive, however often it is rejected.
            rejected.store(20, Ordering::Relaxed);
            connection.close();
            drop(theirs);
            until("it is let in", || {
                clock.advance(Duration::from_millis(100));
                !events.is_empty()
            })
            .await;
            next!(events, SocketEvent::Closed(_, CloseReason::Finished) => ());

            // A connection that is rejected on arrival.
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let address = listener.local_addr()?;
            rejected.store(1, Ordering::Relaxed);
            sockets.listen(listener, &stage.sender())?;
            let client = TcpStream::connect(address).await?;
            assert_eq!(client.read(&mut [0]).await?, 0);
            let client = TcpStream::connect(address).await?;
            next!(events, SocketEvent::Accepted(_) => ());
            drop(client);
            let listen = sockets.stats().listen;
            assert_eq!((listen.finished, listen.refused), (1, 1));
            io::Result::Ok(())
        })
        .expect("the network works");
}

#[test]
fn the_input_rate_of_each_is_limited() {
    let (clock, runtime) = by_hand();
    runtime
        .block_on_spawned(async move {
            let network = Network::new("rate");
            let (stage, events) = receiving_stage(&network, 1000);
            let sockets = Sockets::new(&network, "sockets").expect("the name is free");
            let each = SocketOptions::default()
                .packet_max(100)
                .limit_each(RateLimit::reads(5));
            let each = sockets.with(each);
            let peers: Vec<_> = (0..4).map(|_| pair(&each, &stage)).collect();
            for (_, theirs) in &peers {
                theirs.write_all(&[1; 10_000]).await?;
            }
            let packets = || sockets.stats().read.finished;
            // At first what a window of a second allows, and the one that is too much.
            until("all are delayed", || sockets.stats().read.delayed == 4).await;
            assert_eq!(packets(), 24);
            for second in 1..=3u64 {
                for _ in 0..100 {
                    clock.advance(Duration::from_millis(10));
                    tussah::yield_now().await;
                }
                until("they are read", || packets() >= 20 + 20 * second).await;
                assert!(
                    packets() <= 20 + 20 * second + 4,
                    "{} in {second} s",
                    packets()
                );
            }
            drop(events);
            io::Result::Ok(())
        })
        .expect("the network works");
}

#[test]
fn a_server_without_descriptors_reports_it_and_goes_on() {
    let name = "stages_net::a_server_without_descriptors_reports_it_and_goes_on";
    alone(name, || {
        run_on_one(async {
            let network = Network::new("exhausted");
            let (stage, mut events) = receiving_stage(&network, 100);
            let sockets = Sockets::new(&network, "sockets").expect("the name is free");
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let address = listener.local_addr()?;
            sockets.listen(listener, &stage.sender())?;
            let mut clients = Vec::new();
            for _ in 0..3 {
                let client = std::net::TcpStream::connect(address)?;
                next!(events, SocketEvent::Accepted(_) => clients.push(client));
            }
            let late = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
            let (limit, free) = exhaust();
            late.connect(&address.into())?;
            let error = next!(events, SocketEvent::AcceptFailed(_, error) => error);
            let text = format!("accept at {address}: Too many open files (os error 24)");
            assert_eq!(error.to_string(), text);
            // Connected clients are served.
            clients[0].write_all(b"ping")?;
            next!(events, SocketEvent::Packet(_, bytes) => assert_eq!(bytes, b"ping"));
            drop(free);
            next!(events, SocketEvent::Accepted(_) => ());
            setrlimit(Resource::Nofile, limit)?;
            drop((clients, late));
            io::Result::Ok(())
        })
        .expect("the network works");
    });
}

#[test]
fn no_more_connections_than_there_may_be() {
    run_on_one(async {
        let network = Network::new("few");
        let (stage, mut events) = receiving_stage(&network, 100);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let sockets = sockets.with(SocketOptions::default().connections_max(2));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = sockets.listen(listener, &stage.sender())?;
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(TcpStream::connect(address).await?);
        }
        let first = next!(events, SocketEvent::Accepted(connection) => connection);
        next!(events, SocketEvent::Accepted(_) => ());
        crate::idle().await;
        assert!(events.is_empty(), "the third waits");
        first.break_off();
        next!(events, SocketEvent::Closed(closed, CloseReason::BrokenOff) => assert_eq!(closed, first));
        next!(events, SocketEvent::Accepted(_) => ());
        // A server that waits for a place can be closed.
        clients.push(TcpStream::connect(address).await?);
        server.close();
        next!(events, SocketEvent::Stopped(_, None) => ());
        refused(address).await;
        assert_eq!(sockets.stats().connections, 2);
        io::Result::Ok(())
    })
    .expect("the network works");
}

#[test]
fn closed_connections_leave_nothing() {
    alone("stages_net::closed_connections_leave_nothing", || {
        run_on_one(async {
            let network = Network::new("nothing");
            let (stage, mut events) = receiving_stage(&network, 100);
            let sockets = Sockets::new(&network, "sockets").expect("the name is free");
            let before = descriptors_at_rest().await;
            let mut data = Vec::<Weak<()>>::new();
            for round in 0..10 {
                let (connection, theirs) = pair(&sockets, &stage);
                let kept: &std::sync::Mutex<Arc<()>> = connection.data();
                data.push(Arc::downgrade(&kept.lock().expect("nobody panics")));
                theirs.write_all(b"x").await?;
                next!(events, SocketEvent::Packet(_, _) => ());
                match round % 3 {
                    0 => connection.close(),
                    1 => connection.break_off(),
                    _ => {}
                }
                drop((theirs, connection));
                loop {
                    match events.recv().await.expect("the stage is there") {
                        SocketEvent::Ended(_) => {}
                        SocketEvent::Closed(..) => break,
                        other => panic!("{other:?}"),
                    }
                }
            }
            sockets.settled().await;
            assert!(events.is_empty(), "each closes once");
            assert_eq!(sockets.stats().connections, 0);
            // The last event may just be on its way out of the stage.
            stage.settled().await;
            until("all are dropped", || {
                data.iter().all(|data| data.upgrade().is_none())
            })
            .await;
            assert_eq!(descriptors(), before);
            io::Result::Ok(())
        })
        .expect("the network works");
    });
}

#[test]
fn a_stage_that_is_closed_ends_its_sockets() {
    run(async {
        let network = Network::new("closed");
        let (stage, mut events) = receiving_stage(&network, 100);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        sockets.listen(listener, &stage.sender())?;
        let client = TcpStream::connect(address).await?;
        let server = next!(events, SocketEvent::Accepted(server) => server);
        stage.drain().await;
        // What was sent before is written; then there is nobody to tell.
        server.try_send("goodbye").expect("there is room");
        client.write_all(b"hello?").await?;
        let mut buffer = [0; 7];
        client.read_exact(&mut buffer).await?;
        assert_eq!(&buffer, b"goodbye");
        drop(client);
        let _ = TcpStream::connect(address).await;
        sockets.settled().await;
        refused(address).await;
        io::Result::Ok(())
    })
    .expect("the network works");
}

#[test]
fn a_connection_whose_accept_event_is_lost_is_aborted() {
    struct Panics;
    impl Handler for Panics {
        type Event = SocketEvent;
        async fn handle(&self, batch: &mut Batch<SocketEvent>) {
            while let Some(event) = batch.next() {
                assert!(!matches!(event, SocketEvent::Accepted(_)), "on purpose");
                batch.settle();
            }
        }
    }
    run(async {
        let network = Network::new("lost");
        let stage = network.stage("panics").handler(|_| Ok(Panics));
        let stage = stage.expect("the name is free");
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = sockets.listen(listener, &stage.sender())?;
        let client = TcpStream::connect(address).await?;
        assert!(matches!(client.read(&mut [0]).await, Ok(0) | Err(_)));
        server.close();
        sockets.settled().await;
        io::Result::Ok(())
    })
    .expect("the network works");
}

#[test]
fn connections_live_in_colors_and_events_go_to_stages_of_other_types() {
    enum Mine {
        Socket(SocketEvent),
        Other,
    }
    impl From<SocketEvent> for Mine {
        fn from(event: SocketEvent) -> Self {
            Self::Socket(event)
        }
    }
    struct Count(Arc<AtomicU64>);
    impl Handler for Count {
        type Event = Mine;
        async fn handle(&self, batch: &mut Batch<Mine>) {
            while let Some(event) = batch.next() {
                if let Mine::Socket(SocketEvent::Packet(_, bytes)) = event {
                    self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                }
            }
        }
    }
    run(async {
        let network = Network::new("colors");
        let (accepts, mut accepted) = receiving_stage(&network, 100);
        let bytes = Arc::new(AtomicU64::new(0));
        let count = Count(Arc::clone(&bytes));
        let packets = network.stage("packets").handler(|_| Ok(count));
        let packets = packets.expect("the name is free");
        packets
            .sender()
            .try_send(Mine::Other)
            .expect("there is room");
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let sockets = sockets.with(SocketOptions::default().color(|id| Color(id % 4)));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        sockets.listen_apart(listener, &accepts.sender(), &packets.sender())?;
        for _ in 0..20 {
            let client = TcpStream::connect(address).await?;
            client.write_all(b"hello").await?;
            next!(accepted, SocketEvent::Accepted(_) => ());
        }
        until("all has come", || bytes.load(Ordering::Relaxed) == 100).await;
        sockets.close();
        next!(accepted, SocketEvent::Stopped(_, None) => ());
        sockets.settled().await;
        io::Result::Ok(())
    })
    .expect("the network works");
}

#[test]
fn a_runtime_may_end_with_connections_open() {
    let mut peer = run(async {
        let network = Network::new("end");
        let (stage, mut events) = receiving_stage(&network, 100);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        sockets.listen(listener, &stage.sender())?;
        let peer = std::net::TcpStream::connect(address)?;
        next!(events, SocketEvent::Accepted(_) => ());
        io::Result::Ok(peer)
    })
    .expect("the network works");
    assert_eq!(peer.read(&mut [0]).expect("the end comes"), 0);
}

#[test]
fn the_runtime_is_shown_whole_or_not_at_all() {
    run(async {
        let network = Network::new("n");
        let taken = network.stage::<u32>("runtime.blocking").declare();
        let taken = taken.expect("the name is free").stage();
        network.show_runtime().expect_err("a name is taken");
        assert_eq!(network.names().len(), 1);
        taken.destroy(Duration::ZERO).await;
        network.show_runtime().expect("the names are free");
        network.show_runtime().expect_err("the names are taken");
        assert_eq!(network.names().len(), 3);
    });
}

/// A server that waits for its stage, be it for room or for a controller, sees that it is closed.
#[test]
fn a_server_is_closed_while_its_stage_takes_nothing() {
    run_on_one(async {
        for rejects in [false, true] {
            let network = Network::new("n");
            let (sender, mut events) = mpsc::channel(10);
            let rejected = Arc::new(AtomicU64::new(if rejects { u64::MAX } else { 0 }));
            let stage = network
                .stage("stage")
                .queue(1)
                .controller(Gate(Arc::clone(&rejected)));
            let stage = stage
                .handler(|_| Ok(Pass(sender)))
                .expect("the name is free");
            stage.pause();
            if !rejects {
                stage
                    .sender()
                    .try_send(SocketEvent::NotConnected(0, ErrorKind::Other.into()))
                    .expect("there is room");
            }
            let sockets = Sockets::new(&network, "sockets").expect("the name is free");
            let options = SocketOptions::default().when_rejected(WhenRejected::Wait);
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let address = listener.local_addr()?;
            let server = sockets.with(options).listen(listener, &stage.sender())?;
            let client = TcpStream::connect(address).await?;
            until("a connection waits", || sockets.stats().listen.queued == 1).await;
            server.close();
            until("it no longer does", || sockets.stats().listen.queued == 0).await;
            assert!(matches!(client.read(&mut [0]).await, Ok(0) | Err(_)));
            refused(address).await;
            rejected.store(0, Ordering::Relaxed);
            stage.resume();
            if !rejects {
                next!(events, SocketEvent::NotConnected(..) => ());
            }
            next!(events, SocketEvent::Stopped(_, None) => ());
            sockets.settled().await;
        }
        io::Result::Ok(())
    })
    .expect("the network works");
}

/// Of another network they know neither the names nor the numbers, and so nothing is shown.
#[test]
fn sockets_send_events_to_a_stage_of_another_network() {
    run(async {
        let [here, there] = ["here", "there"].map(Network::new);
        let sockets = Sockets::new(&here, "told").expect("the names are free");
        let (sender, mut events) = mpsc::channel(10);
        // Here this is the name of the queue that tells it.
        let stage = there.stage("told.connect").handler(|_| Ok(Pass(sender)));
        let stage = stage.expect("the name is free");
        sockets.connect_unix("/nowhere", &stage.sender())?;
        next!(events, SocketEvent::NotConnected(..) => ());
        assert!(here.edges().is_empty());
        io::Result::Ok(())
    })
    .expect("the network works");
}

#[test]
fn the_queues_of_sockets_are_shown_as_stages() {
    run_on_one(async {
        let network = Network::new("shown");
        let (stage, mut events) = receiving_stage(&network, 2);
        let sockets = Sockets::new(&network, "web").expect("the name is free");
        Sockets::new(&network, "web").expect_err("the name is taken");
        network.show_runtime().expect("the names are free");
        let names = network.names();
        let expected = [
            "told",
            "web.listen",
            "web.connect",
            "web.read",
            "web.write",
            "runtime.workers",
            "runtime.files",
            "runtime.blocking",
        ];
        assert!(names.iter().map(|name| &**name).eq(expected), "{names:?}");
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let server = sockets.listen(listener, &stage.sender())?;
        let (connection, theirs) = pair(&sockets, &stage);
        let edges: Vec<_> = network.edges();
        let from: Vec<_> = edges.iter().map(|edge| &*edge.from).collect();
        assert_eq!(from, ["web.listen", "web.read"]);
        assert!(network.graph().to_dot().contains("web.read"));

        stage.pause();
        connection
            .try_send(vec![0; 1_000_000])
            .expect("there is room");
        for number in 1..=3 {
            theirs.write_all(b"hello").await?;
            until("it is read", || {
                let read = sockets.stats().read;
                read.finished + read.queued == number
            })
            .await;
        }
        let of = |name: &str| {
            let all = network.stats();
            let mut all = all.into_iter().filter(|stats| &*stats.name == name);
            all.next().expect("it is shown")
        };
        let read = of("web.read");
        assert_eq!((read.finished, read.queued, read.queue_max), (2, 1, 1));
        assert_eq!((read.arrived, read.queue_bytes), (3, 5));
        let write = of("web.write");
        assert_eq!((write.queued, write.queue_max, write.arrived), (1, 1024, 1));
        assert!(write.queue_bytes > 0);
        assert_eq!(of("web.listen").queue_max, 1);
        stage.resume();
        connection.break_off();
        server.close();
        for _ in 0..5 {
            events.recv().await.expect("three packets and two ends");
        }
        sockets.settled().await;
        drop(sockets);
        until("they are gone", || network.names().len() == 4).await;
        io::Result::Ok(())
    })
    .expect("the network works");
}
