//! Recordings of stages over time.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tussah::net::UnixStream;
use tussah::stage::net::{SocketEvent, Sockets};
use tussah::stage::observe::COLUMNS;
use tussah::stage::{AnyCall, Batch, Handler, Network};
use tussah::sync::Semaphore;

use crate::{by_hand, runtime};

/// Handles an event for each permit.
struct Gated(Arc<Semaphore>);

impl Handler for Gated {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        while batch.next().is_some() {
            self.0.acquire().await.forget();
        }
    }
}

/// Passes on each thing that is written.
struct Rows(mpsc::Sender<String>);

impl Write for Rows {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        self.0.send(text).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The fields of a row, by the names of their columns.
fn field(row: &str, name: &str) -> String {
    let at = COLUMNS.split(',').position(|column| column == name);
    let fields: Vec<_> = row.trim_end().split(',').collect();
    assert_eq!(fields.len(), COLUMNS.split(',').count(), "{row}");
    fields[at.expect("a column")].to_owned()
}

#[test]
fn a_row_comes_after_each_interval() {
    let (clock, runtime) = by_hand();
    let network = Network::on(runtime.handle(), "n");
    let permits = Arc::new(Semaphore::new(0));
    let gated = Gated(Arc::clone(&permits));
    let stage = network
        .stage("gated")
        .manual()
        .servlets(1)
        .batch(1)
        .queue(5)
        .handler(|_| Ok(gated))
        .expect("a stage");
    let (sender, rows) = mpsc::channel();
    let interval = Duration::from_millis(100);
    let recording = network.record(interval, Rows(sender));
    let next = || rows.recv().expect("the recording goes on");
    assert_eq!(next(), format!("{COLUMNS}\n"));

    let send = |event| stage.sender().try_send(event).is_ok();
    let taken = (0..10).filter(|event| send(*event)).count() as u64;
    clock.advance(interval);
    let row = next();
    let check = |row: &str, expected: &[(&str, &str)]| {
        for (name, value) in expected {
            assert_eq!(field(row, name), *value, "{name} in {row}");
        }
    };
    let (admitted, refused) = (taken.to_string(), (10 - taken).to_string());
    check(
        &row,
        &[
            ("time_s", "0.100000"),
            ("stage", "gated"),
            ("arrived", "10"),
            ("admitted", &admitted),
            ("refused", &refused),
            ("finished", "0"),
            ("threshold", "5"),
            ("batch", "1"),
            ("response_p99_ns", "0"),
        ],
    );

    permits.add_permits(10);
    runtime.block_on(stage.settled());
    clock.advance(interval);
    let row = next();
    check(
        &row,
        &[
            ("time_s", "0.200000"),
            ("queued", "0"),
            ("queue_bytes", "0"),
            ("servlets_busy", "0"),
            ("arrived", "0"),
            ("finished", &admitted),
        ],
    );
    // All were let in at once, and ended after 100 ms of the clock's.
    let p50_ns: u64 = field(&row, "response_p50_ns").parse().expect("a number");
    assert!((100_000_000..107_000_000).contains(&p50_ns), "{p50_ns}");

    let stopped = runtime.block_on(recording.stop());
    assert!(stopped.is_ok());
    check(&next(), &[("time_s", "0.200000"), ("finished", "0")]);
    // The writer came back, so there are no more.
    drop(stopped);
    assert!(rows.recv().is_err());
}

/// Calls another stage with what it is sent.
struct Calls(AnyCall<u64>);

impl Handler for Calls {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        self.0.call(batch).await.expect("it is open");
    }
}

#[test]
fn the_calls_of_a_stage_are_in_its_rows() {
    let (clock, runtime) = by_hand();
    let network = Network::on(runtime.handle(), "n");
    let gated = Gated(Arc::new(Semaphore::new(100)));
    let called = network.stage("called").handler(|_| Ok(gated));
    called.expect("a stage");
    let stage = network
        .stage("calls")
        .handler(|edges| Ok(Calls(edges.named("called")?.call()?)))
        .expect("a stage");
    let (sender, rows) = mpsc::channel();
    let interval = Duration::from_millis(100);
    let recording = network.record(interval, Rows(sender));
    let next = || rows.recv().expect("the recording goes on");
    next();
    for sent in [7, 0, 3] {
        for event in 0..sent {
            stage.sender().try_send(event).expect("there is room");
        }
        runtime.block_on(stage.settled());
        clock.advance(interval);
        let rows = next();
        let (called, calls) = rows.split_once('\n').expect("two rows");
        let fields = ["called", "finished"];
        assert_eq!(
            fields.map(|name| field(called, name)),
            [sent, 0].map(|n| n.to_string())
        );
        assert_eq!(
            fields.map(|name| field(calls, name)),
            [0, sent].map(|n| n.to_string())
        );
    }
    drop(recording);
}

#[test]
fn a_recording_ends_when_it_is_dropped() {
    let (_clock, runtime) = by_hand();
    let network = Network::on(runtime.handle(), "n");
    let (sender, rows) = mpsc::channel();
    let recording = network.record(Duration::from_secs(1), Rows(sender));
    assert!(rows.recv().is_ok());
    drop(recording);
    assert!(rows.recv().is_err(), "the writer is dropped");
}

#[test]
fn a_recording_ends_with_its_network() {
    let (clock, runtime) = by_hand();
    let network = Network::on(runtime.handle(), "n");
    let (sender, rows) = mpsc::channel();
    let recording = network.record(Duration::from_secs(1), Rows(sender));
    assert!(rows.recv().is_ok());
    drop(network);
    clock.advance(Duration::from_secs(1));
    assert!(runtime.block_on(recording.stop()).is_ok());
}

struct Broken;

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("the disk is full"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn errors_of_the_writer_are_passed_on() {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "n");
    let recording = network.record(Duration::from_secs(1), Broken);
    let Err(error) = runtime.block_on(recording.stop()) else {
        panic!("it was not written")
    };
    assert_eq!(error.to_string(), "the disk is full");
}

/// Does nothing.
struct Idle;

impl Handler for Idle {
    type Event = SocketEvent;
    async fn handle(&self, batch: &mut Batch<SocketEvent>) {
        batch.drain().for_each(drop);
    }
}

#[test]
fn rows_are_written_when_the_number_of_entries_shrinks() {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("n");
        let stage = network.stage("told").queue(1).handler(|_| Ok(Idle));
        let stage = stage.expect("the name is free");
        stage.pause();
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let (ours, theirs) = UnixStream::pair().expect("made");
        let _connection = sockets.adopt(ours, &stage.sender()).expect("there is room");
        // One packet is in the queue then, and the next waits for room.
        while sockets.stats().read.queued == 0 {
            drop(theirs.try_write(&[7]));
            tussah::yield_now().await;
        }
        let (sender, rows) = mpsc::channel();
        let recording = network.record(Duration::from_secs(1), Rows(sender));
        let next = async || {
            loop {
                match rows.try_recv() {
                    Ok(text) => return text,
                    Err(mpsc::TryRecvError::Empty) => tussah::yield_now().await,
                    Err(error) => panic!("the recording goes on: {error}"),
                }
            }
        };
        assert!(next().await.starts_with(COLUMNS));
        let arrived = async || {
            clock.advance(Duration::from_secs(1));
            let text = next().await;
            let row = text.lines().find(|row| row.contains(",sockets.read,"));
            field(row.expect("it is shown"), "arrived")
        };
        assert_eq!(arrived().await, "2");
        stage.destroy(Duration::ZERO).await;
        while sockets.stats().read.queued > 0 {
            tussah::yield_now().await;
        }
        assert_eq!(arrived().await, "0");
        drop(recording);
    });
}
