//! The thread of a connection: it reads, writes, and sends events to the stage.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use async_lock::SemaphoreGuardArc;
use futures_util::FutureExt as _;
use futures_util::future::{Fuse, FusedFuture as _};

use super::buffer::Buffer;
use super::connection::{Connection, Shared};
use super::event::{CloseReason, SocketEvent};
use super::options::{SocketOptions, WhenRejected};
use super::pacer::Pacer;
use super::set::{Entry, Membership};
use super::sink::{EventSink, SinkError};
use super::stream::{Stream, Writer};
use crate::OpError;
use crate::net::{Outgoing, PACKET_MAX, RateLimit};
use crate::stage::Event;
use crate::time::{now, sleep, timeout};

/// A connection whose thread has not begun yet. Dropping it closes the connection.
pub(super) struct Prepared<W> {
    shared: Arc<Shared>,
    stream: Arc<Stream>,
    /// The future that writes the queued bytes.
    writing: W,
    options: Arc<SocketOptions>,
    membership: Arc<Membership>,
    /// The connection's place in the limit on the number of connections.
    place: SemaphoreGuardArc,
}

/// Makes a connection with this number from a stream; `join` adds it to the table.
///
/// # Errors
/// Returns any error from `join`.
pub(super) fn prepare(
    options: &Arc<SocketOptions>,
    id: u64,
    stream: Stream,
    place: SemaphoreGuardArc,
    writes: &Arc<Pacer>,
    join: impl FnOnce(Arc<dyn Entry>) -> io::Result<Arc<Membership>>,
) -> io::Result<Prepared<impl Future<Output = ()> + Send + 'static>> {
    if options.nodelay {
        // If the connection is already broken, the first read reports it.
        let _ = stream.set_nodelay();
    }
    let (local, peer) = (stream.local(), stream.peer());
    let stream = Arc::new(stream);
    let (outgoing, writing): (Outgoing<Buffer>, _) =
        options.outgoing.prepare(Writer(Arc::clone(&stream)));
    let buffers_max = options.outgoing.buffers_max;
    let shared = Shared::new(id, local, peer, outgoing, Arc::clone(writes), buffers_max);
    let membership = join(Arc::clone(&shared) as _)?;
    // The controllers may now divide a bound among more connections.
    writes.look();
    Ok(Prepared {
        shared,
        stream,
        writing,
        options: Arc::clone(options),
        membership,
        place,
    })
}

/// The reason why a connection's thread stops reading and sending events.
enum Stop {
    /// Writing has ended, normally or not.
    Over,
    /// Reading failed.
    Failed(io::Error),
    Rejected,
    /// The stage no longer accepts events.
    Gone,
}

impl<W: Future<Output = ()> + Send + 'static> Prepared<W> {
    pub(super) fn connection(&self) -> Connection {
        self.shared.handle()
    }

    /// Returns the first event of the connection. If the event is shed or lost, the connection is
    /// aborted.
    pub(super) fn first<E: From<SocketEvent>>(
        &self,
        event: fn(Connection) -> SocketEvent,
    ) -> Event<E> {
        let connection = self.connection();
        let lost = move |_| connection.break_off();
        Event::new(E::from(event(self.connection()))).on_drop(lost)
    }

    /// Serves the connection to its end.
    pub(super) async fn serve<E: From<SocketEvent> + Send + 'static>(self, to: EventSink<E>) {
        let Self {
            shared,
            stream,
            writing,
            options,
            membership,
            place,
        } = self;
        let outgoing = &shared.outgoing;
        let stop = {
            let reading = Reading {
                shared: &shared,
                stream: &stream,
                options: &options,
                reads: &membership.set().reads,
                limit: options.limit_each.as_ref().map(|limit| limit.another()),
                to: &to,
            };
            let mut writing = pin!(writing.fuse());
            let stop = alternate(outgoing, writing.as_mut(), pin!(reading.run())).await;
            match stop {
                Stop::Over => {}
                Stop::Failed(_) => outgoing.break_off(),
                Stop::Rejected | Stop::Gone => outgoing.end(),
            }
            if !writing.is_terminated() {
                writing.await;
            }
            stop
        };
        let written = outgoing.finish().await;
        if written.is_ok() && !shared.has_ended() {
            // Everything was written, so the result does not matter.
            let _ = timeout(options.linger, discard(&shared, &stream)).await;
        }
        // The descriptor is closed before the stage receives `Closed`.
        drop(stream);
        let closed = match (stop, written) {
            (Stop::Gone, _) => None,
            (Stop::Failed(error), _) => Some(CloseReason::Failed(error)),
            (Stop::Rejected, _) => Some(CloseReason::Rejected),
            (Stop::Over, Ok(())) => Some(CloseReason::Finished),
            (Stop::Over, Err(error)) => Some(of_writing(error)),
        };
        if let Some(closed) = closed {
            let counts = &shared.counts;
            let slow = matches!(closed, CloseReason::Slow(_));
            counts.slow.store(slow, Ordering::Relaxed);
            let failed = matches!(closed, CloseReason::Failed(_));
            counts.failed.store(failed, Ordering::Relaxed);
            // If the stage no longer exists, the event is dropped.
            let _ = to.tell(SocketEvent::Closed(shared.handle(), closed)).await;
        }
        drop((membership, place));
    }
}

/// Returns how the connection ended if the writing stopped early.
fn of_writing(error: io::Error) -> CloseReason {
    // An error of the system has a context; other errors come from this crate.
    match error.kind() {
        _ if OpError::of(&error).is_some() => CloseReason::Failed(error),
        io::ErrorKind::TimedOut => CloseReason::Slow(error),
        io::ErrorKind::ConnectionAborted => CloseReason::BrokenOff,
        _ => CloseReason::Failed(error),
    }
}

/// Polls writing and reading in alternating order until reading ends.
async fn alternate<W: Future<Output = ()>>(
    outgoing: &Outgoing<Buffer>,
    mut writing: Pin<&mut Fuse<W>>,
    mut reading: Pin<&mut impl Future<Output = Stop>>,
) -> Stop {
    let mut write_first = false;
    poll_fn(|context| {
        write_first = !write_first;
        if write_first {
            // The queue reports how the writing ended.
            let _ = writing.as_mut().poll(context);
            return reading.as_mut().poll(context);
        }
        let before = outgoing.progress();
        if let Poll::Ready(stop) = reading.as_mut().poll(context) {
            return Poll::Ready(stop);
        }
        let _ = writing.as_mut().poll(context);
        if outgoing.progress() == before {
            return Poll::Pending;
        }
        // The reading half sends the event about the packets that were written.
        reading.as_mut().poll(context)
    })
    .await
}

/// The reading half of a connection's thread, which also sends the events.
struct Reading<'a, E> {
    shared: &'a Arc<Shared>,
    stream: &'a Stream,
    options: &'a SocketOptions,
    reads: &'a Pacer,
    limit: Option<RateLimit>,
    to: &'a EventSink<E>,
}

/// The next event.
enum Next {
    Read(io::Result<Vec<u8>>),
    Written(u64),
    Over,
}

impl<E: From<SocketEvent> + Send + 'static> Reading<'_, E> {
    async fn run(&self) -> Stop {
        let (mut ended, mut told) = (false, 0);
        // The future keeps its place in the queue of readers while other events are sent.
        let mut packet = pin!(self.packet());
        loop {
            let next = poll_fn(|context| self.next(context, packet.as_mut(), ended, told)).await;
            if matches!(next, Next::Read(_)) {
                packet.set(self.packet());
            }
            let done = match next {
                Next::Over => return Stop::Over,
                Next::Read(Err(error)) => return Stop::Failed(error),
                Next::Read(Ok(packet)) if packet.is_empty() => {
                    ended = true;
                    self.end().await
                }
                Next::Read(Ok(packet)) => self.deliver(packet).await,
                Next::Written(number) => {
                    told = number;
                    let sent = SocketEvent::Sent(self.shared.handle(), number);
                    self.to.tell(sent).await
                }
            };
            match done {
                Ok(()) => {}
                Err(SinkError::Gone) => return Stop::Gone,
                Err(SinkError::Rejected) => return Stop::Rejected,
            }
        }
    }

    fn next(
        &self,
        context: &mut Context<'_>,
        packet: Pin<&mut impl Future<Output = io::Result<Vec<u8>>>>,
        ended: bool,
        told: u64,
    ) -> Poll<Next> {
        let progress = self.shared.outgoing.progress();
        if self.options.completions && progress.written > told {
            return Poll::Ready(Next::Written(progress.written));
        }
        if progress.over {
            return Poll::Ready(Next::Over);
        }
        if ended {
            return Poll::Pending;
        }
        packet.poll(context).map(Next::Read)
    }

    /// Reads a packet as soon as the limit and the controllers allow it. Dropping the future loses
    /// no bytes.
    async fn packet(&self) -> io::Result<Vec<u8>> {
        let mut len_max = self.options.packet_max;
        if self.limit.is_some() || self.reads.is_staffed() {
            // While there is nothing to read, there is nothing to delay.
            self.stream.readable().await?;
            if let Some(limit) = &self.limit {
                self.wait_for(limit).await;
                len_max = len_max.min(limit.piece_bytes());
            }
            if self.reads.turn().await {
                add(&self.shared.counts.delayed, 1);
            }
        }
        let packet = self.stream.read(len_max).await?;
        if let Some(limit) = &self.limit {
            limit.count(now(), packet.len());
        }
        // The end of the stream is not a packet.
        if !packet.is_empty() {
            self.reads.count_read(packet.len());
        }
        Ok(packet)
    }

    async fn wait_for(&self, limit: &RateLimit) {
        let mut again = false;
        while let Some(delay) = limit.delay(now(), again) {
            if !again {
                add(&self.shared.counts.delayed, 1);
            }
            sleep(delay).await;
            again = true;
        }
    }

    async fn deliver(&self, packet: Vec<u8>) -> Result<(), SinkError> {
        let counts = &self.shared.counts;
        if !self.shared.outgoing.progress().open {
            add(&counts.late, 1);
            return Ok(());
        }
        let len = packet.len() as u64;
        counts.waiting_bytes.store(len, Ordering::Relaxed);
        let event = SocketEvent::Packet(self.shared.handle(), packet);
        let told = self.to.offer(Event::new(event.into())).await;
        counts.waiting_bytes.store(0, Ordering::Relaxed);
        match told {
            Ok(()) => {
                add(&counts.packets, 1);
                add(&counts.bytes, len);
            }
            Err(SinkError::Rejected) => {
                add(&counts.rejected, 1);
                if self.options.when_rejected == WhenRejected::Drop {
                    return Ok(());
                }
            }
            Err(SinkError::Gone) => {}
        }
        told
    }

    /// Handles the end of the peer's data.
    async fn end(&self) -> Result<(), SinkError> {
        self.shared.set_ended();
        if !self.shared.outgoing.progress().open {
            return Ok(());
        }
        let ended = SocketEvent::Ended(self.shared.handle());
        self.to.tell(ended).await
    }
}

/// Reads and drops everything up to the end of the peer's data.
async fn discard(shared: &Shared, stream: &Stream) -> io::Result<()> {
    while !stream.read(PACKET_MAX).await?.is_empty() {
        add(&shared.counts.late, 1);
    }
    Ok(())
}

fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}
