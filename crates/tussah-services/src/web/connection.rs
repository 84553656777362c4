//! A connection: a thread of its own color, which waits for requests and sends them into the network one at a time.
//!
//! # Who has what
//! A request on its way is an [`Exchange`], which one stage owns at a time; with it goes the right to write to the connection. The thread goes on waiting meanwhile, and
//! reads nothing until it is free again. So a request that is answered at once takes no lock of its connection's,
//! and who waits has no buffer.
//!
//! | state | who may write | the thread | goes on to |
//! |---|---|---|---|
//! | `HELD` | the thread | agrees on encryption, or does what an exchange has left to do | `IDLE` by [`wait`](Connection::wait), `BUSY` by the thread |
//! | `IDLE` | the thread | waits for something to read | `BUSY` by the thread, which sends a request on; `LEAVING` by [`make_room`](Connection::make_room) |
//! | `BUSY` | who has the exchange | waits, and is not called when it is answered | `IDLE` by [`release`](Connection::release), `HANDED` by [`hand`](Connection::hand), `WAITED` by the thread |
//! | `WAITED` | who has the exchange | something more has come: it wants to be called | `IDLE` or `HANDED`, with a call |
//! | `HANDED` | the thread | takes the exchange | `HELD` by the thread |
//! | `LEAVING` | the thread | looks a last time whether a request has come, and answers that or ends | `BUSY` by the thread, with the last request |
//!
//! Anybody may [`cut`](Connection::cut) it: that looks like a lost exchange, and where something else takes the place of this, the thread comes upon the end of the stream.
//! The thread's waker is there before its first request begins its way.
//!
//! # Making room
//! Who needs a place takes one by changing `IDLE` into `LEAVING`, and wakes the thread. The thread changes `IDLE` into `BUSY` by
//! a swap, so that one of both is first. If the thread is, the connection keeps its place. If it is not, it finds `LEAVING` there: what it
//! has read already, or finds when it looks a last time, is answered and said to be the last. That look asks the system itself: the
//! driver may not have reported yet what has come. So no request is lost that the system had when the place was taken. A connection whose thread has not waited yet, and so has no waker, keeps its place.
//!
//! All this is modelled in `connection_loom_tests.rs`.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::dynamic;
use super::exchange::Exchange;
use super::stream::Stream;
use super::sync::{AtomicU8, AtomicU32, Mutex, OnceLock, Ordering};

// The two first ones are told from the others by one comparison.
const IDLE: u8 = 0;
const LEAVING: u8 = 1;
const BUSY: u8 = 2;
const WAITED: u8 = 3;
const HANDED: u8 = 4;
const HELD: u8 = 5;

/// Marks the second since when a connection waits for its first request.
const FIRST: u32 = 1 << 31;

/// Bound, in seconds: how long a connection keeps its place before its first request has come; by a clock of whole seconds
/// at least one less.
const FIRST_S: u64 = 2;

/// A connection, as its thread and the exchange on its way share it.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    state: AtomicU8,
    /// In which second of the server's clock it began to wait for the client.
    waits_since_s: AtomicU32,
    /// How its last request for a dynamic page went.
    pub(crate) last: AtomicU8,
    handed: Mutex<Option<Box<Exchange>>>,
    /// The thread's, which is the same for all of its life.
    waker: OnceLock<Waker>,
}

/// What a connection's thread has to see to.
pub(crate) enum Event {
    /// So many bytes came; 0 is the end.
    Read(std::io::Result<usize>),
    /// An exchange came back; `None` if it was lost.
    Handed(Option<Box<Exchange>>),
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            state: AtomicU8::new(HELD),
            waits_since_s: AtomicU32::new(0),
            last: AtomicU8::new(dynamic::NONE),
            handed: Mutex::new(None),
            waker: OnceLock::new(),
        }
    }

    /// Whether it does not wait for a request: one is on its way or comes back, or it leaves.
    pub(crate) fn is_busy(&self) -> bool {
        // Acquire: pairs with `release`, so that the second is known in which it was answered.
        self.state.load(Ordering::Acquire) != IDLE
    }

    /// Whether no request of it is on its way. If one is, the thread is called when that has been answered.
    pub(crate) fn is_free(&self) -> bool {
        // Acquire: pairs with `release`.
        let waits = self
            .state
            .compare_exchange(BUSY, WAITED, Ordering::Relaxed, Ordering::Acquire);
        waits == Err(IDLE)
    }

    /// A request begins its way. For the thread.
    pub(crate) fn begin(self: &Arc<Self>, exchange: &mut Exchange) {
        exchange.connection = Some(Arc::clone(self));
        // Relaxed: whoever gets the exchange gets it by a queue or a call. A swap: `make_room` may be before it.
        if self.state.swap(BUSY, Ordering::Relaxed) == LEAVING {
            exchange.is_last = true;
        }
    }

    /// Waits for the first request, since this second. For the thread.
    pub(crate) fn wait_first(&self, now_s: u64) {
        self.waits_since_s
            .store(now_s as u32 | FIRST, Ordering::Relaxed);
        self.set_idle();
    }

    /// Waits for the next request, since this second, after it has held an exchange. For the thread.
    pub(crate) fn wait(&self, now_s: u64) {
        self.wait_since(now_s);
        self.set_idle();
    }

    #[cold]
    fn set_idle(&self) {
        // Release: who makes room reads since when. If it fails, the connection was cut.
        let _ = self
            .state
            .compare_exchange(HELD, IDLE, Ordering::Release, Ordering::Relaxed);
    }

    /// Since when it has been idle, if it is, and may make room in this second.
    pub(crate) fn idle_since_s(&self, now_s: u64) -> Option<u64> {
        // Acquire: pairs with `release` and `set_idle`.
        let is_idle = self.state.load(Ordering::Acquire) == IDLE && self.waker.get().is_some();
        let since_s = self.waits_since_s();
        let is_first = self.waits_since_s.load(Ordering::Relaxed) & FIRST != 0;
        let may_leave = is_idle && (!is_first || now_s >= since_s + FIRST_S);
        may_leave.then_some(since_s)
    }

    /// Takes the place of a connection that is idle; false if it is not, and keeps it. It is to be [woken](Self::wake) then.
    pub(crate) fn make_room(&self) -> bool {
        // Relaxed: the call of the waker orders it before what the thread sees.
        self.waker.get().is_some()
            && self
                .state
                .compare_exchange(IDLE, LEAVING, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// The client has got all that it has asked for, and is waited for from now on.
    #[inline]
    fn wait_since(&self, now_s: u64) {
        // Relaxed: the thread writes it, or `release` publishes it.
        self.waits_since_s.store(now_s as u32, Ordering::Relaxed);
    }

    /// In which second that was.
    pub(crate) fn waits_since_s(&self) -> u64 {
        (self.waits_since_s.load(Ordering::Relaxed) & !FIRST).into()
    }

    /// It was answered in this second, and nothing is left of it.
    #[inline]
    pub(crate) fn release(&self, now_s: u64) {
        self.wait_since(now_s);
        // Release: the thread's next look sees what was done with the connection.
        if self.state.swap(IDLE, Ordering::Release) == WAITED {
            self.wake();
        }
    }

    /// Gives the thread an exchange back.
    pub(crate) fn hand(&self, exchange: Box<Exchange>) {
        *self.handed.lock() = Some(exchange);
        // Release: pairs with the Acquire in `poll`.
        self.state.swap(HANDED, Ordering::Release);
        self.wake();
    }

    /// The exchange is lost; the thread is to close the connection.
    pub(crate) fn lose(&self) {
        // Release: as in `hand`.
        self.state.swap(HANDED, Ordering::Release);
        self.wake();
    }

    /// Ends the connection, whatever is being done with it.
    pub(crate) fn cut(&self) {
        self.stream.cut();
        self.lose();
    }

    /// Has the thread look what there is to do.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Waits for what there is to do. `exchange` is where bytes are read to; one is taken for it when there may be some. For the thread.
    pub(crate) fn poll(
        &self,
        context: &mut Context<'_>,
        exchange: &mut Option<Box<Exchange>>,
    ) -> Poll<Event> {
        self.waker.get_or_init(|| context.waker().clone());
        loop {
            // Acquire: pairs with `release` and `hand`.
            match self.state.load(Ordering::Acquire) {
                HANDED => {
                    self.state.store(HELD, Ordering::Relaxed);
                    return Poll::Ready(Event::Handed(self.handed.lock().take()));
                }
                state @ (IDLE | LEAVING) => {
                    let read = self.poll_read(context, exchange);
                    return match read {
                        // Nothing has come before it leaves: it is as if the client had ended. What has come may
                        // not have been reported yet, and then is soon.
                        Poll::Pending if state == LEAVING && !self.stream.has_come() => {
                            Poll::Ready(Event::Read(Ok(0)))
                        }
                        read => read.map(Event::Read),
                    };
                }
                _ if self.stream.poll_readable(context).is_pending() => return Poll::Pending,
                state => {
                    debug_assert_ne!(state, HELD, "what it has is done with before it waits");
                    // If it fails, it has just been answered.
                    let waits = self.state.compare_exchange(
                        BUSY,
                        WAITED,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    );
                    if state == WAITED || waits.is_ok() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    #[inline]
    fn poll_read(
        &self,
        context: &mut Context<'_>,
        exchange: &mut Option<Box<Exchange>>,
    ) -> Poll<std::io::Result<usize>> {
        let had = exchange.is_some();
        let into = exchange.get_or_insert_with(Exchange::take);
        let polled = self.stream.poll_read(context, into.input.room());
        if let Poll::Ready(Ok(len @ 1..)) = polled {
            into.input.add(len);
        } else if !had && let Some(exchange) = exchange.take() {
            Exchange::put(exchange);
        }
        polled
    }
}
