//! The entry point for sockets: it serves listeners, connects to peers, and sends the resulting
//! events to stages.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use async_lock::{Semaphore, SemaphoreGuardArc};
use tussah_core::Notify;

use super::connection::Connection;
use super::event::SocketEvent;
use super::options::SocketOptions;
use super::server::{Accepting, Server, Shared};
use super::set::{Entry, Membership, Queue, SocketSet, next_id};
use super::sink::EventSink;
use super::stats::SocketStats;
use super::stream::{Listener, Stream};
use super::thread::prepare;
use crate::net::{TcpStream, ToAddresses, UnixStream};
use crate::stage::control::{Controller, log::Log};
#[cfg(doc)]
use crate::stage::control::{Owns, Sample};
use crate::stage::network::here;
use crate::stage::{BuildError, Network, Sender};

/// A handle to a set of sockets. The set serves listeners, connects to peers, and sends the
/// resulting events to stages. The handle is cheap to clone.
///
/// # Examples
/// See [the module](super).
#[derive(Clone)]
pub struct Sockets {
    set: Arc<SocketSet>,
    options: Arc<SocketOptions>,
    places: Arc<Semaphore>,
}

impl Sockets {
    /// Creates a set of sockets with the default options. The sockets' threads run in the network's
    /// runtime. The network shows the sockets' queues among its stages, as `NAME.listen`,
    /// `NAME.connect`, `NAME.read` and `NAME.write`.
    ///
    /// # Errors
    /// Returns an error if one of these names is taken.
    #[track_caller]
    pub fn new(network: &Network, name: &str) -> Result<Self, BuildError> {
        let set = SocketSet::new(network, name, &here())?;
        Ok(Self::of(set, SocketOptions::default()))
    }

    /// Returns another handle to the same set of sockets. Sockets that are added through the
    /// returned handle use `options`. The returned handle has its own bound on the number of
    /// connections.
    #[must_use]
    pub fn with(&self, options: SocketOptions) -> Self {
        Self::of(Arc::clone(&self.set), options)
    }

    fn of(set: Arc<SocketSet>, options: SocketOptions) -> Self {
        Self {
            set,
            places: Arc::new(Semaphore::new(options.connections_max)),
            options: Arc::new(options),
        }
    }

    /// Accepts connections, and sends the events of the server and its connections to a stage.
    ///
    /// # Errors
    /// Returns an error if the sockets are [closed](Self::close), or if the runtime is shut down.
    pub fn listen<E>(&self, listener: impl Into<Listener>, to: &Sender<E>) -> io::Result<Server>
    where
        E: From<SocketEvent> + Send + 'static,
    {
        self.listen_apart(listener, to, to)
    }

    /// Accepts connections, and divides the resulting events between two stages. The first stage
    /// receives [`Accepted`](SocketEvent::Accepted) and the other events of the server. The second
    /// stage receives the packets and all other events of the connections. The order of events
    /// across the two stages is undefined.
    ///
    /// # Errors
    /// Returns the same errors as [`listen`](Self::listen).
    pub fn listen_apart<A, E>(
        &self,
        listener: impl Into<Listener>,
        accepts: &Sender<A>,
        packets: &Sender<E>,
    ) -> io::Result<Server>
    where
        A: From<SocketEvent> + Send + 'static,
        E: From<SocketEvent> + Send + 'static,
    {
        let listener = listener.into();
        let id = next_id();
        let shared = Shared::new(id, listener.local());
        let accepting = Accepting {
            membership: self.set.join(id, Arc::clone(&shared) as _)?,
            set: Arc::clone(&self.set),
            options: Arc::clone(&self.options),
            places: Arc::clone(&self.places),
            shared: Arc::clone(&shared),
            listener,
            accepts: self.set.sink(Queue::Listen, accepts, &self.options),
            packets: self.set.sink(Queue::Read, packets, &self.options),
        };
        self.set.spawn(id, &self.options, accepting.run())?;
        Ok(shared.handle())
    }

    /// Connects over TCP to an address or a host name; see [`TcpStream::connect`]. The stage
    /// receives [`Connected`](SocketEvent::Connected) or
    /// [`NotConnected`](SocketEvent::NotConnected). The returned number identifies the connection.
    ///
    /// # Errors
    /// Returns an error if there are too many [connections](SocketOptions::connections_max), if the
    /// sockets are [closed](Self::close), or if the runtime is shut down.
    pub fn connect<E>(
        &self,
        address: impl ToAddresses + Send + 'static,
        to: &Sender<E>,
    ) -> io::Result<u64>
    where
        E: From<SocketEvent> + Send + 'static,
    {
        self.connect_by(async move { TcpStream::connect(address).await }, to)
    }

    /// Connects to the Unix socket at a path, and otherwise behaves like
    /// [`connect`](Self::connect).
    ///
    /// # Errors
    /// Returns the same errors as [`connect`](Self::connect).
    pub fn connect_unix<E>(&self, path: impl Into<PathBuf>, to: &Sender<E>) -> io::Result<u64>
    where
        E: From<SocketEvent> + Send + 'static,
    {
        let path = path.into();
        self.connect_by(async move { UnixStream::connect(path).await }, to)
    }

    /// Runs a future that establishes a connection and can set any socket option. Otherwise, this
    /// method behaves like [`connect`](Self::connect).
    ///
    /// # Errors
    /// Returns the same errors as [`connect`](Self::connect).
    pub fn connect_by<S, E>(
        &self,
        connect: impl Future<Output = io::Result<S>> + Send + 'static,
        to: &Sender<E>,
    ) -> io::Result<u64>
    where
        S: Into<Stream>,
        E: From<SocketEvent> + Send + 'static,
    {
        let place = self.place()?;
        let id = next_id();
        let attempt = Arc::new(Attempt {
            id,
            stop: Notify::new(),
        });
        let membership = self.set.join(id, Arc::clone(&attempt) as _)?;
        let connecting = Connecting {
            set: Arc::clone(&self.set),
            options: Arc::clone(&self.options),
            attempt,
            told: self.set.sink(Queue::Connect, to, &self.options),
            packets: self.set.sink(Queue::Read, to, &self.options),
        };
        let connect = async move { connect.await.map(Into::into) };
        let thread = connecting.run(connect, membership, place);
        self.set.spawn(id, &self.options, thread)?;
        Ok(id)
    }

    /// Takes over an existing connection. The stage receives all further events of the connection,
    /// including its packets.
    ///
    /// # Errors
    /// Returns the same errors as [`connect`](Self::connect). If the call fails, the stream is
    /// closed.
    pub fn adopt<E>(&self, stream: impl Into<Stream>, to: &Sender<E>) -> io::Result<Connection>
    where
        E: From<SocketEvent> + Send + 'static,
    {
        let place = self.place()?;
        let id = next_id();
        let join = |entry| self.set.join(id, entry);
        let writes = &self.set.writes;
        let prepared = prepare(&self.options, id, stream.into(), place, writes, join)?;
        let connection = prepared.connection();
        let packets = self.set.sink(Queue::Read, to, &self.options);
        self.set.spawn(id, &self.options, prepared.serve(packets))?;
        Ok(connection)
    }

    /// Adds a controller, such as an [`InputRate`](crate::stage::control::policy::InputRate), to
    /// the queue `NAME.read`. The controller applies to all sockets of the set, including those of
    /// handles with other options.
    ///
    /// The controller can own [`Owns::PACE`]: the minimum time between one read and the next,
    /// across all connections. Connections wait in a queue until they may read. The controller
    /// receives a sample after each packet, and regularly while connections wait. The fields of its
    /// [`Sample`] are:
    ///
    /// | field | value |
    /// |---|---|
    /// | `arrived`, `finished` | packets that were read |
    /// | `bytes` | bytes in these packets |
    /// | `queue_len` | connections that wait until they may read |
    /// | `servlets.target` | all sockets, including servers |
    /// | `pace_ns` | current minimum time between two reads |
    ///
    /// # Errors
    /// Returns an error if the controller owns any other setting, or a setting that another
    /// controller of the same queue already owns.
    pub fn control_reads(&self, controller: impl Controller) -> Result<(), BuildError> {
        let name = self.set.name_of(Queue::Read);
        self.set.reads.add(name, Box::new(controller))
    }

    /// Adds a controller, such as an
    /// [`OutgoingBound`](crate::stage::control::policy::OutgoingBound), to the queue `NAME.write`.
    /// The controller applies to all sockets of the set, including those of handles with other
    /// options.
    ///
    /// The controller can own [`Owns::OUTGOING`]: the maximum number of bytes in each write queue.
    /// [`SocketOptions::outgoing_bytes_max`] still applies. The controller receives a sample when a
    /// packet is sent or a connection is added. The time between two samples is at least 10 ms,
    /// plus 3 µs per connection. The fields of its [`Sample`] are:
    ///
    /// | field | value |
    /// |---|---|
    /// | `arrived` | packets that were sent |
    /// | `refused` | packets that did not fit into their write queue |
    /// | `finished` | packets that were written |
    /// | `bytes` | all bytes that were written |
    /// | `failed` | packets that were dropped when their connection ended |
    /// | `queue_len` | packets in all write queues |
    /// | `servlets.target` | all sockets, including servers |
    /// | `outgoing_max` | current maximum number of bytes in a write queue |
    ///
    /// # Errors
    /// Returns the same errors as [`control_reads`](Self::control_reads).
    pub fn control_writes(&self, controller: impl Controller) -> Result<(), BuildError> {
        let name = self.set.name_of(Queue::Write);
        self.set.writes.add(name, Box::new(controller))
    }

    /// Returns the log of the controllers of `NAME.read`.
    #[must_use]
    pub fn read_log(&self) -> Log {
        self.set.reads.log()
    }

    /// Returns the log of the controllers of `NAME.write`.
    #[must_use]
    pub fn write_log(&self) -> Log {
        self.set.writes.log()
    }

    /// Closes all sockets gracefully: servers stop, connection attempts are abandoned, and each
    /// connection closes after its queued bytes have been written. The stages receive the resulting
    /// events. No more sockets can be added.
    pub fn close(&self) {
        self.set.close();
    }

    /// Waits until all servers, connections and connection attempts have ended, and their last
    /// events have been sent to the stages.
    pub async fn settled(&self) {
        self.set.settled().await;
    }

    /// Returns the statistics of all sockets in the set, including sockets of handles with other
    /// options.
    #[must_use]
    pub fn stats(&self) -> SocketStats {
        self.set.stats()
    }

    fn place(&self) -> io::Result<SemaphoreGuardArc> {
        self.places.try_acquire_arc().ok_or_else(|| {
            let max = self.options.connections_max;
            let text = format!("there are as many connections as there may be: {max}");
            io::Error::new(io::ErrorKind::QuotaExceeded, text)
        })
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets")
            .field("options", &self.options)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// A connection that is being established.
struct Attempt {
    id: u64,
    stop: Notify,
}

impl Entry for Attempt {
    fn close(&self) {
        self.stop.notify_one();
    }

    fn add_now(&self, stats: &mut SocketStats) {
        stats.connect.in_service += 1;
    }

    fn add_to(&self, _: &mut SocketStats) {}
}

/// The parts that a thread needs to establish a connection.
struct Connecting<E> {
    set: Arc<SocketSet>,
    options: Arc<SocketOptions>,
    attempt: Arc<Attempt>,
    told: EventSink<E>,
    packets: EventSink<E>,
}

impl<E: From<SocketEvent> + Send + 'static> Connecting<E> {
    async fn run(
        self,
        connect: impl Future<Output = io::Result<Stream>> + Send,
        membership: Arc<Membership>,
        place: SemaphoreGuardArc,
    ) {
        let id = self.attempt.id;
        let made = self.connect(connect).await;
        let prepared = made.and_then(|stream| {
            let join = |entry| membership.replace(entry);
            prepare(&self.options, id, stream, place, &self.set.writes, join)
        });
        self.set.count_attempt(prepared.is_ok());
        match prepared {
            Ok(prepared) => {
                let first = prepared.first(SocketEvent::Connected);
                if self.told.insist(first).await.is_ok() {
                    // A new thread is smaller than this one. When the runtime has shut down, no
                    // thread is started.
                    let thread = prepared.serve(self.packets);
                    let _ = self.set.spawn(id, &self.options, thread);
                }
            }
            Err(error) => {
                // If the stage no longer exists, the event is dropped.
                let failed = SocketEvent::NotConnected(id, error);
                let _ = self.told.tell(failed).await;
            }
        }
    }

    async fn connect(
        &self,
        connect: impl Future<Output = io::Result<Stream>> + Send,
    ) -> io::Result<Stream> {
        let mut connect = pin!(connect);
        let mut stop = pin!(self.attempt.stop.notified());
        poll_fn(|context| {
            if stop.as_mut().poll(context).is_ready() {
                let text = "the attempt to connect was given up here";
                let error = io::Error::new(io::ErrorKind::ConnectionAborted, text);
                return Poll::Ready(Err(error));
            }
            connect.as_mut().poll(context)
        })
        .await
    }
}
