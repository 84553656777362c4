//! A connection: a thread with its own color, which waits for requests and sends them into the
//! network one at a time.
//!
//! # Ownership
//! A request in flight is an [`Exchange`], which one stage owns at a time. Its owner also has the
//! right to write to the connection. In the meantime the thread waits, and reads nothing until the
//! connection is free again. A request that is answered immediately therefore takes no lock of its
//! connection, and a waiting connection has no buffer.
//!
//! | state | who may write | the thread | next state |
//! |---|---|---|---|
//! | `HELD` | the thread | negotiates encryption, or does the remaining work of an exchange | `IDLE` by [`wait`](Connection::wait), `BUSY` by the thread |
//! | `IDLE` | the thread | waits for something to read | `BUSY` by the thread, which sends a request on; `LEAVING` by [`make_room`](Connection::make_room) |
//! | `BUSY` | the exchange's owner | waits, and is not woken when the request is answered | `IDLE` by [`release`](Connection::release), `HANDED` by [`hand`](Connection::hand), `WAITED` or `GONE` by the thread |
//! | `WAITED` | the exchange's owner | more data has arrived: the thread has to be woken | `IDLE` or `HANDED`, with a wake-up; `GONE` by the thread |
//! | `GONE` | the exchange's owner | the client has disconnected and the thread has cancelled the request: the thread has to be woken | `IDLE` or `HANDED`, with a wake-up |
//! | `HANDED` | the thread | takes the exchange | `HELD` by the thread |
//! | `LEAVING` | the thread | checks one last time whether a request has arrived, and answers it or ends | `BUSY` by the thread, with the last request |
//!
//! Any thread may [`cut`](Connection::cut) the connection. The stream then ends in both directions,
//! as if the client had hung up, so the thread ends after it has got back its exchange. The
//! thread's waker is present before its first request starts.
//!
//! # Making room
//! A connection that needs a place takes one by changing an `IDLE` connection to `LEAVING`, and
//! wakes that connection's thread. The thread changes `IDLE` to `BUSY` by a swap, so that one of
//! the two comes first. If the thread comes first, the connection keeps its place. Otherwise the
//! thread finds `LEAVING`. It then answers a request that it has already read, or that it finds in
//! a last check, and declares that request to be the last. The last check asks the system itself,
//! since the driver may not have reported new data yet. So no request is lost that the system had
//! received when the place was taken. A connection whose thread has not waited yet has no waker,
//! and keeps its place.
//!
//! # A client that has gone
//! The driver's flags tell the thread that the client has hung up, even behind unread data. The
//! thread then changes `BUSY` or `WAITED` to `GONE` by a compare-and-swap. The exchange's owner
//! ends with a swap to `IDLE` or `HANDED`. One of the two therefore comes first:
//! - If the exchange ends first, the compare-and-swap fails. Nothing is cancelled, and the thread
//!   meets the end of the stream.
//! - If `GONE` comes first, the exchange stays with its owner, and only the owner may write, log
//!   and count. The owner checks for `GONE` ([`is_gone`](Connection::is_gone)) where a request may
//!   be dropped. Each request therefore ends once, either answered or cancelled. The final swap
//!   finds `GONE` and wakes the thread.
//!
//! A request that starts after the driver has reported the end is `GONE` from its start. A hang-up
//! is never withdrawn, so `GONE` never refers to an earlier request of the connection.
//!
//! A request for a route waits in the queue of a stage, or in its handler, so a mere check for
//! `GONE` would come too late. The sender therefore stores a handle that cancels the request in
//! `left`, and checks the state afterwards ([`leave`](Connection::leave)). The thread changes the
//! state first, and takes the handle afterwards. Both lock `left` in between. If the thread locks
//! it first, the sender's check comes after the change and finds `GONE`. If the sender locks it
//! first, the thread finds the handle. The request is therefore cancelled in either case, until the
//! exchange's owner [takes the handle back](Connection::take_request).
//!
//! `loom_tests.rs` models all of this.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tussah::net::Hangup;

use super::exchange::Exchange;
use super::stream::{More, Stream};
use super::sync::{AtomicU8, AtomicU16, AtomicU32, CancelHandle, Mutex, OnceLock, Ordering};

// One comparison distinguishes the first two states from the others.
const IDLE: u8 = 0;
const LEAVING: u8 = 1;
const BUSY: u8 = 2;
const WAITED: u8 = 3;
const GONE: u8 = 4;
const HANDED: u8 = 5;
const HELD: u8 = 6;

/// A mark for the second from which a connection waits for its first request.
const FIRST: u32 = 1 << 31;

/// Bound, in seconds: the time for which a connection is sure to keep its place before its first
/// request arrives. The clock counts whole seconds, so the time may be shorter by up to one second.
const FIRST_S: u64 = 2;

/// The value of [`Connection::last`] before the first request for a route.
pub(crate) const NONE: u16 = 0;

/// A connection, as its thread and the exchange in flight share it.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    state: AtomicU8,
    /// The second of the server's clock at which the connection began to wait for the client.
    waits_since_s: AtomicU32,
    /// The result of the connection's last request for a route, and the route: [`NONE`], or a value
    /// that the stages of routes define.
    pub(crate) last: AtomicU16,
    /// The kind of hang-up after which the client counts as gone.
    gone_at: Hangup,
    left: Mutex<Left>,
    /// The thread's waker, which never changes.
    waker: OnceLock<Waker>,
}

/// A message between the thread and the exchange's owner.
enum Left {
    Nothing,
    /// For the thread: an exchange that returns.
    Exchange(Box<Exchange>),
    /// A handle that the thread drops when the client has gone, which cancels the request.
    Request(CancelHandle),
}

/// An event for a connection's thread.
pub(crate) enum Event {
    /// The number of bytes read; 0 means the end.
    Read(std::io::Result<usize>),
    /// An exchange returned; `None` if it was lost.
    Handed(Option<Box<Exchange>>),
}

impl Connection {
    /// Creates a connection. `gone_at` is the kind of hang-up after which the client counts as
    /// gone.
    pub(crate) fn new(stream: Stream, gone_at: Hangup) -> Self {
        Self {
            stream,
            state: AtomicU8::new(HELD),
            waits_since_s: AtomicU32::new(0),
            last: AtomicU16::new(NONE),
            gone_at,
            left: Mutex::new(Left::Nothing),
            waker: OnceLock::new(),
        }
    }

    /// Returns whether the connection is not waiting for a request: a request is in flight or
    /// returning, or the connection is leaving.
    pub(crate) fn is_busy(&self) -> bool {
        // Acquire: pairs with `release`, which publishes the second of the response.
        self.state.load(Ordering::Acquire) != IDLE
    }

    /// Returns whether the connection has given up its place.
    pub(crate) fn is_leaving(&self) -> bool {
        // Relaxed: it publishes nothing.
        self.state.load(Ordering::Relaxed) == LEAVING
    }

    /// Returns whether an exchange is on its way back, whose owner has woken the thread.
    pub(crate) fn is_handed(&self) -> bool {
        // Relaxed: `poll` orders what follows.
        self.state.load(Ordering::Relaxed) == HANDED
    }

    /// Returns whether no request is in flight. If one is in flight, its end wakes the thread.
    pub(crate) fn is_free(&self) -> bool {
        // Acquire: pairs with `release`.
        let waits = self
            .state
            .compare_exchange(BUSY, WAITED, Ordering::Relaxed, Ordering::Acquire);
        waits == Err(IDLE)
    }

    /// Starts a request. Called by the thread.
    pub(crate) fn begin(self: &Arc<Self>, exchange: &mut Exchange) {
        exchange.connection = Some(Arc::clone(self));
        let is_gone = self.stream.has_hung_up(self.gone_at);
        let state = if is_gone { GONE } else { BUSY };
        // Relaxed: the exchange reaches its next owner through a queue or a call. It is a swap,
        // since `make_room` may come first.
        if self.state.swap(state, Ordering::Relaxed) == LEAVING {
            exchange.is_last = true;
        }
    }

    /// Returns whether the client has disconnected. Called by the exchange's owner.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        // Relaxed: it publishes nothing.
        self.state.load(Ordering::Relaxed) == GONE
    }

    /// Stores the handle that cancels the request when the client disconnects. Called by the
    /// exchange's owner, which sends the exchange into a queue.
    pub(crate) fn leave(&self, request: CancelHandle) {
        *self.left.lock() = Left::Request(request);
        if self.is_gone() {
            drop(self.take_request());
        }
    }

    /// Takes the handle back; `None` if the request was cancelled. Called by the exchange's owner.
    pub(crate) fn take_request(&self) -> Option<CancelHandle> {
        match self.take_left() {
            Left::Request(request) => Some(request),
            Left::Nothing | Left::Exchange(_) => None,
        }
    }

    /// Takes the message. It is dropped outside of the lock.
    fn take_left(&self) -> Left {
        mem::replace(&mut *self.left.lock(), Left::Nothing)
    }

    /// Waits for the first request, from this second on. Called by the thread.
    pub(crate) fn wait_first(&self, now_s: u64) {
        self.waits_since_s
            .store(now_s as u32 | FIRST, Ordering::Relaxed);
        self.set_idle();
    }

    /// Waits for the next request, from this second on, after the thread has held an exchange.
    /// Called by the thread.
    pub(crate) fn wait(&self, now_s: u64) {
        self.wait_since(now_s);
        self.set_idle();
    }

    #[cold]
    fn set_idle(&self) {
        // Release: `make_room` reads the start of the wait. If this fails, the connection has been
        // cut.
        let _ = self
            .state
            .compare_exchange(HELD, IDLE, Ordering::Release, Ordering::Relaxed);
    }

    /// Returns the second since which the connection has been idle, if it is idle and may make room
    /// in this second.
    pub(crate) fn idle_since_s(&self, now_s: u64) -> Option<u64> {
        // Acquire: pairs with `release` and `set_idle`.
        let is_idle = self.state.load(Ordering::Acquire) == IDLE && self.waker.get().is_some();
        let since_s = self.waits_since_s();
        let is_first = self.waits_since_s.load(Ordering::Relaxed) & FIRST != 0;
        let may_leave = is_idle && (!is_first || now_s >= since_s + FIRST_S);
        may_leave.then_some(since_s)
    }

    /// Takes the place of an idle connection, which then has to be [woken](Self::wake). Returns
    /// false if the connection is not idle and keeps its place.
    pub(crate) fn make_room(&self) -> bool {
        // Relaxed: the call of the waker orders it before the thread's next look.
        self.waker.get().is_some()
            && self
                .state
                .compare_exchange(IDLE, LEAVING, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Records that the client has received every response, and that the connection waits for it
    /// from now on.
    #[inline]
    pub(crate) fn wait_since(&self, now_s: u64) {
        // Relaxed: either the thread writes it, or `release` publishes it.
        self.waits_since_s.store(now_s as u32, Ordering::Relaxed);
    }

    /// Returns the second at which the wait began.
    pub(crate) fn waits_since_s(&self) -> u64 {
        (self.waits_since_s.load(Ordering::Relaxed) & !FIRST).into()
    }

    /// Ends a request that was answered completely in this second.
    #[inline]
    pub(crate) fn release(&self, now_s: u64) {
        self.wait_since(now_s);
        // Release: the thread's next look sees everything done with the connection.
        if matches!(self.state.swap(IDLE, Ordering::Release), WAITED | GONE) {
            self.wake();
        }
    }

    /// Hands an exchange back to the thread.
    pub(crate) fn hand(&self, exchange: Box<Exchange>) {
        *self.left.lock() = Left::Exchange(exchange);
        // Release: pairs with the Acquire in `poll`.
        self.state.swap(HANDED, Ordering::Release);
        self.wake();
    }

    /// Records that the exchange is lost, so that the thread closes the connection.
    pub(crate) fn lose(&self) {
        // Release: as in `hand`.
        self.state.swap(HANDED, Ordering::Release);
        self.wake();
    }

    /// Ends the stream, and with it the connection as soon as no request is in flight.
    pub(crate) fn cut(&self) {
        self.stream.cut();
        self.wake();
    }

    /// Wakes the thread, so that it looks for work.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Waits for the next event. `exchange` is the buffer to read into; an exchange is taken when
    /// there may be data. Called by the thread.
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
                    let exchange = match self.take_left() {
                        Left::Exchange(exchange) => Some(exchange),
                        Left::Nothing => None,
                        // The connection was cut, or the exchange was lost.
                        Left::Request(request) => {
                            request.detach();
                            None
                        }
                    };
                    return Poll::Ready(Event::Handed(exchange));
                }
                state @ (IDLE | LEAVING) => {
                    let read = self.poll_read(context, exchange);
                    return match read {
                        // No data arrived before the connection left, as if the client had ended
                        // the connection. Data that has arrived may not have been reported yet, but
                        // will be soon.
                        Poll::Pending if state == LEAVING && !self.stream.has_come() => {
                            Poll::Ready(Event::Read(Ok(0)))
                        }
                        read => read.map(Event::Read),
                    };
                }
                GONE => return Poll::Pending,
                state => {
                    debug_assert_ne!(state, HELD, "what it has is done with before it waits");
                    let next = match self.stream.poll_more(context, self.gone_at) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(More::Bytes) => WAITED,
                        Poll::Ready(More::Gone) => GONE,
                    };
                    // Relaxed: the lock of `left` orders it. If this fails, the request has just
                    // been answered.
                    let changed = self.state.compare_exchange(
                        state,
                        next,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    );
                    if changed.is_ok() {
                        if next == GONE {
                            self.cancel_request();
                        }
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// Cancels the request of a client that has disconnected.
    #[cold]
    fn cancel_request(&self) {
        let mut left = self.left.lock();
        // An exchange that was answered first may be returning at this moment.
        let request = match mem::replace(&mut *left, Left::Nothing) {
            Left::Request(request) => Some(request),
            other => {
                *left = other;
                None
            }
        };
        drop(left);
        drop(request);
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
