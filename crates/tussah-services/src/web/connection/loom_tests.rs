//! Models of a connection's thread against the owner of its exchange, and against a cut. They use
//! `state.rs` unchanged, with a small stream and small exchanges.

#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "it is taken twice: beside these modules it is a model, which uses less of it"
)]
#[path = "state.rs"]
mod state;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use loom::future::block_on;
use loom::thread::{JoinHandle, spawn};

use exchange::Exchange;
use state::{Connection, Event};
use stream::Stream;
use tussah::net::Hangup;

mod gone;
mod places;

mod sync {
    use std::task::Waker;

    use loom::sync::atomic::AtomicBool;
    pub(crate) use loom::sync::atomic::{AtomicU16, AtomicU32, Ordering};
    use loom::sync::{Mutex as Lock, MutexGuard, atomic};

    /// An atomic whose stores are swaps: loom lets a swap read a value that a store has already
    /// overwritten (github.com/tokio-rs/loom/issues/254).
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

    /// The handle that cancels a request. Dropping it wakes the request's owner, which ends the
    /// request's event.
    pub(crate) struct CancelHandle(Option<Waker>);

    impl CancelHandle {
        pub(crate) fn new(waker: Waker) -> Self {
            Self(Some(waker))
        }

        pub(crate) fn detach(mut self) {
            self.0 = None;
        }
    }

    impl Drop for CancelHandle {
        fn drop(&mut self) {
            if let Some(waker) = self.0.take() {
                waker.wake();
            }
        }
    }

    /// A cell that is set once. A thread without synchronization may find it unset.
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

        /// This version is for one thread.
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

    use super::state::Connection;

    pub(crate) struct Exchange {
        pub(crate) connection: Option<Arc<Connection>>,
        pub(crate) input: Input,
        pub(crate) is_last: bool,
        /// Loom fails the model if this is leaked.
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

        /// Ends the exchange in this second.
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

    use tussah::net::Hangup;

    use super::sync::Mutex;

    pub(crate) enum More {
        Bytes,
        Gone,
    }

    /// A stream in which a request is a single byte.
    pub(crate) struct Stream {
        wire: Mutex<Wire>,
        written: UnsafeCell<()>,
        /// Loom fails the model if this is leaked with its connection.
        _track: Track<()>,
    }

    #[derive(Default)]
    struct Wire {
        bytes: usize,
        /// True once the client has hung up, or the stream was cut.
        has_hung_up: bool,
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

        fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
            let mut wire = self.wire.lock();
            if wire.bytes > 0 || wire.has_hung_up {
                return Poll::Ready(());
            }
            wire.reader = Some(cx.waker().clone());
            Poll::Pending
        }

        pub(crate) fn poll_more(&self, cx: &mut Context<'_>, _: Hangup) -> Poll<More> {
            let mut wire = self.wire.lock();
            if wire.has_hung_up {
                return Poll::Ready(More::Gone);
            }
            wire.reader = Some(cx.waker().clone());
            match wire.bytes > 0 {
                true => Poll::Ready(More::Bytes),
                false => Poll::Pending,
            }
        }

        pub(crate) fn has_hung_up(&self, _: Hangup) -> bool {
            self.wire.lock().has_hung_up
        }

        pub(crate) fn poll_read(
            &self,
            cx: &mut Context<'_>,
            _: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            ready!(self.poll_readable(cx));
            let mut wire = self.wire.lock();
            if wire.bytes == 0 {
                return Poll::Ready(Ok(0));
            }
            wire.bytes -= 1;
            Poll::Ready(Ok(1))
        }

        pub(crate) fn has_come(&self) -> bool {
            self.wire.lock().bytes > 0
        }

        /// Acts as a client that sends a request.
        pub(crate) fn ask(&self) {
            self.change(|wire| wire.bytes += 1);
        }

        pub(crate) fn cut(&self) {
            self.hang_up();
        }

        /// Acts as a client that hangs up.
        pub(crate) fn hang_up(&self) {
            self.change(|wire| wire.has_hung_up = true);
        }

        fn change(&self, f: impl FnOnce(&mut Wire)) {
            let mut wire = self.wire.lock();
            f(&mut wire);
            if let Some(reader) = wire.reader.take() {
                reader.wake();
            }
        }

        /// Writes; fails if another thread writes at the same time.
        pub(crate) fn write(&self) {
            self.written.with_mut(|_| ());
        }
    }
}

/// The second in which an exchange is finished.
const ANSWERED_S: u64 = 7;

/// The end of an exchange.
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

/// Runs one model for each kind of end.
fn model(f: impl Fn(End) + Copy + Send + Sync + 'static) {
    for end in [End::Finished, End::Handed, End::Lost] {
        // A search of the whole space takes minutes.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = model.preemption_bound.or(Some(2));
        model.check(move || f(end));
    }
}

/// Creates a connection with a request.
#[expect(
    clippy::arc_with_non_send_sync,
    reason = "a model has one OS thread, and finds races by itself"
)]
fn asked() -> Arc<Connection> {
    let connection = Arc::new(Connection::new(Stream::new(), Hangup::Half));
    connection.wait_first(0);
    connection.stream.ask();
    connection
}

/// Runs an operation on the connection in parallel.
fn beside(connection: &Arc<Connection>, f: fn(&Connection)) -> JoinHandle<()> {
    let connection = Arc::clone(connection);
    spawn(move || f(&connection))
}

/// Returns the thread's next event, with the exchange if a request was read.
async fn event(connection: &Connection) -> (Event, Option<Box<Exchange>>) {
    let mut spare = None;
    let event = poll_fn(|cx| connection.poll(cx, &mut spare)).await;
    (event, spare)
}

/// Sends an exchange into the network, where it ends in the given way.
fn begin(connection: &Arc<Connection>, mut exchange: Box<Exchange>, end: End) -> JoinHandle<()> {
    connection.stream.write();
    connection.begin(&mut exchange);
    spawn(move || {
        let connection = exchange.connection.as_ref().expect("it has begun");
        connection.stream.write();
        end.of(exchange);
    })
}

/// Sends the request that is read into the network, where it ends in the given way.
async fn begin_read(connection: &Arc<Connection>, end: End) -> JoinHandle<()> {
    let (Event::Read(Ok(1)), Some(exchange)) = event(connection).await else {
        panic!("there is something to read");
    };
    begin(connection, exchange, end)
}

#[test]
fn input_that_arrives_during_an_exchange_is_read_after_it() {
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
fn the_idle_time_counts_from_the_answer_and_not_during_an_exchange() {
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
fn a_waiter_for_a_free_connection_is_woken_when_it_is_free() {
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
fn a_connection_that_is_cut_ends() {
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
