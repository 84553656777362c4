//! A server socket whose connections send their events to a stage.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use async_lock::{Semaphore, SemaphoreGuardArc};
use tussah_core::{Notified, Notify};

use super::address::Address;
use super::event::SocketEvent;
use super::options::SocketOptions;
use super::set::{Entry, Membership, SocketSet, next_id};
use super::sink::{EventSink, SinkError};
use super::stats::SocketStats;
use super::stream::{Listener, Stream};
use super::thread::prepare;
use crate::OpError;
use crate::net::Verdict;

/// A handle to a server socket. The handle is cheap to clone. The server accepts connections until
/// it is [closed](Self::close), even if all handles are dropped.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

/// A server, shared by its thread and its handles.
pub(super) struct Shared {
    id: u64,
    local: Address,
    stop: Notify,
    accepted: AtomicU64,
    /// Connections that the stage's controllers rejected.
    rejected: AtomicU64,
    failed: AtomicU64,
    /// Connections that wait for room in the stage's queue: 0 or 1.
    waiting: AtomicU64,
}

impl Shared {
    pub(super) fn new(id: u64, local: Address) -> Arc<Self> {
        Arc::new(Self {
            id,
            local,
            stop: Notify::new(),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
        })
    }

    pub(super) fn handle(self: &Arc<Self>) -> Server {
        Server {
            shared: Arc::clone(self),
        }
    }
}

impl Entry for Shared {
    fn close(&self) {
        self.stop.notify_one();
    }

    fn add_now(&self, stats: &mut SocketStats) {
        stats.servers += 1;
        // The connection that waits for room in the stage's queue.
        stats.listen.queue_max += 1;
    }

    fn add_to(&self, stats: &mut SocketStats) {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        stats.listen.queued += count(&self.waiting);
        stats.listen.finished += count(&self.accepted);
        stats.listen.refused += count(&self.rejected);
        stats.listen.failed += count(&self.failed);
    }
}

impl Server {
    /// Returns the number of the server; see [`SocketEvent::id`].
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// Returns the address at which the server listens.
    #[must_use]
    pub fn local(&self) -> &Address {
        &self.shared.local
    }

    /// Stops accepting connections, and closes the listener; the last event of the server is
    /// [`SocketEvent::Stopped`]. Existing connections continue, except those whose first event has
    /// not yet entered the stage's queue: these are closed.
    pub fn close(&self) {
        self.shared.close();
    }
}

impl PartialEq for Server {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Server {}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("id", &self.id())
            .field("local", &format_args!("{}", self.local()))
            .finish_non_exhaustive()
    }
}

/// The parts that a server's thread uses.
pub(super) struct Accepting<A, E> {
    pub(super) set: Arc<SocketSet>,
    pub(super) options: Arc<SocketOptions>,
    pub(super) places: Arc<Semaphore>,
    pub(super) shared: Arc<Shared>,
    pub(super) listener: Listener,
    pub(super) accepts: EventSink<A>,
    pub(super) packets: EventSink<E>,
    pub(super) membership: Arc<Membership>,
}

impl<A, E> Accepting<A, E>
where
    A: From<SocketEvent> + Send + 'static,
    E: From<SocketEvent> + Send + 'static,
{
    pub(super) async fn run(self) {
        let stopped = self.accept_all().await;
        let Self {
            shared,
            listener,
            accepts,
            membership,
            ..
        } = self;
        drop(listener);
        if let Ok(error) = stopped {
            // If the stage no longer exists, the event is dropped.
            let stopped = SocketEvent::Stopped(shared.handle(), error);
            let _ = accepts.tell(stopped).await;
        }
        drop(membership);
    }

    /// Accepts until the server is closed or an error ends it. Returns `Err` if the stage no longer
    /// accepts events.
    async fn accept_all(&self) -> Result<Option<io::Error>, SinkError> {
        let mut stop = pin!(self.shared.stop.notified());
        let mut failing = false;
        loop {
            match unless(stop.as_mut(), self.accept()).await {
                None => return Ok(None),
                Some(Ok((stream, place))) => {
                    failing = false;
                    if !self.begin(stop.as_mut(), stream, place).await? {
                        return Ok(None);
                    }
                }
                Some(Err(error)) if is_exhaustion(&error) => {
                    self.shared.failed.fetch_add(1, Ordering::Relaxed);
                    if !failing {
                        let failed = SocketEvent::AcceptFailed(self.shared.handle(), error);
                        match unless(stop.as_mut(), self.accepts.tell(failed)).await {
                            None => return Ok(None),
                            Some(told) => told?,
                        }
                    }
                    failing = true;
                }
                Some(Err(error)) => return Ok(Some(error)),
            }
        }
    }

    async fn accept(&self) -> io::Result<(Stream, SemaphoreGuardArc)> {
        loop {
            // A server that only waits holds no place.
            self.listener.ready().await?;
            let place = self.places.acquire_arc().await;
            match self.listener.try_accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                accepted => return accepted.map(|stream| (stream, place)),
            }
        }
    }

    /// Sends the first event of a connection and starts its thread. Returns false if the sockets or
    /// the server were closed in the meantime.
    async fn begin(
        &self,
        stop: Pin<&mut Notified<'_>>,
        stream: Stream,
        place: SemaphoreGuardArc,
    ) -> Result<bool, SinkError> {
        let id = next_id();
        let join = |entry| self.set.join(id, entry);
        let Ok(prepared) = prepare(&self.options, id, stream, place, &self.set.writes, join) else {
            return Ok(false);
        };
        self.shared.waiting.store(1, Ordering::Relaxed);
        let first = prepared.first(SocketEvent::Accepted);
        let told = unless(stop, self.accepts.offer(first)).await;
        self.shared.waiting.store(0, Ordering::Relaxed);
        let Some(told) = told else {
            return Ok(false);
        };
        match told {
            Ok(()) => {
                self.shared.accepted.fetch_add(1, Ordering::Relaxed);
                let thread = prepared.serve(self.packets.clone());
                let spawned = self.set.spawn(id, &self.options, thread);
                // After the runtime has shut down, no stage receives events.
                spawned.map(|()| true).map_err(|_| SinkError::Gone)
            }
            Err(SinkError::Rejected) => {
                self.shared.rejected.fetch_add(1, Ordering::Relaxed);
                Ok(true)
            }
            Err(SinkError::Gone) => Err(SinkError::Gone),
        }
    }
}

/// Returns the output of a future, or `None` if the server is closed first.
async fn unless<T>(mut stop: Pin<&mut Notified<'_>>, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match stop.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(context).map(Some),
    })
    .await
}

/// Returns whether the process or the system has no descriptor or no memory left.
fn is_exhaustion(error: &io::Error) -> bool {
    let number = OpError::of(error).and_then(OpError::raw_os_error);
    let error = number.map(io::Error::from_raw_os_error);
    error.is_some_and(|error| Verdict::of(&error) == Verdict::Pause)
}
