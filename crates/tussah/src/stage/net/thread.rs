//! The thread of a connection: it reads, writes, and tells the stage.

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
use super::desk::Desk;
use super::event::{Closed, SocketEvent};
use super::hub::{Member, Membership};
use super::options::{SocketOptions, WhenRejected};
use super::stream::{Stream, Writer};
use super::teller::{Teller, Untold};
use crate::OpError;
use crate::net::{Outgoing, PACKET_MAX, RateLimit};
use crate::stage::Event;
use crate::time::{now, sleep, timeout};

/// A connection whose thread has not begun. Dropping it closes the connection.
pub(super) struct Prepared<W> {
    shared: Arc<Shared>,
    stream: Arc<Stream>,
    /// Writes what is sent.
    writing: W,
    options: Arc<SocketOptions>,
    membership: Arc<Membership>,
    /// Its place among the connections.
    place: SemaphoreGuardArc,
}

/// Makes a connection with this number of a stream; `join` gives it its place in the table.
///
/// # Errors
/// Those of `join`.
pub(super) fn prepare(
    options: &Arc<SocketOptions>,
    id: u64,
    stream: Stream,
    place: SemaphoreGuardArc,
    writes: &Arc<Desk>,
    join: impl FnOnce(Arc<dyn Member>) -> io::Result<Arc<Membership>>,
) -> io::Result<Prepared<impl Future<Output = ()> + Send + 'static>> {
    if options.nodelay {
        // A connection that is broken already says so when it is read.
        let _ = stream.set_nodelay();
    }
    let (local, peer) = (stream.local(), stream.peer());
    let stream = Arc::new(stream);
    let (outgoing, writing): (Outgoing<Buffer>, _) =
        options.outgoing.prepare(Writer(Arc::clone(&stream)));
    let buffers_max = options.outgoing.buffers_max;
    let shared = Shared::new(id, local, peer, outgoing, Arc::clone(writes), buffers_max);
    let membership = join(Arc::clone(&shared) as _)?;
    // One more among whom something may be divided.
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

/// Why a connection's thread stops reading and telling.
enum Stop {
    /// Nothing more is written, in order or not.
    Over,
    /// Reading failed.
    Failed(io::Error),
    Rejected,
    /// There is nobody to tell.
    Gone,
}

impl<W: Future<Output = ()> + Send + 'static> Prepared<W> {
    pub(super) fn connection(&self) -> Connection {
        self.shared.handle()
    }

    /// What the stage is told first. If that is shed or lost, the connection is broken off.
    pub(super) fn first<E: From<SocketEvent>>(
        &self,
        event: fn(Connection) -> SocketEvent,
    ) -> Event<E> {
        let connection = self.connection();
        let lost = move |_| connection.break_off();
        Event::new(E::from(event(self.connection()))).on_drop(lost)
    }

    /// Serves the connection to its end.
    pub(super) async fn serve<E: From<SocketEvent> + Send + 'static>(self, to: Teller<E>) {
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
                reads: &membership.hub().reads,
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
            // Whatever comes of it, all was written.
            let _ = timeout(options.linger, discard(&shared, &stream)).await;
        }
        // The descriptor is closed before the stage is told that it is.
        drop(stream);
        let closed = match (stop, written) {
            (Stop::Gone, _) => None,
            (Stop::Failed(error), _) => Some(Closed::Failed(error)),
            (Stop::Rejected, _) => Some(Closed::Rejected),
            (Stop::Over, Ok(())) => Some(Closed::Finished),
            (Stop::Over, Err(error)) => Some(of_writing(error)),
        };
        if let Some(closed) = closed {
            let counts = &shared.counts;
            let slow = matches!(closed, Closed::Slow(_));
            counts.slow.store(slow, Ordering::Relaxed);
            let failed = matches!(closed, Closed::Failed(_));
            counts.failed.store(failed, Ordering::Relaxed);
            // If the stage is gone there is nobody to tell.
            let _ = to.tell(SocketEvent::Closed(shared.handle(), closed)).await;
        }
        drop((membership, place));
    }
}

/// What has ended the writing before all was written.
fn of_writing(error: io::Error) -> Closed {
    // What the system said has a context; the rest is from here.
    match error.kind() {
        _ if OpError::of(&error).is_some() => Closed::Failed(error),
        io::ErrorKind::TimedOut => Closed::Slow(error),
        io::ErrorKind::ConnectionAborted => Closed::BrokenOff,
        _ => Closed::Failed(error),
    }
}

/// Polls writing and reading, each time beginning with the other one, until the reading ends.
async fn alternate<W: Future<Output = ()>>(
    outgoing: &Outgoing<Buffer>,
    mut writing: Pin<&mut Fuse<W>>,
    mut reading: Pin<&mut impl Future<Output = Stop>>,
) -> Stop {
    let mut write_first = false;
    poll_fn(|context| {
        write_first = !write_first;
        if write_first {
            // The queue tells how that ended.
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
        // The reading half tells of what was written.
        reading.as_mut().poll(context)
    })
    .await
}

/// The reading half of a connection's thread, which also tells the stage.
struct Reading<'a, E> {
    shared: &'a Arc<Shared>,
    stream: &'a Stream,
    options: &'a SocketOptions,
    reads: &'a Desk,
    limit: Option<RateLimit>,
    to: &'a Teller<E>,
}

/// What is to be told next.
enum Next {
    Read(io::Result<Vec<u8>>),
    Written(u64),
    Over,
}

impl<E: From<SocketEvent> + Send + 'static> Reading<'_, E> {
    async fn run(&self) -> Stop {
        let (mut ended, mut told) = (false, 0);
        // It keeps its place in the row of those who want to read while the stage is told of other things.
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
                Err(Untold::Gone) => return Stop::Gone,
                Err(Untold::Rejected) => return Stop::Rejected,
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

    /// Reads a packet, as soon as the limit and the controllers allow it. Dropping the future reads nothing.
    async fn packet(&self) -> io::Result<Vec<u8>> {
        let mut len_max = self.options.packet_max;
        if self.limit.is_some() || self.reads.is_staffed() {
            // As long as there is nothing to read, there is nothing to delay.
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
        // The end is no packet.
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

    async fn deliver(&self, packet: Vec<u8>) -> Result<(), Untold> {
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
            Err(Untold::Rejected) => {
                add(&counts.rejected, 1);
                if self.options.when_rejected == WhenRejected::Drop {
                    return Ok(());
                }
            }
            Err(Untold::Gone) => {}
        }
        told
    }

    /// The peer sends nothing more.
    async fn end(&self) -> Result<(), Untold> {
        self.shared.set_ended();
        if !self.shared.outgoing.progress().open {
            return Ok(());
        }
        let ended = SocketEvent::Ended(self.shared.handle());
        self.to.tell(ended).await
    }
}

/// Reads to the peer's end.
async fn discard(shared: &Shared, stream: &Stream) -> io::Result<()> {
    while !stream.read(PACKET_MAX).await?.is_empty() {
        add(&shared.counts.late, 1);
    }
    Ok(())
}

fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}
