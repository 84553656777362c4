//! A server socket, whose accepts come to a stage.

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
use super::hub::{Hub, Member, Membership, next_id};
use super::options::SocketOptions;
use super::stats::SocketStats;
use super::stream::{Listener, Stream};
use super::teller::{Teller, Untold};
use super::thread::prepare;
use crate::OpError;
use crate::net::Verdict;

/// A server socket. Cheap to clone; it goes on without them until it is [closed](Self::close).
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

/// What a server's thread and all who hold it share.
pub(super) struct Shared {
    id: u64,
    local: Address,
    stop: Notify,
    accepted: AtomicU64,
    /// Connections that the stage's controllers have turned away.
    rejected: AtomicU64,
    failed: AtomicU64,
    /// Connections that wait for room in the stage's queue: none or one.
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

impl Member for Shared {
    fn close(&self) {
        self.stop.notify_one();
    }

    fn add_now(&self, stats: &mut SocketStats) {
        stats.servers += 1;
        // One that waits for room in the stage's queue.
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
    /// Its number; see [`SocketEvent::id`].
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// The address that it listens at.
    #[must_use]
    pub fn local(&self) -> &Address {
        &self.shared.local
    }

    /// Accepts nothing more, and closes the listener; [`SocketEvent::Stopped`] tells when that is done. Its connections go on, but one that the stage has not been told
    /// of, for want of room or since a controller turns it away, is closed too.
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

/// What the thread of a server works with.
pub(super) struct Accepting<A, E> {
    pub(super) hub: Arc<Hub>,
    pub(super) options: Arc<SocketOptions>,
    pub(super) places: Arc<Semaphore>,
    pub(super) shared: Arc<Shared>,
    pub(super) listener: Listener,
    pub(super) accepts: Teller<A>,
    pub(super) packets: Teller<E>,
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
            // If the stage is gone there is nobody to tell.
            let stopped = SocketEvent::Stopped(shared.handle(), error);
            let _ = accepts.tell(stopped).await;
        }
        drop(membership);
    }

    /// Accepts until the server is closed, or an error ends it. An error: nobody wants to know.
    async fn accept_all(&self) -> Result<Option<io::Error>, Untold> {
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
            // Who only waits holds no place.
            self.listener.ready().await?;
            let place = self.places.acquire_arc().await;
            match self.listener.try_accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                accepted => return accepted.map(|stream| (stream, place)),
            }
        }
    }

    /// Tells of a connection, and starts its thread. False: the sockets were closed, or the server by now.
    async fn begin(
        &self,
        stop: Pin<&mut Notified<'_>>,
        stream: Stream,
        place: SemaphoreGuardArc,
    ) -> Result<bool, Untold> {
        let id = next_id();
        let join = |member| self.hub.join(id, member);
        let Ok(prepared) = prepare(&self.options, id, stream, place, &self.hub.writes, join) else {
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
                let spawned = self.hub.spawn(id, &self.options, thread);
                // At the end of the runtime nobody is told any more.
                spawned.map(|()| true).map_err(|_| Untold::Gone)
            }
            Err(Untold::Rejected) => {
                self.shared.rejected.fetch_add(1, Ordering::Relaxed);
                Ok(true)
            }
            Err(Untold::Gone) => Err(Untold::Gone),
        }
    }
}

/// What a future comes to, unless the server is closed before.
async fn unless<T>(mut stop: Pin<&mut Notified<'_>>, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match stop.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(context).map(Some),
    })
    .await
}

/// Whether the process or the system has no descriptor or no memory left.
fn is_exhaustion(error: &io::Error) -> bool {
    let number = OpError::of(error).and_then(OpError::raw_os_error);
    let error = number.map(io::Error::from_raw_os_error);
    error.is_some_and(|error| Verdict::of(&error) == Verdict::Pause)
}
