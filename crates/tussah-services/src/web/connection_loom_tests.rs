//! Models of a connection's thread against who has its exchange, and who cuts it: of `connection.rs` as it is, with a stream and exchanges that are small.

#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "it is taken twice: beside these modules it is a model, which uses less of it"
)]
#[path = "connection.rs"]
mod connection;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use loom::future::block_on;
use loom::thread::{JoinHandle, spawn};

use connection::{Connection, Event};
use exchange::Exchange;
use stream::Stream;

mod dynamic {
    pub(crate) const NONE: u8 = 0;
}

mod sync {
    use loom::sync::atomic::AtomicBool;
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Mutex as Lock, MutexGuard, atomic};

    /// Its stores are swaps: loom lets a swap read what a store has overwritten since (github.com/tokio-rs/loom/issues/254).
    pub(crate) struct AtomicU8(atomic::AtomicU8);

    impl AtomicU8 {
        pub(crate) fn new(value: u8) -> Self {
            Self(atomic::AtomicU8::new(value))
        }

        pub(crate) fn load(&self, order: Ordering) -> u8 {
            self.0.load(order)
        }

        pub(crate) fn store(&self, value: u8, order: Ordering) {
            self.0.swap(value, order);
        }

        pub(crate) fn swap(&self, value: u8, order: Ordering) -> u8 {
            self.0.swap(value, order)
        }

        pub(crate) fn compare_exchange(
            &self,
            current: u8,
            new: u8,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u8, u8> {
            self.0.compare_exchange(current, new, success, failure)
        }
    }

    pub(crate) struct Mutex<T>(Lock<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(Lock::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a model does not go on after a panic")
        }
    }

    /// Who does not have to see that it is set may find that it is not.
    pub(crate) struct OnceLock<T> {
        is_set: AtomicBool,
        value: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self {
                is_set: AtomicBool::new(false),
                value: std::sync::OnceLock::new(),
            }
        }

        pub(crate) fn get(&self) -> Option<&T> {
            let is_set = self.is_set.load(Ordering::Acquire);
            self.value.get().filter(|_| is_set)
        }

        /// For one thread.
        pub(crate) fn get_or_init(&self, f: impl FnOnce() -> T) -> &T {
            let value = self.value.get_or_init(f);
            self.is_set.store(true, Ordering::Release);
            value
        }
    }
}

mod exchange {
    use std::sync::Arc;

    use loom::alloc::Track;

    use super::connection::Connection;

    pub(crate) struct Exchange {
        pub(crate) connection: Option<Arc<Connection>>,
        pub(crate) input: Input,
        pub(crate) is_last: bool,
        /// Fails if it is leaked.
        _track: Track<()>,
    }

    #[derive(Default)]
    pub(crate) struct Input(usize);

    impl Input {
        pub(crate) fn room(&mut self) -> &mut [u8] {
            &mut []
        }

        pub(crate) fn add(&mut self, len: usize) {
            self.0 += len;
        }
    }

    impl Exchange {
        pub(crate) fn take() -> Box<Self> {
            Box::new(Self {
                connection: None,
                input: Input::default(),
                is_last: false,
                _track: Track::new(()),
            })
        }

        #[expect(clippy::boxed_local, reason = "it comes in one")]
        pub(crate) fn put(this: Box<Self>) {
            assert!(this.connection.is_none(), "its connection has been told");
        }

        /// Ends it in this second.
        pub(crate) fn finish(mut self: Box<Self>, now_s: u64) {
            let connection = self.connection.take().expect("it is on its way");
            Self::put(self);
            connection.release(now_s);
        }

        pub(crate) fn give_back(mut self: Box<Self>) {
            let connection = self.connection.take().expect("it is on its way");
            connection.hand(self);
        }
    }

    impl Drop for Exchange {
        fn drop(&mut self) {
            if let Some(connection) = self.connection.take() {
                connection.lose();
            }
        }
    }
}

mod stream {
    use std::io;
    use std::task::{Context, Poll, Waker, ready};

    use loom::alloc::Track;
    use loom::cell::UnsafeCell;

    use super::sync::Mutex;

    /// A request is a byte.
    pub(crate) struct Stream {
        wire: Mutex<Wire>,
        written: UnsafeCell<()>,
        /// Fails if it is leaked, with its connection.
        _track: Track<()>,
    }

    #[derive(Default)]
    struct Wire {
        bytes: usize,
        is_cut: bool,
        reader: Option<Waker>,
    }

    impl Stream {
        pub(crate) fn new() -> Self {
            Self {
                wire: Mutex::new(Wire::default()),
                written: UnsafeCell::new(()),
                _track: Track::new(()),
            }
        }

        pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
            let mut wire = self.wire.lock();
            if wire.bytes > 0 || wire.is_cut {
                return Poll::Ready(());
            }
            wire.reader = Some(cx.waker().clone());
            Poll::Pending
        }

        pub(crate) fn poll_read(
            &self,
            cx: &mut Context<'_>,
            _: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            ready!(self.poll_readable(cx));
            let mut wire = self.wire.lock();
            if wire.is_cut {
                return Poll::Ready(Ok(0));
            }
            wire.bytes -= 1;
            Poll::Ready(Ok(1))
        }

        pub(crate) fn has_come(&self) -> bool {
            self.wire.lock().bytes > 0
        }

        /// The client's part: sends a request.
        pub(crate) fn ask(&self) {
            self.change(|wire| wire.bytes += 1);
        }

        pub(crate) fn cut(&self) {
            self.change(|wire| wire.is_cut = true);
        }

        fn change(&self, f: impl FnOnce(&mut Wire)) {
            let mut wire = self.wire.lock();
            f(&mut wire);
            if let Some(reader) = wire.reader.take() {
                reader.wake();
            }
        }

        /// For who may write: fails if somebody else writes at the same time.
        pub(crate) fn write(&self) {
            self.written.with_mut(|_| ());
        }
    }
}

/// When an exchange is finished.
const ANSWERED_S: u64 = 7;

/// What becomes of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Finished,
    Handed,
    Lost,
}

impl End {
    fn of(self, exchange: Box<Exchange>) {
        match self {
            Self::Finished => exchange.finish(ANSWERED_S),
            Self::Handed => exchange.give_back(),
            Self::Lost => drop(exchange),
        }
    }
}

/// One model for each way to end.
fn model(f: impl Fn(End) + Copy + Send + Sync + 'static) {
    for end in [End::Finished, End::Handed, End::Lost] {
        // The whole space takes minutes.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = model.preemption_bound.or(Some(2));
        model.check(move || f(end));
    }
}

/// A connection on which a request has come.
#[expect(
    clippy::arc_with_non_send_sync,
    reason = "a model has one OS thread, and finds races by itself"
)]
fn asked() -> Arc<Connection> {
    let connection = Arc::new(Connection::new(Stream::new()));
    connection.wait_first(0);
    connection.stream.ask();
    connection
}

/// Something else that is done with the connection.
fn beside(connection: &Arc<Connection>, f: fn(&Connection)) -> JoinHandle<()> {
    let connection = Arc::clone(connection);
    spawn(move || f(&connection))
}

/// What the thread has to see to next. With a request that was read comes the exchange.
async fn event(connection: &Connection) -> (Event, Option<Box<Exchange>>) {
    let mut spare = None;
    let event = poll_fn(|cx| connection.poll(cx, &mut spare)).await;
    (event, spare)
}

/// Sends an exchange into the network, where it ends like this.
fn begin(connection: &Arc<Connection>, mut exchange: Box<Exchange>, end: End) -> JoinHandle<()> {
    connection.stream.write();
    connection.begin(&mut exchange);
    spawn(move || {
        let connection = exchange.connection.as_ref().expect("it has begun");
        connection.stream.write();
        end.of(exchange);
    })
}

/// Sends what is read into the network, where it ends like this.
async fn begin_read(connection: &Arc<Connection>, end: End) -> JoinHandle<()> {
    let (Event::Read(Ok(1)), Some(exchange)) = event(connection).await else {
        panic!("there is something to read");
    };
    begin(connection, exchange, end)
}

#[test]
fn what_comes_meanwhile_is_read_when_the_thread_is_free() {
    model(|end| {
        let connection = asked();
        let client = beside(&connection, |connection| connection.stream.ask());
        let stage = block_on(async {
            let stage = begin_read(&connection, end).await;
            match event(&connection).await {
                (Event::Read(Ok(1)), _) => {
                    assert_eq!(end, End::Finished);
                    assert_eq!(connection.waits_since_s(), ANSWERED_S);
                }
                (Event::Handed(Some(exchange)), _) => {
                    assert_eq!(end, End::Handed);
                    Exchange::put(exchange);
                    connection.wait(ANSWERED_S);
                    let (event, _) = event(&connection).await;
                    assert!(matches!(event, Event::Read(Ok(1))));
                }
                (Event::Handed(None), _) => assert_eq!(end, End::Lost),
                (Event::Read(_), _) => panic!("it was not cut"),
            }
            connection.stream.write();
            stage
        });
        for thread in [client, stage] {
            thread.join().expect("no panic");
        }
    });
}

#[test]
fn it_waits_for_the_client_since_the_answer_and_not_while_it_has_an_exchange() {
    model(|end| {
        let connection = asked();
        let stage = block_on(async {
            let stage = begin_read(&connection, end).await;
            poll_fn(|cx| {
                let polled = connection.poll(cx, &mut None);
                if polled.is_pending() && !connection.is_busy() {
                    assert_eq!(connection.waits_since_s(), ANSWERED_S);
                }
                Poll::Ready(())
            })
            .await;
            stage
        });
        stage.join().expect("no panic");
    });
}

#[test]
fn who_asks_whether_it_is_free_is_called_when_it_is() {
    model(|end| {
        let connection = asked();
        let stage = block_on(async {
            let stage = begin_read(&connection, end).await;
            let mut spare = None;
            let event = poll_fn(|cx| match connection.poll(cx, &mut spare) {
                Poll::Pending if connection.is_free() => Poll::Ready(None),
                polled => polled.map(Some),
            });
            assert_eq!(event.await.is_none(), end == End::Finished);
            connection.stream.write();
            stage
        });
        stage.join().expect("no panic");
    });
}

#[test]
fn what_is_cut_ends() {
    model(|end| {
        let connection = asked();
        let cutter = beside(&connection, Connection::cut);
        let stage = block_on(async {
            let mut stage = None;
            loop {
                match event(&connection).await {
                    (Event::Read(Ok(1)), Some(exchange)) => {
                        stage = Some(begin(&connection, exchange, end));
                    }
                    (Event::Handed(Some(exchange)), _) => {
                        connection.stream.write();
                        Exchange::put(exchange);
                        connection.wait(ANSWERED_S);
                    }
                    (Event::Read(Ok(0)) | Event::Handed(None), _) => return stage,
                    _ => panic!("nothing else happens"),
                }
            }
        });
        for thread in stage.into_iter().chain([cutter]) {
            thread.join().expect("no panic");
        }
    });
}

/// Somebody who takes the connection's place, and says whether it could.
fn taker(connection: &Arc<Connection>) -> JoinHandle<bool> {
    let connection = Arc::clone(connection);
    spawn(move || connection.make_room())
}

#[test]
fn a_place_is_taken_of_one_that_is_idle_and_its_thread_ends() {
    model(|end| {
        let connection = asked();
        let taker = {
            let connection = Arc::clone(&connection);
            spawn(move || {
                let is_taken = connection.make_room();
                match is_taken {
                    true => connection.wake(),
                    // It was busy, or had not waited yet. The model has to end.
                    false => connection.cut(),
                }
                is_taken
            })
        };
        let mut stages = Vec::new();
        let (mut asked, mut is_last) = (0, false);
        block_on(async {
            loop {
                match event(&connection).await {
                    (Event::Read(Ok(1)), Some(mut exchange)) => {
                        asked += 1;
                        connection.stream.write();
                        connection.begin(&mut exchange);
                        is_last = exchange.is_last;
                        // What is the last one comes back.
                        let end = match end {
                            End::Finished if is_last => End::Handed,
                            end => end,
                        };
                        stages.push(spawn(move || end.of(exchange)));
                    }
                    (Event::Handed(Some(exchange)), _) => {
                        Exchange::put(exchange);
                        if is_last {
                            return;
                        }
                        connection.wait(ANSWERED_S);
                    }
                    (Event::Read(Ok(0)) | Event::Handed(None), _) => return,
                    _ => panic!("nothing else happens"),
                }
            }
        });
        for stage in stages {
            stage.join().expect("no panic");
        }
        let is_taken = taker.join().expect("no panic");
        assert!(
            asked == 1 || asked == 0 && !is_taken,
            "what had come is read"
        );
    });
}

#[test]
fn one_that_is_busy_keeps_its_place() {
    model(|end| {
        let connection = asked();
        block_on(async {
            let mut spare = None;
            let event = poll_fn(|cx| connection.poll(cx, &mut spare)).await;
            assert!(matches!(event, Event::Read(Ok(1))));
            let mut exchange = spare.take().expect("it was read into");
            let taker = taker(&connection);
            connection.begin(&mut exchange);
            let is_last = exchange.is_last;
            let is_taken = taker.join().expect("no panic");
            assert_eq!(is_last, is_taken, "it is told that it is the last one");
            assert!(!connection.make_room(), "it is busy");
            end.of(exchange);
        });
    });
}
