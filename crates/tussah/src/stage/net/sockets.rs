//! What takes listeners, makes connections, and sends what happens on them to stages.

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
use super::hub::{Hub, Member, Membership, Queue, next_id};
use super::options::SocketOptions;
use super::server::{Accepting, Server, Shared};
use super::stats::SocketStats;
use super::stream::{Listener, Stream};
use super::teller::Teller;
use super::thread::prepare;
use crate::net::{TcpStream, ToAddresses, UnixStream};
use crate::stage::control::{Controller, Log};
#[cfg(doc)]
use crate::stage::control::{Owns, Sample};
use crate::stage::{BuildError, Network, Sender};

/// What takes listeners, makes connections, and sends what happens on them to stages. Cheap to clone.
///
/// # Examples
/// See [the module](super).
#[derive(Clone)]
pub struct Sockets {
    hub: Arc<Hub>,
    options: Arc<SocketOptions>,
    places: Arc<Semaphore>,
}

impl Sockets {
    /// Sockets whose threads run in the runtime of a network, with the default options. The network shows their queues among its stages, as
    /// `NAME.listen`, `NAME.connect`, `NAME.read` and `NAME.write`.
    ///
    /// # Errors
    /// If one of these names is taken.
    pub fn new(network: &Network, name: &str) -> Result<Self, BuildError> {
        let hub = Hub::new(network, name)?;
        Ok(Self::of(hub, SocketOptions::default()))
    }

    /// The same, with other options for what is made by it. Its connections have a bound of their own.
    #[must_use]
    pub fn with(&self, options: SocketOptions) -> Self {
        Self::of(Arc::clone(&self.hub), options)
    }

    fn of(hub: Arc<Hub>, options: SocketOptions) -> Self {
        Self {
            hub,
            places: Arc::new(Semaphore::new(options.connections_max)),
            options: Arc::new(options),
        }
    }

    /// Accepts connections, and sends their events, and those of the server, to a stage.
    ///
    /// # Errors
    /// If the sockets were [closed](Self::close).
    pub fn listen<E>(&self, listener: impl Into<Listener>, to: &Sender<E>) -> io::Result<Server>
    where
        E: From<SocketEvent> + Send + 'static,
    {
        self.listen_apart(listener, to, to)
    }

    /// The same with two stages: one for [`Accepted`](SocketEvent::Accepted) and what else the server tells, and one for the packets and all other
    /// events of the connections. Between the two there is no order.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
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
            membership: self.hub.join(id, Arc::clone(&shared) as _)?,
            hub: Arc::clone(&self.hub),
            options: Arc::clone(&self.options),
            places: Arc::clone(&self.places),
            shared: Arc::clone(&shared),
            listener,
            accepts: self.hub.teller(Queue::Listen, accepts, &self.options),
            packets: self.hub.teller(Queue::Read, packets, &self.options),
        };
        self.hub.spawn(id, &self.options, accepting.run())?;
        Ok(shared.handle())
    }

    /// Connects by TCP with an address, or with a host by its name; see [`TcpStream::connect`]. The stage is told of the connection by
    /// [`Connected`](SocketEvent::Connected), or of the error by [`NotConnected`](SocketEvent::NotConnected) with the number that is returned here.
    ///
    /// # Errors
    /// If there are too many [connections](SocketOptions::connections_max), or the sockets were [closed](Self::close).
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

    /// Connects with whoever listens at a path; as [`connect`](Self::connect) otherwise.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_unix<E>(&self, path: impl Into<PathBuf>, to: &Sender<E>) -> io::Result<u64>
    where
        E: From<SocketEvent> + Send + 'static,
    {
        let path = path.into();
        self.connect_by(async move { UnixStream::connect(path).await }, to)
    }

    /// Connects by a future, for options of all kinds; as [`connect`](Self::connect) otherwise.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
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
        let membership = self.hub.join(id, Arc::clone(&attempt) as _)?;
        let connecting = Connecting {
            hub: Arc::clone(&self.hub),
            options: Arc::clone(&self.options),
            attempt,
            told: self.hub.teller(Queue::Connect, to, &self.options),
            packets: self.hub.teller(Queue::Read, to, &self.options),
        };
        let connect = async move { connect.await.map(Into::into) };
        let thread = connecting.run(connect, membership, place);
        self.hub.spawn(id, &self.options, thread)?;
        Ok(id)
    }

    /// Takes a stream that is connected. The stage is told of its packets, and of all that follows.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); the stream is closed then.
    pub fn adopt<E>(&self, stream: impl Into<Stream>, to: &Sender<E>) -> io::Result<Connection>
    where
        E: From<SocketEvent> + Send + 'static,
    {
        let place = self.place()?;
        let id = next_id();
        let join = |member| self.hub.join(id, member);
        let writes = &self.hub.writes;
        let prepared = prepare(&self.options, id, stream.into(), place, writes, join)?;
        let connection = prepared.connection();
        let packets = self.hub.teller(Queue::Read, to, &self.options);
        self.hub.spawn(id, &self.options, prepared.serve(packets))?;
        Ok(connection)
    }

    /// Adds a controller of the queue `NAME.read`, such as an [`InputRate`](crate::stage::control::InputRate); those with other options are read under it, too.
    ///
    /// It can decide [`Owns::PACE`], the shortest time between two reads of all connections together, which wait for their turn in a row. Its [`Sample`] has packets that were
    /// read as `arrived` and `finished`, with their `bytes`; the connections that wait for their turn as `queue_len`, and all sockets, servers too, as `servlets.target`; and
    /// `pace_ns`, which is in force. It is asked when a packet was read, and while some wait.
    ///
    /// # Errors
    /// If it decides something else, or what another controller decides.
    pub fn control_reads(&self, controller: impl Controller) -> Result<(), BuildError> {
        let name = self.hub.name_of(Queue::Read);
        self.hub.reads.add(name, Box::new(controller))
    }

    /// Adds a controller of the queue `NAME.write`, such as an [`OutgoingBound`](crate::stage::control::OutgoingBound); those with other options are written under it, too.
    ///
    /// It can decide [`Owns::OUTGOING`], how many bytes may be queued to each peer, which is in force beside [`SocketOptions::outgoing_bytes_max`]. Its [`Sample`] has
    /// packets that were sent as `arrived`, for which there was no room as `refused`, that were written as `finished`, with all `bytes` written, and that were dropped at
    /// the end of their connection as `finished` and `failed`; the packets queued as `queue_len`, all sockets, servers too, as `servlets.target`; and `outgoing_max`, which is in force. It is asked when
    /// something is sent or a connection is new, at most each 10 ms and 3 µs for each connection.
    ///
    /// # Errors
    /// As [`control_reads`](Self::control_reads).
    pub fn control_writes(&self, controller: impl Controller) -> Result<(), BuildError> {
        let name = self.hub.name_of(Queue::Write);
        self.hub.writes.add(name, Box::new(controller))
    }

    /// What the controllers of `NAME.read` have decided last, and on what grounds.
    #[must_use]
    pub fn read_log(&self) -> Log {
        self.hub.reads.log()
    }

    /// What the controllers of `NAME.write` have decided last, and on what grounds.
    #[must_use]
    pub fn write_log(&self) -> Log {
        self.hub.writes.log()
    }

    /// Closes all of them in order: servers stop, attempts to connect are given up, connections are closed when what is to be written has been written.
    /// Nothing can be added any more. The stages are told of it all.
    pub fn close(&self) {
        self.hub.close();
    }

    /// Waits until there is no server, no connection and no attempt to connect any more. The stages have been sent the last event of each then.
    pub async fn settled(&self) {
        self.hub.settled().await;
    }

    /// What they do, and have done; also those with other options.
    #[must_use]
    pub fn stats(&self) -> SocketStats {
        self.hub.stats()
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

/// A connection that is being made.
struct Attempt {
    id: u64,
    stop: Notify,
}

impl Member for Attempt {
    fn close(&self) {
        self.stop.notify_one();
    }

    fn add_now(&self, stats: &mut SocketStats) {
        stats.connect.in_service += 1;
    }

    fn add_to(&self, _: &mut SocketStats) {}
}

/// What the thread works with that makes a connection.
struct Connecting<E> {
    hub: Arc<Hub>,
    options: Arc<SocketOptions>,
    attempt: Arc<Attempt>,
    told: Teller<E>,
    packets: Teller<E>,
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
            let join = |member| membership.replace(member);
            prepare(&self.options, id, stream, place, &self.hub.writes, join)
        });
        self.hub.count_attempt(prepared.is_ok());
        match prepared {
            Ok(prepared) => {
                let first = prepared.first(SocketEvent::Connected);
                if self.told.insist(first).await.is_ok() {
                    // A thread of its own is smaller than this one. At the end of the runtime there is none.
                    let thread = prepared.serve(self.packets);
                    let _ = self.hub.spawn(id, &self.options, thread);
                }
            }
            Err(error) => {
                // If the stage is gone there is nobody to tell.
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
